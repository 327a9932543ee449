"""Attributes: `value.name` of arrays, structures, records, classes and modules."""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.types import Array, Ref, Scalar, Type
from ...library.complex_numbers import Complex
from ...library.sources import METHODS as LIBRARY_METHODS
from ...prims.api.numpy_api import METHODS
from ...utils.attributes import has_own
from ...utils.errors import AttributeError_, nearest
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..values.kinds import is_run_time, is_word
from ..values.treedef import describe, name_of
from ..values.values import AtVal, Bound, Dyn, Iter, Raised, Seq, Static, Val
from . import words
from .advice import ARRAY_METHODS
from .leaves import as_new, lift
from .ranges import range_attribute

UPDATES: dict[str, Callable | None] = {
    "set": None,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "min": np.minimum,
    "max": np.maximum,
}
"""What `relay.at(x)[i]` has, and which function it applies to what is there and what is given."""

# Their contents do not change.
LIBRARIES = ("numpy", "math", "operator", "myia_relay", "functools", "dataclasses")


def attribute(engine: Engine, frame: Frame, value: Val, name: str) -> Val:
    """`value.name`.

    Raises:
        AttributeError_: there is no such attribute in the language.
        LoweringError: it is one of a string that is known at run time only.
    """  # noqa: DOC501
    if is_run_time(value):
        return method_of(list, value, name)
    if isinstance(value, Iter) and value.kind == "range":
        return range_attribute(value, name)
    if is_word(value):
        if hasattr(str, name):
            raise words.refused(f"str.{name}")
        return method_of(str, value, name)
    if isinstance(value, Seq):
        if name in value.fields and value.kind == "record":
            return value.get(name)
        if value.kind == "record" and hasattr(value.cls, "_fields") and name in ("_replace", "_asdict"):
            return Bound(value, name)
        if value.kind == "record":
            return record_attribute(engine, frame, value, name)
        container = {"dict": dict, "list": list, "tuple": tuple}.get(value.kind)
        if container is not None:
            return method_of(container, value, name)
        if value.kind == "dataset":
            names = {"images": value.elems[0], "onehot": value.elems[1]}
            if name in names:
                return names[name]
    elif isinstance(value, Dyn):
        return dyn_attribute(engine, frame, value, name)
    elif isinstance(value, Static):
        obj = value.value
        if isinstance(obj, str):
            return method_of(str, value, name)
        found = _static_attribute(obj, name)
        if isinstance(obj, types.ModuleType):
            library = obj.__name__.split(".")[0] in LIBRARIES
            dependency = None if library else engine.depend("dict", vars(obj), name, found)
        else:
            library = (type(obj).__module__ or "").split(".")[0] in LIBRARIES
            dependency = None if library else engine.depend("attribute", obj, name, found)
        return engine.from_python(frame, found, dependency)
    elif isinstance(value, AtVal):
        if value.index is not None and name in UPDATES:
            return Bound(value, name)
        raise AttributeError_(f"relay.at(x)[i] has {', '.join(UPDATES)}, not '{name}'{nearest(name, UPDATES)}")
    elif isinstance(value, Raised) and name == "args":
        return Seq("tuple", (value.message,) if value.message else ())
    raise AttributeError_(f"{describe(value)} has no attribute '{name}'")


def method_of(container: type, value: Val, name: str) -> Bound:
    """A method of a list, a tuple, a dict or a string.

    Raises:
        AttributeError_: the class has no such method.
    """
    if not hasattr(container, name):
        public = [method for method in dir(container) if not method.startswith("_")]
        raise AttributeError_(f"'{container.__name__}' object has no attribute '{name}'{nearest(name, public)}")
    return Bound(value, name)


