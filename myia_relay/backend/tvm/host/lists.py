"""Run-time lists in native code: growable blocks with reference counts.

Idea: a list is the address of a block (`list_blocks`). Each holder owns one reference (`references`): the value of a
node until its last use, a loop's cell, a record of a tape, an entry of another list. An operation that changes a list
gets its reference if that is the last use. It changes the block in place if no other reference is left, and copies it
otherwise. `append` in a loop is therefore a store, amortised.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ....abstract.types import Array, List, NoneT, Undefined
from ....ir.node import Apply, Node
from ....opt.analysis.fusion import is_scalar
from ....utils.errors import LoweringError
from ...native.area import NO_MEMORY
from ...native.blocks import CAPACITY, COUNT, HEADER, LENGTH, NEXT
from ...native.lists import RELEASE
from ..kernels.kernel import flat_buffer, pointer_type, view_pointer
from ..plan import ITEM, View
from ..tir.block import Block, call, const, dtype_of, idx, load
from ..tir.pipeline import prim_func
from .control import flatten, unflatten
from .list_blocks import (
    MANY,
    MOST,
    Handle,
    drop,
    dup,
    dup_entries,
    int_param,
    made,
    own_function,
    plus,
    pointer,
    run,
    shared,
    words,
)
from .references import given


def owned(lowering: Any, node: Node, need: Any, at: Apply) -> Handle:
    """The list of a node for application `at` to change: a block with room for `need` entries and no other reference."""
    block, state, t = lowering.block, lowering.state, node.type
    address = given(lowering, lowering.value(node), at)
    old = Handle(lowering, address, t)
    place = block.cell(address, "list")
    ready = tirx.And(tirx.EQ(old.get(COUNT), idx(1)), tirx.LE(need, old.get(CAPACITY)))
    with block.when(tirx.Not(block.let(ready))):
        run(block, own_function(shared(lowering), t), state.address, address, need, old.record())
        block.store(place, state.get(shared(lowering).result), 0)
        with block.when(tirx.EQ(load(place, 0), idx(0))):
            state.leave(NO_MEMORY)
    return Handle(lowering, lowering.b.let(load(place, 0)), t)


def empty(lowering: Any) -> Any:
    """The address of the block of an empty list, which everybody shares."""
    return lowering.b.let(plus(lowering.state.address, idx(8 * shared(lowering).empty)))


def _store(lowering: Any, xs: Handle, place: Any, entry: Node, at: Apply) -> None:
    """Write an entry."""
    block = lowering.block
    values = flatten(lowering.value(entry), entry.type)
    for t, offset, value in zip(xs.layout.types, xs.layout.offsets, values, strict=True):
        where = plus(place, lowering.b.dim(offset))
        if is_scalar(t):
            wide = tirx.Cast("int8", value) if t.dtype == "bool" else value
            block.store(words(block, where, dtype_of(wide)), wide, 0)
        elif isinstance(t, List):
            block.store(words(block, where), given(lowering, value, at), 0)
        elif isinstance(t, Array):
            lowering.flush_writers(value.storage)
            base = call("tirx.reinterpret", pointer_type("uint8"), where)
            lowering.copy(value, View(xs.layout.storage, t.dtype, t.shape, 0, base))


def _new(lowering: Any, node: Apply) -> None:
    if not node.args:
        address = empty(lowering)
        dup(lowering.block, address)
        lowering.scope.env[node] = address
        return
    xs = made(lowering, len(node.args), node.type)
    for k, entry in enumerate(node.args):
        _store(lowering, xs, xs.entry(k), entry, node)
    xs.set(LENGTH, idx(len(node.args)))
    lowering.scope.env[node] = xs.address


def _len(lowering: Any, node: Apply) -> None:
    xs = Handle(lowering, lowering.value(node.args[0]), node.args[0].type)
    lowering.scope.env[node] = xs.get(LENGTH)


def _get(lowering: Any, node: Apply) -> None:
    block, b = lowering.block, lowering.b
    xs = Handle(lowering, lowering.value(node.args[0]), node.args[0].type)
    index = lowering.scalar(node.args[1])
    xs.inside(index)
    place = xs.entry(index)
    values: list[Any] = []
    for t, offset in zip(xs.layout.types, xs.layout.offsets, strict=True):
        where = plus(place, b.dim(offset))
        if is_scalar(t):
            if t.dtype == "bool":
                values.append(b.let(tirx.NE(load(words(block, where, "int8"), 0), tirx.IntImm("int8", 0))))
            else:
                values.append(b.let(load(words(block, where, t.dtype), 0)))
        elif isinstance(t, List):
            inner = b.let(load(words(block, where), 0))
            dup(block, inner)
            values.append(inner)
        elif isinstance(t, Array):
            fresh = lowering.new_view(t)
            base = call("tirx.reinterpret", pointer_type("uint8"), where)
            lowering.copy(View(xs.layout.storage, t.dtype, t.shape, 0, base), fresh)
            values.append(fresh)
        else:
            values.append(None)
    lowering.scope.env[node] = unflatten(values, node.type)


def _drop_entries(lowering: Any, xs: Handle, first: Any, stop: Any) -> None:
    """The lists in some entries lose a reference."""
    for offset, t in xs.layout.nested:
        with lowering.block.loop(tirx.Sub(stop, first)) as i:
            place = plus(xs.entry(plus(first, i)), idx(offset))
            inner = lowering.b.let(load(words(lowering.block, place), 0))
            drop(lowering.block, shared(lowering), lowering.state.address, inner, t)


def _count(lowering: Any, node: Node) -> Any:
    """The length of the list of a node."""
    return Handle(lowering, lowering.value(node), node.type).get(LENGTH)


def _set(lowering: Any, node: Apply) -> None:
    old, index, entry = node.args
    at = lowering.b.let(lowering.scalar(index))
    xs = owned(lowering, old, _count(lowering, old), node)
    xs.inside(at)
    _drop_entries(lowering, xs, at, plus(at, idx(1)))
    _store(lowering, xs, xs.entry(at), entry, node)
    lowering.scope.env[node] = xs.address


def _put(lowering: Any, node: Apply, index: Node | None, entry: Node) -> None:
    """A list with one more entry: before a position, or behind all."""
    at = None if index is None else lowering.b.let(lowering.scalar(index))
    count = _count(lowering, node.args[0])
    more = lowering.b.let(plus(count, idx(1)))
    xs = owned(lowering, node.args[0], more, node)
    if at is not None:
        xs.inside(at, 1)
        _move(lowering, xs, plus(at, idx(1)), at, tirx.Sub(count, at))
    _store(lowering, xs, xs.entry(count if at is None else at), entry, node)
    xs.set(LENGTH, more)
    lowering.scope.env[node] = xs.address


def _push(lowering: Any, node: Apply) -> None:
    _put(lowering, node, None, node.args[1])


def _insert(lowering: Any, node: Apply) -> None:
    _put(lowering, node, *node.args[1:])


def _truncate(lowering: Any, node: Apply) -> None:
    old, wanted = node.args
    wanted = lowering.b.let(lowering.scalar(wanted))
    count = _count(lowering, old)
    xs = owned(lowering, old, count, node)
    left = lowering.b.let(tirx.Max(tirx.Min(wanted, count), idx(0)))
    _drop_entries(lowering, xs, left, count)
    xs.set(LENGTH, left)
    lowering.scope.env[node] = xs.address


def _move(lowering: Any, xs: Handle, to: Any, source: Any, count: Any) -> None:
    """Move some entries within a list."""
    nbytes = tirx.Mul(count, xs.record())
    args = (pointer(xs.entry(to)), pointer(xs.entry(source)), nbytes)
    lowering.block.emit(tirx.Evaluate(tirx.call_extern("handle", "memmove", *args)))


def _delete(lowering: Any, node: Apply) -> None:
    old, index = node.args
    at = lowering.b.let(lowering.scalar(index))
    count = _count(lowering, old)
    xs = owned(lowering, old, count, node)
    xs.inside(at)
    _drop_entries(lowering, xs, at, plus(at, idx(1)))
    _move(lowering, xs, at, plus(at, idx(1)), tirx.Sub(tirx.Sub(count, at), idx(1)))
    xs.set(LENGTH, tirx.Sub(count, idx(1)))
    lowering.scope.env[node] = xs.address


def _concat(lowering: Any, node: Apply) -> None:
    old, other = node.args
    first, second = _count(lowering, old), _count(lowering, other)
    total = lowering.b.let(plus(first, second))
    source = lowering.value(other)
    xs = owned(lowering, old, total, node)
    start = xs.entry(first)
    nbytes = tirx.Mul(second, xs.record())
    args = (pointer(start), pointer(source, HEADER), nbytes)
    lowering.block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", *args)))
    dup_entries(lowering.block, node.type, start, second, xs.record())
    xs.set(LENGTH, total)
    lowering.scope.env[node] = xs.address


def _slice(lowering: Any, node: Apply) -> None:
    source, start, count, step = node.args
    b, block = lowering.b, lowering.block
    start, step = b.let(lowering.scalar(start)), b.let(lowering.scalar(step))
    count = b.let(tirx.Max(lowering.scalar(count), idx(0)))
    old = Handle(lowering, lowering.value(source), source.type)
    new = made(lowering, count, node.type)
    with block.when(tirx.EQ(step, idx(1))):
        nbytes = tirx.Mul(count, new.record())
        args = (pointer(new.entry(idx(0))), pointer(old.entry(start)), nbytes)
        block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", *args)))
    with block.otherwise():
        with block.loop(count) as i:
            at = plus(start, tirx.Mul(i, step))
            if (numbers := old.numbers()) is not None:
                block.store(new.numbers(), load(numbers, at), i)
            else:
                args = (pointer(new.entry(i)), pointer(old.entry(at)), new.record())
                block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", *args)))
    dup_entries(block, node.type, new.entry(idx(0)), count, new.record())
    new.set(LENGTH, count)
    lowering.scope.env[node] = new.address


def _repeat(lowering: Any, node: Apply) -> None:
    source, count = node.args
    b, block = lowering.b, lowering.block
    count = b.let(tirx.Max(lowering.scalar(count), idx(0)))
    old = Handle(lowering, lowering.value(source), source.type)
    length = old.get(LENGTH)
    huge = tirx.And(tirx.GT(length, idx(0)), tirx.GT(count, tirx.Div(idx(MOST), tirx.Max(length, idx(1)))))
    with block.when(huge):
        lowering.state.leave(NO_MEMORY)
    total = b.let(tirx.Mul(length, count))
    new = made(lowering, total, node.type)
    old_numbers, new_numbers = old.numbers(), new.numbers()
    with block.loop(count) as i:
        if new_numbers is not None:
            with block.loop(length) as k:
                block.store(new_numbers, load(old_numbers, k), plus(tirx.Mul(i, length), k))
        else:
            args = (pointer(new.entry(tirx.Mul(i, length))), pointer(old.entry(idx(0))), tirx.Mul(length, new.record()))
            block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", *args)))
    dup_entries(block, node.type, new.entry(idx(0)), total, new.record())
    new.set(LENGTH, total)
    lowering.scope.env[node] = new.address


def _from_array(lowering: Any, node: Apply) -> None:
    view = lowering.view(node.args[0])
    lowering.flush_writers(view.storage)
    lowering.plan.tick()
    lowering.plan.touch(view.storage)
    count = lowering.b.let(lowering.b.dim(view.shape[0]))
    new = made(lowering, count, node.type)
    args = (pointer(new.entry(idx(0))), view_pointer(view), tirx.Mul(count, new.record()))
    lowering.block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", *args)))
    new.set(LENGTH, count)
    lowering.scope.env[node] = new.address


def _of_records(lowering: Any, node: Apply) -> None:
    columns = [Handle(lowering, lowering.value(a), a.type) for a in node.args]
    count = columns[0].get(LENGTH)
    new, block = made(lowering, count, node.type), lowering.block

    def kept(list_: Handle) -> list[tuple[Any, Any]]:
        leaves = zip(list_.layout.types, list_.layout.offsets, strict=True)
        return [(t, offset) for t, offset in leaves if not isinstance(t, NoneT | Undefined)]

    with block.loop(count) as i:
        place, at = new.entry(i), iter(kept(new))
        for column in columns:
            source = column.entry(i)
            for t, offset in kept(column):
                _, to = next(at)
                _copy_leaf(lowering, t, plus(place, lowering.b.dim(to)), plus(source, lowering.b.dim(offset)))
    new.set(LENGTH, count)
    lowering.scope.env[node] = new.address


def _copy_leaf(lowering: Any, t: Any, to: Any, source: Any) -> None:
    """Copy a number or a list from one entry to another."""
    block = lowering.block
    dtype = "int64" if isinstance(t, List) else "int8" if t.dtype == "bool" else t.dtype
    value = block.let(load(words(block, source, dtype), 0))
    block.store(words(block, to, dtype), value, 0)
    if isinstance(t, List):
        dup(block, value)


def _of_rows(lowering: Any, node: Apply) -> None:
    lengths, entries = (Handle(lowering, lowering.value(a), a.type) for a in node.args)
    block, b = lowering.block, lowering.b
    count = lengths.get(LENGTH)
    new = made(lowering, count, node.type)
    start = block.cell(idx(0), "start")
    with block.loop(count) as i:
        size = b.let(load(lengths.numbers(), i))
        first = b.let(load(start, 0))
        row = made(lowering, size, node.type.elem)
        nbytes = tirx.Mul(size, row.record())
        args = (pointer(row.entry(idx(0))), pointer(entries.entry(first)), nbytes)
        block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", *args)))
        dup_entries(block, node.type.elem, row.entry(idx(0)), size, row.record())
        row.set(LENGTH, size)
        block.store(words(block, new.entry(i)), row.address, 0)
        block.store(start, plus(first, size), 0)
    new.set(LENGTH, count)
    lowering.scope.env[node] = new.address


def _fill(lowering: Any, xs: Handle, first: Any, stop: Any) -> None:
    """Zeros for some entries.

    Raises:
        LoweringError: the entries are lists.
    """
    if xs.layout.nested:
        raise LoweringError("the native executor does not differentiate lists of lists; use arrays")
    nbytes = tirx.Mul(tirx.Sub(stop, first), xs.record())
    zero = tirx.IntImm("int32", 0)
    lowering.block.emit(tirx.Evaluate(tirx.call_extern("handle", "memset", pointer(xs.entry(first)), zero, nbytes)))


def _resized(lowering: Any, node: Apply, count: Any) -> Handle:
    """The first argument with so many entries."""
    old = node.args[0]
    before = _count(lowering, old)
    xs = owned(lowering, old, tirx.Max(before, count), node)
    with lowering.block.when(tirx.GT(count, before)):
        _fill(lowering, xs, before, count)
    xs.set(LENGTH, count)
    return xs


def _resize(lowering: Any, node: Apply) -> None:
    count = lowering.b.let(tirx.Max(lowering.scalar(node.args[1]), idx(0)))
    lowering.scope.env[node] = _resized(lowering, node, count).address


def _at(lowering: Any, node: Apply) -> None:
    block, b = lowering.block, lowering.b
    xs = Handle(lowering, lowering.value(node.args[0]), node.args[0].type)
    index = b.let(lowering.scalar(node.args[1]))
    inside = b.let(tirx.LT(index, xs.get(LENGTH)))
    place = xs.entry(index)
    values: list[Any] = []
    for t, offset in zip(xs.layout.types, xs.layout.offsets, strict=True):
        where = plus(place, b.dim(offset))
        if is_scalar(t):
            cell = block.cell(const(0, t.dtype), "entry")
            with block.when(inside):
                block.store(cell, load(words(block, where, t.dtype), 0), 0)
            values.append(b.let(load(cell, 0)))
        elif isinstance(t, Array):
            fresh = lowering.new_view(t)
            lowering.plan.tick()
            lowering.plan.touch(fresh.storage)
            with block.when(inside):
                base = call("tirx.reinterpret", pointer_type("uint8"), where)
                lowering.copy(View(xs.layout.storage, t.dtype, t.shape, 0, base), fresh)
            with block.otherwise():
                nbytes = b.dim(t.size * ITEM[t.dtype])
                zero = tirx.IntImm("int32", 0)
                block.emit(tirx.Evaluate(tirx.call_extern("handle", "memset", view_pointer(fresh), zero, nbytes)))
            values.append(fresh)
        elif isinstance(t, List):
            raise LoweringError("the native executor does not differentiate lists of lists; use arrays")
        else:
            values.append(None)
    lowering.scope.env[node] = unflatten(values, node.type)


def _accumulate(lowering: Any, node: Apply) -> None:
    block, b = lowering.block, lowering.b
    old, index, entry = node.args
    index = b.let(lowering.scalar(index))
    more = b.let(tirx.Max(_count(lowering, old), plus(index, idx(1))))
    xs = _resized(lowering, node, more)
    place = xs.entry(index)
    values = flatten(lowering.value(entry), entry.type)
    for t, offset, value in zip(xs.layout.types, xs.layout.offsets, values, strict=True):
        where = plus(place, b.dim(offset))
        if is_scalar(t):
            buffer = words(block, where, t.dtype)
            block.store(buffer, tirx.Add(load(buffer, 0), value), 0)
        elif isinstance(t, Array):
            lowering.flush_writers(value.storage)
            lowering.plan.tick()
            lowering.plan.touch(value.storage)
            buffer, source = words(block, where, t.dtype), flat_buffer("part", t.dtype)
            block.emit(tirx.DeclBuffer(source, data=view_pointer(value)))
            with block.loop(b.dim(t.size)) as k:
                block.store(buffer, tirx.Add(load(buffer, k), load(source, k)), k)
    lowering.scope.env[node] = xs.address


def _to_array(lowering: Any, node: Apply) -> None:
    b, block, t = lowering.b, lowering.block, node.type
    xs = Handle(lowering, lowering.value(node.args[0]), node.args[0].type)
    target = lowering.allocate(node)
    lowering.flush_users(target.storage)
    lowering.plan.tick()
    lowering.plan.touch(target.storage)
    nbytes, zero = b.dim(t.size * ITEM[t.dtype]), tirx.IntImm("int32", 0)
    block.emit(tirx.Evaluate(tirx.call_extern("handle", "memset", view_pointer(target), zero, nbytes)))
    given_ = tirx.Mul(xs.get(LENGTH), xs.record())
    args = (view_pointer(target), pointer(xs.entry(idx(0))), tirx.Min(given_, nbytes))
    block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", *args)))
    lowering.scope.env[node] = target


def reset(lowering: Any) -> list[Any]:
    """Statements for the top of the program: the empty list's block; what a failed call has left is freed."""
    if lowering.lists is None:
        return []
    block, lists = Block(), lowering.lists
    ints = lowering.state.ints
    block.store(ints, idx(MANY), lists.empty + COUNT)
    _free_chain(block, lists, ints)
    return [block.stmt()]


