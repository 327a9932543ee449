# ruff: noqa: F841
"""What range analysis finds, program by program: no bound that a run passes (by the interpreter), and no looser than stated."""

from __future__ import annotations

import inspect
import random

import numpy as np
import pytest

from myia_relay import Int64, Tensor, relay
from myia_relay.abstract.types import INT, Scalar
from myia_relay.ir.node import Graph
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.analysis.ranges import analyse
from tests.typed_graphs import apply, build, cond, for_, staged, while_
from tests.unit.opt.ranges_util import ALL, LEAST, MOST, POINTS, assert_sound

# --- programs whose bounds are known -------------------------------------------------------------------------------------


def typed(f, *args) -> Graph:
    """The typed graph of a function, as inference leaves it."""
    graph = relay(f).ir(*args, stage="inferred").graph
    return graph.nodes[0].fn


def branches(n):
    a = n if n > 5 else 5
    b = n if n >= 5 else 4
    c = n if n < 5 else 5
    d = n if n <= 5 else 6
    e = n if 3 < n < 10 else 4
    f = n if n == 7 else 8
    g = 0 if n != 7 else n
    h = n if not n > 5 else 0
    return a, b, c, d, e, f, g, h


def mirrored(n):
    return n if 5 < n else 6, n if 5 <= n else 5, n if 5 > n else 4, n if 5 >= n else 5


def both_and_either(n):
    a = n if n > 5 and n < 9 else 6
    b = n if not (n < 5 or n > 9) else 5
    c = n if n > 5 or n > 9 else 7
    d = n if (n > 5) == True else 6  # noqa: E712
    return a, b, c, d


def raised(n):
    if n < 2:
        raise ValueError("small")
    assert n < 100
    return n, n + 1, n * 2, -n


def counted(n):
    a, b, c, d = 0, 0, 0, 0
    for i in range(3, 10):
        a = i
    for i in range(10, 3, -1):
        b = i
    for i in range(3, 10, 2):
        c = i
    for i in range(4, 4):
        d = i
    return a, b, c, d


def carried(n):
    up, down, flip, total = 0, 100, 1, 0
    for i in range(50):
        up = i + 1
        down = 100 - i
        flip = -flip
        total = total + 2
    return up, down, flip, total


def waiting(n):
    k = 0
    while k < 10:
        k = k + 1
    j = 20
    while j > 3:
        j = j - 2
    m = 1
    while m != 64:
        m = m * 2
    return k, j, m


def halved(n):
    n = min(n, 1000)
    while n > 1:
        n = n // 2
    return n


def bits(n):
    a = n & 15
    b = a | 16
    c = a ^ 5
    d = a << 2
    e = n >> 60
    f = ~a
    g = abs(a - 20)
    return a, b, c, d, e, f, g


def divided(n):
    m = n % 10
    a = m // 3
    b = m % 20
    c = -m // 4
    d = n % -10
    e = n // 2**32
    return m, a, b, c, d, e


def chosen(n):
    c = int(n > 3)
    e = (n > 3) + (n > 5)
    return c, e, bool(n), int(bool(n & 7 | 8)), int(bool(n & 0))


def flags(n):
    seen = False
    k = 0
    for i in range(20):
        if seen:
            k = 1
        seen = i > 3
    return k, seen


def through_branches(n):
    ok = n > 3 if n < 50 else False
    a = n if ok else 10
    no = True if n < 0 else n > 50
    b = n if not no else 1
    return a, b


def offset(n):
    m = n - 3
    a = n if 0 <= m < 7 else 5
    k = n + 4
    b = n if 0 <= k < 7 else 0
    return a, b


def clamped(n):
    n = min(max(n, -20), 50)
    up, down = max(n - 7, 0), min(n + 7, 30)
    return n, up, down, max(up, 3) - min(down, 2), -n if n < 0 else n


def multiplied(n):
    a = n if n > 1 else 2
    return n * 3 if n > 0 else 3, a * a


BOUNDS = [
    (clamped, ((-20, 50), (0, 43), (-13, 30), (1, 56), (0, 50))),
    (multiplied, ((3, MOST - 1), (4, MOST))),
    (branches, ((5, MOST), (4, MOST), (LEAST, 5), (LEAST, 6), (4, 9), (7, 8), (0, 7), (LEAST, 5))),
    (mirrored, ((6, MOST), (5, MOST), (LEAST, 4), (LEAST, 5))),
    (both_and_either, ((6, 8), (5, 9), (6, MOST), ALL)),
    (raised, (ALL, (3, 100), (4, 198), (-99, -2))),
    (counted, ((0, 9), (0, 10), (0, 9), (0, 0))),
    (carried, ((0, 50), (51, 100), (LEAST + 1, MOST), (0, MOST))),
    (waiting, ((10, 10), (2, 3), (64, 64))),
    (halved, ((LEAST, 1),)),
    (bits, ((0, 15), (16, 31), (0, 15), (0, 60), (-8, 7), (-16, -1), (5, 20))),
    (divided, ((0, 9), (0, 3), (0, 9), (-3, 0), (-9, 0), (-(2**31), 2**31 - 1))),
    (chosen, ((0, 1), (0, 2), (0, 1), (1, 1), (0, 0))),
    (flags, ((0, MOST), (0, 1))),
    (through_branches, ((4, 49), (0, 50))),
    (offset, ((3, 9), (-4, 2))),
]


