"""How run-time lists lie in memory: blocks, of which each is a list.

    block = [previous | next | references | length | capacity | - | entries]

The blocks of a call are chained. An entry consists of the leaves of its type: a number alone as it is in an array, otherwise 8
bytes for a number or list, arrays inline. `backend/tvm/host/lists.py` is how compiled code makes and changes them, `lists` and
`building` how Python lists are made of them.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from ...abstract.dims import DimLike
from ...abstract.types import Array, Data, List, NoneT, Scalar, Type, Undefined, leaves, numpy_dtype
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


def _c_free() -> Callable:
    if sys.platform == "win32":
        return ctypes.cdll.msvcrt.free
    return ctypes.CDLL(None).free  # what `library` provides to the code


free: Any = _c_free()


__all__ = ["CAPACITY", "COUNT", "HEADER", "LENGTH", "NEXT", "PREVIOUS", "entry_layout", "free", "is_number"]
