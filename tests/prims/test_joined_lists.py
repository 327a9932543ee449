"""NumPy's functions of lists of arrays, and of lists of lists, whose lengths only the run tells."""

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay
from tests.programs.compare import differences

X = np.array([3.0, -1.0, 2.0, 0.5])
M = np.arange(6.0).reshape(2, 3)


def vectors(x, m, n):
    parts = [x * i for i in range(n)]
    joined = np.concatenate(parts), np.concatenate(parts, axis=None), np.hstack(parts), np.column_stack(parts)
    return np.array(parts), np.stack(parts), np.stack(parts, axis=1), np.stack(parts, -1), np.vstack(parts), *joined


def matrices(x, m, n):
    parts = [m + i for i in range(n)]
    joined = np.concatenate(parts), np.concatenate(parts, axis=1), np.concatenate(parts, axis=-1), np.hstack(parts)
    return np.asarray(parts), np.stack(parts, axis=2), np.vstack(parts), *joined, np.asarray(parts, np.float32)


def numbers(x, m, n):
    table = np.array([[i * j for i in range(n)] for j in range(3)]), np.array([[i * 0.5] * 2 for i in range(n)])
    return (
        *table,
        np.array([(i, j) for i in range(n) for j in range(2)]),
        np.array([[v > i for v in x] for i in range(n)]),
    )


def reduced(x, m, n):
    parts = [x * i for i in range(n)]
    return (
        np.sum(parts, axis=0),
        np.mean(parts),
        np.max(parts, axis=1),
        np.argmax(parts, 0),
        np.std(parts),
        np.median(parts, axis=0),
    )


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("function", [vectors, matrices, numbers, reduced])
@pytest.mark.sampled(24)
def test_as_in_numpy(function, n, executor):
    got = relay(executor=executor)(function)(X, M, n)
    assert not differences(got, function(X, M, n), rtol=1e-12)


def test_what_makes_no_array(executor):
    f = relay(executor=executor)(lambda x, n: np.stack([x * i for i in range(n)]))
    with pytest.raises(ValueError, match="need at least one array to stack"):
        f(X, 0)
    f = relay(executor=executor)(lambda x, n: np.array([[1.0] * i for i in range(1, n)]))
    with pytest.raises(ValueError, match="parts of different sizes make no array"):
        f(X, 3)
    with pytest.raises(CompileError):
        relay(lambda x, n: np.concatenate([x * i for i in range(n)], axis=1))(X, 3)


def test_gradients(executor):
    def loss(x, n):
        return np.sum(np.stack([x**i for i in range(n)]) * np.arange(n * 4.0).reshape(n, 4))

    f = relay(executor=executor)(grad(loss))
    for n in (1, 4):
        steps = np.eye(4) * 1e-6
        want = [(loss(X + s, n) - loss(X - s, n)) / 2e-6 for s in steps]
        assert np.allclose(f(X, n), want, atol=1e-5)
