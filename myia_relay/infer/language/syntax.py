"""Handlers of the language's own constructs: displays, branches, assertions, formatting.

`SYNTAX` maps each operation of `ir.syntax` to a coroutine `(engine, frame, node) -> Val`. Loops are in
`infer.language.loops`.
"""

from __future__ import annotations

from ...abstract.types import NoneT, Scalar, tuple_of
from ...ir import syntax as S
from ...ir.node import Apply
from ...prims.ops.effects import check, raise_
from ...utils.errors import CompileError, TypeError_, ValueError_
from ...utils.raising import ITSELF
from ..arguments.annotate import check_value
from ..engine.branches import branch
from ..engine.cells import Recaptured, held
from ..engine.engine import Engine
from ..engine.frames import Frame, raising
from ..engine.unions import dispatch, each_option, without_choices
from ..objects.iterables import unwrapped
from ..objects.leaves import to_node
from ..objects.lists import concatenated
from ..objects.lists import unpacked as unpacked_list
from ..objects.sequences import plain
from ..objects.structures import as_sequence
from ..objects.truth import truth
from ..values.functions import families_in, parts_in
from ..values.kinds import is_run_time
from ..values.protocols import starred
from ..values.treedef import describe
from ..values.values import (
    NEVER,
    NONE_VAL,
    UNBOUND_VAL,
    ClosureVal,
    Dyn,
    Iter,
    Raised,
    Seq,
    Spread,
    Static,
    TaggedUnion,
    Text,
    Val,
)
from .narrowing import arms_of
from .registry import handles
from .variables import unbound


def spread(values: list[Val]) -> tuple[Val, ...]:
    """Values with starred ones spread."""
    out: list[Val] = []
    for value in values:
        out.extend(starred(value) if isinstance(value, Spread) else (value,))
    return tuple(out)


@handles(S.make_tuple)
async def make_tuple(engine: Engine, frame: Frame, node: Apply) -> Val:
    return Seq("tuple", spread([engine.value(frame, a) for a in node.args]))


@handles(S.make_list)
async def make_list(engine: Engine, frame: Frame, node: Apply) -> Val:
    values = [engine.value(frame, a) for a in node.args]
    if not any(isinstance(v, Spread) and is_run_time(v.value) for v in values):
        return Seq("list", spread(values))
    out: Val = Seq("list", ())
    for value in values:
        if not isinstance(value, Spread):
            value = Spread(Seq("list", (value,)))
        elif not is_run_time(value.value):
            value = Spread(Seq("list", starred(value)))
        out = concatenated(engine, frame, out, value.value)
    return out


@handles(S.make_dict)
async def make_dict(engine: Engine, frame: Frame, node: Apply) -> Val:
    keys = node.attrs["keys"]
    values = dict(zip(keys, [engine.value(frame, a) for a in node.args], strict=True))
    return Seq("dict", tuple(values.values()), tuple(values))


@handles(S.star)
async def star(engine: Engine, frame: Frame, node: Apply) -> Val:
    value = unwrapped(await plain(engine, frame, engine.value(frame, node.args[0]), node))
    if isinstance(value, Iter):
        value = await engine.call(frame, Static(list), [value], {}, node.origin)
    if isinstance(value, Dyn) and isinstance(value.type, Scalar | NoneT):
        raise TypeError_(f"*: {describe(value)} is not iterable")
    if not isinstance(value, Seq) and not is_run_time(value):
        raise TypeError_(f"*: cannot spread {describe(value)}; its length must be known at compile time")
    if isinstance(value, Seq) and value.kind not in ("tuple", "list"):
        value = Seq("tuple", tuple(as_sequence(engine, frame, value, "spread")))
    return Spread(value)


@handles(S.double_star)
async def double_star(engine: Engine, frame: Frame, node: Apply) -> Val:
    value = engine.value(frame, node.args[0])
    if not isinstance(value, Seq) or value.kind != "dict":
        raise TypeError_(f"**: expected a dict with string keys, not {describe(value)}")
    return Spread(value, True)


@handles(S.unpack)
async def unpack(engine: Engine, frame: Frame, node: Apply) -> Val:
    value = unwrapped(await plain(engine, frame, engine.value(frame, node.args[0]), node))
    if isinstance(value, TaggedUnion):

        async def of_option(region: Frame, option: Val) -> Val:
            return unpacked(engine, region, node, option, ValueError_)

        return await dispatch(engine, frame, value, of_option, node, node.origin)
    return unpacked(engine, frame, node, value)


def unpacked(engine: Engine, frame: Frame, node: Apply, value: Val, wrong: type[CompileError] = TypeError_) -> Val:
    """The parts of a sequence that is unpacked; `wrong` is the class of the error about its length."""
    before, starred, after = node.attrs["before"], node.attrs["star"], node.attrs["after"]
    if is_run_time(value):
        return unpacked_list(engine, frame, value, before, starred, after)
    parts = as_sequence(engine, frame, value, "unpack")
    need = before + after
    if len(parts) < need or (len(parts) > need and not starred):
        # CPython's message; for a static length it is a compile-time error.
        detail = (
            f"too many values to unpack (expected {need})"
            if len(parts) > need
            else f"not enough values to unpack (expected {'at least ' if starred else ''}{need}, got {len(parts)})"
        )
        raise wrong(detail)
    if not starred:
        return Seq("tuple", tuple(parts))
    middle = Seq("list", tuple(parts[before : len(parts) - after]))
    return Seq("tuple", (*parts[:before], middle, *parts[len(parts) - after :]))


