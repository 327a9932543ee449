"""Max pooling, forward and backward, as statements.

Idea: each window is scanned in row-major order, and a later element replaces the maximum only if it is larger. The
first of equal maxima is thus the maximum and alone gets the gradient, as in PyTorch. A NaN in a window is its maximum
(the first NaN). The scan is branch-free code, on vectors of windows where these are adjacent. The backward pass scans
again instead of storing indices. Windows that do not overlap write their gradients once; overlapping ones add to zeros.

Input: (flat buffer, element offset) operands, one-dimensional buffers; x is (planes, H, W), where planes is samples
times channels. Output: statements emitted into a `Block`. No scratch memory. Padding counts as absent, never as zero; a
window must contain at least one element, so padding must be smaller than the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ...tir.block import Block, const, dtype_of, idx, load, shuffle, vload, with_lanes
from ...tir.exact import isnan, like
from ...tir.pipeline import lanes as vector_lanes
from ..patches import Operand, Windows, at, fill, pieces, plus, times


@dataclass(frozen=True)
class Pool(Windows):
    """The shape of a pooling of one plane; all ints."""

    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, bottom, left, right

    def __post_init__(self) -> None:
        if max(self.pads[:2]) >= self.kernel[0] or max(self.pads[2:]) >= self.kernel[1]:
            raise ValueError("padding must be smaller than the kernel")

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return self.kernel[0] * self.kernel[1]

    @property
    def size_in(self) -> int:
        """Elements of a plane of x."""
        return self.height * self.width

    @property
    def size_out(self) -> int:
        """Elements of a plane of y."""
        return self.out_height * self.out_width

    @property
    def overlaps(self) -> bool:
        """Whether an element may lie in several windows."""
        return self.kernel[0] > self.strides[0] or self.kernel[1] > self.strides[1]

    @property
    def tiles(self) -> bool:
        """Whether every element lies in exactly one window."""
        exact = self.kernel == self.strides and self.pads == (0, 0, 0, 0)
        return exact and self.height % self.kernel[0] == 0 and self.width % self.kernel[1] == 0


def max_pool(b: Block, s: Pool, planes: Any, x: Operand, y: Operand) -> None:
    """y = the maximum of each window.

    Args:
        b: where to emit.
        s: the shape.
        planes: samples times channels, an int or expression. Run it in one's own parallel loop over parts of them.
        x: planes x H x W.
        y: planes x oh x ow.
    """
    with b.loop(planes, name="p") as p, b.loop(s.out_height, name="oh") as oh:
        source = at(x, times(p, s.size_in))
        row = tirx.Add(times(p, s.size_out), times(oh, s.out_width))

        def run(ow: Any, lanes: int) -> None:
            best, _ = _scan(b, s, source, oh, ow, lanes)
            b.vstore(y[0], best, at(y, plus(row, ow))[1])

        _columns(b, s, dtype_of_buffer(y), run)


def max_pool_grad(b: Block, s: Pool, planes: Any, x: Operand, dy: Operand, dx: Operand) -> None:
    """dx = dy at the first maximum of its window, 0 elsewhere; summed where windows overlap.

    Args:
        b: where to emit.
        s: the shape.
        planes: samples times channels.
        x: the forward input.
        dy: gradient of the result.
        dx: set.
    """
    with b.loop(planes, name="p") as p:
        plane = times(p, s.size_in)
        source, target = at(x, plane), at(dx, plane)
        if not s.tiles:
            fill(b, target, s.size_in)
        with b.loop(s.out_height, name="oh") as oh:
            row = tirx.Add(times(p, s.size_out), times(oh, s.out_width))

            def run(ow: Any, lanes: int) -> None:
                _, which = _scan(b, s, source, oh, ow, lanes)
                grad = b.let(vload(dy[0], at(dy, plus(row, ow))[1], lanes))
                _scatter(b, s, which, grad, target, (oh, ow, lanes))

            _columns(b, s, dtype_of_buffer(x), run)


def dtype_of_buffer(operand: Operand) -> str:
    """The element dtype of an operand."""
    return str(operand[0].ty.dtype)


def in_vectors(s: Pool) -> bool:
    """Whether windows lie side by side in whole rows, so that vectors of them load without gaps or overlap."""
    return s.kernel[1] == s.strides[1] <= 4 and not any(s.pads)


def _columns(b: Block, s: Pool, dtype: str, run: Callable[[Any, int], None]) -> None:
    """Calls run(first output column, lanes) to cover an output row: by vectors where windows lie side by side."""
    widest = vector_lanes(dtype)
    if not in_vectors(s):
        with b.loop(s.out_width, name="ow") as ow:
            run(ow, 1)
        return
    whole = s.out_width // widest
    if whole:
        with b.loop(whole, name="ow") as v:
            run(times(v, widest), widest)
    for start, lanes in pieces(s.out_width % widest, widest):
        run(whole * widest + start, lanes)


def _scatter(b: Block, s: Pool, which: Any, grad: Any, dx: Operand, where: tuple[Any, Any, int]) -> None:
    """Stores each window element's share of the gradient: all of it to number `which`."""
    oh, ow, lanes = where
    zero = const(0.0, dtype_of(grad))
    shares = [tirx.Select(tirx.EQ(which, const(k, with_lanes("int32", lanes))), grad, zero) for k in range(s.taps)]
    if lanes > 1 and not s.overlaps:
        for kh in range(s.kernel[0]):
            position = plus(times(plus(times(oh, s.strides[0]), kh), s.width), times(ow, s.strides[1]))
            shares_of_row = [b.let(v) for v in shares[kh * s.kernel[1] : (kh + 1) * s.kernel[1]]]
            b.vstore(dx[0], interleave(shares_of_row, lanes), at(dx, position)[1])
        return
    for lane in range(lanes):
        for k, (position, exists) in enumerate(_window(s, oh, plus(ow, lane))):
            # In a vector, the contribution of every lane is extracted; windows may overlap only vertically, so lanes do
            # not collide.
            share = shares[k] if lanes == 1 else shuffle([shares[k]], [lane])
            place = at(dx, position)[1]
            if s.overlaps:
                share = tirx.Add(share, load(dx[0], place))
            if exists is None:
                b.store(dx[0], share, place)
            else:
                with b.when(exists):
                    b.store(dx[0], share, place)


