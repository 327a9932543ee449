"""`relay.optim`: optimisers of models and of trees of arrays, schedules of learning rates, clipping, averages.

    optimizer = relay.optim.adam(model, lr=1e-3)  # of a model, in place: optimizer.step(grads)

    opt = relay.optim.adamw(lr=1e-3)  # of any tree of arrays
    state = opt.init(params)
    params, state = opt.update(params, grads, state)

Both work in compiled code and outside. See docs/optimisers.md.
"""

from . import schedules
from .on_models import Optimiser
from .on_trees import TreeOptimiser, clip_by_global_norm, clip_by_value, ema
from .rules import adagrad, adam, adamw, lamb, lion, momentum, rmsprop, sgd

__all__ = [
    "Optimiser",
    "TreeOptimiser",
    "adagrad",
    "adam",
    "adamw",
    "clip_by_global_norm",
    "clip_by_value",
    "ema",
    "lamb",
    "lion",
    "momentum",
    "rmsprop",
    "schedules",
    "sgd",
]
