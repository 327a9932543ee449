"""The sharding of a program's values when the rows of its data are processed block by block: the analysis for
`opt.kernels.row_blocks`.

Kinds (`opt.kernels.sharding_rules`) are propagated from operands to results, and through the bodies of loops until they
agree. If a whole array meets a block, it is divided into blocks too where possible: arguments with as many rows, and
arrays filled with one number. A `Demand` carries this request out of the body of a loop, to the place where the array
is made.

Input: an optimised graph, and an axis of an argument. Output: a `Division` of its applications.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.node import Apply, Constant, Graph, Node, Parameter, applied
from ...ir.prim import Primitive
from ...ir.rewrite import Effects
from ...prims.ops.control import LEAD
from ..analysis.control import output_parts
from .sharding_rules import (
    SUM,
    WHOLE,
    Added,
    Along,
    NoRule,
    Sharding,
    Shardings,
    is_filled,
    is_zero,
    leaves,
    normal,
    require,
    rule_of,
)

FIRST = LEAD["for_loop"]
CHECKS = frozenset({"raise"})  # checks of whole values: they fail in the first block, or in none
MOST_DEMANDS = 100  # each makes one more array per block


class Demand(Exception):
    """A parameter of a body, considered whole so far, must be of another kind.

    Attributes:
        node: the parameter.
        kind: the required kind.
    """

    def __init__(self, node: Parameter, kind: Sharding):
        self.node = node
        self.kind = kind


class _Again(Exception):
    """One more value is known to be divided into blocks: the analysis starts again."""


@dataclass
class Division:
    """A program in three parts: before the blocks, in each block, and after them.

    Attributes:
        kinds: of what each block does.
        known: what has been made a block: arguments, and what is filled with a number.
        blocks: the applications of each block.
        after: those that need its results, or all rows.
        ahead: those of the blocks, and arguments, that may be had before, for all rows.
        results: the applications of the blocks that these need, or whoever runs the program.
    """

    kinds: Shardings
    known: dict[Node, Along]
    blocks: list[Apply]
    after: list[Apply]
    ahead: set[Node]

    @property
    def results(self) -> list[Apply]:
        used = {a for node in self.after for a in node.args} | {self.kinds.graph.output}
        return [node for node in self.blocks if node in used and node not in self.ahead]


def divide(graph: Graph, argument: Parameter, axis: int) -> Division | None:
    """Divide a program along an axis of an argument; None if nothing can be divided, or not cleanly."""
    analysis = ShardingAnalysis(graph, argument.type.shape[axis])
    analysis.known[argument] = Along(axis)
    for _ in range(MOST_DEMANDS):
        try:
            return analysis.divide()
        except _Again:
            analysis.memo.clear()
        except NoRule:
            return None
    return None


class ShardingAnalysis:
    """The kinds of the values of a program.

    Attributes:
        top: the program.
        size: how many rows there are.
        known: values that have been made blocks.
        memo: what is known of graphs, by their parameters' kinds.
    """

    def __init__(self, top: Graph, size: int):
        self.top = top
        self.size = size
        self.known: dict[Node, Along] = {}
        self.memo: dict[tuple[Graph, tuple[Sharding, ...]], Shardings] = {}
        self.effects = Effects()

    def divide(self) -> Division:
        """The parts of the program."""
        kinds = Shardings(self.top, {p: self.known.get(p, WHOLE) for p in self.top.params})
        blocks: dict[Apply, None] = {}
        after: dict[Apply, None] = {}
        ahead: dict[Node, None] = dict.fromkeys(self.known)
        for node in self.top.nodes:
            if any(a in after for a in node.args):
                after[node] = None
                continue
            early = self._is_cheap(node) and all(a in ahead or a not in blocks for a in node.args)
            try:
                kind = self.kind(node, kinds)
            except NoRule:
                kind = None
            if (kind is None or kind is SUM) and early or kind is WHOLE and not any(a in blocks for a in node.args):
                kinds.of[node] = WHOLE
            elif kind is None or self._is_last(node, kinds):
                after[node] = None
            else:
                kinds.of[node] = kind
                blocks[node] = None
                if early:
                    ahead[node] = None
        return Division(kinds, self.known, list(blocks), list(after), set(ahead))

    def _is_cheap(self, node: Apply) -> bool:
        """Whether an application may be computed once more, for all rows: before the blocks, for values that they all
        need.
        """
        return (
            isinstance(node.fn, Primitive)
            and node.fn.kind in ("elementwise", "injective", "reduce")
            and not node.fn.effect
        )

    def _is_last(self, node: Apply, kinds: Shardings) -> bool:
        """Whether an application that a block could do is better done once, with the complete sums."""
        if applied(node) == "make_struct":
            return True
        if applied(node) == "get_item" or node in self.known:
            return False
        return not any(isinstance(kind, Along) for kind in leaves([self.of(a, kinds) for a in node.args]))

    def of(self, node: Node, kinds: Shardings) -> Sharding:
        """The kind of an operand."""
        return self.known.get(node, WHOLE) if isinstance(node, Constant) else kinds.of[node]

    def inside(self, graph: Graph, params: tuple[Sharding, ...]) -> Shardings:
        """The kinds in a body, from those of its parameters."""
        found = self.memo.get((graph, params))
        if found is None:
            found = Shardings(graph, dict(zip(graph.params, params, strict=True)))
            for node in graph.nodes:
                found.of[node] = self.kind(node, found)
            found.output = self.of(graph.output, found)
            self.memo[graph, params] = found
        return found

    def kind(self, node: Apply, kinds: Shardings) -> Sharding:
        """The kind of a result.

        Raises:
            NoRule: there is none.
        """
        args = [self.of(a, kinds) for a in node.args]
        if node in self.known:
            if any(k is not WHOLE for k in args):
                raise NoRule
            return self.known[node]
        if all(k is WHOLE for k in args):
            return WHOLE
        if not isinstance(node.fn, Primitive) or node.fn.effect or not self.effects.of_node(node) <= CHECKS:
            raise NoRule
        return normal(rule_of(node, args)(self, node, args, kinds))

    def demand(self, node: Node, kind: Sharding, kinds: Shardings) -> None:
        """Require that a whole value be of another kind; returns if that is left open.

        Raises:
            NoRule: it cannot be.
            Demand: it is a parameter of an inner graph, and the operand must change.
            _Again: it will be in the next round.
        """
        if isinstance(node, Parameter) and node.graph is not self.top:
            raise Demand(node, kind)
        if (
            node in self.known
            or not isinstance(kind, Along)
            or self.size not in getattr(node.type, "shape", ())[kind.axis :][:1]
        ):
            raise NoRule
        if isinstance(node, Parameter) or is_filled(node, kind.axis):
            self.known[node] = kind
            raise _Again
        if isinstance(node, Constant):
            raise NoRule
        if kinds.graph is not self.top:
            kinds.doubtful = True
            return
        source = self.source(node)
        if source is None:
            raise NoRule
        self.known[source] = Along(source.type.shape.index(self.size))
        raise _Again

    def source(self, node: Node) -> Parameter | None:
        """An argument from which a whole value is computed, and which may be divided too."""
        stack, seen = [node], {node}
        while stack:
            top = stack.pop()
            if isinstance(top, Parameter) and top not in self.known and self.size in getattr(top.type, "shape", ()):
                return top
            found = [a for a in getattr(top, "args", ()) if a not in seen]
            seen.update(found)
            stack += found
        return None

    def loop(self, node: Apply, args: Sequence[Sharding], kinds: Shardings) -> Sharding:
        """The kinds of what a counted loop carries from iteration to iteration.

        Raises:
            NoRule: its bounds are no whole values, a loop constant is a partial sum, or no kinds are found that agree.
        """
        body, count = node.attrs["body"], node.attrs["carried"]
        inner = [
            WHOLE,
            *(Added(p) if isinstance(kind, Added) else kind for p, kind in zip(body.params[1:], args[FIRST:])),
        ]
        outs = output_parts(body)
        if (
            outs is None
            or any(k is not WHOLE for k in args[:FIRST])
            or any(isinstance(k, Added) for k in inner[1 + count :])
        ):
            raise NoRule
        for _ in range(MOST_DEMANDS):
            try:
                found = self.inside(body, tuple(inner))
            except Demand as demand:
                k = body.params.index(demand.node)
                inner[k] = self.met(node, k, demand.kind, kinds)
                continue
            results = [self.of(out, found) for out in outs]
            differs = [k for k, (out, kind) in enumerate(zip(outs, results), 1) if kind != inner[k]]
            differs = [k for k in differs if inner[k] is not SUM or not is_zero(outs[k - 1])]
            if not differs:
                require(not found.doubtful)
                kinds.bodies[node] = found
                return tuple(self.carried(node, k, inner[k], args[FIRST + k - 1]) for k in range(1, 1 + count))
            for k in differs:
                if inner[k] is not WHOLE:
                    raise NoRule
                inner[k] = self.met(node, k, results[k - 1], kinds)
        raise NoRule

    def met(self, loop: Apply, k: int, kind: Sharding, kinds: Shardings) -> Sharding:
        """The kind of a parameter of a loop's body from which another kind is required, if its operand need not change.

        Raises:
            NoRule: a sum is demanded of a loop constant.
        """
        operand, body = loop.args[FIRST + k - 1], loop.attrs["body"]
        if kind is SUM or isinstance(kind, Added):
            if k > loop.attrs["carried"]:
                raise NoRule
            if loop.graph is self.top:
                return Added(body.params[k])
            if is_zero(operand):
                return SUM
            kind = Added()
        self.demand(operand, kind, kinds)
        return kind

    def carried(self, loop: Apply, k: int, inner: Sharding, outer: Sharding) -> Sharding:
        """The kind of a carried value after the loop."""
        if not isinstance(inner, Added):
            return inner
        return outer if isinstance(outer, Added) else Added((loop, k))


__all__ = ["Division", "Shardings", "divide"]
