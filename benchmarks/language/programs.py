"""The programs of `python -m benchmarks language`: plain functions, as somebody would write them who thinks of no compiler.

CPython, `@relay` and Numba's `njit` run the same text. `CASES` says with which arguments, how much work that is, and how
results are told to be equal. Numba takes no recursive data, so `binary_trees` has no place there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


def fib(n):
    """The n-th Fibonacci number, by the definition."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def collatz(limit):
    """How many steps all numbers below `limit` take to 1, in all."""
    total = 0
    for start in range(1, limit):
        n = start
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            total += 1
    return total


def mandelbrot(image, limit):
    """The iterations after which each point of the plane is seen to escape; `image` says how large the picture is."""
    height, width = image.shape
    image = image.copy()
    for i in range(height):
        for j in range(width):
            cr = 3.0 * j / width - 2.0
            ci = 2.0 * i / height - 1.0
            x = 0.0
            y = 0.0
            n = 0
            while n < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + cr, 2.0 * x * y + ci
                n += 1
            image[i, j] = n
    return image


def edit_distance(a, b):
    """Levenshtein's distance of two sequences, by the whole table."""
    n = len(a)
    m = len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def nbody(positions, velocities, masses, steps, dt):
    """The planets' positions and velocities after some steps of a symplectic integrator (the Benchmarks Game's n-body)."""
    n = len(masses)
    p = positions.copy()
    v = velocities.copy()
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                dx = p[i, 0] - p[j, 0]
                dy = p[i, 1] - p[j, 1]
                dz = p[i, 2] - p[j, 2]
                d2 = dx * dx + dy * dy + dz * dz
                mag = dt / (d2 * math.sqrt(d2))
                mi = masses[i] * mag
                mj = masses[j] * mag
                v[i, 0] -= dx * mj
                v[i, 1] -= dy * mj
                v[i, 2] -= dz * mj
                v[j, 0] += dx * mi
                v[j, 1] += dy * mi
                v[j, 2] += dz * mi
        for i in range(n):
            p[i, 0] += dt * v[i, 0]
            p[i, 1] += dt * v[i, 1]
            p[i, 2] += dt * v[i, 2]
    return p, v


@dataclass(frozen=True)
class Leaf:
    """The end of a tree."""


@dataclass(frozen=True)
class Node:
    """Two trees."""

    left: Leaf | Node
    right: Leaf | Node


def make_tree(depth):
    """A complete tree."""
    if depth == 0:
        return Node(Leaf(), Leaf())
    return Node(make_tree(depth - 1), make_tree(depth - 1))


def count_nodes(tree: Leaf | Node):
    """How many nodes a tree has."""
    match tree:
        case Node(left, right):
            return 1 + count_nodes(left) + count_nodes(right)
        case _:
            return 0


def binary_trees(depth):
    """Nodes of many trees, made and thrown away (the Benchmarks Game's binary-trees)."""
    total = count_nodes(make_tree(depth + 1))
    long_lived = make_tree(depth)
    for d in range(4, depth + 1, 2):
        for _ in range(1 << (depth - d + 4)):
            total += count_nodes(make_tree(d))
    return total + count_nodes(long_lived)


# Jupiter and Saturn, Uranus and Neptune around the sun: astronomical units, days, and solar masses times 4 pi squared.
_SOLAR = 4 * math.pi**2
_DAYS = 365.24
_BODIES = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    (4.84143144246472090, -1.16032004402742839, -0.103622044471123109,
     0.00166007664274403694, 0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609),
    (8.34336671824457987, 4.12479856412430479, -0.403523417114321381,
     -0.00276742510726411021, 0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812),
    (12.8943695621391310, -15.1111514016986312, -0.223307578892655734,
     0.00296460137564761618, 0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298),
    (15.3796971148509165, -25.9193146099879641, 0.179258772950371181,
     0.00268067772490389322, 0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451),
)  # fmt: skip


def bodies() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and masses; the momentum of all is zero."""
    rows = np.array(_BODIES)
    p, v, m = rows[:, :3].copy(), rows[:, 3:6] * _DAYS, rows[:, 6] * _SOLAR
    v[0] = -(m[1:, None] * v[1:]).sum(axis=0) / _SOLAR
    return p, v, m


class Case(NamedTuple):
    """One program of the benchmark.

    Attributes:
        function: the program.
        arguments: of a size, what it is called with.
        work: of a size and the result, how much there was to do: CPython's time at a small size is scaled by it.
        sizes: the size of the benchmark, and the one at which CPython is measured.
        what: the work, in words.
        numba: whether Numba can compile it.
    """

    function: Callable[..., Any]
    arguments: Callable[[int], tuple]
    work: Callable[[int, Any], float]
    sizes: tuple[int, int]
    what: str
    numba: bool = True


def _words(n: int) -> tuple:
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, n), rng.integers(0, 4, n)


CASES = {
    "fib": Case(fib, lambda n: (n,), lambda n, result: result, (30, 24), "calls"),
    "collatz": Case(collatz, lambda n: (n,), lambda n, result: result, (1_000_000, 10_000), "steps"),
    "mandelbrot": Case(
        mandelbrot,
        lambda n: (np.zeros((n, n), np.int64), 50),
        lambda n, result: float(result.sum()),
        (1000, 120),
        "iterations",
    ),
    "binary_trees": Case(binary_trees, lambda n: (n,), lambda n, result: result, (18, 8), "nodes", numba=False),
    "edit_distance": Case(edit_distance, _words, lambda n, result: float(n * n), (4000, 200), "cells"),
    "nbody": Case(nbody, lambda n: (*bodies(), n, 0.001), lambda n, result: float(n), (1_000_000, 1000), "steps"),
}


def equal(a: Any, b: Any) -> bool:
    """Whether two results are the same, to the last bit."""
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    return np.asarray(a).dtype.kind == np.asarray(b).dtype.kind and np.array_equal(a, b)
