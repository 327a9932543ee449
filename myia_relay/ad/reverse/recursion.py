"""Adjoints of functions that call themselves, directly or through each other.

The depth of a recursion has no bound, so its backward version cannot get a fixed number of residuals. Each function of
the recursion pushes its residuals, as one record, on a tape that is threaded through all of them; the backward version
pops the record. Backward versions are called in the opposite order, so a stack is enough:

    f(x): a; y = f(b); c         f.forward(x, tape):  a; (y, tape) = f.forward(b, tape); c;  push(tape, residuals)
                                 f.backward(dout, tape):  (tape, residuals) = pop(tape);  c'; (db, tape) = f.backward(dy, tape); a'

Both are made in two steps. First each function is split like any other (`ad.reverse.split`), with calls of versions
that do not exist yet, and without tapes. When all versions are known, and with them what each has to keep, the tapes
are threaded through everything that calls them, including branches and loops. A call from outside the recursion starts
with empty tapes and returns full ones, which are residuals like any other. The tapes are ordinary values, so adjoints
of adjoints are made in the same way.

Two things are decided in advance: if any float of a result has a cotangent, all of them have one, and the same holds
for the active floats among the arguments. Arguments that every call within the recursion passes on unchanged are not
kept: the backward version is given them again.

Source: the stack of a tape-based adjoint, as in L. Hascoet and V. Pascual, "The Tapenade automatic differentiation
tool" (TOMS 2013); residuals as in B. Pearlmutter and J. Siskind (TOPLAS 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...abstract.types import Struct, Tape, Type, tuple_of
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, Parameter
from ...ir.prim import REGISTRY
from ...ir.rewrite import Env, all_graphs, emit_like, inner_graphs, lookup
from ...utils.errors import InternalError
from ..common.activity import Act, item, join
from ..common.cotangents import Pattern, has_tangent, leaf_types
from .reverse import Expansion
from .split import Joint, Split, split_graph


def split_call(context: Expansion, graph: Graph, acts: tuple[Act, ...], dout: Pattern) -> Split:
    """The forward and backward versions of a graph that is called.

    Args:
        context: shared memos.
        graph: typed, closed, transforms expanded.
        acts: activities of its parameters.
        dout: which parts of the result's cotangent are not zero.
    """
    members = context.recursion.component(graph)
    if members is None:
        return split_graph(context, graph, acts, dout, tuple(range(len(graph.params))))
    if context.versions is not None and graph in context.versions.members:
        return context.versions.version(graph, acts, dout).split
    key = ("entry", graph, acts, dout)
    if key not in context.splits:
        # Halves that call versions can be used by these versions only.
        outside, context.splits = (context.versions, context.splits), {}
        context.versions = Versions(context, members, graph)
        try:
            entry = context.versions.version(graph, acts, dout)
            context.versions.build()
            split = context.versions.close(entry)
        finally:
            context.versions, context.splits = outside
        context.splits[key] = split
    return context.splits[key]


@dataclass(eq=False)
class Version:
    """A function of a recursion, for given activities of its parameters and cotangents of its result.

    Attributes:
        split: the halves that calls within the recursion use, which do not exist yet.
        cut: its halves, when they exist.
        tape: the type of the tape that its residuals are on; None where there are none.
        forward, backward: the halves with tapes.
    """

    graph: Graph
    acts: tuple[Act, ...]
    split: Split
    cut: Split = field(init=False, repr=False)
    tape: Tape | None = None
    forward: Graph = field(init=False, repr=False)
    backward: Graph = field(init=False, repr=False)


def act_pattern(act: Act, t: Type) -> Pattern:
    """The shape of a cotangent that has every active part."""
    if act is False:
        return None
    if isinstance(t, Struct):
        return canonical_pattern(tuple(act_pattern(item(act, i), e) for i, e in enumerate(t.elems)))
    return True if has_tangent(t) else None


def canonical_pattern(p: Pattern) -> Pattern:
    """None for a structure without a part that has a cotangent."""
    return None if isinstance(p, tuple) and all(q is None for q in p) else p


def filled(p: Pattern, t: Type) -> Pattern:
    """The shape of a cotangent that has every float, list and tree, and the tapes that `p` has.

    A tape without a cotangent is one from which nothing is popped afterwards, and its cotangent is not empty but
    absent.
    """
    if isinstance(t, Struct):
        parts = p if isinstance(p, tuple) else (p,) * len(t.elems)
        return canonical_pattern(tuple(filled(q, e) for q, e in zip(parts, t.elems, strict=True)))
    if isinstance(t, Tape):
        return None if p is None or not has_tangent(t) else True
    return True if has_tangent(t) else None


class Versions:
    """The versions of the functions of one recursion that one entry needs.

    Args:
        context: shared memos.
        members: the graphs that run each other in turn: functions, their branches, the bodies of their loops.
        entry: the function that is called from outside.
    """

    def __init__(self, context: Expansion, members: frozenset[Graph], entry: Graph):
        self.context, self.members, self.entry = context, members, entry
        self.unchanged = unchanged_parameters(members, entry)
        self.all: list[Version] = []
        self.todo: list[Version] = []
        self.shells: dict[Graph, tuple[Version, bool]] = {}
        self.running: dict[Graph, bool] = {}

    def version(self, graph: Graph, acts: tuple[Act, ...], dout: Pattern) -> Version:
        """A version for at least these activities."""
        dout = filled(dout, graph.output.type)
        acts = tuple(self.with_tapes(graph, a, p.type) for a, p in zip(acts, graph.params, strict=True))
        joined = acts
        for version in self.all:
            if version.graph is graph and version.split.dout == dout:
                joined = tuple(join(a, b) for a, b in zip(joined, version.acts, strict=True))
                if joined == version.acts:
                    return version
        return self.shell(graph, joined, dout)

    def with_tapes(self, graph: Graph, act: Act, t: Type) -> Act:
        """An activity in which tapes that are pushed on are active: all entries have a cotangent, or none."""
        if isinstance(t, Tape) and self.context.activity.full(t) and t in self.context.recursion.pushed(graph):
            return True
        return act

    def shell(self, graph: Graph, acts: tuple[Act, ...], dout: Pattern) -> Version:
        """A version that is still to be built."""
        patterns = tuple(act_pattern(a, p.type) for a, p in zip(acts, graph.params, strict=True))
        reused = tuple(i for i, p in enumerate(graph.params) if p in self.unchanged)
        types = [t for q, p in zip(patterns, graph.params, strict=True) for t in leaf_types(q, p.type)]
        forward, backward = Graph(f"{graph.name}.forward"), Graph(f"{graph.name}.backward")
        forward.output, backward.output = Node(tuple_of(graph.output.type)), Node(tuple_of(*types))
        split = Split(forward, (), backward, reused, patterns, dout, threads=True)
        version = Version(graph, acts, split)
        self.shells[forward], self.shells[backward] = (version, True), (version, False)
        self.all.append(version)
        self.todo.append(version)
        return version

    def build(self) -> None:
        """Split all functions; this may request more versions."""
        while self.todo:
            version = self.todo.pop()
            split = version.split
            joint = Joint(self.context, version.graph, version.acts, split.dout, split.reused, patterns=split.patterns)
            version.cut = joint.cut()

    def runs(self, node: Apply) -> bool:
        """Whether an application runs a version."""
        return any(self.graph_runs(g) for g in inner_graphs(node))

    def graph_runs(self, graph: Graph) -> bool:
        if graph in self.shells:
            return True
        if graph not in self.running:
            self.running[graph] = False
            self.running[graph] = any(self.runs(n) for n in graph.nodes)
        return self.running[graph]

    def close(self, entry: Version) -> Split:
        """The halves of the entry, in the form that outside callers use: the contents of the tapes are residuals."""
        tapes: list[Tape] = []
        for version in self.all:
            if version.cut.residuals:
                version.tape = Tape(tuple_of(*version.cut.residuals), f"{version.graph.name}.{self.context.owners}")
                self.context.owners += 1
                tapes.append(version.tape)
        _Threading(self, tapes).run()
        split, graph = entry.split, entry.graph
        forward = Graph(f"{graph.name}.forward", None, graph.origin)
        args = [forward.add_parameter(p.name, p.type, p.origin) for p in graph.params]
        b = Builder(forward, graph.origin)
        empty = [b.emit(REGISTRY["tape_new"], (), {"elem": t.elem, "owner": t.owner}) for t in tapes]
        forward.output = b.call(entry.forward, (*args, *empty))
        backward = Graph(f"{graph.name}.backward", None, graph.origin)
        k, n = len(split.reused), len(tapes)
        b = Builder(backward, graph.origin)
        # (reused, tapes, douts) here, and (reused, douts, tapes) there
        own = entry.backward.params
        params = [
            backward.add_parameter(p.name, p.type) for p in (*own[:k], *own[len(own) - n :], *own[k : len(own) - n])
        ]
        result = b.call(entry.backward, (*params[:k], *params[k + n :], *params[k : k + n]))
        backward.output = pack(b, items(b, result, len(entry.backward.output.type.elems) - n))
        return Split(forward, tuple(tapes), backward, split.reused, split.patterns, split.dout)


def unchanged_parameters(members: frozenset[Graph], entry: Graph) -> set[Parameter]:
    """The parameters of functions of a recursion that hold an argument of its entry, whatever the depth.

    Each parameter holds one of the entry's (by position), or, when two calls disagree, anything (-1): a least fixpoint.
    """
    holds: dict[Parameter, int] = {p: i for i, p in enumerate(entry.params)}
    inside = [g for g in all_graphs(entry) if g in members]
    changed = True

    def flow(params: Sequence[Parameter], args: Sequence[Node] | None) -> None:
        nonlocal changed
        for i, p in enumerate(params):
            arg = None if args is None else args[i]
            new = holds.get(arg) if isinstance(arg, Parameter) else -1
            if new is not None and holds.get(p, new) != new:
                new = -1
            if new is not None and holds.get(p) != new:
                holds[p] = new
                changed = True

    while changed:
        changed = False
        for node in (n for g in inside for n in g.nodes):
            name = "call" if isinstance(node.fn, Graph) else node.fn.name
            for graph in inner_graphs(node):
                if graph not in members:
                    continue
                if name in ("call", "checkpoint"):
                    flow(graph.params, node.args)
                elif name == "cond":
                    flow(graph.params, node.args[1:])
                elif name in ("for_loop", "while_loop"):
                    fixed = len(node.args) - (3 if name == "for_loop" else 0) - node.attrs["carried"]
                    flow(graph.params[: len(graph.params) - fixed], None)
                    flow(graph.params[len(graph.params) - fixed :], node.args[len(node.args) - fixed :])
                else:
                    flow(graph.params, None)
    return {p for p, i in holds.items() if i >= 0}


def pack(b: Builder, nodes: Sequence[Node]) -> Node:
    """A tuple."""
    return b.emit(REGISTRY["make_struct"], nodes, {"type": tuple_of(*[n.type for n in nodes])})


def items(b: Builder, node: Node, stop: int, start: int = 0) -> list[Node]:
    """Some parts of a tuple."""
    return [b.emit(REGISTRY["get_item"], (node,), {"index": i}) for i in range(start, stop)]


class _Threading:
    """Threads tapes through everything that runs a version: as the last parameters and the last results."""

    def __init__(self, versions: Versions, tapes: list[Tape]):
        self.versions, self.tapes = versions, tapes
        self.graphs: dict[Graph, Graph] = {}

    def run(self) -> None:
        for v in self.versions.all:
            v.forward = Graph(v.split.forward.name, None, v.graph.origin)
            for p in v.graph.params:
                v.forward.add_parameter(p.name, p.type, p.origin)
            v.backward = Graph(v.split.backward.name, None, v.graph.origin)
            for i in v.split.reused:
                v.backward.add_parameter(v.graph.params[i].name, v.graph.params[i].type)
            for i, t in enumerate(leaf_types(v.split.dout, v.graph.output.type)):
                v.backward.add_parameter(f"d{i}", t)
            # Calls need the types of results before the results exist.
            v.forward.output = Node(tuple_of(v.graph.output.type, *self.tapes))
            v.backward.output = Node(tuple_of(*v.split.backward.output.type.elems, *self.tapes))
        for v in self.versions.all:
            self.forward(v)
            self.backward(v)

    def state(self, graph: Graph) -> list[Node]:
        """Parameters for the tapes."""
        return [graph.add_parameter(f"tape{i}", t) for i, t in enumerate(self.tapes)]

    def forward(self, v: Version) -> None:
        graph, old = v.forward, v.cut.forward
        env: Env = dict(zip(old.params, graph.params, strict=True))
        b = Builder(graph, graph.origin)
        state = self.nodes(b, [n for n in old.nodes if n is not old.output], env, self.state(graph))
        out, *saved = (lookup(env, a) for a in old.output.args)
        if v.tape is not None:
            i = self.tapes.index(v.tape)
            state[i] = b.emit(REGISTRY["tape_push"], (state[i], pack(b, saved)))
        graph.output = pack(b, [out, *state])

    def backward(self, v: Version) -> None:
        graph, old = v.backward, v.cut.backward
        b = Builder(graph, graph.origin.derive("vjp"))
        given: dict[int, Node] = dict(zip(v.split.reused, graph.params, strict=False))
        douts = graph.params[len(given) :]
        state = self.state(graph)
        saved: list[Node] = []
        if v.tape is not None:
            i = self.tapes.index(v.tape)
            state[i], record = items(b, b.emit(REGISTRY["tape_pop"], (state[i],)), 2)
            saved = items(b, record, len(v.cut.residuals))
        env: Env = dict(zip(old.params, [*(given[i] for i in v.cut.reused), *saved, *douts], strict=True))
        state = self.nodes(b, [n for n in old.nodes if n is not old.output], env, state)
        graph.output = pack(b, [*(lookup(env, a) for a in old.output.args), *state])

    def nodes(self, b: Builder, nodes: Sequence[Apply], env: Env, state: list[Node]) -> list[Node]:
        """Emit applications; returns the tapes after them."""
        for node in nodes:
            args = tuple(lookup(env, a) for a in node.args)
            if self.versions.runs(node):
                b.origin = node.origin
                env[node], state = self.application(b, node, args, state)
            else:
                env[node] = emit_like(b, node, args)
        return state

    def application(
        self, b: Builder, node: Apply, args: tuple[Node, ...], state: list[Node]
    ) -> tuple[Node, list[Node]]:
        """An application that runs a version.

        Raises:
            InternalError: another operation than a call, a branch or a loop runs a function.
        """
        if isinstance(node.fn, Graph):
            return self.call(b, node, args, state)
        name, k = node.fn.name, len(self.tapes)
        if name == "cond":
            branches = {key: self.graph(node.attrs[key]) for key in ("then", "orelse")}
            out = b.emit(node.fn, (*args, *state), branches)
            return items(b, out, 1)[0], items(b, out, 1 + k, 1)
        if name not in ("for_loop", "while_loop"):
            raise InternalError("ad", f"{name} runs a function that is being differentiated")
        n, lead = node.attrs["carried"], 3 if name == "for_loop" else 0
        attrs = {key: self.loop(g, n, lead > 0, key == "body") for key, g in node.attrs.items() if isinstance(g, Graph)}
        inputs = (*args[: lead + n], *state, *args[lead + n :])
        out = b.emit(node.fn, inputs, {**attrs, "carried": n + k})
        return b.emit(REGISTRY["make_struct"], tuple(items(b, out, n)), {"type": node.type}), items(b, out, n + k, n)

    def call(self, b: Builder, node: Apply, args: tuple[Node, ...], state: list[Node]) -> tuple[Node, list[Node]]:
        found = self.versions.shells.get(node.fn)
        if found is None:
            out = b.call(self.graph(node.fn), (*args, *state))
            return items(b, out, 1)[0], items(b, out, 1 + len(state), 1)
        version, forward = found
        out = b.call(version.forward if forward else version.backward, (*args, *state))
        n = len(node.type.elems)
        return pack(b, items(b, out, n)), items(b, out, n + len(state), n)

    def graph(self, old: Graph) -> Graph:
        """A branch, or a function that is called once: (*params, *tapes) -> (result, *tapes)."""
        if old not in self.graphs:
            new = Graph(old.name, None, old.origin)
            new.flags = {k: v for k, v in old.flags.items() if k != "effects"}
            env: Env = {p: new.add_parameter(p.name, p.type, p.origin) for p in old.params}
            b = Builder(new, old.origin)
            state = self.nodes(b, old.nodes, env, self.state(new))
            new.output = pack(b, [lookup(env, old.output), *state])
            self.graphs[old] = new
        return self.graphs[old]

    def loop(self, old: Graph, n: int, counted: bool, body: bool) -> Graph:
        """A body, or a condition, of a loop that carries the tapes behind its own n values."""
        new = Graph(old.name, None, old.origin)
        new.flags = {k: v for k, v in old.flags.items() if k != "effects"}
        first = n + (1 if counted else 0)
        env: Env = {p: new.add_parameter(p.name, p.type, p.origin) for p in old.params[:first]}
        state = self.state(new)
        env.update({p: new.add_parameter(p.name, p.type, p.origin) for p in old.params[first:]})
        b = Builder(new, old.origin)
        state = self.nodes(b, old.nodes, env, state)
        out = lookup(env, old.output)
        new.output = pack(b, [*items(b, out, n), *state]) if body else out
        return new


__all__ = ["split_call"]
