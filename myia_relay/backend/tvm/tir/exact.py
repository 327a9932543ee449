"""Arithmetic that TVM and LLVM compile exactly as CPython and NumPy compute it.

Idea: build raw tirx nodes (operator overloads fold and simplify), keep constants where TVM's folder cannot see them
(`block.const`), and respect what LLVM may assume. Signed integer nodes carry "no wrap", so integers that may wrap are
added as unsigned. A product that feeds a sum is fused into one rounding unless `llvm.arithmetic.fence` is between them.
Comparisons are ordered, so a negated one is written as its negation. LLVM itself gets no fast-math flags and is exact.

Input: a `Block` (temporaries are emitted into it) and expressions, scalars or vectors of equal dtype. Output:
expressions. They must be compiled by `pipeline.build`; TVM's default pipeline breaks them. Measured on apache-tvm 0.27
(LLVM 22). The tests check every claim below against CPython or NumPy.

Cost: each function is linear; a result that is used twice should go through `Block.let` (the functions do so for their
own operands). LLVM does not auto-vectorise a serial loop with an arithmetic fence in it: use vector dtypes or a
vectorized loop.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from .block import Block, call, const, dtype_of, element, lanes_of, llvm, with_lanes
from .exact_int import (  # noqa: F401  (one namespace for callers)
    beyond,
    checked_add,
    checked_mul,
    checked_sub,
    division_flags,
    int_divmod,
    int_truediv,
    ordered,
    shift_left,
    shift_right,
    wrapping_add,
    wrapping_mul,
    wrapping_sub,
)


def like(value: Any, expr: Any) -> Any:
    """A constant of the dtype of `expr`."""
    return const(value, dtype_of(expr))


def is_float(expr: Any) -> bool:
    """Whether an expression is floating-point."""
    return dtype_of(expr).startswith("float")


# --- floats -----------------------------------------------------------------------------------------------------------


def fence(x: Any) -> Any:
    """`x`, opaque to floating-point rewriting: no fusing, no folding across it. Costs no instruction."""
    return llvm("arithmetic.fence", dtype_of(x), x)


def add(x: Any, y: Any) -> Any:
    """Float sum (also of integers that cannot wrap)."""
    return tirx.Add(x, y)


def sub(x: Any, y: Any) -> Any:
    """Float difference (also of integers that cannot wrap)."""
    return tirx.Sub(x, y)


def mul(x: Any, y: Any, *, contract: bool = False) -> Any:
    """Float product.

    Args:
        x: left operand.
        y: right operand.
        contract: allow a following sum to fuse with it into one FMA (one rounding instead of two).
    """
    product = tirx.Mul(x, y)
    return product if contract or not is_float(product) else fence(product)


def div(x: Any, y: Any) -> Any:
    """Float quotient; IEEE, so x/0 is an infinity or NaN as in NumPy (CPython raises: check first)."""
    return tirx.Div(x, y)


def fma(x: Any, y: Any, z: Any) -> Any:
    """`x * y + z` with one rounding where the target has FMA (two where it has not)."""
    return llvm("fmuladd", dtype_of(x), x, y, z)


def neg(x: Any) -> Any:
    """-x; floats flip the sign of zeros and NaNs too, integers wrap at their minimum."""
    return tirx.Sub(like(-0.0, x), x) if is_float(x) else wrapping_sub(like(0, x), x)


def sqrt(x: Any) -> Any:
    """Correctly rounded square root; NaN for negative numbers (CPython raises: check first)."""
    return llvm("sqrt", dtype_of(x), x)


def floor(x: Any) -> Any:
    """Largest integral float <= x."""
    return llvm("floor", dtype_of(x), x)


def ceil(x: Any) -> Any:
    """Smallest integral float >= x."""
    return llvm("ceil", dtype_of(x), x)


def trunc(x: Any) -> Any:
    """x without its fraction."""
    return llvm("trunc", dtype_of(x), x)


def rint(x: Any) -> Any:
    """Nearest integral float, ties to even (as CPython's `round` and `numpy.rint`)."""
    return llvm("roundeven", dtype_of(x), x)


def copysign(x: Any, y: Any) -> Any:
    """|x| with the sign of y."""
    return llvm("copysign", dtype_of(x), x, y)


def absolute(b: Block, x: Any) -> Any:
    """|x|; an int64 minimum stays itself, as in NumPy (CPython's would not fit: check first)."""
    if is_float(x):
        return llvm("fabs", dtype_of(x), x)
    x = b.once(x)
    return tirx.Select(tirx.LT(x, like(0, x)), neg(x), x)


def sign(b: Block, x: Any) -> Any:
    """-1, 0 or 1 of x's dtype; NaN for NaN (`numpy.sign`)."""
    x = b.once(x)
    zero, one = like(0, x), like(1, x)
    result = tirx.Select(tirx.GT(x, zero), one, tirx.Select(tirx.LT(x, zero), like(-1, x), zero))
    return tirx.Select(isnan(x), x, result) if is_float(x) else result


def float_divmod(b: Block, x: Any, y: Any) -> tuple[Any, Any]:
    """(x // y, x % y) of floats, by CPython's algorithm (floatobject.c, `_float_div_mod`).

    For y == 0 the quotient is x / y and the remainder NaN, as in NumPy (CPython raises: check first).
    """
    x, y = b.once(x), b.once(y)
    zero, one = like(0.0, x), like(1.0, x)
    mod = b.let(tirx.Mod(x, y))  # LLVM's frem is C's fmod, which is exact
    div_ = b.let(tirx.Div(tirx.Sub(x, mod), y))
    nonzero = ne(mod, zero)
    # (y < 0) != (mod < 0), written out: tirx.NE of bools is miscompiled.
    below = tirx.LT(y, zero)
    differ = tirx.Or(tirx.And(below, tirx.GE(mod, zero)), tirx.And(tirx.Not(below), tirx.LT(mod, zero)))
    adjust = b.let(tirx.And(nonzero, differ))
    mod2 = tirx.Select(adjust, tirx.Add(mod, y), tirx.Select(nonzero, mod, copysign(zero, y)))
    div2 = b.let(tirx.Select(adjust, tirx.Sub(div_, one), div_))
    low = b.let(floor(div2))
    near = tirx.Select(tirx.GT(tirx.Sub(div2, low), like(0.5, x)), tirx.Add(low, one), low)
    quotient = b.let(tirx.Select(ne(div2, zero), near, copysign(zero, tirx.Div(x, y))))
    by_zero = tirx.EQ(y, zero)
    return (
        tirx.Select(by_zero, tirx.Div(x, y), quotient),
        tirx.Select(by_zero, like(float("nan"), x), b.let(mod2)),
    )


_INTRINSIC = frozenset(
    "exp exp2 log log2 log10 sin cos tan asin acos atan sinh cosh tanh pow atan2".split()
)  # those LLVM has as intrinsics, by their libm names


def libm(name: str, *args: Any) -> Any:
    """A call of the C library's function, so that scalars equal CPython's `math`.

    Args:
        name: the double-precision name: "exp", "expm1", "log1p", "pow", "atan2", "erf", "hypot", ...
        *args: float expressions; float32 calls the `f` variant. Vectors are taken apart lane by lane (slow; see
            vecmath).

    Returns:
        The call. Domain errors give NaN or infinities as in C (CPython's `math` raises: check first).

    Raises:
        ValueError: the arguments are vectors, and the function has no vector form.
    """
    dtype = dtype_of(args[0])
    # LLVM rewrites pow(x, 2.0) to x*x, pow(2.0, x) to exp2(x), which sometimes differ from libm in the last place.
    if name == "pow":
        args = tuple(fence(a) for a in args)
    if lanes_of(dtype) == 1:
        symbol = name if dtype == "float64" else name + "f"
        return tirx.call_pure_extern(dtype, symbol, *args)
    if name not in _INTRINSIC:
        raise ValueError(f"{name} has no vector form; call it per lane")
    return llvm(name, dtype, *args)


# --- comparisons, extrema -------------------------------------------------------------------------------------------


def ne(x: Any, y: Any) -> Any:
    """x != y, true if either is NaN. (`tirx.NE` of floats is LLVM's ordered `one`: false for NaN. The others are
    right.)
    """
    return tirx.Not(tirx.EQ(x, y)) if is_float(x) else tirx.NE(x, y)


def isnan(x: Any) -> Any:
    """Whether x is NaN. `x` appears twice: let() it first if it is large."""
    return ne(x, x)


def truth(x: Any) -> Any:
    """Python's `bool(x)` of a number: NaN is true."""
    return x if dtype_of(x).startswith("bool") else ne(x, like(0, x))


def maximum(b: Block, x: Any, y: Any) -> Any:
    """`numpy.maximum`: NaN if either is NaN; the second of equals (so of the zeros), as NumPy has it on x86."""
    return _extremum(b, tirx.GT, x, y)


def minimum(b: Block, x: Any, y: Any) -> Any:
    """`numpy.minimum`: NaN if either is NaN; the second of equals."""
    return _extremum(b, tirx.LT, x, y)


def _extremum(b: Block, wins: Any, x: Any, y: Any) -> Any:
    x, y = b.once(x), b.once(y)
    if element(dtype_of(x)) == "float16":  # NumPy has no vector code for these: the first of equal elements
        wins = {tirx.GT: tirx.GE, tirx.LT: tirx.LE}[wins]
    keep = wins(ordered(x), ordered(y))
    return tirx.Select(tirx.Or(keep, isnan(x)) if is_float(x) else keep, x, y)


# --- casts ------------------------------------------------------------------------------------------------------------


def cast(dtype: str, x: Any) -> Any:
    """A conversion between numbers and bools; lanes are kept.

    Float to bool is `x != 0` (NaN is true), float to float rounds to nearest, float to int see `float_to_int`.

    Raises:
        ValueError: a float to an integer, for which there is `float_to_int`.
    """
    target, source = with_lanes(dtype, lanes_of(dtype_of(x))), dtype_of(x)
    if target == source:
        return x
    if element(target) == "bool":
        return truth(x)
    if is_float(x) and not target.startswith("float"):
        raise ValueError("use float_to_int, which says what happens to NaN and large values")
    return tirx.Cast(target, x)


def from_bfloat16(x: Any) -> Any:
    """The bits of a bfloat16 as float32: they are the upper half of its bits."""
    lanes = lanes_of(dtype_of(x))
    word = with_lanes("uint32", lanes)
    return call("tirx.reinterpret", with_lanes("float32", lanes), tirx.LShift(tirx.Cast(word, x), const(16, word)))


def to_bfloat16(b: Block, x: Any) -> Any:
    """float32 to the bits of a bfloat16, rounded to nearest even, in integers: LLVM calls a function that is not there, or an
    instruction that takes denormal numbers for zero. NaN becomes the quiet one of its sign, as in ml_dtypes.
    """
    lanes = lanes_of(dtype_of(x))
    word = with_lanes("uint32", lanes)
    x = b.let(x)
    bits = b.let(call("tirx.reinterpret", word, x))
    upper = b.let(tirx.RShift(bits, const(16, word)))
    odd = tirx.BitwiseAnd(upper, const(1, word))
    rounded = tirx.RShift(tirx.Add(tirx.Add(bits, const(0x7FFF, word)), odd), const(16, word))
    quiet = tirx.BitwiseOr(tirx.BitwiseAnd(upper, const(0x8000, word)), const(0x7FC0, word))
    return tirx.Cast(with_lanes("uint16", lanes), tirx.Select(isnan(x), quiet, rounded))


def float_to_int(b: Block, x: Any, dtype: str = "int64") -> tuple[Any, Any]:
    """Truncation to an integer: (value, bad).

    Returns:
        The value, int's minimum where x is NaN or out of range (as x86's conversion and NumPy have it), and a flag
        that says where that was (CPython raises there or has a longer int).
    """
    x = b.once(x)
    bits = int(element(dtype).lstrip("int"))
    lowest, mantissa = -(2.0 ** (bits - 1)), 53 if dtype_of(x).startswith("float64") else 24
    # Truncation also admits the open interval (lowest - 1, lowest), if the format has numbers in it.
    low = tirx.GT(x, like(lowest - 1, x)) if bits <= mantissa else tirx.GE(x, like(lowest, x))
    good = b.let(tirx.And(low, tirx.LT(x, like(2.0 ** (bits - 1), x))))
    target = with_lanes(dtype, lanes_of(dtype_of(x)))
    # The conversion of an out-of-range value is undefined in LLVM even if unselected: convert a zero instead.
    value = tirx.Cast(target, tirx.Select(good, x, like(0.0, x)))
    return tirx.Select(good, value, const(-(1 << (bits - 1)), target)), tirx.Not(good)
