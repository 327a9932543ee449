"""Free names that a compilation has read, and the check that they still hold the same values.

Python reads globals, closure cells and attributes when a function runs. In compiled code, numbers, strings and
functions found there are constants, so it is valid only while they stay the same. Arrays and models are passed in at
every call (`Hidden`); for them it is enough that a new one has the type of the old one. Containers are compared by
content, functions by code and defaults, and classes of records by their contents, because methods, properties and
operators may be rebound.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.families import family_of
from ...abstract.types import Array, Data, Type
from ...utils.errors import TypeError_
from ...utils.nesting import nesting_problem

HIDDEN = "hidden"  # how the keys of hidden arguments begin


def type_of_hidden(value: Any) -> Type | None:
    """The type of a plain array, a tree or a reference (a model), None for everything else."""
    if isinstance(value, np.ndarray):
        return Array(value.dtype.name, value.shape) if type(value) in (np.ndarray, np.memmap) else None
    family = family_of(type(value))
    if family is not None:
        return Data(family)
    return value.__relay_ref__() if hasattr(type(value), "__relay_ref__") else None


WHOLE = frozenset((str, types.NoneType, types.FunctionType, types.BuiltinFunctionType, types.MethodType))
"""Classes of Python objects that are known as a whole: nothing in them is looked at."""


def content(value: Any) -> tuple | None:
    """The content of a container: keys and values; None if the value is not a mutable container."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        return (*value, *value.values())
    if hasattr(type(value), "__dataclass_fields__"):
        return tuple(getattr(value, f, None) for f in value.__dataclass_fields__)
    return None


def refuse_nesting(value: Any, dependency: Dependency | None) -> None:
    """Refuse a container in a free name that contains itself, or is nested too deeply. Its content is checked before
    this.

    Raises:
        TypeError_: it cannot be taken apart.
    """
    if dependency is not None and (problem := nesting_problem(value)) is not None:
        raise TypeError_(f"'{dependency.name}' cannot be used in compiled code: {problem}")


def code_of(function: types.FunctionType) -> tuple:
    """What a call of a function runs: its code and defaults, which tools that reload modules replace in place."""
    named = function.__kwdefaults__  # a dict, which may be changed in place
    return (function.__code__, function.__defaults__, *((tuple(named), *named.values()) if named else ()))


def classes_of(cls: type) -> list[type]:
    """A class of records and its bases, except Python's own, which do not change."""
    return [c for c in cls.__mro__ if c.__module__ not in ("builtins", "typing", "abc")]


def members(cls: type) -> tuple:
    """The members of a class: names, then values; without what Python or this package stores there."""
    own = {k: v for k, v in vars(cls).items() if k not in NOTED and not k.startswith(("_abc_", "__relay_"))}
    return (*own, *own.values())


def same(now: Any, then: Any) -> bool:
    """Whether compiled code cannot distinguish two values."""
    if now is then:
        return True
    if type(now) is not type(then):
        return False
    if isinstance(now, tuple):
        return len(now) == len(then) and (all(map(operator.is_, now, then)) or all(map(same, now, then)))
    if isinstance(now, types.MethodType):
        return now.__self__ is then.__self__ and now.__func__ is then.__func__
    # By text: 0.0 is not -0.0, and NaN is NaN.
    return isinstance(now, int | float | str | np.number | np.bool_) and repr(now) == repr(then)


NOTED = {"__doc__", "__annotations__", "__abstractmethods__"}
READERS: dict[str, Callable[[Any, str], Any]] = {
    "cell": lambda place, name: place.cell_contents,
    "dict": lambda place, name: place[name],
    "attribute": getattr,
    "content": lambda place, name: content(place),
    "code": lambda place, name: code_of(place),
    "members": lambda place, name: members(place),
    "absent": lambda place, name: name not in place,
}


