"""Families of algebraic data types, and the families of their derivatives.

A family is a set of record classes that refer to each other; `abstract.families` finds it in annotations. The tangent
of a tree is a tree of the same classes. Its fields are the tangents of the fields, and None stands for the zero of a
whole subtree of any shape. The cotangent of one field of a record is therefore one new record, a sum of cotangents
stops where one of them is None, and what no derivative reaches costs nothing.

    Leaf(value: float, label: int) | Node(left: Tree, right: Tree)

        tangent     Leaf(value: float, label: None) | Node(left: Tree' | None, right: Tree' | None)
        gradient    Leaf(value: float, label: None) | Node(left: Tree", right: Tree")

A gradient is what users get: a tangent in which each None of a subtree is replaced by zeros, so that it has the shape
of the tree that was differentiated by. If all leaves are floats, the gradient of a tree is a tree of the same type.
Variants have the same numbers in all three families, and their leaves the same order and the same places in memory.

A tangent of a tangent, or of a gradient, is a tangent: there are no further families for higher orders.

`derive` gives a family, and all that its values refer to, the attributes `tangent` and `gradient`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..utils.compiling import once_property
from .types import NONE, Data, NoneT, Struct, Type, leaves, tangent


@dataclass(eq=False)
class Variant:
    """One class of a family.

    Attributes:
        cls: the class.
        number: its number in the family, from 1 on; 0 is None.
        fields: names of the fields.
        types: their types.
        starts: for each field the position of its first leaf among all leaves of the variant.
        leaves: types of the leaves: numbers, arrays, references.
    """

    cls: type
    number: int
    fields: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    starts: tuple[int, ...] = ()
    leaves: tuple[Type, ...] = ()

    def place(self, field: str) -> tuple[int, Type]:
        """The position of the first leaf of a field, and the field's type."""
        at = self.fields.index(field)
        return self.starts[at], self.types[at]

    def place_leaves(self) -> None:
        """Compute the leaves, and where those of each field begin, from the types of the fields."""
        parts = [leaves(t) for t in self.types]
        self.starts = tuple(sum(map(len, parts[:k])) for k in range(len(parts)))
        self.leaves = tuple(t for part in parts for t in part)


class Family:
    """An algebraic data type.

    Attributes:
        name: as users write it: "Leaf | Node".
        variants: its classes; the k-th has the number k + 1.
        recursive: whether its values have no fixed shape: then constructing one gives a run-time value.
        derived_from: for a family of derivatives the family of the values, and the name of the attribute that leads here.
        instance_of: for an instance of a declared type (`abstract.declared`) the declaration, and the types for its parameters.
        local: whether it belongs to one compilation.
    """

    of_functions = False  # whether its values are functions: `infer.values.functions`

    def __init__(self, classes: list[type], recursive: bool, name: str = ""):
        self.variants = tuple(Variant(cls, k) for k, cls in enumerate(classes, 1))
        self.name = name or " | ".join(c.__name__ for c in classes)
        self.recursive = recursive
        self.numbers = {v.cls: v.number for v in self.variants}
        self.evidence: list[tuple] = []
        self.derived_from: tuple[Family, str] | None = None
        self.instance_of: tuple[Any, tuple[Type, ...]] | None = None
        self.local = False

    def reachable(self) -> list[Family]:
        """This family and all that its records refer to."""
        families: list[Family] = [self]
        for family in families:
            for v in family.variants:
                families += [t.family for t in v.leaves if isinstance(t, Data) and t.family not in families]
        return families

    def __repr__(self) -> str:
        """The whole definition, that of other families in it included."""
        text = [
            f"{v.cls.__module__}.{v.cls.__qualname__}({', '.join(f'{n}: {t}' for n, t in zip(v.fields, v.types, strict=True))})"
            for family in self.reachable()
            for v in family.variants
        ]
        return f"<family {self.name}: {'; '.join(text)}>"

    @once_property
    def tangent(self) -> Family | None:
        """The family of tangents; None where no float is in any value."""
        derive(self)
        return self.__dict__["tangent"]

    @once_property
    def gradient(self) -> Family:
        """The family of gradients, as users get them."""
        derive(self)
        return self.__dict__["gradient"]

    def variant(self, cls: type) -> Variant:
        """The variant of a class."""
        return self.variants[self.numbers[cls] - 1]

    def holds(self) -> bool:
        """Whether the names in its annotations still mean what they did (a notebook cell may have been run again)."""
        for namespace, name, value in self.evidence:
            if namespace is None:
                if tuple(name.__subclasses__()) != value:
                    return False
            elif namespace.get(name, value) is not value:
                return False
        return True


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
            role = "gradient" if new is f.gradient else "tangent"
            new.name, new.derived_from, new.local = f"{role} of {f.name}", (f, role), f.local
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


__all__ = ["Family", "Variant", "derive"]
