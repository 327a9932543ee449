"""Fusion groups: which values of a typed graph never reach memory.

Idea (Relay, Roesch et al. 2019, section 4.1): a chain or diamond of elementwise and injective operations that ends in
one kernel is computed inside that kernel. The graph is walked backwards, and each value knows the kernels of its users.
If there is only one, the post-dominator of the value, the value is fused into it. A value with users in several kernels
is recomputed in each of them if that is cheaper than a round trip through memory, and is materialised otherwise.

Input: a closed typed graph. Output: a `Fusion`: a role for each array-valued application. Pure analysis, linear in the
graph. Scalars are registers and have no role here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from ...abstract.dims import DimLike, is_run_time, known_size
from ...abstract.types import Array, Data, Leaf, Scalar, Type, is_static_shape, numpy_dtype
from ...ir.axes import Relation, is_pointwise, relation_of
from ...ir.node import Apply, Constant, Graph, Node, applied
from ...ir.prim import Primitive, update_of
from ...ir.updates import reads_same_part
from ...utils.switches import is_left_out

# Rough costs in arithmetic operations an element, vectorised.
COST = {
    **dict.fromkeys(("exp", "expm1", "log", "log2", "log10", "log1p"), 12),
    **dict.fromkeys(("tanh", "sigmoid", "sin", "cos", "erf"), 20),
    **dict.fromkeys(("tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "pow"), 60),
    **dict.fromkeys(("div", "sqrt", "int_truediv"), 4),
    **dict.fromkeys(("floordiv", "mod", "mul_high"), 12),
    **dict.fromkeys(("threefry2x32", "portable_log"), 60),
    **dict.fromkeys(("normal_from_bits", "normal_upper_quantile"), 150),
}
CONTIGUOUS = ("reshape", "dynamic_index", "dynamic_slice", "stop_gradient")
"""Views whose elements may lie in memory as those of an array of their own."""
PARTS = ("dynamic_slice", "slice_")
"""What cuts rows or columns off a matrix. A product reads such a part where it is."""
RECOMPUTE = 3  # operations per element up to which a value may be recomputed in each of several kernels
RECOMPUTE_LATER = 24  # the same limit if only one other kernel needs it, which runs in the backward pass
LARGE = 1 << 20  # bytes of an array that are not kept for the backward pass if they can be computed anew
BROADCAST_RECOMPUTE = 3  # the same limit if it is recomputed along broadcast axes
GROUP_LIMIT = 64  # applications in one kernel
INDICES = 8  # the number of indices at which a kernel may compute elements of one value
REPEATED = 12  # operations per element that all but one of these may cost in total


def is_scalar(t: Type) -> TypeGuard[Leaf | Data]:
    """Whether values of this type live in registers: numbers, and arrays without axes."""
    return isinstance(t, Scalar | Data) or (isinstance(t, Array) and t.shape == ())


def is_fusable(node: Node) -> bool:
    """Whether a value may be computed inside of other kernels."""
    return (
        isinstance(node, Apply)
        and isinstance(node.fn, Primitive)
        and node.fn.kind in ("elementwise", "injective")
        and isinstance(node.type, Array)
        and not is_scalar(node.type)
    )


def is_view(node: Node) -> bool:
    """Whether the value is a part of its first argument's memory, if that argument is in memory."""
    if not isinstance(node, Apply) or not is_fusable(node) or node.fn.name not in CONTIGUOUS:
        return False
    if node.fn.name == "dynamic_index":
        return node.attrs["axis"] == 0
    if node.fn.name == "dynamic_slice":
        return node.attrs["axis"] == 0 and _fits(node.attrs["length"], node.args[0].type.shape[0])
    return isinstance(node.args[0].type, Array) and not is_scalar(node.args[0].type)


def _fits(length: DimLike, size: DimLike) -> bool:
    """Whether a slice is known not to be longer than its axis; what computes the length at run time cuts it off."""
    return isinstance(size - length, int) or is_run_time(length)


