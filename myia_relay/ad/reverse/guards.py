"""Adjoints of what only some paths use.

    n = sqrt(x);  y = f(n) if c else g(x)       =>   dn, used = (f.backward(dy), True) if c else (0, False)
                                                     dx += dn / (2 n) if used else 0

Where no path was taken that uses a value, its cotangent is zero, and its derivative may be infinite: here at x = 0. The product of
both would be NaN, so the adjoint is not computed there. Which values only some paths use is known from the patterns of cotangents
(`ad.common.cotangents.Guarded`): branches of which one has no cotangent for an operand, loops without iterations, values that a
loop overwrites before anything reads them.

The adjoint applications of all values under one guard are one *region*. When it ends, those between the first and the last that
could make an infinity of zero become a branch; the others make zero of zero. What keeps entries on tapes (branches, loops, calls)
is never in a region: a tape that was filled must be emptied. It is given the guards of its results instead.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ...abstract.dims import run_time_symbols
from ...abstract.types import Array, Scalar, Struct, Type, leaves, tuple_of, type_symbols
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, applied
from ...ir.prim import REGISTRY
from ...ir.rewrite import emit_like, inner_graphs, lookup
from ..common.cotangents import Cotangent, Guarded, guarded, is_guardable, node_of, with_guards, zeros

FINITE = {
    *(
        "neg",
        "add",
        "sub",
        "mul",
        "abs",
        "sign",
        "maximum",
        "minimum",
        "where",
        "cast",
        "as_scalar",
        "floor",
        "ceil",
        "rint",
    ),
    *(
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_not",
        "logical_and",
        "logical_or",
        "logical_xor",
        "trunc",
        "floordiv",
    ),
    *("isnan", "isinf", "isfinite", "sin", "cos", "tanh", "sigmoid", "arctan", "erf", "stop_gradient"),
}
"""Elementwise primitives that make finite numbers of finite ones (but for overflow)."""
LOGARITHMS = ("log", "log2", "log10", "log1p", "div", "pow")
"""Whose results are infinite at ordinary points, where their derivatives are, too."""
PLAIN = ("get_item", "make_struct")


class Emitting(Protocol):
    """What emits an adjoint: `ad.reverse.reverse.Adjoint`."""

    context: Any
    builder: Builder
    graph: Graph
    env: dict[Node, Node]
    cts: dict[Node, Cotangent]

    def accumulate(self, node: Node, ct: Cotangent, what: str) -> None:
        """Add to the cotangent of a node."""


class GuardedRegion:
    """Adjoint applications under one guard, in order.

    Attributes:
        live: the guard.
        lax: whether it is that of a loop without iterations (`Guarded.lax`).
        nodes: the applications.
        cts: the cotangents so far, by nodes of the differentiated graph.
    """

    def __init__(self, live: Node, lax: bool):
        self.live, self.lax = live, lax
        self.nodes: list[Apply] = []
        self.cts: dict[Node, Cotangent] = {}


class GuardedRegions:
    """The regions of one adjoint.

    Args:
        adjoint: whose applications they hold.
    """

    def __init__(self, adjoint: Emitting):
        self.adjoint = adjoint
        self.regions: dict[tuple[Node, bool], GuardedRegion] = {}
        self.current: GuardedRegion | None = None
        self.wild: set[Node] | None = None

    def cotangent(self, node: Apply) -> tuple[Cotangent, GuardedRegion | None]:
        """The whole cotangent of a node, which is taken away, and the region in which its adjoint belongs."""
        own = self.adjoint.cts.pop(node, None)
        if not self.regions and (own is None or isinstance(own, Node)):
            return own, None
        holders = [region for region in self.regions.values() if node in region.cts]
        inside = self.can_hold(node)
        if own is None and len(holders) == 1 and inside:
            return holders[0].cts.pop(node), holders[0]
        if holders:
            if own is not None:
                self.adjoint.cts[node] = own
            for region in holders:
                self.close(region)
            own = self.adjoint.cts.pop(node, None)
        if not inside or getattr(node.fn, "name", "") in PLAIN:
            return own, None
        guard = _common(own)
        if guard is None:
            return with_guards(own, node_of), None
        region = self.regions.setdefault((guard.live, guard.lax), GuardedRegion(guard.live, guard.lax))
        return with_guards(own, node_of), region

    def can_hold(self, node: Apply) -> bool:
        """Whether the adjoint of an application may be in a region."""
        if inner_graphs(node) and getattr(node.fn, "name", "") not in ("checkpoint", "custom_vjp", "matrix_function"):
            return False
        if applied(node) == "where" and node.args[0].type.shape == ():  # it makes guards of its own
            return False
        return not self.adjoint.context.threads(node) and all(_is_numbers(n.type) for n in (node, *node.args))

    @contextmanager
    def inside(self, region: GuardedRegion | None) -> Iterator[None]:
        """Applications emitted in this context go to a region, and so do cotangents."""
        if region is None:
            yield
            return
        graph = self.adjoint.builder.graph
        outside, graph.nodes = graph.nodes, region.nodes
        self.current = region
        try:
            yield
        finally:
            graph.nodes = outside
            self.current = None

    def settle(self, nodes: Sequence[Node]) -> None:
        """End the regions that hold cotangents of these nodes."""
        for region in [r for r in self.regions.values() if any(n in r.cts for n in nodes)]:
            self.close(region)

    def close_all(self) -> None:
        """End all regions."""
        for region in list(self.regions.values()):
            self.close(region)

    def close(self, region: GuardedRegion) -> None:
        """Emit a region: a branch of what must not be computed without need, the rest as it is."""
        del self.regions[region.live, region.lax]
        builder = self.adjoint.builder
        inside, after = self.parts(region)
        branch = set(inside)
        before = [n for n in region.nodes if n not in branch and n not in set(after)]
        builder.graph.nodes += before
        results: dict[Node, Node] = {}
        if inside:
            wanted = self.wanted(region, branch, after)
            origin, builder.origin = builder.origin, inside[0].origin
            results = self.branch(region, inside, wanted)
            builder.origin = origin
        for node in after:
            node.args = tuple(results.get(a, a) for a in node.args)
        builder.graph.nodes += after

        def outside(ct: Node | Guarded) -> Cotangent:
            node = ct.node if isinstance(ct, Guarded) else ct
            node = results.get(node, node)
            return guarded(node, region.live, region.lax) if is_guardable(node.type) else node

        for target, ct in region.cts.items():
            self.adjoint.accumulate(target, with_guards(ct, outside), "a guarded value")

    def parts(self, region: GuardedRegion) -> tuple[list[Apply], list[Apply]]:
        """What of a region must be in a branch, and what comes after it."""
        below: set[Node] = set()
        for node in region.nodes:
            if self.is_dangerous(node, region.lax) or any(a in below for a in node.args):
                below.add(node)
        above: set[Node] = set()
        for node in reversed(region.nodes):
            if self.is_dangerous(node, region.lax) or node in above:
                above.add(node)
                above.update(node.args)
        inside = [n for n in region.nodes if n in below and n in above]
        after = [n for n in region.nodes if n in below and n not in above]
        if any(not _is_floats(n.type) for n in self.wanted(region, set(inside), after)):  # of which there is no zero
            return inside + after, []
        return inside, after

    def wanted(self, region: GuardedRegion, branch: Container[Node], after: Sequence[Apply]) -> list[Node]:
        """The nodes of a branch that something outside of it reads."""
        found: dict[Node, None] = {a: None for n in after for a in n.args if a in branch}

        def note(ct: Node | Guarded) -> Cotangent:
            node = ct.node if isinstance(ct, Guarded) else ct
            if node in branch:
                found[node] = None
            return ct

        for ct in region.cts.values():
            with_guards(ct, note)
        return list(found)

    def branch(self, region: GuardedRegion, inside: Sequence[Apply], wanted: Sequence[Node]) -> dict[Node, Node]:
        """Emit the applications of a region as one side of a branch, whose other side has zeros."""
        builder, own = self.adjoint.builder, set(inside)
        captured = list(
            dict.fromkeys(a for n in inside for a in n.args if a not in own and not isinstance(a, Constant))
        )
        graphs = []
        for taken in (True, False):
            graph = Graph(f"{self.adjoint.graph.name}.guarded", None, builder.origin)
            inner = Builder(graph, builder.origin)
            env: dict[Node, Node] = {a: graph.add_parameter(a.name or f"g{i}", a.type) for i, a in enumerate(captured)}
            if taken:
                for node in inside:
                    env[node] = emit_like(inner, node, tuple(lookup(env, a) for a in node.args))
            out = tuple(env[w] if taken else zeros(inner, w.type) for w in wanted)
            graph.output = inner.emit(REGISTRY["make_struct"], out, {"type": tuple_of(*[w.type for w in wanted])})
            graphs.append(graph)
        both = builder.emit(REGISTRY["cond"], (region.live, *captured), {"then": graphs[0], "orelse": graphs[1]})
        return {w: builder.emit(REGISTRY["get_item"], (both,), {"index": i}) for i, w in enumerate(wanted)}

    def is_dangerous(self, node: Apply, lax: bool) -> bool:
        """Whether an adjoint application may make an infinity or a NaN of cotangents that are zero.

        Under a lax guard, which is that of most constants of loops, only what does so at ordinary points counts.
        """
        name, elementwise = getattr(node.fn, "name", ""), getattr(node.fn, "kind", "") == "elementwise"
        if elementwise and name not in FINITE or isinstance(node.fn, Graph):
            return True
        if lax:
            return elementwise and any(getattr(getattr(a, "fn", None), "name", "") in LOGARITHMS for a in node.args)
        wild = self.wild_values()
        return any(a in wild for a in node.args)

    def is_dangerous_forward(self, node: Apply) -> bool:
        """Whether the derivative of an elementwise application may be infinite or NaN."""
        wild = self.wild_values()
        return node.fn.name not in FINITE or any(self.adjoint.env.get(a) in wild for a in node.args)

    def wild_values(self) -> set[Node]:
        """The forward values that may be infinite or NaN though the arguments are finite."""
        if self.wild is None:
            found: set[Node] = set()
            for node in self.adjoint.graph.nodes:
                name, elementwise = getattr(node.fn, "name", ""), getattr(node.fn, "kind", "") == "elementwise"
                if elementwise and name not in FINITE or inner_graphs(node) or any(a in found for a in node.args):
                    found.add(node)
            self.wild = {self.adjoint.env[n] for n in found}
        return self.wild


def _is_numbers(t: Type) -> bool:
    return all(isinstance(e, Scalar | Array) for e in leaves(t)) and not run_time_symbols(type_symbols(t))


def _is_floats(t: Type) -> bool:
    return all(is_guardable(e) for e in leaves(t)) if isinstance(t, Struct) else is_guardable(t)


def _common(ct: Cotangent) -> Guarded | None:
    """The guard of a cotangent all parts of which have the same one."""
    if isinstance(ct, Guarded):
        return ct
    if not isinstance(ct, tuple):
        return None
    found: Guarded | None = None
    for part in ct:
        if part is None:
            continue
        guard = _common(part)
        if guard is None or found is not None and (guard.live, guard.lax) != (found.live, found.lax):
            return None
        found = guard
    return found
