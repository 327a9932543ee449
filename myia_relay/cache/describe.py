"""Descriptions of Python objects that are valid in other processes: two objects with the same description compile to the
same code.

Idea: compiled code depends on functions, classes and values that inference used. Within a process their identity tells
whether they are still the same. Between processes their contents do: the code and the text of functions, the contents
of classes, numbers by their exact text. What a function reads from elsewhere is not part of its description; inference
has recorded it separately. Whatever cannot be described with certainty is `Unportable`, and programs that depend on it
are not kept.

Input: an object. Output: nested lists of strings, the same in every process.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import hashlib
import inspect
import linecache
import sys
import types
import typing
from typing import Any

import numpy as np

from ..abstract.declared import declaration_of
from ..backend.native.format import Unportable
from ..utils.attributes import has_own
from ..utils.pickling import main_or

# Modules whose functions are identified by their names, for the versions that are part of every key.
LIBRARIES = {"numpy", "myia_relay", *sys.stdlib_module_names}
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
BY_TEXT = (  # values that are identified by their text
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    collections._tuplegetter,  # type: ignore[attr-defined]
    dataclasses._DataclassParams,  # type: ignore[attr-defined]
)
HEAP_TYPE = 1 << 9
PASSED = ("__doc__", "__annotations__", "__dataclass_fields__")
STANDS_FOR_NOTHING = (dataclasses.MISSING, dataclasses._HAS_DEFAULT_FACTORY, np._NoValue)  # type: ignore[attr-defined]


def digest(*texts: Any) -> str:
    """A hash of the texts of objects, which is the same in every process."""
    h = hashlib.blake2b(digest_size=16)
    for text in texts:
        h.update(repr(text).encode("utf-8", "surrogatepass"))
        h.update(b"\0")
    return h.hexdigest()


def describe(value: Any) -> Any:
    """The description of an object.

    Raises:
        Unportable: it has none.
    """
    return _Describer().any(value)


def by_name(value: Any) -> tuple[str, str] | None:
    """Module and qualified name of an object, if it is found under these; None if it is not."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    return (main_or(module), name) if named(module, name) is value else None


def named(module: str, name: str) -> Any:
    """The object of a module with a qualified name; None if there is none."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def code_text(code: types.CodeType) -> list:
    """The text and place of a code object: equal results mean the same program text at the same place."""
    constants = [code_text(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts]
    places = list(getattr(code, "co_positions", code.co_lines)())  # with columns since Python 3.11
    numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_firstlineno)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return [code.co_filename, code.co_name, numbers, names, code.co_code.hex(), constants, digest(places)]


def _constant(value: Any) -> str:
    if isinstance(value, frozenset):
        return "frozenset" + repr(sorted(map(_constant, value)))
    return f"{type(value).__name__}:{value!r}"


def source_text(function: types.FunctionType) -> str:
    """The lines in which a function is written, as the file is now: the compiler reads these."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    last, stack = code.co_firstlineno, [code]
    while stack:
        inner = stack.pop()
        positions = getattr(inner, "co_positions", None)
        if positions is None:  # before Python 3.11
            last = last_lines("".join(lines)).get(code.co_firstlineno, len(lines))
            break
        last = max([last, *(end for _, end, _, _ in positions() if end)])
        stack.extend(c for c in inner.co_consts if isinstance(c, types.CodeType))
    return "".join(lines[code.co_firstlineno - 1 : last])


