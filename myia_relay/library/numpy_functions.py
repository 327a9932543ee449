"""NumPy functions that are short programs over other NumPy functions. Options that are not parameters here are refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .refusals import misfit, unsupported

# Elementwise.


def fmax(x1, x2):
    """np.fmax: the greater; a NaN loses."""
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.maximum(x1, x2)))[()]


def fmin(x1, x2):
    """np.fmin: the smaller; a NaN loses."""
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.minimum(x1, x2)))[()]


SERIES_OF_SINC = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(10))


def iscomplexobj(x):
    """np.iscomplexobj of anything but a complex number or array."""
    if isinstance(x, (list, tuple)):
        return np.iscomplexobj(np.asarray(x))
    return False


def isrealobj(x):
    """np.isrealobj."""
    return not np.iscomplexobj(x)


def isreal(x):
    """np.isreal of real numbers."""
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return True
    return np.ones(np.shape(x), bool)[()]


def iscomplex(x):
    """np.iscomplex of real numbers."""
    return np.zeros(np.shape(x), bool)[()]


def fmod(x1, x2):
    """np.fmod: the remainder with the sign of `x1`."""
    rest = np.remainder(abs(x1), abs(x2))
    return np.copysign(rest, x1) if rest.dtype.kind == "f" else np.where(np.less(x1, 0), -rest, rest)[()]


def modf(x):
    """np.modf: the fractions and the integers, both with the signs of `x`."""
    x = np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    whole = np.trunc(x)
    part = np.where(np.isinf(x), 0.0, x - np.where(np.isinf(x), 0.0, whole)).astype(x.dtype)
    return np.copysign(part, x)[()], whole[()]


def divmod_(x1, x2):
    """np.divmod."""
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


def sinc(x):
    """np.sinc: sin(pi x) / (pi x), 1 at 0. Near 0 its series, of which the derivatives of any order are those of the function."""
    y = np.asarray(x) * math.pi
    near = np.abs(y) < 1.0
    square = np.where(near, y * y, 0.0).astype(y.dtype)
    series = np.zeros_like(y)
    for coefficient in SERIES_OF_SINC[::-1]:
        series = series * square + coefficient
    return np.where(near, series, np.sin(y) / np.where(near, 1.0, y)).astype(y.dtype)[()]


def signbit(x):
    """np.signbit; the sign of NaN is not seen."""
    return np.copysign(1.0, x) < 0


def gcd(x1, x2):
    """np.gcd: Euclid's algorithm, on all entries at once.

    Raises:
        TypeError: the operands are no integers.
    """
    a, b = np.asarray(x1), np.asarray(x2)
    kind = np.result_type(x1, x2)
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        unsupported("np.gcd and np.lcm take integers")
    zeros = np.zeros_like(a + b, dtype=kind)
    a, b = np.abs(a.astype(kind) + zeros), np.abs(b.astype(kind) + zeros)
    while np.any(b != 0):
        rest = np.where(b == 0, 0, a % np.where(b == 0, 1, b)).astype(kind)
        a, b = np.where(b == 0, a, b).astype(kind), rest
    return a[()]


def lcm(x1, x2):
    """np.lcm."""
    divisor = np.asarray(gcd(x1, x2))
    part = np.asarray(x1).astype(divisor.dtype) // np.where(divisor == 0, 1, divisor).astype(divisor.dtype)
    return np.abs(part * np.asarray(x2).astype(divisor.dtype))[()]


def unwrap(p, discont=None, axis=-1, *, period=2 * math.pi):
    """np.unwrap: angles without jumps of more than half a period.

    Raises:
        TypeError: the angles are no floats.
    """
    x = np.moveaxis(np.asarray(p), axis, -1)
    if x.dtype.kind != "f":
        unsupported("np.unwrap takes floats in compiled code: write x.astype(float)")
    half = period / 2
    step = np.diff(x)
    turned = np.mod(step + half, period) - half
    turned = np.where((turned == -half) & (step > 0), half, turned)
    correction = np.where(np.abs(step) < (half if discont is None else discont), 0.0, turned - step)
    out = np.concatenate([x[..., :1], x[..., 1:] + np.cumsum(correction, axis=-1)], axis=-1)
    return np.moveaxis(out.astype(x.dtype), -1, axis)


def polyfit(x, y, deg):
    """np.polyfit: the coefficients of the polynomial that fits best, the highest power first."""
    powers = np.vander(np.asarray(x) + 0.0, deg + 1)
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    found = np.linalg.lstsq(powers / scale, np.asarray(y) + 0.0, rcond=None)[0]
    return found / scale if found.ndim == 1 else found / scale[:, None]


def apply_along_axis(func1d, axis, arr, *args):
    """np.apply_along_axis: a function of every vector along an axis."""
    x = np.moveaxis(np.asarray(arr), axis, -1)
    rows = np.reshape(x, (-1, x.shape[-1]))
    found = np.stack([np.asarray(func1d(rows[k], *args)) for k in range(len(rows))])
    out = np.reshape(found, (*x.shape[:-1], *found.shape[1:]))
    if found.ndim == 1:
        return out
    if found.ndim > 2:
        unsupported("np.apply_along_axis takes functions whose results are numbers or vectors in compiled code")
    return np.moveaxis(out, -1, axis)


def isneginf(x):
    """np.isneginf."""
    return np.isinf(x) & (np.asarray(x) < 0)[()]


def isposinf(x):
    """np.isposinf."""
    return np.isinf(x) & (np.asarray(x) > 0)[()]


def angle(z, deg=False):
    """np.angle of real numbers: 0, or pi where the sign bit is set."""
    out = np.arctan2(0, z)
    return out * (180 / math.pi) if deg else out


# Comparisons of whole arrays.


def array_equal(a1, a2, equal_nan=False):
    """np.array_equal."""
    a1, a2 = np.asarray(a1), np.asarray(a2)
    if a1.shape != a2.shape:
        return False
    if equal_nan:
        return bool(np.all((a1 == a2) | (np.isnan(a1) & np.isnan(a2))))
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
    m = np.asarray(m)
    if m.ndim < 2:
        misfit("np.rot90 takes an array with at least two axes")
    quarters = k % 4
    if quarters == 1:
        return np.swapaxes(np.flip(m, 1), 0, 1)
    if quarters == 2:
        return np.flip(np.flip(m, 0), 1)
    if quarters == 3:
        return np.flip(np.swapaxes(m, 0, 1), 1)
    return m


PLANE_VECTORS = np.lib.NumpyVersion(np.__version__) < "2.5.0"
"""Whether NumPy has cross products of vectors of two elements."""


def cross(a, b):
    """np.cross of vectors of three elements along the last axis, and of two where NumPy has them.

    Raises:
        ValueError: the last axis of one has another number of elements, or is missing.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim < 1 or b.ndim < 1:
        misfit("np.cross: at least one array has zero dimension")
    if not PLANE_VECTORS and (a.shape[-1] != 3 or b.shape[-1] != 3):
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{a.shape[-1]} and {b.shape[-1]} dimensional instead."
        )
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    kind = np.result_type(a, b)
    a, b = a.astype(kind), b.astype(kind)
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return np.asarray(z)
    if a.shape[-1] == 2:
        x, y = a[..., 1] * b[..., 2], -(a[..., 0] * b[..., 2])
    elif b.shape[-1] == 2:
        x, y = -(a[..., 2] * b[..., 1]), a[..., 2] * b[..., 0]
    else:
        x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
        y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    return np.stack((x, y, z), -1)


