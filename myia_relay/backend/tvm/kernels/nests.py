"""Loop nests: elementwise kernels with several results, and reductions.

Idea: neighbouring axes that all accesses treat alike are merged into one loop. The innermost loop runs over vectors,
with a shorter vector for the rest (a scalar loop where sizes are symbolic). The outermost loop runs on all cores if the
work is worth a launch (`threads`). Short rows are one vector of any length: LLVM splits it into registers, whose chains
of operations then run side by side, and loads and stores only what is there. Reductions over the innermost axis keep
several vector accumulators; those over outer axes run vectors along the inner axis.

Input: nodes and their targets in memory, in a `Kernel`. Output: its body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from ....abstract.dims import DimLike, product
from ....abstract.types import Array
from ....ir.axes import is_pointwise
from ....ir.node import Apply, Node
from ....opt.analysis.fusion import cost, is_scalar
from ..plan import ITEM, View
from ..tir import pipeline, threads
from ..tir.block import broadcast, dtype_of, idx, lanes_of, load, ramp, shuffle
from ..tir.expr import is_half
from ..tir.indexing import AxisGroup, Index, address
from . import nontemporal
from .kernel import Evaluator, Kernel

PARALLEL_WORK = 60_000  # the work, in vector operations, from which two threads are faster than one
LONG = 4  # vectors of a row that may be stored non-temporally
ACCUMULATORS = 4
CHAIN = 16
"""How many numbers an accumulator of a long float sum adds up before it goes to a wider one."""
HALF_WORDS = ("threefry2x32",)
"""What is computed in 32 bits though its result has 64: a kernel takes as many elements at once as fill a vector there."""


def lanes_for(dtype: str) -> int:
    """How many elements of a dtype the loops take at once."""
    return pipeline.vector_bytes() // max(ITEM[dtype], 2)


def inlined(roots: list[Apply], is_inline: Callable[[Node], bool]) -> list[Apply]:
    """The applications that a kernel of these roots computes: the roots and what is fused into them."""
    seen: dict[Apply, None] = dict.fromkeys(roots)
    stack = list(roots)
    while stack:
        for arg in stack.pop().args:
            if arg not in seen and isinstance(arg, Apply) and is_inline(arg):
                seen[arg] = None
                stack.append(arg)
    return list(seen)


def cuts(shape: tuple[DimLike, ...], nodes: list[Apply]) -> set[int]:
    """The boundaries between axes (k: before axis k) over which the loops of a kernel cannot be one."""
    everything = set(range(1, len(shape)))
    out: set[int] = set()
    reshaped = False
    for node in nodes:
        if node.fn.kind == "reduce":
            continue
        if node.fn.name == "reshape":
            reshaped |= node.args[0].type.shape != node.type.shape
            continue
        if not is_pointwise(node.fn.axes):
            return everything
        for operand in (node, *node.args):
            if isinstance(operand.type, Array) and not is_scalar(operand.type):
                out |= _broadcast_cuts(shape, operand.type.shape)
    # A reshape inside costs nothing only if the kernel is one flat loop.
    return everything if reshaped and out else out


def _broadcast_cuts(shape, operand) -> set[int]:
    lead = len(shape) - len(operand)
    if lead < 0:
        return set(range(1, len(shape)))
    full: list[bool | None] = []
    for axis, size in enumerate(shape):
        if size == 1:
            full.append(None)  # an axis of one element can be merged with either side
        else:
            full.append(axis >= lead and operand[axis - lead] != 1)
    out, last = set(), None
    for axis, kind in enumerate(full):
        if kind is None:
            continue
        if last is not None and kind != last:
            out.add(axis)
        last = kind
    return out


def grouped(shape: tuple[DimLike, ...], boundaries: set[int]) -> list[tuple[int, int]]:
    """The axes between boundaries, as (start, stop)."""
    stops = [*sorted(boundaries), len(shape)]
    return list(zip([0, *stops[:-1]], stops))


class Nest:
    """Builds the loops of one kernel."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.block = kernel.block
        self.evaluator = Evaluator(kernel)
        self.b = self.evaluator.b
        self.parallel_used = False

    # --- loops ------------------------------------------------------------------------------------------------------

    def on_threads(self, shape: tuple[DimLike, ...], nodes: list[Apply], emit: Callable[[bool], None]) -> None:
        """Emit the loops of a kernel: `emit(parallel)`, by its rough cost, in elements times operations. Where only a run tells,
        they are there twice, for a run to choose from: a loop may have thousands of launches for a few numbers each."""
        size, each = product(shape), 2 + sum(cost(n) for n in nodes) // 2
        if isinstance(size, int) or threads.count() == 1:
            emit(isinstance(size, int) and size * each >= PARALLEL_WORK)
            return
        with self.block.when(tirx.GE(idx(self.b.dim(size)), idx(-(-PARALLEL_WORK // each)))):
            emit(True)
        self.parallel_used = False
        self.evaluator.fresh()
        with self.block.otherwise():
            emit(False)

    def loops(self, extents: list[DimLike], body: Callable[[list[Any]], None], parallel: bool) -> None:
        """Nested loops over extents; loops of one iteration are none. The first real one may be parallel."""
        if not extents:
            body([])
            return
        if extents[0] == 1:
            self.loops(extents[1:], lambda rest: body([idx(0), *rest]), parallel)
            return
        kind = "parallel" if parallel and not self.parallel_used else "serial"
        self.parallel_used |= kind == "parallel"
        with self.block.loop(self.b.dim(extents[0]), kind) as i:
            self.loops(extents[1:], lambda rest: body([i, *rest]), False)

    def vectors(
        self, extent: DimLike, lanes: int, body: Callable[[Any, int], None], parallel: bool, ahead: Any = None
    ) -> None:
        """A loop over vectors, and one over the rest; `body(first element, lanes)`.

        Args:
            ahead: so many elements come before the first vector.
        """
        kind = "parallel" if parallel and not self.parallel_used else "serial"
        start: Any = idx(0)
        if ahead is not None:
            start = ahead
            with self.block.loop(ahead) as i:
                body(i, 1)
        elif isinstance(extent, int):
            if extent == 0:
                return
            if extent == 1 or (lanes > 1 and extent <= 2 * lanes):
                body(idx(0), extent)  # a short row is one vector, whatever its length: LLVM makes registers of it
                return
            whole, rest = divmod(extent, lanes)
            with self.block.loop(whole, kind) as i:
                body(tirx.Mul(i, idx(lanes)), lanes)
            if rest:
                body(idx(whole * lanes), rest)
            return
        size = self.block.let(self.b.dim(extent))
        whole = self.block.let(tirx.Div(tirx.Sub(size, start), idx(lanes)))
        with self.block.loop(whole, kind) as i:
            body(self.block.let(tirx.Add(start, tirx.Mul(i, idx(lanes)))), lanes)
        done = self.block.let(tirx.Add(start, tirx.Mul(whole, idx(lanes))))
        with self.block.loop(tirx.Sub(size, done)) as i:
            body(tirx.Add(i, done), 1)

    # --- elementwise ------------------------------------------------------------------------------------------------

    def elementwise(self, shape: tuple[DimLike, ...], outputs: list[tuple[Apply, list[View]]], is_inline) -> None:
        """Compute nodes of one shape, each into its targets, element by element.

        Every element of every output is computed before any is stored, so targets may be operands read at the same index.

        Raises:
            ValueError: the shape has no axes.
        """
        if 0 in shape:
            return
        roots = [node for node, _ in outputs]
        if len(roots) == 1 and is_joined_by_parts(roots[0]):
            self.joined(roots[0], outputs[0][1], is_inline)
            return
        self.evaluator.pinned = dict.fromkeys(roots)
        nodes = inlined(roots, is_inline)
        axes = grouped(shape, cuts(shape, nodes))
        extents = [product(shape[a:z]) for a, z in axes]
        lanes = min(lanes_for(node.type.dtype) for node in roots)
        if any(node.fn.name in HALF_WORDS for node in nodes):
            lanes = max(lanes, lanes_for("uint32"))
        buffers = [[(self.kernel.buffer(v, write=True), v) for v in views] for _, views in outputs]
        streamed = self.streamed(extents, lanes, nodes, buffers, is_inline) if axes else None

        def indexed(outer: list[Any], last: Any) -> Index:
            return Index(shape, [AxisGroup(a, z, i) for (a, z), i in zip(axes, [*outer, last])])

        def element(outer: list[Any], first: Any, width: int) -> None:
            index = indexed(outer, ramp(first, width))
            values = [self.b.let(self.widened(self.evaluator.value(node, index), width)) for node in roots]
            where = address(index, self.b.dim)
            for value, targets in zip(values, buffers):
                for buffer, _ in targets:
                    if buffer is streamed and width == lanes:
                        nontemporal.store(self.block, buffer, value, where.base)
                    else:
                        self.block.store(buffer, value, ramp(where.base, width))

        if not axes:
            raise ValueError("a scalar has no loop nest")

        def emit(parallel: bool) -> None:
            def rows(outer: list[Any]) -> None:
                ahead = None
                if streamed is not None:
                    begin = address(indexed(outer, idx(0)), self.b.dim).base
                    ahead = nontemporal.until_placed(self.block, streamed, begin, lanes)
                self.vectors(extents[-1], lanes, lambda i, w: element(outer, i, w), parallel, ahead)

            self.loops(extents[:-1], rows, parallel)

        self.on_threads(shape, nodes, emit)

    def joined(self, node: Apply, targets: list[View], is_inline) -> None:
        """A concatenation, one part after the other: in loops over the whole each element would choose its part."""
        begin, buffers = 0, [self.kernel.buffer(v, write=True) for v in targets]
        for part in node.args:
            nodes = inlined([part], is_inline) if isinstance(part, Apply) and is_inline(part) else []
            if 0 not in part.type.shape:  # type: ignore[union-attr]
                self.part(node, part, begin, buffers, nodes)
            begin = begin + part.type.shape[node.attrs["axis"]]  # type: ignore[union-attr]

    def part(self, whole: Apply, part: Node, begin: DimLike, buffers: list[Any], nodes: list[Apply]) -> None:
        """One part of a concatenation.

        Args:
            whole, part: both.
            begin: where on the axis it begins.
            buffers: where the whole goes.
            nodes: what is computed for the part.
        """
        axis, size, lanes = whole.attrs["axis"], whole.type.shape, lanes_for(whole.type.dtype)
        shape: tuple[DimLike, ...] = part.type.shape  # type: ignore[union-attr]
        behind, several = product(size[axis + 1 :]), product(size[:axis]) != 1
        axes = grouped(shape, cuts(shape, nodes) | ({axis} if several else set()))
        extents = [product(shape[a:z]) for a, z in axes]
        self.evaluator.fresh()
        self.parallel_used = False

        def element(outer: list[Any], first: Any, width: int) -> None:
            groups = [AxisGroup(a, z, i) for (a, z), i in zip(axes, [*outer, ramp(first, width)])]
            index = Index(shape, groups)
            value = self.b.let(self.widened(self.evaluator.value(part, index), width))
            place = tirx.Add(address(index, self.b.dim).base, idx(self.b.dim(begin * behind)))
            if several:
                row = address(Index(shape[:axis], [g for g in groups if g.stop <= axis]), self.b.dim).base
                others = idx(
                    self.b.dim((size[axis] - shape[axis]) * behind)
                )  # from its end in one row to its begin in the next
                place = tirx.Add(place, tirx.Mul(row, others))
            for buffer in buffers:
                self.block.store(buffer, value, ramp(place, width))

        def emit(parallel: bool) -> None:
            def rows(outer: list[Any]) -> None:
                self.vectors(extents[-1], lanes, lambda i, w: element(outer, i, w), parallel)

            self.loops(extents[:-1], rows, parallel)

        self.on_threads(shape, nodes, emit)

    def streamed(self, extents, lanes, nodes, buffers, is_inline) -> Any:
        """A result that is written past the caches: large, in long rows, and not changed in place."""
        if not isinstance(extents[-1], int) or extents[-1] < LONG * lanes or lanes == 1:
            return None
        view = self.kernel.lowering.view
        arrays = {a for node in nodes for a in node.args if isinstance(a.type, Array) and not is_scalar(a.type)}
        read = {view(a).storage for a in arrays.difference(self.evaluator.pinned) if not is_inline(a)}
        for buffer, target in (pair for targets in buffers for pair in targets):
            if nontemporal.pays(target) and target.storage not in read:
                return buffer
        return None

    def widened(self, value: Any, width: int) -> Any:
        """A value that is the same in all lanes, as a vector."""
        return value if lanes_of(dtype_of(value)) == width else broadcast(value, width)

    # --- reductions -------------------------------------------------------------------------------------------------

    def reduction(self, node: Apply, target: View, is_inline) -> None:
        """Reduce a fused expression over the axes of `node` into `target`."""
        source = node.args[0]
        shape, reduced = source.type.shape, set(node.attrs["axes"])
        nodes = inlined([node], is_inline)
        boundaries = cuts(shape, [n for n in nodes if n is not node])
        last = None
        for axis, size in enumerate(shape):
            if size != 1:
                if last is not None and (axis in reduced) != last:
                    boundaries.add(axis)
                last = axis in reduced
        axes = grouped(shape, boundaries)
        extents = [product(shape[a:z]) for a, z in axes]
        over = [any(k in reduced and shape[k] != 1 for k in range(a, z)) for a, z in axes]
        dtype = node.type.dtype
        self.b.dtype = "float32" if is_half(dtype) else dtype
        init, combine = node.fn.lower_rule(self.b)
        if dtype == "bool":
            # Vectors of bits cannot be accessed lane by lane in memory: accumulate bytes.
            of_bools, init, self.b.dtype = combine, tirx.Cast("int8", init), "int8"

            def combine(x, y):
                return self.b.cast(of_bools(self.b.cast(x, "bool"), self.b.cast(y, "bool")), "int8")

        out = self.kernel.buffer(target, write=True)
        # In another order some products are inf * 0, which do not occur in NumPy's order: that is more than a rounding
        # error.
        in_order = node.fn.name == "reduce_prod" and node.type.is_float
        adds = node.fn.name == "reduce_sum" and node.type.is_float

        def emit(parallel: bool) -> None:
            plan = _Reduction(self, source, shape, axes, extents, over, init, combine, out, dtype, parallel, in_order)
            plan.adds = adds
            if over[-1] or len(axes) == 1:
                plan.along_rows()
            else:
                plan.along_columns()

        self.on_threads(shape, nodes, emit)


def is_joined_by_parts(node: Apply) -> bool:
    """Whether a concatenation is a loop over each part: where its pieces of consecutive memory are long in the mean, or one."""
    if node.fn.name != "concatenate":
        return False
    axis, whole = node.attrs["axis"], node.type.shape
    piece = product(whole[axis:])
    long = isinstance(piece, int) and piece >= 2 * lanes_for(node.type.dtype) * len(node.args)
    return long or product(whole[:axis]) == 1


class _Reduction:
    """The loops of one reduction; see `Nest.reduction`."""

    def __init__(self, nest, source, shape, axes, extents, over, init, combine, out, dtype, parallel, in_order):
        self.nest, self.block, self.b = nest, nest.block, nest.b
        self.source, self.shape, self.axes, self.extents, self.over = source, shape, axes, extents, over
        self.init, self.combine, self.out, self.dtype, self.parallel = init, combine, out, dtype, parallel
        self.accumulator = nest.b.dtype
        self.kept = [e for e, o in zip(extents, over) if not o]
        self.in_order = in_order  # whether elements are combined one after the other
        self.adds = False  # whether it is a sum of floats

    def is_long(self, extent: DimLike, each: int) -> bool:
        """Whether accumulators of `each` numbers go to wider ones on the way along an axis."""
        return self.adds and (not isinstance(extent, int) or extent >= 2 * CHAIN * each)

    def wider(self, value: Any) -> Any:
        """A value in the format of the wider accumulators."""
        return self.b.cast(value, "float64") if self.accumulator != "float64" else value

    def wide_cells(self, lanes: int) -> tuple[Any, Any]:
        """A wider accumulator, and what has been lost in it, for sums of float64, of which no wider format keeps the rest."""
        zero = self.nest.widened(self.b.const(0, "float64"), lanes)
        lost = self.block.cell(zero, "lost") if self.accumulator == "float64" else None
        return self.block.cell(zero, "wide"), lost

    def move(self, value: Any, wide: Any, lost: Any) -> None:
        """Add to a wider accumulator (W. Kahan, "Further remarks on reducing truncation errors", 1965)."""
        block, b = self.block, self.b
        if lost is None:
            block.store(wide, self.combine(load(wide, 0), self.wider(value)), 0)
            return
        before, added = block.let(load(wide, 0)), block.let(b.sub(value, load(lost, 0)))
        after = block.let(b.add(before, added))
        rest = block.let(b.sub(b.sub(after, before), added))
        nothing = self.nest.widened(b.const(0, "float64"), lanes_of(dtype_of(rest)))
        block.store(lost, b.select(b.eq(b.sub(rest, rest), nothing), rest, nothing), 0)  # not that of infinities
        block.store(wide, after, 0)

    def value(self, kept: list[Any], gone: list[Any]) -> Any:
        """The element to combine, at indices of kept and reduced groups."""
        if 0 in self.shape:
            return self.init  # nothing is read from an empty array, by whose sizes no index can be divided
        kept, gone = list(kept), list(gone)
        at = [(gone if o else kept).pop(0) for o in self.over]
        index = Index(self.shape, [AxisGroup(a, z, i) for (a, z), i in zip(self.axes, at)])
        value = self.nest.evaluator.value(self.source, index)
        return self.b.cast(value, self.accumulator) if self.accumulator != self.dtype else value

    def position(self, kept: list[Any]) -> Any:
        """Where the result of kept indices lies."""
        total = idx(0)
        for k, i in enumerate(kept):
            inner = product(self.kept[k + 1 :])
            total = total + (i if inner == 1 else i * self.b.dim(inner))
        return total

    def store(self, value: Any, at: Any, width: int = 1) -> None:
        if self.accumulator != self.dtype:
            value = self.b.cast(value, self.dtype)
        self.block.store(self.out, self.nest.widened(value, width), ramp(at, width))

    def along_rows(self) -> None:
        """The innermost axis goes: vector accumulators along it, combined at the end."""
        self.nest.loops(self.kept, self.row, self.parallel and self.kept != [] and product(self.kept) != 1)

    def row(self, kept: list[Any]) -> None:
        gone = [e for e, o in zip(self.extents, self.over) if o]
        block, dtype = self.block, self.accumulator
        single = block.cell(self.init, "acc")
        if not gone:
            self.store(self.combine(load(single, 0), self.value(kept, [])), self.position(kept))
            return
        extent, lanes = gone[-1], 1 if self.in_order else lanes_for(dtype)
        if isinstance(extent, int):
            while lanes > 1 and lanes > extent:
                lanes //= 2
        count = ACCUMULATORS if not isinstance(extent, int) or extent >= 4 * ACCUMULATORS * lanes else 1
        wide = lost = None
        if lanes > 1:
            vectors = [block.cell(broadcast(self.init, lanes), "acc") for _ in range(count)]
            rows = len(gone) > 1 and (not isinstance(extent, int) or extent >= 2 * CHAIN)
            if self.is_long(extent, count * lanes) or rows and self.is_long(product(gone), count * lanes):
                wide, lost = self.wide_cells(lanes)

        def add(outer, first, width, into) -> None:
            value = self.nest.widened(self.value(kept, [*outer, ramp(first, width)]), width)
            block.store(into, self.combine(load(into, 0), value), 0)

        def total() -> Any:
            """The sum of all vectors."""
            out = load(vectors[0], 0)
            for v in vectors[1:]:
                out = block.let(self.combine(out, load(v, 0)))
            return out

        def flush() -> None:
            """Move the sum to the wider accumulator."""
            self.move(total(), wide, lost)
            for v in vectors:
                block.store(v, broadcast(self.init, lanes), 0)

        def along(outer, begin, iterations, step: int) -> None:
            """So many iterations of `step` vectors each."""
            with block.loop(iterations) as i:
                for k in range(step):
                    at = tirx.Add(begin, tirx.Add(tirx.Mul(i, idx(step * lanes)), idx(k * lanes)))
                    add(outer, at, lanes, vectors[k])

        def in_chains(outer, begin, iterations, step: int) -> Any:
            """As many of them as are whole chains; returns where the rest begins."""
            chains = iterations // CHAIN if isinstance(iterations, int) else block.let(tirx.Div(iterations, idx(CHAIN)))
            length = CHAIN * step * lanes
            with block.loop(chains) as j:
                along(outer, block.let(tirx.Add(begin, tirx.Mul(j, idx(length)))), CHAIN, step)
                flush()
            return block.let(tirx.Add(begin, tirx.Mul(idx(chains), idx(length))))

        def run(outer: list[Any]) -> None:
            if lanes == 1:
                with block.loop(self.b.dim(extent)) as i:
                    add(outer, i, 1, single)
                return
            done = 0 if isinstance(extent, int) else idx(0)
            size = extent if isinstance(extent, int) else block.let(self.b.dim(extent))
            for step in sorted({count, 1}, reverse=True):
                width = step * lanes
                if isinstance(size, int):
                    iterations = (size - done) // width
                else:
                    iterations = block.let(tirx.Div(tirx.Sub(size, idx(done)), idx(width)))
                if not isinstance(iterations, int) or iterations:
                    begin, left = idx(done) if isinstance(done, int) else done, iterations
                    if wide is not None and step == count and self.is_long(extent, count * lanes):
                        begin = in_chains(outer, begin, iterations, step)
                        known = isinstance(iterations, int)
                        left = iterations % CHAIN if known else block.let(tirx.FloorMod(idx(iterations), idx(CHAIN)))
                    along(outer, begin, left, step)
                if isinstance(size, int):
                    done += iterations * width
                else:
                    done = block.let(tirx.Add(idx(done), tirx.Mul(idx(iterations), idx(width))))
            if not isinstance(size, int):
                with block.loop(tirx.Sub(size, idx(done))) as i:
                    add(outer, tirx.Add(i, idx(done)), 1, single)
            elif size - done == 1:
                add(outer, idx(done), 1, single)
            elif size > done:
                rest = self.nest.widened(self.value(kept, [*outer, ramp(done, size - done)]), size - done)
                filled = shuffle([rest, broadcast(self.init, lanes)], range(lanes))
                block.store(vectors[-1], self.combine(load(vectors[-1], 0), filled), 0)
            if wide is not None and len(gone) > 1:
                flush()

        self.nest.loops(gone[:-1], run, False)
        if lanes > 1:
            whole = total() if wide is None else block.let(self.combine(load(wide, 0), self.wider(total())))
            folded = block.folded(whole, self.combine)
            folded = folded if wide is None or dtype == "float64" else self.b.cast(folded, dtype)
            block.store(single, self.combine(load(single, 0), folded), 0)
        self.store(load(single, 0), self.position(kept))

    def along_columns(self) -> None:
        """The innermost axis stays: vectors along it, each accumulating over what goes."""
        gone = [e for e, o in zip(self.extents, self.over) if o]
        lanes = lanes_for(self.accumulator)
        parallel = self.parallel

        def column(outer: list[Any], first: Any, width: int) -> None:
            block = self.block
            acc = block.cell(self.nest.widened(self.init, width), "acc")
            kept = [*outer, ramp(first, width)]

            def iteration(inner: list[Any]) -> None:
                block.store(acc, self.combine(load(acc, 0), self.nest.widened(self.value(kept, inner), width)), 0)

            if not gone or not self.is_long(gone[-1], 1):
                self.nest.loops(gone, iteration, False)
                self.store(load(acc, 0), self.position([*outer, first]), width)
                return
            (wide, lost), size = self.wide_cells(width), self.b.dim(gone[-1])

            def flush() -> None:
                self.move(load(acc, 0), wide, lost)
                block.store(acc, self.nest.widened(self.init, width), 0)

            def in_chains(inner: list[Any]) -> None:
                chains = block.let(tirx.Div(size, idx(CHAIN)))
                with block.loop(chains) as j:
                    with block.loop(CHAIN) as i:
                        iteration([*inner, block.let(tirx.Add(tirx.Mul(j, idx(CHAIN)), i))])
                    flush()
                with block.loop(block.let(tirx.FloorMod(size, idx(CHAIN)))) as i:
                    iteration([*inner, block.let(tirx.Add(tirx.Mul(chains, idx(CHAIN)), i))])
                flush()

            self.nest.loops(gone[:-1], in_chains, False)
            out = load(wide, 0) if lost is not None else self.b.cast(load(wide, 0), self.accumulator)
            self.store(out, self.position([*outer, first]), width)

        def inner(outer: list[Any]) -> None:
            self.nest.vectors(self.kept[-1], lanes, lambda i, w: column(outer, i, w), parallel)

        self.nest.loops(self.kept[:-1], inner, parallel)
