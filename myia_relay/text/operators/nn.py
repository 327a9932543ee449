"""Softmax, normalisations, losses, and what else layers are made of."""

from __future__ import annotations

from typing import Any

from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...prims.ops import elementwise as P
from ...prims.ops.control import stop_gradient
from ...prims.ops.reduction import reduce_max
from ...prims.rules.broadcast import reduce_sum
from ...prims.rules.relations import NUMBERS
from ...utils.errors import ShapeError
from ..terms.show import show
from ..terms.solver import Facts
from ..terms.terms import TensorTerm, prune, tensor, tuple_term
from .declare import Attr, operator
from .products import along_axis
from .reductions import mean_of
from .rules import Rule, accept, axis_of, broadcast_of, identity
from .staged import array, constant, cut, finished, number_of, padded, reshaped

AXIS = {"axis": Attr("int", -1)}


def _along_axis(facts: Facts) -> None:
    t = facts.tensor(0)
    facts.gives(t)
    accept(facts, t, FLOATS)
    axis_of(facts, facts.attr("axis"), len(facts.shape(t)))


def _shifted(x: Var, axis: int) -> Var:
    """x minus its maximum along an axis, so that exponentials do not overflow."""
    top = stop_gradient(reduce_max(x, axes=(axis,), keepdims=True))
    return P.sub(x, P.where(P.isfinite(top), top, constant(x.builder, 0, x.dtype)))


@operator("nn.softmax", ("data",), _along_axis, AXIS)
def softmax(b: Builder, data: Var, axis: int = -1) -> Var:
    """exp(x) / sum(exp(x)) along an axis."""
    x = array(data)
    weights = P.exp(_shifted(x, axis % x.ndim))
    return P.div(weights, reduce_sum(weights, axes=(axis % x.ndim,), keepdims=True))


@operator("nn.log_softmax", ("data",), _along_axis, AXIS)
def log_softmax(b: Builder, data: Var, axis: int = -1) -> Var:
    """log(softmax(x)), without its cancellations."""
    x = array(data)
    away = _shifted(x, axis % x.ndim)
    return P.sub(away, P.log(reduce_sum(P.exp(away), axes=(axis % x.ndim,), keepdims=True)))


def _loss(facts: Facts) -> None:
    x, y = facts.tensor(0), facts.tensor(1)
    facts.equal(x, y)
    facts.gives_tensor((), x.dtype)
    accept(facts, x, FLOATS)
    facts.rank(x, 2, what="the predictions")


@operator("nn.cross_entropy", ("predictions", "targets"), _loss)
def cross_entropy(b: Builder, predictions: Var, targets: Var) -> Var:
    """-sum(targets log(predictions)) / examples, of (examples, classes)."""
    x, y = array(predictions), array(targets)
    total = reduce_sum(P.mul(P.log(x), y), axes=(0, 1))
    return finished(P.neg(P.div(total, number_of(b, x.shape[:1], x.dtype))))


@operator("nn.cross_entropy_with_logits", ("predictions", "targets"), _loss)
def cross_entropy_with_logits(b: Builder, predictions: Var, targets: Var) -> Var:
    """-sum(targets predictions) / examples, where the predictions are logarithms."""
    x, y = array(predictions), array(targets)
    total = reduce_sum(P.mul(x, y), axes=(0, 1))
    return finished(P.neg(P.div(total, number_of(b, x.shape[:1], x.dtype))))


def _prelu(facts: Facts) -> None:
    x, alpha = facts.tensor(0), facts.tensor(1)
    facts.same_dtype(x, alpha)
    facts.gives(x)
    shape = facts.shape(x)
    axis = axis_of(facts, facts.attr("axis"), len(shape))
    (size,) = facts.rank(alpha, 1, what="alpha")
    facts.same_size(
        size, shape[axis], f"nn.prelu: alpha is {show(alpha)}, and axis {axis} of {show(x)} has another size"
    )


@operator("nn.prelu", ("data", "alpha"), _prelu, {"axis": Attr("int", 1)})
def prelu(b: Builder, data: Var, alpha: Var, axis: int = 1) -> Var:
    """x where x > 0, else alpha x, with an alpha for each place along an axis."""
    x = array(data)
    return P.where(P.gt(x, constant(b, 0, x.dtype)), x, P.mul(x, along_axis(x, array(alpha), axis, "nn.prelu")))


