"""Reductions, softmax and its kin, cumulative operators."""

from __future__ import annotations

import numpy as np

from ....abstract.types import INTS, Array
from ....ir.build import Var
from ....ir.prim import REGISTRY
from ....prims.ops import elementwise as P
from ....prims.ops.reduction import argmax, argmin, reduce_all, reduce_any, reduce_max, reduce_min, reduce_prod
from ....prims.rules.broadcast import as_array, broadcast_to, cast, reduce_sum, reshape
from ....prims.rules.relations import normalise_axis
from ..table import Context, operator

LATER = {"ReduceSum": 13}
"""The operator set in which the axes of a reduction became an input: 18 for all others."""


def reduced(prim, x: Var, axes: tuple, keepdims: bool) -> Var:
    """A reduction; over no axes the tensor itself."""
    out = prim(x, axes=axes, keepdims=keepdims)
    return out if isinstance(out.type, Array) else as_array(out)


def total(x: Var, axes: tuple, keepdims: bool) -> Var:
    """A sum; that of floats of 16 bits in float32, rounded once."""
    if x.dtype in ("float16", "bfloat16"):
        return cast(reduced(reduce_sum, cast(x, dtype="float32"), axes, keepdims), dtype=x.dtype)
    return reduced(reduce_sum, x, axes, keepdims)


def highest(x: Var, axes: tuple, keepdims: bool) -> Var:
    """A maximum; of booleans whether one holds."""
    return reduced(reduce_any if x.dtype == "bool" else reduce_max, x, axes, keepdims)


def least(x: Var, axes: tuple, keepdims: bool) -> Var:
    """A minimum; of booleans whether all hold."""
    return reduced(reduce_all if x.dtype == "bool" else reduce_min, x, axes, keepdims)


def empty(x: Var, axes: tuple) -> bool:
    """Whether a reduction is over no elements."""
    return any(x.shape[a] == 0 for a in axes)


def limit(dtype: str, top: bool):
    """What the maximum or minimum over no elements is."""
    if dtype == "bool":
        return top
    if dtype in INTS:
        return np.iinfo(dtype).max if top else np.iinfo(dtype).min
    return np.inf if top else -np.inf


def _extremum(rule, top: bool):
    def apply(c: Context, x, axes, keepdims):
        if empty(x, axes):
            shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape) if keepdims or k not in axes)
            return broadcast_to(c.constant(limit(x.dtype, top), x.dtype), shape=shape)
        return rule(x, axes, keepdims)

    return apply


def mean(c: Context, x: Var, axes: tuple, keepdims: bool) -> Var:
    """The mean; of integers truncated."""
    if x.dtype in INTS:
        return cast(mean(c, cast(x, dtype="float64"), axes, keepdims), dtype=x.dtype)
    wide = cast(x, dtype="float32") if x.dtype in ("float16", "bfloat16") else x
    from ....prims.api.numpy_reductions import count

    out = P.div(reduced(reduce_sum, wide, axes, keepdims), count(c.b, wide, axes, wide.dtype))
    return cast(out, dtype=x.dtype)


def log_sum_exp(c: Context, x: Var, axes: tuple, keepdims: bool) -> Var:
    """log(sum(exp(x))) without overflow."""
    if x.dtype in INTS:
        return cast(log_sum_exp(c, cast(x, dtype="float64"), axes, keepdims), dtype=x.dtype)
    if empty(x, axes):
        return P.log(total(P.exp(x), axes, keepdims))
    out = c.relay("logsumexp", x, axis=axes, keepdims=keepdims) if axes else x
    return out if isinstance(out.type, Array) else as_array(out)


def length(x: Var, axes: tuple, keepdims: bool) -> Var:
    """The root of the sum of squares; of integers in float64, truncated."""
    if x.dtype in INTS:
        return cast(length(cast(x, dtype="float64"), axes, keepdims), dtype=x.dtype)
    return P.sqrt(total(P.mul(x, x), axes, keepdims))


def _in_floats(function):
    """A function of floats, of integers through float64."""

    def apply(x: Var) -> Var:
        return cast(function(cast(x, dtype="float64")), dtype=x.dtype) if x.dtype in INTS else function(x)

    return apply


REDUCTIONS = {
    "ReduceSum": lambda c, x, a, k: total(x, a, k),
    "ReduceProd": lambda c, x, a, k: reduced(reduce_prod, x, a, k),
    "ReduceMax": _extremum(highest, False),
    "ReduceMin": _extremum(least, True),
    "ReduceMean": mean,
    "ReduceL1": lambda c, x, a, k: total(P.abs_(x), a, k),
    "ReduceL2": lambda c, x, a, k: length(x, a, k),
    "ReduceSumSquare": lambda c, x, a, k: total(P.mul(x, x), a, k),
    "ReduceLogSum": lambda c, x, a, k: _in_floats(P.log)(total(x, a, k)),
    "ReduceLogSumExp": log_sum_exp,
}
ALONE = {
    "ReduceL1": P.abs_, "ReduceL2": P.abs_, "ReduceSumSquare": lambda x: P.mul(x, x), "ReduceLogSum": _in_floats(P.log),
}  # fmt: skip
"""What a reduction over no axes (`noop_with_empty_axes`) does to each element."""


