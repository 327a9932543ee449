"""Random functions of vectors with Jacobians that are mostly zero: compressed, they are what a pass for each direction gives.

Idea: slices, gathers, updates, loops, products and branches move elements around. Entries that the pattern leaves out would show as
zeros where the interpreter, which goes direction by direction, has something else; directions of one colour that meet, as sums.

`python -m tests.property.test_random_jacobians FIRST COUNT [PROCESSES]` runs a campaign and prints what differs.
"""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from myia_relay import hessian, jacfwd, jacrev, relay
from myia_relay.ad.jacobian import jacobian as compression
from tests.property.oracle import function_of
from tests.property.searches import campaign, checking

SUITE = 8

SAME = (
    "{a} * {b}", "np.sin({a}) + {b}", "{a} - 0.5 * {b}", "np.tanh({a} * {b})", "np.where({a} > 0.1, {a}, {b})",
    "np.maximum({a}, {b})", "{a}[::-1]", "np.concatenate([{a}[1:], {b}[:1]])", "np.roll({a}, 2)",
    "np.where(np.arange({n}) % 2 == 0, {a}, {b})", "np.pad({a}[1:-1], 1)",
    "{a}[np.array({places})]", "{a} * np.sum({b}[:2])", "{a} + 0.0 * np.arange({n})",
    "np.flip({a}) * {b}[0]", "np.concatenate([{a}[:{h}], {b}[{h}:]])", "np.array({w}) * {a}", "np.abs({a}) ** 1.5",
    "np.stack([{a}, {b}])[1]", "np.outer({a}[:2], {b})[1]", "np.repeat({a}[::2], 2)[:{n}] if {n} % 2 == 0 else {a}",
)  # fmt: skip
"""Vectors of the size of others: `{a}` and `{b}` are values of a size `{n}`."""

OTHER = (
    ("{a}[{h}:]", "n - h"), ("{a}[:{h}]", "h"), ("{a}[1:] - {a}[:-1]", "n - 1"), ("{a}[2:] * {b}[:-2]", "n - 2"),
    ("np.concatenate([{a}, {b}[:2]])", "n + 2"), ("np.diff({a})", "n - 1"), ("{a}[::2]", "(n + 1) // 2"),
    ("np.cumsum({a}[:4])", "4"), ("np.sum(np.stack([{a}[:4], {b}[1:5]]), axis=0)", "4"),
    ("np.outer({a}[:2], {b}[:3]).T.reshape(-1)", "6"),
    ("({a}[:4].reshape(2, 2) @ {b}[:4].reshape(2, 2)).reshape(-1)", "4"), ("{a}[:6].reshape(2, 3).T.reshape(6)", "6"),
    ("np.max({a}[:6].reshape(3, 2), axis=1)", "3"), ("np.array({m}) @ {a}[:3]", "4"), ("np.append({a}, {b}[0] * {b}[-1])", "n + 1"),
)  # fmt: skip
"""Vectors of other sizes."""

BLOCKS = (
    "{y} = np.zeros({n})\n    for i in range(1, {n} - 1):\n        {y}[i] = {a}[i - 1] * {b}[i + 1]",
    "{y} = {a} * 1.0\n    {y}[1:4] = {b}[2:5] * {a}[0:3]",
    "{y} = {a} * 1.0\n    {y}[{k}] = np.sin({b}[{k}]) * {a}[0]",
    "{y} = {a} * 0.5\n    {y}[1:3] += {b}[:2]",
    "{y} = {a} * 0.5\n    {y}[np.array({places})[:3]] = {b}[:3]",
    "{y} = np.zeros({n})\n    s = {a}[0]\n    for i in range({n}):\n        s = 0.5 * s * {b}[i] + {a}[i]\n        {y}[i] = s",
    "if np.sum({a}) > 0.3:\n        {y} = {a}[::-1] * {b}\n    else:\n        {y} = {b} * 2.0",
    "{y} = {a}\n    for _ in range(2):\n        {y} = np.concatenate([{y}[1:], {y}[:1]]) * {b}",
    "{y} = {a} + 0.0\n    t = 0\n    while t < 3:\n        {y} = {y} * np.cos({b})\n        t = t + 1",
    "{y} = {a} + 0.0\n    while np.sum({y}) > 0.2:\n        {y} = 0.5 * {y} + 0.1 * np.roll({y}, 1) - 0.1",
    "{y} = {a} + 0.0\n    for i in range({n} - 1, 0, -1):\n        if i % 3 == 0:\n            {y}[i] = {b}[i - 1]",
)
"""Statements that make a vector `{y}` of the size of others."""


