"""Changes of parts of a variable's value: `x[i] = v`, `x[i][j] = v`, `x[i] += v`, `x[i].append(v)`.

    x[i][j] = v    =>    entry, rest = take_entry(x, i);  x = setitem(rest, i, setitem(entry, j, v))

An entry of an array is a view of it. An entry of a list or a dict is an object that something else may hold too, and
that may occur twice. Possible conflicts are found here (`ownership`) and decided by inference, which knows the types.
Taking an entry out of a run-time list leaves an empty list in its place, so that nothing else refers to the entry while
it is changed.
"""

from __future__ import annotations

import ast
import operator

from ..ir import syntax
from ..ir.node import Apply, Constant, Node
from . import ownership
from .context import ParseContext
from .objects import is_array
from .places import rewrite
from .procedures import changed_round
from .text import scope as scopes


def changed_variable(p: ParseContext, target: ast.expr) -> ast.Name:
    """The `x` of `x[i] = v`, of `x[i][j] = v`, or of `np.add.at(x, i, v)`."""
    base = scopes.base_of(target)
    if isinstance(base, ast.Name) and p.is_local(base.id):
        return base
    what = ast.unparse(base)
    raise p.refuse(
        f"'{what}' is not a local variable, so others would see the assignment; "
        f"write y = relay.at({what})[...].set(value)",
        target,
    )


def indices_of(p: ParseContext, target: ast.Subscript) -> list[Node]:
    """The i, j, ... of `x[i][j]`."""
    return [p.expr(part.slice) for part in _chain(target)]


def _chain(target: ast.Subscript) -> list[ast.Subscript]:
    """`x[i]`, `x[i][j]`, ... up to the target."""
    chain = [target]
    while isinstance(chain[-1].value, ast.Subscript):
        chain.append(chain[-1].value)
    return chain[::-1]


def taken(p: ParseContext, target: ast.Subscript, x: Node, indices: list[Node]) -> list[Node]:
    """`x`, `x[i]`, `x[i][j]`: the last one is to be changed, the others are given without the entries that follow."""
    levels = [x]
    for part, index in zip(_chain(target), indices):
        whole = levels.pop()
        pair = p.apply(syntax.take_entry, whole, index, at=part)
        entry, rest = (p.apply(operator.getitem, pair, Constant(k), at=part) for k in (0, 1))
        p.items[entry], p.flows[rest] = whole, (whole,)
        note_holders(p, part, pair, whole, entry)
        levels += [rest, entry]
    return levels


def note_entry(p: ParseContext, name: str, node: Apply) -> None:
    """Note at a change of a variable that it, or another one, may be written as the entry of a variable that it is (`places`)."""

    def another(*more: str) -> bool:
        outermost = p
        while outermost.outer is not None:
            outermost = outermost.outer
        names = (n for n in (name, *more) if n in p.scope.locals and n not in p.hidden)
        if not any(rewrite(outermost.node, p.node, n, p.procedures) for n in names):
            return False
        changed_round()
        return True

    node.attrs["another"] = another


def note_holders(p: ParseContext, target: ast.Subscript, node: Apply, whole: Node, entry: Node) -> None:
    """Record at a node what else may hold an entry that is about to be changed in place.

    Args:
        p: the function.
        target: the entry, as it is written.
        node: takes the conflicts as `shared`, and as `own` whether all entries are made in this function.
        whole: what it is an entry of.
        entry: its value.
    """
    node.attrs.update(name=ast.unparse(target), shared=(), own=False)
    note_entry(p, changed_variable(p, target).id, node)

    def report(reasons: list[ownership.Conflict]) -> None:
        node.attrs["shared"], node.attrs["own"] = reasons, ownership.is_made_here(p, whole)

    if not is_array(p, whole):
        ownership.check(p, changed_variable(p, target).id, entry, report, within=whole)


def put_back(p: ParseContext, target: ast.Subscript, levels: list[Node], indices: list[Node], value: Node) -> Node:
    """The new value of `x[i]` that makes `x[i][j]` a given value; `levels` is what `taken` returns."""
    for whole, index in zip(reversed(levels[1:]), reversed(indices[1:])):
        value = p.apply(syntax.setitem, whole, index, value, at=target, attrs={"name": "", "shared": (), "back": True})
    return value
