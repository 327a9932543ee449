"""What parts of a typed graph cost, and which source lines they are from.

The cost of an application is estimated: its floating-point operations, or its elements where it moves data. The estimates
divide the time of a kernel among the lines that were fused into it; they are never shown as times by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..abstract.dims import evaluate, product
from ..ir.node import Apply, Graph
from ..ir.prim import Primitive
from ..ir.rewrite import inner_graphs
from ..opt.analysis.flops import iterations, of_application, of_nodes
from ..opt.analysis.fusion import cost
from ..utils.source import Loc, Origin

Lookup = Callable[[str], int]
LOOPS = ("for_loop", "while_loop", "vector_while")
UNKNOWN_TRIPS = 8  # how often a loop is taken to run that does not say
PASSES = {"vjp": "backward", "jvp": "tangent"}
"""What made a node -> the part of the program that it belongs to; "forward" for all else."""


class SourcePlace(NamedTuple):
    """Where work comes from.

    Attributes:
        part: "forward", "backward" or "tangent".
        stack: the source ranges of the calls around it and of itself, outermost first; empty where no line of the user's made it.
    """

    part: str
    stack: tuple[Loc, ...]

    @property
    def line(self) -> tuple[str, int, str]:
        """File, line, function."""
        return (self.stack[-1].file, self.stack[-1].line, self.stack[-1].function) if self.stack else ("", 0, "")


def place_of(origin: Origin) -> SourcePlace:
    """The place of a node with an origin."""
    stack: list[Loc] = []
    for loc in reversed(origin.call_stack()):
        if not stack or (loc.file, loc.line, loc.function) != (stack[-1].file, stack[-1].line, stack[-1].function):
            stack.append(loc)
    return SourcePlace(PASSES.get(origin.made_by, "forward"), tuple(stack))


def spread(nodes: Iterable[Apply], lookup: Lookup, around: Iterable[Apply] = ()) -> dict[SourcePlace, float]:
    """The shares of places in the work of applications; they add up to one.

    Args:
        nodes: applications, which may run graphs.
        lookup: the sizes of symbolic dimensions.
        around: the applications in whose graphs they are, outermost first. What no line of the user's has made, such as the loops
            inside of `np.sort`, is from the line of these.
    """
    out: dict[SourcePlace, float] = {}
    known: dict[Origin, SourcePlace] = {}
    active: set[Graph] = set()

    def place(node: Apply, outer: tuple[Loc, ...]) -> SourcePlace:
        if (found := known.get(node.origin)) is None:
            found = known[node.origin] = place_of(node.origin)
        return found if found.stack or not outer else SourcePlace(found.part, outer)

    def add(some: Iterable[Apply], times: float, outer: tuple[Loc, ...]) -> None:
        for node in some:
            at = place(node, outer)
            inner = [g for g in inner_graphs(node) if g not in active]
            if inner:
                active.update(inner)
                each = times * _trips(node, lookup)
                for graph in inner:
                    add(graph.nodes, each, at.stack)
                active.difference_update(inner)
            else:
                out[at] = out.get(at, 0.0) + times * effort(node, lookup)

    stack: tuple[Loc, ...] = ()
    for node in around:
        stack = place(node, stack).stack
    add(nodes, 1.0, stack)
    nowhere = sum(weight for at, weight in out.items() if not at.stack)
    total = sum(out.values())
    if 0.0 < nowhere < total:  # what the compiler has made by itself goes with the rest
        out = {at: weight for at, weight in out.items() if at.stack}
        total -= nowhere
    return {at: weight / total for at, weight in out.items()} if total else {}


def effort(node: Apply, lookup: Lookup) -> float:
    """The estimated cost of one application, in operations on elements."""
    if not isinstance(node.fn, Primitive):
        return 1.0
    elements = max(1, size_of(product(getattr(node.type, "shape", ())), lookup) or 0)
    if node.fn.kind in ("elementwise", "injective"):
        return float(elements * max(1, cost(node))) if not node.fn.view else 0.01
    if node.fn.kind in ("reduce", "opaque"):
        return float(max(elements, size_of(of_application(node), lookup) or 0))
    if node.fn.effect == "io":
        return 1000.0
    return 0.01 if node.fn.kind == "struct" else 1.0


def runs_of(loops: Iterable[Apply], lookup: Lookup) -> int | None:
    """How often what is inside of loops runs; None where that is not known."""
    runs = 1
    for node in loops:
        if not isinstance(node.fn, Primitive) or node.fn.name not in LOOPS:
            continue
        known = iterations(node) if node.fn.name == "for_loop" else None
        found = None if known is None else size_of(known, lookup)
        if found is None:
            return None
        runs *= found
    return runs


def flops_of(nodes: Iterable[Apply], lookup: Lookup) -> int | None:
    """The floating-point operations of applications; None where sizes are not known."""
    return size_of(of_nodes(nodes), lookup)


def size_of(size: Any, lookup: Lookup) -> int | None:
    """A size as a number; None where it is not known."""
    try:
        return int(evaluate(size, lookup))
    except KeyError:
        return None


def sizes(graph: Graph, values: Iterable[Any]) -> dict[str, int]:
    """The values of the symbolic dimensions of a graph's parameters, given its arguments."""
    out: dict[str, int] = {}
    for param, value in zip(graph.params, values):
        for dim, size in zip(getattr(param.type, "shape", ()), getattr(value, "shape", ())):
            if not isinstance(dim, int) and repr(dim).isidentifier():
                out[repr(dim)] = size
    return out


def _trips(node: Apply, lookup: Lookup) -> float:
    if not isinstance(node.fn, Primitive):
        return 1.0
    if node.fn.name == "for_loop":
        known = iterations(node)
        found = None if known is None else size_of(known, lookup)
        return float(UNKNOWN_TRIPS if found is None else found)
    if node.fn.name == "map_rows":
        return float(size_of(node.attrs["rows"], lookup) or 1)
    return float(UNKNOWN_TRIPS) if node.fn.name in LOOPS else 1.0
