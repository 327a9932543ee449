"""Ten small programs, one for each part of the language that the intermediate representation has a form for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from myia_relay import grad, vmap


def straight_line(x, y):
    a = x * y + 2.0
    return a - x / y, a


def branch(x):
    if x > 1.0:
        y = x * 2.0
    elif x < -1.0:
        y = -x
    else:
        y = 0.0
    return y + 1.0


def counted_loop(xs, n):
    total = 0.0
    for i in range(n):
        total += xs[i] * i
    return total


def waiting_loop(n):
    k = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k = k + 1
        if k > 100:
            break
    return k


def closure(x, flag):
    def scale(y):
        return y * x

    def shift(y):
        return y + x

    f = scale if flag else shift
    return f(3.0) + scale(2.0)


def recursion(a, b):
    return a if b == 0 else recursion(b, a % b)


@dataclass(frozen=True)
class Cell:
    head: float
    tail: Cell | None


def matched(cell: Cell | None) -> float:
    match cell:
        case Cell(head, tail):
            return head * matched(tail)
        case None:
            return 1.0


def arrays(x, w):
    h = np.maximum(x @ w, 0.0)
    return np.sum(h * h, axis=1) / h.shape[1]


def slope(x, n):
    def f(x):
        y = x
        for _ in range(n):
            y = math.sin(y) if y > 0.0 else y * y
        return y

    return grad(f)(x)


def batch(xs, w):
    return vmap(lambda x: np.dot(x, w) if w[0] > 0.0 else np.sum(x))(xs)


PROGRAMS = {
    straight_line: (2.0, 3.0),
    branch: (2.0,),
    counted_loop: (np.arange(3.0), 3),
    waiting_loop: (7,),
    closure: (2.0, True),
    recursion: (12, 18),
    matched: (Cell(1.0, Cell(2.0, None)),),
    arrays: (np.ones((2, 3)), np.ones((3, 4))),
    slope: (0.5, 3),
    batch: (np.ones((4, 3)), np.ones(3)),
}
