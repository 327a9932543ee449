"""Convolutions of several samples by one product, against plain NumPy loops, over strides, padding, groups of samples, threads."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("scipy_openblas32")

import myia_relay as relay
from myia_relay.backend.tvm.kernels import joined_conv
from myia_relay.backend.tvm.kernels.patches import Conv
from myia_relay.backend.tvm.tir import pipeline
from myia_relay.backend.tvm.tir.block import Block
from tests.unit.backend.test_conv import flat, reference

RNG = np.random.default_rng(0)

SHAPES = [
    Conv(5, 2, 2, 7, (3, 3), (1, 1), (1, 1, 1, 1)),
    Conv(4, 7, 9, 3, (3, 2), (2, 1), (1, 1, 0, 1)),
    Conv(3, 6, 5, 4, (3, 3), (1, 2), (2, 1, 1, 2)),
    Conv(6, 4, 4, 5, (1, 1)),
    Conv(2, 5, 5, 3, (1, 1), (2, 2)),
]


@pytest.mark.parametrize(
    "s, n, columns, tasks, dtype",
    [
        (SHAPES[0], 5, 1000, 1, "float64"),
        (SHAPES[0], 7, 12, 2, "float32"),
        (SHAPES[1], 7, 64, 2, "float64"),
        (SHAPES[2], 3, 1, 2, "float32"),
        (SHAPES[3], 5, 40, 1, "float32"),
        (SHAPES[4], 7, 20, 2, "float64"),
    ],
    ids=str,
)
@pytest.mark.sampled(2)
def test_groups_of_samples(s, n, columns, tasks, dtype, monkeypatch):
    """All samples at a time, some and a rest, one by one; what is not set before stays NaN."""
    monkeypatch.setattr(joined_conv, "COLUMNS", columns)
    x = RNG.standard_normal((n, s.channels, s.height, s.width)).astype(dtype)
    w = RNG.standard_normal((s.filters, s.channels, *s.kernel)).astype(dtype)
    dy = RNG.standard_normal((n, s.filters, s.out_height, s.out_width)).astype(dtype)
    out = [np.full(v.shape, np.nan, dtype) for v in (dy, w, x)]
    guard = 16
    scratch = np.full(joined_conv.scratch_size(s, n) + guard, np.nan, dtype)
    arrays = [x, w, dy, *out, scratch]
    buffers = [flat(f"a{k}", v.size, dtype) for k, v in enumerate(arrays)]
    X, W, DY, Y, DW, DX, SCRATCH = [(v, 0) for v in buffers]
    b = Block()
    joined_conv.forward(b, s, n, X, W, Y, SCRATCH, tasks)
    joined_conv.grad_weight(b, s, n, X, DY, DW, SCRATCH, tasks)
    joined_conv.grad_input(b, s, n, W, DY, DX, SCRATCH, tasks)
    pipeline.build(pipeline.prim_func(buffers, b.stmt()))["main"](*(v.reshape(-1) for v in arrays))
    tolerance = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-12}
    for got, want in zip(out, reference(x, w, dy.astype("float64"), s), strict=True):
        np.testing.assert_allclose(got, want, **tolerance)
    assert np.isnan(scratch[-guard:]).all()


def test_a_program_convolves_so(monkeypatch):
    """The kernel of a layer of a ResNet's last stage, from a program; nothing else is taken for it."""
    seen = []
    for name in ("forward", "grad_weight", "grad_input"):
        emit = getattr(joined_conv, name)
        monkeypatch.setattr(joined_conv, name, lambda *args, emit=emit, name=name: (seen.append(name), emit(*args)))

    @relay.relay
    def f(x, w, dy):
        y, back = relay.vjp(lambda x, w: relay.conv2d(x, w, padding=1), x, w)
        return y, *back(dy)

    s = Conv(128, 2, 2, 96, (3, 3), (1, 1), (1, 1, 1, 1))
    x, w, dy = (
        RNG.standard_normal(shape).astype(np.float32) for shape in ((8, 128, 2, 2), (96, 128, 3, 3), (8, 96, 2, 2))
    )
    y, dx, dw = f(x, w, dy)
    for got, want in zip((y, dw, dx), reference(x, w, dy.astype("float64"), s), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    assert sorted(seen) == ["forward", "grad_input", "grad_weight"]
    f(x[:1], w, dy[:1])
    f(x[:, :8], w[:, :8], dy)
    assert len(seen) == 3