@handles(S.if_)
async def if_(engine: Engine, frame: Frame, node: Apply) -> Val:
    condition, then, orelse = node.args
    decided = await truth(engine, frame, engine.value(frame, condition))
    if isinstance(decided, bool):
        graph = (then if decided else orelse).value
        scope = frame.scope()
        return scope.leave(await engine.body(scope, graph))
    arms = arms_of(engine, frame, node, lambda graph, facts: _arm(engine, graph, facts))
    return await branch(engine, frame, decided, arms, node)


def _arm(engine: Engine, graph, facts: dict):
    """One arm of a branch."""

    async def run(frame: Frame) -> Val:
        for node, value in facts.items():
            frame.env[node] = frame.bring(value)
        return await engine.body(frame, graph)

    return run


@handles(S.check_bound)
async def check_bound(engine: Engine, frame: Frame, node: Apply) -> Val:
    flag, value = (engine.value(frame, a) for a in node.args)
    name = node.attrs["name"]
    exception, message = unbound(name, node.attrs["free"])
    # A loop is first tried with the variables that are bound before it: one that only its iterations bind has neither
    # value nor type.
    if value is UNBOUND_VAL:
        return raising(frame, exception, message)
    assert isinstance(flag, Dyn)
    if flag.known:
        return value if flag.known_value else raising(frame, exception, message)
    frame.builder.emit(check, (flag.node,), {"exception": exception, "parts": (message,)})
    return value


@handles(S.assert_)
async def assert_(engine: Engine, frame: Frame, node: Apply) -> Val:
    condition, message = node.args
    decided = await truth(engine, frame, engine.value(frame, condition))
    if decided is True:
        return NONE_VAL
    graph = message.value

    async def fail(inner: Frame) -> Val:
        text = await engine.body(inner, graph) if graph is not None else None
        return await emit_raise(engine, inner, Raised(AssertionError, text))

    if decided is False:
        return await fail(frame)
    if graph is None:
        frame.builder.emit(check, (decided.node,), {"exception": AssertionError, "parts": ()})
        return NONE_VAL

    async def nothing(inner: Frame) -> Val:
        return NONE_VAL

    return await branch(engine, frame, decided, [nothing, fail], node)


@handles(S.raise_)
@each_option()
async def raise_statement(engine: Engine, frame: Frame, node: Apply, values: list[Val]) -> Val:
    (value,) = values
    if isinstance(value, Static) and isinstance(value.value, type) and issubclass(value.value, BaseException):
        value = Raised(value.value, None)
    if not isinstance(value, Raised):
        raise TypeError_(f"raise: exceptions must derive from BaseException, not {describe(value)}")
    return await emit_raise(engine, frame, value)


async def emit_raise(engine: Engine, frame: Frame, value: Raised) -> Val:
    """Emit the raise of an exception."""

    async def run(region: Frame, messages: list[Val]) -> Val:
        parts, operands = text_parts(engine, region, messages[0] if messages else None)
        if messages and not isinstance(messages[0], Static | Text):
            parts = ((0, ITSELF, ""),)
        region.builder.emit(raise_, tuple(operands), {"exception": value.cls, "parts": parts, "type": tuple_of()})
        return NEVER

    return await without_choices(engine, frame, [] if value.message is None else [value.message], run)


def text_parts(engine: Engine, frame: Frame, message: Val | None) -> tuple[tuple, list]:
    """A message as parts and operand nodes."""
    if message is None:
        return (), []
    if isinstance(message, Static):
        return (str(message.value),), []
    if isinstance(message, Text):
        return message.parts, [to_node(frame, o) for o in message.operands]
    return ((0, "s", ""),), [to_node(frame, message)]  # str(x), which is not always format(x): np.float32


@handles(S.annotate)
async def annotate(engine: Engine, frame: Frame, node: Apply) -> Val:
    value = engine.value(frame, node.args[0])
    annotation = node.args[1].value
    if isinstance(annotation, S.FreeName):
        annotation = engine.free_name(frame, annotation, node.origin)
        annotation = annotation.value if isinstance(annotation, Static) else None
    check_value(value, annotation, frame.spec.graph.flags.setdefault("dims", {}), "the value")
    return value


@handles(S.recapture)
async def recapture(engine: Engine, frame: Frame, node: Apply) -> Val:
    graphs = {graph for graph, _ in node.attrs["graphs"]}
    cells = frame.known_cells() if engine.with_cells else []
    for value in held(frame, [*[engine.value(frame, a) for a in node.args], *cells]):
        forms = parts_in(families_in(value.type)) if isinstance(value, Dyn) and engine.families.all else ()
        if (
            isinstance(value, ClosureVal)
            and value.graph in graphs
            or any(f.tag == "closure" and f.info[0] in graphs for f in forms)
        ):
            raise Recaptured(node.attrs["name"], node.attrs["again"].make_cell, node.origin)
    return NONE_VAL
