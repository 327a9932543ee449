"""In-place updates: `x[i] = v` writes one element if the old `x` is dead, and copies the array otherwise.

Idea: an application may overwrite memory if all values that live in it are dead after that application. `Env` records
which values live where as they are made; which values are dead follows from the last uses in the scope. A parameter of
a scope is dead after its last use if the caller has donated it (`given`): a loop donates its carried values to its
body, and a loop, a branch or a call is given the arguments whose last use it is. An array thus keeps its place through
nested loops and branches, and an update in them costs only what it writes.

Updates of a part of a part (`x[i, j] = v` is a row with a new element, in an array with a new row) are merged: see
`opt.analysis.fusion`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import tirx

from ....abstract.dims import DimLike, product
from ....ir.node import Apply, Constant, Graph, Node, Parameter, applied, applies
from ....ir.prim import Primitive
from ....opt.analysis.control import output_parts
from ....opt.analysis.fusion import is_scalar, is_view
from ....prims.ops.control import LEAD
from ....prims.rules.protocol import clamp
from ....utils.switches import is_left_out
from ..kernels.kernel import Kernel
from ..kernels.nests import Nest, cuts, grouped, inlined, lanes_for
from ..kernels.opaque import OVERWRITING
from ..plan import ITEM, Storage, View
from ..tir.block import idx, load, ramp
from ..tir.indexing import AxisGroup, Index


class Env(dict):
    """Values of nodes; notes which nodes' values live in a storage.

    Attributes:
        holders: storage -> nodes, some of them dead.
    """

    def __init__(self) -> None:
        super().__init__()
        self.holders: dict[Storage, dict[Node, None]] = {}

    def __setitem__(self, node: Node, value: Any) -> None:
        super().__setitem__(node, value)
        for view in views(value):
            self.holders.setdefault(view.storage, {})[node] = None


def views(value: Any) -> Iterator[View]:
    """The arrays in memory that a lowered value consists of."""
    if isinstance(value, View):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from views(part)


def last_use(scope: Any, node: Node) -> int:
    """The position of the last application that uses a value, also through values computed on the fly and views of it."""
    if node not in scope.last_uses:
        scope.last_uses[node] = _last_use(scope, node)
    return scope.last_uses[node]


def _last_use(scope: Any, node: Node) -> int:
    end = len(scope.graph.nodes)
    best, seen, stack = -1, {node}, [node]
    while stack:
        for user in scope.fusion.users.get(stack.pop(), ()):
            if isinstance(user, Graph):
                return end
            passes = scope.fusion.role.get(user) in ("inline", "view")
            passes = passes or getattr(user.fn, "name", "") in ("make_struct", "get_item")
            if passes and user not in seen:
                seen.add(user)
                stack.append(user)
            elif not passes:
                best = max(best, scope.position[user])
    return best


def dies(scope: Any, node: Node, at: Apply) -> bool:
    """Whether all memory of a node's value may be overwritten by application `at`, because it is not read afterwards."""
    if is_left_out("in_place"):
        return False
    position = scope.position[at]
    for view in views(scope.env.get(node)):
        if view.storage.kind not in ("arena", "out"):
            return False
        for holder in scope.env.holders[view.storage]:
            if (
                isinstance(holder, Parameter)
                and holder not in scope.given
                or _holds_until(scope, holder, view.storage) > position
            ):
                return False
    return True


def _holds_until(scope: Any, holder: Node, storage: Storage) -> int:
    """The last use of a value as far as it lives in a storage: of a loop's results only those that do."""
    value = scope.env[holder]
    users = scope.fusion.users.get(holder, ())
    if not isinstance(value, tuple) or not all(
        getattr(getattr(u, "fn", None), "name", "") == "get_item" for u in users
    ):
        return last_use(scope, holder)
    parts = [u for u in users if any(v.storage is storage for v in views(value[u.attrs["index"]]))]
    return max((last_use(scope, u) for u in parts), default=-1)


def donated(scope: Any, node: Apply) -> list[bool]:
    """For each argument whether what `node` runs may overwrite it: its last use, and in no other argument."""
    held = [{view.storage for view in views(scope.env.get(a))} for a in node.args]
    out = []
    for k, arg in enumerate(node.args):
        alone = not any(held[k] & other for j, other in enumerate(held) if j != k)
        out.append(bool(held[k]) and alone and dies(scope, arg, node))
    return out


