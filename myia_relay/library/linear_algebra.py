"""Functions of NumPy's linear algebra that are short programs: powers, and what Gaussian elimination solves.

The elimination is row by row with partial pivoting (G. Golub and C. Van Loan, "Matrix Computations", 3.4), like
LAPACK's unblocked version: O(n**3), with derivatives like those of any program. Stacks are processed one matrix after
the other.
"""

from __future__ import annotations

import numpy as np

from .refusals import misfit, unsupported


def matrix_power(a, n):
    """np.linalg.matrix_power: repeated squaring, of the inverse for a negative exponent."""
    a = np.asarray(a)
    _require_square(a)
    if isinstance(n, float):
        unsupported("np.linalg.matrix_power: exponent must be an integer")
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return np.broadcast_to(np.eye(a.shape[-1]).astype(a.dtype), a.shape)
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
    """An array of float32 or float64 to be changed: in float32 where it is that.

    Raises:
        TypeError: it is of half precision, which NumPy refuses here.
    """
    if a.dtype == np.float16:
        unsupported("array type float16 is unsupported in linalg; convert it with .astype(np.float32)")
    return a * np.ones((), a.dtype) if a.dtype == np.float32 else a * 1.0


def _matrices(a):
    """A matrix or a stack of them as floats."""
    a = np.asarray(a)
    _require_square(a)
    return _floats(a)


def _flat(a):
    """The matrices of a stack along one axis."""
    return np.reshape(a, (np.size(np.zeros(a.shape[:-2])), a.shape[-2], a.shape[-1]))


def _pivot(m, k):
    """The row from k on whose entry in column k is greatest."""
    p = k
    for i in range(k + 1, m.shape[0]):
        if abs(m[i, k]) > abs(m[p, k]):
            p = i
    return p


def _det(a):
    """The determinant of one matrix."""
    m = a.copy()
    out = np.prod(m[:0]) * 1.0
    for k in range(m.shape[0]):
        p = _pivot(m, k)
        if p != k:
            row = m[p] * 1.0
            m[p] = m[k]
            m[k] = row
            out = -out
        out = out * m[k, k]
        if m[k, k] == 0:
            out = out + 0.0  # and no -0.0
        else:
            for i in range(k + 1, m.shape[0]):
                m[i] = m[i] - m[i, k] / m[k, k] * m[k]
    return out


def _solve(a, b):
    """The solution for one matrix and one vector or matrix.

    Raises:
        LinAlgError: the matrix is singular.
    """
    m, x = a.copy(), b.copy()
    for k in range(m.shape[0]):
        p = _pivot(m, k)
        if m[p, k] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        if p != k:
            row, right = m[p] * 1.0, x[p] * 1.0
            m[p] = m[k]
            m[k] = row
            x[p] = x[k]
            x[k] = right
        for i in range(k + 1, m.shape[0]):
            factor = m[i, k] / m[k, k]
            m[i] = m[i] - factor * m[k]
            x[i] = x[i] - factor * x[k]
    for j in range(m.shape[0]):
        k = m.shape[0] - 1 - j
        for i in range(k + 1, m.shape[0]):
            x[k] = x[k] - m[k, i] * x[i]
        x[k] = x[k] / m[k, k]
    return x


def det(a):
    """np.linalg.det of a matrix or of each of a stack."""
    a = _matrices(a)
    if a.ndim == 2:
        return _det(a)
    many = _flat(a)
    out = np.zeros(many.shape[0], a.dtype)
    for i in range(many.shape[0]):
        out[i] = _det(many[i])
    return np.reshape(out, a.shape[:-2])


def solve(a, b):
    """np.linalg.solve: of a matrix and a vector or matrix, or of each pair of two stacks.

    Raises:
        ValueError: the right-hand side has another number of rows than the matrix.
        TypeError: it is a number, or the matrix is not square.
        LinAlgError: a matrix is singular.
    """
    a, b = _matrices(a), _floats(np.asarray(b))
    if b.ndim == 0:
        misfit("np.linalg.solve: the right-hand side is a vector or a matrix")
    if b.shape[0 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ValueError("solve: the right-hand side has as many rows as the matrix")
    if a.dtype != b.dtype:
        a, b = a * np.ones((), np.float64), b * np.ones((), np.float64)
    if a.ndim == 2 and b.ndim <= 2:
        return _solve(a, b)
    right = b[:, None] if b.ndim == 1 else b
    lead = (np.zeros(a.shape[:-2]) + np.zeros(right.shape[:-2])).shape
    n, m = right.shape[-2], right.shape[-1]
    left, out = _flat(np.broadcast_to(a, (*lead, n, n))), _flat(np.broadcast_to(right, (*lead, n, m))).copy()
    for i in range(out.shape[0]):
        out[i] = _solve(left[i] * np.ones((), a.dtype), out[i])
    return np.reshape(out, (*lead, n)) if b.ndim == 1 else np.reshape(out, (*lead, n, m))


def inv(a):
    """np.linalg.inv of a matrix or of each of a stack."""
    a = _matrices(a)
    return solve(a, np.eye(a.shape[-1]).astype(a.dtype))


def _cholesky(m):
    """The lower factor of one matrix, from its lower triangle.

    Raises:
        LinAlgError: the matrix is not positive definite.
    """
    out = np.zeros_like(m)
    for j in range(m.shape[0]):
        for i in range(j, m.shape[0]):
            rest = m[i, j]
            for k in range(j):
                rest = rest - out[i, k] * out[j, k]
            if i > j:
                out[i, j] = rest / out[j, j]
            else:
                if not rest > 0:
                    raise np.linalg.LinAlgError("Matrix is not positive definite")
                out[j, j] = np.sqrt(rest)
    return out


def cholesky(a):
    """np.linalg.cholesky of a matrix or of each of a stack: the lower factor, from the lower triangle."""
    a = _matrices(a)
    if a.ndim == 2:
        return _cholesky(a)
    many = _flat(a)
    out = np.zeros_like(many)
    for i in range(many.shape[0]):
        out[i] = _cholesky(many[i])
    return np.reshape(out, a.shape)


SOURCES = {
    getattr(np.linalg, function.__name__): function for function in (matrix_power, multi_dot, det, solve, inv, cholesky)
}
