"""More functions of the `relay` namespace on staged values: activations, losses, similarities, images.

Formulas and defaults are PyTorch's.
"""

from __future__ import annotations

import math

import numpy as np

from ...abstract.types import FLOATS, INTS, numpy_dtype
from ...ir.build import Builder, Var
from ...ir.prim import REGISTRY
from ...utils.errors import ShapeError, TypeError_, ValueError_
from ..ops import elementwise as P
from ..ops import nn
from ..ops.linalg import dot
from ..ops.shape import pad as pad_prim
from ..ops.shape import slice_, transpose
from ..rules.broadcast import broadcast_to, reduce_sum, reshape
from ..rules.relations import normalise_axis, same_size, show_shape
from .nn_api import images, one_hot_labels, op, resolve_padding, softly, windows, without_batch
from .numpy_reductions import count, mean, reducible
from .promotion import astype, floating, floating_pair, operand, promote, strong, unwrap

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _float(b: Builder, x, name: str) -> Var:
    return floating(operand(b, x, f"relay.{name}"))


def _number(b: Builder, value, like: Var, name: str) -> Var:
    """A scalar option, a Python number or a staged one, in the dtype of the operand."""
    return astype(operand(b, value, f"relay.{name}"), like.dtype)


# Activations.


@op("leaky_relu")
def leaky_relu(b: Builder, x, negative_slope=0.01) -> Var:
    """x where x > 0, else negative_slope * x.

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.
        negative_slope: the slope where x is negative.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.leaky_relu(np.array([-2.0, 0.0, 3.0]), negative_slope=0.1)
        array([-0.2,  0. ,  3. ])
    """
    x = _float(b, x, "leaky_relu")
    return unwrap(P.where(P.gt(x, x.const(0)), x, x * _number(b, negative_slope, x, "leaky_relu: negative_slope")))


def _elu(x: Var, alpha: Var) -> Var:
    zero = x.const(0)
    above = P.gt(x, zero)
    return P.where(above, x, alpha * P.expm1(P.where(above, zero, x)))  # no overflow on the side that is not taken


@op("elu")
def elu(b: Builder, x, alpha=1.0) -> Var:
    """x where x > 0, else alpha * (exp(x) - 1).

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.
        alpha: the scale where x is negative.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.elu(np.array([-2.0, 0.0, 3.0]))
        array([-0.86466472,  0.        ,  3.        ])
    """
    x = _float(b, x, "elu")
    return unwrap(_elu(x, _number(b, alpha, x, "elu: alpha")))


@op("selu")
def selu(b: Builder, x) -> Var:
    """scale * elu(x, alpha) with the two constants that keep mean 0 and variance 1 (Klambauer et al. 2017).

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.selu(np.array([-2.0, 0.0, 3.0]))
        array([-1.52016647,  0.        ,  3.15210296])
    """
    x = _float(b, x, "selu")
    return unwrap(x.const(SELU_SCALE) * _elu(x, x.const(SELU_ALPHA)))


@op("silu")
def silu(b: Builder, x) -> Var:
    """x * sigmoid(x), also called swish.

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.silu(np.array([-2.0, 0.0, 3.0]))
        array([-0.23840584,  0.        ,  2.85772238])
    """
    x = _float(b, x, "silu")
    return unwrap(x * REGISTRY["sigmoid"](x))


def _clipped(x: Var, low: float, high: float) -> Var:
    return P.minimum(P.maximum(x, x.const(low)), x.const(high))


@op("hard_sigmoid")
def hard_sigmoid(b: Builder, x) -> Var:
    """x / 6 + 1 / 2, at least 0 and at most 1.

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.hard_sigmoid(np.array([-4.0, 0.0, 1.5]))
        array([0.  , 0.5 , 0.75])
    """
    x = _float(b, x, "hard_sigmoid")
    return unwrap(_clipped(x + x.const(3), 0, 6) / x.const(6))


@op("hard_swish")
def hard_swish(b: Builder, x) -> Var:
    """x * hard_sigmoid(x).

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.hard_swish(np.array([-4.0, 0.0, 1.5]))
        array([-0.   ,  0.   ,  1.125])
    """
    x = _float(b, x, "hard_swish")
    return unwrap(x * _clipped(x + x.const(3), 0, 6) / x.const(6))


