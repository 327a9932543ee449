"""Gradients of recursions that read arrays: they cost what the calls add, and are right whatever else reads the arrays."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay
from tests.programs.word_trees import Leaf, Node, Tree
from tests.slopes import slopes

TABLE = np.linspace(-1.2, 1.4, 7 * 3).reshape(7, 3)
SQUARE = np.linspace(-0.9, 0.7, 9).reshape(3, 3)
IDS = np.array([3, 0, 3, 6, 1, 3, 0])


TREE = Node(Node(Leaf(2), Node(Leaf(5), Leaf(2))), Node(Leaf(0), Leaf(2)))


def rows(x):
    def go(i):
        if i >= len(IDS):
            return 0.0
        row = x[IDS[i]]
        return np.sum(row * row * row) * (i + 1) + go(i + 1)

    return go(0)


def passed_on(x):
    def go(table, i):
        return 0.0 if i == 0 else np.sum(np.sin(table[IDS[i]])) * table[i, 1] + go(table, i - 1)

    return go(x, 6) + np.sum(x * x)


def tree(x):
    def encode(t: Tree):
        match t:
            case Leaf(i):
                return x[i]
            case Node(l, r):
                return np.tanh(SQUARE @ encode(l) + encode(r))

    return np.sum(encode(TREE))


def tree_of_weights(w):
    def encode(t: Tree):
        match t:
            case Leaf(i):
                return TABLE[i]
            case Node(l, r):
                return np.tanh(w @ encode(l) + w.T @ (w @ encode(r)) + w[0])

    return np.sum(encode(TREE) * w[1])


def closure(x):
    def visit(i, then):
        return then(i) if i > 4 else then(i) * 0.5 + visit(i + 1, then)

    return visit(0, lambda k: np.sum(x[k] ** 2) * x[k, 1])


def mutual(x):
    def even(n):
        return np.sum(x[n] ** 2) if n == 0 else np.sum(x[n] * x[0]) - odd(n - 1)

    def odd(n):
        return np.sum(x[0] * x[n]) * even(n - 1)

    return even(6)


def exchanged(x):
    def go(a, b, n):
        return np.sum(a[n] * b[n] * b[n]) if n == 0 else np.sum(a[n] * b[0]) + go(b, a, n - 1) * 0.5

    return go(x, x * 2.0, 5) + go(x, x, 4)


def gathered(x):
    def go(n):
        return 0.0 if n == 0 else np.sum(x[IDS[:3]] ** 2) * n + np.sum(x[n - 1 : n + 1] * x[n]) + go(n - 1)

    return go(5)


def in_loops(x):
    def go(n):
        total = np.sum(x[n] ** 3)
        for k in range(n):
            total += go(k) * x[k, 1]
        return total

    total = 0.0
    for i in range(4):
        total += go(i) * x[0, 0]
    return total


def changed_on_the_way(x):
    def go(table, n):
        return np.sum(table[0]) if n == 0 else np.sum(table[n] ** 2) + go(table * 0.5 if n == 3 else table, n - 1)

    return go(x, 5)


def branches(x):
    def go(n):
        if n == 0:
            return 1.0
        if n % 3 == 0:
            return np.sum(x[n]) * go(n - 1)
        return go(n - 1) + (np.sum(x[n] * x[n]) if n % 2 else 2.0)

    return go(6)


def twice(x):
    def fib(n):
        return np.sum(x[n] * x[0]) if n < 2 else fib(n - 1) * np.sum(x[n]) + fib(n - 2)

    return fib(6)


def column(x):
    def go(n):
        return 0.0 if n < 0 else np.sum(x[:, n] ** 2) * x[n, n] + go(n - 1)

    return go(2)


PROGRAMS = [
    *(
        rows,
        passed_on,
        tree,
        closure,
        mutual,
        exchanged,
        gathered,
        in_loops,
        changed_on_the_way,
        branches,
        twice,
        column,
    ),
    tree_of_weights,
]


def argument(f):
    return SQUARE if f is tree_of_weights else TABLE


@pytest.mark.sampled(20)
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(executor, f):
    x = argument(f)
    kept = x.copy()
    np.testing.assert_allclose(relay(executor=executor)(grad(f))(x), slopes(f, x, 1e-6), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("f", PROGRAMS)
def test_second_gradient(f):
    x = argument(f)
    weights = np.cos(np.arange(x.size)).reshape(x.shape)

    def slope(w):
        return np.sum(grad(f)(w) * weights)

    np.testing.assert_allclose(relay(grad(slope))(x), slopes(relay(slope), x, 1e-6), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not changed_on_the_way])
def test_sums_go_on(f):
    """Zeros of the size of what is read are made outside of the recursion only."""
    assert ".backward(" in (text := str(relay(grad(f)).ir(argument(f), stage="optimized")))
    assert "%sum" in text


def two_tables(a, b, t: Tree):
    def encode(t: Tree):
        match t:
            case Leaf(i):
                return a[i] * b[i]
            case Node(l, r):
                return np.tanh(encode(l) * b[0] + a[1] * encode(r))

    return np.sum(encode(t)) + np.sum(a @ b.T)


def test_several_tables(executor):
    b = TABLE[::-1] * 0.5
    da, db = relay(executor=executor)(grad(two_tables, ("a", "b")))(TABLE, b, TREE)
    np.testing.assert_allclose(da, slopes(lambda x: two_tables(x, b, TREE), TABLE, 1e-6), atol=1e-7)
    np.testing.assert_allclose(db, slopes(lambda x: two_tables(TABLE, x, TREE), b, 1e-6), atol=1e-7)


def test_float32(executor):
    x = TABLE.astype(np.float32)
    got = relay(executor=executor)(grad(rows))(x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, slopes(rows, TABLE, 1e-6), rtol=1e-5)


def deep(x, n):
    return 0.0 if n == 0 else np.sum(np.sin(x[n % 5])) + deep(x, n - 1) * 1.0


def deep_tree(x, n):
    return np.sum(x[n % 5]) if n <= 0 else np.sum(x[n] ** 2) * deep_tree(x, n - 1) + deep_tree(x, n - 40)


def test_depth_does_not_cost_the_size_of_the_table():
    """Each call with arrays of this size among its own would be more memory than all frames may have."""
    x = np.random.default_rng(0).normal(size=(50_000, 64))
    got = relay(grad(deep, "x"))(x, 900)
    np.testing.assert_allclose(got[:5], 180 * np.cos(x[:5]))
    assert not got[5:].any()
    few = x[:100] / 10
    want = relay(executor="interpreter")(grad(deep_tree, "x"))(few, 90)
    np.testing.assert_allclose(relay(grad(deep_tree, "x"))(x / 10, 90)[:100], want)


def test_the_same_without_it(monkeypatch):
    programs = [rows, tree, exchanged]
    want = [relay(grad(f))(argument(f)) for f in programs]
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "recursive_sums")
    for f, expected in zip(programs, want, strict=True):
        np.testing.assert_allclose(relay(grad(f))(argument(f)), expected, rtol=1e-12, atol=1e-12)


def updated(x, n):
    """The caller's array, and what is read later, stay as they are."""
    if n == 0:
        return x
    y = relay.at(x)[n].add(1.0)
    return updated(y, n - 1) + x[0] if n % 2 else updated(y, n - 1)


def test_updates_that_users_write(executor):
    x = TABLE.copy()
    got = relay(executor=executor)(updated)(x, 5)
    want = TABLE.copy()
    want[1:6] += 1.0
    for _ in range(3):
        want = want + TABLE[0]
    np.testing.assert_allclose(got, want)
    np.testing.assert_array_equal(x, TABLE)


def squares_of_changes(p, d):
    """The cotangent of its array is a sum that goes on, and its first element is read besides."""
    if d <= 0:
        return 0.0
    p[0] = p[1] * p[1]
    return squares_of_changes(p, d - 1) + np.dot(p, p)


def test_sums_that_are_read_besides(executor):
    def total(x):
        return squares_of_changes(x.copy(), 3)

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(relay(grad(total), executor=executor)(x), [0.0, 108.0])
    second = relay(grad(lambda x: np.sum(grad(total)(x))), executor=executor)(x)
    np.testing.assert_allclose(second, [0.0, 150.0])
