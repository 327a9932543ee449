"""Texts of random calls: for each function of NumPy that compiled code knows, with each of its keywords.

    CALLS["np.sum"](draw) -> "np.sum(a0, axis=1, keepdims=True)"

What is drawn is right most often and wrong now and then: an axis that is not there, shapes that do not fit, a float for a
size. NumPy says what it means, or raises.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .values import DTYPES, Draw

CALLS: dict[str, Callable[[Draw], str]] = {}


def calls(*names: str):
    """Register how calls of functions are drawn."""

    def register(rule):
        for name in names:
            if _exists(name):
                CALLS[name] = lambda d, name=name: rule(d, name)
        return rule

    return register


def _exists(name: str) -> bool:
    """Whether this NumPy has a function."""
    at = np
    for part in name.split(".")[1:]:
        if not hasattr(at, part):
            return False
        at = getattr(at, part)
    return True


def call(name: str, *parts: str | None) -> str:
    """The text of a call; parts that are None are left out."""
    return f"{name}({', '.join(p for p in parts if p is not None)})"


def maybe(d: Draw, key: str, thunk, p: float = 0.4) -> str | None:
    """`key=...`, or nothing."""
    return f"{key}={thunk()}" if d.chance(p) else None


def flag(d: Draw, key: str, p: float = 0.25) -> str | None:
    return maybe(d, key, lambda: d.one(("True", "True", "False")), p)


def dtype(d: Draw, p: float = 0.3) -> str | None:
    return maybe(
        d, "dtype", lambda: d.one((*(f"np.{t}" if t != "bool" else "bool" for t in DTYPES), "float", "int")), p
    )


def size(d: Draw) -> str:
    """A size, now and then none."""
    return d.one(("0", "1", "2", "3", "4", "5", "3", "2", "-1", "2.0", "True", "np.int64(3)"))


def shape(d: Draw) -> str:
    return d.one(("3", "(2, 3)", "()", "(0, 2)", "[2, 2]", "(1,)", "-1", "(2, -1)", "2.0", "(True, 2)"))
