"""Elementwise arithmetic on floats and integers.

Operands have one dtype (`prims.api.operators` promotes them), and shapes broadcast as NumPy's do. Integers wrap, floats
follow IEEE: nothing here raises. At kinks the derivative is that of JAX and PyTorch: `abs'(0) = 0`, ties of `maximum`
split evenly, `x ** 0` has derivative 0.
"""

from __future__ import annotations

import math

import numpy as np

from ...abstract.types import FLOATS, with_dtype
from ...ir.node import Constant
from ...ir.prim import REGISTRY, Primitive
from ..rules.broadcast import filled_like, match_kind, type_of, unbroadcast
from ..rules.relations import ANY, BITS, INTS, NUMBERS, broadcast_shapes, const_like, join_kind, require, same_dtype


def unary(name: str, ufunc, accepts, doc: str, result: str | None = None, differentiable: bool = True) -> Primitive:
    """Declare an elementwise primitive of one operand.

    Args:
        name: of the primitive.
        ufunc: its NumPy reference implementation.
        accepts: dtype names.
        doc: docstring.
        result: dtype of the result; that of the operand if None.
        differentiable: False where the derivative is zero wherever it exists.
    """

    def reference(x):
        return ufunc(x)

    def infer(x):
        return with_dtype(require(name, x, accepts), result or x.dtype)

    reference.__doc__ = doc
    prim = Primitive(name, "elementwise", reference, differentiable=differentiable)
    prim.infer(infer)
    return prim


def binary(name: str, ufunc, accepts, doc: str, result: str | None = None, differentiable: bool = True) -> Primitive:
    """Declare a broadcasting elementwise primitive of two operands of one dtype; arguments as for `unary`."""

    def reference(a, b):
        return ufunc(a, b)

    def infer(a, b):
        require(name, a, accepts)
        require(name, b, accepts)
        dtype = same_dtype(name, a, b)
        return join_kind(result or dtype, broadcast_shapes(name, a.shape, b.shape), a, b)

    reference.__doc__ = doc
    prim = Primitive(name, "elementwise", reference, differentiable=differentiable)
    prim.infer(infer)
    return prim


def pull(rule):
    """The vjp rule of a binary primitive from one without broadcasting: its cotangents are summed to the operands."""

    def vjp(a, b, out, dout):
        da, db = rule(a, b, out, dout)
        return (
            None if da is None else unbroadcast(da, type_of(a)),
            None if db is None else unbroadcast(db, type_of(b)),
        )

    vjp.pointwise = rule  # what forward mode is made of
    return vjp


def _exact(f):
    """A `math` function on arrays, rounded once to the operand's dtype."""
    vectorised = np.vectorize(f, otypes=[np.float64])

    def apply(x):
        x = np.asarray(x)
        return vectorised(x.astype(np.float64)).astype(x.dtype)[()]

    return apply


def _sigmoid(x):
    with np.errstate(over="ignore"):  # exp(-x) = inf gives the right 0
        return 1 / (1 + np.exp(np.negative(x)))


def _floor_divide(a, b):
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.floor_divide(a, b)


