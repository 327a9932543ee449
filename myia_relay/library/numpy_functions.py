"""NumPy's functions that are short programs over other NumPy functions. Options that are not parameters here are refused."""

from __future__ import annotations

import math

import numpy as np


def _float_array(x):
    """`x` as an array of floats."""
    x = np.asarray(x)
    return x * 1.0 if x.dtype.kind != "f" else x


# Elementwise.


def fmax(x1, x2):
    """np.fmax: the greater; a NaN loses."""
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.maximum(x1, x2)))[()]


def fmin(x1, x2):
    """np.fmin: the smaller; a NaN loses."""
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.minimum(x1, x2)))[()]


def sinc(x):
    """np.sinc: sin(pi x) / (pi x), 1 at 0."""
    y = np.asarray(x) * math.pi
    zero = y == 0
    return np.where(zero, 1.0, np.sin(np.where(zero, 1.0, y)) / np.where(zero, 1.0, y))[()]


def logaddexp2(x1, x2):
    """np.logaddexp2: log2(2**x1 + 2**x2) without overflow."""
    return np.logaddexp(x1 * math.log(2.0), x2 * math.log(2.0)) / math.log(2.0)


def signbit(x):
    """np.signbit; the sign of NaN is not seen."""
    return np.copysign(1.0, x) < 0


def isneginf(x):
    """np.isneginf."""
    return np.isinf(x) & (np.asarray(x) < 0)[()]


def isposinf(x):
    """np.isposinf."""
    return np.isinf(x) & (np.asarray(x) > 0)[()]


# NaN left out.


def nansum(a, axis=None, keepdims=False):
    """np.nansum."""
    a = np.asarray(a)
    return np.sum(
        np.where(np.isnan(a), a * 0 if a.dtype.kind != "f" else np.zeros_like(a), a), axis=axis, keepdims=keepdims
    )


def nanprod(a, axis=None, keepdims=False):
    """np.nanprod."""
    a = np.asarray(a)
    return np.prod(np.where(np.isnan(a), np.ones_like(a), a), axis=axis, keepdims=keepdims)


def nanmax(a, axis=None, keepdims=False):
    """np.nanmax; NaN where there is nothing else."""
    a = np.asarray(a)
    top = np.max(np.where(np.isnan(a), -np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), np.nan, top).astype(a.dtype)[()]


def nanmin(a, axis=None, keepdims=False):
    """np.nanmin; NaN where there is nothing else."""
    a = np.asarray(a)
    low = np.min(np.where(np.isnan(a), np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), np.nan, low).astype(a.dtype)[()]


def nanmean(a, axis=None, keepdims=False):
    """np.nanmean."""
    a = _float_array(a)
    count = np.sum(np.isnan(a) == False, axis=axis, keepdims=keepdims)  # noqa: E712  an array
    return (np.nansum(a, axis=axis, keepdims=keepdims) / count).astype(a.dtype)[()]


def nanvar(a, axis=None, ddof=0, keepdims=False):
    """np.nanvar."""
    a = _float_array(a)
    there = np.isnan(a) == False  # noqa: E712  an array
    away = np.where(there, a - np.nanmean(a, axis=axis, keepdims=True), np.zeros_like(a))
    count = np.sum(there, axis=axis, keepdims=keepdims) - ddof
    return (np.sum(away * away, axis=axis, keepdims=keepdims) / count).astype(a.dtype)[()]


def nanstd(a, axis=None, ddof=0, keepdims=False):
    """np.nanstd."""
    return np.sqrt(np.nanvar(a, axis=axis, ddof=ddof, keepdims=keepdims))


# Averages.


