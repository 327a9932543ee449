"""Unroll and jam for inner `while` loops of numbers, which are bound by the latency of a chain of operations.

    for j in range(n):                        for j in range(0, n, 4):
        x = f(j)                                  x0, x1, x2, x3 = f(j), f(j + 1), f(j + 2), f(j + 3)
        while c(x):                     =>        while any of them goes on:
            x = g(x)                                  x0 = g(x0) if c(x0) else x0; x1 = g(x1) if c(x1) else x1; ...
        y = h(y, x)                               y = h(h(h(h(y, x0), x1), x2), x3)

The iterations of the inner loop depend on each other, so a processor waits for every result. Four such loops wait
together, in the lanes of vectors (`backend.tvm.host.vector_while`). A loop that has ended keeps its values. What the
outer loop carries is computed in order, so every result is the same to the last bit.

This is legal if nothing in the outer loop has an effect (it could come too late, after a loop that does not end), if
the inner loop starts from values that do not come from an earlier iteration, and if its operations are safe to execute
speculatively: no division of integers, no array, no loop. The remaining iterations run one by one.

Input: an optimised graph. Output: the same program, with such loops jammed; for the native executor only, since others
compute one thing at a time.

Source: D. Callahan, S. Carr, K. Kennedy, "Improving register allocation for subscripted variables" (PLDI 1990); masks
as in J. Allen et al., "Conversion of control dependence to data dependence" (POPL 1983).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Scalar
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, applied
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Effects, Env, Rewriter, all_graphs, drop_dead, emit_like, lookup, same_interface
from ..analysis.control import output_parts, returned_parts
from ..rewrite.control import pack, take

LANES = 8  # enough to hide the latency of a product and a sum; more would wait for the longest of too many loops
NUMBERS = ("float64", "float32", "int64")
MOST = 32  # operations of an inner loop, its condition included
FREE = frozenset(
    "add sub mul neg abs div sqrt minimum maximum where lt le gt ge eq ne logical_not logical_and logical_or"
    " make_struct get_item".split()
)
"""What a finished loop may compute speculatively: it neither traps nor takes long."""


@dataclass(frozen=True)
class UnrollAndJam:
    """The pass."""

    name: str = "unroll_and_jam"

    def __call__(self, graph: Graph) -> Graph:
        if not any(applied(n) == "while_loop" for g in all_graphs(graph) for n in g.nodes):
            return graph
        return _Jam().rewrite(graph)


class _Jam(Rewriter):
    acts_on = ("for_loop",)

    def __init__(self):
        super().__init__()
        self.effects = Effects()

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) == "for_loop" and not self.incomplete(attrs["body"]):
            inner = candidate(node, attrs["body"], attrs["carried"], self.effects)
            if inner is not None:
                self.changed = True
                builder.origin = node.origin
                return jam(builder, node, args, attrs["body"], inner)
        return super().node(builder, node, args, attrs)


def candidate(node: Apply, body: Graph, carried: int, effects: Effects) -> Apply | None:
    """The inner loop of a loop that can be jammed and gains by it."""
    start, _, step = node.args[:3]
    if not (isinstance(start, Constant) and start.value >= 0 and isinstance(step, Constant) and step.value == 1):
        return None
    inner = [n for n in body.nodes if applied(n) == "while_loop"]
    if len(inner) != 1 or output_parts(body) is None or effects.of_graph(body) or not _is_chain(inner[0]):
        return None
    before = needed(body, inner[0])
    if before & set(body.params[1 : 1 + carried]):
        return None
    return inner[0]


def needed(graph: Graph, node: Apply) -> set[Node]:
    """What an application is computed from."""
    found: set[Node] = set(node.args)
    for other in reversed(graph.nodes):
        if other in found:
            found.update(other.args)
    return found


def _is_chain(loop: Apply) -> bool:
    """Whether a loop is a few operations on numbers, including floats: integers alone take one cycle each."""
    graphs = [loop.attrs["cond"], loop.attrs["body"]]
    sizes = [_size(g) for g in graphs]
    carried = loop.args[: loop.attrs["carried"]]
    scalars = all(isinstance(a.type, Scalar) and a.type.dtype in NUMBERS for a in loop.args)
    known = [size for size in sizes if size is not None]
    if not scalars or len(known) < len(sizes) or output_parts(loop.attrs["body"]) is None:
        return False
    return sum(known) <= MOST and any(a.type.is_float for a in carried)


def _size(graph: Graph) -> int | None:
    """The number of operations of a graph and its branches; None if one of them is not speculative."""
    size = 0
    for node in graph.nodes:
        if applied(node) == "cond" and isinstance(node.type, Scalar):
            then, orelse = _size(node.attrs["then"]), _size(node.attrs["orelse"])
            if then is None or orelse is None:
                return None
            size += then + orelse + 1
        elif not isinstance(node.fn, Primitive) or node.fn.name not in FREE or node.fn.effect:
            return None
        elif node.fn.name in ("make_struct", "get_item"):
            if node is not graph.output:
                return None
        elif not isinstance(node.type, Scalar) or node.type.dtype not in (*NUMBERS, "bool"):
            return None
        elif node.fn.name == "div" and not node.type.is_float:
            return None
        else:
            size += 1
    return size


def jam(b: Builder, node: Apply, args: tuple[Node, ...], body: Graph, inner: Apply) -> Node:
    """A loop over blocks of iterations, then one over the remaining iterations."""
    start, stop, step, *rest = args
    count = node.attrs["carried"]
    end = b.emit(REGISTRY["maximum"], (stop, start))  # neither is negative, so that nothing here overflows
    iterations = b.emit(REGISTRY["sub"], (end, start))
    left = b.emit(REGISTRY["bitwise_and"], (iterations, b.constant(LANES - 1)))
    middle = b.emit(REGISTRY["add"], (start, b.emit(REGISTRY["sub"], (iterations, left))))
    first = b.emit(
        node.fn, (start, middle, b.constant(LANES), *rest), {"body": lanes(body, inner, count), "carried": count}
    )
    parts = [take(b, first, (k,)) for k in range(count)]
    last = b.emit(node.fn, (middle, stop, step, *parts, *rest[count:]), {"body": body, "carried": count}, node.type)
    last.name = node.name
    return last


def lanes(body: Graph, inner: Apply, count: int) -> Graph:
    """The body of the loop over blocks: several iterations, whose inner loops are one."""
    new, outer = same_interface(body)
    b = Builder(new, inner.origin)
    index, carried = body.params[0], body.params[1 : 1 + count]
    before = needed(body, inner)
    envs: list[Env] = []
    for k in range(LANES):
        env = dict(outer)
        if k:
            env[index] = b.emit(REGISTRY["add"], (outer[index], b.constant(k, index.type)))
        for node in body.nodes:
            if node in before:
                env[node] = emit_like(b, node, tuple(lookup(env, a) for a in node.args))
        envs.append(env)
    for env, result in zip(envs, together(b, inner, [[lookup(env, a) for a in inner.args] for env in envs])):
        env[inner] = result
    state = [outer[p] for p in carried]
    for env in envs:
        env.update(zip(carried, state))
        for node in body.nodes:
            if node not in env:
                env[node] = emit_like(b, node, tuple(lookup(env, a) for a in node.args))
        state = [lookup(env, part) for part in returned_parts(body)]
    new.output = pack(b, state)
    drop_dead(new)
    return new


def together(b: Builder, loop: Apply, args: Sequence[Sequence[Node]]) -> list[Node]:
    """Several loops as one; the result of each."""
    n = loop.attrs["carried"]
    result = b.emit(REGISTRY["vector_while"], tuple(a for row in args for a in row), {**loop.attrs, "lanes": len(args)})
    return [pack(b, [take(b, result, (k * n + i,)) for i in range(n)]) for k in range(len(args))]


__all__ = ["UnrollAndJam"]
