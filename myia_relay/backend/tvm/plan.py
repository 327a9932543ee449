"""The memory plan: the storage of each array, its live range, and its place in the arena.

Idea: code is emitted in one pass against storages whose addresses are variables. Every emitted kernel advances a clock
and touches the storages that it reads and writes, which gives each storage a live range. A storage that was made before
a loop and is used inside it lives to the end of the loop. A first-fit over the live ranges then places all of them in
one arena. An output may take the place of an input of the same kernel that dies there, if the kernel says that this is
safe.

Input: storages with their events. Output: offsets (ints, or expressions over symbolic dimensions) and the arena's size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...abstract.dims import DimLike, known_size, product

ALIGN = 64
LEAST = 64  # bytes that an array with memory of its own has, even of no elements
ITEM = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8,
}  # fmt: skip


@dataclass(eq=False)
class Storage:
    """A piece of memory.

    Attributes:
        kind: "arena", "input" (an argument or a constant: read-only), "ref" (a model's array), "out" or "tape".
        nbytes: size; symbolic where a dimension is.
        var: the tirx pointer variable that holds its address.
        first, last: the clock at its first and last use; -1 before any.
        place: the storage whose memory it takes over, if any.
        offset: in the arena; an int, or a `Dim`.
        own: whether it has memory of its own, got when its size is known, and no place in the arena.
    """

    kind: str
    nbytes: DimLike
    var: Any
    name: str = ""
    first: int = -1
    last: int = -1
    place: Storage | None = None
    offset: Any = None
    own: bool = False


@dataclass(eq=False)
class View:
    """An array: a piece of a storage.

    Attributes:
        storage: where it is.
        dtype: element type.
        shape: its shape.
        offset: bytes from the storage's start: an int or an int64 expression.
        pointer: an expression of the storage's address that replaces `storage.var` (buffers that change places).
        pitch: elements from one row to the next of a part of a matrix, which only products read; None for what is contiguous.
    """

    storage: Storage
    dtype: str
    shape: tuple[DimLike, ...]
    offset: Any = 0
    pointer: Any = None
    pitch: DimLike | None = None

    @property
    def whole(self) -> bool:
        """Whether it is all of its storage."""
        if not isinstance(self.offset, int) or self.offset or self.pointer is not None or self.pitch is not None:
            return False
        return product(self.shape) * ITEM[self.dtype] == self.storage.nbytes


@dataclass
class MemoryPlan:
    """All storages of a program, and their history."""

    storages: list[Storage] = field(default_factory=list)
    clock: int = 0
    loops: list[tuple[int, int]] = field(default_factory=list)
    in_place: list[tuple[int, Storage, Storage]] = field(default_factory=list)
    size: DimLike = 0
    watch: Callable[[int], None] | None = None  # called at each tick

    def tick(self) -> int:
        """Advance the clock: something is about to be emitted."""
        self.clock += 1
        if self.watch is not None:
            self.watch(self.clock)
        return self.clock

    def touch(self, storage: Storage) -> None:
        """Note that a storage is used now."""
        if storage.first < 0:
            storage.first = self.clock
        storage.last = max(storage.last, self.clock)

    def may_share(self, output: Storage, source: Storage) -> None:
        """The kernel emitted now writes each element of `output` after its last read of that element of `source`."""
        self.in_place.append((self.clock, output, source))

    def finish(self) -> None:
        """Extend lives over loops and place the storages."""
        alive = [s for s in self.storages if s.kind == "arena" and s.first >= 0 and not s.own]
        # Inner loops were closed before outer ones, so one pass in that order propagates an extension outwards.
        for begin, end in self.loops:
            for s in alive:
                if s.first < begin <= s.last <= end:
                    s.last = end
        alive.sort(key=lambda s: s.first)
        shares: dict[Storage, list[tuple[int, Storage]]] = {}
        for time, output, source in self.in_place:
            shares.setdefault(output, []).append((time, source))
        static = [s for s in alive if isinstance(s.nbytes, int)]
        symbolic = [s for s in alive if not isinstance(s.nbytes, int)]
        self.size = _place_static(static, shares)
        self.size = _place_symbolic(symbolic, shares, self.size)


def _take_over(s: Storage, shares: dict, heirs: set) -> bool:
    """Let `s` take the place of an input that dies in the kernel that makes `s`."""
    for time, source in shares.get(s, ()):
        if (
            s.first == time == source.last
            and source.first < time
            and source.nbytes == s.nbytes
            and source.offset is not None
            and source not in heirs
        ):
            heirs.add(source)
            s.place, s.offset = source, source.offset
            return True
    return False


def _place_static(storages: list[Storage], shares: dict) -> int:
    """First fit by time of birth; the size of the arena so far."""
    placed: list[Storage] = []
    heirs: set[Storage] = set()
    total = 0
    for s in storages:
        placed = [p for p in placed if p.last >= s.first]
        if not _take_over(s, shares, heirs):
            offset, need = 0, _aligned(s.nbytes)
            for p in sorted(placed, key=lambda p: p.offset):
                if offset + need <= p.offset:
                    break
                offset = max(offset, p.offset + _aligned(p.nbytes))
            s.offset = offset
        placed.append(s)
        total = max(total, s.offset + _aligned(s.nbytes))
    return total


def _place_symbolic(storages: list[Storage], shares: dict, start: DimLike) -> DimLike:
    """Slots of one symbolic size each, reused by storages of the same size."""
    slots: list[tuple[DimLike, DimLike, list[Storage]]] = []
    users_at: dict[Storage, list[Storage]] = {}  # a storage -> all that have its slot
    heirs: set[Storage] = set()
    total = start
    for s in storages:
        if _take_over(s, shares, heirs):
            assert s.place is not None
            users = users_at[s.place]
        else:
            free = (x for x in slots if x[0] == s.nbytes and all(u.last < s.first for u in x[2]))
            slot = next(free, None)
            if slot is None:
                slot = s.nbytes, total, []
                slots.append(slot)
                total = total + ((s.nbytes + (ALIGN - 1)) // ALIGN) * ALIGN
            _, s.offset, users = slot
        users.append(s)
        users_at[s] = users
    return total


def _aligned(nbytes: DimLike) -> int:
    return max(ALIGN, -(-known_size(nbytes) // ALIGN) * ALIGN)
