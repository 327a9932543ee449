"""Max pooling, forward and backward, as statements.

Idea: each window is scanned in row-major order with "later wins only if larger", so the FIRST of equal maxima is the
maximum, and alone gets the gradient, as in PyTorch. A NaN in a window is its maximum (the first NaN). The scan is
branch-free code over the columns of an output row, which LLVM vectorises. The backward pass scans again instead of
storing indices. Windows that do not overlap write their gradients once; overlapping ones add into zeros.

Input: (flat buffer, element offset) operands, one-dimensional buffers; x is (planes, H, W), where planes is samples
times channels. Output: statements emitted into a `Block`. No scratch. Padding counts as absent, never as zero; a
window must see at least one element, so padding must be smaller than the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from .block import Block, const, idx, load
from .exact import isnan
from .patches import Operand, at, fill, plus, times

# (block, element of x, gradient, its index in the operand) -> gradient
Finish = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Pool:
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
    def out_height(self) -> int:
        """Rows of the result."""
        return (self.height + self.pads[0] + self.pads[1] - self.kernel[0]) // self.strides[0] + 1

    @property
    def out_width(self) -> int:
        """Columns of the result."""
        return (self.width + self.pads[2] + self.pads[3] - self.kernel[1]) // self.strides[1] + 1

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


def max_pool(
    b: Block, s: Pool, planes: Any, x: Operand, y: Operand, *, epilogue: Callable[[Any, Any], Any] | None = None
) -> None:
    """y = the maximum of each window.

    Args:
        b: where to emit.
        s: the shape.
        planes: samples times channels, an int or expression. Run it in one's own parallel loop over parts of them.
        x: planes x H x W.
        y: planes x oh x ow.
        epilogue: (value, index in y's operand) -> value.
    """
    with b.loop(planes, name="p") as p, b.loop(s.out_height, name="oh") as oh, b.loop(s.out_width, name="ow") as ow:
        source = at(x, times(p, s.size_in))
        best, _ = _scan(b, s, source, oh, ow)
        place = tirx.Add(times(p, s.size_out), tirx.Add(times(oh, s.out_width), ow))
        b.store(y[0], epilogue(best, place) if epilogue else best, at(y, place)[1])


def max_pool_grad(
    b: Block, s: Pool, planes: Any, x: Operand, dy: Operand, dx: Operand, *, finish: Finish | None = None
) -> None:
    """dx = dy at the first maximum of its window, 0 elsewhere; summed where windows overlap.

    Args:
        b: where to emit.
        s: the shape.
        planes: samples times channels.
        x: the forward input.
        dy: gradient of the result.
        dx: set.
        finish: (element of x, gradient, index in the operand) -> gradient, applied to every element at last: the
            derivative of an activation in front of the pooling, say, which has its result in x.
    """
    with b.loop(planes, name="p") as p:
        plane = times(p, s.size_in)
        source, target = at(x, plane), at(dx, plane)
        if not s.tiles:
            fill(b, target, s.size_in)
        with b.loop(s.out_height, name="oh") as oh, b.loop(s.out_width, name="ow") as ow:
            _, which = _scan(b, s, source, oh, ow)
            offset = tirx.Add(times(p, s.size_out), tirx.Add(times(oh, s.out_width), ow))
            grad = b.let(load(dy[0], at(dy, offset)[1]))
            zero = const(0.0, str(dy[0].ty.dtype))
            for k, (position, exists) in enumerate(_window(s, oh, ow)):
                mine = tirx.Select(tirx.EQ(which, tirx.IntImm("int32", k)), grad, zero)
                place = at(target, position)[1]
                if s.tiles and finish:
                    mine = finish(load(x[0], at(source, position)[1]), mine, tirx.Add(plane, position))
                elif s.overlaps:
                    mine = tirx.Add(mine, load(dx[0], place))
                if exists is None:
                    b.store(dx[0], mine, place)
                else:
                    with b.when(exists):
                        b.store(dx[0], mine, place)
        if finish and not s.tiles:
            with b.loop(s.size_in, name="i") as i:
                place = at(target, i)[1]
                b.store(dx[0], finish(load(x[0], at(source, i)[1]), load(dx[0], place), plus(plane, i)), place)


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
            result.append((tirx.Add(times(ih, s.width), iw), exists))
    return result


def _scan(b: Block, s: Pool, x: Operand, oh: Any, ow: Any) -> tuple[Any, Any]:
    """Returns (maximum, its number in the window as int32)."""
    dtype = str(x[0].ty.dtype)
    best, which = b.local(dtype), b.local("int32")
    # With padding the first element may be absent: begin with "none", which anything beats.
    b.store(best, const(float("-inf"), dtype), 0)
    b.store(which, tirx.IntImm("int32", -1), 0)
    for k, (position, exists) in enumerate(_window(s, oh, ow)):
        place = at(x, position)[1]
        number = tirx.IntImm("int32", k)
        if exists is None:
            value = b.let(load(x[0], place))
            if k == 0:
                b.store(best, value, 0)
                b.store(which, number, 0)
                continue
            _take(b, best, which, value, number)
        else:
            with b.when(exists):
                _take(b, best, which, b.let(load(x[0], place)), number)
    return load(best, 0), load(which, 0)


def _take(b: Block, best: Any, which: Any, value: Any, number: Any) -> None:
    """Puts value in best's place if it is larger, or NaN where best is not, or the first."""
    held = load(best, 0)
    better = tirx.Or(tirx.GT(value, held), tirx.And(isnan(value), tirx.EQ(held, held)))
    better = b.let(tirx.Or(better, tirx.LT(load(which, 0), tirx.IntImm("int32", 0))))
    b.store(best, tirx.Select(better, value, held), 0)
    b.store(which, tirx.Select(better, number, load(which, 0)), 0)
