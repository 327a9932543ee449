"""Products with a matrix that a loop does not change: which become one product, and that values and gradients stay."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay, value_and_grad

N = 70  # a matrix of so many rows and columns is one that is worth it

RNG = np.random.default_rng(3)


def weights(*shape, dtype=np.float64):
    return (RNG.standard_normal(shape) / shape[-1] ** 0.5).astype(dtype)


W, U, V, B = weights(N, N), weights(N, N), weights(N, N), weights(N)
XS = RNG.standard_normal((6, N))


@relay
def recurrent(xs, w, u, b):
    h = np.zeros(b.shape[0])
    for x in xs:
        h = np.tanh(w @ x + u @ h + b)
    return h


@relay
def batches(xs, w, u, b):
    h = np.zeros(xs.shape[1:])
    for x in xs:
        h = np.tanh(x @ w.T + h @ u + b)
    return h


@relay
def layers(xs, w, u, v):
    a = b = c = np.zeros(w.shape[0])
    for x in xs:
        a = np.tanh(w @ x + u @ a)
        b = np.tanh(v @ a + w @ b)
        c = np.tanh(u @ b + v @ c) + a
    return a, b, c


@relay
def residual(xs, w, u):
    h1 = h2 = np.zeros(w.shape[0])
    s = np.float64(0.0)
    for x in xs:
        before = h1
        h1 = np.tanh(u @ h1 + x)
        s = s + h1[0]
        h2 = np.tanh(w @ h1 + u @ h2) + before * s + h1
    return h2, s


@relay
def backwards(xs, w, u):
    h = np.zeros(w.shape[0])
    for i in range(len(xs) - 1, 0, -2):
        h = np.tanh(w @ (xs[i] * 2.0 + i) + u @ h)
    return h


@relay
def deep(xs, w, u, v):
    h = np.zeros(w.shape[0])
    for x in xs:
        h = np.tanh(w @ np.tanh(v @ x) + u @ h)
    return h


@relay
def turned(xs, w, u):
    h = np.zeros(w.shape[0])
    for x in xs:
        h = np.tanh(x @ (w * 2.0) + h @ u)
    return h


@relay
def checked(xs, w, u):
    h = g = np.zeros(w.shape[0])
    for x in xs:
        h = np.tanh(w @ x + u @ h)
        assert h[0] < 2.0, "large"
        g = np.tanh(w @ h + g)
    return h + g


@relay
def rows_of_others(xs, ys, w, u):
    h = np.zeros(w.shape[0])
    for i in range(5):
        h = np.tanh(w @ xs[ys[i]] + u @ h)
    return h


YS = np.array([3, 0, 5, 0, 2])
PROGRAMS = {
    # name: function, arguments, products left in loops, products outside of them
    "recurrent": (recurrent, (XS, W, U, B), 1, 1),
    "batches": (batches, (XS.reshape(6, 1, N).repeat(3, 1), W, U, B), 1, 1),
    "layers": (layers, (XS, W, U, V), 3, 3),
    "residual": (residual, (XS, W, U), 2, 1),
    "backwards": (backwards, (RNG.standard_normal((12, N)), W, U), 1, 1),
    "deep": (deep, (XS, W, U, V), 1, 2),
    "turned": (turned, (XS, W, U), 1, 1),
    "checked": (checked, (XS, W, U), 2, 1),
    "rows_of_others": (rows_of_others, (XS, YS, W, U), 1, 1),
}


def counted(f, args):
    """How many products a program has in loops, and outside of them."""
    text = str(f.ir(*args)).split("\n\n")
    found = [sum("= dot{" in line or "= matvec{" in line for line in part.splitlines()) for part in text]
    return sum(found[1:]), found[0]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sampled(6)
def test_values_and_products(name, executor, monkeypatch):
    f, args, inside, outside = PROGRAMS[name]
    run = relay(executor=executor)(f)
    found = run(*args)
    assert counted(run, args) == (inside, outside)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "batch_products")
    plain = relay(executor="interpreter")(f)
    expected = plain(*args)
    assert counted(plain, args)[1] == 0
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected))):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sampled(9)
def test_gradients(name, executor, monkeypatch):
    f, args, _, _ = PROGRAMS[name]
    which = tuple(k for k, a in enumerate(args) if a.dtype == np.float64)

    def loss(*args):
        out = f(*args)
        return np.sum(out[0] * 2.0) + np.sum(out[-1])

    gradient = value_and_grad(loss, which)
    found = relay(executor=executor)(gradient)(*args)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "batch_products")
    expected = relay(executor="interpreter")(gradient)(*args)
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    for a, b in zip(found[1], expected[1]):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_loop_that_may_fail_fails_where_it_did():
    xs = np.stack([np.full(N, 5.0)] * 6)
    w = np.eye(N)

    @relay
    def failing(xs, w, u):
        h = np.zeros(w.shape[0])
        for i in range(6):
            assert h[0] < 0.5, f"large in {i}"
            h = np.tanh(w @ xs[i] + u @ h)
        return h

    with pytest.raises(AssertionError, match="large in 1"):
        failing(xs, w, w)


def test_what_is_small_or_large_enough_stays():
    @relay
    def small(xs, w):
        h = np.zeros(w.shape[0])
        for x in xs:
            h = np.tanh(w @ x + h)
        return h

    assert counted(small, (RNG.standard_normal((6, 8)), weights(8, 8)))[1] == 0
    assert counted(small, (XS[:3], W))[1] == 0  # few iterations

    @relay
    def many_rows(xs, w):
        h = np.zeros((100, w.shape[0]))
        for x in xs:
            h = np.tanh(x @ w + h)
        return h

    assert counted(many_rows, (RNG.standard_normal((6, 100, N)), W))[1] == 0


def test_no_more_is_kept_of_an_iteration_than_is_needed():
    _, args, _, _ = PROGRAMS["layers"]
    graphs = str(layers.ir(*args)).split("\n\n")
    assert sum("for_loop" in g for g in graphs[0].splitlines()) == 3
    assert sum("dynamic_update" in line for g in graphs for line in g.splitlines()) == 2  # a and b
