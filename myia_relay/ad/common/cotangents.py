"""Cotangents with symbolic zeros.

A cotangent is None (zero), a node or, for a structure, a tuple of the cotangents of its parts. The adjoint of taking a
part of a structure therefore costs nothing. A zero becomes a value only where two paths must agree on what they return:
the branches of a condition, the iterations of a loop.

A cotangent of a tree of which only fields of one variant have been read is a `Record`, which becomes a value where
necessary.

A *pattern* is a cotangent's structure: None, True for a node, or a tuple of patterns. It says which cotangents a graph
takes and returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...abstract.types import Data, Leaf, List, NoneT, Struct, Tape, Type, has_tangent, tangent
from ...ir.build import Builder, Var, as_type
from ...ir.node import Constant, Node
from ...ir.prim import REGISTRY
from ...prims.ops import data_functions as data
from ...prims.rules.broadcast import match_kind
from ...utils.errors import InternalError
from .list_sums import add_lists


@dataclass(frozen=True)
class Record:
    """The cotangent of a tree whose variant is known.

    Attributes:
        type: that of the cotangent.
        variant: the number of the variant.
        parts: the cotangents of leaves by their index; those of others are zero.
    """

    type: Data
    variant: int
    parts: Mapping[int, Cotangent]


Cotangent = None | Node | Record | tuple
Pattern = None | bool | tuple


def split(builder: Builder, node: Node) -> Cotangent:
    """A node that holds a whole cotangent, split into the cotangents of its parts."""
    if isinstance(node.type, Struct):
        get = REGISTRY["get_item"]
        parts = tuple(
            split(builder, builder.emit(get, (node,), {"index": i})) if has_tangent(e) else None
            for i, e in enumerate(node.type.elems)
        )
        return parts if any(p is not None for p in parts) else None
    return None if isinstance(node.type, NoneT) else node


def add(builder: Builder, functions: data.Functions, a: Cotangent, b: Cotangent) -> Cotangent:
    """The sum of two cotangents of one value.

    Raises:
        InternalError: both are tapes, of which each is used once.
    """
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(add(builder, functions, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Record) and isinstance(b, Record) and a.variant == b.variant:
        indices = sorted({*a.parts, *b.parts})
        return Record(a.type, a.variant, {k: add(builder, functions, a.parts.get(k), b.parts.get(k)) for k in indices})
    assert not isinstance(a, tuple) and not isinstance(b, tuple)  # either both are tuples, or none
    if isinstance(a.type, Data):
        return functions.add(builder, materialise(builder, a, a.type), materialise(builder, b, a.type))
    if isinstance(a.type, Tape):
        raise InternalError("ad", "a tape is used twice: two cotangents meet")
    assert isinstance(a, Node) and isinstance(b, Node)
    if isinstance(a.type, List):
        return add_lists(builder, a, b)
    return builder.emit(REGISTRY["add"], (a, b))


def zeros(builder: Builder, t: Type) -> Node:
    """Zero of a tangent type.

    The zero of a tape is the empty tape: zeros of tapes meet only tapes from which everything was popped, or that the
    other branch of a condition never filled.
    """
    if isinstance(t, Tape):
        return builder.emit(REGISTRY["tape_new"], (), {"elem": t.elem, "owner": t.owner})
    if isinstance(t, List):  # entries that it lacks are zero
        return builder.emit(REGISTRY["list_new"], (), {"elem": t.elem})
    if isinstance(t, Struct):
        return builder.emit(REGISTRY["make_struct"], tuple(zeros(builder, e) for e in t.elems), {"type": t})
    return data.zero(builder, t)


def materialise(builder: Builder, ct: Cotangent, t: Type) -> Node:
    """A cotangent as one node of the tangent type `t`."""
    if ct is None:
        return zeros(builder, t)
    if isinstance(ct, tuple):
        assert isinstance(t, Struct)
        parts = tuple(materialise(builder, c, e) for c, e in zip(ct, t.elems, strict=True))
        return builder.emit(REGISTRY["make_struct"], parts, {"type": t})
    if isinstance(ct, Record):
        variant = ct.type.family.variants[ct.variant - 1]
        leaves = [materialise(builder, ct.parts.get(k), leaf) for k, leaf in enumerate(variant.leaves)]
        return data.make(builder, ct.type, variant, leaves)
    return ct


def coerce(builder: Builder, ct: Node, t: Type, what: str) -> Node:
    """A rule's result converted to exactly the tangent type of the argument; only the kind of a number may differ.

    Raises:
        InternalError: the result has another dtype or shape.
    """
    if ct.type == t:
        return ct
    have = ct.type
    same = isinstance(have, Leaf) and isinstance(t, Leaf) and have.dtype == t.dtype and have.shape == t.shape
    if not same:
        raise InternalError("ad", f"the vjp rule of {what} gives a {ct.type} for an argument with cotangent {t}")
    if isinstance(ct, Constant):
        return builder.constant(as_type(ct.value, t), t)
    return match_kind(Var(builder, ct), t).node


def pattern(ct: Cotangent) -> Pattern:
    """The pattern of a cotangent."""
    if isinstance(ct, tuple):
        parts = tuple(pattern(c) for c in ct)
        return parts if any(p is not None for p in parts) else None
    return None if ct is None else True


def union(p: Pattern, q: Pattern) -> Pattern:
    """The union of two patterns."""
    if p is None or q is None:
        return q if p is None else p
    if isinstance(p, tuple) and isinstance(q, tuple):
        return tuple(union(x, y) for x, y in zip(p, q, strict=True))
    return True


def leaf_types(p: Pattern, t: Type) -> list[Type]:
    """Types of the nodes in a cotangent with a pattern, of a value of type `t`, in order."""
    if p is None:
        return []
    if isinstance(p, tuple):
        assert isinstance(t, Struct)
        return [leaf for q, e in zip(p, t.elems, strict=True) for leaf in leaf_types(q, e)]
    return [tangent(t)]


def leaf_nodes(builder: Builder, ct: Cotangent, p: Pattern, t: Type) -> list[Node]:
    """The nodes of a cotangent, with zeros where the pattern `p` has a node and the cotangent has none."""
    if p is None:
        return []
    if isinstance(p, tuple):
        assert isinstance(t, Struct)
        parts = ct if isinstance(ct, tuple) else (None,) * len(p)
        return [n for c, q, e in zip(parts, p, t.elems, strict=True) for n in leaf_nodes(builder, c, q, e)]
    return [materialise(builder, ct, tangent(t))]


def unflatten(p: Pattern, nodes: Iterator[Node]) -> Cotangent:
    """A cotangent with pattern `p` from its nodes in order."""
    if p is None:
        return None
    if isinstance(p, tuple):
        return tuple(unflatten(q, nodes) for q in p)
    return next(nodes)
