"""Resize, Upsample, GridSample, AffineGrid.

Resize works along one axis after the other: every element of the result is a weighted sum of a few elements, whose positions and
weights are computed from the coordinate of the result. With known sizes these are constants.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ....abstract.dims import Dim, DimLike, product
from ....ir.build import Var
from ....prims.api.promotion import agreeing, size_value
from ....prims.ops import elementwise as P
from ....prims.ops.indexing import take
from ....prims.ops.shape import slice_
from ....prims.rules.broadcast import as_array, as_scalar, broadcast_to, cast, reshape
from ....prims.rules.relations import normalise_axis, show_shape
from ....utils.errors import ShapeError, TypeError_, ValueError_
from ..table import Context, operator
from .shapes import as_positions

CENTERS = (
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "tf_crop_and_resize",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
)
SIMPLE = "simple"
"""The nearest element as kernels of operator sets before 11 have it: the next one where there are fewer, else the one before.
Coordinates are of float32, so a scale of 0.6, which float32 has not, is 3 / 5.
"""


def number(c: Context, size: DimLike) -> Var:
    """A size as a float64 array."""
    return cast(as_array(cast(size_value(c.b, size), dtype="int64", weak=False)), dtype="float64")


def coordinates(c: Context, n: DimLike, out: DimLike, scale: Var, mode: str, roi: tuple | None) -> Var:
    """Where the elements of the result lie along an axis of the tensor.

    Args:
        c: the call.
        n, out: sizes of the axis, before and after.
        scale: how much larger the result is, which is not always out / n.
        mode: which coordinates correspond.
        roi: the part of the axis that is looked at, between 0 and 1.
    """
    x, size, one = cast(as_positions(c, out), dtype="float64"), number(c, n), c.constant(1.0)
    half, length = c.constant(0.5), P.mul(scale, number(c, n))
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_half_pixel_for_nn":
        return (x + half) / scale
    if mode == "align_corners":
        steps = length - one
        return P.where(
            P.eq(length, one), x * c.constant(0.0), x * (size - one) / P.where(P.eq(steps, steps.const(0)), one, steps)
        )
    if mode == "tf_crop_and_resize":
        low, high = roi or (0.0, 1.0)
        steps = length - one
        safe = P.where(P.eq(steps, steps.const(0)), one, steps)
        span = c.constant(high - low)
        found = P.where(P.le(length, one), span * (size - one) * half, x * span * (size - one) / safe)
        return found + c.constant(low) * (size - one)
    found = (x + half) / scale - half
    if mode == "pytorch_half_pixel":
        return P.where(P.eq(length, one), x * c.constant(0.0) - half * c.constant(0.0), found)
    if mode == "half_pixel_symmetric":
        return size * half * (one - number(c, out) / length) + found
    return found


def nearest(x: Var, mode: str) -> Var:
    """The positions of the nearest elements."""
    half = x.const(0.5)
    return {
        "round_prefer_floor": lambda: P.ceil(x - half),
        "round_prefer_ceil": lambda: P.floor(x + half),
        "floor": lambda: P.floor(x),
        "ceil": lambda: P.ceil(x),
    }[mode]()


def cubic(distance: Var, a: float) -> Var:
    """The weight of an element at a distance, of Keys' cubic convolution."""
    s, one, two = P.abs_(distance), distance.const(1), distance.const(2)
    near = ((s.const(a + 2) * s - s.const(a + 3)) * s) * s + one
    far = ((s.const(a) * s - s.const(5 * a)) * s + s.const(8 * a)) * s - s.const(4 * a)
    return P.where(P.le(s, one), near, P.where(P.lt(s, two), far, s.const(0)))


class Taps:
    """Which elements along an axis make up those of the result, and with which weights.

    Attributes:
        positions, weights: one pair for each element of the sum.
    """

    def __init__(self, positions: list[Var], weights: list[Var]):
        self.positions, self.weights = positions, weights

    def applied(self, c: Context, x: Var, axis: int, n: DimLike) -> Var:
        """The sums along an axis; positions outside of it are those at its ends."""
        last, total = number(c, n) - c.constant(1.0), None
        for place, weight in zip(self.positions, self.weights, strict=True):
            inside = P.minimum(P.maximum(place, place.const(0)), last)
            part = take(x, cast(inside, dtype="int64"), axis=axis)
            if len(self.positions) == 1:
                return part
            shape = tuple(d if k == axis else 1 for k, d in enumerate(part.shape))
            part = part * reshape(cast(weight, dtype=x.dtype), shape=shape)
            total = part if total is None else total + part
        assert total is not None
        return total


