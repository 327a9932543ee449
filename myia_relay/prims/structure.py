"""Structures: building and taking apart tuples, lists, dicts, records and closures.

They cost nothing in compiled code: a structure is its parts.
"""

from __future__ import annotations

from ..abstract.types import NONE, Struct, Type
from ..ir.prim import primitive
from ..utils.errors import InternalError


@primitive("struct")
def make_struct(*elems, type):
    """A structure of the given type from its parts.

    Args:
        *elems: the parts, in the order of `type.elems`.
        type: a `Struct`; `kind` and `cls` say what the value is outside (tuple, dict, dataclass, ...).
    """
    return rebuild(type, elems)


def rebuild(type: Struct, elems):
    """The Python value of a structure type with these parts."""
    if type.kind == "list":
        return list(elems)
    if type.kind == "dict":
        return dict(zip(type.fields, elems, strict=True))
    if type.kind == "record":
        if issubclass(type.cls, tuple):
            return type.cls(*elems)
        # `__init__` may refuse or change what it is given; a record that was taken apart is put together as it was.
        record = object.__new__(type.cls)
        for name, value in zip(type.fields, elems, strict=True):
            object.__setattr__(record, name, value)
        return record
    return tuple(elems)


def part(value, type: Struct, index: int):
    """Part `index` of a Python value that has this structure type."""
    if type.kind == "dict":
        return value[type.fields[index]]
    if type.kind == "record" and not isinstance(value, tuple):
        return getattr(value, type.fields[index])
    return value[index]


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
    """Part `index` (a static int) of a structure. The executors know the structure's type and call `part`."""
    return struct[index]


@get_item.infer
def _(struct: Type, *, index):
    if not isinstance(struct, Struct):
        raise InternalError("get_item", f"{struct} is no structure")
    return struct.elems[index]


# The adjoint of get_item puts the cotangent at its place among zeros; `ad.reverse` does so without building zeros.
get_item.columns["vjp_special"] = True


@primitive("struct", differentiable=False)
def none():
    """The value None."""
    return None


@none.infer
def _():
    return NONE
