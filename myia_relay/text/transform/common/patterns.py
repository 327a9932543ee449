"""Patterns of operators: what their code looks like to fusion.

    elementwise    an element of the result needs the element at the same place of each operand
    broadcast      the same, of operands that are repeated along axes
    injective      an element of the result needs one element of each operand, at another place
    reduction      an element of the result combines elements along axes
    out-fusable    a heavy kernel (a product, a convolution) that can apply what follows to each element of its result
    opaque         all else; it has a kernel of its own

They are derived: the operator's implementation is staged on the types at hand, and the primitives it consists of say how they treat
axes (`ir.prim`, `ir.axes`). Where types are not known, families of operators say it (`Broadcast`, `Identity`), and all others are
opaque.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ....abstract.types import Array
from ....ir.axes import relation_of
from ....ir.build import Builder, Var
from ....ir.node import Apply, Constant, Graph, Node
from ....ir.prim import Primitive
from ....utils.errors import CompileError
from ...operators import OPERATORS
from ...tree import CallExpr
from .rewriting import operator_of
from .types_known import Types, staged_type


class OperatorPattern(IntEnum):
    """The patterns, in the order in which one contains another (TVM's numbers)."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    OUT_FUSABLE = 4
    OPAQUE = 8


REPEATS = frozenset({"broadcast_to", "broadcast_in_dim", "full", "iota"})
"""Injective primitives that repeat or make elements."""
SPATIAL = ("conv",)
"""How the names of primitives begin that are products over windows."""


class Patterns:
    """The patterns of applications in a module.

    Args:
        types: the types of the module.
    """

    def __init__(self, types: Types):
        self.types = types
        self._found: dict[Any, OperatorPattern] = {}

    def of(self, op: CallExpr) -> OperatorPattern:
        """The pattern of an application of an operator."""
        name = operator_of(op)
        operator = OPERATORS.get(name or "")
        if operator is None:
            return OperatorPattern.OPAQUE
        args = [staged_type(self.types.of(a)) for a in op.args]
        if None in args or not operator.staged:
            return {"Broadcast": OperatorPattern.BROADCAST, "Identity": OperatorPattern.ELEMENTWISE}.get(
                operator.family, OperatorPattern.OPAQUE
            )
        key = (name, tuple(args), op.attributes)
        if key not in self._found:
            self._found[key] = self._derived(operator, args, op)
        return self._found[key]

    def _derived(self, operator: Any, args: list, op: CallExpr) -> OperatorPattern:
        graph = Graph(operator.name)
        builder = Builder(graph)

        def staged(type: Any) -> Any:
            if isinstance(type, tuple):
                return tuple(map(staged, type))
            return Var(builder, graph.add_parameter("x", type=type))

        try:
            made = operator.function(builder, *map(staged, args), **operator.complete(op.attributes))
        except CompileError:
            return OperatorPattern.OPAQUE
        results = made if isinstance(made, tuple | list) else (made,)
        if not all(isinstance(r, Var) for r in results):
            return OperatorPattern.OPAQUE
        return combined([primitive_pattern(n) for n in _needed([r.node for r in results])])


def _needed(outputs: list[Node]) -> list[Apply]:
    found: dict[Apply, None] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node not in found:
            found[node] = None
            stack.extend(node.args)
    return list(found)


def primitive_pattern(node: Apply) -> OperatorPattern:
    """The pattern of one primitive's application."""
    prim = node.fn
    if not isinstance(prim, Primitive):
        return OperatorPattern.OPAQUE
    shape = getattr(node.type, "shape", ())
    match prim.kind:
        case "elementwise":
            shapes = [a.type.shape for a in node.args if isinstance(a.type, Array) and not isinstance(a, Constant)]
            return OperatorPattern.ELEMENTWISE if all(s == shape for s in shapes) else OperatorPattern.BROADCAST
        case "injective" if prim.name == "reshape" and _without_ones(node.type) == _without_ones(node.args[0].type):
            return OperatorPattern.BROADCAST  # axes of size 1 come and go
        case "injective":
            relation = relation_of(node)
            repeated = prim.name in REPEATS or (
                relation is not None
                and relation.result
                and all(x is not None for x in relation.result)
                and all(
                    None not in labels and tuple(x for x in relation.result if x in labels) == labels
                    for labels in relation.operands
                )
            )
            return OperatorPattern.BROADCAST if repeated else OperatorPattern.INJECTIVE
        case "reduce":
            return OperatorPattern.REDUCTION
        case "opaque":
            relation = relation_of(node)
            heavy = prim.name.startswith(SPATIAL) or (
                relation is not None and len(relation.operands) > 1 and bool(relation.contracted())
            )
            return OperatorPattern.OUT_FUSABLE if heavy else OperatorPattern.OPAQUE
        case "struct":
            return OperatorPattern.ELEMENTWISE
    return OperatorPattern.OPAQUE


def _without_ones(t: Any) -> tuple:
    return tuple(s for s in getattr(t, "shape", ()) if s != 1)


def combined(patterns: list[OperatorPattern]) -> OperatorPattern:
    """The pattern of what consists of several primitives."""
    heavy = [p for p in patterns if p >= OperatorPattern.REDUCTION]
    if not heavy:
        return max(patterns, default=OperatorPattern.ELEMENTWISE)
    return heavy[0] if len(heavy) == 1 else OperatorPattern.OPAQUE