def taps(
    c: Context, x: Var, n: DimLike, scale: Var, mode: str, a: float, antialias: bool, outside: bool, near: str
) -> Taps:
    """The elements and weights for coordinates along an axis.

    Raises:
        TypeError_: their number depends on a scale that is not known.
    """
    if mode == "nearest":
        return Taps([nearest(x, near)], [c.constant(1.0)])
    base = P.ceil(x) - x.const(1)
    ratio, wide = x - base, 2 if mode == "cubic" else 1
    shrink = 1.0
    if antialias:
        from ....prims.api.promotion import is_static, static_value

        if not is_static(scale):
            raise TypeError_("antialias needs a known scale")
        shrink = min(float(np.asarray(static_value(scale))), 1.0)
    start = math.floor(-wide / shrink) + 1
    weights, positions = [], []
    for k in range(start, 2 - start if mode == "cubic" else start + 2 - 2 * start):
        distance = (x.const(k) - ratio) * x.const(shrink)
        weight = cubic(distance, a) if mode == "cubic" else P.maximum(x.const(1) - P.abs_(distance), x.const(0))
        place = base + x.const(k)
        if outside:
            inside = P.logical_and(P.ge(place, place.const(0)), P.lt(place, number(c, n)))
            weight = P.where(inside, weight, weight.const(0))
        weights.append(weight)
        positions.append(place)
    if antialias or outside:
        whole = weights[0]
        for w in weights[1:]:
            whole = whole + w
        weights = [w / whole for w in weights]
    return Taps(positions, weights)


def scaled_size(c: Context, n: DimLike, scale: float) -> DimLike:
    """floor(n * scale)."""
    if isinstance(n, int):
        return math.floor(n * scale)
    if float(scale).is_integer():
        return n * int(scale)
    if float(1 / scale).is_integer():
        return n // int(1 / scale)
    return c.bound(cast(as_scalar(P.floor(number(c, n) * c.constant(float(scale)))), dtype="int64", weak=True))


def kept_aspect(shape: list, sizes: list, policy: str) -> tuple[list[int], float]:
    """The sizes that keep the ratio of those of the tensor, not larger or not smaller than those that are wanted, and the scale of
    all axes, of which these are rounded.

    Raises:
        ShapeError: the sizes are not known.
    """
    if any(isinstance(d, Dim) for d in (*shape, *sizes)):
        raise ShapeError(f"keep_aspect_ratio_policy needs known sizes, and these are {show_shape((*shape, *sizes))}")
    ratio = (min if policy == "not_larger" else max)(s / n for s, n in zip(sizes, shape, strict=True))
    return [math.floor(ratio * n + 0.5) for n in shape], ratio


@operator("Resize", since=11, static=("roi", "scales"), sizes=("sizes",))
def resize(
    c: Context, x, roi=None, scales=None, sizes=None, *, mode="nearest", coordinate_transformation_mode="half_pixel", antialias=0,
    axes=None, cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, keep_aspect_ratio_policy="stretch",
    nearest_mode="round_prefer_floor",
):  # fmt: skip
    """A tensor with other sizes along some axes, by interpolation.

    Raises:
        ValueError_: a mode is unknown.
    """
    if mode not in ("nearest", "linear", "cubic") or coordinate_transformation_mode not in CENTERS:
        raise ValueError_(f"its mode '{mode}' with coordinates '{coordinate_transformation_mode}' is unknown")
    ratio = None
    chosen = list(range(len(x.shape))) if axes is None else [normalise_axis("Resize", a, x.shape) for a in axes]
    given = None if scales is None or scales.size == 0 else [float(s) for s in scales]
    if given is None:
        if sizes is None:
            raise ValueError_("it has neither scales nor sizes")
        if keep_aspect_ratio_policy != "stretch":
            sizes, ratio = kept_aspect([x.shape[a] for a in chosen], sizes, keep_aspect_ratio_policy)
    whole, dtype = x, x.dtype
    if mode != "nearest" and dtype not in ("float32", "float64"):
        whole = cast(x, dtype="float32")
    outer, order = None, list(enumerate(chosen))
    if _enlarges(
        x.shape, chosen, given, sizes
    ):  # picks along the last axis are the dearest: they come before there are more rows
        order.reverse()
    for k, axis in order:
        n = x.shape[axis]
        if given is not None:
            out, scale = scaled_size(c, n, given[k]), c.constant(np.float64(given[k]))
        else:
            assert sizes is not None
            out = sizes[k]
            if isinstance(n, int) and isinstance(out, int):
                scale = c.constant(np.float64(out / n if ratio is None else ratio))
            else:
                scale = number(c, out) / number(c, n)
        crop = coordinate_transformation_mode == "tf_crop_and_resize"
        if out == n and not crop and (ratio if given is None else given[k]) in (None, 1):
            continue
        part = (float(roi[k]), float(roi[k + len(chosen)])) if crop and roi is not None and roi.size else None
        at = coordinates(c, n, out, scale, coordinate_transformation_mode, part)
        near = nearest_mode
        if near == SIMPLE and given is not None:
            near, at = "ceil" if given[k] < 1 else "floor", cast(cast(at, dtype="float32"), dtype="float64")
        found = taps(c, at, n, scale, mode, cubic_coeff_a, bool(antialias), bool(exclude_outside), near)
        whole = found.applied(c, whole, axis, n)
        if crop:
            beyond = P.logical_or(P.lt(at, at.const(0)), P.gt(at, number(c, n) - c.constant(1.0)))
            beyond = reshape(beyond, shape=tuple(out if j == axis else 1 for j in range(len(x.shape))))
            outer = beyond if outer is None else P.logical_or(outer, beyond)
    if outer is not None:
        outer = broadcast_to(outer, shape=whole.shape)
        whole = P.where(outer, whole.const(extrapolation_value), whole)
    return whole if whole.dtype == dtype else cast(P.rint(whole) if "int" in dtype else whole, dtype=dtype)


