"""NumPy's functions that take arrays apart and put borders around them, by sizes that are known or computed."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import Dim, DimLike
from ...abstract.types import INTS, Array
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.indexing import take
from ..ops.shape import concatenate, pad
from ..rules.broadcast import full, nullary
from ..rules.relations import normalise_axis, show_shape
from .implementations import implements
from .numpy_shape import array_of, parts
from .promotion import fit, guard, operand, size_value, static_int, static_size, strong, unwrap, weak
from .subscripts import getitem


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
    listed = isinstance(pad_width, tuple | list | np.ndarray) and np.ndim(pad_width) != 0
    rows = list(pad_width) if listed else [pad_width]
    pairs = [list(row) if isinstance(row, tuple | list | np.ndarray) and np.ndim(row) else [row] for row in rows]
    if listed and all(len(pair) == 1 and pair[0] is row for pair, row in zip(pairs, rows)):  # (before, after)
        pairs = [rows]
    if len(pairs) == 1:
        pairs = pairs * x.ndim
    if len(pairs) != x.ndim or any(len(pair) not in (1, 2) for pair in pairs):
        raise ShapeError(f"np.pad: pad_width {pad_width!r} does not fit an array of shape {show_shape(x.shape)}")
    found = []
    for pair in pairs:
        for width in pair:
            known = static_int(width)
            if isinstance(known, int) and known < 0 or isinstance(width, float):
                raise TypeError_(f"np.pad: pad_width is made of ints of at least 0, and this is {pad_width!r}")
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
