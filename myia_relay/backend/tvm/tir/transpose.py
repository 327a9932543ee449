"""Squares of vectors, transposed in registers.

Input: a `Block` and expressions of as many vectors as each has lanes. Output: expressions; all values are named in the block.
"""

from __future__ import annotations

from typing import Any

from .block import Block, shuffle
from .exact import fence


def transposed(b: Block, vectors: list[Any]) -> list[Any]:
    """A square of vectors with rows and columns exchanged.

    First the elements of two vectors are brought into pairs, then pairs are dealt out, those of even and of odd
    numbers: all of these are single instructions.
    """
    n = len(vectors)
    vectors = [b.let(fence(b.let(v))) for v in vectors]
    pairs = [[k + h + (n if odd else 0) for k in range(0, n, 2) for odd in (0, 1)] for h in (0, 1)]
    dealt = [[2 * k + e for k in range(h, n, 2) for e in (0, 1)] for h in (0, 1)]
    groups = [[b.let(shuffle([x, y], picked)) for picked in pairs] for x, y in zip(vectors[::2], vectors[1::2])]
    while len(groups) > 1:
        groups = [
            [b.let(shuffle([x, y], picked)) for picked in dealt for x, y in zip(left, right)]
            for left, right in zip(groups[::2], groups[1::2])
        ]
    return [b.let(fence(v)) for v in groups[0]]
