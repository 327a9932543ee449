"""Forward and backward versions of a graph: its adjoint, split in two.

In graphs that run conditionally, repeatedly or from several places, forward and adjoint applications cannot be in one
straight line. The adjoint of the graph is first emitted as if they could (`ad.reverse.reverse`), and then split:

    forward:  params -> (out, residuals)            backward:  (params it may see again, residuals, dout) -> dparams

Residuals are the forward values that live adjoint applications read. This is closure conversion of the backpropagator,
with three economies:

- what the backward version can be given again (operands of a branch, constants of a loop) is not saved;
- structure operations, constants, views and, in loops, whatever depends only on loop constants are recomputed;
- cheap elementwise values whose operands are all available are recomputed.

Source: closure conversion as in Pearlmutter and Siskind (2008); recomputation against storing as in M. Peng and C.
Dubach, "LAGrad" (CC 2023), section 3.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...abstract.dims import Dim, product, run_time_symbols, symbols
from ...abstract.types import Array, List, Scalar, Struct, Tape, Type, leaves, tuple_of, type_symbols
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, Parameter
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import emit_like, lookup, same_interface
from ...ir.sizes import is_binding, mentioned
from ...utils.errors import GradError
from ..common.activity import Act
from ..common.cotangents import Pattern, leaf_nodes, leaf_types, pattern, unflatten
from .restore import ArrayVersions, Restoring, worth
from .reverse import Adjoint, Expansion

FREE = {"get_item", "make_struct", "undef", "dim_size", "none", "as_scalar"}
"""Recomputed rather than saved, if that avoids saving something larger; and so are views with at least as many elements."""

CHEAP = {
    *("add", "sub", "mul", "neg", "abs", "sign", "where", "cast", "maximum", "minimum"),
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "logical_xor"),
}
"""Recomputed if all operands are available anyway."""


@dataclass(frozen=True)
class Split:
    """The two halves.

    Attributes:
        forward: params -> (out, *residuals).
        residuals: types of the residuals.
        backward: (*params[reused], *residuals, *nodes of dout) -> tuple of the nodes of the parameters' cotangents.
        reused: indices of the parameters that the backward half takes again.
        patterns: for each parameter, the shape of its cotangent.
        dout: which parts of the result's cotangent the backward half takes.
        threads: whether both halves run versions of functions that call themselves, whose residuals are on tapes that are
            threaded through afterwards (`ad.reverse.recursion`): then neither half may be left out.
        restored: parameters that are arrays which the graph changes: the backward half takes what they are in the end, before the
            nodes of dout, and returns what they were, behind the cotangents (`ad.reverse.restore`).
        dear: of a loop's body, arrays of which so much is kept that they should be restored, as `restore.worth` returns them.
    """

    forward: Graph
    residuals: tuple[Type, ...]
    backward: Graph
    reused: tuple[int, ...]
    patterns: tuple[Pattern, ...]
    dout: Pattern
    threads: bool = False
    restored: tuple[int, ...] = ()
    dear: Mapping[int, tuple[int, bool]] = field(default_factory=dict, compare=False)


def split_graph(
    context: Expansion, graph: Graph, acts: tuple[Act, ...], dout: Pattern, again: tuple[int, ...], loop: bool = False
) -> Split:
    """The forward and backward versions of a graph.

    Args:
        context: shared memos.
        graph: typed, closed, transforms expanded.
        acts: activities of its parameters.
        dout: which parts of the result's cotangent are not zero.
        again: indices of parameters that the backward version may be given again.
        loop: whether those are constants of a loop, so that what depends on them alone is better computed again.
    """
    key = (graph, acts, dout, again, loop)
    if key not in context.splits:
        context.splits[key] = Joint(context, graph, acts, dout, again, loop).cut()
    return context.splits[key]


def restoring_split(
    context: Expansion,
    graph: Graph,
    acts: tuple[Act, ...],
    dout: Pattern,
    again: tuple[int, ...],
    loop: bool,
    places: Mapping[int, int | None],
) -> Split | None:
    """As `split_graph`, with arrays that are restored on the way back; None where that is not possible.

    Args:
        places: the parameters that hold them -> the parts of the result that they are in the end.
    """
    places = dict(sorted(places.items()))
    key = (graph, acts, dout, again, loop, tuple(places.items()))
    if key not in context.splits:
        restoring = Restoring.of(graph, places)
        joint = Joint(context, graph, acts, dout, again, loop, restoring=restoring) if restoring is not None else None
        context.splits[key] = joint.cut() if joint is not None and joint.restores else None
    return context.splits[key]


class Joint:
    """The adjoint of a graph in one straight line, and its split.

    Args:
        patterns: which parts of the parameters' cotangents are returned; by default those that are not zero.
        restoring: what is restored.
        Others: as for `split_graph`.

    Attributes:
        restores: whether everything that is to be restored can be.
    """

    def __init__(
        self,
        context: Expansion,
        graph: Graph,
        acts,
        dout: Pattern,
        again,
        loop: bool = False,
        patterns=None,
        restoring: Restoring | None = None,
    ):
        self.context, self.graph, self.loop, self.dout = context, graph, loop, dout
        self.joint, env = same_interface(graph)
        self.params = self.joint.params[:]
        builder = Builder(self.joint, graph.origin)
        adjoint = Adjoint(context, builder, graph, [env[p] for p in graph.params], acts)
        adjoint.restoring = restoring if restoring is not None else Restoring()
        self.out = adjoint.forward()
        plain = set(self.joint.nodes)
        self.douts = [self.joint.add_parameter(f"d{i}", t) for i, t in enumerate(leaf_types(dout, graph.output.type))]
        cts = adjoint.backward(unflatten(dout, iter(self.douts)))
        self.patterns = tuple(pattern(ct) for ct in cts) if patterns is None else patterns
        types = [p.type for p in self.params]
        self.results = [
            n for ct, p, t in zip(cts, self.patterns, types, strict=True) for n in leaf_nodes(builder, ct, p, t)
        ]
        last = max((i for i, n in enumerate(self.joint.nodes) if n in plain), default=-1)
        self.first, self.second = self.joint.nodes[: last + 1], self.joint.nodes[last + 1 :]
        self.again = {self.params[i] for i in again}
        self.env = adjoint.env
        self.versions = ArrayVersions(builder, adjoint.restoring, adjoint.env)
        self.restores = restoring is None or self.restore()

    def restore(self) -> bool:
        """Let the adjoint applications read what is restored, and put all of them in order; False where that is not possible."""
        versions, first = self.versions, set(self.first)
        if not versions.find(self.joint, self.out, self.params):
            return False
        more: list[Apply] = []
        for node in self.second:
            node.args = tuple(versions.read(a, first, more) for a in node.args)
        self.results = [versions.read(r, first, more) for r in self.results] + versions.initial
        order = in_order(self.second, {*self.second, *more, *versions.undo}, self.results)
        self.second = order or []
        return order is not None

    def cut(self) -> Split:
        adjoints = self.live()
        wanted = {a for node in adjoints for a in node.args} | set(self.results)
        wanted -= {*adjoints, *self.douts, *self.versions.finals}
        wanted = {w for w in wanted if not isinstance(w, Constant)}
        saved, computed, reused = self.choose(wanted)
        if binders := {name: n for n in self.first if is_binding(n) for name in symbols(n.attrs["dim"])}:
            saved, computed, reused = self.with_sizes(binders, wanted, adjoints)
        position: dict[Node, int] = {p: i for i, p in enumerate(self.params)}
        indices = tuple(sorted(position[p] for p in reused))
        return Split(
            forward=self.half("forward", self.params, self.first, [self.out, *saved], pack=saved),
            residuals=tuple(packed_type(n.type) for n in saved),
            backward=self.half(
                "backward",
                [*(self.params[i] for i in indices), *saved, *self.versions.finals, *self.douts],
                [*computed, *adjoints],
                self.results,
                unpack=saved,
            ),
            reused=indices,
            patterns=self.patterns,
            dout=self.dout,
            threads=any(self.context.threads(node) for node in (*self.first, *adjoints)),
            restored=tuple(self.versions.restoring.places),
            dear=worth(self.graph, self.env, saved) if self.loop else {},
        )

    def with_sizes(
        self, binders: dict[str, Apply], wanted: set[Node], adjoints: Sequence[Apply]
    ) -> tuple[list[Node], list[Apply], set[Node]]:
        """As `choose`, where dimensions are bound: the backward half binds those that it mentions again."""
        named: set[str] = set()
        while True:
            saved, computed, reused = self.choose(wanted)
            now = set().union(
                *(type_symbols(n.type) for n in (*saved, *self.results)), *map(mentioned, (*computed, *adjoints))
            )
            more = (now & binders.keys()) - named
            if not more:
                again = {binders[name] for name in named}
                return saved, [n for n in self.first if n in again or n in set(computed)], reused
            named |= more
            wanted |= {n for name in more for n in binders[name].args if not isinstance(n, Constant)}

    def live(self) -> list[Apply]:
        """The adjoint applications that some result needs, in order."""
        needed, kept = set(self.results), []
        for node in reversed(self.second):
            if node in needed or self.context.threads(node) or "mark" in self.context.effects.of_node(node):
                needed.update(node.args)
                kept.append(node)
        return kept[::-1]

    def choose(self, wanted: set[Node]) -> tuple[list[Node], list[Apply], set[Node]]:
        """What to save, what to recompute, and which parameters to take again, so that `wanted` is available."""
        free, kept = self.free(), set(self.versions.kept.values())
        saved: set[Node] = {w for w in wanted if isinstance(w, Parameter) and w not in self.again}
        computed: set[Node] = set()
        wanted = set(wanted)
        for node in reversed(self.first):
            if node not in wanted:
                continue
            if node not in kept and (node in free or _is_view(node)):
                computed.add(node)
                for arg in node.args:
                    if not isinstance(arg, Constant):
                        wanted.add(arg)
                        if isinstance(arg, Parameter) and arg not in self.again:
                            saved.add(arg)
            else:
                saved.add(node)
        here = saved | computed | self.again | free
        for node in self.first:  # cheap values whose operands are available anyway
            if (
                node in saved
                and node not in kept
                and (_is_free(node) or _is(node, CHEAP))
                and all(isinstance(a, Constant) or (a in here and a in wanted) for a in node.args)
            ):
                saved.discard(node)
                computed.add(node)
        order = [*self.params, *self.first]
        reused = {p for p in self.again if p in wanted}
        return [n for n in order if n in saved], [n for n in self.first if n in computed], reused

    def free(self) -> set[Node]:
        """Forward values that can be recomputed from what is taken again, and should be."""
        free = set(self.again)
        for node in self.first:
            if all(a in free or isinstance(a, Constant) for a in node.args) and (
                _is_pure(node) if self.loop else _is_free(node)
            ):
                free.add(node)
        return free

    def half(
        self,
        kind: str,
        params: Sequence[Node],
        nodes: Sequence[Apply],
        results: Sequence[Node],
        pack: Sequence[Node] = (),
        unpack: Sequence[Node] = (),
    ) -> Graph:
        """A closed graph of some of the joint graph's applications.

        Args:
            kind: "forward" or "backward".
            params: what it takes.
            nodes: the applications.
            results: what it returns.
            pack: which of them are kept for the backward half: arrays whose sizes values decide as lists of their numbers.
            unpack: which of `params` were kept so.
        """
        graph = Graph(f"{self.graph.name}.{kind}", None, self.graph.origin)
        builder = Builder(graph, self.graph.origin)
        env: dict[Node, Node] = {}
        lists: dict[Node, Node] = {}  # arrays that come as lists
        steps: Sequence[Node] = nodes
        for i, p in enumerate(params):
            t = packed_type(p.type) if p in unpack else p.type
            env[p] = graph.add_parameter(p.name or f"r{i}", t, p.origin)
            if t is not p.type:
                lists[p] = env.pop(p)
        if lists:  # each as soon as its sizes are bound
            again = set(nodes)
            order: list[Node] = [n for n in (*self.params, *self.first) if n in lists or n in again]
            again.difference_update(n for n in order if isinstance(n, Apply))
            steps = [*order, *(n for n in nodes if n in again)]
        for node in steps:
            if node in lists:
                env[node] = unpacked(builder, lists[node], node.type)
            elif node not in env:
                assert isinstance(node, Apply)
                env[node] = emit_like(builder, node, tuple(lookup(env, a) for a in node.args))
        builder.origin = self.graph.origin
        out = tuple(packed(builder, lookup(env, r)) if r in pack else lookup(env, r) for r in results)
        type = tuple_of(*[r.type for r in out])
        graph.output = builder.emit(REGISTRY["make_struct"], out, {"type": type})
        return graph


def in_order(nodes: Sequence[Apply], members: Collection[Apply], results: Sequence[Node]) -> list[Apply] | None:
    """Applications in an order in which each comes after what it needs: `nodes` as they are, the others as late as possible.

    Args:
        nodes: applications.
        members: they, and others that they may need.
        results: what else needs some.

    Returns:
        Those that are needed; None where some need each other.
    """
    out: dict[Apply, None] = {}
    open_: set[Apply] = set()
    for first in (*nodes, *results):
        stack = [first] if isinstance(first, Apply) and first in members else []
        while stack:
            node = stack[-1]
            if node in out:
                stack.pop()
                continue
            missing = [a for a in node.args if isinstance(a, Apply) and a in members and a not in out]
            if not missing:
                out[node] = None
                open_.discard(stack.pop())
            elif node in open_:
                return None
            else:
                open_.add(node)
                stack += missing
    return list(out)


def packed_type(t: Type) -> Type:
    """The type of a residual as it is kept: of an array whose sizes values decide the list of its numbers.

    Raises:
        GradError: such an array is a part of something else.
    """
    if not run_time_symbols(type_symbols(t)):
        return t
    if not isinstance(t, Array):
        raise GradError(
            f"the derivative would have to keep a {t}, whose sizes values decide, for the way back; keep the arrays apart"
        )
    return List(Scalar(t.dtype, True))


def packed(b: Builder, node: Node) -> Node:
    """A residual as it is kept."""
    if packed_type(node.type) is node.type:
        return node
    flat = b.emit(REGISTRY["reshape"], (node,), {"shape": (product(node.type.shape),)})
    return b.emit(REGISTRY["list_from_array"], (flat if len(node.type.shape) != 1 else node,))


def unpacked(b: Builder, numbers: Node, t: Array) -> Node:
    """The inverse of `packed`."""
    flat = b.emit(REGISTRY["list_to_array"], (numbers,), {"size": product(t.shape)})
    return flat if len(t.shape) == 1 else b.emit(REGISTRY["reshape"], (flat,), {"shape": t.shape})


def _is(node: Apply, names: set[str]) -> bool:
    return isinstance(node.fn, Primitive) and node.fn.name in names and not holds_tape(node.type)


def _is_pure(node: Apply) -> bool:
    """Whether recomputing it is safe, and in a loop probably free: the optimiser moves it out."""
    if not isinstance(node.fn, Primitive) or node.fn.effect or node.fn.kind in ("control", "effect"):
        return False
    return not node.fn.name.startswith("tape_") and not holds_tape(node.type)


def _is_view(node: Apply) -> bool:
    """Whether saving its operands costs no more than saving the node itself."""
    return _is_free(node) and node.fn.name != "get_item"  # whose operand holds more than this part


def _is_free(node: Apply) -> bool:
    """Whether recomputing it costs nothing."""
    if _is(node, FREE):
        return True
    return isinstance(node.fn, Primitive) and node.fn.view and _elements(node.args[0].type) <= _elements(node.type)


def _elements(t: Type) -> int:
    size = t.size if isinstance(t, Array) else 1
    return 1 << 62 if isinstance(size, Dim) else size


def holds_tape(t: Type) -> bool:
    """Whether values of this type are used linearly."""
    return any(isinstance(leaf, Tape) for leaf in leaves(t)) if isinstance(t, Tape | Struct) else False
