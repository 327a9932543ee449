"""Equal calls of a recursive function on one path are computed once, after several levels of calls have been inlined.

    fib(n) = n if n < 2 else fib(n - 1) + fib(n - 2)
    =>  fib(n) = n if n < 2 else 1 if n < 3 else 2 if n < 4 else
                 let a = fib(n - 3), b = fib(n - 4), c = a + b in (c + a) + c

Inlined into itself, such a function computes fib(n - 3) in one branch and again after it. If the branches joined,
nothing would be known of either call. They therefore do not join: the code after a branch that contains calls is copied
into each of its sides, and the function becomes a tree of paths. On a path, a call that was evaluated before is
replaced by its value, conditions that were tested are known (the ranges of integers decide most of the further
conditions), and `n - 1 - 2` is `n - 3`. Nothing moves. Only what would be evaluated a second time with equal arguments
is left out, so the first exception, and its place, stay the same.

This is done for functions of scalars that neither print nor write, unless the tree of paths would be too large.

Input: a function that calls itself. Output: the function as a tree, or None if no call is saved.

Source: R. Bodik, R. Gupta, M. L. Soffa, "Complete removal of redundant expressions" (PLDI 1998); the inlining as in
`recursive_inlining`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...abstract.types import NONE, NoneT, Scalar, Str, Undefined, leaves
from ...ir.build import as_type
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import Primitive
from ...ir.rewrite import Effects, Env, all_graphs, emit_like, inner_graphs, lookup
from ..analysis.intervals import limits
from ..analysis.ranges import PathAnalysis, RangeFacts
from .algebra import FINAL, OFFSETS
from .rules import Table
from .simplify import Simplifier

FORKS = 48  # conditions in a tree, at most
RULES = Table(*FINAL.rules, *OFFSETS)


def shared(head: Graph, size: int, depth: int) -> Graph | None:
    """The function with up to `depth` levels of calls inlined and no call twice on a path.

    Args:
        head: a function that calls itself, from its branches alone.
        size: applications that the new function may have, its branches included.
        depth: levels, at most.

    Returns:
        The new function, which calls itself; None if there is nothing to share, or if it would be too large.
    """
    if not _is_scalar(head):
        return None
    best = None
    for levels in range(2, depth + 1):
        tree = _Tree(head, levels, size)
        try:
            tree.build()
        except _TooLarge:
            break
        if not tree.saved:
            break
        best = tree.graph
    return best


def _is_scalar(head: Graph) -> bool:
    """Whether a function computes with scalars alone, and has no effect but raising."""
    types = [x.type for g in all_graphs(head) for x in (*g.params, *g.nodes)]
    if not all(isinstance(leaf, Scalar | NoneT | Str | Undefined) for t in types for leaf in leaves(t)):
        return False
    return Effects().of_graph(head) <= {"raise"}


class _TooLarge(Exception):
    """The tree would be too large."""


@dataclass
class _Frame:
    """A graph that is being emitted on a path: a level of the function, or a branch of it.

    Attributes:
        graph: what is emitted.
        env: what its nodes have become.
        level: how many levels of calls may still be unfolded in it.
        result: the application whose value its output is.
        key: of the call that it is; None for a branch.
        at: the next of its nodes.
    """

    graph: Graph
    env: Env
    level: int
    result: Apply | None = None
    key: Any = None
    at: int = 0

    def copy(self) -> _Frame:
        return _Frame(self.graph, dict(self.env), self.level, self.result, self.key, self.at)


class _Path(Simplifier):
    """A branch of the tree under construction. It refers to nodes of the branches around it directly, until it is closed.

    Attributes:
        facts: what is known on this path.
    """

    def __init__(self, graph: Graph, effects: Effects, around: _Path | None = None):
        super().__init__(graph, RULES, effects)
        self.facts = RangeFacts(around.facts if around else None)
        if around:
            self.values, self.constants = dict(around.values), around.constants
            self.facts.inner.update(around.facts.inner)

    def known(self, node: Node) -> Node:
        """The constant that a node is known to be on this path, or the node."""
        if isinstance(node, Constant) or limits(node.type) is None:
            return node
        low, high = self.facts[node]
        if low != high:
            return node
        return Constant(as_type(bool(low) if node.type.dtype == "bool" else low, node.type), node.type, node.origin)


class _Tree:
    """A function as a tree of paths.

    Attributes:
        graph: the new function.
        saved: calls that were found evaluated already.
    """

    def __init__(self, head: Graph, levels: int, size: int):
        self.head, self.levels, self.room, self.forks = head, levels, size, FORKS
        self.graph = Graph(head.name, None, head.origin)
        self.graph.flags = {**head.flags, "unfolded": True}
        self.effects = Effects()
        self.analysis = PathAnalysis()
        self.saved = 0
        self.calls: dict[Graph, bool] = {}

    def build(self) -> None:
        """Fill the graph."""
        env: Env = {p: self.graph.add_parameter(p.name, p.type, p.origin) for p in self.head.params}
        path = _Path(self.graph, self.effects)
        self.graph.output = self.walk(path, [_Frame(self.head, env, self.levels - 1)])

    def walk(self, path: _Path, frames: list[_Frame]) -> Node:
        """Emit what is left to do, innermost frame first; returns the result of the function."""
        while True:
            frame = frames[-1]
            if frame.at == len(frame.graph.nodes):
                value = path.known(lookup(frame.env, frame.graph.output))
                frames.pop()
                if not frames:
                    return value
                assert frame.result is not None  # of all frames but the first
                frames[-1].env[frame.result] = value
                if frame.key is not None:
                    path.values[frame.key] = value
                continue
            node = frame.graph.nodes[frame.at]
            frame.at += 1
            args = [path.known(lookup(frame.env, a)) for a in node.args]
            if node.fn is self.head:
                key = (self.head, *map(path.argument, args))
                if key in path.values:
                    self.saved += 1
                    frame.env[node] = path.values[key]
                elif frame.level:
                    inside: Env = dict(zip(self.head.params, args, strict=True))
                    frames.append(_Frame(self.head, inside, frame.level - 1, node, key))
                else:
                    self.count(1)
                    frame.env[node] = path.values[key] = self.call(path, node, args)
            elif not self.forks_at(node):
                frame.env[node] = self.emit(path, node, args)
            elif isinstance(args[0], Constant):
                frames.append(self.branch(node, "then" if args[0].value else "orelse", args, frame.level))
            else:
                return self.fork(path, frames, node, args)

    def fork(self, path: _Path, frames: list[_Frame], node: Apply, args: list[Node]) -> Node:
        """A condition, with everything that follows it copied into both of its branches.

        Raises:
            _TooLarge: there are too many conditions.
        """
        self.count(1)
        self.forks -= 1
        if self.forks < 0:
            raise _TooLarge
        branches = {}
        for key in ("then", "orelse"):
            branches[key] = graph = Graph(node.attrs[key].name, None, node.attrs[key].origin)
            inner = _Path(graph, self.effects, path)
            self.analysis.learn(args[0], key == "then", inner.facts)
            rest = [*(f.copy() for f in frames), self.branch(node, key, args, frames[-1].level)]
            graph.output = self.walk(inner, rest)
        captured = close(list(branches.values()))
        return path.graph.apply(
            node.fn, args[0], *captured, attrs=branches, type=self.head.output.type, origin=node.origin, name=node.name
        )

    def branch(self, node: Apply, key: str, args: Sequence[Node], level: int) -> _Frame:
        graph = node.attrs[key]
        return _Frame(graph, dict(zip(graph.params, args[1:], strict=True)), level, node)

    def emit(self, path: _Path, node: Apply, args: list[Node]) -> Node:
        """Emit an application that does not call the function, and record what is known of it."""
        if (
            isinstance(node.fn, Primitive)
            and node.fn.name == "check"
            and isinstance(args[0], Constant)
            and args[0].value
        ):
            return Constant(None, NONE, node.origin)
        before = len(path.graph.nodes)
        new = emit_like(path, node, tuple(args))
        self.count(len(path.graph.nodes) - before)
        if isinstance(new, Apply):
            self.analysis.note(new, path.facts)
        return path.known(new)

    def call(self, path: _Path, node: Apply, args: list[Node]) -> Node:
        return path.graph.apply(self.graph, *args, type=node.type, origin=node.origin, name=node.name)

    def forks_at(self, node: Apply) -> bool:
        """Whether an application is a condition with calls of the function in its branches."""
        return (
            isinstance(node.fn, Primitive) and node.fn.name == "cond" and any(map(self.calls_head, inner_graphs(node)))
        )

    def calls_head(self, graph: Graph) -> bool:
        if graph not in self.calls:
            self.calls[graph] = any(n.fn is self.head for g in all_graphs(graph) for n in g.nodes)
        return self.calls[graph]

    def count(self, applications: int) -> None:
        self.room -= applications
        if self.room < 0:
            raise _TooLarge


def close(graphs: Sequence[Graph]) -> list[Node]:
    """Give branches parameters for the outer nodes that they use; returns the operands, the same for all branches."""
    free: dict[Node, None] = {}
    for graph in graphs:
        own = set(graph.nodes)
        used = (x for x in (*(a for n in graph.nodes for a in n.args), graph.output) if x not in own)
        free.update(dict.fromkeys(x for x in used if not isinstance(x, Constant)))
    for graph in graphs:
        params = {x: graph.add_parameter(getattr(x, "name", None) or "x", x.type, x.origin) for x in free}
        for node in graph.nodes:
            node.args = tuple(params.get(a, a) for a in node.args)
        graph.output = params.get(graph.output, graph.output)
    return list(free)


__all__ = ["shared"]
