"""Nothing of differentiation is left in straight-line code: gradients are as short as those written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.ir.rewrite import all_graphs
from tests.programs.adjoints import FUNCTIONS

LIMIT = 1.2
FREE = {"make_struct", "get_item", "undef", "none"}


def operations(function, args) -> int:
    """How many applications the optimised program has; structures are taken apart by then."""
    graph = relay(function).ir(*args, stage="optimized").graph
    return sum(getattr(n.fn, "name", "") not in FREE for g in all_graphs(graph) for n in g.nodes)


def gradient(f, args):
    return grad(f, tuple(range(len(args))))


def test_there_are_thirty():
    assert len({f.__name__ for f, _, _ in FUNCTIONS}) == 30


@pytest.mark.parametrize("f, by_hand, args", FUNCTIONS, ids=lambda x: getattr(x, "__name__", ""))
def test_as_short_as_by_hand(f, by_hand, args):
    got, wanted = relay(gradient(f, args), executor="interpreter")(*args), by_hand(*args)
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12)
    assert operations(gradient(f, args), args) <= LIMIT * operations(by_hand, args)
