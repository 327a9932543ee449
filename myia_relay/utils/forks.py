"""Forks while other threads compile.

A compiling thread holds locks of this package, of TVM and of LLVM. The child of a fork has one thread only, so nothing
would release the locks of the others. A fork by another thread therefore waits until the compilation is done. This
concerns `os.fork` and `multiprocessing` with forks, not processes that are started as new programs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

LONGEST = 300.0  # seconds that a fork waits
_changed = threading.Condition(threading.RLock())
_busy: dict[int, int] = {}  # threads that must not be lost in a fork -> how deeply they are nested
_owners: weakref.WeakSet = weakref.WeakSet()


def unlock_in_child(owner: Any) -> None:
    """In a child, an object gets a new `_lock` if a thread that is not there held it."""
    _owners.add(owner)


@contextlib.contextmanager
def unforked() -> Iterator[None]:
    """No other thread forks this process meanwhile."""
    _hook()
    me = threading.get_ident()
    with _changed:
        _busy[me] = _busy.get(me, 0) + 1
    try:
        yield
    finally:
        with _changed:
            _busy[me] -= 1
            if not _busy[me]:
                del _busy[me]
                _changed.notify_all()


@functools.cache
def _hook() -> None:
    """Have forks wait, from the first compilation on."""
    import logging  # noqa: F401 (hooks run last first: its own takes a lock that the compiler wants, so it must come after ours)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=lambda: _changed.release())


def _before() -> None:
    _changed.acquire()
    if threading.get_ident() not in _busy:  # a fork from within: nothing may wait for the thread that it blocks
        # In the end it proceeds: a hook that ran before this one may block the compilation.
        _changed.wait_for(lambda: not _busy, LONGEST)


def _in_child() -> None:
    global _changed
    _changed = threading.Condition(threading.RLock())  # other threads may wait in the old one, which do not exist here
    me = threading.get_ident()
    for thread in [t for t in _busy if t != me]:
        del _busy[thread]
    for owner in list(_owners):
        if owner._lock.acquire(blocking=False):
            owner._lock.release()
        else:
            owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
