"""Simplification: inlining, folding, rewrite rules, common subexpressions and dead code, in one walk.

Everything happens where an application is emitted. `Simplifier.emit` first folds (constants, parts of known
structures), then tries the rules, then looks for an equal application that was emitted before (value numbering: an
application is its primitive, its attributes and its arguments). `Graph.nodes` is in program order, so earlier values
are available. What a rule emits is treated in the same way. One walk is linear; the pipeline repeats it to a fixpoint.

Source: value numbering as in C. Click, "Global code motion, global value numbering" (PLDI 1995).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.types import Array, Struct, Tape, Type, leaves
from ...ir.build import Builder, fold
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applies
from ...ir.prim import Primitive
from ...ir.rewrite import Effects, Env, Rewriter, drop_dead, inline, inner_graphs, lookup
from ...utils.source import Origin
from .algebra import FINAL, TABLE, sink_units, unbroadcast_operand, whole_struct
from .like_terms import collect_terms
from .rules import Table

COMMUTATIVE = ("add", "mul")
"""x + y and y + x are the same float."""

OPEN_LIMIT = (
    4  # times as long may functions of arrays be whose sizes are known at the calls alone, and are inlined still
)


def freeze(value: Any) -> Any:
    """An attribute as a key: floats by their bits, numbers of different types distinguished."""
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, tuple):
        return tuple(freeze(v) for v in value)
    if isinstance(value, Graph):  # compared when everything else is equal: `same_attrs`
        return Graph
    return type(value).__name__, value


def constant_key(node: Constant) -> Any:
    """The key by which constants are compared."""
    value = node.value
    if isinstance(value, float):
        return node.type, value.hex()
    if isinstance(value, np.generic):
        return node.type, value.tobytes()
    if isinstance(value, np.ndarray):
        if value.size > 1024:
            zeros = value.dtype != object and not np.ascontiguousarray(value).view(np.uint8).any()
            return (node.type, "zeros") if zeros else id(value)
        return node.type, value.tobytes()
    if isinstance(value, bool | int | str | None):
        return node.type, type(value).__name__, value
    return id(value)


def same_attrs(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether attributes whose frozen forms are equal are equal: their graphs do the same."""
    for name, value in a.items():
        for x, y in zip(_graphs(value), _graphs(b[name]), strict=True):
            if not same_graph(x, y):
                return False
    return True


def same_graph(a: Graph, b: Graph) -> bool:
    """Whether two graphs apply the same primitives to the same, in the same order."""
    if a is b:
        return True
    if a.output.type is None or b.output.type is None:  # of a recursion that is being rebuilt: nobody knows yet
        return False
    if len(a.nodes) != len(b.nodes) or [p.type for p in a.params] != [p.type for p in b.params]:
        return False
    twin: dict[Node, Node] = dict(zip(a.params, b.params))

    def same(x: Node, y: Node) -> bool:
        if isinstance(x, Constant) and isinstance(y, Constant):
            return constant_key(x) == constant_key(y)
        return twin.get(x) is y

    for x, y in zip(a.nodes, b.nodes):
        if x.fn is not y.fn or x.type != y.type or len(x.args) != len(y.args) or x.attrs.keys() != y.attrs.keys():
            return False
        if not all(map(same, x.args, y.args)) or any(freeze(v) != freeze(y.attrs[k]) for k, v in x.attrs.items()):
            return False
        if not same_attrs(x.attrs, y.attrs):
            return False
        twin[x] = y
    return same(a.output, b.output)


def holds_tape(t: Type) -> bool:
    """Whether values of this type are used linearly."""
    return isinstance(t, Tape) or (isinstance(t, Struct) and any(isinstance(leaf, Tape) for leaf in leaves(t)))


