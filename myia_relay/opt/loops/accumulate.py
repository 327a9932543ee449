"""Sums are continued where they are, in derived code: no separate sum is made and added.

    s + for(..., sum=0: sum + v)             =>  for(..., sum=s: sum + v)
    s + index_add(index_add(0, u, i), v, j)  =>  index_add(index_add(s, u, i), v, j)

The adjoint of a loop sums up the cotangents of its constants, starting from zero, and the result is added to the sum of
the enclosing loop. If the sum is carried through instead, the innermost and the outermost loop use one sum. No array of
zeros is made for each inner loop, and no whole array is added when an iteration has changed one element (LAGrad's
in-place accumulation). The order of the terms changes, so sums that users wrote are left alone.

Source: M. Peng and C. Dubach, "LAGrad: statically optimized differentiable programming in MLIR" (CC 2023), section 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...abstract.types import Array
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applied
from ...ir.prim import adds_to_part
from ...ir.rewrite import Rewriter, lookup
from ...prims.ops.control import LEAD
from ..analysis.control import output_parts, read_parameters
from ..rewrite.rules import filled

Place = tuple[Apply, int]


@dataclass(frozen=True)
class Accumulate:
    """The pass, for programs without transforms."""

    name: str = "accumulate"

    def __call__(self, graph: Graph) -> Graph:
        return _Accumulate().rewrite(graph)


class _Accumulate(Rewriter):
    def __init__(self):
        super().__init__()
        self.sums: dict[tuple[Graph, int], bool] = {}

    def build(self, graph: Graph) -> Graph:
        attrs = {node: self.inner(node) for node in graph.nodes}
        plan = _Plan(graph, self)
        self.changed |= bool(plan.gone)
        new, env = self.interface(graph)
        builder = Builder(new)
        for node in graph.nodes:
            if node in plan.gone:
                env[node] = lookup(env, plan.gone[node])
            else:
                args = tuple(
                    lookup(env, plan.start[node, k] if (node, k) in plan.start else a) for k, a in enumerate(node.args)
                )
                env[node] = self.node(builder, node, args, attrs[node])
        new.output = lookup(env, graph.output)
        return new

    def carries_sum(self, loop: Apply, index: int) -> bool:
        """Whether a loop only adds to a carried value."""
        body: Graph = loop.attrs["body"]
        if (body, index) not in self.sums:
            self.sums[body, index] = False
            outs, param = output_parts(body), body.params[index + (loop.fn.name == "for_loop")]
            condition = loop.attrs.get("cond")
            if outs is not None and (condition is None or condition.params[index] not in read_parameters(condition)):
                uses = _SumUses(body, self)
                found = uses.count.get(param) == 1 and any(n.args[k] is param for n, k in uses.beginnings(outs[index]))
                self.sums[body, index] = found
        return self.sums[body, index]


class _SumUses:
    """What uses the values of a graph."""

    def __init__(self, graph: Graph, sums: _Accumulate):
        self.sums = sums
        self.count: dict[Node, int] = {graph.output: 1}
        self.parts: dict[Node, list[int]] = {}  # of results with several parts: those that are taken
        for node in graph.nodes:
            for arg in node.args:
                self.count[arg] = self.count.get(arg, 0) + 1
            if applied(node) == "get_item":
                self.parts.setdefault(node.args[0], []).append(node.attrs["index"])

    def beginnings(self, node: Node) -> Iterator[Place]:
        """The arguments with which a sum may begin: its own, or those of its terms, if nothing else sees them."""
        stack = [node]
        while stack:
            top = stack.pop()
            if not isinstance(top, Apply) or self.count.get(top) != 1:
                continue
            for place in self.summands(top):
                yield place
                stack.append(place[0].args[place[1]])

    def summands(self, node: Apply) -> list[Place]:
        """The operands that an application adds."""
        if applied(node) == "add":
            return [(node, k) for k in (0, 1) if node.args[k].type == node.type]
        if adds_to_part(node):
            return [(node, 0)]
        if applied(node) == "get_item" and applied(node.args[0]) in LEAD:
            loop, index = node.args[0], node.attrs["index"]
            whole = self.count[loop] != len(self.parts[loop])
            if not whole and self.parts[loop].count(index) == 1 and self.sums.carries_sum(loop, index):
                return [(loop, LEAD[loop.fn.name] + index)]
        return []


class _Plan:
    """The sums of a graph that are continued in place of others.

    Attributes:
        start: arguments that were zero -> the sums that take their places.
        gone: additions that are done elsewhere -> what they are now.
    """

    def __init__(self, graph: Graph, sums: _Accumulate):
        self.uses = _SumUses(graph, sums)
        self.position: dict[Node, int] = {node: k for k, node in enumerate(graph.nodes)}
        self.start: dict[Place, Node] = {}
        self.gone: dict[Node, Node] = {}
        for node in graph.nodes:
            if (
                applied(node) == "add"
                and node.origin.is_adjoint
                and isinstance(node.type, Array)
                and node.type.is_float
            ):
                self.move(node)

    def move(self, node: Apply) -> None:
        """Do an addition where one of its two sums begins, if the other one is available there."""
        for x, other in (node.args, node.args[::-1]):
            if x.type != node.type or other.type != node.type:
                return
            for place in self.beginnings(x):
                user, k = place
                zero = filled(user.args[k])
                early = self.position.get(other, -1) < self.position[user]
                if place not in self.start and zero is not None and zero == 0 and early:
                    self.start[place] = other
                    self.gone[node] = x
                    return

    def beginnings(self, x: Node) -> Iterator[Place]:
        return (place for place in self.uses.beginnings(x) if place[0] not in self.gone)
