"""Compile time grows with the size of a program, never with the number of paths through it."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import FLOAT, Array
from myia_relay.backend.interpreter import run
from myia_relay.backend.tvm.program import compile_program
from myia_relay.opt.analysis.fusion import GROUP_LIMIT, INDICES, fuse
from tests.typed_graphs import apply, build, vec


def scalars(x):
    """2,000 dependent statements on a number."""
    y = x
    for i in range(1000):
        y = y * 1.0001 + x if i % 2 else y / 1.5 - x
    return y


def arrays(x):
    """300 elementwise operations, each on the one before and many of them on it twice."""
    y = x
    for i in range(150):
        y = y * 0.5 + x if i % 3 else apply("maximum", y, x) - y
    return y


def moves(x):
    """60 operations that read the one before at two other indices: 2**60 paths."""
    n = x.type.shape[0]
    y = x
    for i in range(60):
        if i % 3 == 0:
            y = apply("flip", y, axes=(0,)) * y
        elif i % 3 == 1:
            head = apply("slice", y, starts=(3,), sizes=(n - 3,), steps=(1,))
            tail = apply("slice", y, starts=(0,), sizes=(3,), steps=(1,))
            y = apply("concatenate", head, tail, axis=0)
        else:
            inner = apply("slice", y, starts=(1,), sizes=(n - 2,), steps=(1,))
            y = y + apply("pad", inner, np.float64(0.5), low=(2,), high=(0,), interior=(0,))
    return y


def straight(x):
    """120 index calculations in a row, each read once."""
    y = x
    for _ in range(60):
        y = apply("flip", y, axes=(0,))
        y = apply("slice", y, starts=(1,), sizes=(y.type.shape[0] - 1,), steps=(1,))
    return y


@pytest.mark.parametrize(("f", "t"), [(scalars, FLOAT), (arrays, vec(16)), (moves, vec(16)), (straight, vec(100))])
def test_long_programs_compile(f, t):
    # Seconds each; who follows every path never comes to an end.
    value = 0.75 if t is FLOAT else np.linspace(-1, 1, t.shape[0])
    graph = build(f, t)
    got, want = compile_program(graph)(value), run(graph, (value,))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert np.shape(got) == np.shape(want)


@pytest.mark.parametrize("f", [arrays, moves, straight])
def test_kernels_compute_a_bounded_number_of_elements_for_one(f):
    graph = build(f, vec(100))
    fusion = fuse(graph)
    assert all(size <= GROUP_LIMIT for size in fusion.size.values())
    assert all(1 <= len(at) <= INDICES for at in fusion.indices.values())


def test_a_short_chain_of_moves_is_one_kernel():
    def f(x):
        y = apply("flip", x, axes=(0,)) + x
        return apply("slice", y, starts=(1,), sizes=(5,), steps=(2,)) * 2.0

    program = compile_program(build(f, Array("float64", (11,))))
    assert len(program.kernels) == 1
    x = np.arange(11.0)
    np.testing.assert_array_equal(program(x), (x[::-1] + x)[1:11:2] * 2.0)
