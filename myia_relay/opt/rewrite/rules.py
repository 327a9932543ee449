"""Rewrite rules as data, and the engine that applies them.

A rule is a pattern over applications, a replacement and, where the pattern is not enough, a condition. Rules are
indexed by the primitive at their head and are tried when an application is about to be emitted, so a replaced
application never exists.

A rule without further marks is exact to the last bit for every float, including NaN, infinities and signed zeros. A
rule marked `exact=False` changes rounding or the sign of a zero; it is used on derived code (adjoints) and under
`fastmath` only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...abstract.types import Array, Scalar, Type, numpy_dtype
from ...ir.build import Builder, Var, as_type
from ...ir.node import Apply, Constant, Node
from ...ir.prim import REGISTRY, Primitive
from ...prims.rules.broadcast import broadcast_to, match_kind
from ...utils.errors import CompileError, InternalError


@dataclass(frozen=True)
class Wildcard:
    """Matches anything; the same wildcard twice matches the same node."""

    name: str


@dataclass(frozen=True)
class Lit:
    """Matches a constant of this value, or an array filled with it; the sign of a zero counts."""

    value: Any


class Op:
    """Matches an application of a primitive."""

    def __init__(self, prim: str, *args: Pattern):
        if prim not in REGISTRY:
            raise InternalError("opt", f"a rule matches {prim}, which is no primitive")
        self.prim, self.args = REGISTRY[prim], args

    def __repr__(self) -> str:
        return f"{self.prim.name}({', '.join(map(repr, self.args))})"


Pattern = Wildcard | Lit | Op
FILLING = ("broadcast_to", "as_array", "reshape")  # what fills an array with a number; `filled` sees through it
X, Y, Z = Wildcard("x"), Wildcard("y"), Wildcard("z")


@dataclass
class Match:
    """What a pattern matched.

    Attributes:
        builder: where a replacement may emit.
        attrs: attributes of the head.
        type: type of the head.
        args: operands of the head.
        nodes: hole name -> node.
    """

    builder: Builder
    attrs: Mapping[str, Any]
    type: Any  # like those of `Node` and `Apply`; the pattern determines what they are
    args: tuple[Any, ...]
    nodes: dict[str, Node] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Var:
        """The staged value in a hole."""
        return Var(self.builder, self.nodes[name])

    def inner(self, position: int) -> Mapping[str, Any]:
        """Attributes of an operand that is an application."""
        return self.args[position].attrs


@dataclass(frozen=True)
class Rule:
    """`pattern => replacement`.

    Attributes:
        name: `verb_what`.
        pattern: what the head and its operands look like.
        replacement: a pattern over the same holes, or a function of the match that emits (None: no replacement after
        all). equation: what it says, in mathematics.
        when: condition on the match.
        exact: whether it holds to the last bit.
        swap: whether the operands of the head commute: the pattern is tried both ways.
    """

    name: str
    pattern: Op
    replacement: Pattern | Callable[[Match], Any]
    equation: str = ""
    when: Callable[[Match], bool] | None = None
    exact: bool = True
    swap: bool = False


class Table:
    """Rules, indexed by the primitive at the head."""

    def __init__(self, *rules: Rule):
        self.rules = rules
        self._candidates: dict[tuple, list[tuple[Rule, tuple[Pattern, ...]]]] = {}
        self.by_head: dict[Primitive, list[tuple[Rule, tuple[Pattern, ...]]]] = {}
        for rule in rules:
            heads = self.by_head.setdefault(rule.pattern.prim, [])
            heads.append((rule, rule.pattern.args))
            if rule.swap:
                heads.append((rule, rule.pattern.args[::-1]))

    def apply(self, builder: Builder, prim: Primitive, args, attrs, type: Type, loose: bool) -> Node | None:
        """What replaces an application that is about to be emitted; None if no rule applies.

        Args:
            loose: whether rules that are not exact may be used.
        """
        if prim not in self.by_head:
            return None
        for rule, patterns in self.candidates(prim, args):
            if not (rule.exact or loose):
                continue
            match = Match(builder, attrs, type, args)
            if not all(bind(p, a, match.nodes) for p, a in zip(patterns, args)):
                continue
            if rule.when is not None and not rule.when(match):
                continue
            found = rule.replacement(match) if callable(rule.replacement) else build(rule.replacement, match)
            if found is None:
                continue
            node = fit(builder, found.node if isinstance(found, Var) else found, type)
            if node is not None:
                return node
        return None

    def candidates(self, prim: Primitive, args: tuple[Node, ...]) -> list[tuple[Rule, tuple[Pattern, ...]]]:
        """The rules whose patterns may match operands of these kinds; cached for each combination of kinds."""
        kinds = (prim, *map(kind_of, args))
        found = self._candidates.get(kinds)
        if found is None:
            found = self._candidates[kinds] = [
                (rule, patterns)
                for rule, patterns in self.by_head[prim]
                if len(patterns) == len(args) and all(map(may_match, patterns, kinds[1:]))
            ]
        return found


def kind_of(node: Node) -> Primitive | type | None:
    """The first criterion by which patterns distinguish operands: the primitive that was applied, or a constant."""
    if isinstance(node, Apply):
        return node.fn if isinstance(node.fn, Primitive) else None
    return Constant if isinstance(node, Constant) else None


def may_match(pattern: Pattern, kind: Primitive | type | None) -> bool:
    """Whether an operand of some kind may match a pattern."""
    if isinstance(pattern, Wildcard):
        return True
    if isinstance(pattern, Op):
        return kind is pattern.prim
    return kind is Constant or (isinstance(kind, Primitive) and kind.name in FILLING)


def bind(pattern: Pattern, node: Node, nodes: dict[str, Node]) -> bool:
    """Whether a node matches; fills the holes."""
    if isinstance(pattern, Wildcard):
        return nodes.setdefault(pattern.name, node) is node
    if isinstance(pattern, Lit):
        return same_number(filled(node), pattern.value)
    if not isinstance(node, Apply) or node.fn is not pattern.prim or len(node.args) != len(pattern.args):
        return False
    return all(bind(p, a, nodes) for p, a in zip(pattern.args, node.args))


def build(pattern: Pattern, match: Match) -> Node:
    """Emit a replacement that is given as a pattern."""
    if isinstance(pattern, Wildcard):
        return match.nodes[pattern.name]
    if isinstance(pattern, Lit):
        t = Scalar(match.type.dtype) if isinstance(match.type, Array) else match.type
        return match.builder.constant(as_type(numpy_dtype(t.dtype).type(pattern.value), t), t)
    return match.builder.emit(pattern.prim, tuple(build(p, match) for p in pattern.args))


def filled(node: Node) -> Any:
    """The number of a constant, or that fills an array (also a NaN); None otherwise."""
    while isinstance(node, Apply) and isinstance(node.fn, Primitive) and node.fn.name in FILLING:
        node = node.args[0]
    if not isinstance(node, Constant):
        return None
    value = node.value
    if isinstance(value, np.ndarray):
        if value.size == 0 or value.size > 4096:
            return None
        return value.flat[0] if is_filled(value) else None
    return value if isinstance(value, bool | int | float | np.generic) else None


def is_filled(array: np.ndarray) -> bool:
    """Whether all elements of a nonempty array are the same, to the bit."""
    return array.tobytes() == array.flat[0].tobytes() * array.size


def same_number(a: Any, b: Any) -> bool:
    """Whether two numbers are equal, zeros with their signs."""
    if a is None or isinstance(a, bool | np.bool_) != isinstance(b, bool | np.bool_):
        return False
    a, b = (v.item() if isinstance(v, np.generic) else v for v in (a, b))
    if isinstance(a, float) and a == 0 == b:
        return math.copysign(1.0, a) == math.copysign(1.0, b)
    return bool(a == b)


def fit(builder: Builder, node: Node, type: Type) -> Node | None:
    """A replacement, broadcast or as another kind of number, in the type of what it replaces; None if that fails."""
    if node.type == type:
        return node
    if (
        not isinstance(node.type, Scalar | Array)
        or not isinstance(type, Scalar | Array)
        or node.type.dtype != type.dtype
    ):
        return None
    try:
        var = Var(builder, node)
        if isinstance(type, Array) and node.type.shape != type.shape:
            return broadcast_to(var, shape=type.shape).node
        return match_kind(var, type).node
    except (CompileError, InternalError):
        return None
