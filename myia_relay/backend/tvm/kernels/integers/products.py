"""Products of integers along their rows, and the packing of words (`prims.ops.integers.products`).

`dot_shifted` multiplies rows by rows, so both are read where they are: a vector of numbers of each is a vector of words, and the
lanes are added up in the end. What does not fill a vector at the end of a row is multiplied once more with what is before it, which
a mask makes zero. A tile is the products of some rows of either matrix, which stay in registers.

Input: an `opaque.Call`. Output: statements in its kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import tirx

from .....abstract.types import numpy_dtype
from ...tir import pipeline
from ...tir.block import call, const, idx, load, vload, with_lanes
from ...tir.exact import wrapping_add
from ...tir.vecmath import elementwise
from ..conv import split
from ..patches import at, pieces, plus, times
from ..tiles.multiply_add import MultiplyAdd

TILE = 4, 4  # rows of either matrix
LONG = 8  # rows of the second one, where the first has few
LEAST = 4  # words of a vector
PARALLEL = 1 << 18  # multiplications from which several threads are worth it


def _per_word(dtype: str) -> int:
    return 2 if dtype == "int16" else 4


def dots(c: Any) -> None:
    """`dot_shifted`."""
    (m, k), n = c.types[0].shape, c.types[1].shape[0]
    if 0 in (m, n):
        return
    per = _per_word(c.types[0].dtype)
    lanes = pipeline.vector_bytes() // 4
    if isinstance(k, int):
        while lanes >= LEAST and lanes * per > k:
            lanes //= 2
    if not isinstance(k, int) or lanes < LEAST or not isinstance(n, int):
        _plain(c, m, n, k)
        return
    tasks = c.tasks(m * n * k, PARALLEL)
    few = isinstance(m, int) and m < TILE[0]
    wide = LONG if few else TILE[1]
    tiles = n // wide

    def rows(first: Any, count: int) -> None:
        """The products of some rows of the first matrix, divided among threads by rows of the second."""
        if tiles:
            with split(c.block, tiles, tasks) as (_, j):
                _tile(c, first, count, c.block.let(times(j, wide)), wide, lanes)
        done = tiles * wide
        for start, few_ in pieces(n - done, wide):
            _tile(c, first, count, done + start, few_, lanes)

    if isinstance(m, int):
        if m >= TILE[0]:
            with c.block.loop(m // TILE[0], name="i") as i:
                rows(c.block.let(times(i, TILE[0])), TILE[0])
        for start, count in pieces(m % TILE[0], 2):
            rows(m - m % TILE[0] + start, count)
    else:
        with c.block.loop(c.dim(m), name="i") as i:
            rows(i, 1)


def _tile(c: Any, i: Any, rows: int, j: Any, columns: int, lanes: int) -> None:
    """The products of `rows` rows of the first matrix, from the i-th on, and `columns` of the second."""
    block, (a, b), out = c.block, (c.operand(0)[0], c.operand(1)[0]), c.result()[0]
    (_, k), n, dtype = c.types[0].shape, c.types[1].shape[0], c.types[0].dtype
    per = _per_word(dtype)
    step = lanes * per
    multiply_add = MultiplyAdd(block, "words16" if dtype == "int16" else "words8")
    kind = with_lanes("int32", lanes)
    sums = [[block.cell(const(0, kind), "acc") for _ in range(columns)] for _ in range(rows)]
    left = [block.let(idx(times(plus(i, r), k))) for r in range(rows)]
    right = [block.let(idx(times(plus(j, s), k))) for s in range(columns)]
    shift = const(-0x7F7F7F80, kind) if dtype == "int8" else None  # the bits 0x80808080

    def words(buffer: Any, place: Any) -> Any:
        return block.let(call("tirx.reinterpret", kind, vload(buffer, place, step)))

    def multiply(at_: Any, mask: Any = None) -> None:
        values = []
        for row in left:
            value = words(a, plus(row, at_))
            if shift is not None:
                value = block.let(tirx.BitwiseXor(value, shift))
            values.append(multiply_add.image(value if mask is None else block.let(tirx.BitwiseAnd(value, mask))))
        for s, row in enumerate(right):
            factor = multiply_add.filters(words(b, plus(row, at_)))
            for accs, value in zip(sums, values):
                block.store(accs[s], multiply_add(factor, value, load(accs[s], 0)), 0)

    with block.loop(k // step, name="k") as t:
        multiply(block.let(times(t, step)))
    if rest := k % step:
        kept = np.arange(step) >= step - rest
        bits = np.where(kept, -1, 0).astype("int16" if per == 2 else "int8").view("<i4")
        mask = block.local(kind, 1, "mask")
        store = block.local("int32", lanes, "bits")
        for lane, word in enumerate(bits):
            block.store(store, tirx.IntImm("int32", int(word)), lane)
        block.store(mask, vload(store, 0, lanes), 0)
        multiply(k - step, load(mask, 0))
    for r, accs in enumerate(sums):
        for s, acc in enumerate(accs):
            total = block.folded(load(acc, 0), wrapping_add)
            block.store(out, total, plus(times(plus(i, r), n), j, s))


def _plain(c: Any, m: Any, n: Any, k: Any) -> None:
    """Number by number: short rows, and sizes that are symbolic."""
    block, b, (left, right), out = c.block, c.b, (c.operand(0)[0], c.operand(1)[0]), c.result()[0]
    inner = b.dim(k)
    with block.loop(c.dim(m)) as i, block.loop(c.dim(n)) as j:
        total = block.cell(const(0, "int32"))
        with block.loop(inner) as t:
            x = tirx.Cast("int32", load(left, tirx.Add(tirx.Mul(i, inner), t)))
            if c.types[0].dtype == "int8":
                x = tirx.Add(x, tirx.IntImm("int32", 128))
            y = tirx.Cast("int32", load(right, tirx.Add(tirx.Mul(j, inner), t)))
            block.store(total, wrapping_add(load(total, 0), tirx.Mul(x, y)), 0)
        block.store(out, load(total, 0), tirx.Add(tirx.Mul(i, b.dim(n)), j))


def pack(c: Any) -> None:
    """`pack_words`: as many planes of the image at once as a word has numbers."""
    c.static(*c.types[0].shape[1:])
    (count, channels, height, width), dtype = c.types[0].shape, c.types[0].dtype
    groups, shift, per, plane = c.attrs["groups"], c.attrs["shift"], _per_word(dtype), height * width
    own = channels // groups
    each = -(-own // per)
    if 0 in c.out_type.shape:
        return
    block, source, out = c.block, c.operand(0), c.result()
    bits = numpy_dtype(dtype).itemsize * 8

    def words(k: Any, planes: int) -> None:
        """The k-th word of a group of a sample, of so many planes."""
        x = at(source, times(plus(times(item, own), times(k, per)), plane))
        y = at(out, times(plus(times(item, each), k), plane))
        flip = sum(shift << (bits * p) for p in range(planes))
        flip -= (1 << 32) if flip >= 1 << 31 else 0

        def put(i: Any, lanes: int) -> None:
            kind = with_lanes("int32", lanes)
            total: Any = None
            for p in range(planes):
                number = vload(x[0], plus(x[1], i, p * plane), lanes)
                number = tirx.Cast(with_lanes(f"uint{bits}", lanes), number)
                number = block.let(tirx.Cast(kind, number))
                if p:
                    number = block.let(tirx.LShift(number, const(bits * p, kind)))
                total = number if total is None else block.let(tirx.BitwiseOr(total, number))
            if shift:
                total = tirx.BitwiseXor(total, const(flip, kind))
            block.vstore(y[0], total, plus(y[1], i))

        elementwise(block, plane, pipeline.vector_bytes() // 4, put)

    total = count * groups if isinstance(count, int) else tirx.Mul(c.dim(count), idx(groups))
    with split(block, total, 1) as (_, chosen):
        item = block.let(idx(chosen))
        if own // per:
            with block.loop(own // per, name="k") as k:
                words(k, per)
        if own % per:
            words(own // per, own % per)


__all__ = ["dots", "pack"]