def is_part(node: Node) -> bool:
    """Whether the value is rows and columns next to each other of a matrix: a piece of each row of memory, if that is in memory."""
    if not isinstance(node, Apply) or not is_fusable(node) or node.fn.name not in PARTS:
        return False
    matrix = node.args[0].type
    if not isinstance(matrix, Array) or len(matrix.shape) != 2 or 0 in matrix.shape:
        return False
    if node.fn.name == "dynamic_slice":
        return _fits(node.attrs["length"], matrix.shape[node.attrs["axis"]])
    return all(step == 1 for step in node.attrs["steps"])


def is_addressable(node: Node) -> bool:
    """Whether a value, which may be a view of others, is in memory whatever its users are."""
    while isinstance(node, Apply) and is_view(node):
        node = node.args[0]
    return not is_fusable(node) or bool(isinstance(node, Apply) and update_of(node))


@dataclass
class Fusion:
    """The fusion groups of a graph.

    Attributes:
        role: application -> "inline" (computed in its users' kernels), "root" (has a kernel and memory of its own) or "view".
        users: node -> applications that use it, in program order; the graph itself stands for its output.
        kernel: application -> the node whose kernel computes it (roots, reductions, writes: themselves).
        size: kernel -> how many applications it computes.
        indices: application -> the different indices at which its kernels compute it, by number.
        paths: how an index follows from another -> its number.
        updates: an update -> itself and the updates of parts that it consists of, outermost first.
        epilogues: a root -> the opaque application whose kernel computes it, from its own result.
        again: what is computed in a kernel of the forward pass and once more in one of the backward pass.
        operands: application -> its relation, and at which places it has each of its operands.
    """

    role: dict[Node, str] = field(default_factory=dict)
    users: dict[Node, list] = field(default_factory=dict)
    kernel: dict[Node, Node] = field(default_factory=dict)
    size: dict[Node, int] = field(default_factory=dict)
    indices: dict[Node, frozenset[int]] = field(default_factory=dict)
    paths: dict[tuple, int] = field(default_factory=dict)
    updates: dict[Node, tuple[Apply, ...]] = field(default_factory=dict)
    epilogues: dict[Node, Apply] = field(default_factory=dict)
    again: set[Node] = field(default_factory=set)
    operands: dict[Node, tuple[Relation | None, dict[Node, list[int]]]] = field(default_factory=dict)

    def of_operands(self, user: Apply) -> tuple[Relation | None, dict[Node, list[int]]]:
        """The relation of an application and the places of its operands; once for all of them, which may be thousands."""
        known = self.operands.get(user)
        if known is None:
            places: dict[Node, list[int]] = {}
            for k, a in enumerate(user.args):
                places.setdefault(a, []).append(k)
            known = self.operands[user] = relation_of(user), places
        return known

    def index(self, *path: object) -> int:
        """The number of an index that is calculated from another."""
        return self.paths.setdefault(path, len(self.paths))


def cost(node: Apply) -> int:
    """Arithmetic operations an element."""
    return 0 if node.fn.view else COST.get(node.fn.name, 1)


def fuse(
    graph: Graph,
    takes_epilogue: Callable[[Apply, Apply], bool] | None = None,
    takes_part: Callable[[Apply, int], bool] | None = None,
) -> Fusion:
    """Find the fusion groups of one graph (not of the graphs inside of it).

    Args:
        graph: the graph.
        takes_epilogue: whether the kernel of an opaque application can compute what follows it element by element, to this root.
        takes_part: whether the kernel of an opaque application can read this operand, a matrix, as a part of a larger one.
    """
    out = Fusion()
    for node in graph.nodes:
        for arg in node.args:
            users = out.users.setdefault(arg, [])
            if not users or users[-1] is not node:
                users.append(node)
    out.users.setdefault(graph.output, []).append(graph)
    position = {node: i for i, node in enumerate(graph.nodes)}
    depth: dict[Node, int] = {}  # cost of computing an element from memory
    for node in graph.nodes:
        if is_fusable(node):
            depth[node] = cost(node) + sum(depth.get(a, 0) for a in set(node.args))
    inner = _updates(graph, out)
    for node in reversed(graph.nodes):
        if node in inner:
            out.role[node] = "inline"
            out.kernel[node] = out.kernel[inner[node]]
            out.indices[node] = out.indices[inner[node]]
        elif node in out.updates:
            _root(node, out)
        elif takes_part is not None and _is_read_as_part(node, out, takes_part):
            out.role[node] = "view"
        elif is_fusable(node):
            _place(node, out, depth, position)
        elif isinstance(node.fn, Primitive) and (node.fn.kind == "reduce" or node.fn.name == "ref_write"):
            out.kernel[node] = node
            out.size[node] = 1
            out.indices[node] = frozenset((out.index(node),))
        elif takes_epilogue is not None and (root := _epilogue(node, out)) is not None and takes_epilogue(node, root):
            # It has no kernel in `out`: what it reads itself must be in memory.
            out.role[node] = "inline"
            out.epilogues[root] = node
            if (view := of_one_example(node, out)) is not None:
                out.role[view], out.kernel[view] = "inline", root
                out.indices[view] = out.indices[root]
    return out


