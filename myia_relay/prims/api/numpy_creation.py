"""NumPy's functions that make arrays: zeros, ranges, identities, triangles."""

from __future__ import annotations

import math

import numpy as np

from ...abstract.dims import Dim, DimLike, is_run_time, never_negative, product
from ...abstract.types import FLOATS, INTS
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_, ValueError_
from ..ops import elementwise as P
from ..ops.reduction import reduce_any
from ..rules.broadcast import broadcast_to, cast, nullary, reshape
from ..rules.relations import broadcast_shapes, normalise_axis
from .implementations import implements
from .numpy_elementwise import dtype_name
from .numpy_shape import array_of, sizes_of
from .products import permuted
from .promotion import (
    as_int,
    astype,
    bind_size,
    fit,
    guard,
    is_static,
    operand,
    python,
    result_dtype,
    size_value,
    static_index,
    static_int,
    static_size,
    static_value,
    strong,
    unwrap,
    weak,
)


def _filled(b: Builder, value, shape, dtype, what: str) -> Var:
    value = operand(b, value, what)
    if dtype is None or value.dtype == "float64":
        value = strong(value)  # a Python float is cast here as any other
    value = value if dtype is None else fit(b, value, dtype_name(dtype))
    return broadcast_to(value, shape=sizes_of(b, shape, what))


@implements(np.zeros, np.empty, static=("dtype",))
def zeros(b: Builder, shape, dtype=float) -> Var:
    """np.zeros."""
    return _filled(b, 0, shape, dtype or float, "np.zeros")


@implements(np.ones, static=("dtype",))
def ones(b: Builder, shape, dtype=float) -> Var:
    """np.ones."""
    return _filled(b, 1, shape, dtype or float, "np.ones")


@implements(np.full, static=("dtype",))
def numpy_full(b: Builder, shape, fill_value, dtype=None) -> Var:
    """np.full."""
    return _filled(b, fill_value, shape, dtype, "np.full")


def _like(value):
    def rule(b: Builder, a, dtype=None, *, shape=None) -> Var:
        x = strong(operand(b, a))
        return _filled(b, value, x.shape if shape is None else shape, dtype or x.dtype, "np.zeros_like")

    return rule


implements(np.zeros_like, np.empty_like, static=("dtype",))(_like(0))
implements(np.ones_like, static=("dtype",))(_like(1))


@implements(np.full_like, static=("dtype",))
def full_like(b: Builder, a, fill_value, dtype=None, *, shape=None) -> Var:
    """np.full_like."""
    x = strong(operand(b, a))
    return _filled(b, fill_value, x.shape if shape is None else shape, dtype or x.dtype, "np.full_like")


