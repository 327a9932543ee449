"""Intervals of integers: the range of an operation's result from the ranges of its operands.

An interval is a pair `(low, high)` of Python ints, both inclusive; a bool is an interval within (0, 1). `TRANSFER` has
for each primitive a function of its operands' intervals. It may return bounds outside the dtype, if the operation can
wrap: `clip` replaces these by the whole range of the dtype.

Source: P. Cousot, R. Cousot, "Abstract interpretation" (POPL 1977); W. Harrison, "Compiler analysis of the value ranges
for variables" (IEEE TSE 1977); H. Warren, "Hacker's Delight", chapter 4, for the logical operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.types import INTS, Array, Scalar, Type

Interval = tuple[int, int]
FALSE, TRUE, EITHER = (0, 0), (1, 1), (0, 1)
_LIMITS: dict[str, Interval] = {"bool": EITHER}
for _name in INTS:
    _bits = int(_name.lstrip("uint"))
    _LIMITS[_name] = (0, (1 << _bits) - 1) if _name.startswith("u") else (-(1 << _bits - 1), (1 << _bits - 1) - 1)


def limits(t: Type) -> Interval | None:
    """The interval of all values of a type; None if the type is no integer or bool scalar."""
    if isinstance(t, Scalar) or (isinstance(t, Array) and t.shape == ()):
        return _LIMITS.get(t.dtype)
    return None


def of_value(value: Any) -> Interval | None:
    """The interval of a constant."""
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if isinstance(value, bool | int | np.integer | np.bool_):
        return int(value), int(value)
    return None


def join(a: Interval, b: Interval) -> Interval:
    """The smallest interval that contains both."""
    return min(a[0], b[0]), max(a[1], b[1])


def meet(a: Interval, b: Interval) -> Interval | None:
    """The intersection; None if it is empty."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else None


def within(a: Interval, b: Interval) -> bool:
    """Whether all of `a` is in `b`."""
    return b[0] <= a[0] and a[1] <= b[1]


def clip(a: Interval, t: Type) -> Interval | None:
    """The interval of a result that may wrap: the whole dtype if a bound is outside."""
    whole = limits(t)
    return a if whole is None or within(a, whole) else whole


def add(x: Interval, y: Interval) -> Interval:
    """x + y."""
    return x[0] + y[0], x[1] + y[1]


def sub(x: Interval, y: Interval) -> Interval:
    """x - y."""
    return x[0] - y[1], x[1] - y[0]


