"""Names in the library's programs for what LAPACK computes, for the Fourier transform, for sorting, and for constants.

Their meaning in compiled code is in `prims/api/library`; matrices are in arrays of three axes. They are called from there alone.
"""

from __future__ import annotations

from typing import Any


def constant(x) -> Any:
    """`x`, which derivatives take for a constant."""
    raise NotImplementedError


def lu(a) -> Any:
    """Factors of matrices, for `lu_solve` and `lu_slogdet`, and the diagonal that has a zero where a matrix is singular."""
    raise NotImplementedError


def lu_solve(a, factors, right) -> Any:
    """The solutions of systems."""
    raise NotImplementedError


def lu_slogdet(a, factors) -> Any:
    """Signs of determinants, and logarithms of their absolute values."""
    raise NotImplementedError


def cholesky_factor(a) -> Any:
    """What was wrong, 0 if nothing, and lower factors."""
    raise NotImplementedError


def determinant(a, d, c) -> Any:
    """`d` with the derivative of the determinants of `a`, the cofactors `c`."""
    raise NotImplementedError


def has_rows(a, most) -> Any:
    """Whether matrices are known to have at most so many rows, when the program is compiled."""
    raise NotImplementedError


def pseudo_inverse(a, p) -> Any:
    """`p` with the derivative of the pseudo-inverse of `a`."""
    raise NotImplementedError


def eigen(a, lower) -> Any:
    """What was wrong, eigenvalues and eigenvectors of symmetric matrices."""
    raise NotImplementedError


def eigenvalues(a, lower) -> Any:
    """What was wrong, and eigenvalues of symmetric matrices."""
    raise NotImplementedError


def singular(a, full=False) -> Any:
    """What was wrong, the left vectors, the singular values, and the right vectors in rows."""
    raise NotImplementedError


def singular_values(a) -> Any:
    """What was wrong, and the singular values."""
    raise NotImplementedError


def orthogonal(a, complete=False) -> Any:
    """Q and R."""
    raise NotImplementedError


def fourier(x, inverse) -> Any:
    """The transforms of vectors whose real and imaginary parts are two rows, along the last axis; without a factor 1 / n."""
    raise NotImplementedError


def sort_rows(x) -> Any:
    """The elements of each row of a matrix in the order of a stable sort, NaN last."""
    raise NotImplementedError


def argsort_rows(x) -> Any:
    """Their positions."""
    raise NotImplementedError
