"""The verifier finds what passes can break, and names the pass; rewriting keeps its promises."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import FLOAT, INT, Array, Struct, Tape, tuple_of
from myia_relay.ir.build import Builder, Var
from myia_relay.ir.node import Constant, Graph
from myia_relay.ir.prim import REGISTRY
from myia_relay.ir.rewrite import Effects, Rewriter, count_nodes, drop_dead, inline
from myia_relay.ir.verify import verify
from myia_relay.utils.errors import InternalError
from myia_relay.utils.source import Loc, Origin
from tests.typed_graphs import apply, build, call, cond, for_, run, staged, vag, vec, while_


def looping(x, n):
    y = for_((0, n, 1), lambda i, a, x: staged(a.builder, (a * x,)), (x,), (x,))[0]
    z = while_(lambda a, x: a < x, lambda a, x: staged(a.builder, (a + 1.0,)), (y,), (x,))[0]
    return cond(z > 0.0, lambda a, b: a + b, lambda a, b: a - b, z, y)


def good() -> Graph:
    return build(looping, FLOAT, INT)


def node(g: Graph, name: str):
    return next(n for n in g.nodes if n.fn.name == name)


def broken(change, message: str, make=good, **options):
    g = make()
    verify(g, "before")
    change(g)
    with pytest.raises(InternalError, match=message) as info:
        verify(g, "the pass", **options)
    assert "the pass" in str(info.value) and g.name in str(info.value)


def test_a_good_graph_passes():
    g = good()
    assert verify(g, "test") is g


def test_untyped():
    broken(lambda g: setattr(node(g, "gt"), "type", None), "has no type")
    broken(lambda g: setattr(g.params[0], "type", None), "parameter x has no type")
    broken(lambda g: setattr(g, "output", Constant(1)), "the output has no type")


def test_wrong_types():
    broken(lambda g: setattr(node(g, "gt"), "type", FLOAT), "has type float where its relation says bool")
    broken(lambda g: setattr(node(g, "gt"), "args", node(g, "gt").args[:1] + (Constant(np.ones(3), vec()),)), "gt")


def test_not_closed():
    broken(lambda g: setattr(node(g, "gt"), "args", (good().params[0], Constant(0.0, FLOAT))), "not closed")
    broken(lambda g: setattr(node(g, "gt"), "args", (node(good(), "get_item"), Constant(0.0, FLOAT))), "another graph")
    broken(lambda g: g.nodes.reverse(), "defined later")
    broken(lambda g: g.nodes.append(g.nodes[-1]), "listed twice")
    broken(lambda g: g.nodes.append(good().nodes[-1]), "not an application of this graph")


def test_interfaces_of_control():
    def attr(name, key, value):
        return lambda g: node(g, name).attrs.__setitem__(key, value)

    broken(
        attr("cond", "then", build(lambda a: a, FLOAT)), r"the branch f takes \(float\) and is given \(float, float\)"
    )
    broken(attr("cond", "orelse", build(lambda a, b: a > b, FLOAT, FLOAT)), "returns bool where float is needed")
    broken(
        attr("for_loop", "body", build(lambda i, a, x: a, INT, FLOAT, FLOAT)),
        r"the body f returns float where \(float\)",
    )
    broken(attr("for_loop", "carried", 2), "the body body returns")
    broken(attr("while_loop", "cond", build(lambda a, x: a, FLOAT, FLOAT)), "the condition is a float")
    broken(
        lambda g: setattr(node(g, "cond"), "args", (g.params[0], *node(g, "cond").args[1:])), "the condition is a float"
    )
    broken(
        lambda g: setattr(node(g, "for_loop"), "args", (g.params[0], *node(g, "for_loop").args[1:])), "the range is of"
    )


def test_inner_graphs_are_verified():
    def change(g):
        then = node(g, "cond").attrs["then"]
        then.nodes[0].args = (then.params[0], Constant(1, INT))

    g = good()
    change(g)
    with pytest.raises(InternalError, match="in then: add"):
        verify(g, "the pass")


def test_calls_and_attributes():
    inner = build(lambda x: x * 2.0, FLOAT, name="inner")
    make = lambda: build(lambda x: call(inner, x), FLOAT)  # noqa: E731
    broken(lambda g: setattr(g.nodes[0], "args", (Constant(1, INT),)), "the callee inner takes", make)
    broken(lambda g: setattr(g.nodes[0], "fn", "sin"), "neither a primitive nor a graph", make)
    broken(lambda g: node(g, "gt").attrs.__setitem__("axis", 1), "unknown attribute axis")
    broken(lambda g: node(g, "for_loop").attrs.pop("carried"), "lacks the attribute carried")


def test_transforms_are_gone_where_they_must_be():
    broken(lambda g: None, "was not expanded", lambda: build(lambda x: vag(lambda x: x, x)[0], FLOAT), transforms=False)


def test_vmap_interfaces():
    inner = build(lambda x: x * 2.0, FLOAT)
    make = lambda: build(lambda x: apply("vmap", x, graph=inner, batched=(True,), size=3), vec(3))  # noqa: E731
    broken(lambda g: g.nodes[0].attrs.__setitem__("size", 4), "where batching needs", make)
    broken(lambda g: g.nodes[0].attrs.__setitem__("batched", ()), "0 flags for 1", make)


# Rewriting.


def test_rewriting_nothing_is_the_same_graph():
    g = good()
    assert Rewriter().rewrite(g) is g


def test_a_rewriter_changes_only_what_it_changes():
    class Double(Rewriter):
        def node(self, builder, node, args, attrs):
            if getattr(node.fn, "name", "") == "add":
                self.changed = True
                return builder.emit(REGISTRY["mul"], args)
            return super().node(builder, node, args, attrs)

    g = good()
    text = [n.fn.name for n in node(g, "cond").attrs["then"].nodes]
    new = verify(Double().rewrite(g), "double")
    assert new is not g and [n.fn.name for n in node(g, "cond").attrs["then"].nodes] == text
    assert node(new, "for_loop").attrs["body"] is node(g, "for_loop").attrs["body"]  # unchanged: shared
    assert node(new, "cond").attrs["then"].nodes[0].fn.name == "mul"


def test_inlining_remembers_both_places():
    here, there = (Origin(Loc("f.py", line, 0, line, 1)) for line in (1, 2))
    callee = build(lambda x: x * 2.0, FLOAT)
    callee.nodes[0].origin = there
    g = Graph("g")
    x = g.add_parameter("x", FLOAT)
    g.output = inline(Builder(g), callee, [x], here)
    assert [loc.line for loc in g.nodes[0].origin.call_stack()] == [2, 1]


def test_effects_and_dead_code():
    def quiet(x):
        cond(x > 0.0, lambda x: x, lambda x: x * 2.0, x)
        return x

    g = build(quiet, FLOAT)
    assert drop_dead(g) == 2 and count_nodes(g) == 0
    loud = Graph("loud")
    b = Builder(loud)
    x = Var(b, loud.add_parameter("x", FLOAT))
    apply("check", x > 1.0, exception=ValueError, parts=())
    x * 3.0
    loud.output = x.node
    assert Effects().of_graph(loud) == {"raise"}
    assert drop_dead(loud) == 1 and [n.fn.name for n in loud.nodes] == ["gt", "check"]


def test_types_print_in_reports():
    assert str(Tape(FLOAT)) == "tape<float>" and str(tuple_of(FLOAT, INT)) == "(float, int)"
    assert isinstance(Array("float32", (3,)), Array) and isinstance(tuple_of(), Struct)
    assert run(good(), [2.0, 3]) == run(Rewriter().rewrite(good()), [2.0, 3])
