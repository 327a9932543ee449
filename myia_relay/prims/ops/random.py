"""Random numbers: a counter-based generator, and what turns its bits into numbers of a distribution.

A key is a number of 64 bits, and so is a counter. The generator, Threefry-2x32 with 20 rounds, is for each key a bijection of
counters that looks random: element i of a draw is the word of counter i. It is elementwise, so it fuses into what uses the numbers,
and nothing is remembered from one draw to the next. What follows from the words is the same to the last bit in every executor:
integers, and floats by the steps of `rules.portable`.
"""

from __future__ import annotations

import math

import numpy as np

from ...abstract.types import Array, with_dtype
from ...ir.axes import Axes, Relation
from ...ir.prim import Primitive, primitive
from ...utils.errors import GradError
from ..rules import gamma_draws, portable, threefry
from ..rules.relations import broadcast_shapes, const_like, join_kind, require, require_array
from .elementwise import binary, exp, pull, unary
from .special import digamma

WORDS = ("uint64",)


def _mul_high(a, b):
    """The high words of products, from those of half words."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    with np.errstate(over="ignore"):
        a_low, b_low, a_high, b_high = a & mask, b & mask, a >> half, b >> half
        middle = a_high * b_low + (a_low * b_low >> half)
        return a_high * b_high + (middle >> half) + (a_low * b_high + (middle & mask) >> half)


threefry2x32 = binary(
    "threefry2x32",
    threefry.threefry2x32,
    WORDS,
    "Threefry-2x32 with 20 rounds: the random word of a key and a counter.",
    differentiable=False,
)
mul_high = binary(
    "mul_high", _mul_high, WORDS, "The high 64 bits of the product of unsigned integers.", differentiable=False
)


@mul_high.lower
def _(b, x, y):
    half, mask = b.like(32, x), b.like(0xFFFFFFFF, x)
    x, y = b.let(x), b.let(y)
    x_low, y_low, x_high, y_high = (
        b.let(v)
        for v in (b.bitwise_and(x, mask), b.bitwise_and(y, mask), b.right_shift(x, half), b.right_shift(y, half))
    )
    middle = b.let(b.add(b.mul(x_high, y_low), b.right_shift(b.mul(x_low, y_low), half)))
    last = b.right_shift(b.add(b.mul(x_low, y_high), b.bitwise_and(middle, mask)), half)
    return b.add(b.add(b.mul(x_high, y_high), b.right_shift(middle, half)), last)


rounded = unary(
    "rounded",
    lambda x: x,
    ("float32", "float64"),
    "x, rounded to its format: a product stays apart from a sum that it is added to.",
)
rounded.vjp(lambda x, out, dout: (dout,))


def _steps(name, steps, accepts, doc) -> Primitive:
    """An elementwise primitive that is a function of `rules.portable` on floats."""

    def meaning(x):
        return portable.computed(lambda b, x: steps(b, x, x.dtype.name), x)

    def infer(x):
        return require(name, x, accepts)

    meaning.__doc__ = doc
    prim = Primitive(name, "elementwise", meaning)
    prim.infer(infer)
    return prim


portable_log = _steps(
    "portable_log",
    portable.log,
    ("float32", "float64"),
    "The natural logarithm of positive, normal numbers: the same bits in all executors.",
)
portable_log.vjp(lambda x, out, dout: (dout / x,))
normal_upper_quantile = _steps(
    "normal_upper_quantile",
    portable.normal_upper_quantile,
    ("float32", "float64"),
    "The number that a standard normal variable exceeds with probability x, 0 < x <= 1/2: the same bits in all executors.",
)


@normal_upper_quantile.vjp
def _(x, out, dout):
    half, root = const_like(out, 0.5), const_like(out, -math.sqrt(2 * math.pi))
    return (dout * root * exp(out * out * half),)


for _prim, _rule in ((portable_log, portable.log), (normal_upper_quantile, portable.normal_upper_quantile)):
    _prim.lower(lambda b, x, _rule=_rule: _rule(b, b.let(x), b.dtype_of(x)))

FLOAT_OF_BITS = {"uint32": "float32", "uint64": "float64"}


def _normal_from_bits() -> Primitive:
    def meaning(bits):
        """Standard normal numbers from uniform bits: float32 from uint32, float64 from uint64."""
        return portable.computed(lambda b, x: portable.normal_from_bits(b, x, FLOAT_OF_BITS[x.dtype.name]), bits)

    return Primitive("normal_from_bits", "elementwise", meaning, differentiable=False)


normal_from_bits = _normal_from_bits()


@normal_from_bits.infer
def _(bits):
    return with_dtype(require("normal_from_bits", bits, tuple(FLOAT_OF_BITS)), FLOAT_OF_BITS[bits.dtype])


@normal_from_bits.lower
def _(b, bits):
    return portable.normal_from_bits(b, bits, FLOAT_OF_BITS[b.dtype_of(bits)])


def _gamma_draw() -> Primitive:
    def meaning(key, shape):
        """Gamma numbers of a shape, each from a key of its own; NaN where the shape is not positive."""
        return portable.computed(gamma_draws.gamma_draw, key, shape)

    return Primitive("gamma_draw", "elementwise", meaning)


def _gamma_slope() -> Primitive:
    def meaning(shape, value, digamma):
        """The derivative of gamma numbers by their shape, where the probability to be below them stays as it is."""
        return portable.computed(gamma_draws.gamma_slope, shape, value, digamma)

    return Primitive("gamma_slope", "elementwise", meaning)


gamma_draw, gamma_slope = _gamma_draw(), _gamma_slope()
gamma_draw.lower(gamma_draws.gamma_draw)
gamma_slope.lower(gamma_draws.gamma_slope)


@gamma_draw.infer
def _(key, shape):
    require("gamma_draw", key, WORDS)
    require("gamma_draw", shape, ("float64",))
    return join_kind("float64", broadcast_shapes("gamma_draw", key.shape, shape.shape), key, shape)


@gamma_slope.infer
def _(*types):
    for t in types:
        require("gamma_slope", t, ("float64",))
    return join_kind("float64", broadcast_shapes("gamma_slope", *(t.shape for t in types)), *types)


@gamma_draw.vjp
@pull
def _(key, shape, out, dout):
    return None, dout * gamma_slope(shape, out, digamma(shape))


@gamma_slope.vjp
def _(shape, value, psi, out, dout):
    raise GradError(
        "relay.random.gamma has a first derivative by its shape, but no second one; put relay.stop_gradient around one of them"
    )


def _shuffle(shapes, out):
    leading = tuple(range(len(out) - 1))
    return Relation(((*leading, None),), (*leading, None))


@primitive("opaque", differentiable=False, axes=Axes(_shuffle))
def shuffled(words):
    """The numbers 0 ... n - 1 in an order that n random words decide, along the last axis.

    Source: R. Durstenfeld's shuffle, "inside out" (D. Knuth, "The art of computer programming", volume 2, 3.4.2).
    """
    words = np.asarray(words)
    flat = words.reshape(math.prod(words.shape[:-1]), words.shape[-1])
    out = np.zeros(flat.shape, np.int64)
    places = _mul_high(flat, np.arange(1, flat.shape[1] + 1, dtype=np.uint64)).astype(np.int64)
    for row, place in zip(out, places, strict=True):
        for i, k in enumerate(place.tolist()):
            row[i] = row[k]
            row[k] = i
    return out.reshape(words.shape)


@shuffled.infer
def _(words):
    return Array("int64", require_array("shuffled", words, accepts=WORDS).shape)
