"""Arrays that are made to be joined are made where they belong; where they cannot be, they are copied."""

from __future__ import annotations

import numpy as np

from myia_relay import relay


def agree(function, *args):
    for got, want in zip(relay(function)(*args), function(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


X, Y, W = np.arange(5.0), np.linspace(2.0, -1.0, 7), np.arange(25.0).reshape(5, 5)


def test_results_of_reductions_products_and_scans():
    def f(x, y, w):
        joined = np.concatenate((np.cumsum(x), x @ w, np.sum(w, axis=0)))
        ordered = np.concatenate((np.sort(y), np.sort(x)))
        return joined, ordered * 2.0, np.concatenate((np.sum(w, axis=1), np.cumsum(y))), ordered[::-1]

    agree(f, X, Y, W)
    into = [np.empty_like(a) for a in f(X, Y, W)]
    relay(f).into(tuple(into))(X, Y, W)
    for got, want in zip(into, f(X, Y, W), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_parts_that_are_used_twice_or_changed_in_place():
    def f(x, y):
        part = np.cumsum(x)
        changed = np.sort(y)
        changed[1] = 9.0
        return np.concatenate((part, changed)), part * 2.0, np.concatenate((part, part)), np.concatenate((changed, x))

    agree(f, X, Y)


def test_in_loops():
    def f(x, n):
        for _ in range(n):
            x = np.concatenate((np.cumsum(x[:3]), np.sort(x[3:])))
        y = x
        for _ in range(n):
            head, tail = np.sort(y[2:]), np.cumsum(y[:2])
            y = np.concatenate((head, tail)) + y[0]
        return x, y

    agree(f, X, 4)


def test_along_other_axes():
    def f(w):
        wide = np.concatenate((np.cumsum(w, axis=0), np.sort(w)), axis=1)
        return wide, np.concatenate((np.sort(w)[None], np.cumsum(w, axis=1)[None]), axis=1)

    agree(f, W)


def test_parts_along_every_axis():
    """Each part is a loop of its own where its pieces of memory are long; else each element chooses its part."""
    t, u, v = np.arange(24.0).reshape(2, 3, 4), -np.arange(8.0).reshape(2, 1, 4), np.arange(192.0).reshape(2, 3, 32)

    def f(t, u, v):
        rows = np.concatenate((t, u, t[:, :0], 2.0 * t), axis=1)
        columns = np.concatenate((v, t, v[:, ::-1] + 1.0, t[..., :1]), axis=2)
        return rows, columns, np.concatenate((v, v), axis=0), np.roll(v, 5, axis=2), np.concatenate([v[0, 0]] * 9)

    agree(f, t, u, v)
    agree(lambda v, t: f(t, t[:, :1], v), v.astype(np.float32), t.astype(np.float32))


def test_parts_of_sizes_that_values_decide():
    def f(x, n: int):
        return np.concatenate((x[:n], x[n + 1 :] * 2.0)), np.concatenate((x[n:], x[:n]))

    for n in (0, 1, 6, 29):
        agree(f, np.arange(30.0), n)
