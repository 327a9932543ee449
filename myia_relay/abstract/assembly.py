"""Many Python values of one type, made of columns of their leaves at the speed of CPython's own building.

Idea: `structures.rebuild` asks of each value what its type is. For the entries of a list the answer is the same each time, so it
is written down once, as a comprehension over the leaves: `[(v0, {'a': v1}) for v0, v1 in rows]`. Tuples of leaves are what `zip`
gives anyway.

Input: a type without run-time lists, and the leaves of all values. Output: the values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .types import NoneT, Struct, Type, Undefined, is_array_entry


@functools.lru_cache(maxsize=1024)
def assembler(t: Type) -> Callable[[Iterable], list]:
    """A function that makes values of a type.

    Args:
        t: their type.

    Returns:
        `rows -> values`, in which a row is the tuple of the leaves of one value, without those that are None; an array is a leaf.
        Of a type that is a leaf itself, `rows` are its values.
    """
    if not isinstance(t, Struct) or is_array_entry(t):
        return list
    writer = _Writer()
    body = writer.value(t)
    if body == writer.row():
        return list
    source = f"lambda rows: [{body} for {writer.row()} in rows]"
    return eval(source, writer.names)


class _Writer:
    """Writes the expression of a value of its leaves."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"tuple_new": tuple.__new__}
        self.count = 0

    def row(self) -> str:
        """The leaves as a tuple."""
        return f"({''.join(f'v{k}, ' for k in range(self.count))})"

    def constant(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def value(self, t: Type) -> str:
        if isinstance(t, NoneT | Undefined):
            return "None"
        if not isinstance(t, Struct) or is_array_entry(t):
            self.count += 1
            return f"v{self.count - 1}"
        parts = [self.value(e) for e in t.elems]
        if t.kind == "union":
            return f"({', '.join(parts[1:])},)[{parts[0]}]"
        if t.kind == "list":
            return f"[{', '.join(parts)}]"
        if t.kind == "dict":
            return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(t.fields, parts, strict=True)) + "}"
        inner = f"({''.join(part + ', ' for part in parts)})"
        if t.kind != "record":
            return inner
        if issubclass(t.cls, tuple):
            return f"tuple_new({self.constant(t.cls)}, {inner})"
        return f"{self.constant(record_maker(t.cls, t.fields))}{inner}"


@functools.lru_cache(maxsize=1024)
def record_maker(cls: type, fields: tuple[str, ...]) -> Callable:
    """`(values of the fields) -> record`, of a class that is no tuple.

    `__init__` may refuse or change what it is given; a record that was taken apart is put together as it was.
    """
    outside = getattr(cls, "__relay_rebuild__", None)  # a class of ours stands for one of NumPy's
    if outside is not None:
        return outside
    names: dict[str, Any] = {"cls": cls, "new": object.__new__, "set": object.__setattr__}
    values = [f"v{k}" for k in range(len(fields))]
    lines = [f"def make({', '.join(values)}):", "    record = new(cls)"]
    lines += [f"    set(record, {name!r}, {value})" for name, value in zip(fields, values, strict=True)]
    exec("\n".join([*lines, "    return record", ""]), names)
    return names["make"]
