"""Sums of padded arrays that do not overlap and leave nothing free are written part by part, in derived code.

    pad(a, behind) + pad(b, before)  =>  x = empty; x[:m] = a; x[m:] = b

The cotangent of what is taken apart by slices, such as the gates of a recurrent cell, is such a sum. As one expression every
element would be chosen among all parts, each of which is computed for it; written apart, each part is a loop of its own.

Input: a closed typed graph, for executors that change arrays in place. Output: the same. A sum with a zero turns -0.0 into 0.0,
which is left out here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ...abstract.types import INT, Array
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Env, Rewriter, lookup
from ..rewrite.control import undef
from ..rewrite.rules import filled

LEAST = 1024  # elements of the whole
LEAST_RUN = 16  # elements of a part that lie in one piece
MOST_PARTS = 16


@dataclass(frozen=True)
class JoinPads:
    """The pass."""

    name: str = "join_pads"

    def __call__(self, graph: Graph) -> Graph:
        return _Join().rewrite(graph)


class _Join(Rewriter):
    acts_on = ("pad",)
    mark = JoinPads

    def build(self, graph: Graph) -> Graph:
        count: dict[Node, int] = {graph.output: 1}
        for node in graph.nodes:
            for arg in node.args:
                count[arg] = count.get(arg, 0) + 1
        found = {n: parts for n in graph.nodes if (parts := joined(n, count))}
        self.changed |= bool(found)
        return self.rebuilt(graph, {node: partial(self.written, node, parts) for node, parts in found.items()})

    def written(self, node: Apply, parts: list[Apply], b: Builder, env: Env) -> Node:
        """The whole, made of its parts."""
        axis = _axis(parts[0])
        assert axis is not None
        whole = undef(b, node.type)
        for part in parts:
            args = whole, lookup(env, part.args[0]), b.constant(part.attrs["low"][axis], INT)
            whole = b.emit(REGISTRY["dynamic_update_slice"], args, {"axis": axis}, node.type)
        return whole


def joined(node: Apply, count: Mapping[Node, int]) -> list[Apply]:
    """The padded arrays of which a sum consists, in order, if they are one behind the other; empty where they are not."""
    if not applies(node, "add") or not node.origin.is_adjoint or not isinstance(node.type, Array):
        return []
    shape = node.type.shape
    if not node.type.is_float or not all(isinstance(d, int) for d in shape) or math.prod(shape) < LEAST:  # type: ignore
        return []
    parts: list[Apply] = []
    stack: list[Node] = list(node.args)
    while stack:
        term = stack.pop()
        if applies(term, "pad"):
            parts.append(term)
        elif applies(term, "add") and term.origin.is_adjoint and count[term] == 1:
            stack += term.args
        else:
            return []
        if len(parts) + len(stack) > MOST_PARTS:
            return []
    axis = _axis(parts[0])
    if axis is None or any(_axis(p) != axis or p.type != node.type or filled(p.args[1]) != 0 for p in parts):
        return []
    parts.sort(key=lambda p: p.attrs["low"][axis])
    place = 0
    for part in parts:
        size = part.args[0].type.shape[axis]
        if part.attrs["low"][axis] != place or size * math.prod(shape[axis + 1 :]) < LEAST_RUN:  # type: ignore
            return []
        place += size
    return parts if place == shape[axis] else []


def _axis(pad: Apply) -> int | None:
    """The one axis along which an array is padded, without gaps."""
    low, high, interior = (pad.attrs[k] for k in ("low", "high", "interior"))
    axes = [k for k, (before, behind) in enumerate(zip(low, high)) if before or behind]
    known = all(isinstance(n, int) and n >= 0 for n in (*low, *high))  # how far may depend on symbolic sizes
    return axes[0] if len(axes) == 1 and not any(interior) and known else None
