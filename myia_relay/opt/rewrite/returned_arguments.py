"""Which results of a program are arrays that it was given: a call returns these very objects, as in CPython.

A typed graph has values and no objects, so this is asked before anything is optimised, while a copy (`x.copy()`) is still a node
of its own. The answer for a result is a set: the parameters that it may be, and `NEW` where it may be computed. Branches and calls
unite these sets; of a recursion it is the least fixpoint. With one member nothing has to be done at run time. With several, the
program returns a number beside the array, the position of the argument or -1, and so do the branches that decide it:

    then: x                 then: (x, 0)
    else: mul(x, 2)    =>   else: (mul(x, 2), -1)

A loop that binds a variable anew makes a new array, unless it is a `for` without iterations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...abstract.types import INT, Array, Struct, Type, tuple_of
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Env, emit_like, lookup, same_interface
from ...library import sources
from ...prims.ops.control import LEAD, cond, for_loop, undef
from ...prims.ops.structure import get_item, make_struct

NEW = -1
"""In place of a parameter: an array that the graph makes."""
MOST_CALLS = 100  # within each other that are looked through: more are a recursion
_LIBRARY = os.path.dirname(sources.__file__)


@dataclass
class ReturnedArguments:
    """Where the results of a program are.

    Attributes:
        graph: the program, which returns what it computes, and numbers behind that.
        places: for each result, where it is among these; or the argument that it is: ("out", k) or ("arg", k).
        numbers: the results that may be an argument -> where the number is that says which.
    """

    graph: Graph
    places: list[tuple[str, int]]
    numbers: dict[int, int]


def returned_arguments(graph: Graph, given: Sequence[int], finals: Mapping[int, int]) -> ReturnedArguments:
    """Find the results of a program that are arguments, and let it return everything else, what is returned twice once.

    Args:
        graph: a program as inference made it.
        given: the positions of the parameters that are the caller's arrays, and are not changed.
        finals: the results that are what changed arrays of the caller's end with -> the positions of these.
    """
    found = _Identities(graph, {graph.params[k] for k in given})
    places: list[tuple[str, int]] = []
    sometimes: list[int] = []
    kept: list[int] = []
    changed = {_made(graph, leaf): parameter for leaf, parameter in finals.items()}
    first: dict[tuple, int] = {}
    for leaf, t in enumerate(_types(graph.output)):
        may_be = found.result(graph, leaf) if isinstance(t, Array) else frozenset()
        source = _made(graph, leaf) if isinstance(t, Array) else (leaf,)
        if len(may_be) == 1 and NEW not in may_be:
            places.append(("arg", next(iter(may_be))))
            continue
        if source in changed and leaf not in finals:
            places.append(("arg", changed[source]))
            continue
        if source in first and leaf not in finals:
            places.append(("out", first[source]))
            continue
        if len(may_be) > 1:
            sometimes.append(leaf)
        first[source] = len(kept)
        places.append(("out", len(kept)))
        kept.append(leaf)
    if len(kept) == len(places) and not sometimes:
        return ReturnedArguments(graph, places, {})
    numbers = {leaf: len(kept) + k for k, leaf in enumerate(sometimes)}
    for leaf, place in enumerate(places):  # what is returned twice is the same argument
        owner = kept[place[1]] if place[0] == "out" else leaf
        if owner in numbers:
            numbers[leaf] = numbers[owner]
    return ReturnedArguments(found.numbered(graph, tuple(sometimes), kept), places, numbers)


def _types(output: Node) -> tuple[Type, ...]:
    """The types of the results of a graph."""
    return output.type.elems if isinstance(output.type, Struct) else (output.type,)


def _source(node: Node, leaf: int) -> tuple[Node, int]:
    """The node that makes a leaf of a node's value, and which of its leaves it is."""
    while isinstance(node, Apply):
        if node.fn is get_item and not applies(node.args[0], "get_item"):  # else a part of a part
            node, leaf = node.args[0], node.attrs["index"]
        elif node.fn is make_struct:
            node, leaf = node.args[leaf], 0
        else:
            break
    return node, leaf


def _made(graph: Graph, leaf: int) -> tuple:
    """What tells whether two results of a graph are one object: the application that makes it, with the calls that lead to it."""
    node, leaf = _source(graph.output, leaf)
    calls: list[Apply] = []
    while isinstance(node, Apply) and isinstance(node.fn, Graph) and len(calls) < MOST_CALLS:
        calls.append(node)
        node, leaf = _source(node.fn.output, leaf)
        while isinstance(node, Parameter) and calls:
            call = calls.pop()
            node, leaf = _source(call.args[call.fn.params.index(node)], 0)
    return (*calls, node, leaf)


