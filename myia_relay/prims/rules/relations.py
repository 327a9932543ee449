"""Type relations that many primitives share: operand checks, broadcasting, the kind of a result.

Input: abstract types. Output: an abstract type, or a `TypeError_` or `ShapeError` that shows the types at hand. The
error has no place: the builder adds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.dims import Dim, DimLike
from ...abstract.types import FLOATS, INTS, Array, Leaf, Scalar, Type, numpy_dtype
from ...ir.build import Var, type_of_constant
from ...utils.errors import ShapeError, TypeError_

BOOLS = ("bool",)
NUMBERS = FLOATS + INTS
ANY = NUMBERS + BOOLS
BITS = INTS + BOOLS


def type_of(x) -> Any:  # as of `Var`
    """The type of a staged value or of a number: rules run on both."""
    return x.type if isinstance(x, Var) else type_of_constant(x)


def shape_of(x) -> tuple[DimLike, ...]:
    """The shape of a staged value or of a number."""
    return type_of(x).shape


def dtype_of(x) -> str:
    """The dtype name of a staged value or of a number."""
    return type_of(x).dtype


def const_like(x, value):
    """A scalar constant of the dtype of `x` (and weak where `x` is a Python number)."""
    if isinstance(x, Var):
        return x.const(value)
    return value if isinstance(x, bool | int | float) else numpy_dtype(dtype_of(x)).type(value)


def show_shape(shape) -> str:
    """A shape as Python writes it: ``(2, 3)``, ``(n,)``."""
    inner = ", ".join(map(str, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def require(name: str, t: Type, accepts: tuple[str, ...]) -> Leaf:
    """`t` itself, if it is a number or array of one of these dtypes.

    Raises:
        TypeError_: it is not.
    """
    if not isinstance(t, Scalar | Array):
        raise TypeError_(f"{name} takes numbers and arrays, and this is {t}")
    if t.dtype not in accepts:
        names = {
            FLOATS: "floats",
            INTS: "integers",
            NUMBERS: "numbers",
            BOOLS: "booleans",
            BITS: "integers and booleans",
        }
        advice = "; convert it with .astype(...) or float(...)" if accepts == FLOATS else ""
        raise TypeError_(f"{name} takes {names.get(accepts, ', '.join(accepts))}, and this is {t}{advice}")
    return t


def require_array(name: str, t: Type, ndim: int | None = None, accepts: tuple[str, ...] = ANY) -> Array:
    """`t` itself, if it is an array with this many axes.

    Raises:
        TypeError_: it is no number or array, or of another dtype.
        ShapeError: it is no array, or has another number of axes.
    """
    require(name, t, accepts)
    if not isinstance(t, Array) or (ndim is not None and len(t.shape) != ndim):
        wanted = "an array" if ndim is None else f"an array with {ndim} axes"
        raise ShapeError(f"{name} takes {wanted}, and this is {t}")
    return t


def same_dtype(name: str, *types: Leaf) -> str:
    """The common dtype of strict operands. A difference is a bug of the layer above, which promotes.

    Raises:
        TypeError_: they differ.
    """
    dtypes = {t.dtype for t in types}
    if len(dtypes) != 1:
        raise TypeError_(f"{name} of different dtypes: {', '.join(map(str, types))}; convert one with .astype(...)")
    return dtypes.pop()


def same_size(a: DimLike, b: DimLike) -> bool:
    """Whether two dimensions are the same for sure."""
    return a == b


def broadcast_shapes(name: str, *shapes) -> tuple[DimLike, ...]:
    """The shape that shapes broadcast to, as NumPy has it; equal symbols match, a size 1 meets anything.

    Raises:
        ShapeError: naming the shapes and the axis. A symbol meets another size only if that is 1: whether "n"
            happens to be 3 is not known when compiling.
    """
    rank = max((len(s) for s in shapes), default=0)
    out: list[DimLike] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if same_size(out[axis], size) or same_size(size, 1):
                continue
            if same_size(out[axis], 1):
                out[axis] = size
                continue
            text = " and ".join(show_shape(s) for s in shapes if s != ())
            why = f"sizes {out[axis]} and {size} meet in axis {axis - rank}"
            if isinstance(size, Dim) or isinstance(out[axis], Dim):
                why += "; sizes with different names are different sizes: use one name for both, or none"
            raise ShapeError(f"{name}: shapes {text} do not broadcast: {why}")
    return tuple(out)


def join_kind(dtype: str, shape, *types: Leaf) -> Leaf:
    """An array if any operand is one, else a NumPy scalar, or a Python number if all operands are."""
    if any(isinstance(t, Array) for t in types):
        return Array(dtype, tuple(shape))
    weak = all(isinstance(t, Scalar) and t.weak for t in types) and dtype in ("int64", "float64", "bool")
    return Scalar(dtype, weak)


def array_or_scalar(dtype: str, shape) -> Leaf:
    """What NumPy makes of a computed shape: an array, or a NumPy scalar where no axis is left."""
    return Array(dtype, tuple(shape)) if shape else Scalar(dtype)


def axis_number(name: str, axis) -> int:
    """An axis as a user gives it, as an int; NumPy takes no booleans and no floats there.

    Raises:
        TypeError_: it is no int that is known at compile time.
    """
    if isinstance(axis, bool | np.bool_) or not isinstance(axis, int | np.integer):
        raise TypeError_(f"{name}: an axis is an int known at compile time, and this is {axis!r}")
    return int(axis)


def normalise_axis(name: str, axis: int, shape: tuple[DimLike, ...], new: int = 0) -> int:
    """A non-negative axis of an array of a shape, or of one with `new` more axes.

    Raises:
        TypeError_: it is no int that is known at compile time.
        ShapeError: it is out of bounds.
    """
    number, ndim = axis_number(name, axis), len(shape) + new
    if not -ndim <= number < ndim:
        grown = f" with {new} more ax{'is' if new == 1 else 'es'}" if new else ""
        raise ShapeError(
            f"{name}: axis {number} is out of bounds for array of dimension {ndim}; the shape is {show_shape(shape)}{grown}"
        )
    return number % ndim


def normalise_axes(name: str, axes, shape: tuple[DimLike, ...]) -> tuple[int, ...]:
    """Sorted non-negative axes of an array of a shape; None means all of them, an int one.

    Raises:
        TypeError_: one is no int that is known at compile time.
        ShapeError: one is out of bounds, or given twice.
    """
    if axes is None:
        return tuple(range(len(shape)))
    axes = axes if isinstance(axes, tuple) else (axes,)
    out = tuple(sorted(normalise_axis(name, a, shape) for a in axes))
    if len(set(out)) != len(out):
        raise ShapeError(f"{name}: duplicate axis in {axes}; the shape is {show_shape(shape)}")
    return out
