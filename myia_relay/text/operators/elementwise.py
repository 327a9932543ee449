"""Elementwise operators: arithmetic, comparisons, logic, functions of one number.

Operands of two have one dtype. Integers wrap; `divide` truncates them, `floor_divide` rounds down, and by 0 both give 0.
"""

from __future__ import annotations

import numpy as np

from ...abstract.types import FLOATS, INTS
from ...ir.build import Builder, Var
from ...ir.prim import REGISTRY, Primitive
from ...prims.api.promotion import astype, strong, unwrap
from ...prims.ops import elementwise as P
from ...prims.rules.relations import BITS, NUMBERS
from ..terms.solver import Facts
from .declare import Attr, operator
from .rules import EVERY, Rule, accept, broadcast, broadcast_of, identity, same_shape

BOOLEANS = ("bool",)


def _binary(name: str, prim: Primitive, relation: Rule, doc: str, family: str = "") -> None:
    """An operator of two operands that is a primitive."""

    def function(b: Builder, lhs: Var, rhs: Var) -> Var:
        return unwrap(prim(strong(lhs), strong(rhs)))

    operator(name, ("lhs", "rhs"), relation, family=family, doc=doc)(function)


def _unary(name: str, prim: Primitive, relation: Rule, doc: str, family: str = "") -> None:
    """An operator of one operand that is a primitive."""

    def function(b: Builder, data: Var) -> Var:
        return unwrap(prim(strong(data)))

    operator(name, ("data",), relation, family=family, doc=doc)(function)


# Arithmetic.

for _name, _prim, _doc in (
    ("add", P.add, "The sum; integers wrap."),
    ("subtract", P.sub, "The difference; integers wrap."),
    ("multiply", P.mul, "The product; integers wrap."),
    ("floor_divide", P.floordiv, "The quotient, rounded down; of integers by 0 it is 0."),
    ("floor_mod", P.mod, "The remainder with the sign of the divisor; of integers by 0 it is 0."),
    ("power", P.pow_, "lhs to the power rhs; of integers with a negative exponent it is 0."),
):
    _binary(_name, _prim, broadcast(NUMBERS), _doc, "Broadcast")

for _name, _prim, _doc in (
    ("maximum", P.maximum, "The greater; NaN where one is NaN."),
    ("minimum", P.minimum, "The smaller; NaN where one is NaN."),
):
    _binary(_name, _prim, broadcast(), _doc, "Broadcast")


def quotient(x: Var, y: Var) -> Var:
    """The quotient of integers, truncated; by 0 it is 0."""
    down = P.floordiv(x, y)
    if x.dtype.startswith("u"):
        return down
    zero = x.const(0)
    inexact = P.ne(P.sub(x, P.mul(down, y)), zero)
    apart = P.ne(P.lt(x, zero), P.lt(y, zero))
    up = P.logical_and(P.logical_and(inexact, apart), P.ne(y, zero))
    return P.add(down, astype(up, x.dtype))


@operator("divide", ("lhs", "rhs"), broadcast(NUMBERS), family="Broadcast")
def divide(b: Builder, lhs: Var, rhs: Var) -> Var:
    """The quotient; of integers it is truncated, and by 0 it is 0."""
    x, y = strong(lhs), strong(rhs)
    return unwrap(P.div(x, y) if x.type.is_float else quotient(x, y))


@operator("mod", ("lhs", "rhs"), broadcast(NUMBERS), family="Broadcast")
def mod(b: Builder, lhs: Var, rhs: Var) -> Var:
    """The remainder with the sign of the dividend, C's fmod; of integers by 0 it is 0."""
    x, y = strong(lhs), strong(rhs)
    if x.dtype.startswith("u"):
        return unwrap(P.mod(x, y))
    if not x.type.is_float:
        return unwrap(P.where(P.ne(y, y.const(0)), P.sub(x, P.mul(quotient(x, y), y)), y.const(0)))
    # The remainder of absolute values is exact; the sign is the dividend's.
    away = P.mod(P.abs_(x), P.abs_(y))
    away = P.where(P.logical_and(P.isinf(y), P.isfinite(x)), P.abs_(x), away)
    negative = P.logical_or(P.lt(x, x.const(0)), P.lt(P.div(x.const(1), x), x.const(0)))
    return unwrap(P.where(negative, P.neg(away), away))


