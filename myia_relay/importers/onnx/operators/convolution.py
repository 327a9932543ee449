"""Convolution and pooling over one, two and three axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....abstract.dims import Dim, DimLike, known_size, product
from ....abstract.types import FLOATS, numpy_dtype
from ....ir.build import Var
from ....ir.prim import REGISTRY
from ....library.rows import put_rows
from ....prims.api.images.dilated import dilated_conv2d
from ....prims.api.nn_api import windows_fit
from ....prims.api.subscripts import checked_positions
from ....prims.ops import elementwise as P
from ....prims.ops import nn
from ....prims.ops.indexing import scatter_add, take
from ....prims.ops.reduction import reduce_max, reduce_min
from ....prims.ops.shape import pad as pad_prim
from ....prims.ops.shape import slice_, transpose
from ....prims.rules.broadcast import broadcast_to, cast, reduce_sum, reshape
from ....prims.rules.relations import show_shape
from ....utils.errors import ShapeError
from ..table import Context, operator
from .shapes import as_positions

MOST_PARTS = 64
"""Elements of windows that are combined one by one."""
Sides = tuple[tuple[DimLike, DimLike], ...]


def padded(x: Var, sides: Sides, value: float, interior: int | tuple = 0) -> Var:
    """A tensor with a value around its last axes; negative widths cut off."""
    spaces = (interior,) * len(sides) if isinstance(interior, int) else interior
    lead = len(x.shape) - len(sides)
    cut = [(max(-a, 0) if isinstance(a, int) else 0, max(-b, 0) if isinstance(b, int) else 0) for a, b in sides]
    low = (0,) * lead + tuple(max(a, 0) if isinstance(a, int) else a for a, _ in sides)
    high = (0,) * lead + tuple(max(b, 0) if isinstance(b, int) else b for _, b in sides)
    if any(low) or any(high) or any(spaces):
        fill = x.builder.var(x.builder.constant(np.asarray(value, numpy_dtype(x.dtype))[()]))
        x = pad_prim(x, fill, low=low, high=high, interior=(0,) * lead + tuple(spaces))
    if any(a or b for a, b in cut):
        starts = (0,) * lead + tuple(a for a, _ in cut)
        sizes = tuple(d - (a + b) for d, (a, b) in zip(x.shape, [(0, 0)] * lead + cut))
        x = slice_(x, starts=starts, sizes=sizes, steps=(1,) * len(sizes))
    return x


def given(values, count: int, default: int = 1) -> tuple[int, ...]:
    """An attribute with a number for each axis.

    Raises:
        ShapeError: it has more or fewer.
    """
    found = tuple(values) if values else (default,) * count
    if len(found) != count:
        raise ShapeError(f"an attribute has {len(found)} numbers for {count} axes")
    return found


def resolved(auto_pad: str, pads, size, kernel, strides, dilations) -> Sides:
    """The padding of each axis.

    Raises:
        ShapeError: the padding depends on a size that is not known.
    """
    count = len(kernel)
    if auto_pad in ("NOTSET", "", None):
        numbers = given(pads, 2 * count, 0)
        return tuple((numbers[k], numbers[k + count]) for k in range(count))
    if auto_pad == "VALID":
        return ((0, 0),) * count
    sides: list[tuple[DimLike, DimLike]] = []
    for n, k, s, d in zip(size, kernel, strides, dilations, strict=True):
        extent = (k - 1) * d + 1
        if s == 1:
            total = extent - 1
        elif isinstance(n, int):
            total = max((-(-n // s) - 1) * s + extent - n, 0)
        else:
            raise ShapeError(f"auto_pad={auto_pad} with strides needs a known size, and this one is {n}")
        small, large = total // 2, total - total // 2
        sides.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return tuple(sides)


def two_axes(x: Var, count: int) -> Var:
    """A tensor of one spatial axis with another one of size 1 in front."""
    return reshape(x, shape=(*x.shape[:2], 1, *x.shape[2:])) if count == 1 else x


def of_image(numbers: tuple, other: Any) -> Any:
    """What is said for the axes of an image, or for the last of them alone."""
    return numbers if len(numbers) == 2 else (other, *numbers)


@operator("Conv")
def conv(
    c: Context,
    x,
    w,
    bias=None,
    *,
    auto_pad="NOTSET",
    dilations=None,
    group=1,
    kernel_shape=None,
    pads=None,
    strides=None,
):
    """A convolution, in fact a correlation; over any number of axes, in groups."""
    count = len(x.shape) - 2
    attributes = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    spread = given(dilations, count)
    if 1 <= count <= 2:
        _, steps, sides, _ = plan_of(x, w, **attributes)
        if any(isinstance(n, int) and n < 0 for side in sides for n in side):
            x, sides = padded(x, sides, 0), ((0, 0),) * count
        out = dilated_conv2d(
            two_axes(x, count),
            two_axes(w, count),
            of_image(steps, 1),
            of_image(sides, (0, 0)),
            group,
            of_image(spread, 1),
        )
        out = out if count == 2 else reshape(out, shape=(*out.shape[:2], out.shape[3]))
    else:
        out = convolved(x, *plan_of(x, w, **attributes))
    if bias is not None:
        out = out + reshape(bias, shape=(*bias.shape, *(1,) * count))
    return out


def plan_of(
    x: Var, w: Var, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None
) -> tuple[Var, tuple, Sides, int]:
    """What the attributes of a convolution say: filters with zeros in between, strides, padding, groups.

    Raises:
        ShapeError: shapes do not fit.
    """
    count = len(x.shape) - 2
    if len(w.shape) != count + 2 or count < 1:
        raise ShapeError(f"images of shape {show_shape(x.shape)} and filters of shape {show_shape(w.shape)} do not fit")
    if not all(isinstance(d, int) for d in w.shape):
        raise ShapeError("the sizes of filters must be known")
    steps, spread = given(strides, count), given(dilations, count)
    sides = resolved(auto_pad, pads, x.shape[2:], w.shape[2:], steps, spread)
    if any(d != 1 for d in spread):
        w = padded(w, ((0, 0),) * count, 0, tuple(d - 1 for d in spread))
    return w, steps, sides, group


def convolved(x: Var, w: Var, steps: tuple, sides: Sides, group: int) -> Var:
    """A convolution over one, two or more axes: over more as a sum of convolutions over the last two."""
    count = len(x.shape) - 2
    if any(isinstance(a, int) and a < 0 or isinstance(b, int) and b < 0 for a, b in sides):
        x, sides = padded(x, sides, 0), ((0, 0),) * count
    if count == 1:
        out = nn.conv2d(two_axes(x, 1), two_axes(w, 1), strides=(1, *steps), padding=((0, 0), *sides), groups=group)
        return reshape(out, shape=(*out.shape[:2], out.shape[3]))
    if count == 2:
        return nn.conv2d(x, w, strides=steps, padding=sides, groups=group)
    x = padded(x, (sides[0], *((0, 0),) * (count - 1)), 0)
    length = w.shape[2]
    places = (x.shape[2] - length) // steps[0] + 1
    total = None
    for k in range(known_size(length)):
        part = slice_(
            x,
            starts=(0, 0, k, *(0,) * (count - 1)),
            sizes=(*x.shape[:2], places, *x.shape[3:]),
            steps=(1, 1, steps[0], *(1,) * (count - 1)),
        )
        images = transpose(part, perm=(0, 2, 1, *range(3, count + 2)))
        flat = reshape(images, shape=(images.shape[0] * images.shape[1], *images.shape[2:]))
        filters = reshape(
            slice_(
                w,
                starts=(0, 0, k, *(0,) * (count - 1)),
                sizes=(*w.shape[:2], 1, *w.shape[3:]),
                steps=(1,) * (count + 2),
            ),
            shape=(*w.shape[:2], *w.shape[3:]),
        )
        out = convolved(flat, filters, steps[1:], sides[1:], group)
        total = out if total is None else total + out
    assert total is not None
    whole = reshape(total, shape=(x.shape[0], places, *total.shape[1:]))
    return transpose(whole, perm=(0, 2, 1, *range(3, count + 2)))


@operator("ConvTranspose")
def conv_transpose(
    c: Context, x, w, bias=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, output_padding=None,
    output_shape=None, pads=None, strides=None,
):  # fmt: skip
    """The transpose of a convolution: zeros between the elements, then a convolution with the filters turned around.

    Raises:
        ShapeError: the padding depends on a size that is not known.
    """
    count = len(x.shape) - 2
    steps, spread, extra = given(strides, count), given(dilations, count), given(output_padding, count, 0)
    kernel = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], spread, strict=True)]
    sizes = [(n - 1) * s + k + e for n, s, k, e in zip(x.shape[2:], steps, kernel, extra, strict=True)]
    numbers = given(pads, 2 * count, 0)
    sides = [(numbers[k], numbers[k + count]) for k in range(count)]
    wanted = None
    if output_shape:
        wanted = list(output_shape)[-count:]
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(x.shape[2:], steps, strict=True)]
    elif auto_pad == "VALID":
        sides = [(0, 0)] * count
    if wanted is not None:
        sides = []
        for have, want in zip(sizes, wanted, strict=True):
            total = have - want
            if isinstance(total, Dim):
                raise ShapeError(f"its padding depends on the unknown size {have}")
            small = total // 2
            sides.append((small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small))
    if group == 1 and set(spread) == {1} and kernel == list(steps) and not any(extra) and not any(map(any, sides)):
        out = _side_by_side(x, w)
        return out if bias is None else out + reshape(bias, shape=(*bias.shape, *(1,) * count))
    # (C, O / G, ...) -> (O, C / G, ...), turned around along the spatial axes
    per, outs = w.shape[0] // group, w.shape[1]
    turned = reshape(w, shape=(group, per, outs, *w.shape[2:]))
    turned = transpose(turned, perm=(0, 2, 1, *range(3, count + 3)))
    turned = reshape(turned, shape=(group * outs, per, *w.shape[2:]))
    turned = REGISTRY["flip"](turned, axes=tuple(range(2, count + 2)))
    turned = padded(turned, ((0, 0),) * count, 0, tuple(d - 1 for d in spread))
    around = tuple((k - 1 - a, k - 1 - b + e) for k, (a, b), e in zip(kernel, sides, extra, strict=True))
    wide = padded(x, around, 0, tuple(s - 1 for s in steps))
    out = convolved(wide, turned, (1,) * count, ((0, 0),) * count, group)
    return out if bias is None else out + reshape(bias, shape=(*bias.shape, *(1,) * count))


def _side_by_side(x, w):
    """The transpose of a convolution whose windows lie side by side: each element becomes a window, with no zeros to multiply."""
    count, (channels, outs, *kernel) = len(x.shape) - 2, w.shape
    axes = range(count)
    filters = transpose(w, perm=(1, *range(2, count + 2), 0))
    filters = reshape(filters, shape=(product((outs, *kernel)), channels, *(1,) * count))
    parts = convolved(x, filters, (1,) * count, ((0, 0),) * count, 1)
    parts = reshape(parts, shape=(x.shape[0], outs, *kernel, *x.shape[2:]))
    parts = transpose(parts, perm=(0, 1, *(place for k in axes for place in (2 + count + k, 2 + k))))
    return reshape(parts, shape=(x.shape[0], outs, *(n * k for n, k in zip(x.shape[2:], kernel, strict=True))))


# Pooling.


def places(size: DimLike, window: int, stride: int, sides: tuple, ceil: bool) -> DimLike:
    """How many windows there are along an axis. One that would begin in the padding behind the end is dropped.

    Raises:
        ShapeError: the number depends on a size that is not known.
    """
    room = size + sides[0] + sides[1] - window
    if not ceil:
        return room // stride + 1
    count = (room + stride - 1) // stride + 1
    if sides[1] + stride <= window:
        return count  # even the last window begins before the padding behind the end
    if isinstance(count, int):
        return count - 1 if (count - 1) * stride >= size + sides[0] else count
    raise ShapeError(f"ceil_mode needs a known size, and this one is {size}")


class PoolWindows:
    """The windows of a pooling.

    Attributes:
        sides: the padding.
        kernel, strides, dilations: of the windows.
        counts: how many windows there are along each axis.
        ends: by how much the last windows reach beyond the padding.
    """

    def __init__(self, x: Var, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode):
        count = len(x.shape) - 2
        self.kernel, self.strides, self.dilations = tuple(kernel_shape), given(strides, count), given(dilations, count)
        if len(self.kernel) != count:
            raise ShapeError(f"a window of {len(self.kernel)} axes for a tensor of {count}")
        self.sides = resolved(auto_pad, pads, x.shape[2:], self.kernel, self.strides, self.dilations)
        extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        self.counts = tuple(
            places(n, k, s, p, bool(ceil_mode))
            for n, k, s, p in zip(x.shape[2:], extents, self.strides, self.sides, strict=True)
        )
        windows_fit(
            x,
            extents,
            [(p[0], p[1] + (s - 1 if ceil_mode else 0)) for p, s in zip(self.sides, self.strides)],
            "pooling",
        )
        self.ends: tuple = tuple(
            0
            if not ceil_mode
            else max(reach, 0)
            if isinstance(reach := (m - 1) * s + k - (n + p[0] + p[1]), int)
            else s - 1
            for m, s, k, n, p in zip(self.counts, self.strides, extents, x.shape[2:], self.sides, strict=True)
        )

    @property
    def plain(self) -> bool:
        """Whether the pooling primitives have such windows."""
        return len(self.kernel) <= 2

    def padding(self) -> Sides:
        """The padding, with what the last windows need beyond it."""
        return tuple((a, b + e) for (a, b), e in zip(self.sides, self.ends, strict=True))

    def over(self, c: Context, x: Var, value: float, combine, reduce) -> Var:
        """The elements of each window, with a value for the padding, combined: (N, C, *counts).

        Small windows are combined element by element, so that all is one loop; large ones are reduced, so that the size of the
        program does not grow with theirs.
        """
        if math.prod(self.kernel) > MOST_PARTS:
            return reduce(self.elements(c, x, value), axes=self.axes)
        wide, out = padded(x, self.padding(), value), None
        for index in np.ndindex(*self.kernel):
            starts = (0, 0, *(i * d for i, d in zip(index, self.dilations, strict=True)))
            part = slice_(wide, starts=starts, sizes=(*x.shape[:2], *self.counts), steps=(1, 1, *self.strides))
            out = part if out is None else combine(out, part)
        assert out is not None
        return out

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of `elements` along which windows lie."""
        return tuple(range(3, 3 + 2 * len(self.kernel), 2))

    def elements(self, c: Context, x: Var, value: float) -> Var:
        """The elements of each window, with a value for the padding: (N, C, count, size, count, size, ...)."""
        x = padded(x, self.padding(), value)
        for axis, (n, k, s, d) in enumerate(zip(self.counts, self.kernel, self.strides, self.dilations, strict=True)):
            first = as_positions(c, n)
            places = reshape(first * first.const(s), shape=(n, 1)) + c.constant(np.arange(k).reshape(1, k) * d)
            at = 2 + 2 * axis
            x = take(x, reshape(places, shape=(n * k,)), axis=at)
            x = reshape(x, shape=(*x.shape[:at], n, k, *x.shape[at + 1 :]))
        return x

    def two(self) -> dict:
        """The attributes of a pooling primitive, which has two axes."""
        lead = 2 - len(self.kernel)
        return {
            "ksize": (1,) * lead + self.kernel,
            "strides": (1,) * lead + self.strides,
            "padding": ((0, 0),) * lead + self.padding(),
            **nn.gaps((1,) * lead + self.dilations),
        }


