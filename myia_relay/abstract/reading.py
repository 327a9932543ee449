"""Lists of Python objects, read by machine code: the numbers in them as columns, several times faster than CPython copies them.

Idea: a list of one type is described once, by a recipe: which class each object must have, and where its numbers go. A function in
machine code (`backend.tvm.host.object_reader`) follows the recipe through the objects, and gives up at the first one that differs;
then `disassembly` finds out what there is instead. Where lists are inside, a first walk counts their entries, and a second one
fills columns of these sizes. The interpreter's lock is held all the while, and no Python code runs, so nobody changes the objects.
It is called as CPython's own functions are, a function of its own for each recipe: `ctypes` would take longer than short lists do.

    list[(int, float)]      LIST -> TUPLE -> INTS, WORDS

Input: a list, and the recipes of lists that were seen before. Output: its type and columns as `infer.arguments.columns` has them.

How objects lie in memory differs between versions of CPython; `use` tries the function on known objects before anybody uses it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..utils.cpython import address, methods
from .types import List, NoneT, Scalar, Struct, Type, holds
from .words import CODES, STRING, held, intern, is_word

FUNCTION = "__myia_relay_read"
WORDS, INTS, BOOLS, NOTHING, LIST, TUPLE, DICT, ATTRIBUTES, TEXTS = range(9)  # kinds of nodes
FAILED = 1  # the status of a walk that found something else
TUPLE_ITEMS = tuple.__basicsize__  # bytes from a tuple's beginning to its entries
REST = 5  # words of a node before what depends on its kind: kind, class, column or number of parts, two functions

# Words of a recipe before the dtypes of its columns: how many columns there are; whether lists are inside, so that entries are
# counted first; whether the list is one of numbers, of which only these are returned; what the function needs of CPython and NumPy.
COUNT, COUNTED, ALONE, LIST_CLASS, NONE, ARRAY_CLASS, NEW_ARRAY, NEW_TUPLE, GET, DROP, CLEAR, HEADER = range(12)
COLUMN = 4  # words of a column, after as many for the status: address, numbers in it, numbers for which there is room, its array
RECIPES = 4  # of lists whose first entries have one class

TRIES = 3  # walks through strings: the first may find new ones, and another thread may have taken its list of them
UNKNOWN = -1  # in the place of the code of a string that has none

_KINDS = {float: WORDS, int: INTS, bool: BOOLS}
_CLASSES = {"float64": float, "int64": int, "bool": bool}
_DTYPES = {
    WORDS: np.dtype(np.float64),
    BOOLS: np.dtype(np.bool_),
    **dict.fromkeys((INTS, LIST, TEXTS), np.dtype(np.int64)),
}
_method: Callable[[np.ndarray], Callable[[list], Any]] | None = None  # what makes the function for a recipe's words
_known: dict[type, list[Recipe]] = {}
_missing: list[str] = []  # strings that a walk found and that have no codes


@dataclass(eq=False)
class Recipe:
    """How a list of one type is read.

    Attributes:
        type: of the list.
        columns: a function that takes a list. It returns its columns, a tuple of arrays; None where something in it is of another
            type, or it is empty everywhere, so that it may have any type.
        alone: whether it is a list of numbers, of which `columns` returns the one array of these.
        kept: objects whose addresses are in the words of the recipe, and these.
    """

    type: List
    columns: Callable[[Any], Any]
    alone: bool
    kept: list[Any] = field(repr=False)


def _with_texts(columns: Callable[[Any], Any], places: list[int]) -> Callable[[Any], Any]:
    """The function of a recipe with strings: what it reads has a code for each, also for strings that it meets first.

    Args:
        columns: writes `UNKNOWN` for strings that have no codes yet, and puts them into `_missing`.
        places: which of its columns are of strings.
    """

    def read(values: Any) -> Any:
        for _ in range(TRIES):
            found = columns(values)
            if found is None:
                return None
            if not any((held(found[k]) == UNKNOWN).any() for k in places):
                return found
            intern(_missing[:])
            _missing.clear()
        return None

    return read


def read(values: list) -> tuple[List, tuple[np.ndarray, ...]] | None:
    """The type and the columns of a list that is not empty, whose like was seen before; None for others."""
    for recipe in _known.get(type(values[0]), ()):
        columns = recipe.columns(values)
        if columns is not None:
            return recipe.type, columns
    return None


def reader(values: list) -> Recipe | None:
    """The recipe by which a list that is not empty is read; None where there is none yet."""
    kind = type(values[0])
    recipes = [_numbers[kind]] if kind in _numbers else _known.get(kind, ())
    return next((recipe for recipe in recipes if recipe.columns(values) is not None), None)


def read_numbers(values: list, kind: type) -> np.ndarray | None:
    """A list of Python's floats, ints or bools, of which the first one has the class `kind`; None where others differ."""
    recipe = _numbers.get(kind)
    return None if recipe is None else recipe.columns(values)


