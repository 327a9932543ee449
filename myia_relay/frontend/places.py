"""Variables through which an entry of another variable is changed are written as that entry.

    a = bodies[i]                      a = bodies[i]
    a["vx"] -= dt * f          =>      bodies[i]["vx"] -= dt * f

    for row in grid:                   for row_index in range(len(grid)):
        row[0] = 0             =>          grid[row_index][0] = 0

Compiled code has no references, so the change of an entry is one of the variable that holds it. Where a change would be refused
because something else sees the object, the syntax tree is rewritten, if it is certain which entry the name is wherever it is used:
each use comes after a binding in the same block, or is in the loop that binds it, and until then nothing else is bound to the
variable that holds the entry. What the entries are, names do not tell: `place_of` is put where the name was bound, with which
inference refuses what is no object of its own (numbers, the elements at positions of an array).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir import syntax
from .captured_changes import KEPT_ON_NODES
from .procedures import NEVER, Procedures, arguments_of, base_of_argument
from .text import scope as scopes
from .text.tree import FunctionNode, children, walk


class _Uncertain(Exception):
    """It is not certain which entry a variable is."""


@dataclass(eq=False)
class _Place:
    """The entry `base[i][j]` that a variable is bound to."""

    base: str
    indices: list[ast.expr]

    def text(self) -> str:
        """What tells it from other places."""
        return ast.dump(self.expr(ast.Name(self.base), ast.Load()))

    def expr(self, at: ast.AST, ctx: ast.expr_context, count: int | None = None) -> ast.expr:
        """The entry as an expression, or what holds it: with the first indices only."""
        indices = self.indices[:count]
        made: ast.expr = _at(at, ast.Name(self.base, ast.Load() if indices else ctx))
        for k, index in enumerate(indices, 1):
            inner = ctx if k == len(indices) else ast.Load()
            made = _at(at, ast.Subscript(made, copy.deepcopy(index), inner))
        return made


@dataclass(eq=False)
class _Binding:
    """Where a variable is bound to an entry.

    Attributes:
        block: the statements among which that is.
        stmt: the statement.
        names: the `Name` nodes there that are the variable.
        place: the entry.
        loop: whether it is the target of a loop.
        region: the statements in which the variable is this entry.
    """

    block: list[ast.stmt]
    stmt: ast.stmt
    names: list[ast.Name]
    place: _Place
    loop: bool = False
    region: list[ast.stmt] = field(default_factory=list)


def rewrite(root: FunctionNode, node: FunctionNode, name: str, procedures: Procedures) -> bool:
    """Write a variable as the entry that it is.

    Args:
        root: the outermost function around; what analyses keep on its nodes is forgotten.
        node: the function whose variable it is; it is changed.
        name: the variable.
        procedures: which calls change what.

    Returns:
        Whether it was.
    """
    if isinstance(node, ast.Lambda):
        return False
    try:
        _Rewriting(node, name, procedures).run()
    except _Uncertain:
        return False
    for part in ast.walk(root):
        for kept in KEPT_ON_NODES:
            part.__dict__.pop(kept, None)
    return True


def _at(at: ast.AST, made):
    """A new node at the place of another one."""
    return ast.copy_location(made, at)


class _Rewriting:
    """The rewriting of one variable of a function; nothing is changed before all is certain."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, procedures: Procedures):
        self.node, self.name, self.procedures = node, name, procedures
        scope = scopes.analyse(node)
        parameters = {p.arg for p in scopes.parameters(node)}
        if name not in scope.locals - parameters - scope.captured - scope.cells or name in scope.outer:
            raise _Uncertain
        self.scope = scope
        self.taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | parameters
        self.bindings: list[_Binding] = []

    def run(self) -> None:
        self.search(self.node.body)
        if not self.bindings:
            raise _Uncertain
        uses = self.uses()
        edits = [self.edit(b) for b in self.bindings]
        for one in self.bindings:
            for other in self.bindings:
                if self.meet(one, other) and one.place.text() != other.place.text():
                    raise _Uncertain
        replaced = []
        for use, inside in uses:
            around = [b for b in self.bindings if any(stmt in inside for stmt in b.region)]
            if not around:
                raise _Uncertain
            if any(other.place.text() != around[0].place.text() for other in around):
                raise _Uncertain
            place = around[0].place
            names = {place.base} | scopes.loads(place.indices)
            hidden = {n for c in inside if isinstance(c, scopes.COMPREHENSIONS) for n in _targets(c)}
            if not names.isdisjoint(hidden):
                raise _Uncertain
            replaced.append((use, place))
        for edit in edits:
            edit()
        by_use = dict(replaced)
        for part in ast.walk(self.node):
            for label, value in ast.iter_fields(part):
                if isinstance(value, ast.Name) and value in by_use:
                    setattr(part, label, self.as_entry(part, value, by_use[value]))
                elif isinstance(value, list):
                    value[:] = [
                        self.as_entry(part, v, by_use[v]) if isinstance(v, ast.Name) and v in by_use else v
                        for v in value
                    ]

    def as_entry(self, part: ast.AST, use: ast.Name, place: _Place) -> ast.expr:
        """The entry in the place of a use of the variable."""
        if isinstance(part, ast.AugAssign) and part.target is use:
            marked: ast.AST = part
            marked.__dict__["_of_entry"] = True
        return place.expr(use, use.ctx)

    # Where the variable is bound.

    def search(self, body: list[ast.stmt]) -> None:
        """Find the bindings in a block, and in what is nested in it.

        Raises:
            _Uncertain: it is not certain.
        """
        for stmt in body:
            own = [b for b in [self.binding(body, stmt)] if b is not None]
            self.bindings += own
            inner = [
                part for part in children(stmt) if not isinstance(part, ast.stmt | ast.match_case | ast.ExceptHandler)
            ]
            if not own and not isinstance(stmt, ast.AugAssign) and self.name in scopes.bindings(inner):
                raise _Uncertain
            for block in _blocks(stmt):
                self.search(block)

    def binding(self, body: list[ast.stmt], stmt: ast.stmt) -> _Binding | None:
        """The binding that a statement is.

        Raises:
            _Uncertain: it is not certain.
        """
        if isinstance(stmt, ast.For) and self.name in scopes.bindings([stmt.target]):
            return _Binding(body, stmt, _names(stmt.target, self.name), _Place("", []), True, stmt.body)
        if not isinstance(stmt, ast.Assign) or self.name not in scopes.bindings(stmt.targets):
            return None
        if len(stmt.targets) > 1:
            raise _Uncertain
        target, value = stmt.targets[0], stmt.value
        names = _names(target, self.name)
        if isinstance(target, ast.Name):
            place = _path(value)
        elif isinstance(target, ast.Tuple | ast.List) and len(names) == 1 and names[0] in target.elts:
            if any(isinstance(e, ast.Starred) for e in target.elts):
                raise _Uncertain
            k = target.elts.index(names[0])
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                place = _path(value.elts[k])
            else:
                place = _path(value)
                place.indices.append(_constant(value, k))
        else:
            raise _Uncertain
        found = _Binding(body, stmt, names, place)
        after = body[body.index(stmt) + 1 :]
        bound = [
            k for k, s in enumerate(after) if isinstance(s, ast.Assign) and self.name in scopes.bindings(s.targets)
        ]
        # What binds it again may still read it.
        after = after[: bound[0] + 1] if bound else after
        while after and not _names(after[-1], self.name):
            after.pop()
        found.region = after
        return found

    def uses(self) -> list[tuple[ast.Name, tuple[ast.AST, ...]]]:
        """The uses of the variable, each with all that is around it.

        Raises:
            _Uncertain: it is not certain.
        """
        bound = {n for b in self.bindings for n in b.names}
        out = []
        stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(stmt, ()) for stmt in self.node.body]
        while stack:
            part, around = stack.pop()
            if isinstance(part, ast.Name) and part.id == self.name and part not in bound:
                if isinstance(part.ctx, ast.Del):
                    raise _Uncertain
                out.append((part, around))
            if isinstance(part, scopes.COMPREHENSIONS) and self.name in _targets(part):
                raise _Uncertain
            if not isinstance(part, scopes.FUNCTIONS):
                stack += [(inner, (*around, part)) for inner in children(part)]
        return out

    @staticmethod
    def meet(one: _Binding, other: _Binding) -> bool:
        """Whether one of two bindings is in the region of the other."""
        return one is not other and (other.stmt in _within(one.region) or one.stmt in _within(other.region))

    # What a binding becomes.

    def edit(self, b: _Binding):
        """What changes the statement of a binding; makes its place certain."""
        if isinstance(b.stmt, ast.For):
            return self.edit_loop(b, b.stmt)
        arrays, grows = self.require_still(b, b.place.base, len(b.place.indices))
        again = any(self.meet(b, other) for other in self.bindings)
        before = self.pinned(b.stmt, b.place, b.region, grows or again, arrays)
        stmt, block = b.stmt, b.block
        assert isinstance(stmt, ast.Assign)
        target, value = stmt.targets[0], stmt.value

        def run() -> None:
            where = block.index(stmt)
            rest: list[ast.stmt] = []
            if isinstance(target, ast.Tuple | ast.List):
                target.elts[target.elts.index(b.names[0])] = _at(target, ast.Name(self.new("unused"), ast.Store()))
                rest = [stmt]
            block[where : where + 1] = [*rest, *before] if isinstance(value, ast.Tuple | ast.List) else [*before, *rest]

        return run

    def pinned(
        self, at: ast.AST, place: _Place, region: Sequence[ast.stmt], kept: bool, arrays: bool
    ) -> list[ast.stmt]:
        """The statements that evaluate the indices of a place and check it; its indices stay the same in a region afterwards.

        Args:
            at: where.
            place: the place; indices that may change become variables.
            region: the statements.
            kept: whether all indices become variables.
            arrays: whether what holds the entry must be an array.

        Raises:
            _Uncertain: it is not certain.
        """
        stored = scopes.bindings(region)
        out: list[ast.stmt] = []
        for k, index in enumerate(place.indices):
            whole = place.expr(at, ast.Load(), k)
            check = _at(at, ast.Call(_constant(at, syntax.place_of), [whole, index, _constant(at, arrays)], []))
            if not _is_still(index, stored) or kept and not _is_sliced(index):
                if _is_sliced(index):
                    raise _Uncertain
                name = self.new(f"{self.name}_index", k)
                out.append(_at(at, ast.Assign([_at(at, ast.Name(name, ast.Store()))], check)))
                place.indices[k] = _at(at, ast.Name(name, ast.Load()))
            else:
                out.append(_at(at, ast.Expr(check)))
        if not place.indices:
            check = _at(
                at,
                ast.Call(
                    _constant(at, syntax.place_of),
                    [place.expr(at, ast.Load()), _constant(at, None), _constant(at, False)],
                    [],
                ),
            )
            out.append(_at(at, ast.Expr(check)))
        return out

    def edit_loop(self, b: _Binding, stmt: ast.For):
        if len(b.names) != 1:
            raise _Uncertain
        first: list[ast.stmt] = []  # of the body
        before: list[ast.stmt] = []
        target, iterable = self.in_loop(b, stmt.target, stmt.iter, stmt, before, first)
        if _names(target, self.name):
            raise _Uncertain

        def run() -> None:
            stmt.target, stmt.iter = target, iterable
            stmt.body[:0] = first
            where = b.block.index(stmt)
            b.block[where:where] = before

        return run

    def in_loop(
        self, b: _Binding, target: ast.expr, iterable: ast.expr, stmt: ast.For, before: list, first: list
    ) -> tuple[ast.expr, ast.expr]:
        """Target and iterable of a loop that runs over the places instead of the entries.

        Args:
            b: the binding, which gets the place.
            target, iterable: of the loop, or parts of these that belong together.
            stmt: the loop.
            before: what has to run before it, extended.
            first: what has to run first in each iteration, extended.

        Raises:
            _Uncertain: it is not certain.
        """
        call, args, method = _called(iterable)
        if call in ("list", "tuple", "reversed", "iter") and len(args) == 1 and isinstance(target, ast.Name):
            inner_target, inner = self.in_loop(b, target, args[0], stmt, before, first)
            return inner_target, _call(iterable, reversed, inner) if call == "reversed" else inner
        if call in ("enumerate", "zip") and isinstance(target, ast.Tuple) and isinstance(iterable, ast.Call):
            elts = target.elts
            k = next((k for k, e in enumerate(elts) if _names(e, self.name)), 0)
            which = k - 1 if call == "enumerate" else k
            if len(elts) != (2 if call == "enumerate" else len(args)) or which < 0 or _is_starred([*elts, *args]):
                raise _Uncertain
            part, inner = self.in_loop(b, elts[k], args[which], stmt, before, first)
            made = _at(iterable, ast.Call(iterable.func, [*args[:which], inner, *args[which + 1 :]], iterable.keywords))
            return _at(target, ast.Tuple([*elts[:k], part, *elts[k + 1 :]], ast.Store())), made
        key: ast.expr | None = None
        if method == "items":
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[0], ast.Name):
                raise _Uncertain
            key, target = target.elts
        whole = _path(method_of(iterable) if method else iterable)
        sliced = whole.indices.pop() if whole.indices and _is_sliced(whole.indices[-1]) else None
        if method and sliced is not None:
            raise _Uncertain
        arrays, grows = self.require_still(b, whole.base, len(whole.indices) + 1)
        if grows:
            raise _Uncertain
        before += self.pinned(stmt, whole, [stmt, *stmt.body], False, False) if whole.indices else []
        if isinstance(key, ast.Name) and key.id not in scopes.bindings(stmt.body):
            index = key.id
        else:
            index = self.new(f"{self.name}_index", len(whole.indices))
            if isinstance(key, ast.Name):
                first.append(_at(key, ast.Assign([key], _at(key, ast.Name(index, ast.Load())))))
        b.place.base, b.place.indices = whole.base, [*whole.indices, _at(stmt, ast.Name(index, ast.Load()))]
        entry = b.place.expr(iterable, ast.Load())
        holder = whole.expr(iterable, ast.Load())
        check = [holder, _at(stmt, ast.Name(index, ast.Load())), _constant(stmt, arrays)]
        if isinstance(target, ast.Tuple | ast.List):
            name = b.names[0]
            if name not in target.elts or _is_starred(target.elts):
                raise _Uncertain
            k = target.elts.index(name)
            unused = _at(name, ast.Name(self.new("unused"), ast.Store()))
            parts = _at(target, ast.Tuple([*target.elts[:k], unused, *target.elts[k + 1 :]], ast.Store()))
            first.append(_at(target, ast.Assign([parts], entry)))
            b.place.indices.append(_constant(name, k))
            check = [entry, _constant(name, k), _constant(stmt, arrays)]
        elif not isinstance(target, ast.Name):
            raise _Uncertain
        place_of = _constant(stmt, syntax.place_of)
        first.append(_at(stmt, ast.Expr(_at(stmt, ast.Call(place_of, check, [])))))
        run_over = holder if method else _call(iterable, range, _call(iterable, len, holder))
        if sliced is not None:
            run_over = _at(iterable, ast.Subscript(run_over, sliced, ast.Load()))
        return _at(target, ast.Name(index, ast.Store())), run_over

    def new(self, name: str, k: int = 0) -> str:
        """A name for a new variable; the same one for the same index of all places."""
        made = name if not k else f"{name}{k + 1}"
        while made in self.taken:
            made += "_"
        if name == "unused":
            self.taken.add(made)
        return made

    # What must stay as it is.

    def require_still(self, b: _Binding, base: str, depth: int) -> tuple[bool, bool]:
        """Require that an entry so deep in a variable stays where it is in the region of a binding.

        Returns:
            Whether that is so of arrays only, and whether anything that holds it may grow.

        Raises:
            _Uncertain: it is not certain.
        """
        if base not in self.scope.locals or base in self.scope.cells or base == self.name:
            raise _Uncertain
        arrays = grows = False
        for part in _within(b.region):
            if isinstance(part, ast.Name) and part.id == base and not isinstance(part.ctx, ast.Load):
                grows = True  # `base += e`, or bound anew
            if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load) and _is(part, base):
                arrays |= _depth(part) <= depth and not isinstance(part.slice, ast.Tuple)
            if isinstance(part, ast.Call):
                changed = scopes.changed(part)
                if changed is not None and changed.id == base and isinstance(part.func, ast.Attribute):
                    within = _depth(part.func.value) < depth
                    grows |= within and part.func.attr in ("append", "extend")
                    arrays |= within and part.func.attr not in ("append", "extend")
                for argument in self.procedures.calls.get(part, ()):
                    given = arguments_of(part)[argument.position]
                    if base_of_argument(given) == base:
                        change = argument.change.below(_depth(given))
                        arrays |= min(change.replaced, *(level for level, _ in change.keys), NEVER) < depth
                        grows |= change.grown < min(depth, NEVER)
        targets = {id(part.target) for part in _within(b.region) if isinstance(part, ast.AugAssign)}
        for part in _within(b.region):
            if isinstance(part, ast.Name) and part.id == base and not isinstance(part.ctx, ast.Load):
                if id(part) not in targets:
                    raise _Uncertain
        return arrays, grows


