"""The value of an operator applied to constants, by the reference implementations.

The operator's implementation is staged on constants, and the interpreter, the oracle of all executors, runs the graph. So a folded
program gives what the program itself would have given, to the bit of the reference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....abstract.types import numpy_dtype
from ....ad.expand import expand
from ....backend.interpreter import run
from ....ir.build import Builder, Var
from ....ir.node import Graph
from ...operators import OPERATORS
from ...operators.derived.primitives import FAILING_OPERATORS
from ...span import Span
from ...tree import Attributes, Expression, Literal, TensorConstant, TupleExpr, constant

LIMIT = 4096
"""Elements of a result that is kept although its operands are smaller."""
MADE = 64
"""The same for what is made of attributes alone (`zeros`)."""


def fold(name: str, args: tuple[Expression, ...], attributes: Attributes, span: Span | None) -> Expression | None:
    """The value of an application as a constant, a tuple of constants, or None if it is not to be computed here.

    Args:
        name: of the operator.
        args: literals, constants, tuples of them.
        attributes: those that are given.
        span: the place of the application.
    """
    operator = OPERATORS.get(name)
    if operator is None or not is_pure(name):
        return None
    try:
        with np.errstate(all="ignore"):
            values = [value_of(a) for a in args]
            found = applied(operator, values, operator.complete(attributes))
    except (ArithmeticError, ValueError, TypeError, IndexError, KeyError, NotImplementedError):
        return None  # what fails fails at run time, if it is ever reached
    size = sum(x.size for x in _leaves(found))
    if size > max(LIMIT if args else MADE, 2 * sum(x.size for v in values for x in _leaves(v))):
        return None
    return _expression(found, span)


def is_pure(name: str) -> bool:
    """Whether an operator does nothing but give a value: all do, except those that may raise. None draws random numbers."""
    return name not in FAILING_OPERATORS


def value_of(e: Expression):
    """The value of a constant expression: a NumPy scalar, an array, a tuple.

    Raises:
        TypeError: it is no constant.
    """
    match e:
        case Literal():
            return numpy_dtype(e.dtype).type(e.value)
        case TensorConstant():
            return e.value
        case TupleExpr():
            return tuple(map(value_of, e.fields))
    raise TypeError(f"{type(e).__name__} is no constant")


def applied(operator, values: list, attributes: dict):
    """The value of an operator's implementation."""
    if not operator.staged:
        return operator.function(*values, **attributes)
    graph = Graph(operator.name)
    builder = Builder(graph)

    def staged(value):
        return tuple(map(staged, value)) if isinstance(value, tuple) else Var(builder, builder.constant(value))

    made = operator.function(builder, *map(staged, values), **attributes)

    def finished(result):
        if isinstance(result, tuple | list):
            return tuple(map(finished, result))
        if not isinstance(result, Var):
            return np.asarray(result)
        graph.output = result.node
        return run(expand(graph), ())

    return finished(made)


def _leaves(value) -> Iterator[np.ndarray]:
    if isinstance(value, tuple | list):
        for v in value:
            yield from _leaves(v)
    else:
        yield np.asarray(value)


def _expression(value, span: Span | None) -> Expression | None:
    if isinstance(value, tuple | list):
        fields = tuple(_expression(v, span) for v in value)
        return None if any(f is None for f in fields) else TupleExpr(fields, span=span)  # type: ignore[arg-type]
    array = np.asarray(value)
    return constant(array, span) if array.dtype.kind in "biuf" or array.dtype.name == "bfloat16" else None
