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
CLASSES = {c.__name__: c for c in (Pair, Point, Box, Leaf, Node)} | {"Tree": Tree}
FIELDS = {
    "Pair": (("left", "float"), ("right", "float")),
    "Point": (("x", "float"), ("y", "float")),
    "Box": (("low", Rec("Point")), ("high", Rec("Point")), ("count", "int")),
}