def _free_chain(block: Block, lists: Any, ints: Any) -> None:
    """Free all blocks of a chain."""
    with block.while_(tirx.NE(load(ints, lists.head), idx(0))):
        address = block.let(load(ints, lists.head))
        block.store(ints, load(words(block, address), NEXT), lists.head)
        block.emit(tirx.Evaluate(tirx.call_extern("int32", "free", pointer(address))))


def release(lowering: Any) -> Any:
    """The function of the state area's address that frees the blocks of a call whose results have been read."""
    area, block = int_param("area"), Block()
    ints = words(block, area)
    _free_chain(block, shared(lowering), ints)
    return prim_func([area], block.stmt(), noalias=False).with_attr("global_symbol", RELEASE)


RULES = {
    "list_new": _new,
    "list_len": _len,
    "list_get": _get,
    "list_set": _set,
    "list_push": _push,
    "list_truncate": _truncate,
    "list_insert": _insert,
    "list_delete": _delete,
    "list_concat": _concat,
    "list_slice": _slice,
    "list_repeat": _repeat,
    "list_from_array": _from_array,
    "list_of_records": _of_records,
    "list_of_rows": _of_rows,
    "list_at": _at,
    "list_resize": _resize,
    "list_accumulate": _accumulate,
    "list_to_array": _to_array,
}

__all__ = ["RULES", "empty", "reset"]