def _of_library(graph: Graph) -> bool:
    """Whether a graph is a function that stands for one of NumPy's, which return new arrays and views."""
    loc = graph.origin.loc if graph.origin is not None else None
    return loc is not None and loc.file.startswith(_LIBRARY)


class _Identities:
    """What the results of graphs are, as sets of positions of parameters.

    Attributes:
        program: the whole program.
        given: its parameters that count.
        known: (graph, leaf) -> what it may be.
        open: the same of what is being found, as far as it is known.
        used: which of these were asked for.
        recursive: the graphs among them.
        graphs: (graph, leaves) -> the graph that returns their numbers, too.
    """

    def __init__(self, program: Graph, given: set[Node]):
        self.program, self.given = program, given
        self.known: dict[tuple[Graph, int], frozenset[int]] = {}
        self.open: dict[tuple[Graph, int], frozenset[int]] = {}
        self.used: set[tuple[Graph, int]] = set()
        self.recursive: set[Graph] = set()
        self.graphs: dict[tuple[Graph, tuple[int, ...]], Graph] = {}

    def result(self, graph: Graph, leaf: int) -> frozenset[int]:
        """The parameters that a leaf of a graph's result may be."""
        key = (graph, leaf)
        if key in self.known:
            return self.known[key]
        if key in self.open:
            self.used.add(key)
            self.recursive.add(graph)
            return self.open[key]
        if _of_library(graph):
            return frozenset({NEW})
        outside, self.used = self.used, set()
        self.open[key] = frozenset()
        while True:
            found = self.of(graph, graph.output, leaf)
            if graph in self.recursive and len(found) > 1:
                found = frozenset({NEW})  # no number goes through a recursion
            if found == self.open[key]:
                break
            self.open[key] = found
        del self.open[key]
        self.used.discard(key)
        if not self.used:
            self.known[key] = found
        self.used |= outside
        return found

    def of(self, graph: Graph, node: Node, leaf: int = 0) -> frozenset[int]:
        """The parameters of a graph that a leaf of one of its nodes may be."""
        node, leaf = _source(node, leaf)
        if isinstance(node, Parameter):
            counts = isinstance(node.type, Array) and (graph is not self.program or node in self.given)
            return frozenset({graph.params.index(node) if counts else NEW})
        if not isinstance(node, Apply):
            return frozenset({NEW})
        if node.fn is undef:
            return frozenset()
        if node.fn is for_loop or getattr(node.fn, "name", "") in LEAD:
            return self.after_loop(graph, node, leaf)
        found: set[int] = set()
        for inner, args in _inner(node):
            for k in self.result(inner, leaf):
                found |= {NEW} if k == NEW else self.of(graph, args[k])
        return frozenset(found) if _inner(node) else frozenset({NEW})

    def after_loop(self, graph: Graph, node: Apply, leaf: int) -> frozenset[int]:
        """The parameters of a graph that a carried variable may be after a loop."""
        body, lead = node.attrs["body"], LEAD[node.fn.name]
        first = len(body.params) - (len(node.args) - lead)  # before it are the counter of a `for`, for instance
        start, after = self.of(graph, _start(node, leaf)), self.result(body, leaf)
        if after == {NEW}:
            counted = node.fn is for_loop and isinstance(node.args[2], Constant)
            return start | {NEW} if counted else frozenset({NEW})
        found = set(start)
        for k in after - {first + leaf}:
            constant = k >= first + node.attrs["carried"]
            found |= self.of(graph, node.args[lead + k - first]) if constant else {NEW}
        return frozenset(found) if len(found) <= 1 or after <= {first + leaf} else frozenset({NEW})

    # Numbers at run time.

    def numbered(self, graph: Graph, leaves: tuple[int, ...], kept: list[int] | None = None) -> Graph:
        """A graph that also returns which of its parameters some of its results are, or `NEW`; of the results those in `kept`."""
        if kept is None and (graph, leaves) in self.graphs:
            return self.graphs[graph, leaves]
        wanted: dict[Node, set[int]] = {}
        for leaf in leaves:
            self.want(graph, graph.output, leaf, wanted)
        new, env = same_interface(graph)
        builder = Builder(new)
        numbers: dict[tuple[Node, int], Node] = {}
        for node in graph.nodes:
            args = tuple(lookup(env, a) for a in node.args)
            if node in wanted:
                env[node] = self.with_numbers(builder, node, args, tuple(sorted(wanted[node])), numbers)
            else:
                env[node] = emit_like(builder, node, args)
        count = len(_types(graph.output))
        results = _parts(builder, lookup(env, graph.output), count)
        results = results if kept is None else [results[k] for k in kept]
        results += [self.number(builder, env, graph, graph.output, leaf, numbers) for leaf in leaves]
        new.output = builder.emit(make_struct, tuple(results), {"type": tuple_of(*[r.type for r in results])})
        if kept is None:
            self.graphs[graph, leaves] = new
        return new

    def want(self, graph: Graph, node: Node, leaf: int, wanted: dict[Node, set[int]]) -> None:
        """Collect the branches and calls whose results decide what a leaf of a node is, and which of their results."""
        node, leaf = _source(node, leaf)
        if not isinstance(node, Apply) or len(self.of(graph, node, leaf)) < 2:
            return
        if node.fn is for_loop:
            self.want(graph, _start(node, leaf), 0, wanted)
            return
        wanted.setdefault(node, set()).add(leaf)
        for inner, args in _inner(node):
            for k in self.result(inner, leaf) - {NEW}:
                self.want(graph, args[k], 0, wanted)

    def with_numbers(
        self, builder: Builder, node: Apply, args: tuple[Node, ...], leaves: tuple[int, ...], numbers: dict
    ) -> Node:
        """Emit a branch or a call whose graphs return numbers, too; they are added to `numbers`."""
        count = len(_types(node))
        t = tuple_of(*_types(node), *[INT] * len(leaves))
        builder.origin = node.origin
        if isinstance(node.fn, Graph):
            made = builder.graph.apply(self.numbered(node.fn, leaves), *args, type=t, origin=node.origin)
        else:
            attrs = {name: self.numbered(g, leaves) for name, g in node.attrs.items()}
            made = builder.graph.apply(node.fn, *args, attrs=attrs, type=t, origin=node.origin)
        for k, leaf in enumerate(leaves):
            numbers[node, leaf] = builder.emit(get_item, (made,), {"index": count + k})
        parts = tuple(builder.emit(get_item, (made,), {"index": k}) for k in range(count))
        return builder.emit(make_struct, parts, {"type": node.type}) if isinstance(node.type, Struct) else parts[0]

    def number(self, builder: Builder, env: Env, graph: Graph, node: Node, leaf: int, numbers: dict) -> Node:
        """Emit which parameter of a graph a leaf of a node is, or `NEW`."""
        may_be = self.of(graph, node, leaf)
        if len(may_be) < 2:
            return builder.constant(next(iter(may_be), NEW))
        node, leaf = _source(node, leaf)
        assert isinstance(node, Apply)
        builder.origin = node.origin
        if node.fn is for_loop:
            first, last, step = (lookup(env, a) for a in node.args[:3])
            assert isinstance(step, Constant)
            runs = builder.emit(REGISTRY["lt" if step.value > 0 else "gt"], (first, last))
            start = self.number(builder, env, graph, _start(node, leaf), 0, numbers)
            return builder.emit(REGISTRY["where"], (runs, builder.constant(NEW), start))
        out = builder.constant(NEW)
        found = {k: args[k] for inner, args in _inner(node) for k in self.result(inner, leaf) - {NEW}}
        for k, arg in found.items():
            here = builder.emit(REGISTRY["eq"], (numbers[node, leaf], builder.constant(k)))
            there = self.number(builder, env, graph, arg, 0, numbers)
            out = builder.emit(REGISTRY["where"], (here, there, out))
        return out


def _inner(node: Apply) -> list[tuple[Graph, Sequence[Node]]]:
    """The graphs whose results a node has, with the arguments of each."""
    if isinstance(node.fn, Graph):
        return [(node.fn, node.args)]
    return [(node.attrs[name], node.args[1:]) for name in ("then", "orelse")] if node.fn is cond else []


def _start(node: Apply, leaf: int) -> Node:
    """What a carried variable is before a loop."""
    return node.args[LEAD[node.fn.name] + leaf]


def _parts(builder: Builder, node: Node, count: int) -> list[Node]:
    """The leaves of a value."""
    if not isinstance(node.type, Struct):
        return [node]
    return [builder.emit(get_item, (node,), {"index": k}) for k in range(count)]
