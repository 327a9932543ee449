"""Assignment by arrays: `x[mask] = v`, `x[mask] += v`, `x[i, j] = v` with integer arrays; and positions that values choose.

A mask keeps the shape of x, so the assignment is a selection between the new and the old value. Only values whose size
depends on the mask are refused. Integer arrays are combined to one array of positions into the merged axes, which are
moved to the front. The rows are written one after the other, because the last of several writes to one position wins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.dims import product
from ...abstract.types import INTS, Array
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.indexing import scatter_add, take
from ..ops.reduction import cumsum, reduce_all, reduce_sum
from ..ops.shape import slice_, stack
from ..rules.broadcast import as_array, broadcast_to, reshape
from ..rules.relations import broadcast_shapes, normalise_axis, same_size, show_shape
from .implementations import implements, method
from .products import permuted
from .promotion import (
    astype,
    bind_size,
    fit,
    guard,
    operand,
    require_equal,
    size_value,
    strong,
    unwrap,
    weak,
    with_size,
)
from .subscripts import Pick, chosen_positions, fitted, getitem, plan, setitem


def _is_mask(item) -> bool:
    return isinstance(item, Var) and isinstance(item.type, Array) and item.dtype == "bool" and item.shape != ()


@dataclass
class Masked:
    """The part of an array that a mask chooses.

    Attributes:
        x: the array.
        index: what is indexed, with full slices in place of the mask.
        part: `x[index]`.
        mask: the mask, in the shape that chooses from `part`.
        rest: the shape of one chosen element.
        given: the index with the mask.
    """

    x: Var
    index: tuple
    part: Var
    mask: Var
    rest: tuple
    given: Any

    def takes(self, value: Var) -> bool:
        """Whether a value is one for every chosen element; otherwise it has to have as many as are chosen."""
        shape = self._without_ones(value.shape)
        lead = len(self.rest) - len(shape)
        return lead >= 0 and all(same_size(d, 1) or same_size(d, n) for d, n in zip(shape, self.rest[lead:]))

    def _without_ones(self, shape: tuple) -> tuple:
        """NumPy drops leading axes of size 1 of a value."""
        while len(shape) > len(self.rest) and same_size(shape[0], 1):
            shape = shape[1:]
        return shape

    def replaced(self, b: Builder, new: Var) -> Var:
        """The array with the chosen elements taken from `new`."""
        chosen = P.where(broadcast_to(self.mask, shape=self.part.shape), new, self.part)
        return chosen if all(i == slice(None) for i in self.index) else setitem(b, self.x, self.index, chosen)

    def assigned(self, b: Builder, value) -> Var:
        """The array with one value, which it `takes`, in place of all the chosen elements."""
        value = fit(b, operand(b, value, "an assigned value"), self.x.dtype)
        value = unwrap(reshape(value, shape=self._without_ones(value.shape)) if value.shape else value)
        return self.replaced(b, broadcast_to(value, shape=self.part.shape) if value.shape != self.part.shape else value)


def masked(b: Builder, x: Var, index) -> Masked | None:
    """What `x[index]` chooses where a boolean array is, or is part of, the index; else None.

    Raises:
        ShapeError: the mask does not fit.
        TypeError_: it stands beside other arrays.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    places = [k for k, item in enumerate(items) if _is_mask(item)]
    if not places or not isinstance(x.type, Array):
        return None
    if len(places) > 1 or any(
        isinstance(i, Var) and isinstance(i.type, Array) and i.shape != () for i in items if not _is_mask(i)
    ):
        raise TypeError_("a boolean array beside another array in an index is not part of the language; use np.where")
    (place,) = places
    mask = items[place]
    taken = sum(item is not None and item is not Ellipsis for item in items) + mask.ndim - 1
    if Ellipsis in items[:place]:
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (x.ndim - taken)
        place += x.ndim - taken - 1
    axis = sum(item is not None for item in items[:place])
    for j in range(min(mask.ndim, x.ndim - axis)):
        mask = with_size(b, "a boolean index", mask, j, x.shape[axis + j])
    if taken > x.ndim or not all(same_size(m, n) for m, n in zip(mask.shape, x.shape[axis:])):
        raise ShapeError(
            f"boolean index did not match the array: the mask has shape {show_shape(mask.shape)}, and the axes from {axis} on have "
            f"shape {show_shape(x.shape[axis:])}"
        )
    whole = (*items[:place], *[slice(None)] * mask.ndim, *items[place + 1 :])
    part = getitem(b, x, whole)
    before = sum(isinstance(item, slice) or item is None for item in items[:place])
    behind = part.ndim - before - mask.ndim
    wide = reshape(mask, shape=(*(1,) * before, *mask.shape, *(1,) * behind))
    rest = part.shape[mask.ndim :] if before == 0 else ()
    return Masked(x, whole, part, wide, rest, index)


