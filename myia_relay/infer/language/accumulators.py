"""A sum that begins as a Python number and is a NumPy scalar after an iteration of a loop.

`total = 0.0; for row in x: total += np.sum(row)` changes its type in the first iteration. Suppose that an iteration
does no more with such a variable than one sum, difference, product or quotient with a number. Then a Python number
cannot be distinguished from the NumPy scalar to which this operation converts it (NEP 50), because the other operand
decides the dtype of the computation. The variable can therefore have its later type from the start, and the loop needs
no peeled iteration. A loop that runs no iteration keeps the Python number, and is handled separately.

Input: the parsed body, and the types that the variable had in an attempt to infer it. Output: the start that is used
instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from ...abstract.types import Scalar, numpy_dtype
from ...ir.node import Constant, Graph, Node
from ...ir.prim import REGISTRY
from ...ir.walk import operands, uses
from ..engine.drift import TypeDrift, undoing
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..values.treedef import TreeDef
from ..values.values import NEVER, Dyn, Val

SAME_FOR_BOTH = frozenset(
    (
        operator.add,
        operator.iadd,
        operator.sub,
        operator.isub,
        operator.mul,
        operator.imul,
        operator.truediv,
        operator.itruediv,
    )
)


async def converting(
    engine: Engine, frame: Frame, init: list[Val], run: Callable, loop: Callable, drift: TypeDrift
) -> Val:
    """Infer a loop of at least one iteration in which sums have their later types from the start.

    Args:
        engine, frame: as everywhere.
        init: the initial values.
        run: `(frame, values) -> values after an iteration`; the body of a user's loop is its `graph`, whose first
        parameter is the item.
        loop: `(initial values, run) -> Val`: infers the loop; it raises TypeDrift where a type does not settle.
        drift: the error of the loop with the given initial values.

    Raises:
        TypeDrift: a variable that drifts is not such a sum.
    """
    body = getattr(run, "graph", None)
    if body is None:
        raise drift
    starts, others = list(init), []

    async def iteration(region: Frame, values: list[Val]) -> Val:
        result = await run(region, values)
        if result is not NEVER and not all(_is_number(engine, region, n) for n in others):
            raise drift
        return result

    iteration.graph = body
    for _ in init:
        index, after = drift.index, drift.after
        if index is None or after is None or index >= len(init):
            break
        other = other_operand(body, body.params[index + 1])
        start = None if other is None else converted(frame, starts[index], after)
        if start is None:
            break
        starts[index] = start
        others.append(other)
        try:
            with undoing(frame):
                return await loop(starts, iteration)
        except TypeDrift as error:
            drift = error
    raise drift


def other_operand(body: Graph, variable: Node) -> Node | None:
    """The other operand of the only operation that a parsed body does with a variable, if that is a sum, product, ..."""
    found = [u for u in uses(body).get(variable, ()) for operand in operands(u) if operand is variable]
    if len(found) != 1 or found[0] not in body.nodes or body.output is variable:
        return None
    (user,) = found
    if len(user.args) != 2 or not isinstance(user.fn, Constant) or not _is_arithmetic(user.fn.value):
        return None
    return user.args[0] if user.args[1] is variable else user.args[1]


def _is_arithmetic(fn: object) -> bool:
    return any(fn is known for known in SAME_FOR_BOTH)


def converted(frame: Frame, start: Val, after: TreeDef) -> Dyn | None:
    """The start of a variable in the type that it has after an iteration; None if that may be another number."""
    if not isinstance(start, Dyn) or not isinstance(start.type, Scalar) or after.tag != "dyn":
        return None
    target = after.info
    if not isinstance(target, Scalar) or target.weak or target.dtype == "bool":
        return None
    if start.type.dtype.startswith("float"):
        fits = target.dtype.startswith("float")
    else:
        fits = (
            start.type.weak and start.type.dtype == "int64" and start.known and _exact(start.known_value, target.dtype)
        )
    return (
        Dyn(frame.builder.emit(REGISTRY["cast"], (start.node,), {"dtype": target.dtype, "weak": False}))
        if fits
        else None
    )


def _exact(value: int, dtype: str) -> bool:
    if not -(2**53) <= value <= 2**53:
        return False
    with np.errstate(all="ignore"):
        return int(np.array(value).astype(numpy_dtype(dtype))) == value


def _is_number(engine: Engine, frame: Frame, node: Node) -> bool:
    """Whether an inferred node of a parsed graph is one number, whose class cannot redefine arithmetic."""
    value = engine.value(frame, node)
    return isinstance(value, Dyn) and isinstance(value.type, Scalar)
