"""Rearranging elements: transpose, slice, pad, flip, concatenate, and arrays made from indices alone.

Adjoints come in pairs: transpose and the inverse transpose, slice and pad, concatenate and slices.
"""

from __future__ import annotations

import numpy as np

from ...abstract.dims import DimLike, known_size
from ...abstract.types import Array, numpy_dtype
from ...ir.axes import AXES, AXIS, ORDER, SHAPE, Axes, Relation, without
from ...ir.prim import primitive
from ...utils.errors import InternalError, ShapeError, TypeError_
from ..rules.batching import materialise_all
from ..rules.broadcast import cast, full, match_kind, reduce_sum, reshape, shape_of, type_of
from ..rules.forward import linear
from ..rules.protocol import clamp
from ..rules.relations import ANY, INTS, const_like, require, require_array, same_dtype, same_size, show_shape
from .elementwise import where


def _transposed(shapes, out, *, perm):
    return Relation((tuple(range(len(perm))),), tuple(perm))


@primitive("injective", axes=Axes(_transposed, perm=ORDER), view=True)
def transpose(x, *, perm):
    """Axes in another order: axis i of the result is axis `perm[i]` of `x`."""
    return np.transpose(x, perm)


@transpose.infer
def _(x, *, perm):
    require_array("transpose", x)
    if sorted(perm) != list(range(len(x.shape))):
        raise ShapeError(f"transpose: axes {tuple(perm)} do not match an array of shape {show_shape(x.shape)}")
    return Array(x.dtype, tuple(x.shape[i] for i in perm))


@transpose.vjp
def _(x, out, dout, *, perm):
    return (transpose(dout, perm=tuple(perm.index(i) for i in range(len(perm)))),)


transpose.jvp(linear(transpose))


@transpose.lower
def _(b, index, x, *, in_types, out_type, perm):
    return x([index[perm.index(i)] for i in range(len(perm))])


def _sliced(shapes, out, *, starts, sizes, steps):
    whole = zip(starts, sizes, steps, shapes[0], strict=True)
    kept = tuple(k if (start, step) == (0, 1) and size == n else None for k, (start, size, step, n) in enumerate(whole))
    return Relation((kept,), kept)


@primitive("injective", axes=Axes(_sliced, starts=(0,), sizes=SHAPE, steps=(1,)), view=True)
def slice_(x, *, starts, sizes, steps):
    """A rectangle of elements: along each axis those at `start + k * step` for k < size.

    Args:
        x: array.
        starts, sizes, steps: for each axis; in range; a step may be negative, and start is then the highest index.
    """
    picks = []
    for start, size, step in zip(starts, sizes, steps, strict=True):
        stop = start + size * step
        picks.append(slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0))
    return np.asarray(x)[tuple(picks)]


@slice_.infer
def _(x, *, starts, sizes, steps):
    require_array("slice", x, len(sizes))
    for start, size, step, have in zip(starts, sizes, steps, x.shape, strict=True):
        last = start + (size - 1) * step
        if all(isinstance(v, int) for v in (start, size, have)) and size > 0:
            if not (0 <= start < have and isinstance(last, int) and 0 <= last < have):
                raise InternalError("slice", f"{size} elements from {start} by {step} of {x}")
    return Array(x.dtype, tuple(sizes))


@slice_.vjp
def _(x, out, dout, *, starts, sizes, steps):
    shape = shape_of(x)
    if any(isinstance(n, int) and n == 0 for n in sizes):
        return (full(const_like(dout, 0), shape=shape),)
    # A negative step: the same elements, backwards.
    backwards = tuple(i for i, step in enumerate(steps) if step < 0)
    if backwards:
        dout = flip(dout, axes=backwards)
    low, high, interior = [], [], []
    for start, size, step, have in zip(starts, sizes, steps, shape, strict=True):
        first = start if step > 0 else start + (size - 1) * step
        low.append(first)
        high.append(have - first - (size - 1) * abs(step) - 1)
        interior.append(abs(step) - 1)
    return (pad(dout, const_like(dout, 0), low=tuple(low), high=tuple(high), interior=tuple(interior)),)


slice_.jvp(linear(slice_))


@slice_.lower
def _(b, index, x, *, in_types, out_type, starts, sizes, steps):
    return x([b.dim(start) + i * step for i, start, step in zip(index, starts, steps, strict=True)])


def _padded(shapes, out, *, low, high, interior):
    kept = tuple(None if any(widths) else k for k, widths in enumerate(zip(low, high, interior)))
    return Relation((kept, ()), kept)


