"""`x[i] = v` in loops writes one element; where the old array is still looked at, it stays as it was."""

from __future__ import annotations

import re

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import FLOAT, INT, Array
from myia_relay.backend.interpreter import run
from myia_relay.backend.tvm.program import compile_program
from myia_relay.opt.kernels.soa_kernels import SoaKernels
from tests.typed_graphs import apply, assert_close, build, for_, vec
from tests.unit.backend.test_donated_arguments import put, total, work
from tests.unit.opt.test_soa_kernels import turned_rows


def fill(n: int):
    x = np.zeros(200)
    for i in range(n):
        x[i % 200] = i * 2.0
        x[i % 200] += 1.0
    return x


def table(n: int):
    x = np.zeros((30, 40))
    for i in range(n):
        for j in range(40):
            if (i + j) % 3 == 0:
                x[i % 30, j] = x[i % 30, j - 1] + i * j
            elif j > 20:
                x[i % 30, j] += 1.0
    return x


def distance(n: int):
    d = np.zeros((33, 33), np.int64)
    for i in range(33):
        d[i, 0] = i
        d[0, i] = i
    for i in range(1, 33):
        for j in range(1, 33):
            cost = 0 if (i * 7) % 5 == (j * n) % 5 else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d


def rows(n: int):
    x = np.zeros((8, 16))
    for i in range(n):
        x[i % 8] = x[(i + 1) % 8] + np.arange(16.0)
        x[:, i % 16] = x[0, :8] * 0.5
        x[i % 8, 2:5] += 1.0
    return x


def whole_matrix(n: int):
    x = np.zeros((3, 4, 5))
    for i in range(n):
        x[1:3, i % 4, 1:4] = np.arange(6.0).reshape((2, 3)) + i
        x[:, 1:3, i % 5] += x[2, 0, 0]
    return x


IN_PLACE = [fill, table, distance]


def history(n: int):
    x = np.zeros(10)
    total = np.zeros(10)
    for i in range(n):
        new = relay.at(x)[i % 10].set(i + 1.0)
        total = total + x
        x = new
    return x, total


def swapped(n: int):
    a, b = np.zeros(6), np.ones(6)
    for i in range(n):
        a, b = b, relay.at(a)[i % 6].set(b[(i + 1) % 6] + 1.0)
    return a, b


def row_to_itself(n: int):
    x = np.arange(12.0).reshape((3, 4))
    for i in range(n):
        x[i % 3] = x[i % 3][::-1] + x[(i + 1) % 3]
    return x


def shifted(n: int):
    x = np.arange(12.0)
    for i in range(n):
        x[1:] = x[:-1] + i
        x[:-1] = x[::-1][1:]
    return x


def branch_keeps_old(n: int):
    x = np.zeros(5)
    y = np.zeros(5)
    for i in range(n):
        before = x * 1.0
        if i % 2 == 0:
            x[i % 5] = i
        else:
            y[i % 5] = x[0] + 1.0
        y = y + before
    return x, y


def branch_swaps(n: int):
    x, y = np.zeros(5), np.ones(5)
    for i in range(n):
        if i % 3 == 0:
            x, y = relay.at(y)[0].add(1.0), x
        elif i % 3 == 1:
            x = relay.at(x)[i % 5].set(y[1] + 2.0)
    return x, y


def argument(x, n: int):
    y = x * 1.0
    for i in range(n):
        y[i % 4] += x[(i + 1) % 4]
    return y + x


def two_levels(n: int):
    best = np.zeros(4)
    for i in range(n):
        trial = best * 1.0
        for j in range(4):
            trial = relay.at(trial)[j].add(i * j * 1.0)
        if trial[2] > 10.0:
            best = trial
    return best


COPIES = [history, swapped, row_to_itself, shifted, branch_keeps_old, branch_swaps, two_levels, rows, whole_matrix]


def same(a, b):
    if isinstance(a, tuple):
        return all(map(same, a, b))
    return a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("f", [*IN_PLACE, *COPIES], ids=lambda f: f.__name__)
