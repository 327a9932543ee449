"""Derived code that reads quotients in place of their numerators: which products do, and that gradients stay."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay, value_and_grad
from myia_relay.opt.analysis.fusion import fuse
from myia_relay.opt.rewrite.quotients import LEAST

RNG = np.random.default_rng(8)
X, V = RNG.standard_normal((300, 128)), RNG.standard_normal((128, 7))
assert X.size >= LEAST


@relay
def attended(x):
    return np.sum(relay.softmax(x) @ V)


@relay
def normalised(x):
    away = x - np.mean(x, axis=1, keepdims=True)
    return np.sum((away / np.sqrt(np.mean(away * away, axis=1, keepdims=True) + 1e-5)) @ V)


@relay
def guarded(x):
    """Where the divisor is 0 the program does not divide; the numerator's own gradient must not either."""
    e = np.exp(x)
    s = np.sum(np.maximum(x, 0.0), axis=1, keepdims=True)
    p = np.where(s > 0.0, e / s, 0.0)
    return np.sum(p @ V) + np.sum(e * e)


CASES = {"attended": (attended, 1), "normalised": (normalised, 1), "guarded": (guarded, None)}


def used_by_adjoints(f, x, monkeypatch, without):
    """How many values of the forward pass derived code reads, of the size of x."""
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", without)
    graph = relay(value_and_grad(f)).ir(x).graph
    read = {a for n in graph.nodes if n.origin.is_adjoint for a in n.args if a in set(graph.nodes)}
    return sum(not a.origin.is_adjoint and getattr(a.type, "shape", ()) == x.shape for a in read)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", [300, 3])
def test_gradients(name, rows, executor, monkeypatch):
    f, _ = CASES[name]
    x = X[:rows].copy()
    x[1] = -np.abs(x[1])  # a row without anything positive
    with np.errstate(all="ignore"):
        value, found = relay(executor=executor)(value_and_grad(f))(x)
        monkeypatch.setenv("MYIA_RELAY_WITHOUT", "read_quotients")
        same, expected = relay(executor="interpreter")(value_and_grad(f))(x)
    assert value == pytest.approx(same, rel=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["attended", "normalised"])
def test_one_array_less_is_kept(name, monkeypatch):
    f, less = CASES[name]
    before = used_by_adjoints(f, X, monkeypatch, "read_quotients")
    assert used_by_adjoints(f, X, monkeypatch, "") == before - less


@relay
def bent(x):
    h = relay.gelu(x * 2.0)
    return np.sum((h @ V[:, :1]) ** 2)


@pytest.mark.parametrize("rows, kept", [(1024, False), (1000, True)])
def test_the_backward_pass_computes_anew(rows, kept):
    """From a megabyte on, erf is computed in a kernel of each pass; below it is kept."""
    x = np.resize(X, (rows, 128))
    graph = relay(value_and_grad(bent)).ir(x).graph
    fusion = fuse(graph)
    (node,) = (n for n in graph.nodes if getattr(n.fn, "name", "") == "erf")
    assert (node in fusion.again) != kept
    value, found = relay(value_and_grad(bent))(x)
    same, expected = relay(executor="interpreter")(value_and_grad(bent))(x)
    assert value == pytest.approx(same, rel=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
