"""Pickling and copying of what is made of functions: decorated functions, transforms, models' functions.

Idea: compiled programs do not travel; the cache of programs has them wherever the object arrives. An object that its module
has under its name is pickled as Python pickles functions, by that name, and copies of it are itself. Any other one is pickled
as what it was made of (`Remade`), and made again. `cloudpickle` (joblib, Dask, Spark) sends functions of the main module by
value, because a worker has another main module: objects of the main module follow it, with their source text.

Input: an object with `__module__` and `__qualname__`. Output: what `__reduce_ex__` returns.
"""

from __future__ import annotations

import copy
import copyreg
import sys
from collections.abc import Iterable
from types import FrameType, MethodType
from typing import Any

from .sent_source import MAIN, SentSource

KEPT = 64
_made: dict[Any, Any] = {}
"""Objects that were made again. Equal ones share all they have: a worker gets the same function with every task."""


def copied(values: Iterable) -> list:
    """Copies of arguments, and of what they hold; identical objects stay identical, and models keep their code."""
    values = list(values)
    specs = [v.spec for v in (getattr(v, "model", v) for v in values) if hasattr(v, "spec")]
    return copy.deepcopy(values, {id(spec): spec for spec in specs})


class Remade:
    """Base of classes whose instances are pickled by name, or as the arguments of their constructor."""

    def _made_of(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments that make an equal object.

        Raises:
            NotImplementedError: the class has no way to say.
        """
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        name, by_value = name_of(self), _by_value(sys._getframe(1))
        if name is not None and not (self.__module__ in MAIN and by_value):
            return name
        made_of: tuple = self._made_of()
        method = made_of[0][0]
        if isinstance(method, MethodType) and isinstance(getattr(type(method.__self__), method.__name__, None), Remade):
            return getattr, (method.__self__, method.__name__)
        if by_value:
            made_of = (*made_of, SentSource.of(made_of))
        # The object comes before what it is made of: functions that refer to themselves lead back to it.
        return copyreg.__newobj__, (type(self),), made_of  # pyright: ignore[reportAttributeAccessIssue]

    def __deepcopy__(self, memo: dict) -> Any:
        if name_of(self) is not None:
            return self
        from copy import deepcopy

        memo[id(self)] = made = object.__new__(type(self))
        made.__setstate__(deepcopy(self._made_of(), memo))
        return made

    def __setstate__(self, state: tuple) -> None:
        args, kwargs, *sources = state
        for source in sources:
            source.give()
        key = (type(self), args, tuple(kwargs.items()))
        try:
            known = _made.get(key)
        except TypeError:  # something in it has no hash
            type(self).__init__(self, *args, **kwargs)
            return
        if known is not None:
            self.__dict__ = known.__dict__
            return
        type(self).__init__(self, *args, **kwargs)
        if len(_made) >= KEPT:
            _made.clear()
        _made[key] = self


def name_of(obj: Any) -> str | None:
    """The name, with dots, under which an object's module has this very object; None where it does not."""
    name = getattr(obj, "__qualname__", None)
    found: Any = sys.modules.get(getattr(obj, "__module__", None) or "")
    if not isinstance(name, str) or found is None:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is obj else None


def main_or(module: Any) -> Any:
    """A module's name. A process that was spawned calls the main module by another name, and has it under both."""
    return "__main__" if module == "__mp_main__" else module


def _by_value(frame: FrameType | None) -> bool:
    """Whether the pickler that asks sends functions of the main module by value."""
    while frame is not None and frame.f_globals.get("__name__") == "pickle":
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).endswith("cloudpickle.cloudpickle")


__all__ = ["Remade", "main_or", "name_of"]
