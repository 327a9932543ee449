"""Sharding: the kinds of a value within a block of rows, and a rule for each primitive.

The rows lie along one axis of some arguments; a block is a range of them. Within a block a value is one of

- `WHOLE`: it does not depend on the rows, and is the same in all blocks;
- `Along` an axis: the block's rows of the whole value;
- `SUM`: the block's part of a sum over all rows;
- `Added`: a value carried from block to block, to which each block adds a `SUM`;

or a structure of these, a tuple of kinds. A rule gives the kind of a result for the kinds of its operands. An operation
without a rule cannot be done block by block: sorting rows, maxima over rows, everything that uses a sum over all rows.
A sum may be multiplied only if differentiation made the product, because derived code treats numbers as reals;
otherwise 0 * infinity would be evaluated in another order.

Used by `opt.kernels.sharding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np

from ...abstract.types import Array, Struct, Type
from ...ir.axes import relation_of
from ...ir.node import Apply, Constant, Graph, Node, applied, applies


class Plain(Enum):
    """Kinds without parameters."""

    WHOLE = "whole"
    SUM = "sum"


WHOLE, SUM = Plain.WHOLE, Plain.SUM


@dataclass(frozen=True)
class Along:
    """The rows of the block, along an axis."""

    axis: int


@dataclass(frozen=True)
class Added:
    """A carried value plus the block's part of a sum.

    Attributes:
        to: the carried value: a parameter of a body; in the whole program a loop and the position of its operand. None in demands.
    """

    to: Any = None


Sharding = Plain | Along | Added | tuple


@dataclass
class Shardings:
    """The kinds of a graph's values, for given ones of its parameters.

    Attributes:
        graph: the graph.
        of: value -> kind; without constants.
        bodies: loop -> the kinds in its body.
        output: the kind of the result.
        doubtful: whether something is taken for a block that is whole as far as is known: what a loop carries may
        become one.
    """

    graph: Graph
    of: dict[Node, Sharding]
    bodies: dict[Apply, Shardings] = field(default_factory=dict)
    output: Sharding = WHOLE
    doubtful: bool = False


class Analysis(Protocol):
    """What rules use of the analysis: `opt.kernels.sharding.ShardingAnalysis`."""

    def demand(self, node: Node, kind: Sharding, kinds: Shardings) -> None:
        """Require an operand to be of a kind, or start again with it."""
        ...

    def loop(self, node: Apply, args: Sequence[Sharding], kinds: Shardings) -> Sharding:
        """The kind of a loop's result."""
        ...


class NoRule(Exception):
    """Something cannot be done block by block."""


def normal(kind: Sharding) -> Sharding:
    """Simplify a structure of whole values to a whole value."""
    return WHOLE if isinstance(kind, tuple) and all(k is WHOLE for k in kind) else kind


def leaves(kinds: Sequence[Sharding]) -> Iterator[Sharding]:
    """The kinds inside of structures."""
    for kind in kinds:
        yield from leaves(kind) if isinstance(kind, tuple) else (kind,)


def in_block(t: Type, kind: Sharding, rows: int) -> Type:
    """The type of a value in a block of some rows."""
    if isinstance(kind, Along):
        assert isinstance(t, Array)
        return Array(t.dtype, (*t.shape[: kind.axis], rows, *t.shape[kind.axis + 1 :]))
    if isinstance(kind, tuple):
        assert isinstance(t, Struct)
        return replace(t, elems=tuple(in_block(e, k, rows) for e, k in zip(t.elems, kind)))
    return t


def is_zero(node: Node) -> bool:
    """Whether a value is zero everywhere."""
    if applies(node, "broadcast_to"):
        return is_zero(node.args[0])
    return (
        isinstance(node, Constant)
        and isinstance(node.value, float | int | np.generic | np.ndarray)
        and not np.any(node.value)
    )


def is_filled(node: Node, axis: int) -> bool:
    """Whether an array is the same everywhere along an axis."""
    if isinstance(node, Constant):
        flat = np.asarray(node.value).reshape(-1)
        return flat.tobytes() == flat[:1].tobytes() * flat.size
    if applies(node, "broadcast_to"):
        shape = getattr(node.args[0].type, "shape", ())
        at = axis - len(node.type.shape) + len(shape)
        return at < 0 or shape[at] == 1
    return applied(node) == "undef"


# --- rules: (analysis, application, kinds of its operands, kinds around it) -> kind of its result -----------------------------

Rule = Callable[[Analysis, Apply, "list[Sharding]", Shardings], Sharding]
RULES: dict[str, Rule] = {"for_loop": lambda analysis, node, args, kinds: analysis.loop(node, args, kinds)}
"""Of sums and structures, by the name of a primitive or by the kind of many, where `sums` does not say it. See `rule_of`."""


