"""Convolutions with gaps between the taps of their filters: what filters with zeros in the gaps give, and their gradients."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay import Any, Float32, Tensor, grad, relay
from myia_relay.backend.tvm.kernels import depthwise_conv, direct_conv, opaque
from myia_relay.backend.tvm.tir import threads

RNG = np.random.default_rng(8)

# (channels, height, width), (filters, kernel), strides, padding, groups, dilation
CASES = {
    "dense": ((8, 15, 17), (16, (3, 3)), (1, 1), ((2, 2), (2, 2)), 1, (2, 2)),
    "one axis": ((8, 9, 17), (9, (1, 3)), (1, 1), ((0, 0), (4, 2)), 1, (5, 3)),
    "strided": ((5, 16, 17), (8, (3, 3)), (2, 2), ((1, 2), (3, 0)), 1, (3, 2)),
    "strides along the other axis": ((8, 16, 17), (8, (3, 3)), (2, 1), ((1, 1), (2, 2)), 1, (1, 2)),
    "far": ((8, 12, 16), (16, (3, 3)), (1, 1), ((12, 12), (12, 12)), 1, (12, 12)),
    "farther": ((8, 12, 16), (16, (3, 3)), (1, 1), ((24, 24), (24, 24)), 1, (24, 24)),
    "only padding": ((2, 4, 4), (8, (2, 2)), (1, 1), ((9, 9), (9, 9)), 1, (6, 6)),
    "groups": ((12, 11, 12), (27, (3, 2)), (1, 1), ((2, 1), (0, 2)), 3, (2, 3)),
    "depthwise": ((6, 12, 16), (6, (5, 5)), (1, 1), ((4, 4), (4, 4)), 6, (2, 2)),
    "depthwise, two filters": ((4, 21, 40), (8, (3, 3)), (1, 1), ((3, 0), (1, 6)), 4, (3, 4)),
    "depthwise, strided": ((4, 21, 20), (4, (3, 3)), (2, 2), ((2, 2), (2, 2)), 4, (2, 2)),
    "a pixel": ((8, 7, 7), (16, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1, (4, 4)),
}


def drawn(name, dtype, batch=2):
    (channels, *size), (filters, kernel), _, _, groups, _ = CASES[name]
    x = RNG.standard_normal((batch, channels, *size)).astype(dtype)
    return x, RNG.standard_normal((filters, channels // groups, *kernel)).astype(dtype)


def with_zeros(w, dilation):
    """The filters with zeros in the gaps."""
    wide = np.zeros((*w.shape[:2], *((k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation))), w.dtype)
    wide[:, :, :: dilation[0], :: dilation[1]] = w
    return wide


def convolution(name, dilation=None, executor="native"):
    """The convolution, or that of filters which have their zeros."""
    _, _, strides, padding, groups, gaps = CASES[name]
    options = {"strides": strides, "padding": padding, "groups": groups, "dilation": dilation or gaps}
    return relay(lambda x, w: relay.conv2d(x, w, **options), executor=executor)


def close(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    atol = 40 * np.finfo(found.dtype).eps * max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.fixture(params=["kernels for large ones", "BLAS"])
def either_way(request, monkeypatch):
    """Small convolutions go the way of large ones, or by the BLAS."""
    if request.param == "BLAS":
        monkeypatch.setenv("MYIA_RELAY_WITHOUT", "direct_conv")
    monkeypatch.setattr(direct_conv, "LEAST", 0)
    monkeypatch.setattr(depthwise_conv, "LEAST", 0)
    monkeypatch.setattr(depthwise_conv, "CACHE", 1 << 10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(12)
def test_values(name, dtype, either_way):
    x, w = drawn(name, dtype)
    expected = convolution(name, 1, "interpreter")(x, with_zeros(w, CASES[name][-1]))
    close(convolution(name, executor="interpreter")(x, w), expected)
    close(convolution(name)(x, w), expected)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(12)
def test_gradients(name, executor):
    x, w = drawn(name, np.float64)
    dilation = CASES[name][-1]
    plain, dilated = convolution(name, 1, "interpreter"), convolution(name, executor=executor)
    dx, wide = grad(relay(lambda x, w: np.sum(plain(x, w) ** 2), executor="interpreter"), (0, 1))(
        x, with_zeros(w, dilation)
    )
    found = grad(relay(lambda x, w: np.sum(dilated(x, w) ** 2), executor=executor), (0, 1))(x, w)
    close(found[0], dx)
    close(found[1], wide[:, :, :: dilation[0], :: dilation[1]])


def test_images_of_any_size():
    @relay
    def f(x: Tensor[Float32, (Any, 6, Any, Any)], w):
        return relay.conv2d(x, w, padding=2, dilation=2, strides=(1, 2))

    w = RNG.standard_normal((8, 6, 3, 3)).astype(np.float32)
    compiled, interpreted = (
        grad(relay(lambda x, w: np.sum(f(x, w) ** 2), executor=e), (0, 1)) for e in ("native", "interpreter")
    )
    for size in ((2, 6, 9, 12), (1, 6, 31, 14), (3, 6, 1, 1)):
        x = RNG.standard_normal(size).astype(np.float32)
        close(f(x, w), f.interpret(x, w))
        for a, b in zip(compiled(x, w), interpreted(x, w)):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["dense", "depthwise"])
def test_threads(name, monkeypatch):
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 1)
    monkeypatch.setattr(direct_conv, "LEAST", 0)
    monkeypatch.setattr(depthwise_conv, "LEAST", 0)
    x, w = drawn(name, np.float32, 1)
    before = threads.count()
    try:
        for count in (1, 2, 3):
            threads.configure(count)
            close(convolution(name)(x, w), convolution(name, executor="interpreter")(x, w))
    finally:
        threads.configure(before)


def test_the_text_has_the_dilation():
    x, w = drawn("depthwise", np.float32)
    module = relay.to_text(convolution("depthwise"), x, w)
    assert "dilation=[2, 2]" in str(module)
    close(np.asarray(relay.parse_text(module)["main"](x, w)), convolution("depthwise", executor="interpreter")(x, w))
