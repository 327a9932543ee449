"""How loops are inferred.

A loop over something of static length (a tuple, a zip of tuples) is unrolled, because its elements may differ in type.
Every other loop stays a loop: its carried variables are generalised until their types no longer change, and
`while_loop` or `for_loop` is emitted with closed graphs. If that fails, a loop with a small known number of iterations
is unrolled after all. Such a loop may make a list of functions, or arrays whose sizes depend on the iteration.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from ...abstract.types import INT, Scalar, tuple_of
from ...ir import syntax as S
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY
from ...ir.walk import graphs_reachable
from ...prims.api.numpy_elementwise import array
from ...prims.ops.control import for_loop, while_loop
from ...prims.ops.structure import get_item, make_struct
from ...utils.errors import TypeError_
from ..engine.branches import branch, give_imports
from ..engine.cells import MoreCells, carrying, changed_in_loop, open_iteration
from ..engine.conform import widened
from ..engine.drift import Exhausted, TypeDrift, Unnumbered, settling, undoing
from ..engine.engine import Engine, conform
from ..engine.frames import KEPT, Frame, emit, raising, reach
from ..engine.unions import dispatch
from ..objects.arithmetic import arithmetic
from ..objects.iterables import Walk, walk
from ..objects.leaves import first_axis
from ..objects.truth import truth
from ..values.sizes import hide_sizes
from ..values.treedef import Mismatch, TreeDef, join, tree_structure, unknown
from ..values.values import NEVER, UNBOUND_VAL, Dyn, Iter, Seq, TaggedUnion, Val, elements
from .accumulators import converting
from .carried import generalise, initial_nodes, mark_each, region_with_parameters
from .narrowing import split, test_of
from .registry import handles
from .unrolling import DRIFTING, unroll, unrolling

FEW = 8  # iterations: up to this number a loop is unrolled if its index chooses among large arrays
WRITTEN_OUT = 1000  # operations: from this number on a loop over a tuple or a list of numbers stays a loop if it can
LOOP = 50  # operations, as which a loop in such a loop counts
UNROLLED = 1024  # iterations: up to this number a loop is unrolled if it cannot stay a loop


@handles(S.while_)
async def while_(engine: Engine, frame: Frame, node: Apply) -> Val:
    condition, body = node.args[0].value, node.args[1].value
    init = [engine.value(frame, a) for a in node.args[2:]]
    names = tuple(node.attrs["names"])
    # A condition that is False at compile time on entry means that the loop does not run at all.
    return await emit_while(
        engine, frame, node, init, names, graph_runner(engine, condition), graph_runner(engine, body)
    )


def graph_runner(engine: Engine, graph: Graph):
    """Run a parsed graph on values for its parameters."""

    async def run(frame: Frame, values: list[Val]) -> Val:
        for param, value in zip(graph.params, values, strict=True):
            frame.env[param] = value
        return await engine.body(frame, graph)

    run.graph = graph
    return run


async def peeled(engine, frame, node, init, decided, first, rest, error: TypeDrift) -> Val:
    """A loop whose carried types settle after one iteration: that iteration, then the loop.

    `best = 0.0; for row in x: best = max(best, np.sum(row))` is a Python float before the first iteration and may be a NumPy
    scalar after it. The first iteration is therefore inferred by itself.

    Args:
        engine, frame, node, init, decided, error: see `with_iterations`.
        first: `(frame, values) -> values after one iteration`, or NEVER.
        rest: `(frame, values) -> Val`: the loop from the second iteration on.
    """

    async def iterations(region: Frame, values: list[Val]) -> Val:
        after = await first(region, values)
        return NEVER if after is NEVER else await rest(region, elements(after))

    return await with_iterations(engine, frame, node, init, decided, iterations, error)


async def with_iterations(engine, frame, node, init, decided, iterations, error: TypeDrift) -> Val:
    """A loop whose carried types in its first iteration may differ from the initial ones.

    If there is no iteration, the variables keep their initial types; after the loop they are unions of both.

    Args:
        engine, frame, node: as everywhere.
        init: the initial carried values.
        decided: whether there is a first iteration: a bool or a bool scalar.
        iterations: `(frame, values) -> Val`: the loop, which has a first iteration.
        error: the error to raise if the types do not join.
    """
    landed: list[TreeDef] = []

    async def some(region: Frame) -> Val:
        result = await iterations(region, [region.bring(v) for v in init])
        if result is not NEVER:  # a first iteration that always raises has no result types
            landed.extend(tree_structure(v, capture=region.captured) for v in elements(result))
        return result

    if decided is True:
        scope = frame.scope()
        return scope.leave(await some(scope))
    if decided is False:
        return Seq("tuple", tuple(init))

    # The first arm is inferred before the second, which needs its result types.
    async def none(region: Frame) -> Val:
        out = [region.bring(v) for v in init]
        for value, treedef in zip(out, landed, strict=False):
            if _differs(tree_structure(value, keep_constants=False, capture=region.captured), treedef):
                message = f"{error.message}; and the loop ran no iteration, so it kept the first type"
                return raising(region, TypeError, message)
        return Seq("tuple", tuple(out))

    return await branch(engine, frame, decided, [some, none], node, in_order=True)


def _differs(a: TreeDef, b: TreeDef) -> bool:
    try:
        join(a, b)
    except Mismatch:
        return True
    return False


def tested(engine, test: Frame, condition, values: list[Val], side: int) -> list[Val]:
    """The carried values narrowed by the condition: side 0, where it holds, in an iteration; side 1 after the loop."""
    graph = getattr(condition, "graph", None)
    found = test_of(engine, test, graph.output) if graph is not None else None
    if graph is None or found is None or found[0] not in graph.params:
        return values
    at = graph.params.index(found[0])
    sides = split(values[at], found[1])
    return values if sides is None else [*values[:at], sides[side], *values[at + 1 :]]


async def emit_while(engine, frame, node, init, names, condition, body, wide: bool = True, grow: bool = True) -> Val:
    """Emit a `while_loop` from coroutines `(frame, carried values) -> Val` for condition and body.

    Args:
        engine, frame, node: as everywhere.
        init: the initial values.
        names: the carried variables' names, for messages.
        condition, body: the coroutines.
        wide: whether carried variables may become tagged unions.
        grow: whether carried arrays may have other sizes after an iteration.
    """
    drift: list[TypeDrift] = []
    types: list[TreeDef] = []

    async def plain() -> Val:
        return await stable_while(engine, frame, node, init, names, condition, body)

    async def with_first_iteration() -> Val:
        decided = await truth(engine, frame, await condition(frame.scope(), init))

        async def rest(region: Frame, values) -> Val:
            return await stable_while(engine, region, node, values, names, condition, body)

        return await peeled(engine, frame, node, init, decided, body, rest, drift[0])

    async def widened() -> Val:
        return await stable_while(engine, frame, node, init, names, condition, body, True, known=types)

    async def grown() -> Val:
        return await stable_while(engine, frame, node, init, names, condition, body, True, True)

    graphs = getattr(condition, "graph", None), getattr(body, "graph", None)
    attempts = [plain, *(in_turn(drift, with_first_iteration, widened) if wide else [with_first_iteration])]
    attempts += [grown] if grow else []
    return await settling(engine.ways, frame, node, graphs, init, attempts, drift, types)


async def stable_while(
    engine, frame, node, init, names, condition, body, wide: bool = False, grow: bool = False, known: list | None = None
) -> Val:
    """A `while_loop` whose carried variables keep their types; with `wide` they may be one of several, with `grow` of any size;
    `known` as for `generalise`.
    """

    async def loop(init, names, cells):
        return await _stable_while(engine, frame, node, init, names, cells, condition, body, wide, grow, known)

    return await carrying(engine, frame, init, names, loop)


async def _stable_while(engine, frame, node, init, names, cells, condition, body, wide, grow, known) -> Val:
    count, init = len(init) - len(cells), [widened(frame, v) for v in init]

    async def attempt(carried):
        frame.at(node.origin)
        test, _, values = region_with_parameters(frame, "while", carried, names, [])
        mark_each(engine, init, values)
        test.at(node.origin)
        open_iteration(frame, test, cells, values[count:])
        decided = await truth(engine, test, await condition(test, values[:count]))
        iteration, _, values = region_with_parameters(frame, "body", carried, names, [])
        mark_each(engine, init, values)
        iteration.at(node.origin)
        values = tested(engine, test, condition, values, 0)
        result = NEVER if decided is False else await iterate_with_cells(frame, iteration, cells, body, values)
        return carried_after(iteration, result), (test, decided, iteration, result)

    carried, (test, decided, iteration, result) = await generalise(
        engine, frame, init, names, node.origin, attempt, wide, grow, known
    )
    frame.at(node.origin)
    if isinstance(decided, bool):
        test.graph.output = test.constant(decided).node
    else:
        test.graph.output = decided.node
    close_body(engine, iteration, result, carried)
    if decided is False:  # it never runs, which is not that it does not come back
        engine.unreturning.discard(iteration.graph)
    starts = initial_nodes(frame, init, carried)
    apply = frame.graph.apply(
        while_loop,
        *starts,
        attrs={"cond": test.graph, "body": iteration.graph, "carried": len(starts)},
        type=tuple_of(*[n.type for n in starts]),
        origin=node.origin,
    )
    give_imports(apply, starts, [test, iteration])
    if decided is True and not starts:
        return NEVER
    after = tested(engine, test, condition, unpack_carried(frame, apply, carried), 1)
    mark_each(engine, init, after)
    if result is not NEVER:
        mark_each(engine, elements(result), after)
    return Seq("tuple", tuple(after))


def carried_after(iteration: Frame, result: Val) -> list[TreeDef] | None:
    """The treedefs of the carried values after an iteration; None where it does not come back."""
    if result is NEVER:
        return None
    return [hide_sizes(tree_structure(v, capture=iteration.captured), iteration.graph) for v in elements(result)]


def close_body(engine: Engine, iteration: Frame, result: Val, carried: list[TreeDef]) -> None:
    """Set the output of a loop body: the carried leaves, always as a tuple."""
    if result is NEVER:
        engine.unreturning.add(iteration.graph)
        nodes = [n for s in carried for n in conform(iteration, UNBOUND_VAL, s)]
    else:
        nodes = [n for v, s in zip(elements(result), carried, strict=True) for n in conform(iteration, v, s)]
    iteration.graph.output = iteration.builder.emit(
        make_struct, tuple(nodes), {"type": tuple_of(*[n.type for n in nodes])}
    )


def unpack_carried(frame: Frame, apply, carried: list[TreeDef]) -> list[Val]:
    """The carried values after a loop."""
    count = sum(len(list(s.leaves())) for s in carried)
    nodes = iter([frame.builder.emit(get_item, (apply,), {"index": i}) for i in range(count)])
    return [frame.rebuild(s, nodes) for s in carried]


@handles(S.for_)
async def for_(engine: Engine, frame: Frame, node: Apply) -> Val:
    iterable = engine.value(frame, node.args[0])
    if isinstance(iterable, TaggedUnion):
        return await dispatch(
            engine, frame, iterable, lambda region, option: over(engine, region, node, option), node, node.origin
        )
    return await over(engine, frame, node, iterable)


async def over(engine: Engine, frame: Frame, node: Apply, iterable: Val) -> Val:
    """A `for` loop over an iterable.

    Raises:
        CompileError: it cannot stay a loop, and cannot be unrolled.
        Exhausted: it is too long to be unrolled.
        LargeChoice: never; it is handled here.
    """
    body = node.args[1].value
    init = [engine.value(frame, a) for a in node.args[2:]]
    names = tuple(node.attrs["names"])
    stops = bool(node.attrs.get("stops"))
    run = graph_runner(engine, body)
    if isinstance(iterable, Iter) and iterable.kind == "map":
        run, iterable = calling(engine, frame, iterable, run, node)
    steps = walk(engine, frame, iterable)
    if isinstance(steps, list):
        if copies(frame, body, steps) > WRITTEN_OUT and (same := columns(engine, frame, steps)) is not None:
            with suppress(TypeError_), undoing(frame, TypeError_):
                return await (stopping if stops else counted)(engine, frame, node, same, init, names, run)
        return await unroll(engine, frame, node, steps, init, run, stops)

    async def loop(grow: bool = True) -> Val:
        return await (stopping if stops else counted)(engine, frame, node, steps, init, names, run, grow=grow)

    iterations = range(0)
    if steps.start.known and steps.stop.known and steps.step.known:
        iterations = range(steps.start.known_value, steps.stop.known_value, steps.step.known_value)
    if not iterations:
        return await loop()
    choices = engine.large_choices
    try:
        with undoing(frame, TypeError_):
            made = await loop(grow=False)
            if engine.large_choices == choices or len(iterations) * engine.spelt_out > FEW:
                return made
            engine.large_choices = choices
            raise LargeChoice("the loop copies an element of a tuple of large arrays in every iteration")
    except TypeError_ as error:
        problem = told = error

    async def unrolled(count: int) -> Val:
        items = [steps.item(frame, frame.constant(i)) for i in iterations[:count]]
        with unrolling(engine, len(items)):
            return await unroll(engine, frame, node, items, init, run, stops)

    most = DRIFTING if isinstance(problem, TypeDrift) else UNROLLED
    try:
        with undoing(frame, TypeError_):
            if len(iterations) * engine.spelt_out <= most:
                return await unrolled(len(iterations))
            await unrolled(1)
            raise Exhausted(f"it has at most {most:,} iterations, and this one has {len(iterations):,}")
    except Exhausted as limit:
        if limit.notes and not isinstance(
            problem, LargeChoice
        ):  # the error of an inner loop, which is already complete
            raise
        inside = ", counted with those of the loops around it" if engine.spelt_out > 1 else ""
        told = Exhausted(
            problem.message,
            problem.origin,
            *problem.notes,
            f"a loop that cannot stay a loop is unrolled, which makes its index known, where {limit.message}{inside}; "
            "split it up, or loop over the values (`for w in weights`) or over an array of them",
        )
        told.node = problem.node
    except TypeError_ as error:
        if isinstance(problem, Unnumbered):  # which unrolling has mended
            told = error
    if isinstance(problem, LargeChoice):
        return await loop(grow=False)
    if isinstance(problem, TypeDrift):
        with suppress(TypeError_), undoing(frame, TypeError_):
            return await loop()
    raise told from None


def copies(frame: Frame, body: Graph, items: list[Val]) -> int:
    """How many operations a loop over so many items becomes if it is unrolled, in the unrolled loops around it; a loop in it, whose
    code is longer and which derivatives run backwards, counts as `LOOP` of them.
    """
    nodes = [n for g in graphs_reachable(body) for n in g.nodes]
    operations = sum(LOOP if getattr(n.fn, "value", None) in (S.for_, S.while_) else 1 for n in nodes)
    return operations * len(items) * frame.copies


def columns(engine: Engine, frame: Frame, items: list[Val]) -> Walk | None:
    """A walk over numbers, or tuples of numbers, that are kept in arrays, one for each place; None for other items."""
    forms = {unknown(tree_structure(item, keep_constants=False, capture=frame.captured)) for item in items}
    if len(forms) != 1 or not is_plain(form := forms.pop()):
        return None
    rows: list[list[Node]] = [[] for _ in items]
    for item, row in zip(items, rows, strict=True):
        tree_structure(item, row, keep_constants=False, capture=frame.captured)
    arrays = [column(frame, nodes) for nodes in zip(*rows, strict=True)]

    def item_at(inner: Frame, index: Dyn) -> Val:
        found = [first_axis(inner, reach(frame, inner, a), index).node for a in arrays]
        casts = [{"dtype": leaf.info.dtype, "weak": leaf.info.weak} for leaf in form.leaves()]
        nodes = (inner.builder.emit(REGISTRY["cast"], (n,), c) for n, c in zip(found, casts, strict=True))
        return inner.rebuild(form, nodes)

    return Walk(frame.constant(0), frame.constant(len(items)), frame.constant(1), item_at)


def is_plain(treedef: TreeDef) -> bool:
    """Whether values with a treedef are numbers, or tuples of such values."""
    if treedef.tag == "seq":
        return treedef.info[0] == "tuple" and all(map(is_plain, treedef.parts))
    return treedef.tag == "dyn" and isinstance(treedef.info, Scalar)


def column(frame: Frame, nodes: tuple[Node, ...]) -> Dyn:
    """Numbers of one type as an array."""
    known = [n.value for n in nodes if isinstance(n, Constant)]
    if len(known) == len(nodes):
        return frame.constant(np.array(known, nodes[0].type.dtype))
    return Dyn(array(frame.builder, [frame.var(Dyn(n)) for n in nodes]).node)


class LargeChoice(TypeError_):
    """A loop could stay a loop, but is better unrolled: it would copy what its index chooses, such as the weights of a layer."""


def calling(engine: Engine, frame: Frame, mapped: Iter, run: Callable, node: Apply) -> tuple[Callable, Val]:
    """An iteration over a `map`, which calls its function for each item: the body, and the underlying iterable."""
    fn, *sequences = mapped.parts

    async def call(region: Frame, values: list[Val]) -> Val:
        item, *carried = values
        args = [item] if len(sequences) == 1 else elements(item)
        made = await engine.call(region, reach(frame, region, fn), args, {}, node.origin, node)
        return NEVER if made is NEVER else await run(region, [made, *carried])

    return call, sequences[0] if len(sequences) == 1 else Iter("zip", tuple(sequences))


async def counted(engine, frame, node, steps: Walk, init, names, run, wide: bool = True, grow: bool = True) -> Val:
    """A loop with a trip count: `for_loop`. `wide` and `grow` as for `emit_while`."""
    drift: list[TypeDrift] = []
    types: list[TreeDef] = []

    async def plain() -> Val:
        return await stable_counted(engine, frame, node, steps, init, names, run)

    async def any_iteration() -> Dyn | bool:
        frame.at(node.origin)
        return await truth(engine, frame, in_range(engine, frame, steps.start, steps.stop, steps.step))

    async def with_converted_starts() -> Val:
        async def iterations(region: Frame, values) -> Val:
            start, stop, step = (reach(frame, region, v) for v in (steps.start, steps.stop, steps.step))
            same = Walk(start, stop, step, steps.item)

            async def loop(starts: list[Val], iteration) -> Val:
                return await stable_counted(engine, region, node, same, starts, names, iteration)

            return await converting(engine, region, values, run, loop, drift[0])

        return await with_iterations(engine, frame, node, init, await any_iteration(), iterations, drift[0])

    async def with_first_iteration() -> Val:
        decided = await any_iteration()

        async def first(region: Frame, values) -> Val:
            item = steps.item(region, reach(frame, region, steps.start))
            return await run(region, [item, *values])

        async def rest(region: Frame, values) -> Val:
            start, stop, step = (reach(frame, region, v) for v in (steps.start, steps.stop, steps.step))
            later = Walk(emit(region, "add", start, step), stop, step, steps.item)
            return await stable_counted(engine, region, node, later, values, names, run)

        return await peeled(engine, frame, node, init, decided, first, rest, drift[0])

    async def widened() -> Val:
        return await stable_counted(engine, frame, node, steps, init, names, run, True, known=types)

    async def grown() -> Val:
        return await stable_counted(engine, frame, node, steps, init, names, run, True, True)

    last = in_turn(drift, with_first_iteration, widened) if wide else [with_first_iteration]
    if wide and not frame.context.iteration and all(v.known for v in (steps.start, steps.stop, steps.step)):
        # What its number decides in the first iteration, such as that a loop inside runs, is known there. Only in an outermost
        # loop: the code doubles.
        last = [with_first_iteration, widened]
    attempts = [plain, with_converted_starts, *last, *([grown] if grow else [])]
    values = [steps.start, steps.stop, steps.step, *init]
    return await settling(engine.ways, frame, node, (getattr(run, "graph", None),), values, attempts, drift, types)


def in_turn(drift: list[TypeDrift], with_first_iteration: Callable, widened: Callable) -> list[Callable]:
    """The order of two ways to infer a loop: with its first iteration by itself, and with variables of several types.

    The first makes faster loops, and code that doubles with each level of nesting. It gains nothing where a variable may still
    have its first type after that iteration, as where a condition decides whether something is added to a sum.

    Args:
        drift: receives the error of the loop with variables of one type.
        with_first_iteration, widened: the two.
    """

    async def where_it_may_stay() -> Val:
        if drift[0].after is None or drift[0].after.tag != "choice":
            raise drift[0]
        return await widened()

    return [where_it_may_stay, with_first_iteration, widened]


def in_range(engine, region: Frame, index: Dyn, stop: Dyn, step: Dyn) -> Dyn:
    """Whether a counter has not reached its end."""
    if step.known:
        return arithmetic(region, operator.lt if step.known_value > 0 else operator.gt, index, stop)
    up = arithmetic(region, operator.lt, index, stop)
    down = arithmetic(region, operator.gt, index, stop)
    forward = arithmetic(region, operator.gt, step, region.constant(0))
    return emit(region, "where", forward, up, down)


async def iterate_with_cells(frame: Frame, iteration: Frame, cells: list, body, values: list[Val]) -> Val:
    """One iteration of a loop that carries cells, their contents being the last of the carried values.

    Raises:
        MoreCells: it changes others.
    """
    count = len(values) - len(cells)
    iteration.writes = True
    open_iteration(frame, iteration, cells, values[count:])
    result = widened(iteration, await body(iteration, values[:count]))
    if result is NEVER or not iteration.cells:
        return result
    more = changed_in_loop(frame, iteration, cells, elements(result))
    if more:
        raise MoreCells(more)
    return Seq("tuple", (*elements(result), *[widened(iteration, iteration.cell(c)) for c in cells]))


async def stable_counted(
    engine,
    frame,
    node,
    steps: Walk,
    init,
    names,
    run,
    wide: bool = False,
    grow: bool = False,
    known: list | None = None,
) -> Val:
    """A `for_loop` whose carried variables keep their types; `wide`, `grow` and `known` as for `stable_while`."""

    async def loop(init, names, cells):
        return await _stable_counted(engine, frame, node, steps, init, names, cells, run, wide, grow, known)

    return await carrying(engine, frame, init, names, loop)


async def _stable_counted(engine, frame, node, steps: Walk, init, names, cells, run, wide, grow, known) -> Val:
    init = [widened(frame, v) for v in init]

    async def attempt(carried):
        frame.at(node.origin)
        turn = None
        if steps.start.known and steps.stop.known and steps.step.known:
            count = len(range(steps.start.known_value, steps.stop.known_value, steps.step.known_value))
            turn = KEPT if count > 1 else 0
        iteration, (index,), values = region_with_parameters(frame, "for", carried, names, [("i", INT)], turn)
        mark_each(engine, init, values)
        iteration.at(node.origin)

        async def body(region: Frame, current: list[Val]) -> Val:
            return await run(region, [steps.item(region, Dyn(index)), *current])

        result = await iterate_with_cells(frame, iteration, cells, body, values)
        return carried_after(iteration, result), (iteration, result)

    carried, (iteration, result) = await generalise(engine, frame, init, names, node.origin, attempt, wide, grow, known)
    frame.at(node.origin)
    close_body(engine, iteration, result, carried)
    starts = [v.node for v in (steps.start, steps.stop, steps.step)] + initial_nodes(frame, init, carried)
    apply = frame.graph.apply(
        for_loop,
        *starts,
        attrs={"body": iteration.graph, "carried": len(starts) - 3},
        type=tuple_of(*[n.type for n in starts[3:]]),
        origin=node.origin,
    )
    give_imports(apply, starts, [iteration])
    after = unpack_carried(frame, apply, carried)
    mark_each(engine, init, after)
    if result is not NEVER:
        mark_each(engine, elements(result), after)
    return Seq("tuple", tuple(after))


async def stopping(engine, frame, node, steps: Walk, init, names, run, grow: bool = True) -> Val:
    """A `for` with `break`: a `while_loop` that carries its index and whether to continue; `grow` as for `emit_while`."""

    async def condition(region: Frame, values):
        index, go_on, *_ = values
        stop, step = (reach(frame, region, v) for v in (steps.stop, steps.step))
        return emit(region, "logical_and", go_on, in_range(engine, region, index, stop, step))

    async def body(region: Frame, values):
        index, _, *carried = values
        result = await run(region, [steps.item(region, index), *carried])
        if result is NEVER:
            return NEVER
        *carried, go_on = elements(result)
        step = reach(frame, region, steps.step)
        following = emit(region, "add", index, step)
        return Seq("tuple", (following, go_on, *carried))

    body.graph = getattr(run, "graph", None)

    start = [steps.start, frame.constant(True), *init]
    result = await emit_while(engine, frame, node, start, ("$index", "$go", *names), condition, body, grow=grow)
    return result if result is NEVER else Seq("tuple", tuple(elements(result)[2:]))
