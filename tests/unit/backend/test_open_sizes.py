"""Kernels of sizes that only a run tells: one compilation for all of them, in all executors, on one thread and on several."""

import numpy as np
import pytest

from myia_relay import Float32, Float64, Tensor, relay
from myia_relay.backend.tvm.kernels import nests, opaque
from myia_relay.backend.tvm.kernels.products import panels
from myia_relay.backend.tvm.tir import pipeline

RNG = np.random.default_rng(6)
ROWS = (0, 1, 2, 7, 8, 9, 15, 16, 23, 64, panels.MANY + 1)
MATRIX, VECTOR = Tensor[Float64, ("m", "n")], Tensor[Float64, "n"]
TYPES = {"float32": Float32, "float64": Float64}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(panels, "WORK", 1)
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 100_000)  # both numbers of threads occur
    monkeypatch.setattr(opaque, "PARALLEL_BYTES", 100_000)
    monkeypatch.setattr(nests, "PARALLEL_WORK", 2_000)
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")  # its keys do not have these


def product(k, dtype, turned, executor="native"):
    """A function of any number of rows of `k` numbers, and a matrix."""

    def straight(x, w):
        return x @ w

    def transposed(x, w):
        return x @ w.T

    function = transposed if turned else straight
    function.__annotations__["x"] = Tensor[TYPES[dtype], ("m", k)]
    return relay(function, executor=executor)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype, k, n", [("float32", 37, 50), ("float32", 64, 96), ("float64", 40, 77)])
@pytest.mark.sampled(6)
def test_every_number_of_rows(dtype, k, n, turned):
    f, slow = product(k, dtype, turned), product(k, dtype, turned, "python")
    w = RNG.standard_normal((n, k) if turned else (k, n)).astype(dtype)
    tol = 40 * np.finfo(dtype).eps
    for m in ROWS:
        x = RNG.standard_normal((m, k)).astype(dtype)
        wanted = x.astype(np.float64) @ (w.T if turned else w).astype(np.float64)
        scale = np.max(np.abs(wanted), initial=1.0)
        for found in (f(x, w), slow(x, w), f.interpret(x, w)):
            assert found.dtype == dtype and found.shape == (m, n)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=tol * scale)
    assert f.cache_info().misses == 1


def test_infinities_stay_in_their_rows_and_columns():
    f = product(40, "float32", False)
    x, w = (RNG.standard_normal(s).astype("float32") for s in ((23, 40), (40, 70)))
    x[22, 0], w[1, 69] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(f(x, w), x @ w, rtol=1e-4, atol=1e-4)


def test_the_kernel_is_used():
    if pipeline.vector_bytes() < 64:
        pytest.skip("needs vectors of 512 bits")
    x, w = np.ones((3, 64), np.float32), np.ones((64, 96), np.float32)
    assert "columns" in str(product(64, "float32", False).tir(x, w))
    assert "turned" in str(product(64, "float32", True).tir(x, w.T.copy()))


def elementwise(x, y):
    return np.exp(x) * y + x[:, ::-1], x + 1.0


def reductions(x, y):
    return np.sum(x * y, axis=1), np.sum(np.abs(x), axis=0), np.max(np.tanh(x), axis=1, initial=-2.0), np.sum(x - y)


def stacks(x, y):
    stack = np.stack([x, x * y, y - x])
    return stack @ np.swapaxes(stack, 1, 2)


@pytest.mark.parametrize("function", [elementwise, reductions, stacks])
def test_a_run_chooses_the_threads(function):
    function.__annotations__ |= {"x": MATRIX, "y": VECTOR}
    f, slow = relay(function), relay(function, executor="python")
    for m, n in [(0, 3), (3, 0), (1, 1), (2, 9), (40, 33), (150, 21)]:
        args = RNG.standard_normal((m, n)), RNG.standard_normal(n)
        for found in (f(*args), slow(*args), f.interpret(*args)):
            for a, wanted in zip(found, function(*args), strict=True):
                np.testing.assert_allclose(a, wanted, rtol=1e-11, atol=1e-11)
    assert f.cache_info().misses == 1
