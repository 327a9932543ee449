"""Random programs: checked, printed, through JSON and all passes, and in the three executors, beside a direct evaluator."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from myia_relay import CompileError, relay

from ..transform.evaluator import Made, evaluate, same
from . import wider_programs
from .random_programs import program

PASSES = [name for name in relay.transform.__all__ if name not in ("Gradient", "Sequential")]


def given(module: Any, value: Any) -> Any:
    """An argument of the evaluator as one of the module."""
    if isinstance(value, Made):
        return module[value.constructor](*[given(module, f) for f in value.fields])
    return tuple(given(module, v) for v in value) if isinstance(value, tuple) else value


def made(value: Any) -> Any:
    """A result of a module as one of the evaluator."""
    if hasattr(value, "constructor"):
        return Made(value.constructor, tuple(map(made, value.fields)))
    return tuple(map(made, value)) if isinstance(value, tuple) else value


def step(name: str) -> Any:
    """A pass that keeps signed zeros."""
    return getattr(relay.transform, name)(**({"signed_zeros": True} if name == "SimplifyExpr" else {}))


def hold(seed: int, passes: Any = (), executors: Any = ("interpreter",), make: Any = program) -> None:
    """Put a program through everything."""
    text, args = make(seed)
    with np.errstate(all="ignore"):
        module = relay.parse_text(text)
        again = relay.parse_text(str(module))
        assert again == module and str(again) == str(module), seed
        assert relay.from_json(module.to_json()) == module, seed
        want = evaluate(module, "main", *args)
        for executor in executors:
            assert same(called(module, executor, args), want, 1e-4), (seed, executor)
        for name in passes:
            module = step(name)(module)
            assert relay.parse_text(str(module)) == module, (seed, name)
            assert same(evaluate(module, "main", *args), want, 1e-4), (seed, name)
        if passes and "ToCPS" not in passes:  # whose continuations are as many as a run makes
            assert same(called(module, "interpreter", args), want, 1e-4), (seed, passes)


def called(module: Any, executor: str, args: tuple) -> Any:
    """What `@main` gives."""
    main = module.with_executor(executor)["main"]
    return made(main(*[given(module, a) for a in args]))


def chosen(seed: int, count: int) -> list[str]:
    """Some passes, in any order."""
    return Random(seed).choices(PASSES, k=count)


@pytest.mark.parametrize("seed", [*range(12), 605, 5510, 80208, 80453, 90141])
@pytest.mark.sampled(6)
def test_random_programs(seed):
    """605: sizes in records; 5510: loops within loops; 80208: a polymorphic function in what is inlined
    twice; 80453: a list of what no value is of; 90141: two options of a union that become one."""
    hold(seed, chosen(seed, 2), ("interpreter", "native") if seed in (6, 5510, 90141) else ("interpreter",))


def hold_wider(seed: int, passes: Any, executors: Any) -> bool:
    """Put a wider program through everything; whether it is not refused, as contents of sizes that only a run knows are."""
    try:
        hold(seed, passes, executors, wider_programs.program)
    except CompileError as error:
        assert "a reference in data to something whose size is known at run time only is not supported yet" in str(
            error
        ), seed
        return False
    return True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [1, 5, 6])
def test_wider_random_programs(seed):
    assert hold_wider(seed, chosen(seed, 1), ("interpreter", "native") if seed == 5 else ("interpreter",))


@pytest.mark.campaign
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_many_wider_random_programs(start):
    for seed in range(start, start + 50):
        hold_wider(seed, chosen(seed, 2), ("interpreter", "native") if seed % 4 == 0 else ("interpreter",))


@pytest.mark.campaign
@pytest.mark.parametrize("start", range(0, 10_000, 100))
def test_many_random_programs(start):
    for seed in range(start, start + 100):
        hold(seed, chosen(seed, 3))


@pytest.mark.campaign
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_random_programs_in_all_executors(start):
    for seed in range(start, start + 50):
        hold(seed, (), ("python", "native"))


@pytest.mark.campaign
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_random_programs_through_all_passes(start):
    for seed in range(start, start + 50):
        for name in PASSES:
            hold(seed, [name], ())