def test_updates_are_those_of_numpy(f):
    compiled = relay(f)
    for n in (0, 1, 2, 7, 30):
        assert same(compiled(n), f(n))
    assert compiled.cache_info().misses == 1


def test_an_argument_is_not_written():
    x = np.arange(4.0)
    got = relay(argument)(x, 9)
    assert same(x, np.arange(4.0)) and same(got, argument(x, 9))


def loop_code(f, size):
    """The native code of a loop that updates an array of a size, and the memory it needs."""
    program = compile_program(f(size))
    return program, re.sub(r"\b\d+\b", "N", str(program.tir["main"]))


def element_loop(size):
    def body(i, x):
        y = apply("dynamic_update", x, apply("cast", i, dtype="float64", weak=False), i, axis=0)
        return (apply("index_add", y, apply("dynamic_index", y, i, axis=0), i, axis=0),)

    return build(lambda x, n: for_((0, n, 1), body, (x * 2.0,))[0], vec(size), INT)


def needed_loop(size):
    def body(i, x, s):
        y = apply("dynamic_update", x, np.float64(1.0), i, axis=0)
        return y, s + x

    return build(lambda x, n: apply("reduce_sum", for_((0, n, 1), body, (x * 2.0, x))[1], axes=(0,)), vec(size), INT)


def test_an_update_costs_what_it_writes():
    small, code = loop_code(element_loop, 10)
    large, same_code = loop_code(element_loop, 100_000)
    # The code of an iteration does not know the size: one kernel before the loop, and no copy: the result is where it is wanted.
    assert code == same_code
    assert "memmove" not in code and len(small.kernels) == len(large.kernels) == 1
    # Python is asked for signals now and then, not as if each iteration wrote the whole array.
    assert all(int(n) > 1000 for n in re.findall(r"poll\w* = T.int64\((\d+)\)", str(large.tir["main"])))
    x = np.arange(10.0)
    np.testing.assert_array_equal(small(x, 10), run(small.graph, (x, 10)))


def test_the_old_array_is_copied_where_it_is_needed():
    graph = needed_loop(10)
    x = np.arange(10.0)
    program = compile_program(graph)
    assert "memmove" in str(program.tir["main"])
    np.testing.assert_allclose(program(x, 10), run(graph, (x, 10)))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_nothing_is_written_to_an_empty_array(shape):
    def f(x, v, i):
        return apply("dynamic_update", x * 1.0, v, i, axis=0)

    row = Array("float64", shape[1:]) if shape[1:] else FLOAT
    program = compile_program(build(f, Array("float64", shape), row, INT))
    assert program(np.zeros(shape), np.ones(shape[1:]) if shape[1:] else 1.0, 3).shape == shape
    assert work(program) == "mul copy"


def test_a_part_that_is_read_after_the_update_is_kept_not_the_array():
    def f(x, v, i, j):
        y = x * 2.0
        row = apply("dynamic_index", y, i, axis=0)
        part = apply("dynamic_slice", row, j, axis=0, length=3)
        y = apply("dynamic_update", y, v, i, axis=0)
        y = apply("index_add", y, row * 3.0, j, axis=0)
        return apply("dynamic_update_slice", y, apply("reshape", part, shape=(1, 3)), j, axis=0)

    graph = build(f, Array("float64", (5, 3)), vec(3), INT, INT)
    program, x, v = compile_program(graph), np.arange(15.0).reshape(5, 3), np.full(3, 0.5)
    for i in range(5):
        for j in range(5):
            np.testing.assert_array_equal(program(x, v, i, j), run(graph, (x, v, i, j)))
    copied = re.findall(r'"memmove".*T\.int64\((\d+)\)\)', str(program.tir["main"]))
    assert copied.count("120") == 1, copied  # of the result


# --- results that are made where they are wanted ----------------------------------------------------------------------------


def scattered(x, u):
    return apply("scatter_add", x, np.array([0, 2, 2]), u, axis=0)


def squared(m):
    return apply("dot", m, m, transpose_a=True, transpose_b=False)


def twice(x):
    return x, x