def rule_of(node: Apply, args: Sequence[Sharding]) -> Rule:
    """The rule of an application: operands with rows follow its axes, sums follow its linearity."""
    if any(isinstance(kind, Along) for kind in args) and node.fn.axes is not None:
        return rows
    return RULES.get(node.fn.name) or RULES.get(node.fn.kind) or sums


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of some primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def is_sum(node: Node, kind: Sharding) -> bool:
    """Whether an operand of a sum is itself a partial sum; zero is."""
    return kind is SUM or kind is WHOLE and is_zero(node)


def require(condition: bool) -> None:
    """Demand a condition of a rule.

    Raises:
        NoRule: the condition does not hold.
    """
    if not condition:
        raise NoRule


def rows(analysis: Analysis, node: Apply, args: list[Sharding], kinds: Shardings) -> Sharding:
    """The kind that follows from the declared axes (`ir.axes`) for operands with the block's rows: along a mapped axis
    the result has the rows too, along a contracted one it is a sum.

    Raises:
        NoRule: the axes are not declared, or the rows are not along one axis of the relation.
    """
    relation = relation_of(node)
    if relation is None:
        raise NoRule
    found = {relation.operands[k][kind.axis] for k, kind in enumerate(args) if isinstance(kind, Along)}
    require(len(found) == 1)
    (label,) = found
    require(label is not None and label not in relation.located)
    for k, (arg, kind) in enumerate(zip(node.args, args)):
        at = relation.axis_of(label, k)
        if at is not None:
            same_rows(analysis, arg, kind, Along(at), kinds)
        elif k != relation.base:
            require(kind is WHOLE)
    axis = relation.axis_of(label)
    if axis is not None:
        return Along(axis)
    require(relation.combine == "add")
    return SUM if relation.base is None else added(analysis, node, relation.base, args, kinds)


def same_rows(analysis: Analysis, node: Node, kind: Sharding, wanted: Along, kinds: Shardings) -> None:
    """Require an operand to have the block's rows along an axis."""
    if kind is WHOLE:
        analysis.demand(node, wanted, kinds)
    else:
        require(kind == wanted)


def added(analysis: Analysis, node: Apply, k: int, args: list[Sharding], kinds: Shardings) -> Sharding:
    """The kind of a result that is operand k plus a block's part of a sum."""
    kind = args[k]
    if is_sum(node.args[k], kind):
        return SUM
    if kind is WHOLE:
        analysis.demand(node.args[k], Added(), kinds)
    require(isinstance(kind, Added))
    return kind


def sums(analysis: Analysis, node: Apply, args: list[Sharding], kinds: Shardings) -> Sharding:
    """What is linear in a block's part of a sum: rearranging and adding elements, and products."""
    if node.fn.bilinear:
        require(is_multiple(node, args))
        return SUM
    require(node.fn.kind in ("injective", "reduce") and node.fn.linear_in is not None)
    linear = node.fn.linear_in or range(len(args))
    require(all(is_sum(a, kind) if k in linear else kind is WHOLE for k, (a, kind) in enumerate(zip(node.args, args))))
    return SUM


@rule("elementwise")
def _(analysis: Analysis, node: Apply, args: list[Sharding], kinds: Shardings) -> Sharding:
    """Elementwise operations on sums: whether they are linear depends on the other operand."""
    name = node.fn.name
    require(node.type.is_float)
    if name in ("add", "sub"):
        others = [k for k, (arg, kind) in enumerate(zip(node.args, args)) if not is_sum(arg, kind)]
        if not others:
            return SUM
        k = others[0]  # to it something is added
        require(len(others) == 1 and not (k and name == "sub") and node.type == node.args[k].type)
        if args[k] is WHOLE:
            analysis.demand(node.args[k], Added(), kinds)
        require(isinstance(args[k], Added))
        return args[k]
    if name in ("neg", "cast", "stop_gradient"):
        require(args == [SUM])
    elif name == "where":
        require(args[0] is WHOLE and all(is_sum(a, k) for a, k in zip(node.args[1:], args[1:])))
    else:
        require((name == "mul" or name == "div" and args[1] is WHOLE) and is_multiple(node, args))
    return SUM


def is_multiple(node: Apply, args: list[Sharding]) -> bool:
    """Whether differentiation has multiplied a sum by a whole value."""
    return node.origin.made_by in ("jvp", "vjp") and sorted(args, key=str) == sorted((SUM, WHOLE), key=str)


@rule("index_add", "slice_add")
def _(analysis, node, args, kinds):
    """Additions to a part of a carried value."""
    require(args[2] is WHOLE and is_sum(node.args[1], args[1]))
    return added(analysis, node, 0, args, kinds)


@rule("make_struct")
def _(analysis, node, args, kinds):
    return tuple(args)


@rule("get_item")
def _(analysis, node, args, kinds):
    return args[0][node.attrs["index"]]


__all__ = [
    "SUM",
    "WHOLE",
    "Added",
    "Along",
    "Sharding",
    "NoRule",
    "in_block",
    "is_filled",
    "is_zero",
    "leaves",
    "normal",
    "require",
    "rule_of",
]
