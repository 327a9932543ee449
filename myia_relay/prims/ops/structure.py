"""Structures: building and taking apart tuples, lists, dicts, records and closures.

They cost nothing in compiled code: a structure is its parts.
"""

from __future__ import annotations

from ...abstract.structures import inside
from ...abstract.types import NONE, Struct, Type
from ...ir.prim import primitive
from ...utils.errors import InternalError


@primitive("struct")
def make_struct(*elems, type):
    """A structure of the given type from its parts.

    Args:
        *elems: the parts, in the order of `type.elems`.
        type: a `Struct`; `kind` and `cls` say what the value is outside (tuple, dict, dataclass, ...).
    """
    return inside(type, elems)


@make_struct.infer
def _(*elems, type):
    if len(elems) != len(type.elems):
        raise InternalError("make_struct", f"{len(elems)} parts for {type}")
    return Struct(type.kind, tuple(elems), type.fields, type.cls)


@make_struct.vjp
def _(*args, type):
    *elems, _out, dout = args
    return tuple(dout[i] for i in range(len(elems)))


@primitive("struct")
def get_item(struct, *, index):
    """Part `index` (a static int) of a structure. The executors know the structure's type and call `abstract.structures.part`."""
    return struct[index]


@get_item.infer
def _(struct: Type, *, index):
    if not isinstance(struct, Struct):
        raise InternalError("get_item", f"{struct} is no structure")
    return struct.elems[index]


@primitive("struct", differentiable=False)
def none():
    """The value None."""
    return None


@none.infer
def _():
    return NONE
