"""Arrays that a loop changes in place are restored while the backward pass walks back, in place of a copy for each iteration.

    for i: x' = update(x, v, p)        kept: old = read(x, p)          backward: x = update(x', old, p)

The backward version of a loop reads the array as it was in each iteration. Its *versions* are the values that it has one after the
other within an iteration: from the carried value, through updates of parts, inner loops and branches, to the value that is carried
on. Each is the next one with an update undone, so the forward pass keeps only what its updates overwrite. The backward loop begins
with the final array, carries it, and hands on what it was before. An inner loop, or a branch, that is undone begins with what the
array was after it, and returns what it was before it.

All of this consists of ordinary operations, whose adjoints are made in the same way: derivatives of higher order restore likewise.

Source: L. Hascoet and V. Pascual, "The Tapenade automatic differentiation tool" (TOMS 2013),
on snapshots of what is overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...abstract.dims import Dim, run_time_symbols
from ...abstract.types import Array, type_symbols
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, Parameter, applied, applies
from ...ir.prim import REGISTRY, Primitive, adds_to_part, update_of
from ...ir.rewrite import emit_like
from ...ir.updates import is_update, reads_same_part
from ...prims.ops.control import LEAD

LEAST = 3  # elements that are kept for each iteration, from which restoring pays
MANY = 1 << 40
LISTED = 8  # what a number costs in a list, as which a part is kept whose size a run decides
Part = tuple[Node, int | None]  # a part of the result of an application; None: the whole


@dataclass
class Lineage:
    """How a part of a graph's result is a changed parameter.

    Attributes:
        origin: the parameter.
        steps: the updates, and the parts of loops and branches, from the result to the parameter.
    """

    origin: Parameter
    steps: list[Apply | Part]


def lineage(graph: Graph, part: int | None) -> Lineage | None:
    """How a part of a graph's result is a changed parameter; None where it is something else, or where that cannot be undone."""
    node: Node = graph.output
    if part is not None:
        if not applies(node, "make_struct"):
            return None
        node = node.args[part]
    if not isinstance(node.type, Array) or run_time_symbols(type_symbols(node.type)):
        return None
    steps: list[Apply | Part] = []
    while not isinstance(node, Parameter):
        if is_update(node):
            steps.append(node)
            node = node.args[0]
            continue
        run, part = _taken(node)
        before = _before(run, part)
        if before is None:
            return None
        steps.append((run, part))
        node = before
    return Lineage(node, steps) if node in graph.params else None


def _taken(node: Node) -> Part:
    """The application of whose result a node is a part."""
    return (node.args[0], node.attrs["index"]) if applies(node, "get_item") else (node, None)


def _before(run: Node, part: int | None) -> Node | None:
    """The operand of a loop or a branch of which a part of its result is a changed version."""
    if applies(run, *LEAD) and part is not None:
        body: Graph = run.attrs["body"]
        name, found = applied(run), lineage(body, part)
        if found is None or found.origin is not body.params[part + (name == "for_loop")]:
            return None
        return run.args[LEAD[name] + part]
    if applies(run, "cond"):
        sides = [run.attrs[k] for k in ("then", "orelse")]
        ways = [lineage(g, part) for g in sides]
        places = [g.params.index(w.origin) if w is not None else None for g, w in zip(sides, ways)]
        if places[0] is not None and places[0] == places[1]:
            return run.args[1 + places[0]]
    return None


def nested(update: Apply) -> list[Apply]:
    """The updates of a part that an update puts back where it was read, the last first; none where it puts something else there.

    update(x, update(read(x, i), v, j), i): only element j of part i is another one.
    """
    steps, node = [], update.args[1]
    while is_update(node):
        steps.append(node)
        node = node.args[0]
    return steps if not adds_to_part(update) and reads_same_part(node, update.args[0], update) else []


def overwriting(step: Apply) -> Iterator[tuple[Apply, int]]:
    """The updates of which an update consists that overwrite something of their own, each with what it costs to keep that."""
    stack = [(step, [MANY if isinstance(d, Dim) else d for d in step.type.shape])]
    while stack:
        update, shape = stack.pop()
        found, axis, value = update_of(update), update.attrs["axis"], update.args[1].type
        assert found is not None
        length = value.shape[axis] if found.window else None
        if length is None or not isinstance(length, Dim):
            shape = [*shape[:axis], *([] if length is None else [length]), *shape[axis + 1 :]]
        size = value.size if isinstance(value, Array) else 1
        inner = nested(update)
        stack += [(u, shape) for u in inner]
        if not inner:
            count = math.prod(shape) * (LISTED if isinstance(size, Dim) else 1)
            yield update, min(count, MANY)


