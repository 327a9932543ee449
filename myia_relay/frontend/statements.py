"""Simple statements, and inner functions."""

from __future__ import annotations

import ast

from ..ir import syntax
from ..ir.node import Constant, Node
from .assignments import append, bind, update_array
from .conditionals import condition
from .context import BREAK, CONTINUE, RETURN, STATEMENTS, ParseContext, handles
from .functions import closure


@handles(STATEMENTS, ast.Expr)
def expression(p: ParseContext, stmt: ast.Expr) -> None:
    """An expression for its effect; docstrings are skipped."""
    if isinstance(stmt.value, ast.Constant) or append(p, stmt) or update_array(p, stmt):
        return
    p.looked_up(stmt.value)


@handles(STATEMENTS, ast.Pass, ast.Nonlocal, ast.Global)
def nothing(p: ParseContext, stmt: ast.stmt) -> None:
    """`pass`; declarations have been taken in by `scope`."""


@handles(STATEMENTS, ast.Return)
def return_(p: ParseContext, stmt: ast.Return) -> None:
    """`return e`."""
    value = p.expr(stmt.value) if stmt.value is not None else p.constant(None, stmt)
    p.state.env["$ret"] = value
    p.state.jump(RETURN)


@handles(STATEMENTS, ast.Break)
def break_(p: ParseContext, stmt: ast.Break) -> None:
    """`break`."""
    p.state.jump(BREAK)


@handles(STATEMENTS, ast.Continue)
def continue_(p: ParseContext, stmt: ast.Continue) -> None:
    """`continue`."""
    p.state.jump(CONTINUE)


@handles(STATEMENTS, ast.Assert)
def assert_(p: ParseContext, stmt: ast.Assert) -> None:
    """`assert c, m`  =>  `assert_(c, {m})`: the message is computed only where it is needed."""
    if not __debug__:  # `python -O`
        return
    cond = condition(p, stmt.test)
    message = Constant(None)
    if stmt.msg is not None:
        base = p.state
        p.state = p.fork("message", p.origin(stmt.msg))
        p.state.graph.output = p.expr(stmt.msg)
        message = Constant(p.state.graph)
        p.state = base
    node = p.apply(syntax.assert_, cond, message, at=stmt)
    if isinstance(stmt.test, ast.Constant) and not stmt.test.value:
        # Control ends here; the end is written as a `raise`, whose result joins with anything.
        error = p.apply(AssertionError, at=stmt)
        p.state.dead = p.apply(syntax.raise_, error, at=stmt, name=node.name)


@handles(STATEMENTS, ast.Raise)
def raise_(p: ParseContext, stmt: ast.Raise) -> None:
    """`raise E(...)`, `raise E`."""
    if stmt.exc is None:
        raise p.refuse(
            "a bare 'raise' has nothing to raise again, as there is no 'try'; write raise ValueError(...)", stmt
        )
    if stmt.cause is not None:
        raise p.refuse("'raise ... from' is not part of the language; write raise without 'from'", stmt)
    p.state.dead = p.apply(syntax.raise_, p.expr(stmt.exc), at=stmt)


@handles(STATEMENTS, ast.FunctionDef)
def define(p: ParseContext, stmt: ast.FunctionDef) -> None:
    """`def` inside a function."""
    decorators: list[Node] = [p.expr(d) for d in stmt.decorator_list]
    later = p.live.later.get(stmt, frozenset())
    value: Node = closure(p, stmt, None if decorators else stmt.name, later)
    for decorator, at in zip(reversed(decorators), reversed(stmt.decorator_list), strict=True):
        value = p.apply(decorator, value, at=at)
    bind(p, stmt.name, value, stmt)
