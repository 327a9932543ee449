"""In-place changes of complex arrays: the callers of a function, and all names, see them, as of real ones."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay, vmap
from tests.programs.cases import EXECUTORS, Cases
from tests.programs.test_changed_by_the_program import outcome

case = Cases()
Z = np.array([1 + 1j, 2.0, 3 - 1j])
Z32 = Z.astype(np.complex64)
M = np.array([True, False, True])


@case((Z, 2), (Z, 2.0), (Z, 1 + 1j), (Z, True), (Z, np.arange(3)), (Z32, 2.0), (Z32, Z))
def augmented(z, w):
    z += w
    z *= w
    z -= w
    z /= 3


@case((Z,), (Z32,))
def by_a_number(z):
    z *= 2.0
    z **= 2
    return z


def scaled(z, by):
    z *= by


@case((Z, 2.0), (Z32, 1j))
def by_a_helper(z, by):
    w = z.copy()
    scaled(w, by)
    scaled(z, by)
    v = np.array(z)
    v += 1
    return w, v


@case((Z,), (Z32,))
def items(z):
    z[0] = 5
    z[1] = 1j
    z[-1] += 2
    z[1:] *= 2j
    for i in range(len(z)):
        z[i] = z[i] * z[i] + i
    return z.sum()


@case((np.arange(6).reshape(2, 3) * 1j,))
def rows(w):
    w[0][1] = 3
    w[1] = w[0]
    w[:, 0] /= 2
    w[:, 1:] += 1j


@case((Z, M))
def masks(z, m):
    z[m] *= 2
    z[~m] = 1j
    z[m] += np.array([1.0, 2.0])


@case((Z,))
def positions(z):
    z[[0, 0, 1]] += 1j
    z[np.array([2, 1])] = z[1:] * 3


@case(({"z": Z, "n": 2.0},))
def of_a_dict(d):
    d["z"] *= 1j
    d["z"][0] += 1


@case(([Z, Z + 1],))
def of_a_list(zs):
    zs[0] *= 2
    zs[1][0] = 1


@case((Z, 1), (Z, 0))
def in_a_branch(z, n):
    if n > 0:
        z -= z.mean()
        z /= abs(z).max()
    return z


@case((Z, 1), (Z, 0))
def before_an_exception(z, n):
    z[0] = n
    if n:
        z += 1
        raise ValueError("so")


@case.each
def test_the_caller_sees_it(function, args, executor):
    compiled = relay(executor=executor)(function)
    got, want = outcome(compiled, copy.deepcopy(args)), outcome(function, copy.deepcopy(args))
    assert got == want


def as_another_name(z):
    w = z if z[0].real > -9 else z + 1
    w *= 2
    return z


def real_part(z):
    r = z.real
    r += 1
    return z


def of_real_numbers(z):
    x = np.zeros(3)
    x += 1j
    return x


REFUSED = [
    (as_another_name, "'w' may be part of the parameter 'z'"),
    (real_part, "'r' may be part of the parameter 'z'"),
    (of_real_numbers, "complex numbers do not fit into float64"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_refused(function, message):
    with pytest.raises(CompileError, match=message):
        relay(function, executor="interpreter")(Z)


def energy(x):
    z = x + 0j
    z *= 1 + 2j
    z[0] = x[1]
    return np.sum(np.abs(z) ** 2)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_derivatives_and_batches(executor):
    x = np.array([1.0, 2.0, 3.0])  # x1^2 + 5 (x1^2 + x2^2)
    f = relay(energy, executor=executor)
    np.testing.assert_allclose(grad(f)(x), [0.0, 24.0, 30.0], rtol=1e-12)
    np.testing.assert_allclose(vmap(f)(np.stack([x, 2 * x])), [69.0, 276.0], rtol=1e-12)
