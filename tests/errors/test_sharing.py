"""An array that something else may see is not changed in place: the caller's array, through whatever returned it."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, relay


def ident(a):
    return a


def maybe(a, c):
    return a if c else a * 2.0


def rows(a):
    return a[0], a


def after_no_turn(a, n):
    for _ in range(n):
        a = a * 2.0
    return a


def assigned(p):
    y = ident(p)
    y[0] = 100.0
    return p.sum()


def augmented(p):
    y = ident(p)
    y += 1.0
    return p.sum()


def of_a_local(p):
    z = p * 1.0
    y = ident(z)
    y[0] = 100.0
    return z.sum()


def through_a_branch(p):
    y = maybe(p, p.sum() > 0.0)
    y[0] = 100.0
    return p.sum()


def through_a_loop(p):
    y = ident(p)
    for i in range(2):
        y[i] = 100.0
    return p.sum()


def through_a_loop_that_may_not_run(p):
    y = after_no_turn(p, 0)
    y[0] = 100.0
    return p.sum()


def a_row(p):
    y, _ = rows(p)
    y[0] = 100.0
    return p.sum()


def a_copy(p):
    y = ident(p).copy()
    y[0] = 100.0
    return y.sum() + p.sum()


def a_fresh_result(p):
    y = maybe(p, True) * 1.0
    y[0] = 100.0
    y += 1.0
    return y.sum() + p.sum()


@pytest.mark.parametrize(
    "function", [assigned, augmented, of_a_local, through_a_branch, through_a_loop, through_a_loop_that_may_not_run]
)
def test_refused(function, executor):
    p = np.ones(3)
    with pytest.raises(CompileError) as caught:
        relay(executor=executor)(function)(p)
    assert "copy it first" in str(caught.value) and "relay.at(x)" in str(caught.value) and "^" in str(caught.value)
    assert (p == 1.0).all()


def test_a_row_of_a_matrix_is_refused(executor):
    with pytest.raises(CompileError, match="copy it first"):
        relay(executor=executor)(a_row)(np.ones((2, 3)))


@pytest.mark.parametrize("function", [a_copy, a_fresh_result])
def test_accepted(function, executor):
    p = np.ones(3)
    assert relay(executor=executor)(function)(p) == function(np.ones(3))
    assert (p == 1.0).all()


# A recursion that permutes its arguments returns either of them.


def pick(n, x, y):
    return x if n < 1 else pick(n - 1, y, x)


def pick_of(n, a, b):
    return pick(n, a.copy(), b)


def of_a_recursion(n, p, q):
    p, q = p * 1.0, q * 1.0
    z = pick_of(n, p, q)
    z[0] = 5.0
    return p, q, z


def of_a_recursion_of_lists(n, p, q):
    ps, qs = [1.0, 2.0], [3.0, 4.0]
    for _ in range(n):
        ps.append(1.0)
        qs.append(2.0)
    z = pick_of(n, ps, qs)
    z[0] = 5.0
    return ps, qs, z


def made(n, x):
    return x * 2.0 if n < 1 else made(n - 1, x)


def of_a_fresh_recursion(n, p, q):
    p = p * 1.0
    z = made(n, p)
    z[0] = 5.0
    return p + q, z


@pytest.mark.parametrize("function", [of_a_recursion, of_a_recursion_of_lists])
def test_a_result_of_a_recursion_that_may_be_its_argument_is_refused(function, executor):
    for n in (0, 1):
        with pytest.raises(CompileError, match="may be, or hold, the same object as"):
            relay(executor=executor)(function)(n, np.ones(3), np.ones(3))


def test_a_fresh_result_of_a_recursion_is_changed(executor):
    for n in (0, 1, 2):
        args = n, np.arange(3.0), np.ones(3)
        got, want = relay(executor=executor)(of_a_fresh_recursion)(*args), of_a_fresh_recursion(*args)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