def by_positions(index) -> bool:
    """Whether an index holds an integer array."""
    items = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(i, list | Pick) or isinstance(i, Var) and isinstance(i.type, Array) and i.shape != () for i in items
    )


def without_slices(index) -> tuple[tuple, tuple] | None:
    """Two indices, slices and then arrays, that do what one does that has both; None where all slices are full."""
    items = index if isinstance(index, tuple) else (index,)
    full = slice(None)
    if not any(isinstance(i, slice) and i != full for i in items):
        return None
    outer = tuple(i if isinstance(i, slice) or i is Ellipsis or i is None else full for i in items)
    return outer, tuple(full if isinstance(i, slice) else i for i in items)


def rows_written(b: Builder, x: Var, index, value, cast: bool = True) -> tuple[Var, Var, Var, Callable[[Var], Var]]:
    """What `x[index] = value` writes where, for an index with integer arrays.

    Args:
        b: the builder.
        x: the array.
        index: what is written.
        value: a number or an array; None for nothing but positions.
        cast: whether the value is converted to the dtype of x.

    Returns:
        x as rows; the positions of rows; the new rows; and what makes an array like x of changed rows.

    Raises:
        TypeError_: there is a None in the index.
        ShapeError: the value does not fit.
    """
    x = operand(b, x, "an indexed value")
    value = x.const(0) if value is None else operand(b, value, "an assigned value")
    value = fit(b, value, x.dtype) if cast else strong(value)
    picks = plan(b, x, index)
    if any(p.kind not in ("all", "array", "int") and not p.single for p in picks):
        raise TypeError_("assignment at integer arrays takes no None beside them; reshape the value instead")
    advanced = [k for k, p in enumerate(picks) if p.kind != "all"]
    rest = [k for k in range(x.ndim) if k not in advanced]
    shape = broadcast_shapes("indexing", *(picks[k].at.shape for k in advanced if picks[k].kind == "array"))
    flat = _merged(b, x, [picks[k] for k in advanced], shape)
    # NumPy puts the axes of the positions in the place of the arrays, or in front if the arrays are not adjacent.
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    front = [k for k in rest if together and k < advanced[0]]
    behind = [k for k in rest if k not in front]
    target = (*[x.shape[k] for k in front], *shape, *[x.shape[k] for k in behind])
    while len(value.shape) > len(target) and same_size(value.shape[0], 1):
        value = reshape(value, shape=value.shape[1:])
    lead = len(target) - len(value.shape)
    if lead >= 0:
        value = fitted(b, value, target[lead:])
    if lead < 0 or not all(same_size(d, 1) or same_size(d, n) for d, n in zip(value.shape, target[lead:])):
        raise ShapeError(
            f"could not broadcast input array from shape {show_shape(value.shape)} into shape {show_shape(target)}"
        )
    value = unwrap(value)
    values = value if value.shape == target else broadcast_to(value, shape=target)
    first, last = len(front), len(front) + len(shape)
    values = permuted(values, (*range(first, last), *range(first), *range(last, len(target))))
    order, own = (*advanced, *rest), tuple(x.shape[k] for k in rest)
    moved = permuted(x, order)
    rows = reshape(moved, shape=(product([x.shape[k] for k in advanced]), *own))

    def restore(rows: Var) -> Var:
        back = sorted(range(x.ndim), key=lambda axis: order[axis])
        return permuted(reshape(rows, shape=moved.shape), tuple(back))

    count = product(shape)
    return rows, reshape(flat, shape=(count,)), reshape(values, shape=(count, *own)), restore


