"""Transforms inside compiled code: `grad(f)(x)` and others as nodes of the typed graph.

Inference only emits the request (`value_and_grad`, `vmap` nodes with the typed graph of the function); `ad.expand`
replaces it. The types of the results follow from the types of the arguments, so nothing is inferred twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.types import Array, Data, List, Ref, Scalar, Struct
from ...ir.node import Node
from ...ir.prim import REGISTRY
from ...prims.api.numpy_api import IMPLEMENTATIONS
from ...prims.api.promotion import leading, with_size
from ...prims.ops.control import stop_gradient
from ...prims.ops.control import vmap as P_vmap
from ...prims.ops.structure import get_item
from ...utils.errors import GradError, ShapeError, TypeError_, nearest
from ...utils.source import Origin
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..language.calls import from_sequence
from ..language.registry import derived
from ..objects.leaves import lift, to_option
from ..objects.lists import refuse_run_time, refuse_run_time_result
from ..values.kinds import is_data, is_list
from ..values.treedef import describe, rebuild, tree_structure
from ..values.values import AtVal, Derived, Dyn, Listed, Seq, Val, elements
from .model_gradients import model_gradient
from .requests import differentiate, parameter_names, specialise_call, static_names


@derived("grad")
async def call_grad(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    aux = fn.option("has_aux")
    value, grads = await differentiate(
        engine, frame, fn.function, args, dict(kwargs), fn.option("wrt"), aux, origin, site
    )
    return Seq("tuple", (grads, elements(value)[1])) if aux else grads


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
        if isinstance(fn, Dyn | Seq) and not (is_data(fn) and fn.type.family.of_functions):
            raise GradError(f"{transform}: the first argument must be a function or a model, not {describe(fn)}")
        given = dict(zip(("wrt", "has_aux"), rest, strict=False)) | kwargs
        options = {"wrt": 0, "has_aux": False}
        for key, value in given.items():
            name = {"argnums": "wrt"}.get(key, key)
            if name not in options:
                raise TypeError_(f"{transform}() got an unexpected keyword argument '{key}'{nearest(key, options)}")
            options[name] = to_option(value, f"{transform}: {key}")
        if isinstance(options["wrt"], list):
            options["wrt"] = tuple(options["wrt"])
        return Derived(transform, fn, tuple(sorted(options.items())))

    return run


def request_batch(transform: str):
    """The handler of a call of `vmap` or `batch_mean` itself."""

    async def run(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
        fn, *rest = args
        options: dict[str, Any] = {"in_axes": 0} | ({"out_axes": 0} if transform == "vmap" else {})
        for key, value in (dict(zip(options, rest, strict=False)) | kwargs).items():
            if key not in options:
                raise TypeError_(f"{transform}() got an unexpected keyword argument '{key}'{nearest(key, options)}")
            chosen = to_option(value, f"{transform}: {key}")
            options[key] = tuple(chosen) if isinstance(chosen, list) else chosen
        return Derived(transform, fn, tuple(sorted(options.items())))

    return run


def batched_leaves(frame: Frame, args: list[Val], in_axes: Any) -> tuple[list[Val], list[list[bool]], Any]:
    """The arguments with their batch axis first, which of their leaves are batched, and the batch size.

    What is known of an argument that is not batched stays known; it is no leaf.

    Raises:
        TypeError_: `in_axes` does not fit the arguments, or names no axis at all.
        ShapeError: an argument has no such axis, or the batch sizes differ.
    """
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
    structures = []
    sizes = []
    for position, (arg, axis) in enumerate(zip(args, axes, strict=True)):
        leaves: list[Node] = []
        structures.append((tree_structure(arg, leaves, axis is None, frame.captured), leaves, axis))
        for node in leaves:
            shape = getattr(node.type, "shape", ())
            if axis is None:
                continue
            if isinstance(node.type, Data):
                raise ShapeError(
                    f"vmap: argument {position} holds a value of type {node.type}, which has no axis to batch along: "
                    "pass it unbatched, with None for it in in_axes, or put the values into a list and write a loop over it"
                )
            if not isinstance(node.type, Array) or not -len(shape) <= axis < len(shape):
                raise ShapeError(f"vmap: argument {position} has no axis {axis}: it is {node.type}")
            sizes.append(shape[axis])
    size: Any = leading(sizes) if sizes else None
    moved: list[Val] = []
    flags: list[list[bool]] = []
    for treedef, leaves, axis in structures:
        out: list[Node] = []
        batched: list[bool] = []
        for node in leaves:
            batched.append(axis is not None)
            if axis is None:
                out.append(node)
                continue
            x = frame.var(Dyn(node))
            shape = x.shape
            place = axis % len(shape)
            x = with_size(frame.builder, "vmap", x, place, size)
            node = x.node
            if x.shape[place] != size:
                raise ShapeError(f"vmap: the batch sizes differ: {size} and {shape[place]}")
            if place:
                perm = (place, *[i for i in range(len(shape)) if i != place])
                node = frame.builder.emit(REGISTRY["transpose"], (node,), {"perm": perm})
            out.append(node)
        moved.append(rebuild(treedef, iter(out)))
        flags.append(batched)
    if size is None:
        raise TypeError_("vmap: no argument is batched; give at least one an axis in in_axes")
    return moved, flags, size


def example_of(frame: Frame, arg: Val, batched: list[bool]) -> Val:
    """A substitute for one example of a batched argument: leaves with types only."""
    leaves: list[Node] = []
    treedef = tree_structure(arg, leaves, not any(batched), frame.captured)
    stand_ins = []
    for node, flag in zip(leaves, batched, strict=True):
        t = node.type
        if flag:
            t = Array(t.dtype, t.shape[1:]) if len(t.shape) > 1 else Scalar(t.dtype)
        stand_ins.append(Node(t))
    return rebuild(treedef, iter(stand_ins))


async def with_arrays(engine: Engine, frame: Frame, value: Val, origin: Origin, site: Any) -> Val:
    """A tree in which lists of numbers, and of rows of numbers, are the arrays that NumPy makes of them."""
    if is_list(value) and _is_array_like(value):
        return await from_sequence(engine, frame, value, origin, site)
    if not isinstance(value, Seq):
        return value
    parts = [await with_arrays(engine, frame, part, origin, site) for part in value.elems]
    same = all(a is b for a, b in zip(parts, value.elems, strict=True))
    return value if same else Seq(value.kind, tuple(parts), value.fields, value.cls)


def _is_array_like(value: Any) -> bool:
    """Whether a list or a tuple, or a type of one, holds numbers, or lists and tuples of numbers, and nothing else."""
    if isinstance(value, Dyn):
        value = value.type
    if isinstance(value, List):
        return _is_array_like(value.elem)
    if isinstance(value, Seq | Struct):
        return value.kind in ("list", "tuple") and bool(value.elems) and all(map(_is_array_like, value.elems))
    return isinstance(value, Listed | Scalar)


async def batch(engine: Engine, frame: Frame, fn: Val, args, in_axes: Any, origin: Origin, site) -> tuple[Val, Any]:
    """`vmap(fn)(*args)` with the batch axis of the results first, and the batch size."""
    constants = [name in static_names(fn) for name in parameter_names(engine, fn)]
    if isinstance(in_axes, int) and any(constants):
        in_axes = tuple(None if k < len(constants) and constants[k] else in_axes for k in range(len(args)))
    for k, axis in enumerate(in_axes if isinstance(in_axes, tuple) else [in_axes] * len(args)):
        if axis is not None and k < len(args):
            args = [*args[:k], await with_arrays(engine, frame, args[k], origin, site), *args[k + 1 :]]
    args, flags, size = batched_leaves(frame, list(args), in_axes)
    examples = [example_of(frame, a, f) for a, f in zip(args, flags, strict=True)]
    dynamic = tuple(map(any, flags))
    spec, _ = await specialise_call(engine, frame, fn, examples, {}, origin, site, frame.context, dynamic)
    operands: list[Node] = []
    tree_structure(fn, operands, True, frame.captured)
    batched = [False] * len(operands)
    for arg, flag in zip(args, flags, strict=True):
        tree_structure(arg, operands, not any(flag), frame.captured)
        batched += flag
    implicit = [frame.implicit(key, p.type, p.name) for key, p in spec.implicit.items()]
    batched += [False] * len(implicit)
    refuse_run_time_result(spec.returns, "vmap")
    builder = frame.at(origin)
    attrs = {"graph": spec.graph, "batched": tuple(batched), "size": size}
    node = builder.emit(P_vmap, (*operands, *implicit), attrs)
    count = sum(1 for _ in spec.returns.leaves())
    parts = [node] if count == 1 else [builder.emit(get_item, (node,), {"index": i}) for i in range(count)]
    return rebuild(spec.returns, iter(parts)), size


@derived("vmap")
async def call_vmap(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    names, static = parameter_names(engine, fn.function), static_names(fn)
    args, named = list(args), dict(kwargs)
    while len(args) < len(names) and names[len(args)] in named and names[len(args)] in static:
        args.append(named.pop(names[len(args)]))
    if named:
        raise TypeError_("a vmapped function takes positional arguments only")
    result, _ = await batch(engine, frame, fn.function, args, fn.option("in_axes"), origin, site)
    axis = fn.option("out_axes")
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError_(f"vmap: out_axes={axis!r}: it is one int, the place of the batch axis in all results")
    if axis == 0:
        return result
    leaves: list[Node] = []
    treedef = tree_structure(result, leaves, False, frame.captured)
    moved = []
    for node in leaves:
        rank = len(node.type.shape)
        if not -rank <= axis < rank:
            raise ShapeError(f"vmap: out_axes={axis}: the results have {rank} axes, the batch included")
        order = list(range(1, rank))
        order.insert(axis % rank, 0)
        moved.append(frame.builder.emit(REGISTRY["transpose"], (node,), {"perm": tuple(order)}))
    return rebuild(treedef, iter(moved))


@derived("batch_mean")
async def call_batch_mean(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    result, _ = await batch(engine, frame, fn.function, args, fn.option("in_axes"), origin, site)
    if not isinstance(result, Dyn) or not result.type.is_float or len(result.type.shape) != 1:
        raise TypeError_("batch_mean: the function must return one float")
    return lift(engine, frame, IMPLEMENTATIONS[np.mean](frame.builder, frame.var(result)))


async def at_call(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`relay.at(x)`."""
    (array,) = args
    return AtVal(array)


async def stop_gradient_call(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`stop_gradient(x)` on any tree."""
    leaves: list[Node] = []
    treedef = tree_structure(args[0], leaves, True, frame.captured)
    return rebuild(treedef, iter([frame.builder.emit(stop_gradient, (n,)) for n in leaves]))
