"""Kernels that compute arrays row by row (`map_rows`, made by `opt.kernels.soa_kernels`): a loop over blocks of rows, in
vector lanes.

Every number of a row is a vector here, of that number in each row of the block; what is the same for all rows stays a
number. Integers that increase evenly from lane to lane are kept as a start and a stride (`Even`), so a read is a vector
load, a strided load, or a gather, depending on the index. A last block that would not be full is moved back over rows
that were computed before; this is safe because results are never operands.

Input: the application. Output: one kernel.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ....abstract.dims import known_size
from ....abstract.types import Array
from ....ir.node import Apply, Constant, Graph, Node, applied
from ....opt.analysis.control import iterations, output_parts
from ....opt.analysis.fusion import cost
from ....opt.kernels.zero_blocks import CarriedGroup, GroupFamily, TangentTerm, families, skippable, terms
from ....opt.loops.invariants import needed_outside
from ..plan import View
from ..tir import exact
from ..tir.block import broadcast, dtype_of, idx, lanes_of, llvm, load, ramp, shuffle
from ..tir.expr import Expr, constant
from ..tir.transpose import transposed
from . import nontemporal
from .kernel import Kernel, apply_rule
from .nests import PARALLEL_WORK, lanes_for

MIXED = 4  # columns that are transposed into whole vectors
LONGEST = 1 << 14  # groups of a loop for which it is recorded, for all iterations, where something must be added
WATCHED = 4  # blocks from which it pays to compute in advance what each would compute


@dataclass(frozen=True)
class Even:
    """An integer for each lane: `start + offset`, `start + offset + stride`, ..."""

    start: Any
    stride: int
    offset: int = 0


@dataclass(frozen=True)
class LaneIndices:
    """An integer for each lane, anywhere: those of a vector, all increased by `offset`."""

    root: Any
    offset: int


def full_lanes() -> int:
    """How many rows a vector of the machine that code is made for holds."""
    return lanes_for("float64")


def _map_rows(lowering: Any, node: Apply) -> None:
    attrs, scope = node.attrs, lowering.scope
    n, body, counted = attrs["rows"], attrs["body"], attrs.get("counted", False)
    args = node.args[1:] if counted else node.args
    operands = [lowering.view(a) if isinstance(a.type, Array) and a.type.shape else a for a in args]
    for operand in operands:
        if not isinstance(operand, Node):
            lowering.flush_writers(operand.storage)
    parts = {
        u.attrs["index"]: u
        for u in scope.fusion.users.get(node, ())
        if isinstance(u, Apply) and u.fn.name == "get_item"
    }
    targets = []
    for k, t in enumerate(attrs["types"]):
        wanted = scope.dest.pop(parts[k], None) if k in parts else None
        targets.append(wanted if wanted is not None else lowering.new_view(t))
    kernel = Kernel(lowering, "rows")
    values = [kernel.scalar(o) if isinstance(o, Node) else kernel.buffer(o) for o in operands]
    outs = [kernel.buffer(v, write=True) for v in targets]
    lanes = full_lanes()
    while lanes > n:
        lanes //= 2
    blocks, block = -(-n // lanes), kernel.block
    parallel = blocks * work(body) >= PARALLEL_WORK and blocks > 1
    wanted = idx(blocks)
    if counted:  # the last block need not be full: `n` is a whole number of blocks
        wanted = tirx.Div(tirx.Add(kernel.scalar(node.args[0]), idx(lanes - 1)), idx(lanes))
    machine = RowBlockEvaluator(kernel, lanes, n)
    if blocks >= WATCHED:
        machine.watch(body, values)
    # If results are too large for the caches, the widest is stored non-temporally: blocks begin where its vectors are
    # aligned.
    large = [] if counted or n < 2 * full_lanes() else [k for k, view in enumerate(targets) if nontemporal.pays(view)]
    streamed = max(large, key=lambda k: attrs["widths"][k][1], default=None)
    ahead: Any = None
    if streamed is not None:
        ahead = nontemporal.until_placed(block, outs[streamed], idx(0), lanes, attrs["widths"][streamed][1])
        wanted = idx(blocks + 1)
    with block.loop(wanted, "parallel" if parallel else "serial") as i:
        first = tirx.Mul(i, idx(lanes))
        if ahead is not None:
            first = tirx.Max(tirx.Add(first, tirx.Sub(ahead, idx(lanes))), idx(0))
        if n % lanes or ahead is not None:
            first = tirx.Min(first, idx(n - lanes))
        first = block.let(first)
        # LLVM tests each pair of memory accesses in a loop for overlap, which takes seconds for thousands. It ignores
        # loops that access memory by anything but loads and stores.
        if streamed != 0:
            block.prefetch(outs[0], tirx.Mul(first, idx(attrs["widths"][0][1])))
        numbers = iter(machine.run(body, [Even(first, 1), *values]))
        for k, (out, (outer, width)) in enumerate(zip(outs, attrs["widths"])):
            start = block.let(tirx.Mul(first, idx(width))) if width > 1 else first
            stage = block.local(targets[k].dtype, lanes * width, name="stage") if k == streamed else None
            for b in range(outer):
                place, columns = (
                    tirx.Add(start, idx(b * n * width)),
                    [machine.vector(next(numbers)) for _ in range(width)],
                )
                if stage is None:
                    machine.write(out, place, columns)
                else:
                    machine.write(stage, idx(0), columns)
                    nontemporal.copy(block, out, block.let(place), stage, width, lanes)
    lowering.emit_kernel(kernel, [node])
    scope.env[node] = tuple(targets)


def runs(graph: Graph, lanes: int) -> dict[Apply, tuple[int, int]]:
    """Reads at `x + 0`, `x + 1`, ... of one array, as many as a vector has lanes: where such vectors begin, and the
    place in one.

    The last vector of a run begins earlier where it would not be full.
    """
    if lanes < full_lanes():
        return {}
    reads: dict[tuple[Node, Node], dict[int, list[Apply]]] = {}
    for node in graph.nodes:
        if applied(node) == "dynamic_index" and node.args[0].type.dtype != "bool":
            array, index = node.args
            offset = 0
            if applied(index) == "add" and isinstance(index.args[1], Constant):
                index, offset = index.args[0], int(index.args[1].value)
            reads.setdefault((array, index), {}).setdefault(offset, []).append(node)
    found: dict[Apply, tuple[int, int]] = {}
    for at in reads.values():
        first = None
        for offset in sorted(at):
            first = offset if first is None or offset - 1 not in at else first
            if offset + 1 in at:
                continue
            for k in range(first, offset + 1) if offset - first + 1 >= lanes else ():
                start = min(first + (k - first) // lanes * lanes, offset + 1 - lanes)
                found.update(dict.fromkeys(at[k], (start, k - start)))
    return found


def _iterations(node: Apply) -> range:
    """The iterations of a loop: they are known of all loops in graphs that come here."""
    known = iterations(node)
    assert known is not None
    return known


def work(graph: Graph) -> int:
    """How many operations a graph of numbers is."""
    size = 0
    for node in graph.nodes:
        size += cost(node)
        if node.fn.name == "for_loop":
            size += work(node.attrs["body"]) * len(_iterations(node))
    return size


class RowBlockEvaluator:
    """Evaluates graphs of numbers for a block of rows.

    Attributes:
        runs: reads of numbers that lie side by side -> where a vector of such begins, and the number's place in it.
        watched: loops of which it is known, iteration by iteration, to which groups there is anything to add -> the families of
        groups, and
            for each how many groups these are in an iteration, and which.
    """

    def __init__(self, kernel: Kernel, lanes: int, rows: int):
        self.kernel, self.block, self.lanes, self.rows = kernel, kernel.block, lanes, rows
        self.b = Expr(self.block, kernel.dims, array=True)
        self.lanes_apart: ChainMap[int, tuple[Any, list[Any]]] = ChainMap()
        self.blocks: ChainMap[tuple, tuple[Any, Any, list[Any]]] = ChainMap()
        self.runs: dict[Apply, tuple[int, int]] = {}
        self.watched: dict[Apply, tuple[list[GroupFamily], list[tuple[Any, Any]]]] = {}
        self.terms: list[TangentTerm] = []
        self.term_flags: Any = None

    def watch(self, graph: Graph, values: list[Any]) -> None:
        """Find out, before the first block, what the iterations of loops may skip: it is the same for all rows.

        Args:
            graph: of a row.
            values: of its parameters but the row itself.
        """
        block = self.block
        known: dict[Node, Any] = dict(zip(graph.params[1:], values, strict=True))
        for node in graph.nodes:
            if node.fn.name != "for_loop":
                continue
            span, body, first = _iterations(node), node.attrs["body"], 1 + node.attrs["carried"]
            args = [
                self.value(a, known) if a in known or isinstance(a, Constant) else None for a in node.args[2 + first :]
            ]
            env = {p: a for p, a in zip(body.params[first:], args, strict=True) if a is not None}
            groups = skippable(body, first - 1, {0} | {k for k, a in enumerate(args, first) if a is not None})
            if not groups or len(span) * len(groups) > LONGEST:
                continue
            alike = families(groups, body)
            known_of = [
                (block.local("int64", len(span)), block.local("int16", len(span) * len(f.groups))) for f in alike
            ]
            with block.loop(len(span)) as i, self.inside():
                env[body.params[0]] = self.index(span, i)
                self.compute(needed_outside(body, [f.first.base for f in alike if f.first.base is not None]), env)
                for family, (number, which) in zip(alike, known_of):
                    block.store(number, idx(0), i)
                    with (
                        self.each(family) as g,
                        block.when(self.any_nonzero(family.first, env, self.times(g, family.stride))),
                    ):
                        at = block.let(load(number, i))
                        place = tirx.Add(tirx.Mul(i, idx(len(family.groups))), at)
                        block.store(which, tirx.Cast("int16", g), place)
                        block.store(number, tirx.Add(at, idx(1)), i)
            self.watched[node] = alike, known_of
        self.terms = terms(graph)
        if self.terms:
            self.term_flags = block.local("int8", len(self.terms), name="flags")
            for k, term in enumerate(self.terms):
                with self.inside():
                    something = self.any_nonzero(term.group, {term.group.array: known[term.group.array]})
                    block.store(self.term_flags, tirx.Cast("int8", something), idx(k))

    def run(self, graph: Graph, values: list[Any]) -> list[Any]:
        """What a graph returns, part by part, for values of its parameters."""
        env: dict[Node, Any] = dict(zip(graph.params, values, strict=True))
        parts = output_parts(graph)
        self.runs.update(runs(graph, self.lanes))
        self.compute_sums([n for n in graph.nodes if parts is None or n is not graph.output], env)
        return list(env[graph.output]) if parts is None else [self.value(part, env) for part in parts]

    def value(self, node: Node, env: dict[Node, Any]) -> Any:
        """The value of a node."""
        return constant(node.value, node.type.dtype) if isinstance(node, Constant) else env[node]

    def compute(self, nodes: Iterable[Apply], env: dict[Node, Any]) -> None:
        """Compute applications."""
        for node in nodes:
            env[node] = self.apply(node, [self.value(a, env) for a in node.args])

    def compute_sums(self, nodes: list[Apply], env: dict[Node, Any]) -> None:
        """Compute applications, but for terms of which it is known, before the first block, that they are zero."""
        later = {n for term in self.terms for n in term.nodes}
        at = {term.sums[0]: (k, term) for k, term in enumerate(self.terms)}
        for node in nodes:
            if node in at:
                k, term = at[node]
                cells = []
                for rest in term.rests:
                    cells.append(self.block.cell(self.vector(self.value(rest, env)), "c"))
                with self.block.when(tirx.NE(load(self.term_flags, idx(k)), constant(0, "int8"))), self.inside():
                    self.compute([*term.nodes, *term.sums], env)
                    for cell, total in zip(cells, term.sums):
                        self.block.store(cell, self.vector(env[total]), 0)
                env.update({total: self.b.let(load(cell, 0)) for cell, total in zip(cells, term.sums)})
            elif node not in later and node not in env:
                self.compute([node], env)

    def apply(self, node: Apply, args: list[Any]) -> Any:
        name = node.fn.name
        if name == "dynamic_index":
            run, (buffer, at) = self.runs.get(node), args
            return self.read(node.args[0].type, buffer, at) if run is None else self.read_run(buffer, at, *run)
        if name == "for_loop":
            return self.loop(node, args)
        if name == "get_item":
            return args[0][node.attrs["index"]]
        index = self.even(node, args) or self.spread(node, args)
        if index is not None:
            return index
        return self.b.let(apply_rule(self.b, node, [self.expression(a) for a in args]))

    def even(self, node: Apply, args: list[Any]) -> Even | None:
        """Sums and multiples of what grows evenly."""
        name = node.fn.name
        if name not in ("add", "sub", "mul") or not any(isinstance(a, Even) for a in args):
            return None
        if not all(isinstance(a, Even) or lanes_of(dtype_of(a)) == 1 for a in args):
            return None
        x, y = (a if isinstance(a, Even) else Even(a, 0) for a in args)
        known = next((int(a.value) for a in args if isinstance(a, tirx.IntImm)), None)
        even = x if isinstance(args[0], Even) else y
        if name == "mul":
            if known is None:
                return None
            return Even(self.b.let(tirx.Mul(even.start, idx(known))), even.stride * known, even.offset * known)
        if known is not None and (name == "add" or even is x):
            return Even(even.start, even.stride, even.offset + (known if name == "add" else -known))
        combine, sign = (tirx.Add, 1) if name == "add" else (tirx.Sub, -1)
        return Even(self.b.let(combine(x.start, y.start)), x.stride + sign * y.stride, x.offset + sign * y.offset)

    def spread(self, node: Apply, args: list[Any]) -> LaneIndices | None:
        """A vector of integers and a constant."""
        if node.fn.name != "add" or not isinstance(args[1], tirx.IntImm):
            return None
        if isinstance(args[0], LaneIndices):
            return LaneIndices(args[0].root, args[0].offset + int(args[1].value))
        whole = not isinstance(args[0], Even) and dtype_of(args[0]) == f"int64x{self.lanes}"
        return LaneIndices(args[0], int(args[1].value)) if whole else None

    def expression(self, value: Any) -> Any:
        """A value as an expression."""
        if isinstance(value, LaneIndices):
            return tirx.Add(value.root, broadcast(idx(value.offset), self.lanes))
        if not isinstance(value, Even):
            return value
        start = tirx.Add(value.start, idx(value.offset)) if value.offset else value.start
        return start if value.stride == 0 else ramp(start, self.lanes, value.stride)

    def vector(self, value: Any) -> Any:
        """A value with all its lanes."""
        value = self.expression(value)
        return value if lanes_of(dtype_of(value)) == self.lanes else broadcast(value, self.lanes)

    def write(self, buffer: Any, at: Any, columns: list[Any]) -> None:
        """Store the rows of a block, which lie one behind the other, given the vectors of their columns.

        Scattered element by element they would take longer than to compute: a few columns are mixed into whole vectors,
        many are turned into rows, eight at a time.
        """
        lanes, width = self.lanes, len(columns)
        if dtype_of(columns[0]).startswith("bool") or lanes < full_lanes():
            for k, column in enumerate(columns):
                place = tirx.Add(at, idx(k))
                self.block.store(buffer, column, ramp(place, lanes, width))
        elif width <= MIXED:
            columns = [self.b.let(c) for c in columns]
            for k in range(width):
                picked = [(lanes * k + j) % width * lanes + (lanes * k + j) // width for j in range(lanes)]
                mixed = columns[0] if width == 1 else shuffle(columns, picked)
                self.block.store(buffer, mixed, ramp(tirx.Add(at, idx(lanes * k)), lanes))
        else:
            for k in range(0, width, lanes):
                first = max(0, min(k, width - lanes))  # a last part that would not be full is moved back
                some = columns[first : first + lanes]
                rows = transposed(self.block, [*some, *some[-1:] * (lanes - len(some))])
                for r, row in enumerate(rows):
                    part = row if len(some) == lanes else shuffle([row], range(len(some)))
                    self.block.store(buffer, part, ramp(tirx.Add(at, idx(r * width + first)), len(some)))

    def read(self, t: Array, buffer: Any, index: Any) -> Any:
        """The element of an array at an index."""
        if isinstance(index, Even) and 1 < index.stride <= MIXED and self.lanes == full_lanes() and t.dtype != "bool":
            first = index.offset - index.offset % index.stride
            if first + self.rows * index.stride <= known_size(t.shape[0]):  # otherwise not all of its rows are there
                picked = [k * index.stride + index.offset % index.stride for k in range(self.lanes)]
                return self.b.let(shuffle(self.block_of_rows(buffer, index.start, first, index.stride), picked))
        if isinstance(index, Even) or lanes_of(dtype_of(self.expression(index))) == 1:
            return self.b.let(load(buffer, self.expression(index)))
        root, offset = (index.root, index.offset) if isinstance(index, LaneIndices) else (index, 0)
        places = self.apart(root)
        return self.b.let(shuffle([load(buffer, tirx.Add(at, idx(offset))) for at in places], range(self.lanes)))

    def read_run(self, buffer: Any, index: Any, start: int, place: int) -> Any:
        """A number that has neighbours, in rows anywhere: a vector of each row is read, and these are turned."""
        root = index.root if isinstance(index, LaneIndices) else index
        if isinstance(root, Even) or lanes_of(dtype_of(root)) == 1:
            return self.b.let(load(buffer, self.expression(index)))
        key = (id(buffer), id(root), start)
        if key not in self.blocks:
            rows = [load(buffer, ramp(tirx.Add(at, idx(start)), self.lanes)) for at in self.apart(root)]
            self.blocks[key] = buffer, root, transposed(self.block, rows)
        return self.blocks[key][2][place]

    def block_of_rows(self, buffer: Any, start: Any, first: int, width: int) -> list[Any]:
        """The rows of a block, which lie one behind the other in memory, as vectors; read once."""
        key = (id(buffer), id(start), first)
        if key not in self.blocks:
            at = [tirx.Add(start, idx(first + k * self.lanes)) for k in range(width)]
            self.blocks[key] = buffer, start, [self.b.let(load(buffer, ramp(a, self.lanes))) for a in at]
        return self.blocks[key][2]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A scope whose locals are gone afterwards."""
        self.lanes_apart, self.blocks = self.lanes_apart.new_child(), self.blocks.new_child()
        yield
        self.lanes_apart, self.blocks = self.lanes_apart.parents, self.blocks.parents

    def apart(self, vector: Any) -> list[Any]:
        """The lanes of a vector of integers, which index memory: taken apart once, through memory."""
        if id(vector) not in self.lanes_apart:
            place = self.block.local("int64", self.lanes, name="lanes")
            self.block.vstore(place, vector, 0)
            self.lanes_apart[id(vector)] = vector, [self.b.let(load(place, k)) for k in range(self.lanes)]
        return self.lanes_apart[id(vector)][1]

    def loop(self, node: Apply, args: list[Any]) -> tuple[Any, ...]:
        """A loop that runs as often for all rows; what it carries is in vectors."""
        block, n = self.block, node.attrs["carried"]
        span, body = _iterations(node), node.attrs["body"]
        known: Sequence[tuple[Any, Any] | None]
        if node in self.watched:
            alike, known = self.watched[node]
        else:
            alike = families(skippable(body, n, self.uniform_parameters(args, n)), body)
            known = [None] * len(alike)
        initial = [self.vector(value) for value in args[3 : 3 + n]]
        cells: dict[int, tuple[Any, int]] = {}
        for family in alike:
            carried = [k for group in family.groups for k in group.carried]
            place = block.local(dtype_of(initial[carried[0]]), len(carried), name="c")
            cells.update({k: (place, j) for j, k in enumerate(carried)})
        apart = [k for k in range(n) if k not in cells]
        cells.update({k: (block.local(dtype_of(initial[k]), name="c"), 0) for k in apart})
        for k, value in enumerate(initial):
            block.store(cells[k][0], value, cells[k][1])
        with block.loop(len(span)) as i, self.inside():
            env: dict[Node, Any] = {body.params[0]: self.index(span, i)}
            env.update(zip(body.params[1 + n :], args[3 + n :], strict=True))
            env.update({body.params[1 + k]: block.let(load(*cells[k])) for k in apart})
            later = {m for family in alike for group in family.groups for m in group.nodes}
            self.compute([m for m in body.nodes if m not in later and m is not body.output], env)
            parts = output_parts(body)
            assert parts is not None
            new = {k: self.b.let(self.vector(self.value(parts[k], env))) for k in apart}
            for factor in dict.fromkeys(family.first.factor for family in alike):
                with self.where_not_zero(factor, env):
                    for family, iteration in zip(alike, known):
                        if family.first.factor is factor:
                            with self.something(family, iteration, i, env) as g:
                                self.add(family, g, body, cells, env)
            for k, value in new.items():
                block.store(cells[k][0], value, cells[k][1])
        return tuple(load(*cells[k]) for k in range(n))

    @contextmanager
    def each(self, family: GroupFamily) -> Iterator[Any]:
        """The groups of a family, by number."""
        if len(family.groups) == 1:
            yield idx(0)
        else:
            with self.block.loop(len(family.groups)) as g:
                yield g

    @contextmanager
    def something(
        self, family: GroupFamily, known: tuple[Any, Any] | None, iteration: Any, env: dict[Node, Any]
    ) -> Iterator[Any]:
        """The groups of a family to which there is something to add in an iteration, by number."""
        block = self.block
        if known is None:
            with self.each(family) as g:
                there = self.any_nonzero(family.first, env, self.times(g, family.stride))
                with block.when(there), self.inside():
                    yield g
        elif len(family.groups) == 1:
            with block.when(tirx.NE(load(known[0], iteration), idx(0))), self.inside():
                yield idx(0)
        else:
            with block.loop(load(known[0], iteration)) as k, self.inside():
                place = tirx.Add(tirx.Mul(iteration, idx(len(family.groups))), k)
                yield block.let(tirx.Cast("int64", load(known[1], place)))

    def add(
        self, family: GroupFamily, g: Any, body: Graph, cells: dict[int, tuple[Any, int]], env: dict[Node, Any]
    ) -> None:
        """What an iteration adds to a group."""
        block, group, parts = self.block, family.first, output_parts(body)
        assert parts is not None
        start = self.times(g, len(group.carried))
        places = {k: (cells[k][0], tirx.Add(start, idx(cells[k][1]))) for k in group.carried}
        env = {**env, **{body.params[1 + k]: block.let(load(*place)) for k, place in places.items()}}
        for node in group.nodes:
            values = [self.value(a, env) for a in node.args]
            if node in family.steps:
                values[1] = self.moved(values[1], self.times(g, family.steps[node]))
            env[node] = self.apply(node, values)
        for k, (buffer, place) in places.items():
            block.store(buffer, self.vector(env[parts[k]]), place)

    def times(self, g: Any, step: int) -> Any:
        """A number of groups, `step` apart."""
        return idx(int(g.value) * step) if isinstance(g, tirx.IntImm) else self.block.let(tirx.Mul(g, idx(step)))

    def moved(self, index: Any, by: Any) -> Any:
        """An index, further on."""
        if isinstance(index, Even):
            return Even(self.block.let(tirx.Add(index.start, by)), index.stride, index.offset)
        index = self.expression(index)
        lanes = lanes_of(dtype_of(index))
        return self.block.let(tirx.Add(index, broadcast(by, lanes)))

    @contextmanager
    def where_not_zero(self, factor: Node | None, env: dict[Node, Any]) -> Iterator[None]:
        """A branch for the blocks in which a number is not zero in all rows."""
        if factor is None:
            yield
            return
        numbers = self.vector(self.value(factor, env))
        differ = exact.ne(numbers, self.vector(constant(0, factor.type.dtype)))  # NaN too
        with self.block.when(llvm("vector.reduce.or", "bool", differ) if self.lanes > 1 else differ), self.inside():
            yield

    def index(self, span: range, i: Any) -> Any:
        """The index of a loop in its iteration number `i`."""
        if (span.start, span.step) == (0, 1):
            return i
        return self.b.let(tirx.Add(idx(span.start), tirx.Mul(i, idx(span.step))))

    def uniform_parameters(self, args: list[Any], carried: int) -> set[int]:
        """Which parameters of a loop's body are the same for all rows: the index, and of the constants those that are here."""
        same = {0}
        for k, value in enumerate(args[3 + carried :], 1 + carried):
            if not isinstance(value, Even) and (isinstance(value, tirx.Var) or lanes_of(dtype_of(value)) == 1):
                same.add(k)
        return same

    def any_nonzero(self, group: CarriedGroup, env: dict[Node, Any], further: Any = None) -> Any:
        """Whether one of the numbers in which what is added to a group, or one further on, is linear is not zero."""
        buffer = env[group.array]
        base = idx(0) if group.base is None else self.value(group.base, env)
        base = base if further is None else tirx.Add(base, further)
        numbers = load(buffer, ramp(tirx.Add(base, idx(group.first)), group.count))
        zero = constant(0, dtype_of(numbers))
        differ = exact.ne(numbers, zero)  # NaN too
        return llvm("vector.reduce.or", "bool", differ) if group.count > 1 else differ


