"""Reverse mode on a typed graph, in place: forward applications, then adjoint applications in reverse order.

    y = f(a, b)   =>   (da, db) += f.vjp(a, b, y, dy)

Straight-line code needs no tape and no closure: the backpropagator is inlined at once, and its captured variables are
the forward values. Control operations get a forward and a backward version (`ad.reverse.control`). They are made when
their cotangent is known, so that a forward version saves exactly what the backward one reads; until then the original
operation is in its place.

Source: van Merriënboer et al., "Automatic differentiation in ML: where we are and where we should be going" (NeurIPS
2018); B. Pearlmutter and J. Siskind, "Reverse-mode AD in a functional framework" (TOPLAS 2008), closure converted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...abstract.dims import run_time_symbols
from ...abstract.types import Array, Scalar, Struct, tangent, type_symbols
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node, applied, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Effects, RecursiveComponents, all_graphs, as_call, emit_like, inner_graphs, lookup
from ...prims.ops.data_functions import Functions
from ...prims.rules.broadcast import unbroadcast
from ...utils.errors import CompileError, GradError
from ..common.activity import Act, Activity
from ..common.cotangents import Cotangent, Guarded, Record, add, as_flag, coerce, guarded, materialise, split
from .guards import GuardedRegions
from .restore import Restoring


class Expansion:
    """The state that one expansion shares: activities, and the forward and backward versions of graphs (see
    `ad.reverse.split`).

    Args:
        functions: sums of cotangents of trees.
        trees: whether a tree may be active.

    Attributes:
        recursion: which graphs run themselves.
        versions: the recursive functions that are being differentiated (`ad.reverse.recursion.Versions`).
        owners: how many recursions have been.
    """

    def __init__(self, functions: Functions, trees: bool = True):
        self.functions = functions
        self.recursion = RecursiveComponents()
        self.activity = Activity(self.recursion, trees)
        self.effects = Effects()
        self.splits: dict = {}
        self.recursive: dict[Graph, bool] = {}
        self.versions: Any = None
        self.owners = 0

    def entered(self, graph: Graph) -> Graph:
        """A graph to be differentiated in place: for a recursive function, a call of it."""
        return graph if self.recursion.component(graph) is None else as_call(graph)

    def recurs(self, node: Apply) -> bool:
        """Whether an application runs a function that calls itself."""
        return any(self.holds_recursion(g) for g in inner_graphs(node))

    def holds_recursion(self, graph: Graph) -> bool:
        """Whether a graph, or one that it runs, runs itself."""
        if graph not in self.recursive:
            component = self.recursion.component
            self.recursive[graph] = any(component(g) is not None for g in all_graphs(graph))
        return self.recursive[graph]

    def threads(self, node: Apply) -> bool:
        """Whether an application runs a version of a function that is being differentiated."""
        return self.versions is not None and self.versions.runs(node)


class Adjoint:
    """The adjoint of one graph, inlined into a builder.

    Args:
        context: shared memos.
        builder: where forward and adjoint applications go.
        graph: what is differentiated: typed, closed, transforms expanded.
        args: nodes of the builder's graph, for the parameters.
        acts: which of them are differentiated by.

    Attributes:
        guards: the cotangents that only some paths have.
        restoring: the arrays that are restored on the way back; None where the adjoint is not that of a loop or a branch.
        faint: nodes whose cotangents all come through a recursion or a list, which may use them or not (see `careful_rule`).
    """

    def __init__(self, context: Expansion, builder: Builder, graph: Graph, args: Sequence[Node], acts: tuple[Act, ...]):
        self.context = context
        self.builder = builder
        self.graph = graph
        self.acts = context.activity.of_nodes(graph, acts)
        self.env: dict[Node, Node] = dict(zip(graph.params, args, strict=True))
        self.cts: dict[Node, Cotangent] = {}
        self.guards = GuardedRegions(self)
        self.faint: set[Node] = set()
        self.receives_faint = False
        self.inserted: dict[Node, list[Apply]] = {}
        self.restoring: Restoring | None = None

    def forward(self) -> Node:
        """Emit the graph's own applications; effects keep their order. Returns the output."""
        for node in self.graph.nodes:
            self.refuse_updates(node)
            args = tuple(lookup(self.env, a) for a in node.args)
            if self.restoring is not None:
                self.restoring.look(self.builder, node, args)
            self.env[node] = emit_like(self.builder, node, args)
        return lookup(self.env, self.graph.output)

    def refuse_updates(self, node: Apply) -> None:
        """Refuse updates of a model inside of what is differentiated.

        Raises:
            GradError: the application is one.
        """
        if "update" in self.context.effects.of_node(node):
            raise GradError(
                "a model is updated inside of a differentiated function, and a derivative cannot look through that; "
                "compute the gradients first, then update",
                node.origin,
            )

    def backward(self, dout: Cotangent) -> list[Cotangent]:
        """Emit the adjoint applications; returns the cotangents of the parameters."""
        self.accumulate(self.graph.output, dout, "the result")
        for node in reversed(self.graph.nodes):
            if applies(node, "mark"):
                self.mark(node)
                continue
            ct, region = self.guards.cotangent(node)
            if ct is None:
                continue
            self.builder.origin = node.origin.derive("vjp", name_of(node))
            try:
                with self.guards.inside(region):
                    self.adjoint(node, ct)
            except CompileError as error:
                raise error.at(node.origin) from None
        self.guards.close_all()
        self.flush()
        return [self.cts.get(p) for p in self.graph.params]

    def mark(self, node: Apply) -> None:
        """The counterpart of a debugger's mark in the backward pass: it is given what has arrived so far at what the mark shows.

        n = mark(x)  =>  mark(n, dx)
        """
        if node.attrs["backward"]:
            return
        place = node.attrs["place"]
        moved = tuple(i for i, a in enumerate(node.args) if _is_plain(a) and self.acts.get(a))
        if not moved and place.kind == "line":
            return
        self.builder.origin = node.origin.derive("vjp")
        self.guards.settle([node.args[i] for i in moved])
        cts = [self.cts.get(node.args[i]) for i in moved]
        values = [materialise(self.builder, ct, tangent(node.args[i].type)) for ct, i in zip(cts, moved, strict=True)]
        attrs = {"place": place, "backward": True, "moved": moved, "given": tuple(ct is not None for ct in cts)}
        self.builder.emit(node.fn, (self.env[node], *values), attrs)

    def accumulate(self, node: Node, ct: Cotangent, what: str) -> None:
        """Add to the cotangent of a node of the differentiated graph, unless it is not active."""
        if ct is None or isinstance(node, Constant) or node not in self.acts:
            return
        ct = self.fitted(ct, self.acts[node], node.type, what)
        if ct is not None:
            cts = self.cts if self.guards.current is None else self.guards.current.cts
            have = cts.get(node)
            if not self.receives_faint:
                self.faint.discard(node)
            elif have is None:
                self.faint.add(node)
            cts[node] = add(self.builder, self.context.functions, have, ct)

    def fitted(self, ct: Cotangent, act: Act, type, what: str) -> Cotangent:
        """A cotangent without the parts that are not active, each leaf of exactly its tangent type."""
        if ct is None or act is False:
            return None
        if isinstance(type, Struct):
            assert isinstance(ct, tuple) and isinstance(act, tuple)
            parts = tuple(self.fitted(c, a, e, what) for c, a, e in zip(ct, act, type.elems, strict=True))
            return parts if any(p is not None for p in parts) else None
        if isinstance(ct, Record):
            return ct
        if isinstance(ct, Guarded):
            return guarded(coerce(self.builder, ct.node, tangent(type), what), ct.live, ct.lax)
        assert isinstance(ct, Node)
        return coerce(self.builder, ct, tangent(type), what)

    def adjoint(self, node: Apply, ct: Cotangent) -> None:
        """Emit the adjoint of one application whose cotangent is `ct`."""
        name = "call" if isinstance(node.fn, Graph) else node.fn.name
        self.receives_faint = node in self.faint or name.startswith("list_") or self.context.recurs(node)
        special = RULES.get(name)
        try:
            if special is not None:
                special(self, node, ct)
            else:
                self.rule(node, ct)
        finally:
            self.receives_faint = False

    def rule(self, node: Apply, ct: Cotangent) -> None:
        """The adjoint by the primitive's own rule, unless a pattern larger than the primitive is recognised.

        Raises:
            GradError: the primitive has no rule.
        """
        if (exponent := logistic(node)) is not None:
            out = Var(self.builder, self.env[node])
            dout = Var(self.builder, materialise(self.builder, ct, tangent(node.type)))
            self.accumulate(exponent, (-dout * (out * (1.0 - out))).node, "div")
            return
        prim = node.fn
        if prim.vjp_rule is None:
            raise GradError(
                f"'{prim.name}' has no derivative; wrap it in relay.stop_gradient(...) if none is meant", node.origin
            )
        args = [Var(self.builder, lookup(self.env, a)) for a in node.args]
        out = Var(self.builder, self.env[node])
        dout = Var(self.builder, materialise(self.builder, ct, tangent(node.type)))
        if prim.kind == "elementwise" and (self.receives_faint or self.graph.flags.get("masked")):
            results = self.careful_rule(node, args, out, dout)
        else:
            results = prim.vjp_rule(*args, out, dout, **node.attrs)
        for arg, result in zip(node.args, results, strict=True):
            if result is not None:
                result = result.node if isinstance(result, Var) else self.builder.constant(result, tangent(arg.type))
                self.accumulate(arg, result, prim.name)

    def careful_rule(self, node: Apply, args: Sequence[Var], out: Var, dout: Var) -> Sequence:
        """What a rule gives, but zero where the cotangent is zero and the rule makes no finite number of it.

        Zero may be what a path gives that does not use the value: of an example that does not take it, under a mask (`ad.batch`),
        of a recursion, or of a list of which an entry is not read. A `Guarded` cotangent would know; these come without a guard.
        """
        rule = node.fn.vjp_rule
        if not self.guards.is_dangerous_forward(node):
            return rule(*args, out, dout, **node.attrs)
        pointwise = getattr(rule, "pointwise", None)
        results = (pointwise or rule)(*args, out, dout, **node.attrs)
        where, isfinite, ne = (REGISTRY[name] for name in ("where", "isfinite", "ne"))

        def careful(result, arg: Node):
            if not isinstance(result, Var) or result.shape != dout.shape or not result.type.is_float:
                return result
            sure = REGISTRY["logical_or"](isfinite(result), ne(dout, dout.const(0)))
            result = where(sure, result, result.const(0))
            return result if pointwise is None else unbroadcast(result, arg.type)

        return [careful(r, a) for r, a in zip(results, node.args, strict=True)]

    @contextmanager
    def before(self, node: Node):
        """Applications emitted in this context go before the forward version of `node`."""
        graph = self.builder.graph
        outside, graph.nodes = graph.nodes, []
        origin, self.builder.origin = self.builder.origin, node.origin
        try:
            yield
        finally:
            self.inserted.setdefault(self.env[node], []).extend(graph.nodes)
            graph.nodes = outside
            self.builder.origin = origin

    def replace(self, node: Node, prim_name: str, args: tuple[Node, ...], attrs: dict) -> None:
        """Turn the operation that stood in place of the forward version of `node` into a structure operation."""
        new = self.env[node]
        assert isinstance(new, Apply)
        new.fn, new.args, new.attrs = REGISTRY[prim_name], args, attrs

    def flush(self) -> None:
        """Move what was inserted to its place."""
        if self.inserted:
            nodes = self.builder.graph.nodes
            self.builder.graph.nodes = [n for node in nodes for n in (*self.inserted.pop(node, ()), node)]
            self.inserted = {}


