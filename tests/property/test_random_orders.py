"""Random programs that read a part of something and change all of it, or the reverse, in one statement or soon after.

Idea: CPython's objects are seen under every name, whenever they are read; compiled code has values. So each program gives two to
four names to a few arrays, lists and dicts and to parts of them, through subscripts, methods, comprehensions, generators, `zip` and
`enumerate`, and functions that return their argument on one path only; and it reads and changes them in every order: in assignments
to several targets, in operands, displays and arguments beside the call of a function that changes something, in branches and loops
that exchange names. What Python gives it is changed, too, and some programs raise. Results, and the arguments after the call, must
be CPython's, or the program is refused.

`python -m tests.property.test_random_orders FIRST COUNT [PROCESSES]` runs a campaign and prints what differs.
"""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

import numpy as np
import pytest

from myia_relay import CompileError, relay
from tests.property.oracle import function_of
from tests.property.test_random_aliases import Iterations, campaign, seen

HELPERS = """
def change(x):
    x[0] = x[1]
    return 1
def change_row(x):
    x[0][1] = x[1][0]
    return 1
def grow(x):
    x.append(4)
    return 1
def early(x, y, n):
    if n > 2:
        return x
    return y
def first_of(xs, n):
    for x in xs:
        if n > 2:
            return x
    return xs[1]
def or_copy(x, n):
    if n < 3:
        return x.copy()
    return x
def ident(x, *rest, **named):
    return x
def pair(x, y):
    return x, y
"""