def pooled(prim, x: Var, windows: PoolWindows) -> Var:
    """A pooling primitive over one or two axes."""
    count = len(x.shape) - 2
    out = prim(two_axes(x, count), **windows.two())
    return reshape(out, shape=(*out.shape[:2], *out.shape[-count:])) if count == 1 else out


def lowest(dtype: str) -> float:
    """What is below all numbers of a dtype."""
    return -math.inf if dtype in FLOATS else int(np.iinfo(dtype).min)


@operator("MaxPool")
def max_pool(
    c: Context,
    x,
    *,
    kernel_shape,
    auto_pad="NOTSET",
    ceil_mode=0,
    dilations=None,
    pads=None,
    storage_order=0,
    strides=None,
):
    """The maximum of each window, and where it is in the flattened tensor."""
    windows = PoolWindows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if c.outputs == 1 and windows.plain and x.dtype in FLOATS:
        return pooled(nn.max_pool, x, windows)
    if c.outputs == 1:
        return windows.over(c, x, lowest(x.dtype), P.maximum, reduce_max)
    return max_positions(c, x, windows, storage_order)


def max_positions(c: Context, x: Var, windows: PoolWindows, storage_order: int) -> tuple[Var, Var]:
    """The maxima and the positions of the first ones.

    Raises:
        ShapeError: a size is not known.
    """
    if not all(isinstance(d, int) for d in x.shape):
        raise ShapeError(f"the positions of maxima need known sizes, and these are {show_shape(x.shape)}")
    n, channels, *size = map(known_size, x.shape)
    inner = np.arange(math.prod(size)).reshape(size, order="F" if storage_order else "C")
    numbers = np.arange(n * channels).reshape(n, channels, *(1,) * len(size)) * math.prod(size) + inner
    values = windows.elements(c, x, lowest(x.dtype))
    indices = windows.elements(c, c.constant(numbers.astype(np.int64)), -1)
    real = P.ge(indices, indices.const(0))
    best = reduce_max(P.where(real, values, values.const(lowest(x.dtype))), axes=windows.axes, keepdims=True)
    greatest = P.eq(values, best)
    if x.dtype in FLOATS:
        greatest = P.logical_or(greatest, P.logical_and(P.isnan(values), P.isnan(best)))
    place = np.arange(math.prod(windows.kernel)).reshape([d for k in windows.kernel for d in (1, k)])
    order = P.where(P.logical_and(real, greatest), c.constant(place), indices.const(place.size))
    first = P.eq(order, reduce_min(order, axes=windows.axes, keepdims=True))
    at = reduce_max(P.where(first, indices, indices.const(-1)), axes=windows.axes)
    return reshape(best, shape=at.shape), at


