"""Ranges as values: Python's operations on a `range` other than iteration.

A range consists of its start, stop and step, each of which may be known or not. Its methods and operators are
arithmetic on these. Operations that need all of the numbers convert it to a list (`list_methods.as_list`).
"""

from __future__ import annotations

import operator
from typing import Any

from ...abstract.types import Scalar
from ...library import lists as prelude
from ...utils.errors import AttributeError_, TypeError_, nearest
from ..engine.engine import Engine
from ..engine.frames import Frame, emit
from ..values.kinds import is_range, known_range, range_parts
from ..values.treedef import describe
from ..values.values import Bound, Dyn, Iter, SliceVal, Val
from .arithmetic import arithmetic
from .lists import call_leaf, clipped_bounds, position, require

ATTRIBUTES = ("start", "stop", "step")
METHODS = ("index", "count")


async def range_operator(engine: Engine, frame: Frame, op: Any, args: list[Val]) -> Val | None:
    """`range(...)[i]`, `x in range(...)`, `range(...) == x`, `not range(...)`; None for other operators."""
    numbers, other = args[0], args[-1]
    assert is_range(numbers)
    if op is operator.not_:
        found = has_numbers(engine, frame, numbers)
        return frame.constant(not found.known_value) if found.known else emit(frame, "logical_not", found)
    if op in (operator.eq, operator.ne):
        same = await _same_numbers(engine, frame, numbers, other) if is_range(other) else frame.constant(False)
        return (
            same
            if op is operator.eq
            else frame.constant(not same.known_value)
            if same.known
            else emit(frame, "logical_not", same)
        )
    if op is operator.contains and isinstance(other, Dyn) and isinstance(other.type, Scalar):
        return await call_leaf(engine, frame, prelude.in_range, *numbers.parts, other)
    if op is not operator.getitem:
        return None
    count = await _length(engine, frame, numbers)
    start, _, step = range_parts(numbers)

    def number(place: Val) -> Dyn:
        return arithmetic(frame, operator.add, start, arithmetic(frame, operator.mul, step, place))

    if isinstance(other, SliceVal):
        first, last, stride = clipped_bounds(engine, frame, count, other)[:3]
        return Iter("range", (number(first), number(last), arithmetic(frame, operator.mul, step, stride)))
    return number(position(engine, frame, count, other, "range object index out of range"))


async def _length(engine: Engine, frame: Frame, numbers: Iter) -> Dyn:
    """`len(range(...))`."""
    return await call_leaf(engine, frame, len, numbers)


async def _same_numbers(engine: Engine, frame: Frame, a: Iter, b: Iter) -> Dyn:
    """Whether two ranges contain the same numbers."""
    count, other = [await _length(engine, frame, r) for r in (a, b)]

    def equal_numbers(x: Val, y: Val) -> Dyn:
        return arithmetic(frame, operator.eq, x, y)

    empty, single = (equal_numbers(count, frame.constant(k)) for k in (0, 1))
    steps = emit(frame, "logical_or", single, equal_numbers(a.parts[2], b.parts[2]))
    starts = emit(frame, "logical_and", equal_numbers(a.parts[0], b.parts[0]), steps)
    return emit(frame, "logical_and", equal_numbers(count, other), emit(frame, "logical_or", empty, starts))


def has_numbers(engine: Engine, frame: Frame, numbers: Iter) -> Dyn:
    """The truth value of a range."""
    if (known := known_range(numbers)) is not None:
        return frame.constant(bool(known))
    start, stop, step = range_parts(numbers)

    def compare(op: Any, a: Val, b: Val) -> Dyn:
        return arithmetic(frame, op, a, b)

    up = emit(frame, "logical_and", compare(operator.gt, step, frame.constant(0)), compare(operator.lt, start, stop))
    down = emit(frame, "logical_and", compare(operator.lt, step, frame.constant(0)), compare(operator.gt, start, stop))
    return emit(frame, "logical_or", up, down)


def range_attribute(value: Iter, name: str) -> Val:
    """`range(...).start`, and its methods.

    Raises:
        AttributeError_: ranges have no such attribute.
    """
    if name in ATTRIBUTES:
        return value.parts[ATTRIBUTES.index(name)]
    if name in METHODS:
        return Bound(value, name)
    raise AttributeError_(f"'range' object has no attribute '{name}'{nearest(name, (*ATTRIBUTES, *METHODS))}")


async def range_method(engine: Engine, frame: Frame, numbers: Iter, name: str, args: list[Val], kwargs: dict) -> Val:
    """`range(...).index(x)`, `range(...).count(x)`.

    Raises:
        TypeError_: not exactly one argument, or one that is no number.
    """
    if len(args) != 1 or kwargs:
        raise TypeError_(f"range.{name}() takes exactly one argument ({len(args) + len(kwargs)} given)")
    (x,) = args
    if not isinstance(x, Dyn) or not isinstance(x.type, Scalar):
        raise TypeError_(f"range.{name}: {describe(x)} is no number")
    there = await call_leaf(engine, frame, prelude.in_range, *numbers.parts, x)
    if name == "count":
        return arithmetic(frame, int, there)
    require(frame, there, ValueError, (0, "r", ""), " is not in range", operands=(x.node,))
    distance = arithmetic(frame, operator.sub, x, numbers.parts[0])
    return arithmetic(frame, int, arithmetic(frame, operator.floordiv, distance, numbers.parts[2]))