def _distinct(lowering: Any, node: Apply) -> None:
    """Marks, of eight positions in a word of memory; then one pass over these, and one over the indices."""
    source, size, room = lowering.view(node.args[0]), node.attrs["size"], node.attrs["room"]
    lowering.flush_writers(source.storage)
    target, words = lowering.new_view(node.type), -(-size // 8)
    marked, placed = (lowering.storage("arena", 8 * k, "scratch") for k in (words, 8 * words))
    kernel = Kernel(lowering, "distinct")
    indices, out = kernel.buffer(source), kernel.buffer(target, write=True)
    eight = kernel.buffer(View(marked, "int64", (words,)), write=True)
    marks = kernel.buffer(View(marked, "int8", (8 * words,)), write=True)
    places = kernel.buffer(View(placed, "int64", (8 * words,)), write=True)
    block, count = kernel.block, source.shape[0]

    def position(i: Any) -> Any:
        return block.let(tirx.Max(idx(0), tirx.Min(block.let(load(indices, i)), idx(size - 1))))

    with block.loop(words) as i:
        block.store(eight, idx(0), i)
    with block.loop(room) as i:
        block.store(out, idx(0), i)
    with block.loop(count) as i:
        block.store(marks, tirx.IntImm("int8", 1), position(i))
    found = block.cell(idx(0), "found")
    with block.loop(words) as i, block.when(tirx.NE(load(eight, i), idx(0))), block.loop(8) as j:
        at = block.let(tirx.Add(tirx.Mul(i, idx(8)), j))
        with block.when(tirx.NE(load(marks, at), tirx.IntImm("int8", 0))):
            block.store(out, at, load(found, 0))
            block.store(places, load(found, 0), at)
            block.store(found, tirx.Add(load(found, 0), idx(1)), 0)
    with block.loop(count) as i:
        block.store(out, load(places, position(i)), tirx.Add(idx(room), i))
    block.store(out, load(found, 0), idx(room + count))
    lowering.emit_kernel(kernel, [node])
    lowering.scope.env[node] = target


RULES = {"map_rows": _map_rows, "distinct": _distinct}

__all__ = ["RULES"]
