"""Range analysis: intervals against all their elements; which checks go, and which must stay."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from myia_relay import Int64, Tensor, relay
from myia_relay.abstract.types import Scalar
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.analysis import intervals as I
from tests.unit.opt.ranges_util import OPERATIONS

BOUNDS = (-9, -8, -4, -3, -2, -1, 0, 1, 2, 3, 4, 7, 8)
PAIRS = [p for p in itertools.product(BOUNDS, BOUNDS) if p[0] <= p[1] and p[1] - p[0] <= 8]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_interval_holds_every_result(name):
    for x, y in itertools.product(PAIRS[::3], PAIRS[::2]):
        if name.endswith("shift") and y[0] < 0:
            continue
        found = I.TRANSFER[name](x, y)
        for a, b in itertools.product(range(x[0], x[1] + 1), range(y[0], y[1] + 1)):
            assert found is None or found[0] <= OPERATIONS[name](a, b) <= found[1], (x, y, a, b)


@pytest.mark.parametrize("name", ["lt", "le", "eq", "ne"])
def test_what_a_comparison_leaves(name):
    for x, y in itertools.product(PAIRS[::3], PAIRS[::2]):
        left, right = I.compared(name, x, y)
        for a, b in itertools.product(range(x[0], x[1] + 1), range(y[0], y[1] + 1)):
            if OPERATIONS[name](a, b):
                assert left[0] <= a <= left[1] and right[0] <= b <= right[1], (x, y, a, b)


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_what_a_result_without_overflow_leaves(name):
    whole = (-8, 7)
    inside = [p for p in PAIRS if I.within(p, whole)]
    for x, y in itertools.product(inside[::2], inside):
        left, right = I.operands_of(f"{name}_overflows", x, y, whole)
        for a, b in itertools.product(range(x[0], x[1] + 1), range(y[0], y[1] + 1)):
            if whole[0] <= OPERATIONS[name](a, b) <= whole[1]:
                assert left is None or left[0] <= a <= left[1], (x, y, a, b)
                assert right is None or right[0] <= b <= right[1], (x, y, a, b)


def test_what_wraps_is_anything():
    assert I.clip((0, 128), Scalar("int8")) == (-128, 127)
    assert I.clip((0, 127), Scalar("int8")) == (0, 127)


def names(f, *args) -> list[str]:
    """The primitives of an optimised program."""
    graph = relay(f).ir(*args, stage="optimized").graph
    return [getattr(n.fn, "name", "") for g in all_graphs(graph) for n in g.nodes]


def total(x):
    s = 0
    for i in range(len(x)):
        s += int(x[i])
    return s


def neighbours(x):
    y = x.copy()
    for i in range(1, len(x) - 1):
        y[i] = x[i - 1] + x[i + 1]
    return y


def beyond(x):
    y = x.copy()
    for i in range(len(x)):
        y[i] = x[i - 1] + x[i + 1]
    return y


def count(n, limit):
    k = 0
    while k < limit:
        k += 1
        n = n ^ k
    return n


def halves(n):
    k = 0
    while n > 1:
        n = n // 2
        k = k + 1
    return k


def guarded(n):
    if n < 0 or n > 1000:
        raise ValueError("no")
    return n * n + n


def clamped(x):
    y = x.copy()
    for i in range(len(x)):
        y[i] = x[max(i - 1, 0)] + x[min(i + 1, len(x) - 1)]
    return y


X = np.arange(10)


@pytest.mark.parametrize(
    ("f", "args", "checks"),
    [
        (neighbours, (X,), 0),
        (clamped, (X,), 0),
        (beyond, (X,), 1),
        (count, (3, 5), 0),
        (halves, (9,), 1),
        (guarded, (7,), 1),
    ],
)
def test_checks_that_stay(f, args, checks):
    found = names(f, *args)
    assert found.count("check") + found.count("raise") == checks, found
    if f is not beyond:
        assert relay(f)(*args) is not None
    want = None
    try:
        want = f(*args)
    except IndexError as error:
        with pytest.raises(IndexError):
            relay(f)(*args)
        assert want is None and error
        return
    np.testing.assert_array_equal(relay(f)(*args), want)


VECTOR = Tensor[Int64, ("n",)]


def symbolic(x: VECTOR):
    y = x.copy()
    for i in range(len(x)):
        y[i] = x[i] + 1
    return y


def test_an_index_below_a_size_without_number():
    assert "check" not in names(symbolic, X)
    np.testing.assert_array_equal(relay(symbolic)(X), X + 1)


def flag_of_a_loop(n):
    seen = False
    k = 0
    while k < n:
        if seen:
            k = k + 2
        else:
            k = k + 1
            seen = True
    return k, seen


def test_a_carried_truth_value_is_not_what_it_was_at_first():
    for n in (0, 1, 2, 5):
        assert relay(flag_of_a_loop)(n) == flag_of_a_loop(n)


def power_of_two(n):
    return n % 8, n // 8, n % -8, n // -8, n % 1, n // 1


@pytest.mark.parametrize("n", [0, 1, 7, 8, -1, -7, -8, -9, 2**63 - 1, -(2**63)])
def test_division_by_powers_of_two(n):
    for executor in ("interpreter", "native"):
        assert relay(executor=executor)(power_of_two)(n) == power_of_two(n)


def choice(n):
    total = 0
    for i in range(n):
        total = total + (i // 2 if i % 2 == 0 else 3 * i + 1)
    return total


def late(n):
    return n * 3 if n > 5 else n


def test_branches_become_choices():
    assert "cond" not in names(choice, 10)
    assert relay(choice)(50) == choice(50)
    f = relay(late)
    assert f(5) == 5 and f(-(2**62)) == -(2**62) and f(6) == 18
    with pytest.raises(OverflowError):
        f(2**62)


def pieces(n):
    return 1 if n < 3 else pieces(n // 2) + pieces(n // 3)


def descend(n):
    assert n != 3, "three"
    return 0 if n == 0 else 1 + descend(n - 1)


def test_recursion_is_unfolded():
    calls = relay(pieces).ir(5, stage="optimized").graph
    inside = [n for g in all_graphs(calls) for n in g.nodes if not hasattr(n.fn, "kind")]
    assert len(inside) > 4
    for executor in ("interpreter", "python", "native"):
        compiled = relay(executor=executor)(pieces)
        assert [compiled(n) for n in range(40)] == [pieces(n) for n in range(40)]
        with pytest.raises(AssertionError, match="three"):
            relay(executor=executor)(descend)(9)
        assert relay(executor=executor)(descend)(2) == 2
