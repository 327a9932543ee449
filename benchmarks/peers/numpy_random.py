"""Random numbers of NumPy, from its fastest generator."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.random_numbers import GAMMA_SHAPE, PROBABILITY, SIDES, STEP, serve_draws


def metropolis(generator, n):
    """The mean square of a chain of standard normal numbers."""
    moves, clocks = generator.standard_normal(n).tolist(), generator.standard_exponential(n).tolist()
    x, total = 0.0, 0.0
    for move, clock in zip(moves, clocks, strict=True):
        y = x + STEP * move
        if clock > 0.5 * (y * y - x * x):
            x = y
        total += x * x
    return total / n


def make(options: argparse.Namespace) -> dict[str, Callable[[int], Any]]:
    """The draws; the seed is not looked at, since a generator goes on."""
    n = options.count
    g = np.random.Generator(np.random.SFC64(0))
    wide, narrow = np.empty(n), np.empty(n, np.float32)
    return {
        "uniform float64": lambda seed: g.random(out=wide),
        "uniform float32": lambda seed: g.random(dtype=np.float32, out=narrow),
        "normal float64": lambda seed: g.standard_normal(out=wide),
        "normal float32": lambda seed: g.standard_normal(dtype=np.float32, out=narrow),
        "exponential float64": lambda seed: g.standard_exponential(out=wide),
        "gumbel float64": lambda seed: g.gumbel(size=n),
        "gamma float64": lambda seed: g.standard_gamma(GAMMA_SHAPE, out=wide),
        "randint": lambda seed: g.integers(0, SIDES, n),
        "bernoulli": lambda seed: g.random(out=wide) < PROBABILITY,
        "permutation": lambda seed: g.permutation(n),
        "metropolis": lambda seed: metropolis(g, n),
    }


if __name__ == "__main__":
    serve_draws(make)
