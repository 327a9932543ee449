"""Arithmetic of Python's and NumPy's numbers, by type.

Python's ints are checked: they have 64 bits here, and an overflow raises OverflowError instead of wrapping. Division by
zero raises with CPython's message, and so does a power that would be complex. NumPy scalars and arrays wrap, and divide
to infinities.

    int + int  =>  check(not add_overflows(a, b)); add(a, b)
"""

from __future__ import annotations

import operator

import numpy as np

from ...abstract.dims import Dim, DimLike, never_negative, product
from ...abstract.types import INTS, Array
from ...ir.build import Builder, Var
from ...utils.errors import TypeError_, ValueError_
from ..ops import elementwise as P
from ..ops.reduction import reduce_all
from ..rules.relations import broadcast_shapes
from .promotion import (
    astype,
    guard,
    is_number,
    is_static,
    is_weak,
    message,
    promote,
    python,
    result_dtype,
    size_value,
    static_int,
    static_value,
    strong,
    unsupported,
    unwrap,
    weak,
)

MIN_INT = -(1 << 63)
EXACT = 1 << 53  # ints up to here are floats exactly


def numbers(symbol: str, *operands: Var) -> None:
    """Refuse operands that are no numbers or arrays.

    Raises:
        TypeError_: one of them is neither.
    """  # noqa: DOC501 (a function makes the exception)
    if not all(is_number(x) for x in operands):
        raise unsupported(symbol, *operands)


def all_weak(*operands: Var) -> bool:
    """Whether all operands are Python numbers."""
    return all(is_weak(x) for x in operands)


def is_int(x: Var) -> bool:
    """Whether a Python number is an int or a bool."""
    return x.dtype in ("int64", "bool")


def ints(*operands: Var) -> list[Var]:
    """Python ints; bools become 0 and 1."""
    return [weak(x, "int64") for x in operands]


def floats(*operands: Var) -> list[Var]:
    """Python floats."""
    return [weak(x, "float64") for x in operands]


def of_sizes(b: Builder, op, x: Var, y: Var) -> Var | None:
    """Arithmetic of symbolic sizes stays symbolic: `x.shape[0] + 1` can be a shape again. A division by what may be 0 does not."""
    m, n = static_int(x), static_int(y)
    if m is None or n is None or not (isinstance(m, Dim) or isinstance(n, Dim)):
        return None
    if op is operator.floordiv and (not never_negative(n - 1) if isinstance(n, Dim) else n == 0):
        return None
    return size_value(b, op(m, n))


def modest(size: DimLike) -> bool:
    """Whether a size computed from sizes of what is in memory cannot leave 64 bits: a sum of few of them, not a product."""
    if isinstance(size, int):
        return True
    return len(size.terms) < 16 and all(abs(c) < 1 << (20 if m else 62) and len(m) < 2 for m, c in size.terms.items())


def refuse_overflow(b: Builder, overflows: Var, symbol: str, x: Var, y: Var) -> None:
    """OverflowError where an exact int result leaves 64 bits."""
    parts = ("int too large: ", 0, f" {symbol} ", 1, " does not fit into 64 bits; use float or a NumPy integer")
    guard(b, P.logical_not(overflows), OverflowError, *parts, operands=(x, y))


def _simple(symbol: str, op, prim, overflows, on_bool):
    """The rule of `+`, `-` or `*`."""

    def rule(b: Builder, x: Var, y: Var) -> Var:
        numbers(symbol, x, y)
        if not all_weak(x, y):
            if result_dtype((x, y), symbol) == "bool":
                if on_bool is None:
                    raise TypeError_("NumPy subtracts no booleans; use the `^` operator, or np.logical_xor")
                prim_here = on_bool
            else:
                prim_here = prim
            return unwrap(prim_here(*promote(b, x, y, what=symbol)))
        if not (is_int(x) and is_int(y)):
            return prim(*floats(x, y))
        size = of_sizes(b, op, x, y)
        if size is not None:
            known = static_int(size)
            if known is None or not modest(known):
                refuse_overflow(b, overflows(x, y), symbol, x, y)
            return size
        small = x.dtype == y.dtype == "bool"
        x, y = ints(x, y)
        if not small:
            refuse_overflow(b, overflows(x, y), symbol, x, y)
        return prim(x, y)

    return rule


