"""Constructors of declared data types (`abstract.declared`): which instance a call of one makes.

The types of what the fields are given decide. Where they leave a parameter open, the value is a record that is taken apart; it
becomes one of an instance where it meets one (`infer.engine.records.adapt`).
"""

from __future__ import annotations

from typing import Any

from ...abstract.declared import Declaration, declaration_of, instance_args
from ...abstract.family import Family
from ...abstract.types import NONE, Struct
from ..values.treedef import Mismatch, tree_structure, type_of, unknown
from ..values.values import Dyn, Listed, Seq, Static, Val


def instance_made(engine, frame, declaration: Declaration, cls: type, values: tuple[Val, ...]) -> Family | None:
    """The family of the value that a constructor makes; None where a parameter stays open.

    Raises:
        TypeError_: the instance refers to ever larger ones.
    """

    def view(value: Val) -> Any:
        if isinstance(value, Dyn):
            return value.type
        if isinstance(value, Seq):
            if value.kind == "record" and declaration_of(value.cls) is not None:
                return value.cls, value.elems
            if value.kind != "list":
                return Struct(value.kind, (), value.fields, value.cls), value.elems
        if isinstance(value, Static):
            return NONE if value.value is None else None
        if isinstance(value, Seq | Listed):
            try:
                return type_of(unknown(tree_structure(value, capture=frame.captured)))
            except Mismatch:
                return None
        return None

    args = instance_args(cls, values, view)
    return None if args is None else engine.families.instances.of(declaration, args)
