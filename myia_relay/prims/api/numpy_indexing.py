"""NumPy's functions that pick elements of arrays by positions, take arrays apart, and put borders around them."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import Dim, DimLike, never_negative, product
from ...abstract.types import INTS, Array
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.indexing import take
from ..ops.reduction import reduce_any, reduce_sum
from ..ops.shape import concatenate, pad, slice_
from ..rules.broadcast import full, nullary, reshape
from ..rules.relations import normalise_axis, show_shape
from .implementations import implements, method
from .numpy_shape import array_of, distinct_axes, parts, ravel
from .products import permuted
from .promotion import (
    fit,
    guard,
    operand,
    python,
    size_value,
    static_index,
    static_int,
    static_size,
    strong,
    unwrap,
    weak,
)
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


# Parts and borders.


def _split(b: Builder, ary, indices_or_sections, axis, equal: bool, name: str) -> list[Var]:
    """An array in parts.

    Raises:
        TypeError_: how many parts there are is computed.
    """
    given = indices_or_sections
    if isinstance(given, tuple | list | np.ndarray):
        bounds = [static_int(v) for v in given]
        if all(isinstance(v, int) for v in bounds):
            return parts(b, ary, bounds, axis, equal, name)
        x = array_of(b, ary, name)
        before = (slice(None),) * normalise_axis(name, axis, x.shape)
        ends = [None, *given, None]
        return [getitem(b, x, (*before, slice(lo, hi))) for lo, hi in zip(ends, ends[1:])]
    count = static_int(given)
    if not isinstance(count, int):
        what = "the bounds are a list of known length" if isinstance(getattr(given, "type", None), Array) else ""
        what = what or "the number of parts must be known at compile time, or be a list of bounds"
        raise TypeError_(f"{name}: {what}; equal parts are the rows of x.reshape(count, -1)")
    return parts(b, ary, count, axis, equal, name)


@implements(np.split, static=("axis",))
def split(b: Builder, ary, indices_or_sections, axis=0) -> list[Var]:
    """np.split."""
    return _split(b, ary, indices_or_sections, axis, True, "np.split")


@implements(np.array_split, static=("axis",))
def array_split(b: Builder, ary, indices_or_sections, axis=0) -> list[Var]:
    """np.array_split."""
    return _split(b, ary, indices_or_sections, axis, False, "np.array_split")


@implements(np.hsplit)
def hsplit(b: Builder, ary, indices_or_sections) -> list[Var]:
    """np.hsplit."""
    return _split(b, ary, indices_or_sections, 0 if array_of(b, ary, "np.hsplit").ndim == 1 else 1, True, "np.hsplit")


@implements(np.vsplit)
def vsplit(b: Builder, ary, indices_or_sections) -> list[Var]:
    """np.vsplit of an array with at least two axes.

    Raises:
        ShapeError: it has fewer.
    """
    if array_of(b, ary, "np.vsplit").ndim < 2:
        raise ShapeError("vsplit only works on arrays of 2 or more dimensions")
    return _split(b, ary, indices_or_sections, 0, True, "np.vsplit")


MODES = ("constant", "edge", "wrap", "reflect", "symmetric")


@implements(np.pad, static=("mode",))
def numpy_pad(b: Builder, array, pad_width, mode="constant", *, constant_values=None) -> Var:
    """np.pad with a constant, or with what the array repeats.

    Raises:
        TypeError_: another mode, widths that are no natural numbers, or more than one value.
    """
    if mode not in MODES:
        known = ", ".join(MODES)
        raise TypeError_(f"np.pad with mode={mode!r} is not supported, only {known}; concatenate the border yourself")
    x = array_of(b, array, "np.pad")
    widths = _widths(b, x, pad_width)
    if mode != "constant":
        if constant_values is not None:
            raise TypeError_(f"unsupported keyword arguments for mode '{mode}': constant_values")
        for axis, (low, high) in enumerate(widths):
            if (low, high) != (0, 0):
                x = take(x, _sources(b, x, axis, low, high, mode), axis=axis)
        return x
    value = operand(b, 0 if constant_values is None else constant_values, "np.pad: constant_values")
    if value.shape:
        raise TypeError_("np.pad takes one number as constant_values in compiled code; pad several times")
    if value.type.is_float:  # NumPy stores it: unsigned integers wrap, signed ones go through a Python int
        value = weak(value, "float64") if x.dtype in INTS and not x.dtype.startswith("u") else strong(value)
    value = unwrap(fit(b, value, x.dtype))
    if not any(isinstance(w, Dim) for pair in widths for w in pair):
        low, high = (tuple(w[k] for w in widths) for k in (0, 1))
        return pad(x, value, low=low, high=high, interior=(0,) * x.ndim)
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            shapes = [(*x.shape[:axis], w, *x.shape[axis + 1 :]) for w in pair]
            low, high = (full(value, shape=shape) for shape in shapes)
            x = concatenate(low, x, high, axis=axis)
    return x


def _widths(b: Builder, x: Var, pad_width) -> list[tuple[DimLike, DimLike]]:
    """The widths of the borders of each axis.

    Raises:
        ShapeError: they do not fit the array.
        TypeError_: they are no natural numbers.
    """

    def is_row(value) -> bool:
        return isinstance(value, tuple | list) or isinstance(value, np.ndarray) and value.ndim > 0

    listed = is_row(pad_width)
    rows = list(pad_width) if listed else [pad_width]
    pairs = [list(row) if is_row(row) else [row] for row in rows]
    if listed and all(len(pair) == 1 and pair[0] is row for pair, row in zip(pairs, rows)):  # (before, after)
        pairs = [rows]
    for width in (w for pair in pairs for w in pair):
        known = static_int(width)
        wrong = width.shape != () if isinstance(width, Var) else not isinstance(known, int | Dim)
        if wrong or isinstance(known, int) and known < 0:
            raise TypeError_("np.pad: pad_width is made of ints of at least 0")
    if len(pairs) == 1:
        pairs = pairs * x.ndim
    if len(pairs) != x.ndim or any(len(pair) not in (1, 2) for pair in pairs):
        raise ShapeError(f"np.pad: pad_width {pad_width!r} does not fit an array of shape {show_shape(x.shape)}")
    found = []
    for pair in pairs:
        low, high = (
            static_size(b, w, "np.pad: a width", "index can't contain negative values") for w in (pair * 2)[:2]
        )
        found.append((low, high))
    return found


def _sources(b: Builder, x: Var, axis: int, low: DimLike, high: DimLike, mode: str) -> Var:
    """Where the elements along an axis of a padded array come from."""
    n = x.shape[axis]
    size = strong(size_value(b, n))
    guard(
        b,
        P.gt(size, size.const(0)),
        ValueError,
        f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'",
    )
    at = P.sub(nullary(x, "iota", n=low + n + high, dtype="int64"), strong(size_value(b, low)))
    zero, one = size.const(0), size.const(1)
    if mode == "edge":
        return P.maximum(P.minimum(at, P.sub(size, one)), zero)
    if mode == "wrap":
        return P.mod(at, size)
    period = (
        P.mul(size, size.const(2)) if mode == "symmetric" else P.maximum(P.mul(P.sub(size, one), size.const(2)), one)
    )
    place = P.mod(at, period)
    return P.minimum(place, P.sub(P.sub(period, place), one if mode == "symmetric" else zero))
