"""The record of a training run: the loss of every step, a row for every epoch; it plots itself in a notebook."""

from __future__ import annotations

import base64
import html
import io
import math
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np

_SMOOTHING = 0.02
"""Width of the smoothed loss curve, as a part of all steps."""


class History:
    """The record of a training run, as `relay.fit` returns it.

    In a notebook it shows the loss curve and a table of the epochs; in a terminal `print(history)` shows the table.
    `history["loss"]` is a column of the table.

    Attributes:
        epochs: a dict for each finished epoch, with `"epoch"` counted from 1 and what was measured: `"loss"` (mean over
            the epoch's steps), `"seconds"`, `"steps"`, and the metrics.
    """

    def __init__(self, epochs: Iterable[dict[str, Any]] = (), losses: Iterable[float] = ()):
        self.epochs: list[dict[str, Any]] = [dict(row) for row in epochs]
        # A run may have billions of steps: float32, as `fit` computes them, until one comes that is none.
        self._steps = array("f")
        self._list: list[float] | None = None  # what `losses` has made of it
        self.record_steps(list(losses))

    @property
    def losses(self) -> list[float]:
        """The loss of every step, in order."""
        if self._list is None:
            self._list = self._steps.tolist()
        return self._list

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return len(self._steps)

    def step_losses(self, first: int = 0) -> np.ndarray:
        """The losses of the steps from one on, as an array: float32, where that is what they are."""
        return np.array(self._steps[first:])

    def record_steps(self, losses: Iterable[float] | np.ndarray) -> None:
        """Add the losses of several steps."""
        values = np.asarray(losses).ravel()
        if self._steps.typecode == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                narrow = values.astype(np.float32)
            if values.dtype == np.float32 or np.array_equal(narrow, values.astype(np.float64), equal_nan=True):
                values = narrow
            else:
                self._steps = array("d", self._steps)
        self._steps.frombytes(np.ascontiguousarray(values, self._steps.typecode).tobytes())
        self._list = None

    def record_epoch(self, **values: Any) -> None:
        """Add a row for a finished epoch, numbered after the last one unless `epoch=` says otherwise."""
        self.epochs.append({"epoch": len(self.epochs) + 1, **values})

    def columns(self) -> list[str]:
        """The names of everything recorded per epoch, in order of appearance."""
        return list(dict.fromkeys(name for row in self.epochs for name in row))

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self.columns():
            raise KeyError(f"{name!r} was not recorded; there are {', '.join(self.columns()) or 'no epochs yet'}")
        return [row.get(name) for row in self.epochs]

    def __len__(self) -> int:
        return len(self.epochs)

    def __str__(self) -> str:
        columns = self.columns()
        if not columns:
            return f"History: no finished epoch, {self.steps} steps"
        rows = [columns, *([_cell(row.get(name)) for name in columns] for row in self.epochs)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, widths)) for row in rows)

    def __repr__(self) -> str:
        last = f", loss {_cell(self._steps[-1])}" if self._steps else ""
        return f"<History: {len(self.epochs)} epochs, {self.steps} steps{last}>"

    def plot(self, ax=None):
        """Draw the loss of every step, a smoothed curve, and the validation loss at the end of each epoch.

        Args:
            ax: matplotlib axes to draw into; by default a new figure's.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6.4, 3.6), layout="constrained").subplots()
        losses = self.step_losses().astype(np.float64)
        steps = np.arange(1, len(losses) + 1)
        ax.plot(steps, losses, color="tab:blue", alpha=0.35, linewidth=0.8, label="each step")
        width = max(1, round(_SMOOTHING * len(losses)))
        if width > 1:
            ax.plot(steps, _smooth(losses, width), color="tab:blue", linewidth=1.6, label=f"mean of {width} steps")
        measured = [
            (end, row["val_loss"]) for row in self.epochs if "val_loss" in row and (end := self._last_step(row))
        ]
        if measured:
            ax.plot(*zip(*measured), color="tab:orange", marker="o", markersize=4, label="validation")
        if width > 1 or measured:
            ax.legend(frameon=False)
        for row in self.epochs[:-1]:
            if end := self._last_step(row):
                ax.axvline(end, color="0.8", linewidth=0.8, zorder=0)
        ax.set_xlabel("step")
        ax.set_ylabel("loss")
        finite = losses[np.isfinite(losses)]
        if finite.size and finite.min() > 0 and finite.max() > 20 * finite.min():
            ax.set_yscale("log")
        return ax

    def _last_step(self, row: dict[str, Any]) -> int | None:
        """The number of the last step of an epoch, where the epochs say how many steps they had."""
        rows = self.epochs[: self.epochs.index(row) + 1]
        return sum(r["steps"] for r in rows) if all("steps" in r for r in rows) else None

    def _repr_png_(self) -> bytes | None:
        """The loss curve as a picture; None without matplotlib or without steps."""
        if not self._steps:
            return None
        try:
            axes: Any = self.plot()
        except ImportError:
            return None
        picture = io.BytesIO()
        axes.figure.savefig(picture, format="png", dpi=110)
        return picture.getvalue()

    def _repr_html_(self) -> str:
        """The loss curve, where matplotlib is there, over the table of epochs."""
        parts = []
        if picture := self._repr_png_():
            encoded = base64.b64encode(picture).decode()
            parts.append(f'<img alt="loss of each step" style="max-width:100%" src="data:image/png;base64,{encoded}">')
        columns = self.columns()
        if columns:
            head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
            rows = "".join(
                "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in columns) + "</tr>"
                for row in self.epochs
            )
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
        return "<div>" + ("\n".join(parts) or html.escape(str(self))) + "</div>"


class Counts:
    """How many examples each step of an epoch had. Nearly all steps have the same number, so only changes take memory."""

    def __init__(self, values: Iterable[int] = ()):
        self.runs: list[tuple[int, int]] = []  # a number of examples, and of steps in sequence that had it
        for value in values:
            self.add(int(value))

    def add(self, examples: int, steps: int = 1) -> None:
        """Add some steps of one size."""
        if self.runs and self.runs[-1][0] == examples:
            steps += self.runs.pop()[1]
        if steps:
            self.runs.append((examples, steps))

    def array(self) -> np.ndarray:
        """The number of each step."""
        examples, steps = zip(*self.runs) if self.runs else ((), ())
        return np.repeat(np.array(examples, np.int64), np.array(steps, np.int64))

    def __len__(self) -> int:
        return sum(steps for _, steps in self.runs)


def _smooth(values: np.ndarray, width: int) -> np.ndarray:
    """The mean of the last `width` values at each place (of fewer at the start); NaN only where a value is NaN."""
    place = np.arange(1, len(values) + 1)
    start = np.maximum(place - width, 0)
    clean = np.where(np.isfinite(values), values, 0.0)
    total = np.concatenate([[0.0], np.cumsum(clean)])
    bad = np.concatenate([[0], np.cumsum(~np.isfinite(values))])
    return np.where(bad[place] > bad[start], math.nan, (total[place] - total[start]) / (place - start))


def _cell(value: Any) -> str:
    """A table's cell: floats to four digits, nothing for what was not measured."""
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return str(value)
