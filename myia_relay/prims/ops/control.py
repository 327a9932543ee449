"""Control: branches, loops, transforms, tapes. Their attributes are closed graphs, and they have no NumPy reference
implementation.

Every executor implements these few; `ad.reverse.control` holds their adjoints.
"""

from __future__ import annotations

import numpy as np

from ...abstract.batched import batched_type
from ...abstract.types import NONE, Array, Scalar, Struct, Tape, Type, has_tangent, leaves, tangent, tuple_of
from ...ir.prim import primitive
from ...utils.errors import InternalError


def _graph_result(graph) -> Type:
    if graph.output.type is None:
        raise InternalError("control", f"graph {graph.name} has no type yet")
    return graph.output.type


@primitive("control")
def cond(condition, *operands, then, orelse):
    """`then(*operands) if condition else orelse(*operands)`; only the taken graph runs.

    Args:
        condition: a bool scalar.
        *operands: what either graph takes; both take all of them.
        then: a closed typed `Graph`.
        orelse: a closed typed `Graph` with the same parameter and result types.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "cond is implemented by the executors")


@cond.infer
def _(condition, *operands, then, orelse):
    return _graph_result(then)


@primitive("control")
def while_loop(*args, cond, body, carried):
    """A loop: while `cond(*carry, *constants)`, `carry = body(*carry, *constants)`. Returns the carried values.

    Args:
        *args: the initial carried values, then loop constants that both graphs take.
        cond: closed graph -> bool scalar.
        body: closed graph -> tuple of the new carried values, of the same types.
        carried: how many of the arguments are carried.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "while_loop is implemented by the executors")


@while_loop.infer
def _(*args, cond, body, carried):
    return tuple_of(*args[:carried])


@primitive("control")
def vector_while(*args, cond, body, carried, lanes):
    """Several `while_loop`s of the same graphs, each with arguments of its own; none of them has an effect.

    The native back end makes it (`opt.loops.unroll_and_jam`), to let them run together.

    Args:
        *args: the arguments of the first loop, then those of the second, ...
        cond: closed graph -> bool scalar.
        body: closed graph -> tuple of the new carried values.
        carried: how many of a loop's arguments are carried.
        lanes: how many loops.

    Returns:
        The carried values of the first loop, of the second, ..., as one tuple.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "vector_while is implemented by the executors")


@vector_while.infer
def _(*args, cond, body, carried, lanes):
    each = len(args) // lanes
    return tuple_of(*(a for k in range(lanes) for a in args[k * each : k * each + carried]))


@primitive("control")
def map_rows(*operands, body, rows, types, widths, counted=False):
    """Arrays that are computed row by row: `body(row, *operands)` gives the numbers of one row.

    The native back end makes it (`opt.kernels.soa_kernels`), to let eight rows run together.

    Args:
        *operands: numbers, and arrays, which the body takes flat.
        body: closed graph of numbers -> tuple of the numbers of a row, of all results one after the other.
        rows: how many.
        types: of the results.
        widths: for each result (b, a): it is `b` blocks of `rows` rows of `a` numbers, in memory.
        counted: whether only the first rows are wanted; their number is then the first operand, which the body does not
            take.

    Returns:
        The results, as a tuple.

    Raises:
        InternalError: always; the native back end implements it.
    """
    raise InternalError("control", "map_rows is implemented by the native back end")


@map_rows.infer
def _(*operands, body, rows, types, widths, counted=False):
    return tuple_of(*types)


@primitive("control")
def distinct(indices, *, size, room):
    """Which positions of an axis are picked, each once and in order, and where among these each pick is.

    Args:
        indices: int64, shape (n,); clamped into range.
        size: of the axis.
        room: how many distinct positions there is room for; at least n.

    Returns:
        int64, shape (room + n + 1,): the positions, padded with zeros; for each index its place among them; their
        number.
    """
    rows, places = np.unique(np.clip(indices, 0, size - 1), return_inverse=True)
    return np.concatenate([rows, np.zeros(room - len(rows), np.int64), places.reshape(-1), [len(rows)]])


@distinct.infer
def _(indices, *, size, room):
    return Array("int64", (room + indices.shape[0] + 1,))


LEAD = {"while_loop": 0, "for_loop": 3}
"""Loops, and how many of their arguments stand before the carried ones."""


@primitive("control")
def for_loop(start, stop, step, *args, body, carried):
    """A counted loop: `for i in range(start, stop, step): carry = body(i, *carry, *constants)`.

    Args:
        start, stop, step: int64 scalars; step is not 0.
        *args: the initial carried values, then loop constants.
        body: closed graph -> tuple of the new carried values.
        carried: how many of the arguments are carried.

    Returns:
        The carried values.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "for_loop is implemented by the executors")


@for_loop.infer
def _(start, stop, step, *args, body, carried):
    return tuple_of(*args[:carried])


