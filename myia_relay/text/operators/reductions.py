"""Reductions over lists of axes, running sums, positions of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...abstract.dims import DimLike
from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...ir.prim import Primitive
from ...prims.api.numpy_reductions import refuse_empty
from ...prims.api.promotion import astype
from ...prims.ops import elementwise as P
from ...prims.ops.control import stop_gradient
from ...prims.ops.reduction import (
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
from ...prims.ops.shape import flip
from ...prims.rules.broadcast import reduce_sum
from ...prims.rules.relations import NUMBERS
from ..terms.solver import Facts
from .declare import Attr, operator
from .elementwise import quotient
from .rules import EVERY, axes_of, axis_of, reduced, shape_first
from .staged import array, constant, cut, finished, number_of, padded, permuted, reshaped

AXES = {"axis": Attr("ints", None), "keepdims": Attr("bool", False), "exclude": Attr("bool", False)}


def chosen(name: str, rank: int, axis: tuple[int, ...] | None, exclude: bool) -> tuple[int, ...]:
    """The axes that a reduction goes over."""
    return axes_of(_Named(name), axis, rank, exclude)  # pyright: ignore[reportArgumentType]


class _Named:
    """Stands for `Facts` where a rule only needs the name of an operator."""

    def __init__(self, name: str):
        self.name = name


def _reduction(
    name: str,
    prim: Callable[..., Var] | Primitive,
    doc: str,
    accepted: tuple[str, ...] = NUMBERS,
    empty: str = "",
) -> None:
    def function(b: Builder, data: Var, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Var:
        x = array(data)
        axes = chosen(name, x.ndim, axis, exclude)
        if empty:
            refuse_empty(b, x, axes, empty)
        return finished(prim(x, axes=axes, keepdims=keepdims))

    operator(name, ("data",), reduced(accepted=accepted), AXES, doc=doc)(function)


_reduction("sum", reduce_sum, "The sum; integers wrap.")
_reduction("prod", reduce_prod, "The product; integers wrap.")
_reduction("max", reduce_max, "The greatest.", EVERY, "max of no elements")
_reduction("min", reduce_min, "The least.", EVERY, "min of no elements")
_reduction("all", reduce_all, "Whether all hold.", ("bool",))
_reduction("any", reduce_any, "Whether one holds.", ("bool",))


def mean_of(b: Builder, x: Var, axes: tuple[int, ...], keepdims: bool = False) -> Var:
    """The mean over axes; of integers it is truncated."""
    total = reduce_sum(x, axes=axes, keepdims=keepdims)
    count = number_of(b, [x.shape[k] for k in axes], x.dtype)
    return P.div(total, count) if x.type.is_float else quotient(total, count)


@operator("mean", ("data",), reduced(accepted=NUMBERS), AXES)
def mean(b: Builder, data: Var, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Var:
    """The mean; of integers it is truncated."""
    x = array(data)
    return finished(mean_of(b, x, chosen("mean", x.ndim, axis, exclude), keepdims))


def variance_of(b: Builder, x: Var, axes: tuple[int, ...], centre: Var | None, keepdims: bool, unbiased: bool) -> Var:
    """The mean of squared distances from the mean."""
    centre = mean_of(b, x, axes, True) if centre is None else array(centre)
    if centre.ndim < x.ndim:
        centre = reshaped(centre, [1 if k in axes else d for k, d in enumerate(x.shape)])
    away = P.sub(x, centre)
    total = reduce_sum(P.mul(away, away), axes=axes, keepdims=keepdims)
    count = number_of(b, [x.shape[k] for k in axes], x.dtype)
    return P.div(total, P.sub(count, count.const(1)) if unbiased else count)


SPREAD = {**AXES, "unbiased": Attr("bool", False)}


def _variance(facts: Facts) -> None:
    _SPREAD(facts)
    if facts.count > 1:
        x, mean = facts.tensor(0), facts.tensor(1)
        facts.same_dtype(x, mean)
        shape = facts.shape(x)
        over = axes_of(facts, facts.attr("axis"), len(shape), facts.attr("exclude"))
        own = facts.shape(mean)
        kept = len(own) == len(shape)
        wanted = tuple(1 if k in over else s for k, s in enumerate(shape) if kept or k not in over)
        facts.equal(mean.shape, wanted)


_SPREAD = reduced(accepted=FLOATS)


@operator("variance", ("data", "mean"), _variance, SPREAD, optional=1)
def variance(b: Builder, data: Var, mean=None, axis=None, keepdims=False, exclude=False, unbiased=False) -> Var:
    """The mean of squared distances from the mean, which may be given; `unbiased` divides by one less."""
    x = array(data)
    return finished(variance_of(b, x, chosen("variance", x.ndim, axis, exclude), mean, keepdims, unbiased))


@operator("std", ("data",), reduced(accepted=FLOATS), SPREAD)
def std(b: Builder, data: Var, axis=None, keepdims=False, exclude=False, unbiased=False) -> Var:
    """The standard deviation: the root of the variance."""
    x = array(data)
    return finished(P.sqrt(variance_of(b, x, chosen("std", x.ndim, axis, exclude), None, keepdims, unbiased)))


@operator("logsumexp", ("data",), reduced(accepted=FLOATS), AXES)
def logsumexp(b: Builder, data: Var, axis=None, keepdims=False, exclude=False) -> Var:
    """log(sum(exp(x))), without overflow."""
    x = array(data)
    axes = chosen("logsumexp", x.ndim, axis, exclude)
    top = stop_gradient(reduce_max(x, axes=axes, keepdims=True))
    top = P.where(P.isfinite(top), top, constant(b, 0, x.dtype))
    out = P.add(P.log(reduce_sum(P.exp(P.sub(x, top)), axes=axes, keepdims=True)), top)
    if not keepdims:
        out = reshaped(out, [d for k, d in enumerate(x.shape) if k not in axes])
    return finished(out)


# Positions.


def _position(name: str, prim: Primitive, doc: str) -> None:
    def function(b: Builder, data: Var, axis=None, keepdims=False, exclude=False, select_last_index=False) -> Var:
        x = array(data)
        axes = chosen(name, x.ndim, axis, exclude)
        refuse_empty(b, x, axes, f"{name} of no elements")
        rest = [k for k in range(x.ndim) if k not in axes]
        turned = permuted(x, [*rest, *axes])
        count: DimLike = 1
        for k in axes:
            count = count * x.shape[k]
        flat = reshaped(turned, [*(x.shape[k] for k in rest), count])
        if x.dtype == "bool":
            flat = astype(flat, "int8")
        last = len(rest)
        if select_last_index:
            flat = flip(flat, axes=(last,))
        out = astype(prim(flat, axis=last), "int32")
        if select_last_index:
            out = P.sub(P.sub(number_of(b, [count], "int32"), constant(b, 1, "int32")), out)
        if keepdims:
            out = reshaped(array(out), [1 if k in axes else d for k, d in enumerate(x.shape)])
        return finished(out)

    attrs = {**AXES, "select_last_index": Attr("bool", False)}
    operator(name, ("data",), reduced("int32"), attrs, doc=doc)(function)


_position("argmax", argmax, "The position of the first greatest element; with `select_last_index` of the last.")
_position("argmin", argmin, "The position of the first least element; with `select_last_index` of the last.")


# Running sums and products.


def _running(facts: Facts) -> None:
    t = facts.tensor(0)
    dtype = facts.attr("dtype") or t.dtype
    axis = facts.attr("axis")
    shape = shape_first(facts, t, dtype)
    if axis is None:
        size: Any = 1
        for s in shape:
            size = facts.compute(lambda x, y: x * y, size, s)
        facts.gives_tensor((size,), dtype)
        return
    axis_of(facts, axis, len(shape))
    facts.gives_tensor(shape, dtype)


RUNNING = {"axis": Attr("int", None), "dtype": Attr("dtype", None), "exclusive": Attr("bool", False)}


def _running_operator(name: str, start: int, scan: Callable[[Var, int], Var], doc: str) -> None:
    def function(b: Builder, data: Var, axis=None, dtype=None, exclusive=False) -> Var:
        x = array(data)
        if x.dtype == "bool":
            x = astype(x, dtype or "int32")
        x = x if dtype is None else astype(x, dtype)
        if axis is None:
            size: DimLike = 1
            for d in x.shape:
                size = size * d
            x, axis = reshaped(x, [size]), 0
        at = axis % x.ndim
        out = scan(x, at)
        if exclusive:
            shifted = padded(out, [(1, 0) if k == at else (0, 0) for k in range(x.ndim)], start)
            out = cut(shifted, at, 0, x.shape[at])
        return out

    operator(name, ("data",), _running, RUNNING, doc=doc)(function)


_running_operator(
    "cumsum", 0, lambda x, axis: cumsum(x, axis=axis), "Sums up to each element; without it if `exclusive`."
)
_running_operator("cumprod", 1, cumulative_product, "Products up to each element; without it if `exclusive`.")
