"""The parts of a request for a transform: a function specialised for some arguments, and what it is differentiated by.

A request is one node with the typed graph of the function, which `ad.expand` replaces. The types of its results follow
from the types of the arguments, so nothing is inferred twice.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from ...abstract.types import Array, Data, Ref, Scalar, Type, has_tangent, holds_unions, tangent, tuple_of
from ...ir.node import Graph, Node
from ...prims.ops.control import value_and_grad as P_value_and_grad
from ...prims.ops.list_functions import whole
from ...prims.ops.registered import Operator
from ...prims.ops.structure import get_item
from ...utils.attributes import has_own, own_attribute
from ...utils.errors import GradError, TypeError_, nearest
from ...utils.source import Origin
from ..engine.engine import Ambient, Engine
from ..engine.frames import Frame, Specialisation, SpecialisationSource
from ..engine.unions import single_float
from ..language.calls import call_value
from ..objects.references import refuse as refuse_references
from ..values.treedef import TreeDef, describe, rebuild, tree_structure
from ..values.values import NONE_VAL, Bound, ClosureVal, Derived, Dyn, Listed, Seq, Static, TaggedUnion, Val


async def specialise_call(
    engine: Engine,
    frame: Frame,
    fn: Val,
    args: list[Val],
    kwargs: dict[str, Val],
    origin: Origin,
    site,
    context: Ambient,
    dynamic: tuple[bool, ...] = (),
    strict: bool = True,
    sized: bool = False,
) -> tuple[Specialisation, list[Node]]:
    """The typed graph of `fn(*args, **kwargs)` as a function of its leaves, and those leaves.

    Args:
        engine, frame: as everywhere.
        fn: any callable value.
        args, kwargs: its arguments.
        origin, site: the place of the call.
        context: the context of the call.
        dynamic: for each argument, whether known numbers in it become run-time values (to be differentiated).
        strict: whether every part of the result must be of one type.
        sized: whether it may return arrays whose sizes it decides itself.

    Raises:
        TypeError_: it returns one, and may not.
    """
    names = tuple(kwargs)
    values = [fn, *args, *kwargs.values()]
    refuse_references(engine, frame, values, "cannot be used in what is differentiated or batched")

    async def run(inner: Frame, parts: list[Val]) -> Val:
        callee, *rest = parts
        positional, named = rest[: len(args)], dict(zip(names, rest[len(args) :], strict=True))
        result = await call_value(engine, inner, callee, positional, named, origin, site)
        return await without_unions(engine, inner, result, origin, strict)

    flags = (*dynamic, *[False] * (len(args) - len(dynamic)), *[False] * len(names))
    keep = (True, *[not flag for flag in flags])
    label = fn.graph.name if isinstance(fn, ClosureVal) else getattr(getattr(fn, "value", None), "__name__", "f")
    source = SpecialisationSource(
        ("call", len(args), names, site), label, ["f", *argument_names(engine, fn, len(args)), *names], origin
    )
    spec, nodes = engine.specialise(frame, source, values, run, origin, context, keep, leaf_result=True)
    await spec.known
    if not sized and holds_sized(spec.returns):
        raise TypeError_(
            "the function to transform returns an array whose size a value inside of it decides, which only what `grad`, `jvp` and "
            "`vjp` differentiate may do; keep the size (np.where(mask, x, 0.0) for x[mask]), return a number made of the array, or "
            "make the array outside",
            origin,
        )
    return spec, nodes


def holds_sized(treedef: TreeDef) -> bool:
    """Whether a function returns an array whose size it decides itself."""
    return treedef.tag == "sized" or any(map(holds_sized, treedef.parts))


async def without_unions(engine: Engine, frame: Frame, result: Val, origin: Origin, strict: bool) -> Val:
    """Check that the result of a function to transform is of one type, which derivatives and batches need.

    Raises:
        GradError: a part of it is a float or something else, by what happens at run time.
    """
    if isinstance(result, Seq):
        parts = [await without_unions(engine, frame, e, origin, strict) for e in result.elems]
        return Seq(result.kind, tuple(parts), result.fields, result.cls)
    single = await single_float(engine, frame, result)
    leaves: list[Node] = []
    tree_structure(single, leaves, capture=frame.captured)
    if strict and isinstance(single, TaggedUnion) and len(leaves) > 1:
        raise GradError(f"the function to transform returns {describe(single)}; make the results alike", origin)
    return single


def argument_names(engine: Engine, fn: Val, count: int) -> list[str]:
    """Names for the positional arguments of a callable, as far as they are known."""
    graph = graph_of(engine, fn)
    if graph is not None and graph.signature is not None and len(graph.signature.names) >= count:
        return list(graph.signature.names[:count])
    return [f"x{i}" for i in range(count)]


def graph_of(engine: Engine, fn: Val) -> Graph | None:
    """The parsed graph of a callable that has source."""
    if isinstance(fn, ClosureVal):
        return fn.graph
    if isinstance(fn, Derived):
        return graph_of(engine, fn.function)
    if isinstance(fn, Bound) and not isinstance(fn.function, str):
        return graph_of(engine, Static(fn.function))
    if isinstance(fn, Static):
        value = fn.value
        inner = own_attribute(value, "__relay_derived__")
        if inner is not None:
            return graph_of(engine, Static(inner[1]))
        function = own_attribute(value, "__relay_function__") or own_attribute(value, "__relay_model__") or value
        if isinstance(function, types.MethodType):
            function = function.__func__
        if isinstance(function, types.FunctionType):
            return engine.parse(function)
        if hasattr(type(function), "__relay_graph__"):
            return function.__relay_graph__()
        if function is not value:
            return graph_of(engine, Static(function))
    return None


def parameter_names(engine: Engine, fn: Val) -> list[str]:
    """The names by which arguments of a callable can be given; of a method without `self`."""
    graph = graph_of(engine, fn)
    names = list(graph.signature.names) if graph is not None and graph.signature is not None else []
    if isinstance(operator := getattr(fn, "value", None), Operator):
        return [*operator.parameters, *operator.attributes]
    while isinstance(fn, Derived):
        fn = fn.function
    value: Any = fn.value if isinstance(fn, Static) else None
    while has_own(value, "__relay_derived__") or has_own(value, "__relay_function__"):
        value = value.__relay_derived__[1] if has_own(value, "__relay_derived__") else value.__relay_function__
    bound = isinstance(value, types.MethodType) or (isinstance(fn, Bound) and not isinstance(fn.function, str))
    return names[1:] if bound else names


def static_names(fn: Val) -> tuple[str, ...]:
    """The parameters of a decorated function, or of a transform of one, that its `static` names."""
    while isinstance(fn, Derived):
        fn = fn.function
    return getattr(fn.value, "static", ()) if isinstance(fn, Static) and has_own(fn.value, "__relay_function__") else ()


def named_positions(engine: Engine, fn: Val, names: list[str]) -> int:
    """How many of the parameters of a callable with these names can be given by position, not counting `*args`."""
    graph = graph_of(engine, fn)
    s = graph.signature if graph is not None else None
    return len(names) - (len(s.names) - s.positional) if s is not None else len(names)


def positions(engine: Engine, fn: Val, wrt: Any, count: int) -> tuple[list[int], bool]:
    """The indices of the arguments that `wrt` names, and whether it is a single one.

    Raises:
        GradError: there is no such argument, or it cannot be given by position.
    """
    single = not isinstance(wrt, tuple | list)
    names = parameter_names(engine, fn)
    out: list[int] = []
    for item in [wrt] if single else wrt:
        if isinstance(item, str):
            if item not in names:
                raise GradError(f"the function has no parameter '{item}'{nearest(item, names)}")
            index = names.index(item)
            if index >= named_positions(engine, fn, names):
                graph = graph_of(engine, fn)
                assert graph is not None
                signature = graph.signature
                if signature.names.index(item) in (signature.vararg, signature.kwarg):
                    raise GradError(f"'{item}' collects arguments; name the number of the one to differentiate by")
                raise GradError(
                    f"'{item}' is keyword-only; grad differentiates by what can be given by position: drop the *"
                )
            out.append(index)
        elif isinstance(item, int) and not isinstance(item, bool):
            index = item + count if item < 0 else item
            if not 0 <= index < count:
                raise GradError(f"wrt={item}: the function is called with {count} positional arguments")
            out.append(index)
        else:
            raise GradError(f"wrt={item!r}: name parameters by position or name")
    return out, single


async def differentiate(
    engine: Engine, frame: Frame, fn: Val, args, kwargs, wrt: Any, has_aux: bool, origin: Origin, site
) -> tuple[Val, Val]:
    """The value (or value and auxiliary) of `fn(*args)` and its gradient by `wrt`.

    Raises:
        GradError: the result is no float scalar, or an argument has no derivative.
    """
    graph = graph_of(engine, fn)
    names = parameter_names(engine, fn)
    # Convert keyword arguments to positional ones where possible.
    named = named_positions(engine, fn, names)
    for position in range(len(args), named):
        if names[position] in kwargs and position == len(args):
            args = [*args, kwargs.pop(names[position])]
    chosen, single = positions(engine, fn, wrt, len(args))
    dynamic = tuple(i in chosen for i in range(len(args)))
    for index in chosen:
        if not (0 <= index < len(args)):
            raise GradError(f"the argument '{names[index]}' to differentiate by was not given")
        require_differentiable(args[index], names[index] if index < named else f"{index}")
    spec, nodes = await specialise_call(
        engine, frame, fn, args, kwargs, origin, site, frame.context, dynamic, not has_aux
    )
    # Which leaves of the callee's parameters belong to the chosen arguments.
    counts = [leaf_count(frame, fn, True)]
    counts += [leaf_count(frame, a, not d) for a, d in zip(args, dynamic, strict=True)]
    starts = [sum(counts[: i + 1]) for i in range(len(args))]
    indices: dict[int, list[int]] = {}
    for index in dict.fromkeys(chosen):
        span = range(starts[index], starts[index] + counts[index + 1])
        indices[index] = [i for i in span if has_tangent(nodes[i].type)]
        refuse_unions(nodes[i].type for i in indices[index])
    flat = [i for group in indices.values() for i in group]
    # Called from Python, the transform has no place of its own: its errors point at what the function returns.
    place = origin
    if origin.loc is None and graph is not None:
        place = graph.output.origin if graph.output.origin.loc else graph.origin
    value, grads = emit_value_and_grad(engine, frame, spec, nodes, flat, has_aux, place)
    by_leaf = {i: whole_gradient(engine, frame, nodes[i], g) for i, g in zip(flat, grads, strict=True)}
    results = []
    for index in chosen:
        leaves: list[Node] = []
        treedef = tree_structure(args[index], leaves, False, frame.captured)
        gradients = [by_leaf.get(starts[index] + k) for k in range(len(leaves))]
        results.append(gradient_value(treedef, iter(gradients)))
    return value, results[0] if single else Seq("tuple", tuple(results))


def leaf_count(frame: Frame, value: Val, keep_constants: bool) -> int:
    nodes: list[Node] = []
    tree_structure(value, nodes, keep_constants, frame.captured)
    return len(nodes)


def require_differentiable(value: Val, name: str) -> None:
    """Refuse integer arguments and values that are not numbers.

    Raises:
        GradError: the value is an integer, a model, or no number.
    """
    if isinstance(value, Dyn) and isinstance(value.type, Scalar | Array) and not value.type.is_float:
        what = str(value.type)
        instead = (
            "a float (1.0 instead of 1)" if isinstance(value.type, Scalar) else "a float array (x.astype(np.float64))"
        )
        raise GradError(f"cannot differentiate by '{name}', which is {what}; pass {instead}")
    if isinstance(value, Dyn) and isinstance(value.type, Ref):
        raise GradError(f"'{name}' is a model: write relay.grad(model, loss, args)")
    if isinstance(value, Static) and value.value is not None:
        raise GradError(f"cannot differentiate by '{name}', which is no number")
    leaves: list[Node] = []
    tree_structure(value, leaves, capture=lambda closure: ())
    # With the structures in the types, there is a gradient of the same structure, with None for everything.
    refuse_data(
        [leaf.type for leaf in leaves if not has_tangent(leaf.type)], f"by '{name}', in which there are no floats,"
    )


def refuse_data(types: list[Type], what: str) -> None:
    """Refuse derivatives by or of trees of any shape; the program is then compiled with their structure in its types.

    Raises:
        GradError: one of the types is such a tree.
    """
    for t in types:
        if isinstance(t, Data):
            made = f"a {t.family.name} made at run time"
            raise GradError(f"a derivative {what} goes through {made}; the gradient of that is not supported")


def refuse_unions(types: Iterable[Type]) -> None:
    """Refuse derivatives by, or of, lists of which an entry may be a float or something else.

    Raises:
        GradError: one of the types is of such a list.
    """
    for t in types:
        if holds_unions(t):
            raise GradError(
                f"derivatives by or of {t}, whose entries may be of several types, are not compiled; make them floats: "
                "[float(x) for x in xs]"
            )


def whole_gradient(engine: Engine, frame: Frame, node: Node, cotangent: Node) -> Node:
    """The gradient by a leaf in the form for users: trees and lists include their zeros."""
    return whole(frame.builder, engine.functions, node, cotangent)


def gradient_value(treedef: TreeDef, gradients) -> Val:
    """The gradient of a tree: the tree's structure, with gradients (nodes or values) in place of floats, and None for
    everything else.

    Raises:
        GradError: the tree holds a list of numbers that are no floats.
    """
    if treedef.tag == "dyn":
        node = next(gradients)
        return NONE_VAL if node is None else Dyn(node) if isinstance(node, Node) else node
    if treedef.tag == "listed":
        node = next(gradients)
        if node is None:
            raise GradError(f"cannot differentiate by a {treedef}; pass a list of floats")
        return Listed(Dyn(node)) if isinstance(node, Node) else node
    if treedef.tag == "seq":
        return Seq(
            treedef.info[0],
            tuple(gradient_value(p, gradients) for p in treedef.parts),
            treedef.info[1],
            treedef.info[2],
        )
    for part in treedef.parts:
        gradient_value(part, gradients)
    return NONE_VAL


def emit_value_and_grad(
    engine: Engine, frame: Frame, spec: Specialisation, nodes: list[Node], wrt: list[int], has_aux: bool, origin: Origin
) -> tuple[Val, list[Node]]:
    """Emit the request for a value and gradients by the parameters `wrt` of a specialisation.

    Raises:
        GradError: the result has no scalar float to differentiate.
    """
    leaves = [leaf.info for leaf in spec.returns.leaves()]
    value_treedef = spec.returns
    if has_aux:
        if spec.returns.tag != "seq" or len(spec.returns.parts) != 2:
            raise GradError(
                f"has_aux=True: the function must return (value, aux), but it returns {spec.returns}", origin
            )
        value_treedef = spec.returns.parts[0]
    require_scalar(value_treedef, origin)
    operands = list(nodes) + [frame.implicit(key, p.type, p.name) for key, p in spec.implicit.items()]
    builder = frame.at(origin)
    output = leaves[0] if len(leaves) == 1 else tuple_of(*leaves)
    grads_type = tuple_of(*[tangent(operands[i].type) for i in wrt])
    node = builder.graph.apply(
        P_value_and_grad,
        *operands,
        attrs={**P_value_and_grad.attr_defaults, "graph": spec.graph, "wrt": tuple(wrt), "has_aux": len(leaves) > 1},
        type=tuple_of(output, grads_type),
        origin=origin,
    )
    value = builder.emit(get_item, (node,), {"index": 0})
    grads = builder.emit(get_item, (node,), {"index": 1})
    parts = (
        [value] if len(leaves) == 1 else [builder.emit(get_item, (value,), {"index": i}) for i in range(len(leaves))]
    )
    gradients: list[Node] = [builder.emit(get_item, (grads,), {"index": i}) for i in range(len(wrt))]
    return rebuild(spec.returns, iter(parts)), gradients


def require_scalar(treedef: TreeDef, origin: Origin) -> None:
    """Check that the result of a function to differentiate is one float.

    Raises:
        GradError: it is not.
    """
    t = treedef.info if treedef.tag == "dyn" else None
    if isinstance(t, Scalar | Array) and t.is_float and t.shape == ():
        return
    if isinstance(t, Array):
        shape = "(" + ", ".join(map(str, t.shape)) + ("," if len(t.shape) == 1 else "") + ")"
        raise GradError(
            f"grad needs a function with a scalar float result, but the result is an array of {t.dtype} with shape {shape}; "
            "reduce it (np.sum), or use jacobian, jacrev or vjp",
            origin,
        )
    raise GradError(
        f"grad needs a function with a scalar float result, but the result is {treedef}; use jacobian, jacrev or vjp",
        origin,
    )
