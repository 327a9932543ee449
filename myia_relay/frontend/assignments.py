"""Assignments: names, unpacking, subscripts, and the refusal of changes that another name would see."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Sequence

import numpy as np

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node
from ..library.in_place import set_shape
from . import ownership
from .context import STATEMENTS, ParseContext, handles
from .entries import changed_variable, indices_of, note_entry, note_holders, put_back, taken
from .functions import annotation, closure, note_refusal, triangular
from .objects import IN_PLACE, applies, row_of_array
from .procedures import keep_added
from .text import scope as scopes
from .text.scope import appended


def bind(p: ParseContext, name: str, value: Node, at: ast.AST) -> None:
    """Bind a variable."""
    kind = p.scope.outer.get(name)
    if kind == "global":
        error = p.refuse(
            f"'global {name}' cannot be assigned to: functions do not change globals; return the new value", at
        )
        declared = next((n for n in ast.walk(p.node) if isinstance(n, ast.Global) and name in n.names), None)
        if declared is not None:
            error.notes.append((f"'{name}' is declared global here", p.origin(declared).loc))
        raise error
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


def _check_captures(p: ParseContext, name: str, value: Node, at: ast.AST) -> None:
    """Handle the rebinding of a captured variable: an inner function that captured it must see the new value.

    Ours has a pointer to the old one, which is the same thing only if it is not used any more. Where a live variable IS such a
    function, the variable becomes a cell; where one may hold it, inference will know (`recapture`).

    Raises:
        NeedsCell: for a function to be parsed again.
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
        if isinstance(node, Constant) and isinstance(node.value, Graph) and _captures(p, node.value, captured):
            raise scopes.NeedsCell(p.scope.cells, name)
    suspects = [node for node in values if not isinstance(node, Constant)]
    if suspects:
        attrs = {"name": name, "graphs": captured, "again": remedy(p, p.scope.cells, name)}
        p.apply(syntax.recapture, *suspects, at=at, attrs=attrs)


def remedy(p: ParseContext, cells: set[str], name: str) -> syntax.Again:
    """Make a variable a cell when the function is parsed again."""

    def again() -> None:
        cells.add(name)
        outermost = p
        while outermost.outer is not None:
            outermost = outermost.outer
        outermost.root.flags["stale"] = True

    return syntax.Again(again)


def _captures(p: ParseContext, graph: Graph, captured: list) -> bool:
    """Whether a function is one of those in `captured`, or reaches one through the functions it captures."""
    graphs = {graph for graph, _ in captured}
    seen, stack = set(), [graph]
    while stack:
        top = stack.pop()
        if top in graphs:
            return True
        if top in seen:
            continue
        seen.add(top)
        record = p.closures.get(top)
        for node in record.captured_values() if record else ():
            if isinstance(node, Constant) and isinstance(node.value, Graph):
                stack.append(node.value)
    return False


def bind_target(p: ParseContext, target: ast.AST, value: Node, source: ast.AST | None = None) -> None:
    """Assign a value to a target of any form.

    Args:
        p: the function.
        target: the target.
        value: the value.
        source: what it is the value of, as it is written; the target itself if that is not told.
    """
    source = source or target
    if isinstance(target, ast.Name):
        bind(p, target.id, value, target)
    elif isinstance(target, (ast.Tuple, ast.List)):
        stars = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        count = len(target.elts)
        if not stars and (elements := _written_out(value, count)) is not None:
            shown = (
                source.elts
                if isinstance(source, ast.Tuple | ast.List) and len(source.elts) == count
                else [source] * count
            )
            _bind_each(p, target.elts, elements, shown)
            return
        before = stars[0] if stars else count
        attrs = {"before": before, "star": bool(stars), "after": count - before - 1 if stars else 0}
        parts = p.apply(syntax.unpack, value, at=target, attrs=attrs)
        elements = [p.apply(operator.getitem, parts, Constant(k), at=part) for k, part in enumerate(target.elts)]
        plain = [part.value if isinstance(part, ast.Starred) else part for part in target.elts]
        _bind_each(p, plain, elements, [source] * count)
    elif isinstance(target, ast.Subscript):
        base, before = changed_variable(p, target), len(p.waiting)
        if base.id in scopes.bindings([target]):
            raise p.refuse(READ_BEFORE.format(name=base.id), target)
        p.waiting.append((source, value))
        indices = indices_of(p, target)
        p.used(before)
        levels = taken(p, target, p.load(base.id, base), indices[:-1])
        new = put_back(p, target, levels, indices, value)
        attrs: dict[str, object] = {"back": len(indices) > 1}
        change(p, base.id, target, syntax.setitem, levels[0], indices[0], new, stored=(value,), attrs=attrs)
    elif (base := scopes.reshaped_array(target)) is not None and p.is_local(base.id):
        change(p, base.id, target, syntax.change_array, p.load(base.id, base), Constant(set_shape), value)
    elif isinstance(target, ast.Attribute):
        of = ast.unparse(target.value)
        bound_to = f"{of} = " if isinstance(target.value, ast.Name) and of != "self" else ""
        advice = f"write {bound_to}dataclasses.replace({of}, {target.attr}=value)"
        if target.attr == "requires_grad":
            advice = f"name what to differentiate by: relay.grad(f, {of!r})"
        raise p.refuse(f"'.{target.attr}' cannot be assigned to: objects do not change; {advice}", target)
    else:
        raise p.refuse(f"'{type(target).__name__}' cannot be assigned to", target)


