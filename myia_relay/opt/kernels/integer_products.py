"""Products of floats that are small integers become products of integers.

    conv2d(cast(x) - z, cast(w))  in float64      =>  cast(conv2d_integer(x - z, w))      x, w, z of 8 bits

Imported quantised models (ONNX's QLinearConv, ConvInteger, QLinearMatMul, MatMulInteger) have their meaning in float64, which holds
the sums exactly. So does int32, as long as there are not too many terms, and the kernels of words (`integer_words`) are several
times as quick. Zero points are values of a run: what they are subtracted from has 9 bits then, and words hold two numbers. Without
one, uint8 by int8 takes words of four.

Input: a program without transforms, for an executor with kernels for words. Output: the same program, the same results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.types import Array
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, applied, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Rewriter
from ...prims.ops.nn import with_gaps

SMALL = ("uint8", "int8")
TERMS = (1 << 31) // (255 * 255) - 1
"""Products of numbers of 9 bits whose sum fits into int32."""
PRODUCTS = ("conv2d", "dot")


@dataclass(frozen=True)
class IntegerProducts:
    """The pass."""

    name: str = "integer_products"

    def __call__(self, graph: Graph) -> Graph:
        return _UseIntegers().rewrite(graph)


class _UseIntegers(Rewriter):
    acts_on = PRODUCTS
    mark = IntegerProducts

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) in PRODUCTS and node.type.dtype == "float64":
            builder.origin = node.origin
            found = _in_integers(builder, node, args, attrs)
            if found is not None:
                self.changed = True
                return found
        return super().node(builder, node, args, attrs)


@dataclass(frozen=True)
class SmallIntegers:
    """An operand: integers of 8 bits, less a zero point of 8 bits where there is one."""

    integers: Node
    zero: Node | None


def small_integers(node: Node) -> SmallIntegers | None:
    """What an operand of floats is a cast of, less a zero point."""
    if applies(node, "sub") and (zero := _cast_of(node.args[1])) is not None:
        whole = _cast_of(node.args[0])
        return None if whole is None else SmallIntegers(whole, zero)
    whole = _cast_of(node)
    return None if whole is None else SmallIntegers(whole, None)


def _cast_of(node: Node) -> Node | None:
    """Integers of 8 bits, perhaps reshaped, whose cast a node is."""
    if applies(node, "cast") and node.args[0].type.dtype in SMALL:
        return node.args[0]
    if isinstance(node, Constant) and isinstance(node.type, Array):
        value = np.asarray(node.value)
        for dtype in SMALL:
            if np.array_equal(value, value.astype(dtype)):
                return Constant(value.astype(dtype), Array(dtype, node.type.shape), node.origin)
    return None


def _in_integers(b: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node | None:
    """A product in integers; None where its operands are none, or its sums might be too large."""
    left, right = (small_integers(a) for a in args)
    if left is None or right is None:
        return None
    shape = args[1].type.shape
    sizes = shape[1:] if applied(node) == "conv2d" else (shape[1 if attrs["transpose_b"] else 0],)
    if not all(isinstance(size, int) for size in (*sizes, *node.type.shape[1:])) or int(np.prod(sizes)) > TERMS:
        return None
    bytes_alone = left.zero is None and right.zero is None and right.integers.type.dtype == "int8"
    x, w = (_operand(b, each, bytes_alone) for each in (left, right))
    if applied(node) == "conv2d":
        filters, rest = with_gaps(b.var(w), attrs)
        sums = b.emit(REGISTRY["conv2d_integer"], (x, filters.node), rest)
    else:
        if attrs["transpose_a"]:
            return None
        w = w if attrs["transpose_b"] else b.emit(REGISTRY["transpose"], (w,), {"perm": (1, 0)})
        sums = b.emit(REGISTRY["dot_integer"], (x, w))
    return b.emit(REGISTRY["cast"], (sums,), {"dtype": "float64"})


def _operand(b: Builder, found: SmallIntegers, bytes_alone: bool) -> Node:
    if bytes_alone:
        return found.integers
    wide = b.emit(REGISTRY["cast"], (found.integers,), {"dtype": "int16"})
    if found.zero is None:
        return wide
    return b.emit(REGISTRY["sub"], (wide, b.emit(REGISTRY["cast"], (found.zero,), {"dtype": "int16"})))


__all__ = ["IntegerProducts"]
