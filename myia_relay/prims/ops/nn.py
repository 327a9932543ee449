"""Convolution and pooling, and the operations that are their derivatives.

The layout is (N, C, H, W). All are linear in each array argument (pooling: for given positions of the maxima), and each
is the adjoint of another, so the rules are closed under differentiation:

    y = conv2d(x, w)  =>  dx = conv2d_grad_input(dy, w),  dw = conv2d_grad_weight(x, dy)
    y = max_pool(x)   =>  dx = max_pool_grad(x, dy)         dx = max_pool_grad(x, dy)  =>  ddy = max_pool_gather(x, ddx)

This is the convolution of deep learning, a correlation: the kernel is not flipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...abstract.dims import DimLike
from ...abstract.types import FLOATS, Array
from ...ir.axes import Axes, Relation
from ...ir.build import Var
from ...ir.prim import primitive
from ...utils.errors import ShapeError
from ..rules.batching import materialise_all, merge, unmerge
from ..rules.broadcast import reshape, shape_of
from ..rules.forward import bilinear, linear
from ..rules.relations import require_array, same_dtype, same_size, show_shape
from ..rules.wide_sums import sums_in_float32
from .shape import pad, transpose


def window_count(size: DimLike, kernel: int, stride: int, padding: tuple[int, int]) -> DimLike:
    """How many windows fit along an axis: floor((size + padding - kernel) / stride) + 1."""
    return (size + padding[0] + padding[1] - kernel) // stride + 1


def extents(ksize, dilations) -> tuple[int, int]:
    """The sizes of windows, with the gaps between their elements."""
    return (ksize[0] - 1) * dilations[0] + 1, (ksize[1] - 1) * dilations[1] + 1


def gaps(dilations) -> dict[str, tuple[int, ...]]:
    """The attribute for the distances of elements of a window; none where they are neighbours."""
    return {"dilations": tuple(dilations)} if any(d != 1 for d in dilations) else {}


def with_gaps(w: Var, attrs: Mapping[str, Any]) -> tuple[Var, dict[str, Any]]:
    """Filters (O, C, kh, kw) with zeros in the gaps between their elements, and the attributes of a convolution without gaps."""
    rest = dict(attrs)
    dilations = rest.pop("dilations", None)
    if dilations is not None:
        between = (0, 0, *(d - 1 for d in dilations))
        w = pad(w, w.const(0), low=(0,) * 4, high=(0,) * 4, interior=between)
    return w, rest


def _windows(x, ksize, strides, dilations=(1, 1)):
    """A view of all windows of a padded (N, C, H, W) array: (N, C, H', W', kh, kw)."""
    axes: Any = (2, 3)  # stubs of NumPy 2.2 know one axis only
    view = np.lib.stride_tricks.sliding_window_view(x, extents(ksize, dilations), axis=axes)
    return view[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def _pad(x, padding, value: float = 0):
    if not any(n for side in padding for n in side):
        return np.asarray(x)
    return np.pad(x, ((0, 0), (0, 0), *padding), constant_values=value)


def _crop(x, padding, size):
    (top, _), (left, _) = padding
    return x[:, :, top : top + size[0], left : left + size[1]]


def _add_windows(out, values, strides, dilations=(1, 1)):
    """Add values (N, C, H', W', kh, kw) to the windows of a padded array, in place: windows overlap."""
    *_, rows, columns, kh, kw = values.shape
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilations[0], j * dilations[1]
            bottom, right = top + rows * strides[0], left + columns * strides[1]
            out[:, :, top : bottom : strides[0], left : right : strides[1]] += values[..., i, j]


def _padded(size, padding) -> tuple[int, int]:
    return size[0] + sum(padding[0]), size[1] + sum(padding[1])


def _grouped(x, groups: int):
    """(N, G * C, ...) -> (N, G, C, ...)."""
    n, c, *rest = x.shape
    return x.reshape(n, groups, c // groups, *rest)


def _check_window(name, size, window, padding):
    for have, k, around in zip(size, window, padding, strict=True):
        if isinstance(have, int) and have + sum(around) < k:
            raise ShapeError(
                f"{name}: a window of {show_shape(window)} does not fit into an image of {show_shape(size)} with "
                f"padding {tuple(padding)}; use a smaller window, or padding='same'"
            )


def _convolved(text: str) -> Axes:
    """The axes of a convolution's maps; with groups channels are more than summed."""
    plain = Axes(text)

    def rule(shapes, out, *, groups, **attrs):
        relation = plain.relation(shapes, out, {})
        if groups == 1:
            return relation
        *operands, result = (
            tuple("n" if x == "n" else None for x in own) for own in (*relation.operands, relation.result)
        )
        return Relation(tuple(operands), result, relation.combine)

    return Axes(rule, any_rank=False)


