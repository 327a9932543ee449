"""Changes of run-time lists, written into the caller's objects by machine code: lists, and the lists, dicts and records in them.

Idea: a program that changes a list gets its columns, and leaves a block (`blocks`). A number of the block that is, to the bit, what
the column has was not changed, and its object is not touched. The others are put where they belong: into a float that nothing else
refers to, which nobody can tell from a new one (CPython does so itself, since 3.12, with the operands of `+`), otherwise as a new
object. Lists and dicts stay the objects that they are; a list gets the entries that it has more, or loses those that it has less.

    list[{"x": float, "m": float}]      LIST -> DICT -> x: VALUE, m: VALUE

What a program changes must be in its arguments once (`changing`). An object to which one reference leads, from an object to which
one leads, and so on, is in nothing else: so the second function here gives those objects to which more lead, mostly none, and only
these are compared.

Input: the type of a list and a plan (`infer.engine.program.ArgumentChange`). Output: functions; None where they cannot write it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import Array, List, NoneT, Scalar, Struct, Type, Undefined, holds, is_array_entry, leaves
from ...utils.cpython import methods
from .blocks import entry_layout
from .building import Nodes, buildable, head, keep

FUNCTION, SHARED = "__myia_relay_write", "__myia_relay_shared"
VALUE, LIST, DICT, TUPLE, ATTRIBUTES = range(5)  # kinds of nodes; those from LIST on are objects that stay

# Words of nodes. All begin with the kind and the class of the object.
COLUMN, RECORD, CHILD, NEW, LIST_WORDS = range(2, 7)  # of a list: of its lengths, bytes of an entry, nodes of an entry
PARTS, PARTS_AT = range(
    2, 4
)  # of a record: how many parts follow: key or index, bytes from the beginning of the entry, node
MAKE, FROM, COUNT, LEAVES_AT = range(2, 6)  # of a value: its node, its bytes from the beginning, how many leaves follow
PART, LEAF = 3, 3  # words of a part; of a leaf: bytes from the beginning, column, how many bytes it has
COLUMN_WORDS = (
    3  # words of a column: its numbers, how many there are, and at a list's lengths how many entries are behind
)
_write: Callable[[np.ndarray], Callable[[Any], None]] | None = None
_shared: Callable[[np.ndarray], Callable[[Any], list]] | None = None


def in_use() -> bool:
    """Whether there are functions."""
    return _write is not None


def use(write: int, shared: int, library: Any) -> bool:
    """Write changes by machine code from now on, if it writes a known one rightly.

    Args:
        write: the address of the function that writes.
        shared: the address of the function that finds objects to which several references lead.
        library: keeps it in memory.
    """
    global _write, _shared
    _write, _shared = methods("write", write, library), methods("shared", shared, library)
    _finder.cache_clear()
    if not _writes_rightly():
        _write = _shared = None
        return False
    return True


def writer(t: List, plan: Any) -> Callable[[tuple[list, int, tuple[np.ndarray, ...]]], None] | None:
    """The function that writes into lists of a type.

    Args:
        t: the type.
        plan: of the change.

    Returns:
        A function of the list, the address of its final block, and its columns before; None where there is none.
    """
    if _write is None or not buildable(t.elem):
        return None
    nodes = _ChangedNodes()
    try:
        nodes.changed(t, plan, iter([0]))
    except _Unwritable:
        return None
    keep(nodes.kept)
    return _write(np.array([*head(), *nodes.words], np.int64))


def shared(t: List) -> Callable[[list], list] | None:
    """The function that takes a list of a type, and returns the lists and dicts in it that may be in other objects as well.

    None where there is none, or where there are arrays, which share memory without being one object.
    """
    return None if _shared is None else _finder(t)


@functools.lru_cache(maxsize=1024)
def _finder(t: List) -> Callable[[list], list] | None:
    nodes = _SharedNodes()
    try:
        nodes.node(t)
    except _Unwritable:
        return None
    keep(nodes.kept)
    assert _shared is not None
    return _shared(np.array([*head(), *nodes.words], np.int64))


class _Unwritable(Exception):
    """Machine code cannot follow a plan."""


class _ChangedNodes(Nodes):
    """Writes the nodes by which changes are written."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = 0

    def changed(self, t: Type, plan: Any, offsets: Iterator[int]) -> tuple[int, int] | None:
        """Writes the node of a part of an entry.

        Args:
            t: its type.
            plan: of its change.
            offsets: of the leaves that follow.

        Returns:
            Where it is, and the offset in the entry of what it is made of; None for what stays.

        Raises:
            _Unwritable: there is none.
        """
        if plan is None:
            self.columns += _columns(t)
            for _ in leaves(t):
                next(offsets)
            return None
        at = len(self.words)
        if plan == "new":
            return self.value(t, offsets)
        if isinstance(t, List) and (plan == "set" or plan[0] == "every"):
            _, inside, size = entry_layout(t.elem)
            inside = list(map(known_size, inside))
            self.words += [LIST, id(list), self.columns, known_size(size), 0, 0]
            self.columns += 1
            inner = "new" if plan == "set" else plan[1]
            child = self.changed(t.elem, inner, iter(inside))
            self.words[at + CHILD] = child[0] - at if child else 0
            self.words[at + NEW] = self.node(t.elem, iter(inside))[0] - at
            return at, next(offsets)
        if isinstance(t, Struct) and t.kind == "dict" and plan[0] == "dict" and set(plan[1]) <= set(t.fields):
            return self.parts(
                [DICT, id(dict)], t, [plan[1].get(name) for name in t.fields], list(map(id, t.fields)), offsets
            )
        if isinstance(t, Struct) and plan[:2] == ["parts", None]:
            cls = tuple if t.kind == "tuple" else t.cls
            return self.parts([TUPLE, id(cls)], t, plan[2], list(range(len(t.elems))), offsets)
        raise _Unwritable

    def parts(
        self, start: list[int], t: Struct, plans: list[Any], keys: list[int], offsets: Iterator[int]
    ) -> tuple[int, int]:
        """Writes the node of a record of which parts change."""
        at, count = len(self.words), sum(plan is not None for plan in plans)
        self.words += [*start, count, *[0] * (PART * count)]
        self.kept.append((t.cls, t.fields))
        place = at + PARTS_AT
        for key, part, plan in zip(keys, t.elems, plans, strict=True):
            found = self.changed(part, plan, offsets)
            if found is not None:
                self.words[place : place + PART] = key, found[1], found[0] - at
                place += PART
        return at, 0

    def value(self, t: Type, offsets: Iterator[int]) -> tuple[int, int]:
        """Writes the node of a part that is another object if it changes.

        Raises:
            _Unwritable: it holds lists.
        """
        if holds(t, List):
            raise _Unwritable
        at, types = len(self.words), leaves(t)
        mine = [next(offsets) for _ in types]
        kept = [
            (leaf, offset) for leaf, offset in zip(types, mine, strict=True) if not isinstance(leaf, NoneT | Undefined)
        ]
        self.words += [VALUE, id(float) if isinstance(t, Scalar) and t.dtype == "float64" else 0, 0, 0, len(kept)]
        for leaf, offset in kept:
            self.words += [offset, self.columns, int(isinstance(leaf, Scalar) and leaf.dtype == "bool")]
            self.columns += 1
        place, offset = self.node(t, iter(mine))
        self.words[at + MAKE], self.words[at + FROM] = place - at, offset
        return at, 0


