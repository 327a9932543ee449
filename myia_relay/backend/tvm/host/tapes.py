"""Tapes: what an adjoint's forward pass leaves for its backward pass.

Idea: entries of one type live in one growable region of equal records, and a tape is the number of its last entry, or
-1. Each record holds the number of the record below it, so any number of tapes can share a region: tapes within tapes,
and tapes from either branch of a condition. Records are allocated like a stack: a popped record is marked free, and
free records at the top are released, which for the nested order of adjoints is all of them.

An iteration of a loop pushes a residual on each of its tapes, one after the other, and the iteration of its adjoint
pops them in the same way. A region treats such a run as one: the capacity is checked once, and free records are
released once.

Regions are kept between calls: the steady state allocates nothing.

    record = [below: int64 | free: int64 | leaves of the entry: 8 bytes for a number, arrays inline]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ....abstract.dims import DimLike
from ....abstract.types import Array, Data, List, NoneT, Tape, Type, Undefined, leaves
from ....ir.node import Apply, Graph
from ....opt.analysis.fusion import is_scalar
from ....utils.errors import LoweringError
from ...native.area import NO_MEMORY
from ..kernels.kernel import flat_buffer, pointer_type
from ..plan import ITEM, Storage, View
from ..tir.block import call, dtype_of, expect, idx, load
from ..tir.pipeline import c_function
from .control import flatten, leaf_nodes, unflatten
from .references import given

HEADER = 16
FIRST_BYTES = 4096


@dataclass(eq=False)
class TapeRegion:
    """The records of all tapes with entries of one type.

    Attributes:
        base, size, top: slots of its address, its size in bytes, the number of records handed out.
        offsets: of the leaves in a record.
        record: bytes of a record.
        storage: stands for its memory in the plan.
    """

    base: int
    size: int
    top: int
    types: list[Type]
    offsets: list[DimLike]
    record: DimLike
    storage: Storage


def region(lowering: Any, tape: Tape) -> TapeRegion:
    """The region of a type of tapes.

    Raises:
        LoweringError: an entry has a part that tapes cannot hold.
    """
    if tape not in lowering.regions:
        types, offsets = leaves(tape.elem), []
        at: DimLike = HEADER
        for t in types:
            offsets.append(at)
            if isinstance(t, Array) and not is_scalar(t):
                # A multiple of 8, so that numbers after it are aligned; vector accesses need no alignment.
                at = at + ((t.size * ITEM[t.dtype] + 7) // 8) * 8
            elif is_scalar(t) or isinstance(t, Tape | Data | List):
                at = at + 8
            elif not isinstance(t, NoneT | Undefined):
                raise LoweringError(f"the native executor cannot keep a value of type {t} for the backward pass")
        state = lowering.state
        state.needed = True
        storage = lowering.storage("tape", 0, "tape")
        if tape not in lowering.tape_slots:
            lowering.tape_slots[tape] = state.slot(3)
        slots = lowering.tape_slots[tape]
        lowering.regions[tape] = TapeRegion(slots, slots + 1, slots + 2, types, offsets, at, storage)
    return lowering.regions[tape]


@dataclass(eq=False)
class Run:
    """Applications that push on tapes of one region, or pop from them, with nothing in between that computes.

    Attributes:
        nodes: the applications.
        first: of pushes, the number of the first record.
        base: the address of the region's memory.
    """

    nodes: list[Apply]
    first: Any = None
    base: Any = None


IDLE = ("get_item", "make_struct", "none", "tape_new")  # operations that may be in a run


def run_of(lowering: Any, node: Apply, r: TapeRegion) -> Run:
    """The run of which an application is part; made when its first one is asked for."""
    found = lowering.scope.tape_runs.get(node)
    if found is None:
        scope, found = lowering.scope, Run([])
        for other in scope.graph.nodes[scope.position[node] :]:
            if other.fn is node.fn:
                if region(lowering, other.args[0].type) is r:
                    found.nodes.append(other)
                    lowering.scope.tape_runs[other] = found
            elif isinstance(other.fn, Graph) or other.fn.name not in IDLE:
                break
    return found


class _Record:
    """One record: its address, and its words."""

    def __init__(self, lowering: Any, r: TapeRegion, number: Any, base: Any = None):
        self.lowering, self.region = lowering, r
        b = lowering.b
        offset = b.mul(number, b.dim(r.record))
        self.address = b.let(b.add(lowering.state.get(r.base) if base is None else base, offset))
        if lowering.watch is not None:
            lowering.watch.inside(lowering.block, "tape", number, lowering.state.get(r.top))

    def word(self, offset: DimLike, dtype: str) -> Any:
        """A buffer whose first element is at an offset."""
        lowering = self.lowering
        buffer = flat_buffer("rec", dtype)
        address = lowering.b.add(self.address, lowering.b.dim(offset))
        pointer = self.within(call("tirx.reinterpret", pointer_type(dtype), address))
        lowering.block.emit(tirx.DeclBuffer(buffer, data=pointer))
        return buffer

    def within(self, pointer: Any) -> Any:
        """A pointer into the record, which knows the record's ends where accesses to memory are checked."""
        lowering = self.lowering
        if lowering.watch is None:
            return pointer
        return lowering.watch.record(pointer, self.address, lowering.b.dim(self.region.record))

    def view(self, offset: DimLike, t: Array) -> View:
        """An array in the record."""
        pointer = self.within(call("tirx.reinterpret", pointer_type("uint8"), self.address))
        return View(self.region.storage, t.dtype, t.shape, self.lowering.b.dim(offset), pointer)


