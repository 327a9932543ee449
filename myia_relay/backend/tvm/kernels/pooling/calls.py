"""Pooling: which kernel computes it, and on how many cores.

`window_pool` takes windows that overlap or reach into padding, `pool` windows side by side, and short rows of any. Other element
types, paddings as large as the window, and means are plain loops.

Input: a call of an opaque kernel; see `opaque.Call`. Output: statements emitted into it.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from .....abstract.dims import product
from ...tir.block import idx
from ...tir.expr import is_half
from ..patches import at, times
from ..plain import PlainPooling
from . import pool, window_pool

PARALLEL = 60_000  # elements from which all cores share them


def max_pool(c: Any) -> None:
    """The maximum of each window."""
    s = _shape(c)
    if s is None:
        PlainPooling(c, "max")
        return
    x, y = c.operand(0), c.result()

    def part(first: Any, count: Any, task: Any) -> None:
        source, target = at(x, tirx.Mul(first, idx(s.size_in))), at(y, tirx.Mul(first, idx(s.size_out)))
        if scratch is None:
            pool.max_pool(c.block, s, count, source, target)
        else:
            window_pool.max_pool(c.block, s, count, source, target, at(scratch, times(task, size)))

    size, scratch = _scratch(c, s, grad=False)
    _planes(c, part)


def max_pool_grad(c: Any) -> None:
    """The gradient of the maxima by the elements of windows."""
    s = _shape(c)
    if s is None:
        PlainPooling(c, "max_grad")
        return
    x, dy, dx = c.operand(0), c.operand(1), c.result()

    def part(first: Any, count: Any, task: Any) -> None:
        inside, outside = tirx.Mul(first, idx(s.size_in)), tirx.Mul(first, idx(s.size_out))
        operands = at(x, inside), at(dy, outside), at(dx, inside)
        if scratch is None:
            pool.max_pool_grad(c.block, s, count, *operands)
        else:
            window_pool.max_pool_grad(c.block, s, count, *operands, at(scratch, times(task, size)))

    size, scratch = _scratch(c, s, grad=True)
    _planes(c, part)


def gather(c: Any) -> None:
    """What stands in an array where another has the maximum of each window."""
    PlainPooling(c, "gather")


def mean(c: Any) -> None:
    """The mean of each window."""
    PlainPooling(c, "avg")


def mean_grad(c: Any) -> None:
    """The gradient of the means by the elements of windows."""
    PlainPooling(c, "avg_grad")


def _shape(c: Any) -> pool.Pool | None:
    """The shape of a pooling, or None where the fast kernels do not take it."""
    height, width = c.types[0].shape[2:]
    c.static(height, width)
    (top, bottom), (left, right) = c.attrs["padding"]
    if is_half(c.types[0].dtype):
        return None
    try:
        return pool.Pool(height, width, tuple(c.attrs["ksize"]), tuple(c.attrs["strides"]), (top, bottom, left, right))
    except ValueError:
        return None


def _tasks(c: Any) -> int:
    return c.tasks(product(c.types[0].shape), PARALLEL)


def _scratch(c: Any, s: pool.Pool, *, grad: bool) -> tuple[int, Any]:
    """Elements of scratch that a thread needs, and the scratch of all; None where there is none."""
    if not window_pool.is_windowed(s):
        return 0, None
    size = window_pool.scratch_size(s, grad=grad)
    return size, c.scratch(size * _tasks(c), c.types[0].dtype)


def _planes(c: Any, emit: Any) -> None:
    """Run `emit(first plane, number of planes, task)` over all planes, on all cores if that is worth it."""
    tasks, total = _tasks(c), c.dim(product(c.types[0].shape[:2]))
    if tasks == 1:
        emit(idx(0), total, 0)
        return
    with c.block.loop(tasks, "parallel", "task") as task:
        size = -(-total // tasks) if isinstance(total, int) else tirx.Div(tirx.Add(total, idx(tasks - 1)), idx(tasks))
        first = c.block.let(tirx.Mul(task, idx(size)))
        rest = c.block.let(tirx.Sub(idx(total), first))
        emit(first, c.block.let(tirx.Select(tirx.LT(rest, idx(size)), rest, idx(size))), task)
