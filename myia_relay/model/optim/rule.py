"""What an optimiser is: one declaration of its hyper-parameters, its slots and its update rule.

    @optimiser()
    def momentum(p, g, velocity, *, lr=0.01, momentum=0.9):
        velocity = momentum * velocity + g
        return p - lr * velocity, velocity

A rule is a function of staged values: a parameter, its gradient, one slot after the other, `t` if it counts its steps (1 in the
first), and by keyword the hyper-parameters with their defaults. It returns the new parameter and the new slots. Hyper-parameters
are numbers there that take the dtype of what they meet. A hyper-parameter with the default 0 is off unless it is given, and
one with the default False is a switch: both are known when the program is compiled, and what is off is None in the rule.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from ...abstract.types import Array, Scalar, Type
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.language.calls import call_value
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn, Val
from ...ir.build import Var
from ...ir.prim import REGISTRY, Primitive
from ...utils.errors import TypeError_, ValueError_, nearest

BELOW_ONE = ("beta1", "beta2", "alpha")
"""Hyper-parameters that are shares of what was: at least 0 and below 1."""

DECAY = "weight_decay"


@dataclass(frozen=True, eq=False)
class UpdateRule:
    """An optimiser as it was declared.

    Attributes:
        name: what it is called.
        update: its rule.
        defaults: its hyper-parameters, `lr` first.
        slots: what it keeps for each parameter.
        counts: whether its rule needs the number of the step.
        needs: slots that are there only if a hyper-parameter or switch is on -> which one.
        fills: slots that do not begin as zeros -> the hyper-parameter with which they begin.
    """

    name: str
    update: Callable
    defaults: dict[str, Any]
    slots: tuple[str, ...]
    counts: bool
    needs: Mapping[str, str]
    fills: Mapping[str, str]

    def is_switch(self, name: str) -> bool:
        """Whether a hyper-parameter is on or off, and nothing else."""
        return isinstance(self.defaults[name], bool)

    def is_off(self, name: str, value: Any) -> bool:
        """Whether a Python value of a hyper-parameter means that it is left out."""
        default = self.defaults[name]
        return type(default) is int and isinstance(value, int | float) and value == 0

    def kept(self, on: Collection[str]) -> tuple[str, ...]:
        """The slots where these hyper-parameters and switches are on."""
        return tuple(s for s in self.slots if s not in self.needs or self.needs[s] in on)

    def require_known(self, names: Collection[str]) -> None:
        """Refuse hyper-parameters that the optimiser does not have.

        Raises:
            TypeError_: there is one.
        """
        allowed = [*self.defaults, *(["mask"] if DECAY in self.defaults else [])]
        for name in names:
            if name not in allowed:
                raise TypeError_(
                    f"relay.optim.{self.name} has no hyper-parameter '{name}'{nearest(name, allowed)} (it has {', '.join(allowed)})"
                )

    def require_valid(self, name: str, value: Any) -> None:
        """Refuse a value of a hyper-parameter that is known.

        Raises:
            TypeError_: it is no number, or for `lr` no schedule.
            ValueError_: it is out of range.
        """
        what = f"relay.optim.{self.name}: {name}"
        if name == "lr" and callable(value):
            return
        if isinstance(value, bool) if not self.is_switch(name) else not isinstance(value, bool):
            raise TypeError_(f"{what} is {'True or False' if self.is_switch(name) else 'a number'}, not {value!r}")
        try:
            number = float(value)
        except (TypeError, ValueError):
            kinds = "a number or a schedule (relay.optim.schedules), such as lr=1e-3" if name == "lr" else "a number"
            raise TypeError_(f"{what} is {kinds}, not {value!r}") from None
        if not 0.0 <= number < math.inf:
            raise ValueError_(f"{what} is {value}; it is a finite number that is not negative")
        if name in BELOW_ONE and number >= 1.0:
            raise ValueError_(f"{what} is {value}; it is below 1")


RULES: dict[str, UpdateRule] = {}
"""Name -> optimiser."""


def rule_of(name: str, function: Callable, needs: Mapping[str, str], fills: Mapping[str, str]) -> UpdateRule:
    """The rule that a function is: its signature says what there is."""
    parameters = inspect.signature(function).parameters.values()
    leading = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    slots = tuple(n for n in leading[2:] if n != "t")
    return UpdateRule(name, function, defaults, slots, "t" in leading, needs, fills)


def _operator(name: str, swap: bool = False) -> Callable[[Coefficient, Any], Var]:
    """The method of `Coefficient` for an operator; `swap`: the reflected one."""

    def method(self: Coefficient, other: Any) -> Var:
        own = self if not isinstance(other, Var) or isinstance(other, Coefficient) else self.like(other)
        return REGISTRY[name](other, own) if swap else REGISTRY[name](own, other)

    return method


class Coefficient(Var):
    """A staged float64 number. Among themselves such numbers remain it; one beside another value takes its dtype."""

    __slots__ = ()

    def like(self, other: Var) -> Var:
        """The number with the dtype of another value."""
        is_weak = isinstance(other.type, Scalar) and other.type.weak
        return REGISTRY["cast"](Var(self.builder, self.node), dtype=other.dtype, weak=is_weak)

    def apply_primitive(self, prim: Primitive, args: tuple, attrs: dict) -> Var:
        """As of `Var`; what is computed of such numbers is one."""
        out = super().apply_primitive(prim, args, attrs)
        staged = [a for a in args if isinstance(a, Var)]
        return Coefficient(out.builder, out.node) if all(isinstance(a, Coefficient) for a in staged) else out

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", True)


def weak(value: Var) -> Coefficient:
    """A number that takes the dtype of what it meets."""
    number = REGISTRY["cast"](Var(value.builder, value.node), dtype="float64", weak=True)
    return Coefficient(number.builder, number.node)


def as_typed(value: Var, type_: Type) -> Var:
    """A result of arithmetic with the type of the parameter or slot that it replaces."""
    assert isinstance(type_, Scalar | Array)
    if value.dtype != type_.dtype or isinstance(type_, Scalar) and value.type != type_:
        value = REGISTRY["cast"](value, dtype=type_.dtype, weak=isinstance(type_, Scalar) and type_.weak)
    return REGISTRY["as_array"](value) if isinstance(type_, Array) and not isinstance(value.type, Array) else value


def norm(parts: Sequence[Var]) -> Coefficient:
    """The Euclidean norm of all numbers of some arrays together, as a Python number."""
    total = weak(parts[0].const(0.0))
    for part in parts:
        wide = REGISTRY["cast"](part, dtype="float32", weak=False) if "16" in part.dtype else part
        square = wide * wide
        if square.ndim:
            square = REGISTRY["reduce_sum"](square, axes=tuple(range(square.ndim)), keepdims=False)
        total = total + weak(square)
    return weak(REGISTRY["sqrt"](total))


def is_number(value: Val) -> TypeGuard[Dyn]:
    """Whether a value is one number."""
    return isinstance(value, Dyn) and isinstance(value.type, Scalar | Array) and value.type.shape == ()


async def rate_at(engine: Engine, frame: Frame, schedule: Val, step: Var, origin) -> Coefficient:
    """What a schedule gives in a step, the first being 0.

    Raises:
        TypeError_: that is no number.
    """
    rate = await call_value(engine, frame, schedule, [Dyn(step.node)], {}, origin, None)
    if not is_number(rate):
        raise TypeError_(
            f"the schedule of lr gives {describe(rate)}; it is a function from the step's number to a number"
        )
    return weak(frame.var(rate))


def updated(
    rule: UpdateRule,
    p: Var,
    g: Var,
    slots: Mapping[str, Var],
    t: Var | None,
    hyper: Mapping[str, Any],
    decays: Any = True,
) -> tuple[Var, dict[str, Var]]:
    """Stage one update of a parameter.

    Args:
        rule: the optimiser.
        p: the parameter.
        g: its gradient.
        slots: its slots.
        t: the number of this step, from 1.
        hyper: the hyper-parameters that are on, as weak floats; switches that are on, as True.
        decays: whether its weights decay: a bool, or one that is computed.
    """
    values: dict[str, Any] = {n: hyper.get(n) for n in rule.defaults}
    if values.get(DECAY) is not None and decays is not True:
        decay: Coefficient = values[DECAY]
        values[DECAY] = None if decays is False else weak(REGISTRY["where"](decays, decay, decay.const(0.0)))
    counted = (t,) if rule.counts else ()
    new, *after = rule.update(p, g, *[slots.get(s) for s in rule.slots], *counted, **values)
    kept = {s: as_typed(v, slots[s].type) for s, v in zip(rule.slots, after, strict=True) if s in slots}
    return as_typed(new, p.type), kept


__all__ = [
    "DECAY",
    "RULES",
    "Coefficient",
    "UpdateRule",
    "as_typed",
    "is_number",
    "norm",
    "rate_at",
    "rule_of",
    "updated",
    "weak",
]
