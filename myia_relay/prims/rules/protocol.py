"""What lowering rules may ask of a back end. This module is documentation and a type; nothing is implemented here.

A rule gets `b`, an object with the methods below, and expressions that only `b` understands. Expressions of dtype int64
are also index expressions. A rule writes `b.add(x, y)` for elements; for index expressions Python's own `+ - * // %`
work as well (`//` and `%` floor), also with Python ints.

- Every elementwise primitive is a method of its name on expressions of one element: `b.add(x, y)`, `b.exp(x)`, `b.lt(x,
  y)` (a bool expression), `b.where(c, x, y)`, ... with the semantics of the primitive: exact, no contraction.
- Reads are unguarded: a rule clamps each index into range by `b.select` before it reads, and reads within `b.reading(size)`
  where the axis may turn out to be empty.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

Expr = Any


class LoweringProtocol(Protocol):
    """The part of `b` that is not one method for each elementwise primitive.

    Attributes:
        dtype: in the rule of a reduction, the dtype that it accumulates in.
    """

    dtype: str

    def const(self, value, dtype: str) -> Expr:
        """A constant, exact to the bit."""

    def like(self, value, x: Expr) -> Expr:
        """A constant of the dtype of `x`."""

    def cast(self, x: Expr, dtype: str) -> Expr:
        """`x` converted as NumPy's `astype` does (float to int truncates; to bool is `x != 0`)."""

    def bitcast(self, x: Expr, dtype: str) -> Expr:
        """The bits of `x` as another dtype of that width."""

    def dtype_of(self, x: Expr) -> str:
        """The dtype of an expression."""
        ...

    def let(self, x: Expr) -> Expr:
        """`x`, computed here once: what is used several times is named."""

    def iterate(self, state: tuple, step: Callable, active: Expr) -> tuple:
        """`state` after `state, active = step(state)` for as long as `active` holds.

        Args:
            state: expressions.
            step: gives the next ones, and whether to go on.
            active: whether to begin.
        """
        ...

    def select(self, c: Expr, x: Expr, y: Expr) -> Expr:
        """`x` if `c` else `y`; both may be evaluated."""

    def dim(self, size) -> Expr:
        """A dimension (an int or a `Dim`) as an index expression."""

    def divisor(self, size) -> Expr:
        """A dimension to divide by, at least 1: of an array without elements an index may be computed, though nothing is read."""
        ...

    def reading(self, *sizes) -> AbstractContextManager:
        """What is read within this has as many positions as these sizes say: nothing is read if one of them is not positive."""
        ...

    def within(self, i: Expr, size) -> bool:
        """Whether an index that has just been read is known to lie in `0 ... size - 1`."""
        ...


def clamp(b, i: Expr, size) -> Expr:
    """Index `i` moved into `0 ... size - 1`."""
    if b.within(i, size):
        return i
    zero, last = b.const(0, "int64"), b.dim(size) - 1
    i = b.select(b.gt(i, last), last, i)
    return b.select(b.lt(i, zero), zero, i)


def flat_index(b, index, shape) -> Expr:
    """The row-major position of an element: Horner's scheme over the sizes."""
    flat = b.const(0, "int64")
    for i, size in zip(index, shape, strict=True):
        flat = flat * b.dim(size) + i
    return flat


def split_index(b, flat: Expr, shape) -> list[Expr]:
    """The index of the element at a row-major position; axes of size 1 cost nothing."""
    out: list[Expr] = []
    for axis in reversed(range(len(shape))):
        if shape[axis] == 1:
            out.append(b.const(0, "int64"))
        elif all(size == 1 for size in shape[:axis]):
            out.append(flat)  # the leading axis that matters: what is left is its index
        else:
            out.append(flat % b.divisor(shape[axis]))
            flat = flat // b.divisor(shape[axis])
    return out[::-1]
