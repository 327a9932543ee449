"""What this machine can do at best, measured with programs of our own: the peaks that kernels are compared with.

Each is measured once in a process, when it is first asked for; all of them take about half a second.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..abstract.dims import symbol
from ..abstract.types import FLOAT, Array
from ..ir.build import Builder
from ..ir.node import Apply, Graph
from ..ir.prim import REGISTRY

SIDE = 320  # of the matrices whose product shows the peak of arithmetic
BYTES = (
    32 << 10,
    256 << 10,
    2 << 20,
    8 << 20,
    64 << 20,
)  # of what is copied, to show the bandwidth of caches and of memory


class Peak(NamedTuple):
    """The share of what the machine can do, and what limits it: "flops" or "bytes"."""

    share: float
    of: str


@functools.cache
def ticks_per_second() -> float:
    """The frequency of the counter that programs that time themselves read."""
    graph = Graph("clock")
    graph.output = graph.add_parameter("x", FLOAT)
    program = _timed(graph)
    array = program.timing.array

    def now() -> tuple[float, int]:
        begin = time.perf_counter()
        program(0.0)
        return (begin + time.perf_counter()) / 2, int(array[0])

    now()
    start, first = now()
    time.sleep(0.03)
    end, last = now()
    return (last - first) / (end - start)


@functools.cache
def flops_per_second(dtype: str) -> float:
    """The greatest rate of floating-point operations: that of a product of matrices."""
    graph = Graph("product")
    a, b = (graph.add_parameter(name, Array(dtype, (SIDE, SIDE))) for name in "ab")
    graph.output = Builder(graph, graph.origin).emit(
        REGISTRY["dot"], (a, b), {"transpose_a": False, "transpose_b": False}
    )
    x = np.ones((SIDE, SIDE), dtype)
    return 2 * SIDE**3 / _least_time(_timed(graph), (x, x), np.empty_like(x))


@functools.cache
def bytes_per_second(nbytes: int) -> float:
    """The greatest rate at which arrays of so many bytes in all are read, or read and written."""
    values = np.ones(nbytes // 8, np.float32)
    copying = nbytes / _least_time(_of_arrays("neg"), (values,), np.empty_like(values))
    values = np.ones(nbytes // 4, np.float32)
    return max(copying, nbytes / _least_time(_of_arrays("reduce_sum"), (values,), np.empty((), np.float32)))


@functools.cache
def _of_arrays(primitive: str) -> Any:
    """A program that applies a primitive to an array of any size."""
    graph = Graph(primitive)
    x = graph.add_parameter("x", Array("float32", (symbol("n"),)))
    attrs = {"axes": (0,)} if primitive == "reduce_sum" else {}
    graph.output = Builder(graph, graph.origin).emit(REGISTRY[primitive], (x,), attrs)
    return _timed(graph)


def _timed(graph: Graph) -> Any:
    from ..backend.tvm.program import compile_program

    return compile_program(graph, options={"profile": True})


def _least_time(program: Any, values: tuple, out: np.ndarray) -> float:
    """The seconds that the one kernel of a program takes at least."""
    timing, best, runs, end = program.timing, float("inf"), 0, time.perf_counter() + 0.05
    while runs < 4 or time.perf_counter() < end:
        timing.clear()
        program.into(out, *values)
        best = min(best, *(cycles for region, cycles, _ in timing.totals() if region.kind == "kernel"))
        runs += 1
    return best / ticks_per_second()


def float_of(nodes: Iterable[Apply]) -> str:
    """The type of float whose peak counts for some applications."""
    return "float64" if any(getattr(n.type, "dtype", "") == "float64" for n in nodes) else "float32"


def time_at_best(flops: int | None, nbytes: int | None, dtype: str) -> tuple[float, str] | None:
    """The seconds that a kernel takes at least, and what limits it: "flops" or "bytes".

    The bandwidth is that for arrays of the kernel's size, which caches hold or do not.

    Args:
        flops, nbytes: its operations, and what it reads and writes; None where they are not known.
        dtype: see `float_of`.
    """
    size = next((b for b in BYTES if nbytes is not None and nbytes <= b), BYTES[-1])
    times = []
    if flops:
        times.append((flops / flops_per_second(dtype), "flops"))
    if nbytes:
        times.append((nbytes / bytes_per_second(size), "bytes"))
    return max(times, default=None)


def share_of_peak(seconds: float, flops: int | None, nbytes: int | None, dtype: str) -> Peak | None:
    """How near a kernel that takes some time comes to what the machine can do."""
    best = time_at_best(flops, nbytes, dtype)
    return Peak(best[0] / seconds, best[1]) if best and seconds else None
