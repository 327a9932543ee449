"""What `relay.fit` and `relay.evaluate` run over: data as arrays, of which compiled code takes many batches, or batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..utils.errors import CompileError, ShapeError, TypeError_, ValueError_
from .batches import Batches, as_arrays, epoch_order, map_leaves, stacked
from .steps import Stack


class Piece(NamedTuple):
    """Batches of one size that are next.

    Attributes:
        data: what they are taken from.
        rows: int64 (batches, examples in a batch), into the data.
        last: whether the epoch ends with them.
    """

    data: Stack
    rows: np.ndarray
    last: bool


def arguments(tree: Any) -> Stack:
    """Data, or a batch of them, as the arguments of a loss: a tuple is several, anything else is one."""
    parts = tuple(tree) if isinstance(tree, tuple) else (tree,)
    return Stack(map_leaves(_passable, parts))


def _passable(array: Any) -> np.ndarray:
    """The array as compiled code reads it without a copy for each chunk."""
    # `newbyteorder` makes another dtype object even of a native one, and native code knows NumPy's own at a glance only.
    return np.ascontiguousarray(array.view(np.ndarray), None if array.dtype.isnative else array.dtype.newbyteorder("="))


def collected(data: Any, what: str = "fit") -> Any:
    """Data as a tree of arrays, examples along the first axis.

    Raises:
        TypeError_: they are no arrays, and no examples of one shape.
        ShapeError: there are not as many inputs as targets.
    """
    try:
        tree = as_arrays(data)
        if tree is not None:
            return tree
        return stacked(list(data))
    except ShapeError as error:
        raise ShapeError(f"{what}: {error.message}") from None
    except (CompileError, TypeError, ValueError, IndexError) as error:
        raise TypeError_(
            f"{what}: data must be arrays, a dataset, a sequence of examples of one shape, or relay.data.batches(...): {error}"
        ) from None


class ArrayFeed:
    """Data as arrays.

    Raises:
        ValueError_: there are fewer examples than in one batch, where none may be smaller.
    """

    def __init__(self, data: Stack, batch_size: int, shuffle: bool = False, seed: int = 0, drop_last: bool = False):
        self.data, count = data, data.count
        if not 1 <= batch_size or count < (batch_size if drop_last else 1):
            raise ValueError_(f"fit: batch_size={batch_size} for {count} examples")
        self.batch_size, self.shuffle, self.seed, self.drop_last = batch_size, shuffle, seed, drop_last
        self.batches = count // batch_size if drop_last else -(-count // batch_size)

    def settings(self) -> dict[str, Any]:
        """What decides the order of the examples."""
        return {
            "seed": self.seed,
            "batch_size": self.batch_size,
            "examples": self.data.count,
            "shuffle": int(self.shuffle),
            "drop_last": int(self.drop_last),
        }

    def epoch(self, number: int, skip: int) -> ArrayReader:
        """The batches of an epoch from one on."""
        return ArrayReader(self, epoch_order(self.data.count, self.shuffle, self.seed, number), skip)


class ArrayReader:
    """Where an epoch over arrays is."""

    def __init__(self, feed: ArrayFeed, order: np.ndarray, skip: int):
        self.feed, self.order, self.at = feed, order, skip
        self.full = len(order) // feed.batch_size

    def take(self, most: int) -> Piece | None:
        """The next batches of one size; None at the end of the epoch."""
        size, start = self.feed.batch_size, self.at
        if start >= self.feed.batches:
            return None
        if start < self.full:
            self.at = min(start + most, self.full)
            rows = self.order[start * size : self.at * size].reshape(-1, size)
        else:
            self.at += 1
            rows = self.order[start * size :][None]
        return Piece(self.feed.data, rows, self.at == self.feed.batches)

    def close(self) -> None:
        """Nothing is open."""


class StreamFeed:
    """Data that come batch by batch."""

    def __init__(self, data: Batches):
        self.data = data
        self.batches = None if data.count is None else len(data)

    def settings(self) -> dict[str, Any]:
        """What decides the order of the examples."""
        data = self.data
        return {
            "seed": data.seed,
            "batch_size": data.batch_size,
            "examples": data.count,
            "shuffle": int(data.shuffle),
            "drop_last": int(data.drop_last),
        }

    def epoch(self, number: int, skip: int) -> StreamReader:
        """The batches of an epoch from one on."""
        return StreamReader(self.data.epoch(number, skip))


class StreamReader:
    """Where an epoch over batches is. It is one batch ahead, to know which is the last."""

    def __init__(self, batches: Iterator[Any]):
        self.batches: Any = batches
        self.ahead = next(batches, None)

    def take(self, most: int) -> Piece | None:
        """The next batch; None at the end of the epoch."""
        if self.ahead is None:
            return None
        data, self.ahead = arguments(self.ahead), next(self.batches, None)
        return Piece(data, np.arange(data.count)[None], self.ahead is None)

    def close(self) -> None:
        """End the thread that reads ahead."""
        self.batches.close()


__all__ = ["ArrayFeed", "StreamFeed", "arguments", "collected"]
