"""Random small functions: what CPython returns or raises is what every executor returns or raises, or it is refused.

Accepted differences: an integer beyond 64 bits raises OverflowError; the sign of a zero that NumPy's maximum, minimum and sums
choose between equals, which depends on NumPy's build; and `min`/`max` of a Python float and np.float64, whose kind CPython
decides by their values.
"""

from __future__ import annotations

import linecache
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myia_relay import CompileError, relay
from tests.programs.compare import differences
from tests.property.random_source import Writer

EXECUTORS = ("interpreter", "python", "native")


def function_of(text: str, name: str):
    """The function `program` of a source text, which `linecache` knows as it does a notebook's cells."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"np": np, "math": math, "__name__": "random"}
    exec(compile(text, name, "exec"), names)
    return names["program"]


def outcome(function, args):
    try:
        return "returned", function(*args)
    except Exception as error:
        return "raised", error


def without_zero_signs(value):
    if isinstance(value, tuple):
        return tuple(map(without_zero_signs, value))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value + value.dtype.type(0)
    return value + type(value)(0) if isinstance(value, float | np.floating) else value


def as_float(value):
    if isinstance(value, tuple):
        return tuple(map(as_float, value))
    return float(value) if isinstance(value, np.float64) else value


def disagreement(text: str, smooth: bool, got: tuple, want: tuple) -> str:
    """What differs between two outcomes; empty where nothing does."""
    if got[0] == "raised" and isinstance(got[1], OverflowError) and "fit" in str(got[1]):
        return ""
    if got[0] != want[0]:
        return f"{got} instead of {want}"
    if got[0] == "raised":
        same = type(got[1]) is type(want[1]) and str(got[1]) == str(want[1])
        return "" if same else f"{got[1]!r} instead of {want[1]!r}"
    a, b = got[1], want[1]
    if any(word in text for word in ("np.max", "np.min", "np.sum")):
        a, b = without_zero_signs(a), without_zero_signs(b)
    if "min(" in text or "max(" in text:
        a, b = as_float(a), as_float(b)
    return "; ".join(differences(a, b, 1e-9 if smooth else 1e-15))


def check(draw, name: str, smooth: bool, executors=EXECUTORS) -> None:
    writer = Writer(draw, smooth)
    text = writer.text()
    function = function_of(text, name)
    calls = [writer.arguments() for _ in range(2)]
    with np.errstate(all="ignore"):
        wants = [outcome(function, args) for args in calls]
        for executor in executors:
            compiled = relay(executor=executor)(function)
            for args, want in zip(calls, wants):
                got = outcome(compiled, args)
                if got[0] == "raised" and isinstance(got[1], CompileError) and not isinstance(got[1], OverflowError):
                    return
                wrong = disagreement(text, smooth, got, want)
                assert not wrong, f"{executor}{args}: {wrong}\n{text}"


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.booleans())
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_programs(choices, smooth):
    check(choices.randrange, "<random program>", smooth)


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::SyntaxWarning")
@pytest.mark.parametrize("block", range(40))
def test_many_programs(block):
    for seed in range(block * 50, block * 50 + 50):
        check(random.Random(seed).randrange, f"<random program {seed}>", seed % 3 == 0)


def test_a_difference_is_seen():
    assert disagreement("", False, ("returned", 1.0), ("returned", 1))
    assert disagreement("", False, ("returned", 0.0), ("returned", -0.0))
    assert disagreement("", False, ("raised", ValueError("a")), ("raised", ValueError("b")))
    assert disagreement("", False, ("returned", 1), ("raised", ValueError()))
    assert not disagreement("np.max", False, ("returned", (0.0,)), ("returned", (-0.0,)))
