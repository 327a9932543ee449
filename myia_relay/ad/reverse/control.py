"""Adjoints of control flow: branches, loops and calls.

    y = f(*xs) if c else g(*xs)

        (y, r)  = f.forward(*xs)          if c else  g.forward(*xs)
        dxs     = f.backward(*xs, r, dy)  if c else  g.backward(*xs, r, dy)

    for i in range(a, b, s): c = body(i, c, k)

        for i in range(a, b, s):   (c, r) = body.forward(i, c, k);            tape = push(tape, r)
        for i in reversed(...):    (tape, r) = pop(tape);                     dc, dk += body.backward(i, k, r, dc)

A `while` loop counts its iterations in the forward pass and is a counted loop in the backward pass. Each residual has a
tape of its own, so that an optimiser can drop one without the others, and a back end can stack values of one type.
Which parts of the carried values have a cotangent at all is a fixpoint over the body. Everything here consists of
ordinary operations, whose adjoints are made in the same way; the tape's push and pop are each other's transposes.

Source: M. Peng and C. Dubach, "LAGrad: statically optimized differentiable programming in MLIR" (CC 2023).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...abstract.types import BOOL, INT, Struct, Tape, Type, tuple_of
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY
from ...ir.rewrite import inline, lookup
from ...prims.ops.data_functions import Functions
from ..common.cotangents import (
    Cotangent,
    Guarded,
    Pattern,
    add,
    as_flag,
    either,
    either_pattern,
    guarded,
    has_tangent,
    is_guardable,
    leaf_nodes,
    leaf_types,
    materialise,
    pattern,
    repeated_pattern,
    unflatten,
    with_guards,
    zeros,
)
from .recursion import split_call
from .restore import changes, lineage
from .reverse import RULES, Adjoint
from .split import Split, holds_tape, restoring_split, split_graph


def _acts(adjoint: Adjoint, node: Apply) -> tuple:
    return tuple(adjoint.acts.get(a, False) for a in node.args)


def _parts(builder: Builder, node: Node, indices: Sequence[int]) -> list[Node]:
    """Some parts of a structure."""
    return [builder.emit(REGISTRY["get_item"], (node,), {"index": i}) for i in indices]


def _pack(builder: Builder, nodes: Sequence[Node]) -> Node:
    """A tuple."""
    return builder.emit(REGISTRY["make_struct"], nodes, {"type": tuple_of(*[n.type for n in nodes])})


def _flow(adjoint: Adjoint, node: Apply, args: Sequence[int], patterns: Sequence[Pattern], result: Node) -> None:
    """Pass the nodes in a tuple of cotangents on to arguments of `node`."""
    count = len(result.type.elems) if isinstance(result.type, Struct) else 0
    nodes = iter(_parts(adjoint.builder, result, range(count)))
    for i, p in zip(args, patterns, strict=True):
        adjoint.accumulate(node.args[i], unflatten(p, nodes), f"argument {i} of {getattr(node.fn, 'name', node.fn)}")


def _call(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    """A call: of the forward version, and later of the backward version, which takes the residuals of the former."""
    b = adjoint.builder
    split = split_call(adjoint.context, node.fn, _acts(adjoint, node), pattern(ct))
    args = [lookup(adjoint.env, a) for a in node.args]
    saved: list[Node] = []
    if split.residuals or split.threads:
        with adjoint.before(node):
            both = b.call(split.forward, args)
            saved = _parts(b, both, range(1, 1 + len(split.residuals)))
        adjoint.replace(node, "get_item", (both,), {"index": 0})
    douts = leaf_nodes(b, ct, split.dout, node.type)
    result = b.call(split.backward, (*(args[i] for i in split.reused), *saved, *douts))
    _flow(adjoint, node, range(len(args)), split.patterns, result)


def _cond(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    """A condition. Residuals of the two branches share slots of equal types; others are undefined on one."""
    b = adjoint.builder
    dout = pattern(ct)
    acts = _acts(adjoint, node)[1:]
    everything = tuple(range(len(acts)))
    splits = [split_graph(adjoint.context, node.attrs[k], acts, dout, everything) for k in ("then", "orelse")]
    splits, changed = _restoring_branches(adjoint, node, splits, acts, dout, everything)
    slots, places = _slots(splits)
    condition, *operands = [lookup(adjoint.env, a) for a in node.args]
    saved: list[Node] = []
    threads = any(s.threads for s in splits)
    if slots or threads:
        then, orelse = [_forward_branch(s, slots, p) for s, p in zip(splits, places, strict=True)]
        with adjoint.before(node):
            both = b.emit(REGISTRY["cond"], (condition, *operands), {"then": then, "orelse": orelse})
            saved = _parts(b, both, range(1, 1 + len(slots)))
        adjoint.replace(node, "get_item", (both,), {"index": 0})
    own = list(zip(splits[0].patterns, splits[1].patterns, strict=True))
    patterns = [either_pattern(p, q, a.type) for (p, q), a in zip(own, operands, strict=True)]
    reused = sorted({*splits[0].reused, *splits[1].reused})
    whole = adjoint.env[node]
    finals = [whole if part is None else _parts(b, whole, [part])[0] for _, part in changed]
    inputs = [*(operands[i] for i in reused), *saved, *finals, *leaf_nodes(b, ct, dout, node.type)]
    then, orelse = [
        _backward_branch(s, reused, p, len(slots), patterns, inputs) for s, p in zip(splits, places, strict=True)
    ]
    result = b.emit(REGISTRY["cond"], (condition, *inputs), {"then": then, "orelse": orelse})
    taken = as_flag(b, condition)
    sides = (taken, b.emit(REGISTRY["logical_not"], (taken,)))
    nodes = iter(_parts(b, result, range(len(result.type.elems))))
    for arg, p, both in zip(node.args[1:], patterns, own, strict=True):
        adjoint.accumulate(arg, _decided(unflatten(p, nodes), *both, *sides), "cond")
    for (i, part), before in zip(changed, nodes, strict=True):
        assert adjoint.restoring is not None
        adjoint.restoring.undone[whole, part] = (operands[i], before)


def _restoring_branches(
    adjoint: Adjoint, node: Apply, splits: list[Split], acts, dout: Pattern, again: tuple[int, ...]
) -> tuple[list[Split], list[tuple[int, int | None]]]:
    """The splits of branches in which the arrays are restored that the adjoint around them asks for.

    Returns:
        The splits, and the positions of these arrays among the operands, each with the part of the result that it is afterwards.
    """
    asked = adjoint.restoring.asked.get(node, ()) if adjoint.restoring is not None else ()
    places: dict[int, int | None] = {}
    for part in asked:
        found = lineage(node.attrs["then"], part)
        assert found is not None
        places[node.attrs["then"].params.index(found.origin)] = part
    if not places or adjoint.context.versions is not None:
        return splits, []
    restoring = [
        restoring_split(adjoint.context, node.attrs[k], acts, dout, again, False, places) for k in ("then", "orelse")
    ]
    done = [s for s in restoring if s is not None]
    return (done, sorted(places.items())) if len(done) == 2 else (splits, [])


def _decided(ct: Cotangent, then: Pattern, orelse: Pattern, taken: Node, other: Node) -> Cotangent:
    """A cotangent that one branch has and the other lacks is guarded by the condition itself."""
    if isinstance(ct, tuple):
        sides = [p if isinstance(p, tuple) else (p,) * len(ct) for p in (then, orelse)]
        return tuple(_decided(c, p, q, taken, other) for c, p, q in zip(ct, *sides, strict=True))
    if isinstance(ct, Guarded) and (then, orelse) in ((True, None), (None, True)):
        return Guarded(ct.node, taken if then else other)
    return ct


def _slots(splits: Sequence[Split]) -> tuple[list, list[list[int]]]:
    """Types of shared slots for residuals, and for each split the slot of each of its residuals."""
    slots: list = []
    places = []
    for split in splits:
        taken: set[int] = set()
        own = []
        for t in split.residuals:
            # Conditions, counts and tapes of one branch must not share slots with the other's: batching makes decisions
            # by them.
            shared = has_tangent(t) and not holds_tape(t)
            slot = next((i for i, s in enumerate(slots) if shared and s == t and i not in taken), None)
            if slot is None:
                slot = len(slots)
                slots.append(t)
            taken.add(slot)
            own.append(slot)
        places.append(own)
    return slots, places


def _forward_branch(split: Split, slots, places: list[int]) -> Graph:
    """operands -> (out, *slots)"""
    graph = Graph(split.forward.name, None, split.forward.origin)
    params = [graph.add_parameter(p.name, p.type, p.origin) for p in split.forward.params]
    b = Builder(graph, graph.origin)
    both = inline(b, split.forward, params)
    filled = dict(zip(places, _parts(b, both, range(1, 1 + len(places))), strict=True))
    rest = [filled[i] if i in filled else b.emit(REGISTRY["undef"], (), {"type": t}) for i, t in enumerate(slots)]
    graph.output = _pack(b, [*_parts(b, both, [0]), *rest])
    return graph


def _backward_branch(split: Split, reused: list[int], places: list[int], slots: int, patterns, inputs) -> Graph:
    """(*reused operands, *slots, *restored, *dout) -> (*cotangents of operands, *restored)

    The cotangents are zeros where only the other branch has one.
    """
    graph = Graph(split.backward.name, None, split.backward.origin)
    params = [graph.add_parameter(n.name or f"r{i}", n.type) for i, n in enumerate(inputs)]
    b = Builder(graph, graph.origin.derive("vjp"))
    mine = [params[reused.index(i)] for i in split.reused] + [params[len(reused) + p] for p in places]
    result = inline(b, split.backward, [*mine, *params[len(reused) + slots :]])
    nodes = iter(_parts(b, result, range(len(split.backward.output.type.elems))))
    out: list[Node] = []
    for own, p, param in zip(split.patterns, patterns, split.forward.params, strict=True):
        out += leaf_nodes(b, unflatten(own, nodes), p, param.type)
    graph.output = _pack(b, [*out, *nodes])
    return graph


def _loop(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    """A loop: one that pushes and, in reverse order, one that pops."""
    b, counted = adjoint.builder, node.fn.name == "for_loop"
    lead, n = (3 if counted else 0), node.attrs["carried"]
    first = 1 if counted else 0  # where the carried values start among the body's parameters
    body: Graph = node.attrs["body"]
    acts = adjoint.context.activity.carried(node, _acts(adjoint, node))
    again = (*range(first), *range(first + n, len(body.params)))
    carry = ct if isinstance(ct, tuple) else (None,) * n
    dout: tuple[Pattern, ...] = tuple(pattern(c) for c in carry)
    types = [p.type for p in body.params[first : first + n]]
    while True:  # the least fixpoint: which carried values have a cotangent before some iteration
        split = split_graph(adjoint.context, body, acts, dout, again, loop=True)
        again_patterns = split.patterns[first : first + n]
        new = tuple(repeated_pattern(p, q, t) for p, q, t in zip(dout, again_patterns, types, strict=True))
        if new == dout:
            break
        dout = new
    split = _restoring(adjoint, node, split, acts, dout, again)
    args = [lookup(adjoint.env, a) for a in node.args]
    bounds, init, constants = args[:lead], args[lead : lead + n], args[lead + n :]

    with adjoint.before(node):
        tapes = [b.emit(REGISTRY["tape_new"], (), {"elem": t}) for t in split.residuals]
        if counted:
            loop = _forward_for(b, node, split, [*bounds, *init, *tapes, *constants])
        else:
            tapes.append(b.constant(0, INT))
            loop = _forward_while(b, node, split, [*init, *tapes, *constants])
        filled = _parts(b, loop, range(n, n + len(tapes)))
        values = tuple(_parts(b, loop, range(n)))
    adjoint.replace(node, "make_struct", values, {"type": node.type})

    if counted:
        bounds = _reversed_range(b, *bounds)
    else:
        bounds = [b.constant(0, INT), filled.pop(), b.constant(1, INT)]
    into = list(split.patterns[first + n :])
    dcarry = [x for c, p, t in zip(carry, dout, types, strict=True) for x in leaf_nodes(b, c, p, t)]
    sums = [_nothing(b, t) for p, k in zip(into, constants, strict=True) for t in leaf_types(p, k.type)]
    shared = [constants[i - first - n] for i in split.reused if i >= first]
    backward = _backward_body(adjoint.context.functions, body, split, first, n, dout, into, shared)
    finals = [values[k - first] for k in split.restored]
    inputs = (*bounds, *dcarry, *sums, *filled, *finals, *shared)
    carried = len(dcarry) + len(sums) + len(filled) + len(finals)
    result = b.emit(REGISTRY["for_loop"], inputs, {"body": backward, "carried": carried})
    wanted = [*range(lead, lead + n), *range(lead + n, len(args))]
    if adjoint.restoring is not None:
        restored = _parts(b, result, range(carried - len(finals), carried))
        for k, final, before in zip(split.restored, finals, restored, strict=True):
            adjoint.restoring.undone[final, None] = (init[k - first], before)
    nodes = iter(_parts(b, result, range(len(dcarry) + len(sums))))
    runs = _runs(b, *bounds)
    for i, p in zip(wanted, [*dout, *into], strict=True):
        ct = unflatten(p, nodes)
        if i >= lead + n:
            ct = with_guards(
                ct, lambda c: c if isinstance(c, Guarded) or not is_guardable(c.type) else guarded(c, runs, True)
            )
        adjoint.accumulate(node.args[i], ct, "a loop")


def _restoring(adjoint: Adjoint, node: Apply, split: Split, acts, dout: Pattern, again: tuple[int, ...]) -> Split:
    """The split of a loop's body in which the arrays are restored that should be, or that the adjoint around it asks for."""
    context, first = adjoint.context, 1 if node.fn.name == "for_loop" else 0
    if context.versions is not None:  # what recursions keep is threaded through afterwards
        return split
    around = adjoint.restoring
    asked = around.asked.get(node, ()) if around is not None else ()
    places: dict[int, int | None] = {first + part: part for part in asked if part is not None}
    for k, (part, whole) in split.dear.items():
        if k == first + part and (whole or around is None or changes(adjoint.graph, node, part)):
            places[k] = part
    found = restoring_split(context, node.attrs["body"], acts, dout, again, True, places) if places else None
    return found if found is not None else split


