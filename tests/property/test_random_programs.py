"""Random programs with branches and loops in each other: one answer whichever way they run, batched or not.

Gradients of gradients agree with central differences.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from myia_relay.abstract.types import FLOAT, INT
from myia_relay.ad.expand import vmap_graph
from myia_relay.backend.interpreter import run
from myia_relay.ir.verify import verify
from tests.typed_graphs import P, assert_close, build, call, cond, expanded, for_, grad, numeric, run_all, staged

POINTS = np.array([0.31, -0.72, 1.13])
ITERATIONS = np.array([2, 0, 3])


class Program:
    """A random smooth function of (x, n), the same at every call for one seed."""

    def __init__(self, seed: int, depth: int):
        self.seed, self.depth = seed, depth

    def __call__(self, x, n):
        self.random = random.Random(self.seed)
        return self.block([x, x * 0.5], n, self.depth)

    def operation(self, values):
        a, b = self.random.choice(values), self.random.choice(values)
        return self.random.choice(
            [
                lambda: P["sin"](a) * b,
                lambda: P["tanh"](a + b),
                lambda: a * b * 0.7,
                lambda: P["exp"](-(a * a)) - b,
                lambda: a / (b * b + 1.0),
                lambda: P["where"](a > b, P["tanh"](a), b),
            ]
        )()

    def block(self, values, n, depth):
        values = list(values)
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["op", "op", "cond", "for", "call"]) if depth else "op"
            values.append(getattr(self, "op_" + kind)(values, n, depth))
        return self.operation(values[-2:])

    def op_op(self, values, n, depth):
        return self.operation(values)

    def inner(self, depth):
        """A block as a function of two values and a count."""
        return lambda a, b, n: self.block([a, b], n, depth - 1)

    def op_cond(self, values, n, depth):
        a, b = self.random.choice(values), self.random.choice(values)
        return cond(a > 0.1, self.inner(depth), self.inner(depth), a, b, n)

    def op_for(self, values, n, depth):
        a, b = self.random.choice(values), self.random.choice(values)
        start, step = self.random.choice([(0, 1), (1, 1), (4, -2), (0, 2)])

        def body(i, p, q, b, n):
            weight = P["cast"](i, dtype="float64", weak=True) * 0.1
            new = self.block([p, q + weight, b], n, depth - 1)
            return staged(p.builder, (P["tanh"](new), p) if self.random.random() < 0.7 else (P["tanh"](new), b))

        out = for_((start, n, step), body, (a, b), (b, n))
        return out[self.random.randint(0, 1)] + out[0]

    def op_call(self, values, n, depth):
        a, b = self.random.choice(values), self.random.choice(values)
        return call(build(self.inner(depth), FLOAT, FLOAT, INT, name="called"), a, b, n)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(6)
def test_random_programs(seed):
    check(Program(seed, 2), 3)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100))
def test_more_random_programs(seed):
    check(Program(seed, 3), 3)


def check(f, orders):
    for order in range(orders):
        g = expanded(build(f, FLOAT, INT))
        values = [run_all(g, [float(x), int(n)]) for x, n in zip(POINTS, ITERATIONS)]
        many = verify(vmap_graph(g, (True, True), len(POINTS)), "vmap", transforms=False)
        assert_close(run_all(many, [POINTS, ITERATIONS]), np.array(values))
        if order < orders - 1:
            slopes = [float(numeric(f, float(x), int(n))) for x, n in zip(POINTS, ITERATIONS)]
            f = grad(f)
            got = [run(expanded(build(f, FLOAT, INT)), [float(x), int(n)]) for x, n in zip(POINTS, ITERATIONS)]
            np.testing.assert_allclose(got, slopes, rtol=2e-4, atol=2e-5)
