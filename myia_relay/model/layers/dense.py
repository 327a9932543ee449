"""Dense layers and tables: `linear`, `embedding`."""

from __future__ import annotations

import numpy as np

from ...abstract.dims import product
from ...abstract.types import INTS
from ...ir.build import Builder, Var
from ...prims.api.numpy_api import IMPLEMENTATIONS
from ...prims.api.promotion import astype, floating, operand, promote, strong
from ...prims.ops import elementwise as P
from ...prims.ops.linalg import dot, matvec
from ...prims.rules.broadcast import reshape
from ...prims.rules.relations import same_size, show_shape
from ...utils.errors import ShapeError
from ..hidden import Weight
from .declaration import bias, count, layer


def _linear(x, num_hidden, no_bias=False):
    size = count(num_hidden, "num_hidden", "linear")
    return {"weight": Weight((size, x.shape[-1]))} | bias(no_bias, size)


@layer(_linear, weights=("weight", "bias"), example="relay.linear(x, num_hidden=10)")
def linear(b: Builder, x, weight, bias=None) -> Var:
    """A dense layer along the last axis: `x @ weight.T + bias`.

    In a model: `linear(x, num_hidden, no_bias=False)` with the parameters weight (num_hidden, n) and bias (num_hidden,).
    Elsewhere: `linear(x, weight, bias=None)`.

    Args:
        b: the builder.
        x: (n,) or (..., n), float.
        weight: (num_hidden, n).
        bias: (num_hidden,), or None.

    Returns:
        (num_hidden,) or (..., num_hidden).

    Raises:
        ShapeError: features, weights and bias do not fit.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (3,)]):
        ...     return relay.linear(x, num_hidden=2)
        >>> model = relay.create_model(f)
        >>> {k: v.shape for k, v in model.params.items()}
        {'linear_0.weight': (2, 3), 'linear_0.bias': (2,)}
        >>> model(np.ones((3,), np.float32)).shape
        (2,)
    """
    x = floating(strong(operand(b, x, "relay.linear")))
    x, weight = promote(b, x, strong(operand(b, weight, "relay.linear: weight")), what="relay.linear")
    if len(weight.shape) != 2 or not x.shape or not same_size(weight.shape[1], x.shape[-1]):
        raise ShapeError(
            f"relay.linear: features of shape {show_shape(x.shape)} and weights of shape {show_shape(weight.shape)} "
            "do not fit; weights are (out, in), and images go through relay.flatten_layer first"
        )
    if x.ndim == 1:
        out = matvec(weight, x)
    else:
        flat = x if x.ndim == 2 else reshape(x, shape=(product(x.shape[:-1]), x.shape[-1]))
        out = dot(flat, weight, transpose_b=True)
        if x.ndim != 2:
            out = reshape(out, shape=(*x.shape[:-1], weight.shape[0]))
    if bias is None:
        return out
    bias = astype(operand(b, bias, "relay.linear: bias"), out.dtype)
    if bias.shape != (weight.shape[0],):
        raise ShapeError(f"relay.linear: a bias for {weight.shape[0]} outputs has shape {show_shape(bias.shape)}")
    return P.add(out, bias)


def _embedding(ids, num_embeddings, dim, dtype="float32"):
    sizes = count(num_embeddings, "num_embeddings", "embedding"), count(dim, "dim", "embedding")
    return {"weight": Weight(sizes, dtype=np.dtype(dtype).name)}


@layer(
    _embedding, weights=("weight",), accepts=INTS, example="relay.embedding(ids, num_embeddings=1000, dim=64)"
)  # fmt: skip
def embedding(b: Builder, ids, weight) -> Var:
    """The rows of a table: `weight[ids]`.

    In a model: `embedding(ids, num_embeddings, dim)` with the parameter weight (num_embeddings, dim). Elsewhere:
    `embedding(ids, weight)`. An id that is no row raises IndexError; negative ones count from the end, as in NumPy.

    Args:
        b: the builder.
        ids: an int, or integers of shape (...).
        weight: (num_embeddings, dim).

    Returns:
        (..., dim).

    Raises:
        ShapeError: the table is no matrix.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Int, (4,)]):
        ...     return relay.embedding(x, num_embeddings=10, dim=3)
        >>> model = relay.create_model(f)
        >>> model(np.array([1, 5, 5, 9])).shape
        (4, 3)
    """
    table = floating(strong(operand(b, weight, "relay.embedding: weight")))
    if len(table.shape) != 2:
        raise ShapeError(f"relay.embedding: a table has shape (rows, dim), and this has {show_shape(table.shape)}")
    return IMPLEMENTATIONS[np.take](b, table, operand(b, ids, "relay.embedding"), axis=0)
