"""Annotations with Python's own number types: what PEP 484 accepts is accepted, and stays the number that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import numpy as np
import pytest

from myia_relay import Float, TypeError_, grad, relay


@dataclass(frozen=True)
class Point:
    x: float
    y: float


def same(x: float):
    return x


def half(x: float, y: float = 2):
    return x / y


def floored(a: float, b: float) -> float:
    return a // b


def passed_on(n):
    return floored(n, 2), floored(n * 0.5, 2)


def optional(x: Optional[float]):  # noqa: UP045
    return 0 if x is None else x + 1


def either(x: float | None, y: int | None = None):
    return x if y is None else y


def kind(x: float):
    return isinstance(x, int), x == 1


def result(x: float) -> float:
    return 1 if x > 0 else x


def variable(n: int):
    y: float = n
    return y


def counted(n: int):
    return n + 1


def record(x):
    p = Point(x, 3)
    return p.x * p.y, p.y


def total(xs: list[float], start: float = 0) -> float:
    for x in xs:
        start += x
    return start


def recursive(x: float, n: int) -> float:
    return x if n == 0 else recursive(x * 2, n - 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("function", "args"),
    [
        *((same, (x,)) for x in (3, True, 2**53 + 1, 3.0, -0.0, np.float64(2.5))),
        *((half, args) for args in ((3,), (7.0, 2), (True, 4))),
        (passed_on, (7,)),
        *((optional, (x,)) for x in (3, 2.5, None)),
        *((either, args) for args in ((3,), (None, True), (1.0, 2))),
        *((kind, (x,)) for x in (1, 1.0, True)),
        *((result, (x,)) for x in (2.0, -1.0, 2, -1)),
        (variable, (4,)),
        *((counted, (x,)) for x in (True, 2)),
        (record, (2,)),
        *((total, args) for args in (([1, 2, 3],), ([0.5, 1.5],), ([0.5], 1))),
        *((recursive, args) for args in ((3, 4), (0.5, 4))),
    ],
)
def test_what_is_accepted_stays_what_it_is(function, args, executor):
    got, want = relay(executor=executor)(function)(*args), function(*args)
    assert repr(got) == repr(want)


def exactly(x: Float):
    return x


@pytest.mark.parametrize(
    ("function", "value"),
    [(same, "a"), (same, np.int64(3)), (same, np.ones(2)), (counted, 1.5), (counted, np.float32(1)), (exactly, 3)],
)
def test_what_is_not(function, value):
    with pytest.raises(TypeError_, match="is annotated"):
        relay(function)(value)


def test_derivatives_are_by_floats():
    def f(x: float, y: float):
        return x * y

    assert relay(grad(f, "y"))(3, 2.0) == 3.0
    with pytest.raises(TypeError, match=r"by 'x', which is int; pass a float"):
        relay(grad(f, "x"))(3, 2.0)