# What can be read, by kind: "a" a vector of 3, "m" a matrix, "l" a list of ints, "ll" one of lists, "la" one of vectors, "d" a dict
# of vectors, "dl" one of lists.
READ = {
    "a": ("{a}", "{a}", "{m}[{i}]", "{m}[{i}]", "{m}[:, {i}]", "{m}.T[{i}]", "{la}[{j}]", "{d}['p']", "{a}[::-1]", "np.diag({m})",
          "early({a}, {a}, n)", "ident({a})", "first_of({la}, n)", "or_copy({a}, n)", "[v for v in {la}][{j}]",
          "list(v for v in {la})[{j}]", "[v for _, v in enumerate({la})][{j}]", "[v for _, v in zip(range(2), {la})][{j}]",
          "{d}.get('q')", "[v for k, v in {d}.items()][{j}]", "{a}.copy()", "{a} * 1", "-{a}", "{m}[{i}, :]", "{m}[{i}][::-1]",
          "np.asarray({a})", "({a} if n > 2 else {a})", "{m}[[{i}]][0]", "{m}.reshape(9)[:3]", "(lambda: {a})()", "[*{la}][{j}]",
          "(*{la}, {a})[{j}]", "ident(**{{'x': {a}}})", "{m}.diagonal()", "sum({la})", "[{a}, {a}][n - 3]", "max({la}, key=np.sum)",
          "[v for v in {d}.values()][{j}]", "list(map(ident, {la}))[{j}]", "np.lib.stride_tricks.sliding_window_view({a}, 3)[0]"),
    "m": ("{m}", "{m}.T", "{m}[::-1]", "{m}[:, ::-1]", "{m}.copy()", "np.stack([{a}, {a}, {a}])", "early({m}, {m}, n)", "{m} + 0.0",
          "np.array([{a}, {a}, {a}])", "ident({m})", "np.outer({a}, {a})", "{m}.swapaxes(0, 1)"),
    "l": ("{l}", "{l}", "{ll}[{j}]", "{dl}['p']", "early({l}, {l}, n)", "first_of({ll}, n)", "or_copy({l}, n)", "{l}[:]",
          "{l} + []",
          "[v for _, v in enumerate({ll})][{j}]", "[v for _, v in zip({l}, {ll})][{j}]", "list(v for v in {ll})[{j}]",
          "[*{ll}][{j}]",
          "{dl}.get('q')", "dict(p={l})['p']", "{{**{dl}}}['p']", "min({ll}, key=len)", "list({l})",
          "ident({l})",
          "(*{ll}, {l})[{j}]", "[v for k, v in {dl}.items()][{j}]", "ident(*{ll})", "ident(**{{'x': {l}}})",
          "list(reversed({ll}))[0]",
          "sorted({ll}, key=len)[0]", "[v for v in {dl}.values()][{j}]", "list(map(ident, {ll}))[{j}]", "{ll}.copy()[{j}]",
          "([w for v in {ll} for w in [v]])[{j}]", "({l} or {l})", "tuple({ll})[{j}]", "list(zip({ll}, {l}))[0][0]"),
    "ll": ("{ll}", "[{l}, {l}]", "list({l} for _ in range(2))", "[v for v in {ll}]", "{ll}[::-1]",
           "[v for _, v in enumerate({ll})]",
           "list({ll})", "[{l} for _ in range(2)]", "[v[:] for v in {ll}]", "early({ll}, {ll}, n)", "[{l}] * 2", "{ll}.copy()",
           "[v for v in {dl}.values()]", "list({dl}.values())"),
    "la": ("[{a}, {a}]", "[v for v in {m}][:2]", "list({m})", "[v * 2 for v in {la}]", "[v for _, v in enumerate({m})]", "{la}",
           "[{a} for _ in range(2)]", "[v for v in {d}.values()]", "{la}[::-1]"),
    "d": ("dict(p={a}, q={a})", "{{'p': {a}, 'q': {a}}}", "{d}", "{{**{d}, 'q': {a}}}", "{{k: v for k, v in {d}.items()}}",
          "ident({d})",
          "{{k: v for k, v in zip('pq', {la})}}"),
    "dl": ("dict(p={l}, q={l})", "{{'p': {l}, 'q': {l}}}", "{dl}", "{{**{dl}, 'q': {l}}}", "{{k: v for k, v in {dl}.items()}}",
           "ident({dl})", "early({dl}, {dl}, n)"),
}  # fmt: skip
# Targets of assignments, by the kind of what is assigned; "n" is a number.
TARGET = {
    "a": ("{m}[{i}]", "{m}[:, {i}]", "{a}[:]", "{d}['p'][:]", "{d}['p']", "{la}[{j}][:]", "{la}[{j}]", "{m}[{i}, :]", "{a}[::-1]",
          "{m}[{i}][:]", "{new}"),
    "l": ("{ll}[{j}]", "{dl}['p']", "{ll}[{j}]", "{new}"),
    "n": ("{a}[{i}]", "{l}[{j}]", "{m}[{i}][{j}]", "{m}[{i}, {j}]", "{ll}[{j}][0]", "{d}['p'][0]", "{dl}['q'][0]", "{la}[{j}][0]"),
    "m": ("{m}[:]", "{m}[::-1]", "{new}"),
    "ll": ("{new}",),
    "la": ("{new}",), "d": ("{new}",), "dl": ("{new}",),
}  # fmt: skip
READ["n"] = ("n", "7", "{a}[{i}]", "{l}[{j}]", "{m}[{i}, {j}]", "{ll}[{j}][0]", "len({l})", "{d}['p'][0]")
CHANGE = (
    "change({a})", "change({l})", "change({m}[{i}])", "change({ll}[{j}])", "change_row({m})", "change_row({ll})", "grow({l})",
    "grow({ll}[{j}])", "{l}.pop()", "{ll}[{j}].pop()", "change({d}['p'])", "change({dl}['p'])", "change({m})", "change({la}[{j}])",
)  # fmt: skip
BESIDE = ("({r}, {c})", "[{r}, {c}]", "{{'r': {r}, 'c': {c}}}", "pair({r}, {c})", "({c}, {r})", "pair({r}, y={c})", "[*{r}, {c}]",
          "({r}, {r}, {c}, {r})", "{r}[{c} - 1]", "ident({r}, {c})", "({r} if {c} > 0 else {r})",
          "[({r}, v) for v in [{c}]]")  # fmt: skip
STATEMENT = (
    "{a} += 1", "{a} *= {a}", "{l} += [5]", "{l} += {l}", "{m} += {a}", "{m}[{i}] += {a}", "{ll}[{j}] += [6]", "{l}.append(n)",
    "{ll}[{j}].append(7)", "{ll}.append({l})", "{l}.reverse()", "{l}.sort()", "{ll}.reverse()", "{d}['p'] += 1", "{dl}['p'] += [8]",
    "{m}[{m} > 2] = 0", "{a}[{a} > 2] -= 1", "change({a})", "change({l})", "change_row({m})", "grow({l})", "del {l}[0]",
    "{l}.extend({l})",
    "{la}[{j}] *= 2", "{l}.insert(0, 3)", "np.copyto({a}, {a})", "{m}[:, {i}][0] = 5", "{d}['q'][{i}] = 3", "{dl}['q'].append(2)",
)  # fmt: skip
GIVEN = {
    "a": ("np.arange(3.0)", "np.arange(6.0)[::2]", "np.ones((3, 2))[:, 0]"),
    "m": ("np.arange(9.0).reshape(3, 3)", "np.arange(9.0).reshape(3, 3).T"),
    "l": ("[1, 2]", "[5, 6]"),
    "ll": ("[[1, 2], [3, 4]]",),
    "d": ("{'p': np.arange(3.0), 'q': np.ones(3)}",),
    "dl": ("{'p': [1, 2], 'q': [3, 4]}",),
}
KINDS = ("a", "a", "a", "m", "m", "l", "l", "l", "ll", "ll", "la", "d", "dl")
NEW = {"a": "np.arange(1.0, 4.0)", "m": "np.arange(9.0).reshape(3, 3)", "l": "[1, 2]", "ll": "[[1, 2], [3, 4]]",
       "la": "[np.ones(3), np.arange(3.0)]", "d": "{'p': np.ones(3), 'q': np.arange(3.0)}",
       "dl": "{'p': [1, 2], 'q': [3, 4]}"}  # fmt: skip


