"""Steps of descent on tables of which little is read: to the bit what the whole update gives, in a loop and without one."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay, value_and_grad
from tests.programs.word_trees import Leaf, Node, Tree

pytestmark = pytest.mark.sampled(6)

ROWS = 100
TABLE = np.sin(np.arange(ROWS * 3.0)).reshape(ROWS, 3)
OTHER = np.cos(np.arange(ROWS * 2.0)).reshape(ROWS, 2)
IDS = np.array([[3, 99, 3, 0], [7, 7, 7, 7], [0, 1, 2, 3], [50, 3, 99, 50]])


def encode(w, t: Tree):
    match t:
        case Leaf(i):
            return w[i]
        case Node(l, r):
            return np.tanh(encode(w, l) * 0.5 + encode(w, r))


def tree_loss(w, t: Tree):
    return np.sum(encode(w, t) ** 2)


def of_trees(w, t: Tree, rate):
    for _ in range(3):
        w = w - rate * grad(tree_loss)(w, t)
    return w


def along(w, ids, i):
    return 0.0 if i == len(ids) else np.sum(w[ids[i]] ** 3) * (i + 1) + along(w, ids, i + 1)


def recursion_loss(w, ids):
    return along(w, ids, 0)


def of_recursions(w, rows, rate):
    total = 0.0
    for ids in rows:
        loss, g = value_and_grad(recursion_loss)(w, ids)
        total += loss
        w = w - g * rate
    return w, total


def one_step(w, rows, rate):
    return w - rate * grad(recursion_loss)(w, rows[0])


def two_tables_loss(w, ids):
    a, b = w

    def go(i):
        return 0.0 if i < 0 else np.sum(a[ids[i]]) * np.sum(b[ids[i]] ** 2) + go(i - 1)

    return go(len(ids) - 1)


def two_tables(w, v, rows, rate):
    for ids in rows:
        dw, dv = grad(two_tables_loss)((w, v), ids)
        w, v = w - rate * dw, v - rate * dv
    return w, v


def mutual_loss(w, ids):
    def even(i):
        return np.sum(w[ids[i]] ** 2) if i == 0 else np.sum(w[ids[i]]) * odd(i - 1)

    def odd(i):
        return np.sum(w[ids[i]] ** 3) + even(i - 1)

    return odd(3)


def mutual(w, rows, rate):
    k = 0
    while k < len(rows):
        w = w - rate * grad(mutual_loss)(w, rows[k])
        k += 1
    return w


def in_branches(w, rows, rate):
    for ids in rows:
        if ids[0] > 2:
            w = w - rate * grad(recursion_loss)(w, ids)
    return w


def nested(w, rows, rate):
    for _ in range(2):
        for ids in rows:
            w = w - rate * grad(recursion_loss)(w, ids)
        rate = rate * 0.5
    return w


def loop_loss(w, ids):
    total = 0.0
    for i in ids:
        total += np.sum(w[i] ** 2)
    return total


def of_loops(w, rows, rate):
    for ids in rows:
        w = w - rate * grad(loop_loss)(w, ids)
    return w


def with_decay(w, rows, rate):
    """The gradient is used for more: the whole table changes."""
    for ids in rows:
        g = grad(recursion_loss)(w, ids) + 0.01 * w
        w = w - rate * g
    return w


def with_norm(w, rows, rate):
    for ids in rows:
        g = grad(recursion_loss)(w, ids)
        w = w - rate * g
        rate = rate / (1.0 + np.sum(g * g))
    return w


def dense_too_loss(w, ids):
    return along(w, ids, 0) + np.sum(w * w)


def dense_too(w, rows, rate):
    for ids in rows:
        w = w - rate * grad(dense_too_loss)(w, ids)
    return w


SPARSE = [of_recursions, one_step, mutual, in_branches, nested]
OTHERS = [of_loops, with_decay, with_norm, dense_too]


def outcome(f, args, executor="native"):
    found = relay(executor=executor)(f)(*args)
    return found if isinstance(found, tuple) else (found,)


def both(f, args, monkeypatch, executor="native"):
    """With and without the pass."""
    ours = outcome(f, args, executor)
    with monkeypatch.context() as patch:
        patch.setenv("MYIA_RELAY_WITHOUT", "sparse_updates")
        return ours, outcome(f, args, executor)


def same_bits(ours, theirs):
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("f", [*SPARSE, *OTHERS])
@pytest.mark.sampled(14)
def test_the_same_to_the_bit(f, executor, monkeypatch):
    kept = TABLE.copy()
    assert same_bits(*both(f, (TABLE, IDS, 0.05), monkeypatch, executor))
    np.testing.assert_array_equal(TABLE, kept)


@pytest.mark.parametrize("f", SPARSE)
def test_only_these_are_sparse(f):
    assert "update.then(" in str(relay(f).ir(TABLE, IDS, 0.05, stage="optimized"))


@pytest.mark.parametrize("f", [with_decay, with_norm, dense_too])
def test_these_are_not(f):
    assert "update.then(" not in str(relay(f).ir(TABLE, IDS, 0.05, stage="optimized"))


def test_trees(executor, monkeypatch):
    tree = Node(Node(Leaf(2), Node(Leaf(99), Leaf(2))), Node(Leaf(0), Leaf(2)))
    assert same_bits(*both(of_trees, (TABLE, tree, 0.05), monkeypatch, executor))
    assert "update.then(" in str(relay(of_trees).ir(TABLE, tree, 0.05, stage="optimized"))


def test_several_tables(executor, monkeypatch):
    assert same_bits(*both(two_tables, (TABLE, OTHER, IDS, 0.05), monkeypatch, executor))
    text = str(relay(two_tables).ir(TABLE, OTHER, IDS, 0.05, stage="optimized"))
    assert "update.then(" in text and "update.then.2(" in text


def test_tables_of_one_shape(monkeypatch):
    assert same_bits(*both(two_tables, (TABLE, TABLE[::-1].copy(), IDS, 0.05), monkeypatch))


@pytest.mark.parametrize("rate", [0.0, -0.0, -0.05, np.inf, -np.inf, np.nan, 1e308])
@pytest.mark.sampled(11)
def test_any_rate(rate, executor, monkeypatch):
    """Where zero times the rate is not zero, or has a sign, every row changes."""
    table = TABLE.copy()
    table[::7] = -0.0
    table[5], table[7] = np.inf, np.nan
    with np.errstate(all="ignore"):
        ours, theirs = both(of_recursions, (table, IDS, rate), monkeypatch, executor)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
        known = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a)[known], np.signbit(b)[known])


def test_many_rows(monkeypatch):
    """A list that is as long as the table: all of it is updated at once."""
    rows = np.arange(ROWS * 2).reshape(2, ROWS)[:, ::-1] % ROWS
    assert same_bits(*both(of_recursions, (TABLE, rows, 0.05), monkeypatch))


def test_float32(monkeypatch):
    assert same_bits(*both(of_recursions, (TABLE.astype(np.float32), IDS, np.float32(0.05)), monkeypatch))
