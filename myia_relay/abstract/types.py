"""Types of values: what inference knows of a value before run time.

Types are immutable and compared by value. Python numbers and NumPy scalars are different types, as in Python: a
`Scalar` is `weak` if it is a Python number (its dtype yields to an array's; NumPy 2 promotion, NEP 50). Tuples, lists
of static length, dicts with string keys, records (NamedTuples and frozen dataclasses) and closures are all `Struct` and
differ in their `kind`; passes that only care for the parts treat them alike. A list whose length is known at run time
only is a `List`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeAlias

import numpy as np

from .dims import Dim, DimLike, product, symbols

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a type's dtype name; bfloat16 comes from `ml_dtypes`."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def float_dtype(dtype: str) -> str:
    """The float dtype that NumPy's float functions compute integers and booleans in."""
    if dtype in FLOATS:
        return dtype
    if dtype in ("bool", "int8", "uint8"):
        return "float16"
    return "float32" if dtype in ("int16", "uint16") else "float64"


class Type:
    """Base class of types."""

    __slots__ = ()

    @property
    def is_float(self) -> bool:
        return getattr(self, "dtype", None) in FLOATS


@dataclass(frozen=True)
class Scalar(Type):
    """One number. `weak`: a Python int, float or bool; otherwise a NumPy scalar."""

    dtype: str
    weak: bool = False

    shape = ()

    def __str__(self) -> str:
        if self.weak:
            return {"int64": "int", "float64": "float", "bool": "bool"}.get(self.dtype, self.dtype)
        return f"np.{self.dtype}"


@dataclass(frozen=True)
class Array(Type):
    """A dense array: dtype name and shape; a dimension is an int or a `Dim`."""

    dtype: str
    shape: tuple[DimLike, ...]

    @property
    def size(self) -> DimLike:
        return product(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


Leaf: TypeAlias = Scalar | Array
"""A number or an array: what arithmetic is done on."""


@dataclass(frozen=True)
class Struct(Type):
    """A fixed number of parts.

    Attributes:
        kind: "tuple", "list", "dict", "record", "closure" or "dataset"; "union" for an entry of a list that is one of several
            things: which, and a part for each; "array" for one that is an array, of sizes of its own: its elements as a list and,
            of several axes, its sizes.
        elems: types of the parts.
        fields: names of the parts: dict keys, record fields.
        cls: the class of a record; the function of a closure.
    """

    kind: str
    elems: tuple[Type, ...]
    fields: tuple[str, ...] = ()
    cls: Any = None

    def __str__(self) -> str:
        if self.kind == "union":
            return " | ".join(map(str, self.elems[1:]))
        if self.kind == "array":
            return f"{element_dtype(self)}[{', '.join('?' * rank_of(self))}]"
        if self.kind == "tuple":
            return f"({', '.join(map(str, self.elems))}{',' if len(self.elems) == 1 else ''})"
        if self.kind == "list":
            return f"[{', '.join(map(str, self.elems))}]"
        if shown := getattr(self.cls, "__relay_name__", None):
            return shown  # what the class stands for
        pairs = ", ".join(f"{k}: {v}" for k, v in zip(self.fields, self.elems, strict=False))
        if self.kind == "dict":
            return "{" + pairs + "}"
        return f"{getattr(self.cls, '__name__', None) or getattr(self.cls, 'name', self.kind)}({pairs})"


@dataclass(frozen=True)
class NoneT(Type):
    """The type of None, and of the tangent of what has none (integers, strings)."""

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True)
class Str(Type):
    """A string that is not known at compile time."""

    def __str__(self) -> str:
        return "str"


@dataclass(frozen=True)
class Undefined(Type):
    """The type of a variable on a path that does not bind it; joins with any type."""

    def __str__(self) -> str:
        return "unbound"


@dataclass(frozen=True)
class Tape(Type):
    """A stack that an adjoint fills forwards and empties backwards.

    Attributes:
        elem: the type of one entry (often a Struct).
        owner: of a tape that is threaded through a recursion, which one; tangents of its entries have a tape of their own.
    """

    elem: Type
    owner: str = ""

    def __str__(self) -> str:
        return f"tape<{self.elem}>" if not self.owner else f"tape<{self.elem}, {self.owner}>"


@dataclass(frozen=True)
class List(Type):
    """A list whose length is known at run time; `elem` is the type of one entry (a `Struct` for tuples and records)."""

    elem: Type

    def __str__(self) -> str:
        return f"list[{self.elem}]"


@dataclass(frozen=True)
class Ref(Type):
    """A reference to a mutable host object: a model or an optimiser.

    Attributes:
        spec: hashable description: which function, hyper-parameters known at compile time, ...
        names: names of the arrays it holds.
        elems: their types.
    """

    spec: Any
    names: tuple[str, ...]
    elems: tuple[Array, ...]

    def __str__(self) -> str:
        return f"ref<{self.spec}>"


@dataclass(frozen=True)
class Data(Type):
    """A value of an algebraic data type: one of the variants of a family, whatever its shape.

    At run time it is a reference to an immutable record. The type is nominal: what the variants hold is said by the family (see
    `abstract.families`), whose fields may be of this very type.

    Attributes:
        family: the family; equal to itself alone.
        nullable: whether None is among the values.
    """

    family: Any  # an `abstract.family.Family`; that module builds on this one
    nullable: bool = False

    dtype = "int64"  # of the machine word that a reference is
    shape = ()

    def __str__(self) -> str:
        return f"{self.family.name} | None" if self.nullable else self.family.name


