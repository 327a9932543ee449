"""Products of triangular matrices, by panels: each is a library product of the part that is not zero.

Rows of a lower triangle end at the diagonal, so the products of eight of them with another matrix end there too: with d
/ 8 panels, this is half the work of the whole product plus an eighth of it for d = 64. Narrow panels are fast only if
the library does not have to copy its operands for each of them, so a right triangle that is stored transposed is
transposed first, and large ones are cut into eight.

Zero times infinity is NaN, but nothing outside the triangle is multiplied. The row (or column) of the triangle that
goes from end to end meets all numbers of the other matrix: if its results are finite, all these numbers are finite, and
their products with zeros are zeros. If not, the missing multiples of zero are added, which gives NaN where NumPy gives
NaN.

Used by `opaque`. Input: an `opaque.Call` of `triangular_dot`. Sizes may be symbolic: panels are cut when the sizes are
known.

Measured (float64, 1000 rows, one Zen 4 core, whole product by the same library): d = 32: 29 us (52), 64: 96 (181), 128:
399 (668).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from ....abstract.dims import DimLike
from ..tir.block import const, idx, load
from . import blas

NARROW = 8
PANELS = 8
MANY = 32  # rows from which transposing a matrix pays


def triangular_dot(c: Any, tasks: int) -> None:
    """Emit the product.

    Args:
        tasks: threads among which panels are divided.
    """
    which, lower, ta, tb = (c.attrs[name] for name in ("which", "lower", "transpose_a", "transpose_b"))
    m, n = (c.dim(size) for size in c.out_type.shape)
    inner = c.dim(c.types[0].shape[0 if ta else 1])
    left, right, out = c.operand(0), c.operand(1), c.result()
    if which == "right" and tb:
        right, tb = turned(c, right, *c.types[1].shape), False

    def product(rows: tuple[Any, Any], columns: tuple[Any, Any], terms: tuple[Any, Any]) -> None:
        """The product of parts of the operands, as a part of the result."""
        (i, i1), (j, j1), (k, k1) = rows, columns, terms
        a = (left[0], k * m + i if ta else i * inner + k)
        x = (right[0], j * inner + k if tb else k * n + j)
        blas.gemm(
            c.block, i1 - i, j1 - j, k1 - k, a, x, (out[0], i * n + j),
            trans_a=ta, trans_x=tb, lda=m if ta else inner, ldx=inner if tb else n, ldc=n,
        )  # fmt: skip

    def panel(start: Any, end: Any) -> None:
        if which == "left":
            product((start, end), (0, n), (0, end) if lower else (start, inner))
        elif which == "right":
            product((0, m), (start, end), (start, inner) if lower else (0, end))
        else:
            product((start, end), (0, end) if lower else (start, n), (0, inner))

    size = n if which == "right" else m
    narrow = NARROW if blas.has_small_kernels() else 4 * NARROW
    if all(isinstance(d, int) for d in (m, n, inner)):
        width = max(narrow, size // PANELS // narrow * narrow) if size > 2 * PANELS * narrow else narrow
        _known(c, [(start, min(start + width, size)) for start in range(0, size, width)], tasks, panel)
    else:
        with c.block.when(c.b.logical_and(tirx.GT(idx(m), idx(0)), tirx.GT(idx(n), idx(0)))):
            _named(c, size, narrow, tasks, panel)
    if which == "result":
        clear(c)
    elif which == "left":
        _repair(c, out, right, n, m, lower, (n, 1), (1, inner) if tb else (n, 1))
    else:
        _repair(c, out, left, m, n, not lower, (1, n), (m, 1) if ta else (1, inner))


def _known(c: Any, panels: list[tuple[int, int]], tasks: int, panel: Callable[[Any, Any], None]) -> None:
    """Emit panels, each by itself."""
    if tasks == 1:
        for start, end in panels:
            panel(start, end)
        return
    with c.block.loop(tasks, "parallel", "task") as task:
        for t in range(tasks):
            with c.block.when(tirx.EQ(task, idx(t))):
                for start, end in panels[t::tasks]:
                    panel(start, end)


def _named(c: Any, size: Any, narrow: int, tasks: int, panel: Callable[[Any, Any], None]) -> None:
    """Emit a loop over the panels of a size that is known when it runs."""
    block = c.block
    width = block.let(tirx.Max(idx(narrow), tirx.Mul(tirx.Div(idx(size), idx(PANELS * narrow)), idx(narrow))))
    count = block.let(tirx.Div(tirx.Add(idx(size), tirx.Sub(width, idx(1))), width))
    with block.loop(tasks, "parallel" if tasks > 1 else "serial", "task") as task:
        mine = block.let(tirx.Div(tirx.Add(tirx.Sub(count, task), idx(tasks - 1)), idx(tasks)))
        with block.loop(mine) as iteration:
            start = block.let(tirx.Mul(tirx.Add(task, tirx.Mul(iteration, idx(tasks))), width))
            panel(start, block.let(tirx.Min(tirx.Add(start, width), idx(size))))


def is_quicker_turned(m: Any, n: Any, k: Any) -> bool:
    """Whether the library is slow if it is given the right matrix of (m, k) times (k, n) transposed."""
    if not blas.has_small_kernels() or not isinstance(n, int) or not isinstance(k, int) or n * k > blas.LARGEST_SIDE:
        return False
    return not isinstance(m, int) or m >= MANY


def turned(c: Any, matrix: tuple[Any, Any], rows: DimLike, columns: DimLike) -> tuple[Any, Any]:
    """A matrix, transposed."""
    out = c.scratch(rows * columns, c.out_type.dtype)
    rows, columns = c.dim(rows), c.dim(columns)
    with c.block.loop(columns) as i, c.block.loop(rows) as j:
        value = load(matrix[0], tirx.Add(tirx.Mul(j, idx(columns)), i))
        c.block.store(out[0], value, tirx.Add(tirx.Mul(i, idx(rows)), j))
    return out


def clear(c: Any) -> None:
    """Zeros beside a triangular result."""
    out, size, lower = c.result()[0], c.dim(c.out_type.shape[1]), c.attrs["lower"]
    with c.block.loop(size) as i:
        count = tirx.Sub(idx(size - 1), i) if lower else i
        start = c.block.let(tirx.Add(tirx.Mul(i, idx(size)), tirx.Add(i, idx(1)) if lower else idx(0)))
        with c.block.loop(count) as j:
            c.block.store(out, const(0.0, c.out_type.dtype), tirx.Add(start, j))


def _repair(
    c: Any,
    out: tuple[Any, Any],
    other: tuple[Any, Any],
    lines: Any,
    size: Any,
    before: bool,
    out_steps: tuple[Any, Any],
    other_steps: tuple[Any, Any],
) -> None:
    """Make NaN of what has met zero times what is not finite.

    Args:
        other: the operand that is no triangle.
        lines: vectors that were multiplied by the triangle.
        size: elements of each.
        before: whether an element of a product has met the elements of the vector before it, and its own; or those after it.
        out_steps: from an element to the next, and from a vector to the next, in the result.
        other_steps: the same in `other`.
    """
    block, b, dtype = c.block, c.b, c.out_type.dtype
    zero = const(0.0, dtype)

    def at(steps: tuple[int, int], k: Any, line: Any) -> Any:
        return tirx.Add(tirx.Mul(idx(k), idx(steps[0])), tirx.Mul(line, idx(steps[1])))

    whole = size - 1 if before else 0
    bad = block.cell(tirx.IntImm("int32", 0))
    with block.loop(lines) as line:
        value = block.let(load(out[0], at(out_steps, whole, line)))
        differs = tirx.Cast("int32", b.logical_not(b.isfinite(value)))
        block.store(bad, tirx.bitwise_or(load(bad, 0), differs), 0)
    with block.when(tirx.NE(load(bad, 0), tirx.IntImm("int32", 0))), block.loop(lines) as line:
        missing = block.cell(zero)
        with block.loop(size) as iteration:
            k = block.let(tirx.Sub(idx(size - 1), iteration)) if before else iteration
            place = block.let(at(out_steps, k, line))
            block.store(out[0], b.add(load(out[0], place), load(missing, 0)), place)
            block.store(missing, b.add(load(missing, 0), b.mul(load(other[0], at(other_steps, k, line)), zero)), 0)


__all__ = ["clear", "is_quicker_turned", "triangular_dot", "turned"]
