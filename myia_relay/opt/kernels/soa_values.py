"""The numbers of one row: the computation of an array program along one axis, as a graph of numbers.

Every array becomes an array of nodes with one position along the rows' axis, and NumPy itself does what only moves
numbers: slices, transposes, concatenation, broadcasting. Computations are emitted number by number through the
simplifier, so zeros and ones from a derivative's seed are folded, and common parts are computed once. Parts of arrays
in memory stay positions (`Lazy`) until one of their numbers is needed.

Input: `RowValues` of a graph, and a builder for the numbers. Output: `Scope.value(node)`. Used by
`opt.kernels.soa_kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import Array, Scalar, Type, is_static_shape, tuple_of
from ...ir.axes import relation_of
from ...ir.build import as_type
from ...ir.node import Apply, Constant, Graph, Node, Parameter
from ...ir.prim import REGISTRY
from ...ir.rewrite import Effects
from ..analysis.control import iterations, returned_parts
from ..analysis.row_axes import REDUCTIONS, RowValues, reduced
from ..rewrite.algebra import FINAL
from ..rewrite.control import pack
from ..rewrite.rules import is_filled
from ..rewrite.simplify import Simplifier

INT = Scalar("int64", True)
FOLD = 4096  # elements of a constant that is computed at compile time


@dataclass
class Lazy:
    """Numbers in memory: the element at `base + offset` of an array for each offset.

    Attributes:
        array: a node from outside.
        base: an integer node; None for 0.
        offsets: in the shape of the row.
        constant: all elements, where they are known.
    """

    array: Node
    base: Node | None
    offsets: np.ndarray
    constant: np.ndarray | None = None

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> Lazy:
        """The same numbers in another order."""
        return Lazy(self.array, self.base, move(self.offsets), self.constant)

    def shifted(self, frame: ScalarFrame, index: Node, step: int, offsets: np.ndarray) -> Lazy:
        """Other numbers, at a distance of `index * step`."""
        shift = frame.times(index, step)
        base = shift if self.base is None else frame.emit("add", [self.base, shift])
        return Lazy(self.array, base, offsets, self.constant)


class ScalarFrame:
    """A graph of numbers under construction: that of a row, or of a loop's body inside.

    Args:
        graph: what grows.
        parent: the frame around it.

    Attributes:
        imports: nodes of the parent that became parameters.
        bounds: what is known of integers: the least and the greatest value.
    """

    def __init__(self, graph: Graph, parent: ScalarFrame | None = None, effects: Effects | None = None):
        self.graph, self.parent = graph, parent
        self.effects = effects or Effects()
        self.b = Simplifier(graph, FINAL, self.effects)
        self.imports: dict[Node, Node] = {}
        self.bounds: dict[Node, tuple[int, int]] = {}

    def bring(self, node: Node) -> Node:
        """A node of this frame, or of an enclosing one, as a node of this frame."""
        if not isinstance(node, Apply | Parameter) or node.graph is self.graph:
            return node
        if node not in self.imports:
            self.imports[node] = self.graph.add_parameter(f"c{len(self.imports)}", node.type)
        return self.imports[node]

    def outside(self) -> list[Node]:
        """The arguments for the imports, in the parent."""
        parent = self.parent
        assert parent is not None
        return [parent.bring(node) for node in self.imports]

    def emit(self, name: str, args: list[Node], attrs: dict[str, Any] | None = None, type: Type | None = None) -> Node:
        """An application to nodes of this frame or of enclosing ones."""
        return self.b.emit(REGISTRY[name], tuple(self.bring(a) for a in args), attrs, type)

    def add(self, a: Node | None, offset: int) -> Node:
        """An index and a number."""
        if a is None:
            return self.b.constant(offset)
        return a if offset == 0 else self.emit("add", [a, self.b.constant(offset)])

    def times(self, a: Node, factor: int) -> Node:
        """An index times a number."""
        return a if factor == 1 else self.emit("mul", [a, self.b.constant(factor)])

    def within(self, i: Node, size: int) -> Node:
        """An index, clamped into range unless it is known to be in range."""
        low, high = self.bounds.get(i, (-1, size))
        if isinstance(i, Constant):
            return self.b.constant(min(max(int(i.value), 0), size - 1))
        if low < 0:
            i = self.emit("maximum", [i, self.b.constant(0)])
        return self.emit("minimum", [i, self.b.constant(size - 1)]) if high >= size else i


class RowScope:
    """The values of a graph's nodes at one row.

    Args:
        rows: of the graph.
        row: the row's number, a node.
        frame: where numbers are computed.
        inside: whether an application is to be computed here, rather than read from memory.
        operand: the parameter that stands for a node from outside.
        together: arrays that lie in memory row by row, whatever their shapes.
    """

    def __init__(
        self,
        rows: RowValues,
        row: Node,
        frame: ScalarFrame,
        inside: Callable[[Node], bool],
        operand: Callable[[Node], Node],
        together: Container[Node] = (),
    ):
        self.rows, self.row, self.frame = rows, row, frame
        self.inside, self.operand, self.together = inside, operand, together
        self.memo: dict[Node, Any] = {}
        self.scopes: dict[tuple[int, Node], RowScope] = {}
        self.constants: dict[Node, np.ndarray | None] = {}

    def value(self, node: Node) -> Any:
        """The numbers of a node at the row: a node, or an array of nodes (perhaps `Lazy`)."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self.memo:
                stack.pop()
                continue
            if not isinstance(top, Apply) or not self.inside(top):
                self.memo[top] = self.boundary(top)
                continue
            missing = [a for a in self.needed(top) if a not in self.memo]
            if missing:
                stack += missing
                continue
            self.frame.b.origin = top.origin
            self.memo[top] = self.compute(top)
        return self.memo[node]

    def needed(self, node: Apply) -> tuple[Node, ...]:
        """The arguments whose values are computed in this scope."""
        if node.fn.name == "take" and (node in self.rows.through or not self.is_inside(node.args[0])):
            return node.args[1:]
        return () if begins_further_down(self.rows, node) else node.args

    def is_inside(self, node: Node) -> bool:
        """Whether a node is an application that is computed here."""
        return node in self.memo or (isinstance(node, Apply) and self.inside(node))

    def compute(self, node: Apply) -> Any:
        """The value of an application of which those of the arguments are known."""
        rule = VALUE.get(node.fn.name, _elementwise)
        return rule(self, node, [self.memo.get(a) for a in node.args])

    # --- from outside -----------------------------------------------------------------------------------------------

    def boundary(self, node: Node) -> Any:
        """A value that is not computed here."""
        t = node.type
        if isinstance(t, Scalar) or t.shape == ():
            return known_scalar(self.frame, node) if isinstance(node, Constant) else self.operand(node)
        constant, place = constant_of(node, self.constants), self.rows.where(node)
        shape = reduced(t.shape, place)
        flat = None if constant is None else constant.reshape(-1)
        if flat is not None and flat.size and is_filled(flat):
            return full(shape, self.frame.b.constant(flat[0]))
        if place is None:
            return Lazy(node, None, np.arange(math.prod(shape)).reshape(shape), flat)
        outer, step = math.prod(t.shape[: place.axis]), math.prod(t.shape[place.axis + 1 :])
        starts = np.arange(outer * place.pre)[:, None] * (self.rows.n * place.post) + np.arange(place.post)
        offsets = starts.reshape(-1, 1) * step + np.arange(step)
        return Lazy(node, self.frame.times(self.row, place.post * step), offsets.reshape(shape), flat)

    def boundary_row(self, node: Node, axis: int, row: Node) -> Lazy:
        """The contents of an array in memory at a position of an axis."""
        outer, step = math.prod(node.type.shape[:axis]), math.prod(node.type.shape[axis + 1 :])
        if node in self.together:
            width, shape = outer * step, (*node.type.shape[:axis], *node.type.shape[axis + 1 :])
            return Lazy(node, None, np.arange(width), None).shifted(
                self.frame, row, width, np.arange(width).reshape(shape)
            )
        offsets = np.arange(outer)[:, None] * (node.type.shape[axis] * step) + np.arange(step)
        shape = (*node.type.shape[:axis], *node.type.shape[axis + 1 :])
        return Lazy(node, None, offsets, None).shifted(self.frame, row, step, offsets.reshape(shape))

    # --- numbers ----------------------------------------------------------------------------------------------------

    def numbers(self, value: Any) -> np.ndarray:
        """An array of nodes."""
        if isinstance(value, Lazy):
            flat = [self.element(value, int(k)) for k in value.offsets.reshape(-1)]
            return array_of(flat, value.offsets.shape)
        return value if isinstance(value, np.ndarray) else array_of([value], ())

    def element(self, x: Lazy, offset: int) -> Node:
        """One number of memory."""
        if x.constant is not None and x.base is None:
            return self.frame.b.constant(x.constant[offset])
        memory, dtype = self.operand(x.array), x.array.type.dtype
        return self.frame.emit("dynamic_index", [memory, self.frame.add(x.base, offset)], {"axis": 0}, Scalar(dtype))

    def shape(self, node: Node) -> tuple[int, ...]:
        """Of a node's row."""
        return reduced(node.type.shape, self.rows.where(node))

    def apply(self, name: str, args: list[Node], attrs: dict[str, Any] | None, dtype: str) -> Node:
        """A number computed from numbers."""
        return self.frame.emit(name, args, attrs, Scalar(dtype))

    def at(self, rows: RowValues, row: Node) -> RowScope:
        """The same graph at a row of another extent."""
        key = (rows.n, row)
        if key not in self.scopes:

            def inside(node: Node) -> bool:
                return node in rows.place or node in rows.loops

            self.scopes[key] = scope = RowScope(rows, row, self.frame, inside, self.operand, self.together)
            scope.constants = self.constants
        return self.scopes[key]


