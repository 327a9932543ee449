"""Random numbers: a counter-based generator, and what turns its bits into numbers of a distribution.

A key is a number of 64 bits, and so is a counter. The generator, Threefry-2x32 with 20 rounds, is for each key a bijection of
counters that looks random: element i of a draw is the word of counter i. It is elementwise, so it fuses into what uses the numbers,
and nothing is remembered from one draw to the next. What follows from the words is the same to the last bit in every executor:
integers, and floats by the steps of `rules.portable`.

Source: J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

import math

import numpy as np

from ...abstract.types import with_dtype
from ...ir.prim import Primitive
from ..rules import portable
from ..rules.relations import const_like, require
from .elementwise import binary, exp, unary

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
WORDS = ("uint64",)


def _threefry2x32(key, counter):
    """Threefry-2x32-20 of words: the first halves are the high ones."""
    shape = np.broadcast_shapes(np.shape(key), np.shape(counter))
    k0, k1, x0, x1 = (
        (np.atleast_1d(word) >> np.uint64(shift)).astype(np.uint32)
        for word in (np.asarray(key, np.uint64), np.asarray(counter, np.uint64))
        for shift in (32, 0)
    )
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0, x1 = x0 + k0, x1 + k1
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 += x1
            high = x1 << np.uint32(r)
            x1 >>= np.uint32(32 - r)
            x1 |= high
            x1 ^= x0
        x0 += keys[(i + 1) % 3]
        x1 += keys[(i + 2) % 3] + np.uint32(i + 1)
    out = x0.astype(np.uint64) << np.uint64(32) | x1
    return out.reshape(shape)[()]


def _mul_high(a, b):
    """The high words of products, from those of half words."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    with np.errstate(over="ignore"):
        a_low, b_low, a_high, b_high = a & mask, b & mask, a >> half, b >> half
        middle = a_high * b_low + (a_low * b_low >> half)
        return a_high * b_high + (middle >> half) + (a_low * b_high + (middle & mask) >> half)


threefry2x32 = binary(
    "threefry2x32",
    _threefry2x32,
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
        return portable.computed(steps, x, np.asarray(x).dtype.name)

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
        return portable.computed(portable.normal_from_bits, bits, FLOAT_OF_BITS[np.asarray(bits).dtype.name])

    return Primitive("normal_from_bits", "elementwise", meaning, differentiable=False)


normal_from_bits = _normal_from_bits()


@normal_from_bits.infer
def _(bits):
    return with_dtype(require("normal_from_bits", bits, tuple(FLOAT_OF_BITS)), FLOAT_OF_BITS[bits.dtype])


@normal_from_bits.lower
def _(b, bits):
    return portable.normal_from_bits(b, bits, FLOAT_OF_BITS[b.dtype_of(bits)])
