"""Loops and branches that compute only what others compute too are eliminated.

    tangents, total = loop(i, x, dx): x * i, dx * i            tangents, total = loop(i, x, dx): x * i, dx * i
    again = loop(i, x): x * i                            =>    again = total

A function and its derivative, used side by side, compute the function twice. The loop of the derivative contains the
function's own loop but computes more, so the two are not equal (equal loops are merged by `simplify`). Each application
of the smaller loop is looked up among those of the larger, with the same operands, through branches and inner loops;
each value that it carries must start and continue like a value that the larger one carries. The larger loop comes
before the smaller one, or can be moved there, so it raises what the smaller one would raise.

Source: value numbering over regions; "congruence of loops" as in B. Alpern, M. N. Wegman, F. K. Zadeck, "Detecting
equality of variables in programs" (POPL 1988): assume that the carried values are equal, and check that they stay so.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Struct
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, applied, applies
from ...ir.rewrite import Effects, Rewriter, all_graphs, lookup
from ...prims.ops.control import LEAD
from ..analysis.control import output_parts
from ..rewrite.control import pack, take
from ..rewrite.simplify import constant_key, freeze, holds_tape

CONTROL = ("cond", "for_loop", "while_loop")
MANY = 64  # loops over the same range, or branches on the same condition: each is compared with each other
Value = Any
"""The identity of a value: a node, a part of a node, a constant's key, a placeholder's type."""


@dataclass(frozen=True)
class EliminateRedundantLoops:
    """The pass."""

    name: str = "redundant_loops"

    def __call__(self, graph: Graph) -> Graph:
        if not any(sum(applied(n) in CONTROL for n in g.nodes) > 1 for g in all_graphs(graph)):
            return graph
        return _Eliminate().rewrite(graph)


class _Eliminate(Rewriter):
    acts_on = CONTROL

    def __init__(self):
        super().__init__()
        self.effects = Effects()

    def build(self, graph: Graph) -> Graph:
        plan = EliminationPlan(graph, self.effects)
        # While a recursion is being rebuilt, the effects of its calls are unknown.
        if graph in self.shells or not plan.dropped:
            return super().build(graph)
        self.changed = True
        new, env = self.interface(graph)
        builder = Builder(new)
        for node in (n for at in graph.nodes for n in (*plan.before.get(at, ()), at)):
            if node in env:
                continue  # moved
            larger, places = plan.dropped.get(node, (None, []))
            if larger in env:  # not if this one has moved before something that the larger one has not passed yet
                env[node] = _picked(builder, node, larger, env[larger], places)
            else:
                env[node] = self.node(builder, node, tuple(lookup(env, a) for a in node.args), self.inner(node))
        new.output = lookup(env, graph.output)
        return new


def _picked(b: Builder, node: Apply, larger: Apply, whole: Node, places: list[int]) -> Node:
    """The result of `node` as parts of that of the larger one."""
    b.origin = node.origin
    parts = [take(b, whole, (k,)) for k in places] if isinstance(larger.type, Struct) else [whole]
    return pack(b, parts) if isinstance(node.type, Struct) else parts[0]


class EliminationPlan:
    """The loops and branches of a graph whose work others also do.

    Attributes:
        dropped: these -> the larger ones, and where in the results of those theirs are.
        before: of these, those that the larger one followed: what moves in front of them.
    """

    def __init__(self, graph: Graph, effects: Effects):
        self.graph, self.effects = graph, effects
        self.dropped: dict[Apply, tuple[Apply, list[int]]] = {}
        self.before: dict[Apply, list[Apply]] = {}
        here = ValueTable(graph, {})
        groups: dict[tuple[Any, ...], list[Apply]] = {}
        for node in graph.nodes:
            name = applied(node)
            if name in CONTROL and not any(effects.of_graph(g) - {"raise"} for g in _graphs(node)):
                groups.setdefault((name, *(here.value(a) for a in node.args[: _lead(node)])), []).append(node)
        moved: set[Apply] = set()
        for alike in (g for g in groups.values() if 1 < len(g) <= MANY):
            for small in alike:
                for large in () if holds_tape(small.type) else alike:
                    if large is small or large in self.dropped or small in moved or _size(small) > _size(large):
                        continue
                    found = _found(small, large, here, here)
                    if found is not None and (
                        large in moved or self.precedes(large, small) or self.move(large, small, found)
                    ):
                        moved.add(large)
                        self.dropped[small] = large, found.places
                        break

    def precedes(self, one: Apply, other: Apply) -> bool:
        nodes = self.graph.nodes
        return nodes.index(one) < nodes.index(other)

    def move(self, large: Apply, small: Apply, found: Found) -> bool:
        """Move an application, and what it is computed from, before another one; returns whether that cannot be observed."""
        nodes = self.graph.nodes
        between = nodes[nodes.index(small) : nodes.index(large)]
        needed, wanted = [large], set(large.args)
        for node in reversed(between):
            if node in wanted:
                if node is small or self.effects.of_node(node) or holds_tape(node.type):
                    return False
                needed.append(node)
                wanted.update(node.args)
        if self.effects.of_node(small):
            if not self.raise_alike(small, large, found.twins):
                return False
        elif self.effects.of_node(large) and any(self.effects.of_node(n) for n in between):
            return False
        self.before[small] = needed[::-1]
        return True

    def raise_alike(self, small: Apply, large: Apply, twins: Mapping[Apply, Apply]) -> bool:
        """Whether two loops or branches raise the same errors in the same order: what raises in one corresponds to what
        raises in the other.
        """
        for mine, other in zip(_graphs(small), _graphs(large), strict=True):
            raising = [n for n in mine.nodes if self.effects.of_node(n)]
            if list(dict.fromkeys(twins.get(n) for n in raising)) != [
                n for n in other.nodes if self.effects.of_node(n)
            ]:
                return False
            if not all(self.raise_alike(n, twins[n], twins) for n in raising if applied(n) in CONTROL):
                return False
        return True


def _lead(node: Apply) -> int:
    """How many operands are not those of the graphs: a condition, or bounds."""
    return 1 if applied(node) == "cond" else LEAD[applied(node)]


def _graphs(node: Apply) -> list[Graph]:
    """The branches, or the body and the condition."""
    names = ("then", "orelse") if applied(node) == "cond" else ("body", "cond")
    return [node.attrs[name] for name in names if name in node.attrs]


def _size(node: Apply) -> int:
    return sum(len(g.nodes) for g in _inside(node))


def _inside(node: Apply) -> list[Graph]:
    """The graphs of a loop or branch and all inside of them."""
    return list(dict.fromkeys(g for own in _graphs(node) for g in all_graphs(own)))


@dataclass
class Found:
    """A loop or branch, found completely in another one.

    Attributes:
        places: the positions of its results among those of the other one.
        twins: its applications -> those of the other one that are the same.
    """

    places: list[int]
    twins: dict[Apply, Apply]


def _results(graph: Graph) -> list[tuple[Node, int | None]]:
    """The parts of what a graph returns: nodes, and positions in the results of a loop or branch that is returned as a whole."""
    out, parts = graph.output, output_parts(graph)
    if applied(out) in CONTROL and isinstance(out.type, Struct):
        return [(out, k) for k in range(len(out.type.elems))]
    if parts is None and isinstance(out.type, Struct):
        return []  # made elsewhere
    return [(p, None) for p in ([out] if parts is None else parts)]


class ValueTable:
    """The values of a graph, looked up by their identity.

    Args:
        graph: of the larger application.
        given: its parameters -> what they are, for two parameters of one operand the same.
    """

    def __init__(self, graph: Graph, given: Mapping[Node, Value]):
        self.graph, self.given = graph, given

    @functools.cached_property
    def control(self) -> dict[str, list[Apply]]:
        """Its loops and branches, by name."""
        return {name: [n for n in self.graph.nodes if applied(n) == name] for name in CONTROL}

    @functools.cached_property
    def known(self) -> dict[Any, Apply]:
        """What each application is -> the first that is that."""
        found: dict[Any, Apply] = {}
        for node in self.graph.nodes:
            if applied(node) not in CONTROL:
                found.setdefault(_key(node, tuple(self.value(a) for a in node.args)), node)
        return found

    def value(self, node: Node) -> Value:
        """What a value is."""
        if isinstance(node, Constant):
            return "constant", constant_key(node)
        if applied(node) == "undef":
            return "undef", node.type
        if applies(node, "get_item") and applied(node.args[0]) in CONTROL:
            return node.args[0], node.attrs["index"]
        if applied(node) in CONTROL:
            return (node, None) if isinstance(node.type, Struct) else (node, 0)
        return self.given.get(node, node)

    def outputs(self) -> list[Value]:
        """What its results are, part by part."""
        return [self.value(p) if k is None else (p, k) for p, k in _results(self.graph)]


def _key(node: Apply, operands: tuple[Value, ...]) -> Any:
    """What an application is; different for each one with attributes that say nothing."""
    key = (node.fn, operands, tuple((k, freeze(node.attrs[k])) for k in sorted(node.attrs)))
    try:
        hash(key)
    except TypeError:
        return node
    return key


class _Match:
    """Searches everything that a graph does in another one.

    Args:
        graph: the smaller one.
        env: its parameters -> what they are in the larger one; without those that are not there.
        region: the larger one.
    """

    def __init__(self, graph: Graph, env: dict[Node, Value], region: ValueTable):
        self.graph, self.env, self.region = graph, env, region
        self.parts: dict[Node, list[Value]] = {}  # of control applications
        self.twins: dict[Apply, Apply] = {}

    def run(self) -> list[Value] | None:
        """What the results are in the larger graph, part by part; None where something is missing."""
        made = output_parts(self.graph) is not None
        if not all(self.node(n) for n in self.graph.nodes if not (made and n is self.graph.output)):
            return None
        values = [self.value(p) if k is None else self.parts[p][k] for p, k in _results(self.graph)]
        return None if None in values else values

    def value(self, node: Node) -> Value | None:
        """What a value is in the larger graph."""
        if isinstance(node, Constant):
            return "constant", constant_key(node)
        if applied(node) == "undef":
            return "undef", node.type
        return self.env.get(node)

    def node(self, node: Apply) -> bool:
        """Look for an application; returns whether it is there."""
        name = applied(node)
        if name == "undef":
            return True
        if name in CONTROL:
            for larger in self.region.control.get(name, ()):
                found = _found(node, larger, self, self.region)
                if found is not None:
                    self.twins |= {**found.twins, node: larger}
                    self.parts[node] = [(larger, k) for k in found.places]
                    if not isinstance(node.type, Struct):
                        self.env[node] = self.parts[node][0]
                    return True
            return False
        if name == "get_item" and node.args[0] in self.parts:
            self.env[node] = self.parts[node.args[0]][node.attrs["index"]]
            return True
        operands = tuple(self.value(a) for a in node.args)
        twin = None if None in operands else self.region.known.get(_key(node, operands))
        if twin is None or twin.type != node.type:
            return False
        self.twins[node] = twin
        self.env[node] = self.region.value(twin)
        return True


def _found(small: Apply, large: Apply, here: _Match | ValueTable, there: ValueTable) -> Found | None:
    """Search everything that a loop or branch does in another one.

    Args:
        small: what may be a part.
        large: of this.
        here: tells what the operands of `small` are,
        there: and those of `large`.
    """
    lead, carried = _lead(small), small.attrs.get("carried", 0)
    if [here.value(a) for a in small.args[:lead]] != [there.value(a) for a in large.args[:lead]]:
        return None
    for node in (small, large):
        count = len(node.type.elems) if isinstance(node.type, Struct) else 1
        if any(len(_results(g)) != count for g in _graphs(node) if g is not node.attrs.get("cond")):
            return None
    if any(isinstance(n.fn, Graph) for g in _graphs(small) for n in g.nodes):
        return None  # of functions nothing is known
    operands = [there.value(a) for a in large.args[lead:]]
    paired = _paired(small, large, here, operands)
    if paired is None:
        return None
    index = int(applied(small) == "for_loop")  # parameters before those of the operands
    first = large.attrs.get("carried", 0)
    twins: dict[Apply, Apply] = {}
    outputs: list[list[Value]] = []
    wanted: list[list[Value]] = []
    for mine, other in zip(_graphs(small), _graphs(large), strict=True):
        given: dict[Node, Value] = {
            p: ("operand", v) for p, v in zip(other.params[index + first :], operands[first:], strict=True)
        }
        env: dict[Node, Value] = dict(zip(mine.params[:index], other.params[:index]))
        for k, param in enumerate(mine.params[index:]):
            if k < carried:
                env[param] = other.params[index + paired[k]]
            else:
                value = here.value(small.args[lead + k])
                if value is not None:
                    env[param] = ("operand", value)
        region = ValueTable(other, given)
        match = _Match(mine, env, region)
        results = match.run()
        if results is None:
            return None
        twins |= match.twins
        outputs.append(region.outputs())
        wanted.append(results)
    if applied(small) == "cond":
        places = _common(wanted, outputs)
        return None if places is None else Found(places, twins)
    if any(wanted[0][k] != outputs[0][paired[k]] for k in range(carried)) or wanted[1:] != outputs[1:]:
        return None
    return Found(paired, twins)


def _paired(small: Apply, large: Apply, here: _Match | ValueTable, operands: list[Value]) -> list[int] | None:
    """For each value that a loop carries, the corresponding value of another loop: with the same name, type and initial
    value.
    """
    paired: list[int] = []
    mine, other = (_graphs(loop)[0].params[1 if applied(loop) == "for_loop" else 0 :] for loop in (small, large))
    for k in range(small.attrs.get("carried", 0)):
        value = here.value(small.args[_lead(small) + k])
        alike = [
            j
            for j in range(large.attrs["carried"])
            if j not in paired and value is not None and operands[j] == value and other[j].type == mine[k].type
        ]
        named = [j for j in alike if other[j].name == mine[k].name]
        if not alike:
            return None
        paired.append((named or alike)[0])
    return paired


def _common(wanted: list[list[Value]], outputs: list[list[Value]]) -> list[int] | None:
    """The positions that have each wanted value on all branches."""
    places: list[int] = []
    for values in zip(*wanted, strict=True):
        fits = [k for k, outs in enumerate(zip(*outputs, strict=True)) if list(outs) == list(values)]
        if not fits:
            return None
        places.append(fits[0])
    return places


__all__ = ["EliminateRedundantLoops"]
