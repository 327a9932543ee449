"""Who may overwrite an array: what is given to loops, branches and calls, and what still looks at it.

Each program runs natively and by the interpreter; and it is stated how often it copies an array.
"""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import INT, Array
from myia_relay.backend.interpreter import run
from myia_relay.backend.tvm.program import compile_program
from tests.typed_graphs import apply, assert_close, build, cond, for_, vec, while_


def put(x, v, i):
    """x with x[i] = v."""
    return apply("dynamic_update", x, v, i, axis=0)


def at(x, i):
    return apply("dynamic_index", x, i, axis=0)


def total(x):
    return apply("reduce_sum", x, axes=(0,))


def number(i):
    return apply("cast", i, dtype="float64", weak=False)


# --- loops ---------------------------------------------------------------------------------------------------------------


def given(x, n):
    return for_((0, n, 1), lambda i, a: (put(a, number(i), i),), (x * 2.0,))[0]


def beside_itself(x, n):
    """The carried array is a constant of the loop as well."""
    y = x * 2.0
    return for_((0, n, 1), lambda i, a, c: (put(a, at(c, i + 1) + at(c, 0), i),), (y,), (y,))[0]


def carried_twice(x, n):
    y = x * 2.0
    return for_((0, n, 1), lambda i, a, b: (put(a, at(b, i + 1) + 1.0, i), put(b, at(a, 0) - 1.0, i)), (y, y))


def needed_behind(x, n):
    y = x * 2.0
    z = for_((0, n, 1), lambda i, a: (put(a, number(i), i),), (y,))[0]
    return z, total(y)


def needed_before(x, n):
    y = x * 2.0
    s = total(y)
    return for_((0, n, 1), lambda i, a: (put(a, number(i), i),), (y,))[0] + s


def argument(x, n):
    return for_((0, n, 1), lambda i, a: (put(a, number(i), i),), (x,))[0]


def view_needed_behind(x, n):
    y = x * 2.0
    seen = apply("reshape", y, shape=(2, 3))
    z = for_((0, n, 1), lambda i, a: (put(a, number(i), i),), (y,))[0]
    return z, apply("reduce_sum", seen, axes=(0,))


def swapped(x, n):
    return for_((0, n, 1), lambda i, a, b: (put(b, number(i), i), a), (x * 2.0, x * 3.0))


def old_one_returned(x, n):
    return for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), a), (x * 2.0, x * 3.0))


def nested(x, n):
    def row(i, a):
        return (for_((0, 3, 1), lambda j, c, i: (put(c, number(j) + at(c, i), j),), (a,), (i,))[0],)

    return for_((0, n, 1), row, (x * 2.0,))[0]


def nested_beside(x, n):
    def row(i, a):
        return (for_((0, 3, 1), lambda j, c, d: (put(c, at(d, j + 1) + 1.0, j),), (a,), (a,))[0],)

    return for_((0, n, 1), row, (x * 2.0,))[0]


def waiting(x, n):
    y = x * 2.0
    return while_(lambda k, a, c, n: k < n, lambda k, a, c, n: (k + 1, put(a, at(c, k + 1), k)), (n * 0, y), (y, n))[1]


# --- branches ------------------------------------------------------------------------------------------------------------


def branch(x, n):
    y = x * 2.0
    return cond(n > 2, lambda a, n: put(a, number(n), n), lambda a, n: a, y, n)


def branch_beside_itself(x, n):
    y = x * 2.0
    return cond(n > 2, lambda a, b: put(a, at(b, 1) + 1.0, 0) + b, lambda a, b: put(b, at(a, 2), 1) + a, y, y)


def branch_needed_behind(x, n):
    y = x * 2.0
    z = cond(n > 2, lambda a, n: put(a, number(n), n), lambda a, n: put(a, 7.0, n), y, n)
    return z, total(y)


def branch_in_a_loop(x, n):
    def body(i, a):
        return (cond(at(a, i) > 1.0, lambda a, i: put(a, 0.5, i), lambda a, i: a, a, i),)

    return for_((0, n, 1), body, (x * 2.0,))[0]


def both_of_a_branch(x, n):
    y = x * 2.0
    pair = cond(n > 2, lambda a: (a, a), lambda a: (a, a + 1.0), y)
    return put(pair[0], 9.0, 1), total(pair[1])


# --- straight lines ------------------------------------------------------------------------------------------------------


def twice(x, n):
    y = x * 2.0
    return put(y, 1.0, n), put(y, 2.0, n)


def one_after_the_other(x, n):
    return put(put(x * 2.0, 1.0, 0), 2.0, n)


def of_itself(x, n):
    y = x * 2.0
    return put(y, at(y, n) + at(y, 0), 1)


def read_behind(x, n):
    y = x * 2.0
    z = put(y, 1.0, n)
    return z, at(y, n)


def through_a_view(x, n):
    y = apply("reshape", x * 2.0, shape=(2, 3))
    z = apply("reshape", y, shape=(6,))
    new = put(z, 1.0, n)
    return new, y


def of_a_pair(x, n):
    pair = for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), b + a), (x * 2.0, x * 3.0))
    return put(pair[0], 5.0, 0), pair[1]


def of_a_pair_twice(x, n):
    pair = for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), b + a), (x * 2.0, x * 3.0))
    return put(pair[0], 5.0, 0), put(pair[0], 6.0, 1), pair[1]


def added(x, n):
    y = x * 2.0
    return apply("index_add", y, at(y, n) * 3.0, n, axis=0)


def rows(x, n):
    y = apply("reshape", x * 2.0, shape=(2, 3))
    return put(y, at(y, 1) + at(y, 0), 0)


