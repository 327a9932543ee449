"""What NumPy does with operands that are no arrays, and small differences of results: classes, dtypes, arrays without axes."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay, vmap
from tests.programs.cases import EXECUTORS, Cases, agree

case = Cases()
X, I = np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3])
M = np.arange(4.0).reshape(2, 2)


@case((X,), (I,))
def lists_and_tuples(x):
    return x == [1.0, 2, 4], x != (1, 2, 3), [1, 2, 3] == x, (0, 2, 0) != x, (x == [1, 2, 3]).all(), x[0] == [1.0, 5.0]


@case((X, 1.0), (I, 2))
def computed_entries(x, n):
    return x == [n, 2.0, x[2]], x != [x[0], n, n], np.float64(n) == [1.0, 2.0]


@case((X, 3), (I, 2))
def run_time_lists(x, n):
    ys = [i + 1 for i in range(n)]
    ys = ys + [7] * (3 - n)
    return x == ys, ys != x


@case((M,))
def nested(m):
    return m == [[0.0, 1.0], [2.0, 5.0]], m != [0, 1], m == ((0.0,), (2.0,))


@case((X,), (I,), (M,))
def anything_else(x):
    return x == None, x != None, "a" == x, x != "b", x == {}, x == print  # noqa: E711


@case((X,), (I,))
def numbers(x):
    return x[0] == None, x[0] != "a", x[1] == "b", x[0] != {}, None == x[2]  # noqa: E711


@case((3,))
def without_dtype(n):
    return np.ones(n, dtype=None), np.zeros((2, n), None), np.empty(n, dtype=None).dtype == float, np.eye(n, dtype=None)


@case((M, X, 1), (M, X, 0))
def without_axes(a, v, i):
    return a[i, ..., 0], a[..., i, i], a[i, i, ...], v[i, ...], v[..., i], v[i], a[i, i]


@case((2.0,), (3,))
def conjugates(n):
    return (
        np.conj(1 + 2j),
        np.exp(1j),
        np.conj(n),
        np.conjugate(np.float32(2)),
        np.abs(3 + 4j),
        np.real(1 + 2j),
        np.conj(n * 1j),
    )


@case((X, 3.0), (I, 2))
def operators_with_lists(x, n):
    y = x + [1.5, 2.0, n]
    y -= (1, 2, 3)
    y[:2] *= [2, n]
    nearest = min([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], key=lambda p: np.sum((x - p) ** 2))
    return (
        y,
        [1, 2, 3] - x,
        x @ [1, 2, 3],
        x // (2, 2, 2),
        x ** [1, 2, 3],
        x < [1, 5, 2],
        [n, 2, 3] >= x,
        x[0] + [1, n],
        nearest,
    )


@case((M, 2))
def operators_with_rows_and_run_time_lists(m, n):
    ys = [i + 0.5 for i in range(n)]
    return m + ys, ys * m, m * [[1], [n]], [ys, [1.0, 2.0]] - m, m / ys if n > 1 else 0, divmod(m, [2, 3])


@case((X, 3), (X, 5))
def an_array_or_a_list(x, n):
    v = x.copy() if n > 3 else [1.0]
    v += [5]
    w = (1.0, 2, 3)
    u = w
    w += x
    return v, v + [7], w, u


@case((X, 3))
def only_a_list_has_it(x, n):
    v = x.copy() if n > 3 else [1.0]
    v.append(5.0)
    return v


@case((2,))
def lists_take_any_iterable(n):
    xs = [1]
    xs += (2,)
    xs += range(n)
    xs += [n] if n > 1 else (3,)
    return xs


@case.each
def test_as_in_numpy(function, args, executor):
    agree(function, args, executor)


def of_another_length(x):
    return x == [1.0, 2.0]


def called(x):
    operator.iadd(x, 1.0)
    return x


def bound(x):
    y = x * 1.0
    z = operator.imul(y, 2.0)
    return y, z


def under_another_name(x):
    f = operator.itruediv
    return f(x, 2.0)


def of_a_list(x):
    xs = [1.0]
    operator.iadd(xs, [x[0]])
    return xs


def a_list_becomes_an_array(x):
    xs = [1, 2, 3]
    ys = xs
    xs += x
    return ys


def perhaps_a_list_becomes_one(x):
    xs = [1, 2, 3] if x[0] > 1 else 2.0
    xs *= x
    return xs


REFUSED = [
    (a_list_becomes_an_array, r"'\+=' of a list and an array makes a new array.*write xs = xs \+ array"),
    (perhaps_a_list_becomes_one, r"write xs = xs \* array"),
    (of_another_length, "shapes"),
    (called, r"operator\.iadd changes its first operand.*write x \+= y"),
    (bound, r"operator\.imul"),
    (under_another_name, r"operator\.itruediv"),
    (of_a_list, r"operator\.iadd"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_refused(function, message):
    with pytest.raises(CompileError, match=message):
        relay(function, executor="interpreter")(X)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_operators_in_place_of_numbers(executor):
    f = relay(lambda n: operator.iadd(n, 2) * operator.imul(n, 3), executor=executor)
    assert f(2) == 24


@pytest.mark.parametrize("executor", EXECUTORS)
def test_under_transforms(executor):
    def f(x):
        return np.sum(np.where(x == [1.0, 5.0, 3.0], x**2, x)) + x[1, ...]

    compiled = relay(f, executor=executor)
    np.testing.assert_allclose(grad(compiled)(X), [2.0, 2.0, 6.0])
    np.testing.assert_allclose(vmap(compiled)(np.stack([X, X + 1])), [f(X), f(X + 1)])

    def g(x):
        y = [1.0, x[0], 3.0] * x
        y /= (1, 2, 4)
        return np.sum(y**2)

    compiled = relay(g, executor=executor)
    np.testing.assert_allclose(grad(compiled)(X), [4.0, 1.0, 3.375])
    np.testing.assert_allclose(vmap(compiled)(np.stack([X, X + 1])), [g(X), g(X + 1)])


FNV = 14695981039346656037


def hashed(n):
    h = np.uint64(14695981039346656037) ^ np.uint64(FNV)
    for i in range(n):
        h = (h ^ np.uint64(i)) * np.uint64(1099511628211)
    return h, np.uint64(18446744073709551615)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_large_constants(executor):
    with np.errstate(over="ignore"):
        want = hashed(3)
    assert relay(hashed, executor=executor)(3) == want
    with pytest.raises(CompileError, match=r"14695981039346656037 does not fit into 64 bits; write np\.uint64"):
        relay(lambda n: n + FNV, executor=executor)(1)


def unhashable_key(n):
    v: dict = {"a": 1} if n > 0 else {"b": 2.0}
    v[[0, 0]] = 5
    return v


def unhashable_array(n):
    v: dict = {"a": 1}
    v[np.ones(2)] = n
    return v


def unhashable_member(n):
    return [n] in {"a": 1}


def unhashable_get(n):
    v: dict = {"a": n}
    return v.get([1])


@pytest.mark.parametrize("function", [unhashable_key, unhashable_array, unhashable_member, unhashable_get])
def test_unhashable_keys(function):
    for call in (function, relay(function, executor="interpreter")):
        with pytest.raises(TypeError, match="unhashable type: '"):
            call(1)