class Simplifier(Builder):
    """A builder that simplifies what it is asked to emit.

    Attributes:
        changed: whether it ever emitted anything else than it was asked for.
    """

    def __init__(self, graph: Graph, table: Table, effects: Effects, number: bool = True, fastmath: bool = False):
        super().__init__(graph)
        self.table, self.effects, self.number, self.fastmath = table, effects, number, fastmath
        self.values: dict[Any, Node] = {}
        self.controls: dict[Any, list[Apply]] = {}
        self.constants: dict[int, Any] = {}
        self.changed = False

    def emit(
        self, prim: Primitive, args: tuple[Node, ...], attrs: Mapping[str, Any] | None = None, type: Type | None = None
    ):
        """As `Builder.emit`, but emitting less."""
        full = {**prim.attr_defaults, **attrs} if attrs else prim.attr_defaults
        if type is None and prim.infer_rule is not None and prim.name != "get_item":
            type = prim.infer_rule(*[a.type for a in args], **full)
        if type is not None:
            found = self.simpler(prim, args, full, type)
            if found is not None:
                self.changed = True
                return found
            if prim.kind == "elementwise" and self.table.rules:
                less = unbroadcast_operand(self, prim, args, type)
                if (
                    less != args
                    and prim.infer_rule is not None
                    and prim.infer_rule(*[a.type for a in less], **full) == type
                ):
                    self.changed, args = True, less
        key = self.key(prim, args, full, type) if self.number else None
        if key is not None and prim.kind == "control":
            known = self.controls.setdefault(key, [])
            for found in known:
                if same_attrs(found.attrs, full):
                    self.changed = True
                    return found
            made = super().emit(prim, args, full, type)
            if isinstance(made, Apply):
                known.append(made)
            return made
        if key is not None and key in self.values:
            self.changed = True
            return self.values[key]
        node = super().emit(prim, args, full, type)
        if key is not None:
            self.values[key] = node
        return node

    def simpler(self, prim: Primitive, args, attrs, type: Type) -> Node | None:
        """What an application folds to or is rewritten to."""
        if prim.name == "make_struct":
            return whole_struct(args, type)
        folded = fold(prim, args, attrs, type)
        if folded is not None:
            return folded
        loose = self.fastmath or self.origin.is_adjoint
        found = self.table.apply(self, prim, args, attrs, type, loose)
        if found is None and loose and self.table.rules:
            found = collect_terms(self, prim, args, type, lambda n: self.fastmath or n.origin.is_adjoint)
        return found if found is not None or not self.table.rules else sink_units(self, prim, args, attrs, type)

    def key(self, prim: Primitive, args, attrs, type: Type | None) -> Any:
        """What makes two applications one value, but for graphs; None where nothing does: effects, tapes, unhashable attributes."""
        if prim.effect or prim.name.startswith("tape_") or (type is not None and holds_tape(type)):
            return None
        if prim.name == "undef" and isinstance(type, Array):  # memory to be filled
            return None
        # What would raise has raised the first time.
        if prim.kind == "control" and any(
            self.effects.of_graph(g) - {"raise"} for v in attrs.values() for g in _graphs(v)
        ):
            return None
        operands: Any = tuple(self.argument(a) for a in args)
        if prim.name in COMMUTATIVE and operands[0] != operands[1]:
            operands = frozenset(operands)
        key = (prim.name, operands, tuple((k, freeze(attrs[k])) for k in sorted(attrs)))
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def argument(self, node: Node) -> Any:
        """What makes two arguments one value."""
        if not isinstance(node, Constant):
            return node
        found = self.constants.get(id(node))
        if found is None:
            found = self.constants[id(node)] = (constant_key(node), node)
        return found[0]


def _graphs(value: Any):
    if isinstance(value, Graph):
        return (value,)
    return tuple(v for v in value if isinstance(v, Graph)) if isinstance(value, tuple) else ()


@dataclass(frozen=True)
class Simplify:
    """The pass.

    Attributes:
        rules: whether rewrite rules apply.
        number: whether equal values are merged.
        inline_limit: called graphs of at most this many applications, those of their branches and loops included, are inlined
            everywhere, larger ones only where they are called from one place; None: no inlining.
        fastmath: whether rules that are not exact apply everywhere.
        final: whether no transforms are left, so that `stop_gradient` has done its work.
    """

    rules: bool = True
    number: bool = True
    inline_limit: int | None = 24
    fastmath: bool = False
    final: bool = False
    name: str = "simplify"

    def __call__(self, graph: Graph) -> Graph:
        return self.by(self.table(), graph)

    def table(self) -> Table:
        """The rules that apply."""
        return Table() if not self.rules else FINAL if self.final else TABLE

    def by(self, table: Table, graph: Graph) -> Graph:
        """Simplify by other rules."""
        return _Walk(self, table, graph).rewrite(graph)


