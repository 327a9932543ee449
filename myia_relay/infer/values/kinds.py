"""The kind of a value, as far as it is known at compile time: a list, a value of a data type and its variants, its class."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from ...abstract.family import Family
from ...abstract.types import Array, Data, List, Scalar, numpy_dtype
from ...abstract.words import StringCode
from ...library.complex_numbers import Complex
from ...utils.errors import TypeError_
from .values import Bound, ClosureVal, Dyn, Iter, KnownRecord, Listed, Raised, Seq, SliceVal, Static, Text, Val

ITERABLES = {"range": range, "zip": zip, "columns": zip, "enumerate": enumerate, "tuple": tuple}


def is_data(value: Val | None) -> TypeGuard[Dyn]:
    """Whether a value is one of an algebraic data type."""
    return isinstance(value, Dyn) and isinstance(value.type, Data)


def possible(value: Dyn) -> tuple[int, ...]:
    """The numbers of the possible variants of a value; 0 is None."""
    if isinstance(value, KnownRecord):
        return value.variants
    numbers = tuple(v.number for v in value.type.family.variants)
    return (0, *numbers) if value.type.nullable else numbers


def class_of(value: Dyn) -> type | None:
    """The class of a value whose variant is known; None for None."""
    (number,) = possible(value)
    return value.type.family.variants[number - 1].cls if number else None


def name_of(family: Family, number: int) -> str:
    """The name of the class of a variant."""
    return family.variants[number - 1].cls.__name__ if number else "NoneType"


def instances(family: Family, classes) -> tuple[int, ...]:
    """The variants that are instances of a class, a tuple of classes or a union.

    Raises:
        TypeError_: the class of a function that is made at run time is asked for.
    """
    wanted = classes if isinstance(classes, tuple) else getattr(classes, "__args__", (classes,))
    flat = []
    for c in wanted:
        flat += c if isinstance(c, tuple) else getattr(c, "__args__", (c,)) if not isinstance(c, type) else (c,)
    if family.of_functions and any(c is not None and not issubclass(types.NoneType, c) for c in flat):
        raise TypeError_(
            "the class of a function that is made at run time is not known in compiled code; test `f is None`"
        )
    numbers = [v.number for v in family.variants if any(issubclass(v.cls, c) for c in flat)]
    if any(c is None or issubclass(types.NoneType, c) for c in flat):
        numbers.insert(0, 0)
    return tuple(numbers)


def instances_of(family: Family, annotation: Any) -> tuple[int, ...] | None:
    """The variants that an annotation allows; None where it says nothing about classes."""
    plain = (
        annotation is None
        or isinstance(annotation, type | types.UnionType)
        or typing.get_origin(annotation) is typing.Union
    )
    try:
        return instances(family, type(None) if annotation is None else annotation) if plain else None
    except TypeError:  # a member of the union is not a class
        return None


def restricted(value: Dyn, numbers) -> KnownRecord:
    """A value that is known to be one of the given variants."""
    return KnownRecord(value.node, tuple(n for n in possible(value) if n in numbers))


def is_run_time(value: Val | None) -> TypeGuard[Dyn | Listed]:
    """Whether a value is a list of run-time length."""
    return isinstance(value, Listed) or isinstance(value, Dyn) and isinstance(value.type, List)


def is_list(value: Val | None) -> TypeGuard[Dyn | Listed | Seq]:
    """Whether a value is a list."""
    return is_run_time(value) or isinstance(value, Seq) and value.kind == "list"


def complex_parts(value: Val | None) -> tuple[Dyn, Dyn] | None:
    """The real and the imaginary part of an array of complex numbers; None for any other value."""
    if not isinstance(value, Seq) or value.cls is not Complex:
        return None
    real, imag = value.elems
    if not isinstance(real, Dyn) or not isinstance(imag, Dyn) or not isinstance(real.type, Array):
        return None
    return real, imag


def is_any_array(value: Val | None) -> bool:
    """Whether a value is an array, of real or of complex numbers."""
    return isinstance(value, Dyn) and isinstance(value.type, Array) or complex_parts(value) is not None


def kind_of(value: Val) -> str | None:
    """ "array", "list" or "dict" for an object that can be changed in place itself; None for all others."""
    if is_list(value):
        return "list"
    if is_any_array(value):
        return "array"
    return "dict" if isinstance(value, Seq) and value.kind == "dict" else None


def is_index(value: Val | None) -> TypeGuard[Dyn]:
    """Whether a value is an integer."""
    return (
        isinstance(value, Dyn)
        and isinstance(value.type, Scalar)
        and value.type.dtype.lstrip("u").startswith(("int", "bool"))
    )


def classes_in(wanted: Any) -> tuple[type, ...]:
    """The classes in the second argument of `isinstance`.

    Raises:
        TypeError_: it is no class, and no tuple or union of classes.
    """
    if isinstance(wanted, tuple):
        return tuple(c for part in wanted for c in classes_in(part))
    if isinstance(wanted, types.UnionType) or typing.get_origin(wanted) is typing.Union:
        return tuple(c for part in wanted.__args__ for c in classes_in(type(None) if part is None else part))
    if typing.get_origin(wanted) is not None:
        raise TypeError_("isinstance() argument 2 cannot be a parameterized generic")
    if not isinstance(wanted, type):
        raise TypeError_("isinstance() arg 2 must be a type, a tuple of types, or a union")
    return (wanted,)


def is_instance(value: Val, classes: Any) -> bool | None:
    """`isinstance` of an inferred value: a class, a tuple of classes or a union; None if only run time tells."""
    if is_data(value):
        hits = {n in instances(value.type.family, classes) for n in possible(value)}
        return hits.pop() if len(hits) == 1 else None
    return any(issubclass(own, c) for own in _classes(value) for c in classes_in(classes))


def _classes(value: Val) -> tuple[type, ...]:
    """The class of a value, and that which it has outside of compiled code if a class of ours stands for it there."""
    own = python_class(value)
    outside = getattr(own, "__relay_outside__", None)
    if outside is None or not isinstance(value, Seq):
        return (own,)
    return own, outside(python_class(value.elems[0]))


def python_class(value: Val) -> type:
    """The Python class of a value.

    Raises:
        TypeError_: it is an object of which compiled code does not know the class.
    """
    if is_list(value):
        return list
    if isinstance(value, Dyn):
        if isinstance(value.type, Array):
            return np.ndarray
        if isinstance(value.type, Scalar):
            if value.type.weak:
                return {"int64": int, "float64": float, "bool": bool}[value.type.dtype]
            return numpy_dtype(value.type.dtype).type
    if isinstance(value, Seq):
        if value.kind in ("record", "dataset"):
            return value.cls
        return {"tuple": tuple, "list": list, "dict": dict}[value.kind]
    if isinstance(value, Static):
        return type(value.value)
    if isinstance(value, Text):
        return str
    if isinstance(value, SliceVal):
        return slice
    if isinstance(value, Raised):
        return value.cls
    if isinstance(value, Bound):
        return types.BuiltinMethodType if isinstance(value.function, str) else types.MethodType
    if isinstance(value, Iter) and value.kind in ITERABLES:
        return ITERABLES[value.kind]
    if isinstance(value, ClosureVal):
        return types.FunctionType
    raise TypeError_("the class of this object is not known in compiled code")


def is_word(value: Val | None) -> TypeGuard[Seq]:
    """Whether a value is a string that is known at run time only, an entry of a list for example."""
    return isinstance(value, Seq) and value.cls is StringCode


def is_range(value: Val | None) -> TypeGuard[Iter]:
    """Whether a value is a range."""
    return isinstance(value, Iter) and value.kind == "range"


def range_parts(value: Iter) -> tuple[Dyn, Dyn, Dyn]:
    """Start, stop and step of a range."""
    start, stop, step = value.parts
    assert isinstance(start, Dyn) and isinstance(stop, Dyn) and isinstance(step, Dyn)
    return start, stop, step


def known_range(value: Val) -> range | None:
    """A range whose start, stop and step are known at compile time, as a Python range; None for any other value."""
    parts = range_parts(value) if is_range(value) else ()
    return range(*[p.known_value for p in parts]) if parts and all(p.known for p in parts) else None


def are_leaves(values: Sequence[Val]) -> TypeGuard[Sequence[Dyn]]:
    """Whether all of the given values are leaves."""
    return all(isinstance(v, Dyn) for v in values)


def is_text(value: Val | None) -> TypeGuard[Text | Static]:
    """Whether a value is a string."""
    return isinstance(value, Text) or isinstance(value, Static) and isinstance(value.value, str)
