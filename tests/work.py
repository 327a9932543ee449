"""How much work something is, counted in calls of Python functions: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls_of(f: Callable[..., Any], *args: Any) -> tuple[int, Any]:
    """How many Python functions `f` calls, directly or not, and what it returns."""
    count, before = 0, sys.getprofile()

    def seen(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        result = f(*args)
    finally:
        sys.setprofile(before)
    return count, result
