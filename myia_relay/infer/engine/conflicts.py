"""Refusing in-place changes that another variable would see, where that depends on types and on what calls return."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from ...abstract.types import Array, Data, List, Scalar
from ...ir.node import Apply, Constant
from ...utils.errors import CompileError, ParseError, TypeError_
from ..values.kinds import kind_of
from ..values.sharing import holds_objects, require_own
from ..values.values import ClosureVal, Dyn, Listed, Seq, Static, TaggedUnion, Val
from .cells import Recaptured
from .frames import Frame, located


def refuse_shared(engine, frame: Frame, node: Apply, value: Val) -> None:
    """Refuse a change that another variable would see.

    The front end notes what may be the same object as far as names tell. Whether it can be is a question of types: an entry of a
    list of numbers is no list.

    Raises:
        ParseError: with the front end's words.
    """
    error = lambda reason: ParseError(reason, node.origin)  # noqa: E731
    refuse_or(engine, frame, node, kind_of(value) or "array", error, lambda: require_changeable(engine, node, value))


def refuse_or(
    engine, frame: Frame, node: Apply, kind: str, error: Callable[[str], CompileError], require: Callable
) -> None:
    """`refuse_conflicts`, then what else must hold; if that fails, the conflict by names says best why.

    Raises:
        CompileError: `error`, or what `require` raises.
    """
    named = refuse_conflicts(engine, frame, node, kind, error)
    try:
        require()
    except CompileError as problem:
        if named:
            raise named[0] from None
        problem.another = node.attrs.get("another")
        raise


def require_changeable(engine, node: Apply, value: Val) -> None:
    """Refuse the change of an argument of the program, or of what something else may see.

    Raises:
        ParseError: an argument, which is passed as an array.
    """
    if isinstance(value, Listed) and "refusal" in node.attrs:
        raise ParseError(node.attrs["refusal"]("list"), node.origin)
    require_own(engine.shared, value)


def refuse_in_place(engine, frame: Frame, node: Apply, value: Val) -> None:
    """Refuse `x += y` of an array, a list or a dict that something else may see.

    Raises:
        TypeError_: with advice.
        Recaptured: it is a parameter, for a function to be parsed again that keeps it.
    """
    kind = kind_of(value)
    if kind is None:
        return require_changeable(engine, node, value)

    def error(reason: str) -> CompileError:
        advice = f"write x = x + y, which makes a new {kind}, or copy it before: x = x.copy()"
        return TypeError_(f"this changes the {kind} in place, and {reason}; {advice}")

    if "again" in node.attrs:
        raise Recaptured(node.attrs["name"], node.attrs["again"].make_cell, node.origin)
    return refuse_or(engine, frame, node, kind, error, lambda: require_changeable(engine, node, value))


def refuse_call_in_place(name: str, args: list[Val]) -> None:
    """Refuse `operator.iadd(x, y)` of what it would change, which only the statement `x += y` does in compiled code.

    Raises:
        TypeError_: it would.
    """
    for value in args[0].options if args and isinstance(args[0], TaggedUnion) else args[:1]:
        if kind_of(value) is not None:
            raise TypeError_(
                f"operator.{name} changes its first operand, and in compiled code only statements do that: write x += y or the like"
            )


def refuse_conflicts(
    engine,
    frame: Frame,
    node: Apply,
    kind: str,
    error: Callable[[str], CompileError],
    conflicts: Iterable | None = None,
) -> list[CompileError]:
    """Refuse a change that the front end's conflicts at a node report: now, or, if calls decide, when all calls are
    known.

    Args:
        engine: the engine.
        frame: where.
        node: the change.
        kind: what is changed: an "array", a "list" or a "dict".
        error: makes the error of a reason.
        conflicts: the conflicts, if they are not those at the node.

    Returns:
        The errors of those that are decided later, and are conflicts as far as names tell.

    Raises:
        CompileError: `error`.
    """
    named: list[CompileError] = []
    for conflict in node.attrs.get("shared", ()) if conflicts is None else conflicts:
        if (
            kind not in conflict.kinds
            or runs_over_keys(frame, conflict)
            or not other_may_hold(engine, frame, conflict, kind)
        ):
            continue
        problem = error(conflict.reason)
        if "another" in node.attrs:
            problem.another = functools.partial(node.attrs["another"], conflict.variable)
        if conflict.confirm is None:
            raise problem
        if conflict.named:
            named.append(problem)
        engine.suspected.append((frame.spec, conflict, kind, problem.at(located(node.origin, frame.spec))))
    return named


def runs_over_keys(frame: Frame, conflict) -> bool:
    """Whether a conflict is that of a loop that runs over the keys of a dict."""
    over = None if conflict.over is None else frame.find(conflict.over)
    return isinstance(over, Seq) and over.kind == "dict"


def other_may_hold(engine, frame: Frame, conflict, kind: str) -> bool:
    """Whether the other variable of a conflict may be, or hold, an object of a kind."""
    other = conflict.other
    held = (
        engine.value(frame, other) if isinstance(other, Constant) else frame.find(other) if other is not None else None
    )
    return held is None or may_hold(held, kind)


def may_hold(value: Val, kind: str) -> bool:
    """Whether a value may be, or hold, an array, a list or a dict."""
    arrays = kind == "array"
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, Dyn):
            if isinstance(value.type, Array) and value.type.shape or isinstance(value.type, List):
                if (
                    arrays
                    or isinstance(value.type, List)
                    and (kind == "list" or not isinstance(value.type.elem, Scalar))
                ):
                    return True
            elif isinstance(value.type, Data) and holds_objects(value.type, Array | List if arrays else List):
                return True
        elif isinstance(value, Static):
            continue
        elif isinstance(value, ClosureVal) or kind == kind_of(value):
            return True
        elif isinstance(value, Seq | TaggedUnion):
            stack.extend(value.elems if isinstance(value, Seq) else value.options)
        else:
            return True
    return False


def holds_mutable(value: Val) -> bool:
    """Whether a value may be, or hold, an array, a list or a dict."""
    return any(may_hold(value, kind) for kind in ("array", "list", "dict"))
