"""Derivatives of operators, as expressions of operators.

A rule gives the cotangents of the arguments of `y = op(x..)` from `x`, `y` and the cotangent `d` of `y`. Operands that are
broadcast get the sum over what they are repeated along (`collapse_sum_like`). Whatever has no rule here is left to
`grad.NAME`, the derivative of the operator's implementation (`text.operators.derived.gradients`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...tree import CallExpr, Expression, apply
from ..common.rewriting import attribute

Rule = Callable[[CallExpr, tuple[Expression, ...], Expression, Expression], "tuple[Expression | None, ...] | None"]
"""`(application, arguments, result, cotangent)` -> a cotangent for each argument, None for zero; or None: no rule for this one."""

RULES: dict[str, Rule] = {}
NOT_DIFFERENTIABLE = frozenset(
    ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
    + ["logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"]
    + ["floor", "ceil", "trunc", "round", "sign", "shape_of", "ndarray_size"]
    + ["argmax", "argmin", "argsort", "one_hot", "zeros", "zeros_like", "ones", "ones_like", "full", "arange"]
)
"""Operators whose derivative is zero wherever there is one."""


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def _like(d: Expression, x: Expression) -> Expression:
    """A cotangent in the shape of an operand that was broadcast."""
    return apply("collapse_sum_like", d, x)


def _mul(x: Expression, y: Expression) -> Expression:
    return apply("multiply", x, y)


@_rule("add")
def _add(op, x, y, d):
    return _like(d, x[0]), _like(d, x[1])


@_rule("subtract")
def _subtract(op, x, y, d):
    return _like(d, x[0]), _like(apply("negative", d), x[1])


@_rule("multiply")
def _multiply(op, x, y, d):
    return _like(_mul(d, x[1]), x[0]), _like(_mul(d, x[0]), x[1])


@_rule("divide")
def _divide(op, x, y, d):
    quotient = apply("divide", d, x[1])
    return _like(quotient, x[0]), _like(apply("negative", _mul(quotient, apply("divide", x[0], x[1]))), x[1])


@_rule("negative")
def _negative(op, x, y, d):
    return (apply("negative", d),)


@_rule("copy")
def _copy(op, x, y, d):
    return (d,)


@_rule("exp")
def _exp(op, x, y, d):
    return (_mul(d, y),)


@_rule("log")
def _log(op, x, y, d):
    return (apply("divide", d, x[0]),)


@_rule("sin")
def _sin(op, x, y, d):
    return (_mul(d, apply("cos", x[0])),)


@_rule("cos")
def _cos(op, x, y, d):
    return (apply("negative", _mul(d, apply("sin", x[0]))),)


@_rule("tanh")
def _tanh(op, x, y, d):
    return (apply("subtract", d, _mul(d, _mul(y, y))),)


@_rule("sigmoid")
def _sigmoid(op, x, y, d):
    return (_mul(d, apply("subtract", y, _mul(y, y))),)


@_rule("reshape", "nn.batch_flatten", "expand_dims", "squeeze")
def _reshape(op, x, y, d):
    return (apply("reshape_like", d, x[0]),)


@_rule("transpose")
def _transpose(op, x, y, d):
    axes = attribute(op, "axes")
    if not isinstance(axes, tuple) or not axes:
        return (apply("transpose", d),)
    order = [k % len(axes) for k in axes if isinstance(k, int)]
    return (apply("transpose", d, axes=tuple(order.index(k) for k in range(len(order)))),)


@_rule("nn.dense")
def _dense(op, x, y, d):
    if attribute(op, "out_dtype"):
        return None
    by_units, by_inputs = apply("transpose", d, axes=(1, 0)), apply("transpose", x[0], axes=(1, 0))
    return apply("nn.dense", d, apply("transpose", x[1], axes=(1, 0))), apply("nn.dense", by_units, by_inputs)


@_rule("broadcast_to_like")
def _broadcast_to_like(op, x, y, d):
    return _like(d, x[0]), None


@_rule("collapse_sum_like")
def _collapse_sum_like(op, x, y, d):
    return apply("broadcast_to_like", d, x[0]), None


@_rule("reshape_like")
def _reshape_like(op, x, y, d):
    return apply("reshape_like", d, x[0]), None
