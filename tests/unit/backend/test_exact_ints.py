"""Exact arithmetic of integers of every width against NumPy and CPython: pairs of edge values, one kernel for each case."""

from __future__ import annotations

import operator

import numpy as np
import pytest

pytest.importorskip("tvm")

from myia_relay.backend.tvm.tir import exact
from tests.unit.backend.test_exact import MAX, MIN, pairs, run, same

UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")


def edges(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    bits = info.bits
    found = {
        0,
        1,
        2,
        3,
        5,
        7,
        bits - 1,
        bits,
        bits + 1,
        info.max,
        info.max - 1,
        info.min,
        info.min + 1,
        info.max // 2,
        info.max // 2 + 1,
    }
    return sorted(v for v in found | {-1, -2, -3, -bits} if info.min <= v <= info.max)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_the_order_of_unsigned_integers(dtype):
    from tvm import tirx

    x, y = pairs(edges(dtype), dtype)

    def op(b, p, q):
        p, q = exact.ordered(p), exact.ordered(q)
        return tuple(tirx.Cast("int32", f(p, q)) for f in (tirx.LT, tirx.LE, tirx.EQ))

    for got, meaning in zip(run(op, [x, y], ["int32"] * 3, "scalar"), (operator.lt, operator.le, operator.eq)):
        same(got, meaning(x, y).astype("int32"))


@pytest.mark.parametrize("dtype", [*UNSIGNED, *SIGNED])
def test_shifts_of_every_width(dtype):
    x, n = pairs(edges(dtype), dtype)
    left, right = run(
        lambda b, p, q: (exact.shift_left(b, p, q), exact.shift_right(b, p, q)), [x, n], [dtype] * 2, "scalar"
    )
    same(left, np.left_shift(x, n))
    same(right, np.right_shift(x, n))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_arithmetic_of_every_width(dtype):
    x, y = pairs(edges(dtype), dtype)

    def op(b, p, q):
        return (
            *exact.checked_add(b, p, q), *exact.checked_sub(b, p, q), *exact.checked_mul(b, p, q),
            *exact.int_divmod(b, p, q), *exact.division_flags(b, p, q),
            exact.wrapping_add(p, q), exact.wrapping_sub(p, q), exact.wrapping_mul(p, q),
        )  # fmt: skip

    out = run(op, [x, y], [dtype, "int32"] * 3 + [dtype] * 2 + ["int32"] * 2 + [dtype] * 3, "scalar")
    info = np.iinfo(dtype)
    for k, meaning in enumerate((operator.add, operator.sub, operator.mul)):
        exactly = [meaning(int(a), int(b)) for a, b in zip(x, y)]
        wrapped = np.array([(v - info.min) % (1 << info.bits) + info.min for v in exactly])
        same(out[2 * k], wrapped)
        same(out[10 + k], wrapped)
        same(out[2 * k + 1], wrapped != np.array(exactly))
    with np.errstate(all="ignore"):
        same(out[6], x // y)
        same(out[7], x % y)
    same(out[8], y == 0)
    same(out[9], (x == info.min) & (y == -1))


def test_quotients_are_rounded_once():
    large = [
        MIN,
        MIN + 1,
        MAX,
        MAX - 1,
        2**53,
        2**53 + 1,
        -(2**53) - 1,
        2**54 + 3,
        10**18 + 7,
        -(10**17) - 3,
        3,
        -7,
        1,
        0,
    ]
    x, y = pairs(large, "int64")
    (got,) = run(exact.int_truediv, [x, y], ["float64"], "scalar")
    with np.errstate(all="ignore"):
        want = [int(a) / int(b) if b else float(np.float64(a) / np.float64(b)) for a, b in zip(x, y)]
    same(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32", "int64"])
def test_truncation_to_every_width(target, dtype):
    info = np.iinfo(target)
    near = [info.min, info.max, 0]
    x = np.array([float(v) + d for v in near for d in (-1.5, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.5)], dtype)
    x = np.concatenate([x, np.nextafter(x, np.inf, dtype=dtype), np.nextafter(x, -np.inf, dtype=dtype)])
    value, bad = run(lambda b, v: exact.float_to_int(b, v, target), [x], [target, "int32"], "scalar")
    fits = [info.min <= int(v) <= info.max for v in x.tolist()]
    same(bad, ~np.array(fits))
    same(value, np.array([int(v) if ok else info.min for v, ok in zip(x.tolist(), fits)]))


@pytest.mark.parametrize("step", [1, -1, 7, -7, MAX, MIN])
def test_a_known_step_beyond_the_ends(step):
    from tvm import tirx

    x = np.array([0, 1, -1, MIN, MAX, MIN + 1, MAX - 1, MIN + 7, MAX - 7, MIN + 6, MAX - 6, MIN + 8, MAX - 8])
    (got,) = run(lambda b, v: tirx.Cast("int32", exact.beyond(v, step)), [x], ["int32"], "scalar")
    same(got, [not MIN <= int(v) + step <= MAX for v in x])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_shifts_by_known_numbers_of_bits(dtype, beyond):
    """LLVM makes anything of a shift by as many bits as there are, or more."""
    x = np.array(edges(dtype), dtype)
    n = np.full_like(x, np.iinfo(dtype).bits + beyond)
    left, right = run(
        lambda b, p, q: (exact.shift_left(b, p, q), exact.shift_right(b, p, q)), [x, n], [dtype] * 2, "scalar",
        {1: int(n[0])},
    )  # fmt: skip
    same(left, np.left_shift(x, n))
    same(right, np.right_shift(x, n))
