"""Assignments to the variables of the function around that cannot be followed: refused with a place and advice."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay


def differentiated(x):
    t = 0.0

    def inner(y):
        nonlocal t
        t = t + y  # here
        return t * y

    return grad(inner)(x)


def returned(x):  # here
    t = 0.0

    def inner(y):
        nonlocal t
        t = t + y
        return t

    return inner


def array_kept(x):
    kept = np.zeros(3)

    def keep(v):
        nonlocal kept
        kept = v

    a = np.ones(3)
    if x > 1:
        keep(a)
    a[0] = 5.0  # here
    return kept


def array_of_a_cell(x):
    kept = np.zeros(3)

    def use():
        nonlocal kept
        kept = kept + 1

    a = kept
    a[0] = x  # here
    use()
    return kept


def added_in_place(x):
    kept = np.zeros(3)
    old = kept

    def add(v):
        nonlocal kept
        kept += v  # here

    add(x)
    return old


def perhaps_unbound(x):
    def bind():
        nonlocal y
        y = x

    if x > 100:
        bind()
    elif x > 50:
        y = 0
    return y  # here


def bound_in_the_loop(n):
    f = None
    for i in range(n):
        c = i

        def inc():
            nonlocal c
            c += 1
            return c

        if f is None:
            f = inc
    return f()  # here


def condition(n):
    c = 0

    def more():
        nonlocal c
        c += 1
        return c < n

    def repeat(test):
        k = 0
        while test():  # here
            k += 1
        return k

    return repeat(more)


def bound_unless_the_loop_is_left(n):
    for k in range(n):
        if k == 5:
            break
        y = k * 5

        def more():
            nonlocal y
            y = y + 7

        more()
    return y  # here


def bound_in_an_inner_loop(n):
    for k in range(n):
        for j in range(2):
            if k > j:
                continue
            y = j

            def more():
                nonlocal y
                y = y + 7

            more()
    return y  # here


CASES = [
    (differentiated, "'t'", "pass its value as an argument"),
    (returned, "'t'", "return the new value"),
    (array_kept, "in place", "copy"),
    (array_of_a_cell, "'kept', which changes while", "copy"),
    (added_in_place, "in place", "x = x + y"),
    (perhaps_unbound, "'y' may not be bound here", "before"),
    (bound_in_the_loop, "'c'", "bind it before"),
    (bound_unless_the_loop_is_left, "'y' may not be bound here", "before"),
    (bound_in_an_inner_loop, "'y' may not be bound here", "before"),
]


@pytest.mark.parametrize(("function", "wrong", "advice"), CASES, ids=[c[0].__name__ for c in CASES])
def test_refused(function, wrong, advice):
    with pytest.raises(CompileError) as caught:
        relay(executor="interpreter")(function)(2.0 if "diff" in function.__name__ else 2)
    text = str(caught.value)
    assert wrong in caught.value.message and advice in caught.value.message, text
    assert function.__name__ in text and "# here" in text, text


def test_a_condition_that_assigns_is_followed():
    assert relay(executor="interpreter")(condition)(4) == condition(4) == 3
