"""Gathering and scattering."""

from __future__ import annotations

import numpy as np

from ....abstract.dims import product
from ....ir.build import Var
from ....library.rows import combine_rows, put_rows
from ....prims.api.subscripts import checked_positions
from ....prims.ops import elementwise as P
from ....prims.ops.indexing import scatter_add, take
from ....prims.rules.broadcast import broadcast_to, cast, reshape
from ....prims.rules.relations import normalise_axis
from ....utils.errors import ShapeError, ValueError_
from ..table import Context, operator
from .shapes import as_positions


@operator("Gather", carries=True)
def gather(c: Context, x, indices, *, axis=0):
    """The parts of a tensor at positions along an axis."""
    return c.numpy(np.take, x, cast(indices, dtype="int64"), axis=axis)


@operator("GatherElements", carries=True)
def gather_elements(c: Context, x, indices, *, axis=0):
    """For each place the element at a position of its own along an axis."""
    at = normalise_axis("GatherElements", axis, x.shape)
    places = cast(indices, dtype="int64")
    flat = flat_places(c, x, places, at)
    return reshape(take(reshape(x, shape=(product(x.shape),)), flat, axis=0), shape=indices.shape)


def flat_places(c: Context, x: Var, indices: Var, at: int) -> Var:
    """Where in the flattened tensor the elements are whose index along an axis is given, and the other ones are their own."""
    own = checked_positions(c.b, indices, x.shape[at], at)
    total, stride = None, 1
    for axis in reversed(range(len(x.shape))):
        size = indices.shape[axis]
        place = (
            own
            if axis == at
            else reshape(as_positions(c, size), shape=tuple(size if k == axis else 1 for k in range(len(x.shape))))
        )
        part = place * scaled(c, place, stride)
        total = part if total is None else total + part
        stride = stride * x.shape[axis]
    assert total is not None
    return reshape(broadcast_to(total, shape=indices.shape), shape=(product(indices.shape),))


def scaled(c: Context, like: Var, stride) -> Var:
    """A size as an array."""
    from ....prims.api.promotion import size_value
    from ....prims.rules.broadcast import as_array

    return as_array(cast(size_value(c.b, stride), dtype="int64", weak=False))


def flat_rows(c: Context, x: Var, indices: Var, lead: int) -> tuple[Var, int]:
    """The positions of rows that the last axis of the indices says, and how many axes these count.

    Raises:
        ShapeError: shapes do not fit.
    """
    count = indices.shape[-1]
    if not isinstance(count, int):
        raise ShapeError(f"the last axis of the indices has the unknown size {count}")
    flat = reshape(cast(indices, dtype="int64"), shape=(product(indices.shape[:-1]), count))
    total, stride = None, 1
    from ....prims.ops.shape import slice_

    for k in reversed(range(count)):
        part = reshape(slice_(flat, starts=(0, k), sizes=(flat.shape[0], 1), steps=(1, 1)), shape=(flat.shape[0],))
        part = checked_positions(c.b, part, x.shape[lead + k], lead + k)
        part = part * scaled(c, part, stride)
        total = part if total is None else total + part
        stride = stride * x.shape[lead + k]
    assert total is not None
    return total, count


@operator("GatherND", carries=True)
def gather_nd(c: Context, x, indices, *, batch_dims=0):
    """The parts of a tensor at positions along its first axes, behind those of a batch."""
    rows, count = flat_rows(c, x, indices, batch_dims)
    lead, inner = x.shape[:batch_dims], x.shape[batch_dims + count :]
    middle = product(x.shape[batch_dims : batch_dims + count])
    batch = product(lead)
    if batch_dims:
        each = reshape(rows, shape=(batch, rows.shape[0] // batch))
        offset = as_positions(c, batch)
        offset = reshape(offset * scaled(c, offset, middle), shape=(batch, 1))
        rows = reshape(each + offset, shape=rows.shape)
    out = take(reshape(x, shape=(batch * middle, *inner)), rows, axis=0)
    return reshape(out, shape=(*indices.shape[:-1], *inner))


MAXIMUM = {"max": np.maximum, "min": np.minimum, "mul": np.multiply}


async def scattered(c: Context, x: Var, rows: Var, updates: Var, reduction: str) -> Var:
    """Rows with others put in their place, or combined with them, one after the other.

    Raises:
        ValueError_: the reduction is unknown.
    """
    if reduction == "none":
        return await c.call(put_rows, x, rows, updates)
    if reduction == "add":
        return scatter_add(x, rows, updates, axis=0)
    if reduction not in MAXIMUM:
        raise ValueError_(f"its reduction '{reduction}' is unknown")
    return await c.call(combine_rows, MAXIMUM[reduction], x, rows, updates)


@operator("ScatterElements", "Scatter")
async def scatter_elements(c: Context, x, indices, updates, *, axis=0, reduction="none"):
    """A tensor with elements put in, or combined, at a position of their own along an axis."""
    at = normalise_axis("ScatterElements", axis, x.shape)
    rows = flat_places(c, x, cast(indices, dtype="int64"), at)
    flat = reshape(x, shape=(product(x.shape),))
    out = await scattered(c, flat, rows, reshape(updates, shape=rows.shape), reduction)
    return reshape(out, shape=x.shape)


@operator("ScatterND")
async def scatter_nd(c: Context, x, indices, updates, *, reduction="none"):
    """A tensor with parts put in, or combined, at positions along its first axes."""
    rows, count = flat_rows(c, x, indices, 0)
    inner = x.shape[count:]
    flat = reshape(x, shape=(product(x.shape[:count]), *inner))
    out = await scattered(c, flat, rows, reshape(updates, shape=(rows.shape[0], *inner)), reduction)
    return reshape(out, shape=x.shape)


@operator("TensorScatter")
async def tensor_scatter(c: Context, past, update, write_indices=None, *, mode="linear", axis=-2):
    """A cache with an update written from an index on, which each example has of its own."""
    at = normalise_axis("TensorScatter", axis, past.shape)
    n, length, whole = past.shape[0], update.shape[at], past.shape[at]
    steps = reshape(as_positions(c, length), shape=tuple(length if k == at else 1 for k in range(len(past.shape))))
    if write_indices is not None:
        start = cast(write_indices, dtype="int64")
        steps = steps + reshape(start, shape=(n, *(1,) * (len(past.shape) - 1)))
    if mode == "circular":
        steps = P.mod(steps, scaled(c, steps, whole))
    places = broadcast_to(steps, shape=update.shape)
    rows = flat_places(c, past, places, at)
    flat = reshape(past, shape=(product(past.shape),))
    out = await c.call(put_rows, flat, rows, reshape(update, shape=rows.shape))
    return reshape(out, shape=past.shape)
