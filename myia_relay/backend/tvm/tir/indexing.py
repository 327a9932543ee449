"""Positions in arrays: indices of loops for groups of axes, so that loops over contiguous axes are one loop.

An `Index` identifies an element of an array of some shape: one expression for each group of neighbouring axes that the
loops of a kernel treat as one. The expression of the innermost group may be a vector (`Ramp`), and then it means
several elements. `address` converts it to a position in row-major memory, and distinguishes how vectors read:
contiguous, one element for all lanes, strided, or gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ....abstract.dims import DimLike, product
from .block import broadcast, dtype_of, idx, lanes_of


@dataclass(frozen=True)
class AxisGroup:
    """Neighbouring axes `start ... stop - 1` and the row-major position within them."""

    start: int
    stop: int
    at: Any


class Index:
    """An element (or a vector of elements) of an array.

    Attributes:
        shape: of the array.
        groups: covering all axes, in order.
    """

    __slots__ = ("derived", "groups", "shape")

    def __init__(self, shape: Sequence[DimLike], groups: Sequence[AxisGroup]):
        self.shape = tuple(shape)
        self.groups = tuple(groups)
        self.derived: dict[Any, Index] = {}

    @classmethod
    def of_axes(cls, shape: Sequence[DimLike], at: Sequence[Any]) -> Index:
        """One expression for each axis."""
        return cls(shape, [AxisGroup(k, k + 1, i if not isinstance(i, int) else idx(i)) for k, i in enumerate(at)])

    def axes(self, dim) -> list[Any]:
        """One expression for each axis; `dim` iterations sizes into expressions."""
        out: list[Any] = []
        for g in self.groups:
            out += split(g.at, self.shape[g.start : g.stop], dim)
        return out

    def broadcast(self, shape: Sequence[DimLike]) -> Index:
        """The element of an operand of `shape` that broadcasts to this one. No group may mix repeated and other axes."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        if shape not in self.derived:
            shift = len(self.shape) - len(shape)
            groups, axis = [], 0
            for g in self.groups:
                start, stop = max(g.start - shift, 0), g.stop - shift
                if stop <= 0:
                    continue
                repeated = all(d == 1 for d in shape[start:stop])
                groups.append(AxisGroup(axis, stop, idx(0) if repeated else g.at))
                axis = stop
            self.derived[shape] = Index(shape, groups)
        return self.derived[shape]

    def mixes(self, shape: Sequence[DimLike]) -> bool:
        """Whether a group has axes that an operand of `shape` repeats, and others: then it must be taken apart first."""
        shift = len(self.shape) - len(shape)
        for g in self.groups:
            kinds = {k < shift or shape[k - shift] == 1 for k in range(g.start, g.stop) if self.shape[k] != 1}
            if len(kinds) > 1:
                return True
        return False

    def reshaped(self, shape: Sequence[DimLike]) -> Index | None:
        """The same element under another shape, if that takes no arithmetic: each group's axes have become some others."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        key = ("reshape", shape)
        if key not in self.derived:
            groups = self._regrouped(shape)
            if groups is None:
                return None
            self.derived[key] = Index(shape, groups)
        return self.derived[key]

    def _regrouped(self, shape: tuple[DimLike, ...]) -> list[AxisGroup] | None:
        """The groups with their axes in another shape; axes of size 1 go with any of them."""
        if len(self.groups) == 1:
            return [AxisGroup(0, len(shape), self.groups[0].at)]
        found: list[AxisGroup] = []
        axis = 0
        for g in self.groups:
            wanted, size, start = product(self.shape[g.start : g.stop]), 1, axis
            if wanted == 1:
                continue
            while size != wanted:
                if axis == len(shape):
                    return None
                size = size * shape[axis]
                axis += 1
            found.append(AxisGroup(start, axis, g.at))
        if not found or any(n != 1 for n in shape[axis:]):
            return None
        last = found.pop()
        return [*found, AxisGroup(last.start, len(shape), last.at)]


def split(at: Any, shape: Sequence[DimLike], dim) -> list[Any]:
    """The index along each axis of a row-major position."""
    out: list[Any] = []
    for axis in reversed(range(len(shape))):
        if shape[axis] == 1:
            out.append(idx(0))
        elif all(d == 1 for d in shape[:axis]):
            out.append(at)
        else:
            size = at_least_one(dim(shape[axis]))
            if lanes_of(dtype_of(at)) > 1:
                size = broadcast(size, lanes_of(dtype_of(at)))
            out.append(tirx.FloorMod(at, size))
            at = tirx.FloorDiv(at, size)
    return out[::-1]


def at_least_one(size: Any) -> Any:
    """A size to divide by.

    Sizes that only a run tells may be 0. No element is read then, but its index may be computed all the same, as of an operand
    of a concatenation that the element is not from.
    """
    return size if isinstance(size, tirx.IntImm) else tirx.Max(size, idx(1))


@dataclass(frozen=True)
class Address:
    """A position in elements: `base`, plus `stride` for each further lane."""

    base: Any
    stride: int


@dataclass(frozen=True)
class Gathered:
    """One position for each lane: `base` is a vector."""

    base: Any


def linear(expr: Any) -> Address | None:
    """A vector index as base and stride, if it is one."""
    if lanes_of(dtype_of(expr)) == 1:
        return Address(expr, 0)
    if isinstance(expr, tirx.Broadcast):
        return Address(expr.value, 0)
    if isinstance(expr, tirx.Ramp):
        return Address(expr.base, int(expr.stride)) if isinstance(expr.stride, tirx.IntImm) else None
    if isinstance(expr, (tirx.Add, tirx.Sub, tirx.Mul)):
        a, b = linear(expr.a), linear(expr.b)
        if a is None or b is None:
            return None
        if isinstance(expr, tirx.Mul):
            if b.stride == 0 and isinstance(b.base, tirx.IntImm):
                return Address(a.base * b.base, a.stride * int(b.base))
            if a.stride == 0 and isinstance(a.base, tirx.IntImm):
                return Address(a.base * b.base, b.stride * int(a.base))
            return Address(a.base * b.base, 0) if a.stride == b.stride == 0 else None
        if isinstance(expr, tirx.Add):
            return Address(a.base + b.base, a.stride + b.stride)
        return Address(a.base - b.base, a.stride - b.stride)
    return None


def address(index: Index, dim: Callable[[DimLike], Any]) -> Address | Gathered:
    """The row-major position of an element."""
    base: Any = None
    stride = 0
    for g in index.groups:
        if all(d == 1 for d in index.shape[g.start : g.stop]):
            continue
        inner = product(index.shape[g.stop :])
        at = linear(g.at)
        if at is None or not isinstance(inner, int) and at.stride:
            return Gathered(_vector_address(index, dim))
        scaled = at.base if inner == 1 else at.base * dim(inner)
        base = scaled if base is None else base + scaled
        stride += at.stride * inner if isinstance(inner, int) else 0
    return Address(idx(0) if base is None else base, stride)


def _vector_address(index: Index, dim) -> Any:
    lanes = max(lanes_of(dtype_of(g.at)) for g in index.groups)
    total = broadcast(idx(0), lanes)
    for g in index.groups:
        at = g.at if lanes_of(dtype_of(g.at)) > 1 else broadcast(g.at, lanes)
        total = tirx.Add(total, tirx.Mul(at, broadcast(dim(product(index.shape[g.stop :])), lanes)))
    return total
