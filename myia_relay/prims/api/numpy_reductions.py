"""NumPy's reductions: sums, means, extrema, positions of extrema; running sums, and differences."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import Dim, DimLike, never_negative, product
from ...abstract.types import FLOATS, INTS, Array, float_dtype
from ...ir.build import Builder, Var
from ...library import refusals
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.reduction import (
    argmax,
    argmin,
    cumsum,
    cumulative_product,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
)
from ..ops.shape import slice_
from ..rules.broadcast import as_array, reduce_sum, reshape
from ..rules.relations import normalise_axes, normalise_axis, show_shape
from .arithmetic import sub
from .implementations import implements, method
from .numpy_elementwise import dtype_name
from .numpy_shape import array_of, ravel
from .promotion import (
    as_int,
    astype,
    fit,
    guard,
    is_static,
    operand,
    promote,
    python,
    size_value,
    static_index,
    static_value,
    strong,
    unwrap,
    weak,
)
from .subscripts import getitem


def sum_dtype(dtype: str) -> str:
    """The dtype that NumPy sums in: small integers and booleans are widened."""
    if dtype == "bool" or (dtype in INTS and not dtype.startswith("u")):
        return "int64"
    return "uint64" if dtype in INTS else dtype


def reducible(b: Builder, a, what: str) -> Var:
    """The operand of a reduction, as an array."""
    x = strong(operand(b, a, what))
    return x if isinstance(x.type, Array) else as_array(x)


def count(b: Builder, x: Var, axes: tuple[int, ...], dtype: str) -> Var:
    """How many elements a reduction takes together, as a NumPy scalar of a dtype."""
    total: DimLike = product(x.shape[a] for a in axes)
    return astype(size_value(b, total), dtype)


@implements(np.sum, static=("axis", "dtype", "keepdims"))
def sum_(b: Builder, a, axis=None, dtype=None, *, keepdims=False, initial=None) -> Var:
    """np.sum."""
    x = reducible(b, a, "np.sum")
    x = astype(x, dtype_name(dtype) if dtype is not None else sum_dtype(x.dtype))
    out = reduce_sum(x, axes=normalise_axes("np.sum", axis, x.shape), keepdims=bool(keepdims))
    if initial is None:
        return out
    start = _start(b, initial, out.dtype)
    total = P.add(out, start)
    if not x.type.is_float or (
        is_static(initial) and (static_value(initial) != 0 or not np.signbit(static_value(initial)))
    ):
        return total
    # A sum that starts at -0.0 keeps that value as long as all terms are -0.0.
    alone = reduce_all(_is_minus_zero(x), axes=normalise_axes("np.sum", axis, x.shape), keepdims=bool(keepdims))
    return P.where(P.logical_and(alone, _is_minus_zero(start)), start, total)


def _start(b: Builder, initial, dtype: str) -> Var:
    """What a reduction begins with. NumPy casts its scalars to unsigned dtypes; signed ones hold the number or raise."""
    x = operand(b, initial, "initial")
    signed = dtype in INTS and not dtype.startswith("u")
    if signed and x.dtype not in ("bool", dtype) and x.shape == ():
        x = weak(unwrap(x), "float64") if x.type.is_float else as_int(b, x, "initial")
    return fit(b, x, dtype)


def _is_minus_zero(x: Var) -> Var:
    zero = x.const(0)
    return P.logical_and(P.eq(x, zero), P.lt(P.div(x.const(1), x), zero))


@implements(np.prod, static=("axis", "dtype", "keepdims"))
def prod(b: Builder, a, axis=None, dtype=None, *, keepdims=False) -> Var:
    """np.prod."""
    x = reducible(b, a, "np.prod")
    x = astype(x, dtype_name(dtype) if dtype is not None else sum_dtype(x.dtype))
    return reduce_prod(x, axes=normalise_axes("np.prod", axis, x.shape), keepdims=bool(keepdims))


def refuse_empty(b: Builder, x: Var, axes: tuple[int, ...], text: str) -> None:
    """There is no greatest element, or position of one, where there are none: ValueError, as in NumPy.

    Raises:
        ShapeError: at compile time, where the sizes are known.
    """
    sizes = [x.shape[k] for k in axes]
    if any(size == 0 for size in sizes):
        raise ShapeError(f"{text}: the shape is {show_shape(x.shape)}")
    for size in sizes:
        if isinstance(size, Dim) and not never_negative(size - 1):
            count = size_value(b, size)
            guard(b, P.gt(count, python(b, 0)), ValueError, text)


NO_IDENTITY = "zero-size array to reduction operation {}imum which has no identity"


def _extremum(name: str, prim, pair):
    text = NO_IDENTITY.format(name)

    def rule(b: Builder, a, axis=None, *, keepdims=False, initial=None) -> Var:
        x = reducible(b, a, f"np.{name}")
        axes = normalise_axes(f"np.{name}", axis, x.shape)
        if initial is None:
            refuse_empty(b, x, axes, text)
        out = prim(x, axes=axes, keepdims=bool(keepdims))
        return out if initial is None else pair(_start(b, initial, out.dtype), out)

    return rule


max_ = _extremum("max", reduce_max, P.maximum)
min_ = _extremum("min", reduce_min, P.minimum)
implements(np.max, np.amax, static=("axis", "keepdims"))(max_)
implements(np.min, np.amin, static=("axis", "keepdims"))(min_)


def _in_wide_floats(x: Var) -> Var:
    """What NumPy computes means in: integers in float64, half precision in float32."""
    if not x.type.is_float:
        return astype(x, "float64")
    return astype(x, "float32") if x.dtype in ("float16", "bfloat16") else x


@implements(np.mean, static=("axis", "dtype", "keepdims"))
def mean(b: Builder, a, axis=None, dtype=None, *, keepdims=False) -> Var:
    """np.mean; an integer dtype sums in it and rounds the quotient towards zero.

    Raises:
        TypeError_: the dtype is bool.
    """
    x = reducible(b, a, "np.mean")
    axes = normalise_axes("np.mean", axis, x.shape)
    if dtype is None:
        wide, result = _in_wide_floats(x), x.dtype if x.type.is_float else "float64"
    else:
        result = dtype_name(dtype)
        if result == "bool":
            raise TypeError_("np.mean with dtype=bool is whether any element holds; write np.any(x)")
        wide = astype(x, result)
    total = reduce_sum(wide, axes=axes, keepdims=bool(keepdims))
    total = total if wide.type.is_float else astype(total, "float64")
    return astype(P.div(total, count(b, x, axes, total.dtype)), result)


@implements(np.var, static=("axis", "dtype", "ddof", "keepdims"))
def var(b: Builder, a, axis=None, dtype=None, *, ddof=0, keepdims=False) -> Var:
    """np.var: the mean of squared distances from the mean.

    Raises:
        TypeError_: the dtype is no float.
    """
    x = reducible(b, a, "np.var")
    kind = (x.dtype if x.type.is_float else "float64") if dtype is None else dtype_name(dtype)
    if kind not in FLOATS:
        raise TypeError_(f"np.var and np.std with dtype={kind} are not supported; convert the result with .astype(...)")
    axes = normalise_axes("np.var", axis, x.shape)
    wide = _in_wide_floats(x) if dtype is None else astype(x, kind)
    centre = P.div(reduce_sum(wide, axes=axes, keepdims=True), count(b, x, axes, wide.dtype))
    away = P.sub(*promote(b, wide if dtype is None else x, centre))
    squares = P.mul(away, away)
    freedom = count(b, x, axes, wide.dtype)
    if ddof != 0:
        freedom = P.maximum(P.sub(freedom, freedom.const(ddof)), freedom.const(0))
    out = P.div(reduce_sum(astype(squares, wide.dtype), axes=axes, keepdims=bool(keepdims)), freedom)
    return astype(out, kind)


@implements(np.std, static=("axis", "dtype", "ddof", "keepdims"))
def std(b: Builder, a, axis=None, dtype=None, *, ddof=0, keepdims=False) -> Var:
    """np.std."""
    return P.sqrt(var(b, a, axis, dtype, ddof=ddof, keepdims=keepdims))


@implements(np.ptp, static=("axis", "keepdims"))
def ptp(b: Builder, a, axis=None, *, keepdims=False) -> Var:
    """np.ptp."""
    return P.sub(max_(b, a, axis, keepdims=keepdims), min_(b, a, axis, keepdims=keepdims))


def _quantifier(name: str, prim):
    def rule(b: Builder, a, axis=None, *, keepdims=False) -> Var:
        x = astype(reducible(b, a, f"np.{name}"), "bool")
        return prim(x, axes=normalise_axes(f"np.{name}", axis, x.shape), keepdims=bool(keepdims))

    return rule


all_ = implements(np.all, static=("axis", "keepdims"))(_quantifier("all", reduce_all))
any_ = implements(np.any, static=("axis", "keepdims"))(_quantifier("any", reduce_any))


COUNTS_ARE_INTS = type(np.count_nonzero(np.zeros(1))) is int
"""NumPy before 2.3 gives an int of Python for a whole array."""


@implements(np.count_nonzero, static=("axis", "keepdims"))
def count_nonzero(b: Builder, a, axis=None, *, keepdims=False) -> Var:
    """np.count_nonzero."""
    out = sum_(b, astype(reducible(b, a, "np.count_nonzero"), "bool"), axis, keepdims=keepdims)
    return weak(out, "int64") if axis is None and not keepdims and COUNTS_ARE_INTS else out


def _position(name: str, prim):
    def rule(b: Builder, a, axis=None, *, keepdims=False) -> Var:
        x = reducible(b, a, f"np.{name}")
        shape = x.shape
        if axis is None:
            x, at = reshape(x, shape=(product(shape),)), 0
        else:
            at = normalise_axis(f"np.{name}", axis, x.shape)
        refuse_empty(b, x, (at,), f"attempt to get {name} of an empty sequence")
        out = prim(x, axis=at)
        if not keepdims:
            return out
        kept = (1,) * len(shape) if axis is None else tuple(1 if k == at else d for k, d in enumerate(shape))
        return unwrap(reshape(out, shape=kept))

    return rule


implements(np.argmax, static=("axis", "keepdims"))(_position("argmax", argmax))
implements(np.argmin, static=("axis", "keepdims"))(_position("argmin", argmin))

for _name, _rule, _static in (
    ("sum", sum_, ("axis", "dtype", "keepdims")),
    ("prod", prod, ("axis", "dtype", "keepdims")),
    ("mean", mean, ("axis", "dtype", "keepdims")),
    ("var", var, ("axis", "dtype", "ddof", "keepdims")),
    ("std", std, ("axis", "dtype", "ddof", "keepdims")),
    ("max", max_, ("axis", "keepdims")),
    ("min", min_, ("axis", "keepdims")),
    ("all", all_, ("axis", "keepdims")),
    ("any", any_, ("axis", "keepdims")),
    ("argmax", _position("argmax", argmax), ("axis", "keepdims")),
    ("argmin", _position("argmin", argmin), ("axis", "keepdims")),
):
    method(_name, static=_static)(_rule)


_OUTSIDE = "it is not part of compiled code; call it outside and pass the result"
_REFUSED = {
    **dict.fromkeys((np.linalg.eig, np.linalg.eigvals), f"{_OUTSIDE}, or use np.linalg.eigh of a symmetric matrix"),
}


def _refusal(function, why: str):
    def refuse(b: Builder, *args, **kwargs):
        raise TypeError_(f"np.{'linalg.' * ('linalg' in function.__module__)}{function.__name__}: {why}")

    return refuse


for _fn, _why in _REFUSED.items():
    implements(_fn)(_refusal(_fn, _why))


@implements(refusals.unsupported, static=("why",))
def _(b: Builder, why):
    raise TypeError_(why)


@implements(refusals.misfit, static=("why",))
def _(b: Builder, why):
    raise ShapeError(why)


__all__ = ["Dim", "float_dtype", "sum_dtype"]


# Running sums, differences.


@implements(np.cumsum, static=("axis", "dtype"))
def numpy_cumsum(b: Builder, a, axis=None, dtype=None) -> Var:
    """np.cumsum."""
    x = array_of(b, a, "np.cumsum")
    x = astype(x, dtype_name(dtype) if dtype is not None else sum_dtype(x.dtype))
    if axis is None:
        x, axis = ravel(b, x), 0
    return cumsum(x, axis=normalise_axis("np.cumsum", axis, x.shape))


method("cumsum", static=("axis", "dtype"))(numpy_cumsum)


@implements(np.cumprod, static=("axis", "dtype"))
def cumprod(b: Builder, a, axis=None, dtype=None) -> Var:
    """np.cumprod."""
    x = array_of(b, a, "np.cumprod")
    x = astype(x, dtype_name(dtype) if dtype is not None else sum_dtype(x.dtype))
    if axis is None:
        x, axis = ravel(b, x), 0
    return cumulative_product(x, normalise_axis("np.cumprod", axis, x.shape))


method("cumprod", static=("axis", "dtype"))(cumprod)


@implements(np.diff, static=("n", "axis"))
def diff(b: Builder, a, n=1, axis=-1) -> Var:
    """np.diff.

    Raises:
        ShapeError: n is negative.
    """
    x = array_of(b, a, "np.diff")
    axis = normalise_axis("np.diff", axis, x.shape)
    if static_index(n, "np.diff: n") < 0:
        raise ShapeError(f"np.diff: order must be non-negative but got {n}")
    for _ in range(n):
        size = x.shape[axis]
        if isinstance(size, Dim) and not never_negative(size - 1):  # it may be empty, and is then what is left of it
            before = (slice(None),) * axis
            x = sub(b, getitem(b, x, (*before, slice(1, None))), getitem(b, x, (*before, slice(None, -1))))
            continue
        ends = []
        for first in (1, 0):
            starts = tuple(first if k == axis and size != 0 else 0 for k in range(x.ndim))
            sizes = tuple((size - 1 if size != 0 else 0) if k == axis else d for k, d in enumerate(x.shape))
            ends.append(slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.ndim))
        x = sub(b, *ends)
    return x
