"""The shape of a convolution, and its patches as columns of a matrix (im2col, col2im).

Idea: `col`, of C*kh*kw rows and oh*ow columns, holds for each output position the input elements in its window; the
convolution is then a matrix product. Rows of the image are copied as vectors. Padding is decided for whole rows (at run
time) and for columns (at compile time).

Input: (flat buffer, element offset) pairs: one-dimensional buffers, so that they may lie in one arena. Output:
statements emitted into a `Block`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ....prims.ops.nn import extents
from ..tir.block import Block, const, idx, load, vload
from ..tir.pipeline import lanes as vector_lanes
from ..tir.vecmath import elementwise

Operand = tuple[Any, Any]


class Windows:
    """The size of what sliding windows over a padded plane make."""

    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]  # top, bottom, left, right
    dilations: tuple[int, int] = (1, 1)

    @property
    def extents(self) -> tuple[int, int]:
        """The size of a window, with the gaps between its elements."""
        return extents(self.kernel, self.dilations)

    @property
    def out_height(self) -> int:
        """Rows of the result."""
        return (self.height + self.pads[0] + self.pads[1] - self.extents[0]) // self.strides[0] + 1

    @property
    def out_width(self) -> int:
        """Columns of the result."""
        return (self.width + self.pads[2] + self.pads[3] - self.extents[1]) // self.strides[1] + 1


@dataclass(frozen=True)
class Conv(Windows):
    """The shape of a convolution of one sample; all ints."""

    channels: int
    height: int
    width: int
    filters: int
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, bottom, left, right
    dilations: tuple[int, int] = (1, 1)

    @property
    def positions(self) -> int:
        """Elements of a plane of the result."""
        return self.out_height * self.out_width

    @property
    def taps(self) -> int:
        """Elements of a filter in one channel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def patch(self) -> int:
        """Elements of a filter."""
        return self.channels * self.taps

    @property
    def size_in(self) -> int:
        """Elements of a sample of x."""
        return self.channels * self.height * self.width

    @property
    def size_out(self) -> int:
        """Elements of a sample of y."""
        return self.filters * self.positions

    @property
    def weights(self) -> int:
        """Elements of w."""
        return self.filters * self.patch

    @property
    def is_pointwise(self) -> bool:
        """Whether x itself is its `col`."""
        return self.kernel == (1, 1) and self.strides == (1, 1) and self.pads == (0, 0, 0, 0)

    @property
    def col_size(self) -> int:
        """Elements of `col`, the scratch of one sample."""
        return 0 if self.is_pointwise else self.patch * self.positions


def pieces(n: int, widest: int) -> list[tuple[int, int]]:
    """Splits n elements into (start, lanes), lanes powers of two, widest first."""
    result, start = [], 0
    while start < n:
        width = widest
        while width > n - start:
            width //= 2
        result.append((start, width))
        start += width
    return result


def in_pieces(b: Block, n: Any, widths: tuple[int, ...], body: Callable[[Any, int], None]) -> None:
    """Call `body(offset, lanes)` in loops over n elements, an expression: as many of each width, from the first on, as fit."""
    done: Any = 0
    for lanes in widths:
        count = b.let(tirx.Div(tirx.Sub(n, idx(done)), idx(lanes)))
        with b.loop(count, name="v") as v:
            body(plus(done, times(v, lanes)), lanes)
        done = b.let(plus(done, times(count, lanes)))


def at(operand: Operand, offset: Any) -> Operand:
    """The operand moved on by `offset` elements."""
    buffer, base = operand
    return buffer, offset if isinstance(base, int) and base == 0 else tirx.Add(idx(base), idx(offset))


def times(a: Any, n: int) -> Any:
    """`a * n` on indices, folding ints."""
    return a * n if isinstance(a, int) else tirx.Mul(idx(a), idx(n))


def plus(a: Any, *rest: Any) -> Any:
    """A sum of indices, folding ints."""
    total, number = None, 0
    for term in (a, *rest):
        if isinstance(term, int):
            number += term
        else:
            total = term if total is None else tirx.Add(total, term)
    if total is None:
        return number
    return total if number == 0 else tirx.Add(total, idx(number))


def fill(b: Block, y: Operand, n: Any, value: float = 0.0) -> None:
    """Sets n elements."""
    dtype = str(y[0].ty.dtype)

    def one(i: Any, k: int) -> None:
        b.vstore(y[0], const(value, f"{dtype}x{k}" if k > 1 else dtype), at(y, i)[1])

    elementwise(b, n, vector_lanes(dtype), one)


