"""Random recursions that change arrays in place: their first and second derivatives.

The first derivative must be the slope by central differences of what CPython computes; the second, in both modes, that of the
first.

`python -m tests.property.test_random_changing_recursion FIRST COUNT [PROCESSES]` runs a campaign and prints what fails.
"""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from myia_relay import CompileError, grad, jvp, relay
from myia_relay.utils.errors import InternalError
from tests.property.oracle import function_of
from tests.property.searches import campaign, checking

EXECUTORS = ("native", "interpreter", "python")
STEP = 1e-5
HEAD = """\
def program(x):
    p, q = x * 1.0, np.array([0.3, -0.4, 0.5]) + x * {a}
    return h(p, q, {depth})
"""


class Source:
    """The text of a random `program(x)`, which calls a recursive function that changes its arrays; the same for equal seeds."""

    def __init__(self, seed: int):
        self.random = r = random.Random(seed)
        self.changes_both = r.random() < 0.5
        self.other = r.random() < 0.3
        self.row = r.random() < 0.25
        self.indices = ["0", "1", "2", "d % 3", "(d + 1) % 3", "-1"]
        self.lines = ["def h(p, q, d):"]
        if r.random() < 0.2:
            self.lines += self.statements(1, 1)
        self.lines += ["    if d <= 0:", f"        return {self.leaf()}"]
        before, after = self.statements(1, r.randint(0, 3)), self.statements(1, r.randint(0, 2))
        self.lines += before
        if r.random() < 0.3:
            self.lines.append(f"    s = {self.number()}")
        else:
            self.lines.append("    s = 0.0")
        self.lines += self.calls()
        self.lines += after
        self.lines.append(f"    return {self.result()}")
        if self.other:
            self.lines += ["", "", "def g(p, q, d):", *self.statements(1, 1), "    return h(p, q, d - 1) * 0.5"]
        self.lines += ["", "", HEAD.format(a=r.choice((0.0, 0.5, 1.0)), depth=r.randint(1, 3))]
        self.text = "\n".join(self.lines)

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def index(self) -> str:
        return self.random.choice(self.indices)

    def array(self) -> str:
        return self.pick("p", "p", "q")

    def number(self, depth: int = 0) -> str:
        """A float that stays small."""
        if depth > 1:
            return f"{self.array()}[{self.index()}]"
        e = lambda: self.number(depth + 1)  # noqa: E731
        return self.pick(
            f"{self.array()}[{self.index()}]",
            f"{e()} * {e()}",
            f"np.sin({e()})",
            f"np.tanh({e()} + {e()})",
            f"({e()} - {e()}) * 0.5",
            f"np.dot({self.array()}, {self.array()}) * 0.2",
            f"np.sum({self.array()}) * 0.3",
            f"{e()} / (1.0 + {e()} ** 2)",
            f"({e()} if {self.array()}[{self.index()}] > 0.2 else {e()})",
        )

    def vector(self) -> str:
        return self.pick(
            "p * 0.5",
            "np.sin(q)",
            "np.tanh(p)",
            "(p + q) * 0.4",
            "q[::-1] * 0.7",
            f"p * {self.number(1)}",
            "np.cumsum(q) * 0.3",
        )

    def changed(self) -> str:
        return "p" if not self.changes_both else self.pick("p", "p", "q")

    def statements(self, level: int, count: int) -> list[str]:
        pad, out = "    " * level, []
        for _ in range(count):
            name, kind = self.changed(), self.random.randrange(10)
            if kind < 3:
                out.append(f"{pad}{name}[{self.index()}] = {self.number()}")
            elif kind == 3:
                out.append(f"{pad}{name}[{self.index()}] {self.pick('+=', '*=', '-=')} np.tanh({self.number()})")
            elif kind == 4:
                out.append(
                    f"{pad}{name}[{self.pick('0:2', '1:', ':2')}] = {self.array()}[{self.pick('1:', ':2')}] * 0.6"
                )
            elif kind == 5:
                out.append(f"{pad}{name}[:] = {self.vector()}")
            elif kind == 6:
                out.append(f"{pad}{name} *= {self.pick('0.7', '-0.5', f'np.cos({self.number(1)})')}")
            elif kind == 7 and level < 3:
                out.append(f"{pad}for i in range({self.pick('2', '3', 'd')}):")
                self.indices.append("i % 3")
                out += self.statements(level + 1, 1)
                self.indices.remove("i % 3")
            elif kind == 8 and level < 3:
                out.append(f"{pad}if {self.pick('d % 2 == 0', f'{self.number(1)} > 0.1', 'd > 1')}:")
                out += self.statements(level + 1, 1)
                if self.random.random() < 0.5:
                    out += [f"{pad}else:", *self.statements(level + 1, 1)]
            else:
                out.append(f"{pad}{name}[{self.index()}], {name}[{self.index()}] = {self.number(1)}, {self.number(1)}")
        return out

    def calls(self) -> list[str]:
        r, out = self.random, []
        for _ in range(r.choice((1, 1, 1, 2))):
            name = "g" if self.other and r.random() < 0.6 else "h"
            arguments = (
                self.pick("p, q", "p, q", "p, q", "p.copy(), q", "p * 0.5, q", "q.copy(), p")
                if not self.changes_both
                else (self.pick("p, q", "p, q", "q, p", "p.copy(), q", "p, q * 0.5"))
            )
            if arguments == "q.copy(), p" and self.changes_both:
                arguments = "p, q"
            kind = r.randrange(6)
            call = f"{name}({arguments}, d - {self.pick('1', '1', '2')})"
            if kind == 0:
                out += [f"    if {self.pick('d % 2 == 1', 'p[0] > 0.0')}:", f"        s = s + {call}"]
            elif kind == 1:
                out += [
                    f"    for j in range({self.pick('1', '2')}):",
                    f"        s = s * 0.5 + {name}({arguments}, d - 1 - j)",
                ]
            elif kind == 2:
                out.append(f"    s = {call} + s * 0.5")
            elif kind == 3:
                out.append(f"    s = np.sin({call}) + s")
            else:
                out.append(f"    s = s + {call} * {self.pick('0.5', self.number(1))}")
        return out

    def leaf(self) -> str:
        return self.pick("0.0", "p[0]", self.number(), "np.sum(p * q)")

    def result(self) -> str:
        return self.pick(
            "s", f"s + {self.number()}", f"s * 0.5 + {self.number(1)}", "s + np.dot(p, p)", "s + np.sum(p * q)"
        )


