"""Products and convolutions of integers: exact on every kind of instructions, at the edges of their ranges, with what follows."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay.backend.tvm.kernels import direct_conv, opaque
from myia_relay.backend.tvm.kernels.integers import depthwise
from myia_relay.backend.tvm.tir import pipeline, threads
from myia_relay.ir.prim import REGISTRY
from myia_relay.utils.errors import TypeError_, ValueError_

from .native_util import P, check, graph, type_of

RNG = np.random.default_rng(8)
PAIRS = [("uint8", "int8", 9), ("int8", "int8", -5), ("int16", "int16", 300)]
# (channels, height, width), (filters, kernel), strides, padding, groups
SHAPES = [
    ((16, 14, 14), (24, (3, 3)), (1, 1), ((1, 1), (1, 1)), 1),
    ((3, 31, 37), (11, (7, 7)), (2, 2), ((3, 3), (3, 3)), 1),
    ((5, 23, 19), (8, (5, 3)), (3, 2), ((2, 0), (0, 1)), 1),
    ((1, 9, 8), (1, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),
    ((64, 7, 7), (19, (1, 1)), (1, 1), ((0, 0), (0, 0)), 1),
    ((33, 7, 7), (9, (3, 3)), (1, 1), ((1, 1), (1, 1)), 1),
    ((12, 11, 12), (27, (3, 3)), (1, 1), ((2, 1), (0, 2)), 3),
    ((6, 9, 7), (6, (3, 3)), (1, 1), ((1, 1), (1, 1)), 6),
    ((5, 14, 14), (10, (3, 5)), (2, 2), ((1, 0), (2, 1)), 5),
    ((20, 3, 3), (4, (3, 3)), (1, 1), ((0, 0), (0, 0)), 1),
    ((130, 6, 8), (10, (3, 3)), (1, 1), ((1, 1), (1, 1)), 1),
]
INSTRUCTIONS = [
    ("", 64),
    ("vnni", 64),
    ("vnni,madd", 64),
    ("direct_conv", 32),
    ("vnni", 32),
    ("vnni,madd", 32),
    ("vnni,madd", 16),
]


def drawn(dtype, *shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.fixture(params=INSTRUCTIONS, ids=lambda p: f"{p[1]}-{p[0]}")
def machine(request, monkeypatch):
    """Code for a machine with these vectors and instructions, as far as this one has them."""
    without, width = request.param
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", without)
    monkeypatch.setattr(pipeline, "_host_vector_bytes", lambda: min(width, WIDTH))


WIDTH = pipeline.vector_bytes()


@pytest.fixture
def in_blocks(monkeypatch):
    """Small convolutions are divided as large ones are."""
    for name in ("NEAR", "ONCE", "AGAIN", "CACHE"):
        monkeypatch.setattr(direct_conv, name, 1 << 12)


@pytest.mark.sampled(77)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, (*s[0], s[1][0]))))
def test_convolutions(shape, pair, machine, in_blocks):
    image, (count, kernel), strides, padding, groups = shape
    x, w = drawn(pair[0], 2, *image), drawn(pair[1], count, image[0] // groups, *kernel)
    attrs = {"strides": strides, "padding": padding, "groups": groups, "zero": pair[2]}
    found = check(lambda x, w: P.conv2d_integer(x, w, **attrs), x, w)
    wide = np.pad(x.astype(np.int64) - pair[2], ((0, 0), (0, 0), *padding))  # another way to say it
    windows = np.lib.stride_tricks.sliding_window_view(wide, kernel, (2, 3))[:, :, :: strides[0], :: strides[1]]
    group, filter_ = 0, count // groups - 1
    own = windows[:, group * w.shape[1] : (group + 1) * w.shape[1]]
    expected = np.einsum("nchwij,cij->nhw", own, w[filter_].astype(np.int64))
    np.testing.assert_array_equal(found[:, filter_], expected.astype(np.int32))


# (channels, height, width), (filters for each, kernel), strides, padding
DEPTHWISE = [
    ((5, 33, 37), (1, (3, 3)), (1, 1), ((1, 1), (1, 1))),
    ((3, 14, 14), (2, (3, 3)), (2, 2), ((1, 1), (0, 1))),
    ((4, 7, 7), (1, (5, 5)), (1, 1), ((2, 2), (2, 2))),
    ((2, 6, 3), (3, (2, 3)), (1, 1), ((1, 0), (0, 0))),
    ((2, 21, 70), (1, (3, 7)), (1, 3), ((0, 0), (3, 3))),
    ((3, 20, 40), (1, (1, 4)), (3, 4), ((0, 0), (0, 2))),
    ((33, 8, 5), (1, (3, 3)), (1, 1), ((1, 1), (1, 1))),
    ((2, 1, 1), (1, (1, 1)), (1, 1), ((0, 0), (0, 0))),
]


@pytest.mark.sampled(28)
@pytest.mark.parametrize("pair", PAIRS[:2], ids=lambda p: p[0])
@pytest.mark.parametrize("shape", DEPTHWISE, ids=lambda s: "x".join(map(str, (*s[0], *s[1][1]))))
def test_depthwise_convolutions(shape, pair, machine):
    """Of constant filters, with what follows: a bias, a multiplication, a clip, a narrow result."""
    image, (each, kernel), strides, padding = shape
    x, w = drawn(pair[0], 2, *image), drawn(pair[1], image[0] * each, 1, *kernel)
    attrs = {"strides": strides, "padding": padding, "groups": image[0], "zero": pair[2]}

    count = image[0] * each
    check(lambda x: P.conv2d_integer(x, w, **attrs), x)

    def g(x, bias, scale):
        steps = P.cast(P.conv2d_integer(x, w, **attrs) + bias, dtype="float64") * P.cast(scale, dtype="float64")
        return P.round_saturated(steps, zero=3, low=0, high=255, dtype="uint8")

    scale = RNG.uniform(1e-3, 1e-2, (count, 1, 1)).astype(np.float32)
    found = check(g, x, drawn("int32", count, 1, 1) >> 18, scale)
    assert found.size < 9 or len(np.unique(found)) > 5


@pytest.mark.sampled(42)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0])
@pytest.mark.parametrize(
    "m, n, k", [(1, 10, 64), (3, 13, 100), (9, 5, 131), (4, 4, 7), (1, 9, 16), (2, 17, 40), (5, 3, 300), (2, 3, 1)]
)
def test_products(m, n, k, pair, machine):
    check(lambda a, b: P.dot_integer(a, b, zero=pair[2]), drawn(pair[0], m, k), drawn(pair[1], n, k))


@pytest.mark.sampled(21)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0])
def test_the_edges_of_the_ranges(pair, machine):
    """Nothing saturates on the way: 255 * -128 in all places, and -32768 * -32768, which wraps."""
    for a in (np.iinfo(pair[0]).min, np.iinfo(pair[0]).max):
        for b in (np.iinfo(pair[1]).min, np.iinfo(pair[1]).max):
            x, w = np.full((1, 37, 6, 6), a, pair[0]), np.full((9, 37, 3, 3), b, pair[1])
            exact = a * b * 37 * 9
            found = check(lambda x, w: P.conv2d_integer(x, w), x, w)
            assert found[0, 0, 0, 0] == (exact + (1 << 31)) % (1 << 32) - (1 << 31)
            found = check(
                lambda x, w: P.dot_integer(x, w), x.reshape(1, -1), w.reshape(9, -1)[:, : 37 * 9].repeat(4, 1)
            )
            assert found[0, 0] == (exact * 4 + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "shape", [SHAPES[0], SHAPES[4], SHAPES[5], SHAPES[6]], ids=["bands", "in place", "odd", "groups"]
)
@pytest.mark.parametrize("blocks", [False, True])
def test_what_follows_is_part_of_the_kernel(shape, blocks, request):
    """A bias, a residual, a multiplication, a shift, a clip and a narrow result, without int32 in memory."""
    if blocks:
        request.getfixturevalue("in_blocks")
    image, (count, kernel), strides, padding, groups = shape

    def f(x, w, bias, scale, residual):
        sums = P.conv2d_integer(x, w, strides=strides, padding=padding, groups=groups) + bias
        wide = P.cast(sums, dtype="int64") * P.cast(scale, dtype="int64")
        wide = wide + P.left_shift(P.cast(residual, dtype="int64"), P.cast(scale, dtype="int64") * 0 + 9)
        shifted = P.right_shift(wide, wide * 0 + 20)
        return P.cast(P.minimum(P.maximum(shifted, shifted * 0), shifted * 0 + 255), dtype="uint8")

    x, w = drawn("uint8", 2, *image), drawn("int8", count, image[0] // groups, *kernel)
    size = REGISTRY["conv2d_integer"].reference(x, w, strides=strides, padding=padding, groups=groups).shape
    bias, scale = drawn("int32", count, 1, 1) >> 12, np.abs(drawn("int32", count, 1, 1) >> 16)
    found = check(f, x, w, bias, scale, drawn("uint8", *size))
    assert len(np.unique(found)) > 9


def test_threads(monkeypatch):
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 1)
    monkeypatch.setattr(depthwise, "PARALLEL", 1)
    before = threads.count()
    try:
        for count in (2, 3):
            threads.configure(count)
            for image, (filters, kernel), strides, padding, groups in (SHAPES[0], SHAPES[4], SHAPES[6]):
                attrs = {"strides": strides, "padding": padding, "groups": groups}
                x, w = drawn("uint8", 1, *image), drawn("int8", filters, image[0] // groups, *kernel)
                check(lambda x, w: P.conv2d_integer(x, w, **attrs), x, w)  # noqa: B023
            for image, (each, kernel), strides, padding in DEPTHWISE[:3]:
                attrs = {"strides": strides, "padding": padding, "groups": image[0]}
                x, w = drawn("uint8", 3, *image), drawn("int8", image[0] * each, 1, *kernel)
                check(lambda x: P.conv2d_integer(x, w, **attrs), x)  # noqa: B023
            check(lambda a, b: P.dot_integer(a, b), drawn("uint8", 3, 70), drawn("int8", 40, 70))
    finally:
        threads.configure(before)


def test_refusals():
    x, w = drawn("uint8", 1, 2, 3, 3), drawn("int8", 1, 2, 3, 3)
    with pytest.raises(TypeError_, match="uint8 by int8, int8 by int8, int16 by int16, and these are uint8 and uint8"):
        graph([type_of(x), type_of(x)], lambda x, w: P.conv2d_integer(x, w))
    with pytest.raises(ValueError_, match="zero=256 is no number of uint8"):
        graph([type_of(x), type_of(w)], lambda x, w: P.conv2d_integer(x, w, zero=256))