@primitive("control")
def value_and_grad(*args, graph, wrt, has_aux=False):
    """The value of `graph(*args)` and its gradient: a pair (value, tuple of gradients), one for each index in `wrt`.

    Inference emits it, `ad.expand` replaces it by the adjoint program; no executor sees it.

    Args:
        *args: arguments of the graph.
        graph: closed typed graph with a float scalar result (Python float, NumPy scalar or 0-d array), or, with
            `has_aux`, a pair of that and an auxiliary value.
        wrt: indices of the arguments to differentiate by.
        has_aux: whether the result is such a pair.

    Raises:
        InternalError: always; it was not expanded.
    """
    raise InternalError("control", "value_and_grad was not expanded")


@value_and_grad.infer
def _(*args, graph, wrt, has_aux=False):
    return tuple_of(_graph_result(graph), tuple_of(*[tangent(args[i]) for i in wrt]))


@primitive("control")
def vmap(*args, graph, batched, size):
    """`graph` on each of `size` examples; every array of the result has a batch axis in front.

    Inference emits it, `ad.expand` replaces it by batched operations; no executor sees it.

    Args:
        *args: arguments of the graph, those that are batched with a batch axis in front of each array in them.
        graph: closed typed graph of one example.
        batched: for each argument whether it has a batch axis; for a structure maybe a tuple, for its parts.
        size: the size of the batch axis, an int or a symbolic dimension.

    Raises:
        InternalError: always; it was not expanded.
    """
    raise InternalError("control", "vmap was not expanded")


@vmap.infer
def _(*args, graph, batched, size):
    return batched_type(_graph_result(graph), size)


def tangent_leaves(t: Type) -> list[Type]:
    """The tangents of a type's leaves, of those that have one, in order."""
    return [tangent(leaf) for leaf in leaves(t) if has_tangent(leaf)]


@primitive("control")
def jvp(*args, graph, wrt):
    """`graph(*args)` and its derivative along a direction: a pair (value, tuple of tangents).

    There is a tangent for each leaf of the value that can have one.

    Inference emits it, `ad.expand` replaces it by the forward program; no executor sees it.

    Args:
        *args: arguments of the graph, then a tangent for each index in `wrt`.
        graph: closed typed graph.
        wrt: indices of float arguments; the others' tangents are zero.

    Raises:
        InternalError: always; it was not expanded.
    """
    raise InternalError("control", "jvp was not expanded")


@jvp.infer
def _(*args, graph, wrt):
    result = _graph_result(graph)
    return tuple_of(result, tuple_of(*tangent_leaves(result)))


@primitive("control")
def vjp(*args, graph, wrt, aloud=False):
    """The cotangents of some arguments of `graph`, for cotangents of its result: a tuple.

    Inference emits it, `ad.expand` replaces it by the adjoint program; no executor sees it.

    Args:
        *args: arguments of the graph, then a cotangent for each leaf of its result that has one.
        graph: closed typed graph.
        wrt: indices of float arguments.
        aloud: whether what it prints is printed: not where it has run before.

    Raises:
        InternalError: always; it was not expanded.
    """
    raise InternalError("control", "vjp was not expanded")


@vjp.infer
def _(*args, graph, wrt, aloud=False):
    return tuple_of(*[tangent(args[i]) for i in wrt])


@primitive("control")
def jacobian(*args, graph, seeds, forward, sparse=None):
    """The matrices of a linear map, for each of its results and each of its seeds.

    It is a tuple, by result of the function that is differentiated.

    Inference emits it, `ad.expand` replaces it by one program for all directions; no executor sees it.

    Args:
        *args: arguments of the graph but the seeds.
        graph: closed typed graph `(*args, *seeds) -> tuple of arrays`, linear in the seeds: a `jvp` or a `vjp` of a
            function.
        seeds: how many there are.
        forward: whether the seeds are tangents of the function's arguments; otherwise they are cotangents of its
            results.
        sparse: an `ad.jacobian.jacobian.Compression`, if only its entries are wanted, as vectors.

    Raises:
        InternalError: always; it was not expanded.
    """
    raise InternalError("control", "jacobian was not expanded")


@jacobian.infer
def _(*args, graph, seeds, forward, sparse=None):
    ends, outs = [p.type for p in graph.params[-seeds:]], graph.output.type.elems
    pairs = [(o, e) for o in outs for e in ends] if forward else [(o, e) for e in ends for o in outs]
    if sparse is None:
        shapes = [(*o.shape, *e.shape) if forward else (*e.shape, *o.shape) for o, e in pairs]
    else:
        shapes = [(len(part.rows),) for row in sparse.parts for part in row]
    return tuple_of(*[Array(o.dtype, shape) for (o, _), shape in zip(pairs, shapes, strict=True)])


