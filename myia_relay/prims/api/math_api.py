"""The `math` module: functions of Python numbers that return Python floats and raise as CPython does."""

from __future__ import annotations

import math
import sys

from ...abstract.types import INTS
from ...ir.build import Builder, Var
from ...library import kernels
from ...utils.errors import TypeError_
from ..ops import elementwise as P
from ..ops import special as S
from ..ops.control import stop_gradient
from .arithmetic import nonzero, power
from .implementations import implements
from .numpy_elementwise import _copysign, length, length_of_two
from .operators import float_, int_, scalar_of
from .promotion import float_to_int, guard, is_weak, operand, python, unwrap, weak

DOMAIN = "math domain error"
RANGE = "math range error"


def number(b: Builder, x, name: str) -> Var:
    """An operand of a math function as a Python float."""
    return float_(b, unwrap(scalar_of(operand(b, x, name), name)))


def either(*conditions: Var) -> Var:
    """Whether any condition holds."""
    out = conditions[0]
    for c in conditions[1:]:
        out = P.logical_or(out, c)
    return out


def _function(fn, prim, overflows: bool = False):
    """A function whose NaN from a number is a ValueError, and whose infinity from a finite number is a range error.

    Args:
        fn: the function of `math`.
        prim: its primitive.
        overflows: whether an infinite result is an OverflowError; else a ValueError.
    """

    @implements(fn)
    def rule(b: Builder, x) -> Var:
        x = number(b, x, f"math.{fn.__name__}")
        out = prim(x)
        guard(b, either(P.isnan(x), P.logical_not(P.isnan(out))), ValueError, DOMAIN)
        if overflows:
            fine = either(P.logical_not(P.isfinite(x)), P.logical_not(P.isinf(out)))
            guard(b, fine, OverflowError, RANGE)
        return out


for _fn, _prim in (
    (math.sin, P.sin),
    (math.cos, P.cos),
    (math.tan, P.tan),
    (math.asin, P.arcsin),
    (math.acos, P.arccos),
    (math.sqrt, P.sqrt),
    (math.acosh, S.arccosh),
):
    _function(_fn, _prim)
for _fn, _prim in ((math.exp, P.exp), (math.expm1, P.expm1), (math.sinh, P.sinh), (math.cosh, P.cosh)):
    _function(_fn, _prim, overflows=True)
for _fn, _prim in (
    (math.atan, P.arctan),
    (math.tanh, P.tanh),
    (math.erf, P.erf),
    (math.erfc, S.erfc),
    (math.asinh, S.arcsinh),
    (math.fabs, P.abs_),
):

    @implements(_fn)
    def _(b: Builder, x, _prim=_prim, _name=_fn.__name__) -> Var:
        return _prim(number(b, x, f"math.{_name}"))


if sys.version_info >= (3, 11):
    _function(math.exp2, S.exp2, overflows=True)

    @implements(math.cbrt)
    def cbrt(b: Builder, x) -> Var:
        """math.cbrt."""
        return S.cbrt(number(b, x, "math.cbrt"))


@implements(math.atanh)
def atanh(b: Builder, x) -> Var:
    """math.atanh."""
    x = number(b, x, "math.atanh")
    guard(b, either(P.lt(P.abs_(x), x.const(1)), P.isnan(x)), ValueError, DOMAIN)
    return S.arctanh(x)


@implements(math.gamma)
def gamma(b: Builder, x) -> Var:
    """math.gamma, by the C library's: within some ulps of CPython's own."""
    x = number(b, x, "math.gamma")
    out = S.gamma(x)
    pole = P.logical_or(P.eq(x, x.const(0)), P.logical_and(P.isnan(out), P.logical_not(P.isnan(x))))
    guard(b, P.logical_not(pole), ValueError, DOMAIN)
    guard(b, either(P.logical_not(P.isinf(out)), P.isinf(x)), OverflowError, RANGE)
    return out


@implements(math.lgamma)
def lgamma(b: Builder, x) -> Var:
    """math.lgamma, by the C library's: within some ulps of CPython's own."""
    x = number(b, x, "math.lgamma")
    pole = P.logical_and(P.le(x, x.const(0)), P.logical_and(P.eq(x, P.floor(x)), P.isfinite(x)))
    guard(b, P.logical_not(pole), ValueError, DOMAIN)
    out = S.lgamma(x)
    guard(b, either(P.logical_not(P.isinf(out)), P.isinf(x)), OverflowError, RANGE)
    return out


def _logarithm(fn, prim, lowest: float):
    def rule(b: Builder, x) -> Var:
        x = number(b, x, f"math.{fn.__name__}")
        guard(b, either(P.gt(x, x.const(lowest)), P.isnan(x)), ValueError, DOMAIN)
        return prim(x)

    return rule


_natural = _logarithm(math.log, P.log, 0.0)
implements(math.log2)(_logarithm(math.log2, P.log2, 0.0))
implements(math.log10)(_logarithm(math.log10, P.log10, 0.0))
implements(math.log1p)(_logarithm(math.log1p, P.log1p, -1.0))


