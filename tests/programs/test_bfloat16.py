"""bfloat16 in every executor: stored in 16 bits, computed in float32, each operation rounded once; sums are kept in float32.

Of sums and products the reference is float64: the difference is at most one rounding to 8 bits, 2**-8 of the largest result, and
what float32 loses. Arithmetic is compared with ml_dtypes, to the bit.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from myia_relay import BFloat16, Float32, Tensor, grad, relay, relay_model

BF = ml_dtypes.bfloat16
ROUNDING = 2.0**-8


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(BF)


A, B, V = numbers(70, 90), numbers(90, 30, seed=1), numbers(90, seed=2)
IMAGES, FILTERS = numbers(2, 3, 9, 9, seed=3), numbers(4, 3, 3, 3, seed=4)
LONG = np.full(5000, 1.0, BF)  # summed in bfloat16 they are 256


def close(got, want, roundings: float = 1.0) -> None:
    got, want = np.asarray(got), np.asarray(want, np.float64)
    assert got.dtype == BF and got.shape == want.shape
    error = np.abs(got.astype(np.float64) - want).max() / np.abs(want).max()
    assert error <= roundings * ROUNDING * 1.001


def wide(*values):
    return [v.astype(np.float64) if getattr(v, "dtype", None) == BF else v for v in values]


PRODUCTS = {
    "a @ b": (lambda a, b: a @ b, (A, B)),
    "transposed": (lambda a, b: a @ b.T, (A, np.ascontiguousarray(B.T))),
    "a @ v": (lambda a, v: a @ v, (A, V)),
    "v @ v": (lambda v, w: v @ w, (V, V)),
    "stacks": (lambda a, b: a @ b, (numbers(3, 5, 60), numbers(3, 60, 4))),
    "einsum": (lambda a, b: np.einsum("ij,jk->ki", a, b), (A, B)),
    "sum": (lambda x: np.sum(x), (LONG,)),
    "sum of rows": (lambda x: np.sum(x, axis=1), (np.abs(A),)),
    "mean": (lambda x: np.mean(x), (LONG,)),
    "cumsum": (lambda x: np.cumsum(x), (np.abs(V),)),
    "prod": (lambda x: np.prod(x, axis=0), (A[:5],)),
    "max": (lambda x: np.max(x, axis=0), (A,)),
    "at.add": (lambda x, i: relay.at(x)[i].add(np.ones(len(i), x.dtype)), (LONG[:3], np.zeros(600, np.int64))),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_and_products(name, executor):
    f, args = PRODUCTS[name]
    want = f(*wide(*args)) if "at" not in name else np.array([601.0, 1.0, 1.0])
    close(relay(f, executor=executor)(*args), want)


def convolved(x, w):
    return relay.conv2d(x, w, padding="same")


def pooled(x):
    return relay.avg_pool(x, ksize=3)


def scores(x):
    return relay.softmax(x, axis=1)


@pytest.mark.parametrize(
    ("f", "args", "roundings"),
    [(convolved, (IMAGES, FILTERS), 1), (pooled, (IMAGES,), 1), (scores, (A,), 3)],
    ids=["conv2d", "avg_pool", "softmax"],
)
def test_layers(f, args, roundings, executor):
    close(relay(f, executor=executor)(*args), relay(f, executor="interpreter")(*wide(*args)), roundings)


def dense_loss(w, x):
    return np.sum(np.tanh(x @ w))


def image_loss(w, x):
    return np.sum(relay.max_pool(relay.tanh(relay.conv2d(x, w)), ksize=2))


@pytest.mark.parametrize(
    ("f", "args"), [(dense_loss, (B / BF(8), A)), (image_loss, (FILTERS, IMAGES))], ids=["dense", "conv"]
)
def test_gradients(f, args, executor):
    """Each number on the way is rounded: some roundings in all."""
    close(grad(relay(f, executor=executor))(*args), grad(relay(f, executor="interpreter"))(*wide(*args)), 8)


def polynomial(x, y):
    return x * y + x / (np.abs(y) + 1) - y


def loop(x):
    s = x[0]
    for i in range(1, len(x)):
        s = s + x[i] if s[0] > 0 else s - x[i]
    return s


def moved(x):
    y = np.concatenate([x.T[::-1], x.T], axis=1)
    y = np.pad(y, ((0, 1), (2, 0)))
    return np.where(y > 0, y, y[:, ::-1])[1:, ::2]


def placed(x, v):
    y = x.copy()
    for i in range(3):
        y[i] = v[i] * 2
        y[i, 1] += 1
    return y


def listed(x):
    parts = []
    for i in range(4):
        if x[i, 0] > 0:
            parts.append(x[i])
    return parts


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (polynomial, (A, A[::-1].copy())),
        (loop, (A[:9],)),
        (moved, (A,)),
        (placed, (A, A[:3, ::-1].copy())),
        (listed, (A,)),
    ],
    ids=["arithmetic", "loop", "moves", "updates", "lists"],
)
def test_arithmetic_is_that_of_ml_dtypes(f, args, executor):
    got, want = relay(f, executor=executor)(*args), f(*args)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == BF
        np.testing.assert_array_equal(g.view(np.uint16), np.asarray(w).view(np.uint16))


def scalars(x, y):
    z = x * y
    return z, z > x, float(z), -x


def test_scalars(executor):
    x, y = BF(1.7), BF(-0.3)
    got, want = relay(scalars, executor=executor)(x, y), scalars(x, y)
    assert got == want and [type(g) for g in got] == [type(w) for w in want] == [BF, np.bool_, float, BF]


def test_conversions(executor):
    """All numbers of bfloat16 there and back, and float32 by the rules: halves, denormal numbers, overflow, NaN."""
    every = np.arange(1 << 16, dtype=np.uint16).view(BF)
    same = relay(lambda x: x.astype(np.float32), executor=executor)(every)
    np.testing.assert_array_equal(same, every.astype(np.float32))
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore", invalid="ignore"):
        bits = np.concatenate(
            [rng.integers(0, 1 << 32, 5000), np.arange(1, 1 << 32, 65537 * 7), np.arange(0x8000, 1 << 32, 1 << 20)]
        )
        x = bits.astype(np.uint32).view(np.float32)
        got = relay(lambda x: x.astype(BF), executor=executor)(x)
        want = x.astype(BF)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    real = ~np.isnan(want)
    np.testing.assert_array_equal(got[real].view(np.uint16), want[real].view(np.uint16))
    for dtype, values in (
        (np.int64, [257, -(2**40) + 1, 3]),
        (np.float64, [1 + 2.0**-9, 1e300, -0.0]),
        (bool, [True, False]),
    ):
        y = np.array(values, dtype)
        with np.errstate(over="ignore"):
            assert list(relay(lambda x: x.astype(BF), executor=executor)(y)) == list(y.astype(BF))
    z = np.array([-2.5, 0, 3.75], BF)
    for dtype in (np.int32, np.uint8, bool, np.float64, np.float16):
        got = relay(lambda x: x.astype(dtype), executor=executor)(np.abs(z))  # noqa: B023
        np.testing.assert_array_equal(got, np.abs(z).astype(dtype))


@relay_model
def stored(x: Tensor[Float32, 4]) -> Tensor[Float32, 3]:
    w = relay.parameter("w", (3, 4), dtype=BFloat16)
    return w.astype(np.float32) @ x


def test_parameters_of_a_model(executor):
    """Read and updated in place; they stay what they are in files."""

    @relay(executor=executor)
    def step(model, x):
        relay.update_model_params(model, relay.grad(model, stored_loss, (x,)), lr=0.5)
        return model(x)

    model = relay.create_model(stored, init=0.5)
    x = np.arange(4, dtype=np.float32)
    w = model.params["w_0"].copy()
    assert w.dtype == BF
    out = step(model, x)
    want = (w.astype(np.float32) - np.float32(0.5) * np.tile(x, (3, 1))).astype(BF)
    np.testing.assert_array_equal(model.params["w_0"], want)
    np.testing.assert_allclose(out, want.astype(np.float32) @ x, rtol=1e-6)


@relay
def stored_loss(x):
    return np.sum(stored(x))


def test_print_shows_it(executor, capfd):
    @relay(executor=executor)
    def show(x):
        print(x[0], x)
        return x

    show(np.array([1.5, -2.0], BF))
    assert capfd.readouterr().out == "1.5 [1.5 -2]\n"


class TestPrecision:
    """`@relay(precision="bfloat16")`: the operands of products are rounded, in derivatives too; results are float32."""

    X, W = (a.astype(np.float32) / 3 for a in (numbers(20, 30), numbers(30, 10, seed=1)))

    def test_products(self, executor):
        x, w = self.X, self.W
        rounded = [a.astype(BF).astype(np.float64) for a in (x, w)]
        low = relay(lambda x, w: x @ w, executor=executor, precision="bfloat16")(x, w)
        assert low.dtype == np.float32
        np.testing.assert_allclose(low, rounded[0] @ rounded[1], rtol=1e-5, atol=1e-5)
        assert np.abs(low - x.astype(np.float64) @ w).max() > 1e-4
        wide = relay(lambda x, w: x @ w, executor=executor, precision="bfloat16")(x.astype(float), w.astype(float))
        np.testing.assert_allclose(wide, x.astype(float) @ w, rtol=1e-12)  # float64 stays what it is

    def test_gradients(self, executor):
        f = relay(lambda w, x: np.sum((x @ w) ** 2), executor=executor, precision="bfloat16")
        x, w = (a.astype(BF).astype(np.float64) for a in (self.X, self.W))
        d = (2 * (x @ w)).astype(np.float32).astype(BF).astype(np.float64)
        np.testing.assert_allclose(grad(f)(self.W, self.X), x.T @ d, rtol=1e-2, atol=1e-2)

    def test_loops_and_convolutions(self, executor):
        def power(w, x):
            for _ in range(3):
                x = np.tanh(x @ w)
            return x

        w, x = self.W[:10], self.X[:, :10].copy()
        want = x
        for _ in range(3):
            want = np.tanh(want.astype(BF).astype(np.float32) @ w.astype(BF).astype(np.float32))
        np.testing.assert_allclose(relay(power, executor=executor, precision="bfloat16")(w, x), want, atol=1e-3)
        images, filters = IMAGES.astype(np.float32) * 1.001, FILTERS.astype(np.float32) * 1.001
        low = relay(convolved, executor=executor, precision="bfloat16")(images, filters)
        exact = relay(convolved, executor="interpreter")(*(a.astype(BF).astype(np.float64) for a in (images, filters)))
        np.testing.assert_allclose(low, exact, rtol=1e-4, atol=1e-4)
