"""Values that are one of several things at run time: a function chosen by data, a value or None.

A `Choice` is a tag and all its options; the leaves of every option are carried, those of the options not chosen being
placeholders that nobody looks at. So a call of an unknown function is a branch on the tag over the finite set of functions that
may flow there: defunctionalisation (Reynolds 1972), done by inference, which is the one that knows that set. An operation on
a choice is the operation on each option; where it makes no sense for one, it raises there, when it is reached, as in CPython.
"""

from __future__ import annotations

import operator

from ..ir.node import Apply
from ..ir.syntax import FreeName
from ..prims.control import undef
from ..utils.errors import CompileError
from .values import Choice, Dyn, Mismatch, Raised, Skeleton, Static, Val, join, skeleton


def first_choice(values: list[Val]) -> int | None:
    """The position of the first choice among values."""
    return next((i for i, v in enumerate(values) if isinstance(v, Choice)), None)


async def dispatch(engine, frame, choice: Choice, run, node: Apply | None, origin) -> Val:
    """`run(frame, option)` for whichever option it is at run time.

    Args:
        engine, frame: as everywhere.
        choice: the value.
        run: coroutine `(frame, option) -> Val`.
        node: the construct, for names of results.
        origin: its place.
    """
    from .syntax import branch, emit_raise

    async def arm(region, option: Val) -> Val:
        try:
            return await run(region, option)
        except CompileError as error:
            if not isinstance(error, TypeError | AttributeError):
                raise
            # CPython would find out when it gets here with this option, and not before.
            kind = AttributeError if isinstance(error, AttributeError) else TypeError
            return await emit_raise(engine, region, Raised(kind, Static(error.message)))

    async def options(region, tag: Dyn, rest: tuple[Val, ...], first: int) -> Val:
        if len(rest) == 1:
            return await arm(region, rest[0])
        from .loops import operate_node

        region.at(origin)
        here = Dyn(operate_node(region, "eq", tag, region.constant(first)))

        async def this(inner) -> Val:
            return await arm(inner, inner.bring(rest[0]))

        async def others(inner) -> Val:
            return await options(inner, inner.bring(tag), tuple(inner.bring(v) for v in rest[1:]), first + 1)

        site = node if node is not None else Apply(region.graph, undef, origin=origin)
        return await branch(engine, region, here, [this, others], site)

    return await options(frame, choice.tag, choice.options, 0)


def narrowed(engine, frame, value: Val, keeps) -> tuple[Val, Val] | None:
    """A choice split by a test that each option passes or fails at compile time; None where that does not hold.

    Args:
        engine, frame: as everywhere.
        value: the value that the test is about.
        keeps: `(option) -> bool or None`.
    """
    if not isinstance(value, Choice):
        return None
    verdicts = [keeps(option) for option in value.options]
    if None in verdicts or len(set(verdicts)) < 2:
        return None
    return tuple(restrict(frame, value, [i for i, v in enumerate(verdicts) if v is wanted]) for wanted in (True, False))


def restrict(frame, value: Choice, kept: list[int]) -> Val:
    """A choice that is known to be one of some of its options."""
    if len(kept) == 1:
        return value.options[kept[0]]
    from .loops import operate_node

    tag = frame.constant(0)
    for new, old in enumerate(kept[1:], 1):
        hit = Dyn(operate_node(frame, "eq", value.tag, frame.constant(old)))
        tag = Dyn(operate_node(frame, "where", hit, frame.constant(new), tag))
    return Choice(tag, tuple(value.options[i] for i in kept))


def test_of(engine, frame, condition: Apply):
    """The value that a condition tests the kind of, and how its options fare: for `isinstance(x, C)`, `x is None`, `x`, ..."""
    from ..ir.node import Constant
    from .builtins import is_instance
    from .data import is_data, possible

    if not isinstance(condition, Constant) and is_data(frame.find(condition)):
        return condition, lambda option: bool(possible(option)[0])
    if not isinstance(condition, Apply) or not isinstance(condition.fn, Constant):
        return None
    if condition.fn.value is operator.not_:
        inner = test_of(engine, frame, condition.args[0])
        return inner and (inner[0], lambda option: None if (found := inner[1](option)) is None else not found)
    if len(condition.args) != 2:
        return None
    op, (subject, other) = condition.fn.value, condition.args
    if isinstance(op, FreeName):
        found = engine.value(frame, condition.fn)
        op = found.value if isinstance(found, Static) else None
    if op is isinstance:
        classes = engine.value(frame, other)
        if not isinstance(classes, Static):
            return None
        return subject, lambda option: is_instance(option, classes.value)
    if op in (operator.is_, operator.is_not) and isinstance(other, Constant) and other.value is None:
        wanted = op is operator.is_

        def is_none(option: Val) -> bool | None:
            if is_data(option):
                hits = {(n == 0) is wanted for n in possible(option)}
                return hits.pop() if len(hits) == 1 else None
            return (isinstance(option, Static) and option.value is None) is wanted

        return subject, is_none
    return None


def conform_choice(frame, value: Val, skel: Skeleton, conform) -> list:
    """The leaves of a value in the form of a choice: the tag, then the leaves of every option."""
    tag_skel, *option_skels = skel.parts
    nodes: list = []
    if isinstance(value, Choice):
        places = [place_of(option_skels, skeleton(o, capture=frame.captured)) for o in value.options]
        tag = value.tag
        if places != list(range(len(places))):
            from .loops import operate_node

            tag = frame.constant(places[0])
            for old, new in list(enumerate(places))[1:]:
                hit = Dyn(operate_node(frame, "eq", value.tag, frame.constant(old)))
                tag = Dyn(operate_node(frame, "where", hit, frame.constant(new), tag))
        given = dict(zip(places, value.options, strict=True))
    else:
        place = place_of(option_skels, skeleton(value, capture=frame.captured))
        tag, given = frame.constant(place), {place: value}
    nodes.append(tag.node)
    for index, option in enumerate(option_skels):
        if index in given:
            nodes.extend(conform(frame, given[index], option))
        else:
            nodes.extend(frame.builder.emit(undef, (), {"type": leaf.info}) for leaf in option.leaves())
    return nodes


def place_of(options: list[Skeleton], have: Skeleton) -> int:
    """Which option of a choice a value is."""
    for index, option in enumerate(options):
        try:
            if join(option, have) == option:
                return index
        except Mismatch:
            continue
    raise Mismatch(options[0], have)
