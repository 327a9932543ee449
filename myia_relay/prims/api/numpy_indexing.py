"""NumPy's functions that pick elements of arrays: by positions, along diagonals."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import never_negative, product
from ...abstract.types import INTS
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.indexing import take
from ..ops.reduction import reduce_any, reduce_sum
from ..ops.shape import pad, slice_
from ..rules.broadcast import nullary, reshape
from ..rules.relations import normalise_axis, show_shape
from .implementations import implements, method
from .numpy_shape import array_of, distinct_axes, ravel
from .products import permuted
from .promotion import guard, operand, python, size_value, static_index
from .subscripts import checked_positions, getitem


@implements(np.take, static=("axis",))
def numpy_take(b: Builder, a, indices, axis=None) -> Var:
    """np.take with NumPy's bounds check.

    Raises:
        TypeError_: the positions are no ints.
    """
    x, i = array_of(b, a, "np.take"), operand(b, indices, "np.take")
    if i.dtype not in INTS and i.shape != (0,):
        raise TypeError_(f"np.take: positions are ints, and these are {i.type}")
    if axis is None:
        x, axis = ravel(b, x), 0
    axis = normalise_axis("np.take", axis, x.shape)
    size = x.shape[axis]
    if 0 not in i.shape and (size == 0 if isinstance(size, int) else not never_negative(size - 1)):
        anything = P.logical_or(
            P.ne(size_value(b, size), python(b, 0)), P.eq(size_value(b, product(i.shape)), python(b, 0))
        )
        guard(b, anything, IndexError, "cannot do a non-empty take from an empty axes.")
    if i.shape == ():
        return getitem(b, x, (slice(None),) * axis + (i,))
    return take(x, checked_positions(b, i, x.shape[axis], axis), axis=axis)


method("take", static=("axis",))(numpy_take)


@implements(np.take_along_axis, static=("axis",))
def take_along_axis(b: Builder, arr, indices, axis=-1) -> Var:
    """np.take_along_axis: along an axis by positions of its own for each place of the others.

    Raises:
        TypeError_: the positions are no ints.
        ShapeError: the arrays differ in the number of axes.
    """
    name = "np.take_along_axis"
    x, i = array_of(b, arr, name), array_of(b, indices, name)
    if i.dtype not in INTS:
        raise TypeError_(f"{name}: positions are ints, and these are {i.type}")
    if axis is None:
        x, axis = ravel(b, x), 0
    axis = normalise_axis(name, axis, x.shape)
    if i.ndim != x.ndim:
        raise ShapeError(
            f"{name}: arrays of shapes {show_shape(x.shape)} and {show_shape(i.shape)} have different numbers of axes"
        )
    index = []
    for k, size in enumerate(x.shape):
        own = nullary(x, "iota", n=size, dtype="int64")
        index.append(i if k == axis else reshape(own, shape=tuple(size if j == k else 1 for j in range(x.ndim))))
    return getitem(b, x, index[0] if x.ndim == 1 else tuple(index))


# Diagonals.


@implements(np.diagonal, static=("offset", "axis1", "axis2"))
def diagonal(b: Builder, a, offset=0, axis1=0, axis2=1) -> Var:
    """np.diagonal: as a new last axis.

    Raises:
        TypeError_: the matrix is not square, and its sizes are symbolic.
    """
    x = array_of(b, a, "np.diagonal")
    offset = static_index(offset, "np.diagonal: offset")
    i, j = distinct_axes("np.diagonal", (axis1, axis2), x)
    rest = tuple(k for k in range(x.ndim) if k not in (i, j))
    x = permuted(x, (*rest, i, j))
    *outer, n, m = x.shape
    if offset == 0 and n == m:
        size = n
    elif isinstance(n, int) and isinstance(m, int):
        size = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    else:
        raise TypeError_("np.diagonal needs a square matrix, or sizes known at compile time")
    first = offset if offset >= 0 else -offset * m
    if not isinstance(m, int):
        return _symbolic_diagonal(x, outer, n)
    flat, zeros = reshape(x, shape=(*outer, n * m)), (0,) * len(outer)
    return slice_(flat, starts=(*zeros, first), sizes=(*outer, size), steps=(*(1,) * len(outer), m + 1))


def _symbolic_diagonal(x: Var, outer, n) -> Var:
    own = nullary(x, "iota", n=n, dtype="int64")
    on = P.eq(reshape(own, shape=(n, 1)), own)
    if x.dtype == "bool":
        return reduce_any(P.logical_and(on, x), axes=(len(outer) + 1,))
    return reduce_sum(P.where(on, x, x.const(0)), axes=(len(outer) + 1,))


method("diagonal", static=("offset", "axis1", "axis2"))(diagonal)


@implements(np.diag, static=("k",))
def diag(b: Builder, v, k=0) -> Var:
    """np.diag: the diagonal of a matrix, or a matrix with this diagonal.

    Raises:
        ShapeError: it is neither a vector nor a matrix.
    """
    x, k = array_of(b, v, "np.diag"), static_index(k, "np.diag: k")
    if x.ndim == 2:
        return diagonal(b, x, k)
    if x.ndim != 1:
        raise ShapeError(f"np.diag takes a vector or a matrix, and this is {x.type}")
    size = x.shape[0] + abs(k)
    anchor = nullary(x, "iota", n=size, dtype="int64")
    on = P.eq(P.add(reshape(anchor, shape=(size, 1)), anchor.const(k)), anchor)
    padded = x if k == 0 else pad(x, x.const(0), low=(max(k, 0),), high=(max(-k, 0),), interior=(0,))
    return P.where(on, padded, x.const(0))


__all__ = ["diagonal", "numpy_take"]
