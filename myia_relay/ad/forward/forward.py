"""Forward mode on a typed graph: each application is followed by its tangent.

    y = f(a, b)   =>   dy = f.jvp(a, b, y, (da, db))

Tangents are symbolic like cotangents (`ad.common.cotangents`): None for zero, a node, or for a structure a tuple of the
tangents of its parts. What does not depend on the input therefore costs nothing. Graphs that run conditionally,
repeatedly or from several places get a version that takes and returns tangents together with the primal values. Which
tangents are not zero is known when the version is made; around a loop it is a least fixpoint. Nothing is stored: memory
is at most twice the program's, time at most about three times.

Control flow is in `ad.forward.control`. The transforms inside a differentiated graph are expanded before, so
perturbations of different orders are different values and cannot be confused.

Source: A. Griewank and A. Walther, Evaluating Derivatives (2nd ed., 2008), chapter 3; as a source transformation with
structured control, Elsman et al., "Combinatory adjoints and differentiation" (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...abstract.types import Array, Scalar, Struct, Tape, Type, tangent, tuple_of
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY
from ...ir.rewrite import Effects, RecursiveComponents, drop_dead, emit_like
from ...prims.rules.broadcast import broadcast_to
from ...utils.errors import CompileError, GradError, InternalError
from ..common.activity import Act, full
from ..common.cotangents import (
    Cotangent,
    Pattern,
    coerce,
    has_tangent,
    leaf_nodes,
    leaf_types,
    materialise,
    pattern,
    split,
    unflatten,
    union,
)


def canonical(t: Any) -> Any:  # of a tangent a tangent, of its pattern a pattern
    """None for a structure no part of which has a tangent."""
    return None if isinstance(t, tuple) and all(p is None for p in t) else t


def item(t: Any, index: int) -> Any:  # as `canonical`
    """The tangent of a part of a structure."""
    return t[index] if isinstance(t, tuple) else t


class Forward:
    """One expansion's forward versions of graphs, memoised.

    Attributes:
        graphs: by graph, patterns of the parameters' tangents and what is wanted of the result's.
        trees: whether a tree may have a tangent.
    """

    def __init__(self, effects: Effects | None = None, trees: bool = True):
        self.effects, self.trees = effects or Effects(), trees
        self.graphs: dict[tuple, tuple[Graph, Pattern]] = {}
        self.recursion = RecursiveComponents()
        self.versions: dict[Graph, list[tuple[Pattern, ...]]] = {}

    def inline(
        self, b: Builder, graph: Graph, args: Sequence[Node], tangents: Sequence[Cotangent]
    ) -> tuple[Node, Cotangent]:
        """Emit a graph and its tangent.

        Args:
            b: where.
            graph: typed, closed, transforms expanded.
            args: values of the parameters.
            tangents: their tangents.

        Returns:
            The result and its tangent.

        Raises:
            GradError: a primitive without a derivative, an update of a model.
        """
        env: dict[Node, tuple[Node, Cotangent]] = dict(
            zip(graph.params, zip(args, map(canonical, tangents), strict=True), strict=True)
        )

        def look(node: Node) -> tuple[Node, Cotangent]:
            found = env.get(node)
            if found is None:
                if not isinstance(node, Constant):
                    raise InternalError("jvp", f"{node!r} is used before it is defined")
                return node, None
            return found

        for node in graph.nodes:
            pairs = [look(a) for a in node.args]
            try:
                env[node] = self.application(b, node, tuple(p for p, _ in pairs), tuple(t for _, t in pairs))
            except CompileError as error:
                raise error.at(node.origin) from None
        return look(graph.output)

    def application(
        self, b: Builder, node: Apply, args: tuple[Node, ...], tangents: tuple[Cotangent, ...]
    ) -> tuple[Node, Cotangent]:
        """One application with its tangent.

        Raises:
            GradError: it updates a model, or its primitive has no derivative.
        """
        if "update" in self.effects.of_node(node):
            raise GradError(
                "a model is updated inside of a differentiated function, and a derivative cannot look through that; "
                "compute the derivatives first, then update"
            )
        if all(t is None for t in tangents):
            return emit_like(b, node, args), None
        fn = node.fn
        special = RULES.get("call" if isinstance(fn, Graph) else fn.name)
        if special is not None:
            b.origin = node.origin
            out, t = special(self, b, node, args, tangents)
            if out.name is None and isinstance(out, Apply):
                out.name = node.name
            return out, canonical(t)
        out = emit_like(b, node, args)
        prim = node.fn
        if not prim.differentiable or prim.effect:
            return out, None
        if prim.jvp_rule is None:
            raise GradError(f"'{prim.name}' has no derivative; wrap it in relay.stop_gradient(...) if none is meant")
        b.origin = node.origin.derive("jvp")
        staged = tuple(Var(b, t) if isinstance(t, Node) else None for t in tangents)
        result = prim.jvp_rule(*[Var(b, a) for a in args], Var(b, out), staged, **node.attrs)
        return out, None if result is None else self.fitted(b, result.node, node)

    def fitted(self, b: Builder, t: Node, node: Apply) -> Node:
        """A rule's result converted to exactly the tangent type: repeated along axes that it lacks, and of the right kind."""
        want = tangent(node.type)
        if isinstance(want, Array) and isinstance(t.type, Scalar | Array) and t.type.shape != want.shape:
            t = broadcast_to(Var(b, t), shape=want.shape).node
        return coerce(b, t, want, node.fn.name)

    def graph(
        self, graph: Graph, patterns: tuple[Pattern, ...], want: Pattern = None, called: bool = False
    ) -> tuple[Graph, Pattern]:
        """The forward version of a graph: (*params, *nodes of their tangents) -> (out, *nodes of its tangent).

        Args:
            graph: typed, closed, transforms expanded.
            patterns: which parameters have tangents.
            want: of the result's tangent, what is returned at least; zeros where nothing flows.
            called: whether it is called, and may be before it is complete; branches and bodies of loops are copied.

        Returns:
            The new graph, and which parts of its result have a tangent.
        """
        recursive = called and self.is_recursive(graph)
        if recursive:
            # The pattern of its result must be known in advance: if any float has a tangent, all have one.
            active = {p.type for p, q in zip(graph.params, patterns, strict=True) if q is not None}
            want = self.recursive_pattern(graph, graph.output.type, active)
            if want is None:
                return graph, None
        key = (graph, patterns, want, called)
        if key not in self.graphs:
            new = Graph(f"{graph.name}.jvp", None, graph.origin)
            new.flags = dict(graph.flags)
            params = [new.add_parameter(p.name, p.type, p.origin) for p in graph.params]
            tangents = self.parameters(new, graph.params, patterns)
            if recursive:
                self.graphs[key] = new, want
            b = Builder(new, graph.origin)
            out, t = self.inline(b, graph, params, tangents)
            own = union(pattern(t), want)
            b.origin = graph.origin
            nodes = leaf_nodes(b, t, own, graph.output.type)
            new.output = pack(b, [out, *nodes])
            drop_dead(new, self.effects)
            self.graphs[key] = new, own
        return self.graphs[key]

    def is_recursive(self, graph: Graph) -> bool:
        """Whether a graph runs itself, directly or not."""
        return self.recursion.component(graph) is not None

    def recursive_pattern(self, graph: Graph, t: Type, active: set[Type]) -> Pattern:
        """Every float of a recursive function's result, and the tapes that had entries with tangents or get some."""
        if isinstance(t, Struct):
            return canonical(tuple(self.recursive_pattern(graph, e, active) for e in t.elems))
        if isinstance(t, Tape):
            return True if full(t, self.trees) and (t in active or t in self.recursion.pushed(graph)) else None
        return True if full(t, self.trees) else None

    def patterns(self, graph: Graph, patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
        """Which parameters of a function have tangents, if at least these do.

        Of one that calls itself, a tape that it pushes on has one, so that all entries have; and each further version has
        more than those before, so that there are few.
        """
        if not self.is_recursive(graph):
            return patterns
        pushed = self.recursion.pushed(graph)
        tapes = (isinstance(p.type, Tape) and full(p.type, self.trees) and p.type in pushed for p in graph.params)
        patterns = tuple(True if t else p for p, t in zip(patterns, tapes, strict=True))
        known = self.versions.setdefault(graph, [])
        for other in known:
            joined = tuple(union(p, q) for p, q in zip(patterns, other, strict=True))
            if joined == other:
                return other
            patterns = joined
        known.append(patterns)
        return patterns

    @staticmethod
    def parameters(new: Graph, params: Sequence[Node], patterns: Sequence[Pattern]) -> list[Cotangent]:
        """Parameters for the tangents of `params`."""
        out = []
        for p, pat in zip(params, patterns, strict=True):
            nodes = [new.add_parameter(f"d{p.name}", t) for t in leaf_types(pat, p.type)]
            out.append(unflatten(pat, iter(nodes)))
        return out


def pack(b: Builder, nodes: Sequence[Node]) -> Node:
    """A tuple."""
    return b.emit(REGISTRY["make_struct"], nodes, {"type": tuple_of(*[n.type for n in nodes])})


def parts(b: Builder, node: Node, indices: Sequence[int]) -> list[Node]:
    """Some parts of a structure."""
    return [b.emit(REGISTRY["get_item"], (node,), {"index": i}) for i in indices]


def flat(b: Builder, tangents: Sequence[Cotangent], args: Sequence[Node], patterns: Sequence[Pattern]) -> list[Node]:
    """The nodes of the tangents of `args`, as `patterns` describe them."""
    return [n for t, a, p in zip(tangents, args, patterns, strict=True) for n in leaf_nodes(b, t, p, a.type)]


Rule = Callable[[Forward, Builder, Apply, tuple, tuple], "tuple[Node, Cotangent]"]


# Structures and tapes.


def _get_item(f: Forward, b: Builder, node: Apply, args, tangents):
    out = b.emit(node.fn, args, node.attrs)
    return out, item(tangents[0], node.attrs["index"])


def _make_struct(f: Forward, b: Builder, node: Apply, args, tangents):
    return emit_like(b, node, args), tangents


def _tape_push(f: Forward, b: Builder, node: Apply, args, tangents):
    """u = push(t, e)  =>  du = push(dt, de)

    A tape without a tangent that gets one is empty: pushing happens alike in every iteration of a loop, which starts with an
    empty tape.
    """
    out = emit_like(b, node, args)
    tape, entry = (materialise(b, t, tangent(a.type)) for t, a in zip(tangents, node.args, strict=True))
    return out, b.emit(node.fn, (tape, entry))


def _tape_pop(f: Forward, b: Builder, node: Apply, args, tangents):
    """(u, e) = pop(t)  =>  (du, de) = pop(dt)"""
    out = emit_like(b, node, args)
    both = split(b, b.emit(node.fn, (tangents[0],)))
    assert isinstance(both, tuple)  # an entry has a tangent
    below, entry = both
    return out, (below, within(entry, full(node.type.elems[1], f.trees)))


def within(t: Cotangent, act: Act) -> Cotangent:
    """The parts of a tangent that are active."""
    if act is False or t is None:
        return None
    return canonical(tuple(map(within, t, act))) if isinstance(act, tuple) and isinstance(t, tuple) else t


def _stop(f: Forward, b: Builder, node: Apply, args, tangents):
    return emit_like(b, node, args), None


RULES: dict[str, Rule] = {
    "get_item": _get_item,
    "make_struct": _make_struct,
    "tape_push": _tape_push,
    "tape_pop": _tape_pop,
    "stop_gradient": _stop,
}
"""Tangents of operations that are not ordinary primitives; `ad.forward.control` adds to them."""


def float_pattern(t) -> Pattern:
    """The pattern of a tangent of everything that can have one."""
    if isinstance(t, Struct):
        return canonical(tuple(float_pattern(e) for e in t.elems))
    return True if has_tangent(t) else None
