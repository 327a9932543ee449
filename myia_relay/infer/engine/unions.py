"""Values that may be one of several things at run time: a function chosen by data, a value or None, an int or a float.

A `TaggedUnion` is a tag and all its options. The leaves of every option are carried; those of the options that were not
chosen are placeholders that are never read. A call of an unknown function is a branch on the tag over the finite set of
functions that may reach the call: this is defunctionalisation (Reynolds 1972), done by inference, because inference
knows that set. An operation on a union is the operation on each option. If it is an error for one option, it raises
there, at run time, as in CPython; if it is something that compiled code cannot do, the program is refused.
"""

from __future__ import annotations

from typing import Any

from ...abstract.types import FLOAT, Array, Scalar
from ...ir.node import Apply, Constant, Node
from ...ir.prim import REGISTRY
from ...prims.api.operators import OPERATORS
from ...prims.ops.control import undef
from ...utils.errors import CompileError
from ..values.kinds import are_leaves
from ..values.values import Dyn, Seq, TaggedUnion, Text, Val
from .branches import branch
from .engine import Engine
from .frames import Frame, emit, raising, reach


def first_choice(values: list[Val]) -> int | None:
    """The position of the first tagged union among values."""
    return next((i for i, v in enumerate(values) if isinstance(v, TaggedUnion)), None)


async def dispatch(engine: Engine, frame: Frame, choice: TaggedUnion, run, node: Apply | None, origin) -> Val:
    """`run(frame, option)` for the option that the value is at run time.

    Args:
        engine, frame: as everywhere.
        choice: the value.
        run: coroutine `(frame, option) -> Val`.
        node: the construct, for names of results.
        origin: its place.
    """
    failed: list[CompileError] = []

    async def arm(region: Frame, option: Val) -> Val:
        try:
            return await run(region, option)
        except CompileError as error:
            kind = next((k for k in (AttributeError, TypeError, ValueError) if isinstance(error, k)), None)
            if kind is None or isinstance(error, SyntaxError) or error.is_limit:
                raise
            failed.append(error)
            if len(failed) == len(choice.options):
                raise failed[0] from None  # for any option
            # CPython would only raise when it gets here with this option.
            return raising(region, kind, error.message)

    async def options(region: Frame, tag: Dyn, rest: tuple[Val, ...], first: int) -> Val:
        if len(rest) == 1:
            return await arm(region, rest[0])

        region.at(origin)
        here = emit(region, "eq", tag, region.constant(first))

        async def this(inner: Frame) -> Val:
            return await arm(inner, inner.bring(rest[0]))

        async def others(inner: Frame) -> Val:
            return await options(inner, inner.bring(tag), tuple(inner.bring(v) for v in rest[1:]), first + 1)

        site = node if node is not None else Apply(region.graph, undef, origin=origin)
        return await branch(engine, region, here, [this, others], site)

    return await options(frame, choice.tag, choice.options, 0)


def nested_choice(values: list[Val]) -> tuple[int, ...] | None:
    """The path to the first tagged union among values, also inside structures and strings made at run time."""
    for i, value in enumerate(values):
        if isinstance(value, TaggedUnion):
            return (i,)
        inner = nested_choice(_inside(value))
        if inner is not None:
            return (i, *inner)
    return None


def _inside(value: Val) -> list[Val]:
    return list(value.elems if isinstance(value, Seq) else value.operands if isinstance(value, Text) else ())


def _replaced(values: list[Val], path: tuple[int, ...], new: Val) -> list[Val]:
    """Values in which the one at a path is replaced."""
    first, *rest = path
    value = values[first]
    if not rest:
        value = new
    else:
        parts = tuple(_replaced(_inside(value), tuple(rest), new))
        assert isinstance(value, Text | Seq)
        value = Text(value.parts, parts) if isinstance(value, Text) else Seq(value.kind, parts, value.fields, value.cls)
    return [*values[:first], value, *values[first + 1 :]]


