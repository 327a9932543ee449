"""Ranges as values: what Python does to a `range` beside running over it.

A range is its start, stop and step, of which each may be known or not. Its methods and operators are arithmetic on these; what
looks at all of the numbers takes it as a list (`list_methods.as_list`).
"""

from __future__ import annotations

import builtins
import operator
from typing import Any

from ...abstract.types import Scalar
from ...library import lists as prelude
from ...prims.ops.effects import check
from ...utils.errors import AttributeError_, TypeError_, nearest
from ..engine.engine import Engine
from ..engine.frames import Frame, emit
from ..values.treedef import describe
from ..values.values import Bound, Dyn, Iter, SliceVal, Static, Val
from .calls import call_value, operate, special
from .list_methods import call, not_, require
from .lists import clipped_bounds, position

ATTRIBUTES = ("start", "stop", "step")
METHODS = ("index", "count")


def is_range(value: Val) -> bool:
    """Whether a value is a range."""
    return isinstance(value, Iter) and value.kind == "range"


@special(builtins.range)
async def range_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`range(stop)`, `range(start, stop)`, `range(start, stop, step)`."""
    for arg in args:
        ok = (
            isinstance(arg, Dyn)
            and isinstance(arg.type, Scalar)
            and arg.type.dtype.lstrip("u").startswith(("int", "bool"))
        )
        if not ok:
            raise TypeError_(f"range: {describe(arg)} cannot be interpreted as an integer")
    parts = [operate(engine, frame, operator.index, [a]) for a in args]
    zero, one = frame.constant(0), frame.constant(1)
    start, stop, step = (zero, parts[0], one) if len(parts) == 1 else (*parts, one) if len(parts) == 2 else parts
    if step.known:
        if step.node.value == 0:
            raise TypeError_("range() arg 3 must not be zero")
    else:
        ok = operate(engine, frame, operator.ne, [step, zero])
        attrs = {"exception": ValueError, "parts": ("range() arg 3 must not be zero",)}
        frame.builder.emit(check, (ok.node,), attrs)
    return Iter("range", (start, stop, step))


async def range_operator(engine: Engine, frame: Frame, op: Any, args: list[Val]) -> Val | None:
    """`range(...)[i]`, `x in range(...)`, `range(...) == x`, `not range(...)`; None for other operators."""
    numbers, other = args[0], args[-1]
    if op is operator.not_:
        found = has_numbers(engine, frame, numbers)
        return frame.constant(not found.node.value) if found.known else not_(frame, found)
    if op in (operator.eq, operator.ne):
        same = await _same_numbers(engine, frame, numbers, other) if is_range(other) else frame.constant(False)
        return same if op is operator.eq else frame.constant(not same.node.value) if same.known else not_(frame, same)
    if op is operator.contains and isinstance(other, Dyn) and isinstance(other.type, Scalar):
        return await call(engine, frame, prelude.in_range, *numbers.parts, other)
    if op is not operator.getitem:
        return None
    count = await _length(engine, frame, numbers)
    start, _, step = numbers.parts

    def number(place: Val) -> Dyn:
        return operate(engine, frame, operator.add, [start, operate(engine, frame, operator.mul, [step, place])])

    if isinstance(other, SliceVal):
        first, last, stride = clipped_bounds(engine, frame, count, other)[:3]
        return Iter("range", (number(first), number(last), operate(engine, frame, operator.mul, [step, stride])))
    return number(position(engine, frame, count, other, "range object index out of range"))


async def _length(engine: Engine, frame: Frame, numbers: Val) -> Dyn:
    """`len(range(...))`."""
    return await call_value(engine, frame, Static(len), [numbers], {}, frame.builder.origin, None)


async def _same_numbers(engine: Engine, frame: Frame, a: Val, b: Val) -> Dyn:
    """Whether two ranges have the same numbers."""
    count, other = [await _length(engine, frame, r) for r in (a, b)]

    def equal_numbers(x: Val, y: Val) -> Dyn:
        return operate(engine, frame, operator.eq, [x, y])

    empty, single = (equal_numbers(count, frame.constant(k)) for k in (0, 1))
    steps = emit(frame, "logical_or", single, equal_numbers(a.parts[2], b.parts[2]))
    starts = emit(frame, "logical_and", equal_numbers(a.parts[0], b.parts[0]), steps)
    return emit(frame, "logical_and", equal_numbers(count, other), emit(frame, "logical_or", empty, starts))


def has_numbers(engine: Engine, frame: Frame, numbers: Val) -> Dyn:
    """The truth value of a range."""
    start, stop, step = numbers.parts
    if all(p.known for p in numbers.parts):
        return frame.constant(bool(range(start.node.value, stop.node.value, step.node.value)))

    def compare(op: Any, a: Val, b: Val) -> Dyn:
        return operate(engine, frame, op, [a, b])

    up = emit(frame, "logical_and", compare(operator.gt, step, frame.constant(0)), compare(operator.lt, start, stop))
    down = emit(frame, "logical_and", compare(operator.lt, step, frame.constant(0)), compare(operator.gt, start, stop))
    return emit(frame, "logical_or", up, down)


def range_attribute(value: Iter, name: str) -> Val:
    """`range(...).start`, and its methods."""
    if name in ATTRIBUTES:
        return value.parts[ATTRIBUTES.index(name)]
    if name in METHODS:
        return Bound(value, name)
    raise AttributeError_(f"'range' object has no attribute '{name}'{nearest(name, (*ATTRIBUTES, *METHODS))}")


async def range_method(engine: Engine, frame: Frame, numbers: Iter, name: str, args: list[Val], kwargs: dict) -> Val:
    """`range(...).index(x)`, `range(...).count(x)`."""
    if len(args) != 1 or kwargs:
        raise TypeError_(f"range.{name}() takes exactly one argument ({len(args) + len(kwargs)} given)")
    (x,) = args
    if not isinstance(x, Dyn) or not isinstance(x.type, Scalar):
        raise TypeError_(f"range.{name}: {describe(x)} is no number")
    there = await call(engine, frame, prelude.in_range, *numbers.parts, x)
    if name == "count":
        return operate(engine, frame, int, [there])
    require(frame, there, ValueError, (0, "r", ""), " is not in range", operands=(x.node,))
    distance = operate(engine, frame, operator.sub, [x, numbers.parts[0]])
    return operate(engine, frame, int, [operate(engine, frame, operator.floordiv, [distance, numbers.parts[2]])])
