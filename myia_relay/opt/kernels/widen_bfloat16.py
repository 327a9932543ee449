"""Arithmetic on bfloat16 in float32: native code only stores it, moves it, and converts it.

    z = add(x, y)  =>  z = cast(add(cast(x, float32), cast(y, float32)), bfloat16)

That is the meaning of arithmetic on bfloat16: each operation is computed in float32 and its result rounded, as ml_dtypes does; sums
and products of matrices are accumulated in float32 and rounded once. A product of matrices thus is one of float32, by BLAS.

Input: a closed typed graph without transforms. Output: the same; only primitives that move data, and conversions from and to
float32, have operands or results of bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...abstract.types import Array, Scalar, Type, leaves
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY, Primitive, adds_to_part, update_of
from ...ir.rewrite import Rewriter, all_graphs
from ...utils.errors import LoweringError

NARROW, WIDE = "bfloat16", "float32"

MOVES = frozenset(
    """as_array as_scalar bind_dim bitcast broadcast_to check checkpoint concatenate cond data_as data_field
    data_is data_make data_same dim_size dynamic_index dynamic_slice dynamic_update
    dynamic_update_slice flip for_loop from_bfloat16 get_item list_at list_concat list_delete
    list_from_array list_get list_insert list_len list_new list_push list_repeat list_resize
    list_set list_slice list_to_array list_truncate make_struct map_rows none pad print raise
    ref_read ref_write reshape scatter slice stop_gradient take tape_new tape_pop tape_push
    transpose undef where while_loop""".split()
)
"""Primitives that compute no number but move those that they are given, and the conversion."""


def holds(t: Type) -> bool:
    """Whether there is bfloat16 in a type."""
    if isinstance(t, Array | Scalar):  # as most are
        return t.dtype == NARROW
    return any(getattr(leaf, "dtype", "") == NARROW for leaf in leaves(t))


def concerns(graph: Graph) -> bool:
    """Whether there is bfloat16 in a graph."""
    nodes = (*graph.params, *graph.nodes, *(a for n in graph.nodes for a in n.args if isinstance(a, Constant)))
    return any(holds(n.type) for n in nodes)


@dataclass(frozen=True)
class WidenBfloat16:
    """The pass."""

    name: str = "widen_bfloat16"

    def __call__(self, graph: Graph) -> Graph:
        return _Widen().rewrite(graph) if any(map(concerns, all_graphs(graph))) else graph


class _Widen(Rewriter):
    def __init__(self):
        super().__init__()
        self.wide: dict[Node, Node] = {}

    def node(self, builder: Builder, node: Apply, args: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        fn = node.fn
        if not isinstance(fn, Primitive) or fn.name in MOVES or not any(holds(n.type) for n in (node, *args)):
            return super().node(builder, node, args, attrs)
        self.changed = True
        builder.origin = node.origin
        if fn.name == "cast":
            return self.cast(builder, node, args[0], attrs)
        if adds_to_part(node):
            return self.add_to_part(builder, node, args, attrs)
        attrs = {name: WIDE if value == NARROW else value for name, value in attrs.items()}
        type_ = node.type
        if holds(type_):
            type_ = widened(type_, node)
        out = builder.emit(fn, [self.widen(builder, a, node) for a in args], attrs, type_)
        if type_ is node.type:
            return out
        narrow = builder.emit(REGISTRY["cast"], (out,), {"dtype": NARROW})
        if isinstance(narrow, Apply):
            narrow.name = node.name
        return narrow

    def add_to_part(self, builder: Builder, node: Apply, args: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        """x with v added to a part of it: the part alone is float32."""
        x, v, at = args
        update: Any = update_of(node)
        axis = attrs["axis"]
        window = {"length": v.type.shape[axis]} if update.window else {}  # pyright: ignore[reportAttributeAccessIssue]
        part = builder.emit(REGISTRY[update.reads], (x, at), {"axis": axis, **window})
        total = builder.emit(REGISTRY["add"], (self.widen(builder, part, node), self.widen(builder, v, node)))
        total = builder.emit(REGISTRY["cast"], (total,), {"dtype": NARROW})
        return builder.emit(REGISTRY[update.writes], (x, total, at), {"axis": axis}, node.type)

    def cast(self, builder: Builder, node: Apply, value: Node, attrs: Mapping[str, Any]) -> Node:
        """A conversion, by way of float32."""
        steps = [WIDE, attrs["dtype"]] if attrs["dtype"] == NARROW else [attrs["dtype"]]
        value = self.widen(builder, value, node)
        for dtype in steps:
            if value.type.dtype != dtype:  # pyright: ignore[reportAttributeAccessIssue]
                value = builder.emit(REGISTRY["cast"], (value,), {**attrs, "dtype": dtype})
        return value

    def widen(self, builder: Builder, value: Node, user: Apply) -> Node:
        """An operand in float32."""  # noqa: DOC501
        if not holds(value.type):
            return value
        if isinstance(value, Constant):
            wide = np.asarray(value.value, np.float32)
            return Constant(wide if wide.ndim else wide[()], widened(value.type, user), value.origin)
        if value not in self.wide:
            if not isinstance(value.type, Array | Scalar):
                raise refused(user)
            self.wide[value] = builder.emit(REGISTRY["from_bfloat16"], (value,))
        return self.wide[value]


def widened(t: Type, node: Apply) -> Any:
    """A type of bfloat16 as one of float32.

    Raises:
        LoweringError: it is no number or array.
    """  # noqa: DOC501
    if not isinstance(t, Array | Scalar):
        raise refused(node)
    return replace(t, dtype=WIDE)


def refused(node: Apply) -> LoweringError:
    """What a primitive cannot do on bfloat16."""
    name = getattr(node.fn, "name", "this")
    return LoweringError(
        f"{name} of bfloat16 cannot be compiled to native code; convert with .astype(np.float32), or use "
        '@relay(executor="interpreter")',
        node.origin,
    )
