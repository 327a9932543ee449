"""Small things of Python: numbers, sequences, strings, dicts, records; each as CPython has it."""


# ruff: noqa: C416

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, relay
from tests.programs.cases import Cases, agree

case = Cases()


class Pair(NamedTuple):
    a: int
    b: float = 2.0


@dataclass(frozen=True)
class D:
    x: float
    y: float = 1.0

    def __bool__(self):
        return self.x > 0


@dataclass(frozen=True)
class Factory:
    x: float
    entries: list = field(default_factory=list)


@dataclass(frozen=True)
class Checked:
    x: float

    def __post_init__(self):
        assert self.x > 0


@dataclass(frozen=True)
class Written:
    x: float

    def __init__(self, v):
        object.__setattr__(self, "x", v * 10)


@case((Pair(1),))
def named(t):
    return t._replace(a=5), t._asdict(), t._fields


@case((3,), (-1,), (-2,), (0,))
def raises(a):
    if a < 0:
        raise ValueError("neg") if a == -1 else KeyError("k")
    if a == 0:
        raise RuntimeError
    return a


@case((np.arange(3.0), 1.0), (np.arange(3.0), 9.0), (np.zeros((0, 2)), 0.0), (np.array([[np.nan, 2.0]]), np.nan))
def in_array(x, v):
    return v in x, v not in x


@case((4,), (0,))
def spread_ranges(n):
    def count(*args):
        return len(args)

    return [*range(n), *range(2)], (*range(3), *zip((1, 2), (3, 4))), count(*range(5)), [*reversed([1, n])]


@case((1.0,))
def factory(v):
    return Factory(v), Factory(v, [1]).entries


@case((3,), (0,), (-2,))
def w_else(n):
    while n > 0:
        n -= 1
        if n == 5:
            break
    else:
        n = 100
    return n


@case((3,), (10,))
def f_else(n):
    for i in range(n):
        for j in range(i):
            if j == 4:
                break
        else:
            continue
        break
    else:
        return -1, i
    return i, j


@case((3,), (0,))
def one_branch(n):
    if n > 1:
        y = 1
    return y


@case((1, 2, 3), (3, 2, 1))
def chained(a, b, c):
    log = []

    def t(v):
        log.append(v)
        return v

    return a < b < c


@case((-7, 2), (7, -2), (-7, -2), (7, 2))
def divs(a, b):
    return a // b, a % b, divmod(a, b), a / b, -a // b, a % -b


@case((-7.5, 2.0), (7.5, -2.0), (0.0, -3.0), (-0.0, 3.0), (math.inf, 2.0), (5.0, math.inf), (-5.0, math.inf))
def fdivs(a, b):
    return a // b, a % b, divmod(a, b)


@case((2.0, 3), (0.0, 0), (-2.0, 3), (4.0, -1))
def fpows(a, b):
    return a**b, a**2, a**-2 if a else 0


@case((5, 3), (0, 3), (0, 0))
def boolops(a, b):
    return a and b, a or b, not a, (a and b) or 7, a and b and 3, a or b or 0


@case((6, 3))
def bits(a, b):
    return a & b, a | b, a ^ b, ~a, a << b, a >> b, -a >> 1


@case((3, -1))
def badshift(a, b):
    return a << b


@case((1e300, 1e10))
def fovf(a, b):
    return a * b


@case((math.nan,), (math.inf,))
def toint(a):
    return int(a)


@case(((1, 2, 3, 4, 5),))
def star(t):
    a, *b, c = t
    (d, e), *f = (a, c), b
    (*g,) = t
    return a, b, c, d, e, f, g, [*t, 9], (*b, *b), {"x": 1}


@case((2,))
def dictops(n):
    d = {"a": 1, "b": n}
    d["c"] = 3
    d["a"] += 10
    return (
        d,
        list(d),
        list(d.keys()),
        list(d.values()),
        [(k, v) for k, v in d.items()],
        "a" in d,
        d.get("z", 5),
        len(d),
        d["b"],
    )


@case(((1, 2.0, "x"),))
def mixed(t):
    return t[0], t[1], t[2], len(t), t == (1, 2.0, "x"), t + (1,), t * 2


@case((5,), (0,))
def enum(n):
    out = []
    for i, (a, b) in enumerate(zip(range(n), reversed(range(n))), start=2):
        out.append(i * a - b)
    return out, list(reversed(out)), [x for x in out if x > 0], any(x > 3 for x in out), all(x > 3 for x in out)


@case((D(2.0),), (D(-2.0),))
def truthy(d):
    return (1 if d else 2), not d, d and 5


@case((np.zeros((3, 4)), 2), (np.zeros((3, 4)), 5))
def nest1(a, n):
    g = a.copy()
    for i in range(3):
        for j in range(n):
            g[i][j] = i * j + 1
            g[i][j] += 2
    return g


@case((np.zeros((3, 4, 2)),))
def nest2(a):
    g = a.copy()
    g[1:][0][2] = 7.0
    g[2][1][0] -= 3
    g[0][1:3] = 5
    g[-1][...] += 1
    return g


