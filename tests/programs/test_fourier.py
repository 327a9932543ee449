"""Fourier transforms and complex numbers in compiled code, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, Float64, Tensor, grad, relay, vmap
from tests.programs.cases import EXECUTORS, Cases, agree

case = Cases()
X = np.random.default_rng(0).normal(size=(4, 6))
Z = X[0] + 1j * X[1]
W = X[2] - 1j * X[3]


@case((X,), (X.astype(np.float32),), (X[:, :5],), (np.arange(12).reshape(3, 4),), (X[:, :1],), (X[1],))
def transforms(x):
    z = np.fft.fft(x)
    real = np.fft.rfft(x), np.fft.irfft(np.fft.rfft(x), x.shape[-1]), np.fft.irfft(z, 7), np.fft.rfft(x, 3)
    lengths = np.fft.fft(x, 8), np.fft.fft(x, n=3), np.fft.ifft(x, axis=0), np.fft.ifft(z, 5, norm="ortho")
    return z, np.fft.ifft(z), real, lengths, np.fft.fft(z, norm="forward"), np.fft.ifft(z, norm="forward")


@case((X,), (X + 1j * X[::-1],))
def several_axes(x):
    shapes = (
        np.fft.fft2(x),
        np.fft.ifft2(x),
        np.fft.fftn(x),
        np.fft.ifftn(x, axes=(0,)),
        np.fft.fftn(x, (3, 8), axes=(0, 1)),
    )
    return shapes, np.fft.fftshift(x), np.fft.ifftshift(x, 1), np.fft.fftshift(np.fft.fft(x), axes=(0,))


@case((7, 0.1), (8, 2.0), (1, 1.0))
def frequencies(n, d):
    return np.fft.fftfreq(n, d), np.fft.rfftfreq(n, d), np.fft.fftshift(np.fft.fftfreq(n))


@case((X[0],), (X.astype(np.float32)[0],))
def of_any_length(x):
    long = np.concatenate((x, x * 2, x**2, x + 1, x))
    return (
        np.fft.fft(long[:17]),
        np.fft.ifft(long[:29]),
        np.fft.rfft(long[:23]),
        np.fft.fft(long),
        np.fft.fft(long[:26]),
    )


@case((Z, W), (Z.astype(np.complex64), W.astype(np.complex64)), (Z.astype(np.complex64), W), (Z[2], W[3]))
def arithmetic(z, w):
    parts = (
        z.real,
        z.imag,
        np.real(z),
        np.imag(w),
        z.conj(),
        np.conj(w),
        np.abs(z),
        abs(w),
        np.angle(z),
        np.angle(w, True),
    )
    return parts, z + w, z - w, z * w, z / w, -z, z == w, z != w, z == z, z**2, z**-1, z**0, np.exp(z), np.square(z)


@case((Z, X[0]), (Z, X[0].astype(np.float32)), (Z.astype(np.complex64), X[0].astype(np.float32)))
@case((Z.astype(np.complex64), np.arange(6, dtype=np.int8)), (Z, np.arange(6)), (Z.astype(np.complex64), X[0]))
def with_real_numbers(z, x):
    reals = z + x, x + z, z - x, x - z, z * x, x * z, z / (x + 10), x / z, z == x
    return reals, 2 * z, z / 3, 1 - z, True + z, x * 1j, 1j + x, np.exp(-2j * x), x[1] * z, z[1] * x, 2j * z[0]


@case((Z, W))
def structure(z, w):
    m = z.reshape(2, 3)
    picked = z[0], z[-2:], z[np.array([0, 2])], z[z.real > 0], len(z), z.shape, z.ndim, z.size, m.T, m.sum(axis=0)
    products = m @ w[:3], m @ w.reshape(3, 2), X[:2, :3] @ w[:3]
    return picked, products, np.sum(z), z.mean(), np.roll(z, 2), np.where(z.real > 0, z, 0.0), m.ravel(), np.mean(m, 1)


@case((2.0, -0.5))
def python_numbers(x, y):
    z = x + y * 1j
    return z, z * z, z / (1 + 2j), abs(z), z.real, z.conjugate(), (3 + 4j) == z, z - 1, 2 / z


@case((Z,), (np.array([0j, np.inf + 1j, 1 + np.nan * 1j, -0.0 + 0j]),))
def special_values(z):
    return z * 2.0, z * (1 + 1j), z / 2.0, z + 1.0, np.abs(z), np.angle(z), z == z, z / z.conj()


@case((0j,))
def division_by_zero(z):
    return (1 + 1j) / z


@case((X[0, :0],))
def of_nothing(x):
    return np.fft.fft(x)


@case((X[0],))
def carried(x):
    z, total = np.fft.fft(x), 0j * x
    for k in range(3):
        total = total + z * k if k != 1 else total * z
    return total if x[0] > 0 else z


@pytest.mark.sampled(30)
@case.each
def test_like_numpy(function, args, executor):
    try:
        with np.errstate(all="ignore"):
            want = function(*args)
    except Exception:
        agree(function, args, executor)
        return
    compare(relay(executor=executor)(function)(*args), want)


def compare(got, want):
    """Equal but for rounding: kinds, dtypes, shapes and numbers."""
    if isinstance(want, tuple):
        assert type(got) is tuple and len(got) == len(want)
        for x, y in zip(got, want, strict=True):
            compare(x, y)
        return
    assert type(got) is type(want) and np.shape(got) == np.shape(want)
    kind = np.asarray(want).dtype
    assert np.asarray(got).dtype == kind
    tolerance = 3e-5 if kind in (np.float32, np.complex64) else 1e-12
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def slopes(f, x, step=1e-6):
    """The derivative by each number; by real and imaginary parts of complex ones."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
            d = np.zeros_like(x)
            d[i] = unit * step
            out[i] += unit * (f(x + d) - f(x - d)) / (2 * step)
    return out


