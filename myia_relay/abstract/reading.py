"""Lists of Python objects, read by machine code: the numbers in them as columns, several times faster than CPython copies them.

Idea: a list of one type is described once, by a recipe: which class each object must have, and where its numbers go. A function in
machine code (`backend.tvm.host.object_reader`) follows the recipe through the objects, and gives up at the first one that differs;
then `disassembly` finds out what there is instead. Where lists are inside, a first walk counts their entries, and a second one
fills columns of these sizes. The interpreter's lock is held all the while, and no Python code runs, so nobody changes the objects.

    list[(int, float)]      LIST -> TUPLE -> INTS, WORDS

Input: a list, and the recipes of lists that were seen before. Output: its type and columns as `infer.arguments.columns` has them.

How objects lie in memory differs between versions of CPython; `use` tries the function on known objects before anybody uses it.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .types import List, NoneT, Scalar, Struct, Type, holds

FUNCTION = "__myia_relay_read"
WORDS, INTS, BOOLS, NOTHING, LIST, TUPLE, DICT, ATTRIBUTES = range(8)  # kinds of nodes
FAILED = 1  # the status of a walk that found something else
TUPLE_ITEMS = tuple.__basicsize__  # bytes from a tuple's beginning to its entries
REST = 5  # words of a node before what depends on its kind: kind, class, column or number of parts, two functions
HEADER = 2  # words of a recipe before the table of its columns
COLUMN = 3  # words of a column in that table, after as many for the status: address, numbers in it, numbers for which there is room
ARRAY_DATA = 2  # words of an array of NumPy's before the address of its data
RECIPES = 4  # of lists whose first entries have one class

_KINDS = {float: WORDS, int: INTS, bool: BOOLS}
_CLASSES = {"float64": float, "int64": int, "bool": bool}
_DTYPES = {WORDS: np.dtype(np.float64), INTS: np.dtype(np.int64), BOOLS: np.dtype(np.bool_), LIST: np.dtype(np.int64)}
_read: Callable[[int, int, int, int], int] | None = None  # the function
_known: dict[type, list[Recipe]] = {}


@dataclass(eq=False)
class Recipe:
    """How a list of one type is read.

    The function gets an array of words, the block: the status, how many numbers each column has, the columns.

    Attributes:
        type: of the list.
        words: how many columns there are, and whether there are lists inside, so that entries have to be counted first; room for
            the table of the columns; the nodes, one behind the other, of which the first is of the list itself.
        kinds: of the columns, in their order.
        kept: objects whose addresses the nodes have.
    """

    type: List
    words: np.ndarray
    kinds: list[int]
    kept: list[Any] = field(repr=False)

    def __post_init__(self) -> None:
        self.address = self.words.ctypes.data
        self.counted = bool(self.words[1])
        self.head = 1 + len(self.kinds)

    def columns(self, values: list) -> list[np.ndarray] | None:
        """The columns of a list that is not empty; None where something in it is of another type."""
        assert _read is not None
        head, kinds, out = self.head, self.kinds, []
        try:
            if self.counted:
                counts = np.empty(head, np.int64)
                _read(id(values), self.address, id(counts), 1)
                status, *sizes = counts.tolist()
                if status or not all(sizes):  # a list that is empty everywhere may have any type
                    return None
                block = np.empty(head + sum(sizes), np.int64)
                block[:head] = counts
                _read(id(values), self.address, id(block), 0)
                for kind, size in zip(kinds, sizes):
                    out.append(np.ndarray(size, _DTYPES[kind], block, 8 * head))
                    head += size
            else:
                n = len(values)
                block = np.empty(head + 1 + n * (head - 2), np.int64)
                _read(id(values), self.address, id(block), 0)
                out.append(block[head : head + 1])
                for k in range(1, len(kinds)):
                    out.append(np.ndarray(n, _DTYPES[kinds[k]], block, 8 * (head + 1 + (k - 1) * n)))
        except AttributeError:
            return None
        return None if block[0] else out


def read(values: list) -> tuple[List, list[np.ndarray]] | None:
    """The type and the columns of a list whose like was seen before; None for others."""
    if _read is None:
        return None
    for recipe in _known.get(type(values[0]), ()):
        columns = recipe.columns(values)
        if columns is not None:
            return recipe.type, columns
    return None


def read_numbers(values: list, kind: type) -> np.ndarray | None:
    """A list of Python's floats, ints or bools, of which the first one has the class `kind`; None where others differ."""
    if _read is None:
        return None
    n = len(values)
    block = np.empty(4 + n, np.int64)
    _read(id(values), _numbers[kind].address, id(block), 0)
    return None if block[0] else np.ndarray(n, _DTYPES[_KINDS[kind]], block, 32)


