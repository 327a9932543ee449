"""`relay.dropout`: elements set to zero at random while layers train. It draws from the model's own key."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.types import INT, Array, Scalar
from ...functions import OperatorFunction
from ...infer.engine.frames import TURN, parameter_key
from ...infer.objects.leaves import to_option
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn
from ...ir.build import Builder, Var
from ...ir.syntax import call_place
from ...prims.api.implementations import Implementation
from ...prims.api.promotion import floating, operand, unwrap
from ...prims.api.random_api import RANDOM
from ...prims.ops.examples import example_index
from ...prims.ops.shape import slice_
from ...prims.rules.broadcast import reshape
from ...random import bernoulli, fold_in
from ...utils.errors import TypeError_, ValueError_
from ..hidden import KEY
from .declaration import Layer, layer


def _example_number(b: Builder, x) -> Var:
    """Which example of a batch x belongs to: 0 where there is one."""
    x = floating(operand(b, x, "relay.dropout"))
    if x.shape:
        axes = len(x.shape)
        x = reshape(slice_(x, starts=(0,) * axes, sizes=(1,) * axes, steps=(1,) * axes), shape=())
    return unwrap(example_index(x))


example_number: Any = OperatorFunction(__name__, "example_number", Implementation("example_number", _example_number))


class Dropout(Layer):
    """See `dropout`."""

    async def compiled(self, engine, frame, args, kwargs, origin, site):
        if "key" in kwargs or len(args) > 2:
            return await self.apply(engine, frame, args, kwargs, origin, site)
        values = self.bound(args, dict(kwargs))
        x, rate = values["x"], to_option(values["rate"], "dropout: rate")
        if not (isinstance(x, Dyn) and isinstance(x.type, Array | Scalar) and x.type.is_float):
            raise TypeError_(f"relay.dropout needs a float array, not {describe(x)}: {self.example}")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
            raise ValueError_(f"relay.dropout: rate={rate!r} is a number of at least 0 and below 1")
        context = frame.context
        if context.scope is None:
            raise TypeError_(
                "relay.dropout draws from the key of a model, and must be called in a function decorated with @relay_model; "
                "elsewhere give it a key: relay.dropout(x, rate, key=key)"
            )
        number = context.scope.draw((*context.path, call_place(site)))
        if not context.training or rate == 0:
            return x
        if any(context.path[: len(path)] == path for path in context.scope.recursive):
            raise TypeError_(
                "dropout in a recursion over a tree would draw the same in every call; draw outside of it, or give each call a key "
                "of its own: relay.dropout(x, rate, key=...)"
            )
        key = frame.var(Dyn(frame.implicit(parameter_key(context.scope, KEY), Array("uint64", ()), "key")))
        turn = frame.var(Dyn(frame.implicit(TURN, INT, "turn")))
        fold = RANDOM["fold_in"]
        own = fold(frame.builder, fold(frame.builder, key, number + 1), turn)
        return await self.apply(engine, frame, [x, values["rate"], Dyn(own.node)], {}, origin, site)


def _dropout(x, rate):
    return {}


@layer(_dropout, weights=("key",), static=("rate",), staged=False, example="relay.dropout(x, rate=0.5)", cls=Dropout)
def dropout(x, rate, key):
    """Each element is zero with probability `rate`, and divided by 1 - rate otherwise.

    In a model: `dropout(x, rate)`; x itself unless layers train. It draws from the model's own key, which an update moves on:
    the same seed gives the same training. Each call in the source, each iteration of a loop and each example of `vmap` and
    `batch_mean` has draws of its own. Elsewhere: `dropout(x, rate, key)`.

    Args:
        x: a float array.
        rate: at least 0 and below 1, known at compile time.
        key: a key of `relay.random`.

    Raises:
        ValueError: the rate is another number.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (4,)]):
        ...     return relay.dropout(x, 0.5)
        >>> model = relay.create_model(f, seed=1)
        >>> model(np.ones(4, np.float32))
        array([1., 1., 1., 1.], dtype=float32)
        >>> np.unique(np.append(model(np.ones(4, np.float32), training=True), [0, 2]))
        array([0., 2.])
    """
    if not 0 <= rate < 1:
        raise ValueError(f"relay.dropout: rate={rate} is a number of at least 0 and below 1")
    kept = bernoulli(fold_in(key, example_number(x)), 1.0 - rate, np.shape(x))
    return np.where(kept, x / (1 - rate), np.zeros_like(x))
