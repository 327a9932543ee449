"""Optimisers of trees of arrays, which change nothing in place; clipping and averages of trees.

All of them work in compiled code and outside. Outside, a call compiles itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Array, Scalar
from ...api import Relay
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.language.calls import call_value
from ...infer.language.registry import special
from ...infer.objects.leaves import to_python
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn, Seq, Static, Val
from ...ir.build import Var, as_type
from ...ir.prim import REGISTRY
from ...prims.api.promotion import with_size
from ...prims.rules.broadcast import broadcast_to
from ...utils.errors import ShapeError, TypeError_
from .rule import DECAY, RULES, Coefficient, UpdateRule, as_typed, is_number, norm, rate_at, updated, weak
from .trees import beside, is_float, leaves, replaced


@dataclass(frozen=True, eq=False)
class TreeOptimiser:
    """An optimiser of any tree of arrays.

    Attributes:
        rule: which one.
        switches: which of its switches are on.
        hyper: its hyper-parameters that are on.
        mask: which weights decay: a tree of bools, a function of a parameter, or None for all.
    """

    rule: str
    switches: tuple[str, ...]
    hyper: dict[str, Any]
    mask: Any = None

    @staticmethod
    def of(rule: UpdateRule, given: Mapping[str, Any], mask: Any = None) -> TreeOptimiser:
        """An optimiser with these hyper-parameters, the others as they are by default."""
        switches, hyper = divided(rule, given)
        return TreeOptimiser(rule.name, switches, hyper, mask)

    def init(self, params: Any) -> dict[str, Any]:
        """The state with which it begins: `{"t": 0}`, and a tree like the parameters for each slot.

        Args:
            params: a tree of arrays: an array, or dicts, tuples and dataclasses of them.
        """
        return _init(self, _plain(params))

    def update(self, params: Any, grads: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """One step.

        Args:
            params: a tree of arrays. What is no float in it stays as it is.
            grads: a tree of the same structure.
            state: what `init` or the last `update` gave.

        Returns:
            `(params, state)`, both new.

        Raises:
            TypeError_: the structures differ, or a gradient has another dtype than its parameter.
            ShapeError: a gradient has another shape than its parameter.
        """
        if self.mask is None or callable(self.mask):
            run = _update_of(self.rule, self.switches, self.mask)
            return run(self.hyper, _plain(params), _plain(grads), state)
        return _update(self, _plain(params), _plain(grads), state)


def divided(rule: UpdateRule, given: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Which switches are on, and the hyper-parameters that are, with the defaults for what is not given."""
    values = {**rule.defaults, **given}
    switches = tuple(n for n in values if rule.is_switch(n) and values[n])
    return switches, {n: v for n, v in values.items() if not rule.is_switch(n) and not rule.is_off(n, v)}


def _plain(tree: Any) -> Any:
    """The parameters of a model, or its gradients, as a dict."""
    return dict(tree) if isinstance(tree, Mapping) else tree


def _init_function(optimiser, params):
    return optimiser.init(params)


def _update_function(optimiser, params, grads, state):
    return optimiser.update(params, grads, state)


@functools.lru_cache(256)
def _update_of(rule: str, switches: tuple[str, ...], mask: Callable | None) -> Callable[..., Any]:
    """The update of optimisers that differ in numbers only: found quickly, as names and functions are no arguments of it."""

    def update(hyper, params, grads, state):
        return TreeOptimiser(rule, switches, hyper, mask).update(params, grads, state)

    return Relay(update)


_init: Callable[..., Any] = Relay(_init_function)
_update: Callable[..., Any] = Relay(_update_function)


def clip_by_global_norm(grads: Any, n: Any) -> Any:
    """Gradients scaled down to a norm, that of all of them together: by `min(1, n / (norm + 1e-6))`, as PyTorch does.

    Args:
        grads: a tree of arrays.
        n: the largest norm.

    Returns:
        A tree of the same structure.

    Example:
        >>> relay.optim.clip_by_global_norm({"w": np.array([3.0, 4.0])}, 1.0)["w"].round(3)
        array([0.6, 0.8])
    """
    return _clip_norm(_plain(grads), n)


