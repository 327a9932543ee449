"""Random programs once more: forward and reverse mode agree, in every order in which they can be nested."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import FLOAT, INT
from myia_relay.ad.expand import expand
from myia_relay.backend.interpreter import run
from myia_relay.ir.verify import verify
from tests.property.test_random_programs import POINTS, TURNS, Program
from tests.typed_graphs import apply, build, grad


def tangent(f):
    """A staged function: the derivative of `f` by its first argument, by forward mode."""

    def derivative(x, n):
        graph = build(f, FLOAT, INT, name="inner")
        return apply("jvp", x, n, x.const(1.0), graph=graph, wrt=(0,))[1][0]

    return derivative


def values(f):
    graph = verify(expand(build(f, FLOAT, INT)), "expand", transforms=False)
    return np.array([run(graph, (float(x), int(n))) for x, n in zip(POINTS, TURNS)])


def check(seed):
    f = Program(seed, 2)
    np.testing.assert_allclose(values(tangent(f)), values(grad(f)), rtol=1e-9, atol=1e-11)
    second = values(grad(grad(f)))
    for g in (tangent(grad(f)), grad(tangent(f)), tangent(tangent(f))):
        np.testing.assert_allclose(values(g), second, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(200, 210))
def test_forward_is_reverse(seed):
    check(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_forward_is_reverse_in_more_programs(seed):
    check(seed)