add = _simple("+", operator.add, P.add, P.add_overflows, P.logical_or)
sub = _simple("-", operator.sub, P.sub, P.sub_overflows, None)
mul = _simple("*", operator.mul, P.mul, P.mul_overflows, P.logical_and)

_FLOAT_DIVISION = message(lambda: operator.truediv(1.0, 0.0))
_INT_DIVISION = message(lambda: operator.truediv(1, 0))
_FLOAT_FLOORDIV = message(lambda: operator.floordiv(1.0, 0.0))
_INT_FLOORDIV = message(lambda: operator.floordiv(1, 0))
_FLOAT_MOD = message(lambda: operator.mod(1.0, 0.0))
_INT_MOD = message(lambda: operator.mod(1, 0))
_FLOAT_DIVMOD = message(lambda: divmod(1.0, 0.0))
_INT_DIVMOD = message(lambda: divmod(1, 0))
_ZERO_POWER = message(lambda: operator.pow(0.0, -1.0))
_FLOAT_POWER = message(lambda: operator.pow(10.0, 400.0))


def nonzero(b: Builder, y: Var, text: str) -> None:
    """ZeroDivisionError where a Python number is 0."""
    guard(b, P.ne(y, y.const(0)), ZeroDivisionError, text)


def truediv(b: Builder, x: Var, y: Var) -> Var:
    """`x / y`."""
    numbers("/", x, y)
    if not all_weak(x, y):
        if result_dtype((x, y), "/") in (*INTS, "bool"):
            return unwrap(P.div(astype(x, "float64"), astype(y, "float64")))
        return unwrap(P.div(*promote(b, x, y, what="/")))
    if is_int(x) and is_int(y):
        x, y = ints(x, y)
        nonzero(b, y, _INT_DIVISION)
        return P.int_truediv(x, y)
    x, y = floats(x, y)
    nonzero(b, y, _FLOAT_DIVISION)
    return P.div(x, y)


def _flooring(symbol: str, op, prim, int_text: str, float_text: str):
    """The rule of `//` or `%`."""

    def rule(b: Builder, x: Var, y: Var) -> Var:
        numbers(symbol, x, y)
        if not all_weak(x, y):
            if result_dtype((x, y), symbol) == "bool":
                x, y = astype(x, "int8"), astype(y, "int8")
            return unwrap(prim(*promote(b, x, y, what=symbol)))
        if not (is_int(x) and is_int(y)):
            x, y = floats(x, y)
            nonzero(b, y, float_text)
            return prim(x, y)
        if op is operator.floordiv:
            size = of_sizes(b, op, x, y)
            if size is not None:
                return size
        x, y = ints(x, y)
        nonzero(b, y, int_text)
        if op is operator.floordiv and not (is_static(y) and static_value(y) != -1):
            edge = P.logical_and(P.eq(x, x.const(MIN_INT)), P.eq(y, y.const(-1)))
            refuse_overflow(b, edge, "//", x, y)
        return prim(x, y)

    return rule


floordiv = _flooring("//", operator.floordiv, P.floordiv, _INT_FLOORDIV, _FLOAT_FLOORDIV)
mod = _flooring("%", operator.mod, P.mod, _INT_MOD, _FLOAT_MOD)
_divmod_quotient = _flooring("divmod()", operator.floordiv, P.floordiv, _INT_DIVMOD, _FLOAT_DIVMOD)


def divmod_(b: Builder, x: Var, y: Var) -> tuple[Var, Var]:
    """`divmod(x, y)`: the pair of quotient and remainder."""
    quotient = _divmod_quotient(b, x, y)
    return quotient, mod(b, x, y)


# Powers.

ANY_TWO_SQUARES = (np.zeros(1, bool) ** 2.0).dtype == np.int8
"""NumPy before 2.3 squares bools for an exponent of 2 of any type, later ones for Python's int 2."""


