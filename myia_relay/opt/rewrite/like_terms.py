"""Like terms of sums are collected, in derived code: adjoints reach the same value on several paths.

    3 x + x 3 = 6 x        (a + x) - x = a        2 (0.5 x) = x        (3 x) y = 3 (x y)

A sum is decomposed into terms, each a number times a value, through the additions that differentiation emitted. It is
rebuilt only if some of its values are the same. This treats numbers as reals, not floats: what users write is never
touched.

Source: "collecting" of polynomials as in computer algebra systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.types import Leaf, Scalar, Type
from ...ir.build import Builder, as_type
from ...ir.node import Apply, Constant, Node, applied, applies
from ...ir.prim import REGISTRY, Primitive
from .rules import filled

DEPTH = 8
Loose = Callable[[Apply], bool]
Monomial = tuple[Node, ...]


def collect_terms(builder: Builder, prim: Primitive, args: tuple[Node, ...], type: Type, loose: Loose) -> Node | None:
    """A shorter form of a sum or product that is about to be emitted; None where there is none.

    Args:
        loose: whether an application may be treated as one of reals.
    """
    if prim.name not in ("add", "sub", "mul", "neg") or not type.is_float:
        return None
    if prim.name == "mul":
        return _product(builder, args, type, loose)
    if prim.name == "neg":
        factor, value = _term(args[0])
        return None if factor == 1 or value.type != type else _scaled(builder, -factor, value)
    terms: dict[Monomial, list[Any]] = {}
    count = _gather(terms, args[0], 1.0, type, loose, DEPTH)
    count += _gather(terms, args[1], 1.0 if prim.name == "add" else -1.0, type, loose, DEPTH)
    if len(terms) == count:
        return None
    parts = [(f, value or _power(builder, factors)) for f, value, factors in terms.values() if f != 0]
    return _sum(builder, parts, type) if all(v.type == type for _, v in parts) else None


def _number(node: Node) -> float | None:
    """The finite number that a constant is."""
    value = filled(node) if isinstance(node, Constant) else None
    if value is None or isinstance(value, bool | np.bool_) or not np.isfinite(value):
        return None
    return float(value)


def _term(node: Node) -> tuple[float, Node]:
    """A value as a number times another."""
    factor = 1.0
    while isinstance(node, Apply):
        if applied(node) == "neg":
            factor, node = -factor, node.args[0]
            continue
        if applied(node) != "mul":
            break
        for number, other in (node.args, node.args[::-1]):
            value = _number(number)
            if value is not None and other.type == node.type:
                factor, node = factor * value, other
                break
        else:
            break
    return factor, node


def _monomial(node: Node, depth: int = 3) -> tuple[float, list[Node]]:
    """A value as a number times a product of others."""
    factor, value = _term(node)
    if not depth or not applies(value, "mul") or any(a.type != value.type for a in value.args):
        return factor, [value]
    (f, a), (g, b) = (_monomial(x, depth - 1) for x in value.args)
    return factor * f * g, a + b


def _power(builder: Builder, factors: list[Node]) -> Node:
    """A product that has no node yet."""
    first, *rest = factors
    for node in rest:
        first = builder.emit(REGISTRY["mul"], (first, node))
    return first


def _gather(terms: dict[Monomial, list[Any]], node: Node, factor: float, type: Type, loose: Loose, depth: int) -> int:
    """Add the terms of a value, each with a node that has its value, if there is one; returns how many."""
    own, value = _term(node)
    if depth and value.type == type and applies(value, "add", "sub") and loose(value):
        a, b = value.args
        sign = factor * own if applied(value) == "add" else -factor * own
        return _gather(terms, a, factor * own, type, loose, depth - 1) + _gather(terms, b, sign, type, loose, depth - 1)
    inner, factors = _monomial(value)
    found = terms.setdefault(tuple(sorted(factors, key=id)), [0.0, None, factors])
    found[0] += factor * own * inner
    if inner == 1:
        found[1] = value
    return 1


def _constant(builder: Builder, value: float, type: Leaf) -> Constant:
    t = type if isinstance(type, Scalar) else Scalar(type.dtype)
    return builder.constant(as_type(np.float64(value), t), t)


def _scaled(builder: Builder, factor: float, value: Node) -> Node:
    if factor == 1:
        return value
    if factor == -1:
        return builder.emit(REGISTRY["neg"], (value,))
    return builder.emit(REGISTRY["mul"], (_constant(builder, factor, value.type), value))


def _sum(builder: Builder, terms: list[tuple[float, Node]], type: Type) -> Node | None:
    """The sum of some terms, positive ones first."""
    if not terms:
        return _constant(builder, 0.0, type) if isinstance(type, Scalar) else None
    terms = sorted(terms, key=lambda t: t[0] < 0)
    total = _scaled(builder, *terms[0])
    for factor, value in terms[1:]:
        prim = "add" if factor > 0 else "sub"
        total = builder.emit(REGISTRY[prim], (total, _scaled(builder, abs(factor), value)))
    return total


def _product(builder: Builder, args: tuple[Node, ...], type: Type, loose: Loose) -> Node | None:
    """The numbers in a product, combined into one in front."""
    (f, a), (g, b) = _term(args[0]), _term(args[1])
    for number, factor, value in ((_number(args[0]), g, b), (_number(args[1]), f, a)):
        if number is not None:
            if value.type != type:
                return None
            return _quotient(builder, number * factor, value) or (
                _scaled(builder, number * factor, value) if factor != 1 else None
            )
    # What users wrote is computed anyway, including its number.
    if any(isinstance(x, Apply) and k != 1 and not loose(x) for x, k in ((args[0], f), (args[1], g))):
        return None
    if f * g == 1 or a.type != args[0].type or b.type != args[1].type:
        return None
    inner = builder.emit(REGISTRY["mul"], (a, b))
    return _scaled(builder, f * g, inner) if inner.type == type else None


def _quotient(builder: Builder, number: float, value: Node) -> Node | None:
    """c ((d / y) x) = ((c d) / y) x"""
    for ratio, x in (value.args, value.args[::-1]) if applies(value, "mul") else ():
        own = _number(ratio.args[0]) if applied(ratio) == "div" else None
        if own is not None:
            top = _constant(builder, number * own, ratio.args[0].type)
            found = builder.emit(REGISTRY["mul"], (builder.emit(REGISTRY["div"], (top, ratio.args[1])), x))
            return found if found.type == value.type else None
    return None
