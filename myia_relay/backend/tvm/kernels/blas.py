"""Matrix products by OpenBLAS, as statements of compiled code.

Idea: PyPI's `scipy-openblas32` provides an optimised BLAS for every platform that we support. Once it is opened with
global symbols, compiled code calls it by name. It is set to one thread: several TVM workers call it at once, each on
its own part (OpenBLAS's own threads would compete with TVM's, and below a millisecond cost more than they gain).

Input: buffers (of any shape, contiguous) with element offsets; dimensions as ints or expressions; row-major matrices.
Output: statements emitted into a `Block`.

Layout: an m x n matrix with leading dimension ld has element (i, j) at offset + i * ld + j. Buffers must not overlap
the result. Dimensions must be positive where leading dimensions are derived from them, and below 2**31.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx

from ....utils.openblas import openblas
from ...native.library import kernels
from ..tir.block import Block, const, dtype_of, idx, load
from ..tir.pipeline import standalone

Operand = tuple[Any, Any]

SMALL = 1_000_000
"""Multiplications up to which the library does not copy its operands: for short ones, that takes longer than to multiply them."""

LARGEST_SIDE = 1 << 12
"""Elements of the matrix that is used again for each piece of a product."""

MIRROR = 16
"""Rows and columns of the blocks in which one half of a symmetric matrix is copied to the other."""

_ROW_MAJOR, _NO_TRANS, _TRANS, _LOWER = 101, 111, 112, 122
_PREFIX = {"float32": "scipy_cblas_s", "float64": "scipy_cblas_d"}


def pointer(buffer: Any, offset: Any = 0) -> Any:
    """The address of an element of a contiguous buffer, counted from its start."""
    return buffer.access_ptr("rw", offset=idx(offset))


def _base(buffer: Any) -> str:
    return str(buffer.ty.dtype)


def _int32(value: Any) -> Any:
    if isinstance(value, int):
        return tirx.IntImm("int32", value)
    return value if dtype_of(value) == "int32" else tirx.Cast("int32", value)


def _call(b: Block, routine: str, dtype: str, *args: Any) -> None:
    if dtype not in _PREFIX:
        raise ValueError(f"BLAS has float32 and float64, not {dtype}")
    openblas()
    b.library = True
    b.emit(tirx.call_extern("int32", _PREFIX[dtype] + routine, *args))


def gemm(
    b: Block,
    m: Any,
    n: Any,
    k: Any,
    a: Operand,
    x: Operand,
    c: Operand,
    *,
    trans_a: bool = False,
    trans_x: bool = False,
    alpha: float = 1.0,
    beta: float = 0.0,
    lda: Any = None,
    ldx: Any = None,
    ldc: Any = None,
) -> None:
    """C = alpha * op(A) @ op(X) + beta * C, with op(A) of m x k, op(X) of k x n, C of m x n.

    Args:
        b: where to emit.
        m: rows of C.
        n: columns of C.
        k: the contracted length.
        a: (buffer, element offset) of A, stored m x k, or k x m if `trans_a`.
        x: (buffer, element offset) of X, stored k x n, or n x k if `trans_x`.
        c: (buffer, element offset) of C. With beta 0 it need not be initialised, not even be finite.
        trans_a: A is stored transposed.
        trans_x: X is stored transposed.
        alpha: factor of the product.
        beta: factor of the old C; 1.0 accumulates.
        lda: leading dimension of A as stored; None if dense.
        ldx: of X.
        ldc: of C.
    """
    lda = lda if lda is not None else (m if trans_a else k)
    ldx = ldx if ldx is not None else (k if trans_x else n)
    ldc = ldc if ldc is not None else n

    def call(m: Any, n: Any, k: Any, a: Operand, x: Operand, c: Operand, beta: Any) -> None:
        _gemm(b, (m, n, k), (a, lda, trans_a), (x, ldx, trans_x), (c, ldc), alpha, beta)

    sizes = (m, n, k)
    axis, step = _cut(sizes)
    if axis is None:
        call(m, n, k, a, x, c, beta)
        return
    size = idx(sizes[axis])
    pieces = tirx.Div(tirx.Add(size, idx(step - 1)), idx(step))
    if axis == 2 and not isinstance(sizes[axis], int):
        pieces = tirx.Max(pieces, idx(1))  # where nothing is summed the result is zero
    with b.loop(pieces) as iteration:
        first = b.let(tirx.Mul(iteration, idx(step)))
        count = b.let(tirx.Min(tirx.Sub(size, first), idx(step)))
        if axis == 0:
            call(count, n, k, _moved(a, first, 1 if trans_a else lda), x, _moved(c, first, ldc), beta)
        elif axis == 1:
            call(m, count, k, a, _moved(x, first, ldx if trans_x else 1), _moved(c, first, 1), beta)
        else:
            dtype = _base(c[0])
            begun = tirx.Select(tirx.EQ(first, idx(0)), const(beta, dtype), const(1.0, dtype))
            call(
                m, n, count, _moved(a, first, lda if trans_a else 1), _moved(x, first, 1 if trans_x else ldx), c, begun
            )


def has_small_kernels() -> bool:
    """Whether the library multiplies small matrices without copying them first: its kernels for AVX-512 do.

    It is the library that chooses its kernels, or whoever set `OPENBLAS_CORETYPE`.
    """
    return standalone() is None and kernels() in ("SkylakeX", "Cooperlake", "SapphireRapids")


def _cut(sizes: tuple[Any, Any, Any]) -> tuple[int | None, int]:
    """The axis (of m, n, k) along which a product is cut, and the size of a piece; None where it is left whole.

    A long product of two short sides is faster in pieces that the library takes for small (measured, on one Zen 4 core: 1.1 to
    1.5 times for float64, 1.05 to 1.4 for float32, 2.2 times where the result has 10 or 20 columns; on a core of an Intel server
    with AVX-512, in float32: 1.1 to 1.9 times where the sides make up to 4,096 elements, 0.6 to 0.9 from 8,192 on).
    """
    open_ = [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
    if len(open_) > 1 or not has_small_kernels():
        return None, 0
    axis = open_[0] if open_ else max(range(3), key=lambda axis: sizes[axis])
    side = math.prod(size for other, size in enumerate(sizes) if other != axis)
    if not 0 < side <= LARGEST_SIDE or (not open_ and side * sizes[axis] <= SMALL):
        return None, 0
    return axis, max(8, SMALL // side // 8 * 8)


def _at_least_1(size: Any) -> Any:
    """A leading dimension: the library refuses 0, also for matrices without elements."""
    return size if isinstance(size, int) else tirx.Max(idx(size), idx(1))


def _moved(operand: Operand, count: Any, stride: Any) -> Operand:
    """A matrix from one of its rows or columns on."""
    buffer, offset = operand
    return buffer, tirx.Add(idx(offset), tirx.Mul(idx(count), idx(stride)))


def _gemm(b: Block, sizes: tuple, a: tuple, x: tuple, c: tuple, alpha: float, beta: Any) -> None:
    """One call. Matrices are (operand, leading dimension, whether stored transposed); the result is never transposed."""
    dtype = _base(c[0][0])
    (left, lda, trans_a), (right, ldx, trans_x), (out, ldc) = a, x, c
    _call(
        b,
        "gemm",
        dtype,
        *(_int32(v) for v in (_ROW_MAJOR, _TRANS if trans_a else _NO_TRANS, _TRANS if trans_x else _NO_TRANS, *sizes)),
        const(alpha, dtype),
        pointer(*left),
        _int32(_at_least_1(lda)),
        pointer(*right),
        _int32(_at_least_1(ldx)),
        const(beta, dtype) if isinstance(beta, float) else beta,
        pointer(*out),
        _int32(_at_least_1(ldc)),
    )


def syrk(b: Block, n: Any, k: Any, a: Operand, c: Operand, *, trans: bool = False, lda: Any = None) -> None:
    """C = A @ A.T for A stored n x k, or A.T @ A for A stored k x n if `trans`: the half on and below the diagonal, and its mirror.

    Args:
        b: where to emit.
        n: rows and columns of C.
        k: the contracted length.
        a: (buffer, element offset) of A.
        c: (buffer, element offset) of C.
        trans: A is stored transposed.
        lda: leading dimension of A as stored; None if dense.
    """
    dtype = _base(c[0])
    _call(
        b,
        "syrk",
        dtype,
        *(_int32(v) for v in (_ROW_MAJOR, _LOWER, _TRANS if trans else _NO_TRANS, n, k)),
        const(1.0, dtype),
        pointer(*a),
        _int32(_at_least_1((n if trans else k) if lda is None else lda)),
        const(0.0, dtype),
        pointer(*c),
        _int32(_at_least_1(n)),
    )
    size = idx(n)

    def place(row: Any, column: Any) -> Any:
        return tirx.Add(idx(c[1]), tirx.Add(tirx.Mul(row, size), column))

    # Block by block: a column of the result is as many cache lines as it has elements.
    with b.loop(tirx.Div(tirx.Add(size, idx(MIRROR - 1)), idx(MIRROR))) as across:
        top = b.let(tirx.Mul(across, idx(MIRROR)))
        end = b.let(tirx.Min(size, tirx.Add(top, idx(MIRROR))))
        with b.loop(tirx.Add(across, idx(1))) as along:
            left = b.let(tirx.Mul(along, idx(MIRROR)))
            with b.loop(tirx.Sub(end, top)) as i:
                row = b.let(tirx.Add(top, i))
                width = b.let(tirx.Min(idx(MIRROR), tirx.Sub(row, left)))
                with b.loop(width) as j:
                    column = b.let(tirx.Add(left, j))
                    b.store(c[0], load(c[0], place(row, column)), place(column, row))


def gemv(b: Block, m: Any, n: Any, a: Operand, x: Operand, y: Operand, *, trans: bool = False, lda: Any = None) -> None:
    """y = A @ x for A stored m x n, or A.T @ x if `trans`.

    Args:
        b: where to emit.
        m: rows of A as stored.
        n: columns of A as stored.
        a: (buffer, element offset) of A.
        x: (buffer, element offset) of the vector of n (m if `trans`).
        y: (buffer, element offset) of the result of m (n if `trans`).
        trans: multiply by the transpose.
        lda: leading dimension of A; None if dense.
    """
    dtype = _base(y[0])
    inner, outer = (m, n) if trans else (n, m)

    def call() -> None:
        _call(
            b,
            "gemv",
            dtype,
            *(_int32(v) for v in (_ROW_MAJOR, _TRANS if trans else _NO_TRANS, m, n)),
            const(1.0, dtype),
            pointer(*a),
            _int32(_at_least_1(n if lda is None else lda)),
            pointer(*x),
            _int32(1),
            const(0.0, dtype),
            pointer(*y),
            _int32(1),
        )

    if isinstance(inner, int):
        call()
        return
    with b.when(tirx.GT(idx(inner), idx(0))):
        call()
    with b.otherwise(), b.loop(idx(outer)) as i:  # of a vector without elements the library writes no result
        b.store(y[0], const(0.0, dtype), tirx.Add(idx(y[1]), i))
