"""Building typed graphs: a builder that infers types as it emits, and staged values for rules.

`Builder.emit(prim, args, attrs)` appends an application with the type that the primitive's relation gives. It folds on
the spot what costs nothing to fold: a part of a structure that was just built, a primitive of constants. `Var` wraps a
node and its builder, so that rules read as mathematics: `dout * b`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..abstract.dims import Dim, DimLike, is_known
from ..abstract.types import Array, Leaf, Scalar, Struct, Type, numpy_dtype
from ..utils.errors import CompileError, InternalError, ShapeError, ValueError_
from ..utils.source import NOWHERE, Origin
from .node import Apply, Constant, Graph, Node
from .prim import REGISTRY, Primitive

MOST_BYTES = (1 << 63) - 1
"""Of an array, as in NumPy."""
FOLD_LIMIT = 4096  # elements: a larger constant is recomputed at run time rather than kept


@dataclass(frozen=True)
class Cuts:
    """Slices that are cut off where they reach beyond an axis; others are known to end within it, which the run checks.

    Attributes:
        places: of the slices: file, line, column, last line and column.
        all: whether all are.
    """

    places: frozenset[tuple] = frozenset()
    all: bool = False

    def has(self, origin: Origin | None) -> bool:
        """Whether the slice of this place is cut off."""
        return self.all or bool(self.places) and self.place(origin) in self.places

    def and_also(self, origin: Origin | None) -> Cuts:
        """These and the slice of this place; all slices where it has no place or is among these, or where these are many."""
        if origin is None or origin.loc is None or self.has(origin) or len(self.places) >= FEW:
            return Cuts(all=True)
        return Cuts(self.places | {self.place(origin)})

    @staticmethod
    def place(origin: Origin | None) -> tuple:
        loc = origin.loc if origin is not None else None
        return (loc.file, loc.line, loc.col, loc.end_line, loc.end_col) if loc is not None else ()

    def key(self) -> tuple:
        """What tells programs with other cuts from one another, in their files too."""
        return ("all",) if self.all else tuple(sorted(self.places))


FEW = 3  # slices that are found to reach beyond an axis one by one, by a compilation each
NO_CUTS = Cuts()


class Builder:
    """Appends typed applications to a graph.

    Attributes:
        graph: the graph that grows.
        origin: where new nodes come from; set by the pass as it goes from node to node.
        agree: gives operands of different sizes, of which only a run tells whether they are equal, one shape; None where there
            are no such sizes.
        sizes: what is computed -> the dimension that it was bound to (`bind_dim`).
        cuts: the places of the slices that are cut off where they reach beyond an axis.
    """

    def __init__(self, graph: Graph, origin: Origin = NOWHERE):
        self.graph = graph
        self.origin = origin
        self.agree: Callable[..., tuple[Var, ...]] | None = None
        self.sizes: dict[Any, Dim] = {}
        self.cuts = NO_CUTS

    def emit(
        self, prim: Primitive, args: Sequence[Node], attrs: Mapping[str, Any] | None = None, type: Type | None = None
    ) -> Node:
        """Append `prim(*args, **attrs)`, or return the node it folds to.

        Raises:
            InternalError: the primitive has no type relation.
            CompileError: the arguments do not fit, at the user's place.
            ValueError_: the result fits into no memory.
        """
        attrs = {**prim.attr_defaults, **attrs} if attrs else prim.attr_defaults
        if prim.name == "get_item" and isinstance(args[0], Apply) and getattr(args[0].fn, "name", "") == "make_struct":
            return args[0].args[attrs["index"]]
        if prim.name == "undef" and isinstance(attrs["type"], Struct) and attrs["type"].kind != "dataset":
            parts = tuple(self.emit(prim, (), {"type": t}) for t in attrs["type"].elems)
            return self.emit(REGISTRY["make_struct"], parts, attrs)
        if type is None:
            if prim.infer_rule is None:
                raise InternalError("build", f"primitive {prim.name} has no type relation")
            try:
                type = prim.infer_rule(*[a.type for a in args], **attrs)
            except CompileError as error:
                if self.agree is None or prim.kind != "elementwise" or not isinstance(error, ShapeError):
                    raise error.at(self.origin) from None
                operands = self.agree(self, prim.name, *(Var(self, a) for a in args))
                if all(x.node is a for x, a in zip(operands, args, strict=True)):
                    raise error.at(self.origin) from None
                return self.emit(prim, tuple(x.node for x in operands), attrs)
        if isinstance(type, Array) and _is_too_large(type):
            raise ValueError_(f"array is too big: {type} takes more than 2**63 bytes", self.origin)
        folded = fold(prim, args, attrs, type)
        if folded is not None:
            return folded
        return self.graph.apply(prim, *args, attrs=attrs, type=type, origin=self.origin)

    def call(self, graph: Graph, args: Sequence[Node]) -> Apply:
        """Append a call of a typed graph."""
        return self.graph.apply(graph, *args, type=graph.output.type, origin=self.origin)

    def constant(self, value, type: Type | None = None) -> Constant:
        """A constant; its type is that of the value unless given."""
        return Constant(value, type if type is not None else type_of_constant(value), self.origin)

    def var(self, node: Node) -> Var:
        return Var(self, node)


def _is_too_large(type: Array) -> bool:
    """Whether no memory has room for an array, whatever the sizes that are not known."""
    size = 1
    for d in type.shape:
        if isinstance(d, int):
            size *= d
    return size > MOST_BYTES >> 4 and size * numpy_dtype(type.dtype).itemsize > MOST_BYTES


def type_of_constant(value) -> Leaf:
    """The type of a number or array known at compile time.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, np.generic):  # before float: np.float64 is one
        return Scalar(value.dtype.name)
    if isinstance(value, bool):
        return Scalar("bool", True)
    if isinstance(value, int):
        return Scalar("int64", True)
    if isinstance(value, float):
        return Scalar("float64", True)
    if isinstance(value, np.ndarray):
        return Array(value.dtype.name, value.shape)
    raise TypeError(f"no constant type for {type(value).__name__}")


