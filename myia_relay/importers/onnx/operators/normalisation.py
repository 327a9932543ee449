"""Normalisation, dropout, losses."""

from __future__ import annotations

import functools

from ....ir.build import Var
from ....prims.api.numpy_reductions import count
from ....prims.ops import elementwise as P
from ....prims.rules.broadcast import as_array, broadcast_to, cast, reduce_sum, reshape
from ....prims.rules.relations import normalise_axis
from ....utils.errors import ValueError_
from ..table import Context, operator
from .reductions import log_softmax, mean, total


def wide(x: Var) -> Var:
    """Floats of 16 bits in float32."""
    return cast(x, dtype="float32") if x.dtype in ("float16", "bfloat16") else x


def by_channel(v: Var, rank: int) -> Var:
    """A vector along the second axis."""
    return reshape(v, shape=(*v.shape, *(1,) * (rank - 2)))


@operator("BatchNormalization", until=8)
def batch_normalization_6(
    c: Context, x, scale, bias, mean_, var, *, epsilon=1e-5, momentum=0.9, is_test=0, spatial=1, consumed_inputs=None
):
    """With the statistics that are given; `spatial` = 0: for each element of an example."""
    if not spatial:
        out = (x - mean_) / P.sqrt(var + var.const(epsilon)) * scale + bias
        return out
    return normalised(x, scale, bias, mean_, var, epsilon)


@operator("BatchNormalization", since=9)
def batch_normalization(
    c: Context, x, scale, bias, mean_, var, *, epsilon=1e-5, momentum=0.9, training_mode=0, spatial=1
):
    """With the statistics that are given, or, when it trains, with those of the batch; then the running ones follow."""
    if not training_mode and not (c.version < 14 and c.outputs > 1):
        return normalised(x, scale, bias, mean_, var, epsilon)
    axes = (0, *range(2, len(x.shape)))
    own = mean(c, x, axes, False)
    away = x - by_channel(own, len(x.shape))
    spread = mean(c, P.mul(away, away), axes, False)
    y = normalised(x, scale, bias, own, spread, epsilon)
    keep = own.const(momentum)
    rest = own.const(1 - momentum)
    return y, mean_ * keep + own * rest, var * keep + spread * rest


def normalised(x: Var, scale: Var, bias: Var, mean_: Var, var: Var, epsilon: float) -> Var:
    """(x - mean) / sqrt(var + epsilon) * scale + bias along the channels: a factor and a term for each channel."""
    rank = max(len(x.shape), 2)
    v, m = wide(var), wide(mean_)
    factor = wide(scale) / P.sqrt(v + v.const(epsilon))
    shift = wide(bias) - m * factor
    y = wide(x)
    return cast(y * by_channel(factor, rank) + by_channel(shift, rank), dtype=x.dtype)


def standardised(c: Context, x: Var, axes: tuple, epsilon: float) -> tuple[Var, Var, Var]:
    """x with mean 0 and variance 1 over axes; the mean, and 1 over the standard deviation."""
    middle = mean(c, x, axes, True)
    away = x - middle
    inverse = P.div(x.const(1), P.sqrt(mean(c, away * away, axes, True) + x.const(epsilon)))
    return away * inverse, middle, inverse


@operator("InstanceNormalization")
def instance_normalization(c: Context, x, scale, bias, *, epsilon=1e-5, consumed_inputs=None):
    """Each channel of each example by its own statistics."""
    out, _, _ = standardised(c, wide(x), tuple(range(2, len(x.shape))), epsilon)
    rank = len(x.shape)
    return cast(out * by_channel(wide(scale), rank) + by_channel(wide(bias), rank), dtype=x.dtype)


@operator("LayerNormalization")
def layer_normalization(c: Context, x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type="float32"):
    """Over an axis and those behind it."""
    at = normalise_axis("LayerNormalization", axis, x.shape)
    stash = stash_type or x.dtype
    own = cast(x, dtype=stash) if x.dtype != "float64" else x
    out, middle, inverse = standardised(c, own, tuple(range(at, len(x.shape))), epsilon)
    y = cast(out, dtype=x.dtype) * scale
    y = y if bias is None else y + bias
    return (y, middle, inverse) if c.outputs > 1 else y


@operator("RMSNormalization")
def rms_normalization(c: Context, x, scale, *, axis=-1, epsilon=1e-5, stash_type="float32"):
    """x over its root mean square, over an axis and those behind it."""
    at = normalise_axis("RMSNormalization", axis, x.shape)
    own = cast(x, dtype=stash_type or x.dtype) if x.dtype != "float64" else x
    square = mean(c, own * own, tuple(range(at, len(x.shape))), True)
    return cast(own / P.sqrt(square + square.const(epsilon)), dtype=x.dtype) * scale


