"""Ctrl-C between whole steps, for the executors that run in Python.

A step of training writes many arrays; an interrupt between two of them would leave half a step. While a program that writes
references runs, SIGINT is only noted, and `poll`, called after every turn of a loop that writes, raises it there.
(The native executor polls by itself.)
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_pending = False
_held = 0


def poll() -> None:
    """Raise a noted interrupt: this is a place between whole steps."""
    global _pending
    if _pending:
        _pending = False
        raise KeyboardInterrupt


@contextlib.contextmanager
def whole_steps() -> Iterator[None]:
    """Note SIGINT instead of raising it anywhere; it is raised at the next `poll`, or at the end.

    Only the main thread receives signals; elsewhere this does nothing.
    """
    global _held, _pending
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number, frame):
        global _pending
        _pending = True

    before = signal.signal(signal.SIGINT, note) if _held == 0 else None
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if _held == 0:
            signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)
            noted, _pending = _pending, False
            if noted:
                raise KeyboardInterrupt
