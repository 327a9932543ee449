"""Running mutually recursive generators without using Python's stack.

A step is a generator that yields the steps whose results it needs, and is sent these results. Statement handlers and
the liveness analysis are steps, so a chain of a thousand `elif` branches needs a list of a thousand entries, not a
thousand frames.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

Steps: TypeAlias = Generator[Any, Any, Any]
"""What yields steps of its own kind, is sent what they return, and returns something."""


def run(step: Steps) -> Any:
    """Run a step, and the steps that it yields, to the end.

    Returns:
        What the step returns.

    Raises:
        Exception: what a step raises; the steps that wait for it see it at their `yield` first.
    """
    stack, value, error = [step], None, None
    while stack:
        try:
            if error is None:
                child = stack[-1].send(value)
            else:
                thrown, error = error, None
                child = stack[-1].throw(thrown)
        except StopIteration as stop:
            stack.pop()
            value = stop.value
        except BaseException as caught:
            stack.pop()
            if not stack:
                raise
            error = caught
        else:
            stack.append(child)
            value = None
    return value
