"""Several errors of one text, raised as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from ..utils.errors import CompileError

MOST = 10  # errors that are shown at most
ENOUGH = 20  # errors that are looked for at most: what is no Relay text at all has one for each of its words


class Enough(Exception):
    """There are as many errors as are looked for.

    Attributes:
        errors: these.
    """

    def __init__(self, errors: Errors):
        super().__init__()
        self.errors = errors


class Errors(list[CompileError]):
    """The errors that are found in a text, until there are enough."""

    def append(self, error: CompileError) -> None:
        """Note an error.

        Raises:
            Enough: there are enough.
        """
        super().append(error)
        if len(self) >= ENOUGH:
            raise Enough(self)

    def extend(self, errors: Iterable[CompileError]) -> None:
        """Note some."""
        for error in errors:
            self.append(error)


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
    if len(errors) >= ENOUGH:
        first.notes.append(f"and more: the first {ENOUGH} were looked for")
    elif shown >= MOST:
        first.notes.append(f"and {shown - MOST + 1} more")
    raise first.at(first.origin) from None
