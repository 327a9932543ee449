"""Counters of loops as formulas of their indices; loops that nobody needs but for what they check."""

import numpy as np
import pytest

from myia_relay import grad, relay, value_and_grad

X = np.linspace(0.3, 1.2, 7)
LOWER = np.linspace(-1.0, 1.0, 21)


def packed(lower, x):
    y = np.zeros(7)
    at = 0
    for j in range(7):
        for i in range(j + 1, 7):
            y[i] += lower[at] * x[j]
            at += 1
    return np.sum(y * y)


def down(lower, x):
    total, at = 0.0, 20
    for j in range(6, -1, -1):
        for _ in range(j):
            total = total + np.sin(lower[at] * x[j])
            at = at - 1
    return total


def steps(lower, x):
    total, at = 0.0, 3
    for j in range(2, 7):
        total = total + lower[at] * x[j] * x[at % 7]
        at = at + (3 if len(x) > 5 else 2)
        at -= 1
    return total + at


def both_ways(lower, x):
    total, up, down_ = 0.0, 0, 6
    for j in range(7):
        total = total + x[up] * x[down_] * lower[up + down_ + j]
        up, down_ = up + 1, down_ - 1
    return total


def squares(lower, x):
    total, at = 0.0, 0
    for j in range(1, 5):
        at += 2 * j - 1
        total = total + lower[at] * x[j]
    return total + at


def early(lower, x):
    total, at = 0.0, 0
    for j in range(7):
        if x[j] > 1.0:
            break
        for _ in range(3):
            total = total + lower[at] * x[j]
            at += 1
    return total * at


FUNCTIONS = [packed, down, steps, both_ways, squares, early]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients(f):
    want = relay(value_and_grad(f, (0, 1)), executor="interpreter")(LOWER, X)
    got = relay(value_and_grad(f, (0, 1)))(LOWER, X)
    assert abs(float(got[0]) - float(f(LOWER, X))) < 1e-12
    for a, b in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
    step = 1e-6
    for k, array in enumerate((LOWER, X)):
        for i in range(len(array)):
            moved = [LOWER.copy(), X.copy()], [LOWER.copy(), X.copy()]
            moved[0][k][i] += step
            moved[1][k][i] -= step
            numeric = (f(*moved[0]) - f(*moved[1])) / (2 * step)
            assert abs(got[1][k][i] - numeric) < 1e-7


@pytest.mark.parametrize("f", [packed, down, both_ways, squares], ids=lambda f: f.__name__)
def test_no_position_is_kept(f):
    text = str(relay(grad(f, (0, 1))).ir(LOWER, X))
    assert "tape<int>" not in text


def test_what_a_counter_overflows_still_raises():
    def f(x, n):
        at, total = 9223372036854775800, 0.0
        for i in range(n):
            total = total + x[i % 7] * x[0]
            at = at + 1
        return total

    with pytest.raises(OverflowError):
        grad(f)(X, 9)
    assert grad(f)(X, 7).shape == (7,)


def test_index_out_of_range_still_raises():
    def f(lower, x):
        total, at = 0.0, 0
        for j in range(7):
            for _ in range(j, 7):
                total = total + lower[at] * x[j]
                at += 1
        return total

    with pytest.raises(IndexError, match="index 21 is out of bounds for axis 0 with size 21"):
        grad(f)(LOWER, X)


# --- in programs that nobody differentiates -----------------------------------------------------------------------------


def counters(k):
    a, b, c = k, 0, 100
    seen = 0
    for i in range(2, 40, 3):
        a += i
        b += 3 * i - k
        c -= 7
        seen = seen * 3 % 1000 + a + b * c
    return a, b, c, seen


def nested(k):
    at, seen = k, 0
    for i in range(9):
        for j in range(i, 9):
            seen += at * j
            at += 2
        at -= i
    return at, seen


def empty(k):
    at = k
    for i in range(5, 5):
        at += i
    for i in range(3, 0):
        at += i + 1
    for _ in range(k):
        at -= 1
    return at


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
@pytest.mark.parametrize("f", [counters, nested, empty], ids=lambda f: f.__name__)
def test_counters_are_those_of_python(f, executor):
    compiled = relay(f, executor=executor)
    for k in (-3, 0, 1, 8):
        assert compiled(k) == f(k)


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_a_counter_overflows_in_its_turn(executor, capfd):
    @relay(executor=executor)
    def f(at):
        for i in range(3, 9):
            at += i * 1152921504606846976
            print("added", i)
        return at

    with pytest.raises(OverflowError):
        f(0)
    assert capfd.readouterr().out == "added 3\nadded 4\n"


def test_so_many_turns_that_their_product_wraps():
    def f(n):
        at = n
        for i in range(4_000_000_000):
            at = at + i
        return at

    def g(n):
        at = n
        for i in range(2_000_000_000):
            at = at + i
        return at

    assert "carried=1" in str(relay(f).ir(0))
    assert "carried=1" not in str(relay(g).ir(0))
    assert relay(g)(5) == 5 + 1_999_999_999 * 1_000_000_000