@functools.lru_cache(maxsize=32)
def last_lines(text: str) -> dict[int, int]:
    """First line of a function in the text of a file -> the last line of the functions that begin there. Code objects of
    Python 3.10 do not know their ends.
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[int, int] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            first = min(part.lineno for part in (node, *getattr(node, "decorator_list", ())))
            found[first] = max(found.get(first, 0), node.end_lineno or node.lineno)
    return found


class _Describer:
    """One description; objects that contain themselves are numbered."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []  # what is described is kept alive, so that its id is not reused

    def any(self, value: Any) -> Any:
        if type(value) in PLAIN:
            return [type(value).__name__, repr(value)]
        if isinstance(value, np.generic):
            return ["scalar", value.dtype.str, value.dtype.name, value.tobytes().hex()]
        if isinstance(value, np.dtype):
            return ["dtype", value.str, value.name, repr(value)]
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        if id(value) in self.seen:
            return ["seen", self.seen[id(value)]]
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        if isinstance(value, np.ufunc):
            return self.ufunc(value)
        if (place := by_name(value)) is not None and place[0].split(".")[0] in LIBRARIES:
            return ["library", *place]
        for kind, method in _METHODS:
            if isinstance(value, kind):
                return method(self, value)
        return self.other(value)

    def items(self, values: Any) -> list:
        return [self.any(v) for v in values]

    def function(self, f: types.FunctionType) -> Any:
        parts = [code_text(f.__code__), source_text(f), main_or(f.__module__), f.__qualname__]
        return ["function", digest(*parts), self.any(f.__defaults__), self.any(f.__kwdefaults__), self.annotations(f)]

    def annotations(self, holder: Any) -> list:
        """The annotations of a function or class, evaluated where they can be."""
        try:
            found = inspect.get_annotations(holder, eval_str=True)
        except Exception:
            found = inspect.get_annotations(holder)
        out = []
        for name, a in found.items():
            if isinstance(a, typing.ForwardRef):  # of a NamedTuple, whose annotations are no plain strings
                try:
                    a = eval(a.__forward_arg__, dict(vars(sys.modules[holder.__module__])))
                except Exception:
                    a = a.__forward_arg__
            out.append([name, self.any(a)])
        return out

    def text(self, value: Any) -> list:
        return [type(value).__name__, repr(value)]

    def ufunc(self, value: np.ufunc) -> Any:
        if getattr(np, value.__name__, None) is not value:
            raise Unportable(f"the ufunc {value.__name__}")
        return ["ufunc", value.__name__]

    def cls(self, value: type) -> Any:
        if not value.__flags__ & HEAP_TYPE:  # implemented in C, so it cannot change
            return ["library", value.__module__, value.__qualname__]
        if (declaration := declaration_of(value)) is not None and declaration.made_by is not None:
            return ["declared", *declaration.made_by, value.__name__]
        if type(value) is not type or "<locals>" in value.__qualname__:
            raise Unportable(f"the class {value.__qualname__}")
        place = (main_or(value.__module__), value.__qualname__, self.items(value.__bases__))
        contents = []
        for name in sorted(vars(value)):
            if name not in PASSED and not name.startswith(("_abc_", "__relay_")):
                contents.append([name, self.member(vars(value)[name])])
        fields = [
            [f.name, self.any(f.default), self.any(f.default_factory), f.init, f.compare, f.kw_only, str(f._field_type)]
            for f in vars(value).get("__dataclass_fields__", {}).values()
        ]
        return ["class", *place, contents, fields, self.annotations(value)]

    def member(self, value: Any) -> Any:
        """Something in the body of a class."""
        if isinstance(value, property):
            return ["property", *self.items((value.fget, value.fset, value.fdel))]
        if isinstance(value, staticmethod | classmethod):
            return [type(value).__name__, self.any(value.__func__)]
        return self.any(value)

    def sequence(self, value: Any) -> list:
        if type(value) in (tuple, list):
            return [type(value).__name__, *self.items(value)]
        if hasattr(value, "_fields"):
            return ["record", self.any(type(value)), *self.items(value)]
        raise Unportable(f"a {type(value).__name__}")

    def mapping(self, value: dict) -> list:
        if type(value) is not dict and not isinstance(value, types.MappingProxyType):
            raise Unportable(f"a {type(value).__name__}")
        return ["dict", *([self.any(k), self.any(v)] for k, v in value.items())]

    def group(self, value: Any) -> list:
        return [type(value).__name__, *sorted(map(repr, self.items(value)))]

    def partial(self, value: functools.partial) -> list:
        return ["partial", *self.items((value.func, value.args, value.keywords))]

    def method(self, value: types.MethodType) -> list:
        return ["method", *self.items((value.__func__, value.__self__))]

    def alias(self, value: Any) -> list:
        return ["alias", self.any(typing.get_origin(value)), self.items(typing.get_args(value))]

    def other(self, value: Any) -> Any:
        """Objects of this package and of its users' record classes.

        Raises:
            Unportable: there is no description of such an object.
        """
        kind = type(value)
        if hasattr(kind, "__relay_description__"):
            return value.__relay_description__()
        if has_own(value, "__relay_operator__"):
            return self.operator(value)
        if has_own(value, "__relay_derived__"):
            transform, function, options = value.__relay_derived__
            settings = getattr(value, "options", {})
            return ["derived", transform, self.any(function), self.options(options), self.any(settings)]
        if has_own(value, "__relay_function__"):
            return ["relay", self.any(value.__relay_function__), self.any(value.options), self.any(value.static)]
        if has_own(value, "__relay_model__"):
            return ["model", self.any(value.__relay_model__)]
        if isinstance(value, functools._lru_cache_wrapper):
            return ["cached", self.any(value.__wrapped__)]
        fields = getattr(kind, "__dataclass_fields__", None)
        if fields is not None and kind.__dataclass_params__.frozen:
            return ["record", self.any(kind), *self.items(getattr(value, f) for f in fields)]
        if value is getattr(sys.modules["myia_relay"], "relay", None):
            return ["library", "myia_relay", "relay"]
        if any(value is mark for mark in STANDS_FOR_NOTHING):
            return [kind.__name__]
        raise Unportable(f"a {kind.__module__}.{kind.__qualname__}")

    def operator(self, op: Any) -> list:
        """A registered operator, with all its rules.

        Raises:
            Unportable: the file of its C library is not known.
        """
        parts = [op.function, op.relation, op.elementwise, op.dtype, op.vjp_rule, op.batch, op.lower]
        library = None if op.c_function is None else op.c_function.describe()
        if op.c_function is not None and library is None:
            raise Unportable(f"the C library of the operator {op.name}, of which the file is not known")
        return ["operator", op.name, *self.items(parts), library]

    def options(self, options: tuple) -> list:
        """Options of a transform; the holder of a rule contains what it is an option of."""
        return [[name, self.any(v)] for name, v in options]


_ALIASES = (types.GenericAlias, types.UnionType, typing._GenericAlias)  # type: ignore[attr-defined]
_METHODS: list[tuple[Any, Any]] = [
    (types.FunctionType, _Describer.function),
    (BY_TEXT, _Describer.text),
    (_ALIASES, _Describer.alias),
    (type, _Describer.cls),
    ((tuple, list), _Describer.sequence),
    ((dict, types.MappingProxyType), _Describer.mapping),
    ((set, frozenset), _Describer.group),
    (functools.partial, _Describer.partial),
    (types.MethodType, _Describer.method),
]