def _bind_each(p: ParseContext, targets: Sequence[ast.AST], values: Sequence[Node], sources: Sequence[ast.AST]) -> None:
    """Assign values to targets, one after the other. Those for later targets wait; if they are (parts of) a variable that is
    changed meanwhile, they show it:

        x[i], x[j] = x[j], x[i]     =>     v, w = x[j], x[i];  x = setitem(x, i, v);  x = setitem(x, j, read_again(w, x, i))
    """
    before, rest = len(p.waiting), list(zip(sources, values, strict=True))
    for target in targets:
        (source, value), *rest = rest
        base = scopes.base_of(target) if isinstance(target, ast.Subscript) else None
        name = base.id if isinstance(base, ast.Name) and p.is_local(base.id) and p.cell(base.id) is None else ""
        old = p.state.env.get(name)
        p.read_again = {v for _, v in rest if _is_read_of(v, old)}
        p.waiting += rest
        bind_target(p, target, value, source)
        p.used(before)
        p.read_again = set()
        new = p.state.env.get(name)
        if old is not None and new is not None and new is not old:
            rest = [(source, _read_again(p, v, old, new)) for source, v in rest]


def _is_read_of(value: Node, x: Node | None) -> bool:
    """Whether a value is written as `x`, `x[i]`, `x[i][j]`, ..., and was perhaps read again."""
    while value is not x and applies(value, (operator.getitem, syntax.read_again)):
        value = value.args[-2]
    return value is x


def _read_again(p: ParseContext, value: Node, old: Node, new: Node) -> Node:
    """A value that is written as `old`, `old[i]`, ..., after `old` has become `new`; any other value as it is."""
    if value is old:
        return new
    if not _is_read_of(value, old):
        return value
    assert isinstance(value, Apply)
    *_, whole, index = value.args
    return p.apply(syntax.read_again, value, _read_again(p, whole, old, new), index, at=value.origin)


def _written_out(value: Node, count: int) -> tuple[Node, ...] | None:
    """The elements of a display `a, b` of the given length; its elements are unrelated objects."""
    if not isinstance(value, Apply) or not isinstance(value.fn, Constant) or len(value.args) != count:
        return None
    if value.fn.value not in (syntax.make_tuple, syntax.make_list):
        return None
    stars = any(isinstance(a, Apply) and isinstance(a.fn, Constant) and a.fn.value is syntax.star for a in value.args)
    return None if stars else value.args