def low_pass(x):
    z = np.fft.rfft(x)
    kept = np.where(np.fft.rfftfreq(x.shape[-1]) < 0.3, z, 0.0)
    return np.sum(np.fft.irfft(kept, x.shape[-1]) ** 3) + np.sum(np.abs(z) ** 2) + np.angle(z)[1]


def of_complex(z):
    w = np.fft.fft(z * z) / (z + 2.0)
    return np.sum(np.abs(w) ** 2) + np.sum((np.exp(z) * z.conj()).real)


def of_many_axes(x):
    return np.sum(np.abs(np.fft.fft2(x) * (1 + 2j)) ** 1.5) + np.sum(np.fft.fft(x.ravel()[:17]).imag ** 2)


SMOOTH = [(low_pass, X[0]), (of_complex, Z), (of_many_axes, X), (low_pass, X[1, :5])]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("function", "x"), SMOOTH, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.sampled(4)
def test_derivatives(function, x, executor):
    got = relay(executor=executor)(grad(function))(x)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got, slopes(function, x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("function", "x"), SMOOTH, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.sampled(2)
def test_batches(function, x):
    both = np.stack([x, x[::-1] * 0.5])
    np.testing.assert_allclose(relay(vmap(function))(both), [function(v) for v in both], rtol=1e-11)
    first = relay(grad(function))
    np.testing.assert_allclose(relay(vmap(grad(function)))(both), [first(v) for v in both], rtol=1e-9, atol=1e-10)


def test_long_transforms():
    f = relay(lambda x: np.fft.fft(x))
    for n in (256, 1000, 1021, 4096):
        x = np.random.default_rng(n).normal(size=(3, n))
        want = np.fft.fft(x)
        np.testing.assert_allclose(f(x), want, rtol=1e-11, atol=1e-11 * np.abs(want).max())


def test_many_rows_of_a_named_size():
    @relay
    def f(x: Tensor[Float64, ("n", 12)]):  # noqa: UP037
        return np.fft.rfft(x)

    for n in (1, 5, 700):
        x = np.random.default_rng(n).normal(size=(n, 12))
        np.testing.assert_allclose(f(x), np.fft.rfft(x), atol=1e-12)
    assert f.cache_info().misses == 1


def test_what_is_refused():
    refusals = (
        (lambda x, n: np.fft.fft(x[:n]), "length of the transform must be known"),
        (lambda x, n: np.arcsin(x * 1j), "Complex"),
        (lambda x, n: np.fft.rfft(x * 1j), "takes real arrays"),
        (lambda x, n: x * 1j < 1j, "<"),
    )
    for function, text in refusals:
        with pytest.raises(CompileError, match=text):
            relay(function)(X[0], 4)
