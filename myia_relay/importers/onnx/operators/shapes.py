"""Shapes: operators that arrange elements without computing."""

from __future__ import annotations

import math

import numpy as np

from ....abstract.dims import Dim, DimLike, product
from ....abstract.types import INTS
from ....ir.build import Var
from ....ir.prim import REGISTRY
from ....prims.api.promotion import guard, size_value
from ....prims.ops import elementwise as P
from ....prims.ops.shape import slice_, transpose
from ....prims.rules.broadcast import as_array, as_scalar, broadcast_to, cast, reshape
from ....prims.rules.relations import normalise_axis
from ....utils.errors import ShapeError, ValueError_
from ..table import Context, operator
from ..values import Sizes


@operator("Shape", raw=True)
def shape(c: Context, x, *, start=0, end=None):
    """The sizes of a tensor, or of some of its axes."""
    return tensor_of_sizes(x.shape[slice(start, end)])


@operator("Size", raw=True)
def size(c: Context, x):
    """The number of elements of a tensor."""
    count = product(x.shape)
    return Sizes("int64", (), (count,)) if isinstance(count, Dim) else np.int64(count)


def tensor_of_sizes(sizes: tuple):
    """A vector of sizes: symbolic if one of them is."""
    if any(isinstance(d, Dim) for d in sizes):
        return Sizes("int64", (len(sizes),), tuple(sizes))
    return np.array(sizes, np.int64).reshape(len(sizes))


@operator("ConstantOfShape", raw=("shape",))
def constant_of_shape(c: Context, shape, *, value=None):
    """A tensor of one value."""
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    if shape.shape == (0,):
        return fill.reshape(())
    sizes = shape.dims("input")
    if all(isinstance(d, int) for d in sizes) and math.prod(sizes) <= 1 << 16:
        return np.full(sizes, fill.reshape(()), fill.dtype)
    return broadcast_to(c.constant(fill.reshape(())), shape=tuple(sizes))


@operator("Constant", raw=True)
def constant(c: Context, *, value):
    """A constant."""
    return np.asarray(value)


