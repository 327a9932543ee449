"""Optimisers: hyper-parameters and state as arrays that compiled code updates in place.

`relay.optim.adam(model)` makes one; `.step(grads)` works in compiled code and outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..abstract.dims import known_size
from ..abstract.types import Array, Ref
from ..api import Relay
from ..infer.engine.engine import Engine, Hidden
from ..infer.engine.frames import Frame
from ..infer.language.registry import special
from ..infer.objects.leaves import to_python
from ..infer.transforms.model_gradients import read_parameters
from ..infer.values.values import NONE_VAL, Dyn, Val
from ..ir.node import Parameter
from ..ir.prim import REGISTRY
from ..utils.errors import LoweringError, TypeError_
from .hidden import ModelSpec, move_key
from .model import Model, aligned, entry_frame, gradient_argument, model_argument, write

HYPER = {
    "sgd": ("lr",),
    "momentum": ("lr", "momentum"),
    "adam": ("lr", "beta1", "beta2", "eps", "t"),
}
SLOTS = {"sgd": (), "momentum": ("velocity",), "adam": ("m", "v")}


@dataclass(frozen=True)
class OptimiserSpec:
    """What kind of optimiser, for which model."""

    kind: str
    model: ModelSpec

    @property
    def ref(self) -> Ref:
        """The type of its state: hyper-parameters as 0-d float64 arrays, then the slots of every parameter."""
        names = list(HYPER[self.kind])
        types = [Array("float64", ())] * len(names)
        for slot in SLOTS[self.kind]:
            names += [f"{slot}.{n}" for n in self.model.names]
            types += self.model.types
        return Ref(self, tuple(names), tuple(types))

    def __str__(self) -> str:
        return f"{self.kind} optimiser"


class Optimiser:
    """An optimiser of a model.

    Attributes:
        model: the model that it updates.
        arrays: its state, in the order of `OptimiserSpec.ref`.
    """

    def __init__(self, kind: str, model: Model, hyper: dict[str, float]):
        model = getattr(model, "model", model)
        if not isinstance(model, Model):
            raise TypeError_(f"relay.optim.{kind} needs a model, not {type(model).__name__}")
        self.model = model
        self.spec = OptimiserSpec(kind, model.spec)
        self.arrays: list[np.ndarray] = []
        for name, type_ in zip(self.__state_ref__().names, self.__state_ref__().elems, strict=True):
            array = aligned(tuple(map(known_size, type_.shape)), type_.dtype)
            array[...] = hyper.get(name, 0.0)
            self.arrays.append(array)

    def __state_ref__(self) -> Ref:
        return self.spec.ref

    def __relay_tree__(self, name: str):
        """How compiled code sees it: its state and its model, both mutable."""
        return "record", ("state", "model"), Optimiser, [(OptimizerState(self), None), (self.model, None)]

    def step(self, grads: Mapping) -> None:
        """Update the model in place by gradients `relay.grad(model, loss, args)`."""
        _step(self, dict(grads))

    @property
    def lr(self) -> float:
        """The learning rate; may be set at any time without recompiling."""
        return float(self.arrays[0])

    @lr.setter
    def lr(self, value: float) -> None:
        self.arrays[0][...] = value

    def state(self) -> dict[str, np.ndarray]:
        """Everything that a checkpoint needs, by name."""
        return dict(zip(self.__state_ref__().names, self.arrays, strict=True))

    def load_state(self, values: Mapping) -> None:
        """Take over a state that `state` gave."""
        for name, array in self.state().items():
            array[...] = values[name]

    def __repr__(self) -> str:
        names = HYPER[self.spec.kind]
        inner = ", ".join(f"{n}={float(a):g}" for n, a in zip(names, self.arrays, strict=False))
        return f"<{self.spec.kind}({inner}) of {self.model!r}>"


class OptimizerState:
    """The arrays of an optimiser as a reference."""

    def __init__(self, optimiser: Optimiser):
        self.optimiser = optimiser
        self.arrays = optimiser.arrays

    def __relay_ref__(self) -> Ref:
        return self.optimiser.__state_ref__()


def sgd(model, lr: float = 0.01) -> Optimiser:
    """Gradient descent: `p -= lr * g`."""
    return Optimiser("sgd", model, {"lr": lr})


def momentum(model, lr: float = 0.01, momentum: float = 0.9) -> Optimiser:
    """Gradient descent with momentum: `v = momentum * v + g; p -= lr * v` (Polyak 1964, in PyTorch's form)."""
    return Optimiser("momentum", model, {"lr": lr, "momentum": momentum})


def adam(model, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> Optimiser:
    """Adam with bias correction (Kingma and Ba, ICLR 2015, algorithm 1)."""
    return Optimiser("adam", model, {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps})


def _step_function(optimiser, grads):
    optimiser.step(grads)


_step = Relay(_step_function)


# In compiled code.


def _cast(value, dtype: str):
    return REGISTRY["cast"](value, dtype=dtype, weak=False)


def _scalar(frame: Frame, state: Dyn, index: int):
    """A hyper-parameter as a staged float64 number."""
    from ..prims.ops.effects import ref_read

    return frame.builder.var(frame.builder.emit(ref_read, (state.node,), {"index": index}))


def emit_step(engine: Engine, frame: Frame, state: Dyn, model: Dyn, grads: Val, origin) -> None:
    """Emit one update of a model and of the optimiser's state."""
    spec: OptimiserSpec = state.type.spec
    gradients = [frame.var(g) for g in gradient_argument(model, grads)]
    params = [frame.builder.var(n) for n in read_parameters(frame, model, origin)]
    base, count = len(HYPER[spec.kind]), len(params)
    lr = _scalar(frame, state, 0)
    updates: list[tuple[Dyn, int, Any]] = []
    if spec.kind == "adam":
        b1, b2, eps, t = (_scalar(frame, state, i) for i in range(1, 5))
        power = REGISTRY["pow"]
        step = t + 1.0
        correction1 = 1.0 - power(b1, step)
        correction2 = REGISTRY["sqrt"](1.0 - power(b2, step))
        rate = lr / correction1
        updates.append((state, 4, step))
        for i, (p, g) in enumerate(zip(params, gradients, strict=True)):
            m, v = _scalar(frame, state, base + i), _scalar(frame, state, base + count + i)
            m = m + _cast(1.0 - b1, p.dtype) * (g - m)
            v = _cast(b2, p.dtype) * v + _cast(1.0 - b2, p.dtype) * (g * g)
            size = REGISTRY["sqrt"](v) * _cast(1.0 / correction2, p.dtype) + _cast(eps, p.dtype)
            updates += [
                (state, base + i, m),
                (state, base + count + i, v),
                (model, i, p - _cast(rate, p.dtype) * (m / size)),
            ]
    elif spec.kind == "momentum":
        mu = _scalar(frame, state, 1)
        for i, (p, g) in enumerate(zip(params, gradients, strict=True)):
            v = _cast(mu, p.dtype) * _scalar(frame, state, base + i) + g
            updates += [(state, base + i, v), (model, i, p - _cast(lr, p.dtype) * v)]
    else:
        updates = [
            (model, i, p - _cast(lr, p.dtype) * g) for i, (p, g) in enumerate(zip(params, gradients, strict=True))
        ]
    for ref, index, value in updates:
        write(frame, ref, index, value)
    move_key(frame, model)


@special(Optimiser.step)
async def compiled_step(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    optimiser, grads = args
    emit_step(engine, frame, optimiser.get("state"), optimiser.get("model"), grads, origin)
    return NONE_VAL


def _constructor(make):
    """An optimiser's constructor in compiled code: the caller makes the optimiser anew for every call of the program."""

    @special(make)
    async def run(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        from ..infer.values.values import Seq

        model = model_argument(args[0], f"relay.optim.{make.__name__}")
        options = {k: to_python(v, f"{make.__name__}: {k}") for k, v in kwargs.items()}
        rest = [to_python(v, make.__name__) for v in args[1:]]
        if not entry_frame(engine, frame) or not isinstance(model.node, Parameter):
            raise LoweringError("an optimiser is made at the top of the decorated function, or outside and passed in")
        key = ("created", site)
        index = model_index(frame, model.node)
        state_ref = OptimiserSpec(make.__name__, model.type.spec).ref
        engine.hidden[key] = Hidden(None, None, lambda values: OptimizerState(make(index(values), *rest, **options)))
        return Seq("record", (Dyn(frame.implicit(key, state_ref, "state")), model), ("state", "model"), Optimiser)

    return run


def model_index(frame: Frame, node: Parameter):
    """How to find a model among the program's arguments: `(values) -> Model`."""
    top = frame
    while top.parent is not None:
        top = top.parent
    position = top.graph.params.index(node)
    implicit = list(top.spec.implicit.values())
    if node in implicit:
        # Hidden arguments come after the others, in this order.
        back = implicit.index(node)
        explicit = len(top.graph.params) - len(implicit)
        return lambda values, at=explicit + back: values[at]
    return lambda values: values[position]


for _make in (sgd, momentum, adam):
    _constructor(_make)

__all__ = ["Optimiser", "adam", "momentum", "sgd"]
