"""Gamma numbers and their derivative by the shape, written as `rules.portable` is: once for NumPy and for the back end.

Sources: G. Marsaglia and W. Tsang, "A simple method for generating gamma variables" (ACM TOMS 26, 2000), for the draw. M. Figurnov,
S. Mohamed and A. Mnih, "Implicit reparameterization gradients" (NeurIPS 2018), for the derivative: that of a number z at which the
distribution function F(z; a) stays what it is, dz/da = -(dF/da) / (dF/dz); F is summed as a series below a + 1 and as a continued
fraction above (W. Press and others, "Numerical recipes", 6.2), each with its derivative.
"""

from __future__ import annotations

from typing import Any

from .portable import Expr, exp, log, normal_from_bits, open_unit, product

ATTEMPTS = 500  # of which each succeeds with probability 0.95 or more
TERMS = 100_000.0
PRECISION = 1e-17
BOOST = (1 << 64) - 1  # the counter of the word that shapes below 1 take


def gamma_draw(b: Any, key: Expr, shape: Expr) -> Expr:
    """A gamma number; NaN where the shape is not positive.

    Args:
        b: the protocol.
        key: of this element: its words 0, 1, 2, ... are used two for each attempt.
        shape: float64.
    """
    key, shape = b.let(key), b.let(shape)

    def c(value: float) -> Expr:
        return b.like(value, shape)

    small = b.let(b.lt(shape, c(1.0)))
    d = b.let(b.sub(b.where(small, b.add(shape, c(1.0)), shape), c(1.0 / 3.0)))
    scale = b.let(b.div(c(1.0), b.sqrt(product(b, c(9.0), d))))

    def attempt(state: tuple) -> tuple:
        counter, _ = state
        x = b.let(normal_from_bits(b, b.threefry2x32(key, counter), "float64"))
        u = open_unit(b, b.threefry2x32(key, b.add(counter, b.like(1, counter))))
        t = b.let(b.add(c(1.0), product(b, scale, x)))
        v = b.let(product(b, product(b, t, t), t))
        bound = b.add(
            product(b, c(0.5), product(b, x, x)), product(b, d, b.add(b.sub(c(1.0), v), log(b, v, "float64")))
        )
        good = b.logical_and(b.gt(t, c(0.0)), b.lt(log(b, u, "float64"), bound))
        after = b.let(b.add(counter, b.like(2, counter)))
        go_on = b.logical_and(b.logical_not(good), b.lt(after, b.like(2 * ATTEMPTS, after)))
        return (after, b.let(product(b, d, v))), go_on

    first = b.bitwise_and(key, b.like(0, key))
    _, value = b.iterate((first, d), attempt, b.gt(shape, c(0.0)))
    u = open_unit(b, b.threefry2x32(key, b.like(BOOST, key)))
    factor = exp(b, b.div(log(b, u, "float64"), shape))
    value = b.where(small, product(b, value, factor), value)
    return b.let(b.where(b.gt(shape, c(0.0)), value, c(float("nan"))))


def gamma_slope(b: Any, shape: Expr, value: Expr, digamma: Expr) -> Expr:
    """The derivative of a gamma number by its shape.

    Args:
        b: the protocol.
        shape: float64.
        value: the number.
        digamma: that function of the shape.
    """
    a, z, psi = b.let(shape), b.let(value), b.let(digamma)

    def c(value: float) -> Expr:
        return b.like(value, a)

    sound = b.let(b.logical_and(b.gt(a, c(0.0)), b.gt(z, c(1e-300))))
    below = b.let(b.lt(z, b.add(a, c(1.0))))
    small = c(PRECISION)

    def term(state: tuple) -> tuple:
        n, t, dt, total, dtotal = state
        n = b.let(b.add(n, c(1.0)))
        at = b.let(b.add(a, n))
        ratio = b.let(b.div(z, at))
        dt = b.let(b.sub(b.mul(dt, ratio), b.div(b.mul(t, ratio), at)))
        t = b.let(b.mul(t, ratio))
        total, dtotal = b.let(b.add(total, t)), b.let(b.add(dtotal, dt))
        more = b.logical_or(b.gt(t, b.mul(small, total)), b.gt(b.abs(dt), b.mul(small, b.abs(dtotal))))
        return (n, t, dt, total, dtotal), b.logical_and(more, b.lt(n, c(TERMS)))

    zero = b.let(b.mul(b.where(sound, a, c(0.0)), c(0.0)))
    one = b.let(b.add(zero, c(1.0)))
    *_, total, dtotal = b.iterate((zero, one, zero, one, zero), term, b.logical_and(sound, below))
    from_log = b.let(b.sub(log(b, z, "float64"), psi))
    series = b.neg(b.mul(b.div(z, a), b.add(dtotal, b.mul(total, b.sub(from_log, b.div(c(1.0), a))))))

    def level(state: tuple) -> tuple:
        i, up, dup, down, ddown, total, dtotal = state
        i = b.let(b.add(i, c(1.0)))
        part = b.let(b.mul(i, b.sub(a, i)))  # its derivative is i
        here = b.let(b.add(b.sub(b.add(z, c(1.0)), a), b.add(i, i)))  # its derivative is -1
        below_ = b.let(b.add(b.mul(part, down), here))
        dbelow = b.let(b.sub(b.add(b.mul(i, down), b.mul(part, ddown)), c(1.0)))
        quotient = b.let(b.div(part, up))
        dup = b.let(b.sub(b.div(b.sub(i, b.mul(quotient, dup)), up), c(1.0)))
        up = b.let(b.add(here, quotient))
        down = b.let(b.div(c(1.0), below_))
        ddown = b.let(b.neg(b.mul(dbelow, b.mul(down, down))))
        change = b.let(b.mul(up, down))
        dchange = b.let(b.add(b.mul(dup, down), b.mul(up, ddown)))
        dtotal = b.let(b.add(b.mul(dtotal, change), b.mul(total, dchange)))
        total = b.let(b.mul(total, change))
        more = b.logical_or(
            b.gt(b.abs(b.sub(change, c(1.0))), c(2.3e-16)),
            b.gt(b.abs(b.mul(total, dchange)), b.mul(c(1e-16), b.abs(dtotal))),
        )
        return (i, up, dup, down, ddown, total, dtotal), b.logical_and(more, b.lt(i, c(TERMS)))

    start = b.let(b.div(one, b.where(below, one, b.sub(b.add(z, c(1.0)), a))))
    dstart = b.let(b.mul(start, start))
    state = (zero, b.let(b.add(zero, c(1e300))), zero, start, dstart, start, dstart)
    *_, total, dtotal = b.iterate(state, level, b.logical_and(sound, b.logical_not(below)))
    fraction = b.mul(z, b.add(dtotal, b.mul(total, from_log)))
    return b.let(b.where(sound, b.where(below, series, fraction), c(0.0)))
