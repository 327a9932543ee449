"""`debug_nans`: after every operation that can make a NaN, a check that raises at the user's line.

This is the last pass. The optimiser could otherwise move operations across the checks, except those that they depend
on.
"""

from __future__ import annotations

from ...abstract.types import Array, Scalar
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node
from ...ir.prim import REGISTRY, Primitive, update_of
from ...ir.rewrite import all_graphs
from ...utils.raising import DESCRIBED

COMPUTING = ("elementwise", "reduce", "opaque")


def check_nans(graph: Graph, details: bool = True) -> Graph:
    """Add the checks, in place, to a graph and all graphs inside of it; returns it.

    Args:
        graph: the final graph.
        details: whether messages describe the operands, which takes Python.
    """
    for inner in list(all_graphs(graph)):
        nodes, inner.nodes = inner.nodes, []
        builder = Builder(inner)
        for node in nodes:
            inner.nodes.append(node)
            if makes_floats(node):
                builder.origin = node.origin
                add_check(builder, node, details)
    return graph


def makes_floats(node: Apply) -> bool:
    """Whether an application computes floats."""
    if not isinstance(node.fn, Primitive) or node.fn.kind not in COMPUTING or node.fn.effect:
        return False
    return isinstance(node.type, Scalar | Array) and node.type.is_float


def add_check(builder: Builder, node: Apply, details: bool) -> None:
    """Raise FloatingPointError if a value has a NaN.

    The operands are looked at only where it has one, but arrays must be in memory then.
    """
    found = builder.emit(REGISTRY["isnan"], (node,))
    if isinstance(node.type, Array):
        found = builder.emit(
            REGISTRY["reduce_any"], (found,), {"axes": tuple(range(len(node.type.shape))), "keepdims": False}
        )
    fine = builder.emit(REGISTRY["logical_not"], (found,))
    origin = node.origin.before_inlining
    where = f"the gradient of this{f' ({origin.of})' if origin.of else ''}" if node.origin.is_adjoint else "this"
    parts: list = [f"{where} made a NaN ({node.fn.name})"]
    inputs = (
        node.args[1:] if update_of(node) else node.args
    )  # an array that is changed in place is not kept for a message
    shown = [a for a in dict.fromkeys(inputs) if isinstance(a.type, Scalar | Array)] if details else []
    if shown:
        parts += ["\nits result: ", (0, DESCRIBED, "")]
        for number, operand in enumerate(shown, 1):
            parts += [f"\ninput {number}{origin_of(operand)}: ", (number, DESCRIBED, "")]
        shown.insert(0, node)
    builder.emit(REGISTRY["check"], (fine, *shown), {"exception": FloatingPointError, "parts": tuple(parts)})


def origin_of(operand: Node) -> str:
    """Where an operand comes from, for the message: its name, and the line that computes it."""
    if not isinstance(operand, Apply):
        return ""
    stack = operand.origin.call_stack()
    line = f"line {stack[0].line}" if stack else ""
    what = f"the gradient of {line}" if operand.origin.is_adjoint else line
    return f" ({', '.join(filter(None, (operand.name, what)))})" if stack else ""


__all__ = ["check_nans"]
