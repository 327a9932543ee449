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
        if not isinstance(other, int):
            unsupported("a complex number is raised to integers only in compiled code")
        return _power(self, other)

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

    def sum(self, axis=None, *, keepdims=False):
        """The sum."""
        return total(self, axis, keepdims=keepdims)

    def mean(self, axis=None, *, keepdims=False):
        """The mean."""
        return mean(self, axis, keepdims=keepdims)


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
    magnitude = np.abs(w.real)
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


def zeros_like(a):
    """np.zeros_like."""
    return Complex(np.zeros_like(a.real), np.zeros_like(a.imag))


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


COMPLEX: dict[Callable, Callable] = {
    np.abs: absolute, np.angle: angle, np.real: real, np.imag: imag, np.conj: conjugate, np.exp: exp, np.square: square,
    np.sum: total, np.mean: mean, np.roll: roll, np.reshape: reshape, np.transpose: transpose, np.moveaxis: moveaxis,
    np.where: where, np.zeros_like: zeros_like, np.ravel: ravel, np.asarray: asarray, np.array: asarray, np.copy: asarray,
    np.add: add, np.subtract: subtract, np.multiply: multiply, np.divide: divide, np.matmul: matmul,
}  # fmt: skip
"""A function of NumPy -> what it means where an argument is complex."""
