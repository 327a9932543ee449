"""Every pass keeps types and values of every program, and its result prints and parses."""

from __future__ import annotations

import pytest

from myia_relay import relay

from .evaluator import evaluate, same
from .programs import PROGRAMS

PASSES = [name for name in relay.transform.__all__ if name not in ("Gradient", "Sequential")]


def checked_result(before, step, args, rtol=0.0):
    """The module after a pass: well-typed, of the same value, and the same after a round trip."""
    after = step(before)
    assert relay.parse_text(str(after)) == after
    assert str(relay.parse_text(str(after))) == str(after)
    assert same(evaluate(before, "main", *args), evaluate(after, "main", *args), rtol)
    return after


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pass_keeps_the_value(name, program):
    text, args = PROGRAMS[program]
    before = relay.parse_text(text)
    step = getattr(relay.transform, name)()
    once = checked_result(before, step, args)
    checked_result(once, step, args)


@pytest.mark.parametrize("program", PROGRAMS)
def test_passes_one_after_another(program):
    text, args = PROGRAMS[program]
    module = relay.parse_text(text)
    for name in (*PASSES, *reversed(PASSES)):
        module = checked_result(module, getattr(relay.transform, name)(), args)
