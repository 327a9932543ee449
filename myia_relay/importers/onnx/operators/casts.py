"""Cast, CastLike, BitCast, and rounding to the dtypes that compiled code does not have."""

from __future__ import annotations

import numpy as np

from ....abstract.types import FLOATS, INTS, numpy_dtype
from ....ir.build import Var
from ....ir.prim import REGISTRY
from ....prims.ops import elementwise as P
from ....prims.ops.indexing import take
from ....prims.rules.broadcast import cast, reduce_sum, reshape
from ....utils.errors import TypeError_
from ..table import Context, Operand, operator
from ..values import CARRIERS, narrow_dtype

RANGES = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
WITH_INFINITY = ("float8_e5m2",)
UNSIGNED_ZERO = ("float8_e4m3fnuz", "float8_e5m2fnuz")


def magnitudes(dtype: str) -> np.ndarray:
    """The finite numbers of a narrow float dtype that are not negative, ascending, in float64."""
    bits = 16 if dtype == "float4_e2m1fn" else 256
    every = np.arange(bits, dtype=np.uint8).view(narrow_dtype(dtype)).astype(np.float64)
    return np.unique(np.abs(every[np.isfinite(every)]))


def thresholds(dtype: str, source: type) -> np.ndarray:
    """For each magnitude but the first the least number of a source dtype that rounds to it or beyond; the last entry is where the
    dtype overflows.

    Ties go to the even mantissa. That of a magnitude is the lowest bit of its position, since they are consecutive bit patterns.
    """
    values = magnitudes(dtype)
    beyond = values[-1] + (values[-1] - values[-2])
    ends = np.append(values, beyond)
    middle = ((ends[:-1] + ends[1:]) / 2).astype(source)
    odd = np.arange(len(middle)) % 2 == 1
    return np.where(odd, middle, np.nextafter(middle, source(np.inf)))


def rounded(c: Context, x: Var, dtype: str, saturate: bool = True, round_mode: str = "up") -> Operand:
    """Floats rounded to a narrow float dtype, to the nearest with ties to even."""
    if x.dtype not in ("float32", "float64"):
        x = cast(
            x, dtype="float64" if x.dtype in INTS and x.dtype not in ("int8", "uint8", "int16", "uint16") else "float32"
        )
    if dtype == "float8_e8m0fnu":
        return powers(c, x, saturate, round_mode)
    source = numpy_dtype(x.dtype).type
    limits, table = thresholds(dtype, source), magnitudes(dtype)
    saturates = saturate or dtype == "float4_e2m1fn"
    kept = np.append(table, table[-1] if saturates else np.inf if dtype in WITH_INFINITY else np.nan)
    size = P.abs_(x)
    above = P.ge(reshape(size, shape=(*x.shape, 1)), c.constant(limits, x.dtype))
    position = reduce_sum(cast(above, dtype="int32"), axes=(len(x.shape),))
    out = take(c.constant(kept, "float32"), position, axis=0)
    negative = P.lt(x, x.const(0)) if dtype in UNSIGNED_ZERO else sign_bit(x)
    out = P.where(negative, P.neg(out), out)
    if dtype in UNSIGNED_ZERO:
        out = P.where(P.eq(out, out.const(0)), out.const(0), out)
    if not saturate and dtype in ("float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e4m3fn"):
        out = P.where(P.isinf(x), out.const(np.nan), out)
    nan = out.const(-0.0 if dtype == "float4_e2m1fn" else np.nan)
    return c.narrowed(P.where(P.isnan(x), nan, out), dtype)


def sign_bit(x: Var) -> Var:
    """Whether the sign bit is set, which -0 has too."""
    return P.lt(P.where(P.eq(x, x.const(0)), P.div(x.const(1), x), x), x.const(0))


