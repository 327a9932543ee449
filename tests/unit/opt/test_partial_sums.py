"""Cotangents of parts of what a loop reads: added where they belong, with nothing around them."""

import numpy as np
import pytest

from myia_relay import grad, relay
from tests.slopes import slopes

W = np.linspace(-0.8, 1.1, 2 * 3 * 5).reshape(2, 3, 5)
M = W[0]


def rows_of_rows(w):
    total = 0.0
    for i in range(4):
        layer = w[i % 2]
        total += np.sum(np.sin(layer[0] * layer[2]) + layer[1] * w[0, 1] * i)
    return total


def windows(w):
    total = 0.0
    for i in range(3):
        total += np.sum(w[:, 1:3] * w[:, :2]) * np.sum(w[i % 2, 1:] + w[1, :2]) * w[0, 2, 3] + np.sum(w[1])
    return total


def columns(w):
    total = 0.0
    for i in range(3):
        total += np.sum(w[:, :, 1] * w[:, :, 4]) + np.sum(w[i % 2, :, 1:4] ** 2)
    return total


def flat(w):
    v = w.reshape(-1)
    total = 0.0
    for i in range(3):
        total += np.sum(v[2:9] * v[4:11]) * v[i] + v[29] * v[0]
    return total


def inner_loops(w):
    total = 0.0
    for i in range(2):
        for j in range(3):
            total += np.sum(w[i, j, 1:] * w[1, 2, :4]) * np.sum(w[0, 0])
        total += np.sum(w[i, 0] * w[i, 1])
    return total


def while_loop(w):
    total, i = 0.0, 0
    while i < 3:
        total += np.sum(w[1, 0] * w[i % 2, 2]) + np.sum(w[0, 1:] * w[1, :2])
        i += 1
    return total


def selected(w):
    total = 0.0
    for i in range(4):
        x = w[0, 0] * 2.0 if i % 2 else w[1, 2] * w[1, 1]
        total += np.sum(x * x)
    return total


ALL = [rows_of_rows, windows, columns, flat, inner_loops, while_loop, selected]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("f", ALL)
def test_gradient(executor, f):
    np.testing.assert_allclose(relay(executor=executor)(grad(f))(W), slopes(f, W, 1e-6), atol=1e-7)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("f", ALL)
def test_second_gradient(f):
    def slope(w):
        return np.sum(grad(f)(w) * W)

    np.testing.assert_allclose(relay(grad(slope))(W), slopes(relay(slope), W, 1e-6), atol=1e-6)


@pytest.mark.parametrize("f", [rows_of_rows, windows, inner_loops])
def test_nothing_is_padded_in_a_loop(f):
    _, *bodies = str(relay(grad(f)).ir(W, stage="optimized")).split(".backward(")
    assert not any("pad{" in body for body in bodies)
    assert any("index_add{" in body or "slice_add{" in body for body in bodies)


def test_what_lies_in_no_one_piece_is_padded():
    assert "pad{" in str(relay(grad(columns)).ir(W, stage="optimized"))


def test_infinities_elsewhere_stay_there():
    """Zeros are not added to the rest: but what is there, NaN and infinities too, does not come into the part."""

    def f(w):
        total = 0.0
        for i in range(2):
            total += np.sum(np.sqrt(w[i])) + np.sum(w[0, 1:3])
        return total

    x = np.ones((2, 4))
    x[1, 2] = 0.0
    with np.errstate(all="ignore"):
        got = relay(grad(f))(x)
    want = np.full((2, 4), 0.5)
    want[0, 1:3] = 2.5
    want[1, 2] = np.inf
    np.testing.assert_array_equal(got, want)
