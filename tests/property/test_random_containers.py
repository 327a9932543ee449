"""Random programs over lists of records, rows, tuples, dicts, strings and arrays to any depth: values, types, arguments afterwards.

A program gets a list of a random type, goes over it, reads, compares, collects and changes what is in it. CPython says what it
returns or raises and what has become of its argument. Programs without changes are differentiated, and compared with differences.

`python -m tests.property.test_random_containers FIRST COUNT [PROCESSES]` runs more.
"""

from __future__ import annotations

import copy
import math
import random
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay
from tests.property.oracle import function_of
from tests.property.searches import campaign


class Named(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Record:
    left: Any
    right: Any


LEAVES = ("int", "float", "bool", "str")
OPTIONAL = ("int | None", "float | None", "str | None")  # not in what is differentiated
WORDS = ("", "a", "b", "a longer one", "\u20ac")
ARRAYS = (("array", "float64", 1), ("array", "float64", 2), ("array", "int64", 1), ("array", "float32", 1))
FIELDS = {"dict": ("u", "v", "w"), "Named": ("first", "second"), "Record": ("left", "right")}
EXECUTORS = ("interpreter", "python", "native")


# --- types and values: ("list", t), ("tuple", t, ...), ("dict", t, ...), ("Named", t, t), ("Record", t, t),
# ("array", dtype, axes), or a leaf ---


def random_type(rng: random.Random, depth: int, optional: bool = True) -> Any:
    if optional and rng.random() < 0.1:
        return rng.choice(OPTIONAL)
    if rng.random() < 0.12:
        return rng.choice(ARRAYS if optional else ARRAYS[:-1])  # differences of float32 tell nothing
    kind = rng.choice((*LEAVES, "float", "int", "list", "tuple", "dict", "Named", "Record"))
    if kind in LEAVES or not depth:
        return kind if kind in LEAVES else rng.choice(LEAVES)
    if kind == "list":
        return kind, random_type(rng, depth - 1, optional)
    count = 2 if kind in ("Named", "Record") else rng.randrange(1, 4)
    return kind, *(random_type(rng, depth - 1, optional) for _ in range(count))


def random_value(rng: random.Random, t: Any) -> Any:
    if t == "int":
        return rng.choice((0, 1, -1, 2, 3, 7, -(2**20)))
    if t == "float":
        return rng.choice((0.0, 0.5, -1.25, 3.0, 2.75))
    if t == "bool":
        return rng.random() < 0.5
    if t == "str":
        return rng.choice(WORDS)
    if t in OPTIONAL:
        return None if rng.random() < 0.4 else random_value(rng, t.split()[0])
    kind, *parts = t
    if kind == "array":
        shape = [rng.randrange(4) for _ in range(parts[1])]
        return np.array([rng.choice((0, 1, -1, 2, 5)) for _ in range(math.prod(shape))], parts[0]).reshape(shape)
    if kind == "list":
        return [random_value(rng, parts[0]) for _ in range(rng.randrange(4))]
    values = [random_value(rng, p) for p in parts]
    if kind == "tuple":
        return tuple(values)
    return dict(zip(FIELDS["dict"], values)) if kind == "dict" else {"Named": Named, "Record": Record}[kind](*values)


# --- programs -------------------------------------------------------------------------------------------------------


def access(t: Any, place: str) -> list[tuple[str, Any]]:
    """The parts of a value of a type that are always there: expression and type."""
    out = [(place, t)]
    if isinstance(t, tuple) and t[0] not in ("list", "array"):
        for k, part in enumerate(t[1:]):
            step = (
                f"[{k}]" if t[0] == "tuple" else f"[{FIELDS['dict'][k]!r}]" if t[0] == "dict" else f".{FIELDS[t[0]][k]}"
            )
            out += access(part, place + step)
    return out


def has_arrays(t: Any) -> bool:
    """Whether there are arrays in values of a type."""
    return isinstance(t, tuple) and (t[0] == "array" or any(map(has_arrays, t[1:])))


class Program:
    """Writes a program over `xs`, a list of a type."""

    def __init__(self, rng: random.Random, t: Any, smooth: bool):
        self.rng, self.t, self.smooth = rng, t, smooth
        self.out = self.rng.choice(access(t, "e"))
        self.collects = False

    def number(self, place: str, t: Any, deep: int = 2) -> str:
        """An expression of a number, of a value."""
        at, part = self.rng.choice(access(t, place))
        if part in ("int", "float"):
            return at
        if part == "bool":
            return f"(1 if {at} else 2)"
        if part in ("int | None", "float | None"):
            return f"({at} if {at} is not None else 4)"
        if part == "str | None":
            return f"(1 if {at} is None else 2 if {at} == 'a' else 3)"
        if part == "str":
            return f"(3 if {at} == {self.rng.choice(WORDS)!r} else 0)"
        if part[0] == "array":
            first = f"({at}[0] if len({at}) > 0 else 5)" if part[2] == 1 else f"{at}.shape[1]"
            return self.rng.choice([f"len({at})", f"{at}.sum()", f"float(np.sum({at} * {at}))", first])
        if part[0] != "list":
            return self.number(place, t, deep) if deep else "1"
        inner = part[1]
        forms = [f"len({at})"]
        if inner in ("int", "float"):
            forms += [f"sum({at})", f"({at}[-1] if {at} else 0)", f"max({at}, default=4)"]
        if deep:
            forms += [
                f"sum([{self.number('w', inner, deep - 1)} for w in {at}])",
                f"({self.number(f'{at}[0]', inner, deep - 1)} if {at} else 5)",
            ]
        return self.rng.choice(forms)

    def condition(self, place: str, t: Any) -> str:
        at, part = self.rng.choice(access(t, place))
        if part == "str":
            return self.rng.choice(
                [f"{at} == {self.rng.choice(WORDS)!r}", f"{at} in ('a', 'b')", f"not {at}", f"{at} != xs[0]{at[1:]}"]
            )
        if part == "bool":
            return at
        if part in OPTIONAL:
            return self.rng.choice([f"{at} is None", f"{at} is not None", f"{at} == {random_value(self.rng, part)!r}"])
        if isinstance(part, tuple):
            return (
                f"{at} == xs[-1]{at[1:]}"
                if place == "e" and not has_arrays(part) and self.rng.random() < 0.3
                else f"{self.number(place, t)} > 1"
            )
        return f"{at} {self.rng.choice(['>', '<=', '==', '!='])} {self.rng.choice(['1', '0.5', 'k'])}"

    def statement(self) -> list[str]:
        choice = self.rng.randrange(8)
        if choice < 3 or self.smooth:
            scale = self.rng.choice(["", "0.5 * ", "k * "])
            term = self.number("e", self.t)
            return [f"total += {scale}{term}" + (f" * {self.number('e', self.t)}" if self.rng.random() < 0.5 else "")]
        if choice == 3:
            self.collects = True
            return [f"if {self.condition('e', self.t)}:", f"    out.append({self.out[0]})"]
        if choice == 4:
            lists = [(at, part) for at, part in access(self.t, "e") if isinstance(part, tuple) and part[0] == "list"]
            if lists:
                at, part = self.rng.choice(lists)
                return [f"for w in {at}:", f"    total += {self.number('w', part[1], 1)}"]
        if choice == 5:
            return [f"if {self.condition('e', self.t)}:", f"    {self.rng.choice(['continue', 'break', 'n += 1'])}"]
        if choice >= 6 and (change := self.change()):
            return change
        return ["n += 1"]

    def literal(self, t: Any) -> str:
        return self.shown(random_value(self.rng, t))

    def shown(self, value: Any) -> str:
        """The expression of a value."""
        if isinstance(value, np.ndarray):
            return f"np.array({value.ravel().tolist()}, np.{value.dtype}).reshape({value.shape})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.shown(v)}" for k, v in value.items()) + "}"
        if isinstance(value, Record):
            return f"Record({self.shown(value.left)}, {self.shown(value.right)})"
        if isinstance(value, Named):
            return f"Named({self.shown(value.first)}, {self.shown(value.second)})"
        if isinstance(value, tuple):
            return f"({''.join(self.shown(v) + ', ' for v in value)})"
        return f"[{', '.join(map(self.shown, value))}]" if isinstance(value, list) else repr(value)

    def change(self) -> list[str]:
        """A change of the argument."""
        found: list[str] = []
        for at, part in access(self.t, "e"):
            if not isinstance(part, tuple):
                continue
            if part[0] == "dict":
                k = self.rng.randrange(len(part) - 1)
                found.append(f"{at}[{FIELDS['dict'][k]!r}] = {self.literal(part[k + 1])}")
                if part[k + 1] in ("int", "float"):
                    found.append(f"{at}[{FIELDS['dict'][k]!r}] += 1")
            if part[0] == "array":
                found += [f"{at}[:] = 3", f"{at}[:1] += 1"]
                if at == "e" or at.endswith("']"):
                    found.append(f"{at} *= 2")
            if part[0] == "list":
                found.append(f"{at}.append({self.literal(part[1])})")
                if part[1] in ("int", "float"):
                    found += [f"if {at}:\n    {at}[0] += 2", f"{at}.extend({at})"]
        return self.rng.choice(found).split("\n") if found else []

    def result(self) -> str:
        parts = ["total", "n", *(["out"] if self.collects else [])]
        more = [
            "xs[k]",
            f"[{self.rng.choice(access(self.t, 'e'))[0]} for e in xs if {self.condition('e', self.t)}]",
            f"max(xs, key=lambda e: {self.number('e', self.t)})",
            f"sorted(xs, key=lambda e: {self.number('e', self.t)})",
            "xs[1:]",
            "xs[0] in xs[1:]" if not has_arrays(self.t) else "len(xs)",
            "xs",
            f"any({self.condition('e', self.t)} for e in xs)",
            f"[[{self.number('e', self.t)}, k] for e in xs]",
            f"[(i, {self.rng.choice(access(self.t, 'e'))[0]}) for i, e in enumerate(xs)]",
        ]
        parts += self.rng.sample(more, self.rng.randrange(3))
        return ", ".join(parts)

    def text(self) -> str:
        loop = self.rng.choice(
            ["for e in xs:", "for i, e in enumerate(xs):", "for e in xs[1:]:", "for e in reversed(xs):"]
        )
        body = [line for _ in range(self.rng.randrange(1, 4)) for line in self.statement()]
        if self.smooth:
            return "\n".join(
                [
                    "def program(xs, k):",
                    "    total = 0.0",
                    "    for e in xs:",
                    *(f"        {b}" for b in body),
                    "    return total",
                    "",
                ]
            )
        lines = ["def program(xs, k):", "    total, n = 0.0, 0"]
        result = f"    return {self.result()}"
        lines += ["    out = []"] if self.collects else []
        return "\n".join([*lines, f"    {loop}", *(f"        {b}" for b in body), result, ""])