def overwrites(lowering: Any, node: Apply) -> bool:
    """Whether an application may store its result in place of its first operand, because nothing else reads that any more."""
    first = lowering.view(node.args[0])
    others = [v for a in node.args[1:] for v in views(lowering.scope.env.get(a))]
    return dies(lowering.scope, node.args[0], node) and all(v.storage is not first.storage for v in others)


def want(scope: Any, node: Node, place: View) -> None:
    """Let a result of a graph be made where it is wanted; of a program's, already what becomes it by reshapes and scatters."""
    users, made = scope.fusion.users, []
    while is_fresh(node, scope) or is_view(node):
        if is_fresh(node, scope):
            made.append((node, place))
        inner = node.args[0] if applies(node, "reshape", "scatter_add") else None
        if inner is None or place.storage.kind != "out" or users.get(inner) != [node]:
            break
        node, place = inner, View(place.storage, place.dtype, inner.type.shape, place.offset, place.pointer)
    if made:
        scope.dest.setdefault(*made[-1])


def is_fresh(node: Node, scope: Any) -> bool:
    """Whether lowering this node makes memory, which can as well be the wanted one."""
    if not isinstance(node, Apply) or not isinstance(node.fn, Primitive):
        return False
    if is_scalar(node.type):
        return False
    if node.fn.name == "get_item":
        return applied(node.args[0]) == "map_rows"
    if node.fn.kind in ("elementwise", "injective"):
        return scope.fusion.role.get(node) == "root"
    return node.fn.kind in ("reduce", "opaque")


# --- where a branch's result comes from -------------------------------------------------------------------------------


def source(graph: Graph, node: Node, busy: tuple[Graph, ...] = ()) -> Parameter | None:
    """The parameter of a graph that a value is an updated version of, if any: followed through updates, branches and loops."""
    while not isinstance(node, Parameter):
        if not isinstance(node, Apply):
            return None
        run, part = (node.args[0], node.attrs["index"]) if applied(node) == "get_item" else (node, None)
        if isinstance(node.fn, Primitive) and (node.fn.update or node.fn.name in OVERWRITING):
            node = node.args[0]
        else:
            found = _source_of_run(run, part, (*busy, graph)) if isinstance(run, Apply) else None
            if found is None:
                return None
            node = found
    return node if node in graph.params else None


def _source_of_run(run: Apply, part: int | None, busy: tuple[Graph, ...]) -> Node | None:
    """The operand of a loop, a branch or a call that a part of its result is an updated version of."""
    if applied(run) in LEAD:
        return run.args[LEAD[run.fn.name] + part] if part is not None else None
    if isinstance(run.fn, Graph):
        inner, args = (run.fn,), run.args
    elif run.fn.name == "cond":
        inner, args = (run.attrs["then"], run.attrs["orelse"]), run.args[1:]
    else:
        return None
    for g in inner:
        found = source_of_part(g, part, busy) if g not in busy else None
        if found is not None:
            return args[g.params.index(found)]
    return None


def source_of_part(graph: Graph, part: int | None, busy: tuple[Graph, ...] = ()) -> Parameter | None:
    """The same for a part of a graph's result, None being the whole."""
    outs = output_parts(graph)
    if part is None:
        return source(graph, graph.output, busy)
    if outs is not None:
        return source(graph, outs[part], busy)
    found = _source_of_run(graph.output, part, (*busy, graph)) if isinstance(graph.output, Apply) else None
    return source(graph, found, busy) if found is not None else None


# --- emission ---------------------------------------------------------------------------------------------------------


