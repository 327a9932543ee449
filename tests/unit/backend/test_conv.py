"""Convolution and pooling statements against plain NumPy loops, over strides, padding, batches and threads."""

import itertools

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("scipy_openblas32")

from tvm import tirx

from myia_relay.backend.tvm.kernels import conv, patches
from myia_relay.backend.tvm.kernels.patches import Conv
from myia_relay.backend.tvm.kernels.pooling import pool, window_pool
from myia_relay.backend.tvm.tir import pipeline, threads
from myia_relay.backend.tvm.tir.block import Block, load

RNG = np.random.default_rng(0)
THREADS = threads.configure()


def windows(x, kernel, strides, pads, value):
    """(N, C, oh, ow, kh, kw) of padded x."""
    top, bottom, left, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)
    return np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))[:, :, :: strides[0], :: strides[1]]


def reference(x, w, dy, s):
    """(y, dw, dx) in float64."""
    x, w = x.astype("float64"), w.astype("float64")
    cols = windows(x, s.kernel, s.strides, s.pads, 0.0)
    y = np.einsum("ncpqij,ocij->nopq", cols, w)
    if dy is None:
        return y
    dw = np.einsum("ncpqij,nopq->ocij", cols, dy)
    top, bottom, left, right = s.pads
    dx = np.zeros((len(x), s.channels, s.height + top + bottom, s.width + left + right))
    for i, j in itertools.product(range(s.kernel[0]), range(s.kernel[1])):
        rows = slice(i, i + s.out_height * s.strides[0], s.strides[0])
        columns = slice(j, j + s.out_width * s.strides[1], s.strides[1])
        dx[:, :, rows, columns] += np.einsum("nopq,oc->ncpq", dy, w[:, :, i, j])
    return y, dw, dx[:, :, top : top + s.height, left : left + s.width]


CONVS = [
    Conv(1, 28, 28, 20, (5, 5)),
    Conv(20, 12, 12, 50, (5, 5)),
    Conv(3, 7, 9, 4, (3, 2), (2, 1), (1, 1, 0, 1)),
    Conv(2, 6, 5, 3, (3, 3), (1, 2), (2, 1, 1, 2)),
    Conv(3, 5, 5, 4, (1, 1)),
    Conv(2, 5, 5, 3, (1, 1), (2, 2)),
    Conv(2, 4, 4, 1, (4, 4)),
    Conv(1, 3, 80, 2, (3, 3), (1, 1), (1, 1, 1, 1)),
    Conv(2, 3, 3, 2, (5, 5), (1, 1), (2, 2, 2, 2)),
]


def flat(name, size, dtype):
    return pipeline.param(name, (size,), dtype)


def run_conv(s, n, tasks, dtype, symbolic=False):
    x = RNG.standard_normal((n, s.channels, s.height, s.width)).astype(dtype)
    w = RNG.standard_normal((s.filters, s.channels, *s.kernel)).astype(dtype)
    dy = RNG.standard_normal((n, s.filters, s.out_height, s.out_width)).astype(dtype)
    bias = RNG.standard_normal(s.filters).astype(dtype)
    out = [np.full(v.shape, np.nan, dtype) for v in (dy, w, x)]
    kinds = ["forward", "grad_weight", "grad_input"]
    scratch = np.full(max(1, *(conv.scratch_size(s, 2 if symbolic else n, tasks, k) for k in kinds)), np.nan, dtype)
    arrays = [x, w, dy, bias, *out, scratch]
    size = tirx.Var("n", "int64") if symbolic else n
    lengths = [v.size for v in arrays]
    if symbolic:
        for k, each in ((0, s.size_in), (2, s.size_out), (4, s.size_out), (6, s.size_in)):
            lengths[k] = tirx.Mul(size, tirx.IntImm("int64", each))
    buffers = [flat(f"a{k}", length, dtype) for k, length in enumerate(lengths)]
    X, W, DY, BIAS, Y, DW, DX, SCRATCH = [(v, 0) for v in buffers]
    b = Block()

    def epilogue(value, sample, channel, position):
        offset = load(BIAS[0], channel)
        lanes = value.ty.dtype
        k = int(str(lanes).split("x")[1]) if "x" in str(lanes) else 1
        return tirx.Add(value, offset if k == 1 else tirx.Broadcast(offset, k))

    conv.conv2d(b, s, size, X, W, Y, SCRATCH, tasks=tasks, epilogue=epilogue)
    conv.conv2d_grad_weight(b, s, size, X, DY, DW, SCRATCH, tasks=tasks)
    conv.conv2d_grad_input(b, s, size, W, DY, DX, SCRATCH, tasks=tasks)
    f = pipeline.build(pipeline.prim_func([size, *buffers] if symbolic else buffers, b.stmt()))["main"]
    f(*([n] if symbolic else []), *(v.reshape(-1) for v in arrays))
    y, dw, dx = reference(x, w, dy.astype("float64"), s)
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(out[0], y + bias[:, None, None], **tolerance)
    np.testing.assert_allclose(out[1], dw, **tolerance)
    np.testing.assert_allclose(out[2], dx, **tolerance)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, tasks", [(1, 2), (3, 1), (5, 2)])