def change(
    p: ParseContext,
    name: str,
    at: ast.AST,
    op: syntax.Syntax,
    old: Node,
    *args: Node,
    keywords: tuple[str, ...] = (),
    stored: Sequence[Node] = (),
    attrs: dict[str, object] | None = None,
) -> None:
    """Rebind a variable to its value changed by `op`; refused if something else can see the old value.

    Args:
        p: the function.
        name: the variable.
        at: where it is changed.
        op: how.
        old: its value.
        *args: what else `op` takes.
        keywords: the names of the last of these.
        stored: what is put into it.
        attrs: of the operation.
    """
    node = p.apply(op, old, *args, at=at, attrs={"name": name, **(attrs or {})}, keywords=keywords)

    if op is syntax.list_append:
        advice = f"write {name} = [*{name}, value], or copy it before: {name} = {name}.copy()"
    elif isinstance(at, ast.Subscript) and isinstance(key := getattr(at.slice, "value", None), str):
        advice = f"write {name} = {{**{name}, {key!r}: value}}, or copy it before: {name} = {name}.copy()"
    else:
        advice = f"write {name} = relay.at({name})[...].set(value), or change a copy: {name} = {name}.copy()"

    def refusal(reason: str) -> str:
        return f"'{name}' cannot be changed in place: {reason}; {advice}"

    note_refusal(p, name, node, lambda kind: refusal(ownership.OF_THE_CALLER.format(name=name)), at)
    note_entry(p, name, node)

    def report(reasons: list[ownership.Conflict]) -> None:
        node.attrs["shared"] = noted = []
        reshaped = args and isinstance(function := args[0], Constant) and function.value is set_shape
        for conflict in reasons:
            other, kinds = conflict.other, conflict.kinds
            if kinds == ownership.ARRAYS and (reshaped or op is syntax.list_append):
                continue  # what shares memory with an array does not get its shape
            if other is not None and reshaped and _are_rows(p, old, other):
                continue
            message = refusal(conflict.reason)
            if other is None and kinds == ownership.KINDS and conflict.confirm is None:
                problem = p.refuse(message, at)
                problem.another = functools.partial(node.attrs["another"], conflict.variable)
                raise problem
            noted.append(conflict._replace(reason=message))

    ownership.check(p, name, old, report, stored=stored)
    bind(p, name, node, at)


def _are_rows(p: ParseContext, one: Node, other: Node) -> bool:
    """Whether two values are different rows of one array, or rows of two."""
    first, second = row_of_array(p, one), row_of_array(p, other)
    return first is not None and second is not None and first != second


def change_list(
    p: ParseContext, call: ast.AST, base: ast.Name, method: str, args: list[Node], keywords: tuple[str, ...] = ()
) -> Node:
    """A call of a method that changes a list: binds the variable to the list afterwards, and returns what the method
    returns.
    """
    name = base.id
    old = p.load(name, base)
    pair, new, result = _changed_by(p, call, method, name, old, args, keywords)

    advice = {
        "sort": f"write {name} = sorted({name})",
        "reverse": f"write {name} = {name}[::-1]",
        "append": f"write {name} = [*{name}, value]",
    }.get(method, f"change a copy of it: {name} = {name}.copy()")

    def refusal(reason: str) -> str:
        return f"'{name}' cannot be changed in place: {reason}; {advice}"

    note_refusal(p, name, pair, lambda kind: refusal(ownership.OF_THE_CALLER.format(name=name)), call)
    note_entry(p, name, pair)

    def report(reasons: list[ownership.Conflict]) -> None:
        pair.attrs["shared"] = [r._replace(reason=refusal(r.reason)) for r in reasons]

    ownership.check(p, name, old, report, stored=ownership.put_in(method, args))
    bind(p, name, new, base)
    return result


def change_entry(p: ParseContext, call: ast.Call, base: ast.Name) -> Node:
    """A method that changes a list, called on an entry (`x[i].append(v)`): the entry is taken out, changed, and put back."""
    method, name = call.func, base.id
    assert isinstance(method, ast.Attribute) and isinstance(method.value, ast.Subscript)
    target = method.value
    parts = [*call.args, *[k.value for k in call.keywords]]
    if name in p.procedures.mutated(parts) | scopes.bindings(parts):
        raise p.refuse(READ_BEFORE.format(name=name), call)
    old = p.load(name, base)
    indices = indices_of(p, target)
    *levels, entry = taken(p, target, old, indices)
    before = len(p.waiting)
    args = [p.expr(part) for part in parts]
    p.used(before)
    _, new, result = _changed_by(
        p, call, method.attr, ast.unparse(target), entry, args, tuple(k.arg for k in call.keywords)
    )
    back = put_back(p, target, levels, indices, new)
    stored = ownership.put_in(method.attr, args)
    change(p, name, call, syntax.setitem, levels[0], indices[0], back, stored=stored, attrs={"back": True})
    return result


def _changed_by(
    p: ParseContext, call: ast.AST, method: str, name: str, old: Node, args: list[Node], keywords
) -> tuple[Apply, Node, Node]:
    """A method that changes a list: the operation, the list afterwards, and what the method returns."""
    attrs = {"name": name, "method": method, "shared": ()}
    pair = p.apply(syntax.list_change, old, *args, at=call, attrs=attrs, keywords=keywords)
    new = p.apply(operator.getitem, pair, Constant(0), at=call)
    p.flows[new] = (old,)
    p.extended[new] = (
        tuple(args[-1:]) if method in ("insert", "append") else (),
        tuple(args) if method == "extend" else (),
    )
    result = p.apply(operator.getitem, pair, Constant(1), at=call)
    p.items[result] = old
    return pair, new, result


