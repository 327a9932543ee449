"""Python's operators and number builtins on staged values, by type.

`OPERATORS` maps a callable (`operator.add`, `abs`, `max`, ...) to its rule `(b: Builder, *args: Var) -> Var`. Checks
that may raise are emitted before the operation that they guard. Structures, strings and functions are handled by
inference.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable

from ...abstract.dims import Dim, product
from ...abstract.types import INTS, Array, Scalar
from ...ir.build import Builder, Var
from ...utils.errors import TypeError_
from ..ops import elementwise as P
from ..ops.control import stop_gradient
from ..rules.broadcast import as_scalar, reshape
from . import arithmetic as A
from .products import matmul
from .promotion import describe, float_to_int, guard, is_weak, python, strong, unwrap, weak

DIGITS = 22  # 10^22 is the greatest power of ten that is a float

OPERATORS: dict[Callable, Callable] = {}


def operator_rule(*callables):
    """Register what calling these means."""

    def register(rule):
        for fn in callables:
            OPERATORS[fn] = rule
        return rule

    return register


for _op, _in_place, _rule in (
    (operator.add, operator.iadd, A.add),
    (operator.sub, operator.isub, A.sub),
    (operator.mul, operator.imul, A.mul),
    (operator.truediv, operator.itruediv, A.truediv),
    (operator.floordiv, operator.ifloordiv, A.floordiv),
    (operator.mod, operator.imod, A.mod),
    (operator.pow, operator.ipow, A.power),
    (operator.matmul, operator.imatmul, matmul),
    (operator.and_, operator.iand, A.and_),
    (operator.or_, operator.ior, A.or_),
    (operator.xor, operator.ixor, A.xor),
    (operator.lshift, operator.ilshift, A.lshift),
    (operator.rshift, operator.irshift, A.rshift),
):
    operator_rule(_op, _in_place)(_rule)
for _op, _rule in (
    (operator.eq, A.eq),
    (operator.ne, A.ne),
    (operator.lt, A.lt),
    (operator.le, A.le),
    (operator.gt, A.gt),
    (operator.ge, A.ge),
    (operator.neg, A.negative),
    (operator.pos, A.positive),
    (operator.invert, A.invert),
    (operator.inv, A.invert),
    (operator.abs, A.absolute),
    (builtins.abs, A.absolute),
):
    operator_rule(_op)(_rule)


def truth(b: Builder, x: Var) -> Var:
    """The truth value of a number, or of an array with one element, as a Python bool.

    Raises:
        TypeError_: it is neither.
    """
    if isinstance(x.type, Array):
        x = single(x, _ambiguous)
    if not isinstance(x.type, Scalar):
        raise TypeError_(f"a {describe(x.type)} has no truth value in compiled code")
    if x.dtype != "bool":
        x = P.ne(x, x.const(0))  # NaN is true, as in Python
    return weak(x, "bool")


def _ambiguous(x: Var) -> TypeError_:
    if x.type.size == 0:
        return TypeError_("the truth value of an empty array is ambiguous; use `x.size > 0`")
    return TypeError_(
        f"the truth value of an array with more than one element is ambiguous, and this is {x.type}; use np.any(x) or "
        "np.all(x), or np.where(x, a, b) to choose element by element"
    )


def single(x: Var, error: Callable[[Var], Exception]) -> Var:
    """The only element of an array, as a NumPy scalar."""
    size = product(x.shape)
    if isinstance(size, Dim) or size != 1:
        raise error(x)
    return as_scalar(x if x.shape == () else reshape(x, shape=()))


@operator_rule(operator.not_)
def not_(b: Builder, x: Var) -> Var:
    """`not x`."""
    return P.logical_not(truth(b, x))


@operator_rule(operator.truth, builtins.bool)
def bool_(b: Builder, x: Var | None = None) -> Var:
    """`bool(x)`."""
    return python(b, False) if x is None else truth(b, x)


def scalar_of(x: Var, what: str) -> Var:
    """A scalar; arrays without axes are scalars, others are refused as NumPy refuses them.

    Raises:
        TypeError_: it is no number, or an array with axes.
    """
    if isinstance(x.type, Array):
        if x.shape != ():
            raise TypeError_(
                f"{what}: only 0-dimensional arrays can be converted to Python scalars, not {x.type}; index it first"
            )
        return as_scalar(x)
    if not isinstance(x.type, Scalar):
        raise TypeError_(f"{what} takes a number, and this is a {describe(x.type)}")
    return x


@operator_rule(builtins.int)
def int_(b: Builder, x: Var | None = None) -> Var:
    """`int(x)`: towards zero."""
    if x is None:
        return python(b, 0)
    x = scalar_of(x, "int()")
    if x.type.is_float:
        return float_to_int(b, x)
    if x.dtype == "uint64":
        guard(
            b,
            P.le(x, x.const((1 << 63) - 1)),
            OverflowError,
            "int too large: ",
            0,
            " does not fit into 64 bits",
            operands=(x,),
        )
    return weak(x, "int64")


@operator_rule(builtins.float)
def float_(b: Builder, x: Var | None = None) -> Var:
    """`float(x)`."""
    return python(b, 0.0) if x is None else weak(scalar_of(x, "float()"), "float64")


@operator_rule(operator.index)
def index_(b: Builder, x: Var) -> Var:
    """`operator.index(x)`.

    Raises:
        TypeError_: it is no integer.
    """
    x = unwrap(x)
    whole = isinstance(x.type, Scalar) and (x.dtype in INTS or (x.dtype == "bool" and is_weak(x)))
    if not whole:
        raise TypeError_(f"'{describe(x.type)}' object cannot be interpreted as an integer; convert it with int(...)")
    return int_(b, x)


@operator_rule(builtins.round)
def round_(b: Builder, x: Var, ndigits: Var | None = None) -> Var:
    """`round(x)`: to the nearest int, ties to even; `round(x, n)`: to n decimal digits.

    Raises:
        TypeError_: it is an array, or is rounded to digits whose number is not known, negative, or beyond 22.
    """
    from .promotion import static_int

    if isinstance(x.type, Array) and x.shape != ():
        raise TypeError_("round() takes a number; use np.round for arrays")
    x = scalar_of(x, "round()")
    if ndigits is not None:
        digits = static_int(ndigits)
        if x.dtype in INTS and isinstance(digits, int) and digits >= 0:
            return x
        if x.dtype == "bool" and is_weak(x) and isinstance(digits, int) and digits >= 0:
            return weak(x, "int64")
        if digits == 0:
            return P.rint(x) if x.type.is_float else x
        if x.type.is_float and isinstance(digits, int) and 0 < digits <= DIGITS:
            return (
                _to_digits(x, digits)
                if is_weak(x)
                else P.div(P.rint(P.mul(x, x.const(10.0**digits))), x.const(10.0**digits))
            )
        raise TypeError_(
            f"round(x, n) takes a number of decimal digits that is known when compiling, from 0 to {DIGITS}; np.round(x, n), which "
            "scales, rounds and scales back, takes negative ones too"
        )
    if not x.type.is_float:
        return int_(b, x)
    return float_to_int(b, P.rint(x))


def _to_digits(x: Var, digits: int) -> Var:
    """A float rounded to decimal digits, as the text of its exact value is: ties, which are rare, to even.

    x 10^n is the sum of two floats, exactly (T. J. Dekker, "A floating-point technique for extending the available precision",
    1971, section 5), of which the second decides where the first is a tie. The quotient of the rounded number and 10^n, both of
    them exact, is the float nearest to the decimal. From 2^53 on the nearest decimal is nearer to x than to any other float.
    """
    scale = 10.0**digits

    def halves(v, factor):
        up = v * factor
        high = up - (up - v)
        return high, v - high

    product, half, zero = P.mul(x, x.const(scale)), x.const(0.5), x.const(0.0)
    high, low = halves(x, 134217729.0)
    high_scale, low_scale = halves(scale, 134217729.0)
    rest = ((high * high_scale - product) + high * low_scale + low * high_scale) + low * low_scale
    whole = P.rint(product)
    off = product - whole
    odd = P.ne(P.rint(whole * 0.5), whole * 0.5)
    tie = P.logical_and(P.eq(off, zero), odd)
    up = P.logical_or(P.logical_and(P.eq(off, half), P.gt(rest, zero)), P.logical_and(tie, P.eq(rest, half)))
    down = P.logical_or(P.logical_and(P.eq(off, -half), P.lt(rest, zero)), P.logical_and(tie, P.eq(rest, -half)))
    whole = P.where(up, whole + 1.0, P.where(down, whole - 1.0, whole))
    return P.where(P.lt(P.abs_(product), x.const(2.0**53)), P.div(whole, x.const(scale)), stop_gradient(x))


def _extremum(name: str, better):
    def rule(b: Builder, *operands: Var) -> Var:
        out = operands[0]
        for x in operands[1:]:
            out = _pair(b, out, x)
        return out

    def _pair(b: Builder, x: Var, y: Var) -> Var:
        x, y = unwrap(x), unwrap(y)
        for v in (x, y):
            if isinstance(v.type, Array):
                raise TypeError_(
                    f"{name}() decides by comparison, which is ambiguous for arrays; use np.{name}imum(x, y)"
                )
            if not isinstance(v.type, Scalar):
                raise TypeError_(f"{name}() compares numbers, and this is a {describe(v.type)}")
        if x.type != y.type:
            if x.dtype == y.dtype:
                x, y = strong(x), strong(y)  # float and np.float64: a NumPy float is a Python float
            else:
                from .promotion import is_static, static_value

                if is_static(x) and is_static(y):
                    return y if better.reference(static_value(y), static_value(x)) else x
                raise TypeError_(
                    f"{name}({x.type}, {y.type}) has one type or the other, depending on values; give both one type, "
                    f"as in {name}(float(x), 0.0)"
                )
        # The first of equal values, and the first if a comparison with NaN is false: as in CPython.
        return P.where(better(y, x), y, x)

    return rule


operator_rule(builtins.max)(_extremum("max", P.gt))
operator_rule(builtins.min)(_extremum("min", P.lt))


@operator_rule(builtins.pow)
def pow_(b: Builder, x: Var, y: Var, modulus: Var | None = None) -> Var:
    """`pow(x, y)`.

    Raises:
        TypeError_: there is a modulus.
    """
    if modulus is not None:
        raise TypeError_("pow() with three arguments is not part of the language; write (x ** y) % m")
    return A.power(b, x, y)


__all__ = ["OPERATORS", "is_weak", "operator_rule", "truth"]
