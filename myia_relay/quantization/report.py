"""The error of each layer of a quantised model: of its result in the simulated graph, against that in floats."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.node import Apply
from ..utils.source import Origin
from .annotation import Plan, Scales, Simulated
from .graphs import Subject, runner, with_arrays

HEADS = ("layer", "operator", "shape", "scale", "error", "signal to noise", "line")


@dataclass(frozen=True)
class LayerError:
    """The error of one contraction.

    Attributes:
        layer: its number and its weights.
        operator: the primitive.
        shape: of the result.
        scale: of the data.
        error: root mean square of the difference, over that of the values.
        decibels: signal to noise.
        line: where it is in the source.
    """

    layer: str
    operator: str
    shape: tuple
    scale: float
    error: float
    decibels: float
    line: str


class QuantizationReport:
    """Errors of the layers, and of the result.

    Attributes:
        rows: the layers, in program order.
        result: the relative error of the result.
        equal: the share of examples for which the greatest of the result is at the same place.
    """

    def __init__(self, rows: list[LayerError], result: float, equal: float, title: str):
        self.rows, self.result, self.equal, self.title = rows, result, equal, title

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left")
        for head in HEADS:
            table.add_column(head, justify="right" if head in HEADS[3:6] else "left")
        for row in self.rows:
            table.add_row(*_cells(row))
        text = io.StringIO()
        console = Console(file=text, width=110, force_terminal=False)
        console.print(table)
        console.print(
            f"result: relative error {self.result:.2e}; greatest entry at the same place in {self.equal:.1%} of the examples"
        )
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A bar for the error of each layer."""
        from html import escape

        most = max((row.error for row in self.rows), default=1.0) or 1.0
        height, left, wide = 18, 190, 360
        bars = []
        for k, row in enumerate(self.rows):
            y, length = 4 + k * (height + 4), max(1.0, wide * row.error / most)
            bars.append(
                f'<text x="{left - 6}" y="{y + 13}" text-anchor="end" font-size="12">{escape(row.layer)}</text>'
                f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{height}" fill="#4878a8"/>'
                f'<text x="{left + length + 6:.1f}" y="{y + 13}" font-size="12">{row.error:.2e}, {row.decibels:.0f} dB</text>'
            )
        size = f'width="{left + wide + 130}" height="{8 + len(self.rows) * (height + 4)}"'
        words = f"<p><b>{escape(self.title)}</b>: error of each layer, relative to its values; of the result {self.result:.2e}</p>"
        return f'{words}<svg {size} font-family="sans-serif">{"".join(bars)}</svg>'


def _cells(row: LayerError) -> list[str]:
    shape = "x".join(map(str, row.shape))
    return [row.layer, row.operator, shape, f"{row.scale:.3g}", f"{row.error:.2e}", f"{row.decibels:.1f} dB", row.line]


def _relative(found: list[np.ndarray], wanted: list[np.ndarray]) -> tuple[float, float]:
    """(relative error, signal to noise in decibels)."""
    noise = sum(float(np.sum((np.asarray(a, np.float64) - b) ** 2)) for a, b in zip(found, wanted))
    signal = sum(float(np.sum(np.asarray(b, np.float64) ** 2)) for b in wanted)
    if not noise or not signal:
        return 0.0 if not noise else float("inf"), float("inf") if not noise else 0.0
    return float(np.sqrt(noise / signal)), float(10 * np.log10(signal / noise))


def _line(origin: Origin) -> str:
    place = getattr(origin, "loc", None)
    return f"{getattr(place, 'line', '')}" if place is not None else ""


def compare(
    plan: Plan, simulated: Simulated, scales: Scales, found: Subject, data: Sequence[list], scheme: str, method: str
) -> QuantizationReport:  # fmt: skip
    """Run both graphs on some inputs.

    Args:
        plan: what is rounded.
        simulated: with these scales.
        scales: of all values.
        found: what is quantised.
        data: the leaves of inputs.
        scheme, method: their names, for the title.
    """
    layers: list[Apply] = plan.contractions
    single = not hasattr(plan.graph.output.type, "elems")
    shown = [*layers, *([plan.graph.output] if single else [])]
    exact = runner(with_arrays(plan.graph, found.count, found.arrays, shown))
    rounded = runner(
        with_arrays(
            simulated.graph,
            found.count,
            found.arrays,
            [*(simulated.env[n] for n in layers), *([simulated.graph.output] if single else [])],
        )
    )
    wanted: list[list[np.ndarray]] = [[] for _ in shown]
    got: list[list[np.ndarray]] = [[] for _ in shown]
    for leaves in data:
        for into, values in ((wanted, exact(*leaves)), (got, rounded(*leaves))):
            for place, value in zip(into, values, strict=True):
                place.append(np.array(value))
    rows = []
    for k, node in enumerate(layers):
        error, decibels = _relative(got[k], wanted[k])
        role: Any = plan.roles[node]
        weights = node.args[role.weights].type.shape
        source = node.args[role.data]
        while source not in scales.values and isinstance(source, Apply):
            source = source.args[0]
        scale = float(scales.values[source].scale)
        name = f"{k} ({'x'.join(map(str, weights))})"
        rows.append(LayerError(name, node.fn.name, node.type.shape, scale, error, decibels, _line(node.origin)))
    error, equal = 0.0, 1.0
    if single:
        error, _ = _relative(got[-1], wanted[-1])
        equal = float(np.mean([np.argmax(a) == np.argmax(b) for a, b in zip(got[-1], wanted[-1])])) if got[-1] else 1.0
    return QuantizationReport(rows, error, equal, f"{scheme}, {method}")


__all__ = ["LayerError", "QuantizationReport", "compare"]
