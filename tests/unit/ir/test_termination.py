"""Loops that may not end stay, though nobody uses their values; loops that are known to end go."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from myia_relay import grad, relay, vmap
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import all_graphs


class Interrupted(Exception):
    """Raised by the tests' alarm."""


def waits(n):
    while n > 0:
        pass
    return 5


def counts(n):
    steps = 0
    while n != 0:
        steps += n * 0
    return 5


def inside(n):
    for _ in range(3):
        if n > 0:
            while n < 10:
                n = n * 1
    return 5


def called(n):
    def until(k):
        while k > 0:
            k = k * 1
        return k

    unused = until(n)  # noqa: F841
    return 5


def forever(n):
    if n > 0:
        while True:
            pass
    return 5


def by_condition(n):
    unused = waits(n) if n < 100 else 3  # noqa: F841
    return 5


def floats(x):
    while x > 0:
        x = x * 0.5 + 1.0
    return 5


ENDLESS = [waits, counts, inside, called, forever, by_condition, floats]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
@pytest.mark.parametrize("function", ENDLESS, ids=lambda f: f.__name__)
@pytest.mark.sampled(5)
def test_a_loop_that_does_not_end_goes_on_until_it_is_interrupted(function, executor):
    """As CPython's does; the first call compiles, so the alarm finds the second one in its loop."""
    compiled = relay(executor=executor)(function)
    zero, one = (0.0, 1.0) if function is floats else (0, 1)
    assert compiled(zero) == 5

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interrupted):
            compiled(one)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert compiled(zero) == 5


def loops(function, *args) -> int:
    """How many loops a program has in the end."""
    graph = relay(function).ir(*args).graph
    return sum(applied(n) in ("while_loop", "for_loop") for g in all_graphs(graph) for n in g.nodes)


def up(n):
    i = 0
    while i < n:
        i += 1
    return n


def down(n):
    i = n
    while i > 0 and i != 7:
        i -= 2
    return n


def from_the_right(n):
    i = 0
    while n > i:
        i = 1 + i
    return n


def nested(n):
    i = 0
    while i < n:
        j = i
        while j < n:
            j += 1
        i += 1
    return n


def with_break(n, k=3):
    for i in range(0, n, k):
        if i == 7:
            break
    return n


def by_a_step_of_either_sign(n):
    for i in range(0, 20, n):
        if i == 7:
            break
    return n


def of_range(n):
    s = 0.0
    for i in range(n):
        s += i
    return n


@pytest.mark.parametrize(
    "function",
    [up, down, from_the_right, nested, with_break, by_a_step_of_either_sign, of_range],
)
def test_a_loop_that_is_known_to_end_goes_with_its_values(function):
    assert loops(function, 9) == 0


def numpy_to_the_last(n):
    i = np.int64(0)
    while i <= n:
        i += np.int64(1)
    return n


def numpy_by_steps(n):
    i = np.int64(0)
    while i < n:
        i += np.int64(2)
    return n


def moving_bound(n):
    i = 0
    while i < n:
        i += 1
        n += 1
    return 3


def sometimes(n):
    i = 0
    while i < n:
        if n > 5:
            i += 1
    return n


def away(n):
    i = np.int64(1)
    while i > n:
        i += np.int64(1)
    return n


@pytest.mark.parametrize("function", [numpy_to_the_last, numpy_by_steps, sometimes, away])
def test_a_counter_that_may_miss_its_bound_proves_nothing(function):
    """NumPy's integers wrap: the largest of them is never passed."""
    assert loops(function, np.int64(9)) == 1


def test_a_bound_that_moves_too_proves_nothing():
    assert loops(moving_bound, 9) == 1


def newton(x):
    y = x
    while abs(y * y - x) > 1e-9:
        y = 0.5 * (y + x / y)
    return y


def test_derivatives_run_each_loop_of_the_user_once():
    """The forward and the backward loop of a gradient; no copy is left over that nobody needs."""

    def gradient(x):
        return grad(newton)(x)

    def second(x):
        return grad(grad(newton))(x)

    def batch(xs):
        return vmap(newton)(xs)

    assert loops(gradient, 2.0) == 2
    assert loops(batch, np.ones(3)) == 1
    assert loops(second, 2.0) == 4