def outcome(function, xs: list, k: int) -> tuple:
    """What is returned or raised, and the argument afterwards; ("refused", message)."""
    try:
        return "returned", function(xs, k), xs
    except CompileError as error:
        assert error.loc is not None, error
        return "refused", error.message
    except Exception as error:
        return "raised", type(error), xs


def judge(seed: int, executor: str = "interpreter") -> str:
    """ "same" or "refused", or what is wrong."""
    rng = random.Random(seed)
    t = random_type(rng, 3)
    text = Program(rng, t, False).text()
    function = function_of(text, f"<containers {seed}>", {"Named": Named, "Record": Record, "np": np})
    compiled = relay(function, executor=executor)
    verdict = "same"
    sizes = [rng.randrange(1, 4), rng.randrange(2, 7), *([rng.randrange(17, 20)] if has_arrays(t) else [])]
    for size in (*sizes, 5, 3):  # native code gets its arguments another way from the third call on
        xs, k = [random_value(rng, t) for _ in range(size)], rng.randrange(2)
        want = outcome(function, copy.deepcopy(xs), k)
        got = outcome(compiled, copy.deepcopy(xs), k)
        if got[0] == "refused":
            verdict = "refused"
        elif repr(got) != repr(want):
            return f"{seed} ({executor}): {got} instead of {want} for {xs}, {k}\n{text}"
    return verdict


