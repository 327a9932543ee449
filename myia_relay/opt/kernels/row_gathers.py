"""Rows that are gathered from arrays which are computed row by row: only these are computed, each once, in memory order.

    posed = skin(vertices)                      d = distinct(corners)         # the vertices, and the place of each corner's
    x = points - posed[corners]         =>      posed = skin(vertices)[d.rows]
                                                x = points - posed[d.slots]

Several corners of triangles share a vertex, and neighbouring rows often need the same data, such as the bones that a
vertex is attached to: a block of rows skips what is zero for all of its rows (`opt.kernels.zero_blocks`). If a row is
too little work for that, gathers from one array are at least merged, so that all are rows of one kernel.

Indices are clamped, so gathering before they are checked does no harm.

Input: the kernels of a graph. Output: the graph with other gathers. Used by `opt.kernels.soa_kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import Any

from ...abstract.types import Array, is_static_shape
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applied
from ...ir.prim import REGISTRY
from ...ir.rewrite import emit_like, lookup, same_interface
from ...utils.switches import is_left_out
from ..analysis.control import iterations
from ..analysis.row_axes import RowValues, is_part, reduced

FEWEST = 32  # gathers
SPARSE = 64  # rows per gathered row, up to which it pays: all rows are visited
OFTEN = 2  # rows per gathered row in one place, up to which it pays: a fifth of the gathers are then repetitions
HEAVY = 8  # operations per number of a row, from which it pays to compute the row once
LANES = 8  # of the widest vectors


class Gatherer:
    """The graph with other gathers.

    Args:
        graph: a typed graph.
        rows: by extent.
        movable: whether an application may be emitted earlier.

    Attributes:
        counts: extents of arrays of distinct rows -> how many of these there are, a node of the new graph.
    """

    def __init__(self, graph: Graph, rows: dict[int, RowValues], movable: Callable[[Apply], bool]):
        self.graph, self.rows, self.movable = graph, rows, movable
        self.counts: dict[int, Node] = {}
        self.gathers = {users[0]: users for r in rows.values() for users in self.worthwhile(r)}
        # Indices -> the distinct ones, and the capacity for them
        self.made: dict[tuple[Node, ...], tuple[Node, int]] = {}
        self.sizes = {d for node in graph.nodes if isinstance(node.type, Array) for d in node.type.shape}

    def worthwhile(self, rows: RowValues) -> list[list[Apply]]:
        """The gathers from each array of an extent that should be done in another way."""
        found = []
        for x, place in rows.place.items():
            users = rows.users.get(x, [])
            gathers = all(applied(u) == "take" and u.args[0] is x and u.attrs["axis"] == place.axis for u in users)
            if not users or not gathers or not place.alone or x is self.graph.output:
                continue
            indices = [u.args[1].type for u in users]
            if not all(
                isinstance(t, Array) and t.dtype == "int64" and len(t.shape) == 1 and is_static_shape(t)
                for t in indices
            ):
                continue
            if sum(t.shape[0] for t in indices) <= rows.n and (len(users) > 1 or self.is_heavy(rows, users)):
                found.append(users)
        return found

    def is_heavy(self, rows: RowValues, users: list[Apply]) -> bool:
        """Whether each row should be computed once."""
        x, count = users[0].args[0], sum(u.args[1].type.shape[0] for u in users)
        if is_left_out("distinct_gathers") or not FEWEST <= count < rows.n - 2 * LANES or rows.n > SPARSE * count:
            return False
        if len(users) == 1 and rows.n > OFTEN * count:
            return False  # so few gathers of one kind rarely have common rows
        return work(rows, x) >= HEAVY * math.prod(reduced(x.type.shape, rows.place[x]))

    def run(self) -> Graph:
        """The new graph; the old one if nothing changes."""
        if not self.gathers:
            return self.graph
        new, env = same_interface(self.graph)
        self.b, self.env = Builder(new), env
        for node in self.graph.nodes:
            if node in self.gathers and node not in env:
                users = self.gathers[node]
                if not all(self.movable(m) for u in users for m in computed_from(u.args[1], env)):
                    return self.graph
                for u in users:
                    self.emit(u.args[1])
                self.b.origin = node.origin
                if self.is_heavy(self.rows[node.args[0].type.shape[node.attrs["axis"]]], users):
                    self.once(users)
                else:
                    self.together(users)
            self.emit(node)
        new.output = lookup(env, self.graph.output)
        return new

    def emit(self, wanted: Node) -> None:
        """Emit a node, after what it is computed from."""
        stack = [wanted]
        while stack:
            node = stack[-1]
            missing = (
                [a for a in node.args if isinstance(a, Apply) and a not in self.env] if isinstance(node, Apply) else []
            )
            if missing and node not in self.env:
                stack += missing
                continue
            stack.pop()
            if isinstance(node, Apply) and node not in self.env:
                self.env[node] = emit_like(self.b, node, tuple(lookup(self.env, a) for a in node.args))

    def op(self, name: str, args: tuple[Node, ...], **attrs: Any) -> Node:
        return self.b.emit(REGISTRY[name], args, attrs)

    def indices(self, users: list[Apply]) -> Node:
        """The indices of all gathers, concatenated."""
        parts = tuple(lookup(self.env, u.args[1]) for u in users)
        return parts[0] if len(parts) == 1 else self.op("concatenate", parts, axis=0)

    def together(self, users: list[Apply]) -> None:
        """`x[i]`, `x[j]` become parts of `x[concatenate(i, j)]`."""
        node, first = users[0], 0
        rows = self.op("take", (lookup(self.env, node.args[0]), self.indices(users)), **node.attrs)
        for u in users:
            starts = [0] * len(u.type.shape)
            starts[u.attrs["axis"]] = first
            first += u.args[1].type.shape[0]
            self.env[u] = self.op("slice", (rows,), starts=tuple(starts), sizes=u.type.shape, steps=(1,) * len(starts))

    def once(self, users: list[Apply]) -> None:
        """`x[i]`, `x[j]` become rows of `x[distinct(i, j)]`."""
        node, key = users[0], tuple(u.args[1] for u in users)
        x, axis = node.args[0], node.attrs["axis"]
        if key not in self.made:
            indices = self.indices(users)
            room = indices.type.shape[0] // LANES * LANES + LANES
            while room in self.sizes or room in self.counts:
                room += LANES
            packed = self.op("distinct", (indices,), size=x.type.shape[axis], room=room)
            self.made[key] = packed, room
            self.counts[room] = self.op("dynamic_index", (packed, self.b.constant(packed.type.shape[0] - 1)), axis=0)
        packed, room = self.made[key]

        def part(first: int, size: int) -> Node:
            return self.op("slice", (packed,), starts=(first,), sizes=(size,), steps=(1,))

        rows, first = self.op("take", (lookup(self.env, x), part(0, room)), axis=axis), room
        for u in users:
            size = u.args[1].type.shape[0]
            self.env[u] = self.op("take", (rows, part(first, size)), axis=axis)
            first += size


def work(rows: RowValues, x: Node) -> int:
    """How many numbers are computed for a row of an array."""
    total, seen, stack = 0, set(), [x]
    while stack:
        node = stack.pop()
        if not isinstance(node, Apply) or node in seen or (node not in rows.place and node not in rows.loops):
            continue
        seen.add(node)
        stack += node.args
        if node in rows.loops:
            inner, span = rows.loops[node], iterations(node)
            assert span is not None
            total += len(span) * sum(numbers(inner, m) for m in inner.graph.nodes if m in inner.place)
        else:
            total += numbers(rows, node)
    return total


def numbers(rows: RowValues, node: Apply) -> int:
    """How many of them an application computes for a row."""
    return 0 if is_part(node) else math.prod(reduced(node.type.shape, rows.place[node]))


def computed_from(node: Node, known: Container[Node]) -> list[Apply]:
    """The applications that a node is computed from, and the node itself, except known ones."""
    found: dict[Apply, None] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Apply) and top not in known and top not in found:
            found[top] = None
            stack += top.args
    return list(found)


__all__ = ["Gatherer"]
