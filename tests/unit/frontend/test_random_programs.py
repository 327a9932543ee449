"""Random nested control flow means the same to the front end and to CPython: results, exceptions, order of effects."""

import linecache
import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from myia_relay.frontend import parse
from myia_relay.utils.errors import NameError_, ParseError

from .parsed_eval import Refused, evaluate, outcome
from .random_programs import Writer


class OutOfFuel(Exception):
    pass


def load(text, name="program"):
    """Define a function from text, with its source where Python looks for it."""
    file = f"<random {abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    events, left = [], [60]

    def log(value):
        events.append(value)
        return value

    def fuel():
        left[0] -= 1
        if left[0] < 0:
            raise OutOfFuel

    scope = {"log": log, "fuel": fuel}
    exec(compile(text, file, "exec"), scope)

    def reset():
        seen = list(events)
        events.clear()
        left[0] = 60
        return seen

    return scope[name], reset


def agree(text, inputs, may_refuse=False):
    """Whether the program was compared: with `may_refuse` it may be refused for rebinding what a closure captured."""
    fn, reset = load(text)
    try:
        parse(fn)
    except NameError_:
        # Refused when it is compiled: right where Python raises there, or something else on the way there.
        for args in inputs:
            assert may_refuse or raises(outcome(fn, *args)), f"{args}\n{text}"
        return False
    except ParseError:
        assert may_refuse, text
        return False
    for args in inputs:
        reset()
        expected = outcome(fn, *args), reset()
        try:
            actual = outcome(evaluate, fn, *args), reset()
        except Refused:
            assert may_refuse
            continue
        assert actual == expected, f"{args}\n{text}"
    return True


def raises(result):
    return result == "NameError" or isinstance(result, tuple) and isinstance(result[0], str)


INPUTS = [(0, 0), (1, 5), (-3, 2), (7, 3)]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_control_flow(rng):
    agree(Writer(rng.randrange).text(), INPUTS)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_closures(rng):
    agree(Writer(rng.randrange, closures=True).text(), INPUTS, may_refuse=True)


@pytest.mark.campaign
def test_many_random_closures():
    compared = 0
    count = int(os.environ.get("FRONTEND_PROGRAMS", "5000"))
    for seed in range(count):
        compared += agree(Writer(random.Random(seed).randrange, closures=True).text(), INPUTS, may_refuse=True)
    assert compared > count / 10


@pytest.mark.campaign
def test_many_random_programs():
    for seed in range(int(os.environ.get("FRONTEND_PROGRAMS", "5000"))):
        agree(Writer(random.Random(seed).randrange).text(), INPUTS)