def reshaped(c: Context, x: Var, sizes: list, allowzero: int = 0) -> Var:
    """A tensor with other sizes: -1 for what is left, 0 for the size that it has."""
    whole = [x.shape[k] if isinstance(d, int) and d == 0 and not allowzero else d for k, d in enumerate(sizes)]
    rest = [k for k, d in enumerate(whole) if isinstance(d, int) and d == -1]
    if len(rest) == 1:
        others = product(d for k, d in enumerate(whole) if k != rest[0])
        total = product(x.shape)
        if isinstance(others, Dim) and others == total:
            whole[rest[0]] = 1
        elif others == 0:
            whole[rest[0]] = 0
        elif isinstance(left := total // others, Dim) and not left.atoms:
            whole[rest[0]] = left
    return c.numpy(np.reshape, x, tuple(whole))


@operator("Reshape", until=4, carries=True)
def reshape_1(c: Context, x, *, shape, consumed_inputs=None):
    """A tensor with other sizes."""
    return reshaped(c, x, list(shape))


@operator("Reshape", since=5, raw=("shape",), carries=True)
def reshape_5(c: Context, x, shape, *, allowzero=0):
    """A tensor with other sizes."""
    if shape.known is not None:
        return reshaped(c, x, shape.dims("shape"), allowzero)
    numbers = shape.scalars("shape")
    total, others = size_value(c.b, product(x.shape)), None
    chosen = []
    for k, d in enumerate(numbers):
        own = d
        if not allowzero and k < len(x.shape):
            own = P.where(P.eq(d, d.const(0)), size_value(c.b, x.shape[k]), d)
        chosen.append(own)
        factor = P.where(P.lt(own, own.const(0)), own.const(1), own)
        others = factor if others is None else P.mul(others, factor)
    if others is None:
        return c.numpy(np.reshape, x, ())
    left = P.floordiv(total, P.maximum(others, others.const(1)))
    sizes = [c.size(P.where(P.lt(d, d.const(0)), left, d)) for d in chosen]
    return c.numpy(np.reshape, x, tuple(sizes))


@operator("Flatten", carries=True)
def flatten(c: Context, x, *, axis=1):
    """Two axes: those before an axis, and the others."""
    at = axis + len(x.shape) if axis < 0 else axis
    return reshape(x, shape=(product(x.shape[:at]), product(x.shape[at:])))


@operator("Transpose", carries=True)
def transpose_(c: Context, x, *, perm=None):
    """The axes in another order."""
    return transpose(x, perm=tuple(perm) if perm else tuple(range(len(x.shape)))[::-1])


def squeezed(c: Context, x: Var, axes) -> Var:
    """A tensor without axes of size 1.

    Where no axes are given, those whose sizes only a run tells are kept, and a run in which one is 1 raises ShapeError: the result
    has another rank there.

    Raises:
        ShapeError: an axis has another size.
    """
    rank = len(x.shape)
    if axes is None:
        axes = [k for k, d in enumerate(x.shape) if d == 1]
        for k, d in enumerate(x.shape):
            if isinstance(d, Dim):
                n = size_value(c.b, d)
                text = f"Squeeze without axes drops axis {k}, whose size {d} is 1; it has to be compiled for such sizes"
                guard(c.b, P.ne(n, n.const(1)), ShapeError, text)
    gone = {normalise_axis("Squeeze", int(a), x.shape) for a in axes}
    if any(isinstance(x.shape[k], int) and x.shape[k] != 1 for k in gone):
        raise ShapeError(f"axes {sorted(gone)} of the shape {x.shape} are not all of size 1")
    return reshape(x, shape=tuple(x.shape[k] for k in range(rank) if k not in gone))


@operator("Squeeze", until=12, carries=True)
def squeeze_1(c: Context, x, *, axes=None):
    """A tensor without axes of size 1."""
    return squeezed(c, x, axes)


@operator("Squeeze", since=13, static=("axes",), carries=True)
def squeeze_13(c: Context, x, axes=None):
    """A tensor without axes of size 1."""
    return squeezed(c, x, axes)


def unsqueezed(x: Var, axes) -> Var:
    """A tensor with further axes of size 1.

    Raises:
        ShapeError: an axis occurs twice, or is none.
    """
    rank = len(x.shape) + len(axes)
    new = {int(a) % rank for a in axes if -rank <= int(a) < rank}
    if len(new) != len(axes):
        raise ShapeError(f"axes {list(axes)} for a result of {rank} axes")
    sizes = iter(x.shape)
    return reshape(x, shape=tuple(1 if k in new else next(sizes) for k in range(rank)))


@operator("Unsqueeze", until=12, carries=True)
def unsqueeze_1(c: Context, x, *, axes):
    """A tensor with further axes of size 1."""
    return unsqueezed(x, axes)


@operator("Unsqueeze", since=13, static=("axes",), carries=True)
def unsqueeze_13(c: Context, x, axes):
    """A tensor with further axes of size 1."""
    return unsqueezed(x, np.atleast_1d(axes))


@operator("Expand", raw=("shape",), carries=True)
def expand(c: Context, x, shape):
    """A tensor broadcast to a shape, as in an addition."""
    sizes = shape.dims("shape")
    have: list = [1] * (len(sizes) - len(x.shape)) + list(x.shape)
    want: list = [1] * (len(have) - len(sizes)) + sizes
    out = [h if isinstance(w, int) and w == 1 else w for h, w in zip(have, want, strict=True)]
    if all(a == h for a, h in zip(out, have)) and len(have) == len(x.shape):
        return x
    return c.numpy(np.broadcast_to, x, tuple(out))


@operator("Tile", since=6, sizes=("repeats",), carries=True)
def tile(c: Context, x, repeats):
    """Copies of a tensor one behind the other along each axis."""
    wide, goal, final = [], [], []
    for n, r in zip(x.shape, repeats, strict=True):
        wide += [1, n]
        goal += [r, n]
        final.append(n * r)
    return reshape(broadcast_to(reshape(x, shape=tuple(wide)), shape=tuple(goal)), shape=tuple(final))


def joined(c: Context, parts: list[Var], axis: int) -> Var:
    """Tensors one behind the other."""
    return parts[0] if len(parts) == 1 else c.numpy(np.concatenate, parts, axis=axis)


@operator("Concat", raw=True)
def concat(c: Context, *xs, axis=1):
    """Tensors one behind the other along an axis."""
    out = joined(c, [x.var for x in xs], axis)
    return out if xs[0].narrow is None else c.narrowed(out, xs[0].narrow)


# Parts.


@operator("Slice", until=9, carries=True)
def slice_1(c: Context, x, *, starts, ends, axes=None):
    """A part of a tensor."""
    return cut(c, x, list(starts), list(ends), axes, None)


@operator("Slice", since=10, raw=("starts", "ends"), static=("axes", "steps"), carries=True)
def slice_10(c: Context, x, starts, ends, axes=None, steps=None):
    """A part of a tensor, with steps; ends beyond it are cut off."""
    if starts.known is not None and ends.known is not None:
        return cut(c, x, starts.dims("starts"), ends.dims("ends"), axes, steps)
    return cut(c, x, starts.scalars("starts"), ends.scalars("ends"), axes, steps)


def cut(c: Context, x: Var, starts: list, ends: list, axes, steps) -> Var:
    """A part of a tensor along some axes."""
    axes = range(len(starts)) if axes is None else [normalise_axis("Slice", int(a), x.shape) for a in axes]
    steps = [1] * len(starts) if steps is None else [int(s) for s in steps]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        x = cut_axis(c, x, start, end, axis, step)
    return x


def cut_axis(c: Context, x: Var, start, end, axis: int, step: int) -> Var:
    """A part along one axis.

    Raises:
        ValueError_: the step is 0.
    """
    n = x.shape[axis]
    if step == 0:
        raise ValueError_("a step is 0")
    rank = len(x.shape)
    if all(isinstance(v, int) for v in (start, end)):
        if isinstance(n, int):
            found = range(*slice(start, end if end > -(2**31) or step > 0 else None, step).indices(n))
            if step < 0:
                x = REGISTRY["flip"](x, axes=(axis,))
                found = range(n - 1 - found.start, n - 1 - found.stop, -step) if len(found) else range(0)
            starts = tuple(found.start if k == axis and len(found) else 0 for k in range(rank))
            sizes = tuple(len(found) if k == axis else d for k, d in enumerate(x.shape))
            every = tuple(found.step if k == axis else 1 for k in range(rank))
            return x if sizes == x.shape and every[axis] == 1 else slice_(x, starts=starts, sizes=sizes, steps=every)
        if start == 0 and end >= 2**31 - 1 and step == 1:
            return x
        if step == -1 and start in (-1, 2**31 - 1, 2**63 - 1) and end <= -(2**31):
            return REGISTRY["flip"](x, axes=(axis,))
    if isinstance(start, int) and start == 0 and end == n and step == 1:
        return x
    # The ends are cut off as Python does, at run time.
    size = size_value(c.b, n)
    low, high = (v if isinstance(v, Var) else size_value(c.b, v) for v in (start, end))
    low, high = (P.where(P.lt(v, v.const(0)), P.add(v, size), v) for v in (low, high))
    if step < 0:
        x = REGISTRY["flip"](x, axes=(axis,))
        one = size.const(1)
        low, high = size - one - low, size - one - high
    zero = size.const(0)
    low, high = (P.minimum(P.maximum(v, zero), size) for v in (low, high))
    width = abs(step)
    room = P.maximum(high - low, zero)
    length = c.bound(room if width == 1 else P.floordiv(room + room.const(width - 1), room.const(width)))
    index = as_positions(c, length)
    places = index * index.const(width) + as_array(cast(low, dtype="int64", weak=False))
    return REGISTRY["take"](x, places, axis=axis)


def as_positions(c: Context, n: DimLike) -> Var:
    """0, 1, ... as int64."""
    return c.b.var(c.b.emit(REGISTRY["iota"], (), {"n": n, "dtype": "int64"}))


@operator("Split", until=12, carries=True)
def split_2(c: Context, x, *, axis=0, split=None):
    """Parts of a tensor along an axis."""
    return parted(c, x, axis, split, None)


@operator("Split", since=13, static=("split",), carries=True)
def split_13(c: Context, x, split=None, *, axis=0, num_outputs=None):
    """Parts of a tensor along an axis; of parts of one size the last one may be smaller."""
    return parted(c, x, axis, split, num_outputs)


def parted(c: Context, x: Var, axis: int, sizes, count: int | None):
    """Parts of a tensor along an axis.

    Raises:
        ShapeError: the sizes do not add up, or one that must be known is not.
    """
    axis = normalise_axis("Split", axis, x.shape)
    n, count = x.shape[axis], count or c.outputs
    if sizes is None:
        if isinstance(n, Dim) and isinstance(part := n // count, Dim) and part.atoms:
            raise ShapeError(f"it splits an axis of the unknown size {n} into {count} parts")
        each = n // count if isinstance(n, Dim) else -(-n // count)
        sizes = [each] * (count - 1) + [n - each * (count - 1)]
    sizes = [s if isinstance(s, Dim) else int(s) for s in sizes]
    if isinstance(n, int) and sum(sizes) != n or any(isinstance(s, int) and s < 0 for s in sizes):
        raise ShapeError(f"parts of {sizes} do not make up an axis of {n}")
    found, start = [], 0
    for s in sizes:
        starts = tuple(start if k == axis else 0 for k in range(len(x.shape)))
        found.append(
            slice_(
                x,
                starts=starts,
                sizes=tuple(s if k == axis else d for k, d in enumerate(x.shape)),
                steps=(1,) * len(x.shape),
            )
        )
        start = start + s
    return tuple(found)


# Padding.

MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@operator("Pad", until=10)
def pad_2(c: Context, x, *, pads=None, paddings=None, mode="constant", value=0.0):
    """A tensor with something around it."""
    return padded_by(c, x, list(pads or paddings or ()), mode, x.const(value), None)


@operator("Pad", since=11, sizes=("pads",), static=("axes",))
def pad_11(c: Context, x, pads, value=None, axes=None, *, mode="constant"):
    """A tensor with something around it; negative widths cut off."""
    return padded_by(c, x, pads, mode, value, axes)


def padded_by(c: Context, x: Var, pads: list, mode: str, value: Var | None, axes) -> Var:
    """A tensor with something around it.

    Raises:
        ValueError_: the mode is unknown.
    """
    if mode not in MODES:
        raise ValueError_(f"its mode '{mode}' is unknown")
    rank = len(x.shape)
    axes = list(range(rank)) if axes is None else [normalise_axis("Pad", int(a), x.shape) for a in axes]
    widths: list[list[DimLike]] = [[0, 0] for _ in range(rank)]
    for k, axis in enumerate(axes):
        widths[axis] = [pads[k], pads[k + len(axes)]]
    for axis, (low, high) in enumerate(widths):
        a = -low if isinstance(low, int) and low < 0 else 0
        b = -high if isinstance(high, int) and high < 0 else 0
        if a or b:
            starts = tuple(a if k == axis else 0 for k in range(rank))
            sizes = tuple(d - (a + b) if k == axis else d for k, d in enumerate(x.shape))
            x = slice_(x, starts=starts, sizes=sizes, steps=(1,) * rank)
            widths[axis] = [0 if a else low, 0 if b else high]
    if not any(isinstance(w, Dim) or w for pair in widths for w in pair):
        return x
    if mode == "constant":
        fill = x.const(0) if value is None else value
        low, high = tuple(w[0] for w in widths), tuple(w[1] for w in widths)
        fill = as_scalar(reshape(fill, shape=())) if fill.shape == () or fill.shape == (1,) else fill
        return REGISTRY["pad"](x, fill, low=low, high=high, interior=(0,) * rank)
    return c.numpy(np.pad, x, tuple(map(tuple, widths)), mode=mode)


@operator("CenterCropPad", sizes=("shape",))
def center_crop_pad(c: Context, x, shape, *, axes=None):
    """A tensor cut or padded with zeros to a shape, in the middle.

    Raises:
        ShapeError: a size is not known.
    """
    axes = range(len(x.shape)) if axes is None else [normalise_axis("CenterCropPad", a, x.shape) for a in axes]
    pads: list = [0] * (2 * len(x.shape))
    for axis, want in zip(axes, shape, strict=True):
        have = x.shape[axis]
        if isinstance(have, Dim) or isinstance(want, Dim):
            raise ShapeError(f"it needs known sizes, and these are {have} and {want}")
        more = want - have
        low = more // 2 if more >= 0 else -(-more // 2)
        pads[axis], pads[axis + len(x.shape)] = low, more - low
    return padded_by(c, x, pads, "constant", None, None)


# Blocks, triangles, ranges.


@operator("DepthToSpace", carries=True)
def depth_to_space(c: Context, x, *, blocksize, mode="DCR"):
    """Blocks of channels as blocks of an image."""
    n, d, h, w = x.shape
    k = blocksize
    if mode == "DCR":
        parts = reshape(x, shape=(n, k, k, d // (k * k), h, w))
        turned = transpose(parts, perm=(0, 3, 4, 1, 5, 2))
    else:
        parts = reshape(x, shape=(n, d // (k * k), k, k, h, w))
        turned = transpose(parts, perm=(0, 1, 4, 2, 5, 3))
    return reshape(turned, shape=(n, d // (k * k), h * k, w * k))


@operator("SpaceToDepth", carries=True)
def space_to_depth(c: Context, x, *, blocksize, mode="DCR"):
    """Blocks of an image as blocks of channels."""
    n, d, h, w = x.shape
    k = blocksize
    parts = reshape(x, shape=(n, d, h // k, k, w // k, k))
    turned = transpose(parts, perm=(0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return reshape(turned, shape=(n, d * k * k, h // k, w // k))


@operator("Trilu", raw=("k",))
def trilu(c: Context, x, k=None, *, upper=1):
    """The upper or lower triangle of matrices; the rest is zero."""
    n, m = x.shape[-2:]
    at = 0 if k is None else k.number
    rows = as_positions(c, n)
    columns = as_positions(c, m)
    away = P.sub(reshape(columns, shape=(1, m)), reshape(rows, shape=(n, 1)))
    offset = as_array(k.var) if k is not None and at is None else away.const(int(at or 0))
    offset = reshape(offset, shape=()) if isinstance(offset, Var) and offset.shape != () else offset
    kept = (P.ge if upper else P.le)(away, offset)
    zero = broadcast_to(c.constant(0, x.dtype), shape=x.shape)
    return P.where(broadcast_to(kept, shape=x.shape), x, zero)


@operator("EyeLike")
def eye_like(c: Context, x, *, dtype=None, k=0):
    """A matrix of a shape with ones on a diagonal."""
    n, m = x.shape
    away = P.sub(reshape(as_positions(c, m), shape=(1, m)), reshape(as_positions(c, n), shape=(n, 1)))
    return cast(P.eq(away, away.const(k)), dtype=dtype or x.dtype)


@operator("Range", raw=True)
def range_(c: Context, start, limit, delta):
    """start, start + delta, ... up to limit."""
    known = [x.known for x in (start, limit, delta)]
    if start.dtype in INTS:
        if all(k is not None and k.dtype != object for k in known):
            first, last, step = (int(k.reshape(())[()]) for k in known)
            return integer_range(first, last, step, start.dtype)
        if all(k is not None for k in known) and delta.number == 1:
            low, high = (k.reshape(-1)[0] for k in known[:2])
            count: DimLike = high - low
        else:
            count = c.bound(steps_between(*(reshape(x.var, shape=()) for x in (start, limit, delta))))
        index = cast(as_positions(c, count), dtype=start.dtype)
        return index * reshape(delta.var, shape=()) + reshape(start.var, shape=())
    low, high, step = (cast(reshape(x.var, shape=()), dtype="float64") for x in (start, limit, delta))
    steps = P.maximum(P.ceil((high - low) / step), high.const(0))
    count = c.bound(cast(as_scalar(steps), dtype="int64", weak=True))
    index = cast(as_positions(c, count), dtype=start.dtype)
    return index * reshape(delta.var, shape=()) + reshape(start.var, shape=())


def integer_range(start: int, limit: int, delta: int, dtype: str) -> np.ndarray:
    """np.arange, which finds the number of elements in float64, in exact arithmetic.

    Raises:
        ValueError_: the step is 0.
    """
    if delta == 0:
        raise ValueError_("its step is 0")
    count = len(range(start, limit, delta))
    return (np.arange(count).astype(dtype) * np.array(delta, dtype) + np.array(start, dtype)).astype(dtype)


def steps_between(start: Var, limit: Var, delta: Var) -> Var:
    """How many steps of integers there are between two, as a Python int.

    Distances are computed in uint64, where none overflows.
    """
    up = P.gt(delta, delta.const(0))
    wide = "uint64" if start.dtype == "uint64" else "int64"
    low, high, step = (cast(v, dtype=wide) for v in (start, limit, delta))
    away = cast(P.where(up, high - low, low - high), dtype="uint64")
    size = cast(P.where(up, step, P.neg(step)), dtype="uint64")
    some = P.logical_and(P.where(up, P.lt(start, limit), P.gt(start, limit)), P.ne(delta, delta.const(0)))
    one = away.const(1)
    count = P.floordiv(away - one, P.maximum(size, one)) + one
    return cast(as_scalar(P.where(some, count, count.const(0))), dtype="int64", weak=True)


@operator("OneHot", raw=("depth",))
def one_hot(c: Context, indices, depth, values, *, axis=-1):
    """A new axis with a value at the index, and another one elsewhere."""
    (n,) = depth.dims("depth") if depth.dtype.startswith(("int", "uint")) else [int(depth.static("depth").reshape(()))]
    rank = len(indices.shape) + 1
    at = axis % rank
    index = cast(indices, dtype="int64")
    count = as_array(cast(size_value(c.b, n), dtype="int64", weak=False))
    index = P.where(P.lt(index, index.const(0)), index + count, index)
    wide = reshape(index, shape=(*index.shape[:at], 1, *index.shape[at:]))
    hit = P.eq(wide, reshape(as_positions(c, n), shape=tuple(n if k == at else 1 for k in range(rank))))
    off, on = (reshape(slice_(values, starts=(k,), sizes=(1,), steps=(1,)), shape=()) for k in (0, 1))
    return P.where(hit, on, off)


@operator("ReverseSequence")
def reverse_sequence(c: Context, x, sequence_lens, *, batch_axis=1, time_axis=0):
    """The first elements along the time axis in the opposite order, as many as each example has."""
    n = x.shape[time_axis]
    t = reshape(as_positions(c, n), shape=tuple(n if k == time_axis else 1 for k in range(len(x.shape))))
    lens = cast(sequence_lens, dtype="int64")
    lens = reshape(lens, shape=tuple(lens.shape[0] if k == batch_axis else 1 for k in range(len(x.shape))))
    source = P.where(P.lt(t, lens), lens - t.const(1) - t, t)
    return c.numpy(np.take_along_axis, x, broadcast_to(source, shape=x.shape), axis=time_axis)
