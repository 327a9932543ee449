"""Tensors made of numbers, of shapes, and of other tensors' types."""

from __future__ import annotations

import math
from typing import Any

from ...abstract.dims import Dim
from ...abstract.dims import product as product_of
from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...prims.api.promotion import astype, bind_size, is_static, size_value, static_value, strong, unwrap
from ...prims.ops import elementwise as P
from ...prims.ops.shape import concatenate
from ...prims.ops.shape import one_hot as one_hot_prim
from ...prims.rules.broadcast import broadcast_to, cast
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import show
from ..terms.solver import Facts
from ..terms.terms import ANY, tensor, tuple_term
from .declare import Attr, operator
from .rules import axis_of, integers, shape_first
from .staged import array, arrays, constant, finished, permuted, places_of, reshaped

SHAPE = {"shape": Attr("ints"), "dtype": Attr("dtype", "float32")}


def _filled(facts: Facts) -> None:
    shape = facts.attr("shape")
    if any(s < 0 for s in shape):
        raise ShapeError(f"{facts.name}: shape={list(shape)} has a negative size")
    facts.gives_tensor(shape, facts.attr("dtype"))


def _constants(name: str, value: int, doc: str) -> None:
    def function(b: Builder, shape: tuple[int, ...], dtype: str) -> Var:
        return finished(broadcast_to(constant(b, value, dtype), shape=tuple(shape)))

    def like(b: Builder, data: Var) -> Var:
        x = array(data)
        return finished(broadcast_to(constant(b, value, x.dtype), shape=x.shape))

    operator(name, (), _filled, SHAPE, doc=doc)(function)
    operator(
        f"{name}_like", ("data",), lambda f: f.gives(f.tensor(0)), family="Identity", doc=f"{doc[:-1]}, like a tensor."
    )(like)


_constants("zeros", 0, "Zeros of a shape.")
_constants("ones", 1, "Ones of a shape.")


def _full(facts: Facts) -> None:
    value = facts.tensor(0)
    facts.equal(value.shape, ())
    facts.gives_tensor(facts.attr("shape"), facts.attr("dtype") or value.dtype)


@operator("full", ("fill_value",), _full, {"shape": Attr("ints"), "dtype": Attr("dtype", None)})
def full(b: Builder, fill_value: Var, shape: tuple[int, ...], dtype: Any = None) -> Var:
    """One number, in a shape; in its own dtype, or in another."""
    x = strong(fill_value)
    return finished(broadcast_to(x if dtype is None else astype(x, dtype), shape=tuple(shape)))


def _full_like(facts: Facts) -> None:
    t, value = facts.tensor(0), facts.tensor(1)
    facts.equal(value.shape, ())
    facts.same_dtype(t, value)
    facts.gives(t)


@operator("full_like", ("data", "fill_value"), _full_like)
def full_like(b: Builder, data: Var, fill_value: Var) -> Var:
    """One number, in the shape of a tensor."""
    return finished(broadcast_to(strong(fill_value), shape=array(data).shape))


# Ranges.

RANGE = {
    "start": Attr("number", None),
    "stop": Attr("number", None),
    "step": Attr("number", None),
    "dtype": Attr("dtype", None),
}


def _bounds(values: list[Any], attrs: dict[str, Any]) -> list[Any]:
    """Start, stop and step: by position as Python's `range` takes them, or as attributes; None where one is not said."""
    start, stop, step = (attrs[k] for k in ("start", "stop", "step"))
    match values:
        case [a]:
            stop = a
        case [a, c]:
            start, stop = a, c
        case [a, c, d]:
            start, stop, step = a, c, d
    return [start, stop, step]


def range_size(start: Any, stop: Any, step: Any) -> int:
    """How many numbers there are in a range.

    Raises:
        TypeError_: the step is 0.
    """
    if step == 0:
        raise TypeError_("arange: the step is 0")
    return max(0, math.ceil((stop - start) / step))


class _Computed:
    """An argument that is no literal."""


def _arange(facts: Facts) -> None:
    types = [facts.tensor(k) for k in range(facts.count)]
    for t in types:
        facts.equal(t.shape, ())
    dtype = facts.attr("dtype")
    if types:
        dtype = dtype or facts.same_dtype(*types)
    else:
        numbers = [facts.attr(k) for k in ("start", "stop", "step")]
        dtype = dtype or ("float32" if any(isinstance(n, float) for n in numbers) else "int32")
    values = [_Computed if facts.constant(k) is None else facts.constant(k) for k in range(facts.count)]
    start, stop, step = _bounds(values, {k: facts.attr(k) for k in RANGE})
    if stop is None:
        raise TypeError_("arange needs to know where it stops: arange(%n), or arange(stop=10)")
    open_ = any(v is _Computed for v in (start, stop, step))
    size = ANY if open_ else range_size(start or 0, stop, 1 if step is None else step)
    facts.gives_tensor((size,), dtype)