@operator("AveragePool")
def average_pool(
    c: Context,
    x,
    *,
    kernel_shape,
    auto_pad="NOTSET",
    ceil_mode=0,
    count_include_pad=0,
    dilations=None,
    pads=None,
    strides=None,
):
    """The mean of each window; padding counts only with `count_include_pad`, and what lies beyond it never."""
    windows = PoolWindows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    inside = not any(a or b for a, b in windows.sides)
    if windows.plain and not any(windows.ends) and (inside or count_include_pad):
        return pooled(nn.avg_pool, x, windows)
    total = windows.over(c, x, 0, P.add, reduce_sum)
    ones = c.constant(np.ones((1, 1, *(1,) * len(windows.kernel))), x.dtype)
    whole = broadcast_to(ones, shape=(1, 1, *x.shape[2:]))
    if count_include_pad:
        whole = padded(whole, windows.sides, 1)
        windows.sides = ((0, 0),) * len(windows.kernel)
    return P.div(total, windows.over(c, whole, 0, P.add, reduce_sum))


@operator("LpPool")
def lp_pool(
    c: Context, x, *, kernel_shape=None, auto_pad="NOTSET", ceil_mode=0, dilations=None, p=2, pads=None, strides=None
):
    """The p-norm of each window."""
    windows = PoolWindows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    powers = P.pow_(P.abs_(x), x.const(p))
    return P.pow_(windows.over(c, powers, 0, P.add, reduce_sum), x.const(1 / p))