class _Walk(Rewriter):
    """One application of the pass."""

    def __init__(self, options: Simplify, table: Table, graph: Graph):
        super().__init__()
        self.mark = self.options = options
        self.table, self.effects = table, Effects()
        self.calls = count_calls(graph)
        self.within: Origin | None = None  # the call in whose place the function of the present node is emitted

    def is_settled(self, graph: Graph) -> bool:
        called = graph.settled.get(self.mark)
        return called is not None and not any(
            self.calls.get(g) == 1 for g in called
        )  # but what is called once is inlined

    def build(self, graph: Graph) -> Graph:
        new, env = self.interface(graph)
        o = self.options
        builder = Simplifier(new, self.table, self.effects, o.number, o.fastmath)
        new.output = self.copy(builder, graph, env)
        dead = drop_dead(new, self.effects)
        self.changed |= builder.changed or bool(dead) or len(new.nodes) != len(graph.nodes)
        return new

    def copy(self, builder: Simplifier, graph: Graph, env: Env) -> Node:
        """Emit a graph; functions that are called only once are emitted in place of their calls, however long the chain.

        (Each rewritten by itself first and then copied into its caller would be copied as often as the chain is long.)
        """
        frames: list[tuple[Graph, Iterator[Apply], Env, Apply | None, Origin | None]] = []
        frames.append((graph, iter(graph.nodes), env, None, None))
        while True:
            graph, nodes, env, call, within = frames[-1]
            for node in nodes:
                args = tuple(lookup(env, a) for a in node.args)
                if isinstance(node.fn, Graph) and not self.rewrites_alone(node.fn):
                    self.changed = True
                    origin = node.origin if within is None else node.origin.inlined_at(within)
                    inside: Env = dict(zip(node.fn.params, args, strict=True))
                    frames.append((node.fn, iter(node.fn.nodes), inside, node, origin))
                    break
                attrs = self.inner(node)
                self.within = within
                new = env[node] = self.node(builder, node, args, attrs)
                if within is not None and isinstance(new, Apply) and new.origin is node.origin:
                    new.origin = node.origin.inlined_at(within)
            else:
                output = lookup(env, graph.output)
                frames.pop()
                if not frames:
                    return output
                assert call is not None  # of all frames but the first
                frames[-1][2][call] = output

    def rewrites_alone(self, graph: Graph) -> bool:
        once = self.calls.get(graph) == 1 and self.options.inline_limit is not None
        return not once or graph in self.component or bool(graph.flags.get("noinline"))

    def node(self, builder: Simplifier, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        within = self.within
        builder.origin = node.origin
        if isinstance(node.fn, Graph):
            callee = self.rewrite(node.fn)
            if self.inlines(node.fn, callee):
                self.changed = True
                return inline(builder, callee, args, node.origin.inlined_at(within) if within else node.origin)
            new = builder.graph.apply(callee, *args, attrs=attrs, type=node.type, origin=node.origin)
        else:
            branch = taken(node.fn, args, attrs)
            if branch is not None:
                self.changed = True
                if self.incomplete(branch):  # a branch that leads back to itself
                    return builder.graph.apply(branch, *args[1:], type=node.type, origin=node.origin)
                return inline(builder, branch, args[1:], within)
            new = builder.emit(node.fn, args, attrs, node.type)
        if new.name is None and isinstance(new, Apply):
            new.name = node.name
        return new

    def inlines(self, before: Graph, graph: Graph) -> bool:
        """Whether calls of a graph are inlined."""
        limit = self.options.inline_limit
        if limit is None or before.flags.get("noinline") or before in self.heads or self.leads_back(graph):
            return False
        if before in before.settled.get(self.mark, ()):  # it calls itself, and was not looked at again
            return False
        return self.calls.get(before, 0) == 1 or not larger(graph, OPEN_LIMIT * limit if opens_sizes(graph) else limit)


def opens_sizes(graph: Graph) -> bool:
    """Whether a function is given arrays of which it does not know the sizes: as lists of their numbers, of which it makes arrays.

    Only in the place of the call is it known that sizes are the same, and that nothing needs to be copied or checked.
    """
    return any(applies(n, "list_to_array") and isinstance(n.args[0], Parameter) for n in graph.nodes)


def larger(graph: Graph, limit: int) -> bool:
    """Whether a function has more applications than `limit`, with those of its branches and loops, without what it calls."""
    size, stack = 0, [graph]
    while stack:
        top = stack.pop()
        size += len(top.nodes)
        if size > limit:
            return True
        stack += [inner for node in top.nodes for inner in inner_graphs(node) if inner is not node.fn]
    return False


def taken(prim: Primitive, args, attrs) -> Graph | None:
    """The branch that a condition known at compile time takes."""
    if prim.name == "cond" and isinstance(args[0], Constant):
        return attrs["then"] if args[0].value else attrs["orelse"]
    return None


def count_calls(graph: Graph) -> dict[Graph, int]:
    """From how many places each graph is called."""
    counts: dict[Graph, int] = {}
    stack, seen = [graph], {graph}
    while stack:
        for node in stack.pop().nodes:
            if isinstance(node.fn, Graph):
                counts[node.fn] = counts.get(node.fn, 0) + 1
            for inner in inner_graphs(node) if node.attrs or type(node.fn) is Graph else ():
                if inner not in seen:
                    seen.add(inner)
                    stack.append(inner)
    return counts
