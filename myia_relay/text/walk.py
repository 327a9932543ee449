"""Walking and rebuilding trees, without recursion: the text decides how deeply operands nest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar as TypeVariable

from .tree import (
    Arm,
    Body,
    CallExpr,
    ConstructorPattern,
    DataType,
    Definition,
    Expression,
    Function,
    FunctionType,
    GraphBinding,
    IfExpr,
    Let,
    Local,
    LocalVar,
    MatchExpr,
    PatternExpr,
    Projection,
    RefNew,
    RefRead,
    RefType,
    RefWrite,
    RelationClause,
    TreeNode,
    TupleExpr,
    TuplePattern,
    TupleType,
    TypeExpr,
    VariablePattern,
    body,
)


def expressions(node: TreeNode) -> tuple[Expression, ...]:
    """The expressions directly within an expression (a statement, an arm, a definition), in the order of evaluation.

    Of a `Body` these are the values of its statements and the result, of a match the value and the bodies of the arms, of a
    function its body.
    """
    match node:
        case CallExpr():
            return (*node.args, node.callee)
        case Body():
            return (*(s.value for s in node.statements), node.result)
        case TupleExpr():
            return node.fields
        case Projection():
            return (node.tuple,)
        case IfExpr():
            return (node.condition, node.then, node.otherwise)
        case MatchExpr():
            return (node.value, *(arm.body for arm in node.arms))
        case Function() | Arm():
            return (node.body,)
        case RefNew() | Let() | GraphBinding():
            return (node.value,)
        case RefRead():
            return (node.ref,)
        case RefWrite():
            return (node.ref, node.value)
        case Definition():
            return (node.function,)
    return ()


def with_expressions(node: Expression, new: tuple[Expression, ...]) -> Expression:
    """An expression with others in place of `expressions(node)`; itself where they are the same."""
    old = expressions(node)
    if len(old) == len(new) and all(map(lambda a, b: a is b, old, new)):
        return node
    match node:
        case CallExpr():
            return replace(node, args=new[:-1], callee=new[-1])
        case Body():
            statements = [replace(s, value=v) if v is not s.value else s for s, v in zip(node.statements, new)]
            return body(statements, new[-1], node.span)
        case TupleExpr():
            return replace(node, fields=new)
        case Projection():
            return replace(node, tuple=new[0])
        case IfExpr():
            return replace(node, condition=new[0], then=new[1], otherwise=new[2])
        case MatchExpr():
            arms = tuple(replace(a, body=e) if e is not a.body else a for a, e in zip(node.arms, new[1:]))
            return replace(node, value=new[0], arms=arms)
        case Function():
            return replace(node, body=new[0])
        case RefNew():
            return replace(node, value=new[0])
        case RefRead():
            return replace(node, ref=new[0])
        case RefWrite():
            return replace(node, ref=new[0], value=new[1])
    return node


def walk(node: TreeNode) -> Iterator[Expression]:
    """Every expression within a node, itself included: each before what is within it, in the order of evaluation."""
    stack = [node] if isinstance(node, Expression) else list(reversed(expressions(node)))
    while stack:
        top = stack.pop()
        assert isinstance(top, Expression)
        yield top
        stack.extend(reversed(expressions(top)))


def rewritten(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """An expression rebuilt from its leaves: `change` gets each expression, with what is within it changed already.

    Parts that do not change stay the same objects.
    """
    return _post_order(node, expressions, with_expressions, change)


_N = TypeVariable("_N", bound=TreeNode)


def _post_order(
    node: _N,
    parts: Callable[[_N], tuple[_N, ...]],
    rebuilt: Callable[[_N, tuple[_N, ...]], _N],
    change: Callable[[_N], _N],
) -> _N:
    # With an explicit stack: a node, what is within it, and the results so far.
    stack: list[tuple[_N, tuple[_N, ...], list[_N]]] = [(node, parts(node), [])]
    while True:
        top, within, done = stack[-1]
        if len(done) < len(within):
            inner = within[len(done)]
            stack.append((inner, parts(inner), []))
            continue
        stack.pop()
        result = change(rebuilt(top, tuple(done)))
        if not stack:
            return result
        stack[-1][2].append(result)


def bound_locals(node: TreeNode) -> tuple[Local, ...]:
    """The locals that a node itself binds: parameters, statements of a body, variables of an arm's pattern."""
    match node:
        case Function():
            return tuple(p.local for p in node.params)
        case Body():
            return tuple(s.local for s in node.statements)
        case Let() | GraphBinding() | VariablePattern():
            return (node.local,)
        case Arm():
            return bound_locals(node.pattern)
        case MatchExpr():
            return tuple(local for arm in node.arms for local in bound_locals(arm))
        case ConstructorPattern() | TuplePattern():
            return tuple(local for p in node.fields for local in bound_locals(p))
    return ()