def _dropout(facts: Facts) -> None:
    t = facts.tensor(0)
    accept(facts, t, NUMBERS)
    facts.gives(tuple_term((t, t)))


@operator("nn.dropout", ("data",), _dropout, {"rate": Attr("float", 0.5)})
def dropout(b: Builder, data: Var, rate: float = 0.5) -> tuple[Var, Var]:
    """The tensor as it is, and ones: nothing is dropped where a program is only run."""
    x = array(data)
    return finished(x), finished(P.add(P.mul(x, constant(b, 0, x.dtype)), constant(b, 1, x.dtype)))


# Normalisations.

NORM = {
    "axis": Attr("int", 1),
    "epsilon": Attr("float", 1e-5),
    "center": Attr("bool", True),
    "scale": Attr("bool", True),
}


def _vectors(facts: Facts, x: TensorTerm, indices: range, axis: int, shape: tuple[Any, ...]) -> None:
    """Demand that arguments are vectors of the size of an axis."""
    for k in indices:
        v = facts.tensor(k)
        facts.same_dtype(x, v)
        (size,) = facts.rank(v, 1, what=facts.called(k))
        facts.same_size(
            size,
            shape[axis],
            f"{facts.name}: {facts.called(k)} is {show(v)}, and axis {axis} of {show(x)} has another size",
        )


def _batch_norm(facts: Facts) -> None:
    x = facts.tensor(0)
    accept(facts, x, FLOATS)
    if not isinstance(prune(x.shape), tuple):
        vector = tensor(facts.tensor(1).shape, x.dtype)
        facts.gives(tuple_term((x, vector, vector)))
    shape = facts.shape(x)
    axis = axis_of(facts, facts.attr("axis"), len(shape))
    _vectors(facts, x, range(1, 5), axis, shape)
    vector = tensor((shape[axis],), x.dtype)
    facts.gives(tuple_term((x, vector, vector)))


def _scaled(x: Var, gamma: Var, beta: Var, axis: int, center: bool, scale: bool, name: str) -> Var:
    if scale:
        x = P.mul(x, along_axis(x, array(gamma), axis, name))
    return P.add(x, along_axis(x, array(beta), axis, name)) if center else x


@operator("nn.batch_norm", ("data", "gamma", "beta", "moving_mean", "moving_var"), _batch_norm, NORM)
def batch_norm(b: Builder, data, gamma, beta, moving_mean, moving_var, axis=1, epsilon=1e-5, center=True, scale=True):
    """(x - mean) / sqrt(var + epsilon) gamma + beta along an axis, the mean, and the variance."""
    x, mean, var = array(data), array(moving_mean), array(moving_var)
    root = P.sqrt(P.add(var, constant(b, epsilon, x.dtype)))
    away = P.sub(x, along_axis(x, mean, axis, "nn.batch_norm"))
    out = P.div(away, along_axis(x, root, axis, "nn.batch_norm"))
    return _scaled(out, gamma, beta, axis, center, scale, "nn.batch_norm"), mean, var


def _norm(axes: Any) -> Rule:
    """A normalisation with gamma and beta along an axis."""

    def rule(facts: Facts) -> None:
        x = facts.tensor(0)
        facts.gives(x)
        accept(facts, x, FLOATS)
        shape = facts.shape(x)
        axis = axis_of(facts, facts.attr("axis"), len(shape))
        _vectors(facts, x, range(1, 3), axis, shape)
        axes(facts, shape, axis)

    return rule


def normalised(b: Builder, x: Var, axes: tuple[int, ...], epsilon: float) -> Var:
    """x minus its mean over axes, over the root of its variance."""
    away = P.sub(x, mean_of(b, x, axes, True))
    var = mean_of(b, P.mul(away, away), axes, True)
    return P.div(away, P.sqrt(P.add(var, constant(b, epsilon, x.dtype))))


@operator("nn.layer_norm", ("data", "gamma", "beta"), _norm(lambda *_: None), {**NORM, "axis": Attr("int", -1)})
def layer_norm(b: Builder, data, gamma, beta, axis=-1, epsilon=1e-5, center=True, scale=True) -> Var:
    """Normalised over one axis, with gamma and beta along it."""
    x = array(data)
    return _scaled(normalised(b, x, (axis % x.ndim,), epsilon), gamma, beta, axis, center, scale, "nn.layer_norm")


