"""Random signatures and calls of them: every argument goes to the parameter that CPython gives it to, in its order, or to none.

`python -m tests.property.test_random_calls FIRST COUNT [PROCESSES]` runs more.
"""

from __future__ import annotations

import random
import sys

import pytest

from myia_relay import CompileError, relay
from tests.property.oracle import function_of
from tests.property.searches import campaign

NAMES = "abcde"


def signature(rng: random.Random) -> tuple[str, str]:
    """Parameters, and an expression that shows all of them."""
    names = list(NAMES[: rng.randrange(4)])
    defaults = rng.randrange(len(names) + 1)
    parts = [n if k < defaults else f"{n}={10 * (k + 1)}" for k, n in enumerate(names)]
    if names and rng.randrange(3) == 0:
        parts.insert(rng.randrange(1, len(names) + 1), "/")
    shown = [f"('{n}', {n})" for n in names]
    only = rng.randrange(3)
    if rng.randrange(2):
        parts.append("*rest")
        shown.append("rest")
    elif only:
        parts.append("*")
    for n in ("k", "m")[:only]:
        parts.append(n if rng.randrange(2) else f"{n}=7")
        shown.append(f"('{n}', {n})")
    if rng.randrange(3):
        parts.append("**named")
        shown.append("[(key, named[key]) for key in named]")
    return ", ".join(parts), f"({', '.join(shown)},)" if shown else "()"


def arguments(rng: random.Random) -> str:
    """Arguments of a call, in any order that the grammar has."""
    count = iter(range(1, 100))
    parts: list[str] = []
    for _ in range(rng.randrange(4)):
        what = rng.randrange(4)
        if what == 0:
            parts.append(f"*({next(count)}, {next(count)})")
        elif what == 1:
            parts.append("*xs")
        else:
            parts.append(rng.choice([str(next(count)), "p"]))
    free = list(NAMES + "kmxyz")
    rng.shuffle(free)
    starred = False
    for _ in range(rng.randrange(5)):
        what = rng.randrange(4)
        if what == 0:
            starred = True
            entries = [f"'{free.pop()}': {next(count)}" for _ in range(rng.randrange(3)) if free]
            parts.append(f"**{{{', '.join(entries)}}}")
        elif what == 1 and rng.randrange(2):
            starred = True
            parts.append("**d")
        elif free:
            parts.append(f"{free.pop()}={next(count)}")
        elif not starred:
            parts.append(str(next(count)))
    return ", ".join(parts)


def program(seed: int) -> str:
    """A function that is called in one of several ways."""
    rng = random.Random(seed)
    parameters, shown = signature(rng)
    call = rng.choice(["f({0})", "f({0})", "F(9).g({0})", "h({0})", "(lambda *a, **n: f(*a, **n))({0})"])
    first = ", ".join(["5"] * rng.randrange(2) + ["z=6"] * rng.randrange(2)) or "5"
    lines = [
        "from typing import NamedTuple",
        "from functools import partial",
        f"def f({parameters}):",
        f"    return {shown}",
    ]
    own = ", ".join(["self", *([parameters] if parameters else [])])
    lines += ["class F(NamedTuple):", "    s: int", f"    def g({own}):", f"        return {shown}"]
    lines += [f"h = partial(f, {first})", "def program(p, xs, d):", f"    return {call.format(arguments(rng))}"]
    return "\n".join(lines) + "\n"


def outcome(function) -> tuple[str, object]:
    """("returned", value), ("TypeError", None) where the call does not fit, or ("refused", message)."""
    try:
        return "returned", function(3, (50, 51), {"x": 60, "b": 61})
    except TypeError:
        return "TypeError", None
    except CompileError as error:
        assert error.loc is not None, error
        return "refused", error.message


def judge(seed: int, executor: str = "interpreter") -> str:
    """ "same", "invalid" or "refused", or what is wrong."""
    text = program(seed)
    try:
        function = function_of(text, f"<calls {seed}>")
    except SyntaxError:
        return "invalid"
    want, got = outcome(function), outcome(relay(executor=executor)(function))
    if got == want and repr(got) == repr(want):
        return "same"
    return "refused" if got[0] == "refused" else f"{seed}: {got} instead of {want}\n{text}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_arguments_go_where_cpython_gives_them(first):
    verdicts = [judge(seed) for seed in range(first, first + 50)]
    assert not [v for v in verdicts if v not in ("same", "invalid", "refused")]
    assert verdicts.count("same") > 20


def one(seed: int) -> tuple[int, str]:
    verdict = judge(seed, "native" if seed % 20 == 19 else "interpreter")
    return seed, "" if verdict in ("same", "invalid", "refused") else verdict


if __name__ == "__main__":
    sys.exit(bool(campaign(one, *map(int, sys.argv[1:]))))
