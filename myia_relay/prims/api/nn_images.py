"""Operators on images of the `relay` namespace, on staged values: pooling to a size, resizing, padding. (C, H, W) or (N, C, H,
W)."""

from __future__ import annotations

import math

import numpy as np

from ...abstract.types import numpy_dtype
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_, ValueError_
from ..ops import nn
from ..ops.linalg import dot
from ..ops.shape import pad as pad_prim
from ..ops.shape import transpose
from ..rules.broadcast import broadcast_to, reduce_sum, reshape
from ..rules.relations import show_shape
from .nn_api import images, op, resolve_padding, windows, without_batch
from .numpy_reductions import count
from .promotion import astype, operand


def _known_size(x: Var, name: str) -> tuple[int, int]:
    """The height and width of images, which the operator must know.

    Raises:
        ShapeError: they are symbols.
    """
    h, w = x.shape[2:]
    if not (isinstance(h, int) and isinstance(w, int)):
        raise ShapeError(f"{name} needs images of known height and width, and this has shape {show_shape(x.shape)}")
    return h, w


def _along_both(b: Builder, x: Var, rows: np.ndarray, columns: np.ndarray) -> Var:
    """rows @ image @ columns.T, of every channel of every image."""
    n, c, h, w = x.shape
    kind = numpy_dtype(x.dtype)
    flat = dot(reshape(x, shape=(n * c * h, w)), b.var(b.constant(columns.astype(kind))), transpose_b=True)
    turned = transpose(reshape(flat, shape=(n, c, h, len(columns))), perm=(0, 1, 3, 2))
    flat = dot(reshape(turned, shape=(n * c * len(columns), h)), b.var(b.constant(rows.astype(kind))), transpose_b=True)
    return transpose(reshape(flat, shape=(n, c, len(columns), len(rows))), perm=(0, 1, 3, 2))


def _means(size: int, bins: int) -> np.ndarray:
    """The matrix (bins, size) of means over [floor(i size / bins), ceil((i + 1) size / bins))."""
    out = np.zeros((bins, size))
    for i in range(bins):
        start, stop = i * size // bins, -(-(i + 1) * size // bins)
        out[i, start:stop] = 1 / (stop - start)
    return out


@op("adaptive_avg_pool", static=("size",))
def adaptive_avg_pool(b: Builder, x, size) -> Var:
    """Means over as many windows as `size` says, of sizes that differ by one where they must, as PyTorch's adaptive_avg_pool2d.

    Args:
        b: the builder.
        x: (C, H, W) or (N, C, H, W), float, of known height and width.
        size: (H', W') or one int.
    """
    x, added = images(b, x, "relay.adaptive_avg_pool")
    have, want = _known_size(x, "relay.adaptive_avg_pool"), windows(size, "size", 2)
    if all(h % w == 0 for h, w in zip(have, want)):
        kernel = tuple(h // w for h, w in zip(have, want))
        return without_batch(nn.avg_pool(x, ksize=kernel, strides=kernel, padding=((0, 0), (0, 0))), added)
    return without_batch(_along_both(b, x, _means(have[0], want[0]), _means(have[1], want[1])), added)


@op("global_avg_pool")
def global_avg_pool(b: Builder, x) -> Var:
    """The mean of every channel: (C, H, W) -> (C,) and (N, C, H, W) -> (N, C). The axes are gone, unlike PyTorch's pool to (1,
    1)."""
    x, added = images(b, x, "relay.global_avg_pool")
    return without_batch(reduce_sum(x, axes=(2, 3)) / count(b, x, (2, 3), x.dtype), added)


def _linear_weights(size: int, scale: int) -> np.ndarray:
    """The matrix (scale * size, size) of linear interpolation between the centres of pixels."""
    out = np.zeros((scale * size, size))
    for i in range(scale * size):
        at = max((i + 0.5) / scale - 0.5, 0.0)
        low = min(math.floor(at), size - 1)
        high = min(low + 1, size - 1)
        out[i, low] += 1 - (at - low)
        out[i, high] += at - low
    return out


@op("upsample", static=("scale", "mode"))
def upsample(b: Builder, x, scale=2, mode="nearest") -> Var:
    """Images made larger by a whole factor.

    Args:
        b: the builder.
        x: (C, H, W) or (N, C, H, W), float.
        scale: (vertical, horizontal), or one int.
        mode: "nearest", or "bilinear" between the centres of pixels, as PyTorch's with align_corners=False.

    Raises:
        ValueError_: there is no such mode.
    """
    x, added = images(b, x, "relay.upsample")
    up, across = windows(scale, "scale", 2)
    n, c, h, w = x.shape
    if mode == "bilinear":
        rows, columns = _known_size(x, "relay.upsample")
        return without_batch(_along_both(b, x, _linear_weights(rows, up), _linear_weights(columns, across)), added)
    if mode != "nearest":
        raise ValueError_(f"relay.upsample: mode={mode!r}; it is 'nearest' or 'bilinear'")
    repeated = broadcast_to(reshape(x, shape=(n, c, h, 1, w, 1)), shape=(n, c, h, up, w, across))
    return without_batch(reshape(repeated, shape=(n, c, h * up, w * across)), added)


@op("pad", static=("padding",))
def pad(b: Builder, x, padding, value=0.0) -> Var:
    """Images with a border of a constant. `np.pad` pads any axes.

    Args:
        b: the builder.
        x: (C, H, W) or (N, C, H, W), float.
        padding: as of `relay.conv2d`: an int, (vertical, horizontal) or ((top, bottom), (left, right)).
        value: what the border is made of.

    Raises:
        TypeError_: the padding is a word.
    """
    if isinstance(padding, str):
        raise TypeError_(f"relay.pad: padding={padding!r}: it is an int, (vertical, horizontal) or ((t, b), (l, r))")
    x, added = images(b, x, "relay.pad")
    (top, bottom), (left, right) = resolve_padding(padding, x.shape[2:], (1, 1), (1, 1))
    value = astype(operand(b, value, "relay.pad: value"), x.dtype)
    out = pad_prim(x, value, low=(0, 0, top, left), high=(0, 0, bottom, right), interior=(0,) * 4)
    return without_batch(out, added)
