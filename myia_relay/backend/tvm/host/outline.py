"""Which functions stay functions in native code: those that would otherwise be inlined many times.

A call is usually lowered by emitting the body of its function in place, which gives fast code. But if a function calls
another one twice, which calls another one twice, and so on, the code grows exponentially. A function of some size that
is called from several places is therefore compiled once, like a recursive function (`recursion`).

Input: an optimised typed graph. Output: a set of the graphs that it calls.
"""

from __future__ import annotations

from ....abstract.types import Array, Data, NoneT, Ref, Scalar, Str, Undefined, leaves
from ....ir.node import Graph
from ....ir.prim import Primitive
from ....ir.rewrite import all_graphs, components, graphs_run

SIZE = 100  # applications: the largest size that is inlined repeatedly


def outlined(graph: Graph, recursive: set[Graph]) -> set[Graph]:
    """The functions that are compiled once, beside those that are recursive anyway.

    Args:
        graph: the whole program.
        recursive: the graphs in it that run themselves again.
    """
    calls: dict[Graph, int] = {}
    for g in all_graphs(graph):
        for node in g.nodes:
            if isinstance(node.fn, Graph):
                calls[node.fn] = calls.get(node.fn, 0) + 1
    out: set[Graph] = set()
    size: dict[Graph, int] = {}  # the size of what is emitted for a graph, including everything inlined in it
    tapes: dict[Graph, bool] = {}  # whether it uses tapes, which belong to the main function
    for (g,) in (members for members in components(graph) if members[0] not in recursive):
        inner = graphs_run(g)
        size[g] = len(g.nodes) + sum(size.get(i, 1) for i in inner if i not in out)
        tapes[g] = any(tapes.get(i) for i in inner) or any(
            isinstance(node.fn, Primitive) and node.fn.name.startswith("tape_") for node in g.nodes
        )
        if calls.get(g, 0) > 1 and size[g] > SIZE and not tapes[g] and _can_be_called(g):
            out.add(g)
    return out


def _can_be_called(graph: Graph) -> bool:
    """Whether values of these types can be passed to a function and returned from it."""
    passed = all(
        isinstance(t, Scalar | Array | Data | Ref | NoneT | Str | Undefined)
        for p in graph.params
        for t in leaves(p.type)
    )
    return passed and all(isinstance(t, Scalar | Array | Data | NoneT | Undefined) for t in leaves(graph.output.type))
