"""Matrices that are computed only to be multiplied by a vector."""

import numpy as np
import pytest

from myia_relay import grad, relay, vmap
from tests.slopes import slopes

A = np.sin(np.arange(12.0)).reshape(3, 4)
B = np.cos(np.arange(12.0)).reshape(3, 4)
X = np.linspace(-1.0, 2.0, 4)


def scaled(a, b, x):
    return 1.5 * a @ x + 1.2 * b @ x


def shifted(a, b, x):
    return np.exp(a - b) @ x, (a - b) @ (x + 1.0)


def used_twice(a, b, x):
    c = a * b
    return c @ x, c


def of_slices(a, b, x):
    out = np.zeros(3)
    for i in range(4):
        out[: i + 1] += (a[: i + 1, :i] * 2.0) @ x[:i]
    return out


@pytest.mark.parametrize("f", [scaled, shifted, used_twice, of_slices])
def test_values(f, executor):
    want, got = f(A, B, X), relay(executor=executor)(f)(A, B, X)
    for w, g in zip(*(r if isinstance(r, tuple) else (r,) for r in (want, got)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-14, atol=1e-15)


def test_gradients_and_batches(executor):
    def loss(a):
        return np.sum(scaled(a, B, X) ** 2) + np.sum(of_slices(a, B, X))

    np.testing.assert_allclose(relay(executor=executor)(grad(loss))(A), slopes(loss, A, 1e-6), atol=1e-7)
    batch = np.stack([A, B])
    got = relay(executor=executor)(vmap(scaled, in_axes=(0, None, None)))(batch, B, X)
    np.testing.assert_allclose(got, [scaled(a, B, X) for a in batch], rtol=1e-13)


def test_nothing_is_stored():
    kernels = str(relay(scaled).explain(np.ones((64, 64)), np.ones((64, 64)), np.ones(64))).partition("native program")[
        2
    ]
    assert "reduce_sum" in kernels and "matvec" not in kernels and "_mul" not in kernels


def test_what_is_used_again_is_stored():
    kernels = str(relay(used_twice).explain(np.ones((64, 64)), np.ones((64, 64)), np.ones(64)))
    assert "matvec" in kernels.partition("native program")[2]
