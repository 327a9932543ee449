"""Which names a function binds, which it reads, and which its inner functions capture.

The rules are Python's: a name bound anywhere in a function is local to it throughout; a comprehension has a scope of
its own; defaults, decorators and annotations belong to the scope around the function. Everything here walks the AST
with explicit stacks; recursion is only by nesting of functions and comprehensions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .tree import FunctionNode, children, walk

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def parameters(node: FunctionNode) -> list[ast.arg]:
    """The parameters of a `def` or `lambda`, in the order of `ir.syntax.Signature.names`."""
    a = node.args
    args = [*a.posonlyargs, *a.args]
    return args + ([a.vararg] if a.vararg else []) + a.kwonlyargs + ([a.kwarg] if a.kwarg else [])


def body_of(node: FunctionNode) -> Sequence[ast.AST]:
    """What a function runs: its statements, or the expression of a lambda."""
    return [node.body] if isinstance(node, ast.Lambda) else node.body


def outside_parts(node: FunctionNode) -> list[ast.expr]:
    """The parts of a `def` or `lambda` that are evaluated where it is defined (annotations are handled separately)."""
    defaults = [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]
    return defaults + getattr(node, "decorator_list", [])


def bindings(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that these nodes bind in their own scope: assignments, targets, inner functions, captures of patterns."""
    out: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                out.add(node.id)
        elif isinstance(node, FUNCTIONS):
            if not isinstance(node, ast.Lambda):
                out.add(node.name)
            stack.extend(outside_parts(node))
        elif isinstance(node, ast.ClassDef):
            out.add(node.name)
        elif isinstance(node, COMPREHENSIONS):
            # The targets of a comprehension are its own; a walrus in it binds in the function.
            out.update(n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr))
        else:
            if isinstance(node, ast.alias):
                out.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name:
                out.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                out.add(node.rest)
            stack.extend(children(node))
    return out


def appended(stmt: ast.AST) -> ast.Name | None:
    """The `xs` of a statement `xs.append(v)`, which we treat as an assignment to `xs`."""
    match stmt:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name() as base, attr="append"), args=[arg], keywords=[])
        ):
            return None if isinstance(arg, ast.Starred) else base
    return None


CHANGING = frozenset(("extend", "insert", "pop", "remove", "clear", "reverse", "sort"))
"""Methods that change a list; on other objects these names may mean anything, which inference decides."""


def base_of(node: ast.AST) -> ast.AST:
    """The `x` of `x`, `x[i]`, `x[i][j]`, ..."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def changed(node: ast.AST) -> ast.Name | None:
    """The `xs` of a call `xs.pop()`, `xs[i].extend(ys)`, ..., which is treated as an assignment to `xs`."""
    match node:
        case ast.Call(func=ast.Attribute(value=whole, attr=method)) if method in CHANGING:
            base = base_of(whole)
        case ast.Call(func=ast.Attribute(value=whole, attr="append"), args=[arg], keywords=[]) if not isinstance(
            arg, ast.Starred
        ):
            base = base_of(whole)
        case _:
            return None
    return base if isinstance(base, ast.Name) else None


UFUNCS = frozenset(name for name, value in vars(np).items() if isinstance(value, np.ufunc))


OPERANDS = {name: value.nin for name, value in vars(np).items() if isinstance(value, np.ufunc) and value.nout == 1}
"""The numbers of operands of NumPy's universal functions: one argument more is the array for the result."""
WITH_OUT = frozenset((*OPERANDS, *"clip cumprod cumsum dot max mean min prod std sum take trace var".split()))
"""NumPy functions that take the array for the result as `out=`."""
CHANGING_FUNCTIONS = frozenset(("put_along_axis", "fill_diagonal", "copyto", "putmask"))
"""NumPy functions that change their first argument."""
CHANGING_WORDS = frozenset(("put", "place"))
"""Such functions whose names may mean anything, but for `np.put`."""
CHANGING_METHODS = frozenset(("fill", "partition"))
"""Methods that change an array, and that lists do not have; on other objects these names may mean anything."""


