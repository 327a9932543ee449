"""What the derivatives of factorisations are written with: stacks of matrices, arrays of three axes.

A factorisation with several results returns them in one array: for each matrix a vector that begins with `info`, 0 where all is
well. `parts` takes it apart, `packed` makes one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.types import Array
from ...ir.axes import Axes
from ...ir.build import Var
from ...ir.node import Constant, Node, applied
from ...ir.prim import REGISTRY
from .broadcast import nullary, reduce_sum, reshape, shape_of, zeros_like
from .relations import const_like, dtype_of, require_array, same_dtype, same_size

FLOATS = ("float32", "float64")
ROUNDING = 8.0
"""Eigenvalues and singular values that differ by no more than this, times n eps, of the greatest are taken for equal."""
ONE = Axes("b..->b..")


def require_stacks(name: str, *stacks) -> str:
    """The dtype of stacks of matrices: of the first two, which is to be the same, or of one."""
    for stack in stacks:
        require_array(name, stack, 3, FLOATS)
    return stacks[0].dtype if len(stacks) == 1 else same_dtype(name, *stacks[:2])


def turned(x):
    """Every matrix transposed."""
    return REGISTRY["transpose"](x, perm=(0, 2, 1))


def mm(a, b, *, ta=False, tb=False):
    """Products of equally many matrices."""
    return REGISTRY["batched_dot"](a, b, transpose_a=ta, transpose_b=tb)


def row(v):
    """(b, n) -> (b, 1, n): a factor for columns."""
    b, n = shape_of(v)
    return reshape(v, shape=(b, 1, n))


def column(v):
    """(b, n) -> (b, n, 1): a factor for rows."""
    b, n = shape_of(v)
    return reshape(v, shape=(b, n, 1))


def _mask(x, relation):
    """Where a relation holds between the row and the column of an element; shape (rows, columns)."""
    rows, columns = shape_of(x)[1:]
    i = reshape(nullary(x, "iota", n=rows, dtype="int64"), shape=(rows, 1))
    return relation(i, reshape(nullary(x, "iota", n=columns, dtype="int64"), shape=(1, columns)))


def only(x, relation):
    """The elements at places where a relation holds between row and column; zeros elsewhere."""
    return REGISTRY["where"](_mask(x, relation), x, const_like(x, 0))


def diagonal(x):
    """(b, n, n) -> (b, n)."""
    return reduce_sum(only(x, REGISTRY["eq"]), axes=(2,))


def reciprocal(x):
    """1 / x; 0 where x is 0."""
    where, one, none = REGISTRY["where"], const_like(x, 1), const_like(x, 0)
    zero = REGISTRY["eq"](x, none)
    return where(zero, none, REGISTRY["div"](one, where(zero, one, x)))


def rounding(values):
    """Which part of the greatest of eigenvalues, (b, n), is rounding."""
    n = shape_of(values)[1]
    return const_like(values, ROUNDING * (n if isinstance(n, int) else 64) * float(np.finfo(dtype_of(values)).eps))


def halved(x):
    """The lower triangle with half of the diagonal."""
    return only(x, REGISTRY["gt"]) + only(x * const_like(x, 0.5), REGISTRY["eq"])


def read(x, lower: bool):
    """The symmetric matrix of which one triangle is read."""
    strict = only(x, REGISTRY["gt"]) if lower else only(turned(x), REGISTRY["gt"])
    return strict + turned(strict) + only(x, REGISTRY["eq"])


def read_adjoint(s, lower: bool):
    """The cotangent of that triangle from one, `s`, of the symmetric matrix."""
    both = s + turned(s)
    return (only(both, REGISTRY["gt"]) if lower else turned(only(both, REGISTRY["gt"]))) + only(s, REGISTRY["eq"])


def parts(x, *shapes):
    """The arrays of given shapes, for each matrix, that a packed result holds behind `info`."""
    b, at, out = shape_of(x)[0], 1, []
    for shape in shapes:
        size = 1
        for d in shape:
            size = size * d
        piece = REGISTRY["slice"](x, starts=(0, at), sizes=(b, size), steps=(1, 1))
        out.append(reshape(piece, shape=(b, *shape)))
        at = at + size
    return out


def cotangents(dout, *shapes):
    """The cotangents of the arrays of a packed result; None of those that nothing has used.

    What uses a part takes a slice, so the cotangent is a sum of slices' adjoints, paddings with zeros.
    """
    found = parts(dout, *shapes)
    if not isinstance(dout, Var):
        return found
    ranges, at = [], 1
    for shape in shapes:
        size = _size(shape)
        ranges.append((at, at + size))
        at = at + size
    out = []
    for (low, high), whole, shape in zip(ranges, found, shapes, strict=True):
        terms = _inside(dout.node, low, high)
        if terms is None:
            out.append(whole)
            continue
        total = None
        for node in terms:
            term = reshape(Var(dout.builder, node), shape=(shape_of(dout)[0], *shape))
            total = term if total is None else total + term
        out.append(total)
    return out


def _inside(cotangent: Node, low, high) -> list[Any] | None:
    """What is padded to just a range of the last axis, of a sum of paddings; None where the node is not made like that."""
    terms: list[Any] = []
    stack: list[Any] = [cotangent]
    while stack:
        node = stack.pop()
        name, shape = applied(node) or "", node.type.shape
        if name == "add" and all(a.type.shape == shape for a in node.args):
            stack.extend(node.args[::-1])
            continue
        value = getattr(node, "value", None)
        if isinstance(value, np.ndarray) and isinstance(low, int) and isinstance(high, int):
            part = value[..., low:high]
            if np.any(part != 0):
                terms.append(Constant(part, Array(node.type.dtype, part.shape), node.origin))
            continue
        if name == "reshape" and shape and same_size((node.args[0].type.shape or (0,))[-1], shape[-1]):
            stack.append(node.args[0])
            continue
        if name != "pad" or not _pads_with_zeros(node):
            return None
        first = node.attrs["low"][-1]
        last = first + node.args[0].type.shape[-1]
        if same_size(first, low) and same_size(last, high):
            terms.append(node.args[0])
        elif not _are_apart(first, last, low, high):
            return None
    return terms


def _pads_with_zeros(node: Any) -> bool:
    """Whether zeros are put around an array, along the last axis alone."""
    (*low, _), (*high, _), interior = (node.attrs[name] for name in ("low", "high", "interior"))
    value = node.args[1]
    zero = isinstance(value, Constant) and np.ndim(value.value) == 0 and value.value == 0
    return bool(zero) and not any(d != 0 for d in (*low, *high, *interior))


def _are_apart(first, last, low, high) -> bool:
    """Whether two ranges are known to have nothing in common."""
    if all(isinstance(d, int) for d in (first, last, low, high)):
        return last <= low or high <= first
    return same_size(last, low) or same_size(first, high) or (first == 0 and last == 1)  # `info`


def columns_used(dv):
    """From which column to which the cotangent of a square matrix may be other than zero; None for all of them."""
    if not isinstance(dv, Var) or not all(isinstance(d, int) for d in dv.shape):
        return None
    n = dv.shape[2]
    found: list[tuple[int, int]] = []
    stack: list[Any] = [dv.node]
    while stack:
        node = stack.pop()
        name = applied(node)
        if name == "add" and all(a.type.shape == node.type.shape for a in node.args):
            stack.extend(node.args)
        elif name == "reshape" and node.type.shape[-1] == n and node.args[0].type.shape[-1] == n:
            stack.append(node.args[0])
        elif name == "reshape" and applied(node.args[0]) == "reshape":
            inner = node.args[0].args[0]  # to one axis and back
            if inner.type.shape[-2:] != dv.shape[1:]:
                return None
            stack.append(inner)
        elif name == "pad" and isinstance(node.args[1], Constant) and node.args[1].value == 0:
            first = node.attrs["low"][-1]
            step = node.attrs["interior"][-1] + 1
            count = node.args[0].type.shape[-1]
            if count == n:
                stack.append(node.args[0])
            else:
                found.append((first, first + (count - 1) * step + 1))
        else:
            return None
    return (min(f for f, _ in found), max(l for _, l in found)) if found else None


def packed(near, *arrays):
    """What `parts` takes apart, with 0 for `info`."""
    b = shape_of(arrays[0])[0]
    flat = [reshape(x, shape=(b, _size(shape_of(x)[1:]))) for x in arrays]
    info = REGISTRY["slice"](near, starts=(0, 0), sizes=(b, 1), steps=(1, 1))
    return REGISTRY["concatenate"](zeros_like(info), *flat, axis=1)


def _size(shape):
    size = 1
    for d in shape:
        size = size * d
    return size
