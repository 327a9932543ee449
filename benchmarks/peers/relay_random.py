"""Random numbers of this compiler."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.random_numbers import GAMMA_SHAPE, PROBABILITY, SIDES, STEP, serve_draws
from myia_relay import relay

random = relay.random


def metropolis(key, n):
    """The mean square of a chain of standard normal numbers."""
    x, total = 0.0, 0.0
    for i in range(n):
        a, b = random.split(random.fold_in(key, i))
        y = x + STEP * random.normal(a)
        if random.exponential(b) > 0.5 * (y * y - x * x):
            x = y
        total += x * x
    return total / n


def make(options: argparse.Namespace) -> dict[str, Callable[[int], Any]]:
    """The draws."""
    n = options.count

    def draw(function):
        compiled = relay(function, executor=options.executor)
        return lambda seed: compiled(random.key(seed))

    sampler = relay(metropolis, executor=options.executor)
    return {
        "uniform float64": draw(lambda key: random.uniform(key, (n,))),
        "uniform float32": draw(lambda key: random.uniform(key, (n,), dtype=np.float32)),
        "normal float64": draw(lambda key: random.normal(key, (n,))),
        "normal float32": draw(lambda key: random.normal(key, (n,), dtype=np.float32)),
        "exponential float64": draw(lambda key: random.exponential(key, (n,))),
        "gumbel float64": draw(lambda key: random.gumbel(key, (n,))),
        "gamma float64": draw(lambda key: random.gamma(key, GAMMA_SHAPE, (n,))),
        "randint": draw(lambda key: random.randint(key, (n,), 0, SIDES)),
        "bernoulli": draw(lambda key: random.bernoulli(key, PROBABILITY, (n,))),
        "permutation": draw(lambda key: random.permutation(key, n)),
        "metropolis": lambda seed: sampler(random.key(seed), n),
    }


if __name__ == "__main__":
    serve_draws(make)
