"""Derivatives by run-time lists, and through lists of lists, of trees, of records: all executors, all modes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from myia_relay import grad, jvp, relay

EXECUTORS = ("interpreter", "python", "native")


@dataclass(frozen=True)
class Leaf:
    value: float
    label: int


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


def total(t: Tree, w: float) -> float:
    match t:
        case Leaf(value, label):
            return math.tanh(value * w) + 0.1 * label * value
        case Node(left, right):
            return total(left, w) + w * total(right, w * 0.9)


def rows_of(x, n):
    rows = []
    for i in range(n):
        rows.append([x * j for j in range(i)])
    s = 0.0
    for k in range(n):
        for row in rows:
            for v in row:
                s = s * 0.9 + math.sin(v * x)
        if k % 2 == 0:
            rows[k] = [x, x]
            rows.append([x * x])
    return s


def trees(x, n):
    """The records that the entries are must last as long as the list does."""
    ts = []
    for i in range(n):
        ts.append(Node(Leaf(x * i, i), Leaf(x, 1)))
    s = 0.0
    for t in ts:
        s = math.sin(s + total(t, x))
    for t in ts:
        s = s + total(t, 0.3) * s
    return s


def records(x, n):
    ts = []
    for i in range(n):
        ts.append((x * i, Leaf(x * x, i), i))
    s = 0.0
    for a, leaf, i in ts:
        s = math.sin(s + a * leaf.value * i)
    for a, leaf, _ in ts:
        s = s * 0.5 + leaf.value * a
    return s


def by_a_list(x, n):
    ys = [x * k for k in range(n) if k % 3 != 1]

    def f(zs):
        s = x
        for k in range(len(zs) - 1):
            s = math.sin(s + zs[k] * zs[k])
        return s

    d = grad(f)(ys)  # as long as ys, though the last entry is not read
    return d[0] + d[-1] * 2 + d[1] * 0.3 + len(d)


def by_trees(x, n):
    ts = []
    for i in range(n):
        ts.append(Leaf(x * i, i))
    s = 0.0
    for leaf in grad(lambda us: us[0].value * us[1].value * us[1].value)(ts):
        s += leaf.value
    return s


def by_rows(x, n):
    rows = []
    for i in range(n):
        rows.append([x * j for j in range(i + 1)])
    d = grad(lambda rs: rs[1][0] * rs[1][1] * x + rs[2][1])(rows)
    s = 0.0
    for row in d:
        s += len(row)
        for v in row:
            s += v * x
    return s


@pytest.mark.sampled(18)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", [rows_of, trees, records, by_a_list, by_trees, by_rows])
def test_lists(f, executor):
    slope = relay(grad(f), executor=executor)
    along = relay(lambda x, n: jvp(lambda y: f(y, n), (x,), (1.0,))[1], executor=executor)
    value = relay(f, executor=executor)
    for x, n in ((0.7, 4), (0.3, 6)):
        wanted = (value(x + 1e-5, n) - value(x - 1e-5, n)) / 2e-5
        if not f.__name__.startswith("by_"):
            assert value(x, n) == pytest.approx(f(x, n), rel=1e-12)
        assert slope(x, n) == pytest.approx(wanted, rel=1e-6, abs=1e-8)
        assert along(x, n) == pytest.approx(slope(x, n), rel=1e-9)
    assert slope.cache_info().misses == 1 and not slope._structural


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", [rows_of, trees])
@pytest.mark.sampled(6)
def test_second_order(f, executor):
    slope, second = relay(grad(f), executor=executor), relay(grad(grad(f)), executor=executor)
    wanted = (slope(0.3 + 1e-5, 5) - slope(0.3 - 1e-5, 5)) / 2e-5
    assert second(0.3, 5) == pytest.approx(wanted, rel=1e-6)
