"""Arguments in the form that native code accepts: arrays that are contiguous, aligned and of canonical dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.dims import Dim, DimLike
from ...abstract.structures import part, rebuild
from ...abstract.types import Array, Ref, Struct, Type, numpy_dtype
from ...utils.errors import ShapeError, TypeError_
from . import layout


def conform(value: Any, t: Type, where: str) -> Any:
    """A value with its arrays contiguous, aligned and of canonical dtype; unchanged where it already is.

    Raises:
        TypeError_: its dtype is another one, or an array of a reference cannot be updated in place.
        ShapeError: its shape is another one.
    """
    if isinstance(t, Struct):
        old = [part(value, t, i) for i in range(len(t.elems))]
        new = [conform(v, e, where) for v, e in zip(old, t.elems)]
        return value if all(a is b for a, b in zip(old, new)) else rebuild(t, new)
    if isinstance(t, Ref):
        for name, array, e in zip(t.names, value.arrays, t.elems):
            fits = isinstance(array, np.ndarray) and array.dtype == numpy_dtype(e.dtype) and array.flags.carray
            if not fits or not shape_fits(array.shape, e.shape):
                raise TypeError_(f"{name} must be a contiguous array of {e} to be updated in place")
        return value
    if not isinstance(t, Array):
        return value
    want = layout.descr(t.dtype)
    array = np.asarray(value)
    if array.dtype.newbyteorder("=") != want:
        raise TypeError_(f"{where} is an array of {array.dtype}, and the program was compiled for {t}")
    if not shape_fits(array.shape, t.shape):
        raise ShapeError(f"{where} has shape {array.shape}, and the program was compiled for {t}")
    if type(value) is np.ndarray and value.dtype == want and value.flags.c_contiguous and value.flags.aligned:
        return value if value.dtype is want else value.view(want)  # unpickled arrays have dtypes of their own
    array = np.array(array, dtype=want, order="C", copy=True, subok=False)
    return array if array.dtype is want else array.view(want)


def shape_fits(shape: tuple[int, ...], declared: tuple[DimLike, ...]) -> bool:
    """Whether an array of a shape is one of a declared shape; symbolic sizes fit any."""
    return len(shape) == len(declared) and all(isinstance(d, Dim) or d == n for n, d in zip(shape, declared))
