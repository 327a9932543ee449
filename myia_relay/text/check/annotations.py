"""Types as written become terms: kinds, numbers of arguments and names are checked on the way."""

from __future__ import annotations

from typing import Any

from ...utils.errors import CompileError, NameError_, TypeError_, nearest
from ..dtypes import DTYPES
from ..span import Span, loc
from ..terms.solver import Solver
from ..terms.terms import (
    ANY,
    BASE,
    POISON,
    SHAPE,
    SIZE,
    TYPE,
    PolyTerm,
    Rigid,
    TensorTerm,
    arrow,
    cell,
    instance,
    tensor,
    tuple_term,
)
from ..tree import (
    AnySize,
    Blank,
    DataType,
    FunctionType,
    ModuleTree,
    RefType,
    RelationClause,
    ShapeExpr,
    TensorType_,
    TupleType,
    TypeExpr,
    TypeParam,
    TypeVar,
)

RELATIONS = ("Broadcast", "Identity")

_WRITE = {
    TYPE: "such as int32 or List[int32]",
    SHAPE: "a parameter declared as '{name}: Shape', or sizes (2, 3)",
    SIZE: "an int, ?, or a parameter declared as '{name}: ShapeVar'",
    BASE: "float32, ..., or a parameter declared as '{name}: BaseType'",
}


