"""Forward mode of control flow: branches, loops, calls; functions with a rule of their own, checkpoints.

    y = f(x) if c else g(x)              =>   (y, dy) = f.jvp(x, dx) if c else g.jvp(x, dx)
    for i in range(n): c = body(i, c)    =>   for i in range(n): (c, dc) = body.jvp(i, c, dc)

The condition of a loop only gets primal values. A vjp rule that the user wrote is linear in its cotangent, so the
tangent of its function is the transposed rule:  <w, dy> = <rule(x, y, w), dx> for all w.
"""

from __future__ import annotations

from ...abstract.types import Struct, tuple_of
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node
from ...ir.prim import REGISTRY
from ...ir.rewrite import emit_like, inline
from ...prims.ops.data_functions import Functions
from ...prims.ops.registered import refuse_derivative
from ..common.activity import full
from ..common.cotangents import Cotangent, Pattern, leaf_types, materialise, pattern, unflatten, union, zeros
from ..reverse.reverse import Adjoint, Expansion
from .forward import RULES, Forward, canonical, flat, float_pattern, item, pack, parts


def _unpack(b: Builder, both: Node, own: Pattern) -> tuple[Node, Cotangent]:
    """A forward version's result as value and tangent."""
    out, *nodes = parts(b, both, range(len(both.type.elems)))
    return out, unflatten(own, iter(nodes))


def _call(f: Forward, b: Builder, node: Apply, args, tangents):
    patterns = f.patterns(node.fn, tuple(pattern(t) for t in tangents))
    graph, own = f.graph(node.fn, patterns, called=True)
    if own is None:
        return emit_like(b, node, args), None
    # The version of a recursive function may not be complete yet, so the type is given explicitly.
    both = tuple_of(node.type, *leaf_types(own, node.type))
    more = flat(b, tangents, node.args, patterns)
    return _unpack(b, b.graph.apply(graph, *args, *more, type=both, origin=b.origin), own)


def _cond(f: Forward, b: Builder, node: Apply, args, tangents):
    patterns = tuple(pattern(t) for t in tangents[1:])
    want = None
    for name in ("then", "orelse"):
        want = union(want, f.graph(node.attrs[name], patterns)[1])
    if want is None:
        return emit_like(b, node, args), None
    branches = {name: f.graph(node.attrs[name], patterns, want)[0] for name in ("then", "orelse")}
    more = flat(b, tangents[1:], node.args[1:], patterns)
    both = tuple_of(node.type, *leaf_types(want, node.type))
    return _unpack(b, b.emit(node.fn, (*args, *more), branches, both), want)


def _loop(f: Forward, b: Builder, node: Apply, args, tangents):
    counted, n, body = node.fn.name == "for_loop", node.attrs["carried"], node.attrs["body"]
    lead, first = (3, 1) if counted else (0, 0)
    init, constants = node.args[lead : lead + n], node.args[lead + n :]
    fixed = tuple(pattern(t) for t in tangents[lead + n :])
    carry = tuple(pattern(t) for t in tangents[lead : lead + n])
    index: tuple[Pattern, ...] = (None,) * first
    while True:  # the least fixpoint: which carried values have a tangent after some iteration
        graph, own = f.graph(body, (*index, *carry, *fixed), canonical(carry))
        new = tuple(union(c, item(own, i)) for i, c in enumerate(carry))
        if new == carry:
            break
        carry = new
    starts = flat(b, tangents[lead : lead + n], init, carry)
    rest = flat(b, tangents[lead + n :], constants, fixed)
    m = len(starts)
    if not m:
        return emit_like(b, node, args), None
    # (i, *carry, *constants, *tangents of carry, *of constants)  becomes  (i, *carry, *their tangents, *constants, ...)
    attrs = {"carried": n + m, "body": _rearranged(graph, body, first, n, m)}
    if not counted:
        attrs["cond"] = _condition(node.attrs["cond"], n, [s.type for s in starts], [r.type for r in rest])
    inputs = (*args[: lead + n], *starts, *args[lead + n :], *rest)
    result = b.emit(node.fn, inputs, attrs)
    out = b.emit(REGISTRY["make_struct"], tuple(parts(b, result, range(n))), {"type": node.type})
    nodes = iter(parts(b, result, range(n, n + m)))
    return out, tuple(unflatten(c, nodes) for c in carry)


