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
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from ..utils.cpython import address, methods
from .types import List, NoneT, Scalar, Struct, Type, union_of
from .words import CODES, STRING, TEXTS, code_of, constants, held, is_word

FUNCTION = "__myia_relay_read"
WORDS, INTS, BOOLS, NOTHING, LIST, TUPLE, DICT, ATTRIBUTES, TEXT, UNION, UNREAD = range(11)  # kinds of nodes
FAILED = 1  # the status of a walk that found something else
TUPLE_ITEMS = tuple.__basicsize__  # bytes from a tuple's beginning to its entries
REST = 5  # words of a node before what depends on its kind: kind, class, column or number of parts, two functions

# Words of a recipe before the dtypes of its columns: how many columns there are; whether lists are inside, so that entries are
# counted first; whether the list is one of numbers, of which only these are returned; what the function needs of CPython and NumPy.
COUNT, COUNTED, ALONE, LIST_CLASS, NONE, ARRAY_CLASS, NEW_ARRAY, NEW_TUPLE, GET, DROP, CLEAR, HEADER = range(12)

# Words of a column, after as many for the status: address, numbers in it, numbers for which there is room, its array; of entries
# that are one of several things, a bit for each option that is still to be met, all these bits, how many entries there must be.
COLUMN = 7
MISSING, OPTIONS, LEAST = range(4, COLUMN)
FEW_MIXED = 16  # numbers of several classes that are structure
RECIPES = 4  # of lists whose first entries have one class

_KINDS = {float: WORDS, int: INTS, bool: BOOLS}
_CLASSES = {"float64": float, "int64": int, "bool": bool}
_NUMPYS = {"float64": np.float64, "int64": np.int64}  # of which an object has one word behind its head, as a float has
_DTYPES = {
    WORDS: np.dtype(np.float64),
    BOOLS: np.dtype(np.bool_),
    **dict.fromkeys((INTS, LIST, TEXT, UNION), np.dtype(np.int64)),
}
_method: Callable[[np.ndarray], Callable[[list], Any]] | None = None  # what makes the function for a recipe's words
_known: dict[type, list[Recipe]] = {}


@dataclass(eq=False)
class Recipe:
    """How a list of one type is read.

    Attributes:
        type: of the list.
        columns: a function that takes a list. It returns its columns, a tuple of arrays; None where something in it is of another
            type, or it is empty everywhere, so that it may have any type.
        alone: whether it is a list of numbers, of which `columns` returns the one array of these.
        words: the recipe as the machine code has it.
        places: for each column, where in the words its node is, and the kind of that.
        kept: objects whose addresses are in the words.
    """

    type: List
    columns: Callable[[Any], Any]
    alone: bool
    words: np.ndarray = field(repr=False)
    places: list[tuple[int, int]] = field(repr=False)
    kept: list[Any] = field(repr=False)

    def without(self, unread: Container[int]) -> Callable[[Any], Any]:
        """`columns` in which some columns of numbers and strings have the right length, but may hold anything.

        Args:
            unread: their numbers. The classes of what would be in them are checked, nothing else is looked at.
        """
        left = [k for k, (_, kind) in enumerate(self.places) if k in unread and kind not in (LIST, UNION)]
        if not left or self.alone:
            return self.columns
        words = self.words.copy()
        for k in left:
            words[self.places[k][0]] = UNREAD
        return _reading(words, [(place, UNREAD if k in left else kind) for k, (place, kind) in enumerate(self.places)])


def _reading(words: np.ndarray, places: list[tuple[int, int]]) -> Callable[[Any], Any]:
    """The function of a recipe. Columns of strings tell how long these are remembered."""
    assert _method is not None
    columns = _method(words)
    texts = [k for k, (_, kind) in enumerate(places) if kind == TEXT]
    if not texts:
        return columns

    def read(values: Any) -> Any:
        found = columns(values)
        if found is not None:
            for k in texts:
                held(found[k])
        return found

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
    recipes = chain([_numbers[kind]] if kind in _numbers else (), _known.get(kind, ()))
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
    if any(recipe.type == t for recipe in recipes):  # it met a string that has no UTF-8
        return
    recipe = _Nodes().recipe(t, values)
    if recipe is not None:
        recipes.insert(0, recipe)
        del recipes[RECIPES:]


