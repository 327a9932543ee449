"""Strings that a run decides (`abstract.words`): compared, tested and looked up in dicts; other operations on them are refused."""

from __future__ import annotations

import operator
from typing import Any

from ...abstract.words import STRING
from ...ir.prim import REGISTRY
from ...prims.ops.effects import check
from ...utils.errors import LoweringError
from ...utils.raising import ITSELF
from ..engine.conform import code_of_word
from ..engine.frames import Frame, emit
from ..values.kinds import is_text, is_word
from ..values.values import Dyn, Seq, Static, Val
from .advice import SYMBOLS

ADVICE = (
    "compiled code compares strings that are entries of lists (==, !=, in), looks them up in dicts and returns them; "
    "do the rest outside, or number them"
)


def refused(what: str) -> LoweringError:
    """The error for what is done to a string that only a run knows."""
    return LoweringError(f"{what}: this string is known at run time only; {ADVICE}")


def operate(frame: Frame, op: Any, args: list[Val]) -> Val | None:
    """An operator of which an operand is such a string; None where none is, and for those that work on all values.

    Raises:
        LoweringError: strings have that operator in Python, and not here.
    """  # noqa: DOC501
    if not any(map(is_word, args)):
        return None
    if op is operator.not_:
        return Dyn(emit(frame, "eq", code_of_word(frame, args[0]), frame.constant(0)).node)
    if op in (operator.eq, operator.ne) or op is operator.contains and not is_word(args[0]) and not is_text(args[0]):
        return None
    if op in (operator.is_, operator.is_not) and not all(is_word(a) or is_text(a) for a in args):
        return None
    name = getattr(op, "__name__", str(op))
    raise refused(SYMBOLS.get(name, name.rstrip("_")))


def equal(frame: Frame, a: Val, b: Val) -> Dyn | None:
    """`a == b` where one is such a string; None elsewhere.

    Raises:
        LoweringError: the other one is a string that is made at run time.
    """  # noqa: DOC501
    if not is_word(a) and not is_word(b):
        return None
    if not all(is_word(x) or is_text(x) for x in (a, b)):
        return frame.constant(False)
    codes = []
    for x in (a, b):
        if not is_word(x) and not isinstance(x, Static):
            raise refused("== with a string that is made at run time")
        codes.append(code_of_word(frame, x))
    return emit(frame, "eq", *codes)


def place(frame: Frame, table: Seq, key: Val) -> tuple[Dyn, Dyn]:
    """Where a string is among the keys of a dict, 0 if nowhere; and whether it is there."""
    code, at, there = code_of_word(frame, key), frame.constant(0), frame.constant(False)
    for k, field in enumerate(table.fields):
        if isinstance(field, str):
            same = emit(frame, "eq", code, code_of_word(frame, Static(field)))
            at = emit(frame, "where", same, frame.constant(k), at)
            there = emit(frame, "logical_or", there, same)
    return at, there


def require_there(frame: Frame, there: Dyn, key: Seq) -> None:
    """Raise KeyError unless a key is there."""
    shown = frame.builder.emit(REGISTRY["make_struct"], (code_of_word(frame, key).node,), {"type": STRING})
    frame.builder.emit(check, (there.node, shown), {"exception": KeyError, "parts": ((0, ITSELF, ""),)})
