"""A run of `relay.fit`: its loop, and what callbacks see of it.

A compiled chunk of steps runs natively. Between chunks Python draws the progress bar, calls callbacks, and writes checkpoints.
The order of an epoch follows from its number, so that a run that was interrupted goes on from parameters, optimiser state and
position as if nothing had happened.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..api import Relay
from ..utils.errors import TypeError_, nearest
from ..utils.interrupts import deferred
from ..utils.progress import progress
from .evaluate import executor_of, means
from .feed import ArrayFeed, Piece, StreamFeed
from .history import Counts, History
from .model import Model
from .optim import Optimiser
from .resume import Checkpoint
from .steps import accumulating, training

CHUNK_SECONDS = 0.1  # seconds of a native chunk of steps: this often the bar moves and Ctrl-C is handled
CHECKPOINT_SECONDS = 30.0  # a checkpoint is written at least this often, and after every epoch
LONGEST_CHUNK = 4096  # steps

HOOKS = ("on_train_begin", "on_batch_end", "on_epoch_end", "on_train_end")


class Callback:
    """What `relay.fit` calls while it trains: override what is needed. Any object with some of these methods will do.

    Each gets the run: a `Training`. An error that one raises ends the training and reaches the caller of `fit`; the model is then
    at the last whole step.
    """

    def on_train_begin(self, run: Training) -> None:
        """Before the first step; the model may have been read from a checkpoint."""

    def on_batch_end(self, run: Training) -> None:
        """After every update of the parameters. It makes every update a call from Python."""

    def on_epoch_end(self, run: Training) -> None:
        """After every epoch; its row is `run.history.epochs[-1]`."""

    def on_train_end(self, run: Training) -> None:
        """After the last epoch, unless an error or Ctrl-C ended the training."""


class Training:
    """A run of `relay.fit`, as callbacks see it.

    Attributes:
        model, optimizer, history: of the run; `run.optimizer.lr = ...` sets another learning rate.
        epoch: how many epochs are finished.
        epochs: how many there will be at most.
        step: how many times the parameters were updated.
    """

    def __init__(
        self,
        model: Model,
        optimizer: Optimiser,
        loss: Callable,
        feed: ArrayFeed | StreamFeed,
        epochs: int,
        *,
        batched: bool,
        accumulate: int,
        metrics: Mapping[str, Callable],
        validation: ArrayFeed | StreamFeed | None,
        callbacks: Iterable[Any],
        patience: int | None,
        checkpoint: Any,
        verbose: bool,
        precision: str | None,
    ):
        self.model, self.optimizer, self.history = model, optimizer, History()
        self.epoch, self.epochs = 0, epochs
        self.settings = {**feed.settings(), "accumulate": accumulate, "precision": precision or "float32"}
        self.given = optimizer.settings()  # before callbacks change it
        self.sums: dict[str, np.ndarray] = {}  # gradients of batches since the last update, where they accumulate
        self.counts = Counts()  # of examples in each step of this epoch
        self.best: dict[str, np.ndarray] = {}  # the parameters and the state of the best epoch
        self._loss, self._feed, self._validation, self._batched = loss, feed, validation, batched
        self._accumulate, self._patience, self._verbose = accumulate, patience, verbose
        self._batch = 0  # how many batches of this epoch are done
        self._pending = (0.0, 0)  # the sum of the losses, and the examples, of the batches since the last update
        self._best, self._worse = math.inf, 0  # the best epoch's value, and how many epochs have not been better since
        self._stopping = False
        self._hooks = {name: _methods(callbacks, name) for name in HOOKS}
        self._of_model = {n: f for n, f in metrics.items() if _takes_the_model(f)}
        self._of_examples = {n: f for n, f in metrics.items() if n not in self._of_model}
        make = training if accumulate == 1 else accumulating
        self._program = make(loss, executor_of(loss), batched, precision)
        self._compiled: set[int] = set()  # sizes of batches
        self._store = Checkpoint(checkpoint) if checkpoint is not None else None

    @property
    def step(self) -> int:
        """How many times the parameters were updated."""
        return self.history.steps

    @property
    def loss(self) -> float:
        """The loss of the last update."""
        return float(self.history.step_losses(self.step - 1)[0]) if self.step else math.nan

    def stop(self) -> None:
        """End the epoch here, and the training with it."""
        self._stopping = True

    def position(self) -> dict[str, Any]:
        """Where the run is: what a checkpoint has besides arrays."""
        return {
            "epoch": self.epoch,
            "batch": self._batch,
            "pending": self._pending,
            "best": self._best,
            "worse": self._worse,
        }

    def take_up(self, position: Mapping[str, Any]) -> None:
        """Be where another run was."""
        self.epoch, self._batch = position["epoch"], position["batch"]
        self._pending = tuple(position["pending"])
        if self.best:
            self._best, self._worse = position["best"], position["worse"]

    def run(self) -> History:
        """Train.

        Raises:
            KeyboardInterrupt: on Ctrl-C, at the end of a step; a checkpoint of it is written.
        """
        if self._store:
            self._store.load(self)
        self._saved = time.monotonic()
        given = dict(self.optimizer.given)
        try:
            self._call("on_train_begin")
            while self.epoch < self.epochs and not self._finished():
                self._run_epoch()
        except KeyboardInterrupt:
            if self._store:
                self._store.save(self)
            raise
        finally:
            self.optimizer.given = (
                given  # what callbacks set is in the checkpoint, and is none of the program's settings
            )
        if self._patience is not None and self.best:
            self.model.restore({**self.model.saved(), **self.best})
        self._call("on_train_end")
        return self.history

    def _finished(self) -> bool:
        return self._stopping or self._patience is not None and self._worse >= self._patience

    def _call(self, hook: str) -> None:
        for method in self._hooks[hook]:
            method(self)

    def _run_epoch(self) -> None:
        started, chunk = time.perf_counter(), 1
        batches = self._feed.batches
        updates = None if batches is None else -(-batches // self._accumulate)
        desc = f"epoch {self.epoch + 1}/{self.epochs}"
        with (
            contextlib.closing(self._feed.epoch(self.epoch, self._batch)) as reader,
            progress(total=updates, desc=desc, unit="step", enabled=self._verbose) as bar,
        ):
            bar.update(len(self.counts))
            examples, busy = 0, 0.0  # of the chunks for which nothing was compiled
            while not self._stopping and (piece := reader.take(chunk * self._accumulate)) is not None:
                begun, before, compiled = time.perf_counter(), self.step, len(self._compiled)
                self._train_on(piece)
                spent, made = time.perf_counter() - begun, self.step - before
                if compiled == len(self._compiled):
                    examples, busy = examples + piece.rows.size, busy + spent
                if made:
                    rate = f"{examples / busy:,.0f} examples/s, " if busy else ""
                    bar.set_postfix_str(f"{rate}loss={np.mean(self.history.step_losses(before)):.4f}", refresh=False)
                    bar.update(made)
                    self._call("on_batch_end")
                if spent < CHUNK_SECONDS and not self._hooks["on_batch_end"]:
                    chunk = min(chunk * 2, LONGEST_CHUNK)
                elif spent > 2 * CHUNK_SECONDS:
                    chunk = max(chunk // 2, 1)
                if self._store and time.monotonic() - self._saved > CHECKPOINT_SECONDS:
                    self._save(self._store)
        self._end_epoch(time.perf_counter() - started)

    def _train_on(self, piece: Piece) -> None:
        """Run the program on some batches of one size; Ctrl-C is heard behind them."""
        size = piece.rows.shape[1]
        if size not in self._compiled:  # no step yet: Ctrl-C may interrupt the compiler
            self._run_program(piece._replace(rows=piece.rows[:0], last=False))
            self._compiled.add(size)
        with deferred():
            self._run_program(piece)
            self._batch += len(piece.rows)

    def _run_program(self, piece: Piece) -> None:
        steps, size = piece.rows.shape
        room = np.zeros(steps, np.float32)
        run: Any = self._program
        if self._accumulate == 1:
            self.history.record_steps(run(self.model, self.optimizer, piece.data, piece.rows, room))
            self.counts.add(size, steps)
            return
        sums = self.sums or {n: np.zeros_like(p) for n, p in self.model.params.items()}
        due = np.zeros(steps, np.int64)
        examples = self._pending[1]
        for i in range(steps):
            examples += size
            if (self._batch + i + 1) % self._accumulate == 0 or piece.last and i == steps - 1:
                due[i], examples = examples, 0
        self.sums, losses = run(self.model, self.optimizer, sums, piece.data, piece.rows, due, room)
        for value, count in zip(losses, due):
            total, examples = self._pending
            self._pending = total + float(value) * size, examples + size
            if count:
                mean = self._pending[0] / self._pending[1]
                self.history.record_steps(np.array([mean], np.float32))
                self.counts.add(self._pending[1])
                self._pending = 0.0, 0

    def _end_epoch(self, seconds: float) -> None:
        losses = self.history.step_losses(self.step - len(self.counts)).astype(np.float64)
        counts = self.counts.array()
        mean = float(np.sum(losses * counts) / np.sum(counts)) if len(counts) else math.nan
        measured = self._measured()
        monitored = measured.get("val_loss", mean)
        with deferred():
            self.history.record_epoch(loss=mean, seconds=seconds, steps=len(self.counts), **measured)
            if self._patience is not None:
                if monitored < self._best or not self.best:
                    self._best, self._worse = (monitored if monitored == monitored else math.inf), 0
                    self.best = {n: a.copy() for n, a in (*self.model.params.items(), *self.model.state.items())}
                else:
                    self._worse += 1
            self.epoch, self._batch, self.counts, self.sums, self._pending = self.epoch + 1, 0, Counts(), {}, (0.0, 0)
        self._call("on_epoch_end")
        if self._store:
            self._save(self._store)

    def _measured(self) -> dict[str, Any]:
        """The metrics of the model as it is now."""
        found: dict[str, Any] = {}
        # One program for both: with validation data the loss is computed over the training data too, for nothing.
        functions = ({} if self._validation is None else {"loss": self._loss}) | self._of_examples
        if self._of_examples and isinstance(self._feed, ArrayFeed):
            measured = self._means(functions, self._feed)
            found |= {name: measured[name] for name in self._of_examples}
        if self._validation is not None:
            found |= {f"val_{n}": v for n, v in self._means(functions, self._validation).items()}
        return found | {name: function(self.model) for name, function in self._of_model.items()}

    def _means(self, functions: Mapping[str, Callable], feed: ArrayFeed | StreamFeed) -> dict[str, float]:
        if isinstance(feed, ArrayFeed):
            feed = ArrayFeed(feed.data, feed.batch_size)  # in their order, and all of them
        values = means(self.model, tuple(functions.values()), feed, self._batched)
        return dict(zip(functions, values, strict=True))

    def _save(self, store: Checkpoint) -> None:
        store.save(self)
        self._saved = time.monotonic()


def _takes_the_model(metric: Callable) -> bool:
    """Whether a metric is a plain function of the model; others are compiled functions of examples."""
    if isinstance(metric, Relay):
        return False
    try:
        parameters = inspect.signature(metric).parameters.values()
    except (TypeError, ValueError):
        return True
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) <= 1


def _methods(callbacks: Iterable[Any], hook: str) -> list[Callable]:
    """The methods of callbacks for a hook, without those of `Callback` that do nothing."""
    found = []
    for callback in callbacks:
        method = getattr(callback, hook, None)
        if method is not None and getattr(method, "__func__", None) is not getattr(Callback, hook):
            found.append(method)
    return found


def checked_callbacks(callbacks: Iterable[Any] | None) -> list[Any]:
    """The callbacks of a run.

    Raises:
        TypeError_: one has none of the methods, or one with a name that is not known.
    """
    callbacks = list(callbacks or ())
    for callback in callbacks:
        names = [n for n in dir(callback) if n.startswith("on_") and callable(getattr(callback, n))]
        if not names or isinstance(callback, type):
            raise TypeError_(
                f"fit: a callback is an object with some of the methods {', '.join(HOOKS)}, not {callback!r}"
            )
        for name in names:
            if name not in HOOKS:
                raise TypeError_(f"fit: callbacks have no {name}{nearest(name, HOOKS)}; there are {', '.join(HOOKS)}")
    return callbacks


__all__ = ["Callback", "Training", "checked_callbacks"]
