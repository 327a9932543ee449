"""Random programs: what CPython returns, prints or raises is what every executor does, to the last bit, or it is refused.

Accepted differences: an integer beyond 64 bits raises OverflowError; transcendental functions, products and sums of arrays may
differ as `oracle` says. `python -m tests.property.campaign` runs many more, in processes of their own.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.campaign import Campaign, generic
from tests.property.execute import check, program_of
from tests.property.oracle import Oracle, Outcome, call
from tests.property.thresholds import low
from tests.property.verdicts import difference, judge

pytestmark = pytest.mark.filterwarnings("ignore")


def assert_agrees(draw, name: str, **options) -> None:
    """The program that `draw` makes is the same everywhere, or refused."""
    text, calls = program_of(draw)
    verdict = check(text, calls, f"<{name}>", **options)
    assert verdict.kind in ("same", "refused"), f"{verdict.executor} {verdict.args}: {verdict.detail}\n{text}"


@settings(max_examples=8, derandomize=True, database=None)
@given(st.randoms(use_true_random=False))
def test_programs(choices):
    assert_agrees(choices.randrange, "random program", shared=False)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(60))
def test_programs_of_seeds(seed):
    assert_agrees(random.Random(seed).randrange, f"random program {seed}", thorough=seed % 4 == 0)


@pytest.mark.parametrize("seed", range(1000, 1020))
@pytest.mark.sampled(10)
def test_programs_compiled_as_if_they_were_large(seed):
    with low():
        assert_agrees(random.Random(seed).randrange, f"random program {seed}", executors=("native",))


@pytest.mark.campaign
def test_campaign(tmp_path):
    campaign = Campaign(range(10_000, 12_000), 2, tmp_path, 120)
    campaign.run()
    assert not campaign.kinds["failed"] and not campaign.kinds["invalid"], campaign.summary()


@pytest.mark.parametrize(
    "shown", ["'text', x * np.ones((2,)), sep='-'", "f'{np.abs(np.float32(x))}|', x * np.ones((3,))"]
)
def test_arrays_live_until_they_are_shown(shown, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "1")
    text = f"def program(x):\n    print({shown})\n    y = x * np.ones((5,))\n    return y + 1, {{'a': -y}}\n"
    verdict = check(text, [(-1.5,), (0.25,)], "<arrays in texts>", executors=("native",))
    assert verdict.kind == "same", verdict.detail


@pytest.mark.parametrize("seed", range(1020, 1028))
@pytest.mark.sampled(4)
def test_programs_whose_accesses_to_memory_are_checked(seed, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "1")
    assert_agrees(random.Random(seed).randrange, f"random program {seed}", executors=("native",))


@pytest.mark.campaign
def test_campaign_of_checked_accesses_to_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "1")  # of the workers too
    campaign = Campaign(range(12_000, 13_500), 1, tmp_path, 120)
    campaign.run()
    assert not campaign.kinds["failed"] and not campaign.kinds["invalid"], campaign.summary()


def test_a_seed_is_a_program():
    assert program_of(random.Random(5).randrange)[0] == program_of(random.Random(5).randrange)[0]


@pytest.mark.parametrize("got, want", [
    (1.0, 1),
    (0.0, -0.0),
    (np.float32(1), np.float64(1)),
    (1.0000000000000002, 1.0),
    (True, np.True_),
    ((1, 2), [1, 2]),
    ((1, 2), (1, 2, 3)),
    ({"a": 1}, {"b": 1}),
    (np.zeros(2), np.zeros((2, 1))),
    (np.zeros(2), np.zeros(2, np.float32)),
    (np.array([0.0]), np.array([-0.0])),
    (np.array([np.nan]), np.array([0.0])),
])  # fmt: skip
def test_a_difference_of_values_is_seen(got, want):
    assert difference(Outcome(got), Outcome(want)) and difference(Outcome(want), Outcome(got))
    assert not difference(Outcome(got), Outcome(got))


def test_a_difference_of_behaviour_is_seen():
    assert difference(Outcome(error=ValueError("a"), line=2), Outcome(error=ValueError("b"), line=2))
    assert difference(Outcome(error=ValueError("a"), line=2), Outcome(error=KeyError("a"), line=2))
    assert difference(Outcome(error=ValueError("a"), line=2), Outcome(error=ValueError("a"), line=3))
    assert difference(Outcome(1), Outcome(error=ValueError("a")))
    assert difference(Outcome(1, printed="a\n"), Outcome(1))


def oracle(body: str) -> Oracle:
    return Oracle(f"def program(x, y):\n    return {body}\n", "<tested>")


def verdict(body: str, args: tuple, got: Outcome) -> str:
    cpython = oracle(body)
    return judge(cpython, args, got, *cpython.outcome(args))


def test_what_may_differ():
    x, y = np.array([0.1, 0.7, 1.3]), np.array([-0.987, -0.999, -0.77])
    off = np.array([float(Fraction(a) * Fraction(b) + Fraction(a)) for a, b in zip(x.tolist(), y.tolist())])
    assert np.any(off != x * y + x)
    assert not verdict("x * y + x", (x, y), Outcome(off)), "one rounding instead of two"
    assert verdict("x * y + x", (x, y), Outcome(off + 1e-12))
    assert verdict("x + y", (x, y), Outcome(np.nextafter(x + y, 10))), "nothing excuses a sum of two"
    assert verdict("float(x[0]) * 3.0", (x, y), Outcome(float(np.nextafter(x[0] * 3.0, 10)))), "nor numbers"
    assert not verdict("np.tanh(x)", (x, y), Outcome(np.nextafter(np.tanh(x), 10)))
    assert verdict("np.tanh(x)", (x, y), Outcome(np.tanh(x).astype(np.float32)))
    assert not verdict("np.max(x)", (np.array([0.0, -0.0]), y), Outcome(np.float64(-0.0)))
    assert verdict("x[0]", (np.array([0.0, -0.0]), y), Outcome(np.float64(-0.0)))


def test_a_type_that_the_sign_of_nan_decides_may_differ():
    body, args = "5 if np.copysign(1.0, x / y) < 0 else np.float32(0.5)", (np.float64(0.0), np.float64(0.0))
    assert not verdict(body, args, Outcome(5))
    assert not verdict(body, args, Outcome(np.float32(0.5)))
    assert verdict(body, args, Outcome(np.float32(0.25)))
    assert verdict(body, args, Outcome(np.float64(0.5)))


def test_trees_of_shared_parts_are_compared_part_by_part():
    def tree(value):
        for _ in range(60):
            value = (value, [value, {"again": value}])
        return value

    assert not difference(Outcome(tree(1.5)), Outcome(tree(1.5)))
    assert difference(Outcome(tree(1.5)), Outcome(tree(1.25)))
    assert difference(Outcome((1, [2])), Outcome((1, (2,)))) and difference(Outcome((1, 2)), Outcome((1, 2, 3)))


def test_integers_beyond_64_bits():
    overflow = Outcome(error=OverflowError("too large"), line=2)
    assert not verdict("x * y", (2**62, 2), overflow)
    assert verdict("x * y", (2**62, 2), Outcome(-(2**63)))
    assert verdict("x * y", (2**61, 2), overflow)
    assert not verdict("x * y - x * y", (2**62, 2), overflow) and not verdict("x * y - x * y", (2**62, 2), Outcome(0))


def test_an_augmented_assignment_reads_before_it_computes():
    cpython = Oracle(
        "def program(x, y):\n    x = np.zeros(2)\n    x[y] += math.expm1(abs(sum([y, y]) / 0.5))\n", "<tested>"
    )
    want, beyond = cpython.outcome((0, 2**62))
    assert isinstance(want.error, IndexError) and not beyond


def test_lines_of_exceptions():
    cpython = oracle("x // y")
    assert call(cpython.function, (1, 0), cpython.file).line == 2


def test_messages_are_counted_alike():
    assert generic("'p0' is 3.5") == generic("'x11' is -7")