def _rearranged(graph: Graph, body: Graph, first: int, n: int, m: int) -> Graph:
    """A forward body in the form of a loop's body: carried tangents directly after the carried values, one tuple as
    result.
    """
    new = Graph(graph.name, None, graph.origin)
    new.flags = dict(graph.flags)
    old, k = list(graph.params), len(body.params)
    order = [*old[: first + n], *old[k : k + m], *old[first + n : k], *old[k + m :]]
    made = {p: new.add_parameter(p.name, p.type, p.origin) for p in order}
    b = Builder(new, graph.origin)
    both = inline(b, graph, [made[p] for p in old])
    out, *tangents = parts(b, both, range(1 + m))
    new.output = pack(b, [*parts(b, out, range(n)), *tangents])
    return new


def _condition(test: Graph, n: int, carried: list, fixed: list) -> Graph:
    """The condition of a `while` loop with additional parameters for tangents, which it ignores."""
    new = Graph(test.name, None, test.origin)
    new.flags = dict(test.flags)
    own = [new.add_parameter(p.name, p.type, p.origin) for p in test.params[:n]]
    for i, t in enumerate(carried):
        new.add_parameter(f"d{i}", t)
    own += [new.add_parameter(p.name, p.type, p.origin) for p in test.params[n:]]
    for i, t in enumerate(fixed):
        new.add_parameter(f"k{i}", t)
    new.output = inline(Builder(new, test.origin), test, own)
    return new


def _custom_vjp(f: Forward, b: Builder, node: Apply, args, tangents):
    """dy, from the transpose of the rule at dy' = 0: of <rule(x, y, dy'), dx> the derivative by dy'."""
    out = emit_like(b, node, args)
    rule, wrt = node.attrs["rule"], node.attrs["wrt"]
    own = float_pattern(node.type)
    directions = [materialise(b, tangents[i], node.args[i].type) for i in wrt]
    if own is None or not directions:
        return out, None
    results = all_leaves(b, out)
    floats = [r.type for r in results if r.type.is_float]
    starts = [zeros(b, t) for t in floats]
    n = len(args) + len(results)
    acts = (*(False,) * n, *(full(t) for t in floats))
    b.origin = node.origin.derive("jvp")
    adjoint = Adjoint(Expansion(Functions()), b, rule, [*args, *results, *starts], acts)
    adjoint.forward()
    cts = adjoint.backward(tuple(directions))[n:]
    return out, unflatten(own, iter([materialise(b, c, t) for c, t in zip(cts, floats, strict=True)]))


def all_leaves(b: Builder, value: Node) -> list[Node]:
    """The leaves of a value."""
    if isinstance(value.type, Struct):
        return [leaf for part in parts(b, value, range(len(value.type.elems))) for leaf in all_leaves(b, part)]
    return [value]


def _checkpoint(f: Forward, b: Builder, node: Apply, args, tangents):
    """The forward version, checkpointed."""
    patterns = tuple(pattern(t) for t in tangents)
    graph, own = f.graph(node.attrs["graph"], patterns, called=True)
    if own is None:
        return emit_like(b, node, args), None
    both = b.emit(node.fn, (*args, *flat(b, tangents, node.args, patterns)), {"graph": graph})
    return _unpack(b, both, own)


RULES.update(
    {
        "call": _call,
        "cond": _cond,
        "for_loop": _loop,
        "while_loop": _loop,
        "custom_vjp": _custom_vjp,
        "checkpoint": _checkpoint,
        "call_operator": lambda f, b, node, args, tangents: refuse_derivative(*args, **node.attrs),
    }
)
