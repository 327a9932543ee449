"""Pooling: which kernel computes it, and on how many cores.

`window_pool` takes means, and maxima of windows that overlap or reach into padding; `pool` maxima of windows side by side, and of
short rows of any. Other element types, paddings as large as the window, windows with gaps, large ones, and means of short rows are
plain loops.

Input: a call of an opaque kernel; see `opaque.Call`. Output: statements emitted into it.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx

from .....abstract.dims import is_known, product
from ...tir.block import idx
from ...tir.expr import is_half
from ..patches import at, times
from ..plain import PlainPooling
from . import pool, window_pool
from .pool import in_vectors

PARALLEL = 60_000  # elements from which all cores share them
MOST_TAPS = 256  # elements of a window that are written one by one: LLVM's time grows faster than their number


def max_pool(c: Any) -> None:
    """The maximum of each window."""
    s = _shape(c, c.types[0].shape[2:])
    if s is None:
        PlainPooling(c, "max")
    elif in_vectors(s) or not window_pool.is_windowed(s):
        _planes(c, s, lambda *args: pool.max_pool(c.block, s, *args))
    else:
        _planes(c, s, lambda *args: window_pool.max_pool(c.block, s, *args), window_pool.scratch_size(s, grad=False))


def max_pool_grad(c: Any) -> None:
    """The gradient of the maxima by the elements of windows."""
    s = _shape(c, c.types[0].shape[2:])
    if s is None:
        PlainPooling(c, "max_grad")
    elif in_vectors(s) or not window_pool.is_windowed(s):
        _planes(c, s, lambda *args: pool.max_pool_grad(c.block, s, *args))
    else:
        _planes(
            c, s, lambda *args: window_pool.max_pool_grad(c.block, s, *args), window_pool.scratch_size(s, grad=True)
        )


def mean(c: Any) -> None:
    """The mean of each window."""
    s = _shape(c, c.types[0].shape[2:])
    if s is None or not window_pool.is_windowed(s):
        PlainPooling(c, "avg")
    else:
        _planes(c, s, lambda *args: window_pool.mean(c.block, s, *args), window_pool.scratch_size(s, grad=False))


def mean_grad(c: Any) -> None:
    """The gradient of the means by the elements of windows."""
    s = _shape(c, tuple(c.attrs["in_shape"]))
    if s is None or not window_pool.is_windowed(s):
        PlainPooling(c, "avg_grad")
    else:
        _planes(c, s, lambda *args: window_pool.mean_grad(c.block, s, *args), window_pool.scratch_size(s, grad=False))


def gather(c: Any) -> None:
    """What stands in an array where another has the maximum of each window."""
    PlainPooling(c, "gather")


def _shape(c: Any, image: tuple) -> pool.Pool | None:
    """The shape of a pooling, or None where the fast kernels do not take it."""
    height, width = image
    (top, bottom), (left, right) = c.attrs["padding"]
    kernel, gaps = tuple(c.attrs["ksize"]), c.attrs.get("dilations", ())
    if not is_known(image) or is_half(c.out_type.dtype) or any(d != 1 for d in gaps) or math.prod(kernel) > MOST_TAPS:
        return None
    try:
        return pool.Pool(height, width, kernel, tuple(c.attrs["strides"]), (top, bottom, left, right))
    except ValueError:
        return None


def _planes(c: Any, s: pool.Pool, emit: Any, scratch: int = 0) -> None:
    """Emit the work on all planes, on all cores if that is worth it.

    Args:
        c: the call.
        s: the shape.
        emit: `emit(number of planes, *operands, result)`, and the scratch memory of a thread where there is some.
        scratch: elements that each thread needs.
    """
    lead, elements = product(c.types[0].shape[:2]), max(s.size_in, s.size_out)
    tasks, total = c.tasks(lead * elements, PARALLEL), c.dim(lead)
    operands = [*(c.operand(k) for k in range(len(c.types))), c.result()]
    sizes = [s.size_in if t.shape[2:] == (s.height, s.width) else s.size_out for t in (*c.types, c.out_type)]
    own = [c.scratch(scratch * tasks, c.out_type.dtype)] if scratch else []

    def part(first: Any, count: Any, task: Any) -> None:
        places = [at(o, tirx.Mul(first, idx(size))) for o, size in zip(operands, sizes, strict=True)]
        emit(count, *places, *(at(o, times(task, scratch)) for o in own))

    if tasks == 1:
        part(idx(0), total, 0)
        return
    with c.block.loop(tasks, "parallel", "task") as task:
        size = -(-total // tasks) if isinstance(total, int) else tirx.Div(tirx.Add(total, idx(tasks - 1)), idx(tasks))
        first = c.block.let(tirx.Mul(task, idx(size)))
        rest = c.block.let(tirx.Sub(idx(total), first))
        part(first, c.block.let(tirx.Select(tirx.LT(rest, idx(size)), rest, idx(size))), task)
