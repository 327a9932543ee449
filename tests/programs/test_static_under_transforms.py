"""`static=` of a decorated function holds under every transform: values that the compiler has to know, by position or name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import myia_relay
from myia_relay import Float, Tensor, grad, relay, value_and_grad, vmap

X = np.arange(6.0).reshape(2, 3)
XS = np.stack([X, X + 1])


@relay(static="axis")
def energy(x, axis):
    return np.sum(np.cumsum(x, axis=axis) ** 2)


@relay(static=("axis", "times"))
def repeated(x, axis, times=1):
    for _ in range(times):
        x = np.concatenate([x, x], axis=axis)
    return np.sum(x**2)


@relay(static="axis")
def summed(x, axis):
    return np.sum(x, axis=axis)


def slope(x, axis):
    """The gradient of `energy`: 2 c summed from the end."""
    c = 2 * np.cumsum(x, axis=axis)
    return np.flip(np.cumsum(np.flip(c, axis), axis=axis), axis)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("axis", [0, 1])
def test_gradients(executor, axis):
    f = relay(energy, executor=executor)  # which keeps what is static
    assert f(X, axis) == energy(X, axis)
    np.testing.assert_allclose(grad(f)(X, axis), slope(X, axis))
    np.testing.assert_allclose(grad(f)(X, axis=axis), slope(X, axis))
    np.testing.assert_allclose(grad(f, "x")(X, axis), slope(X, axis))
    value, found = value_and_grad(f)(X, axis)
    assert value == f(X, axis)
    np.testing.assert_allclose(found, slope(X, axis))


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_batches(executor):
    f = relay(summed, executor=executor)
    want = np.stack([X.sum(0), X.sum(0) + 2])
    for got in (vmap(f)(XS, 0), vmap(f, (0, None))(XS, 0), vmap(f)(XS, axis=0)):
        np.testing.assert_allclose(got, want)
    g = relay(energy, executor=executor)
    np.testing.assert_allclose(vmap(grad(g))(XS, 1), np.stack([slope(X, 1), slope(X + 1, 1)]))
    np.testing.assert_allclose(grad(myia_relay.batch_mean(g))(XS, 1), np.stack([slope(X, 1), slope(X + 1, 1)]) / 2)


def test_other_derivatives():
    v = np.ones((2, 3))
    for direction in (0, None):
        value, tangent = myia_relay.jvp(energy, (X, 0), (v, direction))
        assert value == energy(X, 0)
        np.testing.assert_allclose(tangent, np.sum(slope(X, 0)))
    value, pullback = myia_relay.vjp(energy, X, 0)
    assert value == energy(X, 0)
    np.testing.assert_allclose(pullback(1.0)[0], slope(X, 0))
    product, nothing = myia_relay.hvp(energy, (X, 0), (v, None))
    assert nothing is None
    np.testing.assert_allclose(product, slope(v, 0))
    for jacobian in (myia_relay.jacobian, myia_relay.jacfwd, myia_relay.jacrev):
        np.testing.assert_allclose(jacobian(summed)(X, 0), np.stack([np.tile(row, (2, 1)) for row in np.eye(3)]))
    np.testing.assert_allclose(np.einsum("ijkl,kl->ij", myia_relay.hessian(energy)(X, 0), v), slope(v, 0))


def test_of_transforms_and_copies():
    np.testing.assert_allclose(pickle.loads(pickle.dumps(grad(energy)))(X, 0), slope(X, 0))
    np.testing.assert_allclose(relay(grad(energy))(X, 0), slope(X, 0))
    np.testing.assert_allclose(grad(myia_relay.checkpoint(energy))(X, 0), slope(X, 0))
    np.testing.assert_allclose(grad(energy).interpret(X, 1), slope(X, 1))
    out = np.zeros((2, 3))
    np.testing.assert_allclose(grad(energy).into(out)(X, 1), slope(X, 1))
    for times in (1, 2):
        np.testing.assert_allclose(grad(repeated)(X, 0, times), 2 * 2**times * X)
        np.testing.assert_allclose(grad(repeated)(X, 0, times=times), 2 * 2**times * X)


def test_inside_of_compiled_code():
    @relay
    def both(x):
        return grad(energy)(x, 0), vmap(summed)(np.stack([x, x]), 1), vmap(summed, (0, None))(np.stack([x, x]), 1)

    first, second, third = both(X)
    np.testing.assert_allclose(first, slope(X, 0))
    for got in (second, third):
        np.testing.assert_allclose(got, np.stack([X.sum(1), X.sum(1)]))


class Steps:
    @relay(static="axis")
    def energy(self, x, axis):
        return np.sum(np.cumsum(x, axis=axis) ** 2)


def test_of_methods():
    np.testing.assert_allclose(grad(Steps().energy)(X, 1), slope(X, 1))


@myia_relay.relay_model
def line(x: Tensor[Float, 3]):  # pyright: ignore
    return myia_relay.linear(x, num_hidden=2)


@relay(static="kind")
def error(x, kind):
    return np.sum(line(x)) if kind == "sum" else np.mean(line(x))


def test_of_the_loss_of_a_model():
    model = myia_relay.create_model(line, seed=0)
    sums = grad(model, error, (np.ones(3, np.float32), "sum"))
    means = grad(model, error, (np.ones(3, np.float32), "mean"))
    for name, value in sums.items():
        np.testing.assert_allclose(value, 2 * means[name], rtol=1e-6)
