"""Loops whose index chooses among large arrays, such as the weights of layers: unrolled, so that nothing is copied."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay, value_and_grad

RNG = np.random.default_rng(8)


def weights(n, count=2):
    return tuple({"w": RNG.standard_normal((n, n)) / n**0.5, "b": RNG.standard_normal(n)} for _ in range(count))


@relay
def network(xs, layers):
    h = [np.zeros(len(p["b"])) for p in layers]
    for x in xs:
        for k in range(len(layers)):
            h[k] = np.tanh(layers[k]["w"] @ x + h[k] * layers[k]["b"])
            x = h[k]
    return h[-1]


@relay
def at_run_time(xs, layers, k):
    h = xs[0]
    for i in range(3):
        h = np.tanh(layers[k]["w"] @ h + xs[i])
    return h


@relay
def stopping(xs, layers):
    h = xs[0]
    for k in range(len(layers)):
        h = np.tanh(layers[k]["w"] @ h)
        if h[0] > 0.0:
            break
    return h, k


XS, LARGE, SMALL = RNG.standard_normal((5, 70)), weights(70), weights(8)


def by_numpy(xs, layers):
    h = [np.zeros(len(p["b"])) for p in layers]
    for x in xs:
        for k, p in enumerate(layers):
            x = h[k] = np.tanh(p["w"] @ x + h[k] * p["b"])
    return h[-1]


@pytest.mark.parametrize("layers, xs", [(LARGE, XS), (SMALL, XS[:, :8])])
def test_values(executor, layers, xs):
    np.testing.assert_allclose(relay(executor=executor)(network)(xs, layers), by_numpy(xs, layers), rtol=1e-12)


def test_large_ones_are_not_chosen_and_small_ones_stay_a_loop():
    assert str(network.ir(XS, LARGE)).count("where(") == 0
    assert str(network.ir(XS[:, :8], SMALL)).count("where(") > 0


def test_gradient(executor):
    def loss(layers):
        return np.sum(network(XS, layers))

    value, slopes = relay(executor=executor)(value_and_grad(loss))(LARGE)
    assert value == pytest.approx(np.sum(by_numpy(XS, LARGE)))
    direction = RNG.standard_normal((70, 70))
    moved = [({**LARGE[0], "w": LARGE[0]["w"] + e * direction}, LARGE[1]) for e in (1e-6, -1e-6)]
    numeric = (np.sum(by_numpy(XS, moved[0])) - np.sum(by_numpy(XS, moved[1]))) / 2e-6
    assert np.sum(slopes[0]["w"] * direction) == pytest.approx(numeric, rel=1e-5)


def test_an_index_of_another_kind(executor):
    run = relay(executor=executor)(at_run_time)
    for k in (0, 1, -1):
        h = XS[0]
        for i in range(3):
            h = np.tanh(LARGE[k]["w"] @ h + XS[i])
        np.testing.assert_allclose(run(XS, LARGE, k), h, rtol=1e-12)
    with pytest.raises(IndexError):
        run(XS, LARGE, 2)


def test_loops_that_end_early(executor):
    layers = weights(70, 4)
    h = XS[0]
    for k in range(4):
        h = np.tanh(layers[k]["w"] @ h)
        if h[0] > 0.0:
            break
    found, at = relay(executor=executor)(stopping)(XS, layers)
    assert at == k
    np.testing.assert_allclose(found, h, rtol=1e-12)
