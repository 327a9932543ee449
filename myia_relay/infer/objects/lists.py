"""Run-time lists: Python's operations on lists whose length is known at run time only.

Idea: a list starts static (`Seq`). It is *promoted* to a run-time list, a leaf of type `List`, where necessary: where
branches that join or the iterations of a loop leave it with different lengths, or where it is written or built at a
run-time index or length. An argument that is a list of numbers arrives as an array (`Listed`). The operations here
accept all three forms, and index, check and slice as CPython does. Longer operations are written in Python, in
`library.lists`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.types import INT, List, Scalar, Struct
from ...ir.node import Apply, Constant, Node
from ...ir.prim import REGISTRY
from ...prims.api.promotion import bind_size, guard
from ...prims.ops.effects import check
from ...utils.errors import TypeError_, ValueError_
from ..engine.conform import LONG, common_elem, entry_node, entry_type, has_entry_type, promoted, wider_elem
from ..engine.engine import Engine
from ..engine.frames import Frame, emit, raising
from ..values.kinds import are_leaves, is_index, is_list, is_run_time
from ..values.sharing import arrays_of, lists_of
from ..values.treedef import TreeDef, describe
from ..values.values import Dyn, Listed, Seq, SliceVal, Static, Val
from .arithmetic import arithmetic
from .leaves import array_length, first_axis, from_node

NUMBERS = {int: np.int64, float: np.float64, bool: np.bool_}

# Promotion.


def keeps_static(engine: Engine) -> bool:
    """Whether a long list of known length stays static; a call of this function records that it matters."""
    engine.promotes.append(True)
    return engine.static_lists


def static_items(frame: Frame, value: Val) -> list[Val] | None:
    """The entries of a run-time list whose length is known: `[x] * 100`."""
    node = value.node if isinstance(value, Dyn) else None
    if not isinstance(node, Apply) or node.fn is not REGISTRY["list_repeat"]:
        return None
    one, count = node.args
    if not isinstance(count, Constant) or not isinstance(one, Apply) or one.fn is not REGISTRY["list_new"]:
        return None

    return [from_node(frame, e) for e in one.args] * max(0, int(count.value))


def refuse_run_time(values: list[Val], what: str, given: bool = True) -> None:
    """Refuse trees with lists of run-time length.

    Args:
        values: the trees.
        what: what they are given to.
        given: whether lists that are given as arrays are refused as well.

    Raises:
        TypeError_: there is one.
    """
    stack = list(values)
    while stack:
        value = stack.pop()
        if is_run_time(value) and (given or isinstance(value, Dyn)):
            raise TypeError_(
                f"{what} takes trees of a structure known at compile time, and the length of a {describe(value)} is known "
                "at run time only; use an array, or a tuple"
            )
        if isinstance(value, Seq):
            stack.extend(value.elems)


def refuse_run_time_result(treedef: TreeDef, what: str) -> None:
    """Refuse functions that return lists of run-time length.

    Raises:
        TypeError_: this one does.
    """
    stack = [treedef]
    while stack:
        top = stack.pop()
        if top.tag == "listed" or top.tag == "dyn" and isinstance(top.info, List):
            raise TypeError_(
                f"{what}: the function returns {treedef}, of a length that is known at run time only; return an array, or a tuple"
            )
        stack.extend(top.parts if top.tag != "sized" else ())


# Reading.


def length(engine: Engine, frame: Frame, value: Val) -> Dyn:
    """`len(xs)`."""
    if isinstance(value, Seq):
        return frame.constant(len(value.elems))
    assert is_run_time(value)
    return array_length(frame, value.array) if isinstance(value, Listed) else emit(frame, "list_len", value)


def entry(engine: Engine, frame: Frame, value: Val, index: Dyn) -> Val:
    """`xs[index]` for an index that is in range."""
    if isinstance(value, Listed):
        found = first_axis(frame, value.array, index)
        cast = {"dtype": value.array.type.dtype, "weak": True}
        return Dyn(frame.builder.emit(REGISTRY["cast"], (found.node,), cast))
    assert isinstance(value, Dyn)
    out = from_node(frame, emit(frame, "list_get", value, index).node)
    mark_entries(engine, out)
    return out


def mark_entries(engine: Engine, value: Val) -> None:
    """Mark arrays and lists that are entries of lists: they must not be changed in place, because the lists would show it."""
    engine.shared.update([*arrays_of(value), *lists_of(value)])


def as_index(engine: Engine, frame: Frame, value: Val, what: str) -> Dyn:
    """An integer as an int.

    Raises:
        TypeError_: it is none.
    """
    if not is_index(value):
        raise TypeError_(f"{what}, not {describe(value)}")
    index = arithmetic(frame, operator.index, value)
    if not index.type.weak:
        index = Dyn(frame.builder.emit(REGISTRY["cast"], (index.node,), {"dtype": "int64", "weak": True}))
    return index


def position(engine: Engine, frame: Frame, value: Val, index: Val, message: str) -> Dyn:
    """An index of a list (or of something with the length of `value`), checked and converted to one from the front."""
    i = frame.var(as_index(engine, frame, index, "list indices must be integers or slices"))
    n = frame.var(value if isinstance(value, Dyn) and not is_list(value) else length(engine, frame, value))
    where, add = REGISTRY["where"], REGISTRY["add"]
    if isinstance(i.node, Constant):
        wrapped = i if i.node.value >= 0 else add(n, i)
        inside = n > i if i.node.value >= 0 else wrapped >= 0
    else:
        wrapped = where(i < 0, add(i, n), i)
        inside = REGISTRY["logical_and"](wrapped >= 0, wrapped < n)
    frame.builder.emit(check, (inside.node,), {"exception": IndexError, "parts": (message,)})
    return Dyn(wrapped.node)


def get(engine: Engine, frame: Frame, value: Val, index: Val) -> Val:
    """`xs[index]`."""
    if isinstance(index, SliceVal):
        return sliced(engine, frame, value, index)
    i = position(engine, frame, value, index, "list index out of range")
    return entry(engine, frame, value, i)


def of_table(engine: Engine, frame: Frame, value: Seq, index: Val) -> Val | None:
    """`value[index]` for a long list of known numbers of one type, which is kept in memory as an array; None for other
    lists.

    As a run-time list, a global one of 20,000 numbers would be as many operands here, and as many stores in each call. (When the
    global changes, the program that holds its numbers is no longer used: see `engine.dependencies`.)
    """
    if value.kind != "list" or len(value.elems) <= LONG:
        return None
    if value not in engine.tables:
        engine.tables[value] = _numbers(value.elems)
    array = engine.tables[value]
    return None if array is None else get(engine, frame, Listed(frame.constant(array)), index)


def _numbers(values: tuple[Val, ...]) -> np.ndarray | None:
    """Known Python numbers of one type as an array."""
    if not are_leaves(values) or not all(v.known for v in values):
        return None
    types = {type(v.known_value) for v in values}
    kind = NUMBERS.get(types.pop()) if len(types) == 1 else None
    return None if kind is None else np.array([v.known_value for v in values], kind)


def bounds(engine: Engine, frame: Frame, value: Val, index: SliceVal) -> tuple[Dyn, Dyn, Dyn]:
    """Start, number of entries and step of a slice of a list."""
    first, _, step, count = clipped_bounds(engine, frame, length(engine, frame, value), index)
    return first, count, step


def clipped_bounds(engine: Engine, frame: Frame, size: Dyn, index: SliceVal) -> tuple[Dyn, Dyn, Dyn, Dyn]:
    """Start, stop and step of a slice of a list of given length, as `slice.indices` computes them, and the number of
    its entries.

    Raises:
        TypeError_: the step is known to be zero.
    """
    n = frame.var(size)
    where, least, most = REGISTRY["where"], REGISTRY["minimum"], REGISTRY["maximum"]
    floordiv, add = REGISTRY["floordiv"], REGISTRY["add"]

    def part(v: Val):
        if isinstance(v, Static) and v.value is None:
            return None
        return frame.var(as_index(engine, frame, v, "slice indices must be integers or None"))

    start, stop, step = part(index.start), part(index.stop), part(index.step)
    if step is None:
        step = frame.var(frame.constant(1))
    elif not isinstance(step.node, Constant):
        attrs = {"exception": ValueError, "parts": ("slice step cannot be zero",)}
        frame.builder.emit(check, (REGISTRY["ne"](step, 0).node,), attrs)
    elif step.node.value == 0:
        raise TypeError_("slice step cannot be zero")
    up = step > 0
    low = where(up, n.const(0, INT), n.const(-1, INT))
    high = where(up, n, n - 1)

    def clipped(v, default):
        if v is None:
            return default
        v = where(v < 0, add(v, n), v)
        return least(most(v, low), high)

    first = clipped(start, where(up, low, high))
    last = clipped(stop, where(up, high, low))
    distance = where(up, last - first, first - last)
    size = where(up, step, -step)
    count = most(floordiv(distance + size - 1, size), n.const(0, INT))
    return Dyn(first.node), Dyn(last.node), Dyn(step.node), Dyn(count.node)


def sliced(engine: Engine, frame: Frame, value: Val, index: SliceVal) -> Val:
    """`xs[a:b:c]`, a new list."""
    if isinstance(value, Seq) and not value.elems:
        return value
    return emit(frame, "list_slice", promoted(frame, value), *bounds(engine, frame, value, index))


def slices_statically(frame: Frame, value: Seq, index: SliceVal) -> bool:
    """Whether a slice of a structure is static: its bounds are known, or it is not a list that can be promoted."""
    parts = (index.start, index.stop, index.step)
    known = all(isinstance(p, Static) or getattr(p, "known", False) for p in parts)
    return known or value.kind != "list" or bool(value.elems) and not has_entry_type(frame, value)


# Changes: each returns the list afterwards.


def pushed(engine: Engine, frame: Frame, value: Val, new: Val) -> Val:
    """`xs.append(new)`."""
    if isinstance(value, Seq):
        return Seq("list", (*value.elems, new))
    xs = promoted(frame, value, wider_elem(frame, value, new))
    return Dyn(frame.builder.emit(REGISTRY["list_push"], (xs.node, entry_node(frame, new, xs.type.elem))))


def with_entry(engine: Engine, frame: Frame, value: Val, index: Val, new: Val) -> Val:
    """`xs[index] = new`.

    Raises:
        TypeError_: the index is a slice.
    """
    if isinstance(index, SliceVal):
        raise TypeError_("assignment to a slice of a list is not part of the language; write xs = xs[:i] + ys + xs[j:]")
    if isinstance(value, Seq) and isinstance(index, Dyn) and index.known:
        elems = list(value.elems)
        try:
            elems[operator.index(index.known_value)] = new
        except IndexError:
            return raising(frame, IndexError, "list assignment index out of range")
        return Seq("list", tuple(elems))
    if isinstance(value, Seq) and not value.elems:
        return raising(frame, IndexError, "list assignment index out of range")
    i = position(engine, frame, value, index, "list assignment index out of range")
    xs = promoted(frame, value, wider_elem(frame, value, new))
    return Dyn(frame.builder.emit(REGISTRY["list_set"], (xs.node, i.node, entry_node(frame, new, xs.type.elem))))


def concatenated(engine: Engine, frame: Frame, a: Val, b: Val) -> Val:
    """`a + b`."""
    if isinstance(a, Seq) and isinstance(b, Seq):
        return Seq("list", a.elems + b.elems)
    elem = common_elem(frame, a, b)
    xs = promoted(frame, a, elem)
    if isinstance(b, Seq):
        for e in b.elems:
            xs = Dyn(frame.builder.emit(REGISTRY["list_push"], (xs.node, entry_node(frame, e, elem))))
        return xs
    return emit(frame, "list_concat", xs, promoted(frame, b, elem))


def repeated(engine: Engine, frame: Frame, value: Val, count: Dyn) -> Val:
    """`xs * count`.

    Raises:
        TypeError_: the entries are lists, which the product would share.
    """
    if isinstance(value, Seq) and not value.elems:
        return value
    if isinstance(value, Seq) and count.known:
        n = max(0, operator.index(count.known_value))
        if len(value.elems) * n <= LONG or not has_entry_type(frame, value):
            return Seq("list", value.elems * n)
    if holds_lists(frame, value):
        raise TypeError_(
            "each entry of this product would be the same list, which CPython shows when one is changed; "
            "write a comprehension: [[...] for _ in range(n)]"
        )
    return emit(
        frame,
        "list_repeat",
        promoted(frame, value),
        as_index(engine, frame, count, "can't multiply sequence by non-int"),
    )


def holds_lists(frame: Frame, value: Val) -> bool:
    """Whether a list has entries that are, or hold, lists."""
    stack = [entry_type(frame, value)]
    while stack:
        t = stack.pop()
        if isinstance(t, List) or isinstance(t, Struct) and t.kind == "list":
            return True
        stack.extend(getattr(t, "elems", ()))
    return False


def array_of(frame: Frame, value: Val, what: str, typed: bool = False) -> Any:
    """A list as an argument of a NumPy function, staged.

    Args:
        frame, value: the list.
        what: the function.
        typed: whether the call says the dtype of the array, so that it does not follow from the entries.

    Raises:
        TypeError_: its length is known at run time only, and its entries are no numbers.
    """
    if isinstance(value, Listed):
        return frame.var(value.array)
    items = static_items(frame, value)
    if items is not None and are_leaves(items):
        return [frame.var(i) for i in items]
    if isinstance(value, Dyn) and isinstance(value.type, List) and isinstance(value.type.elem, Scalar):
        numbers = frame.var(value)
        # No entries at all make an array of floats, which one cannot be at run time.
        if value.type.elem.dtype != "float64" and not typed:
            some = REGISTRY["gt"](REGISTRY["list_len"](numbers), frame.var(frame.constant(0)))
            kind = describe(Dyn(Node(value.type.elem)))
            text = f"{what}: an empty list makes an array of floats, and this list is one of {kind}; test its length before"
            guard(frame.builder, some, ValueError_, text)
        return REGISTRY["list_to_array"](numbers, size=bind_size(frame.builder, REGISTRY["list_len"](numbers)))
    raise TypeError_(
        f"{what}: the length of this {describe(value)} is known at run time only, and only a list of numbers makes an array then; "
        "make the array with np.zeros and fill it, or pass an array"
    )


async def call(engine: Engine, frame: Frame, function: Callable, *args: Val, site: Apply | None = None) -> Val:
    """Call a function of the library. A list that it returns is new or, for a method that changes a list, that list."""
    result = await engine.call(frame, Static(function), list(args), {}, frame.builder.origin, site)
    if isinstance(result, Dyn) and isinstance(result.type, List):
        engine.shared.discard(result.node)
    return result


async def call_leaf(engine: Engine, frame: Frame, function: Callable, *args: Val) -> Dyn:
    """Call a function of the library that returns a number or an array."""
    result = await call(engine, frame, function, *args)
    assert isinstance(result, Dyn)
    return result


def require(frame: Frame, ok: Dyn, exception: type, *parts: Any, operands: tuple = ()) -> None:
    """Raise unless `ok`."""
    frame.builder.emit(check, (ok.node, *operands), {"exception": exception, "parts": parts})


def unpacked(engine: Engine, frame: Frame, value: Val, before: int, starred: bool, after: int) -> Val:
    """`a, *b, c = xs`, with CPython's errors where the length does not fit."""
    n, need = length(engine, frame, value), before + after
    count = frame.constant(need)
    few = (f"not enough values to unpack (expected {'at least ' if starred else ''}{need}, got ", (0, "", ""), ")")
    require(frame, arithmetic(frame, operator.ge, n, count), ValueError, *few, operands=(n.node,))
    if not starred:
        require(
            frame,
            arithmetic(frame, operator.le, n, count),
            ValueError,
            f"too many values to unpack (expected {need})",
        )
    parts = [entry(engine, frame, value, frame.constant(i)) for i in range(before)]
    if starred:
        rest = arithmetic(frame, operator.sub, n, count)
        bounds_ = (frame.constant(before), rest, frame.constant(1))
        parts.append(emit(frame, "list_slice", promoted(frame, value), *bounds_))
        first = arithmetic(frame, operator.sub, n, frame.constant(after))
        for i in range(after):
            parts.append(entry(engine, frame, value, arithmetic(frame, operator.add, first, frame.constant(i))))
    return Seq("tuple", tuple(parts))


__all__ = [
    "array_of",
    "concatenated",
    "get",
    "is_list",
    "is_run_time",
    "length",
    "promoted",
    "pushed",
    "repeated",
    "with_entry",
]