def _global(reduce):
    def rule(c: Context, x, *, p=2):
        return reduce(c, x, tuple(range(2, len(x.shape))), p)

    return rule


def _mean(c, x, axes, p):
    return c.numpy(np.mean, x, axis=axes, keepdims=True)


operator("GlobalAveragePool")(_global(_mean))
operator("GlobalMaxPool")(_global(lambda c, x, axes, p: reduce_max(x, axes=axes, keepdims=True)))
operator("GlobalLpPool")(
    _global(
        lambda c, x, axes, p: P.pow_(
            reduce_sum(P.pow_(P.abs_(x), x.const(p)), axes=axes, keepdims=True), x.const(1 / p)
        )
    )
)


# The adjoints of windows and of pooling.


@operator("MaxUnpool", static=("output_shape",))
async def max_unpool(c: Context, x, indices, output_shape=None, *, kernel_shape, pads=None, strides=None):
    """Zeros with the maxima put where they were before the pooling.

    Raises:
        ShapeError: shapes do not fit.
    """
    count = len(x.shape) - 2
    kernel, steps, around = given(kernel_shape, count), given(strides, count), given(pads, 2 * count, 0)
    sizes = [
        (n - 1) * s - (around[k] + around[k + count]) + w
        for k, (n, s, w) in enumerate(zip(x.shape[2:], steps, kernel, strict=True))
    ]
    if x.shape != indices.shape or any(isinstance(n, int) and n < 0 for n in sizes):
        raise ShapeError(f"maxima of shape {show_shape(x.shape)} and places of {show_shape(indices.shape)} do not fit")
    whole = (*x.shape[:2], *sizes)
    out = broadcast_to(c.constant(0, x.dtype), shape=(product(whole),))
    places = cast(reshape(indices, shape=(product(x.shape),)), dtype="int64")
    places = checked_positions(c.b, places, out.shape[0], 0)
    out = reshape(await c.call(put_rows, out, places, reshape(x, shape=places.shape)), shape=whole)
    if output_shape is None:
        return out
    more = [int(n) - d for n, d in zip(output_shape.ravel(), whole, strict=True)]
    if any(isinstance(d, Dim) or d < 0 for d in more):
        raise ShapeError(f"its output_shape is smaller than {show_shape(whole)}, or cannot be compared with it")
    return padded(out, tuple((0, d) for d in more), 0)


