"""Factorisations of stacks of matrices by LAPACK, matrix by matrix; large stacks by all threads.

LAPACK is in the OpenBLAS that `blas` uses. Its functions of C order (`LAPACKE`) get their own memory for the time of a call and
turn matrices round, as NumPy does before it calls LAPACK: results are the same bit for bit where both have the same LAPACK.

Input: a `Call` of a primitive of `prims.ops.matrices`, which describes the layouts. Output: statements in its kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm import tirx

from .....abstract.dims import DimLike
from .....prims.rules.lapack import ROWS
from .....utils.openblas import openblas
from ...plan import ITEM
from ...tir.block import const, idx, load
from ...tir.expr import constant
from ..conv import split
from ..kernel import address_of

PARALLEL_FLOPS = 400_000  # as in `opaque`


def _add(*terms: Any) -> Any:
    total, *rest = map(idx, terms)
    for term in rest:
        total = tirx.Add(total, term)
    return total


def _mul(x: Any, y: Any) -> Any:
    return tirx.Mul(idx(x), idx(y))


class MatrixLoop:
    """The loop over the matrices of a call.

    Attributes:
        c: the call.
        i: which matrix.
        task: the number of the thread.
    """

    def __init__(self, c: Any, i: Any, task: Any):
        self.c, self.i, self.task = c, i, task
        self.block, self.dtype = c.block, c.out_type.dtype

    def place(self, per_matrix: DimLike) -> Any:
        """Where this matrix begins in a stack with so many elements for each."""
        return self.block.let(_mul(self.i, self.c.dim(per_matrix)))

    def scratch(self, memory: Any, size: DimLike) -> tuple[Any, Any]:
        """This thread's part of `_scratch`, as a buffer and an offset."""
        return memory, self.block.let(_mul(self.task, self.c.dim(size)))

    def call(self, routine: str, *args: Any) -> Any:
        """A routine of LAPACKE; what it returns. Arguments are sizes, letters, and (buffer, offset) of arrays."""
        openblas()
        letter = "s" if self.dtype == "float32" else "d"
        values = [self._argument(a) for a in (ROWS, *args)]
        self.block.library = True
        return self.block.let(tirx.call_extern("int32", f"scipy_LAPACKE_{letter}{routine}", *values))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return address_of(value[0], idx(value[1]))
        if isinstance(value, str):
            return tirx.IntImm("int32", ord(value))
        return tirx.IntImm("int32", value) if isinstance(value, int) else tirx.Cast("int32", value)

    def copy(self, target: tuple[Any, Any], source: tuple[Any, Any], size: DimLike) -> None:
        """Copy consecutive elements."""
        if isinstance(size, int) and not size:
            return
        pointers = [address_of(buffer, idx(at)) for buffer, at in (target, source)]
        nbytes = _mul(self.c.dim(size), ITEM[self.dtype])
        self.block.emit(tirx.Evaluate(tirx.call_extern("handle", "memmove", *pointers, nbytes)))

    def fill(self, target: tuple[Any, Any], rows: DimLike, columns: DimLike, value: Any) -> None:
        """Store `value(row, column)` in a matrix."""
        width = self.c.dim(columns)
        with self.block.loop(self.c.dim(rows), name="row") as r, self.block.loop(width, name="column") as k:
            self.block.store(target[0], value(r, k), _add(target[1], _mul(r, width), k))

    def identity(self, target: tuple[Any, Any], rows: DimLike, columns: DimLike) -> None:
        """Store ones on the diagonal of a matrix and zeros elsewhere."""
        one, zero = const(1.0, self.dtype), const(0.0, self.dtype)
        self.fill(target, rows, columns, lambda r, k: tirx.Select(tirx.EQ(r, k), one, zero))

    def finish(self, info: Any, out: tuple[Any, Any], size: DimLike) -> None:
        """Store what a routine returned in front of its results, which are NaN if it failed."""
        self.block.store(out[0], tirx.Cast(self.dtype, info), out[1])
        with self.block.when(tirx.NE(info, tirx.IntImm("int32", 0))):
            self.fill((out[0], _add(out[1], 1)), 1, size - 1, lambda r, k: const(float("nan"), self.dtype))

    @contextmanager
    def unless_empty(self, size: DimLike) -> Iterator[bool]:
        """Runs what is emitted inside if a size is not 0; gives False where it is known to be."""
        if isinstance(size, int):
            yield bool(size)
            return
        with self.block.when(tirx.GT(idx(self.c.dim(size)), idx(0))):
            yield True


@contextmanager
def _matrices(c: Any, tasks: int) -> Iterator[MatrixLoop]:
    with split(c.block, c.dim(c.out_type.shape[0]), tasks) as (task, i):
        yield MatrixLoop(c, i, task)


def _tasks(c: Any, flops: DimLike) -> int:
    """How many threads share the matrices; `flops` is the work for one."""
    count = c.out_type.shape[0]
    return 1 if isinstance(count, int) and count == 1 else c.tasks(count * flops, PARALLEL_FLOPS)


