"""The layout of records and references; both sides of a native program must agree on it.

reference = address of the record + number of the variant      (0 for None alone; a variant without leaves is its number)
record    = [leaf: 8 bytes for a number or a reference, arrays inline, rounded up to 8]
"""

from __future__ import annotations

import functools
from typing import TypeGuard

from ...abstract.dims import Dim, known_size
from ...abstract.family import Family
from ...abstract.types import Array, NoneT, Type, numpy_dtype
from ...utils.errors import SizeInRecord

TOP, END, LIMIT = 0, 1, 2  # slots of a heap: the first free byte, where to look whether it is enough, where memory ends
SLOTS = 3


def is_array(t: Type) -> TypeGuard[Array]:
    """Whether a leaf is kept as an array; one without axes is a number."""
    return isinstance(t, Array) and t.shape != ()


def nbytes(t: Array) -> int:
    """The size of an array in a record.

    Raises:
        SizeInRecord: a run decides it.
    """
    if isinstance(t.size, Dim):
        shape = ", ".join(map(str, t.shape))
        raise SizeInRecord(f"a record holds an array of shape ({shape}); native code takes records of known sizes")
    return known_size(t.size) * numpy_dtype(t.dtype).itemsize


def alignment(family: Family) -> int:
    """The alignment of a family's records: their addresses leave room for the numbers of its variants."""
    return max(8, 1 << len(family.variants).bit_length())


@functools.lru_cache(maxsize=1024)
def layout(family: Family, number: int) -> tuple[tuple[int, ...], int]:
    """The offsets of a variant's leaves in its record, and the record's size; 0 where it has no leaves."""
    offsets, at = [], 0
    for t in family.variants[number - 1].leaves:
        offsets.append(at)
        if is_array(t):
            at += -(-nbytes(t) // 8) * 8
        elif not isinstance(t, NoneT):
            at += 8
    unit = alignment(family)
    return tuple(offsets), -(-at // unit) * unit
