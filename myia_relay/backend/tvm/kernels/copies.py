"""Copies of the planes of an image in which what windows read lies side by side.

Idea: at all positions of a row of the result, one element of the window (a tap) reads every stride-th element of a row of the
image, or padding. In a copy these are consecutive, with the padding stored, so kernels need neither strides nor cases. Rows of
the image are sorted by their remainders modulo the vertical stride. Columns are copied

- once for each column of the window, just those of the result (`shifted`): the elements that a tap reads are one run over all
  rows of the result, and a vector may cross the end of a row; or
- sorted by their remainders too: everything is copied once, and a tap reads a run for each row.

Input: (flat buffer, element offset) operands. Output: statements emitted into a `Block`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ..tir.block import Block, const, dtype_of, idx, load, shuffle, vload, with_lanes
from ..tir.exact import fence
from .nests import lanes_for
from .patches import Operand, Windows, along_row, at, pieces, plus, times


@dataclass(frozen=True)
class Copies:
    """How the copies of one plane lie in memory.

    Attributes:
        s: the windows.
        dtype: of the elements.
        rows: of the result, which the copies are for.
        shifted: see the module's docstring.
    """

    s: Windows
    dtype: str
    rows: int
    shifted: bool

    @property
    def phases(self) -> list[int]:
        """The remainders of rows that windows see."""
        return sorted({kh * self.s.dilations[0] % self.s.strides[0] for kh in range(self.s.kernel[0])})

    @property
    def columns(self) -> list[int]:
        """The columns of the window that begin a copy."""
        columns = range(0, self.s.extents[1], self.s.dilations[1])
        return list(columns) if self.shifted else sorted({column % self.s.strides[1] for column in columns})

    @property
    def width(self) -> int:
        """Elements of a row of a copy."""
        return self.s.out_width + (0 if self.shifted else (self.s.extents[1] - 1) // self.s.strides[1])

    @property
    def height(self) -> int:
        """Rows of a copy."""
        return self.rows + (self.s.extents[0] - 1) // self.s.strides[0]

    @property
    def size(self) -> int:
        """Elements of all copies of the plane."""
        return len(self.phases) * len(self.columns) * self._apart

    @property
    def _apart(self) -> int:
        """Elements from a copy to the next one; vectors of every second element may be written beyond the end of a row."""
        return self.height * self.width + (lanes_for(self.dtype) if self.s.strides[1] == 2 else 0)

    def _start(self, phase: int, column: int) -> int:
        return (self.columns.index(column) * len(self.phases) + self.phases.index(phase)) * self._apart

    def offset(self, kh: int, kw: int) -> int:
        """Where the first element lies that a tap reads."""
        down, along = self.s.strides
        kh, kw = kh * self.s.dilations[0], kw * self.s.dilations[1]
        column = kw if self.shifted else kw % along
        return self._start(kh % down, column) + kh // down * self.width + (kw - column) // along

    def emit(self, block: Block, x: Operand, to: Operand, top: Any, padding: float = 0.0) -> None:
        """Copy what the rows of the result from `top` on see of a plane."""
        down, s = self.s.strides[0], self.s
        behind = (s.out_height - self.rows + self.height - 1) * down + self.phases[-1] - s.pads[0]
        # All phases that there are between 0 and the last one: a stride leaves none out, or has only one. (An axis with gaps has
        # no stride; see `opaque._own_kernel`.)
        with block.loop(self.height, name="row") as r, block.loop(len(self.phases), name="phase") as phase:
            begin = plus(times(phase, self._apart), times(r, self.width))
            rows = [(column, at(to, plus(begin, self._start(0, column)))) for column in self.columns]
            ih = block.let(tirx.Add(idx(times(plus(r, top), down)), plus(phase, -s.pads[0])))
            if s.pads[0] <= 0 and behind < s.height:
                self._rows(block, at(x, times(ih, s.width)), rows, padding)
                return
            with block.when(tirx.And(tirx.GE(ih, idx(0)), tirx.LT(ih, idx(s.height)))):
                self._rows(block, at(x, times(ih, s.width)), rows, padding)
            with block.otherwise():
                for _, row in rows:
                    self._pad(block, row, 0, self.width, padding)

    def _rows(self, block: Block, x: Operand, rows: list[tuple[int, Operand]], padding: float) -> None:
        """A row of all copies, from one of the image: of pairs (column of the window, place)."""
        together = {column: self._shift(column) for column, _ in rows}
        if self.s.strides[1] == 2 and self.s.width >= 8:
            together = {column: shift for column, shift in together.items() if shift >= 0}
            self._halves(block, x, [(column, row) for column, row in rows if column in together], padding)
        else:
            together = {}
        for column, row in rows:
            if column not in together:
                self._row(block, x, row, column, padding)

    def _shift(self, column: int) -> int:
        """Where in a row of a copy the first element of the image stands that has its parity, or would stand."""
        start = column - self.s.pads[2]
        return (start % 2 - start) // 2

    def _halves(self, block: Block, x: Operand, rows: list[tuple[int, Operand]], padding: float) -> None:
        """Every second element for some copies, where the stride is 2: vectors of the image are read once for all of them."""
        wide, lanes = self.s.width, min(lanes_for(self.dtype), 1 << (self.s.width.bit_length() - 1))
        shifts = [(column, row, self._shift(column)) for column, row in rows]
        for _, row, shift in shifts:
            self._pad(block, row, 0, min(shift, self.width), padding)
        for begin in range(0, -(-wide // 2), lanes):
            count = lanes if 2 * begin + lanes < wide else lanes // 2
            starts = [min(2 * begin + k, wide - lanes) for k in range(0, 2 * count, lanes)]
            vectors = [block.let(_kept(vload(x[0], plus(x[1], start), lanes))) for start in starts]
            values: dict[int, Any] = {}
            for column, row, shift in shifts:
                if shift + begin >= self.width:
                    continue
                parity = (column - self.s.pads[2]) % 2
                if parity not in values:
                    places = [min(2 * (begin + i) + parity, wide - 1) for i in range(count)]
                    picked = [
                        place - starts[0] if place < starts[0] + lanes else place - starts[1] + lanes
                        for place in places
                    ]
                    values[parity] = block.let(shuffle(vectors, picked))
                block.vstore(row[0], values[parity], plus(row[1], shift + begin))
        for column, row, shift in shifts:
            high = (wide - 1 - (column - self.s.pads[2])) // 2 + 1
            self._pad(block, row, min(max(high, shift), self.width), self.width, padding)

    def _pad(self, block: Block, row: Operand, first: int, stop: int, padding: float) -> None:
        for begin, lanes in pieces(stop - first, lanes_for(self.dtype)):
            block.vstore(row[0], const(padding, with_lanes(self.dtype, lanes)), plus(row[1], first + begin))

    def _row(self, block: Block, x: Operand, row: Operand, column: int, padding: float) -> None:
        """One row of a copy, from one of the image."""
        s, stride, lanes = self.s, self.s.strides[1], lanes_for(self.dtype)
        start = column - s.pads[2]  # the column of the image that stands first, if it is there
        low = min(max(0, -(start // stride)), self.width)
        high = max(low, min(self.width, (s.width - 1 - start) // stride + 1))
        self._pad(block, row, 0, low, padding)
        first = low * stride + start
        source, target, done = at(x, first), at(row, low), 0
        if stride == 1:
            along_row(
                block,
                target,
                high - low,
                lambda i, k: block.vstore(row[0], vload(x[0], plus(source[1], i), k), plus(target[1], i)),
            )
            done = high - low
        elif stride in (2, 4):
            for begin, k in pieces(high - low, lanes):
                before = max(0, first + (begin + k) * stride - s.width)  # so much further left, for the row ends here
                if before >= stride or first + begin * stride < before:
                    break
                place = plus(source[1], begin * stride - before)
                block.vstore(row[0], _strided(block, x[0], place, k, stride, before), plus(target[1], begin))
                done = begin + k
        if done < high - low:
            with block.loop(high - low - done, name="i") as i:
                value = load(x[0], plus(source[1], times(plus(i, done), stride)))
                block.store(row[0], value, plus(target[1], i, done))
        self._pad(block, row, high, self.width, padding)


def _kept(vector: Any) -> Any:
    """A vector of which LLVM shall not load single numbers; it has no fence for integers."""
    return fence(vector) if dtype_of(vector).startswith("float") else vector


def _strided(block: Block, x: Any, place: Any, lanes: int, stride: int, first: int) -> Any:
    """Every stride-th of the `lanes * stride` elements at a place, from the `first` one on; the stride is a power of two.

    By halves, of two vectors each: LLVM takes long for shuffles of more. Behind a fence: it would load number by number.
    """
    vectors = [block.let(_kept(vload(x, plus(place, k * lanes), lanes))) for k in range(stride)]
    while len(vectors) > 1:
        picked = range(first % 2, 2 * lanes, 2)
        vectors = [block.let(shuffle([a, b], picked)) for a, b in zip(vectors[::2], vectors[1::2])]
        first //= 2
    return vectors[0]


__all__ = ["Copies"]
