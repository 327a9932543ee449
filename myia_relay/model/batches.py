"""`relay.data`: batches of examples, from arrays, files, data sets and generators.

    for x, y in relay.data.batches((images, labels), 64):
        ...

The order of an epoch follows from the seed and the number of the epoch alone. A thread prepares the next batches.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..infer.arguments.dlpack import from_dlpack
from ..utils.arrays import plain_array, require_plain_array
from ..utils.errors import ShapeError, TypeError_, ValueError_
from ..utils.files import require_regular
from ..utils.prefetch import Prefetched
from .datasets import Example

BUFFER = 16  # how many batches a stream is shuffled within


def leaves_of(tree: Any) -> list[Any]:
    """The arrays of a tuple or dict of arrays, or of several levels of them."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves_of(part)]
    if isinstance(tree, Mapping):
        return [leaf for part in tree.values() for leaf in leaves_of(part)]
    return [tree]


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with a function of each array."""
    if isinstance(tree, tuple):
        parts = [map_leaves(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, Mapping):
        return {name: map_leaves(function, part) for name, part in tree.items()}
    return function(tree)


def _array(value: Any) -> Any:
    """An array, if that is what it is: of NumPy, of another library, or in a file.

    Raises:
        TypeError_: the file is no .npy file, or the array is masked or of another class with rules of its own.
    """
    if isinstance(value, np.ndarray):
        require_plain_array(value)
        return value
    if isinstance(value, str | os.PathLike):
        if not os.fspath(value).endswith(".npy"):
            raise TypeError_(f"{os.fspath(value)} is no .npy file; read it into an array")
        require_regular(value, os.stat(value))
        return np.load(value, mmap_mode="r")
    if hasattr(value, "shape") and (hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        return from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
    return None


def as_arrays(data: Any) -> Any:
    """Data as a tree of arrays with examples along the first axis: an array, or tuples and dicts of arrays.

    Args:
        data: such a tree, where an array may be a `.npy` file or, in a tuple or dict, a list of numbers; a `Dataset` of images.

    Returns:
        The tree, files mapped into memory; None where it is none: a sequence of examples, a stream.

    Raises:
        ShapeError: the arrays differ in length, or one has no axis.
        TypeError_: a file is no .npy file, or an array is masked.
    """
    tree = _tree(data)
    if tree is None:
        return None
    leaves = leaves_of(tree)
    for leaf in leaves:
        if not leaf.shape:
            raise ShapeError("data are arrays with examples along the first axis, and one has no axis")
    counts = [len(leaf) for leaf in leaves]
    if len(set(counts)) != 1:
        raise ShapeError(f"the arrays differ in length: {' and '.join(map(str, counts))} examples")
    return tree


def _tree(data: Any) -> Any:
    if hasattr(data, "images") and hasattr(data, "onehot"):
        return Example(data.images, data.onehot)
    if isinstance(data, Mapping) and data:
        named = {name: _tree(_numbers(part)) for name, part in data.items()}
        return None if any(part is None for part in named.values()) else named
    if isinstance(data, tuple) and data:
        parts = [_tree(_numbers(part)) for part in data]
        if any(part is None for part in parts):
            return None
        return type(data)(*parts) if hasattr(data, "_fields") else tuple(parts)
    return _array(data)


def _numbers(part: Any) -> Any:
    """A list of numbers, or of rows of one length, as an array; anything else as it is."""
    if isinstance(part, list) and part and isinstance(part[0], int | float | np.generic | list):
        try:
            return np.array(part)
        except ValueError:  # rows of different lengths
            return part
    return part


def stacked(examples: list[Any]) -> Any:
    """Examples as one batch: tuples, dicts, arrays and numbers, stacked part by part.

    Raises:
        ShapeError: they differ in shape.
        TypeError_: they differ in kind, are no arrays or masked ones, or there are none.
    """
    if not examples:
        raise TypeError_("there are no examples")
    first = examples[0]
    if isinstance(first, tuple | list):
        if any(not isinstance(e, tuple | list) or len(e) != len(first) for e in examples):
            raise TypeError_(f"the examples of a batch are not all {len(first)} parts")
        parts = [stacked([e[i] for e in examples]) for i in range(len(first))]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if isinstance(first, Mapping):
        if any(not isinstance(e, Mapping) or e.keys() != first.keys() for e in examples):
            raise TypeError_("the examples of a batch are dicts with different keys")
        return {name: stacked([e[name] for e in examples]) for name in first}
    arrays = [plain_array(e) for e in examples]
    if arrays[0].dtype == object:
        raise TypeError_(f"an example is arrays and numbers, in tuples or dicts, and not {type(first).__name__}")
    shapes = {a.shape for a in arrays}
    if len(shapes) > 1:
        raise ShapeError(
            f"the examples differ in shape: {' and '.join(map(str, sorted(shapes)))}; pad them to one shape"
        )
    return np.stack(arrays)


def epoch_order(count: int, shuffle: bool, seed: int, epoch: int) -> np.ndarray:
    """The order of the examples in an epoch: int64 (count,)."""
    if not shuffle:
        return np.arange(count)
    return np.random.default_rng([seed, epoch]).permutation(count).astype(np.int64, copy=False)


def _rows(rows: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Some rows of an array or of a file, as an array of its own."""
    return np.asarray(array[rows])


