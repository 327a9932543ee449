"""The reference interpreter, suspended at each mark of a program that is made for the debugger.

Everything that can reach a mark runs on the interpreter's explicit stack (`Machine.deep`), so that a run is one generator: it
yields a `Reached` at each mark, and its value is the program's. Nothing else differs from a run of the oracle.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..abstract.bind import bind_symbols
from ..abstract.structures import rebuild
from ..abstract.types import NONE, Struct
from ..backend.interpreter import Machine, Step
from ..infer.arguments.arguments import python_value
from ..infer.values.treedef import TreeDef
from ..ir.node import Apply, Graph, applies
from ..ir.rewrite import all_graphs, running
from ..prims.ops.effects import MarkedPlace
from ..utils.source import Loc


@dataclass(frozen=True, eq=False)
class Reached:
    """A mark that a run has reached.

    Attributes:
        place: what is marked.
        loc: where it is written.
        backward: whether the backward pass has reached it.
        values: the values of variables, by name.
        cotangents: backward: the cotangents of variables that are differentiated through.
        given: the names of those of which a cotangent has arrived; the others are zero.
        visit: the number of the visit; backward: of the one in the forward pass that it belongs to.
    """

    place: MarkedPlace
    loc: Loc
    backward: bool
    values: dict[str, Any]
    cotangents: dict[str, Any]
    given: frozenset[str]
    visit: int


def suspended(graph: Graph, args: Sequence[Any]) -> Generator[Reached, None, Any]:
    """Run a typed graph from mark to mark; the generator's value is the graph's."""
    machine = Suspending(bind_symbols([p.type for p in graph.params], args))
    machine.look_for_recursion(graph)
    return machine.stops(graph, args)


class Suspending(Machine):
    """A run that is suspended at marks."""

    visits = 0

    def __init__(self, sizes: dict[str, int]):
        super().__init__(sizes)
        self.seen: dict[int, list[Any]] = {}  # what marks have shown, where the backward pass comes through them again
        self.returns = False

    def look_for_recursion(self, graph: Graph) -> None:
        super().look_for_recursion(graph)
        graphs = all_graphs(graph)
        marked = [g for g in graphs if any(applies(n, "mark") for n in g.nodes)]
        self.reaching |= running(graphs, marked)
        self.returns = any(n.attrs["backward"] for g in marked for n in g.nodes if applies(n, "mark"))

    def step(self, node: Apply, inputs: list[int]) -> Step:
        if not applies(node, "mark"):
            return super().step(node, inputs)
        loc = node.origin.loc
        assert loc is not None

        def step(s: list):
            operands = [_read_only(s[i]) for i in inputs]
            self.visits += 1
            if not node.attrs["backward"]:
                visit, cotangents = self.visits, []
                if self.returns:
                    self.seen[visit] = operands
            else:
                visit, *cotangents = operands
                visit = int(np.max(visit))  # in a batch of which only some examples come here there is one for each
                operands = self.seen[visit]
            yield None, reached(node, loc, operands, cotangents, visit), node
            return visit

        self.generators.add(step)
        return step


def reached(node: Apply, loc: Loc, operands: list[Any], arrived: list[Any], visit: int) -> Reached:
    """What a mark shows."""
    place, backward = node.attrs["place"], node.attrs["backward"]
    leaves = iter(operands)
    values = {name: _value(treedef, leaves) for name, treedef in place.variables}
    moved, given = node.attrs["moved"], node.attrs["given"]
    cotangent_of = dict(zip(moved, arrived, strict=True))
    nonzero = {i for i, some in zip(moved, given, strict=True) if some}
    cotangents: dict[str, Any] = {}
    with_some: set[str] = set()
    first = 0
    for name, treedef in place.variables if moved else ():
        own = range(first, first := first + sum(1 for _ in treedef.leaves()))
        if not cotangent_of.keys().isdisjoint(own):
            cotangents[name] = _cotangent(treedef, (cotangent_of.get(i) for i in own))
            if not nonzero.isdisjoint(own):
                with_some.add(name)
    return Reached(place, loc, backward, values, cotangents, frozenset(with_some), visit)


def _value(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    """The value of a variable."""
    own = [next(leaves) for _ in treedef.leaves()]
    try:
        return python_value(treedef, iter(own))
    except TypeError:  # in a batch, where examples have values of different kinds
        return own


def _read_only(x: Any) -> Any:
    """An array as the program holds it, which whoever looks at it must not change."""
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x


def _cotangent(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    """The cotangent of a value: a tree of the same structure, with None for what has none."""
    if treedef.tag == "dyn":
        return next(leaves)
    if treedef.tag == "listed":
        found = next(leaves)
        return None if found is None else found.tolist()
    if treedef.tag == "seq":
        parts = [_cotangent(part, leaves) for part in treedef.parts]
        kind, fields, cls = treedef.info
        return rebuild(Struct(kind, (NONE,) * len(parts), fields, cls), parts)
    for _ in treedef.leaves():
        next(leaves)
    return None
