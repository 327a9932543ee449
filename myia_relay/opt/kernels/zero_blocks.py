"""What a structure-of-arrays kernel can skip for a whole block of rows, or for all: multiples of tangents that are zero.

A direction of a Jacobian only affects some parts of the model: a finger's angle moves the bones of that finger. For
each direction, differentiation adds to a number of a row a sum of multiples of a few elements of memory, which are the
same for all rows. If these are zero, so is the sum. A jump that all rows take or leave costs next to nothing. This is
only done to code that differentiation made, since 0 times infinity is not 0.

Input: the graphs of numbers that `opt.kernels.soa_kernels` makes. Output: groups of carried numbers of a loop
(`skippable`), and terms of sums (`terms`), each with the range of memory to test. Used by `backend.tvm.kernels.soa`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...abstract.types import Scalar
from ...ir.node import Apply, Constant, Graph, Node
from ..analysis.control import returned_parts

WORTH = 8  # operations of a group from which a jump pays
STRETCH = 16  # elements of memory that are tested at once


@dataclass
class CarriedGroup:
    """Carried numbers to which an iteration adds something that is zero where a range of memory is zero.

    Attributes:
        carried: which.
        nodes: what only they need.
        array, base, first, count: the stretch: elements of a parameter, from `base + first` on.
        factor: a number of the row that all of this is multiplied by, such as a weight: mostly zero where rows belong
        to few parts.
    """

    carried: list[int]
    nodes: list[Apply]
    array: Node
    base: Node | None
    first: int
    count: int
    factor: Node | None = None


@dataclass
class GroupFamily:
    """Groups that differ only in what they read, at places with equal distances: the directions of a Jacobian.

    Attributes:
        groups: in order.
        stride: from the stretch of one to that of the next.
        steps: reads of the first -> how far it is to the place that the next group reads.
    """

    groups: list[CarriedGroup]
    stride: int = 0
    steps: dict[Apply, int] = field(default_factory=dict)

    @property
    def first(self) -> CarriedGroup:
        """The group that represents all."""
        return self.groups[0]


@dataclass
class TangentTerm:
    """Terms that occur in some sums of a row: multiples of a range of memory that is the same for all rows.

    Attributes:
        sums: the additions, one behind the other.
        rests: their other operands.
        nodes: what only the terms need.
        group: the stretch.
    """

    sums: list[Apply]
    rests: list[Node]
    nodes: list[Apply]
    group: CarriedGroup


def same_for_all(graph: Graph, uniform: Iterable[Node]) -> tuple[set[Node], dict[Node, list[Apply]]]:
    """What is the same for all rows, given the parameters that are; and the users of each value, one for each operand."""
    same: set[Node] = set(uniform)
    users: dict[Node, list[Apply]] = {}
    for node in graph.nodes:
        if all(isinstance(a, Constant) or a in same for a in node.args):
            same.add(node)
        for arg in node.args:
            users.setdefault(arg, []).append(node)
    return same, users


def terms(graph: Graph) -> list[TangentTerm]:
    """The terms of a row that differentiation has made and that are zero for all rows where a stretch of memory is."""
    same, users = same_for_all(graph, graph.params[1:])
    reading, linear = sums_of(graph, same)
    position: dict[Node, int] = {node: k for k, node in enumerate(graph.nodes)}
    found: list[TangentTerm] = []
    for node in graph.nodes:
        if node.fn.name != "add" or node.origin.made_by not in ("jvp", "vjp") or not node.type.is_float or node in same:
            continue
        for term, rest in (node.args, node.args[::-1]):
            if term not in linear or term in same or users[term] != [node]:
                continue
            stretch = stretch_of(reads_of(term, reading))
            if stretch is None or stretch[1] is not None:
                continue
            nodes = only_for([term], graph, users, same, position)
            last = found[-1] if found else None
            if (
                last is not None
                and last.group.array is stretch[0]
                and last.group.first + last.group.count == stretch[2]
                and last.group.count + stretch[3] <= STRETCH
                and position.get(rest, -1) < position[last.sums[0]]
            ):
                last.sums.append(node)
                last.rests.append(rest)
                last.nodes += nodes
                last.group.count += stretch[3]
            else:
                found.append(TangentTerm([node], [rest], nodes, CarriedGroup([], [], *stretch)))
            break
    worth = [t for t in found if len(t.nodes) >= WORTH]
    parts = {n for t in worth for n in t.nodes}
    return [t for t in worth if parts.isdisjoint(t.sums)]  # inner terms are skipped with the outer one


def skippable(body: Graph, carried: int, uniform: set[int]) -> list[CarriedGroup]:
    """What an iteration of a loop need not do for all rows alike: to add multiples of tangents that are zero.

    Args:
        body: of the loop, with the sizes of groups of carried numbers as a flag.
        carried: how many numbers are carried.
        uniform: the parameters that are the same for all rows.
    """
    same, users = same_for_all(body, [body.params[k] for k in uniform])
    reading, linear = sums_of(body, same)
    position: dict[Node, int] = {node: k for k, node in enumerate(body.nodes)}
    groups, first, parts = [], 0, returned_parts(body)
    for size in body.flags.get("groups", ()):
        members = range(first, first + size)
        first += size
        terms = [
            added(parts[k], body.params[1 + k], users) if users[parts[k]] == [body.output] else None for k in members
        ]
        linear_terms = [term for term in terms if term is not None and term in linear]
        if len(linear_terms) < len(terms):
            continue
        stretch = stretch_of(set().union(*(reads_of(term, reading) for term in linear_terms)))
        if stretch is not None:
            nodes = only_for([x for k in members if isinstance(x := parts[k], Apply)], body, users, same, position)
            factors = {factor_of(term, reading, same) for term in linear_terms}
            factor = factors.pop() if len(factors) == 1 else None
            groups.append(CarriedGroup(list(members), nodes, *stretch, None if factor in nodes else factor))
    return groups if sum(len(g.nodes) for g in groups) >= WORTH * len(groups) else []


def families(groups: list[CarriedGroup], body: Graph) -> list[GroupFamily]:
    """Consecutive groups, in the longest families that are alike."""
    found: list[GroupFamily] = []
    parts = returned_parts(body)
    for group in groups:
        family = found[-1] if found else None
        steps = None if family is None else differences(family.groups[-1], group, body, parts)
        if family is not None and steps is not None:
            stride = group.first - family.groups[-1].first
            by_first = dict(zip(family.first.nodes, family.groups[-1].nodes))
            steps = {x: steps[y] for x, y in by_first.items() if y in steps}
            if len(family.groups) == 1 or (stride, steps) == (family.stride, family.steps):
                family.groups.append(group)
                family.stride, family.steps = stride, steps
                continue
        found.append(GroupFamily([group]))
    return found


def differences(a: CarriedGroup, b: CarriedGroup, body: Graph, parts: list[Node]) -> dict[Apply, int] | None:
    """The distances from the places that one group reads to those of another; None if anything else differs."""
    if (a.array, a.base, a.count, a.factor) != (b.array, b.base, b.count, b.factor):
        return None
    if len(a.nodes) != len(b.nodes) or len(a.carried) != len(b.carried):
        return None
    same: dict[Node, Node] = {body.params[1 + x]: body.params[1 + y] for x, y in zip(a.carried, b.carried)}
    found = {}
    for x, y in zip(a.nodes, b.nodes):
        if x.fn is not y.fn or x.attrs != y.attrs or x.type != y.type or len(x.args) != len(y.args):
            return None
        pairs = list(zip(x.args, y.args))
        if x.fn.name == "dynamic_index" and x.args[1] not in same:
            (base, first), (other, second) = place_of(x.args[1]), place_of(y.args[1])
            if base is not other:
                return None
            found[x] = second - first
            pairs.pop()
        if not all(same.get(p, p) is q or equal_constants(p, q) for p, q in pairs):
            return None
        same[x] = y
    alike = all(same.get(parts[x], parts[x]) is parts[y] for x, y in zip(a.carried, b.carried))
    return found if alike else None


def equal_constants(a: Node, b: Node) -> bool:
    """Whether two nodes are the same constant number, to the bit."""
    if not isinstance(a, Constant) or not isinstance(b, Constant) or a.type != b.type or not isinstance(a.type, Scalar):
        return False
    return np.asarray(a.value).tobytes() == np.asarray(b.value).tobytes()


def added(part: Node, old: Node, users: dict[Node, list[Apply]]) -> Node | None:
    """What an iteration adds to a carried number; None if it does anything else with it."""
    if not isinstance(part, Apply) or part.fn.name != "add" or old not in part.args or len(users[old]) > 1:
        return None
    if part.origin.made_by not in ("jvp", "vjp") or not part.type.is_float:
        return None
    return part.args[1] if part.args[0] is old else part.args[0]


def sums_of(graph: Graph, same: set[Node]) -> tuple[set[Node], set[Node]]:
    """The sums of a graph, found in one walk: values may be shared, so nothing here may look at operands again and again.

    Returns:
        The sums of products that read elements of arrays that are the same for all rows; and which values are sums of
        multiples of such elements and of nothing else.
    """
    reading: set[Node] = set()
    linear: set[Node] = set()
    for node in graph.nodes:
        name = node.fn.name
        if name == "dynamic_index" and node in same:
            reading.add(node)
            linear.add(node)
        elif name in ("add", "sub", "neg", "mul"):
            count = sum(a in reading for a in node.args)
            if count:
                reading.add(node)
            if name == "mul":
                tangents = [a for a in node.args if a in reading]
                is_linear = len(tangents) == 1 and tangents[0] in linear
            else:
                is_linear = all(a in linear for a in node.args)
            if is_linear:
                linear.add(node)
    return reading, linear


def reads_of(term: Any, reading: set[Node]) -> set[Any]:  # applications
    """The elements that a sum of multiples of them reads."""
    stack, seen = [term], {term}
    while stack:
        node = stack.pop()
        if node.fn.name != "dynamic_index":
            new = [a for a in node.args if a in reading and a not in seen]
            seen.update(new)
            stack += new
    return {n for n in seen if n.fn.name == "dynamic_index"}


def factor_of(term: Node, reading: set[Node], same: set[Node]) -> Node | None:
    """The number of the row by which a sum of products is multiplied as a whole."""
    if not isinstance(term, Apply) or term.fn.name != "mul":
        return None
    factor = next((a for a in term.args if a not in reading), None)
    return factor if isinstance(factor, Apply) and factor not in same else None


def stretch_of(reads: set[Any]) -> tuple[Node, Node | None, int, int] | None:
    """A range of one array that contains some elements of it; None if there is none, or one with large gaps."""
    places = set()
    for node in reads:
        places.add((node.args[0], *place_of(node.args[1])))
    if len({p[:2] for p in places}) != 1:
        return None
    offsets = [p[2] for p in places]
    array, base, _ = next(iter(places))
    count = max(offsets) - min(offsets) + 1
    return (array, base, min(offsets), count) if count <= 2 * len(offsets) else None


def place_of(index: Node) -> tuple[Node | None, int]:
    """An index as a base and an offset."""
    if isinstance(index, Constant):
        return None, int(index.value)
    if isinstance(index, Apply) and index.fn.name == "add" and isinstance(index.args[1], Constant):
        return index.args[0], int(index.args[1].value)
    return index, 0


def only_for(
    results: list[Apply], body: Graph, users: dict[Node, list[Apply]], same: set[Node], position: dict[Node, int]
) -> list[Apply]:
    """The applications that only these results need, in order; addresses stay outside.

    Costs as much as there are such applications, however large the body is.
    """
    mine, waiting = list(results), {}
    for node in mine:  # which grows meanwhile
        for arg in node.args:
            if not isinstance(arg, Apply) or arg is body.output or (arg in same and arg.fn.name != "dynamic_index"):
                continue
            waiting[arg] = waiting.get(arg, len(users[arg])) - 1
            if waiting[arg] == 0 and arg in position and arg not in results:
                mine.append(arg)
    return sorted(mine, key=position.__getitem__)


__all__ = ["GroupFamily", "CarriedGroup", "TangentTerm", "families", "skippable", "terms"]
