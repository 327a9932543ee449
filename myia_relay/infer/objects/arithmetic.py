"""Python's operators on numbers and arrays."""

from __future__ import annotations

from typing import Any

from ...abstract.types import Data, Ref
from ...prims.api.operators import OPERATORS
from ..engine.frames import Frame
from ..values.kinds import are_leaves
from ..values.values import Dyn, Val
from .advice import unsupported
from .leaves import as_new


def arithmetic(frame: Frame, op: Any, *values: Val) -> Dyn:
    """An operator on numbers or arrays.

    Raises:
        TypeError_: an operand is neither.
    """  # noqa: DOC501 (a function makes the exception)
    if not are_leaves(values) or any(isinstance(v.type, Ref | Data) for v in values):
        raise unsupported(op, list(values))
    made = as_new(frame, Dyn(OPERATORS[op](frame.builder, *[frame.var(v) for v in values]).node), values)
    assert isinstance(made, Dyn)
    return made
