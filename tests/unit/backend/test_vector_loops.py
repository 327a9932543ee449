"""Loops in the lanes of vectors: which run so, and that their results are those of loops, to the last bit where it matters."""

import numpy as np
import pytest

from myia_relay import relay, vjp
from myia_relay.backend.tvm.host import control

SIZES = (0, 1, 7, 8, 15, 16, 17, 31, 32, 40, 67, 100)


@pytest.fixture
def in_lanes(monkeypatch):
    """The loops that ran in lanes."""
    found = []
    real = control.vector_loops.find

    def find(*args):
        loop = real(*args)
        if loop is not None:
            found.append(loop)
        return loop

    monkeypatch.setattr(control.vector_loops, "find", find)
    return found


def axpy(x, y, w):
    z = y * 1.0
    for i in range(len(x)):
        z[i] = z[i] + w[3] * x[i]
    return z


def backwards(x, y, w):
    z = y * 1.0
    for i in range(len(x) - 1, -1, -1):
        z[i] = x[i] / (1.5 + abs(y[i])) - z[i]
    return z


def shifted(x, y, w):
    z = y * 1.0
    for i in range(len(x)):
        z[i] -= w[i + 5] * w[i + 1]
    return z


def two_results(x, y, w):
    z, u = y * 1.0, x * 1.0
    for i in range(1, len(x)):
        z[i - 1] = x[i] + w[i]
        u[i] = u[i] * z[0] - y[i - 1]
    return z, u


def chosen(x, y, w):
    z = y * 1.0
    for i in range(len(x)):
        z[i] = np.where(x[i] < y[i], x[i], np.maximum(y[i], w[i + 2])) if len(x) else 0.0
    return z


def triangle(x, y, w):
    z = y * 1.0
    for j in range(len(x)):
        for i in range(j + 1, len(x)):
            z[i] += w[i - j] * x[j]
    return z


def narrow(x, y, w):
    v = x.astype(np.float32)
    z = y.astype(np.float32)
    for i in range(len(x)):
        z[i] = z[i] * v[i] - v[i]
    return z


def zeros_and_nans(x, y, w):
    z = y * 0.0
    for i in range(len(x)):
        z[i] = z[i] * -1.0 + (x[i] - x[i]) / (y[i] - y[i] + w[i] * 0.0)
    return z


def across_rows(x, y, w):
    m = np.zeros((3, len(x)))
    for k in range(3):
        r = m[k] + y
        for i in range(len(x)):
            r[i] = r[i] * x[i] + w[i]
        m[k] = r
    return m


LANES = [axpy, backwards, shifted, chosen, triangle, narrow, zeros_and_nans, across_rows]


def running(x, y, w):
    z = y * 1.0
    for i in range(1, len(x)):
        z[i] = z[i - 1] + x[i]
    return z


def user_sum(x, y, w):
    total = np.float64(0.0)
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


def reversed_reads(x, y, w):
    z = y * 1.0
    for i in range(len(x)):
        z[i] = x[len(x) - 1 - i] * w[2 * i % 7]
    return z


def overwritten_place(x, y, w):
    z = y * 1.0
    for i in range(len(x)):
        z[3 % (len(x) + 1)] = x[i]
    return z


def by_two(x, y, w):
    z = y * 1.0
    for i in range(0, len(x), 2):
        z[i] = x[i] * w[i]
    return z


ONE_BY_ONE = [running, user_sum, reversed_reads, by_two, two_results]


def inputs(n):
    draw = np.random.default_rng(n)
    return draw.normal(size=n), draw.normal(size=n), draw.normal(size=n + 6)


def call(f, *args):
    with np.errstate(all="ignore"):
        try:
            return f(*args)
        except IndexError as error:
            return str(error)


@pytest.mark.parametrize("f", LANES, ids=lambda f: f.__name__)
def test_what_runs_in_lanes(f, in_lanes):
    relay(f)(*inputs(40))
    assert in_lanes


@pytest.mark.parametrize("f", ONE_BY_ONE, ids=lambda f: f.__name__)
def test_what_does_not(f, in_lanes):
    relay(f)(*inputs(40))
    assert not in_lanes


@pytest.mark.parametrize("f", [*LANES, *ONE_BY_ONE, overwritten_place], ids=lambda f: f.__name__)
@pytest.mark.sampled(4)
def test_results_are_those_of_python_to_the_last_bit(f):
    compiled = relay(f)
    for n in SIZES if f is axpy else (0, 3, 17, 40):
        got, want = call(compiled, *inputs(n)), call(f, *inputs(n))
        if isinstance(want, str):
            assert got == want
            continue
        for mine, other in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            np.testing.assert_array_equal(mine, other)
            np.testing.assert_array_equal(np.signbit(mine), np.signbit(other))


# --- adjoints -----------------------------------------------------------------------------------------------------------


def packed(x, y, w):
    z, at = np.zeros(len(x)), 0
    for j in range(len(x)):
        for i in range(j + 1, len(x)):
            z[i] += w[at] * x[j] * y[i]
            at += 1
    return z


def twice(x, y, w):
    z = np.zeros(len(x))
    for i in range(len(x)):
        z[i] = x[i] * y[i] * x[i] - w[i] / (2.0 + x[i] * x[i])
    return z


def sums(x, y, w):
    z = np.zeros(len(x))
    for j in range(3):
        for i in range(len(x)):
            z[i] += x[i] * w[j] - y[j] * y[i] * w[j + 1]
    return z


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [packed, twice, sums], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [3, 17, 40, 83])
def test_adjoints_in_lanes(f, n, in_lanes):
    def back(x, y, w, g):
        _, pull = vjp(f, x, y, w)
        return pull(g)

    draw = np.random.default_rng(n)
    x, y, g = draw.normal(size=n), draw.normal(size=n), draw.normal(size=n)
    w = draw.normal(size=max(n + 6, n * (n - 1) // 2))
    got = relay(back)(x, y, w, g)
    assert bool(in_lanes) == (n >= 16)
    for k, (mine, other) in enumerate(zip(got, relay(back, executor="interpreter")(x, y, w, g), strict=True)):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13, err_msg=str(k))


def test_several_accumulators(in_lanes):
    def back(x, y, w, g):
        _, pull = vjp(packed, x, y, w)
        return pull(g)

    args = (*(np.ones(90),) * 2, np.ones(90 * 89 // 2), np.ones(90))
    got = relay(back)(*args)
    assert any(loop.sums for loop in in_lanes)
    np.testing.assert_array_equal(got[0], np.arange(89.0, -1.0, -1.0))  # as many terms as there are rows below
    np.testing.assert_array_equal(got[1], np.arange(90.0))
    np.testing.assert_array_equal(got[2], np.ones(90 * 89 // 2))


def test_results_where_they_are_wanted():
    def back(x, y, w, g):
        _, pull = vjp(packed, x, y, w)
        return pull(g)

    x, y, w = np.ones(40), np.ones(40), np.ones(780)
    out = (np.full(40, np.nan), np.full(40, np.nan), np.full(780, np.nan))
    got = relay(back).into(out)(x, y, w, x)
    assert all(a is b for a, b in zip(got, out, strict=True)) and np.isfinite(np.concatenate(out)).all()
    # Results that lie in the arguments: they are read before they are written.
    lent = (x, y, w)
    want = relay(back)(x.copy(), y.copy(), w.copy(), np.ones(40))
    relay(back).into(lent)(x, y, w, np.ones(40))
    for mine, other in zip(lent, want, strict=True):
        np.testing.assert_array_equal(mine, other)
