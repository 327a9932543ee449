"""Convolutions of sequences, images and volumes, and the transpose of that of images. All are correlations: filters are not
flipped.

Those of sequences and volumes are that of images: a sequence is an image of height 1, and the windows of a volume along its depth
become channels. For dilated filters see `prims.api.images.dilated`.
"""

from __future__ import annotations

from ...abstract.dims import is_known, known_size
from ...ir.build import Builder, Var
from ...prims.api.images.dilated import dilated_conv2d
from ...prims.api.nn_api import images, resolve_padding, windows, without_batch
from ...prims.api.promotion import astype, operand, promote, strong
from ...prims.ops import elementwise as P
from ...prims.ops import nn
from ...prims.ops.shape import pad, slice_, stack, transpose
from ...prims.rules.broadcast import reshape
from ...prims.rules.relations import show_shape
from ...utils.errors import ShapeError, TypeError_
from ..hidden import Weight
from .declaration import bias, count, layer

OPTIONS = ("strides", "padding", "dilation", "groups")
SIZES = {1: "(out, in, k)", 2: "(out, in, kh, kw)", 3: "(out, in, kd, kh, kw)"}


def _parts(name: str, axes: int, x, num_filter, ksize, groups, no_bias, transposed=False) -> dict[str, Weight]:
    filters = count(num_filter, "num_filter", name)
    if len(x.shape) not in (axes + 1, axes + 2):
        kind, layout = {1: ("a sequence", "C, L)"), 2: ("an image", "C, H, W)"), 3: ("a volume", "C, D, H, W)")}[axes]
        raise ShapeError(
            f"relay.{name} takes {kind} ({layout} or a batch (N, {layout}, and this has shape {show_shape(x.shape)}"
        )
    channels, groups = x.shape[-axes - 1], count(groups, "groups", name)
    if (isinstance(channels, int) and channels % groups) or filters % groups:
        raise ShapeError(
            f"relay.{name}: groups={groups} does not divide both the {channels} channels and the {filters} filters"
        )
    kernel = windows(ksize, "ksize", axes)
    shape = (channels, filters // groups) if transposed else (filters, channels // groups)
    return {"weight": Weight((*shape, *kernel))} | bias(no_bias, filters)


def _filters(b: Builder, x: Var, weight, axes: int, name: str) -> tuple[Var, Var, tuple[int, ...]]:
    """Images and filters in one dtype, and the windows.

    Raises:
        ShapeError: the filters have another number of axes, or windows of unknown size.
    """
    x, weight = promote(b, x, strong(operand(b, weight, f"{name}: weight")), what=name)
    if len(weight.shape) != axes + 2:
        raise ShapeError(f"{name}: filters have shape {SIZES[axes]}, and these have {show_shape(weight.shape)}")
    if not is_known(weight.shape[2:]):
        what = "the height and width" if axes == 2 else "the windows"
        raise ShapeError(
            f"{name}: {what} of filters must be known when compiling, and these have shape "
            f"{show_shape(weight.shape)}; annotate them with numbers instead of names"
        )
    return x, weight, tuple(map(known_size, weight.shape[2:]))


def _with_bias(b: Builder, out: Var, bias, filters, name: str) -> Var:
    if bias is None:
        return out
    bias = astype(operand(b, bias, f"{name}: bias"), out.dtype)
    if bias.shape != (filters,):
        raise ShapeError(f"{name}: a bias for {filters} filters has shape {show_shape(bias.shape)}")
    return P.add(out, reshape(bias, shape=(1, filters, *(1,) * (out.ndim - 2))))


def _conv2d(x, num_filter, ksize=3, strides=1, padding="valid", dilation=1, groups=1, no_bias=False):
    return _parts("conv2d", 2, x, num_filter, ksize, groups, no_bias)


@layer(_conv2d, weights=("weight", "bias"), static=OPTIONS, example="relay.conv2d(x, num_filter=20, ksize=5)")
def conv2d(b: Builder, x, weight, bias=None, strides=1, padding="valid", groups=1, dilation=1) -> Var:
    """Two-dimensional convolution (a correlation: filters are not flipped).

    In a model: `conv2d(x, num_filter, ksize=3, strides=1, padding="valid", dilation=1, groups=1, no_bias=False)` with the
    parameters weight (num_filter, C / groups, kh, kw) and bias (num_filter,). Elsewhere `conv2d(x, weight, bias=None, ...)`.

    Args:
        b: the builder.
        x: (C, H, W) or (N, C, H, W), float.
        weight: (num_filter, C / groups, kh, kw).
        bias: (num_filter,), or None.
        strides: `[1, h, w, 1]`, `[h, w]` or one int; so are `ksize` and `dilation`.
        padding: "valid", "same" or ints; see `resolve_padding`.
        groups: channels and filters fall into that many groups that do not see each other; as many as channels is depthwise.
        dilation: the distance between neighbours of a window.

    Returns:
        (num_filter, H', W') or (N, num_filter, H', W').

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (1, 8, 8)]):
        ...     return relay.conv2d(x, num_filter=4, ksize=3, padding="same")
        >>> model = relay.create_model(f)
        >>> {k: v.shape for k, v in model.params.items()}
        {'conv2d_0.weight': (4, 1, 3, 3), 'conv2d_0.bias': (4,)}
        >>> model(np.ones((1, 8, 8), np.float32)).shape
        (4, 8, 8)
    """
    x, added = images(b, x, "relay.conv2d")
    spread = windows(dilation, "dilation", 2)
    x, weight, kernel = _filters(b, x, weight, 2, "relay.conv2d")
    steps = windows(strides, "strides", 2)
    spans = tuple((k - 1) * d + 1 for k, d in zip(kernel, spread, strict=True))
    sides = resolve_padding(padding, x.shape[2:], spans, steps)
    out = dilated_conv2d(x, weight, steps, sides, groups, spread)
    return without_batch(_with_bias(b, out, bias, weight.shape[0], "relay.conv2d"), added)


def _conv1d(x, num_filter, ksize=3, strides=1, padding="valid", dilation=1, groups=1, no_bias=False):
    return _parts("conv1d", 1, x, num_filter, ksize, groups, no_bias)


@layer(_conv1d, weights=("weight", "bias"), static=OPTIONS, example="relay.conv1d(x, num_filter=20, ksize=5)")
def conv1d(b: Builder, x, weight, bias=None, strides=1, padding="valid", groups=1, dilation=1) -> Var:
    """One-dimensional convolution of sequences (C, L) or (N, C, L); all else as in `conv2d`.

    In a model: `conv1d(x, num_filter, ksize=3, ...)` with the parameters weight (num_filter, C / groups, k) and bias (num_filter,).

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (2, 8)]):
        ...     return relay.conv1d(x, num_filter=4, ksize=3)
        >>> model = relay.create_model(f)
        >>> {k: v.shape for k, v in model.params.items()}
        {'conv1d_0.weight': (4, 2, 3), 'conv1d_0.bias': (4,)}
        >>> model(np.ones((2, 8), np.float32)).shape
        (4, 6)
    """
    x, added = images(b, x, "relay.conv1d", 1)
    (gap,) = windows(dilation, "dilation", 1)
    x, weight, (taps,) = _filters(b, x, weight, 1, "relay.conv1d")
    steps = windows(strides, "strides", 1)
    sides = resolve_padding(padding, x.shape[2:], ((taps - 1) * gap + 1,), steps)
    image, filters = (reshape(v, shape=(*v.shape[:2], 1, v.shape[2])) for v in (x, weight))
    out = dilated_conv2d(image, filters, (1, *steps), ((0, 0), *sides), groups, (1, gap))
    out = reshape(out, shape=(*out.shape[:2], out.shape[3]))
    return without_batch(_with_bias(b, out, bias, weight.shape[0], "relay.conv1d"), added)


def _conv3d(x, num_filter, ksize=3, strides=1, padding="valid", dilation=1, groups=1, no_bias=False):
    return _parts("conv3d", 3, x, num_filter, ksize, groups, no_bias)


@layer(_conv3d, weights=("weight", "bias"), static=OPTIONS, example="relay.conv3d(x, num_filter=20, ksize=3)")
def conv3d(b: Builder, x, weight, bias=None, strides=1, padding="valid", groups=1, dilation=1) -> Var:
    """Three-dimensional convolution of volumes (C, D, H, W) or (N, C, D, H, W); all else as in `conv2d`.

    In a model: `conv3d(x, num_filter, ksize=3, ...)` with the parameters weight (num_filter, C / groups, kd, kh, kw) and
    bias (num_filter,).

    Raises:
        ShapeError: a window does not fit.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (1, 4, 6, 6)]):
        ...     return relay.conv3d(x, num_filter=2, ksize=3)
        >>> model = relay.create_model(f)
        >>> {k: v.shape for k, v in model.params.items()}
        {'conv3d_0.weight': (2, 1, 3, 3, 3), 'conv3d_0.bias': (2,)}
        >>> model(np.ones((1, 4, 6, 6), np.float32)).shape
        (2, 2, 4, 4)
    """
    name = "relay.conv3d"
    x, added = images(b, x, name, 3)
    spread = windows(dilation, "dilation", 3)
    # Along the depth windows are taken one by one, so nothing need be dilated there.
    x, weight, kernel = _filters(b, x, weight, 3, name)
    taps = kernel[0]
    reach, *window = ((k - 1) * d + 1 for k, d in zip(kernel, spread, strict=True))
    steps = windows(strides, "strides", 3)
    (front, back), *sides = resolve_padding(padding, x.shape[2:], (reach, *window), steps)
    if front or back:
        low, high = (0, 0, front, 0, 0), (0, 0, back, 0, 0)
        x = pad(x, x.const(0), low=low, high=high, interior=(0,) * 5)
    n, c, deep, h, w = x.shape
    if isinstance(deep, int) and deep < reach:
        raise ShapeError(f"{name}: a window {reach} deep does not fit into a volume of depth {deep}; pad it")
    depth = (deep - reach) // steps[0] + 1
    sizes, stride = (n, c, depth, h, w), (1, 1, steps[0], 1, 1)
    layers = [slice_(x, starts=(0, 0, k * spread[0], 0, 0), sizes=sizes, steps=stride) for k in range(taps)]
    windowed = transpose(stack(*layers, axis=2), perm=(0, 3, 1, 2, 4, 5))  # (N, D', C, kd, H, W)
    image = reshape(windowed, shape=(n * depth, c * taps, h, w))
    filters = reshape(weight, shape=(weight.shape[0], weight.shape[1] * taps, *kernel[1:]))
    out = dilated_conv2d(image, filters, steps[1:], tuple(sides), groups, spread[1:])
    out = transpose(reshape(out, shape=(n, depth, *out.shape[1:])), perm=(0, 2, 1, 3, 4))
    return without_batch(_with_bias(b, out, bias, weight.shape[0], name), added)


def _conv_transpose2d(
    x, num_filter, ksize=3, strides=1, padding="valid", output_padding=0, dilation=1, groups=1, no_bias=False
):
    return _parts("conv_transpose2d", 2, x, num_filter, ksize, groups, no_bias, transposed=True)


@layer(
    _conv_transpose2d,
    weights=("weight", "bias"),
    static=(*OPTIONS, "output_padding"),
    example="relay.conv_transpose2d(x, num_filter=20, ksize=4, strides=2, padding=1)",
)
def conv_transpose2d(
    b: Builder, x, weight, bias=None, strides=1, padding="valid", output_padding=0, groups=1, dilation=1
) -> Var:
    """The transpose of `conv2d`: what its gradient does to images. With a stride it makes them larger.

    In a model: `conv_transpose2d(x, num_filter, ksize=3, strides=1, padding="valid", output_padding=0, dilation=1, groups=1,
    no_bias=False)` with the parameters weight (C, num_filter / groups, kh, kw), as PyTorch has it, and bias (num_filter,).

    Args:
        b: the builder.
        x: (C, H, W) or (N, C, H, W), float.
        weight: (C, num_filter / groups, kh, kw).
        bias: (num_filter,), or None.
        strides: how far apart the elements of x are in the result.
        padding: what is cut off the result: "valid" (nothing), ints as of `conv2d`, or "same": H' = H * stride.
        output_padding: added to the size of the result at its end, less than the stride.
        groups: number of groups of channels.
        dilation: the distance between neighbours of a window.

    Returns:
        (num_filter, H', W') or (N, num_filter, H', W') with H' = (H - 1) * stride - padding + dilation * (kh - 1) + 1 +
        output_padding.

    Raises:
        ShapeError: the filters take other channels, or the padding leaves nothing.
        TypeError_: output_padding is not below the strides.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (4, 3, 3)]):
        ...     return relay.conv_transpose2d(x, num_filter=2, ksize=2, strides=2)
        >>> model = relay.create_model(f)
        >>> {k: v.shape for k, v in model.params.items()}
        {'conv_transpose2d_0.weight': (4, 2, 2, 2), 'conv_transpose2d_0.bias': (2,)}
        >>> model(np.ones((4, 3, 3), np.float32)).shape
        (2, 6, 6)
    """
    name = "relay.conv_transpose2d"
    x, added = images(b, x, name)
    x, weight, kernel = _filters(b, x, weight, 2, name)
    spread = windows(dilation, "dilation", 2)
    window = nn.extents(kernel, spread)
    if weight.shape[0] != x.shape[1]:
        raise ShapeError(
            f"{name}: filters of shape {show_shape(weight.shape)} take {weight.shape[0]} channels, and the image of shape "
            f"{show_shape(x.shape)} has {x.shape[1]}"
        )
    count(groups, "groups", "conv_transpose2d")
    if isinstance(x.shape[1], int) and x.shape[1] % groups:
        raise ShapeError(f"{name}: groups={groups} does not divide the {x.shape[1]} channels")
    steps = windows(strides, "strides", 2)
    extra = (output_padding,) * 2 if isinstance(output_padding, int) else tuple(output_padding)
    if len(extra) != 2 or not all(isinstance(e, int) and 0 <= e < s for e, s in zip(extra, steps)):
        raise TypeError_(
            f"{name}: output_padding={output_padding!r} is an int, or two, at least 0 and below the strides"
        )
    if isinstance(padding, str) and padding.lower() == "same":
        over = [k - s for k, s in zip(window, steps)]
        sides = tuple((max(o, 0) // 2, max(o, 0) - max(o, 0) // 2) for o in over)
        extra = tuple(max(-o, 0) for o in over)
    else:
        sides = resolve_padding(padding, x.shape[2:], window, steps)
    size = tuple((n - 1) * s + k - sum(side) + e for n, s, k, side, e in zip(x.shape[2:], steps, window, sides, extra))
    if any(isinstance(n, int) and n < 1 for n in size):
        raise ShapeError(f"{name}: padding={padding!r} leaves nothing of an image of shape {show_shape(x.shape)}")
    attrs = {"strides": steps, "padding": sides, "groups": groups, **nn.gaps(spread)}
    out = nn.conv2d_grad_input(x, weight, in_shape=size, **attrs)
    return without_batch(_with_bias(b, out, bias, weight.shape[1] * groups, name), added)
