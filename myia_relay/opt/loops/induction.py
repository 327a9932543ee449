"""Induction variables: counters that loops carry become formulas of the loop's index, before differentiation.

    at = a                                     at = a
    for j in range(n):                         for j in range(n):
        for i in range(j + 1, n):      =>          for i in range(j + 1, n):
            use(at); at = at + 1                       use(a + (n - 1) j - j (j - 1) / 2 + (i - j - 1))

A position that is a function of the indices can be recomputed in the backward pass; a carried one would be kept for
every iteration. An integer that each iteration increases by an amount linear in the index is a polynomial of the
iteration number (of degree two at most). The checks of the user's additions for overflow stay: as long as none fails,
the formula and the sum are the same number.

Source: "induction variables" as in A. Aho, R. Sethi, J. Ullman, "Compilers" (1986), 10.7; O. Bachmann, P. Wang and E.
Zima, "Chains of recurrences" (ISSAC 1994).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...abstract.types import INT
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node, applied
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Rewriter, lookup
from ...prims.ops.control import LEAD
from ..analysis.control import output_parts
from ..rewrite.control import copy_into, new_graph, pack

MOST_ITERATIONS = 1 << 31  # beyond this, the product of two iteration numbers, which is halved, may wrap


class Affine(NamedTuple):
    """at + by * index"""

    at: int
    by: int

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        return Affine(self.at + sign * other.at, self.by + sign * other.by)

    def value(self, index: int) -> int:
        return self.at + self.by * index


@dataclass(frozen=True)
class SubstituteInductionVariables:
    """The pass."""

    name: str = "induction_variables"

    def __call__(self, graph: Graph) -> Graph:
        return _Solve().rewrite(graph)


class _Solve(Rewriter):
    acts_on = ("for_loop",)
    mark = SubstituteInductionVariables

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) == "for_loop" and not self.incomplete(attrs["body"]):
            builder.origin = node.origin
            found = solve(builder, node, args, attrs)
            if found is not None:
                self.changed = True
                return found
        return super().node(builder, node, args, attrs)


def solve(b: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node | None:
    """A loop that carries its counters unchanged, with their values at its end; None if it has no counters."""
    body: Graph = attrs["body"]
    outs, step = output_parts(body), args[2]
    if outs is None or not isinstance(step, Constant):
        return None
    by = int(step.value)
    first, last = args[:2]
    iterations = None
    if isinstance(first, Constant) and isinstance(last, Constant):
        iterations = range(int(first.value), int(last.value), by)
    if iterations is None and by not in (1, -1):
        return None
    counters = [
        k for k in range(attrs["carried"]) if body.params[1 + k].type == INT and outs[k] is not body.params[1 + k]
    ]
    forms = affine_forms(body, iterations) if counters else {}
    deltas: dict[int, Affine] = {}
    for k in counters:
        delta = _delta(outs[k], body.params[1 + k], forms)
        if delta is not None and (delta.by == 0 or iterations and len(iterations) <= MOST_ITERATIONS):
            deltas[k] = delta
    if not deltas:
        return None
    start, stop = (Var(b, a) for a in args[:2])
    new, inner = new_graph(body)
    params = [new.add_parameter(p.name, p.type, p.origin) for p in body.params]
    values: list[Node] = list(params)
    if iterations is None:
        first = new.add_parameter("start", INT)
        args = (*args, start.node)
    for k, delta in deltas.items():
        behind = Var(inner, params[0]) - (Var(inner, first) if iterations is None else iterations.start)
        behind = behind if by == 1 else -behind if by == -1 else REGISTRY["floordiv"](behind, behind.const(by))
        values[1 + k] = (Var(inner, params[1 + k]) + _total(behind, delta, iterations)).node
    env = copy_into(inner, body, values)
    new.output = pack(inner, [params[1 + k] if k in deltas else lookup(env, out) for k, out in enumerate(outs)])
    loop = b.emit(node.fn, args, {**attrs, "body": new})
    parts = [b.emit(REGISTRY["get_item"], (loop,), {"index": k}) for k in range(attrs["carried"])]
    distance = stop - start if by > 0 else start - stop
    count = REGISTRY["maximum"](distance, distance.const(0)) if iterations is None else distance.const(len(iterations))
    for k, delta in deltas.items():
        parts[k] = (Var(b, args[LEAD["for_loop"] + k]) + _total(count, delta, iterations)).node
    return b.emit(REGISTRY["make_struct"], tuple(parts), {"type": node.type})


def _total(t: Var, delta: Affine, iterations: range | None) -> Var:
    """The sum of the increases in the first `t` iterations."""
    if iterations is None:
        return t * delta.at
    total = t * delta.value(iterations.start)
    if delta.by:
        total = total + REGISTRY["right_shift"](t * (t - 1), t.const(1)) * (delta.by * iterations.step)
    return total


def _delta(node: Node, param: Node, forms: Mapping[Node, Affine]) -> Affine | None:
    """The difference between a value and a carried one, if that is linear in the index."""
    sign, total = 1, Affine(0, 0)
    while node is not param:
        if not isinstance(node, Apply) or not isinstance(node.fn, Primitive) or node.fn.name not in ("add", "sub"):
            return None
        rest, more = node.args
        sign = 1 if node.fn.name == "add" else -1
        found = _constant(more) if isinstance(more, Constant) else forms.get(more)
        if found is None and sign == 1:
            rest, more = more, rest
            found = _constant(more) if isinstance(more, Constant) else forms.get(more)
        if found is None:
            return None
        node, total = rest, total.plus(found, sign)
    return total


def affine_forms(body: Graph, iterations: range | None) -> dict[Node, Affine]:
    """The integers of a loop's body that are affine in the index, in one walk: values may be shared.

    The greater of such a one and zero is among them, where all iterations show which that is.
    """
    forms: dict[Node, Affine] = {body.params[0]: Affine(0, 1)}
    for node in body.nodes:
        if isinstance(node.fn, Primitive) and len(node.args) == 2 and node.type == INT:
            x, y = (_constant(a) if isinstance(a, Constant) else forms.get(a) for a in node.args)
            form = None if x is None or y is None else _combined(node.fn.name, x, y, iterations)
            if form is not None:
                forms[node] = form
    return forms


def _constant(node: Constant) -> Affine | None:
    """A known integer."""
    return Affine(int(node.value), 0) if isinstance(node.value, int) and not isinstance(node.value, bool) else None


def _combined(name: str, x: Affine, y: Affine, iterations: range | None) -> Affine | None:
    """What a primitive makes of two of them."""
    if name == "add":
        return x.plus(y)
    if name == "sub":
        return x.plus(y, -1)
    if name == "mul" and 0 in (x.by, y.by):
        x, y = (x, y) if x.by == 0 else (y, x)
        return Affine(x.at * y.at, x.at * y.by)
    if name == "maximum" and y == Affine(0, 0) and iterations:
        ends = x.value(iterations[0]), x.value(iterations[-1])
        return x if min(ends) >= 0 else y if max(ends) <= 0 else None
    return None


__all__ = ["SubstituteInductionVariables", "solve"]
