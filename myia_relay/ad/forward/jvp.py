"""`jvp` of a graph, emitted in place: what the expansion of transforms calls."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.build import Builder
from ...ir.node import Graph, Node
from ...ir.rewrite import as_call
from ..common.cotangents import Cotangent, leaf_nodes
from . import control  # noqa: F401  registers its rules
from .forward import Forward, float_pattern, pack


def inline_jvp(f: Forward, b: Builder, args: Sequence[Node], graph: Graph, wrt: tuple[int, ...]) -> Node:
    """Emit a graph with its tangent; returns the pair (value, tuple of tangents of its float leaves).

    Args:
        f: shared memos.
        b: where.
        args: the graph's arguments, then a tangent for each index in `wrt`.
        graph: typed, closed, transforms expanded.
        wrt: which arguments have a tangent.
    """
    origin = b.origin
    n = len(graph.params)
    tangents: list[Cotangent] = [None] * n
    for i, t in zip(wrt, args[n:], strict=True):
        tangents[i] = t
    graph = as_call(graph) if f.is_recursive(graph) else graph
    out, t = f.inline(b, graph, args[:n], tangents)
    b.origin = origin.derive("jvp")
    result = graph.output.type
    return pack(b, [out, pack(b, leaf_nodes(b, t, float_pattern(result), result))])