def _new(lowering: Any, node: Apply) -> None:
    lowering.scope.env[node] = idx(-1)


def _push(lowering: Any, node: Apply) -> None:
    tape, entry = node.args
    r = region(lowering, tape.type)
    block, b = lowering.block, lowering.b
    below = lowering.value(tape)
    values = flatten(lowering.value(entry), entry.type)
    nodes = leaf_nodes(entry, lowering.scope)
    lowering.flush_users(r.storage)
    lowering.plan.tick()
    run = run_of(lowering, node, r)
    if node is run.nodes[0]:
        _reserve(lowering, r, run)
    above = run.nodes.index(node)
    number = b.let(b.add(run.first, idx(above))) if above else run.first
    record = _Record(lowering, r, number, run.base)
    head = record.word(0, "int64")
    block.store(head, below, 0)
    block.store(head, idx(0), 1)
    for t, offset, value, made in zip(r.types, r.offsets, values, nodes, strict=True):
        if is_scalar(t):
            wide = value if t.dtype != "bool" else tirx.Cast("int8", value)
            block.store(record.word(offset, dtype_of(wide)), wide, 0)
        elif isinstance(t, Tape | Data):
            block.store(record.word(offset, "int64"), value, 0)
        elif isinstance(t, List):
            block.store(record.word(offset, "int64"), given(lowering, value, node), 0)
        elif isinstance(t, Array):
            place = record.view(offset, t)
            if made is None or not lowering.retarget(made, place, keep=True):
                lowering.flush_writers(value.storage)
                lowering.copy(value, place)
    lowering.scope.env[node] = number


def _reserve(lowering: Any, r: TapeRegion, run: Run) -> None:
    """Memory for the records of a run of pushes."""
    block, b, state = lowering.block, lowering.b, lowering.state
    run.first = b.let(state.get(r.top))
    count = idx(len(run.nodes))
    need = b.let(b.mul(b.add(run.first, count), b.dim(r.record)))
    with block.when(expect(tirx.GT(need, state.get(r.size)), False)):
        size = b.let(b.add(b.mul(need, idx(2)), idx(FIRST_BYTES)))
        old = call("tirx.reinterpret", pointer_type("uint8"), state.get(r.base))
        grown = tirx.call_extern(pointer_type("uint8"), c_function("realloc"), old, size)
        address = b.let(call("tirx.reinterpret", "int64", grown))
        with block.when(tirx.EQ(address, idx(0))):
            state.leave(NO_MEMORY)
        state.put(r.base, address)
        state.put(r.size, size)
    state.put(r.top, b.add(run.first, count))
    run.base = b.let(state.get(r.base))
    if lowering.watch is not None:
        record = b.dim(r.record)
        lowering.watch.poison(block, b.add(run.base, b.mul(run.first, record)), b.mul(count, record))


