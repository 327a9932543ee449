"""Depthwise convolution of numbers of 8 bits: each channel has filters of its own (`depthwise_words`).

A word of the filters holds four taps that lie side by side in a row of the window. So the word that it is multiplied by has four
neighbours of a row of the image: one shuffle of bytes makes the words of a vector of positions, and a row of the image is shuffled
once for all rows of the result that see it. Strides are in the pattern of the shuffle.

    word[p] = x[stride * p + 4 k ... stride * p + 4 k + 3]        out[p] += sum of the products of word[p] and w[4 k ... 4 k + 3]

The image is read from copies of its planes with the padding stored, of several channels before they are computed: loads at other
offsets wait until what was stored is in the cache. Where planes are narrow, a vector holds positions of several rows. What follows
element by element is applied before the result is stored.

Input: an `opaque.Call`, static sizes. Output: statements in its kernel.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx

from .....prims.ops.integers.products import SHIFT
from ...tir import pipeline
from ...tir.block import call, const, idx, load, shuffle, vload, with_lanes
from ..conv import split
from ..patches import Conv, Operand, along_row, at, fill, plus, times
from ..tiles.multiply_add import MultiplyAdd

PARALLEL = 400_000  # operations from which several threads are worth it
CACHE = 16 << 10  # bytes of copies in the first-level cache
ROWS = 4  # of the result at once, whose sums stay in registers


def emit(c: Any) -> None:
    """`depthwise_words`."""
    (batch, groups, height, width), filters, kernel = c.types[0].shape, c.types[1].shape[0], c.attrs["kernel"]
    c.static(groups, height, width, filters)
    if 0 in c.out_type.shape:
        return
    (top, bottom), (left, right) = c.attrs["padding"]
    s = Conv(1, height, width, filters // groups, tuple(kernel), tuple(c.attrs["strides"]), (top, bottom, left, right))
    tasks = c.tasks(2 * batch * groups * s.size_out * s.taps, PARALLEL)
    n = c.dim(batch)
    d = _Depthwise(c, s)
    total = n * groups if isinstance(n, int) else tirx.Mul(n, idx(groups))
    together = _together(total, tasks, d.size) if isinstance(total, int) else 1
    planes = c.scratch((together * d.size + pipeline.vector_bytes()) * tasks, "uint8")
    room = together * d.size + pipeline.vector_bytes()
    fill(c.block, planes, room * tasks, c.attrs["fill"])
    count = total // together if isinstance(total, int) else total
    with split(c.block, count, tasks) as (task, chunk):
        own, first = at(planes, times(task, room)), c.block.let(times(idx(chunk), together))
        for part in (d.copy, d.compute):
            with c.block.loop(together, name="item") as k:
                part(c.block.let(plus(first, k)), at(own, times(k, d.size)), groups)


def _together(items: int, tasks: int, nbytes: int) -> int:
    """How many channels are copied before they are computed."""
    most = next((k for k in (32, 16, 8, 4, 2) if k * nbytes <= CACHE), 1)
    return math.gcd(most, items // tasks) if items % tasks == 0 else 1


class _Depthwise:
    """Emits the statements of a channel.

    Attributes:
        pitch: bytes of a row of a copy.
        size: bytes of a copy.
        together: rows of the result in one vector.
    """

    def __init__(self, c: Any, s: Conv):
        self.c, self.s, self.block = c, s, c.block
        self.lanes = pipeline.vector_bytes() // 4
        self.words = -(-s.kernel[1] // 4)
        self.pitch = max(s.width + s.pads[2] + s.pads[3], (s.out_width - 1) * s.strides[1] + s.kernel[1])
        self.size = self.pitch * max(s.height + s.pads[0] + s.pads[1], (s.out_height - 1) * s.strides[0] + s.kernel[0])
        self.multiply_add = MultiplyAdd(c.block, "words8")
        self.together = self._rows_of_a_vector()

    def _rows_of_a_vector(self) -> int:
        s = self.s
        most = min(self.lanes // s.out_width, s.out_height)
        while most > 1 and self._reach(most) > 4 * self.lanes:
            most -= 1
        return max(most, 1)

    def _reach(self, rows: int) -> int:
        """Bytes from the first to behind the last that the words of so many rows have."""
        s = self.s
        width = s.out_width if rows > 1 else self.lanes
        return (rows - 1) * s.strides[0] * self.pitch + (width - 1) * s.strides[1] + 4

    def copy(self, item: Any, plane: Operand, groups: int) -> None:
        """Copy a plane of the image into the place that the padding surrounds; 128 is added to signed numbers.

        Not where they are read: LLVM does not come to an end over such a sum of shuffled bytes.
        """
        s, source = self.s, self.c.operand(0)
        with self.block.loop(s.height, name="row") as r:
            x = at(source, plus(times(item, s.size_in), times(r, s.width)))
            y = at(plane, plus(times(plus(r, s.pads[0]), self.pitch), s.pads[2]))
            along_row(
                self.block,
                y,
                s.width,
                lambda i, k: self.block.vstore(y[0], self.unsigned(vload(x[0], plus(x[1], i), k), k), plus(y[1], i)),
            )

    def unsigned(self, numbers: Any, lanes: int) -> Any:
        """Bytes of the image, 128 added to signed ones."""
        if self.c.types[0].dtype != "int8":
            return numbers
        dtype = with_lanes("uint8", lanes)
        return tirx.BitwiseXor(call("tirx.reinterpret", dtype, numbers), const(SHIFT, dtype))

    def compute(self, item: Any, plane: Operand, groups: int) -> None:
        """The filters of a channel."""
        c, s, block = self.c, self.s, self.block
        filters, out = c.operand(1), c.result()
        group, sample = block.let(tirx.Mod(item, idx(groups))), block.let(tirx.Div(item, idx(groups)))
        count = s.kernel[0] * self.words
        with block.loop(s.filters, name="f") as f:
            channel = block.let(plus(times(group, s.filters), f))
            taps = [
                self.multiply_add.factor(block.let(load(filters[0], plus(times(channel, count), t))), self.lanes)
                for t in range(count)
            ]
            y = at(out, plus(times(item, s.size_out), times(f, s.positions)))

            def store(total: Any, position: Any, width: int) -> None:
                if width < self.lanes:
                    total = shuffle([total], range(width))
                if c.finish is not None:
                    total = c.finish(total, sample, channel, position, width)
                block.vstore(y[0], total, plus(y[1], position))

            self.rows(plane, taps, store)

    def rows(self, plane: Operand, taps: list, store: Any) -> None:
        """All rows of a channel of the result."""
        s, block, width = self.s, self.block, self.s.out_width
        if self.together > 1:
            step = self.together
            whole, rest = divmod(s.out_height, step)
            with block.loop(whole, name="row") as r:
                self.vectors(plane, taps, store, block.let(times(r, step)), 1, 0, step * width)
            if rest:
                self.vectors(plane, taps, store, s.out_height - rest, 1, 0, rest * width)
            return
        whole, rest = divmod(width, self.lanes)

        def some(first: Any, count: int) -> None:
            if rest:  # before what its last lanes may spoil in the rows below
                self.vectors(plane, taps, store, first, count, whole * self.lanes, rest)
            if whole:
                with block.loop(whole, name="v") as v:
                    self.vectors(plane, taps, store, first, count, block.let(times(v, self.lanes)), self.lanes)

        if s.out_height >= ROWS:
            with block.loop(s.out_height // ROWS, name="row") as r:
                some(block.let(times(r, ROWS)), ROWS)
        if s.out_height % ROWS:
            some(s.out_height - s.out_height % ROWS, s.out_height % ROWS)

    def vectors(self, plane: Operand, taps: list, store: Any, first: Any, count: int, start: Any, width: int) -> None:
        """A vector of some rows, which see mostly the same rows of the image.

        Args:
            plane: the copy.
            taps: words of the filter, for all lanes.
            store: (sums, position, lanes) -> None.
            first: of the rows of the result.
            count: of them; a vector holds one, or `together`.
            start: column.
            width: how many lanes are of the result.
        """
        s, block = self.s, self.block
        begin = block.let(idx(plus(plane[1], times(first, s.strides[0] * self.pitch), times(start, s.strides[1]))))
        words: dict[tuple[int, int], Any] = {}
        for k in range(count):
            total: Any = const(0, with_lanes("int32", self.lanes))
            for t, tap in enumerate(taps):
                place = k * s.strides[0] + t // self.words, t % self.words
                if place not in words:
                    words[place] = self.multiply_add.image(self.neighbours(plane, begin, *place))
                total = block.let(self.multiply_add(tap, words[place], total))
            position = block.let(idx(plus(times(plus(first, k), s.out_width), start)))
            if width == self.lanes:
                store(total, position, width)
                continue
            # Whether all lanes lie in the plane: then what is wrong is overwritten by those that follow.
            with block.when(tirx.LE(position, idx(s.positions - self.lanes))):
                store(total, position, self.lanes)
            with block.otherwise():
                store(total, position, width)

    def neighbours(self, plane: Operand, begin: Any, row: int, word: int) -> Any:
        """A word of four neighbours in a row of the image for each lane."""
        s, block, size = self.s, self.block, 4 * self.lanes
        found = block.let(vload(plane[0], plus(begin, row * self.pitch + 4 * word), size))
        starts = []
        for lane in range(self.lanes):
            down, along = divmod(lane, s.out_width) if self.together > 1 else (0, lane)
            start = down * s.strides[0] * self.pitch + along * s.strides[1]
            starts.append(start if start + 4 <= size else 0)  # of a lane that is not in the result
        picked = shuffle([found], [start + k for start in starts for k in range(4)])
        return block.let(call("tirx.reinterpret", with_lanes("int32", self.lanes), block.let(picked)))


__all__ = ["emit"]
