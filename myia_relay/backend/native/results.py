"""Memory of large results, used again when nobody has it any more.

Fresh memory of some size comes from the system page by page, at the first touch of each: to fill 45 MB of gradients takes longer
than to compute many of them. So the arrays of large results are remembered, and one that is referenced by nothing but this module
is the result of a later call. A view of an array, an array of another library that shares its memory, and a buffer refer to the
array; so an array without references is read by nobody. One that anything weak refers to, or that was made read-only or took
another shape in place, is given up.

What is remembered is bounded, the oldest is forgotten first, and all of it is given back where memory is short.

Input: shapes and dtypes. Output: arrays with any contents.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import deque
from typing import Any

import numpy as np

LEAST = 1 << 18  # bytes of a result that is remembered; smaller ones come from memory that the C library has at hand
MOST = 1 << 28  # bytes that are remembered, and at most one part in SHARE of the machine's memory
SHARE = 16
SHORT = 10  # memory is short where less than one part in so many is available
LOOKS = 1.0  # seconds between two looks at how much is available


def _popped(queue: deque) -> tuple[np.ndarray, int]:
    """The first array of a queue, and how many references there are to it, seen from here."""
    array = queue.popleft()
    return array, sys.getrefcount(array)


def _supported() -> bool:
    return sys.implementation.name == "cpython" and "t" not in getattr(sys, "abiflags", "")


ALONE = _popped(deque([np.empty(1)]))[1] if _supported() else -1
"""References to an array that nobody else has."""


class Results:
    """The large results of calls, by shape and dtype."""

    def __init__(self, most: int):
        self.most, self.total = most, 0
        self.queues: dict[Any, deque[np.ndarray]] = {}
        self.order: deque[tuple[deque[np.ndarray], int]] = (
            deque()
        )  # in which order arrays were remembered, and their bytes
        self.lock = threading.Lock()  # never waited for: a child of a fork may find it held for ever
        self.looked = 0.0

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array of any contents, C-contiguous and its own, that nothing else refers to."""
        queue = self.queues.get((shape, dtype))
        if queue is not None:
            for _ in range(len(queue)):
                try:
                    array, count = _popped(queue)  # another thread cannot see it now
                except IndexError:
                    break
                flags = array.flags
                fits = array.shape == shape and array.dtype is dtype and flags.carray and flags.owndata
                if not fits:
                    continue
                queue.append(array)
                if count == ALONE and not weakref.getweakrefcount(array):
                    return array
        return self._new(shape, dtype)

    def _new(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        try:
            array = np.empty(shape, dtype)
        except MemoryError:
            self.forget()
            return np.empty(shape, dtype)
        if ALONE > 0 and array.nbytes <= self.most and self.lock.acquire(blocking=False):
            try:
                if self._is_short():
                    self._forget(0)
                    return array
                self._forget(self.most - array.nbytes)
                queue = self.queues.setdefault((shape, dtype), deque())
                queue.append(array)
                self.order.append((queue, array.nbytes))
                self.total += array.nbytes
            finally:
                self.lock.release()
        return array

    def forget(self) -> None:
        """Give back what nobody uses."""
        if self.lock.acquire(blocking=False):
            try:
                self._forget(0)
            finally:
                self.lock.release()

    def _forget(self, most: int) -> None:
        while self.total > most and self.order:
            queue, nbytes = self.order.popleft()
            self.total -= nbytes
            if queue:
                try:
                    queue.popleft()
                except IndexError:  # another thread looks at it
                    pass
        if len(self.queues) > 2 * len(self.order) + 64:
            self.queues = {key: queue for key, queue in self.queues.items() if queue}

    def _is_short(self) -> bool:
        """Whether the machine has little memory left, as far as it says so."""
        now = time.monotonic()
        if now - self.looked < LOOKS:
            return False
        self.looked = now
        try:
            with open("/proc/meminfo") as file:
                sizes = {line.split(":")[0]: int(line.split()[1]) for line in file if line.startswith("Mem")}
            return sizes["MemAvailable"] * SHORT < sizes["MemTotal"]
        except (OSError, KeyError, ValueError, IndexError):
            return False


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return MOST * SHARE


RESULTS = Results(min(MOST, _memory() // SHARE))


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Memory for a result of whatever size."""
    count = dtype.itemsize
    for size in shape:
        count *= size
    return RESULTS.take(shape, dtype) if count >= LEAST else np.empty(shape, dtype)


__all__ = ["LEAST", "RESULTS", "Results", "empty"]