def _pop(lowering: Any, node: Apply) -> None:
    tape = node.args[0]
    r = region(lowering, tape.type)
    block, b = lowering.block, lowering.b
    lowering.flush_writers(r.storage)
    lowering.plan.tick()
    number = lowering.value(tape)
    run = run_of(lowering, node, r)
    if run.base is None:
        run.base = b.let(lowering.state.get(r.base))
    record = _Record(lowering, r, number, run.base)
    head = record.word(0, "int64")
    below = b.let(load(head, 0))
    block.store(head, idx(1), 1)
    keep = _overwritten(lowering, node, tape.type)
    values: list[Any] = []
    for t, offset in zip(r.types, r.offsets, strict=True):
        if is_scalar(t):
            if t.dtype == "bool":
                values.append(b.let(tirx.NE(load(record.word(offset, "int8"), 0), tirx.IntImm("int8", 0))))
            else:
                values.append(b.let(load(record.word(offset, t.dtype), 0)))
        elif isinstance(t, Tape | Data | List):
            values.append(b.let(load(record.word(offset, "int64"), 0)))
        elif isinstance(t, Array):
            view = record.view(offset, t)
            if keep:
                fresh = lowering.new_view(t)
                lowering.copy(view, fresh)
                view = fresh
            values.append(view)
        else:
            values.append(None)
    if node is run.nodes[-1]:
        _give_back(lowering, r, number, len(run.nodes) > 1)
    lowering.scope.env[node] = (below, unflatten(values, tape.type.elem))


def _give_back(lowering: Any, r: TapeRegion, number: Any, several: bool) -> None:
    """Lower the top below free records.

    Args:
        lowering, r: as everywhere.
        number: of the record that was popped last.
        several: whether others were popped right before; else it is mostly this one, and no other.
    """
    block, b, state = lowering.block, lowering.b, lowering.state
    more = block.local("int32", name="more")
    yes, no = tirx.IntImm("int32", 1), tirx.IntImm("int32", 0)

    def below() -> None:
        """Whether the record below the top is free as well."""
        block.store(more, no, 0)
        top = b.let(state.get(r.top))
        with block.when(tirx.GT(top, idx(0))):
            last = _Record(lowering, r, b.sub(top, idx(1)))
            with block.when(expect(tirx.NE(load(last.word(0, "int64"), 1), idx(0)), False)):
                block.store(more, yes, 0)

    if several:
        below()
        with block.while_(tirx.NE(load(more, 0), no)):
            state.put(r.top, b.sub(state.get(r.top), idx(1)))
            below()
        return
    with block.when(tirx.EQ(b.add(number, idx(1)), state.get(r.top))):
        state.put(r.top, number)
        below()
        with block.while_(tirx.NE(load(more, 0), no)):
            state.put(r.top, b.sub(state.get(r.top), idx(1)))
            below()


def _overwritten(lowering: Any, node: Apply, tape: Tape) -> bool:
    """Whether the popped record may be allocated again while its arrays are still in use."""
    scope = lowering.scope
    if not any(isinstance(t, Array) and not is_scalar(t) for t in leaves(tape.elem)):
        return False
    if isinstance(scope.caller.fn if scope.caller is not None else None, Graph):
        return True  # the results of a called function stay alive in the caller
    memo: dict = {}
    later = scope.graph.nodes[scope.position[node] + 1 :]
    return any(_pushes(n, tape, memo) for n in later)


def _pushes(node: Apply, tape: Tape, memo: dict) -> bool:
    if isinstance(node.fn, Graph):
        return _graph_pushes(node.fn, tape, memo)
    if node.fn.name == "tape_push":
        return node.args[0].type == tape
    return any(_graph_pushes(g, tape, memo) for g in node.attrs.values() if isinstance(g, Graph))


def _graph_pushes(graph: Graph, tape: Tape, memo: dict) -> bool:
    if graph not in memo:
        memo[graph] = False
        memo[graph] = any(_pushes(n, tape, memo) for n in graph.nodes)
    return memo[graph]


def reset(lowering: Any) -> list[Any]:
    """Statements for the top of the program: all regions are empty."""
    return [tirx.BufferStore(lowering.state.ints, idx(0), [idx(slots + 2)]) for slots in lowering.tape_slots.values()]


RULES = {"tape_new": _new, "tape_push": _push, "tape_pop": _pop}

__all__ = ["RULES", "TapeRegion", "region", "reset"]