def _scratch(c: Any, tasks: int, size: DimLike, dtype: str = "") -> Any:
    """Memory for each thread."""
    return c.scratch(size * tasks if not isinstance(size, int) else max(1, size * tasks), dtype or c.out_type.dtype)[0]


def _lu(c: Any) -> None:
    _, n, _ = c.types[0].shape
    a, out, tasks = c.operand(0)[0], c.result()[0], _tasks(c, n * n * n)
    memory, size = _scratch(c, tasks, n, "int32"), c.dim(n)
    with _matrices(c, tasks) as s:
        to, pivots = s.place(n * n + n), s.scratch(memory, n)
        s.copy((out, to), (a, s.place(n * n)), n * n)
        with s.unless_empty(n) as there:
            if there:
                s.call("getrf", size, size, (out, to), size, pivots)
        last = s.block.let(_add(to, c.dim(n * n)))
        s.fill((out, last), 1, n, lambda _, k: tirx.Cast(s.dtype, load(memory, _add(pivots[1], k))))


def _lu_solve(c: Any) -> None:
    _, n, k = c.out_type.shape
    factors, b, out = c.operand(1)[0], c.operand(2)[0], c.result()[0]
    tasks = _tasks(c, 2 * n * n * k)
    memory, size, count = _scratch(c, tasks, n, "int32"), c.dim(n), c.dim(k)
    with _matrices(c, tasks) as s:
        to, at, pivots = s.place(n * k), s.place(n * n + n), s.scratch(memory, n)
        s.copy((out, to), (b, to), n * k)
        last = s.block.let(_add(at, c.dim(n * n)))
        with s.block.loop(size) as j:
            s.block.store(memory, tirx.Cast("int32", load(factors, _add(last, j))), _add(pivots[1], j))
        letter = "T" if c.attrs["transpose"] else "N"
        with s.unless_empty(n * k) as there:
            if there:
                s.call("getrs", letter, size, count, (factors, at), size, pivots, (out, to), count)


def _lu_slogdet(c: Any) -> None:
    _, n, _ = c.types[0].shape
    factors, out, b, size = c.operand(1)[0], c.result()[0], c.b, c.dim(n)
    with _matrices(c, 1) as s:
        block, at = s.block, s.place(n * n + n)
        sign, total = block.cell(constant(1.0, s.dtype)), block.cell(constant(0.0, s.dtype))
        singular = block.cell(idx(0))
        last = block.let(_add(at, c.dim(n * n)))
        with block.loop(size) as k:
            d = block.let(load(factors, _add(at, _mul(k, _add(size, 1)))))
            exchanged = tirx.NE(tirx.Cast("int64", load(factors, _add(last, k))), _add(k, 1))
            negative = block.let(b.lt(d, constant(0.0, s.dtype)))
            with block.when(tirx.NE(tirx.Cast("int32", exchanged), tirx.Cast("int32", negative))):
                block.store(sign, b.neg(load(sign, 0)), 0)
            block.store(total, b.add(load(total, 0), b.log(b.abs(d))), 0)
            with block.when(b.eq(d, constant(0.0, s.dtype))):
                block.store(singular, idx(1), 0)
        with block.when(tirx.EQ(load(singular, 0), idx(1))):
            block.store(sign, constant(0.0, s.dtype), 0)
            block.store(total, const(float("-inf"), s.dtype), 0)
        to = s.place(2)
        block.store(out, load(sign, 0), to)
        block.store(out, load(total, 0), _add(to, 1))


def _triangular_solve(c: Any) -> None:
    _, n, k = c.out_type.shape
    a, b, out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
    flags = 141, 122 if c.attrs["lower"] else 121, 112 if c.attrs["transpose"] else 111, 131
    size, count = c.dim(n), c.dim(k)
    with _matrices(c, _tasks(c, n * n * k)) as s:
        to = s.place(n * k)
        s.copy((out, to), (b, to), n * k)
        with s.unless_empty(n * k) as there:
            if there:
                openblas()
                name = "scipy_cblas_strsm" if s.dtype == "float32" else "scipy_cblas_dtrsm"
                front = [s._argument(v) for v in (ROWS, *flags, size, count)]
                at = s._argument((a, s.place(n * n)))
                last = [s._argument(v) for v in (size, (out, to), count)]
                s.block.library = True
                s.block.emit(tirx.call_extern("int32", name, *front, const(1.0, s.dtype), at, *last))


def _cholesky(c: Any) -> None:
    _, n, _ = c.types[0].shape
    a, out, size = c.operand(0)[0], c.result()[0], c.dim(n)
    with _matrices(c, _tasks(c, n * n * n)) as s:
        at, to = s.place(n * n), s.place(n * n + 1)
        first = s.block.let(_add(to, 1))
        zero = const(0.0, s.dtype)
        s.fill((out, first), n, n, lambda r, k: tirx.Select(tirx.GE(r, k), load(a, _add(at, _mul(r, size), k)), zero))
        info = s.block.cell(tirx.IntImm("int32", 0))
        with s.unless_empty(n) as there:
            if there:
                s.block.store(info, s.call("potrf", "L", size, (out, first), size), 0)
        s.finish(load(info, 0), (out, to), n * n + 1)