def floats(value: Any) -> list[float]:
    """The floats in a value, in order."""
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype == np.float64 else []
    if isinstance(value, float):
        return [value]
    if isinstance(value, dict):
        return [x for v in value.values() for x in floats(v)]
    if isinstance(value, Record):
        return floats((value.left, value.right))
    return [x for v in value for x in floats(v)] if isinstance(value, (list, tuple)) else []


def moved(value: Any, steps) -> Any:
    """A value of which the floats have moved."""
    if isinstance(value, np.ndarray):
        if value.dtype != np.float64:
            return value
        return np.array([moved(v, steps) for v in value.ravel().tolist()], value.dtype).reshape(value.shape)
    if isinstance(value, float):
        return value + next(steps)
    if isinstance(value, dict):
        return {k: moved(v, steps) for k, v in value.items()}
    if isinstance(value, Record):
        return Record(moved(value.left, steps), moved(value.right, steps))
    if isinstance(value, Named):
        return Named(moved(value.first, steps), moved(value.second, steps))
    return type(value)([moved(v, steps) for v in value]) if isinstance(value, (list, tuple)) else value


def judge_gradient(seed: int, executor: str = "interpreter") -> str:
    """As `judge`, of the derivative along a random direction."""
    rng = random.Random(seed)
    t = random_type(rng, 3, False)
    text = Program(rng, t, True).text()
    function = function_of(text, f"<containers {seed}>", {"Named": Named, "Record": Record, "np": np})
    most = rng.choice((4, 19)) if has_arrays(t) else 4
    xs, k = [random_value(rng, t) for _ in range(rng.randrange(most - 3, most + 1))], rng.randrange(2)
    xs = moved(xs, iter(lambda: rng.random() / 7, None))  # where no two floats are equal
    count = len(floats(xs))
    direction = [rng.uniform(-1, 1) for _ in range(count)]
    try:
        found = floats(grad(relay(function, executor=executor))(xs, k))
    except CompileError as error:
        assert error.loc is not None, error
        return "refused"
    if len(found) != count:
        return f"{seed} ({executor}): {len(found)} derivatives by {count} floats of {xs}\n{text}"
    h = 1e-6
    ends = [function(moved(xs, iter([s * h * d for d in direction])), k) for s in (1, -1)]
    want, have = (ends[0] - ends[1]) / (2 * h), math.fsum(a * b for a, b in zip(found, direction))
    if abs(want - have) > 1e-5 * max(1, abs(want), *map(abs, ends)):
        return f"{seed} ({executor}): {have} instead of {want} along {direction} for {xs}, {k}\n{text}"
    return "same"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 120, 15))
