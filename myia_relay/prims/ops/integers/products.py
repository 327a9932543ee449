"""Products and convolutions of small integers, summed in int32, and their operands as the instructions read them.

    conv2d_integer(x, w) = sum of (x - zero) * w        x: uint8 or int8, w: int8;  or both int16

What is beyond int32 wraps. An instruction multiplies *words* of 32 bits: four numbers of 8 bits or two of 16, which lie side by
side along the channels. `opt.kernels.integer_words` packs operands into words, and constant weights when a program is
compiled:

    conv2d_integer(x, w)  =>  conv2d_words(pack_words(x), pack_words(w)) - zero * sum of w

With a channel in each group, words hold neighbours in a row (`depthwise_words`).

Eight bits are multiplied unsigned by signed. Signed images are shifted: x + 128, with 128 added to the zero.
"""

from __future__ import annotations

import numpy as np

from ....abstract.dims import DimLike, known_size
from ....abstract.types import Array
from ....ir.axes import Axes
from ....ir.prim import primitive
from ....utils.errors import ShapeError, TypeError_, ValueError_
from ...rules.batching import materialise_all, merge
from ...rules.broadcast import reshape, shape_of
from ...rules.relations import dtype_of, require_array, same_size, show_shape
from ..nn import _channels_inner, _channels_outer, _check_window, _convolved, _grouped, _pad, _windows, window_count
from ..shape import transpose

PAIRS = (("uint8", "int8"), ("int8", "int8"), ("int16", "int16"))
"""The dtypes that are multiplied."""
SHIFT = 128


def per_word(dtype: str) -> int:
    """How many numbers a word holds."""
    return 2 if dtype == "int16" else 4


def words(count: DimLike, dtype: str) -> DimLike:
    """How many words hold so many numbers."""
    return (count + per_word(dtype) - 1) // per_word(dtype)


def _require_pair(name: str, x: Array, w: Array, zero: int = 0) -> None:
    if (x.dtype, w.dtype) not in PAIRS:
        known = ", ".join(f"{a} by {b}" for a, b in PAIRS)
        raise TypeError_(f"{name} multiplies {known}, and these are {x.dtype} and {w.dtype}")
    limits = np.iinfo(x.dtype)
    if not limits.min <= zero <= limits.max:
        raise ValueError_(f"{name}: zero={zero} is no number of {x.dtype}")


def _wrapped(sums: np.ndarray) -> np.ndarray:
    """Exact sums as int32, which wrap."""
    return sums.astype(np.int64).astype(np.int32)


