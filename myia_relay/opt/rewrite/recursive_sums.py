"""Sums of adjoints go on through recursive calls: one buffer for all calls, and branches, of a recursion.

    g(x): a = g(b)[0]; c = g(d)[0]; return (a + c + e,)
    =>  g(x, s): a = g(b, s)[0]; c = g(d, a)[0]; return (c + e,)        and zeros for s where g is called from outside

The adjoint of a recursive function returns, for each array that the function reads, the sum of what its calls return and
of its own terms. Each call would make an array of the size of what is read, mostly of zeros, and add it to others. Where
the sum so far is handed on instead, a call costs what it adds: a row of a table, an outer product. Executors that change
arrays in place keep one array from the first call to the last.

A sum is a tree of additions that reverse mode made, whose terms are used nowhere else. Its terms are put in program
order, and each goes on from the one before: a recursive call, a branch or a loop takes the sum and returns it with its
own terms added; an addition to a part starts from it; anything else is added to it as an update, which is done in place.
This holds for a function if one of its terms is a call of such a function: a greatest fixpoint over the recursion.

The order of the terms changes, so sums that users wrote are left alone.

Source: M. Peng and C. Dubach, "LAGrad: statically optimized differentiable programming in MLIR" (CC 2023), section 4, where
accumulation goes on through loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...abstract.types import INT, Array
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applied
from ...ir.prim import REGISTRY, adds_to_part
from ...ir.rewrite import (
    Env,
    all_graphs,
    emit_like,
    lookup,
    map_graphs,
    recursive_components,
    running,
    same_interface,
)
from ...prims.ops.control import LEAD
from ...prims.ops.data_functions import zero
from ...utils.source import Origin
from ..analysis.control import output_parts, read_parameters
from .rules import filled

Part = int | None  # of a result: its index, or None for the whole
BRANCHES = ("then", "orelse")


@dataclass(frozen=True)
class CarrySums:
    """The pass, for programs without transforms."""

    name: str = "recursive_sums"

    def __call__(self, graph: Graph) -> Graph:
        found = _Functions(graph)
        return _Continued(found).graph(graph) if found.sums else graph


def _is_sum(t: Any) -> bool:
    """Whether values of a type are worth being added to in place."""
    return isinstance(t, Array) and t.is_float and len(t.shape) > 0


@dataclass(frozen=True, eq=False)
class SumTerm:
    """A term of a sum.

    Attributes:
        kind: "run" for a call, a branch or a loop, "update" for an addition to a part, "leaf" for anything else.
        node: the application, or the value.
        part: of what an application gives, for "run".
    """

    kind: str
    node: Node
    part: Part = None


@dataclass
class TermSum:
    """A sum in a graph.

    Attributes:
        terms: in any order.
        inside: applications that are part of the sum, and not needed besides it.
    """

    terms: list[SumTerm]
    inside: list[Node]


class Uses:
    """How often the values of a graph are used."""

    def __init__(self, graph: Graph):
        self.count: dict[Node, int] = {graph.output: 1}
        self.parts: dict[Node, dict[int, list[Apply]]] = {}
        for node in graph.nodes:
            for arg in node.args:
                self.count[arg] = self.count.get(arg, 0) + 1
            if applied(node) == "get_item":
                self.parts.setdefault(node.args[0], {}).setdefault(node.attrs["index"], []).append(node)

    def alone(self, node: Node, part: Part, whole: bool) -> bool:
        """Whether a part of a result is used once; `whole`: as the result of its graph."""
        count = self.count.get(node, 0)
        if part is None:
            return count == 1
        taken = self.parts.get(node, {})
        others = count - sum(len(users) for users in taken.values())
        own = len(taken.get(part, ()))
        return others == 1 and own == 0 if whole else others == 0 and own == 1


class _Functions:
    """Which functions take and return which sums.

    Attributes:
        sums: functions that call themselves -> the parts of their results that are sums to go on with.
    """

    def __init__(self, graph: Graph):
        self.graphs = all_graphs(graph)
        self.uses: dict[Graph, Uses] = {}
        self.sums: dict[Graph, set[Part]] = {}
        for members in map(set, recursive_components(graph)):
            for head in {n.fn for g in members for n in g.nodes if n.fn in members}:
                parts = {k for k, t in _parts(head.output.type) if _is_sum(t)}
                if parts:
                    self.sums[head] = parts
        self.memo: dict[tuple[Graph, Part], TermSum | None] = {}
        self.reached: dict[tuple[Graph, Part], bool] = {}
        self.helped: dict[tuple[Graph, Part], bool] = {}
        while True:
            kept = {g: {k for k in ks if self.reaches(g, k)} for g, ks in self.sums.items()}
            kept = {g: ks for g, ks in kept.items() if ks}
            if kept == self.sums:
                break
            self.sums = kept
            for memo in (self.memo, self.reached, self.helped):
                memo.clear()
        self.affected = running(self.graphs, self.sums)

    def uses_of(self, graph: Graph) -> Uses:
        if graph not in self.uses:
            self.uses[graph] = Uses(graph)
        return self.uses[graph]

    def of_part(self, graph: Graph, part: Part) -> TermSum | None:
        """A part of a graph's result as a sum; None where it cannot be taken apart."""
        key = (graph, part)
        if key not in self.memo:
            self.memo[key] = None  # asked again inside only by itself, through a branch that contains itself
            outs, output = output_parts(graph), graph.output
            if part is None:
                self.memo[key] = self.of_node(graph, output, self.is_shared(graph, output))
            elif outs is not None:
                self.memo[key] = self.of_node(graph, outs[part], self.is_shared(graph, outs[part]))
            elif isinstance(output, Apply) and self.goes_on(graph, output, part, whole=True):
                self.memo[key] = TermSum([SumTerm("run", output, part)], [])
        return self.memo[key]

    def is_shared(self, graph: Graph, root: Node) -> bool:
        """Whether something else than the result of its graph reads a value."""
        return self.uses_of(graph).count.get(root, 0) != 1

    def of_node(self, graph: Graph, root: Node, shared: bool = False) -> TermSum:
        """A value as a sum, of one term if need be; `shared`: it is needed as it is, too, and is not taken apart."""
        uses = self.uses_of(graph)
        terms: list[SumTerm] = []
        inside: list[Node] = []
        running: set[Node] = set()  # what goes on with this sum: with one part of its result only
        stack = [root]
        while stack:
            node = stack.pop()
            if filled(node) == 0 or applied(node) == "undef":
                continue
            whole = shared if node is root else node.type != root.type or uses.count[node] != 1
            if not isinstance(node, Apply) or whole:
                terms.append(SumTerm("leaf", node))
            elif applied(node) == "add" and node.origin.is_adjoint and all(a.type == root.type for a in node.args):
                inside.append(node)
                stack += node.args
            elif adds_to_part(node) or applied(node) == "scatter_add":
                terms.append(SumTerm("update", node))
                stack.append(node.args[0])
            elif (
                applied(node) == "get_item"
                and node.args[0] not in running
                and self.goes_on(graph, node.args[0], node.attrs["index"])
            ):
                run = node.args[0]
                running.add(run)
                terms.append(SumTerm("run", run, node.attrs["index"]))
                inside.append(node)
                if applied(run) in LEAD:
                    stack.append(run.args[LEAD[run.fn.name] + node.attrs["index"]])
            elif (isinstance(node.fn, Graph) or applied(node) == "cond") and self.goes_on(graph, node, None):
                terms.append(SumTerm("run", node, None))
            else:
                terms.append(SumTerm("leaf", node))
        return TermSum(terms, inside)

    def of_root(self, graph: Graph, node: Apply) -> TermSum | None:
        """What an addition adds, if functions that call themselves can go on with it."""
        if applied(node) != "add" or not node.origin.is_adjoint or not _is_sum(node.type):
            return None
        found = self.of_node(graph, node)
        return found if any(t.kind == "run" and self.runs(t.node, t.part) for t in found.terms) else None

    def goes_on(self, graph: Graph, node: Node, part: Part, whole: bool = False) -> bool:
        """Whether an application can take a sum and return it as a part of its result, with what it adds."""
        if not isinstance(node, Apply) or not self.uses_of(graph).alone(node, part, whole):
            return False
        if isinstance(node.fn, Graph):
            return part in self.sums.get(node.fn, ()) and node.origin.is_adjoint
        if applied(node) == "cond":
            branches = [node.attrs[key] for key in BRANCHES]
            return all(self.of_part(g, part) is not None for g in branches) and any(
                self.helps(g, part) for g in branches
            )
        return applied(node) in LEAD and part is not None and self.carries(node, part)

    def carries(self, loop: Apply, index: int) -> bool:
        """Whether a loop only adds to a carried value."""
        body: Graph = loop.attrs["body"]
        param = body.params[index + (loop.fn.name == "for_loop")]
        condition = loop.attrs.get("cond")
        if (
            output_parts(body) is None
            or condition is not None
            and condition.params[index] in read_parameters(condition)
        ):
            return False
        found = self.of_part(body, index)
        own = self.uses_of(body).count.get(param) == 1
        return own and found is not None and any(t.kind == "leaf" and t.node is param for t in found.terms)

    def helps(self, graph: Graph, part: Part) -> bool:
        """Whether adding to a sum costs less than a part of a graph's result does."""
        return self._any(self.helped, graph, part, lambda s: not s.terms or any(t.kind != "leaf" for t in s.terms))

    def reaches(self, graph: Graph, part: Part) -> bool:
        """Whether a function that calls itself adds to a part of a graph's result."""

        def found(s: TermSum) -> bool:
            return any(t.kind == "run" and self.runs(t.node, t.part) for t in s.terms)

        return self._any(self.reached, graph, part, found)

    def runs(self, node: Node, part: Part) -> bool:
        """Whether an application that goes on with a sum hands it to a function that calls itself."""
        assert isinstance(node, Apply)
        if isinstance(node.fn, Graph):
            return True
        keys = BRANCHES if applied(node) == "cond" else ("body",)
        return any(self.reaches(node.attrs[key], part) for key in keys)

    def _any(self, memo: dict, graph: Graph, part: Part, test) -> bool:
        key = (graph, part)
        if key not in memo:
            memo[key] = False
            found = self.of_part(graph, part)
            memo[key] = found is not None and test(found)
        return memo[key]


