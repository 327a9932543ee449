"""Means of windows, and maxima of windows that overlap or reach into padding: on vectors of windows.

Idea: each plane is copied into scratch memory first, with zeros or minus infinity around it, so that the same element of
neighbouring windows is a load of equally spaced elements, without conditions. Gradients are added up in such a plane too, and
copied back.

The maximum is that of `pool`: the first of equal ones, and the first NaN. A window of which all elements are minus infinity gives
its gradient to the first of them that is not padding.

Input, output: as `pool`. Scratch memory, `scratch_size` elements for each thread, is the caller's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from tvm import tirx

from ...tir.block import Block, broadcast, const, dtype_of, idx, integer, shuffle, vload, with_lanes
from ...tir.exact import isnan
from ...tir.pipeline import lanes as vector_lanes
from ..patches import Operand, along_row, at, fill, pieces, plus, times
from .pool import Pool, dtype_of_buffer, interleave

WIDEST = 4  # the largest distance of windows: loads are so many times as wide as what they give
SHORTEST = 4  # windows in a row; fewer are no vector


def is_windowed(s: Pool) -> bool:
    """Whether means are taken so. Maxima of windows side by side are quicker in place: see `pool`."""
    return s.strides[1] <= WIDEST and s.out_width >= SHORTEST


def scratch_size(s: Pool, *, grad: bool) -> int:
    """Elements of scratch that a thread needs."""
    return _rows(s) * _pitch(s) * (2 if grad else 1)


def max_pool(b: Block, s: Pool, planes: Any, x: Operand, y: Operand, scratch: Operand) -> None:
    """y = the maximum of each window; arguments as `pool.max_pool`."""
    _surround(b, s, scratch, float("-inf"))
    with b.loop(planes, name="p") as p:
        _copy(b, s, at(x, times(p, s.size_in)), scratch)
        with b.loop(s.out_height, name="oh") as oh:

            def run(ow: Any, lanes: int, p: Any = p, oh: Any = oh) -> None:
                best, _ = _scan(b, s, scratch, oh, ow, lanes)
                place = plus(times(p, s.size_out), times(oh, s.out_width), ow)
                b.vstore(y[0], best, at(y, place)[1])

            _columns(b, s, dtype_of_buffer(y), run)


def max_pool_grad(b: Block, s: Pool, planes: Any, x: Operand, dy: Operand, dx: Operand, scratch: Operand) -> None:
    """dx = dy at the first maximum of its window, summed over windows; arguments as `pool.max_pool_grad`."""
    sums = at(scratch, _rows(s) * _pitch(s))
    _surround(b, s, scratch, float("-inf"))
    with b.loop(planes, name="p") as p:
        _copy(b, s, at(x, times(p, s.size_in)), scratch)
        _surround(b, s, sums, 0.0)
        with b.loop(s.out_height, name="oh") as oh:

            def run(ow: Any, lanes: int, p: Any = p, oh: Any = oh) -> None:
                _, which = _scan(b, s, scratch, oh, ow, lanes)
                place = plus(times(p, s.size_out), times(oh, s.out_width), ow)
                _scatter(b, s, which, b.let(vload(dy[0], at(dy, place)[1], lanes)), sums, (oh, ow, lanes))

            _columns(b, s, dtype_of_buffer(x), run)
        _copy(b, s, at(dx, times(p, s.size_in)), sums, back=True)


def mean(b: Block, s: Pool, planes: Any, x: Operand, y: Operand, scratch: Operand) -> None:
    """y = the mean of each window, with zeros for padding."""
    _surround(b, s, scratch, 0.0)
    with b.loop(planes, name="p") as p:
        _copy(b, s, at(x, times(p, s.size_in)), scratch)
        with b.loop(s.out_height, name="oh") as oh:

            def run(ow: Any, lanes: int, p: Any = p, oh: Any = oh) -> None:
                total = functools.reduce(tirx.Add, _elements(s, scratch, oh, ow, lanes))
                place = plus(times(p, s.size_out), times(oh, s.out_width), ow)
                b.vstore(y[0], tirx.Div(total, const(float(s.taps), dtype_of(total))), at(y, place)[1])

            _columns(b, s, dtype_of_buffer(y), run)


def mean_grad(b: Block, s: Pool, planes: Any, dy: Operand, dx: Operand, scratch: Operand) -> None:
    """dx = dy in equal shares for the elements of its window, summed over windows."""
    with b.loop(planes, name="p") as p:
        _surround(b, s, scratch, 0.0)
        with b.loop(s.out_height, name="oh") as oh:

            def run(ow: Any, lanes: int, p: Any = p, oh: Any = oh) -> None:
                place = plus(times(p, s.size_out), times(oh, s.out_width), ow)
                grad = vload(dy[0], at(dy, place)[1], lanes)
                share = b.let(tirx.Div(grad, const(float(s.taps), dtype_of(grad))))
                for kh in range(s.kernel[0]):
                    _add_row(b, s, [share] * s.kernel[1], scratch, (oh, kh, ow, lanes))

            _columns(b, s, dtype_of_buffer(dx), run)
        _copy(b, s, at(dx, times(p, s.size_in)), scratch, back=True)


def _rows(s: Pool) -> int:
    return s.height + s.pads[0] + s.pads[1]


def _pitch(s: Pool) -> int:
    """Elements from a row of a surrounded plane to the next one: the last vector of a row reads and adds beyond its windows."""
    return s.out_width * s.strides[1] + s.kernel[1] + s.strides[1]


def _surround(b: Block, s: Pool, scratch: Operand, value: float) -> None:
    """Fill a surrounded plane."""
    fill(b, scratch, _rows(s) * _pitch(s), value)


def _copy(b: Block, s: Pool, plane: Operand, scratch: Operand, *, back: bool = False) -> None:
    """Copy a plane into its surroundings; or out of them."""
    with b.loop(s.height, name="h") as h:
        own = at(plane, times(h, s.width))
        inner = at(scratch, plus(times(plus(h, s.pads[0]), _pitch(s)), s.pads[2]))
        target, source = (own, inner) if back else (inner, own)
        along_row(
            b,
            target,
            s.width,
            lambda i, k: b.vstore(target[0], vload(source[0], plus(source[1], i), k), plus(target[1], i)),
        )


def _columns(b: Block, s: Pool, dtype: str, run: Callable[[Any, int], None]) -> None:
    """Calls run(first window, how many) to cover a row of windows."""
    widest = vector_lanes(dtype)
    whole = s.out_width // widest
    if whole:
        with b.loop(whole, name="ow") as v:
            run(times(v, widest), widest)
    for start, lanes in pieces(s.out_width % widest, widest):
        run(whole * widest + start, lanes)


def _elements(s: Pool, scratch: Operand, oh: Any, ow: Any, lanes: int) -> Iterator[Any]:
    """The elements of windows, in row-major order, each of all windows."""
    step = s.strides[1]
    for kh in range(s.kernel[0]):
        for kw in range(s.kernel[1]):
            row = plus(times(plus(times(oh, s.strides[0]), kh), _pitch(s)), times(ow, step), kw)
            if lanes == 1 or step == 1:
                yield vload(scratch[0], at(scratch, row)[1], lanes)
            else:
                wide = vload(scratch[0], at(scratch, row)[1], lanes * step)
                yield shuffle([wide], [i * step for i in range(lanes)])


def _scan(b: Block, s: Pool, scratch: Operand, oh: Any, ow: Any, lanes: int) -> tuple[Any, Any]:
    """(the maximum, its number in the window as int32) of windows."""
    numbers = with_lanes("int32", lanes)
    best, which = None, const(-1 if any(s.pads) else 0, numbers)
    for k, element in enumerate(_elements(s, scratch, oh, ow, lanes)):
        value = b.let(element)
        if best is None:
            best = value if not any(s.pads) else const(float("-inf"), dtype_of(value))
            if best is value:
                continue
        better = tirx.Or(tirx.GT(value, best), tirx.And(isnan(value), tirx.EQ(best, best)))
        which = b.let(tirx.Select(better, const(k, numbers), which))
        best = b.let(tirx.Select(better, value, best))
    if any(s.pads):
        # Only minus infinity: the first element that is not padding.
        above = tirx.Max(idx(0), tirx.Sub(idx(s.pads[0]), idx(times(oh, s.strides[0]))))
        before = tirx.Cast("int32", tirx.Sub(idx(s.pads[2]), idx(times(ow, s.strides[1]))))
        if lanes > 1:
            before = tirx.Ramp(before, integer("int32", -s.strides[1]), integer("int32", lanes))
        row = broadcast(tirx.Cast("int32", tirx.Mul(above, idx(s.kernel[1]))), lanes)
        first = tirx.Add(row, tirx.Max(before, const(0, numbers)))
        which = b.let(tirx.Select(tirx.LT(which, const(0, numbers)), first, which))
    return best, which


def _scatter(b: Block, s: Pool, which: Any, grad: Any, sums: Operand, where: tuple[Any, Any, int]) -> None:
    """Adds the gradients of windows, each to the element of the number `which`."""
    oh, ow, lanes = where
    zero, numbers = const(0.0, dtype_of(grad)), with_lanes("int32", lanes)
    for kh in range(s.kernel[0]):
        own = [const(kh * s.kernel[1] + kw, numbers) for kw in range(s.kernel[1])]
        _add_row(b, s, [tirx.Select(tirx.EQ(which, k), grad, zero) for k in own], sums, (oh, kh, ow, lanes))


def _add_row(b: Block, s: Pool, shares: list[Any], sums: Operand, where: tuple[Any, int, Any, int]) -> None:
    """Adds what a row of the elements of windows gets: a share for each element, of all windows."""
    oh, kh, ow, lanes = where
    step, zero = s.strides[1], const(0.0, dtype_of(shares[0]))
    row = plus(times(plus(times(oh, s.strides[0]), kh), _pitch(s)), times(ow, step))
    # A vector of all elements between a window and the next one: what lies behind them is the next group's.
    for first in range(0, s.kernel[1], 1 if lanes == 1 else step):
        place, group = at(sums, plus(row, first))[1], shares[first : first + step]
        if lanes == 1:
            wide, width = shares[first], 1
        else:
            wide, width = interleave([b.let(v) for v in group] + [zero] * (step - len(group)), lanes), lanes * step
        b.vstore(sums[0], tirx.Add(vload(sums[0], place, width), wide), place)
