"""Records with behaviour: operators, calls, methods and properties of frozen dataclasses; their gradients are records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import grad, relay


@dataclass(frozen=True)
class Vec:
    x: float
    y: float

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __neg__(self):
        return Vec(-self.x, -self.y)

    def __sub__(self, other):
        return self + -other

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __lt__(self, other):
        return self @ self < other @ other

    def __getitem__(self, i):
        return (self.x, self.y)[i]

    @property
    def norm2(self):
        return self @ self


@dataclass(frozen=True)
class Affine:
    a: float
    b: float

    def __call__(self, x):
        return self.a * x + self.b


def arithmetic(u, v):
    w = 2.0 * u + v * 3.0 - u
    return w, w @ u, u < v, w.norm2, u == v, u == u, w[1]


def accumulate(u, n):
    total = Vec(0.0, 0.0)
    for i in range(n):
        total += u * i
    return total


def energy(u):
    return (u + u * 2.0).norm2


def layers(fs, x):
    for f in fs:
        x = f(x)
    return x


U, V = Vec(1.0, 2.0), Vec(3.0, -1.0)


@pytest.mark.parametrize("function, args", [
    (arithmetic, (U, V)), (accumulate, (U, 4)), (accumulate, (U, 0)), (layers, ((Affine(2.0, 1.0), Affine(0.5, -1.0)), 3.0)),
])  # fmt: skip
def test_values(function, args, executor):
    assert relay(executor=executor)(function)(*args) == function(*args)


def test_gradients_are_records(executor):
    gradient = grad(relay(executor=executor)(energy))(U)
    assert type(gradient) is Vec and gradient == Vec(18.0, 36.0)
    by_layers = grad(relay(executor=executor)(layers))((Affine(2.0, 1.0), Affine(0.5, -1.0)), 3.0)
    assert by_layers == (Affine(1.5, 0.5), Affine(7.0, 1.0))


def test_fields_may_be_arrays(executor):
    u = Vec(np.arange(3.0), np.ones(3))

    @relay(executor=executor)
    def total(u):
        return np.sum((u * 2.0).x) + np.sum(u.y)

    assert total(u) == 9.0
    np.testing.assert_array_equal(grad(total)(u).x, np.full(3, 2.0))


def views_of_dicts(x, y):
    d, e = {"a": x, "b": y}, {"b": y, "a": x}
    f, g = {"a": x}, {"a": x, "b": 3.0}
    keys = d.keys() == e.keys(), d.keys() == f.keys(), d.keys() != f.keys(), d.keys() == g.keys()
    return keys, (d.items() == e.items(), d.items() == f.items(), d.items() == g.items(), d.items() != g.items())


@pytest.mark.parametrize("args", [(1.0, 2.0), (1.0, 3.0), (3.0, 3.0)])
def test_keys_and_items_are_equal_as_sets(args, executor):
    assert relay(executor=executor)(views_of_dicts)(*args) == views_of_dicts(*args)
