"""Which values are rounded: a rule for each operator, and the simulated graph.

    y = relu(conv2d(x, w) + b)    =>    y = q(relu(conv2d(q(x), q(w)) + q(b)))         q = simulated_quantize

A rule says of an application what it is for quantisation:

- `Contract(data, weights)`: a sum of products of data and weights, for which there are integer kernels. Its data are rounded where
  they are computed, so that all that reads them reads the same.
- `EXACT`: sums and maxima, which are part of the kernel of a sum of products.
- `KEEP`: its result has values of its first operand alone (a maximum over windows, a reshape). That is rounded in its place.
- `FLOAT`: anything else.

Of two contractions that are added, the first one is rounded too: the other one adds it while its sums are in registers.

Input: a typed graph of inputs and arrays. Output: a plan, and with scales the simulated graph. That which is realised sums
integers, in float64, which holds the sums exactly, and scales them in float32; that for training sums multiples in float32:

    conv2d(q(x), q(w))    =>    float32(conv2d(q(x) / s, q(w) / t)) * (s * t)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..abstract.types import Array
from ..ir.build import Builder
from ..ir.node import Apply, Constant, Graph, Node, applied
from ..ir.prim import REGISTRY
from ..ir.rewrite import emit_like, lookup, same_interface
from ..utils.errors import ValueError_, nearest
from .graphs import constant_of, static_nodes
from .scales import Grid

EXACT, KEEP, FLOAT = "exact", "keep", "float"


@dataclass(frozen=True)
class Contract:
    """Sums of products of data and weights.

    Attributes:
        data, weights: positions of the operands.
        axis: of the weights, along which each index is of an output of its own.
    """

    data: int = 0
    weights: int = 1
    axis: int = 0


CONTRACT = Contract()
Annotation = Contract | str
Rule = Callable[[Apply, int], Any]
"""(application, how many of the same operator come before it) -> what it is for quantisation."""

RULES: dict[str, Rule] = {}


def rule(operator: str) -> Callable[[Rule], Rule]:
    """Say how an operator is quantised: a decorator for a function of an application and its number.

    Args:
        operator: name of a primitive, as `f.ir()` shows it. Applications of one are numbered in program order.

    Returns:
        The decorator; it returns the function as it is. A later rule for an operator takes the place of an earlier one.

    Raises:
        ValueError_: there is no such operator.

    Example:
        >>> from myia_relay.quantization import FLOAT, rule
        >>> from myia_relay.quantization.annotation import RULES
        >>> before = RULES["conv2d"]
        >>> @rule("conv2d")
        ... def keep_the_first_in_float(node, number):
        ...     return FLOAT if number == 0 else before(node, number)
        >>> RULES["conv2d"] = before
    """
    if operator not in REGISTRY:
        raise ValueError_(f"quantisation: there is no operator {operator!r}{nearest(operator, list(REGISTRY))}")

    def register(function: Rule) -> Rule:
        RULES[operator] = function
        return function

    return register


for _name in ("add", "sub", "neg", "maximum", "minimum"):
    RULES[_name] = lambda node, number: EXACT
for _name in ("reshape", "transpose", "max_pool", "slice", "flip"):
    RULES[_name] = lambda node, number: KEEP
RULES["conv2d"] = lambda node, number: CONTRACT
RULES["dot"] = lambda node, number: (
    FLOAT if node.attrs["transpose_a"] else Contract(axis=0 if node.attrs["transpose_b"] else 1)
)
RULES["matvec"] = lambda node, number: Contract(1, 0, 1 if node.attrs["transpose"] else 0)


@dataclass
class Plan:
    """What is rounded in a graph.

    Attributes:
        graph: its parameters are inputs, then arrays.
        count: of the inputs.
        roles: application -> its annotation.
        rounded: values that are rounded, in program order.
        contractions: the applications that are computed in integers.
        static: what depends on no input.
    """

    graph: Graph
    count: int
    static: set[Node]
    roles: dict[Any, Annotation] = field(default_factory=dict)
    rounded: list[Node] = field(default_factory=list)
    contractions: list[Apply] = field(default_factory=list)


def annotate(graph: Graph, count: int, rules: Mapping[str, Any] | None = None) -> Plan:
    """Decide what is rounded.

    Args:
        graph: its parameters are inputs, then arrays.
        count: of the inputs.
        rules: operator -> an annotation, or a function as `rule` takes it, in place of the registered ones.
    """
    plan = Plan(graph, count, static_nodes(graph, count))
    own = {**RULES, **{name: r if callable(r) else (lambda *_, r=r: r) for name, r in (rules or {}).items()}}
    numbers: Counter[str] = Counter()
    for node in graph.nodes:
        if node in plan.static:
            continue
        name = applied(node)
        found = own[name](node, numbers[name]) if name in own else FLOAT
        numbers[name] += 1
        if isinstance(found, Contract):
            if _is_contraction(plan, node, found):
                plan.contractions.append(node)
            else:
                found = FLOAT
        elif found == EXACT and not (isinstance(node.type, Array) and node.type.is_float):
            found = FLOAT
        plan.roles[node] = found
    _choose(plan)
    return plan


def _is_contraction(plan: Plan, node: Apply, role: Contract) -> bool:
    data, weights = node.args[role.data], node.args[role.weights]
    known = isinstance(weights, Constant) or weights in plan.static
    return known and data not in plan.static and data.type.dtype == "float32" and weights.type.dtype == "float32"


def _choose(plan: Plan) -> None:
    """Find the values that are rounded."""
    chosen: set[Node] = set()
    sums: set[Node] = set()
    position: dict[Any, int] = {node: k for k, node in enumerate([*plan.graph.params, *plan.graph.nodes])}

    def source(node: Node) -> Node:
        while plan.roles.get(node) == KEEP and isinstance(node, Apply):
            node = node.args[0]
        return node

    for node in plan.contractions:
        role = plan.roles[node]
        assert isinstance(role, Contract)
        chosen.add(source(node.args[role.data]))
    for node in plan.graph.nodes:
        role = plan.roles.get(node, FLOAT)
        inside = [a for a in node.args if a in sums and source(a) not in chosen]
        if applied(node) in ("add", "sub") and role == EXACT and len(inside) == 2 and node.args[0] is not node.args[1]:
            first = min((source(a) for a in inside), key=lambda n: position[n])
            chosen.add(first)
            inside = inside[1:]
        if isinstance(role, Contract) or role in (EXACT, KEEP) and inside:
            sums.add(node)
    plan.rounded = sorted(chosen, key=lambda n: position[n])


@dataclass
class Scales:
    """To multiples of what values are rounded.

    Attributes:
        values: rounded value -> its grid.
        weights: contraction -> that of its weights.
    """

    values: dict[Node, Grid] = field(default_factory=dict)
    weights: dict[Node, Grid] = field(default_factory=dict)


@dataclass
class Simulated:
    """A simulated graph.

    Attributes:
        graph: it, with the parameters of the plan's graph.
        env: nodes of the plan's graph -> their counterparts.
    """

    graph: Graph
    env: dict[Node, Node]


def simulate(plan: Plan, scales: Scales, exact: bool = True) -> Simulated:
    """The simulated graph.

    Args:
        plan: what is rounded.
        scales: to multiples of what.
        exact: whether sums of products are those of integers, exact, as in the realised graph; for training, of multiples.
    """
    return _Simulation(plan, scales, exact).run()


class _Simulation:
    """Its construction.

    Attributes:
        grids: values that are rounded, or have the values of such ones -> their grid.
    """

    def __init__(self, plan: Plan, scales: Scales, exact: bool):
        self.plan, self.scales, self.exact = plan, scales, exact
        self.new, self.env = same_interface(plan.graph)
        self.b = Builder(self.new, plan.graph.origin)
        self.grids: dict[Node, Grid] = {}

    def run(self) -> Simulated:
        for param in self.plan.graph.params:
            self.b.origin = param.origin
            self.rounded(param)
        for node in self.plan.graph.nodes:
            self.b.origin = node.origin
            self.env[node] = self.value(node)
            if isinstance(self.env[node], Apply) and self.env[node].name is None:
                self.env[node].name = node.name
            self.rounded(node)
        self.new.output = lookup(self.env, self.plan.graph.output)
        return Simulated(self.new, self.env)

    def rounded(self, node: Node) -> None:
        """Round a value, if it is one that is."""
        grid = self.scales.values.get(node)
        if grid is not None:
            self.env[node] = self.quantized(self.env[node], grid)
            self.grids[node] = grid

    def quantized(self, value: Node, grid: Grid) -> Node:
        attrs = {"low": grid.low, "high": grid.high}
        return self.b.emit(REGISTRY["simulated_quantize"], (value, self.scale(grid.scale, value)), attrs)

    def scale(self, scale: np.ndarray, like: Node) -> Node:
        dtype = like.type.dtype
        return constant_of(scale.astype(dtype), Array(dtype, scale.shape))

    def steps(self, value: Node, grid: Grid) -> Node:
        """Which multiples of its scale a value has, exactly."""
        wide = self.b.emit(REGISTRY["cast"], (value,), {"dtype": "float64"})
        return self.b.emit(REGISTRY["div"], (wide, self.scale(grid.scale, wide)))

    def value(self, node: Apply) -> Node:
        role = self.plan.roles.get(node, FLOAT)
        if isinstance(role, Contract):
            return self.contraction(node, role)
        if role == KEEP and node.args[0] in self.grids:
            self.grids[node] = self.grids[node.args[0]]
        return emit_like(self.b, node, [lookup(self.env, a) for a in node.args])

    def contraction(self, node: Apply, role: Contract) -> Node:
        weights, grid = self.scales.weights[node], self.grids[node.args[role.data]]
        data = lookup(self.env, node.args[role.data])
        factor = self.quantized(lookup(self.env, node.args[role.weights]), weights)
        if not self.exact:
            args = {role.data: data, role.weights: factor}
            return self.b.emit(node.fn, (args[0], args[1]), node.attrs)
        args = {role.data: self.steps(data, grid), role.weights: self.steps(factor, weights)}
        sums = self.b.emit(node.fn, (args[0], args[1]), node.attrs)
        sums = self.b.emit(REGISTRY["cast"], (sums,), {"dtype": node.type.dtype})
        scale = grid.scale * weights.scale
        if scale.size > 1:
            scale = scale.reshape((1, -1, 1, 1) if node.fn.name == "conv2d" else (-1,))
        return self.b.emit(REGISTRY["mul"], (sums, self.scale(scale.reshape(()) if scale.size == 1 else scale, sums)))


__all__ = [
    "CONTRACT",
    "EXACT",
    "FLOAT",
    "KEEP",
    "RULES",
    "Contract",
    "Plan",
    "Scales",
    "Simulated",
    "annotate",
    "rule",
    "simulate",
]
