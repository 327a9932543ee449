"""Types and constants of typed graphs as those of trees, and the data types that they need.

    Tree = Leaf | Node          type LeafOrNode { Leaf(float64), Node(LeafOrNode, LeafOrNode) }
    a stack of an adjoint       type Tape[A] { Push(Tape[A], A), Empty }

A Python number and a NumPy scalar are a tensor of rank 0, and a structure of any kind is a tuple. A family of data types keeps the
names of its classes where they are free. Where None is among its values, it has a constructor for that, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...abstract.bind import substitute
from ...abstract.family import Family, Variant
from ...abstract.types import Array, Data, NoneT, Scalar, Struct, Tape, Type, leaves, numpy_dtype
from ...ir.node import Constant, Graph
from ...ir.rewrite import all_graphs
from ...utils.errors import LoweringError
from ...utils.source import Origin
from ..naming import UniqueNames
from ..tree import (
    UNIT,
    CallExpr,
    ConstructorDef,
    ConstructorName,
    DataType,
    Expression,
    OperatorName,
    TensorType_,
    TupleExpr,
    TupleType,
    TypeDef,
    TypeExpr,
    TypeParam,
    TypeVar,
    constant,
)

NOTHING = "Nothing"
"""The constructor of a family T that stands for None is `TNothing`."""


class Values:
    """The types and constants of a program.

    Args:
        graph: the program.
        sizes: what its symbolic sizes are.
    """

    def __init__(self, graph: Graph, sizes: dict[str, int]):
        self.sizes = sizes
        self.type_names, self.constructor_names = UniqueNames({"Tensor", "ref", "Tape"}), UniqueNames({"Push", "Empty"})
        self.names: dict[Family, str] = {}
        self.constructors: dict[tuple[Family, int], str] = {}
        self.nullable: set[Family] = set()
        self.records: dict[type, TypeDef] = {}
        self.has_tapes = False
        for t in _types(graph):
            for leaf in _all_leaves(t):
                if isinstance(leaf, Data):
                    self._declare(leaf)

    def _declare(self, t: Data) -> None:
        for family in t.family.reachable():
            if family not in self.names:
                classes = [v.cls.__name__ for v in family.variants]
                wanted = "Or".join(classes) if len(classes) <= 3 else f"{classes[0]}OrOthers"
                self.names[family] = self.type_names.give(wanted, sizes=True)
                for v in family.variants:
                    self.constructors[family, v.number] = self.constructor_names.give(v.cls.__name__, sizes=True)
            inner = [f for v in family.variants for f in v.leaves if isinstance(f, Data) and f.nullable]
            for null in (*inner, *([t] if t.nullable else [])):
                if null.family not in self.nullable and (null.family in self.names or null is t):
                    self.nullable.add(null.family)

    def record(self, cls: type, types: tuple[TypeExpr, ...]) -> tuple[DataType, str]:
        """The data type of a class of records that is no family, with one constructor, and the name of that."""
        found = self.records.get(cls)
        if found is None:
            name = self.type_names.give(cls.__name__, sizes=True)
            constructor = ConstructorDef(self.constructor_names.give(cls.__name__, sizes=True), types)
            found = self.records[cls] = TypeDef(name, (), (constructor,))
        return DataType(found.name), found.constructors[0].name

    def numbers(self, family: Family) -> list[int]:
        """The numbers of the variants that values may have."""
        return [*([0] if family in self.nullable else []), *(v.number for v in family.variants)]

    def constructor(self, family: Family, number: int) -> str:
        """The name of a constructor."""
        return self.constructors[family, number] if number else f"{self.names[family]}{NOTHING}"

    def definitions(self) -> dict[str, TypeDef]:
        """The definitions of all data types."""
        found = [*self.records.values()]
        for family, name in self.names.items():
            constructors = [
                ConstructorDef(
                    self.constructor(family, n),
                    tuple(self.type(t, None) for t in family.variants[n - 1].types) if n else (),
                )
                for n in self.numbers(family)
            ]
            found.append(TypeDef(name, (), tuple(constructors)))
        if self.has_tapes:
            a = TypeParam("A")
            push = ConstructorDef("Push", (DataType("Tape", (TypeVar(a),)), TypeVar(a)))
            found.append(TypeDef("Tape", (a,), (push, ConstructorDef("Empty"))))
        return {d.name: d for d in found}

    def exact(self, value: Any) -> Any:
        """A type, a size, an attribute, with numbers in place of symbolic sizes."""
        return substitute(value, self.sizes)

    def type(self, t: Type, origin: Origin | None) -> TypeExpr:
        """A type as a tree.

        Raises:
            LoweringError: Relay has none like it.
        """
        match t:
            case Scalar():
                return TensorType_((), t.dtype)
            case Array():
                return TensorType_(self.shape(t, origin), t.dtype)
            case Struct():
                return TupleType(tuple(self.type(e, origin) for e in t.elems))
            case NoneT():
                return UNIT
            case Data():
                return DataType(self.names[t.family])
            case Tape():
                self.has_tapes = True
                return DataType("Tape", (self.type(t.elem, origin),))
        raise LoweringError(f"to_text: Relay text has no type for {_named(t)}", origin)

    def shape(self, t: Array, origin: Origin | None) -> tuple[int, ...]:
        """The shape of an array.

        Raises:
            LoweringError: a value decides a size.
        """
        shape = []
        for size in t.shape:
            try:
                shape.append(int(self.exact(size)))
            except (KeyError, TypeError):
                raise LoweringError(
                    f"to_text: a value decides a size of {t}; the text is that of known sizes", origin
                ) from None
        return tuple(shape)

    def constant(self, node: Constant) -> Expression:
        """A constant.

        Raises:
            LoweringError: Relay has none like it.
        """
        t, value = node.type, node.value
        if isinstance(t, Scalar):
            return constant(np.asarray(value, numpy_dtype(t.dtype))[()])
        if isinstance(t, Array):
            return self.array(np.asarray(value, numpy_dtype(t.dtype)), node.origin)
        if value is None:
            return self.none(t)
        if isinstance(t, Struct) and isinstance(value, tuple):
            return TupleExpr(
                tuple(self.constant(Constant(v, e, node.origin)) for v, e in zip(value, t.elems, strict=True))
            )
        raise LoweringError(f"to_text: Relay text has no constant like {value!r:.60}", node.origin)

    def none(self, t: Type) -> Expression:
        """None, of a type: `()`, or the constructor that stands for it."""
        if isinstance(t, Data):
            return ConstructorName(self.constructor(t.family, 0))
        return TupleExpr(())

    def array(self, value: np.ndarray, origin: Origin | None) -> Expression:
        """An array as a constant.

        Raises:
            LoweringError: it is one of texts, objects, complex numbers.
        """
        if value.dtype.kind not in "biuf" and value.dtype.name != "bfloat16":
            raise LoweringError(f"to_text: Relay text has no constants of {value.dtype}", origin)
        return constant(value)

    def any(self, t: Type, origin: Origin | None) -> Expression:
        """Some value of a type: what nobody reads.

        Raises:
            LoweringError: it has none.
        """
        match t:
            case Scalar():
                return constant(np.zeros((), numpy_dtype(t.dtype))[()])
            case Array():
                shape = self.shape(t, origin)
                if not shape:
                    return constant(np.zeros((), numpy_dtype(t.dtype))[()])
                return CallExpr(OperatorName("zeros"), (), (("shape", shape), ("dtype", t.dtype)))
            case Struct():
                return TupleExpr(tuple(self.any(e, origin) for e in t.elems))
            case NoneT():
                return TupleExpr(())
            case Tape():
                self.has_tapes = True
                return ConstructorName("Empty")
            case Data():
                return self._any_data(t.family, frozenset(), origin)
        raise LoweringError(f"to_text: Relay text has no type for {_named(t)}", origin)

    def _any_data(self, family: Family, within: frozenset[Family], origin: Origin | None) -> Expression:
        if family in self.nullable:
            return ConstructorName(self.constructor(family, 0))
        within |= {family}
        for v in family.variants:
            inner = [f for t in v.types for f in _all_leaves(t) if isinstance(f, Data)]
            if not any(f.family in within for f in inner):
                fields = [
                    self._any_data(t.family, within, origin) if isinstance(t, Data) else self.any(t, origin)
                    for t in v.types
                ]
                return constructed(self.constructors[family, v.number], fields)
        raise LoweringError(f"to_text: {family.name} has no smallest value", origin)


def constructed(name: str, fields: Iterable[Expression]) -> Expression:
    """A value of a data type."""
    given = tuple(fields)
    return CallExpr(ConstructorName(name), given) if given else ConstructorName(name)


def leaf_path(variant: Variant, index: int) -> tuple[int, list[int]]:
    """Where a leaf of a variant is: its field, and the positions that lead to it in the field's structure."""
    field = max(k for k, start in enumerate(variant.starts) if start <= index and leaves(variant.types[k]))
    return field, _path(variant.types[field], index - variant.starts[field])


