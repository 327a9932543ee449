"""Slopes by central differences, for tests of gradients."""

import numpy as np


def slopes(f, x, h=1e-5):
    """Central differences of a scalar function of an array."""
    out = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[index] = h
        out[index] = (f(x + step) - f(x - step)) / (2 * h)
    return out
