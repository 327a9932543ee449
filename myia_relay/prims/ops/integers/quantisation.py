"""Quantisation: rounding to multiples of a scale.

    q = clip(rint(x * (1 / scale)), low, high)          halves are rounded to even

`simulated_quantize` gives the multiple as a float, `q * scale`; `round_saturated` of the product gives q as a small integer.

The derivative of the rounding is taken as that of the identity, and 0 where something is clipped (Y. Bengio, N. Léonard and
A. Courville, "Estimating or Propagating Gradients Through Stochastic Neurons", 2013: the straight-through estimator).
"""

from __future__ import annotations

import numpy as np

from ....abstract.types import FLOATS, numpy_dtype, with_dtype
from ....ir.prim import primitive
from ....utils.errors import ValueError_
from ...rules.broadcast import type_of, unbroadcast
from ...rules.relations import broadcast_shapes, const_like, join_kind, require, same_dtype
from ..elementwise import ge, le, logical_and, where

NARROW = ("uint8", "int8", "uint16", "int16", "int32")


def _steps(x, scale, low: int, high: int):
    x, scale = np.asarray(x), np.asarray(scale)
    with np.errstate(all="ignore"):
        return np.clip(np.rint(x * (x.dtype.type(1) / scale)), x.dtype.type(low), x.dtype.type(high))


def _infer(name: str):
    def infer(x, scale, *, low, high):
        require(name, x, FLOATS)
        require(name, scale, FLOATS)
        if not low < high:
            raise ValueError_(f"{name}: low={low} is not below high={high}")
        return join_kind(same_dtype(name, x, scale), broadcast_shapes(name, x.shape, scale.shape), x, scale)

    return infer


@primitive("elementwise")
def simulated_quantize(x, scale, *, low, high):
    """The multiple of a scale that is nearest to x, of those from `low` to `high` times the scale.

    x is multiplied by the reciprocal of the scale, and halves are rounded to even.

    Args:
        x: floats.
        scale: of the same dtype; one, or an array that broadcasts against x: a scale for each channel.
        low, high: integers: -128 and 127 for signed numbers of 8 bits.

    Returns:
        Floats.
    """
    return (_steps(x, scale, low, high) * scale)[()]


simulated_quantize.infer(_infer("simulated_quantize"))


def _straight_through(x, scale, out, dout, *, low, high):
    half = const_like(x, 0.5)
    ratio = x / scale
    inside = logical_and(ge(ratio, const_like(x, low) - half), le(ratio, const_like(x, high) + half))
    return where(inside, dout, const_like(x, 0)), None


@simulated_quantize.vjp
def _(x, scale, out, dout, **attrs):
    return unbroadcast(_straight_through(x, scale, out, dout, **attrs)[0], type_of(x)), None


simulated_quantize.vjp_rule.pointwise = _straight_through


def _lowered(b, x, scale, low: int, high: int):
    whole = b.rint(b.mul(x, b.let(b.div(b.like(1.0, x), scale))))
    return b.minimum(b.maximum(whole, b.like(low, x)), b.like(high, x))


@simulated_quantize.lower
def _(b, x, scale, *, low, high):
    return b.mul(b.let(_lowered(b, x, scale, low, high)), scale)


@primitive("elementwise", differentiable=False)
def round_saturated(x, *, zero, low, high, dtype):
    """clip(rint(x) + zero, low, high): halves are rounded to even, as ONNX and most hardware do. NaN gives `low`.

    Args:
        x: float32 or float64.
        zero: an integer from `low` to `high`, which 0 becomes.
        low, high: integers of the dtype.
        dtype: of the result, 8 or 16 bits.

    Returns:
        Integers.
    """
    x = np.asarray(x)
    inside = np.where(x > low - zero, x, x.dtype.type(low - zero))
    steps = np.rint(np.minimum(inside, x.dtype.type(high - zero))).astype(np.int32) + np.int32(zero)
    return steps.astype(numpy_dtype(dtype))[()]


@round_saturated.infer
def _(x, *, zero, low, high, dtype):
    require("round_saturated", x, ("float32", "float64"))
    if not (low <= zero <= high and dtype in NARROW[:-1]):
        raise ValueError_(f"round_saturated: no zero={zero}, low={low}, high={high} and dtype={dtype}")
    return with_dtype(x, dtype)


@round_saturated.lower
def _(b, x, *, zero, low, high, dtype):
    """Adding 1.5 * 2**k to a float with k bits behind the first one rounds it; its last bits are the integer then."""
    single = b.dtype_of(x).startswith("float32")
    magic, bits, whole = (
        (1.5 * 2.0**23, 0x4B400000, "int32") if single else (1.5 * 2.0**52, 0x4338000000000000, "int64")
    )
    least, most = b.like(float(low - zero), x), b.like(float(high - zero), x)
    inside = b.let(b.select(b.gt(x, least), x, least))
    inside = b.let(b.select(b.lt(inside, most), inside, most))
    found = b.let(b.bitcast(b.let(b.add(inside, b.like(magic, x))), whole))
    found = b.cast(found, "int32")  # the last 32 bits
    start = ((bits - zero) & 0xFFFFFFFF) - (bits - zero & 0x80000000) * 2
    return b.cast(b.let(b.sub(found, b.const(start, "int32"))), dtype)


__all__ = ["round_saturated", "simulated_quantize"]