@primitive("opaque", axes=_convolved("nc..,oc..->no.."))
@sums_in_float32
def conv2d(x, w, *, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, dilations=(1, 1)):
    """Two-dimensional convolution.

    Args:
        x: images (N, C, H, W), float.
        w: filters (O, C / groups, kh, kw), of the same dtype.
        strides: (vertical, horizontal).
        padding: zeros around the image, ((top, bottom), (left, right)).
        groups: channels and filters fall into that many groups that do not see each other.
        dilations: the distances of the elements of a window.

    Returns:
        (N, O, H', W') with H' = (H + top + bottom - (kh - 1) dilation - 1) // stride + 1. Costs 2 N O H' W' (C / groups) kh kw
        operations.
    """
    w = np.asarray(w)
    windows = _grouped(_windows(_pad(x, padding), w.shape[2:], strides, dilations), groups)
    filters = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    out = np.einsum("ngchwij,gocij->ngohw", windows, filters, optimize=True)
    return np.ascontiguousarray(out.reshape(out.shape[0], w.shape[0], *out.shape[3:]))


@conv2d.infer
def _(x, w, *, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, dilations=(1, 1)):
    require_array("conv2d", x, 4, FLOATS)
    require_array("conv2d", w, 4, FLOATS)
    n, c, h, width = x.shape
    o, per_group, kh, kw = w.shape
    if not same_size(c, per_group * groups):
        raise ShapeError(
            f"conv2d: an image of shape {show_shape(x.shape)} has {c} channels, and filters of shape "
            f"{show_shape(w.shape)} with groups={groups} take {per_group * groups}"
        )
    window = extents((kh, kw), dilations)
    _check_window("conv2d", (h, width), window, padding)
    out = tuple(window_count(*of) for of in zip((h, width), window, strides, padding, strict=True))
    return Array(same_dtype("conv2d", x, w), (n, o, *out))


@conv2d.vjp
def _(x, w, out, dout, **attrs):
    return (
        conv2d_grad_input(dout, w, in_shape=shape_of(x)[2:], **attrs),
        conv2d_grad_weight(x, dout, kernel=shape_of(w)[2:], **attrs),
    )


def _channels_inner(x, groups):
    """(B, N, G * C, ...) -> (N, B * G * C, ...): examples become groups of channels."""
    size, n, c, *rest = shape_of(x)
    return reshape(transpose(x, perm=(1, 0, *range(2, 3 + len(rest)))), shape=(n, size * c, *rest))


def _channels_outer(x, size, c):
    """(N, B * C, ...) -> (B, N, C, ...)."""
    n, _, *rest = shape_of(x)
    return transpose(reshape(x, shape=(n, size, c, *rest)), perm=(1, 0, *range(2, 3 + len(rest))))


conv2d.jvp(bilinear(conv2d))


@conv2d.batch
def _(size, batched, x, w, *, groups=1, **attrs):
    if not batched[1] or not batched[0] and groups == 1:  # more images, or more filters
        return None
    x, w = materialise_all(size, batched, (x, w))
    o = shape_of(w)[1]
    return _channels_outer(conv2d(_channels_inner(x, groups), merge(w), groups=size * groups, **attrs), size, o)


@primitive("opaque", axes=_convolved("no..,oc..->nc.."))
@sums_in_float32
def conv2d_grad_input(dout, w, *, in_shape, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, dilations=(1, 1)):
    """The cotangent of the images of `conv2d`: what reaches each pixel through all windows it is in.

    Args:
        dout: (N, O, H', W').
        w: filters (O, C / groups, kh, kw).
        in_shape: (H, W) of the images; further attributes as for `conv2d`.

    Returns:
        (N, C, H, W).
    """
    dout, w = np.asarray(dout), np.asarray(w)
    filters = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    values = np.einsum("ngohw,gocij->ngchwij", _grouped(dout, groups), filters, optimize=True)
    values = values.reshape(values.shape[0], -1, *values.shape[3:])
    out = np.zeros((*values.shape[:2], *_padded(in_shape, padding)), dtype=dout.dtype)
    _add_windows(out, values, strides, dilations)
    return np.ascontiguousarray(_crop(out, padding, in_shape))


@conv2d_grad_input.infer
def _(dout, w, *, in_shape, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, dilations=(1, 1)):
    require_array("conv2d_grad_input", dout, 4, FLOATS)
    require_array("conv2d_grad_input", w, 4, FLOATS)
    same_dtype("conv2d_grad_input", dout, w)
    return Array(dout.dtype, (dout.shape[0], w.shape[1] * groups, *in_shape))


