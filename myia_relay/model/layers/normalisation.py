"""Normalisation: `layer_norm`, `rms_norm`, `group_norm` within an example, `batch_norm` over a batch. Scales begin as ones,
shifts as zeros."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import product
from ...abstract.types import numpy_dtype
from ...ir.build import Builder, Var
from ...prims.api.numpy_reductions import count as elements
from ...prims.api.numpy_reductions import reducible
from ...prims.api.promotion import astype, floating, operand, unwrap
from ...prims.ops import elementwise as P
from ...prims.ops.control import stop_gradient
from ...prims.ops.examples import example_count, mean_over_examples
from ...prims.ops.shape import slice_
from ...prims.rules.broadcast import reduce_sum, reshape
from ...prims.rules.relations import normalise_axes, normalise_axis, show_shape
from ...utils.errors import ShapeError
from ..hidden import Weight
from ..init import ones, zeros
from .declaration import count, layer

STATE = ("running_mean", "running_var")


def wide(x: Var) -> Var:
    """What statistics are computed in: half precision in float32."""
    return astype(x, "float32") if x.dtype in ("float16", "bfloat16") else x


def scaled(b: Builder, x: Var, weight, bias, axes: tuple[int, ...], name: str) -> Var:
    """x * weight + bias, both of the sizes of some axes of x.

    Raises:
        ShapeError: they have other shapes.
    """
    sizes = tuple(x.shape[a] for a in axes)
    spread = tuple(d if k in axes else 1 for k, d in enumerate(x.shape))
    for value, combine, what in ((weight, P.mul, "weight"), (bias, P.add, "bias")):
        if value is None:
            continue
        value = astype(operand(b, value, f"{name}: {what}"), x.dtype)
        if value.shape != sizes:
            raise ShapeError(
                f"{name}: the {what} has shape {show_shape(value.shape)}, and {show_shape(sizes)} is needed"
            )
        x = combine(x, reshape(value, shape=spread))
    return x


def standardised(b: Builder, x: Var, axes: tuple[int, ...], eps: float) -> Var:
    """(x - mean) / sqrt(variance + eps) along axes."""
    total = elements(b, x, axes, x.dtype)
    away = x - reduce_sum(x, axes=axes, keepdims=True) / total
    variance = reduce_sum(away * away, axes=axes, keepdims=True) / total
    return away / P.sqrt(variance + x.const(eps))


def channel_axis(x, axis: int, name: str) -> int:
    """The axis of the channels.

    `axis=1`, the default, counts the batch axis: it is the second of a batch (N, C), (N, C, H, W) or (N, C, D, H, W), and the
    first of one example (C,) or (C, H, W). Any other axis is what it says.
    """
    return 0 if axis == 1 and len(x.shape) in (1, 3) else normalise_axis(name, axis, x.shape)


def _sizes(x, axes, name: str) -> tuple:
    return tuple(x.shape[a] for a in normalise_axes(f"relay.{name}", axes, x.shape))


def _layer_norm(x, axes=-1, eps=1e-5, no_bias=False):
    sizes = _sizes(x, axes, "layer_norm")
    return {"weight": Weight(sizes, ones)} | ({} if no_bias else {"bias": Weight(sizes, zeros)})


@layer(_layer_norm, weights=("weight", "bias"), static=("axes", "eps"), example="relay.layer_norm(x, axes=-1)")
def layer_norm(b: Builder, x, weight, bias=None, axes=-1, eps=1e-5) -> Var:
    """(x - mean) / sqrt(variance + eps) * weight + bias along axes (J. Ba et al. 2016).

    In a model: `layer_norm(x, axes=-1, eps=1e-5, no_bias=False)` with the parameters weight (ones) and bias (zeros), of the
    sizes of these axes. Elsewhere `layer_norm(x, weight, bias=None, axes=-1, eps=1e-5)`.

    Args:
        b: the builder.
        x: float array.
        weight: the scale; None for none.
        bias: the shift, or None.
        axes: one axis or several.
        eps: added to the variance.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (2, 4)]):
        ...     return relay.layer_norm(x)
        >>> model = relay.create_model(f)
        >>> model(np.array([[1, 2, 3, 4], [5, 5, 5, 5]], np.float32)).round(2)
        array([[-1.34, -0.45,  0.45,  1.34],
               [ 0.  ,  0.  ,  0.  ,  0.  ]], dtype=float32)
    """
    x = floating(reducible(b, x, "relay.layer_norm"))
    chosen = normalise_axes("relay.layer_norm", axes, x.shape)
    out = astype(standardised(b, wide(x), chosen, eps), x.dtype)
    return scaled(b, out, weight, bias, tuple(sorted(chosen)), "relay.layer_norm")


def _rms_norm(x, axes=-1, eps=None):
    return {"weight": Weight(_sizes(x, axes, "rms_norm"), ones)}


@layer(_rms_norm, weights=("weight",), static=("axes", "eps"), example="relay.rms_norm(x, axes=-1)")
def rms_norm(b: Builder, x, weight, axes=-1, eps=None) -> Var:
    """x / sqrt(mean(x ** 2) + eps) * weight along axes (B. Zhang and R. Sennrich 2019).

    In a model: `rms_norm(x, axes=-1, eps=None)` with the parameter weight (ones). Elsewhere `rms_norm(x, weight, axes=-1,
    eps=None)`.

    Args:
        b: the builder.
        x: float array.
        weight: the scale; None for none.
        axes: one axis or several.
        eps: added to the mean; by default the distance from 1 to the next number of the dtype, as in PyTorch.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (4,)]):
        ...     return relay.rms_norm(x)
        >>> model = relay.create_model(f)
        >>> model(np.array([3, 4, 0, 0], np.float32)).round(2)
        array([1.2, 1.6, 0. , 0. ], dtype=float32)
    """
    x = floating(reducible(b, x, "relay.rms_norm"))
    chosen = normalise_axes("relay.rms_norm", axes, x.shape)
    y = wide(x)
    if eps is None:
        eps = float(np.finfo(numpy_dtype(y.dtype)).eps)
    mean = reduce_sum(y * y, axes=chosen, keepdims=True) / elements(b, y, chosen, y.dtype)
    out = astype(y / P.sqrt(mean + y.const(eps)), x.dtype)
    return scaled(b, out, weight, None, tuple(sorted(chosen)), "relay.rms_norm")


def _group_norm(x, num_groups, eps=1e-5, axis=1):
    size = x.shape[channel_axis(x, axis, "relay.group_norm")]
    count(num_groups, "num_groups", "group_norm")
    return {"weight": Weight((size,), ones), "bias": Weight((size,), zeros)}


@layer(
    _group_norm,
    weights=("weight", "bias"),
    static=("num_groups", "eps", "axis"),
    example="relay.group_norm(x, num_groups=4)",
)
def group_norm(b: Builder, x, weight, bias=None, num_groups=1, eps=1e-5, axis=1) -> Var:
    """(x - mean) / sqrt(variance + eps) of groups of channels of one example, times weight plus bias by channel (Y. Wu and K. He
    2018).

    In a model: `group_norm(x, num_groups, eps=1e-5, axis=1)` with the parameters weight (C,), ones, and bias (C,), zeros. Elsewhere
    `group_norm(x, weight, bias=None, num_groups=1, ...)`.

    Args:
        b: the builder.
        x: (N, C, ...), or one example (C,) or (C, H, W), float.
        weight: (C,); None for none.
        bias: (C,), or None.
        num_groups: how many groups the channels fall into.
        eps: added to the variance.
        axis: of the channels, see `channel_axis`; the axes before it are examples.

    Raises:
        ShapeError: the groups do not divide the channels.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (4, 2, 2)]):
        ...     return relay.group_norm(x, num_groups=2)
        >>> model = relay.create_model(f)
        >>> {k: v.shape for k, v in model.params.items()}
        {'group_norm_0.weight': (4,), 'group_norm_0.bias': (4,)}
        >>> model(np.ones((4, 2, 2), np.float32)).shape
        (4, 2, 2)
    """
    x = floating(reducible(b, x, "relay.group_norm"))
    at = channel_axis(x, axis, "relay.group_norm")
    channels = x.shape[at]
    if not isinstance(channels, int) or channels % count(num_groups, "num_groups", "group_norm"):
        raise ShapeError(f"relay.group_norm: {channels} channels do not fall into num_groups={num_groups} equal groups")
    apart = (*x.shape[:at], num_groups, channels // num_groups * product(x.shape[at + 1 :]))
    grouped = standardised(b, wide(reshape(x, shape=apart)), (at + 1,), eps)
    out = astype(reshape(grouped, shape=x.shape), x.dtype)
    return scaled(b, out, weight, bias, (at,), "relay.group_norm")


def _batch_norm(x, axis=1, momentum=0.1, eps=1e-5):
    size = (x.shape[channel_axis(x, axis, "relay.batch_norm")],)
    return {
        "weight": Weight(size, ones),
        "bias": Weight(size, zeros),
        "running_mean": Weight(size, zeros, state=True),
        "running_var": Weight(size, ones, state=True),
    }


@layer(
    _batch_norm,
    weights=("weight", "bias", "running_mean", "running_var"),
    static=("axis", "momentum", "eps", "training"),
    example="relay.batch_norm(x, axis=1)",
)
def batch_norm(
    b: Builder, x, weight, bias, running_mean, running_var, axis=1, momentum=0.1, eps=1e-5, training=False
) -> Var | tuple[Var, ...]:
    """(x - mean) / sqrt(variance + eps) * weight + bias, by channel (S. Ioffe and C. Szegedy 2015).

    In a model: `batch_norm(x, axis=1, momentum=0.1, eps=1e-5)` with the parameters weight (ones) and bias (zeros), and the state
    running_mean (zeros) and running_var (ones). A layer that trains takes the mean and the variance of the batch, over all axes
    but that of the channels and over the examples of `vmap` and `batch_mean`, and moves the running ones: r becomes (1 -
    momentum) * r + momentum * s, where s of the variance is unbiased. Otherwise it takes the running ones. Elsewhere:
    `batch_norm(x, weight, bias, running_mean, running_var, ...)`.

    Args:
        b: the builder.
        x: (N, C, ...), or one example (C,) or (C, H, W), float.
        weight: (C,); None for none.
        bias: (C,), or None.
        running_mean: (C,).
        running_var: (C,).
        axis: of the channels, see `channel_axis`.
        momentum: how much of the new statistics the running ones take.
        eps: added to the variance.
        training: whether to take the statistics of the batch.

    Returns:
        Of the shape of x; with `training`, (that, the new running mean, the new running variance).

    Raises:
        ShapeError: the running statistics have another shape.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (3, 4, 4)]):
        ...     return relay.batch_norm(x)
        >>> model = relay.create_model(f)
        >>> list(model.params), list(model.state)
        (['batch_norm_0.weight', 'batch_norm_0.bias'], ['batch_norm_0.running_mean', 'batch_norm_0.running_var'])
        >>> model(np.ones((3, 4, 4), np.float32)).shape
        (3, 4, 4)
    """
    name = "relay.batch_norm"
    x = floating(reducible(b, x, name))
    at = channel_axis(x, axis, name)
    y, size = wide(x), (x.shape[at],)
    spread = tuple(d if k == at else 1 for k, d in enumerate(x.shape))
    running = [astype(operand(b, v, f"{name}: {what}"), y.dtype) for what, v in zip(STATE, (running_mean, running_var))]
    for what, value in zip(STATE, running):
        if value.shape != size:
            raise ShapeError(f"{name}: {what} has shape {show_shape(value.shape)}, and {show_shape(size)} is needed")
    if not training:
        mean, variance = running
        away = y - reshape(mean, shape=spread)
        out = away / P.sqrt(reshape(variance, shape=spread) + y.const(eps))
        return scaled(b, astype(out, x.dtype), weight, bias, (at,), name)
    others = tuple(k for k in range(x.ndim) if k != at)
    own = elements(b, y, others, y.dtype)

    def over_batch(v: Var) -> Var:
        """The mean by channel."""
        total = reduce_sum(v, axes=others) if others else v
        return mean_over_examples(total / own)

    mean = over_batch(y)
    away = y - reshape(mean, shape=spread)
    variance = over_batch(away * away)
    out = away / P.sqrt(reshape(variance, shape=spread) + y.const(eps))
    one = reshape(slice_(y, starts=(0,) * y.ndim, sizes=(1,) * y.ndim, steps=(1,) * y.ndim), shape=())
    count = own * astype(unwrap(example_count(one)), y.dtype)
    unbiased = variance * (count / P.maximum(count - count.const(1), count.const(1)))
    moved = [
        r * r.const(1 - momentum) + s * r.const(momentum)
        for r, s in zip(running, (stop_gradient(mean), stop_gradient(unbiased)))
    ]
    kept = [astype(m, operand(b, v).dtype) for m, v in zip(moved, (running_mean, running_var))]
    return scaled(b, astype(out, x.dtype), weight, bias, (at,), name), *kept
