"""Functions of symmetric matrices, found in programs that compute them with eigenvectors.

    w, v = eigh(a);  y = X v diag(f(w)) v^T Y  =>  y = X F Y,   F = matrix_function(a; f)

Eigenvectors of equal eigenvalues are any basis, and have no derivative; what is made of them in this way has one, which needs f
itself and not only its values. So it is done before anything is differentiated. How the user wrote it does not matter: the scale
may be the elements of a diagonal matrix or the factor of rows or columns, and the factors may be multiplied in any order.

Each value is followed through the program as one of

- `SpectralScale`: a function of the eigenvalues, elementwise, along one axis, or a number that does not depend on which eigenvalue
  it is;
- `SpectralDiagonal`: a diagonal matrix of that;
- `ScaledVectors`: L v diag(scale), for some product L of matrices, or its transpose; of a vector (one row of L) also without that
  axis;
- `VectorSquares`: the elementwise product of two such vectors, the sum of which is  L1 v diag(scale) v^T L2^T.

Some columns of v are v with a scale that is 1 between two of the eigenvalues and 0 elsewhere: `v[:, :2] @ v[:, :2].T` has a
derivative where the first two eigenvalues are equal, and NaN where the second and the third are.

What is not found keeps the derivative of `eigh`, which is NaN by vectors of equal eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..abstract.dims import product
from ..abstract.types import Array, Scalar
from ..ir.build import Builder, Var
from ..ir.node import Apply, Constant, Graph, Node, applied
from ..ir.prim import REGISTRY
from ..ir.rewrite import Env, RecursiveComponents, Rewriter, all_graphs, drop_dead, inline, lookup
from ..prims.rules.broadcast import broadcast_to, cast, full, reshape
from ..prims.rules.matrices import mm, parts, rounding
from ..prims.rules.relations import same_size
from .matrix_functions import applied_to


@dataclass(frozen=True)
class Eigensystem:
    """The matrices whose eigenvalues and vectors these are: the operand of `eigh`, (b, n, n)."""

    a: Node
    lower: bool

    @property
    def sizes(self) -> tuple:
        """How many matrices, and how large."""
        return self.a.type.shape[:2]


@dataclass(frozen=True)
class SpectralScale:
    """A function of the eigenvalues of a source along an axis, counted from the last; None for one number (of each matrix).

    Attributes:
        columns: from which eigenvalue to which; None for all.
    """

    source: Eigensystem
    node: Node
    axis: int | None
    columns: tuple[int, int] | None = None


@dataclass(frozen=True)
class SpectralDiagonal:
    """A diagonal matrix with these scales."""

    scales: tuple[tuple[str, SpectralScale], ...]


@dataclass(frozen=True)
class ScaledVectors:
    """(L v diag(scales)), or its transpose.

    Attributes:
        left: the factors of L: nodes, and whether each is transposed.
        scales: what multiplies ("mul") or divides ("div") the columns.
        turned: whether it is the transpose.
        flat: whether the axis of the single row is missing.
        columns: from which column to which; None for all.
    """

    source: Eigensystem
    left: tuple[tuple[Node, bool], ...] = ()
    scales: tuple[tuple[str, SpectralScale], ...] = ()
    turned: bool = False
    flat: bool = False
    columns: tuple[int, int] | None = None


@dataclass(frozen=True)
class VectorSquares:
    """The elementwise product of two flat `ScaledVectors`."""

    one: ScaledVectors
    other: ScaledVectors
    scales: tuple[tuple[str, SpectralScale], ...] = ()


@dataclass
class SpectralValues:
    """What is known of the values of a graph.

    Attributes:
        values: node -> what it is.
        products: nodes to be replaced -> the two `ScaledVectors` whose product they are.
    """

    values: dict[Node, Any] = field(default_factory=dict)
    products: dict[Any, tuple[ScaledVectors, ScaledVectors]] = field(default_factory=dict)


def _lead(source: Eigensystem, shape: Sequence) -> bool:
    """Whether these axes are those of the stack of matrices."""
    return same_size(product(tuple(shape)), source.sizes[0])


def _scale_axis(source: Eigensystem, shape: Sequence, columns: tuple[int, int] | None) -> int | None:
    """The axis, from the last, along which an array of this shape holds the eigenvalues; None if it does not."""
    n = source.sizes[1] if columns is None else columns[1] - columns[0]
    at = [k for k, d in enumerate(shape) if d != 1]
    if not at or not same_size(shape[at[-1]], n):
        return None
    return at[-1] - len(shape) if _lead(source, shape[: at[-1]]) else None


def _is_one_number(source: Eigensystem, node: Node) -> bool:
    """Whether a value is a number, or one for each matrix of a stack."""
    shape = getattr(node.type, "shape", None)
    if shape is None:
        return False
    return all(d == 1 for d in shape) or (shape[-1] == 1 and _lead(source, shape))


def _single(node: Any) -> Any:
    """The number that an array repeats, if it does; else the node itself."""
    while applied(node) in ("broadcast_to", "reshape", "as_array", "as_scalar"):
        inner = node.args[0]
        if applied(node) == "reshape" and product(tuple(node.type.shape)) != 1 and not applied(inner) == "broadcast_to":
            break
        node = inner
    if isinstance(node, Constant) and isinstance(node.value, np.ndarray) and node.value.size:
        first = node.value.flat[0]
        if np.all(node.value == first):
            return Constant(first, Scalar(node.type.dtype), node.origin)
    return node


class SpectralAnalysis:
    """What the values of one graph are."""

    def __init__(self, graph: Graph):
        self.found = SpectralValues()
        self.sources: dict[Node, Eigensystem] = {}
        for node in graph.nodes:
            rule = RULES.get(getattr(node.fn, "name", "")) if not isinstance(node.fn, Graph) else None
            if rule is not None:
                value = rule(self, node)
            elif not isinstance(node.fn, Graph) and node.fn.kind == "elementwise" and node.fn.differentiable:
                value = self.elementwise(node)
            else:
                value = None
            if value is not None:
                self.found.values[node] = value

    def of(self, node: Node) -> Any:
        """What is known of a value."""
        return self.found.values.get(node)

    def eigh(self, node: Apply) -> None:
        a = node.args[0]
        size = a.type.shape[1]
        if size != 1:
            self.sources[node] = Eigensystem(a, node.attrs["lower"])

    def slice(self, node: Apply) -> Any:
        source = self.sources.get(node.args[0])
        if source is None:
            return self.columns(node)
        b, n = source.sizes
        (*firsts, start), (*counts, size) = node.attrs["starts"], node.attrs["sizes"]
        if any(x != 0 for x in firsts) or any(x != 1 for x in node.attrs["steps"]) or not _lead(source, counts):
            return None
        if start == 1 and same_size(size, n):
            return SpectralScale(source, node, -1)
        if start == 1 + n and same_size(size, n * n):
            return ScaledVectors(source)
        return None

    def columns(self, node: Apply) -> Any:
        """Some of the vectors, or of a scale."""
        value, shape = self.of(node.args[0]), node.args[0].type.shape
        if (
            not isinstance(value, SpectralScale | ScaledVectors)
            or value.columns is not None
            or not isinstance(value.source.sizes[1], int)
        ):
            return None
        axis = value.axis if isinstance(value, SpectralScale) else -1 if value.flat or not value.turned else -2
        starts, sizes, steps = (list(node.attrs[name]) for name in ("starts", "sizes", "steps"))
        if axis is None or steps[axis] != 1 or not isinstance(starts[axis], int) or not isinstance(sizes[axis], int):
            return None
        columns = (starts[axis], starts[axis] + sizes[axis])
        for list_, whole in ((starts, 0), (sizes, shape[axis]), (steps, 1)):
            list_[axis] = whole
        if any(x != 0 for x in starts) or any(x != 1 for x in steps) or not all(map(same_size, sizes, shape)):
            return None
        if columns[1] - columns[0] < 2:
            return None
        if isinstance(value, SpectralScale):
            return replace(value, node=node, columns=columns)
        return replace(value, columns=columns)

    def reshape(self, node: Apply) -> Any:
        value, shape = self.of(node.args[0]), node.type.shape
        packed = self.sources.get(node.args[0])
        if (
            packed is not None
            and shape
            and same_size(shape[-1], node.args[0].type.shape[-1])
            and _lead(packed, shape[:-1])
        ):
            self.sources[node] = packed
        if isinstance(value, SpectralScale):
            axis = _scale_axis(value.source, shape, value.columns) if value.axis is not None else None
            return None if axis is None else replace(value, node=node, axis=axis)
        if isinstance(value, ScaledVectors) and value == ScaledVectors(value.source):
            n = value.source.sizes[1]
            square = len(shape) >= 2 and same_size(shape[-1], n) and same_size(shape[-2], n)
            return value if square and _lead(value.source, shape[:-2]) else None
        return None

    def transpose(self, node: Apply) -> Any:
        value, perm = self.of(node.args[0]), node.attrs["perm"]
        if isinstance(value, ScaledVectors) and not value.flat and len(perm) >= 2:
            rank = len(perm)
            if tuple(perm) == (*range(rank - 2), rank - 1, rank - 2):
                return replace(value, turned=not value.turned)
        return value if isinstance(value, SpectralDiagonal) else None

    def where(self, node: Apply) -> Any:
        """A scale on the diagonal, and zeros elsewhere."""
        condition, x, zero = node.args
        value = self.of(x)
        if _is_zero(zero) and _is_diagonal(condition) and isinstance(value, SpectralScale) and value.axis in (-1, -2):
            return SpectralDiagonal((("mul", value),))
        return self.elementwise(node)

    def operand(self, source: Eigensystem, node: Node) -> SpectralScale | None:
        """A value as a scale, if it is one."""
        value = self.of(node)
        if isinstance(value, SpectralScale):
            return value if value.source == source else None
        if value is not None:
            return None
        single = _single(node)
        if isinstance(single.type, Scalar | Array) and _is_one_number(source, single):
            return SpectralScale(source, single, None)
        return None

    def elementwise(self, node: Apply) -> Any:
        values = [self.of(a) for a in node.args]
        known = next((v for v in values if v is not None), None)
        if known is None or not isinstance(node.type, Array):
            return None
        if isinstance(known, SpectralScale):
            scales = [self.operand(known.source, a) for a in node.args]
            axes = {(s.axis, s.columns) for s in scales if s is not None and s.axis is not None}
            if all(s is not None for s in scales) and len(axes) == 1:
                return SpectralScale(known.source, node, *axes.pop())
        return self.scaled(node)

    def scaled(self, node: Apply) -> Any:
        """A product or a quotient of which one operand is made of vectors."""
        name = node.fn.name
        if name == "add" and any(_is_zero(a) for a in node.args):
            kept = next((a for a in node.args if not _is_zero(a)), None)
            return self.of(kept) if kept is not None and kept.type.shape == node.type.shape else None
        if name == "neg":
            value = self.of(node.args[0])
            minus = (
                SpectralScale(value.source, Constant(-1.0, Scalar("float64", True)), None)
                if isinstance(value, ScaledVectors)
                else None
            )
            return None if minus is None else replace(value, scales=(*value.scales, ("mul", minus)))
        if name not in ("mul", "div"):
            return None
        for x, y in (node.args, node.args[::-1]):
            value = self.of(x)
            if name == "div" and x is not node.args[0] or x.type.shape != node.type.shape:
                continue
            if isinstance(value, ScaledVectors):
                other = self.of(y)
                if value.flat and isinstance(other, ScaledVectors) and other.flat and _alike(value, other):
                    return VectorSquares(value, other) if name == "mul" and len(x.type.shape) == 1 else None
                scale = self.operand(value.source, y)
                if scale is not None and self.is_along(value, scale):
                    return replace(value, scales=(*value.scales, (name, scale)))
            if isinstance(value, VectorSquares):
                scale = self.operand(value.one.source, y)
                if scale is not None and (scale.axis is None or self.is_along(value.one, scale)):
                    return replace(value, scales=(*value.scales, (name, scale)))
            if isinstance(value, SpectralDiagonal):
                scale = self.operand(value.scales[0][1].source, y)
                if scale is not None:
                    return SpectralDiagonal((*value.scales, (name, scale)))
        if name == "mul":
            for x, y in (node.args, node.args[::-1]):
                value = self.of(y)
                if _is_identity(x) and isinstance(value, SpectralScale) and value.axis in (-1, -2):
                    return SpectralDiagonal((("mul", value),))
        if name == "mul" and all(isinstance(self.of(a), ScaledVectors) for a in node.args):
            return None
        return None

    @staticmethod
    def is_along(value: ScaledVectors, scale: SpectralScale) -> bool:
        """Whether a scale multiplies the axis of the vectors."""
        if scale.axis is None:
            return True
        return scale.columns == value.columns and scale.axis == (-1 if value.flat or not value.turned else -2)

    def dot(self, node: Apply) -> Any:
        x, y = node.args
        left, right = self.of(x), self.of(y)
        if isinstance(left, ScaledVectors) and left.flat or isinstance(right, ScaledVectors) and right.flat:
            return None
        if len(x.type.shape) < 2 or len(y.type.shape) < 2:
            return None
        ta, tb = node.attrs["transpose_a"], node.attrs["transpose_b"]
        if isinstance(left, ScaledVectors) and ta:
            left = replace(left, turned=not left.turned)
        if isinstance(right, ScaledVectors) and tb:
            right = replace(right, turned=not right.turned)
        if isinstance(left, ScaledVectors) and isinstance(right, ScaledVectors):
            if not _alike(left, right) or left.turned or not right.turned:
                return None
            self.found.products[node] = (left, right)
            return None
        if isinstance(left, ScaledVectors):
            if isinstance(right, SpectralDiagonal) and _fits(right, left) and not left.turned:
                return replace(left, scales=(*left.scales, *right.scales))
            if left.turned and right is None:  # (L v s)^T y = (y^T L v s)^T
                return replace(left, left=((y, not tb), *left.left))
            return None
        if isinstance(right, ScaledVectors):
            if isinstance(left, SpectralDiagonal) and _fits(left, right) and right.turned:
                return replace(right, scales=(*right.scales, *left.scales))
            if not right.turned and left is None:
                return replace(right, left=((x, ta), *right.left))
        return None

    def matvec(self, node: Apply) -> Any:
        m, x = node.args
        left, right = self.of(m), self.of(x)
        if isinstance(left, SpectralDiagonal) and isinstance(right, ScaledVectors) and _fits(left, right):
            return replace(right, scales=(*right.scales, *left.scales)) if right.flat else None
        if not isinstance(left, ScaledVectors) or left.flat:
            return None
        if node.attrs["transpose"]:
            left = replace(left, turned=not left.turned)
        if left.turned:
            return replace(left, left=((x, False), *left.left), turned=False, flat=True) if right is None else None
        if isinstance(right, ScaledVectors) and right.flat and _alike(left, right):
            self.found.products[node] = (left, right)
        return None

    def reduce_sum(self, node: Apply) -> None:
        value = self.of(node.args[0])
        if isinstance(value, VectorSquares) and tuple(node.attrs["axes"]) == (0,) and not node.attrs["keepdims"]:
            self.found.products[node] = (replace(value.one, scales=(*value.one.scales, *value.scales)), value.other)


RULES: dict[str, Callable[[SpectralAnalysis, Apply], Any]] = {
    "eigh": SpectralAnalysis.eigh,
    "slice": SpectralAnalysis.slice,
    "reshape": SpectralAnalysis.reshape,
    "transpose": SpectralAnalysis.transpose,
    "where": SpectralAnalysis.where,
    "dot": SpectralAnalysis.dot,
    "batched_dot": SpectralAnalysis.dot,
    "matvec": SpectralAnalysis.matvec,
    "reduce_sum": SpectralAnalysis.reduce_sum,
}


def _alike(one: ScaledVectors, other: ScaledVectors) -> bool:
    """Whether they are of the same matrices and columns."""
    return one.source == other.source and one.columns == other.columns


def _fits(diagonal: SpectralDiagonal, vectors: ScaledVectors) -> bool:
    """Whether a diagonal matrix scales the columns."""
    return all(
        s.source == vectors.source and s.columns == vectors.columns for _, s in diagonal.scales if s.axis is not None
    )


def _is_zero(node: Any) -> bool:
    node = _single(node)
    return isinstance(node, Constant) and np.ndim(node.value) == 0 and bool(node.value == 0)


def _is_diagonal(node: Any) -> bool:
    """Whether a condition is true where the row is the column."""
    if isinstance(node, Constant):
        value = np.asarray(node.value)
        return value.ndim >= 2 and bool(np.all(value == np.eye(*value.shape[-2:], dtype=bool)))
    if applied(node) != "eq":
        return False
    shapes = []
    for side in node.args:
        inner = side.args[0] if applied(side) == "reshape" else side
        if applied(inner) != "iota" and not (
            isinstance(inner, Constant) and np.array_equal(inner.value, np.arange(np.size(inner.value)))
        ):
            return False
        shapes.append(side.type.shape)
    x, y = ((1,) * (2 - len(s)) + tuple(s) for s in shapes)
    return len(x) == len(y) == 2 and (x[1] == 1) != (y[1] == 1)


def _is_identity(node: Any) -> bool:
    if isinstance(node, Constant):
        value = np.asarray(node.value)
        return value.ndim == 2 and value.shape[0] == value.shape[1] and bool(np.all(value == np.eye(len(value))))
    if applied(node) == "cast":
        return _is_diagonal(node.args[0]) or _is_identity(node.args[0])
    if applied(node) == "where":
        one = _single(node.args[1])
        return (
            _is_diagonal(node.args[0]) and _is_zero(node.args[2]) and isinstance(one, Constant) and bool(one.value == 1)
        )
    return False


# What replaces a product.


class _ScaleGraph:
    """The function whose values a list of scales are, as a graph, and its parameters."""

    def __init__(
        self,
        analysis: SpectralAnalysis,
        source: Eigensystem,
        scales: Sequence[tuple[str, SpectralScale]],
        columns: tuple[int, int] | None,
    ):
        self.analysis, self.source = analysis, source
        b, n = source.sizes
        dtype = source.a.type.dtype
        self.graph = Graph("scale")
        self.builder = Builder(self.graph)
        self.w = self.graph.add_parameter("w", Array(dtype, (b, n)))
        self.params: list[Node] = []  # of the program
        self.memo: dict[Node, Node] = {}
        out: Node | None = None
        for name, scale in scales:
            x = self.converted(scale)
            if out is None:
                out = x if name == "mul" else self.builder.emit(REGISTRY["div"], (self.one(), x))
            else:
                out = self.builder.emit(REGISTRY[name], (out, x))
        value = Var(self.builder, out or self.one())
        self.ends: list[tuple[Node, int]] = []
        if columns is not None:
            value = self.between(value, *columns)
        if value.type.dtype != dtype:
            value = cast(value, dtype=dtype)
        self.graph.output = value.node if value.shape == (b, n) else full(value, shape=(b, n)).node
        drop_dead(self.graph)

    def one(self) -> Node:
        number = np.dtype(self.source.a.type.dtype).type(1)
        return self.builder.constant(number, Scalar(self.source.a.type.dtype))

    def between(self, value: Var, first: int, last: int) -> Var:
        """The value at eigenvalues of these columns, and 0 at others."""
        b, n = self.source.sizes
        kept = None
        for column, compare in ((first, "gt"), (last, "lt")):
            if column in (0, n):
                continue
            end = self.graph.add_parameter(f"end{column}", Array(self.w.type.dtype, (b, 1)))
            self.ends.append((end, column))
            side = REGISTRY[compare](Var(self.builder, self.w), Var(self.builder, end))
            kept = side if kept is None else REGISTRY["logical_and"](kept, side)
            defined = REGISTRY["eq"](Var(self.builder, end), Var(self.builder, end))
            undefined = REGISTRY["exp"](Var(self.builder, self.w)) * value.const(np.nan)  # with all derivatives
            value = REGISTRY["where"](defined, value, undefined)
            kept = REGISTRY["logical_or"](kept, REGISTRY["logical_not"](defined))
        return value if kept is None else REGISTRY["where"](kept, value, value.const(0))

    def converted(self, scale: SpectralScale) -> Node:
        """The value of a scale in the graph.

        It is found without recursion: programs are long.
        """
        if scale.axis is None:
            return self.parameter(scale.node)
        stack: list[Any] = [scale.node]
        while stack:
            node = stack[-1]
            if node in self.memo:
                stack.pop()
                continue
            if applied(node) == "slice" and node.args[0] in self.analysis.sources:
                self.memo[node] = self.w
            elif applied(node) in ("reshape", "slice"):
                inner = node.args[0]
                if inner in self.memo:
                    self.memo[node] = self.memo[inner]
                else:
                    stack.append(inner)
            else:
                operands: list[Any] = [self.analysis.operand(self.source, a) for a in node.args]
                missing = [s.node for s in operands if s.axis is not None and s.node not in self.memo]
                if missing:
                    stack.extend(missing)
                    continue
                args = [self.memo[s.node] if s.axis is not None else self.parameter(s.node) for s in operands]
                self.builder.origin = node.origin
                self.memo[node] = self.builder.emit(node.fn, args, node.attrs)
        return self.memo[scale.node]

    def parameter(self, node: Node) -> Node:
        """A number, or one for each matrix, as a parameter."""
        if isinstance(node, Constant) and np.ndim(node.value) == 0:
            return node
        if node not in self.memo:
            t = node.type
            one = isinstance(t, Scalar) or all(d == 1 for d in t.shape)
            own = t if isinstance(t, Scalar) else Array(t.dtype, () if one else (self.source.sizes[0], 1))
            self.memo[node] = self.graph.add_parameter(f"p{len(self.params)}", own)
            self.params.append(node)
        return self.memo[node]

    def arguments(self, b: Builder, env: Env) -> list[Var]:
        """The parameters, in the new program."""
        out, params = [], iter(self.params)
        ends = dict(self.ends)
        for own in self.graph.params[1:]:
            if own in ends:
                out.append(self.end(Var(b, lookup(env, self.source.a)), ends[own]))
                continue
            x = Var(b, lookup(env, next(params)))
            out.append(x if x.type == own.type else reshape(x, shape=own.type.shape))
        return out

    def end(self, a: Var, column: int) -> Var:
        """The middle between the eigenvalues of a column and the one before; NaN where they are equal but for rounding."""
        size, n = self.source.sizes
        a = REGISTRY["stop_gradient"](a)
        (w,) = parts(REGISTRY["eigh"](a, lower=self.source.lower, vectors=False), (n,))
        below, above = (
            REGISTRY["slice"](w, starts=(0, k), sizes=(size, 1), steps=(1, 1)) for k in (column - 1, column)
        )
        greatest = REGISTRY["reduce_max"](REGISTRY["abs"](w), axes=(1,), keepdims=True)
        tied = REGISTRY["le"](above - below, greatest * rounding(w))
        return REGISTRY["where"](tied, w.const(np.nan), (below + above) * w.const(0.5))


def _stacked(x: Var, source: Eigensystem, turned: bool) -> Var:
    """A factor as a stack of matrices; a vector as one row."""
    if len(x.shape) == 1:
        x = reshape(x, shape=(1, *x.shape))
    *lead, m, n = x.shape
    b = source.sizes[0]
    if len(x.shape) == 2:
        x = reshape(x, shape=(1, m, n))
        x = x if b == 1 else broadcast_to(x, shape=(b, m, n))
    else:
        x = reshape(x, shape=(product(tuple(lead)), m, n))
    return REGISTRY["transpose"](x, perm=(0, 2, 1)) if turned else x


def _replacement(analysis: SpectralAnalysis, node: Apply, left: ScaledVectors, right: ScaledVectors):
    """What emits L1 F L2^T."""
    source = left.source
    function = _ScaleGraph(analysis, source, (*left.scales, *right.scales), left.columns)

    def emit(b: Builder, env: Env) -> Node:
        out = applied_to(Var(b, lookup(env, source.a)), [], function.arguments(b, env), function.graph, source.lower)
        for factor, turned in reversed(left.left):
            out = mm(_stacked(Var(b, lookup(env, factor)), source, turned), out)
        for factor, turned in reversed(right.left):
            out = mm(out, _stacked(Var(b, lookup(env, factor)), source, turned), tb=True)
        if isinstance(node.type, Array):
            return reshape(out, shape=node.type.shape).node
        return REGISTRY["as_scalar"](reshape(out, shape=())).node

    return emit


class _Recognise(Rewriter):
    acts_on = ("eigh",)

    def build(self, graph: Graph) -> Graph:
        analysis = SpectralAnalysis(graph)
        products = analysis.found.products
        if not products:
            return super().build(graph)
        self.changed = True
        instead = {node: _replacement(analysis, node, *pair) for node, pair in products.items()}
        return self.rebuilt(graph, instead)


class _WithoutCalls(Rewriter):
    """Inlines calls of functions that hold an `eigh`: what is made of its results may be in the caller or in another call."""

    def __init__(self):
        super().__init__()
        self.recursion = RecursiveComponents()

    def node(self, builder: Builder, node: Apply, args: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        fn = node.fn
        stays = not isinstance(fn, Graph) or fn.flags.get("noinline") or self.recursion.component(fn) is not None
        if stays or not _holds_eigh(fn):
            return super().node(builder, node, args, attrs)
        self.changed = True
        return inline(builder, self.rewrite(fn), args, node.origin)


def _holds_eigh(graph: Graph) -> bool:
    return any(applied(node) == "eigh" for g in all_graphs(graph) for node in g.nodes)


def with_matrix_functions(graph: Graph) -> Graph:
    """The graph with functions of symmetric matrices as `matrix_function`.

    Args:
        graph: typed, closed, transforms expanded; it is to be differentiated.
    """
    if not _holds_eigh(graph):
        return graph
    return _Recognise().rewrite(_WithoutCalls().rewrite(graph))