INVALID = ("TypeError", "AttributeError", "UnboundLocalError", "NameError", "UFuncTypeError")


class Writer:
    """Writes one program.

    Attributes:
        kinds: name -> kind, of the variables that hold something.
        others: names of other variables.
    """

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.kinds: dict[str, str] = {}
        self.others: list[str] = []
        self.lines: list[str] = []
        self.numbers = itertools.count()

    def put(self, text: str, indent: int = 0) -> None:
        self.lines.append("    " * (indent + 1) + text)

    def filled(self, text: str, **more: str) -> str:
        """A template with a name for each kind: one that there is, or a new one, made before."""
        rng = self.rng
        for kind in ("a", "m", "l", "ll", "la", "d", "dl"):
            while f"{{{kind}}}" in text:
                text = text.replace(f"{{{kind}}}", self.name(kind), 1)
        for index, most in (("i", 3), ("j", 2)):
            while f"{{{index}}}" in text:
                text = text.replace(
                    f"{{{index}}}", rng.choice((str(rng.randrange(most)), f"n - {3 - rng.randrange(most)}")), 1
                )
        for name, value in more.items():
            while f"{{{name}}}" in text:
                text = text.replace(f"{{{name}}}", value, 1)
        return text.replace("{{", "{").replace("}}", "}")

    def name(self, kind: str) -> str:
        """A variable of a kind; made at the beginning of the program where there is none."""
        names = [n for n, k in self.kinds.items() if k == kind]
        if not names:
            names = [f"v{next(self.numbers)}"]
            self.kinds[names[0]] = kind
            self.lines.insert(0, f"    {names[0]} = {NEW[kind]}")
        return self.rng.choice(names)

    def read(self, kind: str) -> str:
        return self.filled(self.rng.choice(READ[kind]))

    def kind(self) -> str:
        """A kind, mostly one of which there is something."""
        have = list(self.kinds.values())
        return self.rng.choice(have) if have and self.rng.random() < 0.7 else self.rng.choice(KINDS)

    def target(self, kind: str, indent: int) -> str:
        """A target for a value of a kind; a new name is known after the statement."""
        text = self.rng.choice(TARGET[kind])
        if text != "{new}":
            return self.filled(text)
        old = [n for n, k in self.kinds.items() if k == kind]
        if old and (indent or self.rng.random() < 0.5):
            return self.rng.choice(old)
        name = f"v{next(self.numbers)}"
        (self.late if not indent else self.lost).append((name, kind))
        return name

    def statement(self, indent: int = 0) -> None:
        """One statement."""
        rng = self.rng
        self.late: list[tuple[str, str]] = []
        self.lost: list[tuple[str, str]] = []
        form = rng.random()
        if form < 0.2:
            kind = self.kind()
            value, target = self.read(kind), self.target(kind, indent)
            self.put(f"{target} = {apart(target, value)}", indent)
        elif form < 0.45:
            kinds = [rng.choice((self.kind(), "n", "a", "l")) for _ in range(rng.choice((2, 2, 2, 3)))]
            if rng.random() < 0.5:
                kinds = kinds[:1] * len(kinds)
            targets = [self.target(k, indent) for k in kinds]
            reads = [self.read(k) for k in kinds]
            if rng.random() < 0.5 and len(set(kinds)) == 1:  # an exchange, or a rotation
                reads = targets[1:] + targets[:1]
            if any(name in reads for name, _ in (*self.late, *self.lost)):  # a new name has no value yet
                self.late.clear()
            else:
                self.put(f"{', '.join(targets)} = {', '.join(map(apart, targets, reads))}", indent)
        elif form < 0.65:
            text = self.filled(rng.choice(BESIDE), r=self.read(self.kind()), c=self.filled(rng.choice(CHANGE)))
            name = f"r{next(self.numbers)}"
            self.put(f"{name} = {text}", indent)
            if not indent:
                self.others.append(name)
        elif form < 0.72 and indent < 2:
            loops = (f"for k{indent} in range(n - 1):", "for w in {ll}:", "for w in {m}:")
            self.put(self.filled(rng.choice((f"if n > {rng.randrange(1, 5)}:", *loops))), indent)
            for _ in range(rng.randrange(1, 3)):
                self.statement(indent + 1)
            if self.lines[-1].strip().endswith(":"):
                self.put("pass", indent + 1)
        elif form < 0.78 and len(same := [n for n, k in self.kinds.items() if k == rng.choice(("a", "l", "m"))]) > 1:
            one, other = rng.sample(same, 2)
            self.put(f"for _ in range(n):\n{'    ' * (indent + 2)}{one}[0] = {other}[1]", indent)
            self.put(f"{one}, {other} = {other}, {one}", indent + 1)
        else:
            self.put(self.filled(rng.choice(STATEMENT)), indent)
        self.kinds.update(self.late)

    def text(self) -> str:
        rng = self.rng
        given = [rng.choice(("a", "m", "l", "ll", "d", "dl")) for _ in range(rng.choice((0, 1, 1, 2)))]
        self.kinds = {f"p{k}": kind for k, kind in enumerate(given)}
        for _ in range(rng.randrange(2, 6)):
            self.statement()
        if rng.random() < 0.15:
            raises = "raise ValueError('bad')"
            self.put(rng.choice((raises, f"if n > 2:\n        {raises}", self.filled("{l}[n + 9] = 1"))))
        names = [n for n in (*self.kinds, *self.others) if rng.random() < 0.7]
        result = f"({''.join(f'{n}, ' for n in names)})" if rng.random() < 0.8 else self.read(self.kind())
        args = "".join(f"{rng.choice(GIVEN[kind])}, " for kind in given)
        head = f"def program({''.join(f'p{k}, ' for k in range(len(given)))}n):"
        return (
            "\n".join([HELPERS, head, *self.lines, f"    return {result}", "def given():", f"    return [{args}3]"])
            + "\n"
        )


