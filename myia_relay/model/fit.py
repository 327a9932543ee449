"""Training: `relay.fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..prims.api.promotion import plain
from ..utils.errors import TypeError_, ValueError_
from .batches import Batches
from .evaluate import evaluation_feed
from .feed import ArrayFeed, StreamFeed, arguments, collected
from .history import History
from .model import ExportedModel, Model
from .optim import Optimiser, adam
from .training import Training, checked_callbacks

BATCH_SIZE = 64


def fit(
    model: Model,
    loss: Callable,
    data: Any,
    epochs: int = 1,
    batch_size: int | None = None,
    optimizer: Optimiser | None = None,
    metrics: Mapping[str, Callable] | None = None,
    shuffle: bool = True,
    seed: int = 0,
    checkpoint: Any = None,
    verbose: bool = True,
    *,
    validation_data: Any = None,
    callbacks: Iterable[Any] | None = None,
    early_stopping: int | None = None,
    accumulate: int = 1,
    drop_last: bool = False,
    batched: bool = False,
    precision: str | None = None,
) -> History:
    """Train a model on mini-batches. See docs/training.md.

    It compiles one program for the whole batches, and a second one if the last batch of an epoch is smaller; one more for metrics
    and validation.

    Args:
        model: changed in place.
        loss: a decorated function `(x, y) -> scalar` of one example that calls the model function; it is lifted to batches.
        data: arrays with examples along the first axis: a tuple, whose parts are the arguments of the loss, or one array or dict,
            which is its one argument; a `Dataset`; a sequence of examples; or `relay.data.batches(...)`.
        epochs: passes over the data.
        batch_size: examples in a batch, 64 by default; the last batch of an epoch may be smaller.
        optimizer: by default `relay.optim.adam(model)`.
        metrics: name -> function. A function with the arguments of the loss is evaluated after every epoch over the training data
            (unless they are `relay.data.batches`) and the validation data, in inference; a plain function of one parameter gets
            the model and returns what is to be recorded.
        shuffle: whether every epoch has an order of its own, drawn from the seed.
        seed: of the orders.
        checkpoint: a directory; a run that was killed or interrupted is taken up there exactly.
        verbose: whether to show a progress bar.
        validation_data: like `data`; the loss and the metrics over them are recorded as `val_loss`, `val_accuracy`, ...
        callbacks: objects with some of the methods of `relay.Callback`.
        early_stopping: end when the validation loss (the training loss, without validation data) has not become smaller in so
            many epochs; the model then has the parameters and the state of the best epoch, also where the epochs run out.
        accumulate: how many batches make one update of the parameters, by the mean gradient of all their examples.
        drop_last: whether to leave out a last batch that is smaller.
        batched: whether the loss and the metrics take batches and return means over them.
        precision: "bfloat16" rounds the operands of matrix products and convolutions to that while training, in gradients too;
            sums, parameters, optimiser, losses and all else are float32. By default what the loss's decorator says.

    Returns:
        The history: the loss of every update, and loss, seconds, steps and metrics of every epoch. It plots itself in a notebook.

    Raises:
        TypeError_: the model is none, the optimizer is of another model, or the data, a metric or a callback is none.
        ShapeError: there are not as many inputs as targets.
        ValueError_: a number is out of range, or there are fewer examples than in one batch with `drop_last`.
        ValueError: the checkpoint is of a run with other settings.
        OSError: the checkpoint cannot be read or written; the last one that was stays as it is.
        KeyboardInterrupt: on Ctrl-C; the model is then at the last whole step, and so is a checkpoint.
    """
    model = model.model if isinstance(model, ExportedModel) else model
    if not isinstance(model, Model):
        raise TypeError_(f"fit needs a model, not {type(model).__name__}; make one with relay.create_model")
    optimizer = adam(model) if optimizer is None else optimizer
    if not isinstance(optimizer, Optimiser):
        raise TypeError_(f"fit needs an optimizer of the model, relay.optim.adam(model), not {optimizer!r}")
    if optimizer.model is not model:
        raise TypeError_("fit: the optimizer is of another model")
    epochs, accumulate, early_stopping = plain((epochs, accumulate, early_stopping))
    if hasattr(epochs, "shape"):
        raise TypeError_("fit(model, loss, data): the data are one argument, a tuple of inputs and targets: (x, y)")
    for name, value in (("epochs", epochs), ("accumulate", accumulate), ("early_stopping", early_stopping)):
        least = 0 if name == "epochs" else 1
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ValueError_(f"fit: {name}={value!r} is an int of at least {least}")
    for name, function in dict(metrics or {}).items():
        if not callable(function):
            raise TypeError_(f"fit: the metric {name!r} is a function, not {function!r}")
    if isinstance(data, Batches):
        if batch_size is not None:
            raise TypeError_("fit: relay.data.batches(...) says the size of the batches; leave batch_size out")
        feed = StreamFeed(data)
    else:
        size = BATCH_SIZE if batch_size is None else batch_size
        feed = ArrayFeed(arguments(collected(data)), size, shuffle, seed, drop_last)
    validation = None if validation_data is None else evaluation_feed(validation_data, batch_size or BATCH_SIZE)
    run = Training(
        model,
        optimizer,
        loss,
        feed,
        epochs,
        batched=batched,
        accumulate=accumulate,
        metrics=metrics or {},
        validation=validation,
        callbacks=checked_callbacks(callbacks),
        patience=early_stopping,
        checkpoint=checkpoint,
        verbose=verbose,
        precision=getattr(loss, "options", {}).get("precision") if precision is None else precision,
    )
    return run.run()


__all__ = ["fit"]
