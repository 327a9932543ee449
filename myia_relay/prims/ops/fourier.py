"""The discrete Fourier transform of stacks of complex vectors, whose real and imaginary parts are two rows.

    y_k = sum_j x_j exp(-2 pi i j k / n)

The transform is linear, and its adjoint, with a gradient whose imaginary part is the derivative by the imaginary part, is the
transform with the other sign. So no factor stands before the inverse here; `library.fourier` writes it.
"""

from __future__ import annotations

import functools

import numpy as np

from ...abstract.types import Array
from ...ir.axes import Axes
from ...ir.prim import primitive
from ...utils.errors import ShapeError
from ..rules.batching import materialise, merge, unmerge
from ..rules.broadcast import reshape, shape_of
from ..rules.forward import linear
from ..rules.relations import require_array, same_dtype, show_shape
from .shape import slice_

RADICES = (4, 2, 3, 5, 7, 11, 13)
FLOATS = ("float32", "float64")


@functools.lru_cache(256)
def factors(n: int) -> tuple[int, ...] | None:
    """The lengths of the small transforms that one of n numbers is made of; None if a prime factor is large."""
    out = []
    for radix in RADICES:
        while n % radix == 0:
            out.append(radix)
            n //= radix
    return tuple(out) if n == 1 else None


def roots(n: int) -> np.ndarray:
    """cos and sin of 2 pi k / n, for k < n, in two rows."""
    # By symmetry, angles are at most pi / 4, where cos and sin are exact to the last bit.
    k = np.arange(n)
    eighth = (8 * k) // n
    quarter = (eighth + 1) // 2  # the nearest multiple of a quarter turn
    angle = 2 * np.pi * (k - quarter * n / 4) / n
    c, s = np.cos(angle), np.sin(angle)
    turn = quarter % 4
    cos = np.choose(turn, [c, -s, -c, s])
    return np.stack([cos, np.choose(turn, [s, c, -s, -c])])


@primitive("opaque", axes=Axes("b..,..->b.."))
def dft(x, table, *, inverse=False):
    """The transform of each of many vectors.

    Args:
        x: (b, 2, n); n has no large prime factor.
        table: (2, n), the `roots` of n.
        inverse: whether the exponent is positive; there is no factor 1 / n.

    Returns:
        (b, 2, n).
    """
    x = np.asarray(x)
    z = x[:, 0] + 1j * x[:, 1]
    if not z.size:
        return x.copy()
    out = np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z)
    return np.stack([out.real, out.imag], 1).astype(x.dtype)


@dft.infer
def _(x, table, *, inverse=False):
    require_array("dft", x, 3, FLOATS)
    same_dtype("dft", x, table)
    if x.shape[1] != 2 or table.shape != (2, x.shape[2]):
        raise ShapeError(f"dft: shapes {show_shape(x.shape)} and {show_shape(table.shape)}")
    return Array(x.dtype, x.shape)


@dft.vjp
def _(x, table, out, dout, *, inverse=False):
    return dft(dout, table, inverse=not inverse), None


dft.jvp(linear(dft, 0))


@dft.batch
def _(size, batched, x, table, *, inverse=False):
    if not batched[1]:
        return None
    # The roots of a length are the same for all examples.
    table = slice_(table, starts=(0, 0, 0), sizes=(1, *shape_of(table)[1:]), steps=(1, 1, 1))
    x = materialise(size, batched[0], x)
    out = dft(merge(x), reshape(table, shape=shape_of(table)[1:]), inverse=inverse)
    return unmerge(out, size, shape_of(x)[1])


__all__ = ["dft", "factors", "roots"]
