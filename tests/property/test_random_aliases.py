"""Random programs that give one list or array several names, and change it in place: as CPython does it, or refused.

Idea: what compiled code cannot do is to let a change be seen under another name, so it must notice that there is one. Each
program makes lists, lists of lists, arrays, tuples, dicts and records out of each other, through displays, comprehensions,
builtins, methods and functions that hand on what they are given, changes some in place, in branches and loops too, and returns
all of its variables.

`python -m tests.property.test_random_aliases FIRST COUNT [PROCESSES]` runs a campaign and prints what differs.
"""

from __future__ import annotations

import functools
import multiprocessing
import random
import sys
import time
from typing import Any, NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, relay
from tests.property.oracle import function_of


class R(NamedTuple):
    held: Any
    k: int = 0

    def itself(self):
        return self

    def content(self):
        return self.held


def ident(v):
    return v


def made(v):
    return R(v)


def paired(v, w):
    return (v, w)


def longer(v, w):
    return v if len(v) > len(w) else w


def rest(v):
    return v[1:]


def copied(v):
    return [*v]


def nth(v, i):
    return v[i]


NAMES = {f.__name__: f for f in (R, ident, made, paired, longer, rest, copied, nth)} | {
    "np": np,
    "functools": functools,
}

# How values are made, by kind: "l" a list of ints, "ll" a list of lists, "a" an array, "m" a matrix.
MAKE = {
    "l": ("[1, 2]", "[i for i in range(n)]", "{l}", "{l}.copy()", "{l} + {l}", "{l} * 2", "sorted({l})", "list({l})", "{l}[:]",
          "{ll}[0]", "{ll}[-1]", "nth({ll}, 0)", "max({ll}, key=len)", "ident({l})", "longer({l}, {l})", "rest({l})", "copied({l})",
          "({l} if n > 1 else {l})", "({l} or [3])", "[*{l}, 5]", "sum({ll}, [])", "{ll}.pop()", "(lambda: {l})()",
          "functools.reduce(lambda p, q: q, {ll})", "[v for v in {l} if v > 0]", "list(reversed({l}))", "(lambda v={l}: v)()"),
    "ll": ("[{l}, {l}]", "[[1], [2, 3]]", "[{l} for _ in range(2)]", "[[i] for i in range(n)]", "{ll} + {ll}", "list({ll})",
           "{ll}[:]", "{ll}.copy()", "[v for v in {ll}]", "ident({ll})", "[{l}] * 2", "{ll} + [{l}]", "list(map(ident, {ll}))",
           "rest({ll})", "[*{ll}, {l}]", "[v for v in {ll} if len(v) > 1]", "list(reversed({ll}))", "[copied(v) for v in {ll}]"),
    "a": ("np.zeros(3)", "{a} + 1", "{a}.copy()", "{a}", "ident({a})", "np.asarray({a})", "{a}.reshape(3)", "{m}[0]", "nth({m}, 1)",
          "({a} if n > 1 else {a})", "longer({a}, {a})", "{m}[:, 0]", "np.array({a})", "{a}[::-1]", "{m}.T[1]", "np.abs({a})",
          "np.ravel({m})[:3]", "+{a}", "{m}.sum(axis=0)", "(lambda: {a})()", "np.concatenate([{a}[:1], {a}[1:]])"),
    "m": ("np.zeros((3, 3))", "{m} * 2", "{m}.copy()", "{m}", "ident({m})", "{m}.T", "np.stack([{a}, {a}, {a}])", "{m}[::-1]",
          "np.outer({a}, {a})", "{m}.reshape(3, 3)"),
}  # fmt: skip
HOLD = ("R({0})", "made({0})", "({0}, 1)", "{{'held': {0}, 'k': n}}", "paired({0}, 2)", "[{0}]", "R(held={0}, k=2)",
        "dict(held={0})", "R({0})._replace(k=3)", "({0},) + (n,)", "ident(({0}, n))", "{{**{{'held': {0}}}, 'k': 3}}",
        "R({0}).itself()", "(R({0}) if n > 1 else R({0}))")  # fmt: skip