def _eigh(c: Any) -> None:
    _, n, _ = c.types[0].shape
    a, out, size, vectors = c.operand(0)[0], c.result()[0], c.dim(n), c.attrs["vectors"]
    tasks, total = _tasks(c, 9 * n * n * n), 1 + n + n * n if vectors else 1 + n
    memory = None if vectors else _scratch(c, tasks, n * n)
    with _matrices(c, tasks) as s:
        to = s.place(total)
        work = (out, s.block.let(_add(to, 1, size))) if vectors else s.scratch(memory, n * n)
        s.copy(work, (a, s.place(n * n)), n * n)
        info = s.block.cell(tirx.IntImm("int32", 0))
        job, triangle = "V" if vectors else "N", "L" if c.attrs["lower"] else "U"
        with s.unless_empty(n) as there:
            if there:
                s.block.store(info, s.call("syevd", job, triangle, size, work, size, (out, _add(to, 1))), 0)
        s.finish(load(info, 0), (out, to), total)


def _svd(c: Any) -> None:
    _, m, n = c.types[0].shape
    k, full, vectors = c.attrs["k"], c.attrs["full"], c.attrs["vectors"]
    a, out, tasks = c.operand(0)[0], c.result()[0], _tasks(c, 20 * m * n * k)
    left, right = (m, n) if full else (k, k)
    total = 1 + k + (m * left + right * n if vectors else 0)
    memory = _scratch(c, tasks, m * n)
    with _matrices(c, tasks) as s:
        to, work = s.place(total), s.scratch(memory, m * n)
        s.copy(work, (a, s.place(m * n)), m * n)
        values = (out, s.block.let(_add(to, 1)))
        u = (out, s.block.let(_add(values[1], c.dim(k)))) if vectors else values
        v = (out, s.block.let(_add(u[1], c.dim(m * left)))) if vectors else values
        if vectors and not (isinstance(k, int) and k):
            s.identity(u, m, left)
            s.identity(v, right, n)
        info = s.block.cell(tirx.IntImm("int32", 0))
        job, rows, columns = "N" if not vectors else "A" if full else "S", c.dim(m), c.dim(n)
        with s.unless_empty(k) as there:
            if there:
                found = s.call("gesdd", job, rows, columns, work, columns, values, u, c.dim(left), v, columns)
                s.block.store(info, found, 0)
        s.finish(load(info, 0), (out, to), total)


def _qr(c: Any) -> None:
    _, m, n = c.types[0].shape
    k = c.attrs["k"]
    wide = m if c.attrs["complete"] else k
    a, out, tasks = c.operand(0)[0], c.result()[0], _tasks(c, 4 * m * n * k)
    total, rows, columns, count, width = 1 + m * wide + wide * n, c.dim(m), c.dim(n), c.dim(k), c.dim(wide)
    memory, scales = _scratch(c, tasks, m * n), _scratch(c, tasks, k)
    with _matrices(c, tasks) as s:
        to, work, tau = s.place(total), s.scratch(memory, m * n), s.scratch(scales, k)
        s.copy(work, (a, s.place(m * n)), m * n)
        q = (out, s.block.let(_add(to, 1)))
        r = (out, s.block.let(_add(q[1], c.dim(m * wide))))
        zero = const(0.0, s.dtype)
        s.identity(q, m, wide)
        with s.unless_empty(k) as there:
            if there:
                s.call("geqrf", rows, columns, work, columns, tau)
                with s.block.loop(rows, name="row") as i, s.block.loop(count, name="column") as j:
                    value = load(work[0], _add(work[1], _mul(i, columns), j))
                    s.block.store(out, value, _add(q[1], _mul(i, width), j))
                s.call("orgqr", rows, width, count, q, width, tau)
        s.fill(
            r,
            wide,
            n,
            lambda i, j: tirx.Select(tirx.LE(i, j), load(work[0], _add(work[1], _mul(i, columns), j)), zero),
        )
        s.block.store(out, zero, to)


def _given(c: Any) -> None:
    """The second operand, which has the derivative of a function of the first."""
    _, n, m = c.out_type.shape
    p, out = c.operand(1)[0], c.result()[0]
    with _matrices(c, 1) as s:
        to = s.place(n * m)
        s.copy((out, to), (p, to), n * m)


TABLE = {
    "lu": _lu,
    "lu_solve": _lu_solve,
    "lu_slogdet": _lu_slogdet,
    "triangular_solve": _triangular_solve,
    "cholesky": _cholesky,
    "pseudo_inverse": _given,
    "determinant": _given,
    "eigh": _eigh,
    "svd": _svd,
    "qr": _qr,
}
"""Primitives -> what emits their kernels."""

__all__ = ["TABLE"]
