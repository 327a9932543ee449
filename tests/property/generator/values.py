"""Arguments for random programs: ordinary values most of the time, and the edges of each type."""

from __future__ import annotations

import math

import numpy as np

from myia_relay import random

from .records import CLASSES, FIELDS, Absent, Choice, End, Leaf, Link, Node, Number, Scaled, Sum
from .types import CHAIN, CODES, KEY, TERM, TREE, Arr, Dic, Lst, Rec, Tup, Uni, numpy_dtype

INF, NAN = math.inf, math.nan
TAME = {
    "int": [0, 1, 2, 3, 4, 5, 7, 10, -1, -2, -3, 100],
    "float": [0.0, 1.0, 0.5, -1.5, 2.5, 0.1, 3.0, -3.0, 7.25],
    "bool": [True, False],
}
WILD = {
    "int": [2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 3037000500, 10**18, -7, 255, 64, 63],
    "float": [
        -0.0,
        INF,
        -INF,
        NAN,
        5e-324,
        1e-310,
        1.7976931348623157e308,
        1e300,
        -1e16,
        2.0**53,
        2.0**63,
        -(2.0**63),
        0.5,
        1.5,
        2.5,
    ],
    "bool": [True, False],
}
ELEMENTS = {
    "f": (
        [0.5, -1.25, 3.0, 0.0, 2.0, -0.75, 1.0, 10.0, 0.1],
        [-0.0, NAN, INF, -INF, 1e30, -1e-40, 1e200, 5e-324, 2.5, 0.0],
    ),
    "i": ([0, 1, 2, 3, -1, -2, 5, 7, 100], [2**31 - 1, -(2**31), 0, -1, 2**20, 46341]),
    "u": ([0, 1, 2, 3, 7, 100], [255, 128, 254, 0]),
    "b": ([True, False], [True, False]),
}
HUGE = [2**63 - 1, -(2**63), 2**62, 2**53 + 1, 3037000500]


class Values:
    """Draws values: `draw(n)` gives a number in range(n); `wildness` is the percentage of values from the edges."""

    def __init__(self, draw, wildness: int):
        self.draw, self.wildness = draw, wildness

    def wild(self) -> bool:
        """Whether the next value comes from the edges."""
        return self.draw(100) < self.wildness

    def pick(self, options):
        """One of a sequence."""
        return options[self.draw(len(options))]

    def value(self, t):
        """A value of a type."""
        if t in TAME:
            return self.pick((WILD if self.wild() else TAME)[t])
        if t == "str":
            return self.pick(("left", "right", "none of them"))
        if t == KEY:
            return random.key(self.draw(1000))
        if t in CODES:
            return numpy_dtype(t).type(self.element(t))
        if isinstance(t, Arr):
            return self.array(t)
        if isinstance(t, Tup):
            return tuple(self.value(e) for e in t.elems)
        if isinstance(t, Dic):
            return {k: self.value(e) for k, e in t.items}
        if isinstance(t, Uni):
            return self.value(self.pick(t.options))
        if isinstance(t, Lst):
            return [self.value(t.elem) for _ in range(1 + self.draw(6))]
        if t == TREE:
            return self.tree(3)
        if t == TERM:
            return self.term(3)
        if t == CHAIN:
            chain = End()
            for _ in range(self.draw(6)):
                chain = Link(self.value("int"), chain)
            return chain
        if isinstance(t, Rec):
            return CLASSES[t.name](*(self.value(e) for _, e in FIELDS[t.name]))
        raise AssertionError(t)

    def tree(self, depth: int):
        """A tree of at most a depth."""
        if depth == 0 or self.draw(3) == 0:
            return Leaf(self.value("float"))
        return Node(self.tree(depth - 1), self.tree(depth - 1), self.value("int"))

    def term(self, depth: int):
        """A term of at most a depth."""
        kind = self.draw(7) if depth else 0
        if kind == 1:
            return Absent()
        if kind in (2, 3):
            return Sum(self.term(depth - 1), self.term(depth - 1))
        if kind == 4:
            return Scaled(self.value("float"), self.term(depth - 1))
        if kind == 5:
            return Choice(self.value("bool"), self.term(depth - 1), self.term(depth - 1))
        return Number(self.value("float"))

    def element(self, code: str):
        """A number for a NumPy scalar or an element."""
        if code == "i8" and self.draw(100) < self.wildness // 2:
            return self.pick(HUGE)
        x = self.pick(ELEMENTS[numpy_dtype(code).kind][self.wild()])
        return float(np.float32(x)) if code == "f4" else x

    def array(self, t: Arr) -> np.ndarray:
        """An array, now and then strided, reversed, in Fortran order, big-endian or read-only."""
        size = math.prod(t.shape)
        x = np.array([self.element(t.dtype) for _ in range(size)], numpy_dtype(t.dtype)).reshape(t.shape)
        form = self.draw(12)
        if form == 0 and t.shape:
            wide = np.zeros((*t.shape[:-1], 2 * t.shape[-1]), x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2]
        if form == 1 and t.shape:
            return np.ascontiguousarray(x[::-1])[::-1]
        if form == 2:
            return np.asfortranarray(x)
        if form == 3:
            x.flags.writeable = False
        if form == 4:
            return x.astype(x.dtype.newbyteorder(">"))
        if form == 5:
            room = np.zeros(x.nbytes + 1, np.uint8)[1:]
            odd = room.view(x.dtype).reshape(x.shape) if x.size else x
            odd[...] = x
            return odd
        return x
