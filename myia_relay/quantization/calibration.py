"""Calibration: up to which magnitude values are represented; what is beyond is clipped.

- `global_scale`: all data up to one magnitude, by default the greatest there is: nothing is clipped.
- `percentile`: that below which nearly all magnitudes of a value lie.
- `mse`: the one with the least mean square error of rounding and clipping.
- `kl`: the one with the least divergence of the rounded distribution from that of the values (S. Migacz, "8-bit Inference with
  TensorRT", 2017).

Weights are known: they get a magnitude for each filter, the greatest one, or with `mse` and `kl` that of the least error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils.errors import ValueError_, nearest
from ..utils.progress import progress
from .annotation import Contract, Plan, Scales
from .graphs import evaluated, runner, with_arrays
from .scales import BitScheme, data_grid, weight_grid

BINS = 2048
PERCENTILE = 99.99
CANDIDATES = 64
WORSE = 1.5  # times the least mean square error, which the least divergence may have
DENSITY = 8  # values for each bin, below which bins are joined


@dataclass
class Magnitudes:
    """The magnitudes of a value.

    Attributes:
        least, most: the values' extremes.
        counts: magnitudes from 0 to the greatest, in `BINS` bins.
    """

    least: float = np.inf
    most: float = -np.inf
    counts: Any = None

    @property
    def greatest(self) -> float:
        """The greatest magnitude."""
        return max(abs(self.least), abs(self.most)) if self.least <= self.most else 0.0

    @property
    def signed(self) -> bool:
        """Whether there are negative values."""
        return self.least < 0

    def extend(self, x: np.ndarray) -> None:
        """Note the extremes."""
        finite = x[np.isfinite(x)]
        if finite.size:
            self.least, self.most = min(self.least, float(finite.min())), max(self.most, float(finite.max()))

    def count(self, x: np.ndarray) -> None:
        """Count magnitudes."""
        counts, _ = np.histogram(np.abs(x), BINS, (0.0, self.greatest or 1.0))
        self.counts = counts if self.counts is None else self.counts + counts

    @property
    def centres(self) -> np.ndarray:
        """The middles of the bins."""
        return (np.arange(BINS) + 0.5) * (self.greatest or 1.0) / BINS


def percentile(d: Magnitudes, levels: int, percent: float = PERCENTILE) -> float:
    """The magnitude below which so many percent of the values lie."""
    total = np.cumsum(d.counts)
    if not total[-1]:
        return d.greatest
    return float((np.searchsorted(total, total[-1] * percent / 100) + 1) * (d.greatest or 1.0) / BINS)


def _errors(d: Magnitudes, candidates: np.ndarray, levels: int) -> np.ndarray:
    """The square error of rounding and clipping at each of some magnitudes."""
    x = d.centres[:, None]
    step = np.maximum(candidates / levels, 1e-38)
    return d.counts @ (x - np.clip(np.floor(x / step + 0.5), 0, levels) * step) ** 2


def mse(d: Magnitudes, levels: int) -> float:
    """The magnitude with the least mean square error."""
    candidates = d.greatest * np.arange(CANDIDATES // 8, CANDIDATES + 1) / CANDIDATES
    return float(candidates[np.argmin(_errors(d, candidates, levels))])


def kl(d: Magnitudes, levels: int) -> float:
    """The magnitude with the least divergence, of those whose mean square error is not much larger than the least.

    The divergence alone would clip values with a peak, such as images' background, to keep the peak apart from its neighbours.
    """
    counts = d.counts.astype(np.float64)
    counts[0] = counts[1]  # zeros, of which activations make many, are represented exactly
    groups = min(levels, 255)
    while (
        counts.sum() < DENSITY * len(counts) and len(counts) > groups
    ):  # a sample of the distribution, and no list of points
        counts = counts.reshape(-1, 2).sum(1)
    sizes = np.arange(len(counts), groups, -max(1, len(counts) // 128))
    if not counts.any() or not sizes.size:
        return d.greatest
    limits = sizes * (d.greatest or 1.0) / len(counts)
    errors = _errors(d, limits, levels)
    near = errors <= WORSE * errors.min()
    divergences = [_divergence(counts, int(size), groups) if good else np.inf for size, good in zip(sizes, near)]
    return float(limits[int(np.argmin(divergences))])


def _divergence(counts: np.ndarray, size: int, groups: int) -> float:
    """That of a distribution in which bins are joined into groups and what is beyond `size` is clipped."""
    p = counts[:size].copy()
    p[-1] += counts[size:].sum()
    part = np.arange(size) * groups // size
    kept = counts[:size] > 0
    totals, members = np.bincount(part, counts[:size], groups), np.bincount(part, kept, groups)
    q = np.where(kept, (totals / np.maximum(members, 1))[part], 0)
    if not q.any():
        return np.inf
    p, q = p / p.sum(), q / q.sum()
    seen = p > 0
    return float(np.sum(p[seen] * np.log(p[seen] / np.maximum(q[seen], 1e-10))))


METHODS: dict[str, Callable | None] = {"kl": kl, "mse": mse, "percentile": percentile, "global_scale": None}


def weight_limits(w: np.ndarray, axis: int, levels: int, search: bool) -> np.ndarray:
    """Up to which magnitude the weights of each index of an axis are represented."""
    rows = np.moveaxis(np.asarray(w, np.float64), axis, 0).reshape(w.shape[axis], -1)
    greatest = np.abs(rows).max(1, initial=0.0)
    if not search or rows.shape[1] < 16:
        return greatest
    best, limits = np.full(len(rows), np.inf), greatest.copy()
    for ratio in np.linspace(1.0, 0.6, 17):
        step = np.maximum(greatest * ratio / levels, 1e-300)[:, None]
        error = ((rows - np.clip(np.floor(rows / step + 0.5), -levels, levels) * step) ** 2).sum(1)
        limits = np.where(error < best, greatest * ratio, limits)
        best = np.minimum(error, best)
    return limits


def distributions(
    plan: Plan, arrays: Sequence[np.ndarray], data: Sequence[list], show: bool = True
) -> list[Magnitudes]:
    """Those of all values that are rounded, over a data set: extremes first, then the counts.

    Args:
        plan: what is rounded.
        arrays: values of the graph's arrays.
        data: the leaves of each input.
        show: whether to draw a progress bar.

    Raises:
        ValueError_: the data are empty, or no value is a number.
    """
    if not data:
        raise ValueError_("quantize: calibration_data is empty")
    graph = with_arrays(plan.graph, plan.count, arrays, [*plan.rounded])
    run = runner(graph)
    found = [Magnitudes() for _ in plan.rounded]
    with progress(total=2 * len(data), desc="calibrate", enabled=show) as bar:
        for note in (Magnitudes.extend, Magnitudes.count):
            for leaves in data:
                for distribution, value in zip(found, run(*leaves), strict=True):
                    note(distribution, np.asarray(value))
                bar.update(1)
            if not all(np.isfinite(d.greatest) and d.least <= d.most for d in found):
                raise ValueError_(
                    "quantize: with the calibration data, a value that is to be rounded is never a finite number"
                )
    return found


def calibrate(
    plan: Plan,
    arrays: Sequence[np.ndarray],
    data: Sequence[list],
    scheme: BitScheme,
    method: str,
    show: bool = True,
    **options: Any,
) -> Scales:
    """Find the scales.

    Args:
        plan: what is rounded.
        arrays: values of the graph's arrays.
        data: the leaves of each input.
        scheme: how many bits there are.
        method: one of `METHODS`.
        show: whether to draw a progress bar.
        options: `percentile=` of that method, `global_scale=` of the other.

    Raises:
        ValueError_: there is no such method or option, or the data are empty.
    """
    if method not in METHODS:
        raise ValueError_(
            f"calibrate={method!r}: choose one of {', '.join(METHODS)}{nearest(str(method), list(METHODS))}"
        )
    unknown = set(options) - {"percentile", "global_scale"}
    if unknown:
        raise ValueError_(f"quantize has no option {sorted(unknown)[0]!r}")
    found = distributions(plan, arrays, data, show) if plan.rounded else []
    common = options.get("global_scale") or max((d.greatest for d in found), default=1.0)
    scales = Scales()
    for node, d in zip(plan.rounded, found, strict=True):
        levels = scheme.limits(d.signed)[1]
        if method == "global_scale":
            limit = common
        elif method == "percentile":
            limit = percentile(d, levels, options.get("percentile", PERCENTILE))
        else:
            limit = METHODS[method](d, levels)  # pyright: ignore[reportOptionalCall]  # of that one alone
        scales.values[node] = data_grid(limit, d.signed, scheme)
    weigh(plan, arrays, scales, scheme, method in ("mse", "kl"))
    return scales


def weigh(plan: Plan, arrays: Sequence[np.ndarray], scales: Scales, scheme: BitScheme, search: bool) -> None:
    """Find the scales of weights, with those of data given."""
    known: dict[Any, np.ndarray] = dict(zip(plan.graph.params[plan.count :], arrays, strict=True))
    from .graphs import constant_of

    for node in plan.graph.nodes:
        if node in plan.static:
            args = [constant_of(known[a], a.type) if a in known else a for a in node.args]
            known[node] = evaluated(node, args)  # pyright: ignore[reportArgumentType]
    for node in plan.contractions:
        role, grid = plan.roles[node], None
        assert isinstance(role, Contract)
        weights = node.args[role.weights]
        w = known[weights] if weights in known else np.asarray(weights.value)  # pyright: ignore[reportAttributeAccessIssue]
        source = node.args[role.data]
        while source not in scales.values:
            source = source.args[0]  # pyright: ignore[reportAttributeAccessIssue]
        grid = scales.values[source]
        limits = weight_limits(w, role.axis, scheme.weights, search and scheme.weights < 256)
        scales.weights[node] = weight_grid(w, limits, role.axis, grid, scheme)


__all__ = ["METHODS", "Magnitudes", "calibrate", "weigh"]
