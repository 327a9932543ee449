"""Sorting in machine code: every dtype, by merging and by digits, to the bit as NumPy's stable sort."""

import numpy as np
import pytest

from myia_relay import grad, relay

RNG = np.random.default_rng(5)
FLOATS = ("float16", "float32", "float64")


def both(x):
    return np.sort(x), np.argsort(x, kind="stable")


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of the whole range, with ties; among floats with both zeros, infinities, and NaN of both signs."""
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    if dtype not in FLOATS:
        ends = np.iinfo(dtype)
        x = RNG.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)
        return np.where(RNG.random(shape) < 0.2, np.asarray(7, dtype), x)
    x = RNG.normal(size=shape).astype(dtype)
    for special in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan):
        x[RNG.random(shape) < 0.08] = special
    return x


@pytest.mark.parametrize("dtype", (*FLOATS, *"bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()))
def test_as_numpy_to_the_bit(dtype):
    f = relay(both)
    for shape in (
        (0,),
        (1,),
        (2,),
        (15,),
        (16,),
        (17,),
        (33,),
        (300,),
        (383,),
        (384,),
        (3000,),
        (3, 40),
        (2, 2, 500),
        (0, 3),
        (3, 0),
    ):
        x = numbers(dtype, shape)
        for got, expected in zip(f(x), (np.sort(x, kind="stable"), np.argsort(x, kind="stable")), strict=True):
            assert got.dtype == expected.dtype and got.tobytes() == expected.tobytes(), shape


def test_lengths_that_values_decide():
    def f(x, n: int):
        y = x[:n]
        return np.sort(y), np.argsort(y, kind="stable"), np.median(y)

    f, x = relay(f), numbers("float64", (900,))
    x = x[~np.isnan(x)]
    for n in (1, 5, 100, 383, 384, 700):
        got = f(x, n)
        for g, e in zip(got, (np.sort(x[:n]), np.argsort(x[:n], kind="stable"), np.median(x[:n])), strict=True):
            np.testing.assert_array_equal(g, e)


def test_integers_that_share_digits():
    x = np.array([3, 1, 2, 3, 1, 0] * 100) * 65536
    got = relay(both)(x)
    np.testing.assert_array_equal(got[0], np.sort(x))
    np.testing.assert_array_equal(got[1], np.argsort(x, kind="stable"))


@pytest.mark.parametrize("executor", ("native", "python", "interpreter"))
def test_derivatives_follow_the_elements(executor):
    def f(x):
        return np.sum(np.sort(x, axis=0) ** 3 * np.arange(12.0).reshape(4, 3))

    x = RNG.normal(size=(4, 3))
    order = np.argsort(x, axis=0)
    expected = np.empty((4, 3))
    np.put_along_axis(expected, order, 3 * np.sort(x, axis=0) ** 2 * np.arange(12.0).reshape(4, 3), 0)
    np.testing.assert_allclose(grad(relay(executor=executor)(f))(x), expected)
    second = grad(relay(executor=executor)(lambda x: np.sum(grad(f)(x))))(x)
    np.put_along_axis(expected, order, 6 * np.sort(x, axis=0) * np.arange(12.0).reshape(4, 3), 0)
    np.testing.assert_allclose(second, expected)
