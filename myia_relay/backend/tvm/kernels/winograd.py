"""Convolution by 3x3 windows with a quarter of the multiplications: Winograd's F(4x4, 3x3).

A tile of 4 x 4 results is A' [sum over channels of (G g G') * (B' d B)] A, where d are the 6 x 6 pixels that it sees and g the
filter; the product in the middle is element by element. So a convolution is 36 products of matrices, of filters by channels and
channels by tiles. All is done in blocks that stay in the second-level cache: a band of tiles, 64 filters, 64 channels. Filters
are transformed again in each call, block by block, just before they are used, so nothing has to be kept that might be out of
date; that takes less time than to read transformed filters, which are four times as large, from memory.

Error: the constants 1/24 to 8 make rounding errors larger than those of a sum of products. Of normally distributed numbers, the
largest error is 5e-6 of the largest result for 64 channels and 1.8e-5 for 512; `direct_conv` has 7e-7 and 2e-6. Tests allow
4e-5. A pixel that is infinite or NaN makes NaN all results of the tiles that see it among their 6 x 6, also those whose windows
do not. `MYIA_RELAY_WITHOUT=winograd` leaves all this out, and float64 is never computed so.

Measured (Sapphire Rapids, one thread, beside `direct_conv` in the same run): 64 channels of 56 x 56 0.71 ms and 1.47; 128 of
28 x 28 0.73 and 1.42; 64 of 112 x 112 2.8 and 6.0.

Input: an `opaque.Call`, static sizes. Output: statements in its kernel, and functions that all convolutions of a program share.
Source: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from ....utils.switches import is_left_out
from ..tir import pipeline
from ..tir.block import Block, const, idx, load, ramp, shuffle, vload
from ..tir.exact import fence, fma
from .copies import Copies
from .direct_conv import ROWS, UNROLLED, VECTORS, over_samples
from .patches import Conv, Operand, at, pieces, plus, times
from .tiles.convolution import TileFunction, call_copies, call_tile, tile_of_sums

LANES = 16  # of float32
OUT, SEEN = 4, 6  # sides of a tile of results, and of the pixels that it sees
PRODUCTS = SEEN * SEEN
FILTERS, CHANNELS, TILES = 64, 64, 64  # of a block
FEW = 32  # filters or channels: fewer repay no transformation
LEAST = 1 << 23  # multiplications of a sample, if nothing is transformed


def is_enabled(dtype: str) -> bool:
    """Whether anything of an element type is computed so, on this machine."""
    left_out = is_left_out("winograd") or is_left_out("direct_conv")
    return dtype == "float32" and pipeline.vector_bytes() >= 64 and not left_out


def is_winograd(s: Conv, dtype: str) -> bool:
    """Whether a convolution, of one group of channels, is quicker so."""
    if not is_enabled(dtype):
        return False
    if s.kernel != (3, 3) or s.strides != (1, 1) or s.dilations != (1, 1) or s.channels % LANES or s.filters % ROWS:
        return False
    tiles = -(-s.out_height // OUT) * -(-s.out_width // OUT)
    return min(s.channels, s.filters) >= FEW and tiles >= LANES and s.filters * s.patch * s.positions >= LEAST


def winograd_conv(c: Any, s: Conv, n: Any, groups: int, tasks: int, finish: Any) -> None:
    """Emit it; the arguments are those of `direct_conv`."""
    e = _Convolution(c, s)
    shared = ("bands", e.bands) if e.bands >= 2 * tasks else ("tiles", s.filters // ROWS)
    over_samples(c, s, n, groups, tasks, e.sample, shared, e.size, finish or _unchanged)


def _unchanged(value: Any, *_: Any) -> Any:
    return value


class WinogradBlocks:
    """What convolutions share that are computed in blocks of tiles, filters and channels; subclasses say what a block is.

    Attributes:
        c, s, block: the call, the shape of the convolution, and where statements go.
        taps: the offsets of the tiles' rows within a block.
        filters, channels: of a block.
        starts: where the parts of scratch memory begin: the copies of a plane, the transformed image, filters and sums, results.
        size: elements of scratch memory.
    """

    c: Any
    s: Conv
    block: Block
    taps: Any

    def place_parts(self, copies: int, tiles: int) -> None:
        """Lay out scratch memory, for so many elements of copies and places for tiles of a block."""
        s, self.places = self.s, tiles
        self.filters, self.channels = min(FILTERS, s.filters), min(CHANNELS, s.channels)
        # The 36 matrices lie an odd number of vectors apart: elements of the same place would share few places in caches.
        self.image_step = s.channels * tiles + LANES
        self.filter_step = self.filters * self.channels + LANES
        self.sum_step = self.filters * tiles + LANES
        steps = (copies + LANES, *(PRODUCTS * k for k in (self.image_step, self.filter_step, self.sum_step)))
        # The results are among them and no local array: LLVM takes locals for never shared with functions.
        self.starts = [sum(steps[:k]) for k in range(5)]
        self.size = self.starts[-1] + OUT * OUT * LANES + LANES

    def call(self, make: Callable, operands: tuple, sizes: tuple) -> None:
        """Call a function that all convolutions of the program share."""
        call_tile(self.c, (make,), [*operands, *[(self.taps, 0)] * (4 - len(operands))], sizes)

    def transform_filters(self, w: Operand, to: Operand, rows: Any, channels: Any) -> None:
        """G g G' of some filters and channels."""
        block = self.block
        with block.loop(rows, name="r") as r, block.loop(tirx.Div(idx(channels), idx(LANES)), name="c") as c:
            source = at(w, plus(times(r, self.s.patch), times(c, LANES * self.s.taps)))
            target = at(to, plus(times(r, self.channels), times(c, LANES)))
            self.call(transform_filters, (source, target), (self.filter_step,))

    def products(self, matrices: tuple[Operand, Operand, Operand], p: Any, columns: int, numbers: Any) -> None:
        """A panel of columns from `p` on of filters times image; of so many tiles of rows and groups of channels, and whether it
        adds to the sums."""
        block, (left, right, out), (tiles, groups, adds) = self.block, matrices, numbers
        with block.loop(tiles, name="r") as r:
            row = block.let(times(r, ROWS))
            operands = (
                at(left, times(row, self.channels)),
                at(right, p),
                at(out, plus(times(row, self.places), p)),
                (self.taps, 0),
            )
            sizes = self.channels, LANES, LANES * self.places, self.places, groups, adds
            call_tile(self.c, (tile_of_sums, "float32", ROWS, columns, UNROLLED[0]), operands, sizes)