def clip_by_value(grads: Any, n: Any) -> Any:
    """Gradients with every number cut off at `-n` and `n`.

    Args:
        grads: a tree of arrays.
        n: the largest absolute value.

    Returns:
        A tree of the same structure.

    Example:
        >>> relay.optim.clip_by_value({"w": np.array([3.0, -4.0])}, 1.0)
        {'w': array([ 1., -1.])}
    """
    return _clip_value(_plain(grads), n)


def ema(params: Any, decay: Any, average: Any = None) -> Any:
    """The exponential moving average of parameters: `decay * average + (1 - decay) * params`.

        average = relay.optim.ema(params, 0.999)  # to begin with: the parameters
        average = relay.optim.ema(params, 0.999, average)  # after each step

    Args:
        params: a tree of arrays. What is no float in it is taken as it is.
        decay: how much of the average remains in a step.
        average: the average so far; None at the beginning.

    Returns:
        A tree of the same structure.

    Example:
        >>> relay.optim.ema({"w": np.array([0.0])}, 0.9, {"w": np.array([1.0])})
        {'w': array([0.9])}
    """
    return _average(_plain(params), decay, _plain(average))


def _clip_norm_function(grads, n):
    return clip_by_global_norm(grads, n)


def _clip_value_function(grads, n):
    return clip_by_value(grads, n)


def _average_function(params, decay, average):
    return ema(params, decay, average)


_clip_norm = Relay(_clip_norm_function)
_clip_value = Relay(_clip_value_function)
_average = Relay(_average_function)


# In compiled code.


def record_of(frame: Frame, rule: UpdateRule, given: Mapping[str, Any], mask: Val) -> Seq:
    """An optimiser made in compiled code."""
    switches, hyper = divided(rule, given)
    values = tuple(v if isinstance(v, Val) else frame.constant(float(v)) for v in hyper.values())
    parts = (
        Static(rule.name),
        Seq("tuple", tuple(Static(s) for s in switches)),
        Seq("dict", values, tuple(hyper)),
        mask,
    )
    return Seq("record", parts, ("rule", "switches", "hyper", "mask"), TreeOptimiser)


def _opened(optimiser: Val) -> tuple[UpdateRule, tuple[str, ...], Seq, Val]:
    """The parts of an optimiser, in the order of its fields."""
    assert isinstance(optimiser, Seq)
    name, switches, hyper, mask = optimiser.elems
    assert isinstance(hyper, Seq)
    return RULES[to_python(name, "rule")], tuple(to_python(switches, "switches")), hyper, mask


def _filled(frame: Frame, leaf: Dyn, fill: Val | None) -> Val:
    """A slot as it begins, of the type of its parameter."""
    b, t = frame.builder, leaf.type
    scalar = Scalar(t.dtype, isinstance(t, Scalar) and t.weak)
    value = (
        b.var(b.constant(as_type(0.0, scalar), scalar))
        if fill is None
        else as_typed(_number(frame, fill, "the initial value"), scalar)
    )
    return Dyn((broadcast_to(value, shape=t.shape) if isinstance(t, Array) else value).node)


@special(TreeOptimiser.init)
async def compiled_init(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    optimiser, params = _bound("init", ("optimiser", "params"), args, kwargs)
    rule, switches, hyper, _ = _opened(optimiser)
    places = list(leaves(params, "params"))
    state: dict[str, Val] = {"t": frame.constant(0)}
    for slot in rule.kept((*hyper.fields, *switches)):
        name = rule.fills.get(slot)
        fill = hyper.get(name) if name in hyper.fields else None
        begun = (_filled(frame, leaf, fill) if is_float(leaf) else Static(None) for _, leaf in places)
        state[slot] = replaced(params, begun)
    return Seq("dict", tuple(state.values()), tuple(state))


def _bound(what: str, names: tuple[str, ...], args, kwargs) -> list[Val]:
    """The arguments of a call, in order.

    Raises:
        TypeError_: there are more or fewer, or others.
    """
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) + len(kwargs) != len(names) or set(given) != set(names):
        shown = [n for n in names if n != "optimiser"]
        raise TypeError_(f"{what}({', '.join(shown)}) takes {len(shown)} argument{'s'[: len(shown) != 1]}")
    return [given[n] for n in names]