def _enlarges(shape, axes: list[int], scales: list[float] | None, sizes) -> bool:
    """Whether no axis gets shorter; False where that is not known."""
    if scales is not None:
        return all(scale >= 1 for scale in scales)
    return all(
        isinstance(n, int) and isinstance(shape[a], int) and n >= shape[a] for a, n in zip(axes, sizes, strict=True)
    )


def _plain(c: Context, x: Var, scales, mode: str) -> Var:
    """What resizing was before operator set 11."""
    mode = "linear" if mode in ("linear", "bilinear") else "nearest"
    return resize(
        c,
        x,
        None,
        np.asarray(scales),
        None,
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode=SIMPLE,
    )


@operator("Resize", "Upsample", until=10, static=("scales",))
def upsample(c: Context, x, scales=None, *, mode="nearest", **old):
    """A tensor with sizes that are multiples; coordinates begin with 0."""
    found = old.get("scales", scales)
    if found is None:
        found = (1.0, 1.0, old["height_scale"], old["width_scale"])
    return _plain(c, x, found, mode)


# Sampling at points.


def centers(c: Context, n: DimLike, dtype: str, align_corners: int) -> Var:
    """Where n elements lie between -1 and 1: the first and the last one at the ends, or all in the middle of equal parts. A single
    element of those that lie at the ends is at -1.
    """
    at, size, one = cast(as_positions(c, n), dtype="float64"), number(c, n), c.constant(1.0)
    if align_corners:
        return cast(at * c.constant(2.0) / P.maximum(size - one, one) - one, dtype=dtype)
    return cast((at * c.constant(2.0) + one) / size - one, dtype=dtype)


@operator("AffineGrid", sizes=("size",))
def affine_grid(c: Context, theta, size, *, align_corners=0):
    """The points to which affine maps, one for each image, take the elements of images of a size (N, C, ...), for GridSample.

    Raises:
        ShapeError: the maps are not of that size.
    """
    wanted, space = size[0], size[2:]
    rank = len(space)
    count = theta.shape[0]
    known = isinstance(count, int) and isinstance(wanted, int)
    if rank not in (2, 3) or theta.shape[1:] != (rank, rank + 1) or known and count != wanted:
        raise ShapeError(
            f"maps of the shape {show_shape(theta.shape)} do not fit images of the shape {show_shape(tuple(size))}"
        )
    shape = (count, *space)
    theta, _ = agreeing(c.b, "AffineGrid", theta, broadcast_to(c.constant(0, theta.dtype), shape=(wanted, 1, 1)))
    points = []
    for k in range(rank):
        total = _entry(theta, k, rank, rank)
        for j in range(rank):  # the first coordinate of a point is that of the last axis
            axis = rank - 1 - j
            along = reshape(
                centers(c, space[axis], theta.dtype, align_corners),
                shape=tuple(space[axis] if a == axis + 1 else 1 for a in range(rank + 1)),
            )
            total = total + _entry(theta, k, j, rank) * along
        points.append(reshape(broadcast_to(total, shape=shape), shape=(*shape, 1)))
    return c.numpy(np.concatenate, points, axis=-1)


