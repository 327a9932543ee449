"""Ctrl-C between whole steps, for the executors that run in Python.

A training step writes many arrays; an interrupt between two of them would leave half a step. While a program that
writes references runs, SIGINT is only recorded. `poll` is called after every iteration of a loop that writes, and runs
the handler of the process there: Python's own raises `KeyboardInterrupt`. (The native executor polls by itself.)
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

_pending = False
_held = 0
_handler: Callable[[int, Any], Any] = signal.default_int_handler  # what the process does about SIGINT


def poll() -> None:
    """Handle a noted interrupt: this is a place between whole steps.

    Raises:
        KeyboardInterrupt: or what the handler of the process raises.
    """
    global _pending
    if _pending:
        _pending = False
        _handler(signal.SIGINT, sys._getframe())


def _note(number: int, frame: Any) -> None:
    global _pending
    _pending = True


@contextlib.contextmanager
def whole_steps() -> Iterator[None]:
    """Note SIGINT instead of handling it anywhere; it is handled at the next `poll`, or at the end.

    Only the main thread receives signals; elsewhere this does nothing, nor where no Python function handles SIGINT: it is
    ignored, or ends the process.
    """
    global _held, _pending, _handler
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    if before is not _note:
        _handler = before
        signal.signal(signal.SIGINT, _note)
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if _held == 0:
            if signal.getsignal(signal.SIGINT) is _note:
                signal.signal(signal.SIGINT, _handler)
            poll()


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """SIGINT waits for the end of this, where what the process does about it happens: `KeyboardInterrupt`, say.

    Only the main thread receives signals; elsewhere this does nothing, nor where no Python function handles SIGINT.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    noted: list[Any] = []
    signal.signal(signal.SIGINT, lambda number, frame: noted.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if noted:
        before(signal.SIGINT, sys._getframe())
