"""Python values of types with parts: how they are assembled and taken apart, and lists that keep their versions.

In Python a run-time list is an `Items`: the newest version of a list holds the entries, and each older version holds
its difference from the next. Changes of the newest version take constant time, and older versions remain available.

Source: H. Baker, "Shallow binding makes functional arrays fast" (SIGPLAN Notices, 1991).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .types import List, Struct, Type, element_dtype, numpy_dtype


def rebuild(type: Struct, elems):
    """The Python value of a structure type with these parts."""
    if type.kind == "union":
        which, *options = elems
        return options[which]
    if type.kind == "array":
        return array_of(type, *elems)
    if type.kind == "record":
        outside = getattr(type.cls, "__relay_rebuild__", None)  # a class of ours stands for one of Python's or NumPy's
        if outside is not None:
            return outside(*elems)
    return inside(type, elems)


def inside(type: Struct, elems):
    """The value of a structure type with these parts in executors that are written in Python: a class of ours stays what it is."""
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


def array_of(t: Struct, elements: Iterable, *sizes: int) -> np.ndarray:
    """The array that is an entry of a list, from its elements and, if it has several axes, its sizes."""
    flat = np.array(list(elements), numpy_dtype(element_dtype(t)))
    return flat.reshape(sizes) if sizes else flat


def part(value, type: Struct, index: int):
    """Part `index` of a Python value that has this structure type."""
    if type.kind == "dict":
        return value[type.fields[index]]
    if type.kind == "record" and not isinstance(value, tuple):
        return getattr(value, type.fields[index])
    return value[index]


class Items:
    """One version of a list.

    Attributes:
        entries: its entries, for the newest version; otherwise None, and
        newer: the version that was made from it, and
        undo: `(entries) -> None` turns the newer version's entries back into those of this one.
    """

    __slots__ = ("entries", "newer", "undo")

    def __init__(self, entries: list):
        self.entries: list | None = entries
        self.newer: Items | None = None
        self.undo: Any = None

    def read(self) -> list:
        """The entries, which must not be changed. An old version gets its own copy when it is read."""
        if self.entries is None:
            older: list[Items] = []
            version = self
            while version.entries is None:
                older.append(version)
                assert version.newer is not None  # a version has entries or a newer one
                version = version.newer
            entries = list(version.entries)
            for version in reversed(older):
                version.undo(entries)
            self.entries, self.newer, self.undo = entries, None, None
        return self.entries

    def change(self, do: Any, undo: Any) -> Items:
        """The next version: `do(entries)` makes it, `undo(entries)` leads back."""
        entries = self.read()
        do(entries)
        new = Items(entries)
        self.entries, self.newer, self.undo = None, new, undo
        return new

    def __len__(self) -> int:
        return len(self.read())

    def __iter__(self) -> Iterator:
        return iter(self.read())

    def __repr__(self) -> str:
        return repr(to_python(self))

    def __format__(self, spec: str) -> str:
        return format(to_python(self), spec)


def to_python(value: Any) -> Any:
    """A list, and whatever is made of lists, as it is shown."""
    if isinstance(value, Items):
        return [to_python(v) for v in value.read()]
    if isinstance(value, tuple) and any(isinstance(v, Items) for v in value):
        parts = [to_python(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def leaving(value: Any, t: Type) -> Any:
    """A list of an executor that is written in Python as Python has it: lists in it too, and what classes of ours stand for."""
    if isinstance(value, Items):
        assert isinstance(t, List)
        entries = value.read()
        return [leaving(v, t.elem) for v in entries] if _stands_for(t.elem) else list(entries)
    if isinstance(t, Struct) and _stands_for(t):
        return rebuild(t, [leaving(part(value, t, k), e) for k, e in enumerate(t.elems)])
    return value


def _stands_for(t: Type) -> bool:
    """Whether values of a type are other ones outside."""
    if isinstance(t, Struct):
        return t.kind in ("union", "array") or hasattr(t.cls, "__relay_rebuild__") or any(map(_stands_for, t.elems))
    return isinstance(t, List)
