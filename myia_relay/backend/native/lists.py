"""The conversion of blocks of run-time lists (`blocks`) to Python lists.

Most lists are made by machine code (`building`). The others, of arrays, of records, of NumPy's numbers, are made here: entries of
one type are equal pieces of memory, which `struct` and NumPy read at once. The lists in the entries of a list are read together,
however many they are: their blocks lie anywhere, but NumPy can gather from all of memory as from an array. What is read is then cut
into the single lists.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.assembly import assembler
from ...abstract.dims import known_size
from ...abstract.types import (
    Array,
    Leaf,
    List,
    NoneT,
    Scalar,
    Struct,
    Type,
    Undefined,
    element_dtype,
    holds,
    is_array_entry,
    leaves,
    numpy_dtype,
    rank_of,
)
from ...utils.collector import resting
from . import building
from .blocks import HEADER, LENGTH, NEXT, entry_layout

RELEASE = "release"  # the function of a program that frees its lists, where it has one
FEW = 24  # lists that are read one by one, which is quicker than to gather them
LONG = 64  # entries from which on a list is worth a look of its own
FROM = 500  # entries from which on the collector would look at the same ones again and again
_CODES = {"float64": "d", "int64": "q", "bool": "?"}  # of Python's numbers, as in `struct`
_view = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)


def memory(address: int, size: int) -> memoryview:
    """The bytes from an address on, to be read as long as nobody frees them."""
    return _view(address, size, 0x100)  # PyBUF_READ


def word(address: int, k: int) -> int:
    """A word of a block's header."""
    return ctypes.c_int64.from_address(address + 8 * k).value


class ListReader:
    """Makes the lists in blocks, of one type. It takes as long as CPython would take to make them."""

    def __init__(self, t: List):
        self.type = t
        self.make: Callable[[int], list] | None = None  # by machine code, once there is some

    def __call__(self, address: int) -> list:
        if self.make is None and building.in_use():
            self.make = building.builder(self.type) or self.made
        make = self.make or self.made
        if word(address, LENGTH) < FROM:
            return make(address)
        with resting():  # nothing that is made here is garbage
            return make(address)

    def made(self, address: int) -> list:
        """The list in a block, made by Python."""
        return _entries(self.type.elem).list(address, word(address, LENGTH))


@functools.lru_cache(maxsize=1024)
def list_reader(t: List) -> ListReader:
    """What makes lists of a type."""
    return ListReader(t)


@functools.lru_cache(maxsize=1024)
def _entries(t: Type) -> _Entries:
    return _Entries(t)


class _Entries:
    """Reads entries of a type."""

    def __init__(self, t: Type):
        _, offsets, size = entry_layout(t)
        self.record = known_size(size)
        self.assemble = assembler(t)
        self.alone = not isinstance(t, Struct) or is_array_entry(t)
        self.kept = [
            (leaf, known_size(at))
            for leaf, at in zip(_with_arrays(t), offsets, strict=True)
            if not isinstance(leaf, NoneT | Undefined)
        ]
        self.code: struct.Struct | None = None
        self.cast: Any = None
        self.rows: tuple[np.dtype, tuple[int, ...]] | None = None
        dtypes = [
            leaf.dtype for leaf, _ in self.kept if isinstance(leaf, Scalar) and leaf.weak and leaf.dtype in _CODES
        ]
        if not dtypes or len(dtypes) != len(self.kept):
            return
        if self.alone:
            self.cast = _CODES[dtypes[0]]
        elif dtypes[0] != "bool" and (shape := _rows(t, self.kept[0][0])) is not None:
            self.rows = np.dtype(dtypes[0]), shape
        else:
            truth = "?7x" if self.record >= 8 else "?"  # a leaf that is the only one is as in an array
            self.code = struct.Struct("=" + "".join(truth if d == "bool" else _CODES[d] for d in dtypes))

    def list(self, address: int, count: int) -> list:
        """The entries of a block."""
        if not count:
            return []
        return self.of(memory(address + HEADER, count * self.record), count)

    def of(self, raw: memoryview, count: int) -> list:
        """Entries that lie one behind the other."""
        if self.cast is not None:
            return raw.cast(self.cast).tolist()
        if self.rows is not None:
            dtype, shape = self.rows
            return np.frombuffer(raw, dtype).reshape(count, *shape).tolist()
        if self.code is not None:
            return self.assemble(self.code.iter_unpack(raw))
        if not self.kept:
            return [None] * count if self.alone else self.assemble(itertools.repeat((), count))
        records = np.frombuffer(raw, np.uint8).reshape(count, self.record)
        columns = [_column(records, at, leaf) for leaf, at in self.kept]
        return columns[0] if self.alone else self.assemble(zip(*columns, strict=True))


