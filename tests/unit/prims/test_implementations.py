"""The tables of meanings: how entries are called, and what wrong calls are told."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.ir.build import Builder
from myia_relay.ir.node import Graph
from myia_relay.prims.api.implementations import Implementation
from myia_relay.prims.api.nn_api import NN_OPS
from myia_relay.prims.api.numpy_api import IMPLEMENTATIONS, METHODS
from myia_relay.prims.api.promotion import require_static_int
from myia_relay.utils.errors import TypeError_


def rule(b, a, axis=None, *, keepdims=False):
    return a, axis, keepdims


IMPLEMENTATION = Implementation("np.rule", rule, static=("axis", "keepdims"))


def test_parameters_are_known():
    assert IMPLEMENTATION.parameters == ("a", "axis", "keepdims")
    assert IMPLEMENTATION.static == {"axis", "keepdims"}
    assert IMPLEMENTATION(None, 1, 2, keepdims=True) == (1, 2, True)
    # Behind *operands no position is a named parameter.
    assert IMPLEMENTATIONS[np.einsum].parameters == ("subscripts",)


@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        ((1,), {"axes": 0}, "'axes' is not supported.*did you mean 'axis'"),
        ((1, 2, 3, 4), {}, "takes 2 positional arguments"),
        ((), {}, "missing its argument 'a'"),
    ],
)
def test_wrong_calls(args, kwargs, text):
    with pytest.raises(TypeError_, match=text):
        IMPLEMENTATION(None, *args, **kwargs)


def test_every_entry_has_a_name_and_parameters():
    for table in (IMPLEMENTATIONS, METHODS, NN_OPS):
        for entry in table.values():
            assert entry.name and (entry.parameters or entry.variadic)
            assert entry.static <= set(entry.keywords)


def test_a_static_argument_computed_at_run_time_says_what_to_do():
    graph = Graph("f")
    builder = Builder(graph)
    n = builder.var(graph.add_parameter("n", builder.constant(1).type))
    with pytest.raises(TypeError_, match=r"known at compile time.*@relay\(static=...\)"):
        require_static_int(n, "an axis")
