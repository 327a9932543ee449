"""The truth value of a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...abstract.types import Scalar
from ...ir.node import Constant
from ...ir.prim import REGISTRY
from ...prims.api.operators import truth as numeric_truth
from ...utils.errors import TypeError_
from ..engine.conform import code_of_word
from ..engine.engine import Engine
from ..engine.frames import Frame, emit
from ..engine.unions import dispatch, is_option
from ..values.kinds import are_leaves, is_data, is_run_time, is_word, possible
from ..values.protocols import is_dataclass, truth_method
from ..values.treedef import describe
from ..values.values import Bound, ClosureVal, Dyn, Iter, Seq, Static, TaggedUnion, Val
from .data import defines
from .data import test as data_test
from .lists import length
from .ranges import has_numbers


async def truth(engine: Engine, frame: Frame, value: Val) -> Dyn | bool:
    """Python's truth value: a bool where it is known at compile time, else a bool scalar.

    Raises:
        TypeError_: a method, a data value whose class defines the truth value, or something else without one.
    """
    if isinstance(value, Static):
        return bool(value.value)
    if is_word(value):
        return emit(frame, "ne", code_of_word(frame, value), frame.constant(0))
    if isinstance(value, Seq):
        if (own := truth_method(value)) is not None:
            found = await engine.call(frame, Static(own), [value], {}, frame.builder.origin, None)
            return await truth(engine, frame, found)
        return is_dataclass(value) or len(value.elems) > 0
    if is_run_time(value):
        count = length(engine, frame, value)
        return count.known_value > 0 if count.known else emit(frame, "ne", count, frame.constant(0))
    if is_data(value):
        for name in ("__bool__", "__len__"):
            if defines(value, name):
                raise TypeError_(
                    f"the truth value of {describe(value)} is that of its {name}; call it by a name of its own"
                )
        return data_test(frame, value, [n for n in possible(value) if n])
    if isinstance(value, Dyn):
        if value.known and np.size(value.known_value) == 1:
            return bool(value.known_value)
        result = numeric_truth(frame.builder, frame.var(value)).node
        return bool(result.value) if isinstance(result, Constant) else Dyn(result)
    if isinstance(value, ClosureVal):
        return True
    if isinstance(value, Iter) and value.kind == "range":
        found = has_numbers(engine, frame, value)
        return found.known_value if found.known else found
    if isinstance(value, Iter):
        return True if value.is_iterator else await truth(engine, frame, value.parts[0])
    if isinstance(value, TaggedUnion):
        if are_leaves(value.options) and all(isinstance(o.type, Scalar) for o in value.options):
            return _of_numbers(frame, value, value.options)

        async def of_option(region: Frame, option: Val) -> Val:
            part = await truth(engine, region, option)
            return region.constant(part) if isinstance(part, bool) else part

        decided = await dispatch(engine, frame, value, of_option, None, frame.builder.origin)
        assert isinstance(decided, Dyn)
        return decided
    if isinstance(value, Bound):
        raise TypeError_("a method has no truth value; call it, with () behind its name")
    raise TypeError_(f"{describe(value)} has no truth value")


def _of_numbers(frame: Frame, choice: TaggedUnion, options: Sequence[Dyn]) -> Dyn:
    """The truth value of a union of numbers, each of which has one: a selection instead of a branch."""
    *others, result = [numeric_truth(frame.builder, frame.var(o)).node for o in options]
    for number, node in enumerate(others):
        if node is not result:
            result = frame.builder.emit(REGISTRY["where"], (is_option(frame, choice, number), node, result))
    return Dyn(result)
