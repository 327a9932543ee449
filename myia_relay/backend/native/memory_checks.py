"""The report of a failed memory check, in native code built with such checks.

Such code stores what it found in slots of the state area and returns the status `VIOLATED`; see
`backend/tvm/tir/bounds.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ...utils.errors import InternalError
from ...utils.raising import raise_again
from ...utils.source import Origin

VIOLATED = 4  # a status, beside those of `area`
SLOTS = 6
# The numbers of the check and of the place start at one. HEAP holds the first address of the heap of records.
FOUND, INDEX, LEAST, MOST, PLACE, HEAP = range(SLOTS)


@dataclass
class MemoryChecks:
    """The checks of a program.

    Attributes:
        slot: the first of their slots in the state area.
        texts: what each of them checks.
        places: where in the user's source native code can be.
        guarded: whether its blocks come from the guarded allocator (`guards`).
    """

    slot: int
    texts: list[str]
    places: list[Origin | None]
    guarded: bool = False

    def fail(self, ints: Any) -> NoReturn:
        """Raise what a call has found.

        Raises:
            InternalError: always.
        """
        found, index, least, most, place = (ints[self.slot + k] for k in (FOUND, INDEX, LEAST, MOST, PLACE))
        own = f"and the first and the last that are its own are {least} and {most - 1}"
        if most <= least:
            own = "where it has no memory, or has it no more"
        origin = self.places[place - 1] if place else None
        stack = origin.call_stack() if origin is not None else []
        where = f", at {stack[0].file}:{stack[0].line}" if stack else ""
        raise_again(InternalError("native memory", f"{self.texts[found - 1]} at {index}, {own}{where}"), origin)
