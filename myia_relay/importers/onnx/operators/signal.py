"""Signals: Fourier transforms, windows, and the weights of mel filters.

Transforms and windows are computed in float64, whatever the dtype: results of order 100 are compared to 1e-7.
"""

from __future__ import annotations

import math

import numpy as np

from ....abstract.dims import Dim, DimLike
from ....abstract.types import numpy_dtype
from ....ir.build import Var
from ....library.complex_numbers import Complex
from ....library.fourier import fft, ifft, irfft
from ....prims.api.promotion import size_value
from ....prims.ops import elementwise as P
from ....prims.ops.indexing import take
from ....prims.ops.shape import slice_
from ....prims.rules.broadcast import as_array, broadcast_to, cast, reshape
from ....prims.rules.relations import normalise_axis, show_shape
from ....utils.errors import ShapeError, TypeError_, ValueError_
from ..table import Context, operator
from .shapes import as_positions


def _forward(re, im, n, axis):
    """The real and the imaginary part of a transform."""
    z = fft(Complex(re, im), n, axis)
    return np.stack((z.real, z.imag), -1)


def _inverse(re, im, n, axis):
    """The real and the imaginary part of an inverse transform."""
    z = ifft(Complex(re, im), n, axis)
    return np.stack((z.real, z.imag), -1)


def _real_inverse(re, im, n, axis):
    """The real numbers whose transform begins with these."""
    return irfft(Complex(re, im), n, axis)[..., None]


def number(given: np.ndarray | None, what: str) -> int | None:
    """An input of one integer; None if it is absent.

    Raises:
        ShapeError: it has not one element.
    """
    if given is None:
        return None
    if given.size != 1:
        raise ShapeError(f"its input {what} has {given.size} elements, and one is needed")
    return int(given.reshape(-1)[0])


