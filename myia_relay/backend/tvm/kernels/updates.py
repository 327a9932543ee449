"""A matrix's gradient step in the same pass as its transposed product: the backward step of a linear layer for one sample.

    dx = transpose(w) @ g   ...   w' = w - lr * outer(g, x)

Both read all of w, which for large layers is most of the memory traffic of a step. If an update of a matrix follows its
last transposed product, and nothing in between can observe the difference, the update moves up and each row is read
once: its contribution to dx is added, and the new row is written. The update may be any fused elementwise expression.

Input: a scope (graph and fusion). Output: `find`: product -> `Update`; `emit`: the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ....ir.node import Apply, Graph, Node, applied
from ....ir.prim import Primitive
from ..plan import ITEM, View
from ..tir.block import idx, load, ramp
from ..tir.indexing import AxisGroup, Index
from .kernel import Kernel
from .nests import Nest, inlined, lanes_for

VECTORS = 8  # columns per pass over the rows, in vectors: as many sums stay in registers
LEAST = 4096  # elements from which a separate kernel pays


@dataclass
class Update:
    """An update that moves up to a product.

    Attributes:
        write: the `ref_write`.
        cone: what must be computed for it, in program order.
    """

    write: Apply
    cone: list[Apply]


def find(scope: Any) -> dict[Apply, Update]:
    """The transposed products of a scope whose matrix is updated afterwards in a way that can be done with them."""
    nodes = scope.graph.nodes
    writes = [n for n in nodes if applied(n) == "ref_write"]
    if not writes:
        return {}
    out: dict[Apply, Update] = {}
    products = [
        n for n in nodes if applied(n) == "matvec" and n.attrs["transpose"] and applied(n.args[0]) == "ref_read"
    ]
    for product in products:
        update = _update_of(scope, product, writes)
        if update is not None:
            out[product] = update
    return out


def _key(node: Apply) -> tuple:
    return (node.attrs["index"], node.args[0].type)


def _update_of(scope: Any, product: Apply, writes: list[Apply]) -> Update | None:
    read, position = product.args[0], scope.position
    rows, cols = read.type.shape
    if not (isinstance(rows, int) and isinstance(cols, int)) or rows * cols < LEAST:
        return None
    here = [w for w in writes if _key(w) == _key(read) and w.args[0] is read.args[0]]
    if len([w for w in writes if _key(w) == _key(read)]) != 1 or not here or position[here[0]] < position[product]:
        return None
    write = here[0]
    if scope.fusion.role.get(write.args[1]) != "inline" or scope.fusion.users[write.args[1]] != [write]:
        return None
    cone = _cone(scope, write, product)
    if cone is None:
        return None
    # Nothing in between may leave the program or read the matrix.
    members = {*cone, write}
    for node in scope.graph.nodes[position[product] + 1 : position[write]]:
        if not isinstance(node.fn, Primitive) or node.fn.kind == "control" or node.fn.effect in ("raise", "io"):
            return None
    for node in scope.graph.nodes:
        if applied(node) == "ref_read" and _key(node) == _key(read) and node not in members:
            for user in scope.fusion.users.get(node, ()):
                if isinstance(user, Graph) or (user not in members and _last(scope, user) > position[product]):
                    return None
    return Update(write, cone)


def _last(scope: Any, node: Apply) -> int:
    """The position from which a value that is read by `node` is certainly not read any more."""
    if scope.fusion.role.get(node) in ("inline", "view", "root") or node.fn.kind == "struct":
        return len(scope.position)  # computed later than its position, or passed on
    return scope.position[node]


def _cone(scope: Any, write: Apply, product: Apply) -> list[Apply] | None:
    """What the update needs that stands behind the product, if all of it can be computed before."""
    start = scope.position[product]
    seen: set[Apply] = set()
    stack: list[Node] = [write.args[1]]
    while stack:
        node = stack.pop()
        if not isinstance(node, Apply) or node in seen or scope.position[node] < start:
            continue
        free = applied(node) == "ref_read" and _key(node) == _key(product.args[0])
        if node is product or not (
            free or (isinstance(node.fn, Primitive) and node.fn.kind in ("elementwise", "injective"))
        ):
            return None
        seen.add(node)
        stack.extend(node.args)
    return sorted(seen, key=scope.position.__getitem__)


def emit(lowering: Any, product: Apply, update: Update) -> bool:
    """Emit product and update; False if the update reads other elements of the matrix than it writes."""
    scope = lowering.scope
    for node in update.cone:
        lowering.node(node)
        scope.done.add(node)
    matrix, g = product.args
    value = update.write.args[1]
    place: View = lowering.value(update.write.args[0]).views[update.write.attrs["index"]]
    leaves = lowering.leaves([value])
    if any(lowering.view(leaf).storage is place.storage and not same for leaf, same in leaves.items()):
        return False
    for storage in {lowering.view(n).storage for n in (*leaves, g)}:
        lowering.flush_writers(storage)
    lowering.flush_users(place.storage)
    target = lowering.allocate(product)
    _Kernel(lowering, product, value, place, target).build()
    scope.env[product] = target
    scope.env[update.write] = None
    scope.done.add(update.write)
    return True


class _Kernel:
    """The kernel: blocks of columns, and for each all rows."""

    def __init__(self, lowering: Any, product: Apply, value: Node, place: View, target: View):
        self.lowering = lowering
        self.kernel = Kernel(lowering, "matvec_update")
        self.nest = Nest(self.kernel)
        self.nest.evaluator.pinned = {value: None}
        self.block = self.kernel.block
        self.product, self.value, self.place, self.target = product, value, place, target
        self.rows, self.cols = product.args[0].type.shape
        self.dtype = product.type.dtype

    def build(self) -> None:
        """Emit it, over ranges of rows in parallel where that pays: ranges of columns would share cache lines."""
        from .opaque import PARALLEL_BYTES, threads_count

        tasks = threads_count() if self.rows * self.cols * ITEM[self.dtype] >= PARALLEL_BYTES else 1
        out = self.kernel.buffer(self.target, write=True)
        self.matrix = self.kernel.buffer(self.place, write=True)
        if tasks == 1:
            self.rows_of(idx(0), idx(self.rows), out, idx(0))
        else:
            storage = self.lowering.storage("arena", tasks * self.cols * ITEM[self.dtype], "partial")
            partial = self.kernel.buffer(View(storage, self.dtype, (tasks, self.cols)), write=True)
            size = -(-self.rows // tasks)
            with self.block.loop(tasks, "parallel", "task") as task:
                first = self.block.let(tirx.Mul(task, idx(size)))
                rest = self.block.let(tirx.Sub(idx(self.rows), first))
                count = self.block.let(tirx.Select(tirx.LT(rest, idx(size)), rest, idx(size)))
                self.rows_of(first, count, partial, tirx.Mul(task, idx(self.cols)))

            def add(first: Any, width: int) -> None:
                total = load(partial, ramp(first, width))
                for t in range(1, tasks):
                    total = tirx.Add(total, load(partial, ramp(tirx.Add(first, idx(t * self.cols)), width)))
                self.block.store(out, total, ramp(first, width))

            self.nest.vectors(self.cols, lanes_for(self.dtype), add, False)
        value = [self.value] if isinstance(self.value, Apply) else []
        self.lowering.emit_kernel(self.kernel, [self.product, *inlined(value, self.lowering.is_inline)])

    def rows_of(self, first: Any, count: Any, out: Any, base: Any) -> None:
        """A range of rows: `out[base ...]` = their share of the product."""
        widest = lanes_for(self.dtype)
        spans = [(start, widest) for start in range(0, self.cols - self.cols % widest, widest)]
        spans += [(start, 1) for start in range(self.cols - self.cols % widest, self.cols)]
        whole = [s for s in spans if s[1] > 1]
        groups = [whole[k : k + VECTORS] for k in range(0, len(whole), VECTORS)]
        full = [g for g in groups if len(g) == VECTORS]
        if len(full) > 1:
            step = VECTORS * widest
            with self.block.loop(len(full), name="c") as c:
                self.columns(tirx.Mul(c, idx(step)), full[0], first, count, out, base)
        elif full:
            self.columns(idx(0), full[0], first, count, out, base)
        rest = [s for g in groups if len(g) < VECTORS for s in g] + spans[len(whole) :]
        for k in range(0, len(rest), 2 * VECTORS):
            self.columns(idx(0), rest[k : k + 2 * VECTORS], first, count, out, base)

    def columns(self, shift: Any, spans: list, first: Any, count: Any, out: Any, base: Any) -> None:
        """Some columns of all rows."""
        block, evaluator = self.block, self.nest.evaluator
        zero = self.nest.b.const(0, self.dtype)
        sums = [block.cell(self.nest.widened(zero, width), "dx") for _, width in spans]
        with block.loop(count, name="r") as r:
            row = block.let(tirx.Add(first, r))
            factor = evaluator.value(self.product.args[1], Index((self.rows,), [AxisGroup(0, 1, row)]))
            for (start, width), total in zip(spans, sums):
                column = tirx.Add(shift, idx(start))
                index = Index((self.rows, self.cols), [AxisGroup(0, 1, row), AxisGroup(1, 2, ramp(column, width))])
                at = ramp(tirx.Add(tirx.Mul(row, idx(self.cols)), column), width)
                old = block.let(load(self.matrix, at))
                new = block.let(self.nest.widened(evaluator.value(self.value, index), width))
                share = tirx.Mul(old, self.nest.widened(factor, width))
                block.store(total, tirx.Add(load(total, 0), share), 0)
                block.store(self.matrix, new, at)
        for (start, width), total in zip(spans, sums):
            block.store(out, load(total, 0), ramp(tirx.Add(base, tirx.Add(shift, idx(start))), width))


__all__ = ["Update", "emit", "find"]