def _runs(b: Builder, start: Node, stop: Node, step: Node) -> Node:
    """Whether `range(start, stop, step)` has elements."""
    known = [int(x.value) for x in (start, stop, step) if isinstance(x, Constant)]
    if len(known) == 3:
        return b.constant(len(range(*known)) > 0, BOOL)
    up = _flag(b, "lt", start, stop)
    if isinstance(step, Constant):
        return up if int(step.value) > 0 else _flag(b, "gt", start, stop)
    rises = _flag(b, "gt", step, b.constant(0, INT))
    down = _flag(b, "gt", start, stop)
    falls = b.emit(REGISTRY["logical_not"], (rises,))
    sides = [b.emit(REGISTRY["logical_and"], pair) for pair in ((rises, up), (falls, down))]
    return either(b, *sides)


def _flag(b: Builder, test: str, x: Node, y: Node) -> Node:
    return as_flag(b, b.emit(REGISTRY[test], (x, y)))


def _nothing(b: Builder, t: Type) -> Node:
    """What a sum of cotangents, or a guard, begins with."""
    return b.constant(False, BOOL) if t == BOOL else zeros(b, t)


def _forward_for(b: Builder, node: Apply, split: Split, args: list[Node]) -> Node:
    body, n, r = node.attrs["body"], node.attrs["carried"], len(split.residuals)
    graph = Graph(split.forward.name, None, body.origin)
    graph.flags = dict(body.flags)
    index = graph.add_parameter(body.params[0].name, body.params[0].type)
    names = [q.name for q in body.params[1:]]
    names[n:n] = [f"tape{i}" for i in range(r)]
    rest = [graph.add_parameter(name, a.type) for name, a in zip(names, args[3:], strict=True)]
    inner = Builder(graph, body.origin)
    both = inline(inner, split.forward, [index, *rest[:n], *rest[n + r :]])
    _advance(inner, both, n, rest[n : n + r], [])
    return b.emit(REGISTRY["for_loop"], args, {"body": graph, "carried": n + r})


