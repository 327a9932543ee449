"""Exact integer arithmetic: wrapping, checked, floor division, shifts. (Reached through `exact`, which re-exports all of
it.)

Idea: TVM marks sums, differences and products of 32 bits and more "no signed wrap" (signed) or "no unsigned wrap"
(unsigned!), so `a + b < a` folds to False, and `x + minimum` becomes `x | minimum`. Wrapping arithmetic is therefore
done in twice the width and truncated, which LLVM narrows to one plain instruction, scalar or vector. Overflow is read
from the sign bits of the wrapped sum, and from the double-width product (LLVM makes a multiplication and a flag of it).

Input: expressions of equal signed integer dtype, scalars or vectors. Output: (value, flag expression) or value.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from .block import Block, const, dtype_of, element, lanes_of, load, with_lanes


def _bits(x: Any) -> int:
    return int(element(dtype_of(x)).lstrip("uint"))


def ordered(x: Any) -> Any:
    """`x`, where it is unsigned as a signed integer of the same order, to be compared; anything else as it is.

    TVM simplifies a comparison of unsigned values by their difference, which fails ("a negative uint") or even ends the
    process where it is below 0. LLVM compares the values themselves again.
    """
    dtype = dtype_of(x)
    if not element(dtype).startswith("uint"):
        return x
    if _bits(x) < 64:
        return tirx.Cast(with_lanes("int32" if _bits(x) < 32 else "int64", lanes_of(dtype)), x)
    wide = with_lanes("int64", lanes_of(dtype))
    return tirx.BitwiseXor(tirx.Cast(wide, x), const(-(1 << 63), wide))


def _wide(x: Any) -> str:
    return with_lanes(f"int{2 * _bits(x)}", lanes_of(dtype_of(x)))


def _wrap(node: Any, x: Any, y: Any) -> Any:
    return tirx.Cast(dtype_of(x), node(tirx.Cast(_wide(x), x), tirx.Cast(_wide(x), y)))


def wrapping_add(x: Any, y: Any) -> Any:
    """x + y modulo 2**bits, as NumPy has it."""
    return _wrap(tirx.Add, x, y)


def wrapping_sub(x: Any, y: Any) -> Any:
    """x - y modulo 2**bits."""
    return _wrap(tirx.Sub, x, y)


def wrapping_mul(x: Any, y: Any) -> Any:
    """x * y modulo 2**bits."""
    return _wrap(tirx.Mul, x, y)


def _negative(x: Any) -> Any:
    return tirx.LT(x, const(0, dtype_of(x)))


def _xor(x: Any, y: Any) -> Any:
    return tirx.BitwiseXor(x, y)


def checked_add(b: Block, x: Any, y: Any) -> tuple[Any, Any]:
    """(x + y wrapped, whether it overflowed): it did iff the sum's sign differs from both operands'."""
    x, y = b.once(x), b.once(y)
    total = b.let(wrapping_add(x, y))
    return total, _negative(tirx.BitwiseAnd(_xor(x, total), _xor(y, total)))


def checked_sub(b: Block, x: Any, y: Any) -> tuple[Any, Any]:
    """(x - y wrapped, whether it overflowed)."""
    x, y = b.once(x), b.once(y)
    total = b.let(wrapping_sub(x, y))
    return total, _negative(tirx.BitwiseAnd(_xor(x, y), _xor(x, total)))


def beyond(x: Any, step: int) -> Any:
    """Whether x + step overflows, for a scalar x and a step other than 0 that is known."""
    dtype, half = dtype_of(x), 1 << (_bits(x) - 1)
    return tirx.GT(x, const(half - 1 - step, dtype)) if step > 0 else tirx.LT(x, const(-half - step, dtype))


def checked_mul(b: Block, x: Any, y: Any) -> tuple[Any, Any]:
    """(x * y wrapped, whether it overflowed): the product in twice the width, against its own low half.

    (Comparing with a saturated product, as one might, misses products congruent to the saturation value.)
    """
    narrow = dtype_of(x)
    wide = _wide(x)
    full = b.let(tirx.Mul(tirx.Cast(wide, x), tirx.Cast(wide, y)))
    low = b.let(tirx.Cast(narrow, full))
    return low, tirx.NE(full, tirx.Cast(wide, low))


def division_flags(b: Block, x: Any, y: Any) -> tuple[Any, Any]:
    """(y == 0, the quotient overflows: minimum // -1)."""
    x, y = b.once(x), b.once(y)
    dtype = dtype_of(x)
    overflow = tirx.And(tirx.EQ(x, const(-(1 << (_bits(x) - 1)), dtype)), tirx.EQ(y, const(-1, dtype)))
    return tirx.EQ(y, const(0, dtype)), overflow


def int_divmod(b: Block, x: Any, y: Any) -> tuple[Any, Any]:
    """(x // y, x % y), rounding towards minus infinity as Python does; never traps.

    By zero both are 0, and minimum // -1 is the minimum with remainder 0, as in NumPy (`division_flags` tells).
    """
    x, y = b.once(x), b.once(y)
    dtype = dtype_of(x)
    zero, one = const(0, dtype), const(1, dtype)
    by_zero, overflow = division_flags(b, x, y)
    by_zero = b.let(by_zero)
    # Both cases trap in x86's idiv. Dividing by 1 instead gives the required (minimum, 0) in the second case.
    divisor = b.let(tirx.Select(tirx.Or(by_zero, overflow), one, y))
    quotient = b.let(tirx.Div(x, divisor))
    remainder = b.let(tirx.Mod(x, divisor))
    floor = b.let(tirx.And(tirx.NE(remainder, zero), _negative(_xor(remainder, divisor))))
    quotient = tirx.Select(floor, tirx.Sub(quotient, one), quotient)
    remainder = tirx.Select(floor, tirx.Add(remainder, divisor), remainder)
    return tirx.Select(by_zero, zero, quotient), remainder


def int_truediv(b: Block, x: Any, y: Any) -> Any:
    """x / y of int64 scalars, rounded once (`numbers.Integral`'s quotient, not that of two rounded floats); inf or NaN by 0.

    Within 2**53 both are floats exactly. Beyond, long division gives 55 bits of the quotient and whether anything is left, which
    round to the right 53; the scale is a power of two.
    """
    x, y = b.once(x), b.once(y)

    def size(v: Any) -> Any:
        bits = tirx.Cast("uint64", v)
        flipped = tirx.Add(tirx.BitwiseXor(bits, const((1 << 64) - 1, "uint64")), const(1, "uint64"))
        return b.let(tirx.Select(_negative(v), flipped, bits))

    n, d = size(x), size(y)
    limit, enough = const(1 << 53, "uint64"), const(1 << 54, "uint64")
    zero, one, two = const(0, "uint64"), const(1, "uint64"), const(2, "uint64")
    long = b.let(tirx.And(tirx.Or(tirx.GT(n, limit), tirx.GT(d, limit)), tirx.And(tirx.NE(d, zero), tirx.NE(n, zero))))
    divisor = b.let(tirx.Select(long, d, one))
    quotient = b.cell(tirx.Select(long, tirx.Div(n, divisor), enough))
    rest, scale = b.cell(tirx.Mod(n, divisor)), b.cell(const(1.0, "float64"))
    with b.while_(tirx.LT(load(quotient, 0), enough)):
        doubled = b.let(tirx.Mul(load(rest, 0), two))
        bit = b.let(tirx.GE(doubled, divisor))
        b.store(rest, tirx.Select(bit, tirx.Sub(doubled, divisor), doubled), 0)
        b.store(quotient, tirx.Add(tirx.Mul(load(quotient, 0), two), tirx.Cast("uint64", bit)), 0)
        b.store(scale, tirx.Mul(load(scale, 0), const(0.5, "float64")), 0)
    sticky = tirx.BitwiseOr(load(quotient, 0), tirx.Cast("uint64", tirx.NE(load(rest, 0), zero)))
    exact = b.let(tirx.Mul(tirx.Cast("float64", sticky), load(scale, 0)))
    signed = tirx.Select(_negative(_xor(x, y)), tirx.Sub(const(-0.0, "float64"), exact), exact)
    return tirx.Select(long, signed, tirx.Div(tirx.Cast("float64", x), tirx.Cast("float64", y)))


def shift_left(b: Block, x: Any, n: Any) -> Any:
    """x << n wrapped; 0 for n >= bits, and for a negative n, as in NumPy (CPython raises: check first)."""
    x, n = b.once(x), b.once(n)
    dtype, bits = dtype_of(x), _bits(x)
    large = b.let(tirx.Or(tirx.GE(ordered(n), ordered(const(bits, dtype))), _negative(n)))
    # A shift by the width or more is undefined in LLVM even if unselected.
    amount = tirx.Select(large, const(0, dtype), n)
    return tirx.Select(large, const(0, dtype), tirx.LShift(x, amount))


def shift_right(b: Block, x: Any, n: Any) -> Any:
    """x >> n, floor; 0 or -1 for n >= bits, and for a negative n, as in NumPy (CPython raises: check first)."""
    n = b.once(n)
    most = const(_bits(x) - 1, dtype_of(x))
    if element(dtype_of(x)).startswith("uint"):
        large = b.let(tirx.GT(ordered(n), ordered(most)))
        zero = const(0, dtype_of(x))
        return tirx.Select(large, zero, tirx.RShift(x, tirx.Select(large, zero, n)))
    return tirx.RShift(x, tirx.Select(tirx.Or(tirx.GT(n, most), _negative(n)), most, n))
