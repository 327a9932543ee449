"""Which variables are live after each statement.

Only variables that are bound inside a branch or loop and also read afterwards flow out of it. Otherwise a name that is
reused with another type further down ("t = 1" in one loop, "t = zeros(3)" in the next) would have to be joined although
nothing reads it.

The control-flow graph is built backwards in one pass. Sets are integers used as bit sets. A few rounds over the list
reach the fixpoint: the list is in backward order, so there are at most as many rounds as loops are nested, plus two.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ...utils.trampoline import Steps, run
from . import scope as scopes
from .tree import FunctionNode, children


class Liveness:
    """Live variables of one function.

    Args:
        node: the `def` or `lambda`.
        scope: its names.
        kept: variables that are needed when it returns.
    """

    def __init__(self, node: FunctionNode, scope: scopes.Scope, kept: Iterable[str] = ()):
        self._bits = {name: 1 << k for k, name in enumerate(sorted(scope.locals))}
        self._uses: list[int] = []
        self._kills: list[int] = []
        self._next: list[list[int]] = []
        self._after: dict[ast.AST, int] = {}
        self._main: dict[ast.AST, int] = {}
        self._head: dict[ast.AST, int] = {}
        self._bound: dict[ast.AST, int] = {}
        self.later: dict[ast.AST, set[str]] = {}
        self._captures = _captures_of_functions(node, scope)
        self._counts = _counts_of_functions(node)
        self._exit = self._point(self._set(kept))
        if not isinstance(node, ast.Lambda):
            run(self._block(node.body, self._exit, None, None))
        self._live = self._solve()

    def after(self, stmt: ast.AST) -> set[str]:
        """Variables that are live where control continues after a statement."""
        return self._names(self._live[self._after[stmt]]) if stmt in self._after else set()

    def during(self, stmt: ast.AST) -> set[str]:
        """Variables that are live after the parts that a statement evaluates itself: its expression, its test, its
        iterable.
        """
        if stmt not in self._main:
            return set()
        live = 0
        for k in self._next[self._main[stmt]]:
            live |= self._live[k]
        return self._names(live)

    def head(self, loop: ast.AST) -> set[str]:
        """Variables that are live before each iteration of a loop."""
        return self._names(self._live[self._head[loop]])

    def bound(self, part: ast.AST) -> set[str]:
        """Variables that are live after a `for` has bound its target, or a `case` its captures."""
        return self._names(self._live[self._bound[part]])

    def read_by(self, parts: Iterable[ast.AST]) -> set[str]:
        """Variables that expressions read."""
        return self._names(self._reads(parts))

    def _names(self, bits: int) -> set[str]:
        return {name for name, bit in self._bits.items() if bits & bit}

    def _set(self, names: Iterable[str]) -> int:
        bits = 0
        for name in names:
            bits |= self._bits.get(name, 0)
        return bits

    def _reads(self, parts: Iterable[ast.AST]) -> int:
        names = scopes.loads(parts)
        # Code that reads the name of an inner function may call it, and thereby reads what it captures.
        for name in list(names):
            names |= self._captures.get(name, set())
        return self._set(names)

    def _point(self, uses: int = 0, kills: int = 0, nexts: Iterable[int] = ()) -> int:
        self._uses.append(uses)
        self._kills.append(kills)
        self._next.append(list(nexts))
        return len(self._uses) - 1

    def _solve(self) -> list[int]:
        live = [0] * len(self._uses)
        changed = True
        while changed:
            changed = False
            for k, nexts in enumerate(self._next):
                out = 0
                for n in nexts:
                    out |= live[n]
                new = self._uses[k] | (out & ~self._kills[k])
                if new != live[k]:
                    live[k], changed = new, True
        return live

    def _block(self, stmts: list[ast.stmt], after: int, brk: int | None, cont: int | None) -> Steps:
        later: set[str] = set()
        for stmt in reversed(stmts):
            self._after[stmt] = after
            if isinstance(stmt, ast.FunctionDef):
                self.later[stmt] = set(later)
                if self._counts.get(stmt.name) == 1:
                    later.add(stmt.name)
            after = yield self._statement(stmt, after, brk, cont)
        return after

    def _statement(self, stmt: ast.stmt, after: int, brk: int | None, cont: int | None):
        if isinstance(stmt, ast.If):
            then = yield self._block(stmt.body, after, brk, cont)
            other = yield self._block(stmt.orelse, after, brk, cont)
            entry = main = self._point(self._reads([stmt.test]), 0, [then, other])
        elif isinstance(stmt, ast.While):
            other = yield self._block(stmt.orelse, after, brk, cont)
            entry = main = self._head[stmt] = self._point(self._reads([stmt.test]))
            body = yield self._block(stmt.body, main, after, main)
            self._next[main] = [body, other]
        elif isinstance(stmt, ast.For):
            other = yield self._block(stmt.orelse, after, brk, cont)
            head = self._head[stmt] = self._point()
            body = self._bound[stmt] = yield self._block(stmt.body, head, after, head)
            bind = self._point(self._reads([stmt.target]), self._set(scopes.bindings([stmt.target])), [body])
            self._next[head] = [bind, other]
            entry = main = self._point(self._reads([stmt.iter]), 0, [head])
        elif isinstance(stmt, ast.Match):
            entry = after
            for case in reversed(stmt.cases):
                body = yield self._block(case.body, after, brk, cont)
                if case.guard is not None:
                    body = self._point(self._reads([case.guard]), 0, [body, entry])
                self._bound[case] = body
                bind = self._point(0, self._set(scopes.bindings([case.pattern])), [body])
                entry = self._point(self._reads([case.pattern]), 0, [bind, entry])
            entry = main = self._point(self._reads([stmt.subject]), 0, [entry])
        elif isinstance(stmt, (ast.Return, ast.Raise)):
            entry = main = self._point(self._reads([stmt]), 0, [self._exit] if isinstance(stmt, ast.Return) else [])
        elif isinstance(stmt, (ast.Break, ast.Continue)):
            target = brk if isinstance(stmt, ast.Break) else cont
            entry = main = self._point(0, 0, [] if target is None else [target])
        elif isinstance(stmt, ast.FunctionDef):
            # A function defined further down in the same block is not read here: see `later`.
            reads = self._reads(scopes.outside_parts(stmt))
            reads |= self._set(scopes.free_names(stmt) - self.later[stmt] - {stmt.name})
            entry = main = self._point(reads, self._set([stmt.name]), [after])
        else:
            reads, kills = self._reads([stmt]), self._set(_certainly_bound(stmt))
            if isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Lambda):
                reads &= ~kills  # a lambda that calls itself by the name it is given
            entry = main = self._point(reads, kills, [after])
        self._main[stmt] = main
        return entry


def _certainly_bound(stmt: ast.stmt) -> set[str]:
    """Names that a simple statement certainly binds; a walrus may be in an operand that is skipped."""
    if isinstance(stmt, ast.Assign):
        return scopes.bindings(stmt.targets)
    if isinstance(stmt, ast.AugAssign) or (isinstance(stmt, ast.AnnAssign) and stmt.value is not None):
        return scopes.bindings([stmt.target])
    return set()


def _inner_functions(node: FunctionNode) -> list[tuple[str, FunctionNode]]:
    """Names and trees of the functions that are bound to a name by `def` or by assigning a lambda."""
    found: list[tuple[str, FunctionNode]] = []
    stack = list(scopes.body_of(node))
    while stack:
        part = stack.pop()
        if isinstance(part, scopes.FUNCTIONS):
            if not isinstance(part, ast.Lambda):
                found.append((part.name, part))
            continue
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Lambda):
            found.extend((t.id, part.value) for t in part.targets if isinstance(t, ast.Name))
        stack.extend(children(part))
    return found


def _captures_of_functions(node: FunctionNode, scope: scopes.Scope) -> dict[str, set[str]]:
    """Name of an inner `def` -> locals it captures, directly or through the inner functions that it calls."""
    captures: dict[str, set[str]] = {}
    for name, part in _inner_functions(node):
        captures.setdefault(name, set()).update(scopes.free_names(part) & scope.locals)
    changed = True
    while changed:
        changed = False
        for names in captures.values():
            size = len(names)
            for name in list(names):
                names |= captures.get(name, set())
            changed = changed or len(names) != size
    return captures


def _counts_of_functions(node: FunctionNode) -> dict[str, int]:
    """How often a name is bound by an inner `def`; 2 stands for "not by exactly one `def`"."""
    counts: dict[str, int] = {}
    for name, part in _inner_functions(node):
        counts[name] = counts.get(name, 0) + (1 if isinstance(part, ast.FunctionDef) else 2)
    return counts
