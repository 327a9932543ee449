"""Parts of images whose places are computed: regions of interest, and convolutions at offsets."""

from __future__ import annotations

import math

import numpy as np

from ....abstract.dims import product
from ....prims.ops.shape import slice_, transpose
from ....prims.rules.broadcast import cast, reshape
from ....prims.rules.relations import show_shape
from ....utils.errors import ShapeError, ValueError_
from ..table import Context, operator
from .convolution import given
from .images import interpolated, neighbours, number
from .linear import product as matrix_product
from .shapes import as_positions


def _aligned(images, rois, batches, height, width, ratio, scale, offset, average):
    """The means, or greatest parts, of images at points between their elements; `images` is (batch, height, width, channels)."""
    rows, columns, channels = images.shape[1:]
    out = np.zeros((rois.shape[0], height, width, channels), images.dtype)
    for r in range(rois.shape[0]):
        image = images[batches[r]]
        left, top = rois[r, 0] * scale - offset, rois[r, 1] * scale - offset
        wide, high = rois[r, 2] * scale - offset - left, rois[r, 3] * scale - offset - top
        if offset == 0:
            wide, high = max(wide, 1.0), max(high, 1.0)
        step_x, step_y = wide / width, high / height
        points_x = ratio if ratio > 0 else int(np.ceil(step_x))
        points_y = ratio if ratio > 0 else int(np.ceil(step_y))
        for i in range(height):
            for j in range(width):
                total = np.zeros(channels, images.dtype)
                for a in range(points_y):
                    y = top + i * step_y + (a + 0.5) * step_y / points_y
                    for b in range(points_x):
                        x = left + j * step_x + (b + 0.5) * step_x / points_x
                        inside = y >= -1.0 and y <= rows and x >= -1.0 and x <= columns
                        v, u = min(max(y, 0.0), rows - 1.0), min(max(x, 0.0), columns - 1.0)
                        v0, u0 = int(v), int(u)
                        v1, u1 = min(v0 + 1, rows - 1), min(u0 + 1, columns - 1)
                        v, u = v - v0, u - u0
                        one = image[v0, u0] * ((1 - v) * (1 - u))
                        two = image[v0, u1] * ((1 - v) * u)
                        three = image[v1, u0] * (v * (1 - u))
                        four = image[v1, u1] * (v * u)
                        keep = 1.0 if inside else 0.0
                        if average:
                            total = total + (one + two + three + four) * keep
                        else:
                            best = np.maximum(np.maximum(one, two), np.maximum(three, four)) * keep
                            total = best if a + b == 0 else np.maximum(total, best)
                out[r, i, j] = total / max(points_x * points_y, 1) if average else total
    return out


@operator("RoiAlign")
async def roi_align(
    c: Context, x, rois, batch_indices, *, coordinate_transformation_mode=None, mode="avg", output_height=1, output_width=1,
    sampling_ratio=0, spatial_scale=1.0,
):  # fmt: skip
    """Regions of images in one size: the mean of some points in each cell, or the greatest of what goes into these points.

    Raises:
        ShapeError: shapes do not fit.
        ValueError_: a mode or a size is none that is allowed.
    """
    if len(x.shape) != 4 or len(rois.shape) != 2 or rois.shape[1] != 4:
        raise ShapeError(f"images of shape {show_shape(x.shape)} and regions of {show_shape(rois.shape)} do not fit")
    default = "half_pixel" if c.version >= 16 else "output_half_pixel"
    where = (coordinate_transformation_mode or default).lower()
    if mode.lower() not in ("avg", "max") or where not in ("half_pixel", "output_half_pixel"):
        raise ValueError_(f"its mode '{mode}' with coordinates '{where}' is unknown")
    if output_height < 1 or output_width < 1 or sampling_ratio < 0:
        raise ValueError_(f"a region of {output_height} by {output_width} with {sampling_ratio} points cannot be")
    wide = "float64" if x.dtype == "float64" else "float32"
    images = cast(transpose(x, perm=(0, 2, 3, 1)), dtype=wide)
    out = await c.call(
        _aligned, images, cast(rois, dtype=wide), cast(batch_indices, dtype="int64"), output_height, output_width,
        sampling_ratio, float(spatial_scale), 0.5 if where == "half_pixel" else 0.0, mode.lower() == "avg",
    )  # fmt: skip
    return cast(transpose(out, perm=(0, 3, 1, 2)), dtype=x.dtype)


def _pooled(images, rois, height, width, scale):
    """The greatest elements of cells of regions; `images` is (batch, height, width, channels)."""
    rows, columns, channels = images.shape[1:]
    out = np.zeros((rois.shape[0], height, width, channels), images.dtype)
    for r in range(rois.shape[0]):
        image = images[int(rois[r, 0])]
        # Halves are rounded up: they are positive, and C's `round` does so.
        left, top = int(np.floor(rois[r, 1] * scale + 0.5)), int(np.floor(rois[r, 2] * scale + 0.5))
        right, bottom = int(np.floor(rois[r, 3] * scale + 0.5)), int(np.floor(rois[r, 4] * scale + 0.5))
        step_y, step_x = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        for i in range(height):
            y0 = min(max(int(np.floor(i * step_y)) + top, 0), rows)
            y1 = min(max(int(np.ceil((i + 1) * step_y)) + top, 0), rows)
            for j in range(width):
                x0 = min(max(int(np.floor(j * step_x)) + left, 0), columns)
                x1 = min(max(int(np.ceil((j + 1) * step_x)) + left, 0), columns)
                best = np.full(channels, -np.inf if y1 > y0 and x1 > x0 else 0.0).astype(images.dtype)
                for y in range(y0, y1):
                    for x in range(x0, x1):
                        best = np.maximum(best, image[y, x])
                out[r, i, j] = best
    return out


