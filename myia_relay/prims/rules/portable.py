"""Functions of floats that are the same to the bit wherever they are computed: sequences of exactly rounded operations.

A function here takes the lowering protocol `b` and emits additions, products, quotients, roots, comparisons and operations on bits.
No product and sum are contracted: each product goes through `b.rounded`. So the back end, which hands in expressions, and `NUMPY`,
which computes, make the same bits, on every processor and for every width of vectors. Random numbers are made of these: a draw may
decide a branch, which a last bit must not.

Sources: logarithm: fdlibm, e_log.c, and musl's logf (S. Moshier and others), x = 2**k (1 + f), an odd polynomial in f / (2 + f).
Normal quantile: M. Wichura, "Algorithm AS 241: The percentage points of the normal distribution" (Applied Statistics 37, 1988), its
functions PPND16 for float64 and PPND7 for float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ...abstract.types import numpy_dtype
from .threefry import threefry2x32

Expr = Any


class _Format(NamedTuple):
    """What is particular to a float format."""

    bits: str
    mantissa: int
    bias: int
    ln2: tuple[float, float]
    log: tuple[float, ...]


_FORMATS = {
    "float32": _Format(
        "uint32",
        23,
        127,
        (0.693359375, -2.12194440e-4),
        (0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841),
    ),
    "float64": _Format(
        "uint64",
        52,
        1023,
        (6.93147180369123816490e-01, 1.90821492927058770002e-10),
        (
            *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01),
            *(1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01),
        ),
    ),
}


class _Rationals(NamedTuple):
    """Numerator and denominator, powers ascending: of the quantile near the median, in the tail, and far in the tail."""

    central: tuple[tuple[float, ...], tuple[float, ...]]
    tail: tuple[tuple[float, ...], tuple[float, ...]]
    far: tuple[tuple[float, ...], tuple[float, ...]]


_QUANTILES = {
    "float32": _Rationals(
        (
            (3.3871327179e00, 5.0434271938e01, 1.5929113202e02, 5.9109374720e01),
            (1.0, 1.7895169469e01, 7.8757757664e01, 6.7187563600e01),
        ),
        (
            (1.4234372777e00, 2.7568153900e00, 1.3067284816e00, 1.7023821103e-01),
            (1.0, 7.3700164250e-01, 1.2021132975e-01),
        ),
        (
            (6.6579051150e00, 3.0812263860e00, 4.2868294337e-01, 1.7337203997e-02),
            (1.0, 2.4197894225e-01, 1.2258202635e-02),
        ),
    ),
    "float64": _Rationals(
        (
            (
                *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4),
                *(4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
            ),
            (
                *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
                *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
            ),
        ),
        (
            (
                *(
                    1.42343711074968357734e0,
                    4.63033784615654529590e0,
                    5.76949722146069140550e0,
                    3.64784832476320460504e0,
                ),
                *(1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2),
                7.74545014278341407640e-4,
            ),
            (
                *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
                *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4),
                1.05075007164441684324e-9,
            ),
        ),
        (
            (
                *(
                    6.65790464350110377720e0,
                    5.46378491116411436990e0,
                    1.78482653991729133580e0,
                    2.96560571828504891230e-1,
                ),
                *(2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5),
                2.01033439929228813265e-7,
            ),
            (
                *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
                *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7),
                2.04426310338993978564e-15,
            ),
        ),
    ),
}
_SPLIT, _SQUARE, _NEAR, _FAR = 0.425, 0.180625, 1.6, 5.0


def _iterate(state: tuple, step: Callable, active: Any) -> tuple:
    """`iterate` of the protocol: on all elements at once, of which those that are done stay as they are."""
    state = tuple(np.broadcast_to(x, np.shape(active)) for x in state)
    while np.any(active):
        new, go_on = step(state)
        state = tuple(np.where(active, x, old) for x, old in zip(new, state, strict=True))
        active = active & go_on
    return state


NUMPY: Any = SimpleNamespace(
    iterate=_iterate,
    abs=np.abs,
    rint=np.rint,
    lt=np.less,
    threefry2x32=threefry2x32,
    logical_and=np.logical_and,
    logical_or=np.logical_or,
    logical_not=np.logical_not,
    left_shift=np.left_shift,
    like=lambda value, x: np.asarray(x).dtype.type(value),
    let=lambda x: x,
    rounded=lambda x: x,
    add=np.add,
    sub=np.subtract,
    mul=np.multiply,
    div=np.true_divide,
    sqrt=np.sqrt,
    neg=np.negative,
    le=np.less_equal,
    gt=np.greater,
    where=np.where,
    bitwise_and=np.bitwise_and,
    bitwise_or=np.bitwise_or,
    bitwise_xor=np.bitwise_xor,
    right_shift=np.right_shift,
    cast=lambda x, dtype: np.asarray(x).astype(numpy_dtype(dtype)),
    bitcast=lambda x, dtype: np.asarray(x).view(numpy_dtype(dtype)),
)
"""The protocol `b` as far as this module needs it, computing on NumPy's arrays and numbers."""


