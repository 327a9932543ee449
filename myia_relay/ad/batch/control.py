"""Batching of branches and loops; see `ad.batch.batch`.

A loop whose examples run different numbers of iterations runs to the longest, with a mask of the examples that are
still running:

    for i in range(a, b, s): c = body(i, c)

        =>  n = ceil((b - a) / s);  for k in range(max(n)): c = where(k < n, body(a + k s, c), c)

Every iteration pushes on tapes, or pops from them, for all examples alike. The adjoint of a loop runs its iterations in
reverse order. The iterations that an example lacks are the last ones of the loop, so they are the first ones of its
adjoint (`k >= max(n) - n`). `ad.reverse.control` marks the bodies: the body of an adjoint has the flag "late" where the
loop's own body does not have it.
"""

from __future__ import annotations

from ...abstract.types import INT, Array, Data, Leaf, List, Scalar, Struct, Type
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY
from ...prims.rules.broadcast import reshape
from .batch import RULES, Batcher, Flag, OneByOne, canonical, full, is_undef, item, join


def _select(p: Batcher, b: Builder, mask: Node, t: Type, new: Node, old: Node) -> Node:
    """`where(mask, new, old)` for batched values of a type that is `t` for one example; tapes are the new ones.

    Raises:
        OneByOne: they are lists or values of an algebraic data type.
    """
    if new is old or is_undef(new) or is_undef(old):
        return old if is_undef(new) else new
    if isinstance(t, List | Data):
        raise OneByOne
    if isinstance(t, Struct):
        get, indices = REGISTRY["get_item"], range(len(t.elems))
        pairs = [[b.emit(get, (x,), {"index": i}) for x in (new, old)] for i in indices]
        parts = [_select(p, b, mask, e, *pair) for e, pair in zip(t.elems, pairs, strict=True)]
        return b.emit(REGISTRY["make_struct"], parts, {"type": p.type(t, full(t))})
    if not isinstance(t, Scalar | Array):
        # A tape belongs to one branch; on the other it is undefined, or, as a cotangent, empty.
        return old if getattr(getattr(new, "fn", None), "name", "") == "tape_new" else new
    shaped = reshape(Var(b, mask), shape=(p.size, *(1,) * len(t.shape))) if t.shape else Var(b, mask)
    return REGISTRY["where"](shaped, Var(b, new), Var(b, old)).node


def _entering(p: Batcher, b: Builder, mask: Node, args, params, flags) -> tuple[list[Node], list[Flag]]:
    """Values in the form in which masked code gets them: x => where(mask, x, stop_gradient(x)), which is x.

    What the examples outside the mask compute there is never used, and may be infinite. A derivative of it must not
    come back either, not even as 0 times infinity. Arrays that are the same for all examples stay so.
    """
    p.masked = b.graph.flags["masked"] = True
    pairs = [_enters(p, b, mask, x, q.type, f) for x, q, f in zip(args, params, flags, strict=True)]
    return [x for x, _ in pairs], [f for _, f in pairs]


def _enters(p: Batcher, b: Builder, mask: Node, x: Node, t: Type, flag: Flag) -> tuple[Node, Flag]:
    if is_undef(x) or isinstance(x, Constant) or (flag is False and not isinstance(t, Scalar)):
        return x, flag
    if isinstance(t, Struct):
        parts = [b.emit(REGISTRY["get_item"], (x,), {"index": i}) for i in range(len(t.elems))]
        pairs = [
            _enters(p, b, mask, part, e, item(flag, i)) for i, (part, e) in enumerate(zip(parts, t.elems, strict=True))
        ]
        new = canonical(tuple(f for _, f in pairs))
        return b.emit(REGISTRY["make_struct"], tuple(y for y, _ in pairs), {"type": p.type(t, new)}), new
    if not isinstance(t, Leaf) or not t.is_float:
        return x, flag
    batched = Var(b, p.match(b, x, t, flag, True))
    shaped = reshape(Var(b, mask), shape=(p.size, *(1,) * len(t.shape))) if t.shape else Var(b, mask)
    return REGISTRY["where"](shaped, batched, REGISTRY["stop_gradient"](batched)).node, True


