"""Types written where a pass may take away what they were inferred from.

    let %r = ref(Nil); let %n = @sum(!%r); ..    =>    let %r: ref(List[int32]) = ref(Nil); ..

What a value of an open type is may be known from one use alone. If a pass drops that use, the rest has no type any more: the text
is ambiguous, though its value is the same. The types of parameters and of what is bound are then written before the pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...check.annotate import written
from ...check.checked import Checked
from ...terms.terms import ArrowTerm, TensorTerm, prune
from ...tree import (
    ANY_SIZE,
    Body,
    ConstructorPattern,
    Expression,
    Function,
    GraphBinding,
    Let,
    MatchExpr,
    ModuleTree,
    PatternExpr,
    ShapeExpr,
    Statement,
    TensorType_,
    TuplePattern,
    TypeExpr,
    VariablePattern,
)
from ...walk import rewritten, walk
from .type_expressions import all_types
from .types_known import Types


def pinned(checked: Checked) -> ModuleTree:
    """The tree of a checked module with the types of parameters, of variables in patterns, and of what is bound and no tensor."""
    types = Types(checked)
    return checked.tree.mapped(lambda name, function: _pinned(function, types))


def _pinned(function: Function, types: Types) -> Function:
    functions = {f.params: f for f in walk(function) if isinstance(f, Function) and f.params}

    def change(e: Expression) -> Expression:
        if isinstance(e, Body):
            return replace(e, statements=tuple(_statement(s, types) for s in e.statements))
        if isinstance(e, MatchExpr):
            return replace(e, arms=tuple(replace(arm, pattern=_pattern(arm.pattern, types)) for arm in e.arms))
        if isinstance(e, Function) and e.params:
            return _parameters(e, functions[e.params], types)  # its body may be another already, its parameters are not
        return e

    out = rewritten(function, change)
    assert isinstance(out, Function)
    return out


def _statement(s: Statement, types: Types) -> Statement:
    if isinstance(s.value, Function) or (isinstance(s, Let) and s.annotation is not None):
        return s
    term = types.of_local(s.local)
    annotation = None if isinstance(prune(term), TensorTerm) else _written(term, types)
    if annotation is None:
        return s
    if isinstance(s, GraphBinding):
        return Let(s.local, s.value, annotation, span=s.span)
    return replace(s, annotation=annotation)


def _pattern(p: PatternExpr, types: Types) -> PatternExpr:
    match p:
        case VariablePattern(annotation=None):
            return replace(p, annotation=_written(types.of_local(p.local), types))
        case ConstructorPattern():
            return replace(p, fields=tuple(_pattern(f, types) for f in p.fields))
        case TuplePattern():
            return replace(p, fields=tuple(_pattern(f, types) for f in p.fields))
    return p


def _written(term: Any, types: Types) -> TypeExpr | None:
    """A type as it is written within the functions around it; None where that would say less."""
    found = written(types.checked, term) if term is not None else None
    return None if found is None or any(map(_has_open_size, all_types(found))) else found


def _has_open_size(t: TypeExpr) -> bool:
    sizes = t.shape if isinstance(t, TensorType_) else t.sizes if isinstance(t, ShapeExpr) else ()
    return ANY_SIZE in (sizes if isinstance(sizes, tuple) else (sizes,))


def _parameters(function: Function, original: Function, types: Types) -> Function:
    arrow: Any = prune(types.of(original))
    if not isinstance(arrow, ArrowTerm):
        return function
    params = tuple(
        replace(p, annotation=_written(t, types)) if p.annotation is None else p
        for p, t in zip(function.params, arrow.params, strict=True)
    )
    return replace(function, params=params)