def changing_method(call: ast.AST) -> ast.expr | None:
    """The `x` of a call `x.fill(v)`, `x[i].partition(k)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Subscript() as target, attr=name), args=[_, *_]) if (
            name in CHANGING_METHODS and isinstance(base_of(target), ast.Name)
        ):
            return target
    return None


def result_array(call: ast.AST) -> ast.expr | None:
    """The `z` of `np.add(x, y, z)` and `np.add(x, y, out=z)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=name), args=args, keywords=keywords):
            given = [k.value for k in keywords if k.arg == "out"] if name in WITH_OUT else []
            if not given and len(args) == OPERANDS.get(name, -1) + 1:
                given = args[-1:]
            if given and isinstance(given[0], ast.Name | ast.Subscript):
                return given[0]
    return None


def updated_array(stmt: ast.AST) -> ast.expr | None:
    """The `x` of a statement that assigns to a part of it: `np.add.at(x, i, v)`, `np.negative.at(x, i)`, `np.copyto(x, y)`,
    `np.add(y, z, out=x)`, `x.fill(v)`.
    """
    match stmt:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr=name) | ast.Name(id=name), attr="at"),
                args=[ast.Name() | ast.Subscript() as target, _, *more],
                keywords=[],
            )
        ) if name in UFUNCS and len(more) < 2:
            return target
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr=name) | ast.Name(id=name), args=[ast.Name() | ast.Subscript() as target, *_]
            )
        ) if name in CHANGING_FUNCTIONS:
            return target
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name),
                args=[ast.Name() | ast.Subscript() as target, *_],
            )
        ) if name in CHANGING_WORDS:
            return target
        case ast.Expr(value=ast.Call() as call):
            return changing_method(call) or result_array(call)
    return None


def reshaped_array(target: ast.AST) -> ast.Name | None:
    """The `x` of the target `x.shape`, which we treat as an assignment to `x`."""
    match target:
        case ast.Attribute(value=ast.Name() as base, attr="shape", ctx=ast.Store()):
            return base
    return None


def mutated(nodes: Iterable[ast.AST]) -> set[str]:
    """Names whose value these nodes change in place: `x[i] = v`, `del xs[i]`, `xs.append(v)`, `xs.pop()`, `np.add.at(x, i, v)`."""
    out: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, FUNCTIONS):
            continue
        base = changed(node)
        if base is not None:
            out.add(base.id)
        target = updated_array(node)
        if target is not None and isinstance(whole := base_of(target), ast.Name):
            out.add(whole.id)
        if (base := reshaped_array(node)) is not None:
            out.add(base.id)
        if isinstance(node, COMPREHENSIONS):
            stack.append(node.generators[0].iter)  # which runs outside of it
            continue
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            whole = base_of(node)
            if isinstance(whole, ast.Name):
                out.add(whole.id)
        stack.extend(children(node))
    return out


def loads(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that these nodes read in their own scope; what inner functions capture counts where they are defined."""
    out: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store):
                out.add(node.id)
        elif isinstance(node, FUNCTIONS):
            stack.extend(outside_parts(node))
            out |= free_names(node)
        elif isinstance(node, COMPREHENSIONS):
            stack.append(node.generators[0].iter)
            parts = [g.iter for g in node.generators[1:]] + [c for g in node.generators for c in g.ifs]
            parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            out |= loads(parts) - bindings(g.target for g in node.generators)
        elif isinstance(node, ast.AnnAssign):
            # The annotation of a local is not evaluated.
            stack.extend([node.target] + ([node.value] if node.value else []))
        else:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                out.add(node.target.id)
            stack.extend(children(node))
    return out


class NeedsCell(Exception):
    """A variable that an inner function has captured is bound again: it must be a cell, so the function is parsed
    again.

    Args:
        cells: names of the scope that are cells.
        name: the variable.
    """

    def __init__(self, cells: set[str], name: str):
        super().__init__(name)
        self.cells, self.name = cells, name


@dataclass
class Scope:
    """The names of one function.

    Attributes:
        locals: parameters and whatever the body binds, less what is declared nonlocal or global.
        outer: declared names -> "nonlocal" or "global".
        captured: locals that an inner function reads.
        cells: locals that an inner function assigns to (`nonlocal`), or that are bound anew after one has captured them.
        free: names read, here or in inner functions, that are not local.
        inner: the functions defined right inside.
    """

    locals: set[str]
    outer: dict[str, str] = field(default_factory=dict)
    captured: set[str] = field(default_factory=set)
    cells: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)
    inner: list[FunctionNode] = field(default_factory=list)


def analyse(node: FunctionNode) -> Scope:
    """The scope of a `def` or `lambda`; kept on the node."""
    known = getattr(node, "_scope", None)
    if known is not None:
        return known
    body = body_of(node)
    outer: dict[str, str] = {}
    inner: list[FunctionNode] = []
    stack = list(body)
    while stack:
        part = stack.pop()
        if isinstance(part, FUNCTIONS):
            inner.append(part)
            stack.extend(outside_parts(part))
            continue
        if isinstance(part, (ast.Nonlocal, ast.Global)):
            outer.update(dict.fromkeys(part.names, "nonlocal" if isinstance(part, ast.Nonlocal) else "global"))
        stack.extend(children(part))
    names = ({p.arg for p in parameters(node)} | bindings(body)) - set(outer)
    scope = Scope(names, outer, inner=inner)
    marked: Any = node
    marked._scope = scope
    for part in inner:
        scope.captured |= free_names(part) & names
        scope.cells |= assigned_outside(part) & names
    scope.free = loads(body) - names - {n for n, kind in outer.items() if kind == "global"}
    scope.free |= {n for n, kind in outer.items() if kind == "nonlocal"}
    return scope


def assigned_outside(node: FunctionNode) -> set[str]:
    """Names of the functions around that a `def` or `lambda`, or a function in it, declares nonlocal."""
    out: set[str] = set()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while stack:
        part, hidden = stack.pop()
        if isinstance(part, FUNCTIONS):
            scope = analyse(part)
            out |= {n for n, kind in scope.outer.items() if kind == "nonlocal"} - hidden
            hidden = hidden | scope.locals
        stack.extend((child, hidden) for child in ast.iter_child_nodes(part))
    return out


def free_names(node: FunctionNode) -> set[str]:
    """Names that a `def` or `lambda` uses from outside."""
    return analyse(node).free


def jumps(nodes: Iterable[ast.AST]) -> set[str]:
    """How these statements may leave: "break", "continue" (of the enclosing loop) and "return"."""
    out: set[str] = set()
    stack = [(node, False) for node in nodes]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.Return):
            out.add("return")
        elif isinstance(node, (ast.Break, ast.Continue)):
            if not inside:
                out.add("break" if isinstance(node, ast.Break) else "continue")
        elif isinstance(node, LOOPS):
            stack.extend((child, True) for child in node.body)
            stack.extend((child, inside) for child in node.orelse)
        elif isinstance(node, ast.stmt) and not isinstance(node, FUNCTIONS) or isinstance(node, ast.match_case):
            stack.extend((child, inside) for child in children(node))
    return out
