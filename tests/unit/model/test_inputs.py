"""Models of several inputs, and losses that return more than a number."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.utils.errors import CompileError, GradError, TypeError_

EXECUTORS = ("interpreter", "python", "native")
X = np.arange(4, dtype=np.float32)


@relay_model
def scaled(x: Tensor[Float, 4], scale=None, *, shift=0.0):
    y = relay.linear(x, 3)
    y = y if scale is None else y * scale
    return y + shift


def test_a_model_is_called_with_all_that_its_function_takes():
    model = relay.create_model(scaled, init=1.0)
    y = model.params["linear_0.weight"] @ X + model.params["linear_0.bias"]
    for call, wanted in (
        (lambda f: f(X), y),
        (lambda f: f(X, 2.0), 2 * y),
        (lambda f: f(X, scale=2.0), 2 * y),
        (lambda f: f(X, 2.0, shift=1.0), 2 * y + 1),
        (lambda f: f(X, shift=1.0, training=True), y + 1),
    ):
        np.testing.assert_allclose(call(model), wanted, rtol=1e-5)
        np.testing.assert_allclose(call(relay.export_model(model)), wanted, rtol=1e-5)
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        model(X, 1.0, 2.0)
    with pytest.raises(TypeError, match="'scal'; did you mean 'scale'"):
        model(X, scal=2.0)


def test_a_library_has_a_model_with_all_its_inputs(tmp_path):
    model = relay.create_model(scaled, init=1.0)
    relay.export_model(model).save(tmp_path / "scaled.so", X, 2.0)
    again = relay.load_compiled(tmp_path / "scaled.so")
    np.testing.assert_array_equal(again(X, 3.0), model(X, 3.0))


def loss(x, y, running):
    error = scaled(x) - y
    return np.mean(error**2), (running + 1, error)


def number(x, y):
    return np.mean((scaled(x) - y) ** 2)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_has_aux_with_a_model(executor):
    model = relay.create_model(scaled, init=1.0)
    y = np.ones(3, np.float32)
    want, gradient = relay.value_and_grad(model, relay(number, executor=executor), (X, y))
    found = relay.value_and_grad(model, relay(loss, executor=executor), (X, y, 3), has_aux=True)

    @relay(executor=executor)
    def inside(model, x, y):
        gradients, aux = relay.grad(model, loss, (x, y, 3), has_aux=True)
        return relay.value_and_grad(model, loss, (x, y, 3), has_aux=True), gradients, aux

    other, other_gradient, other_aux = inside(model, X, y)
    for (value, (running, error)), grads in (found, other, ((want, other_aux), other_gradient)):
        assert running == 4
        np.testing.assert_allclose(value, want, rtol=1e-6)
        np.testing.assert_allclose(error, model(X) - y, rtol=1e-6)
        for name, part in gradient.items():
            np.testing.assert_allclose(grads[name], part, rtol=1e-5)


def test_options_of_gradients_of_models_are_checked():
    model = relay.create_model(scaled)
    with pytest.raises(GradError, match=r"must return \(value, aux\)"):
        relay.grad(model, number, (X, X[:3]), has_aux=True)
    with pytest.raises(CompileError, match="unexpected keyword argument 'trainning'; did you mean 'training'"):
        relay(lambda model, x, y: relay.grad(model, number, (x, y), trainning=False))(model, X, X[:3])
    with pytest.raises(CompileError, match="by name: has_aux=, training="):
        relay(lambda model, x, y: relay.grad(model, number, (x, y), False))(model, X, X[:3])
    with pytest.raises(TypeError_, match="args must be a tuple"):
        relay.grad(model, number)
    with pytest.raises(TypeError_, match="no more arguments"):
        relay.grad(number, 0, False, X)
