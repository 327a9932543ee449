"""The families of the derivatives of algebraic data types.

Idea: the tangent of a tree is a tree of the same classes, whose fields are the tangents of the fields, and in which None stands
for the zero of a whole subtree, of whatever shape. So the cotangent of one field of a record is one new record, a sum of
cotangents ends where one of them is None, and what no derivative reaches costs nothing.

    Leaf(value: float, label: int) | Node(left: Tree, right: Tree)

        tangent     Leaf(value: float, label: None) | Node(left: Tree' | None, right: Tree' | None)
        gradient    Leaf(value: float, label: None) | Node(left: Tree", right: Tree")

A gradient is what users get: a tangent made whole, zeros at the ends of the branches, with the shape of the tree that was
differentiated by. Where all leaves are floats, the gradient of a tree is a tree of the same type. Variants have the same numbers in
all three families, and their leaves the same order and the same places in memory.

A tangent of a tangent, or of a gradient, is a tangent: there are no further families for higher orders.

Input: a family. Output: the attributes `tangent` and `gradient` of it and of all families that its values refer to.
"""

from __future__ import annotations

from .families import Family
from .types import NONE, Data, NoneT, Struct, Type, leaves, tangent


def derive(family: Family) -> None:
    """Give a family, and those that its values refer to, the families of their derivatives."""
    families = [f for f in family.reachable() if "tangent" not in f.__dict__]
    for f in families:
        inner = f.reachable()
        varies = any(t.is_float for g in inner for v in g.variants for t in v.leaves)
        whole = varies and all(_is_whole(t) for g in inner for v in g.variants for t in v.leaves)
        f.__dict__["tangent"] = Family([v.cls for v in f.variants], True) if varies else None
        f.__dict__["gradient"] = f if whole else Family([v.cls for v in f.variants], True)
    for f in families:
        derived = [(f.gradient, _gradient)] if f.gradient is not f else []
        if f.tangent is not None:
            derived.append((f.tangent, tangent))
        for new, rule in derived:
            new.name = f"{'gradient' if new is f.gradient else 'tangent'} of {f.name}"
            new.__dict__.update(tangent=f.tangent, gradient=f.gradient)
            for old, v in zip(f.variants, new.variants, strict=True):
                v.fields, v.starts = old.fields, old.starts
                v.types = tuple(rule(t) for t in old.types)
                v.leaves = tuple(leaf for t in v.types for leaf in leaves(t))


def _is_whole(t: Type) -> bool:
    """Whether the gradient of a leaf has its type, if that of what it refers to has."""
    return (
        t.is_float
        or isinstance(t, NoneT)
        or isinstance(t, Data)
        and any(leaf.is_float for f in t.family.reachable() for v in f.variants for leaf in v.leaves)
    )


def _gradient(t: Type) -> Type:
    """The type of the gradient of a field."""
    if isinstance(t, Struct):
        return Struct(t.kind, tuple(_gradient(e) for e in t.elems), t.fields, t.cls)
    if isinstance(t, Data):
        return Data(t.family.gradient, t.nullable) if t.family.tangent is not None else NONE
    return t if t.is_float else NONE


__all__ = ["derive"]