class _Convolution(WinogradBlocks):
    """A convolution of samples of one shape, being emitted.

    Attributes:
        down, along: tiles of a plane of the result.
        rows, bands: rows of tiles in a band, and how many bands there are; the last one may overlap with the one before.
        padded: places for the tiles of a band, whole vectors.
    """

    def __init__(self, c: Any, s: Conv):
        self.c, self.s, self.block = c, s, c.block
        self.down, self.along = -(-s.out_height // OUT), -(-s.out_width // OUT)
        self.bands = -(-self.down // max(1, TILES // self.along))
        self.rows = -(-self.down // self.bands)
        self.bands = -(-self.down // self.rows)
        self.padded = -(-self.rows * self.along // LANES) * LANES
        top, left = s.pads[0], s.pads[2]
        bottom, right = OUT * self.down + 2 - s.height - top, OUT * self.along + 2 - s.width - left
        seen = Conv(s.channels, s.height, s.width, 1, (SEEN, SEEN), (OUT, OUT), (top, bottom, left, right))
        self.copies = Copies(seen, "float32", self.rows, True)
        self.place_parts(self.copies.size, self.padded)
        self.taps = self.block.local("int64", LANES, "taps")
        for k in range(LANES):
            self.block.store(self.taps, idx(k * self.padded), k)

    def sample(
        self, task: Any, operands: tuple[Operand, Operand, Operand], scratch: Operand, finish: Any, bands: Any = None,
        tiles: Any = None,
    ) -> None:  # fmt: skip
        """One sample, or some bands or rows of filters of it; see `direct_conv`."""
        s, block, (x, w, y) = self.s, self.block, operands
        plane, image, filters, sums, self.results = (at(scratch, start) for start in self.starts)
        first_band, count = bands or (0, self.bands)
        first, most = (times(k, ROWS) for k in tiles or (0, s.filters // ROWS))
        alone = s.filters <= self.filters and s.channels <= self.channels
        if alone:  # transformed once, for all bands
            self.transform_filters(at(w, times(first, s.patch)), filters, most, s.channels)
        with block.loop(count, name="band") as band:
            top = block.let(tirx.Min(times(plus(band, first_band), self.rows), idx(self.down - self.rows)))
            with block.loop(s.channels, name="c") as channel:
                call_copies(self.c, self.copies, at(x, times(channel, s.height * s.width)), plane, top)
                self.transform_image(plane, at(image, times(channel, self.padded)))
            with block.loop(tirx.Div(plus(idx(most), self.filters - 1), idx(self.filters)), name="o") as o:
                begin = block.let(plus(times(o, self.filters), first))
                rows = block.let(tirx.Min(idx(self.filters), tirx.Sub(plus(idx(most), first), begin)))
                with block.loop(-(-s.channels // self.channels), name="block") as k:
                    near = block.let(times(k, self.channels))
                    channels = block.let(tirx.Min(idx(self.channels), tirx.Sub(idx(s.channels), near)))
                    if not alone:
                        own = at(w, plus(times(begin, s.patch), times(near, s.taps)))
                        self.transform_filters(own, filters, rows, channels)
                    adds = block.let(tirx.Cast("int64", tirx.GT(k, idx(0))))
                    self.multiply(filters, at(image, times(near, self.padded)), sums, (rows, channels, adds))
                with block.loop(rows, name="r") as r, block.loop(self.rows, name="t") as t:
                    self.store(
                        at(sums, plus(times(r, self.padded), times(t, self.along))),
                        y,
                        plus(begin, r),
                        plus(top, t),
                        finish,
                    )

    def transform_image(self, plane: Operand, to: Operand) -> None:
        """B' d B of the tiles of a band and one channel."""
        with self.block.loop(self.padded // LANES, name="v") as v:
            place = times(v, LANES)
            sizes = self.copies.height * self.copies.width, self.along, self.image_step
            self.call(transform_image, (at(plane, place), at(to, place)), sizes)

    def multiply(self, filters: Operand, image: Operand, sums: Operand, numbers: tuple[Any, Any, Any]) -> None:
        """The products of a block."""
        block, wide = self.block, VECTORS * LANES
        rows, channels, adds = numbers
        groups, tiles = block.let(tirx.Div(channels, idx(LANES))), block.let(tirx.Div(rows, idx(ROWS)))
        with block.loop(PRODUCTS, name="k") as k:
            left, right, out = (
                at(o, times(k, z))
                for o, z in ((filters, self.filter_step), (image, self.image_step), (sums, self.sum_step))
            )

            def panel(p: Any, columns: int) -> None:
                self.products((left, right, out), p, columns, (tiles, groups, adds))

            if self.padded >= wide:
                with block.loop(self.padded // wide, name="p") as p:
                    panel(block.let(times(p, wide)), wide)
            if self.padded % wide:
                panel(self.padded - self.padded % wide, self.padded % wide)

    def store(self, sums: Operand, y: Operand, channel: Any, row: Any, finish: Any) -> None:
        """A' m A of a row of tiles, and what follows."""
        s, block = self.s, self.block

        def tiles(first: Any, columns: int) -> None:
            """Up to a vector of tiles, of so many columns of the result."""
            self.call(transform_sums, (at(sums, first), self.results), (self.sum_step, LANES))
            # Fewer in the last row of tiles. In a loop, for LLVM takes long for what follows.
            count = block.let(tirx.Min(idx(OUT), tirx.Sub(idx(s.out_height), times(row, OUT))))
            with block.loop(count, name="i") as i:
                own = block.let(idx(plus(self.results[1], times(i, OUT * LANES))))
                values = [block.let(fence(vload(self.results[0], plus(own, j * LANES), LANES))) for j in range(OUT)]
                lines = interleaved(block, values)
                begin = block.let(idx(plus(times(plus(times(row, OUT), i), s.out_width), times(first, OUT))))
                for start, lanes in pieces(columns, LANES):
                    value = lines[start // LANES]
                    if lanes < LANES:
                        value = block.let(shuffle([value], range(start % LANES, start % LANES + lanes)))
                    position = plus(begin, start)
                    into = at(y, plus(times(channel, s.positions), position))
                    block.vstore(y[0], finish(value, channel, position, lanes), into[1])

        whole = s.out_width // (OUT * LANES)
        if whole:
            with block.loop(whole, name="v") as v:
                tiles(block.let(times(v, LANES)), OUT * LANES)
        if rest := s.out_width % (OUT * LANES):
            tiles(whole * LANES, rest)


def interleaved(block: Block, vectors: list[Any]) -> list[Any]:
    """Vectors of the first elements of four, the second ones, and so on.

    By two vectors each: LLVM takes long for shuffles of more.
    """

    def pair(a: Any, b: Any) -> list[Any]:
        half = LANES // 2
        places = [[k + LANES * other for k in range(start, start + half) for other in range(2)] for start in (0, half)]
        return [block.let(shuffle([a, b], each)) for each in places]

    first, second = pair(vectors[0], vectors[2]), pair(vectors[1], vectors[3])
    return [found for a, b in zip(first, second) for found in pair(a, b)]


# --- transformations of a vector of tiles, or of filters ----------------------------------------------------------------


def _scaled(block: Block, factor: float, x: Any, y: Any = None) -> Any:
    """factor * x (+ y), of vectors."""
    constant = const(factor, f"float32x{LANES}")
    return block.let(tirx.Mul(constant, x) if y is None else fma(constant, x, y))


def _of_pixels(block: Block, d: list[Any]) -> list[Any]:
    """B' d."""
    a, b = _scaled(block, -4, d[2], d[4]), _scaled(block, -4, d[1], d[3])
    e, f = block.let(tirx.Sub(d[4], d[2])), block.let(tirx.Sub(d[3], d[1]))
    return [
        _scaled(block, 4, d[0], _scaled(block, -5, d[2], d[4])),
        block.let(tirx.Add(a, b)),
        block.let(tirx.Sub(a, b)),
        _scaled(block, 2, f, e),
        _scaled(block, -2, f, e),
        _scaled(block, 4, d[1], _scaled(block, -5, d[3], d[5])),
    ]


def _of_weights(block: Block, g: list[Any]) -> list[Any]:
    """G g."""
    even = _scaled(block, -1 / 6, block.let(tirx.Add(g[0], g[2])))
    other = _scaled(block, 1 / 24, g[0], _scaled(block, 1 / 6, g[2]))
    return [
        _scaled(block, 1 / 4, g[0]),
        _scaled(block, -1 / 6, g[1], even),
        _scaled(block, 1 / 6, g[1], even),
        _scaled(block, 1 / 12, g[1], other),
        _scaled(block, -1 / 12, g[1], other),
        g[2],
    ]


def _of_sums(block: Block, m: list[Any]) -> list[Any]:
    """A' m."""
    a, b = block.let(tirx.Add(m[1], m[2])), block.let(tirx.Sub(m[1], m[2]))
    e, f = block.let(tirx.Add(m[3], m[4])), block.let(tirx.Sub(m[3], m[4]))
    return [
        block.let(tirx.Add(block.let(tirx.Add(m[0], a)), e)),
        _scaled(block, 2, f, b),
        _scaled(block, 4, e, a),
        block.let(tirx.Add(_scaled(block, 8, f, b), m[5])),
    ]


def _transformation(read: Callable, transform: Callable, seen: int, *numbers: str) -> Any:
    """The function of `T x T'` of a square matrix of vectors: of columns, then of rows, in loops, for LLVM takes long for more.

    Args:
        read: of the function and a row and column, an element.
        transform: `T` of a vector.
        seen: the side of the matrix.
        numbers: that the function takes; the last is how far the elements of the result lie apart.
    """
    f = TileFunction("float32", *numbers)
    block, made = f.block, SEEN * LANES
    half = block.local("float32", seen * made, "half")
    with block.loop(seen, name="j") as j:
        for i, value in enumerate(transform(block, [block.let(read(f, i, j)) for i in range(seen)])):
            block.vstore(half, value, plus(times(j, made), i * LANES))
    sides = OUT if transform is _of_sums else SEEN
    with block.loop(sides, name="i") as i:
        row = [block.let(vload(half, plus(times(i, LANES), j * made), LANES)) for j in range(seen)]
        for j, value in enumerate(transform(block, row)):
            place = tirx.Mul(idx(plus(times(i, sides), j)), f.numbers[-1])
            block.vstore(f.buffers[1], value, place)
    return f.done()


def transform_image() -> Any:
    """Of tiles, from the copies of a plane: of the elements of a copy, the tiles of a row, and how far the matrices lie apart."""

    def read(f: TileFunction, i: int, j: Any) -> Any:
        size, along, _ = f.numbers
        copy = tirx.Mul(plus(times(j, OUT), i % OUT), size)
        return vload(f.buffers[0], tirx.Add(copy, tirx.Mul(idx(i // OUT), along)), LANES)

    return _transformation(read, _of_pixels, SEEN, "size", "along", "step")


def transform_filters() -> Any:
    """Of consecutive channels of a filter: of how far the matrices lie apart."""

    def read(f: TileFunction, i: int, j: Any) -> Any:
        return load(f.buffers[0], ramp(plus(j, 3 * i), LANES, 9))

    return _transformation(read, _of_weights, 3, "step")


def transform_sums() -> Any:
    """Of sums: of how far the matrices lie apart, and the results."""

    def read(f: TileFunction, i: int, j: Any) -> Any:
        return vload(f.buffers[0], tirx.Mul(plus(j, SEEN * i), f.numbers[0]), LANES)

    return _transformation(read, _of_sums, SEEN, "step", "apart")


__all__ = [
    "WinogradBlocks",
    "is_enabled",
    "is_winograd",
    "interleaved",
    "transform_filters",
    "transform_image",
    "transform_sums",
    "winograd_conv",
]