@primitive("injective", axes=Axes(_padded, leading=(0,), low=(0,), high=(0,), interior=(0,)))
def pad(x, value, *, low, high, interior):
    """`x` with `value` around it and between its elements: the adjoint of `slice`.

    Args:
        x: array with axes of size n.
        value: scalar of the same dtype.
        low, high, interior: for each axis how many before the first, after the last, and between neighbours.

    Returns:
        An array with axes of size low + n + (n - 1) * interior + high.
    """
    x = np.asarray(x)
    shape = tuple(map(known_size, padded_shape(x.shape, low, high, interior)))
    out = np.full(shape, value, dtype=x.dtype)
    picks = tuple(slice(lo, lo + n + max(n - 1, 0) * gap, gap + 1) for n, lo, gap in zip(x.shape, low, interior))
    out[picks] = x
    return out


def padded_shape(shape, low, high, interior) -> tuple[DimLike, ...]:
    """The shape of a padded array."""
    out = []
    for n, lo, hi, gap in zip(shape, low, high, interior, strict=True):
        between = 0 if n == 0 else (n - 1) * gap
        out.append(lo + n + between + hi)
    return tuple(out)


@pad.infer
def _(x, value, *, low, high, interior):
    require_array("pad", x, len(low))
    same_dtype("pad", x, value)
    if any(isinstance(n, int) and n < 0 for n in (*low, *high, *interior)):
        raise ShapeError(f"pad: widths {low}, {high}, {interior} must not be negative")
    return Array(x.dtype, padded_shape(x.shape, low, high, interior))


@pad.vjp
def _(x, value, out, dout, *, low, high, interior):
    dx = slice_(dout, starts=tuple(low), sizes=shape_of(x), steps=tuple(gap + 1 for gap in interior))
    axes = tuple(range(len(low)))
    dvalue = reduce_sum(dout, axes=axes) - reduce_sum(dx, axes=axes)
    return dx, match_kind(dvalue, type_of(value))


pad.jvp(linear(pad))


@pad.batch
def _(size, batched, x, value, *, low, high, interior):
    if not batched[1]:
        return None
    attrs = {"low": (0, *low), "high": (0, *high), "interior": (0, *interior)}
    # A border value for each example: pad with zeros, and put the values where the padding is.
    x, value = materialise_all(size, batched, (x, value))
    yes, no = (cast(const_like(x, v), dtype="bool") for v in (1, 0))
    inside = pad(full(yes, shape=shape_of(x)), no, **attrs)
    padded = pad(x, const_like(x, 0), **attrs)
    return where(inside, padded, reshape(value, shape=(size,) + (1,) * len(low)))


@pad.lower
def _(b, index, x, value, *, in_types, out_type, low, high, interior):
    if any(n == 0 for n in in_types[0].shape):
        return value([])
    inside, picks = None, []
    for i, lo, gap, n in zip(index, low, interior, in_types[0].shape, strict=True):
        off = i - b.dim(lo)
        position = off if gap == 0 else off // (gap + 1)
        tests = [b.ge(off, b.const(0, "int64")), b.lt(position, b.dim(n))]
        if gap:
            tests.append(b.eq(off % (gap + 1), b.const(0, "int64")))
        for test in tests:
            inside = test if inside is None else b.logical_and(inside, test)
        picks.append(clamp(b, position, n))
    if not picks:
        return x([])
    with b.reading(*in_types[0].shape):
        element = x(picks)
    return b.select(inside, element, value([]))


def _flipped(shapes, out, *, axes):
    kept = tuple(None if k in axes else k for k in range(len(out)))
    return Relation((kept,), kept)


@primitive("injective", axes=Axes(_flipped, axes=AXES), view=True)
def flip(x, *, axes):
    """Elements in reverse order along axes."""
    return np.flip(x, tuple(axes))


@flip.infer
def _(x, *, axes):
    return require_array("flip", x)


@flip.vjp
def _(x, out, dout, *, axes):
    return (flip(dout, axes=axes),)


flip.jvp(linear(flip))


@flip.lower
def _(b, index, x, *, in_types, out_type, axes):
    return x([b.dim(n) - 1 - i if k in axes else i for k, (i, n) in enumerate(zip(index, out_type.shape))])


def _joined(shapes, out, *, axis):
    kept = without(tuple(range(len(out))), axis, None)
    return Relation((kept,) * len(shapes), kept)


