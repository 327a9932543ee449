"""Places of a program where Python takes over: a check that failed, a `print`; and the operands that are shown there.

A `Site` is made at compile time and is plain data: it is kept with the machine code in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...abstract.structures import rebuild
from ...abstract.types import List, Struct
from ...utils.source import Origin
from .area import Slots
from .lists import list_reader


@dataclass(frozen=True)
class StaticOperand:
    """An operand that was known when compiling: a string, None."""

    value: Any

    def __call__(self, slots: Slots) -> Any:
        """The operand's value."""
        return self.value


@dataclass(frozen=True)
class Number:
    """A number in a slot."""

    slot: int
    type: Any  # the stored form of a program gives the class: `Leaf`, or `Data` for an operand

    def __call__(self, slots: Slots) -> Any:
        """The operand's value."""
        return slots.scalar(self.slot, self.type)

    def store(self, slots: Slots, value: Any) -> None:
        """Put a result where compiled code finds it."""
        slots.put_scalar(self.slot, self.type, value)


@dataclass(frozen=True)
class Elements:
    """An array whose address is in a slot, and its sizes in others."""

    slot: int
    dtype: str
    sizes: tuple[int, ...]

    def __call__(self, slots: Slots) -> Any:
        """The operand's value: a copy."""
        return slots.array(self.slot, self.dtype, list(self.sizes))

    def store(self, slots: Slots, value: Any) -> None:
        """Put a result where compiled code finds it.

        Raises:
            ValueError: its shape is another one than compiled code has room for.
        """
        shape = tuple(slots.ints[at] for at in self.sizes)
        if value.shape != shape:
            raise ValueError(f"a registered operator returned shape {value.shape} where {shape} belongs")
        slots.put_array(self.slot, value)


@dataclass(frozen=True)
class Entries:
    """A run-time list whose block's address is in a slot."""

    slot: int
    type: List

    def __call__(self, slots: Slots) -> Any:
        """The operand's value: a copy."""
        return list_reader(self.type)(slots.ints[self.slot])


@dataclass(frozen=True)
class Parts:
    """A structure of operands."""

    type: Struct
    parts: tuple[Any, ...]

    def __call__(self, slots: Slots) -> Any:
        """The operand's value."""
        return rebuild(self.type, [p(slots) for p in self.parts])


@dataclass(frozen=True)
class Site:
    """A place where Python takes over.

    Attributes:
        operands: `(slots) -> value` of each operand of the message: `StaticOperand`, `Number`, `Elements`, `Entries`, `Parts`.
        text: the message, as in `utils.raising.format_parts`.
        origin: the place in the user's source.
        exception: the class to raise; None for a print.
        end: what a print writes after its line.
        call: of a registered operator: the operator, its attributes, the kinds of its arguments and its batch axes; see
            `prims.ops.registered.run`.
        results: where its results go: `Number`, `Elements`.
    """

    operands: tuple[Any, ...]
    text: tuple
    origin: Origin | None
    exception: type[BaseException] | None = None
    end: str = ""
    call: tuple[Any, ...] | None = None
    results: tuple[Any, ...] = ()
