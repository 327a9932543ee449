"""The bits of numbers read as numbers of another dtype."""

from __future__ import annotations

import numpy as np

from ....abstract.types import Array, Scalar, numpy_dtype
from ....ir.prim import primitive
from ....utils.errors import TypeError_
from ...rules.relations import NUMBERS, require


@primitive("elementwise", differentiable=False)
def bitcast(x, *, dtype):
    """The bits of `x` as another dtype of the same width, as `x.view(dtype)`; no number is converted.

    Args:
        x: scalar or array, of any dtype but bool.
        dtype: dtype name of the result.
    """
    return np.asarray(x).view(numpy_dtype(dtype))[()]


@bitcast.infer
def _(x, *, dtype):
    require("bitcast", x, NUMBERS)
    if dtype not in NUMBERS or numpy_dtype(dtype).itemsize != numpy_dtype(x.dtype).itemsize:
        raise TypeError_(
            f"bitcast: the bits of {x.dtype} cannot be read as {dtype}; both have to be numbers of one width"
        )
    return Array(dtype, x.shape) if isinstance(x, Array) else Scalar(dtype, False)


@bitcast.batch
def _(size, batched, x, *, dtype):
    return bitcast(x, dtype=dtype)


@bitcast.lower
def _(b, x, *, dtype):
    return b.bitcast(x, dtype)


__all__ = ["bitcast"]
