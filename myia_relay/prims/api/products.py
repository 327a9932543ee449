"""Products of arrays, made of `dot`, `matvec`, `batched_dot` and broadcast multiplication: `@`, np.dot, np.inner."""

from __future__ import annotations

from ...abstract.dims import DimLike, product
from ...abstract.types import Array
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.linalg import batched_dot, dot, matvec
from ..ops.reduction import reduce_any
from ..ops.shape import transpose
from ..rules.broadcast import broadcast_to, cast, reduce_sum, reshape
from ..rules.relations import broadcast_shapes, normalise_axis, same_size, show_shape
from .promotion import (
    floating,
    meeting,
    operand,
    promote,
    strong,
    unwrap,
)

_BLAS = ("float32", "float64")


def sum_products(x: Var, y: Var, axes: tuple[int, ...]) -> Var:
    """The sum of elementwise products; of booleans, whether any pair holds."""
    if x.dtype == "bool":
        return reduce_any(P.logical_and(x, y), axes=axes)
    return reduce_sum(P.mul(x, y), axes=axes)


def misfit(name: str, x: Var, y: Var, m: DimLike, n: DimLike) -> ShapeError:
    return ShapeError(
        f"{name}: shapes {show_shape(x.shape)} and {show_shape(y.shape)} do not fit: the inner sizes are {m} and {n}; "
        "transpose one of them, or check which is which"
    )


def _operands(b: Builder, x, y, name: str) -> tuple[Var, Var]:
    x, y = promote(
        b, strong(operand(b, x, name)), strong(operand(b, y, name)), what=name
    )  # a Python number is an array there
    return x, y


def matmul(b: Builder, x, y) -> Var:
    """`x @ y`, np.matmul: vectors, matrices, stacks of matrices that broadcast.

    Raises:
        TypeError_: an operand is no array, or has no axis.
        ShapeError: the shapes do not fit.
    """  # noqa: DOC501 (a function makes the exception)
    x, y = _operands(b, x, y, "@")
    for v in (x, y):
        if not isinstance(v.type, Array) or not v.shape:
            raise TypeError_(f"@ takes arrays with at least one axis, and this is {v.type}; use * for scalars")
    x, y = meeting(b, "@", x, -1, y, -1 if y.ndim == 1 else -2)
    inner_y = y.shape[0] if y.ndim == 1 else y.shape[-2]
    if not same_size(x.shape[-1], inner_y):
        raise misfit("@", x, y, x.shape[-1], inner_y)
    if x.dtype == "bool":
        # Whether any pair holds: counted, and compared with 0.
        return P.ne(*promote(b, out := matmul(b, cast(x, dtype="int64"), cast(y, dtype="int64")), out.const(0)))
    if x.ndim == 1 and y.ndim == 1:
        return sum_products(x, y, (0,))
    if x.ndim == 2 and y.ndim == 1:
        return matvec(x, y)
    if x.ndim == 1 and y.ndim == 2:
        return matvec(y, x, transpose=True)
    if x.ndim == 2 and y.ndim == 2:
        return dot(x, y)
    return _stacked(x, y)


def _stacked(x: Var, y: Var) -> Var:
    """A product with a stack of matrices on at least one side."""
    if x.ndim == 1:
        out = _stacked(reshape(x, shape=(1, *x.shape)), y)
        return reshape(out, shape=(*out.shape[:-2], out.shape[-1]))
    if y.ndim == 1:
        # One big matrix times a vector.
        rows = product(x.shape[:-1])
        return reshape(matvec(reshape(x, shape=(rows, x.shape[-1])), y), shape=x.shape[:-1])
    *stack_x, m, k = x.shape
    n = y.shape[-1]
    if y.ndim == 2:
        rows = product(x.shape[:-1])
        return reshape(dot(reshape(x, shape=(rows, k)), y), shape=(*stack_x, m, n))
    stack = broadcast_shapes("@", tuple(stack_x), y.shape[:-2])
    size = product(stack)
    x = reshape(broadcast_to(x, shape=(*stack, m, k)), shape=(size, m, k))
    y = reshape(broadcast_to(y, shape=(*stack, k, n)), shape=(size, k, n))
    return reshape(batched_dot(x, y), shape=(*stack, m, n))


def _is_one_product(x: Var, y: Var) -> bool:
    """Whether NumPy multiplies, where elsewhere it adds products to 0: -0.0 * 1 is -0.0, and 0 + -0.0 * 1 is 0.0."""
    return x.dtype in _BLAS and y.ndim <= 2 and x.shape == (1,) * x.ndim and y.shape == (1,) * y.ndim


def _scaled(x: Var, y: Var) -> Var:
    """A number times an array. NumPy adds the multiples of vectors and matrices to zeros, as above (BLAS's axpy)."""
    out = P.mul(x, y)
    adds = out.dtype in _BLAS and 0 < out.ndim <= 2 and out.shape != (1,) * out.ndim
    return plus_zero(out) if adds else out


