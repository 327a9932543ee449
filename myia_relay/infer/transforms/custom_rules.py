"""Functions with a vjp rule of their own, and checkpoints, inside compiled code; `ad.custom` differentiates them."""

from __future__ import annotations

from typing import Any

from ...abstract.types import tuple_of
from ...ir.build import Builder
from ...ir.node import Graph, Node
from ...ir.prim import REGISTRY
from ...prims.ops.control import checkpoint as P_checkpoint
from ...prims.ops.control import custom_vjp as P_custom_vjp
from ...utils.errors import GradError, TypeError_
from ...utils.source import Origin
from ..engine.engine import Engine
from ..engine.frames import Frame, Specialisation, SpecialisationSource, explode
from ..language.calls import call_value
from ..language.registry import derived
from ..values.treedef import describe, rebuild
from ..values.values import Derived, Dyn, Seq, Static, Val
from .derivatives import Staged, aligned, item, named_arguments, positional, stage, zero
from .requests import graph_of


@derived("checkpoint")
async def call_checkpoint(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`checkpoint(f)(*args)`."""
    args = positional(engine, fn.function, args, kwargs, "checkpoint")
    staged = await stage(engine, frame, fn.function, args, (), origin, site)
    leaves = [leaf.info for leaf in staged.spec.returns.leaves()]
    type_ = leaves[0] if len(leaves) == 1 else tuple_of(*leaves)
    b = frame.at(origin)
    attrs = {"graph": staged.spec.graph}
    node = b.graph.apply(P_checkpoint, *staged.operands, attrs=attrs, type=type_, origin=origin)
    return explode(frame, node, staged.spec.returns)


async def checkpoint_request(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`checkpoint(f)` in compiled code."""
    (fn,) = named_arguments("checkpoint", ("f",), args, kwargs)
    return Derived("checkpoint", fn)


async def custom_vjp_request(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`custom_vjp(f)` in compiled code, where no rule can be attached.

    Raises:
        TypeError_: always.
    """
    raise TypeError_(
        "custom_vjp is called outside of compiled code: at module level write f = custom_vjp(f), then @f.defvjp on the rule"
    )


@derived("custom_vjp")
async def call_custom_vjp(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """A call of a function with a vjp rule of its own."""
    holder = fn.option("holder")
    rule = holder.rule
    engine.depend("attribute", holder, "rule", rule)
    args = positional(engine, fn.function, args, kwargs, "custom_vjp")
    if rule is None:
        return await call_value(engine, frame, fn.function, args, {}, origin, site)
    return await call_with_rule(engine, frame, fn.function, rule, args, origin, site)


async def call_with_rule(
    engine: Engine, frame: Frame, function: Val, rule: Any, args: list[Val], origin: Origin, site
) -> Val:
    """A call of a function whose adjoint is a rule `(*args, out, dout) -> cotangents of the arguments`.

    Raises:
        TypeError_: the function has hidden parameters.
        GradError: the rule does not return a cotangent for each argument.
    """
    staged = await stage(engine, frame, function, args, range(len(args)), origin, site)
    hidden = [key for key in staged.spec.implicit if isinstance(key, tuple) and key[:1] == ("parameter",)]
    if hidden:
        raise TypeError_("a custom_vjp function cannot have hidden parameters: its rule has no cotangents for them")
    result = staged.spec.returns
    out = rebuild(result, iter([Node(leaf.info) for leaf in result.leaves()]))
    dout = staged.result_tree(iter([Dyn(Node(t)) for t in staged.results()]))
    stand_ins = [
        rebuild(staged.treedefs[i], iter([Node(leaf.info) for leaf in staged.treedefs[i].leaves()]))
        for i in staged.treedefs
    ]
    values = [Static(rule), *stand_ins, out, dout]

    async def run(inner: Frame, parts: list[Val]) -> Val:
        callee, *rest = parts
        cts = await call_value(engine, inner, callee, rest, {}, origin, None)
        if len(args) == 1 and not (isinstance(cts, Seq) and cts.kind == "tuple"):
            cts = Seq("tuple", (cts,))
        if not isinstance(cts, Seq) or len(cts.elems) != len(args):
            raise GradError(
                f"the vjp rule of {_name(engine, function)} returns {describe(cts)}; it returns a tuple with a cotangent "
                f"(or None) for each of the {len(args)} arguments"
            )
        nodes: list[Node] = []
        for i, ct in enumerate(cts.elems):
            leaves = [leaf.info for leaf in staged.treedefs[i].leaves()]
            got = aligned(inner, ct, staged.treedefs[i], f"the vjp rule's cotangent of argument {i}")
            pairs = [(n, t) for n, t in zip(got, leaves, strict=True) if t.is_float]
            nodes += [n if n is not None else zero(inner.builder, t) for n, t in pairs]
        return Seq("tuple", tuple(Dyn(n) for n in nodes))

    names = [f"x{i}" for i in range(len(args))]
    place = Origin(None) if origin is None else origin
    source = SpecialisationSource(("custom_vjp", rule, len(args)), "rule", ["rule", *names, "out", "dout"], place)
    spec, _ = engine.specialise(
        frame, source, values, run, origin, frame.context, (True,) + (False,) * (len(values) - 1), True
    )
    await spec.finished
    b = frame.at(origin)
    own = len(staged.operands)
    more = [frame.implicit(key, p.type, p.name) for key, p in spec.implicit.items()]
    operands = [*staged.operands, *more]
    wrt = [i for index in staged.treedefs for i in staged.floats(index)]
    graph, adjoint = _closed_pair(b, staged, spec, operands, own, wrt)
    attrs = {"graph": graph, "rule": adjoint, "wrt": tuple(wrt)}
    node = b.graph.apply(P_custom_vjp, *operands, attrs=attrs, type=graph.output.type, origin=origin)
    return explode(frame, node, result)


def _closed_pair(b: Builder, staged: Staged, spec: Specialisation, operands, own: int, wrt) -> tuple[Graph, Graph]:
    """The function and its rule over the same operands; the rule also takes the result's leaves and the cotangents of
    its floats.
    """
    name = staged.spec.graph.name
    leaves = [leaf.info for leaf in staged.spec.returns.leaves()]
    graph = Graph(name, origin=b.origin)
    params = [graph.add_parameter(x.name or f"a{i}", x.type) for i, x in enumerate(operands)]
    type_ = leaves[0] if len(leaves) == 1 else tuple_of(*leaves)
    graph.output = graph.apply(staged.spec.graph, *params[:own], type=type_, origin=b.origin)

    rule = Graph(f"{name}.rule", origin=b.origin)
    inner = Builder(rule, b.origin)
    given: list[Node] = [rule.add_parameter(x.name or f"a{i}", x.type) for i, x in enumerate(operands)]
    outs = [rule.add_parameter(f"out{i}", t) for i, t in enumerate(leaves)]
    douts = [rule.add_parameter(f"dout{i}", t) for i, t in enumerate(leaves) if t.is_float]
    arguments = [given[i] for index in staged.treedefs for i in _span(staged, index)]
    call = rule.apply(
        spec.graph,
        *[*arguments, *outs, *douts, *given[own:]],
        type=spec.graph.output.type,
        origin=b.origin,
    )
    cts = [call] if len(wrt) == 1 else [item(inner, call, k) for k in range(len(wrt))]
    rule.output = inner.emit(REGISTRY["make_struct"], tuple(cts), {"type": tuple_of(*[c.type for c in cts])})
    return graph, rule


def _span(staged: Staged, index: int) -> range:
    start = staged.starts[index]
    return range(start, start + sum(1 for _ in staged.treedefs[index].leaves()))


def _name(engine: Engine, fn: Val) -> str:
    graph = graph_of(engine, fn)
    return graph.name if graph is not None else getattr(getattr(fn, "value", None), "name", "the function")
