"""Types as written: what occurs in them, and copies with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...tree import (
    Blank,
    DataType,
    FunctionType,
    RefType,
    RelationClause,
    ShapeExpr,
    TensorType_,
    TupleType,
    TypeExpr,
    TypeParam,
    TypeVar,
)


def parts_of(t: TypeExpr) -> tuple[TypeExpr, ...]:
    """The types, shapes, sizes and dtypes directly within a type that are not ints or names."""
    match t:
        case TensorType_():
            shape = (t.shape,) if isinstance(t.shape, TypeVar) else t.shape
            return tuple(x for x in (*shape, t.dtype) if isinstance(x, TypeVar))
        case TupleType():
            return t.fields
        case FunctionType():
            return (*t.params, t.result, *(a for r in t.relations for a in r.args or ()))
        case RefType():
            return (t.content,)
        case DataType():
            return t.args
        case ShapeExpr(sizes=tuple() as sizes):
            return tuple(x for x in sizes if isinstance(x, TypeVar))
    return ()


def all_types(t: TypeExpr) -> Iterator[TypeExpr]:
    """A type and all types within it."""
    stack = [t]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(parts_of(top)))


def type_params_in(t: TypeExpr) -> list[TypeParam]:
    """The type parameters that a type uses and does not declare, in order."""
    declared = {p for x in all_types(t) if isinstance(x, FunctionType) for p in x.type_params}
    found = {x.param: None for x in all_types(t) if isinstance(x, TypeVar)}
    return [p for p in found if p not in declared]


def holds_functions(t: TypeExpr) -> bool:
    """Whether values of a type hold functions, as far as the type itself tells."""
    return any(isinstance(x, FunctionType) for x in all_types(t))


def is_closed(t: TypeExpr) -> bool:
    """Whether a type means the same everywhere in a module."""
    return not type_params_in(t) and not any(isinstance(x, Blank) for x in all_types(t))


def mapped_type(t: TypeExpr, change: Callable[[TypeExpr], TypeExpr]) -> TypeExpr:
    """A type rebuilt from its leaves by `change`, which gets each type with its parts changed already."""

    def of(x: TypeExpr) -> TypeExpr:
        match x:
            case TensorType_():
                shape = of(x.shape) if isinstance(x.shape, TypeVar) else tuple(map(size, x.shape))
                dtype = of(x.dtype) if isinstance(x.dtype, TypeVar) else x.dtype
                x = replace(x, shape=shape, dtype=dtype)
            case TupleType():
                x = replace(x, fields=tuple(map(of, x.fields)))
            case FunctionType():
                relations = tuple(clause(r) for r in x.relations)
                x = replace(x, params=tuple(map(of, x.params)), result=of(x.result), relations=relations)
            case RefType():
                x = replace(x, content=of(x.content))
            case DataType():
                x = replace(x, args=tuple(map(of, x.args)))
            case ShapeExpr(sizes=tuple() as sizes):
                x = replace(x, sizes=tuple(map(size, sizes)))
        return change(x)

    def size(x):
        return of(x) if isinstance(x, TypeVar) else x

    def clause(r: RelationClause) -> RelationClause:
        return r if r.args is None else replace(r, args=tuple(map(of, r.args)))

    return of(t)


def renamed_type(t: TypeExpr, params: dict[TypeParam, TypeParam]) -> TypeExpr:
    """A type with other type parameters."""
    return mapped_type(t, lambda x: TypeVar(params.get(x.param, x.param), span=x.span) if isinstance(x, TypeVar) else x)