@primitive("control")
def custom_vjp(*args, graph, rule, wrt):
    """`graph(*args)`, whose adjoint is `rule` and not what follows from the graph.

    `ad.expand` replaces it by a call of the graph when everything is differentiated.

    Args:
        *args: arguments of the graph.
        graph: closed typed graph.
        rule: closed graph `(*args, *leaves of the result, *cotangents of its float leaves) -> tuple of cotangents`,
            those of the arguments in `wrt`.
        wrt: indices of float arguments.

    Raises:
        InternalError: always; it was not expanded.
    """
    raise InternalError("control", "custom_vjp was not expanded")


@custom_vjp.infer
def _(*args, graph, rule, wrt):
    return _graph_result(graph)


@primitive("control")
def checkpoint(*args, graph):
    """`graph(*args)`, of which reverse mode keeps the arguments alone: it is run again when its adjoint runs.

    `ad.expand` replaces it by a call of the graph when everything is differentiated.

    Raises:
        InternalError: always; it was not expanded.
    """
    raise InternalError("control", "checkpoint was not expanded")


@checkpoint.infer
def _(*args, graph):
    return _graph_result(graph)


@primitive("control")
def matrix_function(a, *args, f, slots, lower):
    """The derivative of order `slots` of `V diag(f(w, *params)) V^T` by the symmetric matrix `a = V diag(w) V^T`, in one order of
    directions `x1`, `x2`, ...; without any, the matrix itself.

        sum over i, j, k, ...  of  f[w_i, w_j, w_k, ...]  P_i x1 P_j x2 P_k ...,    P_i = v_i v_i^T

    with the divided differences of f, which have limits where eigenvalues are equal. The derivative of order n is the sum of these
    over all orders of the directions. `ad.expand` replaces it by ordinary operations when everything is differentiated.

    Args:
        a: (b, n, n), of which one triangle is read.
        *args: the directions, (b, n, n) each, then the parameters of f: scalars, or (b, 1).
        f: closed typed graph of (b, n) and the parameters, elementwise.
        slots: how many directions there are.
        lower: which triangle is read.

    Raises:
        InternalError: always; it was not expanded.

    Source: N. Higham, "Functions of Matrices" (2008), section 3.2 (Daleckii and Krein).
    """
    raise InternalError("control", "matrix_function was not expanded")


@matrix_function.infer
def _(a, *args, f, slots, lower):
    return a


@primitive("struct", differentiable=False)
def undef(*, type):
    """A value of a type that is never read: the placeholder on a path that does not produce one. Costs nothing."""
    return None


@undef.infer
def _(*, type):
    return type


@primitive("elementwise", view=True)
def stop_gradient(x):
    """`x`, of which derivatives know nothing."""
    return x


@stop_gradient.infer
def _(x):
    return x


@stop_gradient.vjp
def _(x, out, dout):
    return (None,)


@primitive("struct", differentiable=False)
def dim_size(*, dim):
    """The run-time value of a symbolic dimension, as an int.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "dim_size is implemented by the executors")


@dim_size.infer
def _(*, dim):
    return Scalar("int64", True)


@primitive("struct", effect="raise", differentiable=False)
def bind_dim(size, *, dim):
    """Gives a symbolic dimension its size, from here on in this graph and the graphs inside it; returns it. It is not negative.

    Types and attributes of later applications mention the dimension. An effect, since these are not among its users.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "bind_dim is implemented by the executors")


@bind_dim.infer
def _(size, *, dim):
    return Scalar("int64", True)


# Tapes: used linearly (each tape value is consumed once), so executors may push and pop in place.


@primitive("struct", differentiable=False)
def tape_new(*, elem, owner=""):
    """An empty tape for entries of type `elem`; `owner` as in `Tape`.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "tape_new is implemented by the executors")


@tape_new.infer
def _(*, elem, owner=""):
    return Tape(elem, owner)


@primitive("struct")
def tape_push(tape, entry):
    """The tape with one more entry. Amortised constant time.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "tape_push is implemented by the executors")


@tape_push.infer
def _(tape, entry):
    return tape


@primitive("struct")
def tape_pop(tape):
    """The pair (tape without its last entry, that entry); the tape is not empty.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("control", "tape_pop is implemented by the executors")


@tape_pop.infer
def _(tape):
    return tuple_of(tape, tape.elem)


__all__ = [
    "NONE",
    "Struct",
    "bind_dim",
    "checkpoint",
    "cond",
    "custom_vjp",
    "dim_size",
    "distinct",
    "for_loop",
    "jacobian",
    "jvp",
    "map_rows",
    "matrix_function",
    "stop_gradient",
    "tape_new",
    "tape_pop",
    "tape_push",
    "tangent_leaves",
    "undef",
    "value_and_grad",
    "vjp",
    "vmap",
    "vector_while",
    "while_loop",
]
