"""Marks for a debugger: where functions and statements begin and end, and which variables they read and bind.

A graph that is parsed for a debugger has a `syntax.mark` at each of these places. Its operands are the nodes that the variables
are bound to there, so that the names in the source are those that a debugger shows, whatever the nodes are called. Reverse mode
gives each mark a counterpart in the backward pass, which is given the cotangents (`ad.reverse.reverse`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node
from .context import ParseContext
from .text import scope as scopes

HEADERS = {ast.If: "test", ast.While: "test", ast.For: "iter", ast.Match: "subject"}
"""What a compound statement evaluates before anything else."""

SILENT = (ast.Global, ast.Nonlocal)
RESULT = "return"
"""The name of the value of a `return`."""


def enters(p: ParseContext) -> None:
    """A function begins, with its parameters and what it captures."""
    captured = {name: node for name, (node, flag) in p.captures.items() if node is not None and flag is None}
    own = _variables(p)
    _mark(p, "call", p.node, {**captured, **own}, [arg.arg for arg in scopes.parameters(p.node)])
    if isinstance(p.node, ast.Lambda):
        _mark(p, "line", p.node.body, _read(p, p.node.body))


def leaves(p: ParseContext, result: Node) -> None:
    """A function ends."""
    if isinstance(p.node, ast.Lambda):
        _mark(p, "done", p.node.body, {RESULT: result}, [RESULT])
    _mark(p, "return", p.node, {RESULT: result})


def begins(p: ParseContext, stmt: ast.stmt) -> dict[str, Node] | None:
    """A statement begins.

    Returns:
        What variables are bound to, for `ends`; None where nothing is to be told there.
    """
    if isinstance(stmt, SILENT) or (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)):
        return None
    header = HEADERS.get(type(stmt))
    if isinstance(stmt, ast.While) and not isinstance(stmt.test, ast.Constant):
        return None  # its condition tells, each time
    _mark(p, "line", stmt, _read(p, stmt if header is None else getattr(stmt, header)))
    return dict(p.state.env) if header is None else None


def again(p: ParseContext, stmt: ast.For | ast.While) -> dict[str, Node]:
    """The head of a loop, once for each iteration; returns what variables are bound to."""
    _mark(p, "line", stmt, _read(p, stmt.test) if isinstance(stmt, ast.While) else {})
    return dict(p.state.env)


def ends(p: ParseContext, stmt: ast.stmt, before: dict[str, Node]) -> None:
    """A simple statement ends, and has bound variables."""
    if p.state.dead is not None:
        return
    env = p.state.env
    bound = {name: node for name, node in _variables(p).items() if before.get(name) is not node and not _checks(node)}
    if isinstance(stmt, ast.Return):
        bound[RESULT] = env["$ret"]
    read = {} if isinstance(stmt, ast.For) else _read(p, stmt)
    _mark(p, "done", stmt, {**read, **bound}, bound)


def ends_header(p: ParseContext, stmt: ast.For, before: dict[str, Node]) -> None:
    """The targets of a `for` are bound."""
    ends(p, stmt, {name: node for name, node in before.items() if name not in scopes.bindings([stmt.target])})


def _variables(p: ParseContext) -> dict[str, Node]:
    """Variables that are certainly bound, and cells of variables that inner functions assign to."""
    env = p.state.env
    found = {name: node for name, node in env.items() if not name.startswith("$") and f"$bound.{name}" not in env}
    cells = {name: p.cell(name) for name in (*p.cells, *scopes.free_names(p.node))}
    return {**found, **{name: cell for name, cell in cells.items() if cell is not None}}


def _read(p: ParseContext, tree: ast.AST) -> dict[str, Node]:
    """The variables that a statement, or an expression, reads, as far as they are certainly bound."""
    known = _variables(p)
    names = scopes.loads([tree]) | (scopes.bindings([tree]) if isinstance(tree, ast.AugAssign) else set())
    return {name: known[name] for name in sorted(names) if name in known and p.cell(name) is None}


def _checks(node: Node) -> bool:
    """Whether a node only checks that a variable is bound: the value is the one it had."""
    return isinstance(node, Apply) and isinstance(node.fn, Constant) and node.fn.value is syntax.check_bound


def _mark(p: ParseContext, kind: str, at: ast.AST, variables: dict[str, Node], binds: Iterable[str] = ()) -> None:
    """A mark; functions written inside of this one are told by their names alone, as they may not be parsed yet."""
    functions = {n: v for n, v in variables.items() if isinstance(v, Constant) and isinstance(v.value, Graph)}
    shown = {n: v for n, v in variables.items() if n not in functions and not _unbound(v)}
    attrs = {
        "kind": kind,
        "function": p.name,
        "owner": p.source.function,
        "binds": tuple(binds),
        "names": tuple(shown),
        "functions": tuple((n, v.value.name) for n, v in functions.items()),
    }
    p.apply(syntax.mark, *shown.values(), at=at, attrs=attrs)


def _unbound(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is syntax.UNBOUND