def full(shape: tuple[int, ...], node: Node) -> np.ndarray:
    """An array of one node."""
    return array_of([node] * math.prod(shape), shape)


def array_of(nodes: Sequence[Node], shape: tuple[int, ...]) -> np.ndarray:
    """An array of nodes."""
    out = np.empty(len(nodes), object)
    out[:] = nodes
    return out.reshape(shape)


def known_scalar(frame: ScalarFrame, node: Constant) -> Constant:
    """A constant, that of an array as a number of NumPy's."""
    if isinstance(node.type, Scalar):
        return node
    return frame.b.constant(np.asarray(node.value).astype(node.type.dtype)[()])


def constant_of(node: Node, known: dict[Node, np.ndarray | None]) -> np.ndarray | None:
    """An array that is known at compile time, or follows from such; None for all others, and for large ones.

    Args:
        known: what has been found of other nodes, to which this adds: values are shared, and looked at once.
    """
    stack = [node]
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
        elif isinstance(top, Constant):
            known[top] = np.asarray(top.value)
        elif not _may_be_folded(top) or any(a in known and known[a] is None for a in top.args):
            known[top] = None
        elif missing := [a for a in top.args if a not in known]:
            stack += missing
        else:
            with np.errstate(all="ignore"):
                value = top.fn.reference(*[known[a] for a in top.args], **top.attrs)
            known[top] = np.asarray(as_type(value, top.type))
    return known[node]


