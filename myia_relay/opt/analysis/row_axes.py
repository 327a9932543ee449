"""Which values of a graph are computed row by row: along one axis whose positions no operation mixes.

A row is what an array holds at one position of the axis. For a batch of 3,000 points, `x[:, 0] * y` of shapes (3000, 2)
and (3000,) is 3,000 times the product of two numbers. `RowValues` walks a graph and finds, for one extent, the
applications each row of which follows from the same row of their operands (and from operands without such an axis), and
the place of the axis in each of them. It includes loops with such bodies that run equally often for all rows, and
`take`, whose rows are rows of another array, whatever its indices are.

Input: a typed graph and an extent. Output: `Rows.place`. Used by `opt.kernels.soa_kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...abstract.dims import is_known, known_size, never_negative, product
from ...abstract.types import Array, Scalar, is_static_shape
from ...ir.axes import is_pointwise, relation_of
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import Primitive
from ...ir.walk import users
from .control import iterations, output_parts

WIDEST = 128  # numbers of a row of one array
SHARED = 512  # numbers of an array that all rows use
LONGEST = 1 << 14  # numbers of an array of which they use parts
ITERATIONS = 1024  # primitives of a loop inside a row, which does not poll for signals
NUMBERS = ("float64", "float32", "int64", "bool")
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")
UNIFORM = frozenset("dynamic_index slice reshape transpose stop_gradient cast broadcast_to concatenate".split())
"""What all rows may share in the body of a loop: parts of arrays. Numbers are always accepted."""


class Place(NamedTuple):
    """The place of the rows: the axis and, if a reshape merged it with others, the numbers of positions before and
    after them.
    """

    axis: int
    pre: int = 1
    post: int = 1

    @property
    def alone(self) -> bool:
        """Whether the axis consists of the rows alone."""
        return self.pre == self.post == 1


def is_part(node: Apply) -> bool:
    """Whether an application is a part of its operand, which can be read from the operand's memory; repeated values are
    not.
    """
    return node.fn.view and node.fn.kind == "injective" and not is_pointwise(node.fn.axes)


class MixedError(Exception):
    """An array has several axes of the extent."""


class RowValues:
    """The values of a graph that are computed row by row.

    Args:
        graph: a typed graph.
        n: the extent.
        others: the same of the graph for larger extents: `take` may pick rows of these.
        body: whether the graph is that of a loop inside of a row; then its parameters are at hand, and nothing is left outside.

    Attributes:
        place: the applications, with where their rows are.
        loops: loops of rows -> the rows of their bodies.
        through: applications of `take` -> the rows that they pick from.
        uniform: in a loop's body, the applications that are the same for all rows.
    """

    def __init__(self, graph: Graph, n: int, others: Mapping[int, RowValues] | None = None, body: bool = False):
        self.graph, self.n, self.others, self.body = graph, n, others or {}, body
        self.place: dict[Node, Place] = {}
        self.loops: dict[Node, RowValues] = {}
        self.through: dict[Node, RowValues] = {}
        self.uniform: set[Node] = set()
        self.lazy: set[Node] = set()  # parts of arrays in memory, whose numbers need no computation
        self.users = users(graph)
        for node in graph.nodes:
            if isinstance(node.fn, Primitive):
                self._look_at(node)

    def _look_at(self, node: Apply) -> None:
        name = node.fn.name
        rule = JOIN.get(name, _follow)
        if name not in JOIN and node.fn.kind != "elementwise":
            return
        try:
            place = rule(self, node)
            if place is None and self.body and node not in self.loops:
                self._share(node)
            single = name == "take" and place is not None and self._is_single(node.args[1])
        except MixedError:
            return
        if place is not None and self._fits(node, place):
            self.place[node] = place
            if is_part(node) and self.is_lazy(node.args[0]):
                self.lazy.add(node)
            if single and node not in self.through:
                self.lazy.add(node)

    def _fits(self, node: Apply, place: Place) -> bool:
        t = node.type
        static = isinstance(t, Array) and t.dtype in NUMBERS and is_static_shape(t)
        return static and 0 < math.prod(reduced(t.shape, place)) <= WIDEST

    def _is_single(self, node: Node) -> bool:
        """Whether a row of a node is one number."""
        return product(reduced(node.type.shape, self.of(node))) == 1

    def _share(self, node: Apply) -> None:
        """Record what is the same for all rows of a loop's body."""
        if any(isinstance(a, Apply) and a not in self.uniform or self.of(a) is not None for a in node.args):
            return
        t, name = node.type, node.fn.name
        if isinstance(t, Scalar) or t == Array(getattr(t, "dtype", ""), ()):
            if t.dtype in NUMBERS and (
                node.fn.kind == "elementwise" or name == "dynamic_index" and self.is_lazy(node.args[0])
            ):
                self.uniform.add(node)
        elif isinstance(t, Array) and name in UNIFORM and is_static_shape(t) and t.dtype in NUMBERS:
            view = is_part(node) and self.is_lazy(node.args[0])
            if known_size(product(t.shape)) <= (LONGEST if view else SHARED) and (view or name != "dynamic_index"):
                self.uniform.add(node)
                if view:
                    self.lazy.add(node)

    def of(self, node: Node) -> Place | None:
        """The place of the rows of an operand; None if it has none."""
        if node in self.place:
            return self.place[node]
        if self.body and isinstance(node, Apply):
            return None
        return natural(node.type, self.n)

    def where(self, node: Node) -> Place | None:
        """The place of the rows of what a kernel of rows uses; None also for a table from which rows are picked, with several axes
        of the extent.
        """
        try:
            return self.of(node)
        except MixedError:
            return None

    def is_lazy(self, node: Node) -> bool:
        """Whether an array is in memory, or a part of one that is."""
        if isinstance(node, Apply):
            return node in self.lazy or (not self.body and node not in self.place)
        return not self.body or node not in self.carried

    @property
    def carried(self) -> set[Node]:
        """The carried values of the loop whose body this is."""
        return set(self.graph.params[1 : 1 + len(self.graph.output.type.elems)])

    def complete(self) -> bool:
        """Whether the whole body of a loop is computed row by row, and keeps the places of the rows."""
        parts = output_parts(self.graph)
        if parts is None:
            return False
        for node in self.graph.nodes:
            known = node in self.place or node in self.uniform or node in self.loops or node is self.graph.output
            if not known:
                return False
        try:
            return all(
                self.of(part) == natural(param.type, self.n) for part, param in zip(parts, self.graph.params[1:])
            )
        except MixedError:
            return False


