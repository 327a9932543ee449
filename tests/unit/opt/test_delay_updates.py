"""Updates wait for the readers of what they change: orders of applications, and copies that are not made."""

import itertools

import numpy as np

from myia_relay import grad, relay
from myia_relay.abstract.types import INT, Array
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import Effects
from myia_relay.opt.loops.delay_updates import DelayUpdates, ordered
from tests.slopes import slopes
from tests.unit.backend.native_util import P, graph

X, V = Array("float64", (3, 4)), Array("float64", (4,))


def order(types, body):
    g = graph(types, body)
    nodes = ordered(g, Effects())
    seen = set(g.params)
    for node in nodes:
        assert all(a in seen or not hasattr(a, "fn") for a in node.args)
        seen.add(node)
    assert sorted(map(id, nodes)) == sorted(map(id, g.nodes))
    return [applied(n) for n in nodes]


def test_an_update_waits_for_readers():
    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        row = P.dynamic_index(x, i, axis=0)
        kept = P.reduce_sum(P.sin(row), axes=(0,))
        return new, kept

    assert order([X, V, INT], body)[:4] == ["dynamic_index", "sin", "reduce_sum", "dynamic_update"]


def test_an_update_waits_no_longer_than_for_its_readers():
    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        return new, P.reduce_sum(x, axes=(0, 1)), P.sin(v)

    assert order([X, V, INT], body)[:3] == ["reduce_sum", "dynamic_update", "sin"]


def test_what_is_made_of_the_new_array_is_no_reader_to_wait_for():
    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        return P.add(x, new), P.reduce_sum(x, axes=(0, 1))

    assert order([X, V, INT], body)[:3] == ["reduce_sum", "dynamic_update", "add"]


def test_updates_that_wait_for_each_other():
    def body(x, v, i):
        first, second = P.dynamic_update(x, v, i, axis=0), P.dynamic_update(x, P.neg(v), i, axis=0)
        return P.add(first, x), P.mul(second, x), P.add(first, second)

    assert len(order([X, V, INT], body)) == 7


def test_a_graph_in_order_is_the_same_graph():
    g = graph([X, V, INT], lambda x, v, i: P.dynamic_update(x, P.add(P.dynamic_index(x, i, axis=0), v), i, axis=0))
    assert DelayUpdates()(g) is g


def states(w):
    state, cell = w[0].copy(), w[1].copy()
    total = 0.0
    for t in range(5):
        for i in range(3):
            cell[i] = cell[i] * w[2, i] + np.sin(state[i])
            state[i] = np.tanh(cell[i] + w[3, i] * t)
        total += np.sum(state * cell)
    return total


def test_a_state_of_rows_is_changed_in_place_though_its_old_rows_are_kept():
    w = np.linspace(-0.5, 0.9, 4 * 3 * 5).reshape(4, 3, 5)
    g = relay(grad(states))
    np.testing.assert_allclose(g(w), slopes(states, w, 1e-6), atol=1e-7)
    lines = str(g.tir(w)).splitlines()
    loops = [k for k, line in enumerate(lines) if "for i_1 in range" in line]
    assert len(loops) == 2
    for k in loops:
        depth = len(lines[k]) - len(lines[k].lstrip())
        body = itertools.takewhile(lambda line, depth=depth: len(line) - len(line.lstrip()) > depth, lines[k + 1 :])
        assert not any("memmove" in line for line in body)
