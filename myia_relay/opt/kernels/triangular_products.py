"""Products of triangular matrices: known zeros are not multiplied, and results that are never read are not computed.

    for j in range(n):                              for j in range(n):
        for i in range(j, n):                           for i in range(j, n):
            L[i, j] = f(i, j)                 =>            L[i, j] = f(i, j)
    y = x @ L.T                                     y[:, j] = x[:, :j + 1] @ L[j, :j + 1]          half the work

A matrix is triangular if it comes from `np.tril` or `np.triu`, or if it begins as zeros and is only written on one side
of the diagonal. To decide that, the row and the column of each write are described as polynomials of the loop indices
(`scalar_evolution`), whose difference has a sign. Likewise the adjoint of such loops reads only one side of the
cotangent, so only that side of the product that computes it is needed.

Zero times infinity is not zero: `backend.tvm.kernels.triangular_products` tests whether that matters, and computes what
NumPy computes.

Input: a program without transforms, for an executor with kernels for triangles. Output: the same program.

Source: "active sparsity" of M. Peng and C. Dubach, "LAGrad: statically optimized differentiable programming in MLIR"
(CC 2023), section 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applied, applies
from ...ir.prim import REGISTRY, Primitive, updates_one
from ...ir.rewrite import Rewriter, all_graphs, inner_graphs
from ...ir.walk import users
from ...prims.ops.control import LEAD
from ..analysis.control import output_parts
from ..analysis.polynomials import Polynomial
from ..analysis.ranges import analyse
from ..analysis.scalar_evolution import Forms
from ..loops.dead_fills import never_negative
from ..rewrite.rules import filled

FIRST = LEAD["for_loop"]
LEAST = 20  # rows from which a triangle pays
WORK = 100_000  # multiplications from which a product pays
DTYPES = ("float32", "float64")
MAKES = {"dynamic_update", "tri_mask", "where"}  # every program with a triangle has at least one of them


@dataclass(frozen=True)
class TriangularProducts:
    """The pass."""

    name: str = "triangular_products"

    def __call__(self, graph: Graph) -> Graph:
        graphs = list(all_graphs(graph))
        names = {applied(n) for g in graphs for n in g.nodes}
        if "dot" not in names or names.isdisjoint(MAKES):
            return graph
        rewriter = _Rewriter(dict(_triangular(graph, graphs)))
        return rewriter.rewrite(graph) if rewriter.found else graph


Holds = Callable[[Graph, Node, frozenset[Node]], bool]
"""Whether something holds for a value in a graph, if it does for some parameters of loops."""

Part = tuple[Node | None, bool]
"""What is read of a matrix, or of a row of it; and whether the lower triangle is asked for."""

Reads = Callable[[Graph, Node], bool]
"""Whether only that part of a value in a graph is read."""


class _Rewriter(Rewriter):
    """Replaces a `dot` in `found` by `triangular_dot`, with the triangular matrix and its side."""

    acts_on = ("dot",)

    def __init__(self, found: Mapping[Apply, tuple[str, bool]]):
        super().__init__()
        self.found = found

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if node not in self.found:
            return super().node(builder, node, args, attrs)
        which, lower = self.found[node]
        self.changed, builder.origin = True, node.origin
        return builder.emit(REGISTRY["triangular_dot"], args, {**attrs, "which": which, "lower": lower}, node.type)


def _triangular(graph: Graph, graphs: Iterable[Graph]) -> Iterator[tuple[Apply, tuple[str, bool]]]:
    """The products with a triangle, each with one of them."""
    triangles = Triangles(graph)
    for g in graphs:
        for node in g.nodes:
            if applied(node) == "dot" and node.type.dtype in DTYPES and multiplications(node) >= WORK:
                found = next(triangles.of(g, node), None)
                if found is not None:
                    yield node, found


def multiplications(node: Apply) -> float:
    """The number of multiplications of a product; infinite if sizes are symbolic."""
    sizes = (*node.type.shape, node.args[0].type.shape[0 if node.attrs["transpose_a"] else 1])
    return math.prod(sizes) if all(isinstance(size, int) for size in sizes) else math.inf


def _is_worth(node: Node) -> bool:
    """Whether a matrix is square and large; one of symbolic size counts as large."""
    m, n = shape_of(node)
    return m == n and (not isinstance(m, int) or m >= LEAST)


def shape_of(node: Node) -> tuple[Any, ...]:
    """The shape of an array, and of a number."""
    return getattr(node.type, "shape", ())


class Triangles:
    """What is known of the zeros of matrices, and of the entries that are read.

    Args:
        graph: the whole program.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.users = functools.cache(users)

    @functools.cached_property
    def forms(self) -> Forms:
        """The polynomials that indices are."""
        return analyse(self.graph).forms

    @functools.cached_property
    def places(self) -> dict[Graph, tuple[Graph, Apply] | None]:
        """The places where a loop's body is run, if there is only one."""
        found: dict[Graph, tuple[Graph, Apply] | None] = {}
        for g in all_graphs(self.graph):
            for node in g.nodes:
                for inner in inner_graphs(node):
                    found[inner] = None if inner in found or applied(node) != "for_loop" else (g, node)
        return found

    def of(self, graph: Graph, node: Apply) -> Iterator[tuple[str, bool]]:
        """The triangles of a product: which matrix, and whether it is the lower one."""
        for which, operand, flag in zip(("left", "right"), node.args, ("transpose_a", "transpose_b")):
            if _is_worth(operand):
                for lower in (True, False):
                    if self.zeros(graph, operand, lower):
                        yield which, lower is not node.attrs[flag]
        if _is_worth(node):
            for lower in (True, False):
                if self.reads(graph, node, lower, set()):
                    yield "result", lower

    # --- zeros --------------------------------------------------------------------------------------------------------

    def zeros(self, graph: Graph, node: Node, lower: bool, assumed: frozenset[Node] = frozenset()) -> bool:
        """Whether a matrix is zero outside its lower (or upper) triangle.

        Args:
            graph: where it is.
            assumed: parameters of loops of which it is assumed.
        """
        if _is_zero(node):
            return True
        if isinstance(node, Constant):
            value = np.asarray(node.value)
            return not np.any(np.triu(value, 1) if lower else np.tril(value, -1))
        if applies(node, "where"):
            side = _side(node.args[0], node)
            return side is not None and any(_is_zero(node.args[k]) and _is_inside(side, k == 2, lower) for k in (1, 2))
        if applies(node, "transpose"):
            # The assumption about loops is for this side.
            return not assumed and node.attrs["perm"] == (1, 0) and self.zeros(graph, node.args[0], not lower, assumed)
        if applies(node, "neg"):
            return self.zeros(graph, node.args[0], lower, assumed)
        if applies(node, "dynamic_update") and node.attrs["axis"] == 0:
            matrix, row, i = node.args
            return self.zeros(graph, matrix, lower, assumed) and self.row(graph, row, i, lower, assumed)
        return self.carried(graph, node, assumed, lambda g, n, a: self.zeros(g, n, lower, a))

    def row(self, graph: Graph, row: Node, i: Node, lower: bool, assumed: frozenset[Node]) -> bool:
        """Whether the data written as row `i` of a matrix is zero outside the triangle."""
        if _is_zero(row):
            return True
        if isinstance(row, Parameter):
            return row in assumed  # nothing is known of another iteration of the enclosing loop, which has another `i`
        if applies(row, "dynamic_update"):
            inner, _, j = row.args
            return self.is_within(i, j, lower) and self.row(graph, inner, i, lower, assumed)
        if applies(row, "dynamic_index") and row.attrs["axis"] == 0:
            return self.is_same(row.args[1], i) and self.zeros(graph, row.args[0], lower, assumed)
        return self.carried(graph, row, assumed, lambda g, n, a: self.row(g, n, i, lower, a))

    def carried(self, graph: Graph, node: Node, assumed: frozenset[Node], holds: Holds) -> bool:
        """Whether something is a loop invariant: it holds for the initial value, and after an iteration if it held before."""
        if isinstance(node, Parameter):
            place = self.places.get(graph)
            if node in assumed or place is None or node is graph.params[0]:
                return node in assumed
            (outer, loop), k = place, graph.params.index(node) - 1
            return holds(outer, loop.args[FIRST + k], assumed) and (
                k >= loop.attrs["carried"] or self.after(loop, k, assumed, holds)
            )
        if not applies(node, "get_item") or applied(node.args[0]) != "for_loop":
            return False
        loop, k = node.args[0], node.attrs["index"]
        return holds(graph, loop.args[FIRST + k], assumed) and self.after(loop, k, assumed, holds)

    def after(self, loop: Apply, k: int, assumed: frozenset[Node], holds: Holds) -> bool:
        """Whether something holds for a carried value after an iteration of a loop, if it held before."""
        body: Graph = loop.attrs["body"]
        outs, assumed = output_parts(body), assumed | {body.params[1 + k]}
        if outs is not None:
            return holds(body, outs[k], assumed)
        inner = body.output  # an inner loop may return all that is carried
        return (
            applied(inner) == "for_loop"
            and holds(body, inner.args[FIRST + k], assumed)
            and self.after(inner, k, assumed, holds)
        )

    # --- what is read -------------------------------------------------------------------------------------------------

    def reads(self, graph: Graph, node: Node, lower: bool, assumed: set[Any]) -> bool:
        """Whether only the lower (or upper) triangle of a matrix is ever read.

        Args:
            graph: where it is.
            assumed: places of loops of which it is assumed, or will be found out before the question is answered.
        """
        if node is graph.output:
            return False
        return all(self.use(graph, node, user, lower, assumed) for user in self.users(graph).get(node, ()))

    def use(self, graph: Graph, node: Node, user: Apply, lower: bool, assumed: set[Any]) -> bool:
        """The same question for one user."""
        name, at = applied(user), [k for k, a in enumerate(user.args) if a is node]
        if name == "dynamic_index":
            return at == [0] and user.attrs["axis"] == 0 and self.reads_row(graph, user, user.args[1], lower, assumed)
        if updates_one(user):
            return at == [0] and user.attrs["axis"] == 0 and self.reads(graph, user, lower, assumed)
        if name == "where" and user.type.shape == node.type.shape and 0 not in at:
            side = _side(user.args[0], node)
            if side is not None and all(_is_inside(side, k == 1, lower) for k in at):
                return True
        if name == "transpose":
            return not assumed and user.attrs["perm"] == (1, 0) and self.reads(graph, user, not lower, assumed)
        if isinstance(user.fn, Primitive) and user.fn.kind == "elementwise":
            return shape_of(user) == shape_of(node) and self.reads(graph, user, lower, assumed)
        return self.given(graph, user, at, (None, lower), assumed, lambda g, n: self.reads(g, n, lower, assumed))

    def reads_row(self, graph: Graph, row: Node, i: Node, lower: bool, assumed: set[Any]) -> bool:
        """Whether only the part in the triangle is read of row `i`, which may be written back to its place."""
        if row is graph.output:
            return False
        return all(self.use_of_row(graph, row, user, i, lower, assumed) for user in self.users(graph).get(row, ()))

    def use_of_row(self, graph: Graph, row: Node, user: Apply, i: Node, lower: bool, assumed: set[Any]) -> bool:
        """The same question for one user."""
        name, at = applied(user), [k for k, a in enumerate(user.args) if a is row]
        if name == "dynamic_index":
            return at == [0] and user.attrs["axis"] == 0 and self.is_within(i, user.args[1], lower)
        if updates_one(user) and user.attrs["axis"] == 0:
            if at == [0]:
                return self.reads_row(graph, user, i, lower, assumed)
            return at == [1] and self.is_same(user.args[2], i) and self.reads(graph, user, lower, assumed)
        if user is graph.output:  # not into the next iteration of the enclosing loop, which has another `i`
            around, first = self.places.get(graph), FIRST if name == "for_loop" else 0
            on = [k - first for k in at if name != "for_loop" or k - first < user.attrs["carried"]]
            if on and (around is None or not all((around[1], k, i, lower) in assumed for k in on)):
                return False
        return self.given(graph, user, at, (i, lower), assumed, lambda g, n: self.reads_row(g, n, i, lower, assumed))

    def given(self, graph: Graph, user: Apply, at: list[int], part: Part, assumed: set[Any], reads: Reads) -> bool:
        """Whether an operand of a loop is only read as allowed: in the loop, after it, and in later iterations."""
        if user is graph.output and applied(user) == "make_struct":
            place = self.places.get(graph)
            if place is None or max(at) >= place[1].attrs["carried"] or self.users(graph).get(user):
                return False
            return all(self.place(*place, k, part, assumed, reads) for k in at)
        if applied(user) != "for_loop" or min(at) < FIRST:
            return False
        return all(self.place(graph, user, k - FIRST, part, assumed, reads) for k in at)

    def place(self, graph: Graph, loop: Apply, k: int, part: Part, assumed: set[Any], reads: Reads) -> bool:
        """The same for one operand, carried or constant."""
        if (loop, k, *part) in assumed:
            return True
        assumed.add((loop, k, *part))
        body: Graph = loop.attrs["body"]
        if not reads(body, body.params[1 + k]):
            return False
        if k >= loop.attrs["carried"]:
            return True
        if loop is graph.output:  # an inner loop returns all that is carried
            outer = self.places.get(graph)
            if outer is None or not self.place(*outer, k, part, assumed, reads):
                return False
        taken = self.users(graph).get(loop, ())
        return all(applied(u) == "get_item" and (u.attrs["index"] != k or reads(graph, u)) for u in taken)

    # --- indices ------------------------------------------------------------------------------------------------------

    def is_within(self, i: Node, j: Node, lower: bool) -> bool:
        """Whether row `i` and column `j` always meet in the triangle."""
        row, column = self.form(i), self.form(j)
        if row is None or column is None:
            return False
        return never_negative(row - column if lower else column - row)

    def is_same(self, i: Node, j: Node) -> bool:
        """Whether two indices are always equal."""
        form = self.form(i)
        return i is j or (form is not None and form == self.form(j))

    def form(self, index: Node) -> Polynomial | None:
        """The polynomial that an index is."""
        return Polynomial.of(int(index.value)) if isinstance(index, Constant) else self.forms.of.get(index)


def _is_zero(node: Node) -> bool:
    """Whether an array or a number is known to be zero."""
    number = filled(node)
    return number is not None and bool(number == 0)


def _side(mask: Node, matrix: Node) -> int | np.ndarray | None:
    """A mask of the shape of a matrix that is known: the diagonal up to which it holds, or its elements."""
    if shape_of(mask) != shape_of(matrix):
        return None
    if applies(mask, "tri_mask"):
        return mask.attrs["k"] if isinstance(mask.attrs["k"], int) else None
    return np.asarray(mask.value) if isinstance(mask, Constant) else None


def _is_inside(side: int | np.ndarray, holds: bool, lower: bool) -> bool:
    """Whether all places where a mask holds (or does not hold) are in a triangle."""
    if isinstance(side, int):
        return holds and side <= 0 if lower else not holds and side >= -1
    places = side if holds else ~side
    return not np.any(np.triu(places, 1) if lower else np.tril(places, -1))


__all__ = ["TriangularProducts"]