@op("mish")
def mish(b: Builder, x) -> Var:
    """x * tanh(softplus(x)).

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.mish(np.array([-2.0, 0.0, 3.0]))
        array([-0.25250148,  0.        ,  2.986535  ])
    """
    x = _float(b, x, "mish")
    return unwrap(x * P.tanh(softly(x)))


@op("glu", static=("axis",))
def glu(b: Builder, x, axis=-1) -> Var:
    """The first half along an axis times the sigmoid of the second half.

    Args:
        b: the builder.
        x: an array of floats.
        axis: the axis that is halved; its size is even.

    Returns:
        An array with half the size along that axis.

    Raises:
        ShapeError: the axis cannot be halved.

    Example:
        >>> relay.glu(np.array([1.0, 2.0, 0.0, 0.0]))
        array([0.5, 1. ])
    """
    x = floating(reducible(b, x, "relay.glu"))
    at = normalise_axis("relay.glu", axis, x.shape)
    size = x.shape[at]
    if not isinstance(size, int) or size % 2:
        raise ShapeError(
            f"relay.glu halves an axis, and axis {axis} of shape {show_shape(x.shape)} has no even known size"
        )
    sizes = tuple(size // 2 if k == at else d for k, d in enumerate(x.shape))
    halves = [
        slice_(x, starts=tuple(start if k == at else 0 for k in range(x.ndim)), sizes=sizes, steps=(1,) * x.ndim)
        for start in (0, size // 2)
    ]
    return halves[0] * REGISTRY["sigmoid"](halves[1])


# Losses.


def _reduced(b: Builder, losses: Var, reduction, name: str) -> Var:
    """The losses of all elements as one, as `reduction` says.

    Raises:
        ValueError_: the reduction is none of these.
    """
    if reduction == "none":
        return unwrap(losses)
    if reduction not in ("mean", "sum"):
        raise ValueError_(f"relay.{name}: reduction={reduction!r}; it is 'mean', 'sum' or 'none'")
    axes = tuple(range(len(losses.shape)))
    if not axes:
        return unwrap(losses)
    return unwrap(reduce_sum(losses, axes=axes) if reduction == "sum" else mean(b, losses))


def _pair(b: Builder, x, y, name: str) -> tuple[Var, Var]:
    """Predictions and targets of one shape.

    Raises:
        ShapeError: they differ.
    """
    x, y = (operand(b, v, f"relay.{name}") for v in (x, y))
    if len(x.shape) != len(y.shape) or not all(map(same_size, x.shape, y.shape)):
        raise ShapeError(
            f"relay.{name}: the shapes {show_shape(x.shape)} and {show_shape(y.shape)} differ; they do not broadcast here"
        )
    x, y = floating_pair(b, x, y, f"relay.{name}")
    return strong(x), strong(y)


@op("mse_loss", static=("reduction",))
def mse_loss(b: Builder, x, target, reduction="mean") -> Var:
    """(x - target) ** 2, its mean over all elements.

    Args:
        b: the builder.
        x: predictions.
        target: of the same shape.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar; with "none" an array of the shape of x.

    Example:
        >>> relay.mse_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
        np.float64(2.0)
    """
    x, target = _pair(b, x, target, "mse_loss")
    away = x - target
    return _reduced(b, away * away, reduction, "mse_loss")


@op("l1_loss", static=("reduction",))
def l1_loss(b: Builder, x, target, reduction="mean") -> Var:
    """|x - target|, its mean over all elements; `reduction` as in `mse_loss`.

    Args:
        b: the builder.
        x: predictions.
        target: of the same shape.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar; with "none" an array of the shape of x.

    Example:
        >>> relay.l1_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]), reduction="sum")
        np.float64(2.0)
    """
    x, target = _pair(b, x, target, "l1_loss")
    return _reduced(b, P.abs_(x - target), reduction, "l1_loss")


@op("huber_loss", static=("reduction",))
def huber_loss(b: Builder, x, target, delta=1.0, reduction="mean") -> Var:
    """d ** 2 / 2 where |d| = |x - target| is below delta, else delta * (|d| - delta / 2); its mean over all elements.

    Args:
        b: the builder.
        x: predictions.
        target: of the same shape.
        delta: where the square ends.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar; with "none" an array of the shape of x.

    Example:
        >>> relay.huber_loss(np.array([1.0, 2.0]), np.array([1.5, 4.0]), reduction="none")
        array([0.125, 1.5  ])
    """
    x, target = _pair(b, x, target, "huber_loss")
    away = x - target
    size, half, bound = P.abs_(away), x.const(0.5), _number(b, delta, x, "huber_loss: delta")
    near, far = half * away * away, bound * (size - half * bound)
    return _reduced(b, P.where(P.le(size, bound), near, far), reduction, "huber_loss")


@op("sigmoid_cross_entropy", static=("reduction",))
def sigmoid_cross_entropy(b: Builder, logits, labels, reduction="mean") -> Var:
    """-(y log(sigmoid(z)) + (1 - y) log(1 - sigmoid(z))) without overflow, its mean over all elements.

    Args:
        b: the builder.
        logits: z.
        labels: y between 0 and 1, of the same shape; booleans and integers too.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar; with "none" an array of the shape of the logits.

    Example:
        >>> relay.sigmoid_cross_entropy(np.array([0.0, 0.0]), np.array([1.0, 0.0]))
        np.float64(0.6931471805599453)
    """
    labels = operand(b, labels, "relay.sigmoid_cross_entropy")
    if labels.dtype not in FLOATS:
        labels = astype(labels, floating(operand(b, logits, "relay.sigmoid_cross_entropy")).dtype)
    z, y = _pair(b, logits, labels, "sigmoid_cross_entropy")
    losses = softly(z) - z * y
    return _reduced(b, losses, reduction, "sigmoid_cross_entropy")


@op("nll_loss", static=("reduction",))
def nll_loss(b: Builder, log_probs, labels, reduction="mean") -> Var:
    """-log_probs[..., label], its mean over all examples.

    Args:
        b: the builder.
        log_probs: (..., classes), as `log_softmax` gives them.
        labels: integer class numbers of shape (...).
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar; with "none" one loss for each example.

    Raises:
        ShapeError: the labels do not fit.
        TypeError_: the labels are no integers.
        IndexError: at run time, where a label is no class.

    Example:
        >>> relay.nll_loss(np.log(np.array([[0.5, 0.5], [0.25, 0.75]])), np.array([0, 1]))
        np.float64(0.4904146265058631)
    """
    log_probs = floating(reducible(b, log_probs, "relay.nll_loss"))
    labels = operand(b, labels, "relay.nll_loss")
    if labels.dtype not in INTS:
        raise TypeError_(f"relay.nll_loss takes integer labels, and these are {labels.type}; convert with .astype(int)")
    if len(labels.shape) != log_probs.ndim - 1 or not all(map(same_size, labels.shape, log_probs.shape)):
        raise ShapeError(
            f"relay.nll_loss: log_probs of shape {show_shape(log_probs.shape)} need labels of shape "
            f"{show_shape(log_probs.shape[:-1])}, and these have {show_shape(labels.shape)}"
        )
    chosen = one_hot_labels(b, labels, log_probs, "relay.nll_loss")
    # The others may be -inf.
    picked = P.where(P.gt(chosen, chosen.const(0)), log_probs, log_probs.const(0))
    return _reduced(b, P.neg(reduce_sum(picked, axes=(log_probs.ndim - 1,))), reduction, "nll_loss")


@op("kl_divergence", static=("reduction",))
def kl_divergence(b: Builder, log_probs, target, reduction="mean") -> Var:
    """target * (log(target) - log_probs), its mean over all elements; 0 where the target is 0. PyTorch's `kl_div`.

    Args:
        b: the builder.
        log_probs: logarithms of the probabilities of the model.
        target: probabilities, of the same shape.
        reduction: "mean", "sum", "none", or "batchmean": the sum over the size of the first axis.

    Returns:
        A scalar; with "none" an array of the shape of the target.

    Raises:
        ShapeError: there is no axis of examples.

    Example:
        >>> relay.kl_divergence(np.log(np.array([0.5, 0.5])), np.array([1.0, 0.0]), reduction="sum")
        np.float64(0.6931471805599453)
    """
    log_probs, target = _pair(b, log_probs, target, "kl_divergence")
    there = P.gt(target, target.const(0))
    logs = P.log(P.where(there, target, target.const(1)))
    losses = P.where(there, target * (logs - log_probs), target.const(0))
    if reduction == "batchmean":
        if not losses.shape:
            raise ShapeError("relay.kl_divergence: reduction='batchmean' needs an axis of examples")
        return _reduced(b, losses, "sum", "kl_divergence") / count(b, losses, (0,), losses.dtype)
    return _reduced(b, losses, reduction, "kl_divergence")


@op("cosine_similarity", static=("axis", "eps"))
def cosine_similarity(b: Builder, x, y, axis=-1, eps=1e-8) -> Var:
    """sum(x * y) / (norm(x) * norm(y)) along an axis, with norms of at least eps.

    Args:
        b: the builder.
        x: an array of floats.
        y: of the same shape.
        axis: of the vectors.
        eps: the least norm.

    Returns:
        An array without that axis.

    Raises:
        ShapeError: the shapes differ.

    Example:
        >>> relay.cosine_similarity(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
        np.float64(0.7071067811865475)
    """
    x, y = (floating(reducible(b, v, "relay.cosine_similarity")) for v in (x, y))
    x, y = promote(b, x, y, what="relay.cosine_similarity")
    if x.ndim != y.ndim or not all(map(same_size, x.shape, y.shape)):
        raise ShapeError(f"relay.cosine_similarity: the shapes {show_shape(x.shape)} and {show_shape(y.shape)} differ")
    at = normalise_axis("relay.cosine_similarity", axis, x.shape)
    least = x.const(eps * eps)
    squares = [P.maximum(reduce_sum(v * v, axes=(at,)), least) for v in (x, y)]
    return unwrap(reduce_sum(x * y, axes=(at,)) / (P.sqrt(squares[0]) * P.sqrt(squares[1])))


# Images: pooling to a size, resizing, padding. (C, H, W) or (N, C, H, W).


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

    Returns:
        (C, H', W') or (N, C, H', W').

    Example:
        >>> relay.adaptive_avg_pool(np.arange(16.0).reshape(1, 4, 4), 2)
        array([[[ 2.5,  4.5],
                [10.5, 12.5]]])
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
    1).

    Args:
        b: the builder.
        x: (C, H, W) or (N, C, H, W), float.

    Example:
        >>> relay.global_avg_pool(np.arange(8.0).reshape(2, 2, 2))
        array([1.5, 5.5])
    """
    x, added = images(b, x, "relay.global_avg_pool")
    return without_batch(mean(b, x, (2, 3)), added)


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

    Returns:
        Images of the larger height and width.

    Raises:
        ValueError_: there is no such mode.

    Example:
        >>> relay.upsample(np.array([[[1.0, 2.0]]]), 2)
        array([[[1., 1., 2., 2.],
                [1., 1., 2., 2.]]])
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

    Returns:
        Images of the larger height and width.

    Raises:
        TypeError_: the padding is a word, or the value no number.

    Example:
        >>> relay.pad(np.ones((1, 1, 2)), 1)
        array([[[0., 0., 0., 0.],
                [0., 1., 1., 0.],
                [0., 0., 0., 0.]]])
    """
    if isinstance(padding, str):
        raise TypeError_(f"relay.pad: padding={padding!r}: it is an int, (vertical, horizontal) or ((t, b), (l, r))")
    x, added = images(b, x, "relay.pad")
    (top, bottom), (left, right) = resolve_padding(padding, x.shape[2:], (1, 1), (1, 1))
    value = astype(operand(b, value, "relay.pad: value"), x.dtype)
    if value.shape:
        raise TypeError_(f"relay.pad: value is one number, not an array of shape {show_shape(value.shape)}")
    out = pad_prim(x, value, low=(0, 0, top, left), high=(0, 0, bottom, right), interior=(0,) * 4)
    return without_batch(out, added)
