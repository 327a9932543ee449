"""Types of patterns, and of the variables that they bind."""

from __future__ import annotations

from typing import Any

from ...utils.errors import NameError_, TypeError_, nearest
from ..span import loc
from ..terms.terms import POISON, ArrowTerm, TupleTerm, prune, tuple_term
from ..tree import ConstructorPattern, PatternExpr, TuplePattern, VariablePattern
from .clashes import mismatch
from .schemes import instantiate
from .state import Inference


def pattern(inference: Inference, p: PatternExpr, value: Any) -> None:
    """Demand that a pattern fits values of a type, and bind its variables."""
    stack: list[tuple[PatternExpr, Any]] = [(p, value)]
    while stack:
        p, value = stack.pop()
        match p:
            case VariablePattern():
                if p.annotation is not None:
                    t = inference.written(p.annotation)
                    inference.must_be(
                        value, t, lambda c, v=value, t=t, p=p: mismatch(c, v, t, "what is matched is", loc(p.span))
                    )
                    value = t
                inference.locals[p.local] = value
            case TuplePattern():
                parts = tuple(inference.solver.fresh() for _ in p.fields)
                wanted = tuple_term(parts)
                known = prune(value)
                if isinstance(known, TupleTerm) and len(known.elems) == len(parts):
                    parts = known.elems
                else:
                    inference.must_be(
                        value,
                        wanted,
                        lambda c, v=value, w=wanted, p=p: mismatch(c, v, w, "what is matched is", loc(p.span)),
                    )
                stack.extend(zip(reversed(p.fields), reversed(parts), strict=True))
            case ConstructorPattern():
                stack.extend(reversed(_fields(inference, p, value)))


def _fields(inference: Inference, p: ConstructorPattern, value: Any) -> list[tuple[PatternExpr, Any]]:
    """The patterns within one of a constructor, with the types of the fields that they match."""
    scheme = inference.constructors.get(p.constructor)
    if scheme is None:
        advice = nearest(p.constructor, inference.constructors)
        inference.report(NameError_(f"there is no constructor '{p.constructor}'{advice}", loc(p.span)))
        return [(f, POISON) for f in p.fields]
    t, _ = instantiate(inference.solver, scheme, p.span)
    fields, result = (t.params, t.result) if isinstance(t, ArrowTerm) else ((), t)
    inference.must_be(value, result, lambda clash: mismatch(clash, value, result, "what is matched is", loc(p.span)))
    if len(fields) != len(p.fields):
        inference.report(
            TypeError_(
                f"{p.constructor} has {len(fields)} field{'' if len(fields) == 1 else 's'}, and this pattern has "
                f"{len(p.fields)}",
                loc(p.span),
            )
        )
        return [(f, POISON) for f in p.fields]
    return list(zip(p.fields, fields, strict=True))
