"""Products over an axis that turns out to be empty are zero: the libraries write no result, or refuse a leading dimension of 0.

Memory is poisoned here (`MYIA_RELAY_CHECKED`), so a result that is not written is NaN.
"""

# ruff: noqa: F821

import numpy as np
import pytest

from myia_relay import Float64, Tensor, grad, relay


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "1")
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")


def row(x: Tensor[Float64, ("k",)], y: Tensor[Float64, ("k", 64)]):
    return x @ y + 1.0


def column(x: Tensor[Float64, (3, "k")], y: Tensor[Float64, ("k",)]):
    return x @ y + 1.0


def both_open(x: Tensor[Float64, ("m", "k")], y: Tensor[Float64, ("k",)]):
    return x @ y + 1.0


def large_row(x: Tensor[Float64, ("k",)], y: Tensor[Float64, (2000, "k")]):
    return x @ y.T + 1.0


def matrices(x: Tensor[Float64, (3, "k")], y: Tensor[Float64, ("k", 64)]):
    return x @ y + 1.0


def of_columns(x: Tensor[Float64, ("k", "m")], y: Tensor[Float64, ("k", "n")]):
    return x.T @ y + 1.0


def batches(x: Tensor[Float64, (2, 8, "k")], y: Tensor[Float64, (2, 8, "k")]):
    return x @ np.swapaxes(y, 1, 2) + 1.0


def open_batches(x: Tensor[Float64, ("b", 3, "k")], y: Tensor[Float64, ("b", "k", 4)]):
    return x @ y + 1.0


SIZES = {"k": (5, 0, 1), "m": (4, 0), "n": (2,), "b": (2, 0)}


@pytest.mark.parametrize(
    "function",
    [row, column, both_open, large_row, matrices, of_columns, batches, open_batches],
    ids=lambda f: f.__name__,
)
def test_zeros(function):
    compiled = relay(function)
    shapes = [t.shape for t in function.__annotations__.values()]
    names = list(dict.fromkeys(d for shape in shapes for d in shape if isinstance(d, str)))
    for k in SIZES["k"]:
        for other in (0, -1):
            sizes = {name: k if name == "k" else SIZES[name][other] for name in names}
            x, y = (np.ones([sizes.get(d, d) for d in shape]) for shape in shapes)
            np.testing.assert_array_equal(compiled(x, y), function(x, y), str(sizes))


def test_the_gradient_of_an_empty_batch():
    @relay
    def loss(w: Tensor[Float64, (40, 3)], x: Tensor[Float64, ("n", 40)]):
        return np.sum(np.tanh(x @ w))

    np.testing.assert_array_equal(grad(loss)(np.ones((40, 3)), np.ones((0, 40))), np.zeros((40, 3)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("groups", [1, 8])
def test_the_gradient_of_a_convolution_of_no_images(groups):
    @relay
    def loss(w, x: Tensor[Float64, ("n", 8, 6, 6)]):
        return np.sum(relay.conv2d(x, w, padding=1, groups=groups) ** 2)

    w = np.ones((8, 8 // groups, 3, 3))
    np.testing.assert_array_equal(grad(loss)(w, np.ones((0, 8, 6, 6))), np.zeros_like(w))