@operator("arange", ("start", "stop", "step"), _arange, RANGE, optional=3, reads_constants=True)
def arange(b: Builder, *args: Var, start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None) -> Var:
    """The numbers from start to stop, which is not included: arange(stop), arange(start, stop), arange(start, stop, step)."""
    given = [strong(a) for a in args]
    first, last, by = _bounds(list(given), {"start": start, "stop": stop, "step": step})
    numbers = [v for v in (first, last, by) if v is not None]
    kind = dtype or next((v.dtype for v in numbers if isinstance(v, Var)), None)
    kind = kind or ("float32" if any(isinstance(v, float) for v in numbers) else "int32")
    values = [static_value(v) if isinstance(v, Var) and is_static(v) else v for v in (first, last, by)]
    begin, gap = 0 if values[0] is None else values[0], 1 if values[2] is None else values[2]
    if not any(isinstance(v, Var) for v in (begin, values[1], gap)):
        count: Any = range_size(_plain(begin), _plain(values[1]), _plain(gap))
    else:
        count = _run_time_count(b, begin, values[1], gap)
    wide = kind if kind in ("float64", "int64") else "float64" if kind in FLOATS else "int64"
    places = astype(places_of(b, count), wide)
    out = P.add(P.mul(places, _number(b, gap, wide)), _number(b, begin, wide))
    return astype(out, kind)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _number(b: Builder, value: Any, dtype: str) -> Var:
    return astype(value, dtype) if isinstance(value, Var) else constant(b, _plain(value), dtype)


def _run_time_count(b: Builder, start: Any, stop: Any, step: Any) -> Dim:
    """How many numbers there are in a range whose ends a run computes."""
    first, last, by = (_number(b, v, "float64") for v in (start, stop, step))
    count = P.maximum(P.ceil(P.div(P.sub(last, first), by)), constant(b, 0, "float64"))
    return bind_size(b, astype_int(count))


def astype_int(x: Var) -> Var:
    """A whole float as a Python int."""
    return cast(unwrap(x), dtype="int64", weak=True)


# What is known of a tensor.


def _shape_of(facts: Facts) -> None:
    shape = facts.shape(facts.tensor(0))
    facts.gives_tensor((len(shape),), facts.attr("dtype"))


@operator("shape_of", ("data",), _shape_of, {"dtype": Attr("dtype", "int32")})
def shape_of(b: Builder, data: Var, dtype: str = "int32") -> Var:
    """The shape, as a vector of ints."""
    x = array(data)
    if not x.shape:
        return broadcast_to(constant(b, 0, dtype), shape=(0,))
    sizes = [reshaped(array(astype(size_value(b, s), dtype)), [1]) for s in x.shape]
    return sizes[0] if len(sizes) == 1 else concatenate(*sizes, axis=0)


def _size_of(facts: Facts) -> None:
    facts.tensor(0)
    facts.gives_tensor((), facts.attr("dtype"))


@operator("ndarray_size", ("data",), _size_of, {"dtype": Attr("dtype", "int32")})
def ndarray_size(b: Builder, data: Var, dtype: str = "int32") -> Var:
    """The number of elements."""
    return unwrap(astype(size_value(b, product_of(array(data).shape)), dtype))


# Made of indices.


def _one_hot(facts: Facts) -> None:
    indices, on, off = (facts.tensor(k) for k in range(3))
    integers(facts, indices, "the indices")
    for value in (on, off):
        facts.equal(value.shape, ())
    own = facts.same_dtype(on, off)
    dtype = facts.attr("dtype") or own
    shape = shape_first(facts, indices, dtype)
    depth, axis = facts.attr("depth"), facts.attr("axis")
    at = len(shape) if axis == -1 else axis_of(facts, axis, len(shape), 1)
    facts.gives_tensor((*shape[:at], depth, *shape[at:]), dtype)


ONE_HOT = {"depth": Attr("int"), "axis": Attr("int", -1), "dtype": Attr("dtype", None)}


