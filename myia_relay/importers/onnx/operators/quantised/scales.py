"""Quantised operators, with exact integer semantics.

    y = saturate(round_half_even(x / scale) + zero)          x = (y - zero) * scale

Products of quantised tensors are in `products`.
"""

from __future__ import annotations

import numpy as np

from .....abstract.types import INTS
from .....ir.build import Var
from .....ir.node import Constant
from .....prims.ops import elementwise as P
from .....prims.ops.integers.quantisation import round_saturated
from .....prims.ops.reduction import reduce_max, reduce_min
from .....prims.rules.broadcast import as_array, broadcast_to, cast, reshape
from .....prims.rules.relations import normalise_axis
from .....utils.errors import ShapeError
from ...table import Context, Operand, operator
from ...values import CARRIERS
from ..casts import RANGES, rounded

ROUNDED = ("uint8", "int8", "uint16", "int16")
LIMITS = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTS} | RANGES


def along(x: Var, shape: tuple, axis: int, block: int = 0) -> Var:
    """Scales or zero points as they broadcast against a tensor: one, one for each index of an axis, or one for each block.

    Raises:
        ShapeError: shapes do not fit.
    """
    if x.shape in ((), (1,)) and not block:
        return reshape(x, shape=())
    if not len(shape):
        return reshape(x, shape=())
    at = normalise_axis("axis", axis, shape)
    if not block:
        if len(x.shape) != 1:
            raise ShapeError(f"scales of shape {x.shape} are neither one nor one for each index of an axis")
        return reshape(x, shape=tuple(x.shape[0] if k == at else 1 for k in range(len(shape))))
    parts = (*x.shape[: at + 1], block, *x.shape[at + 1 :])
    wide = broadcast_to(reshape(x, shape=(*x.shape[: at + 1], 1, *x.shape[at + 1 :])), shape=parts)
    flat = reshape(wide, shape=(*x.shape[:at], x.shape[at] * block, *x.shape[at + 1 :]))
    if flat.shape[at] != shape[at]:
        from .....ir.prim import REGISTRY

        sizes = tuple(shape[k] if k == at else d for k, d in enumerate(flat.shape))
        flat = REGISTRY["slice"](flat, starts=(0,) * len(sizes), sizes=sizes, steps=(1,) * len(sizes))
    return flat


def quantised(c: Context, x: Var, zero: Var | None, dtype: str, saturate: bool = True):
    """Scaled floats as integers or narrow floats, with a zero point added."""
    if dtype not in LIMITS:
        if zero is not None and dtype == "float4_e2m1fn":
            x = P.add(x, cast(zero, dtype=x.dtype))
        return rounded(c, x, dtype, saturate)
    low, high = LIMITS[dtype]
    point = None if zero is None else zero.node
    if dtype in ROUNDED and (point is None or isinstance(point, Constant) and np.size(point.value) == 1):
        known = 0 if point is None else int(np.asarray(point.value).reshape(-1)[0])
        x = x if x.dtype == "float64" else cast(x, dtype="float32")
        return round_saturated(x, zero=known, low=low, high=high, dtype=dtype)
    wide = "float64" if dtype in ("int32", "uint32", "int16", "uint16") or x.dtype == "float64" else "float32"
    whole = P.rint(cast(x, dtype=wide) if x.dtype in ("float16", "bfloat16", "float32") else x)
    if zero is not None:
        whole = P.add(whole, cast(zero, dtype=whole.dtype))
    kept = P.minimum(P.maximum(whole, whole.const(low)), whole.const(high))
    out = cast(kept, dtype=CARRIERS.get(dtype, dtype))
    return c.narrowed(out, dtype) if dtype in CARRIERS else out


@operator("QuantizeLinear", raw=True, fixed=("y_zero_point",))
def quantize_linear(
    c: Context, x, y_scale, y_zero_point=None, *, axis=1, saturate=1, block_size=0, output_dtype=None, precision=None
):
    """Floats (or int32) as integers: per tensor, per index of an axis, or per block of an axis."""
    dtype = output_dtype or (y_zero_point.dtype if y_zero_point is not None else "uint8")
    value, scale = x.var, along(y_scale.var, x.shape, axis, block_size)
    zero = None if y_zero_point is None else along(y_zero_point.var, x.shape, axis, block_size)
    wide = value.dtype if value.dtype not in INTS else scale.dtype
    if scale.dtype != wide:
        wide = "float32"
    return quantised(c, P.div(cast(value, dtype=wide), cast(scale, dtype=wide)), zero, dtype, bool(saturate))


@operator("DequantizeLinear", raw=True, fixed=("x_zero_point",))
def dequantize_linear(c: Context, x, x_scale, x_zero_point=None, *, axis=1, block_size=0, output_dtype=None):
    """Integers (or narrow floats) as floats."""
    scale = along(x_scale.var, x.shape, axis, block_size)
    value = dequantised(x, x_zero_point, axis, block_size)
    out = P.mul(value, cast(scale, dtype="float32"))
    return cast(out, dtype=output_dtype or scale.dtype)


def dequantised(x: Operand, zero: Operand | None, axis: int, block: int = 0) -> Var:
    """A tensor less its zero point, in float32."""
    value = x.var
    if zero is None or x.narrow and x.narrow.startswith("float"):
        return cast(value, dtype="float32")
    shift = along(zero.var, x.shape, axis, block)
    if x.narrow is None and value.dtype in ("int32", "uint32"):
        return P.sub(cast(value, dtype="float32"), cast(shift, dtype="float32"))
    return cast(P.sub(cast(value, dtype="int32"), cast(shift, dtype="int32")), dtype="float32")


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(c: Context, x):
    """Floats as uint8, with a scale and a zero point from their range, widened to include 0."""
    axes = tuple(range(len(x.shape)))
    zero = c.constant(0, x.dtype)
    top = P.maximum(as_array(reduce_max(x, axes=axes)), zero)
    bottom = P.minimum(as_array(reduce_min(x, axes=axes)), zero)
    span = P.div(P.sub(top, bottom), c.constant(255, x.dtype))
    scale = P.where(P.eq(top, bottom), c.constant(np.float32(1) / np.float32(255), x.dtype), span)
    start = P.minimum(P.maximum(P.sub(zero, P.div(bottom, scale)), zero), c.constant(255, x.dtype))
    point = P.rint(start)
    whole = P.add(P.rint(P.div(x, scale)), point)
    y = P.minimum(P.maximum(whole, zero), c.constant(255, x.dtype))
    return cast(y, dtype="uint8"), scale, cast(point, dtype="uint8")
