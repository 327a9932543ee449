"""Sums of products over the iterations of a loop become one product, in derived code.

    for i in range(n):  total = total + A_i.T @ B_i      =>  for i in range(n):  A[i], B[i] = A_i, B_i
                                                             total = total + A.T @ B

That is the gradient of a matrix with which a loop multiplies: a sum of outer products of few rows each, for which the whole sum
would be read and written in every iteration. What is multiplied is kept instead, and one product sums it up. An array that the
loop fills with the rows A_i anyway is used as it is.

The order in which the terms of a sum are added changes, so sums that users wrote are left alone.

Input: a closed typed graph, differentiated. Output: the same. Source: as of `batch_products`; it is the transposed rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Array, numpy_dtype
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, applied, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Env, Rewriter, emit_like, lookup
from ...prims.ops.linalg import dot
from ...prims.rules.broadcast import reshape
from ..analysis.control import output_parts
from ..rewrite.control import pack
from ..rewrite.rules import filled
from .batch_products import LEAST_ITERATIONS, LEAST_MATRIX, MOST_BYTES, MOST_ROWS, stack_type, zeros
from .preallocate_tapes import iteration_number, store_entry


@dataclass(frozen=True)
class SumProducts:
    """The pass, for programs without transforms."""

    name: str = "sum_products"

    def __call__(self, graph: Graph) -> Graph:
        return _Sum().rewrite(graph)


@dataclass(frozen=True)
class Term:
    """What a loop adds to a sum that it carries.

    Attributes:
        index: of the sum among the carried values.
        left, right: what is multiplied, the left one transposed: matrices, or vectors, of which it is the outer product.
    """

    index: int
    left: Node
    right: Node


class _Sum(Rewriter):
    acts_on = ("for_loop",)

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) == "for_loop" and all(isinstance(a, Constant) for a in args[:3]):
            span = range(*(int(a.value) for a in args[:3]))  # type: ignore[attr-defined]
            terms = find_terms(attrs["body"], attrs["carried"], span) if len(span) >= LEAST_ITERATIONS else []
            if terms:
                self.changed = True
                return summed(builder, node, args, attrs["body"], terms, span)
        return super().node(builder, node, args, attrs)


def find_terms(body: Graph, carried: int, span: range) -> list[Term]:
    """The sums of products that a loop carries, and does nothing else with."""
    outs = output_parts(body)
    if outs is None:
        return []
    count: dict[Node, int] = {}
    for node in body.nodes:
        for arg in node.args:
            count[arg] = count.get(arg, 0) + 1
    found = []
    for k, param in enumerate(body.params[1 : 1 + carried]):
        out = outs[k]
        if not applies(out, "add") or not out.origin.is_adjoint or count.get(param) != 1 or count[out] != 1:
            continue
        if param not in out.args or out.args[0].type != out.args[1].type:
            continue
        product = out.args[out.args[0] is param]
        factors = _factors(product) if count[product] == 1 else None
        if factors is not None and _is_worth_it(out.type, factors, len(span)):
            found.append(Term(k, *factors))
    return found


def _factors(product: Node) -> tuple[Node, Node] | None:
    """What is multiplied: `left.T @ right`, or the outer product of vectors."""
    if applies(product, "dot") and product.attrs["transpose_a"] and not product.attrs["transpose_b"]:
        return product.args[0], product.args[1]
    if applies(product, "mul"):
        left, right = (a.args[0] if applies(a, "reshape") else None for a in product.args)
        if left is not None and right is not None:
            sizes = [a.type.shape for a in product.args if isinstance(a.type, Array)]
            vectors = all(isinstance(a.type, Array) and len(a.type.shape) == 1 for a in (left, right))
            if vectors and sizes == [(*left.type.shape, 1), (1, *right.type.shape)]:
                return left, right
    return None


def _is_worth_it(total: Any, factors: tuple[Node, Node], count: int) -> bool:
    shapes = [f.type.shape for f in factors]
    if not isinstance(total, Array) or total.dtype not in ("float32", "float64"):
        return False
    if not all(isinstance(d, int) for s in (*shapes, total.shape) for d in s) or math.prod(total.shape) < LEAST_MATRIX:  # type: ignore
        return False
    rows = 1 if len(shapes[0]) == 1 else shapes[0][0]
    kept = count * sum(map(math.prod, shapes)) * numpy_dtype(total.dtype).itemsize
    return 0 < rows <= MOST_ROWS and kept <= MOST_BYTES


def summed(b: Builder, node: Apply, args: tuple[Node, ...], body: Graph, terms: list[Term], span: range) -> Node:
    """The loop that keeps what is multiplied, and the products behind it, as the tuple of what it carried."""
    b.origin = node.origin
    carried = node.attrs["carried"]
    sums = {term.index: term for term in terms}
    outs = output_parts(body)
    assert outs is not None
    in_order = set(span) == set(range(len(span)))  # every iteration can then have the place that its index says
    there = _filled_by_the_loop(body, args, outs, carried, len(span)) if in_order else {}
    kept = list(dict.fromkeys(x for t in terms for x in (t.left, t.right) if x not in there))
    others = [k for k in range(carried) if k not in sums]

    new = Graph(body.name, None, body.origin)
    new.flags = dict(body.flags)
    env: Env = {body.params[0]: new.add_parameter(body.params[0].name, body.params[0].type, body.params[0].origin)}
    for param in (body.params[1 + k] for k in others):
        env[param] = new.add_parameter(param.name, param.type, param.origin)
    stacks = [new.add_parameter("kept", stack_type(len(span), x.type)) for x in kept]
    for param in body.params[1 + carried :]:
        env[param] = new.add_parameter(param.name, param.type, param.origin)
    inner = Builder(new, body.origin)
    gone = {outs[k] for k in sums} | {body.output}
    gone |= {a for k in sums for a in outs[k].args if isinstance(a, Apply)}  # type: ignore[attr-defined]
    for old in body.nodes:
        if old not in gone:
            env[old] = emit_like(inner, old, tuple(lookup(env, a) for a in old.args))
    inner.origin = node.origin
    place = env[body.params[0]] if in_order else iteration_number(inner, env[body.params[0]], span, None)
    filled_stacks = [store_entry(inner, stack, lookup(env, x), place) for stack, x in zip(stacks, kept)]
    new.output = pack(inner, [*(lookup(env, outs[k]) for k in others), *filled_stacks])

    empty = [zeros(b, len(span), x.type) for x in kept]
    start = [args[3 + k] for k in others] + empty
    attrs = {**node.attrs, "body": new, "carried": len(start)}
    made = b.emit(node.fn, (*args[:3], *start, *args[3 + carried :]), attrs)  # type: ignore[arg-type]
    made.name = node.name
    parts = [b.emit(REGISTRY["get_item"], (made,), {"index": k}) for k in range(len(start))]
    results: dict[int, Node] = dict(zip(others, parts))
    arrays = dict(zip(kept, parts[len(others) :])) | {x: results[k] for x, k in there.items()}
    for k, term in sums.items():
        b.origin = outs[k].origin
        total = dot(*(_rows(b, arrays[x]) for x in (term.left, term.right)), transpose_a=True)
        results[k] = total.node if filled(args[3 + k]) == 0 else (b.var(args[3 + k]) + total).node
    b.origin = node.origin
    return pack(b, [results[k] for k in range(carried)])


def _rows(b: Builder, stack: Node) -> Any:
    """What was kept of all iterations as the rows of one matrix."""
    x = b.var(stack)
    return x if len(x.shape) == 2 else reshape(x, shape=(x.shape[0] * x.shape[1], x.shape[2]))


def _filled_by_the_loop(
    body: Graph, args: tuple[Node, ...], outs: list[Node], carried: int, count: int
) -> dict[Node, int]:
    """Values that the loop puts into an array at its index, an array of zeros at first -> the array among the carried values."""
    index = body.params[0]
    uses: dict[Node, int] = {}
    for node in body.nodes:
        for arg in node.args:
            uses[arg] = uses.get(arg, 0) + 1
    found: dict[Node, int] = {}
    for k, param in enumerate(body.params[1 : 1 + carried]):
        out = outs[k]
        if not applies(out, "index_add", "dynamic_update") or out.attrs["axis"] != 0 or uses[param] != 1:
            continue
        if out.args[0] is not param or out.args[2] is not index or uses[out] != 1 or filled(args[3 + k]) != 0:
            continue
        value = out.args[1]
        if isinstance(value.type, Array) and out.type == stack_type(count, value.type):
            found[value] = k
    return found
