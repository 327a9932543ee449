"""Rules run on staged values: a tiny evaluator and a tiny reverse accumulation over straight-line graphs.

The evaluator asserts at every node that the meaning gives what inference promised, so every rule that it runs is
checked too.
"""

from __future__ import annotations

import numpy as np

from myia_relay.abstract.dims import Dim
from myia_relay.abstract.dims import evaluate as evaluate_dim
from myia_relay.abstract.types import Array, Scalar, Struct, numpy_dtype, tangent
from myia_relay.ir.build import Builder, Var, as_type, type_of_constant
from myia_relay.ir.node import Apply, Constant, Graph


def stage(args):
    """A builder, and a parameter for each argument.

    Python numbers, NumPy scalars and arrays become parameters of their types.
    """
    graph = Graph("test")
    builder = Builder(graph)
    return builder, [builder.var(graph.add_parameter(f"x{i}", type_of_constant(a))) for i, a in enumerate(args)]


def assert_has_type(value, type, what=""):
    """Whether a value is just what a type says: kind, dtype, shape."""
    if isinstance(type, Scalar) and type.weak:
        assert isinstance(value, {"bool": bool, "int64": int, "float64": float}[type.dtype]), (what, value, type)
        assert not isinstance(value, np.generic), (what, value, type)
    elif isinstance(type, Scalar):
        assert isinstance(value, np.generic) and value.dtype == numpy_dtype(type.dtype), (what, value, type)
    elif isinstance(type, Array):
        assert isinstance(value, np.ndarray) and value.dtype == numpy_dtype(type.dtype), (what, value, type)
        assert value.shape == type.shape, (what, value.shape, type)
    else:
        raise AssertionError(f"{what}: type {type}")


def coerce(value, type, what):
    """A meaning's result as the executors take it, after a check that dtype and shape are those inferred."""
    assert np.shape(value) == type.shape, (what, np.shape(value), str(type))
    if not isinstance(value, bool | int | float):
        assert np.asarray(value).dtype == numpy_dtype(type.dtype), (what, np.asarray(value).dtype, str(type))
    return as_type(value, type)


def evaluate(graph, args, *outputs: Var):
    """Values of nodes of a straight-line graph."""
    values = {id(p): a for p, a in zip(graph.params, args, strict=True)}

    def read(node):
        return node.value if isinstance(node, Constant) else values[id(node)]

    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [read(a) for a in node.args]
            value = node.fn.reference(*operands, **node.attrs)
            values[id(node)] = value if isinstance(node.type, Struct) else coerce(value, node.type, node.fn.name)
    return [read(o.node) for o in outputs]


def reverse(out: Var, dout, wrt: list[Var]) -> list[Var | None]:
    """Cotangents of `wrt`, appended to the graph of `out`; None where nothing flows."""
    builder = out.builder
    cotangents = {id(out.node): dout}
    for node in reversed(list(builder.graph.nodes)):
        d = cotangents.get(id(node))
        if d is None or not isinstance(node, Apply) or not node.fn.differentiable:
            continue
        assert d.type == node.type, (node.fn.name, str(d.type), str(node.type))
        args = [Var(builder, a) for a in node.args]
        parts = node.fn.vjp_rule(*args, Var(builder, node), d, **node.attrs)
        assert len(parts) == len(args), f"{node.fn.name}: {len(parts)} cotangents for {len(args)} arguments"
        for arg, part in zip(args, parts, strict=True):
            if part is None:
                continue
            part = part if isinstance(part, Var) else arg.const(part)
            assert part.type == tangent(arg.type), f"{node.fn.name}: cotangent {part.type} of a {arg.type}"
            have = cotangents.get(id(arg.node))
            cotangents[id(arg.node)] = part if have is None else have + part
    return [cotangents.get(id(x.node)) for x in wrt]


def run(rule, *args, static=(), **kwargs):
    """What a meaning computes on run-time values: staged, then evaluated node by node, checks raising as they would.

    Args:
        rule: `(b, *args, **kwargs)`.
        *args: numbers and arrays, and tuples or lists of them, which are staged; anything else is passed on.
        static: positions of arguments that are passed as they are.
        **kwargs: passed as they are.

    Returns:
        The value, of exactly the inferred type (asserted).
    """
    graph = Graph("test")
    builder = Builder(graph)
    values = []

    def staged(value):
        if isinstance(value, np.ndarray | np.generic | bool | int | float):
            values.append(value)
            return builder.var(graph.add_parameter(f"x{len(values)}", type_of_constant(value)))
        if isinstance(value, tuple | list):
            return type(value)(staged(v) for v in value)
        return value

    out = rule(builder, *(a if i in static else staged(a) for i, a in enumerate(args)), **kwargs)
    return result_of(graph, values, out)


def result_of(graph, values, out):
    """The Python value of a meaning's result: staged values evaluated, structures part by part."""
    if isinstance(out, tuple | list):
        return type(out)(result_of(graph, values, o) for o in out)
    return execute(graph, values, out) if isinstance(out, Var) else out


def execute(graph, args, out: Var, sizes=None):
    """Evaluate a graph with effects: failed checks raise."""
    values = {id(p): a for p, a in zip(graph.params, args, strict=True)}

    def read(node):
        return node.value if isinstance(node, Constant) else values[id(node)]

    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [read(a) for a in node.args]
            if node.fn.name == "check":
                if not operands[0]:
                    parts = node.attrs["parts"]
                    text = "".join(p if isinstance(p, str) else format(operands[p[0] + 1], p[2]) for p in parts)
                    raise node.attrs["exception"](text)
                continue
            if node.fn.name == "bind_dim":
                (name,) = node.attrs["dim"].symbols()
                sizes = {**(sizes or {}), name: int(operands[0])}
                values[id(node)] = operands[0]
                continue
            attrs = {k: resolve(v, sizes) for k, v in node.attrs.items()}
            if node.fn.name == "dim_size":
                values[id(node)] = attrs["dim"]
                continue
            type = resolve_type(node.type, sizes)
            values[id(node)] = coerce(node.fn.reference(*operands, **attrs), type, node.fn.name)
    value = read(out.node)
    assert_has_type(value, resolve_type(out.type, sizes))
    return value


def resolve(value, sizes):
    """Attributes with their symbolic sizes replaced by numbers, as executors do it."""
    if isinstance(value, tuple):
        return tuple(resolve(v, sizes) for v in value)
    return evaluate_dim(value, sizes.__getitem__) if isinstance(value, Dim) else value


def resolve_type(t, sizes):
    return Array(t.dtype, resolve(t.shape, sizes)) if isinstance(t, Array) else t
