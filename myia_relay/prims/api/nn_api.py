"""The operators of the `relay` namespace, on staged values: activations, losses, convolution, pooling, dense layers.

Layers take a single example or a batch: (C, H, W) or (N, C, H, W), (features,) or (N, features). They are composed from
primitives, so derivatives, batching and all back ends follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...abstract.dims import Dim, DimLike, never_negative, product
from ...abstract.types import INTS, Array
from ...ir.build import Builder, Var
from ...ir.prim import REGISTRY, Primitive
from ...utils.errors import InternalError, ShapeError, TypeError_, ValueError_
from ...utils.names import OPERATORS
from ..ops import elementwise as P
from ..ops import nn
from ..ops.reduction import argmax as argmax_prim
from ..ops.reduction import reduce_max, reduce_min
from ..ops.shape import one_hot as one_hot_prim
from ..rules.broadcast import cast, reduce_sum, reshape
from ..rules.relations import normalise_axes, normalise_axis, same_size, show_shape
from .implementations import Implementation
from .numpy_elementwise import apart, dtype_name
from .numpy_reductions import reducible, refuse_empty
from .promotion import astype, floating, guard, operand, size_value, strong, unwrap

NN_OPS: dict[str, Implementation] = {}


def op(name: str, static=()):
    """Register a `relay.` operator under its public name, which `utils.names` lists.

    Raises:
        InternalError: the name is not listed.
    """
    if name not in OPERATORS:
        raise InternalError("nn_api", f"the operator {name} is not in utils.names.OPERATORS")

    def register(rule):
        NN_OPS[name] = Implementation(f"relay.{name}", rule, static)
        return rule

    return register


def _elementwise(prim: Primitive) -> Implementation:
    """The operator that is an elementwise primitive of floats."""

    def rule(b: Builder, x) -> Var:
        return unwrap(prim(floating(operand(b, x, f"relay.{prim.name}"))))

    rule.__doc__ = (
        f"{prim.__doc__}{_ELEMENTWISE.format(name=prim.name, value=round(float(prim.reference(np.float64(1.0))), 4))}"
    )
    return Implementation(f"relay.{prim.name}", rule)


_ELEMENTWISE = """

Args:
    x: a float, or an array of floats of any shape.

Returns:
    An array of the same shape.

Example:
    >>> round(float(relay.{name}(1.0)), 4)
    {value}
"""


NN_OPS.update({n: _elementwise(REGISTRY[n]) for n in OPERATORS if n in REGISTRY and REGISTRY[n].kind == "elementwise"})


# Activations and losses.


@op("relu")
def relu(b: Builder, x) -> Var:
    """x where x > 0, else 0. Its derivative at 0 is 0; NaN stays NaN.

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.relu(np.array([-2.0, 0.0, 3.0]))
        array([0., 0., 3.])
    """
    x = strong(operand(b, x, "relay.relu"))
    zero = x.const(0)
    return unwrap(P.where(P.le(x, zero), zero, x))


@op("gelu", static=("approximate",))
def gelu(b: Builder, x, approximate=False) -> Var:
    """x times the normal distribution function of x; `approximate` computes that with tanh, as GPT-2 does.

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.
        approximate: whether to compute it with tanh.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.gelu(np.array([-1.0, 0.0, 1.0]))
        array([-0.15865525,  0.        ,  0.84134475])
    """
    x = floating(operand(b, x, "relay.gelu"))
    if approximate:
        inner = x.const((2 / math.pi) ** 0.5) * (x + x.const(0.044715) * x * x * x)
        return unwrap(x.const(0.5) * x * (x.const(1) + P.tanh(inner)))
    half, scale = x.const(0.5), x.const(0.5**0.5)
    return unwrap(x * half * (x.const(1) + P.erf(x * scale)))


@op("softplus")
def softplus(b: Builder, x) -> Var:
    """log(1 + exp(x)) without overflow.

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.softplus(np.array([-1000.0, 0.0, 1000.0]))
        array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    return unwrap(softly(floating(operand(b, x, "relay.softplus"))))


