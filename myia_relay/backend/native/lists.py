"""Blocks of run-time lists: their layout, and the conversion of a block to a Python list.

    block = [previous | next | references | length | capacity | - | entries]

The blocks of a call are chained. An entry consists of the leaves of its type: a number alone as it is in an array,
otherwise 8 bytes for a number or list, arrays inline. `backend/tvm/host/lists.py` is the other side: how compiled code
makes and changes them.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...abstract.dims import DimLike, known_size
from ...abstract.structures import rebuild
from ...abstract.types import Array, Data, Leaf, List, NoneT, Scalar, Struct, Type, Undefined, leaves, numpy_dtype
from ...utils.errors import LoweringError

PREVIOUS, NEXT, COUNT, LENGTH, CAPACITY = range(5)  # words of a block
HEADER = 48  # bytes before the entries


def is_number(t: Type) -> bool:
    """Whether values of a type are single numbers."""
    return isinstance(t, Scalar | Data) or isinstance(t, Array) and t.shape == ()


def entry_layout(t: Type) -> tuple[list[Type], list[DimLike], DimLike]:
    """Types and offsets of the leaves of an entry, and its size.

    Raises:
        LoweringError: no list can have such entries.
    """
    types = leaves(t)
    if len(types) == 1 and isinstance(types[0], Scalar):
        return types, [0], numpy_dtype(types[0].dtype).itemsize
    offsets: list[DimLike] = []
    at: DimLike = 0
    for leaf in types:
        offsets.append(at)
        if isinstance(leaf, Array) and leaf.shape != ():
            at = at + ((leaf.size * numpy_dtype(leaf.dtype).itemsize + 7) // 8) * 8
        elif is_number(leaf) or isinstance(leaf, List):
            at = at + 8
        elif not isinstance(leaf, NoneT | Undefined):
            raise LoweringError(f"the native executor cannot keep a value of type {leaf} in a list")
    return types, offsets, at


def word(address: int, k: int) -> int:
    """A word of a block's header."""
    return ctypes.c_int64.from_address(address + 8 * k).value


def read(address: int, t: List) -> list:
    """The list in a block. 10 to 20 ns an entry that is a number."""
    count = word(address, LENGTH)
    types, offsets, size = entry_layout(t.elem)
    if not count:
        return []
    record = known_size(size)
    if not record:  # entries that are all None
        return [_assembled(t.elem, iter([None] * len(types))) for _ in range(count)]
    block: Any = (ctypes.c_char * (count * record)).from_address(
        address + HEADER
    )  # a buffer; type stubs declare that from 3.12 on
    raw = np.frombuffer(block, np.uint8).reshape(count, record)
    columns = [_column(raw, known_size(at), leaf) for at, leaf in zip(offsets, types, strict=True)]
    if not isinstance(t.elem, Struct):
        return columns[0]
    return [_assembled(t.elem, iter(row)) for row in zip(*columns, strict=True)]


def _column(raw: np.ndarray, at: int, t: Type) -> list:
    """A leaf of all entries."""
    if isinstance(t, NoneT | Undefined):
        return [None] * len(raw)
    if isinstance(t, List):
        return [read(a, t) for a in _numbers(raw, at, np.dtype(np.int64), ()).tolist()]
    assert isinstance(t, Leaf)
    dtype = numpy_dtype(t.dtype)
    if isinstance(t, Array):
        return [np.array(a) for a in _numbers(raw, at, dtype, () if is_number(t) else t.shape)]
    numbers = _numbers(raw, at, dtype, ())
    return numbers.tolist() if isinstance(t, Scalar) and t.weak else list(numbers)


def _numbers(raw: np.ndarray, at: int, dtype: np.dtype, shape: tuple) -> np.ndarray:
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    return np.ascontiguousarray(raw[:, at : at + size]).view(dtype).reshape(len(raw), *shape)


def _assembled(t: Type, leaves: Any) -> Any:
    return rebuild(t, [_assembled(e, leaves) for e in t.elems]) if isinstance(t, Struct) else next(leaves)


def release(ints: Any, head: int, free: Any) -> None:
    """Free all blocks of a chain.

    Args:
        ints: the slots of a state area.
        head: the slot of the first block.
        free: C's.
    """
    while ints[head]:
        address = ints[head]
        ints[head] = word(address, NEXT)
        free(ctypes.c_void_p(address))


__all__ = ["entry_layout", "read", "release"]
