"""Random loops that write or read a triangle of a matrix, and products of it: native code computes what NumPy computes.

Idea: `opt.kernels.triangular_products` drops what is zero, or read by nobody. The programs here stay on one side of the
diagonal, most of them; the others leave it somewhere (a rogue index, a transposed matrix, a row that goes on into the
next iteration of a loop, two matrices that change places), and nothing may be dropped of those.

`python -m tests.property.test_random_triangles FIRST COUNT [PROCESSES]` runs a campaign and prints what differs.
"""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from myia_relay import CompileError, relay
from myia_relay.opt.kernels import triangular_products
from tests.property.oracle import function_of
from tests.property.searches import campaign, checking
from tests.property.thresholds import low

SUITE = 25


class Writer:
    """A function's text, written line by line.

    Args:
        seed: of what is random.
    """

    def __init__(self, seed: int):
        self.random = r = random.Random(seed)
        self.size = r.choice((3, 4, 6))
        self.lines: list[str] = []
        self.upper, self.rogue = r.random() < 0.5, r.random() < 0.35

    def write(self, level: int, *lines: str) -> None:
        """Some lines."""
        self.lines += ["    " * level + line for line in lines]

    def columns(self) -> str:
        """The range of the columns of row `i`."""
        if self.upper:
            return self.random.choice(("range(i, n)", "range(i, n)", "range(i + 1, n)", "range(n - 1, i - 1, -1)"))
        return self.random.choice(("range(i + 1)", "range(i + 1)", "range(i)", "range(i, -1, -1)"))

    def reads(self, level: int) -> None:
        """A nest of loops that reads `P`, and may write `Q`."""
        r = self.random
        if r.random() < 0.2:
            self.write(level, "for q in range(3):")
            level += 1
        self.write(level, r.choice(("for i in range(n):", "for i in range(n - 1, -1, -1):")))
        row = r.random() < 0.3
        if row:
            self.write(level + 1, "row = P[i]")
        if r.random() < 0.2:
            self.write(level + 1, "t[i] = P[i, i]")
        if self.rogue and r.random() < 0.3:
            self.write(
                level + 1,
                r.choice(("s += P[i, 0]", "s += P[0, i]", "t = t + P[i]", "P[i] = Q[i]", "s += P[n - 1 - i, i]")),
            )
        self.write(level + 1, f"for j in {self.columns()}:")
        for _ in range(r.randint(1, 3)):
            e = "row[j]" if row and r.random() < 0.5 else "P[i, j]"
            if self.rogue and r.random() < 0.2:
                e = r.choice(("P[j, i]", "P[i, n - 1 - j]", "P[j, j]", "P[n - 1 - i, j]"))
            changes = (
                f"s += {e} * y[j]",
                f"P[i, j] = {e} * 0.5 + y[i]",
                f"Q[i, j] = {e}",
                f"Q[j, i] = {e}",
                f"t[j] += {e}",
            )
            self.write(level + 2, r.choice((*changes, "P[i, j] += s", "P[i, j] += Q[i, j]")))
        if r.random() < 0.2:
            astray = ("P, Q = Q, P", "P = P + P.T", "P = P + z") if self.rogue else ()
            self.write(
                level + 1, r.choice(("P = P * 1.5", "P = P + Q", "Q = Q * 0.5", "P = np.where(P > 0, P, 0.0)", *astray))
            )
        if row and r.random() < 0.3:
            self.write(level + 1, "t = row * 1.0" if self.rogue else "s += row[i]")

    def writes(self) -> None:
        """A nest of loops that writes `A`, which begins as zeros or as a part of `x`."""
        r, side = self.random, "triu" if self.upper else "tril"
        zeros = "np.zeros((n, n))"
        self.write(1, "A = " + r.choice((zeros, zeros, f"np.{side}(x)", f"np.{side}(x, {r.choice((-1, 1))})")))
        self.write(1, "for i in range(n):")
        if r.random() < 0.2:
            self.write(
                2, r.choice(("A[i] = A[n - 1 - i]", "A = A.T", "A, Q = Q, A")) if self.rogue else "A[i] = A[i] * 1.5"
            )
        self.write(2, f"for j in {self.columns()}:")
        for _ in range(r.randint(1, 2)):
            at = r.choice(("j, i", "i, n - 1 - j", "n - 1 - i, j")) if self.rogue and r.random() < 0.2 else "i, j"
            self.write(3, r.choice((f"A[{at}] = y[i] * x[i, j]", f"A[{at}] += y[j]", f"A[{at}] = A[j, j] + 1.0")))

    def text(self) -> str:
        """The function."""
        r = self.random
        self.write(0, "def program(x, y, z):")
        self.write(1, f"n = {self.size}", "Q = np.zeros((n, n))", "s = 0.0", "t = np.zeros(n)")
        written = r.random() < 0.5
        if written:
            self.writes()
        left, right = ("A", "z") if written else ("x", "z")
        if r.random() < 0.5:
            left, right = right, left
        self.write(1, f"P = {left}{r.choice(('', '.T'))} @ {right}{r.choice(('', '.T'))}")
        if written and r.random() < 0.5:
            self.write(1, "return P, s")
            return "\n".join(self.lines) + "\n"
        for _ in range(r.randint(1, 2)):
            self.reads(1)
            if r.random() < 0.3:
                self.write(1, r.choice(("P = P * 2.0", "P = -P", "P = P + Q", *(("P = P.T",) if self.rogue else ()))))
        self.write(1, r.choice(("return s, Q", "return s, t", "return s, Q, t")))
        return "\n".join(self.lines) + "\n"


def check(seed: int) -> str:
    """Compare a program; "" where it is refused, or not a program.

    Raises:
        AssertionError: it gives something else.
    """
    writer = Writer(seed)
    text, n = writer.text(), writer.size
    rng = np.random.default_rng(seed)
    args = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=(n, n))
    if seed % 5 == 0:
        args[2][0, 0] = np.inf
    f = function_of(text, f"<triangles {seed}>")
    with np.errstate(all="ignore"):
        try:
            want = f(*(x.copy() for x in args))
        except (IndexError, UnboundLocalError):
            return ""
        try:
            with low():
                got = relay(f)(*args)
        except CompileError:
            return ""
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11, err_msg=f"{seed}\n{text}")
    return text


@pytest.fixture
def found(monkeypatch):
    """The products of triangles that there were."""
    seen, find = [], triangular_products._triangular

    def noted(*args):
        for product in find(*args):
            seen.append(product)
            yield product

    monkeypatch.setattr(triangular_products, "_triangular", noted)
    return seen


def test_triangles_compute_what_numpy_computes(found):
    checked = sum(bool(check(seed)) for seed in range(SUITE))
    assert checked > SUITE / 2 and len(found) > SUITE / 5


if __name__ == "__main__":
    sys.exit(bool(campaign(checking(check), *map(int, sys.argv[1:]))))