def name_of(node: Apply) -> str:
    """What an application does, for messages: a primitive or a function."""
    return node.fn.name


def _is_plain(node: Node) -> bool:
    """Whether it is a number or an array whose size is known when the program starts."""
    return isinstance(node.type, Scalar | Array) and not run_time_symbols(type_symbols(node.type))


def logistic(node: Apply) -> Node | None:
    """y = 1 / (1 + exp(z))  =>  dz += -dy y (1 - y): z, if this is what a node computes.

    The backward pass needs only the result. Where exp(z) is infinite, the general rules would compute 0 * infinity = NaN.
    """
    if applied(node) != "div" or not _is_one(node.args[0]) or applied(node.args[1]) != "add":
        return None
    below = node.args[1]
    for one, power in (below.args, below.args[::-1]):
        if _is_one(one) and applied(power) == "exp" and node.type == below.type == power.type == power.args[0].type:
            return power.args[0]
    return None


def _is_one(node: Node) -> bool:
    return isinstance(node, Constant) and np.ndim(node.value) == 0 and bool(node.value == 1)


def _where(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    """y = a if c else b, of one condition  =>  da = dy where c, db = dy where not c, each guarded."""
    condition = node.args[0]
    if condition.type.shape != ():
        adjoint.rule(node, ct)
        return
    b = adjoint.builder
    given = [Var(b, lookup(adjoint.env, a)) for a in node.args]
    dout = Var(b, materialise(b, ct, tangent(node.type)))
    live = as_flag(b, given[0].node)
    sides = [live, b.emit(REGISTRY["logical_not"], (live,))]
    if isinstance(ct, Guarded):
        sides = [b.emit(REGISTRY["logical_and"], (ct.live, side)) for side in sides]
    results = node.fn.vjp_rule(*given, None, dout)[1:]
    for arg, result, flag in zip(node.args[1:], results, sides, strict=True):
        if result is not None:
            adjoint.accumulate(arg, guarded(result.node, flag), "where")


# Structures and tapes.


def _get_item(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    """y = s[i]  =>  ds = (None, ..., dy, ..., None)"""
    (struct,) = node.args
    parts: list[Cotangent] = [None] * len(struct.type.elems)
    parts[node.attrs["index"]] = ct
    adjoint.accumulate(struct, tuple(parts), "get_item")


def _make_struct(adjoint: Adjoint, node: Apply, ct: tuple) -> None:
    """s = (x0, ..., xn)  =>  dxi = ds[i]"""
    for arg, part in zip(node.args, ct, strict=True):
        adjoint.accumulate(arg, part, "make_struct")


def _tape_push(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    """u = push(t, e)  =>  (dt, de) = pop(du)"""
    both = adjoint.builder.emit(REGISTRY["tape_pop"], (ct,))
    parts = split(adjoint.builder, both)
    assert isinstance(parts, tuple)  # an entry has a cotangent
    for arg, part in zip(node.args, parts, strict=True):
        adjoint.accumulate(arg, part, "tape_push")


def _tape_pop(adjoint: Adjoint, node: Apply, ct: tuple) -> None:
    """(u, e) = pop(t)  =>  dt = push(du, de)"""
    (tape,) = node.args
    entry = materialise(adjoint.builder, ct[1], tangent(tape.type.elem))
    below = materialise(adjoint.builder, ct[0], tangent(tape.type))
    adjoint.accumulate(tape, adjoint.builder.emit(REGISTRY["tape_push"], (below, entry)), "tape_pop")


# (adjoint, node, cotangent); the form of the cotangent follows from the type of the node.
RULES: dict[str, Callable[[Adjoint, Apply, Any], None]] = {
    "where": _where,
    "get_item": _get_item,
    "make_struct": _make_struct,
    "tape_push": _tape_push,
    "tape_pop": _tape_pop,
}
"""Adjoints on symbolic cotangents, (adjoint, node, cotangent), instead of vjp rules; `ad.reverse.control` adds to them."""
