"""Eigenvalues, singular values and orthogonal factors of matrices, by LAPACK. All take stacks: arrays of three axes.

Several results come in one array that begins with LAPACK's `info`; if that is not 0, all else is NaN. `rules.matrices.parts`
takes it apart. Those who call raise (`library.linear_algebra`); derived code does not.

Sources of the derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode AD" (2008) for `eigh`;
J. Townsend, "Differentiating the singular value decomposition" (2016); S. Walter and L. Lehmann, "Algorithmic differentiation
of linear algebra functions" (2010) and H.-J. Liao et al., "Differentiable programming tensor networks" (2019) for `qr`.
"""

from __future__ import annotations

import numpy as np

from ....abstract.types import Array
from ....ir.axes import Axes
from ....ir.prim import REGISTRY, primitive
from ....utils.errors import GradError
from ...rules import lapack
from ...rules.broadcast import shape_of, zeros_like
from ...rules.matrices import (
    column,
    columns_used,
    cotangents,
    diagonal,
    mm,
    only,
    packed,
    parts,
    read,
    read_adjoint,
    reciprocal,
    require_stacks,
    rounding,
    row,
    turned,
)
from ...rules.relations import const_like, same_size
from ..elementwise import abs_, eq, ge, gt, le, ne
from ..reduction import reduce_max
from ..shape import concatenate, slice_
from .systems import triangular_solve


@primitive("opaque", axes=Axes("b..->b."))
def eigh(a, *, lower=True, vectors=True):
    """The eigenvalues, ascending, and eigenvectors of symmetric matrices (syevd); one triangle is read, and has a derivative.

    Eigenvectors of an eigenvalue that occurs twice are any basis. Their derivative is NaN; functions of the matrix that are made
    with them are found before (`ad.eigenvectors`), and have theirs.

    Args:
        a: (b, n, n).
        lower: which triangle is read.
        vectors: whether eigenvectors are wanted.

    Returns:
        (b, 1 + n + n * n): `info`, the eigenvalues, and the eigenvectors as columns; or (b, 1 + n) without them.
    """
    n = np.shape(a)[1]

    def one(out, a):
        work, values = a.copy(), np.empty(n, a.dtype)
        job, triangle = "V" if vectors else "N", "L" if lower else "U"
        out[0] = lapack.call("syevd", a.dtype, job, triangle, n, work, n, values) if n else 0
        out[1 : n + 1] = values
        if vectors:
            out[n + 1 :] = work.ravel()
        if out[0]:
            out[1:] = np.nan

    return lapack.each([a], (1 + n + n * n if vectors else 1 + n,), one)


@eigh.infer
def _(a, *, lower=True, vectors=True):
    dtype = require_stacks("eigh", a)
    b, n, _ = a.shape
    return Array(dtype, (b, 1 + n + n * n if vectors else 1 + n))


def _gaps(values, used=None):
    """1 / (w_j - w_i): 0 on the diagonal, NaN where two are equal but for rounding.

    Args:
        values: (b, n).
        used: from which column to which vectors are used; None for all. Where neither of two is, it is 0.
    """
    n = shape_of(values)[1]
    size = reduce_max(abs_(values), axes=(1,), keepdims=True) if n != 0 else values
    gap = row(values) - column(values)
    tied = le(abs_(gap), column(size) * rounding(values)) if n != 0 else eq(gap, const_like(gap, 0))
    factor = REGISTRY["where"](tied, const_like(gap, np.nan), reciprocal(gap))
    if used is not None and isinstance(n, int):
        mine = np.zeros(n, bool)
        mine[slice(*used)] = True
        factor = _where_used(mine, factor)
    return only(factor, ne)


def _where_used(mine, factor):
    """The elements in whose row or column a vector is used; zeros elsewhere."""
    either = np.logical_or(mine[:, None], mine[None, :])
    builder = getattr(factor, "builder", None)
    if builder is not None:
        either = builder.var(builder.constant(either))
    return REGISTRY["where"](either, factor, const_like(factor, 0))


@eigh.vjp
def _(a, out, dout, *, lower=True, vectors=True):
    n = shape_of(a)[1]
    if not vectors:
        _, v = parts(eigh(a, lower=lower), (n,), (n, n))
        (dw,) = cotangents(dout, (n,))
        return (None if dw is None else read_adjoint(mm(v * row(dw), v, tb=True), lower),)
    w, v = parts(out, (n,), (n, n))
    dw, dv = cotangents(dout, (n,), (n, n))
    # Apart: the first is a function of the matrix, if `dw` is one of the eigenvalues.
    terms = [] if dw is None else [mm(v * row(dw), v, tb=True)]
    if dv is not None:
        terms.append(mm(mm(v, _gaps(w, columns_used(dv)) * mm(v, dv, ta=True)), v, tb=True))
    return (read_adjoint(terms[0] + terms[1] if len(terms) == 2 else terms[0], lower),) if terms else (None,)


