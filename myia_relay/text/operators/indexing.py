"""Elements at places that a run computes: take, gather, scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...abstract.dims import product as product_of
from ...ir.build import Builder, Var
from ...prims.api.implementations import IMPLEMENTATIONS, implements
from ...prims.api.promotion import astype, guard, size_value
from ...prims.ops import elementwise as P
from ...prims.ops.indexing import scatter, scatter_add
from ...prims.ops.indexing import take as take_prim
from ...prims.ops.reduction import reduce_all
from ...prims.ops.shape import concatenate
from ...prims.rules.broadcast import as_scalar, broadcast_to
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import show
from ..terms.solver import Facts
from ..terms.terms import ANY, prune
from .declare import Attr, operator
from .rules import axis_of, integers, shape_first
from .staged import array, constant, cut, finished, number_of, permuted, places_of, reshaped


def _clamped(indices: Var, size: Any, mode: str) -> Var:
    """Indices within an axis."""
    at = astype(indices, "int64")
    n = astype(size_value(at.builder, size), "int64")
    zero = constant(at.builder, 0, "int64")
    if mode == "wrap":
        return P.mod(at, n)
    return P.minimum(P.maximum(at, zero), P.sub(n, constant(at.builder, 1, "int64")))


def _take(facts: Facts) -> None:
    t, indices = facts.tensor(0), facts.tensor(1)
    integers(facts, indices, "the indices")
    axis, batch = facts.attr("axis"), facts.attr("batch_dims")
    if axis is None:
        facts.gives_tensor(indices.shape, t.dtype)
        return
    shape = shape_first(facts, t)
    own = facts.shape(indices)
    at = axis_of(facts, axis, len(shape))
    batch = batch + len(own) if batch < 0 else batch
    if not 0 <= batch <= min(at, len(own)):
        raise ShapeError(f"take: batch_dims={batch} is more than the axis {at}, or than the axes of {show(indices)}")
    for k in range(batch):
        facts.same_size(shape[k], own[k], f"take: axis {k} of {show(t)} and of {show(indices)} differ")
    facts.gives_tensor((*shape[:at], *own[batch:], *shape[at + 1 :]), t.dtype)


TAKE = {"batch_dims": Attr("int", 0), "axis": Attr("int", None), "mode": Attr(("clip", "wrap", "fast"), "clip")}


@operator("take", ("data", "indices"), _take, TAKE)
def take(b: Builder, data: Var, indices: Var, batch_dims: int = 0, axis: Any = None, mode: str = "clip") -> Var:
    """Parts of a tensor at places along an axis, or elements of all; places beyond the ends are clipped, or wrapped around."""
    x, at = array(data), array(indices)
    if axis is None:
        x, axis = reshaped(x, [product_of(x.shape)]), 0
    axis = axis % x.ndim
    batch = batch_dims + at.ndim if batch_dims < 0 else batch_dims
    inside = _clamped(at, x.shape[axis], mode)
    if not batch:
        return finished(take_prim(x, inside, axis=axis))
    # The examples one behind the other along the axis that is taken from.
    front, rows = x.shape[:batch], x.shape[axis]
    examples, between, behind = product_of(front), x.shape[batch:axis], x.shape[axis + 1 :]
    m, p = product_of(between), product_of(behind)
    turned = permuted(reshaped(x, [examples, m, rows, p]), (0, 2, 1, 3))
    count = product_of(at.shape[batch:])
    start = P.mul(places_of(b, examples), number_of(b, [rows], "int64"))
    flat = P.add(reshaped(inside, [examples, count]), reshaped(start, [examples, 1]))
    out = take_prim(reshaped(turned, [examples * rows, m, p]), flat, axis=0)
    return finished(reshaped(permuted(out, (0, 2, 1, 3)), [*front, *between, *at.shape[batch:], *behind]))


def _gather(facts: Facts) -> None:
    t, indices = facts.tensor(0), facts.tensor(1)
    facts.gives_tensor(indices.shape, t.dtype)
    integers(facts, indices, "the indices")
    shape, own = facts.shape(t), facts.shape(indices)
    if len(shape) != len(own):
        raise ShapeError(f"gather: {show(t)} and {show(indices)} have different numbers of axes")
    axis = axis_of(facts, facts.attr("axis"), len(shape))
    for k, (have, want) in enumerate(zip(shape, own, strict=True)):
        if k != axis and isinstance(have, int) and isinstance(want, int) and want > have:
            raise ShapeError(f"gather: axis {k} of {show(indices)} is longer than that of {show(t)}")


@operator("gather", ("data", "indices"), _gather, {"axis": Attr("int", 0)})
def gather(b: Builder, data: Var, indices: Var, axis: int = 0) -> Var:
    """Elements at places of their own along an axis: out[i, j] = data[indices[i, j], j] for axis 0."""
    x, at = array(data), array(indices)
    axis = axis % x.ndim
    for k in range(x.ndim):
        if k != axis and x.shape[k] != at.shape[k]:
            x = cut(x, k, 0, at.shape[k])
    return IMPLEMENTATIONS[np.take_along_axis](b, x, at, axis)


def _gather_nd(facts: Facts) -> None:
    t, indices = facts.tensor(0), facts.tensor(1)
    integers(facts, indices, "the indices")
    shape, own = shape_first(facts, t), facts.shape(indices)
    batch = facts.attr("batch_dims")
    if not own:
        raise ShapeError("gather_nd: the indices have no axis")
    depth = facts.size(own[0])
    if not isinstance(depth, int):
        raise TypeError_(f"gather_nd needs to know how many axes the indices {show(indices)} go over")
    if batch < 0 or batch + depth > len(shape) or batch > len(own) - 1:
        raise ShapeError(f"gather_nd: indices over {depth} axes behind {batch} do not fit {show(t)}")
    facts.gives_tensor((*own[1:], *shape[batch + depth :]), t.dtype)


@operator("gather_nd", ("data", "indices"), _gather_nd, {"batch_dims": Attr("int", 0), "index_rank": Attr("int", None)})
def gather_nd(b: Builder, data: Var, indices: Var, batch_dims: int = 0, index_rank: Any = None) -> Var:
    """Parts at places that are given by several indices, one for each of the first axes: out[j] = data[indices[0, j], ...]."""
    x, at = array(data), array(indices)
    flat, rows = flat_places(b, x.shape, at, batch_dims)
    depth = at.shape[0]
    assert isinstance(depth, int)
    rest = x.shape[batch_dims + depth :]
    return finished(take_prim(reshaped(x, [rows, *rest]), flat, axis=0))


def flat_places(b: Builder, shape: Sequence[Any], at: Var, batch: int = 0) -> tuple[Var, Any]:
    """Places along several axes as places along one; IndexError at run time where one does not exist.

    Args:
        b: the builder.
        shape: of the tensor.
        at: (M, ...), a place along each of M axes; negative ones count from the end.
        batch: how many axes are in front of these, along which each example has its own places.

    Returns:
        The places, of the shape of `at` without its first axis, and the size of the one axis.

    Raises:
        ShapeError: M is not known.
    """
    (depth,) = known_depth(at)
    flat = constant(b, 0, "int64")
    own = at.shape[1:]
    for k in range(batch):
        step = places_of(b, shape[k])
        ones = [shape[k] if j == k else 1 for j in range(len(own))]
        flat = P.add(P.mul(flat, number_of(b, [shape[k]], "int64")), reshaped(step, ones))
    for k in range(depth):
        size = shape[batch + k]
        index = astype(reshaped(cut(at, 0, k, 1), own), "int64")
        n = number_of(b, [size], "int64")
        zero = constant(b, 0, "int64")
        inside = P.logical_and(P.ge(index, P.neg(n)), P.lt(index, n))
        every = reduce_all(inside, axes=tuple(range(len(own)))) if own else inside
        guard(b, as_scalar(array(every)), IndexError, f"an index is out of bounds for axis {batch + k} of a tensor")
        index = P.where(P.lt(index, zero), P.add(index, n), index)
        flat = P.add(P.mul(flat, n), index)
    return broadcast_to(array(flat), shape=tuple(own)) if own else flat, product_of(shape[: batch + depth])


def known_depth(at: Var) -> tuple[int]:
    """How many axes indices go over.

    Raises:
        ShapeError: it is not known.
    """
    depth = at.shape[0] if at.shape else None
    if not isinstance(depth, int):
        raise ShapeError("the number of axes that indices go over must be known")
    return (depth,)


# Scattering. The language has the loops; what needs no loop is staged.


def places_along(indices, shape_like, axis):
    """Places of elements along an axis, as places in the tensor flattened; implemented below."""
    raise NotImplementedError


@implements(places_along, static=("axis",), name="scatter_elements")
def _places_along(b: Builder, indices, shape_like, axis) -> Var:
    at, shape = array(indices), array(shape_like).shape
    axes = []
    for k, size in enumerate(at.shape):
        own = at if k == axis else reshaped(places_of(b, size), [size if j == k else 1 for j in range(at.ndim)])
        axes.append(reshaped(broadcast_to(astype(own, "int64"), shape=at.shape), [1, product_of(at.shape)]))
    stacked = axes[0] if len(axes) == 1 else concatenate(*axes, axis=0)
    return flat_places(b, shape, stacked)[0]


def places_of_tuples(indices, shape_like):
    """Places given by several indices, as places along one axis; implemented below."""
    raise NotImplementedError


@implements(places_of_tuples, name="scatter_nd")
def _places_of_tuples(b: Builder, indices, shape_like) -> Var:
    at = array(indices)
    count = product_of(at.shape[1:])
    return flat_places(b, array(shape_like).shape, reshaped(at, [at.shape[0], count]))[0]


def added_at(rows, at, updates):
    """Rows with others added at places; implemented below."""
    raise NotImplementedError


@implements(added_at, name="scatter_add")
def _added_at(b: Builder, rows, at, updates) -> Var:
    return scatter_add(array(rows), array(at), array(updates), axis=0)


def rows_at(x, indices, of_updates):
    """A tensor with the axes that several indices go over as one; implemented below."""
    raise NotImplementedError


@implements(rows_at, static=("of_updates",), name="scatter_nd")
def _rows_at(b: Builder, x, indices, of_updates) -> Var:
    x, at = array(x), array(indices)
    depth = at.ndim - 1 if of_updates else known_depth(at)[0]
    return reshaped(x, [product_of(x.shape[:depth]), *x.shape[depth:]])


def chosen_rows(which, updates, rows):
    """Rows of updates where a number of one is given, and the rows that there are where it is negative; implemented below."""
    raise NotImplementedError


@implements(chosen_rows, name="scatter")
def _chosen_rows(b: Builder, which, updates, rows) -> Var:
    at, x = array(which), array(rows)
    given = P.ge(at, constant(b, 0, at.dtype))
    taken = array(take_prim(array(updates), P.maximum(at, constant(b, 0, at.dtype)), axis=0))
    return P.where(reshaped(given, [x.shape[0], *(1,) * (x.ndim - 1)]), taken, x)


def _written_at(rows, at, updates, mode):
    """Rows with others written, added, multiplied, or the greater or lesser taken, at places; the last write stays."""
    if updates.shape[0] == 0:
        return rows
    if mode == "add":
        return added_at(rows, at, updates)
    if mode == "update":
        last = np.full(rows.shape[0], -1, np.int64)
        for k in range(at.shape[0]):
            last[at[k]] = k
        return chosen_rows(last, updates, rows)
    out = rows.copy()
    for k in range(at.shape[0]):
        if mode == "mul":
            out[at[k]] = out[at[k]] * updates[k]
        elif mode == "min":
            out[at[k]] = np.minimum(out[at[k]], updates[k])
        else:
            out[at[k]] = np.maximum(out[at[k]], updates[k])
    return out


def _scatter_elements(facts: Facts) -> None:
    t, indices, updates = facts.tensor(0), facts.tensor(1), facts.tensor(2)
    facts.gives(t)
    facts.same_dtype(t, updates)
    integers(facts, indices, "the indices")
    facts.equal(indices.shape, updates.shape)
    shape, own = facts.shape(t), facts.shape(indices)
    if len(shape) != len(own):
        raise ShapeError(f"{facts.name}: {show(t)} and {show(indices)} have different numbers of axes")
    axis_of(facts, facts.attr("axis"), len(shape))


@operator(
    "scatter_elements",
    ("data", "indices", "updates"),
    _scatter_elements,
    {"axis": Attr("int", 0), "reduction": Attr(("update", "add", "mul", "min", "max"), "update")},
    staged=False,
)
def scatter_elements(data, indices, updates, axis=0, reduction="update"):
    """Elements written at places of their own along an axis, or combined: out[indices[i, j], j] = updates[i, j]."""
    at = places_along(indices, data, axis % data.ndim)
    rows = np.reshape(data, (data.size, 1))
    out = _written_at(rows, at, np.reshape(updates, (updates.size, 1)), reduction)
    return np.reshape(out, data.shape)


@operator("scatter", ("data", "indices", "updates"), _scatter_elements, {"axis": Attr("int", 0)}, staged=False)
def scatter_(data, indices, updates, axis=0):
    """Elements written at places of their own along an axis."""
    return scatter_elements(data, indices, updates, axis, "update")


@operator("scatter_add", ("data", "indices", "updates"), _scatter_elements, {"axis": Attr("int", 0)}, staged=False)
def scatter_add_(data, indices, updates, axis=0):
    """Elements added at places of their own along an axis."""
    return scatter_elements(data, indices, updates, axis, "add")


def _scatter_nd(facts: Facts) -> None:
    t, indices, updates = facts.tensor(0), facts.tensor(1), facts.tensor(2)
    facts.gives(t)
    facts.same_dtype(t, updates)
    integers(facts, indices, "the indices")
    shape, own = facts.shape(t), facts.shape(indices)
    depth = facts.size(own[0]) if own else 0
    if not isinstance(depth, int) or depth is ANY or not own or depth > len(shape):
        raise ShapeError(f"scatter_nd: the indices {show(indices)} do not go over the axes of {show(t)}")
    facts.equal(updates.shape, tuple(map(prune, (*own[1:], *shape[depth:]))))


@operator(
    "scatter_nd",
    ("data", "indices", "updates"),
    _scatter_nd,
    {"mode": Attr(("update", "add", "mul", "min", "max"), "update")},
    staged=False,
)
def scatter_nd(data, indices, updates, mode="update"):
    """Parts written at places given by several indices, or combined with those there: out[indices[0, j], ...] = updates[j]."""
    rows = rows_at(data, indices, False)
    at = places_of_tuples(indices, data)
    return np.reshape(_written_at(rows, at, rows_at(updates, indices, True), mode), data.shape)


def _permutation(facts: Facts) -> None:
    t = facts.tensor(0)
    facts.gives(t)
    integers(facts, t, "the places")
    facts.rank(t, 1)


@operator("invert_permutation", ("data",), _permutation)
def invert_permutation(b: Builder, data: Var) -> Var:
    """The inverse of a permutation."""
    x = array(data)
    places, _ = flat_places(b, x.shape, reshaped(x, [1, x.shape[0]]))
    order = astype(places_of(b, x.shape[0]), x.dtype)
    return scatter(P.mul(order, constant(b, 0, x.dtype)), places, order, axis=0)


def _argwhere(facts: Facts) -> None:
    facts.gives_tensor((ANY, len(facts.shape(facts.tensor(0)))), "int32")


@operator("argwhere", ("condition",), _argwhere)
def argwhere(b: Builder, condition: Var) -> Var:
    """The places of the elements that are not 0; only a run tells how many."""
    return astype(IMPLEMENTATIONS[np.argwhere](b, array(condition)), "int32")
