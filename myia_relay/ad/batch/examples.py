"""Batching of what an example knows of its batch (`prims.ops.examples`).

    mean_over_examples(x_1 ... x_n)  =>  (x_1 + ... + x_n) / n, the same for all examples

Each is applied again to what batching makes of it, so that an outer `vmap` does its part. The directions of a Jacobian are no
examples.
"""

from __future__ import annotations

from ...abstract.dims import Dim
from ...abstract.types import Scalar
from ...ir.build import Builder, Var
from ...ir.node import Apply, Node
from ...ir.prim import REGISTRY
from ...ir.rewrite import all_graphs, emit_like
from ...prims.ops.examples import NAMES, example_count, example_index, mean_over_examples
from ...prims.rules.broadcast import broadcast_to, nullary, reduce_sum
from ...utils.errors import TypeError_
from .batch import RULES, Batcher, full

MASKED = (
    "batch_norm and dropout of a layer that trains stand in a branch or loop that only some examples of the batch run; "
    "move them out of it, or give the whole batch to the model"
)


def refuse_one_by_one(graph) -> None:
    """Refuse to run examples one after the other where they are to know of each other.

    Raises:
        TypeError_: they are.
    """
    for inner in all_graphs(graph):
        for node in inner.nodes:
            if getattr(node.fn, "name", "") in NAMES:
                raise TypeError_(MASKED).at(node.origin)


def _size(p: Batcher, b: Builder) -> Var:
    """The size of the batch, as an int64 number."""
    if isinstance(p.size, Dim):
        return Var(b, b.emit(REGISTRY["dim_size"], (), {"dim": p.size}))
    return Var(b, b.constant(p.size))


def _rule(make):
    def rule(p: Batcher, b: Builder, node: Apply, args: list[Node], flags, mask):
        if flags[0] is False:
            return emit_like(b, node, tuple(args)), False
        if p.once:
            return b.emit(node.fn, tuple(args), {}), full(node.type)
        if mask is not None:
            raise TypeError_(MASKED)
        return make(p, b, node, Var(b, args[0]))

    return rule


def _mean(p: Batcher, b: Builder, node: Apply, x: Var):
    total = reduce_sum(x, axes=(0,))
    size = REGISTRY["cast"](_size(p, b), dtype=x.dtype, weak=False)
    mean = mean_over_examples(total / size)
    return _like(mean, node).node, False


def _count(p: Batcher, b: Builder, node: Apply, x: Var):
    one = REGISTRY["dynamic_index"](x, Var(b, b.constant(0)), axis=0)
    count = example_count(one) * REGISTRY["cast"](_size(p, b), dtype="int64", weak=False)
    return _like(count, node).node, False


def _index(p: Batcher, b: Builder, node: Apply, x: Var):
    index = nullary(x, "iota", n=p.size, dtype="int64")
    rank = len(x.shape)
    if rank > 1:
        index = broadcast_to(REGISTRY["reshape"](index, shape=(p.size, *(1,) * (rank - 1))), shape=x.shape)
    outer = example_index(x) * REGISTRY["cast"](_size(p, b), dtype="int64", weak=False)
    return (index + outer).node, full(node.type)


def _like(x: Var, node: Apply) -> Var:
    """A number as a NumPy scalar or an array without axes, as the type of the original has it."""
    if isinstance(node.type, Scalar) and not isinstance(x.type, Scalar):
        return REGISTRY["as_scalar"](x)
    if not isinstance(node.type, Scalar) and isinstance(x.type, Scalar):
        return REGISTRY["as_array"](x)
    return x


RULES.update({"mean_over_examples": _rule(_mean), "example_count": _rule(_count), "example_index": _rule(_index)})
