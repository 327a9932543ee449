"""NumPy's Fourier transforms: which axes, lengths and factors; the transform itself is `prims.ops.fourier`.

The length of a transform is known at compile time. Derivatives are exact: the adjoint of a transform is one.
"""

from __future__ import annotations

import math

import numpy as np

from .complex_numbers import Complex, roll
from .kernels import fourier
from .refusals import misfit, unsupported


def _parts(a):
    """A number or array as a complex array of float32 or float64."""
    if isinstance(a, Complex):
        return a
    x = np.asarray(a)
    if x.dtype == np.float16:
        unsupported("np.fft of float16 is not part of compiled code; convert it with .astype(np.float32)")
    x = x if x.dtype == np.float32 else x.astype(np.float64)
    return Complex(x, np.zeros_like(x))


def _sized(x, n):
    """The last axis cut, or filled with zeros, to n numbers."""
    have = x.shape[-1]
    if have == n:
        return x
    if have > n:
        return x[..., :n]
    return np.concatenate((x, np.zeros((*x.shape[:-1], n - have), x.dtype)), -1)


def _factor(n, norm, inverse):
    """What a transform is multiplied by.

    Raises:
        ValueError: there is no such norm.
    """
    if norm is not None and norm != "backward" and norm != "ortho" and norm != "forward":
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm == "ortho":
        return 1 / math.sqrt(n)
    if (norm == "forward") == inverse:
        return 1.0
    return 1 / n


def _transformed(a, n, axis, norm, inverse):
    """The transform along one axis.

    Raises:
        ValueError: there are no numbers to be transformed.
    """
    z = _parts(a)
    if z.ndim == 0:
        misfit("np.fft takes arrays with at least one axis")
    np.size(z.real, axis)  # refuses what is no axis
    re, im = np.moveaxis(z.real, axis, -1), np.moveaxis(z.imag, axis, -1)
    length = re.shape[-1] if n is None else n
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    re, im = _sized(re, length), _sized(im, length)
    count = 1
    for size in re.shape[:-1]:
        count = count * size
    both = np.stack((np.reshape(re, (count, length)), np.reshape(im, (count, length))), 1)
    factor = _factor(length, norm, inverse)
    out = fourier(both, inverse)
    if factor != 1.0:
        out = out * factor
    re, im = np.reshape(out[:, 0], re.shape), np.reshape(out[:, 1], re.shape)
    return Complex(np.moveaxis(re, -1, axis), np.moveaxis(im, -1, axis))


def fft(a, n=None, axis=-1, norm=None):
    """np.fft.fft."""
    return _transformed(a, n, axis, norm, False)


def ifft(a, n=None, axis=-1, norm=None):
    """np.fft.ifft."""
    return _transformed(a, n, axis, norm, True)


def _last(z, axis, start, stop):
    """A part of a complex array along one axis."""
    re, im = np.moveaxis(z.real, axis, -1)[..., start:stop], np.moveaxis(z.imag, axis, -1)[..., start:stop]
    return Complex(np.moveaxis(re, -1, axis), np.moveaxis(im, -1, axis))


def rfft(a, n=None, axis=-1, norm=None):
    """np.fft.rfft: the half of the transform of real numbers that the other half follows from."""
    if isinstance(a, Complex):
        unsupported("np.fft.rfft takes real arrays; write np.fft.fft")
    out = _transformed(a, n, axis, norm, False)
    return _last(out, axis, 0, out.shape[axis] // 2 + 1)


def irfft(a, n=None, axis=-1, norm=None):
    """np.fft.irfft: the real numbers whose transform begins with these; what should be real is taken for real.

    Raises:
        ValueError: there are no numbers to be transformed.
    """
    z = _parts(a)
    np.size(z.real, axis)  # refuses what is no axis
    re, im = np.moveaxis(z.real, axis, -1), np.moveaxis(z.imag, axis, -1)
    length = 2 * (re.shape[-1] - 1) if n is None else n
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    half = length // 2 + 1
    re, im = _sized(re, half), _sized(im, half)
    edge = np.zeros_like(im[..., :1])
    inner = im[..., 1 : (length + 1) // 2]
    im = np.concatenate((edge, inner, edge), -1) if length % 2 == 0 else np.concatenate((edge, inner), -1)
    rest = (length + 1) // 2
    re = np.concatenate((re, re[..., 1:rest][..., ::-1]), -1)
    im = np.concatenate((im[..., :half], -inner[..., ::-1]), -1)
    return np.moveaxis(_transformed(Complex(re, im), length, -1, norm, True).real, -1, axis)


def _over_axes(a, s, axes, norm, inverse):
    """The transforms along several axes, the last one first.

    Raises:
        ValueError: there is not a length for each axis.
    """
    z = _parts(a)
    if s is not None and axes is None:
        axes = tuple([k - len(s) for k in range(len(s))])
    axes = tuple(range(z.ndim)) if axes is None else axes
    if s is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    for k in range(len(axes)):
        i = len(axes) - 1 - k
        z = _transformed(z, None if s is None or s[i] == -1 else s[i], axes[i], norm, inverse)
    return z


def fftn(a, s=None, axes=None, norm=None):
    """np.fft.fftn."""
    return _over_axes(a, s, axes, norm, False)


def ifftn(a, s=None, axes=None, norm=None):
    """np.fft.ifftn."""
    return _over_axes(a, s, axes, norm, True)


def fft2(a, s=None, axes=(-2, -1), norm=None):
    """np.fft.fft2."""
    return _over_axes(a, s, axes, norm, False)


def ifft2(a, s=None, axes=(-2, -1), norm=None):
    """np.fft.ifft2."""
    return _over_axes(a, s, axes, norm, True)


def fftfreq(n, d=1.0):
    """np.fft.fftfreq."""
    return np.concatenate((np.arange((n - 1) // 2 + 1), np.arange(-(n // 2), 0))) * (1.0 / (n * d))


def rfftfreq(n, d=1.0):
    """np.fft.rfftfreq."""
    return np.arange(n // 2 + 1) * (1.0 / (n * d))


def _shifted(x, axes, inverse):
    x = x if isinstance(x, Complex) else np.asarray(x)
    if axes is None:
        axes = tuple(range(x.ndim))
    elif isinstance(axes, int):
        axes = (axes,)
    shifts = tuple([-(x.shape[k] // 2) if inverse else x.shape[k] // 2 for k in axes])
    return roll(x, shifts, axes) if isinstance(x, Complex) else np.roll(x, shifts, axes)


def fftshift(x, axes=None):
    """np.fft.fftshift."""
    return _shifted(x, axes, False)


def ifftshift(x, axes=None):
    """np.fft.ifftshift."""
    return _shifted(x, axes, True)


SOURCES = {
    getattr(np.fft, function.__name__): function
    for function in (
        *(fft, ifft, rfft, irfft, fftn, ifftn, fft2, ifft2),
        *(fftfreq, rfftfreq, fftshift, ifftshift),
    )
}
