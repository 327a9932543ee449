"""Every small program means in every executor what it means in CPython."""

from __future__ import annotations

import sys
import traceback

import numpy as np
import pytest

from myia_relay import relay
from tests.programs import compare, sources

CASES = [
    pytest.param(program, args, id=f"{program.function.__name__}-{k}")
    for program in sources.PROGRAMS
    for k, args in enumerate(program.inputs)
]
COMPILED: dict = {}


def compiled(function, executor):
    """One decorated function per program and executor, so that its call cache is exercised too."""
    return COMPILED.setdefault((function, executor), relay(executor=executor)(function))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("program", "args"), CASES)
def test_program(program, args, executor):
    f = compiled(program.function, executor)
    if program.raises is not None:
        if program.raises is not OverflowError:  # CPython's integers do not overflow
            with pytest.raises(program.raises) as plain:
                program.function(*args)
        with pytest.raises(program.raises) as ours:
            f(*args)
        shown = "".join(traceback.format_exception(ours.value))
        assert sources.__file__ in shown, "the traceback does not show the user's file"
        if program.raises in (ZeroDivisionError, IndexError, AssertionError, ValueError):
            assert str(ours.value) == str(plain.value) or sys.version_info[:2] != (3, 11)
        return
    before = [np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]
    want = program.function(*args)
    assert compare.differences(f(*args), want) == []
    assert compare.differences(f(*args), want) == [], "the second call differs"
    for a, b in zip(args, before, strict=True):
        if isinstance(b, np.ndarray):
            np.testing.assert_array_equal(a, b)


def test_the_comparison_sees_differences():
    d = compare.differences
    assert d(0.0, -0.0) and d(1, True) and d(1.0, 1) and d((1,), [1]) and d(np.float64(1), 1.0)
    assert (
        d(np.zeros(2), np.zeros(3)) and d(np.zeros(2), np.zeros(2, np.float32)) and d(np.array([0.0]), np.array([-0.0]))
    )
    assert d(1.0 + 1e-9, 1.0) and not d(float("nan"), float("nan"))
