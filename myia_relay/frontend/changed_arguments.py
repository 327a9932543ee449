"""Calls that change their arguments in place: the caller's variable is bound to what the callee leaves of its parameter.

    f(x, y)         =>    pair = f(x, y);  x = after_call(x, pair, y)
    f(x[i], y)      =>    entry, rest = take_entry(x, i);  pair = f(entry, y);  x = setitem(rest, i, after_call(entry, pair, y))

The value of any other argument has no name that could show the change. Nothing else may be able to see it: another variable, or
another argument of the call (`ownership`).
"""

from __future__ import annotations

import ast

from ..ir import syntax
from ..ir.node import Apply, Node, Parameter
from . import ownership
from .assignments import READ_BEFORE, bind, change
from .context import ParseContext
from .entries import indices_of, note_entry, put_back, taken
from .functions import note_refusal
from .objects import is_array
from .procedures import ChangedArgument, arguments_of, base_of_argument
from .text import scope as scopes


def call_changing(p: ParseContext, node: ast.Call, places: tuple[ChangedArgument, ...]) -> Node:
    """A call that may change some of its arguments; the result proper."""
    before = len(p.waiting)
    fn = p.expr(node.func)
    parts = arguments_of(node)
    changed = {place.position for place in places}
    bound = p.procedures.mutated([*parts]) | scopes.bindings(parts)
    values: list[Node] = []
    entries: dict[int, tuple[list[Node], list[Node]]] = {}
    for k, part in enumerate(parts):
        base = base_of_argument(part) if k in changed else None
        if base is not None and p.is_local(base) and isinstance(part, ast.Subscript):
            if base in bound:
                raise p.refuse(READ_BEFORE.format(name=base), node)
            indices = indices_of(p, part)
            levels = taken(p, part, p.load(base, part), indices)
            entries[k] = levels, indices
            values.append(levels[-1])
        else:
            values.append(p.expr(part))
    p.used(before)
    names = tuple(str(k.arg) for k in node.keywords)
    attrs = {"changes": tuple(place.position for place in places)}
    call = p.apply(fn, *values, at=node, keywords=names, attrs=attrs)
    result = p.apply(syntax.returned, call, at=node)
    p.flows[result] = (call,)
    callee = ast.unparse(node.func)
    for number, (k, how) in enumerate(places):
        part, base, old = parts[k], base_of_argument(parts[k]), values[k]
        others = [(k2, value) for k2, value in enumerate(values) if k2 != k]
        attrs = {
            "index": number,
            "positions": tuple(k2 for k2, _ in others),
            "position": k,
            "name": ast.unparse(part),
            "shared": (),
            "stored": how.stored,
            "own": False,
        }
        new = p.apply(syntax.after_call, old, call, *[value for _, value in others], at=part, attrs=attrs)
        beside = [(callee, fn), *((ast.unparse(parts[k2]), value) for k2, value in others)]
        _note_conflicts(p, part, new, old, callee, beside, bound, how.deep)
        if k in entries:
            levels, indices = entries[k]
            assert base is not None and isinstance(part, ast.Subscript)
            back = put_back(p, part, levels[:-1], indices, new)
            change(p, base, part, syntax.setitem, levels[0], indices[0], back, attrs={"back": True})
        elif isinstance(part, ast.Name) and p.is_local(part.id):
            why = f"'{part.id}' is changed by '{callee}', and {ownership.OF_THE_CALLER.format(name=part.id)}; give it a copy"
            note_refusal(p, part.id, new, lambda kind, why=why: why, part)
            note_entry(p, part.id, new)
            bind(p, part.id, new, part)
    return result


def _note_conflicts(
    p: ParseContext,
    part: ast.expr,
    new: Apply,
    old: Node,
    callee: str,
    others: list,
    bound: set[str],
    deep: int,
) -> None:
    """Record where else the change of an argument could be seen.

    Args:
        p: the function.
        part: the argument.
        new: its value after the call, which takes the conflicts as `shared`, those of its entries as `entries`, and as `own`
            whether its entries are made here.
        old: its value before.
        callee: what is called, as it is written.
        others: the callee and the other arguments, as they are written.
        bound: the variables that arguments bind or change.
        deep: how deep in the argument something is changed.
    """
    text = ast.unparse(part)
    beside = [(f"'{other}' may be, or hold, the same object as '{text}'", value) for other, value in others]
    base = base_of_argument(part)
    stale: list[ownership.Conflict] = []
    if isinstance(part, ast.Name) and p.is_local(part.id) and part.id in bound:
        stale = [ownership.Conflict(READ_BEFORE.format(name=part.id))]

    def refusal(reason: str) -> str:
        return f"'{callee}' changes '{text}' in place: {reason}; give it a copy ({text}.copy()), and return that"

    name = base if base is not None and p.is_local(base) else text

    def report(reasons: list[ownership.Conflict]) -> None:
        new.attrs["shared"] = [r._replace(reason=refusal(r.reason)) for r in reasons] + stale
        new.attrs["own"] = ownership.is_made_here(p, old)

    ownership.check(p, name, old, report, beside=beside)
    entries: list[tuple[ownership.Conflict, ...]] = [()] * (0 if is_array(p, old) else deep)
    new.attrs["entries"] = entries
    whole = old
    for level in range(len(entries)):
        entry = Parameter(p.root, text, None)  # any entry; not part of the graph
        p.items[entry] = whole

        def note(reasons: list[ownership.Conflict], level=level) -> None:
            entries[level] = tuple(r._replace(reason=refusal(r.reason)) for r in reasons)

        ownership.check(p, name, entry, note, within=whole, beside=beside)
        whole = entry
