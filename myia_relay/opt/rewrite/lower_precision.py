"""Operands of products rounded to bfloat16, for `@relay(precision="bfloat16")`: everything else stays float32.

    dot(x, w)  =>  dot(rounded(x), rounded(w))      rounded(x) = cast(cast(x, bfloat16), float32)

Products of bfloat16 are exact in float32, in which they are added up. This is what JAX does under
`default_matmul_precision("bfloat16")`, in derivatives too. Numbers that are stored, such as weights, keep their digits.

Input: a closed typed graph without transforms. Output: the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Array
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node
from ...ir.prim import REGISTRY
from ...ir.rewrite import Rewriter

PRODUCTS = ("dot", "batched_dot", "matvec", "conv2d", "conv2d_grad_input", "conv2d_grad_weight")


@dataclass(frozen=True)
class LowerPrecision:
    """The pass.

    Attributes:
        dtype: what operands are rounded to.
    """

    dtype: str = "bfloat16"
    name: str = "lower_precision"

    def __call__(self, graph: Graph) -> Graph:
        return _Round(self.dtype).rewrite(graph)


class _Round(Rewriter):
    acts_on = PRODUCTS

    def __init__(self, dtype: str):
        super().__init__()
        self.dtype = dtype
        self.rounded: dict[Node, Node] = {}

    def node(self, builder: Builder, node: Apply, args: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        if getattr(node.fn, "name", None) not in PRODUCTS or isinstance(node.fn, Graph):
            return super().node(builder, node, args, attrs)
        if not any(isinstance(a.type, Array) and a.type.dtype == "float32" for a in args):
            return super().node(builder, node, args, attrs)
        self.changed = True
        builder.origin = node.origin
        return super().node(builder, node, [self.round(builder, a) for a in args], attrs)

    def round(self, builder: Builder, value: Node) -> Node:
        """A rounded operand, once for all its uses."""
        if value not in self.rounded:
            narrow = builder.emit(REGISTRY["cast"], (value,), {"dtype": self.dtype})
            self.rounded[value] = builder.emit(REGISTRY["cast"], (narrow,), {"dtype": "float32"})
        return self.rounded[value]


__all__ = ["LowerPrecision"]