@implements(np.arange, static=("dtype",))
def arange(b: Builder, start, stop=None, step=None, dtype=None) -> Var:
    """np.arange. The size is known at compile time where the ends are, or where they are sizes of axes.

    Raises:
        TypeError_: NumPy refuses the arguments.
    """
    ends = first, last, pace = *((0, start) if stop is None else (start, stop)), 1 if step is None else step
    name = None if dtype is None else dtype_name(dtype)
    sizes = [static_int(v) for v in ends]
    known = [v for v in sizes if v is not None]
    if any(isinstance(v, Dim) for v in known) and len(known) == 3:
        counted = _symbolic_range(b, *known)
        if counted is None:
            return _run_time_range(b, [size_value(b, v) for v in known], name)
        out = counted
    elif not all(is_static(v) for v in ends):
        return _run_time_range(b, [operand(b, v, "np.arange") for v in ends], name)
    elif all(type(static_value(v)) is int for v in ends) and name in (None, *FLOATS, "int64"):
        start, stop, step = map(static_value, ends)
        if step == 0:
            raise TypeError_("np.arange: step must not be 0")
        out = nullary(_anchor(b), "iota", n=max(0, -((start - stop) // step)), dtype="int64")
        if step != 1:
            out = P.mul(out, out.const(step))
        if start != 0:
            out = P.add(out, out.const(start))
    else:
        try:
            return python(b, np.arange(*map(static_value, ends), dtype=name))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise TypeError_(f"np.arange: {error}") from None
    return out if name is None else astype(out, name)


def _symbolic_range(b: Builder, first: DimLike, last: DimLike, step: DimLike) -> Var | None:
    """The numbers from one size to another; None where only the run tells how many there are."""
    size = last - first
    if isinstance(step, int) and step not in (0, 1):
        span, by = (size, step) if step > 0 else (-size, -step)
        if not never_negative(span):
            return None
        out = nullary(_anchor(b), "iota", n=(span + (by - 1)) // by, dtype="int64")
        return P.add(P.mul(out, out.const(step)), strong(size_value(b, first)))
    if step != 1 or is_run_time(size) and not never_negative(size):
        return None
    if isinstance(size, Dim) and not never_negative(size):
        count = size_value(b, size)
        text = "np.arange in compiled code takes no stop before its start where sizes decide it; they are apart by "
        guard(b, P.ge(count, count.const(0)), ValueError, text, 0, operands=(count,))
    out = nullary(_anchor(b), "iota", n=size, dtype="int64")
    return out if first == 0 else P.add(out, strong(size_value(b, first)))


def _run_time_range(b: Builder, ends: list[Var], name: str | None) -> Var:
    """The numbers between ends of which a run tells.

    Raises:
        TypeError_: the ends are no ints or floats.
    """
    if any(x.shape != () or x.dtype not in ("int64", "float64") for x in ends):
        kinds = ", ".join(str(x.type) for x in ends)
        raise TypeError_(
            f"np.arange takes ints and floats where they are known at run time only, and these are {kinds}; convert them with "
            "int(...) or float(...)"
        )
    kind = result_dtype(ends, "np.arange")
    first, last, step = (unwrap(astype(x, kind)) for x in ends)
    text = "Maximum allowed size exceeded"
    guard(b, P.ne(step, step.const(0)), ZeroDivisionError, "division by zero")
    if kind == "int64":
        first, last, step = (weak(x, "int64") for x in (first, last, step))
        guard(b, P.logical_not(P.sub_overflows(last, first)), ValueError, text)
        count = P.neg(P.floordiv(P.sub(first, last), step))
    else:
        span = P.ceil(P.div(P.sub(last, first), step))
        limit = span.const(2.0**62)
        guard(b, P.logical_and(P.lt(span, limit), P.gt(span, P.neg(limit))), ValueError, text)
        count = cast(span, dtype="int64", weak=True)
    n = bind_size(b, P.maximum(count, count.const(0)))
    places = nullary(first, "iota", n=n, dtype=kind)
    if kind == "int64":
        out = P.add(P.mul(places, strong(step)), strong(first))
    else:
        pace = P.sub(P.add(first, step), first)  # as NumPy does, from the second number on
        out = P.add(P.mul(places, pace), first)
        out = P.where(P.eq(places, places.const(1)), P.add(first, step), out)
    return out if name is None else astype(out, name)


def _anchor(b: Builder) -> Var:
    """Any staged value: what makes nullary primitives staged."""
    return python(b, 0)


@implements(np.linspace, static=("endpoint", "retstep", "dtype", "axis"))
def linspace(b: Builder, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """np.linspace: between numbers, or along a new axis between arrays.

    Raises:
        ValueError_: the array is too big.
    """
    lo, hi = (operand(b, v, "np.linspace") for v in (start, stop))
    if is_static(num) and isinstance(static_value(num), bool):
        num = int(static_value(num))
    if static_int(num) is None:
        num = as_int(b, num, "np.linspace: num")
        text = "Number of samples, "
        guard(b, P.ge(num, num.const(0)), ValueError, text, 0, ", must be non-negative.", operands=(num,))
    num = static_size(b, num, "np.linspace: num")
    name = None if dtype is None else dtype_name(dtype)
    shape = broadcast_shapes("np.linspace", lo.shape, hi.shape)
    at = normalise_axis("np.linspace", axis, shape, new=1)
    if is_static(lo) and is_static(hi) and isinstance(num, int):
        try:
            with np.errstate(all="ignore"):
                made = np.linspace(static_value(lo), static_value(hi), num, endpoint, retstep=True, dtype=name, axis=at)
        except ValueError as error:
            raise ValueError_(f"np.linspace: {error}") from None
        return (python(b, made[0]), python(b, made[1])) if retstep else python(b, made[0])
    inexact = result_dtype((lo, hi), "np.linspace")
    inexact = inexact if inexact in FLOATS else "float64"
    lo, hi = (unwrap(astype(v, inexact)) for v in (lo, hi))
    div = num - 1 if endpoint else num
    delta = P.sub(hi, lo)
    numbers = reshape(nullary(lo, "iota", n=num, dtype=inexact), shape=(num, *(1,) * len(shape)))
    if isinstance(div, Dim) or div > 0:
        divisor = astype(P.maximum(size_value(b, div), python(b, 1)), inexact)
        step = unwrap(P.div(delta, divisor))
        # Where a step is too small for a float NumPy scales first.
        vanishes = P.eq(step, step.const(0))
        if shape:
            vanishes = reduce_any(vanishes, axes=tuple(range(len(shape))))
        out = P.where(vanishes, P.mul(P.div(numbers, divisor), delta), P.mul(numbers, step))
    else:
        step = math.nan
        out = P.mul(numbers, delta)
    out = P.add(out, lo)
    if endpoint and (isinstance(num, Dim) or num > 1):
        places = reshape(nullary(lo, "iota", n=num, dtype="int64"), shape=(num, *(1,) * len(shape)))
        last = P.logical_and(P.eq(places, strong(size_value(b, num - 1))), P.gt(places, python(b, np.int64(0))))
        out = P.where(last, hi, out)
    if at:
        out = permuted(out, (*range(1, at + 1), 0, *range(at + 1, len(shape) + 1)))
    if name in INTS:
        out = P.floor(out)
    out = out if name is None else astype(out, name)
    return (out, step) if retstep else out


@implements(np.eye, static=("k", "dtype"))
def eye(b: Builder, N, M=None, k=0, dtype=float) -> Var:
    """np.eye."""
    n = static_size(b, N, "np.eye: N")
    m = n if M is None else static_size(b, M, "np.eye: M")
    anchor = _anchor(b)
    rows = reshape(nullary(anchor, "iota", n=n, dtype="int64"), shape=(n, 1))
    columns = nullary(anchor, "iota", n=m, dtype="int64")
    on = P.eq(P.add(rows, rows.const(static_index(k, "np.eye: k"))), columns)
    return cast(on, dtype=dtype_name(dtype))


@implements(np.identity, static=("dtype",))
def identity(b: Builder, n, dtype=float) -> Var:
    """np.identity."""
    return eye(b, n, dtype=dtype)


@implements(np.tri, static=("k", "dtype"))
def tri(b: Builder, N, M=None, k=0, dtype=float) -> Var:
    """np.tri."""
    n = static_size(b, N, "np.tri: N")
    m = n if M is None else static_size(b, M, "np.tri: M")
    return cast(nullary(_anchor(b), "tri_mask", n=n, m=m, k=static_index(k, "np.tri: k")), dtype=dtype_name(dtype))


def _triangle(upper: bool):
    def rule(b: Builder, m, k=0) -> Var:
        name = "np.triu" if upper else "np.tril"
        x, k = array_of(b, m, name), static_index(k, f"{name}: k")
        if not x.ndim:
            raise ShapeError(f"{name} takes an array with at least one axis, and this has none")
        if x.ndim < 2:
            x = broadcast_to(x, shape=(x.shape[0], x.shape[0]))
        mask = nullary(x, "tri_mask", n=x.shape[-2], m=x.shape[-1], k=k - 1 if upper else k)
        zero = x.const(0)
        return P.where(mask, zero, x) if upper else P.where(mask, x, zero)

    return rule


implements(np.tril, static=("k",))(_triangle(False))
implements(np.triu, static=("k",))(_triangle(True))


@implements(np.meshgrid, static=("indexing",))
def meshgrid(b: Builder, *xi, indexing="xy"):
    """np.meshgrid: arrays of coordinates, one axis for each operand.

    Raises:
        ShapeError: `indexing` is unknown.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError("Valid values for `indexing` are 'xy' and 'ij'.")
    xs = [array_of(b, x, "np.meshgrid") for x in xi]
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[:2] = 1, 0
    sizes = [product(x.shape) for x in xs]
    shape = tuple(sizes[places.index(k)] for k in range(len(xs)))
    own = [tuple(size if k == place else 1 for k in range(len(xs))) for size, place in zip(sizes, places, strict=True)]
    return tuple(broadcast_to(reshape(x, shape=s), shape=shape) for x, s in zip(xs, own, strict=True))