class _Part:
    """The part of an array that an update writes.

    Attributes:
        axes: of the array, those that the written value has too.
        sizes: of the part along these.
        base: position of the part's first element, in elements.
        fits: whether the array is as long as the part, where that is known at run time only.
    """

    def __init__(self, lowering: Any, steps: tuple[Apply, ...]):
        shape = steps[0].type.shape
        b = lowering.b
        self.strides = [product(shape[k + 1 :]) for k in range(len(shape))]
        self.axes, self.sizes = list(range(len(shape))), list(shape)
        self.base: Any = idx(0)
        self.fits: Any = None
        for step in steps:
            k = step.attrs["axis"]
            length: DimLike = step.args[1].type.shape[k] if step.fn.update.window else 1
            if not isinstance(self.sizes[k] - length, int):
                enough = tirx.GE(b.dim(self.sizes[k] - length), idx(0))
                self.fits = enough if self.fits is None else tirx.And(self.fits, enough)
            wanted = lowering.named(b.cast(lowering.scalar(step.args[2]), "int64"))
            first = lowering.named(clamp(b, wanted, self.sizes[k] - length + 1))
            self.base = lowering.named(b.add(self.base, b.mul(first, b.dim(self.strides[self.axes[k]]))))
            if step.fn.update.window:
                self.sizes[k] = length
            else:
                del self.axes[k], self.sizes[k]
        self.shape = shape

    def cuts(self) -> set[int]:
        """Boundaries between axes of the part over which it does not lie in one piece."""
        out = set()
        for k in range(1, len(self.axes)):
            axis = self.axes[k]
            if self.axes[k - 1] != axis - 1 or self.sizes[k] != self.shape[axis]:
                out.add(k)
        return out


def row_for(lowering: Any, node: Node) -> View | None:
    """The row of the array that the result of a node will be assigned to, if it can be computed there directly.

    That is so where the array is this graph's to overwrite, and the assignment is all that looks at it: what an adjoint
    keeps of each iteration goes into its array without a copy.
    """
    scope = lowering.scope
    for user in scope.fusion.users.get(node, ()):
        if applied(user) != "dynamic_update" or user.attrs["axis"]:
            continue
        array, _, index = user.args
        known = isinstance(index, Constant) or index in scope.env
        if not known or array not in scope.given or scope.fusion.users.get(array) != [user]:
            continue
        view = scope.env.get(array)
        if not isinstance(view, View) or view.storage.kind != "arena" or 0 in view.shape:
            continue
        if scope.fusion.users.get(user, []) != [scope.graph.output] or not all(isinstance(d, int) for d in view.shape):
            continue
        part = _Part(lowering, (user,))
        offset = lowering.b.add(view.offset, lowering.b.mul(part.base, idx(ITEM[view.dtype])))
        scope.rows[user] = View(view.storage, view.dtype, node.type.shape, lowering.named(offset))
        return scope.rows[user]
    return None


def emit(lowering: Any, node: Apply) -> None:
    """Emit an update: in place, or on a copy."""
    scope = lowering.scope
    if node in scope.rows and scope.env[node.args[1]] is scope.rows[node]:
        old = lowering.view(node.args[0])
        scope.env[node] = View(old.storage, old.dtype, node.type.shape, old.offset)
        return
    steps = scope.fusion.updates[node]
    old = lowering.view(node.args[0])
    value = steps[-1].args[1]
    adds = steps[-1].fn.update.adds
    part = _Part(lowering, steps)
    keep_what_is_read_later(lowering, node)
    if dies(scope, node.args[0], node):
        target = View(old.storage, old.dtype, node.type.shape, old.offset)
        if not is_scalar(value.type) and _reads(lowering, value, old.storage):
            _to_memory(lowering, value, old.storage)
        lowering.flush_users(old.storage)
        scope.env.holders[old.storage].clear()
    else:
        target = lowering.allocate(node)
        lowering.flush_users(target.storage)
        lowering.flush_writers(old.storage)
        lowering.copy(old, target)
    if not is_scalar(value.type):
        for leaf in lowering.leaves_of(value):
            lowering.flush_writers(lowering.view(leaf).storage)
    scope.env[node] = target
    if 0 in part.shape:
        return  # there is no element at all
    write = _kernel if part.axes else _element
    if part.fits is None:
        write(lowering, node, value, target, part, adds)
        return
    with lowering.block.when(part.fits):
        write(lowering, node, value, target, part, adds)


def keep_what_is_read_later(lowering: Any, node: Apply) -> None:
    """Store the parts of an array that are read after its update, where they are all of it that is read then.

    The update would have to copy the array otherwise: an adjoint takes the cotangent of a row away before it adds it elsewhere.
    """
    scope, array = lowering.scope, node.args[0]
    if is_left_out("in_place") or last_use(scope, array) <= scope.position[node]:
        return
    found = _read_later(scope, array, node)
    if found is None:
        return
    parts, seen = found
    storage = lowering.view(array).storage
    for part in parts:
        _to_memory(lowering, part, storage)
        scope.fusion.role[part] = "root"
        scope.env.holders[storage].pop(part, None)
    for old in seen:
        scope.last_uses.pop(old, None)