@primitive("injective", axes=Axes(_joined, axis=AXIS))
def concatenate(*xs, axis):
    """Arrays one after the other along an axis; the other sizes agree."""
    return np.concatenate(xs, axis)


@concatenate.infer
def _(*xs, axis):
    first = require_array("concatenate", xs[0])
    for x in xs[1:]:
        require_array("concatenate", x, len(first.shape))
        for k, (m, n) in enumerate(zip(first.shape, x.shape)):
            if k != axis and not same_size(m, n):
                shapes = " and ".join(show_shape(t.shape) for t in (first, x))
                raise ShapeError(f"concatenate along axis {axis}: shapes {shapes} differ in axis {k}")
    dtype = same_dtype("concatenate", *xs)
    total: DimLike = 0
    for x in xs:
        total = total + x.shape[axis]
    return Array(dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


@concatenate.vjp
def _(*args, axis):
    *xs, _out, dout = args
    cotangents, start = [], 0
    for x in xs:
        shape = shape_of(x)
        starts = tuple(start if k == axis else 0 for k in range(len(shape)))
        cotangents.append(slice_(dout, starts=starts, sizes=shape, steps=(1,) * len(shape)))
        start = start + shape[axis]
    return tuple(cotangents)


concatenate.jvp(linear(concatenate))


@concatenate.lower
def _(b, index, *xs, in_types, out_type, axis):
    parts, start = [], 0
    for x, t in zip(xs, in_types, strict=True):
        n = t.shape[axis]
        if n != 0:
            i = clamp(b, index[axis] - b.dim(start), n)
            with b.reading(n):
                parts.append((start, x([*index[:axis], i, *index[axis + 1 :]])))
        start = start + n
    if not parts:
        return b.const(0, out_type.dtype)  # an empty array: nobody reads it
    out = parts[0][1]
    for start, element in parts[1:]:
        out = b.select(b.ge(index[axis], b.dim(start)), element, out)
    return out


def stack(*xs, axis):
    """Arrays or scalars of one shape along a new axis."""
    grown = []
    for x in xs:
        shape = shape_of(x)
        grown.append(reshape(x, shape=(*shape[:axis], 1, *shape[axis:])))
    return grown[0] if len(grown) == 1 else concatenate(*grown, axis=axis)


def expand_dims(x, axis: int):
    """A new axis of size 1 in front of axis `axis` (non-negative)."""
    shape = shape_of(x)
    return reshape(x, shape=(*shape[:axis], 1, *shape[axis:]))


# Arrays made from their index.


@primitive("injective", differentiable=False, axes="->.")
def iota(*, n, dtype):
    """0, 1, ..., n - 1."""
    return np.arange(n).astype(numpy_dtype(dtype))


@iota.infer
def _(*, n, dtype):
    return Array(dtype, (n,))


@iota.lower
def _(b, index, *, in_types, out_type, n, dtype):
    return b.cast(index[0], dtype)


@primitive("injective", differentiable=False, axes="->..")
def tri_mask(*, n, m, k):
    """Bool matrix (n, m): on and below diagonal k, `column <= row + k`."""
    return np.tri(n, m, k, dtype=bool)


@tri_mask.infer
def _(*, n, m, k):
    return Array("bool", (n, m))


@tri_mask.lower
def _(b, index, *, in_types, out_type, n, m, k):
    return b.le(index[1], index[0] + b.dim(k))


def _one_hot(shapes, out, **attrs):
    own = tuple(range(len(out) - 1))
    return Relation((own,), (*own, "class"), located=frozenset({"class"}))


@primitive("injective", differentiable=False, axes=Axes(_one_hot))
def one_hot(labels, *, n, dtype):
    """One new last axis of size n, 1 at the label and 0 elsewhere; all 0 for a label out of range.

    Args:
        labels: int scalar or array, shape (...).
        n: number of classes.
        dtype: of the result.
    """
    labels = np.asarray(labels)
    return (labels[..., None] == np.arange(n)).astype(numpy_dtype(dtype))


@one_hot.infer
def _(labels, *, n, dtype):
    if labels.dtype not in INTS:
        raise TypeError_(f"one_hot takes integer labels, and these are {labels}; convert them with .astype(np.int64)")
    require("one_hot", labels, ANY)
    return Array(dtype, (*labels.shape, n))


@one_hot.lower
def _(b, index, labels, *, in_types, out_type, n, dtype):
    hit = b.eq(b.cast(labels(index[:-1]), "int64"), index[-1])
    return b.select(hit, b.const(1, dtype), b.const(0, dtype))
