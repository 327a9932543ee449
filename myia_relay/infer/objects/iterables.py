"""What a loop can iterate over: `walk` gives either the items (static length) or a `Walk`, a counted way to reach them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...abstract.types import Array
from ...ir.prim import REGISTRY
from ...library.complex_numbers import Complex
from ...utils.errors import TypeError_
from ..engine.conform import promoted
from ..engine.engine import Engine
from ..engine.frames import Frame, reach
from ..values.kinds import are_leaves, is_run_time, range_parts
from ..values.protocols import items
from ..values.treedef import describe
from ..values.values import NONE_VAL, Dyn, Iter, Seq, Static, Val
from .arithmetic import arithmetic
from .leaves import array_length, first_axis
from .lists import entry, length


@dataclass
class Walk:
    """An iteration with a counter.

    Attributes:
        start, stop, step: the values of the counter.
        item: `(frame of the body, counter) -> item`.
    """

    start: Dyn
    stop: Dyn
    step: Dyn
    item: Callable[[Frame, Dyn], Val]


def walk(engine: Engine, frame: Frame, value: Val) -> list[Val] | Walk:
    """How to iterate over a value; or its items, if their number is static.

    Raises:
        TypeError_: it is not iterable.
    """
    if isinstance(value, Seq):
        if value.kind == "dict":
            return [Static(k) for k in value.fields]
        if value.cls is Complex and are_leaves(parts := value.elems) and isinstance(parts[0].type, Array):
            if not parts[0].type.shape:
                raise TypeError_("iteration over a 0-d array")

            def number(inner: Frame, index: Dyn) -> Val:
                both = tuple(first_axis(inner, reach(frame, inner, part), index) for part in parts)
                return Seq("record", both, value.fields, value.cls)

            return Walk(frame.constant(0), array_length(frame, parts[0]), frame.constant(1), number)
        if value.kind == "dataset":
            assert are_leaves(parts := value.elems)
            images, _ = parts
            zero, one = frame.constant(0), frame.constant(1)

            def example(inner: Frame, index: Dyn) -> Val:
                entries = tuple(first_axis(inner, reach(frame, inner, e), index) for e in parts)
                return Seq("record", entries, ("x", "y"), value.cls)

            return Walk(zero, array_length(frame, images), one, example)
        return list(items(value))
    if isinstance(value, Dyn) and isinstance(value.type, Array):
        if not value.type.shape:
            raise TypeError_("iteration over a 0-d array")
        zero, one = frame.constant(0), frame.constant(1)

        def element(inner: Frame, index: Dyn) -> Val:
            return first_axis(inner, reach(frame, inner, value), index)

        return Walk(zero, array_length(frame, value), one, element)
    if is_run_time(value):

        def nth(inner: Frame, index: Dyn) -> Val:
            return entry(engine, inner, reach(frame, inner, value), index)

        return Walk(frame.constant(0), length(engine, frame, value), frame.constant(1), nth)
    if isinstance(value, Iter):
        return _walk_iter(engine, frame, value)
    if isinstance(value, Static) and isinstance(value.value, str):
        return [Static(c) for c in value.value]
    raise TypeError_(
        f"{describe(value)} is not iterable; a loop runs over range, tuples, lists, arrays, zip, enumerate, reversed"
    )


def _walk_iter(engine: Engine, frame: Frame, value: Iter) -> list[Val] | Walk:
    if value.kind == "range":
        return Walk(*range_parts(value), lambda inner, index: index)
    if value.kind == "map":
        raise TypeError_("map() cannot be gone over here; make a list of it first")
    if value.kind == "columns":
        (columns,) = value.parts

        def column(body: Frame, index: Dyn) -> Val:
            return Iter("tuple", (entry(engine, body, reach(frame, body, columns), index),))

        return Walk(frame.constant(0), length(engine, frame, columns), frame.constant(1), column)
    inner = [walk(engine, frame, p) for p in value.parts[:1] if value.kind != "zip"]
    if value.kind in ("iterator", "tuple", "dict_keys", "dict_values", "dict_items"):
        return inner[0]
    if value.kind == "enumerate":
        (steps,) = inner
        offset = value.parts[1]
        assert isinstance(offset, Dyn)
        if isinstance(steps, list):
            return [
                Seq("tuple", (_plus(engine, frame, offset, frame.constant(i)), item)) for i, item in enumerate(steps)
            ]
        count = item_count(engine, frame, steps)

        def numbered(body: Frame, index: Dyn) -> Val:
            number = _plus(engine, body, reach(frame, body, offset), index)
            return Seq("tuple", (number, steps.item(body, _nth(engine, frame, body, steps, index))))

        return Walk(frame.constant(0), count, frame.constant(1), numbered)
    if value.kind == "reversed":
        (steps,) = inner
        if isinstance(value.parts[0], Seq):
            items(value.parts[0], "__reversed__", "__len__", "__getitem__")
        if isinstance(steps, list):
            return steps[::-1]
        count = item_count(engine, frame, steps)

        def backwards(body: Frame, index: Dyn) -> Val:
            last = _minus(engine, body, reach(frame, body, count), body.constant(1))
            return steps.item(body, _nth(engine, frame, body, steps, _minus(engine, body, last, index)))

        return Walk(frame.constant(0), count, frame.constant(1), backwards)
    if value.kind == "zip":
        found = [walk(engine, frame, p) for p in value.parts]
        static = [w for w in found if isinstance(w, list)]
        if len(static) == len(found):
            return [Seq("tuple", items) for items in zip(*static, strict=False)]
        if any(isinstance(item, Static) for w in static for item in w):  # texts, and others that no run-time list has
            unrolled = _unrolled_zip(frame, found)
            if unrolled is not None:
                return unrolled
        try:
            walks = [_at_run_time(engine, frame, w) for w in found]
        except TypeError_:
            unrolled = _unrolled_zip(frame, found)
            if unrolled is None:
                raise
            return unrolled
        counts = [item_count(engine, frame, w) for w in walks]
        shortest = counts[0]
        for count in counts[1:]:
            if (
                not (shortest.known and count.known and shortest.known_value == count.known_value)
                and shortest.node is not count.node
            ):
                shortest = Dyn(frame.builder.emit(REGISTRY["minimum"], (shortest.node, count.node)))

        def together(body: Frame, index: Dyn) -> Val:
            return Seq("tuple", tuple(w.item(body, _nth(engine, frame, body, w, index)) for w in walks))

        return Walk(frame.constant(0), shortest, frame.constant(1), together)
    raise TypeError_(f"{value.kind} cannot be iterated here")


def unwrapped(value: Val) -> Val:
    """The iterable below an iterator that visits all of it; other values unchanged."""
    return value.parts[0] if isinstance(value, Iter) and value.kind == "iterator" else value


def list_of_tuple(value: Val) -> Val:
    """The run-time list that is in a tuple of run-time length; other values unchanged."""
    return value.parts[0] if isinstance(value, Iter) and value.kind == "tuple" else value


def _unrolled_zip(frame: Frame, found: list[list[Val] | Walk]) -> list[Val] | None:
    """The items of a zip in which all walks have known bounds; None for other zips."""
    if not all(bound.known for w in found if isinstance(w, Walk) for bound in (w.start, w.stop, w.step)):
        return None

    def column(steps: list[Val] | Walk) -> Iterator[Val]:
        if isinstance(steps, list):
            return iter(steps)
        places = range(steps.start.known_value, steps.stop.known_value, steps.step.known_value)
        return (steps.item(frame, frame.constant(k)) for k in places)

    return [Seq("tuple", items) for items in zip(*map(column, found), strict=False)]


def _at_run_time(engine: Engine, frame: Frame, steps: list[Val] | Walk) -> Walk:
    """Turn items of a static number into a walk, to be combined with a walk that is not static.

    Raises:
        TypeError_: the items differ in type.
    """
    if isinstance(steps, Walk):
        return steps
    if not steps:
        zero = frame.constant(0)
        return Walk(zero, zero, frame.constant(1), lambda inner, index: NONE_VAL)
    try:
        made = walk(engine, frame, promoted(frame, Seq("list", tuple(steps))))
        assert isinstance(made, Walk)
        return made
    except TypeError_ as error:
        raise TypeError_(f"zip of a tuple or list display and a run-time sequence: {error.message}") from None


def _plus(engine: Engine, frame: Frame, a: Dyn, b: Dyn) -> Dyn:
    return arithmetic(frame, operator.add, a, b)


def _minus(engine: Engine, frame: Frame, a: Dyn, b: Dyn) -> Dyn:
    return arithmetic(frame, operator.sub, a, b)


def _nth(engine: Engine, outer: Frame, body: Frame, steps: Walk, index: Dyn) -> Dyn:
    """The counter's value at iteration `index`."""
    start, step = reach(outer, body, steps.start), reach(outer, body, steps.step)
    if step.known and step.known_value == 1:
        scaled = index
    else:
        scaled = arithmetic(body, operator.mul, index, step)
    if start.known and start.known_value == 0:
        return scaled
    return arithmetic(body, operator.add, start, scaled)


def item_count(engine: Engine, frame: Frame, steps: Walk) -> Dyn:
    """The number of items of a counted walk: max(0, ceil((stop - start) / step))."""

    def op(fn: Callable, *args: Dyn) -> Dyn:
        return arithmetic(frame, fn, *args)

    if steps.start.known and steps.step.known and steps.start.known_value == 0 and steps.step.known_value == 1:
        if steps.stop.known:
            return frame.constant(max(0, steps.stop.known_value))
        zero = frame.constant(0)
        return Dyn(frame.builder.emit(REGISTRY["maximum"], (steps.stop.node, zero.node)))
    distance = op(operator.sub, steps.stop, steps.start)
    # ceil(a / b) == -(-a // b) for either sign of b
    iterations = op(operator.neg, op(operator.floordiv, op(operator.neg, distance), steps.step))

    return Dyn(frame.builder.emit(REGISTRY["maximum"], (iterations.node, frame.constant(0).node)))
