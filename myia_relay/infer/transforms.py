"""Transforms inside of compiled code: `grad(f)(x)` and its kin as nodes of the typed graph.

Inference only writes the request (`value_and_grad`, `vmap` nodes with the typed graph of the function); `ad.expand` carries
it out. The types of the results follow from the types of the arguments, so nothing is inferred twice.
"""

from __future__ import annotations

import types
from collections.abc import Hashable
from typing import Any

from ..abstract.types import NONE, Array, Data, Ref, Scalar, Type, has_tangent, tangent, tuple_of
from ..ir.node import Graph, Node
from ..prims.control import value_and_grad as P_value_and_grad
from ..prims.list_functions import whole
from ..utils.errors import CompileError, GradError, ShapeError, TypeError_, nearest
from ..utils.source import Origin
from .calls import call_value, derived
from .engine import Context, Engine, Source
from .frames import Frame, Specialisation
from .lists import refuse_run_time, refuse_run_time_result
from .structures import from_node, to_python
from .unions import single_float
from .values import (
    NONE_VAL,
    At,
    Bound,
    Choice,
    Closure,
    Derived,
    Dyn,
    Listed,
    Seq,
    Skeleton,
    Static,
    Val,
    describe,
    rebuild,
    skeleton,
)


async def specialise_call(
    engine: Engine,
    frame: Frame,
    fn: Val,
    args: list[Val],
    kwargs: dict[str, Val],
    origin: Origin,
    site,
    context: Context,
    dynamic: tuple[bool, ...] = (),
    strict: bool = True,
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
    """
    names = tuple(kwargs)
    values = [fn, *args, *kwargs.values()]

    async def run(inner: Frame, parts: list[Val]) -> Val:
        callee, *rest = parts
        positional, named = rest[: len(args)], dict(zip(names, rest[len(args) :], strict=True))
        result = await call_value(engine, inner, callee, positional, named, origin, site)
        return await without_unions(engine, inner, result, origin, strict)

    flags = (*dynamic, *[False] * (len(args) - len(dynamic)), *[False] * len(names))
    keep = (True, *[not flag for flag in flags])
    label = fn.graph.name if isinstance(fn, Closure) else getattr(getattr(fn, "value", None), "__name__", "f")
    source = Source(
        ("call", len(args), names, site), label, ["f", *argument_names(engine, fn, len(args)), *names], origin
    )
    spec, nodes = engine.specialise(frame, source, values, run, origin, context, keep, leaf_result=True)
    await spec.known
    return spec, nodes


async def without_unions(engine: Engine, frame: Frame, result: Val, origin: Origin, strict: bool) -> Val:
    """The result of a function to transform: of one type, as derivatives and batches are.

    Raises:
        GradError: a part of it is a float or something else, by what happens at run time.
    """
    if isinstance(result, Seq):
        parts = [await without_unions(engine, frame, e, origin, strict) for e in result.elems]
        return Seq(result.kind, tuple(parts), result.fields, result.cls)
    single = await single_float(engine, frame, result)
    leaves: list[Node] = []
    skeleton(single, leaves, capture=frame.captured)
    if strict and isinstance(single, Choice) and len(leaves) > 1:
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
    if isinstance(fn, Closure):
        return fn.graph
    if isinstance(fn, Derived):
        return graph_of(engine, fn.function)
    if isinstance(fn, Bound) and not isinstance(fn.function, str):
        return graph_of(engine, Static(fn.function))
    if isinstance(fn, Static):
        value = fn.value
        inner = getattr(value, "__relay_derived__", None)
        if inner is not None:
            return graph_of(engine, Static(inner[1]))
        function = getattr(value, "__relay_function__", None) or getattr(value, "__relay_model__", None) or value
        if isinstance(function, types.MethodType):
            function = function.__func__
        if isinstance(function, types.FunctionType):
            return engine.parse(function)
        if function is not value:
            return graph_of(engine, Static(function))
    return None


def parameter_names(engine: Engine, fn: Val) -> list[str]:
    """The names that arguments of a callable may be given by; of a method without `self`."""
    graph = graph_of(engine, fn)
    names = list(graph.signature.names) if graph is not None and graph.signature is not None else []
    while isinstance(fn, Derived):
        fn = fn.function
    value = fn.value if isinstance(fn, Static) else None
    while hasattr(value, "__relay_derived__") or hasattr(value, "__relay_function__"):
        value = value.__relay_derived__[1] if hasattr(value, "__relay_derived__") else value.__relay_function__
    bound = isinstance(value, types.MethodType) or (isinstance(fn, Bound) and not isinstance(fn.function, str))
    return names[1:] if bound else names


def named_positions(engine: Engine, fn: Val, names: list[str]) -> int:
    """How many of the parameters of a callable, which has these names, can be given by position; `*args` not counted."""
    graph = graph_of(engine, fn)
    s = graph.signature if graph is not None else None
    return len(names) - (len(s.names) - s.positional) if s is not None else len(names)


def positions(engine: Engine, fn: Val, wrt: Any, count: int) -> tuple[list[int | str], bool]:
    """The arguments that `wrt` names: indices or keyword names, and whether it is a single one."""
    single = not isinstance(wrt, tuple | list)
    names = parameter_names(engine, fn)
    out: list[int | str] = []
    for item in [wrt] if single else wrt:
        if isinstance(item, str):
            if item not in names:
                raise GradError(f"the function has no parameter '{item}'{nearest(item, names)}")
            index = names.index(item)
            if index >= named_positions(engine, fn, names):
                signature = graph_of(engine, fn).signature
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
    # Keyword arguments that could be positional become so.
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
    flat = [i for group in indices.values() for i in group]
    # Called from Python the transform has no place of its own: its complaints point at what the function returns.
    place = origin
    if origin.loc is None and graph is not None:
        place = graph.output.origin if graph.output.origin.loc else graph.origin
    value, grads = emit_value_and_grad(engine, frame, spec, nodes, flat, has_aux, place)
    by_leaf = {i: whole_gradient(engine, frame, nodes[i], g) for i, g in zip(flat, grads, strict=True)}
    results = []
    for index in chosen:
        leaves: list[Node] = []
        skel = skeleton(args[index], leaves, False, frame.captured)
        gradients = [by_leaf.get(starts[index] + k) for k in range(len(leaves))]
        results.append(gradient_value(skel, iter(gradients)))
    return value, results[0] if single else Seq("tuple", tuple(results))


def leaf_count(frame: Frame, value: Val, keep_constants: bool) -> int:
    nodes: list[Node] = []
    skeleton(value, nodes, keep_constants, frame.captured)
    return len(nodes)


def require_differentiable(value: Val, name: str) -> None:
    """Refuse integer arguments and things that are no numbers."""
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
    skeleton(value, leaves, capture=lambda closure: ())
    # With their structures in their types, there is a gradient of the same structure, with None for everything.
    refuse_data(
        [leaf.type for leaf in leaves if not has_tangent(leaf.type)], f"by '{name}', in which there are no floats,"
    )


def refuse_data(types: list[Type], what: str) -> None:
    """Refuse derivatives by, or of, trees of any shape: the program is then compiled with their structure in its types."""
    for t in types:
        if isinstance(t, Data):
            made = f"a {t.family.name} made at run time"
            raise GradError(f"a derivative {what} goes through {made}; the gradient of that is not supported")


def whole_gradient(engine: Engine, frame: Frame, node: Node, cotangent: Node) -> Node:
    """The gradient by a leaf as users get it: of a tree or a list, with its zeros."""
    return whole(frame.builder, engine.functions, node, cotangent)


def gradient_value(skel: Skeleton, gradients) -> Val:
    """The gradient of a tree: the tree's structure, floats replaced by their gradients (nodes or values), all else by None."""
    if skel.tag == "dyn":
        node = next(gradients)
        return NONE_VAL if node is None else Dyn(node) if isinstance(node, Node) else node
    if skel.tag == "listed":
        node = next(gradients)
        if node is None:
            raise GradError(f"cannot differentiate by a {skel}; pass a list of floats")
        return Listed(Dyn(node)) if isinstance(node, Node) else node
    if skel.tag == "seq":
        return Seq(skel.info[0], tuple(gradient_value(p, gradients) for p in skel.parts), skel.info[1], skel.info[2])
    for part in skel.parts:
        gradient_value(part, gradients)
    return NONE_VAL


def emit_value_and_grad(
    engine: Engine, frame: Frame, spec: Specialisation, nodes: list[Node], wrt: list[int], has_aux: bool, origin: Origin
) -> tuple[Val, list[Node]]:
    """Emit the request for a value and gradients by the parameters `wrt` of a specialisation."""
    from ..prims.structure import get_item

    leaves = [leaf.info for leaf in spec.result.leaves()]
    value_skel = spec.result
    if has_aux:
        if spec.result.tag != "seq" or len(spec.result.parts) != 2:
            raise GradError(
                f"has_aux=True: the function must return (value, aux), but it returns {spec.result}", origin
            )
        value_skel = spec.result.parts[0]
    require_scalar(value_skel, origin)
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
    gradients = [builder.emit(get_item, (grads,), {"index": i}) for i in range(len(wrt))]
    return rebuild(spec.result, iter(parts)), gradients


def require_scalar(skel: Skeleton, origin: Origin) -> None:
    """The result of a function to differentiate is one float."""
    t = skel.info if skel.tag == "dyn" else None
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
        f"grad needs a function with a scalar float result, but the result is {skel}; use jacobian, jacrev or vjp",
        origin,
    )