# Comparisons and logic.

for _name, _prim, _doc in (
    ("equal", P.eq, "Whether they are equal."),
    ("not_equal", P.ne, "Whether they differ."),
    ("less", P.lt, "lhs < rhs."),
    ("less_equal", P.le, "lhs <= rhs."),
    ("greater", P.gt, "lhs > rhs."),
    ("greater_equal", P.ge, "lhs >= rhs."),
):
    _binary(_name, _prim, broadcast(EVERY, "bool"), _doc, "BroadcastCompare")

for _name, _prim, _doc in (
    ("logical_and", P.logical_and, "Whether both hold; both are evaluated."),
    ("logical_or", P.logical_or, "Whether one holds; both are evaluated."),
    ("logical_xor", P.logical_xor, "Whether just one holds."),
):
    _binary(_name, _prim, broadcast(BOOLEANS), _doc, "Broadcast")

for _name, _prim, _doc in (
    ("bitwise_and", P.bitwise_and, "Bits set in both."),
    ("bitwise_or", P.bitwise_or, "Bits set in either."),
    ("bitwise_xor", P.bitwise_xor, "Bits set in just one."),
):
    _binary(_name, _prim, broadcast(BITS), _doc, "Broadcast")

for _name, _prim, _doc in (
    ("left_shift", P.left_shift, "Bits shifted left; 0 from the width on."),
    ("right_shift", P.right_shift, "Bits shifted right, keeping the sign."),
):
    _binary(_name, _prim, broadcast(INTS), _doc, "Broadcast")

_unary("logical_not", P.logical_not, identity(BOOLEANS), "Whether it does not hold.", "Identity")


@operator("bitwise_not", ("data",), identity(BITS), family="Identity")
def bitwise_not(b: Builder, data: Var) -> Var:
    """All bits flipped."""
    x = strong(data)
    return unwrap(P.logical_not(x) if x.dtype == "bool" else P.bitwise_not(x))


# Functions of one number.

for _name, _prim_name, _doc in (
    ("exp", "exp", "e to the power x."),
    ("log", "log", "The natural logarithm."),
    ("log2", "log2", "The logarithm to base 2."),
    ("log10", "log10", "The logarithm to base 10."),
    ("sqrt", "sqrt", "The square root."),
    ("sigmoid", "sigmoid", "1 / (1 + exp(-x))."),
    ("erf", "erf", "The error function."),
    ("sin", "sin", "The sine."),
    ("cos", "cos", "The cosine."),
    ("tan", "tan", "The tangent."),
    ("asin", "arcsin", "The inverse sine."),
    ("acos", "arccos", "The inverse cosine."),
    ("atan", "arctan", "The inverse tangent."),
    ("sinh", "sinh", "The hyperbolic sine."),
    ("cosh", "cosh", "The hyperbolic cosine."),
    ("tanh", "tanh", "The hyperbolic tangent."),
    ("asinh", "arcsinh", "The inverse hyperbolic sine."),
    ("acosh", "arccosh", "The inverse hyperbolic cosine."),
    ("atanh", "arctanh", "The inverse hyperbolic tangent."),
):
    _unary(_name, REGISTRY[_prim_name], identity(FLOATS), _doc, "Identity")

_unary("negative", P.neg, identity(NUMBERS), "-x; integers wrap.", "Identity")
_unary("abs", P.abs_, identity(NUMBERS), "The absolute value; the smallest integer stays itself.", "Identity")
_unary("sign", P.sign, identity(NUMBERS), "-1, 0 or 1.", "Identity")


@operator("rsqrt", ("data",), identity(FLOATS), family="Identity")
def rsqrt(b: Builder, data: Var) -> Var:
    """1 / sqrt(x)."""
    x = strong(data)
    return unwrap(P.div(x.const(1), P.sqrt(x)))


def _rounding(name: str, prim: Primitive, doc: str) -> None:
    """Rounding, which leaves integers as they are."""

    def function(b: Builder, data: Var) -> Var:
        x = strong(data)
        return unwrap(prim(x) if x.type.is_float else x)

    operator(name, ("data",), identity(NUMBERS), family="Identity", doc=doc)(function)


_rounding("floor", P.floor, "Rounded down.")
_rounding("ceil", P.ceil, "Rounded up.")
_rounding("trunc", P.trunc, "Rounded towards 0.")


