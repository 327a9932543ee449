"""Polynomials of loop indices: their bounds against all their values, and the checks that go because of them."""

import random

import numpy as np
import pytest

from myia_relay import Float64, Tensor, relay, vjp
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.analysis import polynomials
from myia_relay.opt.analysis.polynomials import Polynomial, Variable, least, most

EXECUTORS = ("native", "python", "interpreter")


def number(n):
    return Polynomial.of(n)


def points(variables):
    """All values of variables whose bounds are polynomials of those before."""
    found = [{}]
    for v in variables:
        found = [
            {**point, v: i} for point in found for i in range(int(value(v.low, point)), int(value(v.high, point)) + 1)
        ]
    return found


def value(p, point):
    total = 0
    for monomial, c in p.terms.items():
        for v in monomial:
            c = c * point[v]
        total += c
    return total


def nest(choose):
    """Two or three indices, each between polynomials of those before, as of loops in loops."""
    out = [Variable(number(choose((-2, 0, 1))), number(choose((3, 4))))]
    for _ in range(choose((1, 2))):
        before = Polynomial.of(choose(out))
        low, high = choose(
            ((number(0), before), (before + 1, number(6)), (-before, before + 2), (number(0), number(5)))
        )
        out.append(Variable(low, high))
    return out


def test_bounds_hold_all_values_and_are_often_met():
    draw = random.Random(0)
    met = known = 0
    for _ in range(400):
        variables = nest(draw.choice)
        p = number(draw.randint(-3, 3))
        for _ in range(draw.choice((1, 2, 3))):
            term = number(draw.choice((-2, -1, 1, 3)))
            for _ in range(draw.choice((1, 1, 2))):
                term = term * Polynomial.of(draw.choice(variables))
            p = p + term
        values = [value(p, point) for point in points(variables)]
        low, high = least(p), most(p)
        if values:
            assert (low is None or low <= min(values)) and (high is None or high >= max(values))
            known += (low is not None) + (high is not None)
            met += (low == min(values)) + (high == max(values))
    assert known > 500 and met > 350


