"""Derivatives and batches of small programs in Python, of every construct that derivatives have rules for, by the interpreter.

First orders are compared with differences of the program run by CPython, second orders with differences of first ones, batches
with a loop over the examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import checkpoint, custom_vjp, grad, jvp, relay, stop_gradient, value_and_grad, vmap
from myia_relay.ad.common import activity

# Recursion.


def even(x, n):
    if n == 0:
        return x
    return odd(x * 1.5, n - 1) + x * even(x, n - 1)


def odd(x, n):
    if n == 0:
        return x * x
    return even(x * 0.5, n - 1) * x


def more_and_more(x, n):
    """Each call differentiates by more arguments than the one before."""
    return _more_and_more(x, 1.0, 2.0, n)


def _more_and_more(a, b, c, n):
    if n == 0:
        return a * b * c
    return _more_and_more(a, a * 0.5, b + 1.0, n - 1) * c


def two_ways(x, n):
    """What one way keeps depends on x, what the other keeps does not."""
    return _two_ways(x, 0.5, n)


def _two_ways(x, c, n):
    if n == 0:
        return x * c
    if n % 2 == 0:
        return _two_ways(x * math.cos(c), c * 1.5, n - 1) * math.sin(c)
    return _two_ways(x * c, c + 0.25, n - 1) * math.sin(x)


def with_counts(x, n):
    """Besides floats it takes and returns an int, and an argument that is not differentiated by."""
    y, count = _with_counts(x, 2.0, n)
    return y * count


def _with_counts(x, scale, n):
    if n == 0:
        return math.sin(x) * scale, 1
    y, count = _with_counts(x * 0.9, scale + 0.5, n - 1)
    return y * x + count * math.cos(y), count + n


def recursion_in_a_loop(x, n):
    if n == 0:
        return x
    total = 0.25
    for i in range(n):
        total = math.sin(total) + recursion_in_a_loop(x * total, i) * x
    return total


def loop_in_a_recursion(x, n):
    if n < 1:
        return math.exp(-x)
    t, i = x, 0
    while i < n and t < 4.0:
        t = t * t * 0.5 + 0.75
        i += 1
    return t * loop_in_a_recursion(x * 0.5, n - 1) + t


@dataclass(frozen=True)
class Leaf:
    value: float
    label: int


@dataclass(frozen=True)
class Fork:
    left: Tree
    right: Tree
    weight: float


Tree = Leaf | Fork


def grown(x: float, n: int) -> Tree:
    return Leaf(x, n) if n <= 0 else Fork(grown(x * 0.75, n - 1), grown(x + 0.25, n - 2), math.cos(x))


def folded(t: Tree, w: float) -> float:
    match t:
        case Leaf(value, label):
            return math.tanh(value * w) + 0.5 * label * value
        case Fork(left, right, weight):
            return folded(left, w) * weight + w * folded(right, w * weight)


def trees(x, n):
    return folded(grown(x, n), x * 0.5)


def trees_twice(x, n):
    t = grown(x, n)
    return folded(t, x) * folded(t, 0.5)


def leftmost(x, n):
    """A loop that goes down a tree."""
    t, total = grown(x, n), x
    while isinstance(t, Fork):
        total = total * t.weight + 1.0
        t = t.left
    return total * t.value


# Loops.


def breaks(x, n):
    total = x
    for i in range(1, n + 3):
        if i % 3 == 2:
            continue
        total = total * math.sin(x * i) + i
        if total > 6.0:
            break
        total = total + x * x
    return total


def early_return(x, n):
    y = x
    for i in range(n):
        if y > 3.0:
            return y * x * i
        y = y * y * 0.5 + x
    return y - x


def nested_loops(x, n):
    a, b = x, 1.0
    for i in range(n + 1):
        for j in range(i, -1, -1):
            a, b = b * x, a + math.cos(b) * j
        b = b * 0.5 + a
    return a * b


def loop_in_a_while(x, n):
    y, turns = x, 0
    while abs(y) < 5.0 and turns < n + 2:
        for k in range(turns):
            y = y + math.sin(y * k) * x
        y = y * 1.25 + 0.5
        turns += 1
    return y + turns * x


def partly_linear(x, n):
    """Of the carried values one is linear, one an int, one is only read, one does not depend on x."""
    a, k, c, d = x, 0, x * x, 1.0
    for i in range(n):
        a = a + c * d
        d = d * 0.5 + i
        k = k + i
    return a * k + c


def late_dependence(x, n):
    """What the result depends on by the last iteration, by the one before, by the one before that."""
    a, b, c = x, 1.0, 2.0
    for _ in range(n + 1):
        c, b, a = b * b, a * c, math.sin(x)
    return c + 0.0 * a


def unused_results(x, n):
    a, b = x, x
    for _ in range(n):
        a, b = a * x, b + a
    return a


# Branches.


def branches(x, n):
    if n % 2 == 0:
        y, k = math.sin(x) * x, 2
    elif x > 1.0:
        y, k = math.exp(-x * x), 3
    else:
        y, k = 4.0, 5
    return y * y * k + y


def branches_in_loops(x, n):
    y = x
    for i in range(n + 1):
        if i % 2:
            y = math.sin(y) * x
        elif y > 1.5:
            z = y
            for _ in range(i):
                z = z * math.cos(x)
            y = z + 1.0
        else:
            y = math.exp(y * 0.5)
    return y


def residuals_of_other_kinds(x, n):
    """One way saves numbers, the other an array and a number; what both need is saved once."""
    v = np.array([1.0, 2.0, 3.0]) * x
    if n % 2:
        s = math.sin(x * x) * math.exp(x)
    else:
        s = float(np.sum(np.tanh(v) * v)) * math.cos(x)
    return s * s


# Functions, lists, records, arrays.


def closures(x, n):
    def step(y):
        return y * x + math.sin(y)

    def twice(f, y):
        return f(f(y))

    y = 0.5
    for _ in range(n):
        y = twice(step, y) * 0.25
    return y + twice(lambda z: z * x, x)


def nonlocals(x, n):
    total = x

    def more(y):
        nonlocal total
        total = total * 0.5 + y * x
        return total

    for i in range(n):
        more(more(x * i))
    return total


def lists(x, n):
    ys = [x, 2.0]
    for i in range(n):
        ys.append(ys[-1] * math.sin(ys[i]) + i)
        if i % 2:
            ys[0] = ys[0] * x
    ys.pop()
    total = 0.0
    for y in ys:
        total = total * 0.5 + y * x
    return total


def dicts(x, n):
    state = {"a": x, "pair": (x * x, 3), "k": 0}
    for i in range(n):
        p, m = state["pair"]
        state = {"a": state["a"] * p + i, "pair": (math.sin(p) + state["k"], m + 1), "k": state["k"] + m}
    return state["a"] + state["pair"][0] * state["k"]


@dataclass(frozen=True)
class State:
    position: float
    velocity: float
    steps: int


def records(x, n):
    s = State(x, 1.0, 0)
    for _ in range(n):
        force = -math.sin(s.position) * x
        if s.velocity > 0.5:
            s = State(s.position + 0.1 * s.velocity, s.velocity + 0.1 * force, s.steps + 1)
        else:
            s = State(s.position, s.velocity * 0.9 + force * force, s.steps)
    return s.position * s.velocity * (s.steps + 1)


def arrays(x, n):
    a = np.zeros(4) + x
    for i in range(n):
        a[i % 4] = a[(i + 1) % 4] * math.cos(x) + a[0]
        a[1:3] += np.sin(a[:2])
        a = a * np.array([1.0, 0.5, 0.25, 2.0])
    return float(np.sum(a * a) + np.max(a))


# What is in the way of derivatives.


def stopped(x, n):
    y = x
    for _ in range(n):
        y = y * stop_gradient(y) + x
    return y


def checkpoints(x, n):
    y = x
    for _ in range(n):
        y = checkpoint(lambda z, w: math.sin(z * w) * z + w)(y, x)
    return y * checkpoint(even)(x, 2)


cube = custom_vjp(lambda x, k: x * x * x * k)


@cube.defvjp
def _(x, k, out, dout):
    return 3.0 * x * x * dout * k, None


def rules(x, n):
    y = x
    for i in range(n):
        y = cube(y, 0.5) + i * x if i < 2 else y * 0.5
    return y


weigh = custom_vjp(lambda p, k: p["a"] * p["b"][0] * k + p["b"][1])


@weigh.defvjp
def _(p, k, out, dout):
    return {"a": p["b"][0] * k * dout, "b": (p["a"] * k * dout, dout, None)}, None


def rules_of_structures(x, n):
    y = x
    for i in range(n + 1):
        y = weigh({"a": y, "b": (math.sin(x), x * i, 3)}, 0.5)
    return y


PROGRAMS = (
    even, more_and_more, two_ways, with_counts, recursion_in_a_loop, loop_in_a_recursion, trees, trees_twice, leftmost, breaks,
    early_return, nested_loops, loop_in_a_while, partly_linear, late_dependence, unused_results, branches,
    branches_in_loops, residuals_of_other_kinds, closures, nonlocals, lists, dicts, records, arrays, checkpoints, rules,
    rules_of_structures,
)  # fmt: skip
POINTS = [(0.75, 0), (1.25, 1), (0.625, 3)]


def difference(f, x, n, h=1e-5):
    return (f(x + h, n) - f(x - h, n)) / (2 * h)


def tangent(f):
    return lambda x, n: jvp(lambda y: f(y, n), (x,), (1.0,))[1]


def name(f):
    return getattr(f, "__name__", None)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("f", PROGRAMS, ids=name)
def test_first_order(f):
    both = relay(lambda x, n: (value_and_grad(f)(x, n), tangent(f)(x, n)), executor="interpreter")
    for x, n in POINTS:
        (value, reverse), forward = both(x, n)
        assert value == pytest.approx(f(x, n), rel=1e-13)
        assert reverse == pytest.approx(difference(f, x, n), rel=1e-7, abs=1e-9)
        assert forward == pytest.approx(reverse, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not trees_twice], ids=name)
@pytest.mark.sampled(14)
def test_second_order(f):
    first = relay(grad(f), executor="interpreter")
    wanted = difference(first, *POINTS[-1])
    for way in (grad(grad(f)), tangent(grad(f)), grad(tangent(f)), tangent(tangent(f))):
        assert relay(way, executor="interpreter")(*POINTS[-1]) == pytest.approx(wanted, rel=1e-6, abs=1e-7)


XS, NS = np.array([0.75, 1.25, 0.5]), np.array([3, 0, 2])


@pytest.mark.parametrize("f", PROGRAMS, ids=name)
@pytest.mark.sampled(10)
def test_batches(f):
    one = relay(value_and_grad(f), executor="interpreter")
    for ns, axis in ((2, None), (NS, 0)):
        both = relay(vmap(lambda x, n: value_and_grad(f)(float(x), int(n)), in_axes=(0, axis)), executor="interpreter")
        want = [one(x, n) for x, n in zip(XS.tolist(), np.broadcast_to(ns, 3).tolist())]
        np.testing.assert_allclose(np.transpose(both(XS, ns)), want, rtol=1e-12)


@pytest.mark.parametrize("f", [nested_loops, branches_in_loops, loop_in_a_while, even, lists], ids=name)
def test_batches_of_batches(f):
    """Of loops that turn as often for all examples of one batch, and differently for those of the other."""
    one = relay(grad(f), executor="interpreter")
    many = relay(
        vmap(vmap(lambda x, n: grad(f)(float(x), int(n)), in_axes=(0, None)), in_axes=(None, 0)), executor="interpreter"
    )
    np.testing.assert_allclose(many(XS, NS), [[one(x, n) for x in XS.tolist()] for n in NS.tolist()], rtol=1e-12)


def test_what_is_stopped_is_constant():
    f = relay(grad(stopped), executor="interpreter")
    x, y, slope = 1.25, 1.25, 1.0
    for _ in range(3):
        slope, y = slope * y + 1.0, y * y + x
    assert f(x, 3) == pytest.approx(slope, rel=1e-13)


def test_activities_of_a_structure_and_of_its_parts():
    assert activity.join(False, True) is True and activity.join((False, True), False) == (False, True)
    assert activity.join((False, True), (True, True)) == (True, True)
    assert activity.join((False, True), True) is True and activity.join(True, (False, True)) is True
