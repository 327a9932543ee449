"""Derivatives of `matrix_function`, which are applications of it with more directions, and what it is in the end.

With T[x1, ..., xn] for the application and G for its cotangent, everything follows from  <G, T[x1, ..., xn]>  being a sum over a
closed walk, which may begin anywhere:

    dxk = T[x(k+1), ..., xn, G^T, x1, ..., x(k-1)]^T
    dA  = sum over k of T[x(k+1), ..., xn, G^T, x1, ..., xk]^T
    dp  = <G, T[x1, ..., xn] of df/dp>

No derivative takes the difference of two eigenvalues apart from the function's divided differences, which are smooth. So they
hold where eigenvalues are equal, at every order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.build import Builder, Var
from ..ir.node import Apply, Graph, Node
from ..ir.prim import REGISTRY
from ..ir.rewrite import Rewriter, all_graphs, emit_like, lookup
from ..prims.rules.broadcast import broadcast_to, reduce_sum, reshape
from ..prims.rules.matrices import mm, parts, read, read_adjoint, row, turned
from .batch.batch import RULES as BATCH_RULES
from .batch.batch import Batcher, OneByOne
from .batch.batch import full as all_batched
from .common.activity import SPECIAL
from .common.cotangents import Cotangent, materialise
from .divided_differences import Differences, at_shape, differentiated
from .forward.forward import RULES as FORWARD_RULES
from .forward.forward import Forward
from .reverse.reverse import RULES, Adjoint


def applied_to(a: Var, directions: Sequence[Var], params: Sequence[Var], f: Graph, lower: bool) -> Var:
    """Emit an application."""
    nodes = [v.node for v in (a, *directions, *params)]
    attrs = {"f": f, "slots": len(directions), "lower": lower}
    return Var(a.builder, a.builder.emit(REGISTRY["matrix_function"], nodes, attrs))


def _taken_apart(b: Builder, node: Apply, args: Sequence[Node]) -> tuple[Var, list[Var], list[Var], Graph, bool]:
    """The matrix, the directions, the parameters, the function, and which triangle is read."""
    values, n = [Var(b, x) for x in args], node.attrs["slots"]
    return values[0], values[1 : 1 + n], values[1 + n :], node.attrs["f"], node.attrs["lower"]


# Reverse mode.


def _adjoint(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    b = adjoint.builder
    a, xs, params, f, lower = _taken_apart(b, node, [lookup(adjoint.env, x) for x in node.args])
    dout = Var(b, materialise(b, ct, node.type))
    back, n = turned(dout), len(xs)
    if node.args[0] in adjoint.acts:
        terms = [turned(applied_to(a, [*xs[k:], back, *xs[:k]], params, f, lower)) for k in range(n + 1)]
        whole = terms[0]
        for term in terms[1:]:
            whole = whole + term
        adjoint.accumulate(node.args[0], read_adjoint(whole, lower).node, "matrix_function")
    for k in range(n):
        if node.args[1 + k] in adjoint.acts:
            dx = turned(applied_to(a, [*xs[k + 1 :], back, *xs[:k]], params, f, lower))
            adjoint.accumulate(node.args[1 + k], dx.node, "matrix_function")
    for k, param in enumerate(params):
        if node.args[1 + n + k] in adjoint.acts:
            moved = dout * applied_to(a, xs, params, differentiated(f, 1 + k), lower)
            dp = reduce_sum(moved, axes=(1, 2), keepdims=False) if param.shape else reduce_sum(moved, axes=(0, 1, 2))
            dp = reshape(dp, shape=param.shape) if param.shape else dp
            adjoint.accumulate(node.args[1 + n + k], dp.node, "matrix_function")


# Forward mode.


def _forward(forward: Forward, b: Builder, node: Apply, args, tangents):
    out = emit_like(b, node, args)
    b.origin = node.origin.derive("jvp")
    a, xs, params, f, lower = _taken_apart(b, node, args)
    moves = [None if t is None else Var(b, t) for t in tangents]
    n, terms = len(xs), []
    if moves[0] is not None:
        da = read(moves[0], lower)
        terms += [applied_to(a, [*xs[:k], da, *xs[k:]], params, f, lower) for k in range(n + 1)]
    for k in range(n):
        if (dx := moves[1 + k]) is not None:
            terms.append(applied_to(a, [*xs[:k], dx, *xs[k + 1 :]], params, f, lower))
    for k, param in enumerate(params):
        if (dp := moves[1 + n + k]) is not None:
            factor = reshape(dp, shape=(*param.shape, 1)) if param.shape else dp
            terms.append(factor * applied_to(a, xs, params, differentiated(f, 1 + k), lower))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return out, total.node


# Batching.


def _batch(p: Batcher, b: Builder, node: Apply, args, flags, mask):
    """The matrices of all examples in one stack; a parameter has an entry for each.

    Raises:
        OneByOne: only some examples run it.
    """
    if mask is not None:
        raise OneByOne
    if not any(f is not False for f in flags):
        return emit_like(b, node, args), False
    values = [
        Var(b, p.match(b, x, a.type, f, all_batched(a.type))) for x, a, f in zip(args, node.args, flags, strict=True)
    ]
    size, count, n, _ = values[0].shape
    stacks = [reshape(v, shape=(size * count, n, n)) for v in values[: 1 + node.attrs["slots"]]]
    params = []
    for v in values[1 + node.attrs["slots"] :]:
        each = broadcast_to(reshape(v, shape=(size, 1, 1)), shape=(size, count, 1)) if len(v.shape) == 1 else v
        params.append(reshape(each, shape=(size * count, 1)))
    f = at_shape(node.attrs["f"], (size * count, n), [v.type for v in params])
    out = applied_to(stacks[0], stacks[1:], params, f, node.attrs["lower"])
    return reshape(out, shape=(size, count, n, n)).node, all_batched(node.type)


RULES["matrix_function"] = _adjoint
FORWARD_RULES["matrix_function"] = _forward
BATCH_RULES["matrix_function"] = _batch
SPECIAL["matrix_function"] = lambda activity, node, acts: activity.full(node.type)


# What it is in the end.


def emitted(a: Var, xs: Sequence[Var], params: Sequence[Var], f: Graph, lower: bool) -> Var:
    """The application as ordinary operations. With n directions it takes memory for the (n + 1)-th power of the size."""
    b, n, _ = a.shape
    w, v = parts(REGISTRY["eigh"](a, lower=lower), (n,), (n, n))
    count = len(xs) + 1
    differences, _ = Differences(f, w, params, count).of(tuple(range(count)))
    if not xs:
        return mm(v * row(differences), v, tb=True)
    for k, x in enumerate(xs):
        inner = mm(v, mm(x, v), ta=True)
        differences = differences * reshape(inner, shape=(b, *(n if j in (k, k + 1) else 1 for j in range(count))))
    if count > 2:
        differences = reduce_sum(differences, axes=tuple(range(2, count)))
    return mm(mm(v, differences), v, tb=True)


class _WithoutMatrixFunctions(Rewriter):
    acts_on = ("matrix_function",)

    def node(self, builder: Builder, node: Apply, args: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        if isinstance(node.fn, Graph) or node.fn.name != "matrix_function":
            return super().node(builder, node, args, attrs)
        self.changed = True
        builder.origin = node.origin
        return emitted(*_taken_apart(builder, node, args)).node


def without_matrix_functions(graph: Graph) -> Graph:
    """The graph with its matrix functions as ordinary operations."""
    names = {n.fn.name for g in all_graphs(graph) for n in g.nodes if not isinstance(n.fn, Graph)}
    return _WithoutMatrixFunctions().rewrite(graph) if "matrix_function" in names else graph


__all__ = ["applied_to", "without_matrix_functions"]
