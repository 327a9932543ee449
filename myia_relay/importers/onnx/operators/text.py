"""TfIdfVectorizer: how often sequences of numbers occur in others."""

from __future__ import annotations

import numpy as np

from ....ir.build import Var
from ....prims.ops import elementwise as P
from ....prims.ops.indexing import scatter_add
from ....prims.ops.shape import slice_
from ....prims.rules.broadcast import broadcast_to, cast, reduce_sum, reshape
from ....utils.errors import ShapeError, TypeError_, ValueError_
from ..table import Context, operator
from .convolution import padded
from .shapes import as_positions

MODES = ("TF", "IDF", "TFIDF")


def grams(pool: tuple, starts: tuple, indexes: tuple) -> list[dict[tuple[int, ...], int]]:
    """For each length, from 1 on, the sequences of a pool, and the column of the result that each counts in.

    Raises:
        ValueError_: the attributes do not describe sequences.
    """
    found: list[dict[tuple[int, ...], int]] = []
    column = iter(indexes)
    for k, (begin, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True)):
        length = k + 1
        if not 0 <= begin <= end <= len(pool) or (end - begin) % length:
            raise ValueError_(f"its pool from {begin} to {end} holds no sequences of {length}")
        each = [tuple(pool[i : i + length]) for i in range(begin, end, length)]
        columns = [next(column, -1) for _ in each]
        if any(i < 0 for i in columns):
            raise ValueError_(f"ngram_indexes has {len(indexes)} entries, none negative, for more sequences than that")
        found.append(dict(zip(each, columns, strict=True)))
    return found


def occurrences(c: Context, x: Var, sequences: np.ndarray, skip: int) -> Var:
    """How often each of m sequences occurs in each row, its elements `skip` apart: (rows, m)."""
    rows, n = x.shape
    m, length = sequences.shape
    reach = (length - 1) * skip
    wide = padded(x, ((0, reach),), 0)
    same = P.lt(as_positions(c, n), _size(c, n, reach))
    same = broadcast_to(reshape(same, shape=(1, n, 1)), shape=(rows, n, m))
    for k in range(length):
        part = slice_(wide, starts=(0, k * skip), sizes=(rows, n), steps=(1, 1))
        wanted = c.constant(sequences[:, k].reshape(1, 1, m), "int64")
        same = P.logical_and(same, P.eq(reshape(part, shape=(rows, n, 1)), wanted))
    return reduce_sum(cast(same, dtype="int64"), axes=(1,))


def _size(c: Context, n, less: int) -> Var:
    """A size less a number, as an array."""
    from ....prims.api.promotion import size_value
    from ....prims.rules.broadcast import as_array

    size = as_array(cast(size_value(c.b, n), dtype="int64", weak=False))
    return size - size.const(less)


@operator("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    c: Context, x, *, max_gram_length, max_skip_count, min_gram_length, mode, ngram_counts, ngram_indexes,
    pool_int64s=None, pool_strings=None, weights=None,
):  # fmt: skip
    """How often sequences of a pool occur in each row, perhaps with up to `max_skip_count` elements between their own.

    Raises:
        TypeError_: the pool is of strings.
        ShapeError: the tensor has other axes.
        ValueError_: the attributes do not describe sequences.
    """
    if pool_strings or not pool_int64s:
        raise TypeError_("its pool must be integers (pool_int64s): tensors of strings cannot be imported")
    if mode not in MODES:
        raise ValueError_(f"its mode '{mode}' is unknown")
    if not 1 <= min_gram_length <= max_gram_length or max_skip_count < 0 or not ngram_indexes:
        raise ValueError_(f"sequences of {min_gram_length} to {max_gram_length} with {max_skip_count} skips cannot be")
    if len(x.shape) > 2:
        raise ShapeError(f"it takes one row or several, and this has {len(x.shape)} axes")
    width = max(ngram_indexes) + 1
    if weights and len(weights) != width:
        raise ShapeError(f"it has {len(weights)} weights for {width} columns")
    rows = reshape(x, shape=(x.shape[0] if len(x.shape) == 2 else 1, x.shape[-1] if x.shape else 1))
    rows = cast(rows, dtype="int64")
    total = broadcast_to(c.constant(np.int64(0)), shape=(rows.shape[0], width))
    for length, pool in enumerate(grams(pool_int64s, ngram_counts, ngram_indexes), 1):
        if not pool or not min_gram_length <= length <= max_gram_length:
            continue
        sequences = np.array(list(pool), np.int64)
        columns = c.constant(np.array(list(pool.values()), np.int64))
        for skip in range(1, 2 if length == 1 else max_skip_count + 2):
            total = scatter_add(total, columns, occurrences(c, rows, sequences, skip), axis=1)
    if mode == "IDF":
        total = P.minimum(total, total.const(1))
    out = cast(total, dtype="float32")
    if mode != "TF" and weights:
        out = out * c.constant(np.array(weights, np.float32))
    return out if len(x.shape) == 2 else reshape(out, shape=(width,))