def _columns(t: Type) -> int:
    """How many columns there are of values of a type."""
    if isinstance(t, List):
        return 1 + _columns(t.elem)
    if isinstance(t, Struct):
        return sum(map(_columns, t.elems))
    return int(not isinstance(t, NoneT | Undefined))


class _SharedNodes:
    """Writes the nodes by which objects are found to which several references lead."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.kept: list[Any] = []

    def node(self, t: Type) -> int | None:
        """Writes the node of a type, unless it holds no lists and dicts; its place is returned.

        Raises:
            _Unwritable: it holds arrays.
        """
        if isinstance(t, Array) or is_array_entry(t):
            raise _Unwritable
        at = len(self.words)
        if isinstance(t, List):
            self.words += [LIST, id(list), 0, 0, 0, 0]
            child = self.node(t.elem)
            self.words[at + CHILD] = 0 if child is None else child - at
            return at
        if not isinstance(t, Struct) or t.kind not in ("tuple", "dict", "record"):
            return None
        cls = {"tuple": tuple, "dict": dict}.get(t.kind, t.cls)
        kind = DICT if cls is dict else TUPLE if issubclass(cls, tuple) else ATTRIBUTES
        names = [sys.intern(name) for name in t.fields]
        self.kept.append((cls, names))
        self.words += [kind, id(cls), len(t.elems), *[0] * (PART * len(t.elems))]
        found = 0
        for k, part in enumerate(t.elems):
            child = self.node(part)
            if child is not None:
                place = at + PARTS_AT + PART * found
                self.words[place : place + PART] = k if kind == TUPLE else id(names[k]), 0, child - at
                found += 1
        self.words[at + PARTS] = found
        if not found and kind != DICT:
            del self.words[at:]
            return None
        return at


def _writes_rightly() -> bool:
    whole, real = Scalar("int64", True), Scalar("float64", True)
    t = List(Struct("dict", (real, whole, List(real)), ("a", "b", "c")))
    write = writer(t, ["every", ["dict", {"a": "new", "b": "new", "c": "set"}]])
    find = shared(t)
    if write is None or find is None:
        return False
    bits = lambda x: int(np.array(x).view(np.int64))  # noqa: E731
    inner = [np.array([0, 0, 1, len(xs), len(xs), 0, *map(bits, xs)], np.int64) for xs in ([1.5, 2.0], [], [7.5])]
    rows = [{"a": float(k), "b": k, "c": [float(x) for x in range(1, n)]} for k, n in enumerate((2, 3, 1, 4))]
    before = list(map(id, rows)), [id(row["c"]) for row in rows]
    columns = (
        np.array([4], np.int64),
        np.array([float(k) for k in range(4)]),
        np.arange(4),
        np.array([1, 2, 0, 3], np.int64),
        np.array([1.0, 1.0, 2.0, 1.0, 2.0, 3.0]),
    )
    records = [(0.0, 9), (3.5, 1), (2.0, 2)]
    words = [w for (a, b), c in zip(records, inner, strict=True) for w in (bits(a), b, c.ctypes.data)]
    block = np.array([0, 0, 1, 3, 3, 0, *words], np.int64)
    other = rows[1]["c"]
    found = find(rows)
    write((rows, block.ctypes.data, columns))
    wanted = [{"a": 0.0, "b": 9, "c": [1.5, 2.0]}, {"a": 3.5, "b": 1, "c": []}, {"a": 2.0, "b": 2, "c": [7.5]}]
    same = (list(map(id, rows)), [id(row["c"]) for row in rows]) == (before[0][:3], before[1][:3])
    return rows == wanted and same and len(found) == 1 and found[0] is other


__all__ = ["FUNCTION", "SHARED", "in_use", "shared", "use", "writer"]
