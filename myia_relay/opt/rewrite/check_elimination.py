"""Check elimination: comparisons and overflow flags that range analysis decides become constants, checks that cannot fail
are dropped.

    for i in range(1000): x[i]      =>  no IndexError, no i + 1000, no flag of i + 1, for an `x` of at least 1,000 elements

Runs when everything is differentiated. The overflow check of a product becomes one comparison if its range allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.types import NONE, Scalar
from ...ir.build import Builder, as_type
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Rewriter
from ..analysis.intervals import limits, of_value, operands_of
from ..analysis.ranges import Ranges, analyse


@dataclass(frozen=True)
class EliminateChecks:
    """The pass."""

    name: str = "check_elimination"

    def __call__(self, graph: Graph) -> Graph:
        return _DropChecks(analyse(graph)).rewrite(graph)


class _DropChecks(Rewriter):
    def __init__(self, ranges: Ranges):
        super().__init__()
        self.ranges = ranges

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        found = self.proven(builder, node, args) if isinstance(node.fn, Primitive) else None
        if found is None:
            return super().node(builder, node, args, attrs)
        self.changed = True
        return found

    def proven(self, builder: Builder, node: Apply, args: tuple[Node, ...]) -> Node | None:
        """The known value of an application."""
        ranges = self.ranges
        if node.fn.name == "check":
            holds = node in ranges.run and node not in ranges.fails
            return Constant(None, NONE, node.origin) if holds else None
        if node.fn.kind != "elementwise" or not isinstance(node.type, Scalar):
            return None
        interval = ranges.of.get(node)
        if interval is None:
            return None
        if interval[0] == interval[1]:
            return Constant(as_type(self.value(interval[0], node.type), node.type), node.type, node.origin)
        if node.fn.name == "mul_overflows":
            return self.product(builder, node, args)
        return None

    def value(self, number: int, t: Scalar) -> Any:
        return bool(number) if t.dtype == "bool" else number

    def product(self, builder: Builder, node: Apply, args: tuple[Node, ...]) -> Node | None:
        """A product with a constant can overflow on one side only: x * 3 overflows if x > (2 ** 63 - 1) // 3."""
        for k in (0, 1):
            factor, x = node.args[k], node.args[1 - k]
            if not isinstance(factor, Constant):  # of two numbers everything is known
                continue
            number, whole = of_value(factor.value), limits(x.type)
            known = self.ranges.interval(x)
            if number is None or known is None or whole is None:
                return None
            fitting = operands_of("mul_overflows", whole, number, whole)[0]
            if fitting is None:
                return None
            least, most = fitting
            below, above = known[0] < least, known[1] > most
            if below == above:
                return None
            bound = Constant(as_type(most if above else least, x.type), x.type, node.origin)
            builder.origin = node.origin
            return builder.emit(REGISTRY["gt" if above else "lt"], (args[1 - k], bound))
        return None


__all__ = ["EliminateChecks"]
