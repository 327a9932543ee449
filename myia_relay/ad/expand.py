"""Expansion of transforms: `value_and_grad`, `vmap`, `jvp`, `vjp` and others become ordinary operations.

Transforms are expanded innermost first. Each order of derivative is therefore the derivative of an ordinary program,
and perturbations cannot be confused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..abstract.batched import batched_type
from ..abstract.dims import DimLike
from ..abstract.types import Array, Data, Scalar, Struct, Type, holds, tangent, tuple_of
from ..ir.build import Builder, as_type
from ..ir.node import Apply, Graph, Node
from ..ir.prim import REGISTRY
from ..ir.rewrite import Effects, Rewriter, all_graphs, drop_dead, emit_like, same_interface
from ..ir.sizes import with_own_sizes
from ..prims.ops.data_functions import Functions
from ..utils.errors import GradError
from ..utils.source import Origin
from . import data, lists  # noqa: F401  registers their adjoints
from .batch.vmap import inline_vmap
from .common.activity import full
from .common.cotangents import has_tangent, materialise, split
from .custom import inline_vjp, without_custom
from .eigenvectors import with_matrix_functions
from .forward.forward import Forward
from .forward.jvp import inline_jvp
from .jacobian.jacobian import inline_jacobian
from .matrix_functions import without_matrix_functions
from .reverse import control  # noqa: F401  registers their adjoints
from .reverse.reverse import Adjoint, Expansion


def expand(graph: Graph) -> Graph:
    """The graph with every transform in it, inner graphs included, replaced by ordinary operations.

    Args:
        graph: typed, closed.

    Raises:
        GradError: a derivative that does not exist: of a result that is no float scalar, by an integer, through an
        update.
    """
    functions = Functions()
    expanded = without_matrix_functions(without_custom(Expand(functions).rewrite(graph)))
    return lists.without_sums(expanded, functions)


def vjp_graph(graph: Graph, wrt: tuple[int, ...]) -> Graph:
    """A graph `(*args, dout) -> (out, cotangents of the arguments in wrt)`; `dout` is that of the result."""
    graph = with_matrix_functions(expand(graph))
    new = Graph(f"{graph.name}.vjp", None, graph.origin)
    args = [new.add_parameter(p.name, p.type, p.origin) for p in graph.params]
    dout = new.add_parameter("dout", tangent(graph.output.type))
    b = Builder(new, graph.origin)
    acts = tuple(full(p.type) if i in wrt else False for i, p in enumerate(graph.params))
    context = Expansion(Functions())
    adjoint = Adjoint(context, b, context.entered(graph), args, acts)
    out = adjoint.forward()
    cts = adjoint.backward(split(b, dout))
    new.output = _pair(b, out, [materialise(b, cts[i], tangent(graph.params[i].type)) for i in wrt])
    drop_dead(new)
    return without_matrix_functions(new)


def vmap_graph(graph: Graph, batched: tuple, size: DimLike) -> Graph:
    """The batched version of a graph, transforms in it expanded.

    Args:
        graph: typed, closed; a function of one example.
        batched: for each parameter whether it has a batch axis; for a structure maybe a tuple, for its parts.
        size: of the batch axis.
    """
    graph = expand(graph)
    new, _ = same_interface(graph, f"{graph.name}.vmap")
    for param, flag in zip(new.params, batched, strict=True):
        param.type = batched_type(param.type, size, flag)
    new.output = inline_vmap(Builder(new, graph.origin), new.params, graph, batched, size)
    return new


def _pair(b: Builder, value: Node, grads: list[Node]) -> Node:
    make = REGISTRY["make_struct"]
    packed = b.emit(make, grads, {"type": tuple_of(*[g.type for g in grads])})
    return b.emit(make, (value, packed), {"type": tuple_of(value.type, packed.type)})


def reaches_trees(graph: Graph, active: Sequence[Type]) -> bool:
    """Whether a tree may be active in a graph that is differentiated by arguments of the given types."""
    if any(holds(t, Data) for t in active):
        return True
    nodes = (n for g in all_graphs(graph) for n in g.nodes)
    return any(getattr(n.fn, "name", "") == "data_make" and has_tangent(n.type) for n in nodes)


class Expand(Rewriter):
    """The pass."""

    acts_on: Collection[str] = ("value_and_grad", "vmap", "jvp", "vjp", "jacobian")

    def __init__(self, functions: Functions):
        super().__init__()
        self.functions, self.effects = functions, Effects()
        self.shared: dict[tuple[type, bool], Any] = {}

    def build(self, graph: Graph) -> Graph:
        new = super().build(graph)
        drop_dead(new, self.effects)
        return new

    def context(self, graph: Graph, active: Sequence[Type]) -> Expansion:
        """The state that derivatives of a graph by arguments of the given types share."""
        trees = reaches_trees(graph, active)
        return self.shared.setdefault((Expansion, trees), Expansion(self.functions, trees))

    def forward(self, graph: Graph, active: Sequence[Type]) -> Forward:
        """The same for forward mode."""
        trees = reaches_trees(graph, active)
        return self.shared.setdefault((Forward, trees), Forward(self.effects, trees))

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        name = getattr(node.fn, "name", None)
        if isinstance(node.fn, Graph) or name not in self.acts_on:
            if isinstance(node.fn, Graph):
                return super().node(builder, node, args, attrs)
            return emit_like(builder, node, args, attrs)
        self.changed = True
        builder.origin = node.origin
        if "graph" in attrs:
            attrs = {**attrs, "graph": with_own_sizes(attrs["graph"])}
        if name in ("value_and_grad", "jvp", "vjp"):
            attrs = {**attrs, "graph": with_matrix_functions(attrs["graph"])}
        if name == "vmap":
            return inline_vmap(builder, args, **attrs)
        if name == "jacobian":
            return inline_jacobian(builder, args, **attrs)
        active = [args[i].type for i in attrs["wrt"]]
        if name != "value_and_grad":
            try:
                if name == "jvp":
                    return inline_jvp(self.forward(attrs["graph"], active), builder, args, **attrs)
                return inline_vjp(self.context(attrs["graph"], active), builder, args, **attrs)
            except GradError as error:
                raise error.at(node.origin) from None
        return inline_value_and_grad(self.context(attrs["graph"], active), builder, args, node.origin, **attrs)


def inline_value_and_grad(
    context: Expansion,
    builder: Builder,
    args: tuple[Node, ...],
    origin: Origin,
    graph: Graph,
    wrt,
    has_aux: bool = False,
) -> Node:
    """Emit a graph with its adjoint; returns the pair (value, tuple of gradients).

    Args:
        context: shared memos.
        builder: where.
        args: the graph's arguments.
        origin: the user's place.
        graph: what is differentiated.
        wrt: indices of the arguments to differentiate by.
        has_aux: whether the result is a tuple (scalar, anything, ...), of which the scalar is differentiated.

    Raises:
        GradError: the result is no pair though `has_aux` is set, or a derivative does not exist.
    """
    result = graph.output.type
    if has_aux:
        if not isinstance(result, Struct) or len(result.elems) < 2:
            raise GradError(
                f"with has_aux=True a function returns a pair (scalar, aux), and '{graph.name}' returns {result}",
                origin,
            )
        others = (None,) * (len(result.elems) - 1)
        result = result.elems[0]
    check_result(graph, result, origin)
    for i in wrt:
        check_argument(graph, i, origin)
    acts = tuple(full(p.type) if i in wrt else False for i, p in enumerate(graph.params))
    try:
        adjoint = Adjoint(context, builder, context.entered(graph), args, acts)
        out = adjoint.forward()
        builder.origin = origin
        one = builder.constant(as_type(np.ones((), float), result), result)
        cts = adjoint.backward((one, *others) if has_aux else one)
    except GradError as error:
        raise error.at(origin) from None
    builder.origin = origin.derive("vjp")
    return _pair(builder, out, [materialise(builder, cts[i], tangent(args[i].type)) for i in wrt])


def check_result(graph: Graph, result: Type, origin: Origin) -> None:
    """Check that the result is one float.

    Raises:
        GradError: the result is anything else.
    """
    if isinstance(result, Scalar | Array) and result.shape == () and result.is_float:
        return
    head = f"grad differentiates a function with one float as its result, and '{graph.name}' returns {result}"
    if isinstance(result, Array) and result.shape != ():
        shape = f"({', '.join(map(str, result.shape))}{',' if len(result.shape) == 1 else ''})"
        advice = (
            f", an array of shape {shape}; reduce it first (.sum(), .mean()), use relay.jacobian or relay.jacrev for "
            f"all derivatives, or relay.vjp with a cotangent of shape {shape}"
        )
    elif isinstance(result, Struct):
        advice = "; return the scalar alone, use has_aux=True for a pair (scalar, aux), or relay.vjp or relay.jacobian"
    else:
        advice = (
            ", which has no derivative; convert it with float(...) or .astype(...), or see relay.jacobian and relay.vjp"
        )
    raise GradError(head + advice, origin)


def check_argument(graph: Graph, index: int, origin: Origin) -> None:
    """Check that there are floats in an argument.

    Raises:
        GradError: there is none in it.
    """
    param = graph.params[index]
    if not has_tangent(param.type):
        raise GradError(
            f"grad by '{param.name}', which is {param.type} and has no derivative; pass a float, or name another "
            "argument in wrt (relay.jacobian and relay.vjp differentiate by floats too)",
            origin,
        )
