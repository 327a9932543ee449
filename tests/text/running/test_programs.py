"""Programs of all kinds, in the three executors, and the same after a round trip through text and JSON."""

from __future__ import annotations

import pytest

from myia_relay import relay

from . import bindings, data, functions, gradients, literals, recursion, references, types
from .program import Program, agree, result

GROUPS = (literals, bindings, functions, recursion, data, references, types, gradients)
PROGRAMS = [pytest.param(p, id=f"{g.__name__.rpartition('.')[2]}: {p.title}") for g in GROUPS for p in g.PROGRAMS]


def holds(program: Program, module) -> bool:
    """Whether a program of a module does what it is to do."""
    if program.raises is None:
        return agree(result(program, module), program.expected)
    kind, message = program.raises
    with pytest.raises(kind) as caught:
        result(program, module)
    return message in str(caught.value)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program, executor):
    assert holds(program, relay.parse_text(program.text).with_executor(executor))


@pytest.mark.parametrize("program", PROGRAMS)
def test_round_trips(program):
    module = relay.parse_text(program.text)
    for again in (relay.parse_text(str(module)), relay.from_json(module.to_json())):
        assert again == module and holds(program, again.with_executor("interpreter"))
