"""Walking and rebuilding trees, without recursion: the text decides how deeply operands nest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .tree import (
    Arm,
    Body,
    CallExpr,
    ConstructorPattern,
    Definition,
    Expression,
    Function,
    GraphBinding,
    IfExpr,
    Let,
    Local,
    LocalVar,
    MatchExpr,
    Projection,
    RefNew,
    RefRead,
    RefWrite,
    TreeNode,
    TupleExpr,
    TuplePattern,
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
    # Post-order with an explicit stack: an expression, what is within it, and the results so far.
    stack: list[tuple[Expression, tuple[Expression, ...], list[Expression]]] = [(node, expressions(node), [])]
    while True:
        top, within, done = stack[-1]
        if len(done) < len(within):
            inner = within[len(done)]
            stack.append((inner, expressions(inner), []))
            continue
        stack.pop()
        result = change(with_expressions(top, tuple(done)))
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