def plus_zero(x: Var) -> Var:
    """What a sum that starts at 0 makes of one number: itself, and 0.0 of -0.0."""
    return P.add(x, x.const(0)) if x.type.is_float else x


def numpy_dot(b: Builder, x, y) -> Var:
    """np.dot: products of scalars, of vectors, of the last axis of x with the last but one of y."""
    x, y = _operands(b, x, y, "np.dot")
    if not x.shape or not y.shape:
        return unwrap(P.logical_and(x, y) if x.dtype == "bool" else _scaled(x, y))
    if x.ndim <= 2 and _is_one_product(x, y):
        return unwrap(reshape(P.mul(reshape(x, shape=()), reshape(y, shape=())), shape=(1,) * (x.ndim + y.ndim - 2)))
    if y.ndim <= 2:
        return matmul(b, x, y)
    return tensordot(b, x, y, ((x.ndim - 1,), (y.ndim - 2,)), "np.dot")


def inner(b: Builder, x, y) -> Var:
    """np.inner: sums over the last axes of both."""
    x, y = _operands(b, x, y, "np.inner")
    if not x.shape or not y.shape:
        return unwrap(_scaled(x, y))
    return tensordot(b, x, y, ((x.ndim - 1,), (y.ndim - 1,)), "np.inner")


def outer(b: Builder, x, y) -> Var:
    """np.outer: all products of elements of two flattened arrays."""
    x, y = _operands(b, x, y, "np.outer")
    m, n = product(x.shape), product(y.shape)
    x, y = reshape(x, shape=(m, 1)), reshape(y, shape=(1, n))
    return P.logical_and(x, y) if x.dtype == "bool" else P.mul(x, y)


def tensordot(b: Builder, x, y, axes, name: str = "np.tensordot") -> Var:
    """np.tensordot: sums over pairs of axes, as one matrix product.

    Raises:
        TypeError_: the axes are of another form, or the arrays are of booleans.
        ShapeError: the axes do not fit the shapes.
    """  # noqa: DOC501 (a function makes the exception)
    x, y = _operands(b, x, y, name)
    if isinstance(axes, int):
        if axes > min(x.ndim, y.ndim):
            raise ShapeError(f"{name}: {axes} axes of arrays of shapes {show_shape(x.shape)} and {show_shape(y.shape)}")
        axes = (tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes)))
    elif not isinstance(axes, tuple | list) or len(axes) != 2:
        raise TypeError_(f"{name}: axes is an int or a pair of axes or of tuples of axes, and this is {axes!r}")
    own, other = (tuple(a) if isinstance(a, tuple | list) else (a,) for a in axes)
    if len(own) != len(other):
        raise ShapeError(f"{name}: {len(own)} axes of one array cannot meet {len(other)} of the other")
    own, other = (tuple(normalise_axis(name, a, v.shape) for a in chosen) for v, chosen in ((x, own), (y, other)))
    if len(set(own)) != len(own) or len(set(other)) != len(other):
        raise ShapeError(f"{name}: repeated axis in {axes}")
    for i, j in zip(own, other, strict=True):
        x, y = meeting(b, name, x, i, y, j)
        if not same_size(x.shape[i], y.shape[j]):
            raise misfit(name, x, y, x.shape[i], y.shape[j])
    free_x = tuple(i for i in range(x.ndim) if i not in own)
    free_y = tuple(j for j in range(y.ndim) if j not in other)
    k = product(x.shape[i] for i in own)
    shape_x, shape_y = tuple(x.shape[i] for i in free_x), tuple(y.shape[j] for j in free_y)
    # y with its summed axes last: `dot` then reads it transposed, and a product with a transposed matrix moves no data.
    left = reshape(permuted(x, (*free_x, *own)), shape=(product(shape_x), k))
    right = reshape(permuted(y, (*free_y, *other)), shape=(product(shape_y), k))
    if left.dtype == "bool":
        raise TypeError_(f"{name} of booleans is not supported; convert them with .astype(int)")
    matrices = name == "np.tensordot" or (x.ndim <= 2 and y.ndim <= 2)
    out = P.mul(left, right) if matrices and _is_one_product(left, right) else dot(left, right, transpose_b=True)
    shape = (*shape_x, *shape_y)
    out = reshape(out, shape=shape)
    return out if shape or name == "np.tensordot" else unwrap(out)  # np.tensordot gives an array without axes


def permuted(x: Var, perm: tuple[int, ...]) -> Var:
    """`x` with its axes in another order; itself where that is the same."""
    return x if tuple(perm) == tuple(range(x.ndim)) else transpose(x, perm=tuple(perm))


__all__ = ["floating", "inner", "matmul", "numpy_dot", "outer", "permuted", "plus_zero", "sum_products", "tensordot"]
