"""Every pass keeps types and values of every program, and its result prints and parses."""

from __future__ import annotations

from random import Random

import pytest

from myia_relay import relay

from . import random_modules
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


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """The result of every pass is checked."""
    monkeypatch.setenv("MYIA_RELAY_DEBUG", "1")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pass_keeps_the_value(program):
    text, args = PROGRAMS[program]
    before = relay.parse_text(text)
    for name in PASSES:
        step = getattr(relay.transform, name)()
        once = checked_result(before, step, args)
        checked_result(once, step, args)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_passes_one_after_another(program):
    text, args = PROGRAMS[program]
    module = relay.parse_text(text)
    for name in (*PASSES, *reversed(PASSES)):
        module = checked_result(module, getattr(relay.transform, name)(), args)


@pytest.mark.parametrize("seed", range(12))
def test_random_modules(seed):
    check_random(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("start", range(0, 10_000, 100))
def test_many_random_modules(start):
    for seed in range(start, start + 100):
        check_random(seed)


def check_random(seed):
    text, args = random_modules.module(seed)
    module = relay.parse_text(text)
    for name in PASSES:
        checked_result(module, made(name), args)
    random = Random(seed)
    for _ in range(4):
        module = checked_result(module, made(random.choice(PASSES)), args)


def made(name):
    """A pass that is exact."""
    options = {"signed_zeros": True} if name == "SimplifyExpr" else {}
    return getattr(relay.transform, name)(**options)
