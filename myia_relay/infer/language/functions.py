"""Calls of functions that exist at run time: a branch on where the function is written (`infer.values.functions`).

A family of functions has one function `(function, *args)` for each form of calls, which branches on the variant of its first
argument and calls what that is. A call of a value of the family is a call of this function: it is never emitted in the place of
the call, where a chain of functions would multiply it.
"""

from __future__ import annotations

from ...ir import syntax as S
from ...ir.node import Apply, Constant, Graph
from ...prims.ops.data import data_field
from ...utils.errors import TypeError_
from ...utils.source import Origin
from ..engine.engine import Engine
from ..engine.frames import Frame, raising, reach
from ..objects.data import by_variant
from ..values.kinds import possible
from ..values.treedef import rebuild
from ..values.values import Dyn, Val
from .registry import handles


async def call_function(engine: Engine, frame: Frame, fn: Dyn, args, kwargs, origin: Origin) -> Val:
    """Call a function that exists at run time.

    Raises:
        TypeError_: it is called in a model, where a call must be known to know its parameters.
    """
    family = fn.type.family.root
    if frame.context.scope is not None:
        raise TypeError_(
            f"{family.name} is made at run time, and cannot be called in a model: where a layer is called says which parameters it "
            "has; choose among functions that are known when compiling"
        )
    form = (len(args), *kwargs)
    if form not in family.calls:
        family.calls[form] = _calling(family.name, len(args), tuple(kwargs), origin)
    given = [fn, *args, *kwargs.values()]
    return await engine.call_graph(frame, family.calls[form], given, (), origin, frame.context, keep=False)


def _calling(name: str, count: int, keywords: tuple[str, ...], origin: Origin) -> Graph:
    """The parsed function that calls its first argument with the others, of which the last are keyword arguments."""
    graph = Graph(f"call_{name.removeprefix('function ').partition(' ')[0]}", origin=origin)
    fn = graph.add_parameter("function", origin=origin)
    args = [graph.add_parameter(f"x{k}", origin=origin) for k in range(count)]
    args += [graph.add_parameter(k, origin=origin) for k in keywords]
    graph.output = graph.apply(Constant(S.call_variant), fn, *args, keywords=keywords, origin=origin)
    return graph


@handles(S.call_variant)
async def call_variant(engine: Engine, frame: Frame, node: Apply) -> Val:
    """The call of a function that exists at run time, by where it is written."""
    fn, *given = [engine.value(frame, a) for a in node.args]
    assert isinstance(fn, Dyn)
    frame.spec.graph.flags["noinline"] = True
    family, count = fn.type.family, len(given) - len(node.keywords)

    async def one(region: Frame, narrowed: Dyn) -> Val:
        (number,) = possible(narrowed)
        if number == 0:
            return raising(region, TypeError, "'NoneType' object is not callable")
        form = family.forms[number - 1]
        attrs = [{"type": narrowed.type, "variant": number, "index": k} for k, _ in enumerate(form.leaves())]
        fields = [region.builder.emit(data_field, (narrowed.node,), a) for a in attrs]
        engine.shared.update(fields)  # the function still holds them
        function = rebuild(form, iter(fields))
        values = [reach(frame, region, v) for v in given]
        named = dict(zip(node.keywords, values[count:], strict=True))
        return await engine.call(region, function, values[:count], named, node.origin, node)

    if not possible(fn):  # no such function is made, as far as is known yet
        return raising(frame, TypeError, f"no function {family.name} is ever made")
    return await by_variant(engine, frame, fn, [(n,) for n in possible(fn)], one, node)