@eigh.jvp
def _(a, out, tangents, *, lower=True, vectors=True):
    n = shape_of(a)[1]
    full = out if vectors else eigh(a, lower=lower)
    w, v = parts(full, (n,), (n, n))
    moved = mm(v, mm(read(tangents[0], lower), v), ta=True)
    dw = diagonal(moved)
    return packed(out, dw, mm(v, _gaps(w) * moved)) if vectors else packed(out, dw)


@primitive("opaque", axes=Axes("b..->b."))
def svd(a, *, k, full=False, vectors=True):
    """The singular values, descending, and singular vectors (gesdd).

    The derivative by vectors of equal singular values, or of 0, is NaN, as in `eigh`. With `full` the vectors beyond k are any
    basis, and there is none.

    Args:
        a: (b, m, n).
        k: the lesser of m and n.
        full: whether there are as many vectors as rows and columns, and not k.
        vectors: whether they are wanted.

    Returns:
        (b, 1 + k + m * k + k * n): `info`, the singular values, U, V^T; with `full` (b, 1 + k + m * m + n * n); or (b, 1 + k).
    """
    m, n = np.shape(a)[1:]
    left, right = (m, n) if full else (k, k)

    def one(out, a):
        work, s = a.copy(), np.empty(k, a.dtype)
        u, v = np.empty((m, left), a.dtype), np.empty((right, n), a.dtype)
        job = "N" if not vectors else "A" if full else "S"
        if k:
            out[0] = lapack.call("gesdd", a.dtype, job, m, n, work, n, s, u, max(left, 1), v, max(n, 1))
        else:
            out[0], u[...], v[...] = 0, np.eye(m, left), np.eye(right, n)
        out[1 : k + 1] = s
        if vectors:
            out[k + 1 : k + 1 + m * left], out[k + 1 + m * left :] = u.ravel(), v.ravel()
        if out[0]:
            out[1:] = np.nan

    return lapack.each([a], (1 + k + m * left + right * n if vectors else 1 + k,), one)


@svd.infer
def _(a, *, k, full=False, vectors=True):
    dtype = require_stacks("svd", a)
    b, m, n = a.shape
    size = 0 if not vectors else m * m + n * n if full else m * k + k * n
    return Array(dtype, (b, 1 + k + size))


def _refuse_full(a, full: bool, k) -> None:
    """Refuse the derivative by vectors that are any basis.

    Raises:
        GradError: there are such.
    """
    m, n = shape_of(a)[1:]
    if full and not (same_size(m, k) and same_size(n, k)):
        raise GradError(
            "np.linalg.svd has no derivative where full_matrices=True adds vectors, which are any basis; write full_matrices=False"
        )


def _squared_gaps(s):
    """1 / (s_j**2 - s_i**2): 0 on the diagonal, NaN where two are equal but for rounding."""
    return _gaps(s) * reciprocal(row(s) + column(s))


def _inverse(s):
    """1 / s; NaN where it is 0 but for rounding."""
    k = shape_of(s)[1]
    if k == 0:
        return s
    size = reduce_max(s, axes=(1,), keepdims=True)
    none = le(s, size * rounding(s))
    return REGISTRY["where"](none, const_like(s, np.nan), reciprocal(s))


def _beside(u, x):
    """What of columns `x` is orthogonal to the columns of `u`."""
    return x - mm(u, mm(u, x, ta=True))


@svd.vjp
def _(a, out, dout, *, k, full=False, vectors=True):
    m, n = shape_of(a)[1:]
    if not vectors:
        _, u, vh = parts(svd(a, k=k), (k,), (m, k), (k, n))
        (ds,) = cotangents(dout, (k,))
        return (None if ds is None else mm(u * row(ds), vh),)
    _refuse_full(a, full, k)
    s, u, vh = parts(out, (k,), (m, k), (k, n))
    ds, du, dvh = cotangents(dout, (k,), (m, k), (k, n))
    terms = [] if ds is None else [mm(u * row(ds), vh)]
    if du is not None or dvh is not None:
        du = zeros_like(u) if du is None else du
        dvh = zeros_like(vh) if dvh is None else dvh
        gaps, inverse = _squared_gaps(s), _inverse(s)
        of_u, of_v = mm(u, du, ta=True), mm(vh, dvh, tb=True)
        core = gaps * (of_u - turned(of_u)) * row(s) + column(s) * (gaps * (of_v - turned(of_v)))
        terms.append(mm(mm(u, core), vh))
        if not same_size(m, k):
            terms.append(mm(_beside(u, du) * row(inverse), vh))
        if not same_size(n, k):
            terms.append(mm(u, column(inverse) * turned(_beside(turned(vh), turned(dvh)))))
    total = None
    for term in terms:
        total = term if total is None else total + term
    return (total,)


