"""The record classes that random programs use; a module of its own, so that their methods have source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .types import Rec


class Pair(NamedTuple):
    """Two floats."""

    left: float
    right: float

    def swapped(self):
        """The other way round."""
        return Pair(self.right, self.left)


@dataclass(frozen=True)
class Point:
    """A point of the plane with operators."""

    x: float
    y: float

    def norm2(self):
        """The square of its distance from the origin."""
        return self.x * self.x + self.y * self.y

    @property
    def total(self):
        """The sum of its coordinates."""
        return self.x + self.y

    def moved(self, dx, dy=1.0):
        """Another point."""
        return Point(self.x + dx, self.y - dy)

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Point(self.x * k, self.y * k)

    def __neg__(self):
        return Point(-self.x, -self.y)


@dataclass(frozen=True)
class Box:
    """Two points and a count that has a default."""

    low: Point
    high: Point
    count: int = 3

    def contains(self, p):
        """Whether a point lies in it."""
        return self.low.x <= p.x <= self.high.x and self.low.y <= p.y < self.high.y

    def grown(self, n):
        """With a larger count."""
        return Box(self.low, self.high + Point(1.0, 2.0), self.count + n)


@dataclass(frozen=True)
class Grade:
    """Numbers of several kinds, with defaults, properties that use each other, and methods that call each other."""

    points: int
    weight: float = 0.5
    passed: bool = False

    @property
    def score(self):
        """Points by weight."""
        return self.points * self.weight

    @property
    def best(self):
        """The score of a grade that is passed."""
        return self.score + 1.0 if self.passed else self.score

    def plus(self, *more, scale=1):
        """With more points; small ones, so that no int leaves 64 bits unseen."""
        total = self.points % 1000
        for m in more:
            total += m % 100 * scale
        return Grade(total, self.weight, passed=total > 3)

    def better(self, other):
        """Whether it is better than another."""
        return self.best > other.best

    def chosen(self, other):
        """The better one of two."""
        return self if self.better(other) else other

    def __lt__(self, other):
        return self.points < other.points

    def __getitem__(self, k):
        return self.points if k == 0 else k

    def __len__(self):
        return 2


class Span(NamedTuple):
    """A range of integers; the class has a default and a static method."""

    start: int
    stop: int = 5

    @property
    def length(self):
        """How many there are."""
        return max(self.stop % 1000 - self.start % 1000, 0)

    @staticmethod
    def of(a, b):
        """The span between two."""
        return Span(min(a, b), max(a, b))

    def within(self, k):
        """An integer brought into the span."""
        if k < self.start:
            return self.start
        return k if k < self.stop else self.stop


@dataclass(frozen=True)
class Leaf:
    """A tree without branches."""

    value: float


@dataclass(frozen=True)
class Node:
    """A tree with two branches and a count."""

    left: Tree
    right: Tree
    count: int


Tree = Leaf | Node


@dataclass(frozen=True)
class Number:
    """A term that is a number."""

    value: float


@dataclass(frozen=True)
class Sum:
    """Two terms added."""

    left: Term
    right: Term


@dataclass(frozen=True)
class Scaled:
    """A term times a number."""

    by: float
    term: Term


@dataclass(frozen=True)
class Choice:
    """One of two terms."""

    which: bool
    first: Term
    second: Term


@dataclass(frozen=True)
class Absent:
    """No term."""


Term = Number | Sum | Scaled | Choice | Absent


@dataclass(frozen=True)
class End:
    """The end of a chain."""


@dataclass(frozen=True)
class Link:
    """A chain of integers."""

    head: int
    tail: Chain

    def second(self, other):
        """The number after the first."""
        match self.tail:
            case Link(h):
                return h
        return other


Chain = Link | End
CLASSES = {
    c.__name__: c for c in (Pair, Point, Box, Grade, Span, Leaf, Node, Number, Sum, Scaled, Choice, Absent, End, Link)
} | {"Tree": Tree, "Term": Term, "Chain": Chain}
FIELDS = {
    "Pair": (("left", "float"), ("right", "float")),
    "Point": (("x", "float"), ("y", "float")),
    "Box": (("low", Rec("Point")), ("high", Rec("Point")), ("count", "int")),
    "Grade": (("points", "int"), ("weight", "float"), ("passed", "bool")),
    "Span": (("start", "int"), ("stop", "int")),
}