async def without_choices(engine: Engine, frame: Frame, values: list[Val], run) -> Val:
    """`run(frame, values)` with every tagged union in the values, however deep, replaced by its option at run time.

    For operations that inspect their arguments: NumPy functions, messages, `print`.
    """
    path = nested_choice(values)
    if path is None:
        return await run(frame, values)
    choice: Val = Seq("tuple", tuple(values))
    for index in path:
        choice = _inside(choice)[index]
    assert isinstance(choice, TaggedUnion)

    async def with_option(region: Frame, option: Val) -> Val:
        inner = [reach(frame, region, v) for v in values]
        return await without_choices(engine, region, _replaced(inner, path, option), run)

    return await dispatch(engine, frame, choice, with_option, None, frame.builder.origin)


def each_option(values: tuple[int, ...] | int = 0):
    """Apply a handler `(engine, frame, node, values) -> Val` to each option of its arguments.

    Args:
        values: which of the values of the node's arguments may be choices.
    """
    places = (values,) if isinstance(values, int) else tuple(values)

    def decorate(fn):
        async def meaning(engine: Engine, frame: Frame, node: Apply) -> Val:
            return await go(engine, frame, node, [engine.value(frame, a) for a in node.args])

        async def go(engine: Engine, frame: Frame, node: Apply, given: list[Val]) -> Val:
            if len(given) == 3:  # x[i] = v
                given[0], given[2] = merged(frame, [given[0], given[2]])
            found = next(((p, v) for p in places if isinstance(v := given[p], TaggedUnion)), None)
            if found is None:
                return await fn(engine, frame, node, given)
            place, choice = found

            async def with_option(region: Frame, option: Val) -> Val:
                inner = [reach(frame, region, v) for v in given]
                inner[place] = option
                return await go(engine, region, node, inner)

            return await dispatch(engine, frame, choice, with_option, node, node.origin)

        meaning.__doc__ = fn.__doc__
        return meaning

    return decorate


async def single_float(engine: Engine, frame: Frame, value: Val) -> Val:
    """A union of real scalars as one NumPy float; any other value unchanged. For derivatives, which are NumPy floats."""
    if not isinstance(value, TaggedUnion) or not are_leaves(options := value.options):
        return value
    if not all(isinstance(o.type, Scalar | Array) and o.type.shape == () for o in options):
        return value
    floats = [o.type for o in options if o.type.is_float]
    strong = {t.dtype for t in floats if isinstance(t, Array) or not t.weak}  # a Python float yields to them
    if not floats or len(strong) > 1:
        return value
    dtype = next(iter(strong), "float64")

    async def cast(region: Frame, option: Val) -> Val:
        assert isinstance(option, Dyn)
        node = option.node
        if isinstance(option.type, Array):
            node = region.builder.emit(REGISTRY["as_scalar"], (node,))
        return Dyn(region.builder.emit(REGISTRY["cast"], (node,), {"dtype": dtype, "weak": False}))

    return await dispatch(engine, frame, value, cast, None, frame.builder.origin)


def merged(frame: Frame, values: list[Val], always_numpy: bool = False) -> list[Val]:
    """Replace unions of a Python float and a NumPy float of one dtype in values by one NumPy float, without a branch.

    For NumPy functions and arithmetic. If all other operands are NumPy's and of that dtype, both options give the same result.

    Args:
        frame: where the operation is.
        values: its operands.
        always_numpy: whether the result is NumPy's also where all operands are Python's.
    """
    others = [v for v in values if not isinstance(v, TaggedUnion)]
    if len(others) == len(values) or not are_leaves(others) or not (others or always_numpy):
        return values
    floats = [o for v in values if isinstance(v, TaggedUnion) for o in v.options]
    if not are_leaves(floats) or not all(isinstance(o.type, Scalar) and o.type.is_float for o in floats):
        return values
    if not all(isinstance(v.type, Scalar | Array) for v in others):
        return values
    dtypes = {v.type.dtype for v in (*others, *floats)}
    strong = all(isinstance(v.type, Array) or not v.type.weak for v in others)
    if len(dtypes) > 1 or not strong:
        return values
    return [as_one_float(frame, v) if isinstance(v, TaggedUnion) else v for v in values]


