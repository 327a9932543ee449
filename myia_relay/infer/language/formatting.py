"""F-strings: what is known becomes text, the rest becomes a string that is made at run time, when it is needed."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from ...abstract.types import INT, Array, Scalar
from ...ir import syntax as S
from ...ir.node import Apply
from ...ir.prim import REGISTRY
from ...prims.api.operators import OPERATORS
from ...prims.ops.effects import check
from ...utils.errors import TypeError_, ValueError_
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..values.kinds import is_word, python_class
from ..values.values import Dyn, Static, TaggedUnion, Text, Val
from .registry import handles


@handles(S.format_)
async def format_(engine: Engine, frame: Frame, node: Apply) -> Val:
    """An f-string."""
    parts: list = []
    operands: list[Val] = []
    values = [engine.value(frame, a) for a in node.args]
    for part in node.attrs["parts"]:
        if isinstance(part, str):
            parts.append(part)
            continue
        index, conversion, spec = part
        value = values[index]
        if isinstance(value, Dyn) and value.known and value.type == INT:
            value = Static(int(value.known_value))
        if isinstance(value, Static):
            text = {"r": repr, "s": str, "a": ascii}.get(conversion, lambda v: v)(value.value)
            try:
                parts.append(format(text, spec))
            except (TypeError, ValueError) as error:  # {None:.3f}, {"a":d}
                raise (TypeError_ if isinstance(error, TypeError) else ValueError_)(
                    f"{error}, which is {text!r} here"
                ) from None
        elif isinstance(value, Text) and not spec and conversion in ("", "s"):
            offset = len(operands)
            parts.extend(p if isinstance(p, str) else (p[0] + offset, *p[1:]) for p in value.parts)
            operands.extend(value.operands)
        else:
            if spec:
                _check_specification(frame, value, conversion, spec)
            parts.append((len(operands), conversion, spec))
            operands.append(value)
    if not operands:
        return Static("".join(parts))
    return Text(tuple(parts), tuple(operands))


def _check_specification(frame: Frame, value: Val, conversion: str, spec: str) -> None:
    """Refuse a format specification that values of this type never accept, and check the value where it depends on it.

    The text itself is made when it is used, which may be never.

    Raises:
        TypeError_: values of this type take none, in Python's words.
        ValueError_: values of this type take another one, in Python's words.
    """
    if isinstance(value, TaggedUnion):
        for option in value.options:
            _check_specification(frame, option, conversion, spec)
        return
    if conversion or isinstance(value, Text) or is_word(value):
        sample: Any = ""
    elif isinstance(value, Dyn) and isinstance(value.type, Scalar):
        sample = python_class(value)(1)
    elif isinstance(value, Dyn) and isinstance(value.type, Array) and value.type.shape == ():
        sample = np.zeros((), value.type.dtype)
    else:
        raise TypeError_(f"unsupported format string passed to {python_class(value).__name__}.__format__")
    try:
        format(sample, spec)
    except (TypeError, ValueError) as error:
        raise (TypeError_ if isinstance(error, TypeError) else ValueError_)(str(error)) from None
    if spec.endswith("c") and isinstance(value, Dyn) and not conversion:
        code = OPERATORS[operator.index](frame.builder, frame.var(value))
        inside = REGISTRY["logical_and"](code >= 0, code < sys.maxunicode + 1)
        attrs = {"exception": OverflowError, "parts": ("%c arg not in range(0x110000)",)}
        frame.builder.emit(check, (inside.node,), attrs)