def _reduction(name: str):
    def reduce(c: Context, x, axes, keepdims, noop):
        if axes is None or len(axes) == 0:
            if noop:
                return ALONE.get(name, lambda v: v)(x)
            axes = range(len(x.shape))
        found = tuple(sorted({normalise_axis(name, int(a), x.shape) for a in axes}))
        return REDUCTIONS[name](c, x, found, bool(keepdims))

    def old(c: Context, x, *, axes=None, keepdims=1):
        return reduce(c, x, axes, keepdims, 0)

    def new(c: Context, x, axes=None, *, keepdims=1, noop_with_empty_axes=0):
        return reduce(c, x, None if axes is None else np.atleast_1d(axes), keepdims, noop_with_empty_axes)

    later = LATER.get(name, 18)
    operator(name, until=later - 1)(old)
    operator(name, since=later, static=("axes",))(new)


for _name in REDUCTIONS:
    _reduction(_name)


def _position(prim):
    def rule(c: Context, x, *, axis=0, keepdims=1, select_last_index=0):
        at = normalise_axis("axis", axis, x.shape)
        if select_last_index:
            found = as_array(prim(REGISTRY["flip"](x, axes=(at,)), axis=at))
            from ....prims.api.promotion import size_value

            last = size_value(c.b, x.shape[at])
            found = as_array(cast(last - last.const(1), dtype="int64", weak=False)) - found
        else:
            found = as_array(prim(x, axis=at))
        return reshape(found, shape=(*x.shape[:at], 1, *x.shape[at + 1 :])) if keepdims else found

    return rule


operator("ArgMax")(_position(argmax))
operator("ArgMin")(_position(argmin))


# Softmax and its kin.


def in_two(rule):
    """How operator sets before 13 define it: on a matrix of the axes before an axis and the others."""

    def apply(c: Context, x, *, axis=1):
        at = axis + len(x.shape) if axis < 0 else axis
        from ....abstract.dims import product

        flat = reshape(x, shape=(product(x.shape[:at]), product(x.shape[at:])))
        return reshape(rule(c, flat, axis=1), shape=x.shape)

    return apply


def softmax(c: Context, x, *, axis=-1):
    """exp(x) / sum(exp(x)) along an axis. In float16 each step of its definition by operators rounds, as in ONNX's."""
    if x.dtype in ("float16", "bfloat16") and x.shape:
        at = (normalise_axis("Softmax", axis, x.shape),)
        e = P.exp(x - reduce_max(x, axes=at, keepdims=True))
        return e / reduce_sum(e, axes=at, keepdims=True)
    return as_array(c.relay("softmax", x, axis)) if x.shape else c.constant(1, x.dtype)


def log_softmax(c: Context, x, *, axis=-1):
    """log(softmax(x))."""
    if x.dtype in ("float16", "bfloat16"):
        return cast(log_softmax(c, cast(x, dtype="float32"), axis=axis), dtype=x.dtype)
    return as_array(c.relay("log_softmax", x, axis)) if x.shape else c.constant(0, x.dtype)


def hardmax(c: Context, x, *, axis=-1):
    """1 at the first maximum along an axis, 0 elsewhere."""
    at = normalise_axis("Hardmax", axis, x.shape)
    from .shapes import as_positions

    n = x.shape[at]
    place = as_array(argmax(x, axis=at))
    place = reshape(place, shape=(*x.shape[:at], 1, *x.shape[at + 1 :]))
    index = reshape(as_positions(c, n), shape=tuple(n if k == at else 1 for k in range(len(x.shape))))
    return cast(P.eq(place, index), dtype=x.dtype)


for _name, _rule in (("Softmax", softmax), ("LogSoftmax", log_softmax), ("Hardmax", hardmax)):
    operator(_name, until=12)(in_two(_rule))
    operator(_name, since=13)(_rule)


@operator("LpNormalization")
def lp_normalization(c: Context, x, *, axis=-1, p=2):
    """x divided by its p-norm along an axis; zeros stay."""
    at = normalise_axis("LpNormalization", axis, x.shape)
    norm = P.abs_(x) if p == 1 else P.mul(x, x)
    size = total(norm, (at,), True)
    size = size if p == 1 else P.sqrt(size)
    return P.div(x, P.where(P.eq(size, size.const(0)), size.const(1), size))


# Cumulative.


def _shifted(c: Context, x: Var, at: int, fill: float) -> Var:
    """The elements moved up by one along an axis, the last one dropped."""
    n = x.shape[at]
    rank = len(x.shape)
    kept = REGISTRY["slice"](
        x, starts=(0,) * rank, sizes=tuple(n - 1 if k == at else d for k, d in enumerate(x.shape)), steps=(1,) * rank
    )
    low = tuple(1 if k == at else 0 for k in range(rank))
    value = c.b.var(c.b.constant(np.asarray(fill, x.dtype)[()]))
    return REGISTRY["pad"](kept, value, low=low, high=(0,) * rank, interior=(0,) * rank)


def _cumulative(function, neutral: float):
    def rule(c: Context, x, axis, *, exclusive=0, reverse=0):
        at = normalise_axis("axis", int(np.asarray(axis).reshape(())), x.shape)
        if x.shape[at] == 0:
            return x
        if reverse:
            x = REGISTRY["flip"](x, axes=(at,))
        if exclusive:
            x = _shifted(c, x, at, neutral)
        out = c.numpy(function, x, axis=at, dtype=x.dtype)
        return REGISTRY["flip"](out, axes=(at,)) if reverse else out

    return rule


operator("CumSum", static=("axis",))(_cumulative(np.cumsum, 0))
operator("CumProd", static=("axis",))(_cumulative(np.cumprod, 1))
