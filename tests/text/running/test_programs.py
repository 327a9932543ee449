"""Programs of all kinds, in the three executors, and the same after a round trip through text and JSON."""

from __future__ import annotations

import pytest

from myia_relay import relay

from . import bindings, data, functions, gradients, literals, recursion, references, types
from .program import Program, agree, result

GROUPS = (literals, bindings, functions, recursion, data, references, types, gradients)


def parameter(group, program):
    """A program as a parameter of a test."""
    return pytest.param(program, id=f"{group.__name__.rpartition('.')[2]}: {program.title}")


PROGRAMS = [parameter(g, p) for g in GROUPS for p in g.PROGRAMS]


def holds(program: Program, module) -> bool:
    """Whether a program of a module does what it is to do."""
    if program.raises is None:
        return agree(result(program, module), program.expected)
    kind, message = program.raises
    with pytest.raises(kind) as caught:
        result(program, module)
    return message in str(caught.value)


@pytest.mark.sampled(28)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program, executor):
    assert holds(program, relay.parse_text(program.text).with_executor(executor))


@pytest.mark.sampled(34)
@pytest.mark.parametrize("program", PROGRAMS)
def test_round_trips(program):
    module = relay.parse_text(program.text)
    for again in (relay.parse_text(str(module)), relay.from_json(module.to_json())):
        assert again == module and holds(program, again.with_executor("interpreter"))
