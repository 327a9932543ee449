"""A packed, strictly lower-triangular matrix times a vector, pulled back to both. From LAGrad's evaluation."""

import numpy as np

from myia_relay import relay


@relay
def product(lower, x):
    """y = L x.

    Args:
        lower: (n (n - 1) / 2,), L column by column.
        x: (n,).
    """
    n = len(x)
    y = np.zeros(n)
    at = 0
    for j in range(n):
        for i in range(j + 1, n):
            y[i] += lower[at] * x[j]
            at += 1
    return y


@relay
def pullback(lower, x, g):
    """What a cotangent g of y is for L and for x."""
    _, back = relay.vjp(product, lower, x)
    return back(g)