def _is_read_as_part(node: Apply, out: Fusion, takes_part: Callable[[Apply, int], bool]) -> bool:
    """Whether a part of a matrix in memory, of which the columns are not all, is read by products alone."""
    if not is_part(node) or is_view(node) or not is_addressable(node.args[0]):
        return False
    users = out.users.get(node, [])
    return bool(users) and all(
        isinstance(u, Apply) and all(takes_part(u, k) for k, a in enumerate(u.args) if a is node) for u in users
    )


def _epilogue(node: Apply, out: Fusion) -> Any:
    """The root that alone reads an opaque application's result, each element for its own; an axis of one example may be gone."""
    if not isinstance(node.fn, Primitive) or node.fn.kind != "opaque" or not isinstance(node.type, Array):
        return None
    view = of_one_example(node, out)
    read = node if view is None else view
    users = out.users.get(read, [])
    roots = {None if isinstance(u, Graph) else out.kernel.get(u) for u in users}
    root = roots.pop() if len(roots) == 1 else None
    if root is None or out.role.get(root) != "root" or root in out.updates or root in out.epilogues:
        return None
    if not isinstance(root.type, Array) or any(out.role.get(u) == "view" for u in users):
        return None
    if root.type.shape == read.type.shape:
        wanted = out.indices[root]
    elif (1, *root.type.shape) == read.type.shape:
        wanted = frozenset(out.index(i, read.type.shape) for i in out.indices[root])
    else:
        return None
    return root if _indices(read, users, out) == wanted else None


def of_one_example(node: Apply, out: Fusion) -> Apply | None:
    """The view without the first axis, of size 1, through which alone an application is read."""
    users = out.users.get(node, [])
    if len(users) != 1 or not isinstance(node.type, Array) or applied(users[0]) != "reshape":
        return None
    return users[0] if (1, *users[0].type.shape) == node.type.shape else None


def _place(node: Apply, out: Fusion, depth: dict, position: dict) -> None:
    """Decide on one application, given where all its users are computed."""
    users = out.users.get(node, [])
    kernels: list[Node] = []
    repeated = False
    memory = not users or (depth[node] > 0 and is_left_out("fusion"))
    for user in users:
        if isinstance(user, Graph) or user not in out.kernel and out.role.get(user) != "view":
            memory = True
            continue
        if out.role.get(user) == "view" and out.kernel.get(user) is None:
            memory = True  # the view is in memory, and so must be the array that it is a part of
            continue
        if update_of(user) and user.args[0] is node:
            # The array that is updated is in memory. A part that is updated as part of the whole is never read.
            memory |= user in out.updates
        kernel = out.kernel[user]
        if kernel not in kernels:
            kernels.append(kernel)
        repeated |= _repeats(node, user, out)
    free = depth[node] == 0 and all(_is_constant_like(a) for a in node.args)
    indices: frozenset[int] = frozenset() if memory else _indices(node, users, out)
    memory |= not free and any(out.size[k] >= GROUP_LIMIT for k in kernels)
    # Elements at several indices are computed several times, and so is whatever they are computed from: a chain of such
    # values would grow exponentially.
    again = _is_again(node, users, kernels, depth, out) and len(indices) == 2
    memory |= not free and not again and (len(indices) > INDICES or (len(indices) - 1) * depth[node] > REPEATED)
    if not memory:
        if free or (len(kernels) == 1 and not _too_dear(node, repeated, depth)):
            inline = True
        else:
            inline = (
                len(kernels) <= 4
                and (depth[node] <= RECOMPUTE or again)
                and not (repeated and depth[node] > 0)
                and _one_array(node)
            )
        if inline and not is_view(node):
            out.role[node] = "inline"
            out.kernel[node] = kernels[0]
            out.indices[node] = indices
            for kernel in kernels:
                out.size[kernel] += 1
            if again:
                out.again.add(node)
            return
        if inline and not is_addressable(node.args[0]):
            # A view of something that is computed in the kernel: an index calculation in the same kernel.
            source = node.args[0]
            if depth[source] == 0 or all(u is node for u in out.users[source]):
                out.role[node] = "inline"
                out.kernel[node] = kernels[0]
                out.indices[node] = indices
                out.size[kernels[0]] += 1
                return
    if is_view(node):
        out.role[node] = "view"
        return
    _root(node, out)


