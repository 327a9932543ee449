"""C stacks: the bounds of this thread's stack, and continuing on a larger one.

Recursive functions of native code check the address of their C frame. Near the end of the stack they ask Python to
continue them on a thread with a large stack, which happens once in some tens of thousands of nested calls.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any

from ...utils.compiling import for_this_thread

STACK_BYTES = 256 << 20  # bytes of the stack of a thread that continues a recursion
MARGIN = 3 << 19  # bytes of a C stack that are left for kernels and for Python

_local = threading.local()
_starting = threading.Lock()


def _in_child() -> None:
    global _starting
    _starting = threading.Lock()  # a thread that does not exist in the child may hold the old lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def stack_limit() -> int:
    """The address that the C stack of this thread must not grow below."""
    try:
        return _local.limit
    except AttributeError:
        low, size = _stack()
        _local.limit = low + min(MARGIN, size // 2)
        return _local.limit


def _stack() -> tuple[int, int]:
    """The lowest address and the size of this thread's C stack.

    Raises:
        OSError: the system does not tell.
    """
    if sys.platform == "win32":
        low, high = ctypes.c_size_t(), ctypes.c_size_t()
        ctypes.windll.kernel32.GetCurrentThreadStackLimits(ctypes.byref(low), ctypes.byref(high))
        return low.value, high.value - low.value
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_void_p
    me = ctypes.c_void_p(libc.pthread_self())
    if sys.platform == "darwin":
        libc.pthread_get_stackaddr_np.restype = ctypes.c_void_p
        libc.pthread_get_stacksize_np.restype = ctypes.c_size_t
        size = libc.pthread_get_stacksize_np(me)
        return libc.pthread_get_stackaddr_np(me) - size, size
    attributes = ctypes.create_string_buffer(256)
    low, bytes_ = ctypes.c_void_p(), ctypes.c_size_t()
    if libc.pthread_getattr_np(me, attributes):
        raise OSError("the C stack of this thread cannot be found")
    libc.pthread_attr_getstack(attributes, ctypes.byref(low), ctypes.byref(bytes_))
    libc.pthread_attr_destroy(attributes)
    return low.value or 0, bytes_.value


def continue_deeper(run: Any, stopping: Any) -> None:
    """Run a function on a new thread with a large C stack, and wait for it.

    Args:
        run: what to run.
        stopping: called when the wait is interrupted: asks the thread to stop.
    """
    problems: list[BaseException] = []
    work = for_this_thread(run)

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=guarded, name="myia_relay recursion", daemon=True)
    with _starting:
        before = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as error:
            problems.insert(0, error)
            stopping()
    if problems:
        raise problems[0]
