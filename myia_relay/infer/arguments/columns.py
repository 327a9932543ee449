"""Lists whose entries are of one type, as columns: what a list of records or of rows is when it is passed to compiled code.

    [(1, 0.5), (2, 0.25)]        list[(int, float)]      int64 [1, 2]            float64 [0.5, 0.25]
    [[1.0], [], [2.0, 3.0]]      list[list[float]]       lengths [1, 0, 2]       float64 [1.0, 2.0, 3.0]

The type of such an argument is that of its entries, whatever its length and contents. Its leaves are arrays: for each list
inside of it the lengths (of the list itself too), for each number of a record a column, over all entries of all lists.
Compiled code makes a run-time list of them (`from_columns`), or reads its entries from the columns (`opt.rewrite.list_columns`).

Input: a Python list. Output: its type and its columns; a node of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from ...abstract.declared import Constructed
from ...abstract.dims import symbol
from ...abstract.disassembly import ListColumn, Uneven, dtype_name, take_apart
from ...abstract.families import family_of
from ...abstract.reading import note, read
from ...abstract.types import FLOATS, INTS, Array, List, NoneT, Scalar, Struct, Type, holds_array_entries
from ...ir.build import Builder
from ...ir.node import Node
from ...ir.prim import REGISTRY
from ...prims.ops.list_functions import emit, length, new, over
from ..values.treedef import TreeDef
from .records import record_fields


class ListsAsData(IntEnum):
    """Which lists among arguments are data, of whatever length; the others are structure, with a leaf for each number."""

    NONE = 0
    NUMBERS = 1
    NO_ARRAYS = 2
    MANY_ARRAYS = 3  # if they have more than `FEW_ARRAYS` entries, and whatever has no arrays in it
    ALL = 4


class ShortLists:
    """Which short lists of arrays a function was called with: they are structure until calls show that they are data.

    Attributes:
        open: whether that is not decided yet.
    """

    def __init__(self) -> None:
        self.open = True
        self.seen: dict[
            Any, tuple[Any, set[Any]]
        ] = {}  # arguments as data -> their structure without sizes, and with them

    def are_data(self, wide: Any, structure: Any) -> bool:
        """Whether they are data: another length was seen before, or `SETS_OF_SIZES` sets of sizes.

        Args:
            wide: the arguments' treedefs if they are data.
            structure: their treedefs as structure.
        """
        form = _without_sizes(structure)
        first, sizes = self.seen.setdefault(wide, (form, set()))
        sizes.add(structure)
        if first != form or len(sizes) > SETS_OF_SIZES:
            self.open = False
            self.seen.clear()
        return not self.open


def _without_sizes(treedefs: Any) -> Any:
    """Treedefs, or tuples of them, in which an array is only its dtype and its number of axes."""
    if isinstance(treedefs, tuple):
        return tuple(map(_without_sizes, treedefs))
    if not isinstance(treedefs, TreeDef):
        return treedefs
    if treedefs.tag == "dyn" and isinstance(treedefs.info, Array):
        return treedefs.info.dtype, len(treedefs.info.shape)
    return treedefs.tag, treedefs.info, _without_sizes(treedefs.parts)


SETS_OF_SIZES = 2  # of the arrays in short lists of one length, that are programs of their own
MOST_FIELDS = 16  # entries of a tuple, or fields of a record, that have types of their own
FEW_ARRAYS = 16  # entries of a list of arrays that is structure, as the parameters of a model are


def columns_of(values: list, listed: ListsAsData = ListsAsData.ALL) -> tuple[List, Sequence[np.ndarray]] | None:
    """The type of a list, and its columns.

    Args:
        values: a list whose entries are no Python numbers of one type: such a list is one array, and None here if there are few.
        listed: which lists are data.

    Returns:
        None where the entries are of different types, or of a type that a run-time list cannot have. Time is linear in the
        numbers that the list holds (`abstract.disassembly`).
    """
    if not values or listed < ListsAsData.NO_ARRAYS:
        return None
    if (found := read(values)) is not None:
        return found
    arrays = listed is ListsAsData.ALL or listed is ListsAsData.MANY_ARRAYS and _is_long(values)
    if not _may_be_data(values[0], arrays):
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


def _is_long(values: list) -> bool:
    """Whether a list, or one in it, has more entries than a list of arrays that is structure."""
    return (
        len(values) > FEW_ARRAYS or _has_list(values[0]) and any(_is_long(inner) for v in values for inner in _lists(v))
    )


def _has_list(entry: Any) -> bool:
    """Whether there is a list in an entry, or it is one."""
    kind = type(entry)
    if kind is np.ndarray or kind in _NUMBERS:
        return False
    return kind is list or any(map(_has_list, _parts(entry)))


def _lists(entry: Any) -> Iterator[list]:
    """The lists in an entry, or itself, but none that are in them; empty ones are left out."""
    if type(entry) is list:
        if entry:
            yield entry
    else:
        for part in _parts(entry):
            yield from _lists(part)


def _parts(entry: Any) -> Iterable[Any]:
    """The parts of a tuple, dict or record; none of anything else."""
    kind = type(entry)
    if kind is tuple:
        return entry
    if kind is dict:
        return entry.values()
    if kind is np.ndarray or kind in _NUMBERS or (fields := record_fields(kind)) is None:
        return ()
    return [getattr(entry, field) for field in fields]


_NUMBERS = frozenset((int, float, bool))
_WIDE = {"bool": "bool", "float32": "float64", "float64": "float64", **dict.fromkeys(set(INTS) - {"uint64"}, "int64")}
"""The dtypes of NumPy's numbers in lists -> those of their columns, which are of Python's numbers."""
ARRAY_DTYPES = frozenset((*INTS, *FLOATS, "bool"))  # of arrays in lists


def _may_be_data(entry: Any, arrays: bool) -> bool:
    """Whether an entry consists of numbers, lists, records and perhaps arrays, as far as its first parts tell."""
    kind = type(entry)
    if kind is np.ndarray:
        return arrays and entry.ndim > 0 and entry.dtype.isnative and dtype_name(entry.dtype) in ARRAY_DTYPES
    if kind in _NUMBERS or kind is str or entry is None or isinstance(entry, np.generic):
        return True
    if kind is list:
        return not entry or _may_be_data(entry[0], arrays)
    if kind is tuple:
        return all(_may_be_data(part, arrays) for part in entry)
    if kind is dict:
        return all(_may_be_data(part, arrays) for part in entry.values())
    fields = None if _is_data(kind) else record_fields(kind)
    return fields is not None and all(_may_be_data(getattr(entry, field), arrays) for field in fields)


def _flatten(column: ListColumn, columns: list[np.ndarray]) -> bool:
    """Append the arrays of a column; False where no run-time list has such entries."""
    t = column.type
    if isinstance(t, Scalar) and (t.weak or t.dtype in _WIDE):
        columns.append(column.data if t.weak else column.data.astype(_WIDE[t.dtype], copy=False))
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
        yield Array(t.dtype if t.weak else _WIDE[t.dtype], (symbol(rows),))
    elif isinstance(t, List):
        yield Array("int64", (symbol(rows),))
        yield from column_types(t.elem, name(), name)
    elif isinstance(t, Struct):
        for part in t.elems:
            yield from column_types(part, rows, name)


def gives_arrays(treedef: TreeDef) -> bool:
    """Whether there is a list in an argument that is data and holds arrays."""
    if treedef.tag == "columns":
        return holds_array_entries(treedef.info)
    return any(map(gives_arrays, treedef.parts))


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
