"""What is added to a part of a part is added there alone, in derived code.

    index_add(s, slice_add(0, v, o), i)                  =>  s[i, o:] += v
    x with row k zero, then s += v elsewhere, += r at k  =>  x[k] = r; s += v
    x[k] = change_2(change_1(x[k]))                      =>  x[k] = change_1(x[k]); x[k] = change_2(x[k])

The adjoint of `L[i, :i]` is a row of zeros with a part that is not, and that of `A[i, j] = v` takes the cotangent of the row i away
and adds it again without its entry j. Both take time for whole rows, or whole arrays. Written as reads and updates of parts,

    update(s, add(read(s, i), v, o), i)

each is one update in place of the part itself: see `opt.analysis.fusion`, `updates`.

Input: a closed typed graph, differentiated, after `accumulate` and `partial_sums`. Output: the same; what is not used any more is
left to dead-code elimination. The order of the terms changes, so sums that users wrote are left alone.

Source: M. Peng and C. Dubach, "LAGrad: statically optimized differentiable programming in MLIR" (CC 2023), section 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applies
from ...ir.prim import REGISTRY, adds_to_part, update_of
from ...ir.rewrite import Env, Rewriter, lookup
from ...ir.updates import is_update, reads_same_part, same_position
from ..rewrite.rules import filled

Term = tuple[tuple[Apply, ...], Node]  # the updates that lead to a part, outermost first, and what is added there


@dataclass(frozen=True)
class NestUpdates:
    """The pass, for programs without transforms."""

    name: str = "nested_updates"

    def __call__(self, graph: Graph) -> Graph:
        return _Nest().rewrite(graph)


class _Nest(Rewriter):
    acts_on = ("index_add", "slice_add", "dynamic_update", "dynamic_update_slice")

    def build(self, graph: Graph) -> Graph:
        plan = _NewUpdates(graph)
        self.changed |= bool(plan.instead)
        return self.rebuilt(graph, plan.instead)


class _NewUpdates:
    """The updates of a graph that are written anew.

    Attributes:
        instead: the updates, and what emits each.
    """

    def __init__(self, graph: Graph):
        self.count: dict[Node, int] = {graph.output: 1}
        for node in graph.nodes:
            for arg in node.args:
                self.count[arg] = self.count.get(arg, 0) + 1
        self.instead: dict[Node, Callable[[Builder, Env], Node]] = {}
        absorbed: set[Node] = set()
        for node in reversed(graph.nodes):
            update = update_of(node)
            if update is None or node in absorbed or not node.origin.is_adjoint:
                continue
            found = self.added(node) if update.adds else self.assigned(node)
            if found is not None:
                steps, gone = found
                absorbed |= gone
                self.instead[node] = _emitter(*steps)

    def is_own(self, node: Node) -> TypeGuard[Apply]:
        """Whether a node is derived, and one other looks at it."""
        return isinstance(node, Apply) and self.count.get(node) == 1 and node.origin.is_adjoint

    def chain(self, node: Node, adds: bool = False) -> tuple[list[Apply], Node]:
        """The updates of which a value that nothing else looks at is the last, innermost first, and what they change.

        Args:
            node: the value.
            adds: only those that add.
        """
        steps = []
        while self.is_own(node) and (adds_to_part(node) if adds else is_update(node)):
            steps.append(node)
            node = node.args[0]
        return steps[::-1], node

    def terms(self, path: tuple[Apply, ...], value: Node) -> Iterator[Term]:
        """What a value adds to the parts of the part to which a path leads: the value itself, if nothing is known of it."""
        steps = _changes_of_zeros(value)
        if steps:
            for step in steps:
                yield from self.terms((*path, step), step.args[1])
        elif self.is_own(value) and applies(value, "add") and all(a.type == value.type for a in value.args):
            inside = [list(self.terms(path, a)) for a in value.args]
            if all(len(found) == 1 and found[0][0] == path for found in inside):
                yield path, value
            else:
                yield from (term for found in inside for term in found)
        else:
            yield path, value

    def added(self, node: Apply) -> tuple[tuple, set[Node]] | None:
        """The first array, what is assigned and what is added, for an update that adds; None where it stays."""
        steps, base = self.chain(node.args[0], adds=True)
        if steps and self.is_own(base) and _clears(base, node):
            assigned = self.assignments(base, node.args[1], base.args[0])
            added = [t for s in steps for t in self.terms((s,), s.args[1])]
            return (base.args[0], assigned, added), {base, *steps}
        terms = list(self.terms((node,), node.args[1]))
        return None if terms == [((node,), node.args[1])] else ((node.args[0], [], terms), set())

    def assigned(self, node: Apply) -> tuple[tuple, set[Node]] | None:
        """The same for an update that takes the place of what was there."""
        value = node.args[1]
        steps = self.assignments(node, value, node.args[0])
        written = [((node,), value)], [((node, value), value.args[1])] if is_update(value) else []
        return None if [term for term, _ in steps] in written else ((node.args[0], steps, []), set())

    def assignments(self, place: Apply, value: Node, array: Node) -> list[tuple[Term, bool]]:
        """The steps in which a part of an array gets a value, each with whether it adds: where the value is the part itself with
        several changes, these.
        """
        steps, base = self.chain(value)
        if not steps or not reads_same_part(base, array, place):
            return [(((place,), value), False)]
        out: list[tuple[Term, bool]] = []
        for step in _uncancelled(steps, base):
            if adds_to_part(step):
                out += [(term, True) for term in self.terms((place, step), step.args[1])]
            else:
                out.append((((place, step), step.args[1]), False))
        return out


def _changes_of_zeros(value: Node) -> list[Apply]:
    """The updates of zeros that a value consists of, innermost first; none where it is something else.

    Others may look at it, too: such updates are as cheap where they belong as they are here.
    """
    steps = []
    while is_update(value) and value.origin.is_adjoint:
        steps.append(value)
        value = value.args[0]
    steps.reverse()
    return steps if steps and filled(value) == 0 and all(map(adds_to_part, steps[1:])) else []


def _clears(node: Apply, add: Apply) -> bool:
    """Whether an update makes that part zero to which another one adds."""
    update, other = update_of(node), update_of(add)
    assert other is not None
    return (
        update is not None
        and not update.adds
        and update.window == other.window
        and node.attrs["axis"] == add.attrs["axis"]
        and node.args[1].type == add.args[1].type
        and same_position(node.args[2], add.args[2])
        and filled(node.args[1]) == 0
    )


def _uncancelled(steps: Sequence[Apply], base: Node) -> Sequence[Apply]:
    """Changes of a part without those that make some of it zero and add again what was there."""
    while steps and not adds_to_part(steps[0]):
        clear = steps[0]
        adding = list(itertools.takewhile(adds_to_part, steps[1:]))
        back = [s for s in adding if _clears(clear, s) and reads_same_part(s.args[1], base, s)]
        if not back:
            break
        steps = [s for s in steps[1:] if s is not back[0]]
    return steps


def _emitter(
    array: Node, assigned: Sequence[tuple[Term, bool]], added: Sequence[Term]
) -> Callable[[Builder, Env], Node]:
    """What emits updates of an array, one after the other."""

    def emit(builder: Builder, env: Env) -> Node:
        whole = lookup(env, array)
        for (path, value), adds in (*assigned, *((term, True) for term in added)):
            whole = _changed(builder, env, whole, path, value, adds)
        return whole

    return emit


def _changed(builder: Builder, env: Env, whole: Node, path: Sequence[Apply], value: Node, adds: bool) -> Node:
    """An array with a part of a part changed."""
    parts = [whole]
    for step in path[:-1]:
        update = update_of(step)
        assert update is not None
        attrs = {"axis": step.attrs["axis"]}
        if update.window:
            attrs["length"] = step.args[1].type.shape[step.attrs["axis"]]
        parts.append(builder.emit(REGISTRY[update.reads], (parts[-1], lookup(env, step.args[2])), attrs))
    new = lookup(env, value)
    for step, part in zip(reversed(path), reversed(parts)):
        update = update_of(step)
        assert update is not None
        name = update.writes if step is not path[-1] or not adds else update.increases
        new = builder.emit(REGISTRY[name], (part, new, lookup(env, step.args[2])), {"axis": step.attrs["axis"]})
    return new


__all__ = ["NestUpdates"]
