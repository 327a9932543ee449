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

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx

from ....utils.switches import is_left_out
from ..plan import ITEM
from ..tir import pipeline
from ..tir.block import Block, broadcast, const, idx, load, shuffle, vload, with_lanes
from ..tir.exact import fma
from .conv import split
from .copies import Copies
from .kernel import address_of, buffer_parameter
from .nests import lanes_for
from .patches import Conv, Operand, at, pieces, plus, times

ROWS, VECTORS = 8, 3  # of a tile: together with a row of vectors and a number, these are the registers of AVX-512
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
    """

    s: Conv
    dtype: str
    copies: Copies | None
    channels: int

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
        return 0 if self.copies is None else self.channels * self.step + VECTORS * lanes_for(self.dtype)

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
        s, wide = self.s, VECTORS * lanes_for(self.dtype)
        if self.copies is None:
            return self.channels * (wide + wide // VECTORS) * ITEM[self.dtype]
        rows = [len(range(phase, s.kernel[0], s.strides[0])) for phase in self.copies.phases]
        runs = [min(wide + (count - 1) * s.out_width, count * wide) + wide // VECTORS for count in rows]
        return self.channels * s.kernel[1] * sum(runs) * ITEM[self.dtype]

    @property
    def cost(self) -> float:
        """Cycles, roughly, for what passes between caches: filters and copies for each band, results of each block."""
        s, item = self.s, ITEM[self.dtype]
        band = s.filters * (self.rows * s.out_width + self.channels * s.taps)
        results = 2 * (self.blocks - 1) * s.size_out / (40 if (self.size + band) * item <= CACHE else 12)
        copies = 0 if self.copies is None else s.channels * self.copies.size / 16
        return item * (results + self.bands * (copies + s.weights / (8 if s.weights * item > CACHE // 2 else 32)))


def divide(s: Conv, dtype: str) -> Blocks:
    """The cheapest division of those in which what a tile reads of the image stays in the first-level cache."""
    lanes = lanes_for(dtype)
    rest = s.positions % lanes
    in_place = s.is_pointwise and (rest == 0 or rest <= DOTS and s.channels % 16 == 0)
    if s.is_pointwise and not in_place:
        s = Conv(s.channels, 1, s.positions, s.filters, (1, 1))
    one = Blocks(s, dtype, None if in_place else Copies(s, dtype, s.out_height, True), 1)
    most = max(1, (ONCE if s.taps == 1 else NEAR) // one.near)
    channels = s.channels
    if most < channels:
        share = -(-channels // -(-channels // most))
        channels = share if most < 16 else min(most // 16, -(-share // 16)) * 16
    if in_place:
        return replace(one, channels=channels)
    rows = {-(-s.out_height // k) for k in range(1, s.out_height + 1)}
    return min((Blocks(s, dtype, Copies(s, dtype, r, True), channels) for r in rows), key=lambda b: (b.cost, b.bands))


Finish = Callable[[Any, Any, Any, Any, int], Any]
"""(value, sample, channel, position, lanes) -> value."""


def direct_conv(c: Any, s: Conv, n: Any, groups: int, tasks: int, finish: Finish | None) -> None:
    """Emit it.

    Args:
        c: the call.
        s: the shape, of one group.
        n: batch size, an int or an expression.
        groups: of channels.
        tasks: on so many threads.
        finish: what is applied to the results.
    """
    d = divide(s, c.out_type.dtype)
    over_samples(c, s, n, groups, tasks, _Emitter(c, d).sample, d.bands, d.size, finish)


def over_samples(
    c: Any, s: Conv, n: Any, groups: int, tasks: int, emit: Any, bands: int, size: int, finish: Any
) -> None:  # fmt: skip
    """Emit the samples and groups of a convolution on so many threads, which share the only one by bands or by filters.

    Args:
        c, s, n, groups, tasks, finish: as in `direct_conv`.
        emit: one sample; see `_Emitter.sample`.
        bands: of a sample.
        size: elements of memory that each thread has.
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

        emit(x, w, y, at(memory, times(task, size)), None if finish is None else finished, **part)

    if not (isinstance(n, int) and n * groups == 1):
        with split(c.block, n * groups if isinstance(n, int) else tirx.Mul(n, idx(groups)), tasks) as (task, item):
            body(task, c.block.let(idx(item)))
    elif tasks == 1:
        body(0, 0)
    else:
        by_band = bands >= 2 * tasks
        total = bands if by_band else s.filters // ROWS
        with c.block.loop(tasks, "parallel", "task") as task:
            first = c.block.let(tirx.Div(tirx.Mul(task, idx(total)), idx(tasks)))
            behind = tirx.Div(tirx.Mul(tirx.Add(task, idx(1)), idx(total)), idx(tasks))
            share = first, c.block.let(tirx.Sub(behind, first))
            part: dict[str, Any] = {"bands": share} if by_band else {"tiles": share}
            if not by_band and s.filters % ROWS:
                part["rest"] = tirx.EQ(task, idx(tasks - 1))
            body(task, 0, **part)


