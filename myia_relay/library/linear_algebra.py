"""NumPy's linear algebra: programs around the factorisations of LAPACK, which do what NumPy does before and after.

Matrices are in stacks of any number of axes; the factorisations get them along one. What LAPACK cannot do raises LinAlgError,
as NumPy does. Derivatives are those of the factorisations (`prims/ops/matrices`); they are by what is read, which is one
triangle of a symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .kernels import (
    cholesky_factor,
    constant,
    determinant,
    eigen,
    eigenvalues,
    has_rows,
    lu,
    lu_slogdet,
    lu_solve,
    orthogonal,
    pseudo_inverse,
    singular,
    singular_values,
)
from .refusals import misfit, unsupported

EighResult = type(np.linalg.eigh(np.ones((1, 1))))
SVDResult = type(np.linalg.svd(np.ones((1, 1))))
QRResult = type(np.linalg.qr(np.ones((1, 1))))
SlogdetResult = type(np.linalg.slogdet(np.ones((1, 1))))


def matrix_power(a, n):
    """np.linalg.matrix_power: repeated squaring, of the inverse for a negative exponent."""
    a = np.asarray(a)
    _require_square(a)
    if isinstance(n, float):
        unsupported("np.linalg.matrix_power: exponent must be an integer")
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return np.broadcast_to(np.eye(a.shape[a.ndim - 1]).astype(a.dtype), a.shape)
    while n % 2 == 0:
        a = a @ a
        n = n // 2
    out = a
    n = n // 2
    while n > 0:
        a = a @ a
        if n % 2 == 1:
            out = out @ a
        n = n // 2
    return out


def multi_dot(arrays):
    """np.linalg.multi_dot, from left to right."""
    if len(arrays) < 2:
        misfit("np.linalg.multi_dot: expecting at least two arrays")
    out, *rest = arrays
    for matrix in rest:
        if matrix.ndim > 2:
            misfit("np.linalg.multi_dot takes matrices, and vectors at its ends")
        out = out @ matrix
    return out


def _require_square(a):
    if a.ndim < 2:
        misfit("an array with at least two axes is expected: a matrix, or a stack of them")
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def _floats(a):
    """An array as float32 or float64: as float32 where it is that.

    Raises:
        TypeError: it is of half precision, which NumPy refuses here.
    """
    if a.dtype == np.float16:
        unsupported("array type float16 is unsupported in linalg; convert it with .astype(np.float32)")
    return a if a.dtype == np.float32 else a.astype(np.float64)


def _square(a):
    """A matrix or a stack of them, square, as floats."""
    a = np.asarray(a)
    _require_square(a)
    return _floats(a)


def _matrices(a):
    """A matrix or a stack of them as floats."""
    a = np.asarray(a)
    if a.ndim < 2:
        misfit("an array with at least two axes is expected: a matrix, or a stack of them")
    return _floats(a)


def _flat(a):
    """The matrices of a stack along one axis."""
    count = 1
    for size in a.shape[:-2]:
        count = count * size
    return np.reshape(a, (count, a.shape[-2], a.shape[-1]))


def _turned(a):
    return np.swapaxes(a, -1, -2)


def _require_converged(info, what):
    """Refuse what LAPACK did not finish.

    Raises:
        LinAlgError: it did not.
    """
    if np.any(info != 0):
        raise np.linalg.LinAlgError(what)


# Systems of equations.


def slogdet(a):
    """np.linalg.slogdet of a matrix or of each of a stack; sign and logarithm. No derivative where a matrix is singular."""
    a = _square(a)
    flat = _flat(a)
    factors, _ = lu(flat)
    sign, log = lu_slogdet(flat, factors)
    return SlogdetResult(np.reshape(sign, a.shape[:-2])[()], np.reshape(log, a.shape[:-2])[()])


MINORS = 6
"""Rows up to which cofactors are determinants of minors: exact for every rank, to any order of derivative."""


def det(a):
    """np.linalg.det of a matrix or of each of a stack; its derivative is the matrix of cofactors.

    In the second derivative by a singular matrix of more than six rows, what vectors of its singular value 0 tell is NaN.
    """
    a = _square(a)
    sign, log = slogdet(a)
    value = sign * np.exp(log)
    flat = _flat(a)
    return np.reshape(determinant(flat, np.reshape(constant(value), (flat.shape[0],)), _cofactors(flat)), a.shape[:-2])[
        ()
    ]


def _cofactors(a):
    """The derivatives of the determinants of a stack of matrices by their entries."""
    n = a.shape[-1]
    if has_rows(a, 1):
        return np.ones_like(a)
    if has_rows(a, 2):
        return a[:, ::-1, ::-1] * np.array([[1, -1], [-1, 1]], a.dtype)
    if has_rows(a, MINORS):
        kept = np.array([[i for i in range(n) if i != left_out] for left_out in range(n)])
        signs = np.array([[(-1) ** (i + j) for j in range(n)] for i in range(n)], a.dtype)
        minors = a[:, kept[:, None, :, None], kept[None, :, None, :]]
        return det(minors) * signs
    factors, diagonal = lu(a)
    sign, log = lu_slogdet(a, factors)
    if np.any(diagonal == 0):
        _, u, s, vh = singular(a, False)
        return _others(s)[..., None, :] * u * _turns(u, vh)[:, None, None] @ vh
    unit = np.broadcast_to(np.eye(n, dtype=a.dtype), a.shape)
    return (sign * np.exp(log))[:, None, None] * _turned(lu_solve(a, factors, unit))


def _turns(u, vh):
    """The signs of the determinants of products of orthogonal matrices."""
    sides = [lu_slogdet(q, lu(q)[0])[0] for q in (u, vh)]
    return constant(sides[0] * sides[1])


def _others(s):
    """The products of all but one of the entries of each row."""
    left_out = np.eye(s.shape[1]).astype(s.dtype)
    return np.prod(left_out + (1 - left_out) * s[:, None, :], axis=2)


def _solved(a, b):
    """The solutions for equally many matrices and right-hand sides.

    Raises:
        LinAlgError: a matrix is singular.
    """
    factors, diagonal = lu(a)
    if np.any(diagonal == 0):
        raise np.linalg.LinAlgError("Singular matrix")
    return lu_solve(a, factors, b)


def solve(a, b):
    """np.linalg.solve: of a matrix and a vector or matrix, or of each pair of two stacks.

    Raises:
        ValueError: the right-hand side has another number of rows than the matrix.
        TypeError: it is a number, or the matrix is not square.
        LinAlgError: a matrix is singular.
    """
    a, b = _square(a), _floats(np.asarray(b))
    if b.ndim == 0:
        misfit("np.linalg.solve: the right-hand side is a vector or a matrix")
    if b.shape[0 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ValueError("solve: the right-hand side has as many rows as the matrix")
    if a.dtype != b.dtype:
        a, b = a.astype(np.float64), b.astype(np.float64)
    right = b[:, None] if b.ndim == 1 else b
    n, m = right.shape[-2], right.shape[-1]
    if a.ndim == 2 and right.ndim == 2:
        out = np.reshape(_solved(a[None], right[None]), (n, m))
        return out[:, 0] if b.ndim == 1 else out
    lead = (np.zeros(a.shape[:-2]) + np.zeros(right.shape[:-2])).shape
    left, right = np.broadcast_to(a, (*lead, n, n)), np.broadcast_to(right, (*lead, n, m))
    out = _solved(_flat(left), _flat(right))
    return np.reshape(out, (*lead, n)) if b.ndim == 1 else np.reshape(out, (*lead, n, m))


def inv(a):
    """np.linalg.inv of a matrix or of each of a stack."""
    a = _square(a)
    flat = _flat(a)
    return np.reshape(_solved(flat, np.zeros_like(flat) + np.eye(a.shape[-1]).astype(a.dtype)), a.shape)


def cholesky(a, *, upper=False):
    """np.linalg.cholesky of a matrix or of each of a stack: the lower factor, from the lower triangle.

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    a = _square(a)
    info, factor = cholesky_factor(_flat(_turned(a) if upper else a))
    if np.any(info != 0):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    out = np.reshape(factor, a.shape)
    return _turned(out) if upper else out


