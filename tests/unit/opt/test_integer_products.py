"""Products of floats that are small integers: which become products of integers, with the same results."""

import numpy as np
import pytest

from myia_relay.backend.interpreter import run
from myia_relay.ir.build import type_of_constant
from myia_relay.opt.kernels.integer_products import TERMS, IntegerProducts
from tests.typed_graphs import P, build

RNG = np.random.default_rng(2)


def drawn(dtype, *shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def names(graph):
    return [n.fn.name for n in graph.nodes]


def check(f, *args):
    graph = build(f, *map(type_of_constant, args))
    after = IntegerProducts()(graph)
    np.testing.assert_array_equal(run(after, args), run(graph, args))
    return names(after)


X, W = drawn("uint8", 1, 5, 6, 6), drawn("int8", 4, 5, 3, 3)
PADDING = ((1, 1), (1, 0))


def wide(x):
    return P["cast"](x, dtype="float64")


def test_convolutions():
    assert "conv2d_integer" in check(lambda x, w: P["conv2d"](wide(x), wide(w), padding=PADDING), X, W)
    found = check(
        lambda x, w, z: P["conv2d"](wide(x) - wide(z), wide(w), padding=PADDING), X, W, np.array(200, np.uint8)
    )
    assert "conv2d_integer" in found and found.count("conv2d") == 0
    zeros = drawn("int8", 4, 1, 1, 1)
    both = check(
        lambda x, w, z, v: P["conv2d"](wide(x) - wide(z), wide(w) - wide(v)), X, W, np.array(7, np.uint8), zeros
    )
    assert "conv2d_integer" in both


@pytest.mark.parametrize("transposed", [False, True])
def test_products(transposed):
    a, b = drawn("uint8", 3, 20), drawn("uint8", *((6, 20) if transposed else (20, 6)))
    found = check(lambda a, b: P["dot"](wide(a), wide(b), transpose_b=transposed), a, b)
    assert "dot_integer" in found
    found = check(
        lambda a, b, z: P["dot"](wide(a) - wide(z), wide(b), transpose_b=transposed), a, b, np.array(3, np.uint8)
    )
    assert "dot_integer" in found


def test_what_stays():
    assert "conv2d" in check(
        lambda x, w: P["conv2d"](P["cast"](x, dtype="float32"), P["cast"](w, dtype="float32")), X, W
    )
    assert "conv2d" in check(lambda x, w: P["conv2d"](wide(x), w), X, RNG.standard_normal(W.shape))  # no integers
    assert "conv2d" in check(lambda x, w: P["conv2d"](wide(x), wide(w)), X, W.astype(np.int32))
    long = TERMS + 1
    assert "dot" in check(lambda a, b: P["dot"](wide(a), wide(b)), drawn("uint8", 1, long), drawn("int8", long, 1))
