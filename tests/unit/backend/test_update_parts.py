"""Updates in place, part by part: which parameter a value is an updated version of, and the loops that write a part."""

from __future__ import annotations

import re

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import INT, Array
from myia_relay.backend.interpreter import run
from myia_relay.backend.tvm.host.inplace import source, source_of_part
from myia_relay.backend.tvm.program import compile_program
from myia_relay.ir.build import Builder
from myia_relay.ir.node import Graph
from tests.typed_graphs import apply, build, call, cond, for_, vec, while_


def put(x, v, i):
    """x with x[i] = v."""
    return apply("dynamic_update", x, v, i, axis=0)


def at(x, i):
    return apply("dynamic_index", x, i, axis=0)


def loops(update, shape, part) -> int:
    """How many loops write a part of an array, which is right for every position."""
    program = compile_program(build(update, Array("float64", shape), Array("float64", part), INT))
    (kernel,) = re.findall(r"def k\d+_dynamic_update\w*\(.*?(?=@T.prim_func|$)", str(program.tir), re.DOTALL)
    x, v = (np.arange(float(np.prod(s))).reshape(s) for s in (shape, part))
    for n in (0, 1, 2):
        np.testing.assert_array_equal(program(x, v, n), run(program.graph, (x, v, n)))
    return sum(names.count(",") + 1 for names in re.findall(r"\bfor ([\w, ]+) in ", kernel))


def entry(axis):
    return lambda x, v, n: apply("dynamic_update", x * 1.0, v + 1.0, n, axis=axis)


def window(axis):
    return lambda x, v, n: apply("dynamic_update_slice", x * 1.0, v + 1.0, n, axis=axis)


def entry_of_an_entry(x, v, n):
    y = x * 1.0
    return put(y, put(at(y, n), v + 1.0, 1), n)


PARTS = [
    (entry(0), (3, 80), (80,), 1),
    (entry(0), (3, 16, 40), (16, 40), 1),
    (entry(1), (3, 16, 40), (3, 40), 2),
    (entry(1), (16, 5, 3, 24), (16, 3, 24), 2),
    (entry(2), (16, 5, 3), (16, 5), 1),
    (entry(3), (16, 3, 24, 5), (16, 3, 24), 1),
    (window(0), (9, 40), (4, 40), 1),
    (window(0), (9, 5, 40), (4, 5, 40), 1),
    (window(1), (9, 9, 40), (9, 4, 40), 2),
    (window(1), (9, 9, 5, 40), (9, 4, 5, 40), 2),
    (window(2), (9, 3, 44), (9, 3, 40), 2),
    (window(2), (9, 9, 8, 40), (9, 9, 4, 40), 2),
    (entry_of_an_entry, (3, 4, 5, 16), (5, 16), 1),
]


@pytest.mark.parametrize(("update", "shape", "part", "count"), PARTS)
def test_a_part_is_written_by_one_loop_for_each_axis_along_which_it_has_pieces(update, shape, part, count):
    assert loops(update, shape, part) == count


def test_a_row_of_an_array_of_unknown_size_is_computed_elsewhere():
    """There may be no row at all."""

    def body(i, a, c):
        row = apply("matvec", apply("dot", c, c, transpose_a=True, transpose_b=False), at(c, 0), transpose=False)
        return (put(a, row, i),)

    size = Array("float64", (symbol("n"), 3))
    graph = build(lambda x, c, n: for_((0, n, 1), body, (x * 2.0,), (c * 1.0,))[0], size, Array("float64", (2, 3)), INT)
    program = compile_program(graph)
    assert re.search(r"\bk\d+_dynamic_update\"", str(program.tir["main"]))
    for rows in (1, 4):
        x, c = np.ones((rows, 3)), np.arange(6.0).reshape(2, 3)
        np.testing.assert_allclose(program(x, c, rows), run(graph, (x, c, rows)))


def updated_in_a_call(x, y, n):
    f = build(lambda a, b, k: put(put(b, 1.0, k), 2.0, 0), vec(), vec(), INT, name="called")
    return call(f, y, x, n)


def loop(x, y, n):
    return for_((0, n, 1), lambda i, a, b: (put(a, 1.0, i), put(b, 2.0, i)), (y, x))


def updated_in_a_loop(x, y, n):
    return loop(x, y, n)[1]


def updated_in_a_while_loop(x, y, n):
    step = lambda k, a, b, n: (k + 1, a, put(b, 1.0, k))  # noqa: E731
    return while_(lambda k, a, b, n: k < n, step, (n * 0, y, x), (n,))[2]


