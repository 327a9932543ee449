"""NumPy's functions for statistics and ordering that are short programs: without NaN, averages, sorting, quantiles."""

from __future__ import annotations

import numpy as np

from .kernels import argsort_rows, sort_rows
from .refusals import misfit, unsupported


def _along(a, axis):
    """`a` with one axis moved to its end."""
    np.size(a, axis)  # refuses what is no axis
    return np.moveaxis(a, axis, -1)


# NaN left out. Integers and booleans have none.


def nansum(a, axis=None, *, keepdims=False):
    """np.nansum."""
    a = np.asarray(a)
    if a.dtype.kind != "f":
        return np.sum(a, axis=axis, keepdims=keepdims)
    return np.sum(np.where(np.isnan(a), np.zeros_like(a), a), axis=axis, keepdims=keepdims)


def nanprod(a, axis=None, *, keepdims=False):
    """np.nanprod."""
    a = np.asarray(a)
    if a.dtype.kind != "f":
        return np.prod(a, axis=axis, keepdims=keepdims)
    return np.prod(np.where(np.isnan(a), np.ones_like(a), a), axis=axis, keepdims=keepdims)


def nanmax(a, axis=None, *, keepdims=False):
    """np.nanmax; NaN where there is nothing else."""
    a = np.asarray(a)
    if a.dtype.kind != "f":
        return np.max(a, axis=axis, keepdims=keepdims)
    top = np.max(np.where(np.isnan(a), -np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), np.nan, top).astype(a.dtype)[()]


def nanmin(a, axis=None, *, keepdims=False):
    """np.nanmin; NaN where there is nothing else."""
    a = np.asarray(a)
    if a.dtype.kind != "f":
        return np.min(a, axis=axis, keepdims=keepdims)
    low = np.min(np.where(np.isnan(a), np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), np.nan, low).astype(a.dtype)[()]


def nanmean(a, axis=None, *, keepdims=False):
    """np.nanmean."""
    a = np.asarray(a)
    if a.dtype.kind != "f":
        return np.mean(a, axis=axis, keepdims=keepdims)
    count = np.sum(np.isnan(a) == False, axis=axis, keepdims=keepdims)  # noqa: E712  an array
    return (np.nansum(a, axis=axis, keepdims=keepdims) / count).astype(a.dtype)[()]


def nanvar(a, axis=None, *, ddof=0, keepdims=False):
    """np.nanvar; NaN where no degree of freedom is left."""
    a = np.asarray(a)
    if a.dtype.kind != "f":
        return np.var(a, axis=axis, ddof=ddof, keepdims=keepdims)
    there = np.isnan(a) == False  # noqa: E712  an array
    away = np.where(there, a - np.nanmean(a, axis=axis, keepdims=True), np.zeros_like(a))
    freedom = np.sum(there, axis=axis, keepdims=keepdims) - ddof
    out = (np.sum(away * away, axis=axis, keepdims=keepdims) / freedom).astype(a.dtype)
    return np.where(freedom <= 0, np.nan, out).astype(a.dtype)[()]


def nanstd(a, axis=None, *, ddof=0, keepdims=False):
    """np.nanstd."""
    return np.sqrt(np.nanvar(a, axis=axis, ddof=ddof, keepdims=keepdims))


# Averages.


