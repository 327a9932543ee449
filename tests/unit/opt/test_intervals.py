"""Intervals by brute force: of each operation, on all small intervals, the very hull of what it makes of their elements."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

from myia_relay.abstract.types import BOOL, FLOAT, INT, INTS, Array, Scalar, tuple_of
from myia_relay.opt.analysis import intervals
from tests.unit.opt.ranges_util import OPERATIONS

ENDS = range(-4, 5)
SMALL = [(low, high) for low in ENDS for high in ENDS if low <= high]
TRUTH = [intervals.FALSE, intervals.TRUE, intervals.EITHER]


def elements(x):
    return range(x[0], x[1] + 1)


def hull(values):
    """The least interval around some numbers; None for none."""
    values = list(values)
    return (min(values), max(values)) if values else None


ONE = {
    "neg": operator.neg,
    "abs": abs,
    "bitwise_not": operator.invert,
    "as_scalar": int,
    "as_array": int,
    "reshape": int,
    "stop_gradient": int,
}
SHIFTS = ("left_shift", "right_shift")
LOGIC = {"logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor}
OVERFLOWS = {"add_overflows": operator.add, "sub_overflows": operator.sub, "mul_overflows": operator.mul}
LOOSE = {"mod": (588, 0), "bitwise_and": (356, 900), "bitwise_or": (136, 1800), "bitwise_xor": (326, 1800)}
"""Operations whose bounds are not always met: by how much all bounds together are too wide, and how often there are none."""
TWO = {name: f for name, f in OPERATIONS.items() if name not in (*SHIFTS, *LOOSE)}


@pytest.mark.parametrize("name", ONE)
def test_of_one_operand(name):
    for x in SMALL:
        assert intervals.TRANSFER[name](x) == hull(map(ONE[name], elements(x))), x


@pytest.mark.parametrize("name", TWO)
def test_of_two_operands(name):
    for x, y in itertools.product(SMALL, SMALL):
        want = hull(TWO[name](a, b) for a in elements(x) for b in elements(y))
        assert intervals.TRANSFER[name](x, y) == want, (x, y)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(name):
    for x, y in itertools.product(SMALL, SMALL):
        want = hull(OPERATIONS[name](a, b) for a in elements(x) for b in elements(y)) if y[0] >= 0 else None
        assert intervals.TRANSFER[name](x, y) == want, (x, y)
    for x, most in itertools.product(((-5, 9), (2**62, 2**63 - 1), (-(2**63), -1)), (62, 63, 64, 65)):
        want = hull(OPERATIONS[name](a, b) for a in x for b in (0, most))
        assert intervals.TRANSFER[name](x, (0, most)) == (want if name == "right_shift" or most <= 64 else None)


@pytest.mark.parametrize("name", LOGIC)
def test_logic(name):
    for x, y in itertools.product(TRUTH, TRUTH):
        assert intervals.TRANSFER[name](x, y) == hull(LOGIC[name](a, b) for a in elements(x) for b in elements(y))
    assert [intervals.TRANSFER["logical_not"](x) for x in TRUTH] == [(1, 1), (0, 0), (0, 1)]


def test_where():
    for c, x, y in itertools.product(TRUTH, SMALL[::3], SMALL[::4]):
        want = hull(a if taken else b for taken in elements(c) for a in elements(x) for b in elements(y))
        assert intervals.where(c, x, y) == want


@pytest.mark.parametrize("name", LOOSE)
def test_of_operations_whose_bounds_are_not_always_met(name):
    f, want = OPERATIONS[name], LOOSE[name]
    excess = unknown = 0
    for x, y in itertools.product(SMALL, SMALL):
        low, high = hull(f(a, b) for a in elements(x) for b in elements(y))
        found = intervals.TRANSFER[name](x, y)
        if found is None:
            unknown += 1
            assert min(x[0], y[0]) < 0
        else:
            assert found[0] <= low and high <= found[1], (x, y)
            excess += low - found[0] + found[1] - high
    assert (excess, unknown) == want


LEAST, MOST = -(2**63), 2**63 - 1
FAR = (LEAST, LEAST + 1, -(2**32), -2, -1, 0, 1, 2, 2**31, MOST - 1, MOST)
FARS = [(low, high) for low in FAR for high in FAR if low <= high]


@pytest.mark.parametrize("name", OVERFLOWS)
def test_overflows(name):
    for x, y in itertools.product(FARS, FARS):
        low, high = hull(OVERFLOWS[name](a, b) for a in x for b in y)
        want = (int(high < LEAST or low > MOST), int(low < LEAST or high > MOST))
        assert intervals.TRANSFER[name](x, y) == want, (x, y)


def test_every_operation_is_looked_at():
    assert set(intervals.TRANSFER) == {*ONE, *TWO, *SHIFTS, *LOGIC, *LOOSE, *OVERFLOWS, "where", "logical_not"}


# --- what conditions leave ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lt", "le", "eq", "ne"])
def test_what_a_comparison_leaves(name):
    for x, y in itertools.product(SMALL, SMALL):
        pairs = [(a, b) for a in elements(x) for b in elements(y) if TWO[name](a, b)]
        assert intervals.compared(name, x, y) == (hull(a for a, _ in pairs), hull(b for _, b in pairs)), (x, y)


WHOLE = (-7, 6)


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_what_is_left_of_operands_where_nothing_overflows(name):
    f, all_ = TWO[name], range(-16, 17)
    for x, y in itertools.product(SMALL, SMALL):
        left, right = intervals.operands_of(f"{name}_overflows", x, y, WHOLE)
        a = hull(a for a in all_ if any(WHOLE[0] <= f(a, b) <= WHOLE[1] for b in elements(y)))
        b = hull(b for b in all_ if any(WHOLE[0] <= f(a, b) <= WHOLE[1] for a in elements(x)))
        # A factor that may be 0 says nothing of the other one.
        assert left == (None if name == "mul" and 0 in elements(y) else a), (x, y)
        assert right == (None if name == "mul" and 0 in elements(x) else b), (x, y)


# --- sets -----------------------------------------------------------------------------------------------------------------


def test_intervals_are_sets():
    for x, y in itertools.product(SMALL, SMALL):
        a, b = set(elements(x)), set(elements(y))
        assert intervals.join(x, y) == hull(a | b) and intervals.meet(x, y) == hull(a & b)
        assert intervals.within(x, y) == (a <= b)
    assert [intervals.truth(*both) for both in ((True, False), (False, True), (False, False))] == TRUTH[1::-1] + [
        (0, 1)
    ]


@pytest.mark.parametrize("dtype", INTS)
def test_the_bounds_of_a_dtype(dtype):
    info = np.iinfo(dtype)
    whole = (int(info.min), int(info.max))
    assert intervals.limits(Scalar(dtype)) == whole == intervals.limits(Array(dtype, ()))
    assert intervals.limits(Array(dtype, (1,))) is None
    for low, high in ((0, 0), (-1, 1), (1, 1)):
        x = (whole[0] + low, whole[1] + high)
        assert intervals.clip(x, Scalar(dtype)) == (whole if low < 0 or high > 0 else x)


def test_types_that_are_not_integers():
    assert (
        intervals.limits(BOOL) == (0, 1) and intervals.limits(FLOAT) is None and intervals.limits(tuple_of(INT)) is None
    )
    assert intervals.clip((0, 2**70), FLOAT) == (0, 2**70)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (3, (3, 3)), (-3, (-3, -3)), (True, (1, 1)), (False, (0, 0)), (np.int8(-5), (-5, -5)), (np.bool_(True), (1, 1)),
        (np.array(7), (7, 7)), (np.array(False), (0, 0)), (np.uint64(2**64 - 1), (2**64 - 1, 2**64 - 1)),
        (2.0, None), (np.float64(2.0), None), (np.array(2.0), None), (np.array([7]), None), (None, None), ("a", None),
    ],
)  # fmt: skip
def test_the_interval_of_a_constant(value, want):
    found = intervals.of_value(value)
    assert found == want and (found is None or [type(v) for v in found] == [int, int])