def note(t: List, values: list) -> None:
    """Make a recipe for lists like one that was taken apart.

    Args:
        t: its type.
        values: the list.
    """
    if _method is None or not readable(t):
        return
    recipes = _known.setdefault(type(values[0]), [])
    if any(recipe.type == t for recipe in recipes):  # it met a string that it did not know
        return
    recipe = _Nodes().recipe(t, values)
    if recipe is not None:
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
        alone = isinstance(t.elem, Scalar)
        dtypes = [_DTYPES[kind].num for kind in self.kinds]
        table = [0] * (COLUMN * (len(self.kinds) + 1))
        head = [len(self.kinds), int(self.lists > 1), int(alone), *_needed()]
        words = np.array([*head, *dtypes, *table, *self.words], np.int64)
        assert _method is not None
        read = _method(words)
        places = [k for k, kind in enumerate(self.kinds) if kind == TEXTS]
        return Recipe(t, _with_texts(read, places) if places else read, alone, [*self.kept, words])

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
            addresses = [address(name) for name in functions]
            self.words += [kind, id(cls), third, *addresses, *[0] * (2 - len(addresses))]

        def column(kind: int) -> None:
            self.kinds.append(kind)
            head(kind, COLUMN * len(self.kinds))

        def part(place: int, part: Type, values: Iterator[Any]) -> None:
            self.words[place] = self.node(part, values) - at

        if isinstance(t, NoneT):
            head(NOTHING, 0)
        elif is_word(t):
            self.kinds.append(TEXTS)
            head(TEXTS, COLUMN * len(self.kinds), "PyDict_GetItemWithError", "PyLong_AsLongLong")
            self.words += [id(CODES), id(_missing), address("PyList_Append")]
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


@functools.cache
def _needed() -> list[int]:
    """The words of a recipe from `LIST_CLASS` on. NumPy's functions have places in a table, which its versions keep."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    numpy_c = importlib.import_module("numpy._core._multiarray_umath")
    table = ctypes.cast(pointer(numpy_c._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    functions = [address(name) for name in ("PyTuple_New", "Py_IncRef", "Py_DecRef", "PyErr_Clear")]
    return [id(list), id(None), id(np.ndarray), table[_PYARRAY_NEW] or 0, *functions]


_PYARRAY_NEW = 93


# --- the function -----------------------------------------------------------------------------------------------------

_numbers: dict[type, Recipe] = {}  # of lists of numbers


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
    return _method is not None


def use(at: int, library: Any) -> bool:
    """Read lists by a function from now on, if it reads known objects rightly.

    Args:
        at: its address.
        library: keeps it in memory.
    """
    global _method
    before = _method
    _method = methods("read", at, library)
    _known.clear()
    for kind in _KINDS:
        recipe = _Nodes().recipe(List(Scalar(_DTYPES[_KINDS[kind]].name, True)), [kind(1)])
        assert recipe is not None
        _numbers[kind] = recipe
    if not _reads_rightly():
        _method = before
        _numbers.clear()
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
    if any(read_numbers(values, int) is not None for values in ([1, 2**63], [1, True], [])):
        return False
    whole, real, truth = Scalar("int64", True), Scalar("float64", True), Scalar("bool", True)
    rows = [({"a": 1, "b": (2.5, True, "")}, [3]), ({"a": 4, "b": (5.5, False, "a")}, [])]
    intern(("", "a"))
    record = Struct("dict", (whole, Struct("tuple", (real, truth, STRING))), ("a", "b"))
    recipe = _Nodes().recipe(List(Struct("tuple", (record, List(whole)))), rows)
    found = None if recipe is None else recipe.columns(rows)
    return found is not None and [c.tolist() for c in found] == [
        [2],
        [1, 4],
        [2.5, 5.5],
        [True, False],
        [0, CODES["a"]],
        [1, 0],
        [3],
    ]


__all__ = ["FUNCTION", "Recipe", "in_use", "note", "read", "read_numbers", "reader", "supported", "use"]