def softly(x: Var) -> Var:
    """log(1 + exp(x)) of floats, with all its derivatives at 0."""
    greater, below = apart(x, x.const(0))
    return greater + P.log1p(P.exp(below))


def _stop(x: Var) -> Var:
    from ..ops.control import stop_gradient

    return stop_gradient(x)


def _shifted(x: Var, axes: tuple[int, ...]) -> tuple[Var, Var]:
    """x minus its maximum, so that exponentials do not overflow; and that maximum (0 where it is infinite)."""
    top = _stop(reduce_max(x, axes=axes, keepdims=True))
    top = P.where(P.isfinite(top), top, x.const(0))
    return P.sub(x, top), top


@op("logsumexp", static=("axis", "keepdims"))
def logsumexp(b: Builder, x, axis=None, keepdims=False) -> Var:
    """log(sum(exp(x))) without overflow.

    Args:
        b: the builder.
        x: numbers, a scalar or an array of any shape.
        axis: one axis or several; None for all.
        keepdims: whether the axes stay, with size 1.

    Returns:
        An array without these axes.

    Example:
        >>> relay.logsumexp(np.array([[1000.0, 1000.0], [0.0, 1.0]]), axis=1)
        array([1000.69314718,    1.31326169])
    """
    x = floating(reducible(b, x, "relay.logsumexp"))
    axes = normalise_axes("relay.logsumexp", axis, x.shape)
    away, top = _shifted(x, axes)
    out = P.log(reduce_sum(P.exp(away), axes=axes, keepdims=True)) + top
    if keepdims:
        return out
    return unwrap(reshape(out, shape=tuple(d for k, d in enumerate(out.shape) if k not in axes)))


@op("softmax", static=("axis",))
def softmax(b: Builder, x, axis=-1) -> Var:
    """exp(x) / sum(exp(x)) along an axis.

    Args:
        b: the builder.
        x: logits, an array of floats.
        axis: along which the result sums to 1.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.softmax(np.array([1.0, 2.0, 1000.0]))
        array([0., 0., 1.])
    """
    x = floating(reducible(b, x, "relay.softmax"))
    axes = normalise_axes("relay.softmax", axis, x.shape)
    weights = P.exp(_shifted(x, axes)[0])
    return P.div(weights, reduce_sum(weights, axes=axes, keepdims=True))


@op("log_softmax", static=("axis",))
def log_softmax(b: Builder, x, axis=-1) -> Var:
    """log(softmax(x)), computed without its cancellations.

    Args:
        b: the builder.
        x: logits, an array of floats.
        axis: of the classes.

    Returns:
        An array of the same shape.

    Example:
        >>> relay.log_softmax(np.array([1.0, 2.0, 3.0]))
        array([-2.40760596, -1.40760596, -0.40760596])
    """
    x = floating(reducible(b, x, "relay.log_softmax"))
    axes = normalise_axes("relay.log_softmax", axis, x.shape)
    away, _ = _shifted(x, axes)
    return P.sub(away, P.log(reduce_sum(P.exp(away), axes=axes, keepdims=True)))


