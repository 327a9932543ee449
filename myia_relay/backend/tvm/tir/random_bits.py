"""The random number generator on vectors: Threefry-2x32-20 as additions, rotations and exclusive ors of 32 bits.

Input: a `Block`, and words of 64 bits, numbers or vectors. Output: a word. See `prims.ops.random`.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ....prims.rules.threefry import PARITY, ROTATIONS
from .block import Block, broadcast, const, dtype_of, lanes_of, llvm, with_lanes
from .exact_int import wrapping_add


def threefry2x32(b: Block, key: Any, counter: Any) -> Any:
    """The random word of a key and a counter; what depends on the key alone is computed once where it is a number."""
    lanes = max(lanes_of(dtype_of(key)), lanes_of(dtype_of(counter)))
    half = with_lanes("uint32", lanes)

    def words(x: Any) -> list[Any]:
        x, own = b.once(x), lanes_of(dtype_of(x))
        high = tirx.RShift(x, const(32, dtype_of(x)))
        return [b.let(tirx.Cast(with_lanes("uint32", own), part)) for part in (high, x)]

    def wide(x: Any) -> Any:
        return x if lanes_of(dtype_of(x)) == lanes else broadcast(x, lanes)

    k0, k1 = words(key)
    k2 = b.let(tirx.BitwiseXor(tirx.BitwiseXor(k0, k1), const(PARITY, dtype_of(k0))))
    keys = (k0, k1, k2)
    x0, x1 = (b.let(wrapping_add(wide(x), wide(k))) for x, k in zip(words(counter), keys))
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = b.let(wrapping_add(x0, x1))
            x1 = b.let(tirx.BitwiseXor(llvm("fshl", half, x1, x1, const(r, half)), x0))
        x0 = b.let(wrapping_add(x0, wide(keys[(i + 1) % 3])))
        step = b.let(wrapping_add(keys[(i + 2) % 3], const(i + 1, dtype_of(k0))))
        x1 = b.let(wrapping_add(x1, wide(step)))
    word = with_lanes("uint64", lanes)
    return tirx.BitwiseOr(tirx.LShift(tirx.Cast(word, x0), const(32, word)), tirx.Cast(word, x1))
