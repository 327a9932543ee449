"""Debugging of the compiler itself: the switch that turns on verification, and the graphs before and after each pass."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

Observer = Callable[[str, Any, Any], None]
"""`(name, graph, pass)`: a graph, and the stage or the pass that it comes from; the pass is None for a stage."""

_observers: list[Observer] = []


def debugging() -> bool:
    """Whether MYIA_RELAY_DEBUG asks for verification after every pass, and for full tracebacks."""
    return os.environ.get("MYIA_RELAY_DEBUG", "") not in ("", "0")


def memory_checked() -> bool:
    """Whether MYIA_RELAY_CHECKED asks for native code that checks every access to memory."""
    return os.environ.get("MYIA_RELAY_CHECKED", "") not in ("", "0")


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Show an observer the graph after every stage and every pass that changes it, of all that is compiled meanwhile."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def report(name: str, graph: Any, step: Any = None) -> None:
    """Tell the observers that a stage, or a pass, has made a graph."""
    for observer in _observers:
        observer(name, graph, step)
