"""Every construct of the language, evaluated from its graph, gives what CPython gives."""

import numpy as np
import pytest

from myia_relay.frontend import parse
from myia_relay.ir.text import to_text

from . import constructs
from .parsed_eval import evaluate, outcome


def same(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("fn, inputs", constructs.CASES, ids=[fn.__name__ for fn, _ in constructs.CASES])
def test_construct(fn, inputs):
    assert to_text(parse(fn)).startswith(fn.__name__)
    for args in inputs:
        constructs.EVENTS.clear()
        expected, seen = outcome(fn, *args), list(constructs.EVENTS)
        constructs.EVENTS.clear()
        actual = outcome(evaluate, fn, *args)
        assert same(actual, expected), f"{args}: {actual} instead of {expected}\n{to_text(parse(fn))}"
        assert constructs.EVENTS == seen