@case((3,))
def put_back(n):
    xs = [[0] * n for _ in range(n)]
    for i in range(n):
        row = xs[i].copy()
        row[i] = 1
        xs[i] = row
    return xs


@case((3, 5))
def lists_lt(a, b):
    xs = [i for i in range(a)]
    ys = [i for i in range(b)]
    return xs < ys, xs <= ys, xs > ys, xs >= ys, xs == ys, [1, 2] < [1, 3], (a, b) < (b, a)


@case((3, 5))
def minkey(a, b):
    xs = [i * 7 % 5 for i in range(b)]
    return (
        min(xs, key=lambda v: -v),
        max(xs, key=lambda v: (v - 2) ** 2),
        min((a, b), key=lambda v: -v),
        max(a, b, key=lambda v: -v),
        min([v for v in xs if v > 100], default=-1),
        max(xs, default=0),
    )


@case((3,))
def strmul(n):
    return "ab" * 2, "-" * 3 + "x", "a" * 0


@case((3,), (-3,))
def comp_choice2(n):
    xs = [1, 2, 3] if n > 0 else range(n, 0)
    return sum([x * 2 for x in xs])


@case((3,), (0,))
def s1(n):
    xs = [i * 0.5 for i in range(n)]
    return sum(xs)


@case(([1.5, 2.5],), ([1],))
def s2(xs):
    return sum(xs) / len(xs)


@case((3,), (0,))
def s3(n):
    t = 0.0
    for k in range(3):
        t += sum([i * 0.5 for i in range(k * n)])
    return t


@case((3,), (0,))
def s4(n):
    return sum([float(i) for i in range(n)]) * 2 + 1, max(0.0, sum([float(i) for i in range(n)]))


@case((np.arange(3.0),), (np.zeros(0),))
def s5(x):
    return sum([v for v in x], 0.0), sum([v for v in x])


@case((10, 1), (10, -1), (5, -6), (3, True), (0, 0))
def item_of_a_range(n, i):
    return range(n)[i], range(n, -3, -2)[i]


@case((10, 3), (10, -1), (4, 4), (10, 2.0), (10, 2.5), (10, np.int64(3)), (10, math.nan), (10, math.inf))
def member_of_a_range(n, x):
    return x in range(n), x in range(1, n, 2), x not in range(n, -5, -3), x in range(5)


@case((np.array([True, False]),))
def powers_of_bools(a):
    return a**2, a**3, a**2.0, np.power(a, 2)


@case(*((np.array([-0.0, 4.0, np.nan]), b) for b in (0.5, 2.0, 1.5)), (np.float64(-0.0), 0.5))
def powers_known_at_run_time(a, b):
    return a**b, np.power(a, b), a ** np.float64(b)


@case((np.array([-0.0, 4.0, np.nan]),), (np.array([-0.0, np.inf], np.float32),))
def roots_of_arrays(a):
    return a**0.5, np.power(a, 0.5), a ** np.float64(0.5), np.power(a, np.float64(0.5))


@case((np.float64(-0.0),), (np.float32(-0.0),), (np.float32(9.0),))
def roots_of_numbers(a):
    return a**0.5, np.power(a, 0.5), a ** np.float64(0.5)


@case((np.array([1, 0], np.int8), 300), (np.array([1, 0], np.uint64), -1), (np.array([1.0, 0.0], np.float32), 2))
def ints_that_wrap_in_where(a, v):
    return np.where(a > 0, a, v), np.where(a > 0, v, a)


@case.each
@pytest.mark.sampled(13)
def test_as_python(function, args, executor):
    agree(function, args, executor)


def checked_again(v):
    return Checked(v)


def checked_replaced(v):
    return replace(Checked(1.0), x=v)


def written(v):
    return Written(v)


def written_replaced(a, v):
    return replace(a, x=v)


def unknown_key(v):
    return {"a": v}["b"]


def zero_rows(n):
    return [[0] * n for _ in range(n)]


def entry_of_an_entry(n):
    rows = zero_rows(n)
    rows[0][1] = 5
    return rows


def unused_global(v):
    b = undefined_name  # noqa: F821, F841
    return v


def unused_statement(v):
    undefined_name  # noqa: F821
    return v


def unused_default(v):
    f = lambda w=undefined_name: w  # noqa: E731, F821, F841
    return v


REFUSED = [
    (unused_global, (1.0,), "'undefined_name' is not defined"),
    (unused_statement, (1.0,), "'undefined_name' is not defined"),
    (unused_default, (1.0,), "'undefined_name' is not defined"),
    (checked_again, (1.0,), "__post_init__"),
    (checked_replaced, (1.0,), "__post_init__"),
    (written, (1.0,), "__init__"),
    (written_replaced, (Written(1.0), 2.0), "__init__"),
    (unknown_key, (1.0,), "'b'"),
    (entry_of_an_entry, (3,), "row = x[i].copy()"),
]


@pytest.mark.parametrize(("function", "args", "word"), REFUSED, ids=[r[0].__name__ for r in REFUSED])
def test_refused(function, args, word):
    with pytest.raises(CompileError) as caught:
        relay(executor="interpreter")(function)(*args)
    assert word in caught.value.message and caught.value.loc is not None
