"""Calls of operators that users have registered, in compiled code.

Idea: an operator's call is one application, of `call_operator` or `operator_kernel`, and, where it has a rule for its
derivative, that of a `custom_vjp` function which does nothing else. An operator in terms of others is a function like any.

Elementwise operands are promoted and broadcast before, so a rule sees arguments of the result's shape, and the adjoint of the
broadcasting is the compiler's.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Array, Scalar, numpy_dtype
from ...ir.build import Var
from ...ir.node import Node
from ...prims.api.promotion import promote
from ...prims.ops.registered import Operator, call_operator, common_dtype, kind_of, operator_kernel
from ...prims.rules.broadcast import broadcast_to
from ...prims.rules.relations import broadcast_shapes
from ...utils.errors import TypeError_
from ...utils.source import Origin, is_ours
from ..engine.dependencies import Dependency, code_of
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..language.calls import call_value
from ..language.registry import of_class
from ..objects.leaves import from_node, to_python
from ..objects.structures import to_argument
from ..values.kinds import are_leaves
from ..values.treedef import describe
from ..values.values import Dyn, Listed, Static, Val
from .custom_rules import call_with_rule


@dataclass(frozen=True)
class Applied:
    """An operator with its static attributes, without its rule: what the rule is the derivative of."""

    operator: Operator
    attrs: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.operator.name


@of_class(Operator)
async def call_registered(engine: Engine, frame: Frame, op: Operator, args, kwargs, origin: Origin, site) -> Val:
    """A call of an operator."""
    depend_on(engine, op)
    if op.is_defined_by_others:
        if op.vjp_rule is None:
            return await call_value(engine, frame, Static(op.function), args, kwargs, origin, site)
        values, attrs = bound(engine, frame, op, args, kwargs)
        function = functools.partial(op.function, **dict(attrs)) if attrs else op.function
        return await call_with_rule(engine, frame, Static(function), with_attributes(op, attrs), values, origin, site)
    values, attrs = bound(engine, frame, op, args, kwargs)
    values = operands(engine, frame, op, values)
    applied = Applied(op, attrs)
    if op.vjp_rule is None:
        return apply(engine, frame, applied, values)
    return await call_with_rule(engine, frame, Static(applied), with_attributes(op, attrs), values, origin, site)


def bound(engine: Engine, frame: Frame, op: Operator, args, kwargs) -> tuple[list[Val], tuple]:
    """The arguments in order, and the static attributes as Python values.

    Raises:
        TypeError_: they do not fit the operator's parameters, or an attribute is not known at compile time.
    """
    values, attrs = op.bind(args, kwargs)
    values = [v if isinstance(v, Val) else engine.from_python(frame, v, None) for v in values]
    found = []
    for name, value in attrs:
        value = to_python(value, f"{op.name}: {name}") if isinstance(value, Val) else value
        try:
            hash(value)
        except TypeError:
            raise TypeError_(
                f"{op.name}: {name} is a static attribute, and a {type(value).__name__} cannot be one; write a tuple"
            ) from None
        found.append((name, value))
    return values, tuple(found)


def operands(engine: Engine, frame: Frame, op: Operator, values: list[Val]) -> list[Val]:
    """The arguments as an operator gets them: numbers and arrays, of an elementwise one in one dtype and shape.

    Raises:
        TypeError_: an argument is no number or array.
    """
    staged = []
    for name, value in zip(op._names(len(values)), values, strict=True):
        if not isinstance(value, Dyn):
            value = _array(engine, frame, op, name, value)
        if not isinstance(value.type, Scalar | Array):
            raise TypeError_(f"the operator {op.name} takes numbers and arrays, and '{name}' is {describe(value)}")
        staged.append(frame.var(value))
    if not op.elementwise or not staged:
        return [Dyn(v.node) for v in staged]
    shape = broadcast_shapes(op.name, *[v.shape for v in staged])
    if op.dtype is None:
        staged = _promoted(frame, staged)
    if any(isinstance(v.type, Array) for v in staged):
        staged = [v if v.shape == shape and isinstance(v.type, Array) else broadcast_to(v, shape=shape) for v in staged]
    return [Dyn(v.node) for v in staged]


def _array(engine: Engine, frame: Frame, op: Operator, name: str, value: Val) -> Dyn:
    """A list that was given as an array; nothing else is one.

    Raises:
        TypeError_: it is no list of numbers.
    """
    found = to_argument(engine, frame, value, False, op.name, name) if isinstance(value, Listed) else None
    if not isinstance(found, Var):
        raise TypeError_(
            f"the operator {op.name} takes numbers and arrays, and '{name}' is {describe(value)}; what is known at compile time "
            "is a keyword-only parameter"
        )
    return Dyn(found.node)


def _promoted(frame: Frame, staged: list[Var]) -> list[Var]:
    """Operands in the float dtype that is common to them."""
    dtype = common_dtype([v.type for v in staged])
    weak = all(isinstance(v.type, Scalar) and v.type.weak for v in staged)
    goal = (
        frame.var(frame.constant(0.0)) if weak else frame.var(Dyn(frame.builder.constant(numpy_dtype(dtype).type(0))))
    )
    return [promote(frame.builder, v, goal)[0] for v in staged]


@of_class(Applied)
async def call_applied(engine: Engine, frame: Frame, applied: Applied, args, kwargs, origin: Origin, site) -> Val:
    """A call of an operator as the function that a rule is the derivative of."""
    return apply(engine, frame, applied, list(args))


def apply(engine: Engine, frame: Frame, applied: Applied, values: list[Val]) -> Val:
    """One application of an operator that has a definition of its own."""
    op = applied.operator
    assert are_leaves(values)
    nodes = tuple(v.node for v in values)
    attrs = {"op": op, "attrs": applied.attrs, "kinds": tuple(kind_of(n.type) for n in nodes), "levels": ()}
    prim = call_operator if op.lower is None or has_symbols(nodes) else operator_kernel
    return from_node(frame, frame.builder.emit(prim, nodes, attrs))


def has_symbols(nodes: tuple[Node, ...]) -> bool:
    """Whether a size is not known at compile time."""
    return any(not isinstance(d, int) for n in nodes for d in n.type.shape)


def with_attributes(op: Operator, attrs: tuple[tuple[str, Any], ...]) -> Any:
    """The operator's rule with its static attributes; the same object each time, as it is part of specialisations' keys."""
    rule = op.vjp_rule
    if not attrs:
        return rule
    assert rule is not None
    known = op.rules.setdefault((id(rule), attrs), functools.partial(rule, **dict(attrs)))
    return known


# What compiled code depends on: the parts of the operator that ran while compiling, and what they read.


def depend_on(engine: Engine, op: Operator) -> None:
    """Write down that what is compiled is good only while the operator's parts are what they are."""
    op.results.clear()  # what the relation said before may rest on names that have changed
    for name in ("function", "vjp_rule", "relation", "dtype", "batch", "lower"):
        value = getattr(op, name)
        engine.depend("attribute", op, name, value)
        if name in ("relation", "dtype", "lower", "function") and isinstance(value, types.FunctionType):
            engine.depend("code", value, "", code_of(value))
            if name != "function":
                depend_on_names(engine, value, set())


def depend_on_names(engine: Engine, function: types.FunctionType, seen: set[int]) -> None:
    """The same for the free names of a function that Python runs while compiling, by the values they hold."""
    if id(function) in seen or is_ours(function.__code__.co_filename):
        return
    seen.add(id(function))
    for cell in function.__closure__ or ():
        note(engine, "cell", cell, "", cell.cell_contents, seen)
    for name in names_of(function.__code__):
        if name in function.__globals__:
            note(engine, "dict", function.__globals__, name, function.__globals__[name], seen)


def note(engine: Engine, kind: str, place: Any, name: str, value: Any, seen: set[int]) -> None:
    """One free name. An array is its contents here: it is not passed in at every call."""
    engine.dependencies.setdefault((kind, id(place), name), Dependency(kind, place, name, value))
    if isinstance(value, types.FunctionType):
        engine.depend("code", value, "", code_of(value))
        depend_on_names(engine, value, seen)


def names_of(code: types.CodeType) -> Iterator[str]:
    """The global names that a function may read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_of(constant)
