"""Derivatives, batches and symbolic sizes of the linear algebra that is written in the language."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float64, Tensor, grad, relay, vmap

SQUARE = np.array([[2.0, -1.0, 0.5], [1.0, 3.0, -1.0], [0.0, 2.0, 5.0]])
RIGHT = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]])
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)


def determinant(a: Tensor[Float64, ("n", "n")]):  # noqa: F821, UP037
    return np.linalg.det(a)


def solution(a):
    return np.sum(np.linalg.solve(a, RIGHT) ** 2)


def inverse(a):
    return np.sum(np.linalg.inv(a) ** 3)


def factor(a):
    return np.sum(np.linalg.cholesky(a) ** 3)


def numerically(f, a, step=1e-6):
    out = np.zeros_like(a)
    for i in np.ndindex(a.shape):
        d = np.zeros_like(a)
        d[i] = step
        out[i] = (f(a + d) - f(a - d)) / (2 * step)
    return out


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("function", [determinant, solution, inverse, factor])
def test_gradient(function, executor):
    a = POSITIVE if function is factor else SQUARE
    got = grad(relay(executor=executor)(function))(a)
    # NumPy's factor is of the lower triangle alone.
    part = np.tril if function is factor else np.asarray
    np.testing.assert_allclose(part(got), part(numerically(function, a)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_sizes_and_batches(executor):
    compiled = relay(executor=executor)(determinant)
    for n in (0, 1, 2, 3):
        np.testing.assert_allclose(compiled(SQUARE[:n, :n].copy()), np.linalg.det(SQUARE[:n, :n]), rtol=1e-12)
    assert compiled.cache_info().misses == 1
    both = np.stack([SQUARE, POSITIVE])
    np.testing.assert_allclose(vmap(compiled)(both), np.linalg.det(both), rtol=1e-12)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 3)), ((4, 4), (4, 4)), ((8, 2), (2, 8)), ((9, 5), (5, 9))])
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_batches_of_products_with_one_left_matrix(shapes, executor):
    """Few small ones are taken one by one, larger ones together; both ways are the same to the last rounding."""
    rng = np.random.default_rng(4)
    a = rng.normal(size=shapes[0])
    for count in (1, 5, 31, 32):
        b = rng.normal(size=(count, *shapes[1]))
        turned = b.transpose(0, 2, 1).copy()
        f = relay(executor=executor)(lambda a, b, t: (relay.vmap(lambda x: a @ x)(b), relay.vmap(lambda x: a @ x.T)(t)))
        for got in f(a, b, turned):
            np.testing.assert_allclose(got, a @ b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("size", [3, 4])
def test_products_of_tangents_that_are_mostly_zero(size):
    """A chain of iterations: each angle moves what hangs on it. Natively, products of zeros are not computed."""

    def chain(angles, first):
        out = np.zeros((len(angles), size, size))
        for k in range(len(angles)):
            iteration = np.eye(size)
            iteration[0, 0], iteration[0, 1] = np.cos(angles[k]), -np.sin(angles[k])
            iteration[1, 0], iteration[1, 1] = np.sin(angles[k]), np.cos(angles[k])
            before = first if k % 4 == 0 else out[k - 1]
            out[k] = before @ iteration @ first
        return out

    rng = np.random.default_rng(5)
    angles, first = rng.normal(size=12), rng.normal(size=(size, size))
    jacobian = relay.jacobian(chain)
    got, want = (relay(executor=e)(jacobian)(angles, first) for e in ("native", "interpreter"))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    for tangent in (
        np.array([0.0, 2.0] * 6),
        np.array([0.0, np.nan] + [0.0] * 10),
        np.array([0.0, np.inf] + [-0.0] * 10),
    ):
        along = [
            relay(executor=e)(
                lambda a, f, t: relay.vmap(lambda s: relay.jvp(lambda a: chain(a, f), (a,), (s * t,))[1])(np.ones(9))
            )
            for e in ("native", "interpreter")
        ]
        with np.errstate(invalid="ignore"):
            got, want = (f(angles, first, tangent) for f in along)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