# Eigenvalues and singular values.


def _is_lower(UPLO):
    """Whether the lower triangle is meant.

    Raises:
        ValueError: it is neither.
    """
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return UPLO in ("L", "l")


def eigh(a, UPLO="L"):
    """np.linalg.eigh: eigenvalues, ascending, and eigenvectors of symmetric matrices, of which one triangle is read.

    The derivative is by that triangle. Vectors of equal eigenvalues are any basis: functions of the matrix that are made with them
    have their derivative (`ad.eigenvectors`), and others get NaN.
    """
    a = _square(a)
    info, values, vectors = eigen(_flat(a), _is_lower(UPLO))
    _require_converged(info, "Eigenvalues did not converge")
    return EighResult(np.reshape(values, a.shape[:-1]), np.reshape(vectors, a.shape))


def eigvalsh(a, UPLO="L"):
    """np.linalg.eigvalsh."""
    a = _square(a)
    info, values = eigenvalues(_flat(a), _is_lower(UPLO))
    _require_converged(info, "Eigenvalues did not converge")
    return np.reshape(values, a.shape[:-1])


def _svdvals(a):
    """The singular values of a matrix or a stack of them, descending."""
    a = _matrices(a)
    info, s = singular_values(_flat(a))
    _require_converged(info, "SVD did not converge")
    return np.reshape(s, (*a.shape[:-2], s.shape[-1]))


def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """np.linalg.svd. Equal singular values are as equal eigenvalues in `eigh`; by vectors of singular value 0, and by those that
    full_matrices=True adds, there is no derivative.
    """
    if hermitian:
        unsupported("np.linalg.svd(hermitian=True) is not part of compiled code; leave it out, or use np.linalg.eigh")
    if not compute_uv:
        return _svdvals(a)
    a = _matrices(a)
    info, u, s, vh = singular(_flat(a), full_matrices)
    _require_converged(info, "SVD did not converge")
    lead = a.shape[:-2]
    u, s = np.reshape(u, (*lead, u.shape[-2], u.shape[-1])), np.reshape(s, (*lead, s.shape[-1]))
    return SVDResult(u, s, np.reshape(vh, (*lead, vh.shape[-2], vh.shape[-1])))


