"""Rebuilding typed graphs: cloning, inlining, memoised rewriting, removal of unused nodes.

Rewriting is a memoised rebuild, as in Thorin. A pass walks `Graph.nodes` once, in order, and says for each application
what replaces it in the new graph, given the new arguments. The input is never changed. Recursion follows the nesting of
graphs, never the length of one.

Functions that call themselves, directly or not, are strongly connected components of the graph of references
(`mark_recursion`). A component is rebuilt or kept as a whole: a call of a function that is being rebuilt calls the new
function, which is not complete yet and therefore never inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..utils.errors import InternalError
from ..utils.source import Origin
from .build import Builder
from .node import Apply, Constant, Graph, Node
from .prim import Primitive
from .sizes import is_binding, with_own_sizes
from .termination import ends

Env = dict[Node, Node]
NO_EFFECTS: frozenset[str] = frozenset()
OWN = {None: NO_EFFECTS, **{effect: frozenset({effect}) for effect in ("raise", "read", "write", "io", "mark")}}
UPDATE = frozenset({"update"})


def inner_graphs(node: Apply) -> Sequence[Graph]:
    """The graphs that an application runs: its callee, and those among its attributes."""
    if not node.attrs:  # true of most applications, and every pass asks for it
        return (node.fn,) if isinstance(node.fn, Graph) else ()
    found: list[Graph] = [node.fn] if type(node.fn) is Graph else []
    _graphs_among(node.attrs, found)
    return found


def _graphs_among(attrs: Mapping[str, Any], found: list[Graph]) -> None:
    """Append the graphs among attributes."""
    for value in attrs.values():
        if type(value) is Graph:
            found.append(value)
        elif type(value) is tuple:
            for v in value:
                if type(v) is Graph:
                    found.append(v)


def graphs_run(graph: Graph) -> list[Graph]:
    """The graphs that the applications of a graph run, in order."""
    found: list[Graph] = []
    for node in graph.nodes:
        if type(node.fn) is Graph:
            found.append(node.fn)
        if node.attrs:
            _graphs_among(node.attrs, found)
    return found


def running(graphs: Iterable[Graph], some: Iterable[Graph]) -> set[Graph]:
    """Some of these graphs, and those that run one of them, directly or not."""
    users: dict[Graph, list[Graph]] = {}
    for g in graphs:
        for inner in graphs_run(g):
            users.setdefault(inner, []).append(g)
    out = set(some)
    stack = list(out)
    while stack:
        for user in users.get(stack.pop(), ()):
            if user not in out:
                out.add(user)
                stack.append(user)
    return out


def map_graphs(attrs: Mapping[str, Any], change: Callable[[Graph], Graph]) -> dict[str, Any]:
    """The attributes with every graph among them replaced by `change(graph)`."""
    out = dict(attrs)
    if not out:
        return out
    for name, value in attrs.items():
        if isinstance(value, Graph):
            out[name] = change(value)
        elif isinstance(value, tuple) and any(isinstance(v, Graph) for v in value):
            out[name] = tuple(change(v) if isinstance(v, Graph) else v for v in value)
    return out


def same_interface(graph: Graph, name: str | None = None) -> tuple[Graph, Env]:
    """An empty graph with the parameters of `graph`, and the map from the old ones to the new."""
    new = Graph(name or graph.name, None, graph.origin)
    new.flags = dict(graph.flags)
    return new, {p: new.add_parameter(p.name, p.type, p.origin) for p in graph.params}


def lookup(env: Env, node: Node) -> Node:
    """What has replaced `node`; constants stand for themselves.

    Raises:
        InternalError: it is used before it is defined.
    """
    found = env.get(node)
    if found is None:
        if not isinstance(node, Constant):
            raise InternalError("rewrite", f"{node!r} is used before it is defined")
        return node
    return found


def emit_like(
    builder: Builder, node: Apply, args: Sequence[Node], attrs: Mapping[str, Any] | None = None, fn=None
) -> Node:
    """Append `node` again with new arguments (and attributes, and callee): same type, origin and name."""
    fn = fn if fn is not None else node.fn
    attrs = node.attrs if attrs is None else attrs
    builder.origin = node.origin
    if isinstance(fn, Graph):
        new = builder.graph.apply(fn, *args, attrs=attrs, type=node.type, origin=node.origin)
    else:
        new = builder.emit(fn, args, attrs, node.type)
    if new.name is None and isinstance(new, Apply):
        new.name = node.name
    return new


def inline(builder: Builder, graph: Graph, args: Iterable[Node], call: Origin | None = None) -> Node:
    """Append the applications of `graph` with `args` for its parameters; returns what replaces its output.

    Args:
        call: origin of the call that is inlined: errors then show both places.
    """
    graph = with_own_sizes(graph)
    env: Env = dict(zip(graph.params, args, strict=True))
    before = builder.origin
    for node in graph.nodes:
        new = emit_like(builder, node, tuple(lookup(env, a) for a in node.args))
        if call is not None and isinstance(new, Apply) and new.origin is node.origin:
            new.origin = node.origin.inlined_at(call)
        env[node] = new
    builder.origin = before
    return lookup(env, graph.output)


def as_call(graph: Graph) -> Graph:
    """A function that only calls `graph`: passes that change a recursive function change its calls."""
    caller, env = same_interface(graph)
    caller.flags = {}
    caller.output = caller.apply(graph, *env.values(), type=graph.output.type, origin=graph.origin)
    return caller


class Rewriter:
    """One pass over a graph and all graphs inside it; subclasses override `node`.

    A graph that occurs twice is rebuilt once. `changed` tells whether anything became different; a subclass sets it.

    Passes run repeatedly, mostly on graphs that they left unchanged. If the effect of a pass depends only on the
    contents of a graph, the graph is marked as settled and not visited again.

    Attributes:
        mark: stands for the pass and its options in `Graph.settled`; None where what it does depends on what is around a graph.
        shells: recursive graphs that are being rebuilt -> the new graph, incomplete, and its parameters.
        heads: recursive graphs that are called from inside: they stay functions.
        acts_on: the primitives whose applications may become different; a graph without them, or what calls itself, is not even
            looked at. None: any.
    """

    acts_on: Collection[str] | None = None
    mark: Any = None

    def __init__(self):
        self.graphs: dict[Graph, Graph] = {}
        self.changed = False
        self.component: dict[Graph, int] = {}
        self.known: set[Graph] = set()  # where recursion has been looked for
        self.passed: set[Graph] = set()  # graphs with nothing in them to act on
        self.shells: dict[Graph, tuple[Graph, Env]] = {}
        self.heads: set[Graph] = set()
        self._inside: set[int] = set()  # components that are being rebuilt

    def rewrite(self, graph: Graph) -> Graph:
        """The rebuilt graph; the same object if nothing changed in it."""
        if self.is_settled(graph):
            return graph
        if graph in self.shells:
            self.heads.add(graph)
            return self.shells[graph][0]
        if graph not in self.graphs and graph not in self.known:
            self.prepare(graph)
        found = self.graphs.get(graph)
        if found is not None:
            if self.component.get(graph) not in self._inside:
                self.changed |= found is not graph
            return found
        component = self.component.get(graph)
        if component is None and self.acts_on is not None and not self.concerns(graph):
            found = graph
            self.passed.add(graph)
            self.settle([graph])
        elif component is None:
            outside, self.changed = self.changed, False
            new = self.build(graph)
            found = new if self.changed else graph
            if found is graph:
                self.settle([graph])
            self.changed |= outside
        elif component in self._inside:
            found = self._recursive(graph)
        else:
            # The first of its component: all of them have changed, or none.
            outside, self.changed = self.changed, False
            self._inside.add(component)
            found = self._recursive(graph)
            self._inside.remove(component)
            if not self.changed:
                members = [g for g, number in self.component.items() if number == component]
                self.graphs.update({g: g for g in members if g in self.graphs})
                self.settle(members)
                found = graph
            self.changed |= outside
        self.graphs[graph] = found
        return found

    def concerns(self, graph: Graph) -> bool:
        """Whether there is anything to act on in a graph, or in what it runs, which was rewritten before."""
        for node in graph.nodes:
            if type(node.fn) is Primitive and node.fn.name in self.acts_on:
                return True
            if node.attrs or type(node.fn) is Graph:
                for inner in inner_graphs(node):
                    if inner not in self.passed and not self.is_settled(inner):
                        return True
        return False

    def is_settled(self, graph: Graph) -> bool:
        """Whether this pass has left a graph unchanged before, and would again."""
        return self.mark is not None and self.mark in graph.settled

    def settle(self, graphs: Sequence[Graph]) -> None:
        """Record that this pass leaves a graph, or a recursive component, unchanged."""
        if self.mark is None:
            return
        called: set[Graph] = set()
        for node in (n for g in graphs for n in g.nodes if n.attrs or type(n.fn) is Graph):
            for inner in inner_graphs(node):
                if inner is node.fn:
                    called.add(inner)
                if inner not in graphs:
                    known = inner.settled.get(self.mark)
                    if known is None:
                        return
                    called |= known
        for graph in graphs:
            graph.settled[self.mark] = frozenset(called)

    def prepare(self, graph: Graph) -> None:
        """Find recursion in a new graph, and rewrite the graphs inside it, innermost first.

        The depth of Python's stack is then that of a recursion in the program, never that of its calls and branches.
        """
        first = len(self.component)
        order = components(graph, self.is_settled)
        self.component.update({g: first + k for g, k in mark_recursion(graph, order).items()})
        self.known.update(g for members in order for g in members)
        for inner in (members[0] for members in order):
            if inner not in self.component and self.rewrites_alone(inner):
                self.rewrite(inner)

    def rewrites_alone(self, graph: Graph) -> bool:
        """Whether a graph inside of another is rewritten by itself, before the graphs that refer to it."""
        return True

    def _recursive(self, graph: Graph) -> Graph:
        self.shells[graph] = same_interface(graph)
        new = self.build(graph)
        del self.shells[graph]
        self.graphs[graph] = new
        return new

    def incomplete(self, graph: Graph) -> bool:
        """Whether this is the new form of a recursive graph that is still being built: its contents must not be used."""
        return any(graph is new for new, _ in self.shells.values())

    def leads_back(self, graph: Graph) -> bool:
        """Whether a branch or body inside a graph is incomplete: inlined here, it would contain itself without a call."""
        stack, seen = [graph] if self.shells else [], {graph}
        while stack:
            for node in stack.pop().nodes:
                for inner in inner_graphs(node):
                    if inner is node.fn or inner in seen:
                        continue
                    if self.incomplete(inner):
                        return True
                    seen.add(inner)
                    stack.append(inner)
        return False

    def interface(self, graph: Graph) -> tuple[Graph, Env]:
        """The new graph to build into, and the map from the old parameters to its own."""
        return self.shells[graph] if graph in self.shells else same_interface(graph)

    def build(self, graph: Graph) -> Graph:
        """Rebuild one graph: parameters as they are, then application by application."""
        return self.rebuilt(graph, {})

    def rebuilt(self, graph: Graph, instead: Mapping[Node, Callable[[Builder, Env], Node]]) -> Graph:
        """A graph rebuilt by `node`, but for applications that are written anew: each by what emits it instead."""
        new, env = self.interface(graph)
        builder = Builder(new)
        for node in graph.nodes:
            if node in instead:
                builder.origin = node.origin
                env[node] = instead[node](builder, env)
                continue
            args = tuple(lookup(env, a) for a in node.args)
            attrs = self.inner(node)
            env[node] = self.node(builder, node, args, attrs)
        new.output = lookup(env, graph.output)
        return new

    def inner(self, node: Apply) -> Mapping[str, Any]:
        """The attributes of a node with the graphs among them rewritten."""
        return map_graphs(node.attrs, self.rewrite)

    def node(self, builder: Builder, node: Apply, args: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        """What replaces `node`; by default, the node itself."""
        fn = self.rewrite(node.fn) if isinstance(node.fn, Graph) else None
        return emit_like(builder, node, args, attrs, fn)


class Effects:
    """Which effects an application can have, through the graphs it runs; memoised per graph.

    Recursive graphs carry theirs as a flag (`mark_recursion`), since they are asked for while the graphs are being rebuilt. A
    recursive call may exceed the depth limit: it can raise.
    """

    def __init__(self):
        self.memo: dict[Graph, frozenset[str]] = {}
        self.ending: dict[Graph, bool] = {}

    def of_graph(self, graph: Graph) -> frozenset[str]:
        """Effects of running a graph: a set of "raise", "read", "write", "io", and "update" for writes of what derivatives look
        at."""
        found = graph.flags.get("effects") or self.memo.get(graph)
        if found is None:
            self.memo[graph] = frozenset({"raise"})  # it is found again only if it calls itself
            found = frozenset(e for node in graph.nodes for e in self.of_node(node))
            self.memo[graph] = found
        return found

    def of_node(self, node: Apply) -> frozenset[str]:
        """Effects of an application."""
        own = OWN[node.fn.effect] if type(node.fn) is Primitive else NO_EFFECTS
        if "write" in own and not node.attrs.get("state"):
            own |= UPDATE
        if node.attrs or type(node.fn) is Graph:
            for graph in inner_graphs(node):
                own |= self.of_graph(graph)
        return own

    def stays(self, node: Apply) -> bool:
        """Whether an application must be kept even if its value is unused: it has an effect, or may never end."""
        return bool(self.of_node(node) - {"read"}) or not self.ends(node)

    def ends(self, node: Apply) -> bool:
        """Whether an application is known to end, or to raise."""
        if not node.attrs and type(node.fn) is not Graph:
            return True
        if type(node.fn) is Primitive and node.fn.name == "while_loop" and not ends(node):
            return False
        return all(map(self.graph_ends, inner_graphs(node)))

    def graph_ends(self, graph: Graph) -> bool:
        """Whether running a graph is known to end, or to raise, as endless recursion does."""
        found = self.ending.get(graph)
        if found is None:
            self.ending[graph] = True  # it is found again only if it calls itself
            found = self.ending[graph] = all(map(self.ends, graph.nodes))
        return found


def components(graph: Graph, without: Callable[[Graph], bool] | None = None) -> list[list[Graph]]:
    """The strongly connected components of what a graph refers to, inner ones first (R. Tarjan, 1972).

    Args:
        graph: where to begin.
        without: which of the graphs inside to leave out, with all inside of them.
    """
    number: dict[Graph, int] = {}
    low: dict[Graph, int] = {}
    path: list[Graph] = []
    on_path: set[Graph] = set()
    out: list[list[Graph]] = []
    work: list[tuple[Graph, Iterator[Graph]]] = []

    def enter(g: Graph) -> None:
        number[g] = low[g] = len(number)
        path.append(g)
        on_path.add(g)
        inside = graphs_run(g)
        work.append((g, iter(inside if without is None else [i for i in inside if not without(i)])))

    enter(graph)
    while work:
        current, rest = work[-1]
        inner = next(rest, None)
        if inner is None:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[current])
            if low[current] == number[current]:
                members = []
                while not members or members[-1] is not current:
                    members.append(path.pop())
                    on_path.remove(members[-1])
                out.append(members)
        elif inner not in number:
            enter(inner)
        elif inner in on_path:
            low[current] = min(low[current], number[inner])
    return out


def recursive_components(graph: Graph, order: list[list[Graph]] | None = None) -> list[list[Graph]]:
    """The components that run themselves again, inner ones first; `order`: the graph's `components`, where they are known."""
    found = components(graph) if order is None else order
    return [c for c in found if len(c) > 1 or c[0] in graphs_run(c[0])]


