"""Types of tuples, branches and references."""

from __future__ import annotations

from typing import Any

from ...utils.errors import CompileError, TypeError_
from ...utils.trampoline import Steps
from ..span import Span, loc
from ..terms.show import show
from ..terms.solver import Facts, Poisoned, TypeRelation
from ..terms.terms import BOOL, POISON, UNIT, CellTerm, TupleTerm, Unknown, cell, loosest, prune, tuple_term
from ..terms.unify import Clash
from ..tree import (
    Arm,
    Expression,
    IfExpr,
    MatchExpr,
    Projection,
    RefNew,
    RefRead,
    RefWrite,
    TupleExpr,
)
from .clashes import mismatch, result_of
from .exhaustive import examine
from .patterns import pattern
from .state import Inference, step


@step(TupleExpr)
def structure(inference: Inference, e: TupleExpr) -> Steps:
    """A tuple."""
    out = []
    for f in e.fields:
        t = inference.leaf(f)
        out.append((yield inference.infer(f)) if t is None else t)
    return tuple_term(out)


@step(Projection)
def projection(inference: Inference, e: Projection) -> Steps:
    """A part of a tuple; of what is not known yet, a relation."""
    t = prune((yield inference.infer(e.tuple)))
    if t.__class__ is TupleTerm and 0 <= e.index < len(t.elems):
        return t.elems[e.index]
    result = inference.solver.fresh()
    inference.solver.add(TypeRelation("a projection", _project, (t,), result, {"index": e.index}, e.span))
    return prune(result)


@step(IfExpr)
def conditional(inference: Inference, e: IfExpr) -> Steps:
    """Two branches of one type."""
    condition = yield inference.infer(e.condition)
    inference.must_be(
        condition,
        BOOL,
        lambda clash: mismatch(clash, condition, BOOL, "the condition is", loc(result_of(e.condition).span)),
    )
    then = yield inference.infer(e.then)
    otherwise = yield inference.infer(e.otherwise)

    def differ(clash: Clash) -> CompileError:
        place = result_of(e.otherwise).span
        error = mismatch(clash, otherwise, then, "this branch is", loc(place or e.span))
        if (first := result_of(e.then).span) is not None:
            error.notes.append((f"the other branch is {show(then)}", first.loc))
        return error

    return loosest(then, otherwise) if inference.must_be(otherwise, then, differ) else then


@step(MatchExpr)
def match(inference: Inference, e: MatchExpr) -> Steps:
    """Arms of one type; they must be complete, and none redundant."""
    value = yield inference.infer(e.value)
    sound, before = True, len(inference.errors)
    out: Any = None
    first: Arm | None = None
    for arm in e.arms:
        pattern(inference, arm.pattern, value)
        sound = sound and len(inference.errors) == before
        t = yield inference.infer(arm.body)
        before = len(inference.errors)
        if first is None:
            out, first = t, arm
            continue

        def differ(clash: Clash, arm: Arm = arm, t: Any = t, out: Any = out, first: Arm = first) -> CompileError:
            error = mismatch(clash, t, out, "this arm is", loc(result_of(arm.body).span or e.span))
            if (place := result_of(first.body).span) is not None:
                error.notes.append((f"the first arm is {show(out)}", place.loc))
            return error

        if inference.must_be(t, out, differ):
            out = loosest(out, t)
        before = len(inference.errors)
    if sound:
        _complete(inference, e)
    return inference.solver.fresh() if out is None else out


def _complete(inference: Inference, e: MatchExpr) -> None:
    found = examine(e, inference.module)
    if found.missing is not None and e.complete:
        inference.report(
            TypeError_(
                f"this match does not say what to do with {found.missing}; add an arm for it, or write match? to raise "
                "ValueError there",
                loc(head(e)),
            )
        )
    inference.redundant.extend(e.arms[k] for k in found.redundant)


@step(RefNew)
def new(inference: Inference, e: RefNew) -> Steps:
    """A new cell."""
    return cell((yield inference.infer(e.value)))


@step(RefRead)
def read(inference: Inference, e: RefRead) -> Steps:
    """What a cell holds."""
    t = yield inference.infer(e.ref)
    return _content(inference, t, e.ref)


@step(RefWrite)
def write(inference: Inference, e: RefWrite) -> Steps:
    """A write gives the unit."""
    t = yield inference.infer(e.ref)
    value = yield inference.infer(e.value)
    content = _content(inference, t, e.ref)
    inference.must_be(
        value,
        content,
        lambda clash: mismatch(clash, value, content, "what is written is", loc(result_of(e.value).span)),
    )
    return UNIT


def _content(inference: Inference, t: Any, e: Expression) -> Any:
    known = prune(t)
    if isinstance(known, CellTerm):
        return known.elem
    if known is POISON:
        return POISON
    content = inference.solver.fresh()
    wanted = cell(content)
    if not inference.must_be(
        known, wanted, lambda clash: mismatch(clash, known, wanted, "this is", loc(result_of(e).span))
    ):
        return POISON
    return content


def _project(facts: Facts) -> None:
    """The element of a tuple.

    Raises:
        Poisoned: the tuple has an error.
        TypeError_: it is no tuple, or has fewer elements.
    """
    t, index = prune(facts.relation.args[0]), facts.attr("index")
    if t is POISON:
        raise Poisoned
    if isinstance(t, Unknown):
        raise facts.wait(t)
    if not isinstance(t, TupleTerm):
        raise TypeError_(f".{index} is an element of a tuple, and this is {show(t)}")
    if not 0 <= index < len(t.elems):
        n = len(t.elems)
        raise TypeError_(
            f"there is no element .{index} of {show(t)}, which has {n} element{'' if n == 1 else 's'}; they are counted from 0"
        )
    facts.gives(t.elems[index])


def head(e: MatchExpr) -> Span | None:
    """The place of a match without its arms: its first line."""
    if e.span is None or e.value.span is None or e.value.span.source is not e.span.source:
        return e.span
    return Span(e.span.source, e.span.start, e.value.span.end)