def method_of(iterable: ast.expr) -> ast.expr:
    """The `d` of `d.items()`."""
    assert isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Attribute)
    return iterable.func.value


def _called(iterable: ast.expr) -> tuple[str, list[ast.expr], str]:
    """The name that an expression calls, the arguments; and `items` or `values`, if it calls one of these methods."""
    if not isinstance(iterable, ast.Call):
        return "", [], ""
    if isinstance(iterable.func, ast.Name):
        return iterable.func.id, iterable.args, ""
    named = isinstance(iterable.func, ast.Attribute) and iterable.func.attr in ("items", "values") and not iterable.args
    return "", [], iterable.func.attr if named and isinstance(iterable.func, ast.Attribute) else ""


def _call(at: ast.AST, function, *args: ast.expr) -> ast.Call:
    """A call of a builtin, whatever its name means here."""
    return _at(at, ast.Call(_constant(at, function), list(args), []))


def _constant(at: ast.AST, value: Any) -> ast.Constant:
    return ast.copy_location(ast.Constant(value), at)


def _is_starred(parts: Iterable[ast.AST]) -> bool:
    return any(isinstance(part, ast.Starred) for part in parts)


def _names(part: ast.AST, name: str) -> list[ast.Name]:
    """The nodes in a part of the tree that are a variable."""
    return [n for n in walk(part) if isinstance(n, ast.Name) and n.id == name]


