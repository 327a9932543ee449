"""What the derivatives of factorisations are written with: stacks of matrices, arrays of three axes.

A factorisation with several results returns them in one array: for each matrix a vector that begins with `info`, 0 where all is
well. `parts` takes it apart, `packed` makes one.
"""

from __future__ import annotations

from ...ir.axes import Axes
from ...ir.prim import REGISTRY
from .broadcast import nullary, reduce_sum, reshape, shape_of, zeros_like
from .relations import const_like, require_array, same_dtype

FLOATS = ("float32", "float64")
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
