"""Depthwise convolution: each channel has filters of its own.

A row of the result is a sum of as many rows of the image as the window has taps, each times a number that stays in a register.
The image is read from a copy of one channel in which strides and padding are dealt with (`copies`), a band of rows at a time,
so that it stays in the first-level cache. The last vector of a row is written whole where what is behind it in the channel is
computed later. What follows element by element is applied before the result is stored.

Input: an `opaque.Call`, static sizes. Output: statements in its kernel.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx

from ....utils.switches import is_left_out
from ..plan import ITEM
from ..tir import pipeline
from ..tir.block import broadcast, idx, load, shuffle, vload
from ..tir.exact import fma
from .conv import split
from .copies import Copies
from .nests import lanes_for
from .patches import Conv, Operand, at, plus, times

CACHE = 24 << 10  # bytes of a copy in the first-level cache
TAPS = 25  # that stay in registers, or nearly so
SHARE = 1 << 14  # bytes of a channel for each thread; where it is less, what two threads read costs more than it saves
ROWS = 4  # of the result at once: more would not stay in registers
LEAST = 1 << 16  # multiplications below which the code is not worth its compilation


def is_depthwise(s: Conv, groups: int, dtype: str) -> bool:
    """Whether a convolution of so many groups of this shape is computed so."""
    if pipeline.vector_bytes() < 64 or is_left_out("direct_conv") or dtype not in ("float32", "float64"):
        return False
    return groups > 1 and s.channels == 1 and s.taps <= TAPS and groups * s.size_out * s.taps >= LEAST


def depthwise_conv(c: Any, s: Conv, n: Any, groups: int, tasks: int, finish: Any) -> None:
    """Emit it; the arguments are those of `direct_conv`."""
    block, dtype = c.block, c.out_type.dtype
    source, filters, out = c.operand(0), c.operand(1), c.result()
    # Neighbours whose threads share positions, too, find what they read in the caches of their own cores.
    by_rows = tasks > 1 and n == 1 and s.out_height % tasks == 0 and s.size_in * ITEM[dtype] >= tasks * SHARE
    share = s.out_height // tasks if by_rows else s.out_height
    sizes = [Copies(s, dtype, -(-share // k), False) for k in range(1, share + 1)]
    copies = next((each for each in sizes if each.size * ITEM[dtype] <= CACHE), sizes[-1])
    room = copies.size + lanes_for(dtype)  # of which the last vector may read what is undefined
    bands = -(-share // copies.rows)
    together = 1 if by_rows or bands > 1 or not isinstance(n, int) else _together(n * groups, tasks, room * ITEM[dtype])
    scratch = c.scratch(room * together * tasks, dtype)

    def copy(item: Any, plane: Operand, top: Any) -> None:
        copies.emit(block, at(source, times(item, s.size_in)), plane, top)

    def compute(item: Any, plane: Operand, top: Any, end: Any) -> None:
        group, sample = block.let(tirx.Mod(item, idx(groups))), block.let(tirx.Div(item, idx(groups)))
        with block.loop(s.filters, name="f") as f:
            channel = plus(times(group, s.filters), f)
            weights = [block.let(load(filters[0], plus(times(channel, s.taps), t))) for t in range(s.taps)]
            y = at(out, plus(times(item, s.size_out), times(f, s.positions)))

            def finished(value: Any, position: Any, lanes: int) -> Any:
                return value if finish is None else finish(value, sample, channel, position, lanes)

            _rows(c, s, copies, plane, weights, y, top, end, finished)

    def by_bands(task: Any, item: Any, first: Any) -> None:
        """A share of the rows of a channel."""
        plane = at(scratch, times(task, room))
        with block.loop(bands, name="band") as band:
            # The last band may overlap with the one before.
            top = plus(tirx.Min(times(band, copies.rows), idx(share - copies.rows)) if bands > 1 else 0, first)
            top = top if isinstance(top, int) else block.let(top)
            copy(item, plane, top)
            compute(item, plane, top, plus(first, share))

    if by_rows:
        with block.loop(tasks, "parallel", "task") as task:
            first = block.let(times(task, share))
            with block.loop(groups, name="group") as group:
                by_bands(task, group, first)
    elif together > 1:
        with split(block, n * groups // together, tasks) as (task, chunk):
            first, planes = block.let(times(chunk, together)), at(scratch, times(task, room * together))
            for part in (copy, compute):
                with block.loop(together, name="item") as k:
                    item = block.let(plus(first, k))
                    part(item, at(planes, times(k, room)), 0, *([share] if part is compute else []))
    else:
        with split(block, n * groups if isinstance(n, int) else tirx.Mul(n, idx(groups)), tasks) as (task, item):
            by_bands(task, block.let(idx(item)), 0)


def _together(items: int, tasks: int, nbytes: int) -> int:
    """So many channels are copied before they are computed: loads at other offsets wait until what was stored is in the cache."""
    most = next((k for k in (16, 8, 4, 2) if k * nbytes <= CACHE // 4), 1)
    return math.gcd(most, items // tasks) if items % tasks == 0 else 1


def _rows(
    c: Any, s: Conv, copies: Copies, plane: Operand, weights: list, y: Operand, top: Any, end: Any, finished: Any
) -> None:  # fmt: skip
    """The rows of a band of one channel of the result; from the row `end` on another thread computes them, if they are there."""
    block, lanes = c.block, lanes_for(copies.dtype)
    whole, rest = divmod(s.out_width, lanes)
    offsets = [copies.offset(kh, kw) for kh in range(s.kernel[0]) for kw in range(s.kernel[1])]

    def vectors(first: Any, count: int, start: Any, width: int) -> None:
        """A vector of some rows, of which neighbouring ones read mostly the same."""
        begin = block.let(idx(plus(plane[1], times(first, copies.width), start)))
        values: dict[int, Any] = {}
        for k in range(count):
            total: Any = None
            for weight, offset in zip(weights, offsets):
                place = offset + k * copies.width
                if place not in values:
                    values[place] = block.let(vload(plane[0], plus(begin, place), lanes))
                factor = broadcast(weight, lanes)
                total = block.let(
                    tirx.Mul(factor, values[place]) if total is None else fma(factor, values[place], total)
                )
            row = plus(first, k, top)
            position = block.let(idx(plus(times(row, s.out_width), start)))
            if width == lanes:
                block.vstore(y[0], finished(total, position, lanes), plus(y[1], position))
                continue
            # Whether all lanes lie in this thread's rows: then what is wrong is overwritten by those that follow.
            inside = plus(end, (-lanes - start) // s.out_width)
            with block.when(tirx.LE(idx(row), idx(inside))):
                block.vstore(y[0], finished(total, position, lanes), plus(y[1], position))
            with block.otherwise():
                block.vstore(y[0], finished(shuffle([total], range(width)), position, width), plus(y[1], position))

    def rows(first: Any, count: int) -> None:
        if rest:  # before what its last lanes may spoil in the rows below
            vectors(first, count, whole * lanes, rest)
        if whole:
            with block.loop(whole, name="v") as v:
                vectors(first, count, times(v, lanes), lanes)

    if copies.rows >= ROWS:
        with block.loop(copies.rows // ROWS, name="row") as r:
            rows(block.let(times(r, ROWS)), ROWS)
    if copies.rows % ROWS:
        rows(copies.rows - copies.rows % ROWS, copies.rows % ROWS)


__all__ = ["depthwise_conv", "is_depthwise"]
