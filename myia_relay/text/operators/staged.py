"""What implementations of operators share: arguments as arrays, constants, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...abstract.dims import DimLike, product
from ...abstract.types import Array, Struct, numpy_dtype
from ...ir.build import Builder, Var
from ...prims.api.promotion import astype, size_value, strong, unwrap
from ...prims.ops.shape import iota, slice_, transpose
from ...prims.ops.shape import pad as pad_prim
from ...prims.rules.broadcast import as_array, reshape
from ...utils.errors import ShapeError


def array(x: Var) -> Var:
    """An argument as an array; one without axes too."""
    x = strong(x)
    return x if isinstance(x.type, Array) else as_array(x)


def arrays(b: Builder, data: Any) -> list[Var]:
    """An argument that is a tuple, as arrays."""
    if isinstance(data, Var) and isinstance(data.type, Struct):
        return [array(data[k]) for k in range(len(data.type.elems))]
    return [array(x) for x in data]


def finished(x: Var) -> Var:
    """A result: a number where it has no axes."""
    return unwrap(x)


def constant(b: Builder, value: Any, dtype: str) -> Var:
    """A number or an array that is known."""
    return b.var(b.constant(np.asarray(value, numpy_dtype(dtype))[()]))


def reshaped(x: Var, shape: Sequence[DimLike]) -> Var:
    """An array in another shape."""
    return x if tuple(shape) == x.shape else reshape(x, shape=tuple(shape))


def permuted(x: Var, perm: Sequence[int]) -> Var:
    """An array with its axes in another order."""
    return x if list(perm) == list(range(x.ndim)) else transpose(x, perm=tuple(perm))


def cut(x: Var, axis: int, start: int, size: DimLike, step: int = 1) -> Var:
    """A stretch of an axis."""
    starts, steps = [0] * x.ndim, [1] * x.ndim
    starts[axis], steps[axis] = start, step
    sizes = tuple(size if k == axis else d for k, d in enumerate(x.shape))
    return slice_(x, starts=tuple(starts), sizes=sizes, steps=tuple(steps))


def padded(x: Var, sides: Sequence[tuple[int, int]], value: Any = 0, interior: Sequence[int] | None = None) -> Var:
    """An array with a value around its last axes, and between their elements.

    Args:
        x: the array.
        sides: before and after, for each of the last axes.
        value: a number, or a staged one.
        interior: how many between the elements of each of these axes.
    """
    spaces = tuple(interior) if interior is not None else (0,) * len(sides)
    if not any(a or b for a, b in sides) and not any(spaces):
        return x
    lead = (0,) * (x.ndim - len(sides))
    fill = value if isinstance(value, Var) else constant(x.builder, value, x.dtype)
    low, high = lead + tuple(a for a, _ in sides), lead + tuple(c for _, c in sides)
    return pad_prim(x, fill, low=low, high=high, interior=lead + spaces)


def number_of(b: Builder, sizes: Sequence[DimLike], dtype: str) -> Var:
    """The product of sizes as a number."""
    return astype(size_value(b, product(sizes)), dtype)


def known(x: Var, axes: Sequence[int], name: str) -> tuple[int, ...]:
    """Sizes of axes, as ints.

    Raises:
        ShapeError: one is not known when compiling.
    """
    sizes = tuple(x.shape[k] for k in axes)
    if not all(isinstance(s, int) for s in sizes):
        raise ShapeError(f"{name} needs to know the sizes of its axes {list(axes)} when compiling; they are {sizes}")
    return tuple(int(s) for s in sizes if isinstance(s, int))


def require_sizes(name: str, have: Sequence[DimLike], want: Sequence[DimLike], what: str) -> None:
    """Demand sizes.

    Raises:
        ShapeError: they are others.
    """
    if len(have) != len(want) or any(h != w for h, w in zip(have, want, strict=True)):
        raise ShapeError(f"{name}: {what} has the shape {tuple(have)}, and {tuple(want)} is needed")


def places_of(b: Builder, size: DimLike) -> Var:
    """The numbers 0, 1, ... of the places along an axis, int64."""
    return b.var(b.emit(iota, (), {"n": size, "dtype": "int64"}))