def as_type(value, type: Type):
    """A computed NumPy value converted to exactly the kind of value of `type`: Python number, NumPy scalar or array."""
    if isinstance(type, Scalar):
        if type.weak:
            return value.item() if isinstance(value, np.ndarray | np.generic) else value
        return numpy_dtype(type.dtype).type(value)
    if isinstance(type, Array):
        return np.asarray(value, dtype=numpy_dtype(type.dtype))
    return value


def placeholder(type: Type):
    """An arbitrary value of a type: zero; None for structures and for arrays of unknown size."""
    if isinstance(type, Scalar):
        return as_type({"f": 0.0, "b": False}.get(numpy_dtype(type.dtype).kind, 0), type)
    if isinstance(type, Array) and is_known(shape := type.shape):
        return np.zeros(shape, numpy_dtype(type.dtype))
    return None


def fold(prim: Primitive, args, attrs, type) -> Constant | None:
    """The constant value of an application of constants, if it is pure and small."""
    for arg in args:  # checked first: most applications have an operand that is computed
        if not isinstance(arg, Constant):
            return None
    if prim.effect or prim.kind not in ("elementwise", "injective", "reduce") or prim.reference is None or not args:
        return None
    if not isinstance(type, Scalar | Array):
        return None
    if isinstance(type, Array) and not (is_known(shape := type.shape) and math.prod(shape) <= FOLD_LIMIT):
        return None
    try:
        with np.errstate(all="ignore"):
            value = as_type(prim.reference(*[a.value for a in args], **attrs), type)
    except (ArithmeticError, ValueError, TypeError):
        return None  # an error must be raised at run time, at the user's line, if it is ever reached
    return Constant(value, type, args[0].origin)


def _binary(name: str, swap: bool = False) -> Callable[[Var, Any], Var]:
    """The method of `Var` for an operator; `swap`: the reflected one."""

    def method(self: Var, other: Any) -> Var:
        return REGISTRY[name](other, self) if swap else REGISTRY[name](self, other)

    return method


class Var:
    """A staged value: a typed node that rules compute with."""

    __slots__ = ("builder", "node")
    __array_priority__ = 1000
    __array_ufunc__ = None  # NumPy must not take over `array * var`

    def __init__(self, builder: Builder, node: Node):
        self.builder = builder
        self.node = node

    @property
    def type(self) -> Any:  # as of `Node`
        return self.node.type

    @property
    def shape(self) -> tuple[DimLike, ...]:
        return self.node.type.shape

    @property
    def dtype(self) -> str:
        return self.node.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.node.type.shape)

    def const(self, value, type: Type | None = None) -> Var:
        """A constant as an operand next to this value; a Python number takes this value's dtype unless `type` is given."""
        if type is None and isinstance(value, int | float | bool) and isinstance(self.type, Scalar | Array):
            type = Scalar(self.dtype, isinstance(self.type, Scalar) and self.type.weak)
            value = as_type(numpy_dtype(self.dtype).type(value), type)
        return Var(self.builder, self.builder.constant(value, type))

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", True)
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")

    def __neg__(self) -> Var:
        return REGISTRY["neg"](self)

    def __bool__(self):
        raise InternalError("rules", "a rule branches on a run-time value; use `where`")

    def __getitem__(self, index: int) -> Var:
        if not isinstance(self.type, Struct):
            raise InternalError("rules", "only structures are indexed in rules; use the slicing primitives")
        return REGISTRY["get_item"](self, index=index)

    def __len__(self) -> int:
        return len(self.type.elems) if isinstance(self.type, Struct) else self.type.shape[0]

    def apply_primitive(self, prim: Primitive, args: tuple, attrs: dict) -> Var:
        """Apply a primitive to values, of which the given one is the first staged one; Python numbers and NumPy arrays
        become constants.
        """
        numeric = next((a for a in args if isinstance(a, Var) and isinstance(a.type, Scalar | Array)), self)
        nodes = tuple(a.node if isinstance(a, Var) else numeric.const(a).node for a in args)
        return Var(self.builder, self.builder.emit(prim, nodes, attrs))

    def __iter__(self) -> Iterator[Var]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Var({self.node.type})"
