"""NumPy's linear algebra that is a short program: powers, and what elimination does.

Gaussian elimination with partial pivoting, row by row (G. Golub and C. Van Loan, "Matrix Computations", 3.4), as LAPACK has it
unblocked: O(n**3), with derivatives like any program's. One matrix each; `vmap` takes stacks.
"""

from __future__ import annotations

import numpy as np


def matrix_power(a, n):
    """np.linalg.matrix_power for n >= 0: repeated squaring."""
    if n < 0:
        raise ValueError("matrix_power with a negative exponent: invert the matrix first")
    out = np.eye(a.shape[-1]).astype(a.dtype)
    while n > 0:
        if n % 2 == 1:
            out = out @ a
        n = n // 2
        if n > 0:
            a = a @ a
    return out


def multi_dot(arrays):
    """np.linalg.multi_dot, from left to right."""
    out, *rest = arrays
    for matrix in rest:
        out = out @ matrix
    return out


def _square(a):
    """A matrix as floats, to be changed.

    Raises:
        LinAlgError: it is no square matrix.
    """
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError("one square matrix is expected; for a stack of them write vmap")
    return a * np.ones((), a.dtype) if a.dtype == np.float32 else a * 1.0


def _pivot(m, k):
    """The row from k on whose entry in column k is greatest."""
    p = k
    for i in range(k + 1, m.shape[0]):
        if abs(m[i, k]) > abs(m[p, k]):
            p = i
    return p


def det(a):
    """np.linalg.det."""
    m = _square(a)
    out = np.prod(m[:0]) * 1.0
    for k in range(m.shape[0]):
        p = _pivot(m, k)
        if p != k:
            row = m[p] * 1.0
            m[p] = m[k]
            m[k] = row
            out = -out
        out = out * m[k, k]
        if m[k, k] != 0:
            for i in range(k + 1, m.shape[0]):
                m[i] = m[i] - m[i, k] / m[k, k] * m[k]
    return out


def solve(a, b):
    """np.linalg.solve of one matrix."""
    m = _square(a)
    if b.ndim > 2 or b.shape[0] != m.shape[0]:
        raise ValueError("solve: the right-hand side is a vector or a matrix with as many rows as the matrix")
    x = b * 1.0
    if m.dtype != x.dtype:
        m = m * np.ones((), np.float64)
        x = x * np.ones((), np.float64)
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


def inv(a):
    """np.linalg.inv of one matrix."""
    m = _square(a)
    return solve(m, np.eye(m.shape[0]).astype(m.dtype))


def cholesky(a):
    """np.linalg.cholesky of one matrix: the lower factor, from the lower triangle."""
    m = _square(a)
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


SOURCES = {
    getattr(np.linalg, function.__name__): function for function in (matrix_power, multi_dot, det, solve, inv, cholesky)
}
