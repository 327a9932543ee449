"""Convolutions of images whose height and width only a run tells: blocks of output rows, patches as columns, and BLAS.

Idea: as in `conv`, with sizes that are expressions. A block is so many rows of the result that its columns fit into the
second-level cache; blocks of all samples are what threads share, so that one large image keeps all busy. With `col` of a block,

    y = w @ col,    dw += dy @ col.T,    dx = col2im(w.T @ dy),

where the gradient of the input goes by blocks of channels first, for rows overlap there.

Input: a call of an opaque kernel (see `opaque.Call`), and the shape of the convolution with dimensions in place of ints. Output:
statements emitted into it.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ...tir import threads
from ...tir.block import idx, load, vload
from ...tir.pipeline import lanes as vector_lanes
from ...tir.vecmath import elementwise
from .. import blas
from ..conv import add_to, split
from ..patches import Conv, Operand, at, fill, in_pieces, plus, times
from .open_winograd import LEAST_TILES, OpenWinograd, is_open_winograd

CELLS = 1 << 16
"""Elements of the columns of a block, about; one row has more where it must."""
CHANNELS = 16
"""Channels of a block of the gradient of the input."""


class OpenConv:
    """A convolution of images of open size.

    Args:
        c: the call.
        s: its shape, of one group; heights and widths are dimensions.
        tasks: threads.
    """

    def __init__(self, c: Any, s: Conv, tasks: int):
        self.c, self.s, self.tasks, self.b = c, s, tasks, c.block
        self.groups = c.attrs["groups"]
        self.dtype = c.out_type.dtype
        self.height, self.width, self.size_in = (c.block.let(c.b.dim(d)) for d in (s.height, s.width, s.size_in))
        self.rows_out, self.columns, self.positions, self.size_out = (
            c.block.let(c.b.dim(d)) for d in (s.out_height, s.out_width, s.positions, s.size_out)
        )
        self.items = c.block.let(c.b.dim(c.types[0].shape[0] * self.groups))

    # Blocks.

    def rows_of(self, patch: int) -> tuple[Any, Any, Any]:
        """Rows of a block, how many blocks an image has, and elements of a row of `col`, where `col` has `patch` rows."""
        b, row = self.b, tirx.Max(tirx.Mul(self.columns, idx(patch)), idx(1))
        share = tirx.Div(plus(self.rows_out, self.tasks - 1), idx(self.tasks))
        rows = b.let(tirx.Max(tirx.Min(share, tirx.Div(idx(CELLS), row)), idx(1)))
        count = tirx.Div(tirx.Add(self.rows_out, tirx.Sub(rows, idx(1))), rows)
        blocks = b.let(tirx.Select(tirx.GT(self.positions, idx(0)), count, idx(0)))
        return rows, blocks, b.let(tirx.Mul(rows, self.columns))

    def scratch(self, patch: int) -> Operand:
        """Columns for each thread."""
        return self.c.scratch((self.s.out_width * patch + CELLS) * self.tasks, self.dtype)

    def own(self, scratch: Operand, task: Any, patch: int) -> Operand:
        """The columns of a thread."""
        return at(scratch, tirx.Mul(idx(task), plus(tirx.Mul(self.columns, idx(patch)), CELLS)))

    def part(self, block: Any, rows: Any) -> tuple[Any, Any]:
        """First row of a block, and how many it has."""
        first = self.b.let(tirx.Mul(block, rows))
        return first, self.b.let(tirx.Min(rows, tirx.Sub(self.rows_out, first)))

    # Columns.

    def taps(self, channels: Any, first: Any, count: Any, body: Any) -> None:
        """Call `body(channel, tap, output row, image row, low, high)` for all rows of columns that see rows of the image, and
        `body(..., None, low, high)` for those that see padding: the columns from `low` to `high` see the image."""
        b, s = self.b, self.s
        (kh, kw), (sh, sw), (down, across), (top, _, left, _) = s.kernel, s.strides, s.dilations, s.pads
        with b.loop(channels, name="c") as c, b.loop(kh, name="kh") as i, b.loop(kw, name="kw") as j:
            tap = b.let(tirx.Add(tirx.Mul(i, idx(kw)), j))
            before = tirx.Sub(idx(left), times(j, across))
            low = tirx.Max(tirx.FloorDiv(plus(before, sw - 1), idx(sw)), idx(0))
            low = b.let(tirx.Min(low, self.columns))
            high = tirx.Add(tirx.FloorDiv(tirx.Add(tirx.Sub(self.width, idx(1)), before), idx(sw)), idx(1))
            high = b.let(tirx.Max(tirx.Min(high, self.columns), low))
            with b.loop(count, name="oh") as r:
                row = b.let(tirx.Add(tirx.Mul(tirx.Add(first, r), idx(sh)), tirx.Sub(times(i, down), idx(top))))
                with b.when(tirx.And(tirx.GE(row, idx(0)), tirx.LT(row, self.height))):
                    body(c, tap, r, row, low, high, tirx.Sub(tirx.Mul(low, idx(sw)), before))
                with b.otherwise():
                    body(c, tap, r, None, low, high, None)

    def gather(self, x: Operand, col: Operand, first: Any, count: Any, stride: Any) -> None:
        """Write the columns of a block of rows of one sample."""
        b, lanes, step = self.b, vector_lanes(self.dtype), self.s.strides[1]

        def body(c: Any, tap: Any, r: Any, row: Any, low: Any, high: Any, start: Any) -> None:
            line = tirx.Add(tirx.Mul(c, idx(self.s.taps)), tap)
            to = b.let(at(col, tirx.Add(tirx.Mul(line, stride), tirx.Mul(r, self.columns)))[1])
            if row is None:
                fill(b, (col[0], to), self.columns)
                return
            place = tirx.Add(tirx.Mul(tirx.Add(tirx.Mul(c, self.height), row), self.width), start)
            source = b.let(at(x, place)[1])
            target = b.let(tirx.Add(to, low))
            fill(b, (col[0], to), low)
            if step == 1:
                elementwise(
                    b,
                    tirx.Sub(high, low),
                    lanes,
                    lambda k, n: b.vstore(col[0], vload(x[0], tirx.Add(source, k), n), tirx.Add(target, k)),
                )
            else:
                with b.loop(tirx.Sub(high, low), name="ow") as k:
                    b.store(col[0], load(x[0], tirx.Add(source, tirx.Mul(k, idx(step)))), tirx.Add(target, k))
            fill(b, (col[0], tirx.Add(to, high)), tirx.Sub(self.columns, high))

        self.taps(self.s.channels, first, count, body)

    def scatter(self, col: Operand, dx: Operand, channels: Any, first: Any, count: Any, stride: Any) -> None:
        """Add the columns of a block of rows to where their elements came from."""
        b, lanes, step = self.b, vector_lanes(self.dtype), self.s.strides[1]

        def body(c: Any, tap: Any, r: Any, row: Any, low: Any, high: Any, start: Any) -> None:
            if row is None:
                b.emit(tirx.IntImm("int32", 0))
                return
            line = tirx.Add(tirx.Mul(c, idx(self.s.taps)), tap)
            source = at(col, tirx.Add(tirx.Mul(line, stride), tirx.Add(tirx.Mul(r, self.columns), low)))[1]
            place = tirx.Add(tirx.Mul(tirx.Add(tirx.Mul(c, self.height), row), self.width), start)
            source, target = b.let(source), b.let(at(dx, place)[1])

            def one(k: Any, n: int) -> None:
                there = tirx.Add(target, k)
                b.vstore(dx[0], tirx.Add(vload(dx[0], there, n), vload(col[0], tirx.Add(source, k), n)), there)

            if step == 1:
                elementwise(b, tirx.Sub(high, low), lanes, one)
            else:
                with b.loop(tirx.Sub(high, low), name="ow") as k:
                    there = tirx.Add(target, tirx.Mul(k, idx(step)))
                    b.store(dx[0], tirx.Add(load(dx[0], there), load(col[0], tirx.Add(source, k))), there)

        self.taps(channels, first, count, body)

    # The three products.

    def forward(self) -> None:
        """y = w * x."""
        b, s, c = self.b, self.s, self.c
        x, w, y = c.operand(0), c.operand(1), c.result()
        rows, blocks, stride = self.rows_of(s.patch)
        scratch = self.scratch(s.patch)
        with split(b, b.let(tirx.Mul(self.items, blocks)), self.tasks) as (task, j):
            item, col = b.let(tirx.Div(j, blocks)), self.own(scratch, task, s.patch)
            first, count = self.part(tirx.Mod(j, blocks), rows)
            self.gather(at(x, tirx.Mul(item, self.size_in)), col, first, count, stride)
            filters = at(w, tirx.Mul(tirx.Mod(item, idx(self.groups)), idx(s.weights)))
            out = at(y, tirx.Add(tirx.Mul(item, self.size_out), tirx.Mul(first, self.columns)))
            wide = b.let(tirx.Mul(count, self.columns))
            blas.gemm(b, s.filters, wide, s.patch, filters, col, out, ldx=stride, ldc=self.positions)
            if c.finish is not None:
                self.complete(item, out, b.let(tirx.Mul(first, self.columns)), wide)

    def complete(self, item: Any, out: Operand, first: Any, count: Any) -> None:
        """Apply what follows to so many positions of all filters of a sample and group, from the position `first` on."""
        b, s, finish = self.b, self.s, self.c.finish
        sample, group = b.let(tirx.Div(item, idx(self.groups))), tirx.Mod(item, idx(self.groups))
        with b.loop(s.filters, name="o") as o:
            channel = b.let(tirx.Add(tirx.Mul(group, idx(s.filters)), o))
            row = b.let(at(out, tirx.Mul(o, self.positions))[1])

            def one(k: Any, lanes: int) -> None:
                value = b.let(vload(out[0], plus(row, k), lanes))
                b.vstore(out[0], finish(value, sample, channel, plus(first, k), lanes), plus(row, k))

            in_pieces(b, count, (vector_lanes(self.dtype), 4, 1), one)

    def grad_weight(self) -> None:
        """dw = the sum of dy @ col.T, in a fixed order for a number of threads."""
        b, s, c = self.b, self.s, self.c
        x, dy, dw = c.operand(0), c.operand(1), c.result()
        size = s.weights * self.groups
        rows, blocks, stride = self.rows_of(s.patch)
        scratch, private = self.scratch(s.patch), c.scratch(size * self.tasks, self.dtype)
        fill(b, private, size * self.tasks)
        with split(b, b.let(tirx.Mul(self.items, blocks)), self.tasks) as (task, j):
            item, col = b.let(tirx.Div(j, blocks)), self.own(scratch, task, s.patch)
            first, count = self.part(tirx.Mod(j, blocks), rows)
            self.gather(at(x, tirx.Mul(item, self.size_in)), col, first, count, stride)
            grad = at(dy, tirx.Add(tirx.Mul(item, self.size_out), tirx.Mul(first, self.columns)))
            group = tirx.Mul(tirx.Mod(item, idx(self.groups)), idx(s.weights))
            out = at(private, tirx.Add(tirx.Mul(idx(task), idx(size)), group))
            wide = b.let(tirx.Mul(count, self.columns))
            blas.gemm(
                b, s.filters, s.patch, wide, grad, col, out, trans_x=True, beta=1.0, lda=self.positions, ldx=stride
            )
        fill(b, dw, size)
        for t in range(self.tasks):
            add_to(b, dw, at(private, t * size), size)

    def grad_input(self) -> None:
        """dx = col2im(w.T @ dy)."""
        b, s, c = self.b, self.s, self.c
        dy, w, dx = c.operand(0), c.operand(1), c.result()
        most = min(CHANNELS, s.channels)
        parts, patch = -(-s.channels // most), most * s.taps
        rows, blocks, stride = self.rows_of(patch)
        scratch, plane = self.scratch(patch), b.let(tirx.Mul(self.height, self.width))
        with split(b, b.let(tirx.Mul(self.items, idx(parts))), self.tasks) as (task, j):
            item, col = b.let(tirx.Div(j, idx(parts))), self.own(scratch, task, patch)
            begin = b.let(tirx.Mul(tirx.Mod(j, idx(parts)), idx(most)))
            channels = b.let(tirx.Min(idx(most), tirx.Sub(idx(s.channels), begin)))
            out = at(dx, tirx.Add(tirx.Mul(item, self.size_in), tirx.Mul(begin, plane)))
            fill(b, out, b.let(tirx.Mul(channels, plane)))
            filters = tirx.Mul(tirx.Mod(item, idx(self.groups)), idx(s.weights))
            filters = at(w, tirx.Add(filters, tirx.Mul(begin, idx(s.taps))))
            with b.loop(blocks, name="block") as block:
                first, count = self.part(block, rows)
                grad = at(dy, tirx.Add(tirx.Mul(item, self.size_out), tirx.Mul(first, self.columns)))
                lines, wide = b.let(tirx.Mul(channels, idx(s.taps))), b.let(tirx.Mul(count, self.columns))
                blas.gemm(
                    b,
                    lines,
                    wide,
                    s.filters,
                    filters,
                    grad,
                    col,
                    trans_a=True,
                    lda=s.patch,
                    ldx=self.positions,
                    ldc=stride,
                )
                self.scatter(col, out, channels, first, count, stride)


def open_convolution(c: Any, s: Conv, what: str) -> None:
    """Emit one of the three products, "forward" by Winograd's algorithm where that is quicker; arguments as of `OpenConv`."""
    tasks = max(1, threads.count())
    if what != "forward" or not is_open_winograd(s, c.out_type.dtype):
        getattr(OpenConv(c, s, tasks), what)()
        return
    winograd = OpenWinograd(c, s, tasks)
    with c.block.when(tirx.GE(winograd.tiles, idx(LEAST_TILES))):
        winograd.forward()
    with c.block.otherwise():
        OpenConv(c, s, tasks).forward()


__all__ = ["open_convolution"]