def _both(b: Builder, mask: Node | None, other: Node) -> Node:
    """The examples of a mask for which another condition holds too."""
    return other if mask is None else REGISTRY["logical_and"](Var(b, mask), Var(b, other)).node


def _without(b: Builder, mask: Node | None, other: Node) -> Node:
    return _both(b, mask, REGISTRY["logical_not"](Var(b, other)).node)


def _cond(p: Batcher, b: Builder, node: Apply, args: list[Node], flags: list[Flag], mask):
    then, orelse = node.attrs["then"], node.attrs["orelse"]
    condition, *operands = args
    if flags[0] is False and mask is None:
        given = tuple(flags[1:])
        _, one = p.graph(then, given)
        _, two = p.graph(orelse, given)
        want = join(one, two)
        branches = {"then": p.graph(then, given, want)[0], "orelse": p.graph(orelse, given, want)[0]}
        return b.emit(node.fn, args, branches), want
    condition = p.match(b, condition, node.args[0].type, flags[0], True)
    results = []
    for graph, own in ((then, _both(b, mask, condition)), (orelse, _without(b, mask, condition))):
        out, flag = p.inline(b, graph, *_entering(p, b, own, operands, graph.params, flags[1:]), own)
        results.append(p.match(b, out, node.type, flag, full(node.type)))
    return _select(p, b, condition, node.type, *results), full(node.type)


def _carried_flags(p: Batcher, node: Apply, flags: list[Flag], lead: int, index: bool) -> tuple[tuple[Flag, ...], Flag]:
    """The flags of the carried values at the fixpoint, and that of a `while` loop's condition."""
    body, n = node.attrs["body"], node.attrs["carried"]
    carried, constants = tuple(flags[lead : lead + n]), tuple(flags[lead + n :])
    first = (index,) if lead else ()
    while True:
        if not lead:
            _, test = p.graph(node.attrs["cond"], (*carried, *constants))
            if test is not False:
                return tuple(full(q.type) for q in body.params[:n]), True
        _, out = p.graph(body, (*first, *carried, *constants))
        new = tuple(join(f, item(out, i)) for i, f in enumerate(carried))
        if new == carried:
            return carried, False
        carried = new


def _loop_inputs(p: Batcher, b: Builder, node: Apply, args, flags, lead: int, carried) -> list[Node]:
    """The initial carried values with their flags' batch axes, then the constants."""
    n = node.attrs["carried"]
    init = [p.match(b, args[lead + i], node.args[lead + i].type, flags[lead + i], carried[i]) for i in range(n)]
    return [*init, *args[lead + n :]]


