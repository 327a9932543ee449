"""NumPy's functions on shapes: rearranging, joining, making arrays."""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations

import numpy as np

from ...abstract.dims import Dim, DimLike, is_run_time, may_be_equal, never_negative, product
from ...abstract.types import Array, Scalar, Struct, numpy_dtype
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops.indexing import take
from ..ops.shape import concatenate, flip, slice_
from ..ops.shape import stack as stack_arrays
from ..rules.broadcast import broadcast_to, full, nullary, reshape
from ..rules.relations import normalise_axes, normalise_axis, show_shape
from .array_indices import repeated
from .implementations import implements, method
from .products import permuted
from .promotion import (
    NEGATIVE,
    agreeing,
    as_int,
    bind_size,
    guard,
    is_weak,
    operand,
    promote,
    python,
    require_static_int,
    size_argument,
    size_value,
    static_int,
    static_size,
    strong,
    unwrap,
    with_size,
)


def array_of(b: Builder, x, what: str) -> Var:
    """An operand as an array; numbers become arrays without axes."""
    from ..rules.broadcast import as_array

    x = strong(operand(b, x, what))
    return x if isinstance(x.type, Array) else as_array(x)


def sizes_of(b: Builder, shape, what: str, negative: str = NEGATIVE) -> tuple[DimLike, ...]:
    """The shape of an array that is made: as `static_shape`, and no size is negative; see `static_size`."""
    if isinstance(shape, Var) or not hasattr(shape, "__iter__"):
        shape = (shape,)
    return tuple(static_size(b, d, f"{what}: a size", negative) for d in shape)


ONE_UNKNOWN = "can only specify one unknown dimension"


def full_shape(b: Builder, x: Var, given: tuple[DimLike | Var, ...]) -> tuple[DimLike, ...]:
    """The shape that an array is given: the negative size is what is left, also where only a run tells which one that is.

    Args:
        b: the builder.
        x: the array.
        given: numbers, sizes of axes, and ints computed at run time.

    Raises:
        ShapeError: more than one size is negative, or they do not fit. Where only a run tells, that raises ValueError.
    """
    numbers = tuple(d for d in given if not isinstance(d, Var))
    unknown = sum(_is_unknown(d) for d in given)
    if unknown > 1:
        raise ShapeError(f"reshape: {ONE_UNKNOWN}")
    if len(numbers) < len(given):
        return _computed_shape(b, x, given)
    if unknown:
        rest = _what_is_left(b, x, numbers)
        return tuple(rest if _is_unknown(d) else d for d in numbers)
    have, want = product(x.shape), product(numbers)
    if have != want and may_be_equal(have, want):
        refuse_reshape(b, P.eq(size_value(b, have), size_value(b, want)), x, numbers)
    return numbers


def _is_unknown(size: DimLike | Var) -> bool:
    return isinstance(size, int) and size < 0


def _what_is_left(b: Builder, x: Var, shape: tuple[DimLike, ...]) -> DimLike:
    """The size that stands for -1 in a shape.

    Raises:
        ShapeError: there is none.
    """
    others = [d for d in shape if not _is_unknown(d)]
    size, known = product(x.shape), product(others)
    rest = 0 if known == 0 else size // known
    exact, at_run_time = rest * known == size, is_run_time(known) or is_run_time(size)
    if known == 0 or not (exact or at_run_time or (isinstance(known, int) and isinstance(size, Dim))):
        raise ShapeError(f"cannot reshape array of shape {show_shape(x.shape)} into shape {show_shape(shape)}")
    if exact and never_negative(known - 1):
        return rest
    fits, left = _divided(size_value(b, size), [size_value(b, d) for d in others])
    refuse_reshape(b, fits, x, shape)
    return rest if exact or not at_run_time else bind_size(b, left)


