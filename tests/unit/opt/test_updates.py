"""Assignments to elements and their adjoints: one store each, never a copy of the whole."""

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.ir.prim import adds_to_part
from myia_relay.ir.rewrite import all_graphs
from myia_relay.ir.updates import is_update
from tests.slopes import slopes

X = np.linspace(0.2, 1.1, 12)


def elements(x):
    y = np.zeros((3, 4))
    at = 0
    for i in range(3):
        for j in range(4):
            y[i, j] = x[at] * x[i]
            at += 1
    return np.sum(y * y * y)


def overwritten(x):
    y = x * 2.0
    for i in range(11):
        y[i] = y[i + 1] * x[i]
        y[i + 1] = np.sin(y[i])
    return np.sum(y * y)


def rows(x):
    y = np.ones((4, 12))
    for i in range(3):
        y[i] = x * y[i + 1]
        y[i, 2:5] = x[i : i + 3] * 2.0
    return np.sum(y[0] * y[1] + y[2])


def kept(x):
    y = x * 3.0
    for i in range(12):
        y[i] = y[i]
    return np.sum(y * x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [elements, overwritten, rows, kept])
def test_gradient(executor, f):
    np.testing.assert_allclose(relay(executor=executor)(grad(f))(X), slopes(f, X, 1e-6), atol=1e-8)


def test_an_assignment_is_one_store_backwards():
    text = str(relay(grad(elements)).ir(X, stage="optimized"))
    backward = text.partition("for.for.backward(")[2].partition("return")[0]
    assert backward.count("dynamic_update") == 2  # of an element in a row, of the row
    assert backward.count("index_add") <= 2  # of the gradient by x, in its two places


def test_what_is_put_back_is_no_change():
    assert "dynamic_update" not in str(relay(kept).ir(X, stage="optimized"))


def test_special_values():
    x = np.array([np.nan, -0.0, np.inf, 1.0])

    def put_back(x):
        y = x * 1.0
        for i in range(4):
            y[i] = y[i]
        return y

    got = relay(put_back)(x)
    np.testing.assert_array_equal(got, x)
    assert np.signbit(got[1])


def parts_of_parts(a):
    """Rows of slices, slices of rows, columns of slices, the same element twice, and a row taken from others and from itself."""
    total, m, n = 0.0, a * 1.0, 5
    for i in range(1, n):
        total += np.sum(m[i, :i] * m[i - 1, :i]) * m[i, i] + np.sum(m[i:, i] * m[i:, i - 1]) * m[i - 1, i]
        total += np.sum(np.outer(m[i:, i], m[i, :i]) * m[i:, :i])
        m[i, i - 1] = m[i, i - 1] * m[i - 1, i] + m[i, i] * total
        m[i, i:] -= m[i, i - 1] * m[i - 1, i:]
        m[i:, i] /= 2.0 + m[i - 1, i - 1]
    return total + np.sum(m * m)


def test_cotangents_of_parts_of_parts(executor):
    a = np.sin(np.arange(25.0)).reshape(5, 5)
    np.testing.assert_allclose(
        relay(executor=executor)(grad(parts_of_parts))(a), slopes(parts_of_parts, a), rtol=1e-5, atol=1e-6
    )


def test_what_is_added_to_a_part_of_a_part_has_no_zeros_around_it():
    def f(a):
        u = a * 1.0
        for i in range(1, 5):
            for j in range(1, 5):
                u[i, j] = u[i - 1, j] * u[i, j - 1] + u[i, j]
            u[i, 2:] -= u[i, 1] * u[i - 1, 2:]
        return np.sum(u * u)

    graph = grad(f).ir(np.ones((6, 6)), stage="optimized").graph
    adding = [n for g in all_graphs(graph) for n in g.nodes if adds_to_part(n)]
    assert adding and not any(is_update(n.args[1]) for n in adding)
