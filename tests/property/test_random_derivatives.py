"""Random programs: forward mode, reverse mode and central differences agree, in every order in which they can be nested.

`python -m tests.property.test_random_derivatives FIRST COUNT [PROCESSES]` runs a campaign and prints what fails.
"""

from __future__ import annotations

import math
import signal
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from myia_relay import CompileError, grad, jvp, relay
from myia_relay.abstract.types import FLOAT, INT
from myia_relay.ad.expand import expand
from myia_relay.backend.interpreter import run
from myia_relay.ir.verify import verify
from tests.property.oracle import function_of
from tests.property.random_smooth import CLASSES, Writer
from tests.property.searches import campaign
from tests.property.test_random_programs import ITERATIONS, POINTS, Program
from tests.property.thresholds import low
from tests.typed_graphs import apply, build
from tests.typed_graphs import grad as graph_grad

# Typed graphs.


def graph_tangent(f):
    """A staged function: the derivative of `f` by its first argument, by forward mode."""

    def derivative(x, n):
        graph = build(f, FLOAT, INT, name="inner")
        return apply("jvp", x, n, x.const(1.0), graph=graph, wrt=(0,))[1][0]

    return derivative


def values(f):
    graph = verify(expand(build(f, FLOAT, INT)), "expand", transforms=False)
    return np.array([run(graph, (float(x), int(n))) for x, n in zip(POINTS, ITERATIONS)])


def check(seed):
    f = Program(seed, 2)
    np.testing.assert_allclose(values(graph_tangent(f)), values(graph_grad(f)), rtol=1e-9, atol=1e-11)
    second = values(graph_grad(graph_grad(f)))
    for g in (graph_tangent(graph_grad(f)), graph_grad(graph_tangent(f)), graph_tangent(graph_tangent(f))):
        np.testing.assert_allclose(values(g), second, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(200, 206))
def test_forward_is_reverse_in_typed_graphs(seed):
    check(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_forward_is_reverse_in_more_typed_graphs(seed):
    check(seed)


# Python text.


def forward(f):
    return lambda t, n: jvp(lambda s: f(s, n), (t,), (1.0,))[1]


POINT = 0.0137  # no number of a program, so that nothing is a tie by construction


def differences(f, n):
    """The first three derivatives by central differences, each with two steps, or None where a kink is near."""

    def at(h):
        a, b, c, d, e = (f(POINT + k * h, n) for k in (-2, -1, 0, 1, 2))
        return (d - b) / (2 * h), (d - 2 * c + b) / (h * h), (e - 2 * d + 2 * b - a) / (2 * h**3)

    h = 1e-6
    left, right = (f(POINT, n) - f(POINT - h, n)) / h, (f(POINT + h, n) - f(POINT, n)) / h
    if abs(left - right) > 1e-3 * (1 + abs(left)):
        return [None] * 3
    out = []
    for order, (h, tolerance) in enumerate(((1e-5, 1e-6), (1e-3, 1e-4), (4e-3, 3e-3))):
        one, two = at(h)[order], at(h / 2)[order]
        out.append(two if abs(one - two) <= tolerance * (1 + abs(two)) else None)
    return out


def problems(seed: int, orders: int = 2, executor: str = "interpreter") -> list[str]:
    """What is wrong with the derivatives of one random program, as readable lines."""
    f = function_of(Writer(seed).text(), f"<smooth {seed}>", CLASSES)
    first = [grad(f), forward(f)]
    second = [grad(grad(f)), forward(grad(f)), grad(forward(f))]
    third = [grad(grad(grad(f))), grad(forward(grad(f))), forward(grad(grad(f)))]
    compiled = [[relay(g, executor=executor) for g in group] for group in (first, second, third)[:orders]]
    out = []
    for n in (0, 3):
        wanted = differences(f, n)
        for order, group in enumerate(compiled):
            got = [g(POINT, n) for g in group]
            scale = 1 + max(map(abs, got))
            if not all(abs(g - got[0]) <= 1e-9 * 100**order * scale for g in got):
                out.append(f"order {order + 1}, n = {n}: modes differ: {got}")
            limit = (1e-4, 1e-2, 1e-1)[order]
            if wanted[order] is not None and not abs(got[0] - wanted[order]) <= limit * scale:
                out.append(f"order {order + 1}, n = {n}: {got[0]} where differences give {wanted[order]}")
            if not all(map(math.isfinite, got)):
                out.append(f"order {order + 1}, n = {n}: {got}")
    return out


@pytest.mark.parametrize("seed", range(3, 8))
@pytest.mark.sampled(5)
def test_modes_and_differences(seed):
    assert not problems(seed, 1 + seed % 3, "native" if seed % 4 == 3 else "interpreter"), Writer(seed).text()


PATIENCE = (
    20  # seconds that CPython may take for the values of a program: functions of trees that grow may take for ever
)


def answers(seed: int) -> bool:
    """Whether CPython is done with a program in time; POSIX only."""

    def give_up(*_):
        raise TimeoutError

    f = function_of(Writer(seed).text(), f"<smooth {seed}>", CLASSES)
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        for n in (0, 3):
            f(POINT, n)
    except TimeoutError:
        return False
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return True


def one(seed: int) -> tuple[int, str]:
    try:
        if not answers(seed):
            print(f"seed {seed}: CPython takes too long, nothing is compared", flush=True)
            return seed, ""
        executor = "native" if seed % 10 == 9 else "python" if seed % 10 == 8 else "interpreter"
        with low() if seed % 20 == 9 else nullcontext():
            return seed, "; ".join(problems(seed, 3 if seed % 12 == 0 else 2 if seed % 3 == 0 else 1, executor))
    except CompileError as error:  # an array that a closure holds is not changed in place
        known = ("changed in place", "make them alike")  # arrays of different known sizes on two branches
        return seed, "" if any(text in str(error) for text in known) else str(error)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    arguments = [int(a) for a in sys.argv[1:]]
    sys.exit(bool(campaign(one, *(arguments + [0, 5000, 2][len(arguments) :]))))