@pytest.mark.parametrize(("f", "want"), BOUNDS, ids=lambda x: getattr(x, "__name__", ""))
def test_bounds(f, want):
    graph = typed(f, 3)
    points = POINTS
    ranges = assert_sound(graph, points)
    outputs = graph.output.args if graph.output.fn.name == "make_struct" else [graph.output]
    assert tuple(ranges.interval(x) for x in outputs) == want


# --- comparisons that are decided ----------------------------------------------------------------------------------------


VERDICTS = {(0, 0): "False", (1, 1): "True", (0, 1): "either"}


def decided(f, *args) -> list[tuple[str, str]]:
    """Of each line that ends with a verdict on its comparison: the line without it, and what the analysis says."""
    graph = relay(f).ir(*args, stage="inferred").graph
    ranges, lines, start = analyse(graph), *inspect.getsourcelines(f)
    found: dict[int, set] = {}
    for g in all_graphs(graph):
        for node in g.nodes:
            if getattr(node.fn, "name", "") in ("lt", "le", "gt", "ge", "eq"):
                found.setdefault(node.origin.loc.line - start, set()).add(ranges.of.get(node))
    out = []
    for k, line in enumerate(lines):
        text, mark, _ = line.partition("  # ")
        if mark:
            out.append(f"{text}  # {' and '.join(sorted(VERDICTS[v] for v in found[k]))}")
    return out


VECTOR, OTHER = Tensor[Int64, ("n",)], Tensor[Int64, ("m",)]


def below_a_size(x: VECTOR, k: int):
    for i in range(len(x)):
        a = i < len(x)  # True
        b = i <= len(x)  # True
        c = i >= len(x)  # False
        d = len(x) > i  # True
        e = i + 1 < len(x)  # either
        f = i + 1 <= len(x)  # True
    g = k < len(x)
    if k < len(x):
        h = k < len(x)  # True
        i = len(x) <= k  # False
    if k <= len(x):
        j = k < len(x)  # either
        if k <= len(x):
            m = k <= len(x)  # either
    return len(x) >= 0


def waits_below(x: VECTOR, k: int):
    i, n = 0, len(x)
    while i < n:
        a = i < n  # True
        i = i + 1
        b = i < n  # either
    j, m = k, k
    while j < m:
        c = j < m  # True
        m = m - 1
        d = j < m  # either
        j = j + 1
    while i <= n:
        e = i < n  # either
        i = i + 1
    return n


def in_loops(n):
    for i in range(4):
        for j in range(i, 4):
            a = j - i >= 0  # True
            b = j - i > 0  # either
            c = j - i < 4  # True
            d = i * j < 10  # True
            e = i * j <= 9  # True
            f = i * j < 9  # either
            g = i + j > 6  # False
            h = j - i < 0  # False
    for i in range(9, 0, -2):
        for j in range(i):
            k = i - j > 0  # True
            m = i % 2 == 1  # either
            o = i - j > 1  # either
            q = j < 9  # True
            r = j < 8  # either
    return n


def halves(n):
    for i in range(9):
        for j in range(i):
            at = i * (i - 1) // 2 + j
            a = at < 36  # True
            b = at < 35  # either
            c = i * (i - 1) // 2 >= 0  # True
            d = (i * (i + 1) >> 1) < 37  # True
            e = (i * (i + 1) >> 1) < 36  # either
            f = -j > -8  # True
            g = -j > -7  # either
            h = i - 1 - j >= 0  # True
    return n


def refused(n, k):
    for i in range(k):
        a = i < k  # True
        b = i < n  # either
        if n > k:
            c = i < n  # either
            d = i < n - 1  # either
        if n >= k:
            e = i < n  # either
        if n < k:
            f = i < n  # either
    for i in range(n, k):
        g = i >= n  # either
        h = i > n  # either
        j = i < k  # True
    for i in range(k, n, -1):
        m = i > n  # True
        o = i <= k  # True
        p = i < k  # either
    return n


def in_branches(x: VECTOR, k: int, flag: bool):
    if k < len(x):
        a = (k < len(x)) if flag else (k + 1 <= len(x))  # True and either
    else:
        b = k < len(x)  # either
        c = k >= 0  # True
    if k < 3:
        d = k > 3 if flag else k > 2  # False
    else:
        e = k < 3 if flag else k >= 3  # False and True
    if flag and k < len(x):
        f = k < len(x)  # True
    return k


def by_unknown_steps(n, k):
    step = k if k > 0 else 0
    for i in range(5, n, step):
        a = i > 5  # either
        b = i < n  # True
    m, r = n, n
    if n < k:
        for _i in range(9):
            c = m < k  # either
            m = m + 1
            d = r < k  # either
            r = r + 1
    return m


DECIDED = [
    (by_unknown_steps, (9, 3)),
    (below_a_size, (np.arange(3), 1)),
    (waits_below, (np.arange(3), 1)),
    (in_loops, (1,)),
    (halves, (1,)),
    (refused, (1, 1)),
    (in_branches, (np.arange(3), 1, True)),
]


