"""NumPy's products, norms and einsum."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import DimLike, product
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.linalg import batched_dot, dot
from ..ops.matrices.factorisations import svd
from ..ops.reduction import reduce_max, reduce_min
from ..rules.broadcast import reduce_sum, reshape
from ..rules.matrices import parts
from ..rules.relations import normalise_axes, normalise_axis, same_size, show_shape
from . import arithmetic as A
from . import products
from .implementations import implements, method
from .library.factorisations import lesser
from .numpy_indexing import diagonal
from .numpy_reductions import NO_IDENTITY, reducible, refuse_empty, sum_
from .numpy_shape import array_of
from .promotion import (
    astype,
    meeting,
    operand,
    promote,
    strong,
    unwrap,
    with_size,
)

implements(np.matmul)(lambda b, x1, x2: products.matmul(b, x1, x2))
implements(np.dot)(lambda b, a, b_: products.numpy_dot(b, a, b_))
implements(np.inner)(lambda b, a, b_: products.inner(b, a, b_))
implements(np.outer)(lambda b, a, b_: products.outer(b, a, b_))
method("dot")(lambda b, x, other: products.numpy_dot(b, x, other))
implements(np.tensordot, static=("axes",))(lambda b, a, b_, axes=2: products.tensordot(b, a, b_, axes))


@implements(np.vdot)
def vdot(b: Builder, a, b_) -> Var:
    """np.vdot of real arrays."""
    x, y = (reshape(array_of(b, v, "np.vdot"), shape=(product(array_of(b, v, "np.vdot").shape),)) for v in (a, b_))
    return products.matmul(b, x, y)


if hasattr(np, "vecdot"):

    @implements(np.vecdot, static=("axis",))
    def vecdot(b: Builder, x1, x2, *, axis=-1) -> Var:
        """np.vecdot of real arrays.

        Raises:
            ShapeError: a number, or vectors of different sizes.
        """  # noqa: DOC501 (a function makes the exception)
        x, y = promote(b, *(strong(operand(b, v, "np.vecdot")) for v in (x1, x2)), what="np.vecdot")
        for v in (x, y):
            if not v.shape:
                raise ShapeError(
                    f"np.vecdot takes arrays with at least one axis, and this is {v.type}; multiply with *"
                )
        own, other = (normalise_axis("np.vecdot", axis, v.shape) for v in (x, y))
        x, y = meeting(b, "np.vecdot", x, own, y, other)
        if not same_size(x.shape[own], y.shape[other]):
            raise products.misfit("np.vecdot", x, y, x.shape[own], y.shape[other])
        x, y = (products.permuted(v, (*(k for k in range(v.ndim) if k != at), at)) for v, at in ((x, own), (y, other)))
        rank = max(x.ndim, y.ndim)
        return products.sum_products(x, y, (rank - 1,))


@implements(np.trace, static=("offset", "axis1", "axis2"))
def trace(b: Builder, a, offset=0, axis1=0, axis2=1) -> Var:
    """np.trace."""
    return sum_(b, diagonal(b, a, offset, axis1, axis2), -1)


method("trace", static=("offset", "axis1", "axis2"))(trace)


@implements(np.linalg.norm, static=("ord", "axis", "keepdims"))
def norm(b: Builder, x, ord=None, axis=None, keepdims=False) -> Var:
    """np.linalg.norm: of vectors any order, of matrices those that NumPy has.

    Raises:
        TypeError_: there is no norm of this order over so many axes.
        ShapeError: there are more than two axes.
    """
    x = reducible(b, x, "np.linalg.norm")
    x = x if x.type.is_float else astype(x, "float64")
    axes = normalise_axes("np.linalg.norm", axis, x.shape)
    if axis is not None and len(axes) not in (1, 2):
        raise ShapeError(f"np.linalg.norm takes one axis or two, and these are {len(axes)}")
    if ord is None or (ord == 2 and len(axes) == 1) or (ord == "fro" and len(axes) == 2):
        return P.sqrt(reduce_sum(P.mul(x, x), axes=axes, keepdims=bool(keepdims)))
    if len(axes) == 1:
        if ord == 1:
            return reduce_sum(P.abs_(x), axes=axes, keepdims=bool(keepdims))
        if ord == np.inf:
            return _extreme(P.abs_(x), True, axes, bool(keepdims))
        if ord == -np.inf:
            return _extreme(P.abs_(x), False, axes, bool(keepdims))
        if ord == 0:
            return reduce_sum(astype(P.ne(x, x.const(0)), x.dtype), axes=axes, keepdims=bool(keepdims))
        if isinstance(ord, int | float):
            total = reduce_sum(P.pow_(P.abs_(x), x.const(ord)), axes=axes, keepdims=bool(keepdims))
            return P.pow_(total, total.const(1 / ord))
    if len(axes) == 2 and ord in (1, -1, 2, -2, np.inf, -np.inf, "nuc"):
        given = axes if axis is None else tuple(normalise_axis("np.linalg.norm", k, x.shape) for k in axis)
        return _matrix_norm(x, ord, given, bool(keepdims))
    raise TypeError_(f"np.linalg.norm with ord={ord!r} over {len(axes)} axes: there is no such norm")


def _begins_at_zero() -> bool:
    """Whether norms that are the greatest of something are 0 where there is nothing, as from NumPy 2.3 on."""
    try:
        return bool(np.linalg.norm(np.zeros(0), np.inf) == 0)
    except ValueError:
        return False


BEGINS_AT_ZERO = _begins_at_zero()


def _extreme(x: Var, greatest: bool, axes: tuple[int, ...], keepdims: bool) -> Var:
    """The greatest or the smallest of numbers that are not negative; what NumPy has where there are none."""
    if not greatest or not BEGINS_AT_ZERO:
        refuse_empty(x.builder, x, axes, NO_IDENTITY.format("max" if greatest else "min"))
        return (reduce_max if greatest else reduce_min)(x, axes=axes, keepdims=keepdims)
    out = reduce_max(x, axes=axes, keepdims=keepdims)
    sizes = [x.shape[k] for k in axes]
    if 0 not in sizes and all(isinstance(size, int) for size in sizes):
        return out
    return P.where(P.lt(out, out.const(0)), out.const(0), out)  # -infinity where there are none


def _matrix_norm(x: Var, ord, axes: tuple[int, ...], keepdims: bool) -> Var:
    """The norm of the matrices in two axes, rows first: by sums of columns or rows, or by singular values."""
    if ord in (1, -1, np.inf, -np.inf):
        summed, other = axes if abs(ord) == 1 else axes[::-1]
        out = _extreme(reduce_sum(P.abs_(x), axes=(summed,), keepdims=True), ord > 0, (other,), True)
    else:
        rest = tuple(k for k in range(x.ndim) if k not in axes)
        lead = tuple(x.shape[k] for k in rest)
        moved = reshape(products.permuted(x, (*rest, *axes)), shape=(product(lead), *(x.shape[k] for k in axes)))
        k = lesser(x.builder, *moved.shape[1:])
        (s,) = parts(svd(moved, k=k, full=False, vectors=False), (k,))
        out = reduce_sum(s, axes=(1,)) if ord == "nuc" else _extreme(s, ord > 0, (1,), False)
        out = reshape(out, shape=tuple(1 if k in axes else n for k, n in enumerate(x.shape)))
    return out if keepdims else unwrap(reshape(out, shape=tuple(n for k, n in enumerate(x.shape) if k not in axes)))


@implements(np.kron)
def kron(b: Builder, a, b_) -> Var:
    """np.kron: every element of one array times the whole other."""
    x, y = (array_of(b, v, "np.kron") for v in (a, b_))
    if not x.shape or not y.shape:
        return A.mul(b, x, y)
    rank = max(x.ndim, y.ndim)
    outer, inner = ((1,) * (rank - v.ndim) + v.shape for v in (x, y))
    x = reshape(x, shape=tuple(size for d in outer for size in (d, 1)))
    y = reshape(y, shape=tuple(size for d in inner for size in (1, d)))
    return reshape(A.mul(b, x, y), shape=tuple(m * n for m, n in zip(outer, inner, strict=True)))


# einsum.


@implements(np.einsum, static=("subscripts", "optimize"))
def einsum(b: Builder, subscripts, *operands, optimize=False) -> Var:
    """np.einsum: operands are contracted from the left, each pair by one (batched) matrix product.

    Raises:
        TypeError_: the subscripts are no string, or name another number of operands.
        ShapeError: the subscripts do not fit the shapes.
    """
    if not isinstance(subscripts, str):
        raise TypeError_("np.einsum needs its subscripts as a string, like 'ij,jk->ik'")
    if not operands:
        raise TypeError_(f"np.einsum needs an operand for each term of '{subscripts}'")
    values = [array_of(b, v, "np.einsum") for v in promote(b, *(strong(operand(b, o, "np.einsum")) for o in operands))]
    terms, output = _parse(subscripts, [v.ndim for v in values])
    sizes: dict[str, DimLike] = {}
    for k, labels in enumerate(terms):
        for axis, label in enumerate(labels):
            d = values[k].shape[axis]
            values[k] = with_size(b, "np.einsum", values[k], axis, sizes.setdefault(label, d))
            if not same_size(sizes[label], values[k].shape[axis]):
                raise ShapeError(f"einsum '{subscripts}': axis '{label[0]}' has sizes {sizes[label]} and {d}")
    pending = [_own_axes(b, x, labels) for x, labels in zip(values, terms, strict=True)]
    out, labels = pending.pop(0)
    while True:
        needed = set(output).union(*(ls for _, ls in pending))
        out, labels = _drop(out, labels, needed)
        if not pending:
            break
        other, theirs = pending.pop(0)
        needed = set(output).union(*(ls for _, ls in pending))
        other, theirs = _drop(other, theirs, needed | set(labels))
        out, labels = _contract(out, labels, other, theirs, needed)
    out = products.permuted(out, tuple(labels.index(label) for label in output))
    return unwrap(out)


def _parse(subscripts: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Labels of the axes of each operand and of the result; the axes of an ellipsis get labels of their own.

    Raises:
        TypeError_: the subscripts name another number of operands.
        ShapeError: they do not fit the ranks, or the result has an axis twice or from no operand.
    """
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise TypeError_(f"einsum '{subscripts}' describes {len(terms)} operands, and {len(ranks)} were given")
    hidden: list[str] = []
    out = []
    for term, rank in zip(terms, ranks, strict=True):
        before, dots, after = term.partition("...")
        extra = rank - len(before) - len(after)
        if extra < 0 or (extra and not dots):
            raise ShapeError(
                f"einsum '{subscripts}': '{term}' names {len(before) + len(after)} axes of an array with {rank}"
            )
        own = [f"...{k}" for k in range(extra, 0, -1)]
        hidden = max(hidden, own, key=len)
        out.append([*before, *own, *after])
    if arrow:
        before, dots, after = right.partition("...")
        wanted = [*before, *(hidden if dots else []), *after]
        known = {label for labels in out for label in labels}
        for label in wanted:
            if label not in known:
                raise ShapeError(f"einsum '{subscripts}': no operand has the axis '{label}' of the result")
            if wanted.count(label) > 1:
                raise ShapeError(f"einsum '{subscripts}': the result has the axis '{label}' twice")
        return out, wanted
    every = [label for labels in out for label in labels]
    return out, hidden + sorted(label for label in set(every) - set(hidden) if every.count(label) == 1)


