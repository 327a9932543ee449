"""Lists of rows, pairs, records and dicts as arguments: one program serves every length, and CPython's answers come back."""

from __future__ import annotations

import copy
import math
import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import TypeError_, grad, relay
from tests.programs.cases import EXECUTORS


class Quote(NamedTuple):
    price: float
    quantity: int


@dataclass(frozen=True)
class Body:
    x: float
    mass: float


def shortest(grid, start, goal):
    rows, columns = len(grid), len(grid[0])
    far = [[-1] * columns for _ in range(rows)]
    far[start[0]][start[1]] = 0
    queue, head = [start], 0
    while head < len(queue):
        r, c = queue[head]
        head += 1
        if (r, c) == goal:
            return far[r][c]
        for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if 0 <= r + i < rows and 0 <= c + j < columns and grid[r + i][c + j] == 0 and far[r + i][c + j] < 0:
                far[r + i][c + j] = far[r][c] + 1
                queue.append((r + i, c + j))
    return -1


def dijkstra(adjacent, source):
    far, done = [math.inf] * len(adjacent), [False] * len(adjacent)
    far[source] = 0.0
    for _ in range(len(adjacent)):
        near, u = math.inf, -1
        for v in range(len(adjacent)):
            if not done[v] and far[v] < near:
                near, u = far[v], v
        if u < 0:
            break
        done[u] = True
        for v, w in adjacent[u]:
            if far[u] + w < far[v]:
                far[v] = far[u] + w
    return far


def spanning(n, edges):
    parent = list(range(n))

    def root(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    total = 0.0
    for w, u, v in sorted(edges):
        a, b = root(u), root(v)
        if a != b:
            parent[a] = b
            total += w
    return total


def knapsack(items, capacity):
    best = [0] * (capacity + 1)
    for weight, value in items:
        for c in range(capacity, weight - 1, -1):
            best[c] = max(best[c], best[c - weight] + value)
    return best[capacity]


def product(a, b):
    out = [[0.0] * len(b[0]) for _ in range(len(a))]
    for i in range(len(a)):
        for j in range(len(b[0])):
            for k in range(len(b)):
                out[i][j] += a[i][k] * b[k][j]
    return out


def merged(spans):
    spans = sorted(spans)
    out = [spans[0]]
    for a, b in spans[1:]:
        if a <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], b))
        else:
            out.append((a, b))
    return out


def worth(book):
    return sum(q.price * q.quantity for q in book)


def worth_of_dicts(book):
    total = 0.0
    for entry in book:
        if entry["open"]:
            total += entry["price"] * entry["quantity"]
    return total


def centre(bodies):
    return sum(b.x * b.mass for b in bodies) / sum(b.mass for b in bodies)


def means(features, neighbours):
    out = np.zeros_like(features)
    for i in range(len(neighbours)):
        for j in neighbours[i]:
            out[i] += features[j] / len(neighbours[i])
    return out


def transposed(rows):
    return [[row[i] for row in rows] for i in range(len(rows[0]))]


def deepest(rows):
    return max(len(pairs) for row in rows for pairs in row)


