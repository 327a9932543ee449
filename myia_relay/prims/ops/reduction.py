"""Reductions, positions of extrema, and running sums. (`reduce_sum` is in `prims.rules.broadcast`.)

Source of conventions: ties of `max` and `min` share the cotangent evenly, as in JAX; NaN propagates, as in NumPy.
"""

from __future__ import annotations

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import Array
from ...ir.axes import Relation, along, reduction, without
from ...ir.prim import primitive
from ...utils.errors import TypeError_
from ..rules.broadcast import cast, filled_like, full, nullary, reduce_sum, reduced_shape, reshape, spread
from ..rules.forward import linear
from ..rules.relations import (
    ANY,
    BOOLS,
    NUMBERS,
    array_or_scalar,
    const_like,
    dtype_of,
    require_array,
    shape_of,
    type_of,
)
from ..rules.wide_sums import sums_in_float32
from .elementwise import eq, mul, where
from .shape import flip, pad, slice_, transpose


def _extreme(dtype: str, highest: bool):
    """The identity of `min` (highest) or `max`: an infinity, or the end of an integer's range."""
    if dtype == "bool":
        return highest
    if "int" in dtype:
        info = np.iinfo(dtype)
        return info.max if highest else info.min
    return float("inf") if highest else float("-inf")


def _infer_reduction(name, accepts):
    def infer(x, *, axes, keepdims=False):
        require_array(name, x, accepts=accepts)
        return array_or_scalar(x.dtype, reduced_shape(x.shape, axes, keepdims))

    return infer


@primitive("reduce", axes=reduction("maximum"))
def reduce_max(x, *, axes, keepdims=False):
    """The greatest element over axes; NaN if there is one. The lowest value of the dtype over no elements."""
    x = np.asarray(x)
    return np.max(x, axis=axes, keepdims=keepdims, initial=_extreme(x.dtype.name, False))


@primitive("reduce", axes=reduction("minimum"))
def reduce_min(x, *, axes, keepdims=False):
    """The smallest element over axes; NaN if there is one. The highest value of the dtype over no elements."""
    x = np.asarray(x)
    return np.min(x, axis=axes, keepdims=keepdims, initial=_extreme(x.dtype.name, True))


@primitive("reduce", axes=reduction("mul"))
@sums_in_float32
def reduce_prod(x, *, axes, keepdims=False):
    """The product over axes, in the dtype of `x`; integers wrap."""
    x = np.asarray(x)
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


@primitive("reduce", differentiable=False, axes=reduction("logical_and"))
def reduce_all(x, *, axes, keepdims=False):
    """Whether all elements over axes hold."""
    return np.all(x, axis=axes, keepdims=keepdims)


@primitive("reduce", differentiable=False, axes=reduction("logical_or"))
def reduce_any(x, *, axes, keepdims=False):
    """Whether any element over axes holds."""
    return np.any(x, axis=axes, keepdims=keepdims)


for _prim, _accepts in (
    (reduce_max, ANY),
    (reduce_min, ANY),
    (reduce_prod, NUMBERS),
    (reduce_all, ("bool",)),
    (reduce_any, ("bool",)),
):
    _prim.infer(_infer_reduction(_prim.name.removeprefix("reduce_"), _accepts))

reduce_max.lower(lambda b: (b.const(_extreme(b.dtype, False), b.dtype), b.maximum))
reduce_min.lower(lambda b: (b.const(_extreme(b.dtype, True), b.dtype), b.minimum))
reduce_prod.lower(lambda b: (b.const(1, b.dtype), b.mul))
reduce_all.lower(lambda b: (b.const(True, "bool"), b.logical_and))
reduce_any.lower(lambda b: (b.const(False, "bool"), b.logical_or))


def _hits(x, out, axes, keepdims):
    """Which elements are the extremum, and how many: in float32 at least, as half precision does not count beyond 65,504."""
    hit = eq(x, spread(out, shape_of(x), axes, keepdims))
    kind = dtype_of(x) if dtype_of(x) == "float64" else "float32"
    return hit, reduce_sum(cast(hit, dtype=kind), axes=axes, keepdims=keepdims)


def _shared(whole, hits, near):
    """A value divided among so many, in the dtype of an array."""
    kind = dtype_of(near)
    if dtype_of(hits) == kind:
        return whole / hits
    return cast(cast(whole, dtype=dtype_of(hits)) / hits, dtype=kind)


def _vjp_extremum(x, out, dout, *, axes, keepdims=False):
    hit, hits = _hits(x, out, axes, keepdims)
    return (where(hit, spread(_shared(dout, hits, x), shape_of(x), axes, keepdims), const_like(x, 0)),)


def _jvp_extremum(x, out, tangents, *, axes, keepdims=False):
    hit, hits = _hits(x, out, axes, keepdims)
    kind = dtype_of(hits)
    wide = cast(tangents[0], dtype=kind) if kind != dtype_of(x) else tangents[0]
    total = reduce_sum(where(hit, wide, const_like(wide, 0)), axes=axes, keepdims=keepdims)
    return _shared(total, hits, x)


for _prim in (reduce_max, reduce_min):
    _prim.vjp(_vjp_extremum)
    _prim.jvp(_jvp_extremum)


@reduce_prod.vjp
def _(x, out, dout, *, axes, keepdims=False):
    return (spread(dout, shape_of(x), axes, keepdims) * _cofactors(x, axes),)


