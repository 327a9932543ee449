"""Tapes of loops with known trip counts become arrays: pushing is storing, popping is loading.

    for i in range(n): tape = push(tape, r)           for i in range(n): kept[i] = r
    for i in reversed(range(n)): tape, r = pop(tape)  for i in reversed(range(n)): r = kept[i]

The tapes of nested loops become one array that is carried through all of them, indexed by the number of the iteration
among all iterations. What the backward pass needs is then in the memory plan, nothing grows, and the inner loop has no
calls and no record headers.

Source: M. Peng and C. Dubach, "LAGrad: statically optimized differentiable programming in MLIR" (CC 2023), section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...abstract.types import INT, Array, Scalar, Tape
from ...ir.build import Builder, Var
from ...ir.node import Apply, Graph, Node, applied, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Env, Rewriter, lookup
from ...ir.walk import users
from ...prims.ops.control import LEAD
from ...prims.rules.broadcast import match_kind
from ..analysis.control import iterations, output_parts, returned_parts
from ..rewrite.control import pack

FIRST = LEAD["for_loop"]
Carried = tuple[Apply, int]


@dataclass(frozen=True)
class PreallocateTapes:
    """The pass, for programs without transforms."""

    name: str = "preallocate_tapes"

    def __call__(self, graph: Graph) -> Graph:
        return _Preallocate().rewrite(graph)


@dataclass(eq=False)
class Chain:
    """A tape that one loop fills and others empty.

    Attributes:
        iterations: of the loop that fills it; the others run in the opposite direction.
        filled: the loop that pushes, and the tape's place among its carried values.
        emptied: the loops that pop, likewise.
        push: in the body of the first.
        pops: in the bodies of the others.
        inner: the tape that is the entry, where it is one.
        outer: the tape of which this is an entry, where it is one.
    """

    iterations: range
    filled: Carried
    emptied: list[Carried]
    push: Apply
    pops: list[Apply]
    inner: Chain | None = None
    outer: Chain | None = None

    @property
    def count(self) -> int:
        """Entries of the array."""
        return len(self.iterations) * (self.inner.count if self.inner else 1)

    @property
    def entry(self) -> Array | Scalar:
        """The type of what is stored."""
        return self.inner.entry if self.inner else self.push.args[1].type

    @property
    def type(self) -> Array:
        """The type of the array, which is one for all tapes inside of each other."""
        if self.outer is not None:
            return self.outer.type
        return Array(self.entry.dtype, (self.count, *getattr(self.entry, "shape", ())))


@dataclass
class Roles:
    """How the applications of a graph use tapes that become arrays.

    Attributes:
        loops: loops that fill or empty some -> the places of these, and the chains.
        pushes, pops: those that become stores and loads.
    """

    loops: dict[Apply, dict[int, Chain]] = field(default_factory=dict)
    pushes: dict[Apply, Chain] = field(default_factory=dict)
    pops: dict[Apply, Chain] = field(default_factory=dict)

    def add(self, chain: Chain) -> None:
        """The loops of a chain are in the graph."""
        for loop, k in (chain.filled, *chain.emptied):
            self.loops.setdefault(loop, {})[k] = chain


class _Preallocate(Rewriter):
    acts_on = ("for_loop",)

    def build(self, graph: Graph) -> Graph:
        roles = Roles()
        for chain in chains(graph):
            roles.add(chain)
        if not roles.loops:
            return super().build(graph)
        self.changed = True
        new, env = self.interface(graph)
        self.copy(Builder(new), graph.nodes, env, roles, {})
        new.output = lookup(env, graph.output)
        return new

    def copy(self, b: Builder, nodes: Iterable[Apply], env: Env, roles: Roles, iteration: Mapping[Chain, Node]) -> None:
        """Emit applications with arrays for tapes.

        Args:
            iteration: for each chain to which the graph is a body the number of the iteration, among those of all loops
            around it.
        """
        for node in nodes:
            b.origin = node.origin
            if node in roles.pushes:
                array, entry = (lookup(env, a) for a in node.args)
                env[node] = (
                    entry if roles.pushes[node].inner else store_entry(b, array, entry, iteration[roles.pushes[node]])
                )
            elif node in roles.pops:
                array, chain = lookup(env, node.args[0]), roles.pops[node]
                env[node] = pack(
                    b, [array, array if chain.inner else load_entry(b, array, chain.entry, iteration[chain])]
                )
            elif node in roles.loops:
                env[node] = self.loop(b, node, env, roles.loops[node], iteration)
            elif applied(node) == "get_item" and node.args[0] in roles.loops:
                env[node] = b.emit(node.fn, (env[node.args[0]],), node.attrs)
            else:
                env[node] = self.node(b, node, tuple(lookup(env, a) for a in node.args), self.inner(node))

    def loop(
        self, b: Builder, node: Apply, env: Env, arrays: dict[int, Chain], iteration: Mapping[Chain, Node]
    ) -> Node:
        """A loop that carries arrays in the places of tapes."""
        old: Graph = node.attrs["body"]
        args = [lookup(env, a) for a in node.args]
        for k, chain in arrays.items():
            if (node, k) == chain.filled:
                outer = chain.outer
                args[FIRST + k] = (
                    lookup(env, outer.push.args[0]) if outer else b.emit(REGISTRY["undef"], (), {"type": chain.type})
                )
        body = Graph(old.name, None, old.origin)
        body.flags = dict(old.flags)
        inside: Env = {}
        for k, param in enumerate(old.params):
            chain = arrays.get(k - 1)
            inside[param] = body.add_parameter(param.name, chain.type if chain else param.type, param.origin)
        inner = Builder(body, node.origin)
        outside = dict.fromkeys(iteration[chain.outer] for chain in arrays.values() if chain.outer)
        before = {number: body.add_parameter("iteration", INT) for number in outside}
        within: dict[Chain, Node] = {}
        roles = Roles()
        for k, chain in arrays.items():
            number = before[iteration[chain.outer]] if chain.outer else None
            within[chain] = iteration_number(inner, body.params[0], chain.iterations, number)
            if (node, k) == chain.filled:
                roles.pushes[chain.push] = chain
            else:
                roles.pops[chain.pops[chain.emptied.index((node, k))]] = chain
            if chain.inner is not None:
                roles.add(chain.inner)
        for chain in chains(old):
            roles.add(chain)
        self.copy(inner, (n for n in old.nodes if n is not old.output), inside, roles, within)
        body.output = pack(inner, [lookup(inside, part) for part in returned_parts(old)])
        new = b.emit(node.fn, (*args, *outside), {**node.attrs, "body": body})
        new.name = node.name
        return new


def iteration_number(b: Builder, index: Node, iterations: range, before: Node | None) -> Node:
    """The number of an iteration: `before` iterations of the enclosing loop, with this loop's iterations in each, plus
    those of this loop.
    """
    i = Var(b, index)
    if iterations.start:
        i = i - iterations.start
    if iterations.step != 1:
        i = Var(b, b.emit(REGISTRY["floordiv"], (i.node, b.constant(iterations.step, INT))))
    return (Var(b, before) * len(iterations) + i).node if before is not None else i.node


def store_entry(b: Builder, array: Node, entry: Node, iteration: Node) -> Node:
    value = Var(b, entry)
    if isinstance(entry.type, Scalar) and entry.type.weak:
        value = match_kind(value, Scalar(entry.type.dtype))
    return b.emit(REGISTRY["dynamic_update"], (array, value.node, iteration), {"axis": 0})


def load_entry(b: Builder, array: Node, type: Array | Scalar, iteration: Node) -> Node:
    return match_kind(Var(b, b.emit(REGISTRY["dynamic_index"], (array, iteration), {"axis": 0})), type).node


# --- finding them -----------------------------------------------------------------------------------------------------


def chains(graph: Graph) -> list[Chain]:
    """The tapes that are made, filled and emptied in a graph, by loops of known trip counts."""
    out = []
    loops = [n for n in graph.nodes if iterations(n) is not None]
    if loops:
        uses = _TapeUses(graph)
        for loop in loops:
            for k in range(loop.attrs["carried"]):
                if applied(loop.args[FIRST + k]) == "tape_new":
                    found = _chain(uses, loop, k)
                    out += [found] if found is not None else []
    return out


def _chain(uses: _TapeUses, loop: Apply, k: int, handed: list[Carried] | None = None) -> Chain | None:
    """The chain that a loop begins, if its tape is only emptied by other loops.

    Args:
        handed: those loops, where they are elsewhere.
    """
    span, push = iterations(loop), _only(loop, k, "tape_push")
    if span is None or push is None:
        return None
    emptied = handed if handed is not None else _consumers(uses, uses.parts(loop, k))
    if not emptied or any(iterations(user) != span[::-1] for user, _ in emptied):
        return None
    found = [_only(user, at, "tape_pop") for user, at in emptied]
    pops = [pop for pop in found if pop is not None]
    if len(pops) < len(found):
        return None
    chain = Chain(span, (loop, k), emptied, push, pops)
    kind = push.args[1].type
    if isinstance(kind, Tape):
        chain.inner = _inner(chain)
        if chain.inner is None:
            return None
        chain.inner.outer = chain
        return chain
    return (
        chain
        if isinstance(kind, Scalar) or isinstance(kind, Array) and all(isinstance(d, int) for d in kind.shape)
        else None
    )


def _inner(chain: Chain) -> Chain | None:
    """The chain of the tapes that are a tape's entries: each filled and emptied within one iteration."""
    made = chain.push.args[1]
    loop = made.args[0] if applied(made) == "get_item" else None
    if loop is None or iterations(loop) is None:
        return None
    k = made.attrs["index"]
    uses = _TapeUses(chain.filled[0].attrs["body"])
    if (
        applied(loop.args[FIRST + k]) != "tape_new"
        or uses.users.get(made) != [chain.push]
        or uses.parts(loop, k) != [made]
    ):
        return None
    handed: list[Carried] = []
    for (around, _), pop in zip(chain.emptied, chain.pops, strict=True):
        inside = _TapeUses(around.attrs["body"])
        found = _consumers(inside, inside.parts(pop, 1))
        if found is None:
            return None
        handed += found
    return _chain(uses, loop, k, handed)


