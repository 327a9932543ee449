"""The methods of NumPy's universal functions: `np.add.outer(x, y)`, `np.maximum.accumulate(x)`, `np.multiply.reduce(x)`.

Each is a function of the universal function and the method's arguments. Where NumPy has a function of its own for it
(`np.add.reduce` is `np.sum`), that is called.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .refusals import unsupported


def outer(function, A, B):
    """`function.outer(A, B)`: of each entry of A with each one of B."""
    a, b = np.asarray(A), np.asarray(B)
    return function(np.reshape(a, (*np.shape(a), *[1 for _ in range(np.ndim(b))])), b)


def reduce(function, array, axis=0, keepdims=False):
    """`function.reduce(array)`: all entries along an axis combined, from the first to the last."""
    x = np.asarray(array)
    if np.ndim(x) == 0:
        return x[()]
    if isinstance(axis, tuple):
        unsupported("a universal function is reduced along one axis, or all of them (axis=None), in compiled code")
    if axis is None:
        out = _combined(function, np.ravel(x))
        return np.reshape(out, [1 for _ in range(np.ndim(x))]) if keepdims else out
    out = _combined(function, np.moveaxis(x, axis, 0))
    return np.expand_dims(out, axis) if keepdims else out


def _combined(function, rows):
    if len(rows) == 0:
        unsupported("this universal function has no value for no entries")
    out = rows[0]
    for k in range(1, len(rows)):
        out = function(out, rows[k])
    return out


def accumulate(function, array, axis=0):
    """`function.accumulate(array)`: for each entry, what those up to it along the axis give."""
    x = np.asarray(array)
    if np.ndim(x) == 0:
        unsupported("cannot accumulate on a scalar")
    out = np.moveaxis(x, axis, 0).copy()
    for k in range(1, len(out)):
        out[k] = function(out[k - 1], out[k])
    return np.moveaxis(out, 0, axis)


def reduceat(function, array, indices):
    """`function.reduceat(array, indices)`: entries from each index up to the next one combined, along the first axis."""
    x, at = np.asarray(array), np.asarray(indices)
    out = x[at].copy()
    for k in range(len(at)):
        end = at[k + 1] if k + 1 < len(at) else len(x)
        for j in range(at[k] + 1, end):
            out[k] = function(out[k], x[j])
    return out


def sum_(array, axis=0, dtype=None, keepdims=False):
    """np.add.reduce."""
    return np.sum(array, axis=axis, dtype=dtype, keepdims=keepdims)


def prod(array, axis=0, dtype=None, keepdims=False):
    """np.multiply.reduce."""
    return np.prod(array, axis=axis, dtype=dtype, keepdims=keepdims)


def max_(array, axis=0, keepdims=False):
    """np.maximum.reduce."""
    return np.max(array, axis=axis, keepdims=keepdims)


def min_(array, axis=0, keepdims=False):
    """np.minimum.reduce."""
    return np.min(array, axis=axis, keepdims=keepdims)


def all_(array, axis=0, keepdims=False):
    """np.logical_and.reduce."""
    return np.all(array, axis=axis, keepdims=keepdims)


def any_(array, axis=0, keepdims=False):
    """np.logical_or.reduce."""
    return np.any(array, axis=axis, keepdims=keepdims)


def cumsum(array, axis=0, dtype=None):
    """np.add.accumulate."""
    return np.cumsum(array, axis=axis, dtype=dtype)


def cumprod(array, axis=0, dtype=None):
    """np.multiply.accumulate."""
    return np.cumprod(array, axis=axis, dtype=dtype)


OWN: dict[tuple[np.ufunc, str], Callable] = {
    (np.add, "reduce"): sum_, (np.multiply, "reduce"): prod, (np.maximum, "reduce"): max_, (np.minimum, "reduce"): min_,
    (np.logical_and, "reduce"): all_, (np.logical_or, "reduce"): any_, (np.add, "accumulate"): cumsum,
    (np.multiply, "accumulate"): cumprod,
}  # fmt: skip
"""A method of a universal function -> NumPy's own function for it."""

GENERAL: dict[str, Callable] = {"outer": outer, "reduce": reduce, "accumulate": accumulate, "reduceat": reduceat}
"""A method -> what it is for every other universal function, which is given first."""
