"""Transforms as users call them: `grad(f)`, `value_and_grad(f)`, `vmap(f)`, ...

A transformed function is itself a `Relay` function: it compiles on call and can be transformed again. It also works
inside compiled code, where `infer.transforms.transforms` implements these names.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .api import Relay
from .decorated import parameter_annotations
from .infer.arguments.arguments import constant_treedef
from .infer.language.registry import special
from .infer.transforms import transforms as _infer
from .infer.values.treedef import TreeDef
from .prims.api.promotion import plain
from .utils.arrays import plain_array
from .utils.errors import GradError, TypeError_


class Transformed(Relay):
    """A transformed function: `transform` applied to `function` with static `options`."""

    def __init__(self, transform: str, function: Callable, options: Any):
        self._derived = (transform, function, tuple(sorted(dict(options).items())))
        settings = getattr(function, "options", {"executor": "native"})
        static = function.static if isinstance(function, Relay) else ()
        of_tuples = transform in OF_TUPLES
        self._constants = constant_positions(function) if of_tuples else frozenset()
        super().__init__(
            function,
            static=() if of_tuples or transform in OF_OTHERS else static,
            **{k: v for k, v in settings.items() if k in ("executor", "target", "fastmath", "debug_nans", "precision")},
        )
        if of_tuples or transform in OF_OTHERS:
            self.static = ()
        self._decorated = _Marker(self._derived)
        self.__name__ = f"{transform}({getattr(function, '__name__', 'f')})"
        self.taken = _taken(transform, self.taken)

    def _quick_key(self, args: tuple, kwargs: dict, leaves: list) -> tuple | None:
        return None if self._constants else super()._quick_key(args, kwargs, leaves)

    def _with_constants(self, position: int, value: Any, describe: Callable[[Any], TreeDef]) -> TreeDef | None:
        if not isinstance(value, tuple) or position > OF_TUPLES.get(self._derived[0], -1):
            return None
        return with_constants(self._constants, position == 0, value, describe)

    def _made_of(self) -> tuple[tuple, dict[str, Any]]:
        transform, function, options = self._derived
        return (transform, function, options), {}

    @property
    def __relay_derived__(self) -> tuple[str, Callable, tuple]:
        """The transform, its function, and its options. A property, like `__relay_function__`."""
        return self._derived


OF_TUPLES = {"jvp": 1, "hvp": 1, "vjp": 0}
"""Transforms whose first argument is a tuple of arguments, with the position of the last that is one; others are directions."""
OF_OTHERS = ("scan", "cond", "while_loop", "fori_loop")
"""Transforms whose arguments are not those of the function."""


def constant_positions(function: Any) -> frozenset[int]:
    """The positions of the parameters of a decorated function that are named in `static`."""
    if not isinstance(function, Relay) or not function.static:
        return frozenset()
    names, _ = parameter_annotations(function.__relay_function__)
    return frozenset(k for k, name in enumerate(names) if name in function.static)


def with_constants(
    constants: frozenset[int], values: bool, given: tuple, describe: Callable[[Any], TreeDef]
) -> TreeDef | None:
    """The treedef of a tuple of arguments, or of a direction for each, of which some are compile-time constants.

    Args:
        constants: their positions.
        values: whether these are arguments; the direction of a constant is zero, whatever is given.
        given: the tuple.
        describe: gives the treedef of any other value.
    """
    if not constants:
        return None
    known = [constant_treedef(v if values else None) if k in constants else None for k, v in enumerate(given)]
    parts = tuple(describe(v) if t is None else t for t, v in zip(known, given, strict=True))
    return TreeDef("seq", ("tuple", (), None), parts)


def _taken(transform: str, taken: Callable | None) -> Callable | None:
    """`Relay.taken` of a transformed function, given that of the function."""
    if taken is None or transform in ("vmap", "batch_mean", "scan", "cond", "while_loop", "fori_loop"):
        return None  # other arguments than the function has
    if transform not in ("jvp", "hvp", "vjp"):
        return taken

    def of_points(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """A tuple of arguments, and for `jvp` and `hvp` one of directions, in which None is zero."""
        points, directions = args
        several = isinstance(points, tuple)
        given, _ = taken(points if several else (points,), {})
        if transform != "vjp":
            moved = tuple(directions) if several else (directions,)
            if len(moved) == len(given):
                filled, _ = taken(tuple(p if d is None else d for p, d in zip(given, moved, strict=True)), {})
                moved = tuple(None if d is None else f for f, d in zip(filled, moved, strict=True))
                directions = moved if several else moved[0]
        return (given if several else given[0], directions), kwargs

    return of_points


def _make(transform: str, function: Callable, items: tuple, _text: str) -> Transformed:
    return Transformed(transform, function, dict(items))


_of_plain_functions = functools.lru_cache(maxsize=256)(_make)


def transformed(transform: str, function: Callable, options: dict[str, Any]) -> Transformed:
    """A transform of a function: the same object whenever it is asked for, so that `grad(f)(x)` in a loop compiles once.

    A decorated function holds its own transforms. Closures that are not decorated are transformed anew: what held them would
    hold what they capture, a batch of each step, say. So are functions and options that cannot be hashed.
    """
    options = {name: plain(value) for name, value in options.items()}
    items = tuple(sorted(options.items()))
    try:
        hash((function, items))
    except TypeError:
        return Transformed(transform, function, options)
    if isinstance(function, types.FunctionType) and function.__closure__:
        return Transformed(transform, function, options)
    made = _of_plain_functions
    if isinstance(function, Relay):
        made = vars(function).get("_transforms") or vars(function).setdefault("_transforms", _new_store())
    return made(transform, function, items, repr(items))  # the text tells 1 from True


def _new_store() -> Callable[..., Transformed]:
    return functools.lru_cache(maxsize=32)(_make)


class _Marker:
    """What compiled code sees of a transformed function."""

    __slots__ = ("__relay_derived__",)

    def __init__(self, derived):
        self.__relay_derived__ = derived


def _check_function(transform: str, f: Any) -> None:
    if not callable(f):
        raise GradError(f"{transform}: the first argument must be a function or a model, not {type(f).__name__}")


def _is_model(x: Any) -> bool:
    return hasattr(x, "__relay_ref__") and not isinstance(x, type)


def _wrt(wrt: Any, argnums: Any) -> Any:
    chosen = wrt if argnums is None else argnums
    return tuple(chosen) if isinstance(chosen, list) else chosen


@functools.lru_cache(maxsize=256)
def _model_gradient(transform: str, loss: Callable, executor: str, training: bool, has_aux: bool) -> Relay:
    """The compiled gradient of a loss by a model's parameters, one per loss."""

    def run_grad(model, args):
        return grad(model, loss, args, has_aux=has_aux, training=training)

    def run_value_and_grad(model, args):
        return value_and_grad(model, loss, args, has_aux=has_aux, training=training)

    return _OfArguments(run_grad if transform == "grad" else run_value_and_grad, loss, executor)