@derived("grad")
async def call_grad(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    aux = fn.option("has_aux")
    value, grads = await differentiate(
        engine, frame, fn.function, args, dict(kwargs), fn.option("wrt"), aux, origin, site
    )
    return Seq("tuple", (grads, value.elems[1])) if aux else grads


@derived("value_and_grad")
async def call_value_and_grad(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    wrt, aux = fn.option("wrt"), fn.option("has_aux")
    value, grads = await differentiate(engine, frame, fn.function, args, dict(kwargs), wrt, aux, origin, site)
    return Seq("tuple", (value, grads))


def request(transform: str):
    """The handler of a call of `grad` or `value_and_grad` itself, with a function or with a model."""

    async def run(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
        if args and isinstance(args[0], Dyn) and isinstance(args[0].type, Ref):
            return await model_gradient(engine, frame, transform, args, kwargs, origin, site)
        fn, *rest = args
        if isinstance(fn, Dyn | Seq):
            raise GradError(f"{transform}: the first argument must be a function or a model, not {describe(fn)}")
        given = dict(zip(("wrt", "has_aux"), rest, strict=False)) | kwargs
        options = {"wrt": 0, "has_aux": False}
        for key, value in given.items():
            name = {"argnums": "wrt"}.get(key, key)
            if name not in options:
                raise TypeError_(f"{transform}() got an unexpected keyword argument '{key}'{nearest(key, options)}")
            options[name] = to_python(value, f"{transform}: {key}")
        if isinstance(options["wrt"], list):
            options["wrt"] = tuple(options["wrt"])
        return Derived(transform, fn, tuple(sorted(options.items())))

    return run


def parameter_key(spec: Any, name: str) -> Hashable:
    """The implicit key of a hidden parameter."""
    return ("parameter", spec, name)


def read_parameters(frame: Frame, model: Dyn, origin: Origin) -> list[Node]:
    """The arrays of a reference as they are now."""
    from ..prims.effects import ref_read

    builder = frame.at(origin)
    return [builder.emit(ref_read, (model.node,), {"index": i}) for i in range(len(model.type.names))]


async def model_gradient(engine: Engine, frame: Frame, transform: str, args, kwargs, origin: Origin, site) -> Val:
    """`relay.grad(model, loss, args)`: the gradient of a loss by all parameters of a model, as a dict."""
    values = dict(zip(("model", "loss", "args"), args, strict=False)) | kwargs
    missing = {"model", "loss", "args"} - set(values)
    if missing:
        raise TypeError_(f"{transform}(model, loss, args) misses {', '.join(sorted(missing))}")
    model, loss, loss_args = values["model"], values["loss"], values["args"]
    if not isinstance(loss_args, Seq):
        raise TypeError_(f"{transform}(model, loss, args): args must be a tuple of the loss's arguments")
    spec_of_model = model.type.spec
    if not hasattr(spec_of_model, "function"):
        raise GradError(f"{transform}: {spec_of_model} is no model")
    context = Context((*frame.context.models, (spec_of_model.function, spec_of_model)), None, ())
    theta = read_parameters(frame, model, origin)
    scope = frame.scope()
    scope.providers = {parameter_key(spec_of_model, n): node for n, node in zip(model.type.names, theta, strict=True)}
    spec, nodes = await specialise_call(engine, scope, loss, list(loss_args.elems), {}, origin, site, context)
    offset = len(nodes)
    order = {key: offset + i for i, key in enumerate(spec.implicit)}
    keys = [parameter_key(spec_of_model, n) for n in model.type.names]
    used = [order[k] for k in keys if k in order]
    if not used:
        raise GradError(
            f"the loss does not use the model: it never calls {getattr(spec_of_model.function, '__name__', 'it')}",
            origin,
        )
    value, grads = emit_value_and_grad(engine, scope, spec, nodes, used, False, origin)
    by_index = dict(zip(used, grads, strict=True))
    parts = []
    for key, elem, node in zip(keys, model.type.elems, theta, strict=True):
        parts.append(Dyn(by_index[order[key]]) if key in order else zeros(frame, node, elem))
    gradient = Seq("dict", tuple(parts), tuple(model.type.names))
    return gradient if transform == "grad" else Seq("tuple", (value, gradient))


def zeros(frame: Frame, node: Node, type_) -> Dyn:
    """A zero of a parameter's type, for parameters that the loss does not use."""
    from ..ir.prim import REGISTRY

    zero = frame.constant(0.0, Scalar(type_.dtype))
    return Dyn(frame.builder.emit(REGISTRY["broadcast_to"], (zero.node,), {"shape": type_.shape}))


def request_batch(transform: str):
    """The handler of a call of `vmap` or `batch_mean` itself."""

    async def run(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
        fn, *rest = args
        options: dict[str, Any] = {"in_axes": 0} | ({"out_axes": 0} if transform == "vmap" else {})
        for key, value in (dict(zip(options, rest, strict=False)) | kwargs).items():
            if key not in options:
                raise TypeError_(f"{transform}() got an unexpected keyword argument '{key}'{nearest(key, options)}")
            chosen = to_python(value, f"{transform}: {key}")
            options[key] = tuple(chosen) if isinstance(chosen, list) else chosen
        return Derived(transform, fn, tuple(sorted(options.items())))

    return run


def batched_leaves(frame: Frame, args: list[Val], in_axes: Any) -> tuple[list[Val], list[list[bool]], Any]:
    """The arguments with their batch axis first, which of their leaves are batched, and the batch size."""
    from ..ir.prim import REGISTRY

    refuse_run_time(args, "vmap")
    for axis in in_axes if isinstance(in_axes, tuple) else (in_axes,):
        if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
            raise TypeError_(
                f"vmap: in_axes={in_axes!r}: an axis is an int, or None for an argument that is not batched"
            )
    if isinstance(in_axes, tuple):
        if len(in_axes) != len(args):
            raise TypeError_(f"vmap: in_axes has {len(in_axes)} entries for {len(args)} arguments")
        axes = list(in_axes)
    else:
        axes = [in_axes] * len(args)
    size: Any = None
    moved: list[Val] = []
    flags: list[list[bool]] = []
    for position, (arg, axis) in enumerate(zip(args, axes, strict=True)):
        leaves: list[Node] = []
        skel = skeleton(arg, leaves, False, frame.captured)
        out: list[Node] = []
        batched: list[bool] = []
        for node in leaves:
            batched.append(axis is not None)
            if axis is None:
                out.append(node)
                continue
            shape = getattr(node.type, "shape", ())
            if not isinstance(node.type, Array) or not -len(shape) <= axis < len(shape):
                raise ShapeError(f"vmap: argument {position} has no axis {axis}: it is {node.type}")
            place = axis % len(shape)
            if size is not None and shape[place] != size:
                raise ShapeError(f"vmap: the batch sizes differ: {size} and {shape[place]}")
            size = shape[place]
            if place:
                perm = (place, *[i for i in range(len(shape)) if i != place])
                node = frame.builder.emit(REGISTRY["transpose"], (node,), {"perm": perm})
            out.append(node)
        moved.append(rebuild(skel, iter(out)))
        flags.append(batched)
    if size is None:
        raise TypeError_("vmap: no argument is batched; give at least one an axis in in_axes")
    return moved, flags, size


def example_of(frame: Frame, arg: Val, batched: list[bool]) -> Val:
    """A stand-in for one example of a batched argument: leaves with types only."""
    leaves: list[Node] = []
    skel = skeleton(arg, leaves, False, frame.captured)
    stand_ins = []
    for node, flag in zip(leaves, batched, strict=True):
        t = node.type
        if flag:
            t = Array(t.dtype, t.shape[1:]) if len(t.shape) > 1 else Scalar(t.dtype)
        stand_ins.append(Node(t))
    return rebuild(skel, iter(stand_ins))


async def batch(engine: Engine, frame: Frame, fn: Val, args, in_axes: Any, origin: Origin, site) -> tuple[Val, Any]:
    """`vmap(fn)(*args)` with the batch axis of the results first, and the batch size."""
    from ..prims.control import vmap as P_vmap
    from ..prims.structure import get_item

    args, flags, size = batched_leaves(frame, list(args), in_axes)
    examples = [example_of(frame, a, f) for a, f in zip(args, flags, strict=True)]
    dynamic = tuple(True for _ in args)
    spec, _ = await specialise_call(engine, frame, fn, examples, {}, origin, site, frame.context, dynamic)
    operands: list[Node] = []
    skeleton(fn, operands, True, frame.captured)
    batched = [False] * len(operands)
    for arg, flag in zip(args, flags, strict=True):
        skeleton(arg, operands, False, frame.captured)
        batched += flag
    implicit = [frame.implicit(key, p.type, p.name) for key, p in spec.implicit.items()]
    batched += [False] * len(implicit)
    refuse_run_time_result(spec.result, "vmap")
    builder = frame.at(origin)
    attrs = {"graph": spec.graph, "batched": tuple(batched), "size": size}
    node = builder.emit(P_vmap, (*operands, *implicit), attrs)
    count = sum(1 for _ in spec.result.leaves())
    parts = [node] if count == 1 else [builder.emit(get_item, (node,), {"index": i}) for i in range(count)]
    return rebuild(spec.result, iter(parts)), size


@derived("vmap")
async def call_vmap(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    from ..ir.prim import REGISTRY

    if kwargs:
        raise TypeError_("a vmapped function takes positional arguments only")
    result, _ = await batch(engine, frame, fn.function, args, fn.option("in_axes"), origin, site)
    axis = fn.option("out_axes")
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError_(f"vmap: out_axes={axis!r}: it is one int, the place of the batch axis in all results")
    if axis == 0:
        return result
    leaves: list[Node] = []
    skel = skeleton(result, leaves, False, frame.captured)
    moved = []
    for node in leaves:
        rank = len(node.type.shape)
        if not -rank <= axis < rank:
            raise ShapeError(f"vmap: out_axes={axis}: the results have {rank} axes, the batch included")
        order = list(range(1, rank))
        order.insert(axis % rank, 0)
        moved.append(frame.builder.emit(REGISTRY["transpose"], (node,), {"perm": tuple(order)}))
    return rebuild(skel, iter(moved))


@derived("batch_mean")
async def call_batch_mean(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    import numpy as np

    from ..prims.numpy_api import MEANINGS
    from .structures import lift

    result, _ = await batch(engine, frame, fn.function, args, fn.option("in_axes"), origin, site)
    if not isinstance(result, Dyn) or not result.type.is_float or len(result.type.shape) != 1:
        raise TypeError_("batch_mean: the function must return one float")
    return lift(engine, frame, MEANINGS[np.mean](frame.builder, frame.var(result)))


async def at_call(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`relay.at(x)`."""
    (array,) = args
    return At(array)


async def stop_gradient_call(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`stop_gradient(x)` on any tree."""
    from ..prims.control import stop_gradient

    leaves: list[Node] = []
    skel = skeleton(args[0], leaves, True, frame.captured)
    return rebuild(skel, iter([frame.builder.emit(stop_gradient, (n,)) for n in leaves]))


__all__ = [
    "NONE",
    "CompileError",
    "differentiate",
    "from_node",
    "model_gradient",
    "parameter_key",
    "read_parameters",
    "request",
    "specialise_call",
    "stop_gradient_call",
]
