"""Training loops: `relay.fit`.

A compiled chunk of steps runs natively over stacked arrays. Between chunks Python draws the progress bar, handles
Ctrl-C, and writes checkpoints. The order of examples of an epoch follows from the seed and the epoch's number, so an
interrupted run resumes exactly from parameters, optimiser state and position.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..abstract.annotations import Rows
from ..api import Relay
from ..transform import at, batch_mean, value_and_grad
from ..utils.errors import ShapeError, TypeError_
from ..utils.progress import progress
from .checkpoint_io import load_safetensors, save_safetensors
from .history import History
from .model import ExportedModel, Model
from .optim import Optimiser, adam

CHUNK_SECONDS = 0.1  # seconds of a native chunk of steps: this often the bar moves and Ctrl-C is handled
CHECKPOINT_SECONDS = 30.0  # a checkpoint is written at least this often, and after every epoch
STATE_FILE = "state.safetensors"


@functools.lru_cache(maxsize=64)
def _steps(loss: Callable, executor: str) -> Relay:
    """The compiled chunk of training steps for a loss: one program for all chunk lengths and dataset sizes."""
    mean_loss = batch_mean(loss)

    def run_steps(
        # Annotations of compiled functions may be values.
        model, optimizer, inputs: Rows("n"), targets: Rows("n"), order: Rows("steps"), losses: Rows("steps")  # pyright: ignore[reportInvalidTypeForm]
    ):  # fmt: skip
        for step, rows in enumerate(order):
            x = np.take(inputs, rows, axis=0)
            y = np.take(targets, rows, axis=0)
            value, grads = value_and_grad(model, mean_loss, (x, y))
            optimizer.step(grads)
            losses = at(losses)[step].set(value)
        return losses

    return Relay(run_steps, executor=executor)


def stacked(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """A dataset as two arrays, inputs and targets, examples along the first axis.

    Raises:
        TypeError_: it is no dataset, or the examples differ in shape.
        ShapeError: there are not as many inputs as targets.
    """
    if hasattr(data, "images") and hasattr(data, "onehot"):
        return data.images, data.onehot
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(d, np.ndarray) for d in data):
        x, y = data
        if len(x) != len(y):
            raise ShapeError(f"fit: {len(x)} inputs and {len(y)} targets")
        return x, y
    try:
        pairs = [tuple(example) for example in data]
        x, y = (np.stack([np.asarray(p[i]) for p in pairs]) for i in range(2))
    except (TypeError, ValueError, IndexError) as error:
        raise TypeError_(
            f"fit: data must be a dataset, a pair of arrays, or a sequence of (x, y) examples of one shape: {error}"
        ) from None
    return x, y


def epoch_order(count: int, batch_size: int, shuffle: bool, seed: int, epoch: int) -> np.ndarray:
    """The rows of every batch of an epoch: int64 (steps, batch_size); the examples that fill no batch are left out."""
    order = np.random.default_rng([seed, epoch]).permutation(count) if shuffle else np.arange(count)
    steps = count // batch_size
    return order[: steps * batch_size].reshape(steps, batch_size).astype(np.int64)


class Checkpoint:
    """The files of a resumable run in a directory."""

    def __init__(self, directory: Any):
        self.path = Path(directory) / STATE_FILE
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def save(self, model: Model, optimizer: Optimiser, position: dict[str, int], history: History) -> None:
        """Write everything, atomically."""
        arrays = {f"model/{n}": a for n, a in model.saved().items()}
        arrays |= {f"optimizer/{n}": a for n, a in optimizer.state().items()}
        arrays["losses"] = history.step_losses()
        save_safetensors(self.path, arrays, {k: str(v) for k, v in position.items()})

    def load(
        self, model: Model, optimizer: Optimiser, settings: dict[str, int], history: History
    ) -> dict[str, int] | None:
        """Resume a run where it ended; None if there is nothing yet.

        Raises:
            ValueError: the checkpoint is of a run with other settings.
        """
        if not self.path.exists():
            return None
        arrays, meta = load_safetensors(self.path)
        for key, value in settings.items():
            if str(meta.get(key)) != str(value):
                raise ValueError(
                    f"{self.path}: made with {key}={meta.get(key)}, not {value}; use the same settings or another directory"
                )
        model.restore({n.removeprefix("model/"): a for n, a in arrays.items() if n.startswith("model/")})
        optimizer.load_state({n.removeprefix("optimizer/"): a for n, a in arrays.items() if n.startswith("optimizer/")})
        history.record_steps(arrays["losses"])
        return {k: int(meta[k]) for k in ("epoch", "step")}


def fit(
    model: Model,
    loss: Callable,
    data: Any,
    epochs: int = 1,
    batch_size: int = 64,
    optimizer: Optimiser | None = None,
    metrics: Mapping[str, Callable] | None = None,
    shuffle: bool = True,
    seed: int = 0,
    checkpoint: Any = None,
    verbose: bool = True,
) -> History:
    """Train a model on mini-batches.

    Args:
        model: changed in place.
        loss: a decorated function `(x, y) -> scalar` of one example that calls the model function; it is lifted to batches.
        data: a `Dataset`, a pair of arrays with examples along the first axis, or a sequence of `(x, y)`.
        epochs: passes over the data.
        batch_size: examples per step; what fills no batch at the end of an epoch is left out of it.
        optimizer: by default `relay.optim.adam(model)`.
        metrics: name -> function of the model, evaluated after every epoch and recorded.
        shuffle: whether every epoch has an order of its own, drawn from the seed.
        seed: of the orders.
        checkpoint: a directory; a run that was killed is taken up there exactly.
        verbose: whether to show a progress bar.

    Returns:
        The history: the loss of every step, and loss, seconds, steps and metrics of every epoch. It plots itself in a notebook.

    Raises:
        TypeError_: the model is none, the optimizer is of another model, or the data is no dataset.
        ShapeError: there are not as many inputs as targets.
        ValueError: there are fewer examples than in one batch, or the checkpoint is of a run with other settings.
        KeyboardInterrupt: on Ctrl-C; the model is then at the last whole step, and a checkpoint directory has it.
    """
    model = model.model if isinstance(model, ExportedModel) else model
    if not isinstance(model, Model):
        raise TypeError_(f"fit needs a model, not {type(model).__name__}; make one with relay.create_model")
    optimizer = adam(model) if optimizer is None else optimizer
    if not isinstance(optimizer, Optimiser):
        raise TypeError_(f"fit needs an optimizer of the model, relay.optim.adam(model), not {optimizer!r}")
    if optimizer.model is not model:
        raise TypeError_("fit: the optimizer is of another model")
    inputs, targets = stacked(data)
    if not 1 <= batch_size <= len(inputs):
        raise ValueError(f"fit: batch_size={batch_size} for {len(inputs)} examples")
    run = _steps(loss, getattr(loss, "options", {"executor": "native"})["executor"])
    history = History()
    settings = {"seed": seed, "batch_size": batch_size, "examples": len(inputs), "shuffle": int(shuffle)}
    store = Checkpoint(checkpoint) if checkpoint is not None else None
    at = (store.load(model, optimizer, settings, history) if store else None) or {"epoch": 0, "step": 0}
    saved = time.monotonic()
    step = at["step"]
    try:
        for epoch in range(at["epoch"], epochs):
            order = epoch_order(len(inputs), batch_size, shuffle, seed, epoch)
            started, chunk = time.perf_counter(), 1
            first_loss = history.steps - step
            with progress(total=len(order), desc=f"epoch {epoch + 1}/{epochs}", unit="step", enabled=verbose) as bar:
                bar.update(step)
                while step < len(order):
                    rows = order[step : step + chunk]
                    begun = time.perf_counter()
                    losses: Any = run(model, optimizer, inputs, targets, rows, np.zeros(len(rows), np.float32))
                    spent = time.perf_counter() - begun
                    step += len(rows)
                    history.record_steps(losses)
                    bar.update(len(rows))
                    bar.set_postfix(loss=f"{float(np.mean(losses)):.4f}")
                    if spent < CHUNK_SECONDS:
                        chunk = min(max(chunk * 2, 1), 4096)
                    elif spent > 2 * CHUNK_SECONDS:
                        chunk = max(chunk // 2, 1)
                    if store and time.monotonic() - saved > CHECKPOINT_SECONDS:
                        store.save(model, optimizer, {**settings, "epoch": epoch, "step": step}, history)
                        saved = time.monotonic()
            seconds = time.perf_counter() - started
            measured = {name: fn(model) for name, fn in (metrics or {}).items()}
            mean = float(np.mean(history.step_losses(first_loss).astype(np.float64)))
            history.record_epoch(loss=mean, seconds=seconds, steps=len(order), **measured)
            step = 0
            if store:
                store.save(model, optimizer, {**settings, "epoch": epoch + 1, "step": 0}, history)
    except KeyboardInterrupt:
        # The completed steps of the interrupted chunk are in the model, but not counted: a resumed run starts from the
        # last checkpoint, which is consistent in itself.
        raise
    return history
