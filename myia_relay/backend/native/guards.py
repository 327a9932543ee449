"""An allocator for native code that checks its accesses to memory: it can say at any time whose memory an address is.

Idea: blocks lie in one region of address space. A map has a word for each 16 bytes of the region, the address of the ends of the
block that these bytes belong to, guards before and behind it included; the ends are two words in the guard before the block:

    [first address | address behind | guard | block | guard]

A block that is given back has equal ends, so whoever still uses it is found (`tvm/tir/lookup.py` reads the map). It is filled with
a poison and waits until many others were given back, before its place is used again. Fresh memory is poisoned too.

`Guards` takes the place of `malloc`, `realloc` and `free` in the code's table of C functions (`library`).
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ...utils.errors import InternalError
from .area import address_space

GRANULE = 16
GUARD = 32  # bytes before and behind each block
WAITING = 1 << 26  # bytes that have been given back and are not used again yet
SPACE, LEAST_SPACE = 1 << 34, 1 << 26
POISON = 0x7FFB7FFB7FFB7FFB
AGAIN = 0.01  # seconds


class Guards:
    """The allocator.

    Attributes:
        words: the region; `owners`: the map.
    """

    def __init__(self) -> None:
        size = SPACE
        while True:
            try:
                self.words = np.frombuffer(address_space(size), np.int64)
                self.owners = np.frombuffer(address_space(size // GRANULE * 8), np.int64)
                break
            except (OSError, ValueError):
                size //= 2
                if size < LEAST_SPACE:
                    raise MemoryError("there is no address space for guarded blocks") from None
        self.start, self.size, self.top = self.words.ctypes.data, size, 0
        self.free_places: dict[int, list[int]] = {}
        self.waiting: deque[tuple[int, int]] = deque()
        self.held = 0
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        self._lock = threading.RLock()  # a thread that is not there may have held the old one

    def malloc(self, nbytes: int) -> int:
        """A new block; 0 where there is no memory."""
        with self._lock:
            place = self._place(_rounded(nbytes + 2 * GUARD))
            if place is None:
                return 0
            at, length = place
            words, first = self.words, at // 8
            words[first + GUARD // 8 : (at + GUARD + nbytes + 7) // 8] = POISON
            header, block = self.start + at, self.start + at + GUARD
            words[first], words[first + 1], words[first + 2] = block, block + nbytes, length
            self.owners[at // GRANULE : (at + length) // GRANULE] = header
            return block

    def _place(self, length: int) -> tuple[int, int] | None:
        """Where a block of some length with its guards can be."""
        places = self.free_places.get(length)
        if places:
            return places.pop(), length
        if self.top + length > self.size:
            return None
        at, self.top = self.top, self.top + length
        return at, length

    def nbytes(self, address: int) -> int:
        """The size of a block.

        Raises:
            InternalError: there is none that begins there, or it has been given back.
        """
        at = address - GUARD - self.start
        if 0 <= at < self.top and self.owners[at // GRANULE] == address - GUARD and self.words[at // 8] == address:
            if (size := int(self.words[at // 8 + 1]) - address) > 0:
                return size
        raise InternalError("native memory", f"{address:#x} is no block, or a block that has been given back")

    def free(self, address: Any) -> None:
        """Take a block back; None, or 0, is none.

        Raises:
            InternalError: there is none that begins there, or it has been given back before.
        """
        address = address.value if isinstance(address, ctypes.c_void_p) else address
        if not address:
            return
        with self._lock:
            size = self.nbytes(address)
            at = address - GUARD - self.start
            words, first = self.words, at // 8
            length = int(words[first + 2])
            words[first + 1] = address
            words[first + GUARD // 8 : (at + GUARD + size + 7) // 8] = POISON
            self.waiting.append((at, length))
            self.held += length
            while self.held > WAITING:
                at, length = self.waiting.popleft()
                self.held -= length
                self.free_places.setdefault(length, []).append(at)

    def realloc(self, address: int | None, nbytes: int) -> int:
        """A block of another size with what is in a block, which is taken back; 0 where there is no memory.

        Raises:
            InternalError: no block begins there, or it has been given back.
        """
        if not address:
            return self.malloc(nbytes)
        kept = min(self.nbytes(address), nbytes)
        made = self.malloc(nbytes)
        if made:
            ctypes.memmove(made, address, kept)
            self.free(address)
        return made


def _rounded(nbytes: int) -> int:
    """The least of some lengths that is large enough: two for each power of two, so that places are used again."""
    power = 1 << max(nbytes - 1, 63).bit_length()
    return power // 4 * 3 if nbytes <= power // 4 * 3 else power


@functools.cache
def guards() -> Guards:
    """The process's own."""
    return Guards()


def free(address: Any) -> None:
    """`Guards.free`, as `area.free` is called."""
    guards().free(address)


def _undisturbed(function: Callable[..., int | None]) -> Callable[..., int]:
    """A function that native code may call: an exception that a signal raises in it comes a little later."""

    def called(*args: Any) -> int:
        while True:
            try:
                return function(*args) or 0
            except InternalError:
                return 0  # the code has found it already
            except BaseException as error:
                later = threading.Timer(AGAIN, _raise_in, (threading.get_ident(), type(error)))
                later.daemon = True
                later.start()

    return called


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


@functools.cache
def allocator() -> dict[str, Any]:
    """C functions in place of the C library's."""
    own, address, size = guards(), ctypes.c_void_p, ctypes.c_size_t
    return {
        "malloc": ctypes.CFUNCTYPE(address, size)(_undisturbed(own.malloc)),
        "realloc": ctypes.CFUNCTYPE(address, address, size)(_undisturbed(own.realloc)),
        "free": ctypes.CFUNCTYPE(None, address)(_undisturbed(own.free)),
    }


__all__ = ["GRANULE", "allocator", "free", "guards"]
