"""Products of a matrix of some rows, often as many as only a run tells, and one of known size: a layer on any batch, of any length.

The tiles are those of `skinny_products`. Rows go in tiles of eight, and what remains of them in tiles of four, two and one. Each
thread has panels of columns of its own, and a place where it copies one of them (turned, where the matrix is stored transposed):
its rows then lie side by side, in the first or second cache, for all tiles of rows. So no thread copies the whole matrix, as a BLAS
does on each of them.

Where the number of rows is not known, the kernel decides when it runs: one row is a product of a matrix and a vector; few rows read
a panel where it is; more than `MANY` are a product for the BLAS.

Measured (Ice Lake, two threads of one core, float32): 64 rows by 768 x 768 at 106 GFLOP/s, where each thread copies what it
multiplies by as a whole 76; transposed 111 and 94.

Input: an `opaque.Call`. Output: statements in its kernel, and functions. Source: K. Goto and R. van de Geijn, "Anatomy of
high-performance matrix multiplication" (TOMS 2008).
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from .....abstract.dims import DimLike
from .....utils.switches import is_left_out
from ...tir import pipeline
from ...tir.block import idx
from ..nests import lanes_for
from ..skinny_products import LEAST, MANY, MOST, PACE, TILE, call_tile, is_vector, vector_product
from .library import by_vector, matrix_product, on_threads

WORK = 1 << 16  # elements of the matrix: of smaller ones the gain is not worth the time to compile the tiles
IN_PLACE = 8  # rows up to which a panel is read where it is


def is_by_panels(m: DimLike, n: DimLike, k: DimLike, ta: bool, dtype: str) -> bool:
    """Whether a product of (m, k) and (k, n), which may be stored transposed, is computed so."""
    if not isinstance(n, int) or not isinstance(k, int) or ta or isinstance(m, int) and not IN_PLACE < m <= MANY:
        return False
    if is_left_out("skinny_products") or pipeline.vector_bytes() < 64:
        return False
    return n * k >= WORK and LEAST <= k <= MOST and n >= TILE[1] * lanes_for(dtype)


def product_by_panels(c: Any, m: DimLike, n: int, k: int, tb: bool, flops: int, nbytes: int) -> None:
    """Emit it.

    Args:
        c: the call.
        m: rows; a dimension, or of a number that `is_by_panels` admits.
        n, k: columns, and what is summed over.
        tb: whether the second matrix is stored transposed.
        flops, nbytes: as for `library.matrix_product`.
    """
    if isinstance(m, int):
        _Panels(c, m, n, k, tb, c.tasks(2 * m * n * k, flops)).emit()
        return
    block, rows = c.block, c.block.let(c.dim(m))
    with block.when(tirx.EQ(rows, idx(1))):
        if tb and is_vector(1, n, k, c.out_type.dtype):
            vector_product(c, (0, 1), 1, n, k, threads_of(c))
        else:
            by_vector(c, (n, k) if tb else (k, n), c.operand(1), c.operand(0), c.result(), not tb, nbytes)
    with block.otherwise():
        with block.when(tirx.LE(rows, idx(MANY))):
            on_threads(c, 2 * m * n * k, flops, lambda tasks: _Panels(c, rows, n, k, tb, tasks).emit())
        with block.otherwise():
            matrix_product(c, m, n, k, False, tb, flops, nbytes)


def threads_of(c: Any) -> int:
    """All threads."""
    return c.tasks(1, 0)


class _Panels:
    """The panels of a product, in so many tasks.

    Args:
        c: the call.
        rows: of the result, a number or an expression.
        n, k, tb, tasks: as for `product_by_panels`.
    """

    def __init__(self, c: Any, rows: Any, n: int, k: int, tb: bool, tasks: int):
        self.c, self.block, self.rows, self.n, self.k, self.tb, self.tasks = c, c.block, rows, n, k, tb, tasks
        self.dtype = c.out_type.dtype
        self.lanes = lanes_for(self.dtype)
        self.across = TILE[1] * self.lanes
        self.left, self.right, self.out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
        self.place, self.offset = c.scratch(k * self.across * tasks, self.dtype)

    def emit(self) -> None:
        """All panels."""
        block, across = self.block, self.across
        whole, rest = divmod(self.n, across)
        share = -(-whole // self.tasks)
        with block.loop(self.tasks, "parallel" if self.tasks > 1 else "serial", "task") as task:
            own = block.let(tirx.Add(idx(self.offset), tirx.Mul(task, idx(self.k * across))))
            first = block.let(tirx.Mul(task, idx(share)))
            with block.loop(tirx.Min(idx(share), tirx.Sub(idx(whole), first))) as i:
                self.panel(block.let(tirx.Mul(tirx.Add(first, i), idx(across))), across, own)
            if rest:
                with block.when(tirx.EQ(task, idx(self.tasks - 1))):  # its share is the smallest one
                    self.panel(idx(whole * across), rest, own)

    def panel(self, j: Any, columns: int, own: Any) -> None:
        """Some columns of the result.

        Args:
            j: the first one.
            columns: how many.
            own: where the thread copies them.
        """
        block, k, n, across = self.block, self.k, self.n, columns
        source, packed = (self.right, tirx.Mul(j, idx(k)) if self.tb else j), (self.place, own)
        if self.tb:
            call_tile(self.c, ("turned", self.dtype, columns, k % self.lanes), (source, packed), (k,))
            self.tiles(j, columns, packed, columns, (source, k * columns, across))
            return
        if isinstance(self.rows, int):  # more than IN_PLACE
            self.tiles(j, columns, source, n, (source, columns, n), packed)
            return
        with block.when(tirx.GT(self.rows, idx(IN_PLACE))):
            self.tiles(j, columns, source, n, (source, columns, n), packed)
        with block.otherwise():
            self.tiles(j, columns, source, n, (source, columns, n))

    def tiles(
        self, j: Any, columns: int, source: Any, step: int, later: tuple[Any, int, int], packed: Any = None
    ) -> None:
        """The rows of a panel.

        Args:
            j, columns: the panel.
            source, step: where it is, and how far its rows lie apart.
            later: what is fetched meanwhile, each tile its share: a place, how far behind it, and how far rows lie apart.
            packed: where the first tile copies the panel, for the others.
        """
        block, (down, _), rest = self.block, TILE, self.rows
        count = tirx.Max(tirx.Div(tirx.Add(idx(self.rows), idx(down - 1)), idx(down)), idx(1))
        pace = block.let(tirx.Div(idx(PACE), count))
        beginning, behind, apart = later

        def tile(i: Any, rows: int, source: Any, step: int, *copy: Any) -> None:
            first = tirx.Div(tirx.Mul(tirx.Mul(tirx.Div(i, idx(down)), idx(self.k)), pace), idx(PACE))
            ahead = tirx.Add(idx(behind), tirx.Mul(first, idx(apart)))
            target = self.out, tirx.Add(tirx.Mul(i, idx(self.n)), j)
            places = (self.left, tirx.Mul(i, idx(self.k))), source, beginning, target, *copy
            numbers = (self.k, 1, step, ahead, apart, pace, self.n, self.k)
            call_tile(self.c, ("columns", self.dtype, rows, columns, *map(bool, copy)), places, numbers)

        done: Any = idx(0)
        if packed is not None:
            tile(done, down, source, step, packed)
            source, step, done = packed, columns, idx(down)
            rest = rest - down if isinstance(rest, int) else tirx.Sub(rest, done)
        if isinstance(rest, int):
            with block.loop(rest // down) as i:
                tile(block.let(tirx.Add(done, tirx.Mul(i, idx(down)))), down, source, step)
            before = self.rows - rest % down
            for size in (s for s in (down // 2, down // 4, 1) if rest & s):
                tile(idx(before), size, source, step)
                before += size
            return
        whole = block.let(tirx.Div(rest, idx(down)))
        with block.loop(whole) as i:
            tile(block.let(tirx.Add(done, tirx.Mul(i, idx(down)))), down, source, step)
        done, size = block.let(tirx.Add(done, tirx.Mul(whole, idx(down)))), down // 2
        rest = block.let(tirx.Sub(self.rows, done))
        while size:
            with block.when(tirx.NE(tirx.BitwiseAnd(rest, idx(size)), idx(0))):
                # Behind the larger ones.
                before = tirx.BitwiseAnd(rest, idx(down - 2 * size))
                tile(block.let(tirx.Add(done, before)), size, source, step)
            size //= 2
