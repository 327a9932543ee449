"""The builtin `sum`: from the left, as in CPython.

    sum(xs, start)  =>  ((start + x0) + x1) + ...

A sum of int8 scalars therefore wraps, and a sum of float32 scalars is rounded at each step, unlike `np.sum`. From
Python 3.12 on, Python floats are added with Neumaier's compensation (A. Neumaier, "Rundungsfehleranalyse einiger
Verfahren zur Summation endlicher Summen", ZAMM 1974): the rounding errors are summed separately, and added to the total
at the end.
"""

from __future__ import annotations

import builtins
import operator
import sys
from typing import TypeGuard

from ...abstract.types import FLOAT, Array, Scalar
from ...ir.node import Apply
from ...ir.prim import REGISTRY
from ...prims.ops.control import undef
from ...utils.errors import TypeError_
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..objects.arithmetic import arithmetic
from ..objects.iterables import Walk, walk
from ..objects.list_methods import summed
from ..objects.sequences import needs_loop
from ..objects.structures import as_sequence
from ..values.values import Dyn, Seq, Static, Text, Val, elements
from .calls import call_value
from .loops import counted
from .registry import special

COMPENSATED = sys.version_info >= (3, 12)
UNROLLED = 8  # elements of an array up to which a sum is unrolled


@special(builtins.sum)
async def sum_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`sum(xs, start)`: a loop over a long array or a run-time list, otherwise unrolled.

    Raises:
        TypeError_: the start is a string.
    """
    value = args[0]
    start = args[1] if len(args) > 1 else frame.constant(0)
    if isinstance(start, Text) or isinstance(start, Static) and isinstance(start.value, str):
        raise TypeError_("sum() can't sum strings; add them with +")
    if isinstance(value, Dyn) and isinstance(value.type, Array) and value.type.shape:
        size = value.type.shape[0]
        if not isinstance(size, int) or size > UNROLLED:
            return await _loop(engine, frame, value, start, origin)
    if needs_loop(engine, frame, value):
        return await summed(engine, frame, value, start, COMPENSATED)
    total = _Total(engine, frame, origin, start)
    for item in as_sequence(engine, frame, value, "sum"):
        await total.add(item)
    return total.value()


async def _loop(engine: Engine, frame: Frame, value: Dyn, start: Val, origin) -> Val:
    """`for x in xs: total = total + x`; elements of arrays are NumPy scalars, which are not compensated."""

    async def iteration(inner: Frame, values) -> Val:
        item, total = values
        return Seq("tuple", (await call_value(engine, inner, Static(operator.add), [total, item], {}, origin, None),))

    node = Apply(frame.graph, undef, origin=origin)
    steps = walk(engine, frame, value)
    assert isinstance(steps, Walk)
    result = await counted(engine, frame, node, steps, [start], ("sum",), iteration)
    return elements(result)[0]


class _Total:
    """A sum in progress: the total so far, and the rounding errors of its floats."""

    def __init__(self, engine: Engine, frame: Frame, origin, start: Val):
        self.engine, self.frame, self.origin = engine, frame, origin
        self.sum: Val = start
        self.error: Dyn | None = None

    def operate(self, fn, *values: Dyn) -> Dyn:
        return arithmetic(self.frame, fn, *values)

    def primitive(self, name: str, *values: Dyn) -> Dyn:
        return Dyn(self.frame.builder.emit(REGISTRY[name], tuple(v.node for v in values)))

    async def add(self, item: Val) -> None:
        """Add one item."""
        if COMPENSATED and is_python(self.sum, "float64") and is_python(item, "float64"):
            total = self.operate(operator.add, self.sum, item)
            larger = self.operate(operator.ge, self.operate(builtins.abs, self.sum), self.operate(builtins.abs, item))
            first = self.operate(operator.add, self.operate(operator.sub, self.sum, total), item)
            second = self.operate(operator.add, self.operate(operator.sub, item, total), self.sum)
            error = self.primitive("where", larger, first, second)
            self.error = error if self.error is None else self.operate(operator.add, self.error, error)
            self.sum = total
            return
        if not (is_python(self.sum, "float64") and (is_python(item, "int64") or is_python(item, "bool"))):
            self.sum, self.error = self.value(), None
        self.sum = await call_value(
            self.engine, self.frame, Static(operator.add), [self.sum, item], {}, self.origin, None
        )

    def value(self) -> Val:
        """The sum, with its rounding errors added if they are finite."""
        if self.error is None:
            return self.sum
        assert isinstance(self.sum, Dyn)
        used = self.operate(operator.ne, self.error, self.frame.constant(0.0))
        fine = self.primitive("logical_and", used, self.primitive("isfinite", self.error))
        return self.primitive("where", fine, self.operate(operator.add, self.sum, self.error), self.sum)


def is_python(value: Val, dtype: str) -> TypeGuard[Dyn]:
    """Whether a value is a Python number of a dtype."""
    return isinstance(value, Dyn) and value.type == (FLOAT if dtype == "float64" else Scalar(dtype, True))
