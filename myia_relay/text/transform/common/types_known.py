"""The types that the checker found, as passes ask for them."""

from __future__ import annotations

import functools
from typing import Any

from ....abstract.types import Array, Scalar
from ...check.annotate import written
from ...check.checked import Checked
from ...terms.terms import (
    COMPOUND,
    GENERIC,
    DataTerm,
    Rigid,
    TensorTerm,
    TupleTerm,
    Unknown,
    is_ground,
    prune,
    resolved,
    tensor,
    unknowns,
)
from ...tree import (
    DataType,
    Expression,
    FunctionType,
    Literal,
    Local,
    LocalVar,
    RefType,
    TensorConstant,
    TypeDef,
    TypeExpr,
)
from .type_expressions import all_types


class Types:
    """The types of a module in A-normal form, as far as passes ask for them.

    Args:
        checked: what the checker found.

    Attributes:
        given: the types of operations that a pass has made.
        locals: the types of locals that a pass has made.
    """

    def __init__(self, checked: Checked):
        self.checked = checked
        self.given: dict[Expression, Any] = {}
        self.locals: dict[Local, Any] = {}

    def of(self, e: Expression) -> Any:
        """The type of an expression; None if it is not known."""
        match e:
            case LocalVar():
                return self.of_local(e.local)
            case Literal():
                return tensor((), e.dtype)
            case TensorConstant():
                return tensor(e.value.shape, e.value.dtype.name)
        if e in self.given:
            return self.given[e]
        found = self.checked.types.get(e)
        return None if found is None else self.checked.type_of(e)

    def copy(self, old: Expression, new: Expression) -> None:
        """Let an operation that stands in another's place have its type."""
        self.given[new] = self.of(old)

    def of_local(self, local: Local) -> Any:
        """The type of a local; None if it is not known or not one type."""
        if local in self.locals:
            return self.locals[local]
        scheme = self.checked.locals.get(local)
        return resolved(scheme.type) if scheme is not None and scheme.is_plain else None

    def annotation(self, term: Any) -> TypeExpr | None:
        """A type as an annotation that means the same everywhere; None if there is none."""
        return written(self.checked, term) if term is not None and is_ground(term) else None

    def is_first_order(self, term: Any) -> bool:
        """Whether values of a type certainly hold neither functions nor references."""
        term = prune(term)
        match term:
            case TensorTerm():
                return True
            case TupleTerm():
                return all(map(self.is_first_order, term.elems))
            case DataTerm():
                return term.name in self._plain and all(map(self._is_plain_argument, term.args))
        return False

    def _is_plain_argument(self, x: Any) -> bool:
        x = prune(x)
        return not isinstance(x, Rigid | Unknown) and (not isinstance(x, COMPOUND) or self.is_first_order(x))

    @functools.cached_property
    def _plain(self) -> set[str]:
        """The data types without functions and references in their fields, but for what stands for their parameters."""
        declared = {n: t for n, t in self.checked.tree.types.items() if isinstance(t, TypeDef)}
        plain = set(declared)
        while True:
            bad = {
                n
                for n in plain
                for c in declared[n].constructors
                for f in c.fields
                for x in all_types(f)
                if isinstance(x, FunctionType | RefType) or (isinstance(x, DataType) and x.name not in plain)
            }
            if not bad:
                return plain
            plain -= bad

    def is_open(self, e: Expression) -> bool:
        """Whether inference has left a part of the type of an expression open, and no scheme abstracts over it."""
        term = self.of(e)
        return term is not None and any(u.level != GENERIC for u in unknowns(term))

    def is_ground(self, e: Expression) -> bool:
        """Whether the type of an expression has no parameters, known or not."""
        term = self.of(e)
        return term is not None and is_ground(term)

    def shape(self, e: Expression) -> tuple[Any, ...] | None:
        """The shape of a tensor as far as its rank is known; its sizes may be anything."""
        term = prune(self.of(e))
        shape = prune(term.shape) if isinstance(term, TensorTerm) else None
        return tuple(map(prune, shape)) if isinstance(shape, tuple) else None

    def sizes(self, e: Expression) -> tuple[int, ...] | None:
        """The shape of a tensor, if all sizes are numbers."""
        shape = self.shape(e)
        return shape if shape is not None and all(isinstance(s, int) for s in shape) else None

    def dtype(self, e: Expression) -> str | None:
        """The dtype of a tensor."""
        term = prune(self.of(e))
        dtype = prune(term.dtype) if isinstance(term, TensorTerm) else None
        return dtype if isinstance(dtype, str) else None


def staged_type(term: Any) -> Any:
    """The type of a value that is staged, a tuple of types for a tuple; None where sizes or dtypes are not known."""
    match prune(term):
        case TensorTerm(shape=tuple() as shape, dtype=str() as dtype) if all(isinstance(s, int) for s in shape):
            return Array(dtype, shape) if shape else Scalar(dtype)
        case TupleTerm() as t:
            parts = tuple(map(staged_type, t.elems))
            return None if None in parts else parts
    return None
