"""Which arrays a compilation lets into run-time lists, besides those of one known size.

Where lists may hold arrays of any sizes, loops that fill or read them stay loops, and the sizes are known at run time only. A loop
that is written out instead knows them: `for i in range(3): x = x @ ws[i]`. So a program is inferred without such lists first, and
with them where that fails, and they would have made a difference; what gets such lists as arguments has them from the beginning.

One thread compiles at a time, so this is a state of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class UnevenLists:
    """What lists may hold.

    Attributes:
        sizes: arrays whose sizes values decide.
        known: arrays of several known sizes.
        wanted: whether one of them was looked for in vain.
    """

    sizes: bool = False
    known: bool = False
    wanted: bool = False


_allowed = UnevenLists()


def allowed() -> UnevenLists:
    """That of the compilation in progress."""
    return _allowed


@contextmanager
def allowing(uneven: UnevenLists) -> Iterator[None]:
    """Compile with other lists."""
    global _allowed
    before, _allowed = _allowed, uneven
    try:
        yield
    finally:
        _allowed = before
