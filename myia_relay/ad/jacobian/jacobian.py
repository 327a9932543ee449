"""Jacobians: one program for all directions, as a batch.

    J[:, j] = jvp(f, x, e_j)        J[i, :] = vjp(f, x, e_i)

The request holds a graph that is linear in its last parameters, the seeds: it maps a tangent to a tangent, or a
cotangent to cotangents. If sizes are known, its sparsity pattern is computed (`ad.jacobian.sparsity`), and directions
that affect no common element share a pass (`ad.jacobian.colouring`). The entries are then scattered into zeros, or
returned as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...abstract.dims import DimLike, known_size, product
from ...abstract.types import Array, total, tuple_of
from ...ir.build import Builder, Var
from ...ir.node import Graph, Node
from ...ir.prim import REGISTRY
from ...prims.ops.data_functions import zero
from ...prims.rules.broadcast import reshape
from ...utils.switches import is_left_out
from ..batch.vmap import inline_vmap
from .colouring import colouring
from .sparsity import BRIEF, LONG, NoPattern, Pattern, patterns

FEW = 16  # directions up to which the search does not pay
GAIN = 2  # directions per colour, on average, from which colours pay
MOST_ENTRIES = 1 << 20  # entries of a compressed Jacobian at most, since their places are constants of the program


@dataclass(frozen=True, eq=False)
class Part:
    """The entries of one result's Jacobian by one argument that may be nonzero, row by row.

    Attributes:
        rows, columns: elements of the result and of the argument, int64.
        places: where the entries stand in the stack of passes, flat.
    """

    rows: np.ndarray
    columns: np.ndarray
    places: np.ndarray


@dataclass(frozen=True, eq=False)
class Compression:
    """A Jacobian compressed.

    Attributes:
        colours: for each direction, int64 from 0 on.
        parts: by result of the function, then by argument.
    """

    colours: np.ndarray
    parts: tuple[tuple[Part, ...], ...]

    @property
    def passes(self) -> int:
        """How many colours there are."""
        return int(self.colours.max(initial=-1)) + 1


def inline_jacobian(
    b: Builder, args: Sequence[Node], graph: Graph, seeds: int, forward: bool, sparse: Compression | None
) -> Node:
    """Emit the derivatives of each result by each argument, a tuple: of the first result by all arguments, of the
    second, ...

    Args:
        b: where.
        args: values of the graph's parameters but the seeds.
        graph: linear in its last parameters, transforms expanded.
        seeds: how many of them there are.
        forward: whether they are tangents of the arguments; otherwise they are cotangents of the results.
        sparse: how it is compressed, if only the entries in its parts are wanted; None for arrays with the axes of the
        result, then
            those of the argument.
    """
    ends = [p.type for p in graph.params[len(args) :]]
    outs = list(graph.output.type.elems)
    found = sparse or worthwhile(graph, seeds, forward)
    if found is None:
        parts = uncompressed(b, args, graph, ends, outs, forward)
    else:
        parts = compressed(b, args, graph, ends, outs, forward, found, sparse is not None)
    parts = by_result(parts, len(ends), forward)
    return b.emit(REGISTRY["make_struct"], parts, {"type": tuple_of(*[p.type for p in parts])})


def by_result(parts: Sequence, seeds: int, forward: bool) -> list:
    """Parts by result, then by argument; they are given by a graph's result, then by its seed."""
    return list(parts) if forward else [p for j in range(seeds) for p in parts[j::seeds]]