def powers(c: Context, x: Var, saturate: bool, round_mode: str) -> Operand:
    """Floats rounded to powers of two (float8_e8m0): `up`, `down` or to the `nearest`."""
    x = cast(x, dtype="float32")
    exponents = np.arange(-127, 128)
    values = 2.0 ** exponents.astype(np.float64)
    lower = values[1:]
    middle = {"up": np.nextafter(values[:-1].astype(np.float32), np.float32(np.inf)), "down": lower.astype(np.float32)}
    limits = middle.get(round_mode, (values[:-1] * 1.5).astype(np.float32))
    size = P.abs_(x)
    above = P.ge(reshape(size, shape=(*x.shape, 1)), c.constant(limits, "float32"))
    position = reduce_sum(cast(above, dtype="int32"), axes=(len(x.shape),))
    out = take(c.constant(values, "float32"), position, axis=0)
    top = out.const(float(values[-1])) if saturate else out.const(np.nan)
    if round_mode == "up":
        out = P.where(P.gt(size, size.const(float(values[-1]))), top, out)
    out = P.where(P.isinf(x), top if saturate else out.const(np.nan), out)
    return c.narrowed(P.where(P.isnan(x), out.const(np.nan), out), "float8_e8m0fnu")


def wrapped(c: Context, x: Var, dtype: str) -> Operand:
    """Integers as integers of 4 or 2 bits: their low bits."""
    low, high = RANGES[dtype]
    span = high - low + 1
    if x.dtype in FLOATS:
        x = cast(P.trunc(cast(x, dtype="float64") if x.dtype == "float64" else cast(x, dtype="float32")), dtype="int64")
    elif x.dtype == "bool":
        x = cast(x, dtype="int32")
    wide = cast(x, dtype="int64")
    out = P.mod(wide - wide.const(low), wide.const(span)) + wide.const(low)
    return c.narrowed(cast(out, dtype=CARRIERS[dtype]), dtype)


def converted(c: Context, x: Operand, to: str, saturate: bool = True, round_mode: str = "up"):
    """A tensor in another dtype."""
    if x.dtype == to:
        return x
    if to in RANGES:
        return wrapped(c, x.var, to)
    if to in CARRIERS:
        return rounded(c, x.var, to, saturate, round_mode)
    source = x.var
    if to == "bool":
        return source if source.dtype == "bool" else P.ne(source, source.const(0))
    if to == "bfloat16" and source.dtype in (*INTS, "bool"):
        source = cast(source, dtype="float32")
    return cast(source, dtype=to)


@operator("Cast", raw=True)
def cast_(c: Context, x, *, to, saturate=1, round_mode="up"):
    """A tensor in another dtype. Floats become integers by truncation."""
    return converted(c, x, to, bool(saturate), round_mode)


@operator("CastLike", raw=True)
def cast_like(c: Context, x, target, *, saturate=1, round_mode="up"):
    """A tensor in the dtype of another one."""
    return converted(c, x, target.dtype, bool(saturate), round_mode)


@operator("BitCast", raw=True)
def bit_cast(c: Context, x, *, to):
    """The bits of a tensor as another dtype of the same width.

    Raises:
        TypeError_: the dtypes are none whose bits compiled code can read.
    """
    if x.dtype == to:
        return x
    if "bitcast" in REGISTRY and x.narrow is None and to not in CARRIERS and "bool" not in (to, x.dtype):
        return REGISTRY["bitcast"](x.var, dtype=to)
    known = x.known
    if known is not None and known.dtype != object and x.narrow is None and to not in CARRIERS:
        return known.view(numpy_dtype(to))
    if x.dtype in INTS and to in INTS:
        return cast(x.var, dtype=to)
    if x.dtype in RANGES and to in RANGES:
        return wrapped(c, x.var, to)
    if x.dtype == "bool" and to in ("int8", "uint8"):
        return cast(x.var, dtype=to)
    raise TypeError_(f"the bits of {x.dtype} cannot be read as {to} here")


__all__ = ["RANGES", "converted", "rounded", "wrapped"]
