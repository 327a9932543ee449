"""The compiled programs of `relay.fit` and `relay.evaluate`.

A chunk of training steps runs natively over arrays that hold the whole data. One program serves all lengths of chunks and of
data, for batches of one size. A last batch that is smaller gets a second program; its statistics, its mean and its cost are
those of its own examples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..abstract.annotations import Rows
from ..api import Relay
from ..derivatives import tree_map
from ..infer.engine.engine import Ambient, Engine
from ..infer.engine.frames import Frame
from ..infer.language.calls import call_value
from ..infer.language.registry import special
from ..infer.transforms.model_gradients import provide
from ..infer.values.values import NONE_VAL, Seq, Val
from ..transforms import at, batch_mean, value_and_grad, vmap
from .batches import leaves_of
from .hidden import move_key
from .model import model_argument


class Stack:
    """Data as compiled code sees them: a tree of arrays whose first axis has one symbolic size."""

    def __init__(self, tree: Any):
        self.tree = tree
        self.count = len(leaves_of(tree)[0])

    def __relay_tree__(self, name: str):
        """The parts of the tree, as stacks and arrays."""
        tree = self.tree
        if isinstance(tree, dict):
            form, fields, cls, parts = "dict", tuple(tree), None, list(tree.values())
        elif hasattr(tree, "_fields"):
            form, fields, cls, parts = "record", tree._fields, type(tree), list(tree)
        else:
            form, fields, cls, parts = "tuple", (), None, list(tree)
        inner = [(p, Rows(name)) if isinstance(p, np.ndarray) else (_Branch(p, name), None) for p in parts]
        return form, fields, cls, inner


class _Branch(Stack):
    """A part of a stack that is a tree itself: its sizes are the stack's."""

    def __init__(self, tree: Any, name: str):
        self.tree, self.name = tree, name

    def __relay_tree__(self, name: str):
        return super().__relay_tree__(self.name)


def move_model_key(model) -> None:
    """In compiled code: move on the key that dropout draws from, as an update does."""
    raise NotImplementedError


@special(move_model_key)
async def _compiled_move(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    move_key(frame, model_argument(args[0], "move_model_key"))
    return NONE_VAL


def inferred(model, function, args) -> Any:
    """In compiled code: `function(*args)` with the parameters of a model, whose layers infer."""
    raise NotImplementedError


@special(inferred)
async def _compiled_inferred(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    model, function, given = model_argument(args[0], "evaluate"), args[1], args[2]
    assert isinstance(given, Seq)
    spec = model.type.spec
    scope = frame.scope()
    provide(scope, model, origin)
    scope.context = Ambient((*frame.context.models, (spec.function, spec)), None, (), False, cuts=frame.context.cuts)
    return await call_value(engine, scope, function, list(given.elems), {}, origin, site)


@functools.lru_cache(maxsize=64)
def training(loss: Callable, executor: str, batched: bool, precision: str | None) -> Relay:
    """The compiled chunk of training steps, one for each batch."""
    batch_loss = loss if batched else batch_mean(loss)

    def run_steps(
        # Annotations of compiled functions may be values.
        model, optimizer, data, order: Rows("steps"), losses: Rows("steps")  # pyright: ignore[reportInvalidTypeForm]
    ):  # fmt: skip
        for step, rows in enumerate(order):
            batch = tree_map(lambda a: np.take(a, rows, axis=0), data)  # noqa: B023
            value, grads = value_and_grad(model, batch_loss, batch)
            optimizer.step(grads)
            losses = at(losses)[step].set(value)
        return losses

    return Relay(run_steps, executor=executor, precision=precision)


@functools.lru_cache(maxsize=64)
def accumulating(loss: Callable, executor: str, batched: bool, precision: str | None) -> Relay:
    """The compiled chunk of batches whose gradients are added up, each example with the same weight, until a step is due."""
    batch_loss = loss if batched else batch_mean(loss)

    def add_gradients(
        model, optimizer, sums, data, order: Rows("steps"), due: Rows("steps"), losses: Rows("steps")  # pyright: ignore[reportInvalidTypeForm]
    ):  # fmt: skip
        for step, rows in enumerate(order):
            batch = tree_map(lambda a: np.take(a, rows, axis=0), data)  # noqa: B023
            value, grads = value_and_grad(model, batch_loss, batch)
            sums = tree_map(lambda s, g: s + g * len(rows), sums, grads)  # noqa: B023
            examples = due[step]  # of all batches since the last step; 0 where none is due
            if examples > 0:
                optimizer.step(tree_map(lambda s: s / examples.astype(s.dtype), sums))  # noqa: B023
                sums = tree_map(np.zeros_like, sums)
            else:
                move_model_key(model)
            losses = at(losses)[step].set(value)
        return sums, losses

    return Relay(add_gradients, executor=executor, precision=precision)


@functools.lru_cache(maxsize=64)
def evaluating(functions: tuple[Callable, ...], executor: str, batched: bool) -> Relay:
    """The compiled chunk of batches over which functions are added up, in inference.

    Functions of one example are so for each example of a batch but the last ones that only fill it up, functions of batches
    with the number of examples as weight.
    """

    def add_values(model, data, order: Rows("steps"), counts: Rows("steps"), totals):  # pyright: ignore[reportInvalidTypeForm]
        for step, rows in enumerate(order):
            batch = tree_map(lambda a: np.take(a, rows, axis=0), data)  # noqa: B023
            for i, function in enumerate(functions):
                if batched:
                    value = inferred(model, function, batch) * counts[step]
                else:
                    values = inferred(model, vmap(function), batch)
                    if values.ndim != 1:
                        raise TypeError("a metric gives one number for each example, not an array")
                    value = np.sum(np.where(np.arange(len(rows)) < counts[step], values, 0), dtype=np.float64)
                totals = at(totals)[i].add(value)
        return totals

    return Relay(add_values, executor=executor)