def qr(a, mode="reduced"):
    """np.linalg.qr. No derivative where the first columns depend on each other, or by the columns that "complete" adds."""
    if mode not in ("reduced", "complete", "r"):
        unsupported("np.linalg.qr: the modes of compiled code are 'reduced', 'complete' and 'r'")
    a = _matrices(a)
    q, r = orthogonal(_flat(a), mode == "complete")
    lead = a.shape[:-2]
    r = np.reshape(r, (*lead, r.shape[-2], r.shape[-1]))
    if mode == "r":
        return r
    return QRResult(np.reshape(q, (*lead, q.shape[-2], q.shape[-1])), r)


def _eps(s):
    """The distance from 1 to the next number."""
    return 1.1920928955078125e-07 if s.dtype == np.float32 else 2.220446049250313e-16


def _above(s, factor):
    """Which singular values are above a part of the greatest."""
    if s.shape[-1] == 0:
        return s > 0
    return s > factor * np.max(s, axis=-1, keepdims=True)


def pinv(a, rcond=None, hermitian=False, *, rtol=None):
    """np.linalg.pinv. The derivative holds where the rank does not change.

    Raises:
        ValueError: both `rcond` and `rtol` are given.
    """
    if hermitian:
        unsupported("np.linalg.pinv(hermitian=True) is not part of compiled code; leave it out")
    if rcond is not None and rtol is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    a = _matrices(a)
    limit = 1e-15 if rcond is None and rtol is None else rcond if rtol is None else rtol
    flat = _flat(a)
    info, u, s, vh = singular(flat, False)
    _require_converged(info, "SVD did not converge")
    large = _above(np.reshape(s, (*a.shape[:-2], s.shape[-1])), np.asarray(limit)[..., None])
    large = np.reshape(large, s.shape)
    inverse = np.where(large, 1 / np.where(large, s, 1), 0).astype(s.dtype)
    p = _turned(vh) @ (inverse[..., None] * _turned(u))
    return np.reshape(pseudo_inverse(flat, p), (*a.shape[:-2], a.shape[-1], a.shape[-2]))


def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """np.linalg.matrix_rank: how many singular values count.

    Raises:
        ValueError: both `tol` and `rtol` are given.
    """
    if hermitian:
        unsupported("np.linalg.matrix_rank(hermitian=True) is not part of compiled code; leave it out")
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A = np.asarray(A)
    if A.ndim < 2:
        return int(np.any(A != 0))
    s = _svdvals(A)
    if tol is not None:
        return np.sum(s > np.asarray(tol)[..., None], axis=-1)
    if rtol is not None:
        return np.sum(_above(s, np.asarray(rtol)[..., None]), axis=-1)
    return np.sum(_above(s, max(A.shape[-2], A.shape[-1]) * _eps(s)), axis=-1)


def lstsq(a, b, rcond=None):
    """np.linalg.lstsq: by the singular values. The derivative of the solution holds where the rank does not change.

    Raises:
        LinAlgError: the sizes do not fit.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        misfit("np.linalg.lstsq takes a matrix, and a vector or a matrix")
    a, right = _floats(a), _floats(b[:, None] if b.ndim == 1 else b)
    if a.dtype != right.dtype:
        a, right = a.astype(np.float64), right.astype(np.float64)
    m, n = a.shape
    if right.shape[0] != m:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    limit = rcond
    if rcond is None:
        limit = _eps(a) * max(m, n)
    elif rcond < 0:
        limit = _eps(a)
    x = pinv(a, limit) @ right
    s = _svdvals(a)
    rank = np.int32(np.sum(_above(s, limit)))
    away = right - a @ x
    residuals = np.sum(away * away, axis=0)
    if m <= n:
        residuals = residuals[:0]
    else:
        residuals = residuals[: right.shape[1] if rank == n else 0]
    return (x[:, 0] if b.ndim == 1 else x), residuals, rank, s


def cond(x, p=None):
    """np.linalg.cond by singular values (p None, 2 or -2), or by a norm and the inverse."""
    x = _matrices(x)
    if p is None or p == 2 or p == -2:
        s = _svdvals(x)
        return (s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1])[()]
    _require_square(x)
    return np.linalg.norm(x, p, (-2, -1)) * np.linalg.norm(inv(x), p, (-2, -1))


def svdvals(x):
    """np.linalg.svdvals."""
    return _svdvals(x)


SOURCES: dict[Callable, Callable] = {
    getattr(np.linalg, function.__name__): function
    for function in (
        *(matrix_power, multi_dot, slogdet, det, solve, inv, cholesky, eigh, eigvalsh, svd, qr),
        *(pinv, matrix_rank, lstsq, cond),
    )
}
if hasattr(np.linalg, "svdvals"):
    SOURCES[np.linalg.svdvals] = svdvals
