"""Complex numbers and arrays in compiled code: two real ones, in a record whose methods are complex arithmetic.

An argument that is complex arrives as a `Complex`, and a result that is one leaves as a NumPy array or number. Formulas are
NumPy's, so special values come out as there; a real operand is a complex one with the imaginary part 0. Derivatives are those
of the two real parts: the gradient by z has the derivative by z.real in its real part and the derivative by z.imag in its
imaginary part, as PyTorch's (JAX's is the conjugate).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .refusals import unsupported


@dataclass(frozen=True, eq=False)
class Complex:
    """A complex number, or an array of them.

    Attributes:
        real: the real part.
        imag: the imaginary part, of the same kind, dtype and shape.
    """

    real: Any
    imag: Any
    __array_ufunc__ = None  # arrays leave operators to this class

    @staticmethod
    def __relay_rebuild__(real, imag):
        """What leaves compiled code: an array, a NumPy number or a Python number."""
        if type(real) is float:
            return builtins.complex(real, imag)
        out = np.empty(np.shape(real), np.result_type(real, np.complex64))
        out.real, out.imag = real, imag
        return out if isinstance(real, np.ndarray) else out[()]

    @staticmethod
    def __relay_outside__(part: type) -> type:
        """The class outside of compiled code, from that of the real part."""
        return {float: builtins.complex, np.float64: np.complex128, np.float32: np.complex64}.get(part, np.ndarray)

    # Arithmetic.

    def __add__(self, other):
        w = as_complex(other, self)
        return Complex(self.real + w.real, self.imag + w.imag)

    def __radd__(self, other):
        w = as_complex(other, self)
        return Complex(w.real + self.real, w.imag + self.imag)

    def __sub__(self, other):
        w = as_complex(other, self)
        return Complex(self.real - w.real, self.imag - w.imag)

    def __rsub__(self, other):
        w = as_complex(other, self)
        return Complex(w.real - self.real, w.imag - self.imag)

    def __mul__(self, other):
        return _product(self, as_complex(other, self))

    def __rmul__(self, other):
        return _product(as_complex(other, self), self)

    def __truediv__(self, other):
        return _quotient(self, as_complex(other, self))

    def __rtruediv__(self, other):
        return _quotient(as_complex(other, self), self)

    def __matmul__(self, other):
        w = as_complex(other, self)
        return Complex(self.real @ w.real - self.imag @ w.imag, self.real @ w.imag + self.imag @ w.real)

    def __rmatmul__(self, other):
        w = as_complex(other, self)
        return Complex(w.real @ self.real - w.imag @ self.imag, w.real @ self.imag + w.imag @ self.real)

    def __pow__(self, other):
        return power(self, other)

    def __rpow__(self, other):
        return power(as_complex(other, self), self)

    def __neg__(self):
        return Complex(-self.real, -self.imag)

    def __pos__(self):
        return self

    def __abs__(self):
        return math.hypot(self.real, self.imag) if type(self.real) is float else np.hypot(self.real, self.imag)

    def __eq__(self, other):
        w = as_complex(other, self)
        return (self.real == w.real) & (self.imag == w.imag)

    def __ne__(self, other):
        w = as_complex(other, self)
        return (self.real != w.real) | (self.imag != w.imag)

    # What arrays have.

    def conj(self):
        """The conjugate."""
        return Complex(self.real, -self.imag)

    def conjugate(self):
        """The conjugate."""
        return Complex(self.real, -self.imag)

    def __getitem__(self, index):
        return Complex(self.real[index], self.imag[index])

    def __len__(self):
        return len(self.real)

    @property
    def dtype(self):
        """The dtype."""
        return COMPLEX64 if np.asarray(self.real).dtype == np.float32 else COMPLEX128

    def astype(self, dtype):
        """In the precision of which the parts have a dtype."""
        return Complex(self.real.astype(dtype), self.imag.astype(dtype))

    @property
    def shape(self):
        """The sizes of the axes."""
        return np.shape(self.real)

    @property
    def ndim(self):
        """The number of axes."""
        return np.ndim(self.real)

    @property
    def size(self):
        """The number of elements."""
        return np.size(self.real)

    @property
    def T(self):
        """The transpose."""
        return Complex(np.transpose(self.real), np.transpose(self.imag))

    def copy(self):
        """The same."""
        return Complex(self.real.copy(), self.imag.copy())

    def reshape(self, *shape):
        """With other axes."""
        return Complex(self.real.reshape(*shape), self.imag.reshape(*shape))

    def ravel(self):
        """With one axis."""
        return Complex(np.ravel(self.real), np.ravel(self.imag))

    def flatten(self):
        """With one axis."""
        return Complex(np.ravel(self.real), np.ravel(self.imag))

    def transpose(self, *axes):
        """With the axes in another order."""
        return Complex(self.real.transpose(*axes), self.imag.transpose(*axes))

    def swapaxes(self, axis1, axis2):
        """With two axes exchanged."""
        return Complex(np.swapaxes(self.real, axis1, axis2), np.swapaxes(self.imag, axis1, axis2))

    def squeeze(self, axis=None):
        """Without axes of size 1."""
        return Complex(np.squeeze(self.real, axis), np.squeeze(self.imag, axis))

    def repeat(self, repeats, axis=None):
        """With entries repeated."""
        return Complex(np.repeat(self.real, repeats, axis), np.repeat(self.imag, repeats, axis))

    def diagonal(self, offset=0):
        """The diagonal."""
        return Complex(np.diagonal(self.real, offset), np.diagonal(self.imag, offset))

    def trace(self, offset=0):
        """The sum of the diagonal."""
        return Complex(np.trace(self.real, offset), np.trace(self.imag, offset))

    def cumsum(self, axis=None):
        """The sums of the first entries."""
        return Complex(np.cumsum(self.real, axis), np.cumsum(self.imag, axis))

    def prod(self, axis=None):
        """The product."""
        return prod(self, axis)

    def dot(self, b):
        """The product of matrices or vectors."""
        return dot(self, b)

    def item(self):
        """The number."""
        return Complex(self.real.item(), self.imag.item())

    def sum(self, axis=None, *, keepdims=False):
        """The sum."""
        return total(self, axis, keepdims=keepdims)

    def mean(self, axis=None, *, keepdims=False):
        """The mean."""
        return mean(self, axis, keepdims=keepdims)


COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)


def as_complex(x, near):
    """A number or array as a complex one, in the precision of another one beside it."""
    if isinstance(x, Complex):
        return x
    if isinstance(x, list | tuple):
        unsupported("a list beside a complex array is not part of compiled code; write np.array(...)")
    if type(x) is float or type(x) is int or type(x) is bool:
        if type(near.real) is float:
            return Complex(float(x), 0.0)
        kind = np.asarray(near.real).dtype
        return Complex(np.asarray(x).astype(kind)[()], np.asarray(0.0).astype(kind)[()])
    x = np.asarray(x)
    kind = np.result_type(x, 1.0) if type(near.real) is float else np.result_type(x, np.float32(1))
    x = x.astype(np.float32 if kind == np.float16 else kind)
    return Complex(x[()], np.zeros_like(x)[()])


def _product(z, w):
    return Complex(z.real * w.real - z.imag * w.imag, z.real * w.imag + z.imag * w.real)


def _by_zero():
    """The words of this Python."""
    try:
        return str(1j / 0j)
    except ZeroDivisionError as error:
        return str(error)


BY_ZERO = _by_zero()


def _alike(z, w):
    """z in the precision of both."""
    if type(z.real) is float:
        return z
    kind = np.result_type(z.real, w.real)
    return Complex(z.real.astype(kind), z.imag.astype(kind))


def _quotient(z, w):
    """z / w as NumPy divides (R. Smith, "Algorithm 116: Complex division", 1962).

    Raises:
        ZeroDivisionError: a Python number is divided by zero.
    """
    z, w = _alike(z, w), _alike(w, z)
    wide = np.abs(w.real) >= np.abs(w.imag)
    large, small = np.where(wide, w.real, w.imag), np.where(wide, w.imag, w.real)
    ratio = np.where(large == 0, 0.0, np.true_divide(small, np.where(large == 0, 1.0, large))).astype(large.dtype)
    scale = np.true_divide(1.0, large + small * ratio).astype(large.dtype)
    zero = large == 0
    real = np.where(wide, z.real + z.imag * ratio, z.real * ratio + z.imag) * scale
    imag = np.where(wide, z.imag - z.real * ratio, z.imag * ratio - z.real) * scale
    if type(z.real) is float and type(w.real) is float:
        if w.real == 0 and w.imag == 0:
            raise ZeroDivisionError(BY_ZERO)
        return Complex(float(real), float(imag))
    magnitude = np.where(zero, np.abs(w.real), 1.0).astype(large.dtype)  # what is not used must have a derivative, too
    real = np.where(zero, np.true_divide(z.real, magnitude), real)[()]
    imag = np.where(zero, np.true_divide(z.imag, magnitude), imag)[()]
    return Complex(real, imag)


def _power(z, n):
    if n < 0:
        return 1.0 / _power(z, -n)
    if n == 0:
        one = np.ones_like(z.real)[()]
        return Complex(one, one * 0.0)
    out = z
    for _ in range(n - 1):
        out = _product(out, z)
    return out


def power(x1, x2):
    """np.power: for an int by multiplication, else exp(x2 log x1).

    Raises:
        ZeroDivisionError: a Python number 0 is raised to a power that is negative or complex.
    """
    if isinstance(x2, int):
        z = x1
        return _power(z, x2)
    z = x1 if isinstance(x1, Complex) else as_complex(x1, x2)
    w = as_complex(x2, z)
    if type(z.real) is float and type(w.real) is float:
        if w.real == 0.0 and w.imag == 0.0:
            return Complex(1.0, 0.0)
        if z.real == 0.0 and z.imag == 0.0:
            if w.imag != 0.0 or w.real < 0.0:
                raise ZeroDivisionError(ZERO_TO_POWER)
            return Complex(0.0, 0.0)
        size = math.hypot(z.real, z.imag)
        angle_ = math.atan2(z.imag, z.real)
        length = size**w.real * math.exp(-w.imag * angle_)
        turn = w.real * angle_ + w.imag * math.log(size)
        return Complex(length * math.cos(turn), length * math.sin(turn))
    z, w = _alike(z, w), _alike(w, z)
    zero = (z.real == 0) & (z.imag == 0)
    one = (w.real == 0) & (w.imag == 0)
    found = exp(_product(w, log(Complex(np.where(zero, 1.0, z.real).astype(z.real.dtype), z.imag))))
    of_zero = np.where(w.real > 0, 0.0, np.nan).astype(found.real.dtype)
    real = np.where(one, 1.0, np.where(zero, of_zero, found.real)).astype(found.real.dtype)
    imag = np.where(one, 0.0, np.where(zero, of_zero, found.imag)).astype(found.real.dtype)
    return Complex(real[()], imag[()])


def _zero_to_power():
    """The words of this Python."""
    try:
        return str(0j**-1.0)
    except ZeroDivisionError as error:
        return str(error)


ZERO_TO_POWER = _zero_to_power()


# NumPy's functions. An argument that is not complex becomes so where another one is.


def absolute(x):
    """np.abs."""
    return np.hypot(x.real, x.imag)


def angle(z, deg=False):
    """np.angle."""
    out = np.arctan2(z.imag, z.real)
    return out * (180 / np.pi) if deg else out


def real(val):
    """np.real."""
    return val.real


def imag(val):
    """np.imag."""
    return val.imag


def conjugate(x):
    """np.conj."""
    return x.conj()


def exp(x):
    """np.exp."""
    size = np.exp(x.real)
    return Complex(size * np.cos(x.imag), size * np.sin(x.imag))


def log(x):
    """np.log. Near the unit circle the logarithm of the absolute value is that of what it is off 1.

    Signs do not matter to `off`, and without absolute values it is smooth on the axes.
    """
    wide = np.abs(x.real) >= np.abs(x.imag)
    large, small = np.where(wide, x.real, x.imag), np.where(wide, x.imag, x.real)
    size = np.hypot(x.real, x.imag)
    near = (size > 0.7) & (size < 1.4)
    off = np.where(near, (large - 1.0) * (large + 1.0) + small * small, 0.0)
    away = np.log(np.where(near, 1.0, size))
    return Complex(np.where(near, 0.5 * np.log1p(off), away).astype(away.dtype)[()], np.arctan2(x.imag, x.real))


def log2(x):
    """np.log2."""
    z = log(x)
    return Complex(z.real / np.log(2.0), z.imag / np.log(2.0))


def log10(x):
    """np.log10."""
    z = log(x)
    return Complex(z.real / np.log(10.0), z.imag / np.log(10.0))


def sqrt(x):
    """np.sqrt: the root with a real part that is not negative (W. Kahan, "Branch cuts for complex elementary functions", 1987)."""
    size = np.hypot(x.real, x.imag)
    zero = size == 0
    # With the sign that each branch has, and no absolute values, which have a kink on the axes.
    right, below = x.real >= 0, np.copysign(1.0, x.imag) < 0
    along, across = np.where(right, x.real, -x.real), np.where(below, -x.imag, x.imag)
    half = np.sqrt(np.where(zero, 1.0, 0.5 * (along + size)).astype(size.dtype))
    other = across / (2.0 * half)
    real = np.where(zero, 0.0, np.where(right, half, other))
    imag = np.where(zero, 0.0, np.where(right, other, half))
    endless = np.isinf(x.imag)
    real = np.where(endless, np.inf, real).astype(size.dtype)
    imag = np.where(endless, np.inf, imag).astype(size.dtype)
    imag = np.where(below, -imag, imag)
    return Complex(real[()], imag[()])


def sin(x):
    """np.sin."""
    return Complex(np.sin(x.real) * np.cosh(x.imag), np.cos(x.real) * np.sinh(x.imag))


def cos(x):
    """np.cos."""
    return Complex(np.cos(x.real) * np.cosh(x.imag), -np.sin(x.real) * np.sinh(x.imag))


def sinh(x):
    """np.sinh."""
    return Complex(np.sinh(x.real) * np.cos(x.imag), np.cosh(x.real) * np.sin(x.imag))


def cosh(x):
    """np.cosh."""
    return Complex(np.cosh(x.real) * np.cos(x.imag), np.sinh(x.real) * np.sin(x.imag))


def tanh(x):
    """np.tanh, without sizes that overflow (W. Kahan, as for the square root)."""
    far = np.abs(x.real) > 20
    inner = np.where(far, 0.0, x.real).astype(x.real.dtype)
    s, c = np.sinh(inner), np.cos(x.imag)
    below = c * c + s * s
    real = np.where(far, np.copysign(1.0, x.real), np.cosh(inner) * s / below).astype(x.real.dtype)
    tail = 4.0 * np.sin(x.imag) * c * np.exp(-2.0 * np.abs(x.real))
    imag = np.where(far, tail, np.sin(x.imag) * c / below).astype(x.real.dtype)
    return Complex(real[()], imag[()])


def tan(x):
    """np.tan: -i tanh(i x)."""
    z = tanh(Complex(-x.imag, x.real))
    return Complex(z.imag, -z.real)


def reciprocal(x):
    """np.reciprocal."""
    return 1.0 / x


def negative(x):
    """np.negative."""
    return -x


def isnan(x):
    """np.isnan."""
    return np.isnan(x.real) | np.isnan(x.imag)


def isinf(x):
    """np.isinf."""
    return np.isinf(x.real) | np.isinf(x.imag)


def isfinite(x):
    """np.isfinite."""
    return np.isfinite(x.real) & np.isfinite(x.imag)


def equal(x1, x2):
    """np.equal."""
    return x1 == x2


def not_equal(x1, x2):
    """np.not_equal."""
    return x1 != x2


def allclose(a, b, rtol=1e-5, atol=1e-8):
    """np.allclose."""
    return bool(np.all(np.abs(a - b) <= atol + rtol * np.abs(b)))


def ndim(a):
    """np.ndim."""
    return a.ndim


def shape(a):
    """np.shape."""
    return a.shape


def size(a):
    """np.size."""
    return a.size


def iscomplex(x):
    """np.iscomplex."""
    return np.imag(x) != 0


def isreal(x):
    """np.isreal."""
    return np.imag(x) == 0


def iscomplexobj(x):
    """np.iscomplexobj."""
    return True


def square(x):
    """np.square."""
    return _product(x, x)


def total(a, axis=None, *, keepdims=False):
    """np.sum."""
    return Complex(np.sum(a.real, axis=axis, keepdims=keepdims), np.sum(a.imag, axis=axis, keepdims=keepdims))


def mean(a, axis=None, *, keepdims=False):
    """np.mean."""
    return Complex(np.mean(a.real, axis=axis, keepdims=keepdims), np.mean(a.imag, axis=axis, keepdims=keepdims))


def roll(a, shift, axis=None):
    """np.roll."""
    return Complex(np.roll(a.real, shift, axis=axis), np.roll(a.imag, shift, axis=axis))


def reshape(a, shape):
    """np.reshape."""
    return Complex(np.reshape(a.real, shape), np.reshape(a.imag, shape))


def transpose(a, axes=None):
    """np.transpose."""
    return Complex(np.transpose(a.real, axes), np.transpose(a.imag, axes))


def moveaxis(a, source, destination):
    """np.moveaxis."""
    return Complex(np.moveaxis(a.real, source, destination), np.moveaxis(a.imag, source, destination))


def where(condition, x, y):
    """np.where."""
    near = x if isinstance(x, Complex) else y
    z, w = as_complex(x, near), as_complex(y, near)
    return Complex(np.where(condition, z.real, w.real), np.where(condition, z.imag, w.imag))


def zeros_like(a, dtype=None, *, shape=None):
    """np.zeros_like, np.empty_like."""
    if dtype is not None:
        return np.zeros_like(a.real, dtype, shape=shape)
    return Complex(np.zeros_like(a.real, shape=shape), np.zeros_like(a.imag, shape=shape))


def ones_like(a, dtype=None, *, shape=None):
    """np.ones_like."""
    if dtype is not None:
        return np.ones_like(a.real, dtype, shape=shape)
    return Complex(np.ones_like(a.real, shape=shape), np.zeros_like(a.imag, shape=shape))


def full_like(a, fill_value, dtype=None, *, shape=None):
    """np.full_like."""
    w = as_complex(fill_value, a)
    return Complex(np.full_like(a.real, w.real, shape=shape), np.full_like(a.imag, w.imag, shape=shape))


def ravel(a):
    """np.ravel."""
    return a.ravel()


def asarray(a):
    """np.asarray."""
    return Complex(np.asarray(a.real), np.asarray(a.imag))


def add(x1, x2):
    """np.add."""
    return x1 + x2


def subtract(x1, x2):
    """np.subtract."""
    return x1 - x2


def multiply(x1, x2):
    """np.multiply."""
    return x1 * x2


def divide(x1, x2):
    """np.divide."""
    return x1 / x2


def matmul(x1, x2):
    """np.matmul."""
    return x1 @ x2


def prod(a, axis=None):
    """np.prod."""
    if axis is None:
        return _prod_of_rows(np.ravel(a))
    return _prod_of_rows(np.moveaxis(a, axis, 0))


def _prod_of_rows(z):
    out = Complex(np.ones_like(z.real[0]), np.zeros_like(z.imag[0])) if len(z) == 0 else z[0]
    for k in range(1, len(z)):
        out = _product(out, z[k])
    return out


def cumsum(a, axis=None):
    """np.cumsum."""
    return a.cumsum(axis)


def dot(a, b):
    """np.dot."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return a * b
    z = a if isinstance(a, Complex) else as_complex(a, b)
    w = as_complex(b, z)
    return Complex(np.dot(z.real, w.real) - np.dot(z.imag, w.imag), np.dot(z.real, w.imag) + np.dot(z.imag, w.real))