def natural(t: Any, n: int) -> Place | None:
    """The axis of an extent in an array about whose computation nothing is known.

    Raises:
        MixedError: there are two of them.
    """
    if not isinstance(t, Array):
        return None
    axes = [k for k, d in enumerate(t.shape) if d == n]
    if len(axes) > 1:
        raise MixedError
    return Place(axes[0]) if axes else None


def reduced(shape: Any, place: Place | None) -> tuple[int, ...]:  # the sizes are known where there are rows
    """The shape of one row, which keeps the axis."""
    if place is None:
        return shape
    return (*shape[: place.axis], place.pre * place.post, *shape[place.axis + 1 :])


# --- rules: where the rows of an application are, None if it has none ----------------------------------------------------


def _follow(rows: RowValues, node: Apply) -> Place | None:
    """The place that follows from the declared axes (`ir.axes`): rows of operands and of the result lie along one
    mapped axis.
    """
    relation, places = relation_of(node), [rows.of(a) for a in node.args]
    if relation is None:
        return None
    found = {
        place._replace(axis=relation.operands[k][place.axis]) for k, place in enumerate(places) if place is not None
    }
    if len(found) != 1 or not isinstance(node.type, Array):
        return None
    (place,) = found
    axis = relation.axis_of(place.axis)
    if axis is None or place.axis in relation.located:
        return None
    for k, (a, own) in enumerate(zip(node.args, places)):
        if own is None and relation.axis_of(place.axis, k) is not None:
            return None
        if own is not None and not place.alone and is_pointwise(node.fn.axes) and a.type.shape != node.type.shape:
            return None
    return place._replace(axis=axis)


def _broadcast_to(rows: RowValues, node: Apply) -> Place | None:
    return natural(node.type, rows.n) if rows.of(node.args[0]) is None else _follow(rows, node)


