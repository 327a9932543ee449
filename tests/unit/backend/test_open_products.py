"""Products whose number of rows only a run tells: one compilation for all numbers of rows, in all executors and orientations."""

import numpy as np
import pytest

from myia_relay import Float32, Float64, Tensor, relay
from myia_relay.backend.tvm.kernels import opaque
from myia_relay.backend.tvm.kernels.products import open_rows
from myia_relay.backend.tvm.tir import pipeline

RNG = np.random.default_rng(6)
ROWS = (0, 1, 2, 7, 8, 9, 15, 16, 23, 64, open_rows.MANY + 1)
TYPES = {"float32": Float32, "float64": Float64}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(open_rows, "WORK", 1)
    monkeypatch.setattr(opaque, "PARALLEL_FLOPS", 100_000)  # both numbers of threads occur
    monkeypatch.setattr(opaque, "PARALLEL_BYTES", 100_000)
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
