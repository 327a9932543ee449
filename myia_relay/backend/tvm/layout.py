"""NumPy arrays read by native code: addresses, types, flags and sizes straight from the objects.

Idea: handing an array over by DLPack costs 0.2 us each; its `id` costs a tenth. Native code then looks at the fields of the
array object itself (their order is part of NumPy's stable ABI) and leaves with a status if the array is not what the
program was compiled for; the slow path in Python then converts or complains. `supported()` holds the assumed layout against this
interpreter (other builds of Python have other object headers); where it does not hold, addresses are passed instead.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from typing import Any

import numpy as np
from tvm import tirx

from ...abstract.types import numpy_dtype
from .block import Block, call, idx, load
from .kernel import flat_buffer, pointer_type

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
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # a longer object header
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


def fields(block: Block, obj: Any) -> Any:
    """The object at an address as a buffer of words."""
    buffer = flat_buffer("obj", "int64")
    block.emit(tirx.DeclBuffer(buffer, data=call("tirx.reinterpret", pointer_type("int64"), obj)))
    return buffer


def data_pointer(block: Block, obj: Any) -> Any:
    """The address of an array object's elements."""
    return block.let(load(fields(block, obj), DATA))


def check(block: Block, bad: Any, obj: Any, type_id: Any, descr_id: Any, shape: list[Any], write: bool) -> None:
    """Set the cell `bad` unless an object is an array of a type, shape, contiguous and aligned (and writeable)."""
    words = fields(block, obj)
    low = idx(0xFFFFFFFF)
    mask = idx(CONTIGUOUS_ALIGNED | (WRITEABLE if write else 0))
    block.store(bad, idx(1), 0)
    with block.when(tirx.EQ(load(words, TYPE), type_id)):
        fits = tirx.And(
            tirx.EQ(tirx.BitwiseAnd(load(words, FLAGS), mask), mask),
            tirx.And(
                tirx.EQ(load(words, DESCR), descr_id), tirx.EQ(tirx.BitwiseAnd(load(words, NDIM), low), idx(len(shape)))
            ),
        )
        with block.when(fits):
            block.store(bad, idx(0), 0)
            if shape:
                dims = flat_buffer("dims", "int64")
                pointer = call("tirx.reinterpret", pointer_type("int64"), load(words, DIMS))
                block.emit(tirx.DeclBuffer(dims, data=pointer))
                for k, size in enumerate(shape):
                    with block.when(tirx.NE(load(dims, k), size)):
                        block.store(bad, idx(1), 0)


def descr(dtype: str) -> np.dtype:
    """The dtype object that arrays have unless somebody made another."""
    return numpy_dtype(dtype)
