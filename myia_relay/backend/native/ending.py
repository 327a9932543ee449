"""The end of the interpreter while other threads, daemons, are in native code.

Before Python 3.14 a thread that asks for the interpreter after its end has begun is ended by `pthread_exit`, which unwinds its
stack. Native code is called through C++ of TVM's runtime, which does not let that pass: the process is aborted. So no thread may
come back from native code, or go into it, from the moment when the end begins. Threads that ask Python for something are kept
there for ever, as Python 3.14 does with all; those that begin a call or a compilation wait for ever; and the end waits for those
that are on their way back.
"""

from __future__ import annotations

import atexit
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from ...utils.compiling import keep_others_from_compiling

CALLER = "<myia_relay native call>"  # the file of the code of callers, see `caller.Writer`
LONGEST = 10.0  # seconds that the end of the interpreter waits: for a product of matrices, say
PAUSE = 0.002  # seconds between two looks

_last: int | None = None  # the thread that ends the interpreter
_callers: weakref.WeakSet[Callable] = weakref.WeakSet()
_registered = False


def watch(caller: Callable) -> None:
    """See to the calls of a native program that go through C++, at the end of the interpreter."""
    global _registered
    keep_daemons()
    _callers.add(caller)
    if not _registered:  # now, so that it runs before what the packages of TVM do at the end
        _registered = True
        atexit.register(_end)


def keep_daemons() -> None:
    """Keep this thread here for ever, if another one has begun to end the interpreter."""
    if _last is not None and threading.get_ident() != _last:
        never = threading.Lock()
        never.acquire()
        never.acquire()


def _guarded(main: Callable, *args: Any) -> Any:
    keep_daemons()
    return main(*args)


def _end() -> None:
    """Let no other thread into native code, and wait for those that are in it."""
    global _last
    _last = threading.get_ident()
    for caller in list(_callers):
        names = caller.__globals__
        names["main"] = functools.partial(_guarded, names["main"])
    deadline = time.monotonic() + LONGEST
    keep_others_from_compiling(LONGEST)
    while any(_in_native_code(thread, frame) for thread, frame in sys._current_frames().items()):
        if time.monotonic() > deadline:
            return
        time.sleep(PAUSE)


def _in_native_code(thread: int, frame: Any) -> bool:
    return thread != _last and frame.f_code.co_filename == CALLER


__all__ = ["CALLER", "keep_daemons", "watch"]
