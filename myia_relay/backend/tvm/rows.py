"""Kernels that compute arrays row by row (`map_rows`, which `opt.rows` makes): a loop over blocks of rows, in the lanes of vectors.

Every number of a row is a vector here, of that number in each row of the block; what is the same for all rows stays a number.
Integers that grow evenly from lane to lane are kept as a start and a stride (`Even`), so reading is a vector load, a strided load,
or a gather, as the index tells. A last block that would not be full is moved back over rows that were computed before: results
are nobody's operands.

Input: the application. Output: one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ...abstract.types import Array
from ...ir.node import Apply, Constant, Graph, Node
from ...opt.control import output_parts
from ...opt.fusion import cost
from ...opt.row_places import turns
from .block import dtype_of, idx, lanes_of, load
from .expr import Expr, constant
from .kernel import Kernel, apply_rule
from .nests import PARALLEL_WORK, lanes_for

LANES = lanes_for("float64")


@dataclass(frozen=True)
class Even:
    """An integer for each lane: `start`, `start + stride`, ..."""

    start: Any
    stride: int


def _map_rows(lowering: Any, node: Apply) -> None:
    attrs, scope = node.attrs, lowering.scope
    n, body = attrs["rows"], attrs["body"]
    operands = [lowering.view(a) if isinstance(a.type, Array) and a.type.shape else a for a in node.args]
    for operand in operands:
        if not isinstance(operand, Node):
            lowering.flush_writers(operand.storage)
    parts = {u.attrs["index"]: u for u in scope.fusion.users.get(node, ()) if isinstance(u, Apply) and u.fn.name == "get_item"}
    targets = []
    for k, t in enumerate(attrs["types"]):
        wanted = scope.dest.pop(parts[k], None) if k in parts else None
        targets.append(wanted if wanted is not None else lowering.new_view(t))
    kernel = Kernel(lowering, "rows")
    values = [kernel.scalar(o) if isinstance(o, Node) else kernel.buffer(o) for o in operands]
    outs = [kernel.buffer(v, write=True) for v in targets]
    lanes = LANES
    while lanes > n:
        lanes //= 2
    blocks, block = -(-n // lanes), kernel.block
    parallel = blocks * work(body) >= PARALLEL_WORK and blocks > 1
    with block.loop(blocks, "parallel" if parallel else "serial") as i:
        first = tirx.Mul(i, idx(lanes))
        if n % lanes:
            first = tirx.Min(first, idx(n - lanes))
        first = block.let(first)
        machine = Rows(kernel, lanes)
        numbers = iter(machine.run(body, [Even(first, 1), *values]))
        for out, (outer, width) in zip(outs, attrs["widths"]):
            start = block.let(tirx.Mul(first, idx(width))) if width > 1 else first
            for b in range(outer):
                for a in range(width):
                    at = tirx.Add(start, idx(b * n * width + a))
                    value = machine.vector(next(numbers))
                    place = at if lanes == 1 else tirx.Ramp(at, idx(width), lanes)
                    block.store(out, value, place)
    lowering.emit_kernel(kernel)
    scope.env[node] = tuple(targets)


def work(graph: Graph) -> int:
    """How many operations a graph of numbers is."""
    size = 0
    for node in graph.nodes:
        size += cost(node)
        if node.fn.name == "for_loop":
            size += work(node.attrs["body"]) * len(turns(node))
    return size


class Rows:
    """Evaluates graphs of numbers for a block of rows."""

    def __init__(self, kernel: Kernel, lanes: int):
        self.kernel, self.block, self.lanes = kernel, kernel.block, lanes
        self.b = Expr(self.block, kernel.dims, array=True)

    def run(self, graph: Graph, values: list[Any]) -> list[Any]:
        """What a graph returns, part by part, for values of its parameters."""
        env: dict[Node, Any] = dict(zip(graph.params, values, strict=True))

        def value(node: Node) -> Any:
            if isinstance(node, Constant):
                return constant(node.value, node.type.dtype)
            return env[node]

        for node in graph.nodes:
            if node is graph.output:
                break
            args = [value(a) for a in node.args]
            env[node] = self.apply(node, args)
        return [value(part) for part in output_parts(graph)]

    def apply(self, node: Apply, args: list[Any]) -> Any:
        name = node.fn.name
        if name == "dynamic_index":
            return self.read(*args)
        if name == "for_loop":
            return self.loop(node, args)
        if name == "get_item":
            return args[0][node.attrs["index"]]
        even = self.even(node, args)
        if even is not None:
            return even
        return self.b.let(apply_rule(self.b, node, [self.expression(a) for a in args]))

    def even(self, node: Apply, args: list[Any]) -> Even | None:
        """Sums and multiples of what grows evenly."""
        name = node.fn.name
        if name not in ("add", "sub", "mul") or not any(isinstance(a, Even) for a in args):
            return None
        if not all(isinstance(a, Even) or lanes_of(dtype_of(a)) == 1 for a in args):
            return None
        x, y = (a if isinstance(a, Even) else Even(a, 0) for a in args)
        if name == "mul":
            by = next((a for a in args if isinstance(a, tirx.IntImm)), None)
            if by is None:
                return None
            start = args[0].start if isinstance(args[0], Even) else args[1].start
            return Even(self.b.let(tirx.Mul(start, by)), (x.stride or y.stride) * int(by.value))
        combine = tirx.Add if name == "add" else tirx.Sub
        stride = x.stride + y.stride if name == "add" else x.stride - y.stride
        return Even(self.b.let(combine(x.start, y.start)), stride)

    def expression(self, value: Any) -> Any:
        """A value as an expression."""
        if not isinstance(value, Even):
            return value
        if self.lanes == 1 or value.stride == 0:
            return value.start
        return tirx.Ramp(value.start, idx(value.stride), self.lanes)

    def vector(self, value: Any) -> Any:
        """A value with all its lanes."""
        value = self.expression(value)
        return value if lanes_of(dtype_of(value)) == self.lanes else tirx.Broadcast(value, self.lanes)

    def read(self, buffer: Any, index: Any) -> Any:
        """The element of an array at an index."""
        return self.b.let(load(buffer, self.expression(index)))

    def loop(self, node: Apply, args: list[Any]) -> tuple[Any, ...]:
        """A loop that turns as often for all rows; what it carries is in vectors."""
        block, n = self.block, node.attrs["carried"]
        cells = []
        for value in args[3 : 3 + n]:
            value = self.vector(value)
            cells.append(block.local(dtype_of(value), name="c"))
            block.store(cells[-1], value, 0)
        span = turns(node)
        with block.loop(len(span)) as i:
            index = i if (span.start, span.step) == (0, 1) else self.b.let(tirx.Add(idx(span.start), tirx.Mul(i, idx(span.step))))
            old = [block.let(load(c, 0)) for c in cells]
            new = self.run(node.attrs["body"], [index, *old, *args[3 + n :]])
            for cell, value in zip(cells, [self.b.let(self.vector(v)) for v in new]):
                block.store(cell, value, 0)
        return tuple(load(c, 0) for c in cells)


RULES = {"map_rows": _map_rows}

__all__ = ["RULES"]
