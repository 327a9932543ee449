"""Factorisations of stacks of matrices, arrays of three axes of float32 or float64; several results are returned apart."""

from __future__ import annotations

from ....abstract.dims import DimLike
from ....ir.build import Builder, Var
from ....library import kernels
from ...ops import elementwise as P
from ...ops.matrices import factorisations as F
from ...ops.matrices import systems as S
from ...ops.shape import slice_
from ...rules.broadcast import reshape
from ...rules.matrices import diagonal, parts
from ...rules.relations import same_size
from ..implementations import implements
from ..promotion import bind_size, size_value, with_size


def lesser(b: Builder, m: DimLike, n: DimLike) -> DimLike:
    """The lesser of two sizes, which a run may have to tell."""
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    return m if same_size(m, n) else bind_size(b, P.minimum(size_value(b, m), size_value(b, n)))


def _of_shape(b: Builder, x: Var, *shape: DimLike) -> Var:
    """`x`, whose sizes are those of a shape; a run tells where they have other names."""
    for axis, size in enumerate(shape):
        x = with_size(b, "np.linalg", x, axis, size)
    return x


def _square(b: Builder, a: Var) -> Var:
    """Square matrices, with one name for both sizes."""
    return _of_shape(b, a, a.shape[0], a.shape[1], a.shape[1])


def _info(x: Var) -> Var:
    """LAPACK's `info`, for each matrix."""
    return reshape(slice_(x, starts=(0, 0), sizes=(x.shape[0], 1), steps=(1, 1)), shape=(x.shape[0],))


@implements(kernels.lu)
def lu(b: Builder, a) -> tuple[Var, Var]:
    """Factors for `lu_solve` and `lu_slogdet`, and the diagonal that has a zero where a matrix is singular."""
    a = _square(b, a)
    factors = S.lu(a)
    count, n, _ = a.shape
    flat = reshape(factors, shape=(count, n * n + n))
    if isinstance(n, int):
        return factors, slice_(flat, starts=(0, 0), sizes=(count, n), steps=(1, n + 1))
    square = slice_(factors, starts=(0, 0, 0), sizes=(count, n, n), steps=(1, 1, 1))
    return factors, diagonal(square)


@implements(kernels.lu_solve)
def lu_solve(b: Builder, a, factors, right) -> Var:
    """The solutions."""
    a, (count, n, _) = _square(b, a), a.shape
    return S.lu_solve(a, _of_shape(b, factors, count, n + 1, n), _of_shape(b, right, count, n, right.shape[2]))


@implements(kernels.lu_slogdet)
def lu_slogdet(b: Builder, a, factors) -> tuple[Var, Var]:
    """Signs of determinants, and logarithms of their absolute values."""
    a, (count, n, _) = _square(b, a), a.shape
    both = S.lu_slogdet(a, _of_shape(b, factors, count, n + 1, n))
    sign, log = (slice_(both, starts=(0, k), sizes=(count, 1), steps=(1, 1)) for k in (0, 1))
    return reshape(sign, shape=(count,)), reshape(log, shape=(count,))


@implements(kernels.cholesky_factor)
def cholesky_factor(b: Builder, a) -> tuple[Var, Var]:
    """What was wrong, and the lower factors."""
    n, out = a.shape[1], S.cholesky(_square(b, a))
    return _info(out), parts(out, (n, n))[0]


@implements(kernels.pseudo_inverse)
def pseudo_inverse(b: Builder, a, p) -> Var:
    """`p` with the derivative of the pseudo-inverse of `a`."""
    return S.pseudo_inverse(a, _of_shape(b, p, a.shape[0], a.shape[2], a.shape[1]))


@implements(kernels.has_rows, static=("most",))
def has_rows(b: Builder, a, most) -> bool:
    """Whether matrices are known to have at most so many rows."""
    return isinstance(a.shape[1], int) and a.shape[1] <= most


@implements(kernels.determinant)
def determinant(b: Builder, a, d, c) -> Var:
    """`d` with the derivative of the determinants of `a`."""
    count, n, _ = a.shape
    return reshape(S.determinant(a, reshape(d, shape=(count, 1, 1)), _of_shape(b, c, count, n, n)), shape=(count,))


@implements(kernels.eigen, static=("lower",))
def eigen(b: Builder, a, lower) -> tuple[Var, ...]:
    """What was wrong, eigenvalues and eigenvectors."""
    n, out = a.shape[1], F.eigh(_square(b, a), lower=lower, vectors=True)
    return (_info(out), *parts(out, (n,), (n, n)))


@implements(kernels.eigenvalues, static=("lower",))
def eigenvalues(b: Builder, a, lower) -> tuple[Var, ...]:
    """What was wrong, and eigenvalues."""
    out = F.eigh(_square(b, a), lower=lower, vectors=False)
    return (_info(out), *parts(out, (a.shape[1],)))


@implements(kernels.singular, static=("full",))
def singular(b: Builder, a, full=False) -> tuple[Var, ...]:
    """What was wrong, the left vectors, the singular values, and the right vectors in rows."""
    m, n = a.shape[1:]
    k = lesser(b, m, n)
    full = full and not same_size(m, n)
    out = F.svd(a, k=k, full=full, vectors=True)
    s, u, v = parts(out, (k,), (m, m if full else k), (n if full else k, n))
    return _info(out), u, s, v


@implements(kernels.singular_values)
def singular_values(b: Builder, a) -> tuple[Var, ...]:
    """What was wrong, and the singular values."""
    k = lesser(b, *a.shape[1:])
    out = F.svd(a, k=k, full=False, vectors=False)
    return (_info(out), *parts(out, (k,)))


@implements(kernels.orthogonal, static=("complete",))
def orthogonal(b: Builder, a, complete=False) -> tuple[Var, ...]:
    """Q and R."""
    m, n = a.shape[1:]
    k = lesser(b, m, n)
    complete = complete and not same_size(m, k)
    wide = m if complete else k
    q, r = parts(F.qr(a, k=k, complete=complete), (m, wide), (wide, n))
    return q, r


__all__ = ["lesser"]
