"""Operators of our own, which the texts of control flow use, and the outputs of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....abstract.types import List
from ....infer.values.values import Dyn, Seq, Static, Val
from ....prims.api.promotion import size_value, weak
from ....prims.ops.indexing import dynamic_index
from ....prims.rules.broadcast import as_scalar, cast, reshape
from ....prims.rules.relations import normalise_axis
from ....utils.errors import ShapeError, TypeError_
from ..table import Context, Operand, operator


@operator("Output", "Join", domain="relay", raw=True)
def join(c: Context, x):
    """A value as it leaves a model, a branch or an iteration: tensors of sizes become arrays."""
    if isinstance(x, Operand):
        return x if x.narrow is not None else x.var
    if isinstance(x, Seq) and x.kind in ("list", "tuple"):
        parts = tuple(c.lifted(join(c, own(c, e))) for e in x.elems)
        return Seq(x.kind, parts, x.fields, x.cls)
    return x


def own(c: Context, value: Val):
    """A part of a container as rules take it."""
    from ..table import is_container

    if isinstance(value, Static) and value.value is None:
        return None
    return value if is_container(value) else Operand(c, value)


@operator("Truth", domain="relay", raw=True)
def truth(c: Context, x):
    """A condition as Python's bool.

    Raises:
        TypeError_: it has more than one element.
    """
    if not isinstance(x, Operand):
        return True if x is None else x
    known = x.known
    if known is not None and known.size == 1:
        return c.frame.constant(bool(known.reshape(-1)[0]))
    array = x.var
    if any(d != 1 for d in array.shape):
        raise TypeError_(f"a condition has one element, and this has the shape {array.shape}")
    flat = as_scalar(reshape(array, shape=()))
    return Dyn(cast(flat, dtype="bool", weak=True).node)


@operator("Trips", domain="relay", raw=True)
def trips(c: Context, x):
    """The number of iterations of a loop as Python's int."""
    (count,) = x.scalars("M")
    return Dyn(count.node)


@operator("Length", domain="relay", raw=True)
def length(c: Context, x, *, axis=0):
    """The size of an axis as Python's int."""
    size = x.shape[normalise_axis("Scan", axis, x.shape)]
    return Dyn(size_value(c.b, size).node)


@operator("Steps", domain="relay", raw=True)
async def steps(c: Context, lengths, example, most):
    """The length of an example's sequence as Python's int.

    Raises:
        ShapeError: there is not one length for each example.
    """
    if len(lengths.shape) != 1:
        raise ShapeError(f"lengths of sequences are a vector, and these have the shape {lengths.shape}")
    places = [weak(as_scalar(v.var), "int64") for v in (example, most)]
    found = await c.call(own_length, cast(lengths.var, dtype="int64"), *places)
    return Dyn(weak(as_scalar(found), "int64").node)


def own_length(lengths, example, most):
    """An entry of the lengths of sequences.

    Raises:
        ValueError: it is none that a sequence can have.
    """
    length = int(lengths[example])
    if length < 0 or length > most:
        raise ValueError("sequence_lens has an entry that is negative, or greater than the longest sequence")
    return length


@operator("At", domain="relay", raw=True)
def at(c: Context, x, turn, steps=None, *, axis=0, reverse=0):
    """The part of an array of an iteration; in reverse from the last of the steps on."""
    axis = normalise_axis("Scan", axis, x.shape)
    index = weak(as_scalar(turn.var), "int64")
    if reverse:
        last = size_value(c.b, x.shape[axis]) if steps is None else weak(as_scalar(steps.var), "int64")
        index = last - index.const(1) - index
    out = dynamic_index(x.var, index, axis=axis)
    return out if x.narrow is None else c.narrowed(out, x.narrow)


def stacked(parts, longest, axis, shape, dtype):
    """The arrays of a list one above the other, and zeros up to the size of an axis of another array."""
    out = np.zeros((len(parts) if longest is None else longest.shape[axis], *shape), dtype)
    for i in range(len(parts)):
        out[i] = parts[i]
    return out


@operator("Stack", domain="relay", raw=True)
async def stack(c: Context, parts, longest=None, *, axis=0, reverse=0, like=0):
    """What the iterations of a loop gave, one behind the other, and zeros up to the size that an array has along the axis `like`.

    Raises:
        TypeError_: there is nothing of which the type is known.
    """
    if isinstance(parts, Seq):
        if not parts.elems:
            raise TypeError_("a loop without iterations does not tell the shape of what it collects")
        out = c.numpy(np.stack, [Operand(c, e).var for e in parts.elems])
        if longest is not None:
            more = longest.shape[normalise_axis("Scan", like, longest.shape)] - out.shape[0]
            out = c.numpy(np.pad, out, ((0, more), *((0, 0),) * (len(out.shape) - 1)))
    elif isinstance(parts, Dyn) and isinstance(parts.type, List):
        element: Any = parts.type.elem
        at = 0 if longest is None else normalise_axis("Scan", like, longest.shape)
        whole = None if longest is None else longest.var
        out = await c.call(stacked, parts, whole, at, tuple(element.shape), dtype=element.dtype)
    else:
        raise TypeError_("what a loop collects are no arrays of one shape")
    if reverse:
        out = c.numpy(np.flip, out, axis=0)
    return c.numpy(np.moveaxis, out, 0, axis) if axis else out


@operator("Count", domain="relay", raw=True)
def count(c: Context, x):
    """The length of a sequence as Python's int."""
    if isinstance(x, Seq):
        return c.frame.constant(len(x.elems))
    from ....infer.objects.lists import length as list_length

    return list_length(c.engine, c.frame, x)


@operator("Entry", domain="relay", raw=True)
def entry(c: Context, x, turn):
    """An entry of a sequence of an iteration; of a tensor itself, which is the same in all.

    Raises:
        TypeError_: the operator does not take such inputs.
    """
    if isinstance(x, Operand):
        return x
    if isinstance(x, Seq):
        known = turn.number
        if known is None:
            raise TypeError_("a sequence of tensors of different types needs a known position")
        return x.elems[int(known)]
    from ....infer.objects.structures import get

    return get(c.engine, c.frame, x, Dyn(weak(as_scalar(turn.var), "int64").node))
