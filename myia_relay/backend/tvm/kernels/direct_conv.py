"""Convolution as a product whose right operand is read out of shifted copies of the image: no matrix of patches, no packed
filters.

The result is `filters @ patches`: a row for each filter, a column for each position. A row of the matrix of patches is one tap
(a channel, a row and a column of the window) at all positions, and that is a run of memory in shifted copies of the image
(`copies`). So a channel is copied as often as the window is wide, in place of once for each tap, and a vector of positions may
begin anywhere: images of 14 or 28 columns fill vectors as well as any others.

A tile of 8 filters and 3 vectors of positions stays in registers while it is summed over a block of channels. Filters are read
where they are, one number for all lanes. They are not packed: for large filters and few positions nothing would repay it, and
nothing has to be kept from call to call that might be out of date. Copies are made of a band of rows and a block of channels,
so many that they stay in the second-level cache. What follows element by element (bias, activation, residual) is applied to a
tile as soon as it is complete.

A 1x1 window of stride 1 needs no copy where the positions fill whole vectors.

Input: an `opaque.Call`, static sizes. Output: statements in its kernel, and functions of tiles, which all convolutions of a
program share. Sources: J. Zhang, F. Franchetti and T. M. Low, "High Performance Zero-Memory Overhead Direct Convolutions" (ICML
2018); for the copies, A. Anderson et al., "High-performance low-memory lowering" (SBAC-PAD 2020).

Measured (Sapphire Rapids, one thread, float32, in one run with OpenBLAS's sgemm at 141 to 150 GFLOP/s): 3x3 of stride 1 in
ResNet-18 121 to 159, in VGG-16 139 to 156; 1x1 in MobileNet 113 to 161; 7x7 of stride 2 155. With patches and the BLAS these
were 62 to 139, 70 to 142 and 73. With vectors of less than 512 bits nothing was measured, and the BLAS multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType

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
CACHE = 1 << 20  # bytes of copies that stay in the second-level cache beside the filters
LEAST = 1 << 20  # multiplications of a sample, below which the BLAS does as well
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
    def size(self) -> int:
        """Elements of the copies of a block; the last vectors of a band may be read from beyond them."""
        return 0 if self.copies is None else self.channels * self.step + VECTORS * lanes_for(self.dtype)

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
    def traffic(self) -> int:
        """Elements that pass between caches and memory: filters and copies for each band, results of each block."""
        s = self.s
        return self.bands * (s.weights + s.channels * self.step) + 2 * (self.blocks - 1) * s.size_out


def divide(s: Conv, dtype: str) -> Blocks:
    """The division with the least traffic, of those whose copies stay in the cache."""
    if s.is_pointwise:
        if s.positions % lanes_for(dtype) == 0:
            return Blocks(s, dtype, None, s.channels)
        s = Conv(s.channels, 1, s.positions, s.filters, (1, 1))
    rows = {-(-s.out_height // k) for k in range(1, s.out_height + 1)}
    channels = {-(-s.channels // k) for k in range(1, s.channels + 1)}
    found = [Blocks(s, dtype, Copies(s, dtype, r, True), c) for c in channels for r in rows]
    fitting = [b for b in found if b.size * ITEM[dtype] <= CACHE]
    return min(fitting or [min(found, key=lambda b: b.size)], key=lambda b: (b.traffic, b.blocks, b.bands))


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
    source, filters, out = c.operand(0), c.operand(1), c.result()
    alone = isinstance(n, int) and n * groups == 1
    scratch = c.scratch(max(1, d.size * tasks), d.dtype)
    e = _Emitter(c, d)

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

        e.sample(x, w, y, at(scratch, times(task, d.size)), None if finish is None else finished, **part)

    if not alone:
        with split(c.block, n * groups if isinstance(n, int) else tirx.Mul(n, idx(groups)), tasks) as (task, item):
            body(task, c.block.let(idx(item)))
    elif tasks == 1:
        body(0, 0)
    else:
        by_band = d.bands >= 2 * tasks
        total = d.bands if by_band else s.filters // ROWS
        with c.block.loop(tasks, "parallel", "task") as task:
            first = c.block.let(tirx.Div(tirx.Mul(task, idx(total)), idx(tasks)))
            behind = tirx.Div(tirx.Mul(tirx.Add(task, idx(1)), idx(total)), idx(tasks))
            share = first, c.block.let(tirx.Sub(behind, first))
            last = tirx.EQ(task, idx(tasks - 1))
            body(task, 0, **({"bands": share} if by_band else {"tiles": share, "rest": last}))


class _Emitter:
    """Emits the statements of samples."""

    def __init__(self, c: Any, d: Blocks):
        self.c, self.block, self.d, self.s = c, c.block, d, d.s
        self.taps = self.block.local("int64", self.s.taps, "taps")
        for kh in range(self.s.kernel[0]):
            for kw in range(self.s.kernel[1]):
                self.block.store(self.taps, idx(d.offset(kh, kw)), kh * self.s.kernel[1] + kw)

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
                source = x
                if d.copies is not None:
                    source, plane = copies, s.height * s.width
                    with block.loop(channels, name="c") as channel:
                        image = at(x, times(plus(channel, begin), plane))
                        d.copies.emit(block, image, at(copies, times(channel, d.step)), top)
                position = times(top, s.out_width)
                accumulate = idx(0) if last is None else block.let(tirx.Cast("int64", tirx.GT(k, idx(0))))

                def tile(channel: Any, rows: int, p: Any, columns: int) -> None:
                    place = plus(times(channel, s.positions), position, p)
                    left = at(w, plus(times(channel, s.patch), times(begin, s.taps)))
                    self.call(rows, columns, left, at(source, p), at(y, place), (channels, accumulate))
                    if finish is None:
                        return
                    if last is None:
                        self.finish(y, place, rows, columns, finish, channel, plus(position, p))
                    else:
                        with block.when(last):
                            self.finish(y, place, rows, columns, finish, channel, plus(position, p))

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

        def over_positions(body: Callable[[Any, int], None]) -> None:
            if positions >= wide:
                with block.loop(positions // wide, name="p") as p:
                    body(block.let(times(p, wide)), wide)
            if positions % wide:
                body(positions - positions % wide, positions % wide)

        # What is in the inner loop is read again and again: positions, in the first cache if the channels are few, else filters.
        if s.filters * d.channels * s.taps * ITEM[d.dtype] <= CACHE:
            over_positions(lambda p, columns: over_filters(lambda o, rows: tile(o, rows, p, columns)))
        else:
            over_filters(lambda o, rows: over_positions(lambda p, columns: tile(o, rows, p, columns)))

    def call(self, rows: int, columns: int, left: Operand, right: Operand, out: Operand, numbers: tuple) -> None:
        """Call the function of a tile, which is made where the program has none such."""
        lowering, d, s = self.c.lowering, self.d, self.s
        key = ("conv", d.dtype, rows, columns)
        if (var := lowering.helpers.get(key)) is None:
            var = lowering.helpers[key] = tvm.ir.GlobalVar(f"t{len(lowering.functions)}_conv")
            lowering.functions[var] = _tile(*key[1:])
        addresses = [address_of(o[0], idx(o[1])) for o in (left, right, out, (self.taps, 0))]
        sizes = [s.patch, s.taps, d.step, s.positions, *numbers]
        self.block.emit(tirx.Evaluate(tvm.ir.Call(var, [*addresses, *map(idx, sizes)], ret_ty="int32")))

    def finish(self, y: Operand, place: Any, rows: int, columns: int, finish: Any, channel: Any, position: Any) -> None:
        """Apply what follows to a complete tile."""
        block = self.block
        with block.loop(rows, name="r") as r:
            begin = block.let(idx(plus(place, times(r, self.s.positions))))
            for start, lanes in pieces(columns, lanes_for(self.d.dtype)):
                target = at(y, plus(begin, start))
                value = block.let(vload(*target, lanes))
                block.vstore(target[0], finish(value, plus(channel, r), plus(position, start), lanes), target[1])


def _tile(dtype: str, rows: int, columns: int) -> Any:
    """A tile: out[r, p] (+)= sum over c, t of left[r * down + c * taps + t] * right[c * step + at[t] + p].

    Returns:
        A function of the addresses of its corner in both operands and the result, and of the taps' offsets; of `down`, the
        number of taps, `step`, how far rows of the result lie apart, the number of channels, and whether to add to the result.
    """
    lanes, block = lanes_for(dtype), Block()
    parameters = [buffer_parameter(name, dtype) for name in ("left", "right", "out")]
    parameters.append(buffer_parameter("taps", "int64"))
    pointers, (left, right, out, offsets), declarations = zip(*parameters)
    for declaration in declarations:
        block.emit(declaration)
    names = ("down", "taps", "step", "out_step", "channels", "adds")
    numbers = [tirx.Var(name, "int64") for name in names]
    down, taps, step, out_step, channels, adds = numbers
    # The last vector is whole in registers; of the result only what is there is read and written.
    vectors = [(start, min(lanes, columns - start)) for start in range(0, columns, lanes)]
    sums = [[block.cell(const(0.0, with_lanes(dtype, lanes)), "acc") for _ in vectors] for _ in range(rows)]
    places = [
        (acc, tirx.Add(tirx.Mul(idx(r), out_step), idx(start)), width)
        for r, accs in enumerate(sums)
        for acc, (start, width) in zip(accs, vectors)
    ]
    with block.when(tirx.NE(adds, idx(0))):
        for acc, place, width in places:
            block.store(acc, _widened(vload(out, place, width), width, lanes, dtype), 0)
    with block.loop(channels, name="c") as c:
        weights, image = block.let(tirx.Mul(c, taps)), block.let(tirx.Mul(c, step))
        with block.loop(taps, name="t") as t:
            begin = block.let(tirx.Add(image, load(offsets, t)))
            values = [block.let(vload(right, tirx.Add(begin, idx(start)), lanes)) for start, _ in vectors]
            along = block.let(tirx.Add(weights, t))
            for r in range(rows):
                factor = broadcast(block.let(load(left, tirx.Add(along, tirx.Mul(idx(r), down)))), lanes)
                for acc, value in zip(sums[r], values):
                    block.store(acc, fma(factor, value, load(acc, 0)), 0)
    for acc, place, width in places:
        found = load(acc, 0)
        block.vstore(out, found if width == lanes else shuffle([found], range(width)), place)
    return tirx.PrimFunc([*pointers, *numbers], block.stmt(), ret_type=PrimType("int32"))


def _widened(found: Any, width: int, lanes: int, dtype: str) -> Any:
    """Some elements as a whole vector."""
    if width == lanes:
        return found
    vector = broadcast(found, 2) if width == 1 else found
    behind = width + (width == 1)
    zeros = const(0.0, with_lanes(dtype, lanes))
    return shuffle([vector, zeros], [*range(width), *range(behind, behind + lanes - width)])


__all__ = ["Blocks", "direct_conv", "divide", "is_direct"]
