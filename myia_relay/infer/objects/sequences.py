"""Iterables as a whole: whether one needs a loop at run time, and all results of a `map`."""

from __future__ import annotations

from ...abstract.types import Array
from ...ir.node import Apply
from ...library import lists as prelude
from ..engine.conform import LONG
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..values.kinds import is_run_time, known_range
from ..values.values import Dyn, Iter, Seq, Val
from .iterables import Walk, walk
from .lists import call, keeps_static, static_items
from .structures import as_sequence


def needs_loop(engine: Engine, frame: Frame, value: Val) -> bool:
    """Whether an iterable has a length that is known at run time only."""
    if (numbers := known_range(value)) is not None:
        return len(numbers) > LONG and not keeps_static(engine)
    if is_run_time(value):
        return static_items(frame, value) is None
    if isinstance(value, Iter):
        return isinstance(walk(engine, frame, value), Walk)
    return isinstance(value, Dyn) and isinstance(value.type, Array) and not isinstance((*value.type.shape, 0)[0], int)


async def mapped(engine: Engine, frame: Frame, value: Iter, origin, site) -> Val:
    """The results of a `map` over everything that it iterates over, as a sequence."""
    fn, *sequences = value.parts
    if len(sequences) == 1 and needs_loop(engine, frame, sequences[0]):
        return await call(engine, frame, prelude.mapped, fn, sequences[0], site=site)
    columns = [as_sequence(engine, frame, s, "map over") for s in sequences]
    out = [await engine.call(frame, fn, list(row), {}, origin, site) for row in zip(*columns, strict=False)]
    return Seq("tuple", tuple(out))


async def plain(engine: Engine, frame: Frame, value: Val, site: Apply | None) -> Val:
    """The results of a `map` as an iterator; other values unchanged."""
    if not isinstance(value, Iter) or value.kind != "map":
        return value
    return Iter("iterator", (await mapped(engine, frame, value, frame.builder.origin, site),), value.once)