def note(t: List, values: list) -> None:
    """Make a recipe for lists like one that was taken apart.

    Args:
        t: its type.
        values: the list.
    """
    if _read is None or not readable(t):
        return
    recipe = _Nodes().recipe(t, values)
    if recipe is not None:
        recipes = _known.setdefault(type(values[0]), [])
        recipes.insert(0, recipe)
        del recipes[RECIPES:]


def readable(t: Type) -> bool:
    """Whether recipes know the objects of a type."""
    if isinstance(t, Scalar):
        return t.weak and t.dtype in _CLASSES
    if isinstance(t, List):
        return readable(t.elem)
    if isinstance(t, NoneT):
        return True
    return isinstance(t, Struct) and t.kind in ("tuple", "dict", "record") and all(map(readable, t.elems))


def plain_fields(cls: type) -> bool:
    """Whether reading a dataclass's fields runs no Python code: they are in its instances, or in slots of them."""
    if cls.__getattribute__ is not object.__getattribute__ or hasattr(cls, "__getattr__"):
        return False
    slot = type(_Slotted.part)
    for name in cls.__dataclass_fields__:  # pyright: ignore[reportAttributeAccessIssue]
        found = next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), None)
        if type(found) is not slot and hasattr(type(found), "__get__"):
            return False
    return True


class _Slotted:
    __slots__ = ("part",)


class _Nodes:
    """Writes the nodes of a recipe."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.kinds: list[int] = []
        self.kept: list[Any] = []
        self.lists = 0

    def recipe(self, t: List, values: list) -> Recipe | None:
        """The recipe of a list like `values`; None where an example of a part is missing."""
        try:
            self.node(t, iter([values]))
        except _NoExample:
            return None
        table = [0] * (COLUMN * (len(self.kinds) + 1))
        words = [len(self.kinds), int(self.lists > 1), *table, *self.words]
        return Recipe(t, np.array(words, np.int64), self.kinds, self.kept)

    def node(self, t: Type, examples: Iterator[Any]) -> int:
        """Writes the node of a type, and of what is inside; its place is returned.

        Args:
            t: the type.
            examples: objects of it.

        Raises:
            _NoExample: there is none.
        """
        example = next(examples, _MISSING)
        if example is _MISSING:
            raise _NoExample
        cls, at = type(example), len(self.words)
        self.kept.append(cls)

        def head(kind: int, third: int, *functions: str) -> None:
            addresses = [_address(name) for name in functions]
            self.words += [kind, id(cls), third, *addresses, *[0] * (2 - len(addresses))]

        def column(kind: int) -> None:
            self.kinds.append(kind)
            head(kind, COLUMN * len(self.kinds))

        def part(place: int, part: Type, values: Iterator[Any]) -> None:
            self.words[place] = self.node(part, values) - at

        if isinstance(t, NoneT):
            head(NOTHING, 0)
        elif isinstance(t, Scalar):
            column(_KINDS[_CLASSES[t.dtype]])
            if cls is bool:
                self.words.append(id(True))
        elif isinstance(t, List):
            self.lists += 1
            column(LIST)
            self.words.append(0)
            part(at + REST, t.elem, _inside(example, examples))
        else:
            assert isinstance(t, Struct)
            count = len(t.elems)
            if issubclass(cls, tuple):
                head(TUPLE, count)
                self.words += [0] * count
                places, values = range(at + REST, at + REST + count), example
            else:
                if cls is not dict and not plain_fields(cls):
                    raise _NoExample
                head(DICT, count, "PyDict_Next", "PyUnicode_Compare") if cls is dict else head(
                    ATTRIBUTES, count, "PyObject_GetAttr", "Py_DecRef"
                )
                names = list(example) if cls is dict else [sys.intern(name) for name in t.fields]
                self.kept += names
                for name in names:
                    self.words += [id(name), 0]
                places = range(at + REST + 1, at + REST + 2 * count, 2)
                values = list(example.values()) if cls is dict else [getattr(example, name) for name in names]
            for k, (place, e) in enumerate(zip(places, t.elems)):
                if holds(e, List):  # of which this example may have an empty one
                    part(place, e, _nth(k, values[k], examples))
                else:
                    part(place, e, iter([values[k]]))
        return at


class _NoExample(Exception):
    """Nothing shows which objects a part consists of."""


_MISSING: Any = object()


def _inside(first: list, others: Iterator[list]) -> Iterator[Any]:
    yield from first
    for one in others:
        yield from one


def _nth(k: int, first: Any, others: Iterator[Any]) -> Iterator[Any]:
    """The parts of structures."""
    yield first
    for one in others:
        if isinstance(one, tuple):
            yield one[k]
        elif isinstance(one, dict):
            yield list(one.values())[k]
        else:
            yield getattr(one, list(type(one).__dataclass_fields__)[k])


def _address(name: str) -> int:
    """The address of a function of CPython's."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