@operator("MaxRoiPool")
async def max_roi_pool(c: Context, x, rois, *, pooled_shape, spatial_scale=1.0):
    """Regions of images in one size: the greatest element of each cell, 0 of empty ones.

    Raises:
        ShapeError: shapes do not fit.
    """
    if (
        len(x.shape) != 4
        or len(rois.shape) != 2
        or rois.shape[1] != 5
        or len(pooled_shape) != 2
        or min(pooled_shape) < 1
    ):
        raise ShapeError(f"images of shape {show_shape(x.shape)} and regions of {show_shape(rois.shape)} do not fit")
    images = transpose(x, perm=(0, 2, 3, 1))
    out = await c.call(
        _pooled,
        images,
        cast(rois, dtype="float64" if x.dtype == "float64" else "float32"),
        *pooled_shape,
        float(spatial_scale),
    )
    return transpose(out, perm=(0, 3, 1, 2))


@operator("DeformConv")
def deform_conv(
    c: Context, x, w, offset, bias=None, mask=None, *, dilations=None, group=1, kernel_shape=None, offset_group=1, pads=None,
    strides=None,
):  # fmt: skip
    """A convolution whose filters read, for each place, at offsets of their own, between the elements; times a mask.

    Source: J. Dai et al., "Deformable Convolutional Networks" (ICCV 2017), section 2.1; X. Zhu et al., "Deformable ConvNets v2"
    (CVPR 2019), section 3.2.

    Raises:
        ShapeError: shapes do not fit.
    """
    if len(x.shape) != 4 or len(w.shape) != 4 or len(offset.shape) != 4:
        raise ShapeError(
            f"images of shape {show_shape(x.shape)} and filters of {show_shape(w.shape)} do not fit: both need 4 axes"
        )
    steps, spread, around = given(strides, 2), given(dilations, 2), given(pads, 4, 0)
    kernel = given(kernel_shape, 2) if kernel_shape else w.shape[2:]
    (n, channels), (outs, per), taps = x.shape[:2], w.shape[:2], math.prod(kernel)
    if not isinstance(channels, int) or channels != per * group or outs % group or channels % offset_group:
        raise ShapeError(f"{channels} channels and filters of shape {show_shape(w.shape)} do not fit {group} groups")
    space = tuple(
        (d + around[k] + around[k + 2] - (size - 1) * spread[k] - 1) // steps[k] + 1
        for k, (d, size) in enumerate(zip(x.shape[2:], kernel, strict=True))
    )
    points = product(space)
    if kernel != tuple(w.shape[2:]) or offset.shape != (n, offset_group * taps * 2, *space):
        raise ShapeError(f"offsets of shape {show_shape(offset.shape)} do not fit results of {show_shape(space)}")
    if mask is not None and mask.shape != (n, offset_group * taps, *space):
        raise ShapeError(f"a mask of shape {show_shape(mask.shape)} does not fit results of {show_shape(space)}")
    moved = reshape(offset, shape=(n * offset_group, taps, 2, *space))
    choices = []
    for k in range(2):
        start = tuple(k if axis == 2 else 0 for axis in range(5))
        at = reshape(
            slice_(moved, starts=start, sizes=(n * offset_group, taps, 1, *space), steps=(1,) * 5),
            shape=(n * offset_group, taps, *space),
        )
        place = as_positions(c, space[k])
        place = cast(place * place.const(steps[k]) - place.const(around[k]), dtype=x.dtype)
        inner = np.indices(kernel)[k].reshape(taps, 1, 1) * spread[k]
        at = (
            at
            + reshape(place, shape=tuple(space[k] if axis == k else 1 for axis in range(2)))
            + c.constant(inner, x.dtype)
        )
        at = reshape(at, shape=(n * offset_group, taps * points))
        count = cast(number(c, x.shape[2 + k]), dtype=x.dtype)
        choices.append(neighbours(at, "linear", "zeros", count, count, count))
    images = reshape(x, shape=(n * offset_group, channels // offset_group, *x.shape[2:]))
    found = interpolated(c, images, choices)
    if mask is not None:
        found = found * reshape(mask, shape=(n * offset_group, 1, taps * points))
    columns = reshape(found, shape=(n, group, per * taps, points))
    out = matrix_product(c, reshape(w, shape=(1, group, outs // group, per * taps)), columns)
    out = reshape(out, shape=(n, outs, *space))
    return out if bias is None else out + reshape(bias, shape=(outs, 1, 1))