class Batches:
    """Batches of examples, made by `batches`. Each loop over it is the next epoch, with an order of its own.

    `len(batches)` is the number of batches of an epoch, where it is known.

    Attributes:
        batch_size, shuffle, seed, drop_last, prefetch: as given.
        count: how many examples an epoch has; None if only the end of the stream tells.
    """

    def __init__(self, data: Any, batch_size: int, shuffle: bool, seed: int, drop_last: bool, prefetch: int):
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.drop_last, self.prefetch = drop_last, prefetch
        self.count: int | None = None
        self._next = 0  # the epoch that the next loop is
        self._once = False
        self._arrays = as_arrays(data)
        self._data = data
        if self._arrays is not None:
            self.count = len(leaves_of(self._arrays)[0])
        elif hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, Mapping):
            self.count = len(data)
        elif isinstance(data, Iterator):
            self._once = True
        elif not callable(data) and not isinstance(data, Iterable):
            raise TypeError_(
                f"batches: data are arrays, a sequence of examples, or a function that gives a generator of examples, not "
                f"{type(data).__name__}"
            )
        if self.count == 0:
            raise ValueError_("batches: there are no examples")
        if drop_last and self.count is not None and self.count < batch_size:
            raise ValueError_(f"batches: {self.count} examples fill no batch of {batch_size}; use drop_last=False")

    def __len__(self) -> int:
        if self.count is None:
            raise TypeError("how many batches a stream has is known at its end")
        return self.count // self.batch_size if self.drop_last else -(-self.count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        number, self._next = self._next, self._next + 1
        return self.epoch(number)

    def epoch(self, number: int, skip: int = 0) -> Iterator[Any]:
        """The batches of one epoch.

        Args:
            number: of the epoch, from 0: it decides the order.
            skip: how many batches to leave out at the start.

        Raises:
            RuntimeError: the data can be read once, and have been.
        """
        if self._once:
            if self._data is None:
                raise RuntimeError(
                    "these batches are of an iterator, which has been read; give batches the function that makes it, "
                    "batches(read, ...) instead of batches(read(), ...)"
                )
            made, self._data = self._produce(self._data, number, skip), None
        else:
            made = self._produce(self._data, number, skip)
        if not self.prefetch:
            return made
        again = None if self._once else lambda taken: self._produce(self._data, number, skip + taken)
        return Prefetched(made, self.prefetch, again)

    def _produce(self, data: Any, number: int, skip: int) -> Iterator[Any]:
        """The batches of an epoch, in this thread."""
        if self.count is None:
            yield from self._of_stream(data, number, skip)
            return
        order = epoch_order(self.count, self.shuffle, self.seed, number)
        for start in range(skip * self.batch_size, len(self) * self.batch_size, self.batch_size):
            rows = order[start : start + self.batch_size]
            if self._arrays is None:
                yield stacked([data[i] for i in rows.tolist()])
            else:
                yield map_leaves(functools.partial(_rows, rows), self._arrays)

    def _of_stream(self, data: Any, number: int, skip: int) -> Iterator[Any]:
        """The batches of a stream of examples."""
        examples = iter(data if isinstance(data, Iterable) else data())
        close = getattr(examples, "close", None)
        try:
            batch: list[Any] = []
            for example in self._shuffled(examples, number) if self.shuffle else examples:
                batch.append(example)
                if len(batch) == self.batch_size:
                    full, batch = batch, []
                    if skip:
                        skip -= 1
                    else:
                        yield stacked(full)
            if batch and not skip and not self.drop_last:
                yield stacked(batch)
        finally:
            if close is not None:
                close()

    def _shuffled(self, examples: Iterator[Any], number: int) -> Iterator[Any]:
        """A stream in another order: each example is one of those in a buffer."""
        rng = np.random.default_rng([self.seed, number])
        size = BUFFER * self.batch_size
        buffer: list[Any] = []
        for example in examples:
            if len(buffer) < size:
                buffer.append(example)
                continue
            place = int(rng.integers(size))
            out, buffer[place] = buffer[place], example
            yield out
        for place in rng.permutation(len(buffer)):
            yield buffer[place]

    def __repr__(self) -> str:
        count = "a stream" if self.count is None else f"{self.count:,} examples"
        return f"<Batches of {self.batch_size} of {count}>"


def batches(
    data: Any, batch_size: int = 64, *, shuffle: bool = True, seed: int = 0, drop_last: bool = False, prefetch: int = 2
) -> Batches:
    """Batches of examples: loop over the result, once for each epoch.

    Args:
        data: an array with examples along the first axis, or a `.npy` file, which is mapped into memory and not read as a
            whole; tuples and dicts of these; a `Dataset`; anything with `__len__` and `__getitem__` that gives examples; a
            function that returns a generator of examples; any other iterable of examples. An example is arrays and numbers, in
            tuples or dicts.
        batch_size: examples in a batch.
        shuffle: whether every epoch has an order of its own, drawn from the seed. A stream is shuffled within a buffer of 16
            batches.
        seed: of the orders.
        drop_last: whether to leave out a last batch that is smaller.
        prefetch: how many batches a thread prepares ahead; with 0 there is no thread.

    Returns:
        An iterable of batches, each of the structure of an example, its arrays stacked.

    Raises:
        TypeError_: these are no data.
        ShapeError: arrays differ in length, or examples in shape (the latter in the loop).
        ValueError_: there is no example, or a number is out of range.
    """
    for name, value, least in (("batch_size", batch_size, 1), ("prefetch", prefetch, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError_(f"batches: {name}={value!r} is an int of at least {least}")
    return Batches(data, int(batch_size), bool(shuffle), seed, bool(drop_last), int(prefetch))


__all__ = ["Batches", "batches"]
