"""Rows, columns and slices at run-time positions: read and written where they are, whatever the positions, as NumPy does it."""

import numpy as np
import pytest

from myia_relay import grad, relay, vmap
from tests.slopes import slopes

A = np.arange(30.0).reshape(5, 6) % 7 + 1.0
B = np.cos(np.arange(30.0)).reshape(6, 5)
X = np.linspace(-1.0, 2.0, 6)
BOUNDS = [(0, 3, 1), (2, 2, 0), (-2, 9, -1), (4, -1, 4), (3, 1, 2), (-9, 20, -5), (1, -3, 3)]
STEPS = [(0, 5, 2), (4, 0, -1), (9, -9, -2), (1, 1, 1), (-1, 2, -3)]


def products(a, b, x, i, j, k):
    return (
        a[k, :i] @ x[:i],
        a[k, i:j] @ x[i:j],
        a[:, i:j] @ x[i:j],
        a[i:, :j] @ x[:j],
        x[i:j] @ b[i:j, k:],
        np.transpose(a[i:j]) @ b[k, i:j] if len(a[i:j]) == len(b[k, i:j]) else x,
        a[i:j, 1:] @ b[1:, :k],
        a[:, i:j] @ b[i:j],
        b[i:j].T @ a[:, i:j].T,
        np.dot(b[i:j, k], x[i:j]),
        np.outer(a[k, i:j], b[i:j, k]),
    )


def elementwise(a, b, x, i, j, k):
    return (
        a[k, i:j] * x[i:j] + b[i:j, k],
        a[k][i:j],
        a.T[i:j, k] - x[i:j],
        (a + 1.0)[k, i:j],
        (a * b.T)[k][i:j],
        a[i:j, k] / 2.0,
        np.max(x[i:j] * a[k, i:j]) if len(x[i:j]) else 0.0,
        np.sum(a[i:j, k:], axis=0),
        a[i:j, i:j][:, ::-1],
        x[i:j][::-1],
        a[k, None, i:j, None],
        a[..., k],
        a[i:j, ..., k],
    )


def stepped(a, b, x, i, j, k):
    return x[i:j:k], a[2, i:j:k] * 2.0, a[i:j:k, 1], a[i:j:k] @ x, np.sum(a[::2, i:j:k])


def written(a, b, x, i, j, k):
    a, b, x = a.copy(), b.copy(), x.copy()
    a[k, i:j] -= 0.5 * x[i:j]
    a[i:j, k] = a[i:j, k] * 2.0
    b[i:j, k] = x[i:j]
    a[i:, j:] += 1.0
    x[i:j] *= x[k]
    b[i:j, 1:] = b[i:j, 1:] - np.outer(x[i:j], a[k, 1:5])
    return a, b, x


def overlapping(a, b, x, i, j, k):
    a, x = a.copy(), x.copy()
    a[k, 1:] = a[k, :-1]
    a[k, :-1] = a[k, 1:]
    a[k, i:j] = a[k, i:j][::-1]
    a[1:, k] = a[:-1, k]
    x[i:j] = x[i:j][::-1] + x[k]
    x[1:] += x[:-1]
    a[i] = a[j] + a[i]
    a[:, i] = a[:, j]
    a[i:, 0] -= a[i, j]
    return a, x


def swapped(a, b, x, i, j, k):
    a = a.copy()
    row = a[i].copy()
    a[i] = a[j]
    a[j] = row
    a[k, 1:4] = a[i, 0:3]
    return a


