"""Products by the BLAS, in as many parts as there are threads.

Where a size is an expression, the kernel decides itself, when it runs, whether the work is worth a second thread, and whether its
threads share the rows or the columns of the result: each of them makes the library copy the other matrix.

Input: an `opaque.Call`. Output: statements in its kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from .....abstract.dims import DimLike
from ...plan import ITEM
from ...tir import threads
from ...tir.block import idx
from ...tir.pipeline import standalone
from .. import blas
from ..triangular_products import is_quicker_turned, turned

LEAST_SYMMETRIC = 1 << 19
"""Operations of a whole product of which it pays to compute a half."""

LEAST_TERMS = 32
"""Terms of each element from which that is so: of fewer, the mirror takes as long as the other half."""


def on_threads(c: Any, work: DimLike, limit: float, body: Callable[[int], None]) -> None:
    """Emit `body(number of threads)`: several where the work is worth it. Twice where only a run tells.

    Args:
        c: the call.
        work: how much there is to do.
        limit: how much is worth several threads.
        body: emits it.
    """
    several = max(1, threads.count())
    if several == 1 or isinstance(work, int):
        body(several if isinstance(work, int) and work >= limit else 1)
        return
    with c.block.when(tirx.GE(idx(c.dim(work)), idx(int(limit)))):
        body(several)
    with c.block.otherwise():
        body(1)


def part_of(c: Any, n: Any, tasks: int, task: Any) -> tuple[Any, Any]:
    """The part (first, count) of `n` items that a task does; whole multiples of 8, so that cache lines are not shared."""
    if isinstance(n, int):
        share = -(-n // tasks)
        size: Any = idx(-(-share // 8) * 8)
    else:
        size = c.block.let(tirx.Mul(tirx.Div(tirx.Add(n, idx(8 * tasks - 1)), idx(8 * tasks)), idx(8)))
    first = c.block.let(tirx.Mul(task, size))
    rest = c.block.let(tirx.Sub(idx(n), first))
    return first, c.block.let(tirx.Select(tirx.LT(rest, size), rest, size))


def matrix_product(c: Any, m: DimLike, n: DimLike, k: DimLike, ta: bool, tb: bool, flops: float, nbytes: float) -> None:
    """Emit the product of (m, k) and (k, n), either of which may be stored transposed.

    Args:
        c: the call.
        m, n, k: sizes, not 0 where they are known.
        ta, tb: what is stored transposed.
        flops: from how many operations on several threads compute.
        nbytes: from how many bytes of a matrix on several threads multiply it by a vector.
    """
    left, right, out = c.operand(0), c.operand(1), c.result()
    if 1 in (m, n):
        # A row or a column: a BLAS that multiplies matrices copies the other one first.
        (matrix, vector), trans = ((right, left), not tb) if m == 1 else ((left, right), ta)
        by_vector(c, c.types[1 if m == 1 else 0].shape, matrix, vector, out, trans, nbytes)
        return
    lda, ldx = c.pitch(0), c.pitch(1)
    if tb and ldx is None and is_quicker_turned(m, n, k):
        right, tb = turned(c, right, n, k), False
    rows, cols, inner = c.dim(m), c.dim(n), c.dim(k)
    lda = (rows if ta else inner) if lda is None else lda
    ldx = (inner if tb else cols) if ldx is None else ldx
    strides = {"lda": lda, "ldx": ldx, "ldc": cols, "trans_a": ta, "trans_x": tb}

    def share_rows(tasks: int) -> None:
        with c.block.loop(tasks, "parallel", "task") as task:
            first, count = part_of(c, rows, tasks, task)
            with c.block.when(tirx.GT(count, idx(0))):
                part = (left[0], first if ta else tirx.Mul(first, idx(lda)))
                into = (out[0], tirx.Mul(first, idx(cols)))
                blas.gemm(c.block, count, cols, inner, part, right, into, **strides)

    def share_columns(tasks: int) -> None:
        with c.block.loop(tasks, "parallel", "task") as task:
            first, count = part_of(c, cols, tasks, task)
            with c.block.when(tirx.GT(count, idx(0))):
                part = (right[0], tirx.Mul(first, idx(ldx)) if tb else first)
                blas.gemm(c.block, rows, count, inner, left, part, (out[0], first), **strides)

    def run(tasks: int) -> None:
        if tasks == 1:
            blas.gemm(c.block, rows, cols, inner, left, right, out, **strides)
        elif isinstance(m, int) and isinstance(n, int):
            (share_rows if m >= n else share_columns)(tasks)
        else:
            with c.block.when(tirx.GE(idx(rows), idx(cols))):
                share_rows(tasks)
            with c.block.otherwise():
                share_columns(tasks)

    on_threads(c, 2 * m * n * k, flops, run)


def is_symmetric(c: Any, m: DimLike, k: DimLike, ta: bool, tb: bool, flops: float) -> bool:
    """Whether a product is that of a matrix with its own transpose, and so large that computing one half of it pays.

    On several threads, both halves take no longer than one takes alone.
    """
    if c.node.args[0] is not c.node.args[1] or ta == tb or standalone() is not None:
        return False
    work = 2 * m * m * k
    if isinstance(work, int) and work < LEAST_SYMMETRIC or isinstance(k, int) and k < LEAST_TERMS:
        return False
    return threads.count() <= 1 or isinstance(work, int) and work < flops


def symmetric_product(c: Any, m: DimLike, k: DimLike, trans: bool) -> None:
    """Emit the product of a matrix of m rows, or of m columns if `trans`, with its own transpose."""
    blas.syrk(c.block, c.dim(m), c.dim(k), c.operand(0), c.result(), trans=trans, lda=c.pitch(0))


def by_vector(
    c: Any,
    shape: tuple[DimLike, ...],
    matrix: Any,
    vector: Any,
    out: Any,
    trans: bool,
    nbytes: float,
    pitch: Any = None,
) -> None:
    """Emit the product of a matrix of a shape, perhaps transposed, and a vector.

    Args:
        c: the call.
        shape: of the matrix as it is stored.
        matrix, vector, out: buffers and offsets.
        trans: whether the vector is multiplied by the transpose.
        nbytes: from how many bytes of the matrix on several threads multiply.
        pitch: from one row of the matrix to the next; by default its rows are all there is.
    """
    rows, cols = shape
    m = c.dim(cols if trans else rows)
    r, w = c.dim(rows), c.dim(cols)
    lda = w if pitch is None else pitch

    def run(tasks: int) -> None:
        if tasks == 1:
            blas.gemv(c.block, r, w, matrix, vector, out, trans=trans, lda=lda)
            return
        with c.block.loop(tasks, "parallel", "task") as task:
            first, count = part_of(c, m, tasks, task)
            with c.block.when(tirx.GT(count, idx(0))):
                if trans:
                    blas.gemv(c.block, r, count, (matrix[0], first), vector, (out[0], first), trans=True, lda=lda)
                else:
                    part = (matrix[0], tirx.Mul(first, idx(lda)))
                    blas.gemv(c.block, count, w, part, vector, (out[0], first), lda=lda)

    on_threads(c, rows * cols * ITEM[c.out_type.dtype], nbytes, run)
