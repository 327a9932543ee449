"""Operators whose result's shape is computed: what are attributes elsewhere are tensors here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.dims import DimLike
from ...abstract.dims import product as product_of
from ...ir.build import Builder, Var
from ...ir.node import Constant
from ...prims.api.implementations import IMPLEMENTATIONS
from ...prims.api.promotion import run_time_size, size_value, strong
from ...prims.ops import elementwise as P
from ...prims.rules.broadcast import as_scalar, broadcast_to, cast
from ...utils.errors import ShapeError
from ..terms.show import show
from ..terms.solver import Facts
from ..terms.terms import ANY, tensor, tuple_term
from .creation import ONE_HOT
from .declare import Attr, operator
from .ordering import order_of
from .rules import axis_of, integers, shape_first
from .shapes import reshaped_sizes
from .staged import array, constant, cut, finished, known, permuted, places_of, reshaped


def _length(facts: Facts, index: int, what: str) -> int:
    """How many numbers a vector has.

    Raises:
        ShapeError: that is not known.
    """
    t = facts.tensor(index)
    integers(facts, t, what)
    size = facts.size(facts.rank(t, 1, what=what)[0])
    if not isinstance(size, int):
        raise ShapeError(f"{facts.name} needs to know how many {what} there are, and this is {show(t)}")
    return size


def _sizes(facts: Facts, index: int, what: str) -> tuple[Any, ...]:
    """The sizes that a vector says: known where it is a constant."""
    length, value = _length(facts, index, what), facts.constant(index)
    return (ANY,) * length if value is None else tuple(int(v) for v in np.ravel(value))


def numbers(b: Builder, vector: Var) -> list[Any]:
    """The numbers of a vector of ints: as ints where they are known, else staged Python ints."""
    x = array(vector)
    if isinstance(vector.node, Constant):
        return [int(v) for v in np.ravel(vector.node.value)]
    (length,) = known(x, [0], "a shape")
    return [cast(as_scalar(reshaped(cut(x, 0, k, 1), [])), dtype="int64", weak=True) for k in range(length)]


def sizes(b: Builder, vector: Var) -> list[DimLike]:
    """The sizes that a vector of ints says; negative ones raise."""
    return [v if isinstance(v, int) else run_time_size(b, v) for v in numbers(b, vector)]


def _filled(dtype: Any) -> Any:
    def rule(facts: Facts) -> None:
        facts.gives_tensor(_sizes(facts, facts.count - 1, "sizes"), dtype(facts))

    return rule


def _full(facts: Facts) -> None:
    facts.equal(facts.tensor(0).shape, ())
    facts.gives_tensor(_sizes(facts, 1, "sizes"), facts.attr("dtype") or facts.tensor(0).dtype)


DTYPE = {"dtype": Attr("dtype", "float32")}
OPTIONS: dict[str, Any] = {"reads_constants": True}


@operator("dyn.zeros", ("shape",), _filled(lambda f: f.attr("dtype")), DTYPE, **OPTIONS)
def zeros(b: Builder, shape: Var, dtype: str = "float32") -> Var:
    """Zeros."""
    return finished(broadcast_to(constant(b, 0, dtype), shape=tuple(sizes(b, shape))))


@operator("dyn.ones", ("shape",), _filled(lambda f: f.attr("dtype")), DTYPE, **OPTIONS)
def ones(b: Builder, shape: Var, dtype: str = "float32") -> Var:
    """Ones."""
    return finished(broadcast_to(constant(b, 1, dtype), shape=tuple(sizes(b, shape))))


@operator(
    "dyn.full",
    ("fill_value", "shape"),
    _full,
    {"dtype": Attr("dtype", None)},
    **OPTIONS,
)
def full(b: Builder, fill_value: Var, shape: Var, dtype: Any = None) -> Var:
    """One number."""
    x = strong(fill_value)
    return finished(
        broadcast_to(x if dtype is None else cast(x, dtype=dtype, weak=False), shape=tuple(sizes(b, shape)))
    )


@operator("dyn.broadcast_to", ("data", "shape"), _filled(lambda f: f.tensor(0).dtype), **OPTIONS)
def broadcast(b: Builder, data: Var, shape: Var) -> Var:
    """A larger shape, along whose new axes, and axes of size 1, the elements are repeated."""
    return finished(IMPLEMENTATIONS[np.broadcast_to](b, array(data), tuple(numbers(b, shape))))


def _reshape(facts: Facts) -> None:
    t = facts.tensor(0)
    value = facts.constant(1)
    length = _length(facts, 1, "sizes")
    if value is None:
        facts.gives_tensor((ANY,) * length, t.dtype)
        return
    codes = [int(v) for v in np.ravel(value)]
    facts.gives_tensor(tuple(reshaped_sizes(facts.name, shape_first(facts, t), codes, facts.compute)), t.dtype)


@operator("dyn.reshape", ("data", "newshape"), _reshape, {"allowzero": Attr("bool", False)}, **OPTIONS)
def reshape(b: Builder, data: Var, newshape: Var, allowzero: bool = False) -> Var:
    """Another shape: 0 copies a size, -1 is what is left."""
    x, codes = array(data), numbers(b, newshape)
    if all(isinstance(c, int) for c in codes):
        return finished(reshaped(x, reshaped_sizes("dyn.reshape", x.shape, codes, lambda f, *s: f(*s))))
    given = []
    for k, code in enumerate(codes):
        if isinstance(code, Var) and k < x.ndim:
            code = P.where(P.eq(code, code.const(0)), size_value(b, x.shape[k]), code)
        given.append(code if isinstance(code, Var) else size_value(b, x.shape[k] if code == 0 else code))
    others = size_value(b, 1)
    for code in given:
        others = P.mul(others, P.maximum(code, code.const(1)))
    rest = P.floordiv(size_value(b, product_of(x.shape)), others)
    wanted = [P.where(P.lt(code, code.const(0)), rest, code) for code in given]
    return finished(IMPLEMENTATIONS[np.reshape](b, x, tuple(wanted)))


def _tile(facts: Facts) -> None:
    t = facts.tensor(0)
    length, value = _length(facts, 1, "repetitions"), facts.constant(1)
    shape = list(shape_first(facts, t))
    times = [ANY] * length if value is None else [int(v) for v in np.ravel(value)]
    rank = max(len(shape), length)
    shape, times = [1] * (rank - len(shape)) + shape, [1] * (rank - length) + times
    facts.gives_tensor(
        tuple(facts.compute(lambda n, r: n * r, s, r) for s, r in zip(shape, times, strict=True)), t.dtype
    )


@operator("dyn.tile", ("data", "reps"), _tile, **OPTIONS)
def tile(b: Builder, data: Var, reps: Var) -> Var:
    """The tensor repeated along each axis, as a whole."""
    x, times = array(data), sizes(b, reps)
    rank = max(x.ndim, len(times))
    shape, times = [1] * (rank - x.ndim) + list(x.shape), [1] * (rank - len(times)) + times
    wide = broadcast_to(
        reshaped(x, [d for s in shape for d in (1, s)]),
        shape=tuple(d for s, r in zip(shape, times, strict=True) for d in (r, s)),
    )
    return finished(reshaped(wide, [s * r for s, r in zip(shape, times, strict=True)]))


def _one_hot(facts: Facts) -> None:
    indices, on, off, depth = (facts.tensor(k) for k in range(4))
    integers(facts, indices, "the indices")
    facts.equal(depth.shape, ())
    dtype = facts.attr("dtype") or facts.same_dtype(on, off)
    shape = shape_first(facts, indices, dtype)
    axis = facts.attr("axis")
    at = len(shape) if axis == -1 else axis_of(facts, axis, len(shape), 1)
    value = facts.constant(3)
    facts.gives_tensor((*shape[:at], ANY if value is None else int(value), *shape[at:]), dtype)


@operator(
    "dyn.one_hot",
    ("indices", "on_value", "off_value", "depth"),
    _one_hot,
    {k: v for k, v in ONE_HOT.items() if k != "depth"},
    **OPTIONS,
)
def one_hot(
    b: Builder, indices: Var, on_value: Var, off_value: Var, depth: Var, axis: int = -1, dtype: Any = None
) -> Var:
    """`on_value` at the place that an index says along a new axis, `off_value` elsewhere."""
    x = array(indices)
    count = numbers(b, array(depth) if array(depth).ndim else reshaped(array(depth), [1]))
    if isinstance(depth.node, Constant):
        count = [int(depth.node.value)]
    size = count[0] if isinstance(count[0], int) else run_time_size(b, count[0])
    places = cast(places_of(b, size), dtype=x.dtype, weak=False)
    hot = P.eq(reshaped(x, [*x.shape, 1]), places)
    on, off = (v if dtype is None else cast(v, dtype=dtype, weak=False) for v in (strong(on_value), strong(off_value)))
    at, order = axis % (x.ndim + 1), list(range(x.ndim))
    return finished(permuted(P.where(hot, on, off), [*order[:at], x.ndim, *order[at:]]))


def _topk(facts: Facts) -> None:
    t, k = facts.tensor(0), facts.tensor(1)
    integers(facts, k, "k")
    facts.equal(k.shape, ())
    shape = facts.shape(t)
    axis = axis_of(facts, facts.attr("axis"), len(shape))
    out = (*shape[:axis], ANY, *shape[axis + 1 :])
    values, indices = tensor(out, t.dtype), tensor(out, facts.attr("dtype"))
    facts.gives({"both": tuple_term((values, indices)), "values": values, "indices": indices}[facts.attr("ret_type")])


TOPK = {
    "axis": Attr("int", -1),
    "ret_type": Attr(("both", "values", "indices"), "both"),
    "is_ascend": Attr("bool", False),
    "dtype": Attr("dtype", "int32"),
}


@operator("dyn.topk", ("data", "k"), _topk, TOPK, staged=False)
def topk(data, k, axis=-1, ret_type="both", is_ascend=False, dtype="int32"):
    """The greatest k elements along an axis, or the least, and their places."""
    count = int(np.reshape(k, ()))
    order = np.moveaxis(np.moveaxis(order_of(data, axis, is_ascend), axis, 0)[:count], 0, axis)
    if ret_type == "indices":
        return order.astype(dtype)
    values = np.take_along_axis(data, order, axis)
    if ret_type == "values":
        return values
    return values, order.astype(dtype)