def computed(steps, *xs: Any) -> Any:
    """What a function of this module makes of numbers.

    Args:
        steps: the function, `(b, *xs)`.
        *xs: NumPy numbers and arrays; they are broadcast.
    """
    with np.errstate(all="ignore"):
        return np.asarray(steps(NUMPY, *np.broadcast_arrays(*xs)))[()]


def product(b: Any, x: Expr, y: Expr) -> Expr:
    """A product that no sum is contracted with."""
    return b.rounded(b.mul(x, y))


def _polynomial(b: Any, coefficients: tuple, x: Expr) -> Expr:
    """Horner's rule; coefficients are numbers or expressions, powers ascending."""
    terms = [b.like(c, x) if isinstance(c, float) else c for c in coefficients]
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = b.add(product(b, total, x), term)
    return b.let(total)


def log(b: Any, x: Expr, dtype: str) -> Expr:
    """The natural logarithm of positive numbers that are not subnormal, within an ulp; it does not look at others."""
    f = _FORMATS[dtype]
    of_bits = np.dtype(f.bits).type
    one, root = (int(np.array(v, dtype).view(f.bits)) for v in (1.0, 0.5**0.5))
    # The significand in [sqrt(1/2), sqrt(2)): the distance from there to 1 is added to the bits first.
    bits = b.bitcast(x, f.bits)
    moved = b.let(b.add(bits, b.like(one - root, bits)))
    exponent = b.cast(b.right_shift(moved, b.like(f.mantissa, moved)), "int32")
    k = b.cast(exponent, dtype)
    k = b.let(b.sub(k, b.like(float(f.bias), k)))
    low = b.bitwise_and(moved, b.like(of_bits((1 << f.mantissa) - 1), moved))
    u = b.bitcast(b.add(low, b.like(root, moved)), dtype)
    u = b.let(b.sub(u, b.like(1.0, u)))
    s = b.let(b.div(u, b.add(u, b.like(2.0, u))))
    z = b.let(product(b, s, s))
    half = b.let(product(b, product(b, u, u), b.like(0.5, u)))
    rest = b.add(half, product(b, z, _polynomial(b, f.log, z)))
    tail = b.sub(half, b.add(product(b, s, rest), product(b, k, b.like(f.ln2[1], k))))
    return b.let(b.add(product(b, k, b.like(f.ln2[0], k)), b.sub(u, tail)))


_LOG2E = 1.4426950408889634
_LOWEST = -1400.0
_EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(14))


