"""Warm calls of small functions in this compiler; `--variant` names the executor."""

# No `from __future__ import annotations` here: annotations are part of decorated programs.
import argparse

import numpy as np

from benchmarks.calls import SIZE, TREE_KEYS, TREE_SIZE, Work, serve_work
from myia_relay import relay


def scalar(x, y):
    """Two numbers -> a number."""
    return (x * x + y) * 0.25


def arrays(a, b, c):
    """Three arrays -> an array."""
    return a * b + c


def tree(parts, x):
    """A dict of arrays and a number -> a number."""
    total = np.float32(0.0)
    for key in TREE_KEYS:
        total = total + np.sum(parts[key] * x)
    return total


def scalar_loop(x, y, iterations):
    """Iterations that need each other's result, so that none can be left out."""
    for _ in range(iterations):
        x = scalar(x, y)
    return x


def arrays_loop(a, b, c, iterations):
    """The same for arrays."""
    for _ in range(iterations):
        a = arrays(a, b, c)
    return a


def tree_loop(parts, x, iterations):
    """The same for a dict of arrays."""
    for _ in range(iterations):
        x = tree(parts, x)
    return x


def make(options: argparse.Namespace) -> dict[str, Work]:
    """The functions and their arguments."""
    compiled = relay(executor=options.variant or "native")
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(SIZE, dtype=np.float32) * np.float32(0.5) for _ in range(3))
    parts = {key: rng.random(TREE_SIZE, dtype=np.float32) / np.float32(10 * TREE_SIZE) for key in TREE_KEYS}
    return {
        "scalar": Work(compiled(scalar), compiled(scalar_loop), (0.5, 0.25)),
        "arrays": Work(compiled(arrays), compiled(arrays_loop), (a, b, c)),
        "tree": Work(compiled(tree), compiled(tree_loop), (parts, np.float32(0.5))),
    }


if __name__ == "__main__":
    serve_work(make)
