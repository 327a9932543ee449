"""Elements at run-time positions: reading, replacing, adding, gathering, scattering.

Positions are clamped into range, both in the reference implementation and in compiled code. What must raise is checked
before (by `operators`, with NumPy's message), and derived code cannot read out of bounds. The planner makes functional
updates in place where nothing else sees the array.

    y = dynamic_index(x, i)  =>  dx = index_add(0, dy, i)        y = take(x, i)  =>  dx = scatter_add(0, i, dy)
"""

from __future__ import annotations

import numpy as np

from ...abstract.dims import Dim
from ...abstract.types import Array
from ...ir.axes import AXIS, Axes, Relation, along, without
from ...ir.build import Var
from ...ir.prim import PartUpdate, primitive
from ...utils.errors import ShapeError, TypeError_
from ..rules.batching import materialise, materialise_all
from ..rules.broadcast import cast, full, match_kind, nullary, reshape, shape_of, type_of, zeros_like
from ..rules.forward import linear
from ..rules.protocol import clamp
from ..rules.relations import INTS, array_or_scalar, const_like, require_array, same_dtype, show_shape
from ..rules.wide_sums import sums_in_float32
from .elementwise import add, eq, ge, logical_and, lt, maximum, minimum, mul, sub, where
from .shape import concatenate, transpose


def _require_index(name: str, i):
    if i.dtype not in INTS or i.shape != ():
        raise TypeError_(f"{name}: an index is an int, and this is {i}")


def _removed(shape, axis):
    return (*shape[:axis], *shape[axis + 1 :])


def _clip(i, n) -> int:
    return min(max(int(i), 0), n - 1)


def _pick(shape, axis, index):
    return (*(slice(None),) * axis, index)


def _at(axes, axis):
    return Relation((without(axes, axis, None), ()), without(axes, axis))


@primitive("injective", axes=along(_at, leading=(0,)), view=True)
def dynamic_index(x, i, *, axis):
    """The element or subarray at position i of an axis, which disappears; i is clamped into range.

    Of an axis without elements it is zero. Nobody looks at it: a check fails before, but this may be computed ahead of the check.

    Args:
        x: array.
        i: int scalar.
        axis: non-negative.

    Returns:
        An array, or a NumPy scalar where no axis is left.
    """
    x = np.asarray(x)
    if not x.shape[axis]:
        return np.zeros(_removed(x.shape, axis), x.dtype)[()]
    return x[_pick(x.shape, axis, _clip(i, x.shape[axis]))]


@dynamic_index.infer
def _(x, i, *, axis):
    require_array("indexing", x)
    _require_index("indexing", i)
    return array_or_scalar(x.dtype, _removed(x.shape, axis))


@dynamic_index.vjp
def _(x, i, out, dout, *, axis):
    return index_add(zeros_like(x), dout, i, axis=axis), None


dynamic_index.jvp(linear(dynamic_index, 0))


@dynamic_index.batch
def _(size, batched, x, i, *, axis):
    if not batched[1]:
        return None
    x = materialise(size, batched[0], x)
    n = shape_of(x)[axis + 1]
    return take(_rows(x, axis), example_rows(x, size, n, i), axis=0)


# If each example has positions of its own, batching gathers from one array in which examples and positions are merged.


def _size(near, n, plus: int = 0):
    """n + plus as an int64 scalar beside a staged value; a symbolic size is read at run time."""
    if isinstance(n + plus, Dim):
        return cast(nullary(near, "dim_size", dim=n + plus), dtype="int64", weak=False)
    value = np.int64(n + plus)
    return near.const(value) if isinstance(near, Var) else value


def _within(near, i, n):
    """Positions as int64, clamped into 0 ... n - 1."""
    i = cast(i, dtype="int64")
    return maximum(minimum(i, _size(near, n, -1)), const_like(i, 0))


def _axis_first(shape, axis) -> tuple[int, ...]:
    """The order of axes of a batched array that puts `axis` right behind the batch axis."""
    return (0, axis + 1, *(k for k in range(1, len(shape)) if k != axis + 1))


def _rows(x, axis):
    """(size, ..., n, ...) -> (size * n, ...)."""
    shape = shape_of(x)
    front = transpose(x, perm=_axis_first(shape, axis))
    return reshape(front, shape=(shape[0] * shape[axis + 1], *_removed(shape[1:], axis)))


def _first_rows(near, size, n, rank: int):
    """Where the examples begin in such an array: shape (size, 1, ...) with `rank` axes."""
    first = mul(nullary(near, "iota", n=size, dtype="int64"), _size(near, n))
    return reshape(first, shape=(size, *(1,) * (rank - 1)))


