"""`debug_nans`: after every operation that can make a NaN, a check that raises at the user's line.

This is the last pass. The optimiser could otherwise move operations across the checks, except those that they depend
on.
"""

from __future__ import annotations

from ...abstract.types import Array, Scalar
from ...ir.build import Builder
from ...ir.node import Apply, Graph
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import all_graphs

COMPUTING = ("elementwise", "reduce", "opaque")


def check_nans(graph: Graph) -> Graph:
    """Add the checks, in place, to a graph and all graphs inside of it; returns it."""
    for inner in list(all_graphs(graph)):
        nodes, inner.nodes = inner.nodes, []
        builder = Builder(inner)
        for node in nodes:
            inner.nodes.append(node)
            if makes_floats(node):
                builder.origin = node.origin
                add_check(builder, node)
    return graph


def makes_floats(node: Apply) -> bool:
    """Whether an application computes floats."""
    if not isinstance(node.fn, Primitive) or node.fn.kind not in COMPUTING or node.fn.effect:
        return False
    return isinstance(node.type, Scalar | Array) and node.type.is_float


def add_check(builder: Builder, node: Apply) -> None:
    """Raise FloatingPointError if a value has a NaN."""
    found = builder.emit(REGISTRY["isnan"], (node,))
    if isinstance(node.type, Array):
        found = builder.emit(
            REGISTRY["reduce_any"], (found,), {"axes": tuple(range(len(node.type.shape))), "keepdims": False}
        )
    fine = builder.emit(REGISTRY["logical_not"], (found,))
    where = "the gradient of this" if node.origin.is_adjoint else "this"
    parts = (f"{where} made a NaN ({node.fn.name})",)
    builder.emit(REGISTRY["check"], (fine,), {"exception": FloatingPointError, "parts": parts})


__all__ = ["check_nans"]