def power(b: Builder, x: Var, y: Var) -> Var:
    """`x ** y`.

    Raises:
        TypeError_: an operand is no number, or the dtype depends on the exponent.
    """
    numbers("**", x, y)
    if isinstance(x.type, Array) and x.dtype == "bool" and y.dtype == "int64" and all_weak(y):
        if not is_static(y):
            raise TypeError_(
                "NumPy's dtype of bools ** int depends on the exponent (int8 of squares); write x.astype(int) ** y"
            )
        if static_value(y) == 2:  # np.square, which has no loop for bools and takes the next type
            return _square_of_bools(x)
    if ANY_TWO_SQUARES and isinstance(x.type, Array) and x.dtype == "bool" and y.dtype != "bool" and is_static(y):
        exponent = static_value(y)
        if np.ndim(exponent) == 0 and exponent == 2:
            return _square_of_bools(x)
    if not all_weak(x, y):
        array = any(isinstance(v, Var) and isinstance(v.type, Array) for v in (x, y))
        return unwrap(_numpy_power(b, x, y, array or not isinstance(x, Var)))
    if not (is_int(x) and is_int(y)):
        return _float_power(b, *floats(x, y))
    x, y = ints(x, y)
    exponent = static_int(y)
    if isinstance(exponent, int) and exponent < 0:
        return _float_power(b, *floats(x, y))
    return _int_power(b, x, y, exponent if isinstance(exponent, int) else None)


def _square_of_bools(x: Var) -> Var:
    x = astype(x, "int8")
    return unwrap(P.mul(x, x))


def ufunc_power(b: Builder, x: Var, y: Var) -> Var:
    """`np.power(x, y)`, which takes NumPy's shortcuts for numbers as well; `x ** y` does for arrays only."""
    numbers("**", x, y)
    return power(b, x, y) if all_weak(x, y) else unwrap(_numpy_power(b, x, y, True))


def _int_power(b: Builder, x: Var, y: Var, exponent: int | None) -> Var:
    if exponent == 1:
        return x
    if exponent == 2:
        return mul(b, x, x)
    if exponent is None:
        text = " is a negative exponent, which makes a float of an int; write float(x) ** y"
        guard(b, P.ge(y, y.const(0)), ValueError_, 0, text, operands=(y,))
    # Whether |x| ** y >= 2 ** 63 can be decided in floats: from exponent 2 on, no power is near 2 ** 63 except that
    # number itself (2 ** 63, 8 ** 21, ...), whose negative fits.
    (base, e), limit = floats(x, y), float(1 << 63)
    size = P.pow_(P.abs_(base), e)
    odd = P.eq(P.bitwise_and(y, y.const(1)), y.const(1))
    lowest = P.logical_and(P.eq(size, size.const(limit)), P.logical_and(P.lt(x, x.const(0)), odd))
    large = P.logical_and(P.gt(y, y.const(1)), P.ge(size, size.const(limit)))
    refuse_overflow(b, P.logical_and(large, P.logical_not(lowest)), "**", x, y)
    return P.pow_(x, y)


def _float_power(b: Builder, x: Var, y: Var) -> Var:
    exponent = static_value(y) if is_static(y) else None
    zero = x.const(0)
    if exponent is None or exponent < 0:
        bad = P.logical_and(P.eq(x, zero), P.logical_and(P.lt(y, zero), P.isfinite(y)))
        guard(b, P.logical_not(bad), ZeroDivisionError, _ZERO_POWER)
    if exponent is None or not float(exponent).is_integer():
        bad = P.logical_and(P.lt(x, zero), P.isfinite(x))
        if exponent is None:
            bad = P.logical_and(bad, P.logical_and(P.isfinite(y), P.ne(y, P.floor(y))))
        text = " is complex, which compiled code has not; take the root of a number that is not negative"
        guard(b, P.logical_not(bad), ValueError_, 0, " ** ", 1, text, operands=(x, y))
    out = P.pow_(x, y)
    if exponent is None or not 0 <= exponent <= 1:
        fine = P.logical_or(P.isfinite(out), P.logical_not(P.logical_and(P.isfinite(x), P.isfinite(y))))
        fine = P.logical_or(fine, P.isnan(out))
        guard(b, fine, OverflowError, _FLOAT_POWER)
    return out