async def transformed(c: Context, x: Var, n: int | None, axis: int, inverse: bool, onesided: bool) -> Var:
    """The transform along an axis of a tensor whose last axis holds a real number, or its two parts.

    Raises:
        ShapeError: the last axis is another one, or the transformed axis has an unknown size.
        TypeError_: half of the transform of complex numbers is wanted.
        ValueError_: there are no numbers to be transformed.
    """
    rank, parts = len(x.shape), x.shape[-1] if x.shape else 0
    if rank < 2 or parts not in (1, 2):
        raise ShapeError(f"it takes a tensor whose last axis has the size 1 or 2, and this has {show_shape(x.shape)}")
    axis = normalise_axis("DFT", axis, x.shape)
    if axis == rank - 1:
        raise ShapeError("the last axis holds the parts of numbers, and cannot be transformed")
    if onesided and not inverse and parts == 2:
        raise TypeError_("onesided is for real numbers, and these are complex")
    size: DimLike = x.shape[axis] if n is None else n
    if n is None and onesided and inverse:
        size = 2 * (size - 1)
    if isinstance(size, Dim):
        raise ShapeError(f"the length of a transform must be known at compile time, and this is {size}")
    if size < 1:
        raise ValueError_(f"the length of a transform is {size}, and must be positive")
    wide = cast(x, dtype="float64")
    re, im = (_part(wide, k) for k in (0, int(parts == 2)))
    im = im if parts == 2 else im * im.const(0)
    function = (_real_inverse if onesided else _inverse) if inverse else _forward
    out = await c.call(function, re, im, size, axis)
    if onesided and not inverse:
        shape = tuple(size // 2 + 1 if k == axis else d for k, d in enumerate(out.shape))
        out = slice_(out, starts=(0,) * rank, sizes=shape, steps=(1,) * rank)
    return cast(out, dtype=x.dtype)


def _part(x: Var, index: int) -> Var:
    """An element of the last axis."""
    rank = len(x.shape)
    part = slice_(x, starts=(*(0,) * (rank - 1), index), sizes=(*x.shape[:-1], 1), steps=(1,) * rank)
    return reshape(part, shape=x.shape[:-1])


@operator("DFT", since=17, until=19, static=("dft_length",))
async def dft_17(c: Context, x, dft_length=None, *, axis=1, inverse=0, onesided=0):
    """The discrete Fourier transform along an axis; the inverse one is divided by the length."""
    return await transformed(c, x, number(dft_length, "dft_length"), axis, bool(inverse), bool(onesided))


@operator("DFT", since=20, static=("dft_length", "axis"))
async def dft_20(c: Context, x, dft_length=None, axis=None, *, inverse=0, onesided=0):
    """The discrete Fourier transform along an axis; the inverse one is divided by the length."""
    along = number(axis, "axis")
    length = number(dft_length, "dft_length")
    return await transformed(c, x, length, -2 if along is None else along, bool(inverse), bool(onesided))


@operator("STFT", since=17, static=("frame_step", "frame_length"))
async def stft(c: Context, x, frame_step, window=None, frame_length=None, *, onesided=1):
    """The transforms of overlapping parts of signals, times a window: (batch, frames, frequencies, 2).

    Raises:
        ShapeError: the signal, the window and the length do not fit.
        ValueError_: the step is not positive.
    """
    if len(x.shape) != 3:
        raise ShapeError(f"a signal has three axes, and this has the shape {show_shape(x.shape)}")
    step, length = number(frame_step, "frame_step"), number(frame_length, "frame_length")
    batch, whole, parts = x.shape
    n: DimLike = length if length is not None else window.shape[0] if window is not None else whole
    if step is None or step < 1:
        raise ValueError_(f"frame_step is {step}, and must be positive")
    if isinstance(n, Dim):
        raise ShapeError(f"the length of a frame must be known at compile time, and this is {n}")
    if n < 1 or isinstance(whole, int) and n > whole:
        raise ShapeError(f"frames of {n} elements do not fit a signal of {whole}")
    if window is not None and window.shape != (n,):
        raise ShapeError(f"frames have {n} elements, and the window has the shape {show_shape(window.shape)}")
    frames = (whole - n) // step + 1
    first, inner = as_positions(c, frames), as_positions(c, n)
    places = reshape(first * first.const(step), shape=(frames, 1)) + reshape(inner, shape=(1, n))
    wide = take(cast(x, dtype="float64"), reshape(places, shape=(frames * n,)), axis=1)
    wide = reshape(wide, shape=(batch, frames, n, parts))
    if window is not None:
        wide = wide * reshape(cast(window, dtype="float64"), shape=(1, 1, n, 1))
    return cast(await transformed(c, wide, n, 2, False, bool(onesided)), dtype=x.dtype)


def window(*weights: float):
    """The rule of a window that is a sum of cosines with such weights."""

    def rule(c: Context, size, *, output_datatype="float32", periodic=1):
        (n,) = size
        if isinstance(n, int) and n <= 0:
            if n < 0:
                raise ValueError_(f"a window has the size {n}")
            return np.zeros(0, numpy_dtype(output_datatype))
        count = cast(as_array(cast(size_value(c.b, n), dtype="int64", weak=False)), dtype="float64")
        last = count if periodic else count - count.const(1)
        place = cast(as_positions(c, n), dtype="float64")
        angle = place * place.const(2 * math.pi) / last
        total = broadcast_to(c.constant(np.float64(weights[0])), shape=(n,))
        for k, weight in enumerate(weights[1:], 1):
            total = total + P.cos(angle * angle.const(k)) * angle.const(weight)
        return cast(total, dtype=output_datatype)

    return rule


operator("HannWindow", since=17, sizes=("size",))(window(0.5, -0.5))
operator("HammingWindow", since=17, sizes=("size",))(window(25 / 46, -21 / 46))
operator("BlackmanWindow", since=17, sizes=("size",))(window(0.42, -0.5, 0.08))


@operator(
    "MelWeightMatrix",
    since=17,
    static=("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"),
)
def mel_weight_matrix(
    c: Context, num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz, *, output_datatype="float32"
):
    """Triangles over the frequencies of a spectrum, whose corners are at equal distances on the mel scale: (frequencies, bins).

    Raises:
        ValueError_: the edges do not lie within the spectrum.
    """
    bins, length, rate = (number(x, "of sizes") for x in (num_mel_bins, dft_length, sample_rate))
    low, high = (float(np.asarray(x).reshape(-1)[0]) for x in (lower_edge_hertz, upper_edge_hertz))
    assert bins is not None and length is not None and rate is not None
    if bins < 1 or length < 1 or rate < 1 or not 0 <= low <= high < math.inf:
        raise ValueError_(f"{bins} bins from {low} to {high} Hz of a transform of {length} at {rate} Hz cannot be")
    ends = [2595 * np.log1p(f / 700) / np.log(10) for f in (low, high)]
    mel = np.arange(bins + 2) * ((ends[1] - ends[0]) / (bins + 2)) + ends[0]
    corners = ((length + 1) * (700 * np.expm1(mel / 2595 * np.log(10))) // rate).astype(np.int64)
    if corners.max() > length // 2:
        raise ValueError_(f"its upper edge, {high} Hz, lies beyond the spectrum of a signal at {rate} Hz")
    left, center, right = corners[:-2], corners[1:-1], corners[2:]
    at = np.arange(length // 2 + 1)[:, None]
    rise = np.where(left == center, 1.0, (at - left) / np.maximum(center - left, 1))
    fall = (right - at) / np.maximum(right - center, 1)
    out = np.where((at >= left) & (at <= center), rise, 0.0)
    out = np.where((at >= center) & (at < right), fall, out)
    return out.astype(numpy_dtype(output_datatype))
