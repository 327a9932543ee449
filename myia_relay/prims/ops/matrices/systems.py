"""Systems of equations, determinants, Cholesky's factor and pseudo-inverses, by LAPACK. All take stacks: arrays of three axes.

Whether a matrix is singular, or has no factor, is checked by those who call (`library.linear_algebra`); derived code does not
raise.

A system is solved with factors that are computed before, and differentiated by the matrix itself. So factors have no
derivative, and are shared by the solution and its adjoint:

    x = lu_solve(a, lu(a), b)    =>    db = lu_solve(a, lu(a), dx, transpose=True),  da = -db x^T

Sources of the derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode AD" (2008); I. Murray,
"Differentiation of the Cholesky decomposition" (2016); G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
nonlinear least squares problems whose variables separate" (1973).
"""

from __future__ import annotations

import numpy as np

from ....abstract.types import Array
from ....ir.axes import Axes
from ....ir.prim import primitive
from ...rules import lapack
from ...rules.broadcast import reduce_sum, reshape, shape_of, zeros_like
from ...rules.matrices import ONE, diagonal, halved, mm, only, packed, parts, read, read_adjoint, require_stacks, turned
from ..elementwise import eq, ge
from ..shape import concatenate, slice_


@primitive("opaque", differentiable=False, axes=ONE)
def lu(a):
    """The factors of `a` with rows exchanged (getrf), of each matrix.

    Args:
        a: (b, n, n).

    Returns:
        (b, n + 1, n): the triangles, without the ones of the lower one's diagonal, and in the last row which row, counted from 1,
        was exchanged with each. A zero on the diagonal says that the matrix is singular.
    """
    n = np.shape(a)[1]

    def one(out, a):
        out[:n] = a
        pivots = np.zeros(n, np.int32)
        if n:
            lapack.call("getrf", a.dtype, n, n, out, n, pivots)
        out[n] = pivots

    return lapack.each([a], (n + 1, n), one)


@lu.infer
def _(a):
    dtype = require_stacks("lu", a)
    b, n, _ = a.shape
    return Array(dtype, (b, n + 1, n))


@primitive("opaque", axes=Axes("b..,b..,b..->b.."))
def lu_solve(a, factors, b, *, transpose=False):
    """The solution X of A X = B, or of A^T X = B.

    Args:
        a: (b, n, n).
        factors: `lu(a)`; the derivative is by `a`.
        b: (b, n, k).
        transpose: whether A is transposed.

    Returns:
        (b, n, k); NaN and infinities where A is singular.
    """

    def one(out, a, b):
        n, k = b.shape
        out[...] = b
        if not n or not k:
            return
        factors, pivots = a.copy(), np.zeros(n, np.int32)
        lapack.call("getrf", a.dtype, n, n, factors, n, pivots)
        lapack.call("getrs", a.dtype, "T" if transpose else "N", n, k, factors, n, pivots, out, k)

    return lapack.each([a, b], np.shape(b)[1:], one)


@lu_solve.infer
def _(a, factors, b, *, transpose=False):
    require_stacks("lu_solve", a, b)
    return b


@lu_solve.vjp
def _(a, factors, b, out, dout, *, transpose=False):
    db = lu_solve(a, factors, dout, transpose=not transpose)
    da = mm(out, db, tb=True) if transpose else mm(db, out, tb=True)
    return -da, None, db


@lu_solve.jvp
def _(a, factors, b, out, tangents, *, transpose=False):
    da, _, db = tangents
    if da is None and db is None:
        return None
    right = db
    if da is not None:
        moved = mm(da, out, ta=transpose)
        right = -moved if db is None else db - moved
    return lu_solve(a, factors, right, transpose=transpose)


@primitive("opaque", axes=Axes("b..,b..->b."))
def lu_slogdet(a, factors):
    """The sign of the determinant, and the logarithm of its absolute value.

    Args:
        a: (b, n, n).
        factors: `lu(a)`; the derivative is by `a`, and NaN or infinite where it is singular.

    Returns:
        (b, 2); 0 and -infinity where A is singular.
    """
    a = np.asarray(a)
    out = np.empty((a.shape[0], 2), a.dtype)
    for k, m in enumerate(lu.reference(a)):
        n = m.shape[1]
        diagonal = np.diagonal(m[:n])
        swaps = np.count_nonzero(m[n] != np.arange(1, n + 1))
        sign, total = -1.0 if swaps % 2 else 1.0, a.dtype.type(0)
        for d in diagonal:
            sign = -sign if d < 0 else sign
            total = total + np.log(np.abs(d))
        out[k] = (0.0, -np.inf) if np.any(diagonal == 0) else (sign, total)
    return out


@lu_slogdet.infer
def _(a, factors):
    return Array(require_stacks("lu_slogdet", a), (a.shape[0], 2))


@lu_slogdet.vjp
def _(a, factors, out, dout):
    b, n, _ = shape_of(a)
    d = slice_(dout, starts=(0, 1), sizes=(b, 1), steps=(1, 1))
    ones = reshape(d, shape=(b, 1, 1)) + zeros_like(a)
    return lu_solve(a, factors, only(ones, eq), transpose=True), None