def inner(a, b):
    """np.inner."""
    z = a if isinstance(a, Complex) else as_complex(a, b)
    w = as_complex(b, z)
    return Complex(
        np.inner(z.real, w.real) - np.inner(z.imag, w.imag), np.inner(z.real, w.imag) + np.inner(z.imag, w.real)
    )


def vdot(a, b):
    """np.vdot."""
    z = a if isinstance(a, Complex) else as_complex(a, b)
    w = as_complex(b, z)
    return dot(ravel(z).conj(), ravel(w))


def outer(a, b):
    """np.outer."""
    z = a if isinstance(a, Complex) else as_complex(a, b)
    w = as_complex(b, z)
    return reshape(z, (-1, 1)) * reshape(w, (1, -1))


def norm(x, ord=None, axis=None, keepdims=False):
    """np.linalg.norm, where it depends on the absolute values of the entries."""
    if ord is not None and ord != "fro" and not (x.ndim == 1 or isinstance(axis, int)):
        unsupported("np.linalg.norm of a complex matrix is the Frobenius norm only in compiled code")
    return np.linalg.norm(absolute(x), ord, axis, keepdims)


def _as_real(z):
    """The real matrix that does to real and imaginary parts, one behind the other, what a complex matrix does."""
    above = np.concatenate([z.real, -z.imag], axis=-1)
    return np.concatenate([above, np.concatenate([z.imag, z.real], axis=-1)], axis=-2)


