"""Counters in loops are computed again in the adjoint, and `y[i] += v` hands cotangents on as they are."""

import numpy as np
import pytest

from myia_relay import grad, relay
from tests.slopes import slopes

X = np.linspace(0.3, 1.2, 30)


def packed(x):
    total, at = 0.0, 0
    for i in range(4):
        for j in range(i, 5):
            total += np.sin(x[at] * x[j])
            at += 1
    return total


def strides(x):
    total, at, back = 0.0, 2, 29
    for i in range(9, 0, -2):
        total = total * x[at] + x[back] * x[i]
        at += 3
        back = back - 2
    return total


def growing(x):
    y = np.zeros(6)
    at = 0
    for i in range(6):
        for j in range(i + 1, 6):
            y[i] += x[at] * x[j]
            at += 1
    return np.sum(y * y * y)


def negative(x):
    total, at = 0.0, -30
    for _ in range(3):
        for _ in range(1, 8, 3):
            total += x[at] ** 3
            at += 2
    return total


def stops(x):
    total, at = 0.0, 0
    for i in range(20):
        if x[at] > 0.8:
            break
        total += x[at] ** 2 * x[i]
        at += 2
    return total


def never(x):
    total, at = 0.0, 3
    for _ in range(0):
        total += x[at]
        at += 1
    return total + x[at] ** 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [packed, strides, growing, negative, stops, never])
def test_gradient(executor, f):
    gradient = relay(executor=executor)(grad(f))
    np.testing.assert_allclose(gradient(X), slopes(f, X, 1e-6), atol=1e-8)


@pytest.mark.sampled(3)
def test_second_derivative(executor):
    once = relay(executor="interpreter")(grad(growing))
    twice = relay(executor=executor)(grad(lambda x: np.sum(grad(growing)(x) * X)))
    expected = slopes(lambda x: np.sum(once(x) * X), X, 1e-6)
    np.testing.assert_allclose(twice(X), expected, atol=1e-7)


def test_batched():
    from myia_relay import vmap

    xs = np.stack([X, X[::-1] * 0.5, X * X])
    np.testing.assert_allclose(relay(vmap(grad(packed)))(xs), [grad(packed)(x) for x in xs], rtol=1e-13)


def test_nothing_of_a_counter_is_kept():
    text = str(relay(grad(strides)).ir(X, stage="differentiated"))
    assert "tape<int>" not in text
    text = str(relay(grad(growing)).ir(X, stage="optimized"))
    assert (
        "tape<int>" not in text
        and "dynamic_update" not in text.partition(".for.for.backward")[2].partition("return")[0]
    )
