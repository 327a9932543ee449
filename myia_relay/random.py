"""`relay.random`: random numbers from explicit keys.

    key = relay.random.key(0)
    a, b = relay.random.split(key)
    x = relay.random.normal(a, (3, 4))

A key is an np.uint64. A draw is a function of its key and nothing else, so a key is used once: `split` and `fold_in` make others of
it. All functions work inside of compiled code and outside, and give the same bits in every executor and under `vmap`. See
docs/random.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .abstract.annotations import UInt64 as Key
from .functions import OperatorFunction, Sized
from .library.refusals import misfit
from .prims.api import random_sampling  # noqa: F401  registers its functions
from .prims.api.random_api import RANDOM

_SIZES = {"split": ("n",), "permutation": ("x",)}


def _public(name: str) -> Any:
    implementation = RANDOM[name]
    sizes = _SIZES.get(name, ("shape",) if "shape" in implementation.parameters else ())
    return OperatorFunction(__name__, name, implementation, sizes)


class _KeyOfSeed(OperatorFunction):
    """`key`, which needs no compiler where it is given an int in plain Python."""

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and type(args[0]) is int and -(1 << 63) <= args[0] < 1 << 64:
            return np.uint64(args[0] % (1 << 64))
        return super().__call__(*args, **kwargs)


key = _KeyOfSeed(__name__, "key", RANDOM["key"])
split = _public("split")
fold_in = _public("fold_in")
bits = _public("bits")
uniform = _public("uniform")
normal = _public("normal")
exponential = _public("exponential")
gumbel = _public("gumbel")
bernoulli = _public("bernoulli")
categorical = _public("categorical")
randint = _public("randint")
gamma = _public("gamma")
truncated_normal = _public("truncated_normal")
permutation = _public("permutation")


def _choice(key, a, shape=(), replace=True, p=None, axis=0):
    """Draw from the numbers 0 ... a - 1, or from the parts of an array along an axis.

    Args:
        key: a key.
        a: an int or an array.
        shape: of the draw.
        replace: whether a part may be drawn more than once.
        p: weights of the parts, which need not sum to 1; by default all are equal.
        axis: of the array.

    Returns:
        Numbers; or parts of the array, with the shape of the draw in place of the axis.

    Raises:
        ValueError: there is nothing to draw from, or too little without replacement; a weight is negative or NaN.

    Example:
        >>> key = relay.random.key(0)
        >>> sorted(relay.random.choice(key, 3, (3,), replace=False))
        [np.int64(0), np.int64(1), np.int64(2)]
    """
    n = a if isinstance(a, int) else np.shape(a)[axis]
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for size in sizes:
        count = count * size
    if n < 1:
        raise ValueError("relay.random.choice: there is nothing to draw from")
    if not replace and count > n:
        raise ValueError(f"relay.random.choice: {count} of {n} cannot be drawn without replacement")
    if p is not None:
        p = np.asarray(p, np.float64)
        if p.shape != (n,):
            misfit("relay.random.choice: p has one weight for each part")
        if not np.all(p >= 0.0):
            raise ValueError("relay.random.choice: a weight is negative or NaN")
    if replace:
        if p is None:
            picked = randint(key, sizes, 0, n)
        else:
            total = np.cumsum(p)
            picked = np.searchsorted(total, total[n - 1] * (1.0 - uniform(key, sizes)))
    elif p is None:
        picked = np.reshape(permutation(key, n)[:count], sizes)
    else:
        # The first to arrive, of so many clocks that run at these rates.
        if np.sum(np.where(p > 0.0, 1, 0)) < count:
            raise ValueError("relay.random.choice: fewer weights are not 0 than parts are drawn without replacement")
        picked = np.reshape(np.argsort(exponential(key, (n,)) / p, kind="stable")[:count], sizes)
    return picked if isinstance(a, int) else np.take(a, picked, axis=axis)


_choice.__name__ = _choice.__qualname__ = "choice"
choice: Any = Sized(_choice, ("replace", "axis"), ("a", "shape"))

__all__ = [
    "Key",
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
]