def _forward_while(b: Builder, node: Apply, split: Split, args: list[Node]) -> Node:
    body, n, r = node.attrs["body"], node.attrs["carried"], len(split.residuals)
    graph = Graph(split.forward.name, None, body.origin)
    condition = Graph(node.attrs["cond"].name, None, node.attrs["cond"].origin)
    names = [p.name for p in body.params]
    names[n:n] = [*(f"tape{i}" for i in range(r)), "iterations"]
    rest = [graph.add_parameter(name, a.type) for name, a in zip(names, args, strict=True)]
    inner = Builder(graph, body.origin)
    both = inline(inner, split.forward, [*rest[:n], *rest[n + r + 1 :]])
    iterations = inner.emit(REGISTRY["add"], (rest[n + r], inner.constant(1, INT)))
    _advance(inner, both, n, rest[n : n + r], [iterations])
    params = [condition.add_parameter(name, a.type) for name, a in zip(names, args, strict=True)]
    test = inline(Builder(condition, condition.origin), node.attrs["cond"], [*params[:n], *params[n + r + 1 :]])
    condition.output = test
    return b.emit(REGISTRY["while_loop"], args, {"cond": condition, "body": graph, "carried": n + r + 1})


def _advance(b: Builder, both: Node, n: int, tapes: Sequence[Node], more: Sequence[Node]) -> None:
    """The output of a forward body: carried values, tapes with their residuals pushed, and more."""
    (out,) = _parts(b, both, [0])
    values = _parts(b, out, range(n))
    residuals = _parts(b, both, range(1, 1 + len(tapes)))
    pushed = [b.emit(REGISTRY["tape_push"], (t, r)) for t, r in zip(tapes, residuals, strict=True)]
    b.graph.output = _pack(b, [*values, *pushed, *more])