@dataclass
class Restoring:
    """What one adjoint is to undo.

    Attributes:
        places: the parameter of each array -> the part of the result that it is in the end.
        keep: updates -> what they overwrite, in the graph of the adjoint.
        asked: loops and branches -> the parts of their results that they are to undo.
        undone: parts of results of loops and branches that they have undone -> the node before, and what restores it.
    """

    places: Mapping[int, int | None] = field(default_factory=dict)
    keep: dict[Apply, Node | None] = field(default_factory=dict)
    asked: dict[Apply, set[int | None]] = field(default_factory=dict)
    undone: dict[Part, tuple[Node, Node]] = field(default_factory=dict)

    @staticmethod
    def of(graph: Graph, places: Mapping[int, int | None]) -> Restoring | None:
        """Of the parameters `places` of a graph; None where one cannot be undone."""
        out = Restoring(places)
        for k, part in places.items():
            found = lineage(graph, part)
            if found is None or found.origin is not graph.params[k]:
                return None
            for step in found.steps:
                if isinstance(step, Apply):
                    out.keep.update((u, None) for u, _ in overwriting(step))
                else:
                    run, at = step
                    assert isinstance(run, Apply)
                    out.asked.setdefault(run, set()).add(at)
        return out

    def look(self, builder: Builder, node: Apply, args: Sequence[Node]) -> None:
        """Keep what an application is about to overwrite, if it is to be undone."""
        if node not in self.keep:
            return
        update = update_of(node)
        assert update is not None
        attrs = {"axis": node.attrs["axis"]}
        if update.window:
            attrs["length"] = node.args[1].type.shape[node.attrs["axis"]]
        builder.origin = node.origin
        self.keep[node] = builder.emit(REGISTRY[update.reads], (args[0], args[2]), attrs)


def changes(graph: Graph, run: Apply, part: int) -> bool:
    """Whether a part of the result of a loop in a graph is a step between a parameter of the graph and a part of its result."""
    if not applies(graph.output, "make_struct"):
        return False
    found = (lineage(graph, k) for k, node in enumerate(graph.output.args) if node.type == run.type.elems[part])
    return any(f is not None and (run, part) in f.steps for f in found)


class ArrayVersions:
    """The versions of the arrays that an adjoint restores, in the graph that holds its forward and adjoint applications.

    Args:
        builder: of that graph.
        restoring: what is to be undone.
        env: the forward applications of those of the original graph.

    Attributes:
        finals: parameters of the graph, for the arrays as they were in the end.
        restored: forward value, or part of one -> the same, restored.
        undo: the applications that restore, in order.
        initial: the arrays as they were in the beginning.
    """

    def __init__(self, builder: Builder, restoring: Restoring, env: Mapping[Node, Node]):
        self.b, self.restoring, self.env = builder, restoring, env
        self.kept = {env[update]: old for update, old in restoring.keep.items()}
        self.restored: dict[Node | Part, Node] = {}
        self.finals: list[Node] = []
        self.initial: list[Node] = []
        self.undo: list[Apply] = []

    def find(self, graph: Graph, out: Node, params: Sequence[Node]) -> bool:
        """Restore all versions; False where one cannot be.

        Args:
            graph: that of forward and adjoint applications.
            out: the result of the forward ones.
            params: their parameters.
        """
        for k, part in self.restoring.places.items():
            if part is not None:
                assert applies(out, "make_struct")
                node = self.key(out.args[part])
            else:
                node = self.key(out)
            current: Node = graph.add_parameter(f"final{k}", params[k].type)
            self.finals.append(current)
            self.restored[node] = current
            while node is not params[k]:
                if isinstance(node, tuple):
                    before, current = self.restoring.undone[node]
                    before = self.key(before)
                elif is_update(node):
                    before = self.key(node.args[0])
                    first = len(graph.nodes)
                    current = self.without(node, current)
                    self.undo += graph.nodes[first:]
                else:
                    return False
                if before in self.restored:
                    return False
                self.restored[before] = current
                node = before
            self.initial.append(current)
        return True

    def key(self, node: Node) -> Node | Part:
        """A forward value, or the part of the result of a loop or branch that it is."""
        while applies(node, "get_item") and applies(node.args[0], "make_struct"):
            node = node.args[0].args[node.attrs["index"]]
        for place in (_taken(node), (node, None)):
            if place in self.restoring.undone:
                return place
        return node

    def without(self, update: Apply, array: Node) -> Node:
        """What an array was before an update."""
        found, emit = update_of(update), self.b.emit
        assert found is not None
        self.b.origin = update.origin.derive("vjp", update.fn.name)
        attrs, at = {"axis": update.attrs["axis"]}, update.args[2]
        steps = nested(update)
        length = {"length": update.args[1].type.shape[update.attrs["axis"]]} if found.window else {}
        if not steps:
            old, new = self.kept[update], update.args[1]
            assert old is not None
            if not found.adds and isinstance(new, Apply) and new.type == old.type:  # what was written is there
                self.restored.setdefault(new, emit(REGISTRY[found.reads], (array, at), {**attrs, **length}))
            return emit(REGISTRY[found.writes], (array, old, at), attrs)
        for step in steps:  # each by itself: an array is changed in place by an update of one part of a part
            after = emit(REGISTRY[found.reads], (array, at), {**attrs, **length})
            self.restored.setdefault(step, after)
            part = self.without(step, after)
            self.b.origin = update.origin.derive("vjp", update.fn.name)
            array = emit(REGISTRY[found.writes], (array, part, at), attrs)
        return array

    def read(self, node: Node, members: set[Apply], new: list[Apply]) -> Node:
        """A forward value as the adjoint applications read it: restored, or a part of what is restored.

        Args:
            members: the forward applications.
            new: where applications that read parts of restored arrays are added.
        """
        views: list[Apply] = []
        while True:
            found = self.restored.get(self.key(node))
            if found is not None:
                break
            if not (isinstance(node, Apply) and node in members and _is_part(node)):
                return views[0] if views else node
            views.append(node)
            node = node.args[0]
        for view in reversed(views):
            key = self.key(view)
            first = len(self.b.graph.nodes)
            found = emit_like(self.b, view, (found, *view.args[1:]))
            new += self.b.graph.nodes[first:]
            self.restored[key] = found
        return found