@conv2d_grad_input.vjp
def _(dout, w, out, g, *, in_shape, **attrs):
    # <g, grad_input(dout, w)> = <conv2d(g, w), dout>
    return conv2d(g, w, **attrs), conv2d_grad_weight(g, dout, kernel=shape_of(w)[2:], **attrs)


conv2d_grad_input.jvp(bilinear(conv2d_grad_input))


@conv2d_grad_input.batch
def _(size, batched, dout, w, *, groups=1, **attrs):
    if not batched[1] or not batched[0] and groups == 1:
        return None
    dout, w = materialise_all(size, batched, (dout, w))
    out = conv2d_grad_input(_channels_inner(dout, groups), merge(w), groups=size * groups, **attrs)
    return _channels_outer(out, size, shape_of(w)[2] * groups)


@primitive("opaque", axes=_convolved("nc..,no..->oc.."))
@sums_in_float32
def conv2d_grad_weight(x, dout, *, kernel, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, dilations=(1, 1)):
    """The cotangent of the filters of `conv2d`: each window times the cotangent of what it gave, summed.

    Args:
        x: images (N, C, H, W).
        dout: (N, O, H', W').
        kernel: (kh, kw); further attributes as for `conv2d`.

    Returns:
        (O, C / groups, kh, kw).
    """
    windows = _grouped(_windows(_pad(x, padding), kernel, strides, dilations), groups)
    out = np.einsum("ngohw,ngchwij->gocij", _grouped(np.asarray(dout), groups), windows, optimize=True)
    return np.ascontiguousarray(out.reshape(-1, *out.shape[2:]))


@conv2d_grad_weight.infer
def _(x, dout, *, kernel, strides=(1, 1), padding=((0, 0), (0, 0)), groups=1, dilations=(1, 1)):
    require_array("conv2d_grad_weight", x, 4, FLOATS)
    require_array("conv2d_grad_weight", dout, 4, FLOATS)
    same_dtype("conv2d_grad_weight", x, dout)
    return Array(x.dtype, (dout.shape[1], x.shape[1] // groups, *kernel))


@conv2d_grad_weight.vjp
def _(x, dout, out, g, *, kernel, **attrs):
    # <g, grad_weight(x, dout)> = <conv2d(x, g), dout>
    return conv2d_grad_input(dout, g, in_shape=shape_of(x)[2:], **attrs), conv2d(x, g, **attrs)


conv2d_grad_weight.jvp(bilinear(conv2d_grad_weight))


@conv2d_grad_weight.batch
def _(size, batched, x, dout, *, groups=1, **attrs):
    if not all(batched) and groups == 1:
        return None
    x, dout = materialise_all(size, batched, (x, dout))
    o = shape_of(dout)[2]
    out = conv2d_grad_weight(_channels_inner(x, groups), _channels_inner(dout, groups), groups=size * groups, **attrs)
    return unmerge(out, size, o)


# Pooling.


def _infer_pool(name):
    def infer(x, *, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1), **_):
        require_array(name, x, 4, FLOATS)
        n, c, h, w = x.shape
        if min(*ksize, *strides, *dilations) < 1:
            raise ShapeError(
                f"{name}: a window of {ksize} with strides of {strides} and dilations of {dilations} cannot be"
            )
        window = extents(ksize, dilations)
        _check_window(name, (h, w), window, padding)
        out = (window_count(h, window[0], strides[0], padding[0]), window_count(w, window[1], strides[1], padding[1]))
        return Array(x.dtype, (n, c, *out))

    return infer


def _maxima(x, ksize, strides, padding, dilations):
    """The windows flattened, (N, C, H', W', kh * kw), and the position of the first maximum of each."""
    windows = _windows(_pad(x, padding, -np.inf), ksize, strides, dilations)
    flat = windows.reshape(*windows.shape[:4], ksize[0] * ksize[1])
    return flat, np.argmax(flat, axis=-1)[..., None]


@primitive("opaque", axes="nc..->nc..")
def max_pool(x, *, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1)):
    """The maximum of each window; NaN if there is one.

    Args:
        x: images (N, C, H, W), float.
        ksize: (kh, kw).
        strides: (vertical, horizontal).
        padding: ((top, bottom), (left, right)), of minus infinities.
        dilations: the distances of the elements of a window.

    Returns:
        (N, C, H', W').
    """
    flat, first = _maxima(x, ksize, strides, padding, dilations)
    return np.take_along_axis(flat, first, -1)[..., 0]


max_pool.infer(_infer_pool("max_pool"))


@max_pool.vjp
def _(x, out, dout, **attrs):
    return (max_pool_grad(x, dout, **attrs),)


@max_pool.jvp
def _(x, out, tangents, **attrs):
    return max_pool_gather(x, tangents[0], **attrs)