def free_locals(node: TreeNode) -> dict[Local, None]:
    """The locals that are used within a node and bound outside, in the order of their first use.

    As a binder is bound in one place only, these are those used and not bound within.
    """
    used, bound = {}, set()
    for e in walk(node):
        if isinstance(e, LocalVar):
            used[e.local] = None
        bound.update(bound_locals(e))
    bound.update(bound_locals(node))
    return {local: None for local in used if local not in bound}


# ---------------------------------------------------------------- types


def types_within(node: TypeExpr) -> tuple[TypeExpr, ...]:
    """The types directly within a type; sizes, shapes and dtypes are none."""
    match node:
        case TupleType():
            return node.fields
        case FunctionType():
            return (*node.params, node.result, *(a for r in node.relations for a in r.args or ()))
        case RefType():
            return (node.content,)
        case DataType():
            return node.args
    return ()


def with_types_within(node: TypeExpr, new: tuple[TypeExpr, ...]) -> TypeExpr:
    """A type with others in place of `types_within(node)`; itself where they are the same."""
    if all(map(lambda a, b: a is b, types_within(node), new)):
        return node
    match node:
        case TupleType():
            return replace(node, fields=new)
        case FunctionType():
            n = len(node.params)
            return replace(
                node, params=new[:n], result=new[n], relations=_relations(node.relations, iter(new[n + 1 :]))
            )
        case RefType():
            return replace(node, content=new[0])
        case DataType():
            return replace(node, args=new)
    return node


def _relations(relations: tuple[RelationClause, ...], new: Iterator[TypeExpr]) -> tuple[RelationClause, ...]:
    return tuple(r if r.args is None else replace(r, args=tuple(next(new) for _ in r.args)) for r in relations)


def rewritten_type(node: TypeExpr, change: Callable[[TypeExpr], TypeExpr]) -> TypeExpr:
    """A type rebuilt from its leaves; as `rewritten`."""
    return _post_order(node, types_within, with_types_within, change)


def types_at(node: TreeNode) -> tuple[TypeExpr, ...]:
    """The types that are written at an expression itself, in the order of the text.

    Of a function: at its parameters, its result, its relations. Of a `Body`: at its statements. Of a match: in its patterns.
    """
    match node:
        case Function():
            written = [*(p.annotation for p in node.params), node.result]
            return (*(t for t in written if t is not None), *(a for r in node.relations for a in r.args or ()))
        case Body():
            return tuple(s.annotation for s in node.statements if isinstance(s, Let) and s.annotation is not None)
        case CallExpr():
            return node.type_args
        case MatchExpr():
            return tuple(t for arm in node.arms for t in types_at(arm.pattern))
        case VariablePattern():
            return () if node.annotation is None else (node.annotation,)
        case ConstructorPattern() | TuplePattern():
            return tuple(t for p in node.fields for t in types_at(p))
    return ()


def with_types_at(node: Expression, change: Callable[[TypeExpr], TypeExpr]) -> Expression:
    """An expression with `change` of each of the types at it."""
    old = types_at(node)
    new = [change(t) for t in old]
    if all(map(lambda a, b: a is b, old, new)):
        return node
    types = iter(new)

    def written(annotation: TypeExpr | None) -> TypeExpr | None:
        return None if annotation is None else next(types)

    def pattern(p: PatternExpr) -> PatternExpr:
        if isinstance(p, VariablePattern):
            return replace(p, annotation=written(p.annotation))
        if isinstance(p, ConstructorPattern | TuplePattern):
            return replace(p, fields=tuple(pattern(f) for f in p.fields))
        return p

    match node:
        case Function():
            params = tuple(replace(p, annotation=written(p.annotation)) for p in node.params)
            return replace(
                node, params=params, result=written(node.result), relations=_relations(node.relations, types)
            )
        case Body():
            found = (replace(s, annotation=written(s.annotation)) if isinstance(s, Let) else s for s in node.statements)
            return replace(node, statements=tuple(found))
        case CallExpr():
            return replace(node, type_args=tuple(types))
        case MatchExpr():
            return replace(node, arms=tuple(replace(a, pattern=pattern(a.pattern)) for a in node.arms))
    return node
