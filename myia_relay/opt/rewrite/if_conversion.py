"""If-conversion: a small branch becomes a select between two numbers; both are computed, and no jump can be mispredicted.

    n // 2 if even else 3 * n + 1   =>   check(even or n <= limit); where(even, n >> 1, 3 * n + 1)
    x[i] if x[i] > 0.0 else 0.0     =>   v = x[i]; where(v > 0.0, v, 0.0)

A branch of an integer qualifies if it has a few cheap operations on numbers, which never raise by themselves, and at most one
check, which is made conditional. One of a float qualifies if it computes nothing, and reads only what was read before it.
Branches that compute a truth value stay: `and` and `or` control jumps anyway.

Runs last, since more is known of ranges inside a branch. Source: J. Allen et al., "Conversion of control dependence to
data dependence" (POPL 1983).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Scalar
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applied
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Rewriter, emit_like, lookup

CHEAP = frozenset(
    "add sub mul neg bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift where lt le gt ge eq ne logical_not"
    " logical_and logical_or cast".split()
)
MOST = 5  # operations of a branch, a check counted as one


@dataclass(frozen=True)
class ConvertBranches:
    """The pass."""

    name: str = "if_conversion"

    def __call__(self, graph: Graph) -> Graph:
        return _Select().rewrite(graph)


class _Select(Rewriter):
    acts_on = ("cond",)

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if not isinstance(node.fn, Primitive) or node.fn.name != "cond" or not isinstance(node.type, Scalar):
            return super().node(builder, node, args, attrs)
        if node.type.dtype == "float64":
            then, orelse = (self.read_before(builder, attrs[side], args[1:]) for side in ("then", "orelse"))
            if then is None or orelse is None:
                return super().node(builder, node, args, attrs)
            self.changed = True
            builder.origin = node.origin
            return builder.emit(REGISTRY["where"], (args[0], then, orelse), {}, node.type)
        if node.type.dtype != "int64":
            return super().node(builder, node, args, attrs)
        branches = (attrs["then"], attrs["orelse"])
        if any(map(self.incomplete, branches)):  # of a recursion that is being rebuilt
            return super().node(builder, node, args, attrs)
        if not all(map(is_small, branches)) or sum(map(_checks, branches)) > 1:
            return super().node(builder, node, args, attrs)
        self.changed = True
        builder.origin = node.origin
        condition = args[0]
        other = builder.emit(REGISTRY["logical_not"], (condition,))
        values = [self.both(builder, g, args[1:], skip) for g, skip in zip(branches, (other, condition))]
        builder.origin = node.origin
        return builder.emit(REGISTRY["where"], (condition, *values), {}, node.type)

    def read_before(self, builder: Builder, graph: Graph, args: tuple[Node, ...]) -> Node | None:
        """The result of a branch that only converts floats and reads what was read before it; None for any other."""
        if self.incomplete(graph) or len(graph.nodes) > MOST:
            return None
        env: dict[Node, Node] = dict(zip(graph.params, args, strict=True))
        for node in graph.nodes:
            given = tuple(lookup(env, a) for a in node.args)
            if applied(node) == "dynamic_index":
                found = next((n for n in builder.graph.nodes if _is_same(n, node, given)), None)
                if found is None:
                    return None
                env[node] = found
            elif applied(node) == "cast" and _cheap(node) and node.type.is_float:
                env[node] = emit_like(builder, node, given)
            else:
                return None
        return lookup(env, graph.output)

    def both(self, builder: Builder, graph: Graph, args: tuple[Node, ...], skip: Node) -> Node:
        """Emit a branch whose checks are satisfied where `skip` holds."""
        env: dict[Node, Node] = dict(zip(graph.params, args, strict=True))
        for node in graph.nodes:
            new = [lookup(env, a) for a in node.args]
            if node.fn.name == "check":
                builder.origin = node.origin
                new[0] = builder.emit(REGISTRY["logical_or"], (skip, new[0]))
            env[node] = emit_like(builder, node, tuple(new))
        return lookup(env, graph.output)


def _is_same(one: Apply, other: Apply, args: tuple[Node, ...]) -> bool:
    """Whether an application is what another one would be with these arguments."""
    return (
        one.fn is other.fn
        and one.attrs == other.attrs
        and len(one.args) == len(args)
        and all(map(operator.is_, one.args, args))
    )


def is_small(graph: Graph) -> bool:
    """Whether a branch qualifies."""
    return len(graph.nodes) <= MOST and all(
        isinstance(n.fn, Primitive) and (n.fn.name == "check" or (n.fn.name in CHEAP and _cheap(n)))
        for n in graph.nodes
    )


def _cheap(node: Apply) -> bool:
    """Whether an operation is on numbers, and is not a conversion of floats to integers."""
    if not isinstance(node.type, Scalar) or not all(isinstance(a.type, Scalar) for a in node.args):
        return False
    return node.fn.name != "cast" or node.type.is_float or not node.args[0].type.is_float


def _checks(graph: Graph) -> int:
    return sum(n.fn.name == "check" for n in graph.nodes)


__all__ = ["ConvertBranches", "is_small"]
