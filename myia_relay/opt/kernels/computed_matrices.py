"""A matrix that is computed only to be multiplied by a vector is never stored.

    matvec(f(a, b), x)  =>  reduce_sum(f(a, b) * x, axis 1)

The library multiplies a matrix that is in memory. `alpha * A @ x` would write all of `alpha * A` and read it again, three times
the traffic of the product itself, which waits for memory. The reduction computes each element where it adds it. Rows only: along
columns the library's order of reading is better. Products add in an order of their own anyway.

Input: a closed typed graph without transforms, for an executor that fuses reductions. Output: the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...abstract.types import Array
from ...ir.node import Graph, Node, applies
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Rewriter, all_graphs
from ..analysis.fusion import is_fusable

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class ComputedMatrices:
    """The pass."""

    name: str = "computed_matrices"

    def __call__(self, graph: Graph) -> Graph:
        count: dict[Node, int] = {}
        for g in all_graphs(graph):
            count[g.output] = count.get(g.output, 0) + 1
            for node in g.nodes:
                for arg in node.args:
                    count[arg] = count.get(arg, 0) + 1
        return _MultiplyComputed(count).rewrite(graph)


class _MultiplyComputed(Rewriter):
    def __init__(self, count: dict[Node, int]):
        super().__init__()
        self.count = count

    def node(self, builder, node, args, attrs):
        if not applies(node, "matvec") or attrs["transpose"] or not self.is_computed(node.args[0]):
            return super().node(builder, node, args, attrs)
        self.changed = True
        matrix, vector = args
        row = builder.emit(REGISTRY["reshape"], (vector,), {"shape": (1, matrix.type.shape[1])})
        product = builder.emit(REGISTRY["mul"], (matrix, row))
        return builder.emit(REGISTRY["reduce_sum"], (product,), {"axes": (1,), "keepdims": False})

    def is_computed(self, matrix: Node) -> bool:
        """Whether a matrix is the result of an elementwise operation, which nothing else uses."""
        if self.count.get(matrix) != 1 or not is_fusable(matrix) or not isinstance(matrix.fn, Primitive):  # type: ignore
            return False
        known = isinstance(matrix.type, Array) and matrix.type.dtype in DTYPES
        return known and matrix.fn.kind == "elementwise"  # type: ignore
