"""Containers that contain themselves, or that are nested too deeply for recursion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEEPEST = 500


def nesting_problem(value: Any) -> str | None:
    """What is wrong with how lists, tuples and dicts are nested in a value; None where nothing is."""
    path: list[tuple[int, Iterator]] = [(0, iter((value,)))]
    around: set[int] = set()
    while path:
        top = next(path[-1][1], path)
        if top is path:
            around.discard(path.pop()[0])
        elif isinstance(top, list | tuple | dict):
            if id(top) in around:
                return f"it holds a {type(top).__name__} that contains itself"
            if len(path) > DEEPEST:
                return f"it is nested more than {DEEPEST} levels deep"
            around.add(id(top))
            path.append((id(top), iter(top.values() if isinstance(top, dict) else top)))
    return None
