"""A word to who waits for a compilation: after some seconds, what makes it long, where, and what to do about it.

It is written to standard error (a notebook shows that below the cell), once for each compilation, and quick ones say nothing.
`MYIA_RELAY_PATIENCE` is the number of seconds, 5 if it is not set; 0 says nothing ever. There is no clock in another thread:
those who do the work call `look` now and then, so neither Ctrl-C nor forks nor other threads notice.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator

from .source import Loc

VARIABLE = "MYIA_RELAY_PATIENCE"
SECONDS = 5.0


class _Wait:
    """A compilation that somebody waits for.

    Attributes:
        name, loc: the function, and where it is.
        until: when the time is over, in seconds of `time.monotonic`.
        seconds: how long that is.
        reasons: says what makes it long.
        said: whether that was said.
    """

    def __init__(self, name: str, loc: Loc | None, seconds: float):
        self.name, self.loc, self.seconds = name, loc, seconds
        self.until = time.monotonic() + seconds
        self.reasons: Callable[[], list[str]] | None = None
        self.said = seconds <= 0


_waits: list[_Wait] = []  # one thread compiles at a time; what is compiled within a compilation belongs to it


def seconds() -> float:
    """How long a compilation may take before something is said."""
    try:
        return float(os.environ.get(VARIABLE, SECONDS))
    except ValueError:
        return SECONDS


@contextlib.contextmanager
def waiting(name: str, loc: Loc | None) -> Iterator[None]:
    """Within this context a function is compiled."""
    if _waits:
        yield
        return
    _waits.append(_Wait(name, loc, seconds()))
    try:
        yield
        look()
    finally:
        _waits.clear()


def look(reasons: Callable[[], list[str]] | None = None) -> None:
    """Look at the clock, and say a word if it is time.

    Args:
        reasons: says what has made the compilation long so far; it is asked from now on.
    """
    if not _waits or (wait := _waits[0]).said:
        return
    wait.reasons = reasons or wait.reasons
    if time.monotonic() < wait.until:
        return
    wait.said = True
    found = wait.reasons() if wait.reasons is not None else []
    place = "" if wait.loc is None else f" ({wait.loc.file}, line {wait.loc.line})"
    lines = [
        f"myia_relay: compiling {wait.name}{place} takes more than {wait.seconds:g} s.",
        *(f"  - {r}" for r in found),
    ]
    lines.append(f"  docs/performance.md says more; {VARIABLE}=0 keeps this quiet.")
    with contextlib.suppress(Exception):  # nobody may be listening
        print("\n".join(lines), file=sys.stderr, flush=True)
