"""Values that are arrays of computed size of one type or another: what was chosen is what arrives, in every executor.

Two arrays of one dtype whose sizes are bound in different places are one option of a union outside. The placeholder of the one
that was not chosen was taken for the other: wrong numbers, or an internal error.
"""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay
from tests.property.execute import check

RECURSION = """
def pick(x, n):
    if n > 3:
        return pick(x, n - 3)
    if len(x):
        return x
    return np.arange(len(x))

def program(n):
    return pick(np.full(n, 7, np.float32), n)
"""
STRUCTURES = """
def pick(x, n):
    if n > 3:
        return pick(x[1:], n - 1)
    if n > 2:
        return x * np.float32(2), 1
    if len(x):
        return np.arange(len(x)), x
    return x, x

def program(n):
    return pick(np.full(n, 7, np.float32), n)
"""
MATRIX = """
def pick(x, n):
    if n > 3:
        return pick(x + np.float32(1), n - 3)
    if n > 1:
        return x
    return np.ones(x.shape)

def program(n):
    return pick(np.full((n, 2), 7, np.float32), n)
"""
ITERATORS = """
def pick(x, n):
    if n > 3:
        return pick(x + np.float32(1), n - 3)
    if n > 1:
        return zip(x, x)
    return enumerate(x)

def program(n):
    total = 0.0
    for k, v in pick(np.full(n, 7, np.float32), n):
        total += float(v) * float(k)
    return total
"""
CALLS = """
def pick(x, y, n):
    if n > 3:
        if n > 4:
            return np.concatenate([x, y])
        return np.arange(len(x))
    if len(x):
        return x
    return np.arange(len(x))

def program(n):
    return pick(np.full(n, 7, np.float32), np.full(n + n * n % 5, 3, np.float32), n)
"""
LOOP = """
def program(n, k):
    x = np.full(n, 7, np.float32)
    y = x
    for j in range(k):
        if j % 3 == 0:
            y = np.append(x, np.float32(j))[1:]
        elif j % 3 == 1:
            y = np.arange(len(y))
        else:
            y = x[1:]
    return y, np.sum(y)
"""
CONTINUE = """
def program(n, k):
    x = np.full(n, 7, np.float32)
    y = x
    while k > 0:
        k -= 1
        if k % 3 == 0:
            y = np.append(x, np.float32(k))
            continue
        if k % 3 == 1:
            y = y.astype(np.int64)
        else:
            y = y[1:]
    return y, np.sum(y)
"""
SIZES = [(n,) for n in (1, 0, 2, 5, 9)]
TURNS = [(n, k) for n in (1, 4) for k in (0, 1, 2, 3, 6)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "calls"),
    [
        *((text, SIZES) for text in (RECURSION, STRUCTURES, MATRIX, ITERATORS, CALLS)),
        *((text, TURNS) for text in (LOOP, CONTINUE)),
    ],
    ids=("recursion", "structures", "matrix", "iterators", "calls", "loop", "continue"),
)
def test_what_was_chosen_arrives(text, calls):
    verdict = check(text, calls, f"<union of sizes {hash(text)}>", thorough=True)
    assert verdict.kind == "same", verdict


def weigh(x, w, n):
    if n > 3:
        return weigh(x * w, w, n - 3)
    if n > 1:
        return x * w
    return np.arange(len(x))


def loss(w, n):
    return np.sum(weigh(np.ones(n) * w, w, n) * 2.0)


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_the_derivative_of_what_was_chosen(executor):
    slope = relay(grad(loss), executor=executor)
    for n, want in ((1, 0.0), (2, 4 * 2 * 1.5), (5, 5 * 2 * 3 * 1.5**2)):
        assert slope(1.5, n) == pytest.approx(want)


def test_known_sizes_that_differ_are_refused():
    def pick(n):
        return np.ones(2) if n > 1 else np.ones(3) if n > 0 else np.arange(3)

    with pytest.raises(CompileError, match="make them alike"):
        relay(pick)(1)