def _is_part(node: Apply) -> bool:
    """Whether an application reads a part of its first operand, or looks at it in another way."""
    return isinstance(node.fn, Primitive) and (node.fn.view or node.fn.name == "as_scalar")


def worth(graph: Graph, env: Mapping[Node, Node], saved: Sequence[Node]) -> dict[int, tuple[int, bool]]:
    """The parameters of a loop's body of which so much is kept for each iteration that restoring them is better.

    Args:
        graph: the body.
        env: the forward applications of its own.
        saved: what is kept.

    Returns:
        position of a parameter -> the part of the result that it is in the end, and whether all of it is kept.
    """
    if not applies(graph.output, "make_struct"):
        return {}
    out: dict[int, tuple[int, bool]] = {}
    roots: dict[Node | Part, list[Node]] = {}
    for node in saved:
        if isinstance(node.type, Array):
            roots.setdefault(_part(_root(node)), []).append(node)
    for part, node in enumerate(graph.output.args):
        if not roots or isinstance(node, Parameter):
            continue
        found = lineage(graph, part)
        if found is None:
            continue
        versions: set[Node | Part] = {env[found.origin]}
        lost = 0
        for step in found.steps:
            if isinstance(step, Apply):
                versions |= {env[step], *(env[s] for s in nested(step))}
                lost += sum(count for _, count in overwriting(step))
            else:
                run, at = step
                both = env[run]
                if at is not None and applies(both, "make_struct"):
                    versions.add(_part(both.args[at]))
                else:
                    versions.add(both if at is None else (both, at))
        kept = [n for v in versions for n in roots.get(v, ())]
        whole = any(_elements(n) >= _elements(found.origin) for n in kept)
        if sum(map(_elements, kept)) > max(LEAST, 2 * lost) or whole and _elements(found.origin) >= MANY:
            out[graph.params.index(found.origin)] = (part, whole)
    return out


def _part(node: Node) -> Node | Part:
    """A forward value, or the part of the result of a branch that it is."""
    while applies(node, "get_item"):
        run, at = node.args[0], node.attrs["index"]
        if not applies(run, "make_struct"):
            return node if applied(run) in LEAD else (run, at)
        node = run.args[at]
    return node


def _root(node: Node) -> Node:
    """The array of which a value is a part."""
    while isinstance(node, Apply) and _is_part(node):
        node = node.args[0]
    return node


def _elements(node: Node) -> int:
    """How many elements a value has; very many where that is not known."""
    size = node.type.size if isinstance(node.type, Array) else 1
    return MANY if isinstance(size, Dim) else size


__all__ = ["Restoring", "ArrayVersions", "changes", "lineage", "worth"]
