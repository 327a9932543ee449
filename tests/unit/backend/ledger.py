"""An allocator for native code that keeps books: every block is known, guarded and poisoned, and none is used again."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from myia_relay.backend.native import area, library, lists
from myia_relay.backend.native.blocks import NEXT, PREVIOUS

GUARD = 64  # bytes behind a block
MOST = 1 << 30  # bytes of one block that are given
NEW, OLD, EDGE = 0xA5, 0xDD, 0xEE  # what a new block, one that was given back, and a guard are filled with


class Ledger:
    """What compiled code has asked of C's allocator.

    Attributes:
        calls: how often it called malloc, realloc and free.
        live: address -> size of the blocks that it has.
        faults: what it did wrong.
        left: how many blocks there still are to be had; None: no end.
    """

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None)
        self.libc.malloc.restype = ctypes.c_void_p
        self.libc.malloc.argtypes = (ctypes.c_size_t,)
        self.calls: Counter = Counter()
        self.live: dict[int, int] = {}
        self.dead: dict[int, int] = {}
        self.faults: list[str] = []
        self.left: int | None = None
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.functions = {
            "malloc": ctypes.CFUNCTYPE(pointer, size)(self.malloc),
            "realloc": ctypes.CFUNCTYPE(pointer, pointer, size)(self.realloc),
            "free": ctypes.CFUNCTYPE(None, pointer)(self.free),
        }

    def malloc(self, size: int) -> int:
        self.calls["malloc"] += 1
        return self._new(size)

    def realloc(self, address: int | None, size: int) -> int:
        self.calls["realloc"] += 1
        new = self._new(size)  # always elsewhere
        if address and new:
            ctypes.memmove(new, address, min(size, self.live.get(address, 0)))
            self._give_back(address)
        return new

    def free(self, address: int | None) -> None:
        self.calls["free"] += 1
        if address:
            self._give_back(address)

    def _new(self, size: int) -> int:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                return 0
        if size > MOST:
            return 0
        address = self.libc.malloc(size + GUARD)
        ctypes.memset(address, NEW, size)
        ctypes.memset(address + size, EDGE, GUARD)
        self.live[address] = size
        return address

    def _give_back(self, address: int) -> None:
        size = self.live.pop(address, None)
        if size is None:
            self.faults.append("freed twice" if address in self.dead else "freed, but never made")
            return
        self._look_behind(address, size)
        ctypes.memset(address, OLD, size)
        self.dead[address] = size

    def _look_behind(self, address: int, size: int) -> None:
        if ctypes.string_at(address + size, GUARD) != bytes([EDGE]) * GUARD:
            self.faults.append("written behind the end")

    def check(self) -> None:
        """See that nothing was written where nothing may be."""
        for address, size in self.live.items():
            self._look_behind(address, size)
        for address, size in self.dead.items():
            if ctypes.string_at(address, size) != bytes([OLD]) * size:
                self.faults.append("written after it was freed")
        assert not self.faults

    def close(self) -> None:
        """Give all memory back to C."""
        for address in (*self.live, *self.dead):
            area.free(ctypes.c_void_p(address))


@contextmanager
def kept() -> Iterator[Ledger]:
    """Code that is loaded here uses a new ledger, and must not run when this ends."""
    ledger = Ledger()
    with pytest.MonkeyPatch.context() as patch:
        addresses = {name: ctypes.cast(f, ctypes.c_void_p).value for name, f in ledger.functions.items()}
        patch.setattr(library, "_allocator", lambda: addresses)
        patch.delenv("MYIA_RELAY_CHECKED", raising=False)  # such code has an allocator of its own
        end = area.Regions.__del__

        def finish(regions: area.Regions) -> None:
            regions.free = ledger.functions["free"]
            end(regions)

        patch.setattr(area.Regions, "__del__", finish)
        yield ledger
    ledger.close()


def blocks(ints, head: int) -> list[int]:
    """The addresses of the blocks in a chain, which is sound in both directions."""
    found, before, address = [], 0, ints[head]
    while address:
        assert lists.word(address, PREVIOUS) == before, "a chain that goes wrong backwards"
        found.append(address)
        before, address = address, lists.word(address, NEXT)
        assert len(found) < 10_000
    return found
