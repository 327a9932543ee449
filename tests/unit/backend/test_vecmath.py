"""Vectorised transcendentals: stated error bounds, special values, remainders of loops, targets without FMA."""

import math

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")

from myia_relay.backend.tvm.tir import pipeline, vecmath  # noqa: E402
from myia_relay.backend.tvm.tir.block import Block, vload  # noqa: E402


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def erf(x):
    return np.vectorize(math.erf, otypes=["float64"])(x.astype("float64"))


# name: (meaning, bound in ulp for float32, for float64)
BOUNDS = {
    "exp": (np.exp, 1.2, 1.2),
    "expm1": (np.expm1, 2.0, 2.5),
    "log": (np.log, 1.0, 1.0),
    "log1p": (np.log1p, 1.4, 1.4),
    "tanh": (np.tanh, 2.5, 2.6),
    "sigmoid": (sigmoid, 2.4, 2.4),
    "sin": (np.sin, 1.8, 1.8),
    "cos": (np.cos, 1.8, 1.8),
    "erf": (erf, 1.2, 2.0),  # the reference for float64 has an error of its own
}
WIDE = {("exp", "float32"): (-110, 92), ("exp", "float64"): (-760, 712)}
LONG_DOUBLE_IS_WIDER = np.finfo("longdouble").nmant > 60


def sample(name, dtype, n=60000):
    """Random bit patterns, values around 0 and in the interesting range, and every special value."""
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    bits = rng.integers(0, 256, n * info.dtype.itemsize, dtype="uint8").view(dtype)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        info.tiny,
        info.max,
        -info.max,
        np.pi,
        np.pi / 2,
        1e5,
        -40.0,
    ]
    special += [float(info.smallest_subnormal), -float(info.smallest_subnormal)]
    low, high = WIDE.get((name, dtype), (-3e4, 3e4) if name in ("sin", "cos") else (-110, 100))
    parts = [
        bits,
        rng.uniform(-1, 1, n),
        rng.uniform(-12, 12, n),
        rng.uniform(low, high, n),
        special,
        rng.uniform(0, 3, n),
    ]
    return np.concatenate([np.asarray(p).astype(dtype) for p in parts])


def compiled(name, dtype, n, lanes=None, **options):
    x, y = pipeline.param("x", (n,), dtype), pipeline.param("y", (n,), dtype)
    b = Block()
    fn = getattr(vecmath, name)
    lanes = lanes or pipeline.lanes(dtype)
    vecmath.elementwise(b, n, lanes, lambda i, k: b.vstore(y, fn(b, vload(x, i, k)), i))
    return pipeline.build(pipeline.prim_func([x, y], b.stmt()), **options)["main"]


def check(name, dtype, **options):
    meaning, *bounds = BOUNDS[name]
    bound = bounds[dtype == "float64"]
    x = sample(name, dtype)
    y = np.empty_like(x)
    compiled(name, dtype, len(x), **options)(x, y)
    with np.errstate(all="ignore"):
        wide = meaning(x.astype("longdouble"))
        want = wide.astype(dtype)
        finite = np.isfinite(want)
        assert np.array_equal(np.isnan(y), np.isnan(want))
        assert np.array_equal(y[np.isinf(want)], want[np.isinf(want)])
        zero = want == 0
        assert np.array_equal(y[zero], want[zero]) and np.array_equal(np.signbit(y[zero]), np.signbit(want[zero]))
        assert np.isfinite(y[finite]).all()
        error = np.abs(y[finite] - wide[finite]) / np.spacing(np.abs(want[finite])).astype("longdouble")
    # Without a wider format (some ARM machines) NumPy's own error adds to ours.
    allowed = bound if LONG_DOUBLE_IS_WIDER or dtype == "float32" else bound + 1
    worst = error.argmax()
    assert error[worst] <= allowed, (error[worst], x[finite][worst])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BOUNDS)
def test_accuracy_and_special_values(name, dtype):
    check(name, dtype)


@pytest.mark.sampled(2)
@pytest.mark.skipif(not tvm.target.codegen.llvm_get_system_triple().startswith("x86_64"), reason="names x86 CPUs")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BOUNDS)
def test_avx2(name, dtype):
    check(name, dtype, cpu="haswell", lanes=32 // np.dtype(dtype).itemsize)


@pytest.mark.skipif(not tvm.target.codegen.llvm_get_system_triple().startswith("x86_64"), reason="names x86 CPUs")
@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
def test_baseline_without_fma(name):
    """Coarser: the last places differ without FMA, and the special values must not."""
    x = sample(name, "float64")
    y = np.empty_like(x)
    compiled(name, "float64", len(x), cpu="x86-64", lanes=2)(x, y)
    with np.errstate(all="ignore"):
        want = BOUNDS[name][0](x)
        np.testing.assert_allclose(y, want, rtol=2e-15, atol=1e-320)  # subnormals differ by one unit


@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 40])
def test_elementwise_covers_every_element(n):
    x = np.linspace(-3, 3, n).astype("float32")
    y = np.zeros(n + 1, "float32")
    compiled("tanh", "float32", n)(x, y[:n])
    np.testing.assert_allclose(y[:n], np.tanh(x), rtol=1e-6)
    assert y[n] == 0


def test_elementwise_with_a_symbolic_length():
    n = tvm.tirx.Var("n", "int64")
    x, y = pipeline.param("x", (n,), "float64"), pipeline.param("y", (n,), "float64")
    b = Block()
    vecmath.elementwise(b, n, 8, lambda i, k: b.vstore(y, vecmath.exp(b, vload(x, i, k)), i))
    f = pipeline.build(pipeline.prim_func([x, y], b.stmt()))["main"]
    for size in (1, 7, 8, 29):
        data = np.linspace(-2, 2, size)
        out = np.zeros(size)
        f(data, out)
        np.testing.assert_allclose(out, np.exp(data), rtol=1e-15)


def test_inside_a_vectorized_loop():
    """Locals of `Block.let` are one per lane there; functions with a branch refuse."""
    x, y = pipeline.param("x", (8,), "float64"), pipeline.param("y", (8,), "float64")
    b = Block()
    with b.loop(8, "vectorized") as i:
        b.store(y, vecmath.sigmoid(b, vload(x, i, 1)), i)
        with pytest.raises(ValueError, match="vectorized"):
            vecmath.sin(b, vload(x, i, 1))
    data = np.linspace(-3, 3, 8)
    out = np.zeros(8)
    pipeline.build(pipeline.prim_func([x, y], b.stmt()))["main"](data, out)
    np.testing.assert_allclose(out, sigmoid(data), rtol=1e-15)
