"""Scales and shifts of channels behind a convolution become part of its filters and one shift.

    (conv2d(x, w) - mean) / deviation * gamma + beta   =>   conv2d(x, w * a) + b      a = gamma / deviation,  b = beta - mean * a

So a batch normalisation that infers costs nothing, and the range of what is rounded is that behind it. The filters may be
parameters: then a and b are computed from others, and derivatives flow.

A choice between 0 and a value by its sign becomes `maximum`, which the rules of annotation know.

Input: a typed graph without transforms. Output: the same up to rounding. Source: B. Jacob et al., "Quantization and Training of
Neural Networks for Efficient Integer-Arithmetic-Only Inference" (CVPR 2018), section 3.2; Relay's FoldScaleAxis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.build import Builder, Var
from ..ir.node import Apply, Constant, Graph, Node, applied
from ..ir.prim import REGISTRY
from ..ir.rewrite import drop_dead, emit_like, lookup, same_interface
from ..utils.source import Origin
from .graphs import static_nodes


@dataclass(frozen=True)
class ScaledConvolution:
    """conv2d(x, w) * scale + shift, not emitted yet.

    Attributes:
        scale, shift: of each filter, (O,), or one number; None for 1 and 0.
        shape: of the result: that of the convolution, perhaps without the axis of one example.
    """

    x: Node
    w: Node
    attrs: Mapping[str, Any]
    shape: tuple
    origin: Origin
    scale: Var | None = None
    shift: Var | None = None


def fold_scales(graph: Graph, count: int) -> Graph:
    """The pass.

    Args:
        graph: its parameters are inputs, then arrays.
        count: of the inputs.
    """
    return _FoldScales(graph, count).run()


class _FoldScales:
    def __init__(self, graph: Graph, count: int):
        self.graph, self.static = graph, static_nodes(graph, count)
        self.new, self.env = same_interface(graph)
        self.b = Builder(self.new, graph.origin)
        self.waiting: dict[Node, ScaledConvolution] = {}
        self.uses = Counter(a for n in graph.nodes for a in n.args)
        self.uses[graph.output] += 1

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self.b.origin = node.origin
            found = self.found(node)
            if isinstance(found, ScaledConvolution):
                self.waiting[node] = found
            else:
                self.env[node] = found
        self.new.output = self.value(self.graph.output)
        drop_dead(self.new)  # comparisons of rectifiers
        return self.new

    def found(self, node: Apply) -> ScaledConvolution | Node:
        """What an application becomes."""
        name = applied(node)
        if name == "conv2d" and node.args[1] in self.static:
            x, w = (self.value(a) for a in node.args)
            return ScaledConvolution(x, w, node.attrs, node.type.shape, node.origin)
        own = [a for a in node.args if a in self.waiting and self.uses[a] == 1]
        if len(own) == 1:
            waiting = self.waiting[own[0]]
            if name == "reshape" and node.type.shape[-3:] == waiting.shape[-3:] and _ones(node.type.shape[:-3]):
                return replace(waiting, shape=node.type.shape)
            if name in ("add", "sub", "mul", "div"):
                changed = self.scaled(name, node, own[0], waiting)
                if changed is not None:
                    return changed
        if name == "where" and _is_rectifier(node):
            return self.b.emit(REGISTRY["maximum"], (self.value(node.args[2]), self.value(node.args[1])))
        return emit_like(self.b, node, [self.value(a) for a in node.args])

    def scaled(self, name: str, node: Apply, own: Node, found: ScaledConvolution) -> ScaledConvolution | None:
        """With one more operation on its channels; None where it is on something else."""
        first = node.args[0] is own
        other = node.args[1 if first else 0]
        if node.type.shape != found.shape or not (isinstance(other, Constant) or other in self.static):
            return None
        factor = self.channels(self.value(other), found.shape)
        if factor is None or name == "div" and not first:
            return None
        if name in ("mul", "div"):
            change = (lambda v: v * factor) if name == "mul" else (lambda v: v / factor)
            one = factor if name == "mul" else factor.const(1) / factor
            shift = None if found.shift is None else change(found.shift)
            return replace(found, scale=one if found.scale is None else change(found.scale), shift=shift)
        if name == "sub" and first:
            return replace(found, shift=-factor if found.shift is None else found.shift - factor)
        shift = factor if found.shift is None else found.shift + factor
        if name == "add":
            return replace(found, shift=shift)
        negated = None if found.shift is None else -found.shift
        scale = factor.const(-1) if found.scale is None else -found.scale
        return replace(found, scale=scale, shift=factor if negated is None else negated + factor)

    def channels(self, value: Node, shape: tuple) -> Var | None:
        """A number for each filter, (O,), or for all; None where a value differs along other axes."""
        var, own = self.b.var(value), value.type.shape
        if own == ():
            return var
        wide = (1,) * (len(shape) - len(own)) + own
        if len(wide) != len(shape) or any(size != 1 for k, size in enumerate(wide) if k != len(shape) - 3):
            return None
        size = wide[-3]
        return var.builder.var(self.b.emit(REGISTRY["reshape"], (value,), {"shape": (size,)}))

    def value(self, node: Node) -> Node:
        """The new value of a node, emitted now where it waited."""
        if node not in self.waiting:
            return lookup(self.env, node)
        if node not in self.env:
            found = self.waiting[node]
            self.b.origin = found.origin
            filters, reshape = self.b.var(found.w), REGISTRY["reshape"]
            if found.scale is not None:
                filters = filters * self.along(found.scale, 4, 0)
            result = self.b.emit(REGISTRY["conv2d"], (found.x, filters.node), found.attrs)
            if found.shift is not None:
                result = (self.b.var(result) + self.along(found.shift, 4, 1)).node
            if result.type.shape != found.shape:
                result = self.b.emit(reshape, (result,), {"shape": found.shape})
            self.env[node] = result
        return self.env[node]

    def along(self, vector: Var, axes: int, axis: int) -> Var:
        """A vector along one of so many axes."""
        if vector.shape == ():
            return vector
        shape = tuple(vector.shape[0] if k == axis else 1 for k in range(axes))
        return self.b.var(self.b.emit(REGISTRY["reshape"], (vector.node,), {"shape": shape}))


def _ones(shape: tuple) -> bool:
    return all(size == 1 for size in shape)


def _is_zero(node: Node) -> bool:
    return isinstance(node, Constant) and node.type.shape == () and float(np.asarray(node.value)) == 0


def _is_rectifier(node: Apply) -> bool:
    """where(x <= 0, 0, x)."""
    test, zero, x = node.args
    return (
        applied(test) in ("le", "lt")
        and isinstance(test, Apply)
        and test.args[0] is x
        and _is_zero(test.args[1])
        and _is_zero(zero)
        and zero.type.dtype == x.type.dtype
    )


__all__ = ["fold_scales"]
