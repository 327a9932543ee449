"""Transcendental functions on vectors, as range reduction and polynomials over tirx expressions.

Idea: TVM and LLVM have only scalar libm calls for these (1.4 to 6.4 ns an element). Written out as arithmetic they
run as wide as the target's vectors, on every target, with no vector math library. Range reduction is Cody and
Waite's; logarithm and trigonometric kernels are fdlibm's; exp's polynomial is a near-minimax fit of (e^r - 1 - r) /
r^2.

Input: a `Block` and an expression of float32 or float64, of any number of lanes. Output: an expression of the same
dtype; what is used twice is emitted into the block. Write loops with explicit vectors, for which `elementwise` is the
driver:

    elementwise(b, n, lanes("float32"), lambda i, k: b.vstore(Y, vecmath.tanh(b, vload(X, i, k)), i))

Accuracy, largest error in units in the last place (random sweeps of all ranges, subnormals and huge values included;
the tests hold the rounded-up figures), and time for an element, one Zen 4 core, against NumPy 2.4's:

               exp          expm1        log          tanh         sigmoid      sin          cos          erf
    float32    1.1 0.30 ns  1.6 0.51 ns  0.8 0.48 ns  2.3 0.29 ns  2.1 0.43 ns  1.5 1.0 ns   1.5 1.0 ns   1.0 0.5 ns
      NumPy        0.48         0.39         0.40         0.39         0.84         0.54         0.57
    float64    1.1 0.76 ns  2.2 1.4 ns   0.8 0.97 ns  2.4 0.78 ns  2.2 1.0 ns   1.5 1.5 ns   1.5 1.5 ns   1.0 2.0 ns
      NumPy        0.82         1.14         0.84         1.66         1.59         8.7          8.8

NaN, infinities, signed zeros, subnormal arguments and results, overflow are as in C. Functions of this file allow
FMA, so results may differ in the last place between targets; where bits must equal CPython's, call `exact.libm`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm import tirx

from .block import Block, call, const, dtype_of, element, idx, lanes_of, llvm, load, ramp, with_lanes
from .exact import absolute, copysign, fma, isnan, libm, ne
from .pipeline import vector_bytes
from .vecformats import FORMATS, Format


class _Of:
    """The format of an expression, and constants and casts of its lane count."""

    def __init__(self, x: Any) -> None:
        self.dtype = dtype_of(x)
        self.lanes = lanes_of(self.dtype)
        self.format = FORMATS[element(self.dtype)]
        self.int = with_lanes(self.format.int, self.lanes)

    def c(self, value: float) -> Any:
        return const(value, self.dtype)

    def i(self, value: int) -> Any:
        return const(value, self.int)

    def bits(self, x: Any) -> Any:
        return call("tirx.reinterpret", self.int, x)

    def value(self, bits: Any) -> Any:
        return call("tirx.reinterpret", self.dtype, bits)

    def poly(self, coefficients: tuple[float, ...], z: Any) -> Any:
        """Horner's rule; `z` is used once per degree, so it should be named."""
        result = self.c(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = fma(result, z, self.c(coefficient))
        return result


def _mul(x: Any, y: Any) -> Any:
    return tirx.Mul(x, y)


def _reduce_exp(b: Block, f: _Of, x: Any) -> tuple[Any, Any]:
    """Returns (n, r) with x = n log 2 + r, |r| <= log(2) / 2; n as a float."""
    magic = f.c(f.format.magic)
    n = b.let(tirx.Sub(b.let(fma(x, f.c(1 / math.log(2)), magic)), magic))
    r = fma(tirx.Sub(f.c(-0.0), n), f.c(f.format.ln2_hi), x)
    return n, b.let(fma(tirx.Sub(f.c(-0.0), n), f.c(f.format.ln2_lo), r))


def _power_of_two(f: _Of, n: Any) -> Any:
    """2**n of an integral float in the exponent's range, by adding n to the exponent field's position."""
    shifted = f.bits(tirx.Add(n, f.c(f.format.magic + f.format.bias)))
    return f.value(tirx.LShift(shifted, f.i(f.format.mantissa)))


def _expm1_reduced(b: Block, f: _Of, r: Any) -> Any:
    """e**r - 1 for |r| <= log(2) / 2.

    The polynomial's even and odd powers are two of Horner's schemes, side by side: whoever waits for one value waits half
    as long, at no further operation, since the square is there.
    """
    square, powers = b.let(_mul(r, r)), f.format.exp
    even, odd = b.let(f.poly(powers[::2], square)), b.let(f.poly(powers[1::2], square))
    return b.let(fma(square, fma(odd, r, even), r))


def exp(b: Block, x: Any) -> Any:
    """e**x. Source: Cody and Waite reduction; the scale is applied such that subnormal results round once."""
    x = b.once(x)
    f = _Of(x)
    low, high = f.format.exp_range
    # Below, the result is zero. It is not computed: many processors take a hundred times as long where a result underflows, and
    # masks make such arguments by the million, exp(-inf).
    zero = b.let(tirx.LT(x, f.c(low)))
    n, r = _reduce_exp(b, f, b.let(tirx.Select(zero, f.c(0.0), tirx.Select(tirx.GT(x, f.c(high)), f.c(high), x))))
    power = b.let(tirx.Add(_expm1_reduced(b, f, r), f.c(1.0)))
    if vector_bytes() == 64:
        # AVX-512 scales by any power of two in one instruction. NaN must not be converted to an integer, which is
        # undefined in LLVM.
        number = tirx.Select(tirx.GT(n, f.c(-4096.0)), n, f.c(-4096.0))
        result = llvm("ldexp", f.dtype, power, tirx.Cast(with_lanes("int32", f.lanes), b.let(number)))
    else:
        magic = f.c(f.format.magic)
        half = b.let(tirx.Sub(b.let(fma(n, f.c(0.5), magic)), magic))
        result = _mul(_mul(power, _power_of_two(f, half)), _power_of_two(f, b.let(tirx.Sub(n, half))))
    return b.let(tirx.Select(zero, f.c(0.0), b.let(result)))


def _clamped(b: Block, f: _Of, x: Any, low: float, high: float) -> Any:
    """x, or the bound that it is beyond: a minimum and a maximum, which let NaN pass."""
    below = b.let(tirx.Select(tirx.GT(x, f.c(high)), f.c(high), x))
    return b.let(tirx.Select(tirx.LT(below, f.c(low)), f.c(low), below))


def expm1(b: Block, x: Any) -> Any:
    """e**x - 1, relative accuracy kept around 0."""
    x = b.once(x)
    f = _Of(x)
    big = f.format.expm1_max
    # Below -50 the result is -1 anyway; above `big`, where 2**n could overflow, exp does as well.
    small = _expm1_core(b, f, _clamped(b, f, x, -50.0, big))
    large = exp(b, x)
    return b.let(tirx.Select(tirx.GT(x, f.c(big)), large, tirx.Select(tirx.EQ(x, f.c(0.0)), x, small)))


def _expm1_core(b: Block, f: _Of, x: Any) -> Any:
    """e**x - 1 where 2**n is in range: 2**n (e**r - 1) + (2**n - 1)."""
    n, r = _reduce_exp(b, f, x)
    q = _expm1_reduced(b, f, r)
    scale = b.let(_power_of_two(f, n))
    return b.let(fma(scale, q, tirx.Sub(scale, f.c(1.0))))


def tanh(b: Block, x: Any) -> Any:
    """Hyperbolic tangent: e / (e + 2) with e = expm1(2 |x|), which keeps relative accuracy at 0."""
    x = b.once(x)
    f = _Of(x)
    top = f.c(f.format.tanh_max)
    size = b.let(absolute(b, x))
    size = b.let(tirx.Select(tirx.GT(size, top), top, size))
    e = _expm1_core(b, f, b.let(tirx.Add(size, size)))
    return b.let(copysign(tirx.Div(e, tirx.Add(e, f.c(2.0))), x))


def sigmoid(b: Block, x: Any) -> Any:
    """1 / (1 + e**-x), as e**x / (1 + e**x) for negative x, so that small results keep their accuracy."""
    x = b.once(x)
    f = _Of(x)
    e = exp(b, tirx.Sub(f.c(-0.0), b.let(absolute(b, x))))
    one = f.c(1.0)
    result = tirx.Div(tirx.Select(tirx.GE(x, f.c(0.0)), one, e), tirx.Add(e, one))
    return b.let(tirx.Select(isnan(x), x, result))


def erf(b: Block, x: Any) -> Any:
    """Error function: x + x P(x**2) up to 1, from there 1 - exp(-Q(|x| - 1)), Q a fit of -log(erfc)."""
    x = b.once(x)
    f = _Of(x)
    top = f.format.erf_max
    size = b.let(absolute(b, x))
    square = b.let(_mul(x, x))
    small = fma(x, f.poly(f.format.erf_small, square), x)
    v = b.let(tirx.Sub(tirx.Select(tirx.GT(size, f.c(top)), f.c(top), size), f.c(1.0)))
    negative = b.let(tirx.Sub(f.c(-0.0), f.poly(f.format.erf_large, v)))
    large = tirx.Sub(f.c(-0.0), _expm1_core(b, f, negative))
    return b.let(tirx.Select(tirx.LT(size, f.c(1.0)), small, copysign(large, x)))


def log(b: Block, x: Any) -> Any:
    """Natural logarithm."""
    x = b.once(x)
    f = _Of(x)
    subnormal = b.let(tirx.LT(x, f.c(2.0 ** (1 - f.format.bias))))
    shift = f.format.mantissa + 2
    normal = tirx.Select(subnormal, _mul(x, f.c(2.0**shift)), x)
    result = _log_normal(b, f, normal, tirx.Select(subnormal, f.c(-shift), f.c(0.0)), f.c(0.0))
    return _log_at_ends(b, f, x, x, result)


def log1p(b: Block, x: Any) -> Any:
    """log(1 + x), relative accuracy kept around 0. Source: fdlibm, s_log1p.c: what rounding 1 + x has lost is added back."""
    x = b.once(x)
    f = _Of(x)
    one = f.c(1.0)
    u = b.let(tirx.Add(x, one))
    lost = tirx.Select(tirx.GT(x, one), tirx.Sub(one, tirx.Sub(u, x)), tirx.Sub(x, tirx.Sub(u, one)))
    result = _log_normal(b, f, u, f.c(0.0), b.let(tirx.Div(lost, u)))
    return b.let(tirx.Select(tirx.EQ(x, f.c(0.0)), x, _log_at_ends(b, f, x, u, result)))


def _log_normal(b: Block, f: _Of, x: Any, exponent: Any, rest: Any) -> Any:
    """log(x) + exponent log(2) + rest, of a positive normal x, and a rest below the accuracy of x.

    Source: fdlibm, e_log.c: x = 2**k (1 + u), s = u / (2 + u), an odd polynomial in s.
    """
    fmt = f.format
    # Split so that the significand lies in [sqrt(1/2), sqrt(2)): add the distance from there to 1 to the bits first.
    one, root = _pattern(fmt, 1.0), _pattern(fmt, math.sqrt(0.5))
    moved = b.let(tirx.Add(f.bits(x), f.i(one - root)))
    k = tirx.Sub(tirx.RShift(moved, f.i(fmt.mantissa)), f.i(fmt.bias))
    # Through int32: AVX2 and NEON convert int32, but not int64, to double.
    k = tirx.Cast(f.dtype, tirx.Cast(with_lanes("int32", f.lanes), k))
    k = b.let(tirx.Add(k, exponent))
    significand = tirx.Add(tirx.BitwiseAnd(moved, f.i((1 << fmt.mantissa) - 1)), f.i(root))
    u = b.let(tirx.Sub(f.value(significand), f.c(1.0)))
    s = b.let(tirx.Div(u, tirx.Add(u, f.c(2.0))))
    z = b.let(_mul(s, s))
    half_square = b.let(_mul(_mul(u, u), f.c(0.5)))
    inner = tirx.Add(half_square, _mul(z, f.poly(fmt.log, z)))
    small = fma(k, f.c(fmt.ln2_lo), rest)
    tail = b.let(tirx.Sub(half_square, fma(s, inner, small)))
    return fma(k, f.c(fmt.ln2_hi), tirx.Sub(u, tail))


def _log_at_ends(b: Block, f: _Of, x: Any, u: Any, result: Any) -> Any:
    """The logarithm of u: at infinity x, below 0 and of NaN NaN, at 0 minus infinity, else the result."""
    result = tirx.Select(tirx.EQ(u, f.c(math.inf)), x, result)
    result = tirx.Select(tirx.GE(u, f.c(0.0)), result, f.c(math.nan))
    return b.let(tirx.Select(tirx.EQ(u, f.c(0.0)), f.c(-math.inf), result))


def _pattern(fmt: Format, value: float) -> int:
    """The bits of a float in this format, rounded."""
    import numpy as np

    return int(np.array(value, "float32" if fmt.mantissa == 23 else "float64").view(fmt.int))


def sin(b: Block, x: Any) -> Any:
    """Sine. See `_trig`."""
    return _trig(b, x, 0, "sin")


def cos(b: Block, x: Any) -> Any:
    """Cosine. See `_trig`."""
    return _trig(b, x, 1, "cos")


def _trig(b: Block, x: Any, quadrant: int, name: str) -> Any:
    """sin(x + quadrant pi/2): reduction by pi/2 in three parts, fdlibm's kernels.

    The reduction needs a true FMA (x - n pi/2 is exact with it up to `trig_max`); `llvm.fma` is one on every target,
    slow where the hardware has none. Vectors with a larger element call libm lane by lane, in a branch: therefore not
    to be used in a loop of kind "vectorized".

    Raises:
        ValueError: it is used in such a loop.
    """
    if b.in_vectorized_loop:
        raise ValueError(f"{name} has a branch for large arguments: use explicit vectors, not a vectorized loop")
    x = b.once(x)
    f = _Of(x)
    fmt, magic = f.format, f.c(f.format.magic)
    turned = b.let(fma(x, f.c(2 / math.pi), magic))
    n = b.let(tirx.Sub(f.c(-0.0), tirx.Sub(turned, magic)))
    r = x
    for part in fmt.pio2:
        r = llvm("fma", f.dtype, n, f.c(part), r)
    r = b.let(r)
    z = b.let(_mul(r, r))
    sine = b.let(fma(_mul(r, z), f.poly(fmt.sin, z), r))
    # 1 - z/2 + z**2 p: the rounding error of 1 - z/2 is put back.
    half = b.let(_mul(z, f.c(0.5)))
    w = b.let(tirx.Sub(f.c(1.0), half))
    correction = fma(_mul(z, z), f.poly(fmt.cos, z), tirx.Sub(tirx.Sub(f.c(1.0), w), half))
    cosine = b.let(tirx.Add(w, correction))
    position = b.let(tirx.Add(f.bits(turned), f.i(quadrant))) if quadrant else b.let(f.bits(turned))
    swap = ne(tirx.BitwiseAnd(position, f.i(1)), f.i(0))
    flip = ne(tirx.BitwiseAnd(position, f.i(2)), f.i(0))
    value = b.let(tirx.Select(swap, cosine, sine))
    value = tirx.Select(flip, tirx.Sub(f.c(-0.0), value), value)
    if name == "sin":
        value = tirx.Select(tirx.EQ(x, f.c(0.0)), x, value)
    return _with_slow_lanes(b, f, x, value, lambda lane: libm(name, lane))


def _with_slow_lanes(b: Block, f: _Of, x: Any, fast: Any, slow: Callable[[Any], Any]) -> Any:
    """`fast`, except that lanes with |x| > trig_max (or NaN) are computed by `slow`, one by one, if there are any."""
    scalar = element(f.dtype)
    limit, size = const(f.format.trig_max, scalar), b.let(absolute(b, x))
    largest = size if f.lanes == 1 else llvm("vector.reduce.fmax", scalar, size)
    result = b.cell(fast)
    with b.when(tirx.Not(tirx.LE(b.let(largest), limit))):
        if f.lanes == 1:
            b.store(result, slow(x), 0)
        else:
            spill, into = b.local(scalar, f.lanes), b.local(scalar, f.lanes)
            b.vstore(spill, x, 0)
            b.vstore(into, load(result, 0), 0)
            with b.loop(f.lanes, name="lane") as lane:
                with b.when(tirx.Not(tirx.LE(absolute(b, load(spill, lane)), limit))):
                    b.store(into, slow(load(spill, lane)), lane)
            b.store(result, load(into, ramp(0, f.lanes)), 0)
    return load(result, 0)


def elementwise(b: Block, n: Any, lanes: int, body: Callable[[Any, int], None]) -> None:
    """Emits a loop over `n` elements in vectors, and one over the rest.

    Args:
        b: where to.
        n: how many elements, an int or an int64 expression.
        lanes: of a vector.
        body: called with (offset, lanes) to emit the work on `lanes` elements from `offset` on; called twice, the
            second time with one lane, unless `n` is a known multiple.
    """
    whole: Any = n // lanes if isinstance(n, int) else tirx.Div(n, idx(lanes))
    if not (isinstance(n, int) and n < lanes):
        with b.loop(whole, name="v") as i:
            body(tirx.Mul(i, idx(lanes)), lanes)
    if not (isinstance(n, int) and n % lanes == 0):
        done = idx(whole * lanes) if isinstance(n, int) else tirx.Mul(whole, idx(lanes))
        rest = n % lanes if isinstance(n, int) else tirx.Sub(n, done)
        with b.loop(rest, name="s") as i:
            body(tirx.Add(done, i), 1)