def _may_be_folded(node: Node) -> TypeGuard[Apply]:
    """Whether an array is computed at compile time if everything that it is computed from is known."""
    if not isinstance(node, Apply) or not isinstance(node.type, Array) or not is_static_shape(node.type):
        return False
    foldable = getattr(node.fn, "reference", None) is not None and node.fn.kind in ("elementwise", "injective")
    return foldable and known_size(node.type.size) <= FOLD


# --- rules ----------------------------------------------------------------------------------------------------------------


def _elementwise(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    if node.fn.name == "stop_gradient":
        return args[0]
    arrays = [scope.numbers(a) for a in args]
    t = node.type
    attrs = {k: v for k, v in node.attrs.items() if k != "weak"}
    if not isinstance(t, Array) or t.shape == ():
        return scope.frame.emit(node.fn.name, [a.item() for a in arrays], dict(node.attrs), t)
    shape = scope.shape(node)
    each = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
    return array_of([scope.apply(node.fn.name, list(row), attrs, t.dtype) for row in zip(*each)], shape)


def _view(move: Callable[[RowScope, Apply], Callable[[np.ndarray], np.ndarray]]) -> Callable:
    """A rule that moves numbers."""

    def rule(scope: RowScope, node: Apply, args: list[Any]) -> Any:
        x, change = args[0], move(scope, node)
        return x.moved(change) if isinstance(x, Lazy) else change(scope.numbers(x))

    return rule


def _slice(scope: RowScope, node: Apply) -> Callable[[np.ndarray], np.ndarray]:
    attrs, place = node.attrs, scope.rows.where(node.args[0])
    ends = [a + n * s for a, n, s in zip(attrs["starts"], attrs["sizes"], attrs["steps"])]
    parts = [slice(a, end if end >= 0 else None, s) for a, end, s in zip(attrs["starts"], ends, attrs["steps"])]
    if place is not None:
        parts[place.axis] = slice(None)
    return lambda x: x[tuple(parts)]


def begins_further_down(rows: RowValues, node: Apply) -> bool:
    """Whether an application takes its rows from a later position of a longer array."""
    return node.fn.name == "slice" and node in rows.place and rows.where(node.args[0]) is None


def _further_down(scope: RowScope, node: Apply) -> Lazy:
    """Rows of a longer array, from some row on."""
    (x,), place, shape = node.args, scope.rows.place[node], node.args[0].type.shape
    offsets, strides = np.zeros(scope.shape(node), np.int64), [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    for k, (start, step) in enumerate(zip(node.attrs["starts"], node.attrs["steps"], strict=True)):
        along = [1] * len(shape)
        along[k] = offsets.shape[k]
        offsets += ((start + np.arange(offsets.shape[k]) * step) * strides[k]).reshape(along)
    return Lazy(x, scope.frame.times(scope.row, strides[place.axis] * node.attrs["steps"][place.axis]), offsets)


def _pad(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    x, fill = scope.numbers(args[0]), scope.numbers(args[1]).item()
    out = full(scope.shape(node), fill)
    out[tuple(slice(low, low + n) for low, n in zip(node.attrs["low"], x.shape))] = x
    return out


def _concatenate(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    return np.concatenate([scope.numbers(a) for a in args], axis=node.attrs["axis"])


def _reduce(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    x, axes = scope.numbers(args[0]), tuple(node.attrs["axes"])
    kept = [k for k in range(x.ndim) if k not in axes]
    rows = x.transpose(*kept, *axes).reshape(math.prod(x.shape[k] for k in kept), -1)
    relation, out = relation_of(node), []
    assert relation is not None and relation.combine is not None
    for row in rows:
        out.append(_total(scope, node, relation.combine, list(row)))
    return array_of(out, scope.shape(node))


def _total(scope: RowScope, node: Apply, name: str, numbers: list[Node]) -> Node:
    """The sum of the numbers of a row. It starts at 0, so that a sum of -0.0 is 0.0; tangents do not need that."""
    if name == "add" and node.origin.made_by not in ("jvp", "vjp"):
        numbers.insert(0, scope.frame.b.constant(np.zeros((), node.type.dtype)[()]))
    total = numbers[0]
    for number in numbers[1:]:
        total = scope.apply(name, [total, number], None, node.type.dtype)
    return total


def _dot(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    a, b = (scope.numbers(x) for x in args)
    a, b = a.T if node.attrs["transpose_a"] else a, b.T if node.attrs["transpose_b"] else b
    dtype, out = node.type.dtype, []
    for row in a:
        for column in b.T:
            products = [scope.apply("mul", [x, y], None, dtype) for x, y in zip(row, column)]
            out.append(_total(scope, node, "add", products))
    return array_of(out, (len(a), b.shape[1]))


def _dynamic_index(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    x, i = args
    axis, size = node.attrs["axis"], node.args[0].type.shape[node.attrs["axis"]]
    index = scope.frame.within(i, size)
    if isinstance(index, Constant) or not isinstance(x, Lazy):  # of what is not in memory all numbers are the same
        at = (slice(None),) * axis + (int(getattr(index, "value", 0)), ...)  # with an ellipsis it stays an array
        picked = x.moved(lambda o: o[at]) if isinstance(x, Lazy) else x[at]
    else:
        step = int((x.offsets.take(1, axis) - x.offsets.take(0, axis)).flat[0]) if size > 1 else 0
        picked = x.shifted(scope.frame, index, step, x.offsets.take(0, axis))
    if isinstance(node.type, Array) and node.type.shape:
        return picked
    return scope.numbers(picked)[()] if isinstance(picked, Lazy) else picked[()]


def _take(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    x, indices = node.args
    axis, size = node.attrs["axis"], x.type.shape[node.attrs["axis"]]
    parts = []
    numbers = scope.numbers(args[1])
    for index in numbers.reshape(-1):
        row = scope.frame.within(scope.frame.bring(index), size)
        if node in scope.rows.through:
            part = scope.at(scope.rows.through[node], row).value(x)
            part = part.moved(lambda o: o.squeeze(axis)) if isinstance(part, Lazy) else part.squeeze(axis)
        else:
            part = scope.boundary_row(x, axis, row)
        parts.append(part)
    shape = (*x.type.shape[:axis], *numbers.shape, *x.type.shape[axis + 1 :])
    if len(parts) == 1:
        return parts[0].moved(lambda o: o.reshape(shape)) if isinstance(parts[0], Lazy) else parts[0].reshape(shape)
    stacked = np.stack([scope.numbers(p) for p in parts], axis)
    return stacked.reshape(shape)


def _for_loop(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    body, carried = node.attrs["body"], node.attrs["carried"]
    span = iterations(node)
    assert span is not None
    initial = [scope.numbers(a) for a in args[3 : 3 + carried]]
    graph = Graph(body.name, None, body.origin)
    frame = ScalarFrame(graph, scope.frame, scope.frame.effects)
    index = graph.add_parameter("i", INT)
    if span:
        frame.bounds[index] = (min(span), max(span))
    state = []
    for value, param in zip(initial, body.params[1:]):
        cells = [graph.add_parameter(param.name or "x", Scalar(param.type.dtype)) for _ in range(value.size)]
        state.append(array_of(cells, value.shape))
    inner = RowScope(scope.rows.loops[node], scope.row, frame, lambda n: True, scope.operand, scope.together)
    inner.memo[body.params[0]] = index
    inner.memo.update(zip(body.params[1 : 1 + carried], state))
    inner.memo.update(zip(body.params[1 + carried :], args[3 + carried :]))
    short = [(v, v.shape[-1] if v.ndim > 1 else 1) for v in initial if v.size]
    # The carried numbers of a short axis are skipped together: see `zero_blocks`.
    graph.flags["groups"] = [width for v, width in short for _ in range(v.size // width)]
    results = [inner.numbers(inner.value(part)) for part in returned_parts(body)]
    frame.b.origin = node.origin
    graph.output = pack(frame.b, [frame.bring(x) for r in results for x in r.reshape(-1)])
    flat = [x for value in initial for x in value.reshape(-1)]
    bounds = [scope.frame.b.constant(k) for k in (span.start, span.stop, span.step)]
    operands = [*bounds, *flat, *frame.outside()]
    loop = scope.frame.emit(
        "for_loop", operands, {"body": graph, "carried": len(flat)}, tuple_of(*[x.type for x in graph.output.args])
    )
    parts = iter([scope.frame.emit("get_item", [loop], {"index": k}) for k in range(len(flat))])
    return [array_of([next(parts) for _ in range(v.size)], v.shape) for v in initial]


def _get_item(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    return args[0][node.attrs["index"]]


def _slice_rule(scope: RowScope, node: Apply, args: list[Any]) -> Any:
    return _further_down(scope, node) if begins_further_down(scope.rows, node) else _view(_slice)(scope, node, args)


VALUE: dict[str, Callable[[RowScope, Apply, list[Any]], Any]] = {
    "broadcast_to": lambda scope, node, args: _broadcast(scope, node, args[0]),
    "reshape": _view(lambda scope, node: lambda x: x.reshape(scope.shape(node))),
    "transpose": _view(lambda scope, node: lambda x: x.transpose(node.attrs["perm"])),
    "slice": _slice_rule,
    "pad": _pad,
    "concatenate": _concatenate,
    **dict.fromkeys(REDUCTIONS, _reduce),
    "dot": _dot,
    "dynamic_index": _dynamic_index,
    "take": _take,
    "for_loop": _for_loop,
    "get_item": _get_item,
}


def _broadcast(scope: RowScope, node: Apply, x: Any) -> Any:
    shape = scope.shape(node)
    if isinstance(x, Lazy):
        return x.moved(lambda o: np.broadcast_to(o, shape))
    return np.broadcast_to(scope.numbers(x), shape)


__all__ = ["Lazy", "RowScope", "ScalarFrame"]
