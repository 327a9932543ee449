"""Batching (vmap): helpers of the `batch` rules, and the one rule of all elementwise primitives.

A rule is `rule(size, batched, *args, **attrs) -> out`: `batched[i]` says whether argument i carries the batch
axis, first; the result carries it first. A batched scalar is an array of shape (size,).
"""

from __future__ import annotations

from ...abstract.types import Array
from .broadcast import broadcast_to, reshape, shape_of, type_of


def materialise(size, batched: bool, x):
    """`x` with a batch axis: repeated where it has none."""
    return x if batched else broadcast_to(x, shape=(size, *shape_of(x)))


def materialise_all(size, batched, args):
    """All arguments with a batch axis."""
    return [materialise(size, flag, x) for flag, x in zip(batched, args, strict=True)]


def align(size, batched, args):
    """Arguments of a broadcasting operation with their batch axes under each other.

    Ranks without the batch axis may differ, (size, 3) against (4, 3) say: a batched operand of lower rank gets
    axes of size 1 behind its batch axis. Operands without one broadcast by themselves.
    """
    rank = max(len(shape_of(x)) - flag for flag, x in zip(batched, args, strict=True))
    out = []
    for flag, x in zip(batched, args, strict=True):
        own = shape_of(x)
        if flag and len(own) - 1 < rank:
            x = reshape(x, shape=(size, *(1,) * (rank - len(own) + 1), *own[1:]))
        out.append(x)
    return out


def batch_elementwise(prim):
    """The batching rule of an elementwise primitive: the primitive itself, on aligned operands."""

    def rule(size, batched, *args, **attrs):
        return prim(*align(size, batched, args), **attrs)

    return rule


def merge(x):
    """The batch axis and the axis behind it as one: (size, n, ...) -> (size * n, ...)."""
    size, n, *rest = shape_of(x)
    return reshape(x, shape=(size * n, *rest))


def unmerge(x, size, n):
    """(size * n, ...) -> (size, n, ...)."""
    return reshape(x, shape=(size, n, *shape_of(x)[1:]))


def is_array(x) -> bool:
    """Whether a staged value or number is an array."""
    return isinstance(type_of(x), Array)
