"""Closures that a recursion wraps in each other: compiled where a number that is known bounds the recursion."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import TypeError_, grad, relay
from tests.slopes import slopes


def compose(f, n):
    return f if n == 0 else compose(lambda x: f(f(x)), n - 1)


def power(f, n):
    if n == 0:
        return lambda x: x
    g = power(f, n - 1)
    return lambda x: f(g(x))


def with_continuation(n, k):
    return k(1) if n == 0 else with_continuation(n - 1, lambda v: k(v * n))


def nested(f, n):
    if n > 0:

        def g(x):
            return f(x) + n

        return nested(g, n - 1)
    return f


def layers(x, n, f):
    """Both in turn: neither may forget the number."""
    return f(x) if n == 0 else more_layers(x * 0.5, n, lambda y: np.tanh(f(y)) * n)


def more_layers(x, n, f):
    return layers(x + 1.0, n - 1, lambda y: f(y) - x)


def pairs(n, t):
    return t if n == 0 else pairs(n - 1, (t, n))


def affine(y):
    return y * 1.25 + 1.0


def composed(x):
    return compose(affine, 3)(x)


def composed_often(x):
    return power(lambda y: np.sin(y) + y, 50)(x)


def continued(x):
    return with_continuation(6, lambda v: v * x * x)


def of_numbers(x):
    return nested(np.tanh, 7)(x)


def in_turn(x):
    return layers(x, 4, lambda y: y * x)


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        total += compose(lambda y: y * 0.5 + k, 2)(x)  # noqa: B023 (called in its own turn)
    return total


def under_a_condition(x):
    return compose(np.sin, 2)(x) if x > 0.5 else power(np.cos, 3)(x)


def of_a_tuple(x):
    t = pairs(3, (x, 0))
    return t[0][0][0][0] * t[1] + t[0][1]


PROGRAMS = [composed, composed_often, continued, of_numbers, in_turn, in_a_loop, under_a_condition, of_a_tuple]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("f", PROGRAMS)
def test_program(executor, f):
    for x in (0.75, -0.3):
        got = relay(executor=executor)(f)(x)
        assert got == f(x) or np.isclose(got, f(x), rtol=1e-15, atol=0)
        assert type(got) is type(f(x))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f):
    x = 0.7
    want = slopes(lambda v: float(f(float(v[0]))), np.array([x]), 1e-6)[0]
    assert relay(grad(f))(x) == pytest.approx(want, rel=1e-5)


@pytest.mark.sampled(3)
def test_a_static_argument(executor):
    def f(x, n):
        return compose(affine, n)(x) + with_continuation(n, lambda v: v * x)

    compiled = relay(executor=executor, static=("n",))(f)
    for n in (0, 1, 4):
        assert compiled(0.5, n) == f(0.5, n)


def forever(f, n):
    return forever(lambda x: f(x) + n, n + 1)


def fibonacci(n, k):
    """Two calls of itself, so the functions that may come here are a tree."""
    if n < 2:
        return k(n)
    return fibonacci(n - 1, lambda v: fibonacci(n - 2, lambda w: k(v + w)))


def by_a_value(f, x):
    return f(x) if x > 100.0 else by_a_value(lambda y: f(y) + x, x + 1.0)


def unbounded_pairs(n, x):
    return pairs(n, (x, 0))[1]


def forever_from_zero(x):
    return forever(affine, 0)(x)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, n: compose(affine, n)(x), (1.0, 3)),
        (lambda x: by_a_value(affine, x), (95.0,)),
        (lambda n: fibonacci(n, lambda v: v), (10,)),
    ],
)
def test_where_nothing_known_bounds_functions_they_exist_at_run_time(function, args):
    assert relay(function)(*args) == function(*args)


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [(unbounded_pairs, (3, 1.0), r"grow without bound.*static="), (forever_from_zero, (1.0,), "has no base case")],
)
def test_where_nothing_known_bounds_it(function, args, message):
    with pytest.raises(TypeError_, match=message) as caught:
        relay(function)(*args)
    assert type(caught.value) is TypeError_ and caught.value.loc is not None