def _numpy_power(b: Builder, x: Var, y: Var, shortcuts: bool) -> Var:
    dtype = result_dtype((x, y), "**")
    if dtype == "bool":
        x, y, dtype = astype(x, "int8"), astype(y, "int8"), "int8"
    exponent = static_value(y) if is_static(y) and np.ndim(static_value(y)) == 0 else None
    x, y = promote(b, x, y, what="**")
    if dtype in INTS and not dtype.startswith("u") and not (exponent is not None and exponent >= 0):
        whole = P.ge(y, y.const(0))
        if product(broadcast_shapes("**", x.shape, y.shape)) == 0:
            return P.pow_(x, y)
        if isinstance(whole.type, Array):
            whole = reduce_all(whole, axes=tuple(range(whole.ndim)))
        guard(b, whole, ValueError, "Integers to negative integer powers are not allowed.")
    if shortcuts and exponent is not None:  # NumPy's own
        if exponent == 1:
            return x
        if exponent == 2:
            return P.mul(x, x)
        if dtype not in INTS and exponent == 0.5:
            return P.sqrt(x)
        if dtype not in INTS and exponent == -1:
            return P.div(x.const(1), x)
    if shortcuts and exponent is None and y.ndim == 0 and dtype not in INTS:
        # If the exponent turns out to be 0.5, NumPy computes the root, which differs from the power at -0.0 and -inf
        # only.
        half, one = P.eq(y, y.const(0.5)), x.const(1)
        zero, infinite = P.eq(P.div(one, x), x.const(-np.inf)), P.eq(x, x.const(-np.inf))
        sign = P.where(zero, x.const(-1), P.where(infinite, x.const(np.nan), one))
        return P.mul(P.pow_(x, y), P.where(half, sign, one))
    return P.pow_(x, y)


# Bits.


def _bitwise(symbol: str, logical, bitwise):
    def rule(b: Builder, x: Var, y: Var) -> Var:
        numbers(symbol, x, y)
        dtype = result_dtype((x, y), symbol)
        if dtype == "bool":
            return unwrap(logical(*promote(b, x, y, what=symbol)))
        if dtype not in INTS:
            raise unsupported(symbol, x, y)
        return unwrap(bitwise(*promote(b, x, y, what=symbol)))

    return rule


and_ = _bitwise("&", P.logical_and, P.bitwise_and)
or_ = _bitwise("|", P.logical_or, P.bitwise_or)
xor = _bitwise("^", P.logical_xor, P.bitwise_xor)


def _shift(symbol: str, prim):
    def rule(b: Builder, x: Var, y: Var) -> Var:
        numbers(symbol, x, y)
        dtype = result_dtype((x, y), symbol)
        if dtype not in (*INTS, "bool"):
            raise unsupported(symbol, x, y)
        if not all_weak(x, y):
            if dtype == "bool":
                x, y = astype(x, "int8"), astype(y, "int8")
            return unwrap(prim(*promote(b, x, y, what=symbol)))
        x, y = ints(x, y)
        guard(b, P.ge(y, y.const(0)), ValueError, "negative shift count")
        out = prim(x, y)
        if symbol == "<<":
            # The bits that are lost on the left: shifting back does not give x again, or the count is the width and x
            # is not 0.
            lost = P.ne(P.right_shift(out, y), x)
            far = P.logical_and(P.gt(y, y.const(63)), P.ne(x, x.const(0)))
            refuse_overflow(b, P.logical_or(lost, far), "<<", x, y)
        return out

    return rule


lshift = _shift("<<", P.left_shift)
rshift = _shift(">>", P.right_shift)


# One operand.


def negative(b: Builder, x: Var) -> Var:
    """`-x`.

    Raises:
        TypeError_: it is no number, or a NumPy boolean.
    """
    numbers("unary -", x)
    if is_weak(x) and is_int(x):
        small = x.dtype == "bool"
        (x,) = ints(x)
        if not small:
            _refuse_minimum(b, x, "-")
    elif x.dtype == "bool":
        raise TypeError_("NumPy negates no booleans; use the `~` operator, or np.logical_not")
    return unwrap(P.neg(x))


def _refuse_minimum(b: Builder, x: Var, what: str) -> None:
    text = " does not fit into 64 bits; use float or a NumPy integer"
    guard(b, P.ne(x, x.const(MIN_INT)), OverflowError, f"int too large: {what}(", 0, ")" + text, operands=(x,))


def positive(b: Builder, x: Var) -> Var:
    """`+x`.

    Raises:
        TypeError_: it is no number, or a NumPy boolean.
    """
    numbers("unary +", x)
    if x.dtype == "bool":
        if not is_weak(x):
            raise TypeError_("unary + is not defined for NumPy booleans")
        return weak(x, "int64")
    return unwrap(x)


