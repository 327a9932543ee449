"""The state area: what a call of a native program shares with Python besides its arguments.

There is one block of memory for each call in progress: 64-bit slots first, then the block of arguments, then the arena.
Slots hold the status of a failed call, requests of native code to Python, operands of messages, scalar results,
addresses of constant arrays, and the memory of tapes. `backend/tvm/host/state.py` is the other side: how compiled code
accesses them.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.types import Array, Data, Leaf, numpy_dtype
from .blocks import free
from .lists import release
from .results import empty

ALIGN = 64  # alignment in bytes, of the area and of arrays in it

# Slots with a fixed meaning: the site that failed; the object that serves requests, what is requested, and its operands.
SITE, SERVER, REQUEST, OPERAND, FRAME = 0, 1, 2, 3, 4
FIRST_FREE = 5
CALLS = 24  # calls that led to an error, which are remembered: the innermost, and the outermost
LAYOUT, FAILED, INTERRUPTED, NO_MEMORY = -1, 1, 2, 3  # statuses
POLL, PRINT, DEEPER, CALL = 0, 1, 2, 3  # requests
GO_ON = 1  # the answer to a request, unless the program is to end

_MASK = (1 << 64) - 1


class Slots:
    """Reads the slots of a state area."""

    def __init__(self, address: int, count: int, heap: Any = None):
        self.heap = heap
        self.ints = (ctypes.c_int64 * count).from_address(address)
        self.floats = (ctypes.c_double * count).from_address(address)

    def scalar(self, slot: int, t: Leaf | Data) -> Any:
        """A number, of exactly the kind that its type says; an object of an algebraic data type."""
        if isinstance(t, Data):
            return self.heap.take(self.ints[slot], t)
        if t.dtype.startswith(("float", "bfloat")):
            value: Any = self.floats[slot]
        else:
            value = self.ints[slot]
            if t.dtype == "bool":
                value = bool(value)
            elif t.dtype == "uint64":
                value &= _MASK
        if isinstance(t, Array):
            return np.asarray(value, numpy_dtype(t.dtype))
        return value if t.weak else numpy_dtype(t.dtype).type(value)

    def put_scalar(self, slot: int, t: Leaf, value: Any) -> None:
        """Store a number, as compiled code reads it."""
        if t.dtype.startswith(("float", "bfloat")):
            self.floats[slot] = float(value)
        else:
            self.ints[slot] = int(value) if t.dtype != "uint64" else int(np.uint64(value).view(np.int64))

    def put_array(self, slot: int, value: np.ndarray) -> None:
        """Copy an array to the address that is in a slot."""
        value = np.ascontiguousarray(value)
        ctypes.memmove(self.ints[slot], value.ctypes.data, value.nbytes)

    def array(self, slot: int, dtype: str, sizes: list[int]) -> np.ndarray:
        """A copy of an array whose address is in a slot."""
        return sized_array(self.ints, slot, sizes, numpy_dtype(dtype))


def sized_array(ints: Any, slot: int, sizes: list[int], dtype: np.dtype) -> np.ndarray:
    """A copy of an array whose address and sizes are in slots."""
    out = empty(tuple([ints[at] for at in sizes]), dtype)
    if out.nbytes:
        ctypes.memmove(out.ctypes.data, ints[slot], out.nbytes)
    return out


class Regions:
    """Owns a state area and what its program allocated for tapes and lists."""

    def __init__(
        self, memory: np.ndarray, ints: memoryview, slots: list[int], head: int | None = None, free: Callable = free
    ):
        self.memory, self.ints, self.slots, self.head, self.free = memory, ints, slots, head, free

    def __del__(self, release=release):
        if self.head is not None:
            release(self.ints, self.head, self.free)
        for slot in self.slots:
            if self.ints[slot]:
                self.free(ctypes.c_void_p(self.ints[slot]))
                self.ints[slot] = 0


def address_space(nbytes: int) -> mmap.mmap:
    """Address space that becomes memory where it is written.

    Raises:
        OSError, ValueError: there is not so much.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _no_reserve())


def _no_reserve() -> int:
    """The flag of `mmap` that lets address space not count as memory.

    Without it a process with two heaps cannot fork: Linux joins them into one mapping, and refuses to copy one that is larger
    than all of memory.
    """
    known = getattr(mmap, "MAP_NORESERVE", None)  # from Python 3.13
    if known is not None:
        return known
    common = platform.machine().lower() in ("x86_64", "amd64", "i686", "aarch64", "arm64", "armv7l", "riscv64", "s390x")
    return 0x4000 if sys.platform == "linux" and common else 0


LARGE_FRAMES = 1 << 20
"""Bytes of frames from which programs share them."""


Frames = tuple[int, int, mmap.mmap]
"""A region for the frames of functions that call themselves: its address, aligned, its bytes, and the memory."""

idle_frames: list[Frames] = []
"""Regions that no call uses. A call of any program takes the last, and puts it back, so there are as many as calls at once."""


def new_frames(nbytes: int) -> Frames:
    """A region of so many bytes.

    Raises:
        MemoryError: there is not so much address space.
    """
    try:
        memory = address_space(nbytes + ALIGN)
    except (OSError, ValueError):
        raise MemoryError(f"no address space for the {nbytes} bytes of a recursion's frames") from None
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return start + -start % ALIGN, nbytes, memory


def round_up(nbytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-nbytes // ALIGN) * ALIGN