def _rows(t: Type, leaf: Type) -> tuple[int, ...] | None:
    """The shape of a list of lists of such leaves, all of one length at each depth; None for other types."""
    if t == leaf:
        return ()
    if not isinstance(t, Struct) or t.kind != "list" or len(set(t.elems)) != 1:
        return None
    inner = _rows(t.elems[0], leaf)
    return None if inner is None else (len(t.elems), *inner)


@dataclass(frozen=True)
class _Elements(Type):
    """An array of which an entry has the block of its elements and, behind that, its sizes."""

    dtype: str
    rank: int


def _with_arrays(t: Type) -> list[Type]:
    """The leaves of an entry, in which the first one of an array stands for all of it."""
    if not isinstance(t, Struct):
        return [t]
    if is_array_entry(t):
        return [_Elements(element_dtype(t), rank_of(t)), *[NoneT()] * (len(t.elems) - 1)]
    return [leaf for part in t.elems for leaf in _with_arrays(part)]


def _arrays(raw: np.ndarray, at: int, t: _Elements) -> list[np.ndarray]:
    """The arrays of all entries."""
    dtype, whole = numpy_dtype(t.dtype), np.dtype(np.int64)
    addresses = _numbers(raw, at, whole, ())
    low = int(addresses.min())
    offsets = addresses - low
    if t.rank == 1:
        span = int(offsets.max()) + HEADER
        counts = np.ndarray(span // 8, whole, memory(low, span))[(offsets >> 3) + LENGTH]
        shapes = counts.tolist()
    else:
        sizes = _numbers(raw, at + 8, whole, (t.rank,))
        counts, shapes = sizes.prod(axis=1), list(map(tuple, sizes.tolist()))
    offsets += HEADER
    blocks = memory(low, int((offsets + counts * dtype.itemsize).max()))
    return [np.ndarray(s, dtype, blocks, o).copy() for s, o in zip(shapes, offsets.tolist(), strict=True)]


def _column(raw: np.ndarray, at: int, t: Type) -> list:
    """A leaf of all entries."""
    if isinstance(t, _Elements):
        return _arrays(raw, at, t)
    if isinstance(t, List):
        return _lists(_numbers(raw, at, np.dtype(np.int64), ()), t)
    assert isinstance(t, Leaf)
    dtype = numpy_dtype(t.dtype)
    if isinstance(t, Array):
        return list(map(np.array, _numbers(raw, at, dtype, t.shape)))
    numbers = _numbers(raw, at, dtype, ())
    return numbers.tolist() if t.weak else list(numbers)


def _numbers(raw: np.ndarray, at: int, dtype: np.dtype, shape: tuple) -> np.ndarray:
    size = dtype.itemsize * math.prod(shape)
    if not size:
        return np.empty((len(raw), *shape), dtype)
    return np.ascontiguousarray(raw[:, at : at + size]).view(dtype).reshape(len(raw), *shape)


def _lists(addresses: np.ndarray, t: List) -> list[list]:
    """The lists in blocks."""
    entries, count = _entries(t.elem), len(addresses)
    if count <= FEW:
        return [entries.list(a, word(a, LENGTH)) for a in addresses.tolist()]
    low = int(addresses.min())
    span = int(addresses.max()) - low + HEADER
    at = addresses - low
    counts = np.ndarray(span // 8, np.int64, memory(low, span))[(at >> 3) + LENGTH]
    ends = counts.cumsum()
    total = int(ends[-1])
    if total >= LONG * count:
        return [entries.list(a, n) for a, n in zip(addresses.tolist(), counts.tolist(), strict=True)]
    starts = ends - counts
    flat = []
    record = entries.record
    if total and not record:
        flat = entries.of(memory(low, 0), total)
    elif total:
        unit = min(record, 8)
        span = int((at + counts * record).max()) + HEADER
        every = np.ndarray((span - record) // unit + 1, f"V{record}", memory(low, span), 0, (unit,))
        index = np.repeat((at + HEADER) // unit - starts * (record // unit), counts)
        index += np.arange(0, total * (record // unit), record // unit)
        gathered: Any = every[index].view(np.uint8)  # a buffer; type stubs declare that from 3.12 on
        flat = entries.of(memoryview(gathered), total)
    return [flat[i:j] for i, j in zip(starts.tolist(), ends.tolist(), strict=True)]


def many_blocks(output: Type) -> bool:
    """Whether what a program returns has lists in lists: freeing them one by one would take longer than making them."""
    return any(isinstance(t, List) and holds(t.elem, List) for t in leaves(output))


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


__all__ = ["ListReader", "list_reader", "many_blocks", "release"]