def apart(target: str, value: str) -> str:
    """A value, copied if it is a part of the matrix of which a part is the target, unless both are rows: NumPy assigns vectors of
    different strides that overlap element by element, so `m[1, :] = m[:, 2]` reads what it has just written.
    """
    name, *rest = target.split("[")
    others = any(f"{name}{how}" in value for how in ("[:, ", ".T", ".reshape", ".diagonal", ")"))
    return f"({value}).copy()" if rest and (others or ":, " in target and f"{name}[" in value) else value


def check(seed: int) -> str:
    """Run one program.

    Args:
        seed: which one.

    Returns:
        "same", "refused", or "invalid" where CPython itself refuses it, or runs forever.

    Raises:
        AssertionError: it differs.
    """
    text = Writer(seed).text()
    function = function_of(text, f"<orders {seed}>", {"np": np})
    sys.settrace(counter := Iterations())
    try:
        wanted = seen(function, function)
    except (Iterations.Endless, RecursionError):
        return "invalid"
    finally:
        sys.settrace(counter.before)
    if isinstance(wanted[0], tuple) and wanted[0][0] in INVALID:
        return "invalid"
    if isinstance(wanted[0], tuple) and wanted[0][0] == "ValueError" and wanted[0][1] != "bad":
        return "invalid"  # shapes, which are mostly refused
    try:
        got = seen(
            relay(function, executor=("interpreter", "python", "native")[seed % 10 - 7 if seed % 10 > 7 else 0]),
            function,
        )
    except CompileError as error:
        assert "internal" not in str(error), f"{error}\n{text}"
        return "refused"
    assert got == wanted, f"{text}\nCPython: {wanted}\ncompiled: {got}"
    return "same"


def attempt(seed: int) -> tuple[int, str, str]:
    """(seed, outcome, what went wrong)."""
    try:
        return seed, check(seed), ""
    except Exception as error:
        return seed, "failed", f"{type(error).__name__}: {error}"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("first", range(0, 400, 20))
def test_reads_and_changes_are_ordered_as_in_cpython(first):
    outcomes = [check(seed) for seed in range(first, first + 20)]
    assert "same" in outcomes


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(10_000, 30_000, 200))
def test_more_reads_and_changes_are_ordered_as_in_cpython(first: int):
    for seed in range(first, first + 200):
        check(seed)


if __name__ == "__main__":
    arguments: Any = [int(a) for a in sys.argv[1:]]
    campaign(attempt, *arguments)
