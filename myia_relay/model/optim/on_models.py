"""Optimisers of models: hyper-parameters and slots as arrays that compiled code updates in place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import Array, Ref, numpy_dtype
from ...api import Relay
from ...infer.engine.engine import Engine, Hidden
from ...infer.engine.frames import Frame
from ...infer.language.registry import special
from ...infer.objects.leaves import to_python
from ...infer.transforms.model_gradients import read_parameters
from ...infer.values.values import NONE_VAL, Dyn, Seq, Static, Val
from ...ir.build import Var
from ...ir.node import Parameter
from ...ir.prim import REGISTRY
from ...prims.ops.effects import ref_read
from ...utils.attributes import Advised
from ...utils.errors import LoweringError, TypeError_, nearest
from ..arrays import aligned, realigned, take_over
from ..elsewhere import OPTIMISER
from ..hidden import ModelSpec, move_key
from ..model import Model, entry_frame, gradient_argument, model_argument, write
from .rule import DECAY, RULES, UpdateRule, rate_at, updated, weak


@dataclass(frozen=True)
class OptimiserSpec:
    """What kind of optimiser, for which model.

    Attributes:
        kind: the name of its rule.
        model: of the model.
        hyper: its hyper-parameters that are on; in what follows "t" if it counts its steps.
        switches: its switches that are on.
        mask: for each parameter whether it decays; None if all do.
    """

    kind: str
    model: ModelSpec
    hyper: tuple[str, ...]
    switches: tuple[str, ...] = ()
    mask: tuple[bool, ...] | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """What it keeps for each parameter."""
        return RULES[self.kind].kept((*self.hyper, *self.switches))

    @property
    def variant(self) -> str:
        """Its kind, and the switches that decide how it updates."""
        return ", ".join((self.kind, *(f"{n}=True" for n in self.switches)))

    @property
    def ref(self) -> Ref:
        """The type of its state: hyper-parameters as 0-d float64 arrays, then the slots of every parameter."""
        names = list(self.hyper)
        types = [Array("float64", ())] * len(names)
        for slot in self.slots:
            names += [f"{slot}.{n}" for n in self.model.names]
            types += self.model.types
        return Ref(self, tuple(names), tuple(types))

    def __str__(self) -> str:
        return f"{self.kind} optimiser"


def spec_of(
    rule: UpdateRule, model: ModelSpec, given: Mapping[str, Any], mask: Any
) -> tuple[OptimiserSpec, dict[str, Any]]:
    """The specification of an optimiser, and the values of its hyper-parameters, Python's or inference's.

    Raises:
        TypeError_: the mask is no dict of bools with the names of the parameters, nor a function that gives bools.
    """
    values = {**rule.defaults, **given}
    switches = tuple(n for n in values if rule.is_switch(n) and values[n])
    hyper = {n: v for n, v in values.items() if not rule.is_switch(n) and not rule.is_off(n, v)}
    counts = rule.counts or not isinstance(hyper["lr"], int | float)
    decays = masked(model, mask) if DECAY in hyper else None
    return OptimiserSpec(rule.name, model, (*hyper, *(("t",) if counts else ())), switches, decays), hyper


def masked(model: ModelSpec, mask: Any) -> tuple[bool, ...] | None:
    """For each parameter of a model whether its weights decay.

    Raises:
        TypeError_: see `spec_of`.
    """
    if mask is None:
        return None
    if isinstance(mask, Mapping):
        if odd := set(mask) ^ set(model.names):
            raise TypeError_(f"the mask and the parameters differ in {', '.join(sorted(map(str, odd)))}")
        chosen = [mask[n] for n in model.names]
    elif callable(mask):
        shapes = [(tuple(map(known_size, t.shape)), numpy_dtype(t.dtype)) for t in model.types]
        chosen = [mask(np.broadcast_to(np.zeros((), dtype), shape)) for shape, dtype in shapes]
    else:
        raise TypeError_(f"a mask is a dict of bools or a function of a parameter, not {type(mask).__name__}")
    for name, value in zip(model.names, chosen, strict=True):
        if not isinstance(value, bool | np.bool_):
            raise TypeError_(f"the mask of {name} is {value!r}; it is True or False")
    return tuple(map(bool, chosen))


class Optimiser(Advised):
    """An optimiser of a model.

    Attributes:
        model: the model that it updates.
        schedule: the schedule of its learning rate; None where that is a number.
        given: its hyper-parameters as the program gives them, whatever became of them in a training.
        arrays: its state, in the order of `OptimiserSpec.ref`.
    """

    _elsewhere = OPTIMISER

    def __init__(self, rule: UpdateRule, model: Model, given: Mapping[str, Any], mask: Any = None):
        self.model = getattr(model, "model", model)
        self.spec, hyper = spec_of(rule, self.model.spec, given, mask)
        self.schedule = hyper["lr"] if callable(hyper["lr"]) else None
        for n, v in hyper.items():
            if isinstance(v, str | bytes):
                raise TypeError_(f"{rule.name}: {n} is a number, and this is {v!r}")
        begin: dict[str, Any] = {n: float(v) for n, v in hyper.items() if n != "lr" or self.schedule is None}
        begin |= {
            f"{slot}.{n}": begin.get(name, 0.0) for slot, name in rule.fills.items() for n in self.spec.model.names
        }
        self.given: dict[str, Any] = {n: v if n == "lr" and callable(v) else float(v) for n, v in hyper.items()}
        self.arrays: list[np.ndarray] = []
        for name, type_ in zip(self.__state_ref__().names, self.__state_ref__().elems, strict=True):
            array = aligned(tuple(map(known_size, type_.shape)), type_.dtype)
            array[...] = begin.get(name, 0.0)
            self.arrays.append(array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, arrays=realigned(state["arrays"]))

    def __state_ref__(self) -> Ref:
        return self.spec.ref

    def __relay_tree__(self, name: str):
        """How compiled code sees it: its state and its model, both mutable, and its schedule."""
        parts = [(OptimizerState(self), None), (self.model, None), (self.schedule, None)]
        return "record", ("state", "model", "schedule"), Optimiser, parts

    def step(self, grads: Mapping) -> None:
        """Update the model in place by gradients `relay.grad(model, loss, args)`."""
        _step(self, dict(grads))

    @property
    def lr(self) -> float:
        """The learning rate of the next step; may be set at any time without recompiling, but for the first time in place of a
        schedule.
        """
        rate: Any = self.arrays[0] if self.schedule is None else self.schedule(int(self.state()["t"]))
        return float(rate)

    @lr.setter
    def lr(self, value: float) -> None:
        self.arrays[0][...] = value
        self.schedule, self.given["lr"] = None, float(value)

    def settings(self) -> str:
        """What it is, in a text that is the same in every process which makes it alike."""
        parts = [f"{n}={_text(v)}" for n, v in self.given.items()]
        parts += [f"{n}=True" for n in self.spec.switches]
        if self.spec.mask is not None:
            decaying = [n for n, decays in zip(self.spec.model.names, self.spec.mask, strict=True) if decays]
            parts.append(f"mask={decaying}")
        return f"{self.spec.kind}({', '.join(parts)})"

    def state(self) -> State:
        """Everything that a checkpoint needs, by name."""
        return State(self.spec.variant, zip(self.__state_ref__().names, self.arrays, strict=True))

    def load_state(self, values: Mapping) -> None:
        """Take over a state that `state` gave.

        Raises:
            KeyError: it is of another optimiser.
            ShapeError, TypeError_: it is of one for another model; nothing is written.
        """
        own = self.state()
        for name in own:
            if name not in values:
                raise KeyError(f"this is no state of {self.spec}: it has no '{name}'{nearest(name, values)}")
        for name in values:
            if name not in own:
                raise KeyError(f"this is no state of {self.spec}, which has no '{name}'")
        variant = getattr(values, "variant", own.variant)
        if variant != own.variant:
            raise KeyError(f"this is no state of {self.spec}: it is of {variant}, and not of {own.variant}")
        take_over(own, values)

    def __repr__(self) -> str:
        inner = [f"{n}={float(a):g}" for n, a in zip(self.spec.hyper, self.arrays, strict=False)]
        if self.schedule is not None:
            inner[0] = f"lr={self.schedule!r}"
        inner += [f"{n}=True" for n in self.spec.switches]
        return f"<{self.spec.kind}({', '.join(inner)}) of {self.model!r}>"


def _text(value: Any) -> str:
    """A hyper-parameter: a number, or a schedule without the addresses of its functions."""
    text = getattr(value, "__qualname__", None) or repr(value)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


class State(dict[str, np.ndarray]):
    """The arrays of an optimiser by name, which know whose they are: adam and lamb have the same names.

    Attributes:
        variant: see `OptimiserSpec.variant`.
    """

    def __init__(self, variant: str, arrays: Iterable[tuple[str, np.ndarray]]):
        super().__init__(arrays)
        self.variant = variant


class OptimizerState:
    """The arrays of an optimiser as a reference."""

    def __init__(self, optimiser: Optimiser):
        self.optimiser = optimiser
        self.arrays = optimiser.arrays

    def __relay_ref__(self) -> Ref:
        return self.optimiser.__state_ref__()


def _step_function(optimiser, grads):
    optimiser.step(grads)


_step = Relay(_step_function)


# In compiled code.


def _array(frame: Frame, state: Dyn, index: int) -> Var:
    """An array of the state as a staged value."""
    return frame.builder.var(frame.builder.emit(ref_read, (state.node,), {"index": index}))


def _integer(number: Var) -> Var:
    """A number of the state as an int."""
    scalar = REGISTRY["as_scalar"](Var(number.builder, number.node))
    return REGISTRY["cast"](scalar, dtype="int64", weak=True)


async def emit_step(engine: Engine, frame: Frame, optimiser: Seq, grads: Val, origin) -> None:
    """Emit one update of a model and of the optimiser's state.

    Raises:
        TypeError_: there is a schedule, and the optimiser does not count its steps.
    """
    state, model, schedule = optimiser.get("state"), optimiser.get("model"), optimiser.get("schedule")
    assert isinstance(state, Dyn) and isinstance(model, Dyn)
    spec: OptimiserSpec = state.type.spec
    rule = RULES[spec.kind]
    gradients = [frame.var(g) for g in gradient_argument(model, grads)]
    params = [frame.builder.var(n) for n in read_parameters(frame, model, origin)]
    values: dict[str, Any] = {n: weak(_array(frame, state, i)) for i, n in enumerate(spec.hyper)}
    values |= dict.fromkeys(spec.switches, True)
    updates: list[tuple[Dyn, int, Any]] = []
    t = before = values.pop("t", None)
    if before is not None:
        t = before + 1.0
        updates.append((state, spec.hyper.index("t"), t))
    if not (isinstance(schedule, Static) and schedule.value is None):
        if before is None:
            raise TypeError_(
                f"this {spec} does not count its steps; give it the schedule where it is made: lr=schedule"
            )
        values["lr"] = await rate_at(
            engine,
            frame,
            schedule,
            _integer(before),
            origin,
        )
    base, count = len(spec.hyper), len(params)
    for i, (p, g) in enumerate(zip(params, gradients, strict=True)):
        places = {slot: base + k * count + i for k, slot in enumerate(spec.slots)}
        slots = {slot: _array(frame, state, at) for slot, at in places.items()}
        new, kept = updated(rule, p, g, slots, t, values, True if spec.mask is None else spec.mask[i])
        updates += [(state, places[slot], value) for slot, value in kept.items()]
        updates.append((model, i, new))
    for ref, index, value in updates:
        write(frame, ref, index, value)
    move_key(frame, model)


@special(Optimiser.step)
async def compiled_step(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    optimiser, grads = args
    await emit_step(engine, frame, optimiser, grads, origin)
    return NONE_VAL


def made_in_compiled_code(
    engine: Engine, frame: Frame, rule: UpdateRule, model: Val, given: Mapping[str, Any], mask: Val, site
) -> Val:
    """An optimiser of a model, which the caller makes anew for every call of the program.

    Raises:
        TypeError_: it is no model.
        LoweringError: the call is not at the top of the decorated function.
    """
    model = model_argument(model, f"relay.optim.{rule.name}")
    lr = given.get("lr")
    schedule = lr if isinstance(lr, Val) else Static(None)
    known = {
        n: to_python(v, f"{rule.name}: {n}") if isinstance(v, Val) and n != "lr" else v
        for n, v in given.items()
        if n != "lr" or schedule is not lr
    }
    if isinstance(schedule, Dyn):
        known["lr"] = to_python(schedule, f"{rule.name}: lr")  # refuses it
    chosen = to_python(mask, f"{rule.name}: mask")
    if not entry_frame(engine, frame) or not isinstance(model.node, Parameter):
        raise LoweringError("an optimiser is made at the top of the decorated function, or outside and passed in")
    if schedule is lr:
        known["lr"] = _counted
    key = ("created", site)
    index = model_index(frame, model.node)
    state_ref = spec_of(rule, model.type.spec, known, chosen)[0].ref
    engine.hidden[key] = Hidden(
        None, None, lambda values: OptimizerState(Optimiser(rule, index(values), known, chosen))
    )
    state = Dyn(frame.implicit(key, state_ref, "state"))
    return Seq("record", (state, model, schedule), ("state", "model", "schedule"), Optimiser)


def _counted(step):
    """In place of a schedule that only compiled code has."""
    return 0.0


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


__all__ = ["Optimiser", "OptimiserSpec", "made_in_compiled_code"]
