"""Native programs of scalars, elementwise chains, injective maps and reductions, against the interpreter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import relay
from tests.unit.backend.native_util import P, check, compile_, emit, sub, type_of

RNG = np.random.default_rng(0)


def arr(*shape, dtype="float32"):
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    if "int" in dtype:
        return RNG.integers(0 if dtype[0] == "u" else -50, 50, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


def test_scalars_are_exact():
    program, _ = compile_(lambda x, y: x * y - 1.0, 0.1, 10.0)
    assert program(0.1, 10.0) == 0.1 * 10.0 - 1.0
    assert math.isnan(program(math.nan, 1.0))
    program, _ = compile_(lambda x: x + x.const(-0.0), 0.0)
    assert math.copysign(1.0, program(-0.0)) == -1.0
    program, _ = compile_(lambda x: x * x.const(0.0), 0.0)
    assert math.isnan(program(math.inf))
    assert math.copysign(1.0, program(-1.0)) == -1.0


@pytest.mark.parametrize(
    "name", ["exp", "log", "sin", "tanh", "sqrt", "floor", "arctan", "expm1", "sigmoid", "abs", "neg", "sign"]
)
@pytest.mark.parametrize(
    "value", [0.7, np.float32(0.7), np.float64(2.5), arr(37), arr(4, 5, dtype="float64"), arr(3, dtype="float16")]
)
@pytest.mark.sampled(4)
def test_unary(name, value):
    if isinstance(value, np.ndarray) and name in ("log", "sqrt"):
        value = np.abs(value) + value.dtype.type(0.1)
    check(getattr(P, name), value)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "maximum", "minimum", "lt", "eq", "ne", "ge"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int8", "uint8", "uint64"])
@pytest.mark.sampled(13)
def test_binary(name, dtype):
    x, y = arr(5, 7, dtype=dtype), arr(5, 7, dtype=dtype)
    check(getattr(P, name), x, y)
    check(getattr(P, name), x, y[0])
    check(getattr(P, name), x[0, 0], y[0, 0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "pow"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integers(name, dtype):
    y = RNG.integers(0, 7, 33).astype(dtype)
    check(getattr(P, name), arr(33, dtype=dtype), y)
    check(getattr(P, name), arr(1, dtype=dtype)[0], y[3])


def test_bools():
    x, y = arr(40, dtype="bool"), arr(40, dtype="bool")
    check(lambda a, b: P.logical_and(P.logical_not(a), P.logical_xor(a, b)), x, y)
    check(lambda a, b: P.eq(a, b), x, y)
    check(lambda a: P.cast(a, dtype="float32"), x)
    check(lambda a: P.reduce_any(a, axes=(0,)), x)
    check(lambda a: (P.reduce_all(a, axes=(0,)), P.logical_not(a)), x)


@pytest.mark.parametrize("to", ["int8", "uint8", "int32", "int64", "float64", "float16", "bool"])
def test_casts(to):
    check(lambda a: P.cast(a, dtype=to), np.abs(arr(21)) * 3)
    check(lambda a: P.cast(a, dtype=to), arr(21, dtype="int32"))


@pytest.mark.sampled(17)
@pytest.mark.parametrize("n", [2, 3, 7, 9, 14, 15, 17, 23, 31, 47, 65])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8", "uint8"])
def test_rows_of_any_length_are_vectors(n, dtype):
    """Rows shorter than two vectors are one, with as many lanes as elements; the rest of others is a shorter vector."""
    x, y = arr(2, n, dtype=dtype), arr(2, n, dtype=dtype)
    check(lambda a, b: (P.where(P.lt(a, b), a * b, a - b), P.maximum(a, b), P.eq(a, b)), x, y)
    check(lambda a: tuple(getattr(P, f"reduce_{name}")(a, axes=(1,)) for name in ("sum", "max", "min")), x)
    check(lambda a: (P.transpose(a, perm=(1, 0)), P.flip(a, axes=(1,)), P.cast(a, dtype="float64")), x)
    if "float" in dtype:
        check(lambda a, b: (P.exp(a), P.tanh(a) * P.sin(b), P.reduce_sum(a * b, axes=(0, 1))), x, y)


def test_where_and_broadcasting():
    x, y, c = arr(6, 1, 5), arr(4, 1), arr(6, 4, 5, dtype="bool")
    check(lambda a, b, m: P.where(m, a * b, a - b), x, y, c)
    check(lambda a, s: a * s + s, arr(3, 17), np.float32(3))
    check(lambda a, s: P.tanh(a) * s, arr(2, 3, 31), arr(3, 1))


def test_several_results_share_kernels():
    def f(x, y):
        t = P.tanh(x * y)
        return t, t * t, x + y

    program, _ = compile_(f, arr(50), arr(50))
    assert len(program.kernels) == 1
    check(f, arr(50), arr(50))
    x = arr(3, 4)
    check(lambda a: (a, a, P.neg(a)), x)


@pytest.mark.parametrize(
    "shape", [(1,), (7,), (64,), (1000,), (3, 5), (16, 16), (5, 1, 9), (2, 3, 4, 5), (0, 3), (130, 33)]
)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.sampled(7)
def test_reductions(shape, dtype):
    x = arr(*shape, dtype=dtype)
    n = len(shape)
    for bits in range(1, 1 << n):
        axes = tuple(k for k in range(n) if bits >> k & 1)
        check(lambda a, axes=axes: P.reduce_sum(a * a, axes=axes), x, atol=1e-4)
        check(lambda a, axes=axes: P.reduce_max(a, axes=axes, keepdims=True), x)


def test_softmax_like():
    def f(x):
        top = P.reduce_max(x, axes=(1,), keepdims=True)
        e = P.exp(x - top)
        return e / P.reduce_sum(e, axes=(1,), keepdims=True)

    check(f, arr(33, 10))


def test_injective():
    x = arr(4, 6, 5)
    check(lambda a: P.transpose(a, perm=(2, 0, 1)) * 2.0, x)
    check(lambda a: P.reshape(P.exp(a), shape=(8, 15)), x)
    check(lambda a: P.reshape(P.transpose(a, perm=(1, 0, 2)), shape=(120,)), x)
    check(lambda a: P.slice(a, starts=(1, 0, 4), sizes=(2, 3, 2), steps=(1, 2, -2)) + a.const(1.0), x)
    check(lambda a: P.flip(a, axes=(2,)), x)
    check(lambda a, v: P.pad(a, v, low=(1, 0, 2), high=(0, 1, 1), interior=(0, 1, 0)), x, np.float32(7))
    check(lambda a, b: P.concatenate(a, b, axis=1), x, arr(4, 2, 5))
    check(lambda a, i: P.dynamic_index(a, i, axis=0) * 2.0, x, 2)
    check(lambda a, i: P.dynamic_index(a, i, axis=1), x, 99)
    check(lambda a, i: P.take(a, i, axis=1), x, np.array([[0, 5], [3, 1]]))
    check(lambda a, v, i: P.dynamic_update(a, v, i, axis=0), x, arr(6, 5), 1)
    check(lambda a, i: P.dynamic_slice(a, i, axis=2, length=3), x, 1)
    check(lambda a, i: P.dynamic_index(P.reshape(a, shape=(120,)), i, axis=0), x, 11)
    check(lambda a: P.broadcast_to(P.reduce_sum(a, axes=(0,)), shape=(2, 6, 5)), x)
    check(lambda a: P.reduce_sum(P.transpose(a, perm=(1, 0, 2)), axes=(1,)), x)


def test_constants_and_zero_dim():
    table = RNG.standard_normal(12).astype("float32")
    check(lambda a: a * a.const(table), arr(12))
    check(lambda a: a + 1.5, np.asarray(np.float32(2)))
    check(lambda a: P.as_scalar(a) * P.as_scalar(a), np.asarray(np.float64(2)))
    check(lambda a: P.as_array(P.reduce_sum(a, axes=(0,))), arr(9))


def test_layouts_of_arguments():
    program, _ = compile_(lambda a, b: a * b, arr(6, 8), arr(6, 8))
    big = arr(12, 16)
    x, y = big[::2, ::2], np.asfortranarray(arr(6, 8))
    np.testing.assert_array_equal(program(x, y), x * y)
    swapped = y.astype(">f4")
    np.testing.assert_array_equal(program(x, swapped), x * y)
    raw = np.zeros(6 * 8 * 4 + 1, np.uint8)
    odd = raw[1:].view("float32").reshape(6, 8)
    odd[...] = y
    np.testing.assert_array_equal(program(odd, odd), y * y)
    x.flags.writeable = False
    np.testing.assert_array_equal(program(x, x), x * x)
    with pytest.raises(TypeError):
        program(x.astype("float64"), y)
    with pytest.raises(ValueError):
        program(x[:3], y)


def test_layouts_of_many_arguments():
    """The checks of all arguments share branches, of which LLVM takes its time for each."""
    args = [arr(2, k % 3 + 1) for k in range(90)]
    program, _ = compile_(lambda *xs: xs[0] * P.reduce_sum(xs[-1], axes=(0, 1)), *args)
    assert str(program.tir["main"]).count("return") < len(args) / 3
    want = program(*args)
    for k in range(0, 90, 7):
        turned = [np.asfortranarray(a) if j >= k else a for j, a in enumerate(args)]
        np.testing.assert_array_equal(program(*turned), want)
        for wrong, error in (
            (args[k].astype("float64"), TypeError),
            (arr(3, k % 3 + 1), ValueError),
            (arr(2), ValueError),
        ):
            with pytest.raises(error):
                program(*args[:k], wrong, *args[k + 1 :])
        with pytest.raises((TypeError, ValueError)):
            program(*args[:k], "array", *args[k + 1 :])


def test_cond():
    def f(c, x, y):
        t = type_of(arr(5))
        then = sub([t, t], lambda a, b: (P.tanh(a), b))
        orelse = sub([t, t], lambda a, b: (a * b, a))
        return emit(x, "cond", c, x, y, then=then, orelse=orelse)

    x, y = arr(5), arr(5)
    check(f, True, x, y)
    check(f, False, x, y)

    def g(c, x):
        s = type_of(1.0)
        return emit(x, "cond", c, x, then=sub([s], lambda a: a * 2.0), orelse=sub([s], lambda a: P.exp(a)))

    check(g, True, 3.0)
    check(g, False, 3.0)


def test_while_scalars():
    def f(x, n):
        types = [type_of(1.0), type_of(1), type_of(1)]
        cond = sub(types, lambda a, i, n: P.lt(i, n))
        body = sub(types, lambda a, i, n: (P.sin(a) * 1.5, i + 1))
        return emit(x, "while_loop", x, 0, n, cond=cond, body=body, carried=2)

    check(f, 0.3, 25)
    check(f, 0.3, 0)


def test_loops_over_arrays():
    n = 17
    t, i64 = type_of(arr(n)), type_of(1)

    def power(x, steps):  # in place
        body = sub([i64, t], lambda i, a: (P.tanh(a) * 1.1,))
        return emit(x, "for_loop", 0, steps, 1, x, body=body, carried=1)

    check(power, arr(n), 5)
    check(power, arr(n), 0)

    def swap(x, y, steps):  # each result is the other's old contents
        body = sub([i64, t, t], lambda i, a, b: (b, a))
        return emit(x, "for_loop", 0, steps, 1, x, y, body=body, carried=2)

    check(swap, arr(n), arr(n), 3)

    def coupled(x, y, steps):
        body = sub([i64, t, t], lambda i, a, b: (a + b * 0.5, a - b))
        return emit(x, "for_loop", 0, steps, 1, x, y, body=body, carried=2)

    check(coupled, arr(n), arr(n), 4)

    def shifting(x, steps):  # reads other elements than it writes
        body = sub([i64, t], lambda i, a: (P.flip(a, axes=(0,)) + a,))
        return emit(x, "for_loop", 0, steps, 1, x, body=body, carried=1)

    check(shifting, arr(n), 3)

    def keeps(x, steps):  # one result is another's old contents
        body = sub([i64, t, t], lambda i, a, b: (P.exp(P.neg(P.abs(a))), a))
        return emit(x, "for_loop", 0, steps, 1, x, x, body=body, carried=2)

    check(keeps, arr(n), 3)

    def sums(x, steps):
        f32 = type_of(np.float32(1))
        body = sub([i64, f32, t], lambda i, s, a: (s + P.reduce_sum(a * a, axes=(0,)) * P.cast(i, dtype="float32"),))
        return emit(x, "for_loop", 2, steps, 3, np.float32(0), x, body=body, carried=1)

    check(sums, arr(n), 12)


def test_rows_are_views():
    table = arr(20, 9)

    def f(x, n):
        i64, t, row = type_of(1), type_of(table), type_of(arr(9))
        body = sub([i64, row, t], lambda i, acc, a: (acc + P.dynamic_index(a, i, axis=0),))
        zero = P.broadcast_to(x.const(0.0), shape=(9,))
        return emit(x, "for_loop", 0, n, 1, zero, x, body=body, carried=1)

    check(f, table, 20)


def test_backward_ranges():
    def f(x, start, stop, step):
        i64 = type_of(1)
        return emit(x, "for_loop", start, stop, step, x, body=sub([i64, i64], lambda i, a: (a * 3 + i,)), carried=1)

    for r in [(10, 0, -1), (10, 0, -3), (0, 10, 3), (5, 5, 1), (5, 2, 1), (2, 5, -1), (-5, 6, 4)]:
        check(f, 1, *r)


def test_results_that_take_the_place_of_operands():
    # Reductions stand beside them: one function's promise about aliases must not reach the others.
    def f(x, w, table, order):
        z = P.dot(x, w, transpose_b=True)
        picked = P.take(table, order, axis=0)
        d = z - P.reduce_max(z, axes=(1,), keepdims=True)
        e = P.exp(d)
        logs = d - P.log(P.reduce_sum(e, axes=(1,), keepdims=True))
        return P.reduce_sum(picked * logs, axes=(0, 1)), P.reduce_sum(picked * e, axes=(1,))

    order = RNG.permutation(64)
    table = np.eye(10, dtype="float32")[RNG.integers(0, 10, 64)]
    check(f, arr(64, 50), arr(10, 50) * np.float32(0.1), table, order, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scale", [None, 2.0])
def test_temporaries_without_array_arguments(scale):
    """The arena lies in the state area, which such a program has no other use for."""

    @relay
    def products():
        x = np.arange(3)
        return x * np.sum(x)

    @relay
    def scaled(s):
        x = np.arange(3.0)
        return x * np.sum(x) * s

    np.testing.assert_array_equal(
        products() if scale is None else scaled(scale), [0, 3, 6] if scale is None else [0, 6, 12]
    )


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0), (2, 17, 9), (3, 1, 15), (1, 16, 33)])
def test_kernels_of_empty_and_odd_shapes(shape):
    @relay
    def f(x):
        moved = np.transpose(x, (2, 0, 1)) + 1.0, np.flip(x) * 2.0, np.concatenate((x, x + 1.0), axis=2)
        return (
            np.sum(x, axis=0),
            np.prod(x, axis=1),
            np.sum(x * 2.0, axis=2),
            np.all(x > 0.5, axis=1),
            np.sum(x),
            *moved,
        )

    x = np.random.default_rng(0).random(shape)
    for got, want in zip(f(x), f.__wrapped__(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
        assert got.shape == want.shape and got.dtype == want.dtype


@pytest.mark.parametrize("n", [14, 30, 64])
def test_a_row_of_a_part_is_read_without_division(n):
    """A slice and a reshape that only adds or drops axes of size 1: an offset, whatever the loops over the row are."""
    x = arr(3, 2, 4, n, dtype="float64")

    def rows(a, i):
        layer = P.dynamic_index(a, i, axis=0)
        part = P.reshape(P.slice(layer, starts=(1, 0, 0), sizes=(1, 4, n), steps=(1, 1, 1)), shape=(4, n))
        row = P.reshape(P.slice(part, starts=(2, 0), sizes=(1, n), steps=(1, 1)), shape=(n,))
        return P.exp(row) * row

    check(rows, x, 2)
    program, _ = compile_(rows, x, 2)
    assert " // " not in str(program.tir)
