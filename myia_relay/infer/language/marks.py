"""Marks for a debugger: the variables that a mark shows become operands of a typed `mark`, with the treedefs to rebuild them."""

from __future__ import annotations

from typing import Any

from ...ir import syntax as S
from ...ir.node import Apply, Node
from ...prims.ops.effects import MarkedPlace, mark
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..values.treedef import TreeDef, tree_structure
from ..values.values import (
    NONE_VAL,
    Bound,
    Cell,
    ClosureVal,
    Derived,
    Dyn,
    Listed,
    NeverVal,
    PoisonVal,
    Seq,
    Static,
    TaggedUnion,
    Text,
    UnboundVal,
    Val,
)
from .registry import handles


class Shown:
    """What stands for a value that exists in compiled code only."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


@handles(S.mark)
async def place(engine: Engine, frame: Frame, node: Apply) -> Val:
    leaves: list[Node] = []
    variables: list[tuple[str, TreeDef]] = [
        (name, tree_structure(Static(Shown(f"<function {function}>")))) for name, function in node.attrs["functions"]
    ]
    for name, arg in zip(node.attrs["names"], node.args, strict=True):
        value: Any = engine.value(frame, arg)
        if isinstance(value, Cell):
            value = frame.cell(value) if frame.has_cell(value) else None
        if value is None or isinstance(value, UnboundVal | NeverVal | PoisonVal):
            continue
        variables.append((name, tree_structure(showable(value), leaves)))
    attrs = node.attrs
    shown = MarkedPlace(attrs["kind"], attrs["function"], attrs["owner"], attrs["binds"], tuple(variables))
    frame.builder.emit(mark, tuple(leaves), {"place": shown})
    return NONE_VAL


def showable(value: Val) -> Val:
    """A value that can be rebuilt as a Python object, with the names of functions in place of functions."""
    if isinstance(value, Seq):
        if value.kind == "frozen":
            return showable(value.elems[0])
        return Seq(value.kind, tuple(map(showable, value.elems)), value.fields, value.cls)
    if isinstance(value, TaggedUnion):
        return TaggedUnion(value.tag, tuple(map(showable, value.options)))
    if isinstance(value, ClosureVal):
        return Static(Shown(f"<function {value.graph.name}>"))
    if isinstance(value, Bound):
        return Static(Shown(f"<method {getattr(value.function, '__name__', value.function)}>"))
    if isinstance(value, Derived):
        return Static(Shown(f"<{value.transform} of a function>"))
    if isinstance(value, Dyn | Static | Listed | Text):
        return value
    return Static(Shown(f"<{type(value).__name__.removesuffix('Val').lower()}>"))
