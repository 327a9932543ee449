"""Who may overwrite an array: what is given to loops, branches and calls, and what still looks at it.

Each program runs natively and by the interpreter; and it is stated what kernels it runs, and how often it copies an array.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import INT, Array, tuple_of
from myia_relay.backend.interpreter import run
from myia_relay.backend.tvm.program import compile_program
from tests.typed_graphs import apply, assert_close, build, call, cond, for_, vec, while_


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


def product(c, i):
    """A row that is computed by a kernel of its own, which writes where it is told."""
    return apply("matvec", apply("dot", c, c, transpose_a=True, transpose_b=False), at(c, i), transpose=False)


def row_at_a_constant_index(x, n):
    return for_((0, few(n), 1), lambda i, a, c: (put(a, product(c, i), 1),), (matrix(x),), (matrix(x + 1.0),))[0]


def rows_of_a_loop_that_makes_the_result(x, n):
    square = apply("dot", matrix(x), matrix(x), transpose_a=True, transpose_b=False)
    return for_((0, few(n), 1), lambda i, a, c: (put(a, product(c, i), i),), (square,), (matrix(x + 1.0),))[0]


def rows_of_two_arrays(x, n):
    def body(i, a, b, c):
        return put(a, product(c, i), i), put(b, product(c, 1 - i), i)

    return for_((0, few(n), 1), body, (matrix(x), matrix(x * 3.0)), (matrix(x + 1.0),))


def row_at_a_computed_index(x, n):
    def body(i, a, c):
        k = apply("minimum", i * 2, 1)
        return (put(a, product(c, i), k),)

    return for_((0, few(n), 1), body, (matrix(x),), (matrix(x + 1.0),))[0]


def row_at_an_index_that_comes_later(x, n):
    def body(i, a, c):
        row = product(c, i)
        return (put(a, row, apply("cast", at(row, 0) * 0.0, dtype="int64", weak=False)),)

    return for_((0, few(n), 1), body, (matrix(x),), (matrix(x + 1.0),))[0]


def row_of_a_product_of_the_array(x, n):
    return for_((0, few(n), 1), lambda i, a: (put(a, product(a, i), i),), (matrix(x),))[0]


def row_of_an_array_that_is_changed_further(x, n):
    return for_((0, few(n), 1), lambda i, a, c: (put(a, product(c, i), i) * 2.0,), (matrix(x),), (matrix(x + 1.0),))[0]


def row_of_an_array_that_is_read_too(x, n):
    def body(i, a, s, c):
        return put(a, product(c, i), i), s + total(at(a, 0))

    return for_((0, few(n), 1), body, (matrix(x), at(x, 0)), (matrix(x + 1.0),))


def column_of_products(x, n):
    def body(i, a, c):
        return (apply("dynamic_update", a, product(c, i), i, axis=1),)

    square = apply("dot", matrix(x), matrix(x), transpose_a=True, transpose_b=False)
    return for_((0, few(n), 1), body, (square,), (matrix(x + 1.0),))[0]


def row_of_a_row(x, n):
    a = apply("reshape", apply("concatenate", x, x * 2.0, axis=0), shape=(2, 2, 3))

    def body(i, a, c):
        return (put(a, put(at(a, i), product(c, i), 1), i),)

    return for_((0, few(n), 1), body, (a,), (matrix(x + 1.0),))[0]


def row_of_a_branch(x, n):
    def then(a, c, n):
        return put(a, product(c, few(n)), 1)

    return cond(n > 2, then, lambda a, c, n: a, matrix(x), matrix(x + 1.0), n)


def rows_of_no_array(x, n):
    return put(matrix(x), product(matrix(x + 1.0), few(n)), 1)


def computed_later_from_what_is_changed(x, n):
    y = x * 2.0
    z = y * 3.0
    new = put(y, 1.0, n)
    return new, total(z)


def computed_later_from_a_view_of_it(x, n):
    y = matrix(x)
    z = apply("reshape", y, shape=(6,)) * 3.0
    new = put(y, at(y, 1), 0)
    return new, total(z)


def part_of_itself(x, n):
    y = x * 2.0
    return apply("dynamic_update_slice", y, apply("dynamic_slice", y, 0, axis=0, length=5), 1, axis=0)


def row_of_itself(x, n):
    y = matrix(x)
    return put(y, at(y, 1), 0)


def row_that_is_computed_from_another_array(x, n):
    y, z = matrix(x), matrix(x + 1.0)
    return put(y, at(z, 1) * 2.0, few(n) - 1)


def matrix_in_place(x, n):
    a = apply("reshape", apply("concatenate", x, x * 2.0, axis=0), shape=(2, 2, 3)) + 1.0
    return put(a, matrix(x) * 3.0, few(n) - 1)


def reshaped_result(x, n):
    return apply("reshape", product(matrix(x), few(n) - 1), shape=(3, 1))


def result_twice(x, n):
    y = product(matrix(x), few(n) - 1)
    return y, y


def result_and_reshaped(x, n):
    y = product(matrix(x), few(n) - 1)
    return apply("reshape", y, shape=(3, 1)), y


def sum_as_a_result(x, n):
    return apply("reduce_sum", matrix(x), axes=(0,)), total(x)


def argument_as_a_result(x, n):
    return x, apply("reshape", x, shape=(2, 3))


def second_of_a_loop(x, n):
    def then(a, b, n):
        return for_((0, few(n), 1), lambda i, c, d: (put(c, number(i), i), put(d, 1.0, i)), (b, a))[1]

    y, z = x * 2.0, x * 3.0
    return cond(n > 2, then, lambda a, b, n: a, y, z, n)


def while_in_a_branch(x, n):
    def then(a, n):
        return while_(lambda k, a, n: k < n, lambda k, a, n: (k + 1, put(a, number(k), k)), (n * 0, a), (n,))[1]

    return for_((0, 2, 1), lambda i, a, n: (cond(n > 2, then, lambda a, n: a, a, n),), (x * 2.0,), (n,))[0]


def other_of_two_branches(x, n):
    def then(a, b, n):
        return cond(n > 3, lambda c, d: put(d, 3.0, 0), lambda c, d: d, b, a)

    return cond(n > 2, then, lambda a, b, n: put(a, 1.0, 1), x * 2.0, x * 3.0, n)


def given_away_twice(x, n):
    y = x * 2.0
    first = for_((0, n, 1), lambda i, a: (put(a, number(i), i),), (y,))[0]
    return for_((0, n, 1), lambda i, a: (put(a, number(i) * 2.0, i),), (first,))[0]


def given_while_a_row_is_needed(x, n):
    y = matrix(x)
    row = at(y, 0)
    new = for_((0, few(n), 1), lambda i, a: (put(a, at(a, 1 - i), i),), (y,))[0]
    return new, row


def of_a_loop_whose_other_result_is_needed(x, n):
    pair = for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), put(b, 1.0, i)), (x * 2.0, x * 3.0))
    new = put(pair[0], 5.0, 0)
    return new, total(pair[1])


def pair_handed_on(x, n):
    pair = for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), put(b, 1.0, i)), (x * 2.0, x * 3.0))
    return put(pair[0], 5.0, 0), total(pair[0])


def result_of_a_call(x, n):
    return call(build(lambda a, k: put(a * 2.0, 1.0, k), vec(6), INT, name="called"), x, n)


def held_by_a_tuple(x, n):
    y = x * 2.0
    held = apply("make_struct", y, y, type=tuple_of(vec(6), vec(6)))
    return put(y, 1.0, n), held


def of_a_constant(x, n):
    return apply("dynamic_update", np.arange(6.0), 1.0, n, axis=0) + x


def through_a_branch_that_takes_a_tuple(x, n):
    pair = for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), put(b, 1.0, i)), (x * 2.0, x * 3.0))
    first = pair[0]
    s = cond(n > 2, lambda t: total(t[0]) + total(t[1]), lambda t: total(t[1]), pair)
    new = put(first, 5.0, 0)
    return new, s, total(pair[1])


def tuple_that_is_needed_behind(x, n):
    pair = for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), put(b, 1.0, i)), (x * 2.0, x * 3.0))
    new = put(pair[0], 5.0, 0)
    return new, cond(n > 2, lambda t: total(t[0]), lambda t: total(t[1]), pair)


def first_of_a_pair_and_then_the_second(x, n):
    pair = for_((0, n, 1), lambda i, a, b: (put(a, number(i), i), put(b, 1.0, i)), (x * 2.0, x * 3.0))
    return put(pair[0], 5.0, 0), put(pair[1], 6.0, 1)


PROGRAMS = {
    given: "mul",
    beside_itself: "mul copy",
    carried_twice: "mul copy copy copy copy",
    needed_behind: "mul copy reduce_sum",
    needed_before: "mul reduce_sum add",
    argument: "copy",
    view_needed_behind: "mul copy reduce_sum",
    swapped: "mul copy copy copy copy",
    old_one_returned: "mul copy copy copy copy",
    nested: "mul",
    nested_beside: "mul copy copy",
    waiting: "mul copy",
    branch: "mul copy",
    branch_beside_itself: "mul copy add copy add copy",
    branch_needed_behind: "mul copy copy reduce_sum copy",
    branch_in_a_loop: "mul",
    both_of_a_branch: "mul copy add reduce_sum copy",
    twice: "mul copy copy",
    one_after_the_other: "mul copy",
    of_itself: "mul copy",
    read_behind: "mul copy",
    through_a_view: "mul copy",
    of_a_pair: "mul copy add copy",
    of_a_pair_twice: "mul copy add copy copy copy",
    added: "mul copy",
    rows: "mul add dynamic_update copy",
    rows_of_itself: "mul mul dynamic_update add dynamic_update copy",
    window: "mul add dynamic_update_slice copy",
    rows_in_a_loop: "add_mul mul copy",
    rows_of_the_array_itself: "mul add dynamic_update copy",
    rows_and_a_sum: "mul copy dynamic_update copy copy",
    rows_of_products: "mul dot matvec copy",
    rows_twice: "mul dot matvec dynamic_update dynamic_update copy",
    rows_of_products_kept: "mul copy dot matvec add copy",
    branch_in_a_branch: "mul",
    loop_in_a_branch: "mul",
    row_at_a_constant_index: "mul dot matvec copy",
    rows_of_a_loop_that_makes_the_result: "mul dot mul dot matvec dynamic_update",
    rows_of_two_arrays: "mul dot matvec dot matvec copy copy",
    row_at_a_computed_index: "mul dot matvec copy",
    row_at_an_index_that_comes_later: "mul dot matvec dynamic_update copy",
    row_of_a_product_of_the_array: "mul dot matvec dynamic_update copy",
    row_of_an_array_that_is_changed_further: "mul dot matvec dynamic_update mul copy",
    row_of_an_array_that_is_read_too: "mul dot matvec copy dynamic_update reduce_sum copy copy",
    column_of_products: "mul dot mul dot matvec dynamic_update",
    row_of_a_row: "concatenate mul dot matvec dynamic_update copy",
    row_of_a_branch: "mul dot matvec dynamic_update copy",
    rows_of_no_array: "mul dot matvec dynamic_update copy",
    computed_later_from_what_is_changed: "mul copy reduce_sum",
    computed_later_from_a_view_of_it: "mul copy dynamic_update reduce_sum",
    part_of_itself: "mul copy dynamic_update_slice copy",
    row_of_itself: "mul copy dynamic_update copy",
    row_that_is_computed_from_another_array: "mul dynamic_update copy",
    matrix_in_place: "add dynamic_update copy",
    reshaped_result: "mul dot matvec",
    result_twice: "mul dot matvec copy",
    result_and_reshaped: "mul dot matvec copy",
    sum_as_a_result: "reduce_sum reduce_sum",
    argument_as_a_result: "copy copy",
    second_of_a_loop: "mul copy",
    while_in_a_branch: "mul",
    other_of_two_branches: "mul copy",
    given_away_twice: "mul",
    given_while_a_row_is_needed: "mul copy copy dynamic_update copy",
    of_a_loop_whose_other_result_is_needed: "mul reduce_sum",
    pair_handed_on: "mul copy reduce_sum",
    result_of_a_call: "mul copy",
    held_by_a_tuple: "mul copy copy",
    of_a_constant: "copy add",
    through_a_branch_that_takes_a_tuple: "mul reduce_sum reduce_sum reduce_sum copy reduce_sum",
    tuple_that_is_needed_behind: "mul copy reduce_sum reduce_sum",
    first_of_a_pair_and_then_the_second: "mul",
}
"""Program -> the kernels and the copies of its code, in order."""


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.sampled(6)
def test_results_and_copies(f):
    graph = build(f, vec(6), INT)
    program = compile_program(graph)
    x = np.linspace(0.1, 0.9, 6)
    for n in (0, 1, 3, 5):
        kept = x.copy()
        for _ in range(2):
            assert_close(program(x, n), run(graph, (x, n)))
        np.testing.assert_array_equal(x, kept)
    assert work(program) == PROGRAMS[f]


def work(program):
    """What a program does with arrays: its kernels, without their numbers, and copies."""
    calls = re.findall(r"memmove|\"k\d+_(\w+)\"", str(program.tir["main"]))
    return " ".join(name or "copy" for name in calls)


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
    # The sum of the sizes is known, and says nothing.
    part = Array("float64", (7 - symbol("n"),))
    graph = build(lambda x, v, i: apply(name, x * 2.0, v, i, axis=0), size, part, INT)
    program = compile_program(graph)
    for n in range(1, 7):
        x, v = np.arange(float(n)), np.full(7 - n, 7.0)
        expected = run(graph, (x, v, 0)) if 7 - n <= n else x * 2.0
        np.testing.assert_array_equal(program(x, v, 0), expected)
