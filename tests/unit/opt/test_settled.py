"""Graphs that a pass has left as they were are not looked at again, and what would change after all is."""

from __future__ import annotations

from myia_relay.abstract.types import FLOAT
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY
from myia_relay.ir.rewrite import Rewriter, all_graphs
from myia_relay.opt.rewrite.simplify import Simplify


class _Counting(Rewriter):
    """A pass that changes nothing and counts what it rebuilds."""

    mark = "counting"

    def __init__(self, acts_on=None):
        super().__init__()
        self.acts_on, self.built = acts_on, []

    def build(self, graph):
        self.built.append(graph)
        return super().build(graph)


def nested() -> Graph:
    """outer(y) = inner(y) + inner(-y); a flag keeps the calls."""
    inner, outer = Graph("inner"), Graph("outer")
    x = inner.add_parameter("x", FLOAT)
    inner.output = inner.apply(REGISTRY["mul"], x, x, type=FLOAT)
    inner.flags["noinline"] = True
    y = outer.add_parameter("y", FLOAT)
    a = outer.apply(inner, y, type=FLOAT)
    b = outer.apply(inner, outer.apply(REGISTRY["neg"], y, type=FLOAT), type=FLOAT)
    outer.output = outer.apply(REGISTRY["add"], a, b, type=FLOAT)
    return outer


def test_what_a_pass_leaves_is_not_rebuilt():
    graph = nested()
    first, second = _Counting(), _Counting()
    assert first.rewrite(graph) is graph and {g.name for g in first.built} == {"inner", "outer"}
    assert second.rewrite(graph) is graph and not second.built


def test_a_new_graph_around_settled_ones_is_rebuilt_alone():
    old = nested()
    _Counting().rewrite(old)
    new = Graph("around")
    z = new.add_parameter("z", FLOAT)
    new.output = new.apply(old, z, type=FLOAT)
    again = _Counting()
    assert again.rewrite(new) is new and [g.name for g in again.built] == ["around"]


def test_graphs_without_what_a_pass_acts_on_are_not_rebuilt():
    one, other = _Counting(("neg",)), _Counting(("sub",))
    graph, twin = nested(), nested()
    assert one.rewrite(graph) is graph and [g.name for g in one.built] == ["outer"]
    assert other.rewrite(twin) is twin and not other.built


def test_a_function_that_is_called_once_by_now_is_inlined():
    outer = nested()
    inner = next(g for g in all_graphs(outer) if g.name == "inner")
    inner.flags.clear()
    for _ in range(30):  # too large to be inlined where it is called twice
        inner.output = inner.apply(REGISTRY["mul"], inner.output, inner.params[0], type=FLOAT)
    simplify = Simplify()
    settled = simplify(simplify(outer))
    assert simplify(settled) is settled
    callee = next(n.fn for n in settled.nodes if isinstance(n.fn, Graph))
    middle = Graph("middle")  # calls it from one place, and was left alone while another call was there
    x = middle.add_parameter("x", FLOAT)
    middle.output = middle.apply(callee, x, type=FLOAT)
    both = Graph("both")
    y = both.add_parameter("y", FLOAT)
    middle.flags["noinline"] = True
    both.output = both.apply(
        REGISTRY["add"], both.apply(middle, y, type=FLOAT), both.apply(callee, y, type=FLOAT), type=FLOAT
    )
    kept = simplify(simplify(both))
    kept_middle = next(g for g in all_graphs(kept) if g.name == "middle")
    assert simplify in kept_middle.settled
    alone = Graph("alone")
    z = alone.add_parameter("z", FLOAT)
    alone.output = alone.apply(kept_middle, z, type=FLOAT)
    now = simplify(alone)
    assert not any(isinstance(n.fn, Graph) and n.fn.name == "inner" for g in all_graphs(now) for n in g.nodes)
