"""Products and convolutions of quantised tensors: sums of products of integers, exact, which are rounded once.

    sum of (x - x_zero) * (w - w_zero)        in int32, by the kernels of `prims.ops.integers`
    y = saturate(round_half_even(sum * (x_scale * w_scale / y_scale)) + y_zero)        in float32, as ONNX Runtime does

Weights and zero points that are initialisers are constants of the program. Weights less their zero point that fit into int8 are
multiplied as such, other operands less their zero points in 16 bits. Where that is not possible, because there are too many terms
for int32 or more than two axes, the sums are in float64, which holds them exactly as well.

Groups of nodes (`importers.onnx.groups`) are computed like QLinearConv and QLinearMatMul. Scales stay parameters, so models have
derivatives by them, and `fit` may train them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .....abstract.dims import product as size_of
from .....infer.values.values import Dyn
from .....ir.build import Var
from .....prims.ops import elementwise as P
from .....prims.ops.integers.products import conv2d_integer, dot_integer
from .....prims.ops.shape import transpose
from .....prims.rules.broadcast import cast, reduce_sum, reshape
from ...groups import GROUPS
from ...table import Context, Operand, operator
from ..convolution import conv, plan_of, two_axes
from ..linear import gemm, product
from .scales import along, dequantize_linear, quantised, quantize_linear

SMALL = ("uint8", "int8")
TERMS = (1 << 31) // (255 * 255) - 1
"""Products of numbers of 9 bits whose sum fits into int32."""


def is_small(x: Operand) -> bool:
    """Whether a tensor is of integers of 8 bits."""
    return x.narrow is None and x.dtype in SMALL


def is_one(x: Operand | None) -> bool:
    """Whether a scale or zero point is one number, or absent, which stands for one."""
    return x is None or x.shape in ((), (1,))


def number_of(zero: Operand | None) -> int | None:
    """A zero point, where it is one that is known."""
    if zero is None:
        return 0
    return None if zero.number is None else int(zero.number)


def signed(c: Context, w: Operand, zero: Operand | None, axis: int) -> Var | None:
    """Weights less their zero points, as int8; None where these are not known, or the difference is beyond int8."""
    points = np.zeros((), np.int64) if zero is None else zero.known
    if w.dtype == "int8" and points is not None and not np.any(points):
        return w.var
    known = w.known
    if known is None or points is None:
        return None
    if points.size > 1:
        points = points.reshape([-1 if k == axis else 1 for k in range(known.ndim)])
    less = known.astype(np.int64) - (points.astype(np.int64) if points.size > 1 else int(points.reshape(-1)[0]))
    if less.size and not (-128 <= less.min() and less.max() <= 127):
        return None
    return c.constant(less.astype(np.int8))


def less(x: Operand, zero: Operand | None, axis: int, dtype: str) -> Var:
    """Integers less their zero points, one or one for each index of an axis, in another dtype."""
    wide = cast(x.var, dtype=dtype)
    if zero is None:
        return wide
    point = cast(zero.var, dtype=dtype)
    if is_one(zero):
        return P.sub(wide, reshape(point, shape=()))
    return P.sub(wide, point if len(point.shape) > 1 else along(point, x.shape, axis))


def conv_sums(c: Context, x: Operand, x_zero, w: Operand, w_zero, **attributes) -> Var:
    """A convolution of integers: int32, or float64 where that does not do."""
    count = len(x.shape) - 2
    sizes: Any = w.shape[1:]
    whole = all(isinstance(d, int) for d in w.shape) and len(w.shape) == count + 2 and is_one(x_zero)

    def in_floats() -> Var:
        return conv(c, less(x, x_zero, 1, "float64"), less(w, w_zero, 0, "float64"), **attributes)

    if not (whole and count in (1, 2) and is_small(x) and is_small(w) and math.prod(sizes) <= TERMS):
        return in_floats()
    images: Var = x.var
    filters, point = signed(c, w, w_zero, 0), number_of(x_zero)
    if filters is None or point is None:
        images, filters, point = less(x, x_zero, 1, "int16"), less(w, w_zero, 0, "int16"), 0
    filters, steps, sides, groups = plan_of(images, filters, **attributes)
    if any(not isinstance(side, int) or side < 0 for pair in sides for side in pair):
        return in_floats()
    if count == 1:
        images, filters, steps, sides = two_axes(images, 1), two_axes(filters, 1), (1, *steps), ((0, 0), *sides)
    out = conv2d_integer(images, filters, strides=steps, padding=sides, groups=groups, zero=point)
    return reshape(out, shape=(*out.shape[:2], out.shape[3])) if count == 1 else out


def product_sums(c: Context, a: Operand, a_zero, b: Operand, b_zero, turned: bool = False) -> Var:
    """A product of integer matrices: int32, or float64 where that does not do.

        sum of (a - p) * (b - q) = sum of a * b - p * (sum of b) - q * sum of (a - p)

    Args:
        c: the call.
        a: (..., m, k).
        a_zero: one, or one for each row.
        b: (k, n), or stacks of such matrices.
        b_zero: one, or one for each column.
        turned: whether b is (n, k) instead.
    """
    terms = b.shape[1 if turned else 0] if len(b.shape) == 2 else None
    plain = isinstance(terms, int) and terms <= TERMS and len(a.shape) >= 1 and is_one(a_zero)
    if not (plain and is_small(a) and is_small(b) and (b_zero is None or len(b_zero.shape) <= 1)):
        left, right = (
            less(a, a_zero, len(a.shape) - 2, "float64"),
            less(b, b_zero, 0 if turned else len(b.shape) - 1, "float64"),
        )
        return product(c, left, transpose(right, perm=(1, 0)) if turned else right)
    rows = reshape(a.var, shape=(size_of(a.shape[:-1]), terms))
    weights, rest = signed(c, b, b_zero, 0 if turned else 1), None
    if weights is None:  # of any zero point: b - 128 where it is unsigned
        shift = 128 if b.dtype == "uint8" else 0
        weights = (
            b.var if not shift else cast(P.sub(cast(b.var, dtype="int16"), c.constant(128, "int16")), dtype="int8")
        )
        rest = (
            P.sub(cast(b_zero.var, dtype="int32"), c.constant(shift, "int32"))
            if b_zero is not None
            else c.constant(-shift, "int32")
        )
        rest = reshape(rest, shape=()) if is_one(b_zero) else rest
    weights = weights if turned else transpose(weights, perm=(1, 0))
    point = number_of(a_zero)
    sums = dot_integer(rows, weights, zero=point or 0)
    if point is None:
        ours = reshape(cast(a_zero.var, dtype="int32"), shape=())
        sums = P.sub(sums, P.mul(ours, reduce_sum(cast(weights, dtype="int32"), axes=(1,))))
    if rest is not None:
        ours = c.constant(point, "int32") if point is not None else reshape(cast(a_zero.var, dtype="int32"), shape=())
        total = reduce_sum(P.sub(cast(rows, dtype="int32"), ours), axes=(1,))
        sums = P.sub(sums, P.mul(reshape(total, shape=(*total.shape, 1)), rest))
    return reshape(sums, shape=(*a.shape[:-1], weights.shape[0]))


@operator("MatMulInteger", raw=True, fixed=("a_zero_point", "b", "b_zero_point"))
def mat_mul_integer(c: Context, a, b, a_zero_point=None, b_zero_point=None):
    """A product of integer matrices, in int32."""
    return cast(product_sums(c, a, a_zero_point, b, b_zero_point), dtype="int32")


@operator("ConvInteger", raw=True, fixed=("x_zero_point", "w", "w_zero_point"))
def conv_integer(c: Context, x, w, x_zero_point=None, w_zero_point=None, **attributes):
    """A convolution of integers, in int32; padding counts as the zero point."""
    return cast(conv_sums(c, x, x_zero_point, w, w_zero_point, **attributes), dtype="int32")


def of_channels(scale: Var, axes: int) -> Var:
    """One number, or one for each channel, as they broadcast against images with so many axes."""
    if scale.shape in ((), (1,)):
        return reshape(scale, shape=())
    return reshape(scale, shape=(*scale.shape, *(1,) * axes))


@operator("QLinearMatMul", raw=True, fixed=("a_zero_point", "b", "b_zero_point", "y_zero_point"))
def qlinear_mat_mul(c: Context, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    """A product of quantised matrices, requantised."""
    total = cast(product_sums(c, a, a_zero_point, b, b_zero_point), dtype="float32")
    left = a_scale.var
    if not is_one(a_scale) and len(left.shape) == 1 and len(a.shape) > 1:
        left = reshape(left, shape=(*left.shape, 1))
    scale = P.div(
        P.mul(cast(left, dtype="float32"), cast(b_scale.var, dtype="float32")), cast(y_scale.var, dtype="float32")
    )
    scale = reshape(scale, shape=()) if scale.shape == (1,) else scale
    return quantised(c, P.mul(total, scale), y_zero_point.var, y_zero_point.dtype)


@operator("QLinearConv", raw=True, fixed=("x_zero_point", "w", "w_zero_point", "y_zero_point", "bias"))
def qlinear_conv(
    c: Context, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias=None, **attributes
):
    """A convolution of quantised tensors, requantised; the bias has the scale x_scale * w_scale."""
    total, axes = conv_sums(c, x, x_zero_point, w, w_zero_point, **attributes), len(x.shape) - 2
    if bias is not None:
        total = P.add(total, cast(of_channels(bias.var, axes), dtype=total.dtype))
    scale = P.div(P.mul(reshape(x_scale.var, shape=()), w_scale.var), reshape(y_scale.var, shape=()))
    scale, zero = of_channels(scale, axes), reshape(y_zero_point.var, shape=())
    steps = P.mul(cast(total, dtype="float32"), cast(scale, dtype="float32"))
    return quantised(c, steps, zero, y_zero_point.dtype)


# Groups of nodes.


@dataclass(frozen=True)
class Product:
    """The product of a group.

    Attributes:
        sums: of integers: (c, x, x_zero, w, w_zero, attributes) -> an array.
        floats: of what the operands stand for: (c, x, w, bias, attributes) -> an array.
        axis: of the weights, which has an index for each channel of the result.
        trailing: how many axes of the result follow that of the channels.
    """

    sums: Callable[..., Var]
    floats: Callable[..., Any]
    axis: int
    trailing: int


@dataclass(frozen=True)
class Group:
    """The operands of a group: tensors with scales and zero points, and limits of the result."""

    x: Operand
    x_scale: Operand
    x_zero: Operand | None
    w: Operand
    w_scale: Operand
    w_zero: Operand | None
    bias: Operand | None = None
    b_scale: Operand | None = None
    b_zero: Operand | None = None
    y_scale: Operand | None = None
    y_zero: Operand | None = None
    low: Operand | None = None
    high: Operand | None = None

    def has_integers(self, of: Product, axes: tuple[int, ...]) -> bool:
        """Whether the product is one of integers: of 8 bits, with scales in float32 that can be taken out of the sums."""
        scales = [s for s in (self.x_scale, self.w_scale, self.b_scale, self.y_scale) if s is not None]
        small = is_small(self.x) and is_small(self.w) and all(s.narrow is None and s.dtype == "float32" for s in scales)
        if not small or not all(map(is_one, (self.x_scale, self.x_zero, self.y_scale, self.y_zero))):
            return False
        if self.b_zero is not None and (self.b_zero.known is None or np.any(self.b_zero.known)):
            return False
        if self.bias is not None and self.bias.dtype != ("float32" if self.b_scale is None else "int32"):
            return False
        if self.bias is not None and len(self.bias.shape) != 1 and not (of.trailing == 0 and is_one(self.bias)):
            return False
        if self.b_scale is not None and not (
            is_one(self.b_scale) or self.bias is not None and self.b_scale.shape == self.bias.shape
        ):
            return False
        if self.y_zero is not None and self.y_zero.dtype not in SMALL:
            return False
        rank = len(self.w.shape)
        each = is_one(self.w_scale) and is_one(self.w_zero)
        return each or rank > of.axis and axes[1] in (of.axis, of.axis - rank)


def of_group(
    c: Context, operands: tuple, of: Product, axes: tuple[int, ...], relu: int, attributes: dict[str, Any]
) -> Any:
    """The result of a group."""
    g = Group(*operands)
    if not g.has_integers(of, axes):
        return by_nodes(c, g, of, axes, relu, attributes)
    sums = of.sums(c, g.x, g.x_zero, g.w, g.w_zero, **attributes)

    def own(x: Var) -> Var:
        return cast(of_channels(x, of.trailing), dtype="float32")

    def wide(x: Var) -> Var:
        return cast(of_channels(x, of.trailing), dtype="float64")

    x_scale = reshape(g.x_scale.var, shape=())
    scale = P.mul(x_scale, of_channels(g.w_scale.var, of.trailing))
    if g.y_scale is None:
        exact = P.mul(wide(x_scale), wide(g.w_scale.var))
        out = cast(P.mul(cast(sums, dtype="float64"), exact), dtype="float32")
        if g.bias is None:
            return out
        bias = of_channels(g.bias.var, of.trailing)
        if g.b_scale is not None:
            bias = P.mul(cast(bias, dtype="float32"), of_channels(g.b_scale.var, of.trailing))
        return P.add(out, bias)
    y_scale = reshape(g.y_scale.var, shape=())
    more: Var | None = None
    if g.bias is not None and g.b_scale is None:
        more = P.div(own(g.bias.var), y_scale)
    elif g.bias is not None and g.b_scale is not None:  # of the scale of the sums, mostly, and added to them then
        b_scale, bias = of_channels(g.b_scale.var, of.trailing), of_channels(g.bias.var, of.trailing)
        same = P.eq(b_scale, scale)
        sums = P.add(sums, cast(P.where(same, bias, c.constant(0, "int32")), dtype=sums.dtype))
        more = P.where(same, c.constant(0, "float32"), P.div(P.mul(own(g.bias.var), own(g.b_scale.var)), y_scale))
    steps = P.mul(cast(sums, dtype="float32"), P.div(scale, y_scale))
    steps = steps if more is None else P.add(steps, more)
    dtype = "uint8" if g.y_zero is None else g.y_zero.dtype
    zero = None if g.y_zero is None else reshape(g.y_zero.var, shape=())
    limits = [None if v is None else P.rint(P.div(own(v.var), y_scale)) for v in (g.low, g.high)]
    if relu:
        steps = P.maximum(steps, c.constant(0.0, "float32"))
    if any(v is not None for v in limits):
        steps = P.rint(steps)
        steps = steps if limits[0] is None else P.maximum(steps, limits[0])
        steps = steps if limits[1] is None else P.minimum(steps, limits[1])
    return quantised(c, steps, zero, dtype)


def by_nodes(c: Context, g: Group, of: Product, axes: tuple[int, ...], relu: int, attributes: dict[str, Any]) -> Var:
    """The result of a group as its nodes have it."""
    x = dequantize_linear(c, g.x, g.x_scale, g.x_zero, axis=axes[0])
    w = dequantize_linear(c, g.w, g.w_scale, g.w_zero, axis=axes[1])
    bias = None if g.bias is None else g.bias.var
    if g.b_scale is not None:
        bias = dequantize_linear(c, g.bias, g.b_scale, g.b_zero, axis=axes[2])
    out = of.floats(c, x, w, bias, **attributes)
    out = P.maximum(out, c.constant(0, out.dtype)) if relu else out
    for limit, bound in ((g.low, P.maximum), (g.high, P.minimum)):
        out = out if limit is None else bound(out, reshape(limit.var, shape=()))
    if g.y_scale is None:
        return out
    of_floats: Callable[..., Any] = quantize_linear
    return of_floats(c, Operand(c, Dyn(out.node)), g.y_scale, g.y_zero, axis=axes[3])


INTEGERS = ("x_zero", "w", "w_zero", "bias", "b_zero", "y_zero")


@operator("QuantizedConv", domain=GROUPS, raw=True, fixed=INTEGERS)
def quantized_conv(
    c: Context, x, x_scale, x_zero, w, w_scale, w_zero=None, bias=None, b_scale=None, b_zero=None, y_scale=None, y_zero=None,
    low=None, high=None, *, axes, relu=0, **attributes,
):  # fmt: skip
    """A convolution of quantised tensors."""
    operands = (x, x_scale, x_zero, w, w_scale, w_zero, bias, b_scale, b_zero, y_scale, y_zero, low, high)
    return of_group(c, operands, Product(conv_sums, conv, 0, len(x.shape) - 2), axes, relu, attributes)


@operator("QuantizedMatMul", domain=GROUPS, raw=True, fixed=INTEGERS)
def quantized_mat_mul(
    c: Context, x, x_scale, x_zero, w, w_scale, w_zero=None, bias=None, b_scale=None, b_zero=None, y_scale=None, y_zero=None,
    low=None, high=None, *, axes, relu=0,
):  # fmt: skip
    """A product of quantised matrices."""
    operands = (x, x_scale, x_zero, w, w_scale, w_zero, bias, b_scale, b_zero, y_scale, y_zero, low, high)
    of = Product(product_sums, lambda c, a, b, bias: product(c, a, b), len(w.shape) - 1, 0)
    return of_group(c, operands, of, axes, relu, {})


@operator("QuantizedGemm", domain=GROUPS, raw=True, fixed=INTEGERS)
def quantized_gemm(
    c: Context, x, x_scale, x_zero, w, w_scale, w_zero=None, bias=None, b_scale=None, b_zero=None, y_scale=None, y_zero=None,
    low=None, high=None, *, axes, relu=0, transA=0, transB=0, **attributes,
):  # fmt: skip
    """A product of quantised matrices with a bias."""
    operands = (x, x_scale, x_zero, w, w_scale, w_zero, bias, b_scale, b_zero, y_scale, y_zero, low, high)

    def floats(c: Context, a: Var, b: Var, bias: Var | None) -> Var:
        return gemm(c, a, b, bias, transA=transA, transB=transB, **attributes)

    def sums(c: Context, *operands) -> Var:
        return product_sums(c, *operands, turned=bool(transB))

    of = Product(sums, floats, 0 if transB else 1, 0)
    if transA or len(x.shape) != 2:
        return by_nodes(c, Group(*operands), of, axes, relu, {})
    return of_group(c, operands, of, axes, relu, {})


__all__ = ["conv_sums", "product_sums"]
