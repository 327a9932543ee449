"""Assignments: names, unpacking, subscripts, and what must be refused because another name would see it."""

from __future__ import annotations

import ast
import operator

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node
from ..utils.errors import ParseError
from . import ownership
from .context import STATEMENTS, Context, handles
from .functions import annotation, closure
from .scope import appended


def bind(p: Context, name: str, value: Node, at: ast.AST) -> None:
    """Bind a variable."""
    kind = p.scope.outer.get(name)
    if kind == "global":
        raise p.refuse(
            f"'global {name}' cannot be assigned to: functions do not change globals; return the new value", at
        )
    if p.cell(name) is not None:
        p.put(name, value, at)
        return
    if kind == "nonlocal":
        raise p.refuse(
            f"'nonlocal {name}' cannot be assigned to: the function around is not compiled with this one; return the new value",
            at,
        )
    if name in p.scope.captured and name not in p.hidden:
        _check_captures(p, name, value, at)
    if isinstance(value, Apply) and value.name is None:
        value.name = name
    p.state.env[name] = value
    p.state.env.pop(f"$bound.{name}", None)


def _check_captures(p: Context, name: str, value: Node, at: ast.AST) -> None:
    """Rebinding a captured variable: an inner function that captured it would see the new value in Python.

    Ours has a pointer to the old one, which is the same thing only if it is not used any more. Where a live variable
    IS such a function, that is an error; where one may hold it, inference will know (`recapture`).
    """
    captured = p.captured_by.setdefault(name, [])
    if not captured and not p.loops:
        return
    values = [value]
    for other in sorted(p.here):
        node = p.state.env.get(other)
        if node is None or other == name:
            continue
        values.append(node)
        found = isinstance(node, Constant) and isinstance(node.value, Graph) and _captor(p, node.value, captured)
        if found:
            raise ParseError(
                f"'{name}' is rebound after the inner function '{found[0].name}' captured it, and '{other}' may "
                f"still be called; use another name, or pass the value as an argument",
                p.origin(at),
                (f"'{name}' is captured here", found[1]),
            )
    suspects = [node for node in values if not isinstance(node, Constant)]
    if suspects:
        p.apply(syntax.recapture, *suspects, at=at, attrs={"name": name, "graphs": captured})


def _captor(p: Context, graph: Graph, captured: list) -> tuple | None:
    """The entry of `captured` that a function is, or reaches through the functions it captures."""
    entries = {entry[0]: entry for entry in captured}
    seen, stack = set(), [graph]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        if top in entries:
            return entries[top]
        record = p.closures.get(top)
        for node in record.captured_values() if record else ():
            if isinstance(node, Constant) and isinstance(node.value, Graph):
                stack.append(node.value)
    return None


def bind_target(p: Context, target: ast.AST, value: Node) -> None:
    """Assign a value to a target of any form."""
    if isinstance(target, ast.Name):
        bind(p, target.id, value, target)
    elif isinstance(target, (ast.Tuple, ast.List)):
        stars = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        count = len(target.elts)
        before = stars[0] if stars else count
        attrs = {"before": before, "star": bool(stars), "after": count - before - 1 if stars else 0}
        parts = p.apply(syntax.unpack, value, at=target, attrs=attrs)
        elements = [p.apply(operator.getitem, parts, Constant(k), at=part) for k, part in enumerate(target.elts)]
        for part, element in zip(target.elts, elements, strict=True):
            bind_target(p, part.value if isinstance(part, ast.Starred) else part, element)
    elif isinstance(target, ast.Subscript):
        base = _changed_variable(p, target)
        old = p.load(base.id, base)
        change(p, base.id, target, syntax.setitem, old, p.expr(target.slice), value)
    elif isinstance(target, ast.Attribute):
        raise p.refuse(
            f"'.{target.attr}' cannot be assigned to: objects do not change; "
            f"write dataclasses.replace(object, {target.attr}=value)",
            target,
        )
    else:
        raise p.refuse(f"'{type(target).__name__}' cannot be assigned to", target)


