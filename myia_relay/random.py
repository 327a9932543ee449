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

from .abstract.annotations import UInt64 as Key
from .functions import OperatorFunction
from .prims.api.random_api import RANDOM

_SIZES = {"split": ("n",), "permutation": ("x",), "choice": ("a", "shape")}


def _public(name: str) -> Any:
    implementation = RANDOM[name]
    sizes = _SIZES.get(name, ("shape",) if "shape" in implementation.parameters else ())
    return OperatorFunction(name, implementation, implementation.function.__doc__ or "", sizes)


key = _public("key")
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

__all__ = [
    "Key",
    "bernoulli",
    "bits",
    "categorical",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "normal",
    "randint",
    "split",
    "uniform",
]
