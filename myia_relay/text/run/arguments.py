"""Arguments from Python as a definition declares them, and the annotations by which its sizes become symbols.

Python numbers take the declared dtype; a float is no int. Arrays and NumPy scalars must have it. A value of a data type takes
that of its parameter, field by field, each object once.

Input: Python values and terms. Output: Python values whose numbers are NumPy scalars, and annotations of the core.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ...abstract.annotations import TensorAnnotation
from ...abstract.declared import Constructed, InstanceOf, declaration_of
from ...abstract.dims import Dim
from ...infer.arguments.dlpack import from_dlpack
from ...infer.arguments.python_numbers import PYTHON, fits, number
from ...utils.errors import ShapeError, TypeError_
from ..check.checked import Checked
from ..lower.declarations import constructor_class
from ..lower.types import ground
from ..terms.show import show, size_text
from ..terms.terms import ANY, ArrowTerm, CellTerm, DataTerm, TensorTerm, TupleTerm, prune, scalar, tensor
from ..terms.unify import replaced
from ..tree import DataType
from .code import DEFAULTS, ModuleEntry

TAKEN = "_taken"  # on a value of a data type: its type as an argument, and what is passed if that is another value


@functools.lru_cache(64)
def _name_of(dtype: np.dtype) -> str:
    """The name of a dtype, which takes NumPy some microseconds to make."""
    return dtype.name


class Converter:
    """Converts the arguments of the functions of a module.

    Args:
        checked: the module.
        declaration: name of a data type -> its declaration.
    """

    def __init__(self, checked: Checked, declaration: Callable[[str], Any]):
        self.checked, self.declaration = checked, declaration
        self._plain: dict[str, InstanceOf] = {}  # of data types without parameters: their types as arguments

    def convert(self, value: Any, t: Any, what: str) -> Any:
        """An argument as a definition takes it.

        Args:
            value: any Python value.
            t: its term.
            what: how errors call it.

        Raises:
            TypeError_: it is of another type.
            ShapeError: it is an array of another shape.
        """
        t = prune(t)
        match t:
            case TensorTerm():
                return self._tensor(value, t, what)
            case TupleTerm():
                if not isinstance(value, tuple | list) or len(value) != len(t.elems):
                    have = f"{len(value)} values" if isinstance(value, tuple | list) else described(value)
                    raise TypeError_(f"{what} is {show(t)}, and is given {have}")
                return tuple(
                    self.convert(v, e, f"part {k} of {what}")
                    for k, (v, e) in enumerate(zip(value, t.elems, strict=True))
                )
            case DataTerm():
                return self._data(value, t, what)
            case ArrowTerm():
                if not callable(value) or isinstance(value, Constructed):
                    raise TypeError_(f"{what} is {show(t)}, and is given {described(value)}")
                return value
            case CellTerm():
                return value
        return self._free(value)

    def _free(self, value: Any) -> Any:
        """An argument of whatever type: numbers are what their literals would be."""
        if type(value) in PYTHON:
            dtype = PYTHON[type(value)]
            small = dtype != "int64" or -(2**31) <= value < 2**31
            return number(value, DEFAULTS[dtype] if small else "int64", "the argument")
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return value[()]
        if isinstance(value, tuple):
            return tuple(self._free(v) for v in value)
        if isinstance(value, Constructed):
            scheme = self.checked.constructors.get(value.constructor)
            if scheme is not None:
                return self._data(value, getattr(scheme.type, "result", scheme.type), "the argument")
        return value

    def _tensor(self, value: Any, t: TensorTerm, what: str) -> Any:
        dtype, shape = prune(t.dtype), prune(t.shape)
        kind = PYTHON.get(type(value))
        if kind is not None:
            wanted = dtype if isinstance(dtype, str) else DEFAULTS[kind]
            if not fits(kind, wanted) or (isinstance(shape, tuple) and shape):
                raise TypeError_(f"{what} is {show(t)}, and is given {described(value)}")
            return number(value, wanted, what)
        if not isinstance(value, np.ndarray | np.generic) and hasattr(value, "__dlpack__"):
            value = from_dlpack(value)
        if not isinstance(value, np.ndarray | np.generic):
            hint = ""
            if isinstance(value, list | tuple) and isinstance(dtype, str):
                hint = f"; pass np.array(.., np.{dtype})"
            raise TypeError_(f"{what} is {show(t)}, and is given {described(value)}{hint}")
        if isinstance(dtype, str) and _name_of(value.dtype) != dtype:
            raise TypeError_(f"{what} is {show(t)}, and is given {described(value)}; convert it: .astype(np.{dtype})")
        if isinstance(shape, tuple):
            wrong = len(shape) != value.ndim
            if wrong or any(isinstance(n := prune(a), int) and n != b for a, b in zip(shape, value.shape, strict=True)):
                raise ShapeError(f"{what} is {show(t)}, and is given {described(value)}")
        return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value

    def _data(self, value: Any, t: DataTerm, what: str) -> Any:
        """A value of a data type with the types of an instance in all fields; no recursion along values.

        Raises:
            TypeError_: it is of another type.
        """
        known = self._plain.get(t.name) if not t.args else ground(t, {}, self.declaration)
        if known is None and not t.args:
            known = self._plain[t.name] = ground(t, {}, self.declaration)
        if known is not None and isinstance(value, Constructed):
            before, taken = value.__dict__.get(TAKEN, (None, None))
            if before is known or before == known:
                return value if taken is None else taken
        given = value
        value = self._adopted(value, t.name)
        if not isinstance(value, Constructed):
            raise TypeError_(f"{what} is {show(t)}, and is given {described(value)}")
        known_fields: dict[tuple[type, Any], tuple] = {}
        done: dict[tuple[int, Any], Any] = {}
        stack: list[tuple[bool, Any, DataTerm]] = [(False, value, t)]
        while stack:
            ready, top, top_t = stack.pop()
            key = (id(top), top_t)
            if key in done:
                continue
            types_ = known_fields.get((type(top), top_t))
            if types_ is None:
                types_ = known_fields[type(top), top_t] = self._fields(top, top_t, what)
            if not ready:
                stack.append((True, top, top_t))
                stack.extend(
                    (False, v, f)
                    for v, f in zip(top.fields, types_)
                    if isinstance(v, Constructed) and isinstance(f, DataTerm)
                )
                continue
            new = []
            for k, (v, f) in enumerate(zip(top.fields, types_, strict=True)):
                inner = done.get((id(v), f)) if isinstance(f, DataTerm) else None
                new.append(
                    inner if inner is not None else self.convert(v, f, f"field {k} of {top.constructor} in {what}")
                )
            if all(a is b for a, b in zip(new, top.fields, strict=True)):
                done[key] = top
            else:
                done[key] = type(top)(*new)
        made = done[id(value), t]
        if known is not None:
            object.__setattr__(made, TAKEN, (known, None))
            if made is not given and isinstance(given, Constructed):
                object.__setattr__(given, TAKEN, (known, made))
        return made

    def _adopted(self, value: Any, data_type: str) -> Any:
        """A tree of Python's own records as values of the module: of the constructors that their classes are called like.

        `relay.to_text` writes families of frozen dataclasses so, with None as a constructor of its own. Anything else is left as it
        is.
        """
        constructors = self.checked.tree.constructors
        done: dict[tuple[int, str], Any] = {}
        stack: list[tuple[bool, Any, str]] = [(False, value, data_type)]
        while stack:
            ready, top, name = stack.pop()
            if isinstance(top, Constructed) and declaration_of(type(top)) is self.declaration(name):
                done[id(top), name] = top  # all that it holds is of types of the module
                continue
            wanted = f"{name}Nothing" if top is None else type(top).__name__
            own, constructor = constructors.get(wanted, (None, None))
            matches = own is not None and own.name == name and (top is None or is_dataclass(top))
            names = [f.name for f in fields(top)] if matches and top is not None else []
            if not matches or constructor is None or len(names) != len(constructor.fields):
                done[id(top), name] = top
                continue
            inner = [
                (getattr(top, n), t.name if isinstance(t, DataType) else "")
                for n, t in zip(names, constructor.fields, strict=True)
            ]
            if not ready:
                stack.append((True, top, name))
                stack.extend((False, v, n) for v, n in inner if n and (id(v), n) not in done)
                continue
            parts = [done[id(v), n] if n else v for v, n in inner]
            done[id(top), name] = constructor_class(self.declaration(name), constructor.name)(*parts)
        return done[id(value), data_type]

    def _fields(self, value: Any, t: DataTerm, what: str) -> tuple:
        """The types of the fields of a value of an instance.

        Raises:
            TypeError_: the value is of another type.
        """
        declared = self.declaration(t.name)
        if declaration_of(type(value)) is not declared:
            raise TypeError_(f"{what}: a value of {show(t)} is needed, and is given {described(value)}")
        return self._types(type(value).__name__, t)

    def _types(self, constructor: str, t: DataTerm) -> tuple:
        scheme = self.checked.constructors[constructor]
        if not hasattr(scheme.type, "params"):
            return ()
        table = {id(p): a for p, a in zip(scheme.params, t.args, strict=True)}
        own = scheme.type.result
        # A field of the type itself is of this very term, so that the walk over a long list finds what it knows.
        return tuple(
            t if f is own or _same_data(f, own) else replaced(f, table) for f in map(prune, scheme.type.params)
        )


def _same_data(f: Any, own: Any) -> bool:
    return (
        isinstance(f, DataTerm)
        and f.name == own.name
        and len(f.args) == len(own.args)
        and all(prune(a) is prune(b) or a == b for a, b in zip(f.args, own.args, strict=True))
    )


def described(value: Any) -> str:
    """A value for an error: what its type would be."""
    if type(value) in PYTHON:
        return f"the Python {type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "biuf" or value.dtype.name == "bfloat16":
            return show(tensor(value.shape, value.dtype.name) if value.ndim else scalar(value.dtype.name))
        return f"an array of {value.dtype}"
    if isinstance(value, Constructed):
        return f"a {value.constructor}(..)"
    if isinstance(getattr(value, "__relay_function__", None), ModuleEntry):
        return f"the function @{value.__relay_function__.name}"
    return f"a {type(value).__name__}"


def annotation(t: Any, declaration: Callable[[str], Any]) -> Any:
    """The annotation of the core that a term is: sizes that are declared or open become symbols, one program for all."""
    t = prune(t)
    match t:
        case TensorTerm():
            dtype, shape = prune(t.dtype), prune(t.shape)
            if isinstance(dtype, str) and isinstance(shape, tuple) and shape:
                return TensorAnnotation(dtype, tuple(map(_size, shape)))
        case TupleTerm():
            return types.GenericAlias(tuple, tuple([annotation(e, declaration) for e in t.elems])) if t.elems else None
        case DataTerm():
            return ground(t, {}, declaration)
    return None


def _size(size: Any) -> Any:
    size = prune(size)
    if isinstance(size, int):
        return size
    if size is ANY or not isinstance(size, Dim) or not size_text(size).isidentifier():
        return Any
    return size_text(size)
