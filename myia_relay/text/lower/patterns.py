"""Compilation of `match` to a decision tree: each test is made at most once on any path.

A row of the matrix is an arm: what must fit where, the variables bound so far, and which arm it is. Variables and tuples
need no test, so they are resolved at once. What is left of the first row are constructors; the one that most rows also ask
about is tested. Where it fits, rows of that constructor go on with its fields; where it does not, with the other rows.
Arms that several leaves reach are lowered once (`lower`), if they are not small.

Source: L. Maranget, "Compiling pattern matching to good decision trees" (ML 2008); the rows as sets of tests follow
J. Jacobs, "How to compile pattern matching" (2021).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from ..tree import (
    ConstructorPattern,
    Local,
    MatchExpr,
    ModuleTree,
    PatternExpr,
    TuplePattern,
    VariablePattern,
    WildcardPattern,
)

Place: TypeAlias = tuple["tuple[str, int] | int", ...]
"""Where in the value that is matched: fields of constructors (by its name and number) and of tuples, from the outside in."""


@dataclass(frozen=True)
class Fits:
    """A leaf: the arm that is taken.

    Attributes:
        arm: its number.
        bound: the variables of its pattern, and where their values are.
    """

    arm: int
    bound: tuple[tuple[Local, Place], ...]


@dataclass(frozen=True)
class Fails:
    """A leaf: no arm fits."""


@dataclass(frozen=True)
class Test:
    """A test for constructors.

    Attributes:
        place: where.
        constructor: which one.
        then, otherwise: the decisions where it is this one, and where it is another.
    """

    place: Place
    constructor: str
    then: Decision
    otherwise: Decision


Decision: TypeAlias = "Fits | Fails | Test"


@dataclass
class _ArmRow:
    arm: int
    tests: dict[Place, ConstructorPattern] = field(default_factory=dict)
    bound: list[tuple[Local, Place]] = field(default_factory=list)

    def take(self, place: Place, pattern: PatternExpr) -> None:
        """Add that a pattern must fit somewhere."""
        todo = [(place, pattern)]
        for at, p in todo:
            match p:
                case VariablePattern():
                    self.bound.append((p.local, at))
                case TuplePattern():
                    todo.extend(((*at, k), f) for k, f in enumerate(p.fields))
                case ConstructorPattern():
                    self.tests[at] = p
                case WildcardPattern():
                    pass

    def at(self, place: Place, constructor: str) -> _ArmRow | None:
        """What is left where the value in a place is of a constructor; None where the row does not fit."""
        pattern = self.tests.get(place)
        if pattern is None:
            return self
        if pattern.constructor != constructor:
            return None
        row = _ArmRow(self.arm, {p: t for p, t in self.tests.items() if p != place}, list(self.bound))
        for k, f in enumerate(pattern.fields):
            row.take((*place, (constructor, k)), f)
        return row


def decide(match: MatchExpr, module: ModuleTree) -> Decision:
    """The decision tree of a match."""
    rows = []
    for number, arm in enumerate(match.arms):
        row = _ArmRow(number)
        row.take((), arm.pattern)
        rows.append(row)
    return _DecisionTree(module).decision(rows, {})


class _DecisionTree:
    def __init__(self, module: ModuleTree):
        self.module = module

    def decision(self, rows: list[_ArmRow], excluded: dict[Place, frozenset[str]]) -> Decision:
        """The decision among rows.

        Args:
            rows: the arms that may still fit, in order.
            excluded: constructors that values are known not to be of.
        """
        if not rows:
            return Fails()
        first = rows[0]
        if not first.tests:
            return Fits(first.arm, tuple(first.bound))
        votes = Counter(p for row in rows for p in row.tests if p in first.tests)
        place = max(first.tests, key=lambda p: (votes[p], -len(p)))
        constructor = first.tests[place].constructor
        without = excluded.get(place, frozenset()) | {constructor}
        fitting = [r for row in rows if (r := row.at(place, constructor)) is not None]
        then = self.decision(fitting, excluded)
        if without >= {c.name for c in self.module.constructors[constructor][0].constructors}:
            return then  # it is of no other
        others = [row for row in rows if place not in row.tests or row.tests[place].constructor != constructor]
        return Test(place, constructor, then, self.decision(others, {**excluded, place: without}))


def uses(decision: Decision) -> Counter[int]:
    """How many leaves reach each arm."""
    found: Counter[int] = Counter()
    stack = [decision]
    while stack:
        top = stack.pop()
        if isinstance(top, Test):
            stack += [top.then, top.otherwise]
        elif isinstance(top, Fits):
            found[top.arm] += 1
    return found
