"""The verifier of typed graphs: what every pass may rely on and must preserve.

It checks that every node has a type, that graphs are closed (an argument is a constant, a parameter of the same graph,
or an earlier application of it), that types agree with the primitives' relations, that operands, parameters and results
of control graphs match, and that no transform is left where none may be.
"""

from __future__ import annotations

from ..abstract.batched import batched_type
from ..abstract.types import Scalar, Struct, Type, leaves, tuple_of
from ..utils.errors import CompileError, InternalError
from .node import Apply, Constant, Graph, Node, Parameter
from .prim import Primitive
from .rewrite import inner_graphs

TRANSFORMS = ("value_and_grad", "vmap", "jvp", "vjp", "jacobian", "custom_vjp", "checkpoint", "matrix_function")
"""Primitives that ask for a program transformation; `ad.expand` leaves none."""


def verify(graph: Graph, where: str, transforms: bool = True) -> Graph:
    """Check a typed graph and everything inside it.

    Args:
        graph: the graph.
        where: the pass that made it, which an error names.
        transforms: whether transforms (`value_and_grad`, `vmap`, ...) may still occur.

    Returns:
        The same graph.

    Raises:
        InternalError: an invariant is broken.
    """
    seen: set[Graph] = {graph}
    stack = [graph]
    while stack:
        top = stack.pop()
        _graph(top, where, transforms)
        for node in top.nodes:
            for inner in inner_graphs(node):
                if inner not in seen:
                    seen.add(inner)
                    stack.append(inner)
    return graph


def _fail(where: str, graph: Graph, message: str):
    raise InternalError(where, f"in {graph.name}: {message}", text_of(graph))


def text_of(graph: Graph) -> str:
    """The text of a graph for an error report; a plain listing where the graph is too broken to be printed."""
    try:
        from .text import to_text

        return to_text(graph)
    except Exception:
        names: dict[Node, str] = {p: f"%{p.name}" for p in graph.params}
        lines = [f"fn {graph.name}({', '.join(f'{names[p]}: {p.type}' for p in graph.params)})"]
        for i, node in enumerate(graph.nodes):
            args = ", ".join(names.get(a, repr(a)) for a in node.args)
            names[node] = f"%{i}"
            lines.append(f"  %{i}: {node.type} = {getattr(node.fn, 'name', node.fn)}({args})")
        lines.append(f"  return {names.get(graph.output, repr(graph.output))}")
        return "\n".join(lines)


def _graph(graph: Graph, where: str, transforms: bool) -> None:
    known: set[Node] = set(graph.params)
    for param in graph.params:
        if param.graph is not graph:
            _fail(where, graph, f"parameter {param.name} belongs to {param.graph.name}")
        if not isinstance(param.type, Type):
            _fail(where, graph, f"parameter {param.name} has no type")
    for node in graph.nodes:
        label = f"{getattr(node.fn, 'name', node.fn)} at {node.origin.loc or 'no location'}"
        if not isinstance(node, Apply) or node.graph is not graph:
            _fail(where, graph, f"{label}: is not an application of this graph")
        if node in known:
            _fail(where, graph, f"{label}: is listed twice")
        for i, arg in enumerate(node.args):
            _argument(graph, where, f"{label}: argument {i}", arg, known)
        if not isinstance(node.type, Type):
            _fail(where, graph, f"{label}: has no type")
        problem = problem_of(node, transforms)
        if problem:
            _fail(where, graph, f"{label}: {problem}")
        known.add(node)
    _argument(graph, where, "the output", graph.output, known)


def _argument(graph: Graph, where: str, what: str, arg: Node, known: set[Node]) -> None:
    if not isinstance(arg.type, Type):
        _fail(where, graph, f"{what} has no type")
    if isinstance(arg, Constant) or arg in known:
        return
    if isinstance(arg, Parameter):
        _fail(where, graph, f"{what} is parameter {arg.name} of {arg.graph.name}: the graph is not closed")
    if isinstance(arg, Apply) and arg.graph is graph:
        _fail(where, graph, f"{what} ({getattr(arg.fn, 'name', arg.fn)}) is defined later, or not at all")
    _fail(where, graph, f"{what} belongs to another graph")


def problem_of(node: Apply, transforms: bool = True) -> str | None:
    """What is wrong with an application; None if nothing is."""
    types = tuple(a.type for a in node.args)
    if isinstance(node.fn, Graph):
        return _call("the callee", node.fn, types, node.type)
    if not isinstance(node.fn, Primitive):
        return "calls neither a primitive nor a graph"
    for name in node.attrs:
        if name not in node.fn.attr_names:
            return f"has an unknown attribute {name}"
    for name in node.fn.attr_names:
        if name not in node.attrs:
            return f"lacks the attribute {name}"
    if node.fn.name in TRANSFORMS and not transforms:
        return "is a transform that was not expanded"
    problem = CONTROL[node.fn.name](node, types) if node.fn.name in CONTROL else None
    if problem or node.fn.infer_rule is None:
        return problem
    try:
        expected = node.fn.infer_rule(*types, **node.attrs)
    except (CompileError, InternalError, AssertionError) as error:
        return f"does not type: {error}"
    return None if expected == node.type else f"has type {node.type} where its relation says {expected}"


