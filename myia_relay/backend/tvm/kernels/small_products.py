"""Products of small matrices, written out: the overhead of a BLAS call would exceed the work.

A row of the result is one vector, to which each element of a row of the left matrix adds its multiple of a row of the
right one, kept in registers. A product with a vector takes the columns of the matrix instead.

Most directions of a Jacobian do not affect most parts of a program; their tangents are zero there. In products of many
directions that differentiation made, multiples of zeros are zeros without being computed.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ....utils.switches import is_left_out
from ..tir import exact
from ..tir.block import dtype_of, element, idx, llvm, load, ramp, with_lanes
from ..tir.expr import constant

SHORT = 16  # elements of a row of the result, and of what is summed over
SMALL = 4096  # multiplications in all
UNROLLED = 8  # rows
DIRECTIONS = 8  # products from which testing each for zeros pays
TOGETHER = 4  # rows that are tested for zero together
LARGEST = 16  # numbers that are tested at once


def is_small(batch: Any, m: Any, n: Any, k: Any) -> bool:
    """Whether a product (of each of a batch) is small enough, and none of its sizes 0."""
    if not all(isinstance(size, int) for size in (batch, m, n, k)) or is_left_out("small_products"):
        return False
    short = n <= SHORT if n > 1 else m <= SHORT
    return short and k <= SHORT and 0 < m * n * k <= SMALL and batch > 0


def small_product(c: Any, batch: int, m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    """Emit the product of (m, k) and (k, n), either of which may be stored transposed.

    Args:
        c: an `opaque.Call`; its operands and its result do not overlap.
    """
    left, right, out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
    block, b = c.block, c.b
    derived = c.node.origin.made_by in ("jvp", "vjp")
    each_right = derived and batch >= DIRECTIONS and m <= UNROLLED and m * n <= LARGEST and k * n <= LARGEST
    each_left = derived and batch == 1 and not ta and m % TOGETHER == 0 and m >= DIRECTIONS * TOGETHER
    each_left = each_left and TOGETHER * k <= LARGEST and TOGETHER * n <= LARGEST

    def strip(buffer: Any, at: Any, stride: int, count: int) -> Any:
        """Some elements of a matrix as a vector."""
        return load(buffer, ramp(at, count, stride))

    def total(terms: list[tuple[Any, Any]]) -> Any:
        first = b.mul(*terms[0])
        value = b.add(first, constant(0, dtype_of(first)))  # NumPy starts at 0, so that a sum of -0.0 is 0.0
        for x, y in terms[1:]:
            value = b.add(value, b.mul(x, y))
        return value

    def one(i: Any) -> None:
        first, second, result = (tirx.Mul(i, idx(size)) for size in (m * k, k * n, m * n))
        if n == 1:
            steps = (m, 1) if ta else (1, k)
            columns = [strip(left, tirx.Add(first, idx(t * steps[0])), steps[1], m) for t in range(k)]
            value = total([(column, load(right, tirx.Add(second, idx(t)))) for t, column in enumerate(columns)])
            block.store(out, value, ramp(result, m))
            return
        steps = (1, k) if tb else (n, 1)
        rows = [b.let(strip(right, tirx.Add(second, idx(t * steps[0])), steps[1], n)) for t in range(k)]

        def row(r: Any) -> None:
            start, step = (r, m) if ta else (tirx.Mul(r, idx(k)), 1)
            numbers = [load(left, tirx.Add(first, tirx.Add(start, idx(t * step)))) for t in range(k)]
            block.store(out, total(list(zip(numbers, rows))), ramp(tirx.Add(result, tirx.Mul(r, idx(n))), n))

        def several(r: Any, count: int) -> None:
            for j in range(count):
                row(tirx.Add(r, idx(j)))

        def unless_zero(buffer: Any, at: Any, size: int, r: Any, count: int) -> None:
            """Some rows, or zeros where all of a stretch of an operand is."""
            numbers = b.let(load(buffer, ramp(at, size)))
            differ = llvm("vector.reduce.or", "bool", exact.ne(numbers, constant(0, dtype_of(numbers))))  # NaN too
            with block.when(differ):
                several(r, count)
            with block.otherwise():
                zeros = constant(0, with_lanes(element(dtype_of(numbers)), count * n))
                block.store(out, zeros, ramp(tirx.Add(result, tirx.Mul(r, idx(n))), count * n))

        if each_right:
            unless_zero(right, second, k * n, idx(0), m)
        elif each_left:
            with block.loop(m // TOGETHER) as i:
                r = block.let(tirx.Mul(i, idx(TOGETHER)))
                unless_zero(left, tirx.Add(first, tirx.Mul(r, idx(k))), TOGETHER * k, r, TOGETHER)
        elif m <= UNROLLED:
            several(idx(0), m)
        else:
            with block.loop(m) as r:
                row(r)

    if batch == 1:
        one(idx(0))
    else:
        with block.loop(batch) as i:
            one(i)