@svd.jvp
def _(a, out, tangents, *, k, full=False, vectors=True):
    m, n = shape_of(a)[1:]
    if not vectors:
        _, u, vh = parts(svd(a, k=k), (k,), (m, k), (k, n))
        return packed(out, diagonal(mm(mm(u, tangents[0], ta=True), vh, tb=True)))
    _refuse_full(a, full, k)
    s, u, vh = parts(out, (k,), (m, k), (k, n))
    gaps, inverse = _squared_gaps(s), _inverse(s)
    moved_v = mm(tangents[0], vh, tb=True)
    moved = mm(u, moved_v, ta=True)
    by_row, by_column = moved * row(s), moved * column(s)
    du = mm(u, gaps * (by_row + turned(by_row)))
    dv = mm(vh, gaps * (by_column + turned(by_column)), ta=True)
    if not same_size(m, k):
        du = du + _beside(u, moved_v) * row(inverse)
    if not same_size(n, k):
        dv = dv + _beside(turned(vh), mm(tangents[0], u, ta=True)) * row(inverse)
    return packed(out, diagonal(moved), du, turned(dv))


@primitive("opaque", axes=Axes("b..->b."))
def qr(a, *, k, complete=False):
    """Q with orthonormal columns and an upper triangle R, whose product is A (geqrf, orgqr).

    The derivative is infinite or NaN where the first k columns of A depend on each other.

    Args:
        a: (b, m, n).
        k: the lesser of m and n.
        complete: whether Q is square and R has as many rows as A.

    Returns:
        (b, 1 + m * k + k * n): 0, Q, R; with `complete` (b, 1 + m * m + m * n).
    """
    m, n = np.shape(a)[1:]
    wide = m if complete else k

    def one(out, a):
        r, tau = a.copy(), np.empty(max(k, 1), a.dtype)
        q = np.eye(m, wide, dtype=a.dtype)
        if k:
            lapack.call("geqrf", a.dtype, m, n, r, n, tau)
            q[:, : min(n, wide)] = r[:, : min(n, wide)]
            lapack.call("orgqr", a.dtype, m, wide, k, q, wide, tau)
        out[0] = 0
        out[1 : 1 + m * wide], out[1 + m * wide :] = q.ravel(), np.triu(r)[:wide].ravel()

    return lapack.each([a], (1 + m * wide + wide * n,), one)


@qr.infer
def _(a, *, k, complete=False):
    dtype = require_stacks("qr", a)
    b, m, n = a.shape
    wide = m if complete else k
    return Array(dtype, (b, 1 + m * wide + wide * n))


def _refuse_qr(a, k, complete: bool) -> bool:
    """Whether there are no more columns than rows.

    Raises:
        GradError: there is no derivative.
    """
    m, n = shape_of(a)[1:]
    if complete and not same_size(m, k):
        raise GradError("np.linalg.qr has no derivative where mode='complete' adds columns, which are any basis")
    if not same_size(n, k) and not same_size(m, k):
        raise GradError("np.linalg.qr has no derivative where only a run tells which of two sizes is the lesser")
    return same_size(n, k)


def _qr_cotangent(q, r, dq, dr):
    """The cotangent of a matrix of no more columns than rows."""
    m = mm(r, dr, tb=True) - mm(dq, q, ta=True)
    copied = only(m, ge) + turned(only(m, gt))
    right = dq + mm(q, copied)
    return turned(triangular_solve(r, turned(right), lower=False))


def _columns(x, start, count):
    b, rows, _ = shape_of(x)
    return slice_(x, starts=(0, 0, start), sizes=(b, rows, count), steps=(1, 1, 1))


@qr.vjp
def _(a, out, dout, *, k, complete=False):
    m, n = shape_of(a)[1:]
    tall = _refuse_qr(a, k, complete)
    (q, r), (dq, dr) = parts(out, (m, k), (k, n)), parts(dout, (m, k), (k, n))
    if tall:
        return (_qr_cotangent(q, r, dq, dr),)
    rest, drest = _columns(a, k, n - k), _columns(dr, k, n - k)
    first = _qr_cotangent(q, _columns(r, 0, k), dq + mm(rest, drest, tb=True), _columns(dr, 0, k))
    return (concatenate(first, mm(q, drest), axis=2),)


@qr.jvp
def _(a, out, tangents, *, k, complete=False):
    m, n = shape_of(a)[1:]
    tall = _refuse_qr(a, k, complete)
    q, r = parts(out, (m, k), (k, n))
    da, first = (tangents[0], r) if tall else (_columns(tangents[0], 0, k), _columns(r, 0, k))
    x = turned(triangular_solve(first, turned(da), lower=False, transpose=True))
    qtx = mm(q, x, ta=True)
    skew = only(qtx, gt)
    skew = skew - turned(skew)
    dq = mm(q, skew) + _beside(q, x)
    dr = mm(qtx - skew, first)
    if not tall:
        rest, drest = _columns(r, k, n - k), _columns(tangents[0], k, n - k)
        dr = concatenate(dr, mm(q, drest - mm(dq, rest), ta=True), axis=2)
    return packed(out, dq, dr)


__all__ = ["eigh", "qr", "svd"]