def average(a, axis=None, weights=None):
    """np.average: weights are of the array's shape, or one for each position of the axis."""
    a = np.asarray(a)
    if weights is None:
        out = np.mean(a, axis=axis)
        if np.asarray(out).size == 0:
            raise ZeroDivisionError("division by zero")
        return out
    w = np.asarray(weights)
    if w.shape != a.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if w.ndim != 1 or w.shape[0] != a.shape[axis]:
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        w = np.moveaxis(np.broadcast_to(w, np.moveaxis(a, axis, -1).shape), -1, axis)
    kind = (a * w).dtype if a.dtype.kind == "f" else np.float64
    scale = np.sum(w.astype(kind), axis=axis)
    if np.any(scale == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return np.sum(a.astype(kind) * w.astype(kind), axis=axis) / scale


# Comparisons of whole arrays.


def array_equal(a1, a2):
    """np.array_equal."""
    a1, a2 = np.asarray(a1), np.asarray(a2)
    if a1.shape != a2.shape:
        return False
    return bool(np.all(a1 == a2))


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """np.allclose."""
    return bool(np.all(np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))


# Shapes.


def append(arr, values, axis=None):
    """np.append."""
    if axis is None:
        return np.concatenate((np.ravel(arr), np.ravel(values)))
    return np.concatenate((arr, values), axis)


def rot90(m, k=1):
    """np.rot90 in the plane of the first two axes."""
    iterations = k % 4
    if iterations == 1:
        return np.swapaxes(np.flip(m, 1), 0, 1)
    if iterations == 2:
        return np.flip(np.flip(m, 0), 1)
    if iterations == 3:
        return np.flip(np.swapaxes(m, 0, 1), 1)
    return np.asarray(m)


def kron(a, b):
    """np.kron of vectors or of matrices."""
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim < 2 and b.ndim < 2:
        return np.ravel(np.outer(a, b))
    (m, n), (p, q) = a.shape, b.shape
    return np.reshape(a[:, None, :, None] * b[None, :, None, :], (m * p, n * q))


def cross(a, b):
    """np.cross of vectors of three elements along the last axis."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError("incompatible dimensions for cross product (dimension must be 3)")
    x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return np.stack((x, y, z), -1)


def meshgrid(x, y, indexing="xy"):
    """np.meshgrid of two vectors."""
    x, y = np.ravel(x), np.ravel(y)
    n, m = x.shape[0], y.shape[0]
    if indexing == "ij":
        return np.broadcast_to(x[:, None], (n, m)), np.broadcast_to(y[None, :], (n, m))
    if indexing != "xy":
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    return np.broadcast_to(x[None, :], (m, n)), np.broadcast_to(y[:, None], (m, n))


def take_along_axis(arr, indices, axis=-1):
    """np.take_along_axis of vectors and matrices."""
    arr, indices = np.asarray(arr), np.asarray(indices)
    if arr.ndim == 1:
        return arr[indices]
    if axis == 0 or axis == -2:
        return arr[indices, np.arange(arr.shape[1])[None, :]]
    return arr[np.arange(arr.shape[0])[:, None], indices]


# Polynomials, integrals, signals.


def polyval(p, x):
    """np.polyval: Horner's scheme, the highest power first."""
    p = np.asarray(p)
    y = np.zeros_like(x) + 0 * p[0]
    for i in range(len(p)):
        y = y * x + p[i]
    return y


def vander(x, N=None, increasing=False):
    """np.vander."""
    x = np.asarray(x)
    columns = x.shape[0] if N is None else N
    powers = np.arange(columns) if increasing else columns - 1 - np.arange(columns)
    return x[:, None] ** powers[None, :]


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """np.trapezoid along the last or the only axis."""
    y = np.asarray(y)
    step = dx if x is None else np.diff(np.asarray(x))
    middle = (np.moveaxis(y, axis, -1)[..., 1:] + np.moveaxis(y, axis, -1)[..., :-1]) / 2.0
    return np.sum(step * middle, axis=-1)


def interp(x, xp, fp):
    """np.interp: linear between the points, constant outside."""
    x, xp, fp = np.asarray(x, np.float64), np.asarray(xp, np.float64), np.asarray(fp, np.float64)
    n = xp.shape[0]
    right = np.clip(np.searchsorted(xp, x, side="right"), 1, n - 1)
    left = right - 1
    slope = (fp[right] - fp[left]) / (xp[right] - xp[left])
    inside = slope * (x - xp[left]) + fp[left]
    return np.where(x < xp[0], fp[0], np.where(x >= xp[n - 1], fp[n - 1], inside))[()]


def convolve(a, v, mode="full"):
    """np.convolve of two vectors: a sum of shifted copies, one for each element of the shorter."""
    a, v = np.asarray(a), np.asarray(v)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    n, m = a.shape[0], v.shape[0]
    padded = np.pad(a, m - 1)
    out = np.zeros_like(padded[: n + m - 1] * v[0])
    for i in range(m):
        first = m - 1 - i
        out = out + v[i] * padded[first : first + (n + m - 1)]
    if mode == "full":
        return out
    if mode == "same":
        first = (m - 1) // 2
        return out[first : first + n]
    if mode == "valid":
        return out[m - 1 : n]
    raise ValueError("mode must be one of 'valid', 'same', or 'full'")


def correlate(a, v, mode="valid"):
    """np.correlate of two vectors of which the first is no shorter."""
    return np.convolve(a, np.flip(v), mode)


# Order.


def argsort(a, axis=-1, kind=None):
    """np.argsort with kind="stable": merge sort of the positions, from runs of one upwards. NaN comes last."""
    if kind != "stable":
        raise TypeError('np.argsort leaves the order of equal elements to chance; write np.argsort(x, kind="stable")')
    a = np.asarray(a)
    rows = np.moveaxis(a, axis, -1)
    flat = np.reshape(rows, (-1, rows.shape[-1]))
    count, n = flat.shape
    order = np.zeros((count, n), np.int64)
    spare = np.zeros(n, np.int64)
    for row in range(count):
        for k in range(n):
            order[row, k] = k
        width = 1
        while width < n:
            start = 0
            while start < n:
                middle, stop = min(start + width, n), min(start + 2 * width, n)
                i, j = start, middle
                for k in range(start, stop):
                    left = i < middle
                    if left and j < stop:
                        x, y = flat[row, order[row, i]], flat[row, order[row, j]]
                        left = not (y < x or (x != x and y == y))
                    if left:
                        spare[k] = order[row, i]
                        i += 1
                    else:
                        spare[k] = order[row, j]
                        j += 1
                start = stop
            for k in range(n):
                order[row, k] = spare[k]
            width *= 2
    return np.moveaxis(np.reshape(order, rows.shape), -1, axis)


def sort(a, axis=-1, kind=None):
    """np.sort: the elements in the order of a stable sort, which is what derivatives follow. NaN comes last."""
    a = np.asarray(a)
    rows = np.moveaxis(a, axis, -1)
    flat = np.reshape(rows, (-1, rows.shape[-1]))
    ordered = np.take_along_axis(flat, np.argsort(flat, kind="stable"), 1)
    return np.moveaxis(np.reshape(ordered, rows.shape), -1, axis)


def searchsorted(a, v, side="left"):
    """np.searchsorted: binary search, for each value on its own. NaN is above everything."""
    if side != "left" and side != "right":
        raise ValueError(f"side must be 'left' or 'right' (got {side!r})")
    a, v = np.asarray(a), np.asarray(v)
    values = np.ravel(v)
    out = np.zeros(values.shape, np.int64)
    for i in range(values.shape[0]):
        x = values[i]
        low, high = 0, a.shape[0]
        while low < high:
            middle = (low + high) // 2
            y = a[middle]
            below = y < x or (x != x and y == y)
            if side == "right":
                below = not (x < y or (y != y and x == x))
            if below:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return np.reshape(out, v.shape)[()]


def _quantile(ordered, q):
    """A quantile along the last axis of sorted elements, as NumPy interpolates; NaN where there is one."""
    n = ordered.shape[-1]
    at = q * (n - 1)
    below = min(max(int(at), 0), n - 1)
    above = min(below + 1, n - 1)
    t = at - below
    low, high = ordered[..., below], ordered[..., above]
    gap = high - low
    between = high - gap * (1 - t) if t >= 0.5 else low + gap * t
    return np.where(np.isnan(ordered[..., n - 1]), np.nan, between).astype(ordered.dtype)[()]


def quantile(a, q, axis=None):
    """np.quantile for one number q."""
    if q < 0 or q > 1:
        raise ValueError("Quantiles must be in the range [0, 1]")
    a = _float_array(a)
    rows = np.ravel(a) if axis is None else np.moveaxis(a, axis, -1)
    return _quantile(np.sort(rows), float(q))


def percentile(a, q, axis=None):
    """np.percentile for one number q."""
    if q < 0 or q > 100:
        raise ValueError("Percentiles must be in the range [0, 100]")
    return np.quantile(a, q / 100, axis=axis)


def median(a, axis=None):
    """np.median: the mean of the two in the middle."""
    a = _float_array(a)
    ordered = np.sort(np.ravel(a) if axis is None else np.moveaxis(a, axis, -1))
    n = ordered.shape[-1]
    middle = (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2
    return np.where(np.isnan(ordered[..., n - 1]), np.nan, middle).astype(ordered.dtype)[()]


SOURCES = {
    getattr(np, function.__name__): function
    for function in (
        *(fmax, fmin, sinc, logaddexp2, signbit, isneginf, isposinf),
        *(nansum, nanprod, nanmax, nanmin, nanmean, nanvar, nanstd, average, array_equal, allclose),
        *(append, rot90, kron, cross, meshgrid, take_along_axis),
        *(polyval, vander, interp, convolve, correlate),
        *(argsort, sort, searchsorted, quantile, percentile, median),
    )
}
if hasattr(np, "trapezoid"):
    SOURCES[np.trapezoid] = trapezoid
