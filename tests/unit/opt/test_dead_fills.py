"""Arrays that loops write from end to end: which are not filled before, and that all programs still mean what they say."""

import numpy as np
import pytest

from myia_relay import relay, vjp
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.pipeline import plan_memory

EXECUTORS = ("native", "python", "interpreter")


def ascending(n):
    z = np.zeros(12)
    for i in range(12):
        z[i] = i * 0.5
    return z


def descending(n):
    z = np.full(12, 3.0)
    for i in range(11, -1, -1):
        z[i] = i * 0.5
    return z


def every_third(n):
    z = np.zeros(4)
    for i in range(0, 12, 3):
        z[i // 3] = i * 0.5
    return z


def rectangle(n):
    z, at = np.zeros(12), 0
    for i in range(3):
        for j in range(4):
            z[at] = i - j * 0.5
            at += 1
    return z


def triangle(n):
    z = np.zeros(10)
    for i in range(4):
        for j in range(i + 1):
            z[i * (i + 1) // 2 + j] = i - j * 0.5
    return z


def upside_down(n):
    z, at = np.zeros(10), 10
    for i in range(4):
        for j in range(i, 4):
            at -= 1
            z[at] = i - j * 0.5
    return z


def rows(n):
    z = np.zeros((3, 4))
    for i in range(2, -1, -1):
        z[i] = np.full(4, 1.0) * i
    return z


OVERWRITTEN = [ascending, descending, every_third, rectangle, triangle, upside_down, rows]


def one_missing(n):
    z = np.zeros(12)
    for i in range(11):
        z[i] = i * 0.5
    return z


def one_left_out(n):
    z = np.zeros(12)
    for i in range(1, 12):
        z[i] = i * 0.5
    return z


def gaps(n):
    z = np.zeros(12)
    for i in range(6):
        z[2 * i] = i * 0.5
    return z


def wrapped(n):
    z = np.zeros(12)
    for i in range(12):
        z[i - 6] = i * 0.5
    return z


def sometimes(n):
    z = np.zeros(12)
    for i in range(12):
        if i % n == 0:
            z[i] = i * 0.5
    return z


def unknown(n):
    z = np.zeros(12)
    for i in range(n):
        z[i] = i * 0.5
    return z


def read_back(n):
    z = np.ones(12)
    for i in range(12):
        z[i] = i * 0.5 + z[11 - i]
    return z


def summed(n):
    z = np.ones(12)
    for i in range(12):
        z[i] += i * 0.5
    return z


def overlapping(n):
    z = np.zeros(12)
    for i in range(4):
        for j in range(6):
            z[2 * i + j] = z[2 * i + j] * 0.5 + 1.0
    return z


def backwards_in_the_middle(n):
    z, at = np.zeros(12), 0
    for i in range(4):
        for j in range(i, 2):
            z[at] = i + j * 0.5
            at += 1
        at += 1
    return z


def kept(n):
    z = np.ones(12)
    y = z
    for i in range(12):
        y = relay.at(y)[i].set(i * 0.5)
    return y, z


NEEDED = [
    one_missing,
    one_left_out,
    gaps,
    wrapped,
    sometimes,
    unknown,
    read_back,
    summed,
    overlapping,
    backwards_in_the_middle,
]


def unfilled(f, *args):
    """How many loops begin with memory that nothing has been written to."""
    graph = plan_memory(f.ir(*args, stage="optimized").graph)
    loops = [n for g in all_graphs(graph) for n in g.nodes if getattr(n.fn, "name", "") == "for_loop"]
    return sum(any(getattr(getattr(a, "fn", None), "name", "") == "undef" for a in n.args) for n in loops)


@pytest.mark.parametrize("f", OVERWRITTEN, ids=lambda f: f.__name__)
def test_what_is_overwritten_is_not_filled(f):
    assert unfilled(relay(f), 3) == 1


@pytest.mark.parametrize("f", NEEDED, ids=lambda f: f.__name__)
def test_what_is_seen_is_filled(f):
    assert unfilled(relay(f), 3) == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [*OVERWRITTEN, *NEEDED], ids=lambda f: f.__name__)
def test_results_are_those_of_numpy(f):
    np.full(12, np.nan) * 2.0  # what is not filled is not zero by accident
    for executor in EXECUTORS:
        np.testing.assert_array_equal(relay(f, executor=executor)(3), f(3))
    into = np.full_like(f(3), np.nan)
    assert relay(f).into(into)(3) is into
    np.testing.assert_array_equal(into, f(3))


def test_a_value_that_is_looked_at_again_stays():
    f = relay(kept)
    y, z = f(3)
    np.testing.assert_array_equal(y, np.arange(12) * 0.5)
    np.testing.assert_array_equal(z, np.ones(12))


# --- sums of adjoints ---------------------------------------------------------------------------------------------------


def each_once(a, x):
    total, at = np.float64(0.0), 0
    for j in range(len(x)):
        for i in range(j + 1, len(x)):
            total += a[at] * x[i] * x[j]
            at += 1
    return total


def again_and_again(a, x):
    total = np.float64(0.0)
    for _ in range(len(x)):
        at = 0
        for j in range(len(x)):
            for i in range(j + 1, len(x)):
                total += a[at] * x[i] * x[j]
                at += 1
    return total


def not_the_last(a, x):
    total, at = np.float64(0.0), 0
    for j in range(len(x) - 1):
        for i in range(j + 2, len(x)):
            total += a[at] * x[i] * x[j]
            at += 1
    return total


def by_a_table(a, x):
    total = np.float64(0.0)
    order = np.arange(21) // 2
    for j in range(21):
        total += a[order[j]] * x[j % 7]
    return total


@pytest.mark.parametrize("f, count", [(each_once, 1), (again_and_again, 0), (not_the_last, 0), (by_a_table, 0)])
def test_sums_of_one_term_are_stores(f, count):
    n = 7
    draw = np.random.default_rng(0)
    a, x = draw.normal(size=n * (n - 1) // 2), draw.normal(size=n)

    def pullback(a, x, g):
        _, pull = vjp(f, a, x)
        return pull(g)

    back = relay(pullback)
    assert unfilled(back, a, x, 2.0) == count
    got = back(a, x, 2.0)
    for mine, other in zip(got, relay(pullback, executor="interpreter")(a, x, 2.0), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-13)
    # f is linear in a: its derivative is a difference
    for k in (0, 1, len(a) - 1):
        step = np.zeros(len(a))
        step[k] = 1.0
        np.testing.assert_allclose(got[0][k], 2.0 * (f(a + step, x) - f(a, x)), rtol=1e-9, atol=1e-12)
