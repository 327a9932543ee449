"""Structure-of-arrays kernels: arrays of many short rows, computed row by row, all operations at once.

    x = points[which] - cameras[seen, 3:6]            for r in range(n):             in the lanes of vectors
    y = np.sum(x * x, axis=1)                 =>          x0, x1, x2 = points[which[r], 0] - cameras[seen[r], 3], ...
    z = x / y[:, None]                                    y = x0 * x0 + x1 * x1 + x2 * x2
                                                          z[r, 0], z[r, 1], z[r, 2] = x0 / y, x1 / y, x2 / y

`vmap` of functions of a few numbers makes such arrays, and geometry is full of them: their last axes have two, three or
eleven positions, too few for vectors, and computing them takes dozens of passes over memory. A kernel here computes
eight rows in vector lanes and keeps everything between in registers. Every entry of a row is a value of its own, so
entries that the seed of a Jacobian has made zero are not computed.

A kernel grows in program order by what `row_axes` finds. It ends at a value that leaves it and comes back through
something else, and at an effect that needs one of its values. Kernels that would not pay are dropped.

Input: an optimised graph. Output: the same, with applications of `map_rows`; for the native executor only. Source:
structure-of-arrays code by lanes as in ispc (M. Pharr, W. Mark, "ispc: a SPMD compiler for high-performance CPU
programming", 2012).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ...abstract.dims import product
from ...abstract.types import Array, Struct
from ...ir.axes import is_pointwise
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applied
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Effects, Rewriter, all_graphs, drop_dead, emit_like, lookup, same_interface
from ..analysis.fusion import cost
from ..analysis.row_axes import RowValues, is_part, reduced
from ..rewrite.control import pack, take
from ..rewrite.simplify import holds_tape
from .row_gathers import Gatherer
from .soa_values import INT, RowScope, ScalarFrame

LEAST = 32  # rows
SHORT = 4  # lengths of a last axis that fill vectors badly
PAYS = 6  # applications to rows with such an axis
MOST = 2500  # operations per row at most: LLVM takes seconds for them
WORTH = ((300, 0), (700, 2.5), (math.inf, 5))
"""Which kernels pay: LLVM compiles small ones quickly, and larger ones must compute more for what they read and write.

