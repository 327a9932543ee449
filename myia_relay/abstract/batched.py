"""Types of batches: the type that `vmap` makes from the type of one example."""

from __future__ import annotations

from .dims import DimLike
from .types import Array, Scalar, Struct, Tape, Type


def batched_type(t: Type, size: DimLike, flag: bool | tuple = True) -> Type:
    """The type of a value with a batch axis in front of each array; numbers become arrays, None and strings stay.

    Args:
        t: the type of one example's value.
        size: how many examples.
        flag: whether there is a batch axis; for a structure maybe a tuple, for its parts.
    """
    if flag is False:
        return t
    if isinstance(t, Scalar | Array):
        return Array(t.dtype, (size, *t.shape))
    if isinstance(t, Struct):
        flags = flag if isinstance(flag, tuple) else (True,) * len(t.elems)
        elems = tuple(batched_type(e, size, f) for e, f in zip(t.elems, flags, strict=True))
        return Struct(t.kind, elems, t.fields, t.cls)
    if isinstance(t, Tape):
        return Tape(batched_type(t.elem, size, flag), t.owner)
    return t
