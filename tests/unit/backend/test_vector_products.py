"""Products of a large matrix and a vector, or a few: values, in both orientations, backwards in loops, on several threads."""

import numpy as np
import pytest

from myia_relay import Any, Float32, Tensor, relay
from myia_relay.backend.tvm.tir import pipeline

RNG = np.random.default_rng(4)
ROWS, COLUMNS = 1303, 251  # no multiples of a vector, more than LARGE in bytes


@relay
def by_columns(w, x):
    return w @ x


@relay
def by_rows(x, w):
    return x @ w


@relay
def by_transposed(x, w):
    return x @ w.T


def close(found, expected, dtype):
    assert found.dtype == dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=40 * np.finfo(dtype).eps * np.max(np.abs(expected)))


@pytest.mark.parametrize("without", ["", "skinny_products"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [None, 1, 2, 3, 4, 5])
@pytest.mark.sampled(8)
def test_values(dtype, count, without, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", without)
    w = RNG.standard_normal((ROWS, COLUMNS)).astype(dtype)
    shape = (COLUMNS,) if count is None else (count, COLUMNS)
    x = RNG.standard_normal(shape).astype(dtype)
    expected = x.astype(np.float64) @ w.T.astype(np.float64)
    close(by_transposed(x, w), expected, dtype)
    close(by_rows(x, np.ascontiguousarray(w.T)), expected, dtype)
    close(by_columns(w, np.ascontiguousarray(x.T)), expected.T, dtype)
    close(relay(lambda w, x: w.T @ x)(np.ascontiguousarray(w.T), np.ascontiguousarray(x.T)), expected.T, dtype)


@pytest.mark.parametrize(
    "dtype, k", [(np.float32, 2048), (np.float32, 3136 + 7), (np.float64, 1024), (np.float64, 1101)]
)
@pytest.mark.parametrize("n", [8 * 67, 8 * 40 + 3])
def test_long_rows_are_read_one_after_the_other(dtype, k, n):
    w, x = RNG.standard_normal((n, k)).astype(dtype), RNG.standard_normal(k).astype(dtype)
    close(by_columns(w, x), w.astype(np.float64) @ x, dtype)
    close(by_transposed(x[None], w), (w.astype(np.float64) @ x)[None], dtype)


def test_one_row_or_column_of_open_sizes():
    @relay
    def product(a: Tensor[Float32, (Any, "k")], b: Tensor[Float32, ("k", Any)]):
        return a @ b

    for m, k, n in [(1, 40, 7), (7, 40, 1), (1, 3, 1), (1, 1, 5)]:
        a, b = (RNG.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        close(product(a, b), a @ b, np.float32)


@pytest.mark.parametrize("count, n", [(None, 530), (3, 530), (None, 2050)])
def test_every_other_iteration_of_a_loop_gives_the_same(count, n):
    w = (RNG.standard_normal((n, n)) / n**0.5).astype(np.float32)
    x = RNG.standard_normal((n,) if count is None else (count, n)).astype(np.float32)

    @relay
    def powers(x, w):
        total = np.zeros_like(x)
        for i in range(5):
            for j in range(3):
                x = x @ w.T
                total = total + x * np.float32(i + 2 * j)
        return total

    power, expected = x.astype(np.float64), np.zeros(x.shape)
    for i in range(5):
        for j in range(3):
            power = power @ w.T.astype(np.float64)
            expected = expected + power * (i + 2 * j)
    close(powers(x, w), expected, np.float32)

    @relay
    def repeated(x, w):
        total = np.zeros_like(x)
        first = x @ w.T
        for i in range(3):  # so few that the products stay in the loop
            total = np.maximum(total, np.abs((x + np.float32(0.0) * np.float32(i)) @ w.T - first))
        return total

    assert not np.any(repeated(x, w))  # to the bit, forwards and backwards


def test_the_kernel_is_used():
    if pipeline.vector_bytes() < 64:
        pytest.skip("needs vectors of 512 bits")
    w, x = np.ones((ROWS, COLUMNS), np.float32), np.ones(COLUMNS, np.float32)
    program = str(by_columns.tir(w, x))
    assert "dots" in program and "gemv" not in program
    program = str(by_columns.tir(np.ones((512, 3136), np.float32), np.ones(3136, np.float32)))
    assert "dot" in program and "dots" not in program and "gemv" not in program
