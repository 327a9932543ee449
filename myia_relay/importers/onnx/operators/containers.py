"""Sequences, which are lists, and optionals, which are a value or None."""

from __future__ import annotations

import numpy as np

from ....infer.objects.list_methods import list_method
from ....infer.values.values import Dyn, Seq, Static, Val
from ....prims.api.promotion import weak
from ....prims.rules.broadcast import as_array, as_scalar, cast, reshape
from ....utils.errors import ShapeError, TypeError_, ValueError_
from ..table import Context, Operand, operator


def entries(x) -> tuple[Val, ...]:
    """The entries of a sequence of known length.

    Raises:
        TypeError_: it is none.
    """
    if isinstance(x, Seq) and x.kind in ("list", "tuple"):
        return x.elems
    raise TypeError_("it takes a sequence whose length is known, and this is another value")


def place(x, count: int, last: int) -> int:
    """A known position in a sequence; from the end where it is negative.

    Raises:
        ValueError_: the sequence has no such position.
    """
    if x is None:
        return last
    at = int(x.static("position").reshape(()))
    if not -count <= at < max(count, last + 1):
        raise ValueError_(f"the position {at} is not in a sequence of {count}")
    return at + count if at < 0 else at


def is_static(x) -> bool:
    """Whether the length of a sequence is known."""
    return isinstance(x, Seq)


@operator("SequenceEmpty", raw=True)
def sequence_empty(c: Context, *, dtype="float32"):
    """A sequence of nothing."""
    return Seq("list", ())


@operator("SequenceConstruct", raw=True)
def sequence_construct(c: Context, *xs):
    """A sequence of tensors."""
    return Seq("list", tuple(c.lifted(x) for x in xs))


@operator("SequenceAt", raw=True)
def sequence_at(c: Context, x, position):
    """An entry of a sequence."""
    if is_static(x):
        return entries(x)[place(position, len(x.elems), len(x.elems) - 1)]
    from ....infer.objects.structures import get

    return get(
        c.engine, c.frame, x, Dyn(weak(as_scalar(cast(reshape(position.var, shape=()), dtype="int64")), "int64").node)
    )


@operator("SequenceInsert", raw=True)
async def sequence_insert(c: Context, x, tensor, position=None):
    """A sequence with a tensor before a position, or at the end.

    Raises:
        TypeError_: the operator does not take such inputs.
    """
    if is_static(x):
        found = list(entries(x))
        found.insert(place(position, len(found), len(found)), c.lifted(tensor))
        return Seq("list", tuple(found))
    copy = await list_method(c.engine, c.frame, x, "copy", [], {})
    raise TypeError_(f"it changes a sequence of which only a run tells how long it is ({type(copy).__name__})")


@operator("SequenceErase", raw=True)
def sequence_erase(c: Context, x, position=None):
    """A sequence without an entry, by default the last one."""
    found = list(entries(x))
    del found[place(position, len(found), len(found) - 1)]
    return Seq("list", tuple(found))


@operator("SequenceLength", raw=True)
def sequence_length(c: Context, x):
    """How many entries a sequence has."""
    if is_static(x):
        return np.int64(len(x.elems))
    from .flow import count

    return as_array(cast(c.frame.var(count(c, x)), dtype="int64", weak=False))


@operator("ConcatFromSequence", raw=True)
def concat_from_sequence(c: Context, x, *, axis, new_axis=0):
    """The entries of a sequence one behind the other, or along a new axis."""
    parts = [Operand(c, e).var for e in entries(x)]
    if new_axis:
        return c.numpy(np.stack, parts, axis=axis)
    return parts[0] if len(parts) == 1 else c.numpy(np.concatenate, parts, axis=axis)


@operator("SplitToSequence", raw=True)
def split_to_sequence(c: Context, x, split=None, *, axis=0, keepdims=1):
    """The parts of a tensor along an axis.

    Raises:
        ShapeError: the size of the axis is not known.
    """
    from ....prims.rules.relations import normalise_axis
    from .shapes import parted

    at = normalise_axis("SplitToSequence", axis, x.shape)
    n = x.shape[at]
    if not isinstance(n, int):
        raise ShapeError(f"it splits an axis of the unknown size {n}")
    if split is None:
        sizes = [1] * n
    else:
        known = split.static("split")
        each = int(known.reshape(-1)[0]) if known.ndim == 0 else 0
        sizes = [int(s) for s in known] if known.ndim else [each] * (n // each) + ([n % each] if n % each else [])
    parts = list(parted(c, x.var, at, sizes, len(sizes)))
    if split is None and not keepdims:
        parts = [reshape(p, shape=tuple(d for k, d in enumerate(p.shape) if k != at)) for p in parts]
    return Seq("list", tuple(c.lifted(p) for p in parts))


@operator("Optional", raw=True)
def optional(c: Context, x=None, *, type=None):
    """A value that may be absent."""
    return Static(None) if x is None else c.lifted(x)


@operator("OptionalHasElement", raw=True)
def optional_has_element(c: Context, x=None):
    """Whether a value is there."""
    return np.bool_(x is not None)


@operator("OptionalGetElement", raw=True)
def optional_get_element(c: Context, x):
    """The value, which is there.

    Raises:
        ValueError_: it is absent.
    """
    if x is None:
        raise ValueError_("the value is absent")
    return c.lifted(x)
