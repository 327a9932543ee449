"""Variables that inner functions change in place: they become parameters of these functions, which every call gives.

    def outer(graph):                          def outer(graph):
        seen = []                                  seen = []

        def visit(v):                              def visit(v, *, seen):
            seen.append(v)               =>            seen.append(v)
            for w in graph[v]:                         for w in graph[v]:
                visit(w)                                   visit(w, seen=seen)

        visit(0)                                   visit(0, seen=seen)

What functions change of their parameters, callers see (`procedures`). All inner functions that use such a variable, or call one
that does, are rewritten, on the syntax tree. That is possible where each is a `def` that is only called, and where the variable is
bound before them and no function declares it nonlocal; otherwise all stays as it is, and the change is refused.

Source: T. Johnsson, "Lambda lifting: transforming programs to recursive equations" (FPCA 1985).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from .text import scope as scopes
from .text.tree import FunctionNode, children

KEPT_ON_NODES = ("_scope", "_procedure", "_definitions", "_live")
"""What analyses keep on nodes, which is not true any more when the tree has changed."""


class _Nested:
    """A function in the tree.

    Attributes:
        node: its `def` or `lambda`. outer: the function around it.
        inner: the functions right inside.
        loads: the names that it reads by itself, comprehensions included, with the call of which each is the callee, or None.
        targets: the names that its comprehensions bind.
    """

    def __init__(self, node: FunctionNode, outer: _Nested | None):
        self.node, self.outer = node, outer
        self.inner: list[_Nested] = []
        self.loads: list[tuple[str, ast.Call | None]] = []
        self.targets: set[str] = set()
        callee: dict[ast.AST, ast.Call] = {}
        stack: list[ast.AST] = list(scopes.body_of(node))
        while stack:
            part = stack.pop()
            if isinstance(part, scopes.FUNCTIONS):
                if not isinstance(part, ast.AsyncFunctionDef):
                    self.inner.append(_Nested(part, self))
                stack.extend(scopes.outside_parts(part))
                continue
            if isinstance(part, ast.comprehension):
                self.targets |= scopes.bindings([part.target])
            if isinstance(part, ast.Call):
                callee[part.func] = part
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                self.loads.append((part.id, callee.get(part)))
            stack.extend(children(part))

    def within(self) -> Iterator[_Nested]:
        """This function and all inside of it."""
        stack: list[_Nested] = [self]
        while stack:
            top = stack.pop()
            yield top
            stack.extend(top.inner)

    def owner(self, name: str) -> _Nested | None:
        """The function whose variable a name is here; None for one from outside."""
        found: _Nested | None = self
        while found is not None and name not in scopes.analyse(found.node).locals:
            found = found.outer
        return found


def lift(node: FunctionNode, mutated: Callable, definition: Callable) -> bool:
    """Rewrite the inner functions of a function that change its variables in place, and those of inner functions.

    Args:
        node: the function; it is changed.
        mutated: `(nodes) -> names` that they change in place.
        definition: `(function, name) -> node`: the `def` that alone binds a variable of a function.

    Returns:
        Whether there were any.
    """
    changed = False
    done: set[tuple[ast.AST, str]] = set()
    while True:
        top = _Nested(node, None)
        found = next(_found(top, mutated, definition, done), None)
        if found is None:
            return changed
        name, lifted, calls = found
        for function in lifted:
            inner: Any = function.node
            inner.args.kwonlyargs.append(ast.copy_location(ast.arg(name), inner))
            inner.args.kw_defaults.append(None)
        for call in calls:
            value = ast.copy_location(ast.Name(name, ast.Load()), call)
            call.keywords.append(ast.copy_location(ast.keyword(name, value), call))
        changed = True
        for part in ast.walk(node):
            for kept in KEPT_ON_NODES:
                part.__dict__.pop(kept, None)


def _found(
    top: _Nested, mutated: Callable, definition: Callable, done: set[tuple[ast.AST, str]]
) -> Iterator[tuple[str, list[_Nested], list[ast.Call]]]:
    """Variables that can be given as arguments: the name, the functions that take it, and their calls."""
    readers: dict[str, list[_Nested]] = {}
    for function in top.within():
        for name in dict.fromkeys(read for read, _ in function.loads):
            readers.setdefault(name, []).append(function)
    for owner in top.within():
        scope = scopes.analyse(owner.node)
        for name in sorted(scope.captured - scope.cells):
            if (owner.node, name) in done:
                continue
            done.add((owner.node, name))
            using = [f for f in readers.get(name, ()) if f is not owner and f.owner(name) is owner]
            if not any(name in mutated(scopes.body_of(f.node)) for f in using):
                continue
            taken = _taking(owner, using, definition)
            if taken is None or any(name in f.targets for f in owner.within()):
                continue
            lifted, calls = taken
            if _bound_before(owner.node, name, lifted):
                yield name, lifted, calls


def _taking(owner: _Nested, using: list[_Nested], definition: Callable) -> tuple[list[_Nested], list[ast.Call]] | None:
    """The functions that must take a variable of `owner` which some use, and all of their calls; None if that cannot be."""
    lifted: list[_Nested] = []
    calls: list[ast.Call] = []
    todo = list(using)
    while todo:
        function = todo.pop()
        if function in lifted:
            continue
        outer, node = function.outer, function.node
        if outer is None or not isinstance(node, ast.FunctionDef) or definition(outer.node, node.name) is not node:
            return None
        lifted.append(function)
        if outer is not owner:
            todo.append(outer)  # which has it only if it is given it
        for user in outer.within():
            for name, call in user.loads:
                if name != node.name or user.owner(name) is not outer:
                    continue
                if call is None:
                    return None
                calls.append(call)
                if user is not owner:
                    todo.append(user)
    return lifted, list(dict.fromkeys(calls))


def _bound_before(node: FunctionNode, name: str, lifted: list[_Nested]) -> bool:
    """Whether a variable is certainly bound where the functions are defined that take it."""
    if any(p.arg == name for p in scopes.parameters(node)):
        return True
    inside = {f.node for f in lifted}
    for stmt in scopes.body_of(node):
        if isinstance(stmt, ast.Assign | ast.AnnAssign) and getattr(stmt, "value", None) is not None:
            if name in scopes.bindings([stmt]):
                return True
        if any(part in inside for part in ast.walk(stmt)):
            return False
    return False
