"""Gradients by the parameters of a model: `relay.grad(model, loss, args)` inside compiled code."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ...abstract.types import Scalar
from ...ir.node import Node
from ...ir.prim import REGISTRY
from ...prims.ops.effects import ref_read
from ...utils.errors import GradError, TypeError_, nearest
from ...utils.source import Origin
from ..engine.engine import Ambient, Engine
from ..engine.frames import TURN, Frame, parameter_key
from ..objects.leaves import to_python
from ..values.values import Dyn, Seq, Val, elements
from .requests import emit_value_and_grad, specialise_call


def model_key(spec: Any) -> Hashable:
    """The implicit key of a model itself, whose state layers write."""
    return ("model", spec)


def read_parameters(frame: Frame, model: Dyn, origin: Origin) -> list[Node]:
    """The parameters of a model as they are now."""
    builder = frame.at(origin)
    return [builder.emit(ref_read, (model.node,), {"index": i}) for i in range(len(model.type.spec.names))]


def provide(frame: Frame, model: Dyn, origin: Origin) -> list[Node]:
    """Give what is called from a frame the arrays of a model as they are now, and the model; returns the parameters."""
    spec, builder = model.type.spec, frame.at(origin)
    nodes = [builder.emit(ref_read, (model.node,), {"index": i}) for i in range(len(model.type.names))]
    frame.providers = {parameter_key(spec, n): node for n, node in zip(model.type.names, nodes, strict=True)}
    frame.providers[model_key(spec)] = model.node
    frame.providers[TURN] = frame.constant(0).node
    return nodes[: len(spec.names)]


async def model_gradient(engine: Engine, frame: Frame, transform: str, args, kwargs, origin: Origin, site) -> Val:
    """`relay.grad(model, loss, args)`: the gradient of a loss by all parameters of a model, as a dict.

    Raises:
        TypeError_: an argument is missing or unknown, or `args` is no tuple.
        GradError: the model is none, or the loss does not use it.
    """
    values = dict(zip(("model", "loss", "args"), args, strict=False)) | kwargs
    options = ("has_aux", "training")
    for name in values:
        if name not in ("model", "loss", "args", *options):
            raise TypeError_(f"{transform}() got an unexpected keyword argument '{name}'{nearest(name, options)}")
    if len(args) > 3:
        raise TypeError_(f"{transform}(model, loss, args) takes its options by name: has_aux=, training=")
    missing = {"model", "loss", "args"} - set(values)
    if missing:
        raise TypeError_(f"{transform}(model, loss, args) misses {', '.join(sorted(missing))}")
    model, loss, loss_args = values["model"], values["loss"], values["args"]
    if not isinstance(loss_args, Seq):
        raise TypeError_(f"{transform}(model, loss, args): args must be a tuple of the loss's arguments")
    given = {name: bool(to_python(values[name], f"{transform}: {name}")) for name in options if name in values}
    has_aux, training = given.get("has_aux", False), given.get("training", True)
    spec_of_model = model.type.spec
    if not hasattr(spec_of_model, "function"):
        raise GradError(f"{transform}: {spec_of_model} is no model")
    context = Ambient(
        (*frame.context.models, (spec_of_model.function, spec_of_model)), None, (), training, cuts=frame.context.cuts
    )
    scope = frame.scope()
    theta = provide(scope, model, origin)
    spec, nodes = await specialise_call(
        engine, scope, loss, list(loss_args.elems), {}, origin, site, context, strict=not has_aux
    )
    offset = len(nodes)
    order = {key: offset + i for i, key in enumerate(spec.implicit)}
    keys = [parameter_key(spec_of_model, n) for n in spec_of_model.names]
    used = [order[k] for k in keys if k in order]
    if not used:
        raise GradError(
            f"the loss does not use the model: it never calls {getattr(spec_of_model.function, '__name__', 'it')}",
            origin,
        )
    value, grads = emit_value_and_grad(engine, scope, spec, nodes, used, has_aux, origin)
    by_index = dict(zip(used, grads, strict=True))
    parts = []
    for key, elem, node in zip(keys, spec_of_model.types, theta, strict=True):
        parts.append(Dyn(by_index[order[key]]) if key in order else zeros(frame, node, elem))
    gradient = Seq("dict", tuple(parts), tuple(spec_of_model.names))
    if transform == "grad":
        return Seq("tuple", (gradient, elements(value)[1])) if has_aux else gradient
    return Seq("tuple", (value, gradient))


def zeros(frame: Frame, node: Node, type_) -> Dyn:
    """A zero of a parameter's type, for parameters that the loss does not use."""
    zero = frame.constant(0.0, Scalar(type_.dtype))
    return Dyn(frame.builder.emit(REGISTRY["broadcast_to"], (zero.node,), {"shape": type_.shape}))
