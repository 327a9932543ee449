"""Whether a match leaves a value out, and which arms no value gets to; nested patterns included.

The clause matrix of L. Maranget, "Warnings for pattern matching" (JFP 2007): it is specialised by the constructors of a
column until no column is left, where the first row takes the value. An arm that is never first is redundant. A matrix
without rows shows a pattern that nothing matches. Rows are grouped by their constructors in one walk, so a match on one
column takes linear time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...utils.trampoline import Steps, run
from ..tree import (
    ConstructorPattern,
    MatchExpr,
    ModuleTree,
    PatternExpr,
    TuplePattern,
    VariablePattern,
    WildcardPattern,
)

NESTED = (ConstructorPattern, TuplePattern)


class MatchReport(NamedTuple):
    """What is wrong with the arms of a match.

    Attributes:
        missing: a pattern that no arm matches, as text; None if there is none.
        redundant: the numbers of arms that no value gets to.
    """

    missing: str | None
    redundant: list[int]


class _Row(NamedTuple):
    arm: int
    patterns: tuple[PatternExpr | None, ...]  # None matches everything


def examine(match: MatchExpr, module: ModuleTree) -> MatchReport:
    """What the arms of a match leave out, and which are redundant."""
    rows = [_Row(k, (_plain(arm.pattern),)) for k, arm in enumerate(match.arms)]
    useful: set[int] = set()
    missing = run(_uncovered(rows, 1, module, useful))
    return MatchReport(None if missing is None else missing[0], [k for k in range(len(match.arms)) if k not in useful])


def _plain(pattern: PatternExpr) -> PatternExpr | None:
    return None if isinstance(pattern, WildcardPattern | VariablePattern) else pattern


def _uncovered(rows: list[_Row], width: int, module: ModuleTree, useful: set[int]) -> Steps:
    """A vector of patterns, as text, that no row matches, or None; rows that come first somewhere are added to `useful`."""
    if not rows:
        return ["_"] * width
    column = next((k for k in range(width) if rows[0].patterns[k] is not None), None)
    if column is None:  # the first row takes everything
        useful.add(rows[0].arm)
        return None
    groups, order = _heads(rows, column)
    rest = [r for r in rows if r.patterns[column] is None]
    missing = None
    for head in order:
        arity = head[1]
        inner = []
        for row in _merged(groups[head], rest):
            pattern = row.patterns[column]
            fields = tuple(map(_plain, pattern.fields)) if isinstance(pattern, NESTED) else (None,) * arity
            inner.append(_Row(row.arm, (*fields, *row.patterns[:column], *row.patterns[column + 1 :])))
        found = yield _uncovered(inner, arity + width - 1, module, useful)
        if found is not None and missing is None:
            shown = _shown(head, found[:arity])
            missing = [*found[arity : arity + column], shown, *found[arity + column :]]
    absent = _absent(order, module)
    if absent:
        inner = [_Row(r.arm, (*r.patterns[:column], *r.patterns[column + 1 :])) for r in rest]
        found = yield _uncovered(inner, width - 1, module, useful)
        if found is not None and missing is None:
            missing = [*found[:column], " or ".join(absent), *found[column:]]
    return missing


def _heads(rows: list[_Row], column: int) -> tuple[dict[Any, list[_Row]], list[Any]]:
    """The rows with each constructor (its name, None for tuples, and the number of its fields) in a column."""
    groups: dict[Any, list[_Row]] = {}
    for row in rows:
        pattern = row.patterns[column]
        if pattern is not None:
            assert isinstance(pattern, NESTED)
            name = pattern.constructor if isinstance(pattern, ConstructorPattern) else None
            groups.setdefault((name, len(pattern.fields)), []).append(row)
    return groups, list(groups)


def _merged(one: list[_Row], other: list[_Row]) -> list[_Row]:
    """Two lists of rows in the order of the arms."""
    return sorted([*one, *other], key=lambda r: r.arm) if other else one


def _absent(heads: list[Any], module: ModuleTree) -> list[str]:
    """Patterns of the constructors of a data type that are not among some."""
    name = heads[0][0]
    if name is None or name not in module.constructors:
        return []
    known = {head[0] for head in heads}
    definition, _ = module.constructors[name]
    return [
        _shown((c.name, len(c.fields)), ["_"] * len(c.fields)) for c in definition.constructors if c.name not in known
    ][:4]


def _shown(head: Any, fields: list[str]) -> str:
    name, arity = head
    inner = ", ".join(fields)
    if name is None:
        return f"({inner},)" if arity == 1 else f"({inner})"
    return f"{name}({inner})" if arity else name