@pytest.mark.parametrize("s", CONVS, ids=str)
def test_conv(s, n, tasks, dtype):
    run_conv(s, n, tasks, dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n, tasks", [(1, 1), (3, 2), (2, 3), (8, 2)])
def test_symbolic_batch(n, tasks):
    """The batch size as a run-time value, a batch of one and fewer samples than tasks among them."""
    run_conv(CONVS[2], n, tasks, "float64", symbolic=True)


@pytest.mark.parametrize("s", CONVS, ids=str)
def test_input_gradient_by_ranges_of_filters(s):
    """Each task takes its own filters into account, and the parts add up."""
    w = RNG.standard_normal((s.filters, s.channels, *s.kernel))
    dy = RNG.standard_normal((1, s.filters, s.out_height, s.out_width))
    x = np.zeros((1, s.channels, s.height, s.width))
    cut = s.filters // 2
    parts = [np.full(s.size_in, np.nan) for _ in range(2)]
    col = np.full(max(1, s.col_size), np.nan)
    W, DY, P0, P1, COL = (flat(k, v.size, "float64") for k, v in zip("wdpqc", (w, dy, *parts, col)))
    b = Block()
    for part, filters in ((P0, (0, cut)), (P1, (cut, s.filters - cut))):
        if filters[1]:
            conv.grad_input_sample(b, s, (W, 0), (DY, 0), (part, 0), (COL, 0), filters=filters)
        else:
            patches.fill(b, (part, 0), s.size_in)
    pipeline.build(pipeline.prim_func([W, DY, P0, P1, COL], b.stmt()))["main"](w.ravel(), dy.ravel(), *parts, col)
    _, _, dx = reference(x, w, dy, s)
    np.testing.assert_allclose(parts[0] + parts[1], dx.ravel(), rtol=1e-10, atol=1e-10)


def test_offsets_into_one_arena_and_ready_columns():
    """Everything in one buffer, the weight gradient taken from the forward pass's columns, straight into the
    weights.
    """
    s = Conv(2, 6, 6, 3, (3, 3))
    places, end = {}, 7
    for name, size in {"x": s.size_in, "w": s.weights, "y": s.size_out, "col": s.col_size}.items():
        places[name], end = slice(end, end + size), end + size + 3
    arena = RNG.standard_normal(end).astype("float32")
    before = {k: arena[v].copy() for k, v in places.items()}
    A = flat("arena", end, "float32")
    X, W, Y, COL = ((A, places[k].start) for k in ("x", "w", "y", "col"))
    b = Block()
    conv.forward_sample(b, s, X, W, Y, COL)
    conv.grad_weight_sample(b, s, X, Y, W, COL, alpha=-0.5, col_ready=True)
    # One buffer is all of memory here: nothing may be assumed about overlap.
    pipeline.build(pipeline.prim_func([A], b.stmt(), noalias=False))["main"](arena)
    x, w = before["x"].reshape(1, 2, 6, 6), before["w"].reshape(3, 2, 3, 3)
    y = reference(x, w, None, s)
    np.testing.assert_allclose(arena[places["y"]], y.ravel(), rtol=1e-4, atol=1e-4)
    _, dw, _ = reference(x, w, y, s)
    np.testing.assert_allclose(arena[places["w"]], (w - 0.5 * dw).ravel(), rtol=1e-4, atol=1e-4)


POOLS = [
    pool.Pool(24, 24, (2, 2), (2, 2)),
    pool.Pool(6, 70, (2, 2), (2, 2)),
    pool.Pool(7, 20, (3, 3), (2, 3)),
    pool.Pool(5, 9, (2, 1), (1, 1)),
    pool.Pool(7, 9, (2, 2), (2, 2)),
    pool.Pool(8, 8, (3, 3), (2, 2)),
    pool.Pool(8, 8, (3, 3), (2, 2), (1, 1, 1, 1)),
    pool.Pool(5, 6, (3, 2), (1, 3), (2, 0, 1, 0)),
    pool.Pool(6, 6, (2, 2), (3, 3)),
]
WINDOWS = [
    pool.Pool(8, 70, (3, 3), (2, 2), (1, 1, 1, 1)),
    pool.Pool(9, 9, (3, 3), (2, 2)),
    pool.Pool(7, 19, (2, 3), (1, 1), (1, 0, 2, 1)),
    pool.Pool(6, 14, (5, 4), (3, 3), (2, 1, 3, 2)),
    pool.Pool(4, 12, (2, 2), (2, 2), (1, 1, 1, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("s", POOLS + WINDOWS, ids=str)
@pytest.mark.sampled(5)
def test_pool(s, dtype):
    planes = 6
    # Few distinct values: ties everywhere.
    x = RNG.integers(-2, 3, (planes, s.height, s.width)).astype(dtype)
    x[0, 0, 0], x[1] = np.nan, -np.inf
    x[2, :, ::2], x[3, ::3] = -np.inf, np.nan
    dy = RNG.standard_normal((planes, s.out_height, s.out_width)).astype(dtype)
    y, dx = np.full_like(dy, np.nan), np.full_like(x, np.nan)
    X, DY, Y, DX = (flat(k, v.size, dtype) for k, v in zip(("x", "dy", "y", "dx"), (x, dy, y, dx)))
    b = Block()
    scratch = np.full(window_pool.scratch_size(s, grad=True) + 16, np.nan, dtype)
    S = flat("s", scratch.size, dtype)
    if s in WINDOWS:
        assert window_pool.is_windowed(s)
        window_pool.max_pool(b, s, planes, (X, 0), (Y, 0), (S, 0))
        window_pool.max_pool_grad(b, s, planes, (X, 0), (DY, 0), (DX, 0), (S, 0))
    else:
        pool.max_pool(b, s, planes, (X, 0), (Y, 0))
        pool.max_pool_grad(b, s, planes, (X, 0), (DY, 0), (DX, 0))
    arrays = [a.ravel() for a in (x, dy, y, dx, scratch)]
    pipeline.build(pipeline.prim_func([X, DY, Y, DX, S], b.stmt()))["main"](*arrays)
    assert np.isnan(scratch[-16:]).all()
    want, want_dx = np.zeros_like(y), np.zeros((planes, s.height, s.width))
    for p, i, j in itertools.product(range(planes), range(s.out_height), range(s.out_width)):
        inside = [
            (h, v)
            for h in range(i * s.strides[0] - s.pads[0], i * s.strides[0] - s.pads[0] + s.kernel[0])
            for v in range(j * s.strides[1] - s.pads[2], j * s.strides[1] - s.pads[2] + s.kernel[1])
            if 0 <= h < s.height and 0 <= v < s.width
        ]
        values = np.array([x[p, h, v] for h, v in inside])
        first = int(np.argmax(values))  # the first maximum, or the first NaN
        want[p, i, j] = values[first]
        want_dx[(p, *inside[first])] += dy[p, i, j]
    np.testing.assert_array_equal(y, want)
    # Cotangents of several windows are summed in the dtype, and may cancel.
    np.testing.assert_allclose(dx, want_dx, rtol=1e-6, atol=1e-6 if dtype == "float32" else 1e-14)


def test_padding_as_large_as_the_kernel_is_refused():
    with pytest.raises(ValueError, match="padding"):
        pool.Pool(4, 4, (2, 2), (2, 2), (2, 0, 0, 0))


@pytest.mark.parametrize("s", [*WINDOWS, pool.Pool(6, 70, (2, 2), (2, 2))], ids=str)
def test_means(s):
    planes = 3
    x = RNG.standard_normal((planes, s.height, s.width))
    dy = RNG.standard_normal((planes, s.out_height, s.out_width))
    y, dx = np.full_like(dy, np.nan), np.full_like(x, np.nan)
    arrays = [x, dy, y, dx, np.full(window_pool.scratch_size(s, grad=False), np.nan)]
    X, DY, Y, DX, S = [flat(f"a{k}", v.size, "float64") for k, v in enumerate(arrays)]
    b = Block()
    window_pool.mean(b, s, planes, (X, 0), (Y, 0), (S, 0))
    window_pool.mean_grad(b, s, planes, (DY, 0), (DX, 0), (S, 0))
    pipeline.build(pipeline.prim_func([X, DY, Y, DX, S], b.stmt()))["main"](*(v.ravel() for v in arrays))
    cols = windows(x[None], s.kernel, s.strides, s.pads, 0.0)[0]
    np.testing.assert_allclose(y, cols.mean((-2, -1)), rtol=1e-12, atol=1e-14)
    # The gradient is the transpose.
    np.testing.assert_allclose(np.vdot(dx, x), np.vdot(dy, y), rtol=1e-10)
    unit = np.zeros_like(x)
    unit[1, 2, 3] = 1.0
    seen = windows(unit[None], s.kernel, s.strides, s.pads, 0.0)[0].mean((-2, -1))
    np.testing.assert_allclose(dx[1, 2, 3], np.vdot(dy, seen), rtol=1e-10, atol=1e-14)
