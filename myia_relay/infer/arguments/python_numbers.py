"""Python numbers that take a declared dtype, as arguments of the definitions of a Relay module and of their libraries do."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.declared import Constructed
from ...abstract.types import Data, Scalar, Struct, Type, numpy_dtype
from ...utils.errors import TypeError_
from ..values.treedef import TreeDef

PYTHON = {int: "int64", float: "float64", bool: "bool"}


def fits(have: str, wanted: str) -> bool:
    """Whether a Python number can take a dtype: an int that of a float, but a float no int's, and a bool only its own."""
    kinds = {"int64": ("i", "u", "f", "b"), "float64": ("f", "b"), "bool": ("bool",)}[have]
    if wanted == "bool" or have == "bool":
        return wanted == have
    return wanted.startswith(kinds)


def number(value: Any, dtype: str, what: str) -> Any:
    """A Python number of a dtype.

    Raises:
        TypeError_: it does not fit.
    """
    kind = numpy_dtype(dtype)
    if isinstance(value, int) and not isinstance(value, bool) and kind.kind in "iu":
        info = np.iinfo(kind)
        if not info.min <= value <= info.max:
            raise TypeError_(f"{what} is {dtype}, which has no {value}")
    with np.errstate(over="ignore"):
        return kind.type(value)


def as_declared(value: Any, wanted: TreeDef, what: str) -> Any:
    """An argument whose Python numbers have the dtypes of a treedef, wherever they can take them.

    Args:
        value: of whatever structure.
        wanted: that of the program's argument.
        what: how errors call it.

    Raises:
        TypeError_: an integer is out of the range of its dtype.
    """
    if wanted.tag == "dyn":
        return _of_type(value, wanted.info, what)
    if wanted.tag == "seq" and type(value) is tuple and len(value) == len(wanted.parts):
        return tuple(as_declared(v, w, what) for v, w in zip(value, wanted.parts, strict=True))
    return value


def _of_type(value: Any, t: Type, what: str) -> Any:
    """A value with the dtypes of a type; each value of a data type once, and no recursion along them."""
    if not isinstance(t, Data):
        return _plain(value, t, {}, what)
    done: dict[tuple[int, Type], Any] = {}
    stack: list[tuple[bool, Any, Any]] = [(False, value, t)]
    while stack:
        ready, top, top_t = stack.pop()
        if (id(top), top_t) in done:
            continue
        if not isinstance(top, Constructed) or type(top) not in top_t.family.numbers:
            done[id(top), top_t] = top
            continue
        types = top_t.family.variant(type(top)).types
        if not ready:
            stack.append((True, top, top_t))
            for v, f in zip(top.fields, types, strict=True):
                stack.extend((False, part, inner) for part, inner in _data_in(v, f))
            continue
        new = [_plain(v, f, done, what) for v, f in zip(top.fields, types, strict=True)]
        changed = any(a is not b for a, b in zip(new, top.fields, strict=True))
        done[id(top), top_t] = type(top)(*new) if changed else top
    return done[id(value), t]


def _plain(value: Any, t: Type, done: dict, what: str) -> Any:
    """A number or tuple with the dtypes of a type; values of data types are those that are done."""
    if isinstance(t, Data):
        return done[id(value), t]
    if isinstance(t, Scalar) and type(value) in PYTHON and fits(PYTHON[type(value)], t.dtype):
        return number(value, t.dtype, what)
    if isinstance(t, Struct) and type(value) is tuple and len(value) == len(t.elems):
        parts = tuple(_plain(v, e, done, what) for v, e in zip(value, t.elems, strict=True))
        return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    return value


def _data_in(value: Any, t: Type) -> list[tuple[Any, Data]]:
    """The values of data types within a field."""
    if isinstance(t, Data):
        return [(value, t)]
    if isinstance(t, Struct) and type(value) is tuple and len(value) == len(t.elems):
        return [found for v, e in zip(value, t.elems, strict=True) for found in _data_in(v, e)]
    return []