@operator("Col2Im", static=("image_shape", "block_shape"))
def col2im(c: Context, x, image_shape, block_shape, *, dilations=None, pads=None, strides=None):
    """Blocks of images, a column each, added up where they overlap: (N, C * block, L) to (N, C, *image).

    Raises:
        ShapeError: shapes do not fit.
    """
    image, block = tuple(map(int, image_shape.ravel())), tuple(map(int, block_shape.ravel()))
    count, size = len(block), math.prod(block)
    steps, spread, around = given(strides, count), given(dilations, count), given(pads, 2 * count, 0)
    counts = tuple(
        (n + around[k] + around[k + count] - (b - 1) * spread[k] - 1) // steps[k] + 1
        for k, (n, b) in enumerate(zip(image, block, strict=True))
    )
    if len(x.shape) != 3 or min(image) < 0 or size < 1 or min(counts) < 0 or x.shape[2] != math.prod(counts):
        raise ShapeError(
            f"columns of shape {show_shape(x.shape)} are not {counts} blocks of {block} in images of {image}"
        )
    n, channels = x.shape[0], x.shape[1] // size
    if channels * size != x.shape[1]:
        raise ShapeError(f"{x.shape[1]} rows are no blocks of {size} elements")
    # Where each element of each block lies; what lies in the padding is added to an element of its own, which is dropped.
    axes = [
        (np.arange(b) * d)[:, None] + np.arange(m) * s - low
        for b, d, m, s, low in zip(block, spread, counts, steps, around[:count], strict=True)
    ]
    grids = np.meshgrid(*[a.ravel() for a in axes], indexing="ij")
    inside = np.logical_and.reduce([(g >= 0) & (g < d) for g, d in zip(grids, image, strict=True)])
    flat = np.where(
        inside, np.ravel_multi_index(grids, image, mode="clip") if math.prod(image) else 0, math.prod(image)
    )
    # (block 0, places 0, block 1, places 1, ...) -> (blocks, places)
    flat = flat.reshape([d for pair in zip(block, counts, strict=True) for d in pair])
    flat = flat.transpose([*range(0, 2 * count, 2), *range(1, 2 * count, 2)]).ravel()
    columns = reshape(x, shape=(n, channels, len(flat)))
    out = broadcast_to(c.constant(0, x.dtype), shape=(n, channels, math.prod(image) + 1))
    out = scatter_add(out, c.constant(flat.astype(np.int64)), columns, axis=2)
    out = slice_(out, starts=(0, 0, 0), sizes=(n, channels, math.prod(image)), steps=(1, 1, 1))
    return reshape(out, shape=(n, channels, *image))
