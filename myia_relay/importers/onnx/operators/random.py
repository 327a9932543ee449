"""Random numbers: of a seed of the node, so that every run draws the same."""

from __future__ import annotations

import zlib

import numpy as np

from ....ir.build import Var
from ....prims.api.random_api import RANDOM
from ....prims.ops import elementwise as P
from ....prims.rules.broadcast import as_array, cast
from ..table import Context, operator


def key(c: Context, seed) -> Var:
    """The key of a node: of its seed, or of its name."""
    number = zlib.crc32(c.node.encode()) if not seed else int(np.float32(seed).view(np.uint32))
    return c.b.var(c.b.constant(np.uint64(number)))


def uniform(c: Context, shape: tuple, seed, dtype: str) -> Var:
    """Numbers between 0 and 1."""
    out = RANDOM["uniform"](c.b, key(c, seed), shape, dtype="float32")
    return cast(out if out.shape == tuple(shape) else as_array(out), dtype=dtype)


def normal(c: Context, shape: tuple, seed, dtype: str) -> Var:
    """Normal numbers."""
    return cast(RANDOM["normal"](c.b, key(c, seed), shape, dtype="float32"), dtype=dtype)


@operator("RandomUniform")
def random_uniform(c: Context, *, shape, dtype="float32", high=1.0, low=0.0, seed=None):
    """Uniform numbers."""
    out = uniform(c, tuple(shape), seed, "float32")
    return cast(out * out.const(high - low) + out.const(low), dtype=dtype)


@operator("RandomUniformLike")
def random_uniform_like(c: Context, x, *, dtype=None, high=1.0, low=0.0, seed=None):
    """Uniform numbers in the shape of a tensor."""
    return random_uniform(c, shape=x.shape, dtype=dtype or x.dtype, high=high, low=low, seed=seed)


@operator("RandomNormal")
def random_normal(c: Context, *, shape, dtype="float32", mean=0.0, scale=1.0, seed=None):
    """Normal numbers."""
    out = normal(c, tuple(shape), seed, "float32")
    return cast(out * out.const(scale) + out.const(mean), dtype=dtype)


@operator("RandomNormalLike")
def random_normal_like(c: Context, x, *, dtype=None, mean=0.0, scale=1.0, seed=None):
    """Normal numbers in the shape of a tensor."""
    return random_normal(c, shape=x.shape, dtype=dtype or x.dtype, mean=mean, scale=scale, seed=seed)


@operator("Bernoulli")
def bernoulli(c: Context, x, *, dtype=None, seed=None):
    """1 with the probability that an element says."""
    drawn = uniform(c, x.shape, seed, "float32")
    return cast(P.lt(drawn, cast(x, dtype="float32")), dtype=dtype or x.dtype)


@operator("Multinomial")
def multinomial(c: Context, x, *, dtype="int32", sample_size=1, seed=None):
    """Classes by unnormalised log-probabilities: each is the first whose cumulative probability exceeds a uniform number."""
    from ....prims.rules.broadcast import reduce_sum, reshape

    n, classes = x.shape
    weights = as_array(c.relay("softmax", cast(x, dtype="float32"), 1))
    ends = c.numpy(np.cumsum, weights, axis=1)
    drawn = reshape(uniform(c, (n, sample_size), seed, "float32"), shape=(n, sample_size, 1))
    before = P.ge(drawn, reshape(ends, shape=(n, 1, classes)))
    found = reduce_sum(cast(before, dtype="int64"), axes=(2,))
    top = found.const(classes - 1) if isinstance(classes, int) else found
    return cast(P.minimum(found, top), dtype=dtype)