def _for(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    body, n = node.attrs["body"], node.attrs["carried"]
    if any(f is not False for f in flags[:3]) or mask is not None:
        return _masked_for(p, b, node, args, flags, mask)
    carried, _ = _carried_flags(p, node, flags, 3, False)
    want = canonical(carried)
    new_body, _ = p.graph(body, (False, *carried, *flags[3 + n :]), want)
    inputs = _loop_inputs(p, b, node, args, flags, 3, carried)
    return b.emit(node.fn, (*args[:3], *inputs), {"body": new_body, "carried": n}), want


def _masked_for(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    """Different bounds: run to the longest, each example on its own indices."""
    body, n = node.attrs["body"], node.attrs["carried"]
    # Indices are arrays of int64; the body's own index is a Python int per example.
    start, stop, step = [
        Var(b, p.match(b, x, a.type, f, True)) for x, a, f in zip(args[:3], node.args[:3], flags[:3], strict=True)
    ]
    zero = start.const(0)
    iterations = -REGISTRY["floordiv"](start - stop, step)
    iterations = REGISTRY["maximum"](iterations, zero)
    if mask is not None:
        iterations = REGISTRY["where"](Var(b, mask), iterations, zero)
    longest = REGISTRY["cast"](REGISTRY["reduce_max"](iterations, axes=(0,)), dtype="int64", weak=True)
    carried = tuple(full(q.type) for q in body.params[1 : 1 + n])
    inputs = _loop_inputs(p, b, node, args, flags, 3, carried)
    extra = [start.node, step.node, iterations.node, longest.node]

    graph = Graph(body.name, None, body.origin)
    graph.flags = dict(body.flags)
    inner = Builder(graph, body.origin)
    k = Var(inner, graph.add_parameter(body.params[0].name, INT))
    names = [*(q.name for q in body.params[1:]), "start", "step", "iterations", "longest"]
    params = [graph.add_parameter(name, x.type) for name, x in zip(names, [*inputs, *extra], strict=True)]
    first, stride, count, most = (Var(inner, x) for x in params[-4:])
    at = REGISTRY["cast"](k, dtype="int64")
    if body.flags.get("late"):
        most = REGISTRY["cast"](most, dtype="int64")
        at = at - (most - count)
        running = at >= at.const(0)
    else:
        running = at < count
    index = first + stride * at
    values = params[: len(inputs)]
    entered, own = _entering(p, inner, running.node, values, body.params[1:], [*carried, *flags[3 + n :]])
    out, flag = p.inline(inner, body, [index.node, *entered], [True, *own], running.node)
    t = body.output.type
    out = p.match(inner, out, t, flag, full(t))
    before = inner.emit(REGISTRY["make_struct"], values[:n], {"type": p.type(t, full(t))})
    graph.output = _select(p, inner, running.node, t, out, before)
    bounds = [b.constant(0, INT), longest.node, b.constant(1, INT)]
    result = b.emit(node.fn, (*bounds, *inputs, *extra), {"body": graph, "carried": n})
    return result, full(node.type)


def _while(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    body, test, n = node.attrs["body"], node.attrs["cond"], node.attrs["carried"]
    carried, differs = _carried_flags(p, node, flags, 0, False)
    constants = tuple(flags[n:])
    if not differs and mask is None:
        want = canonical(carried)
        new_test, _ = p.graph(test, (*carried, *constants))
        new_body, _ = p.graph(body, (*carried, *constants), want)
        inputs = _loop_inputs(p, b, node, args, flags, 0, carried)
        return b.emit(node.fn, inputs, {"cond": new_test, "body": new_body, "carried": n}), want
    return _masked_while(p, b, node, args, flags, mask)


def _masked_while(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    """Conditions that differ: run while any example does; finished examples keep their values."""
    body, test, n = node.attrs["body"], node.attrs["cond"], node.attrs["carried"]
    carried = tuple(full(q.type) for q in body.params[:n])
    inputs = _loop_inputs(p, b, node, args, flags, 0, carried)
    inner_flags = [*carried, *flags[n:]]
    extra = [] if mask is None else [mask]
    names = [*(q.name for q in body.params), *(["mask"] if extra else [])]

    def begin(graph: Graph) -> tuple[Graph, Builder, list[Node], Node]:
        """A graph that starts by testing which examples continue."""
        new = Graph(graph.name, None, graph.origin)
        inner = Builder(new, graph.origin)
        params: list[Node] = [new.add_parameter(name, x.type) for name, x in zip(names, [*inputs, *extra], strict=True)]
        outside = params[-1] if extra else None
        going, flag = p.inline(inner, test, params[: len(inputs)], inner_flags, outside)
        return new, inner, params, _both(inner, outside, p.match(inner, going, test.output.type, flag, True))

    new_test, inner, _, going = begin(test)
    new_test.output = REGISTRY["reduce_any"](Var(inner, going), axes=(0,)).node
    new_body, inner, params, going = begin(body)
    entered, own = _entering(p, inner, going, params[: len(inputs)], body.params, inner_flags)
    out, flag = p.inline(inner, body, entered, own, going)
    t = body.output.type
    out = p.match(inner, out, t, flag, full(t))
    before = inner.emit(REGISTRY["make_struct"], params[:n], {"type": p.type(t, full(t))})
    new_body.output = _select(p, inner, going, t, out, before)
    result = b.emit(node.fn, (*inputs, *extra), {"cond": new_test, "body": new_body, "carried": n})
    return result, full(node.type)


RULES.update({"cond": _cond, "for_loop": _for, "while_loop": _while})
