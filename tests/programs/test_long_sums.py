"""Sums of many numbers are as exact as NumPy's: rounding errors do not grow with the length. And counts beyond half precision."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float32, Tensor, grad, jvp, relay

N = 300_007
VECTOR = Tensor[Float32, ("n",)]


def total(x):
    return np.sum(x)


def average(x):
    return np.mean(x)


def squares(x):
    return np.sum(x * x)


def deviation(x):
    return np.std(x)


def length(x):
    return np.linalg.norm(x)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("f", [total, average, squares, deviation, length])
def test_of_vectors(f, dtype, executor):
    x = np.full(N, 0.1, dtype)
    x[::3] = 0.7
    if dtype == "float16" and f is not average and f is not deviation:
        x = (x / 10).astype(dtype)
    want = f(x.astype(np.float64))
    got = float(relay(f, executor=executor)(x))
    tolerance = {"float16": 1e-3, "float32": 4e-7, "float64": 1e-14}[dtype]
    if f is length and dtype == "float64":
        tolerance = 2e-13  # NumPy's own norm, by a BLAS with one thread, is off by 7e-14
    np.testing.assert_allclose(got, want, rtol=tolerance)


def of_any_length(x: VECTOR):
    return np.sum(x)


def test_of_lengths_that_a_run_tells():
    f = relay(of_any_length)
    for n in (0, 1, 17, 511, 512, 1024, 1025, 4099, N):
        x = np.full(n, 0.1, np.float32)
        np.testing.assert_allclose(f(x), np.sum(x.astype(np.float64)), rtol=4e-7)


def rows(x):
    return np.sum(x, axis=0)


def columns(x):
    return np.sum(x, axis=-1)


def outer_axes(x):
    return np.sum(x, axis=(0, 2))


@pytest.mark.parametrize("f, shape", [(rows, (70_001, 3)), (columns, (3, 70_001)), (outer_axes, (301, 5, 99))])
def test_along_axes(f, shape):
    x = np.full(shape, 0.1, np.float32)
    np.testing.assert_allclose(relay(f)(x), f(x.astype(np.float64)), rtol=4e-7)


@pytest.mark.parametrize("f, shape", [(total, (9000,)), (rows, (9000, 2)), (columns, (2, 9000))])
def test_infinities_and_nans(f, shape):
    compiled = relay(f)
    for values in ([np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [1e308, 1e308]):
        x = np.ones(shape)
        for k, value in enumerate(values):
            x[{total: 100 + 4000 * k, rows: (700 + k, 0), columns: (0, 700 + k)}[f]] = value
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(compiled(x), f(x))


def largest(x):
    return np.max(x)


def test_ties_beyond_half_precision(executor):
    x = np.ones(70_000, np.float16)

    def tangent(x):
        return jvp(largest, (x,), (np.ones_like(x),))[1]

    np.testing.assert_array_equal(relay(grad(largest), executor=executor)(x), np.full(70_000, 1 / 70_000, np.float16))
    assert relay(tangent, executor=executor)(x) == 1.0


def test_means_of_losses_beyond_half_precision(executor):
    x = np.ones(70_000, np.float16)
    assert relay(lambda x: relay.mse_loss(x, np.zeros_like(x)), executor=executor)(x) == 1.0
    assert relay(relay.global_avg_pool, executor=executor)(np.ones((1, 270, 270), np.float16)) == 1.0


SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 3)]
ORDERS = [None, 1, 2, 3, 0, -1, -2, 0.5, np.inf, -np.inf, "fro", "nuc"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_norms_of_nothing(order, axis):
    def norm(x):
        return np.linalg.norm(x, ord=order, axis=axis)

    for shape in SHAPES:
        x = np.zeros(shape)
        try:
            with np.errstate(all="ignore"):
                want = norm(x)
        except Exception:
            with pytest.raises(Exception):  # noqa: B017  NumPy's is one of several
                relay(norm, executor="interpreter")(x)
        else:
            got = relay(norm, executor="interpreter")(x)
            np.testing.assert_array_equal(got, want)
            assert np.shape(got) == np.shape(want)
