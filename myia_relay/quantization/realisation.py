"""The simulated graph in integers.

    simulated_quantize(x, s)          =>  quantize_linear(x, s): multiples of s as integers of 8 or 16 bits
    conv2d(q(x), q(w))                =>  conv2d_integer(x / s, w / t): sums in int32, times the integer of s * t
    simulated_quantize(sums, s)       =>  requantize(sums): an integer product, a shift, a clip, a cast

Scales are `mantissa * 2**-exponent`. A sum of products of multiples is an integer times the product of the mantissas, a multiple of
a power of two. What is added is brought to the same power by a shift. So int64 holds exactly what float64 holds in the simulated
graph, and both round the same numbers. The fusion of the native executor computes all of that on a tile of sums in registers.

Input: the simulated graph, in float64, and values of its arrays. Output: a typed graph of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..abstract.types import numpy_dtype
from ..ir.build import Builder, Var
from ..ir.node import Apply, Constant, Graph, Node, applied
from ..ir.prim import REGISTRY
from ..ir.rewrite import emit_like
from ..utils.errors import InternalError
from .annotation import KEEP, RULES
from .graphs import constant_of, evaluated, static_nodes
from .scales import DATA_BITS, WEIGHT_BITS, Grid

CONTRACTIONS = ("conv2d", "dot", "matvec")
SUMS = ("add", "sub", "neg", "maximum", "minimum")


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
class Sums:
    """A value that is an int64 array times 2**-exponent."""

    node: Node
    exponent: int


Value = Node | Multiples | Sums


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
        if name == "cast" and isinstance(args[0], Multiples) and node.type.dtype in ("float32", "float64"):
            return args[0]
        if name == "cast" and isinstance(args[0], Sums) and node.type.dtype == "float64":
            return args[0]
        if node in self.static:
            return constant_of(evaluated(node, [self.constant(a) for a in args]), node.type)
        if name in CONTRACTIONS and all(isinstance(a, Multiples) for a in args):
            return self.contraction(node, *args)
        if name in SUMS and node.type.dtype == "float64" and any(isinstance(a, Sums | Multiples) for a in args):
            found = self.sums(node, args)
            if found is not None:
                return found
        if args and isinstance(args[0], Sums | Multiples) and name in RULES and RULES[name](node, 0) == KEEP:
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
        if isinstance(value, Sums):
            wide = self.emit("cast", value.node, dtype="float64")
            value = self.emit("mul", wide, constant_of(np.asarray(np.ldexp(1.0, -value.exponent))))
            return value if node.type.dtype == "float64" else self.emit("cast", value, dtype=node.type.dtype)
        return value

    def rounded(self, node: Apply, value: Any) -> Value:
        low, high = node.attrs["low"], node.attrs["high"]
        scale = self.constant(self.of(node.args[1]))
        wide = np.asarray(scale.value, np.float64)
        if isinstance(value, Constant):
            if high - low > 1 << 16:  # what is added to sums: a multiple of a power of two
                return constant_of(evaluated(node, [value, scale]), node.type)
            mantissa, exponent = _parts(wide, WEIGHT_BITS)
            grid = Grid(mantissa, exponent, low, high)
            return Multiples(constant_of(grid.steps(value.value).astype(grid.dtype)), grid)
        mantissa, exponent = _parts(wide, DATA_BITS)
        grid = Grid(mantissa, exponent, low, high)
        limits = {"low": low, "high": high, "dtype": grid.dtype}
        if isinstance(value, Multiples):
            value = self.as_sums(value)
        if isinstance(value, Sums):
            shift = value.exponent - exponent
            if shift < 1:
                value, shift = self.aligned(value, value.exponent + 1 - shift), 1
            return Multiples(self.emit("requantize", value.node, shift=shift, divisor=int(mantissa), **limits), grid)
        return Multiples(self.emit("quantize_linear", value, scale, **limits), grid)

    def as_sums(self, value: Value) -> Sums | None:
        """A value as a multiple of a power of two; None where it is none."""
        if isinstance(value, Sums):
            return value
        if isinstance(value, Multiples):
            wide: Var = self.b.var(self.emit("cast", value.node, dtype="int64"))
            return Sums((wide * wide.const(int(value.grid.mantissa))).node, value.grid.exponent)
        return None

    def aligned(self, value: Sums, exponent: int) -> Sums:
        """A value as a multiple of a smaller power of two."""
        if exponent == value.exponent:
            return value
        shift = constant_of(np.asarray(exponent - value.exponent, np.int64))
        return Sums(self.emit("left_shift", value.node, shift), exponent)

    def sums(self, node: Apply, args: list[Value]) -> Sums | None:
        """A sum or maximum of exact values."""
        found = [self.as_sums(a) for a in args]
        if not all(f is not None or isinstance(a, Constant) for f, a in zip(found, args)):
            return None
        exponent = max(f.exponent for f in found if f is not None)
        operands = []
        for value, arg in zip(found, args):
            if value is not None:
                operands.append(self.aligned(value, exponent).node)
                continue
            assert isinstance(arg, Constant)
            whole = np.ldexp(np.asarray(arg.value, np.float64), exponent)
            if not np.all(whole == np.floor(whole)):
                return None
            operands.append(constant_of(whole.astype(np.int64)))
        return Sums(self.b.emit(node.fn, tuple(operands)), exponent)

    def kept(self, node: Apply, value: Multiples | Sums) -> Value:
        """A value that has no others than its operand has."""
        integers, dtype = value.node, value.node.type.dtype
        if node.fn.name == "max_pool":  # of floats alone, which hold these exactly
            exact = "float32" if isinstance(value, Multiples) else "float64"
            integers = self.emit("cast", integers, dtype=exact)
        rest = tuple(self.plain(a) for a in node.args[1:])
        result = self.b.emit(node.fn, (integers, *rest), node.attrs)
        if result.type.dtype != dtype:
            result = self.emit("cast", result, dtype=dtype)
        return Multiples(result, value.grid) if isinstance(value, Multiples) else Sums(result, value.exponent)

    def contraction(self, node: Apply, *args: Multiples) -> Sums:
        """A sum of products in int32, times the product of the mantissas.

        Raises:
            InternalError: that is beyond 32 bits.
        """
        name, attrs = node.fn.name, node.attrs
        if name == "conv2d":
            (x, w), along = args, (1, -1, 1, 1)
            total = self.emit("conv2d_integer", x.node, w.node, **attrs)
        else:
            (x, w), along = args if name == "dot" else args[::-1], (1, -1)
            assert isinstance(w.node, Constant)
            rows = attrs["transpose_b"] if name == "dot" else not attrs["transpose"]
            weights = constant_of(np.ascontiguousarray(w.node.value if rows else w.node.value.T))
            data = x.node if name == "dot" else self.emit("reshape", x.node, shape=(1, *x.node.type.shape))
            total = self.emit("dot_integer", data, weights)
        mantissa = (x.grid.mantissa * w.grid.mantissa).astype(np.int64)
        if np.any(mantissa >= 1 << 31):
            raise InternalError("quantize", "a product of scales is beyond 32 bits")
        factor = mantissa.reshape(along) if mantissa.size > 1 else mantissa.reshape(())
        wide = self.emit("cast", total, dtype="int64")
        multiplier = self.emit("cast", constant_of(factor.astype(np.int32)), dtype="int64")
        result = self.emit("mul", wide, multiplier)
        if name == "matvec":
            result = self.emit("reshape", result, shape=node.type.shape)
        return Sums(result, x.grid.exponent + w.grid.exponent)


def _parts(scale: np.ndarray, bits: int) -> tuple[np.ndarray, int]:
    """(mantissas, exponent) of scales that have mantissas of so many bits."""
    fraction, power = np.frexp(scale)
    exponent = int((bits - power).max())
    return np.ldexp(scale, exponent).astype(np.int64), exponent


__all__ = ["realise"]
