"""Comprehensions: lists of static length if the iterable has one, else run-time lists filled by a loop.

    [e for x in xs if c]    =>    for x in xs: out = out + [e] if c else out

The body of a parsed comprehension is a graph from an item to the list of its contributions. That list is never built:
where the graph ends in a display, in a branch or in another comprehension, the entries are appended to the list that is
being filled.
"""

from __future__ import annotations

from ...ir import syntax as S
from ...ir.node import Apply, Constant, Graph
from ..engine.branches import branch
from ..engine.conform import LONG
from ..engine.engine import Engine
from ..engine.frames import Frame, reach
from ..engine.unions import dispatch
from ..objects.iterables import walk
from ..objects.lists import concatenated, keeps_static, pushed
from ..objects.truth import truth
from ..values.kinds import known_range
from ..values.values import NEVER, Iter, Seq, TaggedUnion, Val, elements
from .loops import calling, counted
from .narrowing import arms_of
from .registry import handles

MOST_STATIC = 4096  # entries: a longer list is a run-time list, also where static ones are tried


@handles(S.comprehension)
async def comprehension(engine: Engine, frame: Frame, node: Apply) -> Val:
    """A comprehension, or a generator expression of which all is used."""
    return await filled(engine, frame, node, Seq("list", ()))


async def filled(engine: Engine, frame: Frame, node: Apply, out: Val) -> Val:
    """A list with the entries of a comprehension appended."""
    iterable = engine.value(frame, node.args[0])
    if isinstance(iterable, TaggedUnion):

        async def of_option(region: Frame, option: Val) -> Val:
            return await filled_from(engine, region, node, option, reach(frame, region, out))

        return await dispatch(engine, frame, iterable, of_option, node, node.origin)
    return await filled_from(engine, frame, node, iterable, out)


async def filled_from(engine: Engine, frame: Frame, node: Apply, iterable: Val, out: Val) -> Val:
    """A list with the entries of a comprehension over `iterable` appended."""
    body = node.args[1].value

    async def run(region: Frame, values: list[Val]) -> Val:
        item, so_far = values
        region.env[body.params[0]] = item
        result = await contributed(engine, region, body, so_far)
        return NEVER if result is NEVER else Seq("tuple", (result,))

    if isinstance(iterable, Iter) and iterable.kind == "map":
        run, iterable = calling(engine, frame, iterable, run, node)
    steps = walk(engine, frame, iterable)
    if (numbers := known_range(iterable)) is not None:
        # A short range is unrolled here, unlike in a loop: the list then has a static length.
        if len(numbers) <= LONG or len(numbers) * frame.copies <= MOST_STATIC and keeps_static(engine):
            steps = [frame.constant(i) for i in numbers]
    if isinstance(steps, list):
        before: list[
            Val
        ] = []  # entries of a static list, of which `out` has the last ones: each iteration copies those
        for position, item in enumerate(steps):
            engine.written_out[node] += 1
            if isinstance(out, Seq) and len(out.elems) > LONG:
                before += out.elems
                out = Seq("list", ())
            scope = frame.turn(position)
            scope.copies = frame.copies * len(steps)
            result = scope.leave(await run(scope, [item, out]))
            if result is NEVER:
                return NEVER
            (out,) = elements(result)
            if before and not isinstance(out, Seq):  # its length is known at run time only
                before, out = [], concatenated(engine, frame, Seq("list", tuple(before)), out)
        return Seq("list", (*before, *elements(out))) if before else out

    result = await counted(engine, frame, node, steps, [out], ("list",), run)
    return result if result is NEVER else elements(result)[0]


async def contributed(engine: Engine, frame: Frame, graph: Graph, out: Val) -> Val:
    """A list extended by the contribution of one item; `graph` makes the list of that contribution."""
    last = graph.output
    if not graph.nodes or graph.nodes[-1] is not last or not isinstance(last.fn, Constant):
        part = await engine.body(frame, graph)
        return part if part is NEVER else concatenated(engine, frame, out, part)
    for node in graph.nodes[:-1]:
        value = await engine.apply(frame, node)
        if value is NEVER:
            return NEVER
        frame.env[node] = value
    frame.at(last.origin)
    if last.fn.value is S.comprehension:
        return await filled(engine, frame, last, out)
    if last.fn.value is S.if_:
        return await _chosen(engine, frame, last, out)
    part = await engine.apply(frame, last)
    if part is NEVER:
        return NEVER
    if isinstance(part, Seq):
        for entry in part.elems:
            out = pushed(engine, frame, out, entry)
        return out
    return concatenated(engine, frame, out, part)


async def _chosen(engine: Engine, frame: Frame, node: Apply, out: Val) -> Val:
    """The contribution of one of two graphs."""
    condition, *graphs = node.args
    decided = await truth(engine, frame, engine.value(frame, condition))
    if isinstance(decided, bool):
        scope = frame.scope()
        return scope.leave(await contributed(engine, scope, graphs[0 if decided else 1].value, out))

    def arm(graph: Graph, facts: dict):
        async def run(region: Frame) -> Val:
            for fact, value in facts.items():
                region.env[fact] = region.bring(value)
            return await contributed(engine, region, graph, reach(frame, region, out))

        return run

    return await branch(engine, frame, decided, arms_of(engine, frame, node, arm), node)
