"""Records of algebraic data types as leaves: converting a value of any form to a leaf of a given type."""

from __future__ import annotations

from ...abstract.families import FieldError
from ...abstract.family import Family, Variant
from ...abstract.types import Array, Data, NoneT, Struct, Type
from ...ir.node import Constant, Node
from ...ir.prim import REGISTRY
from ...prims.ops.data import data_as, data_make
from ..values.kinds import is_data, possible
from ..values.treedef import describe
from ..values.values import Dyn, KnownRecord, Seq, Static, Val
from .frames import Frame


def record(frame: Frame, family: Family, variant: Variant, values) -> KnownRecord:
    """A new record of a variant."""
    nodes: list[Node] = []
    for name, value, t in zip(variant.fields, values, variant.types, strict=True):
        nodes += field_nodes(frame, value, t, f"the field '{name}' of {variant.cls.__name__}")
    made = frame.builder.emit(data_make, tuple(nodes), {"type": Data(family), "variant": variant.number})
    return KnownRecord(made, (variant.number,))


def field_nodes(frame: Frame, value: Val, t: Type, what: str) -> list[Node]:
    """The leaves of a value, converted to a type.

    Raises:
        FieldError: it has another.
    """
    if isinstance(t, Data):
        return [adapt(frame, value, t, what)]
    if (
        isinstance(t, Struct)
        and isinstance(value, Seq)
        and (value.kind, value.fields, value.cls) == (t.kind, t.fields, t.cls)
    ):
        if len(value.elems) == len(t.elems):
            return [n for v, e in zip(value.elems, t.elems) for n in field_nodes(frame, v, e, what)]
    if isinstance(t, NoneT) and isinstance(value, Static) and value.value is None:
        return [frame.builder.emit(REGISTRY["none"], ())]
    if isinstance(value, Dyn) and value.type == t:
        return [value.node]
    have, wanted, hint = describe(value), str(t), ""
    if isinstance(value, Dyn) and str(t) == "float" and str(value.type) in ("int", "bool", "np.float64"):
        hint = ": write float(x), or 1.0 for 1, or annotate the field with what it holds"
    elif isinstance(value, Dyn) and isinstance(t, Array) and isinstance(value.type, Array):
        hint = f": convert it, .astype(np.{t.dtype})" if t.dtype != value.type.dtype else ""
        wanted = f"an array of {t.dtype} with shape {t.shape}"
    raise FieldError(f"{what} is annotated {wanted}, and is given {have}{hint}")


def adapt(frame: Frame, value: Val, t: Data, what: str = "the value") -> Node:
    """A value converted to a node of a `Data` type: None, a variant, or a record that is still taken apart.

    Raises:
        FieldError: it is not of the family, or may be None where that has no place.
    """
    if isinstance(value, Static) and value.value is None and t.nullable:
        return Constant(None, t)
    if t.family.of_functions and not is_data(value):
        return t.family.families.leaf(frame, value, t)
    if is_data(value) and value.type.family is t.family:
        if value.type == t:
            return value.node
        if t.nullable or 0 not in possible(value):
            return frame.builder.emit(data_as, (value.node,), {"type": t})
        raise FieldError(f"{what} is annotated {t}, and may be None here; test it before: if x is not None")
    if isinstance(value, Seq) and value.kind == "record" and value.cls in t.family.numbers:
        made = record(frame, t.family, t.family.variant(value.cls), value.elems)
        return adapt(frame, made, t, what)
    raise FieldError(f"{what} is annotated {t}, and is given {describe(value)}")
