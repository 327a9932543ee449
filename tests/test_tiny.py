"""The first tests to run: everything that the README shows, end to end, in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import CompileError, Float, Model, ShapeError, Tensor, grad, relay, relay_model, value_and_grad, vmap


@relay
def power(x, y):
    while y > 1.0:
        x = x * x
        y = y / 2.0
    return x**3 * y


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def total(t: Tree):
    match t:
        case Leaf(value):
            return value
        case Node(left, right):
            return total(left) + total(right)


@relay
def scores(x, w):
    return x @ w


@relay_model
def classifier(x: Tensor[Float, (1, 28, 28)]) -> Tensor[Float, 10]:
    hidden = relay.tanh(relay.conv2d(x, num_filter=4, ksize=[1, 5, 5, 1]))
    pooled = relay.max_pool(hidden, ksize=[1, 4, 4, 1], strides=[1, 4, 4, 1])
    return relay.linear(relay.flatten_layer(pooled), num_hidden=10)


@relay
def loss(x: Tensor[Float, (1, 28, 28)], y: Tensor[Float, 10]) -> Float:
    return relay.softmax_cross_entropy(classifier(x), y)


@relay
def train(training_data) -> Model:
    model = relay.create_model(classifier)
    for x, y in training_data:
        model_grad = relay.grad(model, loss, (x, y))
        relay.update_model_params(model, model_grad)
    return relay.export_model(model)


@pytest.fixture(scope="module")
def digits():
    train_data, _ = relay.datasets.digits()
    return train_data[:200]


def test_a_function():
    f = relay(lambda x, y: x**3 * y**4)
    assert f(2.0, 3.0) == 648.0 and type(f(2, 3)) is int
    assert f(3.0, 1.0) == 27.0 and f.cache_info() == (1, 2, 2)


def test_control_flow_and_gradients_of_the_readme():
    assert (power(2.0, 4.0), grad(power, "x")(2.0, 4.0), grad(grad(power))(2.0, 4.0)) == (4096.0, 24576.0, 135168.0)


def test_every_executor_agrees(executor):
    f = relay(executor=executor)(lambda x: np.sum(np.tanh(x) * x))
    x = np.linspace(-2, 2, 7)
    assert f(x) == pytest.approx(np.sum(np.tanh(x) * x), rel=1e-14)
    value, slope = value_and_grad(f)(x)
    np.testing.assert_allclose(slope, np.tanh(x) + x / np.cosh(x) ** 2, rtol=1e-12)


def test_vmap():
    xs, w = np.arange(12.0).reshape(4, 3), np.ones((3, 2))
    np.testing.assert_array_equal(vmap(scores, in_axes=(0, None))(xs, w), xs @ w)
    np.testing.assert_allclose(vmap(grad(lambda x: x**3))(np.arange(4.0)), 3 * np.arange(4.0) ** 2)


def test_a_shape_error_shows_the_line():
    with pytest.raises(ShapeError) as info:
        scores(np.ones((3, 4)), np.ones((5, 6)))
    text = str(info.value)
    assert "return x @ w" in text and "^^^^^" in text and "4 and 5" in text and __file__ in text


def test_what_is_no_program_is_refused():
    def refused(x):
        try:
            return x
        finally:
            pass

    with pytest.raises(CompileError, match="'try' is not part of the language"):
        relay(refused)(1.0)


def test_errors_of_running_code_are_pythons():
    with pytest.raises(ZeroDivisionError, match="float division by zero"):
        relay(lambda x: 1.0 / x)(0.0)


def test_a_model_is_made_called_and_updated():
    model = relay.create_model(classifier, seed=1)
    assert list(model.params) == ["conv2d_0.weight", "conv2d_0.bias", "linear_0.weight", "linear_0.bias"]
    x, y = np.ones((1, 28, 28), np.float32), np.eye(10, dtype=np.float32)[3]
    assert model(x).shape == (10,)
    before, grads = value_and_grad(model, loss, (x, y))
    relay.update_model_params(model, grads, lr=0.1)
    after, _ = value_and_grad(model, loss, (x, y))
    assert after < before and grads["linear_0.bias"].dtype == np.float32


def test_trees_of_any_shape_are_one_compilation():
    assert total(Node(Leaf(1.0), Node(Leaf(2.0), Leaf(3.0)))) == 6.0 and total(Leaf(4.0)) == 4.0
    assert total.cache_info().misses == 1


def test_a_loss_without_a_model_says_what_to_do():
    with pytest.raises(TypeError, match=r"relay.create_model\(classifier\)"):
        loss(np.ones((1, 28, 28), np.float32), np.eye(10, dtype=np.float32)[3])


def test_the_training_loop_is_one_program(digits):
    model = train(digits)
    assert model(digits[0]).shape == (10,) and 0 <= relay.argmax(model(digits[0])) < 10


def test_fit_learns(digits):
    model = relay.create_model(classifier)
    history = relay.fit(
        model, loss, digits, epochs=6, batch_size=20, optimizer=relay.optim.adam(model, lr=1e-2), verbose=False
    )
    losses = history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_looking_inside():
    x = np.ones(3)
    f = relay(lambda v: np.sum(v * v))
    assert "mul" in str(f.ir(x)) and "return" in f.source(x) and "native" in f.explain(x)
    out = np.empty(3)
    assert relay(lambda v: v * 2.0).into(out)(x) is out and out.sum() == 6.0
