"""Algebraic data types natively: tagged references to records in a heap that only grows.

Idea: a reference is one word. Its low bits are the number of the variant, 0 for None alone; the others are the address
of the record. Testing for a variant therefore reads no memory, and the address of a field is the reference plus a
constant. A variant without fields is its number and takes no memory. Records are immutable and are allocated by moving
the top of the heap. If no record of a loop iteration or of a function can escape, the top is reset afterwards (`mark`,
`release`). Python owns the heap (`native/heap.py`); `native/records.py` has the layout of the leaves.

Input: applications of the primitives of `prims.ops.data`. Output: statements.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ....abstract.family import Variant
from ....abstract.types import Array, Data, List, NoneT, Tape, Type, leaves
from ....ir.node import Apply, Graph
from ....opt.analysis.fusion import is_scalar
from ....prims.ops.data import variant_of
from ....utils.errors import LoweringError
from ...native.area import NO_MEMORY
from ...native.records import END, LIMIT, SLOTS, TOP, alignment, layout
from ..kernels.kernel import flat_buffer, pointer_type
from ..plan import View
from ..tir.block import call, dtype_of, idx, load


def slots(lowering: Any) -> int:
    """The first of the slots of the heap, one heap for the whole program."""
    root = lowering.calls.lowering if lowering.calls is not None else lowering
    if root.heap is None:
        root.heap = root.state.slot(SLOTS)
        root.state.needed = True
    return root.heap


def _word(lowering: Any, address: Any, offset: int, dtype: str, tag: int, size: int) -> Any:
    """A buffer over a leaf of a record of some size.

    Args:
        lowering: the walk.
        address: a reference to it, which is its address and `tag`.
        offset: of the leaf, from there.
        dtype: of the leaf.
        tag, size: see above.
    """
    buffer = flat_buffer("record", dtype)
    at = lowering.b.add(address, idx(offset)) if offset else address
    pointer = _within(lowering, call("tirx.reinterpret", pointer_type(dtype), at), address, tag, size)
    lowering.block.emit(tirx.DeclBuffer(buffer, data=pointer))
    return buffer


def _within(lowering: Any, pointer: Any, address: Any, tag: int, size: int) -> Any:
    """A pointer into a record, which knows the record's ends where accesses to memory are checked."""
    if lowering.watch is None:
        return pointer
    return lowering.watch.record(pointer, tirx.Sub(address, idx(tag)), size)


def _view(lowering: Any, address: Any, offset: int, t: Array, tag: int, size: int) -> View:
    if lowering.records is None:
        lowering.records = lowering.storage("heap", 0, "heap")
    pointer = _within(lowering, call("tirx.reinterpret", pointer_type("uint8"), address), address, tag, size)
    return View(lowering.records, t.dtype, t.shape, offset, pointer)


def allocate(lowering: Any, size: int, unit: int) -> Any:
    """The address of a new record, a multiple of `unit`."""
    block, b, state, first = lowering.block, lowering.b, lowering.state, slots(lowering)
    address = b.let(state.get(first + TOP))
    if unit > 8:  # the data below may be of a family with fewer variants
        address = b.let(tirx.BitwiseAnd(b.add(address, idx(unit - 1)), idx(-unit)))
    top = b.let(b.add(address, idx(size)))
    with block.when(tirx.GT(top, state.get(first + END))):
        with block.when(tirx.GT(top, state.get(first + LIMIT))):
            state.leave(NO_MEMORY)
        state.put(first + END, state.get(first + LIMIT))
    state.put(first + TOP, top)
    if lowering.watch is not None:
        lowering.watch.poison(block, address, size)
    return address


def _make(lowering: Any, node: Apply) -> None:
    t, number = node.attrs["type"], node.attrs["variant"]
    variant: Variant = variant_of(t, number)
    offsets, size = layout(t.family, number)
    if size == 0:
        lowering.scope.env[node] = idx(number)
        return
    values = [lowering.value(a) for a in node.args]
    for value in values:
        if isinstance(value, View):
            lowering.flush_writers(value.storage)
    block = lowering.block
    address = allocate(lowering, size, alignment(t.family))
    for leaf, offset, value in zip(variant.leaves, offsets, values, strict=True):
        if is_scalar(leaf):
            wide = value if leaf.dtype != "bool" else tirx.Cast("int8", value)
            block.store(_word(lowering, address, offset, dtype_of(wide), 0, size), wide, 0)
        elif isinstance(leaf, Array):
            lowering.copy(value, _view(lowering, address, offset, leaf, 0, size))
        elif not isinstance(leaf, NoneT):
            raise LoweringError(f"the native executor cannot keep a value of type {leaf} in a {variant.cls.__name__}")
    lowering.scope.env[node] = block.let(lowering.b.add(address, idx(number)))


