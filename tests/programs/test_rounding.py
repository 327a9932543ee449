"""`round(x, n)`: as CPython decides it, on the decimal text of a number."""

import math
import random

import numpy as np
import pytest

from myia_relay import grad, relay

EXECUTORS = ("native", "python", "interpreter")


def rounded(xs):
    return [(round(x, 1), round(x, 2), round(x, 5), round(x, 16), round(x, 22)) for x in xs]


def hard() -> list[float]:
    """Ties, decimals, their neighbours, and what is too large or too small to have such digits."""
    draw = random.Random(4)
    out = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        5e-324,
        1e308,
        2.675,
        1.005,
        0.5,
        1.5,
        0.25,
        0.125,
        -0.05,
        2.0**52 / 10,
    ]
    for n in (1, 2, 5, 16, 22):
        for _ in range(40):
            tie = (draw.randint(-(10**6), 10**6) + 0.5) / 10**n
            out += [tie, math.nextafter(tie, draw.choice((-9.0, 9.0))), draw.uniform(2**51, 2**54) / 10**n]
            out += [
                draw.randint(-(10**9), 10**9) / 10**n,
                (draw.randint(-99999, 99999) + 0.5) * 2.0 ** draw.randint(-20, 5),
            ]
    return out


@pytest.mark.parametrize("executor", EXECUTORS)
def test_as_cpython_to_the_bit(executor):
    xs = hard() if executor == "native" else hard()[:60]
    for x, got, expected in zip(xs, relay(executor=executor)(rounded)(xs), rounded(xs), strict=True):
        assert list(map(repr, got)) == list(map(repr, expected)), x


@pytest.mark.parametrize("executor", EXECUTORS)
def test_numbers_of_numpy_round_as_numpy_does(executor):
    f = relay(executor=executor)(lambda x: round(x, 1))
    for x in (np.float64(0.25), np.float32(2.65), np.float64(-1.15)):
        got = f(x)
        assert type(got) is type(round(x, 1)) and got == round(x, 1)


def test_derivatives_take_the_result_for_a_constant():
    f = relay(lambda x: x * round(x, 2))
    assert grad(f)(1.237) == 1.24 and grad(f)(1e17) == 1e17
    assert grad(grad(f))(1.237) == 0.0
