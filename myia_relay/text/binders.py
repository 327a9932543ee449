"""Copies of expressions: with binders of their own, or with other expressions in place of locals.

A binder occurs once in a module, so whoever puts an expression in two places (inlining, unfolding a recursion) renews the
binders of one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .tree import (
    Body,
    ConstructorPattern,
    Expression,
    Function,
    FunctionType,
    Local,
    LocalVar,
    MatchExpr,
    PatternExpr,
    ShapeExpr,
    Size,
    TensorType_,
    TuplePattern,
    TypeExpr,
    TypeParam,
    TypeVar,
    VariablePattern,
)
from .walk import bound_locals, rewritten, rewritten_type, types_at, types_within, walk, with_types_at


def renewed(node: Expression) -> Expression:
    """A copy of an expression in which everything that it binds, locals and type parameters, is bound anew."""
    locals: dict[Local, Local] = {}
    for e in walk(node):
        locals.update((local, Local(local.name, span=local.span)) for local in bound_locals(e))
    return renamed(node, locals, _new_params(node))


def with_new_type_parameters(node: Expression) -> Expression:
    """A copy of an expression in which the type parameters that it binds are bound anew; the same one if it binds none."""
    params = _new_params(node)
    return renamed(node, {}, params) if params else node


def _new_params(node: Expression) -> dict[TypeParam, TypeParam]:
    """For each type parameter that an expression binds another one of its name."""
    params: dict[TypeParam, TypeParam] = {}
    for e in walk(node):
        if isinstance(e, Function):
            params.update((p, replace(p)) for p in e.type_params)
        for t in types_at(e):
            params.update((p, replace(p)) for p in _bound_params(t))
    return params


def renamed(
    node: Expression, locals: Mapping[Local, Local], params: Mapping[TypeParam, TypeParam] | None = None
) -> Expression:
    """A copy of an expression with other binders in place of some, where they are bound and where they are used."""
    types = params or {}

    def change(e: Expression) -> Expression:
        if isinstance(e, LocalVar):
            other = locals.get(e.local)
            return e if other is None else replace(e, local=other)
        if types:
            e = with_types_at(e, lambda t: renamed_type(t, types))
        match e:
            case Function():
                found = tuple(replace(p, local=locals.get(p.local, p.local)) for p in e.params)
                return replace(e, params=found, type_params=tuple(types.get(p, p) for p in e.type_params))
            case Body():
                statements = tuple(replace(s, local=locals.get(s.local, s.local)) for s in e.statements)
                return replace(e, statements=statements)
            case MatchExpr():
                return replace(e, arms=tuple(replace(a, pattern=_renamed_pattern(a.pattern, locals)) for a in e.arms))
        return e

    return rewritten(node, change)


def _renamed_pattern(pattern: PatternExpr, locals: Mapping[Local, Local]) -> PatternExpr:
    match pattern:
        case VariablePattern():
            return replace(pattern, local=locals.get(pattern.local, pattern.local))
        case ConstructorPattern() | TuplePattern():
            return replace(pattern, fields=tuple(_renamed_pattern(p, locals) for p in pattern.fields))
    return pattern


def _bound_params(node: TypeExpr) -> list[TypeParam]:
    """The type parameters that a type binds."""
    found: list[TypeParam] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, FunctionType):
            found.extend(top.type_params)
        stack.extend(types_within(top))
    return found


def renamed_type(node: TypeExpr, params: Mapping[TypeParam, TypeParam]) -> TypeExpr:
    """A type with other type parameters in place of some."""

    def variable(v: TypeVar) -> TypeVar:
        other = params.get(v.param)
        return v if other is None else replace(v, param=other)

    def size(s: Size) -> Size:
        return variable(s) if isinstance(s, TypeVar) else s

    def change(t: TypeExpr) -> TypeExpr:
        match t:
            case TypeVar():
                return variable(t)
            case TensorType_():
                shape = variable(t.shape) if isinstance(t.shape, TypeVar) else tuple(map(size, t.shape))
                dtype = variable(t.dtype) if isinstance(t.dtype, TypeVar) else t.dtype
                return replace(t, shape=shape, dtype=dtype)
            case ShapeExpr() if isinstance(t.sizes, tuple):
                return replace(t, sizes=tuple(map(size, t.sizes)))
            case FunctionType() if t.type_params:
                return replace(t, type_params=tuple(params.get(p, p) for p in t.type_params))
        return t

    return rewritten_type(node, change)


def substituted(node: Expression, values: Mapping[Local, Expression]) -> Expression:
    """An expression with others in place of locals that are free in it.

    A value that is put in twice keeps its binders: give only values that bind nothing to locals that are used twice.
    """
    return rewritten(node, lambda e: values.get(e.local, e) if isinstance(e, LocalVar) else e)
