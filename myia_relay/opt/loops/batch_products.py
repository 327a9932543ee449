"""Products with a matrix that a loop does not change become one of all iterations, where what is multiplied is known before.

    for i in range(n):  h = f(h, W @ xs[i])       =>  P = xs @ W.T
                                                      for i in range(n):  h = f(h, P[i])

    for i in range(n):  h1 = g(h1)                =>  for i in range(n):  h1 = g(h1); V[i] = h1
                        h2 = f(h2, W @ h1)            P = V @ W.T
                                                      for i in range(n):  h2 = f(h2, P[i])

A matrix that is larger than the caches is then read once, not in every iteration, and the product is one that a BLAS likes. The
second form distributes the loop: what the operand depends on becomes a loop of its own, before. It is what a layer of an LSTM does
with the inputs of all its steps, found in a loop over time around all layers. Differentiated, the sum of outer products that is
the gradient of W is one product too.

The terms of a product are summed up in the order of the kernel that computes it, here of another one.

Input: a closed typed graph. Output: the same, loops distributed. Source: K. Kennedy and K. McKinley, "Loop distribution with
arbitrary control flow" (SC 1990), without control flow; J. Appleyard, T. Kocisky, P. Blunsom, "Optimizing performance of recurrent
neural networks on GPUs" (2016), section 3, for the products.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...abstract.types import Array, Scalar, numpy_dtype
from ...ir.build import Builder, as_type
from ...ir.node import Apply, Constant, Graph, Node, applied, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Effects, Env, Rewriter, emit_like, lookup
from ...prims.ops.linalg import dot
from ...prims.rules.broadcast import broadcast_to, reshape
from ..analysis.control import output_parts
from ..rewrite.control import pack
from ..rewrite.simplify import holds_tape
from .invariants import movable
from .preallocate_tapes import iteration_number, load_entry, store_entry

LEAST_MATRIX = 4096  # elements: smaller ones stay in the first caches, and products with them are written out
MOST_ROWS = 64  # of what is multiplied in an iteration: with more, a product is a good one as it is
LEAST_ITERATIONS = 4
MOST_BYTES = 1 << 28  # of what is kept of all iterations
MOST_NODES = 2000  # of a body, once the functions that it calls are written out


@dataclass(frozen=True)
class BatchProducts:
    """The pass."""

    name: str = "batch_products"

    def __call__(self, graph: Graph) -> Graph:
        return _Batch().rewrite(graph)


class _Batch(Rewriter):
    acts_on = ("for_loop",)
    mark = BatchProducts

    def __init__(self):
        super().__init__()
        self.effects = Effects()

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) == "for_loop" and not self.incomplete(attrs["body"]) and has_products(attrs["body"]):
            body = written_out(attrs["body"])
            found = None if body is None else self.loop(builder, node, args, body)
            if found is not None:
                self.changed = True
                builder.origin = node.origin
                return pack(builder, found)
        return super().node(builder, node, args, attrs)

    def loop(self, b: Builder, node: Apply, args: tuple[Node, ...], body: Graph) -> list[Node] | None:
        """The carried values after a loop that is distributed, once or more often; None where it stays whole.

        Args:
            b: builder of the graph around it.
            node: the loop that it was.
            args: its bounds, carried values and constants.
            body: of the loop.
        """
        if not all(isinstance(a, Constant) for a in args[:3]) or not int(args[2].value):  # type: ignore[attr-defined]
            return None
        span = range(*(int(a.value) for a in args[:3]))  # type: ignore[attr-defined]
        if len(span) < LEAST_ITERATIONS:
            return None
        plan = plan_split(body, len(args) - 3, span, self.effects)
        return None if plan is None else self.split(b, node, args, plan)

    def split(self, b: Builder, node: Apply, args: tuple[Node, ...], plan: Distribution) -> list[Node]:
        """Emit the loop before, the products, and the loop behind."""
        b.origin = node.origin
        first, old = plan.carried, plan.body
        outside: Env = dict(zip(old.params[1 + first :], args[3 + first :]))
        for inner in old.nodes:
            if inner in plan.fixed:
                outside[inner] = emit_like(b, inner, tuple(lookup(outside, a) for a in inner.args))
        # The loop before: its own carried values, and what is kept of each iteration.
        stacks: dict[Node, Node] = {}
        results: dict[int, Node] = {}
        kept = [x for x in plan.kept if not self.whole(b, outside, plan, x, stacks)]
        if kept or plan.before:
            empty = [zeros(b, len(plan.span), x.type) for x in kept]
            body, carried, constants = sliced(plan, plan.before, kept, {}, outside)
            start = [args[3 + k] for k in plan.before] + empty
            parts = self.emitted(b, node, (*args[:3], *start, *constants), body, carried)
            results |= dict(zip(plan.before, parts))
            stacks |= dict(zip(kept, parts[len(plan.before) :]))
        # The products of all iterations.
        b.origin = node.origin
        given: dict[Node, Node] = {}
        for product in plan.products:
            b.origin = product.origin
            given[product] = batched(b, product, stacks[plan.operand(product)], lookup(outside, plan.matrix(product)))
        given |= {x: stacks[x] for x in plan.kept if x in plan.exported}
        # The loop behind.
        behind = [k for k in range(plan.carried) if k not in plan.before]
        body, carried, constants = sliced(plan, behind, [], given, outside)
        parts = self.emitted(b, node, (*args[:3], *(args[3 + k] for k in behind), *constants), body, carried)
        results |= dict(zip(behind, parts))
        return [results[k] for k in range(plan.carried)]

    def whole(self, b: Builder, outside: Env, plan: Distribution, x: Node, stacks: dict[Node, Node]) -> bool:
        """Whether what is kept of all iterations is an array that there is: the rows that the loop goes over."""
        if not applies(x, "dynamic_index") or x.attrs["axis"] != 0 or x.args[1] is not plan.body.params[0]:
            return False
        rows = x.args[0]
        if plan.uses.get(rows, 0) or rows.type.shape[0] != len(plan.span) or plan.span != range(len(plan.span)):
            return False
        if lookup_or_none(outside, rows) is None:
            return False
        stacks[x] = lookup(outside, rows)
        return True

    def emitted(self, b: Builder, node: Apply, args: tuple[Node, ...], body: Graph, carried: int) -> list[Node]:
        """The carried values after a loop, which may be distributed further."""
        again = self.loop(b, node, args, body)
        if again is not None:
            return again
        b.origin = node.origin
        made = b.emit(node.fn, args, {**node.attrs, "body": body, "carried": carried})  # type: ignore[arg-type]
        made.name = node.name
        return [b.emit(REGISTRY["get_item"], (made,), {"index": k}) for k in range(carried)]


def lookup_or_none(env: Env, node: Node) -> Node | None:
    """What `node` has become, if anything."""
    return node if isinstance(node, Constant) else env.get(node)


def has_products(graph: Graph) -> bool:
    """Whether a graph, or a function that it calls, has products; recursive functions are not looked into."""
    stack, seen = [graph], {graph}
    while stack:
        for node in stack.pop().nodes:
            if applied(node) in ("dot", "matvec"):
                return True
            if isinstance(node.fn, Graph) and node.fn not in seen and "effects" not in node.fn.flags:
                seen.add(node.fn)
                stack.append(node.fn)
    return False


def written_out(body: Graph) -> Graph | None:
    """A body with the functions that have products written out at their calls; None where it would be too large."""
    new = Graph(body.name, None, body.origin)
    new.flags = dict(body.flags)
    b = Builder(new)

    def copy(graph: Graph, env: Env) -> Node | None:
        for node in graph.nodes:
            args = tuple(lookup(env, a) for a in node.args)
            if isinstance(node.fn, Graph) and "effects" not in node.fn.flags and has_products(node.fn):
                value = copy(node.fn, dict(zip(node.fn.params, args, strict=True)))
                if value is None:
                    return None
                env[node] = value
            else:
                env[node] = emit_like(b, node, args)
            if len(new.nodes) > MOST_NODES:
                return None
        return lookup(env, graph.output)

    output = copy(body, {p: new.add_parameter(p.name, p.type, p.origin) for p in body.params})
    new.output = output
    return None if output is None or output_parts(new) is None else new


# --- what can be distributed ------------------------------------------------------------------------------------------


@dataclass
class Distribution:
    """How a loop is distributed.

    Attributes:
        body: of the loop.
        carried: how many values it carries.
        span: its iterations.
        before: the carried values that the loop before computes.
        products: those that are computed for all iterations at once.
        kept: the values that are kept of each iteration: operands of the products, and `exported`.
        exported: what else the loop behind uses of the loop before.
        fixed: what does not change from iteration to iteration and is needed outside.
        uses: of each value the carried ones, as bits, and the index, on which it depends within an iteration.
        roots: what has effects, and stays in the loop behind.
    """

    body: Graph
    carried: int
    span: range
    uses: dict[Node, int]
    before: list[int] = field(default_factory=list)
    products: list[Apply] = field(default_factory=list)
    kept: list[Node] = field(default_factory=list)
    exported: set[Node] = field(default_factory=set)
    fixed: set[Apply] = field(default_factory=set)
    roots: list[Apply] = field(default_factory=list)

    def operand(self, product: Apply) -> Node:
        """What is multiplied, other in every iteration."""
        return product.args[applied(product) == "matvec"]

    def matrix(self, product: Apply) -> Node:
        """With which it is multiplied."""
        return product.args[applied(product) == "dot"]

    def in_reach(self, bits: int, reach: list[int]) -> int:
        """All carried values that what depends on some of them needs, over the iterations."""
        found = 0
        for k in range(self.carried):
            if bits >> k & 1:
                found |= reach[k]
        return found


def plan_split(body: Graph, operands: int, span: range, effects: Effects) -> Distribution | None:
    """The products of a loop that depend on the fewest of its carried values, and how to compute them before the rest."""
    outs = output_parts(body)
    assert outs is not None
    plan = Distribution(body, len(outs), span, _dependences(body, len(outs)))
    uses = plan.uses
    plan.roots = [n for n in body.nodes if effects.of_node(n) or not effects.ends(n)]
    live = needed(body, [*outs, *plan.roots])
    reach = _reach(plan, outs)
    groups: dict[int, list[Apply]] = {}
    for node in body.nodes:
        if node in live and _may_move(plan, node, effects):
            groups.setdefault(plan.in_reach(uses[plan.operand(node)], reach), []).append(node)
    for bits in sorted(groups, key=lambda bits: (bits.bit_count(), bits)):
        if _complete(plan, bits, groups[bits], outs, reach, effects):
            return plan
    return None


def _dependences(body: Graph, carried: int) -> dict[Node, int]:
    uses: dict[Node, int] = {body.params[0]: 1 << carried}
    uses |= {p: 1 << k for k, p in enumerate(body.params[1 : 1 + carried])}
    uses |= dict.fromkeys(body.params[1 + carried :], 0)
    for node in body.nodes:
        bits = 0
        for arg in node.args:
            bits |= uses.get(arg, 0)
        uses[node] = bits
    return uses


def _reach(plan: Distribution, outs: list[Node]) -> list[int]:
    """For each carried value all that it depends on, over the iterations, itself among them."""
    reach = [1 << k | plan.uses.get(out, 0) & ~(1 << plan.carried) for k, out in enumerate(outs)]
    while True:
        again = [plan.in_reach(bits, reach) for bits in reach]
        if again == reach:
            return reach
        reach = again


def _may_move(plan: Distribution, node: Apply, effects: Effects) -> bool:
    """Whether a product is one with a matrix that does not change, and worth it."""
    name = applied(node)
    if name not in ("dot", "matvec") or (name == "dot" and node.attrs["transpose_a"]):
        return False
    operand, matrix = plan.operand(node), plan.matrix(node)
    if plan.uses.get(matrix, 0) or not plan.uses.get(operand, 0):
        return False
    shapes = [t.shape for t in (matrix.type, operand.type, node.type)]
    if node.type.dtype not in ("float32", "float64") or not all(isinstance(d, int) for s in shapes for d in s):
        return False
    if math.prod(shapes[0]) < LEAST_MATRIX or (name == "dot" and not 0 < shapes[1][0] <= MOST_ROWS):
        return False
    kept = len(plan.span) * (math.prod(shapes[1]) + math.prod(shapes[2]))
    if kept * numpy_dtype(node.type.dtype).itemsize > MOST_BYTES:
        return False
    return all(movable(n) and not effects.of_node(n) for n in needed(plan.body, [matrix]))


def needed(body: Graph, roots: Iterable[Node], given: Iterable[Node] = ()) -> set[Apply]:
    """The applications that some values depend on, in an iteration; `given`: where to stop."""
    found, stop = set(roots), set(given)
    for node in reversed(body.nodes):
        if node in found and node not in stop:
            found.update(node.args)
    return {n for n in found if isinstance(n, Apply)}


def _complete(
    plan: Distribution, bits: int, products: list[Apply], outs: list[Node], reach: list[int], effects: Effects
) -> bool:
    """Fill in the plan for products whose operands depend on the carried values `bits`; False where it is none."""
    body, uses = plan.body, plan.uses
    before = [k for k in range(plan.carried) if bits >> k & 1]
    if bits and plan.roots:
        return False
    inner = needed(body, [outs[k] for k in before])
    # Of products that depend on each other the first: the others are found in the loop that is left.
    free = [p for p in products if p not in inner]
    free = [p for p in free if not needed(body, [plan.operand(p)]).intersection(free)]
    if not free:
        return False
    operands = list(dict.fromkeys(plan.operand(p) for p in free))
    moved = needed(body, operands)
    if any(effects.of_node(n) or not effects.ends(n) or holds_tape(n.type) for n in moved | inner if uses[n]):
        return False
    if not all(isinstance(t, Array | Scalar) for t in (body.params[1 + k].type for k in before)):
        return False
    behind = [k for k in range(plan.carried) if k not in before]
    exported = _exported(plan, bits, free, [outs[k] for k in behind], reach) if bits else set()
    for x in exported:
        if not isinstance(x.type, Scalar) and not (
            isinstance(x.type, Array) and all(isinstance(d, int) for d in x.type.shape)
        ):
            return False
    if sum(_bytes(x) for x in {*exported, *operands}) * len(plan.span) > MOST_BYTES:
        return False
    plan.before, plan.products, plan.exported = before, free, exported
    plan.kept = [*operands, *(x for x in (*body.params, *body.nodes) if x in exported and x not in operands)]
    plan.fixed = needed(body, [*map(plan.matrix, free), *_rows(plan)])
    return True


def _rows(plan: Distribution) -> list[Node]:
    """The arrays whose rows are operands."""
    kept = [x.args[0] for x in plan.kept if applies(x, "dynamic_index")]
    return [x for x in kept if not plan.uses.get(x, 0) and all(movable(n) for n in needed(plan.body, [x]))]


def _bytes(node: Node) -> int:
    return math.prod(getattr(node.type, "shape", ())) * numpy_dtype(node.type.dtype).itemsize


def _exported(plan: Distribution, bits: int, products: list[Apply], outs: list[Node], reach: list[int]) -> set[Node]:
    """What the loop behind uses of the loop before, other than the products."""
    found: set[Node] = set()
    wanted: set[Node] = set(outs)
    mask = (1 << plan.carried) - 1
    carried = set(plan.body.params[1 : 1 + plan.carried])
    after: set[Node] = set(products)
    for node in plan.body.nodes:
        if not after.isdisjoint(node.args):
            after.add(node)

    def belongs_before(node: Node) -> bool:
        if node in after:
            return False
        own = plan.uses.get(node, 0) & mask
        return own != 0 and plan.in_reach(own, reach) & ~bits == 0

    for node in reversed(plan.body.nodes):
        if node not in wanted or node in products:
            continue
        if belongs_before(node):
            found.add(node)
        else:
            wanted.update(node.args)
    return found | {p for p in wanted if p in carried and belongs_before(p)}


# --- the loops that it becomes ----------------------------------------------------------------------------------------


def sliced(
    plan: Distribution, carried: list[int], kept: list[Node], given: dict[Node, Node], outside: Env
) -> tuple[Graph, int, list[Node]]:
    """A loop's body with some of its carried values.

    Args:
        plan: of the split.
        carried: which of the values.
        kept: values that are kept of each iteration, in arrays that are carried too.
        given: values that are rows of arrays.
        outside: the constants of the loop, as they are around it.

    Returns:
        The body, how many values it carries, and its constants.
    """
    old = plan.body
    outs = output_parts(old)
    assert outs is not None
    new = Graph(old.name, None, old.origin)
    new.flags = dict(old.flags)
    b = Builder(new, old.origin)
    index = old.params[0]
    env: Env = {index: new.add_parameter(index.name, index.type, index.origin)}
    for k in carried:
        param = old.params[1 + k]
        env[param] = new.add_parameter(param.name, param.type, param.origin)
    stacks = [new.add_parameter("kept", stack_type(len(plan.span), x.type)) for x in kept]
    roots = [outs[k] for k in carried] + kept + ([] if kept else list(plan.roots))
    inside = needed(old, roots, given)
    read = {a for n in inside if n not in given for a in n.args} | set(roots)
    constants: list[Node] = []
    for param in old.params[1 + plan.carried :]:
        if param in read:
            env[param] = new.add_parameter(param.name, param.type, param.origin)
            constants.append(outside[param])
    rows = {}
    for x, array in given.items():
        if x in read:
            rows[x] = new.add_parameter("rows", array.type)
            constants.append(array)
    number = iteration_number(b, env[index], plan.span, None) if kept or rows else env[index]
    for x, array in rows.items():
        b.origin = x.origin
        env[x] = load_entry(b, array, x.type, number)  # type: ignore[arg-type]
    for node in old.nodes:
        if node in inside and node not in given and node is not old.output:
            env[node] = emit_like(b, node, tuple(lookup(env, a) for a in node.args))
    b.origin = old.origin
    filled = [store_entry(b, stack, lookup(env, x), number) for stack, x in zip(stacks, kept)]
    new.output = pack(b, [*(lookup(env, outs[k]) for k in carried), *filled])
    return new, len(carried) + len(kept), constants


def stack_type(count: int, t: Any) -> Array:
    """The type of an array of so many values."""
    return Array(t.dtype, (count, *getattr(t, "shape", ())))


def zeros(b: Builder, count: int, t: Any) -> Node:
    """An array for so many values, which a loop overwrites."""
    scalar = Scalar(t.dtype)
    zero = b.constant(as_type(False if t.dtype == "bool" else 0, scalar), scalar)
    return broadcast_to(b.var(zero), shape=stack_type(count, t).shape).node


def batched(b: Builder, product: Apply, operands: Node, matrix: Node) -> Node:
    """A product for all iterations, from an array of what is multiplied in each."""
    x, w = b.var(operands), b.var(matrix)
    if applied(product) == "matvec":
        return dot(x, w, transpose_b=not product.attrs["transpose"]).node
    count, rows, inner = x.shape
    out = dot(reshape(x, shape=(count * rows, inner)), w, transpose_b=product.attrs["transpose_b"])
    return reshape(out, shape=(count, rows, out.shape[1])).node
