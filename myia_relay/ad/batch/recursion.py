"""Batching of functions that call themselves.

If all examples take the same path through a recursion, it is one recursion over batched values: its functions get
batched versions that call each other. Which parts of their results are batched is a least fixpoint.

If the path depends on the example, one recursion cannot follow them all. Nor can a value of a data type or a run-time
list hold those of all examples. The batched function is then a loop over the examples:

    for k in range(size): out[k] = f(*(x[k] for batched x))
"""

from __future__ import annotations

from collections.abc import Sequence

from ...abstract.batched import batched_type
from ...abstract.dims import Dim, DimLike
from ...abstract.types import INT, Array, Data, Scalar, Struct, Tape, Type, tuple_of
from ...ir.build import Builder, Var
from ...ir.node import Graph, Node
from ...ir.prim import REGISTRY
from ...ir.rewrite import Effects
from ...prims.rules.broadcast import broadcast_to
from ...utils.errors import InternalError, LoweringError, TypeError_
from .batch import WRITES, Batcher, Flag, canonical, example, join


def recursive_version(p: Batcher, graph: Graph, flags: tuple[Flag, ...], want: Flag) -> tuple[Graph, Flag]:
    """A function that calls itself, for batched arguments, and the flag of its result; see `Batcher.graph`."""
    to = join(want, _tapes(p, graph.output.type))
    while True:
        known = dict(p.graphs)
        shell = Graph(graph.name, None, graph.origin)
        shell.output = Node(p.type(graph.output.type, to))
        p.graphs[graph, flags, want] = shell, to
        flag = p.build(shell, graph, flags, to)
        if flag == to:
            return shell, to
        p.graphs, to = known, flag  # what was built on this assumption is discarded with it


def _tapes(p: Batcher, t: Type) -> Flag:
    """The flag of a result of which only the tapes of recursions are batched."""
    if isinstance(t, Struct):
        return canonical(tuple(_tapes(p, e) for e in t.elems))
    return p.tapes.get(t, False)


def one_by_one(b: Builder, args: Sequence[Node], graph: Graph, flags: Sequence[Flag], size: DimLike) -> Node:
    """Emit a loop over the examples; every array of the result gets a batch axis.

    Args:
        b: where.
        args: the graph's arguments.
        graph: of one example.
        flags: which arguments have a batch axis.
        size: of the batch axis.

    Raises:
        TypeError_: the examples update a model.
        LoweringError: they return data types of their own.
    """
    if "write" in Effects().of_graph(graph):
        raise TypeError_(WRITES)
    t = graph.output.type
    for own in _leaf_types(t):
        if isinstance(own, Data):
            raise LoweringError(
                f"vmap returns a {own} for each example, which cannot be stacked; return numbers or arrays"
            )
    result = batched_type(t, size)
    starts = [_empty(b, e) for e in _leaf_types(result)]
    body = Graph(f"{graph.name}.examples", None, graph.origin)
    inner = Builder(body, graph.origin)
    k = Var(inner, body.add_parameter("k", INT))
    carry = [body.add_parameter(f"out{i}", s.type) for i, s in enumerate(starts)]
    given = [body.add_parameter(p.name, a.type) for p, a in zip(graph.params, args, strict=True)]
    values = [example(inner, x, p.type, f, k) for x, p, f in zip(given, graph.params, flags, strict=True)]
    outs = _leaves(inner, inner.call(graph, values))
    new = [_stored(inner, place, out, k) for place, out in zip(carry, outs, strict=True)]
    body.output = inner.emit(REGISTRY["make_struct"], new, {"type": tuple_of(*[n.type for n in new])})
    stop = b.emit(REGISTRY["dim_size"], (), {"dim": size}) if isinstance(size, Dim) else b.constant(size, INT)
    bounds = (b.constant(0, INT), stop, b.constant(1, INT))
    done = b.emit(REGISTRY["for_loop"], (*bounds, *starts, *args), {"body": body, "carried": len(starts)})
    parts = iter([b.emit(REGISTRY["get_item"], (done,), {"index": i}) for i in range(len(starts))])
    return _assemble(b, result, parts)


def _leaf_types(t: Type) -> list[Type]:
    if isinstance(t, Struct):
        return [leaf for e in t.elems for leaf in _leaf_types(e)]
    return [t]


def _leaves(b: Builder, node: Node) -> list[Node]:
    if isinstance(node.type, Struct):
        parts = [b.emit(REGISTRY["get_item"], (node,), {"index": i}) for i in range(len(node.type.elems))]
        return [leaf for part in parts for leaf in _leaves(b, part)]
    return [node]


def _assemble(b: Builder, t: Type, parts) -> Node:
    if isinstance(t, Struct):
        return b.emit(REGISTRY["make_struct"], tuple(_assemble(b, e, parts) for e in t.elems), {"type": t})
    return next(parts)


def _empty(b: Builder, t: Type) -> Node:
    """Uninitialised memory for the results of all examples.

    Raises:
        InternalError: a result is a tape.
    """
    if isinstance(t, Array):
        zero = Scalar(t.dtype)
        return broadcast_to(Var(b, b.constant(False if t.dtype == "bool" else 0, zero)), shape=t.shape).node
    if isinstance(t, Tape):
        raise InternalError("vmap", "a tape leaves code that runs example by example")
    return b.emit(REGISTRY["undef"], (), {"type": t})


def _stored(b: Builder, place: Node, out: Node, k: Var) -> Node:
    """The results, with that of one example stored in its place."""
    if not isinstance(place.type, Array):
        return out
    return REGISTRY["dynamic_update"](Var(b, place), Var(b, out), k, axis=0).node


__all__ = ["one_by_one", "recursive_version"]
