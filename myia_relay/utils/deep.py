"""Running a function with enough stack for deep recursion.

The passes recurse as deep as control flow is nested, and a chain of five hundred `elif` is nested five hundred deep.
Python's recursion limit protects the C stack, so a function that needs a higher limit runs in a thread with a larger
stack.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from .compiling import for_this_thread

STACK = 1 << 30  # bytes; memory is taken as it is used
LIMIT = 100_000  # calls


def deeply(function: Callable[[], Any]) -> Any:
    """What a function returns or raises, called with a recursion limit of `LIMIT`.

    Raises:
        RecursionError: that is not enough, or there is no such thread.
    """
    outcome: list = []

    work = for_this_thread(function)

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK)
    try:
        sys.setrecursionlimit(max(limit, LIMIT))
        thread = threading.Thread(target=run)
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            raise RecursionError("no thread with a large stack") from None
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    result, error = outcome[0]
    if error is not None:
        raise error
    return result
