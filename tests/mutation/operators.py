"""Small faults: the mutants of a module, by its syntax tree.

A mutant is one edit of one place, of the kinds that people make: a boundary, a negation, a constant off by one, a condition that is
forgotten, operands the wrong way round. What cannot matter to anybody is left alone: annotations, docstrings, messages of errors,
`__repr__`, `__all__`, decorators, and plain numbers at the top of a module, which say how much effort is made.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

COMPARE = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
IDENTITIES = ("sorted", "reversed", "abs", "tuple", "list", "set", "frozenset")
COMMUTATIVE = {
    *TWINS, "EQ", "NE", "And", "Or", "Add", "Mul", "Min", "Max", "BitwiseXor", "BitwiseAnd", "BitwiseOr", "meet", "join",
    "add", "mul", "same",
    "union", "plus", "isinstance", "getattr", "hasattr", "zip", "swapaxes", "maximum", "minimum", "logical_and", "logical_or",
}  # fmt: skip
CONTEXT = 70  # characters before and behind what differs
TABLES = (ast.Tuple, ast.List, ast.Set)


@dataclass(frozen=True)
class Mutant:
    """One edit.

    Attributes:
        scope: the function it is in, with its classes; "" at the top of a module.
        operator: the kind of fault.
        line: where it is.
        before, after: the statement, or the head of a compound one.
        number: tells it from equal ones in the same scope.
        position: among all mutants of the module.
    """

    scope: str
    operator: str
    line: int
    before: str
    after: str
    number: int
    position: int

    def __str__(self) -> str:
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{self.scope or '<module>'}: {self.operator}: {self.after}{again}"


@dataclass
class _Site:
    """A place and what to put there, while a tree is walked."""

    scope: str
    statement: ast.stmt
    operator: str
    node: ast.AST
    edit: Callable[[], Callable[[], None]]  # makes the edit; returns what takes it back
    after: str = ""  # what stands there then, where that is not the statement


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of the text."""
    found, seen = [], Counter()
    tree = ast.parse(source)
    for position, site in enumerate(_Walk().sites(tree)):
        before = _head(site.statement)
        undo = site.edit()
        after = site.after or _head(site.statement)
        undo()
        if before == after:
            continue
        before, after = _around(before, after), _around(after, before)
        mutant = Mutant(site.scope, site.operator, getattr(site.node, "lineno", 0), before, after, 1, position)
        seen[str(mutant)] += 1
        found.append(replace(mutant, number=seen[str(mutant)]))
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The tree of a module with one fault."""
    tree = ast.parse(source)
    for position, site in enumerate(_Walk().sites(tree)):
        if position == mutant.position:
            site.edit()
            return ast.fix_missing_locations(tree)
    raise ValueError(f"no such mutant: {mutant}")


def _around(text: str, other: str) -> str:
    """What differs from another text, with some of what stands around it, where it is long."""
    if len(text) <= 2 * CONTEXT:
        return text
    first = len(os.path.commonprefix([text, other]))
    rest = len(os.path.commonprefix([text[first:][::-1], other[first:][::-1]]))
    begin, end = max(0, first - CONTEXT), min(len(text), len(text) - rest + CONTEXT)
    return f"{'...' * (begin > 0)}{text[begin:end]}{'...' * (end < len(text))}"


def _head(statement: ast.stmt) -> str:
    """The first lines of a statement: of a compound one what stands before its body."""
    fields = {f: [] for f in ("body", "orelse", "finalbody", "handlers", "decorator_list") if hasattr(statement, f)}
    if isinstance(statement, ast.Match):
        return f"match {ast.unparse(statement.subject)}"
    if not fields:
        return ast.unparse(statement)
    copy = type(statement)(**{**dict(ast.iter_fields(statement)), **fields})
    return ast.unparse(ast.fix_missing_locations(copy)).splitlines()[-1].rstrip(":")


def _set(owner: object, name: str, new: object) -> Callable[[], Callable[[], None]]:
    def edit():
        old = getattr(owner, name)
        setattr(owner, name, new)
        return lambda: setattr(owner, name, old)

    return edit


def _put(items: list, index: int, *new: object) -> Callable[[], Callable[[], None]]:
    def edit():
        old = items[index]
        items[index : index + 1] = new
        return lambda: items.__setitem__(slice(index, index + len(new)), [old])

    return edit


class _Walk:
    """The places of a tree, in order."""

    def __init__(self) -> None:
        self.firsts: set[ast.expr] = set()  # zeros that are the index of a first element

    def sites(self, tree: ast.Module) -> Iterator[_Site]:
        yield from self.block(tree.body, "")

    # --- statements ------------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], scope: str) -> Iterator[_Site]:
        for index, statement in enumerate(body):
            yield from self.statement(statement, body, index, scope)

    def statement(self, s: ast.stmt, body: list, index: int, scope: str) -> Iterator[_Site]:
        def site(operator, node, edit):
            return _Site(scope, s, operator, node, edit)

        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if s.name != "__repr__":
                yield from self.block(s.body, f"{scope}.{s.name}" if scope else s.name)
            return
        if isinstance(s, ast.Import | ast.ImportFrom | ast.Raise | ast.Assert | ast.Global | ast.Nonlocal | ast.Pass):
            return
        if _is_inert(s, scope):
            return
        if isinstance(s, ast.Break | ast.Continue):
            yield _Site(scope, s, "skip", s, _put(body, index, ast.copy_location(ast.Pass(), s)), "pass")
            return
        if isinstance(s, ast.Expr):
            if isinstance(s.value, ast.Call):
                yield site("drop call", s, _set(s, "value", ast.copy_location(ast.Constant(...), s)))
        elif isinstance(s, ast.Assign) and scope and not isinstance(s.targets[0], ast.Name | ast.Tuple):
            target = ast.copy_location(ast.Name("_", ast.Store()), s)
            yield site("drop assignment", s, _set(s, "targets", [target]))
        elif isinstance(s, ast.AugAssign):
            other = ARITHMETIC.get(type(s.op))
            if other:
                yield site("arithmetic", s, _set(s, "op", other()))
        elif isinstance(s, ast.Return):
            if s.value is not None and not _is_none(s.value) and not _is_false(s.value):
                yield site("return None", s, _set(s, "value", None))
        elif isinstance(s, ast.If | ast.While):
            raises = len(s.body) == 1 and isinstance(s.body[0], ast.Raise)
            for value in (False,) if isinstance(s, ast.While) else (True, False):
                if not (raises and value):
                    yield site("condition", s, _set(s, "test", ast.copy_location(ast.Constant(value), s.test)))
        for name, value in ast.iter_fields(s):
            if isinstance(value, ast.expr) and name not in ("annotation",) and not (name == "target" and scope):
                yield from self.expression(value, s, scope, _set_later(s, name))
            elif isinstance(value, list):
                for k, item in enumerate(value):
                    if isinstance(item, ast.expr) and name != "targets":
                        yield from self.expression(item, s, scope, _put_later(value, k))
                    elif isinstance(item, ast.withitem):
                        yield from self.expression(item.context_expr, s, scope, _set_later(item, "context_expr"))
        for name in ("body", "orelse", "finalbody"):
            yield from self.block(getattr(s, name, None) or [], scope)
        for handler in getattr(s, "handlers", ()):
            yield from self.block(handler.body, scope)
        for case in getattr(s, "cases", ()):
            yield from self.block(case.body, scope)

    # --- expressions -----------------------------------------------------------------------------------------------------

    def expression(self, e: ast.expr, s: ast.stmt, scope: str, put: Callable) -> Iterator[_Site]:
        """The places in an expression; `put(new)` is the edit that puts another one in its place."""

        def site(operator, edit, node=e):
            return _Site(scope, s, operator, node, edit)

        if isinstance(e, ast.JoinedStr | ast.Lambda) and not isinstance(e, ast.Lambda):
            return
        if isinstance(e, ast.Compare):
            for k, op in enumerate(e.ops):
                for other in COMPARE.get(type(op), ()):
                    yield site("compare", _put(e.ops, k, other()))
                if isinstance(op, ast.In | ast.NotIn) and isinstance(e.comparators[k], TABLES):
                    yield from self.entries(e.comparators[k].elts, site)
        elif isinstance(e, ast.BoolOp):
            other = ast.Or() if isinstance(e.op, ast.And) else ast.And()
            yield site("and/or", _set(e, "op", other))
            for k, value in enumerate(e.values):
                rest = [v for v in e.values if v is not value]
                if len(rest) > 1:
                    yield site("drop operand", _put(e.values, k))
                else:
                    yield site("drop operand", put(rest[0]))
        elif isinstance(e, ast.UnaryOp):
            if isinstance(e.op, ast.Not | ast.USub | ast.Invert):
                yield site("drop not" if isinstance(e.op, ast.Not) else "drop sign", put(e.operand))
        elif isinstance(e, ast.BinOp):
            other = ARITHMETIC.get(type(e.op))
            if other and not _has_text(e):
                yield site("arithmetic", _set(e, "op", other()))
        elif isinstance(e, ast.IfExp):
            yield site("other branch", put(e.body))
            yield site("other branch", put(e.orelse))
        elif isinstance(e, ast.Constant):
            if isinstance(e.value, bool):
                yield site("constant", put(ast.copy_location(ast.Constant(not e.value), e)))
            elif isinstance(e.value, int | float):
                for step in (1,) if e in self.firsts else (1, -1):
                    yield site("constant", put(ast.copy_location(ast.Constant(e.value + step), e)))
        elif isinstance(e, ast.Call):
            yield from self.call(e, site, put)
        elif isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Constant) and e.slice.value == 0:
            self.firsts.add(e.slice)  # the last one instead of the first is often the second
        elif isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Slice):
            for end in ("lower", "upper"):
                if getattr(e.slice, end) is not None:
                    yield site("slice", _set(e.slice, end, None))
        elif isinstance(e, ast.Dict) and len(e.keys) > 1:
            for k in range(len(e.keys)):
                yield site("drop entry", _both(_put(e.keys, k), _put(e.values, k)))
        elif isinstance(e, ast.Set) or (isinstance(e, TABLES) and not scope):
            yield from self.entries(e.elts, site)
        elif isinstance(e, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for comprehension in e.generators:
                for k in range(len(comprehension.ifs)):
                    yield site("drop filter", _put(comprehension.ifs, k))
        yield from self.children(e, s, scope)

    def children(self, e: ast.expr, s: ast.stmt, scope: str) -> Iterator[_Site]:
        for name, value in ast.iter_fields(e):
            if isinstance(value, ast.Slice):
                for end, bound in ast.iter_fields(value):
                    if bound is not None:
                        yield from self.expression(bound, s, scope, _set_later(value, end))
            elif isinstance(value, ast.expr):
                yield from self.expression(value, s, scope, _set_later(e, name))
            elif isinstance(value, list):
                for k, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield from self.expression(item, s, scope, _put_later(value, k))
                    elif isinstance(item, ast.keyword) and item.arg != "strict":  # an assertion
                        yield from self.expression(item.value, s, scope, _set_later(item, "value"))
                    elif isinstance(item, ast.comprehension):
                        yield from self.expression(item.iter, s, scope, _set_later(item, "iter"))
                        for j, test in enumerate(item.ifs):
                            yield from self.expression(test, s, scope, _put_later(item.ifs, j))

    def entries(self, items: list, site: Callable) -> Iterator[_Site]:
        """Each entry of a table is forgotten once."""
        if len(items) > 1:
            for k in range(len(items)):
                yield site("drop entry", _put(items, k))

    def call(self, e: ast.Call, site: Callable, put: Callable) -> Iterator[_Site]:
        name = e.func.id if isinstance(e.func, ast.Name) else ""
        if name in TWINS:
            yield site("twin", _set(e, "func", ast.copy_location(ast.Name(TWINS[name], ast.Load()), e.func)))
        elif name in IDENTITIES and len(e.args) == 1 and not isinstance(e.args[0], ast.Starred | ast.GeneratorExp):
            yield site("drop call", put(e.args[0]))
        if len(e.args) > 1 and not any(isinstance(a, ast.Starred) for a in e.args[:2]):
            a, b = e.args[:2]
            called = name or getattr(e.func, "attr", "") or _entry(e.func)
            if called not in COMMUTATIVE and ast.dump(a) != ast.dump(b):
                yield site("swap arguments", _both(_put(e.args, 0, b), _put(e.args, 1, a)))
        for k, arg in enumerate(e.args):
            if isinstance(arg, ast.Starred) and len(e.args) > 1:
                yield site("drop entry", _put(e.args, k))
        for k, keyword in enumerate(e.keywords):
            if keyword.arg not in (None, "strict") and isinstance(keyword.value, ast.Constant):
                yield site("drop keyword", _put(e.keywords, k))


def _set_later(owner: object, name: str) -> Callable:
    return lambda new: _set(owner, name, new)


def _put_later(items: list, index: int) -> Callable:
    return lambda new: _put(items, index, new)


def _both(*edits: Callable) -> Callable[[], Callable[[], None]]:
    def edit():
        undos = [e() for e in edits]

        def undo():
            for u in reversed(undos):
                u()

        return undo

    return edit


def _is_none(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value is None


def _is_false(e: ast.expr) -> bool:
    """False, for which None does as well."""
    return isinstance(e, ast.Constant) and e.value is False


def _has_text(e: ast.BinOp) -> bool:
    """Whether it plainly is about strings."""
    texts = (x for x in (e.left, e.right) if isinstance(x, ast.JoinedStr | ast.Constant))
    return any(isinstance(x, ast.JoinedStr) or isinstance(x.value, str) for x in texts)


def _entry(e: ast.expr) -> str:
    """The key of an entry of a table: `add` of `REGISTRY["add"]`."""
    key = e.slice if isinstance(e, ast.Subscript) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _is_type(e: ast.expr) -> bool:
    """Whether it is a type with arguments, to be given a name."""
    return (
        isinstance(e, ast.Subscript)
        and isinstance(e.value, ast.Name)
        and e.value.id in ("tuple", "dict", "list", "Callable")
    )


def _is_inert(s: ast.stmt, scope: str) -> bool:
    """Whether a statement says nothing that can be wrong: docstrings, `__all__`, limits of effort, annotations."""
    if isinstance(s, ast.Expr):
        return isinstance(s.value, ast.Constant)
    if isinstance(s, ast.If) and isinstance(s.test, ast.Name) and s.test.id == "TYPE_CHECKING":
        return True
    if isinstance(s, ast.AnnAssign) and s.value is None:
        return True
    if isinstance(s, ast.Assign) and not scope and isinstance(s.targets[0], ast.Name):
        return s.targets[0].id in ("__all__", "__slots__") or isinstance(s.value, ast.Constant) or _is_type(s.value)
    return isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id == "__slots__"
