"""Descriptions of objects: the same in every process for the same text, different where compiled code would be."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
import json
import math
import operator
import shutil
import subprocess
import sys
import types
import typing
from pathlib import Path

import numpy as np
import pytest

from myia_relay import grad, relay, relay_model, vmap
from myia_relay.cache.describe import Unportable, describe

from .cache_util import HEAD, imported, python


def text_of(value) -> str:
    """A description as the key of a program has it."""
    return json.dumps(describe(value))


# --- values --------------------------------------------------------------------------------------------------------------


class Pair(typing.NamedTuple):
    a: object
    b: object


class Other(typing.NamedTuple):
    a: object
    b: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object = 1
    b: object = 2


@dataclasses.dataclass(frozen=True)
class Made:
    a: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class MadeOtherwise:
    a: list = dataclasses.field(default_factory=dict)


def plain(x):
    return x


def other(x):
    return -x


class Methods:
    def __init__(self, x):
        self.x = x


def itself():
    """A list that contains itself, behind a 1."""
    found: list = [1]
    found.append(found)
    return found


# Two lambdas of one text on one line are told apart by their columns, which code objects have since Python 3.11.
AGAIN = (lambda x: x, lambda x: x) if sys.version_info >= (3, 11) else (lambda x: x,)
VALUES = [
    *(False, True, 0, 1, -1, 0.0, -0.0, 1.0, math.nan, math.inf, 1j, "1", b"1", "", None, ...),
    *(np.float32(1), np.float64(1), np.float64(2), np.int64(1), np.int32(1), np.bool_(True)),
    *(np.dtype("float32"), np.dtype(">f4"), np.dtype("int32"), np.float32, np.int32, int, float, object, type(len)),
    *((), [], {}, set(), frozenset(), (1,), [1], {1}, frozenset({1}), {1: 1}, {1: 2}, {2: 1}, types.MappingProxyType({1: 3})),
    *((1, 2), (2, 1), {1: 1, 2: 2}, {2: 2, 1: 1}, {1, 2}, {1, 2, 3}, ((1,), 2), (1, (2,)), itself(), [1, [1]]),
    *(Pair(1, 2), Pair(2, 1), Other(1, 2), Frozen(1, 2), Frozen(2, 1), Pair, Other, Frozen, Made, MadeOtherwise, Made([1])),
    *(math, np, math.sin, math.cos, len, max, np.sin, np.cos, np.cross, np.dot, np.linalg.norm, operator.add, operator.sub),
    *(functools.reduce, functools.partial, dataclasses.replace, str.upper, typing.Any, typing.Optional, type(None)),
    *(list[int], list[float], dict[int, float], int | float, int | str, int | None),
    *(typing.Callable[[int], int], tuple[int, ...], Pair | None),
    *(functools.partial(plain), functools.partial(other), functools.partial(plain, 1), functools.partial(plain, x=1)),
    *(functools.lru_cache(plain), functools.lru_cache(other), Pair(1, 2)._asdict, Pair(2, 2)._asdict, Pair(1, 2)._replace),
    *(plain, other, lambda x: x, lambda x: -x, *AGAIN, dataclasses.MISSING, np._NoValue, dataclasses.field),
    *(relay, grad, vmap, relay(plain), relay(other), relay(plain, fastmath=True), relay(plain, static="x")),
    *(grad(plain), grad(other), grad(plain, "x"), vmap(plain), vmap(plain, in_axes=(None,)), relay(grad(plain))),
    *(relay_model(Methods), relay_model),
]  # fmt: skip


def test_no_two_values_have_one_description():
    found: dict[str, object] = {}
    for value in VALUES:
        text = text_of(value)
        assert text == text_of(value)
        assert text not in found, (value, found[text])
        found[text] = value


class Number(int):
    pass


class Text(str):
    pass


class Colour(enum.IntEnum):
    RED = 1


class Row(list):
    pass


class Columns(tuple):
    pass


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


@dataclasses.dataclass
class Mutable:
    a: int = 1


class Odd:
    """An object with names that are none."""

    def __init__(self, module, name):
        self.__module__, self.__qualname__ = module, name


def local():
    class Local:
        pass

    return Local


UNPORTABLE = [
    *(Number(1), Text("a"), Colour.RED, Row([1]), Columns((1,)), sys.version_info, collections.OrderedDict(a=1)),
    *(collections.defaultdict(list), object(), iter(()), range(3), slice(1), np.zeros(3), Mutable(), Methods(1)),
    *(WithMeta, local(), local()(), Odd([], "sin"), Odd(None, "sin"), Odd("math", None), Odd("math", []), Odd("nowhere", "sin")),
    *([].append, "a".upper, np.frompyfunc(plain, 1, 1), Methods(1).__init__, functools.partial(plain, object())),
    *((1, object()), {1: object()}, {object(): 1}, {object()}, {plain, object()}, Pair(1, object()), itertools.count()),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(UNPORTABLE)))
def test_what_cannot_be_described_with_certainty_is_not(k):
    with pytest.raises(Unportable):
        describe(UNPORTABLE[k])
    with pytest.raises(Unportable):
        describe([UNPORTABLE[k]])


# --- programs ------------------------------------------------------------------------------------------------------------

DATA = "from dataclasses import dataclass, field\n"
TUPLE = "from typing import NamedTuple, Optional\n"
# A program that defines `v`, and the same with a change of what `v` is.
DIFFERENT = {
    "a body": ("def v(x):\n    return x + 1\n", "def v(x):\n    return x + 2\n"),
    "the last line": ("def v(x):\n    y = x\n    return y\n", "def v(x):\n    y = x\n    return x\n"),
    "a default": ("K = 1\ndef v(x=K): pass\n", "K = 2\ndef v(x=K): pass\n"),
    "a keyword's default": ("K = 1\ndef v(*, x=K): pass\n", "K = 2\ndef v(*, x=K): pass\n"),
    "no value as a default": ("K = np._NoValue\ndef v(x=K): pass\n", "K = None\ndef v(x=K): pass\n"),
    "an annotation": ("K = int\ndef v(x: K): pass\n", "K = float\ndef v(x: K): pass\n"),
    "an annotation in quotes": ("K = int\ndef v(x: 'K'): pass\n", "K = float\ndef v(x: 'K'): pass\n"),
    "a size": ("N = 3\ndef v(x: Tensor[Float64, (N,)]): pass\n", "N = 4\ndef v(x: Tensor[Float64, (N,)]): pass\n"),
    "an inner function": (
        "def v(x):\n    def g(y): return y\n    return g\n",
        "def v(x):\n    def g(y): return 1\n    return g\n",
    ),
    "a method": ("class v:\n    def m(self): return 1\n", "class v:\n    def m(self): return 2\n"),
    "a method's default": ("K = 1\nclass v:\n    def m(self, x=K): pass\n", "K = 2\nclass v:\n    def m(self, x=K): pass\n"),
    "a method's default by keyword": (
        "K = 1\nclass v:\n    def m(self, *, x=K): pass\n",
        "K = 2\nclass v:\n    def m(self, *, x=K): pass\n",
    ),
    "a method of another class": ("K = str.upper\nclass v:\n    m = K\n", "K = str.lower\nclass v:\n    m = K\n"),
    "an operator of another class": (
        "K = tuple.__eq__\nclass v(tuple):\n    __eq__ = K\n",
        "K = tuple.__ne__\nclass v(tuple):\n    __eq__ = K\n",
    ),
    "a property": (
        "class v:\n    @property\n    def p(self): return 1\n",
        "class v:\n    @property\n    def p(self): return 2\n",
    ),
    "a property's other function": (
        "def g(s, x): s\nclass v:\n    p = property(None, g)\n",
        "def g(s, x): x\nclass v:\n    p = property(None, g)\n",
    ),
    "a static method": (
        "class v:\n    @staticmethod\n    def m(): return 1\n",
        "class v:\n    @staticmethod\n    def m(): return 2\n",
    ),
    "a class method": (
        "class v:\n    @classmethod\n    def m(c): return 1\n",
        "class v:\n    @classmethod\n    def m(c): return 2\n",
    ),
    "which kind of method": ("K = staticmethod\nclass v:\n    m = K(len)\n", "K = classmethod\nclass v:\n    m = K(len)\n"),
    "a class attribute": ("class v:\n    k = 1\n", "class v:\n    k = 2\n"),
    "a base": ("class B:\n    k = 1\nclass v(B): pass\n", "class B:\n    k = 2\nclass v(B): pass\n"),
    "the class of a base": ("class B: pass\nclass v(B): pass\n", "class B: pass\nclass v: pass\n"),
    "a name": ("class v: pass\n", "class w: pass\nv = w\n"),
    "a field's type": ("K = int\nclass v:\n    a: K\n", "K = float\nclass v:\n    a: K\n"),
    "a field's type in quotes": ("K = int\nclass v:\n    a: 'K'\n", "K = float\nclass v:\n    a: 'K'\n"),
    "types in quotes of a class and its base": (
        "K = list[int]\nclass B:\n    a: 'list[int]'\nclass v(B):\n    a: 'list[int]'\n    b: 'list[K]'\n",
        "K = list[str]\nclass B:\n    a: 'list[int]'\nclass v(B):\n    a: 'list[int]'\n    b: 'list[K]'\n",
    ),
    "a type in quotes of a tuple": (
        TUPLE + "K = int\nclass v(NamedTuple):\n    a: 'K'\n",
        TUPLE + "K = float\nclass v(NamedTuple):\n    a: 'K'\n",
    ),
    "the default of a tuple": (
        TUPLE + "K = 1\nclass v(NamedTuple):\n    a: int = K\n",
        TUPLE + "K = 2\nclass v(NamedTuple):\n    a: int = K\n",
    ),
    "fields the other way round": (
        TUPLE + "class v(NamedTuple):\n    a: int\n    b: int\n",
        TUPLE + "class v(NamedTuple):\n    b: int\n    a: int\n",
    ),
    "the default of a field": (
        DATA + "K = 1\n@dataclass\nclass v:\n    a: int = K\n",
        DATA + "K = 2\n@dataclass\nclass v:\n    a: int = K\n",
    ),
    "what makes a field's default": (
        DATA + "K = list\n@dataclass\nclass v:\n    a: list = field(default_factory=K)\n",
        DATA + "K = dict\n@dataclass\nclass v:\n    a: list = field(default_factory=K)\n",
    ),
    "whether there is a default": (
        DATA + "@dataclass\nclass v:\n    a: int = 0\n",
        DATA + "@dataclass\nclass v:\n    a: int\n",
    ),
    "what a field is for": (
        DATA + "K = True\n@dataclass\nclass v:\n    a: int = field(default=1, compare=K)\n",
        DATA + "K = False\n@dataclass\nclass v:\n    a: int = field(default=1, compare=K)\n",
    ),
    "what a dataclass can do": (
        DATA + "K = True\n@dataclass(frozen=K)\nclass v:\n    a: int\n",
        DATA + "K = False\n@dataclass(frozen=K)\nclass v:\n    a: int\n",
    ),
    "a slot": ("class v:\n    __slots__ = ('a',)\n", "class v:\n    __slots__ = ('b',)\n"),
    "a method bound anew": (
        "class v:\n    def m(self): return 1\ndef g(self): return 2\n",
        "class v:\n    def m(self): return 1\ndef g(self): return 2\nv.m = g\n",
    ),
    "what is decorated": ("def g(x): return x\nv = relay(g)\n", "def g(x): return 1\nv = relay(g)\n"),
    "what is derived": ("def g(x): return x\nv = grad(g)\n", "def g(x): return 1\nv = grad(g)\n"),
    **{
        f"an operator's {what}": tuple(
            f"def a(x, *r): pass\ndef b(x, *r): pass\nK = {k}\n@relay.register_op({option}=K{more})\ndef v(x): return x\n"
            for k in values
        )
        for what, option, values, more in [
            ("relation", "infer", "ab", ""),
            ("dtype", "dtype", ("'float32'", "'float64'"), ", elementwise=True"),
            ("derivative", "vjp", "ab", ""),
            ("rule of batches", "batch", ("a", "'leading'"), ", infer=a"),
            ("code", "lower", "ab", ", elementwise=True"),
            ("kind", "elementwise", ("True", "False"), ""),
            ("name", "name", ("'one'", "'other'"), ""),
        ]
    },
    "an operator's function": (
        "@relay.register_op\ndef v(x): return 1\n",
        "@relay.register_op\ndef v(x): return 2\n",
    ),
}  # fmt: skip


def described(folder: Path, text: str) -> str:
    return text_of(imported(folder, text).v)


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_change_of_what_it_is(tmp_path, name):
    before, after = DIFFERENT[name]
    found = described(tmp_path, before)
    assert described(tmp_path, after) != found
    assert described(tmp_path, before) == found


SAME = {
    "what stands behind": ("def v(x): return x\n", "def v(x): return x\n\ndef g(x): return 1\n"),
    "what stands far behind": ("def v(x):" + " " * 99 + "return x\n", "def v(x):" + " " * 99 + "return x\n\n" + "g = 1\n" * 150),
    "what a function calls": ("def g(): pass\ndef v(): g()\n", "def g(): 1\ndef v(): g()\n"),
    "a line before": ("#\ndef v(x): return x\n", "0\ndef v(x): return x\n"),
    "the text of a class": ("class v:\n    'text'\n    k = 1\n", "class v:\n    'other'\n    k = 1\n"),
    "the order of names in a class": ("class v:\n    a = 1\n    b = 2\n", "class v:\n    b = 2\n    a = 1\n"),
    "a note of this package": ("class v: pass\n", "class v: pass\nv.__relay_note__ = object()\n"),
    "a note of the standard library": ("class v: pass\n", "class v: pass\nv._abc_note = object()\n"),
    "a name that does not exist": ("class v:\n    a: 'Nowhere'\n", "class v:\n    a: 'Nowhere'\n# as nobody asks\n"),
    "such a name in a tuple": (TUPLE + "class v(NamedTuple):\n    a: 'No'\n", TUPLE + "class v(NamedTuple):\n    a: 'No'\n\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_no_change_of_what_it_is(tmp_path, name):
    before, after = SAME[name]
    assert described(tmp_path, before) == described(tmp_path, after)


@pytest.mark.parametrize(
    "text",
    [
        "def v(x):\n    return {}\n",
        "def v(x):\n    return max(x,\n        '{}')\n",
        "def v(x):\n    def g(y):\n        return {}\n",
        "v = lambda x: max(x,\n    {}\n    )\n",
    ],
)
def test_the_text_of_a_function_is_what_the_file_says_now(tmp_path, text):
    v = imported(tmp_path, text.format(1)).v
    before = text_of(v)
    path = Path(v.__code__.co_filename)
    path.write_text(path.read_text() + "\ng = 1\n")
    assert text_of(v) == before
    path.write_text(HEAD + text.format(22))
    assert text_of(v) != before


def test_a_c_function_is_its_symbol_its_signature_and_what_is_in_its_file(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    text = "v = relay.register_op(lambda x: None, name='n', symbol={!r}, signature={!r}, library={!r})\n"
    source, found = "double s(double x) {{ return {}; }}\ndouble t(double x) {{ return 0; }}\n", []
    for name, body in (("a", "1"), ("b", "2"), ("a", "3")):
        (tmp_path / "source.c").write_text(source.format(body))
        path = tmp_path / f"{name}.so"
        path.unlink(missing_ok=True)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", path, tmp_path / "source.c"], check=True)
        found.append(described(tmp_path, text.format("s", "double(double)", str(path))))
    found.append(described(tmp_path, text.format("t", "double(double)", str(path))))
    found.append(described(tmp_path, text.format("s", "float(float)", str(path))))
    assert len(set(found)) == len(found)
    with pytest.raises(Unportable):  # what the process has loaded
        described(tmp_path, text.format("sqrt", "double(double)", None))


def test_an_abstract_base_class_is_described(tmp_path):
    text = "from abc import ABC\nclass B(ABC): pass\nclass v: base = {}\n"
    with pytest.raises(Unportable):  # its class is ABCMeta
        described(tmp_path, text.format("B"))
    assert described(tmp_path, text.format("int")) != described(tmp_path, text.format("float"))


def test_another_process_says_the_same(tmp_path):
    """Sets and hashes of strings differ between processes; descriptions do not."""
    texts = [pair[k] for pair in DIFFERENT.values() for k in (0, 1)]
    texts.append("def v(x):\n    return x in {'a', 'bc', 'def', 'ghij', 'klmno'} or (lambda: 1)\n")
    texts.append("v = [set('abcdefgh'), frozenset('abcdefgh')]\n")
    texts.append(DATA + "@dataclass(frozen=True)\nclass P:\n    a: object\nv = [P(set('abcdef')), P, len]\n")
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    script = (
        "import json, sys\nfrom pathlib import Path\n"
        "from tests.unit.cache.cache_util import imported\nfrom myia_relay.cache.describe import describe\n"
        "folder = Path(sys.argv[1])\n"
        "for text in json.loads((folder / 'texts.json').read_text()):\n"
        "    print(json.dumps(describe(imported(folder, text).v)))\n"
    )
    there = python(script, str(tmp_path), PYTHONHASHSEED="1").splitlines()
    assert there == [described(tmp_path, t) for t in texts]
