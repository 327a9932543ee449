"""The generated code that reads NumPy's array objects: see `backend.native.layout`."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from tvm import tirx

from ...native.layout import CONTIGUOUS_ALIGNED, DATA, DESCR, DIMS, FLAGS, NDIM, TYPE, WRITEABLE, descr, supported
from ..kernels.kernel import flat_buffer, pointer_type
from ..tir.block import Block, call, idx, load

TOGETHER = 32  # differences per branch: LLVM takes time for each branch, and more for long sums


def fields(block: Block, obj: Any) -> Any:
    """The object at an address as a buffer of words."""
    buffer = flat_buffer("obj", "int64")
    block.emit(tirx.DeclBuffer(buffer, data=call("tirx.reinterpret", pointer_type("int64"), obj)))
    return buffer


def data_pointer(block: Block, obj: Any) -> Any:
    """The address of an array object's elements."""
    return block.let(load(fields(block, obj), DATA))


def sizes(block: Block, obj: Any) -> Any:
    """The sizes along the axes of an array object, as a buffer."""
    dims = flat_buffer("dims", "int64")
    pointer = call("tirx.reinterpret", pointer_type("int64"), load(fields(block, obj), DIMS))
    block.emit(tirx.DeclBuffer(dims, data=pointer))
    return dims


class Expected(NamedTuple):
    """An object that has to be an array of a certain kind.

    Attributes:
        obj: its address.
        dtype: the address of its dtype.
        shape: of integers.
        write: whether it has to be writeable.
    """

    obj: Any
    dtype: Any
    shape: list[Any]
    write: bool


def check(block: Block, arrays: list[Expected], type_id: Any, status: int) -> None:
    """Return a status unless all objects are arrays of a type, of their dtypes and shapes, contiguous and aligned (and writeable).

    A branch serves many of them. First the types, which make it safe to look further; then what makes it safe to read the sizes.
    """
    objects = [fields(block, a.obj) for a in arrays]
    _leave(block, [tirx.BitwiseXor(load(words, TYPE), type_id) for words in objects], status)
    differences = []
    for a, words in zip(arrays, objects):
        mask = idx(CONTIGUOUS_ALIGNED | (WRITEABLE if a.write else 0))
        rank = tirx.BitwiseAnd(load(words, NDIM), idx(0xFFFFFFFF))
        differences += [
            tirx.BitwiseXor(tirx.BitwiseAnd(load(words, FLAGS), mask), mask),
            tirx.BitwiseXor(load(words, DESCR), a.dtype),
            tirx.BitwiseXor(rank, idx(len(a.shape))),
        ]
    _leave(block, differences, status)
    differences = []
    for a, words in zip(arrays, objects):
        if a.shape:
            dims = flat_buffer("dims", "int64")
            pointer = call("tirx.reinterpret", pointer_type("int64"), load(words, DIMS))
            block.emit(tirx.DeclBuffer(dims, data=pointer))
            differences += [tirx.BitwiseXor(load(dims, k), size) for k, size in enumerate(a.shape)]
    _leave(block, differences, status)


def _leave(block: Block, differences: list[Any], status: int) -> None:
    """Return a status unless all integers are zero."""
    for k in range(0, len(differences), TOGETHER):
        found = functools.reduce(tirx.BitwiseOr, differences[k : k + TOGETHER])
        with block.when(tirx.NE(found, idx(0))):
            block.emit(tirx.Return(idx(status)))


__all__ = ["Expected", "check", "data_pointer", "descr", "sizes", "supported"]