_ADDED = (
    f"this changes the {{kind}} in place, and {ownership.OF_THE_CALLER}; write x = x + y, which makes a new {{kind}}"
)
READ_BEFORE = (
    "'{name}' is changed or bound in a part of a statement that also reads it, and what that sees depends on the order; "
    "write two statements, or copy it before: {name} = {name}.copy()"
)


@handles(STATEMENTS, ast.Delete)
def delete(p: ParseContext, stmt: ast.Delete) -> None:
    """`del xs[i]` of a local list."""
    for target in stmt.targets:
        if (
            not isinstance(target, ast.Subscript)
            or not isinstance(target.value, ast.Name)
            or not p.is_local(target.value.id)
        ):
            raise p.refuse(
                "'del' is not part of the language but for entries of a local list: variables end with their function; "
                "use another name instead",
                stmt,
            )
        index = p.expr(target.slice)
        p.used(0)
        change_list(p, target, target.value, "__delitem__", [index])


@handles(STATEMENTS, ast.Assign)
def assign(p: ParseContext, stmt: ast.Assign) -> None:
    """`a = b = e`."""
    if isinstance(stmt.value, ast.Lambda) and isinstance(stmt.targets[0], ast.Name):
        # A lambda that is assigned to a name may call itself by it and refer to names that are bound later, as a `def`
        # may.
        value: Node = closure(p, stmt.value, stmt.targets[0].id)
    elif isinstance(stmt.value, ast.GeneratorExp) and isinstance(stmt.targets[0], ast.Tuple | ast.List):
        value = p.expr(_as_list(stmt, stmt.value))  # unpacking takes all of it before it binds anything
        if len(stmt.targets) > 1:  # the second target would find nothing
            raise p.refuse("a generator expression can be unpacked once; write a list comprehension in brackets", stmt)
    else:
        value = p.looked_up(stmt.value)
    p.used(0)
    for target in stmt.targets:
        if target is not stmt.targets[-1]:
            p.waiting.append((stmt.value, value))
        bind_target(p, target, value, stmt.value)
        p.used(0)


def _as_list(stmt: ast.Assign, value: ast.GeneratorExp) -> ast.ListComp:
    """A generator expression as the list of what it yields; the same object each time that the function is parsed."""
    made = stmt.__dict__.get("_listed")
    if made is None:
        made = stmt.__dict__["_listed"] = ast.copy_location(ast.ListComp(value.elt, value.generators), value)
    return made


@handles(STATEMENTS, ast.AnnAssign)
def annotated(p: ParseContext, stmt: ast.AnnAssign) -> None:
    """`x: T = e`; without a value only a declaration."""
    if stmt.value is None:
        return
    value = p.looked_up(stmt.value)
    if isinstance(stmt.target, ast.Name):
        note = annotation(p, stmt.annotation)
        value = p.apply(syntax.annotate, value, p.constant(note, stmt.annotation), at=stmt.value)
        value = triangular(p, value, note, stmt.annotation)
    p.used(0)
    bind_target(p, stmt.target, value, stmt.value)


@handles(STATEMENTS, ast.AugAssign)
def augmented(p: ParseContext, stmt: ast.AugAssign) -> None:
    """`x += e`  =>  `x = iadd(x, e)`; `x[i] += e`  =>  `x = setitem(x, i, iadd(item_to_change(x, i), e))`."""
    op = IN_PLACE[type(stmt.op)]
    target, base = stmt.target, scopes.base_of(stmt.target)
    changed = p.procedures.mutated([stmt.value]) | (
        scopes.bindings([stmt.value]) if isinstance(target, ast.Subscript) else set()
    )
    if isinstance(base, ast.Name) and base.id in changed:
        raise p.refuse(READ_BEFORE.format(name=base.id), stmt)
    if isinstance(target, ast.Name):
        old = p.load(target.id, target)
        p.used(0, target, old)
        node = p.apply(op, old, p.expr(stmt.value), at=stmt)
        p.used(0)

        def report(reasons: list[ownership.Conflict]) -> None:
            # `+=` on numbers and tuples makes new ones; only for arrays and lists inference has to check this.
            if reasons:
                node.attrs["shared"] = reasons

        if target.id in p.procedures.added(p.node) and target.id not in p.kept:
            node.attrs["name"] = target.id
            node.attrs["again"] = syntax.Again(lambda: keep_added(p.node, target.id))
        note_refusal(p, target.id, node, lambda kind: _ADDED.format(name=target.id, kind=kind), stmt)
        note_entry(p, target.id, node)
        ownership.check(p, target.id, old, report, stored=ownership.put_in("extend", node.args[1:]))
        bind(p, target.id, node, target)
    elif isinstance(target, ast.Subscript):
        base = changed_variable(p, target)
        old = p.load(base.id, base)
        indices = indices_of(p, target)
        levels = taken(p, target, old, indices[:-1])
        element = p.apply(syntax.item_to_change, levels[-1], indices[-1], at=target)
        note_holders(p, target, element, levels[-1], element)
        p.used(0, target, element)
        value = p.apply(op, element, p.expr(stmt.value), at=stmt)
        p.used(0)
        back = put_back(p, target, levels, indices, value)
        stored = ownership.put_in("extend", value.args[1:])
        attrs: dict[str, object] = {"back": len(indices) > 1 or "_of_entry" in stmt.__dict__}
        change(p, base.id, target, syntax.setitem, levels[0], indices[0], back, stored=stored, attrs=attrs)
    else:
        bind_target(p, target, Constant(None))  # refused there