def _call(what: str, graph: Graph, types: tuple[Type, ...], result: Type | None) -> str | None:
    params = tuple(p.type for p in graph.params)
    if params != types:
        return f"{what} {graph.name} takes ({_list(params)}) and is given ({_list(types)})"
    if result is not None and graph.output.type != result:
        return f"{what} {graph.name} returns {graph.output.type} where {result} is needed"
    return None


def _list(types: tuple[Type, ...]) -> str:
    return ", ".join(map(str, types))


def _decides(t: Type) -> bool:
    return getattr(t, "dtype", None) == "bool" and getattr(t, "shape", None) == ()


def _carried(body: Graph, carried: tuple[Type, ...]) -> str | None:
    t = body.output.type
    if not isinstance(t, Struct) or t.elems != carried:
        return f"the body {body.name} returns {t} where ({_list(carried)}) is carried"
    return None


def _cond(node: Apply, types) -> str | None:
    if not _decides(types[0]):
        return f"the condition is a {types[0]}"
    then, orelse = node.attrs["then"], node.attrs["orelse"]
    return _call("the branch", then, types[1:], node.type) or _call("the branch", orelse, types[1:], node.type)


def _while(node: Apply, types) -> str | None:
    condition, body, n = node.attrs["cond"], node.attrs["body"], node.attrs["carried"]
    if not _decides(condition.output.type):
        return f"the condition is a {condition.output.type}"
    return (
        _call("the condition", condition, types, None)
        or _call("the body", body, types, None)
        or _carried(body, types[:n])
    )


def _for(node: Apply, types) -> str | None:
    body, n = node.attrs["body"], node.attrs["carried"]
    if any(not isinstance(t, Scalar) or t.dtype != "int64" for t in types[:3]):
        return f"the range is of ({_list(types[:3])})"
    index = body.params[0].type if body.params else types[0]
    return _call("the body", body, (index, *types[3:]), None) or _carried(body, types[3 : 3 + n])


def _transform(node: Apply, types) -> str | None:
    return _call("the transformed", node.attrs["graph"], types, None)


def _vmap(node: Apply, types) -> str | None:
    graph, size = node.attrs["graph"], node.attrs["size"]
    if len(node.attrs["batched"]) != len(graph.params):
        return f"{len(node.attrs['batched'])} flags for {len(graph.params)} arguments"
    wanted = tuple(batched_type(p.type, size, f) for p, f in zip(graph.params, node.attrs["batched"]))
    return None if wanted == types else f"is given ({_list(types)}) where batching needs ({_list(wanted)})"


def _jacobian(node: Apply, types) -> str | None:
    graph = node.attrs["graph"]
    ends = tuple(p.type for p in graph.params[-node.attrs["seeds"] :])
    return _call("the linear", graph, (*types, *ends), None)


def _derivative(node: Apply, types) -> str | None:
    """`jvp` and `vjp`: the graph's arguments are followed by tangents of some of them, or by cotangents of the result."""
    graph, n = node.attrs["graph"], len(node.attrs["graph"].params)
    result = graph.output.type
    results = tuple(t for t in leaves(result) if t.is_float)
    wanted = results if node.fn.name == "vjp" else tuple(graph.params[i].type for i in node.attrs["wrt"])
    if types[n:] != wanted:
        return f"is given tangents ({_list(types[n:])}) where ({_list(wanted)}) belong"
    return _call("the transformed", graph, types[:n], None)


def _custom(node: Apply, types) -> str | None:
    graph, rule = node.attrs["graph"], node.attrs["rule"]
    results = tuple(leaves(graph.output.type))
    results += tuple(t for t in results if t.is_float)
    cotangents = tuple_of(*[types[i] for i in node.attrs["wrt"]])
    return _call("the function", graph, types, node.type) or _call("the rule", rule, (*types, *results), cotangents)


def _matrix_function(node: Apply, types) -> str | None:
    a, f = types[0], node.attrs["f"]
    if any(t != a for t in types[1 : 1 + node.attrs["slots"]]):
        return "has directions that are not as its matrix"
    values = type(a)(a.dtype, a.shape[:2])
    return _call("the function", f, (values, *types[1 + node.attrs["slots"] :]), values)


CONTROL = {
    "cond": _cond,
    "while_loop": _while,
    "for_loop": _for,
    "value_and_grad": _transform,
    "vmap": _vmap,
    "jacobian": _jacobian,
    "jvp": _derivative,
    "vjp": _derivative,
    "custom_vjp": _custom,
    "checkpoint": _transform,
    "matrix_function": _matrix_function,
}
"""Checks of the control primitives that their relations do not include: the interfaces of their graphs."""
