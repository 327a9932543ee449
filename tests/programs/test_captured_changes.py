"""Inner functions that change variables of the functions around them, as in backtracking and searches of graphs."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, relay
from tests.programs.cases import Cases, agree

case = Cases()
GRAPH = [[1, 2], [3], [3], [4], []]


@case((4,), (0,))
def captured_list(n):
    xs = []

    def visit(k):
        xs.append(k)
        if k > 0:
            visit(k - 1)

    visit(n)
    return xs


@case((GRAPH,))
def order_of_a_search(graph):
    seen = [False] * len(graph)
    order = []

    def visit(v):
        seen[v] = True
        for w in graph[v]:
            if not seen[w]:
                visit(w)
        order.append(v)

    for v in range(len(graph)):
        if not seen[v]:
            visit(v)
    order.reverse()
    return order


@case((5,), (3,))
def queens(n):
    board = [-1] * n
    solutions = []

    def is_safe(row, col):
        for r in range(row):
            if board[r] == col or abs(board[r] - col) == row - r:
                return False
        return True

    def place(row):
        if row == n:
            solutions.append(board.copy())
            return
        for col in range(n):
            if is_safe(row, col):
                board[row] = col
                place(row + 1)
                board[row] = -1

    place(0)
    return solutions


@case(([1, 2, 3],))
def permutations(xs):
    a, found = xs.copy(), []

    def swap(i, j):
        a[i], a[j] = a[j], a[i]

    def go(k):
        if k == len(a):
            found.append(a[:])
            return
        for i in range(k, len(a)):
            swap(k, i)
            go(k + 1)
            swap(k, i)

    go(0)
    return found


@case((30,), (1,))
def memoised(n):
    memo = [-1] * (n + 1)

    def f(k):
        if k < 2:
            return k
        if memo[k] < 0:
            memo[k] = f(k - 1) + f(k - 2)
        return memo[k]

    return f(n)


@case((np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1]]),))
def largest_island(grid):
    n, m = grid.shape
    seen = np.zeros((n, m), dtype=bool)

    def flood(i, j):
        if i < 0 or j < 0 or i >= n or j >= m or seen[i, j] or grid[i, j] == 0:
            return 0
        seen[i, j] = True
        return 1 + flood(i + 1, j) + flood(i - 1, j) + flood(i, j + 1) + flood(i, j - 1)

    best = 0
    for i in range(n):
        for j in range(m):
            best = max(best, flood(i, j))
    return best


@case((4,))
def two_functions_deep(n):
    out = []

    def outer(k):
        def inner(j):
            out.append(j * k)

        for j in range(k):
            inner(j)

    for k in range(n):
        outer(k)
    return out


@case((3,))
def through_one_that_does_not_use_it(n):
    out = []

    def add(k):
        out.append(k)

    def both(k):
        add(k)
        add(-k)

    both(n)
    return out


def fills(xs):
    def put(i):
        xs[i] = i

    for i in range(len(xs)):
        put(i)


@case((4,))
def in_a_function_that_is_called(n):
    xs = [0] * n
    fills(xs)
    return xs


@case((2,))
def of_the_same_name(n):
    xs = [n]

    def change():
        xs.append(1)

    def other(xs):
        return [*xs, 5]

    change()
    return other([7]), xs


@pytest.mark.sampled(7)
@case.each
def test_inner_functions_change_variables(function, args, executor):
    agree(function, args, executor)


def test_a_parameter_that_an_inner_function_changes():
    xs = [5, 5, 5]
    relay(fills)(xs)
    assert xs == [0, 1, 2]


def by_a_lambda(n):
    xs = [n]
    f = lambda k: xs.append(k)  # noqa: E731
    f(n)
    return xs


def by_a_value(n):
    xs = [n]

    def f(k):
        xs.append(k)
        return k

    return list(map(f, [1, 2])), xs


def bound_later(n):
    def f(k):
        xs.append(k)

    xs = [n]
    f(n)
    return xs


@pytest.mark.parametrize("function", [by_a_lambda, by_a_value, bound_later])
def test_what_stays_refused(function):
    with pytest.raises(CompileError):
        relay(function)(3)