class _OfArguments(Relay):
    """A function of a model and a tuple of arguments of a loss."""

    def __init__(self, function: Callable, loss: Any, executor: str):
        self._constants = constant_positions(loss)
        super().__init__(function, executor=executor)

    def _quick_key(self, args: tuple, kwargs: dict, leaves: list) -> tuple | None:
        return None if self._constants else super()._quick_key(args, kwargs, leaves)

    def _with_constants(self, position: int, value: Any, describe: Callable[[Any], TreeDef]) -> TreeDef | None:
        return with_constants(self._constants, True, value, describe) if position == 1 else None


def _of_model(transform: str, model, loss, rest: tuple, has_aux, training):
    if len(rest) != 1 or not isinstance(rest[0], tuple | list):
        raise TypeError_(f"{transform}(model, loss, args): args must be a tuple of the loss's arguments")
    executor = getattr(loss, "options", {"executor": "native"})["executor"]
    run = _model_gradient(transform, loss, executor, bool(training), bool(has_aux))
    return run(model, tuple(rest[0]))


def _of_function(transform: str, f, wrt, rest: tuple, has_aux, argnums, training) -> Transformed:
    _check_function(transform, f)
    if not training:
        raise TypeError_(
            "training= is an option of relay.grad(model, loss, args) and relay.value_and_grad(model, loss, args)"
        )
    if len(rest) > 1:
        raise TypeError_(
            f"{transform}(f, wrt=0, has_aux=False) takes no more arguments; call what it returns with them"
        )
    return transformed(transform, f, {"wrt": _wrt(wrt, argnums), "has_aux": bool(rest[0] if rest else has_aux)})