def _consumers(uses: _TapeUses, tapes: list[Apply]) -> list[Carried] | None:
    """The loops that carry a tape from its beginning and leave it empty; None if it is used in other ways."""
    out: list[Carried] = []
    for tape in tapes:
        for user in uses.users.get(tape, []):
            if iterations(user) is None or tape not in user.args:  # a graph's result, as a whole
                return None
            at = user.args.index(tape) - FIRST
            if not 0 <= at < user.attrs["carried"] or uses.parts(user, at) or user.args.count(tape) != 1:
                return None
            out.append((user, at))
    return out


def _only(loop: Apply, k: int, name: str) -> Apply | None:
    """The only push or pop of a carried tape in a loop's body, if it is the only use."""
    body: Graph = loop.attrs["body"]
    outs, uses = output_parts(body), _TapeUses(body)
    users = uses.users.get(body.params[1 + k], [])
    step = users[0] if len(users) == 1 else None
    if outs is None or not applies(step, name):
        return None
    left = [step] if name == "tape_push" else uses.parts(step, 0)
    if left != [outs[k]] or uses.users[outs[k]] != [body.output]:
        return None
    # A pop is looked at part by part.
    whole = name == "tape_pop" and any(applied(u) != "get_item" for u in uses.users[step])
    return None if whole or step.args[0] is not body.params[1 + k] else step


class _TapeUses:
    """What uses the values of a graph: applications, each once."""

    def __init__(self, graph: Graph):
        self.users = users(graph)
        if graph.output not in graph.nodes or applied(graph.output) != "make_struct":
            self.users.setdefault(graph.output, []).append(graph.output)

    def parts(self, node: Apply, k: int) -> list[Apply]:
        """The applications that take a part of a result; all parts, and something unknown, if it is used as a whole."""
        users = self.users.get(node, [])
        if any(applied(u) != "get_item" for u in users):
            return [node]
        return [u for u in users if u.attrs["index"] == k]


__all__ = ["PreallocateTapes"]
