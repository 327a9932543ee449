"""The Fourier transform: of any length, which is known when compiling.

A length with a large prime factor is transformed as a convolution with a chirp, by transforms of a power of two (L. Bluestein, "A
linear filtering approach to the computation of discrete Fourier transform", 1970).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....abstract.types import numpy_dtype
from ....ir.build import Builder, Var
from ....library import kernels
from ....utils.errors import TypeError_
from ...ops import fourier as F
from ...ops.shape import concatenate, pad, slice_
from ...rules.relations import show_shape
from ..implementations import implements
from ..promotion import operand


@implements(kernels.fourier, static=("inverse",))
def fourier(b: Builder, x, inverse: bool) -> Var:
    """The transforms of vectors, whose real and imaginary parts are two rows, along the last axis; there is no factor 1 / n.

    Raises:
        TypeError_: the length is known at run time only.
    """
    n = x.shape[2]
    if not isinstance(n, int):
        raise TypeError_(
            f"np.fft: the length of the transform must be known at compile time, and the shape is {show_shape(x.shape)}; "
            "pad to a known length, or give the axis a number instead of a name"
        )
    return _smooth(b, x, n, inverse) if F.factors(n) is not None or not n else _bluestein(b, x, n, inverse)


def _smooth(b: Builder, x: Var, n: int, inverse: bool) -> Var:
    table = operand(b, F.roots(n).astype(numpy_dtype(x.dtype)), "np.fft")
    return F.dft(x, table, inverse=inverse)


def _product(b: Builder, x: Var, w: Any) -> Var:
    """The product of complex rows with a complex vector that is known."""
    count, _, n = x.shape
    re, im = (slice_(x, starts=(0, k, 0), sizes=(count, 1, n), steps=(1, 1, 1)) for k in (0, 1))
    dtype = numpy_dtype(x.dtype)
    wr, wi = (operand(b, np.asarray(v, dtype).reshape(1, 1, -1).copy(), "np.fft") for v in (w.real, w.imag))
    return concatenate(re * wr - im * wi, re * wi + im * wr, axis=1)


def _bluestein(b: Builder, x: Var, n: int, inverse: bool) -> Var:
    size = 1 << (2 * n - 2).bit_length()
    roots = F.roots(2 * n)
    square = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = roots[0][square] + (1j if inverse else -1j) * roots[1][square]
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[1:][::-1].conj()
    padded = pad(_product(b, x, chirp), x.const(0), low=(0, 0, 0), high=(0, 0, size - n), interior=(0, 0, 0))
    product = _product(b, _smooth(b, padded, size, False), np.fft.fft(kernel) / size)
    whole = _smooth(b, product, size, True)
    part = slice_(whole, starts=(0, 0, 0), sizes=(x.shape[0], 2, n), steps=(1, 1, 1))
    return _product(b, part, chirp)


__all__ = ["fourier"]
