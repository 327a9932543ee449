"""Layers and neural-network operators as users call them: `relay.conv2d`, `relay.linear`, `relay.tanh`, ...

A layer that is given no weight takes parameters from the model in which it is called. Outside compiled code every
operator works on NumPy arrays too: it compiles itself, once per signature, like any decorated function.
"""

from __future__ import annotations

from typing import Any

from ..abstract.types import Array, Scalar
from ..functions import OperatorFunction
from ..infer.engine.engine import Engine
from ..infer.engine.frames import Frame
from ..infer.language.calls import numeric
from ..infer.objects.leaves import to_python
from ..infer.values.treedef import describe
from ..infer.values.values import Dyn, Static, Val
from ..prims.api.nn_api import NN_OPS, pair
from ..utils.errors import ShapeError, TypeError_, nearest
from .hidden import parameters


class Layer(OperatorFunction):
    """An operator with weights: given ones, or parameters of the model it is called in."""

    hidden_options: tuple[str, ...] = ()  # what only parameters need

    async def compiled(self, engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        implementation = self.implementation
        if len(args) == 2 and isinstance(args[1], Dyn) and args[1].known and isinstance(args[1].type, Scalar):
            kwargs = {self.hidden_options[0]: args[1], **kwargs}  # relay.linear(x, 10): a size, not a weight
            args = args[:1]
        if len(args) > 1 or "weight" in kwargs:
            return await super().compiled(engine, frame, args, kwargs, origin, site)
        options = {
            k: to_python(kwargs.pop(k), f"{self.operator_name}: {k}") for k in self.hidden_options if k in kwargs
        }
        for key in kwargs:
            if key not in implementation.parameters:
                known = [*self.hidden_options, *implementation.parameters]
                raise TypeError_(
                    f"relay.{self.operator_name}() got an unexpected keyword argument '{key}'{nearest(key, known)}"
                )
        x = args[0] if args else kwargs.pop("x")
        if not (isinstance(x, Dyn) and isinstance(x.type, Array) and x.type.is_float):
            raise TypeError_(f"relay.{self.operator_name} needs a float array, not {describe(x)}")
        types = self.parameter_types(x.type, options, kwargs)
        if not options.get("unshared"):
            found = parameters(engine, frame, site, self.operator_name, types)
        else:
            found = parameters(engine, frame, (site, frame.context.iteration), self.operator_name, types)
        bias = found.get("bias", Static(None))
        return numeric(engine, frame, implementation, [x, found["weight"], bias], kwargs, f"relay.{self.operator_name}")

    def parameter_types(self, x: Array, options: dict[str, Any], kwargs: dict[str, Val]) -> dict[str, Array]:
        """The parameters that a call needs, by part."""
        raise NotImplementedError


class Conv2d(Layer):
    """See `conv2d`."""

    hidden_options = ("num_filter", "ksize", "no_bias", "unshared")

    def parameter_types(self, x, options, kwargs):
        if "num_filter" not in options:
            raise TypeError_(
                "relay.conv2d needs num_filter, the number of filters: relay.conv2d(x, num_filter=20, ksize=5)"
            )
        if len(x.shape) not in (3, 4):
            raise ShapeError(
                f"relay.conv2d takes an image (C, H, W) or a batch (N, C, H, W), and this has shape {x.shape}"
            )
        groups = to_python(kwargs["groups"], "conv2d: groups") if "groups" in kwargs else 1
        kernel = pair(options.get("ksize", 3), "ksize")
        filters = options["num_filter"]
        types = {"weight": Array(x.dtype, (filters, x.shape[-3] // groups, *kernel))}
        return types if options.get("no_bias", False) else types | {"bias": Array(x.dtype, (filters,))}


class Linear(Layer):
    """See `linear`."""

    hidden_options = ("num_hidden", "no_bias", "unshared")

    def parameter_types(self, x, options, kwargs):
        if "num_hidden" not in options:
            raise TypeError_("relay.linear needs num_hidden, the number of outputs: relay.linear(x, num_hidden=10)")
        if len(x.shape) not in (1, 2):
            raise ShapeError(
                f"relay.linear takes features (n,) or a batch (N, n), and this has shape {x.shape}; use relay.flatten_layer"
            )
        outputs = options["num_hidden"]
        types = {"weight": Array(x.dtype, (outputs, x.shape[-1]))}
        return types if options.get("no_bias", False) else types | {"bias": Array(x.dtype, (outputs,))}


conv2d = Conv2d(
    "conv2d",
    NN_OPS["conv2d"],
    """Two-dimensional convolution (a correlation: filters are not flipped).

    In a model: `conv2d(x, num_filter=20, ksize=[1, 5, 5, 1], strides=1, padding="valid", no_bias=False)` with hidden
    parameters weight (num_filter, C, kh, kw) and bias (num_filter,). Elsewhere `conv2d(x, weight, bias=None, ...)`.

    Args:
        x: (C, H, W) or (N, C, H, W), float.
        num_filter: number of output channels.
        ksize, strides: `[1, h, w, 1]`, `[h, w]` or one int.
        padding: "valid", "same" or ints.
        no_bias: leave the bias out.

    Returns:
        (num_filter, H', W') or (N, num_filter, H', W').
    """,
)
linear = Linear(
    "linear",
    NN_OPS["linear"],
    """A dense layer: `x @ weight.T + bias`.

    In a model: `linear(x, num_hidden=10, no_bias=False)` with hidden parameters weight (num_hidden, n) and bias (num_hidden,).
    Elsewhere `linear(x, weight, bias=None)`.

    Args:
        x: (n,) or (N, n), float.
        num_hidden: number of outputs.
        no_bias: leave the bias out.

    Returns:
        (num_hidden,) or (N, num_hidden).
    """,
)

_PLAIN = {
    name: OperatorFunction(name, implementation, implementation.function.__doc__ or "")
    for name, implementation in NN_OPS.items()
    if name not in ("conv2d", "linear")
}
globals().update(_PLAIN)

__all__ = ["Conv2d", "Layer", "Linear", "OperatorFunction", "conv2d", "linear", *_PLAIN]