def exp(b: Any, x: Expr) -> Expr:
    """e**x of float64 numbers up to 700, within an ulp or two; 0 far below."""
    x = b.let(b.where(b.gt(x, b.like(_LOWEST, x)), x, b.like(_LOWEST, x)))
    n = b.let(b.rint(product(b, x, b.like(_LOG2E, x))))
    high, low = _FORMATS["float64"].ln2
    r = b.let(b.sub(b.sub(x, product(b, n, b.like(high, n))), product(b, n, b.like(low, n))))
    power = _polynomial(b, _EXPONENTIAL, r)
    # 2**n as two factors, each in range; the last product is rounded once.
    n = b.let(b.cast(b.cast(n, "int32"), "int64"))
    half = b.let(b.right_shift(n, b.like(1, n)))

    def factor(k: Expr) -> Expr:
        return b.bitcast(b.left_shift(b.add(k, b.like(1023, k)), b.like(52, k)), "float64")

    return b.let(product(b, product(b, power, factor(half)), factor(b.sub(n, half))))


def normal_upper_quantile(b: Any, p: Expr, dtype: str, far: bool = True) -> Expr:
    """The number that a standard normal variable exceeds with probability p.

    Args:
        b: the protocol.
        p: more than 0, at most 1/2.
        dtype: of `p` and the result.
        far: whether p may be below exp(-25), 1.4e-11.
    """
    rationals = _QUANTILES[dtype]
    q = b.let(b.sub(b.like(0.5, p), p))
    square = b.let(b.sub(b.like(_SQUARE, p), product(b, q, q)))
    central = b.let(b.le(q, b.like(_SPLIT, p)))
    root = b.let(b.sqrt(b.neg(log(b, p, dtype))))
    parts, start = rationals.tail, b.like(_NEAR, p)
    if far:
        beyond = b.let(b.gt(root, b.like(_FAR, p)))
        start = b.where(beyond, b.like(_FAR, p), start)
        pairs = zip(rationals.far, rationals.tail, strict=True)
        parts = tuple(
            tuple(b.where(beyond, b.like(x, p), b.like(y, p)) for x, y in zip(high, low, strict=True))
            for high, low in pairs
        )
    t = b.let(b.sub(root, start))
    above = b.where(central, product(b, _polynomial(b, rationals.central[0], square), q), _polynomial(b, parts[0], t))
    below = b.where(central, _polynomial(b, rationals.central[1], square), _polynomial(b, parts[1], t))
    return b.let(b.div(above, below))


def open_unit(b: Any, bits: Expr) -> Expr:
    """(k + 1/2) / 2**52 of the first 52 of 64 bits k: a float64 that is neither 0 nor 1."""
    x = b.cast(b.right_shift(bits, b.like(12, bits)), "float64")
    return b.let(product(b, b.add(x, b.like(0.5, x)), b.like(0.5**52, x)))


def normal_from_bits(b: Any, bits: Expr, dtype: str) -> Expr:
    """A standard normal number from uniform bits, by the inverse of the distribution function.

    Of n bits, which are the number k, it is where that function is (k + 1/2) / 2**n. The probability of the tail, at most 1/2, is
    rounded to the format.

    Args:
        b: the protocol.
        bits: uint64 for float64, uint32 for float32.
        dtype: of the result.
    """
    kind, width = _FORMATS[dtype].bits, 64 if dtype == "float64" else 32
    sign = 1 << (width - 1)
    bits = b.let(bits)
    signed = b.bitcast(bits, f"int{width}")
    spread = b.bitcast(b.right_shift(signed, b.like(width - 1, signed)), kind)  # all ones above the median
    m = b.bitwise_and(b.bitwise_xor(bits, spread), b.like(sign - 1, bits))
    m = b.cast(m if dtype == "float64" else b.cast(m, "int32"), dtype)
    p = b.let(product(b, b.add(m, b.like(0.5, m)), b.like(0.5**width, m)))
    size = b.bitcast(normal_upper_quantile(b, p, dtype, far=dtype == "float64"), kind)
    negative = b.bitwise_and(b.bitwise_xor(bits, b.like(sign, bits)), b.like(sign, bits))
    return b.bitcast(b.bitwise_or(size, negative), dtype)
