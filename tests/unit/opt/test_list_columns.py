"""Lists of rows and records that are only read are read from their columns; the others are made."""

from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import grad, relay
from tests.programs.cases import EXECUTORS
from tests.programs.compare import differences


class Node(NamedTuple):
    value: float
    next: list


ROWS = [[1.0, 2.0, 3.0], [], [4.0], [5.0, 6.0]]
PAIRS = [(1, 0.5), (2, -1.5), (3, 2.5)]
ADJACENT = [[(1, 0.5), (2, 1.5)], [(0, 2.0)], []]
NODES = [Node(0.5, [1, 2]), Node(1.5, []), Node(2.5, [0])]
TABLE = [{"name": None, "xs": [1, 2]}, {"name": None, "xs": []}, {"name": None, "xs": [3]}]


def sums(rows):
    out = []
    for row in rows:
        total = 0.0
        for x in row:
            total += x
        out.append(total)
    return out


def by_index(rows, i):
    return rows[i][-1] + rows[-1][0] if len(rows[i]) > 0 else 0.5


def unpacked(pairs):
    n, total = 0, 0.0
    for a, b in pairs:
        n += a
        total += a * b
    return n, total


def with_while(adjacent):
    u, steps, cost = 0, 0, 0.0
    while len(adjacent[u]) > 0 and steps < 5:
        u, weight = adjacent[u][steps % len(adjacent[u])]
        cost += weight
        steps += 1
    return u, steps, cost


def in_branches(rows, which):
    if which > 0:
        total = 0.0
        for row in rows:
            if len(row) > 1:
                total += row[1]
        return total
    return rows[0][0]


def with_helper(adjacent):
    def degree(u):
        total = 0.0
        for _, weight in adjacent[u]:
            total += weight
        return total

    return [degree(u) for u in range(len(adjacent))]


def fields(nodes):
    return [sum(nodes[k].value for k in node.next) + node.value for node in nodes]


def from_dicts(table):
    return [x for entry in table for x in entry["xs"]], [entry["name"] for entry in table]


def whole_rows(rows):
    return [row[1:] for row in rows], [np.array(row) for row in [rows[0], rows[2]]], rows[3] + rows[0], rows[2] * 2


def whole_pairs(pairs):
    return pairs[0], [p for p in pairs if p[0] != 2]


READ = {
    "sums": (sums, ROWS),
    "by index": (by_index, ROWS, 3),
    "by index of an empty row": (by_index, ROWS, 1),
    "unpacked": (unpacked, PAIRS),
    "with while": (with_while, ADJACENT),
    "in branches": (in_branches, ROWS, 1),
    "with helper": (with_helper, ADJACENT),
    "fields": (fields, NODES),
    "from dicts": (from_dicts, TABLE),
    "whole rows": (whole_rows, ROWS),
    "whole pairs": (whole_pairs, PAIRS),
}


def returned(rows):
    return rows[0], len(rows)


def changed(rows):
    rows[0][1] = 7.0
    return sum(rows[0])


def carried(rows):
    longest = rows[0]
    for row in rows:
        if len(row) > len(longest):
            longest = row
    return len(longest)


def recursive(adjacent, u, depth):
    if depth == 0:
        return 1
    return sum(recursive(adjacent, v, depth - 1) for v, w in adjacent[u])


def kept_in_a_list(rows):
    return [row for row in rows if len(row) > 1]


MADE = {
    "returned": (returned, ROWS),
    "changed": (changed, ROWS),
    "carried": (carried, ROWS),
    "recursive": (recursive, ADJACENT, 0, 3),
    "kept in a list": (kept_in_a_list, ROWS),
}


def copied(args):
    return [[row.copy() if isinstance(row, list) else row for row in a] if isinstance(a, list) else a for a in args]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("case", [*READ, *MADE])
def test_values(case, executor):
    f, *args = (READ | MADE)[case]
    assert not differences(relay(f, executor=executor)(*copied(args)), f(*copied(args)))


@pytest.mark.parametrize("case", [*READ, *MADE])
def test_which_lists_are_made(case):
    f, *args = (READ | MADE)[case]
    text = str(relay(f).ir(*copied(args)))
    assert ("list_of_rows" in text or "list_of_records" in text) == (case in MADE)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients(executor):
    def loss(rows, pairs):
        total = 0.0
        for row in rows:
            for x in row:
                total += x**3
        for n, b in pairs:
            total += n * b**2
        return total

    found = relay(grad(loss, argnums=(0, 1)), executor=executor)(ROWS, PAIRS)
    assert found[0] == [[3 * x**2 for x in row] for row in ROWS]
    assert [b for _, b in found[1]] == [2 * n * b for n, b in PAIRS]
