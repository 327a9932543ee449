"""Batching (vmap): the rule that is derived from a primitive's axes, and helpers for explicit rules.

A rule is `rule(size, batched, *args, **attrs) -> out`: `batched[i]` says whether argument i has the batch axis, as its
first axis; the result has it first, too. A batched scalar is an array of shape (size,).
"""

from __future__ import annotations

from ...ir.axes import is_pointwise
from ...ir.prim import REGISTRY, Primitive
from ...utils.errors import InternalError
from .broadcast import broadcast_to, reshape, shape_of


def materialise(size, batched: bool, x):
    """`x` with a batch axis: repeated where it has none."""
    return x if batched else broadcast_to(x, shape=(size, *shape_of(x)))


def materialise_all(size, batched, args):
    """All arguments with a batch axis."""
    return [materialise(size, flag, x) for flag, x in zip(batched, args, strict=True)]


def align(size, batched, args, rank: int):
    """Arguments of a broadcasting operation with their batch axes under each other, where one example has `rank` axes.

    Ranks without the batch axis may differ, (size, 3) against (4, 3) say: a batched operand of lower rank gets
    axes of size 1 behind its batch axis. Operands without one broadcast by themselves.
    """
    out = []
    for flag, x in zip(batched, args, strict=True):
        own = shape_of(x)
        if flag and len(own) - 1 < rank:
            x = reshape(x, shape=(size, *(1,) * (rank - len(own) + 1), *own[1:]))
        out.append(x)
    return out


def from_axes(prim: Primitive):
    """The batching rule of a primitive from its declared axes, behind the explicit rule of what these do not say.

    Where operands may have any number of axes, the batch axis is one more. Otherwise it is merged with a mapped axis of the same
    operands: the columns of many matrices are more columns of one.
    """
    explicit, axes = prim.batch_rule, prim.axes
    assert axes is not None, f"{prim.name} declares no axes"

    def rule(size, batched, *args, **attrs):
        out = explicit(size, batched, *args, **attrs) if explicit is not None else None
        if out is not None:
            return out
        if is_pointwise(axes):
            return _pointwise(prim, size, batched, args, attrs)
        return (_leading if axes.any_rank else _folded)(prim, size, batched, args, attrs)

    return rule


def _pointwise(prim, size, batched, args, attrs):
    """The same on operands whose axes are under each other."""
    rank = max(len(attrs.get("shape", ())), *(len(shape_of(x)) - flag for flag, x in zip(batched, args, strict=True)))
    return prim(*align(size, batched, args, rank), **prim.axes.grown(attrs, size))


def _leading(prim, size, batched, args, attrs):
    """The same with one more axis in front of those operands that have it together.

    Raises:
        InternalError: an operand that has the batch axis is not among them.
    """
    leading = range(len(args)) if prim.axes.leading is None else prim.axes.leading
    if any(flag and k not in leading for k, flag in enumerate(batched)):
        raise InternalError("vmap", f"the axes of {prim.name} do not say what {batched} means")
    args = [materialise(size, flag, x) if k in leading else x for k, (flag, x) in enumerate(zip(batched, args))]
    return prim(*args, **prim.axes.grown(attrs, size))


def _folded(prim, size, batched, args, attrs):
    """The same with the batch axis in front of a mapped axis and one with it.

    Raises:
        InternalError: no mapped axis is in all operands that have the batch axis.
    """
    shapes = [shape_of(x)[flag:] for flag, x in zip(batched, args, strict=True)]
    relation = prim.axes.relation(shapes, (), attrs)
    for label in relation.mapped():
        places = [relation.axis_of(label, k) for k in range(len(args))]
        if label not in relation.located and all(at is not None for at, flag in zip(places, batched) if flag):
            break
    else:
        raise InternalError("vmap", f"the axes of {prim.name} do not say what {batched} means")
    out = prim(
        *(
            x if at is None else merge(materialise(size, flag, x), at)
            for x, flag, at in zip(args, batched, places, strict=True)
        ),
        **attrs,
    )
    (n,) = {shapes[k][at] for k, at in enumerate(places) if at is not None}
    return unmerge(out, size, n, relation.axis_of(label))


def merge(x, axis: int = 0):
    """The batch axis and one of the others as one: (size, ..., n, ...) -> (..., size * n, ...)."""
    size, *rest = shape_of(x)
    if axis:
        x = REGISTRY["transpose"](x, perm=(*range(1, axis + 1), 0, *range(axis + 1, len(rest) + 1)))
    return reshape(x, shape=(*rest[:axis], size * rest[axis], *rest[axis + 1 :]))


def unmerge(x, size, n, axis: int = 0):
    """(..., size * n, ...) -> (size, ..., n, ...)."""
    shape = shape_of(x)
    x = reshape(x, shape=(*shape[:axis], size, n, *shape[axis + 1 :]))
    return REGISTRY["transpose"](x, perm=(axis, *range(axis), *range(axis + 1, len(shape) + 1))) if axis else x
