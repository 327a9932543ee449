"""`debug_nans`: the first operation that makes a NaN raises at the user's line, forward and backward."""

from __future__ import annotations

import inspect
import traceback

import numpy as np
import pytest

from myia_relay import grad, relay


def logarithms(x):
    y = x * 2.0
    z = np.log(y)  # here
    for _ in range(3):
        z = z - np.sum(z)
    return np.sum(z)


def in_a_loop(x, n):
    for i in range(n):
        if i > 1:
            x = x - x / (i - 2.0 + x * 0.0)  # here
    return x


def roots(x):
    return np.sum(np.sqrt(x) * 0.0)  # here


def line_of(error: BaseException) -> int:
    return traceback.extract_tb(error.__traceback__)[-1].lineno


def marked(function) -> int:
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if "# here" in line)


def checked(function, executor):
    return relay(executor=executor, debug_nans=True)(function)


def test_the_first_nan_raises_at_its_line(executor):
    f = checked(logarithms, executor)
    assert f(np.ones(3)) == pytest.approx(logarithms(np.ones(3)))
    with pytest.raises(FloatingPointError, match="made a NaN") as info:
        f(-np.ones(3))
    assert line_of(info.value) == marked(logarithms)


def test_inside_of_loops_and_branches(executor):
    f = checked(in_a_loop, executor)
    assert f(np.ones(2), 2).tolist() == [1.0, 1.0]
    with pytest.raises(FloatingPointError) as info:
        f(np.zeros(2), 3)
    assert line_of(info.value) == marked(in_a_loop)


def test_gradients_are_checked(executor):
    f = checked(roots, executor)
    assert f(np.zeros(2)) == 0.0
    with pytest.raises(FloatingPointError) as info:
        grad(f)(np.zeros(2))
    assert line_of(info.value) == marked(roots)


def test_python_numbers(executor):
    with pytest.raises(FloatingPointError):
        checked(lambda a: a - a, executor)(float("inf"))


def test_without_it_nothing_is_checked(executor):
    assert np.isnan(relay(executor=executor)(lambda a: a - a)(float("inf")))
