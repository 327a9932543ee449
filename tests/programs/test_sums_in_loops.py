"""Variables that begin as Python numbers and become NumPy scalars in a loop: kinds of results, and how many loops there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import relay
from tests.programs.cases import Cases, agree

case = Cases()

ROWS = np.arange(12.0).reshape(4, 3) / 7
SMALL = ROWS.astype(np.float32)
INTS = np.arange(6).reshape(2, 3)


@dataclass(frozen=True)
class Odd:
    x: float

    def __radd__(self, other):
        return np.float64(self.x * other + 1.0)


@case((ROWS,), (SMALL,), (INTS,), (ROWS[:1],), (ROWS > 0.5,))
def from_zero(x):
    total = 0.0
    for i in range(len(x)):
        total += np.sum(x[i])
    return total


@case((ROWS,), (SMALL,), (INTS,), (INTS.astype(np.int32),))
def from_an_int(x):
    total = 3
    for i in range(len(x)):
        total = np.max(x[i]) + total
    return total


@case((ROWS, 0.1), (SMALL, 0.1), (INTS, 2.5))
def from_an_argument(x, start):
    product, quotient, rest = start, start, start
    for i in range(len(x)):
        product *= np.sum(x[i])
        quotient = np.sum(x[i]) / quotient
        rest -= np.sum(x[i])
    return product, quotient, rest


@case((SMALL, 0), (SMALL, 2), (ROWS, 0), (ROWS, 3))
def of_few_or_no_iterations(x, n):
    total = 0.1
    for i in range(n):
        total += np.sum(x[i])
    return float(total) * 2.0, total * 1.0


@case((SMALL,))
def from_another_dtype(x):
    a, b = np.float32(0.1), 16777217
    for i in range(len(x)):
        a += np.sum(x[i].astype(np.float64))
        b += x[i, 0]
    return a, b


@case((SMALL,), (ROWS,))
def looked_at_in_another_way(x):
    total, seen = 0.1, 0.0
    for i in range(len(x)):
        seen = seen + x[i, 0] * total
        total += x[i, 1]
    return total, seen


@case((SMALL,), (ROWS,))
def doubled(x):
    total, last = 0.1, 0.3
    for i in range(len(x)):
        total = total + last
        last = x[i, 0]
    return total


@case((SMALL,), (ROWS,))
def kind_seen(x):
    total, n = 0.0, 0
    for i in range(len(x)):
        n += isinstance(total, np.floating)
        total += x[i, 0]
    return total, n


@case((3,))
def objects(n):
    total = 1.0
    for _ in range(n):
        total = total + Odd(2.0)
    return total


@case((ROWS,), (SMALL,))
def nested(x):
    total = 0.0
    for i in range(len(x)):
        row = 1
        for j in range(x.shape[1]):
            row *= x[i, j]
        total += row
    return total


@case((SMALL, 0.5), (SMALL, 100.0))
def sometimes(x, limit):
    total = 0.0
    for i in range(len(x)):
        if x[i, 0] < limit:
            total += x[i, 0]
    return total * 1.0


@case((SMALL,))
def grown(x):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i]
    return total


@case.each
@pytest.mark.sampled(4)
def test_as_cpython(function, args, executor):
    agree(function, args, executor)


@pytest.mark.parametrize(("f", "iterations"), [(from_zero, "0, 4"), (looked_at_in_another_way, "1, 4")])
def test_a_sum_is_one_loop_from_its_first_turn(f, iterations):
    assert f"({iterations}, 1, " in str(relay(f).ir(ROWS, stage="inferred"))


def test_the_gradient_of_a_sum_is_the_same_however_it_begins():
    def loss(x, start):
        total = start
        for i in range(len(x)):
            total += np.sum(np.sin(x[i]))
        return total

    want = relay.value_and_grad(loss, ("x", "start"))(ROWS, np.float64(0.5))
    got = relay.value_and_grad(loss, ("x", "start"))(ROWS, 0.5)
    assert got[0] == want[0]
    np.testing.assert_array_equal(got[1][0], np.cos(ROWS))
    np.testing.assert_array_equal(got[1][1], 1.0)