class _Emitter:
    """Emits the statements of samples."""

    def __init__(self, c: Any, d: Blocks):
        self.c, self.block, self.d, self.s = c, c.block, d, d.s
        kernel = self.s.kernel
        places = [d.offset(kh, kw) for kh in range(kernel[0]) for kw in range(kernel[1])]
        places = [k * d.step + place for k in range(d.together) for place in places]
        self.taps = self.block.local("int64", len(places), "taps")
        for k, place in enumerate(places):
            self.block.store(self.taps, idx(place), k)

    def sample(
        self, x: Operand, w: Operand, y: Operand, copies: Operand, finish: Any, bands: Any = None, tiles: Any = None,
        rest: Any = None,
    ) -> None:  # fmt: skip
        """One sample.

        Args:
            x, w, y: the operands.
            copies: memory of this thread.
            finish: (value, channel, position, lanes) -> value, or None.
            bands: the first one and how many; None for all.
            tiles: of so many whole ones of filters, likewise.
            rest: a condition that the filters that do not fill a tile are computed too.
        """
        d, s, block = self.d, self.s, self.block
        first_band, count = bands or (0, d.bands)
        wide = VECTORS * lanes_for(d.dtype)
        tiles = tiles or (0, s.filters // ROWS)
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
                        call_copies(self.c, d.copies, image, at(copies, times(channel, d.step)), top)
                place = times(top, s.out_width)
                adds = idx(0) if last is None else block.let(tirx.Cast("int64", tirx.GT(k, idx(0))))
                if d.dots:
                    self.patches(source, at(copies, d.copied), channels)

                def tile(channel: Any, rows: int, p: Any, columns: int) -> None:
                    left = at(w, plus(times(channel, s.patch), times(begin, s.taps)))
                    into = at(y, plus(times(channel, s.positions), place, p))
                    if d.dots and columns == d.dots:
                        key, right = (tile_of_dots, d.dtype, rows, columns), at(copies, d.copied)
                        sizes: tuple = (s.patch, s.positions, channels, s.taps, adds)
                    else:
                        right = at(source, p)
                        count = tirx.Div(channels, idx(d.together)) if d.together > 1 else channels
                        sizes = s.patch, s.taps * d.together, d.step * d.together, s.positions, count, adds
                        unrolled = next(k for k in UNROLLED if s.taps * d.together % k == 0)
                        key = tile_of_sums, d.dtype, rows, columns, unrolled
                        if finish is not None and last is None and s.patch <= SHORT and (rows, columns) == (ROWS, wide):

                            def finished(value: Any, r: int, start: int, lanes: int) -> Any:
                                return finish(value, plus(channel, r), plus(place, p, start), lanes)

                            _sums(block, key[1:], (left, right, into), self.taps, sizes, finished)
                            return
                    call_tile(self.c, key, (left, right, into, (self.taps, 0)), sizes)
                    if finish is None:
                        return
                    if last is None:
                        self.finish(into, rows, columns, finish, channel, plus(place, p))
                    else:
                        with block.when(last):
                            self.finish(into, rows, columns, finish, channel, plus(place, p))

                self.tiles(tile, tiles, rest)

    def tiles(self, tile: Callable[[Any, int, Any, int], None], tiles: tuple[Any, Any], rest: Any) -> None:
        """All tiles of a band: (first filter, how many, first position, how many)."""
        d, s, block = self.d, self.s, self.block
        wide, positions = VECTORS * lanes_for(d.dtype), d.rows * s.out_width

        def over_filters(body: Callable[[Any, int], None]) -> None:
            with block.loop(tiles[1], name="o") as o:
                body(block.let(times(plus(o, tiles[0]), ROWS)), ROWS)
            if s.filters % ROWS and rest is None:
                body(s.filters - s.filters % ROWS, s.filters % ROWS)
            elif s.filters % ROWS:
                with block.when(rest):
                    body(s.filters - s.filters % ROWS, s.filters % ROWS)

        end = positions - d.dots

        def over_positions(body: Callable[[Any, int], None]) -> None:
            if end >= wide:
                with block.loop(end // wide, name="p") as p:
                    body(block.let(times(p, wide)), wide)
            if end % wide:
                body(end - end % wide, end % wide)
            if d.dots:
                body(end, d.dots)

        if s.taps == 1 and d.channels * positions * ITEM[d.dtype] <= AGAIN:
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

    def finish(self, y: Operand, rows: int, columns: int, finish: Any, channel: Any, position: Any) -> None:
        """Apply what follows to a complete tile."""
        block = self.block
        with block.loop(rows, name="r") as r:
            begin = at(y, times(r, self.s.positions))
            for start, lanes in pieces(columns, lanes_for(self.d.dtype)):
                target = at(begin, start)
                value = block.let(vload(*target, lanes))
                block.vstore(target[0], finish(value, plus(channel, r), plus(position, start), lanes), target[1])


def call_tile(c: Any, key: tuple, operands: Any, sizes: Any) -> None:
    """Call a function that the kernels of the program share.

    Args:
        c: the call.
        key: what makes the function, and of what.
        operands: four.
        sizes: numbers.
    """
    make, *of = key
    addresses = [address_of(o[0], idx(o[1])) for o in operands]
    c.kernel.call((make.__name__.strip("_"), *of), functools.partial(make, *of), [*addresses, *map(idx, sizes)])


def call_copies(c: Any, copies: Copies, x: Operand, to: Operand, top: Any) -> None:
    """Copy a plane: `copies.emit`, in a function that the kernels of the program share."""
    known = top if isinstance(top, int) else None
    call_tile(c, (_copied, copies, known), (x, to, to, to), (top,))


def _copied(copies: Copies, top: int | None) -> tuple[list[Any], Block]:
    f = TileFunction(copies.dtype, "top")
    copies.emit(f.block, (f.buffers[0], 0), (f.buffers[1], 0), f.numbers[0] if top is None else top)
    return f.done()


class TileFunction:
    """The function of a tile under construction: of four addresses, and of numbers."""

    def __init__(self, dtype: str, *numbers: str):
        self.block = Block()
        parameters = [buffer_parameter(name, dtype) for name in ("left", "right", "out")]
        parameters.append(buffer_parameter("taps", "int64"))
        self.pointers, self.buffers, declarations = zip(*parameters)
        for declaration in declarations:
            self.block.emit(declaration)
        self.numbers = [tirx.Var(name, "int64") for name in numbers]

    def done(self) -> tuple[list[Any], Block]:
        """Its parameters and statements."""
        return [*self.pointers, *self.numbers], self.block


def tile_of_sums(dtype: str, rows: int, columns: int, unrolled: int = 1) -> tuple[list[Any], Block]:
    """A tile: out[r, p] (+)= sum over c, t of left[r * down + c * taps + t] * right[c * step + at[t] + p].

    Returns:
        Parameters and statements: of the addresses of its corner in both operands and the result, and of the taps' offsets; of
        `down`, the number of taps (a multiple of `unrolled`), `step`, how far rows of the result lie apart, the number of
        channels, and whether to add to the result.
    """
    f = TileFunction(dtype, "down", "taps", "step", "out_step", "channels", "adds")
    left, right, out, offsets = f.buffers
    _sums(f.block, (dtype, rows, columns, unrolled), ((left, 0), (right, 0), (out, 0)), offsets, f.numbers)
    return f.done()


def _sums(
    block: Block, key: tuple[str, int, int, int], operands: tuple[Operand, ...], offsets: Any, numbers: Any,
    finish: Callable[[Any, int, int, int], Any] | None = None,
) -> None:  # fmt: skip
    """The statements of `tile_of_sums`; `finish` of (value, row, position, lanes) is what is stored."""
    (dtype, rows, columns, unrolled), (left, right, out) = key, operands
    down, taps, step, out_step, channels, adds = map(idx, numbers)
    lanes = lanes_for(dtype)
    # The last vector is whole in registers; of the result only what is there is read and written.
    vectors = [(start, min(lanes, columns - start)) for start in range(0, columns, lanes)]
    sums = [[block.cell(const(0.0, with_lanes(dtype, lanes)), "acc") for _ in vectors] for _ in range(rows)]
    places = [
        (acc, idx(plus(out[1], tirx.Mul(idx(r), out_step), start)), width, r, start)
        for r, accs in enumerate(sums)
        for acc, (start, width) in zip(accs, vectors)
    ]
    with block.when(tirx.NE(adds, idx(0))):
        for acc, place, width, *_ in places:
            block.store(acc, _widened(vload(out[0], place, width), width, lanes, dtype), 0)
    with block.otherwise():
        for _, place, *_ in places:  # which are written when the sums are complete
            block.prefetch(out[0], place)
    with block.loop(channels, name="c") as c:
        weights = block.let(idx(plus(left[1], tirx.Mul(c, taps))))
        image = block.let(idx(plus(right[1], tirx.Mul(c, step))))
        for r in range(rows):  # the filters of the next tile, which lie far apart
            block.prefetch(left[0], tirx.Add(weights, tirx.Mul(idx(rows + r), down)), write=False)
        with block.loop(tirx.Div(taps, idx(unrolled)) if unrolled > 1 else taps, name="t") as t:
            first = block.let(idx(times(t, unrolled)))
            along = block.let(tirx.Add(weights, first))
            filters = [block.let(tirx.Add(along, tirx.Mul(idx(r), down))) for r in range(rows)]
            for k in range(unrolled):
                begin = block.let(tirx.Add(image, load(offsets, plus(first, k))))
                values = [block.let(vload(right[0], tirx.Add(begin, idx(start)), lanes)) for start, _ in vectors]
                for r in range(rows):
                    factor = broadcast(block.let(load(left[0], plus(filters[r], k))), lanes)
                    for acc, value in zip(sums[r], values):
                        block.store(acc, fma(factor, value, load(acc, 0)), 0)
    for acc, place, width, r, start in places:
        found = load(acc, 0)
        if width < lanes:
            found = shuffle([found], range(width))
        block.vstore(out[0], found if finish is None else finish(found, r, start, width), place)


def tile_of_dots(dtype: str, rows: int, columns: int) -> tuple[list[Any], Block]:
    """A tile of products of vectors: out[r, p] (+)= sum over k of left[r * down + k] * right[p, k].

    Returns:
        Parameters and statements: of addresses, the last one unused; of `down`, how far rows of the result lie apart, the numbers
        of channels and of taps, whose product is the length of the vectors, and whether to add to the result.
    """
    f = TileFunction(dtype, "down", "out_step", "channels", "taps", "adds")
    (left, right, out, _), (down, out_step, channels, taps, adds) = f.buffers, f.numbers
    lanes, block = lanes_for(dtype), f.block
    length = block.let(tirx.Mul(channels, taps))
    for few in range(0, columns, 2):  # of which the sums stay in registers
        count = min(2, columns - few)
        sums = [[block.cell(const(0.0, with_lanes(dtype, lanes)), "acc") for _ in range(count)] for _ in range(rows)]
        with block.loop(tirx.Div(length, idx(lanes)), name="k") as k:
            along = block.let(tirx.Mul(k, idx(lanes)))
            values = [
                block.let(vload(right, tirx.Add(along, tirx.Mul(idx(few + p), length)), lanes)) for p in range(count)
            ]
            for r in range(rows):
                factor = block.let(vload(left, tirx.Add(along, tirx.Mul(idx(r), down)), lanes))
                for acc, value in zip(sums[r], values):
                    block.store(acc, fma(factor, value, load(acc, 0)), 0)
        for r, accs in enumerate(sums):
            for p, acc in enumerate(accs):
                place = block.let(tirx.Add(tirx.Mul(idx(r), out_step), idx(few + p)))
                total = block.folded(load(acc, 0), tirx.Add)
                with block.when(tirx.NE(adds, idx(0))):
                    block.store(out, tirx.Add(load(out, place), total), place)
                with block.otherwise():
                    block.store(out, total, place)
    return f.done()


def _widened(found: Any, width: int, lanes: int, dtype: str) -> Any:
    """Some elements as a whole vector."""
    if width == lanes:
        return found
    vector = broadcast(found, 2) if width == 1 else found
    behind = width + (width == 1)
    zeros = const(0.0, with_lanes(dtype, lanes))
    return shuffle([vector, zeros], [*range(width), *range(behind, behind + lanes - width)])


__all__ = [
    "Blocks",
    "TileFunction",
    "call_copies",
    "call_tile",
    "direct_conv",
    "divide",
    "is_direct",
    "tile_of_dots",
    "tile_of_sums",
]