class Writer:
    """The text of a function of a vector `x`.

    Args:
        seed: of what is random.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.n = self.random.randint(8, 20)
        self.sizes = {"x": self.n}
        self.lines: list[str] = []
        for _ in range(self.random.randint(2, 6)):
            self.statement()
        last = list(self.sizes)[-1]
        first = self.random.choice(list(self.sizes))
        self.single = self.random.random() < 0.7
        self.lines.append(
            f"    return {last} * 1.0" if self.single else f"    return {first} * 2.0, np.sum({last}), {last}[1:]"
        )

    def statement(self) -> None:
        """One more vector."""
        r = self.random
        names = [name for name, n in self.sizes.items() if n >= 6]
        a = r.choice(names[-3:])
        n = self.sizes[a]
        values = {
            "a": a, "b": r.choice([v for v in names if self.sizes[v] == n]), "y": f"y{len(self.lines)}", "n": n,
            "h": r.randint(2, n - 3), "k": r.randint(-n, n - 1), "places": [r.randint(-n, n - 1) for _ in range(n)],
            "w": [round(r.uniform(-1, 1), 2) for _ in range(n)],
            "m": [[r.choice((0.0, 1.5, -0.5)) for _ in range(3)] for _ in range(4)],
        }  # fmt: skip
        kind = r.random()
        if kind < 0.4:
            line = "{y} = " + r.choice(SAME)
        elif kind < 0.65:
            form, size = r.choice(OTHER)
            line, n = "{y} = " + form, eval(size, {"n": n, "h": values["h"]})
        else:
            line = r.choice(BLOCKS)
        self.lines.append("    " + line.format(**values))
        self.sizes[values["y"]] = n

    def text(self) -> str:
        return "\n".join(["def program(x):", *self.lines, ""])


def dense(parts, shape: tuple[int, ...]) -> np.ndarray:
    """A Jacobian from the entries of a sparse one."""
    values, coordinates = parts
    out = np.full(shape, 0.0)
    assert len({*zip(*coordinates)}) == len(values)
    out[coordinates] = values
    return out


def check(seed: int) -> float:
    """Compare the Jacobians of a program; returns how many entries the sparse one has, of those that there are.

    Raises:
        AssertionError: one differs.
    """
    writer = Writer(seed)
    f = function_of(writer.text(), f"<jacobian {seed}>")
    x = np.random.default_rng(seed).normal(size=writer.n)
    text = f"{seed}\n{writer.text()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYIA_RELAY_CACHE", "0")
        patch.setenv("MYIA_RELAY_WITHOUT", "colour_jacobians")
        want = relay(jacfwd(f), executor="interpreter")(x)
    want = (want,) if writer.single else want
    share = 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYIA_RELAY_CACHE", "0")
        patch.setattr(compression, "FEW", 1)
        patch.setattr(compression, "GAIN", 1)
        for transform in (jacfwd, jacrev):
            got, sparse = relay(transform(f))(x), relay(transform(f, sparse=True))(x)
            got, sparse = ((got,), (sparse,)) if writer.single else (got, sparse)
            for one, entries, right in zip(got, sparse, want, strict=True):
                np.testing.assert_allclose(one, right, rtol=1e-9, atol=1e-11, err_msg=text)
                np.testing.assert_allclose(dense(entries, right.shape), right, rtol=1e-9, atol=1e-11, err_msg=text)
                share = min(share, len(entries[0]) / max(right.size, 1))
        if writer.single and seed % 3 == 0:
            total = function_of(
                writer.text().replace("return ", "return np.sum(").rstrip("\n") + ")\n", f"<hessian {seed}>"
            )
            got, entries = relay(hessian(total))(x), relay(hessian(total, sparse=True))(x)
            patch.setenv("MYIA_RELAY_WITHOUT", "colour_jacobians")
            right = relay(hessian(total))(x)
            np.testing.assert_allclose(got, right, rtol=1e-8, atol=1e-9, err_msg=text)
            np.testing.assert_allclose(dense(entries, right.shape), right, rtol=1e-8, atol=1e-9, err_msg=text)
    return share


@pytest.mark.campaign
def test_compressed_jacobians_are_what_all_directions_give():
    shares = [check(seed) for seed in range(SUITE)]
    assert sum(share < 0.5 for share in shares) > SUITE / 2


if __name__ == "__main__":
    sys.exit(bool(campaign(checking(check), *map(int, sys.argv[1:]))))
