"""Derivatives of run-time lists.

    ys = push(xs, x)     =>   dx = at(dys, len(xs));  dxs = truncate(dys, len(xs))
    x = get(xs, i)       =>   dxs = accumulate(dxs, i, dx)

A cotangent (or tangent) of a list is a list that may be shorter: the entries that it lacks are zero. A zero thus costs
nothing and grows when it is written to. The adjoint needs only the length of a list, which is computed in the forward
pass; lists are never kept for the backward pass.

Sums of such cotangents are in `ad.common.list_sums`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..abstract.types import List, Struct, tangent
from ..ir.build import Builder
from ..ir.node import Apply, Graph, Node
from ..ir.prim import REGISTRY
from ..ir.rewrite import Rewriter, all_graphs, emit_like, lookup
from ..prims.ops import list_functions
from ..prims.ops.data_functions import Functions
from ..prims.ops.list_functions import emit, length, number, op, over
from .common.cotangents import Cotangent, materialise, split, zeros
from .forward.forward import RULES as FORWARD
from .forward.forward import Forward
from .reverse.reverse import RULES, Adjoint


def at_least(b: Builder, ds: Node, count: Node) -> Node:
    """A cotangent with at least the given number of entries."""
    return emit(b, "list_resize", ds, op(b, "maximum", length(b, ds), count))


class _WithoutSums(Rewriter):
    """Replaces sums of entries that hold trees or lists by operations that back ends support."""

    def __init__(self, functions: Functions):
        super().__init__()
        self.functions = functions

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if not _adds(node):
            return super().node(builder, node, args, attrs)
        self.changed = True
        builder.origin = node.origin
        if node.fn.name == "list_accumulate":
            return list_functions.accumulate(builder, self.functions, *args)
        return (list_functions.at if node.fn.name == "list_at" else list_functions.resize)(builder, *args)


def _adds(node: Apply) -> bool:
    name = getattr(node.fn, "name", "") if not isinstance(node.fn, Graph) else ""
    return name in ("list_accumulate", "list_at", "list_resize") and not list_functions.is_plain(node.args[0].type.elem)


def without_sums(graph: Graph, functions: Functions) -> Graph:
    """The graph, differentiated, with sums of entries that hold trees or lists written out."""
    return (
        _WithoutSums(functions).rewrite(graph) if any(_adds(n) for g in all_graphs(graph) for n in g.nodes) else graph
    )


# Reverse mode.


def _now(adjoint: Adjoint, node: Apply, which: int = 0) -> Node:
    """The length of an argument, computed in the forward pass."""
    b = adjoint.builder
    with adjoint.before(node):
        return length(b, lookup(adjoint.env, node.args[which]))


def _arg(adjoint: Adjoint, node: Apply, k: int) -> Node:
    return lookup(adjoint.env, node.args[k])


def _entry_out(adjoint: Adjoint, node: Apply, k: int, entry: Node) -> None:
    """A cotangent of an entry is passed on to argument `k`."""
    if node.args[k] in adjoint.acts:
        ct = split(adjoint.builder, entry) if isinstance(entry.type, Struct) else entry
        adjoint.accumulate(node.args[k], ct, node.fn.name)


def _new(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    for k, _ in enumerate(node.args):
        _entry_out(adjoint, node, k, emit(adjoint.builder, "list_at", ct, number(adjoint.builder, k)))


def _from_array(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    (array,) = node.args
    out = adjoint.builder.emit(REGISTRY["list_to_array"], (ct,), {"size": array.type.shape[0]})
    adjoint.accumulate(array, out, "list_from_array")


def _to_array(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    adjoint.accumulate(node.args[0], emit_plain(adjoint.builder, "list_from_array", ct), "list_to_array")


def emit_plain(b: Builder, name: str, *args: Node) -> Node:
    """Apply a primitive without attributes."""
    return b.emit(REGISTRY[name], args)


def _get(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b, xs = adjoint.builder, node.args[0]
    d = materialise(b, ct, tangent(node.type))
    zero = zeros(b, tangent(xs.type))
    adjoint.accumulate(xs, emit(b, "list_accumulate", zero, _arg(adjoint, node, 1), d), node.fn.name)


def _set(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b, i = adjoint.builder, _arg(adjoint, node, 1)
    _entry_out(adjoint, node, 2, emit(b, "list_at", ct, i))
    if node.args[0] in adjoint.acts:
        wide = at_least(b, ct, op(b, "add", i, number(b, 1)))
        adjoint.accumulate(node.args[0], emit(b, "list_set", wide, i, zeros(b, ct.type.elem)), "list_set")


def _push(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b, n = adjoint.builder, _now(adjoint, node)
    _entry_out(adjoint, node, 1, emit(b, "list_at", ct, n))
    adjoint.accumulate(node.args[0], emit(b, "list_truncate", ct, n), "list_push")


def _shorter(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    adjoint.accumulate(node.args[0], emit(adjoint.builder, "list_truncate", ct, _arg(adjoint, node, 1)), node.fn.name)


def _insert(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b, i = adjoint.builder, _arg(adjoint, node, 1)
    _entry_out(adjoint, node, 2, emit(b, "list_at", ct, i))
    wide = at_least(b, ct, op(b, "add", i, number(b, 1)))
    adjoint.accumulate(node.args[0], emit(b, "list_delete", wide, i), "list_insert")


def _delete(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b, i = adjoint.builder, _arg(adjoint, node, 1)
    out = emit(b, "list_insert", at_least(b, ct, i), i, zeros(b, ct.type.elem))
    adjoint.accumulate(node.args[0], out, "list_delete")


def _concat(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b, n = adjoint.builder, _now(adjoint, node)
    count = op(b, "sub", length(b, ct), n)
    adjoint.accumulate(node.args[0], emit(b, "list_truncate", ct, n), "list_concat")
    adjoint.accumulate(node.args[1], emit(b, "list_slice", ct, n, count, number(b, 1)), "list_concat")


def _slice(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b = adjoint.builder
    start, step = _arg(adjoint, node, 1), _arg(adjoint, node, 3)

    def one(inner: Builder, k: Node, ds: Node, dys: Node, start: Node, step: Node) -> Node:
        place = op(inner, "add", start, op(inner, "mul", k, step))
        return emit(inner, "list_accumulate", ds, place, emit(inner, "list_at", dys, k))

    zero = zeros(b, tangent(node.args[0].type))
    adjoint.accumulate(node.args[0], over(b, length(b, ct), zero, [ct, start, step], one), "list_slice")


def _repeat(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    b, n = adjoint.builder, _now(adjoint, node)

    def one(inner: Builder, k: Node, ds: Node, dys: Node, n: Node) -> Node:
        return emit(inner, "list_accumulate", ds, op(inner, "mod", k, n), emit(inner, "list_at", dys, k))

    zero = zeros(b, tangent(node.args[0].type))
    adjoint.accumulate(node.args[0], over(b, length(b, ct), zero, [ct, n], one), "list_repeat")


def _accumulate(adjoint: Adjoint, node: Apply, ct: Node) -> None:
    _entry_out(adjoint, node, 2, emit(adjoint.builder, "list_at", ct, _arg(adjoint, node, 1)))
    adjoint.accumulate(node.args[0], ct, "list_accumulate")


RULES.update(
    {
        "list_new": _new,
        "list_from_array": _from_array,
        "list_to_array": _to_array,
        "list_get": _get,
        "list_at": _get,
        "list_set": _set,
        "list_push": _push,
        "list_truncate": _shorter,
        "list_resize": _shorter,
        "list_insert": _insert,
        "list_delete": _delete,
        "list_concat": _concat,
        "list_slice": _slice,
        "list_repeat": _repeat,
        "list_accumulate": _accumulate,
    }
)


# Forward mode: the same operation on tangents, which are made as long as the list where that matters.


def _plain(f: Forward, b: Builder, node: Apply, args, tangents):
    """Operations that do the same for any length: on tangents of lists, with the same numbers."""
    out = emit_like(b, node, args)
    lists = [k for k, a in enumerate(node.args) if isinstance(a.type, List)]
    return out, _apply(b, node, args, tangents, lists, {})


def _aligned(f: Forward, b: Builder, node: Apply, args, tangents):
    """Operations at the end of a list, or that move entries."""
    n = length(b, args[0])
    out = emit_like(b, node, args)
    lists = [k for k, a in enumerate(node.args) if isinstance(a.type, List)]
    return out, _apply(b, node, args, tangents, lists, {0: n})


ENTRY = {"list_set": 2, "list_push": 1, "list_insert": 2, "list_accumulate": 2}
"""Which argument is an entry."""


def _apply(b: Builder, node: Apply, args, tangents, lists: list[int], sizes: dict[int, Node]) -> Cotangent:
    name = "list_at" if node.fn.name == "list_get" else node.fn.name
    given = []
    for k, (arg, t) in enumerate(zip(args, tangents, strict=True)):
        entry = name == "list_new" or ENTRY.get(name) == k
        if k in lists and not entry:
            t = materialise(b, t, tangent(node.args[k].type))
            given.append(emit(b, "list_resize", t, sizes[k]) if k in sizes else t)
        elif entry or name == "list_from_array":
            given.append(materialise(b, t, tangent(node.args[k].type)))
        else:
            given.append(arg)
    attrs = dict(node.attrs)
    if "elem" in REGISTRY[name].attr_names:
        attrs["elem"] = given[0].type.elem if lists and name != "list_new" else tangent(node.attrs["elem"])
    return split_entry(b, b.emit(REGISTRY[name], given, attrs))


def split_entry(b: Builder, node: Node) -> Cotangent:
    """A tangent of an entry, in parts where it is a structure."""
    return split(b, node) if isinstance(node.type, Struct) else node


FORWARD.update(dict.fromkeys(("list_new", "list_from_array", "list_to_array", "list_get", "list_at"), _plain))
FORWARD.update(dict.fromkeys(("list_truncate", "list_resize", "list_accumulate"), _plain))
FORWARD.update(dict.fromkeys(("list_set", "list_push", "list_insert", "list_delete", "list_concat"), _aligned))
FORWARD.update(dict.fromkeys(("list_slice", "list_repeat"), _aligned))

__all__ = ["without_sums"]
