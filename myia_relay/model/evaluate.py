"""The mean of functions over data, in inference: `relay.evaluate`, and the metrics of `relay.fit`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..utils.errors import TypeError_
from .batches import Batches
from .feed import ArrayFeed, StreamFeed, arguments, collected
from .model import ExportedModel, Model
from .steps import evaluating

CHUNK_SECONDS = 0.1


def executor_of(function: Callable) -> str:
    """The executor of a decorated function."""
    return getattr(function, "options", {"executor": "native"})["executor"]


def means(model: Model, functions: tuple[Callable, ...], feed: ArrayFeed | StreamFeed, batched: bool) -> list[float]:
    """The means of functions over all examples."""
    run = evaluating(functions, executor_of(functions[0]), batched)
    totals, seen, chunk = np.zeros(len(functions)), 0, 1
    size = feed.data.batch_size if isinstance(feed, StreamFeed) else feed.batch_size
    reader = feed.epoch(0, 0)
    try:
        while (piece := reader.take(chunk)) is not None:
            rows, counts = piece.rows, np.full(len(piece.rows), piece.rows.shape[1])
            if not batched and rows.shape[1] < size:
                # Filled up to the size of the others, so that one program serves both.
                rows = np.pad(rows, ((0, 0), (0, size - rows.shape[1])), mode="edge")
            begun = time.perf_counter()
            totals: Any = run(model, piece.data, rows, counts, totals)
            if time.perf_counter() - begun < CHUNK_SECONDS:
                chunk = min(2 * chunk, 4096)
            seen += int(counts.sum())
    finally:
        reader.close()
    return [float(t) / seen for t in totals]


def evaluate(model: Model, functions: Any, data: Any, *, batch_size: int = 256, batched: bool = False) -> Any:
    """The mean of a function of examples over data. Layers infer: dropout does nothing, batch norm takes running statistics.

    Args:
        model: the model.
        functions: a function that calls the model function, with the arguments of a loss, `(x, y) -> number or bool`; or a dict
            of such functions, which share what they have in common.
        data: as for `relay.fit`.
        batch_size: how many examples are computed at a time.
        batched: whether the functions take batches and return means over them.

    Returns:
        A float; a dict of floats for a dict of functions.

    Raises:
        TypeError_: the model is none, or the data are no data.
        ValueError_: there are no examples.
    """
    model = model.model if isinstance(model, ExportedModel) else model
    if not isinstance(model, Model):
        raise TypeError_(f"evaluate needs a model, not {type(model).__name__}; make one with relay.create_model")
    named = dict(functions) if isinstance(functions, Mapping) else {"": functions}
    for function in named.values():
        if not callable(function):
            raise TypeError_(f"evaluate needs functions of examples, not {function!r}")
    if not named:
        return {}
    feed = evaluation_feed(data, batch_size, "evaluate")
    if isinstance(feed, ArrayFeed):
        feed.batch_size = min(batch_size, feed.data.count)
    found = means(model, tuple(named.values()), feed, batched)
    return dict(zip(named, found, strict=True)) if isinstance(functions, Mapping) else found[0]


def evaluation_feed(data: Any, batch_size: int, what: str = "fit") -> ArrayFeed | StreamFeed:
    """Data in their order."""
    return StreamFeed(data) if isinstance(data, Batches) else ArrayFeed(arguments(collected(data, what)), batch_size)


__all__ = ["evaluate"]
