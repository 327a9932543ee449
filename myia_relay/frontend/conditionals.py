"""Conditional expressions, which are two graphs of which one is evaluated; and conditions, of which only the truth value
matters.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..ir.node import Constant, Node
from .context import BlockState, ParseContext


def condition(p: ParseContext, node: ast.expr) -> Node:
    """An expression of which only the truth value is used: `a and b`  =>  `if_(a, bool(b), False)`.

    The operands of `and` and `or` may then differ in type; the value of the expression itself would have no type.
    """
    before = len(p.waiting)
    if not isinstance(node, ast.BoolOp):
        value = p.expr(node)
        p.used(before)
        return value
    both = isinstance(node.op, ast.And)

    def chain(parts: list[ast.expr]) -> Node:
        first = condition(p, parts[0])
        if len(parts) == 1:
            return p.apply(bool, first, at=parts[0])

        def rest() -> Node:
            return chain(parts[1:])

        def decided() -> Node:
            return Constant(not both)

        return conditional(
            p, first, rest if both else decided, decided if both else rest, node, "and" if both else "or"
        )

    return chain(node.values)


def conditional(
    p: ParseContext, cond: Node, then: Callable[[], Node], other: Callable[[], Node], at: ast.AST, label: str
) -> Node:
    """The value of one of two lazily evaluated expressions."""
    origin, base, before = p.origin(at), p.state, len(p.waiting)
    sides: list[BlockState] = []
    for suffix, thunk in (("then", then), ("else", other)):
        p.state = base
        p.state = p.fork(f"{label}.{suffix}", origin)
        value = thunk()
        p.used(before)
        p.state.env["$value"] = value
        sides.append(p.state)
    p.state = base
    first, second = sides
    # Both values are the same node only in `x if c else x`; the condition must then still be evaluated for its truth.
    if first.env["$value"] is second.env["$value"]:
        first.env["$value"] = Constant(None)
        value = second.env["$value"]
        second.env["$value"] = Constant(None)
        p.join(cond, first, second, None, origin)
        p.state.env.pop("$value", None)
        return value
    p.join(cond, first, second, None, origin)
    return p.state.env.pop("$value")
