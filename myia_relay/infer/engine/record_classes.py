"""The classes of records that a program uses: their methods, properties and operators are compiled in.

Input: a class, or the arguments of a program. Output: dependencies on the contents of the class and its bases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...abstract.families import family_of
from ...abstract.types import Data
from ..values.values import Dyn, Seq, Val
from .dependencies import classes_of, members


def is_record_class(value: Any) -> bool:
    """Whether an object is the class of NamedTuples or of dataclasses."""
    return isinstance(value, type) and (
        hasattr(value, "__dataclass_fields__") or issubclass(value, tuple) and hasattr(value, "_fields")
    )


def watch(depend: Callable, cls: type) -> None:
    """Record that the compiled program is valid only while a class has its present members.

    `depend` is `Engine.depend`. Of an algebraic data type these are the members of all of its variants.
    """
    family = family_of(cls)
    for record in (cls, *(v.cls for v in family.variants)) if family is not None else (cls,):
        for c in classes_of(record):
            depend("members", c, "", members(c))


def watch_arguments(depend: Callable, values: Iterable[Val]) -> None:
    """Watch the classes of all records among the arguments of a program."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Seq):
            if value.kind == "record":
                watch(depend, value.cls)
            stack.extend(value.elems)
        elif isinstance(value, Dyn) and isinstance(value.type, Data):
            watch(depend, value.type.family.variants[0].cls)