def last(pairs):
    return pairs[-1], pairs[len(pairs) // 2 :], (pairs[0] in pairs[1:]), len(pairs)


def by_second(pairs):
    return sorted(pairs, key=lambda p: (p[1], -p[0]), reverse=True)


def of(seed, make, least, most):
    draw = random.Random(seed)
    return [make(draw) for _ in range(draw.randrange(least, most))]


def rows_of(seed, width):
    return of(seed, lambda d: [d.random() for _ in range(width)], width, width + 1)


CALLS = {
    "shortest": (
        shortest,
        lambda s: (of(s, lambda d: [int(d.random() < 0.2) for _ in range(9)], 6, 9), (0, 0), (5, 8)),
    ),
    "dijkstra": (
        dijkstra,
        lambda s: (of(s, lambda d: [(d.randrange(5), d.random()) for _ in range(d.randrange(1, 4))], 5, 9), 0),
    ),
    "spanning": (
        spanning,
        lambda s: (6, of(s, lambda d: (d.choice((0.5, 1.5)), d.randrange(6), d.randrange(6)), 5, 20)),
    ),
    "knapsack": (knapsack, lambda s: (of(s, lambda d: (d.randrange(1, 9), d.randrange(20)), 3, 12), 30)),
    "product": (product, lambda s: (rows_of(s, 3 + s), rows_of(s + 1, 3 + s))),
    "merged": (merged, lambda s: (of(s, lambda d: (d.randrange(30), d.randrange(30, 40)), 2, 9),)),
    "worth": (worth, lambda s: (of(s, lambda d: Quote(d.random(), d.randrange(9)), 1, 9),)),
    "worth_of_dicts": (
        worth_of_dicts,
        lambda s: (of(s, lambda d: {"price": d.random(), "quantity": d.randrange(9), "open": d.random() < 0.5}, 1, 9),),
    ),
    "centre": (centre, lambda s: (of(s, lambda d: Body(d.random(), d.random()), 1, 9),)),
    "means": (
        means,
        lambda s: (np.ones((9, 2)), of(s, lambda d: [d.randrange(9) for _ in range(d.randrange(4))], 3, 9)),
    ),
    "transposed": (transposed, lambda s: (rows_of(s, 2 + s),)),
    "deepest": (deepest, lambda s: (of(s, lambda d: [[(1, True)] * d.randrange(1, 4)] * d.randrange(1, 3), 1, 4),)),
    "last": (last, lambda s: (of(s, lambda d: (d.randrange(3), d.random()), 2, 9),)),
    "by_second": (by_second, lambda s: (of(s, lambda d: (d.random(), d.randrange(3)), 2, 9),)),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sampled(3)
def test_one_program_serves_all_lengths(name, executor):
    function, make = CALLS[name]
    compiled = relay(function, executor=executor)
    for seed in range(3):
        args = make(seed)
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        got, want = compiled(*mine), function(*theirs)
        if isinstance(want, np.ndarray | float):
            np.testing.assert_allclose(got, want, rtol=1e-14)
        else:
            assert got == want
            assert type(got) is type(want)
        assert str(mine) == str(theirs)
    assert compiled.cache_info().misses == 1


def count_up(rows):
    for i in range(len(rows)):
        for j in range(len(rows[i])):
            rows[i][j] += 1


def add_above(rows):
    for i in range(1, len(rows)):
        row, above = rows[i], rows[i - 1]
        for j in range(len(above)):
            row[j] += above[j] + rows[0][0] + sum(rows[i])


def add_within(boxes):
    for i in range(1, len(boxes)):
        boxes[i]["rows"][1][0] += boxes[i - 1]["rows"][1][0] + sum(boxes[i]["rows"][1])


def grow(rows):
    rows[0].append(9)
    rows.append([7])


def settle(books):
    for i in range(len(books)):
        books[i]["cash"] += 1.5


def replace_pairs(pairs):
    for i in range(len(pairs)):
        a, b = pairs[i]
        pairs[i] = (b, a)
    pairs.append((0, 0))


CHANGES = {
    "count_up": (count_up, lambda n: [[k] * k for k in range(n)]),
    "add_above": (add_above, lambda n: [[k] * (k + 2) for k in range(n)]),
    "add_within": (add_within, lambda n: [{"rows": [[k], [k, k]]} for k in range(n)]),
    "grow": (grow, lambda n: [[k] for k in range(n)]),
    "settle": (settle, lambda n: [{"cash": float(k), "age": k} for k in range(n)]),
    "replace_pairs": (replace_pairs, lambda n: [(k, k + 1) for k in range(n)]),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_made_in_the_callers_objects(name, executor):
    function, make = CHANGES[name]
    compiled = relay(function, executor=executor)
    for n in (3, 6):
        mine, theirs = make(n), make(n)
        my_rows, their_rows = list(mine), list(theirs)
        assert compiled(mine) is function(theirs)
        assert (mine, my_rows) == (theirs, their_rows)
        if not isinstance(mine[0], tuple):
            assert all(a is b for a, b in zip(my_rows, mine, strict=False))
    assert compiled.cache_info().misses == 1


def exchange(rows):
    rows[0], rows[1] = rows[1], rows[0]


def put_in_order(rows):
    rows.sort()


def take_first(rows):
    rows.pop(0)


@pytest.mark.parametrize("move", [exchange, put_in_order, take_first])
def test_rows_of_the_caller_that_move_are_refused(move):
    with pytest.raises(TypeError_, match="which of them is where"):
        relay(move)([[2, 1], [1]])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_by_the_numbers_in_lists(executor):
    pairs = relay(grad(lambda ps: sum(a * b for a, b in ps)), executor=executor)
    assert pairs([(1.0, 2.0), (3.0, 4.0)]) == [(2.0, 1.0), (4.0, 3.0)]
    assert pairs([(5.0, 6.0)]) == [(6.0, 5.0)]

    def squares(rows):
        total = 0.0
        for row in rows:
            for v in row:
                total += v**2
        return total

    assert relay(grad(squares), executor=executor)([[1.0, 2.0], [], [3.0]]) == [[2.0, 4.0], [], [6.0]]
    quotes = relay(grad(worth), executor=executor)([Quote(1.0, 3), Quote(2.0, 4)])
    assert [q.price for q in quotes] == [3.0, 4.0]


@pytest.mark.parametrize(
    "entries",
    [
        [(1, 2.0), (1, 2)],
        [[1], [2.0]],
        [[1], (1,)],
        [{"a": 1}, {"b": 1}],
        [(1, "x"), (2, "y")],
        [[], []],
        [(1,), (2, 3)],
        [None, None],
        [[None], [None, None]],
    ],
    ids=str,
)
def test_lists_of_mixed_entries_stay_structure(entries):
    @relay
    def shown(xs):
        return xs[0], xs[1], len(xs)

    assert shown(entries) == (entries[0], entries[1], 2)


def test_what_needs_a_known_length_gets_it():
    @relay
    def columns(pairs):
        a, b = zip(*pairs, strict=True)
        return sum(a) - sum(b)

    assert columns([(1, 2), (3, 4), (5, 7)]) == -4
    assert columns([(1, 2), (3, 4)]) == -2


def turned(rows):
    out = []
    for column in zip(*rows):
        out.append(list(column)[::-1])
    return out, [max(c) - len(c) for c in zip(*rows)], [x for c in zip(*rows) for x in c], [2 in c for c in zip(*rows)]


def apart(pairs):
    a, b = zip(*pairs)
    left = [x for x, _ in pairs]
    return (
        a[0],
        b[-1],
        sorted(b),
        list(a[1:]),
        len(b),
        2 in a,
        isinstance(a, tuple),
        a == left,
        not a,
        sum(x * y for x, y in zip(a, b)),
    )


def weights(rows):
    total = 0.0
    for k, column in enumerate(zip(*rows)):
        for x in column:
            total += (k + 1) * x * x
    return total


@pytest.mark.parametrize("executor", EXECUTORS)
def test_columns_of_rows(executor):
    for function, calls in (
        (turned, ([[1, 2], [3, 4]], [[1, 2, 3]], [[5, 2, 1], [3], [4, 5]], [[], [1]])),
        (apart, ([(1, 2.0), (3, 4.0)], [(2, 0.5)] * 5)),
    ):
        compiled = relay(function, executor=executor)
        for rows in calls:
            assert repr(compiled(rows)) == repr(function(rows))
        assert compiled.cache_info().misses == 1
    assert relay(grad(weights), executor=executor)([[1.0, 2.0], [3.0, 4.0]]) == [[2.0, 8.0], [6.0, 16.0]]

    @relay(executor=executor)
    def of_some(pairs, least):
        a, b = zip(*[p for p in pairs if p[0] > least])
        return sum(a) + sum(b)

    assert of_some([(1, 2), (3, 4)], 1) == 7
    with pytest.raises(ValueError):
        of_some([(1, 2), (3, 4)], 5)


def wrapped(flags):
    out = []
    for (flag,) in flags:
        out.append((not flag,))
    return out, [(i, [f]) for i, f in enumerate(flags)], {"a": [{"flag": f[0]} for f in flags]}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_structures_of_one_bool(executor):
    compiled = relay(wrapped, executor=executor)
    for flags in ([(True,), (False,)], [(False,)] * 40 + [(True,)] * 30):
        assert compiled(flags) == wrapped(flags)


def joined(parent, edges):
    for a, b in edges:
        parent[a] = b
    return len(parent) + len(edges)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (1, 2), (2, 3), (3, 0)]], ids=len)
