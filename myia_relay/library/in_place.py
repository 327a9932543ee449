"""NumPy functions that change their first argument, as functions that return it changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .refusals import misfit, unsupported


def _across(arr, axis):
    """The positions along an axis, in a shape that goes along it."""
    return np.reshape(np.arange(arr.shape[axis]), [arr.shape[axis] if k == axis else 1 for k in range(arr.ndim)])


def put_along_axis(arr, indices, values, axis):
    """np.put_along_axis.

    Raises:
        ValueError: the arrays differ in the number of axes.
        TypeError: the positions are no integers.
    """
    indices = np.asarray(indices)
    if indices.dtype.kind not in "iu":
        unsupported("np.put_along_axis: positions are ints")
    out = arr.copy()
    if axis is None:
        if indices.ndim != 1:
            misfit("np.put_along_axis: when axis=None, `indices` must have a single dimension.")
        flat = np.ravel(out)
        flat[indices] = values
        return np.reshape(flat, arr.shape)
    if indices.ndim != arr.ndim:
        misfit("np.put_along_axis: `indices` and `arr` must have the same number of dimensions")
    np.size(arr, axis)  # refuses what is no axis
    index = tuple([indices if k == axis % arr.ndim else _across(arr, k) for k in range(arr.ndim)])
    out[index] = values
    return out


def fill_diagonal(a, val, wrap=False):
    """np.fill_diagonal with one value, or as many as the diagonal has."""
    if a.ndim < 2:
        misfit("array must be at least 2-d")
    if a.ndim > 2 and min(a.shape) != max(a.shape):
        misfit("All dimensions of input must be of equal length")
    if wrap and a.shape[0] > a.shape[1]:
        unsupported("np.fill_diagonal(wrap=True) is not part of compiled code")
    out = a.copy()
    at = np.arange(min(a.shape))
    out[tuple([at for _ in range(a.ndim)])] = val
    return out


def copyto(dst, src, where=True):
    """np.copyto.

    Raises:
        TypeError: floats are copied into an array of integers.
    """
    src = np.asarray(src)
    if src.dtype.kind == "f" and dst.dtype.kind != "f":
        unsupported("np.copyto: floats do not fit into an array of integers; convert them with .astype")
    out = dst.copy()
    out[...] = np.where(where, src, dst)
    return out


def fill(x, value):
    """`x.fill(value)`."""
    out = x.copy()
    out[...] = value
    return out


def sort(x, axis=-1, kind=None):
    """`x.sort(axis)`."""
    if axis is None:
        misfit("'NoneType' object cannot be interpreted as an integer: x.sort() takes an axis")
    return np.sort(x, axis=axis)


def partition(x, kth, axis=-1):
    """`x.partition(kth, axis)`."""
    return np.partition(x, kth, axis)


def put(a, ind, v, mode="raise"):
    """np.put: entries of the flat array; values are repeated."""
    if mode != "raise":
        unsupported("np.put: mode= is not part of compiled code; compute the indices")
    flat, at = np.ravel(a.copy()), np.ravel(np.asarray(ind))
    flat[at] = np.resize(np.asarray(v), at.shape)
    return np.reshape(flat, a.shape)


def place(arr, mask, vals):
    """np.place: values are taken in order where the mask holds, and repeated."""
    there, given, out = np.asarray(mask).astype(bool), np.ravel(np.asarray(vals)), arr.copy()
    order = np.cumsum(np.ravel(there).astype(np.int64)) - 1
    out[...] = np.where(there, np.reshape(given[order % given.shape[0]], arr.shape), arr)
    return out


def putmask(a, mask, values):
    """np.putmask: values are taken by their places, and repeated."""
    out = a.copy()
    out[...] = np.where(mask, np.resize(np.asarray(values), a.shape), a)
    return out


def set_shape(x, shape):
    """`x.shape = shape`."""
    return np.reshape(x, shape)


CHANGING: dict[Callable, Callable] = {
    set_shape: set_shape,
    **{getattr(np, f.__name__): f for f in (put_along_axis, fill_diagonal, copyto, put, place, putmask)},
    **{getattr(np.ndarray, f.__name__): f for f in (fill, sort, partition)},
}
"""A function that changes its first argument -> one that returns it changed, and can be compiled."""
