"""What operators of Relay compute, in plain loops over NumPy: the tests compare with these."""

from __future__ import annotations

import itertools
import math

import numpy as np


def pairs(padding, axes):
    """Padding before and after each axis."""
    values = tuple(padding) if isinstance(padding, list | tuple) else (padding,)
    values = values * axes if len(values) == 1 else values
    values = values * 2 if len(values) == axes else values
    return [(values[k], values[k + axes]) for k in range(axes)]


def each(values, axes):
    """A number for each axis."""
    values = tuple(values) if isinstance(values, list | tuple) else (values,)
    return values * axes if len(values) == 1 else values


def convolution(x, w, strides=1, padding=0, dilation=1, groups=1):
    """(N, C, ...) with (O, C / groups, ...), element by element."""
    axes = x.ndim - 2
    steps, spread = each(strides, axes), each(dilation, axes)
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pairs(padding, axes)])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], spread, strict=True)]
    size = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, steps, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    per_group, outs = w.shape[1], w.shape[0] // groups
    for o in range(w.shape[0]):
        first = o // outs * per_group
        for place in itertools.product(*map(range, size)):
            window = tuple(slice(p * s, p * s + r, d) for p, s, r, d in zip(place, steps, reach, spread, strict=True))
            part = x[(slice(None), slice(first, first + per_group), *window)]
            out[(slice(None), o, *place)] = (part * w[o]).sum(tuple(range(1, part.ndim)))
    return out.astype(np.float32)


def transposed_convolution(x, w, strides=1, padding=0, dilation=1, groups=1, output_padding=0):
    """(N, C, ...) with (C, O / groups, ...): each element spreads a filter."""
    axes = x.ndim - 2
    steps, spread, extra = each(strides, axes), each(dilation, axes), each(output_padding, axes)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], spread, strict=True)]
    size = [(n - 1) * s + r + e for n, s, r, e in zip(x.shape[2:], steps, reach, extra, strict=True)]
    per_group, outs = x.shape[1] // groups, w.shape[1]
    out = np.zeros((x.shape[0], outs * groups, *size))
    for c in range(x.shape[1]):
        first = c // per_group * outs
        for place in itertools.product(*map(range, x.shape[2:])):
            window = tuple(slice(p * s, p * s + r, d) for p, s, r, d in zip(place, steps, reach, spread, strict=True))
            value = x[(slice(None), c, *place)].reshape(-1, *(1,) * (axes + 1))
            out[(slice(None), slice(first, first + outs), *window)] += value * w[c]
    cut = tuple(slice(a, n - c) for (a, c), n in zip(pairs(padding, axes), size, strict=True))
    return out[(slice(None), slice(None), *cut)].astype(np.float32)


def pooling(x, pool_size, strides=1, padding=0, dilation=1, ceil_mode=False, mean=False, count_include_pad=False):
    """Windows of (N, C, ...)."""
    axes = x.ndim - 2
    kernel, steps, spread = each(pool_size, axes), each(strides, axes), each(dilation, axes)
    sides = pairs(padding, axes)
    size = []
    for n, k, s, d, (a, c) in zip(x.shape[2:], kernel, steps, spread, sides, strict=True):
        room = n + a + c - (k - 1) * d - 1
        size.append((math.ceil(room / s) if ceil_mode else room // s) + 1)
    out = np.zeros((*x.shape[:2], *size), np.float32)
    for place in itertools.product(*map(range, size)):
        taps = []
        for tap in itertools.product(*map(range, kernel)):
            at = [p * s + t * d - a for p, s, t, d, (a, _) in zip(place, steps, tap, spread, sides, strict=True)]
            if all(0 <= i < n for i, n in zip(at, x.shape[2:], strict=True)):
                taps.append(x[(slice(None), slice(None), *at)])
        total = np.sum(taps, 0) if mean else np.max(taps, 0)
        out[(slice(None), slice(None), *place)] = (
            total / (math.prod(kernel) if count_include_pad else len(taps)) if mean else total
        )
    return out


def adaptive(x, output_size, mean):
    """As many windows as are asked for."""
    out = np.zeros((*x.shape[:2], *output_size), np.float32)
    for place in itertools.product(*map(range, output_size)):
        window = tuple(
            slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(place, x.shape[2:], output_size, strict=True)
        )
        part = x[(slice(None), slice(None), *window)]
        over = tuple(range(2, x.ndim))
        out[(slice(None), slice(None), *place)] = part.mean(over) if mean else part.max(over)
    return out


def bilinear(x, size, position):
    """Images (N, C, H, W), interpolated; `position(i, n, m)` is where pixel i of m lies among n."""
    out = x.astype(np.float64)
    for axis, m in enumerate(size, 2):
        n = out.shape[axis]
        rows = []
        for i in range(m):
            at = position(i, n, m)
            low = math.floor(at)
            t = at - low
            first, second = (np.take(out, min(max(k, 0), n - 1), axis) for k in (low, low + 1))
            rows.append(first * (1 - t) + second * t)
        out = np.stack(rows, axis)
    return out.astype(np.float32)


def normalised(x, axes, epsilon=1e-5):
    """x minus its mean, over the root of its variance."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def softmax(x, axis):
    """exp(x) / sum(exp(x))."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def local_response(x, size, bias, alpha, beta):
    """Normalised by the squares of neighbouring channels."""
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        total[:, c] = (x[:, max(c - size // 2, 0) : c + size // 2 + 1] ** 2).sum(1)
    return x / (bias + alpha / size * total) ** beta


def scattered(data, indices, updates, axis, combine):
    """Elements combined with those at places along an axis, one after another."""
    out = data.copy()
    for place in np.ndindex(*indices.shape):
        at = list(place)
        at[axis] = indices[place]
        out[tuple(at)] = combine(out[tuple(at)], updates[place])
    return out