@pytest.mark.parametrize(("f", "args"), DECIDED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_decided(f, args):
    lines = [line.rstrip() for line in inspect.getsourcelines(f)[0] if "  # " in line]
    assert decided(f, *args) == lines


# --- random programs -----------------------------------------------------------------------------------------------------

UNARY, BINARY = ("neg", "abs", "bitwise_not"), (
    "add", "sub", "mul", "floordiv", "mod", "bitwise_and", "bitwise_or", "bitwise_xor", "minimum", "maximum",
)  # fmt: skip
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("logical_and", "logical_or", "logical_xor")
SMALL = Scalar("int8")


class Writer:
    """Writes a random typed graph of integers."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)

    def number(self, values, dtype="int64"):
        if self.draw.random() < 0.75:
            return self.draw.choice(values)
        return values[0].const(self.draw.choice((-3, -1, 0, 1, 2, 3, 5, 8, 100)))

    def truth(self, values, depth=2):
        kind = self.draw.random()
        if depth and kind < 0.15:
            return apply("logical_not", self.truth(values, depth - 1))
        if depth and kind < 0.3:
            return apply(self.draw.choice(LOGIC), self.truth(values, depth - 1), self.truth(values, depth - 1))
        if depth and kind < 0.4:
            then, orelse = (lambda *xs: self.truth(xs, depth - 1)), (lambda *xs: staged(xs[0].builder, False))
            if self.draw.random() < 0.5:
                then, orelse = (lambda *xs: staged(xs[0].builder, True)), then
            return cond(self.truth(values, 0), then, orelse, *values)
        if kind < 0.5:
            x, y = self.number(values), self.number(values)
            return apply(self.draw.choice(("add", "sub", "mul")) + "_overflows", x, y)
        return apply(self.draw.choice(COMPARISONS), self.number(values), self.number(values))

    def block(self, values, size, depth):
        values = list(values)
        for _ in range(size):
            values += self.statement(values, depth)
        return values

    def statement(self, values, depth):
        draw, kind = self.draw, self.draw.random()

        def small():
            return apply("minimum", self.number(values) + 0, draw.choice((3, 6)))

        if depth and kind < 0.12:
            return [cond(self.truth(values), self.inner(depth), self.inner(depth), *values)]
        if depth and kind < 0.2:
            bounds = draw.choice(((0, 4, 1), (0, small(), 1), (5, -2, -2), (apply("maximum", small(), -9), small(), 3)))
            body, init = self.inner(depth), (self.number(values) + 0,)
            return [for_(bounds, lambda i, x, *cs: (body(i, x, *cs),), init, values)[0]]
        if depth and kind < 0.28:
            body, limit = self.inner(depth), draw.choice((5, self.number(values)))
            test = draw.choice(("lt", "ne", "le"))
            found = while_(
                lambda k, x, n, *cs: apply("logical_and", apply(test, k, n), k < 12),
                lambda k, x, n, *cs: (k + 1, body(k, x, *cs)),
                (staged(values[0].builder, draw.choice((-2, 0, 3))), self.number(values) + 0),
                (limit, *values),
            )
            return [found[0], found[1]]
        if kind < 0.4:
            apply("check", self.truth(values), exception=AssertionError, parts=("no",))
            return []
        if kind < 0.5:
            x = apply("cast", self.number(values) + 0, dtype=draw.choice(("int8", "uint8", "int32")), weak=False)
            return [apply("cast", x * 3 if draw.random() < 0.5 else x, dtype="int64", weak=True)]
        if kind < 0.55:
            return [apply("cast", self.truth(values), dtype="int64", weak=True)]
        if kind < 0.6:
            return [apply("where", self.truth(values), self.number(values) + 0, self.number(values) + 0)]
        if kind < 0.7:
            return [apply(draw.choice(UNARY), self.number(values) + 0)]
        if kind < 0.76:
            return [
                apply(draw.choice(("left_shift", "right_shift")), self.number(values) + 0, draw.choice((0, 1, 2, 5)))
            ]
        return [apply(draw.choice(BINARY), self.number(values) + 0, self.number(values))]

    def inner(self, depth):
        """A graph inside: its result is one of the last values."""

        def body(*values):
            found = self.block(values, self.draw.randint(1, 4), depth - 1)
            return self.draw.choice(found[-3:]) + 0

        return body

    def graph(self) -> Graph:
        def f(n, k):
            values = self.block([n, k], 10, 2)
            return tuple(values[-4:])

        return build(f, INT, INT)


@pytest.mark.parametrize("part", range(8))
@pytest.mark.sampled(4)
def test_random_graphs_stay_within_their_bounds(part):
    for seed in range(12 * part, 12 * part + 12):
        graph = Writer(seed).graph()
        points = [(n, k) for n in (-3, 0, 1, 4, 9, 200) for k in (-5, 0, 2, 7)] + [
            (MOST, 1),
            (LEAST, -1),
            (2**40, MOST),
        ]
        assert_sound(graph, points)
