"""The matrix that a later product reads at the speed of memory, asked for while convolutions compute.

A product of a large matrix and a vector takes as long as the matrix takes to arrive; convolutions before it leave the way from
memory idle. So their tiles ask for the beginning of the matrix, as much of it as the second-level cache holds beside what they
use themselves. Such a matrix must be there beforehand: a parameter of the graph, or a constant.

Input: the call of a convolution. Output: which memory it asks for. Measured (Sapphire Rapids, one thread): the network DQN, of
15 million operations and a matrix of 6.4 MB, 0.349 ms in place of 0.360.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .....abstract.types import Array
from .....ir.node import Apply, Node
from .....ir.prim import Primitive
from ...plan import ITEM
from ..skinny_products import VECTORS, is_vector

ROOM = 5 << 18  # bytes of the second-level cache for the matrix
FLOPS = 16  # so many for each byte: more bytes would slow the convolution down
PASSING = 1 << 19  # bytes of a convolution's own filters; more pass through the cache and replace what was asked for
FAR = 64  # operations between a convolution and the product


@dataclass(frozen=True)
class NextMatrix:
    """What each thread of a convolution asks for.

    Attributes:
        node: the matrix.
        first: its first element, for the first thread.
        apart: elements from one thread's to the next one's.
        count: how many elements.
    """

    node: Node
    first: int
    apart: int
    count: int


def next_matrix(c: Any, tasks: int) -> NextMatrix | None:
    """What the convolution of a call, on so many threads, asks for."""
    if c.lowering.turn is not None:  # then every other reading goes backwards
        return None
    weights = c.node.args[1].type
    if weights.size * ITEM[weights.dtype] > PASSING:
        return None
    scope, later = c.lowering.scope, 0
    start = scope.position[c.node] + 1
    for node in islice(scope.graph.nodes, start, start + FAR):
        if not isinstance(node.fn, Primitive):
            return None
        if node.fn.name == "conv2d":
            later += _bytes(node, tasks)  # these ask for what is read first
            if later >= ROOM:
                return None
        elif node.fn.name in ("dot", "matvec"):
            return _of_product(node, later, _bytes(c.node, tasks), tasks)
    return None


def _bytes(node: Apply, tasks: int) -> int:
    """How much there is time for, in each thread."""
    weights = node.args[1].type.shape
    sizes = (*node.type.shape, *weights[1:])
    if node.attrs["groups"] != 1 or not all(isinstance(size, int) for size in sizes) or node.type.shape[0] != 1:
        return 0
    flops = 2 * math.prod(sizes)
    return flops // (FLOPS * tasks)


def _of_product(node: Apply, skip: int, most: int, tasks: int) -> NextMatrix | None:
    if node.fn.name == "dot":
        if node.attrs["transpose_a"] or not node.attrs["transpose_b"]:
            return None
        m, matrix = node.type.shape[0], node.args[1]
    else:
        if node.attrs["transpose"]:
            return None
        m, matrix = 1, node.args[0]
    assert isinstance(matrix.type, Array)
    n, k = matrix.type.shape
    dtype = matrix.type.dtype
    if isinstance(matrix, Apply) or dtype not in ("float32", "float64") or not is_vector(m, n, k, dtype):
        return None
    assert isinstance(n, int) and isinstance(k, int) and isinstance(m, int)
    item = ITEM[dtype]
    rows = -(-(n // VECTORS[m]) // tasks) * VECTORS[m] if tasks > 1 else n  # of a thread, as in `vector_product`
    count = min(most, ROOM - skip, rows * k * item - skip) // item
    return NextMatrix(matrix, skip // item, rows * k, count) if count > 0 else None


__all__ = ["NextMatrix", "next_matrix"]
