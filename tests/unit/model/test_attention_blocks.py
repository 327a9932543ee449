"""Attention by blocks of queries computes what the whole matrix of scores gives, and its derivatives."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from myia_relay import grad, jvp, relay, vmap

module = importlib.import_module("myia_relay.model.layers.attention")
RNG = np.random.default_rng(3)


def drawn(*shape):
    return RNG.standard_normal(shape)


def causal(q, k, v):
    return relay.attention(q, k, v, causal=True)


def all_keys(q, k, v):
    return relay.attention(q, k, v)


def reference(q, k, v, seen=None, bias=0.0):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]) + bias
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.fixture
def blocks_of(monkeypatch):
    """Makes blocks of so many rows, for small arrays too."""

    def make(rows):
        for name, value in dict(LARGE=1, LARGE_CAUSAL=1, LEAST_ROWS=rows, MOST_ROWS=rows, SPANS=2).items():
            monkeypatch.setattr(module, name, value)

    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")  # its keys know nothing of these
    return make


@pytest.mark.sampled(6)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("n, m", [(17, 17), (13, 5), (5, 13), (2, 7)])
def test_blocks(n, m, executor, blocks_of):
    blocks_of(3)
    q, k, v = drawn(2, 1, n, 4), drawn(3, m, 4), drawn(3, m, 2)
    seen = np.tri(n, m, dtype=bool)
    np.testing.assert_allclose(relay(causal, executor=executor)(q, k, v), reference(q, k, v, seen), rtol=1e-12)
    np.testing.assert_allclose(relay(all_keys, executor=executor)(q, k, v), reference(q, k, v), rtol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(11, 11), (1, 11), (11, 1), (2, 11, 11)])
def test_masks(shape, blocks_of):
    blocks_of(3)
    q, k, v = drawn(2, 11, 4), drawn(2, 11, 4), drawn(2, 11, 3)
    bias = drawn(*shape)
    masked = relay(lambda q, k, v, mask: relay.attention(q, k, v, mask=mask))
    np.testing.assert_allclose(masked(q, k, v, bias), reference(q, k, v, bias=bias), rtol=1e-12)
    seen = (bias > -1) | (np.arange(11) == 0) if shape[-1] == 11 else np.ones(shape, bool)
    np.testing.assert_allclose(masked(q, k, v, seen), reference(q, k, v, seen), rtol=1e-12)
    vector = relay(lambda q, k, v, mask: relay.attention(q, k, v, mask=mask))
    np.testing.assert_allclose(vector(q, k, v, bias.reshape(-1)[:1]), reference(q, k, v), rtol=1e-12)


def test_derivatives(blocks_of):
    q, k, v, t = drawn(2, 9, 4), drawn(2, 9, 4), drawn(2, 9, 3), drawn(2, 9, 4)

    def derivatives():
        @relay
        def value(q, k, v):
            return np.sum(relay.attention(q, k, v, causal=True) ** 2)

        gradients = grad(value, ("q", "k", "v"))(q, k, v)
        tangent = jvp(value, (q, k, v), (t, k, v))
        second = grad(relay(lambda q: np.sum(grad(value)(q, k, v) ** 2)))(q)
        each = vmap(relay(lambda q, k, v: relay.attention(q, k, v, causal=True)))(q, k, v)
        return [*gradients, *tangent, second, each]

    whole = derivatives()
    blocks_of(2)
    for want, got in zip(whole, derivatives(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_large_ones_do_without_the_matrix_of_scores():
    many, few = np.zeros((1, 1024, 8), np.float32), np.zeros((1, 64, 8), np.float32)
    assert "1024, 1024" not in str(relay(causal).ir(many, many, many))
    assert "float32[1, 64, 64]" in str(relay(causal).ir(few, few, few))
