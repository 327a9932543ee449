"""Sums of products over a loop's iterations: which become one product, and that gradients stay."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay, value_and_grad

N = 66
RNG = np.random.default_rng(5)
W, U = RNG.standard_normal((2, N, N)) / N**0.5
XS = RNG.standard_normal((5, 3, N))


@relay
def rows(w, u, xs):
    """Few rows in an iteration."""
    h = np.zeros(xs.shape[1:])
    for x in xs:
        h = np.tanh(x + h @ w.T)
    return np.sum(np.sin(h @ u))


@relay
def vectors(w, u, xs):
    """Outer products."""
    h = np.zeros(w.shape[0])
    for x in xs:
        h = np.tanh(x[0] + w @ h)
    return np.sum(np.sin(h @ u))


@relay
def backwards(w, u, xs):
    """Not all indices, in another order, and a sum that goes on from another one."""
    h = np.zeros(xs.shape[1:])
    for i in range(8, 0, -2):
        h = np.tanh(xs[i // 2] + h @ w * i)
    return np.sum(h * (h @ w)) + np.sum(u[0])


@relay
def nested(w, u, xs):
    """A loop in a loop."""
    total = 0.0
    for k in range(4):
        h = xs[k]
        for x in xs:
            h = np.tanh(x * k + h @ w)
        total += np.sum(h @ u)
    return total


@relay
def twice(w, u, xs):
    """A matrix is used twice in an iteration."""
    h = np.zeros(xs.shape[1:])
    for x in xs:
        h = np.tanh(x + np.tanh(h @ w) @ w)
    return np.sum(h @ u)


PROGRAMS = {f.__name__: f for f in (rows, vectors, backwards, nested, twice)}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sampled(4)
def test_gradients(name, executor, monkeypatch):
    gradient = value_and_grad(PROGRAMS[name], (0, 1))
    value, found = relay(executor=executor)(gradient)(W, U, XS)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "sum_products,batch_products")
    same, expected = relay(executor="interpreter")(gradient)(W, U, XS)
    assert value == pytest.approx(same, rel=1e-12)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name, inside", [("rows", 2), ("vectors", 2), ("backwards", 2)])
def test_the_sum_is_one_product(name, inside, monkeypatch):
    """One product of the step and one back stay in loops; the sum of the third is behind."""

    def products():
        text = str(relay(grad(PROGRAMS[name], 0)).ir(W, U, XS)).split("\n\n")
        return sum(line.count("= dot{") + line.count("= matvec{") for part in text[1:] for line in part.splitlines())

    def sums():
        text = str(relay(grad(PROGRAMS[name], 0)).ir(W, U, XS)).split("\n\n")
        return sum(f"float64[{N}, {N}]" in line.partition("  # ")[2] for part in text[1:] for line in part.splitlines())

    assert products() == inside and not sums()
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "sum_products")
    assert sums()


def test_sums_of_users_and_small_ones_stay():
    @relay
    def grams(xs):
        total = np.zeros((N, N))
        for x in xs:
            total = total + x.T @ x
        return total

    text = str(grams.ir(XS)).split("\n\n")
    assert "dot{" not in text[0] and "dot{" in text[1]
    w = W[:8, :8]
    small = str(relay(grad(rows, 0)).ir(w, w, XS[:, :, :8])).split("\n\n")
    assert not any("transpose_a=True" in line for line in small[0].splitlines())