def _merged(b: Builder, x: Var, picks: list[Pick], shape: tuple) -> Var:
    """Positions into the merged axes of the picks."""
    flat, *rest = (p.at if p.kind != "slice" else strong(size_value(b, p.start)) for p in picks)
    for p, at in zip(picks[1:], rest, strict=True):
        flat = P.add(P.mul(flat, strong(size_value(b, x.shape[p.axis]))), at)
    return flat if flat.shape == shape else broadcast_to(flat, shape=shape)


# What has a size that values decide.


def _as_array(b: Builder, x, what: str) -> Var:
    x = strong(operand(b, x, what))
    return x if isinstance(x.type, Array) else as_array(x)


def _true(x: Var) -> Var:
    return x if x.dtype == "bool" else P.ne(x, x.const(0))


@implements(np.nonzero)
def nonzero(b: Builder, a) -> tuple[Var, ...]:
    """np.nonzero: positions along each axis.

    Raises:
        TypeError_: the array has no axes.
    """
    x = _as_array(b, a, "np.nonzero")
    if not x.ndim:
        raise TypeError_("np.nonzero takes arrays with at least one axis; use np.atleast_1d(x).nonzero()")
    at = chosen_positions(b, _true(x))
    out = []
    for size in reversed(x.shape[1:]):
        n = strong(size_value(b, size))
        out.append(P.mod(at, n))
        at = P.floordiv(at, n)
    return (at, *reversed(out))


method("nonzero")(nonzero)


@implements(np.flatnonzero)
def numpy_flatnonzero(b: Builder, a) -> Var:
    """np.flatnonzero."""
    return chosen_positions(b, _true(_as_array(b, a, "np.flatnonzero")))


@implements(np.argwhere)
def argwhere(b: Builder, a) -> Var:
    """np.argwhere: the positions of one element in each row."""
    return stack(*nonzero(b, a), axis=1)


@implements(np.compress, static=("axis",))
def compress(b: Builder, condition, a, axis=None) -> Var:
    """np.compress: the elements, or parts along an axis, at which a condition holds."""
    x, mask = _as_array(b, a, "np.compress"), _true(_as_array(b, condition, "np.compress"))
    if axis is None:
        x, axis = reshape(x, shape=(x.type.size,)), 0
    return getitem(b, x, (*(slice(None),) * normalise_axis("np.compress", axis, x.shape), mask))


@method("compress", static=("axis",))
def _(b: Builder, x, condition, axis=None) -> Var:
    return compress(b, condition, x, axis)


@implements(np.extract)
def extract(b: Builder, condition, arr) -> Var:
    """np.extract: the elements at which a condition holds."""
    return compress(b, reshape(m := _as_array(b, condition, "np.extract"), shape=(m.type.size,)), arr)


def repeated(b: Builder, x: Var, counts: Var, axis: int) -> Var:
    """Every part along an axis as often as counts say.

    Raises:
        TypeError_: the counts are no integers.
    """
    if counts.dtype not in INTS or counts.ndim != 1:
        raise TypeError_(f"np.repeat takes an int, or an array of integers with one axis, and this is {counts.type}")
    counts = astype(counts, "int64")
    n = x.shape[axis]
    if counts.shape == (1,):
        counts = broadcast_to(counts, shape=(n,))
    elif counts.shape != (n,):
        require_equal(b, "np.repeat", n, counts.shape[0], 0)
        counts = reshape(counts, shape=(n,))
    fine = reduce_all(P.ge(counts, counts.const(0)), axes=(0,))
    guard(b, unwrap(fine), ValueError, "repeats may not contain negative values.")
    total = bind_size(b, weak(unwrap(reduce_sum(counts, axes=(0,))), "int64"))
    return take(x, _owners(counts, total), axis=axis)


def _owners(counts: Var, total) -> Var:
    """For each of all elements that counts make, which count it belongs to: how many counts end before it."""
    ends = cumsum(counts, axis=0)
    one = broadcast_to(counts.const(1), shape=counts.shape)
    # Counts that end where all do belong to nothing: there is a place for them behind the last.
    marks = scatter_add(broadcast_to(counts.const(0), shape=(total + 1,)), ends, one, axis=0)
    return cumsum(slice_(marks, starts=(0,), sizes=(total,), steps=(1,)), axis=0)
