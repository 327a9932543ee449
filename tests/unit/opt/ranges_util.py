"""Holding what range analysis says against what runs do, by the interpreter."""

from __future__ import annotations

import operator

import numpy as np

from myia_relay.backend.interpreter import Machine
from myia_relay.ir.node import Graph
from myia_relay.opt.analysis.intervals import limits
from myia_relay.opt.analysis.ranges import analyse
from myia_relay.opt.rewrite.check_elimination import EliminateChecks

LEAST, MOST = -(2**63), 2**63 - 1
ALL = (LEAST, MOST)
POINTS = [(n,) for n in (*range(-12, 13), 49, 50, 51, 64, 99, 100, 101, 1000, 1001, 2**62, MOST, LEAST, LEAST + 1)]
OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "minimum": min,
    "maximum": max,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
}
"""What primitives of two integers compute, of Python's."""


class Recorder(Machine):
    """The interpreter, which keeps the least and the greatest value that each node had."""

    def __init__(self):
        super().__init__({})
        self.seen = {}

    def step(self, node, inputs):
        step = super().step(node, inputs)

        def recorded(slots):
            value = step(slots)
            if limits(node.type) is not None:
                low, high = self.seen.get(node, (int(value), int(value)))
                self.seen[node] = min(low, int(value)), max(high, int(value))
            else:
                self.seen.setdefault(node, None)
            return value

        return recorded


def values_of(graph: Graph, points) -> dict:
    """Node -> its least and greatest value in some runs; what raises is run up to there."""
    seen = {}
    for point in points:
        machine = Recorder()
        try:
            with np.errstate(all="ignore"):
                machine.call(graph, point)
        except (ArithmeticError, AssertionError, IndexError, ValueError):
            pass
        for node, found in machine.seen.items():
            old = seen.get(node)
            both = found if old is None or found is None else (min(old[0], found[0]), max(old[1], found[1]))
            seen[node] = both
    return seen


def assert_sound(graph: Graph, points):
    """No run leaves the bounds, no node runs that is not reached, and no check fails that cannot."""
    ranges = analyse(graph)
    for node, found in values_of(graph, points).items():
        assert node in ranges.run
        if found is not None:
            low, high = ranges.of[node]
            assert low <= found[0] and found[1] <= high, (node, (low, high), found)
    # A program without what is proven does the same.
    better = EliminateChecks()(graph)
    for point in points:
        assert outcome(better, point) == outcome(graph, point), point
    return ranges


def outcome(graph, point):
    try:
        with np.errstate(all="ignore"):
            return Machine({}).call(graph, point)
    except (ArithmeticError, AssertionError, IndexError, ValueError) as error:
        return type(error), str(error)
