"""References as values: a place in a heap, which is a list of all contents of one type that a program has made.

    RefTo(int32)            the type of references to an int32, in a declaration
    ref[int32](place: int)  what it is in compiled code: a record of the class `reference_class(int32)`

The class says what the heap holds, so references to contents of two types are of two types, and never refer to one heap. The
content is no part of a record's structure: a type may refer to itself through a reference.

Input: a type of content, as declarations have it. Output: the type of references to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import TypeIs

from ..utils.compiling import once
from .types import Scalar, Struct, Type

PLACE = Scalar("int64", True)
"""The type of a place in a heap."""


@dataclass(frozen=True)
class RefTo(Type):
    """The type of references, as the type of a field."""

    content: Type

    def __str__(self) -> str:
        return f"ref({self.content})"


class HeapReference:
    """Base class of the classes of references.

    Attributes:
        content: the type of what it refers to, as declarations have it.
    """

    content: Type


@once
def reference_class(content: Type) -> type[HeapReference]:
    """The class of references to contents of a type; the same for equal types."""
    return type(f"ref({content})", (HeapReference,), {"content": content})


def reference_type(content: Type) -> Struct:
    """The type of references to contents of a type in compiled code."""
    return Struct("record", (PLACE,), ("place",), reference_class(content))


def reference_of(t: object) -> type[HeapReference] | None:
    """The class of references that a record type, or a record value of inference, is of; None for anything else."""
    cls = getattr(t, "cls", None)
    return cls if is_reference(cls) else None


def is_reference(cls: object) -> TypeIs[type[HeapReference]]:
    """Whether a class is one of references."""
    return isinstance(cls, type) and issubclass(cls, HeapReference)


__all__ = ["PLACE", "RefTo", "HeapReference", "is_reference", "reference_class", "reference_of", "reference_type"]
