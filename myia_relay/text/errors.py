"""Several errors of one text, raised as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ..utils.errors import CompileError

MOST = 10  # errors that are shown at most


def raise_all(errors: Sequence[CompileError]) -> NoReturn:
    """Raise the first error of a text, with the others as notes.

    Args:
        errors: one at least.

    Raises:
        CompileError: the first by its place.
    """
    place = {id(e): (e.loc.line, e.loc.col) if e.loc is not None else (0, 0) for e in errors}
    first, *others = sorted(errors, key=lambda e: place[id(e)])
    seen = {(first.message, first.loc)}
    shown = 0
    for error in others:
        if (error.message, error.loc) in seen:
            continue
        seen.add((error.message, error.loc))
        shown += 1
        if shown < MOST:
            first.notes.append((f"also wrong: {error.message}", error.loc))
    if shown >= MOST:
        first.notes.append(f"and {shown - MOST + 1} more")
    raise first.at(first.origin) from None
