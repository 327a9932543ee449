"""Functions of the `relay` namespace that are written in the language."""

from __future__ import annotations

import numpy as np

from .declaration import written


@written(static=("k", "axis"))
def top_k(x, k, axis=-1):
    """The k greatest elements along an axis, greatest first, and where they are.

    NaN is the greatest, as in PyTorch and JAX; of equal elements the first comes first.

    Args:
        x: an array of numbers.
        k: how many.
        axis: along which.

    Returns:
        (values, positions), both with k elements along the axis.

    Raises:
        ValueError: k is negative, or more than there are.

    Example:
        >>> relay.top_k(np.array([3.0, 9.0, 5.0]), 2)
        (array([9., 5.]), array([1, 2]))
    """
    x = np.moveaxis(np.asarray(x), axis, -1)
    n = x.shape[-1]
    if k < 0 or k > n:
        raise ValueError(f"relay.top_k: k={k} of an axis of {n} elements")
    order = n - 1 - np.flip(np.argsort(np.flip(x, -1), axis=-1, kind="stable"), -1)[..., :k]
    values = np.take_along_axis(x, order, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(order, -1, axis)
