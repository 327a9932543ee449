"""`np.add.at(x, i, v)` and its kin, `relay.at(x)[i].add(v)`, and masks that choose places for as many values."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, ParseError, grad, relay, vmap
from tests.programs.cases import EXECUTORS, Cases, agree

case = Cases()
V = np.array([0.5, -1.5, 2.0, -0.25, 1.0, 3.0])
T = np.linspace(-1.0, 2.0, 60).reshape(3, 4, 5)
TWICE = np.array([0, 2, 2])


@case((V, TWICE), (V, np.array([-1, -1, 3])), (V, np.array([], np.int64)))
def add(v, at):
    y = v.copy()
    np.add.at(y, at, 1.0)
    return y


@case((V, np.array([0, 6])))
def beyond(v, at):
    y = v.copy()
    np.add.at(y, at, 1.0)
    return y


@case((V, TWICE))
def every_kind(v, at):
    y = v.copy()
    np.add.at(y, at, np.array([1.0, 2.0, 3.0]))
    np.subtract.at(y, at, 2)
    np.multiply.at(y, [0, 0, 1], [2.0, 3.0, 4.0])
    np.maximum.at(y, at, np.array([0.1, 0.2, 0.9]))
    np.minimum.at(y, at, 0.3)
    np.divide.at(y, at, np.array([3.0, 7.0, 11.0]))
    np.negative.at(y, at)
    return y


@case((T, TWICE))
def several_axes(t, at):
    y = t.copy()
    np.add.at(y, (slice(None), at), 1.0)
    np.add.at(y, (0, at, at), 1.0)
    np.add.at(y, (slice(1, None), at), np.arange(5.0))
    np.add.at(y[1], at, 2.0)
    np.multiply.at(y[0, :2], (0, at), 2.0)
    return y


@case((V, 3))
def without_arrays(v, k):
    y = v.copy()
    np.add.at(y, k, 1.0)
    np.add.at(y, slice(1, k), 1.0)
    np.add.at(y, y > 0, 1.0)
    np.negative.at(y, y > 2)
    return y


@case((TWICE,))
def in_loops(at):
    y, rows = np.zeros(4, np.int64), [np.zeros(4), np.ones(4)]
    for i in range(3):
        np.add.at(y, at, 1)
        if i > 1:
            np.add.at(y, [i, i], i)
        np.add.at(rows[0], at, i)
    return y, rows


@case((V, TWICE))
def other_dtypes(v, at):
    y, z, w = np.zeros(4, np.float32), np.zeros(4, np.bool_), np.zeros(4, np.uint8)
    np.add.at(y, at, v[:3])
    np.add.at(z, at, True)
    np.logical_xor.at(z, at, True)
    np.subtract.at(w, at, w[:3] + 200)
    return y, z, w


@case((V, TWICE), (np.array([1, 5, 7, 8, 2, 2]), TWICE))
def functional(v, at):
    x = relay.at(v)
    changed = x[at].add(1.5), x[at].subtract(1), x[at].multiply(2.0), x[at].min(v[:3]), x[at].max(2), x[at].set(v[3:])
    return changed, x[1:4].add(v[1:4]), x[2].divide(4), x[v > 1].add(7), v


@case((V,), (-np.abs(V),))
def as_many_values_as_chosen(v):
    y = v.copy()
    m = v > 0
    n = int(m.sum())
    y[m] = np.arange(n) * 1.0
    y[m] += np.arange(n)
    np.add.at(y, m, np.arange(n))
    y[~m] = v[~m] * 2
    return y


@case((T,))
def rows_by_masks(t):
    y = t.copy()
    m = t > 0
    y[m] = t[m] ** 2
    y[m] *= np.arange(int(m.sum()))
    rows = t[:, 0, 0] > -0.5
    y[rows, 1:3] = t[rows, 1:3] * 2.0
    y[rows, 1:3] -= t[rows, 1:3] * 3.0
    y[:, t[0, :, 0] > -0.9] = 1.5
    return y


@case.each
@pytest.mark.sampled(9)
def test_like_numpy(function, args, executor):
    agree(function, args, executor)


def test_as_many_values_as_chosen_are_wanted():
    @relay
    def f(v, m, w):
        y = v.copy()
        y[m] = w
        return y

    m = V > 0
    assert f(V, m, np.arange(4.0)).tolist() == [0.0, -1.5, 1.0, -0.25, 2.0, 3.0]
    with pytest.raises(ValueError, match="assignment"):
        f(V, m, np.arange(3.0))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_derivatives_sum_over_repeated_positions(executor):
    def loss(v, w, at):
        y = v.copy()
        np.add.at(y, at, w)
        np.multiply.at(y, at, w * v[:3])
        np.maximum.at(y, at, w)
        return np.sum(y**2) + np.sum(relay.at(v)[at].subtract(w * w) ** 3)

    w = np.array([0.3, -0.7, 1.1])
    dv, dw = relay(grad(loss, (0, 1)), executor=executor)(V, w, TWICE)
    for k, (x, dx) in enumerate(((V, dv), (w, dw))):
        for i in range(len(x)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [V.copy(), w.copy()]
                moved[k][i] += step
                ends.append(loss(*moved, TWICE))
            assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(dx[i], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_batches_have_positions_of_their_own(executor):
    def f(v, at, w):
        y = v.copy()
        np.add.at(y, at, w)
        np.multiply.at(y, at, w)
        return y

    vs, ats, ws = np.stack([V, 2 * V]), np.array([[0, 0, 1], [5, 2, 5]]), np.arange(6.0).reshape(2, 3)
    want = np.stack([f(*each) for each in zip(vs, ats, ws, strict=True)])
    np.testing.assert_array_equal(relay(vmap(f), executor=executor)(vs, ats, ws), want)


def test_one_compilation_serves_all_sizes():
    @relay
    def f(n, at):
        counts = np.zeros(n)
        np.add.at(counts, at[at < n], 1.0)
        return counts

    for n in (1, 3, 5):
        assert f(n, np.array([0, 1, 1, 4, 2, 0])).tolist() == np.bincount([0, 1, 1, 4, 2, 0], minlength=n)[:n].tolist()
    assert f.cache_info().misses == 1


def test_what_is_refused():
    def of_a_parameter(v):
        np.add.at(v, [0], 1.0)
        return v

    def of_another_name(v):
        y = v.copy()
        z = y if v[0] < 9 else v
        np.add.at(y, [0], 1.0)
        return y + z

    def of_floats_in_ints(v):
        y = np.zeros(3, np.int64)
        np.add.at(y, [0], 1.5)
        return y

    def of_a_copy(v):
        y = v.copy()
        np.add.at(y[v > 0], [0], 1.5)
        return y

    def of_another_number(v):
        y = v.copy()
        np.add.at(y, [0])
        return y

    refusals = (
        (of_another_name, ParseError, "'z' may be, or hold, the same object as 'y'"),
        (of_floats_in_ints, TypeError, "float64, which does not fit into the array of int64"),
        (of_a_copy, TypeError, "changes a copy"),
        (of_another_number, TypeError, "takes 1"),
    )
    for function, kind, text in refusals:
        with pytest.raises(kind, match=text) as caught:
            relay(function)(V)
        assert isinstance(caught.value, CompileError) and "np.add.at" in str(caught.value)


def test_a_method_at_of_another_object():
    class Table:
        def at(self, x, i):
            return x[i]

    add = Table()

    @relay
    def f(v):
        y = v.copy()
        add.at(y, 0)
        return y

    try:
        got = f(V)
    except CompileError as error:
        assert "Table" in str(error)
    else:
        assert got.tolist() == V.tolist()
