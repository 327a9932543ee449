"""How many floating-point operations typed code takes: a multiplication and an addition count as two.

Products and convolutions are counted by their sizes, elementwise operations once for each element of their result, sums once for
each element of their operand. Of branches the larger one counts, a loop of unknown length as one iteration,
a recursion as one call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...abstract.dims import Dim, DimLike
from ...abstract.types import Array, Scalar
from ...ir.node import Apply, Constant, Graph

FREE = ("stop_gradient", "cast", "as_scalar", "as_array", "mean_over_examples")


def of_nodes(nodes: Iterable[Apply], known: dict[Graph, DimLike] | None = None) -> DimLike:
    """The operations of applications, one after the other; symbolic where sizes are.

    Args:
        nodes: the applications.
        known: the operations of functions that were counted before; of those in progress none.
    """
    known = {} if known is None else known
    total: DimLike = 0
    for node in nodes:
        total = total + of_application(node, known)
    return total


def of_application(node: Apply, known: dict[Graph, DimLike] | None = None) -> DimLike:
    """The operations of one application; `known` as in `of_nodes`."""
    known = {} if known is None else known
    if isinstance(node.fn, Graph):
        if node.fn not in known:
            known[node.fn] = 0  # for its own calls of itself
            known[node.fn] = of_nodes(node.fn.nodes, known)
        return known[node.fn]
    name, attrs = node.fn.name, node.attrs
    shapes: list[Any] = [getattr(a.type, "shape", ()) for a in node.args]
    if name == "dot":
        rows = shapes[0][1] if attrs.get("transpose_a") else shapes[0][0]
        inner = shapes[0][0] if attrs.get("transpose_a") else shapes[0][1]
        columns = shapes[1][0] if attrs.get("transpose_b") else shapes[1][1]
        return 2 * rows * inner * columns
    if name == "matvec":
        return 2 * shapes[0][0] * shapes[0][1]
    if name == "batched_dot":
        return 2 * _size(node) * shapes[0][1 if attrs.get("transpose_a") else 2]
    if name == "conv2d":
        return 2 * _size(node) * _product(shapes[1][1:])
    if name == "packed_dot":
        return 2 * _size(node) * shapes[0][1]
    if name == "triangular_dot":  # half of a product of whole matrices
        return _size(node) * shapes[0][0 if attrs.get("transpose_a") else 1]
    if name == "conv2d_grad_weight":
        return 2 * _product(shapes[1]) * _product(node.type.shape[1:])
    if name == "map_rows":
        return attrs["rows"] * of_nodes(attrs["body"].nodes, known)
    if name == "conv2d_grad_input":
        return 2 * _product(shapes[0]) * _product(shapes[1][1:])
    if name in ("max_pool", "avg_pool"):
        return _size(node) * _product(attrs["ksize"])
    if name == "for_loop":
        trips = iterations(node)
        return (1 if trips is None else trips) * of_nodes(attrs["body"].nodes, known)
    if name == "while_loop":
        return of_nodes(attrs["cond"].nodes, known) + of_nodes(attrs["body"].nodes, known)
    if name == "cond":
        one, two = (of_nodes(attrs[k].nodes, known) for k in ("then", "orelse"))
        return one if isinstance(one, Dim) or (not isinstance(two, Dim) and one >= two) else two
    if node.fn.kind == "elementwise" and name not in FREE and getattr(node.type, "is_float", False):
        return _size(node)
    if node.fn.kind == "reduce":
        return _product(shapes[0])
    return 0


def iterations(node: Apply) -> DimLike | None:
    """How often a `for_loop` runs its body; None where that is not known."""
    start, stop, step = node.args[:3]
    if isinstance(start, Constant) and isinstance(step, Constant):
        if isinstance(stop, Constant):
            return len(range(int(start.value), int(stop.value), int(step.value)))
        if isinstance(stop, Apply) and getattr(stop.fn, "name", "") == "dim_size" and step.value == 1:
            return stop.attrs["dim"] - int(start.value)
    return None


def _size(node: Apply) -> DimLike:
    return node.type.size if isinstance(node.type, Array) else 1 if isinstance(node.type, Scalar) else 0


def _product(sizes) -> DimLike:
    total: DimLike = 1
    for size in sizes:
        total = total * size
    return total
