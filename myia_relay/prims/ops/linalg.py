"""Matrix products: kernels of the back end. They have flags instead of transposes, so adjoints move no data.

C = A @ B  =>  dA = dC @ B^T,  dB = A^T @ dC
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import Array
from ...ir.axes import Axes
from ...ir.prim import primitive
from ...utils.errors import ShapeError
from ..rules.batching import materialise
from ..rules.broadcast import reshape, shape_of
from ..rules.forward import bilinear
from ..rules.relations import NUMBERS, require_array, same_dtype, same_size, show_shape
from ..rules.wide_sums import sums_in_float32
from .elementwise import where
from .shape import concatenate, slice_, transpose

FEW, SMALL = 31, 64
"""Products of so few matrices, with results of so few elements, are not worth being turned to be one product."""


def _rows_columns(shape, flip: bool):
    return (shape[1], shape[0]) if flip else (shape[0], shape[1])


def _require_inner(name: str, k, l, a, b):
    if not same_size(k, l):
        raise ShapeError(
            f"{name}: shapes {show_shape(a.shape)} and {show_shape(b.shape)} do not fit: inner sizes are {k} and {l}"
        )


_PRODUCT = Axes("mk,kn->mn", swapped={"transpose_a": 0, "transpose_b": 1})


@primitive("opaque", axes=_PRODUCT)
@sums_in_float32
def dot(a, b, *, transpose_a=False, transpose_b=False):
    """Matrix product of two matrices, either read transposed.

    Args:
        a: (m, k), or (k, m) with transpose_a.
        b: (k, n), or (n, k) with transpose_b; of the dtype of a.

    Returns:
        (m, n). Costs 2 m n k operations.
    """
    return np.matmul(np.transpose(a) if transpose_a else a, np.transpose(b) if transpose_b else b)


@dot.infer
def _(a, b, *, transpose_a=False, transpose_b=False):
    require_array("@", a, 2, NUMBERS)
    require_array("@", b, 2, NUMBERS)
    (m, k), (l, n) = _rows_columns(a.shape, transpose_a), _rows_columns(b.shape, transpose_b)
    _require_inner("@", k, l, a, b)
    return Array(same_dtype("@", a, b), (m, n))


def _product_cotangents(product, a, b, dout, transpose_a, transpose_b):
    """The cotangents of either product: again products, with flags for transposes."""
    if transpose_a:
        da = product(b, dout, transpose_a=transpose_b, transpose_b=True)
    else:
        da = product(dout, b, transpose_b=not transpose_b)
    if transpose_b:
        db = product(dout, a, transpose_a=True, transpose_b=transpose_a)
    else:
        db = product(a, dout, transpose_a=not transpose_a)
    return da, db


@dot.vjp
def _(a, b, out, dout, *, transpose_a=False, transpose_b=False):
    return _product_cotangents(dot, a, b, dout, transpose_a, transpose_b)


dot.jvp(bilinear(dot))


@dot.batch
def _(size, batched, a, b, *, transpose_a=False, transpose_b=False):
    if all(batched):
        return batched_dot(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    if batched[0]:
        return None
    m, n = (shape_of(x)[axis] for x, axis in ((a, int(transpose_a)), (b, 1 if transpose_b else 2)))
    if isinstance(size, int) and isinstance(m, int) and isinstance(n, int) and size <= FEW and m * n <= SMALL:
        a = materialise(size, False, a)
        return batched_dot(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    # C^T = B^T A^T puts the batch axis in front: one big product, and one transpose of its result.
    if not transpose_b:
        b = transpose(b, perm=(0, 2, 1))
    _, n, k = shape_of(b)
    out = dot(reshape(b, shape=(size * n, k)), a, transpose_b=not transpose_a)
    return transpose(reshape(out, shape=(size, n, shape_of(out)[1])), perm=(0, 2, 1))


def _triangular(shapes, out, *, which, lower, **flags):
    """Where an element of a triangle is matters."""
    product = _PRODUCT.relation(shapes, out, flags)
    triangle = (*product.operands, product.result)[("left", "right", "result").index(which)]
    return replace(product, located=frozenset(triangle))


@primitive("opaque", differentiable=False, axes=Axes(_triangular, any_rank=False))
@sums_in_float32
def triangular_dot(a, b, *, transpose_a=False, transpose_b=False, which, lower):
    """A matrix product of which one matrix, once transposed as the flags say, is a square triangle: made by
    `opt.kernels.triangular_products`.

    Args:
        a, b: as in `dot`.
        which: "left" or "right", where the operand is known to be zero beside its triangle; "result", where only the
        triangle
            is asked for.
        lower: whether the triangle is on and below the diagonal, or on and above it.

    Returns:
        (m, n), zeros beside a triangular result. Costs half of the operations of `dot`.
    """
    out = dot(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return out if which != "result" else np.tril(out) if lower else np.triu(out)


triangular_dot.bilinear = True


@triangular_dot.infer
def _(a, b, *, transpose_a=False, transpose_b=False, which, lower):
    return dot.infer_rule(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@triangular_dot.batch
def _(size, batched, a, b, *, transpose_a=False, transpose_b=False, which, lower):
    out = dot.batch_rule(size, batched, a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    if which != "result":
        return out
    mask = np.tri(known_size(shape_of(out)[1]), dtype=bool)
    return where(mask if lower else mask.T, out, out.const(0))


@primitive("opaque", axes=Axes("bmk,bkn->bmn", swapped={"transpose_a": 0, "transpose_b": 1}))
@sums_in_float32
def batched_dot(a, b, *, transpose_a=False, transpose_b=False):
    """Matrix products of equally many pairs of matrices.

    Args:
        a: (batch, m, k), or (batch, k, m) with transpose_a.
        b: (batch, k, n), or (batch, n, k) with transpose_b; of the dtype of a.

    Returns:
        (batch, m, n).
    """
    a, b = np.asarray(a), np.asarray(b)
    return np.matmul(a.swapaxes(1, 2) if transpose_a else a, b.swapaxes(1, 2) if transpose_b else b)


@batched_dot.infer
def _(a, b, *, transpose_a=False, transpose_b=False):
    require_array("@", a, 3, NUMBERS)
    require_array("@", b, 3, NUMBERS)
    if not same_size(a.shape[0], b.shape[0]):
        raise ShapeError(f"@: {show_shape(a.shape)} and {show_shape(b.shape)} are different numbers of matrices")
    (m, k), (l, n) = _rows_columns(a.shape[1:], transpose_a), _rows_columns(b.shape[1:], transpose_b)
    _require_inner("@", k, l, a, b)
    return Array(same_dtype("@", a, b), (a.shape[0], m, n))


@batched_dot.vjp
def _(a, b, out, dout, *, transpose_a=False, transpose_b=False):
    return _product_cotangents(batched_dot, a, b, dout, transpose_a, transpose_b)


batched_dot.jvp(bilinear(batched_dot))


@primitive("opaque", axes=Axes("mk,k->m", swapped={"transpose": 0}))
@sums_in_float32
def matvec(a, x, *, transpose=False):
    """Matrix times vector.

    Args:
        a: (m, k), or (k, m) with transpose.
        x: (k,), of the dtype of a.

    Returns:
        (m,).
    """
    return np.matmul(np.transpose(a) if transpose else a, x)


@matvec.infer
def _(a, x, *, transpose=False):
    require_array("@", a, 2, NUMBERS)
    require_array("@", x, 1, NUMBERS)
    m, k = _rows_columns(a.shape, transpose)
    _require_inner("@", k, x.shape[0], a, x)
    return Array(same_dtype("@", a, x), (m,))


def outer(x, y):
    """x y^T of two vectors: a broadcast product."""
    return reshape(x, shape=(shape_of(x)[0], 1)) * reshape(y, shape=(1, shape_of(y)[0]))


@matvec.vjp
def _(a, x, out, dout, *, transpose=False):
    da = outer(x, dout) if transpose else outer(dout, x)
    return da, matvec(a, dout, transpose=not transpose)


matvec.jvp(bilinear(matvec))


@matvec.batch
def _(size, batched, a, x, *, transpose=False):
    if not batched[0]:
        return dot(x, a, transpose_b=not transpose)
    if not batched[1] and not transpose:
        return None
    x = materialise(size, batched[1], x)
    column = reshape(x, shape=(*shape_of(x), 1))
    out = batched_dot(a, column, transpose_a=transpose)
    return reshape(out, shape=shape_of(out)[:2])


def _panels(n: int, width: int) -> list[tuple[int, int]]:
    """The first column and the number of columns of each panel of a matrix."""
    return [(first, min(width, n - first)) for first in range(0, n, width)]


@primitive("opaque", differentiable=False)
def pack_columns(a, *, transposed=False, width):
    """A matrix in the order in which `packed_dot` reads it: panel by panel of its columns. Made by
    `opt.kernels.packed_products`.

    Args:
        a: (k, n), or (n, k) with transposed.
        width: of a panel; the last one may have fewer columns.

    Returns:
        (k n,): the panels, each row by row.
    """
    a = np.transpose(a) if transposed else np.asarray(a)
    return np.concatenate([a[:, first : first + w].ravel() for first, w in _panels(a.shape[1], width)])


@pack_columns.infer
def _(a, *, transposed=False, width):
    require_array("pack_columns", a, 2, NUMBERS)
    return Array(a.dtype, (a.shape[0] * a.shape[1],))


@pack_columns.batch
def _(size, batched, a, *, transposed=False, width):
    if transposed:
        a = transpose(a, perm=(0, 2, 1))
    _, k, n = shape_of(a)
    panels = [
        slice_(a, starts=(0, 0, first), sizes=(size, k, w), steps=(1, 1, 1))
        for first, w in _panels(known_size(n), width)
    ]
    return concatenate(*(reshape(x, shape=(size, k * shape_of(x)[2])) for x in panels), axis=1)


@primitive("opaque", differentiable=False, axes="m.,.->m.")
@sums_in_float32
def packed_dot(a, packed, *, columns, width):
    """A product with a matrix that `pack_columns` has packed.

    Args:
        a: (m, k).
        packed: (k columns,), of the dtype of a.
        columns: of the matrix.
        width: of its panels.

    Returns:
        (m, columns).
    """
    a, packed = np.asarray(a), np.asarray(packed)
    k = a.shape[1]
    panels = [packed[k * first : k * (first + w)].reshape(k, w) for first, w in _panels(columns, width)]
    return np.matmul(a, np.concatenate(panels, axis=1))


@packed_dot.infer
def _(a, packed, *, columns, width):
    require_array("packed_dot", a, 2, NUMBERS)
    require_array("packed_dot", packed, 1, NUMBERS)
    _require_inner("packed_dot", a.shape[1] * columns, packed.shape[0], a, packed)
    return Array(same_dtype("packed_dot", a, packed), (a.shape[0], columns))


@packed_dot.batch
def _(size, batched, a, packed, *, columns, width):
    if not batched[1]:
        _, m, k = shape_of(a)
        out = packed_dot(reshape(a, shape=(size * m, k)), packed, columns=columns, width=width)
        return reshape(out, shape=(size, m, columns))
    k = known_size(shape_of(a)[-1])
    parts = [
        slice_(packed, starts=(0, k * first), sizes=(size, k * w), steps=(1, 1)) for first, w in _panels(columns, width)
    ]
    matrix = concatenate(*(reshape(x, shape=(size, k, shape_of(x)[1] // k)) for x in parts), axis=2)
    return batched_dot(materialise(size, batched[0], a), matrix)
