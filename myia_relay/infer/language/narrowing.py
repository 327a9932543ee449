"""What a condition implies about a value: which options or variants are possible where it holds, and where it does not."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ...ir.node import Apply, Constant, Node
from ...ir.syntax import FreeName
from ..engine.engine import Engine
from ..engine.frames import Frame, emit
from ..values.kinds import is_data, is_instance, possible, python_class, restricted
from ..values.values import NONE_VAL, Dyn, KnownRecord, Seq, Static, TaggedUnion, Val


def narrowed(engine, frame, value: Val, keeps) -> tuple[Val, Val] | None:
    """A tagged union split by a test that each option passes or fails at compile time; None if some option does
    neither.

    Args:
        engine, frame: as everywhere.
        value: the value that the test is about.
        keeps: `(option) -> bool or None`.
    """
    if not isinstance(value, TaggedUnion):
        return None
    verdicts = [keeps(option) for option in value.options]
    if None in verdicts or len(set(verdicts)) < 2:
        return None
    holds, fails = ([i for i, v in enumerate(verdicts) if v is wanted] for wanted in (True, False))
    return restrict(frame, value, holds), restrict(frame, value, fails)


def restrict(frame, value: TaggedUnion, kept: list[int]) -> Val:
    """A tagged union that is known to be one of some of its options."""
    if len(kept) == 1:
        return value.options[kept[0]]

    tag = frame.constant(0)
    for new, old in enumerate(kept[1:], 1):
        hit = emit(frame, "eq", value.tag, frame.constant(old))
        tag = emit(frame, "where", hit, frame.constant(new), tag)
    return TaggedUnion(tag, tuple(value.options[i] for i in kept))


def test_of(engine, frame, condition: Apply):
    """The value whose kind a condition tests, and which options pass.

    Recognised are `isinstance(x, C)`, `x is None`, `x == "a"` for strings, `type(x) is C`, `x` itself if it is of an algebraic
    data type, and their negations.
    """
    if not isinstance(condition, Constant) and is_data(frame.find(condition)):
        return condition, lambda option: bool(possible(option)[0])

    def seen(node: Node) -> Val | None:
        """The value of an operand; None if only the enclosing function has it."""
        return engine.value(frame, node) if isinstance(node, Constant) else frame.find(node)

    op, args = operation(engine, frame, condition)
    if op is operator.not_ and len(args) == 1:
        inner = test_of(engine, frame, args[0])
        if inner is None:
            return None
        subject, keeps = inner
        return subject, lambda option: None if (verdict := keeps(option)) is None else not verdict
    if len(args) != 2:
        return None
    subject, other = args
    if op is isinstance:
        classes = seen(other)
        return (subject, lambda option: is_instance(option, classes.value)) if isinstance(classes, Static) else None
    if op not in (operator.is_, operator.is_not, operator.eq, operator.ne):
        return None
    wanted = op in (operator.is_, operator.eq)
    inner_op, inner_args = operation(engine, frame, subject)
    known = seen(other)
    if inner_op is type and len(inner_args) == 1 and isinstance(known, Static) and isinstance(known.value, type):
        return inner_args[0], lambda option: (python_class(option) is known.value) is wanted
    if op in (operator.is_, operator.is_not) and isinstance(other, Constant) and other.value is None:
        wanted = op is operator.is_

        def is_none(option: Val) -> bool | None:
            if is_data(option):
                hits = {(n == 0) is wanted for n in possible(option)}
                return hits.pop() if len(hits) == 1 else None
            return (isinstance(option, Static) and option.value is None) is wanted

        return subject, is_none
    if isinstance(known, Static) and isinstance(known.value, str):
        plain = (Static, Dyn, Seq)  # the others may or may not be equal to a string
        return (
            subject,
            lambda option: (
                (option.value == known.value) is wanted
                if isinstance(option, Static)
                else (not wanted if isinstance(option, plain) else None)
            ),
        )
    return None


def operation(engine, frame, node) -> tuple:
    """The Python callable that an application in a parsed graph calls, with its arguments; (None, ()) for anything else."""
    if not isinstance(node, Apply) or not isinstance(node.fn, Constant) or node.keywords:
        return None, ()
    fn = node.fn.value
    if isinstance(fn, FreeName):
        found = engine.value(frame, node.fn)
        fn = found.value if isinstance(found, Static) else None
    return fn, node.args


def split(value: Val, keeps: Callable) -> tuple[Val, Val] | None:
    """A value on the two sides of a test: narrowed where the test holds, and where it fails; None if the test tells
    nothing.

    Args:
        value: the value that is tested.
        keeps: `(value) -> bool or None`: whether the test holds.
    """
    if not is_data(value):
        return None
    may = possible(value)
    verdicts = {n: keeps(KnownRecord(value.node, (n,))) for n in may}
    if None in verdicts.values() or len(set(verdicts.values())) < 2:
        return None
    holds, fails = (
        NONE_VAL if numbers == [0] else restricted(value, numbers)
        for numbers in ([n for n in may if verdicts[n] is side] for side in (True, False))
    )
    return holds, fails


def arms_of(engine: Engine, frame: Frame, node: Apply, arm: Callable) -> list[Callable]:
    """The two arms of an `if_`, made by `arm(graph, facts)`: `facts` are values that the condition has narrowed there."""
    condition, *graphs = node.args
    known: list[dict] = [{}, {}]
    test = test_of(engine, frame, condition)
    if test is not None and (subject := frame.find(test[0])) is not None:
        sides = split(subject, test[1]) or narrowed(engine, frame, subject, test[1])
        if sides is not None:
            known = [{test[0]: part} for part in sides]
    return [arm(graph.value, facts) for graph, facts in zip(graphs, known, strict=True)]
