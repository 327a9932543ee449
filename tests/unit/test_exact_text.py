"""The exact text of typed graphs: reading it back and writing it again changes nothing, and it runs to the same result."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.abstract.types import Ref
from myia_relay.backend.interpreter import run
from myia_relay.ir.exact import exact_text
from myia_relay.ir.reading import read_graph
from myia_relay.utils.errors import ParseError
from tests.programs import sources

CASES = [
    pytest.param(program.function, args, id=f"{program.function.__name__}-{k}")
    for program in sources.PROGRAMS
    for k, args in enumerate(program.inputs)
]
STAGES = ("inferred", "simplified", "differentiated", "optimized", "lowered")
TABLE = np.array([0.1, 0.7, -0.5, 1e-310])


def again(graph):
    """A graph read from its text, which is written alike."""
    text, symbols = exact_text(graph)
    found = read_graph(text, symbols)
    assert exact_text(found)[0] == text
    return found


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("function", "args"), CASES)
def test_programs(function, args):
    f = relay(function)
    for stage in STAGES:
        again(f.ir(*copy.deepcopy(args), stage=stage).graph)


def cubes(x, n):
    y = x * TABLE
    for _ in range(n):
        y = y * np.tanh(x)
    return np.sum(y) + np.float32(0.1)


@pytest.mark.parametrize("stage", STAGES[2:])
def test_a_graph_that_is_read_runs_to_the_same(stage):
    f = grad(cubes)
    compiled, leaves = relay(f)._anew(executor="interpreter")._compiled((0.3, 3), {})
    graph = f.ir(0.3, 3, stage=stage).graph
    values = [*leaves, *(h.fetch(leaves) for h in compiled.program.hidden)]
    assert not any(isinstance(p.type, Ref) for p in graph.params)
    assert np.array_equal(run(again(graph), values), run(graph, values))


def test_constants_are_exact():
    graph = (
        relay(lambda x: (x * np.arange(12.0) / 7.0, x + np.float32(0.1), x * np.inf, x * -0.0, x * 1e-310))
        .ir(0.3)
        .graph
    )
    text, _ = exact_text(graph)
    assert "array[0] = float64[12](" in text and "float('inf')" in text and "1e-310" in text
    for found, wanted in zip(run(again(graph), [0.3]), run(graph, [0.3]), strict=True):
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no graph"),
        ("f(%x: float):\n  %0 = nothing(%x)  # float\n  return %0\n", "line 2 of the graph: there is no primitive"),
        ("f(%x: float):\n  return %y\n", "line 2 of the graph: %y is not bound"),
        ("f(%x: float):\n  %0 = sin(%x)\n  return %0\n", "line 2 of the graph: this is no"),
        ("f(%x: quux):\n  return %x\n", "line 1 of the graph: this is no type"),
        ("f(%x: float):\n", "the last graph returns nothing"),
        ("f(%x: data($T)):\n  return %x\n", "nothing is known of $T"),
    ],
)
def test_what_is_no_graph(text, problem):
    with pytest.raises(ParseError) as caught:
        read_graph(text)
    assert problem in str(caught.value)