def _exact(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
    """Operands as floats in which all products and sums are exact: those of 16 bits need not be, and are int64."""
    wide = any(np.asarray(x).dtype == np.int16 for x in operands)
    return tuple(np.asarray(x).astype(np.int64 if wide else np.float64) for x in operands)


@primitive("opaque", axes=_convolved("nc..,oc..->no.."), differentiable=False)
def conv2d_integer(x, w, *, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, zero=0):
    """Two-dimensional convolution of integers.

    Args:
        x: images (N, C, H, W); with `w` of one of `PAIRS`.
        w: filters (O, C / groups, kh, kw).
        strides: (vertical, horizontal).
        padding: of the images, ((top, bottom), (left, right)): of `zero`, so that it adds nothing.
        groups: channels and filters fall into that many groups that do not see each other.
        zero: what is subtracted from the images.

    Returns:
        (N, O, H', W') of int32, which wraps.
    """
    image, filters = _exact(x, w)
    w = filters.reshape(groups, filters.shape[0] // groups, *filters.shape[1:])
    windows = _grouped(_windows(_pad(image - zero, padding), filters.shape[2:], strides), groups)
    out = np.einsum("ngchwij,gocij->ngohw", windows, w, optimize=True)
    return _wrapped(out.reshape(out.shape[0], filters.shape[0], *out.shape[3:]))


@conv2d_integer.infer
def _(x, w, *, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, zero=0):
    require_array("conv2d_integer", x, 4)
    require_array("conv2d_integer", w, 4)
    _require_pair("conv2d_integer", x, w, zero)
    n, c, height, width = x.shape
    o, per_group, kh, kw = w.shape
    if not same_size(c, per_group * groups):
        raise ShapeError(
            f"conv2d_integer: an image of shape {show_shape(x.shape)} has {c} channels, and filters of shape "
            f"{show_shape(w.shape)} with groups={groups} take {per_group * groups}"
        )
    _check_window("conv2d_integer", (height, width), (kh, kw), padding)
    out = (window_count(height, kh, strides[0], padding[0]), window_count(width, kw, strides[1], padding[1]))
    return Array("int32", (n, o, *out))


def _batched(conv):
    """Where both operands are batched, examples become groups of channels; all else follows from the axes."""

    def rule(size, batched, x, w, *, groups=1, **attrs):
        if not batched[1] or not batched[0] and groups == 1:
            return None
        x, w = materialise_all(size, batched, (x, w))
        out = conv(_channels_inner(x, groups), merge(w), groups=size * groups, **attrs)
        return _channels_outer(out, size, shape_of(w)[1])

    return rule


conv2d_integer.batch(_batched(conv2d_integer))


@primitive("opaque", axes="mk,nk->mn", differentiable=False)
def dot_integer(a, b, *, zero=0):
    """Product of a matrix and a transposed one, of integers.

    Args:
        a: (m, k); with `b` of one of `PAIRS`.
        b: (n, k): a row for each column of the result, as a layer has its weights.
        zero: what is subtracted from `a`.

    Returns:
        (m, n) of int32, which wraps.
    """
    left, right = _exact(a, b)
    return _wrapped(np.matmul(left - zero, right.T))


def _infer_product(name: str):
    def infer(a, b, *, zero=0):
        require_array(name, a, 2)
        require_array(name, b, 2)
        _require_pair(name, a, b, zero)
        if not same_size(a.shape[1], b.shape[1]):
            raise ShapeError(
                f"{name}: shapes {show_shape(a.shape)} and {show_shape(b.shape)} do not fit: rows have {a.shape[1]} and "
                f"{b.shape[1]} numbers"
            )
        return Array("int32", (a.shape[0], b.shape[0]))

    return infer


dot_integer.infer(_infer_product("dot_integer"))


@dot_integer.batch
def _(size, batched, a, b, *, zero=0):
    if not all(batched):
        return None
    (_, m, k), (_, n, _) = shape_of(a), shape_of(b)  # groups of channels of images of one element
    image = reshape(transpose(a, perm=(1, 0, 2)), shape=(m, size * k, 1, 1))
    sums = conv2d_integer(image, reshape(b, shape=(size * n, k, 1, 1)), groups=size, zero=zero)
    return transpose(reshape(sums, shape=(m, size, n)), perm=(1, 0, 2))


# What native code computes.


@primitive("opaque", axes="mk,nk->mn", differentiable=False)
def dot_shifted(a, b):
    """`dot_integer` as instructions compute it: without a zero, and 128 added to `a` of int8."""
    return dot_integer(a, b, zero=-SHIFT if np.asarray(a).dtype == np.int8 else 0)


dot_shifted.infer(lambda a, b: _infer_product("dot_shifted")(a, b))


@dot_shifted.batch
def _(size, batched, a, b):
    zero = -SHIFT if dtype_of(a) == "int8" else 0
    return dot_integer.batch_rule(size, batched, a, b, zero=zero) if all(batched) else None


def _packed_shape(shape, dtype: str, groups: int):
    count, channels, *rest = shape
    return (count, groups * words(channels // groups, dtype), *rest)


@primitive("opaque", axes="n...->n...", differentiable=False)
def pack_words(x, *, groups=1, shift=0):
    """Numbers that lie one behind the other along the channels, as words of int32 (little-endian), filled up with zeros.

    Args:
        x: images or filters (N, C, H, W) of 8 or 16 bits.
        groups: each begins a word.
        shift: what is added before, with wrapping: 128 makes int8 a uint8.

    Returns:
        (N, groups * words(C / groups), H, W).
    """
    x = np.asarray(x)
    count, channels, *rest = x.shape
    size, own = per_word(x.dtype.name), channels // groups
    raw = x.view(f"u{x.dtype.itemsize}")
    raw = (raw + raw.dtype.type(shift)).reshape(count, groups, own, *rest)
    short = -own % size
    raw = np.pad(raw, ((0, 0), (0, 0), (0, short), (0, 0), (0, 0)))
    raw = raw.reshape(count, -1, size, *rest).transpose(0, 1, 3, 4, 2)
    return (
        np.ascontiguousarray(raw)
        .view("<i4")
        .reshape(tuple(map(known_size, _packed_shape(x.shape, x.dtype.name, groups))))
    )


@pack_words.infer
def _(x, *, groups=1, shift=0):
    require_array("pack_words", x, 4, ("uint8", "int8", "int16"))
    return Array("int32", _packed_shape(x.shape, x.dtype, groups))


def _unpacked(x: np.ndarray, dtype: str) -> np.ndarray:
    """(N, C, H, W) of words -> (N, C * numbers of a word, H, W)."""
    numbers = np.ascontiguousarray(x).astype("<i4").view(dtype).reshape(*x.shape, per_word(dtype))
    return np.moveaxis(numbers, -1, 2).reshape(x.shape[0], -1, *x.shape[2:])


@primitive("opaque", axes=_convolved("nc..,oc..->no.."), differentiable=False)
def conv2d_words(x, w, *, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, bits=8, fill=0):
    """`conv2d_integer` of packed operands, without a zero.

    Args:
        x: images (N, C, H, W) of words: unsigned numbers of 8 bits, or signed ones of 16.
        w: filters (O, C / groups, kh, kw) of words, of signed numbers.
        bits: of a number, 8 or 16.
        fill: the number that pads the images; further attributes as of `conv2d`.

    Returns:
        (N, O, H', W') of int32, which wraps.
    """
    image = _unpacked(np.asarray(x), "uint8" if bits == 8 else "int16").astype(np.int64)
    filters = _unpacked(np.asarray(w), "int8" if bits == 8 else "int16").astype(np.int64)
    padded = _pad(image, padding, fill)
    windows = _grouped(_windows(padded, filters.shape[2:], strides), groups)
    own = filters.reshape(groups, filters.shape[0] // groups, *filters.shape[1:])
    out = np.einsum("ngchwij,gocij->ngohw", windows, own, optimize=True)
    return _wrapped(out.reshape(out.shape[0], filters.shape[0], *out.shape[3:]))


@conv2d_words.infer
def _(x, w, *, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, bits=8, fill=0):
    require_array("conv2d_words", x, 4, ("int32",))
    require_array("conv2d_words", w, 4, ("int32",))
    n, _, height, width = x.shape
    o, _, kh, kw = w.shape
    out = (window_count(height, kh, strides[0], padding[0]), window_count(width, kw, strides[1], padding[1]))
    return Array("int32", (n, o, *out))


conv2d_words.batch(_batched(conv2d_words))


def pack_taps(w: np.ndarray) -> np.ndarray:
    """Filters (O, 1, kh, kw) of int8 as words of four taps that lie side by side, filled up with zeros: (O, 1, kh, words)."""
    short = -w.shape[3] % 4
    return np.ascontiguousarray(np.pad(w, ((0, 0), (0, 0), (0, 0), (0, short)))).view("<i4")


_GROUPED = _convolved("nc..,oc..->no..")


@primitive(
    "opaque",
    axes=Axes(lambda shapes, out, **attrs: _GROUPED.relation(shapes, out, {"groups": 2}), any_rank=False),
    differentiable=False,
)
def depthwise_words(x, w, *, kernel, strides=(1, 1), padding=((0, 0), (0, 0)), fill=0):
    """`conv2d_integer` with a group for each channel, without a zero, and with 128 added to images of int8.

    Args:
        x: images (N, C, H, W) of uint8 or int8.
        w: filters (O, 1, kh, words) as `pack_taps` makes them, O a multiple of C.
        kernel: (kh, kw).
        strides: as of `conv2d`, at most 4 along rows.
        padding: as of `conv2d`.
        fill: the number that pads the images, after that addition.

    Returns:
        (N, O, H', W') of int32.
    """
    image, filters = np.asarray(x).astype(np.int64), np.ascontiguousarray(w).view("i1")[..., : kernel[1]]
    padded = _pad(image + (SHIFT if np.asarray(x).dtype == np.int8 else 0), padding, fill)
    return conv2d_integer.reference(
        padded.astype(np.int16), filters.astype(np.int16), strides=strides, groups=x.shape[1]
    )


@depthwise_words.infer
def _(x, w, *, kernel, strides=(1, 1), padding=((0, 0), (0, 0)), fill=0):
    require_array("depthwise_words", x, 4, ("uint8", "int8"))
    require_array("depthwise_words", w, 4, ("int32",))
    n, _, height, width = x.shape
    out = (
        window_count(height, kernel[0], strides[0], padding[0]),
        window_count(width, kernel[1], strides[1], padding[1]),
    )
    return Array("int32", (n, w.shape[0], *out))


@depthwise_words.batch
def _(size, batched, x, w, **attrs):
    """Where filters are batched, examples become channels; all else follows from the axes."""
    if not batched[1]:
        return None
    x, w = materialise_all(size, batched, (x, w))
    out = depthwise_words(_channels_inner(x, 1), merge(w), **attrs)
    return _channels_outer(out, size, shape_of(w)[1])


__all__ = [
    "PAIRS",
    "SHIFT",
    "conv2d_integer",
    "conv2d_words",
    "depthwise_words",
    "dot_integer",
    "dot_shifted",
    "pack_taps",
    "pack_words",
    "per_word",
    "words",
]