def worthwhile(graph: Graph, seeds: int, forward: bool) -> Compression | None:
    """How to compress the Jacobian that a linear graph gives row by row or column by column, if that pays."""
    n = total([p.type for p in graph.params[-seeds:]])
    if not isinstance(n, int) or n < FEW or is_left_out("colour_jacobians"):
        return None
    try:
        return compression(graph, seeds, forward, n // GAIN, BRIEF)
    except NoPattern:
        return None


def compression(graph: Graph, seeds: int, forward: bool, most: int | None = None, patience: int = LONG) -> Compression:
    """How to compress it.

    Args:
        graph: linear in its last parameters, transforms expanded.
        seeds: how many of them there are.
        forward: whether they are tangents.
        most: how many passes are acceptable; None for any number.
        patience: how long the search for the pattern may take.

    Raises:
        NoPattern: sizes are not known, trees or lists depend on the seeds, there are too many entries, or more passes
        are needed.
    """
    ends = [p.type for p in graph.params[-seeds:]]
    found = patterns(graph, len(graph.params) - seeds, most, patience)
    if sum(len(p.inputs) for p in found) > MOST_ENTRIES:
        raise NoPattern(f"it has more than {MOST_ENTRIES:,} entries that may be other than zero")
    n = known_size(total(ends))
    colours = colouring(together(found), n, n if most is None else most)
    if colours is None:
        if most is not None:
            raise NoPattern("it needs too many passes")
        colours = np.arange(n)
    table = []
    for pattern in found:
        elements, start, parts = pattern.elements(), 0, []
        for end in ends:
            size = known_size(product(end.shape))
            own = (pattern.inputs >= start) & (pattern.inputs < start + size)
            element, seed = elements[own], pattern.inputs[own]
            rows, columns = (element, seed - start) if forward else (seed - start, element)
            order = np.lexsort((columns, rows))
            places = colours[seed] * pattern.size + element
            parts.append(Part(rows[order], columns[order], places[order]))
            start += size
        table.append(tuple(parts))
    return Compression(colours, tuple(table) if forward else tuple(zip(*table, strict=True)))


def together(parts: Sequence[Pattern]) -> Pattern:
    """The pattern of several values, concatenated."""
    starts = [np.zeros(1, np.int64)]
    for p in parts:
        starts.append(p.starts[1:] + starts[-1][-1])
    return Pattern(np.concatenate(starts), np.concatenate([p.inputs for p in parts]))


# One pass for each direction.


def uncompressed(b: Builder, args, graph: Graph, ends: list, outs: list, forward: bool) -> list[Node]:
    """Derivatives by output of the graph, then by seed."""
    n = total(ends)
    stacks = batched(b, args, graph, basis(b, ends, n), n)
    parts = []
    for stack, out in zip(stacks, outs, strict=True):
        start: DimLike = 0
        for end in ends:
            part = reshape(Var(b, section(b, stack, start, product(end.shape), n)), shape=(*end.shape, *out.shape))
            r = len(end.shape)
            if forward and end.shape and out.shape:
                part = REGISTRY["transpose"](part, perm=(*range(r, r + len(out.shape)), *range(r)))
            parts.append(part.node)
            start = start + product(end.shape)
    return parts


def batched(b: Builder, args: Sequence[Node], graph: Graph, seeds: Sequence[Node], n: DimLike) -> list[Node]:
    """The graph's results for n seeds: stacks (n, ...)."""
    flags = (*(False,) * len(args), *(True,) * len(seeds))
    node = inline_vmap(b, (*args, *seeds), graph, flags, n)
    return [b.emit(REGISTRY["get_item"], (node,), {"index": k}) for k in range(len(graph.output.type.elems))]


def basis(b: Builder, types: list, n: DimLike) -> list[Node]:
    """The standard basis of the joint space of values of these types, n vectors stacked: an identity matrix, split by
    columns.
    """
    eq, cast = REGISTRY["eq"], REGISTRY["cast"]
    out: list[Node] = []
    start: DimLike = 0
    count = Var(b, b.emit(REGISTRY["iota"], (), {"n": n, "dtype": "int64"}))
    vector = reshape(count, shape=(n, 1))
    for t in types:
        size = product(t.shape)
        columns = REGISTRY["dynamic_slice"](count, Var(b, _index(b, start)), axis=0, length=size)
        hit = eq(vector, reshape(columns, shape=(1, size)))
        out.append(reshape(cast(hit, dtype=t.dtype), shape=(n, *t.shape)).node)
        start = start + size
    return out


def _index(b: Builder, value: DimLike) -> Node:
    return b.constant(value) if isinstance(value, int) else b.emit(REGISTRY["dim_size"], (), {"dim": value})


def section(b: Builder, stack: Node, start: DimLike, size: DimLike, n: DimLike) -> Node:
    """A range of the first axis."""
    if size == n:
        return stack
    return REGISTRY["dynamic_slice"](Var(b, stack), Var(b, _index(b, start)), axis=0, length=size).node


# One pass for each colour.


def compressed(
    b: Builder, args, graph: Graph, ends: list, outs: list, forward: bool, found: Compression, sparse: bool
) -> list[Node]:
    """The same from a pass for each colour; with `sparse` only the entries of the parts."""
    n = found.passes
    stacks = batched(b, args, graph, sums_of_basis(b, ends, found.colours, n), n) if n else [None] * len(outs)
    parts = []
    for j, (stack, out) in enumerate(zip(stacks, outs, strict=True)):
        for k, end in enumerate(ends):
            part = found.parts[j][k] if forward else found.parts[k][j]
            values = picked(b, stack, part.places, out.dtype)
            if not sparse:
                result, argument = (out, end) if forward else (end, out)
                places = part.rows * known_size(product(argument.shape)) + part.columns
                values = spread(b, values, places, (*result.shape, *argument.shape))
            parts.append(values)
    return parts


def sums_of_basis(b: Builder, types: list, colours: np.ndarray, k: int) -> list[Node]:
    """For each of k colours the sum of the standard basis vectors that have it, stacked, and split as the values of
    these types.
    """
    count = Var(b, b.emit(REGISTRY["iota"], (), {"n": k, "dtype": "int64"}))
    out, start = [], 0
    for t in types:
        size = known_size(product(t.shape))
        own = Var(b, b.constant(colours[start : start + size].reshape(1, *t.shape)))
        hit = REGISTRY["eq"](reshape(count, shape=(k, *(1,) * len(t.shape))), own)
        out.append(REGISTRY["cast"](hit, dtype=t.dtype).node)
        start += size
    return out


def picked(b: Builder, stack: Node | None, places: np.ndarray, dtype: str) -> Node:
    """The elements at given places of a stack."""
    if stack is None or not len(places):
        return zero(b, Array(dtype, (len(places),)))
    flat = reshape(Var(b, stack), shape=(known_size(product(stack.type.shape)),))
    return REGISTRY["take"](flat, Var(b, b.constant(places)), axis=0).node


def spread(b: Builder, values: Node, places: np.ndarray, shape: tuple[int, ...]) -> Node:
    """An array of zeros with values at given places."""
    flat = zero(b, Array(values.type.dtype, (known_size(product(shape)),)))
    if len(places):
        flat = REGISTRY["scatter_add"](Var(b, flat), Var(b, b.constant(places)), Var(b, values), axis=0).node
    return reshape(Var(b, flat), shape=shape).node
