"""Functions of the `math` module on integers, and those on floats that are short programs.

Integers have 64 bits: a larger result is an OverflowError. Exceptions and their messages are CPython's.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from .kernels import constant


def gcd(*integers):
    """math.gcd."""
    out = 0
    for n in integers:
        a, b = out, operator.index(n)
        b = b if b < 0 else -b  # whatever is in 64 bits has a negative: -2**63 has no absolute value there
        while b != 0:
            a, b = b, a % b
        out = a
    return -out


def lcm(*integers):
    """math.lcm."""
    out = 1
    for n in integers:
        n = operator.index(n)
        if n == 0 or out == 0:
            out = 0
        else:
            out = out // math.gcd(out, n) * abs(n)
    return out


def isqrt(n):
    """math.isqrt: the float root, put right; quotients in place of squares, which might overflow.

    Raises:
        ValueError: n is negative.
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = int(math.sqrt(n))
    while root > 0 and root > n // root:
        root -= 1
    while root + 1 <= n // (root + 1):
        root += 1
    return root


def factorial(n):
    """math.factorial, up to 20.

    Raises:
        ValueError: n is negative.
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    out = 1
    for i in range(2, n + 1):
        out *= i
    return out


def _require_counts(n, k):
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")


def comb(n, k):
    """math.comb: every partial product is a binomial coefficient, divided before it is multiplied."""
    n, k = operator.index(n), operator.index(k)
    _require_counts(n, k)
    out = 1 if k <= n else 0
    k = min(k, n - k)
    for i in range(k):
        shared = math.gcd(out, i + 1)
        out = (out // shared) * ((n - i) // ((i + 1) // shared))
    return out


def perm(n, k=None):
    """math.perm."""
    if k is None:
        return math.factorial(n)
    n, k = operator.index(n), operator.index(k)
    _require_counts(n, k)
    out = 1 if k <= n else 0
    for i in range(k if k <= n else 0):
        out *= n - i
    return out


def dist(p, q):
    """math.dist.

    Raises:
        ValueError: the points differ in the number of dimensions.
    """
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    largest, infinite = 0.0, False
    for x, y in zip(p, q):
        away = abs(float(x) - float(y))
        infinite = infinite or math.isinf(away)
        if away > largest or math.isnan(away):
            largest = away
    if infinite:
        return math.inf
    if largest == 0.0:
        return largest
    scale = constant(largest)  # so no derivative sees which one it is
    total = 0.0
    for x, y in zip(p, q):
        ratio = (float(x) - float(y)) / scale
        total += ratio * ratio
    return scale * math.sqrt(total)


def remainder(x, y):
    """math.remainder: x - n y with n the integer nearest to x / y, even where two are; CPython's own algorithm.

    Raises:
        ValueError: x is infinite, or y is 0.
    """
    x, y = float(x), float(y)
    if math.isnan(x):
        return x
    if math.isnan(y):
        return y
    if math.isinf(x) or y == 0.0:
        raise ValueError("math domain error")
    if math.isinf(y):
        return x
    size, step = abs(x), abs(y)
    low = math.fmod(size, step)
    high = step - low
    if low < high:
        rest = low
    elif low > high:
        rest = -high
    else:
        rest = low - 2.0 * math.fmod(0.5 * (size - low), step)
    return math.copysign(1.0, x) * rest


def modf(x):
    """math.modf: fraction and whole part, both with the sign of x."""
    x = float(x)
    whole = float(np.trunc(x))
    fraction = 0.0 if math.isinf(x) else x - whole
    return math.copysign(fraction, x), whole


def ldexp(x, i):
    """math.ldexp: x * 2**i, rounded once.

    Raises:
        TypeError: i is no int.
        OverflowError: the result is too large.
    """
    x = float(x)
    if not isinstance(i, int):
        raise TypeError("Expected an int as second argument to ldexp.")
    if x == 0.0 or not math.isfinite(x):
        return x
    while i > 1000 and abs(x) < 1.0:
        x, i = x * 2.0**1000, i - 1000
    while i < -1000 and abs(x) >= 1.0:
        x, i = x * 2.0**-1000, i + 1000
    if i > 1023:
        raise OverflowError("math range error")
    if i < -1074:
        return x * 0.0
    x = x * 2.0**i
    if math.isinf(x):
        raise OverflowError("math range error")
    return x


def frexp(x):
    """math.frexp: (m, e) with x = m * 2**e and 0.5 <= |m| < 1."""
    x, e = float(x), 0
    if x == 0.0 or not math.isfinite(x):
        return x, e
    while abs(x) >= 2.0**64:
        x, e = x * 2.0**-64, e + 64
    while abs(x) < 2.0**-64:
        x, e = x * 2.0**64, e - 64
    while abs(x) >= 1.0:
        x, e = x * 0.5, e + 1
    while abs(x) < 0.5:
        x, e = x * 2.0, e - 1
    return x, e


SOURCES = {
    getattr(math, function.__name__): function
    for function in (gcd, lcm, isqrt, factorial, comb, perm, dist, remainder, modf, ldexp, frexp)
}