def test_values_types_and_arguments_are_cpythons(first):
    verdicts = [judge(seed) for seed in range(first, first + 15)]
    assert not [v for v in verdicts if v not in ("same", "refused")]
    assert verdicts.count("same") > 9


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(0, 60, 15))
def test_gradients_are_those_of_differences(first):
    verdicts = [judge_gradient(seed) for seed in range(first, first + 15)]
    assert not [v for v in verdicts if v not in ("same", "refused")]
    assert verdicts.count("same") > 9


@pytest.mark.campaign
@pytest.mark.parametrize("executor", EXECUTORS)
def test_many_programs(executor):
    assert not [v for v in (judge(seed, executor) for seed in range(2000)) if v not in ("same", "refused")]
    assert not [v for v in (judge_gradient(seed, executor) for seed in range(500)) if v not in ("same", "refused")]


def one(seed: int) -> tuple[int, str]:
    """The verdict of the command line: two in three programs by the interpreter, others by native code; every fourth a gradient."""
    executor = "native" if seed % 6 == 5 else EXECUTORS[seed % 2]
    verdict = (judge_gradient if seed % 4 == 3 else judge)(seed, executor)
    return seed, "" if verdict in ("same", "refused") else verdict


if __name__ == "__main__":
    sys.exit(bool(campaign(one, *map(int, sys.argv[1:]))))