CHANGE = {
    "l": ("{0}.append(n)", "{0}[0] = n", "{0} += [n]", "{0}.extend({l})", "{0}.insert(0, n)", "{0}.sort()", "{0}.reverse()",
          "{0}[0] += 1", "{0} += {l}", "del {0}[0]", "{0}.pop()"),
    "ll": ("{0}.append({l})", "{0}[0] = {l}", "{0} += [{l}]", "{0}.extend({ll})", "{0}.insert(0, {l})", "{0}.reverse()",
           "{0}[0][0] = n", "{0}[0] += [n]", "{0}[-1] += {l}", "{0}[0].append(n)", "{0}[-1].extend({l})", "{0}[0].pop()",
           "{0}[n - 3][0] += n", "{0}[1].sort()", "{0}[0], {0}[1] = {0}[1], {0}[0]"),
    "a": ("{0}[0] = n", "{0}[1] += 2", "{0} += 1", "{0}[:2] = {a}[1:]", "{0} *= {a}", "{0}[{0} > 0] = 7", "{0}.fill(n)",
          "{0}.sort()", "np.add({a}, 1, out={0})", "np.multiply({0}, {a}, {0})", "np.copyto({0}, {a})", "{0}[1:].fill(n)",
          "{0}[0], {0}[1] = {0}[1], {0}[0]", "{0}[:2], {0}[1:] = {0}[1:], {0}[:2]", "{0} += [n, 1, 2]"),
    "m": ("{0}[0, 1] = n", "{0}[0] = {a}", "{0} += 1", "{0}[1][2] = n", "{0}[:, 0] += {a}", "{0}[0].fill(n)", "{0}.sort()",
          "{0}[1].sort()", "{0}[0], {0}[1] = {0}[1], {0}[0]", "{0}[[0, 1]] = {0}[[1, 0]]", "np.add({m}, {a}, out={0})",
          "np.negative({a}, out={0}[1])", "np.copyto({0}[0], {a})", "np.fill_diagonal({0}, n)"),
}  # fmt: skip
ITEM = {"l": "v", "ll": "[*v]", "a": "v", "m": "v"}


HELD = (
    "{0}['held'] += {1}",
    "{0}['held'][0] = n",
    "{0}['held'] = {1}",
    "{0}[0] += {1}",
    "{0}[0][0] = n",
    "{0}['held'].append(n)",
)


