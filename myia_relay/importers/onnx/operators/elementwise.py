"""Elementwise operators."""

from __future__ import annotations

import math

import numpy as np

from ....abstract.types import FLOATS, INTS
from ....ir.build import Var
from ....ir.prim import REGISTRY
from ....prims.api.nn_api import softly
from ....prims.api.promotion import is_static, static_value
from ....prims.ops import elementwise as P
from ....prims.ops import special as S
from ....prims.rules.broadcast import broadcast_to, cast, reshape
from ....utils.errors import TypeError_, ValueError_
from ..table import Context, Operand, operator

UNARY = {
    "Abs": P.abs_, "Acos": P.arccos, "Acosh": S.arccosh, "Asin": P.arcsin, "Asinh": S.arcsinh, "Atan": P.arctan,
    "Atanh": S.arctanh, "BitwiseNot": P.bitwise_not, "Ceil": P.ceil, "Cos": P.cos, "Cosh": P.cosh, "Erf": P.erf,
    "Exp": P.exp, "Floor": P.floor, "IsNaN": P.isnan, "Log": P.log, "Neg": P.neg, "Not": P.logical_not, "Round": P.rint,
    "Sigmoid": P.sigmoid, "Sign": P.sign, "Sin": P.sin, "Sinh": P.sinh, "Sqrt": P.sqrt, "Tan": P.tan, "Tanh": P.tanh,
}  # fmt: skip
BINARY = {
    "Add": P.add, "Sub": P.sub, "Mul": P.mul, "Equal": P.eq, "Greater": P.gt, "GreaterOrEqual": P.ge, "Less": P.lt,
    "LessOrEqual": P.le, "And": P.logical_and, "Or": P.logical_or, "Xor": P.logical_xor, "BitwiseAnd": P.bitwise_and,
    "BitwiseOr": P.bitwise_or, "BitwiseXor": P.bitwise_xor,
}  # fmt: skip


def aligned(b: Var, a: Var, broadcast: int, axis: int | None) -> Var:
    """The second operand as operator sets before 7 align it: its first axis with the axis `axis` of the first operand."""
    if not broadcast or axis is None:
        return b
    at = axis % max(len(a.shape), 1)
    return reshape(b, shape=(*b.shape, *(1,) * (len(a.shape) - at - len(b.shape))))


def _unary(prim):
    def rule(c: Context, x):
        if x.dtype == "bool" and prim is P.sign or x.dtype in INTS and prim in (P.ceil, P.floor, P.rint):
            return x
        return prim(x)

    return rule


def _binary(prim):
    def rule(c: Context, a, b, *, broadcast=0, axis=None, consumed_inputs=None):
        b = aligned(b, a, broadcast, axis)
        if a.dtype != b.dtype:
            raise TypeError_(f"its operands are of {a.dtype} and {b.dtype}")
        return prim(a, b)

    return rule


for _name, _prim in UNARY.items():
    operator(_name)(_unary(_prim))
for _name, _prim in BINARY.items():
    operator(_name)(_binary(_prim))


@operator("Identity", raw=True)
def identity(c: Context, x):
    """The value itself, whatever it is."""
    return x


def truncated(a: Var, b: Var) -> Var:
    """The quotient of integers, rounded towards 0; by 0 it is 0."""
    down = P.floordiv(a, b)
    if a.dtype.startswith("u"):
        return down
    rest = P.sub(a, P.mul(down, b))
    up = P.logical_and(P.ne(rest, rest.const(0)), P.ne(P.lt(a, a.const(0)), P.lt(b, b.const(0))))
    return P.add(down, cast(up, dtype=a.dtype))


@operator("Div")
def div(c: Context, a, b, *, broadcast=0, axis=None, consumed_inputs=None):
    """The quotient; of integers it is truncated."""
    b = aligned(b, a, broadcast, axis)
    return truncated(a, b) if a.dtype in INTS else P.div(a, b)


@operator("Mod")
def mod(c: Context, a, b, *, fmod=0):
    """The remainder, with the sign of the divisor; with `fmod` that of the dividend."""
    if a.dtype in INTS:
        return P.sub(a, P.mul(truncated(a, b), b)) if fmod else P.mod(a, b)
    if not fmod:
        return P.mod(a, b)
    rest = P.mod(P.abs_(a), P.abs_(b))
    return P.where(P.lt(a, a.const(0)), P.neg(rest), rest)