def inv(a):
    """np.linalg.inv, by that of a real matrix of twice the size."""
    n = a.shape[-1]
    both = np.linalg.inv(_as_real(a))
    return Complex(both[..., :n, :n], both[..., n:, :n])


def solve(a, b):
    """np.linalg.solve, by a real system of twice the size."""
    z = a if isinstance(a, Complex) else as_complex(a, b)
    w = as_complex(b, z)
    n = z.shape[-1]
    if np.ndim(w.real) == 1:
        both = np.linalg.solve(_as_real(z), np.concatenate([w.real, w.imag]))
        return Complex(both[:n], both[n:])
    both = np.linalg.solve(_as_real(z), np.concatenate([w.real, w.imag], axis=-2))
    return Complex(both[..., :n, :], both[..., n:, :])


# Sequences of numbers and arrays of which some are complex.


def _reals(x):
    if isinstance(x, list | tuple):
        return [_reals(part) for part in x]
    return x.real if isinstance(x, Complex) else x


def _imags(x):
    if isinstance(x, list | tuple):
        return [_imags(part) for part in x]
    return x.imag if isinstance(x, Complex) else np.zeros_like(x)[()]


def array(object):
    """np.array, np.asarray."""
    x, y = _reals(object), _imags(object)
    return Complex(1.0 * np.array(x), 1.0 * np.array(y))