@op("softmax_cross_entropy", static=("axis",))
def softmax_cross_entropy(b: Builder, logits, labels, axis=-1) -> Var:
    """-sum(labels * log_softmax(logits)) along the last axis: one loss for a vector, a vector of losses for a matrix.

    Args:
        b: the builder.
        logits: (..., classes), float.
        labels: one-hot (or any) weights of the same shape, or integer class numbers of shape (...).
        axis: of the classes.

    Returns:
        The losses: the shape of the logits without the axis of the classes.

    Raises:
        TypeError_: labels are class numbers, and the classes are not in the last axis.
        ShapeError: the shapes of logits and labels differ.
        IndexError: at run time, where a class number is none.

    Example:
        >>> relay.softmax_cross_entropy(np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([1, 0]))
        array([0.69314718, 0.12692801])
    """
    logits = floating(reducible(b, logits, "relay.softmax_cross_entropy"))
    axis = normalise_axis("relay.softmax_cross_entropy", axis, logits.shape)
    labels = strong(operand(b, labels, "relay.softmax_cross_entropy"))
    if labels.dtype in INTS and len(labels.shape) == logits.ndim - 1:
        if axis != logits.ndim - 1:
            raise TypeError_("softmax_cross_entropy of class numbers needs the classes in the last axis of the logits")
        labels = one_hot_labels(b, labels, logits, "relay.softmax_cross_entropy")
    if labels.dtype not in INTS and len(labels.shape) == logits.ndim - 1:
        raise TypeError_(
            f"softmax_cross_entropy: labels of shape {show_shape(labels.shape)} beside logits of shape {show_shape(logits.shape)} "
            f"are class numbers, which are integers, and these are {labels.dtype}; convert them with .astype(int)"
        )
    labels = astype(labels, logits.dtype)
    if len(labels.shape) != logits.ndim or not all(map(same_size, labels.shape, logits.shape)):
        raise ShapeError(
            f"softmax_cross_entropy: logits of shape {show_shape(logits.shape)} and labels of shape "
            f"{show_shape(labels.shape)} do not fit; give a class number for each row of logits (integers of shape "
            f"{show_shape(logits.shape[:-1])}), or a probability for each logit (relay.one_hot(labels, classes))"
        )
    return P.neg(reduce_sum(P.mul(labels, log_softmax(b, logits, axis)), axes=(axis,)))


def one_hot_labels(b: Builder, labels: Var, scores: Var, name: str) -> Var:
    """Class numbers as vectors, of which a run checks that there are such classes; none is counted from the end.

    Args:
        b: the builder.
        labels: ints of shape (...).
        scores: (..., classes); the vectors have its dtype.
        name: for messages.
    """
    n = scores.shape[-1]
    axes = tuple(range(len(labels.shape)))
    if not axes or product(labels.shape) != 0:
        size = strong(size_value(b, n))
        low, high = (reduce(labels, axes=axes) if axes else labels for reduce in (reduce_min, reduce_max))
        low, high = cast(low, dtype="int64"), cast(high, dtype="int64")
        ok = P.logical_and(P.ge(low, low.const(0)), P.lt(high, size))
        text = f"{name}: ", 0, " is no class; they are 0 to ", 1
        last = P.sub(size, size.const(1))
        guard(b, ok, IndexError, *text, operands=(P.where(P.lt(low, low.const(0)), low, high), last))
    return one_hot_prim(labels, n=n, dtype=scores.dtype)


# Layers.


LARGEST = (1 << 31) - 1  # of windows, strides, dilations and paddings


def windows(value, name: str, axes: int) -> tuple[int, ...]:
    """A window, stride or dilation along the last axes: one int for all, one for each, or `[1, h, w, 1]`.

    Raises:
        ShapeError: it is of another form, or not positive.
    """
    values = tuple(value) if isinstance(value, tuple | list) else (value,) * axes
    if axes == 2 and len(values) == 4:
        if values[0] != 1 or values[3] != 1:
            raise ShapeError(f"{name}={list(values)}: the first and the last of four must be 1 (examples and channels)")
        values = values[1:3]
    if len(values) != axes or not all(isinstance(v, int) and v > 0 for v in values):
        each = {1: "", 2: "[1, h, w, 1], [h, w] or ", 3: "[d, h, w] or "}[axes]
        raise ShapeError(f"{name}={value!r} must be {each}one positive int")
    if max(values) > LARGEST:
        raise ShapeError(f"{name}={value!r} is too large")
    return values