def _own_axes(b: Builder, x: Var, labels: list[str]) -> tuple[Var, list[str]]:
    """An operand whose repeated labels are replaced by diagonals."""
    while len(set(labels)) < len(labels):
        label = next(v for v in labels if labels.count(v) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        x = diagonal(b, x, 0, i, j)
        labels = [v for k, v in enumerate(labels) if k not in (i, j)] + [label]
    return x, labels


def _drop(x: Var, labels: list[str], needed: set[str]) -> tuple[Var, list[str]]:
    """Sums over the axes that nothing else needs."""
    axes = tuple(k for k, label in enumerate(labels) if label not in needed)
    if not axes:
        return x, labels
    return array_of(x.builder, reduce_sum(x, axes=axes), "einsum"), [v for v in labels if v in needed]


def _contract(x: Var, own: list[str], y: Var, theirs: list[str], needed: set[str]) -> tuple[Var, list[str]]:
    """One operand from two."""
    both = [v for v in own if v in theirs]
    batch, summed = [v for v in both if v in needed], [v for v in both if v not in needed]
    free_x, free_y = [v for v in own if v not in both], [v for v in theirs if v not in both]

    def arranged(z: Var, labels, order):
        return products.permuted(z, tuple(labels.index(v) for v in order))

    def dims(z: Var, labels, chosen):
        return tuple(z.shape[labels.index(v)] for v in chosen)

    b_dims, x_dims, y_dims = dims(x, own, batch), dims(x, own, free_x), dims(y, theirs, free_y)
    shape, labels = (*b_dims, *x_dims, *y_dims), [*batch, *free_x, *free_y]
    if not summed:
        left = reshape(arranged(x, own, [*batch, *free_x]), shape=(*b_dims, *x_dims, *(1,) * len(y_dims)))
        right = reshape(arranged(y, theirs, [*batch, *free_y]), shape=(*b_dims, *(1,) * len(x_dims), *y_dims))
        return products.plus_zero(P.mul(left, right)), labels
    k = product(dims(x, own, summed))
    left, right = arranged(x, own, [*batch, *free_x, *summed]), arranged(y, theirs, [*batch, *free_y, *summed])
    if batch and not free_x and not free_y and x.dtype != "bool":  # products of matrices with one row and one column
        sums = reduce_sum(P.mul(left, right), axes=tuple(range(len(batch), len(batch) + len(summed))))
        return array_of(x.builder, sums, "einsum"), labels
    m, n = product(x_dims), product(y_dims)
    if not batch:
        out = dot(reshape(left, shape=(m, k)), reshape(right, shape=(n, k)), transpose_b=True)
    else:
        size = product(b_dims)
        out = batched_dot(reshape(left, shape=(size, m, k)), reshape(right, shape=(size, n, k)), transpose_b=True)
    return reshape(out, shape=shape), labels


__all__ = ["einsum", "norm", "show_shape"]
