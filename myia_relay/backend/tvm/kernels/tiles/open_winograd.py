"""Winograd's algorithm for images whose height and width only a run tells.

Idea: as in `winograd`, in blocks of `TILES` tiles at most, of some rows of tiles and some that lie side by side, so that memory and
the distances within it are known. What a block sees of a plane is copied line by line, with zeros for padding, and sorted by its
columns' places in tiles. Blocks of all samples are what threads share. The results of a row of a tile are written as vectors up to
the image's right edge.

Input: a call of an opaque kernel (see `opaque.Call`), and the shape of the convolution with dimensions in place of ints. Output:
statements emitted into it.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ...tir.block import Block, const, idx, load, shuffle, vload
from ...tir.exact import fence
from ..direct_conv import ROWS, VECTORS
from ..patches import Conv, Operand, at, in_pieces, plus, times
from ..winograd import (
    FEW,
    LANES,
    OUT,
    PRODUCTS,
    SEEN,
    WinogradBlocks,
    interleaved,
    is_enabled,
    transform_image,
    transform_sums,
)
from .convolution import TileFunction, call_tile

TILES = 96
"""Of a block; panels of three vectors."""
LEAST_TILES = LANES
"""Of a plane; fewer would leave most of a vector empty."""
LINE = OUT * TILES + 2 * LANES
"""Elements of a line of pixels, and of what vectors write behind it."""


def is_open_winograd(s: Conv, dtype: str) -> bool:
    """Whether a convolution, of one group of channels, is quicker so where an image has `LANES` tiles or more."""
    if not is_enabled(dtype) or s.kernel != (3, 3) or s.strides != (1, 1) or s.dilations != (1, 1):
        return False
    return s.channels % LANES == 0 and s.filters % ROWS == 0 and min(s.channels, s.filters) >= FEW


class OpenWinograd(WinogradBlocks):
    """A convolution of images of open size.

    Args:
        c: the call.
        s: its shape, of one group; heights and widths are dimensions.
        tasks: threads.

    Attributes:
        tiles: of a plane of the result.
    """

    def __init__(self, c: Any, s: Conv, tasks: int):
        self.c, self.s, self.tasks, self.finish, self.block = c, s, tasks, c.finish, c.block
        self.groups, let, dim = c.attrs["groups"], c.block.let, c.b.dim
        self.height, self.width, self.size_in = (let(dim(d)) for d in (s.height, s.width, s.size_in))
        self.rows_out, self.columns, self.positions, self.size_out = (
            let(dim(d)) for d in (s.out_height, s.out_width, s.positions, s.size_out)
        )
        self.items = let(dim(c.types[0].shape[0] * self.groups))
        self.down, self.along = let(_share(self.rows_out, OUT)), let(_share(self.columns, OUT))
        self.tiles = let(tirx.Mul(self.down, self.along))
        # Tiles are counted from one on: where there are none there is no block either.
        self.across = let(tirx.Max(_share(self.along, TILES), idx(1)))
        self.wide = let(tirx.Max(_share(self.along, self.across), idx(1)))
        bands = tirx.Max(_share(self.down, tirx.Div(idx(TILES), self.wide)), idx(1))
        self.rows = let(tirx.Max(_share(self.down, let(times(_share(bands, tasks), tasks))), idx(1)))
        self.bands = let(_share(self.down, self.rows))
        self.padded = let(times(_share(tirx.Mul(self.rows, self.wide), LANES), LANES))
        self.apart = let(plus(tirx.Mul(plus(self.rows, 1), self.wide), LANES))
        self.place_parts(SEEN * OUT * (2 * TILES + LANES), TILES)

    def forward(self) -> None:
        """y = w * x."""
        s, c, block = self.s, self.c, self.block
        x, w, y = c.operand(0), c.operand(1), c.result()
        memory = c.scratch(self.size * self.tasks, "float32")
        self.taps = block.local("int64", LANES, "taps")
        for k in range(LANES):
            block.store(self.taps, idx(k * TILES), k)
        blocks = block.let(tirx.Select(tirx.GT(self.tiles, idx(0)), tirx.Mul(self.bands, self.across), idx(0)))
        total = block.let(tirx.Mul(self.items, blocks))
        alone = self.groups == 1 and s.filters <= self.filters and s.channels <= self.channels
        with block.loop(self.tasks, "parallel", "task") as task:
            begin, end = (block.let(tirx.Div(tirx.Mul(idx(k), total), idx(self.tasks))) for k in (task, plus(task, 1)))
            scratch = at(memory, times(task, self.size))
            *parts, self.results = (at(scratch, start) for start in self.starts)
            if alone:  # transformed once, for all blocks
                with block.when(tirx.GT(end, begin)):
                    self.transform_filters(w, parts[2], s.filters, s.channels)
            with block.loop(tirx.Sub(end, begin), name="block") as k:
                j = block.let(tirx.Add(begin, k))
                item, place = block.let(tirx.Div(j, blocks)), block.let(tirx.Mod(j, blocks))
                top = block.let(tirx.Mul(tirx.Div(place, self.across), self.rows))
                left = block.let(tirx.Mul(tirx.Mod(place, self.across), self.wide))
                group = tirx.Mod(item, idx(self.groups)) if self.groups > 1 else 0
                filters = at(w, times(group, s.weights))
                operands = at(x, tirx.Mul(item, self.size_in)), filters, at(y, tirx.Mul(item, self.size_out))
                self.part(operands, parts, (item, group), (top, left), alone)

    def part(self, operands: Any, parts: Any, of: tuple[Any, Any], corner: tuple[Any, Any], alone: bool) -> None:
        """A block of tiles of a sample and group, from a corner on."""
        s, block, (x, w, y), (plane, image, filters, sums) = self.s, self.block, operands, parts
        top, left = corner
        first, begin = plus(times(top, OUT), -s.pads[0]), plus(times(left, OUT), -s.pads[2])
        sight = block.let(first), block.let(begin)
        with block.loop(s.channels, name="c") as channel:
            source = at(x, tirx.Mul(channel, block.let(tirx.Mul(self.height, self.width))))
            sizes = self.height, self.width, *sight, self.rows, self.wide, self.apart
            call_tile(self.c, (_copy_lines,), (source, plane, plane, (self.taps, 0)), sizes)
            with block.loop(tirx.Div(self.padded, idx(LANES)), name="v") as v:
                to = at(image, plus(times(channel, TILES), times(v, LANES)))
                self.call(transform_image, (at(plane, times(v, LANES)), to), (self.apart, self.wide, self.image_step))
        with block.loop(-(-s.filters // self.filters), name="o") as o:
            near = block.let(times(o, self.filters))
            rows = block.let(tirx.Min(idx(self.filters), tirx.Sub(idx(s.filters), near)))
            with block.loop(-(-s.channels // self.channels), name="k") as k:
                start = block.let(times(k, self.channels))
                channels = block.let(tirx.Min(idx(self.channels), tirx.Sub(idx(s.channels), start)))
                if not alone:
                    own = at(w, plus(times(near, s.patch), times(start, s.taps)))
                    self.transform_filters(own, filters, rows, channels)
                adds = block.let(tirx.Cast("int64", tirx.GT(k, idx(0))))
                self.multiply(filters, at(image, times(start, TILES)), sums, (rows, channels, adds))
            with block.loop(rows, name="r") as r, block.loop(self.rows, name="t") as t:
                row = block.let(plus(top, t))
                with block.loop(_share(self.wide, LANES), name="v") as v:
                    along = block.let(times(v, LANES))
                    source = at(sums, plus(times(r, TILES), tirx.Mul(t, self.wide), along))
                    self.store(source, y, of, block.let(plus(near, r)), row, (left, along))

    def multiply(self, filters: Operand, image: Operand, sums: Operand, numbers: tuple[Any, Any, Any]) -> None:
        """The products of a block."""
        block, panel = self.block, VECTORS * LANES
        rows, channels, adds = numbers
        groups, tiles = block.let(tirx.Div(channels, idx(LANES))), block.let(tirx.Div(rows, idx(ROWS)))
        whole = block.let(tirx.Div(self.padded, idx(panel)))
        rest = block.let(tirx.Sub(self.padded, times(whole, panel)))
        with block.loop(PRODUCTS, name="k") as k:
            left, right, out = (
                at(o, times(k, z))
                for o, z in ((filters, self.filter_step), (image, self.image_step), (sums, self.sum_step))
            )

            def columns(p: Any, width: int) -> None:
                self.products((left, right, out), p, width, (tiles, groups, adds))

            with block.loop(whole, name="p") as p:
                columns(block.let(times(p, panel)), panel)
            for width in range(LANES, panel, LANES):
                with block.when(tirx.EQ(rest, idx(width))):
                    columns(block.let(times(whole, panel)), width)

    def store(self, sums: Operand, y: Operand, of: tuple[Any, Any], channel: Any, row: Any, place: Any) -> None:
        """A' m A of a vector of tiles, and what follows; `place` are the column where the block begins, and the tile's in it."""
        s, block, (item, group), (left, along) = self.s, self.block, of, place
        self.call(transform_sums, (sums, self.results), (self.sum_step, LANES))
        count = block.let(tirx.Min(idx(OUT), tirx.Sub(self.rows_out, times(row, OUT))))
        first = block.let(times(plus(left, along), OUT))
        inside = tirx.Min(tirx.Sub(self.columns, first), times(tirx.Sub(self.wide, along), OUT))
        inside = block.let(tirx.Min(inside, idx(OUT * LANES)))
        sample = block.let(tirx.Div(item, idx(self.groups)))
        number = plus(times(group, s.filters), channel)
        with block.loop(count, name="i") as i:
            own = block.let(times(i, OUT * LANES))
            lines = at(self.results, own)
            # Back to where they were: that is where parts of vectors are read from, at places that a run tells.
            values = [block.let(fence(vload(lines[0], plus(lines[1], j * LANES), LANES))) for j in range(OUT)]
            for k, vector in enumerate(interleaved(block, values)):
                block.vstore(lines[0], vector, plus(lines[1], k * LANES))
            start = block.let(tirx.Add(tirx.Mul(plus(times(row, OUT), i), self.columns), first))
            into = block.let(tirx.Add(tirx.Mul(channel, self.positions), start))

            def one(k: Any, lanes: int, start: Any = start, into: Any = into) -> None:
                value = block.let(vload(lines[0], plus(lines[1], k), lanes))
                if self.finish is not None:
                    value = self.finish(value, sample, number, plus(start, k), lanes)
                block.vstore(y[0], value, at(y, plus(into, k))[1])

            in_pieces(block, inside, (LANES, OUT, 1), one)


def _share(n: Any, parts: Any) -> Any:
    """n / parts, rounded up."""
    return tirx.Div(
        plus(n, tirx.Sub(idx(parts), idx(1))) if not isinstance(parts, int) else plus(n, parts - 1), idx(parts)
    )


def _copy_lines() -> Any:
    """Copies of what a block of tiles sees of a plane: one for each row and column within a tile, of all tiles.

    Returns:
        Parameters and statements: of the plane and the copies; of the height and width of the plane, the row and column where the
        block begins to see (which may lie in padding), the rows of tiles of the block and the tiles of a row, and how far the
        copies lie apart.
    """
    f = TileFunction("float32", "height", "width", "top", "left", "rows", "wide", "apart")
    block, (plane, copies, *_), (height, width, top, left, rows, wide, apart) = f.block, f.buffers, f.numbers
    line = block.local("float32", LINE, "line")
    vectors = block.let(_share(wide, LANES))
    length = block.let(plus(times(vectors, OUT * LANES), OUT))
    # Of the line, the columns from `low` to `high` are of the image.
    low = block.let(tirx.Max(tirx.Min(tirx.Sub(idx(0), left), length), idx(0)))
    high = block.let(tirx.Max(tirx.Min(tirx.Sub(width, left), length), low))
    count = block.let(tirx.Sub(high, low))
    zeros = const(0.0, f"float32x{LANES}")

    def clear(begin: Any) -> None:
        with block.loop(_share(tirx.Sub(length, idx(begin)), LANES), name="v") as v:
            block.vstore(line, zeros, plus(begin, times(v, LANES)))

    with block.loop(plus(rows, 1), name="r") as r, block.loop(OUT, name="phase") as phase:
        row = block.let(plus(top, times(r, OUT), phase))
        with block.when(tirx.And(tirx.And(tirx.GE(row, idx(0)), tirx.LT(row, height)), tirx.GT(count, idx(0)))):
            source = block.let(tirx.Add(tirx.Mul(row, width), tirx.Add(left, low)))
            whole = block.let(tirx.Div(count, idx(LANES)))
            with block.loop(whole, name="v") as v:
                block.vstore(line, vload(plane, plus(source, times(v, LANES)), LANES), plus(low, times(v, LANES)))
            with block.when(tirx.GT(whole, idx(0))):  # the last vector, which may overlap with the one before
                last = block.let(tirx.Sub(count, idx(LANES)))
                block.vstore(line, vload(plane, tirx.Add(source, last), LANES), tirx.Add(low, last))
            with block.otherwise():
                with block.loop(count, name="k") as k:
                    block.store(line, load(plane, tirx.Add(source, k)), tirx.Add(low, k))
            clear(high)
            with block.loop(low, name="k") as k:
                block.store(line, const(0.0, "float32"), k)
        with block.otherwise():
            clear(0)
        with block.loop(vectors, name="v") as v:
            begin, to = times(v, OUT * LANES), plus(tirx.Mul(phase, apart), tirx.Mul(r, wide), times(v, LANES))
            begin, to = block.let(begin), block.let(to)
            for first, some in ((0, OUT), (OUT, SEEN - OUT)):
                for column, vector in enumerate(_sorted(block, line, plus(begin, first), some)):
                    block.vstore(copies, vector, plus(to, times(apart, OUT * (first + column))))
    return f.done()


def _sorted(block: Block, line: Any, begin: Any, count: int) -> list[Any]:
    """Of four vectors, those of every fourth element, from the first ones on; by two vectors each, see `interleaved`."""
    four = [block.let(vload(line, plus(begin, k * LANES), LANES)) for k in range(OUT)]
    every = [[2 * k + odd for k in range(LANES)] for odd in range(2)]
    halves = [[block.let(shuffle(four[k : k + 2], places)) for k in (0, 2)] for places in every[: min(count, 2)]]
    return [block.let(shuffle(halves[k % 2], every[k // 2])) for k in range(count)]


__all__ = ["OpenWinograd", "is_open_winograd"]