def _static_attribute(obj: Any, name: str) -> Any:
    try:
        return getattr(obj, name)
    except AttributeError:
        label = name_of(obj)
        kind = "module" if isinstance(obj, types.ModuleType) else "object"
        if label == "_Namespace":  # `relay` is both a decorator and a module
            kind, label = "module", "relay"
        raise AttributeError_(f"{kind} '{label}' has no attribute '{name}'{nearest(name, dir(obj))}") from None


def record_attribute(engine: Engine, frame: Frame, value: Seq, name: str) -> Val:
    """A method, property or class attribute of a record."""
    if value.cls is Complex and name in ("shape", "ndim", "size") and isinstance(real := value.elems[0], Dyn):
        if not isinstance(real.type, Scalar) or not real.type.weak:  # as of its parts, whose sizes are known here
            return dyn_attribute(engine, frame, real, name)
    return class_attribute(engine, frame, value, value.cls, value.fields, name)


def class_attribute(engine: Engine, frame: Frame, value: Val, cls: type, fields: tuple[str, ...], name: str) -> Val:
    """A method, property or class attribute of an instance of a class.

    Raises:
        AttributeError_: the class has no such attribute.
    """
    try:
        found = inspect.getattr_static(cls, name)
    except AttributeError:
        public = [n for n in dir(cls) if not n.startswith("_")]
        raise AttributeError_(
            f"{cls.__name__} has no field '{name}'{nearest(name, [*fields, *public])} (its fields are {', '.join(fields)})"
        ) from None
    if isinstance(found, staticmethod):
        return Static(found.__func__)
    if isinstance(found, classmethod):
        return Bound(Static(cls), found.__func__)
    if isinstance(found, types.FunctionType) or has_own(found, "__relay_function__"):
        return Bound(value, found)
    if isinstance(found, property):
        return PropertyVal(value, found.fget)
    return engine.from_python(frame, found, None)


class PropertyVal(Val):
    """A property, which must be called to get its value; `builtins.getattr_` does that."""

    def __init__(self, receiver: Val, function: Any):
        self.receiver, self.function = receiver, function


PYTHON = {"float64": float, "int64": int, "bool": bool}


def dyn_attribute(engine: Engine, frame: Frame, value: Dyn, name: str) -> Val:
    """An attribute of an array, a scalar or a reference.

    Raises:
        AttributeError_: there is no such attribute in the language, or none of this kind of number.
    """
    t: Type = value.type
    if isinstance(t, Ref):
        if name in METHODS_OF_REFS:
            return Bound(value, name)
        raise AttributeError_(f"a {t.spec} has no attribute '{name}' in compiled code{nearest(name, METHODS_OF_REFS)}")
    method = METHODS.get(name)
    if method is not None and isinstance(t, Scalar) and t.weak and not hasattr(PYTHON[t.dtype], name):
        raise AttributeError_(
            f"'{describe(value)}' object has no attribute '{name}'; Python numbers have no methods of arrays: use np.{name}(...), "
            "or pass a NumPy number"
        )
    if method is not None and isinstance(t, Scalar) and not t.weak and not hasattr(np.generic, name):
        raise AttributeError_(f"'numpy.{t.dtype}' object has no attribute '{name}'; use np.{name}(...)")
    if method is None and isinstance(t, Array) and name in LIBRARY_METHODS:
        return Bound(value, LIBRARY_METHODS[name])
    if method is None:
        advice = f"; {ARRAY_METHODS[name]}" if name in ARRAY_METHODS else nearest(name, METHODS)
        error = AttributeError_(f"{describe(value)} has no attribute '{name}' in the language{advice}")
        kind = (
            np.ndarray
            if isinstance(t, Array)
            else PYTHON.get(t.dtype)
            if isinstance(t, Scalar) and t.weak
            else np.generic
        )
        error.in_python = not hasattr(kind, name)
        raise error
    if getattr(method, "attribute", False):
        return as_new(frame, lift(engine, frame, method(frame.builder, frame.var(value))), [value])
    return Bound(value, name)


METHODS_OF_REFS: dict[str, Callable] = {}
