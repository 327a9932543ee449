"""Which objects are records of a fixed structure: NamedTuples and frozen dataclasses that are not part of a data type."""

from __future__ import annotations

import functools
from typing import Any

from ..values.protocols import is_named_tuple_class


@functools.lru_cache(256)
def record_fields(kind: Any) -> tuple[str, ...] | None:
    """The names of the fields of a NamedTuple, or of a frozen dataclass that is a record; None of any other class."""
    if is_named_tuple_class(kind):
        return tuple(kind._fields)
    if (
        hasattr(kind, "__relay_tree__")
        or not hasattr(kind, "__dataclass_fields__")
        or not kind.__dataclass_params__.frozen
    ):
        return None
    return tuple(kind.__dataclass_fields__)