@operator("round", ("data",), identity(NUMBERS), family="Identity")
def round_(b: Builder, data: Var) -> Var:
    """Rounded to the nearest; half away from 0."""
    x = strong(data)
    if not x.type.is_float:
        return unwrap(x)
    whole = P.trunc(x)
    away = P.ge(P.abs_(P.sub(x, whole)), x.const(0.5))
    near = P.where(away, P.add(whole, P.sign(x)), whole)
    return unwrap(P.where(P.isfinite(x), near, x))


def _test(name: str, prim: Primitive, of_integers: bool, doc: str) -> None:
    """A test, whose answer for integers is always the same."""

    def function(b: Builder, data: Var) -> Var:
        x = strong(data)
        if x.type.is_float:
            return unwrap(prim(x))
        return unwrap((P.eq if of_integers else P.ne)(x, x))

    operator(name, ("data",), same_shape("bool", NUMBERS), doc=doc)(function)


_test("isnan", P.isnan, False, "Whether it is NaN.")
_test("isinf", P.isinf, False, "Whether it is infinite.")
_test("isfinite", P.isfinite, True, "Whether it is neither infinite nor NaN.")


@operator("copy", ("data",), identity(), family="Identity")
def copy(b: Builder, data: Var) -> Var:
    """The same values."""
    return unwrap(strong(data))


@operator("nn.relu", ("data",), identity(NUMBERS), family="Identity")
def relu(b: Builder, data: Var) -> Var:
    """x where x > 0, else 0; NaN stays NaN. Its derivative at 0 is 0."""
    x = strong(data)
    return unwrap(P.where(P.le(x, x.const(0)), x.const(0), x))


@operator("nn.leaky_relu", ("data",), identity(FLOATS), {"alpha": Attr("float", 0.25)}, family="Identity")
def leaky_relu(b: Builder, data: Var, alpha: float = 0.25) -> Var:
    """x where x > 0, else alpha x."""
    x = strong(data)
    return unwrap(P.where(P.gt(x, x.const(0)), x, P.mul(x, x.const(alpha))))


@operator("clip", ("a",), identity(NUMBERS), {"a_min": Attr("float"), "a_max": Attr("float")})
def clip(b: Builder, a: Var, a_min: float, a_max: float) -> Var:
    """Values below a_min become a_min, those above a_max become a_max."""
    x = strong(a)
    if not x.type.is_float:
        info = np.iinfo(x.dtype)
        a_min, a_max = (float(int(min(max(v, info.min), info.max))) for v in (a_min, a_max))
        low, high = (x.const(min(max(int(v), info.min), info.max)) for v in (a_min, a_max))
        return unwrap(P.minimum(P.maximum(x, low), high))
    return unwrap(P.minimum(P.maximum(x, x.const(a_min)), x.const(a_max)))


def _where(facts: Facts) -> None:
    condition, x, y = facts.tensor(0), facts.tensor(1), facts.tensor(2)
    accept(facts, condition, BOOLEANS)
    dtype = facts.same_dtype(x, y)
    facts.gives_tensor(broadcast_of(facts, condition, x, y), dtype)


@operator("where", ("condition", "x", "y"), _where)
def where(b: Builder, condition: Var, x: Var, y: Var) -> Var:
    """x where the condition holds, else y."""
    return unwrap(P.where(strong(condition), strong(x), strong(y)))


def _cast(facts: Facts) -> None:
    facts.gives_tensor(facts.tensor(0).shape, facts.attr("dtype"))


def converted(x: Var, dtype: str) -> Var:
    """A tensor with another dtype: floats are truncated to integers, everything but 0 is True."""
    x = strong(x)
    if dtype == "bool" and x.dtype != "bool":
        return unwrap(P.ne(x, x.const(0)))
    return unwrap(astype(x, dtype))


@operator("cast", ("data",), _cast, {"dtype": Attr("dtype")})
def cast(b: Builder, data: Var, dtype: str) -> Var:
    """The same numbers in another dtype; floats are truncated to integers."""
    return converted(data, dtype)


@operator("cast_like", ("data", "dtype_like"), lambda f: f.gives_tensor(f.tensor(0).shape, f.tensor(1).dtype))
def cast_like(b: Builder, data: Var, dtype_like: Var) -> Var:
    """The same numbers in the dtype of another tensor."""
    return converted(data, dtype_like.dtype)
