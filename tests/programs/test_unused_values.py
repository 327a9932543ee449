"""Values that the path taken does not use have no derivative there, however infinite it would be.

Branches, loops without iterations, values that a loop overwrites, entries of lists, recursions; in both modes, under vmap and at
the second order.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import checkpoint, grad, hessian, jvp, relay, vmap


def early(x):
    n = math.sqrt(x)
    if n > 0.5:
        return n
    return 3.0 * x


def unit(v):
    n = np.linalg.norm(v)
    return np.sum((v / n if n > 0 else v) ** 2 + v)


def zero_trips(x, k):
    l = np.log(x)
    s = x * x
    for _ in range(k):
        s = s + l
    return s


def zero_while(x, k):
    l = np.float64(1.0) / x
    s = x * x
    while k > 0:
        s = s + l
        k -= 1
    return s


def in_loop_if(x, k):
    n = math.sqrt(x)
    s = 0.0
    for _ in range(k):
        if n > 0:
            s += n / (1 + n)
        else:
            s += 2.0 * x
    return s


def product(x):
    y = x * np.log(x)
    return y if x > 0 else 5.0 * x


def norm_by_loop(v):
    s = 0.0
    for i in range(3):
        s += v[i] * v[i]
    n = math.sqrt(s)
    if n > 1e-12:
        return v[0] / n + v[1]
    return v[0] + 2 * v[1]


def sum_of_roots(v):
    s = 0.0
    for i in range(3):
        s += math.sqrt(v[i])
    if s > 0:
        return s
    return np.sum(v) * 4.0


def overwritten(v):
    t = 0.0
    for i in range(3):
        t = math.sqrt(v[i])
    return t + np.sum(v)


def selected(v):
    best = -1.0
    for i in range(3):
        c = math.sqrt(v[i])
        if c > best:
            best = c
    return best


def helper(x):
    return math.log(x + 1.0) / x


def called(x):
    h = helper(x) if x != 0.0 else 0.0
    return h if x > 0 else 7.0 * x


def called2(x):
    r = np.log(np.float64(x))

    def use(y):
        return r * y

    return use(2.0) if x > 0 else 7.0 * x


def entropy(p, use):
    h = -(p @ np.log(p))
    s = np.sum(p)
    if use:
        s = s + h
    return s


def multiples(n, k):
    return 0.0 if k == 0 else n + multiples(n, k - 1)


def recursion(x, k):
    return multiples(np.log(x), k) + 2.0 * x


def in_tuple(x):
    a, b = math.sqrt(x), x * 2
    p = (a, b) if x > 0 else (b, b)
    return p[0] + p[1]


def nested(x, y):
    a = math.sqrt(x)
    b = a / y if y != 0 else a
    if x > 0:
        if y > 0:
            return b
        return a
    return 2.0 * x + y


def checkpointed(x):
    n = checkpoint(lambda z: np.sqrt(z) * z)(x)
    return n if x > 0 else 3.0 * x


def scaled(w, x):
    y = np.float64(w) / x
    return y if x > 1e300 else x * w


def acos_angle(c):
    t = np.arccos(c)
    return t if c < 1.0 else 1.0 - c


def largest_norm(v):
    return np.linalg.norm(v) if np.any(v != 0) else np.sum(v)


def andor(x):
    r = math.sqrt(x)
    return x if x <= 0 or r < 0.1 else r


def lists(v):
    roots = [math.sqrt(x) for x in v]
    t = 0.0
    for i in range(3):
        if v[i] > 0:
            t += roots[i]
        else:
            t += 2.0 * v[i]
    return t


def entry_of_three(x):
    xs = [np.log(x), np.sqrt(x), x]
    k = 2 if x <= 0 else 0
    return xs[k]


def fields(x):
    d = {"log": np.log(x), "x": x}
    return d["log"] if x > 0 else d["x"] * 3.0


def stopped(v):
    s = 0.0
    for i in range(3):
        r = math.sqrt(v[i])
        if v[i] == 0.0:
            break
        s += r
    return s + np.sum(v)


def greater(x):
    return max(math.sqrt(x), 1.0) + x


CASES = [
    (early, (0.0,), 3.0),
    (early, (4.0,), 0.25),
    (unit, (np.zeros(3),), np.ones(3)),
    (zero_trips, (0.0, 0), 0.0),
    (zero_while, (0.0, 0), 0.0),
    (in_loop_if, (0.0, 3), 6.0),
    (in_loop_if, (0.0, 0), 0.0),
    (product, (0.0,), 5.0),
    (norm_by_loop, (np.zeros(3),), np.array([1.0, 2, 0])),
    (sum_of_roots, (np.zeros(3),), np.full(3, 4.0)),
    (overwritten, (np.array([0.0, 0.0, 4.0]),), np.array([1, 1, 1.25])),
    (selected, (np.array([0.0, 4.0, 0.0]),), np.array([0, 0.25, 0])),
    (called, (0.0,), 7.0),
    (called2, (0.0,), 7.0),
    (entropy, (np.array([0.0, 1.0]), False), np.ones(2)),
    (recursion, (0.0, 0), 2.0),
    (in_tuple, (0.0,), 4.0),
    (nested, (0.0, 0.0), 2.0),
    (checkpointed, (0.0,), 3.0),
    (scaled, (2.0, 0.0), 0.0),
    (acos_angle, (1.0,), -1.0),
    (largest_norm, (np.zeros(3),), np.ones(3)),
    (andor, (0.0,), 1.0),
    (lists, (np.array([0.0, 4.0, 0.0]),), np.array([2, 0.25, 2.0])),
    (greater, (0.0,), 1.0),
    (entry_of_three, (0.0,), 1.0),
    (fields, (0.0,), 3.0),
    (stopped, (np.array([4.0, 0.0, 0.0]),), np.array([1.25, 1.0, 1.0])),
]


NAMES = [f"{f.__name__}-{k}" for k, (f, _, _) in enumerate(CASES)]


@pytest.mark.parametrize("f, args, slope", CASES, ids=NAMES)
def test_gradients(f, args, slope, executor):
    np.testing.assert_allclose(relay(grad(f), executor=executor)(*args), slope)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
@pytest.mark.parametrize("f, args, slope", CASES, ids=NAMES)
def test_gradients_of_batches(f, args, slope, executor):
    axes = (0, *(None for _ in args[1:]))
    batch = np.stack([np.asarray(args[0]) + 1.5, np.asarray(args[0])])

    def total(xs, *rest):
        return np.sum(vmap(f, in_axes=axes)(xs, *rest))

    inner = relay(vmap(grad(f), in_axes=axes), executor=executor)(batch, *args[1:])
    outer = relay(grad(total), executor=executor)(batch, *args[1:])
    np.testing.assert_allclose(inner[1], slope)
    np.testing.assert_allclose(outer, inner)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
@pytest.mark.parametrize("f, args, slope", CASES, ids=NAMES)
def test_second_derivatives(f, args, slope, executor):
    def along(x, *rest):
        return jvp(lambda y: grad(f)(y, *rest), (x,), (np.ones_like(x) if np.ndim(x) else 1.0,))[1]

    assert np.all(np.isfinite(relay(hessian(f), executor=executor)(*args)))
    assert np.all(np.isfinite(relay(along, executor=executor)(*args)))
    assert np.all(np.isfinite(relay(grad(lambda *a: np.sum(grad(f)(*a))), executor=executor)(*args)))


def test_a_cotangent_that_happens_to_be_zero_is_used(executor):
    """The second derivative of x * sqrt(y), through a branch, at x = 0."""

    def f(x, y):
        n = math.sqrt(y)
        return x * n if y > 0.0 else y

    np.testing.assert_allclose(relay(lambda x, y: grad(grad(f, 1), 0)(x, y), executor=executor)(0.0, 4.0), 0.25)

    def g(xs, y):
        return np.sum(vmap(lambda x: f(x, y))(xs))

    np.testing.assert_allclose(
        relay(lambda x, y: grad(grad(g, 1), 0)(x, y), executor=executor)(np.zeros(2), 4.0), [0.25, 0.25]
    )
