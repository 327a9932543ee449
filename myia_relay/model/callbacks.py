"""Callbacks of `relay.fit` that write logs: `relay.CSVLogger`, `relay.TensorBoard`.

A log never ends a training. Where it cannot be written (a full disk, a folder that is gone), a warning says so once, the
training goes on, and what is missing is written as soon as that is possible again: the run's history has it all.
"""

from __future__ import annotations

import csv
import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.files import write_atomically
from .training import Callback, Training


class LogWarning(RuntimeWarning):
    """A log cannot be written for now. Nothing of the training is lost."""


class CSVLogger(Callback):
    """Write a row for each epoch to a file of comma-separated values.

    The whole file is written after each epoch: others see it with whole rows only, a run that is taken up again goes on in
    it, and after a full disk no row is missing.

    Args:
        path: the file. An older one is replaced.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self._failing = False

    def on_epoch_end(self, run: Training) -> None:
        """Write all rows."""
        self._write(run)

    def on_train_end(self, run: Training) -> None:
        """Write all rows, if the last attempt failed."""
        if self._failing:
            self._write(run)

    def _write(self, run: Training) -> None:
        text = io.StringIO()
        rows = csv.DictWriter(text, run.history.columns(), lineterminator="\n")
        rows.writeheader()
        rows.writerows(run.history.epochs)
        try:
            write_atomically(self.path, text.getvalue().encode())
        except OSError as error:
            _warn(self.path, error, self._failing)
            self._failing = True
        else:
            self._failing = False


class TensorBoard(Callback):
    """Write the losses of steps and the metrics of epochs for TensorBoard (`pip install 'myia_relay[tensorboard]'`).

    Show them with `tensorboard --logdir FOLDER`. Steps do not become slower: their losses are written after each epoch.

    Args:
        folder: where the log goes; a folder for each run.
        every: one loss is written for so many steps: their mean.

    Raises:
        ImportError: TensorBoard is not installed.
        ValueError: `every` is less than 1.
    """

    def __init__(self, folder: str | os.PathLike, every: int = 10):
        try:
            from tensorboard.summary import Writer
        except ImportError as error:
            raise ImportError("TensorBoard is not installed: pip install 'myia_relay[tensorboard]'") from error
        if every < 1:
            raise ValueError(f"TensorBoard: every={every!r} is at least 1")
        self.folder, self.every = Path(folder), every
        self._open: Any = Writer
        self._writer: Any = None
        self._epochs = self._steps = 0  # how many are written
        self._failing = False

    def on_train_begin(self, run: Training) -> None:
        """Begin behind what an interrupted run has written."""
        self._epochs, self._steps = len(run.history.epochs), run.history.steps

    def on_epoch_end(self, run: Training) -> None:
        """Write what is new."""
        self._write(run)

    def on_train_end(self, run: Training) -> None:
        """Write what is new, and close the log."""
        self._write(run)
        self._close()

    def _write(self, run: Training) -> None:
        steps, epochs = self._steps, self._epochs
        try:
            if self._writer is None:
                self._writer = self._open(str(self.folder))
            losses = run.history.step_losses(steps)
            for first in range(0, len(losses), self.every):
                part = losses[first : first + self.every]
                steps += len(part)
                self._writer.add_scalar("loss/step", float(np.mean(part, dtype=np.float64)), steps)
            for row in run.history.epochs[epochs:]:
                epochs += 1
                for name, value in row.items():
                    if name != "epoch" and isinstance(value, (int, float, np.number)):
                        self._writer.add_scalar(name, float(value), row["epoch"])
            self._writer.flush()
        except OSError as error:
            _warn(self.folder, error, self._failing)
            self._failing = True
            self._close()  # a writer that failed stays failed: the next attempt begins a file of its own
        else:
            self._steps, self._epochs, self._failing = steps, epochs, False

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close()
        except OSError:
            pass


def _warn(path: Path, error: OSError, failing: bool) -> None:
    """Say once that a log cannot be written."""
    if not failing:
        warnings.warn(
            f"the log {path} cannot be written ({error.strerror or error}); the training goes on, and what is missing is "
            "written when it is possible again",
            LogWarning,
            stacklevel=3,
        )
