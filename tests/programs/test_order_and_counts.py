"""NumPy's functions for order, counts and places: `partition`, `bincount`, `isin`, `put_along_axis`, ..."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay, vmap
from tests.programs.cases import EXECUTORS, Cases, agree

pytestmark = pytest.mark.sampled(6)

case = Cases()
V = np.array([0.5, -1.5, 2.0, -0.25, 1.0, 3.0])
T = np.random.default_rng(1).normal(size=(3, 4, 5))
Z = np.array([1, 3, 3, 0])


@case((T, np.array([0, 2, 2])))
def put_along_axis(t, at):
    y = t.copy()
    np.put_along_axis(y, np.argmax(t, axis=1)[:, None, :], 9.0, 1)
    np.put_along_axis(y[0], np.argmin(t[0], axis=0)[None], np.arange(5.0), axis=0)
    np.put_along_axis(y, np.argsort(t)[..., :2], t[..., 3:], axis=-1)
    np.put_along_axis(y, at, 7.0, None)
    return y


@case((T,))
def take_along_axis(t):
    order = np.argsort(t, axis=1)
    first = np.argmax(t, axis=2, keepdims=True)
    return (
        np.take_along_axis(t, order[:, :2], 1),
        np.take_along_axis(t, first, axis=-1),
        np.take_along_axis(t, order, 1),
    )


@case((T[0],), (T[0, :, :4],))
def diagonals_and_copies(x):
    y = x.copy()
    np.fill_diagonal(y, 3)
    np.copyto(y, 1, where=y < 0)
    np.copyto(y[0], np.arange(y.shape[1]))
    np.fill_diagonal(y[1:, 1:], np.arange(3))
    return y


@case((T,))
def cubes(x):
    y = x[:, :3, :3].copy()
    np.fill_diagonal(y, -1.0)
    return y


@case((T, 2), (T, -7))
def roll(t, k):
    several = np.roll(t, (1, 2), axis=(0, 2)), np.roll(t, 2, (0, 1)), np.roll(t, (1, 2)), np.roll(t, (k, 1), axis=0)
    return several, np.roll(t, k), np.roll(t, (k, -k), (1, 1)), np.roll(t, k, 2), np.roll(t[:0], k, 0)


@case((Z,), (Z[:0],), (np.array([7, 7], np.uint8),))
def bincount(z):
    return np.bincount(z), np.bincount(z, minlength=6), np.bincount(z > 1)


@case((Z,), (np.array([7, 7], np.uint8),))
def weighted_bincount(z):
    return np.bincount(z, z * 0.5), np.bincount(z, z), np.bincount(z, minlength=6, weights=z)


@case((Z - 1,), (np.array([5, -1]),))
def bincount_of_negatives(z):
    return np.bincount(z)


@case((Z, -1))
def bincount_too_short(z, n):
    return np.bincount(z, minlength=n)


@case((V,), (T[0],))
def partition(x):
    k = 3
    return np.partition(x, k)[..., k], np.partition(x, [1, -1])[..., -1], np.partition(x, 0, axis=0)[0]


@case((V, 6), (V, -7))
def partition_beyond(x, k):
    return np.partition(x, k)


@case((V,), (np.array([3.0, np.nan, -np.inf, 0.0]),))
def argpartition(x):
    return np.argsort(x), x.argsort(), x[np.argpartition(x, 2)][2], np.argsort(-x, kind="quicksort")


@case((Z,), (np.array([[1, 5], [3, 2]]),))
def isin(z):
    inside = np.isin(z, np.array([1, 3])), np.isin(z, []), np.isin(z, [1.0, 0.5], invert=True), np.isin(z, z[:1] + 1)
    return inside, np.isin(3, z), np.isin([[1, 2], [5, 0]], z)


@case((np.array([0.0, -0.0, 2.0, -3.0, np.nan, np.inf, -np.inf]),))
def angle(v):
    return np.angle(v), np.angle(-1.0), np.angle(2), np.angle(v, deg=True), np.angle(v.astype(np.float32))


@case((T[0], 1, 3), (T[0], 2, 2), (T[0], -1, 9))
def slices_with_computed_bounds(x, a, b):
    y = x.copy()
    y[a::2, 1] = 1.0
    y[:: abs(a)] = y[:: abs(a)] * 2
    y[:, b:0:-1] = 3.0
    y[a:b] = y[a:b] + 1
    for i in range(3):
        y[i::3, i:] += x[i::3, i:] * i
    return y


@case.each
@pytest.mark.sampled(27)
def test_like_numpy(function, args, executor):
    agree(function, args, executor)


def test_equal_elements_keep_their_order():
    x = np.random.default_rng(0).integers(0, 4, 100)
    np.testing.assert_array_equal(relay(lambda x: np.argsort(x))(x), np.argsort(x, kind="stable"))
    places = relay(lambda x: np.argpartition(x, 30))(x)
    assert sorted(places) == list(range(100)) and x[places][30] == np.sort(x)[30]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_derivatives(executor):
    def loss(w, t):
        y = t.copy()
        np.put_along_axis(y, np.argsort(t, axis=1)[:, :2], w * w, 1)
        return np.sum(np.roll(y, (1, 2), (0, 2)) * t) + np.sum(np.bincount(np.array([0, 2, 2]), w[:, 0, 0]) ** 2)

    w = T[:, :2].copy()
    got = relay(grad(loss), executor=executor)(w, T)
    for i in np.ndindex(2, 2, 2):
        ends = []
        for step in (1e-6, -1e-6):
            moved = w.copy()
            moved[i] += step
            ends.append(loss(moved, T))
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(got[i], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_batches(executor):
    def f(t, k):
        y = t.copy()
        np.put_along_axis(y, np.argsort(t, axis=1)[:, :1], 3.0, 1)
        return np.roll(y, k, 0), np.isin(t, t[0]), np.partition(t, 2)

    ts, ks = np.stack([T[0], T[1]]), np.array([1, 3])
    got = relay(vmap(f), executor=executor)(ts, ks)
    for k in range(2):
        np.testing.assert_array_equal(got[1][k], np.isin(ts[k], ts[k][0]))
        np.testing.assert_array_equal(got[0][k], f(ts[k], ks[k])[0])
        np.testing.assert_array_equal(got[2][k], np.sort(ts[k]))


def test_one_compilation_counts_any_number():
    f = relay(lambda z: np.bincount(z[z > 0]))
    for z in (Z, np.array([1, 9, 0, 1]), np.array([0, 0, -1, 0])):
        np.testing.assert_array_equal(f(z), np.bincount(z[z > 0]))
    assert f.cache_info().misses == 1


def test_what_is_refused():
    def of_floats(x):
        return np.bincount(x)

    def of_another_rank(x):
        y = x.copy()
        np.put_along_axis(y, np.array([0]), 1.0, 0)
        return y

    for function, text in (
        (of_floats, "vector"),
        (of_another_rank, "same number of dimensions"),
        (lambda x: np.roll(x, (1, 2), (0, 1, 1)), "as many"),
        (lambda x: np.argsort(x, kind="fast"), "sort kind"),
    ):
        with pytest.raises((CompileError, ValueError), match=text):
            relay(function)(T[0])
