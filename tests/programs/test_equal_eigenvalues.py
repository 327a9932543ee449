"""Derivatives at equal eigenvalues: of functions of symmetric matrices, of sums over eigenvalues, of single vectors.

What the derivatives of f(A) along symmetric X, Y and Z must be, mpmath computes by its own functions of matrices and by differences
with many digits.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from myia_relay import grad, hessian, jvp, relay, vmap
from myia_relay import jacobian as relay_jacobian

EXECUTORS = ("interpreter", "python", "native")


def by_diag(f):
    def function(a):
        w, v = np.linalg.eigh(a)
        return v @ np.diag(f(w)) @ v.T

    return function


def by_columns(f):
    def function(a):
        w, v = np.linalg.eigh(a)
        return (v * f(w)) @ v.T

    return function


def by_rows(f):
    def function(a):
        w, v = np.linalg.eigh(a)
        return v @ (f(w)[:, None] * v.T)

    return function


def by_einsum(f):
    def function(a):
        w, v = np.linalg.eigh(a)
        return np.einsum("ij,j,kj->ik", v, f(w), v)

    return function


def from_the_left(f):
    def function(a):
        w, v = np.linalg.eigh(a)
        return np.eye(3) @ v @ (np.eye(3) * f(w)) @ v.T

    return function


def by_vectors(f):
    def function(a):
        w, v = np.linalg.eigh(a)
        return np.stack([v @ (f(w) * (v.T @ np.eye(3)[k])) for k in range(3)], axis=1)

    return function


def of_stacks(f):
    def function(a):
        w, v = np.linalg.eigh(np.stack([a, a]))
        return ((v * f(w)[:, None, :]) @ np.swapaxes(v, -1, -2))[1]

    return function


FORMS = (by_diag, by_columns, by_rows, by_einsum, from_the_left, by_vectors, of_stacks)

ROTATION = np.linalg.qr(np.array([[1.0, 2.0, -1.0], [0.5, 1.0, 3.0], [2.0, -1.0, 0.25]]))[0]
C = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0], [2.0, 2.0, 5.0]])
X = np.array([[1.0, 0.5, -1.0], [0.5, 2.0, 0.25], [-1.0, 0.25, -0.5]])
Y = np.array([[0.5, -1.0, 0.25], [-1.0, 1.0, 0.75], [0.25, 0.75, 2.0]])
Z = np.array([[0.0, 1.0, 0.5], [1.0, -1.0, 0.5], [0.5, 0.5, 1.0]])


def rotated(*w):
    return ROTATION @ np.diag(w) @ ROTATION.T


MATRICES = {
    "identity": np.eye(3),
    "two equal": np.diag([1.0, 1.0, 2.0]),
    "two equal, rotated": rotated(2.0, 0.5, 2.0),
    "1e-9 apart": rotated(1.0, 1.0 + 1e-9, 2.0),
    "1e-4 apart": rotated(1.0, 1.0001, 1.0002),
    "apart": rotated(0.5, 1.0, 2.0),
}

FUNCTIONS = {
    "exp": (lambda w: np.exp(w), lambda mp, m: mp.expm(m)),
    "log": (lambda w: np.log(w), lambda mp, m: mp.logm(m)),
    "sqrt": (lambda w: np.sqrt(w), lambda mp, m: mp.sqrtm(m)),
    "inverse": (lambda w: 1.0 / w, lambda mp, m: m**-1),
    "cube": (lambda w: w**3 - 2.0 * w, lambda mp, m: m * m * m - 2 * m),
}


def along(mp, function, a, *directions):
    """The derivative of C : f(a) along directions, by central differences of 120 digits."""
    step = mp.mpf(10) ** -12

    def value(signs):
        m = mp.matrix(a.tolist())
        for sign, x in zip(signs, directions):
            m += sign * step * mp.matrix(x.tolist())
        out = function(mp, m)
        return mp.fsum(mp.mpf(c) * mp.re(out[i, j]) for (i, j), c in np.ndenumerate(C))

    total = mp.mpf(0)
    for signs in itertools.product((1, -1), repeat=len(directions)):
        total += int(np.prod(signs)) * value(signs)
    return float(total / (2 * step) ** len(directions))


def orders(f):
    """The derivatives of orders 1 to 3 of C : f(a): along x, along x and y, along all; each by reverse mode."""

    def loss(a):
        return np.sum(f(a) * C)

    def one(a, x):
        return np.sum(grad(loss)(a) * x)

    def two(a, x, y):
        return np.sum(grad(one)(a, x) * y)

    def three(a, x, y, z):
        return np.sum(grad(two)(a, x, y) * z)

    return lambda a, x, y, z: (one(a, np.tril(x)), two(a, np.tril(x), np.tril(y)), three(a, *map(np.tril, (x, y, z))))


def forward_orders(f):
    """The same by forward mode."""

    def loss(a):
        return np.sum(f(a) * C)

    def one(a, x):
        return jvp(loss, (a,), (x,))[1]

    def two(a, x, y):
        return jvp(lambda b: one(b, x), (a,), (y,))[1]

    def three(a, x, y, z):
        return jvp(lambda b: two(b, x, y), (a,), (z,))[1]

    return lambda a, x, y, z: (one(a, x), two(a, x, y), three(a, x, y, z))


def mixed_orders(f):
    """By forward mode of reverse mode."""

    def loss(a):
        return np.sum(f(a) * C)

    def one(a, x):
        return np.sum(grad(loss)(a) * x)

    def two(a, x, y):
        return jvp(lambda b: one(b, x), (a,), (y,))[1]

    def three(a, x, y, z):
        return np.sum(grad(lambda b: two(b, x, y))(a) * z)

    return lambda a, x, y, z: (one(a, np.tril(x)), two(a, np.tril(x), y), three(a, np.tril(x), y, np.tril(z)))


@functools.cache
def wanted(name, label):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        return [along(mp, FUNCTIONS[name][1], MATRICES[label], *(X, Y, Z)[:k]) for k in (1, 2, 3)]


def lower(m):
    """The cotangent of the lower triangle, of one of a symmetric matrix."""
    return np.tril(m + m.T) - np.diag(np.diag(m))


@pytest.mark.parametrize("mode", [orders, forward_orders, mixed_orders])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sampled(4)
def test_functions_of_matrices(name, mode):
    got = relay(mode(by_columns(FUNCTIONS[name][0])), executor="interpreter")
    for label, a in MATRICES.items():
        np.testing.assert_allclose(got(a, X, Y, Z), wanted(name, label), rtol=1e-7, atol=1e-7, err_msg=label)


@pytest.mark.parametrize("executor", ["python", "native"])
def test_orders_in_other_executors(executor):
    got = relay(orders(by_columns(FUNCTIONS["exp"][0])), executor=executor)
    for label in ("identity", "two equal, rotated", "1e-9 apart"):
        np.testing.assert_allclose(got(MATRICES[label], X, Y, Z), wanted("exp", label), rtol=1e-7, err_msg=label)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled(4)
def test_forms(form, executor):
    f = form(lambda w: np.log(w))

    def loss(a, x):
        return np.sum(f(a) * C) + np.sum(grad(lambda a: np.sum(f(a) * C))(a) * x)

    got = relay(grad(loss), executor=executor)(np.eye(3) * 2.0, np.zeros((3, 3)))
    np.testing.assert_allclose(got, lower((C + C.T) / 4), atol=1e-12)
    second = relay(grad(loss), executor=executor)(np.eye(3) * 2.0, np.tril(X))
    s = (C + C.T) / 2
    np.testing.assert_allclose(second, lower(s / 2 - (s @ X + X @ s) / 8), atol=1e-12)


def test_batches(executor):
    f = by_columns(lambda w: np.exp(w))
    many = np.stack([np.eye(3), rotated(2.0, 0.5, 2.0), rotated(1.0, 1.0, 1.0)])
    slope = grad(lambda a: np.sum(f(a) * C))
    one = relay(slope, executor=executor)
    np.testing.assert_allclose(relay(vmap(slope), executor=executor)(many), [one(a) for a in many], atol=1e-10)

    def outside(many):
        return np.sum(vmap(f)(many) * C)

    np.testing.assert_allclose(relay(grad(outside), executor=executor)(many), [one(a) for a in many], atol=1e-10)
    np.testing.assert_allclose(one(many[0]), lower(np.e * (C + C.T) / 2), atol=1e-12)
    curvature = relay(relay_jacobian(slope), executor=executor)(np.eye(3))
    np.testing.assert_allclose(
        np.tensordot(curvature, np.tril(X)), lower(np.e * (X @ C + C @ X + (X @ C + C @ X).T) / 4), atol=1e-10
    )


def test_sums_over_eigenvalues(executor):
    def total(a):
        return np.sum(np.exp(np.linalg.eigvalsh(a)))

    def entropy(a):
        w, _ = np.linalg.eigh(a)
        p = w / np.sum(w)
        return -np.sum(p * np.log(p))

    got = relay(hessian(total), executor=executor)(np.eye(3))
    np.testing.assert_allclose(np.tensordot(got, np.tril(X)), lower(np.e * X), atol=1e-12)
    third = relay(
        grad(lambda a: np.sum(hessian(total)(a) * np.multiply.outer(np.tril(X), np.tril(Y)))), executor=executor
    )
    np.testing.assert_allclose(third(np.eye(3)), lower(np.e * (X @ Y + Y @ X) / 2), atol=1e-10)
    curved = relay(grad(lambda a: np.sum(grad(entropy)(a) * np.tril(X))), executor=executor)(np.eye(3))
    np.testing.assert_allclose(curved, lower(np.eye(3) * np.trace(X) / 9 - X / 3), atol=1e-12)


def test_functions_that_are_called_twice(executor):
    def total(a):
        return np.sum(np.exp(np.linalg.eigvalsh(a))) * np.cos(a[0, 0])

    def both(a, x):
        return grad(total)(a), grad(lambda a: np.sum(grad(total)(a) * x))(a)

    one, two = relay(both, executor=executor)(np.eye(3), np.tril(X))
    alone = relay(grad(lambda a, x: np.sum(grad(total)(a) * x)), executor=executor)(np.eye(3), np.tril(X))
    np.testing.assert_allclose(two, alone, atol=1e-12)
    assert np.isfinite(one).all() and np.isfinite(two).all()


def test_weights_of_states(executor):
    """A thermal state: the weights are functions of all eigenvalues, and of a temperature."""

    def energy(a, beta):
        w, v = np.linalg.eigh(a)
        p = np.exp(-beta * w)
        rho = (v * (p / np.sum(p))) @ v.T
        return np.sum(rho * C)

    by_a, by_beta = relay(grad(energy, argnums=(0, 1)), executor=executor)(np.eye(3), 0.5)
    s = (C + C.T) / 2
    np.testing.assert_allclose(by_a, lower(-0.5 * (s / 3 - np.eye(3) * np.trace(C) / 9)), atol=1e-12)
    np.testing.assert_allclose(by_beta, 0.0, atol=1e-12)


def test_some_of_the_states(executor):
    def density(a):
        _, v = np.linalg.eigh(a)
        occupied = v[:, :2]
        return np.sum((occupied @ occupied.T) * C)

    slope = relay(grad(density), executor=executor)
    s = (C + C.T) / 2
    got = slope(np.diag([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(got[2, :2], -2 * s[2, :2], atol=1e-12)
    np.testing.assert_allclose(got[:2, :2], 0, atol=1e-12)
    assert np.isnan(slope(np.diag([1.0, 2.0, 2.0]))).any()  # it jumps there

    def ground(a):
        _, v = np.linalg.eigh(a)
        return np.sum(np.outer(v[:, 0], v[:, 0]) * C)

    got = relay(grad(ground), executor=executor)(np.diag([1.0, 2.0, 2.0]))
    np.testing.assert_allclose(got[1:, 0], -2 * s[1:, 0], atol=1e-12)
    np.testing.assert_allclose(got[1:, 1:], 0, atol=1e-12)


def test_kinks(executor):
    """The nearest positive matrix: the function of the eigenvalues has a kink at 0, between those of the matrix."""

    def positive(a):
        w, v = np.linalg.eigh(a)
        return np.sum((v * np.maximum(w, 0.0)) @ v.T * C)

    got = relay(grad(positive), executor=executor)(np.diag([-1.0, 3.0, 3.0]))
    quotients = np.array([[0.0, 0.75, 0.75], [0.75, 1.0, 1.0], [0.75, 1.0, 1.0]])
    np.testing.assert_allclose(got, lower(quotients * (C + C.T) / 2), atol=1e-12)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_depends_on_the_basis_is_nan(executor):
    def of_vectors(a):
        w, v = np.linalg.eigh(a)
        return np.sum(v**4 * w)

    def of_singular_vectors(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return np.sum(u**4 * s) + np.sum(vh**3)

    for function in (of_vectors, of_singular_vectors):
        assert np.isnan(relay(grad(function), executor=executor)(np.eye(3))).any()
        assert np.isnan(relay(lambda a, x, f=function: jvp(f, (a,), (x,))[1], executor=executor)(np.eye(3), X))


def test_sums_over_singular_values(executor):
    def nuclear(a):
        return np.linalg.norm(a, "nuc") + np.sum(np.linalg.svd(a, full_matrices=False)[1] ** 2)

    np.testing.assert_allclose(relay(grad(nuclear), executor=executor)(np.eye(3)), 3 * np.eye(3), atol=1e-12)
