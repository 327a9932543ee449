"""Iterators that a background thread runs ahead of the loop that uses them.

The thread keeps at most a few items ready. It ends when the loop is left in any way, when the iterator is garbage, and at the
exit of the interpreter; it then closes the iterator that it ran, so that the `finally` of a generator runs. Where the iterator
waits for something (a socket, a lock), nobody waits for it longer than a moment: the thread ends when it goes on. An error of the
iterator is raised in the loop, with the traceback that it had.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

BUSY_SECONDS = 1.0  # how long whoever leaves the loop, and the exit of the interpreter, wait for a thread that is busy with an item

_open: weakref.WeakSet[Prefetched] = weakref.WeakSet()
_END = object()


class _Failure:
    """The error of an iterator, on its way to the loop."""

    def __init__(self, error: BaseException):
        self.error = error


class _Channel:
    """Hands items from the thread to the loop. The thread knows this alone, so that an iterator nobody uses becomes garbage."""

    def __init__(self, depth: int):
        self.depth, self.closed = depth, False
        self.items: deque[Any] = deque()
        self.changed = threading.Condition()

    def put(self, item: Any) -> bool:
        """Add an item, once there is room; False where nobody wants it any more."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or len(self.items) < self.depth)
            if not self.closed:
                self.items.append(item)
                self.changed.notify_all()
            return not self.closed

    def get(self) -> Any:
        """The next item, once it is there."""
        with self.changed:
            self.changed.wait_for(lambda: self.items)
            item = self.items.popleft()
            self.changed.notify_all()
            return item

    def close(self) -> None:
        """Nobody wants further items."""
        with self.changed:
            self.closed = True
            self.items.clear()
            self.changed.notify_all()


def _run(iterator: Iterator[Any], channel: _Channel) -> None:
    """What the thread does."""
    try:
        try:
            for item in iterator:
                if not channel.put(item):
                    return
                del item  # it is the loop's alone
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()
    except BaseException as error:
        channel.put(_Failure(error))
    else:
        channel.put(_END)


class Prefetched(Iterator[Any]):
    """An iterator that a thread runs ahead.

    Args:
        iterator: it is run in the thread alone.
        depth: how many items are kept ready, at least 1.
        again: `n -> ` the iterator without its first n items. A child process that was forked in the middle of the loop
            goes on with it, since the thread is not there; None where there is no second one.
    """

    def __init__(self, iterator: Iterator[Any], depth: int, again: Callable[[int], Iterator[Any]] | None = None):
        self._channel = _Channel(depth)
        self._depth, self._again, self._taken, self._done = depth, again, 0, False
        self._process = os.getpid()
        self._thread = threading.Thread(
            target=_run, args=(iterator, self._channel), name="myia_relay prefetch", daemon=True
        )
        _open.add(self)
        self._thread.start()

    def __next__(self) -> Any:
        if self._done:
            raise StopIteration
        if self._process != os.getpid():
            self._go_on()
        item = self._channel.get()
        if item is _END or isinstance(item, _Failure):
            self._done = True
            _open.discard(self)
            if item is _END:
                raise StopIteration
            try:
                raise item.error
            finally:
                del item  # no circle of the error, its traceback and this frame
        self._taken += 1
        return item

    def _go_on(self) -> None:
        """Start anew where the parent process was.

        Raises:
            RuntimeError: the iterator exists in the parent process alone.
        """
        if self._again is None:
            self._done = True
            raise RuntimeError(
                "this loop runs in the process that was forked: what it reads from can be read once; make a new one in the child"
            )
        taken = self._taken
        self.__init__(self._again(taken), self._depth, self._again)
        self._taken = taken

    def close(self, timeout: float = BUSY_SECONDS) -> None:
        """End the thread; wait until it has ended, for at most so many seconds."""
        self._done = True
        _open.discard(self)
        if self._process == os.getpid():
            self._channel.close()
            if self._thread is not threading.current_thread():
                self._thread.join(timeout)

    def __del__(self):
        if getattr(self, "_process", None) == os.getpid():
            self._channel.close()


@atexit.register
def _close_all() -> None:
    """End all threads before the interpreter is torn down under them."""
    threads, deadline = list(_open), time.monotonic() + BUSY_SECONDS
    for prefetched in threads:
        prefetched.close(0.0)
    for prefetched in threads:
        prefetched.close(max(deadline - time.monotonic(), 0.0))


__all__ = ["Prefetched"]
