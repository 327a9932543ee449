"""Sorting and searching, written in the language; stable, also where the greatest come first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...utils.errors import ShapeError
from ..terms.show import show
from ..terms.solver import Facts
from ..terms.terms import ANY, prune, tensor, tuple_term
from .declare import Attr, operator
from .rules import axis_of

ORDER = {"axis": Attr("int", -1), "is_ascend": Attr("bool", True)}


def _sorted(dtype: str | None) -> Any:
    def rule(facts: Facts) -> None:
        t = facts.tensor(0)
        facts.gives(t if dtype is None else tensor(t.shape, facts.attr("dtype")))
        axis_of(facts, facts.attr("axis"), len(facts.shape(t)))

    return rule


def order_of(data, axis, is_ascend):
    """The places of the elements in order, the first of equal ones first."""
    if is_ascend:
        return np.argsort(data, axis=axis, kind="stable")
    return data.shape[axis] - 1 - np.flip(np.argsort(np.flip(data, axis), axis=axis, kind="stable"), axis)


@operator("argsort", ("data",), _sorted("dtype"), {**ORDER, "dtype": Attr("dtype", "int32")}, staged=False)
def argsort(data, axis=-1, is_ascend=True, dtype="int32"):
    """The places of the elements along an axis, in their order."""
    return order_of(data, axis, is_ascend).astype(dtype)


@operator("sort", ("data",), _sorted(None), ORDER, staged=False)
def sort(data, axis=-1, is_ascend=True):
    """The elements along an axis in their order."""
    return np.take_along_axis(data, order_of(data, axis, is_ascend), axis)


TOPK = {
    "k": Attr("int", 1),
    "axis": Attr("int", -1),
    "ret_type": Attr(("both", "values", "indices"), "both"),
    "is_ascend": Attr("bool", False),
    "dtype": Attr("dtype", "int32"),
}


def _topk(facts: Facts) -> None:
    t, k = facts.tensor(0), facts.attr("k")
    shape = facts.shape(t)
    axis = axis_of(facts, facts.attr("axis"), len(shape))
    size = prune(shape[axis])
    if isinstance(size, int) and k > size:
        raise ShapeError(f"topk: k={k} is more than axis {axis} of {show(t)} has")
    out = shape if k < 1 else (*shape[:axis], k, *shape[axis + 1 :])
    values, indices = tensor(out, t.dtype), tensor(out, facts.attr("dtype"))
    facts.gives({"both": tuple_term((values, indices)), "values": values, "indices": indices}[facts.attr("ret_type")])


@operator("topk", ("data",), _topk, TOPK, staged=False)
def topk(data, k=1, axis=-1, ret_type="both", is_ascend=False, dtype="int32"):
    """The greatest k elements along an axis, or the least, and their places; all where k is less than 1."""
    order = order_of(data, axis, is_ascend)
    if k >= 1:
        order = np.moveaxis(np.moveaxis(order, axis, 0)[:k], 0, axis)
    if ret_type == "indices":
        return order.astype(dtype)
    values = np.take_along_axis(data, order, axis)
    if ret_type == "values":
        return values
    return values, order.astype(dtype)


def _searchsorted(facts: Facts) -> None:
    line, values = facts.tensor(0), facts.tensor(1)
    facts.same_dtype(line, values)
    facts.gives_tensor(values.shape, facts.attr("dtype"))
    shape = facts.shape(line)
    if len(shape) != 1:
        own = facts.shape(values)
        if not shape or len(own) != len(shape):
            raise ShapeError(f"searchsorted: {show(line)} and {show(values)} do not have the same axes but the last")
        for k in range(len(shape) - 1):
            facts.same_size(shape[k], own[k], f"searchsorted: axis {k} of {show(line)} and of {show(values)} differ")


@operator(
    "searchsorted",
    ("sorted_sequence", "values"),
    _searchsorted,
    {"right": Attr("bool", False), "dtype": Attr("dtype", "int32")},
    staged=False,
)
def searchsorted(sorted_sequence, values, right=False, dtype="int32"):
    """Where values would be inserted into a sequence in order: before equal ones, or behind them."""
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, values, side)).astype(dtype)
    lines = np.reshape(sorted_sequence, (-1, sorted_sequence.shape[-1]))
    wanted = np.reshape(values, (lines.shape[0], values.shape[-1]))
    out = np.zeros(wanted.shape, np.int64)
    for i in range(lines.shape[0]):
        out[i] = np.searchsorted(lines[i], wanted[i], side)
    return np.reshape(out, values.shape).astype(dtype)


def _unique(facts: Facts) -> None:
    t = facts.tensor(0)
    (size,) = facts.rank(t, 1)
    open_, places = tensor((ANY,), t.dtype), tensor((ANY,), "int32")
    parts = (open_, places, tensor((size,), "int32"), tensor((1,), "int32"))
    facts.gives(tuple_term((*parts, places) if facts.attr("return_counts") else parts))


@operator(
    "unique",
    ("data",),
    _unique,
    {"is_sorted": Attr("bool", True), "return_counts": Attr("bool", False)},
    staged=False,
)
def unique(data, is_sorted=True, return_counts=False):
    """A tuple: the different elements in order, where each first occurs, which one each element is, their number, how often."""
    values, first, which, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        place = np.argsort(order, kind="stable")
        values, first, counts, which = values[order], first[order], counts[order], place[which]
    number = np.full((1,), values.shape[0], np.int32)
    if return_counts:
        return values, first.astype("int32"), which.astype("int32"), number, counts.astype("int32")
    return values, first.astype("int32"), which.astype("int32"), number