def resolve_padding(padding, size, kernel, strides, name: str = "padding") -> tuple[tuple[int, int], ...]:
    """Padding as (before, after) for each of the axes: ((top, bottom), (left, right)) of an image.

    Args:
        padding: "valid" (none), "same" (as many windows as size / stride, rounded up; the odd one goes to the end, as in
            TensorFlow), an int for all sides, one for each axis, or (before, after) for each axis.
        size: (H, W) of the images.
        kernel: (kh, kw).
        strides: (vertical, horizontal).
        name: for messages.

    Raises:
        TypeError_: it is an unknown word, or "same" with strides for images of unknown size.
        ShapeError: it is of another form, or negative.
    """
    axes = len(kernel)
    if isinstance(padding, str):
        if padding.lower() == "valid":
            return ((0, 0),) * axes
        if padding.lower() != "same":
            raise TypeError_(f"{name}={padding!r}; it is 'valid', 'same' or ints")
        out = []
        for n, k, s in zip(size, kernel, strides, strict=True):
            if s == 1:
                total = k - 1
            elif isinstance(n, int):
                total = max((-(-n // s) - 1) * s + k - n, 0)
            else:
                raise TypeError_(f"{name}='same' with strides needs images of known size, and this one is {n}")
            out.append((total // 2, total - total // 2))
        return tuple(out)
    if isinstance(padding, int) and padding >= 0:
        padding = (padding,) * axes
    sides = () if isinstance(padding, int) else tuple((v, v) if isinstance(v, int) else tuple(v) for v in padding)
    if axes == 2 and len(sides) == 4:
        sides = sides[1:3]
    if len(sides) != axes or not all(len(v) == 2 and all(isinstance(n, int) and n >= 0 for n in v) for v in sides):
        each = {1: "((before, after),)", 2: "(vertical, horizontal) or ((t, b), (l, r))"}.get(
            axes, "one int for each axis"
        )
        raise ShapeError(f"{name}={padding!r} must be 'valid', 'same', an int, {each}")
    if max((n for v in sides for n in v), default=0) > LARGEST:
        raise ShapeError(f"{name}={padding!r} is too large")
    return tuple((before, after) for before, after in sides)


def windows_fit(x: Var, window: Sequence[int], padding: Sequence[tuple[DimLike, DimLike]], name: str) -> None:
    """Have a run check that windows fit into images whose sizes are not known, with padding; the primitives check known ones."""
    for n, k, sides in zip(x.shape[2:], window, padding, strict=True):
        spare = n + sides[0] + sides[1] - k
        if isinstance(spare, Dim) and not never_negative(spare):
            have = size_value(x.builder, n)
            text = f"{name}: a window of {k} does not fit into an image of ", 0, f" with padding {tuple(sides)}"
            guard(x.builder, P.ge(size_value(x.builder, spare), 0), ShapeError, *text, operands=(have,))


LAYOUTS = {1: "(C, L)", 2: "(C, H, W)", 3: "(C, D, H, W)"}
KINDS = {1: "a sequence", 2: "an image", 3: "a volume"}


def images(b: Builder, x, name: str, axes: int = 2) -> tuple[Var, bool]:
    """Images (or sequences, or volumes) with a batch axis, and whether it was added.

    Raises:
        ShapeError: the number of axes is another one.
    """
    x = operand(b, x, name)
    x = floating(strong(x))
    rank = len(x.shape)
    if rank not in (axes + 1, axes + 2):
        one = LAYOUTS[axes]
        raise ShapeError(
            f"{name} takes {KINDS[axes]} {one} or a batch (N, {one[1:]}, and this has shape {show_shape(x.shape)}"
        )
    return (x, False) if rank == axes + 2 else (reshape(x, shape=(1, *x.shape)), True)


def without_batch(x: Var, added: bool) -> Var:
    """The result for a single example."""
    return reshape(x, shape=x.shape[1:]) if added else x


def _pool(name: str, prim):
    def rule(b: Builder, x, ksize=2, strides=None, padding="valid") -> Var:
        x, added = images(b, x, f"relay.{name}")
        kernel = windows(ksize, "ksize", 2)
        steps = kernel if strides is None else windows(strides, "strides", 2)
        sides = resolve_padding(padding, x.shape[2:], kernel, steps)
        windows_fit(x, kernel, sides, f"relay.{name}")
        return without_batch(prim(x, ksize=kernel, strides=steps, padding=sides), added)

    maximum = prim is nn.max_pool
    rule.__doc__ = f"""Each window's {"maximum" if maximum else "mean"}.

    Args:
        x: images (C, H, W) or (N, C, H, W), float.
        ksize: the window: `[1, h, w, 1]`, `[h, w]` or one int.
        strides: from window to window, likewise; by default the window's size.
        padding: "valid", "same" or ints, as of `relay.conv2d`.

    Returns:
        (C, H', W') or (N, C, H', W').

    Example:
        >>> relay.{name}(np.arange(16.0).reshape(1, 4, 4), ksize=2)
        array([[[{" 5.,  7." if maximum else " 2.5,  4.5"}],
                [{"13., 15." if maximum else "10.5, 12.5"}]]])
    """
    return op(name, static=("ksize", "strides", "padding"))(rule)


max_pool_op = _pool("max_pool", nn.max_pool)
avg_pool_op = _pool("avg_pool", nn.avg_pool)


@op("flatten_layer")
def flatten_layer(b: Builder, x) -> Var:
    """One axis of features: (C, H, W) -> (C * H * W,), and with four axes or two (N, ...) -> (N, features).

    Args:
        b: the builder.
        x: an array.

    Raises:
        ShapeError: it is no array.

    Example:
        >>> relay.flatten_layer(np.ones((2, 3, 4))).shape
        (24,)
        >>> relay.flatten_layer(np.ones((5, 2, 3, 4))).shape
        (5, 24)
    """
    x = operand(b, x, "relay.flatten_layer")
    if not isinstance(x.type, Array):
        raise ShapeError(f"relay.flatten_layer takes an array, and this is {x.type}")
    if x.ndim in (2, 4):
        features: DimLike = product(x.shape[1:])
        return reshape(x, shape=(x.shape[0], features))
    return reshape(x, shape=(product(x.shape),))


@op("argmax", static=("axis",))
def argmax(b: Builder, x, axis=None) -> Var:
    """The position of the first greatest element: of all, or along an axis.

    Args:
        b: the builder.
        x: an array of numbers, not empty.
        axis: along which; None for all elements.

    Returns:
        int64: a scalar, or an array without that axis.

    Example:
        >>> relay.argmax(np.array([[1.0, 5.0], [7.0, 2.0]]), axis=1)
        array([1, 0])
    """
    x = reducible(b, x, "relay.argmax")
    if axis is None:
        x, axis = reshape(x, shape=(product(x.shape),)), 0
    axis = normalise_axis("relay.argmax", axis, x.shape)
    refuse_empty(b, x, (axis,), "relay.argmax of an empty sequence")
    return argmax_prim(x, axis=axis)


@op("one_hot", static=("num_classes", "dtype"))
def one_hot(b: Builder, labels, num_classes, dtype="float32") -> Var:
    """Class numbers as vectors: 1 at the class, 0 elsewhere.

    Args:
        b: the builder.
        labels: int scalar or array (...).
        num_classes: size of the new last axis; the vector of another class is 0 everywhere.
        dtype: of the result.

    Returns:
        An array with one more axis, the last.

    Raises:
        TypeError_: the labels are no integers, or the number of classes is none.
        ValueError_: the number of classes is negative.

    Example:
        >>> relay.one_hot(np.array([0, 2]), num_classes=3)
        array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    labels = operand(b, labels, "relay.one_hot")
    if labels.dtype not in INTS:
        raise TypeError_(f"relay.one_hot takes integer labels, and this is {labels.type}; convert with .astype(int)")
    if isinstance(num_classes, bool) or not isinstance(num_classes, int | Dim):
        raise TypeError_(f"relay.one_hot: num_classes is an int, not {num_classes!r}")
    if isinstance(num_classes, int) and num_classes < 0:
        raise ValueError_(f"relay.one_hot: num_classes={num_classes} is negative")
    return one_hot_prim(labels, n=num_classes, dtype=dtype_name(dtype))