def interleave(vectors: list[Any], lanes: int) -> Any:
    """a0 b0 a1 b1 ... of vectors a, b, ..."""
    if len(vectors) == 1:
        return vectors[0]
    return shuffle(vectors, [k * lanes + i for i in range(lanes) for k in range(len(vectors))])


def _window(s: Pool, oh: Any, ow: Any) -> list[tuple[Any, Any]]:
    """(position in the plane, condition that it exists or None) of each element of a window, in row-major order."""
    result = []
    for kh in range(s.kernel[0]):
        for kw in range(s.kernel[1]):
            ih = plus(times(oh, s.strides[0]), kh - s.pads[0])
            iw = plus(times(ow, s.strides[1]), kw - s.pads[2])
            exists = None
            if any(s.pads):
                inside = [
                    tirx.GE(ih, idx(0)),
                    tirx.LT(ih, idx(s.height)),
                    tirx.GE(iw, idx(0)),
                    tirx.LT(iw, idx(s.width)),
                ]
                exists = tirx.And(tirx.And(inside[0], inside[1]), tirx.And(inside[2], inside[3]))
            result.append((plus(times(ih, s.width), iw), exists))
    return result


def _scan(b: Block, s: Pool, x: Operand, oh: Any, ow: Any, lanes: int) -> tuple[Any, Any]:
    """Returns (maximum, its number in the window as int32) of `lanes` windows."""
    dtype = with_lanes(dtype_of_buffer(x), lanes)
    number_dtype = with_lanes("int32", lanes)
    # With padding the first element may be absent: start with a value below all others.
    best, which = b.cell(const(float("-inf"), dtype)), b.cell(const(-1, number_dtype))
    for k, (position, exists) in enumerate(_window(s, oh, ow)):
        number = const(k, number_dtype)
        if lanes > 1:
            if k % s.kernel[1] == 0:
                row = b.let(vload(x[0], at(x, position)[1], lanes * s.strides[1]))
            taken = [k % s.kernel[1] + i * s.strides[1] for i in range(lanes)]
            value = row if s.strides[1] == 1 else b.let(shuffle([row], taken))
        elif exists is None:
            value = b.let(load(x[0], at(x, position)[1]))
        else:
            with b.when(exists):
                _take(b, best, which, b.let(load(x[0], at(x, position)[1])), number)
            continue
        if k == 0:
            b.store(best, value, 0)
            b.store(which, number, 0)
        else:
            _take(b, best, which, value, number)
    return load(best, 0), load(which, 0)


def _take(b: Block, best: Any, which: Any, value: Any, number: Any) -> None:
    """Puts value in best's place if it is larger, or NaN where best is not, or the first."""
    held = load(best, 0)
    better = tirx.Or(tirx.GT(value, held), tirx.And(isnan(value), tirx.EQ(held, held)))
    better = b.let(tirx.Or(better, tirx.LT(load(which, 0), like(0, number))))
    b.store(best, tirx.Select(better, value, held), 0)
    b.store(which, tirx.Select(better, number, load(which, 0)), 0)
