"""Control flow as functions, with JAX's signatures: `scan`, `cond`, `while_loop`, `fori_loop`, `tree_map`.

They become the same loops and branches as Python's own statements, so they are differentiated, batched and compiled
alike. A carried Python number is converted to a NumPy number before the first iteration if the body makes it one.
"""

from __future__ import annotations

from ...abstract.dims import DimLike
from ...abstract.types import INT, Array, Scalar, tuple_of
from ...ir.build import Var, as_type
from ...ir.node import Apply, Node
from ...ir.prim import REGISTRY
from ...prims.ops.control import for_loop, undef
from ...prims.rules.broadcast import broadcast_to
from ...utils.errors import ShapeError, TypeError_
from ...utils.source import Origin
from ..engine.branches import branch, give_imports
from ..engine.engine import Engine, conform
from ..engine.frames import Frame, emit, reach
from ..language.calls import call_value
from ..language.carried import generalise, initial_nodes, region_with_parameters
from ..language.loops import counted, emit_while, unpack_carried
from ..language.registry import derived
from ..objects.iterables import Walk
from ..objects.leaves import array_length, first_axis, to_option
from ..objects.lists import refuse_run_time
from ..objects.truth import truth
from ..values.treedef import TreeDef, describe, rebuild, tree_structure, unknown
from ..values.values import NEVER, Derived, Dyn, Seq, Static, Val, elements
from .derivatives import named_arguments


def place(frame: Frame, origin: Origin, *names: str) -> Apply:
    """A substitute for the syntax node from which loops and branches are made."""
    return Apply(frame.graph, undef, attrs={"names": names}, origin=origin)


async def settled(engine: Engine, frame: Frame, value: Val, origin: Origin, iteration) -> Val:
    """The initial value of a loop, with Python numbers converted to NumPy numbers if an iteration does that.

    Args:
        engine, frame: as everywhere.
        value: the initial value.
        origin: the place.
        iteration: coroutine `(region, value) -> value`, one iteration; inferred, and discarded.
    """
    for _ in range(3):
        frame.at(origin)
        first = unknown(tree_structure(value, capture=frame.captured))
        region, _, (start,) = region_with_parameters(frame, "settle", [first], ("carry",), [])
        region.at(origin)
        after = await iteration(region, start)
        if after is NEVER:
            return value
        second = unknown(tree_structure(after, capture=region.captured))
        better = strengthened(frame, value, first, second)
        if better is None:
            return value
        value = better
    return value


def strengthened(frame: Frame, value: Val, first: TreeDef, second: TreeDef) -> Val | None:
    """`value` with Python numbers cast where `second` has NumPy numbers of that dtype; None if there are none."""
    nodes: list[Node] = []
    treedef = tree_structure(value, nodes, False, frame.captured)
    before, after = [s.info for s in first.leaves()], [s.info for s in second.leaves()]
    if len(before) != len(after) or len(nodes) != len(before):
        return None
    changed = False
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        if (
            a != b
            and isinstance(a, Scalar)
            and a.weak
            and isinstance(b, Scalar | Array)
            and a.dtype == b.dtype
            and b.shape == ()
        ):
            node = frame.builder.emit(REGISTRY["cast"], (nodes[i],), {"dtype": a.dtype, "weak": False})
            nodes[i] = frame.builder.emit(REGISTRY["as_array"], (node,)) if isinstance(b, Array) else node
            changed = True
    return rebuild(treedef, iter(nodes)) if changed else None