def test_lists_of_numbers_and_of_pairs_have_lengths_of_their_own(edges, executor):
    f = relay(joined, executor=executor)
    for parent in ([0, 1, 2, 3], [0, 1, 2, 3, 4]):
        mine, pythons = parent.copy(), parent.copy()
        assert f(mine, edges) == joined(pythons, edges) and mine == pythons


# --- calls that follow others -----------------------------------------------------------------------------------------


def scaled(pairs, n, xs):
    total = 0.0
    for a, b in pairs:
        total += a * b * n
    for x in xs:
        total += x * FACTOR
    return total


FACTOR = 2.0
PAIRS, NUMBERS = [(1, 0.5), (2, 1.5), (3, -1.0)], [1.0, 2.0]
FOLLOWING = {
    "the same types": (PAIRS, 2, NUMBERS),
    "another length": (PAIRS[:1], 3, NUMBERS * 9),
    "floats for ints": ([(1.5, 2.5)], 2, NUMBERS),
    "a float for an int": (PAIRS, 2.5, NUMBERS),
    "no entries": ([], 2, NUMBERS),
    "one entry of another type": (PAIRS, 2, [1.0, 2]),
}


def test_each_call_takes_its_own_arguments_whatever_came_before(monkeypatch):
    f = relay(scaled)
    for args in FOLLOWING.values():
        f(*args)
    for name, args in FOLLOWING.items():
        for before in FOLLOWING.values():
            f(*before)
            f(*before)
            found, want = f(*args), scaled(*args)
            assert type(found) is type(want) and found == want, name
    calls = f.cache_info()
    f(PAIRS, 2, NUMBERS)
    f(PAIRS[:2], 2, NUMBERS[:1])
    assert f.cache_info().hits == calls.hits + 2 and f.cache_info().misses == calls.misses
    for big in (([(2**63, 1.0)], 2, NUMBERS), (PAIRS, 2**63, NUMBERS), (PAIRS, 2, [2**63])):
        with pytest.raises(OverflowError):
            f(*big)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert f(PAIRS, 2, NUMBERS) == scaled(PAIRS, 2, NUMBERS)


