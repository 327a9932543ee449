"""Warm calls of small functions in JAX: jitted, with the other system's NumPy arguments, waiting for the result."""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.calls import SIZE, TREE_KEYS, TREE_SIZE, Work, serve_work

jax.config.update("jax_enable_x64", True)  # Python floats are 64 bits wide in the other system


def scalar(x, y):
    """Two numbers -> a number."""
    return (x * x + y) * 0.25


def arrays(a, b, c):
    """Three arrays -> an array."""
    return a * b + c


def tree(parts, x):
    """A dict of arrays and a number -> a number."""
    return sum(jnp.sum(parts[key] * x) for key in TREE_KEYS)


def loop(function, carried):
    """Iterations of a function, its result taking the place of one of its arguments."""

    def run(*args_and_iterations):
        *args, iterations = args_and_iterations

        def iteration(_, value):
            return function(*args[:carried], value, *args[carried + 1 :])

        return lax.fori_loop(0, iterations, iteration, jnp.asarray(args[carried]))

    return jax.jit(run)


def waiting(function):
    """A jitted function that returns when its result is there."""
    jitted = jax.jit(function)
    return lambda *args: jax.block_until_ready(jitted(*args))


def make(options: argparse.Namespace) -> dict[str, Work]:
    """The functions and their arguments."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(SIZE, dtype=np.float32) * np.float32(0.5) for _ in range(3))
    parts = {key: rng.random(TREE_SIZE, dtype=np.float32) / np.float32(10 * TREE_SIZE) for key in TREE_KEYS}
    return {
        "scalar": Work(waiting(scalar), waiting(loop(scalar, 0)), (0.5, 0.25)),
        "arrays": Work(waiting(arrays), waiting(loop(arrays, 0)), (a, b, c)),
        "tree": Work(waiting(tree), waiting(loop(tree, 1)), (parts, np.float32(0.5))),
    }


if __name__ == "__main__":
    serve_work(make)
