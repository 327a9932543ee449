"""`jvp` and `vjp` of functions that return arrays whose sizes they decide: tangents have these sizes, and cotangents must."""

import numpy as np
import pytest

from myia_relay import CompileError, ShapeError, grad, jacfwd, jvp, relay, vjp, vmap

X = np.array([3.0, -1.0, 2.0, 4.0, -5.0, 6.0])
V = np.array([1.0, -2.0, 0.5, 3.0, 1.0, -1.0])
POSITIVE = X > 0


def positive(x):
    return x[x > 0] ** 2


def several(x, n):
    return x[:n] * x[0], np.sum(x), {"a": np.outer(x[:n], x), "i": np.arange(n)}


def grown(x, n):
    y = x[:1]
    for _ in range(n):
        y = np.concatenate((y * 2.0, y * x[1]))
    return y


def constant(x, n):
    return np.arange(n) * 1.0


def test_along_a_direction(executor):
    f = relay(executor=executor)(positive)
    for inside in (False, True):
        run = (
            relay(executor=executor)(lambda x, v: jvp(positive, (x,), (v,)))
            if inside
            else lambda x, v: jvp(f, (x,), (v,))
        )
        for x in (X, -np.abs(X), np.abs(X)):
            y, t = run(x, V)
            np.testing.assert_array_equal(y, positive(x))
            np.testing.assert_array_equal(t, (2 * x * V)[x > 0])
    (y, total, rest), (dy, d, drest) = jvp(relay(executor=executor)(several), (X, 2), (V, None))
    np.testing.assert_array_equal(dy, V[:2] * X[0] + X[:2] * V[0])
    np.testing.assert_array_equal(drest["a"], np.outer(V[:2], X) + np.outer(X[:2], V))
    assert d == V.sum() and drest["i"] is None and total == X.sum() and y.shape == (2,) and rest["i"].tolist() == [0, 1]


@pytest.mark.sampled(3)
def test_back(executor):
    y, pullback = vjp(relay(executor=executor)(positive), X)
    np.testing.assert_array_equal(y, positive(X))
    want = np.zeros(6)
    want[POSITIVE] = 2 * X[POSITIVE] * np.arange(4)
    np.testing.assert_array_equal(pullback(np.arange(4.0))[0], want)
    np.testing.assert_array_equal(pullback(None)[0], np.zeros(6))
    for size in (3, 1, 5):
        with pytest.raises(ShapeError, match=f"vjp: the cotangent of the result: sizes 4 and {size} meet"):
            pullback(np.ones(size))
    with pytest.raises(CompileError, match="belongs"):
        pullback(np.ones((4, 1)))
    with pytest.raises(CompileError, match="convert it"):
        pullback(np.ones(4, np.float32))


def test_back_through_several_results(executor):
    _, pullback = vjp(relay(executor=executor)(several), X, 2)
    a = np.arange(12.0).reshape(2, 6)
    got, none = pullback((np.array([1.0, 2.0]), 3.0, {"a": a, "i": None}))
    want = np.full(6, 3.0) + X[:2] @ a
    want[:2] += np.array([1.0, 2.0]) * X[0] + a @ X
    want[0] += X[:2] @ np.array([1.0, 2.0])
    assert none is None
    np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("function", [grown, constant])
@pytest.mark.sampled(9)
def test_forward_and_back_agree(function, n, executor):
    f = relay(executor=executor)(function)
    y, t = jvp(f, (X, n), (V, None))
    np.testing.assert_array_equal(y, function(X, n))
    steps = (function(X + 1e-6 * V, n) - function(X - 1e-6 * V, n)) / 2e-6
    np.testing.assert_allclose(t, steps, atol=1e-6)
    dout = np.arange(1.0, y.size + 1)
    (back, _) = vjp(f, X, n)[1](dout)
    np.testing.assert_allclose(back @ V, dout @ t, rtol=1e-12)


@pytest.mark.sampled(3)
def test_higher_orders(executor):
    forward = relay(executor=executor)(lambda x: grad(lambda x: np.sum(jvp(positive, (x,), (x,))[1]))(x))
    np.testing.assert_array_equal(forward(X), np.where(POSITIVE, 4 * X, 0.0))
    back = relay(executor=executor)(lambda x: grad(lambda x: np.sum(vjp(positive, x)[1](positive(x))[0]))(x))
    np.testing.assert_array_equal(back(X), np.where(POSITIVE, 6 * X**2, 0.0))


def test_float32_stays(executor):
    x = X.astype(np.float32)
    y, pullback = vjp(relay(executor=executor)(positive), x)
    (got,) = pullback(np.ones(4, np.float32))
    assert y.dtype == got.dtype == np.float32
    np.testing.assert_array_equal(got, np.where(POSITIVE, 2 * x, 0))


def test_what_is_still_refused_says_what_to_write():
    for function, x in ((jacfwd(positive), X), (lambda x: jacfwd(positive)(x), X), (vmap(positive), X[None])):
        with pytest.raises(CompileError, match=r"keep the size \(np.where"):
            relay(function)(x)
