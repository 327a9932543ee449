"""Random sums over rows of data and their derivatives: block by block they are what the interpreter computes of all
rows at once.

Idea: loops carry rows, numbers and matrices from iteration to iteration, mix them with what has no rows, and leave sums
in several places. Some programs cannot go block by block, in part or at all; they must be the same then too.

`python -m tests.property.test_random_row_blocks FIRST COUNT [PROCESSES]` runs a campaign and prints what differs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from myia_relay import relay, value_and_grad
from myia_relay.api import Relay
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.kernels import row_blocks
from myia_relay.opt.pipeline import plan_memory
from tests.property.oracle import function_of
from tests.property.searches import campaign, checking
from tests.property.thresholds import low
from tests.property.verdicts import leaves

SUITE = 20
WIDTH, ITERATIONS = 3, 4
INPUTS = {"x": "nd", "y": "n", "labels": "i", "w": "kdd", "b": "kd", "c": "k"}
KINDS = ("nd", "n", "d", "dd", "s")  # rows, a number in each row, what has no rows
START = {
    "nd": ("x", "np.zeros((x.shape[0], 3))", "np.ones((x.shape[0], 3)) * 0.5", "x * y[:, None]"),
    "n": ("y", "np.zeros(x.shape[0])", "x[:, 1]"),
    "d": ("b[0]", "np.zeros(3)"),
    "dd": ("w[1]", "np.eye(3)", "np.zeros((3, 3))"),
    "s": ("0.0", "c[0]", "1.0"),
}
"""What a loop begins with."""

STEPS = {
    "nd": (
        "np.tanh({nd} @ w[k] + b[k])", "{nd} * c[k]", "np.sin({nd}) + b[labels] * 0.1", "{nd} * {n}[:, None]", "{nd} + x",
        "np.where({nd} > 0.0, {nd}, 0.1 * {nd})", "np.tanh({nd} @ {dd})", "np.tanh({nd} + {d})",
        "np.stack([{n}, y, {n} * c[k]], axis=1)", "np.tanh({nd}) * np.tanh({s})", "({nd}.T * np.tanh({n})).T",
        "np.concatenate([{nd}[:, 1:], {nd}[:, :1]], axis=1)",
    ),
    "n": (
        "np.sum({nd} * {nd}, axis=1) * 0.1", "np.tanh({nd} @ b[k])", "{n} * c[k] + y", "np.max({nd}, axis=1)", "np.sin({n})",
        "{nd}[:, k % 3]", "np.minimum({n}, {nd}[:, 0])", "np.tanh({n} * np.tanh({s}))",
    ),
    "d": ("np.tanh({d} @ w[k])", "{d} + b[k]", "{d} * 0.5"),
    "dd": ("np.tanh({dd} @ w[k])", "w[k] * {d}", "{dd} * c[k]"),
    "s": ("{s} * c[k]", "np.tanh({s}) + c[k]", "{s} + 0.1 * c[k]"),
}  # fmt: skip
"""What an iteration computes; `{kind}` is a value of that kind."""

MEETING = {"nd": "np.tanh({nd} - np.sum({nd}, axis=0) * 0.01)", "n": "np.tanh(np.cumsum({n}) * 0.1)"}
"""Where rows depend on each other."""

SUMS = {
    "d": ("np.sum({nd}, axis=0)", "{n} @ {nd}"),
    "dd": ("{nd}.T @ {nd}", "{nd}.T @ np.tanh({nd})"),
}
"""Sums over rows that are no numbers."""


class Writer:
    """The text of a function of rows `x`, `y`, `labels` and parameters `w`, `b`, `c`.

    Args:
        seed: of what is random.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self.values |= {"nd": ["x"], "n": ["y"]}
        for _ in range(self.random.choice((1, 1, 2))):
            self.loop()
        terms = [self.number(self.random.choice(("nd", "n", "nd", "d", "s"))) for _ in range(self.random.randint(1, 3))]
        self.lines.append(f"    return {' + '.join(terms)}")

    def pick(self, kind: str) -> str:
        """A value of a kind, a late one rather than an early one."""
        found = self.values[kind]
        return self.random.choice(found[-5:]) if found else self.random.choice(START[kind])

    def number(self, kind: str) -> str:
        """A number made of a value."""
        v = self.pick(kind)
        forms = [f"np.sum(np.sin({v}))", f"np.sum({v} * {v})", f"np.sum({v})"]
        if kind == "nd":
            forms += [f"np.sum(np.log(np.sum(np.exp(np.sin({v})), axis=1)))", f"np.sum(np.max({v}, axis=1))"]
        if kind == "n" and self.random.random() < 0.05:
            forms = [f"np.max({v})", f"np.sum({v}) ** 2 * 0.01"]
        return v if kind == "s" else self.random.choice(forms)

    def loop(self) -> None:
        """A loop that carries values of several kinds."""
        carried = {
            f"a{len(self.lines)}_{k}": kind for k, kind in enumerate(self.random.choices(KINDS, (6, 4, 1, 1, 4), k=3))
        }
        for name, kind in carried.items():
            first = self.pick(kind) if self.random.random() < 0.4 else self.random.choice(START[kind])
            self.lines.append(f"    {name} = {first}" + (" + 0.0" if kind != "s" else ""))
        rows = self.random.random() < 0.3
        table = f"t{len(self.lines)}"
        if rows:
            self.lines.append(f"    {table} = np.zeros(({ITERATIONS}, x.shape[0]))")
        iterations = f"{ITERATIONS}" if self.random.random() < 0.7 else f"{ITERATIONS - 1}, -1, -1"
        self.lines.append(f"    for k in range({iterations}):")
        kept = {kind: list(found) for kind, found in self.values.items()}
        sums = {name for name, kind in carried.items() if kind in ("s", "d", "dd") and self.random.random() < 0.6}
        for name, kind in carried.items():
            if name not in sums or self.random.random() < 0.05:  # then rows need a sum over rows
                self.values[kind].append(name)
        for j in range(self.random.randint(1, 4)):
            kind = self.random.choices(KINDS, (6, 4, 1, 1, 2))[0]
            name = f"v{len(self.lines)}_{j}"
            self.lines.append(f"        {name} = {self.expression(kind)}")
            self.values[kind].append(name)
        if rows:
            self.lines.append(f"        {table}[k] = {self.pick('n')}")
        for name, kind in carried.items():
            if kind == "s" and name in sums:
                self.lines.append(f"        {name} = {name} + {self.number(self.random.choice(('nd', 'n')))} * 0.1")
            elif name in sums:
                self.lines.append(f"        {name} = {name} + 0.01 * {self.filled(self.random.choice(SUMS[kind]))}")
            else:
                self.lines.append(f"        {name} = {self.expression(kind)}")
        self.values = {kind: [*found, *(n for n, k in carried.items() if k == kind)] for kind, found in kept.items()}
        if rows:
            name = f"u{len(self.lines)}"
            self.lines.append(f"    {name} = {self.random.choice(('np.max', 'np.sum'))}({table}, axis=0)")
            self.values["n"].append(name)

    def expression(self, kind: str) -> str:
        """A value of a kind, of what there is in an iteration of a loop."""
        if kind in MEETING and self.random.random() < 0.03:
            return self.filled(MEETING[kind])
        return self.filled(self.random.choice(STEPS[kind]))

    def filled(self, form: str) -> str:
        """A form with values in it, the same wherever it has one of the same kind."""
        return form.format(**{kind: self.pick(kind) for kind in KINDS})

    def text(self) -> str:
        return "\n".join([f"def program({', '.join(INPUTS)}):", *self.lines, ""])


