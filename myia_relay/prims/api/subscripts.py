"""`x[index]` and `x[index] = v` on arrays, with NumPy's semantics and NumPy's errors.

What is known at compile time becomes one static slice. Run-time ints are checked, wrapped and applied one axis at a
time; integer arrays gather. Assignment makes a new value, which the planner writes in place if nothing else sees the
old one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.dims import Dim, DimLike, is_run_time, never_negative, product, told_by_run
from ...abstract.types import INTS, Array, Scalar
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant
from ...utils.errors import ShapeError, SliceBeyond, TypeError_
from ..ops import elementwise as P
from ..ops.indexing import (
    dynamic_index,
    dynamic_slice,
    dynamic_update,
    dynamic_update_slice,
    scatter,
    take,
)
from ..ops.reduction import flat_nonzero, reduce_max, reduce_min, reduce_sum
from ..ops.shape import pad, slice_
from ..rules.broadcast import broadcast_to, cast, nullary, reshape
from ..rules.relations import broadcast_shapes, same_size, show_shape
from .products import permuted
from .promotion import (
    agreeing,
    as_int,
    bind_size,
    describe,
    fit,
    guard,
    operand,
    python,
    require_equal,
    size_value,
    static_int,
    strong,
    unwrap,
    weak,
    with_size,
)

SLICES = ("slice", "window", "strided", "all")


@dataclass
class Pick:
    """What an index does to one axis.

    Attributes:
        axis: of the array, for messages.
        kind: "all", "slice" (start, size, step known), "int" (a staged position, checked), "window" (a staged start, a size),
            "strided" (staged positions, one behind the other), "array" (staged positions, checked), "empty" (a position of an axis
            without elements) or "new" (an axis of size 1).
        start, size, step: of a slice; size of a window.
        at: the staged position or positions of an "int", "window" or "array".
        single: whether it is one known position, whose axis disappears.
    """

    axis: int
    kind: str
    start: DimLike = 0
    size: DimLike = 1
    step: int = 1
    at: Any = None  # a `Var`; None for the other kinds
    single: bool = False


# Reading the index.


def _items(x: Var, index) -> list:
    items = list(index) if isinstance(index, tuple) else [index]
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise TypeError_("an index can only have a single ellipsis ('...')")
    taken = sum(1 for item in items if item is not None and item is not Ellipsis)
    if taken > x.ndim:
        raise TypeError_(f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed")
    fill = [slice(None)] * (x.ndim - taken)
    if dots:
        return items[: dots[0]] + fill + items[dots[0] + 1 :]
    return items + fill


def plan(b: Builder, x: Var, index) -> list[Pick]:
    """What an index does, axis by axis; run-time checks are emitted here."""
    picks, axis = [], 0
    for item in _items(x, index):
        if item is None:
            picks.append(Pick(axis, "new"))
            continue
        picks.append(_pick(b, x, axis, item))
        axis += 1
    arrays = [p for p in picks if p.kind == "array"]
    for pick, at in zip(arrays, agreeing(b, "indexing", *(p.at for p in arrays)), strict=True):
        pick.at = at
    return picks


def _pick(b: Builder, x: Var, axis: int, item) -> Pick:
    n = x.shape[axis]
    if isinstance(item, slice):
        return _slice(b, n, axis, item)
    if isinstance(item, Pick):  # in place of a mask
        return item
    if isinstance(item, bool | np.bool_) or (isinstance(item, Var) and item.type == Scalar("bool", True)):
        raise TypeError_("an array is not indexed by True or False in compiled code; use np.where")
    if isinstance(item, list) or (isinstance(item, np.ndarray) and item.ndim):
        item = operand(b, item, "an index")
    if isinstance(item, Var) and isinstance(item.type, Array) and item.shape != ():
        return Pick(axis, "array", at=checked_positions(b, item, n, axis))
    known = static_int(item)
    if known is not None:
        return _known(b, known, n, axis)
    if isinstance(item, Var):
        return Pick(axis, "int", at=_position(b, as_int(b, item, "an array index"), n, axis))
    raise TypeError_(
        f"only integers, slices, ellipsis, None and integer arrays are array indices, and this is {item!r}"
    )


def _bounds(b: Builder, ok: Var, i: Var, axis: int, n: DimLike) -> None:
    parts, operands = ("index ", 0, f" is out of bounds for axis {axis} with size {n}"), (i,)
    if isinstance(n, Dim):
        parts, operands = ("index ", 0, f" is out of bounds for axis {axis} with size ", 1), (i, size_value(b, n))
    guard(b, ok, IndexError, *parts, operands=operands)


def _known(b: Builder, i: DimLike, n: DimLike, axis: int) -> Pick:
    """A position known when compiling."""
    if isinstance(i, int) and isinstance(n, int):
        if not -n <= i < n:
            _bounds(b, python(b, False), python(b, i), axis, n)
            i = 0
        return Pick(axis, "slice" if n else "empty", i % n if n else 0, 1, single=True)
    start = _from_end(i, n)
    if isinstance(start, Dim) and start is i and i != n - 1 and not never_negative(i):
        return Pick(axis, "int", at=_position(b, size_value(b, i), n, axis))  # from the end or not, as turns out
    if not never_negative(start) or not never_negative(n - 1 - start):
        at, size = size_value(b, start), size_value(b, n)
        ok = P.logical_and(P.ge(at, at.const(0)), P.lt(at, size))
        _bounds(b, ok, size_value(b, i), axis, n)
    return Pick(axis, "slice", start, 1, single=True)


def _from_end(i: DimLike, n: DimLike) -> DimLike:
    """An index, counted from the start where it is known to be counted from the end."""
    return n + i if (i < 0 if isinstance(i, int) else never_negative(-1 - i)) else i


def _position(b: Builder, i: Var, n: DimLike, axis: int) -> Var:
    """A run-time position, checked and wrapped into 0 ... n - 1."""
    size = size_value(b, n)
    _bounds(b, P.logical_and(P.ge(i, -size), P.lt(i, size)), i, axis, n)
    return P.where(P.lt(i, i.const(0)), P.add(i, size), i)


def checked_positions(b: Builder, i: Var, n: DimLike, axis: int) -> Var:
    """Run-time positions, checked and wrapped.

    Raises:
        TypeError_: they are no integers.
    """
    if i.dtype == "bool":
        raise TypeError_(f"positions are integers, and these are booleans: {i.type}; use np.flatnonzero(mask)")
    if i.dtype not in INTS:
        raise TypeError_(f"arrays used as indices must be of integer type, and this is {i.type}; use .astype(int)")
    i = cast(i, dtype="int64")
    if product(i.shape) == 0:
        return i
    size = strong(size_value(b, n))
    axes = tuple(range(i.ndim))
    low, high = reduce_min(i, axes=axes), reduce_max(i, axes=axes)
    ok = P.logical_and(P.ge(low, -size), P.lt(high, size))
    _bounds(b, ok, P.where(P.lt(low, -size), low, high), axis, n)
    return P.where(P.lt(i, i.const(0)), P.add(i, size), i)


def _slice(b: Builder, n: DimLike, axis: int, item: slice) -> Pick:
    given = (item.start, item.stop, item.step)
    parts = [None if v is None else static_int(v) for v in given]
    if any(v is None and part is not None for v, part in zip(parts, given)):
        return _window(b, n, axis, item) or _run_time_slice(b, n, axis, *given)
    start, stop, step = parts
    if any(is_run_time(d) for d in (n, start, stop, step) if d is not None) and parts != [None, None, None]:
        return _run_time_slice(b, n, axis, start, stop, step)
    step = 1 if step is None else step
    if not isinstance(step, int) or step == 0:
        raise TypeError_("a slice step must be an int known at compile time, and not 0")
    if isinstance(n, int) and isinstance(start, int | None) and isinstance(stop, int | None):
        first, last, _ = slice(start, stop, step).indices(n)
        size = len(range(first, last, step))
        if (first, size, step) == (0, n, 1):
            return Pick(axis, "all", 0, n)
        return Pick(axis, "slice", first if size else 0, size, step)
    return _symbolic_slice(b, n, axis, start, stop, step) or _run_time_slice(b, n, axis, *parts)


def _symbolic_slice(b: Builder, n: DimLike, axis: int, start, stop, step: int) -> Pick | None:
    """A slice of an axis whose size has a name. It is taken to end within the axis, so that its size is known.

    Where the run finds that it does not, it raises SliceBeyond, and the program is compiled again with this slice cut off: this
    returns None, unless it is proven to end within the axis.
    """

    if step > 0:
        start, stop = 0 if start is None else _from_end(start, n), n if stop is None else _from_end(stop, n)
        size, limits = (stop - start + step - 1) // step, (start, stop - start, n - stop)
    else:
        start, stop = n - 1 if start is None else _from_end(start, n), -1 if stop is None else _from_end(stop, n)
        size, limits = (start - stop - step - 1) // -step, (stop + 1, start - stop, n - 1 - start)
    if (start, size, step) == (0, n, 1):
        return Pick(axis, "all", 0, n)
    for limit in limits:
        # An array of size 0 read backwards has start -1, which does no harm.
        if not never_negative(limit) and not (step < 0 and limit == start - stop and never_negative(size)):
            if b.cuts.has(b.origin):
                return None
            value = size_value(b, limit)
            text = f"a slice reaches beyond axis {axis}, of size "
            guard(b, P.ge(value, value.const(0)), SliceBeyond, text, 0, operands=(size_value(b, n),))
    return Pick(axis, "slice", start, size, step)


def _window(b: Builder, n: DimLike, axis: int, item: slice) -> Pick | None:
    """A slice with a run-time start and a known length: `x[i : i + 3]`; None where it is none."""
    size = None
    if isinstance(item.start, Var) and isinstance(item.stop, Var) and (item.step is None or static_int(item.step) == 1):
        node = item.stop.node
        if isinstance(node, Apply) and getattr(node.fn, "name", "") == "add" and len(node.args) == 2:
            other = {id(node.args[0]): node.args[1], id(node.args[1]): node.args[0]}.get(id(item.start.node))
            if isinstance(other, Constant):
                size = int(other.value)
    if size is None or size < 0 or b.cuts.has(b.origin):
        return None
    start = as_int(b, item.start, "a slice index")
    total = size_value(b, n)
    ok = P.logical_and(P.ge(start, start.const(0)), P.le(P.add(start, start.const(size)), total))
    text = f" is out of bounds for axis {axis} with size "
    guard(b, ok, SliceBeyond, "slice ", 0, ":", 1, text, 2, operands=(start, item.stop, total))
    return Pick(axis, "window", 0, size, 1, start)


def _run_time_slice(b: Builder, n: DimLike, axis: int, start, stop, step) -> Pick:
    """A slice whose length only the run tells, clipped as NumPy does.

    Raises:
        TypeError_: the step is 0.
    """
    pace = 1 if step is None else static_int(step)
    total = size_value(b, n)
    zero, one = total.const(0), total.const(1)
    if isinstance(pace, int) and pace == 0:
        raise TypeError_("a slice step must not be 0")
    if pace == 1 and stop is None and isinstance(known := static_int(start), int) and known >= 0:
        size = bind_size(b, P.maximum(P.sub(total, total.const(known)), zero))
        return Pick(axis, "window", 0, size, 1, P.minimum(total.const(known), total))
    if pace == 1 and start is None and isinstance(known := static_int(stop), int) and known < 0:
        size = bind_size(b, P.maximum(P.sub(total, total.const(-known)), zero))
        return Pick(axis, "window", 0, size, 1, zero)

    def end(value, otherwise: Var, low: Var, high: Var) -> Var:
        """An end of the slice, from the start and between limits."""
        if value is None:
            return otherwise
        known = static_int(value)
        at = as_int(b, value, "a slice index") if known is None else size_value(b, known)
        return P.maximum(P.minimum(P.where(P.lt(at, zero), P.add(at, total), at), high), low)

    if pace == 1:
        first, last = end(start, zero, zero, total), end(stop, total, zero, total)
        return Pick(axis, "window", 0, bind_size(b, P.maximum(P.sub(last, first), zero)), 1, first)
    by = as_int(b, step, "a slice step") if pace is None else size_value(b, pace)
    guard(b, P.ne(by, zero), ValueError, "slice step cannot be zero")
    up, top = P.gt(by, zero), P.sub(total, one)
    low, high = P.where(up, zero, P.neg(one)), P.where(up, total, top)
    first = end(start, P.where(up, zero, top), low, high)
    last = end(stop, P.where(up, total, P.neg(one)), low, high)
    count = P.neg(P.floordiv(P.sub(first, last), by))
    size = bind_size(b, P.maximum(count, zero))
    places = nullary(total, "iota", n=size, dtype="int64")
    at = P.add(P.mul(places, strong(by)), strong(first))
    return Pick(axis, "strided", 0, size, 1, at)


# Reading elements.


def getitem(b: Builder, x: Var, index) -> Var:
    """`x[index]`.

    Args:
        b: the builder. x: array. index: an int, staged int, slice (of ints, staged ints, None), None, Ellipsis,
        integer array or list, or a tuple of them.

    Returns:
        An array, or a NumPy scalar where no axis is left.

    Raises:
        TypeError_: it is no array, or the index is not supported.
        ShapeError: the index does not fit the shape.
    """
    x = operand(b, x, "an indexed value")
    if not isinstance(x.type, Array):
        raise TypeError_(f"'{describe(x.type)}' object is not subscriptable")
    x, index = masks_as_positions(b, x, index)
    picks = plan(b, x, index)
    own = [p for p in picks if p.kind != "new"]
    if any(p.kind == "empty" for p in own):
        return _nothing(x, picks)
    if all(p.kind == "int" or p.single for p in picks) and any(p.kind == "int" for p in picks):
        for p in picks:  # one element: picked axis by axis, without arrays in between
            x = dynamic_index(x, p.at if p.kind == "int" else size_value(b, p.start), axis=0)
        return reshape(x, shape=()) if _only_views(index) else x
    gathers = any(p.kind == "array" for p in own)
    if not gathers:
        # Run-time positions first: a part of a row is a view of the row, and no array is as large as all rows.
        axis = 0
        for p in own:
            if p.kind == "int":
                x = dynamic_index(x, p.at, axis=axis)
            else:
                axis += 1
        own = [p for p in own if p.kind != "int"]
    if any(p.kind == "slice" for p in own):
        static = [p.kind in ("slice", "all") for p in own]
        x = slice_(
            x,
            starts=tuple(p.start if s else 0 for p, s in zip(own, static)),
            sizes=tuple(p.size if s else d for p, s, d in zip(own, static, x.shape)),
            steps=tuple(p.step if s else 1 for p, s in zip(own, static)),
        )
    for k, p in enumerate(own):
        if p.kind == "window":
            x = dynamic_slice(x, p.at, axis=k, length=p.size)
        elif p.kind == "strided":
            x = take(x, p.at, axis=k)
    if gathers:
        return _gather(b, x, picks)
    axis, shape = 0, []
    for p in picks:
        if p.kind == "new":
            shape.append(1)
        elif p.kind != "int":
            if not p.single:
                shape.append(x.shape[axis])
            axis += 1
    if tuple(shape) != x.shape:
        x = reshape(x, shape=tuple(shape))
    return unwrap(x) if not _only_views(index) else x


def masks_as_positions(b: Builder, x: Var, index) -> tuple[Var, Any]:
    """An array and an index with the positions that boolean arrays in it choose in their place.

    Raises:
        ShapeError: a boolean array has another shape than the axes that it stands for.
    """
    items: list[Any] = list(index) if isinstance(index, tuple) else [index]
    items = [
        operand(b, i, "an index") if isinstance(i, np.ndarray) and i.dtype == bool and i.ndim else i for i in items
    ]
    masks = [
        k
        for k, i in enumerate(items)
        if isinstance(i, Var) and isinstance(i.type, Array) and i.dtype == "bool" and i.shape
    ]
    if not masks:
        return x, index
    taken = sum(items[k].ndim if k in masks else i is not None and i is not Ellipsis for k, i in enumerate(items))
    axis, out = 0, []
    for k, item in enumerate(items):
        if k not in masks:
            out.append(item)
            axis += x.ndim - taken if item is Ellipsis else item is not None
            continue
        behind = axis + item.ndim
        for j in range(item.ndim):
            if axis + j < x.ndim:
                item = with_size(b, "a boolean index", item, j, x.shape[axis + j])
        if behind > x.ndim or item.shape != x.shape[axis:behind]:
            raise ShapeError(
                f"boolean index did not match the array: the mask has shape {show_shape(item.shape)}, and the axes from {axis} on "
                f"have shape {show_shape(x.shape[axis:behind])}"
            )
        taken -= item.ndim - 1
        x = reshape(x, shape=(*x.shape[:axis], product(item.shape), *x.shape[behind:]))
        out.append(Pick(axis, "array", at=chosen_positions(b, item)))
        axis += 1
    return x, tuple(out)


def chosen_positions(b: Builder, mask: Var) -> Var:
    """Where a boolean array is true, as positions into its elements, one after the other."""
    flat = mask if mask.ndim == 1 else reshape(mask, shape=(product(mask.shape),))
    count = weak(unwrap(reduce_sum(cast(flat, dtype="int64"), axes=(0,))), "int64")
    return flat_nonzero(flat, size=bind_size(b, count))


def _only_views(index) -> bool:
    """Whether NumPy returns an array without axes instead of a scalar: `x[...]`."""
    return Ellipsis in [
        i for i in (index if isinstance(index, tuple) else (index,)) if not isinstance(i, Var | list | np.ndarray)
    ]


def _nothing(x: Var, picks) -> Var:
    """The result of an index that always raises: of the right shape, never read."""
    shape = tuple(1 if p.kind == "new" else p.size for p in picks if p.kind not in ("int", "empty") and not p.single)
    zero = x.const(0)
    return broadcast_to(zero, shape=shape) if shape else zero


def _gather(b: Builder, x: Var, picks: list[Pick]) -> Var:
    """Integer arrays among the picks. Known and staged ints are advanced indices too, as in NumPy."""
    advanced = [p for p in picks if p.kind in ("array", "int") or p.single]
    places = [k for k, p in enumerate(picks) if p in advanced]
    together = places == list(range(places[0], places[0] + len(places)))
    axis, arrays = 0, []  # (axis of x, positions)
    front = 0  # axes of the result before the first advanced one
    for k, p in enumerate(picks):
        if p.kind == "new":
            x = reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))
        elif p.kind == "int":
            x = dynamic_index(x, p.at, axis=axis)
            continue
        elif p.single:
            x = reshape(x, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))
            continue
        elif p.kind == "array":
            arrays.append((axis, p.at))
        if k < places[0]:
            front += 1
        axis += 1
    axes = [a for a, _ in arrays]
    shape = broadcast_shapes("indexing", *(i.shape for _, i in arrays))
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    if len(arrays) == 1:
        out, at = take(x, arrays[0][1], axis=axes[0]), axes[0]
    else:
        # Several arrays: one gather from the array with their axes merged.
        sizes = [x.shape[a] for a in axes]
        flat = arrays[0][1]
        for (_, i), d in zip(arrays[1:], sizes[1:]):
            flat = P.add(P.mul(flat, strong(size_value(b, d))), i)
        x = permuted(x, (*axes, *rest))
        x = reshape(x, shape=(product(sizes), *x.shape[len(axes) :]))
        out, at = take(x, flat if flat.shape == shape else broadcast_to(flat, shape=shape), axis=0), 0
    to = front if together else 0
    if at != to:
        moved = list(range(at, at + len(shape)))
        others = [k for k in range(out.ndim) if k not in moved]
        out = permuted(out, (*others[:to], *moved, *others[to:]))
    return out


# Assigning elements.


def setitem(b: Builder, x: Var, index, value) -> Var:
    """`x` with `x[index] = value`, as a new value.

    Args:
        b: the builder. x: array. index: as for `getitem`, but for None and arrays (see `array_indices`). value: number or array
        that broadcasts to what is replaced; converted to the dtype of x.

    Raises:
        TypeError_: it is no array, or the index is not supported.
        ShapeError: the index or the value does not fit.
    """
    x, value = operand(b, x, "an indexed value"), operand(b, value, "an assigned value")
    if not isinstance(x.type, Array):
        raise TypeError_(f"'{describe(x.type)}' object does not support item assignment")
    value = fit(b, value, x.dtype)
    picks = plan(b, x, index)
    if any(p.kind in ("new", "array") for p in picks):
        raise TypeError_("assignment at None is not supported; reshape the value instead")
    shape = tuple(p.size if p.kind in SLICES else 1 for p in picks if p.kind != "int" and not p.single)
    # NumPy drops leading axes of size 1 of the value.
    while len(value.shape) > len(shape) and value.shape[0] == 1:
        value = reshape(value, shape=value.shape[1:])
    lead = len(shape) - len(value.shape)
    if lead >= 0:
        value = fitted(b, value, shape[lead:])
    own = value.shape
    if lead < 0 or not all(same_size(d, 1) or same_size(d, n) for d, n in zip(own, shape[lead:])):
        raise ShapeError(
            f"could not broadcast input array from shape {show_shape(value.shape)} into shape {show_shape(shape)}"
        )
    if any(p.kind == "empty" for p in picks):
        return x
    value = unwrap(value)
    if shape and value.shape != shape:
        value = broadcast_to(value, shape=shape)
    return _put(b, x, picks, value, 0)


def fitted(b: Builder, value: Var, shape: tuple[DimLike, ...]) -> Var:
    """An assigned value whose sizes are those of what it replaces, where only a run tells whether they are; that is checked."""
    own = list(value.shape)
    for k, (have, want) in enumerate(zip(own, shape, strict=True)):
        if have != 1 and told_by_run(have, want):
            require_equal(b, "assignment", want, have, k - len(shape))
            own[k] = want
    return value if tuple(own) == value.shape else reshape(value, shape=tuple(own))


def _put(b: Builder, x: Var, picks: list[Pick], value: Var, axis: int) -> Var:
    """`x` with `value` at the picks of axis `axis` and those behind it."""
    while picks and picks[0].kind == "all":
        picks, axis = picks[1:], axis + 1
    if not picks:
        return value if value.type == x.type else reshape(value, shape=x.shape)
    pick, rest = picks[0], picks[1:]
    last = all(p.kind == "all" for p in rest)
    if pick.kind == "int" or pick.single:
        at = pick.at if pick.kind == "int" else size_value(b, pick.start)
        if not last:
            value = _put(b, dynamic_index(x, at, axis=axis), rest, value, axis)
        return dynamic_update(x, value, at, axis=axis)
    if pick.kind == "strided":
        if not last:
            value = _put(b, take(x, pick.at, axis=axis), rest, value, axis + 1)
        return scatter(x, pick.at, value, axis=axis)
    if pick.kind == "window" or pick.step == 1:
        at = pick.at if pick.kind == "window" else size_value(b, pick.start)
        if not last:
            inner = dynamic_slice(x, at, axis=axis, length=pick.size)
            value = _put(b, inner, rest, value, axis + 1)
        return dynamic_update_slice(x, value, at, axis=axis)
    return _put_strided(b, x, pick, rest, value, axis, last)


def _put_strided(b: Builder, x: Var, pick: Pick, rest, value: Var, axis: int, last: bool) -> Var:
    """Every step-th element: spread the value over the axis, and choose."""
    n = x.shape[axis]
    shape = x.shape
    starts: list[DimLike] = [0] * x.ndim
    sizes, steps = list(shape), [1] * x.ndim
    starts[axis], sizes[axis], steps[axis] = pick.start, pick.size, pick.step
    if not last:
        inner = slice_(x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))
        value = _put(b, inner, rest, value, axis + 1)
    if pick.size == 0:
        return x
    gap, first = abs(pick.step), pick.start
    if pick.step < 0:
        from ..ops.shape import flip

        value, first = flip(value, axes=(axis,)), pick.start + (pick.size - 1) * pick.step
    low: list[DimLike] = [0] * x.ndim
    high: list[DimLike] = [0] * x.ndim
    interior = [0] * x.ndim
    low[axis], interior[axis] = first, gap - 1
    high[axis] = n - first - (pick.size - 1) * gap - 1
    spread = pad(value, x.const(0), low=tuple(low), high=tuple(high), interior=tuple(interior))
    own = nullary(x, "iota", n=n, dtype="int64")
    off = P.sub(own, strong(size_value(b, first)))
    hit = P.logical_and(P.ge(off, off.const(0)), P.eq(P.mod(off, off.const(gap)), off.const(0)))
    hit = P.logical_and(hit, P.lt(off, strong(size_value(b, (pick.size - 1) * gap + 1))))
    hit = reshape(hit, shape=(*(1,) * axis, n, *(1,) * (x.ndim - axis - 1)))
    return P.where(hit, spread, x)
