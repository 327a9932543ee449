"""The simulated graph in integers.

    simulated_quantize(x, s)           =>  round_saturated(x * (1 / s)): multiples of s as integers of 8 or 16 bits
    conv2d(q(x) / s, q(w) / t)         =>  conv2d_integer(x, w): the same sums, in int32

All else is as in the simulated graph, in float32: sums are scaled, biases and residuals added. So both graphs round the same
numbers. The fusion of the native executor computes all of that on a tile of sums in registers.

Input: the simulated graph, exact, and values of its arrays. Output: a typed graph of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..abstract.types import numpy_dtype
from ..ir.build import Builder
from ..ir.node import Apply, Constant, Graph, Node, applied
from ..ir.prim import REGISTRY
from ..ir.rewrite import emit_like
from ..prims.ops.nn import with_gaps
from ..utils.errors import InternalError
from .annotation import KEEP, RULES
from .graphs import constant_of, evaluated, static_nodes
from .scales import DATA_BITS, WEIGHT_BITS, Grid

CONTRACTIONS = ("conv2d", "dot", "matvec")


@dataclass
class Multiples:
    """A value that is an integer array times a scale.

    Attributes:
        node: the integers.
        grid: the scale.
    """

    node: Node
    grid: Grid


@dataclass
class Steps:
    """The integers of such a value, in place of floats that are as large."""

    node: Node


Value = Node | Multiples | Steps


def realise(graph: Graph, count: int, arrays: Sequence[np.ndarray]) -> Graph:
    """The integer graph of the inputs.

    Args:
        graph: a simulated one, exact.
        count: of the inputs.
        arrays: values of the others of its parameters.
    """
    return _Realisation(graph, count, arrays).run()


class _Realisation:
    def __init__(self, graph: Graph, count: int, arrays: Sequence[np.ndarray]):
        self.graph, self.new = graph, Graph(graph.name, None, graph.origin)
        self.b = Builder(self.new, graph.origin)
        self.static = static_nodes(graph, count)
        self.env: dict[Node, Any] = {p: self.new.add_parameter(p.name, p.type, p.origin) for p in graph.params[:count]}
        self.env |= {p: constant_of(a, p.type) for p, a in zip(graph.params[count:], arrays, strict=True)}

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self.b.origin = node.origin
            self.env[node] = self.value(node)
        self.new.output = self.plain(self.graph.output)
        return self.new

    def of(self, node: Node) -> Value:
        return self.env.get(node, node)

    def emit(self, name: str, *args: Node, **attrs: Any) -> Node:
        return self.b.emit(REGISTRY[name], args, attrs)

    def value(self, node: Apply) -> Value:
        name = applied(node)
        args: list[Any] = [self.of(a) for a in node.args]
        if name == "simulated_quantize":
            return self.rounded(node, args[0])
        if name == "cast" and isinstance(args[0], Multiples) and node.type.dtype == "float64":
            return args[0]
        if name == "cast" and isinstance(args[0], Steps):
            return self.emit("cast", args[0].node, dtype=node.type.dtype)
        if name == "div" and isinstance(args[0], Multiples) and isinstance(args[1], Constant):
            if np.array_equal(np.asarray(args[1].value, np.float64), args[0].grid.scale):
                return Steps(args[0].node)
        if node in self.static:
            return constant_of(evaluated(node, [self.constant(a) for a in args]), node.type)
        if name in CONTRACTIONS and all(isinstance(a, Steps) for a in args):
            return self.contraction(node, *args)
        if args and isinstance(args[0], Multiples) and name in RULES and RULES[name](node, 0) == KEEP:
            return self.kept(node, args[0])
        return emit_like(self.b, node, [self.plain(a) for a in node.args])

    def constant(self, value: Value) -> Constant:
        """A value that is known.

        Raises:
            InternalError: it is not.
        """
        if isinstance(value, Multiples) and isinstance(value.node, Constant):
            return constant_of(value.node.value * value.grid.scale)
        if not isinstance(value, Constant):
            raise InternalError("quantize", "a value is known that is computed from one that is not")
        return value

    def plain(self, node: Node) -> Node:
        """A value as the simulated graph has it, in floats."""
        value = self.of(node)
        if isinstance(value, Multiples):
            scale = constant_of(value.grid.scale.astype(numpy_dtype(node.type.dtype)))
            return self.emit("mul", self.emit("cast", value.node, dtype=node.type.dtype), scale)
        if isinstance(value, Steps):
            return self.emit("cast", value.node, dtype=node.type.dtype)
        return value

    def rounded(self, node: Apply, value: Any) -> Value:
        low, high = node.attrs["low"], node.attrs["high"]
        scale = np.asarray(self.constant(self.of(node.args[1])).value)
        known = isinstance(value, Constant)
        mantissa, exponent = _parts(scale.astype(np.float64), WEIGHT_BITS if known else DATA_BITS)
        grid = Grid(mantissa, exponent, low, high)
        if isinstance(value, Constant):
            steps = REGISTRY["simulated_quantize"].reference(value.value, scale, low=low, high=high) / grid.scale
            return Multiples(constant_of(steps.astype(grid.dtype)), grid)
        x = self.plain(node.args[0])
        each = self.emit("mul", x, constant_of(scale.dtype.type(1) / scale))
        return Multiples(self.emit("round_saturated", each, zero=0, low=low, high=high, dtype=grid.dtype), grid)

    def kept(self, node: Apply, value: Multiples) -> Value:
        """A value that has no others than its operand has."""
        integers, dtype = value.node, value.node.type.dtype
        if node.fn.name == "max_pool":  # of floats alone, which hold these exactly
            integers = self.emit("cast", integers, dtype="float32")
        rest = tuple(self.plain(a) for a in node.args[1:])
        result = self.b.emit(node.fn, (integers, *rest), node.attrs)
        if result.type.dtype != dtype:
            result = self.emit("cast", result, dtype=dtype)
        return Multiples(result, value.grid)

    def contraction(self, node: Apply, *args: Steps) -> Steps:
        """A sum of products, in int32."""
        name, attrs = node.fn.name, node.attrs
        if name == "conv2d":
            filters, rest = with_gaps(self.b.var(args[1].node), attrs)
            return Steps(self.emit("conv2d_integer", args[0].node, filters.node, **rest))
        x, w = (a.node for a in (args if name == "dot" else args[::-1]))
        assert isinstance(w, Constant)
        rows = attrs["transpose_b"] if name == "dot" else not attrs["transpose"]
        weights = constant_of(np.ascontiguousarray(w.value if rows else w.value.T))
        data = x if name == "dot" else self.emit("reshape", x, shape=(1, *x.type.shape))
        total = self.emit("dot_integer", data, weights)
        return Steps(self.emit("reshape", total, shape=node.type.shape) if name == "matvec" else total)


def _parts(scale: np.ndarray, bits: int) -> tuple[np.ndarray, int]:
    """(mantissas, exponent) of scales that have mantissas of so many bits."""
    fraction, power = np.frexp(scale)
    exponent = int((bits - power).max())
    return np.ldexp(scale, exponent).astype(np.int64), exponent


__all__ = ["realise"]
