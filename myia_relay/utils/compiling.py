"""One thread compiles at a time, and forks wait until it is done.

Compilations share what is the same for all: parsed graphs, families of data types, declared types, the graphs of a module.
Each of these is made once, by a thread that holds the lock of this module (`compiling`, `once`, `once_property`); two objects
for one type would be two types. Little is lost: Python runs one thread at a time, and a compilation is mostly Python. Calls
of compiled programs do not wait for it. Whoever holds another lock must not begin to compile.

A compiling thread holds locks of TVM and of LLVM, too. The child of a fork has one thread only, so nothing would release the
locks of the others. A fork by another thread therefore waits. This concerns `os.fork` and `multiprocessing` with forks, not
processes that are started as new programs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LONGEST = 300.0  # seconds that a fork waits
_lock = threading.Lock()
_sessions = itertools.count(1)
_hooked = False


class _OfThread(threading.local):
    """What a thread holds.

    Attributes:
        compiles: whether it has the lock, or works for a thread that has it and waits.
        forks: whether it took the lock for a fork.
        session: the number of the time for which it has the lock, or had it last.
    """

    compiles = forks = False
    session = 0


_thread = _OfThread()
_owners: weakref.WeakSet = weakref.WeakSet()


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """No other thread compiles, or forks this process, meanwhile."""
    if _thread.compiles:
        yield
        return
    with _lock, _as_compiling(True):
        _hook()
        _thread.session = next(_sessions)
        yield


def session() -> int:
    """A number that stays the same while this thread compiles, and is never used again: for what is looked at once in a session."""
    return _thread.session if _thread.compiles else next(_sessions)


@contextlib.contextmanager
def _as_compiling(compiles: bool) -> Iterator[None]:
    before = _thread.compiles
    _thread.compiles = compiles
    try:
        yield
    finally:
        _thread.compiles = before


def for_this_thread(function: Callable[[], R]) -> Callable[[], R]:
    """A function for another thread, for which this one waits: it compiles there if this thread does."""
    compiles, number = _thread.compiles, _thread.session

    def run() -> R:
        with _as_compiling(compiles):
            _thread.session = number
            return function()

    return run


def once(function: Callable[P, R]) -> Callable[P, R]:
    """Like `functools.cache`, but threads that ask for the same at the same time get the same object.

    The arguments are hashable, and by position. Known results are looked up without a lock.
    """
    known: dict[Hashable, R] = {}
    missing = object()

    @functools.wraps(function)
    def found(*args: P.args, **kwargs: P.kwargs) -> R:
        assert not kwargs
        result: Any = known.get(args, missing)
        if result is missing:
            with compiling():
                result = known.get(args, missing)
                if result is missing:
                    result = known[args] = function(*args, **kwargs)
        return result

    return found


class once_property(functools.cached_property):
    """A `functools.cached_property` that is computed once, whichever threads ask for it.

    Python before 3.12 has a lock for each cached property. It is taken after ours here, so no two threads wait for each other;
    what is computed by `functools.cached_property` itself must not compile.
    """

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with compiling():
            return super().__get__(instance, owner)


def keep_others_from_compiling(longest: float) -> None:
    """At the end of the interpreter: wait until no thread compiles, for so many seconds at most; from then on only this one may."""
    if not _thread.compiles and _lock.acquire(timeout=longest):
        _thread.compiles = True


# Forks.


def unlock_in_child(owner: Any) -> None:
    """In a child, an object gets a new `_lock` if a thread that is not there held it."""
    _owners.add(owner)


def _hook() -> None:
    """Have forks wait, from the first compilation on; the thread has the lock.

    Modules that are imported here have hooks in pairs: one takes a lock before a fork, one releases it. Hooks run last first, so
    these come after ours: the compiler wants the locks. And they must be there before a fork waits. The compiler imports the
    modules, and behind the fork a lock would be released that nobody took.
    """
    global _hooked
    if not _hooked:
        import concurrent.futures.thread  # noqa: F401
        import logging  # noqa: F401

        _hooked = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_before, after_in_parent=_after)


def _before() -> None:
    # Nothing may wait for a thread that forks within a compilation.
    # In the end it proceeds: a hook that ran before this one may block the compilation.
    _thread.forks = not _thread.compiles and _lock.acquire(timeout=LONGEST)


def _after() -> None:
    if _thread.forks:
        _lock.release()


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()  # other threads may hold the old one, or wait for it, which do not exist here
    for owner in list(_owners):
        if owner._lock.acquire(blocking=False):
            owner._lock.release()
        else:
            owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