@primitive("opaque", axes="nc..,nc..->nc..")
@sums_in_float32
def max_pool_grad(x, dout, *, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1)):
    """The cotangent of `max_pool`: that of a window goes to its FIRST maximum in row-major order, as in PyTorch.

    Args:
        x: the images (N, C, H, W) that were pooled.
        dout: (N, C, H', W').

    Returns:
        (N, C, H, W).
    """
    x, dout = np.asarray(x), np.asarray(dout)
    flat, first = _maxima(x, ksize, strides, padding, dilations)
    values = np.zeros(flat.shape, dtype=dout.dtype)
    np.put_along_axis(values, first, dout[..., None], -1)
    out = np.zeros((*x.shape[:2], *_padded(x.shape[2:], padding)), dtype=dout.dtype)
    _add_windows(out, values.reshape(*flat.shape[:4], *ksize), strides, dilations)
    return np.ascontiguousarray(_crop(out, padding, x.shape[2:]))


@max_pool_grad.infer
def _(x, dout, *, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1)):
    require_array("max_pool_grad", x, 4, FLOATS)
    require_array("max_pool_grad", dout, 4, FLOATS)
    return Array(same_dtype("max_pool_grad", x, dout), x.shape)


@max_pool_grad.jvp
def _(x, dout, out, tangents, **attrs):
    # The positions of the maxima do not depend on small changes of x.
    return None if tangents[1] is None else max_pool_grad(x, tangents[1], **attrs)


@max_pool_grad.vjp
def _(x, dout, out, g, **attrs):
    return None, max_pool_gather(x, g, **attrs)


@primitive("opaque", axes="nc..,nc..->nc..")
def max_pool_gather(x, g, *, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1)):
    """The elements of `g` at the positions of the first maxima of the windows of `x`: the transpose of
    `max_pool_grad`.

    Args:
        x: the images (N, C, H, W) that were pooled.
        g: (N, C, H, W).

    Returns:
        (N, C, H', W').
    """
    flat, first = _maxima(x, ksize, strides, padding, dilations)
    windows = _windows(_pad(g, padding), ksize, strides, dilations).reshape(flat.shape)
    return np.take_along_axis(windows, first, -1)[..., 0]


@max_pool_gather.infer
def _(x, g, **attrs):
    require_array("max_pool_gather", g, 4, FLOATS)
    same_dtype("max_pool_gather", x, g)
    return _infer_pool("max_pool_gather")(x, **attrs)


@max_pool_gather.jvp
def _(x, g, out, tangents, **attrs):
    return None if tangents[1] is None else max_pool_gather(x, tangents[1], **attrs)


@max_pool_gather.vjp
def _(x, g, out, dout, **attrs):
    return None, max_pool_grad(x, dout, **attrs)


@primitive("opaque", axes="nc..->nc..")
@sums_in_float32
def avg_pool(x, *, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1)):
    """The mean of each window; padding counts as zeros. Arguments as for `max_pool`."""
    x = np.asarray(x)
    return np.mean(_windows(_pad(x, padding), ksize, strides, dilations), axis=(-2, -1), dtype=x.dtype)


avg_pool.infer(_infer_pool("avg_pool"))
avg_pool.jvp(linear(avg_pool))


@avg_pool.vjp
def _(x, out, dout, **attrs):
    return (avg_pool_grad(dout, in_shape=shape_of(x)[2:], **attrs),)


@primitive("opaque", axes="nc..->nc..")
@sums_in_float32
def avg_pool_grad(dout, *, in_shape, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1)):
    """The cotangent of `avg_pool`: that of a window in equal shares.

    Args:
        dout: (N, C, H', W').
        in_shape: (H, W) of the images.

    Returns:
        (N, C, H, W).
    """
    dout = np.asarray(dout)
    share = dout / np.asarray(ksize[0] * ksize[1], dtype=dout.dtype)
    out = np.zeros((*dout.shape[:2], *_padded(in_shape, padding)), dtype=dout.dtype)
    _add_windows(out, np.broadcast_to(share[..., None, None], (*dout.shape, *ksize)), strides, dilations)
    return np.ascontiguousarray(_crop(out, padding, in_shape))


@avg_pool_grad.infer
def _(dout, *, in_shape, ksize, strides, padding=((0, 0), (0, 0)), dilations=(1, 1)):
    require_array("avg_pool_grad", dout, 4, FLOATS)
    return Array(dout.dtype, (*dout.shape[:2], *in_shape))


avg_pool_grad.jvp(linear(avg_pool_grad))


@avg_pool_grad.vjp
def _(dout, out, g, *, in_shape, **attrs):
    return (avg_pool(g, **attrs),)
