"""Updates of parts of arrays, as nodes of typed graphs: see `ir.prim.PartUpdate`."""

from __future__ import annotations

from typing import TypeGuard

from .node import Apply, Constant, Node, applies
from .prim import update_of


def is_update(node: Node | None) -> TypeGuard[Apply]:
    """Whether a node changes a part of its first operand."""
    return update_of(node) is not None


def same_position(a: Node, b: Node) -> bool:
    """Whether two nodes are one, or equal constants."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        return a.type == b.type and a.value == b.value
    return a is b


def reads_same_part(read: Node, array: Node, update: Apply) -> bool:
    """Whether a node is that part of an array that an update changes."""
    found = update_of(update)
    return (
        found is not None
        and applies(read, found.reads)
        and read.args[0] is array
        and same_position(read.args[1], update.args[2])
        and read.attrs["axis"] == update.attrs["axis"]
        and read.type == update.args[1].type
    )


__all__ = ["is_update", "reads_same_part", "same_position"]
