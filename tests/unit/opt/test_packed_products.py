"""Matrices that are packed before a loop: which ones, that values and gradients stay, and the kernels for all shapes of tiles."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay, value_and_grad
from myia_relay.backend.tvm.kernels import opaque
from myia_relay.backend.tvm.tir import pipeline
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.kernels import packed_products
from myia_relay.opt.pipeline import plan_lanes, plan_memory
from tests.unit.backend.native_util import P, check

RNG = np.random.default_rng(5)
N = 40


def weights(*shape, dtype=np.float64):
    return (RNG.standard_normal(shape) / shape[-1] ** 0.5).astype(dtype)


@relay
def batches(h, w, u):
    for i in range(5):
        h = np.tanh(h @ w.T + (h * i) @ u)
    return h


@relay
def loss(h, w, u):
    return np.sum(batches(h, w, u) ** 2)


@relay
def alternating(h, w, u):
    """The matrix of a product is another one in each iteration; a vector, and a product of the matrix by something, stay."""
    for i in range(6):
        h = np.tanh(h @ (w * i)) + u @ h[0]
        w = w + w @ u.T * 0.1
    return h


@relay
def short(h, w):
    for _i in range(2):
        h = np.tanh(h @ w)
    return h


@relay
def nested(h, w):
    for _i in range(4):
        for _j in range(4):
            h = np.tanh(h @ w + h @ w.T)
        w = w * 0.9
    return h


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(packed_products, "WORK", 1)
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")  # its keys do not have these


def names(f, *args):
    graph = plan_lanes(plan_memory(f.ir(*args, stage="optimized").graph))
    return [applied(n) for g in all_graphs(graph) for n in g.nodes]


H, W, U = weights(6, N), weights(N, N), weights(N, N)


@pytest.mark.parametrize(
    "f, args, packs, products",
    [(batches, (H, W, U), 2, 2), (alternating, (H, W, U), 1, 1), (short, (H, W), 0, 0), (nested, (H, W), 2, 2)],
)
def test_which_are_packed(f, args, packs, products):
    found = names(f, *args)
    assert (found.count("pack_columns"), found.count("packed_dot")) == (packs, products)


def test_gradients_are_products_with_packed_matrices_too():
    found = names(relay(value_and_grad(loss)), H, W, U)
    assert found.count("packed_dot") >= 4 and found.count("pack_columns") == 4


def test_few_rows_and_many_are_left_alone():
    assert "packed_dot" not in names(batches, weights(4, N), W, U)
    assert "packed_dot" not in names(batches, weights(packed_products.ROWS[1] + 1, N), W, U)


def test_packing_can_be_left_out(monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "packed_products")
    assert "packed_dot" not in names(batches, H, W, U)


def test_narrow_vectors_do_without():
    graph = plan_memory(batches.ir(H, W, U, stage="optimized").graph)
    assert "packed_dot" not in [applied(n) for g in all_graphs(plan_lanes(graph, wide=False)) for n in g.nodes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f, count", [(batches, 3), (alternating, 3), (short, 2), (nested, 2)])
@pytest.mark.sampled(3)
def test_values(f, count, dtype):
    args = [x.astype(dtype) for x in (H, W, U)[:count]]
    wanted = f.interpret(*args)
    tol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(f(*args), wanted, rtol=tol, atol=tol)
    np.testing.assert_allclose(relay(f.__wrapped__, executor="python")(*args), wanted, rtol=tol, atol=tol)


def test_gradients():
    f = relay(value_and_grad(loss))
    value, gradient = f(H, W, U)
    expected, wanted = f.interpret(H, W, U)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-10, atol=1e-13)
    step = 1e-6 * (direction := weights(6, N))
    difference = (loss(H + step, W, U) - loss(H - step, W, U)) / 2e-6
    assert np.sum(gradient * direction) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, k, n", [(5, 32, 32), (20, 33, 70), (13, 47, 31), (25, 64, 96), (1, 40, 65), (12, 1, 3)])
@pytest.mark.sampled(12)
def test_kernels(m, k, n, dtype, tasks, monkeypatch):
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 1 if tasks > 1 else 1e9)
    monkeypatch.setattr(opaque, "PARALLEL_BYTES", 1 if tasks > 1 else 1e9)
    a, b = (RNG.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    b[0, 0], b[-1, -1] = np.inf, np.nan
    width = 2 * pipeline.vector_bytes() // b.itemsize
    tol = 1e-4 if dtype == "float32" else 1e-11

    def product(x, y, transposed):
        return P.packed_dot(x, P.pack_columns(y, transposed=transposed, width=width), columns=n, width=width)

    with np.errstate(invalid="ignore"):
        check(lambda x, y: product(x, y, False), a, b, rtol=tol, atol=tol)
        check(lambda x, y: product(x, y, True), a, np.ascontiguousarray(b.T), rtol=tol, atol=tol)