@implements(math.log)
def log(b: Builder, x, base=None) -> Var:
    """math.log, to a base if given."""
    if base is None:
        return _natural(b, x)
    top, bottom = _natural(b, x), _natural(b, base)
    nonzero(b, bottom, "float division by zero")
    return P.div(top, bottom)


@implements(math.pow)
def pow_(b: Builder, x, y) -> Var:
    """math.pow: in floats, never complex."""
    x, y = number(b, x, "math.pow"), number(b, y, "math.pow")
    out = P.pow_(x, y)
    finite = P.logical_and(P.isfinite(x), P.isfinite(y))
    zero_to_negative = P.logical_and(P.eq(x, x.const(0)), P.logical_and(P.lt(y, y.const(0)), P.isfinite(y)))
    bad = P.logical_or(P.logical_and(finite, P.isnan(out)), zero_to_negative)
    guard(b, P.logical_not(bad), ValueError, DOMAIN)
    guard(b, P.logical_not(P.logical_and(finite, P.isinf(out))), OverflowError, RANGE)
    return out


@implements(math.atan2)
def atan2(b: Builder, y, x) -> Var:
    """math.atan2."""
    return P.arctan2(number(b, y, "math.atan2"), number(b, x, "math.atan2"))


@implements(kernels.constant)
def constant(b: Builder, x) -> Var:
    """A number that derivatives take for a constant."""
    return stop_gradient(operand(b, x))


@implements(math.hypot)
def math_hypot(b: Builder, *coordinates) -> Var:
    """math.hypot."""
    numbers = [number(b, x, "math.hypot") for x in coordinates] or [python(b, 0.0)]
    return weak(length_of_two(*numbers) if len(numbers) == 2 else length(*numbers), "float64")


@implements(math.copysign)
def copysign(b: Builder, x, y) -> Var:
    """math.copysign; the sign of NaN is not seen."""
    return _copysign(number(b, x, "math.copysign"), number(b, y, "math.copysign"))


@implements(math.degrees)
def degrees(b: Builder, x) -> Var:
    """math.degrees."""
    x = number(b, x, "math.degrees")
    return x * x.const(180.0 / math.pi)


@implements(math.radians)
def radians(b: Builder, x) -> Var:
    """math.radians."""
    x = number(b, x, "math.radians")
    return x * x.const(math.pi / 180.0)


@implements(math.fmod)
def fmod(b: Builder, x, y) -> Var:
    """math.fmod: the remainder with the sign of x."""
    x, y = number(b, x, "math.fmod"), number(b, y, "math.fmod")
    bad = P.logical_or(P.isinf(x), P.eq(y, y.const(0)))
    bad = P.logical_and(bad, P.logical_not(P.logical_or(P.isnan(x), P.isnan(y))))
    guard(b, P.logical_not(bad), ValueError, DOMAIN)
    rest = P.mod(P.abs_(x), P.abs_(y))
    return _copysign(rest, x)


for _fn, _prim in ((math.floor, P.floor), (math.ceil, P.ceil), (math.trunc, P.trunc)):

    @implements(_fn)
    def _(b: Builder, x, _prim=_prim, _name=_fn.__name__) -> Var:
        x = scalar_of(operand(b, x, f"math.{_name}"), f"math.{_name}")
        if _name == "trunc" and not is_weak(x) and x.dtype != "float64":
            raise TypeError_(f"type np.{x.dtype} doesn't define __trunc__ method; write int(x)")
        return float_to_int(b, _prim(x)) if x.type.is_float else int_(b, x)


for _fn, _prim in ((math.isnan, P.isnan), (math.isinf, P.isinf), (math.isfinite, P.isfinite)):

    @implements(_fn)
    def _(b: Builder, x, _prim=_prim, _name=_fn.__name__) -> Var:
        return _prim(number(b, x, f"math.{_name}"))


@implements(math.isclose)
def isclose(b: Builder, a, b_, *, rel_tol=1e-09, abs_tol=0.0) -> Var:
    """math.isclose."""
    x, y = number(b, a, "math.isclose"), number(b, b_, "math.isclose")
    rel, floor = number(b, rel_tol, "math.isclose"), number(b, abs_tol, "math.isclose")
    reach = P.maximum(rel * P.maximum(P.abs_(x), P.abs_(y)), floor)
    near = P.logical_and(P.le(P.abs_(x - y), reach), P.logical_and(P.isfinite(x), P.isfinite(y)))
    return P.logical_or(near, P.eq(x, y))


@implements(math.prod)
def prod(b: Builder, iterable) -> Var:
    """math.prod of a tuple or list of numbers.

    Raises:
        TypeError_: it is given something else.
    """
    from ...utils.errors import TypeError_
    from .arithmetic import mul

    if not isinstance(iterable, tuple | list):
        raise TypeError_("math.prod takes a tuple or a list of numbers; write np.prod(x) of an array")
    out = python(b, 1)
    for x in iterable:
        out = mul(b, out, operand(b, x))
    return out


@implements(math.fsum)
def fsum(b: Builder, seq) -> Var:
    """math.fsum: refused, since its exactness cannot be kept.

    Raises:
        TypeError_: always.
    """
    from ...utils.errors import TypeError_

    raise TypeError_("math.fsum adds without rounding, which compiled code does not; use sum(...)")


__all__ = ["INTS", "power"]