@dataclass(frozen=True, eq=False)
class Dependency:
    """A free name that was read at compile time, with its value: compiled code is valid as long as it has that value.

    Attributes:
        kind: how it is read: one of `READERS`.
        place: the cell, dictionary, object, container, function or class.
        name: the name, where the kind has one.
        value: what it held.
        type: for an array or model: any other of this type is accepted, because it is passed in at each call.
    """

    kind: str
    place: Any
    name: str
    value: Any
    type: Type | None = None

    def read(self) -> Any:
        """The present value of the name."""
        return READERS[self.kind](self.place, self.name)

    def holds(self) -> bool:
        """Whether the name still has the value that the code was compiled for."""
        try:
            now = READERS[self.kind](self.place, self.name)
        except (KeyError, ValueError, AttributeError):
            return False
        if self.type is not None:  # The shape of an array may have been changed in place, so identity does not suffice.
            return type_of_hidden(now) == self.type
        return same(now, self.value)


# The same conditions as expressions over a place `p{i}` and a value `v{i}`, for calls that take about a microsecond.
# Where one of them fails, `holds` decides.
CHECKS = {
    "cell": "p{i}.cell_contents is v{i}",
    "dict": "p{i}[{name!r}] is v{i}",
    "attribute": "p{i}.{name} is v{i}",
    "absent": "{name!r} not in p{i}",
    "code": "p{i}.__code__ is v{i}[0] and p{i}.__defaults__ is v{i}[1]",
    "members": "p{i}.__dict__ == v{i}",
}


def checker(dependencies: list[Dependency], count: int, run: Callable, again: Callable, ints: list[int]) -> Callable:
    """A function of `count` numbers: `run` of them while all dependencies hold, else `again` of them.

    Args:
        dependencies: what `run` was compiled for.
        count: the number of arguments.
        run: the compiled program.
        again: what to call if a dependency does not hold, or an int does not fit into 64 bits.
        ints: which arguments are ints.
    """
    names: dict[str, Any] = {"run": run, "again": again}
    conditions = [f"-{2**63} <= a{k} <= {2**63 - 1}" for k in ints]
    slow = []
    for i, d in enumerate(dependencies):
        names |= {f"p{i}": d.place, f"v{i}": d.value}
        if d.kind == "members":  # with all that is noted there
            names[f"v{i}"] = dict(vars(d.place)) if d.holds() else None
        if d.kind in CHECKS and d.type is None and (d.kind != "attribute" or d.name.isidentifier()):
            conditions.append(CHECKS[d.kind].format(i=i, name=d.name))
            if d.kind == "code" and d.value[0].co_kwonlyargcount:  # without such parameters the defaults are unused
                conditions.append(f"not p{i}.__kwdefaults__")
        else:
            names[f"d{i}"] = d
            slow.append(f"d{i}.holds()")
    names["all_hold"] = lambda: all(d.holds() for d in dependencies)
    a = ", ".join(f"a{k}" for k in range(count))
    test = " and ".join([*conditions, *slow]) or "True"
    fits = " and ".join(f"-{2**63} <= a{k} <= {2**63 - 1}" for k in ints) or "True"
    source = f"""def call({a}):
    try:
        good = {test} or {fits} and all_hold()
    except (KeyError, ValueError, AttributeError):
        good = False
    return run({a}) if good else again({a})
"""
    exec(compile(source, "<myia_relay checked call>", "exec"), names)
    return names["call"]


@dataclass(frozen=True, eq=False)
class Hidden:
    """An implicit argument of the whole program: an array or model found in a free name, or made for each call.

    Attributes:
        dependency: the free name it is found in, read at every call; or
        value: the object itself; or
        make: `(arguments before this one) -> object`: makes it for every call.
    """

    dependency: Dependency | None
    value: Any
    make: Callable | None = None

    def fetch(self, values: list) -> Any:
        """The value to pass in this call; `values` are the program's arguments before this one."""
        if self.make is not None:
            return self.make(values)
        return self.value if self.dependency is None else self.dependency.read()