def flat(x, *shape):
    return apply("reshape", x, shape=shape)


SIX, TABLE, THREE = vec(6), Array("float64", (2, 3)), vec(3)
WANTED = {
    "into an argument": (lambda x, u: scattered(x, u), (SIX, THREE), "scatter_add"),
    "into an argument, reshaped": (lambda x, u: scattered(flat(x, 6), u), (TABLE, THREE), "scatter_add"),
    "into what is made for it": (lambda x, u: scattered(x * 2.0, u), (SIX, THREE), "mul scatter_add"),
    "reshaped before": (lambda x, u: scattered(flat(squared(x), 9), u), (TABLE, THREE), "dot scatter_add"),
    "reshaped behind": (lambda x, u: flat(scattered(x * 2.0, u), 3, 2), (SIX, THREE), "mul scatter_add"),
    "reshaped both times": (
        lambda x, u: flat(scattered(flat(squared(x), 9), u), 3, 3), (TABLE, THREE), "dot scatter_add"),
    "scattered twice": (lambda x, u: scattered(scattered(x * 2.0, u), u), (SIX, THREE), "mul scatter_add scatter_add"),
    "the same result twice": (lambda x, u: twice(scattered(x * 2.0, u)), (SIX, THREE), "mul scatter_add copy"),
    "an array of one number": (lambda x, u: flat(total(x), 1), (SIX, THREE), "reduce_sum reshape"),
    "an array of a number made of others": (lambda x, u: flat(total(x) * 2.0, 1), (SIX, THREE), "reduce_sum reshape"),
}  # fmt: skip
"""What is returned, its arguments, and the kernels and copies: none copies what was made."""


@pytest.mark.parametrize("name", WANTED)
def test_results_are_made_where_they_are_wanted(name):
    f, types, want = WANTED[name]
    graph = build(f, *types)
    args = [np.linspace(0.1, 0.9, t.size).reshape(t.shape) for t in types]
    kept = [a.copy() for a in args]
    program = compile_program(graph)
    for _ in range(2):
        assert_close(program(*args), run(graph, args))
    assert all(map(np.array_equal, args, kept))
    assert work(program) == want


SHAPES = [(2, 3), (symbol("n"), 3), (2, symbol("m")), (symbol("n"), symbol("m"))]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_unknown_sizes_are_written_only_where_they_are(shape):
    """A row is computed where it belongs only where the array surely has it."""

    def f(a, c, k):
        y = for_((0, k, 1), lambda i, a, c: (put(a, apply("reduce_sum", c, axes=(0,)), i),), (a * 2.0,), (c,))[0]
        return y + 1.0

    graph = build(f, Array("float64", shape), Array("float64", (4, shape[1])), INT)
    program = compile_program(graph)
    assert work(program) == ("mul reduce_sum add" if shape == (2, 3) else "mul reduce_sum dynamic_update add")
    for sizes in ((2, 3), (0, 3), (2, 0), (5, 2)):
        if all(d == size or not isinstance(d, int) for d, size in zip(shape, sizes)):
            args = np.ones(sizes), np.arange(4.0 * sizes[1]).reshape(4, sizes[1]), 2
            assert_close(program(*args), run(graph, args))


def test_what_is_in_memory_is_copied_by_one_loop():
    """Whatever has made it: how that was computed has nothing to do with how it is copied."""

    def kernel(make):
        graph = build(
            lambda a, m, i: put(a + 1.0, make(m), i), Array("float64", (2, 3, 3)), Array("float64", (3, 3)), INT
        )
        functions = compile_program(graph).tir.functions.items()
        (code,) = [str(code) for name, code in functions if "dynamic_update" in name.name_hint]
        return re.sub(r"k\d+_", "", code)

    assert kernel(squared) == kernel(lambda m: m)


def test_rows_of_a_kernel_are_made_where_they_are_wanted():
    points = np.random.default_rng(0).normal(size=(60, 3))
    graph = relay(turned_rows).ir(points, points + 1.0, stage="optimized").graph
    assert work(compile_program(SoaKernels()(graph))) == "rows"