class Annotations:
    """Makes terms of written types.

    Attributes:
        module: where data types are looked up.
        solver: makes unknowns of blanks.
        params: the declared parameters that are in scope, or were.
    """

    def __init__(self, module: ModuleTree, solver: Solver):
        self.module, self.solver = module, solver
        self.params: dict[TypeParam, Rigid] = {}

    def declare(self, param: TypeParam, level: int) -> Rigid:
        """The parameter that a declaration introduces."""
        rigid = self.params[param] = Rigid(param.name, param.kind, level, param.span, param.implicit)
        return rigid

    def rigid(self, use: TypeVar) -> Rigid:
        """The parameter that a use stands for.

        Raises:
            NameError_: it is not in scope.
        """
        found = self.params.get(use.param)
        if found is None:
            raise NameError_(f"the type parameter '{use.param.name}' is not in scope here", loc(use.span))
        return found

    def term(self, written: TypeExpr | None) -> Any:
        """A written type; an unknown where nothing is written.

        Raises:
            NameError_: a name is not defined.
            TypeError_: a part is of the wrong kind, or the number of arguments of a data type is wrong.
        """
        match written:
            case None | Blank():
                return self.solver.fresh()
            case TensorType_():
                return tensor(self.shape(written.shape), self.dtype(written.dtype, written.span))
            case TypeVar():
                rigid = self.rigid(written)
                if rigid.kind == BASE:
                    return TensorTerm((), rigid)
                if rigid.kind != TYPE:
                    raise self._wrong_kind(rigid, TYPE, written.span)
                return rigid
            case TupleType():
                return tuple_term(map(self.term, written.fields))
            case FunctionType():
                return self._function(written)
            case RefType():
                return cell(self.term(written.content))
            case DataType():
                return self._data(written)
            case ShapeExpr():
                raise TypeError_(
                    "this is a shape, and a type is needed here: Tensor[(2, 3), float32]", loc(written.span)
                )
        raise TypeError_("this is no type", loc(written.span))

    def of_kind(self, written: TypeExpr, kind: str) -> Any:
        """A written argument for a parameter of a kind.

        Raises:
            TypeError_: it is of another kind.
        """
        if isinstance(written, Blank):
            return self.solver.fresh(kind)
        if kind == TYPE:
            return self.term(written)
        if isinstance(written, TypeVar):
            rigid = self.rigid(written)
            if rigid.kind != kind:
                raise self._wrong_kind(rigid, kind, written.span)
            return rigid.size if kind == SIZE else rigid
        if kind == BASE and isinstance(written, TensorType_) and written.shape == ():
            return self.dtype(written.dtype, written.span)
        if isinstance(written, ShapeExpr):
            one = isinstance(written.sizes, int | AnySize)
            if kind == SIZE and one:
                return self.size(written.sizes)
            if kind == SHAPE and not one:
                assert isinstance(written.sizes, tuple)
                return tuple(map(self.size, written.sizes))
        if kind == SHAPE and isinstance(written, TupleType) and not written.fields:
            return ()
        raise TypeError_(f"what is needed here is of kind {kind}: {_WRITE[kind].format(name='s')}", loc(written.span))

    def shape(self, written: Any) -> Any:
        """A written shape.

        Raises:
            TypeError_: a part is of another kind.
        """
        if isinstance(written, TypeVar):
            rigid = self.rigid(written)
            if rigid.kind == SIZE:
                return (rigid.size,)
            if rigid.kind != SHAPE:
                raise self._wrong_kind(rigid, SHAPE, written.span)
            return rigid
        return tuple(map(self.size, written))

    def size(self, written: Any) -> Any:
        """A written size.

        Raises:
            TypeError_: it is of another kind.
        """
        if isinstance(written, TypeVar):
            rigid = self.rigid(written)
            if rigid.kind != SIZE:
                raise self._wrong_kind(rigid, SIZE, written.span)
            return rigid.size
        return ANY if isinstance(written, AnySize) else written

    def dtype(self, written: Any, span: Span | None) -> Any:
        """A written dtype.

        Raises:
            NameError_: there is no such dtype.
            TypeError_: it is a parameter of another kind.
        """
        if isinstance(written, TypeVar):
            rigid = self.rigid(written)
            if rigid.kind != BASE:
                raise self._wrong_kind(rigid, BASE, written.span)
            return rigid
        if written not in DTYPES:
            raise NameError_(f"there is no dtype '{written}'{nearest(written, DTYPES)}", loc(span))
        return written

    def relation(self, clause: RelationClause, default: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """A relation behind `where`, and the types that it is about.

        Args:
            clause: what is written.
            default: the types of the parameters and of the result.

        Raises:
            NameError_: there is no such relation.
            TypeError_: it is about another number of types.
        """
        if clause.relation not in RELATIONS:
            advice = nearest(clause.relation, RELATIONS) or "; there are Broadcast and Identity"
            raise NameError_(f"there is no relation '{clause.relation}'{advice}", loc(clause.span))
        types = default if clause.args is None else tuple(map(self.term, clause.args))
        if clause.relation == "Broadcast" and len(types) != 3:
            raise TypeError_(
                f"Broadcast is a relation of two arguments and a result, and there are {len(types)} types here; "
                "write which: where Broadcast(A, B, C)",
                loc(clause.span),
            )
        if clause.relation == "Identity" and len(types) < 2:
            raise TypeError_("Identity is a relation of two types at least", loc(clause.span))
        return clause.relation, types

    def _function(self, written: FunctionType) -> Any:
        params = tuple(self.declare(p, self.solver.level) for p in written.type_params)
        types, result = tuple(map(self.term, written.params)), self.term(written.result)
        body = arrow(types, result)
        if not params and not written.relations:
            return body
        return PolyTerm(params, body, tuple(self.relation(r, (*types, result)) for r in written.relations))

    def _data(self, written: DataType) -> Any:
        definition = self.module.types.get(written.name)
        if definition is None:
            known = (*self.module.types, *DTYPES, "Tensor")
            raise NameError_(f"there is no type '{written.name}'{nearest(written.name, known)}", loc(written.span))
        params = definition.type_params
        if len(params) != len(written.args):
            shown = f"{written.name}[{', '.join(p.name for p in params)}]"
            raise TypeError_(
                f"the type {shown} takes {_count(len(params), 'argument')}, and {len(written.args)} "
                f"{'is' if len(written.args) == 1 else 'are'} written here",
                loc(written.span),
                *([("it is defined here", loc(definition.span))] if definition.span else []),
            )
        return instance(written.name, [self.of_kind(a, p.kind) for a, p in zip(written.args, params, strict=True)])

    def _wrong_kind(self, rigid: Rigid, needed: str, span: Span | None) -> CompileError:
        note = [("it is declared here", rigid.span.loc)] if rigid.span is not None else []
        return TypeError_(
            f"'{rigid.name}' is a parameter of kind {rigid.kind}, and what is needed here is of kind {needed}: "
            f"{_WRITE[needed].format(name=rigid.name)}",
            loc(span),
            *note,
        )


def _count(n: int, word: str) -> str:
    return f"no {word}s" if n == 0 else f"{n} {word}" if n == 1 else f"{n} {word}s"


def poisoned(annotations: Annotations, written: TypeExpr | None, report) -> Any:
    """A written type, or one that agrees with everything where it is wrong; that is reported."""
    try:
        return annotations.term(written)
    except CompileError as error:
        report(error)
        return POISON
