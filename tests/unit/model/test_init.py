"""Initialisers: what they draw, how they are named and configured, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.model.init import initialiser
from myia_relay.utils.errors import CompileError, TypeError_, ValueError_

KEY = np.uint64(7)
SHAPE = (200, 30, 3, 2)
FAN_IN, FAN_OUT = 180, 1200

DEVIATIONS = {
    "normal": 0.01,
    "uniform": 0.1 / np.sqrt(3),
    "xavier_uniform": np.sqrt(2 / (FAN_IN + FAN_OUT)),
    "xavier_normal": np.sqrt(2 / (FAN_IN + FAN_OUT)),
    "kaiming_uniform": np.sqrt(2 / FAN_IN),
    "kaiming_normal": np.sqrt(2 / FAN_IN),
}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_means_and_deviations(name):
    drawn = initialiser(name)(KEY, SHAPE, np.float32)
    assert drawn.dtype == np.float32 and drawn.shape == SHAPE
    assert abs(drawn.mean()) < 5 * DEVIATIONS[name] / np.sqrt(drawn.size)
    assert drawn.std() == pytest.approx(DEVIATIONS[name], rel=0.02)  # five standard errors are 0.019
    if name.endswith("uniform"):
        assert abs(drawn).max() <= DEVIATIONS[name] * np.sqrt(3) * 1.0001
    np.testing.assert_array_equal(drawn, initialiser(name)(KEY, SHAPE, np.float32))
    assert not np.array_equal(drawn, initialiser(name)(np.uint64(8), SHAPE, np.float32))


def test_options():
    assert relay.init.normal(2.0)(KEY, SHAPE, np.float64).std() == pytest.approx(2, rel=0.02)
    low = relay.init.uniform(2.0, 3.0)(KEY, SHAPE, np.float64)
    assert 2 <= low.min() and low.max() < 3
    out = relay.init.kaiming_normal(a=1.0, mode="fan_out")(KEY, SHAPE, np.float64)
    assert out.std() == pytest.approx(np.sqrt(1 / FAN_OUT), rel=0.02)
    assert relay.init.normal(std=0.5) == relay.init.normal(0.5) != relay.init.normal
    assert repr(relay.init.normal(0.5)) == "relay.init.normal(std=0.5)"


@pytest.mark.parametrize("shape", [(8, 3), (3, 8), (4, 2, 3)])
def test_orthogonal(shape):
    drawn = relay.init.orthogonal(3.0)(KEY, shape, np.float64)
    rows = drawn.reshape(shape[0], -1) / 3
    gram = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)


def test_vectors_have_no_fans():
    for name in ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal"):
        assert not initialiser(name)(KEY, (5,), np.float32).any()
    assert relay.init.ones(KEY, (2,), np.float32).tolist() == [1, 1]


def test_refusals():
    with pytest.raises(ValueError_, match=r"no such initialiser; did you mean 'normal'"):
        initialiser("normall")
    with pytest.raises(TypeError_, match="is no initialiser"):
        initialiser([1])
    with pytest.raises(TypeError_, match="no option 'sdt'"):
        relay.init.normal(sdt=1.0)
    with pytest.raises(TypeError_, match="has the options std"):
        relay.init.normal(1.0, 2.0)
    with pytest.raises(ValueError_, match="'fan_in' or 'fan_out'"):
        relay.init.kaiming_uniform(mode="fan")(KEY, SHAPE, np.float32)


def test_models():
    def mine(key, shape, dtype):
        return relay.random.uniform(key, shape, 5.0, 6.0)

    @relay_model
    def net(x: Tensor[Float, 4]):
        x = relay.linear(x, 30, init=relay.init.normal(0.5))
        x = relay.linear(x, 4, init={"weight": "orthogonal", "bias": mine})
        x = relay.linear(x, 40, init=1e-6)
        return relay.linear(x, 2)

    params = relay.create_model(net, init="ones").params
    assert params["linear_0.weight"].std() == pytest.approx(0.5, rel=0.3)
    np.testing.assert_allclose(params["linear_1.weight"] @ params["linear_1.weight"].T, np.eye(4), atol=1e-6)
    assert ((params["linear_1.bias"] >= 5) & (params["linear_1.bias"] < 6)).all()
    assert abs(params["linear_2.weight"]).max() < 1e-5
    assert (params["linear_3.weight"] == 1).all() and (params["linear_3.bias"] == 1).all()

    @relay_model
    def draws(x: Tensor[Float, 4]):
        return x + relay.init.normal(0, (4,), np.float32)

    with pytest.raises(CompileError, match="draws in Python"):
        relay.create_model(draws)