class Writer:
    """Writes one program."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.kinds: dict[str, str] = {}
        self.lines: list[str] = []
        self.count = 0

    def some(self, kind: str) -> str:
        """A variable of a kind, or something new where there is none."""
        names = [name for name, k in self.kinds.items() if k == kind]
        if names:
            return self.rng.choice(names)
        return {"l": "[4, 5]", "ll": "[[6], [7, 8]]", "a": "np.ones(3)", "m": "np.ones((3, 3))"}[kind]

    def filled(self, text: str, *given: str) -> str:
        for kind in MAKE:
            while f"{{{kind}}}" in text:
                text = text.replace(f"{{{kind}}}", self.some(kind), 1)
        return text.format(*given)

    def bound(self, text: str, kind: str, indent: int) -> None:
        """Give a name to a value: an old one of the kind, or a new one."""
        old = [name for name, k in self.kinds.items() if k == kind]
        if old and (indent or self.rng.random() < 0.2):
            name = self.rng.choice(old)
        elif indent:
            return
        else:
            name, self.count = f"v{self.count}", self.count + 1
        self.put(f"{name} = {text}", indent)
        self.kinds[name] = kind

    def put(self, text: str, indent: int) -> None:
        self.lines.append("    " * (indent + 1) + text)

    def statement(self, indent: int = 0) -> None:
        """One statement."""
        rng, start = self.rng, len(self.lines)
        what = rng.random()
        plain = [k for k in ("l", "l", "ll", "a", "m") if k in self.kinds.values()]
        if not plain or what < 0.3:
            kind = rng.choice(("l", "l", "ll", "a", "a", "m"))
            self.bound(self.filled(rng.choice(MAKE[kind])), kind, indent)
        elif what < 0.5:
            kind = rng.choice(plain)
            self.bound(rng.choice(HOLD).format(self.some(kind)), f"held {kind}", indent)
        elif what < 0.6 and (held := [n for n, k in self.kinds.items() if k.startswith("held") and not indent]):
            self.unpacked(rng.choice(held))
        elif what < 0.75 and indent < 2:
            self.compound(indent)
        elif what < 0.82 and (held := [n for n, k in self.kinds.items() if k.startswith("held")]):
            name = rng.choice(held)
            self.put(rng.choice(HELD).format(name, self.some(self.kinds[name].removeprefix("held "))), indent)
        else:
            kind = rng.choice(plain)
            self.put(self.filled(rng.choice(CHANGE[kind]), self.some(kind)), indent)
        if len(self.lines) == start and indent:
            self.put("pass", indent)

    def unpacked(self, name: str) -> None:
        """Take something out of what holds it."""
        made = next(line.split(" = ", 1)[1] for line in reversed(self.lines) if line.strip().startswith(f"{name} = "))
        kind = self.kinds[name].removeprefix("held ")
        if "R(" in made or "made(" in made:
            how = ("{0}.held", "{0}[0]", "{0}.content()", "{0}.itself().held", "getattr({0}, 'held')")
        elif "held" in made:
            how = ("{0}['held']", "{0}.get('held')", "ident({0})['held']", "{{**{0}}}['held']")
        else:
            how = ("{0}[0]", "nth({0}, 0)", "next(iter({0}))" if made.startswith("[") else "({0} + {0})[0]")
        self.bound(self.rng.choice(how).format(name), kind, 0)

    def compound(self, indent: int) -> None:
        rng, kinds = self.rng, dict(self.kinds)
        form = rng.random()
        if form < 0.4:
            self.put(f"if n > {rng.randrange(4)}:", indent)
        elif form < 0.7:
            self.put(f"for i{indent} in range(n):", indent)
        else:
            over = rng.choice([k for k in ("ll", "m", "l") if k in self.kinds.values()] or ["ll"])
            self.put(f"for w{indent} in {self.some(over)}:", indent)
            self.kinds[f"w{indent}"] = {"ll": "l", "m": "a", "l": "number"}[over]
        for _ in range(rng.randrange(1, 3)):
            self.statement(indent + 1)
        self.kinds = kinds
        if form < 0.4 and rng.random() < 0.4:
            self.put("else:", indent)
            self.statement(indent + 1)

    def text(self) -> str:
        for _ in range(self.rng.randrange(4, 9)):
            self.statement()
        names = [n for n in self.kinds if self.rng.random() < 0.8]
        return "\n".join(["def program(n):", *self.lines, f"    return ({''.join(f'{n}, ' for n in names)})"]) + "\n"


class Caller(Writer):
    """Writes a program whose helper functions change their parameters in place, and call each other."""

    RAISING = 0.0  # how often a helper raises, in place of a statement

    def __init__(self, seed: int):
        super().__init__(seed)
        self.helpers: list[
            tuple[str, list[str], str]
        ] = []  # name, the kinds of parameters and of the result ("" for None)

    def statement(self, indent: int = 0) -> None:
        if self.helpers and self.rng.random() < 0.45:
            name, kinds, result = self.rng.choice(self.helpers)
            call = f"{name}({''.join(f'{self.argument(k)}, ' for k in kinds)}n)"
            if result and self.rng.random() < 0.6:
                before = len(self.lines)
                self.bound(call, result, indent)
                if len(self.lines) > before:
                    return
            self.put(call, indent)
        else:
            super().statement(indent)

    def argument(self, kind: str) -> str:
        """A variable, part of one, or something new."""
        what = self.rng.random()
        if what < 0.1:
            return self.filled(self.rng.choice(MAKE[kind]))
        if what < 0.25 and kind in ("l", "a"):
            return f"{self.some('ll' if kind == 'l' else 'm')}[{self.rng.randrange(2)}]"
        return self.some(kind)

    def helper(self, number: int) -> str:
        """The text of a helper function."""
        rng = self.rng
        kinds = [rng.choice(("l", "l", "ll", "a", "m")) for _ in range(rng.randrange(1, 4))]
        self.lines, self.count, self.kinds = [], 0, {f"p{k}": kind for k, kind in enumerate(kinds)}
        recursive = rng.random() < 0.2
        for _ in range(rng.randrange(1, 5)):
            if rng.random() < self.RAISING:
                name = f"p{rng.randrange(len(kinds))}"
                self.put(f"if len({name}) > {rng.randrange(1, 5)}:\n        raise ValueError('{name}')", 0)
            elif rng.random() < 0.7:
                name = f"p{rng.randrange(len(kinds))}"
                self.put(self.filled(rng.choice(CHANGE[kinds[int(name[1:])]]), name), 0)
            else:
                self.statement()
        if recursive:
            given = "".join(f"{self.some(k)}, " for k in kinds)
            self.put(f"if n > 2:\n        h{number}({given}n - 1)", 0)
        returned = [n for n, k in self.kinds.items() if not k.startswith("held")]
        result = rng.choice(returned) if rng.random() < 0.4 else ""
        if result:
            self.put(f"return {result}", 0)
        names = "".join(f"p{k}, " for k in range(len(kinds)))
        text = "\n".join([f"def h{number}({names}n):", *self.lines]) + "\n"
        self.helpers.append((f"h{number}", kinds, self.kinds[result] if result else ""))
        return text

    def text(self) -> str:
        helpers = "".join(self.helper(k) for k in range(self.rng.randrange(1, 3)))
        self.lines, self.count, self.kinds = [], 0, {}
        return helpers + super().text()


class Receiver(Caller):
    """Writes a program that changes what Python gives it."""

    RAISING = 0.15
    GIVEN = {
        "l": ("[1, 2, 3]", "[5]", "[]"),
        "ll": ("[[1, 2], [3, 4, 5]]", "[[7], [8]]"),
        "a": ("np.arange(3.0)", "np.arange(6.0)[::2]", "np.arange(3)", "np.ones((3, 2))[:, 0]"),
        "m": ("np.arange(9.0).reshape(3, 3)", "np.arange(9.0).reshape(3, 3).T", "np.ones((4, 4))[1:, :3]"),
    }

    def text(self) -> str:
        rng = self.rng
        helpers = "".join(self.helper(k) for k in range(rng.randrange(2)))
        kinds = [rng.choice(("l", "l", "ll", "a", "m")) for _ in range(rng.randrange(1, 4))]
        self.lines, self.count, self.kinds = [], 0, {f"p{k}": kind for k, kind in enumerate(kinds)}
        for _ in range(rng.randrange(2, 6)):
            if rng.random() < 0.5:
                k = rng.randrange(len(kinds))
                self.put(self.filled(rng.choice(CHANGE[kinds[k]]), f"p{k}"), 0)
            else:
                self.statement()
        if rng.random() < 0.2:
            self.put(f"{self.some('l')}[n] = n", 0)  # which may raise
        names = [n for n in self.kinds if rng.random() < 0.4]
        result = rng.choice(names) if names and rng.random() < 0.3 else f"({''.join(f'{n}, ' for n in names)})"
        given = "".join(f"{rng.choice(self.GIVEN[kind])}, " for kind in kinds)
        program = [
            f"def program({', '.join(f'p{k}' for k in range(len(kinds)))}, n):",
            *self.lines,
            f"    return {result}",
        ]
        lines = [*program, "def given():", f"    return [{given}3]"]
        return helpers + "\n".join(lines) + "\n"


def seen(run: Any, function: Any) -> Any:
    """What the caller sees of a call with new arguments: its result or exception, the arguments, and which object is where."""
    args = function.__globals__["given"]()
    inside = [a for a in args if isinstance(a, list | np.ndarray)]
    inside += [row for a in inside if isinstance(a, list) for row in a if isinstance(row, list)]
    bases = [a.base for a in inside if isinstance(a, np.ndarray)]
    try:
        result = plain(run(*args))
    except (CompileError, AssertionError, Iterations.Endless):
        raise
    except Exception as error:
        result = type(error).__name__, str(error)
    return result, plain(args), plain(inside), plain(bases)


def plain(value: Any) -> Any:
    """A value that can be compared with ==, its arrays by their numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return ("array", value.dtype.name, value.tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [plain(v) for v in value]
    return value


class Iterations:
    """Ends a program that appends to the list that it runs over."""

    class Endless(Exception):
        pass

    def __init__(self):
        self.before = sys.gettrace()
        self.left = 2000

    def __call__(self, frame, event, arg):
        self.left -= 1
        if not self.left or any(isinstance(v, list) and len(v) > 500 for v in frame.f_locals.values()):
            raise self.Endless
        return self


def check(seed: int, writer: type[Writer] = Writer) -> str:
    """Run one program.

    Args:
        seed: which one.
        writer: of which kind.

    Returns:
        "same", "refused", or "invalid" where CPython itself raises.

    Raises:
        AssertionError: it differs.
    """
    text = writer(seed).text()
    function = function_of(text, f"<aliases {writer.__name__} {seed}>", dict(NAMES))
    if writer is Receiver:
        return check_given(function, text, seed)
    sys.settrace(counter := Iterations())
    try:
        wanted = plain(function(3))
    except (LookupError, ValueError, TypeError, AttributeError, UnboundLocalError, RecursionError, Iterations.Endless):
        return "invalid"
    finally:
        sys.settrace(counter.before)
    try:
        got = plain(relay(function, executor="native" if seed % 10 == 9 else "interpreter")(3))
    except CompileError as error:
        assert "internal" not in str(error), f"{error}\n{text}"
        return "refused"
    assert got == wanted, f"{text}\nCPython: {wanted}\ncompiled: {got}"
    return "same"


def check_given(function: Any, text: str, seed: int) -> str:
    """As `check`, of a program that changes its arguments."""
    sys.settrace(counter := Iterations())
    try:
        wanted = seen(function, function)
    except Iterations.Endless:
        return "invalid"
    finally:
        sys.settrace(counter.before)
    if isinstance(wanted[0], tuple) and wanted[0][0] in ("TypeError", "AttributeError", "UnboundLocalError"):
        return "invalid"  # which is mostly refused
    try:
        got = seen(relay(function, executor="native" if seed % 10 == 9 else "interpreter"), function)
    except CompileError as error:
        assert "internal" not in str(error), f"{error}\n{text}"
        return "refused"
    assert got == wanted, f"{text}\nCPython: {wanted}\ncompiled: {got}"
    return "same"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_changes_are_seen_as_in_cpython(first):
    outcomes = [check(seed) for seed in range(first, first + 20)]
    assert "same" in outcomes


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(10_000, 15_000, 100))
def test_more_changes_are_seen_as_in_cpython(first):
    for seed in range(first, first + 100):
        check(seed)