def _is(lowering: Any, node: Apply) -> None:
    value, family = lowering.scalar(node.args[0]), node.attrs["type"].family
    numbers = node.attrs["variants"]
    everything = {v.number for v in family.variants}
    if set(numbers) - {0} == everything:
        found = tirx.NE(value, idx(0)) if 0 not in numbers else tirx.EQ(value, value)
    else:
        tag = tirx.BitwiseAnd(value, idx(alignment(family) - 1))
        found = None
        for number in numbers:
            # The low bits are 0 for None alone.
            hit = tirx.EQ(tag, idx(number))
            found = hit if found is None else tirx.Or(found, hit)
    lowering.scope.env[node] = lowering.named(found)


def _field(lowering: Any, node: Apply) -> None:
    t, number, index = (node.attrs[k] for k in ("type", "variant", "index"))
    leaf = variant_of(t, number).leaves[index]
    offsets, size = layout(t.family, number)
    offset = offsets[index] - number
    value, block = lowering.scalar(node.args[0]), lowering.block
    if lowering.watch is not None and size:
        tag = tirx.BitwiseAnd(value, idx(alignment(t.family) - 1))
        lowering.watch.inside(block, "variant's field, of variant", tag, number + 1, number)
    if is_scalar(leaf):
        if leaf.dtype == "bool":
            found = tirx.NE(load(_word(lowering, value, offset, "int8", number, size), 0), tirx.IntImm("int8", 0))
        else:
            found = load(_word(lowering, value, offset, leaf.dtype, number, size), 0)
        lowering.scope.env[node] = block.let(found)
    elif isinstance(leaf, Array):
        lowering.scope.env[node] = _view(lowering, lowering.named(value), offset, leaf, number, size)
    else:
        lowering.scope.env[node] = None


def _as(lowering: Any, node: Apply) -> None:
    lowering.scope.env[node] = lowering.value(node.args[0])


def _same(lowering: Any, node: Apply) -> None:
    lowering.scope.env[node] = lowering.named(tirx.EQ(lowering.scalar(node.args[0]), lowering.scalar(node.args[1])))


# --- giving memory back -----------------------------------------------------------------------------------------------


def holds_data(t: Type) -> bool:
    """Whether a value of a type refers to records."""
    return any(isinstance(leaf, Data) or isinstance(leaf, Tape | List) and holds_data(leaf.elem) for leaf in leaves(t))


class Makers:
    """Which graphs make records, through the graphs that they run; memoised."""

    def __init__(self) -> None:
        self.memo: dict[Graph, bool] = {}

    def __call__(self, graph: Graph) -> bool:
        if graph not in self.memo:
            from ....ir.rewrite import all_graphs

            self.memo[graph] = any(
                getattr(n.fn, "name", "") == "data_make" and n.args for g in all_graphs(graph) for n in g.nodes
            )
        return self.memo[graph]


def mark(lowering: Any, graph: Graph, result: Type) -> Any:
    """Before a graph runs: the top of the heap, where what it makes can be thrown away behind it, else None."""
    if holds_data(result) or not lowering.makers(graph):
        return None
    return lowering.b.let(lowering.state.get(slots(lowering) + TOP))


def release(lowering: Any, top: Any) -> None:
    """After it: throw away what it made."""
    if top is not None:
        if lowering.watch is not None:
            behind = tirx.Sub(lowering.state.get(slots(lowering) + TOP), top)
            lowering.watch.poison(lowering.block, top, behind)
        lowering.state.put(slots(lowering) + TOP, top)


RULES = {"data_make": _make, "data_is": _is, "data_field": _field, "data_as": _as, "data_same": _same}

__all__ = ["RULES", "Makers", "holds_data", "mark", "release", "slots"]
