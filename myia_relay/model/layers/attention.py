"""Attention (A. Vaswani et al. 2017), written in the language."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.dims import is_known
from ...derivatives import checkpoint
from ...ir.build import Builder
from ...library.refusals import misfit, unsupported
from ...prims.api.implementations import implements
from ...transforms import at
from ...utils.errors import ShapeError
from ..hidden import Weight
from .declaration import count, layer, written
from .dense import linear
from .names import softmax

LARGE, LARGE_CAUSAL = 1 << 21, 1 << 16  # scores of a head from which blocks are quicker than the whole matrix
LEAST_ROWS, MOST_ROWS = 128, 256  # of a block: fewer make slow products, more fall out of the second-level cache
SPANS = 8  # of queries that see the same keys: more would leave out little more, and take longer to compile


@written(static=("causal",))
def attention(q, k, v, causal=False, mask=None):
    """softmax(q @ k.T / sqrt(d)) @ v: each query gets a mean of the values, weighted by how its key fits.

    Large ones (causal: 2^16 scores for each head, else 2^21; of known sizes) are computed by blocks of queries, and again for the
    gradient, so the matrix of scores is never there (M. Rabe and C. Staats, "Self-attention Does Not Need O(n^2) Memory", 2021).

    Args:
        q: queries (..., n, d).
        k: keys (..., m, d).
        v: values (..., m, e).
        causal: whether query i sees keys 0 to i only, as PyTorch's `is_causal`.
        mask: (..., n, m), bool: where a query may see a key; or float: added to the scores. None for neither.

    Returns:
        (..., n, e). A query that sees nothing gets NaN, as in PyTorch.

    Example:
        >>> q = np.eye(2)
        >>> relay.attention(q, q, np.array([[1.0], [2.0]]), causal=True)
        array([[1.        ],
               [1.66976155]])
    """
    q, k, v = np.asarray(q), np.asarray(k), np.asarray(v)
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        misfit("relay.attention takes queries (..., n, d), keys (..., m, d) and values (..., m, e)")
    if q.shape[-1] != k.shape[-1]:
        misfit("relay.attention: queries and keys have the same last axis")
    if k.shape[-2] != v.shape[-2]:
        misfit("relay.attention: there are as many values as keys")
    if mask is not None:
        mask = np.atleast_2d(mask)

    def some(q, k, v, mask, first):
        """The results of some queries, of which the first is number `first`."""
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(np.asarray(q.shape[-1], q.dtype))
        if causal:
            seen = first + np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-2])[None, :]
            scores = np.where(seen, scores, np.asarray(-np.inf, scores.dtype))
        if mask is not None:
            if mask.dtype == np.bool_:
                scores = np.where(mask, scores, np.asarray(-np.inf, scores.dtype))
            else:
                scores = scores + mask.astype(scores.dtype)
        return softmax(scores) @ v

    rows, spans = _blocks(q, k, causal)
    if rows == 0:
        return some(q, k, v, mask, 0)

    def block(first, size, last):
        """The results of `size` queries, which see the first `last` keys; what the adjoint needs is computed again."""
        part = mask
        if part is not None:
            part = part if part.shape[-1] == 1 else part[..., :last]
            part = part if part.shape[-2] == 1 else part[..., first : first + size, :]
        return checkpoint(some)(q[..., first : first + size, :], k[..., :last, :], v[..., :last, :], part, first)

    parts = ()
    for start, stop in spans:
        last = min(stop, k.shape[-2]) if causal else k.shape[-2]
        count = (stop - start) // rows
        if count > 1:
            first = block(start, rows, last)
            out = np.zeros((count, *first.shape), first.dtype)
            for i in range(count):
                out[i] = block(start + i * rows, rows, last)
            out = np.moveaxis(out, 0, -3)
            parts = (*parts, out.reshape(*out.shape[:-3], count * rows, out.shape[-1]))
        elif count == 1:
            parts = (*parts, block(start, rows, last))
        if count * rows < stop - start:
            parts = (*parts, block(start + count * rows, stop - start - count * rows, last))
    return np.concatenate(parts, -2)


def _blocks(q, k, causal) -> Any:
    raise NotImplementedError  # never run: compiled code finds what it means


@implements(_blocks, static=("causal",))
def _(b: Builder, q, k, causal):
    """How the matrix of scores is divided: (rows at once, (first, behind the last) of each span of queries).

    Rows of a span see the same keys, so that of causal attention nearly half is left out. It is (0, ()) where the whole matrix is
    quicker, or where sizes are known at run time only.
    """
    n, m = q.shape[-2], k.shape[-2]
    if not is_known((n, m)) or n * m < (LARGE_CAUSAL if causal else LARGE):
        return 0, ()
    rows = max(LEAST_ROWS, min(MOST_ROWS, n // SPANS))
    span = -(-n // (SPANS * rows)) * rows if causal else n
    return rows, tuple((start, min(start + span, n)) for start in range(0, n, span))


def _heads(x, num_heads, causal=False, cache=None, no_bias=False):
    heads = count(num_heads, "num_heads", "multi_head_attention")
    size = x.shape[-1]
    if len(x.shape) < 2:
        raise ShapeError(f"relay.multi_head_attention takes (n, d) or (N, n, d), and this has shape {x.shape}")
    if isinstance(size, int) and size % heads:
        raise ShapeError(
            f"relay.multi_head_attention: num_heads={heads} does not divide the {size} features; choose a divisor of {size}"
        )
    biases = {} if no_bias else {"in_proj_bias": Weight((3 * size,)), "out_proj_bias": Weight((size,))}
    return {"in_proj_weight": Weight((3 * size, size)), "out_proj_weight": Weight((size, size))} | biases


@layer(
    _heads,
    weights=("in_proj_weight", "out_proj_weight", "in_proj_bias", "out_proj_bias"),
    static=("num_heads", "causal"),
    staged=False,
    example="relay.multi_head_attention(x, num_heads=8)",
)
def multi_head_attention(
    x,
    in_proj_weight,
    out_proj_weight,
    in_proj_bias=None,
    out_proj_bias=None,
    num_heads=1,
    causal=False,
    cache=None,
):
    """Self-attention with several heads, as PyTorch's MultiheadAttention.

    In a model: `multi_head_attention(x, num_heads, causal=False, cache=None, no_bias=False)` with the parameters in_proj_weight
    (3 d, d), out_proj_weight (d, d), in_proj_bias (3 d,) and out_proj_bias (d,). Elsewhere the weights come after x.

    Args:
        x: (n, d) or (N, n, d), float.
        in_proj_weight, in_proj_bias: what makes queries, keys and values of x, in this order.
        out_proj_weight, out_proj_bias: what makes the result of what the heads give.
        num_heads: the features fall into that many heads.
        causal: whether position i sees positions 0 to i only.
        cache: for generation: (keys, values, length) with keys and values of shape ([N,] num_heads, capacity, d / num_heads), of
            which the first `length` positions are filled. x is what comes after them.

    Returns:
        Of the shape of x; with a cache, (that, the cache with the positions of x filled too).

    Raises:
        IndexError: the cache is full.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (5, 8)]):
        ...     return relay.multi_head_attention(x, num_heads=2, causal=True)
        >>> model = relay.create_model(f)
        >>> model(np.ones((5, 8), np.float32)).shape
        (5, 8)
    """
    n, d = x.shape[-2], x.shape[-1]
    if d % num_heads != 0:
        misfit(f"relay.multi_head_attention: num_heads={num_heads} does not divide the {d} features")
    lead = x.shape[:-2]
    projected = linear(x, in_proj_weight, in_proj_bias).reshape(*lead, n, 3, num_heads, d // num_heads)
    q, k, v = [np.swapaxes(projected[..., i, :, :], -2, -3) for i in range(3)]
    if cache is None:
        seen = attention(q, k, v, causal)
        return linear(np.swapaxes(seen, -2, -3).reshape(*lead, n, d), out_proj_weight, out_proj_bias)
    if not causal:
        unsupported("relay.multi_head_attention: a cache is for causal attention; say causal=True")
    if not isinstance(cache, tuple) or len(cache) != 3:
        unsupported("relay.multi_head_attention: a cache is (keys, values, length)")
    keys, values, length = cache
    if length + n > keys.shape[-2]:
        raise IndexError("the cache of multi_head_attention is full")
    keys = at(keys)[..., length : length + n, :].set(k)
    values = at(values)[..., length : length + n, :].set(v)
    mask = np.arange(n)[:, None] + length >= np.arange(keys.shape[-2])[None, :]
    seen = attention(q, keys, values, mask=mask)
    y = linear(np.swapaxes(seen, -2, -3).reshape(*lead, n, d), out_proj_weight, out_proj_bias)
    return y, (keys, values, length + n)
