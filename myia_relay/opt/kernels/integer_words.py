"""Products and convolutions of integers become those that instructions compute: of words of several numbers.

    conv2d_integer(x, w, zero=z)  =>  conv2d_words(pack_words(x), pack_words(w), fill=z) - z * sum of w
    dot_integer(a, b, zero=z)     =>  dot_shifted(a, b) - z * sum of b

Instructions multiply unsigned numbers of 8 bits by signed ones. So signed images get 128 added, and the zero becomes z + 128. What
is to be subtracted is one number for each filter. Where the weights are constant, all of that is computed now, once for all calls.

Filters of one channel would leave three quarters of a word empty. There words hold taps that lie side by side in the window
(`depthwise_words`), if the filters are constant and not too large. Else float32 is as quick, and exact: a sum of n products of 8
bits is below n * 2**15, and all integers up to 2**24 are floats.

Input: a program without transforms, for an executor with kernels for words. Output: the same program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.types import Array, numpy_dtype
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node, applied
from ...ir.prim import REGISTRY
from ...ir.rewrite import Rewriter
from ...prims.ops.integers.products import SHIFT, pack_taps
from ...utils.switches import is_left_out

PRODUCTS = ("conv2d_integer", "dot_integer")
EXACT = 1 << 24
"""All integers up to here are numbers of float32."""
TAPS = 10
"""Words of a filter of one channel that stay in registers."""
STRIDE = 4
"""Words of neighbours at strides up to here are within a vector."""


@dataclass(frozen=True)
class IntegerWords:
    """The pass."""

    name: str = "integer_words"

    def __call__(self, graph: Graph) -> Graph:
        return _PackWords().rewrite(graph)


class _PackWords(Rewriter):
    acts_on = PRODUCTS
    mark = IntegerWords

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) not in PRODUCTS:
            return super().node(builder, node, args, attrs)
        self.changed = True
        builder.origin = node.origin
        make = _convolution if applied(node) == "conv2d_integer" else _product
        result = make(builder, *args, **attrs)
        if isinstance(result, Apply) and result.name is None:
            result.name = node.name
        return result


def emit(b: Builder, name: str, args: Sequence[Node], attrs: Mapping[str, Any] | None = None) -> Node:
    """An application, computed now where its operands are constants."""
    prim, attrs = REGISTRY[name], {**REGISTRY[name].attr_defaults, **(attrs or {})}
    constants = [a for a in args if isinstance(a, Constant)]
    if len(constants) == len(args):
        type_: Any = prim.infer_rule(*(a.type for a in args), **attrs)
        value = prim.reference(*(a.value for a in constants), **attrs)
        return b.constant(np.asarray(value, numpy_dtype(type_.dtype)), type_)
    return b.emit(prim, tuple(args), attrs)


def _offset(b: Builder, w: Node, zero: int, shape: tuple) -> Node:
    """What the zero adds to the sums of each filter."""
    wide = emit(b, "cast", (w,), {"dtype": "int32"})
    axes = tuple(range(1, len(w.type.shape)))
    total = emit(b, "reduce_sum", (wide,), {"axes": axes})
    scaled = emit(b, "mul", (total, b.constant(np.int32(zero), Array("int32", ()))))
    return emit(b, "reshape", (scaled,), {"shape": shape})


def _convolution(b: Builder, x: Node, w: Node, *, groups: int, zero: int, **attrs: Any) -> Node:
    o, per_group, kh, kw = w.type.shape
    eight = w.type.dtype == "int8"
    if per_group == 1 and groups > 1 and eight and isinstance(w, Constant) and _in_rows(x, w, attrs["strides"]):
        return _by_rows(b, x, w, zero, attrs)
    if per_group == 1 and groups > 1 and eight and kh * kw * 255 * 128 + abs(zero) * kh * kw * 128 < EXACT:
        return _depthwise(b, x, w, groups, zero, attrs)
    shift = SHIFT if x.type.dtype == "int8" else 0
    packed = emit(b, "pack_words", (x,), {"groups": groups, "shift": shift})
    filters = emit(b, "pack_words", (w,))
    fill = {"bits": 8 if eight else 16, "fill": zero + shift}
    sums = b.emit(REGISTRY["conv2d_words"], (packed, filters), {**attrs, "groups": groups, **fill})
    if zero + shift == 0:
        return sums
    return b.emit(REGISTRY["sub"], (sums, _offset(b, w, zero + shift, (o, 1, 1))))


def _in_rows(x: Node, w: Constant, strides: tuple[int, int]) -> bool:
    """Whether words may hold taps of a row."""
    kh, kw = w.type.shape[2:]
    sizes = (*x.type.shape[1:], *w.type.shape)
    small = all(isinstance(size, int) for size in sizes) and kh * -(-kw // 4) <= TAPS and strides[1] <= STRIDE
    return small and not is_left_out("vnni") and not is_left_out("direct_conv")


def _by_rows(b: Builder, x: Node, w: Constant, zero: int, attrs: Mapping[str, Any]) -> Node:
    """Of words of taps that lie side by side."""
    shift = SHIFT if x.type.dtype == "int8" else 0
    taps = b.constant(pack_taps(np.asarray(w.value)))
    own = {"kernel": w.type.shape[2:], "fill": zero + shift}
    sums = b.emit(REGISTRY["depthwise_words"], (x, taps), {**attrs, **own})
    if zero + shift == 0:
        return sums
    return b.emit(REGISTRY["sub"], (sums, _offset(b, w, zero + shift, (w.type.shape[0], 1, 1))))


def _depthwise(b: Builder, x: Node, w: Node, groups: int, zero: int, attrs: Mapping[str, Any]) -> Node:
    """In float32."""
    image: Var = b.var(emit(b, "cast", (x,), {"dtype": "float32"}))
    if zero:
        image = image - image.const(zero)
    filters = emit(b, "cast", (w,), {"dtype": "float32"})
    sums = b.emit(REGISTRY["conv2d"], (image.node, filters), {**attrs, "groups": groups})
    return b.emit(REGISTRY["cast"], (sums,), {"dtype": "int32"})


def _product(b: Builder, a: Node, w: Node, *, zero: int) -> Node:
    shift = SHIFT if a.type.dtype == "int8" else 0
    sums = b.emit(REGISTRY["dot_shifted"], (a, w))
    if zero + shift == 0:
        return sums
    return b.emit(REGISTRY["sub"], (sums, _offset(b, w, zero + shift, (w.type.shape[0],))))


__all__ = ["IntegerWords"]
