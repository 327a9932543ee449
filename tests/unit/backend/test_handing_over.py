"""Who may overwrite an array: what is given to loops, branches and calls, and what still looks at it.

Each program runs natively and by the interpreter; and it is stated how often it copies an array.
"""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import INT
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


PROGRAMS = {
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
