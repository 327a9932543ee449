"""Functions and None as run-time values: chosen by data, narrowed by tests, returned to Python, called there."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay
from tests.property.oracle import function_of


def chosen(x, flag):
    def scale(a):
        return a * x

    def shift(a):
        return a + x

    f = scale if flag else shift
    return f(3.0)


def last_below(x, n):
    best = None
    for i in range(n):
        if x > i:
            best = i
    return best


def optional(x):
    y = None
    if x > 1.0:
        y = x * 2
    if y is not None:
        return y + 1.0
    return -1.0


def string_or_number(x):
    y = "small" if x < 1 else x
    if isinstance(y, str):
        return 0.0
    return y * 2


def three_ways(x, k):
    def one(a):
        return a

    def two(a):
        return a * a

    if k == 0:
        f = one
    elif k == 1:
        f = two
    else:
        f = None
    return f(x)


def counter(a, w):
    def polynomial(x):
        return a * x * x + w.sum()

    return polynomial


def pick(a, flag):
    return (lambda x: x + a) if flag else (lambda x: x * a)


def chosen_at_compile_time(x, n):
    def scale(v):
        return v * x

    def shift(v):
        return v + x

    h = scale if True else shift
    y = 0.0
    for _ in range(n):
        y = h(2.0)
    return y + h(3.0)


def listed(x):
    total = 0.0
    for h in [lambda v, k=k: v * k for k in (1.0, 2.0, 3.0)]:
        total = total + h(x)
    return total


def made_in_turns(x):
    made = ()
    for s in (1.0, 2.0):

        def scaled(v, s=s):
            return v * s * x

        made = (*made, scaled)
    return made[0](1.0) + made[1](1.0)


@pytest.mark.parametrize("function, inputs", [
    (chosen_at_compile_time, [(2.0, 3), (2.0, 0)]),
    (listed, [(2.0,)]),
    (made_in_turns, [(2.0,)]),
    (chosen, [(2.0, True), (2.0, False)]),
    (last_below, [(-1.0, 5), (2.5, 5), (10.0, 5), (1.0, 0)]),
    (optional, [(0.0,), (3.0,)]),
    (string_or_number, [(0.5,), (4.0,)]),
    (three_ways, [(3.0, 0), (3.0, 1)]),
])  # fmt: skip
def test_values(function, inputs, executor):
    f = relay(executor=executor)(function)
    for args in inputs:
        got, want = f(*args), function(*args)
        assert type(got) is type(want) and got == want


def test_an_option_that_cannot_be_called_raises_when_it_is_reached(executor):
    f = relay(executor=executor)(three_ways)
    assert f(3.0, 1) == 9.0
    with pytest.raises(TypeError, match="not callable"):
        f(3.0, 2)


def test_derivatives_of_chosen_functions(executor):
    f = relay(executor=executor)(chosen)
    assert grad(f)(2.0, True) == 3.0 and grad(f)(2.0, False) == 1.0 and grad(grad(f))(2.0, True) == 0.0
    assert grad(relay(executor=executor)(optional))(3.0) == 2.0


def test_returned_functions(executor):
    make = relay(executor=executor)(counter)
    f = make(2.0, np.ones(3))
    assert f(3.0) == 21.0 and f(4) == 35.0
    assert make(5.0, np.zeros(2))(1.0) == 5.0, "what it captured belongs to it"
    assert grad(f)(3.0) == 12.0

    @relay(executor=executor)
    def use(h, x):
        return h(x) + 1.0

    assert use(f, 2.0) == 12.0


def test_a_returned_choice(executor):
    f = relay(executor=executor)(pick)
    assert f(3.0, True)(5.0) == 8.0 and f(3.0, False)(5.0) == 15.0


def chain(length):
    """A function whose choices of functions each hold the one before: the forms of the last double with every link."""
    lines = ["def program(x):", "    g = lambda y: y"]
    for k in range(length):
        lines.append(f"    g = (lambda y, h=g: h(y) + {k}.0) if x > {k} else (lambda y, h=g: h(y) * {k}.5)")
    return function_of("\n".join([*lines, "    return g(x)"]) + "\n", f"<chain of {length}>")


def test_a_chain_of_chosen_functions(executor):
    f = chain(6)
    assert [relay(executor=executor)(f)(x) for x in (-1.0, 2.5, 9.0)] == [f(x) for x in (-1.0, 2.5, 9.0)]


def test_a_long_chain_of_chosen_functions():
    f = chain(14)
    assert [relay(executor="interpreter")(f)(x) for x in (-1.0, 9.0)] == [f(x) for x in (-1.0, 9.0)]