def mark_recursion(graph: Graph, order: list[list[Graph]] | None = None) -> dict[Graph, int]:
    """The recursive graphs inside of a graph, each with the number of its component; flags them with their effects.

    Args:
        graph: where to look.
        order: its `components`, where they are known.
    """
    out: dict[Graph, int] = {}
    effects = Effects()
    for number, members in enumerate(recursive_components(graph, order)):
        found = frozenset({"raise"}) | {
            e for g in members for node in g.nodes for e in _own_effects(node, set(members), effects)
        }
        for g in members:
            g.flags["effects"] = found
            out[g] = number
    return out


def _own_effects(node: Apply, members: set[Graph], effects: Effects) -> frozenset[str]:
    """The effects of an application, except those of graphs of its own component."""
    own = OWN[node.fn.effect] if type(node.fn) is Primitive else NO_EFFECTS
    if not node.attrs and type(node.fn) is not Graph:
        return own
    return own.union(*(effects.of_graph(g) for g in inner_graphs(node) if g not in members))


class RecursiveComponents:
    """Which recursive component a graph belongs to, and what it pushes on; memoised."""

    def __init__(self):
        self.memo: dict[Graph, frozenset[Graph] | None] = {}
        self.pushes: dict[Graph, set[Any]] = {}

    def component(self, graph: Graph) -> frozenset[Graph] | None:
        """The graphs that run each other together with this one; None if it does not run itself."""
        if graph not in self.memo:
            numbers = mark_recursion(graph)
            members: dict[int, set[Graph]] = {}
            for g, number in numbers.items():
                members.setdefault(number, set()).add(g)
            whole = {number: frozenset(m) for number, m in members.items()}
            self.memo.update({g: whole[numbers[g]] if g in numbers else None for g in all_graphs(graph)})
        return self.memo[graph]

    def pushed(self, graph: Graph) -> set[Any]:
        """The types of tapes on which a graph, or one inside it, pushes."""
        if graph not in self.pushes:
            nodes = (n for g in all_graphs(graph) for n in g.nodes if isinstance(n.fn, Primitive))
            self.pushes[graph] = {n.type for n in nodes if n.fn.name == "tape_push"}
        return self.pushes[graph]


def drop_dead(graph: Graph, effects: Effects | None = None) -> int:
    """Remove applications that are unused, end, and have no effect but reading; returns how many were removed.

    Works in place: for a graph that a pass has just built.
    """
    effects = effects or Effects()
    live: set[Node] = {graph.output}
    kept = []
    for node in reversed(graph.nodes):
        if node in live or effects.stays(node):
            live.update(node.args)
            kept.append(node)
    gone = len(graph.nodes) - len(kept)
    kept.reverse()
    graph.nodes = kept
    return gone


def all_graphs(graph: Graph) -> list[Graph]:
    """`graph` and every graph inside it, each once, inner ones after the outer."""
    out, stack, seen = [], [graph], {graph}
    while stack:
        top = stack.pop()
        out.append(top)
        for inner in graphs_run(top):
            if inner not in seen:
                seen.add(inner)
                stack.append(inner)
    return out


def binds_dims(graph: Graph) -> bool:
    """Whether a graph, or one inside it, has a dimension that a value decides."""
    return any(is_binding(n) for g in all_graphs(graph) for n in g.nodes)


def count_nodes(graph: Graph) -> int:
    """How many applications a graph has, inner graphs included (each once)."""
    return sum(len(g.nodes) for g in all_graphs(graph))
