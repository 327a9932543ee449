"""Two-dimensional convolution, forward and both gradients, as statements: patches as columns, and BLAS.

Idea: with the patches of one sample as the columns of `col` (see `patches`),

    y = w @ col,    dw += dy @ col.T,    dx = col2im(w.T @ dy).

The products run at 85 to 110 GFLOP/s a core for LeNet's shapes (peak about 118), which leaves little to gain from
tiling of our own; `col` of one sample stays in the second-level cache. A 1x1 kernel of stride 1 needs no `col` at all.

Input: operands are (flat buffer, element offset) pairs. x is (N, C, H, W), w (O, C, kh, kw), y (N, O, oh, ow),
row-major, float32 or float64, not overlapping. Output: statements emitted into a `Block`.

There are two levels. The `*_sample` functions work on one sample (or a range of its channels) and are meant for a
parallel loop of the caller, so that several layers run while a sample is in cache. The others work on whole batches,
split over `tasks` threads by sample, or by channel for a batch of one. Scratch memory, `scratch_size` elements, is the
caller's, since memory is planned statically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm import tirx

from ..tir.block import Block, idx, vload
from ..tir.pipeline import lanes as vector_lanes
from ..tir.vecmath import elementwise
from . import blas
from .patches import Conv, Operand, at, col2im, fill, im2col, plus, times

__all__ = [
    "Conv",
    "Epilogue",
    "conv2d",
    "conv2d_grad_input",
    "conv2d_grad_weight",
    "forward_sample",
    "grad_input_sample",
    "grad_weight_sample",
    "scratch_size",
    "split",
]

# (value, sample, channel, position in the plane) -> value. The value may be a vector, of elements from the position on.
Epilogue = Callable[[Any, Any, Any, Any], Any]


def scratch_size(s: Conv, n: int, tasks: int, what: str) -> int:
    """Elements of scratch that a whole batch needs.

    Args:
        s: the shape.
        n: batch size; if it is symbolic, any number above 1.
        tasks: as passed to the function.
        what: "forward", "grad_weight" or "grad_input".
    """
    private = s.weights * (tasks - 1) if what == "grad_weight" and n != 1 else 0
    return s.col_size * (1 if n == 1 else tasks) + private


# --- one sample -------------------------------------------------------------------------------------------------------


def _col(b: Block, s: Conv, x: Operand, col: Operand, ready: bool) -> Operand:
    """The columns of x, computed unless they are there."""
    if s.is_pointwise:
        return x
    if not ready:
        im2col(b, s, x, col)
    return col


def forward_sample(
    b: Block,
    s: Conv,
    x: Operand,
    w: Operand,
    y: Operand,
    col: Operand,
    *,
    epilogue: Epilogue | None = None,
    sample: Any = 0,
    first: Any = 0,
    count: int | None = None,
    col_ready: bool = False,
) -> None:
    """y = w * x for one sample.

    Args:
        b: where to emit.
        s: the shape.
        x: the sample.
        w: all weights.
        y: the sample's result.
        col: `s.col_size` elements of scratch; left holding the columns of x.
        epilogue: applied to each element (as vectors) while the result is in cache: bias, activation. It may emit into
            `b`, load what it needs, and store elsewhere too.
        sample: its index, for the epilogue.
        first: first of the output channels to compute; may be an expression.
        count: how many of them; None for all.
        col_ready: `col` already holds the columns of x.
    """
    rows = s.filters if count is None else count
    col = _col(b, s, x, col, col_ready)
    target = at(y, times(first, s.positions))
    blas.gemm(b, rows, s.positions, s.patch, at(w, times(first, s.patch)), col, target)
    if epilogue is None:
        return
    with b.loop(rows, name="o") as o:
        channel = plus(o, first)
        row = at(target, times(o, s.positions))

        def finish(i: Any, k: int) -> None:
            place = plus(row[1], i)
            b.vstore(y[0], epilogue(vload(y[0], place, k), sample, channel, i), place)

        elementwise(b, s.positions, vector_lanes(str(y[0].ty.dtype)), finish)


def grad_weight_sample(
    b: Block,
    s: Conv,
    x: Operand,
    dy: Operand,
    dw: Operand,
    col: Operand,
    *,
    first: Any = 0,
    count: int | None = None,
    accumulate: bool = True,
    alpha: float = 1.0,
    col_ready: bool = False,
) -> None:
    """dw (+)= alpha * dy @ col(x).T for one sample.

    Args:
        b: where to emit.
        s: the shape.
        x: the sample.
        dy: gradient of the sample's result.
        dw: gradient of all weights.
        col: scratch of `s.col_size`.
        first: first of the output channels to compute.
        count: how many of them; None for all.
        accumulate: add to dw instead of setting it.
        alpha: factor; with `accumulate` and `dw = w`, `alpha=-lr` is a step of SGD for a batch of one.
        col_ready: `col` already holds the columns of x, from the forward pass, say.
    """
    rows = s.filters if count is None else count
    col = _col(b, s, x, col, col_ready)
    blas.gemm(
        b,
        rows,
        s.patch,
        s.positions,
        at(dy, times(first, s.positions)),
        col,
        at(dw, times(first, s.patch)),
        trans_x=True,
        alpha=alpha,
        beta=1.0 if accumulate else 0.0,
    )


def grad_input_sample(
    b: Block,
    s: Conv,
    w: Operand,
    dy: Operand,
    dx: Operand,
    col: Operand,
    *,
    first: Any = 0,
    count: int | None = None,
    filters: tuple[Any, int] | None = None,
) -> None:
    """dx = col2im(w.T @ dy) for one sample.

    Args:
        b: where to emit.
        s: the shape.
        w: all weights.
        dy: gradient of the sample's result.
        dx: gradient of the sample; set, not added to.
        col: scratch of `s.col_size` (of `count * s.taps * s.positions` for a range of channels).
        first: first of the input channels to compute; may be an expression.
        count: how many of them; None for all.
        filters: (first, count) of the output channels to take into account; None for all. The results of disjoint
            ranges add up: a thread that owns some filters can work without another's weights.
    """
    channels = s.channels if count is None else count
    begin, summed = (0, s.filters) if filters is None else filters
    out = at(dx, times(first, s.positions)) if s.is_pointwise else col
    rows = at(w, plus(times(begin, s.patch), times(first, s.taps)))
    dy = at(dy, times(begin, s.positions))
    blas.gemm(b, channels * s.taps, s.positions, summed, rows, dy, out, trans_a=True, lda=s.patch)
    if not s.is_pointwise:
        col2im(b, s, col, dx, first, channels)


# --- whole batches ----------------------------------------------------------------------------------------------------


@contextmanager
def split(b: Block, n: Any, tasks: int) -> Iterator[tuple[Any, Any]]:
    """A loop over n items, in `tasks` threads of consecutive items; yields (task, item).

    Args:
        b: where to emit.
        n: how many, an int or an int64 expression.
        tasks: how many threads; 1 gives a serial loop.
    """
    if tasks == 1:
        with b.loop(n, name="n") as item:
            yield 0, item
        return
    chunk = -(-n // tasks) if isinstance(n, int) else tirx.Div(plus(n, tasks - 1), idx(tasks))
    with b.loop(tasks, "parallel", "task") as task:
        begin = tirx.Mul(task, idx(chunk))
        # The last tasks may have fewer items, or none; a loop of negative extent does nothing.
        rest = chunk if isinstance(n, int) and n % tasks == 0 else b.let(_smaller(idx(chunk), tirx.Sub(idx(n), begin)))
        with b.loop(rest, name="n") as item:
            yield task, tirx.Add(begin, item)


def _smaller(x: Any, y: Any) -> Any:
    return tirx.Select(tirx.LT(x, y), x, y)


def _channels(total: int, tasks: int) -> list[tuple[int, int]]:
    """Divides channels among tasks: (first, count)."""
    tasks = max(1, min(tasks, total))
    bounds = [total * t // tasks for t in range(tasks + 1)]
    return [(low, high - low) for low, high in zip(bounds, bounds[1:])]


def by_channel(b: Block, total: int, tasks: int, body: Callable[[Any, int], None]) -> None:
    """Calls body(first, count) for ranges of channels, in parallel; counts are ints, so code is emitted for each
    size.
    """
    ranges = _channels(total, tasks)
    if len(ranges) == 1:
        body(0, total)
    elif len({count for _, count in ranges}) == 1:
        with b.loop(len(ranges), "parallel", "task") as task:
            body(tirx.Mul(task, idx(ranges[0][1])), ranges[0][1])
    else:
        with b.loop(len(ranges), "parallel", "task") as task:
            for t, (first, count) in enumerate(ranges):
                with b.when(tirx.EQ(task, idx(t))):
                    body(first, count)


def conv2d(
    b: Block,
    s: Conv,
    n: Any,
    x: Operand,
    w: Operand,
    y: Operand,
    scratch: Operand,
    *,
    tasks: int = 1,
    epilogue: Epilogue | None = None,
) -> None:
    """y = w * x for a batch; see `forward_sample`. A batch of one leaves its columns in `scratch`."""
    if isinstance(n, int) and n == 1:
        if not s.is_pointwise:
            im2col(b, s, x, scratch)

        def part(first: Any, count: int) -> None:
            forward_sample(b, s, x, w, y, scratch, epilogue=epilogue, first=first, count=count, col_ready=True)

        by_channel(b, s.filters, tasks, part)
        return
    with split(b, n, tasks) as (task, i):
        col = at(scratch, times(task, s.col_size))
        forward_sample(
            b, s, at(x, times(i, s.size_in)), w, at(y, times(i, s.size_out)), col, epilogue=epilogue, sample=i
        )


def conv2d_grad_weight(
    b: Block,
    s: Conv,
    n: Any,
    x: Operand,
    dy: Operand,
    dw: Operand,
    scratch: Operand,
    *,
    tasks: int = 1,
    col_ready: bool = False,
) -> None:
    """dw = the gradient of the weights, summed over the batch, in a fixed order for a given number of tasks.

    Args:
        b: where to emit.
        s: the shape.
        n: batch size.
        x: the batch.
        dy: gradient of the result.
        dw: set.
        scratch: `scratch_size(s, n, tasks, "grad_weight")` elements: columns, then one dw for every task but the first.
        tasks: threads.
        col_ready: for a batch of one: `scratch` still holds the columns.
    """
    if isinstance(n, int) and n == 1:
        if not (col_ready or s.is_pointwise):
            im2col(b, s, x, scratch)

        def part(first: Any, count: int) -> None:
            grad_weight_sample(b, s, x, dy, dw, scratch, first=first, count=count, accumulate=False, col_ready=True)

        by_channel(b, s.filters, tasks, part)
        return
    private = at(scratch, s.col_size * tasks)
    fill(b, dw, s.weights)
    if tasks > 1:
        fill(b, private, s.weights * (tasks - 1))
    with split(b, n, tasks) as (task, i):
        col = at(scratch, times(task, s.col_size))
        args = (at(x, times(i, s.size_in)), at(dy, times(i, s.size_out)))
        if tasks == 1:
            grad_weight_sample(b, s, *args, dw, col)
        else:
            with b.when(tirx.EQ(task, idx(0))):
                grad_weight_sample(b, s, *args, dw, col)
            with b.otherwise():
                grad_weight_sample(b, s, *args, at(private, times(tirx.Sub(task, idx(1)), s.weights)), col)
    for t in range(tasks - 1):
        add_to(b, dw, at(private, t * s.weights), s.weights)


def add_to(b: Block, y: Operand, x: Operand, n: Any) -> None:
    """y += x for n elements."""

    def step(i: Any, k: int) -> None:
        place = plus(y[1], i)
        b.vstore(y[0], tirx.Add(vload(y[0], place, k), vload(x[0], plus(x[1], i), k)), place)

    elementwise(b, n, vector_lanes(str(y[0].ty.dtype)), step)


def conv2d_grad_input(
    b: Block, s: Conv, n: Any, w: Operand, dy: Operand, dx: Operand, scratch: Operand, *, tasks: int = 1
) -> None:
    """dx = the gradient of the input of a batch; see `grad_input_sample`."""
    if isinstance(n, int) and n == 1:

        def part(first: Any, count: int) -> None:
            col = at(scratch, times(first, s.taps * s.positions))
            grad_input_sample(b, s, w, dy, dx, col, first=first, count=count)

        by_channel(b, s.channels, tasks, part)
        return
    with split(b, n, tasks) as (task, i):
        col = at(scratch, times(task, s.col_size))
        grad_input_sample(b, s, w, at(dy, times(i, s.size_out)), at(dx, times(i, s.size_in)), col)