def part_of_a_tuple(x, y, n):
    return cond(n > 1, lambda a, b: (a, b), lambda a, b: (b, a), x, y)[0]


def updated_in_one_branch(x, y, n):
    return cond(n > 1, lambda a, b: a * 2.0, lambda a, b: put(b, 1.0, 0), y, x)


def updated_in_the_other_branch(x, y, n):
    return cond(n > 1, lambda a, b: put(b, 1.0, 0), lambda a, b: a + b, y, x)


SOURCES = {
    "itself": (lambda x, y, n: x, "x"),
    "an update": (lambda x, y, n: put(x, 1.0, n), "x"),
    "an update by another one": (lambda x, y, n: apply("slice_add", x, y, n, axis=0), "x"),
    "a call": (updated_in_a_call, "x"),
    "a loop": (updated_in_a_loop, "x"),
    "a while loop": (updated_in_a_while_loop, "x"),
    "all results of a loop": (loop, None),
    "one branch": (updated_in_one_branch, "x"),
    "the other branch": (updated_in_the_other_branch, "x"),
    "a part of a tuple": (part_of_a_tuple, "x"),
    "a new array": (lambda x, y, n: x + y, None),
    "an update of a new array": (lambda x, y, n: put(x + y, 1.0, n), None),
    "new arrays of two branches": (lambda x, y, n: cond(n > 1, lambda a: a * 2.0, lambda a: a + 1.0, x), None),
    "a constant": (lambda x, y, n: np.ones(3), None),
    "a computed update": (lambda x, y, n: put(x, 1.0, n) * 1.0, None),
}


@pytest.mark.parametrize("name", SOURCES)
def test_what_a_value_is_an_updated_version_of(name):
    f, wanted = SOURCES[name]
    graph = build(f, vec(), vec(), INT)
    found = source(graph, graph.output)
    assert (found.name if found is not None else None) == wanted
    assert found is None or found in graph.params


def branch(x, y, n):
    return cond(n > 1, lambda a, b: (put(b, 1.0, 0), a * 2.0), lambda a, b: (b * 3.0, put(a, 2.0, 1)), x, y)


def branch_in_a_call(x, y, n):
    return call(build(branch, vec(), vec(), INT, name="called"), y, x, n)


def parts_of_a_branch(x, y, n):
    found = branch(x, y, n)
    return put(found[1], 3.0, 2), x + y, found[0]


def loop_in_a_call(x, y, n):
    return call(build(loop, vec(), vec(), INT, name="called"), y, x, n)


PARTS_OF_RESULTS = {
    branch: "y x",
    branch_in_a_call: "x y",
    parts_of_a_branch: "x - y",
    loop: "y x",
    loop_in_a_call: "x y",
}


@pytest.mark.parametrize("f", PARTS_OF_RESULTS, ids=lambda f: f.__name__)
def test_what_a_part_of_a_result_is_an_updated_version_of(f):
    graph = build(f, vec(), vec(), INT)
    wanted = PARTS_OF_RESULTS[f].split()
    found = [source_of_part(graph, k) for k in range(len(wanted))]
    assert [p.name if p is not None else "-" for p in found] == wanted


def test_a_recursion_is_followed_once():
    graph = Graph("recursion")
    b = Builder(graph)
    x, n = (b.var(graph.add_parameter(name, t)) for name, t in (("x", vec()), ("n", INT)))
    graph.output = x.node
    graph.output = put(call(graph, put(x, 1.0, n), n), 2.0, n).node
    assert source(graph, graph.output) is None  # it returns nothing
    outer = build(lambda x, n: put(call(graph, x, n), 1.0, n), vec(), INT)
    assert source(outer, outer.output) is None
    other = build(lambda a, n: a, vec(), INT)
    assert source(graph, graph.params[0]) is graph.params[0] and source(graph, other.params[0]) is None


def rows_further_down(x, n):
    """What is written lies where it is written to, one row higher."""
    y = x * 2.0
    return apply("dynamic_update_slice", apply("reshape", y, shape=(16, 40)), at(y, 0), n, axis=0)


def test_a_part_of_an_array_is_written_into_another_part_of_it():
    program = compile_program(build(rows_further_down, Array("float64", (2, 8, 40)), INT))
    x = np.arange(640.0).reshape(2, 8, 40)
    for n in (0, 1, 8):
        np.testing.assert_array_equal(program(x, n), run(program.graph, (x, n)))