def _targets(part: ast.AST) -> set[str]:
    """The names that a comprehension binds."""
    return {n.id for g in part.generators for n in walk(g.target) if isinstance(n, ast.Name)}  # type: ignore[attr-defined]


def _path(value: ast.expr) -> _Place:
    """The place that an expression `x[i][j]` names.

    Raises:
        _Uncertain: it is not certain.
    """
    indices: list[ast.expr] = []
    while isinstance(value, ast.Subscript):
        indices.insert(0, value.slice)
        value = value.value
    if not isinstance(value, ast.Name):
        raise _Uncertain
    return _Place(value.id, indices)


def _is(part: ast.AST, base: str) -> bool:
    """Whether a part is `base[i][j]...`."""
    whole = scopes.base_of(part)
    return isinstance(whole, ast.Name) and whole.id == base


def _depth(target: ast.AST) -> int:
    depth = 0
    while isinstance(target, ast.Subscript):
        depth, target = depth + 1, target.value
    return depth


def _is_sliced(index: ast.expr) -> bool:
    """Whether an index has slices."""
    return any(isinstance(part, ast.Slice) for part in (index, *getattr(index, "elts", ())))


def _is_still(index: ast.AST, stored: set[str]) -> bool:
    """Whether an index is the same whenever it is evaluated: it consists of constants and of variables that are not bound anew."""
    if isinstance(index, ast.Name):
        return index.id not in stored
    if isinstance(index, ast.Constant):
        return True
    plain = isinstance(index, ast.UnaryOp | ast.Slice | ast.Tuple)
    return plain and all(_is_still(part, stored) for part in children(index))


def _within(stmts: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Statements and all that is in them."""
    for stmt in stmts:
        yield from walk(stmt)


def _blocks(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement."""
    if isinstance(stmt, scopes.FUNCTIONS):
        return []
    blocks = [getattr(stmt, label, []) for label in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(stmt, "handlers", [])]
    return [*blocks, *(case.body for case in getattr(stmt, "cases", []))]