def _mod(a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.mod(a, b)


def _c_pow(a: float, b: float) -> float:
    """C's `pow` through Python's, which raises where C returns NaN or an infinity."""
    try:
        out = a**b
        return math.nan if isinstance(out, complex) else out
    except ZeroDivisionError:
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
    except OverflowError:
        if a < 0 and b % 1 != 0:
            return math.nan  # a complex number that is too large
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _power(a, b):
    if isinstance(a, float) and isinstance(b, float):  # Python floats and np.float64: NumPy's vector code is an ulp off
        return np.float64(_c_pow(float(a), float(b)))
    if isinstance(a, np.floating) and isinstance(b, np.floating):  # as NumPy does of numbers
        return a**b
    # NumPy raises for negative integer exponents; here the result is 0, and code that must raise checks before.
    if np.asarray(b).dtype.kind == "i":
        return np.where(np.asarray(b) < 0, 0, np.power(a, np.maximum(b, 0)))[()]
    # NumPy takes shortcuts if all exponents are one number (x ** 0.5 is sqrt(x), which differs at -0.0 and -inf). A
    # different last exponent makes it use C's `pow`, as Python's floats do.
    a, b = np.broadcast_arrays(a, b)
    shape, one = a.shape, a.dtype.type(1)
    return np.power(np.append(a, one), np.append(b, one + one + one))[:-1].reshape(shape)[()]


# Arithmetic.
neg = unary("neg", np.negative, NUMBERS, "-x; integers wrap.")
abs_ = unary("abs", np.abs, NUMBERS, "Absolute value; the smallest integer stays itself.")
sign = unary("sign", np.sign, NUMBERS, "-1, 0 or 1; NaN for NaN.", differentiable=False)
add = binary("add", np.add, NUMBERS, "a + b; integers wrap.")
sub = binary("sub", np.subtract, NUMBERS, "a - b; integers wrap.")
mul = binary("mul", np.multiply, NUMBERS, "a * b; integers wrap.")
div = binary("div", np.true_divide, FLOATS, "a / b of floats; division by zero gives inf or NaN.")
floordiv = binary(
    "floordiv", _floor_divide, NUMBERS, "Quotient rounded down; of integers by 0 it is 0.", differentiable=False
)
mod = binary("mod", _mod, NUMBERS, "Remainder with the sign of the divisor; of integers by 0 it is 0.")
pow_ = binary("pow", _power, NUMBERS, "a to the power b; integers wrap, and a negative integer exponent gives 0.")
maximum = binary("maximum", np.maximum, ANY, "The greater; NaN if either is NaN.")
minimum = binary("minimum", np.minimum, ANY, "The smaller; NaN if either is NaN.")

neg.vjp(lambda x, out, dout: (-dout,))
abs_.vjp(lambda x, out, dout: (dout * sign(x),))
add.vjp(pull(lambda a, b, out, dout: (dout, dout)))
sub.vjp(pull(lambda a, b, out, dout: (dout, -dout)))
mul.vjp(pull(lambda a, b, out, dout: (dout * b, dout * a)))
mod.vjp(pull(lambda a, b, out, dout: (dout, -dout * floordiv(a, b))))


@div.vjp
@pull
def _(a, b, out, dout):
    one = isinstance(a.node, Constant) and np.ndim(a.node.value) == 0 and a.node.value == 1
    return dout / b, -dout * (out * out if one else out / b)


@pow_.vjp
@pull
def _(a, b, out, dout):
    where, zero, one = REGISTRY["where"], const_like(b, 0), const_like(b, 1)
    # At b = 0 the derivative by a is 0 even for a = 0, where a ** -1 is infinite; for other a the exponent keeps its derivative.
    lower = where(eq(b, zero), where(eq(a, const_like(a, 0)), one, b - one), b - one)
    at_zero = eq(a, const_like(a, 0))
    # At a = 0 the derivative by b is taken as 0: log(1) instead of log(0). The n-th by a of that by b is minus infinity for
    # n - 1 < b <= n, as a ** b log(a) tells: terms that are 0 there, with the slopes of roots.
    linear = logical_and(at_zero, eq(b, one))
    by_b = where(linear, REGISTRY["sqrt"](where(linear, b - REGISTRY["stop_gradient"](b), one)), zero)
    fraction = REGISTRY["ceil"](REGISTRY["stop_gradient"](b)) - const_like(b, 0.5)
    by_a = pow_(where(at_zero, a, const_like(a, 1)), where(gt(fraction, zero), fraction, one))
    da = dout * (b * pow_(a, lower) - by_b)
    log_a = log(where(at_zero, const_like(a, 1), a))
    db = dout * (out * log_a - where(logical_and(at_zero, gt(b, zero)), by_a, zero))
    return da, db


def _extremum(above):
    @pull
    def rule(a, b, out, dout):
        where, half, zero = REGISTRY["where"], const_like(dout, 0.5), const_like(dout, 0)
        tie = where(eq(a, b), dout * half, zero)
        return where(above(a, b), dout, tie), where(above(b, a), dout, tie)

    return rule


# Exponentials and logarithms.
exp = unary("exp", np.exp, FLOATS, "e to the power x.")
expm1 = unary("expm1", np.expm1, FLOATS, "exp(x) - 1, accurate near 0.")
log = unary("log", np.log, FLOATS, "Natural logarithm; -inf for 0, NaN below.")
log1p = unary("log1p", np.log1p, FLOATS, "log(1 + x), accurate near 0.")
log2 = unary("log2", np.log2, FLOATS, "Logarithm to base 2.")
log10 = unary("log10", np.log10, FLOATS, "Logarithm to base 10.")
sqrt = unary("sqrt", np.sqrt, FLOATS, "Square root; NaN below 0.")
sigmoid = unary("sigmoid", _sigmoid, FLOATS, "1 / (1 + exp(-x)).")
erf = unary("erf", _exact(math.erf), FLOATS, "The error function.")

exp.vjp(lambda x, out, dout: (dout * out,))
expm1.vjp(lambda x, out, dout: (dout * exp(x),))
log.vjp(lambda x, out, dout: (dout / x,))
log1p.vjp(lambda x, out, dout: (dout / (x + const_like(x, 1)),))
log2.vjp(lambda x, out, dout: (dout / (x * const_like(x, math.log(2))),))
log10.vjp(lambda x, out, dout: (dout / (x * const_like(x, math.log(10))),))
sqrt.vjp(lambda x, out, dout: (dout * const_like(x, 0.5) / out,))
sigmoid.vjp(lambda x, out, dout: (dout * out * (const_like(x, 1) - out),))
erf.vjp(lambda x, out, dout: (dout * const_like(x, 2 / math.sqrt(math.pi)) * exp(-(x * x)),))

# Trigonometry.
sin = unary("sin", np.sin, FLOATS, "Sine of radians.")
cos = unary("cos", np.cos, FLOATS, "Cosine of radians.")
tan = unary("tan", np.tan, FLOATS, "Tangent of radians.")
arcsin = unary("arcsin", np.arcsin, FLOATS, "Inverse sine; NaN outside of -1 ... 1.")
arccos = unary("arccos", np.arccos, FLOATS, "Inverse cosine; NaN outside of -1 ... 1.")
arctan = unary("arctan", np.arctan, FLOATS, "Inverse tangent.")
sinh = unary("sinh", np.sinh, FLOATS, "Hyperbolic sine.")
cosh = unary("cosh", np.cosh, FLOATS, "Hyperbolic cosine.")
tanh = unary("tanh", np.tanh, FLOATS, "Hyperbolic tangent.")
arctan2 = binary("arctan2", np.arctan2, FLOATS, "The angle of the point (b, a).")

sin.vjp(lambda x, out, dout: (dout * cos(x),))
cos.vjp(lambda x, out, dout: (-dout * sin(x),))
tan.vjp(lambda x, out, dout: (dout * (const_like(x, 1) + out * out),))
arcsin.vjp(lambda x, out, dout: (dout / sqrt(const_like(x, 1) - x * x),))
arccos.vjp(lambda x, out, dout: (-dout / sqrt(const_like(x, 1) - x * x),))
arctan.vjp(lambda x, out, dout: (dout / (const_like(x, 1) + x * x),))
sinh.vjp(lambda x, out, dout: (dout * cosh(x),))
cosh.vjp(lambda x, out, dout: (dout * sinh(x),))
tanh.vjp(lambda x, out, dout: (dout * (const_like(x, 1) - out * out),))
arctan2.vjp(pull(lambda a, b, out, dout: (dout * (b / (a * a + b * b)), -dout * (a / (a * a + b * b)))))

# Rounding: derivative 0 wherever there is one.
floor = unary("floor", np.floor, FLOATS, "Rounded down, still a float.", differentiable=False)
ceil = unary("ceil", np.ceil, FLOATS, "Rounded up, still a float.", differentiable=False)
trunc = unary("trunc", np.trunc, FLOATS, "Rounded towards 0, still a float.", differentiable=False)
from_bfloat16 = unary(
    "from_bfloat16",
    lambda x: np.asarray(x).astype(np.float32)[()],
    ("bfloat16",),
    "A number of bfloat16 as float32: a cast of native code, which keeps the former as bits.",
    "float32",
    False,
)
from_bfloat16.lower(lambda b, x: b.from_bfloat16(x))
rint = unary("rint", np.rint, FLOATS, "Rounded to the nearest, ties to even, still a float.", differentiable=False)

# Tests and comparisons.
isnan = unary("isnan", np.isnan, FLOATS, "Whether x is NaN.", "bool", False)
isinf = unary("isinf", np.isinf, FLOATS, "Whether x is infinite.", "bool", False)
isfinite = unary("isfinite", np.isfinite, FLOATS, "Whether x is neither infinite nor NaN.", "bool", False)
eq = binary("eq", np.equal, ANY, "a == b.", "bool", False)
ne = binary("ne", np.not_equal, ANY, "a != b.", "bool", False)
lt = binary("lt", np.less, ANY, "a < b.", "bool", False)
le = binary("le", np.less_equal, ANY, "a <= b.", "bool", False)
gt = binary("gt", np.greater, ANY, "a > b.", "bool", False)
ge = binary("ge", np.greater_equal, ANY, "a >= b.", "bool", False)

maximum.vjp(_extremum(gt))
minimum.vjp(_extremum(lt))

# Logic and bits.
logical_not = unary("logical_not", np.logical_not, ("bool",), "not x.", "bool", False)
logical_and = binary("logical_and", np.logical_and, ("bool",), "a and b; both are evaluated.", "bool", False)
logical_or = binary("logical_or", np.logical_or, ("bool",), "a or b; both are evaluated.", "bool", False)
logical_xor = binary("logical_xor", np.logical_xor, ("bool",), "Whether just one holds.", "bool", False)
bitwise_not = unary("bitwise_not", np.bitwise_not, INTS, "All bits flipped.", differentiable=False)
bitwise_and = binary("bitwise_and", np.bitwise_and, BITS, "Bits set in both.", differentiable=False)
bitwise_or = binary("bitwise_or", np.bitwise_or, BITS, "Bits set in either.", differentiable=False)
bitwise_xor = binary("bitwise_xor", np.bitwise_xor, BITS, "Bits set in just one.", differentiable=False)
left_shift = binary("left_shift", np.left_shift, INTS, "Shifted left; 0 from the width on.", differentiable=False)
right_shift = binary("right_shift", np.right_shift, INTS, "Shifted right, keeping the sign.", differentiable=False)


def _where():
    def reference(c, a, b):
        """`a` where `c` holds, else `b`. What is not taken has derivative exactly 0, even where its own is NaN.

        Args:
            c: bool scalar or array.
            a, b: of one dtype; all three broadcast.
        """
        return np.where(c, a, b)[()]

    return Primitive("where", "elementwise", reference)


where = _where()


@where.infer
def _(c, a, b):
    require("where", c, ("bool",))
    require("where", a, ANY)
    require("where", b, ANY)
    dtype = same_dtype("where", a, b)
    shape = broadcast_shapes("where", c.shape, a.shape, b.shape)
    if not shape and a == b:
        return a
    return join_kind(dtype, shape, *((c, a, b) if shape or a.shape != () else (a, b)))


@where.vjp
def _(c, a, b, out, dout):
    if not type_of(a).is_float:
        return None, None, None
    zero = const_like(dout, 0)
    return None, unbroadcast(where(c, dout, zero), type_of(a)), unbroadcast(where(c, zero, dout), type_of(b))


@where.jvp
def _(c, a, b, out, tangents):
    _, ta, tb = tangents
    zero = const_like(ta if ta is not None else tb, 0)
    return where(c, zero if ta is None else ta, zero if tb is None else tb)


# Python's integers, checked: whether the exact result leaves int64.


def _overflows(name: str, operation: str):
    def reference(a, b):
        exact = getattr(np.asarray(a).astype(object), f"__{name}__")(np.asarray(b).astype(object))
        return np.asarray((exact < -(1 << 63)) | (exact >= 1 << 63)).astype(bool)[()]

    reference.__doc__ = f"Whether the exact `a {operation} b` of int64 operands does not fit into int64."
    prim = Primitive(f"{name}_overflows", "elementwise", reference, differentiable=False)

    def infer(a, b):
        require(prim.name, a, ("int64",))
        require(prim.name, b, ("int64",))
        return join_kind("bool", broadcast_shapes(prim.name, a.shape, b.shape), a, b)

    prim.infer(infer)
    return prim


add_overflows = _overflows("add", "+")
sub_overflows = _overflows("sub", "-")
mul_overflows = _overflows("mul", "*")


def _exact_quotient(a, b):
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, a)
    return a / b


def _int_truediv():
    vectorised = np.vectorize(lambda a, b: _exact_quotient(int(a), int(b)), otypes=[np.float64])

    def reference(a, b):
        """The quotient of int64 numbers, rounded once, as Python's `/` has it. By 0 it is inf or NaN.

        It differs from dividing the operands as floats only beyond 2**53.
        """
        return vectorised(a, b)[()]

    return Primitive("int_truediv", "elementwise", reference, differentiable=False)


int_truediv = _int_truediv()


@int_truediv.infer
def _(a, b):
    require("int_truediv", a, ("int64",))
    require("int_truediv", b, ("int64",))
    return join_kind("float64", broadcast_shapes("int_truediv", a.shape, b.shape), a, b)


@int_truediv.lower
def _(b, x, y):
    # Up to 2**53 both operands are exact floats, and the quotient is rounded once. A back end that can do better beyond
    # defines `int_truediv` itself.
    own = getattr(b, "int_truediv", None)
    return own(x, y) if own else b.div(b.cast(x, "float64"), b.cast(y, "float64"))


__all__ = ["binary", "filled_like", "match_kind", "pull", "unary"]