@special(TreeOptimiser.update)
async def compiled_update(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    optimiser, params, grads, state = _bound("update", ("optimiser", "params", "grads", "state"), args, kwargs)
    rule, switches, hyper, mask = _opened(optimiser)
    slots = rule.kept((*hyper.fields, *switches))
    if not isinstance(state, Seq) or state.kind != "dict" or set(state.fields) != {"t", *slots}:
        raise TypeError_(
            f"update: the state is {describe(state)}, which is not of this relay.optim.{rule.name}; make it with init(params)"
        )
    count = state.get("t")
    if not isinstance(count, Dyn):
        raise TypeError_(f"update: the state's t is {describe(count)}; it is the number of steps so far")
    before = frame.var(count)
    after = before + 1
    t = weak(after)
    values: dict[str, Any] = {n: _number(frame, hyper.get(n), n) for n in hyper.fields if n != "lr"}
    values |= dict.fromkeys(switches, True)
    lr = hyper.get("lr")
    values["lr"] = weak(frame.var(lr)) if is_number(lr) else await rate_at(engine, frame, lr, before, origin)
    places = list(leaves(params, "params"))
    gradients = list(beside(params, grads, "params", "grads"))
    kept = {s: list(beside(params, state.get(s), "params", f"state['{s}']")) for s in slots}
    decays = await _decays(engine, frame, params, mask, places, origin) if DECAY in values else [True] * len(places)
    new: list[Val] = []
    begun: dict[str, list[Val]] = {s: [] for s in slots}
    for i, (place, leaf) in enumerate(places):
        if not is_float(leaf):
            new.append(leaf)
            for s in slots:
                begun[s].append(kept[s][i])
            continue
        g = _like(frame, leaf, gradients[i], f"the gradient of {place}", place)
        own = {s: _like(frame, leaf, kept[s][i], f"state['{s}'] of {place}", place) for s in slots}
        p, changed = updated(rule, frame.var(leaf), g, own, t, values, decays[i])
        new.append(Dyn(p.node))
        for s in slots:
            begun[s].append(Dyn(changed[s].node))
    result = {s: replaced(params, iter(begun[s])) for s in slots} | {"t": Dyn(after.node)}
    out = Seq("dict", tuple(result[n] for n in state.fields), state.fields)
    return Seq("tuple", (replaced(params, iter(new)), out))


def _like(frame: Frame, leaf: Dyn, value: Val, what: str, place: str) -> Var:
    """A gradient or slot, which is of the type of its parameter; sizes that values decide are compared in the run.

    Raises:
        TypeError_: it is no array, or has another dtype.
        ShapeError: it has another shape.
    """
    if not isinstance(value, Dyn) or not isinstance(value.type, Scalar | Array):
        raise TypeError_(f"{what} is {describe(value)}, but {place} is {describe(leaf)}")
    out = frame.var(value)
    if len(out.shape) == len(leaf.type.shape):
        for axis, size in enumerate(leaf.type.shape):
            out = with_size(frame.builder, what, out, axis, size)
    if out.shape != leaf.type.shape:
        raise ShapeError(f"{what} has shape {value.type.shape}, but {place} has shape {leaf.type.shape}")
    if value.type.dtype != leaf.type.dtype:
        raise TypeError_(
            f"{what} is {value.type.dtype}, but {place} is {leaf.type.dtype}; convert it: .astype(np.{leaf.type.dtype})"
        )
    return out


async def _decays(engine: Engine, frame: Frame, params: Val, mask: Val, places: list, origin) -> list[Any]:
    """For each leaf whether its weights decay: a bool, or a computed one.

    Raises:
        TypeError_: the mask has another structure than the parameters, or something else than bools.
    """
    if isinstance(mask, Static) and mask.value is None:
        return [True] * len(places)
    tree = isinstance(mask, Seq) and mask.kind != "record" or isinstance(mask, Dyn)
    if isinstance(params, Seq) and isinstance(mask, Seq) and mask.cls is params.cls:
        tree = True
    if tree:
        chosen = list(beside(params, mask, "params", "mask"))
    else:
        chosen = [
            await call_value(engine, frame, mask, [leaf], {}, origin, None) if is_float(leaf) else Static(True)
            for _, leaf in places
        ]
    out: list[Any] = []
    for (place, leaf), value in zip(places, chosen, strict=True):
        if not is_float(leaf):
            out.append(True)
        elif not is_number(value) or value.type.dtype != "bool":
            raise TypeError_(f"the mask of {place} is {describe(value)}; it is True or False")
        else:
            out.append(bool(value.known_value) if value.known else frame.var(value))
    return out


def _float_leaves(frame: Frame, tree: Val, name: str) -> list[tuple[Val, Var | None]]:
    """The leaves of a tree, those that are floats as staged values too."""
    return [(leaf, frame.var(leaf) if is_float(leaf) else None) for _, leaf in leaves(tree, name)]


def _number(frame: Frame, value: Val, what: str) -> Coefficient:
    """A number as a staged Python float.

    Raises:
        TypeError_: it is none.
    """
    if not is_number(value):
        raise TypeError_(f"{what} is a number, not {describe(value)}")
    return weak(frame.var(value))


@special(clip_by_global_norm)
async def compiled_clip_by_global_norm(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    grads, n = _bound("clip_by_global_norm", ("grads", "n"), args, kwargs)
    most = _number(frame, n, "clip_by_global_norm: n")
    parts = _float_leaves(frame, grads, "grads")
    floats = [x for _, x in parts if x is not None]
    if not floats:
        return grads
    factor = weak(REGISTRY["minimum"](most / (norm(floats) + 1e-6), most.const(1.0)))
    new = (leaf if x is None else Dyn(as_typed(x * factor, x.type).node) for leaf, x in parts)
    return replaced(grads, new)


@special(clip_by_value)
async def compiled_clip_by_value(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    grads, n = _bound("clip_by_value", ("grads", "n"), args, kwargs)
    most = _number(frame, n, "clip_by_value: n")
    new: list[Val] = []
    for leaf, x in _float_leaves(frame, grads, "grads"):
        if x is not None:
            upper = most.like(x)
            x = as_typed(REGISTRY["minimum"](REGISTRY["maximum"](x, -upper), upper), x.type)
        new.append(leaf if x is None else Dyn(x.node))
    return replaced(grads, iter(new))


@special(ema)
async def compiled_ema(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if len(args) + len(kwargs) == 2:
        kwargs = {**kwargs, "average": Static(None)}
    params, decay, average = _bound("ema", ("params", "decay", "average"), args, kwargs)
    share = _number(frame, decay, "ema: decay")
    parts = list(leaves(params, "params"))
    if isinstance(average, Static) and average.value is None:
        return params
    new: list[Val] = []
    for (place, leaf), so_far in zip(parts, beside(params, average, "params", "average"), strict=True):
        if not is_float(leaf):
            new.append(leaf)
            continue
        old = _like(frame, leaf, so_far, f"the average of {place}", place)
        new.append(Dyn(as_typed(share * old + (1.0 - share) * frame.var(leaf), leaf.type).node))
    return replaced(params, iter(new))


__all__ = ["TreeOptimiser", "clip_by_global_norm", "clip_by_value", "ema"]