# --- the function -----------------------------------------------------------------------------------------------------

_numbers: dict[type, Recipe] = {}  # of lists of numbers
_code: list[Any] = []  # what keeps the function in memory


def supported() -> bool:
    """Whether objects may be read here: CPython with its lock, and ints of 30-bit digits."""
    return (
        sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and sys.int_info.bits_per_digit == 30
        and sys.int_info.sizeof_digit == 4
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == 8
    )


def in_use() -> bool:
    """Whether there is a function."""
    return _read is not None


def use(address: int, library: Any) -> bool:
    """Read lists by the function at an address from now on, if it reads known objects rightly.

    Args:
        address: of the function.
        library: keeps it in memory.
    """
    global _read
    before, word = _read, ctypes.c_void_p
    _read = ctypes.PYFUNCTYPE(ctypes.c_int, word, word, word, ctypes.c_int64)(address)
    _known.clear()
    for kind in _KINDS:
        recipe = _Nodes().recipe(List(Scalar(_DTYPES[_KINDS[kind]].name, True)), [kind(1)])
        assert recipe is not None
        _numbers[kind] = recipe
    _code.append(library)
    if not _reads_rightly():
        _read = before
        return False
    return True


def _reads_rightly() -> bool:
    ints = [sign * ((1 << k) - d) for k in range(63) for d in (0, 1) for sign in (1, -1)]
    ints.append(2**63 - 1)
    samples: list[tuple[list, type]] = [
        (ints, int),
        ([0.0, -1.5, float("inf"), 1e-310], float),
        ([True, False, True], bool),
    ]
    for values, kind in samples:
        found = read_numbers(values, kind)
        if found is None or found.tolist() != values:
            return False
    if read_numbers([1, 2**63], int) is not None or read_numbers([1, True], int) is not None:
        return False
    whole, real, truth = Scalar("int64", True), Scalar("float64", True), Scalar("bool", True)
    rows = [({"a": 1, "b": (2.5, True)}, [3]), ({"a": 4, "b": (5.5, False)}, [])]
    record = Struct("dict", (whole, Struct("tuple", (real, truth))), ("a", "b"))
    recipe = _Nodes().recipe(List(Struct("tuple", (record, List(whole)))), rows)
    found = None if recipe is None else recipe.columns(rows)
    return found is not None and [c.tolist() for c in found] == [[2], [1, 4], [2.5, 5.5], [True, False], [1, 0], [3]]


__all__ = ["FUNCTION", "Recipe", "in_use", "note", "read", "read_numbers", "supported", "use"]
