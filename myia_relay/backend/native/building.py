"""Python lists out of blocks, made by machine code: numbers, strings, tuples, NamedTuples, dicts and lists inside of them.

Idea: the type of a list is written down once as a recipe, a node for each part: how much memory an entry has in a block, where its
parts are in it, of what class the object is. A function in machine code (`backend.tvm.host.object_builder`) goes through the block
and calls CPython's own functions for each object, as an extension in C would.

    list[(int, float)]      LIST -> TUPLE -> INTS at 0, WORDS at 8

Input: the address of a block (`blocks`) and a type. Output: a list. Other types (arrays, NumPy's numbers, records that are no
tuples) are left to `lists`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import List, NoneT, Scalar, Struct, Type, Undefined, union_of
from ...abstract.words import CODES, STRING, TEXTS, intern, is_word, text_of
from ...utils.cpython import address, methods
from .blocks import entry_layout, free

FUNCTION, RELEASE = "__myia_relay_build", "__myia_relay_release"
WORDS, INTS, BOOLS, NOTHING, LIST, TUPLE, NAMED, FIXED, DICT, TEXT, UNION = range(11)  # kinds of nodes

# Words of a recipe before its nodes: functions and objects of CPython's, C's `free`, what strings are looked up in and by.
NEW_LIST, NEW_TUPLE, NEW_RECORD, NEW_FLOAT, NEW_INT, NEW_DICT, PUT, AS_INT, GET, DROP = range(10)
FIND, CALL, SET_ITEM, APPEND, CUT, ATTRIBUTE = range(10, 16)
NONE, FALSE, TRUE, FREE, TABLE, LOOKUP, HEAD = range(16, 23)
_FUNCTIONS = (
    "PyList_New", "PyTuple_New", "PyType_GenericAlloc", "PyFloat_FromDouble", "PyLong_FromLongLong", "PyDict_New",
    "PyDict_SetItem", "PyLong_AsLongLong", "Py_IncRef", "Py_DecRef",
    "PyDict_GetItemWithError", "PyObject_CallFunctionObjArgs", "PyList_SetItem", "PyList_Append", "PyList_SetSlice",
    "PyObject_GetAttr",
)  # fmt: skip
PARTS = 3  # words of a node before what it says of each part: kind, how many there are, a class
PART = 3  # words for a part: key, bytes from the beginning of the entry, words from this node to that of the part
_KINDS = {"float64": WORDS, "int64": INTS, "bool": BOOLS}
_method: Callable[[np.ndarray], Callable[[int], list]] | None = None
_release: Callable[[int], None] | None = None


def in_use() -> bool:
    """Whether there is a function."""
    return _method is not None


def use(make: int, free: int, library: Any) -> bool:
    """Make lists by machine code from now on, if it makes a known one rightly.

    Args:
        make: the address of the function that makes a list.
        free: the address of the function that frees blocks.
        library: keeps them in memory.
    """
    global _method, _release
    _method = methods("build", make, library)
    if not _builds_rightly():
        _method = None
        return False
    _release = methods("release", free, library)(np.array(head(), np.int64))
    return True


def release() -> Callable[[int], None] | None:
    """The function that frees all blocks of a chain, with C's `free`, given the address of the slot that has the first one.

    None where there is no such function.
    """
    return _release


def head() -> list[int]:
    """The words before the nodes."""
    frees = ctypes.cast(free, ctypes.c_void_p).value or 0
    return [*map(address, _FUNCTIONS), id(None), id(False), id(True), frees, id(TEXTS), id(text_of)]


def builder(t: List) -> Callable[[int], list] | None:
    """The function that makes lists of a type of the addresses of their blocks; None where there is none."""
    if _method is None or not buildable(t.elem):
        return None
    nodes = Nodes()
    nodes.list(t)
    made = _method(np.array([*head(), *nodes.words], np.int64))
    keep(nodes.kept)
    return made


_kept: list[Any] = []


def keep(objects: list[Any]) -> None:
    """Keep classes and keys whose addresses are in a recipe that is kept for ever."""
    _kept.append(objects)


def buildable(t: Type) -> bool:
    """Whether machine code makes objects of a type."""
    if isinstance(t, Scalar):
        return t.weak and t.dtype in _KINDS
    if isinstance(t, List):
        return buildable(t.elem)
    if isinstance(t, NoneT | Undefined):
        return True
    if not isinstance(t, Struct) or not all(map(buildable, t.elems)):
        return False
    if t.kind == "union":
        return isinstance(t.elems[0], Scalar)
    return t.kind in ("tuple", "list", "dict") or is_word(t) or t.kind == "record" and issubclass(t.cls, tuple)


class Nodes:
    """Writes the nodes of a recipe."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.kept: list[Any] = []

    def list(self, t: List) -> int:
        """Writes the node of a list; its place is returned."""
        at = len(self.words)
        _, offsets, size = entry_layout(t.elem)
        self.words += [LIST, known_size(size), 0]
        self.words[at + 2] = self.node(t.elem, iter(map(known_size, offsets)))[0] - at
        return at

    def node(self, t: Type, offsets: Iterator[int]) -> tuple[int, int]:
        """Writes the node of a part of an entry.

        Args:
            t: its type.
            offsets: of the leaves that follow.

        Returns:
            Where it is, and the offset in the entry of what it is made of: of a structure 0, since its parts have their own.
        """
        at = len(self.words)
        if not isinstance(t, Struct):
            offset = next(offsets)
            if isinstance(t, List):
                return self.list(t), offset
            self.words.append(_KINDS[t.dtype] if isinstance(t, Scalar) else NOTHING)
            return at, offset
        if is_word(t):
            self.words.append(TEXT if isinstance(t.elems[0], Scalar) else NOTHING)  # as in a derivative
            return at, next(offsets)
        kinds = {"tuple": TUPLE, "list": FIXED, "dict": DICT, "record": NAMED, "union": UNION}
        self.words += [kinds[t.kind], len(t.elems), id(t.cls) if t.kind == "record" else 0]
        self.kept.append(t.cls)
        self.words += [0] * (PART * len(t.elems))
        for k, part in enumerate(t.elems):
            place = at + PARTS + PART * k
            if t.kind == "dict":
                self.kept.append(t.fields[k])
                self.words[place] = id(t.fields[k])
            found, offset = self.node(part, offsets)
            self.words[place + 1], self.words[place + 2] = offset, found - at
        return at, 0


def _builds_rightly() -> bool:
    whole, real, truth = Scalar("int64", True), Scalar("float64", True), Scalar("bool", True)
    entry = Struct("tuple", (whole, Struct("dict", (real, truth, NoneT()), ("a", "b", "c")), List(truth)))
    make = builder(List(Struct("tuple", (entry, union_of(whole, STRING)))))
    if make is None:
        return False
    intern(("a",))
    flags = np.array([0, 0, 1, 2, 2, 0, 0x0001], np.int64)  # blocks, as `blocks` describes them
    real_bits = int(np.array(0.5).view(np.int64))
    records = [-(2**63), real_bits, 1, flags.ctypes.data, 0, 5, 0, 7, real_bits, 0, flags.ctypes.data, 1, 0, CODES["a"]]
    block = np.array([0, 0, 1, 2, 2, 0, *records], np.int64)
    wanted = [
        ((n, {"a": 0.5, "b": b, "c": None}, [True, False]), last)
        for n, b, last in ((-(2**63), True, 5), (7, False, "a"))
    ]
    return make(block.ctypes.data) == wanted


__all__ = ["FUNCTION", "HEAD", "RELEASE", "Nodes", "buildable", "builder", "head", "in_use", "keep", "release", "use"]