def is_blocked(f: Relay, args: Sequence) -> bool:
    """Whether what is compiled goes block by block."""
    graph = plan_memory(f.ir(*args, stage="optimized").graph)
    return any("row_block" in g.flags for g in all_graphs(graph))


def check(seed: int) -> bool:
    """Compare a program; whether it went block by block.

    Raises:
        AssertionError: it gives something else.
    """
    writer = Writer(seed)
    n = writer.random.choice((12, 20, 23))
    rng, sizes = np.random.default_rng(seed), {"n": n, "d": WIDTH, "k": ITERATIONS}
    args = [
        rng.integers(0, ITERATIONS, n) if d == "i" else rng.normal(size=[sizes[k] for k in d]) * 0.7
        for d in INPUTS.values()
    ]
    f = function_of(writer.text(), f"<blocks {seed}>")
    wrt = tuple(writer.random.sample([name for name in INPUTS if name != "labels"], writer.random.randint(1, 4)))
    want = relay(value_and_grad(f, wrt), executor="interpreter")(*args)
    rows = writer.random.choice((1, 4, 5, n // 2))
    with low(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "block", lambda _, size, *__: rows if size == n else None)
        g = relay(value_and_grad(f, wrt))
        got = g(*args)
        mined = is_blocked(g, args)
    text = f"{seed}, {wrt}\n{writer.text()}"
    np.testing.assert_allclose(f(*args), want[0], rtol=1e-9, atol=1e-10, err_msg=text)
    for path, (x, y) in leaves((got, want)):
        assert np.shape(x) == np.shape(y), f"{path}\n{text}"
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9, err_msg=f"{path}\n{text}")
    return mined


def test_row_blocks_are_what_all_rows_are():
    mined = sum(check(seed) for seed in range(SUITE))
    assert SUITE / 5 < mined < SUITE


if __name__ == "__main__":
    sys.exit(bool(campaign(checking(check), *map(int, sys.argv[1:]))))