def invert(b: Builder, x: Var) -> Var:
    """`~x`.

    Raises:
        TypeError_: it is no integer or boolean.
    """  # noqa: DOC501 (a function makes the exception)
    numbers("unary ~", x)
    if x.dtype not in (*INTS, "bool"):
        raise unsupported("unary ~", x)
    if x.dtype == "bool":
        return P.bitwise_not(weak(x, "int64")) if is_weak(x) else unwrap(P.logical_not(x))
    return unwrap(P.bitwise_not(x))


def absolute(b: Builder, x: Var) -> Var:
    """`abs(x)`."""
    numbers("abs()", x)
    if is_weak(x) and is_int(x):
        small = x.dtype == "bool"
        (x,) = ints(x)
        if not small:
            _refuse_minimum(b, x, "abs")
    elif x.dtype == "bool":
        return unwrap(x)
    return unwrap(P.abs_(x))


# Comparisons.


def _compare(symbol: str, prim):
    def constant(like: Var, value: bool) -> Var:
        out = P.eq(like, like)  # broadcasts like the comparison; NaN cannot be here, only ints
        return out if value else P.logical_not(out)

    def int_with_float(b: Builder, i: Var, f: Var, swapped: bool) -> Var:
        # Python compares exactly. Rounding is monotonic, so where float(i) and f differ, they are ordered as i and f
        # are. Where they are equal, f is whole and is compared as an int, except for 2 ** 63, which no int reaches.
        order = (lambda p, q: prim(q, p)) if swapped else prim
        near = weak(i, "float64")
        if is_static(i) and abs(static_value(i)) <= EXACT:
            return order(near, f)
        same, top = P.eq(near, f), P.eq(f, f.const(float(1 << 63)))
        whole = weak(P.where(P.logical_and(same, P.logical_not(top)), f, f.const(0.0)), "int64")
        equal_case = P.where(top, python(b, bool(order(-1, 0))), order(i, whole))
        return P.where(same, equal_case, order(near, f))

    def signed_with_unsigned(b: Builder, s: Var, u: Var, swapped: bool) -> Var:
        # A negative number is below every unsigned one; the others have the same value unsigned.
        order = (lambda p, q: prim(q, p)) if swapped else prim
        below = bool(order(-1, 0))
        s, u = strong(s), strong(u)
        negative = P.lt(s, s.const(0))
        rest = order(astype(s, "uint64"), u)
        return P.where(negative, constant(s, below), rest)

    def by_sizes(b: Builder, x: Var, y: Var) -> Var | None:
        # Symbolic sizes a known distance apart: `k.shape[0] != v.shape[0]` is decided where both are n.
        m, n = static_int(x), static_int(y)
        apart = m - n if isinstance(m, Dim) and isinstance(n, Dim) else None
        return python(b, bool(prim(apart, 0))) if isinstance(apart, int) else None

    def rule(b: Builder, x: Var, y: Var) -> Var:
        numbers(symbol, x, y)
        if all_weak(x, y):
            if is_int(x) and is_int(y):
                known = by_sizes(b, x, y)
                if known is not None:
                    return known
                return prim(*ints(x, y)) if x.dtype != y.dtype else prim(x, y)
            if is_int(x):
                return int_with_float(b, weak(x, "int64"), y, False)
            if is_int(y):
                return int_with_float(b, weak(y, "int64"), x, True)
            return prim(x, y)
        if x.dtype in INTS and y.dtype in INTS and x.dtype != y.dtype:
            # Python ints of any size, and all integer dtypes, are compared by value.
            if x.dtype == "uint64" and not y.dtype.startswith("u"):
                return unwrap(signed_with_unsigned(b, astype(y, "int64"), x, True))
            if y.dtype == "uint64" and not x.dtype.startswith("u"):
                return unwrap(signed_with_unsigned(b, astype(x, "int64"), y, False))
            wide = "uint64" if "uint64" in (x.dtype, y.dtype) else "int64"
            return unwrap(prim(astype(x, wide), astype(y, wide)))
        return unwrap(prim(*promote(b, x, y, what=symbol)))

    return rule


eq = _compare("==", P.eq)
ne = _compare("!=", P.ne)
lt = _compare("<", P.lt)
le = _compare("<=", P.le)
gt = _compare(">", P.gt)
ge = _compare(">=", P.ge)
