"""Loops that are written out, one iteration after the other."""

from __future__ import annotations

from contextlib import contextmanager

from ..engine.branches import branch
from ..engine.drift import Exhausted
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..objects.truth import truth
from ..values.values import NEVER, Seq, Val, elements

DRIFTING = 32  # iterations: up to this number a loop is unrolled whose variables change their types
OPERATIONS = 20_000  # operations of all iterations of such loops


@contextmanager
def unrolling(engine: Engine, count: int):
    """Within this context a loop of so many iterations is unrolled; the outermost one starts to count operations."""
    outermost = engine.unrolled_until is None
    if outermost:
        engine.unrolled_until = engine.applied + OPERATIONS
    engine.spelt_out *= count
    try:
        yield
    finally:
        engine.spelt_out //= count
        if outermost:
            engine.unrolled_until = None


async def unroll(engine, frame, node, items, init, run, stops, done: int = 0) -> Val:
    """A loop over a static number of items, one iteration after the other; `done` came before them.

    Raises:
        Exhausted: the budget of operations or iterations ends.
    """
    carried = list(init)
    for position, item in enumerate(items):
        if engine.unrolled_until is not None and engine.applied > engine.unrolled_until:
            raise Exhausted(f"that takes at most {OPERATIONS:,} operations, which {position:,} of its iterations do")
        engine.written_out[node] += 1
        inner = frame.turn(done + position)
        inner.copies = frame.copies * len(items)
        result = await run(inner, [item, *carried])
        if result is NEVER:
            return NEVER
        carried = [inner.leave(v) for v in elements(result)]
        if stops:
            *carried, go_on = carried
            decided = await truth(engine, frame, go_on)
            if decided is False:
                break
            if decided is not True:
                rest = items[position + 1 :]
                if not rest:
                    break
                if len(rest) > DRIFTING and engine.unrolled_until is not None:
                    raise Exhausted(f"it has at most {DRIFTING} iterations, as a break may end it")
                current = list(carried)

                async def more(region: Frame, rest=rest, current=current, before=done + position + 1) -> Val:
                    left, now = ([region.bring(v) for v in values] for values in (rest, current))
                    return await unroll(engine, region, node, left, now, run, stops, before)

                async def enough(region: Frame, current=current) -> Val:
                    return Seq("tuple", tuple(region.bring(v) for v in current))

                return await branch(engine, frame, decided, [more, enough], node)
    return Seq("tuple", tuple(carried))
