"""Like terms: what is collected, what it is worth, and that users' code is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.ir.rewrite import count_nodes
from tests.unit.opt.test_rule_values import V, collected


def nodes(f, *args):
    return count_nodes(relay(f).ir(*args).graph)


@pytest.mark.parametrize(
    "f, slope, count",
    [
        (lambda x: x * x * x, lambda x: 3 * x * x, 2),
        (lambda x: 3.0 * x * x * x - 2.0 * x, lambda x: 9 * x * x - 2, 3),
        (lambda x: x * x - x * x, lambda x: 0.0, 0),
        (lambda x: 0.5 * (x * x) + 0.25 * x * 2.0, lambda x: x + 0.5, 1),
    ],
)
def test_sums_of_like_terms(f, slope, count):
    g = grad(f)
    for x in (1.3, -0.7, 0.0):
        assert relay(g, executor="interpreter")(x) == pytest.approx(slope(x), rel=1e-14)
    assert nodes(g, 1.3) <= count


def test_users_sums_are_theirs():
    def f(x, y):
        return (x + y) - x, 2.0 * (0.5 * x), x + x - x

    assert relay(f)(1e20, 1.0) == f(1e20, 1.0)
    assert relay(f)(float("inf"), 1.0)[1] == np.inf


def test_arrays():
    v = np.array([0.5, -1.0, 2.0])
    g = relay(grad(lambda v: np.sum(v * v * 0.5 + v * 3.0 - v)))
    np.testing.assert_allclose(g(v), v + 2.0)
    assert nodes(grad(lambda v: np.sum(0.5 * v**2)), v) == 0


@pytest.mark.parametrize("number", [2.0, 3.0])
def test_numbers_in_a_product_of_users_stay(number):
    assert collected(lambda x, y: (number * x) * y, V, V, loose=lambda node: False) is None