def _check(function, executor, bounds):
    compiled = relay(executor=executor)(function)
    for i, j, k in bounds:
        want, got = function(A, B, X, i, j, k), compiled(A, B, X, i, j, k)
        for w, g in zip(*(r if isinstance(r, tuple) else (r,) for r in (want, got)), strict=True):
            assert np.shape(w) == np.shape(g)
            np.testing.assert_allclose(g, w, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("function", [products, elementwise, written])
def test_slices(function, executor):
    _check(function, executor, [(i, j, k) for i, j, k in BOUNDS if -5 <= k < 5])


def test_steps(executor):
    _check(stepped, executor, STEPS)


@pytest.mark.parametrize("function", [overlapping, swapped])
def test_what_is_read_and_written_overlaps(function, executor):
    _check(function, executor, [(0, 3, 1), (2, 2, 0), (-2, 4, -1), (3, 1, 2), (4, 0, -2)])


def solved(a, b, x, i):
    """Forward substitution from row i on."""
    n = len(x)
    y = np.zeros(n)
    for r in range(i, n):
        y[r] = (x[r] - a[r, :r] @ y[:r]) / a[r, r]
    return np.sum(y * y)


def factored(a, b, x, i):
    n = len(x)
    low = np.zeros((n, n))
    for j in range(i, n):
        low[j, j] = np.sqrt(a[j, j] - np.sum(low[j, :j] ** 2))
        low[j + 1 :, j] = (a[j + 1 :, j] - low[j + 1 :, :j] @ low[j, :j]) / low[j, j]
    return np.sum(low * b)


def eliminated(a, b, x, i):
    a, b = a.copy(), b.copy()
    n = len(x)
    for k in range(i, n - 1):
        for r in range(k + 1, n):
            a[r, k + 1 :] -= a[r, k] / a[k, k] * a[k, k + 1 :]
        b[:k, k] *= a[k, k]
        b[k, 1:] = b[k, :-1] * a[k, 1:]
    return np.sum(a[:, i]) + np.sum(a[n - 1] * x) + np.sum(b * b)


def projected(a, b, x, i):
    n = len(x)
    q = np.zeros((n, n))
    for k in range(n):
        column = a[:, k] - q[:, :k] @ (q[:, :k].T @ a[:, k])
        q[:, k] = column / np.sqrt(column @ column)
        q[k, i:k] = q[k, i:k] + x[i:k] @ b[i:k, i:k]
    return np.sum(q * b)


LOOPS = [solved, factored, eliminated, projected]
SQUARE = A[:, :5] @ A[:, :5].T + 40.0 * np.eye(5)
OTHER, VECTOR = np.sin(np.arange(25.0)).reshape(5, 5), X[1:]


@pytest.mark.parametrize("function", LOOPS)
@pytest.mark.sampled(3)
def test_gradients(function, executor):
    compiled = relay(executor=executor)(grad(function, wrt=(0, 1, 2)))
    for i in (0, 2):
        got = compiled(SQUARE, OTHER, VECTOR, i)
        for k, g in enumerate(got):
            args = [SQUARE, OTHER, VECTOR]

            def of_one(value, k=k, i=i, args=args):
                return function(*args[:k], value, *args[k + 1 :], i)

            want = slopes(of_one, args[k], 1e-5)
            np.testing.assert_allclose(g, want, rtol=1e-5, atol=1e-8 * np.max(np.abs(want)) + 1e-8)


@pytest.mark.parametrize("function", LOOPS)
@pytest.mark.sampled(2)
def test_second_gradients(function):
    def slope(a, b, x, i):
        return np.sum(grad(function)(a, b, x, i) * b.T)

    compiled = relay(slope)
    want = slopes(lambda a: compiled(a, OTHER, VECTOR, 0), SQUARE, 1e-4)
    got = relay(grad(slope))(SQUARE, OTHER, VECTOR, 0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * np.max(np.abs(want)))


@pytest.mark.parametrize("function", LOOPS)
@pytest.mark.sampled(3)
def test_batches(function, executor):
    batch = np.stack([SQUARE, SQUARE * 1.5, SQUARE + np.eye(5)])
    got = relay(executor=executor)(vmap(function, in_axes=(0, None, None, None)))(batch, OTHER, VECTOR, 0)
    np.testing.assert_allclose(got, [function(a, OTHER, VECTOR, 0) for a in batch], rtol=1e-12)


@pytest.mark.parametrize("function", [solved, factored])
def test_a_row_is_no_copy_of_the_matrix(function):
    """No iteration cuts a part off the whole matrix, or makes an array as large as that."""
    n = 7
    a, b, x = np.eye(n), np.eye(n), np.ones(n)
    report = str(relay(function).explain(a, b, x, 0))
    assert "dynamic_slice" not in report.partition("native program")[2]
