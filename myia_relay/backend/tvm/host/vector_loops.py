"""Vectorised loops: counted loops of the main function that run in vector lanes.

    for i in range(a, n):                          for i in range(a, n - 7, 8):
        s = s + x[i] * y[i + k]           =>           s8 = s8 + x[i : i + 8] * y[i + k : i + k + 8]
        z[i] = z[i] - x[i]                             z[i : i + 8] = z[i : i + 8] - x[i : i + 8]
                                                   the rest, one by one; s = s + sum(s8)

This is legal if no iteration reads what another one wrote: arrays are accessed at positions that advance with the
index, and an array that is written is read at the same position only. Sums that users wrote keep their order, and are
computed by the original loop. Sums of adjoints are summed in lanes (and in several accumulators, to hide latency). The
direction of a loop is kept, because memory is prefetched in one direction. Every operation is one on all lanes, and
rounds as it does on a number.

Input: a `for_loop` whose operations are all on numbers and cannot fail, with indices that range analysis has shown to
be in bounds. Output: statements.

Source: R. Allen and K. Kennedy, "Automatic translation of FORTRAN programs to vector form" (TOPLAS 1987).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from tvm import tirx

from ....abstract.types import INT, Array
from ....ir.node import Apply, Constant, Graph, Node, applied
from ....ir.prim import updates_one
from ....opt.analysis.control import output_parts
from ....opt.analysis.fusion import is_scalar
from ....utils.switches import is_left_out
from ..kernels import nontemporal
from ..kernels.kernel import apply_rule
from ..kernels.nests import lanes_for
from ..tir.block import broadcast, const, dtype_of, idx, lanes_of, load, ramp

FLOATS = ("float64", "float32")
OPERATIONS = frozenset(
    "add sub mul neg abs div sqrt minimum maximum where lt le gt ge eq ne logical_not logical_and logical_or".split()
)
"""What is computed in lanes: it rounds there as it does on numbers."""
ACCUMULATORS = 4
UNROLLED = 2  # vectors in an iteration without sums
SHORT = 2  # loops of fewer vectors than this stay as they are


@dataclass
class VectorLoop:
    """A loop that can run in lanes.

    Attributes:
        body: its body.
        step: 1 or -1.
        dtype: of all floats in it.
        rates: integers that go on with the index -> by how much, for each index.
        same: what is the same in all iterations, in order.
        lanes: what differs between the iterations, in order.
        stores: carried arrays -> the store into each.
        sums: carried sums -> the terms added in an iteration, each with whether it is taken away.
    """

    body: Graph
    step: int
    dtype: str = ""
    rates: dict[Node, int] = field(default_factory=dict)
    same: list[Apply] = field(default_factory=list)
    lanes: list[Apply] = field(default_factory=list)
    stores: dict[int, Apply] = field(default_factory=dict)
    sums: dict[int, list[tuple[Node, bool]]] = field(default_factory=dict)


# --- finding them -----------------------------------------------------------------------------------------------------


def find(lowering: Any, node: Apply, most: int | None) -> VectorLoop | None:
    """The loop in lanes, if it can run so, and gains.

    Args:
        lowering: the walk.
        node: a `for_loop`.
        most: how often it runs at most, if that is known.
    """
    body: Graph = node.attrs["body"]
    outs, step = output_parts(body), node.args[2]
    if is_left_out("vector_loops"):
        return None
    if outs is None or not outs or not isinstance(step, Constant) or step.value not in (1, -1):
        return None
    if any(applied(n) not in (*OPERATIONS, "dynamic_index", "make_struct") and not updates_one(n) for n in body.nodes):
        return None
    found = VectorLoop(body, int(step.value))
    users: dict[Node, list[Apply]] = {}
    for n in body.nodes:
        for arg in n.args:
            users.setdefault(arg, []).append(n)
    carried: dict[Node, int] = dict(zip(body.params[1 : 1 + len(outs)], range(len(outs)), strict=True))
    added: set[Node] = set()  # applications that sum up
    for param, k in carried.items():
        if outs[k] in carried or users.get(outs[k]) != [body.output]:
            return None
        if isinstance(param.type, Array) and not is_scalar(param.type):
            out = outs[k]
            if not _is_store(out, param, users):
                return None
            found.stores[k] = out
        elif not _is_sum(found, k, outs[k], param, users, added):
            return None
    found.rates[body.params[0]] = 1
    for n in body.nodes:
        if n is body.output or n in found.stores.values() or n in added:
            continue
        if not _place(lowering, found, n, carried):
            return None
    for store in found.stores.values():
        if not _is_element(lowering, found, store) or found.rates.get(store.args[2]) != 1:
            return None
        if any(n is not store and n.args[1] is not store.args[2] for n in users[store.args[0]]):
            return None
    if not any(applied(n) == "dynamic_index" for n in found.lanes):
        return None
    operands = [n.args if applied(n) != "dynamic_index" else (n,) for n in found.lanes]
    operands += [(n.args[1],) for n in found.stores.values()] + [
        (term,) for terms in found.sums.values() for term, _ in terms
    ]
    floats = {a.type.dtype for args in operands for a in args} - {"bool"}
    if len(floats) != 1 or not floats <= set(FLOATS):
        return None
    found.dtype = floats.pop()
    width = lanes_for(found.dtype)
    return found if width > 1 and (most is None or most >= SHORT * width) else None


def _is_store(node: Node, param: Node, users: Mapping[Node, list[Apply]]) -> TypeGuard[Apply]:
    """Whether an array is written at one place in an iteration, and otherwise only read."""
    if (
        not isinstance(node, Apply)
        or not updates_one(node)
        or node.args[0] is not param
        or node.args.count(param) != 1
        or not is_scalar(node.args[1].type)
    ):
        return False
    return all(n is node or applied(n) == "dynamic_index" and n.args[0] is param for n in users[param])


def _is_sum(
    found: VectorLoop, k: int, node: Node, param: Node, users: Mapping[Node, list[Apply]], added: set[Node]
) -> bool:
    """Whether a number is a sum of an adjoint, which may be summed in any order."""
    terms: list[tuple[Node, bool]] = []
    while node is not param:
        if not _sums_up(node, users) or node.type.dtype not in FLOATS:
            return False
        added.add(node)
        x, y = node.args
        if applied(node) == "add" and not _leads_to(x, param, users):
            x, y = y, x
        terms.append((y, applied(node) == "sub"))
        node = x
    found.sums[k] = terms
    return len(users[param]) == 1 and not any(_leads_to(term, param, users) for term, _ in terms)


def _leads_to(node: Node, param: Node, users: Mapping[Node, list[Apply]]) -> bool:
    """Whether a chain of sums begins at a parameter."""
    stack = [node]
    while stack:
        top = stack.pop()
        if top is param:
            return True
        if _sums_up(top, users):
            stack += top.args
    return False


def _sums_up(node: Node, users: Mapping[Node, list[Apply]]) -> TypeGuard[Apply]:
    """Whether an application is a part of an adjoint's sum, and of nothing else."""
    return applied(node) in ("add", "sub") and node.origin.via == "vjp" and len(users[node]) == 1


