"""Cotangents with symbolic zeros.

A cotangent is None (zero), a node or, for a structure, a tuple of the cotangents of its parts. The adjoint of taking a
part of a structure therefore costs nothing. A zero becomes a value only where two paths must agree on what they return:
the branches of a condition, the iterations of a loop.

A cotangent of a tree of which only fields of one variant have been read is a `Record`, which becomes a value where
necessary.

A zero that only a run tells is a `Guarded` cotangent: that of a value which some paths use and others do not. Where a path was
taken that does not, the value may have an infinite derivative, and nothing may be multiplied by it, not even zero
(`ad.reverse.guards`).

A *pattern* is a cotangent's structure: None, True for a node, MAYBE or LAX for a guarded one, or a tuple of patterns. It says
which cotangents a graph takes and returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...abstract.dims import run_time_symbols
from ...abstract.types import (
    BOOL,
    Array,
    Data,
    Leaf,
    List,
    NoneT,
    Scalar,
    Struct,
    Tape,
    Type,
    has_tangent,
    tangent,
    type_symbols,
)
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


@dataclass(frozen=True)
class Guarded:
    """The cotangent of a number or an array that only some paths use.

    Attributes:
        node: the cotangent; zero where no path was taken that uses the value.
        live: whether one was, of type BOOL.
        lax: whether the paths differ only in that a loop has no iterations.
    """

    node: Node
    live: Node
    lax: bool = False


Cotangent = None | Node | Record | Guarded | tuple
Pattern = None | bool | str | tuple
MAYBE, LAX = "maybe", "lax"


def guarded(node: Node, live: Node, lax: bool = False) -> Cotangent:
    """A cotangent that is live on some paths only: without a guard where `live` is known to hold, None where it is known not to."""
    if isinstance(live, Constant):
        return node if bool(live.value) else None
    return Guarded(node, live, lax)


def is_guardable(t: Type) -> bool:
    """Whether cotangents of values of this type may be guarded."""
    return isinstance(t, Scalar | Array) and has_tangent(t) and not run_time_symbols(type_symbols(t))


def as_flag(builder: Builder, condition: Node) -> Node:
    """A condition as a bool of type BOOL."""
    if condition.type == BOOL:
        return condition
    return builder.emit(REGISTRY["cast"], (condition,), {"dtype": "bool", "weak": True})


def either(builder: Builder, a: Node, b: Node) -> Node:
    """Whether one of two flags holds."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Constant):
            return x if bool(x.value) else y
    return a if a is b else builder.emit(REGISTRY["logical_or"], (a, b))


def node_of(ct: Cotangent) -> Cotangent:
    """A cotangent without its guard."""
    return ct.node if isinstance(ct, Guarded) else ct


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
    if isinstance(a, Guarded) and isinstance(b, Guarded):
        total = add(builder, functions, a.node, b.node)
        assert isinstance(total, Node)
        return guarded(total, either(builder, a.live, b.live), a.lax and b.lax)
    a, b = (x.node if isinstance(x, Guarded) else x for x in (a, b))
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
    return ct.node if isinstance(ct, Guarded) else ct


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
    if isinstance(ct, Guarded):
        return LAX if ct.lax else MAYBE
    return None if ct is None else True


def union(p: Pattern, q: Pattern) -> Pattern:
    """The union of two patterns without guards."""
    if p is None or q is None:
        return q if p is None else p
    if isinstance(p, tuple) and isinstance(q, tuple):
        return tuple(union(x, y) for x, y in zip(p, q, strict=True))
    return True


def _parted(p: Pattern, t: Struct) -> tuple:
    return p if isinstance(p, tuple) else (p,) * len(t.elems)


def either_pattern(p: Pattern, q: Pattern, t: Type) -> Pattern:
    """The pattern of a cotangent of a value of type `t` that has pattern `p` on one path and `q` on the other."""
    if p is None and q is None:
        return None
    if isinstance(t, Struct):
        return tuple(either_pattern(x, y, e) for x, y, e in zip(_parted(p, t), _parted(q, t), t.elems, strict=True))
    if not is_guardable(t) or (p is True and q is True):
        return True
    return LAX if {p, q} <= {True, LAX} else MAYBE


def repeated_pattern(p: Pattern, q: Pattern, t: Type) -> Pattern:
    """The pattern of the cotangent of a carried value of type `t`, from that behind the loop and that which an iteration gives.

    Where an iteration reads the value, only the last value is read by none, and counts as used.
    """
    if isinstance(t, Struct):
        parts = tuple(repeated_pattern(x, y, e) for x, y, e in zip(_parted(p, t), _parted(q, t), t.elems, strict=True))
        return parts if any(x is not None for x in parts) else None
    return q if p is None else either_pattern(p, q, t)


def leaf_types(p: Pattern, t: Type) -> list[Type]:
    """Types of the nodes in a cotangent with a pattern, of a value of type `t`, in order; a guard is a node, too."""
    if p is None:
        return []
    if isinstance(p, tuple):
        assert isinstance(t, Struct)
        return [leaf for q, e in zip(p, t.elems, strict=True) for leaf in leaf_types(q, e)]
    return [tangent(t)] if p is True else [tangent(t), BOOL]


def leaf_nodes(builder: Builder, ct: Cotangent, p: Pattern, t: Type) -> list[Node]:
    """The nodes of a cotangent, with zeros where the pattern `p` has a node and the cotangent has none."""
    if p is None:
        return []
    if isinstance(p, tuple):
        assert isinstance(t, Struct)
        parts = ct if isinstance(ct, tuple) else (None,) * len(p)
        return [n for c, q, e in zip(parts, p, t.elems, strict=True) for n in leaf_nodes(builder, c, q, e)]
    value = materialise(builder, ct, tangent(t))
    if p is True:
        return [value]
    return [value, ct.live if isinstance(ct, Guarded) else builder.constant(ct is not None, BOOL)]


def unflatten(p: Pattern, nodes: Iterator[Node]) -> Cotangent:
    """A cotangent with pattern `p` from its nodes in order."""
    if p is None:
        return None
    if isinstance(p, tuple):
        return tuple(unflatten(q, nodes) for q in p)
    node = next(nodes)
    return node if p is True else guarded(node, next(nodes), p == LAX)


def with_guards(ct: Cotangent, change) -> Cotangent:
    """A cotangent with each node or guarded node in it replaced by `change(it)`."""
    if isinstance(ct, tuple):
        return tuple(with_guards(c, change) for c in ct)
    return change(ct) if isinstance(ct, Node | Guarded) else ct