def average(a, axis=None, weights=None, *, keepdims=False):
    """np.average: weights are of the array's shape, or one for each position of the axis.

    Raises:
        ValueError: the weights do not fit the axis.
        TypeError: the weights are of another shape, and no axis is given.
        ZeroDivisionError: there are no elements, or the weights sum to zero.
    """
    a = np.asarray(a)
    if weights is None:
        out = np.mean(a, axis=axis, keepdims=keepdims)
        if np.asarray(out).size == 0:
            raise ZeroDivisionError("division by zero")
        return out
    w = np.asarray(weights)
    if axis is None and w.ndim != a.ndim:
        unsupported("Axis must be specified when shapes of a and weights differ.")
    if axis is None and w.shape != a.shape:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if axis is not None and w.shape != a.shape:
        if w.ndim != 1 or w.shape[0] != np.size(a, axis):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        w = np.moveaxis(np.broadcast_to(w, _along(a, axis).shape), -1, axis)
    kind = np.result_type(a, w) if a.dtype.kind == "f" else np.result_type(a, w, np.float64(0))
    scale = np.sum(w, axis=axis, dtype=kind, keepdims=keepdims)
    if np.any(scale == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return np.sum(a.astype(kind) * w.astype(kind), axis=axis, keepdims=keepdims) / scale


# Order.


def _rows(rows):
    """A matrix of the rows along the last axis, which may have no elements."""
    count = 1
    for size in rows.shape[:-1]:
        count = count * size
    return np.reshape(rows, (count, rows.shape[-1]))


def argsort(a, axis=-1, kind=None):
    """np.argsort, which is always stable. NaN comes last.

    NumPy promises no order of equal elements unless kind="stable" is given, so where there are such its default may give another.

    Raises:
        ValueError: there is no such kind.
    """
    if kind is not None and kind not in ("stable", "mergesort", "quicksort", "heapsort"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    a = np.atleast_1d(a)
    if axis is None:
        a, axis = np.ravel(a), -1
    rows = _along(a, axis)
    return np.moveaxis(np.reshape(argsort_rows(_rows(rows)), rows.shape), -1, axis)


def sort(a, axis=-1, kind=None):
    """np.sort: the elements in the order of a stable sort, which is what derivatives follow. NaN comes last."""
    a = np.asarray(a)
    if axis is None:
        a, axis = np.ravel(a), -1
    rows = _along(a, axis)
    return np.moveaxis(np.reshape(sort_rows(_rows(rows)), rows.shape), -1, axis)


def _check_places(kth, shape, axis):
    """Refuse places that an array has not; as NumPy, none where the array has no elements.

    Raises:
        ValueError: there is no such place.
    """
    count = 1
    for size in shape:
        count = count * size
    if count == 0:
        return
    n = 1
    for size in shape if axis is None else (shape[axis],):
        n = n * size
    for place in np.ravel(np.asarray(kth)):
        k = place + n if place < 0 else place
        if k < 0 or k >= n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")


def partition(a, kth, axis=-1):
    """np.partition: sorted, so that every place has the element that belongs there. NumPy orders the others in some other way."""
    a = np.asarray(a)
    _check_places(kth, a.shape, axis)
    return np.sort(a, axis)


def argpartition(a, kth, axis=-1):
    """np.argpartition: as np.argsort, so that every place has the position of the element that belongs there."""
    a = np.asarray(a)
    _check_places(kth, a.shape, axis)
    return np.argsort(a, axis)


def searchsorted(a, v, side="left"):
    """np.searchsorted: binary search, for each value on its own. NaN is above everything.

    Raises:
        ValueError: `side` is neither "left" nor "right".
    """
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


def _lerp(low, high, t):
    """Between two elements, as NumPy interpolates."""
    gap = high - low
    return high - gap * (1 - t) if t >= 0.5 else low + gap * t


def _quantile(a, q, axis, weak):
    """The quantile of a number q, which is a Python number where `weak`.

    Raises:
        ValueError: q is not in [0, 1].
        TypeError: q is no number, or of a wider dtype than a.
    """
    if not (0 <= q <= 1):
        raise ValueError("Quantiles must be in the range [0, 1]")
    a, kind = np.asarray(a), np.asarray(q).dtype.kind
    ordered = np.sort(np.ravel(a) if axis is None else _along(a, axis))
    n = ordered.shape[-1]
    if kind != "f":  # NumPy takes an element and does not calculate
        out = ordered[..., (n - 1) * int(q)]
    else:
        if not weak and a.dtype.kind == "f" and np.result_type(a, q) != a.dtype:
            unsupported("np.quantile: the dtype of q is wider than that of the array; write float(q)")
        at = (n - 1) * q
        below = min(int(at), n - 1)
        low, high = ordered[..., below], ordered[..., min(below + 1, n - 1)]
        # At the end NumPy counts from it: the step between equal elements is 0 or NaN all the same.
        t = at + 1 if at >= n - 1 else at - below
        out = _lerp(low, high, t)
    if a.dtype.kind != "f":
        return out[()] if isinstance(out, np.ndarray) else out
    return np.where(np.isnan(ordered[..., n - 1]), np.nan, out).astype(np.asarray(out).dtype)[()]


def _quantiles(a, q, axis):
    """The quantiles of several numbers, along a new first axis."""
    if np.ndim(q) != 1:
        unsupported("np.quantile and np.percentile take a number q, or a list of them, in compiled code")
    return np.stack([_quantile(a, q[k], axis, False) for k in range(len(q))])


def quantile(a, q, axis=None):
    """np.quantile."""
    if np.ndim(q) != 0:
        return _quantiles(a, np.asarray(q), axis)
    return _quantile(a, q, axis, isinstance(q, float))


def percentile(a, q, axis=None):
    """np.percentile.

    Raises:
        ValueError: q is not in [0, 100].
        TypeError: q is of a wider dtype than a.
    """
    if np.ndim(q) != 0:
        parts = np.true_divide(np.asarray(q), 100)
        if np.any(parts < 0) or np.any(parts > 1):
            raise ValueError("Percentiles must be in the range [0, 100]")
        return _quantiles(a, parts, axis)
    if not (0 <= q <= 100):
        raise ValueError("Percentiles must be in the range [0, 100]")
    if isinstance(q, int | float):
        return _quantile(a, q / 100, axis, True)
    return _quantile(a, np.true_divide(q, 100), axis, False)


def median(a, axis=None):
    """np.median: the mean of the one or two in the middle."""
    a = np.asarray(a)
    ordered = np.sort(np.ravel(a) if axis is None else _along(a, axis))
    n = ordered.shape[-1]
    if n == 0:
        return np.mean(ordered, axis=-1)
    k = (n - 1) // 2
    out = np.mean(ordered[..., k : k + 1], axis=-1) if n % 2 == 1 else np.mean(ordered[..., k : k + 2], axis=-1)
    if a.dtype.kind != "f":
        return out
    return np.where(np.isnan(ordered[..., n - 1]), np.nan, out).astype(a.dtype)[()]


INVERSE_HAS_SHAPE = np.unique(np.zeros((1, 1)), return_inverse=True)[1].ndim == 2  # that of the array, from NumPy 2 on


def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True
):
    """np.unique: every value once, in order."""
    if axis is not None:
        unsupported(
            "np.unique along an axis compares rows, which compiled code does not; write np.unique(x) for all values"
        )
    ar = np.asarray(ar)
    flat = np.ravel(ar)
    if return_index or return_inverse:
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
    else:
        ordered = np.sort(flat)
    differs = ordered[1:] != ordered[:-1]
    if equal_nan and ar.dtype.kind == "f":
        differs = differs & ((ordered[1:] == ordered[1:]) | (ordered[:-1] == ordered[:-1]))
    new = np.concatenate((np.ones(1, np.bool_), differs))[: flat.shape[0]]
    at = np.flatnonzero(new)
    out = (ordered[at],)
    if return_index:
        out = (*out, order[at])
    if return_inverse:
        inverse = np.zeros(flat.shape[0], np.int64)
        inverse[order] = np.cumsum(new) - 1
        out = (*out, np.reshape(inverse, ar.shape) if INVERSE_HAS_SHAPE else inverse)
    if return_counts:
        out = (*out, np.concatenate((at, np.full(1, flat.shape[0])))[1:] - at)
    return out if len(out) > 1 else out[0]


def bincount(x, weights=None, minlength=0):
    """np.bincount: how often each number occurs, or the sums of its weights; how many numbers there are, the run tells.

    The sums are float64 always; NumPy's are int64 where x is empty.

    Raises:
        ValueError: a number is negative, or `minlength`, or there is not a weight for each number.
        TypeError: they are no integers.
    """
    x = np.asarray(x)
    if x.ndim != 1:
        misfit(
            "np.bincount takes a vector: object too deep for desired array" if x.ndim else "np.bincount takes a vector"
        )
    if x.dtype.kind not in "iub":
        unsupported("np.bincount counts integers; convert them with .astype(np.int64)")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    x = x.astype(np.int64)
    n = minlength
    if x.shape[0] > 0:
        if np.min(x) < 0:
            raise ValueError("'list' argument must have no negative elements")
        n = max(int(np.max(x)) + 1, minlength)
    if weights is None:
        counts = np.zeros(n, np.int64)
        np.add.at(counts, x, 1)
        return counts
    w = np.asarray(weights)
    if w.ndim != 1 or w.shape[0] != x.shape[0]:
        raise ValueError("The weights and list don't have the same length.")
    sums = np.zeros(n)
    np.add.at(sums, x, w)
    return sums


def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """np.isin: which elements occur among others, by binary search."""
    element, others = np.asarray(element), np.ravel(test_elements)
    if others.shape[0] == 0:
        return np.full(element.shape, invert)
    dtype = np.result_type(element, others)
    ordered, element = np.sort(others.astype(dtype)), element.astype(dtype)
    at = np.minimum(np.searchsorted(ordered, element), ordered.shape[0] - 1)
    return np.asarray(ordered[at] != element if invert else ordered[at] == element)


SOURCES = {
    getattr(np, function.__name__): function
    for function in (
        *(nansum, nanprod, nanmax, nanmin, nanmean, nanvar, nanstd, average),
        *(argsort, sort, partition, argpartition, searchsorted, bincount, isin, quantile, percentile, median, unique),
    )
}