def test_the_position_in_a_packed_triangle():
    n = 7
    j = Variable(number(0), number(n - 1))
    i = Variable(Polynomial.of(j) + 1, number(n - 1))
    half = (Polynomial.of(j) * (Polynomial.of(j) - 1)).divided(2)
    at = Polynomial.of(j) * (n - 1) - half + Polynomial.of(i) - Polynomial.of(j) - 1
    assert (least(at), most(at)) == (0, n * (n - 1) // 2 - 1)
    assert sorted(value(at, point) for point in points([j, i])) == list(range(n * (n - 1) // 2))


def test_exact_quotients():
    i, j = Variable(number(0), number(9)), Variable(number(0), number(9))
    x, y = Polynomial.of(i), Polynomial.of(j)
    assert (x * (x + 1)).divided(2) is not None
    assert (x * (x + 1) * (x + 2)).divided(6) is not None
    assert (x * y).divided(2) is None and x.divided(2) is None
    assert (x * 4 + y * 6 + 2).divided(2) == x * 2 + y * 3 + 1
    assert (x * 3).divided(-3) == -x


def test_a_bound_is_searched_for_in_so_many_steps(monkeypatch):
    i = Variable(number(0), number(9))
    j = Variable(number(0), Polynomial.of(i))
    p = Polynomial.of(i) + Polynomial.of(j)
    for x, steps, want in (
        (i, 0, 9),
        (j, 2, 9),
        (p, 2, 18),
    ):  # none where bounds are numbers
        x = Polynomial.of(x) if isinstance(x, Variable) else x
        for allowed in range(6):
            monkeypatch.setattr(polynomials, "STEPS", allowed)
            assert most(x) == (want if allowed >= steps else None)


# --- checks that go, and checks that stay -------------------------------------------------------------------------------


def packed(a, x):
    n, y, at = len(x), np.zeros(len(x)), 0
    for j in range(n):
        for i in range(j + 1, n):
            y[i] += a[at] * x[j]
            at += 1
    return y


def rows(a, x):
    n, y = len(x), np.zeros(len(x))
    for i in range(n):
        for j in range(i):
            y[i] += a[i * (i - 1) // 2 + j] * x[j]
    return y


def downwards(a, x):
    n, y, at = len(x), np.zeros(len(x)), len(a)
    for i in range(n - 1, 0, -1):
        for j in range(i - 1, -1, -1):
            at -= 1
            y[j] += a[at] * x[i]
    return y


def differences(a, x):
    n, y = len(x), np.zeros(len(x))
    for i in range(n):
        for j in range(i, n):
            y[j - i] += x[n - 1 - j + i] * a[0]
    return y


def every_second(a, x):
    y, at = np.zeros(len(x)), 0
    for i in range(0, len(x), 2):
        y[i] = x[at] + a[at]
        at += 2
    return y


PROVEN = [packed, rows, downwards, differences, every_second]


def triangle(n, more=0):
    """Arguments: a packed triangle, longer or shorter by some entries, and a vector."""
    draw = np.random.default_rng(n)
    return draw.normal(size=max(0, n * (n - 1) // 2 + more)), draw.normal(size=n)


def checks(f, *args):
    graph = f.ir(*args, stage="optimized").graph
    return [n for g in all_graphs(graph) for n in g.nodes if getattr(n.fn, "name", "") == "check"]


@pytest.mark.parametrize("f", PROVEN, ids=lambda f: f.__name__)
def test_what_cannot_fail_is_not_checked(f):
    assert not checks(relay(f), *triangle(9))


@pytest.mark.parametrize("f", [packed, rows, downwards], ids=lambda f: f.__name__)
def test_adjoints_check_nothing_that_cannot_fail(f):
    @relay
    def back(a, x, g):
        _, pull = vjp(f, a, x)
        return pull(g)

    a, x = triangle(9)
    graph = back.ir(a, x, x, stage="optimized").graph
    names = [getattr(n.fn, "name", "") for g in all_graphs(graph) for n in g.nodes]
    assert "check" not in names and "where" not in names
    assert names.count("for_loop") == 2  # the primal's loops are gone, and with them all that was there for the checks


def outcome(f, args):
    try:
        return f(*args)
    except IndexError as error:
        return type(error), str(error)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", PROVEN, ids=lambda f: f.__name__)
@pytest.mark.sampled(5)
def test_results_and_failures_are_those_of_python(f, executor):
    compiled = relay(f, executor=executor)
    for n, more in ((0, 0), (1, 0), (2, 0), (3, -1), (20, 0), (20, -1), (20, 1)):
        args = triangle(n, more)
        got, want = outcome(compiled, args), outcome(f, args)
        same = np.array_equal(got, want) if isinstance(want, np.ndarray) else got == want
        assert same, (n, more, got, want)


def last_turn(x, n):
    a = x * 1.0
    at = 0
    for i in range(n):
        print("before", i)
        a[at + i] = a[i] * 2.0
        at += i % 2
    return a


def shifted(x, n):
    total = 0.0
    for i in range(n):
        print("iteration", i)
        total += x[i - 2] + x[n - i - 4]
    return total


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", [last_turn, shifted], ids=lambda f: f.__name__)
def test_what_was_printed_before_a_failure(f, executor, capfd):
    compiled, x = relay(f, executor=executor), np.arange(5.0)
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 9):
        want = outcome(f, (x, n))
        printed = capfd.readouterr().out
        got = outcome(compiled, (x, n))
        assert capfd.readouterr().out == printed
        assert np.array_equal(got, want) if isinstance(want, np.ndarray) else got == want


def first(a, n):
    return sum_of(a, -n, 5 - n, 1)


def middle(a, n):
    return sum_of(a, 2, n, 3)


def last(a, n):
    return sum_of(a, n, -7, -2)


def sum_of(a, start, stop, step):
    total = 0.0
    for i in range(start, stop, step):
        total += a[i] * a[i + 1]
    return total


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", [first, middle, last], ids=lambda f: f.__name__)
def test_the_turn_that_fails(f, executor):
    compiled, a = relay(f, executor=executor), np.arange(1.0, 7.0)
    for n in (-3, 0, 1, 4, 5, 6, 9):
        assert outcome(compiled, (a, n)) == outcome(f, (a, n)), n


# --- sizes that only a call tells -----------------------------------------------------------------------------------------


def window(x: Tensor[Float64, ("n",)], y: Tensor[Float64, ("m",)]):  # noqa: F821
    total, m = 0.0, len(y)
    for i in range(len(x) - len(y) + 1):
        for j in range(m):
            total += x[i + j] * y[m - 1 - j]
    return total


def all_but_one(x: Tensor[Float64, ("n",)], y: Tensor[Float64, ("m",)]):  # noqa: F821
    total, d = 0.0, x[1:] - x[:-1]
    for i in range(3):
        total += d[len(d) - 1 - i] + y[len(x) - len(y) - i]
    return total


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", [window, all_but_one], ids=lambda f: f.__name__)
def test_symbolic_sizes(f, executor):
    compiled = relay(f, executor=executor)
    for n, m in ((1, 1), (1, 0), (5, 3), (3, 5), (9, 4), (4, 4), (2, 7)):
        args = np.arange(1.0, n + 1.0), np.arange(2.0, m + 2.0)
        got, want = outcome(compiled, args), outcome(f, args)
        assert got == want, (n, m)
    assert compiled.cache_info().misses == 1


def test_bounds_that_depend_on_other_variables():
    n = Polynomial.of(Variable())
    assert Variable().has_fixed_bounds and Variable(number(0), number(9)).has_fixed_bounds
    assert not Variable(number(0), n).has_fixed_bounds and not Variable(n, None).has_fixed_bounds
