"""Broadcasting and its transpose: `broadcast_to`, `reshape`, `reduce_sum`, `cast`, and kinds of 0-d values.

These are in one module because they are each other's adjoints:

    y = broadcast_to(x)  =>  dx = reduce_sum(dy)        y = reduce_sum(x)  =>  dx = broadcast_to(dy)

The adjoint of every broadcasting operation ends with `unbroadcast`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.dims import may_be_equal, product
from ...abstract.types import FLOATS, Array, Leaf, Scalar, Type, numpy_dtype
from ...ir.axes import BROADCAST, SHAPE, Axes, Relation, reduction
from ...ir.build import Var, as_type
from ...ir.prim import REGISTRY, primitive
from ...utils.errors import InternalError, ShapeError, TypeError_
from .protocol import flat_index, split_index
from .relations import (
    ANY,
    array_or_scalar,
    broadcast_shapes,
    const_like,
    dtype_of,
    require,
    require_array,
    shape_of,
    show_shape,
    type_of,
)
from .wide_sums import sums_in_float32


def _linear(prim):
    """The forward rule of a primitive that is linear in its one argument; see `prims.rules.forward` for more arguments."""
    prim.linear_in = (0,)

    def rule(_x, _out, tangents, **attrs):
        return prim(tangents[0], **attrs)

    return rule


@primitive("elementwise")
def cast(x, *, dtype, weak=False):
    """Conversion to another dtype, as `astype`: float to int truncates, anything to bool is `x != 0`.

    Args:
        x: scalar or array.
        dtype: dtype name of the result.
        weak: for a scalar, whether the result is a Python number; ignored for arrays.
    """
    return np.asarray(x).astype(numpy_dtype(dtype))[()]


@cast.infer
def _(x, *, dtype, weak=False):
    require("cast", x, ANY)
    if isinstance(x, Array):
        return Array(dtype, x.shape)
    if weak and dtype not in ("int64", "float64", "bool"):
        raise TypeError_(f"Python has no number of dtype {dtype}")
    return Scalar(dtype, weak)


@cast.vjp
def _(x, out, dout, *, dtype, weak=False):
    t = type_of(x)
    if not t.is_float or dtype not in FLOATS:
        return (None,)
    return (cast(dout, dtype=t.dtype, weak=isinstance(t, Scalar) and t.weak),)


@cast.jvp
def _(x, out, tangents, *, dtype, weak=False):
    return cast(tangents[0], dtype=dtype, weak=weak) if dtype in FLOATS else None


@cast.batch
def _(size, batched, x, *, dtype, weak=False):
    return cast(x, dtype=dtype)


@cast.lower
def _(b, x, *, dtype, weak=False):
    return b.cast(x, dtype)


@primitive("elementwise")
def as_scalar(x):
    """The NumPy scalar in an array without axes: what NumPy returns from operations on those."""
    return np.asarray(x)[()]


@as_scalar.infer
def _(x):
    if isinstance(x, Array) and x.shape != ():
        raise ShapeError(f"only an array without axes is a scalar, and this is {x}")
    return Scalar(x.dtype)


@as_scalar.vjp
def _(x, out, dout):
    return (match_kind(dout, type_of(x)),)


as_scalar.jvp(_linear(as_scalar))


@as_scalar.batch
def _(size, batched, x):
    return x  # a batched scalar is an array


@as_scalar.lower
def _(b, x):
    return x


@primitive("elementwise", view=True)
def as_array(x):
    """A scalar as an array without axes."""
    return np.asarray(x)


@as_array.infer
def _(x):
    return Array(require("as_array", x, ANY).dtype, x.shape)


@as_array.vjp
def _(x, out, dout):
    return (match_kind(dout, type_of(x)),)


as_array.jvp(_linear(as_array))


@as_array.batch
def _(size, batched, x):
    return x


@as_array.lower
def _(b, x):
    return x


@primitive("injective", axes=BROADCAST, view=True)
def broadcast_to(x, *, shape):
    """`x` (scalar or array) repeated along new leading axes and axes of size 1.

    Args:
        x: shape (...), any dtype.
        shape: the result's shape; dimensions may be symbolic.
    """
    return np.broadcast_to(np.asarray(x), shape)


@broadcast_to.infer
def _(x, *, shape):
    require("broadcast_to", x, ANY)
    if broadcast_shapes("broadcast_to", x.shape, shape) != tuple(shape):
        raise ShapeError(f"shape {show_shape(x.shape)} does not broadcast to {show_shape(shape)}")
    return Array(x.dtype, tuple(shape))


@broadcast_to.vjp
def _(x, out, dout, *, shape):
    return (unbroadcast(dout, type_of(x)),)


broadcast_to.jvp(_linear(broadcast_to))


@broadcast_to.lower
def _(b, index, x, *, in_types, out_type, shape):
    have = in_types[0].shape
    tail = index[len(index) - len(have) :]
    return x([b.const(0, "int64") if d == 1 else i for d, i in zip(have, tail)])


def _reshaped(shapes, out, **attrs):
    """Axes of equal size with as many elements before them are the same."""
    (have,) = shapes
    if 0 in have:
        return Relation(((None,) * len(have),), (None,) * len(out))
    before = {(product(have[:k]), n): k for k, n in enumerate(have) if n != 1}
    result = tuple(before.get((product(out[:k]), n)) if n != 1 else None for k, n in enumerate(out))
    return Relation((tuple(k if k in result else None for k in range(len(have))),), result)


@primitive("injective", axes=Axes(_reshaped, shape=SHAPE), view=True)
def reshape(x, *, shape):
    """The elements of `x` in row-major order under another shape with the same number of elements.

    Args:
        x: array or scalar.
        shape: the whole new shape; no -1 here. Where only the sizes at run time tell whether it fits, that was checked before.
    """
    return np.reshape(x, shape)


@reshape.infer
def _(x, *, shape):
    require("reshape", x, ANY)
    if not may_be_equal(product(x.shape), product(shape)):
        raise ShapeError(f"cannot reshape array of shape {show_shape(x.shape)} into shape {show_shape(shape)}")
    return Array(x.dtype, tuple(shape))


@reshape.vjp
def _(x, out, dout, *, shape):
    return (match_kind(reshape(dout, shape=shape_of(x)), type_of(x)),)


reshape.jvp(_linear(reshape))


@reshape.lower
def _(b, index, x, *, in_types, out_type, shape):
    have, want = in_types[0].shape, tuple(shape)
    # A common prefix (usually a batch axis) keeps its indices, which saves divisions.
    same = 0
    while same < min(len(have), len(want)) and have[same] == want[same]:
        same += 1
    if product(have[same:]) != product(want[same:]):
        same = 0
    flat = flat_index(b, index[same:], want[same:])
    return x([*index[:same], *split_index(b, flat, have[same:])])


@primitive("reduce", axes=reduction("add"))
@sums_in_float32
def reduce_sum(x, *, axes, keepdims=False):
    """The sum over axes, in the dtype of `x` (integers wrap). Without axes left the result is a NumPy scalar.

    Args:
        x: array of numbers.
        axes: sorted non-negative axes.
        keepdims: whether summed axes stay, with size 1.
    """
    x = np.asarray(x)
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def reduced_shape(shape, axes, keepdims: bool):
    """The shape that is left after a reduction.

    Raises:
        InternalError: the axes are not sorted, not distinct, or out of bounds.
    """
    if any(not 0 <= a < len(shape) for a in axes) or tuple(sorted(set(axes))) != tuple(axes):
        raise InternalError("reduce", f"axes {axes} of shape {shape}")
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


@reduce_sum.infer
def _(x, *, axes, keepdims=False):
    require_array("sum", x)
    if x.dtype == "bool":
        raise TypeError_("a sum of booleans at primitive level; cast them first")
    return array_or_scalar(x.dtype, reduced_shape(x.shape, axes, keepdims))


def spread(y, shape, axes, keepdims: bool):
    """`y`, which has lost `axes` of `shape` to a reduction, broadcast back over them."""
    if not keepdims and shape_of(y):
        y = reshape(y, shape=reduced_shape(shape, axes, True))
    return broadcast_to(y, shape=shape)


@reduce_sum.vjp
def _(x, out, dout, *, axes, keepdims=False):
    return (spread(dout, shape_of(x), axes, keepdims),)


reduce_sum.jvp(_linear(reduce_sum))


@reduce_sum.lower
def _(b):
    return b.const(0, b.dtype), b.add


def match_kind(x: Any, to: Type) -> Any:
    """`x` as exactly the kind of value `to` says (Python number, NumPy scalar, 0-d array); same dtype, same shape.

    Raises:
        InternalError: dtype or shape differ.
    """
    if not isinstance(x, Var):
        return as_type(x, to)
    if x.type == to:
        return x
    if isinstance(to, Array) and not isinstance(x.type, Array):
        return as_array(x)
    if isinstance(to, Scalar):
        if isinstance(x.type, Array):
            x = as_scalar(x)
        if x.type.weak != to.weak:
            x = cast(x, dtype=to.dtype, weak=to.weak)
    if x.type != to:
        raise InternalError("match_kind", f"{x.type} as {to}")
    return x


def unbroadcast(dout, to: Leaf):
    """The cotangent of an operand of type `to` from that of the broadcast result: summed over the axes it was
    repeated along.

    y = f(broadcast(x))  =>  dx = sum(dy)
    """
    have, want = shape_of(dout), to.shape
    lead = len(have) - len(want)
    axes = tuple(range(lead)) + tuple(i for i in range(lead, len(have)) if want[i - lead] == 1 and have[i] != 1)
    if axes:
        dout = reduce_sum(dout, axes=axes)
    if shape_of(dout) != want:
        dout = reshape(dout, shape=want)
    return match_kind(dout, to)


def zeros_like(x):
    """Zeros of exactly the type of `x`, which is a float."""
    return filled_like(x, 0)


def filled_like(x, value):
    """A constant of exactly the type of `x`, every element `value`."""
    t = type_of(x)
    c = const_like(x, value)
    return broadcast_to(c, shape=t.shape) if isinstance(t, Array) else match_kind(c, t)


def full(value, *, shape):
    """An array of one scalar, staged or not."""
    return broadcast_to(value, shape=tuple(shape))


def nullary(near, prim: str, **attrs):
    """Apply a primitive without data arguments: staged where `near` is."""
    if isinstance(near, Var):
        return Var(near.builder, near.builder.emit(REGISTRY[prim], (), attrs))
    return REGISTRY[prim].reference(**attrs)


__all__ = [
    "as_array",
    "as_scalar",
    "broadcast_to",
    "cast",
    "dtype_of",
    "filled_like",
    "full",
    "match_kind",
    "nullary",
    "reduce_sum",
    "reduced_shape",
    "reshape",
    "shape_of",
    "spread",
    "type_of",
    "unbroadcast",
    "zeros_like",
]
