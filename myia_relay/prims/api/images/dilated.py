"""Convolutions of images with gaps between the taps of their filters (dilated, or atrous, convolutions).

Taps that only ever see padding are left out: at the high dilations of segmentation networks that is all but one, or all but a
row (L.-C. Chen et al., "Rethinking Atrous Convolution for Semantic Image Segmentation", 2017, section 3.2.2). So windows never
reach further than the image and its padding.

Input: staged images (N, C, H, W) and filters (O, C / groups, kh, kw). Output: (N, O, H', W').
"""

from __future__ import annotations

from collections.abc import Sequence

from ....abstract.dims import known_size
from ....ir.build import Var
from ...ops import nn
from ...ops.shape import slice_
from ..nn_api import windows_fit

Pair = tuple[int, int]


def dilated_conv2d(
    x: Var, w: Var, strides: Sequence[int], padding: Sequence[Pair], groups: int, dilation: Sequence[int]
) -> Var:
    """A convolution of images with gaps between the taps of its filters.

    Args:
        x: (N, C, H, W).
        w: (O, C / groups, kh, kw), where kh and kw are known.
        strides: of the windows.
        padding: ((top, bottom), (left, right)), not negative.
        groups: see `nn.conv2d`.
        dilation: the distance of neighbouring taps along each axis.
    """
    kernel = known_size(w.shape[2]), known_size(w.shape[3])
    strides, padding = (strides[0], strides[1]), (padding[0], padding[1])
    gaps = (dilation[0] if kernel[0] != 1 else 1, dilation[1] if kernel[1] != 1 else 1)
    spans = nn.extents(kernel, gaps)
    windows_fit(x, spans, padding, "conv2d")
    sizes = x.shape[2:]
    if gaps != (1, 1) and all(isinstance(n, int) for n in sizes):
        fits = all(known_size(n) and known_size(n) + sum(p) >= s for n, p, s in zip(sizes, padding, spans, strict=True))
        if fits:
            x, w, padding = _seen(x, w, strides, padding, gaps, spans)
    return nn.conv2d(x, w, strides=strides, padding=padding, groups=groups, **nn.gaps(gaps))


def _seen(
    x: Var, w: Var, strides: Pair, padding: tuple[Pair, Pair], gaps: Pair, spans: Pair
) -> tuple[Var, Var, tuple[Pair, Pair]]:
    """The part of the images that windows see, the taps that see more than padding, and the padding that is left."""
    begin, size, first, taps, around = [], [], [], [], []
    for axis in (0, 1):
        n, k = known_size(x.shape[axis + 2]), known_size(w.shape[axis + 2])
        d, s, before = gaps[axis], strides[axis], padding[axis][0]
        count = (n + sum(padding[axis]) - spans[axis]) // s + 1
        seen = [a for a in range(k) if any(0 <= i * s + a * d - before < n for i in range(count))] or [0]
        start = seen[0] * d - before
        stop = start + (count - 1) * s + (seen[-1] - seen[0]) * d + 1
        first.append(seen[0])
        taps.append(seen[-1] - seen[0] + 1)
        begin.append(min(max(start, 0), n - 1))
        size.append(min(max(stop, 1), n) - begin[-1])
        around.append((begin[-1] - start, stop - begin[-1] - size[-1]))
    if tuple(size) != x.shape[2:]:
        x = slice_(x, starts=(0, 0, *begin), sizes=(*x.shape[:2], *size), steps=(1,) * 4)
    if tuple(taps) != w.shape[2:]:
        w = slice_(w, starts=(0, 0, *first), sizes=(*w.shape[:2], *taps), steps=(1,) * 4)
    return x, w, (around[0], around[1])
