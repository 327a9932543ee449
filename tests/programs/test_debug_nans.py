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


def test_the_message_describes_result_and_inputs(executor):
    f = checked(logarithms, executor)
    with pytest.raises(FloatingPointError) as info:
        f(np.array([[2.0, 1.0], [-3.0, -0.5]]))
    head, result, operand = str(info.value).split("\n")
    assert head == "this made a NaN (log)"
    assert result == "its result: float64[2, 2], from 0.693147 to 1.38629, NaN at [1, 0] and 1 more"
    assert operand.startswith("input 1") and operand.endswith(": float64[2, 2], from -6 to 4")


def test_a_gradient_names_the_operation_that_it_is_of(executor):
    with pytest.raises(FloatingPointError) as info:
        grad(checked(roots, executor))(np.array([4.0, 0.0]))
    head, result, *operands = str(info.value).split("\n")
    assert head == "the gradient of this (sqrt) made a NaN (div)"
    assert result == "its result: float64[2], from 0 to 0, NaN at [1]"
    assert any(line.endswith(": float64[2], from 0 to 2") for line in operands)


def test_infinities_and_numbers(executor):
    with pytest.raises(FloatingPointError) as info:
        checked(lambda a, x: a - np.max(x), executor)(float("inf"), np.array([1.0, float("inf")]))
    assert str(info.value).startswith("this made a NaN (sub)\nits result: nan, a float64\ninput 1")
    assert str(info.value).count("inf, a float64") == 2


def test_programs_from_files_say_the_same(tmp_path, monkeypatch):
    from myia_relay import load_compiled

    f = relay(debug_nans=True)(logarithms)
    f.save(tmp_path / "f.so", np.ones(3))
    with pytest.raises(FloatingPointError, match=r"log\)\nits result: float64\[3\], NaN at \[0\] and 2 more"):
        load_compiled(tmp_path / "f.so")(-np.ones(3))
