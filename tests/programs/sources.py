"""Small programs, each with inputs: what they return under CPython is what every executor must return.

A program that must fail names the exception. Nothing here imports the compiler: these are plain functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Program:
    """A function, argument tuples, and the exception it must raise, if any."""

    function: Any
    inputs: list[tuple]
    raises: type | None = None
    tags: tuple[str, ...] = field(default=())


class Pair(NamedTuple):
    left: float
    right: float


@dataclass(frozen=True)
class Point:
    x: float
    y: float

    def norm2(self):
        return self.x * self.x + self.y * self.y

    @property
    def total(self):
        return self.x + self.y


def polynomial(x, y):
    return x * y + x / y - x**2


def integers(a, b):
    return a + b, a - b, a * b, a // b, a % b, -a, a < b, a == b, abs(a)


def floats(a, b):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a, a < b, a == b, not (a < b), a != a


def residue():
    a = 0.1
    b = 10.0
    return a * b - 1.0


def residue_of(a, b):
    return a * b - 1.0


def divide(a, b):
    return a / b


def floor_divide(a, b):
    return a // b


def overflowing(a, b):
    return a * b + 1


def absolute_loop(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        if i > 10:
            break
        total += i
    else:
        total += 1000
    return total


def nested_loops(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 3:
                break
            total += i * j
        else:
            total += 1000
    return total


def early_return(n):
    for i in range(n):
        if i * i > n:
            return i
    return -1


def while_else(n):
    steps = 0
    while n > 1:
        if n == 13:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    else:
        steps = -steps
    return steps


def newton(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def zero_trips(n):
    x = 1.5
    for i in range(n):
        x = x * i
    return x


def reversed_range(n):
    out = 0
    for i in range(n, -n, -3):
        out = out * 2 + i
    return out


def chained(a, b, c):
    return a < b < c, a < b > c, a == b != c


def short_circuit(x, y):
    return y != 0 and x / y > 1


def operands(a, b):
    return a or b, a and b


def closure_scale(x, k):
    def scale(v):
        return v * k

    return scale(x) + scale(k)


def higher_order(x):
    def twice(f, v):
        return f(f(v))

    return twice(lambda v: v * v + 1.0, x)


def defaults(x, *rest, scale=2.0):
    total = x
    for r in rest:
        total = total + r
    return total * scale


def call_defaults(x):
    return defaults(x), defaults(x, 1.0, 2.0), defaults(x, scale=3.0)


def unpacking(t):
    a, (b, *c) = t
    return c, b, a


def structures(x):
    d = {"a": x, "b": (x, x + 1)}
    first, second = d["b"]
    return {"sum": first + second, "a": d["a"]}, [x, x * 2], (x,)


def records(p):
    return p.left * p.right, Pair(p.right, p.left)


def methods(p):
    return p.norm2() + p.total, Point(p.y, p.x)


def tuple_index(i):
    t = (4, 8, 15)
    return t[i]


def comprehension(x):
    return [x * i for i in (1, 2, 3)], sum([x + i for i in (1.0, 2.0)])


def zipped(x):
    total = 0.0
    for i, (a, b) in enumerate(zip((1.0, 2.0, 3.0), (x, x, x))):
        total += a * b + i
    return total


def match_kinds(x):
    match x:
        case ("circle", r):
            return math.pi * r**2
        case ("rect", w, h):
            return w * h
        case _:
            return 0.0


def assertion(x):
    assert x >= 0.0, f"negative: {x}"
    return math.sqrt(x)


def raising(x):
    if x > 10.0:
        raise ValueError(f"too large: {x}")
    return x


def unbound(x):
    if x > 0:
        y = x
    return y


def axpy(a, x, y):
    return a * x + y


def normalise(x):
    m = np.mean(x, axis=0)
    s = np.sqrt(np.mean((x - m) ** 2, axis=0) + 1e-5)
    return (x - m) / s


def matmuls(a, b, v):
    return a @ b, a @ v, v @ b @ b.T


def reductions(x):
    return x.sum(), np.max(x, axis=1), x.min(), np.argmax(x), np.prod(x, axis=0), x.mean(axis=1, keepdims=True)


def shapes(x):
    return x.reshape(-1), x.T, x[1:, ::-1], x[..., None], np.concatenate([x, x], axis=1), x[0, 1], x[-1]


def transcendental(x):
    return np.tanh(x) + np.exp(-x) * np.log(x + 3.0) + np.sin(x) * np.cos(x) + np.sqrt(x + 3.0)


def row_loop(x):
    total = np.zeros(3)
    for row in x:
        total = total + row * row
    return total


def array_index(x, i):
    return x[i]


def where_nan(x):
    return np.where(x > 0, np.log(np.abs(x)), 0.0), np.maximum(x, 1.0), np.minimum(1.0, x), x != x


def numpy_scalars(x):
    return x / 0, x * 2, x + 1.5, -x


def int32_wraps(x):
    return x * 2 + 1


def empty(x):
    return x.sum(), x * 2.0


INF, NAN = math.inf, math.nan
A = np.arange(12.0).reshape(3, 4) / 7 - 0.5
F = A.astype(np.float32)
EDGE = np.array([NAN, INF, -INF, 0.0, -0.0, 1.5, -2.0])

PROGRAMS = [
    Program(polynomial, [(2.0, 3.0), (2, 3), (2, 1.5)]),
    Program(integers, [(7, 2), (-7, 2), (7, -2), (-7, -2), (2**62, 1), (-(2**63) + 5, 1)]),
    Program(
        floats, [(7.0, 2.0), (-7.5, 2.0), (7.0, -2.5), (NAN, 1.0), (1.0, INF), (-0.0, 3.0), (INF, 2.0), (-1e-300, 2.0)]
    ),
    Program(residue, [()]),
    Program(residue_of, [(0.1, 10.0), (1e308, 10.0)]),
    Program(divide, [(1.0, 0.0), (1, 0)], ZeroDivisionError),
    Program(divide, [(1, 3), (2**53 + 1, 3), (-0.0, 5.0)]),
    Program(floor_divide, [(1, 0), (1.0, 0.0)], ZeroDivisionError),
    Program(overflowing, [(2**62, 2), (-(2**62), 3), (2**32, 2**32)], OverflowError),
    Program(overflowing, [(2**31, 2**31), (3037000499, 3037000499)]),
    Program(absolute_loop, [(0,), (5,), (100,)]),
    Program(nested_loops, [(0,), (6,)]),
    Program(early_return, [(0,), (17,), (1000,)]),
    Program(while_else, [(1,), (6,), (27,)]),
    Program(newton, [(2.0,), (1e6,)]),
    Program(zero_trips, [(0,), (-3,), (4,)]),
    Program(reversed_range, [(7,), (0,)]),
    Program(chained, [(1, 2, 3), (3, 2, 1), (1.0, NAN, 2.0)]),
    Program(short_circuit, [(1, 0), (3, 2), (1.0, 0.0)]),
    Program(operands, [(0, 5), (3, 0), (0.0, 2.5)]),
    Program(closure_scale, [(2.0, 3.0)]),
    Program(higher_order, [(1.5,)]),
    Program(call_defaults, [(1.0,)]),
    Program(unpacking, [((1, (2, 3, 4)),), ((1.0, (2.0,)),)]),
    Program(structures, [(2.5,), (3,)]),
    Program(records, [(Pair(2.0, 3.0),)]),
    Program(methods, [(Point(3.0, 4.0),)]),
    Program(tuple_index, [(0,), (-1,)]),
    Program(tuple_index, [(3,), (-4,)], IndexError),
    Program(comprehension, [(2.0,)]),
    Program(zipped, [(2.0,)]),
    Program(match_kinds, [(("circle", 2.0),), (("rect", 2.0, 3.0),), (("other",),)]),
    Program(assertion, [(4.0,)]),
    Program(assertion, [(-1.5,)], AssertionError),
    Program(raising, [(1.0,)]),
    Program(raising, [(12.5,)], ValueError),
    Program(unbound, [(2.0,)]),
    Program(unbound, [(-2.0,)], UnboundLocalError),
    Program(axpy, [(2.0, A, A[0]), (np.float32(2), F, F), (2, F, F), (0.5, A[:, ::2], A[:, 1::2])]),
    Program(normalise, [(A,), (F,)]),
    Program(matmuls, [(A @ A.T, A, np.arange(3.0))]),
    Program(reductions, [(A,), (F,)]),
    Program(shapes, [(A,), (F,), (np.arange(6).reshape(2, 3),)]),
    Program(transcendental, [(A,), (F,), (0.25,)]),
    Program(row_loop, [(A[:, :3],), (np.zeros((0, 3)),)]),
    Program(array_index, [(A[0], 2), (A, -1)]),
    Program(array_index, [(A[0], 4), (A, -4)], IndexError),
    Program(where_nan, [(EDGE,), (EDGE.astype(np.float32),)]),
    Program(numpy_scalars, [(np.float64(1.5),), (np.float32(-2.0),)]),
    Program(int32_wraps, [(np.array([2**30, -(2**31), 3], np.int32),), (np.int64(3),)]),
    Program(empty, [(np.zeros(0),), (np.zeros((2, 0), np.float32),)]),
]
