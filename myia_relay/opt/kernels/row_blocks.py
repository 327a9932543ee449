"""Sums over many rows of data, block by block: what is kept of a block is small, stays in the cache, and is reused for the
next.

    for k in range(K): y[k] = x @ L[k]; t[k] = f(y[k])          for s in range(0, n, B):
    loss = sum(g(t))                                                block = x[s : s + B]
    for k in reversed(range(K)):                         =>         for k in range(K): y[k] = block @ L[k]; t[k] = f(y[k])
        dL[k] = x.T @ h(y[k], ...)                                  loss += sum(g(t))
                                                                    for k in reversed(range(K)):
                                                                        dL[k] += block.T @ h(y[k], ...)

Reverse mode keeps for each row what each iteration of a loop computed for it, K times the data, although the rows are
only combined by sums at the end. With B rows at a time this takes B / n of the memory. It is strip mining, applied to
an adjoint that has no loop over the rows. `opt.kernels.sharding` says which parts of a program can be computed in this
way.

It pays if loops carry many bytes for each row, and if blocks have more rows than the matrices that they are multiplied
with: what a loop computes independently of the rows, such as L[k] from parameters, is recomputed for each block.
(Keeping it for all blocks took as long, because it is then read from memory.)

Input: an optimised graph without transforms, whose tapes are arrays. Output: the same program; sums over rows are added
in another order.

Sources: M. Wolfe, "More iteration space tiling" (Supercomputing 1989), for strip mining; A. Griewank and A. Walther,
"Evaluating Derivatives" (2nd ed., SIAM 2008), section 12, for computing the adjoint of a sum part by part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import INT, Array, Data, List, Scalar, Struct, Tape, Type, holds, numpy_dtype
from ...ir.build import Builder, as_type
from ...ir.node import Apply, Constant, Graph, Node, applied
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Effects, Env, drop_dead, emit_like, lookup, same_interface
from ...prims.ops.control import LEAD
from ..analysis.control import iterations
from ..rewrite.control import pack, take, undef
from .sharding import Division, Shardings, divide
from .sharding_rules import SUM, WHOLE, Added, Along, Sharding, in_block

FIRST = LEAD["for_loop"]

LEAST = 1 << 20  # bytes that loops carry for all rows, from which it pays
CACHE = 1 << 20  # bytes that they may carry for a block, per thread: the threads share the rows of each kernel
ROWS = 64  # rows of a block at least, per thread
TIMES = 4  # rows of a block at least, per row of a matrix that they are multiplied with: it may be recomputed for each block
VECTOR = 8  # rows that kernels take together


@dataclass(frozen=True)
class BlockRows:
    """The pass.

    Attributes:
        threads: that will run the program.
    """

    name: str = "row_blocks"
    threads: int = 1

    def __call__(self, graph: Graph) -> Graph:
        sizes = {n for t in _carried(graph) for n in t.shape if isinstance(n, int) and n >= 2 * ROWS}
        for k, param in enumerate(graph.params if sizes else ()):
            for axis, n in enumerate(getattr(param.type, "shape", ())):
                if n in sizes:
                    new = self.along(graph, k, axis)
                    if new is not None:
                        return new
        return graph

    def along(self, graph: Graph, k: int, axis: int) -> Graph | None:
        """The program by blocks along an axis of argument k; None if that is not possible or does not pay."""
        division = divide(graph, graph.params[k], axis)
        if division is None:
            return None
        n, kinds, results = graph.params[k].type.shape[axis], division.kinds, division.results
        kept = sum(_bytes(node.type, kinds.of[node]) for node in division.blocks if node in kinds.bodies)
        handed = sum(_bytes(node.type, kinds.of[node]) for node in results)
        rows = block(kept / n, n, _largest(kinds), self.threads)
        if rows is None or kept - handed < max(LEAST, kept / 2):
            return None
        return _Miner(graph, division, n, rows).mine()


def block(per_row: float, n: int, factor: int, threads: int) -> int | None:
    """The number of rows of a block: a divisor of their number, if there is one nearby. None if blocks would be too
    long.

    Args:
        per_row: bytes that loops carry.
        n: rows.
        factor: the rows or columns of the largest matrix that the rows are multiplied with.
        threads: that share them.
    """
    least = max(ROWS, TIMES * factor) * threads
    wanted = max(least, min(int(CACHE * threads / max(per_row, 1.0)), n // 4))
    if 2 * wanted > n:
        return None
    near = [b for b in range(max(1, wanted * 7 // 8), min(2 * wanted, n // 2) + 1) if n % b == 0]
    return min(near, key=lambda b: abs(math.log(b / wanted)) + (0.3 if b % VECTOR else 0.0), default=wanted)


def _carried(graph: Graph) -> Iterator[Array]:
    """The arrays that counted loops carry."""
    for node in graph.nodes:
        if iterations(node) is not None:
            yield from (a.type for a in node.args[FIRST : FIRST + node.attrs["carried"]] if isinstance(a.type, Array))


def _bytes(t: Type, kind: Sharding) -> float:
    """The bytes of the rows in a value."""
    if isinstance(kind, tuple):
        assert isinstance(t, Struct)
        return sum(map(_bytes, t.elems, kind))
    return (
        float(known_size(t.size)) * numpy_dtype(t.dtype).itemsize
        if isinstance(t, Array) and isinstance(kind, Along)
        else 0.0
    )


def _largest(kinds: Shardings) -> int:
    """The longest axis of a matrix that rows are multiplied with."""
    found = [_largest(inside) for inside in kinds.bodies.values()]
    for node in kinds.graph.nodes:
        if node in kinds.of and isinstance(node.fn, Primitive) and node.fn.kind == "opaque" and node.fn.bilinear:
            whole = [a for a in (*node.args, node) if not isinstance(kinds.of.get(a, WHOLE), Along)]
            found += [int(n) for a in whole for n in getattr(a.type, "shape", ())]
    return max(found, default=0)


def _copy(b: Builder, nodes: Iterable[Apply], env: Env) -> None:
    """Emit applications as they are."""
    for node in nodes:
        env[node] = emit_like(b, node, tuple(lookup(env, a) for a in node.args))


class _Miner:
    """The new program.

    Attributes:
        n, rows: of the data, of a block.
        bodies: of loops, by what is known of them and the number of rows.
    """

    def __init__(self, graph: Graph, division: Division, n: int, rows: int):
        self.graph = graph
        self.kinds = division.kinds
        self.known = division.known
        self.blocks = division.blocks
        self.after = division.after
        self.ahead = division.ahead
        self.results = division.results
        self.n = n
        self.rows = rows
        self.bodies: dict[tuple[int, int], Graph] = {}

    def mine(self) -> Graph | None:
        """The program; None if a part of it cannot be done by blocks."""
        if not self.hands_on() or not self.keeps_order():
            return None
        later = {*self.blocks, *self.after} - self.ahead
        new, env = same_interface(self.graph)
        b = Builder(new)
        _copy(b, [node for node in self.graph.nodes if node not in later], env)
        b.origin = self.blocks[0].origin
        states = [self.initial(b, node, env) for node in self.results]
        end = self.n - self.n % self.rows
        for start, stop, rows in ((0, end, self.rows), (end, self.n, self.n - end)):
            if start < stop:
                states = self.loop(b, (start, stop, rows), states, env)
        env.update(zip(self.results, states))
        _copy(b, self.after, env)
        new.output = lookup(env, self.graph.output)
        drop_dead(new)
        return new

    def hands_on(self) -> bool:
        """Whether each block can begin where the previous one ended: nothing is consumed, and its results can be passed
        on.
        """
        if any(holds(a.type, Tape | List | Data) for node in self.blocks for a in (node, *node.args)):
            return False
        carried = [kind.to for kind in map(self.kinds.of.get, self.results) if isinstance(kind, Added)]
        firsts = [loop.args[FIRST + k - 1] for loop, k in carried]
        if len(set(carried)) < len(carried) or any(first in self.blocks for first in firsts):
            return False
        return all(isinstance(node.type, Array | Scalar) for node in self.results)

    def keeps_order(self) -> bool:
        """Whether effects keep their order: before the blocks, in them, after them."""
        effects = Effects()
        stage = dict.fromkeys(self.blocks, 1) | dict.fromkeys(self.after, 2)
        order = [stage.get(node, 0) for node in self.graph.nodes if effects.of_node(node)]
        return order == sorted(order)

    def initial(self, b: Builder, node: Apply, env: Env) -> Node:
        """The initial value of a result, for the first block."""
        kind, t = self.kinds.of[node], node.type
        if isinstance(kind, Added):
            loop, k = kind.to
            return lookup(env, loop.args[FIRST + k - 1])
        if kind is not SUM:
            return undef(b, t)
        number = Scalar(t.dtype, isinstance(t, Scalar) and t.weak)
        zero = b.constant(as_type(numpy_dtype(t.dtype).type(-0.0), number), number)  # which changes no sign
        return zero if t == number else b.emit(REGISTRY["broadcast_to"], (zero,), {"shape": t.shape})

    def loop(self, b: Builder, span: tuple[int, int, int], states: Sequence[Node], env: Env) -> list[Node]:
        """The loop over blocks of a given number of rows, and its results."""
        body = Graph(f"{self.graph.name}.block", None, self.graph.origin)
        inner, rows = Builder(body, b.origin), span[2]
        if rows == self.rows:
            body.flags["row_block"] = (self.n, rows)
        first = body.add_parameter("row", INT)
        carried = [body.add_parameter(f"state{k}", s.type) for k, s in enumerate(states)]
        inside: Env = {}
        blocks = set(self.blocks)
        for node in self.blocks:
            for a in node.args:
                if a in env and a not in inside and a not in blocks:
                    inside[a] = body.add_parameter(a.name or f"outer{len(inside)}", a.type)
        operands = tuple(lookup(env, node) for node in inside)
        for node in inside.keys() & self.known.keys():
            attrs = {"axis": self.known[node].axis, "length": rows}
            inside[node] = inner.emit(REGISTRY["dynamic_slice"], (inside[node], first), attrs)
        ends = {kind.to: s for kind, s in zip(map(self.kinds.of.get, self.results), carried) if isinstance(kind, Added)}
        self.copy(inner, self.blocks, inside, self.kinds, rows, ends)
        values = [inside[node] for node in self.results]
        body.output = pack(inner, [self.result(inner, *parts, first) for parts in zip(self.results, carried, values)])
        drop_dead(body)
        bounds = tuple(b.constant(v, INT) for v in span)
        loop = b.emit(REGISTRY["for_loop"], (*bounds, *states, *operands), {"body": body, "carried": len(states)})
        return [take(b, loop, (k,)) for k in range(len(states))]

    def result(self, b: Builder, node: Apply, state: Node, value: Node, first: Node) -> Node:
        """The value of a result that a block passes on."""
        kind = self.kinds.of[node]
        if isinstance(kind, Along):
            return b.emit(REGISTRY["dynamic_update_slice"], (state, value, first), {"axis": kind.axis})
        return b.emit(REGISTRY["add"], (state, value)) if kind is SUM else value

    def copy(self, b: Builder, nodes: Iterable[Apply], env: Env, kinds: Shardings, rows: int, ends=None) -> None:
        """Emit applications as they are in a block.

        Args:
            ends: what is carried from block to block, by the loop and the operand that it takes the place of.
        """
        for node in nodes:
            b.origin = node.origin
            args = [self.operand(a, env, rows) for a in node.args]
            for (loop, k), state in (ends or {}).items():
                if loop is node:
                    args[FIRST + k - 1] = state
            t = in_block(node.type, kinds.of[node], rows)
            attrs = self.attributes(node, t, kinds, rows)
            env[node] = (
                emit_like(b, node, tuple(args), attrs) if t == node.type else b.emit(node.fn, tuple(args), attrs, t)
            )

    def operand(self, node: Node, env: Env, rows: int) -> Node:
        """An operand; a constant gets the length of a block if necessary."""
        known = self.known.get(node)
        if known is None or not isinstance(node, Constant):
            return lookup(env, node)
        return Constant(np.take(node.value, range(rows), known.axis), in_block(node.type, known, rows), node.origin)

    def attributes(self, node: Apply, t: Any, kinds: Shardings, rows: int) -> dict[str, Any]:
        """The attributes of an application in a block, whose type is `t`: as with `Node.type`, which it is follows from `node`."""
        if node in kinds.bodies:
            return {**node.attrs, "body": self.body(kinds.bodies[node], rows)}
        if isinstance(node.fn, Primitive) and node.fn.axes is not None:
            return node.fn.axes.resized(node.attrs, t.shape)
        return {"type": t} if applied(node) in ("make_struct", "undef") else node.attrs

    def body(self, kinds: Shardings, rows: int) -> Graph:
        """The body of a loop, as it is within a block."""
        key = (id(kinds), rows)
        if key not in self.bodies:
            old = kinds.graph
            new = Graph(old.name, None, old.origin)
            new.flags = dict(old.flags)
            env: Env = {p: new.add_parameter(p.name, in_block(p.type, kinds.of[p], rows), p.origin) for p in old.params}
            self.copy(Builder(new), old.nodes, env, kinds, rows)
            new.output = lookup(env, old.output)
            self.bodies[key] = new
        return self.bodies[key]


__all__ = ["BlockRows"]