@operator("Pow", raw=("b",))
def pow_(c: Context, a, b, *, broadcast=0, axis=None):
    """a to the power b, in the dtype of a."""
    known = b.number
    if known is not None and a.dtype in FLOATS and len(b.shape) <= len(a.shape):
        simple = {1.0: lambda: a, 2.0: lambda: P.mul(a, a), 3.0: lambda: P.mul(P.mul(a, a), a), 0.5: lambda: P.sqrt(a)}
        if float(known) in simple and float(known) != 0.5:
            return simple[float(known)]()
    y = aligned(b.var, a, broadcast, axis)
    if a.dtype in INTS and y.dtype in INTS:
        return integer_power(a, y)
    if y.dtype == a.dtype:
        return P.pow_(a, y)
    if a.dtype in FLOATS:
        wide = (
            "float64"
            if a.dtype == "float64" or y.dtype in ("float64", "int64", "int32", "uint32", "uint64")
            else "float32"
        )
        if y.dtype in INTS and a.dtype == "float32":
            return P.pow_(a, cast(y, dtype="float32"))
        return cast(P.pow_(cast(a, dtype=wide), cast(y, dtype=wide)), dtype=a.dtype)
    return cast(P.pow_(cast(a, dtype="float64"), cast(y, dtype="float64")), dtype=a.dtype)


def integer_power(a: Var, b: Var) -> Var:
    """Powers of integers, which wrap. Those with negative exponents are truncated: only 1 and -1 have others than 0, and what is
    infinite is the least integer, as a cast has it.
    """
    unsigned = b.dtype.startswith("u")
    wide = cast(a, dtype="uint64" if unsigned else "int64")  # the low bits of a product are those of the wide one
    out = cast(P.pow_(wide, cast(b, dtype=wide.dtype)), dtype=a.dtype)
    if unsigned or is_static(b) and (np.asarray(static_value(b)) >= 0).all():
        return out
    zero, one = a.const(0), a.const(1)
    odd = P.ne(P.bitwise_and(b, b.const(1)), b.const(0))
    size = a if a.dtype.startswith("u") else P.abs_(a)
    least = a.const(int(np.iinfo(a.dtype).min))
    inverse = P.where(P.eq(size, one), P.where(odd, a, one), P.where(P.eq(a, zero), least, zero))
    return P.where(P.lt(b, b.const(0)), inverse, out)


def _variadic(combine, mean=False):
    def rule(c: Context, *xs):
        out = xs[0]
        for x in xs[1:]:
            out = combine(out, x)
        return P.div(out, out.const(len(xs))) if mean else out

    return rule


operator("Max")(_variadic(P.maximum))
operator("Min")(_variadic(P.minimum))
operator("Sum")(_variadic(P.add))
operator("Mean")(_variadic(P.add, mean=True))


@operator("BitShift")
def bit_shift(c: Context, a, b, *, direction):
    """Bits shifted; all of them out where there are that many."""
    return (P.left_shift if direction == "LEFT" else P.right_shift)(a, b)


@operator("Atan2")
def atan2(c: Context, y, x):
    """The angle of a point."""
    return c.numpy(np.arctan2, y, x)


@operator("Reciprocal")
def reciprocal(c: Context, x):
    """1 / x."""
    return P.div(x.const(1), x)


@operator("IsInf")
def is_inf(c: Context, x, *, detect_negative=1, detect_positive=1):
    """Whether it is an infinity of a sign that is looked for."""
    found = P.isinf(x)
    if not detect_negative:
        found = P.logical_and(found, P.gt(x, x.const(0)))
    if not detect_positive:
        found = P.logical_and(found, P.lt(x, x.const(0)))
    return found


def _bound(x: Var, limit, prim):
    return x if limit is None else prim(x, limit)


@operator("Clip", until=10)
def clip_6(c: Context, x, *, min=None, max=None):
    """x between two numbers."""
    low, high = (None if v is None else x.const(v) for v in (min, max))
    return _bound(_bound(x, low, P.maximum), high, P.minimum)


@operator("Clip", since=11)
def clip(c: Context, x, min=None, max=None):
    """x between two numbers; the upper one where they are in the other order."""
    return _bound(_bound(x, min, P.maximum), max, P.minimum)


@operator("Where")
def where(c: Context, condition, x, y):
    """x where a condition holds, else y."""
    return P.where(condition, x, y)


# Activations.


def in_float32(rule):
    """Compute in float32 for floats of 16 bits, as the kernels of ONNX do, and round once."""

    def wide(c: Context, x, *more, **attributes):
        if not isinstance(x, Operand) and x.dtype in ("float16", "bfloat16"):
            more = [cast(m, dtype="float32") if isinstance(m, Var) and m.dtype == x.dtype else m for m in more]
            return cast(rule(c, cast(x, dtype="float32"), *more, **attributes), dtype=x.dtype)
        return rule(c, x, *more, **attributes)

    wide.__wrapped__ = rule
    return wide


def _negative_part(x: Var) -> Var:
    return P.minimum(x, x.const(0))


@operator("Relu")
def relu(c: Context, x):
    """max(x, 0)."""
    return P.where(P.le(x, x.const(0)), x.const(0), x)


@operator("LeakyRelu")
@in_float32
def leaky_relu(c: Context, x, *, alpha=0.01):
    """alpha * x where x is negative."""
    return P.where(P.lt(x, x.const(0)), x * x.const(alpha), x)


