"""Changes of lists that machine code writes into the caller's objects: what CPython would leave, in the same objects."""

import copy
import gc
import sys
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from myia_relay import relay
from myia_relay.abstract import reading
from myia_relay.backend.native import library, writing
from tests.programs.compare import differences

EXECUTORS = ["native", "python", "interpreter"]


@dataclass(frozen=True)
class Group:
    weight: float
    members: list


class Pair(NamedTuple):
    left: list
    right: int


def fall(bodies, dt):
    for b in bodies:
        b["v"] -= dt
        if b["v"] < 1.0:
            b["hit"], b["count"], b["name"] = True, b["count"] + 1, "down"


def body(k):
    return {"name": f"body {k}", "v": float(k), "hit": False, "count": 2**40 * k, "rank": None if k % 2 else k}


def spread(rows):
    for i in range(1, len(rows)):
        for j in range(len(rows[i])):
            rows[i][j] += 0.5


def grow(rows, n):
    for i in range(len(rows)):
        if i % 3 == 0:
            rows[i].append(n)
        elif i % 3 == 1 and len(rows[i]) > 0:
            rows[i].pop()
    rows.append([n, n])


def shrink(cubes):
    for i in range(len(cubes)):
        cubes[i]["rows"][0].append(i)
        if len(cubes[i]["rows"][-1]) > 2:
            cubes[i]["rows"][-1].pop()
            cubes[i]["rows"][-1][0] = 70


def swap(pairs):
    for i in range(len(pairs)):
        a, b = pairs[i]
        pairs[i] = (b, a)
    pairs.append((0, 0))


def rename(names):
    for i in range(len(names)):
        if names[i] == "b":
            names[i] = "new"


def weigh(rows, groups):
    for i in range(len(groups)):
        for member in groups[i].members:
            rows[i][0] += groups[i].weight * member


def count(pairs):
    for left, right in pairs:
        left.append(right)


def mix(values):
    for i in range(len(values)):
        if values[i] is None:
            values[i] = 1.5


def return_it(rows):
    rows[0][0] = -1.0
    return rows, len(rows)


def in_a_dict(state, dt):
    for p in state["points"]:
        p["x"] += dt


def two(rows, totals):
    for i in range(len(rows)):
        for x in rows[i]:
            totals[i] += x
        rows[i][0] = 0.0


CASES = {
    "fall": (fall, lambda n: ([body(k) for k in range(n)], 0.5)),
    "spread": (spread, lambda n: ([[float(j) for j in range(k % 4)] for k in range(n)],)),
    "grow": (grow, lambda n: ([list(range(k % 4)) for k in range(n)], n)),
    "shrink": (shrink, lambda n: ([{"rows": [[k, j] * (j + 1) for j in range(1 + k % 3)]} for k in range(n)],)),
    "swap": (swap, lambda n: ([(k, 7 - k) for k in range(n)],)),
    "rename": (rename, lambda n: ([("a", "b", "cd")[k % 3] for k in range(n)],)),
    "weigh": (weigh, lambda n: ([[float(k)] for k in range(n)], [Group(float(k), [k * 1.5] * k) for k in range(n)])),
    "count": (count, lambda n: ([Pair([k], k) for k in range(n)],)),
    "mix": (mix, lambda n: ([None if k % 2 else float(k) for k in range(n)],)),
    "return_it": (return_it, lambda n: ([[float(k)] for k in range(n)],)),
    "in_a_dict": (in_a_dict, lambda n: ({"points": [{"x": float(k), "y": 0} for k in range(n)], "t": 0.0}, 0.5)),
    "two": (two, lambda n: ([[float(k), 2.0] for k in range(n)], [0.0] * n)),
}


