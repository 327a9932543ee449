"""The registry of the language: constructs, Python objects, transforms and methods of references.

Modules of this package and higher layers (`grad`, `create_model`, ...) register; `infer.language.calls` looks up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import syntax as S

SPECIAL: dict[Any, Callable] = {}


OF_CLASS: dict[type, Callable] = {}


DERIVED: dict[str, Callable] = {}


def special(*callables):
    """Register the handler of calls of a Python object: `(engine, frame, args, kwargs, origin, site) -> Val`, a coroutine."""

    def register(handler):
        for c in callables:
            SPECIAL[c] = handler
        return handler

    return register


def of_class(cls: type):
    """Register the handler of calls of objects of a class: `(engine, frame, value, args, kwargs, origin, site)`."""
    return lambda handler: OF_CLASS.setdefault(cls, handler)


def derived(transform: str):
    """Register the handler of calls of a transformed function: `(engine, frame, fn: Derived, args, kwargs, origin, site)`."""

    def register(handler):
        DERIVED[transform] = handler
        return handler

    return register


SYNTAX: dict[S.Syntax, Callable] = {}


def handles(op: S.Syntax):
    """Register the handler of a construct."""

    def register(fn):
        SYNTAX[op] = fn
        return fn

    return register
