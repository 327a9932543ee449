"""Dilated convolutions of images in terms of plain ones.

Idea: the elements of an image that a window of dilation d sees all have the same place modulo d. So the image falls into d images
(its phases) that do not see each other, and a plain convolution of those is the dilated one (Yu and Koltun, "Multi-scale context
aggregation by dilated convolutions", ICLR 2016, compute it so). Where phases are small, or windows have strides, the result is
a sum over the taps of the filters, each a convolution of windows of size 1. Taps that only ever see padding are left out
before; at the high dilations of segmentation networks that is all but one.

Input: staged images (N, C, H, W) and filters (O, C / groups, kh, kw). Output: (N, O, H', W').
"""

from __future__ import annotations

from collections.abc import Sequence

from ....abstract.dims import known_size
from ....ir.build import Var
from ...ops import nn
from ...ops.shape import pad, slice_, transpose
from ...rules.broadcast import reshape
from ..nn_api import windows_fit

SMALL = 64
"""Positions of a phase from which on convolutions of phases are worth it."""

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
    dilation = (dilation[0] if kernel[0] != 1 else 1, dilation[1] if kernel[1] != 1 else 1)
    spans = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation))
    windows_fit(x, spans, padding, "conv2d")
    if dilation == (1, 1):
        return nn.conv2d(x, w, strides=strides, padding=padding, groups=groups)
    known = all(isinstance(d, int) for d in x.shape[1:])
    if not known or any(known_size(n) + sum(p) < s for n, p, s in zip(x.shape[2:], padding, spans, strict=True)):
        return _with_gaps(x, w, strides, padding, groups, dilation)
    x, w, out = _seen(x, w, strides, padding, dilation, spans)
    if w.shape[2:] == (1, 1):
        return nn.conv2d(x, w, strides=strides, padding=((0, 0), (0, 0)), groups=groups)
    phase = [-(-known_size(n) // d) for n, d in zip(x.shape[2:], dilation)]
    if all(s == 1 or d == 1 for s, d in zip(strides, dilation)) and (groups != 1 or phase[0] * phase[1] >= SMALL):
        return _by_phases(x, w, strides, groups, dilation, out)
    if groups != 1:
        return _with_gaps(x, w, strides, ((0, 0), (0, 0)), groups, dilation)
    return _by_taps(x, w, strides, dilation, out)


def _with_gaps(x: Var, w: Var, strides: Pair, padding: tuple[Pair, Pair], groups: int, dilation: Pair) -> Var:
    """With zeros between the taps."""
    wide = pad(w, w.const(0), low=(0,) * 4, high=(0,) * 4, interior=(0, 0, dilation[0] - 1, dilation[1] - 1))
    return nn.conv2d(x, wide, strides=strides, padding=padding, groups=groups)


def _seen(x: Var, w: Var, strides: Pair, padding, dilation: Pair, spans) -> tuple[Var, Var, Pair]:
    """The images, padded and cut, and the taps that see more of them than padding; and the size of the result."""
    low, high, first, taps, starts, sizes, out = [], [], [], [], [], [], []
    for axis in (0, 1):
        n, k, d, s, before = (
            *map(known_size, (x.shape[axis + 2], w.shape[axis + 2])),
            dilation[axis],
            strides[axis],
            padding[axis][0],
        )
        count = (n + sum(padding[axis]) - spans[axis]) // s + 1
        seen = [a for a in range(k) if any(0 <= i * s + a * d - before < n for i in range(count))] or [0]
        before -= seen[0] * d
        extent = (count - 1) * s + (seen[-1] - seen[0]) * d + 1
        first.append(seen[0])
        taps.append(seen[-1] - seen[0] + 1)
        low.append(max(before, 0))
        high.append(max(extent - n - before, 0))
        starts.append(max(-before, 0))
        sizes.append(extent)
        out.append(count)
    if any(low) or any(high):
        x = pad(x, x.const(0), low=(0, 0, *low), high=(0, 0, *high), interior=(0,) * 4)
    if any(starts) or tuple(sizes) != x.shape[2:]:
        x = slice_(x, starts=(0, 0, *starts), sizes=(*x.shape[:2], *sizes), steps=(1,) * 4)
    if tuple(taps) != w.shape[2:]:
        w = slice_(w, starts=(0, 0, *first), sizes=(*w.shape[:2], *taps), steps=(1,) * 4)
    return x, w, (out[0], out[1])


def _by_phases(x: Var, w: Var, strides: Pair, groups: int, dilation: Pair, out: Pair) -> Var:
    """Split the images into phases, which join the batch."""
    n, c, *size = x.shape
    (dh, dw), (h, wide) = dilation, [-(-known_size(m) // d) for m, d in zip(size, dilation)]
    x = pad(x, x.const(0), low=(0,) * 4, high=(0, 0, h * dh - size[0], wide * dw - size[1]), interior=(0,) * 4)
    x = transpose(reshape(x, shape=(n, c, h, dh, wide, dw)), perm=(0, 3, 5, 1, 2, 4))
    y = nn.conv2d(
        reshape(x, shape=(n * dh * dw, c, h, wide)), w, strides=strides, padding=((0, 0), (0, 0)), groups=groups
    )
    _, o, rows, columns = y.shape
    y = transpose(reshape(y, shape=(n, dh, dw, o, rows, columns)), perm=(0, 3, 4, 1, 5, 2))
    y = reshape(y, shape=(n, o, rows * dh, columns * dw))
    return slice_(y, starts=(0,) * 4, sizes=(n, o, *out), steps=(1,) * 4)


def _by_taps(x: Var, w: Var, strides: Pair, dilation: Pair, out: Pair) -> Var:
    """The sum over taps."""
    total: Var | None = None
    for i in range(known_size(w.shape[2])):
        for j in range(known_size(w.shape[3])):
            part = slice_(
                x, starts=(0, 0, i * dilation[0], j * dilation[1]), sizes=(*x.shape[:2], *out), steps=(1, 1, *strides)
            )
            tap = slice_(w, starts=(0, 0, i, j), sizes=(*w.shape[:2], 1, 1), steps=(1,) * 4)
            one = nn.conv2d(part, tap, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1)
            total = one if total is None else total + one
    assert total is not None
    return total
