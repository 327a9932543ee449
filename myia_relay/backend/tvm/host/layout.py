"""The code that reads NumPy's array objects: see `backend.native.layout`."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ...native.layout import CONTIGUOUS_ALIGNED, DATA, DESCR, DIMS, FLAGS, NDIM, TYPE, WRITEABLE, descr, supported
from ..kernels.kernel import flat_buffer, pointer_type
from ..tir.block import Block, call, idx, load


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


__all__ = ["check", "data_pointer", "descr", "supported"]