def _place(lowering: Any, found: VectorLoop, node: Apply, carried: Mapping[Node, int]) -> bool:
    """Find out what an application is from iteration to iteration; whether it can be computed in lanes."""
    name, rates = applied(node), found.rates
    if not is_scalar(node.type):
        return False
    varying = [a for a in node.args if a in rates and rates[a] or a in found.lanes or a in carried]
    if not varying:
        found.same.append(node)
        return name != "dynamic_index" or _is_element(lowering, found, node)
    if node.type == INT:
        rate = _rate(node, rates) if not any(a in found.lanes or a in carried for a in node.args) else None
        if rate is not None:
            rates[node] = rate
        return rate is not None
    found.lanes.append(node)
    if name == "dynamic_index":
        return _is_element(lowering, found, node) and rates.get(node.args[1]) == 1
    return not any(a in carried or a in rates for a in node.args) and (
        node.type.dtype in FLOATS or node.type.dtype == "bool"
    )


def _rate(node: Apply, rates: Mapping[Node, int]) -> int | None:
    """By how much an integer grows where the index grows by one; None where that is no constant."""
    name = applied(node)
    if name == "neg":
        return -rates.get(node.args[0], 0)
    if name not in ("add", "sub", "mul"):
        return None
    x, y = (rates.get(a, 0) for a in node.args)
    if name == "mul":
        a, b = node.args
        return x * int(b.value) if isinstance(b, Constant) else y * int(a.value) if isinstance(a, Constant) else None
    return x + y if name == "add" else x - y


