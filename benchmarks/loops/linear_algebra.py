"""Textbook linear algebra as loops over rows, columns and slices of NumPy arrays.

The functions are plain Python, as a NumPy user writes them: the same text runs under CPython, under Numba and here. Those that
change an argument return it.
"""

from __future__ import annotations

import numpy as np

from .case import case


def _well_conditioned(rng, n):
    return rng.random((n, n)) + n * np.eye(n)


def _positive_definite(rng, n):
    a = rng.random((n, n))
    return a @ a.T / n + np.eye(n)


@case(S=(2000,), M=(5000,), make=lambda rng, n: (np.tril(rng.random((n, n))) / n + np.eye(n), rng.random(n)))
def trisolv(L, b):
    """Forward substitution."""
    n = L.shape[0]
    x = np.zeros(n)
    for i in range(n):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


@case(S=(60,), M=(220,), make=lambda rng, n: (_well_conditioned(rng, n),))
def lu(A):
    """LU factorisation in place, without pivots."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A


@case(S=(200,), M=(600,), make=lambda rng, n: (_well_conditioned(rng, n),))
def lu_by_rows(A):
    """LU factorisation in place: multiples of a row are taken from the rows below it."""
    n = A.shape[0]
    for k in range(n - 1):
        A[k + 1 :, k] /= A[k, k]
        for i in range(k + 1, n):
            A[i, k + 1 :] -= A[i, k] * A[k, k + 1 :]
    return A


@case(S=(200,), M=(600,), make=lambda rng, n: (_well_conditioned(rng, n),))
def lu_outer(A):
    """LU factorisation in place by rank-one updates."""
    n = A.shape[0]
    for k in range(n - 1):
        A[k + 1 :, k] = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    return A


@case(S=(60,), M=(220,), make=lambda rng, n: (_well_conditioned(rng, n), rng.random(n)))
def ludcmp(A, b):
    """LU factorisation, then two triangular systems."""
    n = A.shape[0]
    x = np.zeros(n)
    y = np.zeros(n)
    for i in range(n):
        for j in range(i):
            w = A[i, j] - A[i, :j] @ A[:j, j]
            A[i, j] = w / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


@case(S=(100,), M=(300,), make=lambda rng, n: (_positive_definite(rng, n),))
def cholesky(A):
    """The lower triangular factor, over the lower triangle."""
    n = A.shape[0]
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, n):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])
    return A


@case(S=(200,), M=(600,), make=lambda rng, n: (_positive_definite(rng, n),))
def cholesky_by_columns(A):
    """The lower triangular factor, column by column with a matrix-vector product each."""
    n = A.shape[0]
    L = np.zeros((n, n))
    for j in range(n):
        L[j, j] = np.sqrt(A[j, j] - np.sum(L[j, :j] ** 2))
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


@case(S=(150, 120), M=(300, 250), make=lambda rng, m, n: (rng.random((m, n)) + np.eye(m, n),))
def gramschmidt(A):
    """QR factorisation by the modified Gram-Schmidt process."""
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


@case(S=(100, 80), M=(300, 200), make=lambda rng, m, n: (rng.random((m, n)),))
def householder(A):
    """QR factorisation by reflections of the remaining rows and columns."""
    m, n = A.shape
    R = A.copy()
    for k in range(n):
        v = R[k:, k].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        v /= np.sqrt(v @ v)
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
    return R


@case(S=(1000,), M=(6000,), make=lambda rng, n: (rng.random(n) / n,))
def durbin(r):
    """The Yule-Walker equations of a Toeplitz matrix."""
    n = r.shape[0]
    y = np.zeros(n)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(r[:k][::-1], y[:k])) / beta
        y[:k] = y[:k] + alpha * y[:k][::-1]
        y[k] = alpha
    return y


def _data(rng, n, m):
    return (rng.random((n, m)),)


@case(S=(600, 500), M=(1400, 1000), make=_data)
def correlation(data):
    """Correlations of the columns, one row of the triangle after the other."""
    n, m = data.shape
    mean = np.sum(data, axis=0) / n
    deviation = np.sqrt(np.sum((data - mean) ** 2, axis=0) / n)
    data = (data - mean) / (np.sqrt(float(n)) * deviation)
    corr = np.eye(m)
    for i in range(m - 1):
        corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
        corr[i + 1 :, i] = corr[i, i + 1 :]
    return corr


@case(S=(600, 500), M=(1400, 1000), make=_data)
def covariance(data):
    """Covariances of the columns, one row of the triangle after the other."""
    n, m = data.shape
    data = data - np.sum(data, axis=0) / n
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i, i:] = data[:, i] @ data[:, i:] / (n - 1.0)
        cov[i:, i] = cov[i, i:]
    return cov


@case(S=(600, 500), M=(1400, 1000), make=_data)
def covariance_by_columns(data):
    """Covariances of the columns, one column of the triangle after the other."""
    n, m = data.shape
    data -= np.sum(data, axis=0) / n
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i:m, i] = np.transpose(data[:, i:m]) @ data[:, i] / (n - 1.0)
        cov[i, i:m] = cov[i:m, i]
    return cov


def _symm(rng, m, n):
    return 1.5, 1.2, rng.random((m, n)), rng.random((m, m)), rng.random((m, n))


@case(S=(40, 50), M=(120, 150), make=_symm)
def symm(alpha, beta, C, A, B):
    """A product with a symmetric matrix of which the lower triangle is stored."""
    m, n = C.shape
    temp = np.empty(n)
    C *= beta
    for i in range(m):
        for j in range(n):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp
    return C


def _rank_k(rng, n, k):
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, k))


@case(S=(70, 50), M=(200, 150), make=_rank_k)
def syrk(alpha, beta, C, A):
    """A rank-k update of the lower triangle."""
    n, m = A.shape
    for i in range(n):
        C[i, : i + 1] *= beta
        for k in range(m):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]
    return C


@case(S=(50, 35), M=(140, 110), make=lambda rng, n, k: (*_rank_k(rng, n, k), rng.random((n, k))))
def syr2k(alpha, beta, C, A, B):
    """A symmetric rank-2k update of the lower triangle."""
    n, m = A.shape
    for i in range(n):
        C[i, : i + 1] *= beta
        for k in range(m):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]
    return C


@case(S=(65, 80), M=(200, 250), make=lambda rng, m, n: (1.5, rng.random((m, m)), rng.random((m, n))))
def trmm(alpha, A, B):
    """A product with a triangular matrix, in place."""
    m, n = B.shape
    for i in range(m):
        for j in range(n):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha
    return B


@case(S=(400, 300), M=(1200, 1000), make=lambda rng, m, n: (rng.random((m, n)), rng.random(n)))
def rows_times_vector(A, x):
    """A matrix-vector product, row by row."""
    m = A.shape[0]
    y = np.empty(m)
    for i in range(m):
        y[i] = A[i] @ x
    return y


@case(S=(2000,), M=(4000,), make=lambda rng, n: (rng.random((n, n)), rng.random(n)))
def atax(A, x):
    """A.T (A x)."""
    return (A @ x) @ A


@case(S=(2000,), M=(4000,), make=lambda rng, n: (rng.random((n, n)), rng.random(n), rng.random(n)))
def bicg(A, p, r):
    """The two products of a step of the biconjugate gradient method."""
    return r @ A, A @ p


@case(
    S=(1500,),
    M=(3000,),
    make=lambda rng, n: (1.5, 1.2, rng.random((n, n)) / n, *(rng.random(n) for _ in range(8))),
)
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    """Two rank-one updates and two products."""
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x
    return w


@case(
    S=(300, 350, 320),
    M=(1000, 1200, 1100),
    make=lambda rng, m, n, k: (1.5, 1.2, rng.random((m, n)), rng.random((m, k)), rng.random((k, n))),
)
def gemm(alpha, beta, C, A, B):
    """A matrix product with its scalars."""
    C[:] = alpha * A @ B + beta * C
    return C


@case(S=(200,), M=(1000,), make=lambda rng, n: (_positive_definite(rng, n),), numba=False)
def cholesky_of_library(A):
    """The lower triangular factor by the library, over the lower triangle."""
    A[:] = np.linalg.cholesky(A) + np.triu(A, k=1)
    return A


@case(S=(600, 500), M=(1400, 1000), make=lambda rng, n, m: (rng.random((n, m)),), numba=False)
def covariance_of_library(data):
    """Covariances of the columns by the library."""
    return np.cov(np.transpose(data))


@case(
    S=(60, 60, 128),
    M=(110, 125, 256),
    make=lambda rng, r, q, p: (rng.random((r, q, p)), rng.random((p, p))),
    tiny=(3, 4, 5),
)
def doitgen(A, C):
    """Each row of a stack of matrices times a matrix."""
    r, q, p = A.shape
    A[:] = np.reshape(np.reshape(A, (r, q, 1, p)) @ C, (r, q, p))
    return A


@case(
    S=(200, 220, 180, 240),
    M=(800, 850, 700, 900),
    make=lambda rng, a, b, c, d: (
        1.5,
        1.2,
        rng.random((a, b)),
        rng.random((b, c)),
        rng.random((c, d)),
        rng.random((a, d)),
    ),
)
def two_products(alpha, beta, A, B, C, D):
    """A product of three matrices with its scalars."""
    D[:] = alpha * A @ B @ C + beta * D
    return D


@case(
    S=(200, 220, 180, 240, 210),
    M=(800, 850, 700, 900, 780),
    make=lambda rng, *n: tuple(rng.random(shape) for shape in zip(n, n[1:])),
)
def three_products(A, B, C, D):
    """A product of four matrices."""
    return A @ B @ C @ D


@case(S=(1500,), M=(4000,), make=lambda rng, n: (*(rng.random(n) for _ in range(4)), rng.random((n, n))))
def mvt(x1, x2, y1, y2, A):
    """A matrix and its transpose times vectors."""
    x1 += A @ y1
    x2 += y2 @ A
    return x1, x2


@case(S=(1000,), M=(3000,), make=lambda rng, n: (1.5, 1.2, rng.random((n, n)), rng.random((n, n)), rng.random(n)))
def gesummv(alpha, beta, A, B, x):
    """A sum of two matrix-vector products."""
    return alpha * A @ x + beta * B @ x


def _system(rng, n):
    return _positive_definite(rng, n), rng.random(n)


@case(S=(500,), M=(1200,), make=_system)
def conjugate_gradient(A, b):
    """Fifty steps of the conjugate gradient method."""
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rr = r @ r
    for _ in range(50):
        q = A @ p
        step = rr / (p @ q)
        x += step * p
        r -= step * q
        new = r @ r
        p = r + (new / rr) * p
        rr = new
    return x


@case(S=(300,), M=(700,), make=lambda rng, n: (_well_conditioned(rng, n), rng.random(n)))
def gauss(A, b):
    """Gaussian elimination with partial pivoting, then back substitution."""
    n = A.shape[0]
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            row = A[k, k:].copy()
            A[k, k:] = A[p, k:]
            A[p, k:] = row
            t = b[k]
            b[k] = b[p]
            b[p] = t
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            A[i, k:] -= f * A[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x
