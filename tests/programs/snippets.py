"""What tests of snippets of plain Python share: the classes that snippets name, and what a call did."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class P(NamedTuple):
    a: int
    b: float


@dataclass(frozen=True)
class Q:
    a: int
    b: float = 0.5

    def total(self):
        return self.a + self.b

    @property
    def double(self):
        return self.a * 2

    def __add__(self, o):
        return Q(self.a + o.a, self.b * o.b)


ARGS = ([1.0, 2.5, 0.5], (1, 2.5, "a"), "abc", {"a": 1.0, "b": 2.0}, 3, 2.5)
"""What programs of `l, t, s, d, n, x` are given."""


def outcome(function: Callable, args: tuple) -> tuple[object, str]:
    """The value of a call on copies of the arguments, or what it raised, and what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            value = function(*copy.deepcopy(args))
        except Exception as error:
            value = error
    return value, printed.getvalue()
