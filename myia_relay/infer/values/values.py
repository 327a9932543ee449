"""What inference knows of a value.

Run-time values are `Dyn`: a node of the typed graph under construction (a `Constant` node where the value is known).
Structures are kept taken apart (`Seq`), so that typed graphs contain leaves only. Strings, functions, classes and other
compile-time objects are `Static`. A `TreeDef` is a value without its nodes: it is hashable, the key of specialisations,
and the plan by which values are rebuilt on the other side of a call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...ir.node import Apply, Constant, Graph, Node


class Val:
    """Base class of inference's values."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Dyn(Val):
    """A leaf that exists at run time: a number, an array, a reference."""

    node: Node

    @property
    def type(self) -> Any:
        """An `abstract.types.Type`; like `Node.type`, too dynamic for a type checker."""
        return self.node.type

    @property
    def known(self) -> bool:
        """Whether the value is known at compile time."""
        return isinstance(self.node, Constant)

    @property
    def known_value(self) -> Any:
        """The value, which is known at compile time."""
        assert isinstance(self.node, Constant)
        return self.node.value


@dataclass(frozen=True, eq=False)
class KnownRecord(Dyn):
    """A reference to a record of an algebraic data type that is known to be one of the given variants; see
    `infer.objects.data`.
    """

    variants: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Static(Val):
    """A compile-time object: None, a string, a function, a class, a module, a dtype, ..."""

    value: Any


@dataclass(frozen=True, eq=False)
class Seq(Val):
    """A structure, taken apart. `kind`, `fields` and `cls` as in `abstract.types.Struct`."""

    kind: str
    elems: tuple[Val, ...]
    fields: tuple[str, ...] = ()
    cls: Any = None

    def get(self, field: str) -> Val:
        return self.elems[self.fields.index(field)]

    @cached_property
    def holds_functions(self) -> bool:
        """Whether there is a function in it, at any depth."""
        kinds = set(map(type, self.elems))  # a loop in C: a structure that grows by one entry is looked at after each
        if not kinds.isdisjoint((ClosureVal, Bound, Derived)):
            return True
        return Seq in kinds and any(e.holds_functions for e in self.elems if type(e) is Seq)


def elements(value: Val) -> list[Val]:
    """The elements of a structure, which the value is known to be."""
    assert isinstance(value, Seq)
    return list(value.elems)


@dataclass(frozen=True, eq=False)
class Listed(Val):
    """A list of Python numbers that is passed as an array of one dimension: an argument, which must not be changed."""

    array: Dyn


@dataclass(frozen=True, eq=False)
class ClosureVal(Val):
    """A nested function: its graph, and where its free variables are found.

    Attributes:
        graph: the parsed graph.
        frame: the frame in which it was made (free variables are looked up there when it is called), or
        env: its captured values, once it has left that frame.
    """

    graph: Graph
    frame: Any = None
    env: tuple[tuple[Node, Val], ...] | None = None


@dataclass(frozen=True, eq=False)
class Bound(Val):
    """A method: a function (or the name of an array method) and the object it is called on."""

    receiver: Val
    function: Any


@dataclass(frozen=True, eq=False)
class Derived(Val):
    """A transformed function, `grad(f)` or `vmap(f)`: the transform's name, its function and its static options."""

    transform: str
    function: Val
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str) -> Any:
        return dict(self.options)[name]


@dataclass(frozen=True, eq=False)
class Text(Val):
    """A string made at run time: parts as in `prims.ops.effects.check`, and the operands they show."""

    parts: tuple
    operands: tuple[Val, ...]


@dataclass(frozen=True, eq=False)
class Raised(Val):
    """An exception object: class and message."""

    cls: type
    message: Val | None


@dataclass(frozen=True, eq=False)
class SliceVal(Val):
    """A slice object."""

    start: Val
    stop: Val
    step: Val


@dataclass(eq=False)
class Once:
    """The use of an iterator.

    Attributes:
        graph: the parsed graph in which it was made, as soon as that is known.
        users: the applications that have used it, of which a run reaches one.
    """

    graph: Graph | None = None
    users: list[Apply] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Iter(Val):
    """An iterable that can only be iterated over, with its parts.

    Attributes:
        kind: "range"; "dict_keys", "dict_values" and "dict_items", which hold a tuple; "tuple", which holds a run-time list; or an
            iterator: "zip", "enumerate", "reversed", "map" (a function and sequences), "iterator" (of a sequence), "columns" (of
            tuples, which are the lists in a run-time list).
        parts: its parts.
        once: for an iterator, which is exhausted by its first use.
    """

    kind: str
    parts: tuple[Val, ...]
    once: Once = field(default_factory=Once)

    @property
    def is_iterator(self) -> bool:
        """Whether it can be iterated over only once."""
        return self.kind in ("zip", "enumerate", "reversed", "map", "iterator", "columns")


@dataclass(frozen=True, eq=False)
class Chosen(Val):
    """The part of an array that a mask selects and that is about to be changed: `x[mask] += v` changes the whole array at once.

    Attributes:
        array: the array, or a choice of arrays and other values.
        index: the index with the mask, or a choice of indices.
        node: the construct `x[mask]`.
        new: the whole array, changed; None before.
    """

    array: Val
    index: Val
    node: Apply
    new: Val | None = None


@dataclass(frozen=True, eq=False)
class AtVal(Val):
    """`relay.at(x)`, and, once indexed, `relay.at(x)[index]`."""

    array: Val
    index: Val | None = None


@dataclass(frozen=True, eq=False)
class TaggedUnion(Val):
    """One of several values, told apart at run time by a tag; see `infer.engine.unions`."""

    tag: Dyn
    options: tuple[Val, ...]


@dataclass(frozen=True, eq=False)
class Cell(Val):
    """The place of a variable that inner functions assign to; what is in it is state of the frames: see `infer.engine.cells`."""

    name: str


class UnboundVal(Val):
    """The value of a variable on a path that does not bind it."""


class NeverVal(Val):
    """The value of an expression that does not return (it raises)."""


class PoisonVal(Val):
    """The value of an expression with an error that is reported already; see `infer.engine.several_errors`."""


UNBOUND_VAL = UnboundVal()
POISON = PoisonVal()
NEVER = NeverVal()
NONE_VAL = Static(None)


@dataclass(frozen=True, eq=False)
class Spread(Val):
    """A starred argument: it is replaced by its elements."""

    value: Val
    double: bool = False
