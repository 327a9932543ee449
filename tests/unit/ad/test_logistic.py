"""The slope of 1 / (1 + exp(-x)) is made of its value alone."""

import numpy as np
import pytest

from myia_relay import grad, jacfwd, relay
from tests.slopes import slopes

X = np.array([-800.0, -30.0, -1.5, 0.0, 0.3, 2.0, 40.0, 800.0])


def as_written(x):
    return np.sum(1.0 / (1.0 + np.exp(-x)))


def turned(x):
    return np.sum(x * (1 / (np.exp(x) + 1)))


def with_other_uses(x):
    e = np.exp(-x)
    below = 1.0 + e
    return np.sum(1.0 / below + np.sqrt(e) * 0.5 + below * below)


def of_another_shape(x):
    return np.sum(1.0 / (1.0 + np.exp(-x[0])) * x)


def other_numbers(x):
    return np.sum(2.0 / (1.0 + np.exp(x)) + 1.0 / (2.0 + np.exp(x)) + 1.0 / (1.0 + np.exp2(x)))


def in_a_loop(x):
    total = 0.0
    for i in range(4):
        total += np.sum(1.0 / (1.0 + np.exp(-x * i)) * x)
    return total


def recurrence(w):
    h = w * 0.5
    for _ in range(4):
        h = 1.0 / (1.0 + np.exp(-(w * h + 1.0)))
    return np.sum(h)


ALL = [as_written, turned, with_other_uses, of_another_shape, other_numbers, in_a_loop, recurrence]


@pytest.mark.parametrize("f", ALL)
def test_gradient(executor, f):
    x = X[1:6] / 8
    np.testing.assert_allclose(relay(executor=executor)(grad(f))(x), slopes(f, x, 1e-6), atol=1e-8)


@pytest.mark.parametrize("f", ALL)
def test_second_derivative(f):
    x = X[2:6]

    def slope(x):
        return np.sum(grad(f)(x) * np.arange(4.0))

    np.testing.assert_allclose(relay(grad(slope))(x), slopes(relay(slope), x, 1e-6), atol=1e-7)


@pytest.mark.parametrize("f", ALL)
def test_both_modes_agree(f):
    x = X[2:6]
    np.testing.assert_allclose(relay(grad(f))(x), relay(jacfwd(f))(x), rtol=1e-12)


def test_one_number():
    def f(x):
        return 1.0 / (1.0 + np.exp(-x))

    s = 1 / (1 + np.exp(-0.7))
    assert relay(grad(f))(0.7) == pytest.approx(s * (1 - s), rel=1e-14)
    assert relay(grad(grad(f)))(0.7) == pytest.approx(s * (1 - s) * (1 - 2 * s), rel=1e-13)


def test_where_it_is_flat_it_is_no_nan():
    with np.errstate(over="ignore"):
        got = relay(grad(as_written))(X)
    assert got[0] == 0.0
    assert got[-1] == 0.0
    assert np.all(np.isfinite(got))


def test_the_exponential_is_not_kept():
    _, forward, *_ = str(relay(grad(recurrence)).ir(X, stage="optimized")).split(".forward(")
    assert forward.count("tape_push") == 2  # the state before an iteration and behind it
