"""Functions that are differentiated in a special way: with a vjp rule that the user wrote, or checkpointed.

    y = custom(x; f, rule)  =>  dx = rule(x, y, dy)             y = checkpoint(x; f)  =>  dx = f.vjp(x, dy), f run again

Both keep their nodes until everything is differentiated, so that they apply at every order; then `without_custom` turns
them into calls.

Source: T. Chen et al., "Training deep nets with sublinear memory cost" (2016) for checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..abstract.types import Data, has_tangent, tangent
from ..ir.build import Builder
from ..ir.node import Apply, Graph, Node
from ..ir.prim import REGISTRY
from ..ir.rewrite import Effects, Rewriter, all_graphs, emit_like, inline, lookup
from ..utils.errors import TypeError_
from .batch.batch import RULES as BATCH_RULES
from .batch.batch import Batcher, OneByOne
from .batch.batch import full as all_batched
from .common.activity import SPECIAL, full
from .common.cotangents import Cotangent, leaf_nodes, materialise, unflatten
from .forward.control import all_leaves
from .forward.forward import float_pattern, pack, parts
from .reverse.reverse import RULES, Adjoint, Expansion

NAMES = ("custom_vjp", "checkpoint")


class _WithoutCustom(Rewriter):
    """Replaces operations that derivatives no longer need to recognise by calls."""

    acts_on = NAMES

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if getattr(node.fn, "name", None) in NAMES and not isinstance(node.fn, Graph):
            self.changed = True
            return builder.graph.apply(attrs["graph"], *args, type=node.type, origin=node.origin)
        return super().node(builder, node, args, attrs)


def without_custom(graph: Graph) -> Graph:
    """The graph with `custom_vjp` and `checkpoint` as calls of their functions."""
    names = {n.fn.name for g in all_graphs(graph) for n in g.nodes if not isinstance(n.fn, Graph)}
    return _WithoutCustom().rewrite(graph) if names & {*NAMES} else graph


class _Silent(Rewriter):
    """A graph that prints nothing, and moves no running statistics."""

    def build(self, graph: Graph) -> Graph:
        new = super().build(graph)
        dead = {n for n in new.nodes if _is_done_once(n) and n is not new.output}
        if dead and not any(a in dead for n in new.nodes for a in n.args):
            new.nodes = [n for n in new.nodes if n not in dead]
            self.changed = True
        return new


def _is_done_once(node: Apply) -> bool:
    name = getattr(node.fn, "name", "")
    return name in ("print", "mark") or name == "ref_write" and bool(node.attrs.get("state"))


def silent(graph: Graph) -> Graph:
    """A graph without its printing and its writes of state, for the second time that it runs.

    No result of a layer that trains depends on the state that it writes, so that the second run computes what the first did.
    """
    return _Silent().rewrite(graph) if {"io", "write", "mark"} & Effects().of_graph(graph) else graph


def inline_vjp(
    context: Expansion, b: Builder, args: tuple[Node, ...], graph: Graph, wrt: tuple[int, ...], aloud: bool = False
) -> Node:
    """Emit a graph and its adjoint; returns the tuple of cotangents of the arguments in `wrt`.

    Args:
        context: shared memos.
        b: where.
        args: the graph's arguments, then a cotangent for each leaf of its result that has one.
        graph: typed, closed, transforms expanded.
        wrt: which arguments' cotangents.
        aloud: whether the graph prints what it has to print.
    """
    origin, n = b.origin, len(graph.params)
    acts = tuple(full(p.type) if i in wrt else False for i, p in enumerate(graph.params))
    adjoint = Adjoint(context, b, context.entered(graph if aloud else silent(graph)), args[:n], acts)
    out = adjoint.forward()
    b.origin = origin
    douts = list(args[n:])
    if any(isinstance(d.type, Data) for d in douts):
        values = [v for v in all_leaves(b, out) if has_tangent(v.type)]
        what = "the cotangent of the result"
        douts = [
            context.functions.like(b, v, d, what) if isinstance(d.type, Data) else d for v, d in zip(values, douts)
        ]
    cts = adjoint.backward(unflatten(float_pattern(graph.output.type), iter(douts)))
    b.origin = origin.derive("vjp")
    return pack(b, [materialise(b, cts[i], tangent(args[i].type)) for i in wrt])


# Reverse mode.


def _custom_adjoint(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    b, wrt = adjoint.builder, node.attrs["wrt"]
    args = [lookup(adjoint.env, a) for a in node.args]
    douts = leaf_nodes(b, ct, float_pattern(node.type), node.type)
    result = inline(b, node.attrs["rule"], [*args, *all_leaves(b, adjoint.env[node]), *douts])
    for i, part in zip(wrt, parts(b, result, range(len(wrt))), strict=True):
        adjoint.accumulate(node.args[i], part, "custom_vjp")


def _checkpoint_adjoint(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    b, graph = adjoint.builder, node.attrs["graph"]
    args = tuple(lookup(adjoint.env, a) for a in node.args)
    wrt = tuple(i for i, a in enumerate(node.args) if a in adjoint.acts and has_tangent(a.type))
    douts = leaf_nodes(b, ct, float_pattern(node.type), node.type)
    again = Graph(f"{graph.name}.again", None, graph.origin)
    # A call that stays a call: if it were inlined, the second run would be found equal to the first, and be shared.
    again.flags["noinline"] = True
    params = [again.add_parameter(p.name, p.type, p.origin) for p in graph.params]
    params += [again.add_parameter(f"d{i}", d.type) for i, d in enumerate(douts)]
    again.output = inline_vjp(adjoint.context, Builder(again, b.origin), tuple(params), graph, wrt)
    result = b.call(again, (*args, *douts))
    for i, part in zip(wrt, parts(b, result, range(len(wrt))), strict=True):
        adjoint.accumulate(node.args[i], part, "checkpoint")


RULES.update({"custom_vjp": _custom_adjoint, "checkpoint": _checkpoint_adjoint})
SPECIAL.update(
    {
        "custom_vjp": lambda activity, node, acts: (
            full(node.type) if any(acts[i] is not False for i in node.attrs["wrt"]) else False
        ),
        "checkpoint": lambda activity, node, acts: activity.of_run(node, node.attrs["graph"], acts),
        "call_operator": lambda activity, node, acts: full(
            node.type
        ),  # an effect, but not for that without a derivative
    }
)


# Batching.


def _custom_batch(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    """Arguments that are the same for all are repeated: the adjoint of repeating sums the cotangents that the rule
    returns.

    Raises:
        TypeError_: the function can raise, and only some examples run it.
    """
    graph, rule = node.attrs["graph"], node.attrs["rule"]
    if mask is not None and Effects().of_graph(graph):
        raise TypeError_(
            "a custom_vjp function that can raise, inside of vmap, in code that only some examples run; check its "
            "arguments outside of it"
        )
    every = tuple(all_batched(a.type) for a in node.args)
    args = [p.match(b, x, a.type, f, e) for x, a, f, e in zip(args, node.args, flags, every, strict=True)]
    out = all_batched(node.type)
    more = (True,) * (len(rule.params) - len(every))
    attrs = {
        "graph": p.graph(graph, every, out)[0],
        "rule": p.graph(rule, (*every, *more), all_batched(rule.output.type))[0],
        "wrt": node.attrs["wrt"],
    }
    return b.emit(REGISTRY["custom_vjp"], args, attrs), out


def _checkpoint_batch(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    if mask is not None:
        return p.inline(b, node.attrs["graph"], args, flags, mask)
    graph, flag = p.graph(node.attrs["graph"], tuple(flags))
    return b.emit(node.fn, args, {"graph": graph}), flag


def _operator_batch(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    """An elementwise operator takes its arguments with the batch axis; any other one runs for each example.

    Raises:
        OneByOne: only some examples run it.
    """
    batched = tuple(f is not False for f in flags)
    if mask is not None:
        raise OneByOne
    if not any(batched):
        return emit_like(b, node, args), False
    out = all_batched(node.type)
    if node.attrs["op"].elementwise and not node.attrs["levels"]:
        args = [p.match(b, x, a.type, f, True) for x, a, f in zip(args, node.args, flags, strict=True)]
        return b.emit(node.fn, args, {**node.attrs, "kinds": ("array",) * len(args)}), out
    return b.emit(node.fn, args, {**node.attrs, "levels": (batched, *node.attrs["levels"])}), out


BATCH_RULES.update({"custom_vjp": _custom_batch, "checkpoint": _checkpoint_batch, "call_operator": _operator_batch})