@derived("scan")
async def call_scan(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`scan(f, init, xs)` from outside, f being `fn.function`."""
    init, xs = args
    return await scan(engine, frame, fn.function, init, xs, fn.option("length"), fn.option("reverse"), origin)


async def scan_request(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`scan(f, init, xs=None, length=None, reverse=False)` in compiled code."""
    defaults = {"xs": Static(None), "length": Static(None), "reverse": Static(False)}
    names = ("f", "init", "xs", "length", "reverse")
    given = dict(zip(names, args, strict=False)) | kwargs
    fn, init, xs, length, reverse = named_arguments("scan", names, [], defaults | given)
    size, backwards = to_option(length, "scan: length"), bool(to_option(reverse, "scan: reverse"))
    return await scan(engine, frame, fn, init, xs, size, backwards, origin)


async def scan(
    engine, frame: Frame, fn: Val, init: Val, xs: Val, length: int | None, backwards: bool, origin: Origin
) -> Val:
    """A `for_loop` that carries `carry` and writes each `y` into a preallocated stack.

    Raises:
        TypeError_: the function does not return a pair, or never returns, or `y` cannot be stacked.
    """
    refuse_run_time([xs], "scan")
    count, size = scan_length(frame, xs, length)
    b = frame.at(origin)

    def example(region: Frame, index: Node) -> Val:
        leaves: list[Node] = []
        treedef = tree_structure(reach(frame, region, xs), leaves, False, region.captured)
        return rebuild(treedef, iter([first_axis(region, Dyn(n), Dyn(index)).node for n in leaves]))

    async def step(region: Frame, carry: Val, index: Node) -> tuple[Val, Val] | None:
        result = await call_value(
            engine, region, reach(frame, region, fn), [carry, example(region, index)], {}, origin, None
        )
        if result is NEVER:
            return None
        if not isinstance(result, Seq) or len(result.elems) != 2:
            raise TypeError_(f"scan: the function returns {describe(result)}; it returns a pair (carry, y)")
        return result.elems

    async def once(region: Frame, carry: Val) -> Val:
        index = region.graph.add_parameter("i", INT)
        made = await step(region, carry, index)
        return NEVER if made is None else made[0]

    init = await settled(engine, frame, init, origin, once)

    async def attempt(carried):
        frame.at(origin)
        iteration, (index,), (carry,) = region_with_parameters(frame, "scan", carried, ("carry",), [("i", INT)])
        iteration.at(origin)
        made = await step(iteration, carry, index)
        return None if made is None else [tree_structure(made[0], capture=iteration.captured)], (iteration, index, made)

    carried, (iteration, index, made) = await generalise(engine, frame, [init], ("carry",), origin, attempt)
    b = frame.at(origin)
    starts = initial_nodes(frame, [init], carried)
    iteration.at(origin)
    if made is None:
        raise TypeError_("scan: the function never returns")
    ys: list[Node] = []
    y_treedef = tree_structure(made[1], ys, False, iteration.captured)
    outs = conform(iteration, made[0], carried[0])
    stacks = []
    position = Var(iteration.builder, index)
    for k, y in enumerate(ys):
        if not isinstance(y.type, Scalar | Array):
            raise TypeError_(f"scan: y has a part of type {y.type}, which cannot be stacked")
        t = Array(y.type.dtype, (size, *y.type.shape))
        scalar = Scalar(t.dtype)
        empty = broadcast_to(
            Var(b, b.constant(as_type(False if t.dtype == "bool" else 0, scalar), scalar)), shape=t.shape
        )
        stacks.append(empty.node)
        stack = Var(iteration.builder, iteration.graph.add_parameter(f"ys{k}", t))
        outs.append(REGISTRY["dynamic_update"](stack, Var(iteration.builder, y), position, axis=0).node)
    make = REGISTRY["make_struct"]
    iteration.graph.output = iteration.builder.emit(make, tuple(outs), {"type": tuple_of(*[n.type for n in outs])})
    inputs = [*starts, *stacks]
    bounds = [frame.constant(0), count, frame.constant(1)]
    if backwards:
        bounds = [emit(frame, "sub", count, frame.constant(1)), frame.constant(-1), frame.constant(-1)]
    node = frame.graph.apply(
        for_loop,
        *[v.node for v in bounds],
        *inputs,
        attrs={"body": iteration.graph, "carried": len(inputs)},
        type=tuple_of(*[n.type for n in inputs]),
        origin=origin,
    )
    give_imports(node, node.args, [iteration])
    out, stacked = unpack_carried(frame, node, [carried[0], TreeDef("seq", ("tuple", (), None), _dyn(stacks))])
    return Seq("tuple", (out, rebuild(y_treedef, iter([v.node for v in elements(stacked) if isinstance(v, Dyn)]))))


def _dyn(nodes: list[Node]) -> tuple[TreeDef, ...]:
    return tuple(TreeDef("dyn", n.type) for n in nodes)


def scan_length(frame: Frame, xs: Val, given: int | None) -> tuple[Dyn, DimLike]:
    """The trip count, as a value and as a size: the common first axis of `xs`, or the given length.

    Raises:
        TypeError_: neither says, or a leaf of `xs` is no array with a first axis.
        ShapeError: they disagree.
    """
    leaves: list[Node] = []
    tree_structure(xs, leaves, False, frame.captured)
    sizes = []
    for node in leaves:
        if not isinstance(node.type, Array) or not node.type.shape:
            raise TypeError_(
                f"scan: xs has a leaf of type {node.type}; its leaves are arrays, gone over along their first axes"
            )
        sizes.append(node.type.shape[0])
    if given is not None:
        sizes.append(given)
    if not sizes:
        raise TypeError_("scan: give xs, arrays to go over, or length")
    if any(s != sizes[0] for s in sizes):
        raise ShapeError(f"scan: first axes (and length) differ: {', '.join(map(str, sizes))}")
    return array_length(frame, Dyn(leaves[0])) if leaves else frame.constant(given), sizes[0]


@derived("cond")
async def call_cond(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`cond(pred, true_fun, false_fun, *operands)` from outside: `fn.function` is `true_fun`."""
    other = engine.from_python(frame, fn.option("orelse"), None)
    return await cond(engine, frame, [args[0], fn.function, other, *args[1:]], {}, origin, site)


async def cond(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`cond(pred, true_fun, false_fun, *operands)`: only one of them runs.

    Raises:
        TypeError_: there are fewer than three positional arguments, or keyword arguments.
    """
    if len(args) < 3 or kwargs:
        raise TypeError_("cond(pred, true_fun, false_fun, *operands) takes at least 3 positional arguments")
    pred, true_fun, false_fun, *operands = args
    decided = await truth(engine, frame, pred)
    if isinstance(decided, bool):
        return await call_value(engine, frame, true_fun if decided else false_fun, operands, {}, origin, site)

    def arm(fn: Val):
        async def run(region: Frame) -> Val:
            values = [reach(frame, region, v) for v in operands]
            return await call_value(engine, region, reach(frame, region, fn), values, {}, origin, site)

        return run

    return await branch(engine, frame, decided, [arm(true_fun), arm(false_fun)], place(frame, origin))


@derived("while_loop")
async def call_while(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`while_loop(cond_fun, body_fun, init)` from outside: `fn.function` is `body_fun`."""
    test = engine.from_python(frame, fn.option("test"), None)
    return await while_loop(engine, frame, [test, fn.function, args[0]], {}, origin, site)


async def while_loop(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`while_loop(cond_fun, body_fun, init_val)`."""
    test, body, init = named_arguments("while_loop", ("cond_fun", "body_fun", "init_val"), args, kwargs)

    async def condition(region: Frame, values) -> Val:
        return await call_value(engine, region, reach(frame, region, test), list(values), {}, origin, site)

    async def once(region: Frame, value: Val) -> Val:
        return await call_value(engine, region, reach(frame, region, body), [value], {}, origin, site)

    async def iteration(region: Frame, values) -> Val:
        result = await once(region, values[0])
        return result if result is NEVER else Seq("tuple", (result,))

    init = await settled(engine, frame, init, origin, once)
    result = await emit_while(
        engine, frame, place(frame, origin, "carry"), [init], ("carry",), condition, iteration, False
    )
    return result if result is NEVER else elements(result)[0]


@derived("fori_loop")
async def call_fori(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`fori_loop(lower, upper, body_fun, init_val)` from outside: `fn.function` is `body_fun`."""
    lower, upper, init = args
    return await fori_loop(engine, frame, [lower, upper, fn.function, init], {}, origin, site)


async def fori_loop(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`fori_loop(lower, upper, body_fun, init_val)`.

    Raises:
        TypeError_: a bound is no int.
    """
    names = ("lower", "upper", "body_fun", "init_val")
    lower, upper, body, init = named_arguments("fori_loop", names, args, kwargs)
    bounds = []
    for name, bound in (("lower", lower), ("upper", upper)):
        t = bound.type if isinstance(bound, Dyn) else None
        if not isinstance(bound, Dyn) or not isinstance(t, Scalar | Array) or t.shape != () or "int" not in t.dtype:
            raise TypeError_(f"fori_loop: {name} is {describe(bound)}; it is an int")
        same = bound.type == INT
        cast = REGISTRY["cast"]
        bounds.append(bound if same else Dyn(frame.builder.emit(cast, (bound.node,), {"dtype": "int64", "weak": True})))

    async def call(region: Frame, index: Val, value: Val) -> Val:
        return await call_value(engine, region, reach(frame, region, body), [index, value], {}, origin, site)

    async def once(region: Frame, value: Val) -> Val:
        return await call(region, Dyn(region.graph.add_parameter("i", INT)), value)

    async def iteration(region: Frame, values) -> Val:
        result = await call(region, *values)
        return result if result is NEVER else Seq("tuple", (result,))

    init = await settled(engine, frame, init, origin, once)
    steps = Walk(bounds[0], bounds[1], frame.constant(1), lambda region, index: index)
    result = await counted(engine, frame, place(frame, origin, "carry"), steps, [init], ("carry",), iteration, False)
    return result if result is NEVER else elements(result)[0]


async def tree_map(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`tree_map(f, tree, *rest)`: the structure of the first tree, with `f` applied to the leaves at the same place.

    Raises:
        TypeError_: there is no tree, there are keyword arguments, or the trees differ in structure.
    """
    if len(args) < 2 or kwargs:
        raise TypeError_("tree_map(f, tree, *rest) takes a function and at least one tree")
    fn, *trees = args

    async def go(parts: list[Val]) -> Val:
        first = parts[0]
        refuse_run_time(parts, "tree_map")
        if isinstance(first, Static) and first.value is None:
            return first
        if not isinstance(first, Seq):
            return await call_value(engine, frame, fn, parts, {}, origin, site)
        structures = [first]
        for other in parts[1:]:
            same = isinstance(other, Seq) and other.kind == first.kind and len(other.elems) == len(first.elems)
            if not isinstance(other, Seq) or not same or set(other.fields) != set(first.fields):
                raise TypeError_(f"tree_map: the trees differ: {describe(first)} and {describe(other)}")
            structures.append(other)
        children = []
        for i in range(len(first.elems)):
            pick = (t.get(first.fields[i]) if first.kind == "dict" else t.elems[i] for t in structures)
            children.append(await go(list(pick)))
        return Seq(first.kind, tuple(children), first.fields, first.cls)

    return await go(trees)


__all__ = ["cond", "fori_loop", "scan_request", "tree_map", "while_loop"]
