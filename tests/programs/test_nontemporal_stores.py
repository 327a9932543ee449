"""Results that are written past the caches, as large ones are: wherever they lie, they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.backend.tvm.host import vector_loops
from myia_relay.backend.tvm.kernels import nontemporal
from myia_relay.backend.tvm.tir.pipeline import vector_bytes
from myia_relay.opt.kernels import soa_kernels

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def small_results_too(monkeypatch):
    for module, name, value in (
        (nontemporal, "least", lambda: 1),
        (vector_loops, "SHORT", 1),
        (soa_kernels, "LEAST", 2),
        (soa_kernels, "PAYS", 1),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")


def places(shape, dtype):
    """Arrays of a shape, at all places that memory for numbers of a dtype may begin at."""
    size, item = int(np.prod(shape)), np.dtype(dtype).itemsize
    for offset in range(0, 64, item):
        memory = np.full(size * item + 192, 0xA5, np.uint8)
        begin = -memory.ctypes.data % 64 + offset
        yield memory, memory[begin : begin + size * item].view(dtype).reshape(shape)


def check(f, *args, streamed=True):
    """Run `f` into arrays everywhere in memory; nothing around them may change."""
    want = f.__wrapped__(*args)
    tolerance = 1e-12 if want.dtype == np.float64 else 1e-5
    call = relay(f.__wrapped__)
    assert ("myia_relay_stream" in str(call.tir(*args))) == streamed
    for memory, out in places(want.shape, want.dtype):
        call.into(out)(*args)
        np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)
        out.view(np.uint8)[...] = 0xA5
        assert (memory == 0xA5).all()
    np.testing.assert_allclose(call(*args), want, rtol=tolerance, atol=tolerance)


@relay
def upwards(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] * 2.0 + y[i]
    return out


@relay
def downwards(x, y):
    out = np.zeros(len(x))
    for i in range(len(x) - 1, -1, -1):
        out[i] = x[i] * y[0]
    return out


@pytest.mark.parametrize("f", [upwards, downwards])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 64, 100])
def test_loops_over_numbers(f, n):
    if n == 0 and f is downwards:
        pytest.skip("an array that is read has an element")
    check(f, RNG.standard_normal(n), RNG.standard_normal(n), streamed=n >= vector_bytes() // 8)


@relay
def triangle(x, g):
    n = len(x)
    out = np.zeros(n * (n - 1) // 2)
    at = 0
    for j in range(n):
        for i in range(j + 1, n):
            out[at] = g[i] * x[j]
            at += 1
    return out


@pytest.mark.parametrize("n", [9, 10, 40])
def test_columns_of_a_triangle(n):
    check(triangle, RNG.standard_normal(n), RNG.standard_normal(n))


@relay
def lengths(x):
    return x / np.sqrt(np.sum(x * x, axis=1))[:, None]


@relay
def turned(x):
    r = np.sum(x, axis=1)
    length = np.sqrt(np.sum(x * x, axis=1))
    return np.stack([r * x[:, 0], x[:, 1] - r, length, r, r + 1.0, x[:, 2] * 2.0, r * r, r - 1.0, x[:, 0]], axis=1)


@pytest.mark.parametrize("f", [lengths, turned])
@pytest.mark.parametrize("n", [64, 65, 100, 203])
def test_rows(f, n):
    check(f, RNG.standard_normal((n, 3)))


@pytest.mark.parametrize("width", [2, 5, 6, 8])
def test_rows_of_other_widths(width):
    """A block of some may begin where a vector may be stored only if the array does so."""
    check(lengths, RNG.standard_normal((100, width)))


@relay
def elementwise(x):
    return np.sin(x) * 2.0 + x


@relay
def outer(x):
    return x[:, None] * x[None, :] - 1.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [elementwise, outer])
@pytest.mark.parametrize("n", [0, 5, 31, 64, 77, 203])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementwise(f, n, dtype):
    check(f, RNG.standard_normal(n).astype(dtype), streamed=n >= 64)


def test_changed_in_place():
    """What is read where it is written is not streamed, and read once."""

    @relay
    def f(x):
        out = np.cumsum(x)
        out = out * 2.0 + 1.0
        return out

    x = RNG.standard_normal(100)
    for _, out in places((100,), "float64"):
        f.into(out)(x)
        np.testing.assert_allclose(out, np.cumsum(x) * 2.0 + 1.0)
    for _, out in places((100,), "float64"):
        out[...] = x
        elementwise.into(out)(out)
        np.testing.assert_allclose(out, np.sin(x) * 2.0 + x)


def test_small_results_are_not(monkeypatch):
    monkeypatch.setattr(nontemporal, "least", lambda: 1 << 20)
    check(upwards, RNG.standard_normal(100), RNG.standard_normal(100), streamed=False)


def test_switch(monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "nontemporal_stores")
    check(upwards, RNG.standard_normal(100), RNG.standard_normal(100), streamed=False)
