"""`vmap` against a loop over the examples, by the interpreter: branches, loops, failures, prints, lists and structures."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import grad, jacfwd, jacrev, relay, vmap
from myia_relay.abstract.types import FLOAT, INT, NONE, Array, tuple_of
from myia_relay.ad.batch.batch import canonical, expanded_flag, full, item, join

V, M = Array("float64", (3,)), Array("float64", (2, 3))


def test_flags():
    assert join(False, False) is False and join(False, True) is True and join(True, True) is True
    assert join((True, False), False) == (True, False) == join(False, (True, False))
    assert join((True, False), (False, False)) == (True, False) and join((True, False), (False, True)) == (True, True)
    assert join((True, False), True) is True and join(True, (False, True)) is True
    assert canonical((False, (False, True))) == (False, (False, True)) and canonical((False, False)) is False
    assert canonical(True) is True and canonical(()) is False
    assert full(FLOAT) is True and full(tuple_of(INT, V)) == (True, True) and full(tuple_of()) is False
    assert full(tuple_of(INT, tuple_of(V))) == (True, (True,))
    assert expanded_flag(True, tuple_of(INT, tuple_of(V))) == (True, (True,)) and expanded_flag(False, M) is False
    assert expanded_flag((True, False), tuple_of(INT, V)) == (True, False) and expanded_flag(True, V) is True
    assert expanded_flag((False, False), tuple_of(INT, V)) is False
    # What is no number has no batch axis.
    assert expanded_flag(True, NONE) is False is full(NONE) and expanded_flag(True, tuple_of(NONE, V)) == (False, True)
    assert item((True, False), 1) is False and item(True, 1) is True


def whole_arrays(x):
    return x * 2.0 if np.sum(x) > 0.0 else -x


def of_a_row(x):
    return x[0] if x[0, 0] > 0.0 else x[1] + 1.0


def nested(x):
    if x[0] > 0.0:
        y = x * 2.0 if x[1] > 0.0 else x - 1.0
    else:
        y = np.zeros(3)
    return y + x


def several(x):
    if x[0] > 0.0:
        a, k, m = x[1], 3, np.ones((2, 2))
    else:
        a, k, m = 0.0, 4, np.zeros((2, 2)) + x[1]
    return a * k, m, k


def turns(x):
    total, k = 0.0, 0
    while total < 2.0 and k < 10:
        total += abs(x[k % 3]) + 0.25
        k += 1
    return total, k


def turns_over_arrays(x):
    y = x
    while np.sum(y) < 5.0:
        y = y + np.abs(x) + 0.5
    return y


def counted(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[2 - i] if x[i] > 0.0 else 0.5
    return y


def same_for_all(x):
    k, y = 0, 1.0
    while k < 3:
        y = y * 2.0
        k += 1
    return y + x[0], y


def early(x):
    for i in range(3):
        if x[i] > 0.25:
            return x[i] * i
    return -1.0


def lists(x):
    ys = [x[0], 2.0]
    for i in range(3):
        ys.append(x[i] * i)
    return sum(ys) + ys[-1]


def lists_in_branches(x):
    ys = [float(x[0]), 2.0]
    if x[1] > 0.0:
        ys.append(float(x[2]))
        ys[0] = 7.0
    else:
        ys = [float(x[1])]
    total = 0.0
    for y in ys:
        total += y
    return total * len(ys)


def pairs(x):
    p = (x[0], (x, 2.0)) if x[1] > 0.0 else (x[2], (x * 2.0, 3.0))
    return p[0] + p[1][1], p[1][0]


def math_of_parts(x):
    return math.sin(x[0]) if x[0] > 0.0 else math.exp(x[1])


ROWS = np.array([[0.5, 0.25, -1.0], [-0.5, 1.5, 0.75], [2.0, -0.25, 0.125], [-1.0, -2.0, -0.75], [0.125, 3.0, 1.0]])
CUBES = np.stack([ROWS[:2], -ROWS[:2], ROWS[1:3]])


def expected(f, xs):
    parts = [f(x) for x in xs]
    if isinstance(parts[0], tuple):
        return tuple(np.stack([np.asarray(p[k]) for p in parts]) for k in range(len(parts[0])))
    return np.stack([np.asarray(p) for p in parts])


def same(got, want):
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b)
        return
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-14)


PROGRAMS = (
    whole_arrays, nested, several, turns, turns_over_arrays, counted, same_for_all, early, lists, lists_in_branches, pairs,
    math_of_parts,
)  # fmt: skip


@pytest.mark.parametrize(
    ("f", "xs"),
    [(whole_arrays, CUBES), (of_a_row, CUBES), *[(f, ROWS) for f in PROGRAMS]],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_batches_are_loops(f, xs):
    compiled = relay(lambda xs: vmap(f)(xs), executor="interpreter")
    same(compiled(xs), expected(f, xs))
    same(compiled(xs[:1]), expected(f, xs[:1]))


def checked(x, limit):
    if not x[0] < limit:
        raise AssertionError(f"{x[0]} at {limit}")
    return x * limit


def raised(x, limit):
    if x[0] > limit:
        raise ValueError(f"{x[1]} over {limit}")
    return x[0]


def always(x, limit):
    if limit > 0.0:
        raise ValueError(f"limit {limit}")
    return x


def of_a_pair(x, limit):
    pair = (x[0], (2.0, x[1])) if x[1] > 0.0 else (x[1], (3.0, x[2]))
    if pair[0] > limit:
        raise ValueError(f"{pair} over {limit}")
    return pair[1][1]


@pytest.mark.parametrize("f", [checked, raised, always, of_a_pair], ids=lambda f: f.__name__)
def test_the_first_failure_is_raised(f):
    compiled = relay(lambda xs, limit: vmap(f, in_axes=(0, None))(xs, limit), executor="interpreter")
    for limit in (10.0, 1.0, 0.25, -5.0):
        try:
            want = np.stack([np.asarray(f(x, limit)) for x in ROWS])
        except (AssertionError, ValueError) as error:
            with pytest.raises(type(error)) as caught:
                compiled(ROWS, limit)
            assert str(caught.value) == str(error)
        else:
            same(compiled(ROWS, limit), want)


def says(x, n):
    print("n", n)
    return x * n


def says_each(x, n):
    print("x", x[0])
    return x * n


@pytest.mark.parametrize("f", [says, says_each], ids=lambda f: f.__name__)
def test_prints(f, capsys):
    compiled = relay(lambda xs, n: vmap(f, in_axes=(0, None))(xs, n), executor="interpreter")
    want = [f(x, 2) for x in ROWS]
    printed = capsys.readouterr().out
    same(compiled(ROWS, 2), np.stack(want))
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev], ids=lambda f: f.__name__)
def test_what_a_jacobian_prints_is_the_same_for_all_directions(jacobian, capsys):
    def f(x, n):
        print("x", x[0], n)
        return x * x * n

    got = relay(jacobian(f), executor="interpreter")(ROWS[0], 3)
    np.testing.assert_allclose(got, np.diag(6 * ROWS[0]))
    assert capsys.readouterr().out == "x 0.5 3\n"


def test_a_list_that_is_the_same_for_all_is_made_once():
    def f(x, n):
        ys = [1.0]
        for _ in range(n):
            ys.append(ys[-1] * 2.0)
        return x * ys[-1] * len(ys)

    compiled = relay(vmap(f, in_axes=(0, None)), executor="interpreter")
    np.testing.assert_array_equal(compiled(ROWS, 3), ROWS * 32.0)
    assert str(compiled.ir(ROWS, 3, stage="optimized")).count("for_loop") == 1


@dataclass(frozen=True)
class Tip:
    value: float


@dataclass(frozen=True)
class Fork:
    left: Tip | Fork
    right: Tip | Fork


def tips(tree: Tip | Fork):
    if isinstance(tree, Tip):
        return tree.value
    return tips(tree.left) + tips(tree.right)


def test_records_that_are_the_same_for_all_are_made_once():
    def f(x, y):
        return x * tips(Fork(Tip(y), Fork(Tip(y * 2.0), Tip(1.0))))

    compiled = relay(vmap(f, in_axes=(0, None)), executor="interpreter")
    same(compiled(ROWS, 0.5), ROWS * 2.5)
    assert "for_loop" not in str(compiled.ir(ROWS, 0.5, stage="optimized"))


def powers(x, n):
    if n == 0:
        return x * x
    return powers(x * 1.5, n - 1) * x


def two_powers(x, y, n):
    return powers(x, n) * powers(y, n)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_a_recursion_saves_the_same_for_what_is_batched_and_for_what_is_not(executor):
    """Both push on tapes of one type."""

    def program(xs, y, n):
        return vmap(grad(two_powers, (0, 1)), in_axes=(0, None, None))(xs, y, n)

    xs, y, n = np.arange(1.0, 4.0), np.float64(2.0), 3
    want = [grad(two_powers, (0, 1))(x, y, n) for x in xs]
    for got, one in zip(relay(program, executor=executor)(xs, y, n), zip(*want, strict=True), strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-13)
