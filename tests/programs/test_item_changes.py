"""Changes of items: by masks, by integer arrays, in place; and of dicts."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay, vmap
from tests.programs.cases import EXECUTORS, Cases, agree
from tests.programs.compare import differences

case = Cases()
A = np.arange(24.0).reshape(2, 3, 4)


@case((np.array([1.0, -2.0, 3.0]), 2.0))
def masked(a, v):
    b = a.copy()
    b[b < 0] += v
    b[b > 2] = v
    return b


@case((np.array([1.0, -2.0, 3.0]), np.array([True, False, True])))
def masked2(a, m):
    b = a.copy()
    b[m] *= 3.0
    b[~m] = 0
    return b


@case((np.ones((2, 3)), np.array([True, False])))
def masked_rows(a, m):
    b = a.copy()
    b[m] = np.array([1.0, 2.0, 3.0])
    return b


@case((np.ones((2, 3)), np.array([True, False])))
def masked_rows2(a, m):
    b = a.copy()
    b[m, 1] = 7.0
    return b


@case((np.zeros(4), np.array([0, 1, 1, 3])))
def fancy(a, idx):
    b = a.copy()
    b[idx] += 1.0
    return b


@case((np.zeros(4), np.array([0, 1, 1, 3]), np.array([1.0, 2, 3, 4])))
def fancy2(a, idx, v):
    b = a.copy()
    b[idx] = v
    b[idx] += v
    b[idx] *= v
    return b


@case((np.zeros((3, 4)), np.array([0, 1, 1]), np.array([2, 3, 3]), np.array([1.0, 2, 3])))
def fancy3(a, i, j, v):
    b = a.copy()
    b[i, j] += v
    b[i] -= 1.0
    return b


@case((A, A > 5), (A, A > 100))
def m1(a, m):
    b = a.copy()
    b[m] = 0.0
    b[~m] *= 2
    return b


@case((A, np.array([True, False])))
def m2(a, m):
    b = a.copy()
    b[m] += np.arange(4.0)
    b[m, 1] = 3
    b[m, :, 2] -= 1
    b[m, 0, 0] = 9
    return b


@case((A, np.array([True, False, True])))
def m3(a, m):
    b = a.copy()
    b[:, m] = 7
    b[..., m, :] += 1
    b[0, m] *= 2
    b[1, m, 3] = -1
    return b


@case((A, np.array([True, False, True, False])))
def m4(a, m):
    b = a.copy()
    b[..., m] = 7
    b[:, 1:, m] += 1
    return b


@case((A, np.array([[True, False, True], [False, False, True]])))
def m5(a, m):
    b = a.copy()
    b[m] = np.arange(4.0)
    b[m] /= 2
    b[m, 1] = 0
    return b


@case((np.arange(5),))
def m6(a):
    b = a.copy()
    b[b > 2] = 1.7
    b[b == 1] += 3
    b[b % 2 == 0] //= 2
    return b


@case((np.arange(5.0),))
def m10(a):
    for _ in range(3):
        b = a * 1.0
        b[b > 1] += 1.0
        a = b
    return a


@case((A, np.array([1, 0, 1]), np.array([2, 2, 2]), np.array([0, 3, 0])))
def f1(a, i, j, k):
    b = a.copy()
    b[i, j, k] = np.array([1.0, 2.0, 3.0])
    b[i, j] += 1
    b[i, :, k] = np.arange(9.0).reshape(3, 3)
    b[:, j, k] *= 2
    b[0, j] = 5
    b[0, :, k] -= 1
    b[:, j, 1] = 8
    return b


@case((np.zeros((3, 4)), np.array([[0, 1], [2, 2]]), np.array([1, 3])))
def f2(a, i, j):
    b = a.copy()
    b[i, j] = np.array([[1.0, 2.0], [3.0, 4.0]])
    b[i] += 0.5
    b[:, i] += 100.0
    return b


@case((np.zeros(3), np.array([0, 3])), (np.zeros(3), np.array([0, -4])), (np.zeros(3), np.array([-1, -3])))
def f3(a, i):
    b = a.copy()
    b[i] = 1.0
    return b


@case((np.zeros(3), np.array([], dtype=int)))
def f4(a, i):
    b = a.copy()
    b[i] = 1.0
    b[i] += 2.0
    return b


@case((np.zeros(3),))
def f5(a):
    b = a.copy()
    b[[0, 2]] = 1.0
    b[[1, 1]] += 2.0
    return b


@case((np.zeros((3, 4), np.int32), np.array([0, 2]), np.arange(4.0) + 0.7))
def f7(a, i, v):
    b = a.copy()
    b[i] = v
    return b


@case((np.zeros(10), 4), (np.zeros(10), 0))
def f8(a, n):
    b = a.copy()
    for k in range(n):
        b[np.array([0, 1]) + k] += k
        b[b > 3] = -1.0
    return b


@case((np.zeros((3, 4)), np.array([0, 2]), np.array([0, 2, 3])))
def f9(a, i, j):
    b = a.copy()
    b[1:, j] += 1
    b[i, 1:3] = 3
    return b


@case((np.zeros(4), np.array([0, 1, 1]), np.array([1.0, 2, 3])))
def at_ops(a, i, v):
    b = a.copy()
    b[i] -= v
    b[i] **= 2.0
    b[-1] = 3
    return b


@case((np.arange(5),))
def a3(a):
    b = a.copy()
    b[1] += 1.5
    return b


@case((np.arange(5, dtype=np.float32),))
def a4(a):
    b = a.copy()
    b[1:3] += np.float64(1.5)
    b += np.ones(5)
    return b


@case((np.arange(5),))
def b3(a):
    b = a.copy()
    b <<= 1
    b &= 6
    b ^= 1
    b //= 2
    b %= 3
    b **= 2
    return b


@case((3,))
def b5(n):
    d = {"a": 1}
    d |= {"b": n}
    return d


@case((3.0,))
def b7(n):
    a = np.array(n)
    a += 1
    return a


@case((np.float32(3.0),))
def b8(n):
    n += 1.5
    n += np.float64(1)
    return n


@case((np.arange(3.0),))
def b9(n):
    a = n * 1
    a /= 2
    a @= np.eye(3)
    return a


@case((np.arange(3, dtype=np.int8),))
def b10(n):
    a = n * 1
    a += np.arange(3) * 100
    a -= 2
    return a


@case((3,))
def d1(n):
    d = {"a": 1, "b": 2.0}
    e = d | {"b": n, "c": 4}
    f = {**d, "z": 1, **e, "a": n}
    return d, e, f, {**e}


@case((3,))
def d2(n):
    d = {"a": 1}
    if n > 2:
        d |= {"b": 1}
    else:
        d["b"] = 5
    return d


@case((3,))
def d3(n):
    return [{k: n, f"{k}2": 1} for k in ("x", "y")]


@case(({"a": 1.0},))
def d6(d):
    return {**d, "b": 2.0}


@case.each
@pytest.mark.sampled(7)
def test_as_python(function, args, executor):
    agree(function, args, executor)


def grows(x):
    x = x.copy()
    x[:1] += np.ones(3)
    return x


def grows_by_an_axis(x):
    x = x.copy()
    x += np.ones((1, 3))
    return x


def loses_its_kind(x):
    n = x.astype(np.int64)
    n[n > 0] += 1.5
    return n


def mask_of_another_size(x):
    x = x.copy()
    x[np.array([True, False])] = 0
    return x


def seen_elsewhere(x):
    m = x > 1
    n = m if x[0] > 0 else x < 1
    n |= x < 0
    return m, n


def dict_seen_elsewhere(x):
    d = {"a": x}
    e = d if x[0] > 0 else {"a": x + 1}
    e |= {"b": x}
    return d


REFUSED = [
    (grows, "shape (1,)", "x = x + y"),
    (grows_by_an_axis, "shape (3,)", "x = x + y"),
    (loses_its_kind, "float64 does not fit into int64", "x = x + y"),
    (mask_of_another_size, "shape (2,)", "shape (3,)"),
    (seen_elsewhere, "'m' may be, or hold, the same object as 'n'", "write x ="),
    (dict_seen_elsewhere, "'d' may be, or hold, the same object as 'e'", "makes a new dict"),
]


@pytest.mark.parametrize(("function", "wrong", "advice"), REFUSED, ids=[f.__name__ for f, _, _ in REFUSED])
def test_refused(function, wrong, advice):
    with pytest.raises(CompileError) as caught:
        relay(executor="interpreter")(function)(np.arange(3.0))
    assert wrong in caught.value.message and advice in caught.value.message, caught.value


def through_masks_and_positions(x):
    y = x * 1.0
    y[x > 1] *= x[0] + 2.0
    y[np.array([0, 2, 2])] = x**2
    return np.sum(y * np.arange(1.0, 4.0))


def test_gradient():
    # y = (x0^2, m x1, x2^2), with m = 1 where x1 <= 1
    x = np.array([0.5, 2.0, 3.0])
    want = [1.0 + 2 * 2.0, 2 * 2.5, 3 * 6.0]
    for executor in ("interpreter", "python", "native"):
        got = grad(relay(executor=executor)(through_masks_and_positions))(x)
        np.testing.assert_allclose(got, want, rtol=1e-12)


def methods_in_place(m, n):
    x, y = m[0].copy(), np.zeros(3)
    x.sort()
    y.fill(n)
    y[1:].fill(2.5)
    i = np.arange(3)
    i.fill(2.7)
    np.put(x, [0, -1], [7.0, n])
    np.place(y, y > 1, [9.0, 8.0])
    np.putmask(i, i < 5, i * n)
    z = x.copy()
    z.partition(1)
    m.sort(axis=0)
    m[1, :2].sort()
    m[0].fill(n)
    for row in m:
        row.sort()
    return x, y, i, z[1], m.sort()


def filled(v, c):
    v.fill(c)


def of_helpers_and_entries(m, n):
    rows = {"a": m[0] * 2, "b": np.ones(2)}
    rows["a"].sort()
    rows["b"].fill(n)
    filled(m, 4.0)
    filled(m[1], n)
    u = m
    u.sort()
    return rows, u


def changed_before_a_raise(m, n):
    m.sort()
    m[0].fill(n)
    raise ValueError("changed")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", [methods_in_place, of_helpers_and_entries, changed_before_a_raise])
@pytest.mark.sampled(3)
def test_methods_that_change_arrays(function, executor):
    """The result, and what the caller's array holds afterwards, also where the call raises."""
    seen = []
    for run in (function, relay(function, executor=executor)):
        m = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
        try:
            result = run(m, 6)
        except ValueError as error:
            result = str(error)
        seen.append((result, m))
    assert not differences(seen[1], seen[0])


def test_derivatives_of_methods_that_change_arrays():
    def f(x):
        y = x * x
        y.sort()
        y[:1].fill(x[2])
        return np.sum(y * np.array([1.0, 2.0, 3.0]))

    x = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(grad(f)(x), [18.0, 0.0, 9.0])
    np.testing.assert_array_equal(vmap(f)(np.stack([x, -x])), [f(x), f(-x)])
