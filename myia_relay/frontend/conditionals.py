"""Conditional expressions: two graphs, of which one is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..ir.node import Constant, Node
from .context import Context, State


def conditional(
    p: Context, cond: Node, then: Callable[[], Node], other: Callable[[], Node], at: ast.AST, label: str
) -> Node:
    """The value of one of two lazily evaluated expressions."""
    origin, base = p.origin(at), p.state
    sides: list[State] = []
    for suffix, thunk in (("then", then), ("else", other)):
        p.state = base
        p.state = p.fork(f"{label}.{suffix}", origin)
        value = thunk()
        p.state.env["$value"] = value
        sides.append(p.state)
    p.state = base
    # Both values are the same node only in `x if c else x`; the condition must then still be evaluated for its truth.
    if sides[0].env["$value"] is sides[1].env["$value"]:
        sides[0].env["$value"] = Constant(None)
        value = sides[1].env["$value"]
        sides[1].env["$value"] = Constant(None)
        p.join(cond, *sides, None, origin)
        p.state.env.pop("$value", None)
        return value
    p.join(cond, *sides, None, origin)
    return p.state.env.pop("$value")