@reduce_prod.jvp
def _(x, out, tangents, *, axes, keepdims=False):
    return reduce_sum(tangents[0] * _cofactors(x, axes), axes=axes, keepdims=keepdims)


def _cofactors(x, axes):
    """For each element the product of all others over axes; out / x[i] is not that where x[i] = 0."""
    shape = shape_of(x)
    kept = tuple(a for a in range(len(shape)) if a not in axes)
    perm = (*kept, *axes)
    rows, n = tuple(shape[a] for a in kept), 1
    for a in axes:
        n = n * shape[a]
    flat = reshape(transpose(x, perm=perm), shape=(*rows, n))
    others = _product_of_others(flat)
    others = reshape(others, shape=tuple(shape[a] for a in perm))
    return transpose(others, perm=tuple(perm.index(a) for a in range(len(shape))))


def _product_of_others(x):
    """For each element the product of all other elements of the last axis.

    Products before and after, by doubling: log2(n) products of shifted arrays, differentiable to any order. Where
    n is not known when compiling, the same by a matrix with ones on its diagonal.
    """
    *rows, n = shape_of(x)
    if isinstance(n, int):
        return _running_product(x, True) * flip(_running_product(flip(x, axes=(len(rows),)), True), axes=(len(rows),))
    own = nullary(x, "iota", n=n, dtype="int64")
    diagonal = eq(reshape(own, shape=(n, 1)), own)
    matrix = where(diagonal, const_like(x, 1), reshape(x, shape=(*rows, 1, n)))
    return reduce_prod(matrix, axes=(len(rows) + 1,))


def _shift(x, by: int):
    """The last axis moved by `by` places towards its end, filled with ones."""
    *rows, n = shape_of(x)
    zeros, ones = (0,) * len(rows), (1,) * (len(rows) + 1)
    front = slice_(x, starts=(*zeros, 0), sizes=(*rows, n - by), steps=ones)
    return pad(front, const_like(x, 1), low=(*zeros, by), high=(*zeros, 0), interior=(*zeros, 0))


def _running_product(x, exclusive: bool):
    n = known_size(shape_of(x)[-1])
    if n == 0:
        return x
    if exclusive:
        x = _shift(x, 1)
    step = 1
    while step < n:
        x = mul(x, _shift(x, step))
        step *= 2
    return x


def cumulative_product(x, axis: int):
    """Running products along an axis of static size.

    Raises:
        TypeError_: the size of the axis is symbolic.
    """
    shape = shape_of(x)
    if not isinstance(shape[axis], int):
        raise TypeError_("cumprod needs an axis of known size; annotate it with a number instead of a name")
    perm = (*(k for k in range(len(shape)) if k != axis), axis)
    out = _running_product(transpose(x, perm=perm), False)
    return transpose(out, perm=tuple(perm.index(k) for k in range(len(shape))))


def _running(axes, axis):
    kept = without(axes, axis, None)
    return Relation((kept,), kept)


@primitive("opaque", axes=along(_running))
@sums_in_float32
def cumsum(x, *, axis, reverse=False):
    """Running sums along an axis, from its start or (reverse) from its end; in the dtype of `x`."""
    x = np.asarray(x)
    if reverse:
        return np.flip(np.cumsum(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
    return np.cumsum(x, axis=axis, dtype=x.dtype)


@cumsum.infer
def _(x, *, axis, reverse=False):
    return require_array("cumsum", x, accepts=NUMBERS)


@cumsum.vjp
def _(x, out, dout, *, axis, reverse=False):
    return (cumsum(dout, axis=axis, reverse=not reverse),)


cumsum.jvp(linear(cumsum))


@primitive("struct", differentiable=False)
def flat_nonzero(mask, *, size):
    """Where a flat array of booleans is true, in order; `size` is how often that is."""
    return np.flatnonzero(mask)


@flat_nonzero.infer
def _(mask, *, size):
    require_array("flat_nonzero", mask, 1, BOOLS)
    return Array("int64", (size,))


_POSITION = along(lambda axes, axis: Relation((without(axes, axis, None),), without(axes, axis)))


def _no_position(x, axis):
    """Zeros in place of positions along an empty axis: a check says so before anyone looks, but code may move before it."""
    return np.zeros((*x.shape[:axis], *x.shape[axis + 1 :]), np.int64)[()]


@primitive("opaque", differentiable=False, axes=_POSITION)
def argmax(x, *, axis):
    """Position of the first greatest element along an axis, which disappears; that of the first NaN if there is one."""
    return np.argmax(x, axis=axis) if x.shape[axis] else _no_position(x, axis)


@primitive("opaque", differentiable=False, axes=_POSITION)
def argmin(x, *, axis):
    """Position of the first smallest element along an axis, which disappears; that of the first NaN if there is one."""
    return np.argmin(x, axis=axis) if x.shape[axis] else _no_position(x, axis)


def _infer_position(name):
    def infer(x, *, axis):
        require_array(name, x)
        return array_or_scalar("int64", (*x.shape[:axis], *x.shape[axis + 1 :]))

    return infer


for _prim in (argmax, argmin):
    _prim.infer(_infer_position(_prim.name))

__all__ = [
    "argmax",
    "argmin",
    "cumsum",
    "cumulative_product",
    "filled_like",
    "full",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "type_of",
]