def _read_later(scope: Any, array: Node, update: Apply) -> tuple[list[Node], set[Node]] | None:
    """The parts of an array that are read after an update, and what was looked at; None where more of it is."""
    at, role = scope.position[update], scope.fusion.role
    parts: list[Node] = []
    seen, stack = {array}, [array]
    while stack:
        node = stack.pop()
        for user in scope.fusion.users.get(node, ()):
            if user is update or user in seen:
                continue
            if isinstance(user, Graph) or scope.position[user] > at:
                if node is array or not _is_small(node, array):
                    return None
                if node not in parts:
                    parts.append(node)
                continue
            seen.add(user)
            if last_use(scope, user) > at:
                if role.get(user) not in ("inline", "view"):
                    return None
                stack.append(user)
    return parts, seen


def _is_small(part: Node, array: Node) -> bool:
    """Whether a part has an axis less than an array."""
    return is_scalar(part.type) or len(part.type.shape) < len(array.type.shape)


def _element(lowering: Any, node: Apply, value: Node, target: View, part: _Part, adds: bool) -> None:
    """One element, written by the main function itself."""
    from ..kernels.kernel import MainSite

    lowering.plan.tick()
    new = lowering.scalar(value)
    buffer = MainSite(lowering).buffer(target)
    if adds:
        new = lowering.b.add(lowering.block.let(load(buffer, part.base)), new)
    lowering.block.store(buffer, lowering.named(new), part.base)


def _reads(lowering: Any, value: Node, storage: Storage) -> bool:
    return any(lowering.view(leaf).storage is storage for leaf in lowering.leaves_of(value))


def _to_memory(lowering: Any, value: Node, storage: Storage) -> None:
    """Give a value memory of its own: it is made of what is about to be overwritten."""
    fresh = lowering.new_view(value.type)
    if lowering.is_inline(value):
        lowering.scope.fusion.role[value] = "root"
        lowering.defer(value, [fresh])
    else:
        lowering.flush_writers(storage)
        lowering.copy(lowering.view(value), fresh)
        lowering.scope.env[value] = fresh


def _kernel(lowering: Any, node: Apply, value: Node, target: View, part: _Part, adds: bool) -> None:
    """The loops over the part."""
    kernel = Kernel(lowering, node.fn.name)
    nest = Nest(kernel)
    b, block = nest.b, kernel.block
    shape = tuple(part.sizes)
    nodes = inlined([value], lowering.is_inline) if isinstance(value, Apply) and lowering.is_inline(value) else []
    axes = grouped(shape, part.cuts() | cuts(shape, nodes))
    extents = [product(shape[a:z]) for a, z in axes]
    strides = [part.strides[part.axes[z - 1]] for _, z in axes]
    buffer = kernel.buffer(target, write=True)
    base = kernel.value_param("base", part.base)
    lanes = lanes_for(node.type.dtype) if strides[-1] == 1 else 1

    def element(outer: list[Any], first: Any, width: int) -> None:
        at = [*outer, ramp(first, width)]
        index = Index(shape, [AxisGroup(a, z, i) for (a, z), i in zip(axes, at)])
        new = nest.widened(block.let(nest.evaluator.value(value, index)), width)
        place = base
        for i, stride in zip([*outer, first], strides):
            place = tirx.Add(place, tirx.Mul(i, b.dim(stride)))
        place = ramp(block.let(place), width)
        if adds:
            new = b.add(block.let(load(buffer, place)), new)
        block.store(buffer, new, place)

    nest.loops(
        extents[:-1], lambda outer: nest.vectors(extents[-1], lanes, lambda i, w: element(outer, i, w), False), False
    )
    lowering.emit_kernel(kernel, [node, *nodes])


__all__ = [
    "Env",
    "dies",
    "emit",
    "donated",
    "is_fresh",
    "last_use",
    "overwrites",
    "row_for",
    "source",
    "source_of_part",
    "views",
    "want",
]