INT = Scalar("int64", True)
FLOAT = Scalar("float64", True)
BOOL = Scalar("bool", True)
NONE = NoneT()


def tuple_of(*elems: Type) -> Struct:
    """The type of a tuple."""
    return Struct("tuple", tuple(elems))


def with_dtype(t: Leaf, dtype: str) -> Leaf:
    """`t` with another dtype: same shape, same weakness where that is a Python type."""
    if isinstance(t, Array):
        return Array(dtype, t.shape)
    return Scalar(dtype, t.weak and dtype in ("int64", "float64", "bool"))


def tangent(t: Type) -> Type:
    """The type of derivatives of a `t`: floats are their own, integers and strings have none, structures go part by part.

    That of a `Data` is one of a second family (see `abstract.family`): the same classes, fields of the tangents' types, and
    references that may be None, which is a zero for a whole tree.
    """
    if isinstance(t, Scalar | Array):
        return t if t.is_float else NONE
    if isinstance(t, Struct):
        kind = "tuple" if t.kind in ("closure", "union", "array") else t.kind
        return Struct(kind, tuple(tangent(e) for e in t.elems), t.fields, t.cls if kind != "tuple" else None)
    if isinstance(t, Tape):
        return Tape(tangent(t.elem), t.owner and t.owner + "'")
    if isinstance(t, List):
        return List(tangent(t.elem)) if has_tangent(t.elem) else NONE
    return Data(t.family.tangent, True) if isinstance(t, Data) and has_tangent(t) else NONE


def has_tangent(t: Type) -> bool:
    """Whether there is anything to differentiate in a type."""
    if isinstance(t, Struct):
        return any(has_tangent(e) for e in t.elems)
    if isinstance(t, Tape | List):
        return has_tangent(t.elem)
    return t.family.tangent is not None if isinstance(t, Data) else t.is_float


def union_of(*options: Type) -> Struct:
    """The type of an entry of a list that is of one of several types."""
    return Struct("union", (INT, *options))


@functools.cache
def array_entry(dtype: str, rank: int) -> Struct:
    """The type of an entry of a list that is an array with sizes of its own."""
    return Struct("array", (List(Scalar(dtype, True)), *[INT] * (rank if rank > 1 else 0)))


def is_array_entry(t: Type) -> bool:
    """Whether a type is of entries of a list that are arrays with sizes of their own."""
    return isinstance(t, Struct) and t.kind == "array"


def holds_array_entries(t: Type) -> bool:
    """Whether a list in a type has arrays with sizes of their own."""
    if isinstance(t, Struct):
        return t.kind == "array" or any(map(holds_array_entries, t.elems))
    return isinstance(t, List) and holds_array_entries(t.elem)


def element_dtype(t: Struct) -> str:
    """The dtype of the elements of an array that is an entry of a list."""
    return t.elems[0].elem.dtype  # pyright: ignore[reportAttributeAccessIssue]


def rank_of(t: Struct) -> int:
    """How many axes an array has that is an entry of a list."""
    return max(1, len(t.elems) - 1)


def leaves(t: Type) -> list[Type]:
    """The leaf types of nested structures, depth first."""
    out, stack = [], [t]
    while stack:
        top = stack.pop()
        if isinstance(top, Struct):
            stack.extend(reversed(top.elems))
        else:
            out.append(top)
    return out


def holds(t: Type, cls: type[Type] | UnionType) -> bool:
    """Whether a kind of type, or one of a union of them, occurs in a type, in entries of lists too."""
    return any(isinstance(leaf, cls) or isinstance(leaf, List) and holds(leaf.elem, cls) for leaf in leaves(t))


def holds_unions(t: Type) -> bool:
    """Whether a list in a type has entries that are one of several things."""
    if isinstance(t, Struct):
        return t.kind == "union" or any(map(holds_unions, t.elems))
    return isinstance(t, List) and holds_unions(t.elem)


def type_symbols(t: Type) -> set[str]:
    """The symbolic dimension names that occur in a type."""
    out: set[str] = set()
    for leaf in leaves(t):
        if isinstance(leaf, Array):
            for dim in leaf.shape:
                out |= symbols(dim)
        elif isinstance(leaf, Tape | List):
            out |= type_symbols(leaf.elem)
        elif isinstance(leaf, Ref):
            for elem in leaf.elems:
                out |= type_symbols(elem)
    return out


def total(types: Iterable[Leaf]) -> DimLike:
    """The number of elements of several numbers and arrays together."""
    out: DimLike = 0
    for t in types:
        out = out + product(t.shape)
    return out


def is_static_shape(t: Type) -> bool:
    """Whether no symbolic dimension occurs in `t`."""
    return not type_symbols(t)


__all__ = [
    "BOOL",
    "FLOAT",
    "FLOATS",
    "INT",
    "INTS",
    "NONE",
    "Array",
    "Data",
    "Dim",
    "Leaf",
    "List",
    "NoneT",
    "Ref",
    "Scalar",
    "Str",
    "Struct",
    "Tape",
    "Type",
    "Undefined",
    "array_entry",
    "element_dtype",
    "has_tangent",
    "holds",
    "holds_array_entries",
    "holds_unions",
    "is_array_entry",
    "is_static_shape",
    "leaves",
    "numpy_dtype",
    "rank_of",
    "tangent",
    "total",
    "tuple_of",
    "type_symbols",
    "union_of",
    "with_dtype",
]
