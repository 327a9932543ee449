"""Derivatives where there is none by mathematics (`docs/derivatives.md`), and dead branches, which never make a NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import checkpoint, grad, relay, vmap

EXECUTORS = ["interpreter", "python", "native"]
A = np.array

KINKS = [
    (lambda x: abs(x), (0.0,), 0.0),
    (lambda x: np.sum(np.abs(x)), (A([0.0, -0.0, 1.0]),), A([0.0, 0.0, 1.0])),
    (lambda x: np.sum(np.sign(x) * x), (A([0.0, 2.0]),), A([0.0, 1.0])),
    (lambda x, y: np.sum(np.maximum(x, y)), (A([1.0, 2.0]), A([1.0, 1.0])), (A([0.5, 1.0]), A([0.5, 0.0]))),
    (lambda x: np.sum(np.maximum(x, 0.0)), (A([0.0, -1.0]),), A([0.5, 0.0])),
    (lambda x: np.sum(np.clip(x, 0.0, 1.0)), (A([0.0, 0.5, 1.0, 2.0]),), A([0.5, 1.0, 0.5, 0.0])),
    (lambda x: np.max(x), (A([1.0, 2.0, 2.0]),), A([0.0, 0.5, 0.5])),
    (lambda x: np.min(x), (A([1.0, 1.0, 2.0]),), A([0.5, 0.5, 0.0])),
    (lambda x, y: max(x, y), (1.0, 1.0), (1.0, 0.0)),
    (lambda x, y: min(x, y), (1.0, 1.0), (1.0, 0.0)),
    (lambda x: x * 2.0 if x > 0.0 else x * 3.0, (0.0,), 3.0),
    (lambda x: np.sum(np.floor(x) * x), (A([1.5]),), A([1.0])),
    (lambda x, y: np.sum(x % y), (A([5.5]), A([2.0])), (A([1.0]), A([-2.0]))),
    (lambda x: np.sum(np.sqrt(x)), (A([0.0, 4.0]),), A([np.inf, 0.25])),
    (lambda x: np.sum(np.log(x)), (A([0.0]),), A([np.inf])),
    (lambda x: np.sqrt(np.sum(x * x)), (np.zeros(2),), A([np.nan, np.nan])),
    (lambda x, y: math.hypot(x, y), (0.0, 0.0), (0.0, 0.0)),
    (lambda x: np.sum(x**0.0), (A([0.0]),), A([0.0])),
    (lambda x: np.prod(x), (A([0.0, 2.0, 3.0]),), A([6.0, 0.0, 0.0])),
    (lambda x: np.prod(x), (A([0.0, 0.0, 3.0]),), A([0.0, 0.0, 0.0])),
    (lambda x: np.sum(np.sort(x) * A([1.0, 2.0, 3.0])), (A([1.0, 1.0, 0.0]),), A([2.0, 3.0, 1.0])),
    (lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)), (A([0.0, 2.0]),), A([np.nan, 0.5])),
    (lambda x: np.sum(np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0)), (A([0.0, 2.0]),), A([0.0, 0.5])),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
@pytest.mark.parametrize("f, args, wanted", KINKS, ids=map(str, range(len(KINKS))))
def test_kinks_and_ties(f, args, wanted, executor):
    got = relay(grad(f, tuple(range(len(args)))), executor=executor)(*args)
    for g, w in zip(got, wanted if len(args) > 1 else (wanted,), strict=True):
        np.testing.assert_array_equal(g, w)


def logarithm(x):
    return np.log(x) if x > 0.0 else x * 0.0


def roots(x, n):
    for _ in range(n):
        x = np.sqrt(x - 1.0)
    return x


def roots_above_one(x):
    while x > 1.0:
        x = np.sqrt(x - 1.0) * 1.5
    return x


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_dead_branches_make_no_nan(executor):
    def both(f, xs, *rest):
        one = relay(grad(lambda x, *r: np.sum(vmap(f)(x, *r))), executor=executor)(xs, *rest)
        np.testing.assert_array_equal(one, relay(vmap(grad(f)), executor=executor)(xs, *rest))
        return one

    np.testing.assert_array_equal(both(logarithm, A([0.0, 2.0, -1.0])), [0.0, 0.5, 0.0])
    slopes = both(roots, A([1.0, 7.0, 3.0]), A([0, 2, 1]))
    assert slopes[0] == 1.0 and np.all(np.isfinite(slopes))
    slopes = both(roots_above_one, A([1.0, 7.0, 0.5]))
    assert slopes[0] == slopes[2] == 1.0 and np.all(np.isfinite(slopes))

    def by_a_shared_number(c, xs):
        return np.sum(vmap(lambda x: c / x if x > 0.0 else c)(xs))

    assert relay(grad(by_a_shared_number), executor=executor)(np.float64(2.0), A([0.0, 2.0])) == 1.5


def chunk(x, start, count):
    for i in range(start, start + count):
        x = math.sin(x) + 0.001 * i
    return x


def in_chunks(x, n, count):
    for k in range(0, n, count):
        x = checkpoint(chunk)(x, k, min(count, n - k))
    return x


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_loop_in_checkpointed_chunks(executor):
    wanted = relay(grad(chunk), executor="interpreter")(0.7, 0, 50)
    assert relay(grad(in_chunks), executor=executor)(0.7, 50, 7) == pytest.approx(wanted, rel=1e-13)
    assert relay(grad(grad(in_chunks)), executor=executor)(0.7, 50, 7) == pytest.approx(
        relay(grad(grad(chunk)), executor="interpreter")(0.7, 0, 50), rel=1e-11
    )