def of_numpy(xs, records):
    out = [x * 2 for x in xs]
    out.append(xs[-1])
    return (
        out,
        xs[0] + xs[1],
        [float(x) for x in xs],
        max(xs),
        sorted(xs),
        np.array(xs) * 2,
        xs,
        records[-1],
        [r.mass for r in records],
    )


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_numbers_of_numpy_stay_what_they_are(dtype, executor):
    compiled = relay(of_numpy, executor=executor)
    for numbers in ([3, 2], [1, 7, 5, 4]):
        xs = [dtype(x) for x in numbers]
        records = [Body(0.5, x) for x in xs]
        assert repr(compiled(xs, records)) == repr(of_numpy(xs, records))
    assert compiled.cache_info().misses == 1
    squares = relay(grad(lambda xs: float(sum([x * x for x in xs]))), executor=executor)
    if dtype is np.float64:
        assert squares([dtype(3), dtype(2)]) == [6.0, 4.0]


def sorted_by_size(rows):
    small, large, out = [], [], []
    for row in rows:
        if len(row) > 2:
            large.append(row)
            out.append(row)
        if len(row) <= 3:
            small.append(row)
            out.append(row)
    return small, large, out


def test_rows_are_collected_in_several_branches(executor):
    f = relay(sorted_by_size, executor=executor)
    for count in (20, 3):
        rows = [[float(i) for i in range(k % 5)] for k in range(count)]
        assert f(rows) == sorted_by_size(rows)
    arrays = [np.arange(k % 5) for k in range(20)]
    assert repr(f(arrays)) == repr(sorted_by_size(arrays))
