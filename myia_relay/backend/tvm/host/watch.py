"""What the lowering records for the checks of memory accesses (`tir.bounds`); a `Watch` exists only if they are requested.

It leaves marks in the code (the place in the user's source, the clock of the memory plan), records the sizes of arrays,
and checks the finished memory plans: nothing may be placed where something else is live.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ....abstract.dims import product
from ....ir.node import Apply
from ....utils.errors import InternalError
from ...native import library
from ...native.blocks import HEADER
from ...native.guards import guards
from ...native.memory_checks import HEAP, SLOTS
from ...native.records import TOP
from ..plan import ITEM, LEAST, MemoryPlan, Storage, View
from ..tir.block import Block, idx, load
from ..tir.bounds import CLOCK_MARK, PLACE_MARK, Memory, inside, mark, poisoned, with_extent
from ..tir.lookup import KnownMemory


class Watch:
    """What is noted of a program.

    Args:
        state: the main function's state area.
    """

    def __init__(self, state: Any):
        self.state, self.memory = state, Memory(state.address, state.slot(SLOTS))
        state.needed = True
        self.places: list[Any] = []
        self.lowerings: list[Any] = []
        self.items: dict[Any, int] = {}  # bytes of an element of arguments

    def follow(self, lowering: Any) -> None:
        """Mark the code of a function."""
        number = len(self.lowerings)
        self.lowerings.append(lowering)
        lowering.plan.watch = lambda clock: lowering.block.emit(mark(CLOCK_MARK, number, clock))

    def at(self, block: Block, node: Apply) -> None:
        """What is emitted now belongs to an application."""
        if not self.places or self.places[-1] is not node.origin:
            self.places.append(node.origin)
        block.emit(mark(PLACE_MARK, len(self.places)))

    def bounded(self, lowering: Any, pointer: Any, view: View) -> Any:
        """The pointer to an array, which knows the array's size."""
        nbytes = lowering.b.dim(product(view.shape) * ITEM[view.dtype])
        if view.pitch is not None:  # to the end of the last row
            rows, cols = (lowering.b.dim(size) for size in view.shape)
            reach = tirx.Add(tirx.Mul(tirx.Sub(rows, idx(1)), lowering.b.dim(view.pitch)), cols)
            nbytes = tirx.Mul(tirx.Max(reach, idx(0)), idx(ITEM[view.dtype]))
        if view.storage.own and view.whole:  # there is always some memory, which may be read for nothing
            nbytes = tirx.Max(nbytes, idx(LEAST))
        return with_extent(pointer, nbytes)

    def sized(self, pointer: Any, nbytes: Any) -> Any:
        """The pointer to so many bytes."""
        return with_extent(pointer, nbytes)

    def record(self, pointer: Any, base: Any, nbytes: Any) -> Any:
        """A pointer into a record, or a frame, that begins at an address and has so many bytes."""
        return with_extent(pointer, nbytes, base)

    def poison(self, block: Block, address: Any, nbytes: Any) -> None:
        """Nothing is in memory now."""
        block.emit(poisoned(address, nbytes))

    def inside(self, block: Block, what: str, index: Any, most: Any, least: Any = 0) -> None:
        """An index has to be from `least` to before `most`; "list" tells of what."""
        block.emit(inside(f"looks at a {what}", index, most, least))

    def argument(self, var: Any, dims: Any, rank: int, item: int) -> None:
        """The extent of an argument: what the array object itself says."""
        nbytes: Any = idx(item)
        for k in range(rank):
            nbytes = tirx.Mul(nbytes, load(dims, k))
        self.memory.extents[var] = nbytes

    def locate(self, preset: Any) -> None:
        """Note where memory lies that is known by address alone, as soon as all functions are lowered.

        Args:
            preset: gives a slot that has the address of an array from the start.
        """
        if not library.supported():  # then the code's allocator is the C library's
            return
        out = self.memory.known = KnownMemory()
        root = self.lowerings[0]
        if root.lists is not None or root.tape_slots or root.sized:
            own = guards()
            out.blocks = preset(own.words), preset(own.owners), own.size
        if root.lists is not None:
            out.empty = root.lists.empty, HEADER // 8 + 2
        if root.heap is not None:
            out.heap = self.memory.slot + HEAP, root.heap + TOP
        if root.calls is not None:
            out.frames = root.calls.base, root.calls.end

    def finish(self) -> Memory:
        """All that was noted, when all functions are lowered.

        Raises:
            InternalError: a memory plan is wrong.
        """
        for number, lowering in enumerate(self.lowerings):
            alive = [s for s in lowering.plan.storages if s.kind == "arena" and s.offset is not None]
            verify(lowering.plan, alive)
            heirs = {s.place for s in alive if s.place is not None}
            for s in alive:
                size = lowering.b.dim(s.nbytes)
                self.memory.extents[s.var] = size
                if s.place is None:
                    self.memory.events.setdefault((number, s.first), []).append((s.var, size))
                if s not in heirs:
                    self.memory.events.setdefault((number, s.last + 1), []).insert(0, (s.var, size))
            for _, view, *_ in lowering.constants.values():
                self.memory.extents[view.storage.var] = lowering.b.dim(view.storage.nbytes)
        self.memory.slots = self.state.count
        return self.memory


def verify(plan: MemoryPlan, alive: list[Storage]) -> None:
    """Hold a finished plan against the lives of its storages.

    Raises:
        InternalError: two storages that live at one time overlap, one lies outside, or does not live to the end of a loop
            that reads it.
    """
    for s in alive:
        last = s.offset + s.nbytes - plan.size
        if isinstance(last, int) and last > 0:
            raise InternalError("the memory plan", f"{s.var.name} reaches beyond the arena")
        for begin, end in plan.loops:
            if s.first < begin <= s.last < end:
                raise InternalError(
                    "the memory plan", f"{s.var.name} is made before a loop and does not live to its end"
                )
    living: list[Storage] = []
    for s in sorted(alive, key=lambda s: s.first):
        living = [o for o in living if o.last >= s.first]
        for o in living:
            heir = s.place is o and s.first == o.last and s.nbytes == o.nbytes
            if not heir and _overlap(s, o):
                raise InternalError("the memory plan", f"{s.var.name} lies where {o.var.name} still lives")
        living.append(s)


def _overlap(a: Storage, b: Storage) -> bool:
    if all(isinstance(d, int) for d in (a.offset, b.offset, a.nbytes, b.nbytes)):
        return a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes
    return a.offset == b.offset


__all__ = ["Watch", "verify"]
