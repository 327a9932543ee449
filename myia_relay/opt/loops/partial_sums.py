"""A term that covers only a part of a sum is added to that part alone, in derived code.

    s + (pad(u) + pad(v))                  =>  s[a:b] += u; s[c:d] += v
    index_add(s, pad(u) + pad(v), i)       =>  s[i, a:b] += u; s[i, c:d] += v

The adjoint of `x[i, 0]` is a cotangent with zeros around it. If a loop adds such cotangents to a sum that it carries,
only the part itself has to be changed, in place (LAGrad's read, update and write of slices). A part that is contiguous
in memory is a range of rows of the reshaped sum: one update along the first axis writes it.

Input: a closed typed graph, differentiated, after `accumulate`. Output: the same; the padding is left to dead-code
elimination. The order of the terms changes, so sums that users wrote are left alone.

Source: M. Peng and C. Dubach, "LAGrad: statically optimized differentiable programming in MLIR" (CC 2023), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...abstract.dims import is_known, product
from ...abstract.types import INT, Array
from ...ir.build import Builder, Var
from ...ir.node import Apply, Graph, Node, Parameter, applied
from ...ir.prim import adds_to_part, update_of
from ...ir.rewrite import Rewriter, all_graphs, lookup
from ...prims.ops.control import LEAD
from ...prims.ops.elementwise import maximum, minimum
from ...prims.ops.indexing import index_add, slice_add
from ...prims.ops.shape import reshape
from ...prims.rules.broadcast import cast
from ..analysis.control import output_parts
from ..rewrite.algebra import unit_axes
from ..rewrite.rules import filled

MOST_TERMS = 64


@dataclass(frozen=True)
class PartialSums:
    """The pass, for programs without transforms."""

    name: str = "partial_sums"

    def __call__(self, graph: Graph) -> Graph:
        loops = [n for g in all_graphs(graph) for n in g.nodes if applied(n) in LEAD]
        return _AddParts({n.attrs["body"]: int(applied(n) == "for_loop") for n in loops}).rewrite(graph)


@dataclass(frozen=True)
class Axis:
    """An axis of a part of an array: where it starts, a number or a node, and how long it is.

    Attributes:
        own: whether the value that is added has this axis.
    """

    start: int | Node
    size: int
    own: bool = True


def updated(node: Apply) -> Axis:
    """The axis of what an update writes."""
    update = update_of(node)
    assert update is not None
    window = update.window
    return Axis(node.args[2], node.args[1].type.shape[node.attrs["axis"]] if window else 1, window)


@dataclass(frozen=True)
class PartTerm:
    """A term and the part that it is added to: a value whose axes are those of the part, some axes of size 1 left out."""

    value: Node
    part: tuple[Axis, ...]

    def inside(self, shape: tuple[int, ...]) -> Iterator[PartTerm]:
        """The terms of which this one consists, where it does; `shape`: of the sum."""
        node, name = self.value, applied(self.value)
        if not isinstance(node, Apply):
            return
        own = [k for k, axis in enumerate(self.part) if axis.own]
        if name == "add" and node.origin.via == "vjp" and all(a.type == node.type for a in node.args):
            yield from (PartTerm(a, self.part) for a in node.args)
        elif adds_to_part(node) and node.origin.via == "vjp":
            axis, value = own[node.attrs["axis"]], node.args[1]
            # Clamped alike only if the update is along a whole axis of the sum.
            known = isinstance(value.type, Array) and is_known(value.type.shape)
            if known and self.part[axis] == Axis(0, shape[axis]):
                part = list(self.part)
                part[axis] = updated(node)
                yield from (PartTerm(node.args[0], self.part), PartTerm(value, tuple(part)))
        elif (
            name == "pad"
            and not any(node.attrs["interior"])
            and filled(node.args[1]) == 0
            and is_known(node.args[0].type.shape)
        ):
            part = list(self.part)
            for k, low, size in zip(own, node.attrs["low"], node.args[0].type.shape, strict=True):
                if part[k].size != size:
                    if not isinstance(part[k].start, int):
                        return
                    part[k] = Axis(part[k].start + low, size)
            yield PartTerm(node.args[0], tuple(part))
        elif name == "reshape" and isinstance(node.args[0].type, Array):
            units = unit_axes(node.type.shape, node.args[0].type.shape)
            if units is not None:
                gone = {own[k] for k in units}
                part = [Axis(a.start, a.size, a.own and k not in gone) for k, a in enumerate(self.part)]
                yield PartTerm(node.args[0], tuple(part))

    def elements(self) -> int:
        """How many elements the part has."""
        return math.prod(axis.size for axis in self.part)

    def rows(self, shape: tuple[int, ...]) -> int | None:
        """The number of leading axes of the sum that index rows, if the part is a range of rows; None if it is not."""
        k = 0
        while k < len(shape) and self.part[k].size == 1:
            k += 1
        if k < len(shape) and self.part[k].size != shape[k]:
            k += 1
        return k if all(a.size == n for a, n in zip(self.part[k:], shape[k:])) else None


class _AddParts(Rewriter):
    """The rewrite.

    Attributes:
        bodies: the body of a loop -> the position of the first value that it carries among its parameters.
    """

    def __init__(self, bodies: dict[Graph, int]):
        super().__init__()
        self.bodies = bodies

    def build(self, graph: Graph) -> Graph:
        found = _sums(graph, self.bodies[graph]) if graph in self.bodies else {}
        attrs = {node: self.inner(node) for node in graph.nodes}
        new, env = self.interface(graph)
        builder = Builder(new)
        self.changed |= bool(found)
        for node in graph.nodes:
            if node in found:
                builder.origin = node.origin
                total, terms = found[node]
                env[node] = _added(builder, env, lookup(env, total), terms)
            else:
                env[node] = self.node(builder, node, tuple(lookup(env, a) for a in node.args), attrs[node])
        new.output = lookup(env, graph.output)
        return new


def _sums(body: Graph, first: int) -> dict[Node, tuple[Node, list[PartTerm]]]:
    """The additions to carried sums that can be done part by part: the sum, and the terms."""
    outs = output_parts(body)
    if outs is None:
        return {}
    count: dict[Node, int] = {body.output: 1}
    for node in body.nodes:
        for arg in node.args:
            count[arg] = count.get(arg, 0) + 1
    start: dict[Node, Parameter] = {
        p: p for p in body.params
    }  # a sum that nothing else uses -> the parameter with which it begins
    before: dict[Node, Node] = {}  # such a sum -> what it adds to
    for node in body.nodes:
        for arg in _beginnings(node):
            if arg in start and count[arg] == 1 and arg.type == node.type:
                start[node], before[node] = start[arg], arg
    found: dict[Node, tuple[Node, list[PartTerm]]] = {}
    for param, node in zip(body.params[first:], outs):
        while count[node] == 1 and start.get(node) is param and node is not param:
            terms = _terms(node, before[node], count) if isinstance(node, Apply) and applied(node) != "get_item" else []
            if terms:
                found[node] = (before[node], terms)
            node = before[node]
    return found


def _beginnings(node: Apply) -> tuple[Node, ...]:
    """What an application, or the loop whose result it is, may add to."""
    name = applied(node)
    if name == "add" and node.origin.via == "vjp":
        return node.args
    if adds_to_part(node):
        return node.args[:1]
    if name == "get_item" and applied(node.args[0]) in LEAD:
        loop = node.args[0]
        return (loop.args[LEAD[loop.fn.name] + node.attrs["index"]],)
    return ()


def _terms(node: Apply, total: Node, count: dict[Node, int]) -> list[PartTerm]:
    """The terms that an application adds to a sum, unless there is only one that covers all of it."""
    shape = node.type.shape if isinstance(node.type, Array) else ()
    if not shape or not is_known(shape) or min(shape) <= 0:
        return []
    value, part = node.args[1], [Axis(0, n) for n in shape]
    if applied(node) == "add":
        value = node.args[node.args[0] is total]
    if not isinstance(value.type, Array) or not is_known(value.type.shape):
        return []
    if applied(node) != "add":
        part[node.attrs["axis"]] = updated(node)
    terms, narrower, stack = [], False, [PartTerm(value, tuple(part))]
    while stack:
        term = stack.pop()
        inside = list(term.inside(shape)) if count.get(term.value) == 1 else []
        narrower |= any(t.elements() < term.elements() for t in inside)
        stack += reversed(inside)
        if not inside and filled(term.value) != 0:
            terms.append(term)
        if len(terms) + len(stack) > MOST_TERMS:
            return []
    return terms if narrower and all(t.rows(shape) is not None for t in terms) else []


def _added(builder: Builder, env: dict[Node, Node], total: Node, terms: list[PartTerm]) -> Node:
    """A sum with terms added to its parts."""
    shape = total.type.shape
    for term in terms:
        k, value = term.rows(shape), builder.var(lookup(env, term.value))
        if not k:
            total = (builder.var(total) + reshape(value, shape=shape)).node
            continue
        length = term.part[k - 1].size
        at: Var = builder.var(builder.constant(0, INT))
        for axis, n in zip(term.part[:k], shape):
            at = at * n + _clamped(builder, env, axis, n)
        array = reshape(builder.var(total), shape=(product(shape[:k]), *shape[k:]))
        if length == 1 and k < len(shape):
            array = index_add(array, reshape(value, shape=shape[k:]), at, axis=0)
        else:
            array = slice_add(array, reshape(value, shape=(length, *shape[k:])), at, axis=0)
        total = reshape(array, shape=shape).node
    return total


def _clamped(builder: Builder, env: dict[Node, Node], axis: Axis, n: int) -> Var:
    """The start of a part along an axis, clamped so that it fits, as updates do it."""
    if isinstance(axis.start, int):
        return builder.var(builder.constant(axis.start, INT))
    at = cast(builder.var(lookup(env, axis.start)), dtype="int64", weak=True)
    low, high = (builder.var(builder.constant(bound, INT)) for bound in (0, n - axis.size))
    return minimum(maximum(at, low), high)