@operator("PRelu")
def prelu(c: Context, x, slope):
    """slope * x where x is negative. Before operator set 7 the slope is one for each channel."""
    if c.version < 7 and len(slope.shape) == 1 and len(x.shape) > 1 and slope.shape[0] != 1:
        slope = reshape(slope, shape=(*slope.shape, *(1,) * (len(x.shape) - 2)))
    return P.where(P.lt(x, x.const(0)), x * slope, x)


@operator("Elu")
@in_float32
def elu(c: Context, x, *, alpha=1.0):
    """alpha * (exp(x) - 1) where x is negative."""
    return P.where(P.lt(x, x.const(0)), x.const(alpha) * P.expm1(_negative_part(x)), x)


@operator("Celu")
@in_float32
def celu(c: Context, x, *, alpha=1.0):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return P.where(P.gt(x, x.const(0)), x, x.const(alpha) * P.expm1(_negative_part(x) / x.const(alpha)))


@operator("Selu")
@in_float32
def selu(c: Context, x, *, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875):
    """gamma * elu(x, alpha)."""
    return x.const(gamma) * P.where(P.gt(x, x.const(0)), x, x.const(alpha) * P.expm1(_negative_part(x)))


@operator("HardSigmoid")
@in_float32
def hard_sigmoid(c: Context, x, *, alpha=0.2, beta=0.5):
    """alpha * x + beta between 0 and 1."""
    return P.maximum(x.const(0), P.minimum(x.const(1), x.const(alpha) * x + x.const(beta)))


@operator("HardSwish")
@in_float32
def hard_swish(c: Context, x):
    """x * hard_sigmoid(x), with a slope of 1 / 6."""
    return x * P.maximum(x.const(0), P.minimum(x.const(1), x.const(1 / 6) * x + x.const(0.5)))


@operator("Softplus")
@in_float32
def softplus(c: Context, x):
    """log(1 + exp(x))."""
    return softly(x)


@operator("Softsign")
def softsign(c: Context, x):
    """x / (1 + |x|)."""
    return x / (x.const(1) + P.abs_(x))


@operator("Mish")
@in_float32
def mish(c: Context, x):
    """x * tanh(softplus(x))."""
    return x * P.tanh(softplus(c, x))


@operator("Swish")
@in_float32
def swish(c: Context, x, *, alpha=1.0):
    """x * sigmoid(alpha * x)."""
    return x * REGISTRY["sigmoid"](x if alpha == 1 else x * x.const(alpha))


@operator("SwiGLU")
@in_float32
def swiglu(c: Context, gate, x, *, alpha=1.0):
    """swish(gate) * x."""
    return swish.__wrapped__(c, gate, alpha=alpha) * x


@operator("ThresholdedRelu")
def thresholded_relu(c: Context, x, *, alpha=1.0):
    """x where it is above alpha, else 0."""
    return P.where(P.gt(x, x.const(alpha)), x, x.const(0))


@operator("Shrink")
def shrink(c: Context, x, *, bias=0.0, lambd=0.5):
    """x + bias below -lambd, x - bias above lambd, else 0."""
    wide = x if x.dtype in FLOATS else cast(x, dtype="float64")
    zero = wide.const(0)
    out = P.where(P.gt(wide, wide.const(lambd)), wide - wide.const(bias), zero)
    return cast(P.where(P.lt(wide, wide.const(-lambd)), wide + wide.const(bias), out), dtype=x.dtype)


@operator("Gelu")
@in_float32
def gelu(c: Context, x, *, approximate="none"):
    """x times the normal distribution function of x.

    Raises:
        ValueError_: another approximation than "tanh".
    """
    if approximate not in ("none", "tanh"):
        raise ValueError_(f"its approximation '{approximate}' is unknown")
    if approximate == "tanh":
        inner = x.const(math.sqrt(2 / math.pi)) * (x + x.const(0.044715) * x * x * x)
        return x.const(0.5) * x * (x.const(1) + P.tanh(inner))
    return x * x.const(0.5) * (x.const(1) + P.erf(x * x.const(math.sqrt(0.5))))


@operator("Dropout", until=6)
def dropout_6(c: Context, x, *, ratio=0.5, is_test=0, consumed_inputs=None, seed=None):
    """The identity, as inference has it."""
    mask = broadcast_to(c.constant(1, x.dtype), shape=x.shape)
    return (x, mask) if c.outputs > 1 else x


@operator("Dropout", since=7, until=11)
def dropout_7(c: Context, x, *, ratio=0.5, seed=None):
    """The identity, as inference has it."""
    if c.outputs == 1:
        return x
    dtype = "bool" if c.version >= 10 else x.dtype
    return x, broadcast_to(c.constant(1, dtype), shape=x.shape)


__all__ = ["aligned", "in_float32"]
