"""BLAS statements against NumPy: layouts, offsets, several workers at once; and the number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("scipy_openblas32")

from myia_relay import grad, relay
from myia_relay.backend.tvm.kernels import blas
from myia_relay.backend.tvm.tir import pipeline, threads
from myia_relay.backend.tvm.tir.block import Block

RNG = np.random.default_rng(0)


def build(params, b):
    return pipeline.build(pipeline.prim_func(params, b.stmt()))["main"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_x", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 3), (33, 65, 129)])
def test_gemm(shape, trans_a, trans_x, dtype):
    m, n, k = shape
    a = RNG.standard_normal((k, m) if trans_a else (m, k)).astype(dtype)
    x = RNG.standard_normal((n, k) if trans_x else (k, n)).astype(dtype)
    c = RNG.standard_normal((m, n)).astype(dtype)
    want = 0.5 * (a.T if trans_a else a) @ (x.T if trans_x else x) + 2.0 * c
    A, X, C = (pipeline.param(s, v.shape, dtype) for s, v in zip("axc", (a, x, c)))
    b = Block()
    blas.gemm(b, m, n, k, (A, 0), (X, 0), (C, 0), trans_a=trans_a, trans_x=trans_x, alpha=0.5, beta=2.0)
    build([A, X, C], b)(a, x, c)
    np.testing.assert_allclose(c, want, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_x", [False, True])
@pytest.mark.parametrize("shape", [(1003, 9, 11), (9, 1003, 11), (11, 9, 1003)])
def test_long_products_are_cut(shape, trans_a, trans_x, monkeypatch):
    monkeypatch.setattr(blas, "SMALL", 5000)
    monkeypatch.setattr(blas, "has_small_kernels", lambda: True)
    test_gemm(shape, trans_a, trans_x, "float64")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("n, k", [(1, 3), (16, 5), (37, 40), (50, 1)])
def test_syrk(n, k, trans, dtype):
    a = RNG.standard_normal((k, n) if trans else (n, k)).astype(dtype)
    c = np.full((n + 1) * n, np.nan, dtype)
    A, C = (pipeline.param(s, v.shape, dtype) for s, v in zip("ac", (a, c)))
    b = Block()
    blas.syrk(b, n, k, (A, 0), (C, n), trans=trans)
    build([A, C], b)(a, c)
    c = c.reshape(n + 1, n)
    np.testing.assert_allclose(
        c[1:], a.T @ a if trans else a @ a.T, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5
    )
    np.testing.assert_array_equal(c[1:], c[1:].T)
    assert np.isnan(c[0]).all()


def test_a_product_with_its_own_transpose_computes_a_half(monkeypatch):
    """Also of slices whose sizes a run tells, without elements, and differentiated; the result is symmetric to the bit."""
    monkeypatch.setattr(threads, "count", lambda: 1)

    def both(x, n):
        y = x[:, :n]
        return x @ x.T, x.T @ x, y @ y.T, y.T @ y

    x = RNG.standard_normal((70, 64))
    native = relay(both)
    for n in (64, 33, 1, 0):
        for found, want in zip(native(x, n), both(x, n)):
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(found, found.T)

    def loss(x):
        return np.sum((x.T @ x) ** 2)

    np.testing.assert_allclose(grad(loss)(x), 4.0 * x @ (x.T @ x), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trans", [False, True])
def test_gemv_with_offsets(dtype, trans):
    m, n = 13, 21
    a = RNG.standard_normal(3 + m * n).astype(dtype)
    x, y = RNG.standard_normal(40).astype(dtype), RNG.standard_normal(40).astype(dtype)
    matrix = a[3:].reshape(m, n).copy()
    wide, tall = (m, n) if trans else (n, m)
    want_y = y.copy()
    want_y[5 : 5 + tall] = (matrix.T if trans else matrix) @ x[2 : 2 + wide]
    A, X, Y = (pipeline.param(s, v.shape, dtype) for s, v in zip("axy", (a, x, y)))
    b = Block()
    blas.gemv(b, m, n, (A, 3), (X, 2), (Y, 5), trans=trans)
    build([A, X, Y], b)(a, x, y)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(y, want_y, rtol=tolerance, atol=1e-5)


def test_workers_call_at_once():
    """Batched products, one sample to a task, with offsets that depend on the loop."""
    threads.configure()
    batch, m, n, k = 64, 50, 64, 100
    a = RNG.standard_normal((batch, m, k)).astype("float32")
    x = RNG.standard_normal((batch, k, n)).astype("float32")
    c = np.full((batch, m, n), np.nan, "float32")
    A, X, C = (pipeline.param(s, v.shape, "float32") for s, v in zip("axc", (a, x, c)))
    b = Block()
    with b.loop(batch, "parallel") as i:
        blas.gemm(b, m, n, k, (A, i * (m * k)), (X, i * (k * n)), (C, i * (m * n)))
    f = build([A, X, C], b)
    for _ in range(20):
        f(a, x, c)
        np.testing.assert_allclose(c, a @ x, rtol=1e-3, atol=1e-4)
        c[:] = np.nan


def test_no_integers():
    b = Block()
    p = pipeline.param("p", (4,), "int32")
    with pytest.raises(ValueError, match="int32"):
        blas.gemm(b, 2, 2, 1, (p, 0), (p, 0), (p, 0))


@pytest.mark.parametrize(
    "env, want",
    [
        ({"TVM_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "2,1"}, 2),
        ({"OMP_NUM_THREADS": "4", "TVM_NUM_THREADS": "1"}, 1),
        ({}, None),
    ],
)
@pytest.mark.sampled(4)
def test_number_of_threads(env, want):
    """In a fresh process: TVM_NUM_THREADS, then OMP_NUM_THREADS, then the affinity mask."""
    code = """
import os
before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count()))
from myia_relay.backend.tvm.tir import pipeline, threads
from myia_relay.backend.tvm.tir.block import Block, const
n = threads.configure()
x = pipeline.param("x", (8,), "int32")
b = Block()
with b.loop(8, "parallel") as i:
    b.store(x, const(1, "int32"), i)
import numpy
data = numpy.zeros(8, "int32")
pipeline.build(pipeline.prim_func([x], b.stmt()))["main"](data)
assert data.all()
assert not hasattr(os, "sched_getaffinity") or os.sched_getaffinity(0) == before, "TVM pinned us"
print(n, threads.configure(2), threads.configure(1), len(before))
"""
    clean = {k: v for k, v in os.environ.items() if k not in ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "TVM_BIND_THREADS")}
    out = subprocess.run([sys.executable, "-c", code], env={**clean, **env}, capture_output=True, text=True, check=True)
    got, two, one, cpus = map(int, out.stdout.split())
    assert got == (cpus if want is None else want)
    assert (two, one) == (2, 1)  # a pool shrinks; where there was one thread, there was none


def test_a_negative_number_of_threads():
    with pytest.raises(ValueError, match="positive"):
        threads.configure(-1)
