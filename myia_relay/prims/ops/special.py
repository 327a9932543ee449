"""Special functions: inverse hyperbolic functions, cube root, the complementary error function, the gamma function.

They are elementwise on floats and follow IEEE: a pole is an infinity, and outside the domain the result is NaN; nothing
here raises. `digamma` is not a primitive but written in primitives, so its derivatives follow from theirs.

Source: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 6.3.5 (recurrence), 6.3.7 (reflection) and
6.3.18 (asymptotic series).
"""

from __future__ import annotations

import math

import numpy as np

from ...abstract.types import FLOATS
from ...ir.prim import REGISTRY
from ..rules.relations import const_like
from .elementwise import _exact, cos, div, exp, log, lt, sin, sqrt, unary


def _gamma(x: float) -> float:
    """C's `tgamma` through Python's, which raises where C returns NaN or an infinity."""
    if x == 0:
        return math.copysign(math.inf, x)
    try:
        return math.gamma(x)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _lgamma(x: float) -> float:
    """C's `lgamma` through Python's, which raises where C returns an infinity."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


arcsinh = unary("arcsinh", np.arcsinh, FLOATS, "Inverse hyperbolic sine.")
arccosh = unary("arccosh", np.arccosh, FLOATS, "Inverse hyperbolic cosine; NaN below 1.")
arctanh = unary("arctanh", np.arctanh, FLOATS, "Inverse hyperbolic tangent; NaN outside of -1 ... 1.")
cbrt = unary("cbrt", np.cbrt, FLOATS, "The real cube root.")
exp2 = unary("exp2", np.exp2, FLOATS, "2 to the power x.")
erfc = unary("erfc", _exact(math.erfc), FLOATS, "1 - erf(x), accurate where that is small.")
gamma = unary("gamma", _exact(_gamma), FLOATS, "The gamma function; infinite at 0, NaN at negative integers.")
lgamma = unary("lgamma", _exact(_lgamma), FLOATS, "Logarithm of |gamma(x)|; infinite at its poles.")

arcsinh.vjp(lambda x, out, dout: (dout / sqrt(x * x + const_like(x, 1)),))
arccosh.vjp(lambda x, out, dout: (dout / (sqrt(x - const_like(x, 1)) * sqrt(x + const_like(x, 1))),))
arctanh.vjp(lambda x, out, dout: (dout / (const_like(x, 1) - x * x),))
cbrt.vjp(lambda x, out, dout: (dout * const_like(x, 1 / 3) / (out * out),))
exp2.vjp(lambda x, out, dout: (dout * out * const_like(x, math.log(2)),))
erfc.vjp(lambda x, out, dout: (-dout * const_like(x, 2 / math.sqrt(math.pi)) * exp(-(x * x)),))
gamma.vjp(lambda x, out, dout: (dout * out * digamma(x),))
lgamma.vjp(lambda x, out, dout: (dout * digamma(x),))

SHIFT = 10
# B(2n) / 2n of the Bernoulli numbers, n = 1 ... 7: the terms left out are below 1e-17 from x = 10 on.
SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def digamma(x):
    """The derivative of lgamma: psi(x) = psi(x + 10) - sum of 1 / (x + i), and psi(1 - x) - pi / tan(pi x) below 0.

    Args:
        x: staged floats.

    Returns:
        psi(x), to some 1e-15 of max(1, |psi|).
    """
    where, one, zero = REGISTRY["where"], const_like(x, 1), const_like(x, 0)
    negative = lt(x, zero)
    y = where(negative, one - x, x)
    below = div(one, y)
    for i in range(1, SHIFT):
        below = below + div(one, y + const_like(x, i))
    z = y + const_like(x, SHIFT)
    square = div(one, z * z)
    series = const_like(x, SERIES[-1])
    for coefficient in reversed(SERIES[:-1]):
        series = series * square + const_like(x, coefficient)
    psi = log(z) - div(const_like(x, 0.5), z) - series * square - below
    # x where it is not negative, otherwise a harmless value.
    angle = where(negative, x, const_like(x, 0.5)) * const_like(x, math.pi)
    return where(negative, psi - const_like(x, math.pi) * (cos(angle) / sin(angle)), psi)