def _path(t: Type, index: int) -> list[int]:
    if not isinstance(t, Struct):
        return []
    for k, part in enumerate(t.elems):
        count = len(leaves(part))
        if index < count:
            return [k, *_path(part, index)]
        index -= count
    return []


def from_leaves(t: Type, given: Iterable[Expression]) -> Expression:
    """A value of a type from those of its leaves."""
    rest = iter(given)

    def made(t: Type) -> Expression:
        return TupleExpr(tuple(map(made, t.elems))) if isinstance(t, Struct) else next(rest)

    return made(t)


def _named(t: Type) -> str:
    """A type for an error: what users know it as."""
    return {"List": "a list whose length is known at run time only", "Ref": "a model", "Str": "a text"}.get(
        type(t).__name__, str(t)
    )


def _types(graph: Graph) -> list[Type]:
    """The types that occur in a program."""
    found: list[Type] = []
    for g in all_graphs(graph):
        for node in [*g.params, *g.nodes]:
            found.append(node.type)
            found += [v for v in getattr(node, "attrs", {}).values() if isinstance(v, Type)]
    return found


def _all_leaves(t: Type | None) -> list[Type]:
    """The leaves of a type, those of entries of tapes too."""
    out: list[Type] = []
    for leaf in leaves(t) if t is not None else []:
        out += _all_leaves(leaf.elem) if isinstance(leaf, Tape) else [leaf]
    return out


__all__ = ["NOTHING", "Values", "constructed", "from_leaves", "leaf_path"]
