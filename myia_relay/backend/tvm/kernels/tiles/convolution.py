"""Tiles of convolutions: sums of products that stay in registers, as functions that the kernels of a program share.

Input: addresses and numbers; see `tile_of_sums`. Output: functions, calls of them, or their statements in a kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tvm import tirx

from ...plan import ITEM
from ...tir.block import Block, broadcast, const, idx, load, shuffle, vload, with_lanes
from ..copies import Copies
from ..kernel import address_of, buffer_parameter
from ..nests import lanes_for
from ..patches import Operand, plus, times
from .multiply_add import MultiplyAdd


def call_tile(c: Any, key: tuple, operands: Any, sizes: Any) -> None:
    """Call a function that the kernels of the program share.

    Args:
        c: the call.
        key: what makes the function, and of what.
        operands: four, or as many as it takes.
        sizes: numbers.
    """
    make, *of = key
    addresses = [address_of(o[0], idx(o[1])) for o in operands]
    c.kernel.call((make.__name__.strip("_"), *of), functools.partial(make, *of), [*addresses, *map(idx, sizes)])


def call_copies(c: Any, copies: Copies, x: Operand, to: Operand, top: Any, fill: int = 0) -> None:
    """Copy a plane: `copies.emit`, in a function that the kernels of the program share."""
    known = top if isinstance(top, int) else None
    call_tile(c, (_copied, copies, known, fill), (x, to, to, to), (top,))


def _copied(copies: Copies, top: int | None, fill: int) -> tuple[list[Any], Block]:
    f = TileFunction(copies.dtype, "top")
    copies.emit(f.block, (f.buffers[0], 0), (f.buffers[1], 0), f.numbers[0] if top is None else top, fill)
    return f.done()


class TileFunction:
    """The function of a tile under construction: of four addresses or more, and of numbers."""

    def __init__(self, dtype: str, *numbers: str, more: tuple[str, ...] = ()):
        self.block = Block()
        parameters = [buffer_parameter(name, dtype) for name in ("left", "right", "out")]
        parameters.append(buffer_parameter("taps", "int64"))
        parameters += [buffer_parameter(name, dtype) for name in more]
        self.pointers, self.buffers, declarations = zip(*parameters)
        for declaration in declarations:
            self.block.emit(declaration)
        self.numbers = [tirx.Var(name, "int64") for name in numbers]

    def done(self) -> tuple[list[Any], Block]:
        """Its parameters and statements."""
        return [*self.pointers, *self.numbers], self.block


def tile_of_sums(
    dtype: str, rows: int, columns: int, unrolled: int = 1, kind: str = "float", lines: int = 0
) -> tuple[list[Any], Block]:  # fmt: skip
    """A tile: out[r, p] (+)= sum over c, t of left[r * down + c * taps + t] * right[c * step + at[t] + p].

    Args:
        dtype: of both operands and the result.
        rows, columns: of the result.
        unrolled: taps in one iteration.
        kind: what is multiplied (`MultiplyAdd`).
        lines: of a cache that are asked for at every step.

    Returns:
        Parameters and statements: of the addresses of its corner in both operands and the result, of the taps' offsets, and, if
        `lines` of a cache are asked for at every step, of what is asked for; of
        `down`, the number of taps (a multiple of `unrolled`), `step`, how far rows of the result lie apart, the number of
        channels, and whether to add to the result.
    """
    more = ("later",) if lines else ()
    f = TileFunction(dtype, "down", "taps", "step", "out_step", "channels", "adds", more=more)
    left, right, out, offsets, *later = f.buffers
    steps = tirx.Div(f.numbers[1], idx(unrolled))

    def fetch(c: Any, t: Any) -> None:
        line = 64 // ITEM[dtype]
        first = f.block.let(tirx.Mul(tirx.Add(tirx.Mul(c, steps), t), idx(lines * line)))
        for k in range(lines):
            f.block.prefetch(later[0], plus(first, k * line), write=False, near=2)

    operands = (left, 0), (right, 0), (out, 0)
    key = dtype, rows, columns, unrolled, kind
    emit_sums(f.block, key, operands, offsets, f.numbers, fetch=fetch if lines else None)
    return f.done()


def emit_sums(
    block: Block, key: tuple[str, int, int, int, str], operands: tuple[Operand, ...], offsets: Any, numbers: Any,
    finish: Callable[[Any, int, int, int], Any] | None = None, ahead: Callable[[Any], None] | None = None,
    fetch: Callable[[Any, Any], None] | None = None,
) -> None:  # fmt: skip
    """The statements of `tile_of_sums`.

    `finish` of (value, row, position, lanes) is what is stored; `ahead` of a channel, and `fetch` of a channel and a
    number of taps, ask for what others read later.
    """
    (dtype, rows, columns, unrolled, kind), (left, right, out) = key, operands
    multiply_add = MultiplyAdd(block, kind)
    down, taps, step, out_step, channels, adds = map(idx, numbers)
    lanes = lanes_for(dtype)
    # The last vector is whole in registers; of the result only what is there is read and written.
    vectors = [(start, min(lanes, columns - start)) for start in range(0, columns, lanes)]
    sums = [[block.cell(const(0.0, with_lanes(dtype, lanes)), "acc") for _ in vectors] for _ in range(rows)]
    spread = 2 if not isinstance(numbers[4], tirx.IntImm) else -(-rows // int(numbers[4].value))
    places = [
        (acc, idx(plus(out[1], tirx.Mul(idx(r), out_step), start)), width, r, start)
        for r, accs in enumerate(sums)
        for acc, (start, width) in zip(accs, vectors)
    ]
    if finish is None:
        with block.when(tirx.NE(adds, idx(0))):
            for acc, place, width, *_ in places:
                block.store(acc, _widened(vload(out[0], place, width), width, lanes, dtype), 0)
    with block.loop(channels, name="c") as c:
        weights = block.let(idx(plus(left[1], tirx.Mul(c, taps))))
        image = block.let(idx(plus(right[1], tirx.Mul(c, step))))
        for r in range(rows):  # the filters of the next tile, which lie far apart
            block.prefetch(left[0], tirx.Add(weights, tirx.Mul(idx(rows + r), down)), write=False)
        # Of the result, which is written when the sums are complete: all at once would block the loads.
        with block.when(tirx.LT(c, idx(-(-rows // spread)))):
            for r in range(spread):
                row = block.let(tirx.Min(plus(times(c, spread), r), idx(rows - 1)))
                for start, _ in vectors:
                    block.prefetch(out[0], idx(plus(out[1], tirx.Mul(row, out_step), start)))
        if ahead is not None:
            ahead(c)
        with block.loop(tirx.Div(taps, idx(unrolled)) if unrolled > 1 else taps, name="t") as t:
            if fetch is not None:
                fetch(c, t)
            first = block.let(idx(times(t, unrolled)))
            along = block.let(tirx.Add(weights, first))
            filters = [block.let(tirx.Add(along, tirx.Mul(idx(r), down))) for r in range(rows)]
            for k in range(unrolled):
                begin = block.let(tirx.Add(image, load(offsets, plus(first, k))))
                values = [block.let(vload(right[0], tirx.Add(begin, idx(start)), lanes)) for start, _ in vectors]
                values = [multiply_add.image(value) for value in values]
                for r in range(rows):
                    factor = multiply_add.factor(block.let(load(left[0], plus(filters[r], k))), lanes)
                    for acc, value in zip(sums[r], values):
                        block.store(acc, multiply_add(factor, value, load(acc, 0)), 0)
    for acc, place, width, r, start in places:
        found = load(acc, 0)
        if width < lanes:
            found = shuffle([found], range(width))
        block.vstore(out[0], found if finish is None else finish(found, r, start, width), place)


def tile_of_dots(dtype: str, rows: int, columns: int, kind: str = "float") -> tuple[list[Any], Block]:
    """A tile of products of vectors: out[r, p] (+)= sum over k of left[r * down + k] * right[p, k].

    Returns:
        Parameters and statements: of addresses, the last one unused; of `down`, how far rows of the result lie apart, the numbers
        of channels and of taps, whose product is the length of the vectors, and whether to add to the result.
    """
    f = TileFunction(dtype, "down", "out_step", "channels", "taps", "adds")
    (left, right, out, _), (down, out_step, channels, taps, adds) = f.buffers, f.numbers
    lanes, block = lanes_for(dtype), f.block
    multiply_add = MultiplyAdd(block, kind)
    length = block.let(tirx.Mul(channels, taps))
    for few in range(0, columns, 2):  # of which the sums stay in registers
        count = min(2, columns - few)
        sums = [[block.cell(const(0.0, with_lanes(dtype, lanes)), "acc") for _ in range(count)] for _ in range(rows)]
        with block.loop(tirx.Div(length, idx(lanes)), name="k") as k:
            along = block.let(tirx.Mul(k, idx(lanes)))
            values = [
                block.let(vload(right, tirx.Add(along, tirx.Mul(idx(few + p), length)), lanes)) for p in range(count)
            ]
            values = [multiply_add.image(value) for value in values]
            for r in range(rows):
                factor = multiply_add.filters(block.let(vload(left, tirx.Add(along, tirx.Mul(idx(r), down)), lanes)))
                for acc, value in zip(sums[r], values):
                    block.store(acc, multiply_add(factor, value, load(acc, 0)), 0)
        for r, accs in enumerate(sums):
            for p, acc in enumerate(accs):
                place = block.let(tirx.Add(tirx.Mul(idx(r), out_step), idx(few + p)))
                total = block.folded(load(acc, 0), multiply_add.sum)
                with block.when(tirx.NE(adds, idx(0))):
                    block.store(out, multiply_add.sum(load(out, place), total), place)
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


__all__ = ["TileFunction", "call_copies", "call_tile", "emit_sums", "tile_of_dots", "tile_of_sums"]
