"""Loops that exchange arrays: several iterations as one, with the same results to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay, vmap
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.loops.exchanged_buffers import ExchangeBuffers
from tests.property.test_random_aliases import plain


def two(x, n):
    old, new = x.copy(), x.copy()
    for _ in range(n):
        for i in range(1, len(x) - 1):
            new[i] = 0.5 * (old[i - 1] + old[i + 1])
        old, new = new, old
    return old, new


def of_slices(x, n):
    old, new, k = x.copy(), x * 2, 0
    while k < n:
        new[1:-1] = 0.5 * (old[:-2] + old[2:]) + k
        old, new = new, old
        k += 1
    return old, new, k


def until_small(x, n):
    old, new = x.copy(), x.copy()
    change = 1.0
    while change > 10.0**-n:
        new[1:-1] = 0.25 * (old[:-2] + 2 * old[1:-1] + old[2:])
        change = np.max(np.abs(new - old))
        old, new = new, old
    return old, change


def three(x, n):
    before, now, after = x.copy(), x * 2, np.zeros_like(x)
    for k in range(2, n + 2):
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.01 * k * (now[:-2] - 2 * now[1:-1] + now[2:])
        before, now, after = now, after, before
    return before, now, after


def two_and_three(x, n):
    a, b, c, d, e = x.copy(), x + 1, x + 2, x + 3, x + 4
    for k in range(n):
        b[k] = a[k + 1] * 2
        d[k + 1] = c[k] + e[k]
        a, b, c, d, e = b, a, d, e, c
    return a, b, c, d, e


def in_a_loop(x, n):
    a, b = x.copy(), x * 2
    for k in range(n):
        for j in range(k):
            a[j] = b[j + 1] + 1
            a, b = b, a
        b[k] = a[k + 1] * 2
    return a, b


def some_rows(x, n):
    old, new = x.reshape(10, 10).copy(), x.reshape(10, 10) * 2
    for k in range(n):
        if k % 3 == 2:
            continue
        new[k] = old[k + 1] + old[:, k]
        old, new = new, old
    return old, new


def returning(x, n):
    old, new = x.copy(), x.copy()
    for k in range(n):
        new[k] = old[k + 1] + 1
        old, new = new, old
        if old[k] > 4:
            return old
    return new


PROGRAMS = [two, of_slices, until_small, three, two_and_three, in_a_loop, some_rows, returning]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_results(function):
    x = np.linspace(0.1, 3.0, 100)
    compiled = relay(function, executor="native")
    for n in range(6):
        assert plain(compiled(x, n)) == plain(function(x, n))


def steps_of(function):
    """The constant steps of the counted loops of a program, after the pass."""
    graph = ExchangeBuffers()(relay(function).ir(np.ones(100), 3, stage="optimized").graph)
    loops = [n for g in all_graphs(graph) for n in g.nodes if applied(n) == "for_loop"]
    return sorted(n.args[2].value for n in loops)


def test_which_loops_are_written_out():
    assert steps_of(two)[-1] == 2
    assert steps_of(three) == [3]
    assert steps_of(two_and_three) == [1]  # six times is too often
    assert ExchangeBuffers()(graph := relay(lambda x: x.sum()).ir(np.ones(100), stage="optimized").graph) is graph


def test_derivatives_and_batches():
    x = np.linspace(0.1, 3.0, 100)

    def loss(v, n):
        before, now, _ = three(v, n)
        return before @ now

    direction = np.cos(x)
    for n in (1, 2, 3, 4):
        slope = (loss(x + 1e-6 * direction, n) - loss(x - 1e-6 * direction, n)) / 2e-6
        assert grad(loss)(x, n) @ direction == pytest.approx(slope, rel=1e-6)
        batch = np.stack([x, 2 * x])
        np.testing.assert_allclose(vmap(lambda v, n=n: three(v, n)[1])(batch), [three(v, n)[1] for v in batch])