def mul(x: Interval, y: Interval) -> Interval:
    """x * y: the extremes are at corners."""
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def floordiv(x: Interval, y: Interval) -> Interval | None:
    """Division by zero gives 0 in the IR (a check precedes it); for other divisors it is monotone on each side."""
    out = (0, 0) if y[0] <= 0 <= y[1] else None
    for low, high in ((y[0], min(y[1], -1)), (max(y[0], 1), y[1])):
        if low <= high:
            corners = [a // b for a in x for b in (low, high)]
            part = (min(corners), max(corners))
            out = part if out is None else join(out, part)
    return out


def mod(x: Interval, y: Interval) -> Interval:
    """The result has the sign of the divisor; what is smaller than the divisor is its own remainder."""
    low, high = min(0, y[0] + 1), max(0, y[1] - 1)
    if x[0] >= 0 and y[0] >= 0:
        low, high = x[0] if x[1] < y[0] else 0, min(high, x[1])
    return low, high


def bitwise_and(x: Interval, y: Interval) -> Interval | None:
    """x & y: for operands that are not negative, at most either of them."""
    if x[0] >= 0 and y[0] >= 0:
        return 0, min(x[1], y[1])
    if x[0] >= 0 or y[0] >= 0:
        return 0, x[1] if x[0] >= 0 else y[1]
    return None


def _ones(x: int) -> int:
    return (1 << x.bit_length()) - 1


def bitwise_or(x: Interval, y: Interval) -> Interval | None:
    """x | y, for operands that are not negative."""
    if x[0] >= 0 and y[0] >= 0:
        return max(x[0], y[0]), _ones(max(x[1], y[1]))
    return None


def bitwise_xor(x: Interval, y: Interval) -> Interval | None:
    """x ^ y, for operands that are not negative."""
    return (0, _ones(max(x[1], y[1]))) if x[0] >= 0 and y[0] >= 0 else None


def left_shift(x: Interval, y: Interval) -> Interval | None:
    """x << y."""
    if y[0] < 0 or y[1] > 64:
        return None
    return mul(x, (1 << y[0], 1 << y[1]))


def right_shift(x: Interval, y: Interval) -> Interval | None:
    """x >> y: the extremes are at corners."""
    if y[0] < 0:
        return None
    corners = [a >> b for a in x for b in y]
    return min(corners), max(corners)


def neg(x: Interval) -> Interval:
    """-x."""
    return -x[1], -x[0]


def absolute(x: Interval) -> Interval:
    """|x|."""
    return max(0, x[0], -x[1]), max(-x[0], x[1])


def where(c: Interval, x: Interval, y: Interval) -> Interval:
    """The union of both, or the one that is selected."""
    return x if c == TRUE else y if c == FALSE else join(x, y)


def truth(yes: bool, no: bool) -> Interval:
    """The truth value of a condition that is known to hold, known not to hold, or unknown."""
    return TRUE if yes else FALSE if no else EITHER


def lt(x: Interval, y: Interval) -> Interval:
    """x < y."""
    return truth(x[1] < y[0], x[0] >= y[1])


def le(x: Interval, y: Interval) -> Interval:
    """x <= y."""
    return truth(x[1] <= y[0], x[0] > y[1])


def eq(x: Interval, y: Interval) -> Interval:
    """x == y."""
    return truth(x[0] == x[1] == y[0] == y[1], x[1] < y[0] or y[1] < x[0])


def logical_not(x: Interval) -> Interval:
    """not x."""
    return 1 - x[1], 1 - x[0]


def _minmax(f: Callable) -> Callable:
    return lambda x, y: (f(x[0], y[0]), f(x[1], y[1]))


def _overflows(f: Callable) -> Callable:
    whole = _LIMITS["int64"]
    return lambda x, y: truth(meet(f(x, y), whole) is None, within(f(x, y), whole))


TRANSFER: dict[str, Callable[..., Interval | None]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "neg": neg,
    "abs": absolute,
    "floordiv": floordiv,
    "mod": mod,
    "bitwise_and": bitwise_and,
    "bitwise_or": bitwise_or,
    "bitwise_xor": bitwise_xor,
    "bitwise_not": lambda x: (~x[1], ~x[0]),
    "left_shift": left_shift,
    "right_shift": right_shift,
    "minimum": _minmax(min),
    "maximum": _minmax(max),
    "where": where,
    "lt": lt,
    "le": le,
    "gt": lambda x, y: lt(y, x),
    "ge": lambda x, y: le(y, x),
    "eq": eq,
    "ne": lambda x, y: logical_not(eq(x, y)),
    "logical_not": logical_not,
    "logical_and": _minmax(min),
    "logical_or": _minmax(max),
    "logical_xor": lambda x, y: logical_not(eq(x, y)),
    "add_overflows": _overflows(add),
    "sub_overflows": _overflows(sub),
    "mul_overflows": _overflows(mul),
    "as_scalar": lambda x: x,
    "as_array": lambda x: x,
    "reshape": lambda x: x,
    "stop_gradient": lambda x: x,
}


def operands_of(name: str, x: Interval, y: Interval, whole: Interval) -> tuple[Interval | None, Interval | None]:
    """The operands' intervals that remain if a sum, difference or product does not leave `whole`; None if nothing is
    gained.
    """
    low, high = whole
    if name == "add_overflows":
        return (low - y[1], high - y[0]), (low - x[1], high - x[0])
    if name == "sub_overflows":
        return (low + y[0], high + y[1]), (x[0] - high, x[1] - low)
    return _factor(y, whole), _factor(x, whole)


def _factor(other: Interval, whole: Interval) -> Interval | None:
    """The interval of a factor, if the other one is never 0 and has one sign."""
    if other[0] <= 0 <= other[1]:
        return None
    least = other[0] if other[0] > 0 else other[1]  # of its absolute values
    bounds = (-(-whole[0] // least), whole[1] // least) if least > 0 else (-(-whole[1] // least), whole[0] // least)
    return bounds


def compared(name: str, x: Interval, y: Interval) -> tuple[Interval | None, Interval | None]:
    """The operands' intervals that remain if a comparison holds; None if it cannot hold."""
    if name == "lt":
        return meet(x, (x[0], y[1] - 1)), meet(y, (x[0] + 1, y[1]))
    if name == "le":
        return meet(x, (x[0], y[1])), meet(y, (x[0], y[1]))
    if name == "eq":
        return meet(x, y), meet(x, y)
    return _without(x, y), _without(y, x)


def _without(x: Interval, y: Interval) -> Interval | None:
    """x != y: a single value is removed at an end."""
    value, last = y
    if value != last:
        return x
    low, high = x[0] + (x[0] == value), x[1] - (x[1] == value)
    return (low, high) if low <= high else None
