"""Sums of padded arrays that lie one behind the other: which are written part by part, and that gradients stay."""

# ruff: noqa: UP037

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float64, Tensor, relay, value_and_grad

RNG = np.random.default_rng(6)
X = RNG.standard_normal((5, 300))
Y = RNG.standard_normal((300, 5))


@relay
def columns(x):
    a, b, c = x[:, :100], x[:, 100:180], x[:, 180:]
    return np.sum(np.tanh(a[:, :80]) * b) + np.sum(a * a) + np.sum(np.exp(c) * c)


@relay
def rows(x):
    return np.sum(np.sin(x[:100]) * np.cos(x[200:]) * x[100:200])


@relay
def overlapping(x):
    return np.sum(np.sin(x[:, :200]) * np.cos(x[:, 100:]))


@relay
def with_a_gap(x):
    return np.sum(np.sin(x[:, :100])) + np.sum(np.cos(x[:, 110:]))


@relay
def in_a_loop(x):
    h = x * 0.5
    for i in range(4):
        h = np.tanh(np.concatenate((h[:, 150:] * i, h[:, :150] * h[:, 150:]), axis=1) + x)
    return np.sum(h)


CASES = {"columns": (columns, X), "rows": (rows, Y), "overlapping": (overlapping, X)}
CASES |= {"with_a_gap": (with_a_gap, X), "in_a_loop": (in_a_loop, X)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(3)
def test_gradients(name, executor, monkeypatch):
    f, x = CASES[name]
    value, found = relay(executor=executor)(value_and_grad(f))(x)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "join_pads")
    same, expected = relay(executor="interpreter")(value_and_grad(f))(x)
    assert value == pytest.approx(same, rel=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "name, parts", [("columns", 3), ("rows", 3), ("overlapping", 0), ("with_a_gap", 0), ("in_a_loop", 2)]
)
@pytest.mark.sampled(2)
def test_which_are_written_apart(name, parts):
    f, x = CASES[name]
    (kernels,) = (rows for title, rows in relay(value_and_grad(f)).explain(x).sections if "kernel calls" in title)
    assert sum("dynamic_update_slice" in row[0] for row in kernels) == parts


def test_parts_of_a_symbolic_size():
    """How far they are padded is not known."""

    @relay
    def f(x, y: Tensor[Float64, ("n",)]):
        def loss(x):
            return np.sum(np.sin(x[: len(y)])) + np.sum(np.cos(x[len(y) :]))

        return value_and_grad(loss)(x)

    for n in (0, 3, 300):
        value, found = f(Y, np.ones(n))
        assert value == pytest.approx(np.sum(np.sin(Y[:n])) + np.sum(np.cos(Y[n:])))
        np.testing.assert_allclose(found, np.concatenate((np.cos(Y[:n]), -np.sin(Y[n:]))))