def _parts(t: Any) -> Iterator[tuple[Part, Any]]:
    """The parts of a result, with their types."""
    if hasattr(t, "elems"):
        yield from enumerate(t.elems)
    else:
        yield None, t


@dataclass(eq=False)
class _Open:
    """A sum while its graph is rebuilt.

    Attributes:
        type: of the sum.
        terms: those that are not there from the beginning.
        origin: of what is emitted for it.
        total: the sum so far; None if there is nothing yet.
        pending: terms that are still to be added to it.
    """

    type: Array
    terms: list[SumTerm]
    origin: Origin
    total: Node | None = None
    pending: list[Node] = field(default_factory=list)

    def so_far(self, b: Builder) -> Node:
        """The sum of what there has been."""
        b.origin = self.origin
        if self.pending:
            value, *rest = self.pending
            for other in rest:
                value = b.emit(REGISTRY["add"], (value, other))
            self.pending = []
            if self.total is None:
                self.total = value
            else:
                args = (self.total, value, b.constant(0, INT))
                self.total = b.emit(REGISTRY["slice_add"], args, {"axis": 0})
        return zero(b, self.type) if self.total is None else self.total


class _Continued:
    """The program with sums that go on."""

    def __init__(self, found: _Functions):
        self.found = found
        self.done: dict[tuple[Graph, tuple[Part, ...], int | None], Graph] = {}

    def graph(self, old: Graph, parts: Sequence[Part] = (), first: int | None = None) -> Graph:
        """A graph that goes on with sums.

        Args:
            old: the graph.
            parts: of its result, those that are the sums.
            first: for the body of a loop the position of what it carries among its parameters, where the sums begin; otherwise
                they are further parameters.
        """
        if not parts and old not in self.found.affected:
            return old
        key = (old, tuple(parts), first)
        if key not in self.done:
            self.done[key], env = same_interface(old)
            self.build(old, self.done[key], env, parts, first)
        return self.done[key]

    def build(self, old: Graph, new: Graph, env: Env, parts: Sequence[Part], first: int | None) -> None:
        new.output = Node(old.output.type)
        found, b = self.found, Builder(new)
        results: dict[Part, _Open] = {}
        inside: set[Node] = set()
        for k in parts:
            own = found.of_part(old, k)
            assert own is not None
            start = None if first is None or k is None else old.params[first + k]
            t = old.output.type if k is None else old.output.type.elems[k]
            terms = [term for term in own.terms if term.node is not start]
            results[k] = _Open(t, terms, old.output.origin.derive("vjp"))
            results[k].total = new.add_parameter(f"sum{len(new.params)}", t) if start is None else env[start]
            inside.update(own.inside)
        roots: dict[Node, _Open] = {}
        for node in reversed(old.nodes if old in found.affected else ()):
            own = None if node in inside else found.of_root(old, node)
            if own is not None:
                roots[node] = _Open(node.type, own.terms, node.origin)
                inside.update(own.inside)
        events: dict[Node, list[tuple[_Open, SumTerm]]] = {}
        for sum in (*results.values(), *roots.values()):
            for term in sum.terms:
                if isinstance(term.node, Apply):
                    events.setdefault(term.node, []).append((sum, term))
                else:
                    sum.pending.append(lookup(env, term.node))
        outs = output_parts(old)
        if results and outs is not None:
            inside.add(old.output)
        for node in old.nodes:
            if node in roots:
                env[node] = roots[node].so_far(b)
            elif node not in inside:
                env[node] = self.node(b, node, env, events.get(node, ()))
        if None in results:
            new.output = results[None].so_far(b)
        elif results:
            if outs is None:  # of one application
                whole, get = lookup(env, old.output), REGISTRY["get_item"]
                others = [b.emit(get, (whole,), {"index": k}) for k in range(len(whole.type.elems)) if k not in results]
            else:
                others = [lookup(env, out) for k, out in enumerate(outs) if k not in results]
            rest = iter(others)
            values = [results[k].so_far(b) if k in results else next(rest) for k in range(len(old.output.type.elems))]
            new.output = b.emit(REGISTRY["make_struct"], values, {"type": old.output.type})
        else:
            new.output = lookup(env, old.output)

    def node(self, b: Builder, node: Apply, env: Env, events: Sequence[tuple[_Open, SumTerm]]) -> Node:
        """What replaces an application; `events`: the sums of which it is a term."""
        kind = events[0][1].kind if events else "leaf"
        if kind == "update":
            ((sum, _),) = events
            args = (sum.so_far(b), *(lookup(env, a) for a in node.args[1:]))
            sum.total = emit_like(b, node, args)
            return sum.total
        args = tuple(lookup(env, a) for a in node.args)
        starts = {term.part: sum.so_far(b) for sum, term in events} if kind == "run" else {}
        new = self.application(b, node, args, starts)
        for sum, term in events:
            if kind == "leaf":
                sum.pending.append(new)
            elif term.part is None:
                sum.total = new
            else:
                b.origin = sum.origin
                sum.total = b.emit(REGISTRY["get_item"], (new,), {"index": term.part})
        return new

    def application(self, b: Builder, node: Apply, args: tuple[Node, ...], starts: Mapping[Part, Node]) -> Node:
        """An application that runs graphs, or any other; `starts`: sums that it goes on with."""
        name = applied(node)
        if isinstance(node.fn, Graph):
            parts = _ordered(self.found.sums.get(node.fn, ()))
            types = dict(_parts(node.type))
            b.origin = node.origin
            more = [starts[k] if k in starts else zero(b, types[k]) for k in parts]
            return emit_like(b, node, (*args, *more), fn=self.graph(node.fn, parts))
        if name in LEAD:
            lead, first = LEAD[name], int(name == "for_loop")
            body = node.attrs["body"]
            parts = [
                k for k in range(node.attrs["carried"]) if self.found.reaches(body, k) and self.found.carries(node, k)
            ]
            given = list(args)
            for k, start in starts.items():
                assert k is not None
                given[lead + k] = start
            attrs = {**map_graphs(node.attrs, self.graph), "body": self.graph(body, parts, first)}
            return emit_like(b, node, given, attrs)
        parts = _ordered(starts)
        attrs = map_graphs(node.attrs, lambda g: self.graph(g, parts))
        return emit_like(b, node, (*args, *(starts[k] for k in parts)), attrs)


def _ordered(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda k: -1 if k is None else k))


__all__ = ["CarrySums"]