def concatenate(arrays, axis=0):
    """np.concatenate."""
    return Complex(np.concatenate(_reals(arrays), axis), np.concatenate(_imags(arrays), axis))


def stack(arrays, axis=0):
    """np.stack."""
    return Complex(np.stack(_reals(arrays), axis), np.stack(_imags(arrays), axis))


def hstack(tup):
    """np.hstack."""
    return Complex(np.hstack(_reals(tup)), np.hstack(_imags(tup)))


def vstack(tup):
    """np.vstack."""
    return Complex(np.vstack(_reals(tup)), np.vstack(_imags(tup)))


def column_stack(tup):
    """np.column_stack."""
    return Complex(np.column_stack(_reals(tup)), np.column_stack(_imags(tup)))


def diag(v, k=0):
    """np.diag."""
    return Complex(np.diag(v.real, k), np.diag(v.imag, k))


def diagonal(a, offset=0):
    """np.diagonal."""
    return a.diagonal(offset)


def trace(a, offset=0):
    """np.trace."""
    return a.trace(offset)


def flip(m, axis=None):
    """np.flip."""
    return Complex(np.flip(m.real, axis), np.flip(m.imag, axis))


def repeat(a, repeats, axis=None):
    """np.repeat."""
    return a.repeat(repeats, axis)


