"""Range analysis, operation by operation: bounds that are as tight as they can be, and checks that stay or go."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from myia_relay import Int64, Tensor, relay
from myia_relay.abstract.types import BOOL, FLOAT, INT, Scalar, tuple_of
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.analysis import intervals
from myia_relay.opt.analysis.polynomials import Polynomial
from myia_relay.opt.analysis.ranges import PathAnalysis, RangeFacts, analyse, inside, top, union, widened
from myia_relay.opt.rewrite.check_elimination import EliminateChecks
from tests.typed_graphs import apply, build, call, for_, while_
from tests.unit.opt.ranges_util import ALL, LEAST, MOST, POINTS, assert_sound

VECTOR = Tensor[Int64, ("n",)]


def found(f, *types):
    """The bounds of the result of a staged function."""
    graph = build(f, *types)
    return analyse(graph).interval(graph.output)


def within(x, low, high):
    """A value that is known to be between two numbers."""
    return apply("maximum", apply("minimum", x, high), low)


def as_(x, dtype):
    return apply("cast", x, dtype=dtype, weak=dtype == "int64")


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: within(x, -3, 5), (-3, 5)),
        (lambda x: within(x, -3, 5) + 2**62, (2**62 - 3, 2**62 + 5)),
        (lambda x: within(x, 0, 5) + (MOST - 4), ALL),  # it may wrap
        (lambda x: within(x, 0, 4) + (MOST - 4), (MOST - 4, MOST)),
        (lambda x: as_(within(x, -3, 5), "bool"), (0, 1)),
        (lambda x: as_(within(x, 1, 5), "bool"), (1, 1)),
        (lambda x: as_(within(x, 0, 5), "bool"), (0, 1)),
        (lambda x: as_(within(x, -5, -1), "bool"), (1, 1)),
        (lambda x: as_(within(x, 0, 0), "bool"), (0, 0)),
        (lambda x: as_(within(x, 0, 127), "int8"), (0, 127)),
        (lambda x: as_(within(x, 0, 128), "int8"), (-128, 127)),
        (lambda x: as_(within(x, -1, 9), "uint8"), (0, 255)),
        (lambda x: as_(as_(within(x, -1, 9), "int16"), "int64"), (-1, 9)),
        (lambda x: as_(apply("cast", x, dtype="float64", weak=True), "int64"), ALL),
        (lambda x: apply("where", within(x, 0, 1) > 1, x, within(x, 2, 3)), (2, 3)),
        (lambda x: apply("where", within(x, 2, 3) > 1, within(x, 2, 3), x), (2, 3)),
        (lambda x: apply("where", x > 1, within(x, 0, 1), within(x, 2, 3)), (0, 3)),
        (lambda x: apply("add_overflows", within(x, 0, 5), MOST - 5), (0, 0)),
        (lambda x: apply("add_overflows", within(x, 0, 5), MOST - 4), (0, 1)),
        (lambda x: apply("add_overflows", within(x, 5, 9), MOST - 4), (1, 1)),
        (lambda x: apply("sub_overflows", within(x, 0, 5), LEAST), (1, 1)),
        (lambda x: apply("sub_overflows", within(x, -5, 0), LEAST), (0, 1)),
        (lambda x: apply("mul_overflows", within(x, 0, 2), 2**62), (0, 1)),
        (lambda x: apply("mul_overflows", within(x, 0, 1), 2**62), (0, 0)),
        (lambda x: apply("logical_xor", within(x, 0, 1) > 1, x > 1), (0, 1)),
        (lambda x: apply("logical_xor", within(x, 0, 1) > 1, within(x, 2, 3) > 1), (1, 1)),
        (lambda x: apply("reshape", apply("as_array", within(x, 0, 1)), shape=()), (0, 1)),
    ],
)
def test_operations(f, want):
    assert found(f, INT) == want
    assert_sound(build(f, INT), POINTS)


TIGHT = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "minimum": min, "maximum": max,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "floordiv": lambda a, b: a // b if b else 0,
    "left_shift": operator.lshift, "right_shift": operator.rshift,
}  # fmt: skip
SMALLS = [(a, b) for a in range(-4, 4) for b in range(a, 4)]


@pytest.mark.parametrize("name", TIGHT)
def test_intervals_are_no_looser_than_results(name):
    for x in SMALLS:
        for y in SMALLS:
            if name.endswith("shift") and y[0] < 0:
                continue
            results = [TIGHT[name](a, b) for a in range(x[0], x[1] + 1) for b in range(y[0], y[1] + 1)]
            assert intervals.TRANSFER[name](x, y) == (min(results), max(results)), (x, y)


def test_intervals_of_remainders_and_bits():
    assert intervals.mod((0, 4), (5, 9)) == (0, 4)
    assert intervals.mod((0, 5), (5, 9)) == (0, 5)
    assert intervals.mod((0, 50), (5, 9)) == (0, 8)
    assert intervals.mod((-1, 4), (5, 9)) == (0, 8)
    assert intervals.mod((-9, 9), (-9, -5)) == (-8, 0)
    assert intervals.mod((0, 3), (-9, 9)) == (-8, 8)
    assert intervals.mod((0, 3), (0, 9)) == (0, 3)
    assert intervals.bitwise_and((0, 5), (-9, 9)) == (0, 5) == intervals.bitwise_and((-9, 9), (0, 5))
    assert intervals.bitwise_and((0, 5), (0, 3)) == (0, 3)
    assert intervals.bitwise_and((-1, 5), (-9, 9)) is None
    assert intervals.bitwise_or((1, 5), (2, 8)) == (2, 15)
    assert intervals.bitwise_or((-1, 5), (2, 8)) is None is intervals.bitwise_or((1, 5), (-2, 8))
    assert intervals.bitwise_xor((1, 5), (2, 8)) == (0, 15)
    assert intervals.bitwise_xor((-1, 5), (2, 8)) is None is intervals.bitwise_xor((1, 5), (-2, 8))
    assert intervals.left_shift((1, 2), (0, 65)) is None is intervals.left_shift((1, 2), (-1, 3))
    assert intervals.left_shift((1, 2), (0, 64)) == (1, 2**65)
    assert intervals.right_shift((-5, 5), (-1, 3)) is None
    assert intervals.right_shift((-(2**63), 5), (3, 900)) == (-(2**60), 0)
    assert intervals.absolute((-5, 3)) == (0, 5) and intervals.absolute((-5, -3)) == (3, 5)
    assert intervals.absolute((-3, 5)) == (0, 5) and intervals.absolute((0, 5)) == (0, 5)
    assert intervals.eq((1, 1), (1, 1)) == (1, 1) and intervals.eq((1, 2), (1, 2)) == (0, 1)
    assert intervals.eq((1, 2), (3, 4)) == (0, 0) == intervals.eq((3, 4), (1, 2))
    assert intervals.eq((1, 2), (2, 4)) == (0, 1) == intervals.eq((1, 1), (1, 2))


def test_what_comparisons_leave():
    assert intervals.compared("lt", (0, 9), (0, 9)) == ((0, 8), (1, 9))
    assert intervals.compared("le", (0, 9), (-5, 5)) == ((0, 5), (0, 5))
    assert intervals.compared("eq", (0, 9), (5, 12)) == ((5, 9), (5, 9))
    assert intervals.compared("ne", (0, 9), (9, 9)) == ((0, 8), (9, 9))
    assert intervals.compared("ne", (0, 0), (0, 9)) == ((0, 0), (1, 9))
    assert intervals.compared("ne", (0, 0), (0, 0)) == (None, None)
    assert intervals.compared("lt", (5, 9), (0, 5)) == (None, None)
    whole = (-128, 127)
    assert intervals.operands_of("add_overflows", (0, 9), (100, 120), whole) == ((-248, 27), (-137, 127))
    assert intervals.operands_of("sub_overflows", (0, 9), (100, 120), whole) == ((-28, 247), (-127, 137))
    assert intervals.operands_of("mul_overflows", (3, 9), (-5, -2), whole) == ((-63, 64), (-42, 42))
    assert intervals.operands_of("mul_overflows", (0, 9), (2, 5), whole) == ((-64, 63), None)
    assert intervals.operands_of("mul_overflows", (-9, 0), (2, 5), whole) == ((-64, 63), None)


# --- what is left of checks ----------------------------------------------------------------------------------------------


def left(f, *types) -> list[str]:
    """The primitives of a staged function, and the numbers among their operands, without what is proven."""
    graph = EliminateChecks()(build(f, *types))
    return [" ".join([n.fn.name, *(str(a.value) for a in n.args if hasattr(a, "value"))]) for n in graph.nodes]


def test_a_product_with_a_number_overflows_on_one_side():
    def above(x):
        return apply("mul_overflows", within(x, 0, MOST), 3)

    def below(x):
        return apply("mul_overflows", -5, within(x, -7, MOST))

    def both(x):
        return apply("mul_overflows", x, 3)

    def two(x):
        return apply("mul_overflows", x, x + 1)

    def zero(x):
        return apply("mul_overflows", x, 0)

    assert left(above, INT)[-1] == f"gt {MOST // 3}"
    assert left(below, INT)[-1] == f"gt {2**63 // 5}"
    assert left(lambda x: apply("mul_overflows", within(x, LEAST, 7), -5), INT)[-1] == f"lt {-(MOST // 5)}"
    assert left(both, INT)[-1] == "mul_overflows 3" and left(two, INT)[-1] == "mul_overflows"
    assert left(zero, INT) == []
    for f in (above, below, both, two, zero):
        edges = (MOST // 3, MOST // 3 + 1, 2**63 // 5, 2**63 // 5 + 1, -(MOST // 3) - 1)
        assert_sound(build(f, INT), [*POINTS, *((e,) for e in edges)])


def checked(x, ok):
    apply("check", ok, exception=AssertionError, parts=("no",))
    return x


def test_checks_that_cannot_fail_go():
    assert left(lambda x: checked(x, within(x, 0, 5) < 6), INT) == ["minimum 5", "maximum 0"]
    assert left(lambda x: checked(x, within(x, 0, 5) < 5), INT)[-1] == "check"
    assert left(lambda x: checked(checked(x, x < 5), x < 6), INT) == ["lt 5", "check"]
    # What only an array says is not known, and no check of an array's element goes.
    assert left(lambda x, i: checked(x, i < 3), INT, Scalar("int8")) == ["lt 3", "check"]


def test_what_stands_behind_a_failure_is_not_reached():
    def f(x):
        checked(x, within(x, 5, 6) < 3)
        return checked(x, x > 0)

    graph = build(f, INT)
    ranges = analyse(graph)
    checks = [n for n in graph.nodes if n.fn.name == "check"]
    assert checks[0] in ranges.fails and checks[1] not in ranges.run
    assert [n.fn.name for n in EliminateChecks()(graph).nodes].count("check") == 2


def test_a_loop_whose_condition_fails_does_not_end():
    def f(x):
        n = while_(lambda k, c: checked(c, within(c, 5, 6) < 3) > k, lambda k, c: (k + 1,), (x * 0,), (x,))[0]
        return checked(n, n > 0)

    graph = build(f, INT)
    ranges = analyse(graph)
    check = [n for n in graph.nodes if n.fn.name == "check"][-1]
    assert check not in ranges.run


def test_an_index_by_a_step_that_may_be_zero_is_anything():
    def f(n, s):
        return for_((5, n, within(s, 0, 3)), lambda i, x: (i,), (n * 0,), ())[0]

    assert found(f, INT, INT) == ALL


def test_paths_keep_what_they_have_seen():
    graph = build(lambda n: n + 1, INT)
    (n,), (total,) = graph.params, graph.nodes
    walk, facts = PathAnalysis(), RangeFacts()
    condition = build(lambda n: n < 5, INT)
    compare = condition.nodes[0]
    facts.values[condition.params[0]] = (0, 100)
    walk.learn(compare, True, facts)
    assert facts[condition.params[0]] == (0, 4)
    facts.values[n] = (0, 4)
    walk.note(total, facts)
    assert facts[total] == (1, 5)
    facts.values[total] = (3, 9)
    walk.note(total, facts)
    assert facts[total] == (3, 5)
    facts.values[total] = (7, 9)  # what cannot be stays as it is found
    walk.note(total, facts)
    assert facts[total] == (1, 5)


def test_a_failure_on_a_path_has_no_value():
    graph = build(lambda n: checked(n, n > 5), INT)
    compare, check = graph.nodes
    walk, facts = PathAnalysis(), RangeFacts()
    facts.values[compare] = (0, 0)
    walk.note(check, facts)
    assert check not in facts.values


def test_functions_are_run_with_unknown_arguments():
    inner = build(lambda n: within(n, 0, 5) + 1, INT, name="inner")
    outer = build(lambda n: call(inner, within(n, 2, 3)), INT)
    ranges = analyse(outer)
    assert ranges.interval(inner.nodes[-1]) == (1, 6) and ranges.interval(inner.params[0]) == ALL
    assert ranges.interval(outer.output) == ALL


def test_values_of_structures():
    pair, empty = tuple_of(INT, tuple_of(Scalar("int8"), FLOAT)), ()
    assert top(pair) == (ALL, ((-128, 127), None)) and top(FLOAT) is None and top(tuple_of()) == ()
    assert union((0, 3), (5, 9)) == (0, 9) and union(None, (0, 3)) is None is union((0, 3), None)
    assert union(((0, 3), None), ((2, 9), (1, 1))) == ((0, 9), None) and union(empty, empty) == ()
    assert inside((1, 3), (0, 3)) and not inside((1, 4), (0, 3)) and not inside((-1, 3), (0, 3))
    assert inside((1, 3), None) and not inside(None, (1, 3)) and inside(None, None) and inside(empty, empty)
    assert inside(((1, 3), (2, 2)), ((0, 3), (2, 5))) and not inside(((1, 3), (2, 2)), ((0, 3), (3, 5)))
    small = Scalar("int8")
    assert widened((0, 3), (0, 3), small) == (0, 3) and widened((0, 3), (1, 2), small) == (0, 3)
    assert widened((0, 3), (0, 4), small) == (0, 127) and widened((2, 3), (0, 3), small) == (0, 3)
    assert widened((2, 3), (-1, 3), small) == (-128, 3) and widened((2, 3), (1, 3), small) == (0, 3)
    assert widened(None, (0, 1), small) == (-128, 127) == widened((0, 1), None, small)
    assert widened((0, 1), (0, 1), FLOAT) is None
    both = tuple_of(small, small)
    assert widened(((0, 1), (0, 1)), ((0, 2), (-1, 0)), both) == ((0, 127), (-128, 1))
    assert widened(None, ((0, 2), (-1, 0)), both) is None


def test_constants_are_their_own_bounds():
    graph = build(lambda x: x + 7, INT)
    assert analyse(graph).interval(graph.output.args[1]) == (7, 7)
    assert analyse(graph).interval(build(lambda x: x + 0.5, FLOAT).output.args[1]) is None


@pytest.mark.parametrize(
    ("compare", "want"),
    [
        (lambda i: apply("maximum", i, 0) - i < 1, (1, 1)),
        (lambda i: apply("maximum", i, 1) - i < 1, (0, 1)),
        (lambda i: apply("minimum", i, 8) - i >= 0, (1, 1)),
        (lambda i: apply("minimum", i, 7) - i >= 0, (0, 1)),
        (lambda i: apply("minimum", 8, i) - i >= 0, (1, 1)),
        (lambda i: apply("where", i >= 0, i, i * 3) - i < 1, (1, 1)),
        (lambda i: apply("where", i < 0, i * 3, i) - i < 1, (1, 1)),
        (lambda i: apply("where", i < 5, i * 3, i) - i < 1, (0, 1)),
        (lambda i: apply("neg", i) + i < 1, (1, 1)),
        (lambda i: (i + i) - i * 2 < 1, (1, 1)),
        (lambda i: apply("right_shift", i * i + i, 1) * 2 - i * i - i < 1, (1, 1)),
        (lambda i: apply("right_shift", i * i, 1) * 2 - i * i >= 0, (0, 1)),
        (lambda i: apply("floordiv", i * i - i, 2) * 2 - i * i + i >= 0, (1, 1)),
        (lambda i: apply("floordiv", i * i, 2) * 2 - i * i >= 0, (0, 1)),
        (lambda i: i * i - i * 8 <= 0, (1, 1)),
        (lambda i: i * i - i * 8 < 0, (0, 1)),
        (lambda i: i * i - i * 7 <= 0, (0, 1)),
    ],
)
def test_integers_of_a_loop_are_polynomials(compare, want):
    """Of an index from 0 to 8."""
    graph = build(lambda c: for_((0, 9, 1), lambda i, c: (compare(i),), (c,))[0], BOOL)
    (loop,) = [n for n in graph.nodes if n.fn.name == "for_loop"]
    assert analyse(graph).interval(loop.attrs["body"].output.args[0]) == want
    assert_sound(graph, [(False,)])


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda i: i * 8 - i * i, (0, 16)),
        (lambda i: i * i - i * 8, (-16, 0)),
        (lambda i: i * i - i * 3, (-2, 40)),
        (lambda i: i * 3 - i * i, (-40, 2)),
        (lambda i: i * i + i - 5, (-5, 67)),
    ],
)
def test_bounds_of_polynomials_are_bounds_of_integers(f, want):
    """Of an index from 0 to 8: both ends, also where only one of them is below or above what the parts say."""
    graph = build(lambda c: for_((0, 9, 1), lambda i, c: (f(i),), (c,))[0], INT)
    (loop,) = [n for n in graph.nodes if n.fn.name == "for_loop"]
    made = loop.attrs["body"].output.args[0]
    ranges = analyse(graph)
    assert ranges.interval(made) == want
    form, i = ranges.forms.of[made], Polynomial.of(ranges.forms.iterations[loop.attrs["body"]])
    assert form is not None and form == f(i)
    assert_sound(graph, [(0,)])


def test_what_runs_in_two_places_is_no_polynomial():
    body = build(lambda i, c: (i * 2,), INT, INT, name="body")

    def f(n):
        loops = [apply("for_loop", n * 0, 9, 1, n * 0, body=body, carried=1)[0] for _ in range(2)]
        return loops[0] + loops[1]

    forms = analyse(build(f, INT)).forms
    assert forms.of[body.output.args[0]] is None is forms.iterations[body]


# `i <= n` is not `i < n`: the element behind the last one is not there.


def up_to(x: VECTOR, i: int):
    if 0 <= i and i <= len(x):
        return x[i]
    return -1


def up_to_backwards(x: VECTOR, i: int):
    return x[i] if len(x) >= i >= 0 else -1


def waits_up_to(x: VECTOR, i: int):
    total = 0
    while i <= len(x):
        total = total + x[i]
        i = i + 1
    return total


@pytest.mark.parametrize("executor", ["interpreter", "native"])
@pytest.mark.parametrize("f", [up_to, up_to_backwards, waits_up_to], ids=lambda f: f.__name__)
def test_the_element_behind_the_last_is_not_read(f, executor):
    compiled, x = relay(f, executor=executor), np.arange(10, 15)
    for i in (0, 4, 5):
        if i == 5 or f is waits_up_to:
            with pytest.raises(IndexError):
                compiled(x, i)
        else:
            assert compiled(x, i) == x[i]
    assert "check" in [getattr(n.fn, "name", "") for g in all_graphs(compiled.ir(x, 1).graph) for n in g.nodes]