def example_rows(near, size, n, indices):
    """Positions (size, i...) within examples of n rows as positions in all (size * n) rows."""
    return add(_first_rows(near, size, n, len(shape_of(indices))), _within(near, indices, n))


def _axis_back(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes that undoes `_axis_first`."""
    return (0, *range(2, axis + 2), 1, *range(axis + 2, rank))


@dynamic_index.lower
def _(b, index, x, i, *, in_types, out_type, axis):
    size = in_types[0].shape[axis]
    at = clamp(b, b.cast(i([]), "int64"), size)
    with b.reading(size):
        return x([*index[:axis], at, *index[axis:]])


def _window(axes, axis):
    kept = without(axes, axis, None)
    return Relation((kept, ()), kept)


@primitive("injective", axes=along(_window, leading=(0,)), view=True)
def dynamic_slice(x, start, *, axis, length):
    """`length` neighbours along an axis from position `start` on; start is clamped so that they fit.

    Args:
        x: array.
        start: int scalar.
        axis: non-negative.
        length: static.
    """
    x = np.asarray(x)
    start = min(max(int(start), 0), x.shape[axis] - length)
    return x[_pick(x.shape, axis, slice(start, start + length))]


@dynamic_slice.infer
def _(x, start, *, axis, length):
    require_array("slicing", x)
    _require_index("slicing", start)
    if isinstance(length, int) and isinstance(x.shape[axis], int) and length > x.shape[axis]:
        raise ShapeError(f"a slice of {length} elements from axis {axis} of shape {show_shape(x.shape)}")
    return Array(x.dtype, (*x.shape[:axis], length, *x.shape[axis + 1 :]))


@dynamic_slice.vjp
def _(x, start, out, dout, *, axis, length):
    return slice_add(zeros_like(x), dout, start, axis=axis), None


dynamic_slice.jvp(linear(dynamic_slice, 0))


@dynamic_slice.batch
def _(size, batched, x, start, *, axis, length):
    if not batched[1]:
        return None
    # A window is `length` positions of its example.
    x, n = materialise(size, batched[0], x), length
    shape = shape_of(x)
    start = _within(x, start, shape[axis + 1] - n + 1)
    offsets = reshape(nullary(x, "iota", n=n, dtype="int64"), shape=(1, n))
    positions = add(reshape(start, shape=(size, 1)), offsets)
    rows = add(_first_rows(x, size, shape[axis + 1], 2), positions)
    return transpose(take(_rows(x, axis), rows, axis=0), perm=_axis_back(len(shape), axis))


@dynamic_slice.lower
def _(b, index, x, start, *, in_types, out_type, axis, length):
    places = in_types[0].shape[axis] - length + 1
    first = clamp(b, b.cast(start([]), "int64"), places)
    with b.reading(places):
        return x([*index[:axis], index[axis] + first, *index[axis + 1 :]])


def _require_part(name: str, x, v, shape):
    require_array(name, x)
    same_dtype(name, x, v)
    if v.shape != tuple(shape):
        raise ShapeError(f"{name}: a value of shape {show_shape(v.shape)} where shape {show_shape(shape)} belongs")


def _updated(axes, axis):
    return Relation((axes, without(axes, axis), ()), axes, located=frozenset({axis}))


@primitive("injective", axes=along(_updated, leading=(0, 1)), update=PartUpdate(adds=False, window=False))
def dynamic_update(x, v, i, *, axis):
    """`x` with `v` at position i (clamped) of an axis: `x[..., i, ...] = v`, as a new value.

    Args:
        x: array.
        v: array or scalar of the shape of x without the axis.
        i: int scalar.
        axis: non-negative.
    """
    out = np.array(x)
    if out.shape[axis]:
        out[_pick(out.shape, axis, _clip(i, out.shape[axis]))] = v
    return out


@primitive("injective", axes=along(_updated, leading=(0, 1)), update=PartUpdate(adds=True, window=False))
def index_add(x, v, i, *, axis):
    """`x` with `v` added at position i (clamped) of an axis."""
    out = np.array(x)
    if out.shape[axis]:
        at = _pick(out.shape, axis, _clip(i, out.shape[axis]))
        out[at] = out[at] + v
    return out


def _infer_at(name):
    def infer(x, v, i, *, axis):
        _require_part(name, x, v, _removed(x.shape, axis))
        _require_index(name, i)
        return x

    return infer


dynamic_update.infer(_infer_at("assignment to an element"))
index_add.infer(_infer_at("adding to an element"))


@dynamic_update.vjp
def _(x, v, i, out, dout, *, axis):
    dv = match_kind(dynamic_index(dout, i, axis=axis), type_of(v))  # first, so that what follows may overwrite `dout`
    return dynamic_update(dout, zeros_like(v), i, axis=axis), dv, None


@index_add.vjp
def _(x, v, i, out, dout, *, axis):
    return dout, match_kind(dynamic_index(dout, i, axis=axis), type_of(v)), None


dynamic_update.jvp(linear(dynamic_update, 0, 1))
index_add.jvp(linear(index_add, 0, 1))


def _hits(near, size, n, i, rank, axis):
    """Bool (size, ..., n, ...): whether a position along `axis` of example k is i[k], clamped."""
    own = nullary(near, "iota", n=n, dtype="int64")
    own = reshape(own, shape=(1, *(1,) * axis, n, *(1,) * (rank - axis - 1)))
    return eq(reshape(_within(near, i, n), shape=(size, *(1,) * rank)), own)


def _batch_at(prim, combine):
    def rule(size, batched, x, v, i, *, axis):
        if not batched[2]:
            return None
        x, v = materialise_all(size, batched[:2], (x, v))
        # Each example has its own position: a mask instead.
        shape = shape_of(x)
        hit = _hits(x, size, shape[axis + 1], i, len(shape) - 1, axis)
        v = reshape(v, shape=(*shape[: axis + 1], 1, *shape[axis + 2 :]))
        return where(hit, combine(x, v), x)

    return rule


dynamic_update.batch(_batch_at(dynamic_update, lambda x, v: v))
index_add.batch(_batch_at(index_add, lambda x, v: x + v))


def _lower_at(combine):
    def lower(b, index, x, v, i, *, in_types, out_type, axis):
        at = clamp(b, b.cast(i([]), "int64"), in_types[0].shape[axis])
        new = v([*index[:axis], *index[axis + 1 :]])
        old = x(index)
        return b.select(b.eq(index[axis], at), combine(b, old, new), old)

    return lower


dynamic_update.lower(_lower_at(lambda b, old, new: new))
index_add.lower(_lower_at(lambda b, old, new: b.add(old, new)))


def _window_updated(axes, axis):
    return Relation((axes, without(axes, axis, None), ()), axes, located=frozenset({axis}))


@primitive("injective", axes=along(_window_updated, leading=(0, 1)), update=PartUpdate(adds=False, window=True))
def dynamic_update_slice(x, v, start, *, axis):
    """`x` with the neighbours from position `start` of an axis on replaced by `v`; start is clamped so that they fit.

    Args:
        x: array.
        v: array, of the shape of x but for that axis.
        start: int scalar.
        axis: non-negative.
    """
    out = np.array(x)
    n = np.shape(v)[axis]
    start = min(max(int(start), 0), out.shape[axis] - n)
    out[_pick(out.shape, axis, slice(start, start + n))] = v
    return out


@primitive("injective", axes=along(_window_updated, leading=(0, 1)), update=PartUpdate(adds=True, window=True))
def slice_add(x, v, start, *, axis):
    """`x` with `v` added to the neighbours from position `start` (clamped) of an axis on."""
    out = np.array(x)
    n = np.shape(v)[axis]
    start = min(max(int(start), 0), out.shape[axis] - n)
    out[_pick(out.shape, axis, slice(start, start + n))] += v
    return out


def _infer_window(name):
    def infer(x, v, start, *, axis):
        if len(v.shape) != len(x.shape):
            raise ShapeError(f"{name}: {v} into {x}")
        _require_part(name, x, v, (*x.shape[:axis], v.shape[axis], *x.shape[axis + 1 :]))
        _require_index(name, start)
        return x

    return infer


dynamic_update_slice.infer(_infer_window("assignment to a slice"))
slice_add.infer(_infer_window("adding to a slice"))


@dynamic_update_slice.vjp
def _(x, v, start, out, dout, *, axis):
    dx = dynamic_update_slice(dout, zeros_like(v), start, axis=axis)
    return dx, dynamic_slice(dout, start, axis=axis, length=shape_of(v)[axis]), None


@slice_add.vjp
def _(x, v, start, out, dout, *, axis):
    return dout, dynamic_slice(dout, start, axis=axis, length=shape_of(v)[axis]), None


dynamic_update_slice.jvp(linear(dynamic_update_slice, 0, 1))
slice_add.jvp(linear(slice_add, 0, 1))


def _batch_window(prim, combine):
    def rule(size, batched, x, v, start, *, axis):
        if not batched[2]:
            return None
        x, v = materialise_all(size, batched[:2], (x, v))
        # Each example has its own window: position p takes element p - start of v, if that is inside v.
        shape, n, m = shape_of(x), shape_of(v)[axis + 1], shape_of(x)[axis + 1]
        if n == 0:
            return x
        start = reshape(_within(x, start, m - n + 1), shape=(size, 1))
        off = sub(reshape(nullary(x, "iota", n=m, dtype="int64"), shape=(1, m)), start)  # (size, m)
        inside = logical_and(ge(off, const_like(off, 0)), lt(off, _size(x, n)))
        inside = reshape(inside, shape=(size, *(1,) * axis, m, *(1,) * (len(shape) - axis - 2)))
        if not isinstance(n, int):  # there may be no row
            v, n = (
                concatenate(
                    v, full(const_like(v, 0), shape=(*shape[: axis + 1], 1, *shape[axis + 2 :])), axis=axis + 1
                ),
                n + 1,
            )
        spread = take(_rows(v, axis), example_rows(x, size, n, off), axis=0)
        return where(inside, combine(x, transpose(spread, perm=_axis_back(len(shape), axis))), x)

    return rule


dynamic_update_slice.batch(_batch_window(dynamic_update_slice, lambda x, v: v))
slice_add.batch(_batch_window(slice_add, lambda x, v: x + v))


def _lower_window(combine):
    def lower(b, index, x, v, start, *, in_types, out_type, axis):
        n = in_types[1].shape[axis]
        old = x(index)
        if n == 0:
            return old
        first = clamp(b, b.cast(start([]), "int64"), in_types[0].shape[axis] - n + 1)
        off = index[axis] - first
        inside = b.logical_and(b.ge(off, b.const(0, "int64")), b.lt(off, b.dim(n)))
        with b.reading(n):
            new = v([*index[:axis], clamp(b, off, n), *index[axis + 1 :]])
        return b.select(inside, combine(b, old, new), old)

    return lower


dynamic_update_slice.lower(_lower_window(lambda b, old, new: new))
slice_add.lower(_lower_window(lambda b, old, new: b.add(old, new)))


def _gathered(shapes, out, *, axis):
    axes, own = range(len(shapes[0])), tuple(("index", k) for k in range(len(shapes[1])))
    return Relation((without(tuple(axes), axis, None), own), without(tuple(axes), axis, *own))


@primitive("injective", axes=Axes(_gathered, leading=(0,), axis=AXIS))
def take(x, indices, *, axis):
    """Gather: the subarrays of `x` at positions of an axis; positions are clamped into range.

    Args:
        x: shape (..., n, ...).
        indices: int scalar or array of shape (i...).
        axis: non-negative.

    Returns:
        Shape (..., i..., ...): the axis replaced by the axes of `indices`.
    """
    if not x.shape[axis]:  # a check says so before anyone looks, but code may move before it
        return np.zeros((*x.shape[:axis], *np.shape(indices), *x.shape[axis + 1 :]), x.dtype)[()]
    return np.take(x, indices, axis=axis, mode="clip")


@take.infer
def _(x, indices, *, axis):
    require_array("take", x)
    if indices.dtype not in INTS:
        raise TypeError_(f"indices are integers, and these are {indices}; convert them with .astype(np.int64)")
    return array_or_scalar(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


@take.vjp
def _(x, indices, out, dout, *, axis):
    return scatter_add(zeros_like(x), indices, dout, axis=axis), None


take.jvp(linear(take, 0))


@take.batch
def _(size, batched, x, indices, *, axis):
    if not batched[1]:
        return None
    if not batched[0]:
        out = take(x, indices, axis=axis)  # (before..., size, i..., after...)
        rank = len(shape_of(out))
        return transpose(out, perm=(axis, *(k for k in range(rank) if k != axis)))
    n, r = shape_of(x)[axis + 1], len(shape_of(indices)) - 1
    out = take(_rows(x, axis), example_rows(x, size, n, indices), axis=0)  # (size, i..., before..., after...)
    before, rank = range(1 + r, 1 + r + axis), len(shape_of(out))
    return transpose(out, perm=(0, *before, *range(1, 1 + r), *range(1 + r + axis, rank)))


@take.lower
def _(b, index, x, indices, *, in_types, out_type, axis):
    r = len(in_types[1].shape)
    size = in_types[0].shape[axis]
    at = clamp(b, b.cast(indices(index[axis : axis + r]), "int64"), size)
    with b.reading(size):
        return x([*index[:axis], at, *index[axis + r :]])


def _scattered(shapes, out, *, axis):
    axes, own = tuple(range(len(out))), tuple(("index", k) for k in range(len(shapes[1])))
    return Relation((axes, own, without(axes, axis, *own)), axes, "add", frozenset({axis}), base=0)


@primitive("opaque", axes=Axes(_scattered, leading=(0, 2), axis=AXIS))
@sums_in_float32
def scatter_add(x, indices, updates, *, axis):
    """`x` with `updates` added at positions (clamped) of an axis; repeated positions accumulate: the adjoint of
    `take`.

    Args:
        x: shape (..., n, ...).
        indices: int scalar or array of shape (i...).
        updates: shape (..., i..., ...), as `take` returns.
        axis: non-negative.
    """
    out = np.moveaxis(np.array(x), axis, 0).copy()
    r = np.ndim(indices)
    where_to = np.clip(np.asarray(indices, dtype=np.int64), 0, out.shape[0] - 1)
    values = np.moveaxis(np.asarray(updates), tuple(range(axis, axis + r)), tuple(range(r)))
    np.add.at(out, where_to, values)
    return np.moveaxis(out, 0, axis)


@scatter_add.infer
def _(x, indices, updates, *, axis):
    _require_part("scatter_add", x, updates, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return x


@scatter_add.vjp
def _(x, indices, updates, out, dout, *, axis):
    return dout, None, match_kind(take(dout, indices, axis=axis), type_of(updates))


scatter_add.jvp(linear(scatter_add, 0, 2))


@scatter_add.batch
def _(size, batched, x, indices, updates, *, axis):
    if not batched[1]:
        return None
    x, updates = materialise_all(size, (batched[0], batched[2]), (x, updates))
    shape, r = shape_of(x), len(shape_of(indices)) - 1
    n = shape[axis + 1]
    rank = len(shape_of(updates))
    moved = (0, *range(1 + axis, 1 + axis + r), *range(1, 1 + axis), *range(1 + axis + r, rank))
    out = scatter_add(_rows(x, axis), example_rows(x, size, n, indices), transpose(updates, perm=moved), axis=0)
    order = _axis_first(shape, axis)
    out = reshape(out, shape=tuple(shape[k] for k in order))
    return transpose(out, perm=_axis_back(len(shape), axis))


def _placed(axes, axis):
    kept = without(axes, axis, None)
    return Relation((kept, (None,), kept), kept)


@primitive("opaque", axes=along(_placed, leading=(0, 2)))
def scatter(x, indices, updates, *, axis):
    """`x` with `updates` in place of what is at positions of an axis; the positions are there, and none of them twice.

    Args:
        x: shape (..., n, ...).
        indices: array with one axis.
        updates: shape (..., i, ...), as `take` returns.
        axis: non-negative.
    """
    out = np.array(x)
    out[_pick(out.shape, axis, np.asarray(indices, dtype=np.int64))] = updates
    return out


@scatter.infer
def _(x, indices, updates, *, axis):
    _require_part("scatter", x, updates, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return x


@scatter.vjp
def _(x, indices, updates, out, dout, *, axis):
    return scatter(dout, indices, zeros_like(updates), axis=axis), None, take(dout, indices, axis=axis)


scatter.jvp(linear(scatter, 0, 2))


@scatter.batch
def _(size, batched, x, indices, updates, *, axis):
    if not batched[1]:
        return None
    x, updates = materialise_all(size, (batched[0], batched[2]), (x, updates))
    shape, rank = shape_of(x), len(shape_of(updates))
    count = shape_of(indices)[1]
    moved = transpose(updates, perm=(0, 1 + axis, *range(1, 1 + axis), *range(2 + axis, rank)))
    rows = reshape(moved, shape=(size * count, *_removed(shape[1:], axis)))
    at = reshape(example_rows(x, size, shape[axis + 1], indices), shape=(size * count,))
    out = scatter(_rows(x, axis), at, rows, axis=0)
    out = reshape(out, shape=tuple(shape[k] for k in _axis_first(shape, axis)))
    return transpose(out, perm=_axis_back(len(shape), axis))


__all__ = [
    "dynamic_index",
    "dynamic_slice",
    "dynamic_update",
    "dynamic_update_slice",
    "example_rows",
    "index_add",
    "scatter",
    "scatter_add",
    "slice_add",
    "take",
]
