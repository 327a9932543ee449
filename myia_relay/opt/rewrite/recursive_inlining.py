"""Small recursive functions are inlined into themselves, so that one call does several levels of the recursion.

    fib(n) = n if n < 2 else fib(n - 1) + fib(n - 2)
    =>  fib(n) = n if n < 2 else (n - 1 if n - 1 < 2 else fib(n - 2) + fib(n - 3)) + (n - 2 if n - 2 < 2 else ...)

The cost of a call (its frame, the guards of the stacks, passing results through memory) is then paid once for several
levels. Operations and their order stay the same. Runs once, when everything is differentiated and tail calls are loops.

Source: C. Rugina, M. Rinard, "Recursion unrolling for divide and conquer programs" (LCPC 2000).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node
from ...ir.prim import Primitive
from ...ir.rewrite import Env, Rewriter, binds_dims, emit_like, inner_graphs, lookup, map_graphs, recursive_components
from .call_sharing import shared

LOOPS = ("while_loop", "for_loop")


@dataclass(frozen=True)
class InlineRecursion:
    """The pass.

    Attributes:
        size: applications that the inlined function may have, including its inner graphs.
        depth: levels of calls that become one, at most.
        shared_depth: the same, where calls are shared: each level then costs a few applications, and saves calls.
    """

    size: int = 200
    depth: int = 4
    shared_depth: int = 8
    name: str = "recursive_inlining"

    def __call__(self, graph: Graph) -> Graph:
        found: dict[Graph, Graph] = {}
        for members in recursive_components(graph):
            head = _head(members)
            # The sizes of arrays are names, which each level would bind again while others mean theirs.
            if head is not None and not head.flags.get("unfolded") and not binds_dims(head):
                own, calls = _sizes(head, head)
                levels = _levels(own, calls, self.size, self.depth)
                tree = shared(head, self.size, self.shared_depth) if calls > 1 else None
                if tree is not None:
                    found[head] = tree
                elif levels > 1:
                    found[head] = Unfolded(head, levels).graph
        return _Replace(found).rewrite(graph) if found else graph


def _head(members: list[Graph]) -> Graph | None:
    """The function of a component that calls only itself, from its branches."""
    called = {n.fn for g in members for n in g.nodes if isinstance(n.fn, Graph) and n.fn in members}
    if len(called) != 1:
        return None
    (head,) = called
    inside = {g for m in members for n in m.nodes for g in inner_graphs(n) if n.fn is not g}
    in_loop = any(
        g in members for m in members for n in m.nodes if getattr(n.fn, "name", "") in LOOPS for g in inner_graphs(n)
    )
    return head if head not in inside and not in_loop else None


def _sizes(graph: Graph, head: Graph) -> tuple[int, int]:
    """The number of applications of a function, and of its calls of itself."""
    own = calls = 0
    for node in graph.nodes:
        own += 1
        calls += node.fn is head
        if isinstance(node.fn, Primitive):
            for inner in inner_graphs(node):
                more = _sizes(inner, head)
                own, calls = own + more[0], calls + more[1]
    return own, calls


def _levels(own: int, calls: int, size: int, depth: int) -> int:
    """How many levels fit."""
    total, width, levels = 0, 1, 0
    while levels < depth and total + own * width <= size:
        total, width, levels = total + own * width, width * calls, levels + 1
    return levels


class Unfolded:
    """A function with several levels of itself inlined.

    Attributes:
        graph: the new function.
    """

    def __init__(self, head: Graph, levels: int):
        self.head = head
        self.graph = Graph(head.name, None, head.origin)
        self.graph.flags = {**head.flags, "unfolded": True}
        params: list[Node] = [self.graph.add_parameter(p.name, p.type, p.origin) for p in head.params]
        self.graph.output = self.emit(Builder(self.graph), head, params, levels - 1)

    def emit(self, builder: Builder, graph: Graph, args: list[Node], level: int) -> Node:
        """Emit the applications of a graph; calls of the function are inlined up to the given number of levels."""
        env: Env = dict(zip(graph.params, args, strict=True))
        for node in graph.nodes:
            new = [lookup(env, a) for a in node.args]
            if node.fn is self.head:
                env[node] = self.call(builder, node, new, level)
                continue
            attrs = (
                map_graphs(node.attrs, lambda g: self.branch(g, level))
                if isinstance(node.fn, Primitive)
                else node.attrs
            )
            env[node] = emit_like(builder, node, tuple(new), attrs)
        return lookup(env, graph.output)

    def call(self, builder: Builder, node: Apply, args: list[Node], level: int) -> Node:
        if level:
            return self.emit(builder, self.head, args, level - 1)
        builder.origin = node.origin
        return builder.graph.apply(self.graph, *args, type=node.type, origin=node.origin)

    def branch(self, graph: Graph, level: int) -> Graph:
        """A graph inside of the function."""
        if _sizes(graph, self.head)[1] == 0:
            return graph
        new = Graph(graph.name, None, graph.origin)
        params: list[Node] = [new.add_parameter(p.name, p.type, p.origin) for p in graph.params]
        new.output = self.emit(Builder(new), graph, params, level)
        return new


class _Replace(Rewriter):
    """Makes calls of the old functions call the new ones."""

    def __init__(self, found: dict[Graph, Graph]):
        super().__init__()
        self.found = found

    def rewrite(self, graph: Graph) -> Graph:
        if graph in self.found:
            self.changed = True
            return self.found[graph]
        return super().rewrite(graph)


__all__ = ["InlineRecursion"]