def tile(A, reps):
    """np.tile."""
    return Complex(np.tile(A.real, reps), np.tile(A.imag, reps))


def expand_dims(a, axis):
    """np.expand_dims."""
    return Complex(np.expand_dims(a.real, axis), np.expand_dims(a.imag, axis))


def squeeze(a, axis=None):
    """np.squeeze."""
    return a.squeeze(axis)


def swapaxes(a, axis1, axis2):
    """np.swapaxes."""
    return a.swapaxes(axis1, axis2)


def broadcast_to(array, shape):
    """np.broadcast_to."""
    return Complex(np.broadcast_to(array.real, shape), np.broadcast_to(array.imag, shape))


def copy(a):
    """np.copy."""
    return a.copy()


def tril(m, k=0):
    """np.tril."""
    return Complex(np.tril(m.real, k), np.tril(m.imag, k))


def triu(m, k=0):
    """np.triu."""
    return Complex(np.triu(m.real, k), np.triu(m.imag, k))


# Arrays of a complex dtype; `dtype` is that of the parts.


def full(shape, fill_value, dtype):
    """np.full."""
    if isinstance(fill_value, Complex):
        return Complex(np.full(shape, fill_value.real, dtype), np.full(shape, fill_value.imag, dtype))
    return Complex(np.full(shape, fill_value, dtype), np.zeros(shape, dtype))