def inside(value):
    """All lists and dicts in a value, in order."""
    found = [value] if isinstance(value, list | dict) else []
    parts = value.values() if isinstance(value, dict) else vars(value).values() if isinstance(value, Group) else value
    for part in parts:
        if isinstance(part, list | dict | tuple | Group):
            found += inside(part)
    return found


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", CASES)
def test_the_callers_objects_are_changed(name, executor):
    function, make = CASES[name]
    compiled = relay(function, executor=executor)
    for n in (6, 5, 9, 6):  # once by way of treedefs, once by way of keys, then directly
        mine = make(n)
        theirs = copy.deepcopy(mine)
        before = inside(mine), inside(theirs)
        got, want = compiled(*mine), function(*theirs)
        assert not differences(list(mine), list(theirs)) and not differences(got, want)
        assert [[b is o for o in inside(mine)] for b in before[0]] == [
            [b is o for o in inside(theirs)] for b in before[1]
        ]
        if isinstance(got, tuple):
            assert got[0] is mine[0]
    assert compiled.cache_info().misses == 1


def step(rows):
    for row in rows:
        row["x"] += 1.0


@pytest.mark.parametrize("executor", EXECUTORS)
def test_objects_that_others_hold_too(executor):
    f = relay(step, executor=executor)
    for _ in range(4):
        rows = [{"x": 1.0}, {"x": 2.0}]
        kept, number = rows[1], rows[1]["x"]
        f(rows)
        assert rows == [{"x": 2.0}, {"x": 3.0}]
        assert rows[1] is kept and number == 2.0
    for shared in ([kept, kept], [rows[0], kept, rows[0]]):
        with pytest.raises(ValueError, match="more than once"):
            f(shared)
    assert kept == {"x": 3.0}


def add(rows, other):
    for i in range(len(rows)):
        rows[i][0] += other[i][0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_row_of_two_arguments(executor):
    f = relay(add, executor=executor)
    for _ in range(4):
        rows, other = [[1.0], [2.0]], [[3.0], [4.0]]
        f(rows, other)
        assert rows == [[4.0], [6.0]]
    for second in (rows, [other[0], rows[1]], [*rows]):
        with pytest.raises(ValueError, match="more than once"):
            f(rows, second)
    g = relay(weigh, executor=executor)
    for _ in range(4):
        g(rows, [Group(0.0, [1.0]), Group(0.0, other[0])])
    with pytest.raises(ValueError, match="more than once"):
        g(rows, [Group(0.0, [1.0]), Group(0.0, rows[1])])
    assert rows == [[4.0], [6.0]]


def divide(rows, by):
    for i in range(len(rows)):
        rows[i][0] = 1 / by[i]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_call_that_raises_leaves_what_python_leaves(executor):
    f = relay(divide, executor=executor)
    for by in ([1.0, 2.0], [4.0, 2.0], [2.0, 1.0], [2.0, 0.0]):
        rows = [[0.0], [0.0]]
        if 0.0 in by:
            with pytest.raises(ZeroDivisionError):
                f(rows, by)
            assert rows == [[0.5], [0.0]]
        else:
            f(rows, by)
            assert rows == [[1 / by[0]], [1 / by[1]]]


def test_each_object_is_held_once():
    if not (library.supported() and reading.supported()):
        pytest.skip("objects are not written by machine code on this system")
    f = relay(fall)
    rows = [body(k) for k in range(20)]
    f(rows, 0.5)
    assert writing.in_use()
    for _ in range(200):
        f(rows, 0.5)
    gc.collect()
    shared = [sys.getrefcount(x) for x in (True, False, None)]
    objects = len(gc.get_objects())
    for _ in range(500):
        f(rows, 0.5)
    gc.collect()
    assert len(gc.get_objects()) - objects < 2000  # of 10,000 that were changed
    assert all(abs(a - sys.getrefcount(x)) < 1000 for a, x in zip(shared, (True, False, None), strict=True))
    others = [body(k) for k in range(20)]
    assert [sys.getrefcount(row) for row in rows] == [sys.getrefcount(row) for row in others]
    assert [sys.getrefcount(row["v"]) for row in rows] == [sys.getrefcount(row["v"]) for row in others]
