"""Convolution as a product whose right operand is read out of shifted copies of the image: no matrix of patches, no packed
filters.

The result is `filters @ patches`: a row for each filter, a column for each position. A row of the matrix of patches is one tap
(a channel, a row and a column of the window) at all positions, and that is a run of memory in shifted copies of the image
(`copies`). So a channel is copied as often as the window is wide, in place of once for each tap, and a vector of positions may
begin anywhere: images of 14 or 28 columns fill vectors as well as any others.

A tile of 8 filters and 3 vectors of positions stays in registers while it is summed over a block of channels. Filters are read
where they are, one number for all lanes. They are not packed: for large filters and few positions nothing would repay it, and
nothing has to be kept from call to call that might be out of date. Channels are taken in blocks, so many that what a tile reads
of the image stays in the first-level cache for all filters, and rows of the result in bands, so many that the copies of a block,
the filters and the results stay in the second. What follows element by element (bias, activation, residual) is applied to a
tile as soon as it is complete.

A 1x1 window of stride 1 needs no copy where the positions fill whole vectors, or all but a few do (`DOTS`).

Input: an `opaque.Call`, static sizes. Output: statements in its kernel, and functions of tiles, which all convolutions of a
program share. Sources: J. Zhang, F. Franchetti and T. M. Low, "High Performance Zero-Memory Overhead Direct Convolutions" (ICML
2018); for the copies, A. Anderson et al., "High-performance low-memory lowering" (SBAC-PAD 2020).

Measured (Sapphire Rapids, one thread, float32, in one run with OpenBLAS's sgemm at 141 to 150 GFLOP/s): 3x3 of stride 1 in
ResNet-18 121 to 159, in VGG-16 139 to 156; 1x1 in MobileNet 113 to 161; 7x7 of stride 2 155. With patches and the BLAS these
were 62 to 139, 70 to 142 and 73. With vectors of less than 512 bits nothing was measured, and the BLAS multiplies.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx

from ....utils.switches import is_left_out
from ..plan import ITEM
from ..tir import pipeline
from ..tir.block import idx, load, vload
from .conv import split
from .copies import Copies
from .nests import lanes_for
from .patches import Conv, Operand, at, pieces, plus, times
from .tiles.convolution import call_copies, call_tile, emit_sums, tile_of_dots, tile_of_sums
from .tiles.next_matrix import NextMatrix, next_matrix

ROWS, VECTORS = 8, 3  # of a tile: together with a row of vectors and a number, these are the registers of AVX-512
NARROW = 4, 2  # the same where there are half as many registers
NEAR = 40 << 10  # bytes of what a tile reads of the image that stay in the first-level cache
ONCE = 160 << 10  # the same where it reads each element once, in order: these may come from the second-level cache
AGAIN = 1 << 19  # bytes of a 1x1 window's image that are read again for each tile of filters, in place of the filters
CACHE = 5 << 18  # bytes of copies, filters and results that stay in the second-level cache
LEAST = 1 << 20  # multiplications of a sample, below which the BLAS does as well
UNROLLED = 4, 3, 1  # taps in one iteration of a tile's loop, the first that divides their number
SHORT = 128  # terms of a sum up to which it matters that what follows is applied in registers, with no call
DOTS = (
    4  # positions behind the last whole vector up to which products of vectors are quicker than a vector of positions
)
POSITIONS = 16  # fewer would leave most of a vector empty


def is_direct(s: Conv, dtype: str) -> bool:
    """Whether a convolution, of one group of channels, is quicker so."""
    if pipeline.vector_bytes() < 64 or is_left_out("direct_conv") or dtype not in ("float32", "float64"):
        return False
    return s.filters >= ROWS and s.positions >= POSITIONS and s.filters * s.patch * s.positions >= LEAST


@dataclass(frozen=True)
class Blocks:
    """How a convolution of one sample is divided.

    Attributes:
        s: the shape.
        copies: of one channel for a band of rows of the result; None: the image is read in place, and there is one band.
        channels: of a block.
        kind: what is multiplied (`MultiplyAdd`).
    """

    s: Conv
    dtype: str
    copies: Copies | None
    channels: int
    kind: str = "float"

    @property
    def tile(self) -> tuple[int, int]:
        """Filters and vectors of positions of a tile."""
        return (ROWS, VECTORS) if pipeline.vector_bytes() >= 64 else NARROW

    @property
    def wide(self) -> int:
        """Positions of a tile."""
        return self.tile[1] * lanes_for(self.dtype)

    @property
    def step(self) -> int:
        """Elements from a channel to the next one.

        An odd number of vectors: channels a power of two apart would share few places in caches.
        """
        if self.copies is None:
            return self.s.height * self.s.width
        lanes = lanes_for(self.dtype)
        vectors = -(-self.copies.size // lanes)
        return (vectors + 1 - vectors % 2) * lanes

    @property
    def copied(self) -> int:
        """Elements of the copies of a block; the last vectors of a band may be read from beyond them."""
        return 0 if self.copies is None else self.channels * self.step + self.wide

    @property
    def size(self) -> int:
        """Elements of scratch memory: the copies, and the patches of positions behind the last whole vector."""
        return self.copied + self.dots * self.channels * self.s.taps

    @property
    def dots(self) -> int:
        """So many positions at the end of a band are products of vectors that lie along the patches."""
        lanes = lanes_for(self.dtype)
        rest = self.rows * self.s.out_width % lanes
        whole = all(
            channels * self.s.taps % lanes == 0 for channels in (self.channels, self.s.channels % self.channels)
        )
        return rest if rest <= DOTS and whole else 0

    @property
    def together(self) -> int:
        """Channels that are taken at once, as if they were taps: one tap alone would be a short loop."""
        return math.gcd(16, self.channels, self.s.channels) if self.s.taps == 1 else 1

    @property
    def panels(self) -> int:
        """Whole panels of positions that threads share: where there are more positions than filters, these are read twice."""
        in_panels = self.copies is None and 8 * self.s.filters <= self.s.positions
        return (self.s.positions - self.dots) // self.wide if in_panels else 0

    @property
    def again(self) -> bool:
        """Whether the image is read again for each tile of filters, and not the filters for each panel of the image."""
        return self.s.taps == 1 and self.channels * self.rows * self.s.out_width * ITEM[self.dtype] <= AGAIN

    @property
    def rows(self) -> int:
        """Rows of the result in a band."""
        return self.s.out_height if self.copies is None else self.copies.rows

    @property
    def bands(self) -> int:
        """How many bands there are; the last one may overlap with the one before."""
        return -(-self.s.out_height // self.rows)

    @property
    def blocks(self) -> int:
        """How many blocks of channels there are; the last one may have fewer."""
        return -(-self.s.channels // self.channels)

    def offset(self, kh: int, kw: int) -> int:
        """Where a tap of a channel begins."""
        return 0 if self.copies is None else self.copies.offset(kh, kw)

    @property
    def near(self) -> int:
        """Bytes of the image that a tile reads: of each column of the window and each phase a run, or one for each row."""
        s, wide, lanes = self.s, self.wide, lanes_for(self.dtype)
        if self.copies is None:
            return self.channels * (wide + lanes) * ITEM[self.dtype]
        down = s.strides[0] if s.dilations[0] == 1 else 1
        rows = [len(range(phase, s.kernel[0], down)) for phase in self.copies.phases]
        runs = [min(wide + (count - 1) * s.out_width, count * wide) + lanes for count in rows]
        return self.channels * s.kernel[1] * sum(runs) * ITEM[self.dtype]

    @property
    def cost(self) -> float:
        """Cycles, roughly, for what passes between caches: filters and copies for each band, results of each block."""
        s, item = self.s, ITEM[self.dtype]
        band = s.filters * (self.rows * s.out_width + self.channels * s.taps)
        results = 2 * (self.blocks - 1) * s.size_out / (40 if (self.size + band) * item <= CACHE else 12)
        copies = 0 if self.copies is None else s.channels * self.copies.size / 16
        return item * (results + self.bands * (copies + s.weights / (8 if s.weights * item > CACHE // 2 else 32)))


def divide(s: Conv, dtype: str, tasks: int = 1, kind: str = "float") -> Blocks:
    """The cheapest division of those in which what a tile reads of the image stays in the first-level cache."""
    lanes = lanes_for(dtype)
    rest = s.positions % lanes
    in_place = s.is_pointwise and (rest == 0 or rest <= DOTS and s.channels % 16 == 0)
    if s.is_pointwise and not in_place:
        s = Conv(s.channels, 1, s.positions, s.filters, (1, 1))
    one = Blocks(s, dtype, None if in_place else Copies(s, dtype, s.out_height, True), 1, kind)
    most = max(1, (ONCE if s.taps == 1 else NEAR) // one.near)
    channels = s.channels
    if most < channels:
        share = -(-channels // -(-channels // most))
        channels = share if most < 16 else min(most // 16, -(-share // 16)) * 16
    if in_place:
        return replace(one, channels=channels)
    rows = {-(-s.out_height // k) for k in range(1, s.out_height + 1)}
    found = [Blocks(s, dtype, Copies(s, dtype, r, True), channels, kind) for r in rows]
    if (
        tasks > 1 and s.channels * Copies(s, dtype, s.out_height, True).size > s.weights
    ):  # threads that share filters would all copy the image
        found = [
            b for b in found if b.bands >= 2 * tasks or b.bands % tasks == 0 and b.bands * b.rows == s.out_height
        ] or found
    return min(found, key=lambda b: (b.cost, b.bands))


Finish = Callable[[Any, Any, Any, Any, int], Any]
"""(value, sample, channel, position, lanes) -> value."""


def direct_conv(
    c: Any, s: Conv, n: Any, groups: int, tasks: int, finish: Finish | None, kind: str = "float", fill: int = 0
) -> None:  # fmt: skip
    """Emit it.

    Args:
        c: the call.
        s: the shape, of one group.
        n: batch size, an int or an expression.
        groups: of channels.
        tasks: on so many threads.
        finish: what is applied to the results.
        kind: what is multiplied (`MultiplyAdd`).
        fill: what images are padded with.
    """
    alone = n == 1 and groups == 1
    d = divide(s, c.out_type.dtype, tasks if alone else 1, kind)
    if d.bands >= 2 * tasks or d.bands % tasks == 0 and d.bands * d.rows == s.out_height:
        shared = "bands", d.bands
    else:
        shared = ("panels", d.panels) if d.panels >= 8 * tasks else ("tiles", s.filters // d.tile[0])
    e = _Emitter(c, d, next_matrix(c, tasks) if alone and kind == "float" else None, fill)
    over_samples(c, s, n, groups, tasks, e.sample, shared, d.size + e.sums, finish, d.tile[0])


def over_samples(
    c: Any, s: Conv, n: Any, groups: int, tasks: int, emit: Any, shared: tuple[str, int], size: int, finish: Any,
    rows: int = ROWS,
) -> None:  # fmt: skip
    """Emit the samples and groups of a convolution on so many threads, which share the only one.

    Args:
        c, s, n, groups, tasks, finish: as in `direct_conv`.
        emit: one sample; see `_Emitter.sample`.
        shared: by what, and how many there are: bands (two that overlap of one thread), panels, or tiles of filters.
        size: elements of memory that each thread has.
        rows: filters of a tile.
    """
    source, filters, out = c.operand(0), c.operand(1), c.result()
    memory = c.scratch(max(1, size * tasks), c.out_type.dtype)

    def body(task: Any, item: Any, **part: Any) -> None:
        group = tirx.Mod(idx(item), idx(groups)) if groups > 1 else 0
        sample = tirx.Div(idx(item), idx(groups)) if groups > 1 else item
        x, w, y = (
            at(source, times(item, s.size_in)),
            at(filters, times(group, s.weights)),
            at(out, times(item, s.size_out)),
        )

        def finished(value: Any, channel: Any, position: Any, lanes: int) -> Any:
            assert finish is not None
            return finish(value, sample, plus(times(group, s.filters), channel), position, lanes)

        emit(task, (x, w, y), at(memory, times(task, size)), None if finish is None else finished, **part)

    if not (isinstance(n, int) and n * groups == 1):
        with split(c.block, n * groups if isinstance(n, int) else tirx.Mul(n, idx(groups)), tasks) as (task, item):
            body(task, c.block.let(idx(item)))
    elif tasks == 1:
        body(0, 0)
    else:
        by, total = shared
        with c.block.loop(tasks, "parallel", "task") as task:
            first = c.block.let(tirx.Div(tirx.Mul(task, idx(total)), idx(tasks)))
            behind = tirx.Div(tirx.Mul(tirx.Add(task, idx(1)), idx(total)), idx(tasks))
            share = first, c.block.let(tirx.Sub(behind, first))
            part: dict[str, Any] = {by: share}
            if by == "panels" or by == "tiles" and s.filters % rows:
                part["rest"] = tirx.EQ(task, idx(tasks - 1))
            body(task, 0, **part)


class _Emitter:
    """Emits the statements of samples."""

    def __init__(self, c: Any, d: Blocks, matrix: NextMatrix | None, fill: int = 0):
        self.c, self.block, self.d, self.s, self.matrix, self.fill = c, c.block, d, d.s, matrix, fill
        kernel = self.s.kernel
        places = [d.offset(kh, kw) for kh in range(kernel[0]) for kw in range(kernel[1])]
        places = [k * d.step + place for k in range(d.together) for place in places]
        self.taps = self.block.local("int64", len(places), "taps")
        for k, place in enumerate(places):
            self.block.store(self.taps, idx(place), k)

    @property
    def sums(self) -> int:
        """Elements of memory for sums, where the results are of another dtype: of a tile, or of a sample in several blocks."""
        if self.c.target.dtype == self.d.dtype:
            return 0
        return self.d.tile[0] * self.d.wide if self.d.blocks == 1 else self.s.size_out

    def sample(
        self, task: Any, operands: tuple[Operand, Operand, Operand], copies: Operand, finish: Any, bands: Any = None,
        tiles: Any = None, panels: Any = None, rest: Any = None,
    ) -> None:  # fmt: skip
        """One sample.

        Args:
            task: the thread's number.
            operands: the image, the filters and the result.
            copies: memory of this thread.
            finish: (value, channel, position, lanes) -> value, or None.
            bands: the first one and how many; None for all.
            tiles: of so many whole ones of filters, likewise.
            panels: of positions, likewise.
            rest: a condition that the filters that do not fill a tile, or the positions that do not fill a panel, are computed
                too.
        """
        d, s, block, (x, w, y) = self.d, self.s, self.block, operands
        first_band, count = bands or (0, d.bands)
        full, wide = d.tile[0], d.wide
        tiles = tiles or (0, s.filters // full)
        whole, part = divmod(d.rows * s.out_width - d.dots, wide)
        number = times(plus(panels[1] if panels else whole, part > 0), d.blocks)
        fetch = None if self.matrix is None else _Fetch(self, task, tirx.Mul(idx(tiles[1]), idx(number)), count)
        with block.loop(count, name="band") as band:
            top = 0
            if d.bands > 1:
                top = block.let(tirx.Min(times(plus(band, first_band), d.rows), idx(s.out_height - d.rows)))
            with block.loop(d.blocks, name="block") as k:
                begin, channels, last = 0, idx(s.channels), None
                if d.blocks > 1:
                    begin = block.let(times(k, d.channels))
                    channels = block.let(tirx.Min(idx(d.channels), tirx.Sub(idx(s.channels), begin)))
                    last = tirx.EQ(k, idx(d.blocks - 1))
                source = at(x, times(begin, s.height * s.width))
                if d.copies is not None:
                    source, plane = copies, s.height * s.width
                    with block.loop(channels, name="c") as channel:
                        image = at(x, times(plus(channel, begin), plane))
                        call_copies(self.c, d.copies, image, at(copies, times(channel, d.step)), top, self.fill)
                place = times(top, s.out_width)
                adds = idx(0) if last is None else block.let(tirx.Cast("int64", tirx.GT(k, idx(0))))
                if d.dots:
                    self.patches(source, at(copies, d.copied), channels)

                def tile(channel: Any, rows: int, p: Any, columns: int) -> None:
                    left = at(w, plus(times(channel, s.patch), times(begin, s.taps)))
                    into, apart = at(y, plus(times(channel, s.positions), place, p)), s.positions
                    sums = into
                    if self.sums and d.blocks == 1:
                        sums, apart = at(copies, d.size), wide
                    elif self.sums:
                        sums = at(copies, plus(d.size, times(channel, s.positions), place, p))
                    if d.dots and columns == d.dots:
                        key, right = (tile_of_dots, d.dtype, rows, columns, d.kind), at(copies, d.copied)
                        sizes: tuple = (s.patch, apart, channels, s.taps, adds)
                    else:
                        right = at(source, p)
                        count = idx(s.channels // d.together) if d.blocks == 1 else tirx.Div(channels, idx(d.together))
                        sizes = s.patch, s.taps * d.together, d.step * d.together, apart, count, adds
                        unrolled = next(k for k in UNROLLED if s.taps * d.together % k == 0)
                        key = tile_of_sums, d.dtype, rows, columns, unrolled, d.kind
                        if finish is not None and last is None and s.patch <= SHORT and (rows, columns) == (full, wide):
                            sizes = *sizes[:3], s.positions, *sizes[4:]

                            def finished(value: Any, r: int, start: int, lanes: int) -> Any:
                                return finish(value, plus(channel, r), plus(place, p, start), lanes)

                            def ahead(k: Any) -> None:
                                self.fetch(
                                    at(source, plus(p, columns)),
                                    tirx.Add(tirx.Div(tirx.Mul(idx(channel), count), idx(full)), k),
                                )

                            emit_sums(
                                *(block, key[1:], (left, right, into), self.taps, sizes, finished),
                                ahead if s.taps == 1 and not d.again else None,
                            )
                            return
                    if fetch is not None and rows == full and key[0] is tile_of_sums:
                        fetch.call_tile(key, (left, right, sums, (self.taps, 0)), sizes)
                    else:
                        call_tile(self.c, key, (left, right, sums, (self.taps, 0)), sizes)
                    if finish is None:
                        return
                    with contextlib.nullcontext() if last is None else block.when(last):
                        self.finish((sums, apart), into, rows, columns, finish, channel, plus(place, p))

                self.tiles(tile, tiles, panels, rest)

    def fetch(self, panel: Operand, k: Any) -> None:
        """Ask for the `k`-th part of a panel of an image: one for each iteration of a tile's loop of each tile of filters."""
        d, s = self.d, self.s
        tiles, line = s.filters // d.tile[0], 64 // ITEM[d.dtype]
        lines = -(-d.wide // line) + (s.positions % line != 0)
        first = self.block.let(tirx.Div(tirx.Mul(k, idx(d.together)), idx(tiles)))
        for channel in range(-(-d.together // tiles)):
            for each in range(lines):
                place = plus(panel[1], times(plus(first, channel), d.step), each * line)
                self.block.prefetch(panel[0], place, write=False, near=2)

    def tiles(
        self, tile: Callable[[Any, int, Any, int], None], tiles: tuple[Any, Any], panels: Any, rest: Any
    ) -> None:  # fmt: skip
        """All tiles of a band, or those of some panels: (first filter, how many, first position, how many)."""
        d, s, block = self.d, self.s, self.block
        (full, _), wide, positions = d.tile, d.wide, d.rows * s.out_width

        def over_filters(body: Callable[[Any, int], None]) -> None:
            with block.loop(tiles[1], name="o") as o:
                body(block.let(times(plus(o, tiles[0]), full)), full)
            if s.filters % full and (rest is None or panels is not None):
                body(s.filters - s.filters % full, s.filters % full)
            elif s.filters % full:
                with block.when(rest):
                    body(s.filters - s.filters % full, s.filters % full)

        end = positions - d.dots

        def over_positions(body: Callable[[Any, int], None]) -> None:
            if end >= wide:
                first, count = panels or (0, end // wide)
                with block.loop(count, name="p") as p:
                    body(block.let(times(plus(p, first), wide)), wide)
            if not positions % wide:
                return
            with block.when(rest) if panels is not None else contextlib.nullcontext():
                if end % wide:
                    body(end - end % wide, end % wide)
                if d.dots:
                    body(end, d.dots)

        if d.again:
            over_filters(lambda o, rows: over_positions(lambda p, columns: tile(o, rows, p, columns)))
        else:
            over_positions(lambda p, columns: over_filters(lambda o, rows: tile(o, rows, p, columns)))

    def patches(self, source: Operand, to: Operand, channels: Any) -> None:
        """Write the patches of the last positions one behind the other."""
        d, s, block = self.d, self.s, self.block
        first = d.rows * s.out_width - d.dots
        with block.loop(channels, name="c") as c, block.loop(s.taps, name="t") as t:
            begin = block.let(tirx.Add(plus(source[1], times(c, d.step), first), load(self.taps, t)))
            along = block.let(tirx.Add(idx(to[1]), tirx.Add(times(c, s.taps), t)))
            for k in range(d.dots):
                place = tirx.Add(along, times(tirx.Mul(channels, idx(s.taps)), k))
                block.store(to[0], load(source[0], plus(begin, k)), place)

    def finish(
        self, sums: tuple[Operand, int], y: Operand, rows: int, columns: int, finish: Any, channel: Any, position: Any
    ) -> None:  # fmt: skip
        """Apply what follows to a complete tile, of which rows lie so far apart."""
        block, (source, apart) = self.block, sums
        with block.loop(rows, name="r") as r:
            for start, lanes in pieces(columns, lanes_for(self.d.dtype)):
                value = block.let(vload(*at(source, plus(times(r, apart), start)), lanes))
                target = at(y, plus(times(r, self.s.positions), start))
                block.vstore(target[0], finish(value, plus(channel, r), plus(position, start), lanes), target[1])


class _Fetch:
    """Lets the last tiles of a thread ask for the matrix of a later product; before them it would be replaced in the cache.

    Args:
        e: what emits a sample.
        task: the thread's number.
        tiles: of a band.
        bands: of the thread.
    """

    def __init__(self, e: _Emitter, task: Any, tiles: Any, bands: Any):
        d, matrix, self.block, self.c = e.d, e.matrix, e.block, e.c
        assert matrix is not None
        operand = e.c.kernel.buffer(e.c.lowering.view(matrix.node)), 0
        self.matrix, self.count = at(operand, plus(times(task, matrix.apart), matrix.first)), matrix.count
        taps = e.s.taps * d.together
        unrolled = next(k for k in UNROLLED if taps % k == 0)
        self.lines = -(-3 * unrolled // 4)  # of a cache at every step of a tile, of so many taps
        self.chunk = d.channels // d.together * (taps // unrolled) * self.lines * 64 // ITEM[d.dtype]
        self.left = e.block.local("int64", 1, "left")
        e.block.store(self.left, tirx.Mul(tirx.Mul(idx(tiles), idx(bands)), idx(self.chunk)), 0)

    def call_tile(self, key: tuple, operands: Any, sizes: Any) -> None:
        """As the function of this name."""
        block = self.block
        left = block.let(tirx.Sub(load(self.left, 0), idx(self.chunk)))
        block.store(self.left, left, 0)
        with block.when(tirx.LT(left, idx(self.count))):
            begin = block.let(tirx.Max(idx(0), tirx.Sub(idx(self.count - self.chunk), left)))
            call_tile(self.c, (*key, self.lines), (*operands, at(self.matrix, begin)), sizes)
        with block.otherwise():
            call_tile(self.c, key, operands, sizes)


__all__ = ["ROWS", "UNROLLED", "VECTORS", "Blocks", "direct_conv", "divide", "is_direct", "over_samples"]