def _is_element(lowering: Any, found: VectorLoop, node: Apply) -> bool:
    """Whether a read or write is of a number in an array, at a position that is known to be in it."""
    array, at = node.args[0], node.args[-1]
    if not isinstance(array.type, Array) or len(array.type.shape) != 1 or array not in found.body.params:
        return False
    interval, size = lowering.ranges.interval(at), array.type.shape[0]
    return interval is not None and isinstance(size, int) and 0 <= interval[0] and interval[1] < size


# --- emission ---------------------------------------------------------------------------------------------------------


def emit(lowering: Any, found: VectorLoop, values: list[Any], cells: list[Any], first: Any, count: Any) -> None:
    """The iterations of a loop, in lanes.

    Args:
        lowering: the walk.
        found: the loop.
        values: of the parameters of its body behind the index.
        cells: places of the carried values.
        first: index of the first iteration.
        count: how many iterations.
    """
    count = lowering.b.let(idx(count))
    with lowering.block.when(tirx.GT(count, idx(0))):
        _Emission(lowering, found, values, cells, first, count).run()


class _Emission:
    def __init__(self, lowering: Any, found: VectorLoop, values: list[Any], cells: list[Any], first: Any, count: Any):
        from ..kernels.kernel import MainSite

        self.lowering, self.found, self.cells, self.count = lowering, found, cells, count
        self.block, self.b = lowering.block, lowering.b
        lowering.plan.tick()
        site, body = MainSite(lowering), found.body
        self.buffers: dict[Node, Any] = {}
        self.streamed: Apply | None = None  # a non-temporal store
        # Values that are the same in all iterations; positions, in the iteration with the least index
        self.outside: dict[Node, Any] = {}
        for param, value in zip(body.params[1:], values, strict=True):
            if isinstance(param.type, Array) and not is_scalar(param.type):
                self.buffers[param] = site.buffer(value)
            else:
                self.outside[param] = value
        last = self.b.sub(count, idx(1))
        self.outside[body.params[0]] = self.b.let(first if found.step == 1 else self.b.sub(first, last))
        for node in body.nodes:
            if node in found.rates or node in found.same:
                self.outside[node] = self.b.let(self.computed(node, self.outside, idx(0), 1))
        views = dict(zip(body.params[1:], values, strict=True))
        read = {node.args[0] for node in body.nodes if applied(node) == "dynamic_index"}
        for store in found.stores.values():
            array, at = store.args[0], store.args[2]
            if (
                applied(store) != "index_add"
                and array not in read
                and found.rates.get(at) == 1
                and nontemporal.pays(views[array])
            ):
                self.streamed = store

    def value(self, node: Node, env: Mapping[Node, Any]) -> Any:
        if isinstance(node, Constant):
            return self.lowering.scalar(node)
        return env[node] if node in env else self.outside[node]

    def computed(self, node: Apply, env: Mapping[Node, Any], offset: Any, width: int) -> Any:
        """The values of an application in turns from `offset` on."""
        if applied(node) == "dynamic_index":
            return load(self.buffers[node.args[0]], self.position(node.args[1], offset, width))
        return apply_rule(self.b, node, [self.value(a, env) for a in node.args])

    def position(self, at: Node, offset: Any, width: int) -> Any:
        """A position in turns from `offset` on."""
        base = self.b.cast(self.value(at, self.outside), "int64")
        return ramp(tirx.Add(base, offset), width) if self.found.rates.get(at) else base

    def run(self) -> None:
        """Vectors, several at once; vectors; the rest."""
        width = lanes_for(self.found.dtype)
        several = ACCUMULATORS if self.found.sums else UNROLLED
        block, zero = self.block, const(0.0, self.found.dtype)
        wide = [{k: block.cell(broadcast(zero, width), "acc") for k in self.found.sums} for _ in range(several)]
        narrow = {k: block.cell(zero, "acc") for k in self.found.sums}
        done: Any = idx(0)
        if self.streamed is not None:
            done = block.let(tirx.Min(self.count, self.until_vectors(width)))
            self.part(idx(0), done, [narrow], 1)
        for accumulators, lanes in ((wide, width), (wide[:1], width), ([narrow], 1)):
            size = len(accumulators) * lanes
            left = tirx.Sub(self.count, done)
            iterations = block.let(tirx.Div(left, idx(size)) if size > 1 else left)
            self.part(done, iterations, accumulators, lanes)
            done = block.let(tirx.Add(done, tirx.Mul(iterations, idx(size))))
        for k in self.found.sums:
            total = self.b.add(self.together([sums[k] for sums in wide]), load(narrow[k], 0))
            block.store(self.cells[k], self.b.add(load(self.cells[k], 0), total), 0)

    def part(self, done: Any, iterations: Any, accumulators: list[dict[int, Any]], lanes: int) -> None:
        """So many iterations in vectors of so many lanes: in each, one vector for each of the accumulators.

        Args:
            done: how many iterations of the loop as it was come before.
        """
        size = len(accumulators) * lanes
        with self.block.loop(iterations) as i:
            for k, sums in enumerate(accumulators):
                at = tirx.Add(done, tirx.Add(tirx.Mul(i, idx(size)), idx(k * lanes)))
                if self.found.step < 0:
                    at = tirx.Sub(tirx.Sub(self.count, idx(lanes)), at)
                self.iteration(self.block.let(at), lanes, sums)

    def iteration(self, offset: Any, width: int, sums: Mapping[int, Any]) -> None:
        """Iterations from `offset` on."""
        found, block, b = self.found, self.block, self.b
        env: dict[Node, Any] = {}
        for node in found.lanes:
            env[node] = block.let(self.computed(node, env, offset, width))
        for k, acc in sums.items():
            for term, minus in found.sums[k]:
                block.store(acc, (b.sub if minus else b.add)(load(acc, 0), self.value(term, env)), 0)
        for store in found.stores.values():
            place, buffer = self.position(store.args[2], offset, width), self.buffers[store.args[0]]
            value = self.value(store.args[1], env)
            if applied(store) == "index_add":
                value = b.add(load(buffer, place), value)
            value = value if lanes_of(dtype_of(value)) == width else broadcast(value, width)
            if store is self.streamed and width > 1:
                nontemporal.store(block, buffer, value, place.base)
            else:
                block.store(buffer, value, place)

    def until_vectors(self, lanes: int) -> Any:
        """How many iterations there are before one whose vector may be stored past the caches."""
        assert self.streamed is not None
        array, _, at = self.streamed.args
        before = idx(0) if self.found.step > 0 else self.count
        place = tirx.Add(self.b.cast(self.value(at, self.outside), "int64"), before)
        return nontemporal.until_placed(self.block, self.buffers[array], place, lanes, self.found.step)

    def together(self, accumulators: list[Any]) -> Any:
        """The sum of all lanes of all accumulators."""
        vectors = [load(acc, 0) for acc in accumulators]
        while len(vectors) > 1:
            vectors = [self.block.let(self.b.add(x, y)) for x, y in zip(vectors[::2], vectors[1::2], strict=True)]
        return self.block.folded(vectors[0], self.b.add)


__all__ = ["VectorLoop", "emit", "find"]