@pytest.mark.parametrize("first", range(0, 160, 20))
@pytest.mark.sampled(4)
def test_changes_of_arguments_are_seen_as_in_cpython(first):
    outcomes = [check(seed, Caller) for seed in range(first, first + 20)]
    assert "same" in outcomes


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(10_000, 15_000, 100))
def test_more_changes_of_arguments_are_seen_as_in_cpython(first):
    for seed in range(first, first + 100):
        check(seed, Caller)


@pytest.mark.parametrize("first", range(0, 200, 20))
@pytest.mark.sampled(5)
def test_the_caller_sees_what_cpython_shows(first):
    outcomes = [check(seed, Receiver) for seed in range(first, first + 20)]
    assert "same" in outcomes


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(10_000, 15_000, 100))
def test_more_callers_see_what_cpython_shows(first):
    for seed in range(first, first + 100):
        check(seed, Receiver)


def attempt(seed: int) -> tuple[int, str, str]:
    """(seed, outcome, what went wrong); the programs are of each kind in turn."""
    try:
        return seed, check(seed // 3, (Writer, Caller, Receiver)[seed % 3]), ""
    except Exception as error:
        return seed, "failed", f"{type(error).__name__}: {error}"


def campaign(attempt: Any, first: int, count: int, processes: int = 2) -> None:
    """Run a campaign.

    Args:
        attempt: `seed -> (seed, outcome, what went wrong)`.
        first: the first seed.
        count: how many.
        processes: how many processes run them.
    """
    start, outcomes = time.time(), {}
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=200) as pool:
        for k, (seed, outcome, why) in enumerate(pool.imap_unordered(attempt, range(first, first + count), 8), 1):
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if why:
                print(f"--- seed {seed}: {why}", flush=True)
            if k % 500 == 0:
                print(f"{k} programs, {outcomes}, {time.time() - start:.0f} s", flush=True)
    print(f"all: {outcomes}, {time.time() - start:.0f} s")


if __name__ == "__main__":
    arguments: Any = [int(a) for a in sys.argv[1:]]
    campaign(attempt, *arguments)
