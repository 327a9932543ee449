"""What a loop carries from iteration to iteration: types that its body keeps, and the parameters of its graphs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from ...utils.source import Origin
from ..engine.conform import conform
from ..engine.drift import TypeDrift
from ..engine.engine import Engine
from ..engine.frames import TURN, Frame
from ..values.functions import nests
from ..values.sharing import mark_like
from ..values.treedef import Mismatch, TreeDef, join, tree_structure, unknown
from ..values.values import Val

DEEP = 2  # functions of one place that hold each other more deeply than this grow for ever
MAX_ROUNDS = 8  # rounds of generalising the carried types

Made = TypeVar("Made")


async def generalise(
    engine: Engine,
    frame: Frame,
    init: list[Val],
    names: tuple[str, ...],
    origin: Origin,
    attempt: Callable[[list[TreeDef]], Awaitable[tuple[list[TreeDef] | None, Made]]],
    wide: bool = False,
    grow: bool = False,
    known: list[TreeDef] | None = None,
) -> tuple[list[TreeDef], Made]:
    """Find carried types that the loop's body keeps.

    Args:
        engine, frame: as everywhere.
        init: the initial values.
        names: the carried variables' names, for messages.
        origin: the loop.
        attempt: `(carried treedefs) -> (result treedefs or None, whatever)`: infers the body once.
        wide: whether a variable may be one of several types, told apart at run time.
        grow: whether an array may have another size in every iteration.
        known: the result of an earlier run, with which this one begins, or nothing; receives the result.

    Returns:
        The carried treedefs, and what the last attempt made.

    Raises:
        TypeDrift: a variable changes its type, or the types keep growing.
    """
    first = [tree_structure(v, capture=frame.captured) for v in init]
    carried = list(known) if known and len(known) == len(first) else [unknown(s) for s in first]
    for _ in range(MAX_ROUNDS):
        results, made = await attempt(carried)
        if results is None:  # the body never completes
            return carried, made
        joined = []
        for index, (name, before, after) in enumerate(zip(names, carried, results, strict=True)):
            try:
                joined.append(unknown(join(before, after, wide, grow)))
            except Mismatch as error:
                engine.families.suspect(before, after)
                hint = f"; {error.why or 'a variable keeps one type in a loop, and an array its shape and dtype'}"
                if str(before) == "int" and str(after) == "float":
                    hint = f"; start it as a float: {name} = 0.0"
                message = f"'{name}' changes its type in the loop: it is {before} before an iteration and {after} after it{hint}"
                drift = TypeDrift(message, origin)
                drift.index, drift.after = index, after
                raise drift from None
        if joined == carried:
            if known is not None:
                known[:] = carried
            return carried, made
        if nests(joined, DEEP):
            carried = joined
            break
        carried = joined
    engine.families.suspect(*carried)
    raise TypeDrift(f"the types of {', '.join(names)} keep growing in this loop", origin)


def region_with_parameters(
    frame: Frame, name: str, treedefs: list[TreeDef], names, extra: list, turn: int | None = None
) -> tuple[Frame, list, list[Val]]:
    """A region whose first parameters are `extra` types, then the leaves of carried values; `turn` is KEPT in a loop whose length
    is known."""
    region = frame.region(name)
    if frame.context.scope is not None:
        region.context = replace(frame.context, iteration=(*frame.context.iteration, turn))
    firsts = [region.graph.add_parameter(n, t, region.builder.origin) for n, t in extra]
    values = []
    for treedef, label in zip(treedefs, names, strict=True):
        leaves = list(treedef.leaves())
        made = [
            region.graph.add_parameter(label if len(leaves) == 1 else f"{label}_{i}", leaf.info)
            for i, leaf in enumerate(leaves)
        ]
        values.append(region.rebuild(treedef, iter(made)))
    if frame.context.draws():
        counter = values[0] if names and names[0] == "$index" else None
        index = firsts[0] if firsts else getattr(counter, "node", None)
        region.providers[TURN] = None if index is None else lambda: region.next_turn(index)
    return region, firsts, values


def initial_nodes(frame: Frame, init: list[Val], treedefs: list[TreeDef]) -> list:
    """The leaves of the initial values, in the carried form."""
    return [n for v, s in zip(init, treedefs, strict=True) for n in conform(frame, v, s)]


def mark_each(engine: Engine, sources: list[Val], targets: list[Val]) -> None:
    """Mark the carried variables into which something flows that may be seen elsewhere."""
    for source, target in zip(sources, targets):
        mark_like(engine.shared, [source], [target])
