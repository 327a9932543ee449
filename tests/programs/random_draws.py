"""What the tests of random numbers share: statistics written out, and draws of every distribution."""

from __future__ import annotations

import math

import numpy as np

from myia_relay import relay

random = relay.random
EXECUTORS = ("interpreter", "python", "native")
N = 200_000
KEY = random.key(20)


def kolmogorov_smirnov(x, distribution) -> float:
    """The p-value of the largest distance between the empirical distribution of `x` and a continuous one."""
    x = np.sort(np.ravel(x))
    n = len(x)
    f = np.asarray([distribution(v) for v in x])
    distance = max(np.max(np.arange(1, n + 1) / n - f), np.max(f - np.arange(n) / n))
    t = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * distance
    return min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * t * t) for k in range(1, 50)))


def chi_square(counts, expected) -> float:
    """The p-value of counts that are expected to be so many, by Wilson and Hilferty's normal approximation."""
    counts, expected = np.ravel(counts), np.broadcast_to(expected, np.shape(counts)).ravel()
    freedom = len(counts) - 1
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return 0.5 * math.erfc(z / math.sqrt(2))


def normal_distribution(x) -> float:
    """The probability that a standard normal number is at most x."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def same_bits(a, b) -> bool:
    """Whether two results are equal in kind, dtype, shape and every bit."""
    a_, b_ = np.asarray(a), np.asarray(b)
    return type(a) is type(b) and a_.dtype == b_.dtype and a_.shape == b_.shape and a_.tobytes() == b_.tobytes()