def slopes(f, x: np.ndarray, step: float = STEP) -> np.ndarray:
    """Central differences along each element."""
    return np.array([(f(x + s) - f(x - s)) / (2 * step) for s in np.eye(len(x)) * step])


def is_smooth(f, x: np.ndarray) -> bool:
    """Whether smaller steps give the same slopes: no condition changes there."""
    return np.allclose(slopes(f, x), slopes(f, x, STEP / 7), rtol=1e-4, atol=1e-6)


def check(seed: int, executor: str | None = None) -> None:
    """Compare the derivatives of one program.

    Raises:
        AssertionError: they are wrong.
    """
    text = Source(seed).text
    f = function_of(text, f"<changing recursion {seed}>")
    executor = executor or EXECUTORS[seed % 3]
    first = relay(grad(f), executor=executor)
    v = np.array([0.6, -1.0, 0.3])
    reverse = relay(grad(lambda x: np.dot(grad(f)(x), v)), executor=executor)
    forward = relay(lambda x: jvp(grad(f), (x,), (v,))[1], executor=executor)
    for x in (np.array([0.5, -0.3, 0.8]), np.array([-0.7, 0.4, 0.1])):
        try:
            first(x)
        except CompileError as error:
            if isinstance(error, InternalError):
                raise
            return  # names do not tell whether the arrays differ
        if not is_smooth(f, x) or not is_smooth(first, x):
            continue
        want = slopes(f, x)
        np.testing.assert_allclose(first(x), want, rtol=1e-4, atol=1e-6, err_msg=text)
        second = slopes(first, x) @ v
        np.testing.assert_allclose(reverse(x), second, rtol=1e-4, atol=1e-6, err_msg=text)
        np.testing.assert_allclose(forward(x), second, rtol=1e-4, atol=1e-6, err_msg=text)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(24))
def test_derivatives(seed):
    check(seed)


@pytest.mark.campaign
def test_campaign():
    assert campaign(checking(check), 1000, 400) == 0


if __name__ == "__main__":
    sys.exit(campaign(checking(check), *map(int, sys.argv[1:])) > 0)