def _changed_variable(p: Context, target: ast.Subscript) -> ast.Name:
    """The `x` of `x[i] = v`."""
    base = target.value
    if isinstance(base, ast.Name) and p.is_local(base.id):
        return base
    if isinstance(base, ast.Subscript):
        raise p.refuse("assignment to an element of an element is not part of the language; write x[i, j] = v", target)
    what = ast.unparse(base)
    raise p.refuse(
        f"'{what}' is not a local variable, so others would see the assignment; "
        f"write y = relay.at({what})[...].set(value)",
        target,
    )


def change(p: Context, name: str, at: ast.AST, op: syntax.Syntax, old: Node, *args: Node) -> None:
    """Rebind a variable to its value changed by `op`, refused where something else can see the old one."""

    def report(reason: str | None) -> None:
        if reason is None:
            return
        if op is syntax.list_append:
            advice = f"write {name} = [*{name}, value]"
        else:
            advice = f"write {name} = relay.at({name})[...].set(value), or change a copy"
        raise p.refuse(f"'{name}' cannot be changed in place: {reason}; {advice}", at)

    ownership.check(p, name, old, report)
    bind(p, name, p.apply(op, old, *args, at=at, attrs={"name": name}), at)


@handles(STATEMENTS, ast.Assign)
def assign(p: Context, stmt: ast.Assign) -> None:
    """`a = b = e`."""
    if isinstance(stmt.value, ast.Lambda) and isinstance(stmt.targets[0], ast.Name):
        # A lambda with a name may call itself by it, and refer to names that are bound later, as a `def` may.
        value: Node = closure(p, stmt.value, stmt.targets[0].id)
    else:
        value = p.expr(stmt.value)
    for target in stmt.targets:
        bind_target(p, target, value)


@handles(STATEMENTS, ast.AnnAssign)
def annotated(p: Context, stmt: ast.AnnAssign) -> None:
    """`x: T = e`; without a value only a declaration."""
    if stmt.value is None:
        return
    value = p.expr(stmt.value)
    if isinstance(stmt.target, ast.Name):
        note = annotation(p, stmt.annotation)
        value = p.apply(syntax.annotate, value, p.constant(note, stmt.annotation), at=stmt.value)
    bind_target(p, stmt.target, value)


@handles(STATEMENTS, ast.AugAssign)
def augmented(p: Context, stmt: ast.AugAssign) -> None:
    """`x += e`  =>  `x = iadd(x, e)`; `x[i] += e`  =>  `x = setitem(x, i, iadd(x[i], e))` with i evaluated once."""
    op = ownership.IN_PLACE[type(stmt.op)]
    target = stmt.target
    if isinstance(target, ast.Name):
        old = p.load(target.id, target)
        node = p.apply(op, old, p.expr(stmt.value), at=stmt)

        def report(reason: str | None) -> None:
            # Of numbers and tuples `+=` makes new ones; only for arrays and lists inference has to look at this.
            if reason is not None:
                node.attrs["shared"] = reason

        ownership.check(p, target.id, old, report)
        bind(p, target.id, node, target)
    elif isinstance(target, ast.Subscript):
        base = _changed_variable(p, target)
        old = p.load(base.id, base)
        index = p.expr(target.slice)
        element = p.apply(operator.getitem, old, index, at=target)
        value = p.apply(op, element, p.expr(stmt.value), at=stmt)
        change(p, base.id, target, syntax.setitem, old, index, value)
    else:
        bind_target(p, target, Constant(None))  # refused there


def append(p: Context, stmt: ast.Expr) -> bool:
    """`xs.append(v)` on a local variable  =>  `xs = list_append(xs, v)`. Returns whether the statement is one."""
    base = appended(stmt)
    if base is None or not p.is_local(base.id) or base.id in p.hidden:
        return False
    old = p.load(base.id, base)
    change(p, base.id, stmt.value, syntax.list_append, old, p.expr(stmt.value.args[0]))
    return True
