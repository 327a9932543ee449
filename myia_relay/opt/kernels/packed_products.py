"""Matrices by which every iteration of a loop multiplies are packed once, before the loop.

    for x in xs:                            P = pack_columns(W.T)
        h = f(x, h @ W.T)           =>      for x in xs:
                                                h = f(x, packed_dot(h, P))

The weights of a recurrent layer are read in every step, and multiply few rows: a mini-batch. A product that finds its matrix
in the order in which it reads it, panel by panel, has nothing to copy or to transpose, its accesses are aligned, and the
hardware fetches what comes next. What is packed takes as much memory as the matrix, while the loop runs.

Input: a program without transforms, for an executor with a kernel for packed matrices. Output: the same program.

Source: K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication" (TOMS 2008), section 4, for the
packing; G. Diamos et al., "Persistent RNNs" (ICML 2016), for doing it once.

Measured (Sapphire Rapids, one thread, float32, CPU time of an iteration of 32, the packing counted in): 20 rows by 650 x 2600
transposed take 0.56 ms and took 0.80, where a panel was transposed for each product; 20 rows by 2600 x 650 take 0.75 and took 0.90
by the BLAS, with the little else that the loop does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.types import numpy_dtype
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, applied
from ...ir.prim import REGISTRY
from ...ir.rewrite import Rewriter, emit_like, lookup, same_interface
from ..analysis.control import iterations

PANEL = 128  # bytes of a row of a panel: two vectors of AVX-512
LEAST = 32  # of what is summed over, and of columns
WORK = 1 << 21  # multiplications of a product: smaller ones find their matrices in the caches
ROWS = (
    5,
    128,
)  # of what is multiplied: for fewer only the speed of memory matters, more are a product that a BLAS likes
ITERATIONS = 4
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class PackedProducts:
    """The pass."""

    name: str = "packed_products"

    def __call__(self, graph: Graph) -> Graph:
        return _Pack().rewrite(graph)


class _Pack(Rewriter):
    acts_on = ("for_loop",)
    mark = PackedProducts

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) == "for_loop" and not self.incomplete(attrs["body"]):
            span = iterations(node)
            if span is not None and len(span) >= ITERATIONS:
                found = packed(builder, node, args, attrs)
                if found is not None:
                    self.changed = True
                    return found
        return super().node(builder, node, args, attrs)


def packed(b: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node | None:
    """A loop that gets the matrices of its products packed; None if it has no such product."""
    body: Graph = attrs["body"]
    first = 1 + attrs["carried"]
    outside: dict[Node, Node] = dict(zip(body.params[first:], args[3 + attrs["carried"] :], strict=True))
    found = [n for n in body.nodes if pays(n) and (isinstance(n.args[1], Constant) or n.args[1] in outside)]
    if not found:
        return None
    new, env = same_interface(body)
    inside = Builder(new)
    made: dict[tuple[Node, bool], tuple[Node, Node]] = {}
    for product in found:
        matrix, transposed = product.args[1], product.attrs["transpose_b"]
        if (matrix, transposed) not in made:
            b.origin = product.origin
            panel = {"transposed": transposed, "width": width(product)}
            value = b.emit(REGISTRY["pack_columns"], (outside[matrix] if matrix in outside else matrix,), panel)
            made[matrix, transposed] = value, new.add_parameter("packed", value.type)
    for inner in body.nodes:
        operands = tuple(lookup(env, a) for a in inner.args)
        if inner in found:
            inside.origin = inner.origin
            _, matrix = made[inner.args[1], inner.attrs["transpose_b"]]
            shape = {"columns": inner.type.shape[1], "width": width(inner)}
            env[inner] = inside.emit(REGISTRY["packed_dot"], (operands[0], matrix), shape, inner.type)
        else:
            env[inner] = emit_like(inside, inner, operands)
    new.output = lookup(env, body.output)
    b.origin = node.origin
    result = b.emit(node.fn, (*args, *(value for value, _ in made.values())), {**attrs, "body": new}, node.type)
    result.name = node.name
    return result


def pays(node: Apply) -> bool:
    """Whether a product is quicker with a packed matrix."""
    if applied(node) != "dot" or node.attrs["transpose_a"] or node.type.dtype not in DTYPES:
        return False
    sizes = (*node.args[0].type.shape, node.type.shape[1])
    if not all(isinstance(size, int) for size in sizes):
        return False
    m, k, n = sizes
    return ROWS[0] <= m <= ROWS[1] and min(n, k) >= LEAST and math.prod(sizes) >= WORK


def width(node: Apply) -> int:
    """The columns of a panel."""
    return PANEL // numpy_dtype(node.type.dtype).itemsize
