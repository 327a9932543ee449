"""Paths to objects: from the decorated function to a function, a module's names, a cell, a container.

Idea: inference reads free names, and their values lead to more of them: a function has globals and cells, a module has
names, a decorated function refers to the function that it decorates. The place of every dependency can therefore be
reached from the function and from the values of earlier dependencies, by steps that another process can repeat.

Input: roots and dependencies, in order. Output: paths: a start (the number of a root, or of a dependency, whose value
it is), and steps.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Iterator
from typing import Any

from ..backend.native.format import Unportable
from ..utils.attributes import has_own

Step = tuple[str, Any]


def parts(value: Any) -> Iterator[tuple[Step, Any]]:
    """The objects that an object refers to directly."""
    if isinstance(value, types.FunctionType):
        yield ("attribute", "__globals__"), value.__globals__
        for i, cell in enumerate(value.__closure__ or ()):
            yield ("cell", i), cell
    elif isinstance(value, types.CellType):
        try:
            yield ("contents", None), value.cell_contents
        except ValueError:  # not bound yet
            return
    elif isinstance(value, types.ModuleType):
        yield ("attribute", "__dict__"), vars(value)
    elif isinstance(value, types.MethodType):
        yield ("attribute", "__func__"), value.__func__
        yield ("attribute", "__self__"), value.__self__
    elif isinstance(value, functools.partial):
        yield ("attribute", "func"), value.func
        yield ("attribute", "args"), value.args
        yield ("attribute", "keywords"), value.keywords
    elif isinstance(value, functools._lru_cache_wrapper):
        yield ("attribute", "__wrapped__"), value.__wrapped__
    elif isinstance(value, property):
        yield ("attribute", "fget"), value.fget
    elif isinstance(value, staticmethod | classmethod):
        yield ("attribute", "__func__"), value.__func__
    elif isinstance(value, type):
        for name, member in vars(value).items():
            if isinstance(member, types.FunctionType | property | staticmethod | classmethod) or _is_ours(member):
                yield ("member", name), member
        for i, base in enumerate(value.__bases__):
            yield ("base", i), base
    elif isinstance(value, list | tuple):
        yield ("class", None), type(value)
        for i, item in enumerate(value):
            yield ("item", i), item
    elif type(value) is dict:
        for key, item in value.items():
            if isinstance(key, str):
                yield ("item", key), item
    elif has_own(value, "__relay_operator__"):
        for name in ("function", "relation", "vjp_rule", "dtype", "batch", "lower"):
            yield ("attribute", name), getattr(value, name)
    elif _is_ours(value):
        for name in ("__relay_derived__", "__relay_function__", "__relay_model__"):
            if has_own(value, name):
                yield ("attribute", name), getattr(value, name)
    elif hasattr(type(value), "__dataclass_fields__"):
        yield ("class", None), type(value)
        for name in value.__dataclass_fields__:
            if hasattr(value, name):
                yield ("attribute", name), getattr(value, name)


def _is_ours(value: Any) -> bool:
    return any(has_own(value, name) for name in ("__relay_derived__", "__relay_function__", "__relay_model__"))


STEPS = {
    "attribute": getattr,
    "cell": lambda value, i: value.__closure__[i],
    "contents": lambda value, _: value.cell_contents,
    "member": lambda value, name: vars(value)[name],
    "base": lambda value, i: value.__bases__[i],
    "item": lambda value, key: value[key],
    "class": lambda value, _: type(value),
}


class Paths:
    """Finds the paths of places, and the places of paths.

    Args:
        roots: where everything begins.
    """

    def __init__(self, roots: list[Any]):
        self.values: list[Any] = []
        self.known: dict[int, list] = {id(vars(builtins)): ["builtins"]}
        for root in roots:
            self.add(root)

    @classmethod
    def of_values(cls, roots: list[Any]) -> Paths:
        """Paths that only find places, given the values of dependencies, which are appended to `values`."""
        paths = cls([])
        paths.values = list(roots)
        return paths

    def add(self, value: Any) -> None:
        """Add a start of paths: the value of the next dependency."""
        self.values.append(value)
        stack: list[tuple[Any, list]] = [(value, [len(self.values) - 1])]
        while stack:
            top, path = stack.pop()
            if id(top) in self.known or isinstance(top, str | int | float | bool | None):
                continue
            self.known[id(top)] = path
            if path[-1] in (["attribute", "__globals__"], ["attribute", "__dict__"]):
                continue  # names are read one by one
            stack.extend((part, [*path, list(step)]) for step, part in parts(top))

    def path(self, place: Any) -> list:
        """The path to a place.

        Raises:
            Unportable: there is none.
        """
        found = self.known.get(id(place))
        if found is None:
            raise Unportable(f"a {type(place).__name__} that is not found from the function")
        return found

    def place(self, path: list) -> Any:
        """The place at the end of a path.

        Raises:
            LookupError, AttributeError, TypeError, ValueError: it is not there any more.
        """
        if path == ["builtins"]:
            return vars(builtins)
        begin, *steps = path
        value = self.values[begin]
        for kind, argument in steps:
            value = STEPS[kind](value, argument)
        return value
