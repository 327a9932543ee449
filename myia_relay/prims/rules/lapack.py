"""LAPACK on NumPy arrays: what the reference implementations of factorisations call.

Native code calls the same routines of the same library, so all executors get the same bits. NumPy's own LAPACK is another build of
OpenBLAS. Matrices are in C order; `LAPACKE` turns them round. Results of a routine that fails are NaN.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...utils.openblas import openblas

ROWS = 101
"""LAPACKE's and CBLAS's number for matrices in C order."""


def call(routine: str, dtype: Any, *args: Any) -> int:
    """A routine of LAPACKE, given without the letter of its type: `getrf`. Returns what it says: 0 where all is well.

    Args:
        routine: its name.
        dtype: float32 or float64.
        *args: as in C, behind the layout; an array is passed as a pointer, a letter as a char.
    """
    letter = "s" if np.dtype(dtype) == np.float32 else "d"
    return _function(f"scipy_LAPACKE_{letter}{routine}")(ROWS, *map(_argument, args))


def triangular(a: np.ndarray, x: np.ndarray, lower: bool, transpose: bool, unit: bool) -> None:
    """Overwrite `x` with the solution of a triangular system."""
    n, k = x.shape
    if not n or not k:
        return
    alpha = ctypes.c_float(1.0) if x.dtype == np.float32 else ctypes.c_double(1.0)
    flags = ROWS, 141, 122 if lower else 121, 112 if transpose else 111, 132 if unit else 131
    solve = _function(f"scipy_cblas_{'s' if x.dtype == np.float32 else 'd'}trsm")
    solve(*flags, n, k, alpha, _argument(a), n, _argument(x), k)


def _function(name: str) -> Any:
    function = getattr(openblas(), name)
    function.restype = ctypes.c_int
    return function


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, str):
        return ctypes.c_int(ord(value))
    return value


def each(stacks: Sequence[np.ndarray], shape: tuple[int, ...], one: Any) -> np.ndarray:
    """`one(out, *matrices)` fills `out`, of a shape, for each position of stacks of matrices."""
    arrays = [np.ascontiguousarray(s) for s in stacks]
    out = np.empty((arrays[0].shape[0], *shape), arrays[0].dtype)
    for k in range(out.shape[0]):
        one(out[k], *(a[k] for a in arrays))
    return out


__all__ = ["ROWS", "call", "each", "triangular"]
