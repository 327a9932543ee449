"""NumPy's linear algebra that is other linear algebra under another name."""

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


SOURCES = {getattr(np.linalg, function.__name__): function for function in (matrix_power, multi_dot)}
