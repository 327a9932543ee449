"""Values in the form that a joined skeleton prescribes: how they leave branches, loops and functions."""

from __future__ import annotations

from ...abstract.types import Data
from ...ir.node import Node
from ...prims.ops.control import undef
from ...utils.errors import InternalError
from ..values.treedef import Skeleton, skeleton, unknown
from ..values.values import (
    Bound,
    Closure,
    Derived,
    Iter,
    NeverVal,
    PoisonVal,
    Raised,
    Seq,
    SliceVal,
    Text,
    UnboundVal,
    Val,
)
from .frames import Frame


def parts_of(value: Text | Raised | SliceVal | Iter) -> tuple[Val, ...]:
    """The values in a string, an exception, a slice or an iterator, as in its skeleton."""
    if isinstance(value, Text):
        return value.operands
    if isinstance(value, Raised):
        return () if value.message is None else (value.message,)
    return (value.start, value.stop, value.step) if isinstance(value, SliceVal) else value.parts


def conform(frame: Frame, value: Val, skel: Skeleton) -> list[Node]:
    """The leaf nodes of a value in the form that a joined skeleton prescribes.

    Known numbers become leaves where the skeleton has forgotten them, unbound parts become placeholders.
    """
    from ..language.data import adapt
    from ..language.lists import leaf_node
    from ..values.unions import conform_choice

    nodes: list[Node] = []

    def go(value: Val, skel: Skeleton) -> None:
        if isinstance(value, UnboundVal | NeverVal | PoisonVal):
            nodes.extend(frame.builder.emit(undef, (), {"type": leaf.info}) for leaf in skel.leaves())
        elif skel.tag == "choice":
            nodes.extend(conform_choice(frame, value, skel, conform))
        elif skel.tag == "dyn":
            nodes.append(
                adapt(frame, value, skel.info) if isinstance(skel.info, Data) else leaf_node(frame, value, skel.info)
            )
        elif isinstance(value, Seq):
            for part, part_skel in zip(value.elems, skel.parts, strict=True):
                go(part, part_skel)
        elif isinstance(value, Closure):
            for (_, part), part_skel in zip(frame.captured(value), skel.parts, strict=True):
                go(part, part_skel)
        elif isinstance(value, Bound | Derived):
            go(value.receiver if isinstance(value, Bound) else value.function, skel.parts[0])
        elif isinstance(value, Text | Raised | SliceVal | Iter):
            for part, part_skel in zip(parts_of(value), skel.parts, strict=True):
                go(part, part_skel)
        elif skel.parts:
            inner: list[Node] = []
            actual = skeleton(value, inner, keep_constants=True, capture=frame.captured)
            if actual != skel:
                inner = []
                actual = skeleton(value, inner, keep_constants=False, capture=frame.captured)
                if actual != unknown(skel):
                    raise InternalError("infer", f"cannot conform {actual} to {skel}")
            nodes.extend(inner)

    go(value, skel)
    return nodes