def _entry(theta: Var, row: int, column: int, rank: int) -> Var:
    """An entry of each one of a stack of matrices, with axes for points of a space."""
    n = theta.shape[0]
    found = slice_(theta, starts=(0, row, column), sizes=(n, 1, 1), steps=(1, 1, 1))
    return reshape(found, shape=(n, *(1,) * rank))


def _reflected(x: Var, low: Var, high: Var) -> Var:
    """Coordinates mirrored at the ends of an interval."""
    span = high - low
    safe = P.where(P.eq(span, span.const(0)), span.const(1), span)
    away = P.mod(x - low, safe * safe.const(2))
    inside = P.where(P.gt(away, span), safe * safe.const(2) - away, away)
    return low + P.where(P.eq(span, span.const(0)), span, inside)


@operator("GridSample")
def grid_sample(c: Context, x, grid, *, align_corners=0, mode="linear", padding_mode="zeros"):
    """The values of images at points, between -1 and 1 along each axis; the last coordinate is that of the first axis.

    Raises:
        ValueError_: a mode is unknown.
    """
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("linear", "nearest", "cubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError_(f"its mode '{mode}' with the padding '{padding_mode}' is unknown")
    n, channels, *space = x.shape
    points = product(grid.shape[1:-1])
    flat = reshape(grid, shape=(n, points, len(space)))
    choices = []
    for k, size in enumerate(space):
        at = slice_(flat, starts=(0, 0, len(space) - 1 - k), sizes=(n, points, 1), steps=(1, 1, 1))
        at = reshape(at, shape=(n, points))
        count = cast(number(c, size), dtype=at.dtype)
        one, half, two = at.const(1), at.const(0.5), at.const(2)
        at = (at + one) / two * (count - one) if align_corners else ((at + one) * count - one) / two
        low, high = (at * at.const(0), count - one) if align_corners else (at * at.const(0) - half, count - half)
        choices.append(neighbours(at, mode, padding_mode, count, low, high))
    return reshape(interpolated(c, x, choices), shape=(n, channels, *grid.shape[1:-1]))


def interpolated(c: Context, x: Var, choices: list[list[tuple[Var, Var, Var]]]) -> Var:
    """The values of images between their elements.

    Args:
        c: the call.
        x: (batch, channels, *sizes).
        choices: for each axis the `neighbours` of the coordinates, which are (batch, points).

    Returns:
        (batch, channels, points).
    """
    n, channels, *space = x.shape
    points = choices[0][0][0].shape[1]
    values = reshape(x, shape=(n, channels, product(space)))
    total = None
    for combination in itertools.product(*choices):
        index, weight, valid = None, None, None
        for (place, part, inside), size in zip(combination, space, strict=True):
            place = cast(place, dtype="int64")
            index = (
                place
                if index is None
                else index * as_array(cast(size_value(c.b, size), dtype="int64", weak=False)) + place
            )
            weight = part if weight is None else weight * part
            valid = inside if valid is None else P.logical_and(valid, inside)
        assert index is not None and weight is not None and valid is not None
        spread = broadcast_to(reshape(index, shape=(n, 1, points)), shape=(n, channels, points))
        found = c.numpy(np.take_along_axis, values, spread, axis=2)
        weight = cast(P.where(valid, weight, weight.const(0)), dtype=x.dtype)
        part = P.where(
            reshape(valid, shape=(n, 1, points)), found * reshape(weight, shape=(n, 1, points)), found.const(0)
        )
        total = part if total is None else total + part
    assert total is not None
    return total


def neighbours(at: Var, mode: str, padding: str, count: Var, low: Var, high: Var) -> list[tuple[Var, Var, Var]]:
    """Positions near coordinates along an axis, with their weights, and whether they are within."""
    zero, last = at.const(0), count - at.const(1)
    if mode != "cubic" and padding == "border":
        at = P.minimum(P.maximum(at, zero), last)
    if mode != "cubic" and padding == "reflection":
        at = P.minimum(P.maximum(_reflected(at, low, high), zero), last)
    base = P.rint(at) if mode == "nearest" else P.floor(at)
    offsets = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}[mode]
    found = []
    for k in offsets:
        place = base + at.const(k)
        if mode == "nearest":
            weight = at * at.const(0) + at.const(1)
        else:
            distance = at - place
            weight = cubic(distance, -0.75) if mode == "cubic" else at.const(1) - P.abs_(distance)
        inside = P.logical_and(P.ge(place, zero), P.le(place, last))
        if mode == "cubic" and padding == "reflection":
            place = _reflected(place, low, high)
        if padding != "zeros":
            inside = P.logical_or(inside, P.logical_not(inside))
        found.append((P.minimum(P.maximum(place, zero), last), weight, inside))
    return found
