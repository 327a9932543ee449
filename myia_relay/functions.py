"""Public functions: compiled code emits what they are or parses them, and plain Python calls compile themselves."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from .api import Relay
from .infer.arguments.arguments import quick_key
from .infer.engine.engine import Engine
from .infer.engine.frames import Frame
from .infer.language.calls import numeric
from .infer.language.registry import special
from .infer.values.values import Val
from .prims.api.implementations import Implementation

SIZES = (int, tuple, list, type(None))
CONSTANTS = (int, bool, str, type, type(None))
"""Classes of static arguments by whose values programs are found without a closer look."""


class ShownSignature:
    """`__signature__` of the functions that users call, for `help`, editors and the reference; the class itself has none."""

    def __get__(self, function: Any, owner: type | None = None) -> inspect.Signature:
        if function is None:
            raise AttributeError("__signature__")
        return function.shown_signature()


class Sized(Relay):
    """A function of which some parameters are sizes in one call and arrays in another.

    Attributes:
        sizes: these parameters: None, ints and shapes there are compile-time constants.
    """

    def __init__(self, function: Callable, static: Iterable[str], sizes: tuple[str, ...]):
        self.sizes = sizes
        super().__init__(function, static=(*static, *sizes))

    __signature__ = ShownSignature()

    def shown_signature(self) -> inspect.Signature:
        """The signature that users are shown."""
        return inspect.signature(self.__wrapped__)

    @functools.cached_property
    def positional(self) -> tuple[str, ...]:
        """The names of the parameters that may be given by position."""
        return tuple(inspect.signature(self.__wrapped__).parameters)

    def _quick_key(self, args: tuple, kwargs: dict, leaves: list) -> tuple | None:
        named = [*zip(self.positional, args, strict=False), *kwargs.items()] if kwargs else zip(self.positional, args)
        given, constants = [], []
        for name, value in named:
            if not self._is_static(name, value):
                given.append(value)
                constants.append(name)
                continue
            kind = type(value)
            if kind is tuple:
                if any(type(v) is not int for v in value):
                    return None
            elif kind not in CONSTANTS:
                return None
            constants.append((name, kind, value))
        key = quick_key(tuple(given), leaves, self._listed)
        return None if key is None or len(args) > len(self.positional) else (key, *constants)

    def _is_static(self, name: str | int, value: Any) -> bool:
        return name in self.static and (name not in self.sizes or isinstance(value, SIZES))

    def _signature(self, args, kwargs, leaves, structural=False, listed=None):
        # From the first static argument on they are named, so that they are known at compile time.
        names = self.positional
        known = (i for i, (name, value) in enumerate(zip(names, args, strict=False)) if self._is_static(name, value))
        first = next(known, len(args))
        named = dict(zip(names[first:], args[first:], strict=False))
        if first + len(named) == len(args) and not named.keys() & kwargs.keys():
            args, kwargs = args[:first], {**named, **kwargs}
        return super()._signature(args, kwargs, leaves, structural, listed)


class OperatorFunction(Sized):
    """A function with an entry in the tables of `prims.api`.

    Attributes:
        operator_name: what it is called.
        implementation: its entry.
    """

    def __init__(self, module: str, name: str, implementation: Implementation, sizes: tuple[str, ...] = ()):
        self.operator_name = name
        self.implementation = implementation

        def call(*args, **kwargs):
            raise NotImplementedError  # never run: compiled code finds the implementation

        call.__name__ = call.__qualname__ = name
        call.__module__ = module
        call.__doc__ = users_text(implementation.function.__doc__ or "")
        super().__init__(call, implementation.static, sizes)
        special(self)(self.compiled)

    @functools.cached_property
    def positional(self) -> tuple[str, ...]:
        """The names of the parameters that may be given by position."""
        return self.implementation.positional

    def shown_signature(self) -> inspect.Signature:
        """That of the rule, without what is not the user's."""
        return users_signature(self.implementation)

    async def compiled(self, engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        """Emit a call in compiled code."""
        return numeric(engine, frame, self.implementation, args, kwargs, self.implementation.name)


def users_text(text: str) -> str:
    """The docstring of a rule on staged values as one of the function that users call: without the builder."""
    return re.sub(r"\n *b: the builder\.(?=\n)", "", text)


def users_signature(implementation: Implementation) -> inspect.Signature:
    """The signature of a rule on staged values as one of the function that users call."""
    rule = inspect.signature(implementation.function).parameters.values()
    shown = [
        p.replace(name=p.name.rstrip("_"), annotation=inspect.Parameter.empty)
        for p in list(rule)[1:]
        if not p.name.startswith("_")
    ]
    return inspect.Signature(shown)


__all__ = ["OperatorFunction", "ShownSignature", "Sized", "users_signature", "users_text"]
