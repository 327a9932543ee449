"""Convolutions without a matrix of patches, with what follows them: values, shapes of all kinds, threads."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay import Any, Float32, Tensor, relay, value_and_grad
from myia_relay.backend.tvm.kernels import depthwise_conv, direct_conv, opaque
from myia_relay.backend.tvm.kernels.patches import Conv
from myia_relay.backend.tvm.tir import pipeline, threads

pytestmark = pytest.mark.sampled(2)

RNG = np.random.default_rng(6)
WIDE = pytest.mark.skipif(pipeline.vector_bytes() < 64, reason="needs vectors of 512 bits")

# (channels, height, width), (filters, kernel), strides, padding, groups
CASES = [
    ((16, 14, 14), (24, (3, 3)), (1, 1), ((1, 1), (1, 1)), 1),
    ((9, 7, 7), (19, (3, 3)), (1, 1), ((1, 1), (1, 1)), 1),
    ((3, 31, 37), (11, (7, 7)), (2, 2), ((3, 3), (3, 3)), 1),
    ((5, 23, 19), (8, (5, 3)), (3, 2), ((2, 0), (0, 1)), 1),
    ((4, 44, 44), (10, (8, 8)), (4, 4), ((0, 0), (0, 0)), 1),
    ((3, 26, 41), (9, (2, 2)), (1, 5), ((0, 0), (0, 0)), 1),
    ((7, 8, 8), (16, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),  # read in place
    ((72, 8, 8), (9, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),  # in blocks of channels
    ((7, 7, 7), (17, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),
    ((7, 15, 13), (9, (1, 1)), (2, 2), ((0, 0), (0, 0)), 1),
    ((12, 11, 12), (27, (3, 3)), (1, 1), ((2, 1), (0, 2)), 3),
    ((64, 14, 14), (9, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),  # four positions behind the last vector
    ((32, 7, 7), (17, (3, 3)), (1, 1), ((1, 1), (1, 1)), 1),  # one, in two blocks of channels
    ((64, 7, 7), (19, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),  # one, in place, in two blocks of channels
    ((16, 7, 7), (19, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),  # in one, filter by filter
    ((48, 5, 10), (8, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),
    ((33, 7, 7), (9, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),
    ((6, 9, 7), (6, (3, 3)), (1, 1), ((1, 1), (1, 1)), 6),  # depthwise
    ((5, 21, 40), (15, (3, 5)), (2, 2), ((1, 0), (2, 1)), 5),
    ((4, 3, 5), (4, (3, 3)), (1, 1), ((1, 1), (1, 1)), 4),
    ((3, 9, 21), (3, (3, 3)), (1, 1), ((1, 1), (1, 1)), 3),  # rows of a vector and a part of one
    ((3, 33, 64), (3, (2, 2)), (3, 4), ((0, 0), (0, 0)), 3),
    ((2, 5, 9), (8, (5, 5)), (1, 1), ((4, 4), (4, 4)), 1),  # windows in the padding alone
    ((6, 14, 14), (6, (3, 3)), (2, 2), ((1, 1), (1, 1)), 6),
    ((8, 9, 33), (8, (2, 6)), (3, 2), ((0, 1), (3, 0)), 8),  # some columns of the window to the right of the first one
    ((3, 12, 8), (8, (4, 4)), (2, 2), ((0, 0), (1, 4)), 1),
]
# Shared by panels of positions, of which there are more than filters.
PANELS = [
    ((16, 32, 37), (19, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),
    ((16, 33, 36), (8, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),
]
# Depthwise, shared by rows.
ROWS = [
    ((4, 12, 21), (4, (3, 3)), (1, 1), ((1, 1), (1, 1)), 4),
    ((2, 24, 70), (2, (3, 3)), (2, 2), ((1, 1), (1, 1)), 2),
]


def drawn(image, filters, groups, dtype, batch):
    count, kernel = filters
    x = RNG.standard_normal((batch, *image)).astype(dtype)
    w = RNG.standard_normal((count, image[0] // groups, *kernel)).astype(dtype)
    return x, w, RNG.standard_normal(count).astype(dtype)


def close(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    atol = 40 * np.finfo(found.dtype).eps * max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.fixture
def always(monkeypatch):
    """Small convolutions go the way of large ones, block by block."""
    monkeypatch.setattr(direct_conv, "LEAST", 0)
    for name in ("NEAR", "ONCE", "AGAIN"):
        monkeypatch.setattr(direct_conv, name, 1 << 13)
    monkeypatch.setattr(direct_conv, "CACHE", 1 << 13)
    monkeypatch.setattr(depthwise_conv, "LEAST", 0)
    monkeypatch.setattr(depthwise_conv, "CACHE", 1 << 10)
    monkeypatch.setattr(depthwise_conv, "SHARE", 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, (*c[0], c[1][0]))))
@pytest.mark.sampled(35)
def test_values(case, batch, dtype, always):
    image, filters, strides, padding, groups = case

    @relay
    def f(x, w, bias):
        y = relay.conv2d(x, w, bias, strides=strides, padding=padding, groups=groups)
        return relay.relu(y) * 2 - 1

    arguments = drawn(image, filters, groups, dtype, batch)
    close(f(*arguments), f.interpret(*arguments))


@pytest.mark.parametrize("without", ["direct_conv", "fuse_epilogues", "blas,direct_conv"])
def test_the_same_without(without, always, monkeypatch):
    image, filters, strides, padding, groups = CASES[0]

    @relay
    def f(x, w, bias):
        return np.tanh(relay.conv2d(x, w, bias, strides=strides, padding=padding, groups=groups))

    arguments = drawn(image, filters, groups, np.float32, 2)
    found = f(*arguments)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", without)
    close(relay(lambda *a: f(*a))(*arguments), found)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "case",
    [CASES[0], CASES[2], CASES[10], CASES[12], CASES[17], *PANELS, *ROWS],
    ids=["bands", "strides", "groups", "dots", "depthwise", "panels", "panels and dots", "rows", "rows of stride 2"],
)
@pytest.mark.sampled(9)
def test_threads(case, batch, always, monkeypatch):
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 1)
    image, filters, strides, padding, groups = case

    @relay
    def f(x, w, bias):
        return relay.relu(relay.conv2d(x, w, bias, strides=strides, padding=padding, groups=groups))

    arguments = drawn(image, filters, groups, np.float32, batch)
    before = threads.count()
    try:
        for count in (1, 2, 3):
            threads.configure(count)
            close(relay(lambda *a: f(*a))(*arguments), f.interpret(*arguments))
    finally:
        threads.configure(before)


def test_what_follows_short_sums_is_applied_in_registers(always):
    @relay
    def f(x, w, bias, residual):
        return relay.relu(relay.conv2d(x, w, bias) * residual + residual)

    x, w, bias = drawn((16, 9, 11), (19, (1, 1)), 1, np.float32, 2)  # tiles of 8 x 48, and what is left of both
    residual = RNG.standard_normal((2, 19, 9, 11)).astype(np.float32)
    close(f(x, w, bias, residual), f.interpret(x, w, bias, residual))


@pytest.mark.parametrize(
    "image, filters, strides, groups",
    [
        ((256, 14, 14), (512, (1, 1)), 1, 1),  # in place, with dots
        ((64, 28, 28), (64, (3, 3)), 2, 1),
        ((64, 56, 56), (64, (3, 3)), 2, 64),
    ],
    ids=["pointwise", "copies", "depthwise"],
)
def test_threads_do_not_share_memory(image, filters, strides, groups):
    """Large enough that both are at work at the same time."""
    x, w, bias = drawn(image, filters, groups, np.float32, 1)
    before = threads.count()
    try:
        threads.configure(2)
        f = relay(lambda x, w, bias: relay.relu(relay.conv2d(x, w, bias, strides=strides, groups=groups)))
        results = [f(x, w, bias) for _ in range(50)]
        assert all(np.array_equal(y, results[0]) for y in results)
    finally:
        threads.configure(before)


def test_a_batch_of_any_size(always):
    @relay
    def f(x: Tensor[Float32, (Any, 16, 14, 14)], w, bias):
        return relay.relu(relay.conv2d(x, w, bias, padding=1))

    for batch in (1, 2, 5, 0):
        arguments = drawn((16, 14, 14), (24, (3, 3)), 1, np.float32, batch)
        if batch:
            close(f(*arguments), f.interpret(*arguments))
        else:
            assert f(*arguments).shape == (0, 24, 14, 14)


SHAPE = (1, 16, 14, 14)


def followed(follow):
    """A function of an image, filters and a further array, and its arguments but the last."""

    @relay
    def f(x, w, z):
        return follow(relay.conv2d(x, w, padding=1), x, z)

    return f


@pytest.mark.parametrize("shape", [SHAPE, (16, 1, 1), (14, 1), (14,), (1, 1, 14, 1), ()], ids=str)
def test_what_follows_has_any_shape(shape, always):
    f = followed(relay(lambda y, x, z: np.maximum(y * z, 0) + z))
    x, w, _ = drawn(SHAPE[1:], (16, (3, 3)), 1, np.float32, 1)
    z = np.float32(1.5) if shape == () else RNG.standard_normal(shape).astype(np.float32)
    close(f(x, w, z), f.interpret(x, w, z))


def test_a_residual_and_two_convolutions(always):
    @relay
    def f(x, v, w):
        y = relay.conv2d(relay.relu(relay.conv2d(x, v, padding=1)), w, padding=1)
        return relay.relu(x + y + relay.conv2d(x, v[:, :, :1, :1]))

    x, w, _ = drawn(SHAPE[1:], (16, (3, 3)), 1, np.float32, 1)
    close(f(x, w, w[::-1].copy()), f.interpret(x, w, w[::-1].copy()))


def test_what_is_read_twice_is_kept(always):
    @relay
    def f(x, w):
        y = relay.conv2d(x, w, padding=1)
        return relay.relu(y + 1), y.sum(), np.transpose(y, (0, 1, 3, 2)) + y

    x, w, _ = drawn(SHAPE[1:], (16, (3, 3)), 1, np.float32, 1)
    for found, expected in zip(f(x, w), f.interpret(x, w)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_what_is_overwritten_is_read_before(always):
    @relay
    def f(x, w):
        for _ in range(3):
            x = relay.relu(relay.conv2d(x, w, padding=1)) + x
        return x

    @relay
    def in_place(x, w):
        kept = x * 2
        y = relay.conv2d(kept, w, padding=1)
        kept[0, 0, 0, 0] = 5
        return relay.relu(y) + kept

    x, w, _ = drawn(SHAPE[1:], (16, (3, 3)), 1, np.float32, 1)

    @relay
    def again(x, w, n):
        for _ in range(n):
            x = relay.relu(relay.conv2d(x, w, padding=1)) + x
        return x

    close(f(x, w / 10), f.interpret(x, w / 10))
    close(again(x, w / 10, 3), f.interpret(x, w / 10))
    close(in_place(x, w), in_place.interpret(x, w))


def test_gradients(always):
    @relay
    def loss(x, w, bias):
        return np.sum(relay.relu(relay.conv2d(x, w, bias, strides=2, padding=1)) ** 2)

    f = relay(lambda x, w, bias: value_and_grad(loss, argnums=(0, 1, 2))(x, w, bias))
    arguments = drawn((8, 14, 14), (16, (3, 3)), 1, np.float64, 2)
    found, expected = f(*arguments), f.interpret(*arguments)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    for a, b in zip(found[1], expected[1]):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_numbers_that_are_not_finite(always):
    x, w, _ = drawn(SHAPE[1:], (16, (3, 3)), 1, np.float32, 1)
    x[0, 2, 5, 6], x[0, 3, 0, 0] = np.nan, np.inf
    f = followed(relay(lambda y, x, z: relay.relu(y + z)))
    np.testing.assert_array_equal(np.isnan(f(x, w, np.float32(0))), np.isnan(f.interpret(x, w, np.float32(0))))


@WIDE
@pytest.mark.parametrize(
    "shape", [(64, 56, 56, 64), (64, 224, 224, 64), (512, 28, 28, 512), (512, 7, 7, 512), (3, 223, 5, 8)]
)
def test_copies_stay_in_the_cache(shape):
    channels, height, width, filters = shape
    s = Conv(channels, height, width, filters, (3, 3), (1, 1), (1, 1, 1, 1))
    d = direct_conv.divide(s, "float32")
    assert d.near <= direct_conv.NEAR and 4 * d.size <= direct_conv.CACHE
    assert d.rows * d.bands >= s.out_height and d.channels * d.blocks >= channels


@WIDE
def test_layers_of_one_shape_share_a_kernel_with_what_follows(always):
    @relay
    def f(x, weights):
        for w in weights:
            x = relay.relu(relay.conv2d(x, w, padding=1) + x)
        return x

    x, w, _ = drawn(SHAPE[1:], (16, (3, 3)), 1, np.float32, 1)
    assert "4 kernel calls of 4 kernels" in f.explain(
        x, [w, w + 1, w + 2, w + 3]
    )  # one for all layers, two for their tiles, one for copies


@WIDE
@pytest.mark.parametrize("threaded", [1, 2])
def test_the_matrix_of_the_product_behind_is_asked_for(threaded):
    @relay
    def f(x, filters, matrix):
        return relay.relu(relay.conv2d(x, filters)).reshape(1, -1) @ matrix.T

    x, w, _ = drawn((32, 12, 13), (45, (3, 3)), 1, np.float32, 1)
    matrix = RNG.standard_normal((300, 45 * 110)).astype(np.float32)
    before = threads.count()
    try:
        threads.configure(threaded)
        close(f(x, w, matrix), f.interpret(x, w, matrix))
        assert "later" in str(f.tir(x, w, matrix))
    finally:
        threads.configure(before)
