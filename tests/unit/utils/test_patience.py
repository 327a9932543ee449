"""What is said to who waits for a compilation: once, where and why, and only after the time is over."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.utils.patience import VARIABLE


def written_out(x):
    total = 0.0
    for shape in ((1,), (1, 1), (1, 1, 1)) * 12:
        total = total + np.sum(np.reshape(x, shape))
    return total


def held(x, things):
    return x if len(things) == 0 else held(x, things[1:]) + 1.0


def many_versions(x):
    return held(x, ("a", "b", "c", "d", "e", "f", "g", "h", "i"))


def many_leaves(x, pairs):
    return x + pairs[0][0]


def short(x):
    return x + 1.0


PAIRS = tuple((float(k), k) for k in range(80))
CASES = [
    (written_out, (np.ones(1),), "line 14: this loop is written out, ", "loop over a range or array"),
    (many_versions, (1.0,), "line 19: held has ", "give such a function arrays"),
    (many_leaves, (1.0, PAIRS), "the arguments have 161 numbers and arrays", "give arrays"),
    (short, (1.0,), "compiling short", "docs/performance.md says more"),
]


@pytest.mark.parametrize(("f", "args", "where", "advice"), CASES, ids=[c[0].__name__ for c in CASES])
def test_a_long_compilation_says_why(monkeypatch, capsys, f, args, where, advice):
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")
    monkeypatch.setenv(VARIABLE, "1e-9")
    compiled = relay(executor="python")(f)
    compiled(*args)
    told = capsys.readouterr().err
    assert told.count("myia_relay: compiling") == 1
    assert f.__name__ in told and VARIABLE in told
    compiled(*args)
    assert not capsys.readouterr().err  # it is compiled


@pytest.mark.parametrize("seconds", ["0", "1000"])
def test_others_say_nothing(monkeypatch, capsys, seconds):
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")
    monkeypatch.setenv(VARIABLE, seconds)
    relay(executor="python")(written_out)(np.ones(1))
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("f", "args", "where", "advice"), CASES[:3], ids=[c[0].__name__ for c in CASES[:3]])
def test_the_reasons(monkeypatch, f, args, where, advice):
    from myia_relay.infer.engine.engine import Engine

    said: list[str] = []
    entry = Engine.entry

    def told(self, *given):
        program = entry(self, *given)
        said.extend(self.reasons())
        return program

    monkeypatch.setattr(Engine, "entry", told)
    relay(f).ir(*args, stage="inferred")
    assert any(where in line for line in said), said
    assert any(advice in line for line in said), said