@operator("GroupNormalization")
def group_normalization(c: Context, x, scale, bias, *, num_groups, epsilon=1e-5, stash_type="float32"):
    """Groups of channels of each example by their own statistics."""
    n, channels, *rest = x.shape
    own = cast(x, dtype=stash_type or x.dtype) if x.dtype != "float64" else x
    grouped = reshape(own, shape=(n, num_groups, channels // num_groups, *rest))
    out, _, _ = standardised(c, grouped, tuple(range(2, len(grouped.shape))), epsilon)
    if c.version < 21:
        by_group = (1, num_groups, *(1,) * (len(grouped.shape) - 2))
        out = out * cast(reshape(scale, shape=by_group), dtype=out.dtype) + cast(
            reshape(bias, shape=by_group), dtype=out.dtype
        )
        return cast(reshape(out, shape=x.shape), dtype=x.dtype)
    out = cast(reshape(out, shape=x.shape), dtype=x.dtype)
    return out * by_channel(scale, len(x.shape)) + by_channel(bias, len(x.shape))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(c: Context, x, *, axes=(0, 2, 3)):
    """(x - mean) / (standard deviation + 1e-9) over axes."""
    found = tuple(normalise_axis("MeanVarianceNormalization", a, x.shape) for a in axes)
    away = x - mean(c, x, found, True)
    spread = P.sqrt(mean(c, away * away, found, True))
    return away / (spread + spread.const(1e-9))


@operator("LRN")
def lrn(c: Context, x, *, size, alpha=1e-4, beta=0.75, bias=1.0):
    """x over a power of the sum of squares of nearby channels.

    Raises:
        ValueError_: there are no channels nearby.
    """
    from .convolution import padded

    if size < 1:
        raise ValueError_(f"its size is {size}, and must be positive")
    scale, channels = alpha / size, x.shape[1]
    if isinstance(channels, int):
        size = min(size, 2 * channels + (size + 1) % 2)  # beyond are zeros
    before = (size - 1) // 2
    squares = x * x
    rank = len(x.shape)
    wide_ = padded(squares, ((before, size - 1 - before), *((0, 0),) * (rank - 2)), 0)
    from ....prims.ops.shape import slice_

    parts = [slice_(wide_, starts=(0, k, *(0,) * (rank - 2)), sizes=x.shape, steps=(1,) * rank) for k in range(size)]
    base = x.const(bias) + x.const(scale) * functools.reduce(P.add, parts)
    return x / P.pow_(base, x.const(beta))


@operator("Dropout", since=12, raw=("ratio", "training_mode"))
def dropout(c: Context, x, ratio=None, training_mode=None, *, seed=0):
    """The identity; when it trains each element is dropped with a probability, and the others are scaled.

    Raises:
        TypeError_: only a run tells whether it trains.
    """
    trains = training_mode is not None and bool(training_mode.static("training_mode").reshape(()))
    p = 0.5 if ratio is None else float(ratio.static("ratio").reshape(()))
    if not trains or p == 0:
        return (x, broadcast_to(c.constant(True), shape=x.shape)) if c.outputs > 1 else x
    from .random import uniform

    kept = P.ge(uniform(c, x.shape, seed, "float32"), c.constant(p, "float32"))
    y = P.where(kept, x * x.const(1 / (1 - p)), x.const(0))
    return y, kept


# Losses.


def loss(c: Context, scores: Var, labels: Var, weights: Var | None, reduction: str, ignore_index: int | None) -> Var:
    """Minus the score of the label, weighted; reduced over all that is not ignored.

    Raises:
        ValueError_: the reduction is unknown.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError_(f"its reduction '{reduction}' is unknown")
    from .shapes import as_positions

    classes = scores.shape[1]
    index = cast(labels, dtype="int64")
    ignored = None if ignore_index is None else P.eq(index, index.const(ignore_index))
    wide_labels = reshape(index, shape=(index.shape[0], 1, *index.shape[1:]))
    numbers = reshape(as_positions(c, classes), shape=tuple(classes if k == 1 else 1 for k in range(len(scores.shape))))
    hit = P.eq(wide_labels, numbers)
    if ignored is not None:
        hit = P.logical_and(hit, P.logical_not(reshape(ignored, shape=wide_labels.shape)))
    zero = scores.const(0)
    factor = scores.const(1) if weights is None else by_channel(weights, len(scores.shape))
    ours = P.neg(as_array(reduce_sum(P.where(hit, scores * factor, zero), axes=(1,))))
    if reduction == "none":
        return ours
    axes = tuple(range(len(ours.shape)))
    whole = total(ours, axes, False) if axes else ours
    if reduction == "sum":
        return whole
    if weights is None and ignored is None:
        return P.div(whole, count(c.b, ours, axes, ours.dtype))
    each = P.where(hit, broadcast_to(as_array(factor) if not factor.shape else factor, shape=scores.shape), zero)
    return P.div(whole, total(each, tuple(range(len(scores.shape))), False))


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(c: Context, x, target, weight=None, *, ignore_index=None, reduction="mean"):
    """Minus the log-probability of the target."""
    return loss(c, x, target, weight, reduction, ignore_index)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(c: Context, scores, labels, weights=None, *, ignore_index=None, reduction="mean"):
    """Minus the logarithm of the softmax at the label."""
    logs = log_softmax(c, scores, axis=1)
    out = loss(c, logs, labels, weights, reduction, ignore_index)
    return (out, logs) if c.outputs > 1 else out
