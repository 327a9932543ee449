"""Symbolic dimensions: divisions in their normal form have the values of those that are written."""

import itertools
import random

from myia_relay.abstract.dims import evaluate, symbol

N, M = symbol("n"), symbol("m")


def drawn(rng: random.Random, depth: int):
    """A dimension, and the function of n and m that it stands for."""
    if depth == 0:
        return rng.choice([(N, lambda n, m: n), (M, lambda n, m: m)])
    (a, f), (b, g) = drawn(rng, depth - 1), drawn(rng, depth - 1)
    k, c = rng.randint(-4, 4), rng.choice([1, 2, 2, 3, 4, 6, -2])
    return rng.choice(
        [
            (a + k * b, lambda n, m: f(n, m) + k * g(n, m)),
            (a * k + c, lambda n, m: f(n, m) * k + c),
            (a // c, lambda n, m: f(n, m) // c),
            ((a + k) // c, lambda n, m: (f(n, m) + k) // c),
        ]
    )


def test_divisions_have_their_values():
    rng = random.Random(0)
    for _ in range(300):
        dim, function = drawn(rng, 4)
        for n, m in itertools.product((0, 1, 2, 5, 6, 11, 12), (0, 1, 3, 8)):
            assert evaluate(dim, {"n": n, "m": m}.__getitem__) == function(n, m), dim


def test_equal_divisions_are_equal():
    assert (N - 1) // 2 + 1 == (N + 1) // 2
    assert ((N // 2) // 3 + 5) // 2 == (N // 6 + 5) // 2 == (N + 30) // 12
    assert (4 * N + 6) // 4 == N + 1
    assert (N + M) // 2 != N // 2 + M // 2
