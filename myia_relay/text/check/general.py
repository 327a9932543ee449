"""Expressions where a polymorphic function is needed: they must be as general as it is."""

from __future__ import annotations

from typing import Any

from ...utils.trampoline import Steps
from ..terms.terms import PolyTerm, Rigid
from ..terms.unify import instantiated, replaced
from ..tree import Expression
from .schemes import generalise
from .state import Inference


def as_general(inference: Inference, e: Expression, wanted: PolyTerm) -> Steps:
    """The type of an expression where a polymorphic function is needed: that type, if the expression is as general."""
    inference.solver.enter()
    found = yield inference.infer(e)
    level = inference.solver.level
    skolems: list[Any] = [Rigid(p.name, p.kind, level, p.span) for p in wanted.params]
    given = len(inference.solver.given)
    for name, types in wanted.relations:
        table = {id(p): q for p, q in zip(wanted.params, skolems, strict=True)}
        inference.solver.given.append((name, tuple(replaced(t, table) for t in types)))
    clash = inference.solver.unify(found, instantiated(wanted, skolems))
    pending = inference.solver.leave()
    del inference.solver.given[given:]
    generalise(inference.solver, pending, [found], skolems, e.span)
    return found if clash is not None else wanted
