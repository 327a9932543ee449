"""Products, convolutions, pooling, positions and scatters of native programs, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.backend.tvm.kernels import opaque, skinny_products
from myia_relay.backend.tvm.kernels.products import panels
from myia_relay.backend.tvm.tir import pipeline
from myia_relay.backend.tvm.tir import threads as workers
from tests.unit.backend.native_util import P, check, compile_

pytestmark = pytest.mark.sampled(2)

RNG = np.random.default_rng(2)


def arr(*shape, dtype="float32"):
    if "int" in dtype:
        return RNG.integers(-9, 9, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 1, 1), (70, 90, 80), (4, 0, 3), (0, 2, 3), (200, 20, 150)])
def test_dot(dtype, flags, sizes):
    m, k, n = sizes
    if dtype in ("float16", "int64") and m > 60:
        pytest.skip("plain loops")
    a = arr(*((k, m) if flags[0] else (m, k)), dtype=dtype)
    b = arr(*((n, k) if flags[1] else (k, n)), dtype=dtype)
    tol = {"float32": 1e-4, "float64": 1e-11, "int64": 0, "float16": 2e-2}[dtype]
    check(lambda x, y: P.dot(x, y, transpose_a=flags[0], transpose_b=flags[1]), a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("m, n, k", [(9, 48, 48), (16, 49, 33), (23, 95, 64), (44, 200, 47), (129, 130, 51)])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.sampled(20)
def test_products_by_panels(dtype, transposed, m, n, k, threads, monkeypatch):
    monkeypatch.setattr(panels, "WORK", 1)
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 1 if threads > 1 else 1e9)
    assert panels.is_by_panels(m, n, k, False, dtype) is (pipeline.vector_bytes() == 64)
    a, b = arr(m, k, dtype=dtype), arr(*((n, k) if transposed else (k, n)), dtype=dtype)
    b[0, 0], b[-1, -1] = np.inf, np.nan
    tol = {"float32": 1e-4, "float64": 1e-11}[dtype]
    before = workers.count()
    workers.configure(threads)
    try:
        check(lambda x, y: P.dot(x, y, transpose_a=False, transpose_b=transposed), a, b, rtol=tol, atol=tol)
    finally:
        workers.configure(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(
    "few, side, length",
    [(8, 48, 48), (1, 48, 33), (2, 49, 64), (13, 95, 47), (64, 64, 100), (128, 130, 51), (300, 70, 64)],
)
@pytest.mark.sampled(14)
def test_products_of_few_rows(dtype, flags, few, side, length, monkeypatch):
    monkeypatch.setattr(skinny_products, "WORK", 1)
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 1 if few in (13, 64) else 1e9)
    m, n, k = (length, side, few) if flags[0] else (few, side, length)
    a = arr(*((k, m) if flags[0] else (m, k)), dtype=dtype)
    b = arr(*((n, k) if flags[1] else (k, n)), dtype=dtype)
    b[0, 0], b[-1, -1] = np.inf, np.nan
    a[a > 1.5] = 0.0
    tol = {"float32": 1e-4, "float64": 1e-11}[dtype]

    def product(x, y):
        return P.dot(x, y, transpose_a=flags[0], transpose_b=flags[1])

    with np.errstate(invalid="ignore"):
        check(product, a, b, rtol=tol, atol=tol)
    program, _ = compile_(product, a, b)
    names = {var.name_hint.split("_")[-1] for var in program.tir.functions}
    if pipeline.vector_bytes() == 64 and k >= skinny_products.LEAST and not (flags[0] and few > skinny_products.FEW):
        by_dots = flags == (False, True) and few < skinny_products.TURNED
        assert names & {"columns", "dots"} == ({"dots"} if by_dots else {"columns"})


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_batched_dot(flags):
    a = arr(3, *((5, 4) if flags[0] else (4, 5)))
    b = arr(3, *((6, 5) if flags[1] else (5, 6)))
    check(lambda x, y: P.batched_dot(x, y, transpose_a=flags[0], transpose_b=flags[1]), a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("m, n, k", [(16, 32, 64), (9, 77, 37), (33, 50, 48)])
@pytest.mark.sampled(9)
def test_batches_of_products_of_few_rows(m, n, k, flags, tasks, monkeypatch):
    monkeypatch.setattr(skinny_products, "WORK", 1)
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 1 if tasks > 1 else 1e9)
    a = arr(7, *((k, m) if flags[0] else (m, k)))
    b = arr(7, *((n, k) if flags[1] else (k, n)))

    def product(x, y):
        return P.batched_dot(x, y, transpose_a=flags[0], transpose_b=flags[1])

    check(product, a, b, rtol=1e-4, atol=1e-4)
    program, _ = compile_(product, a, b)
    if pipeline.vector_bytes() == 64:
        assert {var.name_hint.split("_")[-1] for var in program.tir.functions} & {"columns", "dots"}


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("shape", [(4, 5), (500, 800), (1, 9), (0, 3), (3, 0)])
def test_matvec(transpose, shape):
    a = arr(*shape)
    x = arr(shape[0] if transpose else shape[1])
    check(lambda m, v: P.tanh(P.matvec(m, v * 0.1, transpose=transpose)), a, x, rtol=1e-4, atol=1e-4)


CONVS = [
    dict(n=1, c=1, o=20, size=(28, 28), k=(5, 5)),
    dict(n=3, c=4, o=6, size=(9, 8), k=(3, 2), strides=(2, 1), padding=((1, 0), (0, 2))),
    dict(n=2, c=4, o=6, size=(7, 7), k=(3, 3), groups=2),
    dict(n=5, c=3, o=4, size=(6, 6), k=(1, 1)),
    dict(n=64, c=1, o=20, size=(28, 28), k=(5, 5)),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", range(len(CONVS)))
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_conv(case, dtype):
    s = dict(CONVS[case])
    n, c, o, size, k = (s.pop(key) for key in ("n", "c", "o", "size", "k"))
    if dtype == "float16" and n * o > 100:
        pytest.skip("plain loops")
    tol = {"float32": 1e-3, "float64": 1e-10, "float16": 1e-1}[dtype]
    x, w = arr(n, c, *size, dtype=dtype), arr(o, c // s.get("groups", 1), *k, dtype=dtype)
    y = check(lambda a, b: P.conv2d(a, b, **s), x, w, rtol=tol, atol=tol)
    dy = arr(*y.shape, dtype=dtype)
    check(lambda g, b: P.conv2d_grad_input(g, b, in_shape=size, **s), dy, w, rtol=tol, atol=tol)
    check(lambda a, g: P.conv2d_grad_weight(a, g, kernel=k, **s), x, dy, rtol=tol, atol=tol * 10)


POOLS = [
    dict(ksize=(2, 2), strides=(2, 2)),
    dict(ksize=(3, 3), strides=(1, 2)),
    dict(ksize=(3, 2), strides=(2, 1), padding=((1, 1), (0, 1))),
    dict(ksize=(2, 2), strides=(2, 2), padding=((2, 0), (0, 2))),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", range(len(POOLS)))
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_pool(case, dtype):
    s = POOLS[case]
    x = np.round(arr(2, 3, 8, 10, dtype=dtype), 0)  # with ties
    y = check(lambda a: P.max_pool(a, **s), x)
    dy = arr(*y.shape, dtype=dtype)
    check(lambda a, g: P.max_pool_grad(a, g, **s), x, dy, rtol=1e-2 if dtype == "float16" else None)
    if case < 3:
        check(lambda a, g: P.max_pool_gather(a, g, **s), x, arr(*x.shape, dtype=dtype))
    tol = 1e-2 if dtype == "float16" else 1e-5
    check(lambda a: P.avg_pool(a, **s), x, rtol=tol, atol=tol)
    check(lambda g: P.avg_pool_grad(g, in_shape=(8, 10), **s), dy, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_positions(dtype):
    x = arr(4, 5, 6) > 0 if dtype == "bool" else np.round(arr(4, 5, 6)).astype(dtype)
    if dtype == "float32":
        x[1, 2, 3] = np.nan
    for axis in range(3):
        check(lambda a, axis=axis: (P.argmax(a, axis=axis), P.argmin(a, axis=axis)), x)
    check(lambda a: P.argmax(a, axis=0), x[0, 0])


def test_cumsum_and_scatter():
    x = arr(4, 5, 6)
    for axis in range(3):
        for reverse in (False, True):
            check(
                lambda a, axis=axis, reverse=reverse: P.cumsum(a, axis=axis, reverse=reverse), x, rtol=1e-5, atol=1e-5
            )
    i = np.array([[0, 3], [3, 9]])
    check(lambda a, k, u: P.scatter_add(a, k, u, axis=1), x, i, arr(4, 2, 2, 6), rtol=1e-5, atol=1e-5)
    check(lambda a, k, u: P.scatter_add(a, k, u, axis=2), x, 2, arr(4, 5), rtol=1e-5, atol=1e-5)
    check(lambda a, k, u: P.scatter_add(a, k, u, axis=0), arr(100, 40), np.arange(7), arr(7, 40), rtol=1e-5, atol=1e-5)


AT = np.array([3, 0, 3, 9, 5])
SCATTERS = {  # (functions of a vector of 12 and 5 updates, how many arrays of the arena they need)
    "into zeros": (lambda x, u: P.scatter_add(x * 0.0, x.const(AT), u, axis=0), 0),
    "into zeros that are reshaped": (lambda x, u: P.reshape(P.scatter_add(x * 2.0, x.const(AT), u, axis=0), shape=(3, 4)), 0),
    "twice": (lambda x, u: P.scatter_add(P.scatter_add(x * 2.0, x.const(AT), u, axis=0), x.const(AT + 1), u, axis=0), 0),
    "into an argument": (lambda x, u: P.scatter_add(x, x.const(AT), u, axis=0), 0),
    "into what is read behind": (lambda x, u: (lambda y: P.scatter_add(y, x.const(AT), u, axis=0) * y)(x * 2.0), 2),
    "into what is returned too": (lambda x, u: (lambda y: (P.scatter_add(y, x.const(AT), u, axis=0), y))(x * 2.0), 0),
    "of what it is added to": (
        lambda x, u: (lambda y: P.scatter_add(y, x.const(np.arange(12)[::-1].copy()), y, axis=0))(P.tanh(x)),
        1,
    ),
    "of a part of it": (
        lambda x, u: (lambda y: P.scatter_add(
            P.reshape(y, shape=(12,)), x.const(AT[:4]), P.dynamic_index(y, x.const(np.int64(1)), axis=0), axis=0
        ))(P.reshape(P.tanh(x), shape=(3, 4))),
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_in_place(name):
    """What nobody looks at any more is added to where it is."""
    f, arrays = SCATTERS[name]
    x, u = arr(12, dtype="float64"), arr(5, dtype="float64")
    before = x.copy()
    check(f, x, u, rtol=1e-12, atol=1e-12)
    program, _ = compile_(f, x, u)
    assert np.array_equal(x, before)
    assert program.arena <= arrays * 128


@pytest.mark.parametrize("dtype", ("float64", "float32", "int64", "int32", "uint32"))
def test_positions_of_extremes_of_long_rows(dtype):
    """By lanes: the first of equal ones, the first NaN, whichever lane has it; and the rest of a row."""
    rng = np.random.default_rng(2)
    f = relay(lambda x: (np.argmax(x), np.argmin(x), np.argmax(np.reshape(x, (3, -1)), axis=1)))
    for n in (48, 51, 66, 303):
        for k in range(4):
            x = rng.integers(0, 4, n).astype(dtype)
            if "float" in dtype and k:
                x[rng.integers(0, n, k)] = (np.nan, -np.inf, np.inf)[k - 1]
            if k == 3:
                x[:] = x[0]
            for got, expected in zip(
                f(x), (np.argmax(x), np.argmin(x), np.argmax(np.reshape(x, (3, -1)), axis=1)), strict=True
            ):
                np.testing.assert_array_equal(got, expected)