def _backward_body(
    functions: Functions, body: Graph, split: Split, first: int, n: int, dout, into, shared: list[Node]
) -> Graph:
    """(i, *dcarry, *sums, *tapes, *restored, *loop constants) -> (*dcarry, *sums, *tapes, *restored)"""
    graph = Graph(split.backward.name, None, body.origin)
    graph.flags["late"] = not body.flags.get("late", False)  # see `ad.batch.control`
    b = Builder(graph, body.origin.derive("vjp"))
    index = graph.add_parameter("i", body.params[0].type if first else INT)
    before = [p.type for p in body.params[first : first + n]]
    after = [p.type for p in body.params[first + n :]]

    def parameters(name: str, types) -> list[Node]:
        return [graph.add_parameter(f"{name}{i}", t) for i, t in enumerate(types)]

    dcarry = parameters("d", [t for p, own in zip(dout, before, strict=True) for t in leaf_types(p, own)])
    sums = parameters("sum", [t for p, own in zip(into, after, strict=True) for t in leaf_types(p, own)])
    tapes = parameters("tape", [Tape(t) for t in split.residuals])
    finals = parameters("final", [body.params[k].type for k in split.restored])
    constants = iter([graph.add_parameter(k.name or f"k{i}", k.type) for i, k in enumerate(shared)])
    popped = [_parts(b, b.emit(REGISTRY["tape_pop"], (t,)), [0, 1]) for t in tapes]
    given = [index if first and i == 0 else next(constants) for i in split.reused]
    result = inline(b, split.backward, [*given, *(entry for _, entry in popped), *finals, *dcarry])
    nodes = iter(_parts(b, result, range(len(split.backward.output.type.elems))))
    own = [unflatten(p, nodes) for p in split.patterns]
    out: list[Node] = []
    for ct, p, t in zip(own[first : first + n], dout, before, strict=True):
        out += leaf_nodes(b, ct, p, t)
    more = [x for ct, p, t in zip(own[first + n :], into, after, strict=True) for x in leaf_nodes(b, ct, p, t)]
    for total, x in zip(sums, more, strict=True):
        out.append(
            either(b, total, x) if total.type == BOOL else materialise(b, add(b, functions, total, x), total.type)
        )
    graph.output = _pack(b, [*out, *(below for below, _ in popped), *nodes])
    return graph


def _reversed_range(b: Builder, start: Node, stop: Node, step: Node) -> list[Node]:
    """`reversed(range(start, stop, step))` as a range.

    With n = ceil((stop - start) / step) iterations, and last = start + (n - 1) step, it is range(last, start - step,
    -step): empty as well where n <= 0, whichever sign the step has.
    """
    a, z, s = (Var(b, x) for x in (start, stop, step))
    floordiv = REGISTRY["floordiv"]
    unit = isinstance(step, Constant) and int(step.value) in (1, -1)
    last = z - s if unit else a - floordiv(a - z, s) * s - s
    before = a - s
    return [last.node, before.node, (-s).node]


RULES.update({"call": _call, "cond": _cond, "for_loop": _loop, "while_loop": _loop})