ALIKE = frozenset(
    f"{i}{name}" for name in ("add", "sub", "mul", "neg", "pos", "lt", "le", "gt", "ge", "eq", "ne") for i in ("", "i")
)
"""Operators of two floats whose value does not depend on whose they are, and that never raise."""
COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))


def with_one_value(frame: Frame, fn: Any, values: list[Val]) -> TaggedUnion | None:
    """An operator on floats that may be Python's or NumPy's, without a branch: its value is computed once.

        max(a, b) * max(c, d)  =>  the product, as NumPy's float where one of the operands is

    Returns:
        None where an operand is something else, or the operator depends on whose numbers they are: a quotient of Python's
        floats raises, and Python compares floats with large ints exactly.
    """
    name = getattr(fn, "__name__", "").strip("_")
    module = getattr(fn, "__module__", None)
    if not (module == "_operator" and name in ALIKE or fn is abs):
        return None

    def emit(primitive: str, *nodes: Node) -> Node:
        return frame.builder.emit(REGISTRY[primitive], nodes)

    whose: list[Node] = []  # for each union, 1 where it is NumPy's
    operands: list[Dyn] = []
    for value in values:
        if isinstance(value, TaggedUnion):
            options = value.options
            if not are_leaves(options) or not all(
                isinstance(o.type, Scalar) and o.type.dtype == "float64" for o in options
            ):
                return None
            if len(options) > 2 or options[0].type.weak == options[1].type.weak:
                return None
            if not any(value is other for other in values[: len(operands)]):
                one = frame.constant(1).node
                whose.append(value.tag.node if options[0].type.weak else emit("bitwise_xor", value.tag.node, one))
            operands.append(as_one_float(frame, value, weak=True))
            continue
        if not isinstance(value, Dyn) or not isinstance(value.type, Scalar) or not value.type.weak:
            return None
        exact = value.known and abs(value.known_value) <= 2**53
        if value.type.dtype not in ("float64", "int64") or name in COMPARISONS and value.type != FLOAT and not exact:
            return None
        operands.append(value)
    result = OPERATORS[fn](frame.builder, *[frame.var(v) for v in operands]).node
    is_numpy, *rest = whose
    for other in rest:
        is_numpy = emit("bitwise_or", is_numpy, other)
    return either_float(frame, is_numpy, result)


def is_option(frame: Frame, choice: TaggedUnion, number: int) -> Node:
    """Whether a union is this option at run time."""
    which = choice.tag.node
    if (
        number == 1
        and isinstance(which, Apply)
        and which.fn is REGISTRY["where"]
        and all(isinstance(a, Constant) and a.value == want for a, want in zip(which.args[1:], (1, 0), strict=True))
    ):  # a comparison converted to an int
        return which.args[0]
    return frame.builder.emit(REGISTRY["eq"], (which, frame.constant(number).node))


def as_one_float(frame: Frame, choice: TaggedUnion, weak: bool = False) -> Dyn:
    """A union of floats of one dtype as a NumPy float, or as a Python float.

    Options of float64 hold the same number, whichever it is (`conform_choice`): no selection is needed, unless all are known.
    """

    def emit(name: str, *nodes, **attrs):
        return frame.builder.emit(REGISTRY[name], nodes, attrs)

    assert are_leaves(choice.options)
    dtype = choice.options[0].type.dtype
    *nodes, result = [emit("cast", o.node, dtype=dtype, weak=weak) for o in choice.options]
    same = [o.node for o in choice.options if not isinstance(o.node, Constant)]
    if dtype == "float64" and same:
        return Dyn(emit("cast", same[0], dtype=dtype, weak=weak))
    for tag, node in enumerate(nodes):
        result = emit("where", is_option(frame, choice, tag), node, result)
    return Dyn(result)


def either_float(frame: Frame, whose: Node, value: Node) -> TaggedUnion:
    """A number of float64 as Python's where `whose` is 0, and as NumPy's where it is 1."""

    def option(weak: bool) -> Dyn:
        return Dyn(frame.builder.emit(REGISTRY["cast"], (value,), {"dtype": value.type.dtype, "weak": weak}))

    return TaggedUnion(Dyn(whose), (option(True), option(False)))
