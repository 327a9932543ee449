"""Convolutions by Winograd's F(4x4, 3x3): values, the error that its module states, threads, what follows."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay import Any, Float32, Tensor, relay
from myia_relay.backend.tvm.kernels import winograd
from myia_relay.backend.tvm.kernels.patches import Conv
from myia_relay.backend.tvm.tir import pipeline, threads

pytestmark = pytest.mark.skipif(pipeline.vector_bytes() < 64, reason="needs vectors of 512 bits")

RNG = np.random.default_rng(8)
# (channels, height, width), filters, padding, groups
CASES = [
    ((32, 14, 14), 32, ((1, 1), (1, 1)), 1),
    ((48, 19, 25), 40, ((0, 0), (0, 0)), 1),  # tiles that are cut off
    ((32, 17, 70), 32, ((2, 1), (0, 3)), 1),  # more than a vector of tiles in a row
    ((64, 13, 18), 64, ((1, 1), (1, 1)), 2),
    ((80, 16, 16), 72, ((3, 3), (4, 4)), 1),
]


@pytest.fixture
def always(monkeypatch):
    """Small convolutions are computed so too, in blocks."""
    monkeypatch.setattr(winograd, "LEAST", 0)
    for name, size in (("FILTERS", 32), ("CHANNELS", 48), ("TILES", 18)):
        monkeypatch.setattr(winograd, name, size)


def drawn(case, batch=1):
    image, count, padding, groups = case
    x = RNG.standard_normal((batch, *image)).astype(np.float32)
    w = RNG.standard_normal((count, image[0] // groups, 3, 3)).astype(np.float32)
    return x, w, RNG.standard_normal(count).astype(np.float32), padding, groups


def error(found, f, *arguments):
    """The largest one, by the largest result, of float64's."""
    assert found.dtype == np.float32
    exact = f.interpret(*(a.astype(np.float64) for a in arguments))
    assert found.shape == exact.shape
    return np.max(np.abs(found - exact)) / np.max(np.abs(exact))


def convolution(padding, groups):
    @relay
    def f(x, w, bias):
        y = relay.conv2d(x, w, bias, padding=padding, groups=groups)
        return relay.relu(y) * 2 + y

    return f


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, (*c[0], c[1]))))
@pytest.mark.sampled(5)
def test_values(case, batch, always):
    *arguments, padding, groups = drawn(case, batch)
    f = convolution(padding, groups)
    assert error(f(*arguments), f, *arguments) < 2e-5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("channels", [64, 512])
def test_the_stated_error(channels, monkeypatch):
    *arguments, padding, groups = drawn(((channels, 16, 16), 64, ((1, 1), (1, 1)), 1))
    f = convolution(padding, groups)
    assert winograd.is_winograd(Conv(channels, 16, 16, 64, (3, 3), (1, 1), (1, 1, 1, 1)), "float32")
    found = error(f(*arguments), f, *arguments)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "winograd")
    without = error(relay(lambda *a: f(*a))(*arguments), f, *arguments)
    assert without < 4e-6 and without < found < 4e-5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", [CASES[1], CASES[4]], ids=["cut", "blocks"])
def test_threads(case, always):
    *arguments, padding, groups = drawn(case)
    f = convolution(padding, groups)
    before = threads.count()
    try:
        for count in (1, 2, 3):
            threads.configure(count)
            assert error(relay(lambda *a: f(*a))(*arguments), f, *arguments) < 2e-5
    finally:
        threads.configure(before)


def test_threads_do_not_share_memory():
    """Large enough that both are at work at the same time."""
    x, w, *_ = drawn(((64, 56, 56), 64, ((1, 1), (1, 1)), 1))
    before = threads.count()
    try:
        threads.configure(2)
        f = relay(lambda x, w: relay.conv2d(x, w, padding=1))
        results = [f(x, w) for _ in range(100)]
        assert all(np.array_equal(y, results[0]) for y in results)
    finally:
        threads.configure(before)


def test_a_batch_of_any_size_and_a_residual(always):
    @relay
    def f(x: Tensor[Float32, (Any, 32, 14, 14)], w):
        return relay.relu(relay.conv2d(x, w, padding=1) + x)

    for batch in (1, 3):
        x, w, *_ = drawn(CASES[0], batch)
        exact = np.maximum(relay(lambda x, w: relay.conv2d(x, w, padding=1)).interpret(x.astype(np.float64), w) + x, 0)
        np.testing.assert_allclose(f(x, w), exact, rtol=0, atol=2e-5 * exact.max())


def test_a_pixel_that_is_not_finite_spoils_only_tiles_that_see_it(always):
    x, w, _, padding, groups = drawn(CASES[0])
    x[0, 3, 0, 0] = np.inf
    y = relay(lambda x, w: relay.conv2d(x, w, padding=1))(x, w)
    assert not np.isfinite(y[:, :, :2, :2]).any()
    assert np.isfinite(y[:, :, 4:]).all() and np.isfinite(y[:, :, :, 4:]).all()


@pytest.mark.parametrize(
    "s",
    [
        Conv(64, 56, 56, 64, (3, 3), (2, 2), (1, 1, 1, 1)),
        Conv(64, 56, 56, 64, (5, 5), (1, 1), (2, 2, 2, 2)),
        Conv(60, 56, 56, 64, (3, 3)),
        Conv(512, 7, 7, 512, (3, 3), (1, 1), (1, 1, 1, 1)),
        Conv(16, 224, 224, 64, (3, 3)),
    ],
    ids=str,
)
def test_where_it_does_not_pay(s):
    assert not winograd.is_winograd(s, "float32")


def test_float64_is_never_computed_so():
    assert not winograd.is_winograd(Conv(64, 56, 56, 64, (3, 3)), "float64")
