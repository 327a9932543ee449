"""Sizes that a run decides may be 0: arrays without elements beside others, in every kernel that computes positions by division."""

# ruff: noqa: F821

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay import Float, Tensor, grad, relay

ROW = np.arange(5)


def repeated(x, n, k):
    return np.concatenate([x, np.repeat(np.arange(n), k)])


def tiled(x, n, k):
    return np.concatenate([np.tile(np.arange(n), k), x])


def growing(x, n, k):
    s = np.zeros(0, np.int64)
    for j in range(k, -1, -1):
        s = np.concatenate([s, np.repeat(np.arange(n), j)[:9]])
    return s


def padded(x, n, k):
    return np.pad(np.repeat(np.arange(n), k), (2, 3))


def turned(x, n, k):
    return np.concatenate([np.repeat(np.arange(n), k).reshape(n, k).T.reshape(-1), x])


def beside(x, n, k):
    return np.concatenate([np.ones((n, 2)), np.repeat(np.arange(n) * 1.0, k).reshape(n, k)], axis=1).reshape(-1)


def multiplied(x, n, k):
    return np.concatenate([np.ones((3, n)) @ np.repeat(np.arange(n) * 1.0, k).reshape(n, k), np.ones((2, k))]).reshape(
        -1
    )


def written(x, n, k):
    r, y = np.repeat(np.arange(n), k), np.zeros(20, np.int64)
    y[2 : 2 + len(r)] = r
    return y


def outer(x, n, k):
    return np.concatenate([np.outer(np.arange(n), np.arange(k)).reshape(-1), x])


@pytest.mark.parametrize("executor", ["native", "interpreter"])
@pytest.mark.parametrize("f", [repeated, tiled, growing, padded, turned, beside, multiplied, written, outer])
def test_none_of_some_size(f, executor):
    compiled = relay(f, executor=executor)
    for n in range(3):
        for k in range(3):
            found, expected = compiled(ROW, n, k), f(ROW, n, k)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected, err_msg=f"n = {n}, k = {k}")


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (2, 2)])
def test_parameters_of_no_elements(shape):
    @relay
    def joined(x: Tensor[Float, ("n", "m")], y: Tensor[Float, "k"]):
        return np.concatenate([x.T.reshape(-1) * 2.0, y])

    x, y = np.ones(shape, np.float32), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(joined(x, y), np.concatenate([x.T.reshape(-1) * 2, y]))
    weights = np.arange(x.size + 3, dtype=np.float32)
    found = grad(lambda x, y: np.sum(joined(x, y) * weights))(x, y)
    np.testing.assert_array_equal(found, 2 * weights[: x.size].reshape(shape[::-1]).T)
