"""Outlining: straight-line groups of array operations become graphs of their own, which another compiler may take over."""

from __future__ import annotations

from dataclasses import dataclass

from ...abstract.dims import Dim, run_time_symbols, symbols
from ...abstract.types import Array, type_symbols
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import emit_like, lookup
from ...ir.walk import uses

KINDS = ("elementwise", "injective", "reduce", "opaque")


@dataclass(frozen=True, eq=False)
class Region:
    """A group of applications.

    Attributes:
        inputs: nodes of the enclosing graph.
        outputs: those of the applications that are used outside.
        graph: the group as a closed graph; several outputs are returned as a tuple.
    """

    inputs: tuple[Node, ...]
    outputs: tuple[Apply, ...]
    graph: Graph


def outline(graph: Graph) -> list[Apply | Region]:
    """A graph's applications in an equivalent order, with groups of array operations as regions."""
    out: list[Apply | Region] = []
    pending: list[Apply] = []
    members: set[Node] = set()
    users = uses(graph)

    def flush() -> None:
        if any(isinstance(n.type, Array) for n in pending):
            region = make_region(graph, pending, members, users)
            out.extend([region] if region is not None else pending)
        else:
            out.extend(pending)
        pending.clear()
        members.clear()

    for node in graph.nodes:
        if isinstance(node.fn, Primitive) and node.fn.kind in KINDS:
            pending.append(node)
            members.add(node)
        else:
            if any(a in members for a in node.args):
                flush()
            out.append(node)
    flush()
    return out


def attribute_symbols(node: Apply) -> set[str]:
    """The symbolic dimensions in the attributes of an application: the size it asks for, the bounds of a slice."""
    out: set[str] = set()
    for value in node.attrs.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Dim):
                out |= symbols(part)
    return out


def make_region(graph: Graph, nodes: list[Apply], members: set[Node], users: dict[Node, list[Apply]]) -> Region | None:
    """A region of some applications; None where its inputs would not tell a symbolic dimension."""
    inputs = list(dict.fromkeys(a for n in nodes for a in n.args if a not in members and not isinstance(a, Constant)))
    outputs = [n for n in nodes if n is graph.output or any(u not in members for u in users.get(n, ()))]
    plain = {repr(d) for x in inputs if isinstance(x.type, Array) for d in x.type.shape}  # n - 1, say, does not tell n
    others = set().union(set(), *(type_symbols(x.type) for x in inputs if not isinstance(x.type, Array)))
    told = plain | others - run_time_symbols(others)
    named = (type_symbols(n.type).union(attribute_symbols(n), *(type_symbols(a.type) for a in n.args)) for n in nodes)
    if not outputs or not set().union(*named) <= told:
        return None
    region = Graph(f"{graph.name}.region", None, graph.origin)
    b = Builder(region, graph.origin)
    env: dict[Node, Node] = {x: region.add_parameter(x.name or f"x{i}", x.type) for i, x in enumerate(inputs)}
    for n in nodes:
        env[n] = emit_like(b, n, tuple(lookup(env, a) for a in n.args))
    results = [env[n] for n in outputs]
    if len(results) == 1:
        region.output = results[0]
    else:
        from ...abstract.types import tuple_of

        t = tuple_of(*[r.type for r in results])
        region.output = b.emit(REGISTRY["make_struct"], tuple(results), {"type": t})
    return Region(tuple(inputs), tuple(outputs), region)
