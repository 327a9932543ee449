"""What a debugging session shows: calls in progress, and where it is to stop."""

from __future__ import annotations

import contextlib
import linecache
from dataclasses import dataclass, field
from typing import Any

from ..prims.ops.effects import MarkedPlace
from ..utils.source import Loc


@dataclass(eq=False)
class StackFrame:
    """A call of a function of the program, in the forward or in the backward pass.

    Attributes:
        function: its name.
        file, line: where it is.
        backward: whether it is the backward pass of a call.
        variables: the variables that are bound so far; backward: those that the lines so far have assigned or read.
        cotangents: backward: of these variables, what has arrived so far at each.
        arrived: backward: the cotangents that arrived at what the line assigns.
        left: backward: the cotangents of what the line reads, to which it has added.
        parameters: the names of its parameters.
        returned: its value, once it returns.
    """

    place: MarkedPlace
    definition: Loc
    line: int
    backward: bool
    variables: dict[str, Any] = field(default_factory=dict)
    cotangents: dict[str, Any] = field(default_factory=dict)
    arrived: dict[str, Any] = field(default_factory=dict)
    left: dict[str, Any] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    returned: Any = None
    reached: Loc | None = None  # backward: the line at which `arrived` has arrived

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.place.function

    @property
    def file(self) -> str:
        """The file that it is written in."""
        return self.definition.file

    @property
    def source(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def locals(self) -> dict[str, Any]:
        """The variables; in the backward pass also their cotangents, `d_x` for `x`."""
        return {**{f"d_{name}": ct for name, ct in self.cotangents.items()}, **self.variables}

    @property
    def globals(self) -> dict[str, Any]:
        """What the function sees from outside."""
        owner = self.place.owner
        found = dict(owner.__globals__)
        for name, cell in zip(owner.__code__.co_freevars, owner.__closure__ or (), strict=False):
            with contextlib.suppress(ValueError):  # nothing is in it yet
                found[name] = cell.cell_contents
        return found

    def __repr__(self) -> str:
        return f"{self.file}({self.line}){self.function}(){' backward' if self.backward else ''}"


@dataclass(eq=False)
class Breakpoint:
    """Where a session stops.

    Attributes:
        number: what `clear` takes.
        file, line: the place; or function: whatever function has this name.
        condition: a Python expression of the variables, or None. If it fails, the session stops.
        temporary: whether it is cleared when it is hit.
        ignore: how many hits are still passed over.
        hits: how often it was hit.
    """

    number: int
    file: str | None
    line: int | None
    function: str | None
    condition: str | None = None
    temporary: bool = False
    enabled: bool = True
    ignore: int = 0
    hits: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.function is None else f"{self.function}()"
        notes = [f"only if {self.condition}"] if self.condition else []
        notes += [f"ignored for the next {self.ignore} times"] if self.ignore else []
        notes += [f"hit {self.hits} time{'s' * (self.hits != 1)}"] if self.hits else []
        kind = "temporary" if self.temporary else "breakpoint"
        state = "" if self.enabled else ", disabled"
        return f"{self.number:<4} {kind:<11} at {where}{state}{''.join(f', {n}' for n in notes)}"
