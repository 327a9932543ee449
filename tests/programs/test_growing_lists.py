"""Lists that grow: from one recursive call to the next, and in the rows of a list. They become run-time lists, once."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay, vmap
from myia_relay.infer.engine.engine import Engine

EXECUTORS = ["interpreter", "python", "native"]


def sums(xs, i, chosen, target):
    if i == len(xs):
        total = 0
        for c in chosen:
            total += c
        return 1 if total == target else 0
    return sums(xs, i + 1, chosen, target) + sums(xs, i + 1, chosen + [xs[i]], target)


def subset_sums(xs, target):
    return sums(xs, 0, [], target)


def packed(xs, i, left, chosen):
    if i == len(xs):
        return chosen
    without = packed(xs, i + 1, left, chosen)
    if xs[i] <= left:
        taken = packed(xs, i + 1, left - xs[i], chosen + [xs[i]])
        if sum(taken) > sum(without):
            return taken
    return without


def knapsack(xs, room):
    return packed(xs, 0, room, [])


def extended(chosen, xs):
    if len(chosen) == len(xs):
        return [chosen]
    out = []
    for x in xs:
        if x not in chosen:
            for p in extended(chosen + [x], xs):
                out.append(p)
    return out


def permutations(xs):
    return extended([], xs)


def queens(n, columns):
    if len(columns) == n:
        return 1
    count = 0
    for c in range(n):
        free = True
        for r in range(len(columns)):
            d = len(columns) - r
            if columns[r] == c or columns[r] == c - d or columns[r] == c + d:
                free = False
        if free:
            count += queens(n, columns + [c])
    return count


def all_queens(n):
    return queens(n, [])


def pairs(n, seen):
    if n == 0:
        return seen
    return pairs(n - 1, seen + [(n, n * 0.5)])


def all_pairs(n):
    return pairs(n, [])


RECURSIONS = [
    (subset_sums, ([3, 1, 4, 1, 5, 9, 2], 9)),
    (knapsack, ([3, 1, 4, 1, 5, 9, 2], 11)),
    (permutations, ([3, 1, 4],)),
    (all_queens, (5,)),
    (all_pairs, (6,)),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("f", "args"), RECURSIONS, ids=lambda p: getattr(p, "__name__", ""))
def test_recursions(monkeypatch, executor, f, args):
    count, apply = 0, Engine.apply

    async def counted(self, frame, node):
        nonlocal count
        count += 1
        return await apply(self, frame, node)

    monkeypatch.setattr(Engine, "apply", counted)
    assert relay(executor=executor)(f)(*args) == f(*args)
    assert count < 1000  # whatever the lengths


def depth(x, terms, n):
    if n == 0:
        total = 0.0
        for t in terms:
            total += t * t
        return total
    return depth(x * 0.5, terms + [x * n], n - 1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_their_derivatives(executor):
    f = relay(executor=executor)(lambda x, n: depth(x, [], n))
    slope = 2 * sum((k * 0.5 ** (6 - k)) ** 2 for k in range(1, 7)) * 1.5
    np.testing.assert_allclose(grad(f)(1.5, 6), slope, rtol=1e-12)
    np.testing.assert_allclose(grad(grad(f))(1.5, 6), slope / 1.5, rtol=1e-12)
    xs = np.array([1.5, -0.5])
    np.testing.assert_allclose(vmap(lambda x: f(x, 6))(xs), [depth(x, [], 6) for x in xs], rtol=1e-12)


def sized(x, shape, n):
    return np.sum(np.reshape(x, shape)) if n == 0 else sized(x, shape + [1], n - 1)


def layered(x, weights, n):
    return sum(np.sum(w) for w in weights) if n == 0 else layered(x, weights + [np.ones((n, 2)) * x], n - 1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_lists_whose_entries_must_be_known_stay_what_they_are(executor):
    x = np.arange(4.0)
    assert relay(executor=executor)(lambda x: sized(x, [4], 2))(x) == 6.0
    assert relay(executor=executor)(lambda x: layered(x, [], 3))(2.0) == layered(2.0, [], 3)


def appended_rows(n):
    table = []
    for _ in range(n):
        table.append([0.0, 0.0, 0.0])
    for i in range(n):
        for j in range(3):
            table[i][j] = table[i][j] + i * j
    return table


def uneven_rows(n):
    table = []
    for _ in range(n):
        table.append([0, 0, 0])
    table.append([1, 2])
    for i in range(n):
        for j in range(i % 3):
            table[i][j] += i * j
    return table


def one_more(n):
    table = [[1, 2], [3, 4]]
    if n > 3:
        table.append([7])
    table[n % 2][0] += 1
    return table


def triangle(n):
    rows = [[1]]
    for _ in range(n):
        last = rows[-1]
        row = [1]
        for k in range(len(last) - 1):
            row.append(last[k] + last[k + 1])
        row.append(1)
        rows.append(row)
    return rows


def trie(codes, starts):
    child = [[-1] * 26]
    ends = [0]
    for k in range(len(starts) - 1):
        node = 0
        for p in range(starts[k], starts[k + 1]):
            c = codes[p]
            if child[node][c] < 0:
                child[node][c] = len(child)
                child.append([-1] * 26)
                ends.append(0)
            node = child[node][c]
        ends[node] += 1
    return len(child), ends


CODES = [(7 * k * k + 3) % 26 for k in range(108)]
ROWS = [
    (appended_rows, (4,)),
    (uneven_rows, (5,)),
    (one_more, (4,)),
    (one_more, (2,)),
    (triangle, (6,)),
    (trie, (CODES, list(range(0, 109, 6)))),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("f", "args"), ROWS, ids=lambda p: getattr(p, "__name__", ""))
def test_rows_of_several_lengths(executor, f, args):
    got, want = relay(executor=executor)(f)(*args), f(*args)
    assert got == want
    assert repr(got) == repr(want)  # ints are ints


@pytest.mark.parametrize("executor", EXECUTORS)
def test_derivatives_through_rows_that_change_their_form(executor):
    def f(x, n):
        rows = []
        for i in range(n):
            rows.append([x, x * i])
        rows.append([x * x])
        total = 0.0
        for row in rows:
            for v in row:
                total += v * v
        return total

    compiled = relay(executor=executor)(f)
    assert compiled(1.5, 3) == f(1.5, 3)
    np.testing.assert_allclose(grad(compiled)(1.5, 3), (f(1.5 + 1e-6, 3) - f(1.5 - 1e-6, 3)) / 2e-6, rtol=1e-6)