@operator("one_hot", ("indices", "on_value", "off_value"), _one_hot, ONE_HOT)
def one_hot(
    b: Builder, indices: Var, on_value: Var, off_value: Var, depth: int, axis: int = -1, dtype: Any = None
) -> Var:
    """`on_value` at the place that an index says along a new axis, `off_value` elsewhere."""
    x = array(indices)
    hot = one_hot_prim(x, n=depth, dtype="bool")
    on, off = (v if dtype is None else astype(v, dtype) for v in (strong(on_value), strong(off_value)))
    out = P.where(hot, on, off)
    at = axis % (x.ndim + 1)
    order = list(range(x.ndim))
    return finished(permuted(out, [*order[:at], x.ndim, *order[at:]]))


def _meshgrid(facts: Facts) -> None:
    parts = facts.tensors(0)
    if not parts:
        raise TypeError_("meshgrid of no tensors")
    dtype = facts.same_dtype(*parts)
    sizes = []
    for p in parts:
        shape = facts.shape(p)
        if len(shape) > 1:
            raise ShapeError(f"meshgrid takes vectors and numbers, and this is {show(p)}")
        sizes.append(shape[0] if shape else 1)
    if facts.attr("indexing") == "xy" and len(sizes) > 1:
        sizes[:2] = sizes[1::-1]
    facts.gives(tuple_term(tensor(tuple(sizes), dtype) for _ in parts))


@operator("meshgrid", ("data",), _meshgrid, {"indexing": Attr(("ij", "xy"), "ij")})
def meshgrid(b: Builder, data: Any, indexing: str = "ij") -> tuple[Var, ...]:
    """The coordinates of a grid along each of its axes, given those of its lines; a tuple."""
    parts = [reshaped(p, [p.shape[0] if p.shape else 1]) for p in arrays(b, data)]
    axes = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        axes[:2] = 1, 0
    shape: list[Any] = [1] * len(parts)
    for p, axis in zip(parts, axes, strict=True):
        shape[axis] = p.shape[0]
    out = []
    for p, axis in zip(parts, axes, strict=True):
        own = [p.shape[0] if k == axis else 1 for k in range(len(parts))]
        out.append(broadcast_to(reshaped(p, own), shape=tuple(shape)))
    return tuple(out)


def _trilu(facts: Facts) -> None:
    t = facts.tensor(0)
    facts.gives(t)
    if len(facts.shape(t)) < 2:
        raise ShapeError(f"trilu takes matrices, and this is {show(t)}")
    if facts.count > 1:
        facts.equal(facts.tensor(1).shape, ())


@operator("trilu", ("data", "k"), _trilu, {"upper": Attr("bool", True)}, optional=1)
def trilu(b: Builder, data: Var, k: Any = None, upper: bool = True) -> Var:
    """The upper triangle of matrices from the k-th diagonal on, or the lower one up to it; 0 elsewhere."""
    x = array(data)
    rows, columns = x.shape[-2:]
    row = reshaped(places_of(b, rows), [rows, 1])
    column = places_of(b, columns)
    if k is not None:
        row = P.add(row, astype(strong(k), "int64"))
    inside = P.ge(column, row) if upper else P.le(column, row)
    return P.where(inside, x, constant(b, 0, x.dtype))


def _sequence_mask(facts: Facts) -> None:
    t, lengths = facts.tensor(0), facts.tensor(1)
    facts.gives(t)
    integers(facts, lengths, "the lengths")
    shape = facts.shape(t)
    axis = axis_of(facts, facts.attr("axis"), len(shape))
    if axis > 1 or len(shape) < 2:
        raise ShapeError(
            f"sequence_mask: the axis is 0 or 1, and the other one of them that of the examples; axis is {axis}"
        )
    facts.equal(facts.rank(lengths, 1, what="the lengths")[0], shape[1 - axis])


@operator(
    "sequence_mask",
    ("data", "valid_length"),
    _sequence_mask,
    {"mask_value": Attr("float", 0.0), "axis": Attr("int", 0)},
)
def sequence_mask(b: Builder, data: Var, valid_length: Var, mask_value: float = 0.0, axis: int = 0) -> Var:
    """A number in place of the elements behind the end of each sequence."""
    x, lengths = array(data), array(valid_length)
    at = axis % x.ndim
    steps = astype(places_of(b, x.shape[at]), lengths.dtype)
    ones = [1] * (x.ndim - 2)
    if at == 0:
        inside = P.lt(reshaped(steps, [x.shape[0], 1, *ones]), reshaped(lengths, [1, x.shape[1], *ones]))
    else:
        inside = P.lt(reshaped(steps, [1, x.shape[1], *ones]), reshaped(lengths, [x.shape[0], 1, *ones]))
    return P.where(inside, x, constant(b, mask_value, x.dtype))