def grad(f, wrt: Any = 0, *rest, has_aux: Any = False, argnums=None, training=True) -> Any:
    """The gradient of a function with a scalar float result, or of a loss by the parameters of a model.

    Args:
        f: a function; or a model, then `grad(model, loss, args)`.
        wrt: the parameters to differentiate by: a name, a position, or a tuple of either (the result is then a tuple).
        rest: of a function: `has_aux`; of a model: the arguments of the loss, a tuple.
        has_aux: whether `f`, or the loss, returns `(value, aux)`; the result is then `(gradient, aux)`.
        argnums: another name of `wrt`.
        training: of a model: whether its layers train.

    Returns:
        A function of the same arguments that returns the gradient: the structure, shapes and dtypes of the argument. For a
        model: a dict from parameter name to array.

    Raises:
        GradError: when called: the result is no scalar float, or an argument has no derivative.
    """
    if _is_model(f):
        return _of_model("grad", f, wrt, rest, has_aux, training)
    return _of_function("grad", f, wrt, rest, has_aux, argnums, training)


def value_and_grad(f, wrt: Any = 0, *rest, has_aux: Any = False, argnums=None, training=True) -> Any:
    """Like `grad`, returning `(value, gradient)`; with `has_aux` `((value, aux), gradient)`."""
    if _is_model(f):
        return _of_model("value_and_grad", f, wrt, rest, has_aux, training)
    return _of_function("value_and_grad", f, wrt, rest, has_aux, argnums, training)


def vmap(f, in_axes=0, out_axes=0):
    """A function over batches from a function of single examples.

    Args:
        f: the function.
        in_axes: the batch axis of every argument: an int for all, or a tuple with an int or None (not batched) for each.
        out_axes: where the results' batch axis goes.

    Returns:
        A function that takes batched arguments. Annotations of `f` are checked per example; parameters of a model are
        never batched.
    """
    _check_function("vmap", f)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    return transformed("vmap", f, {"in_axes": axes, "out_axes": out_axes})


def batch_mean(f, in_axes=0):
    """The mean of a scalar function over a batch: `mean(vmap(f)(...))`; what a mini-batch loss is."""
    _check_function("batch_mean", f)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    return transformed("batch_mean", f, {"in_axes": axes})


def stop_gradient(x):
    """`x`; derivatives take it for a constant. Works on trees."""
    return x


class At:
    """`relay.at(x)`: index it, then `set`, `add`, `subtract`, `multiply`, `divide`, `min` or `max` of a value gives a new array.

    A position that occurs twice in the index is changed twice, as in JAX: `add` adds both values, and `set` keeps the last.
    On NumPy arrays it copies; in compiled code the copy is made only where the old array is still needed.
    """

    def __init__(self, array, index=None):
        self._array, self._index = plain_array(array), index

    def __getitem__(self, index) -> At:
        return At(self._array, index)

    def _combined(self, ufunc, value):
        out = self._array.copy()
        if np.can_cast(np.result_type(ufunc(np.ones((), out.dtype), value)), out.dtype, "same_kind"):
            ufunc.at(out, self._index, value)
            return out
        at = np.arange(out.size).reshape(out.shape)[self._index]
        flat = out.reshape(-1)
        for place, other in zip(at.ravel(), np.broadcast_to(value, at.shape).ravel(), strict=True):
            flat[place] = ufunc(flat[place], other)
        return out

    def set(self, value):
        """A copy with the part replaced; of several values for one position it has the last."""
        out = self._array.copy()
        out[self._index] = value
        return out

    def add(self, value):
        """A copy with the value added to the part."""
        return self._combined(np.add, value)

    def subtract(self, value):
        """A copy with the value subtracted from the part."""
        return self._combined(np.subtract, value)

    def multiply(self, value):
        """A copy with the part multiplied."""
        return self._combined(np.multiply, value)

    def divide(self, value):
        """A copy with the part divided."""
        return self._combined(np.divide, value)

    def min(self, value):
        """A copy with the lesser of the part and the value."""
        return self._combined(np.minimum, value)

    def max(self, value):
        """A copy with the greater of the part and the value."""
        return self._combined(np.maximum, value)


def at(x) -> At:
    """A functional update: `y = relay.at(x)[i].set(v)` is `y = x.copy(); y[i] = v`."""
    return At(x)


special(at)(_infer.at_call)
special(grad)(_infer.request("grad"))
special(value_and_grad)(_infer.request("value_and_grad"))
special(vmap)(_infer.request_batch("vmap"))
special(batch_mean)(_infer.request_batch("batch_mean"))
special(stop_gradient)(_infer.stop_gradient_call)
