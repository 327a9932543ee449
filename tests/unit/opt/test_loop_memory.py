"""What adjoints of loops keep and add up: sums carried through, tapes that are arrays."""

import numpy as np
import pytest

from myia_relay import grad, relay, value_and_grad

X = np.linspace(0.2, 1.4, 6)
W = np.linspace(-1.0, 1.0, 24).reshape(4, 6)


def scalars(x, w):
    total = 0.0
    for i in range(4):
        y = x[i]
        for j in range(6):
            y = np.sin(y * w[i, j]) + x[j]
        total = total + y * y
    return total


def triangular(x, w):
    total = 0.0
    for i in range(4):
        y = w[i, i]
        for j in range(i):
            y = y + w[i, j] * np.tanh(x[j] * y)
        total = total + y * y
    return total


def rows(x, w):
    c = x * 1.0
    for i in range(1, 8, 2):
        for _ in range(3):
            c = np.tanh(c * w[i % 4]) + x
        c = c * w[0]
    return np.sum(c)


def backwards(x, w):
    c = x[0]
    for i in range(3, -1, -1):
        for j in range(5, 0, -2):
            c = np.cos(c * w[i, j]) * x[j]
    return c


def shared(x, w):
    kept = 0.0
    for i in range(4):
        a = w[i, 0]
        for j in range(6):
            a = a * x[j] + 0.5
        b = a
        for j in range(6):
            b = np.sin(b) * w[i, j] + a
        kept = kept + b
    return kept


def unknown(x, w):
    total = 0.0
    i = 0
    while total < 3.0 and i < 4:
        y = x[i]
        for j in range(6):
            y = np.sin(y * w[i, j]) + x[j]
        total = total + y * y
        i += 1
    return total


def branches(x, w):
    total = 0.0
    for i in range(4):
        y = x[i]
        if w[i, 2] > 0.0:
            for j in range(6):
                y = np.sin(y) * w[i, j]
        total = total + y * x[5 - i]
    return total


FUNCTIONS = [scalars, triangular, rows, backwards, shared, unknown, branches]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.sampled(8)
def test_derivatives_of_loops_are_those_of_the_interpreter(f, order):
    for _ in range(order - 1):
        f = _summed(f)
    derived = value_and_grad(f, (0, 1))
    want = relay(derived, executor="interpreter")(X, W)
    got = relay(derived)(X, W)
    for a, b in zip((got[0], *got[1]), (want[0], *want[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def _summed(f):
    return lambda x, w: sum(np.sum(d) for d in grad(f, (0, 1))(x, w))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_tapes_grow_only_where_the_turns_are_unknown(f):
    text = str(relay(grad(f, (0, 1))).tir(X, W))
    assert ("realloc" in text) == (f in (triangular, unknown, branches))


def test_inner_loops_add_to_the_sums_of_outer_ones():
    text = str(relay(grad(scalars, (0, 1))).ir(X, W))
    bodies = [part for part in text.split("\n\n") if "for.backward" in part.split("(")[0]]
    assert len(bodies) >= 2
    assert not any(" = add(" in line and "float64[" in line for body in bodies for line in body.splitlines())


def test_sums_of_users_keep_their_order():
    def f(x):
        first = np.zeros(6)
        for i in range(3):
            first = first + x * (10.0 ** (15 - 5 * i))
        return first + x

    np.testing.assert_array_equal(relay(f)(X), f(X))


def stacked(x, w):
    """Products whose results are kept for the way back, stored by the user, and read again."""
    kept = np.zeros((4, 6, 6))
    total = np.float64(0.0)
    a = np.outer(x, x)
    for i in range(4):
        b = a @ np.outer(w[i], x)
        kept[i] = b
        a = np.tanh(b) + b.T
        total = total + np.sum(b * a)
    return total + np.sum(kept * kept)


def in_a_branch(t, n):
    w = np.array([0.62, -0.67, -0.04]) + t * np.array([-0.32, 0.81, 0.89])
    if n > 1:
        for v in w * 1.5:
            if float(np.mean(np.outer(w, w)[2])) > 0.1:
                w = np.tanh(np.maximum(np.cumsum(w) * 0.5, w * 0.5) * float(np.sum(np.where(w > float(v), w, w) * w)))
    return float(np.sum(w * w))


@pytest.mark.parametrize("n", [1, 2])
def test_a_branch_that_ends_in_a_loop(n):
    want = relay(grad(in_a_branch), executor="interpreter")(0.9137, n)
    assert relay(grad(in_a_branch))(0.9137, n) == pytest.approx(want, rel=1e-12)


def test_what_is_computed_in_its_row():
    np.testing.assert_allclose(relay(stacked)(X, W), stacked(X, W), rtol=1e-13)
    want = relay(value_and_grad(stacked, (0, 1)), executor="interpreter")(X, W)
    got = relay(value_and_grad(stacked, (0, 1)))(X, W)
    for a, b in zip((got[0], *got[1]), (want[0], *want[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
