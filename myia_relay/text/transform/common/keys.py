"""Keys under which equal atoms and equal operations are found."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Hashable

from ...tree import (
    Attribute,
    Attributes,
    CallExpr,
    ConstructorName,
    Expression,
    GlobalVar,
    Literal,
    LocalVar,
    OperatorName,
    Projection,
    TensorConstant,
    TupleExpr,
)


def atom_key(x: Expression) -> Hashable:
    """A key that two atoms share only if they are the same value, to the bit."""
    match x:
        case LocalVar():
            return x.local
        case Literal(value=float() as number):
            return ("literal", x.dtype, struct.pack("d", number))
        case Literal():
            return ("literal", x.dtype, int(x.value))
        case TensorConstant():
            return ("tensor", x.value.dtype.str, x.value.shape, hashlib.blake2b(x.value.tobytes()).digest())
        case GlobalVar() | OperatorName() | ConstructorName():
            return (type(x).__name__, x.name)
        case TupleExpr():
            return ("tuple", tuple(map(atom_key, x.fields)))
    return x


def attribute_key(value: Attribute) -> Hashable:
    """A key of an attribute: 1, 1.0 and True are three."""
    if isinstance(value, tuple):
        return tuple(map(attribute_key, value))
    if isinstance(value, float):
        return ("float", struct.pack("d", value))
    return (type(value).__name__, value)


def attributes_key(attributes: Attributes) -> Hashable:
    """A key of attributes, in whatever order they are written."""
    return tuple(sorted((name, attribute_key(value)) for name, value in attributes))


def operation_key(op: Expression) -> Hashable | None:
    """A key that two calls, tuples or projections share only if they compute the same from the same; None for all else."""
    match op:
        case CallExpr():
            return ("call", atom_key(op.callee), tuple(map(atom_key, op.args)), attributes_key(op.attributes))
        case TupleExpr():
            return atom_key(op)
        case Projection():
            return ("projection", atom_key(op.tuple), op.index)
    return None
