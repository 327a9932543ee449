"""Differentiable programs with points: what their gradients are checked at. Plain functions of plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Body:
    mass: float
    position: tuple


class Line(NamedTuple):
    slope: float
    offset: float


def straight(x):
    return x**3 * math.sin(x) + math.exp(-x) / (1.0 + x * x)


def branching(x):
    if x > 0.5:
        return x**3
    return math.sin(x)


def ternary(x):
    return (x * x if x < 1.0 else 3.0 * x) * (2.0 if x > 0 else x)


def halving(x):
    n = 5.0
    while n > 1.0:
        x = x * x + n * x
        n = n / 2.0
    return x


def until_large(x):
    while x < 10.0:
        x = x * 1.5 + 0.1 * x * x
    return x


def powers(x):
    total = 0.0
    for i in range(4):
        total = total + x**i * (i + 1)
    return total


def breaking(x):
    total = x
    for i in range(10):
        if total > 5.0:
            break
        if i == 1:
            continue
        total = total * (1.0 + x) + i
    else:
        total = total * 100.0
    return total


def nested(x):
    total = 0.0
    for i in range(3):
        y = x
        while y < 4.0:
            y = y * y + i + 1.0
        for _ in range(i):
            total = total + y * x
    return total


def early(x):
    for i in range(5):
        x = x * x + 0.5
        if x > 2.0:
            return x * i
    return x


def closures(x):
    def scaled(v):
        return v * x

    twice = lambda f: lambda v: f(f(v))  # noqa: E731
    return twice(scaled)(x) + scaled(2.0)


def zero_trips(x):
    y = x * x
    for i in range(0):
        y = y * i
    return y


def unused_branch(x):
    return math.log(x) if x > 0 else 0.0


def clipped(x):
    return max(min(x, 2.0), -1.0) ** 2 + abs(x)


SCALAR = [
    (straight, (0.3, -1.2)),
    (branching, (0.2, 0.9)),
    (ternary, (0.4, -0.7, 1.8)),
    (halving, (0.2, -0.3)),
    (until_large, (0.7, 3.0, 12.0)),
    (powers, (0.5, -1.5)),
    (breaking, (0.1, 1.1)),
    (nested, (0.4, 1.3)),
    (early, (0.3, 1.2)),
    (closures, (0.8,)),
    (zero_trips, (1.7,)),
    (unused_branch, (2.0, -1.0)),
    (clipped, (0.6, 3.0)),
]


def softmax_loss(x):
    z = x - np.max(x)
    return -np.sum(np.log(np.exp(z) / np.sum(np.exp(z))) * np.array([0.2, 0.3, 0.5]))


def matrix_chain(x):
    w = np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.2], [0.1, 0.7, 0.9]])
    return np.sum(np.tanh(w @ x) @ w * x)


def rows(x):
    total = 0.0
    for row in x.reshape(3, 1) * np.ones((3, 2)):
        total = total + np.sum(row * row * row)
    return total


def indexed(x):
    return x[0] * x[-1] + np.sum(x[::-1] * x[1]) + np.sum(x[np.array([0, 0, 2])] ** 2)


def selected(x):
    return np.sum(np.where(x > 0.0, x * x, np.sin(x))) + np.max(x) * np.min(x)


def reductions(x):
    return np.prod(x) + np.mean(x) * np.var(x) + np.linalg.norm(x)


def recurrent(x):
    h = np.zeros(3)
    for i in range(3):
        h = np.tanh(h * 0.5 + x * (i + 1.0))
    return np.sum(h)


def written(x):
    y = np.zeros(4)
    for i in range(3):
        y[i + 1] = x[i] * y[i] + x[i]
    return np.sum(y * y)


def none_trips(x):
    y = x * x
    for _ in x[:0]:
        y = y * 2.0
    return np.sum(y * x)


def concatenated(x):
    y = np.concatenate([x, x * x])
    return np.sum(np.stack([y, y[::-1]]).T @ np.array([1.0, -0.5]) * y)


ARRAY = [
    softmax_loss, matrix_chain, rows, indexed, selected, reductions, recurrent, written, none_trips, concatenated,
]  # fmt: skip
