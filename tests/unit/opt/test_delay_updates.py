"""Updates wait for the readers of what they change: orders of applications, and copies that are not made."""

import itertools

import numpy as np

from myia_relay import grad, relay
from myia_relay.abstract.types import FLOAT, INT, Array, List
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import Effects
from myia_relay.opt.loops.delay_updates import DelayUpdates, ordered, taken_late
from tests.slopes import slopes
from tests.unit.backend.native_util import P, emit, graph

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


def test_effects_stay_in_order():
    """Though the first of them has to wait."""

    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        said = {"parts": ((0, None, ""),), "end": "\n"}
        emit(new, "print", P.reduce_sum(new, axes=(0, 1)), **said)
        emit(new, "print", i, **said)
        return new, P.reduce_sum(x, axes=(0, 1))

    assert order([X, V, INT], body)[:5] == ["reduce_sum", "dynamic_update", "reduce_sum", "print", "print"]
    g = graph([X, V, INT], body)
    assert [n.args[0].type.dtype for n in ordered(g, Effects()) if applied(n) == "print"] == ["float64", "int64"]


def test_operations_on_lists_stay_in_order():
    """A list is still looked at where it is changed before it is read: it would be copied."""

    def body(x, v, i, xs):
        new = P.dynamic_update(x, v, i, axis=0)
        entry = P.list_get(xs, P.argmax(P.dynamic_index(new, i, axis=0), axis=0))
        return new, entry, P.list_push(xs, 1.0), P.reduce_sum(x, axes=(0, 1))

    got = order([X, V, INT, List(FLOAT)], body)
    assert got.index("reduce_sum") < got.index("dynamic_update") < got.index("list_get") < got.index("list_push")


def test_a_reader_that_something_else_has_to_wait_for():
    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        other = P.dynamic_update(new, P.neg(v), i, axis=0)
        return other, P.reduce_sum(P.sin(x), axes=(0, 1)), P.reduce_sum(new, axes=(0, 1))

    assert order([X, V, INT], body)[:6] == [
        "neg",
        "sin",
        "reduce_sum",
        "dynamic_update",
        "reduce_sum",
        "dynamic_update",
    ]


def test_an_update_of_what_another_one_has_made():
    """A reader of an array is no reader of its updated version."""

    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        other = P.dynamic_update(new, v, P.add(i, i), axis=0)
        return P.reduce_sum(other, axes=(0, 1)), P.reduce_sum(x, axes=(0, 1))

    assert order([X, V, INT], body)[:4] == ["add", "reduce_sum", "dynamic_update", "dynamic_update"]


def test_what_is_computed_on_the_fly_reads_what_it_is_made_of():
    """Where its value is used: for every way there, each place is looked at once."""

    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        y = x
        for _ in range(40):
            y = P.add(P.neg(y), P.sin(y))
        return new, P.reduce_sum(y, axes=(0, 1))

    assert order([X, V, INT], body)[-3:] == ["reduce_sum", "dynamic_update", "make_struct"]


def test_updates_of_tuples_and_of_what_is_not_read_later_stay():
    def body(x, v, i):
        early = P.reduce_sum(x, axes=(0, 1))
        new = P.dynamic_update(x, v, i, axis=0)
        return early, P.reduce_sum(v, axes=(0,)), new

    assert order([X, V, INT], body)[:3] == ["reduce_sum", "dynamic_update", "reduce_sum"]


def test_what_an_update_reads_is_no_reader_of_the_value_that_it_writes():
    def body(x, v, i):
        new = P.dynamic_update(x, v, i, axis=0)
        return new, P.sin(v), P.reduce_sum(v, axes=(0,))

    assert order([X, V, INT], body)[:3] == ["dynamic_update", "sin", "reduce_sum"]


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


def test_an_entry_is_taken_out_of_a_list_after_reads_of_the_list():
    def body(rows, i, k, v):
        row = P.list_get(rows, i)
        rest = P.list_set(rows, i, emit(rows, "list_new", elem=FLOAT))
        new = P.add(v, P.list_get(P.list_get(rows, k), i))
        return P.list_set(rest, i, P.list_set(row, k, new))

    g = graph([List(List(FLOAT)), INT, INT, FLOAT], body)
    wanted = ["list_get", "list_new", "list_get", "list_set", "list_get", "add", "list_set", "list_set"]
    assert [applied(n) for n in taken_late(list(g.nodes))] == wanted
