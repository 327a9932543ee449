"""Algebraic data types: making a record of a variant, testing for a variant, taking leaves out.

The reference implementations work on the user's own objects, so these are the values of the interpreter and the python
executor. None is the null of types that have it. `data_field` expects a value of the variant that it names: the code
that emits it has tested that before.

A field is addressed by its leaves: numbers, arrays and references, numbered among all leaves of the variant (a field
that is a tuple has several).
"""

from __future__ import annotations

from ...abstract.family import Variant
from ...abstract.structures import part, rebuild
from ...abstract.types import BOOL, Data, NoneT, Struct, Type
from ...ir.prim import primitive
from ...utils.errors import InternalError


def variant_of(type: Data, number: int) -> Variant:
    """The variant with a number."""
    return type.family.variants[number - 1]


def _built(type: Type, leaves: list):
    """A Python value from its leaves; consumes the list from its front."""
    if isinstance(type, Struct):
        return rebuild(type, [_built(t, leaves) for t in type.elems])
    leaf = leaves.pop(0)
    return None if isinstance(type, NoneT) else leaf


def make_record(variant: Variant, leaves) -> object:
    """The object of a variant with these leaves."""
    rest = list(leaves)
    values = [_built(t, rest) for t in variant.types]
    record = object.__new__(variant.cls)
    for name, value in zip(variant.fields, values, strict=True):
        object.__setattr__(record, name, value)
    return record


def leaf_path(variant: Variant, index: int) -> tuple[str, list[tuple[Struct, int]]]:
    """How to get at a leaf: the field it is in, and the parts to take within it."""
    field = max(k for k, start in enumerate(variant.starts) if start <= index and _size(variant.types[k]))
    steps, t, rest = [], variant.types[field], index - variant.starts[field]
    while isinstance(t, Struct):
        for k, e in enumerate(t.elems):
            if rest < _size(e):
                steps.append((t, k))
                t = e
                break
            rest -= _size(e)
    return variant.fields[field], steps


def _size(t: Type) -> int:
    return sum(map(_size, t.elems)) if isinstance(t, Struct) else 1


@primitive("struct")
def data_make(*leaves, type, variant):
    """A record.

    Args:
        *leaves: of its fields, in order.
        type: a `Data`.
        variant: the number of the variant.
    """
    return make_record(variant_of(type, variant), leaves)


@data_make.infer
def _(*leaves, type, variant):
    wanted = variant_of(type, variant).leaves
    if leaves != wanted:
        raise InternalError("data_make", f"{', '.join(map(str, leaves))} for the leaves of {type}, variant {variant}")
    return type


@primitive("struct", differentiable=False)
def data_is(data, *, type, variants):
    """Whether a value is of one of some variants (a tuple of numbers; 0 is None)."""
    number = 0 if data is None else type.family.numbers[data.__class__]
    return number in variants


@data_is.infer
def _(data, *, type, variants):
    return BOOL


@primitive("struct")
def data_field(data, *, type, variant, index):
    """A leaf of a record that is of the variant."""
    field, steps = leaf_path(variant_of(type, variant), index)
    value = getattr(data, field)
    for t, k in steps:
        value = part(value, t, k)
    return value


@data_field.infer
def _(data, *, type, variant, index):
    return variant_of(type, variant).leaves[index]


@primitive("struct")
def data_as(data, *, type):
    """The same value as one of another type of its family: one that may be None, or one that is known not to be.

    A gradient may be taken for a tangent too: the one has no None where the other has none.
    """
    return data


@data_as.infer
def _(data, *, type):
    if not isinstance(data, Data) or type.family is not data.family and type.family is not _as_tangent(data.family):
        raise InternalError("data_as", f"{data} as {type}")
    return type


def _as_tangent(family):
    """The family of which values of a family are tangents as they are: those of gradients are."""
    return family.tangent if family.gradient is family else None


@primitive("struct", differentiable=False)
def data_same(a, b):
    """Whether two values are the same object."""
    return a is b


@data_same.infer
def _(a, b):
    return BOOL


__all__ = ["data_as", "data_field", "data_is", "data_make", "data_same", "leaf_path", "make_record", "variant_of"]
