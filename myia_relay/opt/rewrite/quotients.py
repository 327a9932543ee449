"""Derived code reads a quotient where it would read the numerator, if the quotient is kept in any case.

    p = e / s        (g / s + c) e  =>  (g + c s) p        c e  =>  (c s) p

with rows e and one s for each. Softmax and layer normalisation end in such a quotient, which their gradients need twice: the
derivative of the quotient reads p, and that of what made e reads e. With p alone, e need not live until the backward pass,
which is an array of the size of all scores for each layer of a transformer. This is done only where what is multiplied with
e is divided by s, so that nothing is divided that was not: s is no zero that the program avoids.

This treats numbers as reals, not floats: what users write is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ...abstract.dims import known_size
from ...abstract.types import Array, is_static_shape
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applies
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Env, Rewriter, lookup
from ...ir.walk import users

LEAST = 1 << 14
"""Elements of an array from which on it matters how long it is kept."""
DEPTH = 8


@dataclass(frozen=True)
class ReadQuotients:
    """The pass."""

    name: str = "read_quotients"

    def __call__(self, graph: Graph) -> Graph:
        return _Read().rewrite(graph)


class _Read(Rewriter):
    acts_on = ("div",)
    mark = ReadQuotients

    def build(self, graph: Graph) -> Graph:
        found = replaced(graph)
        self.changed |= bool(found)
        return self.rebuilt(graph, {node: partial(self.written, *parts) for node, parts in found.items()})

    def written(self, factor: Node, quotient: Apply, b: Builder, env: Env) -> Node:
        """The product, of the quotient."""
        mul, s = REGISTRY["mul"], lookup(env, quotient.args[1])
        parts = quotient_and_rest(factor, quotient.args[1])
        if parts is None:
            scaled = b.emit(mul, (lookup(env, factor), s))
        else:
            dividend, rest = (lookup(env, part) for part in parts)
            scaled = b.emit(REGISTRY["add"], (dividend, b.emit(mul, (rest, s))))
        return b.emit(mul, (scaled, lookup(env, quotient)))


def replaced(graph: Graph) -> dict[Node, tuple[Node, Apply]]:
    """The products of derived code to write anew: product -> the other factor, the quotient."""
    quotients: dict[Node, Apply] = {}
    used: Mapping[Node, list[Apply]] | None = None
    found: dict[Node, tuple[Node, Apply]] = {}
    for node in graph.nodes:
        if applies(node, "div") and not node.origin.is_adjoint and _is_of_rows(node):
            quotients.setdefault(node.args[0], node)
        elif applies(node, "mul") and node.origin.is_adjoint:
            for factor, e in (node.args, node.args[::-1]):
                quotient = quotients.get(e)
                if quotient is None or node.type != quotient.type:
                    continue
                s = quotient.args[1]
                if factor.type != s.type and quotient_and_rest(factor, s) is None or not _divides(factor, s, DEPTH):
                    continue
                used = users(graph) if used is None else used
                if any(_is_late(u) for u in _readers(quotient, used)):
                    found[node] = factor, quotient
                    break
    return found


def _is_of_rows(node: Apply) -> bool:
    """Whether a quotient of large arrays divides rows by one number each."""
    e, s = node.args
    return (
        isinstance(e.type, Array)
        and isinstance(s.type, Array)
        and node.type == e.type
        and e.type.is_float
        and is_static_shape(e.type)
        and is_static_shape(s.type)
        and known_size(e.type.size) >= LEAST
        and len(s.type.shape) == len(e.type.shape)
        and known_size(s.type.size) < known_size(e.type.size)
    )


def quotient_and_rest(factor: Node, s: Node) -> tuple[Node, Node] | None:
    """g and c of a factor g / s + c, where c has the shape of s."""
    if not applies(factor, "add") or not factor.origin.is_adjoint:
        return None
    for a, c in (factor.args, factor.args[::-1]):
        if (
            applies(a, "div")
            and a.origin.is_adjoint
            and a.args[1] is s
            and a.args[0].type == a.type
            and c.type == s.type
        ):
            return a.args[0], c
    return None


def _divides(node: Node, s: Node, depth: int) -> bool:
    """Whether a value of derived code has s in a denominator of one of its factors, or terms."""
    if not depth or not isinstance(node, Apply) or not isinstance(node.fn, Primitive) or not node.origin.is_adjoint:
        return False
    if node.fn.name == "div" and _same_numbers(node.args[1], s):
        return True
    if node.fn.name in ("mul", "add", "sub", "neg", "reshape", "broadcast_to", "div"):
        args = node.args[:1] if node.fn.name == "div" else node.args
        return any(_divides(a, s, depth - 1) for a in args)
    return False


def _same_numbers(node: Node, s: Node) -> bool:
    while node is not s and applies(node, "reshape"):
        node = node.args[0]
    return node is s


def _readers(node: Apply, used: Mapping[Node, list[Apply]]) -> list[Apply]:
    """What uses a value, or an array of the same memory."""
    found = []
    for user in used.get(node, ()):
        found += _readers(user, used) if applies(user, "reshape") else [user]
    return found


def _is_late(user: Node) -> bool:
    return isinstance(user, Apply) and user.origin.is_adjoint


__all__ = ["ReadQuotients"]