def along_row(b: Block, y: Operand, n: int, emit: Callable[[Any, int], None]) -> None:
    """Emits vector work on a short run: `emit(start, lanes)`, unrolled up to four vectors, then as a loop."""
    widest = vector_lanes(str(y[0].ty.dtype))
    if n >= 4 * widest:
        with b.loop(n // widest, name="v") as v:
            emit(times(v, widest), widest)
        for start, k in pieces(n % widest, widest):
            emit(start + n // widest * widest, k)
    else:
        for start, k in pieces(n, widest):
            emit(start, k)


def _rows(b: Block, s: Conv, begin: Any, count: Any, body: Callable[[Any, Any, Any, int, int], None]) -> None:
    """Calls body(channel, kernel row, kernel column, first and last + 1 output column that see the image) inside loops.

    Kernel columns are outermost: neighbouring ones write overlapping vectors in col2im, and apart in time the stores
    have reached the cache. With padding each has its own range of output columns, hence its own code.
    """
    with b.loop(count, name="c") as c:
        channel = c if isinstance(begin, int) and begin == 0 else plus(c, begin)
        if s.pads[2] or s.pads[3]:
            for kw in range(s.kernel[1]):
                with b.loop(s.kernel[0], name="kh") as kh:
                    body(channel, kh, kw, *_columns(s, kw))
        else:
            with b.loop(s.kernel[1], name="kw") as kw, b.loop(s.kernel[0], name="kh") as kh:
                body(channel, kh, kw, 0, s.out_width)


def _columns(s: Conv, kw: int) -> tuple[int, int]:
    """The range of output columns whose input column under kernel column kw exists."""
    stride, start = s.strides[1], kw * s.dilations[1] - s.pads[2]
    low = max(0, -(start // stride))
    high = min(s.out_width, (s.width - 1 - start) // stride + 1)
    return min(low, s.out_width), max(high, min(low, s.out_width))


def _source_row(
    b: Block, s: Conv, oh: Any, kh: Any, inside: Callable[[Any], None], outside: Callable[[], None]
) -> None:
    """Calls inside(input row) for an output row and kernel row, or outside() where that is padding."""
    ih = tirx.Add(times(oh, s.strides[0]), tirx.Sub(idx(times(kh, s.dilations[0])), idx(s.pads[0])))
    if s.pads[0] == 0 and s.pads[1] == 0:
        inside(ih)
        return
    ih = b.let(ih)
    with b.when(tirx.And(tirx.GE(ih, idx(0)), tirx.LT(ih, idx(s.height)))):
        inside(ih)
    with b.otherwise():
        outside()
        b.emit(tirx.IntImm("int32", 0))


def im2col(b: Block, s: Conv, x: Operand, col: Operand, begin: Any = 0, count: Any = None) -> None:
    """Writes the patches of `count` channels of one sample, from channel `begin` on, to their place in `col`."""
    dtype = str(x[0].ty.dtype)

    def body(c: Any, kh: Any, kw: Any, low: int, high: int) -> None:
        row = tirx.Add(times(c, s.taps), tirx.Add(times(kh, s.kernel[1]), idx(kw)))
        with b.loop(s.out_height, name="oh") as oh:
            to = at(col, tirx.Add(times(row, s.positions), times(oh, s.out_width)))

            def zero(start: int, stop: int) -> None:
                for first, k in pieces(stop - start, vector_lanes(dtype)):
                    b.vstore(to[0], const(0.0, f"{dtype}x{k}" if k > 1 else dtype), plus(to[1], start + first))

            def inside(ih: Any) -> None:
                zero(0, low)
                first = plus(times(kw, s.dilations[1]), low * s.strides[1] - s.pads[2])
                source = at(x, tirx.Add(times(plus(times(c, s.height), ih), s.width), idx(first)))
                target = at(to, low)
                if s.strides[1] == 1:
                    along_row(
                        b,
                        target,
                        high - low,
                        lambda i, k: b.vstore(target[0], vload(x[0], plus(source[1], i), k), plus(target[1], i)),
                    )
                elif high > low:
                    with b.loop(high - low, name="ow") as ow:
                        b.store(target[0], load(x[0], plus(source[1], times(ow, s.strides[1]))), plus(target[1], ow))
                zero(high, s.out_width)

            _source_row(b, s, oh, kh, inside, lambda: zero(0, s.out_width))

    _rows(b, s, begin, s.channels if count is None else count, body)


def col2im(b: Block, s: Conv, col: Operand, dx: Operand, begin: Any = 0, count: Any = None) -> None:
    """Adds the columns of `count` channels from `begin` on to where their elements came from; sets dx there first.

    `col` starts at the row of channel `begin`; `dx` at the sample.
    """
    count = s.channels if count is None else count
    plane = s.height * s.width
    fill(b, at(dx, times(begin, plane)), times(count, plane) if not isinstance(count, int) else count * plane)

    def body(c: Any, kh: Any, kw: Any, low: int, high: int) -> None:
        row = tirx.Add(times(c, s.taps), tirx.Add(times(kh, s.kernel[1]), idx(kw)))
        channel = plus(c, begin)
        with b.loop(s.out_height, name="oh") as oh:
            source = at(col, tirx.Add(times(row, s.positions), plus(times(oh, s.out_width), low)))

            def inside(ih: Any) -> None:
                first = plus(times(kw, s.dilations[1]), low * s.strides[1] - s.pads[2])
                target = at(dx, tirx.Add(times(plus(times(channel, s.height), ih), s.width), idx(first)))

                def step(i: Any, k: int) -> None:
                    place = plus(target[1], i)
                    b.vstore(dx[0], tirx.Add(vload(dx[0], place, k), vload(col[0], plus(source[1], i), k)), place)

                if s.strides[1] == 1:
                    along_row(b, target, high - low, step)
                elif high > low:
                    with b.loop(high - low, name="ow") as ow:
                        place = plus(target[1], times(ow, s.strides[1]))
                        b.store(dx[0], tirx.Add(load(dx[0], place), load(col[0], plus(source[1], ow))), place)

            _source_row(b, s, oh, kh, inside, lambda: None)

    _rows(b, s, 0, count, body)
