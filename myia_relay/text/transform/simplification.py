"""Simplification of expressions.

    x * 1 = x     x / 1 = x     x - 0 = x     x + 0 = x     x ** 1 = x     -(-x) = x     !(!x) = x
    reshape(reshape(x, a), b) = reshape(x, b)               reshape(x, shape of x) = x
    transpose(transpose(x, a), b) = transpose(x, a[b])      transpose(x, identity) = x
    cast(x, dtype of x) = x     copy(x) = x     layout_transform(layout_transform(x, A, B), B, C) = layout_transform(x, A, C)

A rule applies where its result has the type of what it replaces. All but one are exact for floats: x + 0 is +0 where x is
-0, and the rule leaves -0. `signed_zeros=True` keeps such sums.

The native pipeline has rules for typed graphs (`opt.rewrite.rules`), which keep signed zeros always; these are about the
attributes of Relay's operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..check.module import check
from ..terms.terms import TensorTerm, prune
from ..tree import CallExpr, Expression, Literal, Local, LocalVar, ModuleTree, Statement, TensorConstant
from .common.passes import TreePass
from .common.rewriting import TreeRewriter, attribute, operator_of
from .common.types_known import Types


@dataclass(frozen=True)
class SimplifyExpr(TreePass):
    """Applies algebraic identities.

    Attributes:
        signed_zeros: whether x + 0 stays where x is a float, which differs from x where x is -0.
    """

    signed_zeros: bool = False

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with simpler expressions."""
        types = Types(check(tree))
        return tree.mapped(lambda name, function: ExpressionSimplifier(types, self.signed_zeros).function(function))


