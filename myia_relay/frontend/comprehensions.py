"""Comprehensions of lists and dicts, and the searches `any(... for ...)` and `all(... for ...)`."""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable

from ..ir import syntax
from ..ir.node import Constant, Node
from .assignments import bind_target, remedy
from .conditionals import condition, conditional
from .context import EXPRESSIONS, ParseContext, handles
from .text.tree import walk

Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp


@handles(EXPRESSIONS, ast.ListComp)
def comprehension(p: ParseContext, node: ast.ListComp | ast.GeneratorExp) -> Node:
    """`[e for x in xs if c]`  =>  `comprehension(xs, body)`; `body(x)` is the list of the contributions of one element."""
    return _generator(p, node, 0)


@handles(EXPRESSIONS, ast.DictComp)
def dict_comprehension(p: ParseContext, node: ast.DictComp) -> Node:
    """`{k: v for x in xs}`  =>  `dict([(k, v) for x in xs])`."""
    return p.apply(dict, _generator(p, node, 0), at=node)


def _generator(p: ParseContext, node: Comprehension, k: int) -> Node:
    """The list that the generators from number `k` on make."""
    iterable, graph = _body(p, node, k, lambda: _condition(p, node, k, 0))
    return p.apply(syntax.comprehension, iterable, Constant(graph), at=node)


def _body(p: ParseContext, node: Comprehension, k: int, inside: Callable[[], Node], more=()) -> tuple:
    """The iterable of a generator, and a graph that takes an item (and parameters named `more`) and runs `inside`."""
    gen = node.generators[k]
    if gen.is_async:
        raise p.refuse("'async for' is not part of the language; write an ordinary comprehension", node)
    origin, base = p.origin(node), p.state
    iterable = p.expr(gen.iter)
    targets = sorted({n.id for n in walk(gen.target) if isinstance(n, ast.Name)})
    cells = node.__dict__.setdefault("_cells", set())
    outer_cells = p.hidden_cells
    own_cells = {
        name: p.apply(syntax.new_cell, at=node, attrs={"name": name}, name=name) for name in targets if name in cells
    }
    p.hidden_cells = {**{name: cell for name, cell in outer_cells.items() if name not in targets}, **own_cells}
    p.state = p.fork("comprehension", origin)
    p.state.graph.flags["repeats"] = True
    item = p.state.graph.add_parameter(
        targets[0] if isinstance(gen.target, ast.Name) else "item", origin=p.origin(gen.target)
    )
    p.items[item] = iterable
    outer_captures = {name: p.captured_by.pop(name, []) for name in targets}
    p.hidden.extend(targets)
    own = isinstance(node, ast.GeneratorExp) or sys.version_info < (3, 12)
    p.own_scopes += own
    bind_target(p, gen.target, item)
    for name in more:
        p.state.graph.add_parameter(name, origin=origin)
    out = inside()
    for name in targets:
        if p.captured_by.get(name):
            # In Python a lambda made here sees the last value of the variable; if the lambda escapes, the variable is a
            # cell.
            attrs = {"name": name, "graphs": p.captured_by[name], "again": remedy(p, cells, name)}
            p.apply(syntax.recapture, out, at=gen.target, attrs=attrs)
        p.captured_by[name] = outer_captures[name]
        p.hidden.remove(name)
    p.hidden_cells = outer_cells
    p.own_scopes -= own
    p.state.graph.output = out
    graph = p.state.graph
    p.state = base
    return iterable, graph


def _condition(p: ParseContext, node: Comprehension, k: int, c: int) -> Node:
    """The conditions of a generator from `c` on, then the generators after it, then the element."""
    gen = node.generators[k]
    if c < len(gen.ifs):
        test = condition(p, gen.ifs[c])
        return conditional(
            p,
            test,
            lambda: _condition(p, node, k, c + 1),
            lambda: p.apply(syntax.make_list, at=node),
            gen.ifs[c],
            "if",
        )
    if k + 1 < len(node.generators):
        return _generator(p, node, k + 1)
    if isinstance(node, ast.DictComp):
        element, at = p.apply(syntax.make_tuple, p.expr(node.key), p.expr(node.value), at=node.key), node.key
    else:
        element, at = p.expr(node.elt), node.elt
    return p.apply(syntax.make_list, element, at=at)


def search(p: ParseContext, call: ast.Call) -> Node | None:
    """`any(e for x in xs)` and `all(...)`, which stop at the first element that decides; None for other calls.

    any(e for x in xs)  =>  for_(xs, body, False)[0]    body(x, _) = (found, not found), found = bool(e)
    """
    func = call.func
    if not isinstance(func, ast.Name) or func.id not in ("any", "all"):
        return None
    function = p.source.function
    seen = {*function.__globals__, *function.__code__.co_freevars, *p.captures}
    if p.is_local(func.id) or func.id in seen:
        return None
    (generator,) = call.args
    assert isinstance(generator, ast.GeneratorExp)
    return _search(p, generator, 0, func.id == "any")


def _search(p: ParseContext, node: ast.GeneratorExp, k: int, some: bool) -> Node:
    """The search through the generators from number `k` on."""

    def decide(c: int) -> Node:
        gen = node.generators[k]
        if c < len(gen.ifs):
            test = condition(p, gen.ifs[c])
            return conditional(p, test, lambda: decide(c + 1), lambda: Constant(not some), gen.ifs[c], "if")
        if k + 1 < len(node.generators):
            return _search(p, node, k + 1, some)
        value = p.expr(node.elt)
        return conditional(p, value, lambda: Constant(True), lambda: Constant(False), node.elt, "if")

    def inside() -> Node:
        found = decide(0)
        go_on = p.apply(operator.not_, found, at=node) if some else found
        return p.apply(syntax.make_tuple, found, go_on, at=node)

    iterable, graph = _body(p, node, k, inside, ["$value"])
    attrs = {"names": ("$value",), "stops": True}
    result = p.apply(syntax.for_, iterable, Constant(graph), Constant(not some), at=node, attrs=attrs)
    return p.apply(operator.getitem, result, Constant(0), at=node)
