"""Sums of the cotangents of run-time lists.

If one term of a sum was made by accumulating into zeros, it accumulates into the other term instead, through branches
and loops. The adjoint of a loop that reads a list is then as fast as the loop.
"""

from __future__ import annotations

from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node
from ...ir.prim import REGISTRY
from ...ir.rewrite import inline, same_interface
from ...prims.ops.list_functions import emit, length, over


def add_lists(b: Builder, a: Node, c: Node) -> Node:
    """The sum of two cotangents of one list; `c` was made later."""
    for first, second in ((a, c), (c, a)):
        if _is_zero(second):
            return first
    onto = _onto(b, a, c)
    if onto is not None:
        return onto

    def step(inner: Builder, k: Node, total: Node, more: Node) -> Node:
        return emit(inner, "list_accumulate", total, k, emit(inner, "list_at", more, k))

    return over(b, length(b, c), a, [c], step)


def _is_zero(node: Node) -> bool:
    return isinstance(node, Apply) and getattr(node.fn, "name", "") == "list_new" and not node.args


def _grows_from(node: Node) -> Node | None:
    """The list that a cotangent grows from by accumulation, if nothing else is done to it."""
    while isinstance(node, Apply):
        name = getattr(node.fn, "name", "")
        if name == "list_accumulate":
            node = node.args[0]
        elif name == "get_item" and isinstance(node.args[0], Apply):
            inner, k = node.args[0], node.attrs["index"]
            name = getattr(inner.fn, "name", "")
            if name not in ("for_loop", "while_loop"):
                return None
            body, lead = inner.attrs["body"], 3 if name == "for_loop" else 0
            out = body.output
            if getattr(getattr(out, "fn", None), "name", "") != "make_struct":
                return None
            if (
                _grows_from(out.args[k]) is not body.params[(1 if lead else 0) + k]
                or _uses(body, (1 if lead else 0) + k) > 1
            ):
                return None
            node = inner.args[lead + k]
        else:
            return node
    return node


def _uses(graph: Graph, index: int) -> int:
    """How often a parameter is used."""
    param = graph.params[index]
    return sum(a is param for n in graph.nodes for a in n.args) + (graph.output is param)


def _onto(b: Builder, a: Node, c: Node) -> Node | None:
    """`a + c`, for a `c` that is accumulated into zeros: the same accumulated into `a`; None if it is not."""
    if not isinstance(c, Apply):
        return None
    name = getattr(c.fn, "name", "")
    if name == "list_accumulate":
        base = add_lists(b, a, c.args[0])
        return b.emit(c.fn, (base, *c.args[1:]), c.attrs)
    if name == "get_item" and isinstance(c.args[0], Apply):
        inner, k = c.args[0], c.attrs["index"]
        kind = getattr(inner.fn, "name", "")
        if not _precedes(b, a, inner):
            return None
        # In place: other results of these operations may be tapes, which can be emptied only once.
        if kind == "cond":
            _into_branches(b, a, inner, k)
            return c
        start = _grows_from(c)
        if kind == "for_loop" and start is not None and _is_zero(start):
            inner.args = (*inner.args[: 3 + k], a, *inner.args[4 + k :])
            return c
    return None


def _into_branches(b: Builder, a: Node, node: Apply, k: int) -> None:
    """cond(c, f, g)[k] + a = cond(c, f[k] + a, g[k] + a), in place of the branch."""
    attrs = {}
    for name in ("then", "orelse"):
        old: Graph = node.attrs[name]
        new, env = same_interface(old)
        total = new.add_parameter("ds", a.type)
        inner = Builder(new, b.origin)
        out = inline(inner, old, [env[p] for p in old.params])
        parts = [inner.emit(REGISTRY["get_item"], (out,), {"index": i}) for i in range(len(out.type.elems))]
        parts[k] = add_lists(inner, total, parts[k])
        new.output = inner.emit(REGISTRY["make_struct"], parts, {"type": out.type})
        attrs[name] = new
    node.args, node.attrs = (*node.args, a), attrs


def _precedes(b: Builder, a: Node, node: Apply) -> bool:
    """Whether a value is available before an application."""
    if not isinstance(a, Apply):
        return True
    for other in reversed(b.graph.nodes):
        if other is a:
            return False
        if other is node:
            return True
    return False