class ExpressionSimplifier(TreeRewriter):
    """Applies the rules, each operand before what it is an operand of."""

    def __init__(self, types: Types, signed_zeros: bool = False):
        super().__init__()
        self.types, self.signed_zeros = types, signed_zeros
        self.made: dict[Local, CallExpr] = {}

    def with_replaced(self, op: Expression) -> Expression:
        new = super().with_replaced(op)
        if new is not op:
            self.types.copy(op, new)
        return new

    def bind(self, s: Statement, value: Expression, out: list[Statement]) -> None:
        super().bind(s, value, out)
        if isinstance(value, CallExpr):
            self.made[s.local] = value

    def operation(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression:
        rule = RULES.get(operator_of(op) or "")
        while rule is not None and isinstance(op, CallExpr):
            new = rule(self, op)
            if new is None:
                break
            if not isinstance(new, CallExpr):
                return new
            self.types.copy(op, new)
            op = new
        return self.with_inner(op)

    def source(self, x: Expression, name: str) -> CallExpr | None:
        """The application of an operator that an atom is bound to."""
        made = self.made.get(x.local) if isinstance(x, LocalVar) else None
        return made if made is not None and operator_of(made) == name else None

    def same_type(self, x: Expression, op: Expression) -> bool:
        """Whether two have the same type, as far as it is known to the last size."""
        a, b = prune(self.types.of(x)), prune(self.types.of(op))
        if not isinstance(a, TensorTerm) or not isinstance(b, TensorTerm):
            return False
        return (
            isinstance(a.dtype, str)
            and a.dtype == b.dtype
            and self.same_sizes(self.types.shape(x), self.types.shape(op))
        )

    @staticmethod
    def same_sizes(a: tuple | None, b: tuple | None) -> bool:
        """Whether two shapes are certainly equal."""
        return (
            a is not None
            and b is not None
            and len(a) == len(b)
            and all(_same_size(x, y) for x, y in zip(a, b, strict=True))
        )

    def keeps(self, x: Expression, other: Expression, op: Expression) -> bool:
        """Whether an operand has the type of the result whatever the other one is."""
        return isinstance(other, Literal) or self.same_type(x, op)


def _same_size(x: Any, y: Any) -> bool:
    return x is y if not isinstance(x, int) and not hasattr(x, "symbols") else x == y


Rule = Callable[[ExpressionSimplifier, CallExpr], "Expression | None"]
RULES: dict[str, Rule] = {}
"""Name of an operator -> what an application of it simplifies to; None where it stays."""


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


MADE_OF = {"zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "ones_like": 1.0}


def is_filled(x: Expression, value: float, rule: ExpressionSimplifier | None = None) -> bool:
    """Whether a tensor is this number throughout, its sign included."""
    if rule is not None and isinstance(x, LocalVar) and x.local in rule.made:
        made = MADE_OF.get(operator_of(rule.made[x.local]) or "")
        return made == value and not np.signbit(value)
    if isinstance(x, Literal):
        return bool(x.value == value) and np.signbit(float(x.value)) == np.signbit(value)
    if isinstance(x, TensorConstant) and x.value.size and x.value.dtype.kind in "iuf":
        return bool(np.all(x.value == value)) and not np.any(np.signbit(x.value) != np.signbit(value))
    return False


def _zero(rule: ExpressionSimplifier, x: Expression, op: CallExpr) -> bool:
    """Whether adding a constant changes nothing."""
    dtype = rule.types.dtype(x) or ""
    if not dtype.startswith(("float", "bfloat")):
        return is_filled(x, 0, rule)
    return is_filled(x, -0.0) or (is_filled(x, 0.0, rule) and not rule.signed_zeros)


@_rule("add")
def _add(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    for x, other in (op.args, op.args[::-1]):
        if _zero(rule, other, op) and rule.keeps(x, other, op):
            return x
    return None


@_rule("subtract")
def _subtract(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    x, other = op.args
    return x if is_filled(other, 0.0, rule) and rule.keeps(x, other, op) else None


@_rule("multiply")
def _multiply(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    for x, other in (op.args, op.args[::-1]):
        if is_filled(other, 1.0, rule) and rule.keeps(x, other, op):
            return x
    return None


@_rule("divide", "power")
def _divide(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    x, other = op.args
    return x if is_filled(other, 1.0, rule) and rule.keeps(x, other, op) else None


@_rule("floor_divide")
def _floor_divide(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    x, other = op.args
    exact = (rule.types.dtype(x) or "f").startswith(("int", "uint"))
    return x if exact and is_filled(other, 1.0, rule) and rule.keeps(x, other, op) else None


@_rule("negative", "logical_not", "bitwise_not")
def _involution(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    inner = rule.source(op.args[0], operator_of(op) or "")
    return inner.args[0] if inner is not None else None


@_rule("copy")
def _copy(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    return op.args[0]


@_rule("collapse_sum_like", "broadcast_to_like", "reshape_like")
def _in_shape(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    x = op.args[0]
    return x if rule.same_sizes(rule.types.shape(x), rule.types.shape(op)) else None


@_rule("cast")
def _cast(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    dtype = rule.types.dtype(op.args[0])
    return op.args[0] if dtype is not None and dtype == rule.types.dtype(op) else None


@_rule("reshape")
def _reshape(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    if len(op.args) == 1 and rule.same_type(op.args[0], op):
        return op.args[0]
    inner = rule.source(op.args[0], "reshape")
    if inner is None or len(inner.args) != 1 or len(op.args) != 1:
        return None
    shape = attribute(op, "newshape")
    if not isinstance(shape, tuple) or not all(isinstance(s, int) and (s > 0 or s == -1) for s in shape):
        shape = rule.types.sizes(op)  # what depends on the operand's shape is written out
    if shape is None or 0 in shape:
        return None
    return replace(op, args=inner.args, attributes=(("newshape", tuple(shape)),))


@_rule("transpose")
def _transpose(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    order = _order(rule, op)
    if order is None:
        return None
    if order == tuple(range(len(order))):
        return op.args[0]
    inner = rule.source(op.args[0], "transpose")
    first = _order(rule, inner) if inner is not None else None
    if inner is None or first is None:
        return None
    return replace(op, args=inner.args, attributes=(("axes", tuple(first[k] for k in order)),))


def _order(rule: ExpressionSimplifier, op: CallExpr) -> tuple[int, ...] | None:
    """The axes of a transposition, if their number is known."""
    axes = attribute(op, "axes")
    if isinstance(axes, tuple) and axes:
        return tuple(k % len(axes) for k in axes if isinstance(k, int))
    shape = rule.types.shape(op.args[0])
    return None if shape is None else tuple(range(len(shape)))[::-1]


@_rule("layout_transform")
def _layout_transform(rule: ExpressionSimplifier, op: CallExpr) -> Expression | None:
    source, target = attribute(op, "src_layout"), attribute(op, "dst_layout")
    if source == target:
        return op.args[0]
    inner = rule.source(op.args[0], "layout_transform")
    if inner is None or attribute(inner, "dst_layout") != source:
        return None
    attributes = (("src_layout", attribute(inner, "src_layout")), ("dst_layout", target))
    return replace(op, args=inner.args, attributes=attributes)
