"""NumPy functions of a list of arrays, or of lists of numbers, of which there are as many as only the run tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .refusals import unsupported


def _stacked(parts, why) -> Any:
    """The parts one above the other; why there must be some.

    Raises:
        ValueError: there are none, or they differ in size.
    """
    n = len(parts)
    if n == 0:
        raise ValueError(why)
    first = parts[0] if isinstance(parts[0], np.ndarray) else np.asarray(parts[0])
    out = np.zeros((n, *first.shape), first.dtype)
    for i in range(n):
        if len(parts[i]) != len(first):
            raise ValueError(
                f"the parts have {len(first)} and {len(parts[i])} elements: parts of different sizes make no array"
            )
        out[i] = parts[i] if isinstance(parts[i], np.ndarray) else np.asarray(parts[i])
    return out


NONE = "need at least one array to stack"


def array(object, dtype=None):
    """np.array of a list of arrays or lists of numbers."""
    out = _stacked(object, "an empty list makes an array of no numbers, which has fewer axes; test its length before")
    return out if dtype is None else out.astype(dtype)


def stack(arrays, axis=0):
    """np.stack."""
    return np.moveaxis(_stacked(arrays, NONE), 0, axis)


def concatenate(arrays, axis=0):
    """np.concatenate of arrays of one shape."""
    out = _stacked(arrays, "need at least one array to concatenate")
    if axis is None:
        return np.ravel(out)
    np.size(out[0], axis)  # refuses what is no axis
    at = axis % (out.ndim - 1)
    out = np.moveaxis(out, 0, at)
    return np.reshape(out, (*out.shape[:at], out.shape[at] * out.shape[at + 1], *out.shape[at + 2 :]))


def vstack(tup):
    """np.vstack."""
    out = _stacked(tup, NONE)
    return out if out.ndim == 2 else np.reshape(out, (out.shape[0] * out.shape[1], *out.shape[2:]))


def hstack(tup):
    """np.hstack."""
    out = _stacked(tup, NONE)
    if out.ndim == 2:
        return np.ravel(out)
    out = np.moveaxis(out, 0, 1)
    return np.reshape(out, (out.shape[0], out.shape[1] * out.shape[2], *out.shape[3:]))


def column_stack(tup):
    """np.column_stack of vectors."""
    out = _stacked(tup, NONE)
    if out.ndim != 2:
        unsupported("np.column_stack takes vectors where their number is known at run time only; write np.hstack")
    return np.transpose(out)


def _joined(parts, axis, why) -> Any:
    """Arrays of any sizes one behind the other along an axis; why there must be some.

    Raises:
        ValueError: there are none, or they differ in size along another axis.
    """
    n = len(parts)
    if n == 0:
        raise ValueError(why)
    np.size(parts[0], axis)  # refuses what is no axis
    first = np.moveaxis(parts[0], axis, 0)
    total = 0
    for i in range(n):
        total += np.size(parts[i], axis)
    out = np.zeros((total, *first.shape[1:]), first.dtype)
    at = 0
    for i in range(n):
        part = np.moveaxis(parts[i], axis, 0)
        for k in range(1, first.ndim):
            if part.shape[k] != first.shape[k]:
                raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
        out[at : at + len(part)] = part
        at += len(part)
    return np.moveaxis(out, 0, axis)


def concatenate_any(arrays, axis=0):
    """np.concatenate of arrays of any sizes."""
    why = "need at least one array to concatenate"
    if axis is None:
        return _joined([np.ravel(a) for a in arrays], 0, why)
    return _joined(arrays, axis, why)


def vstack_any(tup):
    """np.vstack of arrays of any sizes.

    Raises:
        ValueError: there are none.
    """
    if len(tup) == 0:
        raise ValueError(NONE)
    return _stacked(tup, NONE) if tup[0].ndim == 1 else _joined(tup, 0, NONE)


def hstack_any(tup):
    """np.hstack of arrays of any sizes.

    Raises:
        ValueError: there are none.
    """
    if len(tup) == 0:
        raise ValueError(NONE)
    return _joined(tup, 0, NONE) if tup[0].ndim == 1 else _joined(tup, 1, NONE)


LISTED: dict[Callable, Callable] = {
    np.array: array,
    np.asarray: array,
    np.stack: stack,
    np.concatenate: concatenate,
    np.vstack: vstack,
    np.hstack: hstack,
    np.column_stack: column_stack,
}
"""A function of NumPy -> what it does with a list of arrays or lists of run-time length."""

OF_ANY_SIZES: dict[Callable, Callable] = LISTED | {
    np.concatenate: concatenate_any,
    np.vstack: vstack_any,
    np.hstack: hstack_any,
}
"""The same where the arrays have sizes of their own."""

OF_ARRAYS = frozenset(
    (np.sum, np.mean, np.prod, np.max, np.min, np.amax, np.amin, np.std, np.var, np.median, np.any, np.all, np.cumsum)
    + (
        np.argmax,
        np.argmin,
        np.average,
        np.quantile,
        np.percentile,
        np.ravel,
        np.transpose,
        np.reshape,
        np.sort,
        np.argsort,
    )
)
"""Functions that make an array of such a list first."""
