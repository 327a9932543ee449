"""Lists whose entries are of one type, as columns: what a list of records or of rows is when it is passed to compiled code.

    [(1, 0.5), (2, 0.25)]        list[(int, float)]      int64 [1, 2]            float64 [0.5, 0.25]
    [[1.0], [], [2.0, 3.0]]      list[list[float]]       lengths [1, 0, 2]       float64 [1.0, 2.0, 3.0]

The type of such an argument is that of its entries, whatever its length and contents. Its leaves are arrays: for each list
inside of it the lengths (of the list itself too), for each number of a record a column, over all entries of all lists.
Compiled code makes a run-time list of them (`from_columns`), or reads its entries from the columns (`opt.rewrite.list_columns`).

Input: a Python list. Output: its type and its columns; a node of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from ...abstract.declared import Constructed
from ...abstract.dims import symbol
from ...abstract.disassembly import ListColumn, Uneven, take_apart
from ...abstract.families import family_of
from ...abstract.reading import note, read
from ...abstract.types import INTS, Array, List, NoneT, Scalar, Struct, Type
from ...ir.build import Builder
from ...ir.node import Node
from ...ir.prim import REGISTRY
from ...prims.ops.list_functions import emit, length, new, over
from .records import record_fields


class ListsAsData(IntEnum):
    """Which lists among arguments are data, of whatever length; the others are structure, with a leaf for each number."""

    NONE = 0
    NUMBERS = 1
    ALL = 2


MOST_FIELDS = 16  # entries of a tuple, or fields of a record, that have types of their own


def columns_of(values: list) -> tuple[List, Sequence[np.ndarray]] | None:
    """The type of a list, and its columns.

    Args:
        values: a list whose entries are no Python numbers of one type: such a list is one array, and None here if there are few.

    Returns:
        None where the entries are of different types, or of a type that a run-time list cannot have. Time is linear in the
        numbers that the list holds (`abstract.disassembly`).
    """
    if not values:
        return None
    if (found := read(values)) is not None:
        return found
    if not _may_be_data(values[0]):
        return None
    try:
        column = take_apart([values])
    except Uneven:
        return None
    columns: list[np.ndarray] = []
    if not isinstance(column.type, List) or not _flatten(column, columns):
        return None
    note(column.type, values)
    return column.type, columns


_NUMBERS = frozenset((int, float, bool))
_WIDE = {"bool": "bool", "float32": "float64", "float64": "float64", **dict.fromkeys(set(INTS) - {"uint64"}, "int64")}
"""The dtypes of numbers in lists, NumPy's too -> those of their columns, which are of Python's numbers."""


def _may_be_data(entry: Any) -> bool:
    """Whether an entry consists of numbers, lists and records, as far as its first parts tell: arrays are not touched then."""
    kind = type(entry)
    if kind in _NUMBERS or kind is str or entry is None or isinstance(entry, np.generic):
        return True
    if kind is list:
        return not entry or _may_be_data(entry[0])
    if kind is tuple:
        return all(map(_may_be_data, entry))
    if kind is dict:
        return all(map(_may_be_data, entry.values()))
    fields = None if _is_data(kind) else record_fields(kind)
    return fields is not None and all(_may_be_data(getattr(entry, field)) for field in fields)


def _flatten(column: ListColumn, columns: list[np.ndarray]) -> bool:
    """Append the arrays of a column; False where no run-time list has such entries."""
    t = column.type
    if isinstance(t, Scalar) and t.dtype in _WIDE:
        columns.append(column.data.astype(_WIDE[t.dtype], copy=False))
        return True
    if isinstance(t, List):
        lengths, entries = column.data
        columns.append(lengths)
        before = len(columns)
        return _flatten(entries, columns) and len(columns) > before  # something must say how many entries there are
    if not isinstance(t, Struct):
        return isinstance(t, NoneT)
    if t.kind == "tuple" and len(t.elems) > MOST_FIELDS or t.kind == "record" and _is_data(t.cls):
        return False
    before = len(columns)  # something must say how many there are
    return all(_flatten(part, columns) for part in column.data) and len(columns) > before


def _is_data(cls: type) -> bool:
    """Whether a class belongs to an algebraic data type."""
    return issubclass(cls, Constructed) or family_of(cls) is not None


def column_types(t: Type, rows: str, name: Callable[[], str]) -> Iterator[Array]:
    """The types of the columns of values of a type.

    Args:
        t: the type.
        rows: the symbolic size of the level: how many values there are.
        name: makes a symbolic size.
    """
    if isinstance(t, Scalar):
        yield Array(_WIDE[t.dtype], (symbol(rows),))
    elif isinstance(t, List):
        yield Array("int64", (symbol(rows),))
        yield from column_types(t.elem, name(), name)
    elif isinstance(t, Struct):
        for part in t.elems:
            yield from column_types(part, rows, name)


def from_columns(b: Builder, t: List, columns: Iterator[Node]) -> Node:
    """A run-time list, from its columns."""
    next(columns)  # the length of the list itself, which its columns have
    return _entries(b, t.elem, columns)


def _entries(b: Builder, t: Type, columns: Iterator[Node]) -> Node:
    """All values of one level as one run-time list."""
    if isinstance(t, Scalar):
        numbers = b.emit(REGISTRY["list_from_array"], (next(columns),))
        if t.weak:
            return numbers

        def numpys(b: Builder, k: Node, made: Node, numbers: Node) -> Node:
            number = b.emit(REGISTRY["cast"], (emit(b, "list_get", numbers, k),), {"dtype": t.dtype, "weak": False})
            return emit(b, "list_push", made, number)

        return over(b, length(b, numbers), new(b, t), [numbers], numpys)
    if isinstance(t, List):
        lengths = b.emit(REGISTRY["list_from_array"], (next(columns),))
        return b.emit(REGISTRY["list_of_rows"], (lengths, _entries(b, t.elem, columns)))
    assert isinstance(t, Struct)
    parts = tuple(_entries(b, part, columns) for part in t.elems if not isinstance(part, NoneT))
    return b.emit(REGISTRY["list_of_records"], parts, {"elem": t})
