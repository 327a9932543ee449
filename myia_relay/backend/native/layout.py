"""NumPy arrays as native code reads them: addresses, types, flags and sizes directly from the objects.

Idea: passing an array by DLPack costs 0.2 us; passing its `id` costs a tenth. Native code then reads the fields of the
array object itself (their order is part of NumPy's stable ABI). If the array is not what the program was compiled for,
it returns a status, and the slow path in Python converts the array or raises. `supported()` compares the assumed layout
with this interpreter (other builds of Python have other object headers); where it differs, addresses are passed
instead.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np

from ...abstract.types import numpy_dtype

# Offsets of the fields in 8-byte words.
TYPE, DATA, NDIM, DIMS, DESCR, FLAGS = 1, 2, 3, 4, 7, 8
CONTIGUOUS_ALIGNED = 0x1 | 0x100
WRITEABLE = 0x400


def word(obj: Any, at: int) -> int:
    """A word of an object's memory."""
    return ctypes.c_int64.from_address(id(obj) + 8 * at).value


@functools.lru_cache(maxsize=1)
def supported() -> bool:
    """Whether array objects are laid out as assumed here."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return False
    if "t" in getattr(sys, "abiflags", ""):  # free-threaded builds have a longer object header
        return False
    for array in (np.zeros((3, 5), np.float32), np.zeros((2, 3, 4), np.int64)[:, 1:, ::2], np.zeros(7, np.bool_)):
        dims = word(array, DIMS)
        flags = word(array, FLAGS) & 0xFFFFFFFF
        facts = (
            word(array, TYPE) == id(np.ndarray),
            word(array, DATA) == array.ctypes.data,
            word(array, NDIM) & 0xFFFFFFFF == array.ndim,
            tuple((ctypes.c_int64 * array.ndim).from_address(dims)) == array.shape,
            word(array, DESCR) == id(array.dtype),
            bool(flags & 1) == array.flags.c_contiguous,
            bool(flags & 0x100) == array.flags.aligned,
            bool(flags & WRITEABLE) == array.flags.writeable,
        )
        if not all(facts):
            return False
    return True


def descr(dtype: str) -> np.dtype:
    """The dtype object that arrays have, unless another one was made explicitly."""
    return numpy_dtype(dtype)
