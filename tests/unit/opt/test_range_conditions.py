"""Range analysis by brute force: what conditions leave of all 256 values of a byte, and what loops make of their indices."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from myia_relay.abstract.types import BOOL, INT, Scalar
from myia_relay.backend.interpreter import run
from myia_relay.ir.build import Var
from myia_relay.opt.analysis.ranges import analyse
from tests.typed_graphs import apply, build, cond, for_

BYTE = Scalar("int8")
ALL = range(-128, 128)
WHOLE = (-128, 127)


def hull(values):
    """The least interval around some numbers; None for none."""
    values = list(values)
    return (min(values), max(values)) if values else None


def as_(x, dtype):
    return apply("cast", x, dtype=dtype, weak=False)


def both(a, b):
    return apply("logical_and", a, b)


def either(a, b):
    return apply("logical_or", a, b)


def negated(a):
    return apply("logical_not", a)


def wide(x):
    return as_(x, "int64")


def never(x):
    return x < x.const(-128)


def always(x):
    return x >= x.const(-128)


def weak(x):
    return apply("cast", x, dtype="int64", weak=True)


HULLS = [
    *(
        lambda x, op=op, n=n: apply(op, x, x.const(n))
        for op in ("lt", "le", "gt", "ge", "eq")
        for n in (-128, -3, 0, 127)
    ),
    *(lambda x, op=op, n=n: apply(op, x.const(n), x) for op in ("lt", "le", "gt", "ge", "eq") for n in (-128, 5, 127)),
    *(lambda x, n=n: apply("ne", x, x.const(n)) for n in (-128, 127)),
    lambda x: both(x > 3, x < 9),
    lambda x: both(negated(x < 3), negated(negated(x < 50))),
    lambda x: wide(x) < 5,
    lambda x: wide(x) >= 5,
    lambda x: wide(wide(x)) > 3,
    lambda x: weak(x) + 3 < 5,
    lambda x: weak(x) - 3 >= 5,
    lambda x: (weak(x) + 3) - 10 <= 5,
    lambda x: as_(x < 3, "bool"),
    lambda x: x < apply("add", x.const(5), x.const(3)),
]
"""Conditions of a byte of which the analysis finds the very bounds, where they hold and where they do not."""

LOOSE = [
    # The sum wraps: -128 is what 100 and 28 are together.
    (lambda x: x + x.const(100) < x.const(-100), WHOLE, WHOLE),
    (lambda x: x - x.const(100) > x.const(100), WHOLE, WHOLE),
    (lambda x: as_(x, "uint8") < as_(x.const(5), "uint8"), WHOLE, WHOLE),
    (lambda x: as_(x, "float64") < 5.0, WHOLE, WHOLE),
    (lambda x: weak(as_(x, "float64")) < 5, WHOLE, WHOLE),
    (lambda x: apply("ne", x, x.const(5)), WHOLE, (5, 5)),
    (lambda x: apply("eq", x, x.const(5)), (5, 5), WHOLE),
    (lambda x: either(x > 3, x < 9), WHOLE, (-128, 3)),  # nothing is left: any bounds will do
    (lambda x: either(x < 3, x < 9), WHOLE, (9, 127)),
    (lambda x: negated(either(x > 100, x < 90)), (90, 100), WHOLE),
    (lambda x: negated(both(x > 9, x > 8)), WHOLE, (10, 127)),
    (lambda x: as_(as_(x < 3, "int64"), "bool"), WHOLE, WHOLE),
    (lambda x: as_(x < 3, "int64") > 0, WHOLE, WHOLE),
    (lambda x: cond(x < 3, lambda y: y > -9, never, x), (-8, 2), WHOLE),
    (lambda x: cond(x < 3, never, lambda y: y > 9, x), (10, 127), WHOLE),
    (lambda x: cond(x < 3, always, lambda y: y > 9, x), WHOLE, (3, 9)),
    (lambda x: cond(x < 3, lambda y: y < -9, always, x), WHOLE, (-9, 2)),
    (lambda x: cond(x < 3, lambda y: negated(both(y > -9, y < 9)), never, x), (-128, 2), WHOLE),
    (lambda x: cond(x < 3, lambda y: both(y > -9, y < 1), never, x), (-8, 0), WHOLE),
    (lambda x: cond(x < 3, never, never, x), None, WHOLE),
    (lambda x: cond(x < 3, never, always, x), (3, 127), (-128, 2)),
    (lambda x: cond(x < 3, always, never, x), (-128, 2), (3, 127)),
    (lambda x: either(x < 3, x > 9), WHOLE, (3, 9)),
    (lambda x: both(x < 3, x < 9), (-128, 2), WHOLE),
    (lambda x: apply("logical_xor", x < 3, x < 9), WHOLE, WHOLE),
    (lambda x: cond(x < 3, lambda y: y > -9, lambda y: y < 9, x), WHOLE, WHOLE),
    (lambda x: cond(x < 3, lambda y: y > -9, lambda y: y > 9, x), WHOLE, WHOLE),
    (lambda x: x * x.const(2) < x.const(10), WHOLE, WHOLE),
    (lambda x: x.const(5) - x < x.const(3), WHOLE, WHOLE),
    (lambda x: as_(x, "bool"), WHOLE, WHOLE),
]
"""Others: what is found where they hold, and where they do not."""


def branches(condition):
    """What is known of a byte in both branches of a condition."""
    graph = build(lambda x: cond(condition(x), lambda y: y + y.const(0), lambda y: y + y.const(0), x), BYTE)
    ranges, attrs = analyse(graph), graph.output.attrs
    return tuple(ranges.parameters.get(attrs[name].params[0]) for name in ("then", "orelse"))


def hulls(condition):
    graph = build(condition, BYTE)
    with np.errstate(all="ignore"):
        holds = {n: bool(run(graph, [np.int8(n)])) for n in ALL}
    return hull(n for n in ALL if holds[n]), hull(n for n in ALL if not holds[n])


@pytest.mark.parametrize("condition", [pytest.param(f, id=str(k)) for k, f in enumerate(HULLS)])
def test_what_a_condition_leaves(condition):
    assert branches(condition) == hulls(condition)


@pytest.mark.parametrize(("condition", "holds", "fails"), [pytest.param(*c, id=str(k)) for k, c in enumerate(LOOSE)])
def test_what_a_condition_does_not_tell(condition, holds, fails):
    assert branches(condition) == (holds, fails)
    for found, want in zip((holds, fails), hulls(condition)):
        assert want is None or found[0] <= want[0] and want[1] <= found[1]


# --- loops ------------------------------------------------------------------------------------------------------------------

RANGES = [(0, 9, 1), (3, 4, 1), (0, 9, 2), (0, 9, 4), (9, 0, -1), (9, 0, -2), (7, -8, -3), (-5, 6, 1), (2, 60, 7)]
IMPLEMENTATIONS = {
    "minimum": min, "maximum": max, "floordiv": operator.floordiv, "right_shift": operator.rshift,
}  # fmt: skip


def on(name, x, y):
    """An operation of numbers, or of staged ones."""
    return apply(name, x, y) if isinstance(x, Var) or isinstance(y, Var) else IMPLEMENTATIONS[name](x, y)


EXPRESSIONS = {
    "i": lambda i: i,
    "i + 3": lambda i: i + 3,
    "3 - i": lambda i: 3 - i,
    "i * -2": lambda i: i * -2,
    "i - i": lambda i: i - (i + 0),
    "i + i": lambda i: i + i,
    "i (i + 1)": lambda i: i * (i + 1),
    "i (i + 1) / 2": lambda i: on("floordiv", i * (i + 1), 2),
    "i (i + 1) >> 1": lambda i: on("right_shift", i * (i + 1), 1),
    "6 i / -3 - i": lambda i: on("floordiv", i * 6, -3) - i,
    "(8 i + 16) / 8 - i": lambda i: on("floordiv", i * 8 + 16, 8) - i,
    "(8 i + 16) >> 3 - i": lambda i: on("right_shift", i * 8 + 16, 3) - i,
    "-i (i + 1)": lambda i: -(i * i) - i,
    "max(i, -10) - i": lambda i: on("maximum", i, -10) - i,
    "i - min(90, i)": lambda i: i - on("minimum", 90, i),
}
"""Expressions of an index whose bounds are met, by real numbers too."""


COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


def decided(f, bounds, ends):
    """What comparisons of an expression of a loop's index with some numbers are known to be."""

    def body(i, *_):
        return tuple(apply(name, f(i) + 0, n) for name in COMPARISONS for n in ends)

    graph = build(lambda c: for_(bounds, body, (c,) * len(COMPARISONS) * len(ends))[0], BOOL)
    (loop,) = [n for n in graph.nodes if n.fn.name == "for_loop"]
    ranges = analyse(graph)
    return [ranges.interval(x) for x in loop.attrs["body"].output.args]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_bounds_of_expressions_of_an_index(name):
    f = EXPRESSIONS[name]
    for bounds in RANGES:
        values = [f(i) for i in range(*bounds)]
        low, high = min(values), max(values)
        if bounds == (7, -8, -3) and "(i + 1)" in name:
            continue  # of real numbers it is less
        ends = (low - 1, low, high, high + 1)
        want = [hull(int(test(v, n)) for v in (low, high)) for test in COMPARISONS.values() for n in ends]
        assert decided(f, bounds, ends) == want, bounds


@pytest.mark.parametrize("name", ["floordiv", "right_shift"])
def test_what_is_divided_by_is_not_known(name):
    def body(i, c, k):
        quotient = apply(name, i * 8, k)
        return (apply("logical_or", quotient < 0, quotient < 9),)

    graph = build(lambda c, k: for_((0, 9, 1), body, (c,), (k,))[0], BOOL, INT)
    (loop,) = [n for n in graph.nodes if n.fn.name == "for_loop"]
    below, small = loop.attrs["body"].output.args[0].args
    ranges = analyse(graph)
    assert ranges.interval(small) == ranges.interval(below) == (0, 1)
