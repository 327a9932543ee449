"""The call path of what raises or prints inside branches and loops.

Inlining records the call in the origin of every application that it copies, but not in the graphs of branches and
loops, which it shares. This last pass gives each of these graphs that can raise the calls around its application:

    f: g(x)    g: if c: raise ...    =>    the raise's origin is g's line, then f's

A function that is not inlined is one function for all its callers: its nodes tell the lines up to its own, and executors find
out which calls of it are in progress (`utils.raising.raise_through`). Functions of this package (`library`) are copied for each
call, because the user sees none of their lines.

Input: the final typed graph. Output: the same program, with longer origins.
"""

from __future__ import annotations

from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node
from ...ir.rewrite import Effects, emit_like, inner_graphs, lookup, map_graphs, mark_recursion, same_interface
from ...utils.source import Origin, is_ours


def tell_callers(graph: Graph) -> Graph:
    """The pass."""
    return _Places(graph).copy(graph, None)


class _Places:
    """Copies of graphs, one for each graph and path to it."""

    def __init__(self, graph: Graph):
        self.effects = Effects()
        self.recursive = mark_recursion(graph)
        # By identity: chains of calls may be long.
        self.copies: dict[tuple[Graph, int], tuple[Graph, Origin | None]] = {}
        self.hidden: dict[Graph, bool] = {}

    def tells(self, graph: Graph) -> bool:
        """Whether a graph can raise or print."""
        return bool(self.effects.of_graph(graph) & {"raise", "io"})

    def is_library(self, graph: Graph) -> bool:
        """Whether a graph is a function of this package."""
        if graph not in self.hidden:
            places = [n.origin.loc for n in graph.nodes if n.origin is not None and n.origin.loc is not None]
            self.hidden[graph] = bool(places) and all(is_ours(loc.file) for loc in places)
        return self.hidden[graph]

    def copy(self, graph: Graph, call: Origin | None) -> Graph:
        """`graph` as reached through a call; the same object if nothing in it can raise or print."""
        key = graph, id(call)
        if key not in self.copies:
            if not self.tells(graph):
                self.copies[key] = graph, call
            elif graph in self.recursive:  # it comes to itself again
                new, env = same_interface(graph)
                self.copies[key] = new, call
                self.build(graph, call, (new, env))
            else:
                self.copies[key] = self.build(graph, call), call
        return self.copies[key][0]

    def build(self, graph: Graph, call: Origin | None, into: tuple[Graph, dict] | None = None) -> Graph:
        inner: dict[Apply, dict] = {}
        callees: dict[Apply, Graph] = {}
        origins: dict[Node, Origin] = {}
        for node in graph.nodes:
            if not isinstance(node, Apply) or not self.effects.of_node(node) & {"raise", "io"}:
                continue
            origin = node.origin.inlined_at(call) if call is not None else node.origin
            if origin is not node.origin:
                origins[node] = origin
            if isinstance(node.fn, Graph):
                own = self.is_library(node.fn) and node.fn not in self.recursive
                callees[node] = self.copy(node.fn, origin if own else None)
            elif any(True for _ in inner_graphs(node)):
                around = origin.call_around()
                inner[node] = map_graphs(node.attrs, lambda g, around=around: self.copy(g, around))
        changed = [
            n for n, attrs in inner.items() if any(attrs[k] is not v and attrs[k] != v for k, v in n.attrs.items())
        ]
        if into is None and not origins and not changed and all(callees[n] is n.fn for n in callees):
            return graph
        new, env = into or same_interface(graph)
        builder = Builder(new)
        for node in graph.nodes:
            args = tuple(lookup(env, a) for a in node.args)
            made = emit_like(builder, node, args, inner.get(node), callees.get(node))
            if node in origins and isinstance(made, Apply):
                made.origin = origins[node]
            env[node] = made
        new.output = lookup(env, graph.output)
        return new


__all__ = ["tell_callers"]