def _root(node: Apply, out: Fusion) -> None:
    """Give an application a kernel of its own."""
    out.role[node] = "root"
    out.kernel[node] = node
    out.size[node] = 1
    out.indices[node] = frozenset((out.index(node),))


def _updates(graph: Graph, out: Fusion) -> dict[Node, Apply]:
    """Find the updates of parts; returns those that are steps of others, with the enclosing update of each.

    update(x, update(read(x, i), v, j), i): element j of part i of x, and nothing else, is written.
    """
    inner: dict[Node, Apply] = {}
    for node in reversed(graph.nodes):
        if node in inner or not is_fusable(node) or not update_of(node):
            continue
        steps = [node]
        while (part := _part_of(steps[-1], out)) is not None:
            inner[part] = steps[-1]
            steps.append(part)
        out.updates[node] = tuple(steps)
    return inner


def _part_of(node: Apply, out: Fusion) -> Apply | None:
    """The update of a part of an array that `node` puts back where the part was read."""
    part, update = node.args[1], update_of(node)
    if update is None or update.adds or not is_fusable(part) or not update_of(part) or out.users[part] != [node]:
        return None
    return part if reads_same_part(part.args[0], node.args[0], node) else None


def _is_again(node: Apply, users: list, kernels: list[Node], depth: dict, out: Fusion) -> bool:
    """Whether a large array is needed in one kernel of the forward pass and one of the backward pass, or only for such a one.

    Between these it would take memory, and from memory it comes no sooner than it is computed again.
    """
    if users and all(u in out.again for u in users):
        return True
    if len(kernels) != 2 or depth[node] > RECOMPUTE_LATER or not isinstance(node.type, Array):
        return False
    if not is_static_shape(node.type) or sum(k.origin.is_adjoint for k in kernels if isinstance(k, Apply)) != 1:
        return False
    return known_size(node.type.size) * numpy_dtype(node.type.dtype).itemsize >= LARGE


def _indices(node: Apply, users: list, out: Fusion) -> frozenset[int]:
    """The indices at which the users' kernels compute a value: their own, or those that index calculations derive from
    them.
    """
    found: set[int] = set()
    for user in users:
        at = out.indices[user]
        if user.fn.kind in ("reduce", "effect"):
            found |= at
        elif is_pointwise(user.fn.axes) or user.fn.name == "reshape":
            found |= at if user.type.shape == node.type.shape else {out.index(i, node.type.shape) for i in at}
        else:
            found |= {out.index(i, user, k) for i in at for k in out.of_operands(user)[1][node]}
        if len(found) > INDICES:
            break
    return frozenset(found)


def _is_constant_like(node: Node) -> bool:
    return isinstance(node, Constant) or is_scalar(node.type)


def _too_dear(node: Apply, repeated: bool, depth: dict) -> bool:
    return repeated and depth[node] > BROADCAST_RECOMPUTE


def _one_array(node: Apply) -> bool:
    """Whether at most one argument is an array of the result's size: recomputing then reads no more than reading the
    result.
    """
    return sum(1 for a in node.args if isinstance(a.type, Array) and a.type.shape == node.type.shape) <= 1


def _repeats(node: Apply, user: Apply, out: Fusion) -> bool:
    """Whether a kernel of `user` needs each element of `node` more than once because it has no loop of exactly its shape."""
    relation, places = out.of_operands(user)
    return relation is not None and any(map(relation.repeats, places[node]))
