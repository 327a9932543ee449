"""Lists of which an entry is one of several things: None or a number, ints and floats, sums that may be of nothing."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest

from myia_relay import GradError, grad, relay
from tests.programs.cases import EXECUTORS


class Quote(NamedTuple):
    price: float
    note: Any


def sums(rows):
    found = [sum(r) for r in rows]  # 0 for no numbers, else a float
    total = 0.0
    for x in found:
        total += 2 * x
    dear = [{"n": len(r), "best": max(r) if r else None} for r in rows]
    return found, total, found[0], max(found), [x for x in found if x > 1], found.count(0), dear


def chosen(rows):
    found = [r[0] if r else None for r in rows]
    n = 0
    for f in found:
        n += 1 if f is None else 10 * int(f)
    changed = found[:]
    changed[0] = 5.0
    changed.append(None)
    return n, found, changed, found[-1] is None, [(i, "none" if f is None else "some") for i, f in enumerate(found)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def numbers(xs):
    total = 0
    for x in xs:
        total += x
    return (
        total,
        xs[0],
        xs[-1],
        xs[1:4],
        [isinstance(x, float) for x in xs],
        [x for x in xs if x > 1],
        [x == 1 for x in xs],
    )


def present(xs):
    return sum([x for x in xs if x is not None]), [x is None for x in xs], xs[0], xs


def priced(rows):
    total = 0.0
    for r in rows:
        if r["discount"] is not None:
            total += r["price"] * r["discount"]
    return total, [r["discount"] for r in rows], rows[-1]


def noted(quotes):
    return (
        [q.note for q in quotes if q.price > 1],
        [q for q in quotes if q.note is None],
        [q.note == "x" for q in quotes],
    )


def optional(rows):
    return [len(r) if r is not None else -1 for r in rows], rows


def filled(xs):
    for i in range(len(xs)):
        if xs[i] is None:
            xs[i] = 7
        elif xs[i] == 3:
            xs[i] = None
    xs.append(None)


def numbered(n):
    found = [None] * n
    for i in range(n - 1):
        found[i] = i
    return found, [None for _ in range(n)]


MANY = [1, 2.5, 3, True] * 5
CASES = {
    sums: [([[1.0, 2.0], [], [3.0]],), ([[0.5], [1.0, -2.0], [], [4.0]],)],
    chosen: [([[1.0, 2.0], [], [3.0]],), ([[], [1.5]],)],
    product: [([[1.0, 2.0]], [[1.0], [2.0]]), ([[0.5], [3.0]], [[3.0, 4.0]])],
    numbers: [(MANY,), ([2.5, 1, False, 7, 1.0] * 9,)],
    present: [([None, 3, None],), ([1, 2, None, 4],)],
    priced: [
        ([{"price": 1.0, "discount": None}, {"price": 2.0, "discount": 3.0}],),
        ([{"price": 2.0, "discount": 0.5}] * 3 + [{"price": 1.0, "discount": None}],),
    ],
    noted: [([Quote(1.0, None), Quote(2.0, "x")],), ([Quote(2.0, "y"), Quote(2.0, "x"), Quote(0.0, None)],)],
    optional: [([None, [1, 2]],), ([[1], None, []],)],
    numbered: [(3,), (1,), (40,)],
    filled: [([None, 3, 1],), ([3, None, 4, None],)],
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_one_program_serves_all_of_them(function, executor):
    compiled = relay(function, executor=executor)
    for args in CASES[function]:
        want, have = copy.deepcopy(args), copy.deepcopy(args)
        assert repr((compiled(*have), have)) == repr((function(*want), want))
    assert compiled.cache_info().misses == 1


def squares(rows):
    total = 0.0
    for x in [sum(r) for r in rows]:
        total += x * x
    for y in [x if x > 1 else None for row in rows for x in row]:
        if y is not None:
            total += 3 * y
    return total


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_through_them(executor):
    assert relay(grad(squares), executor=executor)([[1.0, 2.0], [], [0.5]]) == [[6.0, 9.0], [], [1.0]]
    # By them: as structure, which says which entries are floats.
    assert relay(grad(lambda xs: sum([x for x in xs if x is not None])), executor=executor)([1.0, None]) == [1.0, None]


def test_gradients_by_many_of_them_are_refused():
    with pytest.raises(GradError, match=r"bool \| float \| int") as found:
        grad(relay(lambda xs: numbers(xs)[0]))(MANY * 200)
    assert found.value.origin is not None
