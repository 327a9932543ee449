"""Several independent mistakes of a program are reported together, and what follows from one of them is not."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import AttributeError_, CompileError, ShapeError, TypeError_, grad, relay


def helper(y):
    k = y.shpae
    return k + 1


def four_mistakes(x):
    a = x @ np.ones((5, 5))
    b = undefinedd(x)  # noqa: F821
    c = a + 1
    for _ in range(3):
        g = "a" - c
    d = b.shape[0] + g
    return helper(x) + d


def in_a_loop(x, n):
    t = 0.0
    while n > 0:
        t = t + x.foo
        n = n - 1
    u = t * 2
    return u, n.missing


def twice_the_same(x):
    return helper(x) + helper(x)


def follows(x):
    a = x.foo
    b = a + 1
    c = [b, a, 2][1] * b
    return {"c": c}["c"] if b else a


def asked_of_it(x, y):
    while np.sum(x) < 10.0:
        x = x @ y
    return x if x[0, 0] > 0 else grad(lambda z: z * x.foo)(y)


def of_a_gradient(x):
    return grad(lambda z: z.bar(x))(x)


def many(x):
    return (x.a, x.b, x.c, x.d, x.e, x.f, x.g, x.h, x.i, x.j, x.k, x.l, x.m)


CASES = [
    (four_mistakes, (np.ones((3, 4)),), ShapeError, ["do not fit", "'undefinedd'", "did you mean 'shape'"]),
    (in_a_loop, (1.0, 3), AttributeError_, ["'foo'", "'missing'"]),
    (twice_the_same, (np.ones(3),), AttributeError_, ["'shpae'"]),
    (follows, (1.0,), AttributeError_, ["'foo'"]),
    (asked_of_it, (np.ones((3, 3)), np.ones((2, 3))), ShapeError, ["do not fit"]),
    (of_a_gradient, (1.0,), AttributeError_, ["'bar'"]),
    (many, (1.0,), AttributeError_, [f"'{c}'" for c in "abcdefghij"]),
]


@pytest.mark.parametrize(("function", "args", "kind", "messages"), CASES, ids=[c[0].__name__ for c in CASES])
def test_reported_together(function, args, kind, messages):
    with pytest.raises(CompileError) as caught:
        relay(executor="interpreter")(function)(*args)
    error = caught.value
    assert type(error) is kind
    found = [error.message, *[text for text, _ in error.notes]]
    assert len(found) == len(messages), str(error)
    for text, message in zip(found, messages, strict=True):
        assert message in text
    assert all(loc is not None and loc.file == __file__ for _, loc in error.notes)
    assert str(error).count("also wrong") == len(messages) - 1


def test_an_error_of_types_has_both_sides():
    def sides(x):
        if x > 0:
            y = np.ones(3)
        else:
            y = np.ones(4)
        return y

    with pytest.raises(TypeError_, match=r"float64\[3\] after one branch and float64\[4\] after the other"):
        relay(executor="interpreter")(sides)(1.0)
