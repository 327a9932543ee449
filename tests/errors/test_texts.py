"""Texts of refusals that a beginner meets: in the words of the program, at its line, with what to write."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, relay


def refusal(program, *args) -> CompileError:
    with pytest.raises(CompileError) as info:
        relay(program)(*args)
    assert info.value.loc is not None
    return info.value


def sorts(nums):
    nums.sort()
    return nums


def reverses(nums):
    nums.reverse()
    return nums


def sorts_an_entry(rows):
    first = rows[0]
    first.sort()
    return first


def test_a_parameter_that_is_changed():
    for program, advice in ((sorts, "nums = sorted(nums)"), (reverses, "nums = nums[::-1]")):
        message = refusal(program, [3.0, 1.0]).message
        assert message == (
            f"'nums' cannot be changed in place: 'nums' is the parameter 'nums', which belongs to the caller; write {advice}"
        )
    assert "parameter 'rows', which belongs to the caller" in refusal(sorts_an_entry, [[2.0], [1.0]]).message


counter = 0


def counts(n):
    global counter
    counter += 1
    return n


def test_global_shows_both_lines():
    error = refusal(counts, 1)
    assert error.loc.text().strip() == "counter += 1"
    assert "note: 'counter' is declared global here" in str(error) and "    global counter" in str(error)


def ping(n):
    return pong(n + 1)


def pong(n):
    return ping(n) * 2


def test_an_endless_recursion_shows_every_call():
    text = str(refusal(ping, 1))
    assert "has no base case" in text
    assert "note: pong calls ping here" in text and "    return ping(n) * 2" in text
    assert "note: ping calls pong here" in text and "    return pong(n + 1)" in text


@pytest.mark.parametrize(
    ("program", "argument", "text"),
    [
        (
            lambda x: "loss: " + x,
            1.5,
            r"unsupported operand type\(s\) for \+: str and float; make a string of the number first",
        ),
        (lambda x: x + "!", 2, r"for \+: int and str; make a string"),
        (lambda n: (1, 2, 3) * n, 2, r"a tuple has a length known at compile time.*repeat a list: \[\.\.\.\] \* n"),
        (lambda n: (1, 2)[0:1.0], 2, "slice indices must be integers or None"),
        (lambda n: np.zeros(n + 0.5), 2, "this is a float computed at run time"),
    ],
)
def test_single_expressions(program, argument, text):
    import re

    assert re.search(text, refusal(program, argument).message)