def append(p: ParseContext, stmt: ast.Expr) -> bool:
    """`xs.append(v)` on a local variable  =>  `xs = list_append(xs, v)`. Returns whether the statement is one."""
    base = appended(stmt)
    if base is None or not p.is_local(base.id) or base.id in p.hidden:
        return False
    p.load(base.id, base)
    assert isinstance(stmt.value, ast.Call)
    value = p.expr(stmt.value.args[0])
    p.used(0)
    change(p, base.id, stmt.value, syntax.list_append, p.load(base.id, base), value, stored=(value,))
    return True


METHODS = {name: getattr(np.ndarray, name) for name in scopes.CHANGING_METHODS}


def update_array(p: ParseContext, stmt: ast.Expr) -> bool:
    """`np.add.at(x, i, v)`  =>  `x = update_at(x, i, v, np.add)`; `np.copyto(x, y)`  =>  `x = change_array(x, np.copyto, y)`;
    `np.add(y, z, out=x)`  =>  `x = change_array(x, np.add, y, z)`; `x.fill(v)`  =>  `x = change_array(x, np.ndarray.fill, v)`.

    Returns whether the statement is one of these.
    """
    call, target = stmt.value, scopes.updated_array(stmt)
    if target is None:
        return False
    assert isinstance(call, ast.Call)
    method = scopes.changing_method(call) is target
    if method and isinstance(whole := scopes.base_of(target), ast.Name) and not p.is_local(whole.id):
        return False  # of a global object
    named = [k for k in call.keywords if k.value is not target]
    # The array for the result is one of the arguments, and may be another one, too: `np.add(x, y, x)`.
    first = 0 if method else 1
    positional = (
        call.args[first:] if method or scopes.result_array(call) is None else [a for a in call.args if a is not target]
    )
    parts = [*positional, *[k.value for k in named]]
    if any(isinstance(part, ast.Starred) for part in parts) or any(k.arg is None for k in call.keywords):
        raise p.refuse("the arguments of a function that changes an array are written one by one", call)
    base = changed_variable(p, target)
    if base.id in p.procedures.mutated(parts) | scopes.bindings(parts):
        raise p.refuse(READ_BEFORE.format(name=base.id), call)
    old, keywords = p.load(base.id, base), tuple(str(k.arg) for k in named)
    indices = indices_of(p, target) if isinstance(target, ast.Subscript) else []
    *levels, old = taken(p, target, old, indices) if isinstance(target, ast.Subscript) else [old]
    out = ""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "at":
        op, ufunc = syntax.update_at, p.expr(call.func.value)
        args = [*[*map(p.expr, parts), Constant(None)][:2], ufunc]
    else:
        function = (
            Constant(METHODS[call.func.attr]) if method and isinstance(call.func, ast.Attribute) else p.expr(call.func)
        )
        op, args = syntax.change_array, [function, *map(p.expr, parts)]
        if len(named) < len(call.keywords):
            out = "keyword"
        elif scopes.result_array(call) is not None:
            out = "positional"
    p.used(0)
    if isinstance(target, ast.Subscript):
        attrs = {"name": base.id, "shared": (), "back": True, "out": out}
        new = p.apply(op, old, *args, at=call, attrs=attrs, keywords=keywords)
        back = put_back(p, target, levels, indices, new)
        change(p, base.id, call, syntax.setitem, levels[0], indices[0], back, attrs={"back": True})
    else:
        change(p, base.id, call, op, old, *args, keywords=keywords, attrs={"out": out})
    return True