@operator("nn.instance_norm", ("data", "gamma", "beta"), _norm(lambda *_: None), NORM)
def instance_norm(b: Builder, data, gamma, beta, axis=1, epsilon=1e-5, center=True, scale=True) -> Var:
    """Normalised over all axes but the first and a given one, with gamma and beta along that."""
    x = array(data)
    over = tuple(k for k in range(1, x.ndim) if k != axis % x.ndim)
    return _scaled(normalised(b, x, over, epsilon), gamma, beta, axis, center, scale, "nn.instance_norm")


def _groups(facts: Facts, shape: tuple[Any, ...], axis: int) -> None:
    groups, size = facts.attr("num_groups"), prune(shape[axis])
    if groups < 1 or isinstance(size, int) and size % groups:
        raise ShapeError(
            f"nn.group_norm: axis {axis} has size {show(size)}, which is no multiple of num_groups={groups}"
        )


@operator("nn.group_norm", ("data", "gamma", "beta"), _norm(_groups), {"num_groups": Attr("int"), **NORM})
def group_norm(b: Builder, data, gamma, beta, num_groups, axis=1, epsilon=1e-5, center=True, scale=True) -> Var:
    """Normalised over groups along an axis, and over all axes but the first; with gamma and beta along that axis."""
    x = array(data)
    at = axis % x.ndim
    split = [*x.shape[:at], num_groups, x.shape[at] // num_groups, *x.shape[at + 1 :]]
    over = tuple(k for k in range(1, x.ndim + 1) if k != at)
    out = reshaped(normalised(b, reshaped(x, split), over, epsilon), x.shape)
    return _scaled(out, gamma, beta, axis, center, scale, "nn.group_norm")


@operator("nn.l2_normalize", ("data",), identity(FLOATS), {"eps": Attr("float"), "axis": Attr("ints", None)})
def l2_normalize(b: Builder, data: Var, eps: float, axis: Any = None) -> Var:
    """x / sqrt(max(sum(x ** 2), eps)), the sum over axes, or over all."""
    x = array(data)
    axes = tuple(range(x.ndim)) if axis is None else tuple(sorted(a % x.ndim for a in axis))
    total = reduce_sum(P.mul(x, x), axes=axes, keepdims=True)
    return finished(P.div(x, P.sqrt(P.maximum(total, constant(b, eps, x.dtype)))))


# Others.


def _squared_difference(facts: Facts) -> None:
    a, c = facts.tensor(0), facts.tensor(1)
    facts.gives_tensor(broadcast_of(facts, a, c), facts.same_dtype(a, c))
    accept(facts, a, FLOATS)


@operator("squared_difference", ("lhs", "rhs"), _squared_difference, family="Broadcast")
def squared_difference(b: Builder, lhs: Var, rhs: Var) -> Var:
    """(lhs - rhs) ** 2."""
    away = P.sub(array(lhs), array(rhs))
    return finished(P.mul(away, away))


def _lrn(facts: Facts) -> None:
    t = facts.tensor(0)
    facts.gives(t)
    accept(facts, t, FLOATS)
    axis_of(facts, facts.attr("axis"), len(facts.shape(t)))
    if facts.attr("size") % 2 == 0:
        raise ShapeError(f"nn.lrn: size={facts.attr('size')} is not odd")


LRN = {
    "size": Attr("int", 5),
    "axis": Attr("int", 1),
    "bias": Attr("float", 2.0),
    "alpha": Attr("float", 1e-4),
    "beta": Attr("float", 0.75),
}


@operator("nn.lrn", ("data",), _lrn, LRN)
def lrn(b: Builder, data: Var, size=5, axis=1, bias=2.0, alpha=1e-4, beta=0.75) -> Var:
    """x / (bias + alpha / size sum(x ** 2)) ** beta, the sum over `size` neighbours along an axis."""
    x = array(data)
    at = axis % x.ndim
    reach = size // 2
    wide = padded(P.mul(x, x), [(reach, reach) if k == at else (0, 0) for k in range(x.ndim)])
    total = cut(wide, at, 0, x.shape[at])
    for k in range(1, size):
        total = P.add(total, cut(wide, at, k, x.shape[at]))
    scale = P.add(P.mul(total, constant(b, alpha / size, x.dtype)), constant(b, bias, x.dtype))
    return P.div(x, P.pow_(scale, constant(b, beta, x.dtype)))
