"""Models and functions as typed graphs of their inputs and their arrays, and graphs with known arrays.

f(x) with parameters w  =>  f(x, w)  =>  f(x), with all that w alone determines computed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..abstract.types import Array, Ref, Scalar, Type, numpy_dtype, tuple_of
from ..ad.expand import expand
from ..api import Relay
from ..infer.engine.program import Program
from ..infer.values.treedef import TreeDef
from ..ir.build import Builder
from ..ir.node import Apply, Constant, Graph, Node
from ..ir.prim import REGISTRY, Primitive
from ..ir.rewrite import Effects, emit_like, lookup
from ..model.model import Model, RelayModel
from ..opt.pipeline import optimize
from ..pipeline import Compiled, compile_program
from ..utils.errors import LoweringError, TypeError_

PURE = ("elementwise", "injective", "reduce", "opaque")


@dataclass(frozen=True)
class Subject:
    """What is quantised, for inputs of certain types.

    Attributes:
        graph: its parameters are the inputs, then the arrays.
        count: how many inputs there are.
        names: of the arrays.
        arrays: their values.
        result: the treedef of the result.
    """

    graph: Graph
    count: int
    names: tuple[str, ...]
    arrays: tuple[np.ndarray, ...]
    result: TreeDef


def callee(target: Any, args: tuple) -> tuple[Relay, tuple]:
    """The compiled function that a call of a model or function is, and its arguments.

    Raises:
        TypeError_: it is neither.
    """
    if isinstance(target, Model):
        return target.as_function(*args)
    if isinstance(target, Relay):
        return target, args
    if isinstance(target, RelayModel):
        raise TypeError_("quantize needs a model with parameters: quantize(relay.create_model(f), ...)")
    if callable(target):
        return Relay(target), args
    raise TypeError_(f"quantize takes a model or a function, not {type(target).__name__}")


def signature(target: Any, args: tuple) -> tuple[Any, list]:
    """The key of a call, and the leaves of its inputs."""
    function, call = callee(target, args)
    leaves: list = []
    key, _, _ = function._signature(call, {}, leaves)
    return key, [leaf for leaf in leaves if not isinstance(leaf, Model)]


def subject(target: Any, args: tuple, types: Sequence[Type] | None = None) -> Subject:
    """The graph of a model or function.

    Args:
        target: the model or function.
        args: of a call.
        types: of the inputs, in place of theirs: arrays and numbers.

    Raises:
        TypeError_: it cannot be quantised.
        LoweringError: it has effects.
    """
    function, call = callee(target, args)
    leaves: list = []
    _, treedefs, keywords = function._signature(call, {}, leaves)
    if types is not None:
        treedefs = [*treedefs[: len(treedefs) - len(types)], *(TreeDef("dyn", t) for t in types)]
    program = function._infer(treedefs, keywords)
    values = list(leaves)
    for hidden in program.hidden:
        values.append(hidden.fetch(values))
    graph = optimize(expand(optimize(program.graph)))
    others = Effects().of_graph(graph) - {"read", "raise", "mark"}
    if others:
        raise LoweringError("only functions without effects can be quantised: this one prints, or changes a model")
    return _without_references(graph, values, len(leaves), program.result)


def _without_references(graph: Graph, values: list, given: int, result: TreeDef) -> Subject:
    """A graph whose models and global arrays are parameters.

    Raises:
        TypeError_: an input is neither array nor number.
        LoweringError: a model is read inside of a loop.
    """
    new = Graph(graph.name, None, graph.origin)
    env: dict[Node, Node] = {}
    parts: dict[Node, list[Node]] = {}
    names: list[str] = []
    arrays: list[np.ndarray] = []
    held = [
        (p, v)
        for k, (p, v) in enumerate(zip(graph.params, values, strict=True))
        if k >= given or isinstance(p.type, Ref)
    ]
    for param in graph.params[:given]:
        if not isinstance(param.type, Ref):
            if not isinstance(param.type, Array | Scalar):
                raise TypeError_(f"quantize: inputs are arrays and numbers, and this is {param.type}", param.origin)
            env[param] = new.add_parameter(param.name, param.type, param.origin)
    count = len(new.params)
    for param, value in held:
        if isinstance(param.type, Ref):
            own = zip(param.type.names, param.type.elems, value.arrays, strict=True)
            parts[param] = [new.add_parameter(name.replace(".", "_"), t, param.origin) for name, t, _ in own]
            names += param.type.names
            arrays += value.arrays
        else:
            env[param] = new.add_parameter(param.name, param.type, param.origin)
            names.append(param.name)
            arrays.append(value)
    builder = Builder(new, graph.origin)
    for node in graph.nodes:
        if isinstance(node.fn, Primitive) and node.fn.name == "ref_read" and node.args[0] in parts:
            env[node] = parts[node.args[0]][node.attrs["index"]]
            continue
        if any(a in parts for a in node.args):
            raise LoweringError("a model that is read inside of a loop or branch cannot be quantised", node.origin)
        env[node] = emit_like(builder, node, [lookup(env, a) for a in node.args])
    new.output = lookup(env, graph.output)
    return Subject(new, count, tuple(names), tuple(map(np.asarray, arrays)), result)


def static_nodes(graph: Graph, count: int) -> set[Node]:
    """What depends on no input: parameters from `count` on, constants, and what is computed from these alone."""
    found: set[Node] = set(graph.params[count:])
    for node in graph.nodes:
        if isinstance(node.fn, Primitive) and node.fn.kind in PURE and node.args:
            if all(isinstance(a, Constant) or a in found for a in node.args):
                found.add(node)
    return found


def evaluated(node: Apply, args: Sequence[Constant]) -> np.ndarray:
    """The value of an application of constants."""
    value = node.fn.reference(*(a.value for a in args), **node.attrs)
    return np.asarray(value, numpy_dtype(node.type.dtype))


def constant_of(value: Any, type_: Any = None) -> Constant:
    """An array, or a number, as a constant."""
    value = np.asarray(value)
    return Constant(value if value.shape or type_ is None else value[()], type_ or Array(value.dtype.name, value.shape))


def with_arrays(graph: Graph, count: int, arrays: Sequence[np.ndarray], outputs: Sequence[Node] = ()) -> Graph:
    """A graph of the inputs alone: what depends on none is computed now.

    Args:
        graph: its parameters are inputs, then arrays.
        count: of the inputs.
        arrays: the values of the others.
        outputs: what it returns, as a tuple; its own result where there are none.
    """
    new = Graph(graph.name, None, graph.origin)
    builder = Builder(new, graph.origin)
    env: dict[Node, Node] = {p: new.add_parameter(p.name, p.type, p.origin) for p in graph.params[:count]}
    for param, value in zip(graph.params[count:], arrays, strict=True):
        env[param] = constant_of(value, param.type)
    static = static_nodes(graph, count)
    for node in graph.nodes:
        args = [lookup(env, a) for a in node.args]
        if node in static:
            env[node] = constant_of(evaluated(node, args), node.type)  # pyright: ignore[reportArgumentType]  # all are constants
        else:
            env[node] = emit_like(builder, node, args)
    if outputs:
        found = tuple(lookup(env, o) for o in outputs)
        new.output = builder.emit(REGISTRY["make_struct"], found, {"type": tuple_of(*(o.type for o in found))})
    else:
        new.output = lookup(env, graph.output)
    return new


def runner(graph: Graph, executor: str = "native") -> Callable:
    """A function of the leaves that returns the leaves of the result, as a tuple where the result is one."""
    from ..opt.pipeline import plan_memory
    from ..pipeline import executor_of

    graph = optimize(graph)
    return executor_of(plan_memory(graph) if executor == "native" else graph, executor, {})


def compiled(graph: Graph, result: TreeDef, executor: str, options: Mapping[str, Any]) -> Compiled:
    """A compiled program of the inputs' leaves."""
    return compile_program(Program(graph, result, [], []), executor, dict(options), keep=True)


__all__ = [
    "Subject",
    "compiled",
    "constant_of",
    "evaluated",
    "runner",
    "signature",
    "static_nodes",
    "subject",
    "with_arrays",
]
