"""Loops of numbers that run together in vector lanes (`vector_while`, made by `opt.loops.unroll_and_jam`).

    x = (x0, x1, x2, x3)
    while any(c(x)):
        x = select(c(x), g(x), x)

Every operation is one on all lanes, and rounds as it does on a number. Both sides of inner branches are computed, and
one is selected; what a finished loop computes is discarded.

Input: the application, whose operations `opt.loops.unroll_and_jam` has shown to be free of effects and traps. Output:
statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm_ffi
from tvm import tirx

from ....ir.node import Apply, Constant, Graph, Node
from ....opt.analysis.control import output_parts
from ..kernels.kernel import apply_rule
from ..tir.block import broadcast, dtype_of, is_leaf, llvm, load, ramp
from .control import iterate_while


def _vector_while(lowering: Any, node: Apply) -> None:
    lanes, n = node.attrs["lanes"], node.attrs["carried"]
    each = len(node.args) // lanes
    rows = [[lowering.scalar(a) for a in node.args[k * each : (k + 1) * each]] for k in range(lanes)]
    lowering.flush_all()
    values = [together(lowering, [row[i] for row in rows], vector=i < n) for i in range(each)]
    block = lowering.block
    cells = [block.cell(v, "c") for v in values[:n]]
    holds: list[Any] = []

    def condition() -> Any:
        operands = [*(block.let(load(c, 0)) for c in cells), *values[n:]]
        holds[:] = [wide(block.let(computed(lowering, node.attrs["cond"], operands)[0]), lanes)]
        return tirx.Cast("int32", llvm("vector.reduce.or", "bool", holds[0])), lambda: None

    def step() -> None:
        old = [block.let(load(c, 0)) for c in cells]
        new = [wide(v, lanes) for v in computed(lowering, node.attrs["body"], [*old, *values[n:]])]
        kept = [block.let(tirx.Select(holds[0], x, y)) for x, y in zip(new, old)]
        for cell, value in zip(cells, kept):
            block.store(cell, value, 0)

    iterate_while(lowering, node, condition, step)
    results = [apart(lowering, load(c, 0), lanes) for c in cells]
    lowering.scope.env[node] = tuple(results[i][k] for k in range(lanes) for i in range(n))


def together(lowering: Any, values: Sequence[Any], vector: bool) -> Any:
    """The numbers of all lanes as a vector; as the one number that they are, where they need not be a vector."""
    first = values[0]
    if all(v is first or (is_leaf(v) and tvm_ffi.structural_equal(v, first)) for v in values):
        return wide(first, len(values)) if vector else first
    place = lowering.block.local(dtype_of(first), len(values), name="lanes")
    for k, value in enumerate(values):
        lowering.block.store(place, value, k)
    return lowering.block.let(load(place, ramp(0, len(values))))


def apart(lowering: Any, vector: Any, lanes: int) -> list[Any]:
    """The numbers of a vector."""
    dtype = dtype_of(vector).partition("x")[0]
    place = lowering.block.local(dtype, lanes, name="lanes")
    lowering.block.vstore(place, vector, 0)
    return [lowering.block.let(load(place, k)) for k in range(lanes)]


def wide(value: Any, lanes: int) -> Any:
    """A value with a number of lanes."""
    return value if "x" in dtype_of(value) else broadcast(value, lanes)


def computed(lowering: Any, graph: Graph, values: Sequence[Any]) -> list[Any]:
    """What a graph of numbers returns for vectors, part by part."""
    env: dict[Node, Any] = dict(zip(graph.params, values, strict=True))

    def value(node: Node) -> Any:
        return lowering.scalar(node) if isinstance(node, Constant) else env[node]

    parts = output_parts(graph)
    for node in graph.nodes:
        if parts is not None and node is graph.output:
            continue
        args = [value(a) for a in node.args]
        if node.fn.name == "cond":
            then, orelse = (computed(lowering, node.attrs[k], args[1:])[0] for k in ("then", "orelse"))
            made = lowering.b.where(args[0], then, orelse)
        else:
            made = apply_rule(lowering.b, node, args)
        env[node] = lowering.b.let(made)
    return [value(part) for part in (parts if parts is not None else [graph.output])]


RULES = {"vector_while": _vector_while}

__all__ = ["RULES"]
