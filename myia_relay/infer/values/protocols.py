"""Which records are sequences, have a length or a truth value, and are compared by their fields.

Idea: the value of a record holds its fields as the value of a tuple holds its elements, but only a NamedTuple is a
tuple. Methods that a class defines itself (`__len__`, `__bool__`, `__getitem__`, arithmetic) are called. Methods that
inference would have to see through (`__iter__`, `__contains__`, and `__eq__` inside another operation) are refused, and
so are operations that the class does not define.

Input: an inferred structure. Output: its items, or None. Source: the data model of the Python reference.
"""

from __future__ import annotations

import types
from typing import Any, TypeGuard

from ...utils.attributes import is_generated, own_attribute
from ...utils.errors import LoweringError, TypeError_
from .kinds import class_of, is_data, is_word, possible
from .treedef import describe
from .values import Seq, Spread, Val


def is_record(value: Val) -> TypeGuard[Seq]:
    """Whether a value is a NamedTuple or a dataclass."""
    return isinstance(value, Seq) and value.kind == "record"


# NamedTuples have no common base class, so to a type checker their attributes may be anything.


def is_named_tuple(value: Any) -> TypeGuard[Any]:
    """Whether an object is a NamedTuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_named_tuple_class(cls: type) -> TypeGuard[Any]:
    """Whether a class is one of NamedTuples."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def items(value: Seq, *names: str) -> tuple[Val, ...]:
    """The items of an iteration over a structure, or of another access to its elements.

    Args:
        value: the structure.
        names: special methods by which its elements are reached; `__iter__` by default.

    Raises:
        TypeError_: it is a dataclass, or its class writes one of these methods itself.
        LoweringError: it is a string that is known at run time only.
    """
    if value.kind != "record":
        return value.elems
    if is_word(value):
        raise LoweringError("the characters of a string that is known at run time only are not known to compiled code")
    names = names or ("__iter__",)
    written = [n for n in names if written_method(value.cls, n) is not None]
    if written:
        raise TypeError_(
            f"{describe(value)} has a {written[0]} of its own, which this would have to run; call a method that returns a tuple"
        )
    if not issubclass(value.cls, tuple):
        raise TypeError_(f"{describe(value)} is a dataclass, not a sequence; use its fields: {', '.join(value.fields)}")
    return value.elems


def truth_method(value: Val) -> object:
    """The method that decides a record's truth value; None if there is none."""
    for name in ("__bool__", "__len__"):
        if (method := user_method(value, name)) is not None and is_record(value):
            return method
    return None


def is_dataclass(value: Val) -> bool:
    """Whether a value is a dataclass: it is always true, except for `truth_method`, and is not a sequence."""
    return is_record(value) and not issubclass(value.cls, tuple)


def equal_by_fields(value: Val) -> None:
    """Do nothing if a structure is compared by its elements.

    Raises:
        TypeError_: its class decides by itself, or it equals nothing but itself.
    """
    if not is_record(value):
        return
    if written_method(value.cls, "__eq__") is not None:
        raise TypeError_(f"{describe(value)} has an __eq__ of its own, which is not called here; compare what is in it")
    parameters = getattr(value.cls, "__dataclass_params__", None)
    if parameters is not None and not parameters.eq and value.cls.__eq__ is object.__eq__:
        raise TypeError_(
            f"{describe(value)} is compared by identity (eq=False), which compiled code does not know; compare fields"
        )
    fields = getattr(value.cls, "__dataclass_fields__", {})
    if parameters is not None and not all(f.compare for f in fields.values()):
        raise TypeError_(f"{describe(value)} has fields that == leaves out (compare=False); compare fields one by one")


def lookup(table: dict, key: Any) -> Any:
    """`table.get(key)`, None for keys that cannot be hashed."""
    try:
        return table.get(key)
    except TypeError:
        return None


def user_method(value: Val, name: str) -> Any:
    """The Python function behind a special method that a record's class defines itself, or None."""
    if isinstance(value, Seq) and value.kind == "record":
        return written_method(value.cls, name)
    if is_data(value) and len(possible(value)) == 1:
        cls = class_of(value)
        return written_method(cls, name) if cls is not None else None
    return None


def written_method(cls: type, name: str) -> Any:
    """The Python function behind a special method that a class defines itself, or None."""
    found = getattr(cls, name, None)
    function = own_attribute(found, "__relay_function__", found)
    # What dataclasses and NamedTuples generate (comparison by fields) has no source; `structures` knows it.
    written = isinstance(function, types.FunctionType) and not is_generated(function)
    return function if written else None


def starred(value: Spread) -> tuple[Val, ...]:
    """The values that replace a starred value.

    Raises:
        TypeError_: its length is not known at compile time.
    """
    if not isinstance(value.value, Seq):
        raise TypeError_(f"*: cannot spread {describe(value.value)} here; its length must be known at compile time")
    return items(value.value)


def require_plain(cls: type) -> None:
    """Refuse to make an instance of a class whose own code runs then.

    Raises:
        TypeError_: a `__post_init__`, an `__init__` or `__new__` that is written out, or fields that it would have to set.
    """
    own = [name for name in ("__init__", "__new__") if getattr(getattr(cls, name), "__code__", None) is not None]
    own = [name for name in own if not is_generated(getattr(cls, name))]
    own += ["__post_init__"] * hasattr(cls, "__post_init__")
    if own:
        raise TypeError_(
            f"the class {cls.__name__} has its own {own[0]}, which compiled code does not run; make it outside, or in a function"
        )
    for field in getattr(cls, "__dataclass_fields__", {}).values():
        if not field.init:
            raise TypeError_(
                f"the field '{field.name}' of {cls.__name__} is not given when it is made; make it a property"
            )
