"""The quantised operators of the domain `com.microsoft`, which ONNX Runtime's quantiser writes in its format QOperator.

    y = saturate(round_half_even(f((x - x_zero) * x_scale, ...) / y_scale) + y_zero)

Integers less their zero points, their products and their sums are exact in float32. Where f commutes with scales, these are joined
to one factor, x_scale / y_scale, so a result is that of the definition, but for values within rounding errors of float32 of a half.
So it is with products of matrices, whose sums are exact in int32. Results in float32 are sums times scales, rounded once.

Source: the operators' schemas, https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .....infer.values.values import Dyn
from .....ir.build import Var
from .....prims.ops import elementwise as P
from .....prims.ops.shape import transpose
from .....prims.rules.broadcast import as_array, cast, reduce_sum, reshape
from .....prims.rules.relations import normalise_axis
from .....utils.errors import ShapeError, TypeError_
from ...table import Context, Operand, operator
from ..convolution import average_pool
from ..reductions import in_two, softmax
from ..shapes import joined
from .products import SMALL, is_one, is_small, product_sums
from .scales import dequantised, dequantize_linear, dynamic_quantize_linear, quantised, quantize_linear

MICROSOFT = "com.microsoft"

for _rule, _name in ((quantize_linear, "QuantizeLinear"), (dequantize_linear, "DequantizeLinear")):
    operator(_name, domain=MICROSOFT, raw=True, fixed=("x_zero_point", "y_zero_point"))(_rule)


def integers(x: Operand, zero: Operand | None) -> Var:
    """Integers of 8 bits less their zero point, in float32.

    Raises:
        TypeError_: they are of another dtype.
    """
    for part in (x, zero):
        if part is not None and not is_small(part):
            raise TypeError_(f"it takes tensors of uint8 and int8, and this one is of {part.dtype}")
    return dequantised(x, zero, 1)


def one(scale: Operand) -> Var:
    """The scale of a tensor.

    Raises:
        ShapeError: there are several.
        TypeError_: it is no float32.
    """
    if not is_one(scale):
        raise ShapeError(f"a tensor has one scale here, and this one has scales of shape {scale.shape}")
    if scale.dtype != "float32":
        raise TypeError_(f"scales are of float32, and this one is of {scale.dtype}")
    return reshape(scale.var, shape=())


def stepped(c: Context, steps: Var, zero: Operand | None, like: Operand) -> Any:
    """Multiples of the result's scale as its integers, of the dtype of the zero point or else of an operand.

    Raises:
        TypeError_: that is none of 8 bits.
    """
    dtype = like.dtype if zero is None else zero.dtype
    if dtype not in SMALL:
        raise TypeError_(f"its result is of uint8 or int8, and the zero point is of {dtype}")
    return quantised(c, steps, None if zero is None else reshape(zero.var, shape=()), dtype)


ZEROS = ("a_zero", "b_zero", "c_zero", "x_zero", "y_zero", "z_zero")


@operator("QLinearAdd", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_add(c: Context, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
    """A sum."""
    step = one(c_scale)
    left = P.mul(integers(a, a_zero), P.div(one(a_scale), step))
    right = P.mul(integers(b, b_zero), P.div(one(b_scale), step))
    return stepped(c, P.add(left, right), c_zero, a)


@operator("QLinearMul", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_mul(c: Context, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
    """A product, element by element."""
    factor = P.div(P.mul(one(a_scale), one(b_scale)), one(c_scale))
    return stepped(c, P.mul(P.mul(integers(a, a_zero), integers(b, b_zero)), factor), c_zero, a)


@operator("QLinearSigmoid", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_sigmoid(c: Context, x, x_scale, x_zero, y_scale, y_zero=None):
    """1 / (1 + exp(-x))."""
    value = c.relay("sigmoid", P.mul(integers(x, x_zero), one(x_scale)))
    return stepped(c, P.div(value, one(y_scale)), y_zero, x)


@operator("QLinearLeakyRelu", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_leaky_relu(c: Context, x, x_scale, x_zero, y_scale, y_zero=None, *, alpha=0.01):
    """x, or alpha * x where that is negative."""
    steps = P.mul(integers(x, x_zero), P.div(one(x_scale), one(y_scale)))
    none = c.constant(0, "float32")
    return stepped(c, P.where(P.lt(steps, none), P.mul(steps, c.constant(alpha, "float32")), steps), y_zero, x)


@operator("QLinearSoftmax", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_softmax(c: Context, x, x_scale, x_zero, y_scale, y_zero, *, opset, axis=-1):
    """exp(x) / sum(exp(x)) along an axis, or as operator sets before 13 define it."""
    rule = in_two(softmax) if opset < 13 else softmax
    value = rule(c, P.mul(integers(x, x_zero), one(x_scale)), axis=axis)
    return stepped(c, P.div(value, one(y_scale)), y_zero, x)


@operator("QLinearWhere", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_where(c: Context, condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    """x where a condition holds, else y."""
    step = one(z_scale)
    left = P.mul(integers(x, x_zero), P.div(one(x_scale), step))
    right = P.mul(integers(y, y_zero), P.div(one(y_scale), step))
    return stepped(c, c.numpy(np.where, condition.var, left, right), z_zero, x)


@operator("QLinearConcat", domain=MICROSOFT, raw=True, fixed=("y_zero",))
def qlinear_concat(c: Context, y_scale, y_zero, *parts, axis):
    """Tensors one behind the other along an axis; each comes with its scale and zero point.

    Raises:
        TypeError_: inputs are not in threes.
    """
    if not parts or len(parts) % 3:
        raise TypeError_(f"it takes tensors, scales and zero points in threes, and there are {len(parts)} inputs")
    step = one(y_scale)
    threes = [parts[k : k + 3] for k in range(0, len(parts), 3)]
    steps = [P.mul(integers(x, zero), P.div(one(scale), step)) for x, scale, zero in threes]
    return joined(c, [stepped(c, v, y_zero, y_zero) for v in steps], axis)


# Means.


def _channels(x: Operand, last: int) -> Operand:
    """A tensor whose channels are the second axis."""
    rank = len(x.shape)
    return Operand(x.context, Dyn(transpose(x.var, perm=(0, rank - 1, *range(1, rank - 1))).node)) if last else x


def _as_given(y: Var, last: int) -> Var:
    """A result with its channels where the operands have them."""
    return transpose(y, perm=(0, *range(2, len(y.shape)), 1)) if last else y


def mean_steps(x: Operand, x_scale: Operand, x_zero: Operand | None, y_scale: Operand, axes: tuple, keepdims: bool):
    """The mean over axes, in steps of the result."""
    value = integers(x, x_zero)
    return P.mul(x.context.numpy(np.mean, value, axis=axes, keepdims=keepdims), P.div(one(x_scale), one(y_scale)))


@operator("QLinearGlobalAveragePool", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_global_average_pool(c: Context, x, x_scale, x_zero, y_scale, y_zero, *, channels_last=0):
    """The mean of each channel."""
    rank = len(x.shape)
    axes = tuple(range(1, rank - 1) if channels_last else range(2, rank))
    return stepped(c, mean_steps(x, x_scale, x_zero, y_scale, axes, True), y_zero, x)


@operator("QLinearReduceMean", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_reduce_mean(c: Context, x, x_scale, x_zero, y_scale, y_zero=None, *, axes, keepdims):
    """The mean over axes, by default over all."""
    over = tuple(axes) or tuple(range(len(x.shape)))
    return stepped(c, mean_steps(x, x_scale, x_zero, y_scale, over, bool(keepdims)), y_zero, x)


@operator("QLinearAveragePool", domain=MICROSOFT, raw=True, fixed=ZEROS)
def qlinear_average_pool(
    c: Context, x, x_scale, x_zero, y_scale, y_zero=None, *, kernel_shape, channels_last=0, **attributes
):
    """The mean of each window; padding counts as the zero point."""
    value = integers(_channels(x, channels_last), x_zero)
    means = average_pool(c, value, kernel_shape=kernel_shape, **attributes)
    steps = P.mul(means, P.div(one(x_scale), one(y_scale)))
    return stepped(c, _as_given(steps, channels_last), y_zero, x)


# Products of matrices.


def _scaled(c: Context, sums: Var, left: Operand, right: Operand, alpha: float = 1.0) -> Var:
    """Sums of products times the scales of the operands, one or one for each column of the second one, in float64."""
    scale = P.mul(cast(left.var, dtype="float64"), cast(right.var, dtype="float64"))
    scale = reshape(scale, shape=()) if scale.shape == (1,) else scale
    factor = scale if alpha == 1 else P.mul(scale, c.constant(np.float32(alpha), "float64"))
    return P.mul(cast(sums, dtype="float64"), factor)


@operator("QGemm", domain=MICROSOFT, raw=True, fixed=("a_zero", "b", "b_zero", "bias", "y_zero"))
def q_gemm(
    c: Context, a, a_scale, a_zero, b, b_scale, b_zero, bias=None, y_scale=None, y_zero=None,
    *, alpha=1.0, transA=0, transB=0,
):  # fmt: skip
    """A product of quantised matrices with a bias of its scale; in float32 without a scale of the result."""
    if transA:
        a = Operand(c, Dyn(transpose(a.var, perm=(1, 0)).node))
    sums = product_sums(c, a, a_zero, b, b_zero, turned=bool(transB))
    if bias is not None:
        sums = P.add(sums, cast(bias.var, dtype=sums.dtype))
    if y_scale is None:
        return cast(_scaled(c, sums, a_scale, b_scale, alpha), dtype="float32")
    scale = P.mul(one(a_scale), b_scale.var)
    scale = P.mul(reshape(scale, shape=()) if is_one(b_scale) else scale, c.constant(alpha, "float32"))
    return stepped(c, P.mul(cast(sums, dtype="float32"), P.div(scale, one(y_scale))), y_zero, a)


@operator("MatMulIntegerToFloat", domain=MICROSOFT, raw=True, fixed=("a_zero", "b", "b_zero"))
def mat_mul_integer_to_float(c: Context, a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    """A product of integer matrices times their scales, with a bias."""
    out = cast(_scaled(c, product_sums(c, a, a_zero, b, b_zero), a_scale, b_scale), dtype="float32")
    return out if bias is None else P.add(out, bias.var)


@operator("DynamicQuantizeMatMul", domain=MICROSOFT, raw=True, fixed=("b", "b_zero"))
def dynamic_quantize_mat_mul(c: Context, a, b, b_scale, b_zero=None, bias=None):
    """A product of a matrix, quantised by its range, and a quantised one."""
    q, scale, zero = (Operand(c, Dyn(v.node)) for v in dynamic_quantize_linear(c, a.var))
    return mat_mul_integer_to_float(c, q, b, scale, b_scale, zero, b_zero, bias)


@operator("MulInteger", domain=MICROSOFT, raw=True, fixed=ZEROS)
def mul_integer(c: Context, a, a_zero, b, b_zero=None):
    """Products of integers less their zero points, element by element, in int32."""
    return cast(P.mul(integers(a, a_zero), integers(b, b_zero)), dtype="int32")


@operator("ReduceSumInteger", domain=MICROSOFT)
def reduce_sum_integer(c: Context, x, *, axes, keepdims):
    """Sums over axes, in 32 bits."""
    over = sorted(normalise_axis("ReduceSumInteger", k, x.shape) for k in axes) if axes else range(len(x.shape))
    wide = cast(x, dtype="uint32" if x.dtype == "uint8" else "int32")
    return as_array(reduce_sum(wide, axes=tuple(over), keepdims=bool(keepdims)))


__all__ = ["MICROSOFT"]