def _computed_shape(b: Builder, x: Var, given: tuple[DimLike | Var, ...]) -> tuple[DimLike, ...]:
    """A shape with ints computed at run time.

    Raises:
        ShapeError: no ints fit.
    """
    size, known = product(x.shape), product(d for d in given if not isinstance(d, Var) and not _is_unknown(d))
    if known == 0 and isinstance(size, int) and size:
        shown = show_shape(tuple("?" if isinstance(d, Var) else d for d in given))
        raise ShapeError(f"cannot reshape array of shape {show_shape(x.shape)} into shape {shown}")
    have = size_value(b, size)
    sizes = {k: d if isinstance(d, Var) else size_value(b, d) for k, d in enumerate(given)}
    below = {k: P.lt(d, d.const(0)) for k, d in sizes.items() if isinstance(given[k], Var) or _is_unknown(given[k])}
    literal = [k for k in below if not isinstance(given[k], Var)]
    for one, other in combinations(below.values(), 2):
        guard(b, P.logical_not(P.logical_and(one, other)), ValueError, ONE_UNKNOWN)
    if len(below) == 1 and isinstance(known, int) and known and size // known * known == size:
        ((k, negative),) = below.items()  # the size is the same, whether it is computed or what is left
        rest = size_value(b, size // known)
        refuse_reshape(b, P.logical_or(negative, P.eq(sizes[k], rest)), x, given)
        return tuple(bind_size(b, rest) if isinstance(d, Var) else d for d in given)  # branches may differ in it
    fits, rest = _divided(have, [P.where(below[k], d.const(1), d) if k in below else d for k, d in sizes.items()])
    if not literal:
        whole = P.where(P.eq(have, have.const(0)), P.logical_not(fits), P.logical_and(fits, P.eq(rest, have.const(1))))
        refuse_reshape(b, P.logical_or(reduce(P.logical_or, below.values()), whole), x, given)
    for k in literal or below:
        refuse_reshape(b, P.logical_or(P.logical_not(below[k]), fits), x, (*given[:k], -1, *given[k + 1 :]))
    for k in below:  # after the checks: what is no size is not bound
        sizes[k] = rest if k in literal else sizes[k] if literal else P.where(below[k], rest, sizes[k])
    return tuple(bind_size(b, sizes[k]) if isinstance(d, Var) or _is_unknown(d) else d for k, d in enumerate(given))


def _divided(have: Var, sizes: list[Var]) -> tuple[Var, Var]:
    """Whether sizes divide a number of elements, and the quotient. One by one: their product may be too great for an int."""
    fits, left = P.ge(have, have.const(0)), have
    for d in sizes:
        by = P.maximum(d, d.const(1))
        fits = P.logical_and(fits, P.logical_and(P.eq(by, d), P.eq(P.mod(left, by), left.const(0))))
        left = P.floordiv(left, by)
    return fits, left


def refuse_reshape(b: Builder, fits: Var, x: Var, shape: tuple[DimLike | Var, ...]) -> None:
    """Raise at run time, in NumPy's words, unless an array fits into a shape, in which -1 may stand for a size."""
    known = [not _is_unknown(d) for d in shape]
    first = known.index(True) if any(known) else len(known)  # NumPy does not show what it would compute before that
    parts: list[str | int] = ["cannot reshape array of size ", 0, " into shape ("]
    operands = [size_value(b, product(x.shape))]
    for d, k in list(zip(shape, known, strict=True))[first:]:
        if len(parts) > 3:
            parts.append(",")
        parts.append(len(operands) if k else "newaxis")
        operands += [d if isinstance(d, Var) else size_value(b, d)] if k else []
    parts.append(",)" if len(shape) == 1 else ")")
    guard(b, fits, ValueError, *parts, operands=tuple(operands))


@implements(np.reshape)
def numpy_reshape(b: Builder, a, shape) -> Var:
    """np.reshape."""
    x = array_of(b, a, "np.reshape")
    given = (shape,) if isinstance(shape, Var) or not hasattr(shape, "__iter__") else shape
    return reshape(x, shape=full_shape(b, x, tuple(size_argument(b, d, "reshape: a size") for d in given)))


@method("reshape")
def _(b: Builder, x, *shape) -> Var:
    if not shape:
        raise TypeError_("reshape takes the shape of its result, and none is given")
    return numpy_reshape(b, x, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)


@implements(np.ravel)
def ravel(b: Builder, a) -> Var:
    """np.ravel: one axis."""
    x = array_of(b, a, "np.ravel")
    return reshape(x, shape=(product(x.shape),))


method("ravel", "flatten")(ravel)


@implements(np.transpose, np.permute_dims if hasattr(np, "permute_dims") else np.transpose, static=("axes",))
def numpy_transpose(b: Builder, a, axes=None) -> Var:
    """np.transpose.

    Raises:
        ShapeError: the axes do not fit the array.
    """
    x = array_of(b, a, "np.transpose")
    if axes is None:
        return scalar_kept(b, a, permuted(x, tuple(reversed(range(x.ndim)))))
    if len(axes) != x.ndim:
        raise ShapeError(f"transpose: axes {tuple(axes)} do not match an array of shape {show_shape(x.shape)}")
    return scalar_kept(b, a, permuted(x, distinct_axes("transpose", axes, x)))


def scalar_kept(b: Builder, given, out: Var) -> Var:
    """What a function that is a method of arrays and of NumPy scalars gives: of a scalar a scalar."""
    x = operand(b, given)
    return unwrap(out) if isinstance(x.type, Scalar) and not is_weak(x) else out


def distinct_axes(name: str, axes, x: Var, new: int = 0) -> tuple[int, ...]:
    """Non-negative axes in the order given, one of them as a number or several in a tuple or list.

    Raises:
        ShapeError: an axis that the array does not have, or one named twice.
    """
    given = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
    out = tuple(normalise_axis(name, k, x.shape, new) for k in given)
    if len(set(out)) != len(out):
        raise ShapeError(f"{name}: repeated axis in {given}; the shape is {show_shape(x.shape)}")
    return out


@method("transpose")
def _(b: Builder, x, *axes) -> Var:
    axes = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes
    if not axes:
        return numpy_transpose(b, x)
    return numpy_transpose(b, x, tuple(require_static_int(i, "transpose: an axis") for i in axes))


method("T", attribute=True)(lambda b, x: numpy_transpose(b, x))


@implements(np.matrix_transpose if hasattr(np, "matrix_transpose") else np.linalg.matrix_transpose)
def matrix_transpose(b: Builder, x) -> Var:
    """The last two axes swapped."""
    return swapaxes(b, x, -1, -2)


method("mT", attribute=True)(lambda b, x: matrix_transpose(b, x))


@implements(np.swapaxes, static=("axis1", "axis2"))
def swapaxes(b: Builder, a, axis1, axis2) -> Var:
    """np.swapaxes."""
    x = array_of(b, a, "np.swapaxes")
    perm = list(range(x.ndim))
    i, j = (normalise_axis("swapaxes", k, x.shape) for k in (axis1, axis2))
    perm[i], perm[j] = perm[j], perm[i]
    return permuted(x, tuple(perm))


method("swapaxes", static=("axis1", "axis2"))(swapaxes)


@implements(np.moveaxis, static=("source", "destination"))
def moveaxis(b: Builder, a, source, destination) -> Var:
    """np.moveaxis.

    Raises:
        ShapeError: there are not as many sources as destinations.
    """
    x = array_of(b, a, "np.moveaxis")
    source, destination = distinct_axes("moveaxis", source, x), distinct_axes("moveaxis", destination, x)
    if len(source) != len(destination):
        raise ShapeError(
            "moveaxis: source and destination must have the same number of axes, and these have "
            f"{len(source)} and {len(destination)}"
        )
    order = [k for k in range(x.ndim) if k not in source]
    for to, k in sorted(zip(destination, source, strict=True)):
        order.insert(to, k)
    return permuted(x, tuple(order))


@implements(np.squeeze, static=("axis",))
def squeeze(b: Builder, a, axis=None) -> Var:
    """np.squeeze.

    Raises:
        ShapeError: an axis is not of size 1, or may not be.
    """
    x = array_of(b, a, "np.squeeze")
    if axis is None:
        if any(isinstance(d, Dim) for d in x.shape):
            raise ShapeError(
                f"squeeze: whether the sizes of an array of shape {show_shape(x.shape)} are 1 is known at run time only; name the "
                "axes: np.squeeze(x, axis=0)"
            )
        axes = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        axes = normalise_axes("squeeze", axis, x.shape)
        for i in axes:
            if x.shape[i] != 1:
                raise ShapeError(f"squeeze: axis {i} of shape {show_shape(x.shape)} has size {x.shape[i]}, not 1")
    return scalar_kept(b, a, reshape(x, shape=tuple(d for i, d in enumerate(x.shape) if i not in axes)))


method("squeeze", static=("axis",))(squeeze)


@implements(np.expand_dims, static=("axis",))
def expand_dims(b: Builder, a, axis) -> Var:
    """np.expand_dims."""
    x = array_of(b, a, "np.expand_dims")
    axes = distinct_axes("expand_dims", axis, x, new=len(axis) if isinstance(axis, tuple | list) else 1)
    own = iter(x.shape)
    return reshape(x, shape=tuple(1 if k in axes else next(own) for k in range(x.ndim + len(axes))))


@implements(np.broadcast_to)
def numpy_broadcast_to(b: Builder, array, shape) -> Var:
    """np.broadcast_to."""
    x = strong(operand(b, array, "np.broadcast_to"))
    text = "all elements of broadcast shape must be non-negative"
    sizes = sizes_of(b, shape, "broadcast_to", text)
    for axis in range(-min(x.ndim, len(sizes)), 0):
        if x.shape[axis] != 1:
            x = with_size(b, "broadcast_to", x, x.ndim + axis, sizes[axis])
    return broadcast_to(x, shape=sizes)


@implements(np.flip, static=("axis",))
def numpy_flip(b: Builder, m, axis=None) -> Var:
    """np.flip."""
    x = array_of(b, m, "np.flip")
    return unwrap(flip(x, axes=normalise_axes("flip", tuple(axis) if isinstance(axis, list) else axis, x.shape)))


implements(np.fliplr)(lambda b, m: numpy_flip(b, m, 1))
implements(np.flipud)(lambda b, m: numpy_flip(b, m, 0))


# Joining.


def _rows(x: Var, what: str) -> list[Var]:
    """What an array is a sequence of.

    Raises:
        TypeError_: only a run tells how many there are.
    """
    n, *rest = x.shape
    if not isinstance(n, int):
        raise TypeError_(
            f"{what} takes a list or a tuple of arrays, and this is an array of {n} of them; write x.reshape(...)"
        )
    steps, sizes = (1,) * x.ndim, (1, *rest)
    parts = [slice_(x, starts=(k, *(0,) * len(rest)), sizes=sizes, steps=steps) for k in range(n)]
    return [reshape(part, shape=tuple(rest)) for part in parts]


def _arrays(b: Builder, arrays, what: str) -> list[Var]:
    if isinstance(arrays, Var) and isinstance(arrays.type, Array) and arrays.shape:
        arrays = _rows(arrays, what)
    if not isinstance(arrays, tuple | list) and not (isinstance(arrays, Var) and isinstance(arrays.type, Struct)):
        raise TypeError_(f"{what} takes a list or a tuple of arrays")
    items = [strong(operand(b, a, what)) for a in arrays]
    if not items:
        raise TypeError_(f"{what} needs at least one array")
    return [array_of(b, v, what) for v in promote(b, *items, what=what)]


@implements(np.concatenate, static=("axis",))
def numpy_concatenate(b: Builder, arrays, axis=0) -> Var:
    """np.concatenate.

    Raises:
        ShapeError: the arrays differ in the number of axes, or have none.
    """
    xs = _arrays(b, arrays, "np.concatenate")
    if axis is None:
        xs, axis = [ravel(b, x) for x in xs], 0
    if any(x.ndim != xs[0].ndim for x in xs) or xs[0].ndim == 0:
        shapes = ", ".join(show_shape(x.shape) for x in xs)
        raise ShapeError(f"np.concatenate: arrays of shapes {shapes} have different numbers of axes; use np.stack?")
    along = normalise_axis("np.concatenate", axis, xs[0].shape)
    for k in range(1, len(xs)):
        for other in range(xs[0].ndim):
            if other != along:
                xs[k] = with_size(b, "np.concatenate", xs[k], other, xs[0].shape[other])
    return concatenate(*xs, axis=along)


if hasattr(np, "concat"):
    implements(np.concat, static=("axis",))(numpy_concatenate)


@implements(np.stack, static=("axis",))
def stack(b: Builder, arrays, axis=0) -> Var:
    """np.stack.

    Raises:
        ShapeError: the arrays differ in shape.
    """
    xs = _arrays(b, arrays, "np.stack")
    xs = agreeing(b, "np.stack", *xs) if len({x.ndim for x in xs}) == 1 else xs
    if len({x.shape for x in xs}) > 1:
        shapes = " and ".join(show_shape(x.shape) for x in xs)
        raise ShapeError(f"np.stack: all input arrays must have the same shape, and these have {shapes}")
    return stack_arrays(*xs, axis=normalise_axis("np.stack", axis, xs[0].shape, new=1))


def _at_least_2d(x: Var) -> Var:
    return reshape(x, shape=(1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x


@implements(np.vstack)
def vstack(b: Builder, tup) -> Var:
    """np.vstack."""
    return numpy_concatenate(b, [_at_least_2d(x) for x in _arrays(b, tup, "np.vstack")], 0)


@implements(np.hstack)
def hstack(b: Builder, tup) -> Var:
    """np.hstack."""
    xs = [x if x.ndim else reshape(x, shape=(1,)) for x in _arrays(b, tup, "np.hstack")]
    return numpy_concatenate(b, xs, 0 if xs[0].ndim == 1 else 1)


@implements(np.column_stack)
def column_stack(b: Builder, tup) -> Var:
    """np.column_stack."""
    xs = _arrays(b, tup, "np.column_stack")
    return numpy_concatenate(b, [reshape(x, shape=(product(x.shape), 1)) if x.ndim < 2 else x for x in xs], 1)


@implements(np.atleast_1d)
def atleast_1d(b: Builder, a) -> Var:
    """np.atleast_1d of one array."""
    x = array_of(b, a, "np.atleast_1d")
    return x if x.ndim else reshape(x, shape=(1,))


@implements(np.atleast_2d)
def atleast_2d(b: Builder, a) -> Var:
    """np.atleast_2d of one array."""
    return _at_least_2d(array_of(b, a, "np.atleast_2d"))


def parts(b: Builder, ary, indices_or_sections, axis, equal: bool, name: str) -> list[Var]:
    """An array in parts along an axis: several of equal size, or between bounds that are known.

    Raises:
        ShapeError: there are no parts, or they are to be equal and cannot be.
        TypeError_: the bounds do not ascend, and the size of the axis has a name.
    """
    x = array_of(b, ary, name)
    axis = normalise_axis(name, axis, x.shape)
    n = x.shape[axis]
    if isinstance(indices_or_sections, int | np.integer):
        count = int(indices_or_sections)
        if count < 1:
            raise ShapeError(f"{name}: an axis cannot be split into {count} parts")
        if equal and isinstance(n, Dim) and n // count * count != n:
            total = size_value(b, n)
            even = P.eq(P.mod(total, total.const(count)), total.const(0))
            guard(b, even, ValueError, "array split does not result in an equal division")
        elif equal and isinstance(n, int) and n % count:
            raise ShapeError(f"{name}: an axis of size {n} does not split into {count} equal parts")
        sizes = [n // count if equal else (n + (count - 1 - k)) // count for k in range(count)]
        bounds: list[DimLike] = [0]
        for size in sizes:
            bounds.append(bounds[-1] + size)
        if isinstance(n, Dim):
            return _between(x, axis, bounds, sizes)
    else:
        bounds = [0, *indices_or_sections, n]
        if isinstance(n, Dim):
            last = max([0, *indices_or_sections])
            if any(i < 0 for i in indices_or_sections) or sorted(indices_or_sections) != list(indices_or_sections):
                raise TypeError_(f"{name} of an axis of size {n} needs ascending bounds of at least 0")
            text = f"{name}: the last bound is {last}, and the size "
            guard(b, P.ge(size_value(b, n), python(b, last)), IndexError, text, 0, operands=(size_value(b, n),))
    if isinstance(n, int):  # bounds are those of slices
        pairs = [slice(lo, hi).indices(n)[:2] for lo, hi in zip(bounds, bounds[1:])]
        pairs = [(min(lo, hi), hi) for lo, hi in pairs]
    else:
        pairs = list(zip(bounds, bounds[1:]))
    return _between(x, axis, [lo for lo, _ in pairs], [hi - lo for lo, hi in pairs])


def _between(x: Var, axis: int, starts: list, sizes: list) -> list[Var]:
    """Parts of an array along an axis."""
    return [
        slice_(
            x,
            starts=tuple(start if k == axis else 0 for k in range(x.ndim)),
            sizes=tuple(size if k == axis else d for k, d in enumerate(x.shape)),
            steps=(1,) * x.ndim,
        )
        for start, size in zip(starts, sizes)
    ]


@implements(np.tile)
def tile(b: Builder, A, reps) -> Var:
    """np.tile."""
    x = array_of(b, A, "np.tile")
    given = tuple(reps) if isinstance(reps, tuple | list) else (reps,)
    reps = tuple(static_size(b, r, "np.tile: reps") for r in given)
    rank = max(len(reps), x.ndim)
    reps, shape = (1,) * (rank - len(reps)) + reps, (1,) * (rank - x.ndim) + x.shape
    pairs = [v for r, d in zip(reps, shape) for v in (1, d)]
    wide = [v for r, d in zip(reps, shape) for v in (r, d)]
    out = broadcast_to(reshape(x, shape=tuple(pairs)), shape=tuple(wide))
    return reshape(out, shape=tuple(r * d for r, d in zip(reps, shape)))


@implements(np.repeat, static=("axis",))
def repeat(b: Builder, a, repeats, axis=None) -> Var:
    """np.repeat."""
    x = array_of(b, a, "np.repeat")
    if axis is None:
        x, axis = ravel(b, x), 0
    axis = normalise_axis("np.repeat", axis, x.shape)
    if isinstance(repeats, list | tuple | np.ndarray) or isinstance(repeats, Var) and isinstance(repeats.type, Array):
        counts = operand(b, repeats, "np.repeat: repeats")
        if counts.shape:
            return repeated(b, x, counts, axis)
    if x.shape[axis] == 0 or (isinstance(x.shape[axis], Dim) and static_int(repeats) is None):
        # NumPy refuses a negative size of the result. Of an empty axis that is 0, whatever it is multiplied with.
        count = as_int(b, repeats, "np.repeat: repeats")
        fine = P.logical_or(P.ge(count, count.const(0)), P.eq(size_value(b, x.shape[axis]), count.const(0)))
        guard(b, fine, ValueError, NEGATIVE)
        repeats = bind_size(b, P.maximum(count, count.const(0)))
    repeats = static_size(b, repeats, "np.repeat: repeats")
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    out = broadcast_to(reshape(x, shape=(*before, n, 1, *after)), shape=(*before, n, repeats, *after))
    return reshape(out, shape=(*before, n * repeats, *after))


@method("repeat", static=("axis",))
def _(b: Builder, x, repeats, axis=None) -> Var:
    return repeat(b, x, repeats, axis)


@implements(np.roll, static=("axis",))
def roll(b: Builder, a, shift, axis=None) -> Var:
    """np.roll: by one distance or several, each known or computed, along one axis or several.

    Raises:
        ShapeError: there are as many distances as axes, or one of either.
    """
    x = array_of(b, a, "np.roll")
    if axis is None:
        return reshape(roll(b, ravel(b, x), shift, 0), shape=x.shape)
    axes = list(axis) if isinstance(axis, tuple | list) else [axis]
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift]
    if not axes or not shifts:
        return x
    count = len(axes) if len(shifts) == 1 else len(shifts)
    if len(axes) not in (1, count):
        raise ShapeError(f"np.roll: {len(shifts)} distances and {len(axes)} axes; there are as many, or one of either")
    for by, along in zip(shifts * (count // len(shifts)), axes * (count // len(axes)), strict=True):
        x = _rolled(b, x, by, normalise_axis("np.roll", along, x.shape))
    return x


def _rolled(b: Builder, x: Var, shift, axis: int) -> Var:
    n, by = x.shape[axis], static_int(shift)
    if isinstance(n, Dim) or not isinstance(by, int):
        if not isinstance(n, Dim) and not n:
            return x
        size = strong(size_value(b, n))
        distance = python(b, np.int64(by)) if isinstance(by, int) else strong(as_int(b, shift, "np.roll: a distance"))
        at = P.mod(P.sub(nullary(x, "iota", n=n, dtype="int64"), distance), size)
        return take(x, at, axis=axis)
    at = (-by) % n if n else 0
    if at == 0:
        return x
    tail, head = parts(b, x, [at], axis, False, "np.roll")
    return concatenate(head, tail, axis=axis)


# Attributes.


def shape_value(b: Builder, x: Var):
    """The shape of an array: a tuple of ints, symbolic sizes read at run time."""
    return tuple(size_value(b, d) if isinstance(d, Dim) else d for d in x.shape)


implements(np.shape)(lambda b, a: shape_value(b, operand(b, a)))
implements(np.ndim)(lambda b, a: operand(b, a).ndim)
method("shape", attribute=True)(lambda b, x: shape_value(b, x))
method("ndim", attribute=True)(lambda b, x: x.ndim)
method("dtype", attribute=True)(lambda b, x: numpy_dtype(x.dtype))
method("itemsize", attribute=True)(lambda b, x: numpy_dtype(x.dtype).itemsize)
method("real", attribute=True)(lambda b, x: x)


@implements(np.size, static=("axis",))
def size(b: Builder, a, axis=None):
    """np.size."""
    x = operand(b, a)
    dims = x.shape if axis is None else (x.shape[normalise_axis("np.size", axis, x.shape)],)
    total = product(dims)
    return size_value(b, total) if isinstance(total, Dim) else total


method("size", attribute=True)(lambda b, x: size(b, x))

__all__ = ["array_of", "full", "math", "shape_value"]