# Polynomials, integrals, signals.


def polyval(p, x):
    """np.polyval: Horner's scheme, the highest power first."""
    p = np.asarray(p)
    if p.ndim != 1:
        unsupported("np.polyval takes a vector of coefficients in compiled code")
    if p.shape[0] == 0:
        return np.zeros_like(x)
    y = np.zeros_like(x) * x + p[0]
    for i in range(1, len(p)):
        y = y * x + p[i]
    return y


def vander(x, N=None, increasing=False):
    """np.vander.

    Raises:
        ValueError: x is no vector, or N is negative.
        TypeError: N is no int.
    """
    x = np.asarray(x)
    if x.ndim != 1:
        misfit("np.vander: x must be a one-dimensional array or sequence.")
    if isinstance(N, float | bool):
        unsupported("np.vander: N is an int")
    columns = x.shape[0] if N is None else N
    if columns < 0:
        raise ValueError("negative dimensions are not allowed")
    powers = np.arange(columns) if increasing else columns - 1 - np.arange(columns)
    return x[:, None] ** powers[None, :]


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """np.trapezoid along one axis."""
    y = np.moveaxis(np.asarray(y), axis, -1)
    step = dx
    if x is not None:
        x = np.asarray(x)
        step = np.diff(x) if x.ndim == 1 else np.moveaxis(np.diff(x, axis=axis), axis, -1)
    return np.sum(step * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


def _interval(xp, key, guess):
    """Where a number is among points: -1 before them, `len(xp)` behind, else the last point at or before it.

    NumPy's search, which begins at the interval found last: among points that do not ascend the answer depends on that.
    """
    n = xp.shape[0]
    if key > xp[n - 1]:
        return n
    if key < xp[0]:
        return -1
    if n <= 4:
        k = 1
        while k < n and key >= xp[k]:
            k += 1
        return k - 1
    guess = max(min(guess, n - 3), 1)
    low, high = 0, n
    if key < xp[guess]:
        if not key < xp[guess - 1]:
            return guess - 1
        high = guess - 1
        if guess > 8 and key >= xp[guess - 8]:
            low = guess - 8
    else:
        if key < xp[guess + 1]:
            return guess
        if key < xp[guess + 2]:
            return guess + 1
        low = guess + 2
        if guess < n - 9 and key < xp[guess + 8]:
            high = guess + 8
    while low < high:
        middle = low + (high - low) // 2
        if key >= xp[middle]:
            low = middle + 1
        else:
            high = middle
    return low - 1


def _intervals(xp, x):
    """`_interval` of each element, NaN left out."""
    values = np.ravel(x)
    out = np.zeros(values.shape, np.int64)
    found = 0
    for i in range(values.shape[0]):
        if values[i] == values[i]:
            found = _interval(xp, values[i], found)
            out[i] = found
    return np.reshape(out, x.shape)


def interp(x, xp, fp, left=None, right=None):
    """np.interp: linear between the points, constant outside.

    Raises:
        ValueError: the points are no vectors, differ in number, or there are none.
    """
    x, xp, fp = np.asarray(x, np.float64), np.asarray(xp, np.float64), np.asarray(fp, np.float64)
    if xp.ndim != 1 or fp.ndim != 1:
        misfit("np.interp: the points are vectors")
    n = xp.shape[0]
    if n == 0:
        raise ValueError("array of sample points is empty")
    if n != fp.shape[0]:
        raise ValueError("fp and xp are not of the same length.")
    at = _intervals(xp, x)
    first = np.clip(at, 0, max(n - 2, 0))
    second = np.minimum(first + 1, n - 1)
    x0, x1, y0, y1 = xp[first], xp[second], fp[first], fp[second]
    slope = (y1 - y0) / (x1 - x0)
    inside = slope * (x - x0) + y0
    other = slope * (x - x1) + y1  # where one end gives NaN
    other = np.where(np.isnan(other) & (y0 == y1), y0, other)
    # At a point its value is taken as it is. Where the line gives the same, that has the derivative.
    zero = (y0 == 0) & np.signbit(y0)
    taken = (x == x0) & (zero | (np.isfinite(inside) == False))  # noqa: E712  an array
    inside = np.where(taken, y0, np.where(np.isnan(inside), other, inside))
    inside = np.where(at == n - 1, fp[n - 1], inside)
    below, above = fp[0] if left is None else left, fp[n - 1] if right is None else right
    out = np.where(at < 0, below, np.where(at == n, above, inside))
    return np.where(np.isnan(x), np.where(n == 1, fp[0], x), out)[()]


def _sliding(a, v, mode):
    """The sums of products of a vector and a reversed one that is no longer, at each place where they overlap."""
    if mode != "full" and mode != "same" and mode != "valid":
        misfit("mode must be one of 'valid', 'same', or 'full'")
    n, m = a.shape[0], v.shape[0]
    out = np.zeros(n + m - 1, np.result_type(a, v))
    for i in range(m):
        out[i : i + n] = out[i : i + n] + v[i] * a
    if mode == "full":
        return out
    if mode == "same":
        first = (m - 1) // 2
        return out[first : first + n]
    return out[m - 1 : n]


def convolve(a, v, mode="full"):
    """np.convolve of two vectors: a sum of shifted copies, one for each element of the shorter.

    Raises:
        ValueError: one is no vector, or is empty.
    """
    a, v = np.atleast_1d(a), np.atleast_1d(v)
    if a.ndim > 1 or v.ndim > 1:
        misfit("np.convolve: object too deep for desired array; it takes vectors")
    if a.shape[0] == 0 or v.shape[0] == 0:
        raise ValueError("a cannot be empty" if a.shape[0] == 0 else "v cannot be empty")
    return _sliding(a, v, mode) if a.shape[0] >= v.shape[0] else _sliding(v, a, mode)


def correlate(a, v, mode="valid"):
    """np.correlate of two vectors.

    Raises:
        ValueError: one is no vector, or is empty.
    """
    a, v = np.asarray(a), np.asarray(v)
    if a.ndim != 1 or v.ndim != 1:
        misfit("np.correlate takes vectors")
    if a.shape[0] == 0 or v.shape[0] == 0:
        raise ValueError(f"{'first' if a.shape[0] == 0 else 'second'} array argument cannot be empty")
    if a.shape[0] >= v.shape[0]:
        return _sliding(a, np.flip(v), mode)
    return np.flip(_sliding(v, np.flip(a), mode))


SOURCES: dict[Callable, Callable] = {
    getattr(np, function.__name__): function
    for function in (
        *(
            fmax,
            fmin,
            gcd,
            lcm,
            unwrap,
            polyfit,
            apply_along_axis,
            sinc,
            signbit,
            angle,
            isneginf,
            isposinf,
            array_equal,
            allclose,
        ),
        *(iscomplexobj, isrealobj, isreal, iscomplex, fmod, modf),
        *(append, rot90, cross, polyval, vander, interp, convolve, correlate),
    )
}
SOURCES[np.divmod] = divmod_
if hasattr(np, "trapezoid"):
    SOURCES[np.trapezoid] = trapezoid