def full_like_of(a, fill_value, dtype):
    """np.full_like."""
    return full(np.shape(a), fill_value, dtype)


def full_of(shape, fill_value, dtype=None):
    """np.full, of a complex number."""
    if dtype is not None:
        unsupported("np.full: a complex number does not fit into an array of another dtype; write its .real")
    x, y = np.asarray(fill_value.real), np.asarray(fill_value.imag)
    return Complex(np.full(shape, x), np.full(shape, y))


def array_of(object, dtype):
    """np.array, np.asarray, `x.astype`."""
    if isinstance(object, Complex):
        return Complex(object.real.astype(dtype), object.imag.astype(dtype))
    x, y = np.asarray(_reals(object)), np.asarray(_imags(object))
    return Complex(x.astype(dtype), y.astype(dtype))


def number_of(real=0.0, imag=0.0):
    """`complex(x, y)`."""
    if isinstance(real, Complex):
        if isinstance(imag, Complex):
            return Complex(float(real.real - imag.imag), float(real.imag + imag.real))
        return Complex(float(real.real), float(real.imag) + float(imag))
    if isinstance(imag, Complex):
        return Complex(float(real) - float(imag.imag), float(imag.real))
    return Complex(float(real), float(imag))


COMPLEX: dict[Callable, Callable] = {
    np.abs: absolute, np.angle: angle, np.real: real, np.imag: imag, np.conj: conjugate, np.exp: exp, np.square: square,
    np.log: log, np.log2: log2, np.log10: log10, np.sqrt: sqrt, np.sin: sin, np.cos: cos, np.tan: tan, np.sinh: sinh,
    np.cosh: cosh, np.tanh: tanh, np.power: power, np.reciprocal: reciprocal, np.negative: negative, np.isnan: isnan,
    np.isinf: isinf, np.isfinite: isfinite, np.equal: equal, np.not_equal: not_equal, np.allclose: allclose,
    np.iscomplexobj: iscomplexobj, np.iscomplex: iscomplex, np.isreal: isreal,
    np.sum: total, np.mean: mean, np.prod: prod, np.cumsum: cumsum, np.roll: roll,
    np.reshape: reshape, np.transpose: transpose, np.moveaxis: moveaxis, np.where: where, np.zeros_like: zeros_like,
    np.empty_like: zeros_like, np.ones_like: ones_like, np.full_like: full_like, np.ravel: ravel, np.asarray: asarray,
    np.array: asarray, np.copy: asarray, np.add: add, np.subtract: subtract, np.multiply: multiply, np.divide: divide,
    np.matmul: matmul, np.dot: dot, np.inner: inner, np.vdot: vdot, np.outer: outer, np.linalg.norm: norm, np.linalg.inv: inv,
    np.linalg.solve: solve, np.diag: diag, np.diagonal: diagonal, np.trace: trace, np.flip: flip, np.repeat: repeat,
    np.tile: tile, np.expand_dims: expand_dims, np.squeeze: squeeze, np.swapaxes: swapaxes, np.broadcast_to: broadcast_to,
    np.tril: tril, np.triu: triu, np.ndim: ndim, np.shape: shape, np.size: size, np.full: full_of,
}  # fmt: skip
"""A function of NumPy -> what it means where an argument is complex."""

OF_SEQUENCES: dict[Callable, Callable] = {
    np.array: array, np.asarray: array, np.concatenate: concatenate, np.stack: stack, np.hstack: hstack, np.vstack: vstack,
    np.column_stack: column_stack,
}  # fmt: skip
"""A function of NumPy -> what it means where its first argument is a sequence that has complex entries."""

OF_DTYPE: dict[Callable, Callable] = {
    np.full: full, np.full_like: full_like_of, np.array: array_of, np.asarray: array_of,
}  # fmt: skip
"""A function of NumPy -> what it means with a complex dtype; it is given the dtype of the parts."""


REAL = frozenset((np.zeros, np.empty, np.ones, np.eye, np.identity, np.zeros_like, np.empty_like, np.ones_like))
"""Functions of NumPy that make real arrays, also of a complex dtype."""


def part_dtype(value: Any) -> type | None:
    """The dtype of the parts of numbers of a complex dtype; None for other dtypes and objects."""
    if not isinstance(value, type | np.dtype) and not (isinstance(value, str) and value[:1] in ("c", "D", "F")):
        return None
    try:
        dtype = np.dtype(value)
    except TypeError:
        return None
    return {COMPLEX64: np.float32, COMPLEX128: np.float64}.get(dtype)