def rows_of_itself(x, n):
    y = apply("reshape", x * 2.0, shape=(2, 3))
    z = put(y, at(y, 1) * at(y, 0), 0)
    return put(z, at(z, 0) + 1.0, 1)


def window(x, n):
    y = x * 2.0
    part = apply("dynamic_slice", y, 0, axis=0, length=5)
    return apply("dynamic_update_slice", y, part + 1.0, 1, axis=0)


# --- rows that are computed where they belong ------------------------------------------------------------------------------


def matrix(x):
    return apply("reshape", x * 2.0, shape=(2, 3))


def few(n):
    return apply("minimum", n, 2)


def rows_in_a_loop(x, n):
    c = apply("reshape", x + 1.0, shape=(2, 3))
    return for_((0, few(n), 1), lambda i, a, c: (put(a, apply("sin", at(c, i)) * 2.0, i),), (matrix(x),), (c,))[0]


def rows_of_the_array_itself(x, n):
    return for_((0, few(n), 1), lambda i, a: (put(a, apply("sin", at(a, i)) + at(a, 0), i),), (matrix(x),))[0]


def rows_and_a_sum(x, n):
    def body(i, a, s, c):
        return put(a, at(c, i) * s, i), s + at(at(a, i), 0)

    return for_((0, few(n), 1), body, (matrix(x), at(x, 0)), (matrix(x),))


def rows_of_products(x, n):
    def body(i, a, c):
        return (
            put(
                a,
                apply("matvec", apply("dot", c, c, transpose_a=True, transpose_b=False), at(c, i), transpose=False),
                i,
            ),
        )

    return for_((0, few(n), 1), body, (matrix(x),), (matrix(x + 1.0),))[0]


def rows_twice(x, n):
    def body(i, a, c):
        row = apply("matvec", apply("dot", c, c, transpose_a=True, transpose_b=False), at(c, i), transpose=False)
        return (put(put(a, row, i), row, 0),)

    return for_((0, few(n), 1), body, (matrix(x),), (matrix(x + 1.0),))[0]


def rows_of_products_kept(x, n):
    def body(i, a, b, c):
        row = apply("matvec", apply("dot", c, c, transpose_a=True, transpose_b=False), at(c, i), transpose=False)
        return put(a, row, i), b + row

    return for_((0, few(n), 1), body, (matrix(x), at(matrix(x), 0)), (matrix(x + 1.0),))


def branch_in_a_branch(x, n):
    def then(a, n):
        return cond(n > 3, lambda a, n: put(a, 3.0, n), lambda a, n: put(put(a, 1.0, n), 2.0, 0), a, n)

    def body(i, a, n):
        return (cond(n > 2, then, lambda a, n: a, a, n),)

    return for_((0, 2, 1), body, (x * 2.0,), (n,))[0]


def loop_in_a_branch(x, n):
    def then(a, n):
        return for_((0, n, 1), lambda i, a: (put(a, number(i), i),), (a,))[0]

    return for_((0, 2, 1), lambda i, a, n: (cond(n > 2, then, lambda a, n: a, a, n),), (x * 2.0,), (n,))[0]


PROGRAMS = {
    rows_in_a_loop: 1,
    rows_of_the_array_itself: 1,
    rows_and_a_sum: 3,
    rows_of_products: 1,
    rows_twice: 1,
    rows_of_products_kept: 2,
    branch_in_a_branch: 0,
    loop_in_a_branch: 0,
    given: 0,
    beside_itself: 1,
    carried_twice: 4,
    needed_behind: 1,
    needed_before: 0,
    argument: 1,
    view_needed_behind: 1,
    swapped: 4,
    old_one_returned: 4,
    nested: 0,
    nested_beside: 2,
    waiting: 1,
    branch: 1,
    branch_beside_itself: 3,
    branch_needed_behind: 3,
    branch_in_a_loop: 0,
    both_of_a_branch: 2,
    twice: 2,
    one_after_the_other: 1,
    of_itself: 1,
    read_behind: 1,
    through_a_view: 1,
    of_a_pair: 3,
    of_a_pair_twice: 4,
    added: 1,
    rows: 1,
    rows_of_itself: 1,
    window: 1,
}
"""Program -> copies of arrays in its code."""


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_results_and_copies(f):
    graph = build(f, vec(6), INT)
    program = compile_program(graph)
    x = np.linspace(0.1, 0.9, 6)
    for n in (0, 1, 3, 5):
        kept = x.copy()
        for _ in range(2):
            assert_close(program(x, n), run(graph, (x, n)))
        np.testing.assert_array_equal(x, kept)
    copies = str(program.tir["main"]).count("memmove")
    assert copies == PROGRAMS[f]


@pytest.mark.parametrize("name", ["dynamic_update_slice", "slice_add"])
def test_a_part_that_is_longer_than_the_array_is_not_written(name):
    """Of a size that only the call tells; inference has checks before it, but nobody writes beyond an array."""
    size = Array("float64", (symbol("n"),))
    graph = build(lambda x, v, i: apply(name, x * 2.0, v, i, axis=0), size, vec(3), INT)
    program, v = compile_program(graph), np.array([7.0, 8.0, 9.0])
    for n in (3, 4, 8):
        for i in (0, 1, n):
            x = np.arange(float(n))
            np.testing.assert_array_equal(program(x, v, i), run(graph, (x, v, i)))
    for n in (1, 2):
        x = np.arange(float(n))
        np.testing.assert_array_equal(program(x, v, 0), x * 2.0)
