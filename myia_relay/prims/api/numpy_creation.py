"""NumPy's functions that make arrays: zeros, ranges, identities, triangles."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import Dim
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..rules.broadcast import broadcast_to, cast, nullary, reshape
from ..rules.relations import show_shape
from .meanings import meaning
from .numpy_elementwise import dtype_name
from .numpy_shape import array_of, static_shape
from .promotion import (
    astype,
    fit,
    is_static,
    operand,
    python,
    require_static_int,
    size_value,
    static_int,
    static_value,
    strong,
    unwrap,
)


def _filled(b: Builder, value, shape, dtype, what: str) -> Var:
    value = operand(b, value, what)
    if dtype is None or value.dtype == "float64":
        value = strong(value)  # a Python float is cast here as any other
    value = value if dtype is None else fit(b, value, dtype_name(dtype))
    sizes = static_shape(shape, what)
    if any(isinstance(d, int) and d < 0 for d in sizes):
        raise ShapeError(f"{what}: negative dimensions are not allowed, and the shape is {show_shape(sizes)}")
    return broadcast_to(value, shape=sizes)


@meaning(np.zeros, np.empty, static=("dtype",))
def zeros(b: Builder, shape, dtype=float) -> Var:
    """np.zeros."""
    return _filled(b, 0, shape, dtype, "np.zeros")


@meaning(np.ones, static=("dtype",))
def ones(b: Builder, shape, dtype=float) -> Var:
    """np.ones."""
    return _filled(b, 1, shape, dtype, "np.ones")


@meaning(np.full, static=("dtype",))
def numpy_full(b: Builder, shape, fill_value, dtype=None) -> Var:
    """np.full."""
    return _filled(b, fill_value, shape, dtype, "np.full")


def _like(value):
    def rule(b: Builder, a, dtype=None, shape=None) -> Var:
        x = strong(operand(b, a))
        return _filled(b, value, x.shape if shape is None else shape, dtype or x.dtype, "np.zeros_like")

    return rule


meaning(np.zeros_like, np.empty_like, static=("dtype",))(_like(0))
meaning(np.ones_like, static=("dtype",))(_like(1))


@meaning(np.full_like, static=("dtype",))
def full_like(b: Builder, a, fill_value, dtype=None, shape=None) -> Var:
    """np.full_like."""
    x = strong(operand(b, a))
    return _filled(b, fill_value, x.shape if shape is None else shape, dtype or x.dtype, "np.full_like")


@meaning(np.arange, static=("dtype",))
def arange(b: Builder, start, stop=None, step=None, dtype=None) -> Var:
    """np.arange with ends known at compile time, or np.arange(n) for the size n of an axis."""
    first, last = (0, start) if stop is None else (start, stop)
    pace = 1 if step is None else step
    sizes = [static_int(v) for v in (first, last, pace)]
    if all(v is not None for v in sizes):
        lo, hi, by = sizes
        if by == 0:
            raise TypeError_("np.arange: step must not be 0")
        if any(isinstance(v, Dim) for v in sizes):
            if by != 1:
                raise TypeError_("np.arange of a symbolic size takes no step; multiply the result")
            out = nullary(_anchor(b), "iota", n=hi - lo, dtype="int64")
            if lo != 0:
                out = P.add(out, strong(size_value(b, lo)))
        else:
            out = nullary(_anchor(b), "iota", n=max(0, -((lo - hi) // by)), dtype="int64")
            if by != 1:
                out = P.mul(out, out.const(by))
            if lo != 0:
                out = P.add(out, out.const(lo))
    elif all(is_static(v) for v in (first, last, pace)):
        return python(b, np.arange(*(static_value(v) for v in (first, last, pace)), dtype=dtype and dtype_name(dtype)))
    else:
        raise TypeError_(
            "np.arange: start, stop and step decide the size of the result, which must be known at compile time; loop "
            "with `for i in range(n)`, or name the parameter in @relay(static=...)"
        )
    return out if dtype is None else astype(out, dtype_name(dtype))


def _anchor(b: Builder) -> Var:
    """Any staged value: what makes nullary primitives staged."""
    return python(b, 0)


@meaning(np.linspace, static=("endpoint", "dtype"))
def linspace(b: Builder, start, stop, num=50, endpoint=True, dtype=None) -> Var:
    """np.linspace between scalars."""
    lo, hi = (operand(b, v, "np.linspace") for v in (start, stop))
    num = require_static_int(num, "np.linspace: num")
    if is_static(lo) and is_static(hi) and isinstance(num, int):
        out = python(b, np.linspace(static_value(lo), static_value(hi), num, endpoint=endpoint))
        return out if dtype is None else astype(out, dtype_name(dtype))
    lo, hi = (unwrap(astype(v, "float64")) for v in (lo, hi))
    div = num - 1 if endpoint else num
    out = nullary(lo, "iota", n=num, dtype="float64")
    delta = hi - lo
    if isinstance(num, Dim):
        divisor = astype(P.maximum(size_value(b, div), python(b, 1)), "float64")
    else:
        divisor = delta.const(float(max(div, 1)))
    step = delta / divisor
    out = out * step + lo
    if endpoint and (isinstance(num, Dim) or num > 1):
        at = nullary(lo, "iota", n=num, dtype="int64")
        last = P.logical_and(P.eq(at, strong(size_value(b, num - 1))), P.gt(at, python(b, np.int64(0))))
        out = P.where(last, hi, out)
    return out if dtype is None else astype(out, dtype_name(dtype))


@meaning(np.eye, np.identity, static=("k", "dtype"))
def eye(b: Builder, N, M=None, k=0, dtype=float) -> Var:
    """np.eye."""
    n = require_static_int(N, "np.eye: a size")
    m = n if M is None else require_static_int(M, "np.eye: a size")
    anchor = _anchor(b)
    rows = reshape(nullary(anchor, "iota", n=n, dtype="int64"), shape=(n, 1))
    columns = nullary(anchor, "iota", n=m, dtype="int64")
    return cast(P.eq(P.add(rows, rows.const(k)), columns), dtype=dtype_name(dtype))


@meaning(np.tri, static=("k", "dtype"))
def tri(b: Builder, N, M=None, k=0, dtype=float) -> Var:
    """np.tri."""
    n = require_static_int(N, "np.tri: a size")
    m = n if M is None else require_static_int(M, "np.tri: a size")
    return cast(nullary(_anchor(b), "tri_mask", n=n, m=m, k=k), dtype=dtype_name(dtype))


def _triangle(upper: bool):
    def rule(b: Builder, m, k=0) -> Var:
        x = array_of(b, m, "np.triu" if upper else "np.tril")
        if x.ndim < 2:
            x = broadcast_to(x, shape=(x.shape[0], x.shape[0]))
        mask = nullary(x, "tri_mask", n=x.shape[-2], m=x.shape[-1], k=k - 1 if upper else k)
        zero = x.const(0)
        return P.where(mask, zero, x) if upper else P.where(mask, x, zero)

    return rule


meaning(np.tril, static=("k",))(_triangle(False))
meaning(np.triu, static=("k",))(_triangle(True))
