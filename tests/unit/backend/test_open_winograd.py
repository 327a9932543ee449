"""Winograd's F(4x4, 3x3) for images of open size, and what follows open convolutions: values, threads, sizes, blocks."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay import Any, Float32, Tensor, relay
from myia_relay.backend.tvm.kernels import winograd
from myia_relay.backend.tvm.kernels.patches import Conv
from myia_relay.backend.tvm.kernels.tiles import open_winograd
from myia_relay.backend.tvm.tir import pipeline, threads

RNG = np.random.default_rng(9)
SIZES = [
    (1, 14, 14),
    (2, 19, 25),
    (1, 16, 66),  # more than a vector of tiles in a row
    (3, 3, 5),  # too few tiles: patches and products
    (1, 1, 1),
    (0, 16, 16),
]


def drawn(size, channels=32, filters=40, groups=1, kernel=3):
    batch, height, width = size
    x = RNG.standard_normal((batch, channels * groups, height, width)).astype(np.float32)
    w = RNG.standard_normal((filters * groups, channels, kernel, kernel)).astype(np.float32)
    return x, w, RNG.standard_normal(filters * groups).astype(np.float32)


def body(x, w, bias, padding, groups, strides=1):
    y = relay.conv2d(x, w, bias, padding=padding, groups=groups, strides=strides)
    return relay.relu(y) * 2 + y


def convolution(channels=32, padding=1, groups=1, strides=1):
    @relay
    def f(x: Tensor[Float32, (Any, channels * groups, Any, Any)], w, bias):
        return body(x, w, bias, padding, groups, strides)

    return f


def check(f, arguments, padding=1, groups=1, strides=1):
    found = f(*arguments)
    reference = relay(lambda *a: body(*a, padding, groups, strides))
    exact = reference.interpret(*(a.astype(np.float64) for a in arguments))
    assert found.dtype == np.float32 and found.shape == exact.shape
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-5 * np.max(np.abs(exact), initial=0))


@pytest.fixture
def blocks(monkeypatch):
    """Small blocks of filters, channels and tiles."""
    for name, size in (("FILTERS", 32), ("CHANNELS", 48), ("TILES", 48), ("LINE", 4 * 48 + 32)):
        monkeypatch.setattr(open_winograd if name in vars(open_winograd) else winograd, name, size)


def test_sizes():
    f = convolution()
    for size in SIZES:
        check(f, drawn(size))


def test_paddings_and_blocks(blocks):
    padding = ((2, 1), (0, 3))
    f = convolution(80, padding)
    for size in [(1, 17, 70), (2, 9, 230), (1, 40, 6)]:
        check(f, drawn(size, 80, 72), padding)


def test_groups():
    f = convolution(groups=2)
    for size in SIZES[:2]:
        check(f, drawn(size, groups=2), groups=2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [1, 3])
def test_threads(count):
    before = threads.count()
    try:
        threads.configure(count)
        f = convolution()
        for size in SIZES[:2]:
            check(f, drawn(size))
    finally:
        threads.configure(before)


@pytest.mark.parametrize("kernel, strides, groups", [(1, 1, 1), (3, 2, 1), (5, 1, 4)])
def test_what_follows_patches_and_products(kernel, strides, groups):
    f = convolution(4, 2, groups, strides)
    for size in [(1, 14, 14), (2, 19, 45), (0, 5, 5)]:
        check(f, drawn(size, 4, 6, groups, kernel), 2, groups, strides)


def test_a_residual_and_what_is_checked(monkeypatch):
    """A residual may be where the result is; every access is within its buffer."""
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "1")

    @relay
    def f(x: Tensor[Float32, (Any, 32, Any, Any)], w):
        y = x * 2
        return relay.relu(relay.conv2d(y, w, padding=1) + y)

    for size in SIZES[:3]:
        x, w, _ = drawn(size, filters=32)
        exact = relay(lambda x, w: relay.relu(relay.conv2d(x * 2, w, padding=1) + x * 2)).interpret(
            x.astype(np.float64), w.astype(np.float64)
        )
        np.testing.assert_allclose(f(x, w), exact, rtol=0, atol=2e-5 * exact.max())


@pytest.mark.skipif(pipeline.vector_bytes() < 64, reason="needs vectors of 512 bits")
def test_where_it_is_used():
    s = Conv(64, 56, 56, 64, (3, 3), (1, 1), (1, 1, 1, 1))
    assert open_winograd.is_open_winograd(s, "float32")
    assert not open_winograd.is_open_winograd(s, "float64")
    for other in [
        (60, 64, (3, 3), (1, 1)),
        (64, 64, (3, 3), (2, 2)),
        (16, 64, (3, 3), (1, 1)),
        (64, 64, (1, 1), (1, 1)),
    ]:
        channels, filters, kernel, strides = other
        assert not open_winograd.is_open_winograd(Conv(channels, 56, 56, filters, kernel, strides), "float32")
