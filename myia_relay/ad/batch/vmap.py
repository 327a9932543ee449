"""`vmap` of a graph, emitted in place: what the expansion of transforms calls."""

from __future__ import annotations

from collections.abc import Sequence

from ...abstract.dims import DimLike
from ...ir.build import Builder
from ...ir.node import Graph, Node
from ...ir.rewrite import as_call
from . import control  # noqa: F401  registers its rules
from .batch import Batcher, OneByOne, Restart, expanded_flag, full
from .examples import refuse_one_by_one
from .recursion import one_by_one, recursive_version


def inline_vmap(b: Builder, args: Sequence[Node], graph: Graph, batched: tuple, size: DimLike) -> Node:
    """Emit the batched graph; every array of the result gets a batch axis."""
    p = Batcher(size, recursive_version, graph.flags.get("once", False))
    flags = [expanded_flag(f, q.type) for f, q in zip(batched, graph.params, strict=True)]
    graph = graph if p.recursion.component(graph) is None else as_call(graph)
    nodes = b.graph.nodes[:]
    while True:
        try:
            out, flag = p.inline(b, graph, args, flags)
            out = p.match(b, out, graph.output.type, flag, full(graph.output.type))
            if p.masked:  # what derivatives of these graphs ask for
                for inner in (b.graph, *(g for g, _ in p.graphs.values())):
                    inner.flags["masked"] = True
            return out
        except OneByOne:
            b.graph.nodes = nodes
            refuse_one_by_one(graph)
            return one_by_one(b, args, graph, flags, size)
        except Restart:
            b.graph.nodes, p.graphs = nodes[:], {}