def _reshape(rows: RowValues, node: Apply) -> Place | None:
    (x,) = node.args
    place = rows.of(x)
    if place is None or not isinstance(node.type, Array):
        return None
    before, shape = product(x.type.shape[: place.axis]) * place.pre, node.type.shape
    if not isinstance(before, int) or not is_known(shape) or 0 in shape:
        return None
    for axis, size in enumerate(shape):
        outer = math.prod(shape[:axis])
        if size % rows.n == 0 and before % outer == 0:
            pre = before // outer
            if size % (pre * rows.n) == 0:
                return Place(axis, pre, size // (pre * rows.n))
    return None


def _slice(rows: RowValues, node: Apply) -> Place | None:
    (x,) = node.args
    if rows.of(x) is None:  # rows may begin at a later position of a longer array
        static = isinstance(node.type, Array) and is_static_shape(x.type)
        return natural(node.type, rows.n) if static and not rows.body and rows.is_lazy(x) else None
    return _follow(rows, node)


def _pad(rows: RowValues, node: Apply) -> Place | None:
    low, high, interior = (node.attrs[k] for k in ("low", "high", "interior"))
    return _follow(rows, node) if not any(interior) and all(map(never_negative, (*low, *high))) else None


def _reduce(rows: RowValues, node: Apply) -> Place | None:
    place = rows.of(node.args[0])
    return _follow(rows, node) if place is not None and place.alone else None


def _dot(rows: RowValues, node: Apply) -> Place | None:
    return _follow(rows, node) if all(_is_small(x) for x in node.args if rows.of(x) is None) else None


def _is_small(x: Node) -> bool:
    return is_static_shape(x.type) and known_size(product(x.type.shape)) <= SHARED


def _dynamic_index(rows: RowValues, node: Apply) -> Place | None:
    x, i = node.args
    place = rows.of(x)
    if place is None or not place.alone or not isinstance(i.type, Scalar):
        return None
    return _follow(rows, node) if isinstance(i, Constant) or rows.is_lazy(x) else None


def _take(rows: RowValues, node: Apply) -> Place | None:
    x, indices = node.args
    axis, at = node.attrs["axis"], rows.of(indices) if isinstance(indices.type, Array) else None
    if at is None or not at.alone or indices.type.dtype != "int64":
        return None
    size = x.type.shape[axis]
    other = rows.others.get(size)
    picked = len(rows.users[x]) == 1 and x is not rows.graph.output
    if picked and other is not None and other.place.get(x) == Place(axis):
        rows.through[node] = other
    elif not is_static_shape(x.type):
        return None
    elif isinstance(x, Apply) and (x in rows.place or rows.body):  # it may not be in memory
        return None
    return Place(axis + at.axis)


def _for_loop(rows: RowValues, node: Apply) -> Place | None:
    body, carried = node.attrs["body"], node.attrs["carried"]
    args = node.args[3:]
    if not all(isinstance(a.type, Array | Scalar) and a.type.dtype in NUMBERS for a in args):
        return None
    if any((p := rows.of(a)) is None or a.type.dtype == "bool" or not p.alone for a in args[:carried]):
        return None
    if any(rows.of(a) is not None and not rows.is_lazy(a) for a in args[carried:]):
        return None
    span = iterations(node)
    if rows.body or span is None or len(span) > ITERATIONS:
        return None
    inner = RowValues(body, rows.n, body=True)
    if inner.complete():
        rows.loops[node] = inner
    return None


def _get_item(rows: RowValues, node: Apply) -> Place | None:
    return natural(node.type, rows.n) if node.args[0] in rows.loops else None


JOIN: dict[str, Callable[[RowValues, Apply], Place | None]] = {
    "broadcast_to": _broadcast_to,
    "reshape": _reshape,
    "transpose": _follow,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _follow,
    **dict.fromkeys(REDUCTIONS, _reduce),
    "dot": _dot,
    "dynamic_index": _dynamic_index,
    "take": _take,
    "for_loop": _for_loop,
    "get_item": _get_item,
}
"""What structure-of-arrays kernels compute besides elementwise operations, and under which conditions."""

__all__ = ["REDUCTIONS", "MixedError", "Place", "RowValues", "is_part", "natural", "reduced"]