def readable(t: Type) -> bool:
    """Whether recipes know the objects of a type."""
    if isinstance(t, Scalar):
        return t.dtype in (_CLASSES if t.weak else _NUMPYS)
    if isinstance(t, List):
        return readable(t.elem)
    if isinstance(t, NoneT):
        return True
    return isinstance(t, Struct) and t.kind in ("tuple", "dict", "record", "union") and all(map(readable, t.elems))


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
        self.places: list[tuple[int, int]] = []
        self.dtypes: list[np.dtype] = []  # of the columns
        self.options: dict[
            int, tuple[int, int]
        ] = {}  # column -> how many options its entries have, and how many are numbers
        self.kept: list[Any] = []
        self.lists = 0

    def recipe(self, t: List, values: list) -> Recipe | None:
        """The recipe of lists of a type, of which `values` is one; None where reading them would run Python code."""
        try:
            self.node(t, iter([values]))
        except _RunsCode:
            return None
        alone, count = isinstance(t.elem, Scalar) and t.elem.weak, len(self.places)
        dtypes = [dtype.num for dtype in self.dtypes]
        table = [0] * (COLUMN * (count + 1))
        for column, (options, numbers) in self.options.items():
            table[column * COLUMN + OPTIONS] = (1 << options) - 1
            table[column * COLUMN + LEAST] = FEW_MIXED + 1 if numbers > 1 else 1
        head = [count, int(self.lists > 1), int(alone), *_needed()]
        before = [*head, *dtypes, *table]
        words = np.array([*before, *self.words], np.int64)
        places = [(len(before) + at, kind) for at, kind in self.places]
        return Recipe(t, _reading(words, places), alone, words, places, self.kept)

    def node(self, t: Type, examples: Iterator[Any]) -> int:
        """Writes the node of a type, and of what is inside; its place is returned.

        Args:
            t: the type.
            examples: objects of it, of which dicts have the very keys that others will have; maybe none.

        Raises:
            _RunsCode: reading its attributes would run Python code.
        """
        at = len(self.words)

        def head(kind: int, cls: type, third: int, *functions: str) -> None:
            addresses = [address(name) for name in functions]
            self.kept.append(cls)
            self.words += [kind, id(cls), third, *addresses, *[0] * (2 - len(addresses))]

        def column(kind: int, cls: type, *functions: str) -> None:
            self.places.append((at, kind))
            self.dtypes.append(_DTYPES[kind] if cls is not np.int64 else np.dtype(cls))
            head(kind, cls, COLUMN * len(self.places), *functions)

        def part(place: int, part: Type, values: Iterator[Any]) -> None:
            self.words[place] = self.node(part, values) - at

        if isinstance(t, NoneT):
            head(NOTHING, type(None), 0)
        elif is_word(t):
            column(TEXT, str, "PyDict_GetItemWithError")
            self.words += [id(CODES), id(TEXTS), id(constants), *map(address, _OF_TEXTS)]
        elif isinstance(t, Scalar):
            cls = _class_of(t)
            column(_KINDS.get(cls, WORDS), cls)
            if cls is bool:
                self.words.append(id(True))
        elif isinstance(t, List):
            self.lists += 1
            column(LIST, list)
            self.words.append(0)
            part(at + REST, t.elem, (entry for example in examples for entry in example))
        elif isinstance(t, Struct) and t.kind == "union":
            options = t.elems[1:]
            column(UNION, object)
            self.words[at + REST - 1] = len(options)
            self.options[len(self.places)] = len(options), sum(isinstance(option, Scalar) for option in options)
            self.words += [0] * len(options)
            values = list(examples) if any(isinstance(option, Struct | List) for option in options) else []
            for k, option in enumerate(options):
                cls = _class_of(option)
                part(at + REST + k, option, (v for v in values if type(v) is cls))
        else:
            assert isinstance(t, Struct)
            cls, count = _class_of(t), len(t.elems)
            example = next(examples, None)
            if issubclass(cls, tuple):
                head(TUPLE, cls, count)
                self.words += [0] * count
                places = range(at + REST, at + REST + count)
                values = [()] * count if example is None else [(v,) for v in example]
            else:
                if cls is not dict and not plain_fields(cls):
                    raise _RunsCode
                if cls is dict:
                    head(DICT, cls, count, "PyDict_Next", "PyUnicode_Compare")
                else:
                    head(ATTRIBUTES, cls, count, "PyObject_GetAttr", "Py_DecRef")
                names = [sys.intern(name) for name in t.fields] if cls is not dict or example is None else list(example)
                self.kept += names
                for name in names:
                    self.words += [id(name), 0]
                places = range(at + REST + 1, at + REST + 2 * count, 2)
                if example is None:
                    values = [()] * count
                else:
                    values = [(example[name],) if cls is dict else (getattr(example, name),) for name in names]
            for place, e, value in zip(places, t.elems, values, strict=True):
                part(place, e, iter(value))
        return at


_OF_TEXTS = (
    "PyUnicode_AsUTF8AndSize",
    "PyLong_FromLongLong",
    "PyDict_SetItem",
    "PyUnicode_Compare",
    "Py_DecRef",
    "PyErr_Clear",
)
"""The functions behind the three dicts of a node of strings."""


def _class_of(t: Type) -> type:
    """The class of objects of a type that can be read."""
    if isinstance(t, Scalar):
        return (_CLASSES if t.weak else _NUMPYS)[t.dtype]
    if isinstance(t, List):
        return list
    if not isinstance(t, Struct):
        return type(None)
    return str if is_word(t) else t.cls if t.kind == "record" else {"tuple": tuple, "dict": dict}[t.kind]


class _RunsCode(Exception):
    """Reading an attribute would run Python code."""


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
    rows = [({"a": 1, "b": (2.5, True, "")}, [3], None), ({"a": 4, "b": (5.5, False, _SAMPLE)}, [], 1.5)]
    record = Struct("dict", (whole, Struct("tuple", (real, truth, STRING))), ("a", "b"))
    recipe = _Nodes().recipe(List(Struct("tuple", (record, List(whole), union_of(real, NoneT())))), rows)
    found = None if recipe is None else recipe.columns(rows)
    of_numpy = [(np.float64(-2.5), np.int64(-7)), (np.float64(np.inf), np.int64(2**63 - 1))]
    numpys = _Nodes().recipe(List(Struct("tuple", (Scalar("float64"), Scalar("int64")))), of_numpy)
    columns = None if numpys is None else numpys.columns(of_numpy)
    if columns is None or [c.tolist() for c in columns] != [[2], [-2.5, np.inf], [-7, 2**63 - 1]]:
        return False
    return found is not None and [c.tolist() for c in found] == [
        [2],
        [1, 4],
        [2.5, 5.5],
        [True, False],
        [0, code_of(_SAMPLE)],
        [1, 0],
        [3],
        [1, 0],
        [0.0, 1.5],
    ]


_SAMPLE = "a string of more than one word, \N{GREEK SMALL LETTER ALPHA}"


__all__ = ["FUNCTION", "Recipe", "in_use", "note", "read", "read_numbers", "reader", "supported", "use"]
