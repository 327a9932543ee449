"""Loop-invariant code motion: what depends on loop constants alone is computed once, before the loop.

Only operations move that are pure, cannot raise and contain no loop (if the loop does not run, they are computed for
nothing, which is cheap and harmless). Views and broadcasts stay, and are repeated outside where something that moves
needs them: moved on their own, they would be materialised. A part of an array that a product or a convolution reads is
materialised in any case, so it moves: `h @ w[:n]` copies the part once.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...abstract.dims import never_negative
from ...abstract.types import Array
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import Primitive
from ...ir.rewrite import Effects, Rewriter, drop_dead, emit_like, lookup, same_interface
from ...ir.sizes import bound_in, mentioned
from ..rewrite.simplify import holds_tape

STAY = {
    *(
        "make_struct",
        "get_item",
        "broadcast_to",
        "reshape",
        "as_array",
        "undef",
        "none",
        "dim_size",
        "iota",
    ),
    *("one_hot", "tri_mask", "stop_gradient", "transpose", "slice", "flip", "pad"),
}
"""Operations that cost nothing, or only memory."""
COPIES = {"slice", "flip", "pad"}
"""Of these, what copies its operand for a kernel that reads memory."""


@dataclass(frozen=True)
class HoistInvariants:
    """The pass; inner loops first, so that values leave as many loops as they can."""

    name: str = "hoist_invariants"

    def __call__(self, graph: Graph) -> Graph:
        return _Hoist().rewrite(graph)


class _Hoist(Rewriter):
    acts_on = ("for_loop", "while_loop")
    mark = HoistInvariants

    def __init__(self):
        super().__init__()
        self.effects = Effects()

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        loop = isinstance(node.fn, Primitive) and node.fn.name in ("for_loop", "while_loop")
        if loop and not any(isinstance(g, Graph) and self.incomplete(g) for g in attrs.values()):
            found = hoist(builder, node, args, attrs)
            if found is not None:
                self.changed = True
                return found
        return super().node(builder, node, args, attrs)


def hoist(b: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node | None:
    """The loop with invariant values of its graphs as further constants; None if there are none."""
    counted = node.fn.name == "for_loop"
    lead = 3 if counted else 0
    first_constant = (1 if counted else 0) + attrs["carried"]
    constants = args[lead + attrs["carried"] :]
    names = ("body",) if counted else ("body", "cond")
    found = {k: invariants(attrs[k], first_constant) for k in names}
    if not any(found.values()):
        return None
    extra: list[Node] = []
    moved: dict[str, list[Apply]] = {}
    for key in names:
        graph = attrs[key]
        env: dict[Node, Node] = dict(zip(graph.params[first_constant:], constants, strict=True))
        roots = found[key]
        for inner in needed_outside(graph, roots):
            env[inner] = emit_like(b, inner, tuple(lookup(env, a) for a in inner.args))
        moved[key] = roots
        extra.extend(env[r] for r in roots)
    new_attrs = dict(attrs)
    for key in names:
        new, env = same_interface(attrs[key])
        inner_builder = Builder(new)
        for other in names:
            for root in moved[other]:
                param = new.add_parameter(root.name or "k", root.type)
                if other == key:
                    env[root] = param
        for inner in attrs[key].nodes:
            if inner not in env:
                env[inner] = emit_like(inner_builder, inner, tuple(lookup(env, a) for a in inner.args))
        new.output = lookup(env, attrs[key].output)
        drop_dead(new, Effects())
        new_attrs[key] = new
    b.origin = node.origin
    result = b.emit(node.fn, (*args, *extra), new_attrs, node.type)
    result.name = node.name
    return result


def invariants(graph: Graph, first_constant: int) -> list[Apply]:
    """The applications to move: invariant, expensive enough, and used by something that stays."""
    fixed: set[Node] = set(graph.params[first_constant:])
    inside = bound_in(graph)
    for node in graph.nodes:
        if inside and not inside.isdisjoint(mentioned(node)):
            continue
        if movable(node) and all(a in fixed or isinstance(a, Constant) for a in node.args):
            fixed.add(node)
    used: set[Node] = {graph.output}
    for node in graph.nodes:
        if node not in fixed or node.fn.name in STAY:
            used.update(node.args)
    copied = read_from_memory(graph, fixed)
    return [n for n in graph.nodes if n in fixed and (n in copied if n.fn.name in STAY else n in used)]


def read_from_memory(graph: Graph, fixed: Container[Node]) -> set[Node]:
    """The applications of `COPIES` whose results kernels read that are not invariant, perhaps transposed."""
    read: set[Node] = set()
    for node in reversed(graph.nodes):
        if not isinstance(node.fn, Primitive):
            continue
        if node.fn.kind == "opaque" and node not in fixed or node.fn.name in ("transpose", "reshape") and node in read:
            read.update(node.args)
    return {n for n in read if isinstance(n, Apply) and isinstance(n.fn, Primitive) and n.fn.name in COPIES}


def movable(node: Apply) -> bool:
    """Whether an application may be computed earlier, and speculatively."""
    if not isinstance(node.fn, Primitive) or node.fn.effect or node.fn.kind in ("control", "effect"):
        return False
    # A field of a record exists only where the variant has been tested. Lists are changed in place where their old
    # value is dead, and an index is in range where it is used.
    if node.fn.name == "data_field" or node.fn.name.startswith(("tape_", "list_")) or holds_tape(node.type):
        return False
    return is_there(node)


def is_there(node: Apply) -> bool:
    """Whether an application only reads what exists for all sizes; `x[3:]` stays behind the check that there are three
    elements.
    """
    if isinstance(node.type, Array) and not all(map(never_negative, node.type.shape)):
        return False
    if node.fn.name != "slice":
        return True
    ranges = zip(node.args[0].type.shape, *(node.attrs[k] for k in ("starts", "sizes", "steps")), strict=True)
    ends = [(n, first, first + (size - 1) * step) for n, first, size, step in ranges if size != 0]
    return all(never_negative(d) for n, *places in ends for p in places for d in (p, n - 1 - p))


def needed_outside(graph: Graph, roots: Sequence[Node]) -> list[Apply]:
    """The roots and all applications that they depend on, in order."""
    needed: set[Node] = set(roots)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.args)
    return [n for n in graph.nodes if n in needed]
