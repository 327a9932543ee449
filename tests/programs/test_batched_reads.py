"""`vmap(grad(f))` where f reads a part of an array and uses the array otherwise, too: the cotangents of both meet in one sum.

Where only one of them differs between the examples, the sum broadcasts the other.
"""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay, vmap

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def element(x, i):
    return x[i] + np.sum(x * x)


def window(x, i):
    return x[i : i + 2].sum() + np.sum(x**2)


def rows(x, i):
    return np.sum(x[np.array([0, 1])]) + x[i] * np.sum(x)


def taken(x, i):
    return np.sum(np.take(x, np.array([2, 0, 2]))) + np.sum(x * x) * i


def written(x, i):
    y = x.copy()
    y[i] = 3.0
    return np.sum(y) + np.sum(x * x)


def in_a_loop(x, i):
    s = 0.0
    for k in range(2):
        s = s + x[k] + x[(i + k) % 3]
    return s + np.sum(x * x)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)], ids=str)
@pytest.mark.parametrize("f", [element, window, rows, taken, written, in_a_loop])
def test_reads_beside_other_uses(f, axes, executor):
    args = tuple(value if axis == 0 else value[1] for value, axis in zip((X, np.array([0, 1])), axes, strict=True))
    got = relay(vmap(grad(f), in_axes=axes), executor=executor)(*args)
    pairs = zip(np.broadcast_to(args[0], X.shape), np.broadcast_to(args[1], (2,)), strict=True)
    np.testing.assert_allclose(got, [grad(f)(x, int(i)) for x, i in pairs])
