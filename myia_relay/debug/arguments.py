"""What of the arguments of a program is structure, which it was compiled for, and what is data, and why: a table of `f.explain`.

Input: the arguments, their treedefs, and the leaves that the program does not read. Output: the rows of a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ..abstract.disassembly import Uneven, take_apart
from ..abstract.types import Array, List, Ref, Scalar, Struct, Type
from ..abstract.words import is_word
from ..infer.arguments.columns import FEW_ARRAYS, MOST_FIELDS, columns_of
from ..infer.values.treedef import TreeDef

MOST_ROWS = 24
HEAD = ["argument", "is", "type", "why"]


def argument_rows(
    names: list[str], treedefs: Any, values: list[Any], unread: Collection[int], static: Collection[str]
) -> list[list[str]]:
    """The table of a program's arguments.

    Args:
        names: of the arguments.
        treedefs: theirs.
        values: the arguments.
        unread: the leaves that the program does not read.
        static: the names of those that are compile-time constants.
    """
    rows, leaf = [HEAD], 0
    for name, treedef, value in zip(names, treedefs, values, strict=True):
        found = (
            [[name, "structure", "", "static= names it"]]
            if name in static
            else _rows(name, treedef, value, leaf, unread)
        )
        for row in found:
            if len(rows) > MOST_ROWS:
                return [*rows, ["...", "", "", ""]]
            rows.append(row)
        leaf += sum(1 for _ in treedef.leaves())
    return rows


def _rows(name: str, treedef: TreeDef, value: Any, leaf: int, unread: Collection[int]) -> Iterator[list[str]]:
    """The row of a part of an argument, and those of the containers in it; `leaf` is its first leaf."""
    tag, info = treedef.tag, treedef.info
    if tag == "listed":
        yield [
            name,
            "data",
            f"list[{_type(treedef.parts[0].info.dtype)}]",
            "numbers of one class: one program for all lengths",
        ]
    elif tag == "columns":
        yield [name, "data", str(info), "entries of one type: one program for all such lists"]
        numbers = iter(range(leaf + 1, leaf + 1 + sum(1 for _ in treedef.leaves())))
        for column, k in _columns(info.elem, f"{name}[...]", numbers):
            if k in unread:
                yield [column, "not read", "", "only its class is looked at"]
    elif tag == "dyn" and isinstance(info, Array):
        yield [name, "data", str(info), "its dtype, number of axes, and sizes in numbers are structure"]
    elif tag == "dyn":
        yield [
            name,
            "data",
            str(info),
            "a number" if isinstance(info, Scalar) else "a model" if isinstance(info, Ref) else "a tree",
        ]
    elif tag != "seq":
        yield [
            name,
            "structure",
            "",
            "a constant: another one is another program" if tag == "static" else tag,
        ]
    else:
        yield [name, "structure", f"{_kind(info)} of {len(treedef.parts)}", _reason(info, value)]
        for key, part, inner in _inside(treedef, value):
            if part.tag in ("seq", "listed", "columns"):
                yield from _rows(f"{name}{key}", part, inner, leaf, unread)
            leaf += sum(1 for _ in part.leaves())


def _kind(info: Any) -> str:
    return info[2].__name__ if info[0] == "record" else info[0]


def _type(dtype: str) -> str:
    return dtype.rstrip("0123456789")


def _inside(treedef: TreeDef, value: Any) -> Iterator[tuple[str, TreeDef, Any]]:
    """The parts of a structure: how each is written, its treedef, itself."""
    kind, fields, _ = treedef.info
    for k, part in enumerate(treedef.parts):
        if kind == "dict":
            yield f"[{fields[k]!r}]", part, value[fields[k]]
        elif kind == "record":
            yield f".{fields[k]}", part, getattr(value, fields[k], None)
        else:
            yield f"[{k}]", part, value[k]


def _columns(t: Type, name: str, numbers: Iterator[int]) -> Iterator[tuple[str, int]]:
    """The columns of entries of a type that hold no lengths: how each is written, and its number."""
    if isinstance(t, List):
        next(numbers)
        yield from _columns(t.elem, name + "[...]", numbers)
    elif isinstance(t, Struct) and t.kind in ("tuple", "dict", "record") and not is_word(t):
        for k, part in enumerate(t.elems):
            key = f"[{t.fields[k]!r}]" if t.kind == "dict" else f".{t.fields[k]}" if t.kind == "record" else f"[{k}]"
            yield from _columns(part, name + key, numbers)
    elif isinstance(t, Struct) and not is_word(t):
        for part in t.elems:
            yield from _columns(part, name, numbers)
    elif isinstance(t, Struct | Scalar):
        yield name, next(numbers)


def _reason(info: Any, value: Any) -> str:
    """Why a container is structure."""
    kind = info[0]
    if kind == "dict":
        return "names are known when a program is compiled"
    if kind == "record":
        return "fields are known when a program is compiled"
    if kind == "tuple":
        return "a tuple: each entry is a variable"
    if not value:
        return "an empty list has no type but what an annotation says"
    return _why_no_data(value)


def _why_no_data(value: list) -> str:
    """Why a list is no data."""
    try:
        entry = take_apart(value).type
    except Uneven as error:
        return str(error)
    if isinstance(entry, Struct) and len(entry.elems) > MOST_FIELDS:
        return f"its entries have more than {MOST_FIELDS} parts"
    if any(isinstance(v, np.ndarray) for v in value) and len(value) <= FEW_ARRAYS:
        return f"up to {FEW_ARRAYS} arrays, until a call has another number of them"
    if columns_of(value) is not None or isinstance(entry, Scalar):
        return "the program needs to know how long it is"
    return "run-time lists have no such entries"


__all__ = ["argument_rows"]