@lu_slogdet.jvp
def _(a, factors, out, tangents):
    if tangents[0] is None:
        return None
    moved = reduce_sum(diagonal(lu_solve(a, factors, tangents[0])), axes=(1,))
    moved = reshape(moved, shape=(shape_of(a)[0], 1))
    return concatenate(zeros_like(moved), moved, axis=1)


@primitive("opaque", axes=Axes("b..,b..,b..->b.."))
def determinant(a, d, c):
    """`d`, the determinants of `a`, with their derivative by `a`, the cofactors `c`.

    Args:
        a: (b, n, n).
        d: (b, 1, 1).
        c: (b, n, n).
    """
    return np.array(d)


@determinant.infer
def _(a, d, c):
    require_stacks("determinant", a, d, c)
    return d


@determinant.vjp
def _(a, d, c, out, dout):
    return dout * c, None, None


@determinant.jvp
def _(a, d, c, out, tangents):
    if tangents[0] is None:
        return None
    b, _, _ = shape_of(a)
    return reshape(reduce_sum(c * tangents[0], axes=(1, 2)), shape=(b, 1, 1))


@primitive("opaque", axes=Axes("b..,b..->b.."))
def triangular_solve(a, b, *, lower, transpose=False):
    """The solution X of A X = B, or of A^T X = B, for triangles A; what is beside the triangle is not read.

    Args:
        a: (b, n, n).
        b: (b, n, k).
        lower: whether A is a lower triangle.
        transpose: whether it is transposed.

    Returns:
        (b, n, k).
    """

    def one(out, a, b):
        out[...] = b
        lapack.triangular(a, out, lower, transpose, False)

    return lapack.each([a, b], np.shape(b)[1:], one)


@triangular_solve.infer
def _(a, b, *, lower, transpose=False):
    require_stacks("triangular_solve", a, b)
    return b


@triangular_solve.vjp
def _(a, b, out, dout, *, lower, transpose=False):
    db = triangular_solve(a, dout, lower=lower, transpose=not transpose)
    da = -(mm(out, db, tb=True) if transpose else mm(db, out, tb=True))
    return (only(da, ge) if lower else turned(only(turned(da), ge))), db


@triangular_solve.jvp
def _(a, b, out, tangents, *, lower, transpose=False):
    da, right = tangents
    if da is not None:
        da = only(da, ge) if lower else turned(only(turned(da), ge))
        moved = mm(da, out, ta=transpose)
        right = -moved if right is None else right - moved
    return triangular_solve(a, right, lower=lower, transpose=transpose)


@primitive("opaque", axes=Axes("b..->b."))
def cholesky(a):
    """The lower factor L of A = L L^T (potrf); only the lower triangle of A is read, and has a derivative.

    Args:
        a: (b, n, n).

    Returns:
        (b, 1 + n * n): `info`, L.
    """
    n = np.shape(a)[1]

    def one(out, a):
        factor = np.tril(a)
        out[0] = lapack.call("potrf", a.dtype, "L", n, factor, n) if n else 0
        out[1:] = np.tril(factor).ravel() if not out[0] else np.nan

    return lapack.each([a], (1 + n * n,), one)


@cholesky.infer
def _(a):
    dtype = require_stacks("cholesky", a)
    b, n, _ = a.shape
    return Array(dtype, (b, 1 + n * n))


@cholesky.vjp
def _(a, out, dout):
    n = shape_of(a)[1]
    (factor,), (dfactor,) = parts(out, (n, n)), parts(dout, (n, n))
    inner = halved(mm(factor, dfactor, ta=True))
    left = triangular_solve(factor, inner, lower=True, transpose=True)
    s = triangular_solve(factor, turned(left), lower=True, transpose=True)
    return (read_adjoint(s, True),)


@cholesky.jvp
def _(a, out, tangents):
    n = shape_of(a)[1]
    (factor,) = parts(out, (n, n))
    half = triangular_solve(factor, read(tangents[0], True), lower=True)
    inner = triangular_solve(factor, turned(half), lower=True)
    return packed(out, mm(factor, halved(inner)))


@primitive("opaque", axes=Axes("b..,b..->b.."))
def pseudo_inverse(a, p):
    """`p`, the pseudo-inverse of `a`, with its derivative by `a`, which holds where the rank does not change.

    Args:
        a: (b, m, n).
        p: (b, n, m).
    """
    return np.array(p)


@pseudo_inverse.infer
def _(a, p):
    require_stacks("pseudo_inverse", a, p)
    return p


@pseudo_inverse.vjp
def _(a, p, out, dout):
    d = turned(dout)
    da = mm(mm(_complement(a, out, d), out), out, tb=True) + mm(mm(out, out, ta=True), _right_complement(a, out, d))
    return da - mm(mm(out, dout, ta=True), out, tb=True), None


def _complement(a, p, x):
    """(1 - A P) x."""
    return x - mm(a, mm(p, x))


def _right_complement(a, p, x):
    """x (1 - P A)."""
    return x - mm(mm(x, p), a)


@pseudo_inverse.jvp
def _(a, p, out, tangents):
    if tangents[0] is None:
        return None
    d = turned(tangents[0])
    right = _right_complement(out, a, mm(mm(out, out, tb=True), d))
    left = mm(_complement(out, a, d), mm(out, out, ta=True))
    return right + left - mm(mm(out, tangents[0]), out)


__all__ = ["cholesky", "determinant", "lu", "lu_slogdet", "lu_solve", "pseudo_inverse", "triangular_solve"]
