"""Random numbers of JAX, jitted, with its default generator; on as many cores as there are threads."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, random

from benchmarks.random_numbers import GAMMA_SHAPE, PROBABILITY, SIDES, STEP, serve_draws
from benchmarks.workers import limit_cores

limit_cores(int(os.environ["OMP_NUM_THREADS"]))
jax.config.update("jax_enable_x64", True)


def metropolis(key, n):
    """The mean square of a chain of standard normal numbers."""

    def step(i, state):
        x, total = state
        a, b = random.split(random.fold_in(key, i))
        y = x + STEP * random.normal(a)
        x = jnp.where(random.exponential(b) > 0.5 * (y * y - x * x), y, x)
        return x, total + x * x

    return lax.fori_loop(0, n, step, (0.0, 0.0))[1] / n


def make(options: argparse.Namespace) -> dict[str, Callable[[int], Any]]:
    """The draws."""
    n = options.count

    def draw(function):
        jitted = jax.jit(function)
        return lambda seed: jax.block_until_ready(jitted(random.key(seed)))

    return {
        "uniform float64": draw(lambda key: random.uniform(key, (n,))),
        "uniform float32": draw(lambda key: random.uniform(key, (n,), jnp.float32)),
        "normal float64": draw(lambda key: random.normal(key, (n,))),
        "normal float32": draw(lambda key: random.normal(key, (n,), jnp.float32)),
        "exponential float64": draw(lambda key: random.exponential(key, (n,))),
        "gumbel float64": draw(lambda key: random.gumbel(key, (n,))),
        "gamma float64": draw(lambda key: random.gamma(key, GAMMA_SHAPE, (n,))),
        "randint": draw(lambda key: random.randint(key, (n,), 0, SIDES)),
        "bernoulli": draw(lambda key: random.bernoulli(key, PROBABILITY, (n,))),
        "permutation": draw(lambda key: random.permutation(key, n)),
        "metropolis": draw(lambda key: metropolis(key, n)),
    }


if __name__ == "__main__":
    serve_draws(make)