Each entry limits the operations and the numbers in memory of a row together, and says how many operations there must be per number.
"""
LANES = 8  # of a vector, at least


@dataclass(frozen=True)
class SoaKernels:
    """The pass."""

    name: str = "soa_kernels"

    def __call__(self, graph: Graph) -> Graph:
        return _Kernels().rewrite(graph) if any(candidates(g) for g in all_graphs(graph)) else graph


@dataclass(eq=False)
class SoaKernel:
    """What is computed row by row in one place.

    Attributes:
        rows: of the graph, for the kernel's extent.
        members: the applications, in program order.
        closed: whether no more may come.
    """

    rows: RowValues
    members: list[Apply] = field(default_factory=list)
    closed: bool = False

    def pays(self) -> bool:
        """Whether the kernel pays, and is not too large."""
        short = size = 0
        simple = True  # each application is computed once for a row
        for rows, node in _work(self.rows, self.members):
            simple = simple and node not in rows.loops and node not in rows.through
            if node in rows.place:
                shape, place = reduced(node.type.shape, rows.place[node]), rows.place[node]
                size += math.prod(shape) * (1 + cost(node) // 4)  # functions are many operations
                if place.axis < len(shape) - 1 and shape[-1] <= SHORT and not _fills_vectors(node, place.axis):
                    short += 3 if applied(node) == "take" else 1  # gathering numbers one by one dominates the cost
            elif isinstance(node.type, Array):
                size += 1
        if short < PAYS or size > MOST:
            return False
        traffic = self.traffic()
        return not simple or any(size + traffic <= most and size >= least * traffic for most, least in WORTH)

    def traffic(self) -> int:
        """How many numbers of a row are in memory: what the kernel reads, and what others read of it."""
        own, rows = set(self.members), self.rows
        moved = {a: rows.where(a) for m in self.members for a in m.args if a not in own}
        moved |= {m: rows.where(m) for m in own if any(u not in own for u in rows.users.get(m, (None,)))}
        return sum(math.prod(reduced(node.type.shape, place)) for node, place in moved.items() if place is not None)


def _fills_vectors(node: Apply, axis: int) -> bool:
    """Whether a loop nest processes the axes after that of the rows in whole vectors.

    It makes one loop of neighbouring axes along all of which an operand is read, or along all of which it is repeated.
    """
    if not is_pointwise(node.fn.axes):
        return False
    shape, joined = node.type.shape, 1
    alike: list[bool | None] = [None] * len(node.args)
    for k in range(1, len(shape) - axis):
        size = shape[-k]
        if size == 1:
            continue
        for j, a in enumerate(node.args):
            other = a.type.shape if isinstance(a.type, Array) else ()
            read = len(other) >= k and other[-k] == size
            if alike[j] not in (None, read):
                return joined % LANES == 0
            alike[j] = read
        joined *= size
    return joined % LANES == 0


def _work(rows: RowValues, members: Iterable[Apply]) -> Iterator[tuple[RowValues, Apply]]:
    """The applications of a kernel, including those of the rows that it gathers from, and of the bodies of loops."""
    seen: set[Node] = set()
    stack: list[tuple[RowValues, Apply, bool]] = [(rows, m, False) for m in members]
    while stack:
        rows, node, picked = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield rows, node
        if node in rows.loops:
            stack += [(rows.loops[node], inner, False) for inner in rows.loops[node].graph.nodes]
        if node in rows.through:
            stack.append((rows.through[node], node.args[0], True))
        if picked:
            stack += [(rows, a, True) for a in node.args if a in rows.place or a in rows.loops]


class Grouping:
    """The kernels of a graph.

    Args:
        graph: a typed graph.
        effects: what its applications do.
        counts: extents of which only so many rows are wanted, the first.

    Attributes:
        kernel: application -> the kernel that computes it.
    """

    def __init__(self, graph: Graph, effects: Effects, counts: Mapping[int, Node] = MappingProxyType({})):
        self.graph, self.effects, self.counts = graph, effects, counts
        self.kernel: dict[Node, SoaKernel] = {}
        extents = candidates(graph) | counts.keys()
        self.rows: dict[int, RowValues] = {}
        for n in sorted(extents, reverse=True):
            self.rows[n] = RowValues(graph, n, {size: rows for size, rows in self.rows.items() if size not in counts})
        if self.rows:
            self.group()

    def group(self) -> None:
        """Put applications into kernels, in program order."""
        open_: dict[int, SoaKernel] = {}
        needs: dict[SoaKernel, set[SoaKernel]] = {}
        behind: dict[Node, frozenset[SoaKernel]] = {}  # the kernels that a value outside of them depends on

        def closure(kernels: Iterable[SoaKernel]) -> set[SoaKernel]:
            found: set[SoaKernel] = set()
            stack = list(kernels)
            while stack:
                k = stack.pop()
                if k not in found:
                    found.add(k)
                    stack += needs[k]
            return found

        for node in self.graph.nodes:
            taint: set[SoaKernel] = set()
            direct: set[SoaKernel] = set()
            for a in node.args:
                if a in self.kernel:
                    direct.add(self.kernel[a])
                else:
                    taint |= behind.get(a, frozenset())
            rows = self.home(node)
            if rows is None:
                behind[node] = frozenset(taint | direct)
                if not self.movable(node):
                    # After a write, earlier reads may give something else: nothing can wait.
                    for k in open_.values() if self.writes(node) else closure(behind[node]):
                        k.closed = True
                continue
            k = open_.get(rows.n)
            others = taint | (direct - {k})
            if k is None or k.closed or k in closure(others):
                k = open_[rows.n] = SoaKernel(rows)
                needs[k] = set()
                others = taint | direct
            k.members.append(node)
            needs[k] |= others
            self.kernel[node] = k
        for k in dict.fromkeys(self.kernel.values()):
            if not k.pays():
                for m in k.members:
                    del self.kernel[m]

    def home(self, node: Apply) -> RowValues | None:
        """The rows that an application belongs to; None if it is left as it is."""
        for rows in self.rows.values():
            if node in rows.loops:
                return rows if all(applied(u) == "get_item" for u in rows.users.get(node, ())) else None
            if node in rows.place and not self.is_part(node, rows):
                return rows
        return None

    def is_part(self, node: Node, rows: RowValues) -> bool:
        """Whether an application is a part of an array in memory, of which every kernel takes its own part."""
        while isinstance(node, Apply):
            if node not in rows.place:
                return True
            if not is_part(node) or len(node.args) != 1:  # at one position or another
                return False
            node = node.args[0]
        return True

    def movable(self, node: Apply) -> bool:
        """Whether an application may be emitted later, when it is needed."""
        return not self.effects.of_node(node) and not any(
            holds_tape(t) for t in (node.type, *(a.type for a in node.args))
        )

    def writes(self, node: Apply) -> bool:
        """Whether an application changes what others read."""
        return "write" in self.effects.of_node(node)

    def outputs(self, kernel: SoaKernel) -> list[Apply]:
        """The members whose values leave the kernel."""
        out = []
        for m in kernel.members:
            if m in kernel.rows.place and (
                m is self.graph.output
                or any(
                    self.kernel.get(u) is not kernel and not self.absorbs(u, m) for u in kernel.rows.users.get(m, ())
                )
            ):
                out.append(m)
        return out

    def absorbs(self, user: Apply, member: Node) -> bool:
        """Whether `take` computes the rows that it gathers."""
        k = self.kernel.get(user)
        return k is not None and user in k.rows.through and user.args[0] is member

    def only_picked(self, member: Apply, kernel: SoaKernel) -> bool:
        """Whether the only users of a result in several blocks of rows are kernels that gather rows of it.

        These then read whole rows, if the numbers of a row are contiguous.
        """
        place, rows = kernel.rows.place[member], kernel.rows
        users = rows.users.get(member, [])
        if member is self.graph.output or (place.pre, place.post) != (1, 1) or place.axis == 0:
            return False
        return all(
            self.kernel.get(u) not in (None, kernel)
            and applied(u) == "take"
            and u.args[0] is member
            and u.args[1] is not member
            and u.attrs["axis"] == place.axis
            and u not in self.kernel[u].rows.through
            for u in users
        )


def candidates(graph: Graph) -> set[int]:
    """Extents of which there are enough arrays with short rows."""
    many: Counter[int] = Counter()
    for node in graph.nodes:
        if isinstance(node.type, Array) and len(node.type.shape) > 1:
            many.update({d for d in node.type.shape if isinstance(d, int) and d >= LEAST})
        if isinstance(node.fn, Primitive) and node.fn.name == "for_loop":
            for p in node.attrs["body"].nodes:
                if isinstance(p.type, Array) and len(p.type.shape) > 1:
                    many.update({d for d in p.type.shape if isinstance(d, int) and d >= LEAST})
    return {n for n, count in many.items() if count >= PAYS // 2}


def with_parts(graph: Graph) -> Graph:
    """The graph in which the parts of a carried value are assembled, if it returns all that a loop carries: kernels
    return arrays.
    """
    if applied(graph.output) != "for_loop" or not isinstance(graph.output.type, Struct):
        return graph
    new, env = same_interface(graph)
    b = Builder(new)
    for node in graph.nodes:
        env[node] = emit_like(b, node, tuple(lookup(env, a) for a in node.args))
    loop = env[graph.output]
    new.output = pack(b, [take(b, loop, (k,)) for k in range(len(loop.type.elems))])
    return new


class _Kernels(Rewriter):
    def __init__(self):
        super().__init__()
        self.effects = Effects()

    def build(self, graph: Graph) -> Graph:
        old, graph = graph, with_parts(graph)
        grouping = Grouping(graph, self.effects)
        picker = Gatherer(graph, grouping.rows, grouping.movable)
        picked = picker.run()
        if picked is not graph:
            graph, grouping = picked, Grouping(picked, self.effects, picker.counts)
        if not grouping.kernel:
            return super().build(old)
        self.changed = True
        return _Rebuild(self, graph, grouping).run()


class _Rebuild:
    """Emits a graph with its kernels; what depends on a kernel that does not exist yet waits until it is needed."""

    def __init__(self, rewriter: _Kernels, graph: Graph, grouping: Grouping):
        self.rewriter, self.graph, self.grouping = rewriter, graph, grouping
        self.new, self.env = rewriter.interface(graph)
        self.b = Builder(self.new)
        self.done: set[SoaKernel] = set()
        self.waiting: list[Apply] = []
        self.together: set[Node] = set()  # results that are stored row by row, whatever their shapes

    def laid_out(self, node: Apply, rows: RowValues) -> tuple[Array, tuple[int, int]]:
        """The array in which a result lies, and its `widths`."""
        outer, width = widths(rows, node)
        if node not in self.together:
            return node.type, (outer, width)
        return Array(node.type.dtype, (rows.n, outer * width)), (1, outer * width)

    def run(self) -> Graph:
        kernel = self.grouping.kernel
        for node in self.graph.nodes:
            k = kernel.get(node)
            if k is not None:
                if node is k.members[-1]:
                    self.emit(k)
            elif all(a in self.env or isinstance(a, Constant) for a in node.args) or not self.grouping.movable(node):
                if self.grouping.writes(node):
                    self.need(reversed(self.waiting))
                    self.waiting.clear()
                self.need([node])
            else:
                self.waiting.append(node)
        self.need([self.graph.output])
        self.new.output = lookup(self.env, self.graph.output)
        drop_dead(self.new, self.rewriter.effects)
        return self.new

    def need(self, nodes: Iterable[Node]) -> None:
        """Emit nodes, and what they are computed from, unless that has been done.

        Raises:
            AssertionError: a node does not leave the kernel that computes it.
        """
        stack = list(nodes)
        while stack:
            node = stack[-1]
            if node in self.env or not isinstance(node, Apply):
                stack.pop()
                continue
            k = self.grouping.kernel.get(node)
            if k is not None:
                self.emit(k)
                if node not in self.env:
                    raise AssertionError(f"{node!r} does not leave its kernel")
                continue
            missing = [a for a in node.args if a not in self.env and isinstance(a, Apply)]
            if missing:
                stack += missing
                continue
            args = tuple(lookup(self.env, a) for a in node.args)
            self.b.origin = node.origin
            self.env[node] = self.rewriter.node(self.b, node, args, self.rewriter.inner(node))

    def emit(self, kernel: SoaKernel) -> None:
        """Emit a kernel."""
        if kernel in self.done:
            return
        self.done.add(kernel)
        outputs = self.grouping.outputs(kernel)
        if not outputs:
            return
        body, operands = self.body(kernel, outputs)
        self.need(operands)
        self.together.update(m for m in outputs if self.grouping.only_picked(m, kernel))
        laid = [self.laid_out(m, kernel.rows) for m in outputs]
        attrs = {
            "body": body,
            "rows": kernel.rows.n,
            "types": tuple(t for t, _ in laid),
            "widths": tuple(w for _, w in laid),
        }
        count = self.grouping.counts.get(kernel.rows.n)
        if count is not None:
            self.need([count])
            attrs["counted"], operands = True, [count, *operands]
        self.b.origin = kernel.members[-1].origin
        result = self.b.emit(REGISTRY["map_rows"], tuple(lookup(self.env, a) for a in operands), attrs)
        for k, m in enumerate(outputs):
            self.env[m] = take(self.b, result, (k,))

    def body(self, kernel: SoaKernel, outputs: list[Apply]) -> tuple[Graph, list[Node]]:
        """The graph of one row, and the nodes that its parameters after the first stand for."""
        graph = Graph(f"{self.graph.name}.rows", None, kernel.members[0].origin)
        row = graph.add_parameter("row", INT)
        params: dict[Node, Parameter] = {}

        def operand(node: Node) -> Parameter:
            if node not in params:
                t = node.type
                flat = Array(t.dtype, (product(t.shape),)) if isinstance(t, Array) else t
                params[node] = graph.add_parameter(node.name or f"a{len(params)}", flat)
            return params[node]

        frame = ScalarFrame(graph, None, self.rewriter.effects)
        frame.bounds[row] = (0, kernel.rows.n - 1)
        grouping, rows = self.grouping, kernel.rows

        def inside(node: Node) -> bool:
            if node in rows.place or node in rows.loops:
                return grouping.kernel.get(node) is kernel or (
                    node not in grouping.kernel and grouping.is_part(node, rows)
                )
            return False

        scope = RowScope(rows, row, frame, inside, operand, self.together)
        numbers = [n for m in outputs for n in scope.numbers(scope.value(m)).reshape(-1)]
        graph.output = pack(frame.b, [frame.bring(n) for n in numbers])
        drop_dead(graph, self.rewriter.effects)
        used = {a for node in graph.nodes for a in node.args} | {graph.output}
        kept = {node: p for node, p in params.items() if p in used}
        graph.params = [row, *kept.values()]
        return graph, list(kept)


def widths(rows: RowValues, node: Apply) -> tuple[int, int]:
    """How many blocks of rows an array has, and how many numbers a row of a block."""
    shape, place = node.type.shape, rows.place[node]
    return math.prod(shape[: place.axis]) * place.pre, place.post * math.prod(shape[place.axis + 1 :])


__all__ = ["SoaKernels"]
