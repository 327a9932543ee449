"""Pooling of images of open size: vectors of windows, and what they leave to single ones."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay import Any, Float32, Float64, Tensor, relay

RNG = np.random.default_rng(4)
WINDOWS = [
    ((2, 2), (2, 2), 0),
    ((3, 3), (2, 2), ((1, 1), (1, 1))),
    ((3, 5), (1, 1), ((1, 0), (2, 4))),
    ((2, 3), (3, 3), 0),  # strides of which there are no vectors
]


@pytest.mark.parametrize("kind", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("window, strides, padding, checked", [*((*w, "") for w in WINDOWS), (*WINDOWS[1], "1")])
@pytest.mark.sampled(4)
def test_values(kind, window, strides, padding, checked, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CHECKED", checked)
    number, dtype = (Float64, np.float64) if checked else (Float32, np.float32)
    pool = getattr(relay, kind)

    @relay
    def f(x: Tensor[number, (Any, 3, Any, Any)]):
        return pool(x, window, strides=strides, padding=padding)

    for size in [(1, 3, 40, 37), (2, 3, 9, 71), (1, 3, 3, 5), (0, 3, 8, 80)]:
        x = RNG.standard_normal(size).astype(dtype)
        x[:, 1, 2, 3::7] = np.nan
        x[:, 2, 1, ::3] = -np.inf
        x[:, 0] *= x[:, 0] > 0  # equal ones, of either sign
        with np.errstate(invalid="ignore"):
            exact = relay(lambda x: pool(x, window, strides=strides, padding=padding)).interpret(x)
        tolerance = 0 if kind == "max_pool" else 1e-5
        np.testing.assert_allclose(f(x), exact, rtol=tolerance, atol=tolerance)
